//! Configs as they are written in a flow: the parts that are known before evaluation. Steps check them with the
//! functions that read an evaluated config.

use flowstone_flow::diagnostic::Diagnostic;
pub(crate) use flowstone_flow::flow::is_known;
use flowstone_flow::step::StepError;
use flowstone_lang::value::Value;

/// Findings about a written config, each with its key; the empty key is the whole config.
pub(crate) type Remarks = Vec<(&'static str, Diagnostic)>;

/// Returns the entries of a config whose values are completely known.
pub(crate) fn known(config: &Value) -> Value {
    let entries = config.as_map().into_iter().flat_map(|map| map.iter());
    let known = entries.filter(|(key, value)| is_known(key) && is_known(value));
    Value::map(known.map(|(key, value)| (key.clone(), value.clone())))
}

/// Tells whether a config has one of these keys, whether or not its value is known. A computed key may be any of them.
pub(crate) fn has_any(config: &Value, keys: &[&str]) -> bool {
    let Some(map) = config.as_map() else {
        return true;
    };
    map.iter().any(|(key, value)| match key {
        Value::Keyword(key) => {
            !value.is_nil() && key.namespace().is_none() && keys.contains(&&*key.name())
        }
        _ => true,
    })
}

/// Adds the error of a function that reads a part of a config.
pub(crate) fn remark<T>(remarks: &mut Remarks, key: &'static str, read: Result<T, StepError>) {
    if let Err(error) = read {
        remarks.push((key, finding(error)));
    }
}

/// Converts a step's error to a finding.
pub(crate) fn finding(error: StepError) -> Diagnostic {
    let finding = Diagnostic::error(error.code, error.message);
    error.hints.into_iter().fold(finding, Diagnostic::hint)
}
