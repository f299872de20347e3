//! `--server URL`: commands that call the API of a server instead of opening the project's stores.

mod commands;
mod connections;
mod flows;
mod installations;
mod jobs;
mod kit;
mod records;
mod registry;
mod resources;
mod run;
mod runs;
mod tokens;
mod waits;
mod watch;

use std::env;
use std::fs;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use clap::Args;
use flowstone_engine::json::{compact, read_exact};
use flowstone_engine::server_file;
use hyper::body::Bytes;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use reqwest::{Body, Client, Method, RequestBuilder, StatusCode, Url};
use serde_json::Value;

use super::args::Home;
use super::exit::Exit;
use super::home::Project;
use super::output;
use super::report::{Report, unreadable};
use super::runtime::Runtime;
use crate::hints;

pub use commands::perform;

/// Maximum number of items of a page of the API.
const PAGE: usize = 500;
/// The environment variables with a server and with the token for it.
const SERVER: &str = "FLOWSTONE_SERVER";
const TOKEN: &str = "FLOWSTONE_TOKEN";
/// The file with the owner's token in the home folder of a project.
const OWNER_TOKEN: &str = "owner.token";

/// The codes of the pages in `docs/errors`.
const UNREACHABLE: &str = "E1070";
const NO_TOKEN: &str = "E1071";
const LOCAL_ONLY: &str = "E1072";
const INSECURE: &str = "E1074";

/// The options that choose the server of a command.
#[derive(Debug, Clone, Args)]
pub struct ServerOptions {
    /// Use this server instead of the project's own stores [env: FLOWSTONE_SERVER=]
    #[arg(long, global = true, value_name = "URL")]
    pub server: Option<String>,

    /// File with the access token for the server [env: FLOWSTONE_TOKEN= holds the token itself]
    #[arg(long, global = true, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub token_file: Option<PathBuf>,

    /// Send the token over plain HTTP, also to another machine
    #[arg(long, global = true)]
    pub insecure: bool,
}

impl ServerOptions {
    /// Returns the address of the server: that of the option, or else that of the environment.
    pub fn address(&self) -> Option<String> {
        let set = || env::var(SERVER).ok().filter(|url| !url.is_empty());
        self.server.clone().or_else(set)
    }
}

/// A server, and the token for it.
pub struct Remote {
    base: Url,
    token: String,
    client: Client,
    runtime: Runtime,
}

impl Remote {
    /// Finds the token for a server. Nothing is sent yet.
    ///
    /// # Errors
    /// When the address is malformed, there is no token for it, or the token would be sent in the clear.
    pub fn open(
        address: &str,
        options: &ServerOptions,
        home: Option<&Path>,
    ) -> Result<Remote, Report> {
        let base = Url::parse(address).ok().filter(|url| {
            matches!(url.scheme(), "http" | "https") && url.has_host() && url.username().is_empty()
        });
        let base = base.ok_or_else(|| {
            Report::error(
                UNREACHABLE,
                format!("`{address}` is not the address of a server"),
            )
            .hint("write it as http://127.0.0.1:7373 or https://flows.example.com")
        })?;
        let is_here = is_loopback(&base);
        if base.scheme() == "http" && !is_here && !options.insecure {
            let message = format!("the token would be sent to {base} without encryption");
            return Err(Report::error(INSECURE, message)
                .hint("use an https:// address, or allow it with --insecure"));
        }
        let home = Home {
            home: home.map(Path::to_path_buf),
        };
        let home = Project::find(&home).home;
        let token = token(&base, options, &home)?;
        // Another part of the program may have chosen one already.
        rustls::crypto::ring::default_provider()
            .install_default()
            .ok();
        let mut builder = Client::builder().redirect(reqwest::redirect::Policy::none());
        if is_here {
            builder = builder.no_proxy();
        }
        let client = builder
            .build()
            .map_err(|error| unreachable(&base, &error))?;
        Ok(Remote {
            base,
            token,
            client,
            runtime: Runtime::start()?,
        })
    }

    /// Gets a response of the API. `query` has names and values, which are escaped here.
    ///
    /// # Errors
    /// When the server cannot be reached, or refuses.
    pub fn get(&self, path: &[&str], query: &[(&str, String)]) -> Result<Value, Report> {
        self.send(Method::GET, path, query, None)
    }

    /// Posts a JSON object.
    ///
    /// # Errors
    /// As [`Remote::get`].
    pub fn post(&self, path: &[&str], body: &Value) -> Result<Value, Report> {
        self.send(Method::POST, path, &[], Some(body))
    }

    /// Posts a JSON object with an idempotency key: a repeated request has no further effect.
    ///
    /// # Errors
    /// As [`Remote::get`].
    pub fn post_once(&self, path: &[&str], body: &Value, key: &str) -> Result<Value, Report> {
        let request = self.request(Method::POST, path, &[]);
        let request = request
            .header("idempotency-key", key)
            .header(CONTENT_TYPE, "application/json")
            .body(compact(body));
        self.answer(request)
    }

    /// Sends a request to delete something.
    ///
    /// # Errors
    /// As [`Remote::get`].
    pub fn delete(&self, path: &[&str], query: &[(&str, String)]) -> Result<(), Report> {
        self.send(Method::DELETE, path, query, None).map(|_| ())
    }

    /// Returns the items of a list, page by page, and whether there are more. `limit`: 0 for all.
    ///
    /// # Errors
    /// As [`Remote::get`].
    pub fn pages(
        &self,
        path: &[&str],
        name: &str,
        filters: &[(&str, String)],
        limit: usize,
    ) -> Result<(Vec<Value>, bool), Report> {
        let mut items: Vec<Value> = Vec::new();
        let mut cursor: Option<String> = None;
        loop {
            let left = match limit {
                0 => PAGE,
                limit => (limit - items.len()).min(PAGE),
            };
            let mut query = filters.to_vec();
            query.push(("limit", left.to_string()));
            query.extend(cursor.take().map(|cursor| ("cursor", cursor)));
            let page = self.get(path, &query)?;
            items.extend(page[name].as_array().into_iter().flatten().cloned());
            cursor = page["next"].as_str().map(str::to_owned);
            let is_full = limit > 0 && items.len() >= limit;
            if cursor.is_none() || is_full {
                return Ok((items, cursor.is_some()));
            }
        }
    }

    /// Stores a file, or standard input for `-`, and returns the reference to it.
    ///
    /// # Errors
    /// When the file cannot be read, or as [`Remote::get`].
    pub fn upload(
        &self,
        query: &[(&str, String)],
        content_type: Option<&str>,
        file: &Path,
    ) -> Result<Value, Report> {
        let name = file.display().to_string();
        let read = match file == Path::new("-") {
            true => {
                let mut bytes = Vec::new();
                let mut input = std::io::stdin().lock();
                std::io::Read::read_to_end(&mut input, &mut bytes).map(|_| Body::from(bytes))
            }
            false => fs::read(file).map(Body::from),
        };
        let body = read.map_err(|error| unreadable(&name, &error))?;
        let mut request = self.request(Method::POST, &["resources"], query).body(body);
        if let Some(kind) = content_type {
            request = request.header(CONTENT_TYPE, kind);
        }
        self.answer(request)
    }

    /// Gets bytes that are not JSON.
    ///
    /// # Errors
    /// As [`Remote::get`].
    pub fn bytes(&self, path: &[&str], query: &[(&str, String)]) -> Result<Vec<u8>, Report> {
        let (status, bytes) = self.exchange(self.request(Method::GET, path, query))?;
        match status.is_success() {
            true => Ok(bytes.to_vec()),
            false => Err(self.failed(status, &bytes)),
        }
    }

    fn send(
        &self,
        method: Method,
        path: &[&str],
        query: &[(&str, String)],
        body: Option<&Value>,
    ) -> Result<Value, Report> {
        let mut request = self.request(method, path, query);
        if let Some(body) = body {
            request = request
                .header(CONTENT_TYPE, "application/json")
                .body(compact(body));
        }
        self.answer(request)
    }

    fn request(&self, method: Method, path: &[&str], query: &[(&str, String)]) -> RequestBuilder {
        self.request_below(&["api", "v1"], (method, path), query)
    }

    /// Returns a request for a path below another one of the server.
    fn request_below(
        &self,
        above: &[&str],
        (method, path): (Method, &[&str]),
        query: &[(&str, String)],
    ) -> RequestBuilder {
        let mut url = self.base.clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().extend(above).extend(path);
        }
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        let mut request = self.client.request(method, url);
        if let Ok(mut value) = HeaderValue::from_str(&format!("Bearer {}", self.token)) {
            value.set_sensitive(true);
            request = request.header(AUTHORIZATION, value);
        }
        request
    }

    /// Sends a request, and returns the response.
    fn exchange(&self, request: RequestBuilder) -> Result<(StatusCode, Bytes), Report> {
        let answered = self.runtime.block_on(async {
            let response = request.send().await?;
            let status = response.status();
            Ok((status, response.bytes().await?))
        });
        answered.map_err(|error| unreachable(&self.base, &error))
    }

    /// Sends a request, and returns the JSON of the response; null if it is empty.
    fn answer(&self, request: RequestBuilder) -> Result<Value, Report> {
        let (status, bytes) = self.exchange(request)?;
        if status == StatusCode::NO_CONTENT {
            return Ok(Value::Null);
        }
        match read_exact(&bytes) {
            Ok(answer) if status.is_success() => Ok(answer),
            _ => Err(self.failed(status, &bytes)),
        }
    }

    fn failed(&self, status: StatusCode, bytes: &[u8]) -> Report {
        match read_exact(bytes) {
            Ok(problem) => refused(&problem),
            Err(_) => {
                let message = format!("{} answered {status}, and not with JSON", self.base);
                Report::error(UNREACHABLE, message).hint("is this a Flowstone server?")
            }
        }
    }
}

/// Reports an error of a server in the same form as a local one.
fn refused(problem: &Value) -> Report {
    let code = problem["code"].as_str().unwrap_or(UNREACHABLE);
    let report = Report::error(code, problem["detail"].as_str().unwrap_or_default());
    match problem["hint"].as_str() {
        Some(hint) => report.hint(hints::for_commands(hint)),
        None => report,
    }
}

fn unreachable(base: &Url, error: &reqwest::Error) -> Report {
    let mut cause: &dyn std::error::Error = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    Report::error(UNREACHABLE, format!("{base} cannot be asked: {cause}"))
        .hint("is the server running? `flowstone serve --listen ADDRESS` starts one")
}

/// Returns the token for a server. The owner's token goes only to the server of its own project.
fn token(base: &Url, options: &ServerOptions, home: &Path) -> Result<String, Report> {
    if let Some(file) = &options.token_file {
        return read(file);
    }
    if let Some(token) = env::var(TOKEN).ok().filter(|token| !token.is_empty()) {
        return Ok(token);
    }
    let own = server_file::running(home).and_then(|own| Url::parse(&own).ok());
    if own.as_ref() == Some(base) {
        return read(&home.join(OWNER_TOKEN));
    }
    Err(
        Report::error(NO_TOKEN, format!("there is no access token for {base}")).hint(
            "set FLOWSTONE_TOKEN, or name a file with --token-file; `flowstone tokens create` makes a token",
        ),
    )
}

fn read(file: &Path) -> Result<String, Report> {
    let text = fs::read_to_string(file).map_err(|error| {
        let message = format!("the token in {} cannot be read: {error}", file.display());
        Report::error(NO_TOKEN, message)
    })?;
    Ok(text.trim().to_owned())
}

fn is_loopback(base: &Url) -> bool {
    let host = base.host_str().unwrap_or_default();
    let plain = host.trim_start_matches('[').trim_end_matches(']');
    let address: Option<IpAddr> = plain.parse().ok();
    plain == "localhost" || address.is_some_and(|address| address.is_loopback())
}

/// Reports that a command cannot use a server.
fn local_only(what: &str) -> Report {
    Report::error(LOCAL_ONLY, format!("{what} cannot ask a server"))
        .hint("leave out --server and FLOWSTONE_SERVER to use the project in this folder")
}

/// Prints a failure and returns its exit code.
fn failed(report: &Report, as_json: bool) -> Exit {
    output::failure(report, as_json);
    Exit::Failed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_loopback_is_safe_without_encryption() {
        for (address, expected) in [
            ("http://127.0.0.1:7373", true),
            ("http://127.8.0.1", true),
            ("http://[::1]:7373", true),
            ("http://localhost", true),
            ("http://localhost.example.com", false),
            ("http://127.0.0.1.example.com", false),
            ("http://10.0.0.1", false),
            ("http://flows.example.com", false),
        ] {
            let url = Url::parse(address).expect("an address");
            assert_eq!(is_loopback(&url), expected, "{address}");
        }
    }
}
