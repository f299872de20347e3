//! Evaluating a flow against a journal without changing anything: which requests differ, and which do not.
//!
//! Requests are answered from the journal. A request that it does not contain ends its branch; only steps that cost and
//! change nothing are performed, and those that the caller allows. Nothing is written.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;

use flowstone_lang::session::Body;
use flowstone_lang::value::Value;

use super::call::StepCall;
use super::writer::JournalWriter;
use super::{Answer, Ended, ExecuteOptions, Executor, Facts, Halt, Place, Stay, unstorable};
use crate::SessionUse;
use crate::codec;
use crate::engine::Engine;
use crate::error::EngineError;
use crate::flow::{self, Flow, name_of};
use crate::ids::RunId;
use crate::journal::{History, Recorded};
use crate::locals;
use crate::observer::NoObserver;
use crate::outcome::{FailurePlace, encode_failure};
use crate::ports::Secret;
use crate::ports::{Entry, Program};
use crate::state::Progress;
use crate::step::Effect;

/// The purpose of a dry run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Whether the journal fits: ends at the first request that differs.
    Fit,
    /// Collects differences: where a request differs, continues with the recorded result. `live`: performs reads and
    /// model calls.
    Differences { live: bool },
}

/// A journal, and the flow and input to evaluate against it.
pub(crate) struct Script {
    pub run: RunId,
    pub seed: u64,
    pub program: Program,
    pub input: Value,
    /// The secrets in the input.
    pub secrets: Vec<Secret>,
    pub entries: Vec<Entry>,
    pub changed: Changed,
    pub purpose: Purpose,
    /// A path whose complete request is to be reported.
    pub wanted: Option<String>,
    /// Whether the locals at that path are wanted, too.
    pub with_locals: bool,
}

/// The parts of a definition that steps refer to and that have changed since the journal was written.
#[derive(Debug, Default, Clone)]
pub(crate) struct Changed {
    names: BTreeSet<String>,
    providers: bool,
}

impl Changed {
    pub(crate) fn between(old: &Flow, new: &Flow) -> Changed {
        let mut names = BTreeSet::new();
        let text = |value: &Value| codec::canonical(value).unwrap_or_default();
        for function in old.functions.iter().chain(&new.functions) {
            let code = |flow: &Flow| flow.function(&function.id).map(|found| text(&found.code));
            if code(old) != code(new) {
                names.insert(function.id.to_string());
            }
        }
        for template in old.templates.iter().chain(&new.templates) {
            let body = |flow: &Flow| flow.template(&template.id).map(|found| text(&found.body));
            if body(old) != body(new) {
                names.insert(template.id.to_string());
            }
        }
        Changed {
            names,
            providers: text(&old.llm_providers) != text(&new.llm_providers),
        }
    }

    /// Returns the changed part of the definition to which a request refers.
    fn affecting(&self, call: &StepCall<'_>) -> Option<String> {
        if self.providers && matches!(call.spec.kind, "agent" | "llm") {
            return Some("`:llm-providers`".to_owned());
        }
        let mut open: Vec<&Value> = vec![&call.config];
        while let Some(value) = open.pop() {
            if let Some(map) = value.as_map() {
                for (key, value) in map.iter() {
                    let refers = matches!(
                        name_of(key).as_deref(),
                        Some("ref" | "template" | "transform")
                    );
                    let name = refers.then(|| name_of(value)).flatten();
                    if let Some(name) = name.filter(|name| self.names.contains(&**name)) {
                        return Some(format!("`{name}`"));
                    }
                    open.push(value);
                }
            } else if let Some(items) = value.as_vector() {
                open.extend(items.iter());
            }
        }
        None
    }
}

/// A request that differs from the journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// The step's path.
    pub path: String,
    /// The request in the journal; `None`: the step is new.
    pub recorded: Option<String>,
    /// The request of this flow; `None`: it no longer makes one at this path.
    pub requested: Option<String>,
    pub place: Option<FailurePlace>,
    pub answer: Resolution,
}

impl Difference {
    /// Tells whether it is a compensation, which a dry run leaves out.
    pub(crate) fn is_compensation(&self) -> bool {
        let comes_after = ["compensate/", "on-cancel/"];
        self.requested.is_none()
            && comes_after
                .iter()
                .any(|branch| self.path.starts_with(branch))
    }
}

/// The answer to a request that differs from the journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resolution {
    /// No answer: the dry run ended there.
    Stopped,
    /// No answer: the flow no longer makes the request.
    Dropped,
    /// The recorded value, which may differ from a new one.
    Assumed,
    /// The value of performing it.
    Performed,
}

impl Resolution {
    pub fn name(self) -> &'static str {
        match self {
            Resolution::Stopped => "stopped",
            Resolution::Dropped => "dropped",
            Resolution::Assumed => "assumed",
            Resolution::Performed => "performed",
        }
    }
}

/// The outcome of a dry run.
#[derive(Debug, Clone)]
pub(crate) struct DryRunReport {
    pub end: End,
    pub differences: Vec<Difference>,
    /// Steps answered from the journal.
    pub answered: usize,
    /// Paths of the steps that the flow requests next.
    pub next: Vec<String>,
    /// The same steps with their requests.
    pub next_steps: Vec<NextStep>,
    /// The request of the wanted step, if the flow reached it.
    pub asked: Option<WholeRequest>,
    /// The locals at the wanted step.
    pub locals: Option<Value>,
}

/// A step that a flow requests next.
#[derive(Debug, Clone)]
pub struct NextStep {
    pub path: String,
    pub kind: String,
    /// The config as the flow wrote it, as EDN text; the beginning of a long one.
    pub request: String,
    pub place: Option<Box<FailurePlace>>,
}

/// The end of the evaluation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum End {
    /// EDN text of the result.
    Value(String),
    /// The error, in the form of a run's row.
    Error(String),
    /// It makes a request that the dry run cannot answer.
    Open,
}

/// Collects the results of a dry run.
pub(super) struct DryRun {
    purpose: Purpose,
    changed: Changed,
    differences: RefCell<Vec<Difference>>,
    answered: RefCell<usize>,
    next: RefCell<Vec<NextStep>>,
    /// The path whose complete request is wanted.
    wanted: Option<String>,
    asked: RefCell<Option<WholeRequest>>,
    locals: RefCell<Option<Value>>,
}

/// The complete request of a step, and its path.
#[derive(Debug, Clone)]
pub(crate) struct WholeRequest {
    /// The config with its defaults, as EDN text.
    pub request: String,
    pub place: Option<Box<FailurePlace>>,
}

pub(crate) async fn dry_run(engine: &Engine, script: Script) -> Result<DryRunReport, EngineError> {
    let session = Rc::new(engine.session());
    let checked = flow::reload(&session, &script.program);
    let Some(loaded) = checked.loaded else {
        let first = checked.findings.first();
        return Err(EngineError::BadProgram {
            run: script.run.to_string(),
            detail: first
                .map_or("it is not a flow", |finding| &finding.message)
                .to_owned(),
        });
    };
    if let Err(finding) = loaded.flow.libraries.load(&session) {
        return Err(EngineError::BadProgram {
            run: script.run.to_string(),
            detail: finding.message,
        });
    }
    let place = Place {
        services: engine.services.clone(),
        run: script.run,
        epoch: 0,
        body: Rc::new(match script.with_locals {
            true => Body::new(&locals::noting(&session, &loaded.flow.body)),
            false => Body::new(&loaded.flow.body),
        }),
        usage: SessionUse::own(),
        flow: loaded.flow,
        input: script.input,
        secrets: script.secrets,
        session,
        seed: script.seed,
        cancel: None,
        is_waiting: false,
        facts: Facts::default(),
    };
    let options = ExecuteOptions {
        stay: Stay::No,
        ..ExecuteOptions::default()
    };
    let history = History::new(script.entries);
    let mut executor = Executor::new(engine, place, history, Rc::new(NoObserver), options);
    executor.writer().discard_writes();
    executor.dry_run = Some(DryRun {
        purpose: script.purpose,
        changed: script.changed,
        differences: RefCell::default(),
        answered: RefCell::default(),
        next: RefCell::default(),
        wanted: script.wanted,
        asked: RefCell::default(),
        locals: RefCell::default(),
    });
    let ended = executor.evaluate(executor.fiber()).await?;
    Ok(executor.dry_run_report(ended))
}

impl Executor<'_> {
    /// Answers a request of a dry run.
    pub(super) async fn dry_run(
        &self,
        dry_run: &DryRun,
        call: &StepCall<'_>,
        recorded: Option<Recorded>,
    ) -> Answer {
        if dry_run.wanted.as_ref() == Some(&call.at) {
            let request = codec::encode(&call.config).unwrap_or_else(|_| call.request.clone());
            *dry_run.asked.borrow_mut() = Some(WholeRequest {
                request: self.scope.redact_edn(request),
                place: self.place_of(call),
            });
        }
        let Some(recorded) = recorded else {
            return self.dry_run_new(dry_run, call).await;
        };
        let met = dry_run.changed.affecting(call);
        let Some(end) = recorded.end() else {
            return self.dry_run_open(dry_run, call, &recorded);
        };
        if call.is_requested_by(&recorded) && met.is_none() {
            *dry_run.answered.borrow_mut() += 1;
            return self.replayed(call, &recorded, end);
        }
        let mut difference = self.difference(call, Some(&recorded));
        if let (true, Some(met)) = (call.is_requested_by(&recorded), met) {
            let requested = difference.requested.get_or_insert_default();
            *requested = format!("{requested} ({met} is another now)");
        }
        if dry_run.may_do(call) {
            difference.answer = Resolution::Performed;
            dry_run.note(difference);
            return self.execute(call, Progress::default()).await;
        }
        let stops = dry_run.purpose == Purpose::Fit || recorded.what != call.spec.kind;
        if stops {
            dry_run.note(difference);
            return Err(stopped(call));
        }
        difference.answer = Resolution::Assumed;
        dry_run.note(difference);
        self.replayed(call, &recorded, end)
    }

    /// Handles a step that the journal does not contain.
    async fn dry_run_new(&self, dry_run: &DryRun, call: &StepCall<'_>) -> Answer {
        let mut difference = self.difference(call, None);
        match dry_run.purpose {
            Purpose::Fit => {
                dry_run.next.borrow_mut().push(self.next_step(call));
                // On the main branch all earlier steps have been requested.
                if call.path.branch.is_empty()
                    && let Some((path, left)) = self.shared.history.borrow().left_done()
                {
                    difference.recorded = Some(format!("`{path}`: {}", shown(left)));
                    dry_run.note(difference);
                }
                Err(stopped(call))
            }
            Purpose::Differences { .. } if dry_run.may_do(call) => {
                difference.answer = Resolution::Performed;
                dry_run.note(difference);
                self.execute(call, Progress::default()).await
            }
            Purpose::Differences { .. } => {
                dry_run.note(difference);
                Err(stopped(call))
            }
        }
    }

    /// Handles a step that was begun and has not ended.
    fn dry_run_open(&self, dry_run: &DryRun, call: &StepCall<'_>, recorded: &Recorded) -> Answer {
        if call.is_requested_by(recorded) {
            dry_run.next.borrow_mut().push(self.next_step(call));
        } else {
            dry_run.note(self.difference(call, Some(recorded)));
        }
        Err(stopped(call))
    }

    fn next_step(&self, call: &StepCall<'_>) -> NextStep {
        NextStep {
            path: call.at.clone(),
            kind: call.spec.kind.to_owned(),
            request: call.request.clone(),
            place: self.place_of(call),
        }
    }

    fn difference(&self, call: &StepCall<'_>, recorded: Option<&Recorded>) -> Difference {
        Difference {
            path: call.at.clone(),
            recorded: recorded.map(shown),
            requested: Some(format!(":{} {}", call.spec.kind, call.request)),
            place: self.place_of(call).map(|place| *place),
            answer: Resolution::Stopped,
        }
    }

    fn dry_run_report(self, ended: Ended) -> DryRunReport {
        let end = match ended {
            Ended::Value(value) => match codec::encode(&value) {
                Ok(text) => End::Value(self.scope.redact_edn(text)),
                Err(error) => End::Error(unstorable(&error)),
            },
            Ended::Threw(exception) => {
                let sources = self.scope.session.world().sources.borrow();
                End::Error(self.scope.redact_edn(encode_failure(&exception, &sources)))
            }
            Ended::Stopped(stop) => End::Error(format!("the run was stopped: {stop}")),
            Ended::Interrupted | Ended::Suspended { .. } => End::Open,
        };
        let Some(dry_run) = &self.dry_run else {
            return DryRunReport {
                end,
                differences: Vec::new(),
                answered: 0,
                next: Vec::new(),
                next_steps: Vec::new(),
                asked: None,
                locals: None,
            };
        };
        let next_steps = dry_run.next.take();
        let mut differences = dry_run.differences.take();
        // If the evaluation stopped early, later steps may still be requested.
        let is_cut_short = differences
            .iter()
            .any(|met| met.answer == Resolution::Stopped);
        for (path, left) in self.shared.history.borrow().left_steps() {
            if !is_cut_short {
                differences.push(Difference {
                    path: path.to_owned(),
                    recorded: Some(shown(left)),
                    requested: None,
                    place: None,
                    answer: Resolution::Dropped,
                });
            }
        }
        DryRunReport {
            end,
            differences,
            answered: dry_run.answered.take(),
            next: next_steps.iter().map(|step| step.path.clone()).collect(),
            next_steps,
            asked: dry_run.asked.take(),
            locals: dry_run.locals.take(),
        }
    }

    fn writer(&self) -> &JournalWriter {
        &self.shared.journal
    }
}

impl DryRun {
    /// Keeps the locals of the wanted step.
    pub(super) fn note_locals(&self, call: &StepCall<'_>, locals: &Value) {
        if self.wanted.as_ref() == Some(&call.at) && !locals.is_nil() {
            self.locals.replace(Some(locals.clone()));
        }
    }

    fn note(&self, difference: Difference) {
        self.differences.borrow_mut().push(difference);
    }

    /// Tells whether a step may be performed here: it changes nothing, and is allowed.
    fn may_do(&self, call: &StepCall<'_>) -> bool {
        let Purpose::Differences { live } = self.purpose else {
            return false;
        };
        let persists = call
            .config
            .get("persist")
            .is_some_and(|value| !value.is_nil());
        let asks = call.confirm.is_some() || call.review.is_some();
        let is_model = call.spec.kind == "llm";
        let is_harmless = match call.effect {
            Effect::Pure => !matches!(call.spec.kind, "sleep" | "wait"),
            Effect::Read => live,
            Effect::External => live && is_model,
            Effect::OwnStore | Effect::Steps => false,
        };
        is_harmless && !persists && !asks
    }
}

/// Ends the branch that makes the request.
fn stopped(call: &StepCall<'_>) -> Halt {
    Halt::Suspended {
        reason: format!("`{}` is not answered here", call.at),
        due_ms: None,
    }
}

fn shown(recorded: &Recorded) -> String {
    let request = recorded.request.as_deref().unwrap_or("(not kept)");
    format!(":{} {request}", recorded.what)
}
