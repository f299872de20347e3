//! The members of requests that start generations.

use super::MAX_DEPTH;
use crate::agents::body::{Kind, Member};

/// The body of a new generation.
pub const GENERATE: &[Member] = &[
    Member::optional("active_tool_ids", Kind::Texts, "Instead of the agent's."),
    Member::optional(
        "knowledge_config",
        Kind::Object,
        "Added to the agent's: lists are united, other members replaced.",
    ),
    Member::optional(
        "max_call_depth",
        Kind::Int(0, MAX_DEPTH),
        "The depth of nested generations; 10 if it is left out.",
    ),
    Member::optional(
        "messages",
        Kind::Objects,
        "The conversation so far: `{role, content}`.",
    ),
    Member::optional(
        "project_id",
        Kind::Text,
        "Must be the project of the agent.",
    ),
    Member::optional(
        "prompt",
        Kind::Text,
        "A message of the user, after `messages`.",
    ),
    Member::optional("step_rules", Kind::Objects, "Instead of the agent's."),
    Member::optional("stop_conditions", Kind::Objects, "Instead of the agent's."),
    Member::optional(
        "stream",
        Kind::Flag,
        "Whether the answer is a stream of server-sent events.",
    ),
    Member::optional("tool_choice", Kind::TextOrObject, "Instead of the agent's."),
    Member::optional(
        "tool_context",
        Kind::Object,
        "Texts that are sent to the servers of tools as headers.",
    ),
];
