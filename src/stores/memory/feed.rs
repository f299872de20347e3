//! The feeds of runs and of the project, in memory.

use flowstone_model::ids::RunId;
use flowstone_model::ports::{
    Entry, Event, EventKind, Feed, FeedDetail, FeedItem, FeedPage, FeedRow, News, PortFuture,
    ProjectFeedPage, ProjectFeedRow, RunStatus, StoreError, WaitPlace, WaitRow,
};
use flowstone_model::waits::Answered;

use super::state::{State, next};
use super::{Session, Tx};

impl Feed for Session {
    fn read(&self, run: &RunId, after: i64, limit: usize) -> PortFuture<'_, Option<FeedPage>> {
        Session::read(self, |tx| {
            let found = tx.state.number(run).zip(tx.state.run(run));
            Ok(found.map(|(num, run)| {
                let rows = tx.state.journal.range((num, after + 1)..=(num, i64::MAX));
                let rows = rows.map(|((_, seq), item)| FeedRow {
                    seq: *seq,
                    item: item.clone(),
                });
                FeedPage {
                    status: run.row.status,
                    pass: run.row.pass,
                    is_pruned: run.row.pruned_ms.is_some(),
                    rows: rows.take(limit.max(1)).collect(),
                }
            }))
        })
    }

    fn project(
        &self,
        after: i64,
        limit: usize,
        detail: FeedDetail,
    ) -> PortFuture<'_, ProjectFeedPage> {
        Session::read(self, |tx| Ok(project(tx.state, (after, limit), detail)))
    }

    fn last_position(&self) -> PortFuture<'_, i64> {
        Session::read(self, |tx| Ok(next(&tx.state.positions) - 1))
    }

    fn news(&self) -> Box<dyn News> {
        Box::new(crate::news::Commits(self.project.commits.subscribe()))
    }

    fn watch(&self, _run: &RunId) -> Box<dyn News> {
        Feed::news(self)
    }
}

fn project(state: &State, (after, limit): (i64, usize), detail: FeedDetail) -> ProjectFeedPage {
    let mut page = ProjectFeedPage {
        rows: Vec::new(),
        next: after,
    };
    for (position, place) in state.positions.range(after + 1..) {
        if page.rows.len() >= limit {
            break;
        }
        page.next = *position;
        let found = state.journal.get(place).zip(state.runs.get(&place.0));
        let Some((item, run)) = found else {
            continue;
        };
        if detail == FeedDetail::Steps || matches!(item, FeedItem::Event(_)) {
            page.rows.push(ProjectFeedRow {
                position: *position,
                run: run.row.id.clone(),
                flow: run.row.flow.clone(),
                pass: run.row.pass,
                row: FeedRow {
                    seq: place.1,
                    item: item.clone(),
                },
            });
        }
    }
    page
}

impl State {
    /// Adds an entry to the journal of a run.
    pub(super) fn add_entry(&mut self, num: i64, entry: Entry) {
        self.add_item(num, FeedItem::Entry(entry));
    }

    /// Adds an event to the journal of a run.
    pub(super) fn add_event(&mut self, num: i64, event: impl Into<Option<Event>>) {
        if let Some(event) = event.into() {
            self.add_item(num, FeedItem::Event(event));
        }
    }

    /// Adds an event of the run, or of its wait with a key, to the journal of the run and to those of the runs that wait for
    /// it. A run that is to check a deadline does so when a wait below ends, because the time of the wait does not count for it.
    pub(super) fn add_event_with_above(&mut self, num: i64, key: &str, event: Option<Event>) {
        let Some(event) = event else {
            return;
        };
        let Some(run) = self.runs.get(&num) else {
            return;
        };
        let (child, mut parent) = (run.row.id.clone(), run.row.parent.clone());
        self.add_event(num, event.clone());
        while let Some(above) = parent.take() {
            let Some(num) = self.number(&above.run) else {
                return;
            };
            let Some(run) = self
                .runs
                .get_mut(&num)
                .filter(|it| !it.row.status.is_final())
            else {
                return;
            };
            parent.clone_from(&run.row.parent);
            let is_end = matches!(
                event.kind,
                EventKind::WaitAnswered | EventKind::WaitTimedOut
            );
            if is_end && run.row.status == RunStatus::Waiting {
                run.row.due_ms = run.row.due_ms.map(|due| due.min(event.at_ms));
            }
            // The process that ended with the called run executed this one, too.
            let is_own = event.kind == EventKind::RunOrphaned && run.lease.is_some();
            self.add_event(num, event.above(&child, key).filter(|_| !is_own));
        }
    }

    fn add_item(&mut self, num: i64, item: FeedItem) {
        let rows = self.journal.range((num, i64::MIN)..=(num, i64::MAX));
        let place = rows.map(|((_, place), _)| *place).next_back();
        let place = (num, place.map_or(1, |last| last + 1));
        self.journal.insert(place, item);
        self.positions.insert(next(&self.positions), place);
    }

    /// Records that a process took the lease of a run that is neither queued nor over.
    pub(super) fn note_taken(&mut self, num: i64, now_ms: i64) -> Result<(), StoreError> {
        let Some(run) = self.runs.get(&num) else {
            return Err(StoreError::Internal(format!("there is no run {num}")));
        };
        let status = run.row.status;
        if status == RunStatus::Queued || status.is_final() {
            return Ok(());
        }
        let pass = run.row.pass;
        let is_first = pass == 0 && (run.epoch == 1 || !self.has_started(num));
        self.add_event(num, Event::taken(is_first, pass, now_ms));
        Ok(())
    }

    fn has_started(&self, num: i64) -> bool {
        use flowstone_model::ports::EventKind::{RunResumed, RunStarted};
        let mut rows = self.journal.range((num, i64::MIN)..=(num, i64::MAX));
        rows.any(|(_, item)| match item {
            FeedItem::Event(event) => matches!(event.kind, RunStarted | RunResumed),
            FeedItem::Entry(_) => false,
        })
    }
}

impl Tx<'_> {
    /// Records that a wait was answered.
    pub(super) fn note_answered(&mut self, num: i64, wait: &WaitRow, answered: &Answered) {
        let event = Event::wait_answered(&place(wait), answered);
        self.state.add_event_with_above(num, &wait.key, event);
    }

    /// Records that a wait timed out.
    pub(super) fn note_timed_out(&mut self, num: i64, wait: &WaitRow, now_ms: i64) {
        let event = Event::wait_timed_out(&place(wait), now_ms);
        self.state.add_event_with_above(num, &wait.key, event);
    }
}

fn place(wait: &WaitRow) -> WaitPlace<'_> {
    WaitPlace {
        id: &wait.id,
        path: &wait.path,
        key: &wait.key,
    }
}

/// Removes positions without rows, except the last one: positions never decrease.
pub(super) fn sweep(state: &mut State) {
    let last = next(&state.positions) - 1;
    let State {
        positions, journal, ..
    } = state;
    positions.remove_where(|position, place| *position < last && journal.get(place).is_none());
}
