//! The command line as a person sees it.

mod agents;
mod bad_input;
mod check;
mod connections;
mod docs;
mod endings;
mod eval;
mod gallery;
mod help;
mod kill;
mod limits;
mod packaged;
mod processes;
mod queue;
mod recording;
mod reference;
mod repl;
mod resources;
mod resources_table;
mod run;
mod runs;
mod search;
mod serve;
mod steps;
mod test;
mod waits;
