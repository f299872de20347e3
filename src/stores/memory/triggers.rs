//! Schedules, subscriptions and deliveries in memory.

use std::cmp::Reverse;

use flowstone_model::ports::{PortFuture, Triggers};
use flowstone_model::registry::FlowName;
use flowstone_model::triggers::{
    DeliveryQuery, EventDelivery, MOST_DELIVERIES, NewDelivery, TriggerKind, TriggerRow,
};

use super::state::State;
use super::{News, Session};

impl Triggers for Session {
    fn add_trigger(&self, row: TriggerRow, most: usize) -> PortFuture<'_, bool> {
        self.write(News::Some, |tx| {
            let known = tx.state.triggers.values();
            let known = known.filter(|it| it.flow == row.flow && it.kind == row.kind);
            if known.count() >= most {
                return Ok(false);
            }
            tx.state.triggers.insert(row.id.clone(), row);
            Ok(true)
        })
    }

    fn trigger(&self, id: &str) -> PortFuture<'_, Option<TriggerRow>> {
        let id = id.to_owned();
        self.read(|tx| Ok(tx.state.triggers.get(&id).cloned()))
    }

    fn triggers(&self, flow: &FlowName, kind: TriggerKind) -> PortFuture<'_, Vec<TriggerRow>> {
        self.read(|tx| {
            let rows = tx.state.triggers.values();
            let rows = rows.filter(|it| it.flow == *flow && it.kind == kind);
            let mut rows: Vec<TriggerRow> = rows.cloned().collect();
            rows.sort_by(|a, b| (a.created_ms, &a.id).cmp(&(b.created_ms, &b.id)));
            Ok(rows)
        })
    }

    fn change_trigger(&self, seen: TriggerRow, row: TriggerRow) -> PortFuture<'_, bool> {
        self.write(News::Some, |tx| Ok(change(tx.state, &seen, row)))
    }

    fn remove_trigger(&self, id: &str) -> PortFuture<'_, bool> {
        let id = id.to_owned();
        self.write(News::Some, |tx| {
            let open = tx.state.event_deliveries.values();
            let open = open.filter(|it| it.trigger == id && it.retry_ms.is_some());
            let open: Vec<String> = open.map(|it| it.id.clone()).collect();
            for open in open {
                if let Some(delivery) = tx.state.event_deliveries.get_mut(&open) {
                    delivery.retry_ms = None;
                }
            }
            Ok(tx.state.triggers.remove(&id).is_some())
        })
    }

    fn due_triggers(&self, now_ms: i64) -> PortFuture<'_, Vec<TriggerRow>> {
        self.read(|tx| {
            let rows = tx.state.triggers.values();
            let due = rows.filter(|it| it.next_ms.is_some_and(|next_ms| next_ms <= now_ms));
            let mut due: Vec<TriggerRow> = due.cloned().collect();
            due.sort_by(|a, b| (a.next_ms, &a.id).cmp(&(b.next_ms, &b.id)));
            Ok(due)
        })
    }

    fn listening(&self, connection: &str) -> PortFuture<'_, Vec<TriggerRow>> {
        self.read(|tx| {
            let rows = tx.state.triggers.values();
            let rows = rows.filter(|it| it.connection.as_deref() == Some(connection));
            Ok(rows.filter(|it| it.is_active).cloned().collect())
        })
    }

    fn next_trigger_ms(&self) -> PortFuture<'_, Option<i64>> {
        self.read(|tx| {
            let ticks = tx.state.triggers.values().filter_map(|it| it.next_ms);
            let attempts = tx.state.event_deliveries.values();
            let attempts = attempts.filter_map(|it| it.retry_ms);
            Ok(ticks.chain(attempts).min())
        })
    }

    fn record_delivery(&self, new: NewDelivery) -> PortFuture<'_, bool> {
        self.write(News::Some, |tx| {
            let deliveries = &tx.state.event_deliveries;
            let delivery = new.delivery.as_ref();
            if delivery.is_some_and(|it| deliveries.get(&it.id).is_some()) {
                return Ok(false);
            }
            if let Some((seen, row)) = new.trigger
                && !change(tx.state, &seen, row)
            {
                return Ok(false);
            }
            if let Some(delivery) = new.delivery {
                let trigger = delivery.trigger.clone();
                let id = delivery.id.clone();
                tx.state.event_deliveries.insert(id, delivery);
                forget(tx.state, &trigger);
            }
            Ok(true)
        })
    }

    fn retry_delivery(&self, delivery: EventDelivery) -> PortFuture<'_, bool> {
        self.write(News::Some, |tx| {
            let stored = tx.state.event_deliveries.get_mut(&delivery.id);
            let stored = stored.filter(|it| it.attempts + 1 == delivery.attempts);
            let is_expected = stored.is_some();
            if let Some(stored) = stored {
                *stored = delivery;
            }
            Ok(is_expected)
        })
    }

    fn delivery(&self, id: &str) -> PortFuture<'_, Option<EventDelivery>> {
        let id = id.to_owned();
        self.read(|tx| Ok(tx.state.event_deliveries.get(&id).cloned()))
    }

    fn delivery_of(&self, run: &str) -> PortFuture<'_, Option<EventDelivery>> {
        self.read(|tx| {
            let mut all = tx.state.event_deliveries.values();
            let found = all.find(|it| {
                let started = it.run.as_ref().map(flowstone_model::ids::RunId::as_str);
                it.code == 200 && started == Some(run)
            });
            Ok(found.cloned())
        })
    }

    fn due_deliveries(&self, now_ms: i64) -> PortFuture<'_, Vec<EventDelivery>> {
        self.read(|tx| {
            let all = tx.state.event_deliveries.values();
            let due = all.filter(|it| it.retry_ms.is_some_and(|retry_ms| retry_ms <= now_ms));
            let mut due: Vec<EventDelivery> = due.cloned().collect();
            due.sort_by(|a, b| (a.retry_ms, &a.id).cmp(&(b.retry_ms, &b.id)));
            Ok(due)
        })
    }

    fn deliveries(&self, query: DeliveryQuery) -> PortFuture<'_, Vec<EventDelivery>> {
        self.read(|tx| {
            let all = tx.state.event_deliveries.values();
            let found = all.filter(|it| {
                let trigger = query.trigger.as_ref();
                let before = query.before.as_ref();
                it.flow == query.flow
                    && trigger.is_none_or(|trigger| *trigger == it.trigger)
                    && before.is_none_or(|(at, id)| (it.created_ms, &it.id) < (*at, id))
            });
            let mut found: Vec<EventDelivery> = found.cloned().collect();
            found.sort_by_key(|it| Reverse((it.created_ms, it.id.clone())));
            found.truncate(query.limit);
            Ok(found)
        })
    }
}

fn change(state: &mut State, seen: &TriggerRow, row: TriggerRow) -> bool {
    if state.triggers.get(&seen.id) != Some(seen) {
        return false;
    }
    state.triggers.insert(row.id.clone(), row);
    true
}

/// Removes the oldest deliveries of a trigger that has too many.
fn forget(state: &mut State, trigger: &str) {
    let all = state.event_deliveries.values();
    let all = all.filter(|it| it.trigger == trigger && it.retry_ms.is_none());
    let mut all: Vec<(i64, String)> = all.map(|it| (it.created_ms, it.id.clone())).collect();
    all.sort();
    let over = all.len().saturating_sub(MOST_DELIVERIES);
    for (_, id) in all.into_iter().take(over) {
        state.event_deliveries.remove(&id);
    }
}
