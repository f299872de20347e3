//! The retention of finished runs, and the removal of expired data.
//!
//! A finished run keeps its row, its input and its result. Its journal, its waits and everything that only they
//! referred to are removed after a while. An unfinished run keeps everything, and so do its child runs.

use std::collections::HashMap;

use crate::Interrupt;
use crate::duration;
use crate::engine::Engine;
use crate::error::EngineError;
use crate::ids::RunId;
use crate::ports::{Removed, RunQuery, RunStatus, RunSummary, Sweep, SweepKind, Usage};
use crate::retention::Retention;
use crate::step::HomeSweep;

/// Files of blobs without a name stay this long: a step may be about to give them one.
const BLOB_AGE_MS: i64 = 86_400_000;
/// Number of runs that are listed at a time.
const PAGE: usize = 1000;
/// How often garbage is collected automatically.
const EVERY_MS: i64 = 86_400_000;
/// Maximum number of journals that one automatic collection removes.
const GENTLY: usize = 500;
/// The file with the time of the last collection.
const STAMP: &str = "last-gc";

/// How garbage is collected.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GcOptions {
    pub retention: Retention,
    /// Only report what would be removed.
    pub dry_run: bool,
    /// Return free space to the system.
    pub compact: bool,
    /// Maximum number of runs whose journals are removed; 0: all that are due.
    pub limit: usize,
}

/// What was removed, or would be removed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GcReport {
    /// The runs whose journals were removed, newest first.
    pub runs: Vec<RunId>,
    /// Journal entries.
    pub entries: Removed,
    /// Large values that only the journals referred to.
    pub payloads: Removed,
    /// Rows of runs.
    pub forgotten: u64,
    /// Sources of flows that no run uses any more.
    pub programs: Removed,
    /// Resources that have expired.
    pub expired: u64,
    /// Changesets that nothing refers to any more.
    pub changesets: u64,
    /// Names of stored blobs that nothing refers to any more.
    pub resources: u64,
    /// The files of the blobs.
    pub blobs: Removed,
    /// Contents of source trees that no tree and no changeset refers to any more.
    pub contents: Removed,
    /// Folders that `:materialize` created for finished runs.
    pub folders: Removed,
    /// Signals that were taken or refused.
    pub signals: u64,
    pub before: Usage,
    pub after: Usage,
}

impl GcReport {
    /// Returns the bytes removed, or to be removed, from database and files together.
    pub fn bytes(&self) -> u64 {
        [
            self.entries,
            self.payloads,
            self.programs,
            self.blobs,
            self.contents,
            self.folders,
        ]
        .iter()
        .map(|removed| removed.bytes)
        .sum()
    }
}

impl Engine {
    /// Returns the retention of the project's settings.
    pub fn retention(&self) -> Retention {
        // The settings were checked when they were read.
        Retention::read(&self.services.settings).unwrap_or_default()
    }

    /// Removes expired data. Unfinished runs are never touched.
    ///
    /// # Errors
    /// When the stores cannot be read or written; what was removed until then stays removed.
    pub async fn collect_garbage(&self, options: &GcOptions) -> Result<GcReport, EngineError> {
        let upkeep = &self.services.stores.upkeep;
        let now_ms = self.services.clock.now_ms();
        let mut report = GcReport {
            before: upkeep.usage().await?,
            ..GcReport::default()
        };
        report.runs = self.due(options, report.before).await?;
        if !options.dry_run {
            for run in upkeep.half_pruned().await? {
                report.entries += upkeep.prune(&run, now_ms).await?;
            }
        }
        for run in &report.runs {
            report.entries += match options.dry_run {
                true => upkeep.journal_usage(run).await?,
                false => upkeep.prune(run, now_ms).await?,
            };
        }
        report.forgotten = self.forget_runs(options).await?;
        let age = options.retention.journal;
        let journal_ms = age.map_or(i64::MIN, |age| now_ms - duration::millis(age));
        let sweep = async |what, older_than_ms| {
            let sweep = Sweep {
                what,
                older_than_ms,
                dry_run: options.dry_run,
            };
            upkeep.sweep(sweep, now_ms).await
        };
        report.payloads = sweep(SweepKind::Payloads, now_ms).await?;
        report.programs = sweep(SweepKind::Programs, now_ms).await?;
        report.expired = sweep(SweepKind::Expired, now_ms).await?.count;
        // Changesets name the trees that they are based on.
        report.changesets = sweep(SweepKind::Changesets, journal_ms).await?.count;
        report.resources = sweep(SweepKind::Resources, journal_ms).await?.count;
        report.blobs = sweep(SweepKind::Blobs, now_ms - BLOB_AGE_MS).await?;
        report.signals = sweep(SweepKind::Signals, journal_ms).await?.count;
        for step in self.services.steps.iter() {
            let sweep = HomeSweep {
                now_ms,
                older_than_ms: now_ms - BLOB_AGE_MS,
                dry_run: options.dry_run,
            };
            let swept = step.sweep(&self.services, sweep).await?;
            report.contents += swept.contents;
            report.folders += swept.folders;
        }
        if options.compact && !options.dry_run {
            upkeep.compact().await?;
        }
        report.after = upkeep.usage().await?;
        Ok(report)
    }

    /// Collects garbage if that was not done for a day, for processes that run flows. Returns the report if it was due.
    /// Failures are logged, and retried a day later. An interrupt ends the collection; what was removed until then
    /// stays removed.
    pub async fn collect_garbage_daily(&self, interrupt: &Interrupt) -> Option<GcReport> {
        let now_ms = self.services.clock.now_ms();
        let stamp = self.services.home.join(STAMP);
        let last = std::fs::read_to_string(&stamp).ok();
        let last = last.and_then(|text| text.trim().parse::<i64>().ok());
        // A clock that was set back must not disable the collection for long.
        if last.is_some_and(|last| (0..EVERY_MS).contains(&(now_ms - last))) {
            return None;
        }
        // Written before the collection, so that one that fails is not repeated all the time. If the stamp cannot be
        // written, nothing can be removed either.
        if crate::private::write(&stamp, now_ms.to_string().as_bytes()).is_err() {
            return None;
        }
        let options = GcOptions {
            retention: self.retention(),
            limit: GENTLY,
            ..GcOptions::default()
        };
        let collected = tokio::select! {
            biased;
            () = interrupt.wait() => return None,
            collected = self.collect_garbage(&options) => collected,
        };
        collected
            .inspect_err(|error| tracing::warn!(%error, "old journals could not be removed"))
            .ok()
    }

    /// Returns the runs whose journals are removed, newest first.
    async fn due(&self, options: &GcOptions, usage: Usage) -> Result<Vec<RunId>, EngineError> {
        let retention = &options.retention;
        let now_ms = self.services.clock.now_ms();
        let before = |age| now_ms - duration::millis(age);
        let cutoff = retention.journal.map(before);
        let mut kept: HashMap<String, usize> = HashMap::new();
        let (mut due, mut young) = (Vec::new(), Vec::new());
        let mut roots = HashMap::new();
        let mut after = None;
        loop {
            let page = self.finished(false, after.take()).await?;
            after = page.last().map(|run| run.id.clone());
            let is_last = page.len() < PAGE;
            for run in page {
                let kept = kept.entry(run.flow.clone()).or_default();
                *kept += 1;
                if *kept <= retention.keep_last || !self.is_tree_over(&run, &mut roots).await? {
                    continue;
                }
                let ended = run.ended_ms.unwrap_or(run.updated_ms);
                match cutoff {
                    Some(cutoff) if ended < cutoff => due.push(run.id),
                    _ => young.push(run.id),
                }
            }
            if is_last {
                break;
            }
        }
        if let Some(max_bytes) = retention.max_bytes {
            let more = self.over_size(&due, young, usage, max_bytes).await?;
            due.splice(0..0, more);
        }
        if options.limit > 0 && due.len() > options.limit {
            // The oldest are removed first.
            due.drain(..due.len() - options.limit);
        }
        Ok(due)
    }

    /// Returns the oldest of the younger runs, whose journals must be removed too.
    async fn over_size(
        &self,
        due: &[RunId],
        mut young: Vec<RunId>,
        usage: Usage,
        max_bytes: u64,
    ) -> Result<Vec<RunId>, EngineError> {
        let upkeep = &self.services.stores.upkeep;
        let mut left = usage.file_bytes.saturating_sub(usage.free_bytes);
        for run in due {
            left = left.saturating_sub(upkeep.journal_usage(run).await?.bytes);
        }
        let mut more = Vec::new();
        while left > max_bytes
            && let Some(run) = young.pop()
        {
            left = left.saturating_sub(upkeep.journal_usage(&run).await?.bytes);
            more.push(run);
        }
        more.reverse();
        Ok(more)
    }

    /// Returns finished runs, with or without a journal, newest first.
    async fn finished(
        &self,
        pruned: bool,
        after: Option<RunId>,
    ) -> Result<Vec<RunSummary>, EngineError> {
        let finals = RunStatus::NAMES.iter().map(|(status, _)| *status);
        let query = RunQuery {
            statuses: finals.filter(|status| status.is_final()).collect(),
            pruned: Some(pruned),
            after,
            limit: PAGE,
            ..RunQuery::default()
        };
        Ok(self.services.stores.runs.summaries(query).await?)
    }

    /// Tells whether the root run is finished: until then, its replay may read the runs below it.
    async fn is_tree_over(
        &self,
        run: &RunSummary,
        roots: &mut HashMap<RunId, bool>,
    ) -> Result<bool, EngineError> {
        let Some(parent) = &run.parent else {
            return Ok(true);
        };
        if let Some(is_over) = roots.get(&parent.root) {
            return Ok(*is_over);
        }
        let root = self.services.stores.runs.find(&parent.root).await?;
        let is_over = root.is_none_or(|root| root.status.is_final());
        roots.insert(parent.root.clone(), is_over);
        Ok(is_over)
    }

    /// Removes the rows of runs that have expired. Returns how many.
    async fn forget_runs(&self, options: &GcOptions) -> Result<u64, EngineError> {
        let Some(age) = options.retention.runs else {
            return Ok(0);
        };
        let now_ms = self.services.clock.now_ms();
        let cutoff = now_ms - duration::millis(age);
        let mut count = 0;
        let mut after = None;
        let mut going = Vec::new();
        loop {
            let page = self.finished(true, after.take()).await?;
            after = page.last().map(|run| run.id.clone());
            let is_last = page.len() < PAGE;
            let is_old = |run: &RunSummary| run.ended_ms.unwrap_or(run.updated_ms) < cutoff;
            going.extend(page.into_iter().filter(is_old).map(|run| run.id));
            if is_last {
                break;
            }
        }
        for run in going {
            count += match options.dry_run {
                true => 1,
                false => u64::from(self.services.stores.upkeep.forget(&run).await?),
            };
        }
        Ok(count)
    }
}
