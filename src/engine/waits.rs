//! Answering waits from outside: validation, single use, signals that come early.

use flowstone_lang::value::Value;

use crate::codec;
use crate::engine::Engine;
use crate::error::EngineError;
use crate::ids::RunId;
use crate::ports::{Completion, WaitFilter, WaitRow, WaitState, WaitsAnswer};
use crate::schema;

/// What answering came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answered {
    /// These runs can go on.
    Runs(Vec<RunId>),
    /// Nothing waits under this key yet; the answer is kept for it.
    Kept,
}

impl Engine {
    /// Returns open waits, oldest first.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn list_waits(&self, filter: WaitFilter) -> Result<Vec<WaitRow>, EngineError> {
        Ok(self.services.stores.waits.list(filter).await?)
    }

    /// Answers the waits that an id, the beginning of one, a token or a key names. With `keep`, an answer to a
    /// key that nothing waits under is kept for the wait that comes.
    ///
    /// # Errors
    /// When there is no such wait, it was answered before, or the payload breaks its `:validation`.
    pub async fn complete_wait(
        &self,
        target: &str,
        payload: &Value,
        keep: bool,
    ) -> Result<Answered, EngineError> {
        let filter = WaitFilter {
            target: Some(target.to_owned()),
            ..WaitFilter::default()
        };
        let mut payload = payload.clone();
        for wait in self.services.stores.waits.list(filter).await? {
            if wait.state == WaitState::Open {
                payload = validated(&wait, &payload)?;
            }
        }
        let completion = Completion {
            target: target.to_owned(),
            payload: codec::encode(&payload)?,
            dedup: None,
            keep,
            now_ms: self.services.clock.now_ms(),
        };
        match self.services.stores.waits.complete(completion).await? {
            WaitsAnswer::Completed(waits) => Ok(Answered::Runs(
                waits.into_iter().map(|wait| wait.run).collect(),
            )),
            WaitsAnswer::Kept => Ok(Answered::Kept),
            WaitsAnswer::AlreadyDecided(wait) => Err(EngineError::AlreadyDecided {
                target: wait.key.clone(),
            }),
            WaitsAnswer::Missing => Err(EngineError::NoSuchWait {
                target: target.to_owned(),
            }),
        }
    }
}

/// Checks an answer against the `:validation` of its wait, and returns it as the schema means it: what came as
/// JSON has strings where a flow looks for keywords.
fn validated(wait: &WaitRow, payload: &Value) -> Result<Value, EngineError> {
    let details = codec::decode(&wait.details)?;
    let Some(validation) = details.get("validation").filter(|value| !value.is_nil()) else {
        return Ok(payload.clone());
    };
    let schema = schema::parse(validation).map_err(|error| EngineError::BadAnswer {
        problems: vec![format!("its `:validation` is wrong: {error}")],
    })?;
    let payload = schema::decode(&schema, payload.clone());
    let problems = schema::validate(&schema, &payload);
    if problems.is_empty() {
        return Ok(payload);
    }
    Err(EngineError::BadAnswer {
        problems: problems.iter().map(ToString::to_string).collect(),
    })
}
