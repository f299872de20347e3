//! `list_schedules`: the schedules of the bound flow.

use flowstone_engine::ports::ScheduleRow;
use flowstone_model::token::Scope;
use flowstone_model::triggers::TriggerRow;
use serde_json::json;

use crate::kit::context::KitCall;
use crate::kit::page;
use crate::kit::schedule::{self, KIND};
use crate::kit::tool::{Answer, Arguments, Bound, InTest, Permission, Tool};
use crate::kit::trigger;

/// Number of schedules on a page, unless the caller names another.
const LIMIT: usize = 50;

pub const TOOL: Tool = Tool {
    name: "list_schedules",
    description: "Lists the schedules of this flow: those that tools created (`source` kit) and those of the flow's text \
        (`source` flow), with the revision that they run and their next and last time.",
    input: || page::input(json!({}), LIMIT),
    output: || page::output("schedules", &schedule::schema()),
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

enum Row {
    Kit(TriggerRow),
    Text(ScheduleRow),
}

impl Row {
    /// Returns what the list is sorted by.
    fn place(&self) -> String {
        match self {
            Row::Kit(row) => format!("0 {:020} {}", row.created_ms, row.id),
            Row::Text(row) => format!("1 {}", row.id),
        }
    }
}

async fn list(cx: &KitCall<'_>, arguments: Arguments) -> Answer {
    let limit = page::limit(&arguments, LIMIT);
    let after = page::read(&arguments, "schedules")?;
    let flow = trigger::flow_name(cx)?;
    let kit = cx.engine.stores().triggers.triggers(&flow, KIND.0).await?;
    let own = schedule::of_text(cx).await?;
    let rows = kit
        .into_iter()
        .map(Row::Kit)
        .chain(own.into_iter().map(Row::Text));
    let mut rows: Vec<Row> = rows
        .filter(|row| after.as_ref().is_none_or(|after| row.place() > *after))
        .collect();
    rows.sort_by_key(Row::place);
    let next = page::cut(&mut rows, limit, "schedules", Row::place);
    let mut shown = Vec::new();
    for row in &rows {
        shown.push(match row {
            Row::Kit(row) => schedule::shown(cx, row).await?,
            Row::Text(row) => schedule::shown_of_text(cx, row).await?,
        });
    }
    Ok(page::shown("schedules", shown, next))
}
