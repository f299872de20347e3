//! The functions of filters.

use serde_json::{Map, Value as Json, json};

use super::evaluate::{Outputs, Run, Stop, is_true, items, kind, part, plain};
use super::order::compare;
use super::parse::{Expression, number};
use super::{paths, texts};

/// The functions, each with the number of its arguments, sorted.
const KNOWN: &[(&str, usize)] = &[
    ("abs", 0),
    ("add", 0),
    ("add", 1),
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
    ("flatten", 1),
    ("floor", 0),
    ("from_entries", 0),
    ("fromjson", 0),
    ("group_by", 1),
    ("has", 1),
    ("in", 1),
    ("index", 1),
    ("indices", 1),
    ("inside", 1),
    ("isempty", 1),
    ("iterables", 0),
    ("join", 1),
    ("keys", 0),
    ("keys_unsorted", 0),
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
    ("nth", 1),
    ("nth", 2),
    ("nulls", 0),
    ("numbers", 0),
    ("objects", 0),
    ("pow", 2),
    ("range", 1),
    ("range", 2),
    ("range", 3),
    ("recurse", 0),
    ("recurse", 1),
    ("reverse", 0),
    ("rindex", 1),
    ("round", 0),
    ("rtrimstr", 1),
    ("scalars", 0),
    ("select", 1),
    ("skip", 2),
    ("sort", 0),
    ("sort_by", 1),
    ("split", 1),
    ("sqrt", 0),
    ("startswith", 1),
    ("strings", 0),
    ("to_entries", 0),
    ("toarray", 0),
    ("tojson", 0),
    ("tonumber", 0),
    ("tostring", 0),
    ("transpose", 0),
    ("trim", 0),
    ("trimstr", 1),
    ("type", 0),
    ("unique", 0),
    ("unique_by", 1),
    ("until", 2),
    ("values", 0),
    ("walk", 1),
    ("while", 2),
    ("with_entries", 1),
];

/// How deep `recurse` and `walk` go.
const DEEPEST: usize = 500;

/// Tells whether there is a function of that name with this number of arguments.
pub(super) fn is_known(name: &str, count: usize) -> bool {
    let function = (name, count);
    [KNOWN, paths::KNOWN, texts::KNOWN]
        .iter()
        .any(|known| known.contains(&function))
}

/// Calls a function that is known.
pub(super) fn call(run: &mut Run, name: &str, args: &[Expression], input: &Json) -> Outputs {
    let function = (name, args.len());
    if paths::KNOWN.contains(&function) {
        return paths::call(run, name, args, input);
    }
    if texts::KNOWN.contains(&function) {
        return texts::call(run, name, args, input);
    }
    match args {
        [] => plain_call(run, name, input),
        [one] => call_with(run, name, one, input),
        [start, end, step] => range_by(run, (start, end, step), input),
        [one, other, ..] => call_with_two(run, name, (one, other), input),
    }
}

fn plain_call(run: &mut Run, name: &str, input: &Json) -> Outputs {
    let is_kept = match name {
        "empty" => return Ok(Vec::new()),
        "error" => return Err(Stop::Error(input.clone())),
        "arrays" => input.is_array(),
        "booleans" => input.is_boolean(),
        "iterables" => input.is_array() || input.is_object(),
        "recurse" => return run.outputs(&Expression::Descend, input),
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
        "abs" | "ceil" | "floor" | "round" | "sqrt" => of_number(name, input),
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
        "keys_unsorted" => match input {
            Json::Object(members) => {
                run.spend(members.len())?;
                Ok(members.keys().map(|key| json!(key)).collect())
            }
            other => keys(run, other),
        },
        "toarray" => match run.copy(input)? {
            Json::Array(items) => Ok(Json::Array(items)),
            other => Ok(json!([other])),
        },
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
        "transpose" => return transpose(run, &list),
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
            flatten(list, usize::MAX, &mut flat);
            Json::Array(flat)
        }
    })
}

fn transpose(run: &mut Run, rows: &[Json]) -> One {
    let lengths = rows.iter().map(|row| row.as_array().map_or(0, Vec::len));
    let longest = lengths.max().unwrap_or(0);
    run.spend(longest.saturating_mul(rows.len()))?;
    let column = |at: usize| -> Json {
        let cells = rows.iter().map(|row| row.get(at).cloned());
        cells.map(|cell| cell.unwrap_or(Json::Null)).collect()
    };
    Ok((0..longest).map(column).collect())
}

fn flatten(list: Vec<Json>, depth: usize, flat: &mut Vec<Json>) {
    for item in list {
        match item {
            Json::Array(inner) if depth > 0 => flatten(inner, depth - 1, flat),
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
        "sqrt" => value.sqrt(),
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
    match run.copy(input)? {
        Json::Object(members) => {
            let entry = |(key, value)| json!({"key": key, "value": value});
            Ok(members.into_iter().map(entry).collect())
        }
        Json::Array(items) => {
            let entry = |(key, value)| json!({"key": key, "value": value});
            Ok(items.into_iter().enumerate().map(entry).collect())
        }
        other => Err(wrong("to_entries", &other)),
    }
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
        "range" => run.each(arg, input, |run, end| range(run, (&json!(0), &end), 1.0)),
        "add" => {
            let mut sum = Json::Null;
            for item in run.outputs(arg, input)? {
                sum = run.add(&sum, &item)?;
            }
            Ok(vec![sum])
        }
        "in" => run.each(arg, input, |_, value| has(&value, input).map(|it| vec![it])),
        "recurse" => {
            let mut found = Vec::new();
            recurse(run, (arg, DEEPEST), input, &mut found)?;
            Ok(found)
        }
        "walk" => walk(run, (arg, DEEPEST), input),
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
        ("trimstr", Some((text, edge))) => {
            let text = text.strip_prefix(edge).unwrap_or(text);
            Ok(json!(text.strip_suffix(edge).unwrap_or(text)))
        }
        ("rtrimstr", Some((text, edge))) => Ok(json!(text.strip_suffix(edge).unwrap_or(text))),
        ("ltrimstr" | "rtrimstr" | "trimstr", None) => run.copy(input),
        ("startswith", Some((text, edge))) => Ok(Json::Bool(text.starts_with(edge))),
        ("endswith", Some((text, edge))) => Ok(Json::Bool(text.ends_with(edge))),
        ("split", Some((text, separator))) => {
            run.spend(text.len())?;
            Ok(split(text, separator))
        }
        ("index" | "rindex" | "indices", _) => {
            let found = indices(run, (name, input), value)?;
            Ok(match name {
                "index" => json!(found.first()),
                "rindex" => json!(found.last()),
                _ => json!(found),
            })
        }
        ("flatten", _) => {
            let depth = value.as_u64().and_then(|it| usize::try_from(it).ok());
            let depth = depth.ok_or_else(|| wrong(name, value))?;
            let mut flat = Vec::new();
            flatten(array(run, name, input)?, depth, &mut flat);
            Ok(Json::Array(flat))
        }
        ("nth", _) => {
            let found = part(input, value)?;
            run.copy(found)
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

fn range(run: &mut Run, (start, end): (&Json, &Json), by: f64) -> Outputs {
    let edge = |value: &Json| value.as_f64().ok_or_else(|| wrong("range", value));
    let (mut at, end) = (edge(start)?, edge(end)?);
    let mut made = Vec::new();
    while (by > 0.0 && at < end) || (by < 0.0 && at > end) {
        run.spend(1)?;
        made.push(number(at));
        at += by;
    }
    Ok(made)
}

fn range_by(
    run: &mut Run,
    (start, end, by): (&Expression, &Expression, &Expression),
    input: &Json,
) -> Outputs {
    run.each(start, input, |run, start| {
        run.each(end, input, |run, end| {
            run.each(by, input, |run, by| {
                let step = by.as_f64().ok_or_else(|| wrong("range", &by))?;
                range(run, (&start, &end), step)
            })
        })
    })
}

/// Returns where a part is in a text, or an item or a row of items in an array.
fn indices(run: &mut Run, (name, input): (&str, &Json), value: &Json) -> Result<Vec<usize>, Stop> {
    if let (Json::String(text), Json::String(part)) = (input, value) {
        run.spend(text.len())?;
        if part.is_empty() {
            return Ok(Vec::new());
        }
        let starts = text.char_indices().enumerate();
        let found = starts.filter(|(_, (at, _))| text[*at..].starts_with(part.as_str()));
        return Ok(found.map(|(idx, _)| idx).collect());
    }
    let items = array(run, name, input)?;
    let row = match value {
        Json::Array(row) => row.as_slice(),
        one => std::slice::from_ref(one),
    };
    run.spend(items.len().saturating_mul(row.len()))?;
    if row.is_empty() {
        return Ok(Vec::new());
    }
    let found = items.windows(row.len()).enumerate();
    let found =
        found.filter(|(_, window)| window.iter().zip(row).all(|it| compare(it.0, it.1).is_eq()));
    Ok(found.map(|(idx, _)| idx).collect())
}

fn recurse(
    run: &mut Run,
    (next, depth): (&Expression, usize),
    value: &Json,
    found: &mut Vec<Json>,
) -> Result<(), Stop> {
    let depth = depth.checked_sub(1).ok_or(Stop::Budget)?;
    found.push(run.copy(value)?);
    for value in run.outputs(next, value)? {
        recurse(run, (next, depth), &value, found)?;
    }
    Ok(())
}

/// Changes the parts of a value, and then the value itself.
fn walk(run: &mut Run, (change, depth): (&Expression, usize), value: &Json) -> Outputs {
    let depth = depth.checked_sub(1).ok_or(Stop::Budget)?;
    let changed = match run.copy(value)? {
        Json::Array(items) => {
            let mut changed = Vec::new();
            for item in items {
                changed.extend(walk(run, (change, depth), &item)?);
            }
            Json::Array(changed)
        }
        Json::Object(members) => {
            let mut changed = Map::new();
            for (key, value) in members {
                let value = walk(run, (change, depth), &value)?.into_iter().next();
                changed.extend(value.map(|value| (key, value)));
            }
            Json::Object(changed)
        }
        other => other,
    };
    run.outputs(change, &changed)
}

/// Repeats a change: `until` a condition holds, or `while` it does, with all values on the way.
fn repeated(
    run: &mut Run,
    is_until: bool,
    (condition, change): (&Expression, &Expression),
    input: &Json,
) -> Outputs {
    let mut value = run.copy(input)?;
    let mut found = Vec::new();
    loop {
        let is_met = run.outputs(condition, &value)?.first().is_some_and(is_true);
        if is_met == is_until {
            if is_until {
                found.push(value);
            }
            return Ok(found);
        }
        let next = run.outputs(change, &value)?.into_iter().next();
        if !is_until {
            found.push(value);
        }
        match next {
            Some(next) => value = next,
            None => return Ok(found),
        }
    }
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
        "skip" => run.each(one, input, |run, count| {
            let count = count.as_f64().unwrap_or(0.0).max(0.0) as usize;
            Ok(run.outputs(other, input)?.into_iter().skip(count).collect())
        }),
        "nth" => run.each(one, input, |run, at| {
            let at = at.as_u64().and_then(|at| usize::try_from(at).ok());
            let at = at.ok_or_else(|| Stop::error("`nth` takes a number from 0"))?;
            Ok(run
                .outputs(other, input)?
                .into_iter()
                .nth(at)
                .into_iter()
                .collect())
        }),
        "pow" => run.each(one, input, |run, base| {
            run.each(other, input, |_, power| {
                let base = base.as_f64().ok_or_else(|| wrong("pow", &base))?;
                let power = power.as_f64().ok_or_else(|| wrong("pow", &power))?;
                Ok(vec![number(base.powf(power))])
            })
        }),
        "until" | "while" => repeated(run, name == "until", (one, other), input),
        "range" => run.each(one, input, |run, start| {
            run.each(other, input, |run, end| range(run, (&start, &end), 1.0))
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
