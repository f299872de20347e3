//! Asking a person what to do about a step: it failed and has a checkpoint, or a crash left it in doubt.

use flowstone_lang::value::Value;

use super::call::StepCall;
use super::park::Waited;
use super::{Answer, Driver};
use crate::codec;
use crate::error::EngineError;
use crate::flow::name_of;
use crate::history::Recorded;
use crate::ports::{Change, EntryKind, StoreError};
use crate::step::StepError;

/// What a person decided.
enum Decision {
    Retry,
    /// EDN text of the step's value.
    Value(String),
    Abort,
}

impl Driver<'_> {
    /// Opens a question about a step, and waits for the decision.
    pub(super) async fn ask(
        &self,
        call: &StepCall<'_>,
        mut recorded: Recorded,
        error: &StepError,
    ) -> Answer {
        recorded.questions += 1;
        let details = Value::map([
            (Value::keyword("step"), Value::from(call.path.step.as_str())),
            (Value::keyword("title"), Value::from(call.title.as_str())),
            (Value::keyword("question"), Value::keyword(error.kind)),
            (
                Value::keyword("message"),
                Value::from(error.message.as_str()),
            ),
            (
                Value::keyword("request"),
                Value::from(call.request.as_str()),
            ),
            (
                Value::keyword("actions"),
                Value::vector(["retry", "skip", "use", "abort"].map(Value::keyword)),
            ),
            (
                Value::keyword("error"),
                self.exception_at(error, &call.path.step).into(),
            ),
        ]);
        let details = codec::encode(&details).unwrap_or_else(|_| {
            let words = Value::map([(
                Value::keyword("message"),
                Value::from(error.message.as_str()),
            )]);
            codec::encode(&words).expect("words can be written down")
        });
        let path = question_path(call, recorded.questions);
        let key = format!("{}/{path}", self.scope.run);
        let wait = self.new_wait(path, key, None, self.scope.redact(details));
        self.open_wait(call, recorded.attempts, "question", wait)
            .await?;
        self.decide(call, recorded).await
    }

    /// Goes on waiting for a decision that an earlier drive asked for.
    pub(super) async fn question_again(&self, call: &StepCall<'_>, recorded: Recorded) -> Answer {
        self.decide(call, recorded).await
    }

    async fn decide(&self, call: &StepCall<'_>, mut recorded: Recorded) -> Answer {
        let path = question_path(call, recorded.questions);
        let (row, waited) = self.await_answer(call, &path, recorded.attempts).await?;
        let payload = match waited {
            Waited::Answered(payload) => payload,
            Waited::TimedOut => {
                let words = "a question has no deadline".to_owned();
                return Err(EngineError::Internal(words).into());
            }
        };
        let decision = decision(&codec::decode(&payload).map_err(EngineError::from)?);
        let signal = call.entry(self, EntryKind::Signal, payload);
        let mut changes = vec![
            Change::CloseWait {
                path,
                seen: row.state,
            },
            Change::Append(signal),
        ];
        let error_text = row_error(&row.details);
        match &decision {
            Decision::Retry => {}
            Decision::Value(text) => {
                changes.push(Change::Append(call.entry(
                    self,
                    EntryKind::Result,
                    text.clone(),
                )));
            }
            Decision::Abort => {
                let entry = call.entry(self, EntryKind::Error, error_text.clone());
                changes.push(Change::Append(entry));
            }
        }
        self.wake_with(changes).await?;
        match decision {
            Decision::Retry => {
                recorded.base = recorded.attempts;
                // Its future holds this one: boxed, because it may come back here.
                Box::pin(self.attempts(call, recorded)).await
            }
            Decision::Value(text) => {
                Ok(self.expected(call, codec::decode(&text).map_err(EngineError::from)?))
            }
            Decision::Abort => self.raised(call, &error_text),
        }
    }

    async fn wake_with(&self, changes: Vec<Change>) -> Result<(), super::Halt> {
        self.awake();
        self.shared
            .ledger
            .commit(changes)
            .await
            .map(|_| ())
            .map_err(|error: StoreError| error.into())
    }
}

fn question_path(call: &StepCall<'_>, number: u32) -> String {
    format!("{}?{number}", call.at)
}

fn row_error(details: &str) -> String {
    let details = codec::decode(details).unwrap_or(Value::Nil);
    let error = details.get("error").cloned().unwrap_or(Value::Nil);
    let error = match error {
        Value::Exception(_) => error,
        _ => {
            let message = details
                .get("message")
                .and_then(Value::as_str)
                .unwrap_or("failed");
            flowstone_lang::value::Exception::new(
                flowstone_lang::value::Class::EXCEPTION_INFO,
                "E0519",
                message,
            )
            .into()
        }
    };
    codec::encode(&error).unwrap_or_else(|_| "nil".to_owned())
}

/// Reads an answer: `:retry`, `:skip`, `:abort`, or `{:action :use :value v}`. Anything else is a value to use.
fn decision(answer: &Value) -> Decision {
    let action = answer.get("action").unwrap_or(answer);
    let text = |value: &Value| codec::encode(value).unwrap_or_else(|_| "nil".to_owned());
    match name_of(action).as_deref() {
        Some("retry") => Decision::Retry,
        Some("skip") => Decision::Value("nil".to_owned()),
        Some("abort") => Decision::Abort,
        Some("use") => Decision::Value(text(answer.get("value").unwrap_or(&Value::Nil))),
        _ => Decision::Value(text(answer)),
    }
}
