//! `:mcp`: calls tools of servers of the Model Context Protocol, over HTTP or as child processes.
//!
//! This file reads the config and converts the answer to a value. `server` resolves the server, `pool` and `connection`
//! hold the connections and their thread, and `tools` serves agents. The handshake of 2026-07-28 is tried first, then
//! the older one.

pub(crate) mod answer;
mod arguments;
pub(crate) mod asking;
mod client;
mod connection;
mod error;
mod fault;
mod message;
mod open;
mod pool;
mod process;
mod query;
mod question;
mod server;

use std::rc::Rc;
use std::time::Duration;

use flowstone_flow::diagnostic::{Diagnostic, nearest};
use flowstone_flow::flow::{Flow, McpAdapter, name_of};
use flowstone_flow::permission::{Access, PlannedNeed};
use flowstone_flow::step::{
    Effect, Field, FieldType, LocalFuture, Operation, Operations, Outcome, Progress, Retry, Step,
    StepContext, StepError, StepSpec,
};
use flowstone_lang::value::Value;
use serde_json::{Map, Value as Json};
use tokio::sync::mpsc;

use asking::Questions;
use client::Heard;
use connection::ToolCall;
use error::McpError;
pub use message::{answer_of, misfits};
use pool::{Ask, Lazy, Reply};
use query::Query;
use question::Resume;
use server::Target;

use crate::fields::Fields;
use crate::{json, operation};

/// The `:mcp` step.
#[derive(Default)]
pub struct Mcp {
    pool: Lazy,
}

/// The code of a call that waited for an answer and is gone.
const LOST: &str = "E1298";

/// Default timeout of a call: longer than other runners wait.
const TIMEOUT: Duration = Duration::from_secs(190);
/// Default timeout of a request for a list of tools: as long as a server may take to greet.
const LISTING: Duration = Duration::from_secs(30);

pub(crate) const SPEC: StepSpec = StepSpec {
    kind: "mcp",
    operations: Some(OPERATIONS),
    aliases: &[],
    doc: "Calls tools of a server of the Model Context Protocol, and reads its resources and prompts.\n\n\
        The server is one of the flow's `:mcp` adapters. Arguments are checked against the tool's schema before it is \
        called. `:content` is the tool's result as data, or else its text; images and other contents are in `:parts`, an \
        image as `{:type :image :url \"data:...\"}`, which a message to a model accepts unchanged. An error that a tool reports \
        is an error of kind `:tool-error`. Connections are kept for the next call. A server may ask a person in the middle \
        of a call: `:questions :ask` opens a wait for each question and sends the answer back. Without it, such a call fails.",
    fields: FIELDS,
    examples: &[
        "(flow/step :mcp :issues {:adapter :linear/issues :tool \"list_issues\" :arguments {:team_id \"T1\"} :read-only? true})",
        "(flow/step :mcp :book {:adapter :travel/desk :tool \"book\" :arguments {:to \"Oslo\"} :questions {:timeout \"2h\" :roles [:travel]}})",
        "(flow/step :mcp :tools {:op :list-tools :adapter :linear/issues})",
        "(flow/step :mcp :readme {:op :read-resource :adapter :notes/files :uri \"file:///README.md\"})",
        "(flow/step :mcp :review {:op :get-prompt :adapter :notes/files :prompt \"review\" :arguments {:language \"clojure\"}})",
    ],
    effect: Effect::External,
};

const FIELDS: &[Field] = &[
    Field::required(
        "adapter",
        FieldType::Name,
        "One of the flow's `:mcp` adapters, by its id.",
    ),
    Field::optional(
        "answers",
        FieldType::Map,
        "The answers to the questions of a call, by their ids: `{\"q1\" {:action :accept :content {:name \"Ada\"}}}`, or `:decline`, `:cancel`.",
    ),
    Field::optional(
        "arguments",
        FieldType::Map,
        "The arguments of the tool or the prompt. Default: none.",
    ),
    Field::optional(
        "headers",
        FieldType::Map,
        "Headers that are sent to the server, after those of its connection. They are in the journal: credentials belong to the connection.",
    ),
    Field::optional(
        "op",
        FieldType::Name,
        "What to do: `:call`, `:answer`, `:list-tools`, `:list-resources`, `:read-resource`, `:list-prompts` or `:get-prompt`. Default `:call`.",
    )
    .or(":call"),
    Field::optional(
        "prompt",
        FieldType::Text,
        "The name of the prompt on the server.",
    ),
    Field::optional(
        asking::QUESTIONS,
        asking::FIELD,
        "What happens when the server asks a person in the middle of a call. `:ask` or a map opens a wait for each question; \
         `:return` returns `:questions` and `:resume` for `:op :answer`. Default: `:decline`, and the call fails.",
    ),
    Field::optional(
        "read-only?",
        FieldType::Bool,
        "The tool changes nothing, so the call is repeated after a crash without asking. Default: the adapter's setting for the tool, otherwise false.",
    ),
    Field::optional(
        "resume",
        FieldType::Map,
        "The `:resume` of the call that asked, unchanged.",
    ),
    Field::optional(
        "tool",
        FieldType::Text,
        "The name of the tool on the server.",
    ),
    Field::optional(
        "uri",
        FieldType::Text,
        "The URI of the resource, as the server lists it.",
    ),
];

const OPERATIONS: Operations = Operations {
    key: "op",
    code: "E0830",
    all: &[
        Operation {
            name: "answer",
            doc: "Continues a call that returned questions, with the answers to them.",
            needs: &["adapter", "tool", "resume"],
            takes: &["answers", "arguments", "headers", "read-only?"],
            gives: "[:map [:content {:optional true} :any] [:questions {:optional true} [:vector :map]] [:resume {:optional true} :map]]",
            effect: Effect::External,
            for_agents: false,
        },
        Operation {
            name: "call",
            doc: "Calls a tool. With `:questions :return`, the result may have `:questions` and `:resume` instead.",
            needs: &["adapter", "tool"],
            takes: &["arguments", "headers", "questions", "read-only?"],
            gives: "[:map [:content {:optional true} :any] [:parts {:optional true} [:vector [:map [:type :keyword]]]] [:questions {:optional true} [:vector :map]] [:resume {:optional true} :map]]",
            effect: Effect::External,
            for_agents: false,
        },
        Operation {
            name: "get-prompt",
            doc: "Gets a prompt with its arguments filled in, as messages for an `:llm` step.",
            needs: &["adapter", "prompt"],
            takes: &["arguments"],
            gives: "[:map [:messages [:vector [:map [:role :string] [:content :any]]]] [:description {:optional true} :string]]",
            effect: Effect::Read,
            for_agents: false,
        },
        Operation {
            name: "list-prompts",
            doc: "Lists the prompts of the server.",
            needs: &["adapter"],
            takes: &[],
            gives: "[:map [:prompts [:vector [:map [:name :string] [:description {:optional true} :string] [:arguments [:vector [:map [:name :string] [:required? :boolean]]]]]]]]",
            effect: Effect::Read,
            for_agents: false,
        },
        Operation {
            name: "list-resources",
            doc: "Lists the resources of the server.",
            needs: &["adapter"],
            takes: &["headers"],
            gives: "[:map [:resources [:vector [:map [:uri :string] [:name :string] [:mime-type {:optional true} :string] [:size {:optional true} :int]]]]]",
            effect: Effect::Read,
            for_agents: false,
        },
        Operation {
            name: "list-tools",
            doc: "Lists the tools that the adapter allows.",
            needs: &["adapter"],
            takes: &["headers"],
            gives: "[:map [:tools [:vector [:map [:name :string] [:description :string] [:input-schema :map] [:read-only? :boolean]]]]]",
            effect: Effect::Read,
            for_agents: false,
        },
        Operation {
            name: "read-resource",
            doc: "Reads a resource. Bytes are a `data:` URL.",
            needs: &["adapter", "uri"],
            takes: &["headers"],
            gives: "[:map [:contents [:vector [:map [:uri :string] [:mime-type {:optional true} :string] [:text {:optional true} :string] [:url {:optional true} :string]]]]]",
            effect: Effect::Read,
            for_agents: false,
        },
    ],
};

impl Step for Mcp {
    fn spec(&self) -> &'static StepSpec {
        &SPEC
    }

    fn effect(&self, config: &Value) -> Effect {
        let is_true = |key: &str| matches!(config.get(key), Some(Value::Bool(true)));
        if asking::asks(config) {
            return Effect::Steps;
        }
        match reads(config) || is_true("read-only?") {
            true => Effect::Read,
            false => Effect::External,
        }
    }

    fn remarks(&self, flow: &Flow, config: &Value) -> Vec<(&'static str, Diagnostic)> {
        remarks(flow, config)
    }

    fn needs(&self, flow: &Flow, settings: &Value, config: &Value) -> Vec<PlannedNeed> {
        let id = config.get("adapter").and_then(name_of);
        match id.as_deref().and_then(|id| flow.mcp_adapter(id)) {
            Some(adapter) => crate::needs::of_adapters(settings, flow, [&**adapter]),
            None => vec![PlannedNeed::Computed(Access::Net)],
        }
    }

    fn run<'a>(
        &'a self,
        cx: &'a StepContext,
        config: Value,
    ) -> LocalFuture<'a, Result<Outcome, StepError>> {
        Box::pin(async move {
            let fields = Fields::new(&config);
            let operation = operation::choose(&SPEC, fields)?;
            let name = fields.name("adapter")?.unwrap_or_default();
            let adapter = adapter(cx.flow(), &name)?;
            let value = match operation.name {
                "list-tools" => self.list(cx, adapter, fields).await?,
                name => match query(name, fields)? {
                    Some(query) => self.query(cx, adapter, (query, fields)).await?,
                    None if operation.name == "answer" => self.proceed(cx, adapter, fields).await?,
                    None => match asking::read(fields)? {
                        Questions::Ask(asking) => asking::call(cx, &config, asking).await?,
                        questions => self.call(cx, adapter, (fields, questions)).await?,
                    },
                },
            };
            Ok(Outcome::Value(value))
        })
    }
}

/// Tells whether the operation of a config only reads.
fn reads(config: &Value) -> bool {
    let op = config.get("op").and_then(name_of);
    let mut all = OPERATIONS.all.iter();
    all.any(|it| it.effect == Effect::Read && op.as_deref() == Some(it.name))
}

/// Returns the request of an operation; `None` for those that are about tools.
fn query(operation: &str, fields: Fields<'_>) -> Result<Option<Query>, StepError> {
    let text = |key: &str| Ok::<_, StepError>(fields.text(key)?.unwrap_or_default().to_owned());
    Ok(Some(match operation {
        "get-prompt" => Query::Prompt(text("prompt")?, arguments(fields)?),
        "list-prompts" => Query::Prompts,
        "list-resources" => Query::Resources,
        "read-resource" => Query::Resource(text("uri")?),
        _ => return Ok(None),
    }))
}

/// Reads a call of a tool. `asks`: how long questions of the server stay open.
fn tool_call(
    cx: &StepContext,
    (adapter, fields): (&McpAdapter, Fields<'_>),
    asks: Option<Duration>,
) -> Result<ToolCall, StepError> {
    let tool = fields.text("tool")?.unwrap_or_default();
    if !adapter.allows(tool) {
        return Err(not_allowed(adapter, tool));
    }
    let known = adapter.tool(tool);
    Ok(ToolCall {
        tool: tool.to_owned(),
        arguments: arguments(fields)?,
        trace_parent: cx.trace_parent().map(|parent| parent.to_string().into()),
        schema: known.and_then(|tool| tool.input_schema.clone()),
        asks,
        name: format!("{}/{}", cx.run_id(), cx.path()),
        repeats: None,
    })
}

/// Reads the arguments of a tool or a prompt.
fn arguments(fields: Fields<'_>) -> Result<Map<String, Json>, StepError> {
    let given = match fields.map("arguments")? {
        None => return Ok(Map::new()),
        Some(map) => json::to_json(map).map_err(|error| {
            StepError::config("E0834", format!("`:arguments` cannot be sent: {error}"))
        })?,
    };
    match given {
        Json::Object(arguments) => Ok(arguments),
        _ => Err(StepError::config("E0834", "`:arguments` are a map")),
    }
}

/// Returns an adapter of the flow.
fn adapter<'a>(flow: &'a Flow, id: &str) -> Result<&'a Rc<McpAdapter>, StepError> {
    let id = id.trim_start_matches(':');
    flow.mcp_adapter(id).ok_or_else(|| {
        let error = StepError::config("E0830", format!("the flow has no adapter `:{id}`"));
        with_near(error, id, flow.mcp.iter().map(|it| &*it.id), ":")
            .hint("describe it in the flow: `:mcp [{:id :linear/issues :connection :linear-mcp :allow-tools [...]}]`")
    })
}

pub(crate) fn with_near<'a>(
    error: StepError,
    name: &str,
    known: impl Iterator<Item = &'a str>,
    colon: &str,
) -> StepError {
    match nearest(name, known) {
        Some(near) => error.hint(format!("did you mean `{colon}{near}`?")),
        None => error,
    }
}

/// Returns the error for a tool that an adapter does not allow.
fn not_allowed(adapter: &McpAdapter, tool: &str) -> StepError {
    let message = format!(
        "the adapter `:{}` does not allow the tool `{tool}`",
        adapter.id
    );
    let allowed = adapter.allow_tools.iter().flatten().map(|it| &**it);
    with_near(StepError::config("E0830", message), tool, allowed, "")
        .hint(format!("name it in `:allow-tools` of `:{}`", adapter.id))
}

/// Returns the findings about a config as it is written.
fn remarks(flow: &Flow, config: &Value) -> Vec<(&'static str, Diagnostic)> {
    let found = |key, error: StepError| {
        let finding = Diagnostic::error(error.code, error.message);
        vec![(key, error.hints.into_iter().fold(finding, Diagnostic::hint))]
    };
    let id = match config.get("adapter") {
        Some(Value::Keyword(id)) => id.to_string(),
        _ => return Vec::new(),
    };
    let adapter = match adapter(flow, &id) {
        Ok(adapter) => adapter,
        Err(error) => return found("adapter", error),
    };
    match config.get("tool").and_then(Value::as_str) {
        Some(tool) if !adapter.allows(tool) => found("tool", not_allowed(adapter, tool)),
        _ => Vec::new(),
    }
}

impl Mcp {
    async fn call(
        &self,
        cx: &StepContext,
        adapter: &McpAdapter,
        (fields, questions): (Fields<'_>, Questions),
    ) -> Result<Value, StepError> {
        let call = tool_call(cx, (adapter, fields), questions.stay())?;
        let target = server::target(cx, adapter).await?.with_headers(fields)?;
        let (sender, receiver) = mpsc::channel(64);
        let target = target.asking(call.asks.is_some());
        let ask = Ask::Call(call, sender);
        self.listen((cx, adapter), (target, ask), receiver).await
    }

    /// Continues a call with answers to the questions of its server.
    async fn proceed(
        &self,
        cx: &StepContext,
        adapter: &McpAdapter,
        fields: Fields<'_>,
    ) -> Result<Value, StepError> {
        let given = fields.map("answers")?.cloned();
        let answers = question::answers(&given.unwrap_or(Value::Nil))?;
        let mut call = tool_call(cx, (adapter, fields), Questions::Return.stay())?;
        let target = server::target(cx, adapter).await?.with_headers(fields)?;
        let (sender, receiver) = mpsc::channel(64);
        let ask = match question::resume_of(fields.map("resume")?.unwrap_or(&Value::Nil)) {
            Resume::Open(name) => Ask::Continue(name, answers),
            Resume::Repeat(state) => {
                call.repeats = Some((state, answers));
                Ask::Call(call, sender)
            }
        };
        self.listen((cx, adapter), (target.asking(true), ask), receiver)
            .await
    }

    /// Performs a request, and reports its progress meanwhile.
    async fn listen(
        &self,
        (cx, adapter): (&StepContext, &McpAdapter),
        (target, ask): (Target, Ask),
        mut receiver: mpsc::Receiver<Heard>,
    ) -> Result<Value, StepError> {
        let asked = self.ask(cx, target, adapter, ask);
        tokio::pin!(asked);
        loop {
            tokio::select! {
                done = &mut asked => return match done? {
                    Reply::Answer(answer) => Ok(answer.to_value()),
                    Reply::Asks(asks) => Ok(asks.to_value()),
                    Reply::Tools(_) | Reply::Facts(_) => Err(lost()),
                },
                Some(heard) = receiver.recv() => tell(cx, heard),
            }
        }
    }

    async fn list(
        &self,
        cx: &StepContext,
        adapter: &McpAdapter,
        fields: Fields<'_>,
    ) -> Result<Value, StepError> {
        let target = server::target(cx, adapter).await?.with_headers(fields)?;
        let Reply::Tools(all) = self.ask(cx, target, adapter, Ask::List).await? else {
            return Err(lost());
        };
        let listed = all
            .iter()
            .filter(|tool| adapter.allows(&tool.name))
            .map(|tool| answer::listed(adapter, tool));
        let listed = Value::vector(listed.collect::<Vec<_>>());
        Ok(Value::map([(Value::keyword("tools"), listed)]))
    }

    async fn query(
        &self,
        cx: &StepContext,
        adapter: &McpAdapter,
        (query, fields): (Query, Fields<'_>),
    ) -> Result<Value, StepError> {
        let target = server::target(cx, adapter).await?.with_headers(fields)?;
        match self.ask(cx, target, adapter, Ask::Query(query)).await? {
            Reply::Facts(facts) => Ok(json::from_json(&facts)),
            Reply::Answer(_) | Reply::Asks(_) | Reply::Tools(_) => Err(lost()),
        }
    }

    async fn ask(
        &self,
        cx: &StepContext,
        target: Target,
        adapter: &McpAdapter,
        ask: Ask,
    ) -> Result<Reply, StepError> {
        let limit = adapter.timeout.unwrap_or_else(|| usual(&ask));
        let is_list = matches!(ask, Ask::List);
        let pool = self.pool.get().map_err(|error| {
            StepError::new(
                "E0831",
                "unavailable",
                format!("no thread for MCP can be started: {error}"),
            )
        })?;
        let reply = pool.ask(target.clone(), ask.clone(), limit).await;
        match reply.ok_or_else(lost)? {
            // The server did nothing, so the request is sent once more with a new token.
            Err(error @ McpError::Refused { status: 401, .. }) => match target.renewed(cx).await? {
                Some(target) => Ok(pool.ask(target, ask, limit).await.ok_or_else(lost)??),
                None => Err(error.into()),
            },
            // A server that is silent for so long would be silent again, and an agent waits for its list.
            Err(error @ McpError::TimedOut { .. }) if is_list => {
                Err(StepError::from(error).retry(Retry::Never))
            }
            reply => Ok(reply?),
        }
    }
}

/// Returns the error for a lost connection thread, an internal error.
fn lost() -> StepError {
    StepError::new(
        "E0832",
        "unavailable",
        "the connections to MCP servers are gone",
    )
}

/// Reports the progress of a call to the run's observers.
fn tell(cx: &StepContext, heard: Heard) {
    if let Some(message) = heard.message {
        cx.emit(Progress::Status(message));
        return;
    }
    let whole = |number: f64| number.clamp(0.0, 9e15) as u64;
    cx.emit(Progress::Count {
        done: whole(heard.done),
        total: heard.total.map(whole),
    });
}

/// Returns how long a server may take, where the adapter has no `:timeout-ms`.
fn usual(ask: &Ask) -> Duration {
    match ask {
        Ask::List => LISTING,
        Ask::Call(..) | Ask::Continue(..) | Ask::Query(_) => TIMEOUT,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_has_30_seconds_for_its_list() {
        assert_eq!(usual(&Ask::List), Duration::from_secs(30));
    }
}
