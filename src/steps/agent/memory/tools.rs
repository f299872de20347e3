//! The tools that a memory provides: their names, arguments and answers.

use std::rc::Rc;

use flowstone_flow::step::{NestedRequest, StepError};
use flowstone_lang::value::Value;
use serde_json::{Value as Json, json};

use super::super::notes::{facts, plain, shortened};
use super::super::output::keep;
use super::super::tool::{Tool, ToolKind, ToolStep};
use super::plan;
use super::{MAX_LIMIT, Memory, Note, TYPES, condition, instant, rank, rows_of, text_of};
use crate::fields::Fields;
use crate::json::{items, name_text};
use crate::text::brief;

pub(super) const CHECKPOINT: &str = "memory_checkpoint";
pub(super) const PLAN: &str = "memory_plan";
const RECALL: &str = "memory_recall";
const RECORD: &str = "memory_record";
/// All tools of the memory.
pub(in super::super) const TOOLS: &[&str] = &[CHECKPOINT, PLAN, RECALL, RECORD];

/// The types that a model may record.
const RECORDED: &[&str] = &["decision", "observation", "working-state"];
const MOST_CONTENT: usize = 8_000;
const MOST_KEY: usize = 200;
/// Maximum number of matching rows that are ranked.
const RANKED: usize = 50;
/// Maximum number of characters of all contents of an answer, shared by its rows.
const MOST_TOLD: usize = 40_000;
/// Minimum share of a row.
const LEAST_TOLD: usize = 500;

impl Memory {
    /// Returns the tools that the agent gets.
    pub(crate) fn tools(self: &Rc<Self>) -> Vec<Tool> {
        let mut tools = vec![
            self.tool(
                RECALL,
                "Looks up what was remembered, newest or best fitting first. Without arguments: the newest.",
                recall(),
            ),
            self.tool(
                RECORD,
                "Remembers something for later runs: a fact (observation), a choice and its reasons (decision), or how \
                 far the work is (working-state).",
                record(),
            ),
        ];
        if let Some(plan) = &self.plan {
            tools.push(self.tool(
                PLAN,
                "Declares what you will do, in order, or a new version of it: steps that are done stay done.",
                plan.borrow().schema(),
            ));
            tools.push(self.tool(
                CHECKPOINT,
                "Marks a step of your plan as done.",
                plan::checkpoint(),
            ));
        }
        tools
    }

    fn tool(self: &Rc<Self>, name: &'static str, description: &str, parameters: Json) -> Tool {
        let (asks, answers) = (Rc::clone(self), Rc::clone(self));
        Tool {
            name: name.into(),
            step: name.into(),
            kind: ToolKind::Memory,
            description: description.to_owned(),
            parameters,
            ops: Vec::new(),
            call: Rc::new(move |arguments| asks.ask(name, arguments)),
            // It only writes the agent's own notes.
            mutates: Rc::new(|_| false),
            needs_approval: Rc::new(|_| false),
            answer: Rc::new(move |arguments, value| answers.answer(name, arguments, &value)),
        }
    }

    /// Handles a call of one of the tools; errors are for the model to correct.
    fn ask(&self, name: &str, arguments: &Value) -> Result<ToolStep, StepError> {
        let arguments = match arguments {
            Value::Nil => facts([]),
            given => given.clone(),
        };
        let step = Fields::nested(name, &arguments).and_then(|fields| match name {
            RECALL => self.recall(fields),
            RECORD => self.record(fields),
            PLAN => self.declare(fields),
            _ => self.check_off(fields),
        });
        let step = step.map_err(|error| StepError {
            code: "E0853",
            kind: "invalid",
            ..error
        })?;
        Ok(ToolStep {
            kind: name_text(&step.kind).unwrap_or_default().into(),
            config: step.config,
        })
    }

    /// Converts the result of a tool's step to the answer.
    fn answer(&self, name: &str, arguments: &Value, value: &Value) -> Value {
        match name {
            RECALL => self.recalled(arguments, value),
            RECORD => facts([
                ("recorded", Value::Bool(true)),
                ("type", arguments.get("type").cloned().unwrap_or(Value::Nil)),
            ]),
            _ => self.plan_value(),
        }
    }

    fn plan_value(&self) -> Value {
        let plan = self.plan.as_ref();
        plan.map_or(Value::Nil, |plan| plan.borrow().to_value())
    }

    fn recall(&self, fields: Fields<'_>) -> Result<NestedRequest, StepError> {
        fields.only(&["key", "limit", "query", "type"])?;
        let types = self.asked_types(fields)?;
        let mut more = Vec::new();
        if let Some(key) = fields.text("key")?.filter(|key| !key.is_empty()) {
            more.push(condition("key", "=", Value::from(key)));
        }
        let words = rank::words(fields.text("query")?.unwrap_or_default());
        if !words.is_empty() {
            let has = |word: &String| {
                let pattern = Value::from(format!("%{word}%"));
                ["content", "key"].map(|column| condition(column, "like", pattern.clone()))
            };
            let any = words.iter().flat_map(has);
            more.push(Value::vector([Value::from("or")].into_iter().chain(any)));
        }
        let limit = self.limit(fields)?;
        let config = self.query(
            &self.recalled_types(&types),
            &more,
            if words.is_empty() { limit } else { RANKED },
        );
        Ok(NestedRequest::new("table", RECALL, config).of_author())
    }

    fn limit(&self, fields: Fields<'_>) -> Result<usize, StepError> {
        Ok(fields
            .count("limit", 1, MAX_LIMIT)?
            .unwrap_or(self.recall_limit))
    }

    /// Reads `type`: one, or several. If the flow lists the recalled types, others are rejected.
    fn asked_types(&self, fields: Fields<'_>) -> Result<Vec<String>, StepError> {
        let given = fields
            .get("type")
            .filter(|given| given.as_str() != Some(""));
        let Some(given) = given else {
            return Ok(Vec::new());
        };
        let named = match given.as_str() {
            Some(_) => vec![given.clone()],
            None => items(given).unwrap_or_else(|| vec![given.clone()]),
        };
        let allowed: Vec<&str> = match self.types.is_empty() {
            true => TYPES.to_vec(),
            false => self.types.iter().map(String::as_str).collect(),
        };
        named.iter().map(|item| one_of(item, &allowed)).collect()
    }

    fn recalled(&self, arguments: &Value, value: &Value) -> Value {
        let fields = Fields::new(arguments);
        let words = rank::words(fields.text("query").ok().flatten().unwrap_or_default());
        let limit = self.limit(fields).unwrap_or(self.recall_limit);
        let rows = rank::ranked(rows_of(value), &words);
        let each = (MOST_TOLD / rows.len().clamp(1, limit)).max(LEAST_TOLD);
        let memories: Vec<Value> = rows
            .iter()
            .take(limit)
            .map(|row| memory(row, each))
            .collect();
        facts([
            ("count", Value::from(memories.len())),
            ("memories", Value::vector(memories)),
        ])
    }

    fn record(&self, fields: Fields<'_>) -> Result<NestedRequest, StepError> {
        fields.only(&["content", "importance", "key", "type"])?;
        let Some(type_) = fields.get("type") else {
            return Err(bad("`type` is missing").hint(format!("there are {}", RECORDED.join(", "))));
        };
        let kind = one_of(type_, RECORDED)?;
        let content = fields.text("content")?.unwrap_or_default().trim();
        if content.is_empty() {
            return Err(bad("`content` is missing").hint("give the text to remember"));
        }
        within("content", content, MOST_CONTENT)?;
        let key = fields.text("key")?.filter(|key| !key.trim().is_empty());
        within("key", key.unwrap_or_default(), MOST_KEY)?;
        let note = Note {
            kind: &kind,
            key,
            content,
            data: Value::Nil,
            importance: fields.int("importance", 1, 5)?,
        };
        let row = self.row(&note, self.now_ms.get());
        Ok(self.write(RECORD, vec![row]))
    }

    fn declare(&self, fields: Fields<'_>) -> Result<NestedRequest, StepError> {
        let Some(plan) = &self.plan else {
            return Err(bad("this agent has no plan"));
        };
        fields.only(&["steps"])?;
        let dropped = plan.borrow_mut().declare(fields, self.now_ms.get())?;
        let rows = self.plan_rows(|step| step.is_open() || dropped.contains(&step.name));
        Ok(match rows.is_empty() {
            true => keep(PLAN, self.plan_value()),
            false => self.write(PLAN, rows),
        })
    }

    fn check_off(&self, fields: Fields<'_>) -> Result<NestedRequest, StepError> {
        let Some(plan) = &self.plan else {
            return Err(bad("this agent has no plan"));
        };
        fields.only(&["note", "step"])?;
        let name = plan.borrow_mut().check_off(fields)?;
        if !plan.borrow().keeps_status {
            return Ok(keep(CHECKPOINT, self.plan_value()));
        }
        let rows = self.plan_rows(|step| step.name == name);
        Ok(self.write(CHECKPOINT, rows))
    }

    /// Returns the rows of some steps of the plan. Each step keeps its row.
    fn plan_rows(&self, wanted: impl Fn(&plan::PlanStep) -> bool) -> Vec<Value> {
        let Some(plan) = &self.plan else {
            return Vec::new();
        };
        let plan = plan.borrow();
        plan.steps
            .iter()
            .filter(|step| wanted(step))
            .map(|step| {
                let entry = format!(
                    "{}/{}/plan/{}",
                    self.origin.run, self.origin.path, step.name
                );
                let note = Note {
                    kind: "plan-step",
                    key: Some(&step.name),
                    content: &step.description,
                    data: step.state(),
                    importance: None,
                };
                self.named_row(entry, &note, step.declared_ms)
            })
            .collect()
    }
}

/// Returns what the model sees of a row, with at most `most` characters of its content.
fn memory(row: &Value, most: usize) -> Value {
    let shown = ["type", "key", "importance", "flow"];
    let mut seen: Vec<(Value, Value)> = Vec::new();
    for column in shown {
        if let Some(cell) = row.get(column).filter(|cell| !cell.is_nil()) {
            seen.push((Value::keyword(column), cell.clone()));
        }
    }
    let content = shortened(text_of(row, "content"), most);
    seen.push((Value::keyword("content"), Value::from(content)));
    if let Some(at) = instant(row) {
        seen.push((Value::keyword("created-at"), Value::from(at)));
    }
    if text_of(row, "type") == "plan-step"
        && let Some(status) = row.get("data").and_then(|data| data.get("status"))
    {
        seen.push((Value::keyword("status"), status.clone()));
    }
    Value::map(seen)
}

/// Returns the record of a run: a sentence, and counts.
pub(super) fn summary(result: &Value) -> (String, Value) {
    let int = |value: Option<&Value>| value.and_then(Value::as_int).unwrap_or(0);
    let stats = result.get("tool-call-stats").cloned().unwrap_or(Value::Nil);
    let word = |key: &str| {
        let value = result.get(key)?;
        name_text(value).or_else(|| value.as_str().map(str::to_owned))
    };
    let reason = word("abort-reason").or_else(|| word("finish-reason"));
    let reason = reason.unwrap_or_else(|| "unknown".to_owned());
    let content = match result.get("content") {
        Some(Value::Text(text)) => text.as_str().to_owned(),
        Some(Value::Nil) | None => String::new(),
        Some(data) => plain(data),
    };
    let sentence = format!(
        "{} turns, {} tool calls ({} failed), {} tokens; ended with {reason}. {}",
        int(result.get("iterations")),
        int(stats.get("call-count")),
        int(stats.get("error-count")),
        int(result.get("tokens-used")),
        shortened(content.trim(), 1_500)
    );
    let data = facts([
        ("iterations", Value::Int(int(result.get("iterations")))),
        ("tool-call-stats", stats),
        ("finish-reason", Value::from(reason)),
        ("tokens-used", Value::Int(int(result.get("tokens-used")))),
    ]);
    (sentence.trim_end().to_owned(), data)
}

fn bad(message: impl Into<String>) -> StepError {
    StepError::new("E0853", "invalid", message.into())
}

fn one_of(given: &Value, allowed: &[&str]) -> Result<String, StepError> {
    let name = name_text(given).unwrap_or_default();
    match allowed.contains(&name.as_str()) {
        true => Ok(name),
        false => Err(
            bad(format!("{} is not a type of memories here", brief(given)))
                .hint(format!("there are {}", allowed.join(", "))),
        ),
    }
}

pub(super) fn within(key: &str, text: &str, most: usize) -> Result<(), StepError> {
    match text.chars().count() {
        count if count > most => Err(bad(format!(
            "`{key}` has {count} characters, and may have {most}"
        ))),
        _ => Ok(()),
    }
}

fn recall() -> Json {
    json!({
        "type": "object",
        "properties": {
            "type": {"type": "string", "enum": TYPES, "description": "Only memories of this type."},
            "key": {"type": "string", "description": "Only memories with exactly this key."},
            "query": {"type": "string", "description": "Words to look for."},
            "limit": {"type": "integer", "minimum": 1, "maximum": MAX_LIMIT}
        },
        "additionalProperties": false
    })
}

fn record() -> Json {
    json!({
        "type": "object",
        "properties": {
            "type": {"type": "string", "enum": RECORDED},
            "content": {"type": "string", "description": "What to remember, in a few self-contained sentences."},
            "key": {"type": "string", "description": "What it is about, such as a path or a name."},
            "importance": {"type": "integer", "minimum": 1, "maximum": 5}
        },
        "required": ["type", "content"],
        "additionalProperties": false
    })
}
