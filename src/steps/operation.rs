//! Steps with several operations: selects the operation, and checks the config against it.

use flowstone_flow::step::{Operation, StepError, StepSpec};

use crate::fields::Fields;

/// Returns the operation that a config selects, if the config fits it.
pub(crate) fn choose(
    spec: &'static StepSpec,
    fields: Fields<'_>,
) -> Result<&'static Operation, StepError> {
    let code = spec
        .operations
        .map_or(StepError::OPTION_FIT, |operations| operations.code);
    match spec.operation(fields.map, false) {
        Ok(Some(operation)) => Ok(operation),
        Ok(None) => Err(StepError::config(code, "the step has no operations")),
        Err(misuse) => {
            let error = StepError::config(code, misuse.message);
            Err(misuse.hints.into_iter().fold(error, StepError::hint))
        }
    }
}
