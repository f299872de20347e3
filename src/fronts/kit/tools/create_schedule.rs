//! `create_schedule`: starts the newest revision of the bound flow by a cron expression.

use flowstone_model::token::Scope;
use flowstone_model::triggers::TriggerRow;
use serde_json::{Value as Json, json};

use crate::kit::context::KitCall;
use crate::kit::error::KitError;
use crate::kit::schedule::{self, KIND};
use crate::kit::schema::object;
use crate::kit::tool::{Answer, Arguments, Bound, InTest, Permission, Tool};
use crate::kit::{trigger, unconfirmed};

pub const TOOL: Tool = Tool {
    name: "create_schedule",
    description: "Runs this flow on a schedule: a cron expression of five fields in UTC, at most once a minute. The schedule is \
        bound to the newest revision; later commits do not move it. `start_time` is the first minute, `end_time` the minute \
        after the last one. Ticks that were missed while no server ran: only the last one is delivered.",
    input,
    output: || trigger::answer_schema("schedule", &schedule::schema()),
    bound: &[Bound::Flow],
    wrapper: Some("schedule"),
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
    let time = |description: &str| json!({"type": "string", "minLength": 1, "maxLength": 64, "description": description});
    let data = object(
        json!({
            "event_key": trigger::event_key_schema("What the event is called in the run, such as `digest.daily`."),
            "schedule": {
                "type": "string",
                "minLength": 1,
                "maxLength": 200,
                "description": "Five fields in UTC: minute, hour, day of month, month, day of week. `0 9 * * MON-FRI`.",
            },
            "start_time": time("RFC 3339, any offset; cut down to the minute."),
            "end_time": time("RFC 3339, any offset; cut down to the minute."),
            "inputs_fields": trigger::fields_schema(),
        }),
        &["event_key", "schedule"],
    );
    object(
        json!({
            "name": trigger::name_schema(),
            "description": trigger::description_schema(),
            "data": data,
        }),
        &["data"],
    )
}

async fn check(cx: &KitCall<'_>, arguments: &Arguments) -> Result<(), KitError> {
    let row = row(cx, arguments).await?;
    trigger::check_room(cx, &row, "schedules").await
}

async fn row(cx: &KitCall<'_>, arguments: &Arguments) -> Result<TriggerRow, KitError> {
    let mut row = trigger::new_row(cx, (KIND.0, "sch"), arguments).await?;
    schedule::fill(&mut row, &arguments["data"], cx.engine.now_ms())?;
    unconfirmed::check_bound(cx).await?;
    Ok(row)
}

async fn create(cx: &KitCall<'_>, arguments: Arguments) -> Answer {
    let row = row(cx, &arguments).await?;
    trigger::add(cx, &row, "schedules").await?;
    Ok(json!({"schedule": schedule::shown(cx, &row).await?}))
}
