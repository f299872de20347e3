//! Steps of several operations: which one is asked for, and whether the config fits it.

use flowstone_engine::diagnostic::nearest;
use flowstone_engine::step::{Operation, StepError, StepSpec};

use crate::fields::{Fields, listed};

/// Returns the operation that a config asks for, when the config fits it. Errors have the code given.
pub(crate) fn choose(
    spec: &'static StepSpec,
    fields: Fields<'_>,
    code: &'static str,
) -> Result<&'static Operation, StepError> {
    let Some(operations) = &spec.operations else {
        return Err(StepError::config(code, "the step has no operations"));
    };
    let (kind, op) = (spec.kind, operations.key);
    let asked = fields.name(op)?.unwrap_or_default();
    let Some(operation) = operations.find(&asked) else {
        let names: Vec<&str> = operations
            .all
            .iter()
            .map(|operation| operation.name)
            .collect();
        let error = StepError::config(code, format!("`:{kind}` has no operation `:{asked}`"));
        let error = match nearest(&asked, names.iter().copied()) {
            Some(near) => error.hint(format!("did you mean `:{near}`?")),
            None => error,
        };
        return Err(error.hint(format!("there are {}", listed(&names))));
    };
    let known = [operation.needs, operation.takes].concat();
    let name = operation.name;
    for field in spec.fields {
        if field.name != op && !known.contains(&field.name) && fields.has(field.name) {
            let error = StepError::config(
                code,
                format!("`:{}` means nothing to `:{op} :{name}`", field.name),
            );
            return Err(match known.is_empty() {
                true => error.hint("it takes nothing else"),
                false => error.hint(format!("it takes {}", listed(&known))),
            });
        }
    }
    let is_there = |key: &str| match spec.field(key) {
        Some(field) if field.nil_says => fields.given(key).is_some(),
        _ => fields.has(key),
    };
    match operation.needs.iter().find(|key| !is_there(key)) {
        None => Ok(operation),
        Some(missing) => {
            let doc = spec.field(missing).map_or("", |field| field.doc);
            let error = StepError::config(code, format!("`:{op} :{name}` needs `:{missing}`"));
            Err(error.hint(format!("`:{missing}`: {doc}")))
        }
    }
}
