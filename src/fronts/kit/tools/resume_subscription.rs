//! `resume_subscription`: continues a paused subscription of the bound flow.

use flowstone_model::token::Scope;
use serde_json::json;

use crate::kit::context::KitCall;
use crate::kit::subscription::{self, KIND};
use crate::kit::tool::{Answer, Arguments, Bound, InTest, Permission, Tool};
use crate::kit::trigger;

pub const TOOL: Tool = Tool {
    name: "resume_subscription",
    description: "Continues a paused subscription of this flow, from the next event.",
    input: || trigger::id_schema("The id of a subscription of this flow."),
    output: || trigger::answer_schema("subscription", &subscription::schema()),
    bound: &[Bound::Flow],
    wrapper: None,
    read_only: false,
    permission: Permission::Ask,
    scope: Scope::Edit,
    timeout_ms: 15_000,
    timeout_of: None,
    default_on: false,
    in_test: InTest::Refused,
    call: |cx, arguments| Box::pin(resume(cx, arguments)),
};

async fn resume(cx: &KitCall<'_>, arguments: Arguments) -> Answer {
    let id = arguments["id"].as_str().unwrap_or_default();
    let at = (
        cx.engine.now_ms(),
        cx.engine.stores().feed.last_position().await?,
    );
    let row = trigger::change(cx, KIND, id, |row| subscription::switched(row, true, at)).await?;
    Ok(json!({"subscription": subscription::shown(cx, &row).await?}))
}
