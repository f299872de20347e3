//! Checks the operation that a config names, if it is written out: whether it exists, and which keys it needs and
//! takes.

use flowstone_lang::value::{Span, Value};

use super::Lint;
use crate::diagnostic::Diagnostic;
use crate::forms::entry_spans;
use crate::step::StepSpec;

impl Lint<'_> {
    /// Checks a config against its operation, as the step itself does when it is performed.
    pub(super) fn operation(&mut self, spec: &'static StepSpec, config: &Value, span: Span) {
        let Err(misuse) = spec.operation(config, true) else {
            return;
        };
        let operations = spec.operations.as_ref();
        let code = operations.map_or("E0712", |operations| operations.code);
        let at = misuse.key.map_or(span, |key| {
            let written = spec.written(config, key);
            let spans = entry_spans(self.sources, config, &format!(":{written}"));
            match operations.is_some_and(|operations| operations.key == key) {
                true => spans.value,
                false => spans.key,
            }
        });
        let finding = Diagnostic::error(code, misuse.message).at(at);
        let finding = misuse.hints.into_iter().fold(finding, Diagnostic::hint);
        let finding = misuse.change.into_iter().fold(finding, Diagnostic::change);
        self.findings.push(finding);
    }
}
