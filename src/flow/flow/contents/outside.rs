//! Interfaces and triggers that cannot be served: without `:auth`, with a wrong address, or with wrong durations.

use flowstone_lang::value::Value;
use flowstone_model::names::name_of;

use super::Contents;
use crate::auth;
use crate::diagnostic::Diagnostic;
use crate::forms::{entry_spans, item_span};
use crate::interfaces::{Interface, InterfaceKind, Unservable, is_event_trigger, read};
use crate::mcp_interfaces;
use crate::spec::shape;

const CODE: &str = "E1041";
/// Types of inputs that are secrets.
const SECRETS: &[&str] = &["password", "secret"];

pub(super) fn check(contents: &mut Contents<'_>, map: &Value) {
    let interfaces = map.get("interfaces").cloned().unwrap_or(Value::Nil);
    check_entries(contents, (map, &interfaces), "http", InterfaceKind::Http);
    check_entries(
        contents,
        (map, &interfaces),
        "webhook",
        InterfaceKind::Webhook,
    );
    check_entries(contents, (map, map), "triggers", InterfaceKind::Trigger);
    check_mcp(contents, &interfaces);
}

/// Checks the interfaces for clients of MCP. A missing name is reported elsewhere.
fn check_mcp(contents: &mut Contents<'_>, interfaces: &Value) {
    let Some(entries @ Value::Vector(items)) = interfaces.get("mcp") else {
        return;
    };
    for (idx, entry) in items.iter().enumerate() {
        let Err(wrong) = mcp_interfaces::read(entry) else {
            continue;
        };
        let is_unnamed = wrong.key == "tool-name" && entry.get("tool-name").is_none();
        if wrong.message.is_empty() || wrong.key == "kind" || is_unnamed {
            continue;
        }
        let at = entry_spans(contents.sources, entry, &format!(":{}", wrong.key)).value;
        let at = at.or(item_span(entries, idx));
        contents
            .findings
            .push(Diagnostic::error("E1080", wrong.message).at(at));
    }
}

fn check_entries(
    contents: &mut Contents<'_>,
    (flow, map): (&Value, &Value),
    key: &str,
    kind: InterfaceKind,
) {
    let Some(entries @ Value::Vector(items)) = map.get(key) else {
        return;
    };
    for (idx, entry) in items.iter().enumerate() {
        let config = match kind {
            InterfaceKind::Trigger if !is_event_trigger(entry) => continue,
            InterfaceKind::Trigger => entry.get("config").cloned().unwrap_or(Value::Nil),
            InterfaceKind::Http | InterfaceKind::Webhook => entry.clone(),
        };
        let wrong = match read(entry, &config, kind) {
            Err(wrong) => wrong,
            Ok(interface) => match secret_in_path(flow, &interface) {
                Some(wrong) => wrong,
                None => continue,
            },
        };
        // An interface that is turned off may be incomplete. An `:auth` of a wrong shape has a finding of its own.
        if wrong.message.is_empty() || (wrong.key == "auth" && is_misshapen(&config, kind)) {
            continue;
        }
        let whole = item_span(entries, idx);
        let at = match wrong.key {
            "" => whole,
            key => entry_spans(contents.sources, &config, &format!(":{key}"))
                .value
                .or(whole),
        };
        let finding = Diagnostic::error(CODE, wrong.message).at(at);
        contents.findings.push(match wrong.key {
            "" | "auth" => {
                finding.hint("for example `:auth {:type :hmac-sha256 :secret-ref :webhook-secret}`")
            }
            _ => finding,
        });
    }
}

/// Finds a parameter of a path that is a secret input: servers and proxies write paths to their logs.
fn secret_in_path(flow: &Value, interface: &Interface) -> Option<Unservable> {
    let pattern = interface.path.as_ref()?;
    let invocation = interface.invocation.as_deref()?;
    let inputs = flow.get("invocations")?.get(invocation)?.get("inputs")?;
    let is_secret = |input: &Value| {
        let type_ = input.get("type").and_then(name_of);
        type_.is_some_and(|type_| SECRETS.contains(&&*type_))
    };
    let secrets = inputs.as_vector()?.iter().filter(|input| is_secret(input));
    let mut names = secrets.filter_map(|input| name_of(input.get("name")?));
    let name = names.find(|name| pattern.parameters().any(|it| *it == **name))?;
    Some(Unservable {
        key: "path",
        message: format!(
            "`{{{name}}}` of the `:path` is a secret, and addresses are not kept secret"
        ),
    })
}

fn is_misshapen(config: &Value, kind: InterfaceKind) -> bool {
    let type_ = match kind {
        InterfaceKind::Http => auth::HTTP_CALLER,
        InterfaceKind::Webhook | InterfaceKind::Trigger => auth::CALLER,
    };
    let auth = config.get("auth");
    auth.is_some_and(|auth| !shape::misfits(type_, auth, true).is_empty())
}
