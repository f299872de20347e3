//! Triggers: schedules and subscriptions that were created for a flow, and the delivery of their events.
//!
//! A delivery starts a run of the version that the trigger was created with, under an external id made of trigger and event.
//! So an event starts one run, also if the process ends between the start and the record of the delivery, or two workers
//! deliver at once. Surfaces and the worker decide when; nothing here waits.

mod deliver;
pub mod fields;
mod local;
mod receive;

use std::rc::Rc;

use serde_json::{Value as Json, json};

pub(crate) use deliver::Deliveries;
pub use flowstone_model::triggers::{
    DeliveryQuery, EventDelivery, MOST_DELIVERIES, NewDelivery, TriggerKind, TriggerRow,
    first_delivery,
};
pub use local::{LOCAL, LOCAL_EVENTS, LocalEvents};
pub use receive::{MOST_DEPTH, fits};

use crate::codec;
use crate::diagnostic::Severity;
use crate::engine::{Engine, StartOptions};
use crate::error::EngineError;
use crate::flow::LoadedFlow;
use crate::ids::RunId;
use crate::json::from_json;
use crate::ports::StoreError;
use crate::registered::{ARCHIVED, NO_VERSION};
use crate::schedule::Timing;

/// The delays before a start that failed is attempted again.
pub const RETRY_AFTER_MS: [i64; 5] = [10_000, 30_000, 120_000, 600_000, 1_800_000];
/// Maximum size of the inputs that a delivery keeps, in bytes; larger ones are only in the run.
const MOST_INPUTS: usize = 65_536;
/// The context of a delivery that is not attempted again.
const NOTHING: &str = "{}";
/// The length of the minute to which ticks and windows are cut.
pub const MINUTE_MS: i64 = 60_000;

/// The outcome of an attempt to deliver an event.
#[derive(Debug)]
pub struct Attempt {
    /// 200, 422 or 500.
    pub code: u16,
    pub message: String,
    pub inputs: Json,
    pub started: Result<RunId, EngineError>,
}

/// An event, as `inputs_fields` refer to it.
#[derive(Debug, Clone, PartialEq)]
pub struct TriggerEvent {
    pub id: String,
    /// When it happened.
    pub at_ms: i64,
    pub attributes: Json,
    pub depth: i64,
}

/// Returns the first tick of a schedule at or after a time and in its window.
pub fn next_tick_ms(row: &TriggerRow, from_ms: i64) -> Option<i64> {
    let timing = timing_of(row)?;
    let from_ms = from_ms.max(row.start_ms.unwrap_or(i64::MIN));
    let next_ms = timing.next_ms(from_ms.saturating_sub(1))?;
    let is_in_window = row.end_ms.is_none_or(|end_ms| next_ms < end_ms);
    is_in_window.then_some(next_ms)
}

/// Returns the last tick of a schedule from its next one to a time, and in its window.
fn due_tick_ms(row: &TriggerRow, now_ms: i64) -> Option<i64> {
    let last_ms = row.end_ms.map_or(now_ms, |end_ms| now_ms.min(end_ms - 1));
    timing_of(row)?.latest_ms(row.next_ms?, last_ms)
}

fn timing_of(row: &TriggerRow) -> Option<Timing> {
    // The expression was checked when the schedule was created.
    Timing::utc(row.schedule.as_deref()?).ok()
}

/// Returns the id of the event of a tick.
pub fn tick_event_id(row: &TriggerRow, tick_ms: i64) -> String {
    format!("{}:{}", row.id, codec::instant(tick_ms))
}

/// Returns what `inputs_fields` of a trigger refer to.
pub fn context_of(row: &TriggerRow, event: &TriggerEvent, now_ms: i64) -> Json {
    let own = json!({
        "id": row.id,
        "name": row.name,
        "tags": {},
        "meta": {},
        "created_at": codec::instant(row.created_ms),
        "updated_at": codec::instant(row.updated_ms),
    });
    let mut context = json!({
        "event": {
            "event_id": event.id,
            "event_type": row.event_key,
            "timestamp": codec::instant(event.at_ms),
            "created_at": codec::instant(now_ms),
            "attributes": event.attributes,
        },
        "subscription": own,
        "scope": {"workspace": row.flow.workspace, "flow": row.flow.slug},
    });
    if row.kind == TriggerKind::Schedule {
        context["schedule"] = context["subscription"].clone();
    }
    context
}

impl Engine {
    /// Returns the flow that a trigger starts.
    async fn flow_of_trigger(
        &self,
        row: &TriggerRow,
    ) -> Result<Result<LoadedFlow, EngineError>, StoreError> {
        let registry = &self.services.stores.registry;
        let found = registry.flow(&row.flow).await?;
        if found.is_some_and(|flow| flow.archived_ms.is_some()) {
            let message = format!("the flow `{}` is archived", row.flow);
            return Ok(Err(unstartable(ARCHIVED, message)));
        }
        let Some(version) = registry.version(&row.flow, row.version).await? else {
            let message = format!("version {} of `{}` is missing", row.version, row.flow);
            return Ok(Err(unstartable(NO_VERSION, message)));
        };
        let session = Rc::new(self.session());
        let checked = match self.version_flow(&session, &version, None).await {
            Ok(checked) => checked,
            Err(EngineError::Store(error)) => return Err(error),
            Err(error) => return Ok(Err(error)),
        };
        let mut findings = checked.findings.iter();
        let worst = findings.find(|finding| finding.severity == Severity::Error);
        Ok(match (worst, checked.loaded) {
            (Some(worst), _) => Err(unstartable(worst.code, worst.message.clone())),
            (None, Some(loaded)) => Ok(loaded),
            (None, None) => Err(unstartable(
                NO_VERSION,
                format!("version {} of `{}` is not a flow", row.version, row.flow),
            )),
        })
    }

    /// Starts the run of an event, once, however often it is attempted.
    ///
    /// # Errors
    /// When the store cannot be read or written; every other failure is an outcome.
    pub async fn attempt(
        &self,
        row: &TriggerRow,
        event_id: &str,
        context: &Json,
    ) -> Result<Attempt, StoreError> {
        let fields = row.inputs_fields.as_deref();
        let fields: Option<Json> = fields.and_then(|text| serde_json::from_str(text).ok());
        let inputs = fields::resolve(fields.as_ref(), context);
        let started = match self.flow_of_trigger(row).await? {
            Err(error) => Err(error),
            Ok(loaded) => {
                let options = StartOptions {
                    external_id: Some(format!("{}:{event_id}", row.id)),
                    is_left: true,
                    started_by: Some(format!("{}:{}", row.kind.name(), row.id)),
                    ..StartOptions::with_input(from_json(&inputs))
                };
                match self.submit(&loaded, options).await {
                    Ok(started) => Ok(started.run),
                    Err(EngineError::Store(error)) => return Err(error),
                    Err(error) => Err(error),
                }
            }
        };
        let (code, message) = match &started {
            Ok(_) => (200, "delivered".to_owned()),
            Err(error) if is_of_inputs(error) => (422, "the inputs were refused".to_owned()),
            Err(_) => (500, "the run was not started".to_owned()),
        };
        Ok(Attempt {
            code,
            message,
            inputs,
            started,
        })
    }
}

fn unstartable(code: &'static str, message: String) -> EngineError {
    EngineError::Unstartable { code, message }
}

/// Tells whether the inputs are the reason of a failure, so that another attempt would fail, too.
fn is_of_inputs(error: &EngineError) -> bool {
    matches!(
        error,
        EngineError::Input(_) | EngineError::ReservedInput { .. } | EngineError::NoKey { .. }
    )
}

/// Returns the record of the first attempt to deliver an event.
pub(crate) fn first_record(
    row: &TriggerRow,
    (event, context): (&TriggerEvent, &Json),
    attempt: &Attempt,
    now_ms: i64,
) -> EventDelivery {
    let mut delivery = EventDelivery {
        id: first_delivery(&row.id, &event.id),
        trigger: row.id.clone(),
        kind: row.kind,
        flow: row.flow.clone(),
        event_id: event.id.clone(),
        event_key: row.event_key.clone(),
        code: 0,
        message: String::new(),
        inputs: None,
        run: None,
        error: None,
        context: context.to_string(),
        depth: event.depth,
        attempts: 0,
        retry_ms: None,
        created_ms: now_ms,
    };
    note_attempt(&mut delivery, attempt, now_ms);
    delivery
}

/// Notes the outcome of an attempt in the record of a delivery.
fn note_attempt(delivery: &mut EventDelivery, attempt: &Attempt, now_ms: i64) {
    delivery.attempts += 1;
    delivery.code = attempt.code;
    delivery.message = attempt.message.clone();
    delivery.inputs = kept(&attempt.inputs);
    delivery.run = attempt.started.as_ref().ok().cloned();
    delivery.error = attempt
        .started
        .as_ref()
        .err()
        .map(|error| json!({"code": error.code(), "message": error.to_string()}).to_string());
    let delays = usize::try_from(delivery.attempts - 1).ok();
    let delay_ms = delays.and_then(|idx| RETRY_AFTER_MS.get(idx));
    delivery.retry_ms = delay_ms
        .filter(|_| attempt.code == 500)
        .map(|delay_ms| now_ms.saturating_add(*delay_ms));
    if delivery.retry_ms.is_none() {
        // Only another attempt needs it, and it may be large.
        delivery.context = NOTHING.to_owned();
    }
}

/// Returns the inputs as a delivery keeps them.
fn kept(inputs: &Json) -> Option<String> {
    let text = inputs.to_string();
    (text.len() <= MOST_INPUTS).then_some(text)
}
