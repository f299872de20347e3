//! Durable runs: events, journal, replay, the ports.
//!
//! The engine executes a flow's fiber, journals its requests and their results, and answers from the journal on replay.
//! It knows nothing of SQL, HTTP, providers or terminals: those come through [`ports`] and [`step::Step`].

#![forbid(unsafe_code)]
#![warn(unreachable_pub)]

pub mod archive;
mod asker;
mod backup;
pub mod catalog;
mod child;
mod clock;
mod control;
pub mod crash_test;
mod debugger;
mod direct;
pub mod disk;
mod effects;
mod engine;
mod error;
pub mod events;
mod execute;
mod feed;
pub mod installations;
mod installed;
mod interactive;
pub mod interfaces;
pub mod jobs;
mod journal;
mod left_test;
pub mod links;
mod locals;
pub mod lookup;
pub mod observer;
mod open;
pub mod outcome;
pub mod outside;
mod prepare;
pub mod proofs;
pub mod redact;
mod registered;
mod report;
pub mod resources;
mod runs;
pub mod schedules;
mod scoped;
mod scratch;
pub mod sealed;
pub mod server_secrets;
mod sessions;
mod spans;
mod start;
mod state;
mod step_details;
pub mod test_runs;
pub mod tokens;
pub mod triggers;
pub mod trust;
mod versions;
pub mod waits;
pub mod worker;

pub use flowstone_flow::{Interrupt, bindings::TestMode, retention::Retention};
pub(crate) use flowstone_flow::{
    SessionUse, approval, bindings, call_flow, doubt, expect, flow, format, libraries, metering,
    natives, packaged, permission, retention, retry, schedule, step, total_timeout,
};
pub use flowstone_model::{
    blob, changeset, codec, diagnostic, duration, feed_event, form, ids, installation, json, kv,
    limits, ports, private, registry, resource, rooted, schema, server_file, table, text, token,
    trace, viewer,
};

pub use asker::{AskPermission, Asker, Permission, PermissionQuestion};
pub use child::{child_id, start as start_child, start_loaded as start_loaded_child};
pub use clock::SystemClock;
pub use control::CancelOutcome;
pub use debugger::{Debugger, DecideStep, StepDecision, StepStop};
pub use direct::Direct;
pub use engine::{Engine, EngineConfig, StartOptions, StartedInstallation};
pub use error::EngineError;
pub use execute::{Difference, ExecuteOptions, NextStep, Resolution, Stay};
pub use feed::{FeedState, Feeds, ProjectEvents, ProjectFeed, RunEvents, RunFeed};
pub use flowstone_model::size::parse_size;
pub use interactive::{Desk, Interactive, thrown};
pub use limits::{LIMITS, Limit, Limits, Unit, parse_memory};
pub use open::{RunsBesideStep, builtin};
pub use report::{
    Attempt, CallStep, CompensationReport, Conversation, CostLine, LogLine, RunReport, StepReport,
    StepStatus, ToolCall, Turn,
};
pub use runs::{
    EventsPage, GcOptions, GcReport, RunDiff, RunEventRow, StepDiff, StepSide, StepVerdict,
    read_instant, shown_end,
};
pub use start::{BulkStart, MOST_STARTS, Started, StartedRun, Submitted, SubmittedMany};
pub use step_details::StepDetails;
pub use versions::{
    Against, Backtest, BacktestOptions, BacktestSummary, ForkOptions, Next, Replayed, Setting,
    Verdict,
};
pub use waits::{Answered, Answering, Caller, Remark, WaitReport};
