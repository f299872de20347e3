//! Steps that a step performs: what it asks for, and how the answers come back.
//!
//! The step and the executor of the run share a [`NestedSteps`]: the step leaves requests there, the executor performs each as
//! a step of the run, and leaves the answer there.

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, VecDeque};
use std::future::poll_fn;
use std::task::Poll;

use flowstone_lang::value::{Exception, Value};
use flowstone_model::names::name_of;

use super::{Retry, StepError};

/// Kinds of errors that another attempt may not meet.
const PASSING: &[&str] = &["cut-off", "rate-limited", "timeout", "unavailable"];

/// A step to be performed inside another.
#[derive(Debug, Clone)]
pub struct NestedRequest {
    /// A step type such as `:llm`, or a packaged step such as `:github/open-pr`.
    pub kind: Value,
    /// Its id; the same one may be used again and again.
    pub id: String,
    pub config: Value,
    /// Maximum number of tokens that models may use in it; `None` if no outer step sets a limit.
    pub allowance: Option<i64>,
    /// Rules of the outer step that also hold in it, at any depth. If it has none, those around its owner hold.
    pub rules: Option<Value>,
}

impl NestedRequest {
    /// Returns a step of a type, which is given without its colon.
    pub fn new(kind: &str, id: impl Into<String>, config: Value) -> NestedRequest {
        NestedRequest {
            kind: Value::keyword(kind),
            id: id.into(),
            config,
            allowance: None,
            rules: None,
        }
    }

    /// Limits the tokens that models may use in it.
    #[must_use]
    pub fn with_allowance(self, allowance: Option<i64>) -> NestedRequest {
        NestedRequest { allowance, ..self }
    }

    /// Hands down rules that hold in it.
    #[must_use]
    pub fn with_rules(self, rules: Option<Value>) -> NestedRequest {
        NestedRequest { rules, ..self }
    }
}

/// The outcome of a nested step.
#[derive(Debug, Clone)]
pub struct NestedResult {
    pub result: Result<Value, StepError>,
    /// What a packaged step's wrapped step gave, where `result` is made of it.
    pub wrapped: Option<Value>,
    /// When what came before it had ended, or the outer step had begun, and when it ended itself: as the journal has
    /// it, the same on resume.
    pub began_ms: i64,
    pub ended_ms: i64,
    /// Where it stands in the run.
    pub path: String,
}

impl NestedResult {
    /// Returns how long it took.
    pub fn millis(&self) -> i64 {
        (self.ended_ms - self.began_ms).max(0)
    }
}

/// An answer of the executor.
#[derive(Debug)]
pub struct NestedAnswer {
    pub result: Result<Value, StepError>,
    pub wrapped: Option<Value>,
    /// When it ended, where the journal knows.
    pub ended_ms: Option<i64>,
    pub path: String,
}

/// Where a step meets the executor of its run.
#[derive(Debug, Default)]
pub struct NestedSteps {
    asked: RefCell<VecDeque<(u64, NestedRequest)>>,
    answered: RefCell<HashMap<u64, NestedAnswer>>,
    last: Cell<u64>,
    /// When the outer step began, or the last of what is answered ended.
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

    /// Has steps performed, at most `limit` concurrently, and returns their results in order.
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

/// Turns what a flow would see of a failed step into what a step sees of one inside it.
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
        // It is the place of the outer step that a person wants.
        place: None,
        ..error
    }
}
