//! `:questions` of an `:mcp` step: what happens to the questions that a server asks in the middle of a call.
//!
//! With `:ask`, the step performs others: the call, a `:wait` for each question, and the operation `:answer` that
//! continues the call. All of them are journaled, so a resumed run does not repeat what was done.

use std::collections::VecDeque;
use std::time::Duration;

use flowstone_flow::duration;
use flowstone_flow::flow::name_of;
use flowstone_flow::step::{Field, FieldType, NestedRequest, StepContext, StepError};
use flowstone_lang::value::Value;
use serde_json::Value as Json;

use super::question::{ACTIONS, Asks, Mode, Question, Resume};
use super::{LOST, SPEC};
use crate::fields::Fields;
use crate::json::from_json;

/// The key of the option.
pub(crate) const QUESTIONS: &str = "questions";
/// The form of the option.
pub(crate) const FIELD: FieldType = FieldType::Either(&[
    FieldType::OneOf(&["ask", "decline", "return"]),
    FieldType::Keys(KEYS),
]);

const KEYS: &[Field] = &[
    Field::optional(
        "notify",
        FieldType::Map,
        "Whom to tell, as `:notify` of a `:wait`.",
    ),
    Field::optional(
        "on-timeout",
        FieldType::OneOf(&["cancel", "decline", "fail"]),
        "The answer if nobody answers in time, or `:fail`.",
    )
    .or(":cancel"),
    Field::optional(
        "roles",
        FieldType::List(&FieldType::Name),
        "Who may answer: one of these roles is needed.",
    ),
    Field::optional(
        "timeout",
        FieldType::Duration,
        "How long a question waits for its answer.",
    )
    .or("\"24h\""),
];
const NAMES: &[&str] = &["notify", "on-timeout", "roles", "timeout"];

/// How long a question waits by default.
const USUAL: Duration = Duration::from_secs(86_400);
/// Maximum number of times that a server may ask in a call.
const MOST_ROUNDS: usize = 20;
/// Options of the step that its calls have, too.
const OF_CALL: &[&str] = &[
    "adapter",
    "arguments",
    "headers",
    "on-doubt",
    "read-only?",
    "tool",
];

/// What happens to the questions of a server.
pub(super) enum Questions {
    Decline,
    /// The value of the step has the questions, and the flow answers them.
    Return,
    Ask(Asking),
}

/// Who is asked, and for how long.
pub(super) struct Asking {
    timeout: Duration,
    on_timeout: &'static str,
    /// Options of the `:wait`.
    wait: Vec<(&'static str, Value)>,
}

/// Tells whether the step asks people, so that it performs other steps.
pub(super) fn asks(config: &Value) -> bool {
    match config.get(QUESTIONS) {
        None | Some(Value::Nil) => false,
        Some(Value::Map(_)) => true,
        Some(given) => name_of(given).as_deref() == Some("ask"),
    }
}

/// Reads the option.
///
/// # Errors
/// E1299 when it has another form.
pub(super) fn read(fields: Fields<'_>) -> Result<Questions, StepError> {
    let Some(given) = fields.get(QUESTIONS) else {
        return Ok(Questions::Decline);
    };
    if let Value::Map(_) = given {
        let fields = Fields::nested(":questions", given)?;
        fields.only(NAMES)?;
        let on_timeout = fields.name("on-timeout")?;
        let known = ["cancel", "decline", "fail"];
        let on_timeout = match on_timeout.as_deref() {
            None => "cancel",
            Some(name) => known.into_iter().find(|it| *it == name).ok_or_else(|| {
                wrong(format!("`:questions` has no `:on-timeout :{name}`"))
                    .hint("there are `:cancel`, `:decline` and `:fail`")
            })?,
        };
        let wait = ["notify", "roles"].into_iter();
        let wait = wait.filter_map(|key| Some((key, fields.get(key)?.clone())));
        return Ok(Questions::Ask(Asking {
            timeout: fields.duration("timeout")?.unwrap_or(USUAL),
            on_timeout,
            wait: wait.collect(),
        }));
    }
    match name_of(given).as_deref() {
        Some("ask") => Ok(Questions::Ask(Asking {
            timeout: USUAL,
            on_timeout: "cancel",
            wait: Vec::new(),
        })),
        Some("decline") => Ok(Questions::Decline),
        Some("return") => Ok(Questions::Return),
        _ => Err(wrong(format!(
            "`:questions` cannot be {}",
            crate::text::brief(given)
        ))
        .hint(
            "it is `:ask`, `:decline`, `:return`, or a map as in `{:timeout \"1h\" :roles [:ops]}`",
        )),
    }
}

fn wrong(message: impl Into<String>) -> StepError {
    StepError::config("E1299", message)
}

impl Questions {
    /// Returns how long a question of a call stays open; `None` if questions are declined.
    pub(super) fn stay(&self) -> Option<Duration> {
        match self {
            Questions::Decline => None,
            Questions::Return => Some(USUAL),
            Questions::Ask(asking) => Some(asking.timeout),
        }
    }
}

/// A call with its questions.
struct Call<'a> {
    cx: &'a StepContext,
    config: &'a Value,
    asking: Asking,
    /// Answers to give again, after the call was repeated.
    known: VecDeque<(Question, Json)>,
    given: Vec<(Question, Json)>,
}

/// Calls a tool, and asks people the questions of its server.
///
/// # Errors
/// Those of the steps that it performs; E0832 when the server asks too often; E1298 when the call is gone.
pub(super) async fn call(
    cx: &StepContext,
    config: &Value,
    asking: Asking,
) -> Result<Value, StepError> {
    let mut call = Call {
        cx,
        config,
        asking,
        known: VecDeque::new(),
        given: Vec::new(),
    };
    let mut value = cx.perform(call.begin()).await?;
    for _ in 0..MOST_ROUNDS {
        let Some(asks) = Asks::from_value(&value) else {
            return Ok(value);
        };
        let mut answers: Vec<(Value, Value)> = Vec::new();
        for question in &asks.questions {
            let answer = call.answer(question).await?;
            answers.push((Value::from(question.id.as_str()), from_json(&answer)));
            call.given.push((question.clone(), answer));
        }
        value = match cx.perform(call.proceed(&value, answers)).await {
            Err(error) if error.code == LOST && matches!(asks.resume, Resume::Open(_)) => {
                call.begin_again(error).await?
            }
            other => other?,
        };
    }
    let message = format!("the tool `{}` asks again and again", call.tool());
    Err(StepError::new("E0832", "bad-response", message))
}

impl Call<'_> {
    fn tool(&self) -> String {
        let tool = self.config.get("tool").and_then(Value::as_str);
        tool.map(|tool| tool.to_string()).unwrap_or_default()
    }

    /// Returns who asks, for a person.
    fn server(&self) -> String {
        let adapter = self.config.get("adapter").and_then(name_of);
        let adapter = adapter.unwrap_or_default();
        let adapter = adapter.trim_start_matches(':');
        match self.cx.flow().mcp_adapter(adapter) {
            Some(adapter) => format!("the server `:{}`", adapter.connection),
            None => "the server".to_owned(),
        }
    }

    fn entries(&self) -> Vec<(Value, Value)> {
        let key = |name: &&str| Some((Value::keyword(name), self.config.get(name)?.clone()));
        OF_CALL.iter().filter_map(key).collect()
    }

    fn begin(&self) -> NestedRequest {
        let mut config = self.entries();
        config.push((Value::keyword(QUESTIONS), Value::keyword("return")));
        config.push((Value::keyword("op"), Value::keyword("call")));
        NestedRequest::new(SPEC.kind, "call", Value::map(config))
    }

    fn proceed(&self, value: &Value, answers: Vec<(Value, Value)>) -> NestedRequest {
        let mut config = self.entries();
        let resume = value.get("resume").cloned().unwrap_or(Value::Nil);
        config.push((Value::keyword("op"), Value::keyword("answer")));
        config.push((Value::keyword("resume"), resume));
        config.push((Value::keyword("answers"), Value::map(answers)));
        NestedRequest::new(SPEC.kind, "answer", Value::map(config))
    }

    /// Returns the answer to a question: a known one after a repetition, or that of a person.
    async fn answer(&mut self, question: &Question) -> Result<Json, StepError> {
        match self.known.pop_front() {
            Some((known, answer)) if known.is_like(question) => return Ok(answer),
            Some(_) => self.known.clear(),
            None => {}
        }
        let given = self.cx.perform(self.wait(question)).await?;
        Ok(question.answer(&given))
    }

    fn wait(&self, question: &Question) -> NestedRequest {
        let word = Value::keyword;
        let server = self.server();
        let message = format!(
            "The tool `{}` of {server} asks: {}",
            self.tool(),
            question.message
        );
        let mut data = vec![(word("warning"), Value::from(question.warning(&server)))];
        if let Mode::Url(url) = &question.mode {
            data.push((word("url"), Value::from(url.as_str())));
        }
        let mut config = vec![
            (word("message"), Value::from(message)),
            (word("data"), Value::map(data)),
            (word("actions"), Value::vector(ACTIONS.map(word))),
            (word("validation"), question.validation()),
            (word("timeout"), self.stay()),
        ];
        if self.asking.on_timeout != "fail" {
            let answer = Value::map([(word("action"), word(self.asking.on_timeout))]);
            config.push((word("on-timeout"), word("continue")));
            config.push((word("default-value"), answer));
        }
        let more = self.asking.wait.iter();
        config.extend(more.map(|(key, value)| (word(key), value.clone())));
        NestedRequest::new("wait", "question", Value::map(config))
    }

    /// Calls the tool from its beginning after the process of the call has ended, if `:on-doubt` says so. The answers
    /// that were given already are given again.
    async fn begin_again(&mut self, lost: StepError) -> Result<Value, StepError> {
        let is_read = matches!(self.config.get("read-only?"), Some(Value::Bool(true)));
        let given = self.config.get("on-doubt").filter(|it| !it.is_nil());
        let given = given.and_then(|it| it.get("else").or(Some(it)));
        let given = given.and_then(name_of);
        let repeats = match given.as_deref() {
            Some("retry") => true,
            Some("fail") => false,
            None if is_read => true,
            _ => self.may_repeat().await?,
        };
        if !repeats {
            return Err(lost);
        }
        self.known = std::mem::take(&mut self.given).into();
        self.cx.perform(self.begin()).await
    }

    async fn may_repeat(&self) -> Result<bool, StepError> {
        let word = Value::keyword;
        let message = format!(
            "The process ended while the tool `{}` of {} waited for an answer. Whether it did its work is not known. Call it again from its beginning?",
            self.tool(),
            self.server()
        );
        let config = Value::map([
            (word("message"), Value::from(message)),
            (word("actions"), Value::vector(["retry", "fail"].map(word))),
            (word("timeout"), self.stay()),
        ]);
        let wait = NestedRequest::new("wait", "doubt", config);
        let answer = self.cx.perform(wait).await?;
        Ok(answer.get("action").and_then(name_of).as_deref() == Some("retry"))
    }

    fn stay(&self) -> Value {
        Value::from(format!("{}ms", duration::millis(self.asking.timeout)))
    }
}
