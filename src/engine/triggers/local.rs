//! Events of runs: `flow.SLUG.completed`, `flow.SLUG.failed` and `flow.SLUG.waiting`, read from the feed of the project.
//!
//! Each subscription records up to which position it has received events, so that none is lost while no worker runs. Events of
//! tests are left out.

use std::collections::BTreeMap;

use flowstone_lang::value::Value;
use serde_json::{Value as Json, json};

use super::receive::{fits, is_open};
use super::{TriggerEvent, TriggerRow};
use crate::bindings::Bindings;
use crate::codec;
use crate::engine::Engine;
use crate::json::to_json;
use crate::ports::{EventKind, FeedDetail, FeedItem, ProjectFeedRow, RunRow, StoreError};
use crate::registry::DEFAULT_WORKSPACE;

/// The connection of events of the same workspace.
pub const LOCAL: &str = "local";
/// Number of rows of the feed that are read at once.
const PAGE: usize = 200;
/// The position of a subscription without new events is written after that many rows.
const WRITTEN_AFTER: i64 = 1_000;
/// Maximum size of a result in an event, in bytes.
const MOST_RESULT: usize = 262_144;
/// The ends of the names of events, with what they are made of.
pub const LOCAL_EVENTS: &[&str] = &["completed", "failed", "waiting"];

/// Delivers events of runs to subscriptions.
#[derive(Debug, Default)]
pub struct LocalEvents {
    /// The position of each subscription and watch.
    read: BTreeMap<String, i64>,
    /// The only watch to deliver to.
    only: Option<String>,
}

impl LocalEvents {
    /// Returns the delivery to one watch.
    pub fn of(id: &str) -> LocalEvents {
        LocalEvents {
            only: Some(id.to_owned()),
            ..LocalEvents::default()
        }
    }

    /// Delivers the events that have come since the last turn. Tells whether there are subscriptions.
    ///
    /// # Errors
    /// When the store fails; events that were not recorded come again.
    pub async fn turn(&mut self, engine: &Engine) -> Result<bool, StoreError> {
        let mut rows = engine.stores().triggers.listening(LOCAL).await?;
        let now_ms = engine.now_ms();
        rows.retain(|row| {
            // Runs do not say their workspace, so the others receive none of these events.
            row.flow.workspace == DEFAULT_WORKSPACE
                && is_open(row, now_ms)
                && self.only.as_ref().is_none_or(|only| *only == row.id)
        });
        self.read
            .retain(|id, _| rows.iter().any(|row| row.id == *id));
        if rows.is_empty() {
            return Ok(false);
        }
        let feed = engine.stores().feed.clone();
        loop {
            let positions = rows.iter().map(|row| self.position(row));
            let Some(after) = positions.min() else {
                return Ok(false);
            };
            let page = feed.project(after, PAGE, FeedDetail::Events).await?;
            for item in &page.rows {
                self.deliver(engine, item, &rows).await?;
            }
            for row in &rows {
                let position = self.position(row).max(page.next);
                self.read.insert(row.id.clone(), position);
                write(engine, row, position).await?;
            }
            if page.rows.len() < PAGE || page.next <= after {
                return Ok(true);
            }
        }
    }

    fn position(&self, row: &TriggerRow) -> i64 {
        let known = self.read.get(&row.id).copied();
        known.max(row.position).unwrap_or(0)
    }

    async fn deliver(
        &self,
        engine: &Engine,
        item: &ProjectFeedRow,
        rows: &[TriggerRow],
    ) -> Result<(), StoreError> {
        let FeedItem::Event(event) = &item.row.item else {
            return Ok(());
        };
        let Some(what) = name_of(event.kind) else {
            return Ok(());
        };
        // The wait of a called run is an event of that run.
        let data = codec::decode(&event.data).unwrap_or(Value::Nil);
        if data.get("child").is_some() {
            return Ok(());
        }
        let key = format!("flow.{}.{what}", item.flow);
        let wanted = rows.iter();
        let mut wanted = wanted
            .filter(|row| row.event_key == key && self.position(row) < item.position)
            .peekable();
        if wanted.peek().is_none() {
            return Ok(());
        }
        let Some(run) = engine.stores().runs.find(&item.run).await? else {
            return Ok(());
        };
        let bindings = Bindings::decode(run.bindings.as_deref());
        if bindings.is_ok_and(|bindings| bindings.test.is_some()) {
            return Ok(());
        }
        let attributes = attributes(&run, what, &event.data);
        let event = TriggerEvent {
            id: format!("evt_{}_{}", run.id, item.row.seq),
            at_ms: event.at_ms,
            depth: depth(engine, &run).await? + 1,
            attributes,
        };
        for row in wanted {
            let known = super::first_delivery(&row.id, &event.id);
            let known = engine.stores().triggers.delivery(&known);
            // Read again after a crash or by another worker.
            if known.await?.is_none() && fits(row, &event.attributes) {
                engine.deliver_to(row.clone(), &event).await?;
            }
        }
        Ok(())
    }
}

/// Records a position, if it is far from the recorded one.
async fn write(engine: &Engine, row: &TriggerRow, position: i64) -> Result<(), StoreError> {
    let triggers = &engine.stores().triggers;
    if position - row.position.unwrap_or(0) < WRITTEN_AFTER {
        return Ok(());
    }
    let Some(now) = triggers.trigger(&row.id).await? else {
        return Ok(());
    };
    if position - now.position.unwrap_or(0) >= WRITTEN_AFTER {
        let moved = TriggerRow {
            position: Some(position),
            ..now.clone()
        };
        triggers.change_trigger(now, moved).await?;
    }
    Ok(())
}

/// Returns the number of subscriptions that led to a run.
async fn depth(engine: &Engine, run: &RunRow) -> Result<i64, StoreError> {
    let root = run.parent.as_ref().map_or(&run.id, |parent| &parent.root);
    let triggers = &engine.stores().triggers;
    let delivery = triggers.delivery_of(root.as_str()).await?;
    Ok(delivery.map_or(0, |delivery| delivery.depth))
}

fn name_of(kind: EventKind) -> Option<&'static str> {
    match kind {
        EventKind::RunCompleted => Some("completed"),
        EventKind::RunFailed | EventKind::RunTimedOut => Some("failed"),
        EventKind::WaitOpened => Some("waiting"),
        EventKind::RunCreated
        | EventKind::RunStarted
        | EventKind::RunResumed
        | EventKind::RunContinued
        | EventKind::RunOrphaned
        | EventKind::RunCancelling
        | EventKind::RunCancelled
        | EventKind::RunTerminated
        | EventKind::WaitAnswered
        | EventKind::WaitTimedOut
        | EventKind::JobClaimed
        | EventKind::JobProgress => None,
    }
}

/// Returns what an event says about its run.
fn attributes(run: &RunRow, what: &str, data: &str) -> Json {
    let mut attributes = json!({
        "flow": run.flow,
        "run_id": run.id.as_str(),
        "trace_id": run.in_trace().trace.to_string(),
        "status": run.status.name(),
    });
    let decoded = |text: &str| {
        let value = codec::decode(text).ok();
        value
            .and_then(|value| to_json(&value).ok())
            .unwrap_or(Json::Null)
    };
    match what {
        "completed" => {
            let text = run.result.as_deref();
            let is_kept = text.is_none_or(|text| text.len() <= MOST_RESULT);
            attributes["output"] = text.filter(|_| is_kept).map_or(Json::Null, decoded);
            if !is_kept {
                attributes["output_left_out"] = json!(true);
            }
        }
        "failed" => {
            let text = run
                .error
                .as_deref()
                .filter(|text| text.len() <= MOST_RESULT);
            attributes["error"] = text.map_or(Json::Null, decoded);
        }
        _ => attributes["wait"] = decoded(data),
    }
    attributes
}
