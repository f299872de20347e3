//! Schedules of flows.

use flowstone_engine::schedules::ScheduleReport;
use serde_json::json;

use super::values::instant;

/// Returns a schedule as JSON. The names of the fields are stable.
pub fn schedule_json(schedule: &ScheduleReport) -> serde_json::Value {
    let row = &schedule.row;
    json!({
        "flow": row.flow,
        "id": row.id,
        "times": row.timing,
        "file": row.file,
        "next": row.next_ms.map(instant),
        "last": row.last_ms.map(instant),
        "run": row.last_run.as_ref().map(|run| run.as_str()),
        "outcome": schedule.outcome(),
    })
}
