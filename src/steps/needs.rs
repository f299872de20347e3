//! The permissions that steps need, as far as their configs are written out: for `flowstone check` and `flowstone flows
//! trust`.

use std::path::PathBuf;

use flowstone_flow::flow::{Flow, McpAdapter, McpTransport, name_of};
use flowstone_flow::permission::{Access, Need, PlannedNeed, Reach};
use flowstone_lang::value::Value;
use reqwest::Url;

use crate::connections::{Connection, bound, planned};
use crate::guard::{Zone, host_of, is_local_name, literal, zone};
use crate::literal::is_known;

/// The value of a key of a config.
pub(crate) enum Given<'a> {
    Nothing,
    Text(&'a str),
    Computed,
}

pub(crate) fn given<'a>(config: &'a Value, key: &str) -> Given<'a> {
    match config.get(key) {
        None | Some(Value::Nil) => Given::Nothing,
        Some(value) if !is_known(value) => Given::Computed,
        Some(value) => value.as_str().map_or(Given::Nothing, Given::Text),
    }
}

/// Returns the connection that a config names, if both are written out.
pub(crate) fn connection(flow: &Flow, settings: &Value, config: &Value) -> Option<Connection> {
    let name = config.get("connection").filter(|it| is_known(it))?;
    planned(settings, flow, &name_of(name)?)
}

pub(crate) fn of_url(url: &Url) -> PlannedNeed {
    let is_local = is_local_name(url.host_str().unwrap_or_default());
    let address = literal(url);
    let is_inside = address.is_some_and(|it| zone(it) != Zone::Public);
    PlannedNeed::Known(Need::Net {
        host: host_of(url),
        address,
        reach: if is_local || is_inside {
            Reach::Private
        } else {
            Reach::Public
        },
    })
}

/// Needs of a request: the server, and the secret sent to it.
pub(crate) fn of_request(flow: &Flow, settings: &Value, config: &Value) -> Vec<PlannedNeed> {
    let connection = connection(flow, settings, config);
    let base = connection.as_ref().and_then(|it| it.base_url.clone());
    let url = match (given(config, "url"), base) {
        (Given::Text(url), _) => Url::parse(url).ok(),
        (Given::Nothing, Some(base)) => Url::parse(&base).ok(),
        (Given::Nothing, None) | (Given::Computed, _) => None,
    };
    let Some(url) = url else {
        return vec![PlannedNeed::Computed(Access::Net)];
    };
    let mut needs = vec![of_url(&url)];
    let own = config
        .get("auth")
        .and_then(|auth| name_of(auth.get("secret-ref")?));
    let named = connection.and_then(|it| it.auth.permitted_name().map(str::to_owned));
    let secret = own.map(|name| name.to_string()).or(named);
    needs.extend(secret.map(|name| {
        PlannedNeed::Known(Need::Secret {
            name,
            host: host_of(&url),
        })
    }));
    needs
}

/// Needs of a message: those of its request. The channel may be in a template.
pub(crate) fn of_message(flow: &Flow, settings: &Value, message: &Value) -> Vec<PlannedNeed> {
    let template = message.get("template").filter(|it| is_known(it));
    let template = template.and_then(|id| flow.template(&name_of(id)?));
    let channels = template
        .and_then(|it| it.body.get("channels"))
        .or_else(|| message.get("channels"));
    let Some(channels) = channels.filter(|it| it.as_map().is_some()) else {
        return vec![PlannedNeed::Computed(Access::Net)];
    };
    let http = channels.get("http");
    let mut needs = http.map_or_else(Vec::new, |http| of_request(flow, settings, http));
    if let Some(email) = channels.get("email") {
        needs.extend(of_server(flow, settings, email));
    }
    needs
}

/// Needs of a connection to a server that does not speak HTTP.
fn of_server(flow: &Flow, settings: &Value, config: &Value) -> Vec<PlannedNeed> {
    let connection = connection(flow, settings, config);
    let base = connection.as_ref().and_then(|it| it.base_url.as_deref());
    let url = base.and_then(|base| Url::parse(base).ok());
    let (Some(connection), Some(url)) = (&connection, url) else {
        return vec![PlannedNeed::Computed(Access::Net)];
    };
    let secret = connection.auth.permitted_name().map(str::to_owned);
    let secret = secret.map(|name| {
        PlannedNeed::Known(Need::Secret {
            name,
            host: host_of(&url),
        })
    });
    std::iter::once(of_url(&url)).chain(secret).collect()
}

/// Needs of calls to MCP tools: the servers or programs of the adapters.
pub(crate) fn of_adapters<'a>(
    settings: &Value,
    flow: &Flow,
    adapters: impl IntoIterator<Item = &'a McpAdapter>,
) -> Vec<PlannedNeed> {
    let mut needs = Vec::new();
    for adapter in adapters {
        for need in of_adapter(flow, settings, adapter) {
            if !needs.contains(&need) {
                needs.push(need);
            }
        }
    }
    needs
}

fn of_adapter(flow: &Flow, settings: &Value, adapter: &McpAdapter) -> Vec<PlannedNeed> {
    if adapter.transport == McpTransport::Stdio {
        let command = bound(settings, &adapter.connection).and_then(|it| it.get("command"));
        let program =
            command.and_then(|it| crate::json::items(it)?.first()?.as_str().map(str::to_owned));
        return vec![match program {
            Some(program) => PlannedNeed::Known(Need::Program(program)),
            None => PlannedNeed::Computed(Access::Program),
        }];
    }
    let config = Value::map([(
        Value::keyword("connection"),
        Value::keyword(&adapter.connection),
    )]);
    of_request(flow, settings, &config)
}

/// Needs of a `:files` step: the paths that it reads and writes.
pub(crate) fn of_files(config: &Value) -> Vec<PlannedNeed> {
    let mut needs = Vec::new();
    if let Some(source) = config.get("source").filter(|it| it.as_map().is_some()) {
        needs.extend(of_source(source));
    }
    let op = config.get("op").and_then(name_of);
    let target = match op.as_deref() {
        Some("materialize") => given(config, "to"),
        Some("write-out") => given(config, "path"),
        _ => Given::Nothing,
    };
    match target {
        Given::Nothing => {}
        Given::Computed => needs.push(PlannedNeed::Computed(Access::Write)),
        Given::Text(path) => needs.push(PlannedNeed::Known(Need::Write(PathBuf::from(path)))),
    }
    needs
}

fn of_source(source: &Value) -> Option<PlannedNeed> {
    match (given(source, "path"), given(source, "repo")) {
        (Given::Text(path), _) => Some(PlannedNeed::Known(Need::Read(PathBuf::from(path)))),
        (Given::Computed, _) => Some(PlannedNeed::Computed(Access::Read)),
        (Given::Nothing, Given::Text(repo)) => Some(match Url::parse(repo) {
            Ok(url) if url.has_host() => of_url(&url),
            _ => PlannedNeed::Known(Need::Read(PathBuf::from(repo))),
        }),
        (Given::Nothing, Given::Computed) => Some(PlannedNeed::Computed(Access::Net)),
        (Given::Nothing, Given::Nothing) => None,
    }
}

/// Needs of a `:table` step: the file that it imports.
pub(crate) fn of_table(config: &Value) -> Vec<PlannedNeed> {
    match given(config, "from") {
        Given::Text(path) if !path.starts_with("res://") => {
            vec![PlannedNeed::Known(Need::Read(PathBuf::from(path)))]
        }
        _ => Vec::new(),
    }
}
