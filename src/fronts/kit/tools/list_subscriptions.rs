//! `list_subscriptions`: the subscriptions of the bound flow.

use flowstone_model::token::Scope;
use flowstone_model::triggers::TriggerRow;
use serde_json::json;

use crate::kit::context::KitCall;
use crate::kit::page;
use crate::kit::subscription::{self, KIND};
use crate::kit::tool::{Answer, Arguments, Bound, InTest, Permission, Tool};
use crate::kit::trigger;

/// Number of subscriptions on a page, unless the caller names another.
const LIMIT: usize = 50;

pub const TOOL: Tool = Tool {
    name: "list_subscriptions",
    description: "Lists the subscriptions of this flow, with the revision that they run and whether they are active.",
    input: || page::input(json!({}), LIMIT),
    output: || page::output("subscriptions", &subscription::schema()),
    bound: &[Bound::Flow],
    wrapper: None,
    read_only: true,
    permission: Permission::Allow,
    scope: Scope::Read,
    timeout_ms: 15_000,
    timeout_of: None,
    default_on: false,
    in_test: InTest::Answered,
    check: None,
    call: |cx, arguments| Box::pin(list(cx, arguments)),
};

fn place(row: &TriggerRow) -> String {
    format!("{:020} {}", row.created_ms, row.id)
}

async fn list(cx: &KitCall<'_>, arguments: Arguments) -> Answer {
    let limit = page::limit(&arguments, LIMIT);
    let after = page::read(&arguments, "subscriptions")?;
    let flow = trigger::flow_name(cx)?;
    let mut rows = cx.engine.stores().triggers.triggers(&flow, KIND.0).await?;
    rows.retain(|row| after.as_ref().is_none_or(|after| place(row) > *after));
    let next = page::cut(&mut rows, limit, "subscriptions", place);
    let mut shown = Vec::new();
    for row in &rows {
        shown.push(subscription::shown(cx, row).await?);
    }
    Ok(page::shown("subscriptions", shown, next))
}
