//! Notifications that a run waits: sent after the wait is on disk, at least once, and not again once journaled.
//!
//! A notification that fails is recorded on its step and retried while the wait is open; it never closes the wait. The
//! wait's token is passed to the step that sends, and removed from everything that is written.

use std::time::Duration;

use flowstone_lang::value::Value;

use super::call::StepCall;
use super::{Executor, Halt};
use crate::codec;
use crate::duration;
use crate::error::EngineError;
use crate::observer::RunEvent;
use crate::ports::{EntryKind, Secret, WaitState};
use crate::retry::Policy;
use crate::state::Notice;
use crate::step::{Effect, StepContext, StepError, StepRequest, WaitNotice};

/// Maximum time of one attempt.
const PATIENCE: Duration = Duration::from_secs(30);

impl Executor<'_> {
    /// Sends the notification of a step's wait, if there is one and it is due. Returns when it is to be tried again.
    pub(super) async fn notify(
        &self,
        call: &StepCall<'_>,
        notice: &mut Notice,
    ) -> Result<Option<i64>, Halt> {
        let config = call.config.get("notify").filter(|it| !it.is_nil());
        // A notification is an effect outside, which dry tests leave out.
        let is_left_out = self.scope.services.scratch.is_some();
        if config.is_none() || notice.is_over || is_left_out {
            return Ok(None);
        }
        let now_ms = self.now_ms();
        if let Some(due_ms) = notice.due_ms.filter(|due| *due > now_ms) {
            return Ok(Some(due_ms));
        }
        let row = self.find_wait(&call.at).await?;
        let is_late = row.deadline_ms.is_some_and(|deadline| deadline <= now_ms);
        if row.state != WaitState::Open || is_late {
            return Ok(None);
        }
        let waits = &self.engine.services.stores.waits;
        let token = waits.token(&row.id).await?.unwrap_or_default();
        notice.attempts += 1;
        let cx = self.notice_context(call, notice.attempts, now_ms);
        cx.hide(&Secret::new(token.as_str()));
        let facts = WaitNotice {
            wait: row.id,
            key: row.key,
            token,
            deadline_ms: row.deadline_ms,
        };
        let sent = tokio::select! {
            biased;
            sent = call.step.notify(&cx, &call.config, &facts) => sent,
            () = tokio::time::sleep(PATIENCE) => Err(too_slow()),
            halt = self.halted() => return Err(halt),
        };
        self.note_notice(call, notice, sent, row.deadline_ms).await
    }

    fn notice_context(&self, call: &StepCall<'_>, attempt: u32, now_ms: i64) -> StepContext {
        StepContext::new(
            self.scope.clone(),
            StepRequest {
                attempt,
                idempotency_key: format!("{}/notify", call.idempotency_key),
                deadline_ms: Some(now_ms.saturating_add(duration::millis(PATIENCE))),
                ..call.context(self, attempt).request().clone()
            },
        )
    }

    /// Journals the outcome of an attempt.
    async fn note_notice(
        &self,
        call: &StepCall<'_>,
        notice: &mut Notice,
        sent: Result<Value, StepError>,
        deadline_ms: Option<i64>,
    ) -> Result<Option<i64>, Halt> {
        let mut facts = vec![
            ("kind", Value::keyword("notify")),
            ("attempt", Value::Int(i64::from(notice.attempts))),
        ];
        match &sent {
            Ok(sent) => facts.push(("sent", sent.clone())),
            Err(error) => {
                notice.due_ms = self.notice_again(call, notice.attempts, error);
                let due = notice.due_ms.map(Value::Int);
                facts.extend(due.map(|due| ("due", due)));
                facts.push(("code", Value::from(error.code)));
                facts.push(("message", Value::from(error.message.as_str())));
                self.emit(&RunEvent::Log {
                    level: "warn".to_owned(),
                    message: self.scope.redact(format!(
                        "the notification of `{}` failed: {} {}",
                        call.title, error.code, error.message
                    )),
                    data: Value::Nil,
                });
            }
        }
        notice.is_over = sent.is_ok() || notice.due_ms.is_none();
        let facts = facts
            .into_iter()
            .map(|(key, value)| (Value::keyword(key), value));
        let text = codec::encode(&Value::map(facts)).map_err(EngineError::from)?;
        let entry = call.entry(self, EntryKind::Timer, self.scope.redact_strings(text));
        let due_ms = [notice.due_ms.filter(|_| !notice.is_over), deadline_ms];
        let due_ms = due_ms.into_iter().flatten().min();
        self.note_waiting(call, due_ms, entry).await?;
        Ok(notice.due_ms.filter(|_| !notice.is_over))
    }

    /// Returns when a failed notification is tried again: by the step's `:retry`, or else a few times.
    fn notice_again(&self, call: &StepCall<'_>, attempts: u32, error: &StepError) -> Option<i64> {
        // The notification has an idempotency key, so repeating it is as harmless as a read.
        let policy = Policy::of(&call.config, Effect::Read).ok()?;
        let delay = policy.delay(attempts, error, self.engine.services.random.next())?;
        Some(self.now_ms().saturating_add(duration::millis(delay)))
    }
}

fn too_slow() -> StepError {
    StepError::new(
        "E0520",
        "timeout",
        format!(
            "the notification did not finish within {} s",
            PATIENCE.as_secs()
        ),
    )
    .retry(crate::step::Retry::Backoff)
}
