//! `list_subscriptions`: the subscriptions of the bound flow.

use flowstone_model::token::Scope;
use flowstone_model::triggers::TriggerRow;
use serde_json::{Value as Json, json};

use crate::kit::context::KitCall;
use crate::kit::page;
use crate::kit::schema::{object, text};
use crate::kit::subscription::{self, KIND};
use crate::kit::tool::{Answer, Arguments, Bound, InTest, Permission, Tool};
use crate::kit::trigger;

/// Number of subscriptions on a page, unless the caller names another.
const LIMIT: usize = 50;

pub const TOOL: Tool = Tool {
    name: "list_subscriptions",
    description: "Lists the subscriptions of this flow, with the revision that they run and whether they are active.",
    input,
    output,
    bound: &[Bound::Flow],
    wrapper: None,
    read_only: true,
    permission: Permission::Allow,
    scope: Scope::Read,
    timeout_ms: 15_000,
    timeout_of: None,
    default_on: false,
    in_test: InTest::Answered,
    call: |cx, arguments| Box::pin(list(cx, arguments)),
};

fn input() -> Json {
    object(
        json!({
            "limit": {"type": "integer", "minimum": 1, "maximum": 100, "default": LIMIT},
            "next": text("`next` of the page before."),
        }),
        &[],
    )
}

fn output() -> Json {
    object(
        json!({
            "count": {"type": "integer"},
            "subscriptions": {"type": "array", "items": subscription::schema()},
            "next": {"type": ["string", "null"]},
        }),
        &["count", "subscriptions", "next"],
    )
}

fn place(row: &TriggerRow) -> String {
    format!("{:020} {}", row.created_ms, row.id)
}

async fn list(cx: &KitCall<'_>, arguments: Arguments) -> Answer {
    let limit = page::limit(&arguments, LIMIT);
    let after = page::read(&arguments, "subscriptions")?;
    let flow = trigger::flow_name(cx)?;
    let mut rows = cx.engine.stores().triggers.triggers(&flow, KIND.0).await?;
    rows.retain(|row| after.as_ref().is_none_or(|after| place(row) > *after));
    let is_more = rows.len() > limit;
    rows.truncate(limit);
    let next = rows.last().filter(|_| is_more);
    let next = next.map(|row| page::write(&place(row), "subscriptions"));
    let mut shown = Vec::new();
    for row in &rows {
        shown.push(subscription::shown(cx, row).await?);
    }
    Ok(json!({"count": shown.len(), "subscriptions": shown, "next": next}))
}
