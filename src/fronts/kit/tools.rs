//! The tools of the kit: one file for each, with its row `TOOL`.

pub mod annotate_trace;
pub mod commit_revision;
pub mod create_schedule;
pub mod create_subscription;
pub mod discover_tools;
pub mod discover_triggers;
pub mod list_connections;
pub mod list_deliveries;
pub mod list_schedules;
pub mod list_subscriptions;
pub mod pause_schedule;
pub mod pause_subscription;
pub mod query_spans;
pub mod query_workflows;
pub mod read_config;
pub mod remove_schedule;
pub mod remove_subscription;
pub mod request_connection;
pub mod resume_schedule;
pub mod resume_subscription;
pub mod test_run;
pub mod test_subscription;
