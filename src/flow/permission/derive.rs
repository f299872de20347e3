//! The permissions that a project's connections imply: their own hosts, the secrets that they name, their programs.
//!
//! Reads only project files and the environment: a flow's own settings of a connection allow nothing.

use std::sync::Arc;

use flowstone_lang::value::Value;
use flowstone_model::names::name_of;

use super::{Allow, HostPattern, NetAllow, NetRow, SecretRow, variable};
use crate::json::items;

/// A server that is known without a connection, such as a model provider.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Known {
    /// The value of `:backend` that selects it.
    pub id: String,
    /// The hosts; patterns, such as `*.amazonaws.com`.
    pub hosts: Vec<String>,
    /// The names of its keys.
    pub keys: Vec<String>,
    /// The environment variables that override its address.
    pub variables: Vec<String>,
}

/// Returns the permissions that follow from the settings. `known` are the servers that need no description.
pub fn derived(settings: &Value, known: &[Known]) -> Allow {
    let mut deriving = Deriving {
        known,
        environment: settings.get("environment"),
        net: NetAllow::default(),
        allow: Allow::default(),
    };
    for server in known {
        let hosts = deriving.hosts_of(server);
        // An address from the environment may be on this machine; a provider's own address is public anyway.
        if deriving.is_in_environment(server) {
            deriving.net.rows.extend(hosts.iter().cloned());
        }
        deriving.name_secrets(&server.id, &server.keys, &hosts);
    }
    deriving.settings(settings);
    let profiles = settings.get("profiles").and_then(Value::as_map);
    for (_, profile) in profiles.into_iter().flat_map(|map| map.iter()) {
        deriving.settings(profile);
    }
    deriving.allow.net = Arc::new(deriving.net);
    deriving.allow
}

struct Deriving<'a> {
    known: &'a [Known],
    environment: Option<&'a Value>,
    net: NetAllow,
    allow: Allow,
}

impl Deriving<'_> {
    /// Reads the settings, or a profile of them.
    fn settings(&mut self, settings: &Value) {
        for key in ["connections", "bindings"] {
            let map = settings.get(key).and_then(Value::as_map);
            for (name, connection) in map.into_iter().flat_map(|map| map.iter()) {
                if let Some(name) = name_of(name) {
                    self.connection(&name, connection);
                }
            }
        }
        for provider in settings
            .get("llm-providers")
            .and_then(items)
            .unwrap_or_default()
        {
            if let Some(id) = provider.get("id").and_then(name_of) {
                self.connection(&id, &provider);
            }
        }
        if let Some(embedder) = settings.get("search").and_then(|it| it.get("embedder")) {
            let name = embedder.get("connection").and_then(name_of);
            self.connection(name.as_deref().unwrap_or_default(), embedder);
        }
        if let Some(http) = settings.get("http") {
            self.net.rows.extend(address(http.get("proxy")));
            self.patterns(http.get("allow-hosts"));
        }
        let secrets = settings.get("secrets").and_then(Value::as_map);
        for (name, place) in secrets.into_iter().flat_map(|map| map.iter()) {
            let variable = place.get("env").and_then(Value::as_str);
            self.allow.env.extend(variable.map(str::to_owned));
            self.allow
                .env
                .extend(name_of(name).map(|name| name.to_string()));
        }
    }

    fn connection(&mut self, name: &str, connection: &Value) {
        if connection.as_map().is_none() {
            return;
        }
        let backend = connection.get("backend").and_then(name_of);
        let backend = backend.as_deref().unwrap_or(name);
        let server = self.known.iter().find(|it| it.id == backend).cloned();
        let mut hosts: Vec<NetRow> = address(connection.get("base-url")).into_iter().collect();
        if let (true, Some(server)) = (hosts.is_empty(), &server) {
            hosts = self.hosts_of(server);
        }
        self.net.rows.extend(hosts.iter().cloned());
        self.patterns(connection.get("allow-hosts"));
        let mut names = vec![name.to_owned()];
        names.extend(server.into_iter().flat_map(|it| it.keys));
        let auth = connection.get("auth").and_then(Value::as_map);
        for (key, secret) in auth.into_iter().flat_map(|map| map.iter()) {
            let is_reference = name_of(key).is_some_and(|key| key.ends_with("-ref"));
            names.extend(
                name_of(secret)
                    .filter(|_| is_reference)
                    .map(|it| it.to_string()),
            );
        }
        let known = connection.get("known-hosts");
        let known = known.and_then(|it| it.get("secret-ref").and_then(name_of));
        names.extend(known.map(|name| name.to_string()));
        self.name_secrets(name, &names, &hosts);
        self.program(connection);
    }

    fn program(&mut self, connection: &Value) {
        let command = connection
            .get("command")
            .and_then(items)
            .unwrap_or_default();
        let program = command.first().and_then(Value::as_str);
        self.allow.programs.extend(program.map(str::to_owned));
        let base = connection.get("base-url").and_then(Value::as_str);
        if base.is_some_and(|base| base.starts_with("ssh://")) {
            self.allow.programs.push("ssh".to_owned());
        }
    }

    fn name_secrets(&mut self, id: &str, names: &[String], hosts: &[NetRow]) {
        let usual = ["-api-key", "-token"].map(|ending| format!("{id}{ending}"));
        let usual = usual.iter().filter(|_| !id.is_empty());
        for name in names.iter().chain(usual).filter(|name| !name.is_empty()) {
            self.allow.env.push(variable(name));
            if !hosts.is_empty() {
                self.allow.secrets.push(SecretRow {
                    name: name.clone(),
                    hosts: hosts.to_vec(),
                });
            }
        }
    }

    fn patterns(&mut self, hosts: Option<&Value>) {
        for host in hosts.and_then(items).unwrap_or_default() {
            self.net.rows.extend(host.as_str().and_then(NetRow::read));
        }
    }

    fn declared<'a>(&'a self, server: &'a Known) -> impl Iterator<Item = &'a Value> {
        server
            .variables
            .iter()
            .filter_map(|name| self.environment?.get(name))
    }

    fn is_in_environment(&self, server: &Known) -> bool {
        self.declared(server).next().is_some()
    }

    /// Returns the hosts of a known server: from the environment, or the well-known ones.
    fn hosts_of(&self, server: &Known) -> Vec<NetRow> {
        let own = server.hosts.iter().filter_map(|host| NetRow::read(host));
        own.chain(
            self.declared(server)
                .filter_map(|declared| address(Some(declared))),
        )
        .collect()
    }
}

/// Returns the host and port of an address, which may be without a scheme.
fn address(url: Option<&Value>) -> Option<NetRow> {
    let text = url?.as_str()?.trim();
    let (scheme, rest) = text.split_once("://").unwrap_or(("", text));
    let authority = rest.split(['/', '?', '#', '\\']).next()?;
    let host = authority
        .rsplit_once('@')
        .map_or(authority, |(_, host)| host);
    let row = NetRow::read(host)?;
    let port = row.port.or(match scheme {
        "https" => Some(443),
        "http" => Some(80),
        "mariadb" | "mysql" => Some(3306),
        "postgres" | "postgresql" => Some(5432),
        "smtp" => Some(25),
        "smtps" => Some(465),
        "ssh" => Some(22),
        // As in OLLAMA_HOST: any port is allowed.
        _ => None,
    });
    let is_everywhere =
        matches!(&row.host, HostPattern::Network { address, .. } if address.is_unspecified());
    let host = match is_everywhere {
        // An address to listen on stands for this machine.
        true => HostPattern::read("127.0.0.1")?,
        false => row.host,
    };
    let is_host = matches!(host, HostPattern::Host(_) | HostPattern::Network { .. });
    is_host.then_some(NetRow { host, port })
}
