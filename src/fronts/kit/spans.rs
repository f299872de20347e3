//! The journal of a run as spans: one for the run, each agent, each turn of a model, each call of a tool, and each other
//! step. The ids are those of the spans that a collector gets ([`flowstone_model::trace`]).
//!
//! A span has `output` exactly when the journal has an outcome: `{"value": v}`, or `{"value": {"error": message, "code": code}}`
//! after an error. A call that was denied, or that waits, has none.

use std::collections::HashMap;

use flowstone_engine::codec;
use flowstone_engine::ids::RunId;
use flowstone_engine::ports::{RunRow, RunStatus, WaitState};
use flowstone_engine::{RunReport, StepReport, StepStatus};
use flowstone_flow::flow::name_of;
use flowstone_lang::value::Value;
use flowstone_model::codec::instant;
use flowstone_model::json::to_json;
use flowstone_model::trace::{RunTrace, SpanId, SpanOf, SpanPlace};
use flowstone_steps::llm::UsualModel;
use serde_json::{Map, Value as Json, json};

use super::span_approval::{Approval, Approvals};
use super::span_path::{TURN, outer, step_id};

/// The step types whose nested steps are a conversation with a model.
const AGENTS: &[&str] = &["agent", "llm"];
/// The attributes with the model and the provider of a request.
const REQUEST_MODEL: &str = "gen_ai.request.model";
const PROVIDER: &str = "gen_ai.provider.name";
/// The attribute with what a person said about a call.
const APPROVAL: &str = "flowstone.approval";
/// The message of a call that a person rejected.
const REJECTED: &str = "a person rejected this call";
/// The message of a call about which nobody decided.
const UNANSWERED: &str = "nobody decided about this call in time";
/// The step types whose spans are requests to another system.
const OUTSIDE: &[&str] = &["http", "llm", "mcp", "notify"];

/// A span, in the form that queries return, with what orders it.
#[derive(Debug, Clone, PartialEq)]
pub struct Span {
    pub began_ms: i64,
    pub json: Map<String, Json>,
}

/// Returns the kind of a run, such as `manual`, `schedule` or `test`.
pub fn kind_of(row: &RunRow) -> &str {
    row.started_by.split(':').next().unwrap_or_default()
}

/// Returns the spans of a run in the order of their starts; `notes` are events of the run's own span.
pub fn of_run(report: &RunReport, notes: Vec<Json>) -> Vec<Span> {
    let trace = report.row.in_trace();
    let mut maker = Maker {
        report,
        steps: report
            .steps
            .iter()
            .map(|step| (step.path.as_str(), step))
            .collect(),
        calls: calls(report),
        approvals: Approvals::of(report),
        trace,
    };
    let mut spans = vec![maker.run(notes)];
    for step in &report.steps {
        spans.push(maker.step(step));
    }
    let unperformed = std::mem::take(&mut maker.calls.unperformed);
    spans.extend(unperformed.iter().map(|call| maker.unperformed(call)));
    spans.sort_by_key(|span| span.began_ms);
    spans
}

/// Returns the span of a run as the installer of its flow sees it: without attributes and events, which are the author's.
pub fn of_run_only(report: &RunReport) -> Span {
    let maker = Maker {
        report,
        steps: HashMap::new(),
        calls: Calls::default(),
        approvals: Approvals::default(),
        trace: report.row.in_trace(),
    };
    let mut span = maker.run(Vec::new());
    span.json.insert("attributes".to_owned(), json!({}));
    span
}

/// A call that a model made.
#[derive(Debug, Clone, Default)]
struct Call {
    id: Option<String>,
    name: String,
    arguments: Option<Json>,
    /// The turn that made it, and when that ended.
    turn: String,
    at_ms: i64,
    number: usize,
    /// What was wrong with it, if no step could perform it.
    error: Option<String>,
}

/// The calls of all models of a run.
#[derive(Debug, Default)]
struct Calls {
    /// By the path of the step that performed them.
    performed: HashMap<String, Call>,
    unperformed: Vec<Call>,
}

/// Finds out which step performed which call.
fn calls(report: &RunReport) -> Calls {
    let mut calls = Calls::default();
    let steps: HashMap<&str, &StepReport> = report
        .steps
        .iter()
        .map(|step| (step.path.as_str(), step))
        .collect();
    for conversation in report.conversations() {
        for turn in &conversation.turns {
            let step = steps.get(turn.path.as_str());
            let reply = step.and_then(|step| step.result.as_deref());
            let reply = reply.and_then(|text| codec::decode(text).ok());
            let made = reply.as_ref().and_then(|reply| reply.get("tool-calls"));
            let made = made.and_then(Value::as_vector);
            let made: Vec<Value> =
                made.map_or_else(Vec::new, |made| made.iter().cloned().collect());
            for (number, call) in turn.calls.iter().enumerate() {
                let Some(asked) = made.get(number) else {
                    // What the agent did by itself is not a call.
                    continue;
                };
                let found = Call {
                    id: asked
                        .get("tool-call-id")
                        .and_then(name_of)
                        .map(|it| it.to_string()),
                    name: call.name.clone(),
                    arguments: asked.get("arguments").and_then(|it| to_json(it).ok()),
                    turn: turn.path.clone(),
                    at_ms: step.map_or(report.row.created_ms, |step| {
                        step.ended_ms.unwrap_or(step.started_ms)
                    }),
                    number,
                    error: call.error.clone(),
                };
                match &call.step {
                    Some(step) => {
                        calls.performed.insert(step.path.clone(), found);
                    }
                    None => calls.unperformed.push(found),
                }
            }
        }
    }
    calls
}

struct Maker<'a> {
    report: &'a RunReport,
    steps: HashMap<&'a str, &'a StepReport>,
    calls: Calls,
    approvals: Approvals,
    trace: RunTrace,
}

/// What a span says beside its ids.
struct Part<'a> {
    kind: &'static str,
    name: String,
    of: SpanPlace<'a>,
    parent: Option<SpanId>,
    times: (i64, Option<i64>),
    error: Option<String>,
    is_done: bool,
    attributes: Map<String, Json>,
    is_outside: bool,
}

impl Maker<'_> {
    fn run(&self, notes: Vec<Json>) -> Span {
        let row = &self.report.row;
        let mut attributes = Map::new();
        let version = row.version.map(|version| version.number);
        let members = [
            ("flowstone.run.id", json!(row.id.as_str())),
            ("flowstone.run.kind", json!(kind_of(row))),
            ("flowstone.run.status", json!(row.status.name())),
            ("flowstone.run.flow", json!(row.flow)),
            ("flowstone.run.version", json!(version)),
        ];
        attributes.extend(members.map(|(name, value)| (name.to_owned(), value)));
        attributes.insert("input".to_owned(), json!({"value": stored(&row.input)}));
        let failure = self.report.failure.as_ref().map(|it| &it.exception);
        let error = match row.status {
            RunStatus::Failed | RunStatus::FailedCompensating => {
                let message = failure.map(|it| it.display_text().to_owned());
                Some(message.unwrap_or_else(|| "the run failed".to_owned()))
            }
            RunStatus::Cancelled | RunStatus::Terminated | RunStatus::TimedOut => {
                Some(row.status.name().to_owned())
            }
            RunStatus::Completed | RunStatus::Queued | RunStatus::Running | RunStatus::Waiting => {
                None
            }
        };
        match (&error, &row.result) {
            (Some(message), _) if row.status == RunStatus::Failed => {
                let code = failure.map(|it| it.code.to_string());
                insert_output(&mut attributes, error_value(message, code.as_deref()));
            }
            (None, Some(result)) => insert_output(&mut attributes, stored(result)),
            (_, _) => {}
        }
        let parent = self.trace.parent.map(|parent| parent.span);
        let mut span = self.span(Part {
            kind: "workflow",
            name: format!("invoke_workflow {}", row.flow),
            of: SpanPlace::run(&row.id),
            parent,
            times: (row.created_ms, row.ended_ms),
            error,
            is_done: row.status == RunStatus::Completed,
            attributes,
            is_outside: false,
        });
        span.json.insert("events".to_owned(), Json::Array(notes));
        if let Some(link) = self.trace.link {
            let link =
                json!({"trace_id": link.trace.to_string(), "span_id": link.span.to_string()});
            span.json.insert("links".to_owned(), json!([link]));
        }
        span
    }

    /// Tells whether a step has turns of a model inside.
    fn is_agent(&self, step: &StepReport) -> bool {
        if step.kind == "agent" {
            return true;
        }
        AGENTS.contains(&&*step.kind) && {
            let turn = format!("{}/{TURN}", step.path);
            let first_of_later = |path: &str| outer(path) == Some(step.path.as_str());
            self.steps.contains_key(turn.as_str())
                || self
                    .steps
                    .values()
                    .any(|other| step_id(&other.path) == TURN && first_of_later(&other.path))
        }
    }

    /// Tells whether a person is asked about a step: by `:confirm`, or because it is in doubt.
    fn is_asked_about(&self, step: &StepReport) -> bool {
        let question = format!("{}?", step.path);
        let mut waits = self.report.waits.iter();
        step.status == StepStatus::Waiting
            && waits.any(|wait| wait.state != WaitState::Closed && wait.path.starts_with(&question))
    }

    /// Returns the place of a step's span.
    fn place<'p>(&'p self, step: &'p StepReport) -> SpanPlace<'p> {
        let attempts = step.attempts.max(1);
        match (&*step.kind, self.is_agent(step)) {
            (_, true) => SpanPlace {
                of: SpanOf::Agent,
                ..self.trace.step(&step.path)
            },
            ("llm", false) => self.trace.attempt(&step.path, "llm", attempts),
            (_, false) => self.trace.step(&step.path),
        }
    }

    /// Returns the span that a path is below: of the step that performs it, or of the run.
    fn parent(&self, path: &str) -> SpanId {
        let mut above = outer(path);
        while let Some(path) = above {
            if let Some(step) = self.steps.get(path) {
                return self.place(step).id();
            }
            above = outer(path);
        }
        SpanPlace::run(&self.trace.run).id()
    }

    fn step(&self, step: &StepReport) -> Span {
        let call = self.calls.performed.get(&step.path);
        let (kind, name) = match (call, self.is_agent(step), &*step.kind) {
            (_, true, _) => ("agent", format!("invoke_agent {}", step_id(&step.path))),
            (Some(call), false, _) => ("tool", format!("execute_tool {}", call.name)),
            (None, false, "llm") => ("chat", String::new()),
            (None, false, kind) => ("task", format!("{kind} {}", step_id(&step.path))),
        };
        let mut attributes = Map::new();
        let mut add = |name: &str, value: Json| {
            attributes.insert(name.to_owned(), value);
        };
        add("flowstone.step.path", json!(step.path));
        add("flowstone.step.type", json!(step.kind));
        add("flowstone.step.attempt", json!(step.attempts.max(1)));
        if let Some(packaged) = &step.packaged {
            add("flowstone.step.packaged", json!(packaged));
        }
        if let Some(call) = call {
            add("gen_ai.operation.name", json!("execute_tool"));
            add("gen_ai.tool.name", json!(call.name));
            if let Some(id) = &call.id {
                add("gen_ai.tool.call.id", json!(id));
            }
        }
        let decided = call.and_then(|call| self.approvals.find(&call.turn, call.id.as_deref()));
        let asked = self.is_asked_about(step).then_some(Approval::Waiting);
        if let Some(approval) = asked.or(decided) {
            add(APPROVAL, json!(approval.name()));
        }
        let input = call.and_then(|call| call.arguments.clone());
        // The journal keeps the beginning of a long request, which cannot be read as data.
        let mut is_cut = false;
        match (input, step.request.as_deref()) {
            (Some(input), _) => add("input", json!({"value": input})),
            (None, Some(request)) => {
                is_cut = codec::decode(request).is_err();
                add("input", json!({"value": stored(request)}));
            }
            (None, None) => {}
        }
        let mut name = name;
        let value = self.outcome(step, &mut attributes);
        match kind {
            "agent" => self.about_agent(step, &mut attributes),
            "chat" => {
                let model = about_chat(step, value.as_ref(), &mut attributes);
                name = format!("chat {}", model.unwrap_or_default());
                name.truncate(name.trim_end().len());
            }
            _ => {}
        }
        let error = match step.status {
            StepStatus::Failed | StepStatus::Skipped => step.error.clone().or(Some(String::new())),
            StepStatus::Cancelled => Some("cancelled".to_owned()),
            StepStatus::Done
            | StepStatus::Retrying
            | StepStatus::Sleeping
            | StepStatus::Waiting
            | StepStatus::InFlight
            | StepStatus::InDoubt => None,
        };
        let mut span = self.span(Part {
            kind,
            name,
            of: self.place(step),
            parent: Some(self.parent(&step.path)),
            times: (step.started_ms, step.ended_ms.or(self.report.row.ended_ms)),
            error,
            is_done: step.status == StepStatus::Done,
            attributes,
            is_outside: OUTSIDE.contains(&&*step.kind),
        });
        if is_cut {
            span.json.insert("truncated".to_owned(), json!(true));
        }
        span
    }

    /// Adds what a step gave, if the journal has it. Returns the value.
    fn outcome(&self, step: &StepReport, attributes: &mut Map<String, Json>) -> Option<Value> {
        let result = step.result.as_deref()?;
        if step.status == StepStatus::Done {
            let value = codec::decode(result).ok();
            insert_output(attributes, stored(result));
            return value;
        }
        if step.error.is_some() && step.ended_ms.is_some() {
            let data = step.error_data.as_deref();
            let of_kit = data.and_then(|text| kit_error(codec::decode(text).ok()?.get("kit")?));
            let output = match of_kit {
                Some((code, message)) => error_value(&message, Some(&code)),
                None => error_value(result, step.error_code.as_deref()),
            };
            insert_output(attributes, output);
        }
        None
    }

    /// Adds what an agent's turns say together.
    fn about_agent(&self, step: &StepReport, attributes: &mut Map<String, Json>) {
        let turns = self.report.steps.iter();
        let turns = turns.filter(|it| it.kind == "llm" && outer(&it.path) == Some(&*step.path));
        let (mut model, mut provider, mut input, mut output) = (None, None, 0, 0);
        for turn in turns {
            let reply = turn.result.as_deref();
            let Some(reply) = reply.and_then(|text| codec::decode(text).ok()) else {
                continue;
            };
            let text = |key: &str| reply.get(key).and_then(name_of).map(|it| it.to_string());
            model = model.or_else(|| text("model"));
            provider = provider.or_else(|| text("provider"));
            let count = |key: &str| reply.get("usage")?.get(key)?.as_int();
            input += count("prompt-tokens").unwrap_or_default();
            output += count("completion-tokens").unwrap_or_default();
        }
        let mut add = |name: &str, value: Json| {
            attributes.insert(name.to_owned(), value);
        };
        add("gen_ai.operation.name", json!("invoke_agent"));
        add("gen_ai.agent.name", json!(step_id(&step.path)));
        add("gen_ai.usage.input_tokens", json!(input));
        add("gen_ai.usage.output_tokens", json!(output));
        add("flowstone.resolved.harness", json!("flowstone"));
        if let Some(model) = model {
            add(REQUEST_MODEL, json!(model));
            add("flowstone.resolved.model", json!(model));
        }
        if let Some(provider) = provider {
            add(PROVIDER, json!(provider));
            add("flowstone.resolved.provider", json!(provider));
        }
    }

    /// Returns the span of a call that no step has performed.
    fn unperformed(&self, call: &Call) -> Span {
        let path = format!("{}/{}#{}", call.turn, call.name, call.number + 1);
        let mut attributes = Map::new();
        let mut add = |name: &str, value: Json| {
            attributes.insert(name.to_owned(), value);
        };
        add("gen_ai.operation.name", json!("execute_tool"));
        add("gen_ai.tool.name", json!(call.name));
        if let Some(id) = &call.id {
            add("gen_ai.tool.call.id", json!(id));
        }
        add("input", json!({"value": call.arguments}));
        let approval = self.approvals.find(&call.turn, call.id.as_deref());
        let is_over = self.report.row.status.is_final();
        let name = match (approval, &call.error) {
            (Some(Approval::Waiting) | None, None) if is_over => Some("not performed"),
            // A call without an approval is being performed.
            (approval, _) => approval.map(Approval::name),
        };
        if let Some(name) = name {
            attributes.insert(APPROVAL.to_owned(), json!(name));
        }
        // The answer of the kit to a call that it refused is data.
        let data = call
            .error
            .as_deref()
            .and_then(|text| codec::decode(text).ok());
        let of_kit = data.as_ref().and_then(kit_error);
        let mut error = call.error.clone();
        let mut ended_ms = error.as_ref().map(|_| call.at_ms);
        match (&approval, of_kit) {
            (Some(Approval::Unanswered { at_ms }), _) => {
                ended_ms = Some(*at_ms);
                error = Some(UNANSWERED.to_owned());
            }
            (Some(Approval::Rejected { at_ms }), of_kit) => {
                ended_ms = Some(*at_ms);
                let message = of_kit.map(|(_, message)| message);
                error = Some(message.unwrap_or_else(|| REJECTED.to_owned()));
            }
            (_, Some((code, message))) => {
                insert_output(&mut attributes, error_value(&message, Some(&code)));
                error = Some(message);
            }
            (_, None) => {
                if let Some(error) = &error {
                    insert_output(&mut attributes, error_value(error, None));
                }
            }
        }
        let above = outer(&call.turn);
        let parent = match above.and_then(|path| self.steps.get(path)) {
            Some(step) => self.place(step).id(),
            None => SpanPlace::run(&self.trace.run).id(),
        };
        self.span(Part {
            kind: "tool",
            name: format!("execute_tool {}", call.name),
            of: self.trace.step(&path),
            parent: Some(parent),
            times: (call.at_ms, ended_ms.or(self.report.row.ended_ms)),
            error,
            is_done: false,
            attributes,
            is_outside: false,
        })
    }

    fn span(&self, part: Part<'_>) -> Span {
        let (began_ms, ended_ms) = part.times;
        let status = match (&part.error, part.is_done) {
            (Some(_), _) => "STATUS_CODE_ERROR",
            (None, true) => "STATUS_CODE_OK",
            (None, false) => "STATUS_CODE_UNSET",
        };
        let kind = match part.is_outside {
            true => "SPAN_KIND_CLIENT",
            false => "SPAN_KIND_INTERNAL",
        };
        let json = json!({
            "trace_id": self.trace.trace.to_string(),
            "span_id": part.of.id().to_string(),
            "parent_id": part.parent.map(|parent| parent.to_string()),
            "trace_type": "invocation",
            "span_type": part.kind,
            "span_kind": kind,
            "span_name": part.name,
            "start_time": time(began_ms),
            "end_time": ended_ms.map(|at| time(at.max(began_ms))),
            "status_code": status,
            "status_message": part.error.unwrap_or_default(),
            "attributes": part.attributes,
            "events": [],
            "links": [],
        });
        let Json::Object(json) = json else {
            return Span {
                began_ms,
                json: Map::new(),
            };
        };
        Span { began_ms, json }
    }
}

/// Names the models of turns that were not answered. `model_of` says which model a connection leads to.
pub fn name_models(spans: &mut [Span], model_of: impl Fn(&str) -> UsualModel) {
    for span in spans {
        let connection = span.json["attributes"]["input"]["value"]["connection"].as_str();
        let Some(connection) = connection.filter(|_| lacks_model(&span.json)) else {
            continue;
        };
        let usual = model_of(connection);
        let attributes = &mut span.json["attributes"];
        if let (Some(provider), None) = (&usual.provider, attributes.get(PROVIDER)) {
            attributes[PROVIDER] = json!(provider);
        }
        if let (Some(model), None) = (&usual.model, attributes.get(REQUEST_MODEL)) {
            attributes[REQUEST_MODEL] = json!(model);
            span.json["span_name"] = json!(format!("chat {model}"));
        }
    }
}

/// Tells whether a span is a turn whose model or provider is not known from the journal.
pub fn lacks_model(span: &Map<String, Json>) -> bool {
    let lacks = |name: &str| span["attributes"].get(name).is_none();
    span["span_type"] == json!("chat") && (lacks(REQUEST_MODEL) || lacks(PROVIDER))
}

/// Returns the id of the root span of a run.
pub fn root_span(run: &RunId) -> SpanId {
    SpanPlace::run(run).id()
}

/// Adds what a reply of a model says, and returns the model.
fn about_chat(
    step: &StepReport,
    reply: Option<&Value>,
    attributes: &mut Map<String, Json>,
) -> Option<String> {
    let text = |key: &str| reply?.get(key).and_then(name_of).map(|it| it.to_string());
    let asked = step.request.as_deref().and_then(|request| {
        let (_, rest) = request.split_once(":model \"")?;
        Some(rest.split_once('"')?.0.to_owned())
    });
    let model = asked.or_else(|| text("model"));
    let mut add = |name: &str, value: Json| {
        attributes.insert(name.to_owned(), value);
    };
    add("gen_ai.operation.name", json!("chat"));
    if let Some(model) = &model {
        add(REQUEST_MODEL, json!(model));
    }
    if let Some(provider) = text("provider") {
        add(PROVIDER, json!(provider));
    }
    let count = |key: &str| reply?.get("usage")?.get(key)?.as_int();
    if let Some(count) = count("prompt-tokens") {
        add("gen_ai.usage.input_tokens", json!(count));
    }
    if let Some(count) = count("completion-tokens") {
        add("gen_ai.usage.output_tokens", json!(count));
    }
    if let Some(reason) = text("finish-reason") {
        add("gen_ai.response.finish_reasons", json!([reason]));
    }
    model
}

fn insert_output(attributes: &mut Map<String, Json>, value: Json) {
    attributes.insert("output".to_owned(), json!({"value": value}));
}

fn error_value(message: &str, code: Option<&str>) -> Json {
    json!({"error": message, "code": code.unwrap_or("_OTHER")})
}

/// Returns the code and the message of an error of the kit.
fn kit_error(error: &Value) -> Option<(String, String)> {
    error.as_map()?;
    let text = |key: &str| Some(error.get(key)?.as_str()?.to_string());
    Some((text("code")?, text("message")?))
}

/// Returns a stored value as JSON; what cannot be read, such as the beginning of a long request, as its text.
fn stored(text: &str) -> Json {
    let value = codec::decode(text).ok();
    let json = value.and_then(|value| to_json(&value).ok());
    json.unwrap_or_else(|| json!(text))
}

/// Returns a time with microseconds.
fn time(millis: i64) -> String {
    let text = instant(millis);
    match text.strip_suffix('Z') {
        Some(text) => format!("{text}000Z"),
        None => text,
    }
}
