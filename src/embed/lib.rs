//! The language inside other programs: functions written in Rust, data through serde, limits, captured output, errors that
//! a `main` can return.
//!
//! ```
//! use flowstone_embed::{Embed, Function, Session};
//!
//! let session = Session::new();
//! session.add(Function::new("app/greet", |name: String| format!("Hello, {name}!")));
//! let value = session.evaluate(r#"(map app/greet ["Ada" "Alan"])"#)?;
//! assert_eq!(session.show(&value), r#"("Hello, Ada!" "Hello, Alan!")"#);
//! # Ok::<(), flowstone_embed::Failure>(())
//! ```
//!
//! | to | use |
//! |---|---|
//! | evaluate text, call a function by name | [`Session::evaluate`], [`Session::evaluate_in`], [`Session::call`] |
//! | add functions written in Rust | [`Embed::add`] with a [`Function`]; [`Session::register`] with rows of [`value::Native`] |
//! | pass Rust data in and out | [`to_value`], [`from_value`], [`Embed::evaluate_as`], [`Data`] |
//! | limit instructions and memory, interrupt from another thread, capture what is printed | [`Sandbox`] |
//! | answer requests that leave the language, without blocking the thread | [`fiber::Fiber`], [`vm::Host::suspend`] |
//! | read data, and run nothing | [`reader::read_data`] |
//! | show an error with its place, or as data | [`Failure`], [`diagnostic::Diagnostic`] |
//!
//! Built on the public items of the language alone, so that a program can replace any of it. It knows no engine, runs or
//! stores.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod convert;
pub mod data;
#[cfg(feature = "edn-rs")]
pub mod edn_rs;
mod function;

use std::rc::Rc;

use flowstone_lang::value::{Class, Exception, Symbol, Var};
use serde::de::DeserializeOwned;

pub use convert::{Data, FromValue, IntoResult, IntoSignal, IntoValue, Mismatch, Param, Rest};
pub use data::{DataError, from_value, to_value};
pub use flowstone_lang::{
    Failure, Interrupt, Output, Sandbox, Session, Value, diagnostic, fiber, reader, value, vm,
};
pub use function::{Function, NativeFn, Plain, WithVm};

/// Operations on a [`Session`] for programs that embed the language.
pub trait Embed {
    /// Adds a function written in Rust, under its own name.
    fn add(&self, function: Function) -> Rc<Var>;

    /// Evaluates a text as [`Session::evaluate`] does, and converts the value to any deserialisable type.
    ///
    /// # Errors
    /// The exception that was thrown, or how the value does not fit.
    fn evaluate_as<T: DeserializeOwned>(&self, text: &str) -> Result<T, Failure>;
}

impl Embed for Session {
    fn add(&self, function: Function) -> Rc<Var> {
        let world = self.world();
        let symbol = Symbol::new(function.name());
        let home = symbol.namespace();
        let home = Symbol::new(home.as_deref().unwrap_or("user"));
        let var = world.namespace(home).intern(Symbol::new(&symbol.name()));
        // `require` needs no source for a namespace that exists here.
        world.set_loaded(home);
        var.set_meta(function.meta());
        var.set_root(function.into_value());
        var
    }

    fn evaluate_as<T: DeserializeOwned>(&self, text: &str) -> Result<T, Failure> {
        let mut vm = self.vm(Box::new(Sandbox::new()));
        self.eval_text(&mut vm, "<text>", text)
            .and_then(|value| {
                vm.realise(&value)?;
                from_value(&value).map_err(|error| {
                    Exception::new(Class::ILLEGAL_ARGUMENT, "E0371", error.to_string()).into()
                })
            })
            .map_err(|signal| self.explain(signal))
    }
}
