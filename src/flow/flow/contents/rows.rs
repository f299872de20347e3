//! The fields of the entries of a definition, as data. Fields that are checked while the definition is read are `Any`
//! here.

use crate::auth;
use crate::mcp_interfaces::{McpKind, TaskMoment};
use crate::step::{Field, FieldType};

/// The kinds of interfaces, sorted.
pub(super) const INTERFACES: &[&str] = &["http", "manual", "mcp", "webhook"];

const NAMES: FieldType = FieldType::List(&FieldType::Name);
const DESCRIPTION: Field = Field::optional(
    "description",
    FieldType::Any,
    "A description for people and models.",
);
const ENABLED: Field = Field::optional("enabled", FieldType::Bool, "Whether it is turned on.");
const ID: Field = Field::optional("id", FieldType::Any, "Its permanent name.");
const INVOKES: Field = Field::optional(
    "invocation",
    FieldType::Any,
    "The invocation that it calls.",
);
const LABEL: Field = Field::optional("label", FieldType::Any, "The name that people see.");

/// An entry of `:inputs`, or of `:fields` of a form.
pub(super) const INPUT: &[Field] = &[
    Field::optional("default", FieldType::Any, "The value if none is given."),
    DESCRIPTION,
    Field::optional("field-type", FieldType::Any, "The older name of `:type`."),
    Field::optional("help", FieldType::Text, "Help for filling it in."),
    Field::optional("key", FieldType::Any, "The older name of `:name`."),
    LABEL,
    Field::optional(
        "multiple",
        FieldType::Bool,
        "Whether the input is a vector of such values.",
    ),
    Field::optional("name", FieldType::Any, "The key of the input."),
    Field::optional(
        "options",
        FieldType::List(&FieldType::Any),
        "The choices of a `:select`: values, or maps with `:value` and `:label`.",
    ),
    Field::optional(
        "placeholder",
        FieldType::Text,
        "The text that an empty field shows.",
    ),
    Field::optional("required", FieldType::Bool, "Whether a run requires it."),
    Field::optional("type", FieldType::Any, "The type of the input."),
];

/// An entry of `:invocations`.
pub(super) const INVOCATION: &[Field] = &[
    DESCRIPTION,
    Field::optional(
        "inputs",
        FieldType::List(&FieldType::Keys(INPUT)),
        "The inputs of a run.",
    ),
    LABEL,
];

/// A form among `:requires`.
pub(super) const FORM: &[Field] = &[
    Field::optional(
        "collect",
        FieldType::OneOf(&["run", "setup"]),
        "When the values are asked for: once (`:setup`, the default), or for each run.",
    ),
    DESCRIPTION,
    Field::required(
        "fields",
        FieldType::List(&FieldType::Keys(INPUT)),
        "The fields of the form.",
    ),
    ID,
    KIND,
    LABEL,
    Field::optional("title", FieldType::Text, "The older name of `:label`."),
];

const KIND: Field = Field::optional(
    "kind",
    FieldType::OneOf(&["connection", "form", "worker"]),
    "The kind of requirement; `:connection` by default.",
);

/// An entry of `:requires` whose kind does not exist.
pub(super) const REQUIREMENT: &[Field] = &[KIND];

/// A connection among `:requires`.
pub(super) const CONNECTION: &[Field] = &[
    Field::optional(
        "allow-hosts",
        FieldType::Any,
        "Hosts of a private network that requests may reach.",
    ),
    Field::optional(
        "allow-link-local",
        FieldType::Bool,
        "Whether requests may reach link-local addresses.",
    ),
    Field::optional("auth", auth::CONNECTION, "How requests are authenticated."),
    Field::optional(
        "backend",
        FieldType::Name,
        "The provider of models, or `:mcp`.",
    ),
    Field::optional("backends", NAMES, "The providers that may be bound."),
    Field::optional("base-url", FieldType::Text, "The URL of the server."),
    Field::optional(
        "capabilities",
        FieldType::Any,
        "The capabilities of a provider's models.",
    ),
    Field::optional(
        "command",
        FieldType::Any,
        "Not accepted from a flow; set it in the project's settings.",
    ),
    Field::optional(
        "config",
        FieldType::Any,
        "Further settings of the connection's type.",
    ),
    DESCRIPTION,
    Field::optional("family", FieldType::Name, "The wire format of a provider."),
    Field::optional("headers", FieldType::Map, "Headers of each request."),
    KIND,
    LABEL,
    Field::optional("model", FieldType::Text, "The name of the model."),
    Field::optional("oauth", FieldType::Any, "How a token is obtained."),
    Field::optional("optional", FieldType::Bool, "Whether runs work without it."),
    Field::optional(
        "provided-by",
        FieldType::OneOf(&["author", "installer", "user", "workspace"]),
        "Who provides the connection.",
    ),
    Field::optional("provider", FieldType::Name, "The provider of models."),
    Field::optional("region", FieldType::Name, "The region, for AWS."),
    Field::optional("required", FieldType::Bool, "The opposite of `:optional`."),
    Field::optional(
        "script",
        FieldType::Any,
        "The answers of a scripted provider.",
    ),
    Field::optional(
        "scopes",
        FieldType::Any,
        "The scopes that a token is requested for.",
    ),
    Field::optional(
        "secret-ref",
        FieldType::Name,
        "The secret of a `:type :secret`.",
    ),
    Field::required(
        "slot",
        FieldType::Name,
        "The name by which steps refer to it in `:connection`.",
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
        "The type of the connection.",
    ),
];

/// Returns the fields of an interface of a category.
pub(super) fn interface(category: &str) -> &'static [Field] {
    match category {
        "http" => HTTP,
        "mcp" => MCP,
        "webhook" => WEBHOOK,
        _ => MANUAL,
    }
}

pub(super) const MANUAL: &[Field] = &[DESCRIPTION, ENABLED, ID, INVOKES, LABEL];

pub(super) const HTTP: &[Field] = &[
    Field::optional("auth", auth::HTTP_CALLER, "How callers are authenticated."),
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
        "The HTTP method.",
    ),
    Field::optional("path", FieldType::Text, "The path of the interface."),
    TIMEOUT,
];

pub(super) const MCP: &[Field] = &[
    DESCRIPTION,
    ENABLED,
    ID,
    Field::optional(
        "input-schema",
        FieldType::Any,
        "JSON Schema or Malli of the arguments, if it is more exact than the inputs.",
    ),
    INVOKES,
    Field::optional(
        "kind",
        FieldType::OneOf(McpKind::NAMES),
        "Whether it is a tool, a prompt or a resource; a tool by default.",
    ),
    LABEL,
    Field::optional(
        "mime-type",
        FieldType::Text,
        "The media type of a resource's text.",
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
    Field::optional(
        "tool-name",
        FieldType::Any,
        "The name of the tool for models.",
    ),
    Field::optional(
        "uri",
        FieldType::Text,
        "The URI of a resource; `{name}` stands for an input.",
    ),
];

pub(super) const WEBHOOK: &[Field] = &[
    Field::optional("auth", auth::CALLER, "How callers are authenticated."),
    DEDUPE,
    DESCRIPTION,
    ENABLED,
    Field::optional("event-name", FieldType::Name, "The name of the event."),
    Field::optional("fields", FieldType::Any, "The fields of a payload."),
    ID,
    INVOKES,
    KEEP_RAW,
    LABEL,
    Field::optional("path", FieldType::Text, "The path of the webhook."),
    TIMEOUT,
    WINDOW,
];

const DEDUPE: Field = Field::optional(
    "dedupe",
    FieldType::Either(&[
        FieldType::Keys(&[Field::required(
            "header",
            FieldType::Text,
            "The header that identifies a delivery.",
        )]),
        FieldType::Keys(&[Field::required(
            "path",
            FieldType::Items,
            "The path in the payload that identifies a delivery.",
        )]),
    ]),
    "How repeated deliveries are recognised.",
);
const KEEP_RAW: Field = Field::optional(
    "keep-raw",
    FieldType::Bool,
    "Whether the raw bytes of the body are stored.",
);
const TIMEOUT: Field = Field::optional(
    "timeout",
    FieldType::Duration,
    "Maximum time that a caller waits for the end of the run.",
);
const WINDOW: Field = Field::optional(
    "window",
    FieldType::Duration,
    "How long deliveries are remembered.",
);

/// An entry of `:triggers`.
pub(super) const TRIGGER: &[Field] = &[
    Field::optional(
        "config",
        FieldType::Keys(TRIGGER_CONFIG),
        "The settings of the trigger's type.",
    ),
    DESCRIPTION,
    ENABLED,
    ID,
    LABEL,
    Field::optional(
        "type",
        FieldType::OneOf(&["event", "manual", "schedule", "webhook"]),
        "The kind of trigger.",
    ),
];

const TRIGGER_CONFIG: &[Field] = &[
    Field::optional("auth", auth::CALLER, "How callers are authenticated."),
    Field::optional("catch-up", FieldType::Any, "What to do about missed ticks."),
    Field::optional("cron", FieldType::Any, "The ticks, as a cron expression."),
    DEDUPE,
    DESCRIPTION,
    ENABLED,
    Field::optional("event-name", FieldType::Name, "The name of the event."),
    Field::optional("every", FieldType::Any, "The interval between ticks."),
    Field::optional(
        "fields",
        FieldType::List(&FieldType::Keys(INPUT)),
        "The inputs of a run.",
    ),
    Field::optional("input", FieldType::Any, "The input of a scheduled run."),
    Field::optional(
        "invocation",
        FieldType::Any,
        "The invocation that it calls.",
    ),
    KEEP_RAW,
    LABEL,
    Field::optional("path", FieldType::Text, "The path of the webhook."),
    Field::optional(
        "signal-key",
        FieldType::Any,
        "The key of the payload that names a wait.",
    ),
    Field::optional(
        "source",
        FieldType::OneOf(&["event", "webhook"]),
        "The source of the event.",
    ),
    TIMEOUT,
    Field::optional(
        "timezone",
        FieldType::Any,
        "The timezone of the cron expression.",
    ),
    WINDOW,
];

/// An entry of `:functions`.
pub(super) const FUNCTION: &[Field] = &[
    Field::optional("code", FieldType::Any, "The code."),
    DESCRIPTION,
    Field::optional("doc", FieldType::Any, "A description of the function."),
    ID,
    LABEL,
    Field::optional("language", FieldType::Any, "Always `:clojure`."),
    Field::optional("name", FieldType::Any, "The name that people see."),
];

/// An entry of `:templates`.
pub(super) const TEMPLATE: &[Field] = &[
    Field::optional(
        "channels",
        FieldType::Map,
        "The channels of a notification.",
    ),
    Field::optional(
        "data",
        FieldType::Any,
        "Values for variables that the step does not set.",
    ),
    DESCRIPTION,
    ID,
    LABEL,
    Field::optional("name", FieldType::Any, "The name that people see."),
    Field::optional("prompt", FieldType::Any, "The text of a prompt."),
    Field::optional("query", FieldType::Any, "The older name of `:sql`."),
    Field::optional("request", FieldType::Map, "The fields of a request."),
    Field::optional("sql", FieldType::Any, "The statement of a query."),
    Field::optional(
        "strict",
        FieldType::Bool,
        "Whether a missing variable is an error.",
    ),
    Field::optional("system", FieldType::Any, "The system message of a prompt."),
    Field::optional("type", FieldType::Any, "The kind of template."),
];
