//! The build kit: its catalogue, deltas and spans.

mod project;
mod spans;

use flowstone_fronts::kit::{InTest, Permission, catalog};

#[test]
fn the_catalogue_keeps_its_rules() {
    assert_eq!(catalog::problems(), Vec::<String>::new());
    for tool in catalog::TOOLS {
        assert_eq!(catalog::find(tool.name).map(|it| it.name), Some(tool.name));
        // What changes something changes nothing in a test.
        let is_write = !tool.read_only && tool.permission == Permission::Ask;
        assert!(
            !is_write || tool.in_test != InTest::Answered,
            "{}",
            tool.name
        );
    }
    assert!(catalog::find("find_capabilities").is_none());
}

#[test]
fn fourteen_tools_are_offered_and_eight_can_be_enabled() {
    let names = |is_on: bool| -> Vec<&str> {
        let tools = catalog::TOOLS
            .iter()
            .filter(|tool| tool.default_on == is_on);
        tools.map(|tool| tool.name).collect()
    };
    assert_eq!(
        names(true),
        [
            "discover_tools",
            "request_connection",
            "commit_revision",
            "test_run",
            "annotate_trace",
            "create_schedule",
            "list_schedules",
            "remove_schedule",
            "discover_triggers",
            "create_subscription",
            "list_deliveries",
            "test_subscription",
            "remove_subscription",
            "query_spans",
        ]
    );
    assert_eq!(
        names(false),
        [
            "pause_schedule",
            "resume_schedule",
            "pause_subscription",
            "resume_subscription",
            "query_workflows",
            "list_connections",
            "list_subscriptions",
            "read_config",
        ]
    );
}
