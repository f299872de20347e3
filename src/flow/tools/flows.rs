//! `:flows`: flows, graph specs and behaviour trees of the project as tools. Each call is a child run.

use std::rc::Rc;

use flowstone_lang::value::Value;
use flowstone_model::names::name_of;

use super::{Reader, push};
use crate::text::brief;

impl Reader<'_> {
    /// Reads names and paths of flows: keywords or strings, as `flow/call-flow` takes them.
    pub(super) fn flows(&mut self, given: &Value) {
        let Some(items) = self.items(given, "names of flows") else {
            return;
        };
        for (idx, item) in items.iter().enumerate() {
            if self.is_unknown_yet(item) {
                continue;
            }
            match name_of(item).filter(|name| !name.is_empty()) {
                Some(name) => push(&mut self.envelope.flows, &name),
                None => self.under(idx, |reader| {
                    reader.say(
                        format!(
                            "expected the name or the path of a flow, got `{}`",
                            brief(item)
                        ),
                        "such as `:tools {:flows [:triage \"agents/support.json\"]}`".to_owned(),
                    );
                }),
            }
        }
    }
}

/// Returns the flows that are written out, each with its place in the config of the step.
pub fn written(config: &Value) -> Vec<(Value, Vec<String>)> {
    let flows = config.get("tools").and_then(|tools| tools.get("flows"));
    let items = flows.and_then(crate::json::items).unwrap_or_default();
    let place = |idx: usize| vec![":tools".to_owned(), ":flows".to_owned(), idx.to_string()];
    let named = items.into_iter().enumerate();
    named
        .filter(|(_, item)| matches!(item, Value::Keyword(_) | Value::Text(_)))
        .map(|(idx, item)| (item, place(idx)))
        .collect()
}

/// Returns the name that models call a flow by: characters that providers refuse become `_`.
pub fn model_name(name: &str) -> Rc<str> {
    let plain = |char: char| match char.is_ascii_alphanumeric() || char == '_' {
        true => char,
        false => '_',
    };
    Rc::from(name.chars().map(plain).take(64).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_for_models_have_plain_characters() {
        assert_eq!(&*model_name("release-checklist"), "release_checklist");
        assert_eq!(&*model_name("Fix a bug!"), "Fix_a_bug_");
        assert_eq!(model_name(&"a".repeat(80)).len(), 64);
    }
}
