//! What a flow can be built of: a catalogue of the project, made when it is asked for, and the states of its connections.
//!
//! It has the step types, the packaged steps and flows that the caller reaches, connections, and the tools of MCP servers. Only
//! MCP servers are asked for something: for their lists of tools. Secrets appear nowhere, and of connections only names and states.

mod candidate;
mod catalogue;
mod listed;
mod need;
pub mod shapes;
mod spoken;
mod state;
mod wording;

pub use candidate::{Candidate, Kind, Link};
pub use catalogue::Catalogue;
pub use need::Need;
pub use state::{Integration, Integrations, State, shown_missing};
pub use wording::{left_to_do, reads_like_a_time, reads_like_an_event};
