//! The machine of a step, from its connection: address, user, key, and the keys that the machine may show.

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use flowstone_flow::flow::{Flow, name_of};
use flowstone_flow::permission::{Access, Need, PlannedNeed};
use flowstone_flow::ports::Secret;
use flowstone_flow::step::{StepContext, StepError};
use flowstone_lang::value::Value;
use reqwest::Url;

use super::error::SshError;
use crate::connections::{self, Auth, Connection, missing_secret};
use crate::fields::Fields;
use crate::guard::{Guard, Zone, allowed, host_of, lookup};
use crate::http::error::HttpError;
use crate::http::settings::usual;
use crate::needs::{connection, of_url};

/// The program, as permissions name it.
pub(super) const PROGRAM: &str = "ssh";

/// A machine, and who logs in.
#[derive(Debug, Clone)]
pub(super) struct Target {
    url: Url,
    guard: Guard,
    pub host: String,
    pub port: u16,
    pub user: String,
    pub key: Option<Secret>,
    pub passphrase: Option<Secret>,
    pub known_hosts: KnownHosts,
}

/// Where the keys of machines are.
#[derive(Debug, Clone)]
pub(super) enum KnownHosts {
    /// The lists of the user and of this machine.
    OfUser,
    File(PathBuf),
    Secret(Secret),
}

fn wrong(message: impl Into<String>, hint: &str) -> StepError {
    StepError::config("E1475", message).hint(hint)
}

const EXAMPLE: &str = "as in `:base-url \"ssh://deploy@web-1.internal:22\"`";

impl Target {
    /// Returns the machine, for messages.
    pub(super) fn place(&self) -> String {
        match self.port {
            22 => self.host.clone(),
            port => format!("{}:{port}", self.host),
        }
    }

    pub(super) fn url(&self) -> String {
        format!("ssh://{}:{}", self.host, self.port)
    }

    /// Returns the name under which lists of known hosts have the machine.
    pub(super) fn known_as(&self) -> String {
        let host = self.host.trim_matches(['[', ']']);
        match self.port {
            22 => host.to_owned(),
            port => format!("[{host}]:{port}"),
        }
    }

    pub(super) fn read(cx: &StepContext, fields: Fields<'_>) -> Result<Target, StepError> {
        let name = fields.name("connection")?.unwrap_or_default();
        let connection = connections::find(cx, &name)?;
        let url = address(&connection, &name)?;
        let usual = usual(cx, &connection)?;
        let is_replay = cx.exchanges().is_some_and(|it| it.is_replay());
        let mut target = Target {
            guard: usual.route.guard.at(&url),
            host: url.host_str().unwrap_or_default().to_owned(),
            port: url.port().unwrap_or(22),
            user: url.username().to_owned(),
            key: None,
            passphrase: None,
            known_hosts: KnownHosts::OfUser,
            url,
        };
        if is_replay {
            return Ok(target);
        }
        cx.gate().program(PROGRAM)?;
        target.prove(cx, &connection)?;
        target.known_hosts = known_hosts(cx, &connection, &target)?;
        Ok(target)
    }

    /// Looks up the key of the user.
    fn prove(&mut self, cx: &StepContext, connection: &Connection) -> Result<(), StepError> {
        match &connection.auth {
            // The keys of the user and of an agent.
            Auth::Unsaid | Auth::None => Ok(()),
            Auth::PrivateKey { passphrase, .. } => {
                let host = host_of(&self.url);
                self.key = Some(connection.auth.secret(cx, &connection.id, &host)?);
                if let Some(name) = passphrase {
                    let found = cx.secret_for(name, &host)?;
                    let found = found.ok_or_else(|| missing_secret(cx, name, &connection.id))?;
                    self.passphrase = Some(found);
                }
                Ok(())
            }
            _ => Err(wrong(
                "a machine is logged in to with a key",
                "as in `:auth {:type :private-key :secret-ref :deploy-key}`",
            )),
        }
    }

    /// Returns the address that the guard allows, to which `ssh` then connects.
    pub(super) async fn resolve(&self, limit: Duration) -> Result<IpAddr, SshError> {
        let refused = |refused| SshError::Refused(HttpError::Refused(refused));
        let unreachable = |cause: String| SshError::Unreachable {
            place: self.place(),
            cause,
        };
        self.guard
            .check_url(&self.url, Zone::Loopback)
            .map_err(refused)?;
        let found = tokio::time::timeout(limit, lookup(self.host.trim_matches(['[', ']']))).await;
        let found = found
            .map_err(|_| unreachable("its name was not resolved in time".to_owned()))?
            .map_err(|error| unreachable(error.to_string()))?;
        let found = allowed(&self.guard, &self.host, found, Zone::Loopback).map_err(refused)?;
        let first = found.first().map(|address| address.ip());
        first.ok_or_else(|| unreachable("its name has no address".to_owned()))
    }
}

fn address(connection: &Connection, name: &str) -> Result<Url, StepError> {
    let base = connection.base_url.as_deref().ok_or_else(|| {
        wrong(
            format!("the connection `:{name}` has no `:base-url`"),
            EXAMPLE,
        )
    })?;
    let shown = crate::shown_url::without_password(base);
    let mut url = Url::parse(base)
        .map_err(|error| wrong(format!("`{shown}` is not an address: {error}"), EXAMPLE))?;
    if url.scheme() != "ssh" {
        return Err(wrong(
            format!("the address `{shown}` is not one of ssh"),
            EXAMPLE,
        ));
    }
    if url.password().is_some() {
        return Err(wrong(
            format!("the address `{shown}` holds a password itself"),
            "a machine is logged in to with a key: `:auth {:type :private-key :secret-ref :deploy-key}`",
        ));
    }
    // What begins with a dash would be an option of `ssh`; the rest would be expanded by it, or by a shell.
    let is_plain = |it: char| it.is_ascii_alphanumeric() || "-_.:[]".contains(it);
    let is_name =
        |text: &str| !text.is_empty() && !text.starts_with('-') && text.chars().all(is_plain);
    let host = url.host_str().unwrap_or_default();
    if !is_name(host) || !is_name(url.username()) {
        return Err(wrong(
            format!(
                "the address `{shown}` needs a user and a host of letters, digits, `-`, `_` and `.`"
            ),
            EXAMPLE,
        ));
    }
    if !matches!(url.path(), "" | "/") || url.query().is_some() || url.fragment().is_some() {
        return Err(wrong(
            format!("the address `{shown}` has more than a user, a host and a port"),
            "the folder is the step's `:workdir`",
        ));
    }
    if url.port().is_none() {
        url.set_port(Some(22)).ok();
    }
    Ok(url)
}

fn known_hosts(
    cx: &StepContext,
    connection: &Connection,
    target: &Target,
) -> Result<KnownHosts, StepError> {
    let Some(given) = &connection.known_hosts else {
        return Ok(KnownHosts::OfUser);
    };
    if let Some(path) = given.as_str() {
        let path = cx.project_root().join(path);
        cx.gate().read(&path)?;
        return Ok(KnownHosts::File(path));
    }
    let Some(name) = given.get("secret-ref").and_then(name_of) else {
        return Err(wrong(
            "`:known-hosts` is the path of a file, or `{:secret-ref :name}`",
            "as in `:known-hosts \"known_hosts\"`",
        ));
    };
    let found = cx.secret_for(&name, &host_of(&target.url))?;
    let found = found.ok_or_else(|| missing_secret(cx, &name, &connection.id))?;
    Ok(KnownHosts::Secret(found))
}

/// Returns the permissions that a step needs, as far as it is written out.
pub(super) fn needs(flow: &Flow, settings: &Value, config: &Value) -> Vec<PlannedNeed> {
    let program = PlannedNeed::Known(Need::Program(PROGRAM.to_owned()));
    let connection = connection(flow, settings, config);
    let url = connection
        .as_ref()
        .and_then(|connection| address(connection, "").ok());
    let Some(url) = url else {
        return vec![PlannedNeed::Computed(Access::Net), program];
    };
    let secret = connection
        .as_ref()
        .and_then(|connection| connection.auth.permitted_name());
    let secret = secret.map(|name| {
        PlannedNeed::Known(Need::Secret {
            name: name.to_owned(),
            host: host_of(&url),
        })
    });
    [of_url(&url), program].into_iter().chain(secret).collect()
}
