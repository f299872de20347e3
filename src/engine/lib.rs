//! Durable runs: events, journal, replay, the ports.
//!
//! The engine drives a flow's fiber, journals what it asks for and what came of it, and answers from the
//! journal on replay. It knows nothing of SQL, HTTP, providers or terminals: those come through
//! [`ports`] and [`step::Step`].

#![forbid(unsafe_code)]

mod answer;
pub mod archive;
mod asker;
pub mod auth;
mod backup;
pub mod bindings;
pub mod blob;
pub mod changeset;
mod child;
pub mod codec;
pub mod connections;
pub mod diagnostic;
mod direct;
mod doubt;
mod drive;
pub mod duration;
mod engine;
mod error;
mod expect;
pub mod flow;
mod gate;
mod history;
pub mod ids;
mod interactive;
mod interrupt;
pub mod json;
pub mod kv;
mod limits;
mod metering;
pub mod natives;
pub mod observer;
pub mod outcome;
pub mod packaged;
pub mod permission;
pub mod ports;
pub mod private;
pub mod redact;
pub mod resource;
pub mod resources;
mod retry;
pub mod rooted;
mod runs;
pub mod schedule;
pub mod schedules;
pub mod schema;
pub mod sealed;
pub mod search;
mod sessions;
mod start;
mod state;
pub mod step;
pub mod table;
mod timeline;
pub mod tools;
pub mod trial;
pub mod trust;
mod turn;
mod versions;
pub mod waits;
pub mod words;
pub mod worker;
pub mod workspace;

pub use asker::{AskPermission, Asker, Permission, PermissionQuestion};
pub use direct::Direct;
pub use drive::{Difference, DriveOptions, Stand, Stay};
pub use engine::{CancelOutcome, Engine, EngineConfig, StartOptions};
pub use error::EngineError;
pub use interactive::Interactive;
pub use interrupt::Interrupt;
pub use limits::{LIMITS, Limit, Limits, Unit, parse_memory};
pub use runs::{
    EventsPage, GcOptions, GcReport, Retention, RunDiff, RunEventRow, StepDiff, StepSide,
    StepVerdict, moment, parse_size, shown_end,
};
pub use start::StartedRun;
pub use timeline::{
    Attempt, CallStep, Conversation, CostLine, LogLine, RunReport, StepDetails, StepReport,
    StepStatus, ToolCall, Turn, UndoReport,
};
pub use versions::{
    Against, Backtest, BacktestOptions, BacktestSummary, ForkOptions, Replayed, Setting, Verdict,
};
pub use waits::{Answered, Answering, Caller, Remark, WaitReport};
