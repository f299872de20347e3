//! What schedules and subscriptions have in common: the flow and revision that they are bound to, their names, `inputs_fields`,
//! and how one of them is found and changed.

use flowstone_engine::codec::instant;
use flowstone_engine::triggers::fields;
use flowstone_model::registry::{FlowName, Target};
use flowstone_model::triggers::{TriggerKind, TriggerRow};
use flowstone_project::registry::{RegistryError, VersionRef, VersionRow};
use serde_json::{Value as Json, json};

use super::context::KitCall;
use super::error::KitError;
use super::revision::is_released;
use super::schema::object;
use super::tool::Arguments;

/// Maximum number of schedules, and of subscriptions, of a flow.
pub const MOST: usize = 20;
/// Maximum size of `inputs_fields` and `trigger_config`, in bytes.
const MOST_BYTES: usize = 65_536;
/// Number of attempts to change a row that a worker changes at the same time.
const ATTEMPTS: usize = 10;

/// Returns the schema of a name.
pub fn name_schema() -> Json {
    json!({"type": "string", "minLength": 1, "maxLength": 200})
}

/// Returns the schema of a description.
pub fn description_schema() -> Json {
    json!({"type": "string", "maxLength": 2000})
}

/// Returns the schema of the key of an event.
pub fn event_key_schema(description: &str) -> Json {
    json!({
        "type": "string",
        "pattern": "^[A-Za-z0-9][A-Za-z0-9._-]*$",
        "maxLength": 200,
        "description": description,
    })
}

/// Returns the schema of `inputs_fields`.
pub fn fields_schema() -> Json {
    json!({
        "type": "object",
        "additionalProperties": true,
        "description": "The inputs of each run. A text that begins with `$` is a JSON Path into the event context, one that \
            begins with `/` a JSON Pointer, any other a literal; {\"$literal\": TEXT} is TEXT as it is. What is not there is \
            null. Left out: the whole context {event, schedule or subscription, scope}.",
    })
}

/// Returns the schema of an answer with one member.
pub fn answer_schema(name: &str, schema: &Json) -> Json {
    object(json!({name: schema}), &[name])
}

/// Returns the schema of the answer of a removal.
pub fn removed_schema() -> Json {
    object(
        json!({"removed": {"const": true}, "id": {"type": "string"}}),
        &["removed", "id"],
    )
}

/// Returns the schema of the arguments of a tool that takes the id of a row.
pub fn id_schema(description: &str) -> Json {
    object(
        json!({"id": {"type": "string", "minLength": 1, "maxLength": 200, "description": description}}),
        &["id"],
    )
}

/// Returns the schema of a pinned revision.
pub fn revision_schema() -> Json {
    json!({
        "type": ["object", "null"],
        "properties": {
            "id": {"type": "string"},
            "version": {"type": "integer"},
            "released": {"type": "boolean"},
        },
        "required": ["id", "version", "released"],
        "additionalProperties": false,
    })
}

/// Returns the newest revision of the bound flow, to which a new row is pinned.
///
/// # Errors
/// `no_revision`, `flow_archived`.
pub async fn newest(cx: &KitCall<'_>) -> Result<VersionRow, KitError> {
    let slug = cx.flow()?;
    let registry = cx.registry();
    let row = registry.flow(slug).await?;
    if row.archived_ms.is_some() {
        return Err(KitError::flow_archived(slug));
    }
    let head = VersionRef::Target(Target::Draft);
    Ok(registry.version(slug, &head).await?)
}

/// Says for the person who is asked which revision a new row starts.
///
/// # Errors
/// As [`newest`].
pub async fn pinned(cx: &KitCall<'_>) -> Result<String, KitError> {
    let revision = newest(cx).await?;
    let (number, id) = (revision.number, &revision.revision);
    Ok(match is_released(&cx.registry(), &revision).await? {
        true => format!("It runs version {number} ({id}), which was released."),
        false => format!("It runs version {number} ({id}), which was not released."),
    })
}

/// Returns the bound flow as the store names it.
///
/// # Errors
/// `binding_missing`.
pub fn flow_name(cx: &KitCall<'_>) -> Result<FlowName, KitError> {
    Ok(FlowName {
        workspace: cx.workspace.to_owned(),
        slug: cx.flow()?.to_owned(),
    })
}

/// Returns a row of the bound flow that is not stored yet.
///
/// # Errors
/// As [`newest`], and `invalid_arguments` for what the schema does not check.
pub async fn new_row(
    cx: &KitCall<'_>,
    (kind, prefix): (TriggerKind, &str),
    arguments: &Arguments,
) -> Result<TriggerRow, KitError> {
    let revision = newest(cx).await?;
    let data = &arguments["data"];
    let now_ms = cx.engine.now_ms();
    let text = |name: &str| arguments.get(name)?.as_str().map(str::to_owned);
    Ok(TriggerRow {
        id: format!("{prefix}_{}", cx.engine.new_record_id()),
        kind,
        flow: flow_name(cx)?,
        name: text("name"),
        description: text("description"),
        event_key: data["event_key"].as_str().unwrap_or_default().to_owned(),
        schedule: None,
        start_ms: None,
        end_ms: None,
        connection: None,
        trigger_config: object_text(data, "trigger_config")?,
        inputs_fields: inputs_fields(data)?,
        version: revision.number,
        revision: revision.revision,
        is_active: true,
        next_ms: None,
        last_ms: None,
        position: None,
        created_ms: now_ms,
        updated_ms: now_ms,
    })
}

fn inputs_fields(data: &Json) -> Result<Option<String>, KitError> {
    if let Some(given) = data.get("inputs_fields") {
        fields::check(given).map_err(|problem| {
            let path = format!("/data/inputs_fields{}", problem.at);
            let message = format!("`{path}`: {}", problem.message);
            KitError::invalid(path, "a JSON Path, a JSON Pointer or a literal", message)
        })?;
    }
    object_text(data, "inputs_fields")
}

fn object_text(data: &Json, name: &str) -> Result<Option<String>, KitError> {
    let text = data.get(name).map(Json::to_string);
    match &text {
        Some(text) if text.len() > MOST_BYTES => Err(KitError::invalid(
            format!("/data/{name}"),
            format!("at most {MOST_BYTES} bytes"),
            format!(
                "`/data/{name}` has {} bytes, and the maximum is {MOST_BYTES}",
                text.len()
            ),
        )),
        _ => Ok(text),
    }
}

/// Stores a new row. `what` are rows of its kind.
///
/// # Errors
/// `limit_exceeded`.
pub async fn add(cx: &KitCall<'_>, row: &TriggerRow, what: &str) -> Result<(), KitError> {
    let triggers = &cx.engine.stores().triggers;
    match triggers.add_trigger(row.clone(), MOST).await? {
        true => Ok(()),
        false => Err(full(&row.flow.slug, what)),
    }
}

/// Checks that a new row has room.
///
/// # Errors
/// `limit_exceeded`.
pub async fn check_room(cx: &KitCall<'_>, row: &TriggerRow, what: &str) -> Result<(), KitError> {
    let triggers = &cx.engine.stores().triggers;
    match triggers.triggers(&row.flow, row.kind).await?.len() < MOST {
        true => Ok(()),
        false => Err(full(&row.flow.slug, what)),
    }
}

fn full(slug: &str, what: &str) -> KitError {
    KitError::full(
        format!("the flow `{slug}` has {MOST} {what}, which is the maximum"),
        format!("remove one of the {what} that is no longer needed, and repeat the call"),
    )
}

/// Returns a row of the bound flow.
///
/// # Errors
/// `not_found`, also for a row of another flow.
pub async fn find(
    cx: &KitCall<'_>,
    (kind, what): (TriggerKind, &str),
    id: &str,
) -> Result<TriggerRow, KitError> {
    let flow = flow_name(cx)?;
    let found = cx.engine.stores().triggers.trigger(id).await?;
    found
        .filter(|row| row.flow == flow && row.kind == kind)
        .ok_or_else(|| missing(&flow.slug, what, id))
}

/// Returns the error for an id that the bound flow has not.
pub fn missing(slug: &str, what: &str, id: &str) -> KitError {
    KitError::not_found(format!("the flow `{slug}` has no {what} `{id}`"))
}

/// Changes a row of the bound flow. `change` returns `None` if there is nothing to change. Returns the row as it is afterwards.
///
/// # Errors
/// As [`find`].
pub async fn change(
    cx: &KitCall<'_>,
    of: (TriggerKind, &str),
    id: &str,
    change: impl Fn(&TriggerRow) -> Option<TriggerRow>,
) -> Result<TriggerRow, KitError> {
    for _ in 0..ATTEMPTS {
        let row = find(cx, of, id).await?;
        let Some(changed) = change(&row) else {
            return Ok(row);
        };
        let triggers = &cx.engine.stores().triggers;
        if triggers.change_trigger(row, changed.clone()).await? {
            return Ok(changed);
        }
    }
    Err(KitError::internal(&format!(
        "the {} {id} is changed all the time",
        of.1
    )))
}

/// Returns the revision that a row is pinned to, with whether it was released.
///
/// # Errors
/// When the store cannot be read.
pub async fn revision_of(cx: &KitCall<'_>, row: &TriggerRow) -> Result<Json, KitError> {
    numbered(cx, &row.flow.slug, row.version).await
}

/// As [`revision_of`], for the version with a number; null if it does not exist.
///
/// # Errors
/// As [`revision_of`].
pub async fn numbered(cx: &KitCall<'_>, slug: &str, number: i64) -> Result<Json, KitError> {
    let registry = cx.registry();
    let version = match registry.version(slug, &VersionRef::Number(number)).await {
        Ok(version) => version,
        Err(RegistryError::NoVersion { .. } | RegistryError::NoFlow { .. }) => {
            return Ok(Json::Null);
        }
        Err(error) => return Err(error.into()),
    };
    Ok(json!({
        "id": version.revision,
        "version": version.number,
        "released": is_released(&registry, &version).await?,
    }))
}

/// Returns a stored JSON text, or null.
pub fn stored(text: Option<&str>) -> Json {
    let json = text.and_then(|text| serde_json::from_str(text).ok());
    json.unwrap_or(Json::Null)
}

/// Reads a time: RFC 3339, with `Z` or an offset. Without one it could be any of 24 hours, so it is not read.
pub fn instant_millis(text: &str) -> Option<i64> {
    let bytes = text.trim().as_bytes();
    let has_day_and_hour = bytes.len() > 10 && matches!(bytes[10], b'T' | b't' | b' ');
    let millis = flowstone_model::json::instant_millis(text)?;
    let time = text.trim().get(10..).unwrap_or_default();
    let has_offset = time.ends_with(['Z', 'z', ']']) || time.contains(['+', '-']);
    (has_day_and_hour && has_offset).then_some(millis)
}

/// Returns a time as answers show it, or null.
pub fn time(ms: Option<i64>) -> Json {
    ms.map_or(Json::Null, |ms| Json::String(instant(ms)))
}
