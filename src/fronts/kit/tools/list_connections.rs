//! `list_connections`: the connections that the bound flow can use.

use flowstone_model::token::Scope;
use serde_json::{Value as Json, json};

use crate::kit::context::KitCall;
use crate::kit::discovery::Integrations;
use crate::kit::flows::bound_flow;
use crate::kit::schema::object;
use crate::kit::tool::{Answer, Arguments, Bound, InTest, Permission, Tool};

pub const TOOL: Tool = Tool {
    name: "list_connections",
    description: "Lists the connections of the project and the slots of the flow, each with its state: `ready`, `needs_auth` \
                  or `needs_input`. No secret is in the answer.",
    input,
    output,
    bound: &[Bound::Flow, Bound::Workspace],
    read_only: true,
    permission: Permission::Allow,
    scope: Scope::Read,
    timeout_ms: 15_000,
    timeout_of: None,
    default_on: false,
    wrapper: None,
    in_test: InTest::Answered,
    check: None,
    call: |cx, arguments| Box::pin(list(cx, arguments)),
};

fn input() -> Json {
    object(json!({}), &[])
}

fn output() -> Json {
    object(
        json!({
            "count": {"type": "integer"},
            "connections": {
                "type": "array",
                "items": object(
                    json!({
                        "id": {"type": "string"},
                        "slug": {"type": "string"},
                        "integration": {"type": "string"},
                        "state": {"enum": ["ready", "needs_auth", "needs_input"]},
                    }),
                    &["id", "slug", "integration", "state"],
                ),
            },
        }),
        &["count", "connections"],
    )
}

async fn list(cx: &KitCall<'_>, _arguments: Arguments) -> Answer {
    let own = bound_flow(cx).await?;
    let integrations = Integrations::of(cx, own.as_deref()).await?.0;
    let connections: Vec<Json> = integrations
        .iter()
        .map(|it| {
            json!({
                "id": it.slug,
                "slug": it.slug,
                "integration": it.report.bound_to.as_ref().unwrap_or(&it.slug),
                "state": it.state.name(),
            })
        })
        .collect();
    Ok(json!({"count": connections.len(), "connections": connections}))
}
