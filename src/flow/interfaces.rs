//! Entry points of a flow for callers from outside: `:interfaces` of kind `:http` and `:webhook`, and triggers for
//! events.
//!
//! Reads definitions that have passed their checks; the checks report malformed entries.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use flowstone_lang::value::{Span, Value};
use flowstone_model::names::name_of;

use crate::definition::Flow;
use crate::duration;
use crate::json::items;
use crate::proof::Proof;

/// How long a caller of an `:http` interface waits for the end of the run: the default, and the maximum.
const HTTP_TIMEOUT: (Duration, Duration) = (Duration::from_secs(30), Duration::from_secs(180));
/// As [`HTTP_TIMEOUT`], for webhooks.
const WEBHOOK_TIMEOUT: (Duration, Duration) = (Duration::from_secs(3), Duration::from_secs(30));
/// The default time for which deliveries are remembered.
const WINDOW: Duration = Duration::from_secs(24 * 60 * 60);
const WINDOW_MIN: Duration = Duration::from_secs(5 * 60);
const WINDOW_MAX: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// An entry point of a flow for callers from outside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interface {
    pub kind: InterfaceKind,
    pub id: String,
    pub invocation: Option<String>,
    /// `POST`, `GET` and so on.
    pub method: &'static str,
    /// The path below `/http`.
    pub path: Option<PathPattern>,
    /// The event that a delivery publishes.
    pub event: Option<String>,
    /// The path below `/{workspace}/events`.
    pub event_path: Option<String>,
    /// `None`: callers need an access token.
    pub proof: Option<Proof>,
    /// Maximum time that a caller waits for the end of the run.
    pub timeout: Duration,
    pub dedupe: Option<Dedupe>,
    /// How long deliveries are remembered.
    pub window: Duration,
    /// Whether the raw bytes of the body are stored.
    pub keep_raw: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InterfaceKind {
    Http,
    Webhook,
    /// A trigger for an event.
    Trigger,
}

/// How repeated deliveries are recognised, in addition to their signature.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Dedupe {
    /// The name of a header, in lower case.
    Header(String),
    /// The path to a value in the payload.
    Path(Vec<String>),
}

/// A path with parameters, such as `/orders/{order}`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathPattern {
    parts: Vec<PathPart>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum PathPart {
    Plain(String),
    Parameter(String),
}

impl PathPattern {
    /// Reads a path.
    ///
    /// # Errors
    /// A message that states what is wrong with the path.
    pub fn parse(text: &str) -> Result<PathPattern, String> {
        let Some(rest) = text.strip_prefix('/').filter(|rest| !rest.is_empty()) else {
            return Err("a `:path` must begin with `/` and must not be empty".to_owned());
        };
        let mut parts: Vec<PathPart> = Vec::new();
        for part in rest.split('/') {
            let parameter = part
                .strip_prefix('{')
                .and_then(|part| part.strip_suffix('}'));
            let read = match parameter {
                Some(name) if crate::definition::is_identifier(name) => {
                    PathPart::Parameter(name.to_owned())
                }
                Some(name) => return Err(format!("`{{{name}}}` of the `:path` is not a name")),
                None if is_plain(part) => PathPart::Plain(part.to_owned()),
                None => return Err(format!("`{part}` cannot be a part of a `:path`")),
            };
            if matches!(read, PathPart::Parameter(_)) && parts.contains(&read) {
                return Err(format!("`{part}` occurs twice in the `:path`"));
            }
            parts.push(read);
        }
        Ok(PathPattern { parts })
    }

    /// Returns the decoded parameters of a path that matches, in order.
    pub fn matches(&self, path: &[String]) -> Option<Vec<(String, String)>> {
        if self.parts.len() != path.len() {
            return None;
        }
        let mut found = Vec::new();
        for (part, given) in self.parts.iter().zip(path) {
            match part {
                PathPart::Plain(text) if text == given => {}
                PathPart::Plain(_) => return None,
                PathPart::Parameter(name) => found.push((name.clone(), given.clone())),
            }
        }
        Some(found)
    }

    /// Returns the names of its parameters, in order.
    pub fn parameters(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().filter_map(|part| match part {
            PathPart::Plain(_) => None,
            PathPart::Parameter(name) => Some(name.as_str()),
        })
    }

    /// Returns the path without the names of its parameters: patterns with the same result match the same paths.
    pub fn shape(&self) -> String {
        let parts = self.parts.iter().map(|part| match part {
            PathPart::Plain(text) => text.as_str(),
            PathPart::Parameter(_) => "{}",
        });
        parts.fold(String::new(), |text, part| text + "/" + part)
    }

    /// Returns the rank of a pattern: of two patterns that match a path, the one whose first differing part is plain
    /// text comes first.
    pub fn rank(&self) -> Vec<bool> {
        let parts = self.parts.iter();
        parts
            .map(|part| matches!(part, PathPart::Parameter(_)))
            .collect()
    }
}

impl fmt::Display for PathPattern {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.parts.iter().try_for_each(|part| match part {
            PathPart::Plain(text) => write!(out, "/{text}"),
            PathPart::Parameter(name) => write!(out, "/{{{name}}}"),
        })
    }
}

fn is_plain(part: &str) -> bool {
    !part.is_empty()
        && part != "."
        && part != ".."
        && part
            .chars()
            .all(|char| char.is_ascii_alphanumeric() || "-_.~".contains(char))
}

/// Tells whether a text can be a path below `/{workspace}/events`.
pub fn is_event_path(text: &str) -> bool {
    !text.is_empty() && text.split('/').all(is_plain)
}

/// Returns the entry points of a flow. Malformed ones are left out; the checks report them.
pub fn of(flow: &Flow) -> Vec<Interface> {
    let declared = declared(flow).into_iter();
    declared.map(|(interface, _)| interface).collect()
}

/// As [`of`], with the place of each entry point in the flow's text.
pub fn declared(flow: &Flow) -> Vec<(Interface, Span)> {
    let definition = &flow.definition;
    let mut found = Vec::new();
    let interfaces = definition.get("interfaces");
    for (category, kind) in [
        ("http", InterfaceKind::Http),
        ("webhook", InterfaceKind::Webhook),
    ] {
        let entries = interfaces.and_then(|it| it.get(category)).and_then(items);
        for entry in entries.unwrap_or_default() {
            let read = read(&entry, &entry, kind);
            found.extend(read.ok().map(|it| (it, entry.span())));
        }
    }
    let triggers = definition.get("triggers").and_then(items);
    for trigger in triggers.unwrap_or_default() {
        if is_event_trigger(&trigger) {
            let config = trigger.get("config").cloned().unwrap_or(Value::Nil);
            let read = read(&trigger, &config, InterfaceKind::Trigger);
            found.extend(read.ok().map(|it| (it, trigger.span())));
        }
    }
    found
}

/// Tells whether an entry of `:triggers` waits for an event.
pub fn is_event_trigger(trigger: &Value) -> bool {
    let kind = trigger.get("type").and_then(name_of);
    kind.is_some_and(|kind| matches!(&*kind, "event" | "webhook"))
}

/// The reason why an interface cannot be served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unservable {
    /// The key that is wrong; empty for the whole entry.
    pub key: &'static str,
    pub message: String,
}

/// Reads an interface, or a trigger whose settings are in `config`.
///
/// # Errors
/// The reason why it cannot be served. The error has no message if the interface is turned off.
pub fn read(entry: &Value, config: &Value, kind: InterfaceKind) -> Result<Interface, Unservable> {
    let wrong = |key: &'static str, message: String| Unservable { key, message };
    if entry.get("enabled") == Some(&Value::Bool(false)) {
        return Err(wrong("enabled", String::new()));
    }
    let proof = proof(config, kind)?;
    let event = config.get("event-name").and_then(name_of);
    let event = event.map(|event| event.to_string());
    let id = entry.get("id").and_then(name_of);
    let id = match (id, &event) {
        (Some(id), _) => id.to_string(),
        (None, Some(event)) => event.clone(),
        (None, None) => return Err(wrong("", "this needs an `:event-name`".to_owned())),
    };
    let given_path = config.get("path").and_then(Value::as_str);
    let mut path = None;
    let mut event_path = None;
    match (kind, given_path) {
        (InterfaceKind::Http, Some(text)) => {
            path = Some(PathPattern::parse(text).map_err(|message| wrong("path", message))?);
        }
        (InterfaceKind::Http, None) => {}
        (InterfaceKind::Webhook | InterfaceKind::Trigger, given) => {
            event_path = match given {
                Some(text) => Some(text.trim_matches('/').to_owned()),
                None => event.clone(),
            };
            if let Some(text) = event_path.as_deref().filter(|text| !is_event_path(text)) {
                let key = if given.is_some() {
                    "path"
                } else {
                    "event-name"
                };
                return Err(wrong(
                    key,
                    format!("`{text}` cannot be the path of an event"),
                ));
            }
        }
    }
    let (usual, most) = match kind {
        InterfaceKind::Http => HTTP_TIMEOUT,
        InterfaceKind::Webhook | InterfaceKind::Trigger => WEBHOOK_TIMEOUT,
    };
    let timeout = span(config, "timeout", usual, (Duration::ZERO, most))?;
    Ok(Interface {
        kind,
        id,
        invocation: config
            .get("invocation")
            .and_then(name_of)
            .map(|name| name.to_string()),
        method: method(config, kind),
        path,
        event,
        event_path,
        proof,
        timeout,
        dedupe: dedupe(config)?,
        window: span(config, "window", WINDOW, (WINDOW_MIN, WINDOW_MAX))?,
        keep_raw: config.get("keep-raw").is_some_and(Value::is_truthy),
    })
}

fn proof(config: &Value, kind: InterfaceKind) -> Result<Option<Proof>, Unservable> {
    let wrong = |message: String| Unservable {
        key: "auth",
        message,
    };
    let auth = config.get("auth").filter(|auth| !auth.is_nil());
    let proof = match auth {
        Some(auth) => Some(Proof::read(auth).map_err(wrong)?),
        None => None,
    };
    match (kind, &proof) {
        (InterfaceKind::Http, _) => Ok(proof),
        (InterfaceKind::Webhook | InterfaceKind::Trigger, None) => Err(Unservable {
            key: "",
            message: "this needs an `:auth`: anyone can send to a webhook".to_owned(),
        }),
        (InterfaceKind::Webhook | InterfaceKind::Trigger, Some(Proof::None)) => Err(wrong(
            "a webhook cannot have an `:auth` of type `:none`".to_owned(),
        )),
        (InterfaceKind::Webhook | InterfaceKind::Trigger, Some(_)) => Ok(proof),
    }
}

fn method(config: &Value, kind: InterfaceKind) -> &'static str {
    let given = config.get("method").and_then(name_of);
    match (kind, given.as_deref()) {
        (InterfaceKind::Http, Some("get" | "GET")) => "GET",
        (InterfaceKind::Http, Some("put" | "PUT")) => "PUT",
        (InterfaceKind::Http, Some("patch" | "PATCH")) => "PATCH",
        (InterfaceKind::Http, Some("delete" | "DELETE")) => "DELETE",
        _ => "POST",
    }
}

fn span(
    config: &Value,
    key: &'static str,
    usual: Duration,
    (least, most): (Duration, Duration),
) -> Result<Duration, Unservable> {
    let Some(given) = config.get(key).filter(|given| !given.is_nil()) else {
        return Ok(usual);
    };
    match duration::of_value(given) {
        Some(given) if (least..=most).contains(&given) => Ok(given),
        _ => Err(Unservable {
            key,
            message: format!(
                "`:{key}` must be a duration from {} to {} seconds",
                least.as_secs(),
                most.as_secs()
            ),
        }),
    }
}

fn dedupe(config: &Value) -> Result<Option<Dedupe>, Unservable> {
    let Some(given) = config.get("dedupe").filter(|given| !given.is_nil()) else {
        return Ok(None);
    };
    if let Some(name) = given.get("header").and_then(Value::as_str) {
        return Ok(Some(Dedupe::Header(name.to_ascii_lowercase())));
    }
    let path = given.get("path").and_then(items).unwrap_or_default();
    let path: Option<Vec<String>> = path
        .iter()
        .map(|part| name_of(part).map(|name| name.to_string()))
        .collect();
    match path.filter(|path| !path.is_empty()) {
        Some(path) => Ok(Some(Dedupe::Path(path))),
        None => Err(Unservable {
            key: "dedupe",
            message: "`:dedupe` must be `{:header \"NAME\"}` or `{:path [:id]}`".to_owned(),
        }),
    }
}

/// An address that several interfaces share, so that calls cannot be told apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Clash {
    /// The address as people write it.
    pub address: String,
    /// The indices of the interfaces in the list.
    pub members: Vec<usize>,
}

/// Finds interfaces that share an address. Several may receive the same event, if they have the same `:auth`.
pub fn clashes(all: &[&Interface]) -> Vec<Clash> {
    let mut groups: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (idx, interface) in all.iter().enumerate() {
        if let Some(path) = &interface.path {
            let address = format!("{} /http{}", interface.method, path.shape());
            groups.entry(address).or_default().push(idx);
        }
        if let Some(path) = &interface.event_path {
            let address = format!("/events/{path}");
            groups.entry(address).or_default().push(idx);
        }
    }
    let is_clash = |members: &[usize]| {
        let mut members = members.iter().filter_map(|idx| all.get(*idx));
        let Some(first) = members.next() else {
            return false;
        };
        members.any(|other| first.path.is_some() || other.proof != first.proof)
    };
    let clashes = groups.into_iter().filter(|(_, members)| is_clash(members));
    clashes
        .map(|(address, members)| Clash { address, members })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(path: &str) -> Vec<String> {
        path.split('/').map(str::to_owned).collect()
    }

    #[test]
    fn paths_have_parameters() {
        let orders = PathPattern::parse("/orders/{order}/lines/{line}").expect("a path");
        let found = orders.matches(&parts("orders/o 1/lines/2"));
        let expected = [("order", "o 1"), ("line", "2")];
        let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(found, Some(expected.to_vec()));
        assert_eq!(orders.matches(&parts("orders/1/lines")), None);
        assert_eq!(orders.matches(&parts("orders/1/rows/2")), None);
        let same = PathPattern::parse("/orders/{id}/lines/{no}").expect("a path");
        assert_eq!(orders.shape(), same.shape());
        let newest = PathPattern::parse("/orders/{id}/lines/new").expect("a path");
        assert!(newest.rank() < same.rank());
    }

    #[test]
    fn paths_that_cannot_be_addresses_are_refused() {
        for text in [
            "", "/", "orders", "/a//b", "/a/", "/../a", "/a b", "/{a}/{a}", "/{}", "/{1}", "/a?b",
            "/%2F",
        ] {
            assert!(PathPattern::parse(text).is_err(), "{text}");
        }
    }
}
