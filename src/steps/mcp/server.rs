//! The server of an adapter: an address or a command, from the project's settings and the flow's `:requires`.
//!
//! A command is only accepted from the settings. Its environment contains common variables, and those in `:env`.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use flowstone_flow::flow::{McpAdapter, McpTransport, name_of};
use flowstone_flow::ports::Secret;
use flowstone_flow::redact::Redactor;
use flowstone_flow::step::{StepContext, StepError};
use flowstone_lang::value::Value;
use reqwest::Url;

use super::process::Program;
use crate::connections::{self, Connection, Proof, missing_secret};
use crate::fields::Fields;
use crate::http;
use crate::http::error::HttpError;
use crate::http::route::Route;
use crate::json::items;
use crate::oauth::{self, Lent};
use crate::own_server;

/// A server, with its name.
#[derive(Clone)]
pub(super) struct Target {
    pub name: String,
    pub server: Server,
    /// Removes the secrets that the run knows from what a program prints.
    pub redactor: Arc<Redactor>,
    /// The login whose token is in the headers.
    pub login: Option<Lent>,
    /// Whether the step sends a token of its own instead.
    pub has_own_token: bool,
    /// Whether people are asked the server's questions. Such a connection serves one call at a time, so that it is known
    /// which call a question belongs to.
    pub asks: bool,
}

/// The way to reach a server. Equal ones share a connection. Not printable: it contains secrets.
#[derive(Clone, PartialEq, Eq)]
pub(super) enum Server {
    Http(Box<HttpServer>),
    Program(Program),
}

#[derive(Clone, PartialEq, Eq)]
pub(super) struct HttpServer {
    pub url: Url,
    pub headers: Vec<(String, String)>,
    pub route: Route,
}

/// Environment variables that every program inherits. None of them holds a secret.
const INHERITED: &[&str] = &[
    "APPDATA",
    "COMSPEC",
    "HOME",
    "HOMEDRIVE",
    "HOMEPATH",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "LOCALAPPDATA",
    "LOGNAME",
    "PATH",
    "PATHEXT",
    "PROCESSOR_ARCHITECTURE",
    "PROGRAMFILES",
    "SHELL",
    "SYSTEMDRIVE",
    "SYSTEMROOT",
    "TEMP",
    "TERM",
    "TMP",
    "TMPDIR",
    "TZ",
    "USER",
    "USERNAME",
    "USERPROFILE",
];

fn wrong(message: impl Into<String>) -> StepError {
    StepError::config("E0830", message)
}

/// Headers that belong to the protocol or to the transport.
const OWN_HEADERS: &[&str] = &[
    "accept",
    "connection",
    "content-length",
    "content-type",
    "host",
    "last-event-id",
    "mcp-protocol-version",
    "mcp-session-id",
    "transfer-encoding",
];

impl Target {
    /// Returns the target with a new token in place of the one that its server refused; `None` if it has no login, or the
    /// step sends a token of its own.
    ///
    /// # Errors
    /// E1314: when the token cannot be renewed.
    pub(super) async fn renewed(&self, cx: &StepContext) -> Result<Option<Target>, StepError> {
        let (Some(lent), Server::Http(server)) = (&self.login, &self.server) else {
            return Ok(None);
        };
        let Some(used) = oauth::token_of(&server.headers).filter(|_| !self.has_own_token) else {
            return Ok(None);
        };
        let header = lent.renewed(cx, used).await?;
        let mut server = server.clone();
        oauth::replace(&mut server.headers, header);
        Ok(Some(Target {
            server: Server::Http(server),
            redactor: cx.redactor(),
            ..self.clone()
        }))
    }

    /// Lets the server ask people.
    pub(super) fn asking(self, asks: bool) -> Target {
        Target { asks, ..self }
    }

    /// Adds the `:headers` of a step. A header of the connection with the same name is replaced.
    ///
    /// # Errors
    /// E0830: when one is not a header, or the server is a program.
    pub(super) fn with_headers(mut self, fields: Fields<'_>) -> Result<Target, StepError> {
        let given = fields.map("headers")?.and_then(Value::as_map);
        for (key, value) in given.into_iter().flat_map(|map| map.iter()) {
            let Server::Http(server) = &mut self.server else {
                return Err(wrong(format!(
                    "`:headers` cannot be sent to {}: it is a program",
                    self.name
                )));
            };
            let name = name_of(key).unwrap_or_default();
            let value = value.as_str().unwrap_or_default();
            let is_token =
                |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
            let is_own = OWN_HEADERS
                .iter()
                .chain([&own_server::RUN_KIND])
                .any(|own| own.eq_ignore_ascii_case(&name));
            if name.is_empty() || !name.bytes().all(is_token) || is_own {
                return Err(wrong(format!("`:headers` cannot have the header `{name}`")));
            }
            if value.is_empty() || value.chars().any(char::is_control) {
                return Err(wrong(format!(
                    "the header `{name}` of `:headers` must be a string on one line"
                )));
            }
            self.has_own_token |= name.eq_ignore_ascii_case("authorization");
            let headers = &mut server.headers;
            headers.retain(|(known, _)| !known.eq_ignore_ascii_case(&name));
            headers.push((name.to_string(), value.to_owned()));
        }
        Ok(self)
    }
}

/// Returns the server of an adapter. Secrets are looked up now.
pub(super) async fn target(cx: &StepContext, adapter: &McpAdapter) -> Result<Target, StepError> {
    let name = &*adapter.connection;
    let connection = connections::find(cx, name)?;
    if let Some(backend) = connection.backend.as_deref().filter(|it| *it != "mcp") {
        return Err(wrong(format!(
            "the connection `:{name}` is for `:{backend}`, not for a server of MCP"
        ))
        .hint("give it `:backend :mcp`"));
    }
    let setting = connections::bound(cx.settings(), name).unwrap_or(&Value::Nil);
    let server = match adapter.transport {
        McpTransport::Stdio => Server::Program(program(cx, name, setting)?),
        McpTransport::StreamableHttp => {
            oauth::freshen(cx, &connection).await?;
            Server::Http(Box::new(address(cx, adapter, &connection, setting)?))
        }
    };
    Ok(Target {
        name: format!("`:{name}`"),
        server,
        redactor: cx.redactor(),
        has_own_token: false,
        login: match adapter.transport {
            McpTransport::Stdio => None,
            McpTransport::StreamableHttp => Lent::of(cx, &connection)?,
        },
        asks: false,
    })
}

fn address(
    cx: &StepContext,
    adapter: &McpAdapter,
    connection: &Connection,
    setting: &Value,
) -> Result<HttpServer, StepError> {
    let name = &connection.id;
    let Some(base) = &connection.base_url else {
        let error = wrong(format!("the connection `:{name}` has no `:base-url`"));
        return Err(match setting.get("command") {
            Some(_) => error.hint(format!(
                "it is a command: give the adapter `:{}` `:transport :stdio`",
                adapter.id
            )),
            None => error.hint("as in `{:backend :mcp :base-url \"https://mcp.example.com\"}`"),
        });
    };
    let whole = match adapter.path.as_deref() {
        Some(path) => http::joined(base, path),
        None => base.clone(),
    };
    let bad = |why: String| HttpError::BadUrl {
        url: crate::shown_url::without_password(&whole),
        why,
    };
    let mut url = Url::parse(&whole).map_err(|error| bad(error.to_string()))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(bad(format!("`{}:` is not HTTP", url.scheme())).into());
    }
    let mut headers = connection.headers.clone();
    match connection
        .auth
        .proof(cx, name, &crate::guard::host_of(&url))?
    {
        Proof::None => {}
        Proof::Header(name, value) => headers.push((name, value)),
        Proof::Query(name, value) => {
            url.query_pairs_mut().append_pair(&name, &value);
            // In the encoding of the address.
            if let Some((_, encoded)) = url.query().and_then(|query| query.rsplit_once('=')) {
                cx.hide(&Secret::new(encoded));
            }
        }
    }
    headers.extend(own_server::run_kind(cx, &url));
    Ok(HttpServer {
        url,
        headers,
        route: http::settings::usual(cx, connection)?.route,
    })
}

fn program(cx: &StepContext, name: &str, setting: &Value) -> Result<Program, StepError> {
    let place = format!("flowstone.edn :connections :{name}");
    let Some(command) = setting.get("command").filter(|it| !it.is_nil()) else {
        return Err(wrong(format!(
            "no command is set for the connection `:{name}` in flowstone.edn"
        ))
        .hint(format!(
            "as in `{{:connections {{:{name} {{:backend :mcp :command [\"node\" \"server.js\" \".\"]}}}}}}`"
        ))
        .hint("a flow cannot set it: a flow from elsewhere must not start programs"));
    };
    let words: Option<Vec<String>> = items(command).and_then(|words| {
        let text = |word: &Value| word.as_str().map(str::to_owned);
        words.iter().map(text).collect()
    });
    let mut command = words
        .filter(|words| words.first().is_some_and(|first| !first.is_empty()))
        .ok_or_else(|| {
            wrong(format!("`{place} :command` is a vector of strings"))
                .hint("the program and each of its arguments, as in `[\"node\" \"server.js\" \".\"]`; no shell reads them")
        })?;
    let fields = Fields::nested(&place, setting)?;
    let root = cx.project_root();
    let cwd = match fields.text("cwd")? {
        Some(folder) => root.join(folder),
        None => root.to_path_buf(),
    };
    if !cwd.is_dir() {
        return Err(wrong(format!(
            "`{place} :cwd`: there is no folder {}",
            cwd.display()
        )));
    }
    cx.gate().program(&command[0])?;
    // A relative path is resolved against the project, whatever the program's working directory is.
    let first = Path::new(&command[0]);
    let is_path = first.components().count() > 1 || command[0].starts_with('.');
    if first.is_relative() && is_path {
        command[0] = root.join(first).to_string_lossy().into_owned();
    }
    Ok(Program {
        command,
        env: environment(cx, name, &place, fields.map("env")?)?,
        cwd,
    })
}

fn environment(
    cx: &StepContext,
    name: &str,
    place: &str,
    declared: Option<&Value>,
) -> Result<Vec<(String, String)>, StepError> {
    let inherited = INHERITED
        .iter()
        .filter_map(|name| Some(((*name).to_owned(), std::env::var(name).ok()?)));
    let mut all: BTreeMap<String, String> = inherited.collect();
    if cx.scope().services.test.is_some() {
        all.insert(own_server::RUN_KIND_VARIABLE.to_owned(), "test".to_owned());
    }
    for (key, value) in declared
        .and_then(Value::as_map)
        .into_iter()
        .flat_map(|it| it.iter())
    {
        let Some(variable) = name_of(key).filter(|it| !it.is_empty() && !it.contains(['=', '\0']))
        else {
            return Err(wrong(format!(
                "`{place} :env` has {} as a name",
                key.kind()
            )));
        };
        let at = format!("{place} :env {variable}");
        let text = match value {
            Value::Text(text) => text.to_string(),
            Value::Map(_) => {
                let fields = Fields::nested(&at, value)?;
                fields.only(&["secret-ref"])?;
                let Some(secret) = fields.name("secret-ref")? else {
                    return Err(wrong(format!("`{at}` needs `:secret-ref`")));
                };
                let found = cx.secret_of_settings(&secret);
                found
                    .ok_or_else(|| missing_secret(cx, &secret, name))?
                    .reveal()
                    .to_owned()
            }
            other => connections::scalar_text(other).ok_or_else(|| {
                wrong(format!(
                    "`{at}` is a string or `{{:secret-ref :name}}`, not {}",
                    other.kind()
                ))
            })?,
        };
        all.insert(variable.to_string(), text);
    }
    Ok(all.into_iter().collect())
}
