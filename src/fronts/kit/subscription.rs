//! Subscriptions of the bound flow: to events of connections, and of other flows of the workspace.

use flowstone_engine::triggers::{LOCAL, LOCAL_EVENTS};
use flowstone_model::diagnostic::nearest;
use flowstone_model::triggers::{TriggerKind, TriggerRow};
use flowstone_project::registry::{DEFAULT_WORKSPACE, FlowRow};
use flowstone_project::webhooks::{Sender, WebhookConnection, is_event_name, webhooks};
use serde_json::{Value as Json, json};

use super::context::KitCall;
use super::error::KitError;
use super::event_types;
use super::schema::object;
use super::tool::{Answer, Arguments};
use super::trigger::{self, time};

/// The kind of these rows, and what errors call them.
pub const KIND: (TriggerKind, &str) = (TriggerKind::Subscription, "subscription");
/// Maximum number of values that an event is compared with.
const MOST_MATCHES: usize = 20;

/// Returns the schema of a subscription.
pub fn schema() -> Json {
    let text = json!({"type": ["string", "null"]});
    let data = object(
        json!({
            "event_key": {"type": "string"},
            "trigger_config": {"type": ["object", "null"], "additionalProperties": true},
            "inputs_fields": {"type": ["object", "null"], "additionalProperties": true},
        }),
        &["event_key", "trigger_config", "inputs_fields"],
    );
    let flags = object(
        json!({"is_active": {"type": "boolean"}, "is_valid": {"type": "boolean"}}),
        &["is_active", "is_valid"],
    );
    object(
        json!({
            "id": {"type": "string"},
            "name": text,
            "description": text,
            "connection_id": {"type": "string"},
            "data": data,
            "revision": trigger::revision_schema(),
            "flags": flags,
            "created_at": {"type": "string"},
        }),
        &[
            "id",
            "name",
            "description",
            "connection_id",
            "data",
            "revision",
            "flags",
            "created_at",
        ],
    )
}

/// Returns the schemas of the arguments that say what is subscribed to.
pub fn arguments_schema() -> (Json, Json) {
    let connection = json!({
        "type": "string",
        "minLength": 1,
        "maxLength": 200,
        "description": "The id of a connection, as `discover_triggers` returns it; `local` for events of other flows.",
    });
    let data = object(
        json!({
            "event_key": trigger::event_key_schema(
                "`webhook.CONNECTION.EVENT` or `flow.SLUG.completed|failed|waiting`, as `discover_triggers` returns it.",
            ),
            "trigger_config": trigger_config_schema(),
            "inputs_fields": trigger::fields_schema(),
        }),
        &["event_key"],
    );
    (connection, data)
}

/// Returns the schema of `trigger_config`.
pub fn trigger_config_schema() -> Json {
    object(
        json!({
            "match": {
                "type": "object",
                "maxProperties": MOST_MATCHES,
                "propertyNames": {"pattern": "^/", "maxLength": 500},
                "additionalProperties": {"type": ["string", "number", "boolean", "null"]},
                "description": "Only events that have these values: JSON Pointers into the event's attributes, such as \
                    {\"/action\": \"opened\"}.",
            },
        }),
        &[],
    )
}

/// Checks that a call names a subscription of the bound flow.
///
/// # Errors
/// `not_found`.
pub async fn check(cx: &KitCall<'_>, arguments: &Arguments) -> Result<(), KitError> {
    let id = arguments["id"].as_str().unwrap_or_default();
    trigger::find(cx, KIND, id).await.map(drop)
}

/// Fills in what is particular to a subscription, after checking that such events can come.
///
/// # Errors
/// `invalid_arguments`, `not_found`, `connection_not_ready`.
pub async fn fill(
    cx: &KitCall<'_>,
    row: &mut TriggerRow,
    connection: &str,
) -> Result<(), KitError> {
    match connection {
        LOCAL => check_flow(cx, &row.event_key).await?,
        other => check_webhook(cx, other, &row.event_key)?,
    }
    row.connection = Some(connection.to_owned());
    let feed = &cx.engine.stores().feed;
    row.position = (connection == LOCAL).then_some(feed.last_position().await?);
    Ok(())
}

fn bad_key(expected: impl Into<String>, message: impl Into<String>) -> KitError {
    KitError::invalid("/data/event_key", expected, message)
}

/// Checks the key of an event of another flow.
async fn check_flow(cx: &KitCall<'_>, key: &str) -> Result<(), KitError> {
    let expected = "`flow.SLUG.completed`, `flow.SLUG.failed` or `flow.SLUG.waiting`";
    let parts = key
        .strip_prefix("flow.")
        .and_then(|rest| rest.rsplit_once('.'));
    let parts = parts.filter(|(_, what)| LOCAL_EVENTS.contains(what));
    let Some((slug, _)) = parts else {
        let message = format!("`{key}` is not an event of the connection `{LOCAL}`");
        return Err(bad_key(expected, message));
    };
    if slug == cx.flow()? {
        let message = format!("`{key}`: a flow cannot subscribe to its own events");
        return Err(bad_key("an event of another flow", message));
    }
    let known = flows(cx).await?;
    if known.iter().any(|known| known == slug) {
        return Ok(());
    }
    let near = nearest(slug, known.iter().map(String::as_str));
    let near = near.map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
    let message = format!("there is no flow `{slug}`{near}");
    Err(bad_key(expected, message))
}

/// Returns the slugs of the workspace's flows that the caller reaches, but the bound one.
///
/// # Errors
/// When the store cannot be read.
pub async fn flows(cx: &KitCall<'_>) -> Result<Vec<String>, KitError> {
    let own = cx.flow()?;
    if cx.workspace != DEFAULT_WORKSPACE {
        return Ok(Vec::new());
    }
    let rows = cx.registry().flows(false).await?;
    let slug = |row: FlowRow| row.name.slug;
    let mut slugs: Vec<String> = rows.into_iter().map(slug).collect();
    let files = cx.catalog.flows(cx.engine);
    slugs.extend(files.iter().map(|flow| flow.slug.clone()));
    slugs.sort();
    slugs.dedup();
    slugs.retain(|slug| slug != own && cx.reaches_flow(slug));
    Ok(slugs)
}

/// Checks the key of an event of a connection.
fn check_webhook(cx: &KitCall<'_>, connection: &str, key: &str) -> Result<(), KitError> {
    let found = webhook(cx, connection)?;
    let expected = format!("`webhook.{connection}.EVENT`");
    let event = key.strip_prefix("webhook.").and_then(|rest| {
        let rest = rest.strip_prefix(connection)?;
        rest.strip_prefix('.')
    });
    let Some(event) = event.filter(|event| is_event_name(event)) else {
        let message = format!("`{key}` is not an event of the connection `{connection}`");
        return Err(bad_key(expected, message));
    };
    let known = event_types::of(found.sender);
    let is_known = known.iter().any(|it| it.name == event);
    if is_known || found.sender != Sender::Github {
        return Ok(());
    }
    let near = nearest(event, event_types::GITHUB_NAMES.iter().copied());
    if event_types::GITHUB_NAMES.contains(&event) {
        return Ok(());
    }
    let near = near.map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
    Err(bad_key(
        expected,
        format!("GitHub has no event `{event}`{near}"),
    ))
}

/// Returns a connection that sends events and is ready.
///
/// # Errors
/// `not_found`, `connection_not_ready`.
pub fn webhook(cx: &KitCall<'_>, id: &str) -> Result<WebhookConnection, KitError> {
    let all = webhooks(cx.engine.settings());
    let names: Vec<&str> = all.iter().map(|(name, _)| &**name).collect();
    let found = all.iter().find(|(name, _)| name == id);
    let Some((_, found)) = found else {
        let near = nearest(id, names.iter().copied());
        let near = near.map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
        return Err(KitError::not_found(format!(
            "there is no connection `{id}` that sends events{near}"
        ))
        .next(
            "list the events with `discover_triggers`; a person adds `:webhook` to a connection in flowstone.edn",
        ));
    };
    let not_ready = |why: String| {
        KitError::connection_not_ready(id, json!({"connection_id": id, "reason": why}))
    };
    let found = found.as_ref().map_err(|why| not_ready(why.clone()))?;
    match cx.engine.unset_secret(&found.proof) {
        Some(name) => Err(not_ready(format!("the secret `{name}` is not set"))),
        None => Ok(found.clone()),
    }
}

/// Pauses or resumes the subscription with the id of the arguments.
///
/// # Errors
/// `not_found`.
pub async fn switch(cx: &KitCall<'_>, arguments: Arguments, is_active: bool) -> Answer {
    let id = arguments["id"].as_str().unwrap_or_default();
    let position = cx.engine.stores().feed.last_position().await?;
    let at = (cx.engine.now_ms(), position);
    let row = trigger::change(cx, KIND, id, |row| switched(row, is_active, at)).await?;
    Ok(json!({"subscription": shown(cx, &row).await?}))
}

/// Returns a subscription with the other state, or `None` if it has that. Events that came while it was paused are left out.
fn switched(
    row: &TriggerRow,
    is_active: bool,
    (now_ms, position): (i64, i64),
) -> Option<TriggerRow> {
    if row.is_active == is_active {
        return None;
    }
    let is_local = row.connection.as_deref() == Some(LOCAL);
    Some(TriggerRow {
        is_active,
        position: is_local.then_some(position),
        updated_ms: now_ms,
        ..row.clone()
    })
}

/// Returns a subscription.
///
/// # Errors
/// When the store cannot be read.
pub async fn shown(cx: &KitCall<'_>, row: &TriggerRow) -> Result<Json, KitError> {
    let connection = row.connection.as_deref().unwrap_or_default();
    let checked = match connection {
        LOCAL => check_flow(cx, &row.event_key).await,
        other => webhook(cx, other).map(drop),
    };
    let flow = cx.registry().find(&row.flow.slug).await?;
    let is_archived = flow.is_none_or(|flow| flow.archived_ms.is_some());
    let revision = trigger::revision_of(cx, row).await?;
    let is_valid = checked.is_ok() && !is_archived && !revision.is_null();
    Ok(json!({
        "id": row.id,
        "name": row.name,
        "description": row.description,
        "connection_id": connection,
        "data": {
            "event_key": row.event_key,
            "trigger_config": trigger::stored(row.trigger_config.as_deref()),
            "inputs_fields": trigger::stored(row.inputs_fields.as_deref()),
        },
        "revision": revision,
        "flags": {"is_active": row.is_active, "is_valid": is_valid},
        "created_at": time(Some(row.created_ms)),
    }))
}
