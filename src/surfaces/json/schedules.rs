//! Schedules of flows.

use flowstone_engine::schedules::ScheduleReport;
use serde::Serialize;
use serde_json::Value as Json;
use utoipa::ToSchema;

use super::values::{instant, object};

/// A schedule of a flow.
#[derive(Debug, Serialize, ToSchema)]
pub struct Schedule {
    flow: String,
    id: String,
    /// Its times, as the flow gives them.
    times: String,
    file: String,
    /// When it starts a run next.
    next: Option<Json>,
    last: Option<Json>,
    /// The run that it started last.
    run: Option<String>,
    outcome: Option<String>,
}

/// Returns a schedule as JSON. The names of the fields are stable.
pub fn schedule_json(schedule: &ScheduleReport) -> Json {
    let row = &schedule.row;
    object(&Schedule {
        flow: row.flow.clone(),
        id: row.id.clone(),
        times: row.timing.clone(),
        file: row.file.clone(),
        next: row.next_ms.map(instant),
        last: row.last_ms.map(instant),
        run: row.last_run.as_ref().map(ToString::to_string),
        outcome: schedule.outcome().map(str::to_owned),
    })
}
