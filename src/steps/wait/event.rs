//! `:event`: which event completes a wait, in the current spelling and the older one.

use flowstone_flow::codec;
use flowstone_flow::flow::name_of;
use flowstone_flow::ports::WaitEvent;
use flowstone_flow::step::StepError;
use flowstone_lang::value::Value;

use crate::fields::Fields;
use crate::json::items;
use crate::text::brief;

/// Reads the event. `key` is that of the wait, if the flow sets one.
pub(super) fn read(fields: Fields<'_>, key: Option<&str>) -> Result<Option<WaitEvent>, StepError> {
    let event = match fields.map("event")? {
        Some(event) => {
            let event = Fields::nested(":event", event)?;
            event.only(&["key", "key-path", "name"])?;
            Some(event)
        }
        None => None,
    };
    let own_name = event.map(|event| event.name("name")).transpose()?.flatten();
    let name = match (own_name, fields.name("event-name")?) {
        (Some(_), Some(_)) => {
            return Err(wrong(
                "`:event-name` is another spelling of `:event {:name ...}`; give one",
            ));
        }
        (own, legacy) => own.or(legacy),
    };
    let Some(name) = name.filter(|name| !name.is_empty()) else {
        let part = ["event", "event-key-path", "source"]
            .into_iter()
            .find(|key| fields.has(key));
        return match part {
            Some(part) => Err(wrong(format!("`:{part}` needs the name of the event"))
                .hint("as in `:event {:name \"orders.callback\" :key {:path [:order-id]}}`")),
            None => Ok(None),
        };
    };
    let (own, path) = key_of(fields, event)?;
    if path.is_some() && key.is_none() {
        return Err(wrong(
            "an event with a key in its payload needs the `:key` that it is compared with",
        )
        .hint("add `:key` to the wait, such as the id of the order"));
    }
    Ok(Some(WaitEvent {
        name: name.to_string(),
        key: own.or_else(|| key.map(str::to_owned)),
        path,
    }))
}

/// Returns the event's own key, and the path of its key in the payload.
fn key_of(
    fields: Fields<'_>,
    event: Option<Fields<'_>>,
) -> Result<(Option<String>, Option<String>), StepError> {
    let inner = event.and_then(|event| event.get("key"));
    let (own, inner_path) = match inner {
        Some(map @ Value::Map(_)) => {
            let map = Fields::nested(":event :key", map)?;
            map.only(&["path"])?;
            let path = map.get("path");
            if path.is_none() {
                return Err(wrong("`:event {:key {...}}` needs a `:path`"));
            }
            (None, path)
        }
        Some(key) => {
            let name = name_of(key).map(|name| name.to_string());
            let name = name.or_else(|| key.as_int().map(|number| number.to_string()));
            let name = name.ok_or_else(|| {
                wrong(format!(
                    "`:event :key` is a name or `{{:path [...]}}`, not {}",
                    brief(key)
                ))
            })?;
            (Some(name), None)
        }
        None => (None, None),
    };
    let paths = [
        inner_path,
        event.and_then(|event| event.get("key-path")),
        fields.get("event-key-path"),
    ];
    let mut paths = paths.into_iter().flatten();
    let path = paths.next();
    if paths.next().is_some() || (path.is_some() && own.is_some()) {
        return Err(wrong("the key of the event is given twice"));
    }
    Ok((own, path.map(path_text).transpose()?))
}

/// Encodes a path: names become keywords, numbers count from 0.
fn path_text(path: &Value) -> Result<String, StepError> {
    let parts = items(path).unwrap_or_else(|| vec![path.clone()]);
    let parts = parts.iter().map(|part| match part {
        Value::Int(_) => Ok(part.clone()),
        part => name_of(part)
            .map(|name| Value::keyword(&name))
            .ok_or_else(|| {
                wrong(format!(
                    "the path to an event's key holds names, not {}",
                    brief(part)
                ))
            }),
    });
    let parts = parts.collect::<Result<Vec<_>, _>>()?;
    if parts.is_empty() {
        return Err(wrong("the path to the event's key is empty"));
    }
    codec::encode(&Value::vector(parts))
        .map_err(|error| StepError::config(error.code(), error.to_string()))
}

fn wrong(message: impl Into<String>) -> StepError {
    StepError::config("E0717", message)
}
