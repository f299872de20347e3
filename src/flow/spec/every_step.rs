//! The options that every step takes, as data. Reference pages and schemas use the descriptions here; each option is
//! checked by the module that implements it.

use super::{Field, FieldType};

/// The options that every step takes. The engine acts on them; steps never see them.
pub const COMMON: &[Field] = &[
    Field::optional(
        "confirm",
        FieldType::Either(&[FieldType::Bool, FieldType::Keys(CONFIRM)]),
        "Waits for a person's approval before the step.",
    ),
    Field::optional(
        "expect",
        FieldType::Keys(EXPECT),
        "Conditions that the result must satisfy.",
    ),
    Field::optional(
        "idempotency-key",
        FieldType::Text,
        "Sent to the other side, so that a repeated call is recognised.",
    ),
    Field::optional(
        "metering",
        FieldType::Keys(METERING),
        "A cost line for the run's record.",
    ),
    Field::optional(
        "on-doubt",
        FieldType::Either(&[SETTLE, FieldType::Keys(ON_DOUBT)]),
        "How to resolve a step that a crash left in doubt.",
    ),
    Field::optional(
        "on-error",
        FieldType::OneOf(&["checkpoint", "fail", "skip"]),
        "What to do when the step has failed after all attempts.",
    ),
    Field::optional(
        "persist",
        FieldType::Either(&[
            FieldType::Keys(PERSIST_BLOB),
            FieldType::Keys(PERSIST_KV),
            FieldType::Keys(PERSIST_TABLE),
        ]),
        "Where to store the result. The value of the step is then a reference.",
    ),
    Field::optional(
        "retry",
        FieldType::Keys(RETRY),
        "How often and when to try again.",
    ),
    Field::optional(
        "review",
        FieldType::Either(&[FieldType::Bool, FieldType::Keys(REVIEW)]),
        "Waits for a person to look at the result.",
    ),
    Field::optional(
        "timeout",
        FieldType::Duration,
        "Maximum duration of one attempt.",
    ),
    Field::optional(
        "title",
        FieldType::Text,
        "The title of the step in reports.",
    ),
    Field::optional(
        "total-timeout",
        FieldType::Either(&[FieldType::Duration, FieldType::Keys(TOTAL_TIMEOUT)]),
        "Maximum duration of the step: of all attempts with the pauses between them. Time in which a person is asked does \
         not count.",
    ),
    Field::optional("type", FieldType::Name, "Repeats the step type."),
];

const TOTAL_TIMEOUT: &[Field] = &[
    Field::optional(
        "from",
        FieldType::Int,
        "The time from which the limit counts, as `(flow/now-ms)` returns it: steps with the same one share the limit. \
         Default: the start of the step.",
    ),
    Field::required("limit", FieldType::Duration, "The limit."),
];

const SETTLE: FieldType = FieldType::OneOf(&["ask", "fail", "retry"]);
/// Milliseconds, or text such as `"10ms"`.
const MILLIS: FieldType = FieldType::Either(&[FieldType::Number, FieldType::Duration]);
const NAMES: FieldType = FieldType::List(&FieldType::Name);

const CONFIRM: &[Field] = &[
    Field::optional(
        "actions",
        FieldType::List(&FieldType::OneOf(&["approve", "reject"])),
        "The allowed answers. Default: all of them.",
    ),
    MESSAGE,
    ON_TIMEOUT,
    ROLES,
    PATIENCE,
];

const REVIEW: &[Field] = &[
    Field::optional(
        "actions",
        FieldType::List(&FieldType::OneOf(&["approve", "edit", "reject"])),
        "The allowed answers. Default: all of them.",
    ),
    MESSAGE,
    ON_TIMEOUT,
    ROLES,
    PATIENCE,
];

const MESSAGE: Field = Field::optional(
    "message",
    FieldType::Text,
    "The message for the people who decide.",
);
const ON_TIMEOUT: Field = Field::optional(
    "on-timeout",
    FieldType::OneOf(&["approve", "fail", "reject"]),
    "What happens if nobody answers in time; needs `:timeout`.",
);
const ROLES: Field = Field::optional("roles", NAMES, "The roles that may decide.");
const PATIENCE: Field = Field::optional(
    "timeout",
    FieldType::Duration,
    "Maximum time to wait for the answer.",
);

const EXPECT: &[Field] = &[
    Field::optional(
        "contains",
        FieldType::Any,
        "Keys that a map must have, parts of a string, items of a collection.",
    ),
    Field::optional("equals", FieldType::Any, "The expected value."),
    Field::optional(
        "fn",
        FieldType::Function,
        "A predicate that must hold for the value.",
    ),
    Field::optional(
        "matches",
        FieldType::Any,
        "A regex that must be found in the value.",
    ),
    Field::optional("schema", FieldType::Any, "A Malli schema of the value."),
];

const METERING: &[Field] = &[
    Field::optional("label", FieldType::Text, "The name of the cost line."),
    Field::optional(
        "quantity",
        FieldType::Either(&[FieldType::Number, FieldType::Function]),
        "The number of units, or a function of the step's value. Default: 1.",
    ),
    Field::optional(
        "unit",
        FieldType::Name,
        "The unit that is counted. Default: `:request`.",
    ),
    Field::required(
        "unit-cost-micros",
        FieldType::Number,
        "The cost of a unit, in millionths of a dollar.",
    ),
];

const ON_DOUBT: &[Field] = &[
    Field::optional(
        "done",
        FieldType::Function,
        "A function of the probe's value that returns whether the step was done.",
    ),
    Field::optional(
        "else",
        SETTLE,
        "How to resolve the step if the probe fails.",
    ),
    Field::required(
        "probe",
        FieldType::Either(&[FieldType::Map, FieldType::Function]),
        "The config of a step that checks the outcome, with its `:type`, or a function that returns one.",
    ),
];

const RETRY: &[Field] = &[
    Field::optional(
        "backoff-ms",
        MILLIS,
        "Another name of `:initial-interval-ms`.",
    ),
    Field::optional(
        "coefficient",
        FieldType::Number,
        "The factor by which each wait is longer than the one before, from 1 to 100.",
    ),
    Field::optional(
        "initial-interval-ms",
        MILLIS,
        "The first wait, in milliseconds.",
    ),
    Field::optional(
        "jitter",
        FieldType::Number,
        "The maximum random deviation of a wait, as a fraction of it, from 0 to 1.",
    ),
    Field::optional(
        "max-attempts",
        FieldType::IntIn(1, 1000),
        "Maximum number of attempts, including the first.",
    ),
    Field::optional("max-interval-ms", MILLIS, "Maximum wait, in milliseconds."),
    Field::optional(
        "retry-on",
        NAMES,
        "Kinds of errors that are tried again, such as `:timeout`.",
    ),
];

const PERSIST_BLOB: &[Field] = &[
    Field::optional(
        "bucket",
        FieldType::Text,
        "The bucket, if it is not the default one.",
    ),
    Field::optional(
        "content-type",
        FieldType::Text,
        "The media type of the content.",
    ),
    Field::optional("filename", FieldType::Text, "The name of the file."),
    Field::optional("name", FieldType::Text, "Another name of `:filename`."),
    Field::optional(
        "search-index",
        FieldType::Either(&[FieldType::Bool, FieldType::Keys(SEARCH_INDEX)]),
        "How the content can be found by a search.",
    ),
    Field::optional(
        "signed-url",
        FieldType::Either(&[FieldType::Bool, FieldType::Keys(SIGNED_URL)]),
        "Whether the reference includes a temporary link to the content.",
    ),
    Field::optional(
        "tier",
        FieldType::OneOf(&["ephemeral", "retained"]),
        "How long the content is kept; `:ephemeral` only for `:http` steps.",
    ),
    Field::required(
        "type",
        FieldType::OneOf(&["blob"]),
        "Stores the result as a file.",
    ),
];

const SEARCH_INDEX: &[Field] = &[
    Field::optional(
        "contents",
        FieldType::Bool,
        "Whether the content itself is indexed, in addition to its name and this entry. Default: true.",
    ),
    Field::optional(
        "source-label",
        FieldType::Text,
        "The source of the content.",
    ),
    Field::optional(
        "tags",
        FieldType::List(&FieldType::Name),
        "Tags of the content.",
    ),
    Field::optional("text", FieldType::Text, "Text to index for the content."),
];

const SIGNED_URL: &[Field] = &[Field::optional(
    "ttl-seconds",
    FieldType::IntIn(60, 86_400),
    "How long the link is valid, in seconds.",
)];

const PERSIST_KV: &[Field] = &[
    Field::required("key", FieldType::Name, "The key of the value."),
    Field::optional(
        "metadata",
        FieldType::Any,
        "Metadata that is stored with the value.",
    ),
    Field::optional(
        "ttl",
        FieldType::IntIn(1, 31_536_000),
        "The time after which the value expires, in seconds.",
    ),
    Field::required(
        "type",
        FieldType::OneOf(&["kv"]),
        "Stores the result as a value of `:kv`.",
    ),
];

const PERSIST_TABLE: &[Field] = &[
    Field::optional("index-fields", NAMES, "Columns to index for lookups."),
    Field::optional("key-fields", NAMES, "Columns that identify a row."),
    Field::optional("name", FieldType::Name, "Another name of `:table`."),
    Field::optional(
        "partitions",
        FieldType::Map,
        "The partitions of a partitioned table.",
    ),
    Field::optional(
        "rows-path",
        FieldType::Items,
        "The path of the rows in the result.",
    ),
    Field::optional("table", FieldType::Name, "The name of the table."),
    Field::required(
        "type",
        FieldType::OneOf(&["table"]),
        "Stores the result as rows of a table.",
    ),
    Field::optional(
        "write-mode",
        FieldType::OneOf(&["append", "insert", "replace", "upsert"]),
        "What happens to rows with the same key.",
    ),
];
