//! Code in the configs of steps: quoted forms and texts that are compiled when the step is performed. They are
//! collected here, to be compiled with the rest of the flow.

use flowstone_lang::value::{Span, Value};

use super::{Code, Lint};
use crate::diagnostic::Diagnostic;
use crate::forms::{entry_spans, quoted};
use crate::step::{COMMON, Field, FieldType, StepSpec};

impl Lint<'_> {
    /// Collects the code under all keys that take a function.
    pub(super) fn code_of(&mut self, spec: &'static StepSpec, config: &Value) {
        self.code_in(spec.kind, spec.fields.iter().chain(COMMON), config);
    }

    fn code_in(
        &mut self,
        kind: &str,
        fields: impl Iterator<Item = &'static Field>,
        config: &Value,
    ) {
        for field in fields {
            let Some(given) = config.get(field.name) else {
                continue;
            };
            let span = entry_spans(self.sources, config, &format!(":{}", field.name)).value;
            self.code_under(kind, field, given, span);
        }
    }

    fn code_under(&mut self, kind: &str, field: &'static Field, given: &Value, span: Span) {
        match (field.type_, given) {
            (FieldType::Keys(fields), Value::Map(_)) => {
                self.code_in(kind, fields.iter(), given);
            }
            (FieldType::Either(types), Value::Map(_)) => {
                for type_ in types {
                    if let FieldType::Keys(fields) = type_ {
                        self.code_in(kind, fields.iter(), given);
                    }
                }
            }
            (type_, Value::List(_)) if takes_function(type_) => {
                if let Some(code) = quoted(given) {
                    self.add_code(kind, field.name, code, span);
                }
            }
            (type_, Value::Text(_)) if takes_function(type_) => {
                self.add_code(kind, field.name, given.clone(), span);
            }
            (type_, Value::Keyword(id)) if takes_function(type_) => {
                let id = id.to_string();
                let id = id.trim_start_matches(':');
                if self.flow.function(id).is_none() {
                    let names = self.flow.functions.iter().map(|function| &*function.id);
                    let message = format!("there is no function `:{id}` in `:functions`");
                    let finding = Diagnostic::error("E0705", message).at(span);
                    self.findings.push(finding.suggest(id, names));
                }
            }
            _ => {}
        }
    }

    /// Adds code. `key` is the option that contains it.
    pub(super) fn add_code(&mut self, kind: &str, key: &str, code: Value, span: Span) {
        self.code.push(Code {
            name: format!("<:{key} of :{kind}>"),
            code,
            span,
        });
    }
}

fn takes_function(type_: FieldType) -> bool {
    match type_ {
        FieldType::Function => true,
        FieldType::Either(types) => types.iter().any(|one| matches!(one, FieldType::Function)),
        _ => false,
    }
}
