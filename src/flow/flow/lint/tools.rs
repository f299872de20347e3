//! Checks the tools that a step gives to its model, as far as they are written out, and reports each unknown name at
//! its place.

use flowstone_lang::value::{Span, Value};

use super::Lint;
use crate::diagnostic::Diagnostic;
use crate::forms::{entry_spans, item_span};
use crate::step::StepSpec;
use crate::tools;

/// The step types that give tools to models.
const KINDS: &[&str] = &["agent", "llm"];

impl Lint<'_> {
    /// Checks `:tools` and `:available-steps` of a config. `written` is the map that contains them.
    pub(super) fn tools(&mut self, spec: &StepSpec, config: &Value, written: &Value) {
        if !KINDS.contains(&spec.kind) {
            return;
        }
        let (_, wrong) = tools::read(self.flow, config, true);
        for wrong in wrong {
            let at = self.place(written, &wrong.path, wrong.is_key);
            let finding = Diagnostic::error("E0469", wrong.message).at(at);
            let finding = wrong.change.into_iter().fold(finding, Diagnostic::change);
            self.findings.push(match wrong.hint {
                Some(hint) => finding.hint(hint),
                None => finding,
            });
        }
        for (name, path) in tools::flows::written(config) {
            let at = self.place(written, &path, false);
            self.child(Some(&name), &Value::Nil, at);
        }
    }

    fn place(&self, written: &Value, path: &[String], is_key: bool) -> Span {
        let mut span = written.span();
        let mut at = Some(written.clone());
        for (depth, step) in path.iter().enumerate() {
            let Some(value) = at.take() else {
                return span;
            };
            if let (Value::Map(_), Some(name)) = (&value, step.strip_prefix(':')) {
                let spans = entry_spans(self.sources, &value, step);
                let is_last = depth + 1 == path.len();
                span = match is_last && is_key {
                    true => spans.key,
                    false => spans.value,
                };
                at = value.get(name).cloned();
            } else if let Ok(idx) = step.parse::<usize>() {
                span = item_span(&value, idx).or(span);
                at = crate::json::items(&value).and_then(|items| items.get(idx).cloned());
            }
        }
        span
    }
}
