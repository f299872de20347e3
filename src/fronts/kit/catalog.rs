//! The catalogue: every tool of the kit, in the order in which lists show them.

use super::schema;
use super::tool::Tool;
use super::tools::{
    annotate_trace, commit_revision, create_schedule, create_subscription, discover_tools,
    discover_triggers, list_connections, list_deliveries, list_schedules, list_subscriptions,
    pause_schedule, pause_subscription, query_spans, query_workflows, read_config, remove_schedule,
    remove_subscription, request_connection, resume_schedule, resume_subscription, test_run,
    test_subscription,
};

/// All tools: those that are offered by default, and then those that a person enables.
pub const TOOLS: &[Tool] = &[
    discover_tools::TOOL,
    request_connection::TOOL,
    commit_revision::TOOL,
    test_run::TOOL,
    annotate_trace::TOOL,
    create_schedule::TOOL,
    list_schedules::TOOL,
    remove_schedule::TOOL,
    discover_triggers::TOOL,
    create_subscription::TOOL,
    list_deliveries::TOOL,
    test_subscription::TOOL,
    remove_subscription::TOOL,
    query_spans::TOOL,
    pause_schedule::TOOL,
    resume_schedule::TOOL,
    pause_subscription::TOOL,
    resume_subscription::TOOL,
    query_workflows::TOOL,
    list_connections::TOOL,
    list_subscriptions::TOOL,
    read_config::TOOL,
];

/// Names that other systems gave tools of the kit. They are unknown here, and the error names ours.
const ELSEWHERE: &[(&str, &str)] = &[
    ("find_capabilities", "discover_tools"),
    ("find_triggers", "discover_triggers"),
];

/// Returns the tool of a name.
pub fn find(name: &str) -> Option<&'static Tool> {
    TOOLS.iter().find(|tool| tool.name == name)
}

/// Returns the names of all tools.
pub fn names() -> impl Iterator<Item = &'static str> {
    TOOLS.iter().map(|tool| tool.name)
}

/// Returns the tool that a name of another system stands for.
pub(super) fn meant(name: &str) -> Option<&'static str> {
    let found = ELSEWHERE.iter().find(|(other, _)| *other == name);
    found.map(|(_, own)| *own)
}

/// Returns what is wrong with the catalogue. A server that finds something does not start.
pub fn problems() -> Vec<String> {
    let mut problems: Vec<String> = TOOLS.iter().flat_map(schema::problems).collect();
    for (at, tool) in TOOLS.iter().enumerate() {
        if TOOLS[..at].iter().any(|other| other.name == tool.name) {
            problems.push(format!("{}: the name is used twice", tool.name));
        }
    }
    problems
}
