//! `:http` of `flowstone.edn`: settings of all requests of a project.
//!
//! A step's `:client-opts` and a connection refine them for their own requests, but cannot disable the guard of the
//! project.

use std::path::Path;
use std::time::Duration;

use flowstone_flow::step::{StepContext, StepError};
use flowstone_lang::value::Value;
use reqwest::Url;

use super::client::Limits;
use super::route::{Proxy, Route};
use crate::connections::Connection;
use crate::fields::Fields;
use crate::guard::{allowed_hosts, host_of, patterns};

const PLACE: &str = "flowstone.edn :http";

/// A key: its name, a description of its values, and the check of a value.
pub(crate) type Key = (&'static str, &'static str, fn(&Value) -> bool);

/// The keys of the setting.
pub(crate) const KEYS: &[Key] = &[
    (
        "allow-hosts",
        "a list of hosts such as \"api.internal\", \"*.internal\", \"10.0.0.0/8\"",
        are_hosts,
    ),
    ("ca-file", "the path of a file of certificates", is_text),
    (
        "connect-timeout",
        "a length of time such as \"10s\"",
        is_duration,
    ),
    ("deny-private", "true or false", is_bool),
    ("max-body-from-ref", "a number of bytes", is_count),
    ("max-redirects", "a number from 0 to 50", |it| {
        it.as_int().is_some_and(|it| (0..=50).contains(&it))
    }),
    ("max-response-bytes", "a number of bytes", is_count),
    (
        "no-proxy",
        "hosts with commas between, as in NO_PROXY",
        is_text,
    ),
    (
        "proxy",
        "an address such as \"http://proxy:3128\" without a password, or false",
        is_proxy,
    ),
    ("timeout", "a length of time such as \"1m\"", is_duration),
];

/// The keys of a step's `:client-opts`.
const OPTIONS: &[&str] = &[
    "allow-link-local",
    "connect-timeout",
    "max-redirects",
    "max-response-bytes",
    "proxy",
];

fn is_text(value: &Value) -> bool {
    value.as_str().is_some_and(|text| !text.is_empty())
}

fn is_bool(value: &Value) -> bool {
    matches!(value, Value::Bool(_))
}

fn is_count(value: &Value) -> bool {
    value.as_int().is_some_and(|count| count > 0)
}

fn is_duration(value: &Value) -> bool {
    flowstone_flow::duration::of_value(value).is_some_and(|it| it > Duration::ZERO)
}

fn are_hosts(value: &Value) -> bool {
    patterns(value).is_some()
}

fn is_proxy(value: &Value) -> bool {
    matches!(value, Value::Bool(false)) || value.as_str().is_some_and(|url| proxy_url(url).is_ok())
}

/// Checks the address of a proxy.
fn proxy_url(text: &str) -> Result<(), &'static str> {
    let url = Url::parse(text).map_err(|_| "is not an address")?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
        return Err("is not an address of HTTP");
    }
    match url.username().is_empty() && url.password().is_none() {
        true => Ok(()),
        false => Err("holds a password itself"),
    }
}

/// The route of requests and the limits of answers, before those of a step.
#[derive(Clone, Debug, Default)]
pub(crate) struct Usual {
    pub route: Route,
    pub limits: Limits,
    /// Maximum size of a body loaded from a reference.
    pub max_body: Option<u64>,
    /// Whether the settings or the step limit the size.
    pub has_max_bytes: bool,
    /// Whether the settings or the step limit the time.
    pub has_timeout: bool,
}

/// Returns the settings for requests of a connection.
pub(crate) fn usual(cx: &StepContext, connection: &Connection) -> Result<Usual, StepError> {
    let mut usual = usual_of(cx.settings(), cx.project_root(), connection)?;
    usual.route.guard.net = cx.gate().net();
    usual.route.exchanges = cx.exchanges();
    Ok(usual)
}

/// Returns the settings outside of a run, without any permission yet; relative paths start at `root`.
pub(crate) fn usual_of(
    settings: &Value,
    root: &Path,
    connection: &Connection,
) -> Result<Usual, StepError> {
    let mut usual = Usual::default();
    let guard = &mut usual.route.guard;
    let mut allow = connection.allow_hosts.clone();
    guard.allow_link_local = connection.allow_link_local;
    guard.asks_link_local = connection.asks_link_local;
    guard.only = connection.only_hosts();
    if let Some(settings) = settings.get("http") {
        let fields = Fields::nested(PLACE, settings)?;
        if let Some(hosts) = fields.get("allow-hosts") {
            allow.extend(allowed_hosts(PLACE, hosts)?);
        }
        guard.deny_private = fields.bool("deny-private")?.unwrap_or(false);
        if let Some(path) = fields.text("ca-file")? {
            usual.route.ca_file = Some(root.join(path));
        }
        usual.read(PLACE, fields)?;
        usual.max_body = bytes(fields, "max-body-from-ref")?;
        if let Some(timeout) = fields.duration("timeout")? {
            usual.limits.timeout = timeout;
            usual.has_timeout = true;
        }
        if let (Proxy::At { except, .. }, Some(hosts)) =
            (&mut usual.route.proxy, fields.text("no-proxy")?)
        {
            *except = hosts.into();
        }
    }
    usual.route.guard.allow = allow.into();
    Ok(usual)
}

impl Usual {
    /// Applies a step's `:client-opts`.
    pub(crate) fn add(&mut self, cx: &StepContext, options: &Value) -> Result<(), StepError> {
        const PLACE: &str = ":client-opts";
        let fields = Fields::nested(PLACE, options)?;
        fields.only(OPTIONS)?;
        if let Some(allow) = fields.bool("allow-link-local")? {
            // A flow can only narrow: `true` gives it the hosts that the project names.
            self.route.guard.allow_link_local &= allow;
            self.route.guard.asks_link_local = allow;
        }
        let own = self.route.proxy.clone();
        self.read(PLACE, fields)?;
        if self.route.proxy == own {
            return Ok(());
        }
        // Requests that the project sends through a proxy must use it.
        if matches!(own, Proxy::At { .. }) {
            let message = "the project sends requests through a proxy, which a flow cannot replace";
            return Err(StepError::new("E0961", "denied", message)
                .hint("leave out `:proxy` of `:client-opts`, or add the host to `:no-proxy` in flowstone.edn"));
        }
        match &mut self.route.proxy {
            Proxy::At {
                url, is_of_step, ..
            } => {
                *is_of_step = true;
                match Url::parse(url) {
                    Ok(url) => cx.gate().proxy(&host_of(&url)),
                    Err(_) => Ok(()),
                }
            }
            Proxy::None | Proxy::Environment => Ok(()),
        }
    }

    /// Reads the keys that settings and steps share.
    fn read(&mut self, place: &str, fields: Fields<'_>) -> Result<(), StepError> {
        if let Some(most) = bytes(fields, "max-response-bytes")? {
            self.limits.max_bytes = most;
            self.has_max_bytes = true;
        }
        if let Some(most) = fields.count("max-redirects", 0, 50)? {
            self.limits.max_redirects = most;
        }
        if let Some(timeout) = fields.duration("connect-timeout")? {
            self.route.connect_timeout = timeout;
        }
        match fields.get("proxy") {
            None => {}
            Some(Value::Bool(false)) => self.route.proxy = Proxy::None,
            Some(value) => {
                let url = value.as_str().unwrap_or_default();
                proxy_url(url).map_err(|why| {
                    StepError::config("E0745", format!("`{place} :proxy` {why}"))
                        .hint("write `\"http://proxy:3128\"`, or false for none")
                        .hint("a proxy that wants a password is named by HTTPS_PROXY and HTTP_PROXY in the environment")
                })?;
                self.route.proxy = Proxy::At {
                    url: url.into(),
                    except: "".into(),
                    is_of_step: false,
                };
            }
        }
        Ok(())
    }
}

fn bytes(fields: Fields<'_>, key: &str) -> Result<Option<u64>, StepError> {
    let count = fields.int(key, 1, i64::MAX)?;
    Ok(count.and_then(|it| u64::try_from(it).ok()))
}
