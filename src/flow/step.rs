//! Step types: what a flow can ask for, and how the engine has it done.
//!
//! A step is data about itself ([`StepSpec`]) and one function. It never journals, retries or times
//! itself out, and never checks its config's keys: the engine does, from the spec.

mod call;
pub mod config;
mod context;
mod error;
mod every_step;
mod gate;
mod json_schema;
mod nested;
mod operation;
pub mod options;
pub mod shape;
mod spec;

use std::future::Future;
use std::pin::Pin;

use flowstone_lang::value::Value;

pub use call::Cut;
pub use call::Cutoff;
pub use call::{code as code_function, run_code as call_code};
pub use context::{Progress, Scope, Services, StepContext, StepRequest};
pub use error::{Retry, StepError};
pub use every_step::COMMON;
pub use gate::{Gate, Place, Readable, Writable, real as real_path};
pub use json_schema::{config_schema, operation_schema, respelled, result_schema, tool_schema};
pub use nested::{NestedAnswer, NestedRequest, NestedResult, NestedSteps, error_of};
pub use operation::{Misuse, Operation, Operations};
pub use spec::{Effect, Field, FieldType, StepSpec};

use crate::diagnostic::Diagnostic;
pub use crate::expect::check_at_once as check_expected;
use crate::flow::Flow;
use crate::ids::RunId;
use crate::permission::PlannedNeed;
use crate::ports::{Flaw, Removed, StoreError, StoreOp, WaitEvent};

/// A future on the thread of its run: values do not leave it.
pub type LocalFuture<'a, T> = Pin<Box<dyn Future<Output = T> + 'a>>;

/// A step type.
pub trait Step {
    /// Returns what there is to know about it.
    fn spec(&self) -> &'static StepSpec;

    /// Returns what this request does to the world, where that depends on its config.
    fn effect(&self, config: &Value) -> Effect {
        let spec = self.spec();
        let chosen = spec.operations.and_then(|operations| {
            operations.find(&crate::flow::name_of(config.get(operations.key)?)?)
        });
        chosen.map_or(spec.effect, |operation| operation.effect)
    }

    /// Tells whether what such a config asks for may be done again after a crash that left open whether it was done:
    /// it finds what an earlier attempt did.
    fn repeats_safely(&self, config: &Value) -> bool {
        let _ = config;
        false
    }

    /// Says what is wrong with a config as it is written in a flow, beyond its fields: at which of its keys, and what.
    /// Forms in it are not evaluated.
    fn remarks(&self, flow: &Flow, config: &Value) -> Vec<(&'static str, Diagnostic)> {
        let _ = (flow, config);
        Vec::new()
    }

    /// Says what in a config, as it is written in a flow, the settings of the project do not allow.
    fn settings_remarks(
        &self,
        settings: &Value,
        config: &Value,
    ) -> Vec<(&'static str, Diagnostic)> {
        let _ = (settings, config);
        Vec::new()
    }

    /// Returns what a config as it is written in a flow needs the flow to be allowed, as far as it is written out.
    fn needs(&self, flow: &Flow, settings: &Value, config: &Value) -> Vec<PlannedNeed> {
        let _ = (flow, settings, config);
        Vec::new()
    }

    /// Returns the part of a value that `:expect` is about; `None` where there is nothing to check.
    fn judged(&self, value: &Value) -> Option<Value> {
        Some(value.clone())
    }

    /// Returns how long a run stays in memory after the step's wait has opened, so that a quick answer needs no replay.
    fn keep_alive(&self, _config: &Value) -> Option<std::time::Duration> {
        None
    }

    /// Performs it. `config` is fully realised, has passed the spec, and holds the defaults.
    ///
    /// A step of [`Effect::Steps`] performs others through `cx`. After a crash it is performed again from its beginning,
    /// and those that had ended answer from the journal: which steps it asks for, with which configs and in which
    /// order, follows from its own config and from what they gave, and from nothing else.
    ///
    /// The future is dropped when the run is interrupted, cancelled, or over its timeout: what must not be left
    /// half done is done so that dropping is safe. Nothing may block the thread for long; blocking work goes to
    /// `tokio::task::spawn_blocking`.
    fn run<'a>(
        &'a self,
        cx: &'a StepContext,
        config: Value,
    ) -> LocalFuture<'a, Result<Outcome, StepError>>;

    /// Removes, or only counts, what the step keeps under the project's home and nothing refers to any more.
    fn sweep<'a>(
        &'a self,
        services: &'a Services,
        sweep: HomeSweep,
    ) -> LocalFuture<'a, Result<HomeSwept, StoreError>> {
        let _ = (services, sweep);
        Box::pin(std::future::ready(Ok(HomeSwept::default())))
    }

    /// Checks what the step keeps under the project's home. Nothing is changed.
    fn verify<'a>(
        &'a self,
        services: &'a Services,
    ) -> LocalFuture<'a, Result<HomeVerified, StoreError>> {
        let _ = services;
        Box::pin(std::future::ready(Ok(HomeVerified::default())))
    }

    /// Tells somebody that the run waits, where the config has `:notify`. The wait is on disk. Called again where
    /// that failed, and where a crash left it open whether it was done: with the same idempotency key.
    fn notify<'a>(
        &'a self,
        cx: &'a StepContext,
        config: &'a Value,
        notice: &'a WaitNotice,
    ) -> LocalFuture<'a, Result<Value, StepError>> {
        let _ = (cx, config, notice);
        Box::pin(std::future::ready(Ok(Value::Nil)))
    }
}

/// What [`Step::sweep`] looks at.
#[derive(Debug, Clone, Copy)]
pub struct HomeSweep {
    pub now_ms: i64,
    /// Younger files stay: somebody may be about to refer to them.
    pub older_than_ms: i64,
    pub dry_run: bool,
}

/// What [`Step::sweep`] removed, or would remove.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct HomeSwept {
    /// Contents that steps had stored.
    pub contents: Removed,
    /// Temporary folders of runs.
    pub folders: Removed,
}

/// What [`Step::verify`] checked, and what is wrong with it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HomeVerified {
    /// Contents of files that were read.
    pub files: u64,
    pub flaws: Vec<Flaw>,
}

/// The outcome of a step.
#[derive(Debug)]
pub enum Outcome {
    /// It is done, outside or by reading; this is its value.
    Value(Value),
    /// The store is to do this in one transaction with the journal row; the operation's result is the
    /// step's value.
    Commit(StoreOp),
    /// This run was started, and its output is the step's value.
    Child(RunId),
    /// The run waits for somebody.
    Suspend(Box<WaitSpec>),
    /// The run goes on at that moment, with this value. Not asked again on replay.
    Sleep { until_ms: i64, value: Value },
}

/// What a suspended step waits for.
#[derive(Debug, Clone)]
pub struct WaitSpec {
    /// Correlation key. `None`: run id and step path.
    pub key: Option<String>,
    /// When it stops waiting.
    pub deadline_ms: Option<i64>,
    pub on_timeout: OnTimeout,
    /// A Malli schema or `{:required [...]}` that a payload must satisfy, or nil.
    pub validation: Value,
    /// What to show to who decides: a map with `:title`, `:message`, `:data`, `:actions`, `:roles` ...
    pub details: Value,
    /// An event that completes it.
    pub event: Option<WaitEvent>,
    /// Where a webhook for it comes in.
    pub webhook: Option<String>,
}

/// What a notification may tell of its wait.
#[derive(Debug, Clone)]
pub struct WaitNotice {
    /// The wait's id.
    pub wait: String,
    pub key: String,
    /// The token that answers the wait, once. It is passed to the people who are notified, and never recorded.
    pub token: String,
    pub deadline_ms: Option<i64>,
}

/// The result of a wait that nobody answers.
#[derive(Debug, Clone)]
pub enum OnTimeout {
    /// The step fails with kind `:timeout`.
    Fail,
    /// The step's value is this.
    Continue(Value),
}

/// `:persist` of any step: turns its value into a change of our own stores.
pub trait Persist {
    /// Checks a config before the step runs, so that no work is done for a result that cannot be stored.
    ///
    /// # Errors
    /// When the config is wrong for a step of this kind.
    fn check(&self, kind: &str, config: &Value) -> Result<(), StepError>;

    /// The step's value becomes the result of the operation.
    fn persist<'a>(
        &'a self,
        cx: &'a StepContext,
        config: &'a Value,
        value: Value,
    ) -> LocalFuture<'a, Result<StoreOp, StepError>>;
}
