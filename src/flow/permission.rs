//! Permissions of a flow: the rows that allow access, the needs of steps, and the decision.
//!
//! Pure: knows nothing of files, sockets or terminals. Paths are passed as absolute paths with their links resolved,
//! addresses are passed resolved. Every port asks through [`crate::step::Gate`]; only access that a row names is
//! allowed.

mod derive;
mod edit;
mod host;
mod line;
mod manifest;
mod merged;
mod path;
mod planned;
mod project;

use std::fmt;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use derive::{Known, derived};
pub use edit::with_row;
pub use host::{HostPattern, NetRow};
pub use line::{Missing, shown};
pub use manifest::{KEYS, ManifestError, add_flag, check, read};
pub use merged::merged_lines;
pub use path::{
    PROTECTED, has_protected, has_write_protected, is_environment, is_protected, is_write_protected,
};
pub use planned::PlannedNeed;
pub use project::{Grants, Permissions, TrustedFlow};

/// A kind of access that a flow may need.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Access {
    Read,
    Write,
    Net,
    Secret,
    Program,
    Env,
}

impl Access {
    pub const ALL: [Access; 6] = [
        Access::Read,
        Access::Write,
        Access::Net,
        Access::Secret,
        Access::Program,
        Access::Env,
    ];

    /// Returns the key in `:allow`.
    pub fn key(self) -> &'static str {
        match self {
            Access::Read => "read",
            Access::Write => "write",
            Access::Net => "net",
            Access::Secret => "secrets",
            Access::Program => "programs",
            Access::Env => "env",
        }
    }

    /// Returns the option of the command line.
    pub fn flag(self) -> &'static str {
        match self {
            Access::Read => "--allow-read",
            Access::Write => "--allow-write",
            Access::Net => "--allow-net",
            Access::Secret => "--allow-secret",
            Access::Program => "--allow-run",
            Access::Env => "--allow-env",
        }
    }
}

/// A host and port that a step connects to.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Host {
    pub name: String,
    pub port: u16,
}

impl Host {
    /// Returns a host in its normal form for comparison: lower case, without brackets and final dot.
    pub fn new(name: &str, port: u16) -> Host {
        Host {
            name: host::plain(name),
            port,
        }
    }
}

impl fmt::Display for Host {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name.contains(':') {
            true => write!(out, "[{}]:{}", self.name, self.port),
            false => write!(out, "{}:{}", self.name, self.port),
        }
    }
}

/// How the names of the tokens of registered servers begin.
pub const SERVER_SECRET: &str = "mcp-server-";

/// Returns the name of the token of a registered server, which may be sent to its host only.
pub fn server_secret(id: &str, host: &Host) -> String {
    format!("{SERVER_SECRET}{id}@{host}")
}

/// Tells whether a name is that of a token for a host. Who keeps the token checks that it was registered for the host.
fn is_server_secret_for(name: &str, host: &Host) -> bool {
    let named = name
        .strip_prefix(SERVER_SECRET)
        .and_then(|rest| rest.split_once('@'));
    named.is_some_and(|(_, own)| own == host.to_string())
}

/// Whether a server is publicly reachable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// This machine, or a network that is not routed publicly.
    Private,
    Public,
}

/// The access that a step needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Need {
    /// A file, or a folder with everything below it.
    Read(PathBuf),
    Write(PathBuf),
    /// A server, at the address that its name was resolved to.
    Net {
        host: Host,
        address: Option<IpAddr>,
        reach: Reach,
    },
    /// A proxy that a flow configures: it sees the requests, and resolves names itself.
    Proxy(Host),
    /// A secret that is sent to a host.
    Secret {
        name: String,
        host: Host,
    },
    Program(String),
    /// An environment variable.
    Env(String),
}

/// A secret and the hosts that it may be sent to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecretRow {
    pub name: String,
    pub hosts: Vec<NetRow>,
}

/// A flow to which the project's rows do not apply: only those under its own slug in `:flows` do.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct OwnRows {
    pub slug: Arc<str>,
    pub trust: Trust,
}

/// Whether a person has trusted a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Trust {
    /// The flow belongs to the project.
    NotNeeded,
    /// The flow is from elsewhere and has not been trusted.
    Missing,
    /// Another version of it was trusted.
    Outdated,
    /// This version is trusted.
    Given,
}

/// The servers that may be reached.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct NetAllow {
    /// The rows to which a missing row belongs; `None` for those of the project.
    pub own: Option<OwnRows>,
    /// Whether every publicly routed address is allowed.
    pub public: bool,
    pub rows: Vec<NetRow>,
    /// Whether every address is allowed, independent of the rows.
    pub any: bool,
}

impl NetAllow {
    /// Tells whether a row names this host or address; `*` does not count.
    pub fn names(&self, host: &Host, address: Option<IpAddr>) -> bool {
        self.rows
            .iter()
            .any(|row| !row.is_any() && row.covers(host, address))
    }

    /// Tells whether an address of a host may be allowed, before the address is known.
    pub fn may_cover(&self, host: &Host) -> bool {
        let is_network = |row: &NetRow| {
            matches!(row.host, HostPattern::Network { .. })
                && row.port.is_none_or(|port| port == host.port)
        };
        self.any
            || self.public
            || self
                .rows
                .iter()
                .any(|row| row.covers(host, None) || is_network(row))
    }

    /// Tells whether a server may be reached.
    pub fn covers(&self, host: &Host, address: Option<IpAddr>, reach: Reach) -> bool {
        self.any
            || (self.public && reach == Reach::Public)
            || self.rows.iter().any(|row| row.covers(host, address))
    }
}

/// Everything that one flow may access.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Allow {
    /// The rows to which a missing row belongs; `None` for those of the project.
    pub own: Option<OwnRows>,
    /// Whether everything is allowed.
    pub all: bool,
    /// Absolute paths, with links resolved.
    pub read: Vec<PathBuf>,
    pub write: Vec<PathBuf>,
    /// The folder of Flowstone's own data. Only a row at or below it covers paths inside.
    pub home: PathBuf,
    pub net: Arc<NetAllow>,
    pub secrets: Vec<SecretRow>,
    pub programs: Vec<String>,
    pub env: Vec<String>,
}

/// The decision about a need.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    Granted,
    Missing(Missing),
}

/// Decides whether the permissions cover a need.
pub fn decide(allow: &Allow, need: &Need) -> Decision {
    let is_granted = allow.all
        || match need {
            Need::Read(path) => allow.covers_path(&allow.read, path, is_protected),
            Need::Write(path) => allow.covers_path(&allow.write, path, is_write_protected),
            Need::Net {
                host,
                address,
                reach,
            } => allow.net.covers(host, *address, *reach),
            Need::Proxy(host) => allow.net.any || allow.net.names(host, None),
            Need::Secret { name, host } => allow.covers_secret(name, host),
            Need::Program(program) => allow.programs.iter().any(|it| it == program || it == ANY),
            Need::Env(name) => allow.env.iter().any(|it| it == name || it == ANY),
        };
    match is_granted {
        true => Decision::Granted,
        false => Decision::Missing(Missing::of(need).in_rows_of(allow.own.as_ref())),
    }
}

/// The name that stands for everything of a kind.
pub const ANY: &str = "*";

impl Allow {
    /// Allows everything: for code that a person types, and for tests.
    pub fn everything() -> Allow {
        Allow {
            all: true,
            net: Arc::new(NetAllow {
                any: true,
                ..NetAllow::default()
            }),
            ..Allow::default()
        }
    }

    fn covers_path(&self, rows: &[PathBuf], path: &Path, is_kept: fn(&str) -> bool) -> bool {
        rows.iter()
            .any(|row| path::covers(row, path, &self.home, is_kept))
    }

    fn covers_secret(&self, name: &str, host: &Host) -> bool {
        if is_server_secret_for(name, host) {
            return true;
        }
        let rows = self
            .secrets
            .iter()
            .filter(|row| same_secret(&row.name, name));
        rows.flat_map(|row| &row.hosts)
            .any(|row| row.covers(host, None))
    }

    /// Adds the permissions of other rows.
    pub fn add(&mut self, more: &Allow) {
        self.all |= more.all;
        self.read.extend(more.read.iter().cloned());
        self.write.extend(more.write.iter().cloned());
        let net = Arc::make_mut(&mut self.net);
        net.public |= more.net.public;
        net.any |= more.net.any || more.all;
        net.rows.extend(more.net.rows.iter().cloned());
        self.secrets.extend(more.secrets.iter().cloned());
        self.programs.extend(more.programs.iter().cloned());
        self.env.extend(more.env.iter().cloned());
    }
}

/// Tells whether two names refer to one secret: `crm-token` is also `CRM_TOKEN`.
pub fn same_secret(left: &str, right: &str) -> bool {
    variable(left) == variable(right)
}

/// Returns the environment variable of a secret: `crm-token` is `CRM_TOKEN`.
pub fn variable(name: &str) -> String {
    let upper = |it: char| match it.is_alphanumeric() {
        true => it.to_ascii_uppercase(),
        false => '_',
    };
    name.chars().map(upper).collect()
}
