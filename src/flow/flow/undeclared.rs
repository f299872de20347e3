//! Inputs that a flow does not declare. A run gets them all the same, but a misspelt name would otherwise go unnoticed.

use flowstone_lang::diagnostic::{Diagnostic, Severity};
use flowstone_lang::value::Value;
use flowstone_model::diagnostic::nearest;
use flowstone_model::names::name_of;

use crate::definition::{ACTIVATION, Flow};

/// The code of the page in `docs/errors`.
const UNDECLARED: &str = "E0429";

/// Returns a warning for each input that the invocation does not declare. `invocation`: the default one if it is `None`.
pub fn undeclared_inputs(flow: &Flow, invocation: Option<&str>, input: &Value) -> Vec<Diagnostic> {
    let contract = match invocation {
        Some(id) => flow.invocations.iter().find(|it| &*it.id == id),
        None => flow.default_invocation(),
    };
    let (Some(contract), Some(map)) = (contract, input.as_map()) else {
        return Vec::new();
    };
    let declared = || contract.inputs.iter().map(|input| &*input.name);
    let mut warnings = Vec::new();
    for (key, _) in map.iter() {
        let name = name_of(key).unwrap_or_default();
        // Keys with a namespace are for the flow's own use.
        if &*name == ACTIVATION || name.contains('/') || declared().any(|known| *known == *name) {
            continue;
        }
        let mut warning =
            Diagnostic::error(UNDECLARED, format!("the flow declares no input `{name}`"));
        warning.severity = Severity::Warning;
        warnings.push(match nearest(&name, declared()) {
            Some(near) => warning.hint(format!("did you mean `{near}`?")),
            None => warning.hint("`(flow/input)` contains it under its key anyway"),
        });
    }
    warnings
}
