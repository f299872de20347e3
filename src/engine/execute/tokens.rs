//! The tokens that models use in the runs of an installation, and their limit.
//!
//! A run counts what its journal says and what it adds; the store keeps one number for each pass of a run, which is replaced. So
//! nothing is counted twice when a run is resumed.

use flowstone_lang::value::Value;

use super::Executor;
use super::call::StepCall;
use crate::error::EngineError;
use crate::ids::RunId;
use crate::step::{RunInstallation, StepError};

/// The steps that call models, and those whose nested steps do.
const MODEL: &str = "llm";
const AGENT: &str = "agent";

impl Executor<'_> {
    /// Returns the installation of the run, if its tokens are counted.
    fn counted(&self) -> Option<&RunInstallation> {
        let installation = self.scope.services.installation.as_deref();
        installation.filter(|installation| installation.max_tokens.is_some())
    }

    /// Counts a value that the journal has. The nested steps of an agent that is over are not replayed.
    pub(super) fn count_replayed(&self, call: &StepCall<'_>, value: &Value) {
        if self.counted().is_some() && [MODEL, AGENT].contains(&call.spec.kind) {
            self.count(value);
        }
    }

    fn count(&self, value: &Value) {
        let tokens = value.get("tokens-used").and_then(Value::as_int);
        let sum = self.tokens.get().saturating_add(tokens.unwrap_or(0).max(0));
        self.tokens.set(sum);
    }

    /// Counts the answer of a model, and records the sum.
    pub(super) async fn count_live(
        &self,
        call: &StepCall<'_>,
        value: &Value,
    ) -> Result<(), EngineError> {
        if call.spec.kind != MODEL {
            return Ok(());
        }
        let Some(installation) = self.counted() else {
            return Ok(());
        };
        self.count(value);
        let installations = &self.engine.stores().installations;
        let at = &installation.flow.at;
        let noted = installations.note_tokens(at, &self.pass_id(), self.tokens.get());
        Ok(noted.await?)
    }

    /// Refuses to call a model once the tokens of the installation are used up.
    pub(super) async fn check_tokens(&self, call: &StepCall<'_>) -> Result<(), StepError> {
        let Some(installation) = self.counted().filter(|_| call.spec.kind == MODEL) else {
            return Ok(());
        };
        let installations = &self.engine.stores().installations;
        let others = installations.tokens_used(&installation.flow.at, &self.pass_id());
        let used = others.await?.saturating_add(self.tokens.get());
        match installation.max_tokens {
            Some(most) if used >= most => {
                Err(
                    StepError::new("E0852", "resource-exhausted", "budget used up").hint(format!(
                        "`flowstone flows configure {} --max-tokens N` raises it",
                        installation.flow.at
                    )),
                )
            }
            _ => Ok(()),
        }
    }

    /// Returns the name of the pass of the run.
    fn pass_id(&self) -> RunId {
        match self.facts.pass {
            0 => self.scope.run.clone(),
            pass => RunId::from_text(format!("{}.{pass}", self.scope.run)),
        }
    }
}
