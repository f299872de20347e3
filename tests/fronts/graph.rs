//! Graph specs: what is refused, and what their runs report.

mod events;
mod inputs;
mod mutations;
mod validate;
