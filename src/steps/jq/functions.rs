//! The functions of filters.

use serde_json::{Map, Value as Json, json};

use super::evaluate::{Outputs, Run, Stop, is_true, items, kind, plain};
use super::order::compare;
use super::parse::{Expression, number};

/// The functions, each with the number of its arguments, sorted.
const KNOWN: &[(&str, usize)] = &[
    ("abs", 0),
    ("add", 0),
    ("all", 0),
    ("all", 1),
    ("all", 2),
    ("any", 0),
    ("any", 1),
    ("any", 2),
    ("arrays", 0),
    ("ascii_downcase", 0),
    ("ascii_upcase", 0),
    ("booleans", 0),
    ("ceil", 0),
    ("contains", 1),
    ("empty", 0),
    ("endswith", 1),
    ("error", 0),
    ("error", 1),
    ("first", 0),
    ("first", 1),
    ("flatten", 0),
    ("floor", 0),
    ("from_entries", 0),
    ("fromjson", 0),
    ("group_by", 1),
    ("has", 1),
    ("index", 1),
    ("inside", 1),
    ("isempty", 1),
    ("join", 1),
    ("keys", 0),
    ("last", 0),
    ("last", 1),
    ("length", 0),
    ("limit", 2),
    ("ltrimstr", 1),
    ("map", 1),
    ("map_values", 1),
    ("max", 0),
    ("max_by", 1),
    ("min", 0),
    ("min_by", 1),
    ("not", 0),
    ("nulls", 0),
    ("numbers", 0),
    ("objects", 0),
    ("range", 1),
    ("range", 2),
    ("reverse", 0),
    ("round", 0),
    ("rtrimstr", 1),
    ("scalars", 0),
    ("select", 1),
    ("sort", 0),
    ("sort_by", 1),
    ("split", 1),
    ("startswith", 1),
    ("strings", 0),
    ("to_entries", 0),
    ("tojson", 0),
    ("tonumber", 0),
    ("tostring", 0),
    ("trim", 0),
    ("type", 0),
    ("unique", 0),
    ("unique_by", 1),
    ("values", 0),
    ("with_entries", 1),
];

/// Tells whether there is a function of that name with this number of arguments.
pub(super) fn is_known(name: &str, count: usize) -> bool {
    KNOWN.contains(&(name, count))
}

/// Calls a function that is known.
pub(super) fn call(run: &mut Run, name: &str, args: &[Expression], input: &Json) -> Outputs {
    match args {
        [] => plain_call(run, name, input),
        [one] => call_with(run, name, one, input),
        [one, other, ..] => call_with_two(run, name, (one, other), input),
    }
}

fn plain_call(run: &mut Run, name: &str, input: &Json) -> Outputs {
    let is_kept = match name {
        "empty" => return Ok(Vec::new()),
        "error" => return Err(Stop::Error(input.clone())),
        "arrays" => input.is_array(),
        "booleans" => input.is_boolean(),
        "nulls" => input.is_null(),
        "numbers" => input.is_number(),
        "objects" => input.is_object(),
        "scalars" => !input.is_array() && !input.is_object(),
        "strings" => input.is_string(),
        "values" => !input.is_null(),
        _ => return of_value(run, name, input).map(|value| vec![value]),
    };
    match is_kept {
        true => Ok(vec![run.copy(input)?]),
        false => Ok(Vec::new()),
    }
}

type One = Result<Json, Stop>;

fn of_value(run: &mut Run, name: &str, input: &Json) -> One {
    match name {
        "not" => Ok(Json::Bool(!is_true(input))),
        "type" => Ok(json!(kind(input).rsplit(' ').next())),
        "tojson" => Ok(Json::String(run.copy(input)?.to_string())),
        "tostring" => Ok(Json::String(plain(&run.copy(input)?))),
        "length" => length(input),
        "abs" | "ceil" | "floor" | "round" => of_number(name, input),
        "ascii_downcase" | "ascii_upcase" | "fromjson" | "tonumber" | "trim" => {
            of_text(name, input)
        }
        "any" | "all" => {
            let items = items(run.copy(input)?)?;
            Ok(Json::Bool(match name {
                "any" => items.iter().any(is_true),
                _ => items.iter().all(is_true),
            }))
        }
        "add" => {
            let mut sum = Json::Null;
            for item in items(run.copy(input)?)? {
                sum = run.add(&sum, &item)?;
            }
            Ok(sum)
        }
        "keys" => keys(run, input),
        "to_entries" => entries(run, input),
        "from_entries" => from_entries(&array(run, name, input)?),
        _ => of_array(run, name, input),
    }
}

fn of_array(run: &mut Run, name: &str, input: &Json) -> One {
    if let ("reverse", Json::String(text)) = (name, input) {
        return Ok(Json::String(text.chars().rev().collect()));
    }
    let mut list = array(run, name, input)?;
    // Sorting compares each item with several others.
    run.spend(list.len().saturating_mul(8))?;
    Ok(match name {
        "first" => list.into_iter().next().unwrap_or(Json::Null),
        "last" => list.pop().unwrap_or(Json::Null),
        "min" => list.into_iter().min_by(compare).unwrap_or(Json::Null),
        "max" => list.into_iter().max_by(compare).unwrap_or(Json::Null),
        "reverse" => Json::Array(list.into_iter().rev().collect()),
        "sort" => {
            list.sort_by(compare);
            Json::Array(list)
        }
        "unique" => {
            list.sort_by(compare);
            list.dedup();
            Json::Array(list)
        }
        _ => {
            let mut flat = Vec::new();
            flatten(list, &mut flat);
            Json::Array(flat)
        }
    })
}

fn flatten(list: Vec<Json>, flat: &mut Vec<Json>) {
    for item in list {
        match item {
            Json::Array(inner) => flatten(inner, flat),
            other => flat.push(other),
        }
    }
}

fn array(run: &mut Run, name: &str, input: &Json) -> Outputs {
    match run.copy(input)? {
        Json::Array(items) => Ok(items),
        other => Err(wrong(name, &other)),
    }
}

fn wrong(name: &str, value: &Json) -> Stop {
    Stop::error(format!("`{name}` does not take {}", kind(value)))
}

fn length(input: &Json) -> One {
    Ok(match input {
        Json::Null => json!(0),
        Json::Number(value) => number(value.as_f64().unwrap_or(0.0).abs()),
        Json::String(text) => json!(text.chars().count()),
        Json::Array(items) => json!(items.len()),
        Json::Object(members) => json!(members.len()),
        Json::Bool(_) => return Err(wrong("length", input)),
    })
}

fn of_number(name: &str, input: &Json) -> One {
    let value = input.as_f64().ok_or_else(|| wrong(name, input))?;
    Ok(number(match name {
        "abs" => value.abs(),
        "ceil" => value.ceil(),
        "floor" => value.floor(),
        _ => value.round(),
    }))
}

fn of_text(name: &str, input: &Json) -> One {
    if let ("tonumber", Json::Number(_)) = (name, input) {
        return Ok(input.clone());
    }
    let text = input.as_str().ok_or_else(|| wrong(name, input))?;
    Ok(match name {
        "ascii_downcase" => json!(text.to_ascii_lowercase()),
        "ascii_upcase" => json!(text.to_ascii_uppercase()),
        "trim" => json!(text.trim()),
        "fromjson" => serde_json::from_str(text)
            .map_err(|error| Stop::error(format!("the text is not JSON: {error}")))?,
        _ => serde_json::from_str::<serde_json::Number>(text.trim())
            .map(Json::Number)
            .map_err(|_| Stop::error("the text is not a number"))?,
    })
}

fn keys(run: &mut Run, input: &Json) -> One {
    match input {
        Json::Array(items) => {
            run.spend(items.len())?;
            Ok(json!((0..items.len()).collect::<Vec<_>>()))
        }
        Json::Object(members) => {
            run.spend(members.len())?;
            let mut keys: Vec<&String> = members.keys().collect();
            keys.sort();
            Ok(json!(keys))
        }
        other => Err(wrong("keys", other)),
    }
}

fn entries(run: &mut Run, input: &Json) -> One {
    let Json::Object(members) = run.copy(input)? else {
        return Err(wrong("to_entries", input));
    };
    let entry = |(key, value)| json!({"key": key, "value": value});
    Ok(members.into_iter().map(entry).collect())
}

fn from_entries(entries: &[Json]) -> One {
    let mut members = Map::new();
    for entry in entries {
        let of = |names: &[&str]| names.iter().find_map(|name| entry.get(*name)).cloned();
        let key = of(&["key", "k", "name"]).unwrap_or(Json::Null);
        let value = of(&["value", "v"]).unwrap_or(Json::Null);
        members.insert(plain(&key), value);
    }
    Ok(Json::Object(members))
}

fn call_with(run: &mut Run, name: &str, arg: &Expression, input: &Json) -> Outputs {
    match name {
        "select" => run.each(arg, input, |run, value| match is_true(&value) {
            true => Ok(vec![run.copy(input)?]),
            false => Ok(Vec::new()),
        }),
        "map" => {
            let mut all = Vec::new();
            for item in items(run.copy(input)?)? {
                all.extend(run.outputs(arg, &item)?);
            }
            Ok(vec![Json::Array(all)])
        }
        "map_values" => map_values(run, arg, input),
        "with_entries" => {
            let mut changed = Vec::new();
            for entry in items(entries(run, input)?)? {
                changed.extend(run.outputs(arg, &entry)?);
            }
            Ok(vec![from_entries(&changed)?])
        }
        "any" | "all" => {
            let mut found = Vec::new();
            for item in items(run.copy(input)?)? {
                found.extend(run.outputs(arg, &item)?);
            }
            Ok(vec![quantified(name, &found)])
        }
        "first" => Ok(run.outputs(arg, input)?.into_iter().take(1).collect()),
        "last" => Ok(run.outputs(arg, input)?.pop().into_iter().collect()),
        "isempty" => Ok(vec![Json::Bool(run.outputs(arg, input)?.is_empty())]),
        "error" => run.each(arg, input, |_, value| Err(Stop::Error(value))),
        "range" => run.each(arg, input, |run, end| range(run, &json!(0), &end)),
        "group_by" | "max_by" | "min_by" | "sort_by" | "unique_by" => by(run, name, arg, input),
        _ => run.each(arg, input, |run, value| {
            of_two(run, name, input, &value).map(|value| vec![value])
        }),
    }
}

fn quantified(name: &str, found: &[Json]) -> Json {
    Json::Bool(match name {
        "any" => found.iter().any(is_true),
        _ => found.iter().all(is_true),
    })
}

fn map_values(run: &mut Run, arg: &Expression, input: &Json) -> Outputs {
    match run.copy(input)? {
        Json::Object(members) => {
            let mut changed = Map::new();
            for (key, value) in members {
                if let Some(value) = run.outputs(arg, &value)?.into_iter().next() {
                    changed.insert(key, value);
                }
            }
            Ok(vec![Json::Object(changed)])
        }
        Json::Array(items) => {
            let mut changed = Vec::new();
            for item in items {
                changed.extend(run.outputs(arg, &item)?.into_iter().take(1));
            }
            Ok(vec![Json::Array(changed)])
        }
        other => Err(wrong("map_values", &other)),
    }
}

/// Functions that order items by what an expression gives for them.
fn by(run: &mut Run, name: &str, arg: &Expression, input: &Json) -> Outputs {
    let mut keyed = Vec::new();
    for item in array(run, name, input)? {
        let key = Json::Array(run.outputs(arg, &item)?);
        keyed.push((key, item));
    }
    run.spend(keyed.len().saturating_mul(8))?;
    keyed.sort_by(|one, other| compare(&one.0, &other.0));
    let value = match name {
        "sort_by" => keyed.into_iter().map(|it| it.1).collect(),
        "min_by" => keyed.into_iter().next().map_or(Json::Null, |it| it.1),
        "max_by" => keyed.pop().map_or(Json::Null, |it| it.1),
        "unique_by" => {
            keyed.dedup_by(|one, other| compare(&one.0, &other.0).is_eq());
            keyed.into_iter().map(|it| it.1).collect()
        }
        _ => {
            let mut groups: Vec<(Json, Vec<Json>)> = Vec::new();
            for (key, item) in keyed {
                match groups.last_mut() {
                    Some((known, group)) if compare(known, &key).is_eq() => group.push(item),
                    _ => groups.push((key, vec![item])),
                }
            }
            groups.into_iter().map(|it| Json::Array(it.1)).collect()
        }
    };
    Ok(vec![value])
}

fn of_two(run: &mut Run, name: &str, input: &Json, value: &Json) -> One {
    let texts = input.as_str().zip(value.as_str());
    match (name, texts) {
        ("has", _) => has(input, value),
        ("contains", _) => Ok(Json::Bool(contains(input, value))),
        ("inside", _) => Ok(Json::Bool(contains(value, input))),
        ("join", _) => join(run, input, value),
        ("ltrimstr", Some((text, edge))) => Ok(json!(text.strip_prefix(edge).unwrap_or(text))),
        ("rtrimstr", Some((text, edge))) => Ok(json!(text.strip_suffix(edge).unwrap_or(text))),
        ("ltrimstr" | "rtrimstr", None) => run.copy(input),
        ("startswith", Some((text, edge))) => Ok(Json::Bool(text.starts_with(edge))),
        ("endswith", Some((text, edge))) => Ok(Json::Bool(text.ends_with(edge))),
        ("split", Some((text, separator))) => {
            run.spend(text.len())?;
            Ok(split(text, separator))
        }
        ("index", Some((text, part))) => {
            let at = text.find(part).map(|at| text[..at].chars().count());
            Ok(json!(at))
        }
        ("index", None) => {
            let items = array(run, name, input)?;
            Ok(json!(items.iter().position(|item| item == value)))
        }
        _ => Err(wrong(name, input)),
    }
}

fn has(input: &Json, key: &Json) -> One {
    match (input, key) {
        (Json::Object(members), Json::String(name)) => Ok(Json::Bool(members.contains_key(name))),
        (Json::Array(items), Json::Number(at)) => {
            let at = at.as_u64().and_then(|at| usize::try_from(at).ok());
            Ok(Json::Bool(at.is_some_and(|at| at < items.len())))
        }
        (input, _) => Err(wrong("has", input)),
    }
}

fn contains(value: &Json, part: &Json) -> bool {
    match (value, part) {
        (Json::String(text), Json::String(part)) => text.contains(part.as_str()),
        (Json::Array(items), Json::Array(parts)) => {
            let mut parts = parts.iter();
            parts.all(|part| items.iter().any(|item| contains(item, part)))
        }
        (Json::Object(members), Json::Object(parts)) => {
            let mut parts = parts.iter();
            parts.all(|(key, part)| members.get(key).is_some_and(|it| contains(it, part)))
        }
        (value, part) => compare(value, part).is_eq(),
    }
}

fn join(run: &mut Run, input: &Json, separator: &Json) -> One {
    let separator = separator.as_str().ok_or_else(|| wrong("join", separator))?;
    let mut texts = Vec::new();
    for item in array(run, "join", input)? {
        texts.push(match item {
            Json::Null => String::new(),
            Json::Array(_) | Json::Object(_) => return Err(wrong("join", &item)),
            other => plain(&other),
        });
    }
    run.spend(texts.len().saturating_mul(separator.len()) / 16)?;
    Ok(Json::String(texts.join(separator)))
}

/// Returns the parts of a text between separators.
pub(super) fn split(text: &str, separator: &str) -> Json {
    match separator.is_empty() {
        true => text.chars().map(|char| json!(char.to_string())).collect(),
        false => text.split(separator).map(|part| json!(part)).collect(),
    }
}

fn range(run: &mut Run, start: &Json, end: &Json) -> Outputs {
    let edge = |value: &Json| value.as_f64().ok_or_else(|| wrong("range", value));
    let (mut at, end) = (edge(start)?, edge(end)?);
    let mut made = Vec::new();
    while at < end {
        run.spend(1)?;
        made.push(number(at));
        at += 1.0;
    }
    Ok(made)
}

fn call_with_two(
    run: &mut Run,
    name: &str,
    (one, other): (&Expression, &Expression),
    input: &Json,
) -> Outputs {
    match name {
        "limit" => run.each(one, input, |run, count| {
            let count = count.as_f64().unwrap_or(0.0).max(0.0);
            let count = count as usize;
            Ok(run.outputs(other, input)?.into_iter().take(count).collect())
        }),
        "range" => run.each(one, input, |run, start| {
            run.each(other, input, |run, end| range(run, &start, &end))
        }),
        _ => {
            let mut found = Vec::new();
            for item in run.outputs(one, input)? {
                found.extend(run.outputs(other, &item)?);
            }
            Ok(vec![quantified(name, &found)])
        }
    }
}
