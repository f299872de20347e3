//! Schedules of the bound flow: those that the kit created, and those of the flow's text.

use flowstone_engine::ports::ScheduleRow;
use flowstone_engine::triggers::{MINUTE_MS, next_tick_ms};
use flowstone_flow::schedule::Timing;
use flowstone_model::registry::DEFAULT_WORKSPACE;
use flowstone_model::triggers::{TriggerKind, TriggerRow};
use serde_json::{Value as Json, json};

use super::context::KitCall;
use super::error::KitError;
use super::schema::object;
use super::tool::{Answer, Arguments};
use super::trigger::{self, instant_millis, time};

/// The kind of these rows, and what errors call them.
pub const KIND: (TriggerKind, &str) = (TriggerKind::Schedule, "schedule");

/// Returns the schema of a schedule.
pub fn schema() -> Json {
    let text = json!({"type": ["string", "null"]});
    let data = object(
        json!({
            "event_key": {"type": "string"},
            "schedule": {"type": "string"},
            "start_time": text,
            "end_time": text,
            "inputs_fields": {"type": ["object", "null"], "additionalProperties": true},
        }),
        &[
            "event_key",
            "schedule",
            "start_time",
            "end_time",
            "inputs_fields",
        ],
    );
    let flags = object(json!({"is_active": {"type": "boolean"}}), &["is_active"]);
    object(
        json!({
            "id": {"type": "string"},
            "name": text,
            "description": text,
            "source": {"enum": ["kit", "flow"]},
            "data": data,
            "revision": trigger::revision_schema(),
            "flags": flags,
            "next_at": text,
            "last_at": text,
            "created_at": text,
        }),
        &[
            "id",
            "name",
            "description",
            "source",
            "data",
            "revision",
            "flags",
            "next_at",
            "last_at",
            "created_at",
        ],
    )
}

/// Fills in what is particular to a schedule.
///
/// # Errors
/// `invalid_arguments` for the cron expression and the window.
pub fn fill(row: &mut TriggerRow, data: &Json, now_ms: i64) -> Result<(), KitError> {
    let text = data["schedule"].as_str().unwrap_or_default().trim();
    let timing = Timing::utc(text).map_err(|error| {
        let hint = error.hint.as_ref().map(|hint| format!("; {hint}"));
        KitError::invalid(
            "/data/schedule",
            "a cron expression of five fields in UTC: minute, hour, day of month, month, day of week",
            format!("`/data/schedule`: {error}{}", hint.unwrap_or_default()),
        )
    })?;
    row.schedule = Some(match &timing {
        Timing::Cron { cron, .. } => cron.text().to_owned(),
        Timing::Every { .. } => text.to_owned(),
    });
    row.start_ms = window(data, "start_time")?;
    row.end_ms = window(data, "end_time")?;
    if let Some(end_ms) = row.end_ms {
        if row.start_ms.is_some_and(|start_ms| end_ms <= start_ms) {
            let message = "`/data/end_time` is not after `/data/start_time`";
            return Err(KitError::invalid(
                "/data/end_time",
                "a time after `start_time`",
                message,
            ));
        }
        if end_ms <= now_ms {
            let message = "`/data/end_time` is in the past";
            return Err(KitError::invalid(
                "/data/end_time",
                "a time in the future",
                message,
            ));
        }
    }
    row.next_ms = next_tick_ms(row, now_ms.saturating_add(1));
    if row.next_ms.is_none() {
        return Err(KitError::invalid(
            "/data/schedule",
            "a cron expression that names a time in the window",
            format!("`{text}` names no time between `start_time` and `end_time`"),
        ));
    }
    Ok(())
}

/// Returns the minute of a time of the window.
fn window(data: &Json, name: &str) -> Result<Option<i64>, KitError> {
    let Some(text) = data.get(name).and_then(Json::as_str) else {
        return Ok(None);
    };
    let ms = instant_millis(text).ok_or_else(|| {
        KitError::invalid(
            format!("/data/{name}"),
            "a time such as `2026-05-04T09:00:00Z`, with `Z` or an offset",
            format!("`/data/{name}`: `{text}` is not a time with `Z` or an offset"),
        )
    })?;
    Ok(Some(ms - ms.rem_euclid(MINUTE_MS)))
}

/// Pauses or resumes the schedule with the id of the arguments.
///
/// # Errors
/// `not_found`, `not_removable`.
pub async fn switch(cx: &KitCall<'_>, arguments: Arguments, is_active: bool) -> Answer {
    let id = arguments["id"].as_str().unwrap_or_default();
    own(cx, id).await?;
    let now_ms = cx.engine.now_ms();
    let row = trigger::change(cx, KIND, id, |row| switched(row, is_active, now_ms)).await?;
    Ok(json!({"schedule": shown(cx, &row).await?}))
}

/// Returns a schedule with the other state, or `None` if it has that.
fn switched(row: &TriggerRow, is_active: bool, now_ms: i64) -> Option<TriggerRow> {
    if row.is_active == is_active {
        return None;
    }
    let next_ms = is_active.then(|| next_tick_ms(row, now_ms.saturating_add(1)));
    Some(TriggerRow {
        is_active,
        next_ms: next_ms.flatten(),
        updated_ms: now_ms,
        ..row.clone()
    })
}

/// Returns a schedule that the kit created.
///
/// # Errors
/// When the store cannot be read.
pub async fn shown(cx: &KitCall<'_>, row: &TriggerRow) -> Result<Json, KitError> {
    Ok(json!({
        "id": row.id,
        "name": row.name,
        "description": row.description,
        "source": "kit",
        "data": {
            "event_key": row.event_key,
            "schedule": row.schedule,
            "start_time": time(row.start_ms),
            "end_time": time(row.end_ms),
            "inputs_fields": trigger::stored(row.inputs_fields.as_deref()),
        },
        "revision": trigger::revision_of(cx, row).await?,
        "flags": {"is_active": row.is_active},
        "next_at": time(row.next_ms),
        "last_at": time(row.last_ms),
        "created_at": time(Some(row.created_ms)),
    }))
}

/// Returns the schedules of the flow's text that a worker has read.
///
/// # Errors
/// When the store cannot be read.
pub async fn of_text(cx: &KitCall<'_>) -> Result<Vec<ScheduleRow>, KitError> {
    if cx.workspace != DEFAULT_WORKSPACE {
        return Ok(Vec::new());
    }
    let slug = cx.flow()?;
    let mut rows = cx.engine.stores().agenda.schedules().await?;
    rows.retain(|row| row.flow == slug);
    Ok(rows)
}

/// Returns a schedule of the flow's text.
///
/// # Errors
/// When the store cannot be read.
pub async fn shown_of_text(cx: &KitCall<'_>, row: &ScheduleRow) -> Result<Json, KitError> {
    // The file of a released version is `SLUG@N`.
    let number = row.file.strip_prefix(&row.flow);
    let number = number.and_then(|rest| rest.strip_prefix('@')?.parse().ok());
    let revision = match number {
        Some(number) => trigger::numbered(cx, &row.flow, number).await?,
        None => Json::Null,
    };
    Ok(json!({
        "id": row.id,
        "name": null,
        "description": null,
        "source": "flow",
        "data": {
            "event_key": "schedule",
            "schedule": row.timing,
            "start_time": null,
            "end_time": null,
            "inputs_fields": null,
        },
        "revision": revision,
        "flags": {"is_active": row.next_ms.is_some()},
        "next_at": time(row.next_ms),
        "last_at": time(row.last_ms),
        "created_at": null,
    }))
}

/// Checks that a call names a schedule of the kit, of the bound flow.
///
/// # Errors
/// As [`own`].
pub async fn check(cx: &KitCall<'_>, arguments: &Arguments) -> Result<(), KitError> {
    let id = arguments["id"].as_str().unwrap_or_default();
    own(cx, id).await.map(drop)
}

/// Returns the kit's schedule with an id.
///
/// # Errors
/// `not_removable` for a schedule of the flow's text, `not_found` for every other id, also that of another flow.
pub async fn own(cx: &KitCall<'_>, id: &str) -> Result<TriggerRow, KitError> {
    if of_text(cx).await?.iter().any(|row| row.id == id) {
        return Err(KitError::not_removable(format!(
            "the schedule `{id}` is in the text of the flow, and tools cannot change it"
        ))
        .next("change `:schedules` in the flow's text, and commit it"));
    }
    trigger::find(cx, KIND, id).await
}
