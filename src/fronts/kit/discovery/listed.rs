//! The tools of MCP servers that the project's connections lead to and that no flow describes: the servers are asked for their
//! lists, as a flow would ask them. A server that does not answer in time is left out; one whose connection is not ready is one
//! candidate, so that its login can be requested.

use std::rc::Rc;
use std::time::Duration;

use flowstone_engine::Direct;
use flowstone_flow::flow::name_of;
use flowstone_lang::value::Value;
use flowstone_model::json::{items, to_json};
use serde_json::json;
use tokio::time::Instant;

use super::candidate::{Candidate, Kind, shortened};
use super::state::{Integration, Integrations, State};
use crate::kit::context::KitCall;

/// How long a server may take, and all of them together.
const PATIENCE: Duration = Duration::from_secs(4);
const TOGETHER: Duration = Duration::from_secs(9);

/// Adds the tools of servers whose connections are ready, and the other servers.
pub(super) async fn add(
    cx: &KitCall<'_>,
    integrations: &Integrations,
    candidates: &mut Vec<Candidate>,
) {
    let begun = Instant::now();
    for integration in &integrations.0 {
        let report = &integration.report;
        let is_server = report.backend.as_deref() == Some("mcp");
        let slug = Some(&integration.slug);
        let is_known = candidates
            .iter()
            .any(|it| it.kind == Kind::Mcp && it.connection.as_ref() == slug);
        if !is_server || is_known {
            continue;
        }
        if integration.state != State::Ready {
            candidates.push(unlisted(integration));
            continue;
        }
        if report.base_url.is_none() {
            continue;
        }
        let left = TOGETHER.saturating_sub(begun.elapsed()).min(PATIENCE);
        if let Ok(Some(tools)) = tokio::time::timeout(left, tools(cx, integration)).await {
            let found = tools.iter().filter_map(|tool| candidate(integration, tool));
            candidates.extend(found);
        }
    }
}

/// Asks a server for its tools. Returns `None` if it does not tell them.
async fn tools(cx: &KitCall<'_>, integration: &Integration) -> Option<Vec<Value>> {
    let slug = &integration.slug;
    let adapter = format!("{slug}/all");
    let text = format!(
        "{{:slug :kit-discovery :mcp [{{:id :{adapter} :connection :{slug}}}] :flow 'nil}}"
    );
    let session = Rc::new(cx.engine.session());
    let loaded = cx
        .engine
        .check_made(&session, &text, "kit-discovery")
        .loaded?;
    let config = Value::map([
        (Value::keyword("op"), Value::keyword("list-tools")),
        (Value::keyword("adapter"), Value::keyword(&adapter)),
    ]);
    let direct = Direct {
        kind: "mcp",
        config,
        folder: None,
    };
    let answer = cx.engine.perform_for(loaded.flow, direct).await.ok()?;
    answer.get("tools").and_then(items)
}

/// Returns the candidate for a server that cannot be asked yet.
fn unlisted(integration: &Integration) -> Candidate {
    let slug = &integration.slug;
    let address = integration.report.base_url.as_deref().unwrap_or_default();
    Candidate {
        kind: Kind::Mcp,
        integration: slug.clone(),
        name: slug.clone(),
        description: format!(
            "The MCP server of the connection `{slug}` {address}: its tools are listed once the connection is ready."
        ),
        input_schema: json!({"type": "object"}),
        connection: Some(slug.clone()),
        step: None,
        is_connection: true,
        example: format!(
            "with `:mcp [{{:id :{slug}/all :connection :{slug}}}]` in the flow: (flow/step :mcp :tools {{:op :list-tools :adapter :{slug}/all}})"
        ),
        names: integration.label.clone().unwrap_or_default(),
        also: String::new(),
    }
}

fn candidate(integration: &Integration, tool: &Value) -> Option<Candidate> {
    let slug = &integration.slug;
    let name = tool.get("name").and_then(name_of)?.to_string();
    let description = tool.get("description").and_then(Value::as_str);
    let schema = tool
        .get("input-schema")
        .and_then(|schema| to_json(schema).ok());
    Some(Candidate {
        kind: Kind::Mcp,
        integration: slug.clone(),
        description: shortened(description.unwrap_or("A tool of an MCP server.")),
        input_schema: schema.unwrap_or_else(|| json!({"type": "object"})),
        connection: Some(slug.clone()),
        step: None,
        is_connection: false,
        names: integration.label.clone().unwrap_or_default(),
        example: format!(
            "with `:mcp [{{:id :{slug}/all :connection :{slug} :allow-tools [\"{name}\"]}}]` in the flow: (flow/step :mcp :call {{:adapter :{slug}/all :tool \"{name}\" :arguments {{}}}})"
        ),
        also: String::new(),
        name,
    })
}
