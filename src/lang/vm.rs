//! The register machine: runs bytecode, calls functions, walks sequences.
//!
//! It does not know about reading or compiling, and reaches the world only through [`Host`]. Frames and registers are
//! on the heap; registers never move, so a native may keep its arguments across a callback.

mod args;
mod build;
mod call;
pub(crate) mod code;
mod coverage;
mod exec;
mod host;
mod iter;
pub(crate) mod lazy;
mod machine;
pub(crate) mod objects;
mod output;
pub(crate) mod quick;
mod slots;
mod slow;
mod sorted;
mod stack;
mod unwind;
#[cfg(debug_assertions)]
mod verify;
mod watches;
mod world;

pub use args::{Args, wrong_type};
pub(crate) use call::{arity_error, out_of_bounds, transient_is_done};
pub(crate) use code::Body;
pub use code::Proto;
pub use coverage::{Coverage, CoveredArm};
pub use host::{Host, NoHost, Request, Stream};
pub use iter::Iter;
pub(crate) use lazy::{join, made_at};
pub use machine::Vm;
pub(crate) use stack::Size;
pub use world::{Loader, ReadHow, World};
