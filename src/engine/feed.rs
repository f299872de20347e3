//! The feeds of runs and of the project: what readers outside see of runs, as numbered events.
//!
//! Events are made from rows of the journal when they are read, so nothing is written twice. What an event says about
//! earlier rows (attempts, durations, the turn of a tool call) comes from a fold over them; a reader keeps the fold
//! between pages.

mod agents;
mod fold;
mod live;

use std::collections::HashMap;

use flowstone_model::feed_event::FeedEvent;
use serde_json::{Map, json};

use crate::engine::Engine;
use crate::ids::RunId;
use crate::ports::{
    EventKind, FeedDetail, FeedItem, FeedRow, LiveText, News, RunRow, StoreError, Stores,
};
pub(crate) use agents::{Agents, Nested};
use fold::Fold;
pub(crate) use live::LiveObserver;

/// Number of rows that are read at a time where a fold begins.
const PAGE: usize = 1000;
/// Maximum number of runs whose fold a reader of the project keeps.
const FOLDS_MAX: usize = 1024;

/// Reads feeds. It can be used from any thread.
#[derive(Clone)]
pub struct Feeds {
    stores: Stores,
}

/// A page of a run's feed.
#[derive(Debug, Clone, PartialEq)]
pub struct RunEvents {
    pub events: Vec<FeedEvent>,
    /// The number to continue after.
    pub next: i64,
    pub state: FeedState,
}

/// Whether there is more of a run's feed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FeedState {
    /// There is more already.
    More,
    /// The run is not over: [`Feeds::watch`] reports when there is more.
    Open,
    /// The run is over, and everything was read.
    Ended,
    /// The journal of the run was removed, and with it the feed.
    Gone,
}

/// A page of the project's feed.
#[derive(Debug, Clone, PartialEq)]
pub struct ProjectEvents {
    pub events: Vec<FeedEvent>,
    /// The runs that end in this page, of those that [`ProjectFeed::noticing`] selects.
    pub noticed: Vec<RunId>,
    /// The position to continue after.
    pub next: i64,
}

impl Engine {
    /// Returns what reads the feeds of runs and of the project.
    pub fn feeds(&self) -> Feeds {
        Feeds::new(self.stores().clone())
    }
}

impl Feeds {
    /// Reads feeds from stores.
    pub fn new(stores: Stores) -> Feeds {
        Feeds { stores }
    }

    /// Returns the events of a run after a number. Returns nothing if the run does not exist.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn run(
        &self,
        run: &RunId,
        after: i64,
        limit: usize,
    ) -> Result<Option<RunEvents>, StoreError> {
        self.follow(run, after).page(limit).await
    }

    /// Returns a reader that reads a run page by page, from after a number.
    pub fn follow(&self, run: &RunId, after: i64) -> RunFeed {
        RunFeed {
            stores: self.stores.clone(),
            run: run.clone(),
            after: after.max(0),
            fold: None,
            has_input: false,
        }
    }

    /// Returns what changes whenever a run may have new events, also those of other processes.
    pub fn watch(&self, run: &RunId) -> Box<dyn News> {
        self.stores.feed.watch(run)
    }

    /// Returns a reader of the project's feed, from after a position.
    pub fn follow_project(&self, after: i64, detail: FeedDetail) -> ProjectFeed {
        ProjectFeed {
            stores: self.stores.clone(),
            after,
            detail,
            folds: HashMap::new(),
            noticed: &[],
        }
    }

    /// Returns the events of all runs after a position.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn project(
        &self,
        after: i64,
        limit: usize,
        detail: FeedDetail,
    ) -> Result<ProjectEvents, StoreError> {
        self.follow_project(after, detail).page(limit).await
    }

    /// Returns the position of the last event of the project: where a reader begins that wants new events only.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn last_position(&self) -> Result<i64, StoreError> {
        self.stores.feed.last_position().await
    }

    /// Returns what changes whenever the project may have new events, also those of other processes.
    pub fn watch_project(&self) -> Box<dyn News> {
        self.stores.feed.news()
    }

    /// Returns the texts of models that this process is receiving for a run. They are not stored.
    pub fn live(&self, run: &RunId) -> Box<dyn LiveText> {
        self.stores.live.join(run)
    }
}

/// A reader of a run's feed.
pub struct RunFeed {
    stores: Stores,
    run: RunId,
    after: i64,
    /// What the rows up to `after` say, with the flow's slug.
    fold: Option<(Fold, String)>,
    has_input: bool,
}

impl RunFeed {
    /// Adds the input of the run to the event of its creation.
    #[must_use]
    pub fn with_input(mut self) -> RunFeed {
        self.has_input = true;
        self
    }

    /// Returns the next events. Returns nothing if the run does not exist.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn page(&mut self, limit: usize) -> Result<Option<RunEvents>, StoreError> {
        let Some(page) = self.stores.feed.read(&self.run, self.after, limit).await? else {
            return Ok(None);
        };
        if page.is_pruned {
            return Ok(Some(self.ended(FeedState::Gone)));
        }
        let is_full = page.rows.len() >= limit.max(1);
        let state = match (is_full, page.status.is_final()) {
            (true, _) => FeedState::More,
            (false, true) => FeedState::Ended,
            (false, false) => FeedState::Open,
        };
        if page.rows.is_empty() {
            return Ok(Some(self.ended(state)));
        }
        let Some((mut fold, flow)) = self.fold().await? else {
            return Ok(None);
        };
        let row = match page.rows.iter().any(|row| self.needs_row(&row.item)) {
            true => self.stores.runs.find(&self.run).await?,
            false => None,
        };
        let mut events = Vec::new();
        for FeedRow { seq, item } in page.rows {
            if seq > self.after + 1 {
                // A pass that the reader has not read to its end was dropped.
                fold.reset();
                events.push(self.truncated(seq, &item, &flow));
            }
            let at_ms = item.at_ms();
            let (name, data) = fold.event(&self.run, page.pass, item, row.as_ref());
            events.push(FeedEvent {
                seq,
                position: None,
                name,
                at_ms,
                run: self.run.clone(),
                flow: flow.clone(),
                data,
            });
            self.after = seq;
        }
        self.fold = Some((fold, flow));
        Ok(Some(RunEvents {
            events,
            next: self.after,
            state,
        }))
    }

    fn ended(&self, state: FeedState) -> RunEvents {
        RunEvents {
            events: Vec::new(),
            next: self.after,
            state,
        }
    }

    /// Tells whether an event needs the row of its run.
    fn needs_row(&self, item: &FeedItem) -> bool {
        match item {
            FeedItem::Event(event) => {
                event.kind.is_end() || (self.has_input && event.kind == EventKind::RunCreated)
            }
            FeedItem::Entry(_) => false,
        }
    }

    fn truncated(&self, first: i64, item: &FeedItem, flow: &str) -> FeedEvent {
        FeedEvent {
            seq: first - 1,
            position: None,
            name: "run.truncated",
            at_ms: item.at_ms(),
            run: self.run.clone(),
            flow: flow.to_owned(),
            data: Map::from_iter([("firstSeq".to_owned(), json!(first))]),
        }
    }

    /// Returns the fold over the rows that were read, which a reader that begins later has to make up for.
    async fn fold(&mut self) -> Result<Option<(Fold, String)>, StoreError> {
        if let Some(fold) = self.fold.take() {
            return Ok(Some(fold));
        }
        let Some(row) = self.stores.runs.find(&self.run).await? else {
            return Ok(None);
        };
        let mut fold = Fold::new(row.created_ms, self.has_input);
        fold.catch_up(&self.stores, &self.run, self.after).await?;
        Ok(Some((fold, row.flow)))
    }
}

impl Fold {
    /// Takes in the rows of a run up to a number.
    async fn catch_up(&mut self, stores: &Stores, run: &RunId, to: i64) -> Result<(), StoreError> {
        let mut after = 0;
        while after < to {
            let Some(page) = stores.feed.read(run, after, PAGE).await? else {
                return Ok(());
            };
            let Some(last) = page.rows.last().map(|row| row.seq) else {
                return Ok(());
            };
            for row in page.rows.into_iter().filter(|row| row.seq <= to) {
                self.take(row.item);
            }
            after = last;
        }
        Ok(())
    }
}

/// A reader of the project's feed.
pub struct ProjectFeed {
    stores: Stores,
    after: i64,
    detail: FeedDetail,
    /// By run, where entries are read, too.
    folds: HashMap<RunId, Fold>,
    /// The beginnings of the external ids of runs whose ends are noticed.
    noticed: &'static [&'static str],
}

impl ProjectFeed {
    /// Returns the same reader, which also lists the ended runs whose external id begins with one of some texts. The reader
    /// has the row of each ended run in its hands, so this costs nothing.
    #[must_use]
    pub fn noticing(self, prefixes: &'static [&'static str]) -> ProjectFeed {
        ProjectFeed {
            noticed: prefixes,
            ..self
        }
    }

    /// Returns the next events; none if there are no more yet.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn page(&mut self, limit: usize) -> Result<ProjectEvents, StoreError> {
        let (mut events, mut noticed) = (Vec::new(), Vec::new());
        loop {
            let after = self.after;
            let page = self.stores.feed.project(after, limit, self.detail).await?;
            self.after = page.next;
            for found in page.rows {
                let FeedRow { seq, item } = found.row;
                let row = self.row(&found.run, &item).await?;
                let at_ms = item.at_ms();
                let is_end = matches!(&item, FeedItem::Event(event) if event.kind.is_end());
                let fold = self.fold(&found.run, seq, at_ms).await?;
                let (name, data) = fold.event(&found.run, found.pass, item, row.as_ref());
                if is_end {
                    self.folds.remove(&found.run);
                    noticed.extend(row.filter(|row| self.is_noticed(row)).map(|row| row.id));
                }
                events.push(FeedEvent {
                    seq,
                    position: Some(found.position),
                    name,
                    at_ms,
                    run: found.run,
                    flow: found.flow,
                    data,
                });
            }
            // A page may consist of entries that are left out.
            if !events.is_empty() || self.after == after {
                let next = self.after;
                return Ok(ProjectEvents {
                    events,
                    noticed,
                    next,
                });
            }
        }
    }

    fn is_noticed(&self, row: &RunRow) -> bool {
        let name = row.external_id.as_deref().unwrap_or_default();
        self.noticed.iter().any(|prefix| name.starts_with(prefix))
    }

    async fn row(&self, run: &RunId, item: &FeedItem) -> Result<Option<RunRow>, StoreError> {
        match item {
            FeedItem::Event(event) if event.kind.is_end() => self.stores.runs.find(run).await,
            FeedItem::Event(_) | FeedItem::Entry(_) => Ok(None),
        }
    }

    /// Returns the fold over the rows of a run before one of them.
    async fn fold(&mut self, run: &RunId, seq: i64, at_ms: i64) -> Result<&mut Fold, StoreError> {
        if !self.folds.contains_key(run) {
            if self.folds.len() >= FOLDS_MAX {
                self.folds.clear();
            }
            let mut fold = Fold::new(at_ms, false);
            if self.detail == FeedDetail::Steps {
                let row = self.stores.runs.find(run).await?;
                fold = Fold::new(row.map_or(at_ms, |row| row.created_ms), false);
                fold.catch_up(&self.stores, run, seq - 1).await?;
            }
            self.folds.insert(run.clone(), fold);
        }
        let missing = || StoreError::Internal("a fold is missing".to_owned());
        self.folds.get_mut(run).ok_or_else(missing)
    }
}
