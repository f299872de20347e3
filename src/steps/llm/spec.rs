//! The description of `:llm`, as data.

use flowstone_flow::step::{Effect, Field, FieldType, StepSpec};

pub(super) const SPEC: StepSpec = StepSpec {
    kind: "llm",
    operations: None,
    aliases: &[],
    doc: "Asks a model and returns `{:content :usage :model :provider :finish-reason}`.\n\n\
        With `:output {:format :json :schema [...]}` the content is data, checked here against the schema. Text \
        streams to the run's observers. The provider follows from `:provider`, the connection, or the \
        keys in the environment.",
    fields: FIELDS,
    examples: &[
        "(flow/step :llm :summary {:connection :ai :prompt \"Say in one line what Clojure is.\"})",
        "(flow/step :llm :triage {:connection :ai :prompt ticket :output {:format :json :schema [:map [:urgent :boolean] [:team [:enum \"billing\" \"support\"]]]}})",
    ],
    effect: Effect::Read,
};

const SCALAR: FieldType = FieldType::Number;

const FIELDS: &[Field] = &[
    Field::optional(
        "api-version",
        FieldType::Text,
        "For Azure: the version of the API.",
    ),
    Field::optional(
        "auth",
        FieldType::Map,
        "`{:type :bearer :secret-ref :name}`, instead of the connection's.",
    ),
    Field::optional(
        "available-steps",
        FieldType::Items,
        "Built-in steps that the model may use as tools: `[:files :table :search]`. They are executed, and the step ends with the last answer.",
    ),
    Field::optional(
        "base-url",
        FieldType::Text,
        "The URL of the provider, instead of its default.",
    ),
    Field::optional(
        "cache-system?",
        FieldType::Bool,
        "Whether the provider should cache the system prompt and the tools, which makes sending them again cheaper.",
    ),
    Field::optional(
        "connection",
        FieldType::Either(&[FieldType::Name, FieldType::List(&FieldType::Name)]),
        "A slot of `:requires`, a connection of `flowstone.edn`, or a provider. Of several, `[:main :spare]`, the next is asked when one cannot answer; the result has the `:connection` that answered.",
    ),
    Field::optional("data", FieldType::Map, "The data of the `:template`."),
    Field::optional("deployment", FieldType::Text, "For Azure: the deployment."),
    Field::optional("frequency-penalty", SCALAR, "Forwarded."),
    Field::optional(
        "input",
        FieldType::Map,
        "`:prompt`, `:messages` and `:system` in one map.",
    ),
    Field::optional(
        "json-schema",
        FieldType::Map,
        "A JSON Schema for the answer; `:output` is the newer way.",
    ),
    Field::optional(
        "max-iterations",
        FieldType::Int,
        "Maximum number of turns while tools are executed, up to 100. Default 20.",
    ),
    Field::optional(
        "max-repeated-tool-calls",
        FieldType::Int,
        "Maximum number of calls of the same tool with the same arguments, up to 100.",
    ),
    Field::optional(
        "max-tokens",
        FieldType::Int,
        "Maximum length of the answer, in tokens.",
    ),
    Field::optional(
        "max-tool-calls",
        FieldType::Int,
        "Maximum number of executed tool calls, up to 1000. Default 100.",
    ),
    Field::optional(
        "messages",
        FieldType::Items,
        "The conversation: `[{:role :user :content \"...\"}]`. Content may be parts: `{:type :text}`, `{:type :image :url}`, `{:type :image-resource :resource :detail :transport :processing}`, `{:type :file :resource}` for PDF documents and sounds. Answers and results of tools go back as `{:role :assistant :tool-calls :opaque}` and `{:role :tool :tool-call-id :content}`.",
    ),
    Field::optional("model", FieldType::Text, "The name of the model."),
    Field::optional(
        "openai",
        FieldType::Map,
        "`{:responses {...}}`: added unchanged to a request of OpenAI's Responses API.",
    ),
    Field::optional(
        "output",
        FieldType::Either(&[FieldType::Map, FieldType::Name]),
        "`{:format :json :schema [...] :style :deterministic :strict? true}`: a Malli form, or JSON Schema as a map. `:style :deterministic` sets temperature 0.",
    ),
    Field::optional("presence-penalty", SCALAR, "Forwarded."),
    Field::optional(
        "previous-response-id",
        FieldType::Text,
        "For OpenAI: the `:response-id` of the answer that this request continues.",
    ),
    Field::optional(
        "prompt",
        FieldType::Any,
        "The question, instead of `:messages`. Data is sent as JSON.",
    ),
    Field::optional("prompt-cache-key", FieldType::Text, "Forwarded."),
    Field::optional(
        "provider",
        FieldType::Name,
        "The provider: `:openai`, `:ollama`, one of `:llm-providers` ...",
    ),
    Field::optional(
        "provider-opts",
        FieldType::Map,
        "`{:openrouter {...}}`: added to the request unchanged.",
    ),
    super::provider_tools::FIELD,
    Field::optional(
        "reasoning-effort",
        FieldType::Name,
        "`:low`, `:medium` or `:high`.",
    ),
    Field::optional(
        "repair",
        FieldType::Int,
        "How many times an answer that does not satisfy `:output` or `:expect` is sent back to the model with the problem. Default 0.",
    ),
    Field::optional(
        "response-format",
        FieldType::Any,
        "`:json`, or the provider's own map. Overrides `:output`.",
    ),
    Field::optional("seed", FieldType::Int, "Forwarded."),
    Field::optional(
        "stop",
        FieldType::Either(&[FieldType::Text, FieldType::Items]),
        "Texts at which the answer ends.",
    ),
    Field::optional("system", FieldType::Text, "The system prompt."),
    Field::optional("temperature", SCALAR, "Forwarded."),
    Field::optional(
        "template",
        FieldType::Name,
        "A template of type `:llm-prompt`. Options of the step override it: a prompt or messages of the step replace the template's prompt.",
    ),
    Field::optional(
        "tools",
        FieldType::Either(&[FieldType::Map, FieldType::Items]),
        "`{:definitions [{:name :description :input-schema}] :choice :auto}`, or that vector: the model's calls are returned under `:tool-calls`. `{:mode :execute :allowed :steps :agents :mcp}` executes them, as `:agent` does.",
    ),
    Field::optional("top-p", SCALAR, "Forwarded."),
];
