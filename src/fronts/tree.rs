//! Behaviour trees: a tree file becomes a flow, and an external agent answers its requests one at a time.
//!
//! The flow ticks the tree with the pure functions of the namespace `flow.tree` and opens one `:wait` for each answer. So
//! the journal has every answer, the store decides which of two drivers was first, and replay rebuilds the state. This
//! module knows neither the command line nor MCP; [`tools`] lists what both offer.

mod answers;
mod check;
pub mod compile;
mod document;
mod driver;
mod elsewhere;
mod ended;
mod error;
mod file;
mod find;
mod format;
mod handle;
mod lookup;
mod memory;
mod node;
mod position;
mod reach;
mod scope;
pub mod tools;

pub use answers::check_answer;
pub use check::{Checked, check};
pub use document::Written;
pub use driver::{Answer, Executor, Start, Trees};
pub use elsewhere::{check_everywhere, check_inside};
pub use ended::{DOCUMENT_MARK, write_ended};
pub use error::{TOOLS_OF_COMMANDS, TreeError};
pub use find::{has_trees, is_tree_file, tree_files};
pub use format::TreeFormat;
pub use handle::Handle;
pub use memory::cancel_abandoned;
pub use node::{Composite, Dialect, Node, Step, Tree};
pub use position::is_of_driver;
pub use reach::Reach;
