//! Nested steps: the requests of a step that performs others, and their answers.
//!
//! The step and the executor of the run share a [`NestedSteps`]: the step adds requests to it, and the executor
//! performs each as a step of the run and adds the answer.

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, VecDeque};
use std::future::poll_fn;
use std::task::Poll;

use flowstone_lang::value::{Exception, Value};
use flowstone_model::names::name_of;

use super::{Retry, StepError};

/// Kinds of temporary errors, which another attempt may avoid.
const PASSING: &[&str] = &["cut-off", "rate-limited", "timeout", "unavailable"];

/// A request for a nested step.
#[derive(Debug, Clone)]
pub struct NestedRequest {
    /// A step type such as `:llm`, or a packaged step such as `:github/open-pr`.
    pub kind: Value,
    /// The id of the step, which may be used several times.
    pub id: String,
    pub config: Value,
    /// Maximum number of tokens that models may use in it; `None` if no outer step sets a limit.
    pub allowance: Option<i64>,
    /// Rules of the outer step that also apply to this one, at any depth. If `None`, the rules around the outer step
    /// apply.
    pub rules: Option<Value>,
    /// Texts of the config that are made from the run's id: a fork makes the same request with others.
    pub own_texts: Vec<String>,
    /// In an installation, the tables and keys that the step names belong to the author of the flow.
    pub is_of_author: bool,
    /// The digest of the call that a person agreed to while the outer step waited: see [`NestedRequest::agreed`].
    pub agreed: Option<String>,
}

impl NestedRequest {
    /// Returns a request for a step type, which is given without its colon.
    pub fn new(kind: &str, id: impl Into<String>, config: Value) -> NestedRequest {
        NestedRequest {
            kind: Value::keyword(kind),
            id: id.into(),
            config,
            allowance: None,
            rules: None,
            own_texts: Vec::new(),
            is_of_author: false,
            agreed: None,
        }
    }

    /// Marks what belongs to the author of an installed flow: what its agents remember and cost.
    #[must_use]
    pub fn of_author(self) -> NestedRequest {
        NestedRequest {
            is_of_author: true,
            ..self
        }
    }

    /// Says that a person has agreed to what the step is about to do. `digest` is what they were asked about. Only code of a
    /// step type calls this: no config of a flow says it.
    #[must_use]
    pub fn agreed(self, digest: String) -> NestedRequest {
        NestedRequest {
            agreed: Some(digest),
            ..self
        }
    }

    /// Limits the tokens that models may use in the step.
    #[must_use]
    pub fn with_allowance(self, allowance: Option<i64>) -> NestedRequest {
        NestedRequest { allowance, ..self }
    }

    /// Names texts of the config that are made from the run's id.
    #[must_use]
    pub fn with_own_texts(self, own_texts: Vec<String>) -> NestedRequest {
        NestedRequest { own_texts, ..self }
    }

    /// Hands down rules that apply to the step.
    #[must_use]
    pub fn with_rules(self, rules: Option<Value>) -> NestedRequest {
        NestedRequest { rules, ..self }
    }
}

/// The outcome of a nested step.
#[derive(Debug, Clone)]
pub struct NestedResult {
    pub result: Result<Value, StepError>,
    /// The value of the wrapped step, if `result` was computed from it.
    pub wrapped: Option<Value>,
    /// The instants at which the step began and ended, as the journal records them, so that they are the same on
    /// resume. A step begins when the previous one has ended, or the outer step has begun.
    pub began_ms: i64,
    pub ended_ms: i64,
    /// The path of the step in the run.
    pub path: String,
}

impl NestedResult {
    /// Returns the duration of the step.
    pub fn millis(&self) -> i64 {
        (self.ended_ms - self.began_ms).max(0)
    }
}

/// An answer of the executor.
#[derive(Debug)]
pub struct NestedAnswer {
    pub result: Result<Value, StepError>,
    pub wrapped: Option<Value>,
    /// The instant at which the step ended, if the journal records it.
    pub ended_ms: Option<i64>,
    pub path: String,
}

/// The requests and answers that a step and the executor of its run exchange.
#[derive(Debug, Default)]
pub struct NestedSteps {
    asked: RefCell<VecDeque<(u64, NestedRequest)>>,
    answered: RefCell<HashMap<u64, NestedAnswer>>,
    last: Cell<u64>,
    /// The instant at which the outer step began, or at which the last answered step ended.
    latest_ms: Cell<i64>,
}

impl NestedSteps {
    pub fn begun_at(began_ms: i64) -> NestedSteps {
        let nested = NestedSteps::default();
        nested.latest_ms.set(began_ms);
        nested
    }

    fn ask(&self, request: NestedRequest) -> u64 {
        let id = self.last.get() + 1;
        self.last.set(id);
        self.asked.borrow_mut().push_back((id, request));
        id
    }

    fn take_answer(&self, id: u64) -> Option<NestedAnswer> {
        self.answered.borrow_mut().remove(&id)
    }

    pub(super) fn latest_ms(&self) -> i64 {
        self.latest_ms.get()
    }

    pub fn take_asked(&self) -> Option<(u64, NestedRequest)> {
        self.asked.borrow_mut().pop_front()
    }

    pub fn answer(&self, id: u64, answered: NestedAnswer) {
        self.answered.borrow_mut().insert(id, answered);
    }

    /// Performs steps, at most `limit` concurrently, and returns their results in order.
    pub(super) async fn perform_all(
        &self,
        steps: Vec<NestedRequest>,
        limit: usize,
    ) -> Vec<NestedResult> {
        let mut waiting: VecDeque<(usize, NestedRequest)> = steps.into_iter().enumerate().collect();
        let mut done: Vec<Option<NestedResult>> = waiting.iter().map(|_| None).collect();
        let began_ms = self.latest_ms.get();
        let mut underway: Vec<(usize, u64)> = Vec::new();
        // The executor polls this again when an answer arrives.
        poll_fn(|_| {
            underway.retain(|(idx, id)| match self.take_answer(*id) {
                Some(answered) => {
                    done[*idx] = Some(NestedResult {
                        result: answered.result,
                        wrapped: answered.wrapped,
                        began_ms,
                        ended_ms: answered.ended_ms.unwrap_or(began_ms),
                        path: answered.path,
                    });
                    false
                }
                None => true,
            });
            while underway.len() < limit.max(1) {
                let Some((idx, inside)) = waiting.pop_front() else {
                    break;
                };
                underway.push((idx, self.ask(inside)));
            }
            match underway.is_empty() {
                true => Poll::Ready(()),
                false => Poll::Pending,
            }
        })
        .await;
        let done: Vec<NestedResult> = done.into_iter().flatten().collect();
        let latest_ms = done.iter().map(|performed| performed.ended_ms).max();
        self.latest_ms.set(latest_ms.unwrap_or(0).max(began_ms));
        done
    }
}

/// Converts the exception of a failed step to the error that the outer step sees.
pub fn error_of(exception: &Exception) -> StepError {
    let error = StepError::from(exception);
    let message = exception.message.as_deref().unwrap_or(&error.message);
    let kind = exception.data.get("kind").and_then(name_of);
    let may_pass = kind.is_some_and(|kind| PASSING.contains(&&*kind));
    StepError {
        message: message.to_owned(),
        retry: match may_pass {
            true => Retry::Backoff,
            false => Retry::Never,
        },
        // The place of the outer step is more useful to people.
        place: None,
        ..error
    }
}
