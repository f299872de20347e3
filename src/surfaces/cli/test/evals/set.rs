//! The file of an evaluation set: `{:flow "sort.edn" :dataset [...] :scorers [...] :repeat 3}`.

use std::path::{Path, PathBuf};

use flowstone_engine::crash_test::Case;
use flowstone_flow::flow::name_of;
use flowstone_lang::value::Value;

use super::super::super::input;
use super::super::super::report::Report;
use super::super::flow::of_test_error;
use super::MALFORMED;

/// The keys of a set.
const KEYS: &[&str] = &[
    "answers", "dataset", "flow", "live", "mock", "repeat", "replay", "scorers",
];
/// The keys of a case of the dataset.
const CASE: &[&str] = &["answers", "expect", "input", "invocation", "mock", "name"];
/// Maximum number of runs of one case.
const REPEATS: i64 = 1_000;

/// An evaluation set.
#[derive(Debug)]
pub struct Set {
    pub flow: PathBuf,
    pub repeat: usize,
    /// The folder with recorded answers.
    pub replay: Option<PathBuf>,
    /// The names of the cases.
    pub names: Vec<String>,
    /// The cases, as they are written.
    cases: Vec<Value>,
    /// The scorers, as they are written: maps.
    pub scorers: Vec<Value>,
    mock: Value,
    answers: Value,
    live: bool,
}

/// Reports that a set is malformed.
pub fn malformed(message: impl Into<String>) -> Report {
    Report::error(MALFORMED, message.into())
}

impl Set {
    /// Reads a set. Paths in it are relative to its folder.
    ///
    /// # Errors
    /// When the file cannot be read or is malformed.
    pub fn read(file: &Path) -> Result<Set, Report> {
        let value = input::read(&format!("@{}", file.display()), "evaluation set")?;
        let read = Set::of(file, &value);
        read.map_err(|mut report| {
            if report.code == MALFORMED {
                report.message = format!("{}: {}", file.display(), report.message);
            }
            report
        })
    }

    fn of(file: &Path, value: &Value) -> Result<Set, Report> {
        known("an evaluation set", value, KEYS)?;
        let beside = |path: &str| file.parent().unwrap_or(Path::new("")).join(path);
        let Some(flow) = value.get("flow").and_then(Value::as_str) else {
            return Err(malformed(
                "`:flow` is the path of the flow file to evaluate",
            ));
        };
        let repeat = match value.get("repeat") {
            None => 1,
            Some(Value::Int(times @ 1..=REPEATS)) => usize::try_from(*times).unwrap_or(1),
            Some(_) => {
                let message = format!("`:repeat` is a number of runs from 1 to {REPEATS}");
                return Err(malformed(message));
            }
        };
        let cases = match value.get("dataset") {
            Some(Value::Vector(cases)) => cases.iter().cloned().collect(),
            Some(Value::Text(path)) => input::read_list(&beside(path))?,
            _ => {
                return Err(malformed(
                    "`:dataset` is a vector of cases, or the path of a file with them (EDN, JSON, or one a line)",
                ));
            }
        };
        if cases.is_empty() {
            return Err(malformed("`:dataset` has no cases"));
        }
        let mut names = Vec::new();
        for (idx, case) in cases.iter().enumerate() {
            known("a case of the dataset", case, CASE)?;
            let name = case.get("name").and_then(name_of);
            names.push(name.map_or_else(|| format!("case {}", idx + 1), |name| name.to_string()));
        }
        let scorers = match value.get("scorers") {
            Some(Value::Vector(scorers)) if scorers.iter().next().is_some() => {
                scorers.iter().cloned().collect()
            }
            _ => {
                return Err(malformed("`:scorers` is a vector with at least one scorer")
                    .hint("as in :scorers [{:type :exact}]"));
            }
        };
        let part = |key: &str| value.get(key).cloned().unwrap_or(Value::Nil);
        Ok(Set {
            flow: beside(flow),
            repeat,
            replay: value.get("replay").and_then(Value::as_str).map(beside),
            names,
            cases,
            scorers,
            mock: part("mock"),
            answers: part("answers"),
            live: part("live") == Value::Bool(true),
        })
    }

    /// Returns a case, with what the set has for all.
    ///
    /// # Errors
    /// When it is malformed.
    pub fn case(&self, idx: usize) -> Result<Case, Report> {
        let written = self.cases.get(idx).cloned().unwrap_or(Value::Nil);
        let entries = written.as_map().into_iter().flat_map(|map| map.iter());
        let entries = entries.filter(|(key, _)| name_of(key).as_deref() != Some("name"));
        let whole = Value::map(entries.map(|(key, value)| (key.clone(), value.clone())));
        let mut case = Case::of_value(&whole).map_err(|error| of_test_error(&error))?;
        let own = std::mem::replace(&mut case.mock, self.mock.clone());
        if !own.is_nil() {
            case.add_mocks(&own)
                .map_err(|error| of_test_error(&error))?;
        }
        let own = std::mem::replace(&mut case.answers, self.answers.clone());
        for (key, answer) in own.as_map().into_iter().flat_map(|map| map.iter()) {
            case.add_answer(&name_of(key).unwrap_or_default(), answer.clone());
        }
        case.live = self.live;
        Ok(case)
    }

    /// Returns the value of a key of a case as it is written: `input` or `expect`.
    pub fn written(&self, idx: usize, key: &str) -> Value {
        let case = self.cases.get(idx).and_then(|case| case.get(key));
        case.cloned().unwrap_or(Value::Nil)
    }
}

/// Checks that a value is a map with known keys only.
pub fn known(what: &str, value: &Value, keys: &[&str]) -> Result<(), Report> {
    let Some(map) = value.as_map() else {
        return Err(malformed(format!("{what} is a map, not {}", value.kind())));
    };
    for (key, _) in map.iter() {
        let name = name_of(key).unwrap_or_default();
        if !keys.contains(&&*name) {
            let report = malformed(format!("{what} has no `:{name}`"));
            return Err(
                match flowstone_engine::diagnostic::nearest(&name, keys.iter().copied()) {
                    Some(near) => report.hint(format!("did you mean `:{near}`?")),
                    None => report.hint(format!("its keys are {}", keys.join(", "))),
                },
            );
        }
    }
    Ok(())
}
