//! The language server: the Language Server Protocol on standard input and output, for flow files and other Clojure
//! source. It answers from the syntax tree of the open text, from the rows of the step types, and from the same checks
//! as `flowstone check`. It runs no flow and opens no store; it writes only copies of the library's texts, to the cache.
//!
//! One thread talks with the client and answers from trees; another one checks. What a check found is dropped if the
//! text has changed meanwhile.

mod actions;
mod answers;
mod complete;
mod context;
mod document;
mod edits;
mod findings;
mod hover;
mod library;
mod links;
mod navigate;
mod outline;
mod place;
mod rename;
mod scope;
mod semantic;
mod serve;
mod signature;

use std::path::PathBuf;

use flowstone_flow::step::Step;
use flowstone_lang::session::Session;
use flowstone_lang::value::Value;

pub use serve::{Ended, serve};

/// What the server needs of the application. Each thread that uses it makes its own values.
pub trait Backend: Sync {
    /// Returns a session with everything that flows may use.
    fn session(&self) -> Session;

    /// Returns all step types.
    fn steps(&self) -> Vec<Box<dyn Step>>;

    /// Returns the folder of the project.
    fn root(&self) -> PathBuf;

    /// Returns the settings of the project; nil if they cannot be used.
    fn settings(&self) -> Value;
}

/// Returns the folder for copies of the library's texts, which an editor shows when a definition is asked for.
fn cache_folder() -> Option<PathBuf> {
    let named = |name: &str| {
        std::env::var_os(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    let cache = named("XDG_CACHE_HOME").or_else(|| Some(named("HOME")?.join(".cache")))?;
    Some(cache.join("flowstone"))
}
