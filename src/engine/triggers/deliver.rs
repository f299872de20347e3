//! The part of a worker that starts what triggers are due for.

use std::rc::Rc;

use serde_json::{Value as Json, json};

use super::{
    Attempt, EventDelivery, LocalEvents, NewDelivery, TriggerEvent, TriggerKind, TriggerRow,
    context_of, due_tick_ms, first_delivery, first_record, next_tick_ms, note_attempt,
    tick_event_id,
};
use crate::codec;
use crate::engine::Engine;
use crate::ports::StoreError;
use crate::registry::FlowName;

/// How often the store is asked for triggers that other processes created.
const LOOK_EVERY_MS: i64 = 1_000;

/// Delivers the ticks of schedules, and repeats deliveries that failed.
pub(crate) struct Deliveries {
    engine: Rc<Engine>,
    looked_ms: i64,
    next_ms: Option<i64>,
    local: LocalEvents,
    has_local: bool,
}

/// A tick that was delivered.
pub(crate) struct Fired {
    pub row: TriggerRow,
    pub tick_ms: i64,
    pub attempt: Attempt,
}

impl Deliveries {
    pub(crate) fn new(engine: Rc<Engine>) -> Deliveries {
        Deliveries {
            local: LocalEvents::default(),
            has_local: false,
            engine,
            looked_ms: i64::MIN,
            next_ms: None,
        }
    }

    /// Returns the time at which there is work again.
    pub(crate) fn next_ms(&self) -> Option<i64> {
        self.next_ms
    }

    /// Delivers what is due. Returns the ticks.
    ///
    /// # Errors
    /// When the store fails; what was not recorded remains due.
    pub(crate) async fn turn(&mut self, now_ms: i64) -> Result<Vec<Fired>, StoreError> {
        let is_due = self.next_ms.is_some_and(|next_ms| next_ms <= now_ms);
        let age_ms = now_ms.saturating_sub(self.looked_ms);
        let is_recent = (0..LOOK_EVERY_MS).contains(&age_ms);
        if self.has_local || !is_recent {
            self.has_local = self.local.turn(&self.engine).await?;
        }
        if !is_due && is_recent {
            return Ok(Vec::new());
        }
        self.looked_ms = now_ms;
        let triggers = self.engine.stores().triggers.clone();
        let mut fired = Vec::new();
        for row in triggers.due_triggers(now_ms).await? {
            match row.kind {
                TriggerKind::Schedule => fired.extend(self.fire(row, now_ms).await?),
                // The process that waited for the event is gone.
                TriggerKind::Watch => drop(triggers.remove_trigger(&row.id).await?),
                TriggerKind::Subscription => {}
            }
        }
        for delivery in triggers.due_deliveries(now_ms).await? {
            self.retry(delivery, now_ms).await?;
        }
        self.next_ms = triggers.next_trigger_ms().await?;
        Ok(fired)
    }

    /// Delivers the last due tick of a schedule.
    async fn fire(&self, row: TriggerRow, now_ms: i64) -> Result<Option<Fired>, StoreError> {
        let triggers = &self.engine.stores().triggers;
        let tick_ms = due_tick_ms(&row, now_ms);
        let mut after = TriggerRow {
            next_ms: next_tick_ms(&row, now_ms.saturating_add(1)),
            ..row.clone()
        };
        let is_archived = self.is_archived(&row.flow).await?;
        let Some(tick_ms) = tick_ms.filter(|_| !is_archived) else {
            triggers.change_trigger(row, after).await?;
            return Ok(None);
        };
        after.last_ms = Some(tick_ms);
        let event = TriggerEvent {
            id: tick_event_id(&row, tick_ms),
            at_ms: tick_ms,
            attributes: json!({"scheduled_for": codec::instant(tick_ms)}),
            depth: 0,
        };
        // The clock was set back: this tick was delivered before.
        let known = triggers.delivery(&first_delivery(&row.id, &event.id));
        if known.await?.is_some() {
            triggers.change_trigger(row, after).await?;
            return Ok(None);
        }
        let context = context_of(&row, &event, now_ms);
        let attempt = self.engine.attempt(&row, &event.id, &context).await?;
        let new = NewDelivery {
            delivery: Some(first_record(&row, (&event, &context), &attempt, now_ms)),
            trigger: Some((row.clone(), after)),
        };
        // Otherwise another worker has recorded the same run, or the schedule was changed meanwhile: it is due again then.
        let is_recorded = triggers.record_delivery(new).await?;
        Ok(is_recorded.then_some(Fired {
            row,
            tick_ms,
            attempt,
        }))
    }

    /// Attempts a delivery again.
    async fn retry(&self, mut delivery: EventDelivery, now_ms: i64) -> Result<(), StoreError> {
        let triggers = &self.engine.stores().triggers;
        let Some(row) = triggers.trigger(&delivery.trigger).await? else {
            return Ok(());
        };
        if !row.is_active {
            delivery.attempts += 1;
            delivery.retry_ms = None;
            triggers.retry_delivery(delivery).await?;
            return Ok(());
        }
        let context: Json = serde_json::from_str(&delivery.context).unwrap_or(Json::Null);
        let attempt = self
            .engine
            .attempt(&row, &delivery.event_id, &context)
            .await?;
        note_attempt(&mut delivery, &attempt, now_ms);
        triggers.retry_delivery(delivery).await?;
        Ok(())
    }

    async fn is_archived(&self, flow: &FlowName) -> Result<bool, StoreError> {
        let row = self.engine.stores().registry.flow(flow).await?;
        Ok(row.is_some_and(|row| row.archived_ms.is_some()))
    }
}
