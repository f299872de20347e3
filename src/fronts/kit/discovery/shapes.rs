//! The schemas that `discover_tools` and `discover_triggers` have in common.

use serde_json::{Value as Json, json};

use crate::kit::schema::{object, text};
use crate::kit::tool::Arguments;

/// Number of alternatives, unless the caller names another.
const ALTERNATIVES: u64 = 3;

/// Returns the schema of the arguments. The descriptions are those of a use case and of `provider`.
pub fn input(use_case: &str, provider: &str) -> Json {
    object(
        json!({
            "use_cases": {"type": "array", "minItems": 1, "maxItems": 10, "items": text(use_case)},
            "provider": {
                "enum": ["all", "steps", "flows", "mcp"],
                "default": "all",
                "description": provider,
            },
            "limit_alternatives": {"type": "integer", "minimum": 0, "maximum": 10, "default": ALTERNATIVES},
        }),
        &["use_cases"],
    )
}

/// Returns the maximum number of alternatives that the caller wants.
pub fn alternatives(arguments: &Arguments) -> usize {
    let given = arguments.get("limit_alternatives").and_then(Json::as_u64);
    usize::try_from(given.unwrap_or(ALTERNATIVES)).unwrap_or(usize::MAX)
}

/// Returns the schema of the answer. `found` is the member of a use case that has the best match, with its schema, and `name`
/// the member by which an alternative is called. Connections may have an id.
pub fn output(found: (&str, Json), name: &str, with_id: bool) -> Json {
    let (member, found) = found;
    let alternative = object(
        json!({
            "integration": {"type": "string"},
            name: {"type": "string"},
            "description": {"type": "string"},
        }),
        &["integration", name, "description"],
    );
    object(
        json!({
            "capabilities": {"type": "array", "items": capability((member, found), &alternative)},
            "connections": {"type": "array", "items": connection(with_id)},
            "guidance": object(
                json!({"plan_steps": texts(), "pitfalls": texts()}),
                &["plan_steps", "pitfalls"],
            ),
            "ready": {"type": "boolean"},
            "notes": texts(),
        }),
        &["capabilities", "connections", "guidance", "ready", "notes"],
    )
}

fn capability((member, found): (&str, Json), alternative: &Json) -> Json {
    let or_null = |schema: Json| json!({"anyOf": [schema, {"type": "null"}]});
    let connection = object(
        json!({"state": state(), "slug": {"type": ["string", "null"]}}),
        &["state", "slug"],
    );
    object(
        json!({
            "use_case": {"type": "string"},
            "integration": {"type": ["string", "null"]},
            member: or_null(found),
            "alternatives": {"type": "array", "items": alternative},
            "connection": or_null(connection),
            "note": {"type": ["string", "null"]},
        }),
        &[
            "use_case",
            "integration",
            member,
            "alternatives",
            "connection",
            "note",
        ],
    )
}

fn connection(with_id: bool) -> Json {
    let mut properties = json!({
        "integration": {"type": "string"},
        "state": state(),
        "slug": {"type": "string"},
        "connect": object(
            json!({"tool": {"type": "string"}, "arguments": {"type": "object"}}),
            &["tool", "arguments"],
        ),
    });
    if !with_id {
        return object(properties, &["integration", "state"]);
    }
    properties["id"] = json!({"type": ["string", "null"]});
    object(properties, &["id", "integration", "state"])
}

fn state() -> Json {
    json!({"enum": ["ready", "needs_auth", "needs_input"]})
}

fn texts() -> Json {
    json!({"type": "array", "items": {"type": "string"}})
}
