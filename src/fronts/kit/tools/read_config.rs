//! `read_config`: the bound flow's text, or a part of it.

use flowstone_model::token::Scope;
use flowstone_project::registry::{Target, VersionRef};
use serde_json::{Value as Json, json};

use crate::kit::context::KitCall;
use crate::kit::delta;
use crate::kit::error::KitError;
use crate::kit::schema::{object, text};
use crate::kit::tool::{Answer, Arguments, Bound, InTest, Permission, Tool};

/// Number of bytes of an answer, unless the caller names another.
const BYTES: u64 = 65_536;
const BYTES_MAX: u64 = 262_144;

pub const TOOL: Tool = Tool {
    name: "read_config",
    description: "Reads the committed revision of the flow that you build: its files and the agent's settings. `path` selects \
                  a part, such as `parameters.agent.instructions` or `/parameters/files/flow.edn`. The answer has the \
                  `base_revision_id` for `commit_revision`.",
    input,
    output,
    bound: &[Bound::Flow],
    wrapper: None,
    read_only: true,
    permission: Permission::Allow,
    scope: Scope::Read,
    timeout_ms: 15_000,
    timeout_of: None,
    default_on: false,
    in_test: InTest::Answered,
    check: None,
    call: |cx, arguments| Box::pin(read(cx, arguments)),
};

fn input() -> Json {
    object(
        json!({
            "path": text("Keys separated by dots, or a JSON Pointer that begins with `/`."),
            "max_bytes": {"type": "integer", "minimum": 1, "maximum": BYTES_MAX, "default": BYTES},
        }),
        &[],
    )
}

fn output() -> Json {
    object(
        json!({
            "revision": object(json!({"id": {"type": "string"}, "version": {"type": "integer"}}), &["id", "version"]),
            "base_revision_id": {"type": "string"},
            "value": {},
            "bytes": {"type": "integer"},
        }),
        &["revision", "base_revision_id", "value", "bytes"],
    )
}

async fn read(cx: &KitCall<'_>, arguments: Arguments) -> Answer {
    let slug = cx.flow()?;
    let registry = cx.registry();
    let head = registry
        .version(slug, &VersionRef::Target(Target::Draft))
        .await?;
    let files = registry.files(&head).await?;
    let whole = delta::document(&files)?;
    let value = match arguments.get("path").and_then(Json::as_str) {
        None => whole,
        Some(path) => {
            let found = delta::Path::read(path, "/path")?.find(&whole).cloned();
            found.ok_or_else(|| {
                KitError::invalid(
                    "/path",
                    "a path in `parameters`",
                    format!("the revision has nothing at `{path}`"),
                )
            })?
        }
    };
    let bytes = value.to_string().len();
    let most = arguments.get("max_bytes").and_then(Json::as_u64);
    let most = most.unwrap_or(BYTES);
    if bytes as u64 > most {
        return Err(KitError::invalid(
            "/max_bytes",
            format!("at least {bytes}"),
            format!("the value has {bytes} bytes, and at most {most} are returned"),
        )
        .next("name a part with `path`, or a larger `max_bytes`"));
    }
    Ok(json!({
        "revision": {"id": head.revision, "version": head.number},
        "base_revision_id": head.revision,
        "value": value,
        "bytes": bytes,
    }))
}
