//! The command line as a person sees it.

mod check;
mod eval;
mod help;
mod repl;
