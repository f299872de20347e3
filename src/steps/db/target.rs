//! The database of a step: its address, its user and its secret, from the connection.

use std::path::PathBuf;

use flowstone_flow::flow::{Flow, name_of};
use flowstone_flow::permission::{Access, Need, PlannedNeed};
use flowstone_flow::step::{StepContext, StepError};
use flowstone_lang::value::Value;
use reqwest::Url;

use super::backend::Backend;
use super::query::Server;
use super::sqlite::File;
use crate::connections::{self, Auth, Connection};
use crate::fields::Fields;
use crate::guard::host_of;
use crate::http::settings::usual;
use crate::needs::{connection, of_url};
use crate::socket::Address;

/// A database.
#[derive(Debug)]
pub(super) enum Target {
    Postgres(Box<Server>),
    MySql(Box<Server>),
    Sqlite(File),
}

impl Target {
    pub(super) fn backend(&self) -> Backend {
        match self {
            Target::Postgres(_) => Backend::Postgres,
            Target::MySql(_) => Backend::MySql,
            Target::Sqlite(_) => Backend::Sqlite,
        }
    }

    /// Returns where the database is, for messages.
    pub(super) fn place(&self) -> String {
        match self {
            Target::Postgres(server) | Target::MySql(server) => server.address.place(),
            Target::Sqlite(file) => file.place.clone(),
        }
    }

    /// Returns the address without a user, for recordings.
    pub(super) fn url(&self) -> String {
        match self {
            Target::Postgres(server) | Target::MySql(server) => {
                let scheme = self.backend().name();
                format!("{scheme}://{}/{}", server.address.place(), server.database)
            }
            Target::Sqlite(file) => format!("sqlite:{}", file.place),
        }
    }

    pub(super) fn read(cx: &StepContext, fields: Fields<'_>) -> Result<Target, StepError> {
        let name = fields.name("connection")?.unwrap_or_default();
        let connection = connections::find(cx, &name)?;
        let backend = backend(fields.map, &connection, &name)?;
        let base = address(&connection, backend, &name)?;
        match backend {
            Backend::Sqlite => file(cx, fields, base).map(Target::Sqlite),
            Backend::Postgres | Backend::MySql => {
                let server = Box::new(server(cx, &connection, backend, base)?);
                Ok(match backend {
                    Backend::MySql => Target::MySql(server),
                    Backend::Postgres | Backend::Sqlite => Target::Postgres(server),
                })
            }
        }
    }
}

fn wrong(message: impl Into<String>, hint: &str) -> StepError {
    StepError::config("E1462", message).hint(hint)
}

/// Returns the database that the step names, or else its connection.
fn backend(config: &Value, connection: &Connection, name: &str) -> Result<Backend, StepError> {
    let own = config.get("database").and_then(name_of);
    let own = own.map(|own| Backend::named(&own)).transpose()?;
    let base = connection.base_url.as_deref().unwrap_or_default();
    let scheme = base.split_once(':').map(|(scheme, _)| scheme);
    let configured = connection.backend.as_deref().or(scheme);
    let configured = configured.map(Backend::named).transpose()?;
    match (own, configured) {
        (Some(own), Some(other)) if own != other => Err(wrong(
            format!(
                "the step asks for `:{}`, and the connection `:{name}` is one of `:{}`",
                own.name(),
                other.name()
            ),
            "correct `:database`, or name another connection",
        )),
        (Some(found), _) | (None, Some(found)) => Ok(found),
        (None, None) => Err(wrong(
            format!("neither the step nor the connection `:{name}` says which database it is"),
            "add `:database :postgres`, `:mysql` or `:sqlite`",
        )),
    }
}

fn address<'a>(
    connection: &'a Connection,
    backend: Backend,
    name: &str,
) -> Result<&'a str, StepError> {
    let example = match backend {
        Backend::Postgres => "as in `:base-url \"postgres://user@db.internal:5432/shop\"`",
        Backend::MySql => "as in `:base-url \"mysql://user@db.internal:3306/shop\"`",
        Backend::Sqlite => "as in `:base-url \"sqlite:data/shop.db\"`",
    };
    let Some(base) = connection.base_url.as_deref() else {
        let message = format!("the connection `:{name}` has no `:base-url`");
        return Err(wrong(message, example));
    };
    match base.split_once(':') {
        Some((scheme, _)) if backend.has_scheme(scheme) => Ok(base),
        _ => {
            let shown = crate::shown_url::without_password(base);
            let message = format!(
                "the address `{shown}` of the connection `:{name}` is not one of {}",
                backend.name()
            );
            Err(wrong(message, example))
        }
    }
}

/// Returns the file of a database, if the flow may use it.
fn file(cx: &StepContext, fields: Fields<'_>, base: &str) -> Result<File, StepError> {
    let path = path(base)?;
    let whole = flowstone_flow::step::real_path(&cx.project_root().join(&path));
    let is_replay = cx.exchanges().is_some_and(|it| it.is_replay());
    if !is_replay {
        cx.gate().read(&whole)?;
        if fields.bool("read-only")? == Some(false) {
            cx.gate().write(&whole)?;
        }
    }
    Ok(File {
        path: whole,
        place: path,
    })
}

fn path(base: &str) -> Result<String, StepError> {
    let path = base.strip_prefix("sqlite:").unwrap_or(base);
    let example =
        "write `sqlite:data/shop.db` for a file of the project, or `sqlite:/var/data/shop.db`";
    match path {
        "" => Err(wrong("the address of the database has no path", example)),
        path if path.starts_with("//") => Err(wrong(
            format!("`{base}` is not an address of SQLite here"),
            example,
        )),
        ":memory:" => Err(wrong(
            "a database in memory would be gone after its statement",
            example,
        )),
        path => Ok(path.to_owned()),
    }
}

fn server(
    cx: &StepContext,
    connection: &Connection,
    backend: Backend,
    base: &str,
) -> Result<Server, StepError> {
    let (url, database) = parsed(base, backend)?;
    let usual = usual(cx, connection)?;
    let host = url.host_str().unwrap_or_default().to_owned();
    let port = url.port().unwrap_or(backend.port());
    let mut user = decoded(url.username());
    let mut password = None;
    match &connection.auth {
        Auth::Unsaid | Auth::None => {}
        Auth::Basic { username, .. } => {
            if let Some(name) = username {
                user.clone_from(name);
            }
            let is_replay = cx.exchanges().is_some_and(|it| it.is_replay());
            if !is_replay {
                password = Some(connection.auth.secret(cx, &connection.id, &host_of(&url))?);
            }
        }
        _ => {
            return Err(wrong(
                "a database takes a user and a password",
                "as in `:auth {:type :basic :username \"reader\" :secret-ref :shop-password}`",
            ));
        }
    }
    if user.is_empty() {
        return Err(wrong(
            "the connection has no user",
            "write it in `:base-url \"postgres://user@host/database\"`, or in `:auth {:type :basic :username \"user\" ...}`",
        ));
    }
    let guard = usual.route.guard.at(&url);
    Ok(Server {
        address: Address {
            url,
            host,
            port,
            guard,
            tls: connection.tls,
            ca_file: usual.route.ca_file,
            connect_timeout: usual.route.connect_timeout,
        },
        user,
        password,
        database,
    })
}

/// Reads the address of a server. It has the name of the database, and no secret.
fn parsed(base: &str, backend: Backend) -> Result<(Url, String), StepError> {
    let shown = crate::shown_url::without_password(base);
    let example = "it looks like `postgres://user@host:5432/database`";
    let mut url = Url::parse(base)
        .map_err(|error| wrong(format!("`{shown}` is not an address: {error}"), example))?;
    if url.password().is_some() {
        return Err(wrong(
            format!("the address `{shown}` holds a password itself"),
            "name it instead: `:auth {:type :basic :secret-ref :shop-password}`, and set SHOP_PASSWORD in the environment or in `.env`",
        ));
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(wrong(
            format!("the address `{shown}` has parameters"),
            "`:tls` of the connection decides about TLS; the rest is set by the step",
        ));
    }
    if url.host_str().is_none_or(str::is_empty) {
        return Err(wrong(format!("the address `{shown}` has no host"), example));
    }
    if url.port().is_none() {
        url.set_port(Some(backend.port())).ok();
    }
    let database = decoded(url.path().trim_start_matches('/'));
    match database.contains('/') {
        true => Err(wrong(
            format!("the address `{shown}` has more than the name of a database"),
            example,
        )),
        false => Ok((url, database)),
    }
}

/// Decodes `%40` and the like.
fn decoded(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut plain = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let digits = text.get(at + 1..at + 3).filter(|_| bytes[at] == b'%');
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                plain.push(byte);
                at += 3;
            }
            None => {
                plain.push(bytes[at]);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&plain).into_owned()
}

/// Returns the permissions that a step needs, as far as it is written out.
pub(super) fn needs(flow: &Flow, settings: &Value, config: &Value) -> Vec<PlannedNeed> {
    let Some(connection) = connection(flow, settings, config) else {
        return vec![PlannedNeed::Computed(Access::Net)];
    };
    let Some(base) = connection.base_url.as_deref() else {
        return vec![PlannedNeed::Computed(Access::Net)];
    };
    if base.starts_with("sqlite:") {
        let Ok(path) = path(base).map(PathBuf::from) else {
            return Vec::new();
        };
        let mut needs = vec![PlannedNeed::Known(Need::Read(path.clone()))];
        if matches!(config.get("read-only"), Some(Value::Bool(false))) {
            needs.push(PlannedNeed::Known(Need::Write(path)));
        }
        return needs;
    }
    let scheme = base.split_once(':').map(|(scheme, _)| scheme);
    let Some(Ok(backend)) = scheme.map(Backend::named) else {
        return vec![PlannedNeed::Computed(Access::Net)];
    };
    let Ok((url, _)) = parsed(base, backend) else {
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
