//! Schedules and subscriptions that were created for flows, and the deliveries of their events.

use super::PortFuture;
use crate::registry::FlowName;
use crate::triggers::{DeliveryQuery, EventDelivery, NewDelivery, TriggerKind, TriggerRow};

/// The triggers of a project. Each change is one transaction.
pub trait Triggers: Send + Sync {
    /// Adds a trigger, unless the flow has `most` of its kind. Tells whether it was added.
    fn add_trigger(&self, row: TriggerRow, most: usize) -> PortFuture<'_, bool>;

    fn trigger(&self, id: &str) -> PortFuture<'_, Option<TriggerRow>>;

    /// Returns the triggers of a flow by the time of their creation.
    fn triggers(&self, flow: &FlowName, kind: TriggerKind) -> PortFuture<'_, Vec<TriggerRow>>;

    /// Writes a trigger if it is still as the caller saw it. Tells whether it was.
    fn change_trigger(&self, seen: TriggerRow, row: TriggerRow) -> PortFuture<'_, bool>;

    /// Removes a trigger. Its deliveries remain, but are not attempted again. Tells whether it was there.
    fn remove_trigger(&self, id: &str) -> PortFuture<'_, bool>;

    /// Returns the triggers whose next time has come, the earliest first.
    fn due_triggers(&self, now_ms: i64) -> PortFuture<'_, Vec<TriggerRow>>;

    /// Returns the active subscriptions and watches for the events of a connection.
    fn listening(&self, connection: &str) -> PortFuture<'_, Vec<TriggerRow>>;

    /// Returns the time of the next tick, of the next end of a watch or of the next attempt.
    fn next_trigger_ms(&self) -> PortFuture<'_, Option<i64>>;

    /// Records a delivery under a new id and changes its trigger. If the id is known, or the trigger is not as the caller saw
    /// it, nothing is changed. Tells whether it was recorded.
    fn record_delivery(&self, new: NewDelivery) -> PortFuture<'_, bool>;

    /// Writes the outcome of another attempt, if the number of attempts is one less in the store. Tells whether it was.
    fn retry_delivery(&self, delivery: EventDelivery) -> PortFuture<'_, bool>;

    fn delivery(&self, id: &str) -> PortFuture<'_, Option<EventDelivery>>;

    /// Returns the delivery that started a run.
    fn delivery_of(&self, run: &str) -> PortFuture<'_, Option<EventDelivery>>;

    /// Returns the deliveries whose next attempt is due, the earliest first.
    fn due_deliveries(&self, now_ms: i64) -> PortFuture<'_, Vec<EventDelivery>>;

    fn deliveries(&self, query: DeliveryQuery) -> PortFuture<'_, Vec<EventDelivery>>;
}
