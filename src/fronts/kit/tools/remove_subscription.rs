//! `remove_subscription`: ends a subscription of the bound flow.

use flowstone_model::token::Scope;
use serde_json::json;

use crate::kit::context::KitCall;
use crate::kit::subscription::{self, KIND};
use crate::kit::tool::{Answer, Arguments, Bound, InTest, Permission, Tool};
use crate::kit::trigger;

pub const TOOL: Tool = Tool {
    name: "remove_subscription",
    description: "Removes a subscription of this flow. Runs that it started continue; its deliveries stay in the list.",
    input: || trigger::id_schema("The id of a subscription of this flow."),
    output: trigger::removed_schema,
    bound: &[Bound::Flow],
    wrapper: None,
    read_only: false,
    permission: Permission::Ask,
    scope: Scope::Edit,
    timeout_ms: 15_000,
    timeout_of: None,
    default_on: true,
    in_test: InTest::Refused,
    check: Some(|cx, arguments| Box::pin(subscription::check(cx, arguments))),
    call: |cx, arguments| Box::pin(remove(cx, arguments)),
};

async fn remove(cx: &KitCall<'_>, arguments: Arguments) -> Answer {
    let id = arguments["id"].as_str().unwrap_or_default();
    let row = trigger::find(cx, KIND, id).await?;
    match cx.engine.stores().triggers.remove_trigger(&row.id).await? {
        true => Ok(json!({"removed": true, "id": row.id})),
        false => Err(trigger::missing(&row.flow.slug, KIND.1, id)),
    }
}
