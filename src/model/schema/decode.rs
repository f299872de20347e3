//! Conversion of values from JSON to what their schema expects: names as keywords, lists as sets, numbers by their
//! kind.

use flowstone_lang::value::{Map, Object, Value};

use super::{Entry, Kind, ListForm, Schema, validate};
use crate::json::{instant_millis, items, name_text, uuid_bits};

const MAX_DEPTH: usize = 200;

/// Returns a value in which the parts that JSON cannot represent have the type that the schema expects. A part that
/// cannot be converted stays unchanged, for [`validate`] to report. Missing entries with a `:default` get it.
pub fn decode(schema: &Schema, value: Value) -> Value {
    decode_at(schema, value, 0)
}

fn decode_at(schema: &Schema, value: Value, depth: usize) -> Value {
    if depth > MAX_DEPTH {
        return value;
    }
    let depth = depth + 1;
    match (&schema.kind, &value) {
        (Kind::Map { entries, .. }, Value::Map(map)) => decode_map(entries, map, depth),
        (
            Kind::MapOf {
                key, value: inner, ..
            },
            Value::Map(map),
        ) => Value::map(map.iter().map(|(found_key, found)| {
            let found = decode_at(inner, found.clone(), depth);
            (decode_key(key, found_key, depth), found)
        })),
        (Kind::List { item, form, .. }, value) if !value.is_nil() => {
            decode_list(item, *form, value, depth)
        }
        (Kind::Tuple(schemas), Value::Vector(vector)) if vector.len() == schemas.len() => {
            let items = schemas.iter().zip(vector.iter());
            Value::vector(items.map(|(schema, inner)| decode_at(schema, inner.clone(), depth)))
        }
        (Kind::Maybe(inner), value) if !value.is_nil() => decode_at(inner, value.clone(), depth),
        (Kind::And(schemas), _) => schemas
            .iter()
            .fold(value, |value, schema| decode_at(schema, value, depth)),
        (Kind::Or(schemas), _) => schemas
            .iter()
            .map(|schema| (schema, decode_at(schema, value.clone(), depth)))
            .find(|(schema, decoded)| validate(schema, decoded).is_empty())
            .map_or_else(|| value.clone(), |found| found.1),
        (Kind::Multi { dispatch, cases }, Value::Map(map)) => {
            decode_case(dispatch, cases, map, depth)
        }
        (Kind::Reference { name, registry }, _) => {
            let target = registry.borrow().get(name).cloned();
            target.map_or(value.clone(), |target| decode_at(&target, value, depth))
        }
        (kind, value) => scalar(kind, value).unwrap_or_else(|| value.clone()),
    }
}

/// Converts a value without parts; `None` if there is nothing to convert.
fn scalar(kind: &Kind, value: &Value) -> Option<Value> {
    Some(match (kind, value) {
        (Kind::Keyword, Value::Text(text)) => Value::keyword(text.trim_start_matches(':')),
        (Kind::Symbol, Value::Text(text)) => Value::symbol(text),
        (Kind::Uuid, Value::Text(text)) => Object::Uuid(uuid_bits(text)?).into(),
        (Kind::Inst, Value::Text(text)) => Object::Inst(instant_millis(text)?).into(),
        (Kind::Double { .. }, Value::Int(int)) => Value::Float(*int as f64),
        (Kind::Int { .. }, Value::Float(float)) if float.fract() == 0.0 && float.abs() < 9e15 => {
            Value::Int(*float as i64)
        }
        (Kind::Enum(values), value) => same_name(values, value)?,
        (Kind::Equals(expected), value) => same_name(std::slice::from_ref(expected), value)?,
        _ => return None,
    })
}

fn decode_map(entries: &[Entry], map: &Map, depth: usize) -> Value {
    let mut decoded = map.entries().clone();
    for entry in entries {
        let own = entry.notes.default.as_ref();
        let default = own.or(entry.schema.notes.default.as_ref());
        let inner = match (decoded.get(&entry.key).cloned(), default) {
            (Some(inner), _) => decode_at(&entry.schema, inner, depth),
            (None, Some(default)) => default.clone(),
            (None, None) => continue,
        };
        decoded.insert(entry.key.clone(), inner);
    }
    owned(&decoded)
}

fn decode_list(item: &Schema, form: ListForm, value: &Value, depth: usize) -> Value {
    let Some(found) = items(value) else {
        return value.clone();
    };
    let decoded = found.into_iter().map(|inner| decode_at(item, inner, depth));
    match form {
        ListForm::Set => Value::set(decoded),
        ListForm::Vector | ListForm::Sequential => Value::vector(decoded),
    }
}

fn decode_case(dispatch: &Value, cases: &[(Value, Schema)], map: &Map, depth: usize) -> Value {
    let chosen = map.get(dispatch).cloned().unwrap_or(Value::Nil);
    let is_chosen = |case: &Value| same_name(std::slice::from_ref(case), &chosen).is_some();
    let mut entries = map.entries().clone();
    match cases.iter().find(|(case, _)| is_chosen(case)) {
        Some((case, schema)) => {
            entries.insert(dispatch.clone(), case.clone());
            decode_at(schema, owned(&entries), depth)
        }
        None => owned(&entries),
    }
}

fn owned(entries: &flowstone_lang::value::PMap) -> Value {
    Value::map(
        entries
            .iter()
            .map(|(key, value)| (key.clone(), value.clone())),
    )
}

/// Converts a key, which arrived as a keyword, to the type that the schema expects.
fn decode_key(schema: &Schema, key: &Value, depth: usize) -> Value {
    let text = match name_text(key) {
        Some(text) if key.as_keyword().is_some() => text,
        _ => return key.clone(),
    };
    match &schema.kind {
        Kind::String { .. } | Kind::Regex { .. } => Value::from(text),
        Kind::Int { .. } => text.parse::<i64>().map_or(key.clone(), Value::Int),
        _ => decode_at(schema, key.clone(), depth),
    }
}

/// Returns the expected value whose text is equal; the value itself if it is expected.
fn same_name(expected: &[Value], value: &Value) -> Option<Value> {
    if expected.contains(value) {
        return Some(value.clone());
    }
    let text = value.as_str()?.trim_start_matches(':');
    expected
        .iter()
        .find(|one| one.as_str().is_none() && name_text(one).as_deref() == Some(text))
        .cloned()
}
