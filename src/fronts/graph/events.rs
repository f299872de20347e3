//! The events of a graph run: a pure fold over the rows of the run's feed.
//!
//! A row of the journal gives no event, one or several. Their numbers count from 1 without gaps, and are the same whenever
//! the rows are read, because rows are only added. Node events follow from the sequence of the nodes: a node begins when the
//! one before it ends.

use std::collections::HashMap;

use flowstone_engine::codec;
use flowstone_engine::ports::{Entry, EntryKind, Event, EventKind, FeedItem, RunRow, RunStatus};
use flowstone_flow::flow::{Flow, name_of};
use flowstone_lang::value::Value;
use flowstone_model::json::{items, to_json};
use serde_json::{Map, Value as Json, json};

use super::audit::Call;

/// The key under which an input that is not an object is kept.
pub const BARE_INPUT: &str = "graph/value";
/// The kind of the exceptions that `flow.graph` throws.
const KIND: &str = "graph";

/// An event of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct RunEvent {
    /// The number in the run, counted from 1.
    pub seq: i64,
    /// The type, such as `node_start`.
    pub kind: &'static str,
    pub at_ms: i64,
    pub data: Map<String, Json>,
}

/// The nodes that a run visits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chain {
    /// The agent, or the file that the spec came from.
    pub agent: String,
    nodes: Vec<ChainNode>,
    max_steps: usize,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct ChainNode {
    id: String,
    kind: NodeKind,
    /// The key of the state that gets the node's result; `None` for an end, and in flows of earlier builds.
    output_key: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NodeKind {
    Llm,
    Tool,
    End,
}

/// An open wait for a person, of the run or of a run that a tool call started.
#[derive(Debug, Clone, PartialEq)]
pub struct Pause {
    /// The id of the wait, which is the token of the answer.
    pub wait: String,
    /// The payload of `run_paused`.
    pub payload: Json,
    /// A person has answered, but the run has not continued yet.
    pub is_answered: bool,
    /// The run of the wait, if a tool call started it.
    child: Option<String>,
    since_ms: i64,
}

/// The state of a run, folded from its rows so far.
#[derive(Debug)]
pub struct Projection {
    chain: Chain,
    seq: i64,
    /// The number of nodes that have begun.
    begun: usize,
    /// The number of nodes that have ended.
    ended: usize,
    /// Calls that have not ended, by id.
    open: HashMap<String, Call>,
    calls: Vec<Call>,
    /// The payload of a wait that is about to open.
    asked: Option<Json>,
    /// The waits that are open, the oldest first.
    pauses: Vec<Pause>,
    /// The calls of the runs that they started, by the id of the run.
    children: HashMap<String, String>,
    /// The values of the templates' `state`, as far as they are known.
    state: Option<Map<String, Json>>,
    is_over: bool,
    cost_usd: f64,
    /// How many processes ended while they executed the run.
    orphaned: u32,
}

impl Chain {
    /// Reads the nodes from the definition of a flow; `None` if the flow was not compiled from a graph spec.
    pub fn of(flow: &Flow) -> Option<Chain> {
        let definition = &flow.definition;
        let rows = items(definition.get("graph/nodes")?)?;
        let nodes = rows.iter().map(|row| {
            let row = items(row)?;
            let kind = match &*name_of(row.get(1)?)? {
                "llm" => NodeKind::Llm,
                "tool" => NodeKind::Tool,
                "end" => NodeKind::End,
                _ => return None,
            };
            Some(ChainNode {
                id: name_of(row.first()?)?.to_string(),
                kind,
                output_key: row.get(2).and_then(name_of).map(|key| key.to_string()),
            })
        });
        let max_steps = definition.get("graph/max-steps").and_then(Value::as_int);
        let agent = definition.get("graph/agent").and_then(name_of);
        Some(Chain {
            agent: agent.map_or_else(|| flow.slug.to_string(), |agent| agent.to_string()),
            nodes: nodes.collect::<Option<_>>()?,
            max_steps: max_steps
                .and_then(|most| usize::try_from(most).ok())
                .unwrap_or(usize::MAX),
        })
    }
}

impl Projection {
    pub fn new(chain: Chain) -> Projection {
        Projection {
            chain,
            seq: 0,
            begun: 0,
            ended: 0,
            open: HashMap::new(),
            calls: Vec::new(),
            asked: None,
            pauses: Vec::new(),
            children: HashMap::new(),
            state: None,
            is_over: false,
            cost_usd: 0.0,
            orphaned: 0,
        }
    }

    /// Returns the events of a row. `row` is the run as it is now; it is used where the row says that the run was created or
    /// ended.
    pub fn take(&mut self, item: &FeedItem, row: &RunRow) -> Vec<RunEvent> {
        let mut out = Vec::new();
        match item {
            FeedItem::Entry(entry) => self.entry(entry, &mut out),
            FeedItem::Event(event) => self.event(event, row, &mut out),
        }
        out
    }

    /// Returns the name of the agent.
    pub fn agent(&self) -> &str {
        &self.chain.agent
    }

    /// Returns the first open wait, if a person has to answer one.
    pub fn pause(&self) -> Option<&Pause> {
        self.pauses.first()
    }

    /// Returns the fields of the call that a wait is about: that which started the wait's run, or the call in progress.
    pub fn call_of(&self, run: Option<&str>) -> Map<String, Json> {
        let call = run.and_then(|run| self.children.get(run));
        let call = call.and_then(|id| self.open.get(id));
        call.map_or_else(|| self.underway(), Call::fields)
    }

    /// Returns the state of the run: the members of its input, and the results of its nodes so far.
    pub fn state(&self) -> Option<&Map<String, Json>> {
        self.state.as_ref()
    }

    /// Returns the calls of tools so far, in the order of their beginning.
    pub fn calls(&self) -> &[Call] {
        &self.calls
    }

    /// Returns the call that began last of those that have not ended, as in its events; empty if no call is in progress.
    pub fn underway(&self) -> Map<String, Json> {
        let mut calls = self.calls.iter();
        let call = calls.rfind(|call| self.open.contains_key(&call.id));
        call.map(Call::fields).unwrap_or_default()
    }

    /// Returns the node that is visited or was visited last, with the number of the visit.
    pub fn node(&self) -> Option<(&str, usize)> {
        let node = self.chain.nodes.get(self.begun.checked_sub(1)?)?;
        Some((&node.id, self.begun))
    }

    /// Returns the number of attempts at the run: 1, and one more for each process that ended while it executed the run.
    pub fn attempt(&self) -> u32 {
        self.orphaned + 1
    }

    /// Returns the cost of the run's model calls so far, in dollars.
    pub fn cost_usd(&self) -> f64 {
        self.cost_usd
    }

    fn push(&mut self, at_ms: i64, kind: &'static str, data: Json, out: &mut Vec<RunEvent>) {
        self.seq += 1;
        let data = match data {
            Json::Object(members) => members,
            _ => Map::new(),
        };
        out.push(RunEvent {
            seq: self.seq,
            kind,
            at_ms,
            data,
        });
    }

    fn begin_node(&mut self, at_ms: i64, out: &mut Vec<RunEvent>) {
        let Some(ChainNode { id, .. }) = self.chain.nodes.get(self.begun) else {
            return;
        };
        // A visit over the limit does not begin.
        if self.begun < self.chain.max_steps {
            let step = self.begun + 1;
            let data = json!({"node_id": id, "step": step});
            self.begun = step;
            self.push(at_ms, "node_start", data, out);
        }
    }

    fn end_node(&mut self, at_ms: i64, out: &mut Vec<RunEvent>) {
        let Some(ChainNode { id, .. }) = self.chain.nodes.get(self.ended) else {
            return;
        };
        let step = self.ended + 1;
        let data = json!({"node_id": id, "step": step});
        self.ended = step;
        self.push(at_ms, "node_end", data, out);
        self.begin_node(at_ms, out);
    }

    fn kind(&self) -> Option<NodeKind> {
        self.chain.nodes.get(self.ended).map(|node| node.kind)
    }

    /// Sets the result of the node that ends.
    fn set_result(&mut self, result: Json) {
        let node = self.chain.nodes.get(self.ended);
        if let Some(key) = node.and_then(|node| node.output_key.clone()) {
            self.state.get_or_insert_default().insert(key, result);
        }
    }

    fn entry(&mut self, entry: &Entry, out: &mut Vec<RunEvent>) {
        match (entry.kind, &*entry.what) {
            (EntryKind::Log, "flow/emit") => {
                let record = codec::decode(&entry.payload).unwrap_or(Value::Nil);
                let name = record.get("name").and_then(name_of);
                let data = record.get("data").map_or(Json::Null, as_json);
                match name.as_deref() {
                    Some("graph.call") => self.call_began(entry.at_ms, &data, out),
                    Some("graph.called") => self.call_ended(entry.at_ms, &data, out),
                    Some("graph.pause") => self.asked = Some(data),
                    Some(_) | None => {}
                }
            }
            (EntryKind::Result, "llm") if !entry.path.contains('/') => {
                let reply = codec::decode(&entry.payload).unwrap_or(Value::Nil);
                self.turn_ended(entry.at_ms, &reply, out);
            }
            (EntryKind::Timer, _) => self.run_called(entry),
            _ => {}
        }
    }

    /// Notes which call has started a run.
    fn run_called(&mut self, entry: &Entry) {
        let note = codec::decode(&entry.payload).unwrap_or(Value::Nil);
        let step = entry.path.rsplit('/').next().unwrap_or_default();
        let call = self.open.values().find(|call| call.is_of_step(step));
        if let (Some(run), Some(call)) = (note.get("run").and_then(Value::as_str), call) {
            self.children.insert(run.to_owned(), call.id.clone());
        }
    }

    fn turn_ended(&mut self, at_ms: i64, reply: &Value, out: &mut Vec<RunEvent>) {
        let usage = reply.get("usage");
        let count = |key: &str| {
            let tokens = usage
                .and_then(|usage| usage.get(key))
                .and_then(Value::as_int);
            tokens.unwrap_or(0)
        };
        let (input, output) = (count("prompt-tokens"), count("completion-tokens"));
        let data = json!({
            "input_tokens": input,
            "output_tokens": output,
            "prompt": input,
            "completion": output,
            "prompt_tokens": input,
            "completion_tokens": output,
            "total_tokens": input + output,
            "node_id": self.node().map(|(id, _)| id),
            "model": reply.get("model").map_or(Json::Null, as_json),
        });
        if let Some(dollars) = reply
            .get("cost-usd")
            .and_then(flowstone_model::json::number_float)
        {
            self.cost_usd += dollars;
        }
        self.push(at_ms, "llm_token_usage", data, out);
        let calls = reply.get("tool-calls").and_then(items).unwrap_or_default();
        if calls.is_empty() && self.kind() == Some(NodeKind::Llm) {
            self.set_result(reply.get("content").map_or(Json::Null, as_json));
            self.end_node(at_ms, out);
        }
    }

    fn call_began(&mut self, at_ms: i64, data: &Json, out: &mut Vec<RunEvent>) {
        let call = Call::began(at_ms, data, self.node().map(|(id, _)| id.to_owned()));
        let fields = call.fields();
        self.open.insert(call.id.clone(), call.clone());
        self.calls.push(call);
        self.push(at_ms, "tool_call_start", Json::Object(fields), out);
    }

    fn call_ended(&mut self, at_ms: i64, data: &Json, out: &mut Vec<RunEvent>) {
        let id = data.get("id").and_then(Json::as_str).unwrap_or_default();
        let Some(mut call) = self.open.remove(id) else {
            return;
        };
        call.end(at_ms, data);
        let mut fields = call.fields();
        fields.extend(call.outcome(data));
        let is_ok = call.status.as_deref() == Some("ok");
        let result = data.get("result").cloned().unwrap_or(Json::Null);
        if is_ok && call.is_interrupt {
            let state = self.state.get_or_insert_default();
            state.insert("human_input".to_owned(), result.clone());
        }
        self.pauses.retain(|pause| pause.call() != Some(id));
        self.children.retain(|_, call| call != id);
        if let Some(known) = self.calls.iter_mut().rfind(|known| known.id == call.id) {
            *known = call;
        }
        self.push(at_ms, "tool_call_end", Json::Object(fields), out);
        if is_ok && self.kind() == Some(NodeKind::Tool) {
            self.set_result(result);
            self.end_node(at_ms, out);
        }
    }

    fn event(&mut self, event: &Event, row: &RunRow, out: &mut Vec<RunEvent>) {
        let at_ms = event.at_ms;
        match event.kind {
            EventKind::RunCreated => {
                let input = input_of(row);
                self.state = Some(input.as_object().cloned().unwrap_or_default());
                let data = json!({"input": input});
                self.push(at_ms, "run_start", data, out);
            }
            EventKind::RunStarted => self.begin_node(at_ms, out),
            EventKind::RunResumed => self.pauses.retain(|pause| !pause.is_answered),
            EventKind::WaitOpened => self.paused(event, out),
            EventKind::WaitAnswered | EventKind::WaitTimedOut => self.answered(event),
            EventKind::RunCompleted => {
                if self.kind() == Some(NodeKind::End) {
                    self.end_node(at_ms, out);
                }
                let data = json!({"output": output_of(row)});
                self.over(at_ms, "run_end", data, out);
            }
            EventKind::RunFailed | EventKind::RunTimedOut => {
                let data = failure_of(row);
                let why = data["error"].as_str().unwrap_or_default();
                let why = format!("the run failed before the call had ended: {why}");
                self.end_calls(at_ms, &why, out);
                self.over(at_ms, "run_failed", data, out);
            }
            EventKind::RunCancelled | EventKind::RunTerminated => {
                let why = "the run was cancelled before the call had ended";
                self.end_calls(at_ms, why, out);
                self.over(at_ms, "run_cancelled", json!({}), out);
            }
            EventKind::RunOrphaned => self.orphaned += 1,
            EventKind::RunContinued
            | EventKind::RunCancelling
            | EventKind::JobClaimed
            | EventKind::JobProgress => {}
        }
    }

    fn paused(&mut self, event: &Event, out: &mut Vec<RunEvent>) {
        let data = codec::decode(&event.data).unwrap_or(Value::Nil);
        let text = |key: &str| data.get(key).and_then(Value::as_str).map(str::to_owned);
        let offered = data.get("actions").and_then(items).unwrap_or_default();
        let child = text("child");
        let mut payload = match self.asked.take_if(|_| child.is_none()) {
            Some(asked) => {
                let is_input = !event.path.ends_with(".approval");
                let call = asked.get("tool_call_id").and_then(Json::as_str);
                if let Some(call) = call.and_then(|id| self.open.get_mut(id)) {
                    call.is_interrupt = is_input;
                }
                asked
            }
            None if offered.is_empty() && child.is_none() => return,
            // A question about the step of a call, or of the run that it started, which the flow did not ask.
            None => {
                let mut payload = self.call_of(child.as_deref());
                if !offered.is_empty() {
                    let names = offered.iter().filter_map(name_of);
                    let names: Vec<String> = names.map(|name| name.to_string()).collect();
                    payload.insert("actions".to_owned(), json!(names));
                }
                Json::Object(payload)
            }
        };
        let wait = text("wait").unwrap_or_default();
        payload["approval_token"] = json!(wait);
        let data = json!({"payload": payload});
        self.pauses.push(Pause {
            wait,
            payload,
            is_answered: false,
            child,
            since_ms: event.at_ms,
        });
        self.push(event.at_ms, "run_paused", data, out);
    }

    fn answered(&mut self, event: &Event) {
        let data = codec::decode(&event.data).unwrap_or(Value::Nil);
        let wait = data.get("wait").and_then(Value::as_str);
        let is_it = |pause: &Pause| wait.is_none_or(|wait| wait == pause.wait);
        let Some(at) = self.pauses.iter().position(is_it) else {
            return;
        };
        let pause = &mut self.pauses[at];
        pause.is_answered = true;
        let millis = event.at_ms - pause.since_ms;
        let id = pause.call().map(str::to_owned);
        // The run of the call continues by itself.
        if pause.child.is_some() {
            self.pauses.remove(at);
        }
        if let Some(call) = id.and_then(|id| self.open.get_mut(&id)) {
            call.paused(millis);
        }
    }

    /// Ends the calls that are in progress when the run ends.
    fn end_calls(&mut self, at_ms: i64, why: &str, out: &mut Vec<RunEvent>) {
        if self.is_over {
            return;
        }
        let ids = self.calls.iter().map(|call| call.id.clone());
        let ids: Vec<String> = ids.filter(|id| self.open.contains_key(id)).collect();
        for id in ids {
            for pause in &self.pauses {
                if pause.call() == Some(&id)
                    && !pause.is_answered
                    && let Some(call) = self.open.get_mut(&id)
                {
                    call.paused(at_ms - pause.since_ms);
                }
            }
            let data = json!({"id": id, "status": "error", "error": why});
            self.call_ended(at_ms, &data, out);
        }
    }

    fn over(&mut self, at_ms: i64, kind: &'static str, data: Json, out: &mut Vec<RunEvent>) {
        if !std::mem::replace(&mut self.is_over, true) {
            self.pauses.clear();
            self.push(at_ms, kind, data, out);
        }
    }
}

impl Pause {
    /// Returns the id of the call that the wait is about.
    fn call(&self) -> Option<&str> {
        self.payload.get("tool_call_id").and_then(Json::as_str)
    }
}

impl RunEvent {
    /// Tells whether this is the last event of a run.
    pub fn is_last(&self) -> bool {
        ["run_end", "run_failed", "run_cancelled"].contains(&self.kind)
    }

    /// Returns the event in a list: `{seq, type, data, created_at}`.
    pub fn to_json(&self) -> Json {
        json!({
            "seq": self.seq,
            "type": self.kind,
            "data": self.data,
            "payload": self.data,
            "created_at": flowstone_engine::feed_event::instant(self.at_ms),
        })
    }
}

/// Returns a value as JSON, or as text if JSON cannot represent it.
fn as_json(value: &Value) -> Json {
    to_json(value).unwrap_or_else(|_| codec::encode(value).map_or(Json::Null, Json::String))
}

/// Returns the input of a run.
pub fn input_of(row: &RunRow) -> Json {
    let input = codec::decode(&row.input).unwrap_or(Value::Nil);
    match input.get(BARE_INPUT) {
        Some(bare) => as_json(bare),
        None => as_json(&input),
    }
}

/// Returns the output of a completed run.
pub fn output_of(row: &RunRow) -> Json {
    let result = row
        .result
        .as_deref()
        .and_then(|text| codec::decode(text).ok());
    result.map_or(Json::Null, |value| as_json(&value))
}

/// Returns `{error, reason}` of a failed run.
pub fn failure_of(row: &RunRow) -> Json {
    if row.status == RunStatus::TimedOut {
        return json!({"error": "the run took longer than it may", "reason": "timeout"});
    }
    let failure = row
        .error
        .as_deref()
        .and_then(|text| codec::decode(text).ok());
    let Some(Value::Exception(error)) = failure.as_ref().and_then(|it| it.get("error")) else {
        return json!({"error": "the run failed", "reason": "internal"});
    };
    let is_own = error.data.get("kind").and_then(name_of).as_deref() == Some(KIND);
    let reason = error
        .data
        .get("reason")
        .and_then(name_of)
        .filter(|_| is_own);
    let mut data = json!({
        "error": error.display_text().to_string(),
        "reason": reason.as_deref().unwrap_or("internal"),
    });
    if is_own && let Some(node) = error.data.get("node").and_then(name_of) {
        data["node_id"] = json!(&*node);
    }
    data
}
