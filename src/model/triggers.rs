//! Triggers: schedules and subscriptions that were created for a flow outside of its text, and the deliveries of their events.
//!
//! A trigger starts runs of the version that it was created with. Texts in these rows are JSON. Nothing here knows how an event
//! arrives or how a run starts.

use crate::ids::RunId;
use crate::registry::FlowName;

/// What a trigger starts runs on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum TriggerKind {
    /// The ticks of a cron expression.
    Schedule,
    /// The events of a connection or of a flow.
    Subscription,
    /// Waits for one event of a subscription, and never starts a run.
    Watch,
}

impl TriggerKind {
    pub fn name(self) -> &'static str {
        match self {
            TriggerKind::Schedule => "schedule",
            TriggerKind::Subscription => "subscription",
            TriggerKind::Watch => "watch",
        }
    }

    pub fn named(name: &str) -> Option<TriggerKind> {
        [
            TriggerKind::Schedule,
            TriggerKind::Subscription,
            TriggerKind::Watch,
        ]
        .into_iter()
        .find(|kind| kind.name() == name)
    }
}

/// A schedule or a subscription.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TriggerRow {
    pub id: String,
    pub kind: TriggerKind,
    pub flow: FlowName,
    pub name: Option<String>,
    pub description: Option<String>,
    pub event_key: String,
    /// The cron expression of a schedule.
    pub schedule: Option<String>,
    /// The window of a schedule: its first minute, and the minute after its last one.
    pub start_ms: Option<i64>,
    pub end_ms: Option<i64>,
    /// The connection whose events a subscription receives.
    pub connection: Option<String>,
    pub trigger_config: Option<String>,
    pub inputs_fields: Option<String>,
    /// The version of the flow that is started, and its revision id.
    pub version: i64,
    pub revision: String,
    pub is_active: bool,
    /// The next tick of a schedule; the end of a watch.
    pub next_ms: Option<i64>,
    /// The last tick or event that was delivered.
    pub last_ms: Option<i64>,
    /// The position in the feed of the project up to which a subscription has received events.
    pub position: Option<i64>,
    pub created_ms: i64,
    pub updated_ms: i64,
}

/// The delivery of an event to a trigger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventDelivery {
    /// For the first delivery of an event: [`first_delivery`].
    pub id: String,
    pub trigger: String,
    pub kind: TriggerKind,
    pub flow: FlowName,
    pub event_id: String,
    pub event_key: String,
    /// 200 delivered, 409 duplicate, 422 inputs refused, 500 not started.
    pub code: u16,
    pub message: String,
    pub inputs: Option<String>,
    pub run: Option<RunId>,
    pub error: Option<String>,
    /// The event with its trigger and scope, as `inputs_fields` refer to them.
    pub context: String,
    /// The number of subscriptions on the way to this delivery: an event of a run that a subscription started has one more.
    pub depth: i64,
    /// Number of attempts to start the run.
    pub attempts: i64,
    /// When the run is attempted again.
    pub retry_ms: Option<i64>,
    pub created_ms: i64,
}

/// Returns the id of the first delivery of an event to a trigger, so that it can be recorded once only.
pub fn first_delivery(trigger: &str, event_id: &str) -> String {
    format!(
        "dlv_{}",
        RunId::derived(&format!("delivery {trigger} {event_id}"))
    )
}

/// A delivery to be recorded, with what it changes in its trigger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewDelivery {
    /// `None`: only the trigger changes.
    pub delivery: Option<EventDelivery>,
    /// The state of the trigger that the caller saw, and the new one.
    pub trigger: Option<(TriggerRow, TriggerRow)>,
}

/// Selects deliveries of a flow, newest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeliveryQuery {
    pub flow: FlowName,
    /// The trigger; `None`: all triggers of the flow.
    pub trigger: Option<String>,
    /// Only deliveries before this one, by time and id.
    pub before: Option<(i64, String)>,
    pub limit: usize,
}

/// The deliveries of a trigger that are kept; older ones are removed.
pub const MOST_DELIVERIES: usize = 1_000;
