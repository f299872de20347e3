//! The JSON of jobs, runs, waits and tokens: what commands print with `--json` is what the API answers.
//!
//! The names of the fields are stable.

mod jobs;
mod runs;
mod tokens;
mod values;
mod waits;

pub use jobs::*;
pub use runs::*;
pub use tokens::*;
pub use values::*;
pub use waits::*;
