//! `POST /api/v1/runs`: many starts, all in one transaction or none.

use std::rc::Rc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use flowstone_engine::catalog::ServedFlow;
use flowstone_engine::ids::RunId;
use flowstone_engine::ports::{NewReceipt, RunFilter, RunStatus};
use flowstone_engine::token::Scope;
use flowstone_engine::trace::TraceOrigin;
use flowstone_engine::{BulkStart, EngineError, MOST_STARTS, StartOptions, SubmittedMany};
use flowstone_flow::flow::undeclared_inputs;
use flowstone_lang::diagnostic::Diagnostic;
use flowstone_lang::value::Value;
use serde_json::{Value as Json, json};

use super::super::access::Caller;
use super::super::answer::Answer;
use super::super::operation::{GIVEN, Kind, Param, names};
use super::super::problem::Problem;
use super::super::request::{Given, Members};
use super::super::server::{EngineContext, Shared};
use super::super::trace;
use super::{REPLAYED, key_reused, may_start, receipt, refuse_others, served};
use crate::json::{Values, bulk_run_json};

/// Maximum size of the body.
const BODY_MAX: usize = 16 << 20;

pub(super) const MEMBERS: &[Param] = &[
    FLOW,
    Param::new(
        "inputs",
        Kind::List,
        "The inputs, one for each run: up to 1000.",
    ),
    INVOCATION,
    PRIORITY,
    Param::new(
        "runs",
        Kind::Entries(RUN),
        "The runs, instead of `inputs`: up to 1000.",
    ),
    TIMEOUT,
    GIVEN,
    VERSION,
];
const FLOW: Param = Param::text("flow", "The slug of the flow.");
const INVOCATION: Param = Param::text("invocation", "The invocation of the flow.");
const PRIORITY: Param = Param::number("priority", "Runs with higher numbers start first.");
const TIMEOUT: Param = Param::new(
    "timeout",
    Kind::Duration,
    "Cancels a run that takes longer.",
);
const VERSION: Param = Param::text(
    "version",
    "The beginning of the version that must be served.",
);

/// Members of an entry of `runs`. They take precedence over those beside `runs`.
const RUN: &[Param] = &[
    FLOW,
    Param::text("id", "Your own name for the run."),
    Param::new("input", Kind::Any, "The input."),
    INVOCATION,
    PRIORITY,
    TIMEOUT,
    VERSION,
];

/// A start of the list. A value of the language stays on its thread, so the input is what it came as until it is there.
#[derive(Clone, Default)]
struct Start {
    flow: Option<String>,
    version: Option<String>,
    id: Option<String>,
    input: Option<Given>,
    invocation: Option<String>,
    priority: Option<i64>,
    timeout: Option<Duration>,
    trace: Option<TraceOrigin>,
}

impl Start {
    fn of(given: &Members, values: Values) -> Result<Start, Problem> {
        Ok(Start {
            flow: given.text("flow")?,
            version: given.text("version")?,
            id: given.text("id")?,
            input: given.value("input", values)?,
            invocation: given.text("invocation")?,
            priority: given.number("priority")?,
            timeout: given.duration("timeout")?,
            trace: None,
        })
    }

    /// Returns the start with what it leaves open taken from what is given for all.
    fn or(self, all: &Start) -> Start {
        Start {
            flow: self.flow.or_else(|| all.flow.clone()),
            version: self.version.or_else(|| all.version.clone()),
            id: self.id,
            input: self.input,
            invocation: self.invocation.or_else(|| all.invocation.clone()),
            priority: self.priority.or(all.priority),
            timeout: self.timeout.or(all.timeout),
            trace: self.trace.or(all.trace),
        }
    }

    /// # Errors
    /// When the input has a key that callers cannot give.
    fn options(&self, caller: &Caller) -> Result<StartOptions, EngineError> {
        let input = self
            .input
            .as_ref()
            .map_or_else(|| Value::map([]), Given::value);
        Ok(StartOptions {
            invocation: self.invocation.clone(),
            external_id: self.id.clone(),
            started_by: Some(caller.started_by()),
            priority: self.priority,
            timeout: self.timeout,
            trace: self.trace,
            ..StartOptions::from_outside(input)?
        })
    }
}

pub(super) async fn start(
    State(server): State<Shared>,
    caller: Caller,
    headers: HeaderMap,
    body: Body,
) -> Result<Answer, Problem> {
    caller.need(Scope::Run)?;
    let given = Members::read_within(&headers, body, &names(MEMBERS), BODY_MAX).await?;
    let mut starts = starts(&given)?;
    let trace = trace::of_caller(&headers);
    starts.iter_mut().for_each(|start| start.trace = trace);
    let receipt = receipt(&caller, &headers, "/api/v1/runs", given.digest())?;
    let (runs, is_replayed) = server
        .ask(async move |cx: &EngineContext| submit(cx, &caller, &starts, receipt).await)
        .await?;
    let answer = Answer::ok(json!({"runs": runs}));
    Ok(match is_replayed {
        true => answer.header(REPLAYED, "true"),
        false => answer,
    })
}

/// Returns the starts of the list.
fn starts(given: &Members) -> Result<Vec<Start>, Problem> {
    let values = given.values()?;
    let all = Start::of(given, values)?;
    let inputs = given.value_list("inputs", values)?;
    let starts: Vec<Start> = match (inputs, given.get("runs").is_some()) {
        (Some(inputs), false) => {
            let with_input = |input: Given| Start {
                input: Some(input),
                ..all.clone()
            };
            inputs.into_iter().map(with_input).collect()
        }
        (None, true) => {
            let runs = given.entries("runs", &names(RUN))?;
            let runs = runs.iter().map(|run| Ok(Start::of(run, values)?.or(&all)));
            runs.collect::<Result<_, Problem>>()?
        }
        _ => {
            return Err(
                Problem::malformed("either `inputs` or `runs` must be given").hint(
                    r#"as in {"flow": "hello", "inputs": [{"who": "Ada"}]} or {"runs": [{"flow": "hello", "input": {}}]}"#,
                ),
            );
        }
    };
    match starts.len() {
        0 => Err(Problem::malformed("there is nothing to start")),
        count if count > MOST_STARTS => Err(EngineError::TooManyStarts { count }.into()),
        _ => Ok(starts),
    }
}

/// A start that the caller may make.
struct Ready {
    flow: Rc<ServedFlow>,
    options: StartOptions,
}

/// Checks what the engine does not know: the flow, what the caller may do, and keys of the input that callers cannot give.
async fn ready(cx: &EngineContext, caller: &Caller, start: &Start) -> Result<Ready, Problem> {
    let slug = start.flow.as_deref().unwrap_or_default();
    let flow = served(cx, caller, slug, start.version.as_deref())?;
    check(cx, caller, &flow, start).await?;
    let options = start.options(caller)?;
    Ok(Ready { flow, options })
}

/// Returns the answer to starts of which some are wrong: each of these by its index, also where the engine finds the error.
fn refused(cx: &EngineContext, all: Vec<Result<Ready, Problem>>) -> Problem {
    let checked = all.into_iter().map(|start| {
        let Ready { flow, options } = start?;
        let loaded = &flow.loaded;
        let checked = cx.engine.check_start(BulkStart { loaded, options });
        checked.map_err(Problem::from)
    });
    let wrong = checked.enumerate().filter_map(|(index, checked)| {
        let problem = checked.err()?;
        Some(problem.to_entry(index))
    });
    let errors: Vec<Json> = wrong.collect();
    let bad = EngineError::BadStarts { errors: Vec::new() };
    let count = errors.len();
    let detail = format!("{count} of the runs cannot be started, so none was");
    Problem::new(StatusCode::UNPROCESSABLE_ENTITY, bad.code(), detail).with("errors", json!(errors))
}

/// Checks what the engine does not know: whether the caller may start the flow, and reaches a run with the same id.
async fn check(
    cx: &EngineContext,
    caller: &Caller,
    flow: &ServedFlow,
    start: &Start,
) -> Result<(), Problem> {
    may_start(caller, flow, start.invocation.as_deref())?;
    let Some(id) = &start.id else {
        return Ok(());
    };
    let named = RunFilter {
        id_prefix: Some(id.clone()),
        ..RunFilter::default()
    };
    let found = cx.engine.stores().runs.list(named).await?;
    let mut same = found
        .iter()
        .filter(|row| row.external_id.as_ref() == Some(id));
    same.try_for_each(|row| refuse_others(cx, caller, row))
}

/// Starts all runs, and returns the outcome of each, and whether that was done before with the same key.
async fn submit(
    cx: &EngineContext,
    caller: &Caller,
    starts: &[Start],
    receipt: Option<NewReceipt>,
) -> Result<(Vec<Json>, bool), Problem> {
    let mut checked = Vec::new();
    for start in starts {
        checked.push(ready(cx, caller, start).await);
    }
    if checked.iter().any(Result::is_err) {
        return Err(refused(cx, checked));
    }
    let checked = checked
        .into_iter()
        .map(|ready| ready.map(|it| (it.flow, it.options)));
    let (flows, options): (Vec<_>, Vec<_>) = checked.collect::<Result<_, Problem>>()?;
    let undeclared = options.iter().zip(&flows).map(|(options, flow)| {
        let invocation = options.invocation.as_deref();
        undeclared_inputs(&flow.loaded.flow, invocation, &options.input)
    });
    let undeclared: Vec<Vec<Diagnostic>> = undeclared.collect();
    let digest = receipt.as_ref().map(|receipt| receipt.digest.clone());
    let bulk = options.into_iter().zip(&flows);
    let bulk = bulk.map(|(options, flow)| BulkStart {
        loaded: &flow.loaded,
        options,
    });
    let receipts = receipt.into_iter().collect();
    let submitted = cx.engine.submit_many_once(bulk.collect(), receipts);
    let shown = |index: usize, run: &RunId, status: RunStatus| {
        bulk_run_json(index, (run, status), &undeclared[index])
    };
    match submitted.await? {
        SubmittedMany::Started(started) => {
            let runs = started.iter().enumerate();
            let runs = runs.map(|(index, it)| shown(index, &it.run.run, it.status));
            Ok((runs.collect(), false))
        }
        SubmittedMany::Known(past) if Some(&past.digest) != digest.as_ref() => Err(key_reused()),
        SubmittedMany::Known(past) => {
            let mut runs = Vec::new();
            for (index, run) in past.runs.iter().enumerate() {
                let row = cx.engine.run(run).await?;
                runs.push(shown(index, run, row.status));
            }
            Ok((runs, true))
        }
    }
}
