//! The queue of spans, and the thread that sends them.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use flowstone_engine::ports::FinishedSpan;

use super::send;
use super::settings::Settings;

/// How often the log says that a collector does not take spans.
const COMPLAIN_EVERY: Duration = Duration::from_secs(60);

/// Spans that wait to be sent.
pub(super) struct Queue {
    settings: Arc<Settings>,
    state: Mutex<State>,
    /// Changes with what waits, and with what was sent.
    changed: Condvar,
    dropped: AtomicU64,
}

#[derive(Default)]
struct State {
    spans: VecDeque<FinishedSpan>,
    /// When the first of them came.
    since: Option<Instant>,
    is_started: bool,
    is_sending: bool,
    is_flushing: bool,
}

impl Queue {
    pub(super) fn new(settings: Arc<Settings>) -> Queue {
        Queue {
            settings,
            state: Mutex::default(),
            changed: Condvar::new(),
            dropped: AtomicU64::new(0),
        }
    }

    /// Adds spans, as far as there is room.
    pub(super) fn add(queue: &Arc<Queue>, mut spans: Vec<FinishedSpan>) {
        let mut state = queue.lock();
        let room = queue.settings.queue.saturating_sub(state.spans.len());
        if spans.len() > room {
            queue.lose(spans.len() - room);
            spans.truncate(room);
        }
        if spans.is_empty() {
            return;
        }
        let is_first = state.spans.is_empty();
        state.since.get_or_insert_with(Instant::now);
        state.spans.extend(spans);
        let is_full = state.spans.len() >= queue.settings.batch;
        if !state.is_started {
            state.is_started = true;
            let sending = queue.clone();
            let thread = std::thread::Builder::new().name("telemetry".to_owned());
            if thread.spawn(move || sending.work()).is_err() {
                state.is_started = false;
                queue.lose(state.spans.len());
                state.spans.clear();
            }
        } else if is_first || is_full {
            queue.changed.notify_all();
        }
    }

    pub(super) fn lose(&self, count: usize) {
        let count = u64::try_from(count).unwrap_or(u64::MAX);
        self.dropped.fetch_add(count, Ordering::Relaxed);
    }

    pub(super) fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    /// Waits until nothing is left to be sent, at most for some time.
    pub(super) fn flush(&self, bound: Duration) {
        let end = Instant::now() + bound;
        let mut state = self.lock();
        state.is_flushing = true;
        self.changed.notify_all();
        while state.is_started && (state.is_sending || !state.spans.is_empty()) {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                self.lose(state.spans.len());
                state.spans.clear();
                break;
            }
            state = match self.changed.wait_timeout(state, left) {
                Ok((state, _)) => state,
                Err(poisoned) => poisoned.into_inner().0,
            };
        }
        state.is_flushing = false;
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends batches for as long as the process lives.
    fn work(&self) {
        let mut sender = send::Sender::new(self.settings.clone());
        let mut complained: Option<Instant> = None;
        loop {
            let batch = self.next();
            let sent = match &mut sender {
                Ok(sender) => sender.send(&batch),
                Err(error) => Err(error.clone()),
            };
            if let Err(error) = sent {
                self.lose(batch.len());
                let is_due = complained.is_none_or(|at| at.elapsed() >= COMPLAIN_EVERY);
                if is_due {
                    complained = Some(Instant::now());
                    tracing::warn!(target: "flowstone::telemetry", %error, spans = batch.len(), "spans are dropped");
                }
            }
            let mut state = self.lock();
            state.is_sending = false;
            self.changed.notify_all();
        }
    }

    /// Waits for a batch: until it is full, the first of it has waited for long enough, or somebody waits for the end.
    fn next(&self) -> Vec<FinishedSpan> {
        let Settings { batch, delay, .. } = *self.settings;
        let mut state = self.lock();
        loop {
            let waited = state.since.map_or(Duration::ZERO, |since| since.elapsed());
            let is_due = state.is_flushing || state.spans.len() >= batch || waited >= delay;
            if is_due && !state.spans.is_empty() {
                let count = state.spans.len().min(batch);
                let taken = state.spans.drain(..count).collect();
                state.since = (!state.spans.is_empty()).then(Instant::now);
                state.is_sending = true;
                return taken;
            }
            let left = match state.spans.is_empty() {
                true => Duration::from_secs(3600),
                false => delay.saturating_sub(waited),
            };
            state = match self.changed.wait_timeout(state, left) {
                Ok((state, _)) => state,
                Err(poisoned) => poisoned.into_inner().0,
            };
        }
    }
}
