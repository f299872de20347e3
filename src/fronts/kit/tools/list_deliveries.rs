//! `list_deliveries`: what the schedules and subscriptions of the bound flow have delivered.

use flowstone_model::token::Scope;
use flowstone_model::triggers::{DeliveryQuery, EventDelivery};
use serde_json::{Value as Json, json};

use crate::kit::context::KitCall;
use crate::kit::delivery;
use crate::kit::error::KitError;
use crate::kit::page;
use crate::kit::tool::{Answer, Arguments, Bound, InTest, Permission, Tool};
use crate::kit::{schedule, subscription, trigger};

/// Number of deliveries on a page, unless the caller names another.
const LIMIT: usize = 20;

pub const TOOL: Tool = Tool {
    name: "list_deliveries",
    description: "Lists the deliveries of this flow's schedules and subscriptions, newest first: 200 delivered (a run was \
        started), 409 duplicate, 422 the inputs were refused, 500 not started (tried again 5 times). `schedule_id` or \
        `subscription_id` keeps those of one.",
    input,
    output: || page::output("deliveries", &delivery::schema()),
    bound: &[Bound::Flow],
    wrapper: None,
    read_only: true,
    permission: Permission::Allow,
    scope: Scope::Read,
    timeout_ms: 15_000,
    timeout_of: None,
    default_on: true,
    in_test: InTest::Answered,
    check: None,
    call: |cx, arguments| Box::pin(list(cx, arguments)),
};

fn input() -> Json {
    let id = |what: &str| json!({"type": "string", "minLength": 1, "maxLength": 200, "description": what});
    let own = json!({
        "schedule_id": id("Only the deliveries of this schedule."),
        "subscription_id": id("Only the deliveries of this subscription."),
    });
    page::input(own, LIMIT)
}

async fn list(cx: &KitCall<'_>, arguments: Arguments) -> Answer {
    let limit = page::limit(&arguments, LIMIT);
    let before = page::read(&arguments, "deliveries")?;
    let before = before.as_deref().and_then(|place| {
        let (at_ms, id) = place.split_once(' ')?;
        Some((at_ms.parse().ok()?, id.to_owned()))
    });
    let query = DeliveryQuery {
        flow: trigger::flow_name(cx)?,
        trigger: trigger_of(cx, &arguments).await?,
        before,
        limit: limit + 1,
    };
    let mut rows = cx.engine.stores().triggers.deliveries(query).await?;
    let place = |row: &EventDelivery| format!("{} {}", row.created_ms, row.id);
    let next = page::cut(&mut rows, limit, "deliveries", place);
    let mut shown = Vec::new();
    for row in &rows {
        shown.push(delivery::shown(cx, row).await?);
    }
    Ok(page::shown("deliveries", shown, next))
}

/// Returns the id whose deliveries are wanted. It is of the bound flow, or was.
async fn trigger_of(cx: &KitCall<'_>, arguments: &Arguments) -> Result<Option<String>, KitError> {
    let given = |name: &str| arguments.get(name).and_then(Json::as_str);
    let (kind, id) = match (given("schedule_id"), given("subscription_id")) {
        (None, None) => return Ok(None),
        (Some(id), None) => (schedule::KIND, id),
        (None, Some(id)) => (subscription::KIND, id),
        (Some(_), Some(_)) => {
            return Err(KitError::invalid(
                "/subscription_id",
                "one of `schedule_id` and `subscription_id`",
                "`schedule_id` and `subscription_id` cannot both be given",
            ));
        }
    };
    if trigger::find(cx, kind, id).await.is_ok() {
        return Ok(Some(id.to_owned()));
    }
    let query = DeliveryQuery {
        flow: trigger::flow_name(cx)?,
        trigger: Some(id.to_owned()),
        before: None,
        limit: 1,
    };
    let left = cx.engine.stores().triggers.deliveries(query).await?;
    match left.iter().any(|row| row.kind == kind.0) {
        true => Ok(Some(id.to_owned())),
        false => Err(trigger::missing(cx.flow()?, kind.1, id)),
    }
}
