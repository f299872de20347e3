//! `pause_schedule`: stops a schedule of the bound flow for a while.

use flowstone_model::token::Scope;
use serde_json::json;

use crate::kit::context::KitCall;
use crate::kit::schedule::{self, KIND};
use crate::kit::tool::{Answer, Arguments, Bound, InTest, Permission, Tool};
use crate::kit::trigger;

pub const TOOL: Tool = Tool {
    name: "pause_schedule",
    description: "Stops a schedule of this flow until it is resumed. Ticks meanwhile are left out.",
    input: || {
        trigger::id_schema("The id of a schedule of this flow, as `list_schedules` returns it.")
    },
    output: || trigger::answer_schema("schedule", &schedule::schema()),
    bound: &[Bound::Flow],
    wrapper: None,
    read_only: false,
    permission: Permission::Ask,
    scope: Scope::Edit,
    timeout_ms: 15_000,
    timeout_of: None,
    default_on: false,
    in_test: InTest::Refused,
    call: |cx, arguments| Box::pin(pause(cx, arguments)),
};

async fn pause(cx: &KitCall<'_>, arguments: Arguments) -> Answer {
    let id = arguments["id"].as_str().unwrap_or_default();
    schedule::own(cx, id).await?;
    let now_ms = cx.engine.now_ms();
    let row = trigger::change(cx, KIND, id, |row| schedule::switched(row, false, now_ms)).await?;
    Ok(json!({"schedule": schedule::shown(cx, &row).await?}))
}
