//! Asking a person about a step: what to do after it failed, whether it may run, whether its value is good.
//!
//! A question is a timer entry and a wait, in one commit; its answer is a signal entry, in one commit with what comes
//! of it. So a crash neither asks again nor goes on without an answer.

use std::rc::Rc;

use flowstone_lang::value::Value;

use super::call::StepCall;
use super::park::Waited;
use super::{Answer, Driver, Halt};
use crate::codec;
use crate::error::EngineError;
use crate::flow::name_of;
use crate::gate::{Gate, OnSilence};
use crate::history::Recorded;
use crate::ports::{Change, EntryKind};
use crate::step::StepError;

/// What is asked about a step.
pub(super) struct Question<'q> {
    /// What the journal's timer says: `question`, `confirm` or `review`.
    pub timer: &'static str,
    /// What the wait says under `:question`: the same, or the kind of the error.
    pub about: &'q str,
    pub message: String,
    pub actions: &'q [&'static str],
    pub gate: Option<&'q Gate>,
    /// `:request`, `:value` or `:error`, and what they show.
    pub shown: Vec<(&'static str, Value)>,
}

/// What somebody said.
pub(super) struct Reply {
    /// What to do; `timeout` when nobody answered and silence means failure.
    pub action: Rc<str>,
    pub answer: Value,
    /// The answer as EDN text.
    pub text: String,
    /// EDN text of what the wait showed.
    pub details: String,
}

impl Driver<'_> {
    /// Opens a question about a step that failed, and waits for the decision.
    pub(super) async fn ask(
        &self,
        call: &StepCall<'_>,
        recorded: Recorded,
        error: &StepError,
    ) -> Answer {
        let error_text = self.error_text(call, error);
        let shown = codec::decode(&error_text).map_err(EngineError::from)?;
        self.ask_again(call, recorded, error.kind, error.message.clone(), shown)
            .await
    }

    async fn ask_again(
        &self,
        call: &StepCall<'_>,
        mut recorded: Recorded,
        about: &str,
        message: String,
        error: Value,
    ) -> Answer {
        let question = Question {
            timer: "question",
            about,
            message,
            actions: &["retry", "skip", "use", "abort"],
            gate: None,
            shown: vec![("request", call.shown_request()), ("error", error)],
        };
        self.pose(call, &mut recorded, question).await?;
        self.decide(call, recorded).await
    }

    /// Waits for the decision about a step that failed.
    pub(super) async fn decide(&self, call: &StepCall<'_>, mut recorded: Recorded) -> Answer {
        let reply = self.reply(call, &recorded, OnSilence::Fail).await?;
        let (about, error) = asked(&reply.details);
        match &*reply.action {
            "retry" => {
                recorded.again();
                // Its future holds this one: boxed, because it may come back here.
                Box::pin(self.start_step(call, recorded)).await
            }
            "abort" => {
                let text = codec::encode(&error).map_err(EngineError::from)?;
                let entry = call.entry(self, EntryKind::Error, text.clone());
                self.shared.ledger.append(entry);
                self.raised(call, &text)
            }
            "skip" => self.decided(call, Value::Nil),
            "use" => {
                let value = reply.answer.get("value").cloned().unwrap_or(Value::Nil);
                let fits = self.fits(call, &value);
                match fits.and_then(|()| self.fits_output(call, &value)) {
                    Ok(()) => self.decided(call, value),
                    Err(problem) => {
                        let again = self.ask_again(call, recorded, &about, problem.message, error);
                        Box::pin(again).await
                    }
                }
            }
            _ => {
                let again = self.ask_again(call, recorded, &about, not_understood(&reply), error);
                Box::pin(again).await
            }
        }
    }

    /// Takes a value that a person gave instead of the step's own.
    fn decided(&self, call: &StepCall<'_>, value: Value) -> Answer {
        call.is_given.set(true);
        let text = codec::encode(&value).map_err(EngineError::from)?;
        let entry = call.entry(self, EntryKind::Result, text);
        self.shared.ledger.append(entry);
        Ok(Ok(value))
    }

    /// Opens a question.
    pub(super) async fn pose(
        &self,
        call: &StepCall<'_>,
        recorded: &mut Recorded,
        question: Question<'_>,
    ) -> Result<(), Halt> {
        recorded.questions += 1;
        let roles = question.gate.map_or(Value::Nil, |gate| gate.roles.clone());
        let mut details = vec![
            ("step", Value::from(call.path.step.as_str())),
            ("path", Value::from(call.at.as_str())),
            ("type", Value::keyword(call.spec.kind)),
            ("title", Value::from(call.title.as_str())),
            ("question", Value::keyword(question.about)),
            ("message", Value::from(question.message)),
            (
                "actions",
                Value::vector(question.actions.iter().map(|name| Value::keyword(name))),
            ),
            ("roles", roles),
        ];
        details.extend(question.shown);
        let details = details
            .into_iter()
            .filter(|(_, value)| !value.is_nil())
            .map(|(key, value)| (Value::keyword(key), value));
        let details = codec::encode(&Value::map(details)).map_err(EngineError::from)?;
        let deadline_ms = question.gate.and_then(|gate| gate.timeout).map(|timeout| {
            self.now_ms()
                .saturating_add(crate::duration::millis(timeout))
        });
        let path = question_path(call, recorded.questions);
        let key = format!("{}/{path}", self.scope.run);
        let wait = self.new_wait(path, key, deadline_ms, self.scope.redact_strings(details));
        self.open_wait(call, recorded.attempts, question.timer, wait)
            .await
    }

    /// Waits for the answer to the question that was asked last, and journals it. An answer is written with the
    /// next commit, together with what comes of it; until then the wait has it.
    pub(super) async fn reply(
        &self,
        call: &StepCall<'_>,
        recorded: &Recorded,
        silence: OnSilence,
    ) -> Result<Reply, Halt> {
        let path = question_path(call, recorded.questions);
        loop {
            let (row, waited) = self.await_answer(call, &path, recorded.attempts).await?;
            let text = match waited {
                Waited::Answered(text) => text,
                Waited::TimedOut => {
                    let action = match silence {
                        OnSilence::Fail => "timeout",
                        OnSilence::Approve => "approve",
                        OnSilence::Reject => "reject",
                    };
                    let text = format!("{{:action :{action} :reason :timeout}}");
                    let signal = call.entry(self, EntryKind::Signal, text.clone());
                    if !self.close_wait(&row, vec![signal]).await? {
                        continue;
                    }
                    return reply_of(text, row.details);
                }
            };
            self.awake();
            self.shared.ledger.push(Change::CloseWait {
                path,
                seen: row.state,
            });
            let signal = call.entry(self, EntryKind::Signal, text.clone());
            self.shared.ledger.append(signal);
            return reply_of(text, row.details);
        }
    }
}

pub(super) fn reply_of(text: String, details: String) -> Result<Reply, Halt> {
    let answer = codec::decode(&text).map_err(EngineError::from)?;
    Ok(Reply {
        action: name_of(answer.get("action").unwrap_or(&answer)).unwrap_or_else(|| "".into()),
        answer,
        text,
        details,
    })
}

/// What is said where an answer came that nothing checked: a signal that was there before its question.
pub(super) fn not_understood(reply: &Reply) -> String {
    format!("the answer {} is none of the actions", reply.text)
}

fn question_path(call: &StepCall<'_>, number: u32) -> String {
    format!("{}?{number}", call.at)
}

/// Returns what a question was about, and the error that it showed.
fn asked(details: &str) -> (String, Value) {
    let details = codec::decode(details).unwrap_or(Value::Nil);
    let about = details.get("question").and_then(name_of);
    let about = about.unwrap_or_else(|| "failed".into()).to_string();
    let error = match details.get("error") {
        Some(error @ Value::Exception(_)) => error.clone(),
        _ => {
            let message = details.get("message").and_then(Value::as_str);
            flowstone_lang::value::Exception::new(
                flowstone_lang::value::Class::EXCEPTION_INFO,
                "E0519",
                message.unwrap_or("failed"),
            )
            .into()
        }
    };
    (about, error)
}
