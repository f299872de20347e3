//! What a step sees of its run.

use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use flowstone_lang::session::Session;
use flowstone_lang::value::Value;
use flowstone_lang::value::heap::HeapBudget;

use super::{Gate, NestedRequest, NestedResult, NestedSteps, Step, StepError};
use crate::flow::Flow;
use crate::ids::{RunId, StepPath};
use crate::permission::{Host, Permissions};
use crate::ports::{
    Clock, Exchanges, Random, Revealed, Secret, Secrets, Stores, Telemetry, Vault, Witness,
};
use crate::redact::{self, Redactor, Redactors};
use crate::trace::{RunTrace, SpanPlace, TraceParent};

/// What all runs of an engine share.
#[derive(Clone)]
pub struct Services {
    /// The step types that flows may use.
    pub steps: Rc<[Box<dyn Step>]>,
    pub stores: Stores,
    pub clock: Arc<dyn Clock>,
    pub random: Arc<dyn Random>,
    pub secrets: Arc<dyn Secrets>,
    /// Encrypts what is kept of secrets.
    pub vault: Arc<dyn Vault>,
    /// What finds secrets in text, by sets of secrets.
    pub redactors: Redactors,
    /// Who sees the requests to servers first, when a run is recorded or replayed.
    pub exchanges: Option<Arc<dyn Exchanges>>,
    /// Takes the spans of runs.
    pub telemetry: Arc<dyn Telemetry>,
    /// The folder that holds the flows; paths in steps are relative to it and stay inside.
    pub project_root: PathBuf,
    /// The folder of our own data, `.flowstone`.
    pub home: PathBuf,
    /// The project's settings (`flowstone.edn`), a map: `:connections`, `:providers` ...
    pub settings: Value,
    /// The profile of the settings.
    pub profile: Option<String>,
    /// What the flows of the project may touch.
    pub permissions: Arc<Permissions>,
    /// The flow is not one of the project.
    pub is_outside: bool,
}

impl Services {
    /// Returns the gate of a flow.
    pub fn gate_of(&self, flow: &Flow) -> Rc<Gate> {
        let allow = match self.is_outside {
            true => self
                .permissions
                .of_stranger(&flow.slug, flow.digest.as_deref()),
            false => self.permissions.of_flow(&flow.slug),
        };
        Rc::new(Gate::new(&self.project_root, allow))
    }
}

impl Services {
    /// Returns a span of a run as other programs are told of it. Where nobody takes the run's spans, they are told of the
    /// span that the run itself is below.
    pub fn trace_parent(&self, trace: &RunTrace, place: SpanPlace<'_>) -> Option<TraceParent> {
        if !self.telemetry.is_on() {
            return trace.parent;
        }
        let is_sampled = self.telemetry.samples(trace.trace, trace.remote);
        Some(trace.handed_on(place, is_sampled))
    }
}

/// What takes the progress of steps.
pub type ProgressSink = dyn Fn(&StepPath, Progress);

/// What all steps of a run share.
pub struct Scope {
    pub run: RunId,
    pub flow: Rc<Flow>,
    pub input: Value,
    /// Those in the input. A request's digest is made without them.
    pub input_secrets: Vec<Secret>,
    /// Where the run belongs in traces.
    pub trace: Option<RunTrace>,
    pub session: Rc<Session>,
    pub services: Rc<Services>,
    /// What the flow may touch.
    pub gate: Rc<Gate>,
    /// Where progress goes.
    pub progress: Rc<ProgressSink>,
    /// Secrets that were looked up: their text is taken out of whatever is recorded.
    pub revealed: Revealed,
    /// What the values of the run may hold in memory.
    pub heap: Rc<HeapBudget>,
    /// Ends the code of functions when the run is to be suspended.
    pub cutoff: super::Cutoff,
}

impl Scope {
    /// Returns the map that inputs and functions find under `:flow/ctx`.
    pub fn flow_context(&self) -> Value {
        Value::map([
            (
                Value::keyword("workflow-id"),
                Value::from(self.run.as_str()),
            ),
            (Value::keyword("run-id"), Value::from(self.run.as_str())),
            (Value::keyword("flow-slug"), Value::from(&*self.flow.slug)),
        ])
    }

    /// Takes the secrets out of a message.
    pub fn redact(&self, text: String) -> String {
        self.revealed.redactor().text(text)
    }

    /// Takes the secrets out of the strings of EDN text whose keys and numbers are the engine's own.
    pub fn redact_strings(&self, text: String) -> String {
        self.revealed.redactor().edn_strings(text)
    }

    /// Takes the secrets out of EDN text that is to be recorded.
    pub fn redact_edn(&self, text: String) -> String {
        self.revealed.redactor().edn(text)
    }
}

/// The request under way.
#[derive(Debug, Clone)]
pub struct StepRequest {
    pub path: StepPath,
    /// The step type's own name, also where the flow used an alias.
    pub kind: &'static str,
    /// Counted from 1.
    pub attempt: u32,
    pub idempotency_key: String,
    /// When this attempt is over its `:timeout`; the engine drops it then.
    pub deadline_ms: Option<i64>,
    /// Which pass of the run this is, counted from 0: `flow/continue-as-new` begins the next.
    pub pass: i64,
}

/// What a step tells about itself while it runs. Not journaled, and lost on replay.
#[derive(Debug, Clone, PartialEq)]
pub enum Progress {
    /// A piece of a model's answer.
    Text(String),
    /// A piece of a model's reasoning.
    Thought(String),
    /// The answer so far is not the last one: it is asked for again, for this reason.
    Again(String),
    /// A line about what it is doing; replaces the one before.
    Status(String),
    /// How far it is.
    Count { done: u64, total: Option<u64> },
    /// Something that was asked for and is not performed, and why.
    Refused { what: String, why: String },
    /// What an answer of a model took. Dollars where the price is known.
    Spent { tokens: i64, usd: Option<f64> },
    /// A model was called once.
    ModelCall(Box<ModelCall>),
}

/// One call of a model, for figures. A step may make several.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelCall {
    pub provider: String,
    pub model: String,
    pub millis: i64,
    /// 0 if the call failed.
    pub input_tokens: i64,
    /// 0 if the call failed.
    pub output_tokens: i64,
    /// Dollars, where the price is known.
    pub usd: Option<f64>,
}

/// A step's view of its run and of the world.
pub struct StepContext {
    scope: Rc<Scope>,
    request: StepRequest,
    nested: Option<Rc<NestedSteps>>,
    level: u32,
    allowance: Option<i64>,
    rules: Option<Value>,
}

impl Scope {
    /// As [`Services::trace_parent`], for this run.
    pub fn trace_parent(&self, place: SpanPlace<'_>) -> Option<TraceParent> {
        self.services.trace_parent(self.trace.as_ref()?, place)
    }
}

impl StepContext {
    pub fn new(scope: Rc<Scope>, request: StepRequest) -> StepContext {
        StepContext {
            scope,
            request,
            nested: None,
            level: 0,
            allowance: None,
            rules: None,
        }
    }

    /// Returns the span of this attempt as other programs are told of it, where they are told of one.
    pub fn trace_parent(&self) -> Option<TraceParent> {
        let trace = self.scope.trace.as_ref()?;
        let path = self.path().to_string();
        let attempt = trace.attempt(&path, self.request.kind, self.request.attempt);
        self.scope.trace_parent(attempt)
    }

    /// Returns the span of the step as a run that it starts stores it.
    pub fn span_of_step(&self) -> Option<TraceParent> {
        let trace = self.scope.trace.as_ref()?;
        let is_sampled = trace.remote.unwrap_or(true);
        Some(trace.handed_on(trace.step(&self.path().to_string()), is_sampled))
    }

    pub fn at_level(self, level: u32) -> StepContext {
        StepContext { level, ..self }
    }

    pub fn with_allowance(self, allowance: Option<i64>) -> StepContext {
        StepContext { allowance, ..self }
    }

    pub fn with_rules(self, rules: Option<Value>) -> StepContext {
        StepContext { rules, ..self }
    }

    /// Returns the rules of the steps around this one, as these handed them down.
    pub fn rules(&self) -> Option<&Value> {
        self.rules.as_ref()
    }

    /// Returns the most tokens that models may use in this step, where a step around it limits them. What it allows
    /// follows from the journal, so that it is the same on replay.
    pub fn allowance(&self) -> Option<i64> {
        self.allowance
    }

    /// Returns how many steps that perform others are around this one: 0 for those that a flow asks for itself.
    pub fn level(&self) -> u32 {
        self.level
    }

    /// Lets the step perform others, by leaving them at a nested.
    pub fn with_nested(self, nested: Rc<NestedSteps>) -> StepContext {
        StepContext {
            nested: Some(nested),
            ..self
        }
    }

    /// Performs a step inside this one, whose effect is [`super::Effect::Steps`].
    ///
    /// # Errors
    /// What the step failed with; E0575 outside of runs.
    pub async fn perform(&self, request: NestedRequest) -> Result<Value, StepError> {
        let mut performed = self.perform_all(vec![request], 1).await;
        match performed.pop() {
            Some(performed) => performed.result,
            None => Err(outside_of_runs()),
        }
    }

    /// Performs several steps, at most `limit` concurrently, and returns their results in order.
    pub async fn perform_all(&self, steps: Vec<NestedRequest>, limit: usize) -> Vec<NestedResult> {
        match &self.nested {
            Some(nested) => nested.perform_all(steps, limit).await,
            None => {
                let refused = steps.into_iter().map(|inside| NestedResult {
                    result: Err(outside_of_runs()),
                    wrapped: None,
                    began_ms: 0,
                    ended_ms: 0,
                    path: inside.id,
                });
                refused.collect()
            }
        }
    }

    pub fn scope(&self) -> &Rc<Scope> {
        &self.scope
    }

    /// Returns when the last of the steps inside this one ended, as the journal has it; 0 before the first. What a step
    /// asks for may depend on it.
    pub fn latest_ms(&self) -> i64 {
        self.nested.as_ref().map_or(0, |nested| nested.latest_ms())
    }

    pub fn request(&self) -> &StepRequest {
        &self.request
    }

    pub fn run_id(&self) -> &RunId {
        &self.scope.run
    }

    /// Returns the run's id, and which pass of it this is where that is not the first: what is named after it
    /// differs from pass to pass.
    pub fn pass_name(&self) -> String {
        match self.request.pass {
            0 => self.scope.run.to_string(),
            pass => format!("{}.{pass}", self.scope.run),
        }
    }

    pub fn path(&self) -> &StepPath {
        &self.request.path
    }

    pub fn step_id(&self) -> &str {
        &self.request.path.step
    }

    pub fn kind(&self) -> &'static str {
        self.request.kind
    }

    /// Returns which attempt this is, counted from 1.
    pub fn attempt(&self) -> u32 {
        self.request.attempt
    }

    /// Returns a text that is the same for every attempt at this step and differs from every other's.
    pub fn idempotency_key(&self) -> &str {
        &self.request.idempotency_key
    }

    pub fn deadline_ms(&self) -> Option<i64> {
        self.request.deadline_ms
    }

    /// Returns the flow that runs: its functions, templates, requirements.
    pub fn flow(&self) -> &Flow {
        &self.scope.flow
    }

    pub fn input(&self) -> &Value {
        &self.scope.input
    }

    /// Returns the map that inputs and functions find under `:flow/ctx`.
    pub fn flow_context(&self) -> Value {
        self.scope.flow_context()
    }

    /// Returns the map that function code finds under `:step/ctx`.
    pub fn step_context(&self) -> Value {
        Value::map([
            (Value::keyword("step-id"), Value::from(self.step_id())),
            (Value::keyword("step-type"), Value::keyword(self.kind())),
            (Value::keyword("path"), Value::from(self.path().to_string())),
        ])
    }

    pub fn project_root(&self) -> &Path {
        &self.scope.services.project_root
    }

    pub fn home(&self) -> &Path {
        &self.scope.services.home
    }

    /// Returns the project's settings, a map.
    pub fn settings(&self) -> &Value {
        &self.scope.services.settings
    }

    /// Returns the own stores, for reading. Changes go through [`super::Outcome::Commit`].
    pub fn stores(&self) -> &Stores {
        &self.scope.services.stores
    }

    pub fn now_ms(&self) -> i64 {
        self.scope.services.clock.now_ms()
    }

    pub fn random(&self) -> u64 {
        self.scope.services.random.next()
    }

    /// Reports progress to the run's observers.
    pub fn emit(&self, progress: Progress) {
        (self.scope.progress)(&self.request.path, progress);
    }

    /// Returns what decides about every file, server, program and secret that the step touches.
    pub fn gate(&self) -> &Gate {
        &self.scope.gate
    }

    /// Looks up a secret that is to be sent to a host. Its text is taken out of all that the step hands back. `None`
    /// when it is not set.
    ///
    /// # Errors
    /// E0960 when the project does not name the host for the secret; E0980 when its text could not be taken out.
    pub fn secret_for(&self, name: &str, host: &Host) -> Result<Option<Secret>, StepError> {
        let Some(secret) = self.find_secret(name) else {
            return Ok(None);
        };
        // In a replay nothing is sent anywhere. What may not be sent is not judged: that would tell about its text.
        if !self.is_replay() {
            self.gate().secret(name, host)?;
        }
        if let Some(weak) = self.secret_weakness(name) {
            return Err(weak);
        }
        self.hide(&secret);
        Ok(Some(secret))
    }

    /// Looks up a secret that the project's settings hand to a program.
    pub fn secret_of_settings(&self, name: &str) -> Option<Secret> {
        let secret = self.find_secret(name)?;
        if redact::weakness(secret.reveal()).is_some() {
            return None;
        }
        self.hide(&secret);
        Some(secret)
    }

    /// Tells whether a secret is set, without a look at it.
    pub fn has_secret(&self, name: &str) -> bool {
        self.find_secret(name).is_some()
    }

    fn find_secret(&self, name: &str) -> Option<Secret> {
        let services = &self.scope.services;
        let profile = services.profile.as_deref();
        services.secrets.find_in(profile, name)
    }

    fn is_replay(&self) -> bool {
        let exchanges = self.scope.services.exchanges.as_ref();
        exchanges.is_some_and(|exchanges| exchanges.is_replay())
    }

    /// Says why a secret cannot be had although the settings say where it is.
    pub fn secret_trouble(&self, name: &str) -> Option<String> {
        let services = &self.scope.services;
        services.secrets.trouble(services.profile.as_deref(), name)
    }

    /// Returns why a secret that is there may not be used: it could not be taken out of what is recorded.
    pub fn secret_weakness(&self, name: &str) -> Option<StepError> {
        let services = &self.scope.services;
        let profile = services.profile.as_deref();
        let secret = services.secrets.find_in(profile, name)?;
        let why = redact::weakness(secret.reveal())?;
        let message = format!("the secret `{name}` cannot be used: {why}");
        let place = services.secrets.place(profile, name);
        let error = StepError::config("E0980", message);
        Some(error.hint(format!("give it another value where it is set: {place}")))
    }

    /// Returns the step types that flows may use.
    pub fn steps(&self) -> &Rc<[Box<dyn Step>]> {
        &self.scope.services.steps
    }

    /// Returns a value without the secrets that are known by now.
    pub fn without_secrets(&self, value: Value) -> Value {
        match self.redactor() {
            redactor if redactor.is_empty() => value,
            redactor => redactor.value(&value),
        }
    }

    /// Returns what takes the secrets that are known by now out of what leaves the step another way than by its result.
    pub fn redactor(&self) -> Arc<Redactor> {
        self.scope.revealed.redactor()
    }

    /// Says that a text gives a secret away, such as its encoded form: it is taken out of all that the step
    /// hands back.
    pub fn hide(&self, secret: &Secret) {
        self.scope.revealed.add(secret);
    }

    /// Returns what every request to a server is shown to before it is sent, if a run is recorded or replayed.
    pub fn witness(&self) -> Option<Witness> {
        let services = &self.scope.services;
        let exchanges = services.exchanges.clone()?;
        Some(Witness {
            exchanges,
            clock: services.clock.clone(),
            step: self.request.path.to_string(),
            secrets: self.scope.revealed.clone(),
            passing: vec![
                (self.request.idempotency_key.clone(), "[key]"),
                (self.scope.run.to_string(), "[run]"),
            ],
        })
    }

    pub fn session(&self) -> &Session {
        &self.scope.session
    }

    /// Calls a function of the flow's language, which may not use steps. Other tasks of the thread run meanwhile.
    ///
    /// # Errors
    /// What it throws; kind `stopped` when it takes too long.
    pub async fn call(&self, function: &Value, args: &[Value]) -> Result<Value, StepError> {
        let left = self.patience();
        crate::step::call::call_in_turns(&self.scope, function, args, left).await
    }

    /// As [`StepContext::call`], for small functions where nobody can wait: other tasks of the thread stand still.
    ///
    /// # Errors
    /// As [`StepContext::call`].
    pub fn call_at_once(&self, function: &Value, args: &[Value]) -> Result<Value, StepError> {
        crate::step::call::call(&self.scope, function, args, self.patience())
    }

    /// How long a function may compute.
    fn patience(&self) -> Option<Duration> {
        self.request.deadline_ms.map(|deadline| {
            let millis = deadline.saturating_sub(self.now_ms());
            Duration::from_millis(u64::try_from(millis).unwrap_or(0))
        })
    }

    /// Turns what a flow gives as code into a function: a function, a quoted `(fn ...)`, a code string, or
    /// the keyword of one of the flow's `:functions`.
    ///
    /// # Errors
    /// When it has another form, or does not compile.
    pub fn function(&self, code: &Value) -> Result<Value, StepError> {
        crate::step::call::function(&self.scope, code)
    }
}

fn outside_of_runs() -> StepError {
    StepError::config("E0575", "a step that performs others needs a run")
        .hint("call it in a flow, or with `flowstone steps run`")
}
