//! Pages of spans of all runs that the caller reaches, in the order of their starts.
//!
//! A run that began earlier may have later spans, so the spans of runs that overlap are put in order together. Newest first, runs
//! are read by their last change: no span of a run that is not read yet began after that. Oldest first, they are read by their
//! creation: no span began before that. A page reads few journals beyond those whose spans it returns, and at most [`RUNS_MAX`] if
//! it finds less: then it has few spans or none, and `next`.

use std::collections::{BTreeMap, HashSet};

use flowstone_engine::ids::RunId;
use flowstone_engine::ports::{RunOrder, RunQuery, RunStatus, RunSummary};

use super::context::KitCall;
use super::error::KitError;
use super::page;
use super::span_filter::SpanFilter;
use super::spans::Span;
use super::trace_spans::{Found, LIST, READ_MS, RUNS_MAX, Window, of_run};

/// Number of runs that are listed at a time.
const PAGE: usize = 200;
/// After this long, a query that took too long may be faster.
const RETRY_S: u64 = 30;

/// The place of a span in the order: when it began, its run, and its number there. Negative if newer ones come first.
type Place = (i64, String, i64);

/// Where a page begins.
#[derive(Default)]
struct Start {
    /// Only spans behind this place.
    behind: Option<Place>,
    /// Oldest first: all spans of this run, and of those that were created before it, were returned.
    after: Option<RunId>,
}

impl Start {
    fn read(text: Option<&str>) -> Start {
        let Some([began, number, run, after]) = text.and_then(|text| {
            let parts: Vec<&str> = text.split('|').collect();
            <[&str; 4]>::try_from(parts).ok()
        }) else {
            return Start::default();
        };
        let place = began.parse().ok().zip(number.parse().ok());
        Start {
            behind: place.map(|(began, number)| (began, run.to_owned(), number)),
            after: (!after.is_empty()).then(|| RunId::from_text(after)),
        }
    }

    fn write(&self) -> String {
        let (began, run, number) = self.behind.clone().unwrap_or_default();
        let after = self.after.as_ref().map_or("", RunId::as_str);
        page::write(&format!("{began}|{number}|{run}|{after}"), LIST)
    }

    /// Returns when the last span of the page before began.
    fn began_ms(&self) -> Option<i64> {
        self.behind
            .as_ref()
            .map(|(began, _, _)| began.saturating_abs())
    }
}

/// A page that is being read.
struct Reading<'a> {
    cx: &'a KitCall<'a>,
    window: &'a Window,
    filter: &'a SpanFilter,
    start: Start,
    found: Vec<(Place, Span)>,
    /// Spans that a run which is not read yet may precede. Those that the page has no room for are left out.
    pending: BTreeMap<Place, Span>,
    /// The runs of spans that were left out.
    cut: HashSet<String>,
    /// The runs that were read.
    known: HashSet<RunId>,
    /// The runs that were considered, oldest first.
    considered: Vec<RunId>,
    /// Number of runs that were listed.
    listed: usize,
    until_ms: i64,
}

/// Returns spans of all runs that the caller reaches.
///
/// # Errors
/// When a journal cannot be read; `limit_exceeded` when too many runs overlap to put their spans in order in time.
pub async fn of_runs(
    cx: &KitCall<'_>,
    window: &Window,
    filter: &SpanFilter,
) -> Result<Found, KitError> {
    let mut reading = Reading {
        cx,
        window,
        filter,
        start: Start::read(window.next.as_deref()),
        found: Vec::new(),
        pending: BTreeMap::new(),
        cut: HashSet::new(),
        known: HashSet::new(),
        considered: Vec::new(),
        listed: 0,
        until_ms: cx.engine.now_ms().saturating_add(READ_MS),
    };
    let more = reading.read().await?;
    let next = more.then(|| reading.next().write());
    let found = reading.found.into_iter().map(|(_, span)| span);
    Ok((found.collect(), next))
}

impl Reading<'_> {
    /// Reads the page. Tells whether more may follow.
    async fn read(&mut self) -> Result<bool, KitError> {
        if !self.window.is_ascending {
            // The row of a run that is executed does not change with each step.
            let running = self.list(None, vec![RunStatus::Running]).await?;
            for run in running {
                if self.is_over() {
                    return Err(too_many_open());
                }
                self.take(&run).await?;
            }
        }
        let mut after = self.start.after.clone();
        loop {
            let runs = self.list(after, Vec::new()).await?;
            if runs.is_empty() {
                self.settle(None);
                return Ok(!self.pending.is_empty() || !self.cut.is_empty());
            }
            after = runs.last().map(|run| run.id.clone());
            self.listed += runs.len();
            for run in runs {
                if self.is_behind_window(&run) {
                    self.settle(None);
                    return Ok(!self.pending.is_empty() || !self.cut.is_empty());
                }
                let bound = match self.window.is_ascending {
                    true => run.created_ms,
                    false => -run.updated_ms,
                };
                self.settle(Some(bound));
                if self.found.len() == self.window.limit {
                    return Ok(true);
                }
                if self.is_used_up(bound)? {
                    self.start.behind = Some((bound, String::new(), i64::MIN));
                    return Ok(true);
                }
                self.take(&run).await?;
                if self.window.is_ascending {
                    self.considered.push(run.id);
                }
            }
        }
    }

    /// Returns a part of the runs, in the order in which they are read.
    async fn list(
        &self,
        after: Option<RunId>,
        statuses: Vec<RunStatus>,
    ) -> Result<Vec<RunSummary>, KitError> {
        let window = self.window;
        let began_ms = self.start.began_ms().filter(|_| !window.is_ascending);
        let until_ms = began_ms.map(|began| began.saturating_add(1));
        let query = RunQuery {
            flow: self.filter.flow().map(str::to_owned),
            until_ms: window.newest_ms.into_iter().chain(until_ms).min(),
            sort: match window.is_ascending {
                true => RunOrder::Oldest,
                false => RunOrder::Changed,
            },
            limit: match statuses.is_empty() {
                true => PAGE,
                false => 0,
            },
            after,
            statuses,
            ..RunQuery::default()
        };
        Ok(self.cx.engine.stores().runs.summaries(query).await?)
    }

    /// Tells whether neither a run nor those that follow it have spans in the window.
    fn is_behind_window(&self, run: &RunSummary) -> bool {
        let oldest_ms = self.window.oldest_ms;
        !self.window.is_ascending && oldest_ms.is_some_and(|oldest| run.updated_ms < oldest)
    }

    /// Reads the spans of a run that may be on the page.
    async fn take(&mut self, run: &RunSummary) -> Result<(), KitError> {
        let side = self.cx.side(&run.flow, &run.started_by);
        let began_ms = self.start.began_ms().filter(|_| self.window.is_ascending);
        let first_ms = self.window.oldest_ms.max(began_ms);
        let is_before = run
            .ended_ms
            .is_some_and(|ended| first_ms.is_some_and(|first| ended < first));
        if !side.is_any() || is_before || !self.known.insert(run.id.clone()) {
            return Ok(());
        }
        let spans = of_run(self.cx, (self.window, self.filter), (&run.id, side)).await?;
        // Other requests have their turn, and a caller that left is noticed.
        tokio::task::yield_now().await;
        for (number, span) in spans {
            let number = i64::try_from(number).unwrap_or(i64::MAX);
            let (began, number) = match self.window.is_ascending {
                true => (span.began_ms, number),
                false => (-span.began_ms, -number),
            };
            let place = (began, run.id.to_string(), number);
            if self
                .start
                .behind
                .as_ref()
                .is_some_and(|behind| place <= *behind)
            {
                continue;
            }
            self.pending.insert(place, span);
        }
        while self.pending.len() > self.window.limit {
            if let Some(((_, run, _), _)) = self.pending.pop_last() {
                self.cut.insert(run);
            }
        }
        Ok(())
    }

    /// Moves to the page what no run that is not read yet can precede: what begins before a bound.
    fn settle(&mut self, bound: Option<i64>) {
        while self.found.len() < self.window.limit {
            let Some(first) = self.pending.first_entry() else {
                return;
            };
            if bound.is_some_and(|bound| first.key().0 >= bound) {
                return;
            }
            self.found.push(first.remove_entry());
        }
    }

    /// Tells whether enough journals were read, so that the page ends at a bound.
    ///
    /// # Errors
    /// `limit_exceeded` when the time is over and the page would end where it began.
    fn is_used_up(&self, bound: i64) -> Result<bool, KitError> {
        let is_over = self.is_over();
        if self.known.len() < RUNS_MAX && !is_over {
            return Ok(false);
        }
        let behind = self.start.behind.as_ref();
        let has_moved = !self.found.is_empty() || behind.is_none_or(|(began, _, _)| bound > *began);
        match (has_moved, is_over) {
            (true, _) => Ok(true),
            (false, false) => Ok(false),
            (false, true) => Err(too_many_open()),
        }
    }

    /// Tells whether the time for reading is over. There is always time for something.
    fn is_over(&self) -> bool {
        let has_read = !self.known.is_empty() || self.listed > PAGE;
        has_read && self.cx.engine.now_ms() > self.until_ms
    }

    /// Returns where the next page begins.
    fn next(&self) -> Start {
        let last = self.found.last().map(|(place, _)| place.clone());
        let pending = self.pending.keys().map(|(_, run, _)| run.as_str());
        let left: HashSet<&str> = pending.chain(self.cut.iter().map(String::as_str)).collect();
        let considered = self.considered.iter();
        let done = considered
            .take_while(|run| !left.contains(run.as_str()))
            .last();
        Start {
            behind: last.max(self.start.behind.clone()),
            after: done.or(self.start.after.as_ref()).cloned(),
        }
    }
}

fn too_many_open() -> KitError {
    KitError::limit_exceeded(
        "too many runs were open at the same time to put their spans in order in time: name a flow, a trace or a shorter \
         window",
        RETRY_S,
    )
}
