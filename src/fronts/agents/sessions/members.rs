//! The members of requests about sessions.

use crate::agents::body::{Kind, Member};

/// The body of a new session.
pub const CREATE: &[Member] = &[
    Member::optional("actor_id", Kind::Text, "The actor."),
    Member::optional(
        "auto_generate",
        Kind::Flag,
        "Whether a message starts a generation.",
    ),
    Member::optional(
        "inactivity_ttl_seconds",
        Kind::Int(0, 31_536_000),
        "After how long without a message the session expires; 0 for never.",
    ),
    Member::optional(
        "message_delay_seconds",
        Kind::Int(0, 86_400),
        "How long a message waits for others before they are answered, with `auto_generate`; 0 for not at all.",
    ),
    Member::optional("name", Kind::Name, "The name."),
    Member::optional(
        "tool_context",
        Kind::Object,
        "Texts that are sent to the servers of tools as headers.",
    ),
];

pub(super) const STATUS: Member = Member::kept(
    "status",
    Kind::OneOf(&["closed", "expired", "open"]),
    "Whether the session takes messages.",
);

/// The body of changes of a session.
pub const UPDATE: &[Member] = &[
    Member::optional(
        "auto_generate",
        Kind::Flag,
        "Whether a message starts a generation.",
    ),
    Member::optional(
        "message_delay_seconds",
        Kind::Int(0, 86_400),
        "How long a message waits for others before they are answered, with `auto_generate`; 0 for not at all.",
    ),
    Member::optional("name", Kind::Name, "The name."),
    STATUS,
    Member::optional(
        "tool_context",
        Kind::Object,
        "Texts that are sent to the servers of tools as headers.",
    ),
];

/// The body of a message.
pub const MESSAGE: &[Member] = &[
    Member::optional(
        "document_id",
        Kind::Text,
        "The document whose text is the message.",
    ),
    Member::optional(
        "idempotency_key",
        Kind::Text,
        "The same key adds one message to the session.",
    ),
    Member::optional("message", Kind::Text, "The text."),
    Member::optional(
        "tool_context",
        Kind::Object,
        "For the generation that answers the message.",
    ),
];

/// The body of a generation of a session.
pub const GENERATE: &[Member] = &[
    Member::optional("model", Kind::Text, "Instead of the agent's model."),
    Member::optional(
        "tool_context",
        Kind::Object,
        "Texts that are sent to the servers of tools as headers.",
    ),
];

/// The body of outputs of client tools.
pub const SUBMIT: &[Member] = &[
    Member::required("generation_id", Kind::Text, "The generation."),
    Member::required(
        "tool_outputs",
        Kind::Objects,
        "`{tool_call_id, output}` for each call.",
    ),
];
