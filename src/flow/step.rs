//! Step types: the requests that a flow can make, and the contract by which the engine performs them.
//!
//! A step is data about itself ([`StepSpec`]) and one function. It never journals, retries or times itself out, and
//! never checks its config's keys: the engine does so, from the spec.

mod call;
mod context;
mod error;
mod gate;
mod nested;
mod stores;

use std::future::Future;
use std::pin::Pin;

use flowstone_lang::value::Value;

pub use call::Cut;
pub use call::Cutoff;
pub use call::{code as code_function, run_code as call_code};
pub use context::{
    ModelCall, Progress, RunInstallation, Scope, Services, StepContext, StepRequest,
};
pub use error::{Retry, StepError};
pub use gate::{Gate, Place, Readable, Writable, real as real_path};
pub use nested::{NestedAnswer, NestedRequest, NestedResult, NestedSteps, error_of};

use crate::bounds::StepBounds;
use crate::definition::Flow;
use crate::diagnostic::Diagnostic;
use crate::ids::RunId;
use crate::permission::PlannedNeed;
use crate::ports::{Flaw, Removed, StoreError, StoreOp, WaitEvent};
pub use crate::spec::{
    COMMON, Effect, Field, FieldType, Misuse, Operation, Operations, StepSpec, config_schema,
    operation_schema, respelled, result_schema, shape, tool_schema,
};

/// A future that stays on the thread of its run, because values cannot be sent to other threads.
pub type LocalFuture<'a, T> = Pin<Box<dyn Future<Output = T> + 'a>>;

/// A step type.
pub trait Step {
    /// Returns the description of the step type.
    fn spec(&self) -> &'static StepSpec;

    /// Returns the effect of a request, which may depend on its config.
    fn effect(&self, config: &Value) -> Effect {
        let spec = self.spec();
        let chosen = spec.operations.and_then(|operations| {
            operations.find(&flowstone_model::names::name_of(
                config.get(operations.key)?,
            )?)
        });
        chosen.map_or(spec.effect, |operation| operation.effect)
    }

    /// Tells whether a request with this config may be performed again after a crash that left it in doubt, because it
    /// finds the effect of an earlier attempt.
    fn repeats_safely(&self, config: &Value) -> bool {
        let _ = config;
        false
    }

    /// Tells whether a dry test performs the step although its effect is outside, because the step refuses by itself what a
    /// test must not do.
    fn performs_in_dry_tests(&self, config: &Value) -> bool {
        let _ = config;
        false
    }

    /// Returns the findings about a config as it is written in a flow, beyond its fields, each with the key of the
    /// config. Forms in it are not evaluated.
    fn remarks(&self, flow: &Flow, config: &Value) -> Vec<(&'static str, Diagnostic)> {
        let _ = (flow, config);
        Vec::new()
    }

    /// Returns the findings about parts of a config, as it is written in a flow, that the project's settings do not
    /// allow.
    fn settings_remarks(
        &self,
        flow: &Flow,
        settings: &Value,
        config: &Value,
    ) -> Vec<(&'static str, Diagnostic)> {
        let _ = (flow, settings, config);
        Vec::new()
    }

    /// Returns the permissions that a config needs, as far as they are written out in the flow.
    fn needs(&self, flow: &Flow, settings: &Value, config: &Value) -> Vec<PlannedNeed> {
        let _ = (flow, settings, config);
        Vec::new()
    }

    /// Returns what one attempt of the step uses at most beside the step call, as far as its config is written out. A config
    /// that is not a map is computed as a whole.
    fn bounds(&self, flow: &Flow, settings: &Value, config: &Value) -> StepBounds {
        let _ = (flow, settings, config);
        StepBounds::default()
    }

    /// Returns the part of a value that `:expect` checks; `None` if there is nothing to check.
    fn judged(&self, value: &Value) -> Option<Value> {
        Some(value.clone())
    }

    /// Returns how long a run stays in memory after the step's wait has opened, so that a quick answer needs no replay.
    fn keep_alive(&self, _config: &Value) -> Option<std::time::Duration> {
        None
    }

    /// Performs the step. `config` is fully realised, has passed the spec, and contains the defaults.
    ///
    /// A step of [`Effect::Steps`] performs others through `cx`. After a crash it is performed again from its
    /// beginning, and the steps that had ended are answered from the journal. Its requests, with their configs and
    /// their order, must therefore follow only from its own config and from the results of earlier steps.
    ///
    /// The future is dropped when the run is interrupted, is cancelled or times out, so dropping it must never leave
    /// anything half done. Nothing may block the thread for long; blocking work goes to `tokio::task::spawn_blocking`.
    fn run<'a>(
        &'a self,
        cx: &'a StepContext,
        config: Value,
    ) -> LocalFuture<'a, Result<Outcome, StepError>>;

    /// Removes, or only counts, unreferenced data that the step keeps under the project's home.
    fn sweep<'a>(
        &'a self,
        services: &'a Services,
        sweep: HomeSweep,
    ) -> LocalFuture<'a, Result<HomeSwept, StoreError>> {
        let _ = (services, sweep);
        Box::pin(std::future::ready(Ok(HomeSwept::default())))
    }

    /// Checks the data that the step keeps under the project's home. Changes nothing.
    fn verify<'a>(
        &'a self,
        services: &'a Services,
    ) -> LocalFuture<'a, Result<HomeVerified, StoreError>> {
        let _ = services;
        Box::pin(std::future::ready(Ok(HomeVerified::default())))
    }

    /// Sends the notification of a wait whose config has `:notify`. The wait is already on disk. Called again with the
    /// same idempotency key if the notification failed, or if a crash left it in doubt.
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

/// The criteria of [`Step::sweep`].
#[derive(Debug, Clone, Copy)]
pub struct HomeSweep {
    pub now_ms: i64,
    /// Minimum age of removed files: younger ones may be about to be referred to.
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

/// The findings of [`Step::verify`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HomeVerified {
    /// The number of files whose contents were read.
    pub files: u64,
    pub flaws: Vec<Flaw>,
}

/// The outcome of a step.
#[derive(Debug)]
pub enum Outcome {
    /// The step is done, outside or by reading; this is its value.
    Value(Value),
    /// The store performs this operation in one transaction with the journal row. The result of the operation is the
    /// step's value.
    Commit(StoreOp),
    /// The step has started this run, whose output is the step's value.
    Child(RunId),
    /// The run waits for an answer or an event.
    Suspend(Box<WaitSpec>),
    /// The run resumes at that instant, with this value. The request is not repeated on replay.
    Sleep { until_ms: i64, value: Value },
}

/// The conditions under which a suspended step resumes.
#[derive(Debug, Clone)]
pub struct WaitSpec {
    /// Correlation key. `None`: run id and step path.
    pub key: Option<String>,
    /// The instant at which the wait times out.
    pub deadline_ms: Option<i64>,
    pub on_timeout: OnTimeout,
    /// A Malli schema or `{:required [...]}` that a payload must satisfy, or nil.
    pub validation: Value,
    /// Details for the people who decide: a map with `:title`, `:message`, `:data`, `:actions`, `:roles` ...
    pub details: Value,
    /// An event that completes the wait.
    pub event: Option<WaitEvent>,
    /// The path of a webhook that completes the wait.
    pub webhook: Option<String>,
}

/// The facts about a wait that a notification may contain.
#[derive(Debug, Clone)]
pub struct WaitNotice {
    /// The id of the wait.
    pub wait: String,
    pub key: String,
    /// The token that answers the wait, once. It is sent to the people who are notified, and never recorded.
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

/// `:persist` of any step: turns its value into a change of Flowstone's own stores.
pub trait Persist {
    /// Checks a config before the step runs, so that no work is done for a result that cannot be stored.
    ///
    /// # Errors
    /// Fails if the config is wrong for a step of this kind.
    fn check(&self, kind: &str, config: &Value) -> Result<(), StepError>;

    /// Returns the operation that stores the step's value. Its result becomes the value.
    fn persist<'a>(
        &'a self,
        cx: &'a StepContext,
        config: &'a Value,
        value: Value,
    ) -> LocalFuture<'a, Result<StoreOp, StepError>>;
}
