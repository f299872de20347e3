//! A step's value before it is the step's result: checks of `:expect`, and `:persist`.

use flowstone_lang::value::Value;

use super::call::StepCall;
use super::requests::{Performed, Request};
use super::{Executor, Halt};
use crate::codec;
use crate::ports::{EntryKind, StoreError};
use crate::state::Event;
use crate::step::{Retry, StepError};

impl Executor<'_> {
    /// Checks a draft against `:expect`.
    pub(super) fn check(&self, request: &Request<'_, '_>, text: &str) -> Result<Performed, Halt> {
        let value = self.decode(text)?;
        Ok(match self.meets(request.call, &value) {
            Ok(()) => Performed::Event(Event::Checked),
            // The step's changes are done: another attempt would do them twice.
            Err(error) => Performed::failed(error.retry(Retry::Never)),
        })
    }

    /// Checks a value that is not persisted yet.
    pub(super) fn meets(&self, call: &StepCall<'_>, value: &Value) -> Result<(), StepError> {
        let expectation = call.config.get("expect");
        match expectation.zip(call.step.judged(value)) {
            Some((expectation, judged)) => {
                let cx = call.context(self, call.attempts.get());
                crate::expect::check_at_once(&cx, expectation, &judged)
            }
            None => Ok(()),
        }
    }

    /// Checks a value against the step's `:expect`. For a persisted value, the value itself was checked, not the
    /// reference to it.
    pub(super) fn fits(&self, call: &StepCall<'_>, value: &Value) -> Result<(), StepError> {
        match call.config.get("expect") {
            Some(expectation) if !call.has("persist") => {
                let Some(judged) = call.step.judged(value) else {
                    return Ok(());
                };
                let cx = call.context(self, call.attempts.get());
                crate::expect::check_at_once(&cx, expectation, &judged)
            }
            _ => Ok(()),
        }
    }

    /// Accepts a value, and stores it if the flow requests it.
    pub(super) async fn accept_draft(
        &self,
        request: &mut Request<'_, '_>,
        text: String,
    ) -> Result<Performed, Halt> {
        let call = request.call;
        request.since_ms = None;
        let Some((persist, config)) = (match self.persistence(call) {
            Ok(found) => found,
            Err(error) => return Ok(Performed::failed(error)),
        }) else {
            return Ok(Performed::Event(Event::Accepted(text)));
        };
        let value =
            codec::decode(&text).map_err(|error| StoreError::Internal(error.to_string()))?;
        let cx = call.context(self, call.attempts.get());
        let op = persist.persist(&cx, &config, value).await;
        let op = match op.and_then(|op| cx.check_change(&op).map(|()| op)) {
            Ok(op) => op,
            Err(error) => return Ok(Performed::failed(error)),
        };
        match self.perform_as(call, EntryKind::Result, op, None).await {
            Ok(text) => Ok(Performed::Journaled {
                event: Event::Accepted(text),
                since_ms: self.now_ms(),
            }),
            Err(error @ StoreError::Rejected { .. }) => {
                call.branch.set_sequence(None);
                Ok(Performed::failed(error.into()))
            }
            Err(error) => Err(error.into()),
        }
    }
}
