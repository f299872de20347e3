//! `:source` and `:changeset` of a step: the place of files, or a reference to a tree or changeset.

use std::time::Duration;

use base64::Engine as _;
use flowstone_flow::changeset;
use flowstone_flow::ports::Secret;
use flowstone_flow::step::{StepContext, StepError};
use flowstone_lang::value::Value;

use super::git::Repository;
use super::snapshot::{Folder, Limits};
use crate::connections::{self, Auth};
use crate::fields::Fields;
use crate::guard::{Guard, Zone, host_of};
use crate::http::error::HttpError;
use crate::http::settings;
use crate::{resource, text};

/// The prefix of the URI of a source tree.
pub(super) const URI: &str = "res://v1/ws/local/bundle/source-tree/";

/// A parsed `:source`.
pub(super) enum Source {
    Tree { id: String, uri: String },
    Changeset { id: String },
    Spec(Spec),
}

/// The place of files.
#[derive(Clone)]
pub(super) enum Spec {
    Folder(Folder),
    Git(Repository),
}

impl Spec {
    /// Returns the guard for the servers of the source.
    pub(super) fn guard(&self, cx: &StepContext) -> Result<Guard, StepError> {
        match self {
            Spec::Folder(_) => Ok(Guard::default()),
            Spec::Git(git) => guard(cx, git.connection.as_deref()),
        }
    }

    /// Returns a description of the source for the progress line.
    pub(super) fn describe(&self) -> String {
        match self {
            Spec::Folder(folder) => folder.path.display().to_string(),
            Spec::Git(git) => format!(
                "{} at {}",
                crate::shown_url::without_password(&git.repo),
                git.reference
            ),
        }
    }
}

/// Reads the source of a reading operation: `:source` or `:changeset`.
pub(super) fn readable(cx: &StepContext, fields: Fields<'_>) -> Result<Source, StepError> {
    match (fields.has("source"), fields.has("changeset")) {
        (false, true) => Ok(Source::Changeset {
            id: changeset(fields)?,
        }),
        (true, true) => Err(StepError::config(
            "E0781",
            "the step takes `:source` or `:changeset`, not both",
        )
        .hint("a changeset includes its source")),
        (false, false) => Err(
            StepError::config("E0781", "the step needs `:source` or `:changeset`").hint(
                "`:source {:type :dir :path \".\"}` is the project's folder; `:changeset` takes what `:op :init-changeset` returned",
            ),
        ),
        (true, false) => read(cx, fields),
    }
}

/// Reads `:changeset`: returns its id.
pub(super) fn changeset(fields: Fields<'_>) -> Result<String, StepError> {
    let given = fields.get("changeset").unwrap_or(&Value::Nil);
    let uri = resource::uri(given);
    let id = uri.as_deref().and_then(changeset_id);
    id.map(str::to_string).ok_or_else(|| {
        let what = uri.unwrap_or_else(|| text::brief(given));
        StepError::config("E0781", format!("`{what}` is not a changeset"))
            .hint("give what `:op :init-changeset` returned, or its `:uri`")
    })
}

/// Returns the `res://` name of a changeset.
pub(super) fn changeset_uri(id: &str) -> String {
    format!("{}{id}", changeset::URI)
}

fn changeset_id(uri: &str) -> Option<&str> {
    let (_, id) = uri
        .strip_prefix("res://v1/ws/")?
        .split_once("/bundle/changeset/files/")?;
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    ((1..=100).contains(&id.len()) && id.bytes().all(is_plain)).then_some(id)
}

pub(super) fn read(cx: &StepContext, fields: Fields<'_>) -> Result<Source, StepError> {
    let Some(source) = fields.get("source") else {
        return Err(bad("`:source` is missing"));
    };
    if let Some(uri) = source.as_str() {
        return tree(uri);
    }
    if let Some(uri) = resource::uri(source) {
        return tree(&uri);
    }
    let fields = Fields::nested(":source", source)?;
    match fields.name("type")?.as_deref() {
        Some("dir") => folder(cx, fields).map(|it| Source::Spec(Spec::Folder(it))),
        Some("git") => git(cx, fields).map(|it| Source::Spec(Spec::Git(it))),
        Some(other) => Err(bad(format!("`:source` has no type `:{other}`"))),
        None => Err(bad("`:source` needs `:type`")),
    }
}

fn bad(message: impl Into<String>) -> StepError {
    StepError::config("E0782", message).hint(
        "a source is `{:type :dir :path \".\"}`, `{:type :git :repo \"https://...\"}`, or what `:op :resolve-source` returned",
    )
}

/// Reads the URI of a tree, whose last part is the hash of the manifest.
fn tree(uri: &str) -> Result<Source, StepError> {
    if let Some(id) = changeset_id(uri) {
        return Ok(Source::Changeset { id: id.to_string() });
    }
    let id = uri
        .strip_prefix("res://v1/ws/")
        .and_then(|rest| rest.split_once("/bundle/source-tree/"))
        .and_then(|(_, rest)| rest.split_once('/'))
        .map(|(_, id)| id);
    match id {
        Some(id) if id.len() == 64 && id.bytes().all(|byte| byte.is_ascii_hexdigit()) => {
            Ok(Source::Tree {
                id: id.to_ascii_lowercase(),
                uri: uri.to_string(),
            })
        }
        _ => Err(bad(format!("`{uri}` is not the URI of a source tree"))),
    }
}

/// Maximum of `:max-file-bytes`, because a file is held in memory while it is read.
const FILE_BYTES_MAX: i64 = 1_000_000_000;

const LIMITS: [&str; 3] = ["max-bytes", "max-file-bytes", "max-files"];

fn limits(fields: Fields<'_>) -> Result<Limits, StepError> {
    let usual = Limits::default();
    let limit = |key, usual, most| {
        let given = fields.int(key, 1, most)?;
        Ok::<_, StepError>(given.and_then(|it| u64::try_from(it).ok()).unwrap_or(usual))
    };
    Ok(Limits {
        files: limit("max-files", usual.files, i64::MAX)?,
        bytes: limit("max-bytes", usual.bytes, i64::MAX)?,
        file_bytes: limit("max-file-bytes", usual.file_bytes, FILE_BYTES_MAX)?,
    })
}

fn folder(cx: &StepContext, fields: Fields<'_>) -> Result<Folder, StepError> {
    fields.only(&[&["type", "path", "hidden?", "ignored?"], &LIMITS[..]].concat())?;
    let path = fields
        .text("path")?
        .ok_or_else(|| bad("a `:dir` source needs a `:path`"))?;
    if path.contains('\0') {
        return Err(bad("the `:path` of the source contains a NUL character"));
    }
    let folder = cx.project_root().join(path);
    cx.gate().read(&folder)?;
    let ignored = fields.bool("ignored?")?.unwrap_or(false);
    Ok(Folder {
        environment: ignored && cx.gate().may_read(&folder.join(".env")),
        path: folder,
        shown: path.to_string(),
        ignored,
        hidden: fields.bool("hidden?")?.unwrap_or(true),
        parents: true,
        without: cx.home().to_path_buf(),
        limits: limits(fields)?,
    })
}

/// Returns the guard for the servers of git: from the project's settings, and from its connection if one is named.
pub(super) fn guard(cx: &StepContext, connection: Option<&str>) -> Result<Guard, StepError> {
    let connection = match connection {
        Some(name) => connections::find(cx, name)?,
        None => connections::Connection::default(),
    };
    Ok(settings::usual(cx, &connection)?.route.guard)
}

fn git(cx: &StepContext, fields: Fields<'_>) -> Result<Repository, StepError> {
    fields.only(
        &[
            &["type", "repo", "ref", "connection", "timeout"],
            &LIMITS[..],
        ]
        .concat(),
    )?;
    let repo = fields
        .text("repo")?
        .ok_or_else(|| bad("a `:git` source needs a `:repo`"))?;
    cx.gate().program("git")?;
    reach(cx, repo)?;
    if let Some(folder) = super::git::local_folder(cx.project_root(), repo) {
        cx.gate().read(&folder)?;
    }
    let connection = fields.get("connection");
    let header = connection
        .map(|connection| authorization(cx, connection, repo))
        .transpose()?;
    let connection = connection.and_then(flowstone_flow::flow::name_of);
    Ok(Repository {
        repo: repo.to_string(),
        reference: fields.name("ref")?.as_deref().unwrap_or("HEAD").to_string(),
        base: cx.project_root().to_path_buf(),
        header,
        connection: connection.map(|name| name.to_string()),
        timeout: fields
            .duration("timeout")?
            .unwrap_or(Duration::from_secs(300)),
        limits: limits(fields)?,
    })
}

/// Checks whether the server of a repository may be reached, as far as its address shows.
pub(super) fn reach(cx: &StepContext, repo: &str) -> Result<(), StepError> {
    // `user@host:path` is the short form of SSH.
    let short = repo.split_once(':').filter(|(host, _)| !host.contains('/'));
    let url = match (repo.contains("://"), short) {
        (true, _) => reqwest::Url::parse(repo).ok(),
        (false, Some((host, _))) => reqwest::Url::parse(&format!("ssh://{host}/")).ok(),
        (false, None) => None,
    };
    let Some(url) = url.filter(reqwest::Url::has_host) else {
        return Ok(());
    };
    let usual = settings::usual(cx, &connections::Connection::default())?;
    let checked = usual.route.guard.at(&url).check_url(&url, Zone::Loopback);
    Ok(checked.map_err(HttpError::from)?)
}

/// Returns the header that sends a connection's secret to the repository's server, and to no other.
pub(super) fn authorization(
    cx: &StepContext,
    connection: &Value,
    repo: &str,
) -> Result<(String, String), StepError> {
    let name = flowstone_flow::flow::name_of(connection)
        .ok_or_else(|| bad("`:connection` of a source takes a name"))?;
    let server = reqwest::Url::parse(repo)
        .ok()
        .filter(|url| url.scheme() == "https" || url.scheme() == "http" && is_here(url));
    let server = server.as_ref().filter(|url| url.has_host());
    let Some((server, host)) = server.map(|url| (url.origin().ascii_serialization(), host_of(url)))
    else {
        return Err(bad("`:connection` works for https repositories only")
            .hint("for others, git's own credentials and SSH keys are used"));
    };
    let connection = connections::find(cx, &name)?;
    let secret = connection.auth.secret(cx, &connection.id, &host)?;
    let user = match &connection.auth {
        Auth::Basic {
            username: Some(username),
            ..
        } => username.as_str(),
        _ => "x-access-token",
    };
    let pair = format!("{user}:{}", secret.reveal());
    let encoded = base64::engine::general_purpose::STANDARD.encode(pair);
    cx.hide(&Secret::new(encoded.as_str()));
    let value = format!("Authorization: Basic {encoded}");
    Ok((format!("http.{server}/.extraHeader"), value))
}

/// Tells whether an address is on this machine, so that requests cannot be read on the way.
fn is_here(url: &reqwest::Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let host = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost"
        || host
            .parse::<std::net::IpAddr>()
            .is_ok_and(|it| it.is_loopback())
}
