//! Warnings about parts of a definition that work but have a better form: manual triggers, and ids of a workspace.

use flowstone_lang::value::{Span, Value};
use flowstone_model::names::name_of;

use super::Contents;
use crate::diagnostic::Diagnostic;
use crate::forms::{entry_spans, item_span};

pub(super) fn check(contents: &mut Contents<'_>, map: &Value) {
    manual_triggers(contents, map);
    workspace_ids(contents, map);
}

fn manual_triggers(contents: &mut Contents<'_>, map: &Value) {
    let Some(triggers @ Value::Vector(items)) = map.get("triggers") else {
        return;
    };
    for (idx, trigger) in items.iter().enumerate() {
        if trigger.get("type").and_then(name_of).as_deref() != Some("manual") {
            continue;
        }
        let at = entry_spans(contents.sources, trigger, ":type").value;
        contents.findings.push(
            Diagnostic::warning("E0473", "a trigger of type `:manual` is the older way to start a run")
                .at(at.or(item_span(triggers, idx)))
                .hint(
                    "write `:invocations {:default {:inputs [...]}}` and `:interfaces {:manual [{:id :run :invocation \
                     :default}]}`",
                ),
        );
    }
}

/// Finds texts that name a workspace of the hosted product.
fn workspace_ids(contents: &mut Contents<'_>, map: &Value) {
    let mut open: Vec<(Value, Span)> = vec![(map.clone(), map.span())];
    while let Some((form, span)) = open.pop() {
        match &form {
            Value::Text(text) if names_workspace(text) => contents.findings.push(
                Diagnostic::warning(
                    "E0474",
                    "a text contains the id of one workspace: the flow works nowhere else",
                )
                .at(span)
                .hint("pass the id to the run as an input"),
            ),
            Value::List(_) | Value::Vector(_) => {
                let parts = crate::forms::items(&form).unwrap_or_default();
                let parts = parts.into_iter().enumerate();
                open.extend(parts.map(|(idx, part)| (part, item_span(&form, idx).or(span))));
            }
            Value::Map(entries) => open.extend(entries.iter().map(|(key, value)| {
                let at = entry_spans(contents.sources, &form, &key.to_string()).value;
                (value.clone(), at.or(span))
            })),
            _ => {}
        }
    }
}

/// Tells whether a text is the id of a workspace, or has one as a part of its path.
fn names_workspace(text: &str) -> bool {
    let is_id = |part: &str| {
        part.strip_prefix("ws-").is_some_and(|rest| {
            rest.len() >= 4
                && rest
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
                && rest.bytes().any(|byte| byte.is_ascii_digit())
        })
    };
    text.contains("ws-") && text.split('/').any(is_id)
}
