//! The options that every step takes, as data. Pages and schemas use the descriptions here; each option is checked by
//! the module that implements it.

use super::{Field, FieldType};

/// The options that every step takes. The engine acts on them; steps never see to them.
pub const COMMON: &[Field] = &[
    Field::optional(
        "confirm",
        FieldType::Either(&[FieldType::Bool, FieldType::Keys(CONFIRM)]),
        "Waits for a person's approval before the step.",
    ),
    Field::optional(
        "expect",
        FieldType::Keys(EXPECT),
        "What the result must satisfy.",
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
        "What to do when a crash leaves it open whether the step was done.",
    ),
    Field::optional(
        "on-error",
        FieldType::OneOf(&["checkpoint", "fail", "skip"]),
        "What to do when the step fails for good.",
    ),
    Field::optional(
        "persist",
        FieldType::Either(&[
            FieldType::Keys(PERSIST_BLOB),
            FieldType::Keys(PERSIST_KV),
            FieldType::Keys(PERSIST_TABLE),
        ]),
        "Where to store the result; its value is then a reference.",
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
        "How long one attempt may take.",
    ),
    Field::optional("title", FieldType::Text, "What the timeline calls it."),
    Field::optional("type", FieldType::Name, "Repeats the step type."),
];

const SETTLE: FieldType = FieldType::OneOf(&["ask", "fail", "retry"]);
/// Milliseconds, or text such as `"10ms"`.
const MILLIS: FieldType = FieldType::Either(&[FieldType::Number, FieldType::Duration]);
const NAMES: FieldType = FieldType::List(&FieldType::Name);

const CONFIRM: &[Field] = &[
    Field::optional(
        "actions",
        FieldType::List(&FieldType::OneOf(&["approve", "reject"])),
        "What may be answered; all of them where it is left out.",
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
        "What may be answered; all of them where it is left out.",
    ),
    MESSAGE,
    ON_TIMEOUT,
    ROLES,
    PATIENCE,
];

const MESSAGE: Field = Field::optional("message", FieldType::Text, "What to say to who decides.");
const ON_TIMEOUT: Field = Field::optional(
    "on-timeout",
    FieldType::OneOf(&["approve", "fail", "reject"]),
    "What silence means; needs `:timeout`.",
);
const ROLES: Field = Field::optional("roles", NAMES, "Who may decide.");
const PATIENCE: Field = Field::optional(
    "timeout",
    FieldType::Duration,
    "How long to wait for the answer.",
);

const EXPECT: &[Field] = &[
    Field::optional(
        "contains",
        FieldType::Any,
        "Keys of a map, parts of a string, items of a collection.",
    ),
    Field::optional("equals", FieldType::Any, "The value itself."),
    Field::optional(
        "fn",
        FieldType::Function,
        "A function of the value that must be true.",
    ),
    Field::optional(
        "matches",
        FieldType::Any,
        "A regex that is found in the value.",
    ),
    Field::optional("schema", FieldType::Any, "A Malli schema."),
];

const METERING: &[Field] = &[
    Field::optional("label", FieldType::Text, "What the line is called."),
    Field::optional(
        "quantity",
        FieldType::Either(&[FieldType::Number, FieldType::Function]),
        "How many units; a number, or a function of the step's value. One where it is left out.",
    ),
    Field::optional(
        "unit",
        FieldType::Name,
        "What is counted; `:request` where it is left out.",
    ),
    Field::required(
        "unit-cost-micros",
        FieldType::Number,
        "What a unit costs, in millionths of a dollar.",
    ),
];

const ON_DOUBT: &[Field] = &[
    Field::optional(
        "done",
        FieldType::Function,
        "A function of what the probe gives that says whether the step was done.",
    ),
    Field::optional("else", SETTLE, "What to do where the probe says nothing."),
    Field::required(
        "probe",
        FieldType::Either(&[FieldType::Map, FieldType::Function]),
        "The config of a step that looks, with its `:type`, or a function that gives one.",
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
        "By how much each wait is longer than the one before, from 1 to 100.",
    ),
    Field::optional(
        "initial-interval-ms",
        MILLIS,
        "The first wait, in milliseconds.",
    ),
    Field::optional(
        "jitter",
        FieldType::Number,
        "How far a wait may be off, as a part of it, from 0 to 1.",
    ),
    Field::optional(
        "max-attempts",
        FieldType::IntIn(1, 1000),
        "How often it is tried, the first time included.",
    ),
    Field::optional(
        "max-interval-ms",
        MILLIS,
        "The longest wait, in milliseconds.",
    ),
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
        "Another bucket than the default one.",
    ),
    Field::optional("content-type", FieldType::Text, "What the content is."),
    Field::optional("filename", FieldType::Text, "What it is called."),
    Field::optional("name", FieldType::Text, "Another name of `:filename`."),
    Field::optional(
        "search-index",
        FieldType::Either(&[FieldType::Bool, FieldType::Keys(SEARCH_INDEX)]),
        "What a search finds it by.",
    ),
    Field::optional(
        "signed-url",
        FieldType::Either(&[FieldType::Bool, FieldType::Keys(SIGNED_URL)]),
        "Whether the reference has a link to it that works for a while.",
    ),
    Field::optional(
        "tier",
        FieldType::OneOf(&["ephemeral", "retained"]),
        "How long it is kept; `:ephemeral` of `:http` steps only.",
    ),
    Field::required("type", FieldType::OneOf(&["blob"]), "As a file of its own."),
];

const SEARCH_INDEX: &[Field] = &[
    Field::optional(
        "contents",
        FieldType::Bool,
        "Whether it is found by what is in it, not only by its name and the entry. Default true.",
    ),
    Field::optional("source-label", FieldType::Text, "Where it comes from."),
    Field::optional(
        "tags",
        FieldType::List(&FieldType::Name),
        "Names that it has.",
    ),
    Field::optional("text", FieldType::Text, "Words for its content."),
];

const SIGNED_URL: &[Field] = &[Field::optional(
    "ttl-seconds",
    FieldType::IntIn(60, 86_400),
    "How long the link works.",
)];

const PERSIST_KV: &[Field] = &[
    Field::required("key", FieldType::Name, "Under which key."),
    Field::optional("metadata", FieldType::Any, "What is kept beside it."),
    Field::optional(
        "ttl",
        FieldType::IntIn(1, 31_536_000),
        "After how many seconds it is gone.",
    ),
    Field::required("type", FieldType::OneOf(&["kv"]), "As a value of `:kv`."),
];

const PERSIST_TABLE: &[Field] = &[
    Field::optional("index-fields", NAMES, "Columns that are looked up."),
    Field::optional("key-fields", NAMES, "Columns that tell rows apart."),
    Field::optional("name", FieldType::Name, "Another name of `:table`."),
    Field::optional(
        "partitions",
        FieldType::Map,
        "Which parts of a partitioned table.",
    ),
    Field::optional(
        "rows-path",
        FieldType::Items,
        "Where in the result the rows are.",
    ),
    Field::optional("table", FieldType::Name, "The table's name."),
    Field::required("type", FieldType::OneOf(&["table"]), "As rows of a table."),
    Field::optional(
        "write-mode",
        FieldType::OneOf(&["append", "insert", "replace", "upsert"]),
        "What becomes of rows with the same key.",
    ),
];
