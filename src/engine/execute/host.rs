//! The world as a flow sees it: no files, no input; time and randomness from the journal.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use flowstone_lang::value::heap::HeapBudget;
use flowstone_lang::value::meter::Watch;
use flowstone_lang::value::{Class, Exception, Result as Evaluated, Stop, Value};
use flowstone_lang::vm::{Host, Request, Stream};

use super::branch::Branch;
use super::end::TOO_LONG;
use super::writer::JournalWriter;
use crate::codec;
use crate::ids::RunId;
use crate::journal::{CANCEL, Checks, History};
use crate::limits::Limits;
use crate::natives;
use crate::observer::{Observer, RunEvent};
use crate::ports::{EntryKind, Runs};
use crate::state::End;
use crate::step::Cutoff;

const QUANTUM: u32 = 200_000;
/// Interval at which a computing run checks the store for a cancellation, in milliseconds.
const POLL_EVERY_MS: i64 = 500;

/// State that the executor and the fiber's host share. No borrow of it is alive while the fiber runs.
pub(crate) struct Shared {
    pub(super) history: RefCell<History>,
    pub(super) journal: JournalWriter,
    polled_ms: Cell<i64>,
    /// The last time that the flow received.
    last_now_ms: Cell<i64>,
    /// Number of outcomes produced for the journal in this execution.
    sequences: Cell<u64>,
    /// Units of native work since the last check for a cancellation.
    worked: Cell<u64>,
    /// The progress of the flow through its journal.
    checks: Cell<Checks>,
    /// Where to look for a request to cancel the run; `None` while cancellation is not checked.
    requests: RefCell<Option<CancelRequests>>,
    /// The place of the next answer in the journal for another branch.
    next: Cell<usize>,
    /// Why native work was stopped to unwind the run; taken by the executor.
    cancel: RefCell<Option<String>>,
    cutoff: Cutoff,
    /// The memory budget of the run's values.
    pub(super) heap: Rc<HeapBudget>,
}

impl Shared {
    pub(super) fn new(
        history: History,
        journal: JournalWriter,
        limits: Limits,
        cutoff: Cutoff,
    ) -> Shared {
        journal.usage().bound(limits);
        cutoff.renew_instructions(limits.fuel);
        Shared {
            history: RefCell::new(history),
            journal,
            polled_ms: Cell::new(0),
            last_now_ms: Cell::new(i64::MIN),
            sequences: Cell::new(0),
            worked: Cell::new(0),
            checks: Cell::default(),
            requests: RefCell::default(),
            next: Cell::new(usize::MAX),
            cancel: RefCell::default(),
            cutoff,
            heap: Rc::new(HeapBudget::new(limits.memory)),
        }
    }

    /// Renews the limits of the run, for work after its flow.
    pub(super) fn refuel(&self) {
        let usage = self.journal.usage();
        self.cutoff.renew_instructions(usage.limits().fuel);
        usage.renew();
    }

    /// Returns the sequence number of the next outcome for the journal.
    pub(super) fn next_sequence(&self) -> u64 {
        let sequence = self.sequences.get() + 1;
        self.sequences.set(sequence);
        sequence
    }

    /// Tells whether it is time to poll the store.
    pub(super) fn poll_is_due(&self, now_ms: i64) -> bool {
        if now_ms - self.polled_ms.get() < POLL_EVERY_MS {
            return false;
        }
        self.polled_ms.set(now_ms);
        true
    }

    /// Returns the journaled note, or journals the value that `make` returns now. `None`: the note cannot be read.
    pub(super) fn note(
        &self,
        branch: &Branch,
        what: &str,
        make: impl FnOnce() -> Value,
    ) -> Option<Value> {
        let path = branch.next_path(what).to_string();
        self.count_use();
        if let Some(recorded) = self.history.borrow_mut().take(&path) {
            return match recorded.end() {
                Some(End::Value(text)) => codec::decode(text).ok(),
                _ => None,
            };
        }
        let value = make();
        let text = codec::encode(&value).ok()?;
        let entry = self.journal.entry(EntryKind::Note, path, what, text);
        self.journal.append(entry);
        Some(value)
    }

    /// Tells whether the journal has entries that are not committed.
    pub(super) fn has_pending(&self) -> bool {
        self.journal.has_pending()
    }

    /// Records a line of the log; returns whether it is new.
    pub(super) fn record_line(
        &self,
        branch: &Branch,
        what: &str,
        record: &Value,
    ) -> Evaluated<bool> {
        let path = branch.next_path(what).to_string();
        self.count_use();
        if self.history.borrow_mut().take(&path).is_some() {
            return Ok(false);
        }
        let text = codec::encode(record).map_err(|error| {
            Exception::new(
                Class::ILLEGAL_ARGUMENT,
                error.code(),
                format!("`{what}` cannot keep this: {error}"),
            )
        })?;
        self.journal.usage().wrote(text.len());
        let entry = self.journal.entry(EntryKind::Log, path, what, text);
        self.journal.append(entry);
        Ok(true)
    }

    /// Returns the journaled time, or journals the current one. It never decreases within a run, even if the machine's
    /// clock does.
    pub(super) fn now_ms(&self, branch: &Branch) -> i64 {
        let last = self.last_now_ms.get();
        let now = self.note(branch, "flow/now", || {
            Value::Int(self.journal.clock().now_ms().max(last))
        });
        let now = now.and_then(|now| now.as_int()).unwrap_or(0);
        self.last_now_ms.set(now.max(last));
        now
    }
}

impl Shared {
    /// Sets the place of the next answer in the journal for a branch other than the running one.
    pub(super) fn set_next(&self, place: Option<usize>) {
        self.next.set(place.unwrap_or(usize::MAX));
    }

    /// Takes the reason for which native work was stopped to unwind the run.
    pub(super) fn take_cancel(&self) -> Option<String> {
        self.cancel.take()
    }

    /// Counts a use of the journal, or an answer from it. Nested steps do not count, because a replay does not request
    /// them again.
    pub(super) fn count_use(&self) {
        self.worked.set(0);
        let uses = self.checks.get().uses + 1;
        self.checks.set(Checks { uses, checks: 0 });
    }

    /// Counts a check for a cancellation, or an operation that must be on the same side of the cancellation in every
    /// replay.
    pub(super) fn count_check(&self) {
        let Checks { uses, checks } = self.checks.get();
        let checks = checks + 1;
        self.checks.set(Checks { uses, checks });
    }

    /// Returns the progress of the flow.
    pub(super) fn reached(&self) -> Checks {
        self.checks.get()
    }

    /// Starts or stops checking for a request to cancel the run during native work.
    pub(super) fn watch_requests(&self, requests: Option<CancelRequests>) {
        self.requests.replace(requests);
    }

    /// Records in the journal that the cancellation is delivered to the flow. `reached`: where, if it computes.
    pub(super) fn append_cancel(&self, reason: &str, reached: Option<Checks>) {
        let count = |key, count| (Value::keyword(key), Value::Int(count));
        let reached = reached.into_iter().flat_map(|Checks { uses, checks }| {
            [("uses", uses), ("checks", checks)].map(|(key, value)| count(key, value.cast_signed()))
        });
        let reason = (Value::keyword("reason"), Value::from(reason));
        let note = Value::map([reason].into_iter().chain(reached));
        let text = codec::encode(&note).unwrap_or_else(|_| "{}".to_owned());
        let entry = self
            .journal
            .entry(EntryKind::Note, CANCEL.to_owned(), CANCEL, text);
        self.journal.append(entry);
    }

    /// Stops native work like the run's turns would: at the place in the journal, and at the deadline. Checks as often
    /// as a computing run takes turns, so that a replay finds the same place.
    fn check_cancel(&self, units: u64) -> Evaluated<(), Stop> {
        let worked = self.worked.get().saturating_add(units);
        if worked < u64::from(QUANTUM) {
            self.worked.set(worked);
            return Ok(());
        }
        self.worked.set(0);
        self.count_check();
        let Ok(mut history) = self.history.try_borrow_mut() else {
            return Ok(());
        };
        let next = self.next.get();
        let recorded = history.take_cancel_at(self.reached(), next);
        let is_live = history.is_empty() && next == usize::MAX && !history.has_later_cancel();
        drop(history);
        let reason = match recorded {
            Some(reason) => reason,
            None if is_live => {
                let late = self.cutoff.is_late().then(|| TOO_LONG.to_owned());
                let Some(reason) = late.or_else(|| self.requested()) else {
                    return Ok(());
                };
                self.append_cancel(&reason, Some(self.reached()));
                reason
            }
            None => return Ok(()),
        };
        self.cutoff.unwind();
        self.watch_requests(None);
        self.cancel.replace(Some(reason));
        Err(Stop::Cancelled)
    }
}

impl Shared {
    /// Returns the reason of a request to cancel the run, if the store answers at once, because native work cannot
    /// wait.
    fn requested(&self) -> Option<String> {
        let requests = self.requests.try_borrow().ok()?;
        let CancelRequests { runs, run } = requests.as_ref()?;
        if !self.poll_is_due(self.journal.clock().now_ms()) {
            return None;
        }
        let mut found = runs.find(run);
        match found.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(row) => row.ok()??.cancel_requested,
            Poll::Pending => None,
        }
    }
}

/// The source of requests to cancel a run.
pub(super) struct CancelRequests {
    pub runs: Arc<dyn Runs>,
    pub run: RunId,
}

impl Watch for Shared {
    fn check_interrupt(&self) -> Evaluated<(), Stop> {
        match self.cutoff.is_suspended() {
            true => Err(Stop::Evicted),
            false => Ok(()),
        }
    }

    fn spend(&self, units: u64) -> Evaluated<(), Stop> {
        self.heap.check()?;
        if self.cutoff.is_suspended() {
            return Err(Stop::Evicted);
        }
        self.check_cancel(units)?;
        self.cutoff.take_instructions(units)
    }
}

pub(super) struct FlowHost {
    shared: Rc<Shared>,
    branch: Rc<Branch>,
    run: RunId,
    observer: Rc<dyn Observer>,
    cutoff: Cutoff,
}

impl FlowHost {
    pub(super) fn new(
        shared: Rc<Shared>,
        branch: Rc<Branch>,
        run: RunId,
        observer: Rc<dyn Observer>,
        cutoff: Cutoff,
    ) -> FlowHost {
        FlowHost {
            shared,
            branch,
            run,
            observer,
            cutoff,
        }
    }
}

const NO_FILES: &str = "a flow has no files of its own; use a `:files` step";

impl Host for FlowHost {
    fn refill(&mut self) -> Evaluated<u32, Stop> {
        self.shared.heap.check()?;
        self.cutoff.take_instructions(u64::from(QUANTUM))?;
        Ok(QUANTUM)
    }

    fn watch(&self) -> Option<Rc<dyn Watch>> {
        Some(self.shared.clone())
    }

    fn room_for(&mut self, bytes: usize) -> Evaluated<(), Stop> {
        self.shared.heap.room_for(bytes)
    }

    fn write(&mut self, _stream: Stream, text: &str) -> Result<(), String> {
        self.shared.journal.usage().wrote(text.len());
        // Text that was printed before the run was interrupted has been shown already.
        let is_new = self.cutoff.note_printed();
        if is_new && self.shared.history.borrow().is_empty() {
            let text = text.to_owned();
            self.observer.event(&self.run, &RunEvent::Printed { text });
        }
        Ok(())
    }

    fn read_line(&mut self) -> Result<Option<String>, String> {
        Err("a flow has no standard input; take it as run input, or use a `:wait` step".to_owned())
    }

    fn now_millis(&mut self) -> Evaluated<i64> {
        Ok(self.shared.now_ms(&self.branch))
    }

    fn now_nanos(&mut self) -> Evaluated<i64> {
        Ok(self.shared.now_ms(&self.branch).saturating_mul(1_000_000))
    }

    fn random(&mut self) -> Evaluated<u64> {
        Ok(self.branch.random(&self.shared.history.borrow()))
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

    fn suspend(&mut self, _request: Request) -> Evaluated<Value> {
        Err(Stop::Interrupted("a fiber suspended without a request".to_owned()).into())
    }

    fn touch_session(&mut self) -> Evaluated<(), Stop> {
        self.cutoff.touch_session()
    }

    fn yield_request(&mut self) -> Option<Request> {
        (!self.branch.is_main()).then(|| Request::new(natives::Request::Turn))
    }

    fn sleep(&mut self, _millis: u64) -> Evaluated<()> {
        Err(Exception::new(
            Class::UNSUPPORTED_OPERATION,
            "E0518",
            "a flow cannot sleep outside of a step",
        )
        .hint("use a step: `(flow/step :sleep :pause {:duration \"5s\"})`")
        .into())
    }
}
