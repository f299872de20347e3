//! The command line as a person sees it.

mod eval;
mod help;
mod repl;
