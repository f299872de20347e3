//! What entries of a definition may have, as data. What the reading of the definition checks is `Any` here.

use crate::auth;
use crate::mcp_interfaces::{McpKind, TaskMoment};
use crate::step::{Field, FieldType};

/// What an interface may be called through, sorted.
pub(super) const INTERFACES: &[&str] = &["http", "manual", "mcp", "webhook"];

const NAMES: FieldType = FieldType::List(&FieldType::Name);
const DESCRIPTION: Field = Field::optional("description", FieldType::Any, "What it is for.");
const ENABLED: Field = Field::optional("enabled", FieldType::Bool, "Whether it is on.");
const ID: Field = Field::optional("id", FieldType::Any, "Its name, which stays the same.");
const INVOKES: Field = Field::optional("invocation", FieldType::Any, "Which invocation it calls.");
const LABEL: Field = Field::optional("label", FieldType::Any, "What people see.");

/// One of `:inputs`, and one of `:fields` of a form.
pub(super) const INPUT: &[Field] = &[
    Field::optional("default", FieldType::Any, "The value where none is given."),
    DESCRIPTION,
    Field::optional("field-type", FieldType::Any, "The older name of `:type`."),
    Field::optional("help", FieldType::Text, "What helps to fill it in."),
    Field::optional("key", FieldType::Any, "The older name of `:name`."),
    LABEL,
    Field::optional(
        "multiple",
        FieldType::Bool,
        "Whether it is a vector of such values.",
    ),
    Field::optional("name", FieldType::Any, "The key of the input."),
    Field::optional(
        "options",
        FieldType::List(&FieldType::Any),
        "What a `:select` may be: values, or maps with `:value` and `:label`.",
    ),
    Field::optional("placeholder", FieldType::Text, "What an empty field shows."),
    Field::optional("required", FieldType::Bool, "Whether a run needs it."),
    Field::optional("type", FieldType::Any, "One of the types of inputs."),
];

/// One of `:invocations`.
pub(super) const INVOCATION: &[Field] = &[
    DESCRIPTION,
    Field::optional(
        "inputs",
        FieldType::List(&FieldType::Keys(INPUT)),
        "What a run is given.",
    ),
    LABEL,
];

/// A form among `:requires`.
pub(super) const FORM: &[Field] = &[
    Field::optional(
        "collect",
        FieldType::OneOf(&["run", "setup"]),
        "When the value is asked for: once (default), or for each run.",
    ),
    DESCRIPTION,
    Field::required(
        "fields",
        FieldType::List(&FieldType::Keys(INPUT)),
        "What it asks for.",
    ),
    ID,
    KIND,
    LABEL,
    Field::optional("title", FieldType::Text, "The older name of `:label`."),
];

const KIND: Field = Field::optional(
    "kind",
    FieldType::OneOf(&["connection", "form", "worker"]),
    "What is required; a connection where it is left out.",
);

/// An entry of `:requires` of a kind that does not exist.
pub(super) const REQUIREMENT: &[Field] = &[KIND];

/// A connection among `:requires`.
pub(super) const CONNECTION: &[Field] = &[
    Field::optional(
        "allow-hosts",
        FieldType::Any,
        "Hosts of a private network that it may reach.",
    ),
    Field::optional(
        "allow-link-local",
        FieldType::Bool,
        "Whether it may reach link-local addresses.",
    ),
    Field::optional(
        "auth",
        auth::CONNECTION,
        "How requests show who sends them.",
    ),
    Field::optional(
        "backend",
        FieldType::Name,
        "Which provider of models, or `:mcp`.",
    ),
    Field::optional("backends", NAMES, "Which providers may be bound."),
    Field::optional("base-url", FieldType::Text, "Where the server is."),
    Field::optional(
        "capabilities",
        FieldType::Any,
        "What a provider's models can do.",
    ),
    Field::optional(
        "command",
        FieldType::Any,
        "Not from a flow: the project says it.",
    ),
    Field::optional(
        "config",
        FieldType::Any,
        "What the connection's type takes beside.",
    ),
    DESCRIPTION,
    Field::optional("family", FieldType::Name, "The wire format of a provider."),
    Field::optional("headers", FieldType::Map, "Headers of each request."),
    KIND,
    LABEL,
    Field::optional("model", FieldType::Text, "Which model."),
    Field::optional("oauth", FieldType::Any, "How a token is got."),
    Field::optional(
        "optional",
        FieldType::Bool,
        "Whether runs may go without it.",
    ),
    Field::optional(
        "provided-by",
        FieldType::OneOf(&["author", "installer", "user", "workspace"]),
        "Who binds it.",
    ),
    Field::optional("provider", FieldType::Name, "Which provider."),
    Field::optional("region", FieldType::Name, "The region, for AWS."),
    Field::optional("required", FieldType::Bool, "The opposite of `:optional`."),
    Field::optional(
        "script",
        FieldType::Any,
        "What a scripted provider answers.",
    ),
    Field::optional("scopes", FieldType::Any, "What a token is for."),
    Field::optional(
        "secret-ref",
        FieldType::Name,
        "The secret of a `:type :secret`.",
    ),
    Field::required(
        "slot",
        FieldType::Name,
        "What steps name it by: `:connection`.",
    ),
    Field::optional(
        "type",
        FieldType::OneOf(&[
            "blob-storage",
            "database",
            "http-api",
            "kv-store",
            "llm-provider",
            "mcp",
            "secret",
            "ssh",
        ]),
        "What kind of connection it is.",
    ),
];

/// Returns what an interface of a category may have.
pub(super) fn interface(category: &str) -> &'static [Field] {
    match category {
        "http" => HTTP,
        "mcp" => MCP,
        "webhook" => WEBHOOK,
        _ => MANUAL,
    }
}

const MANUAL: &[Field] = &[DESCRIPTION, ENABLED, ID, INVOKES, LABEL];

const HTTP: &[Field] = &[
    Field::optional("auth", auth::HTTP_CALLER, "How callers prove who they are."),
    DESCRIPTION,
    ENABLED,
    ID,
    INVOKES,
    LABEL,
    Field::optional(
        "method",
        FieldType::OneOf(&[
            "delete", "get", "patch", "post", "put", "DELETE", "GET", "PATCH", "POST", "PUT",
        ]),
        "How it is called.",
    ),
    Field::optional("path", FieldType::Text, "Where it is called."),
    TIMEOUT,
];

const MCP: &[Field] = &[
    DESCRIPTION,
    ENABLED,
    ID,
    Field::optional(
        "input-schema",
        FieldType::Any,
        "JSON Schema or Malli of the arguments, where it says more than the inputs.",
    ),
    INVOKES,
    Field::optional(
        "kind",
        FieldType::OneOf(McpKind::NAMES),
        "What clients use it as; a tool where it is left out.",
    ),
    LABEL,
    Field::optional(
        "mime-type",
        FieldType::Text,
        "The type of a resource's text.",
    ),
    Field::optional(
        "output-schema",
        FieldType::Any,
        "JSON Schema or Malli of the result of a tool.",
    ),
    Field::optional(
        "task",
        FieldType::OneOf(TaskMoment::NAMES),
        "When a call becomes a task, for clients that know tasks; late where it is left out.",
    ),
    Field::optional(
        "task-required",
        FieldType::Bool,
        "Whether clients that do not know tasks are refused.",
    ),
    Field::optional("tool-name", FieldType::Any, "What models call it."),
    Field::optional(
        "uri",
        FieldType::Text,
        "Where a resource is; `{name}` stands for an input.",
    ),
];

const WEBHOOK: &[Field] = &[
    Field::optional("auth", auth::CALLER, "How callers prove who they are."),
    DEDUPE,
    DESCRIPTION,
    ENABLED,
    Field::optional("event-name", FieldType::Name, "Which event it is."),
    Field::optional("fields", FieldType::Any, "What a payload has."),
    ID,
    INVOKES,
    KEEP_RAW,
    LABEL,
    Field::optional("path", FieldType::Text, "Where it is called."),
    TIMEOUT,
    WINDOW,
];

const DEDUPE: Field = Field::optional(
    "dedupe",
    FieldType::Either(&[
        FieldType::Keys(&[Field::required(
            "header",
            FieldType::Text,
            "The header that has it.",
        )]),
        FieldType::Keys(&[Field::required(
            "path",
            FieldType::Items,
            "Where it is in the payload.",
        )]),
    ]),
    "What tells deliveries apart.",
);
const KEEP_RAW: Field = Field::optional(
    "keep-raw",
    FieldType::Bool,
    "Whether the bytes of the body are stored.",
);
const TIMEOUT: Field = Field::optional(
    "timeout",
    FieldType::Duration,
    "How long a caller waits for the end of the run.",
);
const WINDOW: Field = Field::optional(
    "window",
    FieldType::Duration,
    "How long deliveries are remembered.",
);

/// One of `:triggers`.
pub(super) const TRIGGER: &[Field] = &[
    Field::optional(
        "config",
        FieldType::Keys(TRIGGER_CONFIG),
        "What the trigger's type takes.",
    ),
    DESCRIPTION,
    ENABLED,
    ID,
    LABEL,
    Field::optional(
        "type",
        FieldType::OneOf(&["event", "manual", "schedule", "webhook"]),
        "What starts a run.",
    ),
];

const TRIGGER_CONFIG: &[Field] = &[
    Field::optional("auth", auth::CALLER, "How callers prove who they are."),
    Field::optional("catch-up", FieldType::Any, "What becomes of missed times."),
    Field::optional("cron", FieldType::Any, "When, as a cron expression."),
    DEDUPE,
    DESCRIPTION,
    ENABLED,
    Field::optional("event-name", FieldType::Name, "Which event it is."),
    Field::optional("every", FieldType::Any, "How often."),
    Field::optional(
        "fields",
        FieldType::List(&FieldType::Keys(INPUT)),
        "What a run is given.",
    ),
    Field::optional("input", FieldType::Any, "What a scheduled run is given."),
    Field::optional("invocation", FieldType::Any, "Which invocation it calls."),
    KEEP_RAW,
    LABEL,
    Field::optional("path", FieldType::Text, "Where it is called."),
    Field::optional(
        "signal-key",
        FieldType::Any,
        "Which key of the payload names a wait.",
    ),
    Field::optional(
        "source",
        FieldType::OneOf(&["event", "webhook"]),
        "Where the event comes from.",
    ),
    TIMEOUT,
    Field::optional(
        "timezone",
        FieldType::Any,
        "In which timezone the times are.",
    ),
    WINDOW,
];

/// One of `:functions`.
pub(super) const FUNCTION: &[Field] = &[
    Field::optional("code", FieldType::Any, "The code."),
    DESCRIPTION,
    Field::optional("doc", FieldType::Any, "What it is for."),
    ID,
    LABEL,
    Field::optional("language", FieldType::Any, "Always `:clojure`."),
    Field::optional("name", FieldType::Any, "What people see."),
];

/// One of `:templates`.
pub(super) const TEMPLATE: &[Field] = &[
    Field::optional(
        "channels",
        FieldType::Map,
        "Of a notification: where it goes.",
    ),
    Field::optional("data", FieldType::Any, "Values where the step gives none."),
    DESCRIPTION,
    ID,
    LABEL,
    Field::optional("name", FieldType::Any, "What people see."),
    Field::optional("prompt", FieldType::Any, "Of a prompt: the text."),
    Field::optional("query", FieldType::Any, "The older name of `:sql`."),
    Field::optional("request", FieldType::Map, "Of a request: what is sent."),
    Field::optional("sql", FieldType::Any, "Of a query: the statement."),
    Field::optional(
        "strict",
        FieldType::Bool,
        "Whether a missing variable is an error.",
    ),
    Field::optional("system", FieldType::Any, "The system message of a prompt."),
    Field::optional("type", FieldType::Any, "What it is a template of."),
];
