//! The world as a flow sees it: no files, no input; time and randomness from the journal.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

use flowstone_lang::value::{Class, Exception, Object, Result as Evaluated, Stop, Value};
use flowstone_lang::vm::{Host, Stream};

use super::journal::Ledger;
use crate::codec;
use crate::history::{End, History};
use crate::ids::{RunId, StepPath};
use crate::observer::{Observer, RunEvent};
use crate::ports::{EntryKind, mix};

const QUANTUM: u32 = 200_000;
/// How often a computing run asks the store whether it is to be cancelled.
const LOOK_EVERY_MS: i64 = 500;

/// What the driver and the fiber's host both use. No borrow of it is alive while the fiber runs.
pub(crate) struct Shared {
    pub(super) history: RefCell<History>,
    pub(super) ledger: Ledger,
    /// How often each step id was met, by branch.
    counters: RefCell<HashMap<String, u32>>,
    seed: u64,
    draws: Cell<u64>,
    looked_ms: Cell<i64>,
    /// What the flow was told last when it asked for the time.
    last_now_ms: Cell<i64>,
}

impl Shared {
    pub(super) fn new(history: History, ledger: Ledger, seed: u64) -> Shared {
        Shared {
            history: RefCell::new(history),
            ledger,
            counters: RefCell::default(),
            seed,
            draws: Cell::new(0),
            looked_ms: Cell::new(0),
            last_now_ms: Cell::new(i64::MIN),
        }
    }

    /// Returns the path of the next occurrence of a step id.
    pub(super) fn next_path(&self, step: &str) -> StepPath {
        let mut counters = self.counters.borrow_mut();
        let count = counters.entry(step.to_owned()).or_default();
        *count += 1;
        StepPath {
            branch: String::new(),
            step: step.to_owned(),
            occurrence: *count,
        }
    }

    /// Tells whether it is time to ask the store for news.
    pub(super) fn look_is_due(&self, now_ms: i64) -> bool {
        if now_ms - self.looked_ms.get() < LOOK_EVERY_MS {
            return false;
        }
        self.looked_ms.set(now_ms);
        true
    }

    /// Returns what was noted the first time, or notes what `make` gives now. `None`: the note cannot be read.
    pub(super) fn note(&self, what: &str, make: impl FnOnce() -> Value) -> Option<Value> {
        let path = self.next_path(what).to_string();
        if let Some(recorded) = self.history.borrow_mut().take(&path) {
            return match recorded.end {
                Some(End::Value(text)) => codec::decode(&text).ok(),
                _ => None,
            };
        }
        let value = make();
        let text = codec::encode(&value).ok()?;
        let entry = self.ledger.entry(EntryKind::Note, path, what, text);
        self.ledger.append(entry);
        Some(value)
    }

    /// Tells whether something was added to the journal that is not committed.
    pub(super) fn has_pending(&self) -> bool {
        self.ledger.has_pending()
    }

    /// Notes a line of the log; tells whether it is new.
    pub(super) fn record_line(&self, what: &str, line: &Value) -> Evaluated<bool> {
        let path = self.next_path(what).to_string();
        if self.history.borrow_mut().take(&path).is_some() {
            return Ok(false);
        }
        let text = codec::encode(line).map_err(|error| {
            Exception::new(
                Class::ILLEGAL_ARGUMENT,
                error.code(),
                format!("`{what}` cannot keep this: {error}"),
            )
        })?;
        let entry = self.ledger.entry(EntryKind::Log, path, what, text);
        self.ledger.append(entry);
        Ok(true)
    }

    /// Returns the time as it was noted, or notes it. It does not go back within a run, whatever the machine's does.
    pub(super) fn now_ms(&self) -> i64 {
        let last = self.last_now_ms.get();
        let now = self.note("flow/now", || {
            Value::Int(self.ledger.clock().now_ms().max(last))
        });
        let now = now.and_then(|now| now.as_int()).unwrap_or(0);
        self.last_now_ms.set(now.max(last));
        now
    }

    /// Returns the next bits of the run's own random sequence: the same on replay, without a journal entry.
    pub(super) fn random(&self) -> u64 {
        let draw = self.draws.get() + 1;
        self.draws.set(draw);
        mix(self
            .seed
            .wrapping_add(draw.wrapping_mul(0x9e37_79b9_7f4a_7c15)))
    }

    pub(super) fn uuid(&self) -> Value {
        let bits = (u128::from(self.random()) << 64) | u128::from(self.random());
        let version = (bits & !(0xf << 76)) | (4 << 76);
        Object::Uuid((version & !(0b11 << 62)) | (0b10 << 62)).into()
    }

    pub(super) fn fraction(&self) -> Value {
        Value::Float((self.random() >> 11) as f64 / (1_u64 << 53) as f64)
    }
}

pub(super) struct FlowHost {
    shared: Rc<Shared>,
    run: RunId,
    observer: Rc<dyn Observer>,
    fuel_left: u64,
}

impl FlowHost {
    pub(super) fn new(
        shared: Rc<Shared>,
        run: RunId,
        observer: Rc<dyn Observer>,
        fuel: u64,
    ) -> FlowHost {
        FlowHost {
            shared,
            run,
            observer,
            fuel_left: fuel,
        }
    }
}

const NO_FILES: &str = "a flow has no files of its own; use a `:files` step";

impl Host for FlowHost {
    fn refill(&mut self) -> Evaluated<u32, Stop> {
        match self.fuel_left.checked_sub(u64::from(QUANTUM)) {
            Some(left) => {
                self.fuel_left = left;
                Ok(QUANTUM)
            }
            None => Err(Stop::OutOfFuel),
        }
    }

    fn write(&mut self, _stream: Stream, text: &str) -> Result<(), String> {
        // What was printed before the run was interrupted has been seen.
        if self.shared.history.borrow().is_empty() {
            let text = text.to_owned();
            self.observer.event(&self.run, &RunEvent::Printed { text });
        }
        Ok(())
    }

    fn read_line(&mut self) -> Result<Option<String>, String> {
        Err("a flow has no standard input; take it as run input, or use a `:wait` step".to_owned())
    }

    fn now_millis(&mut self) -> Evaluated<i64> {
        Ok(self.shared.now_ms())
    }

    fn now_nanos(&mut self) -> Evaluated<i64> {
        Ok(self.shared.now_ms().saturating_mul(1_000_000))
    }

    fn random(&mut self) -> Evaluated<u64> {
        Ok(self.shared.random())
    }

    fn read_file(&mut self, _path: &str) -> Result<String, String> {
        Err(NO_FILES.to_owned())
    }

    fn write_file(&mut self, _path: &str, _text: &str, _append: bool) -> Result<(), String> {
        Err(NO_FILES.to_owned())
    }

    fn find_source(&mut self, _namespace: &str) -> Option<(String, String)> {
        None
    }

    fn suspend(&mut self, _request: Value) -> Evaluated<Value> {
        Err(Stop::Interrupted("a fiber suspends by itself".to_owned()).into())
    }

    fn sleep(&mut self, _millis: u64) -> Evaluated<()> {
        Err(Exception::new(
            Class::UNSUPPORTED_OPERATION,
            "E0518",
            "a flow cannot sleep by itself",
        )
        .hint("use a step: `(flow/step :sleep :pause {:duration \"5s\"})`")
        .into())
    }
}
