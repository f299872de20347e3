//! A run's journal by path: what replay answers from.

use std::collections::HashMap;

use flowstone_lang::value::Value;

use crate::codec;
use crate::ports::{Entry, EntryKind};
use crate::state::{End, Progress};

/// The path of the note that the flow was told of a cancel.
pub(crate) const CANCEL: &str = "flow/cancel";

/// The path of the note that a run was forked there, with the seed of what it draws from then on.
pub(crate) const FORK: &str = "flow/fork";

/// What entries about the undoing of a step are of.
pub(crate) const COMPENSATE: &str = "flow/compensate";
/// What entries about `flow/on-cancel` are of.
pub(crate) const ON_CANCEL: &str = "flow/on-cancel";

/// Returns an entry by which what could not be undone is tried again.
pub(crate) fn undo_again(entries: &[Entry], at_ms: i64) -> Option<Entry> {
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

/// Everything that was journaled of a run.
#[derive(Debug, Default)]
pub(crate) struct History {
    paths: HashMap<String, Recorded>,
    /// What another run got: an answer where the request is the same.
    reusable: HashMap<String, Recorded>,
    finished: usize,
    cancel: Option<Cancel>,
    /// How many paths that ended before that were not asked for again yet.
    before_cancel: usize,
    /// Where the run was forked, in the journal's order.
    forks: Vec<Fork>,
    /// How many forks lie before the latest request.
    reached: usize,
    /// The paths directly below others, once somebody asked.
    below: Option<HashMap<String, Vec<String>>>,
}

/// Where the flow was told that the run is cancelled, and why.
#[derive(Debug)]
struct Cancel {
    place: usize,
    reason: String,
    told: Told,
}

/// When a flow was told that its run is cancelled.
#[derive(Debug)]
enum Told {
    /// Where it requested something.
    AtRequest,
    /// While it computed.
    Computing(Checks),
    /// While it computed, as earlier builds noted it: a replay delivers it at its first check.
    AtFirstCheck,
}

/// How far a flow has come that computes. A replay counts the same.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Checks {
    /// How often the flow has used the journal, or got an answer from it.
    pub uses: u64,
    /// How often it was checked for a cancel since, and registered something to be done at its end.
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
                told: match (count("uses"), count("checks")) {
                    (Some(uses), Some(checks)) => Told::Computing(Checks { uses, checks }),
                    _ => Told::AtRequest,
                },
            },
            reason => Cancel {
                place,
                reason: text(reason),
                told: Told::AtFirstCheck,
            },
        }
    }
}

/// A place in the journal up to which it was taken over from another run.
#[derive(Debug)]
struct Fork {
    place: usize,
    seed: u64,
    /// How many steps that ended before were not asked for again yet.
    before: usize,
}

/// What the journal has of one path.
#[derive(Debug, Default, Clone)]
pub(crate) struct Recorded {
    pub what: String,
    pub digest: String,
    pub request: Option<String>,
    pub progress: Progress,
    /// Where in the journal its last entry stands.
    pub place: usize,
    /// When it ended.
    pub ended_ms: i64,
}

impl Recorded {
    fn ended_before(&self, place: usize) -> bool {
        self.end().is_some() && self.place < place
    }

    /// Returns how it ended, if it did.
    pub(crate) fn end(&self) -> Option<&End> {
        self.progress.end()
    }

    fn is_step(&self) -> bool {
        !self.what.starts_with("flow/")
    }
}

impl History {
    pub(crate) fn new(entries: Vec<Entry>) -> History {
        let mut history = History::default();
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

    /// Records that a step is requested, and returns the number of forks before it: random numbers that are drawn later
    /// use the seed of the last of them. `recorded` is the step's entry in the journal.
    pub(crate) fn ask(&mut self, recorded: Option<&Recorded>) -> usize {
        let lies_before = |fork: &&Fork| !recorded.is_some_and(|it| it.ended_before(fork.place));
        let passed = self.forks.iter().filter(lies_before).count();
        self.reached = self.reached.max(passed);
        passed
    }

    /// Returns how many forks all of the run has passed: a later step was asked for, and all earlier ones.
    pub(crate) fn passed(&self) -> usize {
        let reached = self.forks.iter().take(self.reached);
        reached.filter(|fork| fork.before == 0).count()
    }

    /// Returns the seed of a fork, counted from 1. Before the first fork there is no such seed.
    pub(crate) fn fork_seed(&self, passed: usize) -> Option<u64> {
        let last = passed.checked_sub(1)?;
        self.forks.get(last).map(|fork| fork.seed)
    }

    /// Returns the seed of the last fork.
    pub(crate) fn last_seed(&self) -> Option<u64> {
        self.fork_seed(self.forks.len())
    }

    /// Tells whether a cancel was noted that is not due before more is asked for again.
    pub(crate) fn has_later_cancel(&self) -> bool {
        self.cancel.is_some() && self.before_cancel > 0
    }

    /// Returns why the run was cancelled, if the flow was told so before the entry at `place` was made.
    pub(crate) fn take_cancel_before(&mut self, place: usize) -> Option<String> {
        let cancel = self.cancel.take_if(|cancel| cancel.place < place)?;
        Some(cancel.reason)
    }

    /// Returns why the run was cancelled, if the flow was told so while it computed, and has come as far as it had then.
    /// `place`: that of the next answer that the journal has.
    pub(crate) fn take_cancel_at(&mut self, reached: Checks, place: usize) -> Option<String> {
        match self.cancel.as_ref()?.told {
            Told::Computing(noted) if noted <= reached => self.take_cancel_before(usize::MAX),
            Told::AtFirstCheck if !self.has_later_cancel() => self.take_cancel_before(place),
            Told::AtRequest | Told::Computing(_) | Told::AtFirstCheck => None,
        }
    }

    /// Tells whether everything journaled was asked for again.
    pub(crate) fn is_empty(&self) -> bool {
        self.paths.is_empty()
    }

    /// Returns a path that was journaled and not asked for again.
    pub(crate) fn left(&self) -> Option<(&str, &Recorded)> {
        let mut paths: Vec<&String> = self.paths.keys().collect();
        paths.sort_unstable();
        let first = paths.first()?;
        Some((first, &self.paths[*first]))
    }

    /// Returns the steps that were journaled and not asked for again, sorted.
    pub(crate) fn left_steps(&self) -> Vec<(&str, &Recorded)> {
        let steps = self.paths.iter();
        let steps = steps.filter(|(_, recorded)| !recorded.what.starts_with("flow/"));
        let mut steps: Vec<_> = steps
            .map(|(path, recorded)| (path.as_str(), recorded))
            .collect();
        steps.sort_unstable_by_key(|(path, _)| *path);
        steps
    }

    /// Returns a step that has ended and was not asked for again.
    pub(crate) fn left_done(&self) -> Option<(&str, &Recorded)> {
        let mut steps = self.left_steps();
        steps.retain(|(_, recorded)| recorded.end().is_some());
        steps.into_iter().next()
    }

    /// Takes out what another run got at a path.
    pub(crate) fn take_reusable(&mut self, path: &str) -> Option<Recorded> {
        self.reusable.remove(path)
    }

    /// Returns how many steps have ended.
    pub(crate) fn finished(&self) -> usize {
        self.finished
    }

    /// Takes a path's record out once it was used: memory is given back while the run replays.
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

    /// Takes out what a step performed by itself in its first attempts, and what those steps did.
    pub(crate) fn take_inside(&mut self, path: &str, attempts: u32) {
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
        let places = (1..=attempts).map(|attempt| inside_of(path, attempt));
        let mut open: Vec<String> = places.collect();
        let mut inner = Vec::new();
        while let Some(above) = open.pop() {
            for path in below.remove(&above).unwrap_or_default() {
                // It may itself have performed steps, as often as it was attempted.
                let attempts = self
                    .paths
                    .get(&path)
                    .map_or(1, |it| it.progress.attempts.max(1));
                open.extend((1..=attempts).map(|attempt| inside_of(&path, attempt)));
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
            self.undo_again(&entry.path);
            return;
        }
        let is_step = entry.kind != EntryKind::Note;
        let recorded = self.paths.entry(entry.path).or_default();
        recorded.what = entry.what;
        recorded.digest = entry.digest;
        recorded.place = place;
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

    /// Forgets the error that an undoing failed with, and what came after it.
    fn undo_again(&mut self, branch: &str) {
        self.paths.remove(branch);
        let inside = format!("{branch}/");
        let failed = self
            .paths
            .iter()
            .filter(|(path, recorded)| {
                path.starts_with(&inside) && matches!(recorded.end(), Some(End::Error(_)))
            })
            .max_by_key(|(_, recorded)| recorded.place);
        let Some((path, place)) = failed.map(|(path, recorded)| (path.clone(), recorded.place))
        else {
            return;
        };
        self.paths
            .retain(|other, recorded| !other.starts_with(&inside) || recorded.place <= place);
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

/// Returns where the steps stand that a step performs in an attempt, which is counted from 1.
pub(crate) fn inside_of(path: &str, attempt: u32) -> String {
    match attempt {
        0 | 1 => path.to_owned(),
        later => format!("{path}~{later}"),
    }
}
