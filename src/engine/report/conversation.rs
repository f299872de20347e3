//! What was said between an agent and its model, and what its tools gave: read from the steps inside it.

use flowstone_lang::value::Value;

use super::{RunReport, StepReport, StepStatus};
use crate::codec;
use crate::flow::name_of;

/// The step types whose steps inside are a conversation.
const KINDS: &[&str] = &["agent", "llm"];
/// The id of a model's turn.
pub(crate) const TURN: &str = "turn";

/// The conversation of one agent.
#[derive(Debug, Clone, PartialEq)]
pub struct Conversation {
    /// Where the agent stands in the run.
    pub path: String,
    pub title: Option<String>,
    /// What it was to do, as far as the kept part of its request tells.
    pub objective: Option<String>,
    /// In order: turns of the model, and what was performed after each.
    pub turns: Vec<Turn>,
}

/// A turn of the model, with what it led to.
#[derive(Debug, Clone, PartialEq)]
pub struct Turn {
    pub path: String,
    pub status: StepStatus,
    /// Its text, or its data as EDN; the words of the error where it failed.
    pub text: String,
    pub reasoning: Option<String>,
    pub model: Option<String>,
    pub tokens: Option<i64>,
    pub millis: Option<i64>,
    pub calls: Vec<ToolCall>,
}

/// A call of a tool that the model asked for, or a step that the agent performed for itself.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolCall {
    pub name: String,
    /// As EDN text.
    pub arguments: String,
    /// The step that it led to; `None`: it was refused, or not performed yet.
    pub step: Option<CallStep>,
    /// What was wrong with the call, if it led to no step and nobody withheld it: its arguments, or its name.
    pub error: Option<String>,
}

/// The result of a call.
#[derive(Debug, Clone, PartialEq)]
pub struct CallStep {
    pub path: String,
    /// The type of the step.
    pub kind: String,
    pub status: StepStatus,
    pub millis: Option<i64>,
    /// EDN text of what it gave, or the words of its error.
    pub gave: Option<String>,
}

impl RunReport {
    /// Returns the conversations of the run's agents, in the order in which they began.
    pub fn conversations(&self) -> Vec<Conversation> {
        let agents = self.steps.iter();
        let agents = agents.filter(|step| KINDS.contains(&&*step.kind));
        agents
            .filter_map(|agent| self.conversation(agent))
            .collect()
    }

    fn conversation(&self, agent: &StepReport) -> Option<Conversation> {
        let inside: Vec<&StepReport> = self
            .steps
            .iter()
            .filter(|step| is_directly_inside(&step.path, &agent.path))
            .collect();
        let mut turns: Vec<(Turn, Vec<&StepReport>)> = Vec::new();
        for step in inside {
            if step.kind == "llm" && step_id(&step.path) == TURN {
                turns.push((turn(step), Vec::new()));
            } else if let Some((_, steps)) = turns.last_mut() {
                steps.push(step);
            }
        }
        let mut records = records(agent);
        let turns: Vec<Turn> = turns
            .into_iter()
            .map(|(mut turn, mut steps)| {
                pair(&mut turn.calls, &mut steps, &mut records);
                // What the agent did of its own accord: it asked somebody, it kept something.
                turn.calls.extend(steps.into_iter().map(|step| ToolCall {
                    name: step_id(&step.path).to_owned(),
                    arguments: step.request.clone().unwrap_or_default(),
                    step: Some(call_step(step)),
                    error: None,
                }));
                turn
            })
            .collect();
        (!turns.is_empty()).then(|| Conversation {
            path: agent.path.clone(),
            title: agent.title.clone(),
            objective: agent.request.as_deref().and_then(objective),
            turns,
        })
    }
}

/// Tells whether a step was performed by another, in whichever attempt.
fn is_directly_inside(path: &str, outer: &str) -> bool {
    let Some((above, _)) = path.rsplit_once('/') else {
        return false;
    };
    let later = above
        .strip_prefix(outer)
        .and_then(|rest| rest.strip_prefix('~'));
    above == outer || later.is_some_and(|number| number.parse::<u32>().is_ok())
}

pub(crate) fn step_id(path: &str) -> &str {
    let last = path.rsplit_once('/').map_or(path, |(_, last)| last);
    last.split_once('#').map_or(last, |(id, _)| id)
}

/// Which one it is of the steps of its name.
pub(crate) fn occurrence(path: &str) -> u32 {
    let last = path.rsplit_once('/').map_or(path, |(_, last)| last);
    let number = last
        .split_once('#')
        .and_then(|(_, number)| number.parse().ok());
    number.unwrap_or(1)
}

fn turn(step: &StepReport) -> Turn {
    let value = step
        .result
        .as_deref()
        .and_then(|text| codec::decode(text).ok());
    let value = value
        .filter(|_| step.status == StepStatus::Done)
        .unwrap_or(Value::Nil);
    let text = |key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
    let calls = value.get("tool-calls").and_then(Value::as_vector);
    Turn {
        path: step.path.clone(),
        status: step.status,
        text: match value.get("content") {
            Some(Value::Text(text)) => text.to_string(),
            None | Some(Value::Nil) => step.error.clone().unwrap_or_default(),
            Some(data) => codec::encode(data).unwrap_or_default(),
        },
        reasoning: text("reasoning"),
        model: text("model"),
        tokens: value.get("tokens-used").and_then(Value::as_int),
        millis: millis(step),
        calls: calls
            .into_iter()
            .flat_map(|calls| calls.iter())
            .map(call)
            .collect(),
    }
}

fn call(call: &Value) -> ToolCall {
    let name = call.get("name").and_then(name_of);
    let arguments = match (call.get("arguments"), call.get("arguments-text")) {
        (Some(data), _) => codec::encode(data).unwrap_or_default(),
        (None, text) => text.and_then(Value::as_str).unwrap_or_default().to_owned(),
    };
    ToolCall {
        name: name.unwrap_or_default().to_string(),
        arguments,
        step: None,
        error: None,
    }
}

/// The calls of an ended agent, in the order in which its model asked for them.
type Records = std::collections::VecDeque<Value>;

fn records(agent: &StepReport) -> Records {
    let result = agent.result.as_deref();
    let result = result.filter(|_| agent.status == StepStatus::Done);
    let result = result.and_then(|text| codec::decode(text).ok());
    let calls = result.as_ref().and_then(|result| result.get("tool-calls"));
    let calls = calls.and_then(Value::as_vector);
    calls.map_or_else(Records::new, |calls| calls.iter().cloned().collect())
}

/// Gives the calls of a turn the steps that performed them. Steps side by side are journaled in any order; they were asked
/// for in that of their numbers.
fn pair(calls: &mut [ToolCall], steps: &mut Vec<&StepReport>, records: &mut Records) {
    for at in 0..calls.len() {
        let name = calls[at].name.clone();
        let is_next =
            |record: &&mut Value| record.get("name").and_then(name_of).as_deref() == Some(&*name);
        let record = records.front_mut().filter(is_next).cloned();
        if record.is_some() {
            records.pop_front();
        }
        let failure = record.as_ref().and_then(failure);
        let is_same = |step: &&&StepReport| step_id(&step.path) == name;
        let performed = steps.iter().filter(is_same).count();
        let asked = calls[at..].iter().filter(|call| call.name == name).count();
        let found = (0..steps.len())
            .filter(|at| step_id(&steps[*at].path) == name)
            .min_by_key(|at| occurrence(&steps[*at].path));
        // A call that failed, beside a step that did not, was not performed.
        let is_of_other = |at: &usize| {
            failure.is_some() && asked > performed && steps[*at].status == StepStatus::Done
        };
        match found.filter(|at| !is_of_other(at)) {
            Some(found) => calls[at].step = Some(call_step(steps.remove(found))),
            None => calls[at].error = failure,
        }
    }
}

/// Returns what was wrong with a call, unless it was prevented.
fn failure(record: &Value) -> Option<String> {
    let success = record.get("success")?;
    if success.is_truthy() || is_prevented(record) {
        return None;
    }
    let result = record.get("result");
    let text = result.and_then(|result| result.get("error").or(Some(result)));
    let text = text.filter(|text| !text.is_nil());
    Some(text.map_or_else(String::new, |text| match text {
        Value::Text(text) => text.to_string(),
        data => codec::encode(data).unwrap_or_default(),
    }))
}

/// Tells whether a call was prevented, which is not an error of the tool. `record` is the entry of an agent's `:tool-calls`.
pub(crate) fn is_prevented(record: &Value) -> bool {
    record.get("prevented?").is_some_and(Value::is_truthy)
}

fn call_step(step: &StepReport) -> CallStep {
    CallStep {
        path: step.path.clone(),
        kind: step.kind.clone(),
        status: step.status,
        millis: millis(step),
        gave: step.result.clone(),
    }
}

fn millis(step: &StepReport) -> Option<i64> {
    Some((step.ended_ms? - step.started_ms).max(0))
}

/// Finds the objective in a request of which only the beginning may be kept.
fn objective(request: &str) -> Option<String> {
    let (_, rest) = request.split_once(":objective \"")?;
    let mut text = String::new();
    let mut letters = rest.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '"' => break,
            '\\' => match letters.next() {
                Some('n') => text.push('\n'),
                Some('t') => text.push('\t'),
                Some(other) => text.push(other),
                None => break,
            },
            other => text.push(other),
        }
    }
    Some(text)
}
