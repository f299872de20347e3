//! Paths: where the outputs of an expression are in its input, and functions and assignments that read and change values there.

use serde_json::{Map, Value as Json, json};

use super::evaluate::{Outputs, Run, Stop, is_true, kind, part};
use super::order::compare;
use super::parse::{Expression, Operator};

/// The functions, each with the number of its arguments.
pub(super) const KNOWN: &[(&str, usize)] = &[
    ("del", 1),
    ("delpaths", 1),
    ("getpath", 1),
    ("leaf_paths", 0),
    ("path", 1),
    ("paths", 0),
    ("paths", 1),
    ("pick", 1),
    ("setpath", 2),
];
/// Maximum length of a path: values are nested as deep.
const LONGEST: usize = 200;

/// A place in a value: keys and numbers, and what is there.
type Place = (Vec<Json>, Json);

/// Calls a function that is known.
pub(super) fn call(run: &mut Run, name: &str, args: &[Expression], input: &Json) -> Outputs {
    match (name, args) {
        ("paths" | "leaf_paths", _) => all(run, args.first(), name == "leaf_paths", input),
        ("path", [of]) => {
            let found = all_places(run, of, input)?;
            Ok(found.into_iter().map(|it| Json::Array(it.0)).collect())
        }
        ("del", [of]) => {
            let mut value = run.copy(input)?;
            let found = all_places(run, of, input)?;
            delete(&mut value, found.into_iter().map(|it| it.0).collect())?;
            Ok(vec![value])
        }
        ("pick", [of]) => {
            let found = all_places(run, of, input)?;
            let mut picked = Json::Null;
            for (path, value) in found {
                set(run, &mut picked, &path, value)?;
            }
            Ok(vec![picked])
        }
        ("getpath", [of]) => run.each(of, input, |run, path| {
            let found = get(input, &keys_of(path)?)?;
            Ok(vec![run.copy(&found)?])
        }),
        ("delpaths", [of]) => run.each(of, input, |run, paths| {
            let Json::Array(paths) = paths else {
                return Err(Stop::error("`delpaths` takes an array of paths"));
            };
            let paths: Result<Vec<_>, Stop> = paths.into_iter().map(keys_of).collect();
            let mut value = run.copy(input)?;
            delete(&mut value, paths?)?;
            Ok(vec![value])
        }),
        (_, [of, new, ..]) => run.each(of, input, |run, path| {
            let path = keys_of(path)?;
            run.each(new, input, |run, new| {
                let mut value = run.copy(input)?;
                set(run, &mut value, &path, new)?;
                Ok(vec![value])
            })
        }),
        _ => Ok(Vec::new()),
    }
}

fn keys_of(path: Json) -> Result<Vec<Json>, Stop> {
    match path {
        Json::Array(keys) if keys.len() > LONGEST => Err(Stop::Budget),
        Json::Array(keys) => Ok(keys),
        other => Err(Stop::error(format!("{} is not a path", kind(&other)))),
    }
}

/// Returns the paths of all values below the input, or of those for which a filter gives true.
fn all(run: &mut Run, filter: Option<&Expression>, is_leaf: bool, input: &Json) -> Outputs {
    let found = all_places(run, &Expression::Descend, input)?;
    let mut paths = Vec::new();
    for (path, value) in found.into_iter().skip(1) {
        let is_wanted = match filter {
            Some(filter) => run.outputs(filter, &value)?.iter().any(is_true),
            None => !is_leaf || !(value.is_array() || value.is_object()),
        };
        if is_wanted {
            paths.push(Json::Array(path));
        }
    }
    Ok(paths)
}

/// Changes the places of an expression, as `=`, `|=` and `+=` do.
pub(super) fn assign(
    run: &mut Run,
    operator: Assignment,
    (of, by): (&Expression, &Expression),
    input: &Json,
) -> Outputs {
    let found = all_places(run, of, input)?;
    let paths: Vec<Vec<Json>> = found.into_iter().map(|it| it.0).collect();
    if operator == Assignment::Update {
        return updated(run, paths, input, |run, old| {
            Ok(run.outputs(by, &old)?.into_iter().next())
        });
    }
    run.each(by, input, |run, value| {
        let paths = paths.clone();
        updated(run, paths, input, |run, old| match operator {
            Assignment::Calculate(operator) => run.combine(operator, &old, &value).map(Some),
            Assignment::Otherwise if is_true(&old) => Ok(Some(old)),
            _ => Ok(Some(run.copy(&value)?)),
        })
    })
}

/// How an assignment makes the new values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Assignment {
    Set,
    /// By a filter of the old value.
    Update,
    /// By an operator on the old value and another.
    Calculate(Operator),
    /// Only where the old value is null or false.
    Otherwise,
}

fn updated(
    run: &mut Run,
    paths: Vec<Vec<Json>>,
    input: &Json,
    mut new: impl FnMut(&mut Run, Json) -> Result<Option<Json>, Stop>,
) -> Outputs {
    let mut value = run.copy(input)?;
    let mut gone = Vec::new();
    for path in paths {
        let old = get(&value, &path)?;
        match new(run, old)? {
            Some(new) => set(run, &mut value, &path, new)?,
            None => gone.push(path),
        }
    }
    delete(&mut value, gone)?;
    Ok(vec![value])
}

/// Returns the places of the outputs of an expression.
fn all_places(run: &mut Run, expression: &Expression, input: &Json) -> Result<Vec<Place>, Stop> {
    let input = run.copy(input)?;
    places(run, expression, (Vec::new(), input))
}

/// Returns the places of the outputs of an expression, for a place.
fn places(
    run: &mut Run,
    expression: &Expression,
    (path, value): Place,
) -> Result<Vec<Place>, Stop> {
    run.spend(path.len() + 1)?;
    if path.len() > LONGEST {
        return Err(Stop::Budget);
    }
    match expression {
        Expression::Identity => Ok(vec![(path, value)]),
        Expression::Descend => {
            let mut found = Vec::new();
            below(run, path, value, &mut found)?;
            Ok(found)
        }
        Expression::At(of, key) => {
            let keys = run.outputs(key, &value)?;
            let mut found = Vec::new();
            for (path, value) in places(run, of, (path, value))? {
                for key in &keys {
                    let at = run.copy(part(&value, key)?)?;
                    found.push((longer(&path, key.clone()), at));
                }
            }
            Ok(found)
        }
        Expression::Each(of) => {
            let mut found = Vec::new();
            for (path, value) in places(run, of, (path, value))? {
                for (key, value) in parts(value)? {
                    run.spend(path.len() + 1)?;
                    found.push((longer(&path, key), value));
                }
            }
            Ok(found)
        }
        Expression::Try(of, None) => match places(run, of, (path, value)) {
            Err(Stop::Error(_)) => Ok(Vec::new()),
            found => found,
        },
        Expression::If(cases, otherwise) => {
            for (condition, then) in cases {
                if run.outputs(condition, &value)?.iter().any(is_true) {
                    return places(run, then, (path, value));
                }
            }
            match otherwise {
                Some(otherwise) => places(run, otherwise, (path, value)),
                None => Ok(vec![(path, value)]),
            }
        }
        Expression::Binary(operator, left, right) => {
            of_binary(run, *operator, (left, right), (path, value))
        }
        Expression::Call(name, args) => of_call(run, (name, args), (path, value)),
        _ => Err(Stop::error("this is not a path that can be changed")),
    }
}

fn of_binary(
    run: &mut Run,
    operator: Operator,
    (left, right): (&Expression, &Expression),
    place: Place,
) -> Result<Vec<Place>, Stop> {
    match operator {
        Operator::Pipe => {
            let mut found = Vec::new();
            for place in places(run, left, place)? {
                found.extend(places(run, right, place)?);
            }
            Ok(found)
        }
        Operator::Comma => {
            let mut found = places(run, left, place.clone())?;
            found.extend(places(run, right, place)?);
            Ok(found)
        }
        Operator::Otherwise => {
            let mut found = match places(run, left, place.clone()) {
                Err(Stop::Error(_)) => Vec::new(),
                found => found?,
            };
            found.retain(|it| is_true(&it.1));
            match found.is_empty() {
                true => places(run, right, place),
                false => Ok(found),
            }
        }
        _ => Err(Stop::error("this is not a path that can be changed")),
    }
}

fn of_call(
    run: &mut Run,
    (name, args): (&str, &[Expression]),
    (path, value): Place,
) -> Result<Vec<Place>, Stop> {
    match (name, args) {
        ("empty", []) => Ok(Vec::new()),
        ("recurse", []) => places(run, &Expression::Descend, (path, value)),
        ("select", [condition]) => {
            let is_kept = run.outputs(condition, &value)?.iter().any(is_true);
            Ok(is_kept.then_some((path, value)).into_iter().collect())
        }
        ("first", [of]) => Ok(places(run, of, (path, value))?
            .into_iter()
            .take(1)
            .collect()),
        ("last", [of]) => Ok(places(run, of, (path, value))?.pop().into_iter().collect()),
        ("first" | "last", []) => {
            let key = json!(if name == "first" { 0 } else { -1 });
            let at = run.copy(part(&value, &key)?)?;
            Ok(vec![(longer(&path, key), at)])
        }
        ("getpath", [of]) => {
            let mut found = Vec::new();
            for keys in run.outputs(of, &value)? {
                let keys = keys_of(keys)?;
                let at = get(&value, &keys)?;
                found.push(([path.clone(), keys].concat(), at));
            }
            Ok(found)
        }
        // `arrays`, `strings` and the like keep a value or leave it out.
        (_, []) => {
            let kept = run.outputs(&Expression::Call(name.to_owned(), Vec::new()), &value)?;
            match kept.first() {
                None => Ok(Vec::new()),
                Some(same) if *same == value => Ok(vec![(path, value)]),
                Some(_) => Err(Stop::error("this is not a path that can be changed")),
            }
        }
        _ => Err(Stop::error("this is not a path that can be changed")),
    }
}

fn longer(path: &[Json], key: Json) -> Vec<Json> {
    let mut longer = path.to_vec();
    longer.push(key);
    longer
}

fn below(run: &mut Run, path: Vec<Json>, value: Json, found: &mut Vec<Place>) -> Result<(), Stop> {
    run.spend(path.len() + 1)?;
    if path.len() > LONGEST {
        return Err(Stop::Budget);
    }
    let inner = match &value {
        Json::Array(_) | Json::Object(_) => parts(run.copy(&value)?)?,
        _ => Vec::new(),
    };
    found.push((path.clone(), value));
    for (key, value) in inner {
        below(run, longer(&path, key), value, found)?;
    }
    Ok(())
}

/// Returns the parts of a value with their keys.
fn parts(value: Json) -> Result<Vec<(Json, Json)>, Stop> {
    match value {
        Json::Array(items) => Ok(items
            .into_iter()
            .enumerate()
            .map(|(at, item)| (json!(at), item))
            .collect()),
        Json::Object(members) => Ok(members
            .into_iter()
            .map(|(key, value)| (Json::String(key), value))
            .collect()),
        other => Err(Stop::error(format!("cannot iterate over {}", kind(&other)))),
    }
}

fn get(value: &Json, path: &[Json]) -> Result<Json, Stop> {
    let mut at = value;
    for key in path {
        at = part(at, key)?;
    }
    Ok(at.clone())
}

fn set(run: &mut Run, value: &mut Json, path: &[Json], new: Json) -> Result<(), Stop> {
    if path.len() > LONGEST {
        return Err(Stop::Budget);
    }
    let Some((key, rest)) = path.split_first() else {
        *value = new;
        return Ok(());
    };
    match (&mut *value, key) {
        (Json::Null, Json::String(_)) => *value = Json::Object(Map::new()),
        (Json::Null, Json::Number(_)) => *value = Json::Array(Vec::new()),
        _ => {}
    }
    match (value, key) {
        (Json::Object(members), Json::String(name)) => {
            let inner = members.entry(name.clone()).or_insert(Json::Null);
            set(run, inner, rest, new)
        }
        (Json::Array(items), Json::Number(at)) => {
            let at = at.as_f64().unwrap_or(0.0).floor();
            let at = if at < 0.0 {
                at + items.len() as f64
            } else {
                at
            };
            if at < 0.0 {
                return Err(Stop::error("the number is before the first item"));
            }
            let at = at as usize;
            if at >= items.len() {
                run.spend(at - items.len() + 1)?;
                items.resize(at + 1, Json::Null);
            }
            match items.get_mut(at) {
                Some(inner) => set(run, inner, rest, new),
                None => Ok(()),
            }
        }
        (value, key) => Err(Stop::error(format!(
            "cannot index {} with {key}",
            kind(value)
        ))),
    }
}

/// Removes places, the last first, so that the numbers of the others stay right.
fn delete(value: &mut Json, mut paths: Vec<Vec<Json>>) -> Result<(), Stop> {
    paths.sort_by(|one, other| compare(&json!(other), &json!(one)));
    paths.dedup();
    paths.iter().try_for_each(|path| remove(value, path))
}

fn index(length: usize, at: Option<f64>) -> Option<usize> {
    let at = at?.floor();
    let at = if at < 0.0 { at + length as f64 } else { at };
    (at >= 0.0 && at < length as f64).then_some(at as usize)
}

fn remove(value: &mut Json, path: &[Json]) -> Result<(), Stop> {
    let Some((key, rest)) = path.split_first() else {
        *value = Json::Null;
        return Ok(());
    };
    match (value, key) {
        (Json::Null, _) => Ok(()),
        (Json::Object(members), Json::String(name)) if rest.is_empty() => {
            members.shift_remove(name);
            Ok(())
        }
        (Json::Object(members), Json::String(name)) => match members.get_mut(name) {
            Some(inner) => remove(inner, rest),
            None => Ok(()),
        },
        (Json::Array(items), Json::Number(number)) => {
            let Some(idx) = index(items.len(), number.as_f64()) else {
                return Ok(());
            };
            if rest.is_empty() {
                items.remove(idx);
                return Ok(());
            }
            items
                .get_mut(idx)
                .map_or(Ok(()), |inner| remove(inner, rest))
        }
        (value, key) => Err(Stop::error(format!(
            "cannot delete {key} of {}",
            kind(value)
        ))),
    }
}
