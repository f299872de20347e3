//! What a flow may touch: rows of what is allowed, what a step needs, and the decision.
//!
//! Pure: knows nothing of files, sockets or terminals. Paths arrive absolute with their links resolved, addresses arrive
//! resolved. Every port asks through [`crate::step::Gate`]; nothing is allowed but what a row names.

mod derive;
mod edit;
mod host;
mod line;
mod manifest;
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
pub use path::{PROTECTED, is_environment, is_protected, is_write_protected};
pub use planned::PlannedNeed;
pub use project::{Grants, Permissions, TrustedFlow};

/// A kind of thing that a flow may touch.
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

/// A host and port that a step talks to.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Host {
    pub name: String,
    pub port: u16,
}

impl Host {
    /// Returns a host in the form in which hosts are compared: lower case, without brackets and final dot.
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

/// How far out a server is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// This machine, or a network that is not routed outside.
    Inside,
    Public,
}

/// What a step is about to touch.
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
    /// A proxy that a flow chose: it sees the requests, and resolves names itself.
    Proxy(Host),
    /// A secret that is sent to a host.
    Secret {
        name: String,
        host: Host,
    },
    Program(String),
    /// A variable of the environment.
    Env(String),
}

/// A secret and the hosts that it may be sent to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecretRow {
    pub name: String,
    pub hosts: Vec<NetRow>,
}

/// A flow for which the project's rows do not hold: only those under its own slug in `:flows`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct OwnRows {
    pub slug: Arc<str>,
    pub trust: Trust,
}

/// Whether a flow has been trusted by a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Trust {
    /// It is one of the project.
    NotNeeded,
    /// It is from elsewhere, and nobody has trusted it.
    Missing,
    /// Another version of it was trusted.
    Outdated,
    /// It is trusted, as it is.
    Given,
}

/// Which servers may be asked.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct NetAllow {
    /// Where a row that is missing belongs; the project's rows where this is not set.
    pub own: Option<OwnRows>,
    /// Every address that is routed publicly.
    pub public: bool,
    pub rows: Vec<NetRow>,
    /// Everything, whatever the rows say.
    pub any: bool,
}

impl NetAllow {
    /// Tells whether a row names this host or address; `*` names nothing.
    pub fn names(&self, host: &Host, address: Option<IpAddr>) -> bool {
        self.rows
            .iter()
            .any(|row| !row.is_any() && row.covers(host, address))
    }

    /// Tells whether some address of a host may be asked, before the address is known.
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

    /// Tells whether a server may be asked.
    pub fn covers(&self, host: &Host, address: Option<IpAddr>, reach: Reach) -> bool {
        self.any
            || (self.public && reach == Reach::Public)
            || self.rows.iter().any(|row| row.covers(host, address))
    }
}

/// Everything that one flow may touch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Allow {
    /// Where a row that is missing belongs; the project's rows where this is not set.
    pub own: Option<OwnRows>,
    /// Nothing is refused.
    pub all: bool,
    /// Absolute, links resolved.
    pub read: Vec<PathBuf>,
    pub write: Vec<PathBuf>,
    /// The folder of Flowstone's own data: only a row at or below it covers what is inside.
    pub home: PathBuf,
    pub net: Arc<NetAllow>,
    pub secrets: Vec<SecretRow>,
    pub programs: Vec<String>,
    pub env: Vec<String>,
}

/// What is decided about a need.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    Granted,
    Missing(Missing),
}

/// Decides whether what is allowed covers a need.
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

/// Names everything of a kind.
pub const ANY: &str = "*";

impl Allow {
    /// Allows everything: for what a person types, and for tests.
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

    /// Adds what other rows allow.
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

/// Tells whether two names mean one secret: `crm-token` is also `CRM_TOKEN`.
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
