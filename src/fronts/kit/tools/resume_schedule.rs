//! `resume_schedule`: continues a paused schedule of the bound flow.

use flowstone_model::token::Scope;

use crate::kit::schedule;
use crate::kit::tool::{Bound, InTest, Permission, Tool};
use crate::kit::trigger;

pub const TOOL: Tool = Tool {
    name: "resume_schedule",
    description: "Continues a paused schedule of this flow, from its next tick.",
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
    check: Some(|cx, arguments| Box::pin(schedule::check(cx, arguments))),
    call: |cx, arguments| Box::pin(schedule::switch(cx, arguments, true)),
};
