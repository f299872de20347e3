//! Durable runs: events, journal, replay, the ports.
//!
//! The engine executes a flow's fiber, journals what it asks for and what came of it, and answers from the
//! journal on replay. It knows nothing of SQL, HTTP, providers or terminals: those come through
//! [`ports`] and [`step::Step`].

#![forbid(unsafe_code)]

pub mod archive;
mod asker;
pub mod auth;
mod backup;
pub mod bindings;
mod child;
pub mod connections;
mod direct;
mod doubt;
mod engine;
mod error;
mod execute;
mod expect;
pub mod flow;
mod gate;
mod interactive;
mod interrupt;
mod journal;
mod metering;
pub mod natives;
pub mod observer;
pub mod outcome;
pub mod packaged;
pub mod permission;
pub mod redact;
pub mod resources;
mod retry;
mod runs;
pub mod schedule;
pub mod schedules;
pub mod sealed;
pub mod search;
mod sessions;
mod start;
mod state;
pub mod step;
mod timeline;
pub mod tools;
pub mod trial;
pub mod trust;
mod turn;
mod versions;
pub mod waits;
pub mod worker;
pub mod workspace;

pub use flowstone_model::{
    blob, changeset, codec, diagnostic, duration, ids, json, kv, limits, ports, private, resource,
    rooted, schema, table, words,
};

pub use asker::{AskPermission, Asker, Permission, PermissionQuestion};
pub use direct::Direct;
pub use engine::{CancelOutcome, Engine, EngineConfig, StartOptions};
pub use error::EngineError;
pub use execute::{Difference, ExecuteOptions, Stand, Stay};
pub use flowstone_model::size::parse_size;
pub use interactive::Interactive;
pub use interrupt::Interrupt;
pub use limits::{LIMITS, Limit, Limits, Unit, parse_memory};
pub use runs::{
    EventsPage, GcOptions, GcReport, Retention, RunDiff, RunEventRow, StepDiff, StepSide,
    StepVerdict, moment, shown_end,
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
