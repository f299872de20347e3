//! The playbook of the build kit for clients of MCP: the first answer of a session, a prompt and a resource, byte for byte the
//! same text. The prompt, and a resource of its own, have the newest text of the bound flow beside it.

use flowstone_fronts::kit::playbook;
use flowstone_project::registry::FlowRegistry;
use serde_json::{Map, Value as Json, json};

use super::peer::{Request, refused};
use super::protocol::RpcError;
use crate::http::{EngineContext, Problem};
use crate::kit::KitDoor;

/// The resource with the newest revision of the bound flow.
const FLOW: &str = "flowstone://flow";
const MARKDOWN: &str = "text/markdown";

/// Returns the prompts.
pub(super) fn prompts() -> Json {
    json!({"prompts": [{"name": playbook::NAME, "description": playbook::DESCRIPTION}]})
}

/// Returns a prompt: the playbook, and what there is of the flow.
///
/// # Errors
/// When there is no such prompt, or the store cannot be read.
pub(super) async fn prompt(
    rq: &Request,
    door: &KitDoor,
    params: &Map<String, Json>,
) -> Result<Json, RpcError> {
    if params.get("name").and_then(Json::as_str) != Some(playbook::NAME) {
        let message = format!("the only prompt is `{}`", playbook::NAME);
        return Err(RpcError::params(message));
    }
    let message = |text: &str| json!({"role": "user", "content": {"type": "text", "text": text}});
    let flow = head(rq, door).await?;
    Ok(json!({
        "description": playbook::DESCRIPTION,
        "messages": [message(playbook::TEXT), message(&flow)],
    }))
}

/// Returns the resources.
pub(super) fn resources() -> Json {
    let resource = |uri: &str, name: &str, description: &str| json!({"uri": uri, "name": name, "description": description, "mimeType": MARKDOWN});
    let flow = "The newest revision of the flow that the kit is open for, with its id.";
    json!({"resources": [
        resource(playbook::URI, playbook::NAME, playbook::DESCRIPTION),
        resource(FLOW, "flow", flow),
    ]})
}

/// Returns the contents of a resource.
///
/// # Errors
/// When there is no such resource, or the store cannot be read.
pub(super) async fn resource(
    rq: &Request,
    door: &KitDoor,
    params: &Map<String, Json>,
) -> Result<Json, RpcError> {
    let uri = params.get("uri").and_then(Json::as_str).unwrap_or_default();
    let text = match uri {
        playbook::URI => playbook::TEXT.to_owned(),
        FLOW => head(rq, door).await?,
        _ => {
            let message = format!("the resources are `{}` and `{FLOW}`", playbook::URI);
            return Err(RpcError::params(message));
        }
    };
    Ok(json!({"contents": [{"uri": uri, "mimeType": MARKDOWN, "text": text}]}))
}

/// Describes the newest revision of the bound flow.
async fn head(rq: &Request, door: &KitDoor) -> Result<String, RpcError> {
    let Some(slug) = door.slug.clone() else {
        return Ok("The kit is not open for a flow.\n".to_owned());
    };
    let caller = rq.caller.clone();
    let asked = rq.server.ask(async move |cx: &EngineContext| {
        let labels = cx.catalog.labels(&cx.engine, &slug);
        if !caller.token.reaches_flow(&slug, &labels) {
            return Ok(playbook::no_flow(&slug));
        }
        if !crate::kit::may_read(&caller.token) {
            return Ok(playbook::unread_flow(&slug));
        }
        let registry = FlowRegistry::new(cx.engine.stores(), cx.engine.now_ms());
        let head = playbook::head(&registry, &slug, usize::MAX).await;
        head.map_err(Problem::from)
    });
    asked.await.map_err(|problem| refused(&problem))
}
