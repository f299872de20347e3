//! What is wrong with the arguments of a call of `flow/step`, for `check` and for the call itself.

use crate::definition::Flow;
use crate::diagnostic::Diagnostic;

/// Returns the finding for a call with too few or too many arguments.
pub fn arity(count: usize) -> Diagnostic {
    Diagnostic::error(
        "E0430",
        format!("`flow/step` takes a type, an id and a config, not {count} arguments"),
    )
    .hint("write it as `(flow/step :type :step-id {...})`")
}

/// Returns the finding for a call without an input.
pub fn no_input(name: &str) -> Diagnostic {
    Diagnostic::error("E0432", format!("the packaged step `:{name}` has no input"))
        .hint(format!("write it as `(flow/step :{name} {{...}})`"))
}

/// Returns the finding for a call with more than an id and an input.
pub fn extra(name: &str) -> Diagnostic {
    Diagnostic::error(
        "E0426",
        format!("the call of the packaged step `:{name}` has too many arguments"),
    )
    .hint(format!(
        "write it as `(flow/step :{name} {{...}})` or `(flow/step :{name} :step-id {{...}})`"
    ))
}

/// Returns the finding for a qualified type that is not in `:steps`.
pub fn missing(name: &str, flow: &Flow) -> Diagnostic {
    let ids = flow.packaged.iter().map(|step| &*step.id);
    let finding = Diagnostic::error(
        "E0418",
        format!("there is no packaged step `:{name}` in `:steps`"),
    );
    let suggested = finding.suggest(name, ids);
    match suggested.hints.is_empty() {
        true => suggested.hint(format!(
            "add it: `:steps [{{:id :{name} :type :http ...}}]`; built-in types have no namespace"
        )),
        false => suggested,
    }
}
