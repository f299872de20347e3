//! `:agent`: a model works towards an objective with tools, in a loop of turns.
//!
//! Each turn is a nested `:llm` step, and each tool call a nested step of the tool's own type: the agent knows no
//! provider, no store and no other step. Its requests depend only on its config and on the results of nested steps,
//! never on a clock, on randomness or on a store, so that a resumed run makes the same requests.

mod answer;
mod approval;
mod calls;
mod compact;
mod config;
mod contents;
mod control;
mod conversation;
mod cost;
mod deferred;
mod evaluate;
mod extras;
mod hooks;
mod inputs;
mod kit;
mod knowledge;
mod limits;
mod mcp_resources;
mod mcp_tools;
mod memory;
mod notes;
mod output;
mod outside;
mod platform;
mod prompt;
mod result;
mod rounds;
mod servers;
mod skills;
mod staying;
mod thread;
pub(crate) mod tool;
pub(crate) mod tools;
mod toolset;
mod trace;
mod usage;

pub use knowledge::written;
pub use platform::{GENERATE, nested_answer};
pub use servers::{LEFT_OUT, LISTING};

use flowstone_flow::bounds::StepBounds;
use flowstone_flow::flow::Flow;
use flowstone_flow::permission::PlannedNeed;
use flowstone_flow::step::{
    Effect, Field, FieldType, LocalFuture, Outcome, Step, StepContext, StepError, StepSpec,
};
use flowstone_lang::value::Value;

use crate::literal::Remarks;
use config::Kind;

/// The `:agent` step.
pub struct Agent;

/// The spec of the `:agent` step.
const SPEC: StepSpec = StepSpec {
    kind: "agent",
    operations: None,
    aliases: &[],
    doc: "Lets a model work towards an objective with tools, and returns its last answer.\n\n\
        Each turn of the model and each call of a tool is a step of the run: a run that was killed resumes at the \
        turn where it stopped. Tools are chosen by `:available-steps` and `:tools`; a call that fails is reported to \
        the model, which may try something else. Gives `{:content :tool-calls :tool-call-stats :usage :tokens-used \
        :model :provider :finish-reason :iterations}`.",
    fields: FIELDS,
    examples: &[
        "(flow/step :agent :summary {:connection :ai :objective \"Summarize the report.\" :inputs {:report report}})",
        "(flow/step :agent :review {:connection :ai :objective \"Find the bug.\" :inputs {:repo tree} :available-steps [:files] :max-iterations 8})",
    ],
    effect: Effect::Steps,
};

/// Returns the context window of a model in tokens, if it is known.
pub(crate) fn window_of(model: &str) -> Option<u64> {
    compact::window_of(model).and_then(|window| u64::try_from(window).ok())
}

impl Step for Agent {
    fn spec(&self) -> &'static StepSpec {
        &SPEC
    }

    fn judged(&self, value: &Value) -> Option<Value> {
        match value.get("abort?") {
            Some(Value::Bool(true)) => None,
            _ => Some(value.get("content").unwrap_or(value).clone()),
        }
    }

    fn remarks(&self, _flow: &Flow, config: &Value) -> Remarks {
        let mut remarks = Remarks::new();
        crate::llm::output_remarks(config, &mut remarks);
        let is_given = |key: &str| config.get(key).is_some_and(|it| !it.is_nil());
        if crate::literal::is_known(config) && !is_given("objective") && !is_given("messages") {
            let missing = StepError::config("E0840", "the agent has no `:objective`")
                .hint("say what it is to reach, in plain language")
                .hint("or give it a conversation: `:messages`");
            crate::literal::remark(&mut remarks, "objective", Err::<(), _>(missing));
        }
        let compact = config.get("compact").filter(|it| !it.is_nil());
        if let Some(given) = compact.filter(|it| crate::literal::is_known(it)) {
            crate::literal::remark(&mut remarks, "compact", compact::Compact::read(Some(given)));
        }
        remarks
    }

    fn settings_remarks(&self, flow: &Flow, settings: &Value, config: &Value) -> Remarks {
        crate::connections::unknown_names(flow, settings, config)
    }

    fn needs(&self, flow: &Flow, settings: &Value, config: &Value) -> Vec<PlannedNeed> {
        crate::llm::needs::of_agent(flow, settings, config)
    }

    fn bounds(&self, flow: &Flow, settings: &Value, config: &Value) -> StepBounds {
        crate::llm::bounds::bounds(flow, settings, config, true)
    }

    fn run<'a>(
        &'a self,
        cx: &'a StepContext,
        config: Value,
    ) -> LocalFuture<'a, Result<Outcome, StepError>> {
        Box::pin(async move {
            rounds::run(cx, Kind::Agent, config)
                .await
                .map(Outcome::Value)
        })
    }
}

/// Runs the loop for an `:llm` step whose tools are executed.
pub(crate) async fn run_loop(cx: &StepContext, config: Value) -> Result<Value, StepError> {
    rounds::run(cx, Kind::Llm, config).await
}

pub use tools::hidden::{unresolved, without as without_preset};

/// Returns the config of the `:http` step that a call of an entry of `:http-tools` performs.
///
/// # Errors
/// When the entry is wrong, or the arguments do not match its schema.
pub fn http_call(entry: &Value, arguments: &Value) -> Result<Value, StepError> {
    let tools = tools::of_http(&Value::vector([entry.clone()]), usize::MAX)?;
    match tools.first() {
        Some(tool) => (tool.call)(arguments).map(|step| step.config),
        None => Err(StepError::config("E1283", "there is no tool")),
    }
}

/// Returns the addresses of an agent's `:http-tools`, as far as they are written out.
pub(crate) fn http_addresses(config: &Value) -> Vec<String> {
    tools::addresses(config)
}

/// The fields that control the model; they are passed to each turn unchanged.
const MODEL_FIELDS: &[&str] = &[
    "api-version",
    "auth",
    "base-url",
    "cache-system?",
    "connection",
    "deployment",
    "frequency-penalty",
    "max-tokens",
    "model",
    "openai",
    "presence-penalty",
    "previous-response-id",
    "prompt-cache-key",
    "provider",
    "provider-opts",
    "provider-tools",
    "reasoning-effort",
    "seed",
    "stop",
    "temperature",
    "top-p",
];

const CHOICE: FieldType = FieldType::Either(&[FieldType::Name, FieldType::Map]);

/// The keys of an entry of `:step-rules`.
const RULE: &[Field] = &[
    Field::optional(
        "active-tools",
        FieldType::List(&FieldType::Name),
        "The names of the tools that the turn offers; a named `:tool-choice` without it offers this tool only.",
    ),
    Field::required(
        "step",
        FieldType::Int,
        "The number of the turn, counted from 1.",
    ),
    Field::optional("tool-choice", CHOICE, "As the option of the step."),
];

/// The keys of an entry of `:stop-when`.
const STOP: &[Field] = &[Field::required(
    "tool",
    FieldType::Name,
    "The name of a tool.",
)];

const FIELDS: &[Field] = &[
    Field::optional(
        "active-tools",
        FieldType::List(&FieldType::Name),
        "The names of the tools that the model is offered; all if it is empty. `\"github_*\"` stands for all names that begin so. `:step-rules` overrides it.",
    ),
    Field::optional(
        "after-each-call",
        FieldType::Function,
        "A function that is called with the result of each tool call, with `{:tool :tool-call-id :arguments :result :success :iteration}`. May return `{:result value}`, or `{:refuse \"why\"}` to withhold the result. If it throws, the result is withheld.",
    ),
    Field::optional(
        "after-tool-call",
        FieldType::Function,
        "A function that is called after the tool calls of a turn, with `{:iteration :tools :tool-calls :last-results :usage}`. May return `{:tools map}` or `{:abort true :content :abort-reason}`.",
    ),
    Field::optional(
        "api-version",
        FieldType::Text,
        "For Azure: the version of the API.",
    ),
    Field::optional(
        "approval",
        FieldType::Either(&[FieldType::Bool, FieldType::Map, FieldType::Name]),
        "The calls that need a person's approval: `true` for all that change something, `{:mode :tools :tool-names #{...}}`, `{:mode :plan-steps :step-names #{...}}`. With `:resume :in-place` the agent itself waits.",
    ),
    Field::optional(
        "approval-answer",
        FieldType::Map,
        "The answer to an `:approval-request`, as a `:wait` returns it: `{:action :approve :decisions [{:tool-call-id \"c1\" :action :edit :arguments {...}}]}`. `:messages` ends with the calls, which are performed or rejected first.",
    ),
    Field::optional(
        "auth",
        FieldType::Map,
        "`{:type :bearer :secret-ref :name}`, instead of the connection's.",
    ),
    Field::optional(
        "available-steps",
        FieldType::List(&FieldType::Name),
        "Steps as tools: `[:files :table :search]`.",
    ),
    Field::optional(
        "base-url",
        FieldType::Text,
        "The URL of the provider, instead of its default.",
    ),
    Field::optional(
        "before-each-call",
        FieldType::Function,
        "A function that is called before each tool call, with `{:tool :tool-call-id :arguments :changes? :iteration}`. May return `{:arguments {...}}` or `{:refuse \"why\"}`, which the model gets. If it throws, the call is refused.",
    ),
    Field::optional(
        "before-tool-call",
        FieldType::Function,
        "A function that is called before the tool calls of a turn, with `{:iteration :tools :tool-calls :proposed-tool-calls :usage}`. May return the same as `:after-tool-call`.",
    ),
    Field::optional(
        "cache-system?",
        FieldType::Bool,
        "Whether the provider should cache the system prompt and the tools.",
    ),
    Field::optional(
        "client-timeout",
        FieldType::Duration,
        "How long the agent waits for the results of `:client-tools`. Default 24 hours.",
    ),
    Field::optional(
        "client-tools",
        FieldType::List(&FieldType::Keys(outside::TOOL)),
        "Tools whose calls are performed outside: the agent waits, and resumes with `{:outputs [{:tool-call-id :output}]}` as the payload of the wait, which may also have `:tool-choice`, `:active-tools` (next turn), `:step-rules` and `:defaults` (later turns).",
    ),
    Field::optional(
        "compact",
        compact::FIELD,
        "Replaces older messages by a summary before the context window of the model is full: `true`, or `{:at 0.7 :keep 6 :model \"...\" :window 32000}`. Default: not.",
    ),
    Field::optional(
        "conclude?",
        FieldType::Bool,
        "Whether the model gets one more turn, without tools, after `:max-iterations`. Default true.",
    ),
    Field::optional(
        "connection",
        FieldType::Either(&[FieldType::Name, FieldType::List(&FieldType::Name)]),
        "A slot of `:requires`, a connection of `flowstone.edn`, or a provider. Of several, `[:main :spare]`, the next is asked when one cannot answer, and the agent stays with it.",
    ),
    Field::optional(
        "cost",
        cost::FIELD,
        "Keeps a ledger of tokens over all runs of the flow: `{:budget {:max-tokens-total 500000 :window-hours 720}}`.",
    ),
    Field::optional("data", FieldType::Map, "More data for the `:template`."),
    Field::optional(
        "defer-tools",
        deferred::FIELD,
        "Tools that the model first has to find with the tool `tool_search`: `true` for all, or their names. Others are offered in each turn.",
    ),
    Field::optional("deployment", FieldType::Text, "For Azure: the deployment."),
    Field::optional(
        "evaluate",
        evaluate::FIELD,
        "Lets a model score the answer: `{:criteria [:relevance] :model \"...\" :persist-to-memory true}`.",
    ),
    Field::optional("frequency-penalty", FieldType::Number, "Forwarded."),
    Field::optional(
        "http-tools",
        FieldType::List(&FieldType::Keys(tools::HTTP_TOOL)),
        "Requests as tools: `[{:name \"user\" :url \"https://crm.example/users/{id}\" :method :get :parameters {...}}]`.",
    ),
    Field::optional(
        "inputs",
        FieldType::Map,
        "What the agent works on: scalars and resources. Resources are described to the model, not copied.",
    ),
    Field::optional(
        "instructions",
        FieldType::Text,
        "More guidance, added to the system prompt; with `:messages`, the whole system prompt.",
    ),
    Field::optional(
        "json-schema",
        FieldType::Map,
        "A JSON Schema for the answer; `:output` is the newer way. Wins over it.",
    ),
    Field::optional(
        "knowledge",
        knowledge::FIELD,
        "Documents and memories that the model gets before the first turn, found by the latest message of the user: `{:memory-ids [\"mem_01\"] :document-paths [\"/policies/\"] :write-memory \"mem_01\"}`.",
    ),
    Field::optional(
        "max-depth",
        FieldType::IntIn(0, 16),
        "Maximum depth of delegation from agent to agent; an agent that the flow itself calls has depth 0. Default 4, or `:agent {:max-depth n}` of flowstone.edn.",
    ),
    Field::optional(
        "max-iterations",
        FieldType::IntIn(1, 100),
        "Maximum number of turns before the concluding one. Default 20.",
    ),
    Field::optional(
        "max-repeated-tool-calls",
        FieldType::IntIn(1, 100),
        "Maximum number of calls of the same tool with the same arguments. No limit by default.",
    ),
    Field::optional(
        "max-tokens",
        FieldType::Int,
        "Maximum length of the answer of a turn, in tokens.",
    ),
    Field::optional(
        "max-tokens-budget",
        FieldType::IntIn(1, i64::MAX),
        "Maximum number of tokens of all turns together, including those of called agents. The loop then ends with its current state.",
    ),
    Field::optional(
        "max-tool-calls",
        FieldType::IntIn(1, 1000),
        "Maximum number of tool calls, including refused ones. Default 100.",
    ),
    Field::optional(
        "mcp-tools",
        FieldType::List(&FieldType::Keys(servers::TOOL)),
        "Tools of servers, as their lists have them when the agent starts: `[{:name \"github\" :adapter :github/all}]`. A server without a list is reported in `:warnings`; a turn that requires one of its tools fails.",
    ),
    Field::optional(
        "memory",
        FieldType::Either(&[FieldType::Text, FieldType::Map]),
        "A table for the notes of agents: its name, a reference, or `{:table :scope :scope-key :auto-recall :auto-summarize :recall-limit :types :plan}`.",
    ),
    Field::optional(
        "messages",
        FieldType::Items,
        "A conversation instead of an `:objective`: `[{:role :user :content \"...\"}]`, as in an `:llm` step.",
    ),
    Field::optional("model", FieldType::Text, "The name of the model."),
    Field::optional(
        "objective",
        FieldType::Text,
        "The goal, in plain language. Needed unless there are `:messages`.",
    ),
    Field::optional("openai", FieldType::Map, "Options of the Responses API."),
    Field::optional(
        "output",
        FieldType::Either(&[FieldType::Map, FieldType::Name]),
        "`{:format :json :schema [...]}`: the format of the last answer. A Malli form, or JSON Schema as a map.",
    ),
    Field::optional(
        "output-persist",
        output::FIELD,
        "Stores the answer as a resource, under `:persisted-ref`: `true`, or `{:name :content-type}`.",
    ),
    Field::optional(
        "platform-tools",
        FieldType::List(&FieldType::Keys(platform::TOOL)),
        "Actions on the project's records as tools: `[{:name \"docs\" :action \"get-document\"}]`, each a `:platform` step.",
    ),
    Field::optional("presence-penalty", FieldType::Number, "Forwarded."),
    Field::optional(
        "previous-response-id",
        FieldType::Text,
        "The answer that the first turn continues, if the provider stores answers.",
    ),
    Field::optional("prompt-cache-key", FieldType::Text, "Forwarded."),
    Field::optional(
        "provider",
        FieldType::Name,
        "The provider: `:openai`, `:anthropic`, one of `:llm-providers` ...",
    ),
    Field::optional(
        "provider-opts",
        FieldType::Map,
        "`{:openrouter {...}}`: added to the requests unchanged.",
    ),
    crate::llm::PROVIDER_TOOLS,
    Field::optional(
        "reasoning-effort",
        FieldType::Name,
        "`:low`, `:medium` or `:high`.",
    ),
    Field::optional(
        "repair",
        FieldType::IntIn(0, 10),
        "How many times a wrong last answer is sent back to the model with the problem. Default 0.",
    ),
    Field::optional(
        "response-format",
        FieldType::Any,
        "`:json`, or the provider's own map. Overrides `:output`.",
    ),
    Field::optional(
        "return-messages",
        FieldType::Bool,
        "Whether the result has the conversation under `:messages`, in the form of the option `:messages`: without the system prompt, with the answer. Default false.",
    ),
    Field::optional("seed", FieldType::Int, "Forwarded."),
    Field::optional(
        "skills",
        skills::FIELD,
        "Folders with a `SKILL.md`, or folders of such folders: `[\"skills\"]`. The prompt has their names and descriptions; the model reads the rest with the tool `skill_read`.",
    ),
    Field::optional(
        "step-rules",
        FieldType::List(&FieldType::Keys(RULE)),
        "What differs in single turns: `[{:step 1 :tool-choice {:tool \"search\"}}]`. The first rule of a turn counts.",
    ),
    Field::optional(
        "stop",
        FieldType::Either(&[FieldType::Text, FieldType::List(&FieldType::Text)]),
        "Texts at which an answer ends.",
    ),
    Field::optional(
        "stop-when",
        FieldType::List(&FieldType::Keys(STOP)),
        "Calls that end the loop, after the turn in which they are made: `[{:tool \"done\"}]`.",
    ),
    Field::optional("temperature", FieldType::Number, "Forwarded."),
    Field::optional(
        "template",
        FieldType::Name,
        "A template of type `:llm-prompt`, which contains the prompt. It has the variables `objective`, `instructions`, `inputs`, `input-summary` and `tool-summary`, in addition to `:data`.",
    ),
    Field::optional(
        "thread",
        thread::FIELD,
        "The name of a conversation that this step continues: earlier messages go to the model, and what this step adds is kept. Or `{:key \"support:17\" :window 40}`.",
    ),
    Field::optional(
        "tool-choice",
        CHOICE,
        "How the model selects tools in each turn: `:auto`, `:required`, `:none` or `{:tool \"name\"}`.",
    ),
    Field::optional(
        "tools",
        FieldType::Either(&[FieldType::Map, FieldType::Items]),
        "`{:allowed [\"files\"] :steps [:ns/id] :agents [:ns/id] :mcp [:ns/tool] :kit [:test_run] :breyta {...} :require {...}}` and limits, which override those of the step. `:kit true` gives the tools of the build kit, which work on the flow of the run; calls that change something wait for a person.",
    ),
    Field::optional("top-p", FieldType::Number, "Forwarded."),
    Field::optional(
        "trace",
        trace::FIELD,
        "Stores all turns and calls as one resource, under `:trace-ref`: `true`, or `{:name \"...\"}`.",
    ),
    Field::optional(
        "workspace-id",
        FieldType::Text,
        "The workspace, which is recorded. There is only one here.",
    ),
];
