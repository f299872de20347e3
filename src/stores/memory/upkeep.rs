//! Removes rows that nothing refers to any more.

use std::collections::BTreeSet;
use std::path::Path;

use flowstone_model::codec::digest_bytes;
use flowstone_model::ids::RunId;
use flowstone_model::ports::{
    BackedUp, Counts, Entry, FeedItem, Flaw, Gone, PortFuture, Removed, Sweep, SweepKind, Upkeep,
    Usage, Verified, WaitKind, WaitState, count_one,
};
use flowstone_model::resource::{ResourceKind, uris_in};
use flowstone_model::rules::answers::SignalState;

use super::state::{Signal, State};
use super::{News, Session, feed, resources, unsupported};

impl Upkeep for Session {
    fn process(&self) -> &str {
        &self.id
    }

    fn is_alive(&self, process: &str) -> bool {
        Session::is_alive(self, process)
    }

    fn usage(&self) -> PortFuture<'_, Usage> {
        self.read(|tx| {
            let entries = tx.state.journal.values().map(item_bytes);
            let blobs = tx.state.blobs.values().map(|(_, bytes)| bytes.len() as u64);
            Ok(Usage {
                file_bytes: entries.sum::<u64>() + blobs.sum::<u64>(),
                free_bytes: 0,
            })
        })
    }

    fn counts(&self) -> PortFuture<'_, Counts> {
        self.read(|tx| Ok(counts(tx.state)))
    }

    fn journal_usage(&self, run: &RunId) -> PortFuture<'_, Removed> {
        self.read(|tx| {
            let num = tx.state.number(run).unwrap_or_default();
            let rows = tx.state.journal.range((num, i64::MIN)..=(num, i64::MAX));
            Ok(sum_rows(rows.map(|(_, item)| item)))
        })
    }

    fn prune(&self, run: &RunId, now_ms: i64) -> PortFuture<'_, Removed> {
        self.write(News::Some, |tx| Ok(prune(tx.state, run, now_ms)))
    }

    fn forget(&self, run: &RunId) -> PortFuture<'_, bool> {
        self.write(News::Some, |tx| Ok(forget(tx.state, run)))
    }

    fn half_pruned(&self) -> PortFuture<'_, Vec<RunId>> {
        self.read(|tx| {
            let runs = tx.state.runs.iter();
            let half =
                runs.filter(|(num, run)| run.row.pruned_ms.is_some() && tx.state.has_rows(**num));
            Ok(half.map(|(_, run)| run.row.id.clone()).collect())
        })
    }

    fn sweep(&self, sweep: Sweep, _now_ms: i64) -> PortFuture<'_, Removed> {
        self.write(News::None, |tx| {
            // A dry run is a sweep that is rolled back.
            let removed = self::sweep(tx.state, &sweep);
            if sweep.dry_run {
                tx.state.roll_back();
            }
            Ok(removed)
        })
    }

    fn compact(&self) -> PortFuture<'_, ()> {
        // Memory of removed rows is freed at once, so there is nothing to compact.
        Box::pin(std::future::ready(Ok(())))
    }

    fn backup(&self, _place: &Path) -> PortFuture<'_, BackedUp> {
        Box::pin(std::future::ready(Err(unsupported("be backed up"))))
    }

    fn verify(&self) -> PortFuture<'_, Verified> {
        self.read(|tx| Ok(verify(tx.state)))
    }
}

fn counts(state: &State) -> Counts {
    let mut counts = Counts::default();
    for run in state.runs.values().filter(|run| !run.is_over()) {
        count_one(&mut counts.runs, run.row.status);
    }
    let waits = state.waits.values().map(|wait| &wait.row);
    for row in waits.filter(|row| row.state == WaitState::Open) {
        let parts = (row.webhook.is_some(), row.event.is_some());
        count_one(
            &mut counts.waits,
            WaitKind::of(&row.key, parts, &row.details),
        );
    }
    let mut jobs = Vec::new();
    for job in state.jobs.values() {
        count_one(&mut jobs, (job.kind.clone(), job.status));
    }
    let jobs = jobs.into_iter();
    counts.jobs = jobs
        .map(|((kind, status), count)| (kind, status, count))
        .collect();
    counts
}

/// Returns the approximate size of an entry in bytes.
fn bytes(entry: &Entry) -> u64 {
    let request = entry.request.as_ref().map_or(0, String::len);
    let texts = [&entry.path, &entry.what, &entry.digest, &entry.payload];
    let texts: usize = texts.iter().map(|text| text.len()).sum();
    (texts + request + 40) as u64
}

fn item_bytes(item: &FeedItem) -> u64 {
    match item {
        FeedItem::Entry(entry) => bytes(entry),
        FeedItem::Event(event) => (event.path.len() + event.data.len() + 40) as u64,
    }
}

fn sum(bytes: impl Iterator<Item = u64>) -> Removed {
    let mut all = Removed::default();
    for bytes in bytes {
        all += Removed { count: 1, bytes };
    }
    all
}

/// Counts the entries among rows, and sums the sizes of all rows.
fn sum_rows<'a>(rows: impl Iterator<Item = &'a FeedItem>) -> Removed {
    let mut all = Removed::default();
    for row in rows {
        all += Removed {
            count: u64::from(matches!(row, FeedItem::Entry(_))),
            bytes: item_bytes(row),
        };
    }
    all
}

fn prune(state: &mut State, run: &RunId, now_ms: i64) -> Removed {
    let found = state.number(run).zip(state.run(run));
    let Some(num) = found
        .filter(|(_, run)| run.row.status.is_final())
        .map(|(num, _)| num)
    else {
        return Removed::default();
    };
    if let Some(run) = state.runs.get_mut(&num) {
        run.row.pruned_ms.get_or_insert(now_ms);
    }
    state.waits.remove_where(|_, wait| wait.run == num);
    state
        .jobs
        .remove_where(|_, job| job.run == *run && job.ended_ms.is_some());
    let removed = state.journal.remove_where(|(run, _), _| *run == num);
    sum_rows(removed.iter().map(|(_, item)| item))
}

fn forget(state: &mut State, run: &RunId) -> bool {
    let Some(num) = state.number(run) else {
        return false;
    };
    let is_pruned = state
        .runs
        .get(&num)
        .is_some_and(|run| run.row.pruned_ms.is_some());
    if !is_pruned || state.has_rows(num) {
        return false;
    }
    let removed = state.runs.remove(&num);
    state.jobs.remove_where(|_, job| job.run == *run);
    state.ids.remove(run);
    if let Some(external) = removed.and_then(|run| run.row.external_id) {
        state.externals.remove(&external);
    }
    true
}

fn sweep(state: &mut State, sweep: &Sweep) -> Removed {
    let before_ms = sweep.older_than_ms;
    match sweep.what {
        SweepKind::Changesets => changesets(state, before_ms),
        SweepKind::Expired => expired(state, before_ms),
        // Values are stored in their entries.
        SweepKind::Payloads => {
            feed::sweep(state);
            Removed::default()
        }
        SweepKind::Programs => programs(state),
        SweepKind::Resources => unmentioned(state, before_ms),
        SweepKind::Blobs => blobs(state, before_ms),
        SweepKind::Signals => signals(state, before_ms),
    }
}

/// Returns all texts in which a name may be mentioned, except those of resources and changesets.
fn texts(state: &State) -> impl Iterator<Item = &str> {
    let runs = state.runs.values().flat_map(|run| {
        let row = &run.row;
        let texts = [
            Some(&row.input),
            run.first_input.as_ref(),
            row.result.as_ref(),
            row.error.as_ref(),
        ];
        texts.into_iter().flatten()
    });
    let entries = state.all_entries();
    let entries = entries.flat_map(|entry| entry.request.iter().chain([&entry.payload]));
    let waits = state.waits.values();
    let waits = waits.flat_map(|wait| wait.row.payload.iter().chain([&wait.row.details]));
    let signals = state
        .inbox
        .values()
        .map(|signal| &signal.early.answer.payload);
    let keys = state.kv.values();
    let keys = keys.flat_map(|kept| kept.entry.metadata.iter().chain([&kept.entry.value]));
    let jobs = state.jobs.values().flat_map(|job| {
        let texts = [&job.metadata, &job.progress, &job.result, &job.error];
        texts.into_iter().flatten().chain([&job.payload])
    });
    let texts = runs.chain(entries).chain(waits).chain(signals);
    let texts = texts.chain(keys).chain(jobs);
    texts.map(String::as_str)
}

/// The part of a changeset's name before its id.
const CHANGESET: &str = "/bundle/changeset/files/";

fn changesets(state: &mut State, before_ms: i64) -> Removed {
    let mentioned: String = {
        let mentioning = texts(state).filter(|text| text.contains(CHANGESET));
        let resources = state.resources.values().filter(|row| row.gone.is_none());
        let contents = resources.filter_map(|row| state.blobs.get(&row.hash.as_ref()?.0));
        let contents = contents.map(|(_, bytes)| String::from_utf8_lossy(bytes).into_owned());
        let names = state.resources.values().map(|row| row.uri.clone());
        let texts = mentioning.map(str::to_owned).chain(contents).chain(names);
        texts.collect::<Vec<_>>().join("\n")
    };
    let removed = state.changesets.remove_where(|id, changeset| {
        changeset.updated_ms < before_ms && !mentioned.contains(&format!("{CHANGESET}{id}"))
    });
    Removed {
        count: removed.len() as u64,
        bytes: 0,
    }
}

fn expired(state: &mut State, before_ms: i64) -> Removed {
    let rows = state.resources.values().filter(|row| {
        row.gone.is_none()
            && row
                .expires_ms
                .is_some_and(|expires_ms| expires_ms <= before_ms)
    });
    let over: Vec<String> = rows.map(|row| row.uri.clone()).collect();
    for uri in &over {
        if let Some(row) = state.resources.get_mut(uri) {
            let since_ms = row.expires_ms.unwrap_or(before_ms);
            resources::remove(row, (Gone::Expired, since_ms));
        }
    }
    Removed {
        count: over.len() as u64,
        bytes: 0,
    }
}

fn programs(state: &mut State) -> Removed {
    let runs = state.runs.values().map(|run| &run.row.program);
    let schedules = state.schedules.values().map(|row| &row.program);
    let used: BTreeSet<String> = runs.chain(schedules).cloned().collect();
    let removed = state.programs.remove_where(|hash, _| !used.contains(hash));
    sum(removed
        .iter()
        .map(|(_, program)| program.source.len() as u64))
}

fn unmentioned(state: &mut State, before_ms: i64) -> Removed {
    let sources = state.changesets.values();
    let sources = sources.map(|changeset| changeset.source.as_str());
    let mentioned: BTreeSet<String> = texts(state)
        .chain(sources)
        .flat_map(|text| uris_in(text).map(str::to_owned))
        .collect();
    let removed = state.resources.remove_where(|uri, row| {
        let is_upload = row.kind == ResourceKind::File && row.gone.is_none();
        row.created_ms < before_ms && !is_upload && !mentioned.contains(uri)
    });
    Removed {
        count: removed.len() as u64,
        bytes: 0,
    }
}

fn blobs(state: &mut State, before_ms: i64) -> Removed {
    let named = state.resources.values();
    let named = named.filter_map(|row| Some(row.hash.clone()?.0));
    let bases = state.changesets.values();
    let bases = bases.map(|changeset| changeset.base.clone());
    let used: BTreeSet<String> = named.chain(bases).collect();
    let removed = state
        .blobs
        .remove_where(|hash, (put_ms, _)| *put_ms < before_ms && !used.contains(hash));
    sum(removed.iter().map(|(_, (_, bytes))| bytes.len() as u64))
}

fn signals(state: &mut State, before_ms: i64) -> Removed {
    let open = state.waits.values().filter(|wait| wait.is_open());
    let open: BTreeSet<String> = open.map(|wait| wait.row.id.clone()).collect();
    // An open wait still shows the signals that it has refused.
    let is_shown = |signal: &Signal| signal.wait.as_ref().is_some_and(|wait| open.contains(wait));
    let removed = state.inbox.remove_where(|_, signal| {
        signal.state != SignalState::Kept && signal.at_ms < before_ms && !is_shown(signal)
    });
    Removed {
        count: removed.len() as u64,
        bytes: 0,
    }
}

fn verify(state: &State) -> Verified {
    let changed = state
        .blobs
        .iter()
        .filter(|(hash, (_, bytes))| digest_bytes(bytes) != **hash);
    Verified {
        runs: state.runs.values().count() as u64,
        entries: state.all_entries().count() as u64,
        programs: state.programs.values().count() as u64,
        payloads: 0,
        blobs: state.blobs.values().count() as u64,
        // The contents of files are outside of the store, which does not read them.
        files: 0,
        flaws: changed
            .map(|(hash, _)| Flaw {
                what: "blob",
                name: hash.clone(),
                detail: "its contents do not match its hash".to_owned(),
            })
            .collect(),
    }
}
