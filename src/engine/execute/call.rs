//! A step request: its config, its path, and its journal entries.

use std::borrow::Cow;
use std::cell::Cell;
use std::ops::Deref;
use std::rc::Rc;
use std::time::Duration;

use flowstone_flow::config;
use flowstone_lang::value::heap::HeapBudget;
use flowstone_lang::value::{Exception, Span, Value};
use tracing::Instrument as _;

use super::branch::Branch;
use super::{Answer, Begun, Executor, Halt, trace};
use crate::approval::Approval;
use crate::codec;
use crate::diagnostic::Diagnostic;
use crate::doubt::OnDoubt;
use crate::duration;
use crate::error::EngineError;
use crate::flow::{PackagedStep, lint_unknown, name_of};
use crate::ids::StepPath;
use crate::journal::Recorded;
use crate::metering::Metering;
use crate::natives::exception;
use crate::observer::{RunEvent, StepNote};
use crate::outcome::{FailurePlace, place_at};
use crate::ports::{Entry, EntryKind};
use crate::redact::{self, Redactor, SECRET};
use crate::retry;
use crate::state::{End, OnError, Policy, State};
use crate::step::{Effect, Retry, Step, StepContext, StepError, StepRequest, StepSpec};
use crate::total_timeout::TotalTimeout;

/// Maximum number of characters of a request that are kept for display.
const REQUEST_SHOWN: usize = 600;
/// Replaces the run's own id in the input of a digest.
const OWN_RUN: &str = "<this run>";

/// A step request together with its journal entries.
pub(super) struct PreparedRequest<'a> {
    pub call: StepCall<'a>,
    pub recorded: Recorded,
    /// Whether the journal has entries about it.
    pub is_known: bool,
    /// The locals of the flow, if it notes them.
    pub locals: Value,
}

/// A checked step request.
pub(super) struct StepCall<'a> {
    /// The branch that makes the request.
    pub branch: Rc<Branch>,
    pub step: &'a dyn Step,
    pub spec: &'static StepSpec,
    pub path: StepPath,
    /// The path as text.
    pub at: String,
    /// The config with its defaults.
    pub config: Counted,
    pub digest: String,
    /// The digests that earlier builds computed for a config that names its own run, or contains a secret.
    pub older_digests: Vec<String>,
    pub request: String,
    /// The place of the call in the flow.
    pub place: Span,
    /// Whether an entry of this path has the request.
    pub is_request_kept: Cell<bool>,
    pub title: String,
    pub effect: Effect,
    pub retry: retry::Policy,
    pub timeout: Option<Duration>,
    /// The limit of all attempts together.
    pub total: Option<TotalTimeout>,
    /// The start of the request, as far as it is known.
    pub since_ms: Cell<Option<i64>>,
    /// When the request has to end, as of its last attempt.
    pub deadline_ms: Cell<Option<i64>>,
    pub idempotency_key: String,
    pub on_error: OnError,
    pub on_doubt: OnDoubt,
    pub confirm: Option<Approval>,
    pub review: Option<Approval>,
    pub metering: Option<Metering>,
    /// The packaged step by whose contract the flow calls the step.
    pub packaged: Option<Rc<PackagedStep>>,
    /// Whether the value is not the step's own: the step was skipped, or a person gave another value.
    pub is_given: Cell<bool>,
    /// The number of attempts, as far as it is known.
    pub attempts: Cell<u32>,
    /// The number and the start of the last attempt that performed nested steps, as journaled.
    pub begun: Cell<Option<(u32, i64)>>,
    /// The start of the attempt in progress in this execution.
    pub started_ms: Cell<Option<i64>>,
    /// The end of the request, as journaled.
    pub ended_ms: Cell<Option<i64>>,
}

/// A value that counts for the run's memory although the run's code no longer has it.
pub(super) struct Counted {
    value: Value,
    heap: Rc<HeapBudget>,
}

impl Counted {
    fn new<E>(
        heap: &Rc<HeapBudget>,
        make: impl FnOnce() -> Result<Value, E>,
    ) -> Result<Counted, E> {
        Ok(Counted {
            value: heap.within(make)?,
            heap: heap.clone(),
        })
    }
}

impl Deref for Counted {
    type Target = Value;

    fn deref(&self) -> &Value {
        &self.value
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        let value = std::mem::replace(&mut self.value, Value::Nil);
        self.heap.within(|| drop(value));
    }
}

impl StepCall<'_> {
    /// Tells whether the journal has the same request.
    pub(super) fn is_requested_by(&self, recorded: &Recorded) -> bool {
        recorded.what == self.spec.kind
            && (recorded.digest == self.digest || self.older_digests.contains(&recorded.digest))
    }

    /// Returns the options of the config that determine the transitions of the request.
    pub(super) fn policy(&self) -> Policy<'_> {
        let persists = self.has("persist");
        Policy {
            journals_attempts: self.effect == Effect::External,
            retry: &self.retry,
            deadline_ms: None,
            on_error: self.on_error,
            on_doubt: &self.on_doubt,
            confirms: self.confirm.is_some(),
            reviews: self.review.is_some(),
            drafts: self.review.is_some() || (self.has("expect") && !persists),
            persists,
        }
    }

    pub(super) fn note(&self, attempt: u32) -> StepNote {
        StepNote {
            path: self.path.clone(),
            kind: self.spec.kind,
            title: self.title.clone(),
            attempt,
            request: self.request.clone(),
        }
    }

    /// Returns an entry of the journal about this call. An entry that ends it is numbered among all outcomes of the
    /// run: it must go to the journal before anything else is awaited.
    pub(super) fn entry(&self, executor: &Executor<'_>, kind: EntryKind, payload: String) -> Entry {
        if matches!(kind, EntryKind::Result | EntryKind::Error) {
            self.branch
                .set_sequence(Some(executor.shared.next_sequence()));
        }
        let entry = executor
            .shared
            .journal
            .entry(kind, self.at.clone(), self.spec.kind, payload);
        if matches!(kind, EntryKind::Result | EntryKind::Error) {
            self.ended_ms.set(Some(entry.at_ms));
        }
        Entry {
            digest: self.digest.clone(),
            request: (!self.is_request_kept.replace(true)).then(|| self.request.clone()),
            ..entry
        }
    }

    /// Returns the request as it is shown to the person who decides about it; as data if possible.
    pub(super) fn shown_request(&self) -> Value {
        match codec::encode(&self.config) {
            Ok(_) => self.config.clone(),
            Err(_) => Value::from(self.request.as_str()),
        }
    }

    /// Tells whether the flow sets an option.
    pub(super) fn has(&self, option: &str) -> bool {
        self.config.get(option).is_some_and(|given| !given.is_nil())
    }

    pub(super) fn context(&self, executor: &Executor<'_>, attempt: u32) -> StepContext {
        let now_ms = executor.now_ms();
        let limit = self.time_limit(now_ms);
        let limit = limit.map(|limit| duration::millis(limit.duration));
        StepContext::new(
            executor.scope.clone(),
            StepRequest {
                path: self.path.clone(),
                kind: self.spec.kind,
                attempt,
                idempotency_key: self.idempotency_key.clone(),
                deadline_ms: limit.map(|millis| now_ms.saturating_add(millis)),
                pass: executor.facts.pass,
            },
        )
        .at_level(self.branch.level())
        .for_author(self.branch.is_of_author())
        .with_agreed(self.branch.agreed())
        .with_allowance(self.branch.allowance())
        .with_rules(self.branch.rules())
    }
}

impl Executor<'_> {
    /// Looks up a step request: the journal has its answer, or it has to be performed.
    pub(super) fn begin_step(
        &self,
        branch: &Rc<Branch>,
        (kind, id): (&Value, &Value),
        config: &Value,
        place: Span,
    ) -> Result<Begun<'_>, Halt> {
        self.shared.journal.usage().step()?;
        if !branch.is_nested() {
            self.shared.count_use();
        }
        let call = match self.prepare(branch, kind, id, config) {
            Ok(call) => StepCall { place, ..call },
            Err(exception) => return Ok(Begun::Now(Err((*exception).into()))),
        };
        let known = {
            let mut history = self.shared.history.borrow_mut();
            let known = history.take(&call.at);
            branch.pass_forks(history.ask(known.as_ref()));
            known
        };
        if call.effect == Effect::Steps {
            self.drop_nested(&call, known.as_ref());
        }
        let is_known = known.is_some();
        let recorded = known.unwrap_or_default();
        if is_known && self.dry_run.is_none() {
            self.compare(&call, &recorded)?;
        }
        call.is_request_kept.set(recorded.request.is_some());
        call.since_ms.set(recorded.began_ms);
        if let State::Child(run) = &recorded.progress.state {
            branch.set_child(run.clone(), crate::call_flow::close(&call.config));
        }
        let is_over = recorded.end().is_some();
        let call = match is_over {
            true => call,
            false => self.with_change(call)?,
        };
        let prepared = Box::new(PreparedRequest {
            call,
            recorded,
            is_known,
            locals: self.locals.replace(Value::Nil),
        });
        Ok(match is_over {
            true => Begun::Replayed(prepared),
            false => Begun::Live(prepared),
        })
    }

    /// Performs a step, or continues one that was begun.
    pub(super) async fn live<'s>(&'s self, mut prepared: Box<PreparedRequest<'s>>) -> Answer {
        let answer = self.perform_prepared(&mut prepared).await?;
        Ok(self.concluded(&prepared.call, answer))
    }

    /// Performs a request. It is borrowed: every move of it would increase the memory of a waiting branch.
    pub(super) async fn perform_prepared<'s>(
        &'s self,
        prepared: &mut PreparedRequest<'s>,
    ) -> Answer {
        let call = &prepared.call;
        if let Some(dry_run) = &self.dry_run {
            let recorded = prepared
                .is_known
                .then(|| std::mem::take(&mut prepared.recorded));
            dry_run.note_locals(call, &prepared.locals);
            return Box::pin(self.dry_run(dry_run, call, recorded)).await;
        }
        if !prepared.is_known
            && let Some(answer) = self.reused(call)
        {
            return answer;
        }
        if !prepared.is_known && self.options.debugger.is_set() {
            self.stop_before(prepared).await?;
        }
        let call = &prepared.call;
        let progress = std::mem::take(&mut prepared.recorded).progress;
        let span = trace::step(&call.at, call.spec.kind);
        self.execute(call, progress).instrument(span).await
    }

    fn prepare<'s>(
        &'s self,
        branch: &Rc<Branch>,
        kind: &Value,
        id: &Value,
        given: &Value,
    ) -> Result<StepCall<'s>, Box<Exception>> {
        let refuse = |finding: Diagnostic| Box::new(exception(finding));
        let Value::Keyword(name) = kind else {
            let message = format!("a step type is a keyword, not {}", kind.kind());
            return Err(refuse(Diagnostic::error("E0431", message)));
        };
        let packaged = match name.namespace() {
            Some(_) => Some(self.packaged(&name.to_string()).map_err(refuse)?),
            None => None,
        };
        let name = match &packaged {
            Some(packaged) => packaged.kind.clone(),
            None => Rc::from(&*name.name()),
        };
        let step = self.step_named(&name).map_err(refuse)?;
        let spec = step.spec();
        let step_id = match (id, &packaged) {
            (Value::Nil, Some(packaged)) => Some(Rc::from(packaged.step_id())),
            (Value::Keyword(_) | Value::Text(_), _) => name_of(id).filter(|id| !id.is_empty()),
            _ => None,
        };
        let Some(step_id) = step_id else {
            let message = format!("a step id is a keyword, not {}", id.kind());
            return Err(refuse(Diagnostic::error("E0433", message)));
        };
        if given.as_map().is_none() {
            let message = format!("a step's config must be a map, not {}", given.kind());
            return Err(refuse(Diagnostic::error("E0432", message)));
        }
        self.check_name("step id", &step_id).map_err(refuse)?;
        // From here on the request has a path in the run, whatever its outcome.
        let path = branch.next_path(&step_id);
        let call = match &packaged {
            Some(packaged) => self.packaged_call(branch, (step, spec), &path, (packaged, given)),
            None => self.call(branch, (step, spec), path.clone(), given),
        };
        call.map_err(|error| Box::new(exception_at(&error, &path, 0)))
    }

    /// Rejects a name that contains a secret of the run's input: names are the paths of the journal, and stored
    /// unchanged.
    pub(super) fn check_name(&self, what: &str, name: &str) -> Result<(), Diagnostic> {
        let secrets = &self.scope.input_secrets;
        if secrets.is_empty() || !Redactor::new(secrets).holds(name) {
            return Ok(());
        }
        let message = format!("the {what} contains a secret input of the run");
        Err(Diagnostic::error("E0475", message).hint(format!(
            "the journal stores names as they are; use a fixed {what}, and pass the secret in the config"
        )))
    }

    /// Returns the text of a request without the secrets of the run's input. Only these are known in every execution.
    fn without_secrets<'t>(&self, canonical: &'t str) -> Cow<'t, str> {
        let mut text = Cow::Borrowed(canonical);
        for secret in &self.scope.input_secrets {
            let literal = codec::encode(&Value::from(secret.reveal())).unwrap_or_default();
            if let Some(content) = literal.get(1..literal.len().saturating_sub(1)) {
                text = text.replace(content, SECRET).into();
            }
        }
        text
    }

    /// Returns the digest of a request, and the digests that earlier builds computed for it.
    /// `own_texts` of it are made from the run's id.
    fn digests(&self, kind: &str, canonical: &str, own_texts: &[String]) -> (String, Vec<String>) {
        let digest = |canonical: &str| {
            let mut digester = codec::Digester::default();
            for part in [kind, " ", canonical] {
                digester.add(part.as_bytes());
            }
            let mut digest = digester.finish();
            digest.truncate(32);
            digest
        };
        // Neither the run's own id nor its secrets count: a fork makes the same request under another id, an imported
        // run gets new secrets, and a digest must not help to guess one.
        let own = self.scope.run.as_str();
        let hidden = self.without_secrets(canonical);
        let without_id = hidden.replace(own, OWN_RUN);
        let without_own = own_texts
            .iter()
            .fold(without_id.clone(), |text, own| text.replace(own, OWN_RUN));
        if without_own == canonical {
            return (digest(canonical), Vec::new());
        }
        let older = [canonical, &canonical.replace(own, OWN_RUN), &without_id];
        (digest(&without_own), older.map(digest).into())
    }

    /// Finds a step type by its name or an alias.
    fn step_named(&self, name: &str) -> Result<&dyn Step, Diagnostic> {
        let mut steps = self.engine.services.steps.iter();
        match steps.find(|step| step.spec().is_named(name)) {
            Some(step) => Ok(&**step),
            None => {
                let steps = self.engine.services.steps.iter();
                let specs: Vec<_> = steps.map(|step| step.spec()).collect();
                Err(lint_unknown(name, &specs))
            }
        }
    }

    /// Checks a request and builds its call.
    pub(super) fn call<'s>(
        &self,
        branch: &Rc<Branch>,
        (step, spec): (&'s dyn Step, &'static StepSpec),
        path: StepPath,
        given: &Value,
    ) -> Result<StepCall<'s>, StepError> {
        let config = Counted::new(&self.scope.heap, || config::resolve(spec, given))?;
        let effect = step.effect(&config);
        // The digest is computed from the flow's own config: a default that a later build adds does not change it.
        let canonical = codec::canonical(given)
            .map_err(|error| StepError::config(error.code(), error.to_string()))?;
        let (digest, older_digests) = self.digests(spec.kind, &canonical, branch.own_texts());
        let text = |key: &str| config.get(key).and_then(Value::as_str).map(str::to_owned);
        let name = |key: &str| config.get(key).and_then(name_of);
        let option = |key: &str| config.get(key).unwrap_or(&Value::Nil);
        let has_key = text("idempotency-key").is_some();
        let at = path.to_string();
        Ok(StepCall {
            branch: branch.clone(),
            step,
            spec,
            digest,
            older_digests,
            place: Span::NONE,
            request: shorten(&self.scope.redact_edn(canonical)),
            is_request_kept: Cell::new(false),
            title: text("title")
                .map_or_else(|| path.step.clone(), |title| self.scope.redact(title)),
            effect,
            retry: retry::Policy::of(&config, effect)?.within(self.limits().attempts)?,
            timeout: config.get("timeout").and_then(duration::of_value),
            total: TotalTimeout::of(option("total-timeout"))?,
            since_ms: Cell::new(None),
            deadline_ms: Cell::new(None),
            idempotency_key: text("idempotency-key")
                .unwrap_or_else(|| format!("{}/{at}", self.pass_name())),
            on_error: match name("on-error").as_deref() {
                Some("skip") => OnError::Skip,
                Some("checkpoint") => OnError::Checkpoint,
                _ => OnError::Fail,
            },
            on_doubt: OnDoubt::of(option("on-doubt"))?.unwrap_or_else(|| {
                OnDoubt::default_for(effect, has_key || step.repeats_safely(&config))
            }),
            confirm: Approval::of("confirm", option("confirm"))?,
            review: Approval::of("review", option("review"))?,
            metering: Metering::of(option("metering"))?,
            packaged: None,
            is_given: Cell::new(false),
            attempts: Cell::new(0),
            begun: Cell::new(None),
            started_ms: Cell::new(None),
            ended_ms: Cell::new(None),
            config,
            path,
            at,
        })
    }

    /// Returns the run's id, and the number of the pass if it is not the first: names derived from it differ between
    /// passes.
    pub(super) fn pass_name(&self) -> String {
        match self.facts.pass {
            0 => self.scope.run.to_string(),
            pass => format!("{}.{pass}", self.scope.run),
        }
    }

    /// Checks that a replayed request equals the journaled one.
    fn compare(&self, call: &StepCall<'_>, recorded: &Recorded) -> Result<(), Halt> {
        if call.is_requested_by(recorded) {
            return Ok(());
        }
        let shown = recorded.request.as_deref().unwrap_or("(not kept)");
        Err(Halt::Engine(EngineError::Diverged {
            run: self.scope.run.to_string(),
            path: call.at.clone(),
            recorded: format!(":{} {shown}", recorded.what),
            requested: format!(":{} {}", call.spec.kind, call.request),
            place: self.place_of(call),
        }))
    }

    /// Returns the place of a call in the flow, if it is known.
    pub(super) fn place_of(&self, call: &StepCall<'_>) -> Option<Box<FailurePlace>> {
        let sources = self.scope.session.world().sources.borrow();
        place_at(call.place, &sources).map(Box::new)
    }

    /// Returns the error of a finished run that makes a request without an end in its journal.
    pub(super) fn unfinished(&self, call: &StepCall<'_>) -> EngineError {
        self.unknown_to_journal(&call.at, call.spec.kind, &call.request)
    }

    /// Returns the error of a finished run that makes a request which it did not make when it was executed.
    pub(super) fn unknown_to_journal(&self, at: &str, kind: &str, request: &str) -> EngineError {
        EngineError::Diverged {
            run: self.scope.run.to_string(),
            path: at.to_owned(),
            recorded: "nothing".to_owned(),
            requested: format!(":{kind} {request}"),
            place: None,
        }
    }

    /// Answers with the outcome that the run from which this one was forked has for the same request.
    fn reused(&self, call: &StepCall<'_>) -> Option<Answer> {
        let recorded = self.shared.history.borrow_mut().take_reusable(&call.at)?;
        let Some(End::Value(text)) = recorded.end() else {
            return None;
        };
        if !call.is_requested_by(&recorded) {
            return None;
        }
        let entry = call.entry(self, EntryKind::Result, text.clone());
        self.shared.journal.append(entry);
        self.emit(&RunEvent::StepFinished {
            step: call.note(0),
            millis: 0,
            preview: preview(text),
        });
        Some(match self.decode(text) {
            Ok(value) => Ok(self.expected(call, value)),
            Err(error) => Err(Halt::Engine(error)),
        })
    }

    /// Answers a step request from the journal.
    pub(super) fn replay(&self, prepared: &PreparedRequest<'_>) -> Answer {
        match prepared.recorded.end() {
            Some(end) => {
                let answer = self.replayed(&prepared.call, &prepared.recorded, end)?;
                Ok(self.concluded(&prepared.call, answer))
            }
            None => Err(self.unfinished(&prepared.call).into()),
        }
    }

    pub(super) fn replayed(&self, call: &StepCall<'_>, recorded: &Recorded, end: &End) -> Answer {
        call.is_given.set(recorded.progress.is_given);
        match end {
            End::Value(text) => {
                let value = self.decode(text)?;
                self.count_replayed(call, &value);
                match recorded.progress.is_decided {
                    true => Ok(Ok(value)),
                    false => Ok(self.expected(call, value)),
                }
            }
            End::Error(text) => self.raised(call, text),
        }
    }

    /// Converts a journaled error to the exception that the flow sees.
    pub(super) fn raised(&self, call: &StepCall<'_>, text: &str) -> Answer {
        if call.on_error == OnError::Skip {
            call.is_given.set(true);
            return Ok(Ok(Value::Nil));
        }
        match self.decode(text)? {
            Value::Exception(exception) => Ok(Err(flowstone_lang::value::Signal::Throw(exception))),
            _ => Err(Halt::Engine(EngineError::Internal(
                "a journaled error is not an exception".to_owned(),
            ))),
        }
    }
}

/// Returns the exception that a flow sees for a failed step.
pub(super) fn exception_at(error: &StepError, path: &StepPath, attempts: u32) -> Exception {
    let class = flowstone_lang::value::Class::EXCEPTION_INFO;
    let mut exception = Exception::new(class, error.code, error.message.as_str());
    exception.hints.clone_from(&error.hints);
    exception.data = error.data.clone();
    let mut facts = vec![
        ("kind", Value::keyword(error.kind)),
        ("path", Value::from(path.to_string())),
        ("code", Value::from(error.code)),
        ("attempts", Value::Int(i64::from(attempts))),
        ("message", Value::from(error.message.as_str())),
    ];
    if let Retry::After(wait) = error.retry {
        facts.push(("retry-after", duration::seconds_value(wait)));
    }
    for (key, fact) in facts {
        if exception.data.get(key).is_none() {
            exception = exception.with(key, fact);
        }
    }
    exception.with("step", path.step.as_str())
}

fn shorten(text: &str) -> String {
    redact::cut(text, REQUEST_SHOWN)
}

/// Returns the beginning of a step's value, for its announcement.
pub(super) fn preview(text: &str) -> String {
    redact::cut(text, 160)
}
