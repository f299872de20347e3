//! Questions to a person about a step: whether it may run, whether its value is accepted, how to continue after it
//! failed.
//!
//! A question is a timer entry and a wait, in one commit; its answer is a signal entry, in one commit with its
//! consequences. A crash therefore neither repeats the question nor continues without an answer.

use std::rc::Rc;

use flowstone_lang::value::Value;

use super::call::StepCall;
use super::requests::{Performed, Request};
use super::wait::Waited;
use super::{Executor, Halt};
use crate::approval::{Approval, OnTimeout};
use crate::codec;
use crate::error::EngineError;
use crate::flow::name_of;
use crate::ports::{Change, EntryKind};
use crate::state::{About, Asking, Event, Note, Reply, ReplyAction};
use crate::step::StepError;

/// A question about a step.
struct Question<'q> {
    about: About,
    /// The wait's `:question`: the name of its subject, or the kind of the error.
    name: String,
    message: String,
    actions: &'q [&'static str],
    approval: Option<&'q Approval>,
    /// `:request`, `:value` or `:error`, with their contents.
    shown: Vec<(&'static str, Value)>,
}

/// A person's unprocessed reply.
struct Received {
    /// The action; `timeout` if no answer arrived in time and a timeout means failure.
    action: Rc<str>,
    answer: Value,
    /// The answer as EDN text.
    text: String,
}

impl Executor<'_> {
    /// Opens a question about a step.
    pub(super) async fn ask(
        &self,
        request: &mut Request<'_, '_>,
        asking: Asking,
    ) -> Result<Performed, Halt> {
        let call = request.call;
        let question = match asking {
            Asking::Confirm { problem } => {
                let approval = approval(call, About::Confirm)?;
                let message = problem.or_else(|| approval.message.clone());
                Question {
                    about: About::Confirm,
                    name: "confirm".to_owned(),
                    message: message.unwrap_or_else(|| {
                        format!("may the `:{}` step `{}` run?", call.spec.kind, call.title)
                    }),
                    actions: &approval.actions,
                    approval: Some(approval),
                    shown: vec![("request", call.shown_request())],
                }
            }
            Asking::Review { problem } => {
                let approval = approval(call, About::Review)?;
                let value = self.decode(request.progress.draft().unwrap_or("nil"))?;
                let message = problem.or_else(|| approval.message.clone());
                Question {
                    about: About::Review,
                    name: "review".to_owned(),
                    message: message.unwrap_or_else(|| {
                        format!(
                            "is this result of the `:{}` step `{}` good?",
                            call.spec.kind, call.title
                        )
                    }),
                    actions: &approval.actions,
                    approval: Some(approval),
                    shown: vec![("value", value)],
                }
            }
            Asking::Failure(error) => {
                let text = self.error_text(call, &error);
                let shown = codec::decode(&text).map_err(EngineError::from)?;
                failure(call, error.kind.to_owned(), error.message, shown)
            }
            Asking::FailureAgain {
                kind,
                message,
                error,
            } => failure(call, kind, message, error),
        };
        self.pose(request, question).await?;
        Ok(Performed::Moved)
    }

    async fn pose(
        &self,
        request: &mut Request<'_, '_>,
        question: Question<'_>,
    ) -> Result<(), Halt> {
        let call = request.call;
        let roles = question
            .approval
            .map_or(Value::Nil, |approval| approval.roles.clone());
        let mut details = vec![
            ("step", Value::from(call.path.step.as_str())),
            ("path", Value::from(call.at.as_str())),
            ("type", Value::keyword(call.spec.kind)),
            ("title", Value::from(call.title.as_str())),
            ("question", Value::keyword(&question.name)),
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
        let deadline_ms = question
            .approval
            .and_then(|approval| approval.timeout)
            .map(|timeout| {
                self.now_ms()
                    .saturating_add(crate::duration::millis(timeout))
            });
        let path = question_path(call, request.progress.questions + 1);
        let key = format!("{}/{path}", self.scope.run);
        let wait = self.new_wait(path, key, deadline_ms, self.scope.redact_strings(details));
        let note = Note::Question {
            about: question.about,
            attempt: request.progress.attempts,
        };
        self.open_wait(request, note, wait).await
    }

    /// Waits for the reply to the last question, and journals it. A reply is written with the next commit, together
    /// with its consequences; until then it is stored in the wait.
    pub(super) async fn await_reply(
        &self,
        request: &mut Request<'_, '_>,
        about: About,
    ) -> Result<Performed, Halt> {
        let call = request.call;
        let silence = match about {
            About::Failure => OnTimeout::Fail,
            About::Confirm | About::Review => approval(call, about)?.on_timeout,
        };
        let path = question_path(call, request.progress.questions);
        let (text, details) = loop {
            let attempts = request.progress.attempts;
            let (row, waited) = self.await_answer(call, &path, attempts).await?;
            match waited {
                Waited::Answered(text) => {
                    self.awake();
                    self.shared.journal.usage().closed(&path);
                    self.shared.journal.push(Change::CloseWait {
                        path: path.clone(),
                        seen: row.state,
                    });
                    let signal = call.entry(self, EntryKind::Signal, text.clone());
                    self.shared.journal.append(signal);
                    break (text, row.details);
                }
                Waited::TimedOut => {
                    let action = match silence {
                        OnTimeout::Fail => "timeout",
                        OnTimeout::Approve => "approve",
                        OnTimeout::Reject => "reject",
                    };
                    let text = format!("{{:action :{action} :reason :timeout}}");
                    let signal = call.entry(self, EntryKind::Signal, text.clone());
                    if self.close_wait(&row, vec![signal]).await? {
                        break (text, row.details);
                    }
                }
            }
        };
        request.progress.fold(EntryKind::Signal, text.clone());
        self.reply(request, about, text, &details)
    }

    /// Acts on a reply that is journaled.
    pub(super) fn judge(
        &self,
        request: &Request<'_, '_>,
        about: About,
        answer: String,
    ) -> Result<Performed, Halt> {
        self.reply(request, about, answer, "nil")
    }

    fn reply(
        &self,
        request: &Request<'_, '_>,
        about: About,
        text: String,
        details: &str,
    ) -> Result<Performed, Halt> {
        let call = request.call;
        let answer = codec::decode(&text).map_err(EngineError::from)?;
        let received = Received {
            action: name_of(answer.get("action").unwrap_or(&answer)).unwrap_or_else(|| "".into()),
            answer,
            text,
        };
        let action = match about {
            About::Confirm => match &*received.action {
                "approve" => ReplyAction::Approve,
                "reject" | "timeout" => {
                    ReplyAction::Reject(Box::new(refused(call, "confirm", &received.text)))
                }
                _ => again(&received, None),
            },
            About::Review => match &*received.action {
                "approve" => ReplyAction::Approve,
                "edit" => self.value_used(&received, None, |value| self.meets(call, value))?,
                "reject" | "timeout" => {
                    ReplyAction::Reject(Box::new(refused(call, "review", &received.text)))
                }
                _ => again(&received, None),
            },
            About::Failure => {
                let (kind, error) = asked(details);
                match &*received.action {
                    "retry" => ReplyAction::Retry,
                    "abort" => ReplyAction::Abort {
                        error: codec::encode(&error).map_err(EngineError::from)?,
                    },
                    "skip" => ReplyAction::Skip,
                    "use" => self.value_used(&received, Some((kind, error)), |value| {
                        self.fits(call, value)?;
                        self.fits_output(call, value)
                    })?,
                    _ => again(&received, Some((kind, error))),
                }
            }
        };
        Ok(Performed::Event(Event::Replied(Box::new(Reply {
            about,
            action,
        }))))
    }

    /// Accepts the value that a person gave, if it meets `:expect`.
    fn value_used(
        &self,
        received: &Received,
        failure: Option<(String, Value)>,
        check: impl FnOnce(&Value) -> Result<(), StepError>,
    ) -> Result<ReplyAction, Halt> {
        let value = received.answer.get("value").cloned().unwrap_or(Value::Nil);
        match check(&value) {
            Ok(()) => {
                let text = codec::encode(&value).map_err(EngineError::from)?;
                Ok(ReplyAction::Use(text))
            }
            Err(problem) => Ok(ReplyAction::Again {
                problem: problem.message,
                failure,
            }),
        }
    }
}

fn failure<'q>(call: &StepCall<'_>, kind: String, message: String, error: Value) -> Question<'q> {
    Question {
        about: About::Failure,
        name: kind,
        message,
        actions: &["retry", "skip", "use", "abort"],
        approval: None,
        shown: vec![("request", call.shown_request()), ("error", error)],
    }
}

/// Asks again after an unchecked reply: a signal that arrived before its question.
fn again(received: &Received, failure: Option<(String, Value)>) -> ReplyAction {
    ReplyAction::Again {
        problem: format!("the answer {} is not one of the actions", received.text),
        failure,
    }
}

fn question_path(call: &StepCall<'_>, number: u32) -> String {
    format!("{}?{number}", call.at)
}

/// Returns the approval of a journaled question: the config is the same, because its digest is.
fn approval<'c>(call: &'c StepCall<'_>, about: About) -> Result<&'c Approval, EngineError> {
    let (approval, key) = match about {
        About::Review => (call.review.as_ref(), "review"),
        About::Confirm | About::Failure => (call.confirm.as_ref(), "confirm"),
    };
    approval.ok_or_else(|| EngineError::Internal(format!("a step waits without `:{key}`")))
}

/// Returns the subject of a question after a failure, and the error that it showed.
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

/// Returns the error of a step that was rejected, or for which no decision arrived in time. `answer` is EDN text.
fn refused(call: &StepCall<'_>, key: &'static str, answer: &str) -> StepError {
    let answer = codec::decode(answer).unwrap_or(Value::Nil);
    let silent = answer.get("reason") == Some(&Value::keyword("timeout"));
    let action = name_of(answer.get("action").unwrap_or(&answer));
    let title = &call.title;
    if action.as_deref() == Some("timeout") {
        return StepError::new(
            "E0523",
            "timeout",
            format!("nobody decided about the `:{key}` of `{title}` in time"),
        )
        .hint("`:on-timeout :approve` or `:reject` says what silence means");
    }
    let comment = ["reason", "comment", "message"]
        .into_iter()
        .find_map(|key| answer.get(key).and_then(Value::as_str));
    let message = match (comment, silent) {
        (Some(comment), _) => format!("`{title}` was rejected: {comment}"),
        (None, true) => format!("`{title}` was rejected, because nobody answered in time"),
        (None, false) => format!("`{title}` was rejected"),
    };
    StepError::new("E0533", "rejected", message)
        .with("question", Value::keyword(key))
        .with("answer", answer)
}
