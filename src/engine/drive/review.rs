//! A step's value before it is the step's result: `:expect` of what was not seen before, `:review`, `:persist`.

use flowstone_lang::value::Value;

use super::attempt::drafts;
use super::call::{StepCall, preview};
use super::confirm::{gate, refused};
use super::question::{Question, not_understood, reply_of};
use super::{Answer, Driver};
use crate::codec;
use crate::error::EngineError;
use crate::history::Recorded;
use crate::observer::RunEvent;
use crate::ports::{EntryKind, StoreError};
use crate::step::{Retry, StepError};

impl Driver<'_> {
    /// Goes on with a value that is journaled as a draft.
    pub(super) async fn drafted(&self, call: &StepCall<'_>, mut recorded: Recorded) -> Answer {
        let Some(text) = recorded.draft.clone() else {
            return Err(EngineError::Internal("a draft is missing".to_owned()).into());
        };
        if let Some(verdict) = recorded.verdict.take() {
            return self.judged(call, recorded, verdict).await;
        }
        let value = self.decode(&text)?;
        // What it changed is changed: to do it again would do it twice.
        if let Err(error) = self.meets(call, &value) {
            let error = error.retry(Retry::Never);
            return self.failed(call, recorded, error).await;
        }
        match call.review {
            Some(_) => self.review(call, recorded, None).await,
            None => self.finish(call, recorded, text).await,
        }
    }

    async fn review(
        &self,
        call: &StepCall<'_>,
        mut recorded: Recorded,
        problem: Option<String>,
    ) -> Answer {
        let gate = gate(call.review.as_ref(), "review")?;
        let text = recorded.draft.as_deref().unwrap_or("nil");
        let value = self.decode(text)?;
        let message = problem.or_else(|| gate.message.clone());
        let question = Question {
            timer: "review",
            about: "review",
            message: message.unwrap_or_else(|| {
                format!(
                    "is this result of the `:{}` step `{}` good?",
                    call.spec.kind, call.title
                )
            }),
            actions: &gate.actions,
            gate: Some(gate),
            shown: vec![("value", value)],
        };
        self.pose(call, &mut recorded, question).await?;
        self.reviewed(call, recorded).await
    }

    /// Waits for the answer, and does what it says.
    pub(super) async fn reviewed(&self, call: &StepCall<'_>, recorded: Recorded) -> Answer {
        let gate = gate(call.review.as_ref(), "review")?;
        let reply = self.reply(call, &recorded, gate.on_timeout).await?;
        self.judged(call, recorded, reply.text).await
    }

    async fn judged(&self, call: &StepCall<'_>, recorded: Recorded, verdict: String) -> Answer {
        let reply = reply_of(verdict, String::new())?;
        let draft = recorded.draft.clone().unwrap_or_else(|| "nil".to_owned());
        match &*reply.action {
            "approve" => self.finish(call, recorded, draft).await,
            "edit" => {
                let value = reply.answer.get("value").cloned().unwrap_or(Value::Nil);
                if let Err(problem) = self.meets(call, &value) {
                    let again = self.review(call, recorded, Some(problem.message));
                    return Box::pin(again).await;
                }
                let text = codec::encode(&value).map_err(EngineError::from)?;
                self.finish(call, recorded, text).await
            }
            "reject" | "timeout" => {
                let error = refused(call, "review", &reply.text);
                self.failed(call, recorded, error).await
            }
            _ => {
                let problem = Some(not_understood(&reply));
                Box::pin(self.review(call, recorded, problem)).await
            }
        }
    }

    /// Checks a value that is not persisted yet.
    fn meets(&self, call: &StepCall<'_>, value: &Value) -> Result<(), StepError> {
        let expectation = call.config.get("expect");
        match expectation.zip(call.step.judged(value)) {
            Some((expectation, judged)) => {
                let cx = call.context(self, call.attempts.get());
                crate::expect::check_at_once(&cx, expectation, &judged)
            }
            None => Ok(()),
        }
    }

    /// Answers with a value that nobody has anything against, persisted where the flow asks for that.
    async fn finish(&self, call: &StepCall<'_>, recorded: Recorded, text: String) -> Answer {
        let persisted = self.persist_draft(call, &text).await;
        let text = match persisted {
            Ok(Some(persisted)) => persisted,
            Ok(None) => {
                let entry = call.entry(self, EntryKind::Result, text.clone());
                self.shared.ledger.append(entry);
                text
            }
            Err(Undone::Step(error)) => return self.failed(call, recorded, error).await,
            Err(Undone::Store(error)) => return Err(error.into()),
        };
        self.emit(&RunEvent::StepFinished {
            step: call.note(recorded.attempts),
            millis: 0,
            preview: preview(&text),
        });
        Ok(Ok(self.decode(&text)?))
    }

    /// Stores a value as `:persist` says, and returns the reference to it.
    async fn persist_draft(
        &self,
        call: &StepCall<'_>,
        text: &str,
    ) -> Result<Option<String>, Undone> {
        let Some((persist, config)) = self.persistence(call).map_err(Undone::Step)? else {
            return Ok(None);
        };
        let value = codec::decode(text)
            .map_err(|error| Undone::Store(StoreError::Internal(error.to_string())))?;
        let cx = call.context(self, call.attempts.get());
        let op = persist
            .persist(&cx, &config, value)
            .await
            .map_err(Undone::Step)?;
        match self.perform_as(call, EntryKind::Result, op, None).await {
            Ok(text) => Ok(Some(text)),
            Err(error @ StoreError::Rejected { .. }) => {
                call.line.set_ticket(None);
                Err(Undone::Step(error.into()))
            }
            Err(error) => Err(Undone::Store(error)),
        }
    }

    /// Journals a value that was found rather than made, and answers with it.
    pub(super) async fn found(
        &self,
        call: &StepCall<'_>,
        mut recorded: Recorded,
        value: &Value,
    ) -> Answer {
        let text = codec::encode(value).map_err(EngineError::from)?;
        let text = self.scope.redact_edn(text);
        let is_draft = drafts(call) || call.has("persist");
        self.value_entries(call, value, text.clone(), is_draft);
        match is_draft {
            true => {
                recorded.draft = Some(text);
                self.drafted(call, recorded).await
            }
            false => Ok(Ok(self.decode(&text)?)),
        }
    }
}

/// Why a value is not persisted.
enum Undone {
    Step(StepError),
    Store(StoreError),
}
