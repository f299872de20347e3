//! The command line as a person sees it.

mod check;
mod docs;
mod eval;
mod help;
mod reference;
mod repl;
