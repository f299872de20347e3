//! The runs whose feeds have readers: after a commit, only the readers of runs with new rows are woken.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rusqlite::Connection;
use tokio::sync::watch;

use super::feed;

/// The readers of feeds, by the number of the run.
#[derive(Default)]
pub(super) struct Watched(Mutex<Readers>);

#[derive(Default)]
struct Readers {
    runs: HashMap<i64, watch::Sender<u64>>,
    /// The position up to which readers were woken.
    position: Option<i64>,
}

impl Watched {
    /// Adds a reader of a run.
    pub(super) fn watch(&self, run: i64) -> watch::Receiver<u64> {
        let mut readers = self.lock();
        let sender = readers.runs.entry(run);
        sender.or_insert_with(|| watch::Sender::new(0)).subscribe()
    }

    /// Tells whether there are no readers, and forgets the runs without any.
    pub(super) fn is_empty(&self) -> bool {
        let mut readers = self.lock();
        readers.runs.retain(|_, sender| sender.receiver_count() > 0);
        readers.runs.is_empty()
    }

    /// Wakes the readers of the runs that have new rows.
    pub(super) fn committed(&self, db: &Connection) {
        if self.is_empty() {
            self.lock().position = None;
            return;
        }
        let mut readers = self.lock();
        // If the changed runs are unknown, all readers check for new rows.
        let changed = match readers.position {
            Some(position) => feed::runs_after(db, position).ok(),
            None => None,
        };
        readers.position = match &changed {
            Some((_, position)) => Some(*position),
            None => feed::last_position(db).ok(),
        };
        match changed {
            Some((runs, _)) => runs
                .iter()
                .filter_map(|run| readers.runs.get(run))
                .for_each(wake),
            None => readers.runs.values().for_each(wake),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Readers> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn wake(reader: &watch::Sender<u64>) {
    reader.send_modify(|count| *count = count.wrapping_add(1));
}
