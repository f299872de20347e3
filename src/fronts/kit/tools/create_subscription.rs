//! `create_subscription`: starts the newest revision of the bound flow on events.

use flowstone_model::token::Scope;
use flowstone_model::triggers::TriggerRow;
use serde_json::{Value as Json, json};

use crate::kit::context::KitCall;
use crate::kit::error::KitError;
use crate::kit::schema::object;
use crate::kit::subscription::{self, KIND};
use crate::kit::tool::{Answer, Arguments, Bound, InTest, Permission, Tool};
use crate::kit::{trigger, unconfirmed};

pub const TOOL: Tool = Tool {
    name: "create_subscription",
    description: "Runs this flow on each event of a kind: of a connection (`webhook.CONNECTION.EVENT`) or of another flow \
        (`flow.SLUG.completed`, `.failed`, `.waiting`, with `connection_id` local). The subscription is bound to the newest \
        revision; later commits do not move it.",
    input,
    output: || trigger::answer_schema("subscription", &subscription::schema()),
    bound: &[Bound::Flow],
    wrapper: Some("subscription"),
    read_only: false,
    permission: Permission::Ask,
    scope: Scope::Edit,
    timeout_ms: 15_000,
    timeout_of: None,
    default_on: true,
    in_test: InTest::Refused,
    check: Some(|cx, arguments| Box::pin(check(cx, arguments))),
    call: |cx, arguments| Box::pin(create(cx, arguments)),
};

fn input() -> Json {
    let (connection, data) = subscription::arguments_schema();
    object(
        json!({
            "name": trigger::name_schema(),
            "description": trigger::description_schema(),
            "connection_id": connection,
            "data": data,
        }),
        &["connection_id", "data"],
    )
}

async fn check(cx: &KitCall<'_>, arguments: &Arguments) -> Result<(), KitError> {
    let row = row(cx, arguments).await?;
    trigger::check_room(cx, &row, "subscriptions").await
}

async fn row(cx: &KitCall<'_>, arguments: &Arguments) -> Result<TriggerRow, KitError> {
    let mut row = trigger::new_row(cx, (KIND.0, "sub"), arguments).await?;
    let connection = arguments["connection_id"].as_str().unwrap_or_default();
    subscription::fill(cx, &mut row, connection).await?;
    unconfirmed::check_bound(cx).await?;
    Ok(row)
}

async fn create(cx: &KitCall<'_>, arguments: Arguments) -> Answer {
    let row = row(cx, &arguments).await?;
    trigger::add(cx, &row, "subscriptions").await?;
    Ok(json!({"subscription": subscription::shown(cx, &row).await?}))
}
