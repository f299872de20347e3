//! A case's expectations of what the run did: its steps, the rows of tables, the values of keys, the tools of agents.

use flowstone_lang::value::Value;

use super::{Case, TestError, TestOutcome};
use crate::codec;
use crate::flow::name_of;
use crate::text::brief;

/// Compares what a run did with its case. Returns the differences.
///
/// # Errors
/// When an expectation is malformed.
pub(super) fn unexpected(outcome: &TestOutcome, case: &Case) -> Result<Vec<String>, TestError> {
    let mut problems = steps(outcome, &case.steps)?;
    problems.extend(tables(outcome, &case.tables)?);
    problems.extend(values(outcome, &case.values));
    problems.extend(tool(outcome, &case.tool)?);
    Ok(problems)
}

fn bad<T>(message: String) -> Result<T, TestError> {
    Err(TestError::BadCase(message))
}

/// A vector has the ids of all steps in the order of their calls; a map has the number of calls of those that it names.
pub(super) fn steps(outcome: &TestOutcome, expected: &Value) -> Result<Vec<String>, TestError> {
    let own: Vec<&str> = outcome
        .steps
        .iter()
        .filter(|step| is_own(&step.path))
        .map(|step| step.id.as_str())
        .collect();
    match expected {
        Value::Nil => Ok(Vec::new()),
        Value::Vector(ids) => {
            let mut wanted = Vec::new();
            for id in ids.iter() {
                match name_of(id) {
                    Some(id) => wanted.push(id.to_string()),
                    None => return bad(format!("`:steps` has ids of steps, not {}", id.kind())),
                }
            }
            Ok(match own == wanted {
                true => Vec::new(),
                false => vec![format!(
                    "the steps are {}, expected {}",
                    listed(own.iter().copied()),
                    listed(wanted.iter().map(String::as_str))
                )],
            })
        }
        Value::Map(map) => {
            let mut problems = Vec::new();
            for (id, count) in map.iter() {
                let name = name_of(id).unwrap_or_default();
                let Some(wanted) = count.as_int() else {
                    return bad(format!(
                        "`:steps` has the number of calls for `{id}`, not {}",
                        count.kind()
                    ));
                };
                let found = calls(outcome, &name);
                if i64::try_from(found) != Ok(wanted) {
                    problems.push(format!(
                        "the step `:{name}` was called {found} times, expected {wanted}"
                    ));
                }
            }
            Ok(problems)
        }
        other => bad(format!(
            "`:steps` is a vector of ids, or a map of ids and numbers of calls, not {}",
            other.kind()
        )),
    }
}

/// Returns the number of calls of a step, by its id or path.
pub(super) fn calls(outcome: &TestOutcome, name: &str) -> usize {
    let calls = outcome.steps.iter();
    let calls = calls.filter(|step| step.path == *name || step.id == *name);
    calls.count()
}

/// Tells whether a step was called by the flow itself, and not by an agent or inside of another step.
pub(super) fn is_own(path: &str) -> bool {
    !path.contains('/')
}

fn listed<'a>(ids: impl Iterator<Item = &'a str>) -> String {
    let ids: Vec<String> = ids.map(|id| format!(":{id}")).collect();
    format!("[{}]", ids.join(" "))
}

fn tables(outcome: &TestOutcome, expected: &Value) -> Result<Vec<String>, TestError> {
    let mut problems = Vec::new();
    for (name, wanted) in expected.as_map().into_iter().flat_map(|map| map.iter()) {
        let name = name_of(name).unwrap_or_default();
        problems.extend(table(outcome, &name, wanted)?);
    }
    Ok(problems)
}

/// Returns the names of the tables whose rows are not as expected.
pub(super) fn unmet_tables(
    outcome: &TestOutcome,
    expected: &Value,
) -> Result<Vec<String>, TestError> {
    let mut unmet = Vec::new();
    for (name, wanted) in expected.as_map().into_iter().flat_map(|map| map.iter()) {
        let name = name_of(name).unwrap_or_default();
        if table(outcome, &name, wanted)?.is_some() {
            unmet.push(name.to_string());
        }
    }
    Ok(unmet)
}

/// Each expected row must be there, with the columns that it names, and no others may.
fn table(outcome: &TestOutcome, name: &str, wanted: &Value) -> Result<Option<String>, TestError> {
    let Value::Vector(wanted) = wanted else {
        return bad(format!(
            "the expected rows of the table `{name}` are a vector of maps, not {}",
            wanted.kind()
        ));
    };
    let mut found = match outcome.rows.get(name) {
        Some(text) => rows_of(text),
        None => Vec::new(),
    };
    let count = found.len();
    let mut missing = Vec::new();
    for row in wanted.iter() {
        if row.as_map().is_none() {
            return bad(format!(
                "a row of the table `{name}` is a map, not {}",
                row.kind()
            ));
        }
        match found.iter().position(|it| has_entries(it, row)) {
            Some(at) => {
                found.swap_remove(at);
            }
            None => missing.push(brief(row)),
        }
    }
    Ok(if !missing.is_empty() {
        Some(format!(
            "the table `{name}` has no row {}",
            missing.join(", ")
        ))
    } else if !found.is_empty() {
        Some(format!(
            "the table `{name}` has {count} rows, expected {}; one more is {}",
            wanted.iter().count(),
            brief(&found[0])
        ))
    } else {
        None
    })
}

pub(super) fn rows_of(text: &str) -> Vec<Value> {
    match codec::decode(text) {
        Ok(Value::Vector(rows)) => rows.iter().cloned().collect(),
        _ => Vec::new(),
    }
}

/// Tells whether a row has all entries of another; keys may be keywords or strings in either.
fn has_entries(row: &Value, wanted: &Value) -> bool {
    let wanted = wanted.as_map().into_iter().flat_map(|map| map.iter());
    let mut wanted = wanted.map(|(key, value)| (name_of(key).unwrap_or_default(), value));
    wanted.all(|(key, value)| {
        let entries = row.as_map().into_iter().flat_map(|map| map.iter());
        let mut entries = entries.filter(|(name, _)| name_of(name).is_some_and(|it| it == key));
        entries.next().map(|(_, found)| found) == Some(value)
    })
}

fn values(outcome: &TestOutcome, expected: &Value) -> Vec<String> {
    let expected = expected.as_map().into_iter().flat_map(|map| map.iter());
    let problems = expected.filter_map(|(key, wanted)| {
        let name = name_of(key).unwrap_or_default();
        let found = value(outcome, &name);
        (found != *wanted).then(|| {
            format!(
                "the value of the key `{name}` is {}, expected {}",
                brief(&found),
                brief(wanted)
            )
        })
    });
    problems.collect()
}

/// Returns the keys whose values are not as expected.
pub(super) fn unmet_values(outcome: &TestOutcome, expected: &Value) -> Vec<String> {
    let expected = expected.as_map().into_iter().flat_map(|map| map.iter());
    let named = expected.map(|(key, wanted)| (name_of(key).unwrap_or_default(), wanted));
    named
        .filter(|(name, wanted)| value(outcome, name) != **wanted)
        .map(|(name, _)| name.to_string())
        .collect()
}

/// Returns the value of a key; nil if it has none.
pub(super) fn value(outcome: &TestOutcome, key: &str) -> Value {
    let found = outcome.contents.get(&format!("kv {key}"));
    found.map_or(Value::Nil, |text| codec::decode(text).unwrap_or(Value::Nil))
}

fn tool(outcome: &TestOutcome, expected: &Value) -> Result<Vec<String>, TestError> {
    if expected.is_nil() {
        return Ok(Vec::new());
    }
    let Some(wanted) = name_of(expected) else {
        return bad(format!(
            "`:tool` is the name of a tool, not {}",
            expected.kind()
        ));
    };
    let mut calls = outcome.tools.iter().filter(|(name, _)| **name == *wanted);
    let problem = match calls.next_back() {
        Some((_, true)) => return Ok(Vec::new()),
        Some((_, false)) => format!("the tool `{wanted}` was called, and has not returned"),
        None if outcome.tools.is_empty() => {
            format!("the tool `{wanted}` was never called: no agent called a tool")
        }
        None => {
            let names: Vec<&str> = outcome.tools.iter().map(|(name, _)| &**name).collect();
            format!(
                "the tool `{wanted}` was never called; called were {}",
                names.join(", ")
            )
        }
    };
    Ok(vec![problem])
}
