//! Compensations: functions that a flow registered to be called when its run fails or is cancelled, last first.
//!
//! Each has its own branch in the journal, named after the place that registered it, so that a crash part-way neither
//! repeats nor skips one.

use flowstone_lang::value::{Class, Exception, Value};

use super::branch::Branch;
use super::{Ended, Executor};
use crate::codec;
use crate::error::EngineError;
use crate::journal::{COMPENSATE, ON_CANCEL};
use crate::observer::RunEvent;
use crate::ports::EntryKind;
use crate::state::End;

/// A function to call when the run does not complete.
#[derive(Debug, Clone)]
pub(super) struct Compensation {
    when: When,
    /// Its path in the journal.
    path: String,
    function: Value,
    args: Vec<Value>,
}

/// The event for which a function is registered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum When {
    Cancelled,
    /// The run fails or is cancelled.
    Compensated,
}

impl When {
    fn what(self) -> &'static str {
        match self {
            When::Cancelled => ON_CANCEL,
            When::Compensated => COMPENSATE,
        }
    }
}

/// The end of the compensations.
pub(super) enum Compensated {
    All,
    /// The execution ended first: it was interrupted, or suspended.
    Left(Ended),
    /// A compensation failed.
    Stuck {
        path: String,
        why: String,
    },
}

impl Executor<'_> {
    /// Registers a compensation.
    pub(super) fn register(
        &self,
        branch: &Branch,
        when: When,
        function: Value,
        value: Option<Value>,
    ) {
        let name = match when {
            When::Cancelled => "on-cancel",
            When::Compensated => "compensate",
        };
        self.shared.count_check();
        let place = branch.next_path(name);
        let branch = match place.branch.is_empty() {
            true => String::new(),
            false => format!("{}/", place.branch),
        };
        // A function without parameters does not need the compensated value.
        let wants_value = match &function {
            Value::Fn(closure) => closure.proto.takes(1),
            _ => true,
        };
        self.compensations.borrow_mut().push(Compensation {
            when,
            path: format!("{branch}{name}/{}", place.occurrence),
            function,
            args: value.filter(|_| wants_value).into_iter().collect(),
        });
    }

    /// Returns the reason why nothing can be registered now.
    pub(super) fn refuse_register(&self) -> Option<Exception> {
        if self.facts.is_prompt {
            return Some(at_prompt());
        }
        self.is_compensating.get().then(|| {
            Exception::new(
                Class::ILLEGAL_STATE,
                "E0451",
                "the run is being compensated: nothing more can be registered",
            )
            .hint("a step of a compensation is tried again by its own `:retry`")
        })
    }

    /// Calls the registered functions in reverse order.
    pub(super) async fn compensate(&self) -> Result<Compensated, EngineError> {
        let compensations = self.compensations.take();
        if compensations.is_empty() {
            return Ok(Compensated::All);
        }
        self.is_compensating.set(true);
        self.cancel.take();
        self.shared.refuel();
        self.scope.cutoff.unwind();
        self.shared.watch_requests(None);
        let is_cancelled = self.cancelling.borrow().is_some();
        let of = |when: When| {
            compensations
                .iter()
                .rev()
                .filter(move |compensate| compensate.when == when)
        };
        if is_cancelled {
            for compensate in of(When::Cancelled) {
                match self.call_compensation(compensate).await? {
                    Ended::Value(_) => self.note_compensation(compensate, "done", None),
                    left @ (Ended::Interrupted | Ended::Suspended { .. }) => {
                        return Ok(Compensated::Left(left));
                    }
                    // The other functions and the compensations still have to run.
                    ended @ (Ended::Threw(_) | Ended::Stopped(_)) => {
                        let why = describe(&ended);
                        self.note_compensation(compensate, "failed", Some(&why));
                        self.emit(&RunEvent::Log {
                            level: "error".to_owned(),
                            message: format!("`{}` failed: {why}", compensate.path),
                            data: Value::Nil,
                        });
                    }
                }
            }
        }
        for compensate in of(When::Compensated) {
            match self.call_compensation(compensate).await? {
                Ended::Value(_) => self.note_compensation(compensate, "done", None),
                left @ (Ended::Interrupted | Ended::Suspended { .. }) => {
                    return Ok(Compensated::Left(left));
                }
                ended @ (Ended::Threw(_) | Ended::Stopped(_)) => {
                    let why = describe(&ended);
                    self.note_compensation(compensate, "failed", Some(&why));
                    let path = compensate.path.clone();
                    return Ok(Compensated::Stuck { path, why });
                }
            }
        }
        Ok(Compensated::All)
    }

    async fn call_compensation(&self, compensate: &Compensation) -> Result<Ended, EngineError> {
        let branch = Branch::alone(compensate.path.clone(), &self.branch);
        let (function, args) = (compensate.function.clone(), compensate.args.clone());
        let fiber = self.fiber_of(&branch, move |vm| {
            let value = vm.call(&function, &args)?;
            vm.realise(&value)?;
            Ok(value)
        });
        self.evaluate_on(&branch, fiber).await
    }

    /// Journals the outcome of a compensation, for reports about the run.
    fn note_compensation(&self, compensate: &Compensation, status: &str, why: Option<&str>) {
        let record = [
            ("status", Some(Value::keyword(status))),
            ("message", why.map(Value::from)),
        ];
        let record = record
            .into_iter()
            .filter_map(|(key, value)| Some((Value::keyword(key), value?)));
        let text = codec::encode(&Value::map(record)).unwrap_or_else(|_| "{}".to_owned());
        let text = self.scope.redact_strings(text);
        let known = self.shared.history.borrow_mut().take(&compensate.path);
        let is_known = known.is_some_and(
            |known| matches!(known.end(), Some(End::Value(before)) if *before == text),
        );
        if is_known || self.replay_only {
            return;
        }
        let journal = &self.shared.journal;
        let entry = journal.entry(
            EntryKind::Note,
            compensate.path.clone(),
            compensate.when.what(),
            text,
        );
        journal.append(entry);
    }
}

/// Returns the error of an operation that needs a run.
pub(super) fn at_prompt() -> Exception {
    Exception::new(
        Class::UNSUPPORTED_OPERATION,
        "E0452",
        "this is for the run of a flow; a prompt has none that ends",
    )
    .hint("put it into a flow file and start that with `flowstone run`")
}

fn describe(ended: &Ended) -> String {
    match ended {
        Ended::Threw(exception) => exception.display_text().to_owned(),
        Ended::Stopped(stop) => format!("it was stopped: {stop}"),
        Ended::Value(_) | Ended::Interrupted | Ended::Suspended { .. } => String::new(),
    }
}

/// Shares the functions of a branch with its compensations.
pub(super) type Compensations = std::cell::RefCell<Vec<Compensation>>;
