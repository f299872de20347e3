//! The JSON of everything that commands and the API show: what commands print with `--json` is what the API answers.
//!
//! The names of the fields are stable.

mod connections;
mod conversations;
mod diffs;
mod errors;
mod feed;
mod flows;
mod installations;
mod jobs;
mod journal;
mod registry;
mod reports;
mod resources;
mod run_reports;
mod runs;
mod schedules;
mod search;
mod steps;
mod tables;
mod tokens;
mod values;
mod waits;

pub use connections::*;
pub use diffs::*;
pub use errors::*;
pub use feed::*;
pub use flows::*;
pub use installations::*;
pub use jobs::*;
pub use journal::*;
pub use registry::*;
pub use reports::*;
pub use resources::*;
pub use run_reports::*;
pub use runs::*;
pub use schedules::*;
pub use search::*;
pub use steps::*;
pub use tables::*;
pub use tokens::*;
pub use values::*;
pub use waits::*;
