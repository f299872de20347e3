//! `:evaluate` of an agent: a second model call scores the answer, under `:evaluation` of the result.
//!
//! It is a nested `:llm` step with the agent's connection. A failed evaluation never loses the answer.

use flowstone_flow::step::{Field, FieldType, NestedRequest, StepError};
use flowstone_lang::value::Value;

use super::notes::{facts, plain, shortened, with};
use crate::fields::Fields;
use crate::json::{items, name_text};

/// The keys of `:evaluate`.
pub(super) const FIELD: FieldType = FieldType::Either(&[
    FieldType::Bool,
    FieldType::Keys(&[
        Field::optional(
            "criteria",
            FieldType::List(&FieldType::Name),
            "The criteria to score. Default `[:relevance :completeness :accuracy]`.",
        )
        .or_nil(),
        Field::optional(
            "model",
            FieldType::Text,
            "The model that scores. Default: the agent's.",
        )
        .or_nil(),
        Field::optional(
            "persist-to-memory",
            FieldType::Bool,
            "Whether the scores are stored as a row of the `:memory`.",
        )
        .or_nil(),
    ]),
]);
/// The default criteria, each with its description.
const CRITERIA: &[(&str, &str)] = &[
    (
        "relevance",
        "it does what the objective asks, and nothing else",
    ),
    (
        "completeness",
        "nothing that the objective asks for is missing",
    ),
    (
        "accuracy",
        "what it says is right, and follows from what the tools gave",
    ),
];
const MOST_CRITERIA: usize = 20;
/// The fields that select the model; sampling options of the answer do not apply to the evaluation.
const ENDPOINT: &[&str] = &[
    "api-version",
    "auth",
    "base-url",
    "connection",
    "deployment",
    "model",
    "provider",
];
const MOST_ANSWER: usize = 40_000;
const MOST_INPUT: usize = 4_000;
/// Maximum number of tool calls shown to the evaluator, and the length of each.
const MOST_CALLS: usize = 40;
const MOST_CALL: usize = 600;

/// The parsed `:evaluate`.
#[derive(Debug)]
pub(super) struct Evaluate {
    criteria: Vec<String>,
    model: Option<String>,
    pub(super) persist_to_memory: bool,
}

impl Evaluate {
    /// Reads `:evaluate`; `None` if it is off.
    pub(super) fn read(given: &Value) -> Result<Option<Evaluate>, StepError> {
        let nothing = Value::map([]);
        let given = match given {
            Value::Bool(false) => return Ok(None),
            Value::Bool(true) => &nothing,
            given => given,
        };
        let fields = Fields::nested(":evaluate", given)?;
        Ok(Some(Evaluate {
            criteria: criteria(fields)?,
            model: fields.text("model")?.map(str::to_owned),
            persist_to_memory: fields.bool("persist-to-memory")?.unwrap_or(false),
        }))
    }

    /// Returns the step that requests the scores. `config` is that of the agent.
    pub(super) fn step(&self, config: &Value, result: &Value) -> NestedRequest {
        let mut entries: Vec<(Value, Value)> = ENDPOINT
            .iter()
            .filter_map(|key| Some((Value::keyword(key), config.get(key)?.clone())))
            .filter(|(_, value)| !value.is_nil())
            .collect();
        if let Some(model) = &self.model {
            entries.push((Value::keyword("model"), Value::from(model.as_str())));
        }
        let more = [
            ("system", Value::from(self.system())),
            ("prompt", Value::from(prompt(config, result))),
            ("output", self.output()),
            ("repair", Value::Int(1)),
        ];
        entries.extend(more.map(|(key, value)| (Value::keyword(key), value)));
        NestedRequest::new("llm", "evaluate", Value::map(entries))
    }

    fn system(&self) -> String {
        let mut text = "You judge the work of an agent. You get its objective, the calls of tools that it made, and its \
            answer. Give each criterion a whole number from 1 (bad) to 5 (excellent), an overall number from 1 to 5, and \
            a summary of one or two sentences that names the worst flaw. Judge only what is there: what the answer \
            says of itself is no evidence.\n\nCriteria:"
            .to_owned();
        for name in &self.criteria {
            text.push_str(&format!("\n- {name}"));
            if let Some((_, meaning)) = CRITERIA.iter().find(|(known, _)| known == name) {
                text.push_str(&format!(": {meaning}"));
            }
        }
        text
    }

    fn output(&self) -> Value {
        let name = |name: &str| Value::keyword(name);
        let score = || {
            let bounds = facts([("min", Value::Int(1)), ("max", Value::Int(5))]);
            Value::vector([name("int"), bounds])
        };
        let each = self
            .criteria
            .iter()
            .map(|criterion| Value::vector([Value::keyword(criterion), score()]));
        let scores = Value::vector([name("map")].into_iter().chain(each));
        let bounds = facts([("min", Value::Int(1)), ("max", Value::Int(5))]);
        let schema = Value::vector([
            name("map"),
            Value::vector([name("scores"), scores]),
            Value::vector([name("overall"), Value::vector([name("number"), bounds])]),
            Value::vector([name("summary"), name("string")]),
        ]);
        facts([
            ("format", Value::keyword("json")),
            ("name", Value::from("evaluation")),
            ("schema", schema),
        ])
    }
}

/// Returns `:evaluation` of the result, from the result of the model call.
pub(super) fn evaluation(answer: &Value) -> Value {
    let tokens = answer.get("tokens-used").cloned().unwrap_or(Value::Int(0));
    let content = answer.get("content").cloned().unwrap_or(Value::Nil);
    let evaluation = with(&content, [("evaluation-tokens", tokens)]);
    match answer.get("cost-usd") {
        Some(cost) if !cost.is_nil() => with(&evaluation, [("cost-usd", cost.clone())]),
        _ => evaluation,
    }
}

/// Summarises an evaluation in a sentence, for a row of the memory.
pub(super) fn sentence(evaluation: &Value) -> String {
    let scores = evaluation.get("scores").and_then(Value::as_map);
    let scores = scores.into_iter().flat_map(|map| {
        map.iter()
            .map(|(key, score)| {
                let name = name_text(key).unwrap_or_default();
                format!("{name} {}", plain(score))
            })
            .collect::<Vec<_>>()
    });
    let part = |key: &str| evaluation.get(key).map(plain).unwrap_or_default();
    format!(
        "Evaluation: overall {} of 5 ({}). {}",
        part("overall"),
        scores.collect::<Vec<_>>().join(", "),
        part("summary")
    )
}

fn criteria(fields: Fields<'_>) -> Result<Vec<String>, StepError> {
    let wrong = |message: String| {
        StepError::config("E0850", message)
            .hint("names, as in `:criteria [:relevance :completeness :accuracy]`")
    };
    let Some(given) = fields.get("criteria") else {
        return Ok(CRITERIA
            .iter()
            .map(|(name, _)| (*name).to_owned())
            .collect());
    };
    let given = items(given).unwrap_or_default();
    if given.is_empty() || given.len() > MOST_CRITERIA {
        return Err(wrong(format!(
            "`:evaluate :criteria` is a vector of 1 to {MOST_CRITERIA} names"
        )));
    }
    let mut names: Vec<String> = Vec::new();
    for item in &given {
        let name = name_text(item).unwrap_or_default();
        let is_plain = |char: char| char.is_ascii_alphanumeric() || "-_".contains(char);
        if name.is_empty() || name.len() > 60 || !name.chars().all(is_plain) {
            return Err(wrong(format!(
                "`:evaluate :criteria` has {}, which is not a name",
                crate::text::brief(item)
            )));
        }
        if names.contains(&name) {
            return Err(wrong(format!("`:evaluate :criteria` has `{name}` twice")));
        }
        names.push(name);
    }
    Ok(names)
}

fn prompt(config: &Value, result: &Value) -> String {
    let of = |key: &str| config.get(key).map(plain).unwrap_or_default();
    let mut text = format!("Objective:\n{}", of("objective"));
    for (key, title) in [("instructions", "Instructions"), ("inputs", "Inputs")] {
        let found = of(key);
        if !found.is_empty() {
            text.push_str(&format!("\n\n{title}:\n{}", shortened(&found, MOST_INPUT)));
        }
    }
    let calls = result.get("tool-calls").and_then(items).unwrap_or_default();
    if !calls.is_empty() {
        text.push_str("\n\nCalls of tools:");
    }
    for call in calls.iter().take(MOST_CALLS) {
        let name = call.get("name").map(plain).unwrap_or_default();
        let given = call.get("result").map(plain).unwrap_or_default();
        let failed = call.get("success") == Some(&Value::Bool(false));
        text.push_str(&format!(
            "\n- {name}{}: {}",
            if failed { " (failed)" } else { "" },
            shortened(&given, MOST_CALL)
        ));
    }
    if calls.len() > MOST_CALLS {
        let rest = calls.len() - MOST_CALLS;
        text.push_str(&format!("\n({rest} more calls are not shown.)"));
    }
    let answer = result.get("content").map(plain).unwrap_or_default();
    text.push_str(&format!("\n\nAnswer:\n{}", shortened(&answer, MOST_ANSWER)));
    text
}
