//! The outcome of a test: as JSON between processes, as text for people.

use flowstone_engine::codec;
use flowstone_engine::crash_test::{self, Case, TestOutcome, Unused, Uses};
use flowstone_engine::json::to_exact_json as value_json;
use serde_json::json;

use super::super::output;
use super::super::report::Report;
use super::super::table::{Column, table};
use super::crash::Crashes;

/// Returns the outcome of a test as JSON.
pub fn to_json(outcome: &TestOutcome) -> serde_json::Value {
    json!({
        "status": outcome.status,
        "end": outcome.end,
        "contents": outcome.contents,
        "in_doubt": outcome.in_doubt,
        "points": outcome.points,
        "commits": outcome.commits,
    })
}

/// Parses the output of [`to_json`].
pub fn of_json(bytes: &[u8]) -> Option<TestOutcome> {
    let json: serde_json::Value = serde_json::from_slice(bytes).ok()?;
    let text = |value: &serde_json::Value| value.as_str().map(str::to_owned);
    let contents = json.get("contents")?.as_object()?.iter();
    Some(TestOutcome {
        status: text(json.get("status")?)?,
        end: text(json.get("end")?)?,
        contents: contents
            .map(|(name, value)| Some((name.clone(), text(value)?)))
            .collect::<Option<_>>()?,
        in_doubt: json
            .get("in_doubt")?
            .as_array()?
            .iter()
            .map(text)
            .collect::<Option<_>>()?,
        points: json.get("points")?.as_u64()?,
        commits: json.get("commits")?.as_u64()?,
        // What crashes are not compared by.
        ..TestOutcome::default()
    })
}

/// Returns the end of a run as JSON.
pub fn end_json(outcome: &TestOutcome) -> serde_json::Value {
    match codec::decode(&outcome.end) {
        Ok(value) => value_json(&value).unwrap_or_default(),
        Err(_) => serde_json::Value::Null,
    }
}

/// Compares the end with the case's expectation; without one, the flow must complete.
pub fn unexpected(outcome: &TestOutcome, case: &Case) -> Result<Vec<Report>, Report> {
    let problems = crash_test::unexpected(outcome, case);
    let problems = problems.map_err(|error| Report::error(error.code(), error.to_string()))?;
    Ok(problems.into_iter().map(problem).collect())
}

/// A finding about the end of a test, or about a crash.
pub fn problem(message: String) -> Report {
    Report::error("E0928", message)
}

/// Reports the mocks and answers of a case that no step used. If the run did not end as expected, reports only those
/// that are probably misspelt, because the run may not have reached the others.
pub fn unused(case: &Case, uses: &Uses, is_as_expected: bool) -> Vec<Report> {
    let unused = crash_test::unused(case, uses).into_iter();
    let unused = unused.filter(|entry| is_as_expected || entry.near.is_some());
    let report = |entry: Unused| Report::error(Unused::CODE, &*entry.message).hint(entry.hint());
    unused.map(report).collect()
}

/// Tells whether a test passed.
pub fn verdict(problems: &[Report]) -> String {
    match problems.len() {
        0 => "passed".to_owned(),
        1 => "1 problem".to_owned(),
        count => format!("{count} problems"),
    }
}

/// Prints the verdict: a table on standard output, findings on standard error.
pub fn show(outcome: &TestOutcome, crashes: Option<&Crashes>, problems: &[Report]) {
    let mut rows = vec![
        ("status", outcome.status.clone()),
        ("replayed", "same".to_owned()),
    ];
    if let Some(crashes) = crashes {
        rows.extend([
            ("commits", outcome.commits.to_string()),
            ("crash points", outcome.points.to_string()),
            ("killed", crashes.killed.to_string()),
            ("resumed to the same end", crashes.resumed.to_string()),
            ("reads repeated", crashes.looked_again.to_string()),
            ("writes repeated", crashes.repeated.to_string()),
            ("asked in doubt", crashes.in_doubt.to_string()),
        ]);
    }
    rows.push(("verdict", verdict(problems)));
    let rows = rows
        .into_iter()
        .map(|(what, value)| vec![what.to_owned(), value]);
    output::data(&table(&[Column::Whole("test"), Column::Whole("")], rows));
    for problem in problems {
        output::report(problem);
    }
}
