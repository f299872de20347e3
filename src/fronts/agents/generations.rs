//! Generations: runs of agents' flows, in the words of the agents API.

mod members;

use std::collections::HashSet;
use std::rc::Rc;

use flowstone_engine::feed_event::instant;
use flowstone_engine::ids::RunId;
use flowstone_engine::ports::{
    LiveText, NewReceipt, News, RunPages, RunQuery, RunRow, RunStatus, RunSummary, WaitFilter,
};
use flowstone_engine::token::Scope;
use flowstone_engine::waits::Caller;
use flowstone_engine::{Engine, EngineError, StartOptions, Submitted, codec};
use flowstone_flow::flow::{LoadedFlow, name_of};
use flowstone_lang::value::Value;
use flowstone_model::json::to_exact_json;
use serde_json::{Map, Value as Json, json};

use super::agent::Agent;
use super::body::Body;
use super::codes;
use super::compile::{self, Origin, Start, origin};
use super::context;
use super::error::{ApiError, Status as Refused};
use super::lineage::{self, Lineage};
use super::messages::{self, Messages};
use super::pauses::Pause;
use super::policies::Request;
use super::records::Record;
use super::rights::Rights;
use super::sight::Sight;
use super::stuck::{self, Stuck};
use super::{ids, knowledge, left, pauses, providers, wording};
pub use members::GENERATE;

/// The depth of nested generations, unless a request says otherwise.
pub const MAX_DEPTH: i64 = 10;
/// Number of runs that are read at a time.
const PAGE: usize = 500;
/// The default and the maximum number of records in a list.
pub const LIMIT: (usize, usize) = (50, 500);

/// Who starts a generation or answers one.
#[derive(Debug, Clone)]
pub struct Who {
    /// As runs note it.
    pub started_by: String,
    pub caller: Caller,
    /// Whether the caller may replace the instructions of the agent.
    pub is_operator: bool,
    /// The id of the token with whose rights generations act; nothing: those of the owner of the project.
    pub token: Option<String>,
    /// The rights of a step of a generation, which the boundaries of agents narrow; nothing: those of the token.
    pub narrowed: Option<Rights>,
}

impl Who {
    /// Returns what the caller may do.
    ///
    /// # Errors
    /// When the token is not valid any more, or the store cannot be read.
    pub async fn rights(&self, engine: &Engine) -> Result<Rights, ApiError> {
        match &self.narrowed {
            Some(rights) => Ok(rights.clone()),
            None => Rights::of_token(engine, self.token.as_deref()).await,
        }
    }
}

/// The state of a generation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    InProgress,
    RequiresAction,
    Completed,
    Failed,
}

impl State {
    pub const NAMES: &[(State, &str)] = &[
        (State::Completed, "completed"),
        (State::Failed, "failed"),
        (State::InProgress, "in_progress"),
        (State::RequiresAction, "requires_action"),
    ];

    pub fn name(self) -> &'static str {
        let mut names = State::NAMES.iter();
        names.find(|(it, _)| *it == self).map_or("", |it| it.1)
    }

    pub fn named(name: &str) -> Option<State> {
        let mut names = State::NAMES.iter();
        names.find(|(_, it)| *it == name).map(|it| it.0)
    }
}

/// Starts a generation.
///
/// # Errors
/// When the body is not valid, or the agent cannot run.
pub async fn start(
    engine: &Engine,
    agent: &Agent,
    who: &Who,
    mut body: Json,
) -> Result<RunId, ApiError> {
    if let Some(given) = body.get_mut("tool_context").filter(|it| it.is_object()) {
        *given = Json::Object(context::of_caller(Some(&*given)));
    }
    match start_once(engine, (agent, who), (body, Map::new()), Vec::new()).await? {
        Submitted::Started(started) => Ok(started.run),
        Submitted::Known(_) => Err(ApiError::conflict("the generation was started before")),
    }
}

/// Starts a generation, unless one of the receipts is known. `more` are further options of the `:agent` step.
///
/// # Errors
/// As for [`start`].
pub async fn start_once(
    engine: &Engine,
    (agent, who): (&Agent, &Who),
    (body, more): (Json, Map<String, Json>),
    receipts: Vec<NewReceipt>,
) -> Result<Submitted, ApiError> {
    let (loaded, start) = prepare(engine, (agent, who), (body, more)).await?;
    let options = StartOptions {
        is_left: true,
        started_by: Some(who.started_by.clone()),
        ..StartOptions::with_input(start.input())
    };
    Ok(engine.submit_once(&loaded, options, receipts).await?)
}

/// Returns the flow of a generation, and what it starts with.
///
/// # Errors
/// As for [`start`].
pub async fn prepare(
    engine: &Engine,
    (agent, who): (&Agent, &Who),
    (body, more): (Json, Map<String, Json>),
) -> Result<(LoadedFlow, Start), ApiError> {
    let mut body = Body::read(body, GENERATE)?;
    let project = agent.record.project();
    if let Some(config) = body.0.get_mut("knowledge_config") {
        *config = knowledge::check(engine, who, (project, config)).await?;
    }
    let servers = messages::resolve(engine, who, (project, &mut body)).await?;
    if let Some(given) = body.text("project_id")
        && ids::key_of(given) != ids::key_of(project)
    {
        let message = format!(
            "the agent `{}` is not in the project `{given}`",
            agent.record.id()
        );
        return Err(ApiError::invalid(message));
    }
    if body.flag("stream") == Some(true) && agent.record.get("output_schema").is_some() {
        let message = "`stream` cannot be used with an agent that has an `output_schema`";
        return Err(ApiError::invalid(message));
    }
    let who = &Who {
        is_operator: who.is_operator && may_update(engine, agent, who, &body).await?,
        ..who.clone()
    };
    let mut overrides = overrides(agent, who, &body)?;
    overrides.extend(more);
    if !overrides.contains_key("knowledge") {
        agent.check_required(&body)?;
    }
    let context = body.get("tool_context").and_then(Json::as_object);
    let start = Start {
        overrides,
        depth: body.int("max_call_depth").unwrap_or(MAX_DEPTH),
        context: context.cloned().unwrap_or_default(),
        caller: who.token.clone(),
        control: Some(agent.control()),
    };
    Ok((flow(engine, agent, servers)?, start))
}

/// Tells whether the policies of a caller who sends a system message allow to change the agent.
async fn may_update(
    engine: &Engine,
    agent: &Agent,
    who: &Who,
    body: &Body,
) -> Result<bool, ApiError> {
    let mut messages = body.items("messages").iter();
    if !messages.any(|it| it.get("role") == Some(&json!("system"))) {
        return Ok(true);
    }
    let request = Request {
        action: "agents:UpdateAgent".to_owned(),
        project: agent.record.project().to_owned(),
        kind: "agent".to_owned(),
        id: agent.record.id().to_owned(),
        ..Request::default()
    };
    let rights = who.rights(engine).await?;
    match rights.check(Scope::Edit, &request) {
        Ok(()) => Ok(true),
        Err(ApiError::Refused(_)) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Compiles and checks the flow of an agent. `servers` are those that messages name.
fn flow(engine: &Engine, agent: &Agent, servers: Vec<Record>) -> Result<LoadedFlow, ApiError> {
    let place = providers::place(engine, &agent.provider);
    let text = compile::compile(agent, &place, servers)?;
    let session = Rc::new(engine.session());
    let slug = compile::slug(agent.record.project(), agent.record.id());
    let checked = engine.check_made(&session, &text, &format!("{slug}.edn"));
    let mut findings = checked.findings.iter();
    let is_error = |severity| severity == flowstone_engine::diagnostic::Severity::Error;
    if let Some(problem) = findings.find(|it| is_error(it.severity)) {
        return Err(not_runnable(&format!(
            "{}: {}",
            problem.code, problem.message
        )));
    }
    checked
        .loaded
        .ok_or_else(|| not_runnable("the agent made no flow"))
}

fn not_runnable(message: &str) -> ApiError {
    ApiError::new(
        Refused::Unprocessable,
        ("AGENT_NOT_RUNNABLE", codes::NOT_RUNNABLE),
        wording::of_message(message),
    )
}

/// Returns the options of the step that a request sets.
fn overrides(agent: &Agent, who: &Who, body: &Body) -> Result<Map<String, Json>, ApiError> {
    // An empty list of tools is all of them, also where the agent names some.
    let mut overrides = agent.known().options(body)?;
    agent.check_overrides(body)?;
    let mut messages = Messages::read(body)?;
    let most = agent.record.get("max_context_messages");
    messages.cut(most.and_then(Json::as_i64));
    if let Some(system) = messages.system {
        if !who.is_operator {
            let message = "a system message replaces the instructions of the agent: the token needs the scope `edit`";
            return Err(ApiError::new(
                Refused::Forbidden,
                ("FORBIDDEN", codes::FORBIDDEN),
                message,
            ));
        }
        overrides.insert("instructions".to_owned(), json!(system));
    }
    overrides.insert("messages".to_owned(), Json::Array(messages.rest));
    if let Some(config) = body.get("knowledge_config") {
        let config = knowledge::merged(agent.record.get("knowledge_config"), Some(config));
        let option = knowledge::option(agent.record.project(), &config);
        overrides.insert("knowledge".to_owned(), option);
    }
    if let Some(given) = body.get("tool_context").and_then(Json::as_object) {
        context::check(given)?;
        let headers = context::headers(given);
        overrides.extend(compile::tool_options(agent, &headers));
    }
    Ok(overrides)
}

/// Returns the run of a generation or a trace.
///
/// # Errors
/// When no record has that id.
pub async fn find(engine: &Engine, noun: &str, id: &str) -> Result<(RunRow, Origin), ApiError> {
    let run = RunId::from_text(ids::key_of(id));
    let row = match engine.run(&run).await {
        Ok(row) => row,
        Err(EngineError::NoSuchRun { .. } | EngineError::AmbiguousRun { .. }) => {
            return Err(ApiError::missing(noun, id));
        }
        Err(error) => return Err(error.into()),
    };
    // A run is named by its whole id here, and only runs of agents are generations.
    match origin(&row.flow).filter(|_| row.id == run) {
        Some(origin) => Ok((row, origin)),
        None => Err(ApiError::missing(noun, id)),
    }
}

/// Returns the run of a generation of an agent, or of one that such a generation started, and the id of its own agent.
///
/// # Errors
/// When the agent has none of that id.
pub async fn find_of(engine: &Engine, agent: &str, id: &str) -> Result<(RunRow, String), ApiError> {
    let (row, origin) = find(engine, "generation", id).await?;
    let is_it = |id: &str| ids::key_of(id) == ids::key_of(agent);
    if is_it(&origin.agent) {
        return Ok((row, origin.agent));
    }
    let mut above = row.parent.as_ref().map(|it| it.run.clone());
    while let Some(run) = above.take() {
        let parent = engine.run(&run).await?;
        if compile::origin(&parent.flow).is_some_and(|it| is_it(&it.agent)) {
            return Ok((row, origin.agent));
        }
        above = parent.parent.map(|it| it.run);
    }
    Err(ApiError::missing("generation", id))
}

/// Returns what changes whenever a generation may have changed.
pub fn news(engine: &Engine, run: &RunId) -> Box<dyn News> {
    engine.stores().feed.watch(run)
}

/// Returns the text of the model while it arrives.
pub fn live(engine: &Engine, run: &RunId) -> Box<dyn LiveText> {
    engine.feeds().live(run)
}

/// A generation as it is now.
#[derive(Debug, Clone)]
pub struct View {
    pub state: State,
    row: RunRow,
    origin: Origin,
    lineage: Lineage,
    pause: Option<Pause>,
    /// The generation that is paused: this one, or one below it.
    asking: (RunId, Origin),
    result: Json,
    /// The run in quarantine that it waits for, or is itself.
    stuck: Option<Stuck>,
    /// Whether it is streamed, and the stream did not reach its end.
    is_left: bool,
}

/// Returns a generation as it is now.
///
/// # Errors
/// When no record has that id.
pub async fn view(engine: &Engine, id: &str) -> Result<View, ApiError> {
    let (row, origin) = find(engine, "generation", id).await?;
    let pause = match row.status {
        RunStatus::Waiting if row.quarantine.is_none() => pauses::of_tree(engine, &row.id).await?,
        _ => None,
    };
    let lineage = lineage::of(engine, &row).await?;
    let asking = match &pause {
        Some(pause) if pause.run != row.id => {
            let (below, origin) = find(engine, "generation", pause.run.as_str()).await?;
            (below.id, origin)
        }
        Some(_) | None => (row.id.clone(), origin.clone()),
    };
    let stuck = match pause {
        Some(_) => None,
        None => stuck::of(engine, &row).await?,
    };
    let result = row
        .result
        .as_deref()
        .filter(|_| row.status == RunStatus::Completed);
    let is_over = row.status == RunStatus::Completed;
    Ok(View {
        is_left: is_over && left::is_left(engine, &row.id).await?,
        state: match stuck {
            Some(_) => State::Failed,
            None => state_of(row.status, pause.is_some()),
        },
        stuck,
        pause,
        result: result
            .and_then(|text| codec::decode(text).ok())
            .map_or(Json::Null, |value| as_json(&value)),
        row,
        origin,
        lineage,
        asking,
    })
}

/// Returns a generation as a record.
///
/// # Errors
/// When no record has that id.
pub async fn show(engine: &Engine, id: &str) -> Result<Json, ApiError> {
    let view = view(engine, id).await?;
    let mut record = view.to_record();
    if view.state == State::InProgress {
        // Its row changes with its state only; its journal grows with each step.
        let report = engine.show_run(&view.row.id).await?;
        let steps = report.steps.iter();
        let times = steps.flat_map(|step| [Some(step.started_ms), step.ended_ms]);
        let last = times.flatten().max();
        record["last_activity_at"] = instant(last.unwrap_or(0).max(view.row.updated_ms));
    }
    Ok(record)
}

/// Notes that a generation is streamed, until [`note_stayed`].
///
/// # Errors
/// When the store cannot be used.
pub async fn note_streamed(engine: &Engine, run: &RunId) -> Result<(), ApiError> {
    left::note(engine, run).await
}

/// Notes that the stream of a generation reached its end.
///
/// # Errors
/// When no record has that id, or the store cannot be used.
pub async fn note_stayed(engine: &Engine, id: &str) -> Result<(), ApiError> {
    let (row, _) = find(engine, "generation", id).await?;
    left::forget(engine, &row.id).await
}

fn state_of(status: RunStatus, waits_for_outputs: bool) -> State {
    match status {
        RunStatus::Waiting if waits_for_outputs => State::RequiresAction,
        RunStatus::Queued | RunStatus::Running | RunStatus::Waiting => State::InProgress,
        RunStatus::Completed => State::Completed,
        RunStatus::Failed
        | RunStatus::FailedCompensating
        | RunStatus::TimedOut
        | RunStatus::Cancelled
        | RunStatus::Terminated => State::Failed,
    }
}

fn as_json(value: &Value) -> Json {
    to_exact_json(value).unwrap_or_else(|_| codec::encode(value).map_or(Json::Null, Json::String))
}

fn call_json(call: &Json) -> Json {
    let member = |key: &str| call.get(key).cloned().unwrap_or(Json::Null);
    let id = member("tool-call-id");
    json!({
        "id": id,
        "tool_call_id": id,
        "tool_name": member("name"),
        "args": member("arguments"),
    })
}

impl View {
    /// Tells whether the caller who waits for it has something to do.
    pub fn is_settled(&self) -> bool {
        self.state != State::InProgress
    }

    /// Tells whether it has ended.
    pub fn is_over(&self) -> bool {
        matches!(self.state, State::Completed | State::Failed)
    }

    /// Returns the generation for the end of its own stream.
    #[must_use]
    pub fn stayed(self) -> View {
        View {
            is_left: false,
            ..self
        }
    }

    pub fn id(&self) -> String {
        ids::generation(&self.row.id)
    }

    /// Tells whether it waits for something below it, whose changes its own feed does not show.
    pub fn waits_below(&self) -> bool {
        self.state == State::InProgress && self.row.status == RunStatus::Waiting
    }

    fn of_result(&self, key: &str) -> Json {
        self.result.get(key).cloned().unwrap_or(Json::Null)
    }

    /// Returns why a completed generation ended.
    pub fn stop_reason(&self) -> Option<&'static str> {
        if self.state != State::Completed {
            return None;
        }
        Some(match self.of_result("finish-reason").as_str() {
            // The limit of calls is far above that of steps; the API has no other name for it.
            Some("max-iterations" | "max-tool-calls") => "max_steps",
            Some("stop-condition") => "stop_condition",
            Some("no-executor") => "no_executor",
            Some("depth-limit") => "depth_limit",
            Some(_) | None if self.is_left => "stream_response_started",
            Some(_) | None => "end_turn",
        })
    }

    fn tool_calls(&self) -> Json {
        if let Some(pause) = &self.pause {
            return pause.calls.iter().map(call_json).collect();
        }
        let calls = self.result.get("tool-calls").and_then(Json::as_array);
        calls.into_iter().flatten().map(call_json).collect()
    }

    fn required_action(&self) -> Json {
        match &self.pause {
            Some(pause) => json!({
                "type": pause.kind.action(),
                "generation_id": ids::generation(&self.asking.0),
                "agent_id": self.asking.1.agent,
                "tool_calls": self.tool_calls(),
            }),
            None => Json::Null,
        }
    }

    /// Returns the text of a completed generation; null for others.
    pub fn text(&self) -> Json {
        match self.of_result("content") {
            Json::Null if self.state != State::Completed => Json::Null,
            Json::Null => json!(""),
            Json::String(text) => json!(text),
            data => json!(data.to_string()),
        }
    }

    fn output(&self) -> Json {
        if self.state != State::Completed {
            return Json::Null;
        }
        let reason = match self.stop_reason() {
            Some("end_turn" | "stream_response_started") | None => {
                self.model_reason("finish-reason")
            }
            Some("depth_limit") => "depth-limit".to_owned(),
            Some("max_steps") => self.model_reason("turn-finish-reason"),
            Some(_) => "tool-calls".to_owned(),
        };
        let mut output = json!({
            "model": self.of_result("model"),
            "content": self.text(),
            "finish_reason": reason,
        });
        let content = self.of_result("content");
        if !content.is_string() && !content.is_null() {
            output["object"] = content;
        }
        output
    }

    /// Returns why the model ended its last turn: `stop`, `length`, `tool-calls`, `content-filter`, or a word of the provider.
    fn model_reason(&self, key: &str) -> String {
        match self.of_result(key).as_str() {
            Some(reason) if !reason.is_empty() => reason.replace('_', "-"),
            Some(_) | None => "stop".to_owned(),
        }
    }

    fn error(&self) -> Json {
        if self.state != State::Failed {
            return Json::Null;
        }
        if let Some(stuck) = &self.stuck {
            return json!({"code": stuck::CODE, "message": stuck.message(&self.row.id)});
        }
        let error = self
            .row
            .error
            .as_deref()
            .and_then(|text| codec::decode(text).ok());
        let (code, message) = match error.as_ref().and_then(|it| it.get("error")) {
            Some(Value::Exception(error)) => {
                let code = error.data.get("code").and_then(name_of);
                let kind = error.data.get("kind").and_then(name_of);
                let name = code_name(code.as_deref(), kind.as_deref());
                let text = error.display_text();
                (name, wording::of_failure(text, kind.as_deref()))
            }
            _ => (
                "GENERATION_ENDED".to_owned(),
                format!("the run is {}", self.row.status.name()),
            ),
        };
        json!({"code": code, "message": message})
    }

    /// Returns the last frame of a stream before its end; the error of a generation that failed.
    pub fn to_frame(&self) -> Result<Json, Json> {
        if self.state == State::Failed {
            return Err(json!({"error": self.error(), "generation_id": self.id()}));
        }
        Ok(json!({
            "id": self.id(),
            "trace_id": ids::trace(&self.row.id),
            "status": self.state.name(),
            "stop_reason": self.stop_reason(),
            "required_action": self.required_action(),
            "choices": [{"delta": {}, "finish_reason": self.output()["finish_reason"]}],
        }))
    }

    /// Returns the generation as the answer to a request that starts or resumes it.
    pub fn to_answer(&self) -> Json {
        json!({
            "id": self.id(),
            "generation_id": self.id(),
            "agent_id": self.origin.agent,
            "trace_id": ids::trace(&self.row.id),
            "status": self.state.name(),
            "stop_reason": self.stop_reason(),
            "output": self.output(),
            "required_action": self.required_action(),
            "error": self.error(),
            "text": self.text(),
            "tool_calls": self.tool_calls(),
        })
    }

    fn to_record(&self) -> Json {
        let ended = self.row.ended_ms.map_or(Json::Null, instant);
        let mut record = record(&Facts {
            run: &self.row.id,
            origin: &self.origin,
            state: self.state,
            lineage: &self.lineage,
            created_ms: self.row.created_ms,
            updated_ms: self.row.updated_ms,
        });
        record["completed_at"] = ended;
        record["stop_reason"] = json!(self.stop_reason());
        record["error"] = self.error();
        record["tool_calls"] = self.tool_calls();
        record["required_action"] = self.required_action();
        record
    }

    /// Returns the message of a session that the generation made.
    pub fn model(&self) -> Json {
        self.of_result("model")
    }
}

/// Returns the code of a failed generation: the name of its kind, or the code of the engine.
fn code_name(code: Option<&str>, kind: Option<&str>) -> String {
    match (code, kind) {
        (_, Some(kind)) => kind.replace('-', "_").to_ascii_uppercase(),
        (Some(code), None) => code.to_owned(),
        (None, None) => "GENERATION_FAILED".to_owned(),
    }
}

/// What lists know of a run.
struct Facts<'a> {
    run: &'a RunId,
    origin: &'a Origin,
    state: State,
    lineage: &'a Lineage,
    created_ms: i64,
    updated_ms: i64,
}

fn record(facts: &Facts<'_>) -> Json {
    let started_by = facts.lineage.started_by.as_str();
    let (kind, id) = started_by.split_once(':').unwrap_or(("local", started_by));
    let initiator = facts.lineage.initiator.as_ref().map(ids::generation);
    json!({
        "id": ids::generation(facts.run),
        "project_id": facts.origin.project,
        "agent_id": facts.origin.agent,
        "trace_id": ids::trace(facts.run),
        "initiator_generation_id": initiator,
        "status": facts.state.name(),
        "started_at": instant(facts.created_ms),
        "completed_at": Json::Null,
        "last_activity_at": instant(facts.updated_ms),
        "stop_reason": Json::Null,
        "started_by": {"type": kind, "id": id},
        "created_at": instant(facts.created_ms),
    })
}

/// Which generations a list has.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    pub project: Option<String>,
    pub agent: Option<String>,
    pub state: Option<State>,
    pub limit: usize,
    pub offset: usize,
}

/// A page of a list, and the number of records on all pages.
#[derive(Debug, Clone)]
pub struct Page<T> {
    pub data: Vec<T>,
    pub total: usize,
}

/// Returns generations, newest first.
///
/// # Errors
/// When the store cannot be read.
pub async fn list(engine: &Engine, who: &Who, filter: &Filter) -> Result<Page<Json>, ApiError> {
    let sight = Sight::of(engine, who, "agents:ListAgentGenerations").await?;
    let found = runs(engine, (&sight, "generation"), filter).await?;
    let mut data = Vec::new();
    for run in &found.data {
        data.push(show(engine, &ids::generation(&run.id)).await?);
    }
    Ok(Page {
        data,
        total: found.total,
    })
}

/// Returns the runs of generations that a caller sees as records of a kind, newest first.
///
/// # Errors
/// When the store cannot be read.
pub async fn runs(
    engine: &Engine,
    (sight, kind): (&Sight, &str),
    filter: &Filter,
) -> Result<Page<RunSummary>, ApiError> {
    let waiting = asking(engine).await?;
    let stuck = stuck::all(engine, &waiting).await?;
    let mut page = Page {
        data: Vec::new(),
        total: 0,
    };
    let mut pages = RunPages::new(RunQuery {
        limit: PAGE,
        ..RunQuery::default()
    });
    while let Some(found) = pages.next(&*engine.stores().runs).await? {
        for run in found {
            let Some(origin) = origin(&run.flow) else {
                continue;
            };
            let state = match stuck.contains(&run.id) {
                true => State::Failed,
                false => state_of(run.status, waiting.contains(&run.id)),
            };
            if !filter.takes(&origin, state) {
                continue;
            }
            let place = (origin.project.as_str(), &run.id);
            if !sight.shows_run(engine, place, kind).await? {
                continue;
            }
            let at = page.total;
            page.total += 1;
            if at >= filter.offset && page.data.len() < filter.limit {
                page.data.push(run);
            }
        }
    }
    Ok(page)
}

/// Returns the runs that are paused, and those above them.
async fn asking(engine: &Engine) -> Result<HashSet<RunId>, EngineError> {
    let waits = engine.list_waits(WaitFilter::default()).await?;
    let mut found = HashSet::new();
    for wait in waits.iter().filter(|wait| pauses::is_open(wait)) {
        let mut above = Some(wait.run.clone());
        while let Some(run) = above.take() {
            let parent = engine.run(&run).await?.parent.map(|it| it.run);
            if found.insert(run) {
                above = parent;
            }
        }
    }
    Ok(found)
}

impl Filter {
    fn takes(&self, origin: &Origin, state: State) -> bool {
        let is_it = |wanted: &Option<String>, id: &str| {
            let wanted = wanted.as_deref();
            wanted.is_none_or(|wanted| ids::key_of(wanted) == ids::key_of(id))
        };
        is_it(&self.project, &origin.project)
            && is_it(&self.agent, &origin.agent)
            && self.state.is_none_or(|wanted| wanted == state)
    }
}
