//! The permissions that model calls and agents need, as far as their configs are written out.

use flowstone_flow::codec;
use flowstone_flow::flow::{Flow, name_of};
use flowstone_flow::permission::{Access, PlannedNeed};
use flowstone_lang::value::Value;
use reqwest::Url;

use super::PROVIDERS;
use crate::literal::is_known;
use crate::needs::{Given, connection, given, of_adapters, of_url};

/// Needs of a model call: the servers of its connections.
fn of_models(flow: &Flow, settings: &Value, config: &Value) -> Vec<PlannedNeed> {
    let Some(names) = config.get("connection").and_then(crate::json::items) else {
        return of_model(flow, settings, config);
    };
    let mut needs = Vec::new();
    for name in names {
        let one = Value::map([(Value::keyword("connection"), name)]);
        for need in of_model(flow, settings, &crate::rendered::merged(config, &one)) {
            if !needs.contains(&need) {
                needs.push(need);
            }
        }
    }
    needs
}

/// Needs of a call with one connection: its server.
fn of_model(flow: &Flow, settings: &Value, config: &Value) -> Vec<PlannedNeed> {
    let connection = connection(flow, settings, config);
    let provider = config
        .get("provider")
        .filter(|it| is_known(it))
        .and_then(name_of);
    let backend = connection.as_ref().and_then(|it| it.backend.clone());
    let provider = provider.map(|it| it.to_string()).or(backend);
    if provider.as_deref() == Some("scripted") {
        return Vec::new();
    }
    let usual = provider.and_then(|id| PROVIDERS.iter().find(|it| it.id == id)?.base_url);
    let base = match given(config, "base-url") {
        Given::Text(base) => Some(base.to_owned()),
        Given::Computed => None,
        Given::Nothing => connection
            .and_then(|it| it.base_url)
            .or(usual.map(str::to_owned)),
    };
    match base.and_then(|base| Url::parse(&base).ok()) {
        Some(url) => vec![of_url(&url)],
        None => vec![PlannedNeed::Computed(Access::Net)],
    }
}

/// Needs of an agent: its model, and the servers of its tools.
pub(crate) fn of_agent(flow: &Flow, settings: &Value, config: &Value) -> Vec<PlannedNeed> {
    let mut needs = of_models(flow, settings, config);
    for address in crate::agent::http_addresses(config) {
        if let Ok(url) = Url::parse(&address.replace(['{', '}'], "_")) {
            needs.push(of_url(&url));
        }
    }
    let tools: Vec<&Value> = ["mcp-tools", "tools"]
        .iter()
        .filter_map(|key| config.get(key).filter(|it| !it.is_nil()))
        .collect();
    if !tools.is_empty() {
        let adapters = flow.mcp.iter().map(|it| &**it);
        let named = adapters.filter(|adapter| tools.iter().any(|tools| names(tools, &adapter.id)));
        for need in of_adapters(settings, flow, named) {
            if !needs.contains(&need) {
                needs.push(need);
            }
        }
    }
    needs
}

/// Tells whether the tools of an agent include an adapter or one of its tools, or may do so because they are computed.
fn names(tools: &Value, adapter: &str) -> bool {
    if !is_known(tools) {
        return true;
    }
    let text = codec::encode(tools).unwrap_or_default();
    let words = text.split(|it: char| it.is_whitespace() || "()[]{}\",#:'".contains(it));
    let space = adapter.split_once('/').map_or(adapter, |(space, _)| space);
    words
        .into_iter()
        .any(|word| word == adapter || word.split_once('/').is_some_and(|(it, _)| it == space))
}
