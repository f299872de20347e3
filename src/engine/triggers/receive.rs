//! Events from outside and of other flows: which subscriptions receive them, and what is recorded.

use serde_json::{Value as Json, json};

use super::{
    EventDelivery, LOCAL, NOTHING, NewDelivery, TriggerEvent, TriggerKind, TriggerRow, context_of,
    first_delivery, first_record, kept,
};
use crate::engine::Engine;
use crate::ports::StoreError;

/// Maximum number of subscriptions on the way from one event to another.
pub const MOST_DEPTH: i64 = 16;
/// The code of an event that too many subscriptions led to.
const TOO_DEEP: &str = "E1540";
/// The member of `trigger_config` with the values that an event must have.
const MATCH: &str = "match";
/// Number of attempts to record a delivery while its subscription changes.
const ATTEMPTS: usize = 5;

impl Engine {
    /// Delivers an event of a connection to the subscriptions and watches for it. Returns their deliveries.
    ///
    /// # Errors
    /// When the store cannot be read or written; the sender repeats the event then.
    pub async fn deliver_event(
        &self,
        connection: &str,
        event_key: &str,
        event: &TriggerEvent,
    ) -> Result<Vec<EventDelivery>, StoreError> {
        let mut delivered = Vec::new();
        for row in self.stores().triggers.listening(connection).await? {
            if row.event_key == event_key
                && is_open(&row, self.now_ms())
                && fits(&row, &event.attributes)
            {
                delivered.extend(self.deliver_to(row, event).await?);
            }
        }
        Ok(delivered)
    }

    /// Delivers an event to a subscription or a watch.
    pub(super) async fn deliver_to(
        &self,
        mut row: TriggerRow,
        event: &TriggerEvent,
    ) -> Result<Option<EventDelivery>, StoreError> {
        let triggers = &self.stores().triggers;
        for _ in 0..ATTEMPTS {
            let (delivery, after) = match row.kind {
                TriggerKind::Watch => (self.seen(&row, event), Some(ended(&row))),
                TriggerKind::Subscription => self.delivery_to(&row, event).await?,
                TriggerKind::Schedule => return Ok(None),
            };
            let new = NewDelivery {
                delivery: Some(delivery.clone()),
                trigger: after.map(|after| (row.clone(), after)),
            };
            if triggers.record_delivery(new).await? {
                return Ok(Some(delivery));
            }
            // The subscription was changed meanwhile, or another process has delivered the event.
            let is_local = row.connection.as_deref() == Some(LOCAL);
            if is_local && triggers.delivery(&delivery.id).await?.is_some() {
                return Ok(None);
            }
            match triggers.trigger(&row.id).await? {
                Some(now) if now.is_active => row = now,
                _ => return Ok(None),
            }
        }
        Ok(None)
    }

    /// Starts the run of an event. Returns the record and the subscription afterwards.
    async fn delivery_to(
        &self,
        row: &TriggerRow,
        event: &TriggerEvent,
    ) -> Result<(EventDelivery, Option<TriggerRow>), StoreError> {
        let now_ms = self.now_ms();
        let known = self
            .stores()
            .triggers
            .delivery(&first_delivery(&row.id, &event.id));
        if let Some(known) = known.await? {
            return Ok((self.duplicate(&known), None));
        }
        let context = context_of(row, event, now_ms);
        let delivery = match event.depth > MOST_DEPTH {
            true => too_deep(self.seen(row, event)),
            false => {
                let attempt = self.attempt(row, &event.id, &context).await?;
                first_record(row, (event, &context), &attempt, now_ms)
            }
        };
        let after = TriggerRow {
            last_ms: Some(event.at_ms),
            ..row.clone()
        };
        Ok((delivery, Some(after)))
    }

    /// Returns the record of an event that starts no run.
    fn seen(&self, row: &TriggerRow, event: &TriggerEvent) -> EventDelivery {
        let now_ms = self.now_ms();
        let context = context_of(row, event, now_ms);
        let fields = row.inputs_fields.as_deref();
        let fields: Option<Json> = fields.and_then(|text| serde_json::from_str(text).ok());
        let inputs = super::fields::resolve(fields.as_ref(), &context);
        EventDelivery {
            id: first_delivery(&row.id, &event.id),
            trigger: row.id.clone(),
            kind: row.kind,
            flow: row.flow.clone(),
            event_id: event.id.clone(),
            event_key: row.event_key.clone(),
            code: 200,
            message: "delivered".to_owned(),
            inputs: kept(&inputs),
            run: None,
            error: None,
            context: context.to_string(),
            depth: event.depth,
            attempts: 1,
            retry_ms: None,
            created_ms: now_ms,
        }
    }

    /// Returns the record of an event that was delivered before.
    fn duplicate(&self, known: &EventDelivery) -> EventDelivery {
        EventDelivery {
            id: format!("dlv_{}", self.new_record_id()),
            code: 409,
            message: "duplicate".to_owned(),
            attempts: 1,
            retry_ms: None,
            context: NOTHING.to_owned(),
            created_ms: self.now_ms(),
            ..known.clone()
        }
    }
}

fn too_deep(delivery: EventDelivery) -> EventDelivery {
    let message = format!("more than {MOST_DEPTH} subscriptions led to this event");
    EventDelivery {
        code: 500,
        message: "the run was not started".to_owned(),
        error: Some(json!({"code": TOO_DEEP, "message": message}).to_string()),
        ..delivery
    }
}

/// Returns a watch that has its event.
fn ended(row: &TriggerRow) -> TriggerRow {
    TriggerRow {
        is_active: false,
        ..row.clone()
    }
}

/// Tells whether a trigger receives events: a watch ends by itself.
pub(super) fn is_open(row: &TriggerRow, now_ms: i64) -> bool {
    row.kind != TriggerKind::Watch || row.next_ms.is_some_and(|end_ms| end_ms > now_ms)
}

/// Tells whether an event has the values that a subscription wants.
pub fn fits(row: &TriggerRow, attributes: &Json) -> bool {
    let config = row.trigger_config.as_deref();
    let config: Option<Json> = config.and_then(|text| serde_json::from_str(text).ok());
    let wanted = config
        .as_ref()
        .and_then(|config| config.get(MATCH)?.as_object());
    wanted.is_none_or(|wanted| {
        let mut wanted = wanted.iter();
        wanted.all(|(pointer, value)| attributes.pointer(pointer) == Some(value))
    })
}
