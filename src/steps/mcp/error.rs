//! Errors of servers of the Model Context Protocol, and whether another attempt may succeed.

use std::time::Duration;

use flowstone_flow::step::{Retry, StepError};
use flowstone_lang::value::Value;
use rmcp::model::ErrorCode;
use serde_json::Value as Json;

use super::answer::Answer;
use crate::http::error::{HttpError, seconds};

/// The code of a resource or a prompt that the server does not send.
const CODE_OF_QUERY: &str = "E1312";

/// The error of a call. Plain data, because it is passed between threads.
#[derive(Debug, thiserror::Error)]
pub(super) enum McpError {
    #[error("the command `{command}` of {server} cannot be started: {cause}")]
    NotStarted {
        server: String,
        command: String,
        cause: String,
    },
    #[error(transparent)]
    Http(HttpError),
    #[error("{server} denies access: {cause}")]
    Refused {
        server: String,
        status: u16,
        cause: String,
    },
    #[error("{server} answers with status {status}")]
    Status {
        server: String,
        status: u16,
        after: Option<Duration>,
    },
    #[error(
        "{server} does not follow the MCP protocol: {cause}{}",
        output_of(output)
    )]
    Handshake {
        server: String,
        cause: String,
        output: String,
    },
    #[error("{server} is gone{}{}", during(tool), output_of(output))]
    Gone {
        server: String,
        tool: Option<String>,
        output: String,
    },
    #[error("{server} did not answer{} within {}{}", during(tool), seconds(*limit), output_of(output))]
    TimedOut {
        server: String,
        tool: Option<String>,
        limit: Duration,
        output: String,
    },
    #[error("an answer of {server} is larger than {limit} bytes")]
    TooLarge { server: String, limit: usize },
    #[error("{server} breaks the protocol: {cause}{}", output_of(output))]
    Protocol {
        server: String,
        cause: String,
        output: String,
    },
    #[error("the tool `{tool}` of {server} asks for {what}, which is not available here")]
    AsksBack {
        server: String,
        tool: String,
        what: String,
    },
    #[error("the call `{name}`, which waited for an answer of a person, is no longer open")]
    Lost { name: String },
    #[error(
        "the tool `{tool}` of {server} asks a person, but {most} calls of this process wait for answers already"
    )]
    TooManyAsk {
        server: String,
        tool: String,
        most: usize,
    },
    #[error("{server} has no tool `{tool}`")]
    NoTool {
        server: String,
        tool: String,
        near: Option<String>,
        known: Vec<String>,
    },
    #[error("the arguments of the tool `{tool}` do not fit: {}", problems.join("; "))]
    BadArguments {
        tool: String,
        problems: Vec<String>,
        schema: Json,
    },
    #[error("the tool `{tool}` failed: {}", answer.text())]
    Tool { tool: String, answer: Box<Answer> },
    #[error("{server} did not send {subject}: {message} (code {code})")]
    Query {
        server: String,
        subject: String,
        code: i32,
        message: String,
    },
    #[error("the tool `{tool}` failed: {message} (code {code})")]
    Rpc {
        tool: String,
        code: i32,
        message: String,
        data: Option<Json>,
    },
}

fn output_of(output: &str) -> String {
    match output {
        "" => String::new(),
        output => format!("; {output}"),
    }
}

fn during(tool: &Option<String>) -> String {
    tool.as_ref()
        .map_or_else(String::new, |tool| format!(" in the middle of `{tool}`"))
}

impl McpError {
    /// Returns the code, and the kind that a flow can match on.
    fn code(&self) -> (&'static str, &'static str) {
        match self {
            McpError::NoTool { .. } => ("E0830", "not-found"),
            McpError::NotStarted { .. } => ("E0831", "unavailable"),
            McpError::Refused { .. } => ("E0831", "denied"),
            McpError::Handshake { .. } => ("E0831", "bad-response"),
            McpError::Status { status: 429, .. } => ("E0832", "rate-limited"),
            McpError::Status { .. } | McpError::Gone { .. } => ("E0832", "unavailable"),
            McpError::TimedOut { .. } => ("E0832", "timeout"),
            McpError::TooLarge { .. } => ("E0832", "too-large"),
            McpError::Protocol { .. } => ("E0832", "bad-response"),
            McpError::AsksBack { .. } => ("E0832", "unsupported"),
            McpError::TooManyAsk { .. } => ("E0832", "unavailable"),
            McpError::Lost { .. } => (super::LOST, "unavailable"),
            McpError::Tool { .. } | McpError::Rpc { .. } => ("E0833", "tool-error"),
            McpError::BadArguments { .. } => ("E0834", "invalid"),
            McpError::Query { code, .. } if *code == ErrorCode::METHOD_NOT_FOUND.0 => {
                (CODE_OF_QUERY, "unsupported")
            }
            McpError::Query { .. } => (CODE_OF_QUERY, "not-found"),
            McpError::Http(error) => error.code(),
        }
    }

    fn hint(&self) -> Option<String> {
        Some(match self {
            McpError::NoTool {
                near: Some(near), ..
            } => format!("did you mean `{near}`?"),
            McpError::NoTool { known, .. } => format!("it has {}", listed(known)),
            McpError::NotStarted { .. } => {
                "check `:command` of the connection in flowstone.edn; a path in it starts at the project's folder".into()
            }
            McpError::Refused { .. } => "give the connection an `:auth`, and check that its secret is set and valid".into(),
            McpError::Handshake { .. } => {
                "check `:base-url` of the connection and `:path` of the adapter, or `:command`".into()
            }
            McpError::Gone { .. } => {
                "whether the tool did its work is not known; `:retry` tries again, with a new connection".into()
            }
            McpError::TimedOut { .. } => "raise `:timeout-ms` of the adapter, or `:timeout` of the step".into(),
            McpError::TooLarge { .. } => "ask the tool for less".into(),
            McpError::AsksBack { .. } => {
                "pass everything that the tool needs in `:arguments`, or let the step ask a person: `:questions :ask`".into()
            }
            McpError::Lost { .. } => {
                "whether the tool did its work is not known; `:on-doubt :retry` calls it again".into()
            }
            McpError::TooManyAsk { .. } => "answer the open waits: `flowstone waits list`".into(),
            McpError::BadArguments { .. } => "the tool was not called".into(),
            McpError::Query { code, .. } if *code == ErrorCode::METHOD_NOT_FOUND.0 => {
                "the server offers none; its tools are listed by `{:op :list-tools}`".into()
            }
            McpError::Query { .. } => {
                "`{:op :list-resources}` and `{:op :list-prompts}` list what the server has".into()
            }
            McpError::Status { .. }
            | McpError::Protocol { .. }
            | McpError::Tool { .. }
            | McpError::Rpc { .. } => return None,
            McpError::Http(_) => return None,
        })
    }

    fn retry(&self) -> Retry {
        match self {
            McpError::Status {
                after: Some(after), ..
            } => Retry::After(*after),
            McpError::Status { status, .. } if *status == 429 || *status >= 500 => Retry::Backoff,
            McpError::Gone { .. } | McpError::TimedOut { .. } => Retry::Backoff,
            McpError::NotStarted { .. }
            | McpError::Http(_)
            | McpError::Refused { .. }
            | McpError::Status { .. }
            | McpError::Handshake { .. }
            | McpError::TooLarge { .. }
            | McpError::Protocol { .. }
            | McpError::AsksBack { .. }
            | McpError::Lost { .. }
            | McpError::TooManyAsk { .. }
            | McpError::NoTool { .. }
            | McpError::BadArguments { .. }
            | McpError::Query { .. }
            | McpError::Tool { .. }
            | McpError::Rpc { .. } => Retry::Never,
        }
    }

    /// Tells whether the connection can no longer be used.
    pub(super) fn ends_connection(&self) -> bool {
        match self {
            McpError::Http(_)
            | McpError::Gone { .. }
            | McpError::Handshake { .. }
            | McpError::NotStarted { .. }
            | McpError::Refused { .. }
            | McpError::TooLarge { .. } => true,
            McpError::Status { .. }
            | McpError::TimedOut { .. }
            | McpError::Protocol { .. }
            | McpError::AsksBack { .. }
            | McpError::Lost { .. }
            | McpError::TooManyAsk { .. }
            | McpError::NoTool { .. }
            | McpError::BadArguments { .. }
            | McpError::Query { .. }
            | McpError::Tool { .. }
            | McpError::Rpc { .. } => false,
        }
    }
}

/// Maximum number of listed names.
const LISTED: usize = 20;

fn listed(names: &[String]) -> String {
    let shown: Vec<String> = names
        .iter()
        .take(LISTED)
        .map(|it| format!("`{it}`"))
        .collect();
    match (shown.is_empty(), names.len() > LISTED) {
        (true, _) => "none".to_owned(),
        (_, true) => format!("{} and {} more", shown.join(", "), names.len() - LISTED),
        (_, false) => shown.join(", "),
    }
}

impl From<McpError> for StepError {
    fn from(error: McpError) -> StepError {
        let error = match error {
            McpError::Http(error) => return error.into(),
            other => other,
        };
        let (code, kind) = error.code();
        let mut step = StepError::new(code, kind, error.to_string()).retry(error.retry());
        if let Some(hint) = error.hint() {
            step = step.hint(hint);
        }
        match error {
            McpError::Tool { tool, answer } => step
                .with("tool", Value::from(tool))
                .with("result", answer.to_value()),
            McpError::Rpc {
                tool, code, data, ..
            } => {
                let step = step
                    .with("tool", Value::from(tool))
                    .with("rpc-code", Value::from(i64::from(code)));
                match data {
                    Some(data) => step.with("data", crate::json::from_json(&data)),
                    None => step,
                }
            }
            McpError::BadArguments {
                tool,
                problems,
                schema,
            } => step
                .with("tool", Value::from(tool))
                .with(
                    "problems",
                    Value::vector(problems.into_iter().map(Value::from)),
                )
                .with("input-schema", crate::json::from_json(&schema)),
            _ => step,
        }
    }
}
