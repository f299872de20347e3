//! What a case would have to expect so that a run meets it: the values that the run left, in the shape of the expectations
//! that it missed.

use std::collections::BTreeSet;

use flowstone_lang::value::Value;

use super::expected::{error_of, is_end};
use super::observed::{is_own, rows_of, unmet_tables, unmet_values};
use super::{Case, TestError, TestOutcome, expected, observed};
use crate::codec;
use crate::flow::name_of;

/// A new value of an expectation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Correction {
    /// The key in the case.
    pub key: &'static str,
    /// The value, encoded.
    pub value: String,
}

/// Tells whether a run has the status that its case expects.
pub fn ends_as_expected(outcome: &TestOutcome, case: &Case) -> bool {
    outcome.status == expected::status(case)
}

/// Returns the expectations that a run missed, with what it left instead. A case without any expectation gets the result. Whether
/// a run is expected to complete is never corrected, and neither is `:tool`.
///
/// # Errors
/// When an expectation is malformed.
pub fn corrections(outcome: &TestOutcome, case: &Case) -> Result<Vec<Correction>, TestError> {
    if !ends_as_expected(outcome, case) {
        return Ok(Vec::new());
    }
    let mut found = Vec::new();
    let is_silent = [
        &case.expect,
        &case.steps,
        &case.tables,
        &case.values,
        &case.tool,
    ]
    .iter()
    .all(|it| it.is_nil());
    if is_silent || !expected::end(outcome, case)?.is_empty() {
        found.extend(end(outcome, &case.expect).map(|value| ("expect", value)));
    }
    if !observed::steps(outcome, &case.steps)?.is_empty() {
        found.push(("steps", steps(outcome, &case.steps)));
    }
    let tables = unmet_tables(outcome, &case.tables)?;
    if !tables.is_empty() {
        let rows = |name: &str, wanted: &Value| rows(outcome, name, wanted);
        found.push(("tables", replaced(&case.tables, &tables, rows)));
    }
    let values = unmet_values(outcome, &case.values);
    if !values.is_empty() {
        let value = |name: &str, _: &Value| observed::value(outcome, name);
        found.push(("values", replaced(&case.values, &values, value)));
    }
    let encoded = found.into_iter().map(|(key, value)| {
        let value = codec::encode(&value).map_err(|error| TestError::BadCase(error.to_string()))?;
        Ok(Correction { key, value })
    });
    encoded.collect()
}

/// Returns the end in the shape of an expectation: the result, or a map of the status, and of the fields of the error that were
/// expected.
fn end(outcome: &TestOutcome, expect: &Value) -> Option<Value> {
    let found = codec::decode(&outcome.end).ok()?;
    let status = (
        Value::keyword("status"),
        Value::keyword(outcome.status.as_str()),
    );
    if outcome.status == "completed" {
        // These results would be read as something else.
        let is_ambiguous = found.is_nil() || is_end(&found);
        return Some(match is_ambiguous || is_end(expect) {
            true => Value::map([status, (Value::keyword("result"), found)]),
            false => found,
        });
    }
    let error = error_of(&found)?;
    let message = Value::from(error.text());
    let old = expect.get("error").cloned().unwrap_or(Value::Nil);
    let new = match old.as_map() {
        None => message,
        Some(map) => Value::map(map.iter().map(|(key, wanted)| {
            let value = match name_of(key).as_deref() {
                Some("code") => Value::from(error.code),
                Some("kind") => error.data.get("kind").cloned().unwrap_or(Value::Nil),
                Some("data") => picked(&error.data, wanted),
                Some("message") if error.text().contains(wanted.as_str().unwrap_or_default()) => {
                    wanted.clone()
                }
                _ => message.clone(),
            };
            (key.clone(), value)
        })),
    };
    Some(Value::map([status, (Value::keyword("error"), new)]))
}

/// Returns the entries of a map that another one names.
fn picked(map: &Value, wanted: &Value) -> Value {
    let keys = wanted.as_map().into_iter().flat_map(|map| map.iter());
    let found = |key: &Value| map.as_map().and_then(|map| map.get(key).cloned());
    Value::map(keys.map(|(key, _)| (key.clone(), found(key).unwrap_or(Value::Nil))))
}

/// Returns the ids of the steps in order, or the numbers of calls of those that were named.
fn steps(outcome: &TestOutcome, expected: &Value) -> Value {
    let Some(map) = expected.as_map() else {
        let own = outcome.steps.iter().filter(|step| is_own(&step.path));
        return Value::vector(own.map(|step| Value::keyword(&step.id)));
    };
    Value::map(map.iter().map(|(id, _)| {
        let name = name_of(id).unwrap_or_default();
        let calls = observed::calls(outcome, &name);
        (
            id.clone(),
            Value::Int(i64::try_from(calls).unwrap_or(i64::MAX)),
        )
    }))
}

/// Returns a map in which the entries with some names have new values.
fn replaced(map: &Value, names: &[String], value: impl Fn(&str, &Value) -> Value) -> Value {
    let entries = map.as_map().into_iter().flat_map(|map| map.iter());
    Value::map(entries.map(|(key, old)| {
        let name = name_of(key).unwrap_or_default();
        let new = match names.iter().any(|it| **it == *name) {
            true => value(&name, old),
            false => old.clone(),
        };
        (key.clone(), new)
    }))
}

/// Returns the rows of a table with the columns that the expected rows have; with all columns if none is expected.
fn rows(outcome: &TestOutcome, table: &str, wanted: &Value) -> Value {
    let wanted = wanted.as_vector();
    let maps = wanted
        .iter()
        .flat_map(|rows| rows.iter())
        .filter_map(Value::as_map);
    let columns: BTreeSet<String> = maps
        .flat_map(|row| row.iter().filter_map(|(key, _)| name_of(key)))
        .map(|name| name.to_string())
        .collect();
    let found = outcome
        .rows
        .get(table)
        .map(|text| rows_of(text))
        .unwrap_or_default();
    let found = found.iter().map(|row| {
        let entries = row.as_map().into_iter().flat_map(|row| row.iter());
        let named = entries.filter_map(|(key, value)| Some((name_of(key)?.to_string(), value)));
        let kept = named.filter(|(name, _)| columns.is_empty() || columns.contains(name));
        Value::map(kept.map(|(name, value)| (Value::keyword(&name), value.clone())))
    });
    Value::vector(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crash_test::CalledStep;

    fn case(text: &str) -> Case {
        Case::of_value(&codec::decode(text).expect("data")).expect("a case")
    }

    fn outcome() -> TestOutcome {
        let step = |id: &str, path: &str| CalledStep {
            id: id.to_owned(),
            path: path.to_owned(),
            kind: "function".to_owned(),
            millis: None,
        };
        TestOutcome {
            status: "completed".to_owned(),
            end: "{:n 2}".to_owned(),
            steps: vec![step("a", "a"), step("b", "b"), step("b", "b#2")],
            rows: [(
                "orders".to_owned(),
                "[{:id \"o-1\" :amount 5 :at 0}]".to_owned(),
            )]
            .into(),
            contents: [("kv last".to_owned(), "\"o-1\"".to_owned())].into(),
            ..TestOutcome::default()
        }
    }

    fn corrected(text: &str) -> String {
        let found = corrections(&outcome(), &case(text)).expect("well-formed");
        let lines = found.iter().map(|it| format!(":{} {}", it.key, it.value));
        lines.collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn a_missed_expectation_is_replaced_by_what_was_found() {
        assert_eq!(corrected("{}"), ":expect {:n 2}");
        assert_eq!(corrected("{:expect {:n 1}}"), ":expect {:n 2}");
        assert_eq!(corrected("{:expect {:n 2}}"), "");
        assert_eq!(
            corrected("{:expect {:status :completed :result 1}}"),
            ":expect {:status :completed :result {:n 2}}"
        );
        assert_eq!(corrected("{:steps [:a :b :b]}"), "");
        assert_eq!(corrected("{:steps [:a]}"), ":steps [:a :b :b]");
        assert_eq!(corrected("{:steps {:a 1 :b 1}}"), ":steps {:a 1 :b 2}");
        assert_eq!(
            corrected("{:tables {:orders [{:amount 4}]}}"),
            ":tables {:orders [{:amount 5}]}"
        );
        assert_eq!(
            corrected("{:tables {:none [] :orders []}}"),
            ":tables {:none [] :orders [{:id \"o-1\" :amount 5 :at 0}]}"
        );
        assert_eq!(
            corrected("{:values {\"last\" nil \"first\" nil}}"),
            ":values {\"last\" \"o-1\" \"first\" nil}"
        );
    }

    #[test]
    fn a_result_that_would_be_read_differently_is_wrapped() {
        let ends = [
            ("nil", ":expect {:status :completed :result nil}"),
            (
                "{:status :failed}",
                ":expect {:status :completed :result {:status :failed}}",
            ),
        ];
        for (end, expected) in ends {
            let outcome = TestOutcome {
                end: end.to_owned(),
                ..outcome()
            };
            let found = corrections(&outcome, &case("{:expect 1}")).expect("well-formed");
            assert_eq!(format!(":expect {}", found[0].value), expected);
        }
    }

    #[test]
    fn a_failure_never_becomes_what_is_expected() {
        let outcome = TestOutcome {
            status: "failed".to_owned(),
            ..outcome()
        };
        let found = corrections(&outcome, &case("{:expect 1 :steps [:x]}")).expect("well-formed");
        assert_eq!(found, []);
    }
}
