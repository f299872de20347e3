//! What a run did, as its journal shows it: the tools that were called, what was approved, which model answered.
//!
//! Tools are the calls that models made, by the names the models saw, and the steps of flows that are packaged or change
//! something outside. Runs that a run calls are part of it, at the place of the call. Attempts of one request are one call.

use std::collections::{HashMap, HashSet};

use flowstone_lang::value::Value;

use crate::codec;
use crate::engine::Engine;
use crate::error::EngineError;
use crate::flow::name_of;
use crate::ids::RunId;
use crate::json::items;
use crate::ports::{Entry, EntryKind, WaitFilter, WaitRow};
use crate::report::conversation::{TURN, is_prevented, step_id};
use crate::report::packaged_request;

/// How deep runs that call runs are read.
const MOST_DEEP: usize = 64;
/// The id of the wait for an approval in an agent.
const APPROVAL: &str = "approval";

/// What a run and the runs below it did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Evidence {
    /// The last text of a model that is not empty.
    pub text: Option<String>,
    /// The tools that were called, in the order of their first calls.
    pub tools: Vec<ToolEvidence>,
    /// The tools whose calls needed an approval, in the order of asking.
    pub approvals: Vec<String>,
    /// The first model that was asked, whether or not it answered.
    pub model: Option<ModelEvidence>,
    /// Calls were left open: they need an approval, or a result from outside.
    pub has_open_calls: bool,
}

/// A tool that was called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolEvidence {
    pub name: String,
    /// Its other names: of the packaged step, and on its MCP server.
    pub ids: Vec<String>,
    /// The journal has a result or an error of one of the calls.
    pub has_returned: bool,
    /// One of the calls gave an error.
    pub has_failed: bool,
}

/// A model that was asked. What it did not answer is as the request has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelEvidence {
    pub model: Option<String>,
    pub provider: Option<String>,
    /// The connection that the request names.
    pub connection: Option<String>,
    /// The flow of the run.
    pub flow: String,
    /// The run, and the path of the step that asked first.
    place: (RunId, String),
    has_answered: bool,
}

impl Engine {
    /// Reads what a run and the runs below it did.
    ///
    /// # Errors
    /// When a journal cannot be read.
    pub async fn evidence_of(&self, run: &RunId) -> Result<Evidence, EngineError> {
        let mut evidence = Evidence::default();
        let mut open = vec![Reading::of(self, run).await?];
        // Runs are read where they are called, without recursion.
        while let Some(reading) = open.last_mut() {
            match reading.next(&mut evidence) {
                Next::Over => drop(open.pop()),
                Next::Child(child) if open.len() < MOST_DEEP => {
                    open.push(Reading::of(self, &child).await?);
                }
                Next::Child(_) => {}
            }
        }
        Ok(evidence)
    }
}

impl Evidence {
    /// Returns the place of a tool in the list; it is added by its first call.
    fn tool(&mut self, name: &str) -> usize {
        let found = self.tools.iter().position(|tool| tool.name == name);
        found.unwrap_or_else(|| {
            self.tools.push(ToolEvidence {
                name: name.to_owned(),
                ids: Vec::new(),
                has_returned: false,
                has_failed: false,
            });
            self.tools.len() - 1
        })
    }

    fn asked(&mut self, name: &str) {
        if self.approvals.iter().all(|known| known != name) {
            self.approvals.push(name.to_owned());
        }
    }

    fn ended(&mut self, tool: usize, is_error: bool) {
        if let Some(tool) = self.tools.get_mut(tool) {
            tool.has_returned = true;
            tool.has_failed |= is_error;
        }
    }
}

/// What follows in a journal.
enum Next {
    Over,
    /// A run that was called.
    Child(RunId),
}

/// A journal that is being read.
struct Reading {
    run: RunId,
    flow: String,
    /// The names of the flow's packaged steps for models, by id.
    packaged: HashMap<String, String>,
    entries: std::vec::IntoIter<Entry>,
    waits: Vec<WaitRow>,
    steps: HashMap<String, Step>,
    /// The calls that models asked for and that no step performs yet.
    calls: Vec<Call>,
    /// The runs that were read.
    children: HashSet<RunId>,
}

/// A step of the journal.
#[derive(Default)]
struct Step {
    /// The tool that it is a call of.
    tool: Option<usize>,
    request: String,
    is_nested: bool,
}

/// A call that a model asked for.
struct Call {
    /// The path of the agent.
    above: String,
    id: Option<String>,
    name: String,
    tool: usize,
}

impl Reading {
    async fn of(engine: &Engine, run: &RunId) -> Result<Reading, EngineError> {
        let row = engine.run_row(run).await?;
        let stores = engine.stores();
        let filter = WaitFilter {
            run: Some(run.clone()),
            all: true,
            ..WaitFilter::default()
        };
        let program = stores.runs.program(&row.program).await?;
        let flow = program.and_then(|program| {
            let session = engine.session();
            crate::flow::reload(&session, &program).loaded
        });
        let packaged = flow.into_iter().flat_map(|loaded| {
            let steps = loaded.flow.packaged.clone();
            let named = steps.into_iter();
            named.map(|step| (step.id.to_string(), step.tool_name.to_string()))
        });
        Ok(Reading {
            packaged: packaged.collect(),
            entries: stores.journal.load(run).await?.into_iter(),
            waits: stores.waits.list(filter).await?,
            flow: row.flow,
            run: run.clone(),
            steps: HashMap::new(),
            calls: Vec::new(),
            children: HashSet::new(),
        })
    }

    /// Reads on, up to the call of another run.
    fn next(&mut self, evidence: &mut Evidence) -> Next {
        while let Some(entry) = self.entries.next() {
            if let Some(child) = self.read(&entry, evidence) {
                return Next::Child(child);
            }
        }
        Next::Over
    }

    fn read(&mut self, entry: &Entry, evidence: &mut Evidence) -> Option<RunId> {
        let is_step = !matches!(
            entry.kind,
            EntryKind::Note | EntryKind::Log | EntryKind::Reuse | EntryKind::Cost
        );
        if !is_step {
            return None;
        }
        let mut step = match self.steps.remove(&entry.path) {
            Some(step) => step,
            None => self.first(entry, evidence),
        };
        if step.tool.is_none() && !step.is_nested && self.is_outside(entry, &step) {
            step.tool = Some(evidence.tool(&self.name(entry, &step)));
        }
        let mut child = None;
        match (entry.kind, step.tool) {
            (EntryKind::Timer, _) => child = self.timer(entry, &step, evidence),
            (EntryKind::Result, _) => self.result(entry, &step, evidence),
            (EntryKind::Error, Some(tool)) => evidence.ended(tool, true),
            (_, _) => {}
        }
        self.steps.insert(entry.path.clone(), step);
        child
    }

    /// Takes in the first entry of a step.
    fn first(&mut self, entry: &Entry, evidence: &mut Evidence) -> Step {
        let above = entry.path.rsplit_once('/').map(|(above, _)| above);
        let mut step = Step {
            request: entry.request.clone().unwrap_or_default(),
            is_nested: above.is_some_and(|above| self.is_step(above)),
            tool: None,
        };
        let name = step_id(&entry.path);
        let is_turn = entry.what == "llm" && name == TURN;
        if is_turn || (!step.is_nested && matches!(&*entry.what, "agent" | "llm")) {
            self.asks(entry, &step.request, evidence);
        }
        if !step.is_nested || is_turn {
            return step;
        }
        let of_agent = |call: &Call| call.name == name && Some(&*call.above) == above;
        // A call that was approved is performed by a later step of the flow.
        let later = |call: &Call| {
            let name_is_asked = evidence.approvals.contains(&call.name);
            call.name == name && name_is_asked
        };
        let found = self.calls.iter().position(of_agent);
        if let Some(at) = found.or_else(|| self.calls.iter().position(later)) {
            let call = self.calls.remove(at);
            evidence.has_open_calls &= self.calls.iter().any(|call| !call.is_settled(evidence));
            step.tool = Some(call.tool);
            let ids = other_ids(entry, &step.request);
            if let Some(tool) = evidence.tools.get_mut(call.tool) {
                let new = ids.into_iter().filter(|id| !tool.ids.contains(id));
                let new: Vec<String> = new.collect();
                tool.ids.extend(new);
            }
        }
        step
    }

    /// Tells whether a path is that of a step, in whichever attempt.
    fn is_step(&self, path: &str) -> bool {
        let first = path.rsplit_once('~').filter(|(_, number)| {
            !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
        });
        self.steps.contains_key(path)
            || first.is_some_and(|(first, _)| self.steps.contains_key(first))
    }

    /// Tells whether a step of the flow is packaged or changes something outside.
    fn is_outside(&self, entry: &Entry, step: &Step) -> bool {
        let is_packaged = packaged_request(step.request.clone()).0.is_some();
        let asks_in_between = entry.kind == EntryKind::Begin && entry.what == "mcp";
        is_packaged || entry.kind == EntryKind::Intent || asks_in_between || is_question(entry)
    }

    /// Returns the name of a step of the flow as a tool.
    fn name(&self, entry: &Entry, step: &Step) -> String {
        let (packaged, _) = packaged_request(step.request.clone());
        let packaged = packaged.map(|id| id.trim_start_matches(':').to_owned());
        let known = packaged.as_ref().and_then(|id| self.packaged.get(id));
        let known = known.cloned().or(packaged);
        known.unwrap_or_else(|| step_id(&entry.path).to_owned())
    }

    fn timer(&mut self, entry: &Entry, step: &Step, evidence: &mut Evidence) -> Option<RunId> {
        let note = codec::decode(&entry.payload).unwrap_or(Value::Nil);
        let kind = note.get("kind").and_then(name_of)?;
        if &*kind == "child" {
            let child = RunId::from_text(note.get("run")?.as_str()?.to_string());
            return self.children.insert(child.clone()).then_some(child);
        }
        if is_question(entry) {
            match step.tool.and_then(|tool| evidence.tools.get(tool)) {
                Some(tool) => {
                    let name = tool.name.clone();
                    evidence.asked(&name);
                }
                None => evidence.asked(&self.name(entry, step)),
            }
        }
        if &*kind == "wait" && step.is_nested && step_id(&entry.path) == APPROVAL {
            let wait = self.waits.iter().find(|wait| wait.path == entry.path);
            let details = wait.and_then(|wait| codec::decode(&wait.details).ok());
            let shown = details.as_ref().and_then(|details| details.get("show"));
            let request = shown.and_then(|shown| shown.get("data"));
            self.asked(request, evidence);
        }
        None
    }

    /// Takes in a request for an approval.
    fn asked(&mut self, request: Option<&Value>, evidence: &mut Evidence) {
        let actions = request.and_then(|request| request.get("actions"));
        for action in actions.and_then(items).unwrap_or_default() {
            if let Some(name) = action.get("tool").and_then(Value::as_str) {
                evidence.asked(name);
            }
        }
    }

    fn result(&mut self, entry: &Entry, step: &Step, evidence: &mut Evidence) {
        if let Some(tool) = step.tool {
            evidence.ended(tool, false);
        }
        let is_agent = entry.what == "agent";
        let is_turn = !step.is_nested || step_id(&entry.path) == TURN;
        let is_loop = is_agent || (entry.what == "llm" && self.has_turns(&entry.path));
        if !is_loop && (entry.what != "llm" || !is_turn) {
            return;
        }
        let reply = codec::decode(&entry.payload).unwrap_or(Value::Nil);
        if is_loop {
            self.loop_ended(entry, &reply, evidence);
        } else {
            self.replied(entry, (step, &reply), evidence);
        }
    }

    fn has_turns(&self, path: &str) -> bool {
        let turn = format!("{path}/{TURN}");
        let later = format!("{path}~");
        let mut paths = self.steps.keys();
        self.steps.contains_key(&turn)
            || paths.any(|path| path.starts_with(&later) && step_id(path) == TURN)
    }

    /// Takes in the first request to a model, by which it is known if it does not answer.
    fn asks(&self, entry: &Entry, request: &str, evidence: &mut Evidence) {
        evidence.model.get_or_insert_with(|| ModelEvidence {
            model: named(request, ":model "),
            provider: named(request, ":provider "),
            connection: named(request, ":connection "),
            flow: self.flow.clone(),
            place: (self.run.clone(), entry.path.clone()),
            has_answered: false,
        });
    }

    /// Takes in the reply of a model.
    fn replied(&mut self, entry: &Entry, (step, reply): (&Step, &Value), evidence: &mut Evidence) {
        let text = |key: &str| reply.get(key).and_then(name_of);
        let text = |key: &str| text(key).map(|text| text.to_string());
        let content = match reply.get("content") {
            Some(Value::Text(text)) => Some(text.to_string()),
            None | Some(Value::Nil) => None,
            Some(data) => codec::encode(data).ok(),
        };
        if let Some(content) = content.filter(|content| !content.trim().is_empty()) {
            evidence.text = Some(content);
        }
        let is_of = |model: &ModelEvidence| {
            let (run, path) = &model.place;
            let below = entry.path.strip_prefix(&**path);
            let is_inside =
                below.is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', '~']));
            !model.has_answered && *run == self.run && is_inside
        };
        if let Some(model) = evidence.model.as_mut().filter(|model| is_of(model)) {
            let connection = text("connection").or_else(|| named(&step.request, ":connection "));
            model.model = text("model").or(model.model.take());
            model.provider = text("provider").or(model.provider.take());
            model.connection = connection.or(model.connection.take());
            model.has_answered = true;
        }
        let above = entry.path.rsplit_once('/').map_or("", |(above, _)| above);
        for call in reply.get("tool-calls").and_then(items).unwrap_or_default() {
            let Some(name) = call.get("name").and_then(name_of) else {
                continue;
            };
            let id = call.get("tool-call-id").or(call.get("id"));
            self.calls.push(Call {
                above: above.to_owned(),
                id: id.and_then(Value::as_str).map(|id| id.to_string()),
                tool: evidence.tool(&name),
                name: name.to_string(),
            });
        }
    }

    /// Takes in the end of a conversation: calls may have been refused, or left to others.
    fn loop_ended(&mut self, entry: &Entry, result: &Value, evidence: &mut Evidence) {
        let request = result.get("approval-request").filter(|it| !it.is_nil());
        if let Some(request) = request {
            self.asked(Some(request), evidence);
            evidence.has_open_calls = true;
        }
        let above = |call: &Call| {
            let later = call.above.strip_prefix(&*entry.path);
            later.is_some_and(|rest| rest.is_empty() || rest.starts_with('~'))
        };
        for record in result.get("tool-calls").and_then(items).unwrap_or_default() {
            let id = record.get("tool-call-id").and_then(Value::as_str);
            let name = record.get("name").and_then(name_of).unwrap_or_default();
            let is_same = |call: &Call| {
                above(call)
                    && match (&call.id, &id) {
                        (Some(call), Some(id)) => *call == **id,
                        _ => call.name == *name,
                    }
            };
            let found = self.calls.iter().position(is_same);
            let Some(success) = record.get("success") else {
                // The result is to come from the flow or from outside.
                evidence.has_open_calls |= found.is_some();
                continue;
            };
            // A call with wrong arguments leads to no step, so the step of another call may have taken its place.
            let tool = match found {
                Some(at) => self.calls.remove(at).tool,
                None => evidence.tool(&name),
            };
            if !success.is_truthy() && !is_prevented(&record) {
                evidence.ended(tool, true);
            }
        }
    }
}

impl Call {
    /// Tells whether a call does not keep the run from ending.
    fn is_settled(&self, evidence: &Evidence) -> bool {
        !evidence.approvals.contains(&self.name)
    }
}

/// Tells whether an entry asks a person about a step.
fn is_question(entry: &Entry) -> bool {
    if entry.kind != EntryKind::Timer {
        return false;
    }
    let note = codec::decode(&entry.payload).unwrap_or(Value::Nil);
    let kind = note.get("kind").and_then(name_of);
    matches!(kind.as_deref(), Some("confirm" | "review"))
}

/// Returns the other names of the tool that a step is a call of.
fn other_ids(entry: &Entry, request: &str) -> Vec<String> {
    let (packaged, config) = packaged_request(request.to_owned());
    let packaged = packaged.map(|id| id.trim_start_matches(':').to_owned());
    let on_server = named(&config, ":tool ").filter(|_| entry.what == "mcp");
    packaged.into_iter().chain(on_server).collect()
}

/// Returns the string or the keyword after a key in the beginning of a request.
fn named(request: &str, key: &str) -> Option<String> {
    let (_, rest) = request.split_once(key)?;
    if let Some(text) = rest.strip_prefix('"') {
        let (text, _) = text.split_once('"')?;
        return (!text.contains('\\')).then(|| text.to_owned());
    }
    let rest = rest.strip_prefix(':')?;
    let end = rest.find([' ', ',', '}', ']', ')']).unwrap_or(rest.len());
    (end > 0).then(|| rest[..end].to_owned())
}
