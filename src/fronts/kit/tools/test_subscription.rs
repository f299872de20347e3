//! `test_subscription`: waits for one real event, records it, and starts nothing.
//!
//! The watch is a lease: if the process ends, a worker removes it.

use std::time::Duration;

use flowstone_engine::triggers::{LOCAL, LocalEvents, fits};
use flowstone_model::token::Scope;
use flowstone_model::triggers::{DeliveryQuery, EventDelivery, TriggerKind, TriggerRow};
use serde_json::{Value as Json, json};
use tokio::time::Instant;

use crate::kit::context::KitCall;
use crate::kit::delivery;
use crate::kit::error::KitError;
use crate::kit::schema::object;
use crate::kit::subscription::{self, KIND};
use crate::kit::tool::{Answer, Arguments, Bound, InTest, Permission, Tool};
use crate::kit::trigger;

/// How long a call waits, in seconds: unless the caller says, and at most.
const WAIT_S: (u64, u64) = (60, 300);
/// The time that a call has beside its wait.
const GRACE_MS: u64 = 10_000;
/// How often the deliveries are read.
const EVERY: Duration = Duration::from_millis(100);
/// Maximum number of watches of a flow at the same time.
const MOST: usize = 4;

pub const TOOL: Tool = Tool {
    name: "test_subscription",
    description: "Waits for one real event, and returns the delivery that a subscription would make of it, with its inputs. \
        Nothing is run. Ask the person to make the event happen while the call waits. Subscriptions of this flow that are \
        active receive the event as always, and are named in `also_delivered`.",
    input,
    output,
    bound: &[Bound::Flow],
    wrapper: Some("subscription"),
    read_only: false,
    permission: Permission::Ask,
    scope: Scope::Run,
    timeout_ms: WAIT_S.0 * 1000 + GRACE_MS,
    timeout_of: Some(|arguments| wait_s(arguments) * 1000 + GRACE_MS),
    default_on: true,
    in_test: InTest::Refused,
    check: Some(|cx, arguments| Box::pin(check(cx, arguments))),
    call: |cx, arguments| Box::pin(test(cx, arguments)),
};

fn input() -> Json {
    let (connection, data) = subscription::arguments_schema();
    object(
        json!({
            "name": trigger::name_schema(),
            "connection_id": connection,
            "data": data,
            "timeout_s": {
                "type": "integer",
                "minimum": 1,
                "maximum": WAIT_S.1,
                "default": WAIT_S.0,
                "description": "How long to wait for the event, in seconds.",
            },
        }),
        &["connection_id", "data"],
    )
}

fn output() -> Json {
    object(
        json!({
            "delivery": delivery::schema(),
            "also_delivered": {"type": "array", "items": {"type": "string"}},
        }),
        &["delivery", "also_delivered"],
    )
}

fn wait_s(arguments: &Arguments) -> u64 {
    let given = arguments.get("timeout_s").and_then(Json::as_u64);
    given.unwrap_or(WAIT_S.0).min(WAIT_S.1)
}

async fn check(cx: &KitCall<'_>, arguments: &Arguments) -> Result<(), KitError> {
    row(cx, arguments).await.map(drop)
}

async fn row(cx: &KitCall<'_>, arguments: &Arguments) -> Result<TriggerRow, KitError> {
    let mut row = trigger::new_row(cx, (TriggerKind::Watch, "tst"), arguments).await?;
    let connection = arguments["connection_id"].as_str().unwrap_or_default();
    subscription::fill(cx, &mut row, connection).await?;
    Ok(row)
}

async fn test(cx: &KitCall<'_>, arguments: Arguments) -> Answer {
    let seconds = wait_s(&arguments);
    let triggers = &cx.engine.stores().triggers;
    let mut row = row(cx, &arguments).await?;
    let wait_ms = i64::try_from(seconds * 1000 + GRACE_MS).unwrap_or(i64::MAX);
    row.next_ms = Some(row.created_ms.saturating_add(wait_ms));
    for old in triggers.triggers(&row.flow, TriggerKind::Watch).await? {
        if old.next_ms.is_some_and(|end_ms| end_ms <= row.created_ms) {
            triggers.remove_trigger(&old.id).await?;
        }
    }
    if !triggers.add_trigger(row.clone(), MOST).await? {
        let message = format!(
            "{MOST} tests of subscriptions of `{}` wait already",
            row.flow.slug
        );
        return Err(KitError::limit_exceeded(message, seconds));
    }
    let found = tokio::select! {
        found = event(cx, &row, Duration::from_secs(seconds)) => found,
        () = cx.cancellation() => Ok(None),
    };
    triggers.remove_trigger(&row.id).await?;
    let delivery = match found? {
        Some(delivery) => delivery,
        // It may have come at the last moment.
        None => delivered(cx, &row)
            .await?
            .ok_or_else(|| KitError::no_event(seconds))?,
    };
    Ok(json!({
        "delivery": delivery::shown(cx, &delivery).await?,
        "also_delivered": also(cx, &row, &delivery).await?,
    }))
}

/// Waits for the event of a watch.
async fn event(
    cx: &KitCall<'_>,
    row: &TriggerRow,
    wait: Duration,
) -> Result<Option<EventDelivery>, KitError> {
    let end = Instant::now() + wait;
    let is_local = row.connection.as_deref() == Some(LOCAL);
    let mut local = LocalEvents::of(&row.id);
    while Instant::now() < end {
        // No worker need run for events of flows.
        if is_local {
            local.turn(cx.engine).await?;
        }
        if let Some(delivery) = delivered(cx, row).await? {
            return Ok(Some(delivery));
        }
        tokio::time::sleep(EVERY).await;
    }
    Ok(None)
}

async fn delivered(cx: &KitCall<'_>, row: &TriggerRow) -> Result<Option<EventDelivery>, KitError> {
    let query = DeliveryQuery {
        flow: row.flow.clone(),
        trigger: Some(row.id.clone()),
        before: None,
        limit: 1,
    };
    let found = cx.engine.stores().triggers.deliveries(query).await?;
    Ok(found.into_iter().next())
}

/// Returns the ids of the bound flow's subscriptions that receive the same event.
async fn also(
    cx: &KitCall<'_>,
    row: &TriggerRow,
    delivery: &EventDelivery,
) -> Result<Vec<String>, KitError> {
    let context = trigger::stored(Some(&delivery.context));
    let attributes = &context["event"]["attributes"];
    let mut live = cx
        .engine
        .stores()
        .triggers
        .triggers(&row.flow, KIND.0)
        .await?;
    live.retain(|it| {
        it.is_active
            && it.connection == row.connection
            && it.event_key == row.event_key
            && fits(it, attributes)
    });
    Ok(live.into_iter().map(|it| it.id).collect())
}
