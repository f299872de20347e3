//! `request_connection`: asks a person for a connection. The answer comes at once, and has no secret.

use flowstone_model::token::Scope;
use serde_json::{Value as Json, json};

use crate::kit::connectable::wanted;
use crate::kit::connecting::{self, Mode};
use crate::kit::context::KitCall;
use crate::kit::discovery::Integrations;
use crate::kit::error::KitError;
use crate::kit::flows::bound_flow;
use crate::kit::schema::object;
use crate::kit::tool::{Answer, Arguments, Bound, InTest, Permission, Tool};

pub const TOOL: Tool = Tool {
    name: "request_connection",
    description: "Asks the person for a connection that `discover_tools` showed as `needs_auth` or `needs_input`. It does not \
                  wait. Give the person the `url` of the answer, or else its `command`, and stop until they have completed it: \
                  only they see the secret. `ready` means that nothing is needed.",
    input,
    output,
    bound: &[Bound::Flow, Bound::Workspace],
    read_only: false,
    permission: Permission::Allow,
    scope: Scope::Run,
    timeout_ms: 15_000,
    timeout_of: None,
    default_on: true,
    wrapper: None,
    in_test: InTest::Refused,
    check: None,
    call: |cx, arguments| Box::pin(request(cx, arguments)),
};

fn input() -> Json {
    let name = |description: &str| json!({"type": "string", "pattern": "^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$", "description": description});
    object(
        json!({
            "integration": name("What `discover_tools` or `discover_triggers` called it; a provider of models, such as `openai`; or a kind: \
                `database`, `http-api`, `mcp`, `smtp`, `ssh`."),
            "slug": name("What the flow calls the connection; the integration if it is left out."),
            "mode": {
                "enum": ["oauth", "api_key"],
                "description": "How the person proves who they are; what the connection says if it is left out.",
            },
        }),
        &["integration"],
    )
}

fn output() -> Json {
    object(
        json!({
            "status": {"enum": ["ready", "pending"]},
            "integration": {"type": "string"},
            "slug": {"type": "string"},
            "url": {"type": "string"},
            "command": {"type": "string"},
            "expires_at": {"type": "string"},
        }),
        &["status", "integration", "slug"],
    )
}

async fn request(cx: &KitCall<'_>, arguments: Arguments) -> Answer {
    let text = |key: &str| arguments.get(key).and_then(Json::as_str);
    let integration = text("integration").unwrap_or_default();
    let slug = text("slug").unwrap_or(integration);
    let own = bound_flow(cx).await?;
    let integrations = Integrations::of(cx, own.as_deref()).await?;
    let names = (integration, slug);
    let Some(wanted) = wanted(cx, (own.as_deref(), &integrations), names)? else {
        return Ok(json!({"status": "ready", "integration": integration, "slug": slug}));
    };
    let has_login = wanted.has_login;
    let mode = match (text("mode"), has_login) {
        (Some("oauth"), true) | (None, true) => Mode::Oauth,
        (Some("oauth"), false) => {
            return Err(KitError::connection_not_ready(
                slug,
                json!({"slug": slug, "mode": "api_key"}),
            )
            .next(
                "the connection is not described with a login: call again with the mode `api_key`",
            ));
        }
        (Some(_) | None, _) => Mode::ApiKey,
    };
    connecting::request(cx, names, mode, &wanted).await
}
