//! `resume_subscription`: continues a paused subscription of the bound flow.

use flowstone_model::token::Scope;

use crate::kit::subscription;
use crate::kit::tool::{Bound, InTest, Permission, Tool};
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
    check: Some(|cx, arguments| Box::pin(subscription::check(cx, arguments))),
    call: |cx, arguments| Box::pin(subscription::switch(cx, arguments, true)),
};
