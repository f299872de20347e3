//! The server's part of the project's settings: `:server` in `flowstone.edn`.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use flowstone_engine::duration;
use flowstone_flow::proof::Network;
use flowstone_flow::server_limits::ServerLimits;
use flowstone_lang::value::Value;

/// How the server is reached, and by whom.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ServerSettings {
    /// The base of links to this server, without a slash at its end.
    pub base: String,
    /// Whether the settings say what the base is.
    is_named: bool,
    /// Values of `Host` that are accepted.
    pub hosts: Vec<String>,
    /// Origins of pages that may call the API.
    pub origins: Vec<String>,
    /// The name of the project in addresses.
    pub workspace: String,
    /// Proxies whose word about the sender of a request counts.
    pub proxies: Vec<Network>,
    /// Interfaces that everybody may call, as `slug/id`.
    pub public: Vec<String>,
    /// How much is taken at once.
    pub limits: ServerLimits,
    /// Whether `/metrics` needs no token.
    pub metrics_open: bool,
    /// Whether clients of MCP may decide approvals in forms.
    pub elicit_approvals: bool,
    /// How long calls of clients of MCP wait for the end of a run.
    pub mcp_wait: McpWait,
}

/// How long a call of a client of MCP waits for the end of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct McpWait {
    pub plain: Duration,
    /// Of a client that takes reports of progress.
    pub with_progress: Duration,
}

impl Default for McpWait {
    fn default() -> McpWait {
        McpWait {
            plain: Duration::from_secs(50),
            with_progress: Duration::from_secs(180),
        }
    }
}

impl McpWait {
    /// Reads `:mcp {:wait "50s" :progress-wait "3m"}`; what it leaves out is as usual.
    fn of(mcp: Option<&Value>) -> McpWait {
        let usual = McpWait::default();
        let read = |key: &str| duration::of_value(mcp?.get(key)?);
        McpWait {
            plain: read("wait").unwrap_or(usual.plain),
            with_progress: read("progress-wait").unwrap_or(usual.with_progress),
        }
    }
}

/// The server cannot be reached under any name that it would accept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NoHost;

impl ServerSettings {
    /// Reads the settings for a server that listens on an address.
    ///
    /// # Errors
    /// When it listens on another address than loopback and no host is configured.
    pub(super) fn of(settings: &Value, address: SocketAddr) -> Result<ServerSettings, NoHost> {
        let server = settings.get("server");
        let text = |key: &str| {
            let found = server.and_then(|server| server.get(key));
            found.and_then(Value::as_str).map(|text| text.to_string())
        };
        let list = |key: &str| {
            let found = server.and_then(|server| server.get(key));
            let items = found.and_then(Value::as_vector);
            let items = items.into_iter().flat_map(|items| items.iter());
            items
                .filter_map(|item| item.as_str().map(|text| text.to_string()))
                .collect::<Vec<String>>()
        };
        let url = text("url").map(|url| url.trim_end_matches('/').to_owned());
        let mut hosts: Vec<String> = list("hosts")
            .into_iter()
            .map(|host| host.to_ascii_lowercase())
            .collect();
        if let Some(url) = &url {
            hosts.extend(host_of(url));
        }
        if address.ip().is_loopback() {
            let port = address.port();
            hosts.extend(["127.0.0.1", "localhost", "[::1]"].map(|name| format!("{name}:{port}")));
        }
        if hosts.is_empty() {
            return Err(NoHost);
        }
        let is_named = url.is_some();
        let base = url.unwrap_or_else(|| base_of(address));
        let mut origins: Vec<String> = list("origins");
        origins.push(origin_of(&base));
        if address.ip().is_loopback() {
            origins.extend(hosts.iter().map(|host| format!("http://{host}")));
        }
        Ok(ServerSettings {
            base,
            is_named,
            hosts,
            origins: origins
                .into_iter()
                .map(|origin| origin.trim_end_matches('/').to_ascii_lowercase())
                .collect(),
            workspace: text("workspace-id").unwrap_or_else(|| "local".to_owned()),
            proxies: list("proxies")
                .iter()
                .filter_map(|text| Network::parse(text))
                .collect(),
            public: list("public"),
            // The settings were checked when they were read.
            limits: server
                .and_then(|server| ServerLimits::read(server.get("limits")?).ok())
                .unwrap_or_default(),
            metrics_open: server
                .and_then(|server| server.get("metrics"))
                .and_then(Value::as_keyword)
                .is_some_and(|metrics| metrics.is("open")),
            elicit_approvals: server
                .and_then(|server| server.get("mcp")?.get("elicit-approvals"))
                .is_some_and(|elicits| *elicits == Value::Bool(true)),
            mcp_wait: McpWait::of(server.and_then(|server| server.get("mcp"))),
        })
    }
}

impl ServerSettings {
    /// Returns the base of links for a client: that of the settings, or else the name under which the client has reached this
    /// server, if pages there can send forms.
    pub(super) fn base_for(&self, host: Option<&str>) -> String {
        let used = host.map(|host| format!("http://{}", host.to_ascii_lowercase()));
        match used {
            Some(used) if !self.is_named && self.origins.contains(&used) => used,
            Some(_) | None => self.base.clone(),
        }
    }

    /// Tells whether an address is that of a proxy whose word about senders counts.
    pub(super) fn is_proxy(&self, address: IpAddr) -> bool {
        self.proxies.iter().any(|proxy| proxy.contains(address))
    }
}

/// Returns the address of a server that listens there.
fn base_of(address: SocketAddr) -> String {
    let ip = match address.ip() {
        ip if ip.is_unspecified() => IpAddr::from([127, 0, 0, 1]),
        ip => ip,
    };
    format!("http://{}", SocketAddr::new(ip, address.port()))
}

/// Returns host and port of an address, as in `Host`.
fn host_of(url: &str) -> Option<String> {
    let rest = url.split_once("://")?.1;
    let host = rest.split('/').next()?;
    Some(host.to_ascii_lowercase())
}

/// Returns scheme, host and port of an address.
fn origin_of(url: &str) -> String {
    match url.split_once("://") {
        Some((scheme, rest)) => {
            let host = rest.split('/').next().unwrap_or_default();
            format!("{scheme}://{host}")
        }
        None => url.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flowstone_lang::value::Value;

    fn settings(pairs: &[(&str, Value)]) -> Value {
        let server = pairs
            .iter()
            .map(|(key, value)| (Value::keyword(key), value.clone()));
        Value::map([(Value::keyword("server"), Value::map(server))])
    }

    fn address(text: &str) -> SocketAddr {
        text.parse().expect("an address")
    }

    #[test]
    fn a_server_on_loopback_accepts_its_own_names_only() {
        let it = ServerSettings::of(&Value::Nil, address("127.0.0.1:7373")).expect("settings");
        assert_eq!(it.base, "http://127.0.0.1:7373");
        assert_eq!(it.hosts, ["127.0.0.1:7373", "localhost:7373", "[::1]:7373"]);
        assert!(it.origins.contains(&"http://localhost:7373".to_owned()));
        assert_eq!(it.workspace, "local");
    }

    #[test]
    fn calls_of_mcp_wait_50_seconds_or_180_with_progress() {
        let address = address("127.0.0.1:7373");
        let usual = ServerSettings::of(&Value::Nil, address).expect("settings");
        let seconds = |it: &ServerSettings| {
            (
                it.mcp_wait.plain.as_secs(),
                it.mcp_wait.with_progress.as_secs(),
            )
        };
        assert_eq!(seconds(&usual), (50, 180));
        let mcp = Value::map([(Value::keyword("wait"), Value::from("5s"))]);
        let own = ServerSettings::of(&settings(&[("mcp", mcp)]), address).expect("settings");
        assert_eq!(seconds(&own), (5, 180));
    }

    #[test]
    fn links_have_the_name_that_the_client_used_unless_the_settings_name_one() {
        let address = address("127.0.0.1:7373");
        let it = ServerSettings::of(&Value::Nil, address).expect("settings");
        for (host, expected) in [
            (Some("LOCALHOST:7373"), "http://localhost:7373"),
            (Some("127.0.0.1:7373"), "http://127.0.0.1:7373"),
            (Some("evil.example"), "http://127.0.0.1:7373"),
            (None, "http://127.0.0.1:7373"),
        ] {
            assert_eq!(it.base_for(host), expected, "{host:?}");
        }
        let url = settings(&[("url", Value::from("https://flows.example.com"))]);
        let it = ServerSettings::of(&url, address).expect("settings");
        let base = it.base_for(Some("localhost:7373"));
        assert_eq!(base, "https://flows.example.com");
    }

    #[test]
    fn a_server_elsewhere_needs_a_name() {
        let elsewhere = address("0.0.0.0:80");
        assert_eq!(ServerSettings::of(&Value::Nil, elsewhere), Err(NoHost));
        let url = settings(&[("url", Value::from("https://Flows.example.com/"))]);
        let it = ServerSettings::of(&url, elsewhere).expect("settings");
        assert_eq!(it.base, "https://Flows.example.com");
        assert_eq!(it.hosts, ["flows.example.com"]);
        assert_eq!(it.origins, ["https://flows.example.com"]);
    }
}
