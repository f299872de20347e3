//! `completion/complete`: possible values of an argument of a prompt, or of a part of an address.

use axum::http::Method;
use flowstone_flow::mcp_interfaces::McpKind;
use serde_json::{Map, Value as Json, json};

use super::api;
use super::call::offered;
use super::peer::Request;
use super::protocol::RpcError;

/// Maximum number of values in an answer.
const VALUES_MAX: usize = 100;

/// Returns values that begin with the given text.
///
/// # Errors
/// When the request is malformed.
pub(super) async fn complete(rq: &Request, params: &Map<String, Json>) -> Result<Json, RpcError> {
    let object = |key: &str| params.get(key).filter(|it| it.is_object());
    let reference = object("ref").ok_or_else(|| RpcError::params("`ref` must be an object"))?;
    let argument =
        object("argument").ok_or_else(|| RpcError::params("`argument` must be an object"))?;
    let name = argument["name"].as_str().unwrap_or_default();
    let begun = argument["value"].as_str().unwrap_or_default();
    let all = match reference["type"].as_str() {
        Some("ref/prompt") => {
            let prompt = reference["name"].as_str().unwrap_or_default();
            of_prompt(rq, prompt, name).await?
        }
        Some("ref/resource") => {
            let uri = reference["uri"].as_str().unwrap_or_default();
            of_resource(rq, uri, name).await?
        }
        _ => return Err(RpcError::params("`ref` must name a prompt or a resource")),
    };
    let fitting: Vec<String> = all.into_iter().filter(|it| it.starts_with(begun)).collect();
    let values = fitting.get(..VALUES_MAX).unwrap_or(&fitting);
    Ok(json!({"completion": {
        "values": values, "total": fitting.len(), "hasMore": fitting.len() > VALUES_MAX,
    }}))
}

async fn of_prompt(rq: &Request, prompt: &str, name: &str) -> Result<Vec<String>, RpcError> {
    let all = offered(rq, McpKind::Prompt).await?;
    let found = all.iter().find(|it| it.interface.name == prompt);
    Ok(found.map_or_else(Vec::new, |it| choices(&it.schema["properties"][name])))
}

/// Returns the possible texts of a field.
fn choices(schema: &Json) -> Vec<String> {
    let options = schema["enum"].as_array().into_iter().flatten();
    let text = |option: &Json| match option {
        Json::String(text) => text.clone(),
        other => other.to_string(),
    };
    options.map(text).collect()
}

async fn of_resource(rq: &Request, uri: &str, name: &str) -> Result<Vec<String>, RpcError> {
    let (path, list, key) = match uri {
        "flowstone://flows/{slug}" => ("/api/v1/flows?limit=500", "flows", "slug"),
        "flowstone://runs/{id}" => ("/api/v1/runs?limit=100", "runs", "id"),
        other => {
            let all = offered(rq, McpKind::Resource).await?;
            let is_it = |uri: &str| uri == other;
            let found = all.iter().find(|it| {
                it.interface
                    .uri
                    .as_ref()
                    .is_some_and(|uri| is_it(uri.text()))
            });
            return Ok(found.map_or_else(Vec::new, |it| choices(&it.schema["properties"][name])));
        }
    };
    let answer = api::call(rq, Method::GET, path, None).await?.json();
    let items = answer[list].as_array().into_iter().flatten();
    Ok(items
        .filter_map(|item| item[key].as_str().map(str::to_owned))
        .collect())
}
