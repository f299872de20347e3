//! Undoing: what a flow said to do when its run fails or is cancelled, the last thing first.
//!
//! Each has a branch of its own in the journal, named after the place that registered it, so that a crash in the
//! middle neither repeats nor forgets one.

use flowstone_lang::value::{Class, Exception, Value};

use super::line::Line;
use super::{Driver, Ended};
use crate::codec;
use crate::error::EngineError;
use crate::history::{COMPENSATE, ON_CANCEL};
use crate::observer::RunEvent;
use crate::ports::EntryKind;
use crate::state::End;

/// Something to do when the run does not complete.
#[derive(Debug, Clone)]
pub(super) struct Undo {
    when: When,
    /// Where it stands in the journal.
    path: String,
    function: Value,
    args: Vec<Value>,
}

/// What it is to be done for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum When {
    Cancelled,
    /// Failed or cancelled.
    Undone,
}

impl When {
    fn what(self) -> &'static str {
        match self {
            When::Cancelled => ON_CANCEL,
            When::Undone => COMPENSATE,
        }
    }
}

/// How far undoing came.
pub(super) enum Undone {
    All,
    /// The drive ends before: interrupted, or parked.
    Left(Ended),
    /// One failed.
    Stuck {
        path: String,
        why: String,
    },
}

impl Driver<'_> {
    /// Remembers something to undo.
    pub(super) fn register(&self, line: &Line, when: When, function: Value, value: Option<Value>) {
        let name = match when {
            When::Cancelled => "on-cancel",
            When::Undone => "compensate",
        };
        let place = line.next_path(name);
        let branch = match place.branch.is_empty() {
            true => String::new(),
            false => format!("{}/", place.branch),
        };
        // A function without parameters does not ask what it undoes.
        let wants_value = match &function {
            Value::Fn(closure) => closure.proto.takes(1),
            _ => true,
        };
        self.undos.borrow_mut().push(Undo {
            when,
            path: format!("{branch}{name}/{}", place.occurrence),
            function,
            args: value.filter(|_| wants_value).into_iter().collect(),
        });
    }

    /// Says why nothing can be registered now.
    pub(super) fn refuse_register(&self) -> Option<Exception> {
        if self.facts.is_prompt {
            return Some(at_prompt());
        }
        self.is_undoing.get().then(|| {
            Exception::new(
                Class::ILLEGAL_STATE,
                "E0451",
                "the run is being undone: there is nothing more to register",
            )
            .hint("a step of a compensation is tried again by its own `:retry`")
        })
    }

    /// Does what was registered, in reverse.
    pub(super) async fn undo(&self) -> Result<Undone, EngineError> {
        let undos = self.undos.take();
        if undos.is_empty() {
            return Ok(Undone::All);
        }
        self.is_undoing.set(true);
        self.cancel.take();
        self.shared.refuel();
        let is_cancelled = self.cancelling.borrow().is_some();
        let of = |when: When| undos.iter().rev().filter(move |undo| undo.when == when);
        if is_cancelled {
            for undo in of(When::Cancelled) {
                match self.call_undo(undo).await? {
                    Ended::Value(_) => self.note_undo(undo, "done", None),
                    left @ (Ended::Interrupted | Ended::Parked { .. }) => {
                        return Ok(Undone::Left(left));
                    }
                    // The others are to have their turn, and the compensations.
                    ended @ (Ended::Threw(_) | Ended::Stopped(_)) => {
                        let why = words(&ended);
                        self.note_undo(undo, "failed", Some(&why));
                        self.emit(&RunEvent::Log {
                            level: "error".to_owned(),
                            message: format!("`{}` failed: {why}", undo.path),
                            data: Value::Nil,
                        });
                    }
                }
            }
        }
        for undo in of(When::Undone) {
            match self.call_undo(undo).await? {
                Ended::Value(_) => self.note_undo(undo, "done", None),
                left @ (Ended::Interrupted | Ended::Parked { .. }) => {
                    return Ok(Undone::Left(left));
                }
                ended @ (Ended::Threw(_) | Ended::Stopped(_)) => {
                    let why = words(&ended);
                    self.note_undo(undo, "failed", Some(&why));
                    let path = undo.path.clone();
                    return Ok(Undone::Stuck { path, why });
                }
            }
        }
        Ok(Undone::All)
    }

    async fn call_undo(&self, undo: &Undo) -> Result<Ended, EngineError> {
        let line = Line::alone(undo.path.clone(), &self.line);
        let (function, args) = (undo.function.clone(), undo.args.clone());
        let fiber = self.fiber_of(&line, move |vm| {
            let value = vm.call(&function, &args)?;
            vm.realise(&value)?;
            Ok(value)
        });
        self.evaluate_on(&line, fiber).await
    }

    /// Journals what became of one, for whoever looks at the run.
    fn note_undo(&self, undo: &Undo, status: &str, why: Option<&str>) {
        let said = [
            ("status", Some(Value::keyword(status))),
            ("message", why.map(Value::from)),
        ];
        let said = said
            .into_iter()
            .filter_map(|(key, value)| Some((Value::keyword(key), value?)));
        let text = codec::encode(&Value::map(said)).unwrap_or_else(|_| "{}".to_owned());
        let text = self.scope.redact_strings(text);
        let known = self.shared.history.borrow_mut().take(&undo.path);
        let is_known = known.is_some_and(
            |known| matches!(known.end(), Some(End::Value(before)) if *before == text),
        );
        if is_known || self.replay_only {
            return;
        }
        let ledger = &self.shared.ledger;
        let entry = ledger.entry(EntryKind::Note, undo.path.clone(), undo.when.what(), text);
        ledger.append(entry);
    }
}

/// Says that something needs a run.
pub(super) fn at_prompt() -> Exception {
    Exception::new(
        Class::UNSUPPORTED_OPERATION,
        "E0452",
        "this is for the run of a flow; a prompt has none that ends",
    )
    .hint("put it into a flow file and start that with `flowstone run`")
}

fn words(ended: &Ended) -> String {
    match ended {
        Ended::Threw(exception) => exception.shown().to_owned(),
        Ended::Stopped(stop) => format!("it was stopped: {stop}"),
        Ended::Value(_) | Ended::Interrupted | Ended::Parked { .. } => String::new(),
    }
}

/// Shares a line's functions with what undoes it.
pub(super) type Undos = std::cell::RefCell<Vec<Undo>>;
