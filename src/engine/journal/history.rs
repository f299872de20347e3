//! A run's journal by path, from which replay takes its answers.

use std::collections::HashMap;

use flowstone_lang::value::Value;

use crate::codec;
use crate::ports::{Entry, EntryKind};
use crate::state::{End, Progress};

/// The path of the note that the cancellation was delivered to the flow.
pub(crate) const CANCEL: &str = "flow/cancel";

/// The path of the note that a run was forked there, with the seed of its random numbers from then on.
pub(crate) const FORK: &str = "flow/fork";

/// The `what` of notes that a person changed the config of a step before it was performed.
pub(crate) const CHANGED: &str = "flow/changed";

/// Returns the path of the note that the config of a step was changed.
pub(crate) fn changed_path(step: &str) -> String {
    format!("{CHANGED} {step}")
}

/// The `what` of entries about the compensation of a step.
pub(crate) const COMPENSATE: &str = "flow/compensate";
/// The `what` of entries about `flow/on-cancel`.
pub(crate) const ON_CANCEL: &str = "flow/on-cancel";

/// Returns the entry that makes a failed compensation be tried again.
pub(crate) fn retry_compensation(entries: &[Entry], at_ms: i64) -> Option<Entry> {
    let last = entries
        .iter()
        .rfind(|entry| entry.what == COMPENSATE && entry.kind == EntryKind::Note)?;
    Some(Entry {
        kind: EntryKind::Signal,
        payload: "{:action :retry}".to_owned(),
        at_ms,
        ..last.clone()
    })
}

/// The journal of a run, by path.
#[derive(Debug, Default)]
pub(crate) struct History {
    paths: HashMap<String, Recorded>,
    /// The entries of another run, which answer requests that are the same.
    reusable: HashMap<String, Recorded>,
    finished: usize,
    cancel: Option<Cancel>,
    /// Number of paths that ended before the cancellation and were not requested again yet.
    before_cancel: usize,
    /// The fork points of the run, in the order of the journal.
    forks: Vec<Fork>,
    /// Number of fork points before the latest request.
    reached: usize,
    /// The configs that a person gave steps, as EDN text, by the path of the step.
    changes: HashMap<String, String>,
    /// The paths directly below others, once they are needed.
    below: Option<HashMap<String, Vec<String>>>,
}

/// The place at which a cancellation was delivered to the flow, and its reason.
#[derive(Debug)]
struct Cancel {
    place: usize,
    reason: String,
    delivered: DeliveredAt,
}

/// What the flow was doing when the cancellation was delivered.
#[derive(Debug)]
enum DeliveredAt {
    /// It made a request.
    Request,
    /// It was computing.
    Computing(Checks),
    /// It was computing, as earlier builds recorded it: a replay delivers the cancellation at its first check.
    FirstCheck,
}

/// The progress of a flow that computes. A replay counts the same.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Checks {
    /// How often the flow has used the journal, or received an answer from it.
    pub uses: u64,
    /// How often it has since been checked for a cancellation, or has registered a function for its end.
    pub checks: u64,
}

impl Cancel {
    fn read(place: usize, payload: &str) -> Cancel {
        let note = codec::decode(payload).unwrap_or(Value::Nil);
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let count = |key: &str| {
            note.get(key)
                .and_then(Value::as_int)
                .map(i64::cast_unsigned)
        };
        match &note {
            Value::Map(_) => Cancel {
                place,
                reason: note.get("reason").map(text).unwrap_or_default(),
                delivered: match (count("uses"), count("checks")) {
                    (Some(uses), Some(checks)) => DeliveredAt::Computing(Checks { uses, checks }),
                    _ => DeliveredAt::Request,
                },
            },
            reason => Cancel {
                place,
                reason: text(reason),
                delivered: DeliveredAt::FirstCheck,
            },
        }
    }
}

/// A fork point: the place in the journal up to which it was taken over from another run.
#[derive(Debug)]
struct Fork {
    place: usize,
    seed: u64,
    /// Number of steps that ended before it and were not requested again yet.
    before: usize,
}

/// The entries of one path.
#[derive(Debug, Default, Clone)]
pub(crate) struct Recorded {
    pub what: String,
    pub digest: String,
    pub request: Option<String>,
    pub progress: Progress,
    /// The place of its last entry in the journal.
    pub place: usize,
    /// The time of its first entry, in milliseconds since 1970.
    pub began_ms: Option<i64>,
    /// The time at which it ended, in milliseconds since 1970.
    pub ended_ms: i64,
}

impl Recorded {
    fn ended_before(&self, place: usize) -> bool {
        self.end().is_some() && self.place < place
    }

    /// Returns its end, if it has ended.
    pub(crate) fn end(&self) -> Option<&End> {
        self.progress.end()
    }

    fn is_step(&self) -> bool {
        !self.what.starts_with("flow/")
    }
}

impl History {
    pub(crate) fn new(entries: Vec<Entry>) -> History {
        let mut history = History {
            paths: HashMap::with_capacity(entries.len()),
            ..History::default()
        };
        for (place, entry) in entries.into_iter().enumerate() {
            if entry.path == CANCEL && entry.kind == EntryKind::Note {
                history.cancel = Some(Cancel::read(place, &entry.payload));
                continue;
            }
            if entry.path == FORK && entry.kind == EntryKind::Note {
                let seed = entry.payload.parse::<i64>().unwrap_or_default();
                history.forks.push(Fork {
                    place,
                    seed: seed.cast_unsigned(),
                    before: 0,
                });
                continue;
            }
            if entry.what == CHANGED && entry.kind == EntryKind::Note {
                let step = entry.path.strip_prefix(CHANGED).unwrap_or_default();
                history
                    .changes
                    .insert(step.trim_start().to_owned(), entry.payload);
                continue;
            }
            history.add(place, entry);
        }
        let paths = history.paths.values_mut();
        paths.for_each(|path| path.progress.lose_process());
        if let Some(cancel) = &history.cancel {
            let ended = history
                .paths
                .values()
                .filter(|path| path.ended_before(cancel.place));
            history.before_cancel = ended.count();
        }
        for fork in &mut history.forks {
            let steps = history.paths.values().filter(|path| path.is_step());
            fork.before = steps.filter(|path| path.ended_before(fork.place)).count();
        }
        history
    }

    /// Returns the config that a person gave a step, as EDN text.
    pub(crate) fn change(&self, step: &str) -> Option<&str> {
        self.changes.get(step).map(String::as_str)
    }

    /// Records that a step is requested, and returns the number of fork points before it: later random numbers use the
    /// seed of the last of them. `recorded` is the step's entry in the journal.
    pub(crate) fn ask(&mut self, recorded: Option<&Recorded>) -> usize {
        let lies_before = |fork: &&Fork| !recorded.is_some_and(|it| it.ended_before(fork.place));
        let passed = self.forks.iter().filter(lies_before).count();
        self.reached = self.reached.max(passed);
        passed
    }

    /// Returns the number of fork points that the whole run has passed: a later step was requested, and all earlier
    /// ones were.
    pub(crate) fn passed(&self) -> usize {
        let reached = self.forks.iter().take(self.reached);
        reached.filter(|fork| fork.before == 0).count()
    }

    /// Returns the seed of a fork point, counted from 1. Before the first fork point there is no such seed.
    pub(crate) fn fork_seed(&self, passed: usize) -> Option<u64> {
        let last = passed.checked_sub(1)?;
        self.forks.get(last).map(|fork| fork.seed)
    }

    /// Returns the seed of the last fork point.
    pub(crate) fn last_seed(&self) -> Option<u64> {
        self.fork_seed(self.forks.len())
    }

    /// Tells whether a recorded cancellation is only due after further requests.
    pub(crate) fn has_later_cancel(&self) -> bool {
        self.cancel.is_some() && self.before_cancel > 0
    }

    /// Returns the reason of the cancellation if it was delivered to the flow before the entry at `place` was made.
    pub(crate) fn take_cancel_before(&mut self, place: usize) -> Option<String> {
        let cancel = self.cancel.take_if(|cancel| cancel.place < place)?;
        Some(cancel.reason)
    }

    /// Returns the reason of the cancellation if it was delivered while the flow computed, and the flow has now reached
    /// that point. `place`: that of the next answer in the journal.
    pub(crate) fn take_cancel_at(&mut self, reached: Checks, place: usize) -> Option<String> {
        match self.cancel.as_ref()?.delivered {
            DeliveredAt::Computing(noted) if noted <= reached => {
                self.take_cancel_before(usize::MAX)
            }
            DeliveredAt::FirstCheck if !self.has_later_cancel() => self.take_cancel_before(place),
            DeliveredAt::Request | DeliveredAt::Computing(_) | DeliveredAt::FirstCheck => None,
        }
    }

    /// Tells whether every path of the journal was requested again.
    pub(crate) fn is_empty(&self) -> bool {
        self.paths.is_empty()
    }

    /// Returns a path of the journal that was not requested again.
    pub(crate) fn left(&self) -> Option<(&str, &Recorded)> {
        let mut paths: Vec<&String> = self.paths.keys().collect();
        paths.sort_unstable();
        let first = paths.first()?;
        Some((first, &self.paths[*first]))
    }

    /// Returns the steps of the journal that were not requested again, sorted.
    pub(crate) fn left_steps(&self) -> Vec<(&str, &Recorded)> {
        let steps = self.paths.iter();
        let steps = steps.filter(|(_, recorded)| !recorded.what.starts_with("flow/"));
        let mut steps: Vec<_> = steps
            .map(|(path, recorded)| (path.as_str(), recorded))
            .collect();
        steps.sort_unstable_by_key(|(path, _)| *path);
        steps
    }

    /// Returns a step that has ended and was not requested again.
    pub(crate) fn left_done(&self) -> Option<(&str, &Recorded)> {
        let mut steps = self.left_steps();
        steps.retain(|(_, recorded)| recorded.end().is_some());
        steps.into_iter().next()
    }

    /// Takes another run's record of a path.
    pub(crate) fn take_reusable(&mut self, path: &str) -> Option<Recorded> {
        self.reusable.remove(path)
    }

    /// Returns the number of steps that have ended.
    pub(crate) fn finished(&self) -> usize {
        self.finished
    }

    /// Takes the record of a path that was used, which frees its memory while the run replays.
    pub(crate) fn take(&mut self, path: &str) -> Option<Recorded> {
        let recorded = self.paths.remove(path)?;
        if let Some(cancel) = &self.cancel
            && recorded.ended_before(cancel.place)
        {
            self.before_cancel -= 1;
        }
        if recorded.is_step() {
            for fork in &mut self.forks {
                fork.before -= usize::from(recorded.ended_before(fork.place));
            }
        }
        Some(recorded)
    }

    /// Removes the nested steps of the first attempts of a step, including their own nested steps.
    pub(crate) fn take_nested(&mut self, path: &str, attempts: u32) {
        let below = self.below.get_or_insert_with(|| {
            let mut below: HashMap<String, Vec<String>> = HashMap::new();
            for path in self.paths.keys() {
                if let Some((above, _)) = path.rsplit_once('/') {
                    below
                        .entry(above.to_owned())
                        .or_default()
                        .push(path.clone());
                }
            }
            below
        });
        let places = (1..=attempts).map(|attempt| nested_prefix(path, attempt));
        let mut open: Vec<String> = places.collect();
        let mut inner = Vec::new();
        while let Some(above) = open.pop() {
            for path in below.remove(&above).unwrap_or_default() {
                // It may have nested steps of its own, in each of its attempts.
                let attempts = self
                    .paths
                    .get(&path)
                    .map_or(1, |it| it.progress.attempts.max(1));
                open.extend((1..=attempts).map(|attempt| nested_prefix(&path, attempt)));
                inner.push(path);
            }
        }
        for path in inner {
            self.take(&path);
        }
    }

    fn add(&mut self, place: usize, entry: Entry) {
        if entry.kind == EntryKind::Reuse {
            self.add_reusable(entry);
            return;
        }
        if entry.kind == EntryKind::Signal && entry.what == COMPENSATE {
            self.retry_compensation(&entry.path);
            return;
        }
        let is_step = entry.kind != EntryKind::Note;
        let recorded = self.paths.entry(entry.path).or_default();
        recorded.what = entry.what;
        recorded.digest = entry.digest;
        recorded.place = place;
        recorded.began_ms.get_or_insert(entry.at_ms);
        if matches!(entry.kind, EntryKind::Result | EntryKind::Error) {
            recorded.ended_ms = entry.at_ms;
        }
        if entry.request.is_some() {
            recorded.request = entry.request;
        }
        match entry.kind {
            EntryKind::Result => self.finished += usize::from(is_step),
            EntryKind::Error => self.finished += 1,
            EntryKind::Begin => recorded.progress.begin(&entry.payload, entry.at_ms),
            EntryKind::Intent
            | EntryKind::Timer
            | EntryKind::Draft
            | EntryKind::Cost
            | EntryKind::Signal
            | EntryKind::Note
            | EntryKind::Log
            | EntryKind::Reuse => {}
        }
        recorded.progress.fold(entry.kind, entry.payload);
    }

    /// Removes the error of a failed compensation, and all later entries about it.
    fn retry_compensation(&mut self, branch: &str) {
        self.paths.remove(branch);
        let below = format!("{branch}/");
        let failed = self
            .paths
            .iter()
            .filter(|(path, recorded)| {
                path.starts_with(&below) && matches!(recorded.end(), Some(End::Error(_)))
            })
            .max_by_key(|(_, recorded)| recorded.place);
        let Some((path, place)) = failed.map(|(path, recorded)| (path.clone(), recorded.place))
        else {
            return;
        };
        self.paths
            .retain(|other, recorded| !other.starts_with(&below) || recorded.place <= place);
        if let Some(recorded) = self.paths.get_mut(&path) {
            recorded.progress.restart();
        }
    }

    fn add_reusable(&mut self, entry: Entry) {
        let recorded = Recorded {
            what: entry.what,
            digest: entry.digest,
            request: entry.request,
            progress: Progress::ended(End::Value(entry.payload)),
            ..Recorded::default()
        };
        self.reusable.insert(entry.path, recorded);
    }
}

/// Returns the path of the nested steps of an attempt, which is counted from 1.
pub(crate) fn nested_prefix(path: &str, attempt: u32) -> String {
    match attempt {
        0 | 1 => path.to_owned(),
        later => format!("{path}~{later}"),
    }
}
