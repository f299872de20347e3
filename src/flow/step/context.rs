//! The view that a step has of its run.

use std::any::Any;
use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use flowstone_lang::session::Session;
use flowstone_lang::value::Value;
use flowstone_lang::value::heap::HeapBudget;

use super::{Gate, NestedRequest, NestedResult, NestedSteps, Step, StepError};
use crate::bindings::TestMode;
use crate::definition::Flow;
use crate::format::{Formats, ProjectView};
use crate::ids::{RunId, StepPath};
use crate::installation::{InstallationName, InstalledFlow, Namespace};
use crate::permission::{Allow, Host, Permissions};
use crate::ports::{
    AnswerRules, Clock, Exchanges, Random, Revealed, Scratch, Secret, Secrets, StepExchanges,
    Stores, Telemetry, Vault,
};
use crate::redact::{self, Redactor, Redactors};
use crate::registry::DEFAULT_WORKSPACE;
use crate::trace::{RunTrace, SpanPlace, TraceParent};

/// The services that all runs of an engine share.
#[derive(Clone)]
pub struct Services {
    /// The step types that flows may use.
    pub steps: Rc<[Box<dyn Step>]>,
    pub stores: Stores,
    pub clock: Arc<dyn Clock>,
    pub random: Arc<dyn Random>,
    pub secrets: Arc<dyn Secrets>,
    /// Encrypts stored secrets.
    pub vault: Arc<dyn Vault>,
    /// The redactors that find secrets in text, by sets of secrets.
    pub redactors: Redactors,
    /// Receives each request to a server first, if a run is recorded or replayed.
    pub exchanges: Option<Arc<dyn Exchanges>>,
    /// Receives the spans of runs.
    pub telemetry: Arc<dyn Telemetry>,
    /// The folder that contains the flows. Paths in steps are relative to it and cannot leave it.
    pub project_root: PathBuf,
    /// The folder of Flowstone's own data, `.flowstone`.
    pub home: PathBuf,
    /// The project's settings (`flowstone.edn`), a map: `:connections`, `:providers` ...
    pub settings: Value,
    /// The profile of the settings.
    pub profile: Option<String>,
    /// The permissions of the flows of the project.
    pub permissions: Arc<Permissions>,
    /// The flow does not belong to the project.
    pub is_outside: bool,
    /// The run is a test.
    pub test: Option<TestMode>,
    /// The layer that has the changes of a dry test. `stores` read through it.
    pub scratch: Option<Rc<Scratch>>,
    /// Files of other formats that flows can call.
    pub formats: Formats,
    /// What the fronts say about answers to their waits.
    pub answer_rules: AnswerRules,
    /// The installation that runs are of.
    pub installation: Option<Rc<RunInstallation>>,
}

/// The installation that a run is of.
pub struct RunInstallation {
    pub flow: InstalledFlow,
    /// The permissions of its runs.
    pub allow: Allow,
    /// The stores as the author of the flow has them: for what belongs to the author.
    pub author: Stores,
    /// How many tokens models may use in all its runs together.
    pub max_tokens: Option<i64>,
    /// The settings of the home, of which the runs have a part. Only the engine reads them.
    pub home: Value,
}

impl RunInstallation {
    /// Returns the part of the stores that the author has.
    pub fn author_namespace(&self) -> Namespace {
        match &*self.flow.flow.workspace {
            DEFAULT_WORKSPACE => Namespace::Project,
            workspace => InstallationName {
                workspace: workspace.to_owned(),
                name: AUTHOR.to_owned(),
            }
            .namespace(),
        }
    }
}

/// The step types that work with everything that a home has.
const OF_HOME: &[&str] = &["knowledge", "platform", "workspace"];
/// The name of what belongs to the author of a package.
const AUTHOR: &str = "author";

impl Services {
    /// Returns what a format may read of the project.
    pub fn view(&self) -> ProjectView<'_> {
        ProjectView {
            root: &self.project_root,
            settings: &self.settings,
            stores: &self.stores,
        }
    }

    /// Returns the gate of a flow.
    pub fn gate_of(&self, flow: &Flow) -> Rc<Gate> {
        let allow = match (&self.installation, self.is_outside) {
            (Some(installation), _) => installation.allow.clone(),
            (None, true) => self
                .permissions
                .of_outside_flow(&flow.slug, flow.digest.as_deref()),
            (None, false) => self.permissions.of_flow(&flow.slug),
        };
        Rc::new(Gate::new(&self.project_root, allow))
    }
}

impl Services {
    /// Returns a span of a run as it is passed to other programs. If the run's spans are not exported, returns the
    /// parent span of the run.
    pub fn trace_parent(&self, trace: &RunTrace, place: SpanPlace<'_>) -> Option<TraceParent> {
        if !self.telemetry.is_on() {
            return trace.parent;
        }
        let is_sampled = self.telemetry.samples(trace.trace, trace.remote);
        Some(trace.handed_on(place, is_sampled))
    }
}

/// A function that receives the progress of steps.
pub(super) type ProgressSink = dyn Fn(&StepPath, Progress);

/// The state that all steps of a run share.
pub struct Scope {
    pub run: RunId,
    pub flow: Rc<Flow>,
    pub input: Value,
    /// The secrets in the input. The digest of a request is computed without them.
    pub input_secrets: Vec<Secret>,
    /// The place of the run in traces.
    pub trace: Option<RunTrace>,
    pub session: Rc<Session>,
    pub services: Rc<Services>,
    /// The permissions of the flow.
    pub gate: Rc<Gate>,
    /// The receiver of progress.
    pub progress: Rc<ProgressSink>,
    /// Secrets that were looked up: their text is removed from all recorded data.
    pub revealed: Revealed,
    /// The memory budget for the values of the run.
    pub heap: Rc<HeapBudget>,
    /// Stops the code of functions when the run is to be suspended.
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

    /// Removes the secrets from a message.
    pub fn redact(&self, text: String) -> String {
        self.revealed.redactor().text(text)
    }

    /// Removes the secrets from the strings of EDN text whose keys and numbers are the engine's own.
    pub fn redact_strings(&self, text: String) -> String {
        self.revealed.redactor().edn_strings(text)
    }

    /// Removes the secrets from EDN text that is to be recorded.
    pub fn redact_edn(&self, text: String) -> String {
        self.revealed.redactor().edn(text)
    }
}

/// The request that is being performed.
#[derive(Debug, Clone)]
pub struct StepRequest {
    pub path: StepPath,
    /// The step type's own name, even if the flow used an alias.
    pub kind: &'static str,
    /// Counted from 1.
    pub attempt: u32,
    pub idempotency_key: String,
    /// The instant at which this attempt exceeds its `:timeout`; the engine drops it then.
    pub deadline_ms: Option<i64>,
    /// The pass of the run, counted from 0: `flow/continue-as-new` begins the next one.
    pub pass: i64,
}

/// Progress that a step reports while it runs. Not journaled, and lost on replay.
#[derive(Debug, Clone, PartialEq)]
pub enum Progress {
    /// A piece of a model's answer.
    Text(String),
    /// A piece of a model's reasoning.
    Thought(String),
    /// The answer so far is discarded and requested again, for this reason.
    Again(String),
    /// A line that describes the current activity; replaces the previous one.
    Status(String),
    /// The amount of work that is done.
    Count { done: u64, total: Option<u64> },
    /// A requested action that is not performed, with the reason.
    Refused { what: String, why: String },
    /// The usage of a model's answer. Dollars if the price is known.
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

/// The view that a step has of its run and of the world.
pub struct StepContext {
    scope: Rc<Scope>,
    request: StepRequest,
    nested: Option<Rc<NestedSteps>>,
    level: u32,
    allowance: Option<i64>,
    rules: Option<Value>,
    is_of_author: bool,
    agreed: Option<String>,
    kept: RefCell<Vec<Box<dyn Any>>>,
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
            is_of_author: false,
            agreed: None,
            kept: RefCell::default(),
        }
    }

    /// Keeps a value until the attempt is over and its change is stored.
    pub fn keep(&self, value: impl Any) {
        self.kept.borrow_mut().push(Box::new(value));
    }

    /// Drops what an earlier try of the attempt has kept.
    pub fn keep_nothing(&self) {
        self.kept.borrow_mut().clear();
    }

    /// Returns the span of this attempt as it is passed to other programs, if spans are passed on.
    pub fn trace_parent(&self) -> Option<TraceParent> {
        let trace = self.scope.trace.as_ref()?;
        let path = self.path().to_string();
        let attempt = trace.attempt(&path, self.request.kind, self.request.attempt);
        self.scope.trace_parent(attempt)
    }

    /// Returns the step's span in the form that a child run stores.
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

    pub fn with_agreed(self, agreed: Option<String>) -> StepContext {
        StepContext { agreed, ..self }
    }

    /// Returns the digest of the call that a person agreed to: see [`NestedRequest::agreed`].
    pub fn agreed(&self) -> Option<&str> {
        self.agreed.as_deref()
    }

    /// Marks a step whose tables and keys belong to the author of an installed flow: see [`NestedRequest::of_author`].
    pub fn for_author(self, is_of_author: bool) -> StepContext {
        StepContext {
            is_of_author,
            ..self
        }
    }

    pub(super) fn is_of_author(&self) -> bool {
        self.is_of_author
    }

    /// Returns the installation that the run is of.
    pub fn installation(&self) -> Option<&RunInstallation> {
        self.scope.services.installation.as_deref()
    }

    /// Refuses steps that work with everything that a home has, in a run of an installation.
    ///
    /// # Errors
    /// E1456.
    pub fn check_kind(&self) -> Result<(), StepError> {
        let kind = self.request.kind;
        match self.installation() {
            Some(_) if OF_HOME.contains(&kind) => {
                let message = format!("a `:{kind}` step cannot be used in an installation");
                Err(StepError::new("E1456", "denied", message)
                    .hint("an installed flow reaches only what its installation has"))
            }
            _ => Ok(()),
        }
    }

    /// Returns the rules of the outer steps, as they were handed down.
    pub fn rules(&self) -> Option<&Value> {
        self.rules.as_ref()
    }

    /// Returns the maximum number of tokens that models may use in this step, if an outer step limits them. The number
    /// follows from the journal, so that it is the same on replay.
    pub fn allowance(&self) -> Option<i64> {
        self.allowance
    }

    /// Returns the number of outer steps: 0 for steps that the flow itself requests.
    pub fn level(&self) -> u32 {
        self.level
    }

    /// Lets the step perform others, through `nested`.
    pub fn with_nested(self, nested: Rc<NestedSteps>) -> StepContext {
        StepContext {
            nested: Some(nested),
            ..self
        }
    }

    /// Performs a nested step. The effect of this step must be [`super::Effect::Steps`].
    ///
    /// # Errors
    /// The error of the nested step; E0575 outside of runs.
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

    /// Returns the instant at which the last nested step ended, as the journal records it; 0 before the first. Requests
    /// of the step may depend on it.
    pub fn latest_ms(&self) -> i64 {
        self.nested.as_ref().map_or(0, |nested| nested.latest_ms())
    }

    pub fn request(&self) -> &StepRequest {
        &self.request
    }

    pub fn run_id(&self) -> &RunId {
        &self.scope.run
    }

    /// Returns the run's id, with the number of the pass if it is not the first, for names that must differ from pass
    /// to pass.
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

    /// Returns the number of this attempt, counted from 1.
    pub fn attempt(&self) -> u32 {
        self.request.attempt
    }

    /// Returns a text that is the same for every attempt at this step, and unique among steps.
    pub fn idempotency_key(&self) -> &str {
        &self.request.idempotency_key
    }

    pub fn deadline_ms(&self) -> Option<i64> {
        self.request.deadline_ms
    }

    /// Returns the flow of the run: its functions, templates, requirements.
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

    /// Returns the folder in which steps keep what they read and write of files, such as the contents of source trees: the
    /// folder of Flowstone's own data, or in a dry test that of its scratch layer.
    pub fn files_home(&self) -> &Path {
        match &self.scope.services.scratch {
            Some(scratch) => &scratch.folder,
            None => self.home(),
        }
    }

    /// Returns the project's settings, a map.
    pub fn settings(&self) -> &Value {
        &self.scope.services.settings
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

    /// Returns the gate that decides about every file, server, program and secret that the step accesses.
    pub fn gate(&self) -> &Gate {
        &self.scope.gate
    }

    /// Looks up a secret that is to be sent to a host. Its text is removed from everything that the step returns.
    /// Returns `None` if the secret is not set.
    ///
    /// # Errors
    /// E0960 if the project does not name the host for the secret; E0980 if the text of the secret could not be
    /// removed.
    pub fn secret_for(&self, name: &str, host: &Host) -> Result<Option<Secret>, StepError> {
        let Some(secret) = self.find_secret(name) else {
            return Ok(None);
        };
        // A replay sends nothing. The permission is not checked either, because that would reveal facts about the text.
        if !self.is_replay() {
            self.gate().secret(name, host)?;
        }
        if let Some(weak) = self.secret_weakness(name) {
            return Err(weak);
        }
        self.hide(&secret);
        Ok(Some(secret))
    }

    /// Looks up a secret that the project's settings pass to a program.
    pub fn secret_of_settings(&self, name: &str) -> Option<Secret> {
        let secret = self.find_secret(name)?;
        if redact::weakness(secret.reveal()).is_some() {
            return None;
        }
        self.hide(&secret);
        Some(secret)
    }

    /// Tells whether a secret is set, without reading it.
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

    /// Returns the reason why a secret cannot be read although the settings contain its place.
    pub fn secret_problem(&self, name: &str) -> Option<String> {
        let services = &self.scope.services;
        services.secrets.problem(services.profile.as_deref(), name)
    }

    /// Says how to set a secret where the settings say it is; `None` if they do not say where.
    pub fn secret_remedy(&self, name: &str) -> Option<String> {
        let services = &self.scope.services;
        services.secrets.remedy(services.profile.as_deref(), name)
    }

    /// Returns the error for a secret that cannot be used because it could not be removed from recorded data.
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

    /// Returns a value without the secrets that are known so far.
    pub fn without_secrets(&self, value: Value) -> Value {
        match self.redactor() {
            redactor if redactor.is_empty() => value,
            redactor => redactor.value(&value),
        }
    }

    /// Returns the redactor that removes the secrets known so far from data that leaves the step other than by its
    /// result.
    pub fn redactor(&self) -> Arc<Redactor> {
        self.scope.revealed.redactor()
    }

    /// Marks a text as revealing a secret, such as its encoded form: it is removed from everything that the step
    /// returns.
    pub fn hide(&self, secret: &Secret) {
        self.scope.revealed.add(secret);
    }

    /// Returns what receives each request to a server before it is sent, if the run is recorded or replayed.
    pub fn exchanges(&self) -> Option<StepExchanges> {
        let services = &self.scope.services;
        let exchanges = services.exchanges.clone()?;
        Some(StepExchanges {
            exchanges,
            clock: services.clock.clone(),
            step: self.request.path.to_string(),
            secrets: self.scope.revealed.clone(),
            varying: vec![
                (self.request.idempotency_key.clone(), "[key]"),
                (self.scope.run.to_string(), "[run]"),
            ],
        })
    }

    pub fn session(&self) -> &Session {
        &self.scope.session
    }

    /// Calls a function of the flow's language, which cannot use steps. Other tasks of the thread run meanwhile.
    ///
    /// # Errors
    /// The exception that it throws; kind `stopped` if it takes too long.
    pub async fn call(&self, function: &Value, args: &[Value]) -> Result<Value, StepError> {
        let left = self.patience();
        crate::step::call::call_in_turns(&self.scope, function, args, left).await
    }

    /// As [`StepContext::call`], for small functions of callers that cannot wait: other tasks of the thread are
    /// blocked.
    ///
    /// # Errors
    /// As [`StepContext::call`].
    pub fn call_at_once(&self, function: &Value, args: &[Value]) -> Result<Value, StepError> {
        crate::step::call::call(&self.scope, function, args, self.patience())
    }

    /// Returns the time that a function may still take.
    fn patience(&self) -> Option<Duration> {
        self.request.deadline_ms.map(|deadline| {
            let millis = deadline.saturating_sub(self.now_ms());
            Duration::from_millis(u64::try_from(millis).unwrap_or(0))
        })
    }

    /// Turns code that a flow gives into a function: a function, a quoted `(fn ...)`, a code string, or the keyword of
    /// one of the flow's `:functions`.
    ///
    /// # Errors
    /// Fails if the code has another form, or does not compile.
    pub fn function(&self, code: &Value) -> Result<Value, StepError> {
        crate::step::call::function(&self.scope, code)
    }
}

fn outside_of_runs() -> StepError {
    StepError::config("E0575", "a step that performs others needs a run")
        .hint("call it in a flow, or with `flowstone steps run`")
}
