//! `:kit`: tools of the build kit, which work on the flow of the run: `:tools {:kit [:test_run]}`.
//!
//! Only what `check` needs to read a flow is here. What a tool is and does, its schema and whether somebody has to agree to a
//! call, is in the catalogue of the kit, which this list follows.

use flowstone_lang::value::Value;

use super::{Reader, id_of, near, push};
use crate::json::items;

/// The names of all tools in the order of the catalogue, each with whether `:kit true` gives it.
pub const KIT_TOOLS: &[(&str, bool)] = &[
    ("discover_tools", true),
    ("request_connection", true),
    ("commit_revision", true),
    ("test_run", true),
    ("annotate_trace", true),
    ("create_schedule", true),
    ("list_schedules", true),
    ("remove_schedule", true),
    ("discover_triggers", true),
    ("create_subscription", true),
    ("list_deliveries", true),
    ("test_subscription", true),
    ("remove_subscription", true),
    ("query_spans", true),
    ("pause_schedule", false),
    ("resume_schedule", false),
    ("pause_subscription", false),
    ("resume_subscription", false),
    ("query_workflows", false),
    ("list_connections", false),
    ("list_subscriptions", false),
    ("read_config", false),
];

/// Returns the names of all tools.
pub fn names() -> impl Iterator<Item = &'static str> + Clone {
    KIT_TOOLS.iter().map(|(name, _)| *name)
}

/// Returns the names of the tools that `:kit true` gives.
pub fn default_names() -> impl Iterator<Item = &'static str> {
    let default = KIT_TOOLS.iter().filter(|(_, is_default)| *is_default);
    default.map(|(name, _)| *name)
}

/// Returns the name of a tool as the kit spells it, if there is such a tool. Flows may write it with hyphens.
pub fn find(given: &str) -> Option<&'static str> {
    let spelled = given.replace('-', "_");
    names().find(|name| *name == spelled)
}

impl Reader<'_> {
    /// Reads `:kit`: `true` for the tools that the build kit offers by default, or names.
    pub(super) fn kit(&mut self, given: &Value) {
        if let Value::Bool(is_on) = given {
            if *is_on {
                default_names().for_each(|name| push(&mut self.envelope.kit, name));
            }
            return;
        }
        let Some(items) = items(given) else {
            self.say(
                format!("`:kit` is `true` or a vector of names, not {}", given.kind()),
                "`:kit true` gives the tools that the build kit offers by default, `:kit [:test_run]` single ones"
                    .to_owned(),
            );
            return;
        };
        for (idx, item) in items.iter().enumerate() {
            if self.is_unknown_yet(item) {
                continue;
            }
            let name = id_of(item);
            self.under(idx, |reader| match find(&name) {
                Some(name) => push(&mut reader.envelope.kit, name),
                None => {
                    let spelled = name.replace('-', "_");
                    let hint = near(&spelled, names());
                    let hint = hint.unwrap_or_else(|| {
                        let names: Vec<&str> = names().collect();
                        format!("the tools of the build kit are {}", names.join(", "))
                    });
                    reader.say(format!("the build kit has no tool `{name}`"), hint);
                    reader.respell(&spelled, names());
                }
            });
        }
    }
}
