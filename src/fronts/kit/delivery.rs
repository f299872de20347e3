//! Deliveries of events as the kit shows them.

use flowstone_engine::ports::RunRow;
use flowstone_model::triggers::{EventDelivery, TriggerKind};
use serde_json::{Value as Json, json};

use super::context::KitCall;
use super::error::KitError;
use super::schema::object;
use super::trigger::{self, time};

/// Returns the schema of a delivery.
pub fn schema() -> Json {
    let text = json!({"type": ["string", "null"]});
    let status = object(
        json!({"code": {"enum": [200, 409, 422, 500]}, "message": {"type": "string"}}),
        &["code", "message"],
    );
    let error = json!({
        "type": ["object", "null"],
        "properties": {"code": {"type": "string"}, "message": {"type": "string"}},
        "required": ["code", "message"],
        "additionalProperties": false,
    });
    let data = object(
        json!({
            "event_key": {"type": "string"},
            "inputs": {"type": ["object", "null"], "additionalProperties": true},
            "run_id": text,
            "trace_id": text,
            "error": error,
            "is_test": {"type": "boolean"},
        }),
        &[
            "event_key",
            "inputs",
            "run_id",
            "trace_id",
            "error",
            "is_test",
        ],
    );
    object(
        json!({
            "id": {"type": "string"},
            "event_id": {"type": "string"},
            "schedule_id": text,
            "subscription_id": text,
            "status": status,
            "data": data,
            "created_at": {"type": "string"},
        }),
        &[
            "id",
            "event_id",
            "schedule_id",
            "subscription_id",
            "status",
            "data",
            "created_at",
        ],
    )
}

/// Returns a delivery.
///
/// # Errors
/// When the store cannot be read.
pub async fn shown(cx: &KitCall<'_>, row: &EventDelivery) -> Result<Json, KitError> {
    let run: Option<RunRow> = match &row.run {
        Some(run) => cx.engine.stores().runs.find(run).await?,
        None => None,
    };
    let trace = run.map(|run| run.in_trace().trace.to_string());
    let is_schedule = row.kind == TriggerKind::Schedule;
    Ok(json!({
        "id": row.id,
        "event_id": row.event_id,
        "schedule_id": is_schedule.then_some(&row.trigger),
        "subscription_id": (!is_schedule).then_some(&row.trigger),
        "status": {"code": row.code, "message": row.message},
        "data": {
            "event_key": row.event_key,
            "inputs": trigger::stored(row.inputs.as_deref()),
            "run_id": row.run.as_ref().map(|run| run.as_str()),
            "trace_id": trace,
            "error": trigger::stored(row.error.as_deref()),
            "is_test": row.kind == TriggerKind::Watch,
        },
        "created_at": time(Some(row.created_ms)),
    }))
}
