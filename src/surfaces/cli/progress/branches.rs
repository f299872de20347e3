//! Counts how many of a run's branches have ended.

use std::collections::HashMap;
use std::time::Instant;

use flowstone_engine::ids::{RunId, StepPath};
use indicatif::ProgressBar;

/// From this many branches on, their end is reported on a separate line.
const MANY: usize = 8;

/// The active branches, by run and path.
#[derive(Default)]
pub(super) struct Counters {
    open: HashMap<(RunId, String), Counter>,
}

struct Counter {
    done: usize,
    total: usize,
    started: Instant,
    /// Whether a step in them was performed, not answered from the journal.
    is_live: bool,
    bar: Option<ProgressBar>,
}

/// The counts and the duration of branches that ended.
pub(super) struct Ended {
    pub done: usize,
    pub total: usize,
    pub millis: i64,
}

impl Counters {
    /// Records how many branches have ended. `bar` creates the live line for the first record of these branches.
    pub fn count(
        &mut self,
        run: &RunId,
        path: &str,
        (done, total): (usize, usize),
        bar: impl FnOnce() -> Option<ProgressBar>,
    ) {
        let key = (run.clone(), path.to_owned());
        let counter = self.open.entry(key).or_insert_with(|| Counter {
            done,
            total,
            started: Instant::now(),
            is_live: false,
            bar: bar(),
        });
        counter.done = done;
        if let Some(bar) = &counter.bar {
            super::say(bar, &format!("{done} of {total}"));
        }
    }

    /// Records that a step is performed in them.
    pub fn performed(&mut self, run: &RunId, step: &StepPath) {
        for ((of, path), counter) in &mut self.open {
            let rest = step.branch.strip_prefix(path.as_str());
            counter.is_live |= of == run && rest.is_some_and(|rest| rest.starts_with('.'));
        }
    }

    /// Removes branches that ended. Returns their counts if those are worth a line.
    pub fn ended(&mut self, run: &RunId, path: &str) -> Option<Ended> {
        let counter = self.open.remove(&(run.clone(), path.to_owned()))?;
        counter.clear();
        let is_shown = counter.is_live && counter.total >= MANY;
        is_shown.then(|| Ended {
            done: counter.done,
            total: counter.total,
            millis: i64::try_from(counter.started.elapsed().as_millis()).unwrap_or(i64::MAX),
        })
    }

    /// Removes all live lines.
    pub fn clear(&mut self) {
        for (_, counter) in self.open.drain() {
            counter.clear();
        }
    }
}

impl Counter {
    fn clear(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
