//! One answer of a script.

use std::time::Duration;

use flowstone_flow::step::StepError;
use flowstone_lang::value::Value;

use super::super::call::{Call, Reply, Role, ToolCall, Usage};
use super::super::error::LlmError;
use super::super::estimate;
use super::super::messages::{as_json, text_of};
use super::{ID, failed, millis, request, unfit};
use crate::fields::Fields;
use crate::json as convert;

/// One answer.
#[derive(Debug, Default)]
pub(super) struct Turn {
    pub content: String,
    pub reasoning: String,
    pub latency: Option<Duration>,
    refusal: String,
    tool_calls: Vec<ToolCall>,
    usage: Usage,
    /// Whether the usage is set by the script; otherwise it is counted.
    counted: bool,
    finish_reason: Option<String>,
    model: Option<String>,
    expect: Expect,
    error: Option<Wrong>,
}

/// The conditions of a turn for its request.
#[derive(Debug, Default)]
struct Expect {
    messages: Option<usize>,
    model: Option<String>,
    system: Vec<String>,
    tool: Vec<String>,
    tools: Vec<String>,
    user: Vec<String>,
}

/// A call that fails.
#[derive(Debug)]
struct Wrong {
    kind: String,
    message: String,
    after: Option<Duration>,
    /// The number of attempts that fail; by default all.
    times: Option<u32>,
}

const KEYS: &[&str] = &[
    "content",
    "error",
    "expect",
    "finish-reason",
    "latency-ms",
    "model",
    "reasoning",
    "refusal",
    "tool-calls",
    "usage",
];

impl Turn {
    /// Reads a turn: its text, or a map.
    pub(super) fn read(value: &Value) -> Result<Turn, StepError> {
        if let Some(text) = value.as_str() {
            return Ok(Turn {
                content: text.to_string(),
                ..Turn::default()
            });
        }
        let fields = Fields::nested("a turn of a script", value)?;
        fields.only(KEYS)?;
        let content = match fields.get("content") {
            Some(content) => text_of(":content", content)?,
            None => String::new(),
        };
        let text = |key: &str| fields.text(key).map(|text| text.map(str::to_string));
        let has_latency = fields.has("latency-ms");
        let usage = fields.map("usage")?;
        Ok(Turn {
            content,
            reasoning: text("reasoning")?.unwrap_or_default(),
            refusal: text("refusal")?.unwrap_or_default(),
            latency: has_latency
                .then(|| millis(fields, "latency-ms"))
                .transpose()?,
            tool_calls: tool_calls(fields)?,
            counted: usage.is_none(),
            usage: usage.map(read_usage).transpose()?.unwrap_or_default(),
            finish_reason: fields.name("finish-reason")?.map(|it| it.to_string()),
            model: text("model")?,
            expect: fields
                .map("expect")?
                .map(Expect::read)
                .transpose()?
                .unwrap_or_default(),
            error: fields.map("error")?.map(Wrong::read).transpose()?,
        })
    }

    /// Checks that the request is the expected one.
    pub(super) fn expects(&self, call: &Call) -> Result<(), StepError> {
        match self.expect.unmet(call) {
            None => Ok(()),
            Some(problem) => {
                let message = format!("the request is not what the turn expects: {problem}");
                Err(failed(message, call))
            }
        }
    }

    /// Returns the error of this attempt, if it should fail.
    pub(super) fn error(&self, attempt: u32) -> Option<LlmError> {
        let wrong = self.error.as_ref()?;
        wrong
            .times
            .is_none_or(|times| attempt <= times)
            .then(|| wrong.error(&self.content))
    }

    /// Returns the reply. `at` is the index of the turn in its script.
    pub(super) fn reply(&self, call: &Call, at: usize) -> Reply {
        let calls = self.tool_calls.iter().enumerate();
        let tool_calls: Vec<ToolCall> = calls
            .map(|(idx, call)| ToolCall {
                id: match call.id.is_empty() {
                    true => format!("call_{}_{}", at + 1, idx + 1),
                    false => call.id.clone(),
                },
                ..call.clone()
            })
            .collect();
        let usual = match tool_calls.is_empty() {
            true => "stop",
            false => "tool_calls",
        };
        Reply {
            content: self.content.clone(),
            reasoning: self.reasoning.clone(),
            refusal: self.refusal.clone(),
            usage: Some(self.usage_of(call)),
            finish_reason: self.finish_reason.clone().unwrap_or_else(|| usual.into()),
            model: self.model.clone().unwrap_or_else(|| call.model.clone()),
            tool_calls,
            ..Reply::default()
        }
    }

    fn usage_of(&self, call: &Call) -> Usage {
        if !self.counted {
            return self.usage;
        }
        let calls = estimate::of_calls(&self.tool_calls);
        let reasoning = estimate::of_bytes(self.reasoning.len());
        let prompt = estimate::of_call(call);
        let completion = reasoning + estimate::of_bytes(self.content.len() + calls);
        Usage {
            prompt,
            completion,
            total: prompt + completion,
            reasoning: (reasoning > 0).then_some(reasoning),
            ..Usage::default()
        }
    }
}

fn tool_calls(fields: Fields<'_>) -> Result<Vec<ToolCall>, StepError> {
    let Some(list) = fields.get("tool-calls") else {
        return Ok(Vec::new());
    };
    let items =
        convert::items(list).ok_or_else(|| unfit("`:tool-calls` of a turn takes a vector"))?;
    items.iter().map(tool_call).collect()
}

fn tool_call(value: &Value) -> Result<ToolCall, StepError> {
    let fields = Fields::nested("a call of a turn's :tool-calls", value)?;
    fields.only(&["arguments", "name", "tool-call-id"])?;
    let name = fields
        .name("name")?
        .ok_or_else(|| unfit("a call of a turn's `:tool-calls` needs a `:name`"))?;
    Ok(ToolCall {
        id: fields.text("tool-call-id")?.unwrap_or_default().to_string(),
        name: name.to_string(),
        arguments: match fields.get("arguments") {
            None => "{}".to_string(),
            // Also text that is not JSON, which models sometimes write.
            Some(Value::Text(text)) => text.to_string(),
            Some(data) => as_json(":arguments", data)?.to_string(),
        },
    })
}

fn read_usage(value: &Value) -> Result<Usage, StepError> {
    let fields = Fields::nested(":usage of a turn", value)?;
    fields.only(&[
        "cache-write-tokens",
        "cached-tokens",
        "completion-tokens",
        "prompt-tokens",
        "reasoning-tokens",
        "total-tokens",
    ])?;
    let count = |key: &str| fields.int(key, 0, i64::MAX);
    let prompt = count("prompt-tokens")?.unwrap_or(0);
    let completion = count("completion-tokens")?.unwrap_or(0);
    Ok(Usage {
        prompt,
        completion,
        total: count("total-tokens")?.unwrap_or(prompt + completion),
        cached: count("cached-tokens")?,
        cache_write: count("cache-write-tokens")?,
        reasoning: count("reasoning-tokens")?,
        ..Usage::default()
    })
}

impl Expect {
    fn read(value: &Value) -> Result<Expect, StepError> {
        let fields = Fields::nested(":expect of a turn", value)?;
        fields.only(&["messages", "model", "system", "tool", "tools", "user"])?;
        Ok(Expect {
            messages: fields.count("messages", 0, usize::MAX)?,
            model: fields.text("model")?.map(str::to_string),
            system: fields.texts("system")?,
            tool: fields.texts("tool")?,
            tools: fields.texts("tools")?,
            user: fields.texts("user")?,
        })
    }

    /// Returns a description of the first unmet condition.
    fn unmet(&self, call: &Call) -> Option<String> {
        if let Some(count) = self.messages.filter(|it| *it != call.messages.len()) {
            return Some(format!(
                "it should have {count} messages, but has {}",
                call.messages.len()
            ));
        }
        if let Some(model) = self.model.as_ref().filter(|it| **it != call.model) {
            return Some(format!(
                "it should be for `{model}`, but is for `{}`",
                call.model
            ));
        }
        let has_tool = |name: &&String| call.tools.iter().any(|tool| tool.name == **name);
        if let Some(name) = self.tools.iter().find(|name| !has_tool(name)) {
            return Some(format!("it should offer the tool `{name}`"));
        }
        let texts = [
            (Role::System, &self.system),
            (Role::User, &self.user),
            (Role::Tool, &self.tool),
        ];
        texts.into_iter().find_map(|(role, texts)| {
            let spoken = texts_of(call, role);
            let missing = texts.iter().find(|text| !spoken.contains(text.as_str()))?;
            Some(format!(
                "expected {missing:?} in the last message of `:{}`",
                role.name()
            ))
        })
    }
}

/// Returns the last texts of a role: its messages after the last one of another role, and all of the system.
fn texts_of(call: &Call, role: Role) -> String {
    let of_role = call.messages.iter().filter(|it| it.role == role);
    let texts: Vec<String> = match role {
        Role::System => of_role.map(request::text).collect(),
        Role::Tool => {
            let last = call.messages.iter().rev().skip_while(|it| it.role != role);
            let last: Vec<String> = last
                .take_while(|it| it.role == role)
                .map(request::text)
                .collect();
            last.into_iter().rev().collect()
        }
        Role::User | Role::Assistant => {
            let last = call.messages.iter().rfind(|it| it.role == role);
            last.map(request::text).into_iter().collect()
        }
    };
    texts.join("\n")
}

const KINDS: &[&str] = &[
    "bad-request",
    "bad-response",
    "content-filter",
    "cut-off",
    "no-credit",
    "not-found",
    "rate-limited",
    "refused",
    "timeout",
    "too-long",
    "unauthorized",
    "unavailable",
];

impl Wrong {
    fn read(value: &Value) -> Result<Wrong, StepError> {
        let fields = Fields::nested(":error of a turn", value)?;
        fields.only(&["kind", "message", "retry-after-ms", "times"])?;
        let kind = fields
            .name("kind")?
            .ok_or_else(|| unfit("`:error` of a turn needs a `:kind`"))?;
        if !KINDS.contains(&&*kind) {
            return Err(unfit(format!("`:error` of a turn has no `:kind :{kind}`"))
                .hint(format!("there are {}", crate::fields::listed(KINDS))));
        }
        let after = fields.has("retry-after-ms");
        Ok(Wrong {
            kind: kind.to_string(),
            message: fields
                .text("message")?
                .unwrap_or("as the script says")
                .into(),
            after: after
                .then(|| millis(fields, "retry-after-ms"))
                .transpose()?,
            times: fields
                .count("times", 1, 1000)?
                .and_then(|times| u32::try_from(times).ok()),
        })
    }

    fn error(&self, content: &str) -> LlmError {
        let (provider, message, after) = (ID.to_string(), self.message.clone(), self.after);
        match self.kind.as_str() {
            "bad-response" => LlmError::Malformed {
                provider,
                cause: message,
                preview: content.to_string(),
            },
            "content-filter" => LlmError::Filtered { provider, message },
            "cut-off" => LlmError::BrokeOff {
                provider,
                cause: message,
                chars: content.chars().count(),
            },
            "no-credit" => LlmError::NoCredit { provider, message },
            "not-found" => LlmError::NotFound { provider, message },
            "rate-limited" => LlmError::RateLimited {
                provider,
                message,
                after,
            },
            "refused" => LlmError::Refused { message },
            "timeout" => LlmError::Stalled {
                provider,
                idle: Duration::ZERO,
                chars: content.chars().count(),
            },
            "too-long" => LlmError::TooLong { message },
            "unauthorized" => LlmError::Unauthorized { provider, message },
            "unavailable" => LlmError::Overloaded {
                provider,
                status: 503,
                message,
                after,
            },
            _ => LlmError::BadRequest {
                provider,
                status: 400,
                message,
            },
        }
    }
}
