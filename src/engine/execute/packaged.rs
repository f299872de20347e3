//! Calls of packaged steps: the input becomes the wrapped step's config, and its value becomes that of the contract.
//!
//! The journal has the wrapped step's request and value. The results of `:prepare`, `:defaults` and `:project-result`
//! are computed again on replay, so that the digest of the config shows whether `:prepare` or `:defaults` has changed.

use std::rc::Rc;

use flowstone_flow::call_problem;
use flowstone_lang::value::{Result as Evaluated, Value};

use super::Executor;
use super::branch::Branch;
use super::call::{StepCall, exception_at};
use crate::diagnostic::Diagnostic;
use crate::flow::PackagedStep;
use crate::ids::StepPath;
use crate::packaged;
use crate::state::OnError;
use crate::step::{Step, StepError, StepSpec};

impl Executor<'_> {
    /// Finds a packaged step by its keyword.
    pub(super) fn packaged(&self, keyword: &str) -> Result<Rc<PackagedStep>, Diagnostic> {
        let name = keyword.trim_start_matches(':');
        let flow = &self.scope.flow;
        let found = flow.packaged_step(name).cloned();
        found.ok_or_else(|| call_problem::missing(name, flow))
    }

    /// Checks a request for a packaged step and builds its call.
    pub(super) fn packaged_call<'s>(
        &self,
        branch: &Rc<Branch>,
        step: (&'s dyn Step, &'static StepSpec),
        path: &StepPath,
        (packaged, given): (&Rc<PackagedStep>, &Value),
    ) -> Result<StepCall<'s>, StepError> {
        let named = |error: StepError| error.with("packaged", Value::keyword(&packaged.id));
        let config = packaged::config(&self.scope, (packaged, step.1), given);
        let config = config.map_err(named)?;
        let call = self
            .call(branch, step, path.clone(), &config)
            .map_err(|error| {
                let message = format!("`:{}`: {}", packaged.id, error.message);
                named(StepError { message, ..error })
            })?;
        Ok(StepCall {
            // The journal names the step that the flow called.
            request: format!(":{} {}", packaged.id, call.request),
            packaged: Some(packaged.clone()),
            ..call
        })
    }

    /// Computes a packaged step's value from that of the wrapped step.
    pub(super) fn concluded(
        &self,
        call: &StepCall<'_>,
        answer: Evaluated<Value>,
    ) -> Evaluated<Value> {
        let Some(packaged) = call.packaged.as_ref().filter(|_| !call.is_given.get()) else {
            return answer;
        };
        let value = answer?;
        match packaged::result(&self.scope, packaged, value) {
            Ok(value) => Ok(value),
            Err(_) if call.on_error == OnError::Skip => Ok(Value::Nil),
            Err(error) => {
                let error = error.with("packaged", Value::keyword(&packaged.id));
                let exception = exception_at(&error, &call.path, call.attempts.get());
                Err(exception.into())
            }
        }
    }

    /// Checks a value that a person gives in place of the value of a packaged step.
    pub(super) fn fits_output(&self, call: &StepCall<'_>, value: &Value) -> Result<(), StepError> {
        match &call.packaged {
            Some(packaged) => packaged::check_output(&self.scope, packaged, value),
            None => Ok(()),
        }
    }
}
