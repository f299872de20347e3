//! The cases of a flow in a file: one map, or several under `:cases` with what they have in common beside it.

use std::path::{Path, PathBuf};

use flowstone_engine::crash_test::Case;
use flowstone_lang::value::Value;

use super::super::input;
use super::super::report::Report;
use super::flow::of_test_error;
use super::{NOT_A_SUITE, is_suite};

/// The keys of a file of cases that are not for its cases.
const OF_SUITE: &[&str] = &["cases", "flow"];
/// The keys of a case that only the command knows.
const OF_CASE: &[&str] = &["name", "replay", "skip"];
/// The keys that a case adds to those of its file, instead of replacing them.
const MERGED: &[&str] = &["answers", "mock"];

/// A file of cases.
#[derive(Debug)]
pub struct Suite {
    /// The flow file that is tested.
    pub flow: PathBuf,
    pub cases: Vec<Named>,
}

/// A case with what the command knows about it.
#[derive(Debug)]
pub struct Named {
    pub name: String,
    pub case: Case,
    /// The folder with recorded answers.
    pub replay: Option<PathBuf>,
    /// Why it is not tested.
    pub skip: Option<String>,
}

impl Suite {
    /// Reads a file of cases for a flow, or for the flow that it belongs to. Paths in it are relative to its folder.
    ///
    /// # Errors
    /// When the file cannot be read, is malformed, or belongs to no flow.
    pub fn read(file: &Path, flow: Option<&Path>) -> Result<Suite, Report> {
        let value = input::read(&format!("@{}", file.display()), "--case")?;
        let whole = in_file(file);
        let Some(map) = value.as_map() else {
            let message = format!("a file of cases is a map, not {}", value.kind());
            return Err(whole(Report::error(NOT_A_SUITE, message).hint(
                "write one case, {:input {...} :expect ...}, or several: {:cases [{:name \"...\" ...}]}",
            )));
        };
        let flow = match (flow, value.get("flow")) {
            (Some(flow), _) => flow.to_path_buf(),
            (None, Some(Value::Text(path))) => beside(file, path),
            (None, Some(other)) => {
                let message = format!("`:flow` is the path of a flow file, not {}", other.kind());
                return Err(whole(Report::error(NOT_A_SUITE, message)));
            }
            (None, None) => flow_of(file).ok_or_else(|| {
                let message = format!("{} does not say which flow it tests", file.display());
                Report::error(NOT_A_SUITE, message).hint(
                    "add :flow \"../NAME.edn\", or call the file NAME_test.edn beside NAME.edn",
                )
            })?,
        };
        let cases = match value.get("cases") {
            None => vec![Named::of(file, &value, None).map_err(whole)?],
            Some(Value::Vector(cases)) => {
                let common = map.iter().filter(|(key, _)| !is_one_of(key, OF_SUITE));
                let common = Value::map(common.map(|(key, value)| (key.clone(), value.clone())));
                let read = cases.iter().enumerate().map(|(idx, case)| {
                    let merged = merged(&common, case)?;
                    Named::of(file, &merged, Some(idx + 1))
                });
                read.collect::<Result<_, _>>().map_err(whole)?
            }
            Some(other) => {
                let message = format!("`:cases` is a vector of cases, not {}", other.kind());
                return Err(whole(Report::error(NOT_A_SUITE, message)));
            }
        };
        Ok(Suite { flow, cases })
    }
}

impl Named {
    /// Reads a case: the only one of a file, or the one with this number.
    fn of(file: &Path, value: &Value, number: Option<usize>) -> Result<Named, Report> {
        let Some(map) = value.as_map() else {
            let message = format!("a case is a map, not {}", value.kind());
            return Err(Report::error(NOT_A_SUITE, message));
        };
        let text = |key: &str| match value.get(key) {
            None => Ok(None),
            Some(Value::Text(text)) => Ok(Some(text.to_string())),
            Some(Value::Keyword(name)) if key == "name" => Ok(Some(name.name().to_string())),
            Some(other) => {
                let message = format!("`:{key}` of a case is a text, not {}", other.kind());
                Err(Report::error(NOT_A_SUITE, message))
            }
        };
        let name = text("name")?.unwrap_or_else(|| match number {
            Some(number) => format!("case {number}"),
            None => file
                .file_stem()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned(),
        });
        let inner = map.iter();
        let inner = inner.filter(|(key, _)| !is_one_of(key, OF_CASE) && !is_one_of(key, OF_SUITE));
        let inner = Value::map(inner.map(|(key, value)| (key.clone(), value.clone())));
        let case = Case::of_value(&inner).map_err(|error| of_test_error(&error))?;
        Ok(Named {
            name,
            case,
            replay: text("replay")?.map(|path| beside(file, &path)),
            skip: text("skip")?,
        })
    }
}

fn is_one_of(key: &Value, names: &[&str]) -> bool {
    key.as_keyword()
        .is_some_and(|key| names.iter().any(|name| *key.name() == **name))
}

/// Adds to a case what its file has for all cases.
fn merged(common: &Value, case: &Value) -> Result<Value, Report> {
    let Some(map) = case.as_map() else {
        let message = format!("a case in `:cases` is a map, not {}", case.kind());
        return Err(Report::error(NOT_A_SUITE, message));
    };
    let mut entries: Vec<(Value, Value)> = Vec::new();
    for (key, value) in common.as_map().into_iter().flat_map(|map| map.iter()) {
        entries.push((key.clone(), value.clone()));
    }
    for (key, value) in map.iter() {
        let at = entries.iter().position(|(known, _)| known == key);
        match at {
            None => entries.push((key.clone(), value.clone())),
            Some(at) if is_one_of(key, MERGED) => entries[at].1 = both(&entries[at].1, value),
            Some(at) => entries[at].1 = value.clone(),
        }
    }
    Ok(Value::map(entries))
}

/// Returns the entries of two maps; the second one's override.
fn both(first: &Value, second: &Value) -> Value {
    let (Some(first), Some(_)) = (first.as_map(), second.as_map()) else {
        return second.clone();
    };
    let entries = first
        .iter()
        .chain(second.as_map().into_iter().flat_map(|map| map.iter()));
    let mut kept: Vec<(Value, Value)> = Vec::new();
    for (key, value) in entries {
        match kept.iter_mut().find(|(known, _)| known == key) {
            Some(entry) => entry.1 = value.clone(),
            None => kept.push((key.clone(), value.clone())),
        }
    }
    Value::map(kept)
}

/// Adds the name of a file to a report without a place.
fn in_file(file: &Path) -> impl Fn(Report) -> Report + Copy {
    move |mut report: Report| {
        if report.place.is_none() {
            report.message = format!("{}: {}", file.display(), report.message);
        }
        report
    }
}

fn beside(file: &Path, path: &str) -> PathBuf {
    let folder = file.parent().unwrap_or(Path::new(""));
    folder.join(path)
}

/// Returns the flow that a file of cases belongs to by its name: `NAME.edn` for `NAME_test.edn` beside it, and for each file of
/// cases in the folder `NAME`.
pub fn flow_of(file: &Path) -> Option<PathBuf> {
    if !is_suite(file) {
        return None;
    }
    let stem = file.file_stem()?.to_str()?;
    if let Some(name) = stem.strip_suffix("_test") {
        let beside = file.with_file_name(format!("{name}.edn"));
        if beside.is_file() {
            return Some(beside);
        }
    }
    let folder = std::path::absolute(file).ok()?.parent()?.to_path_buf();
    let mut name = folder.file_name()?.to_os_string();
    name.push(".edn");
    let typed = match file.parent() {
        Some(parent) if parent != Path::new("") => parent.with_file_name(&name),
        _ => folder.with_file_name(&name),
    };
    typed.is_file().then_some(typed)
}

/// Returns the files of cases that belong to a flow by their names, in order.
pub fn suites_of(flow: &Path) -> Vec<PathBuf> {
    let stem = flow.file_stem().unwrap_or_default().to_string_lossy();
    let mut found = Vec::new();
    let beside = flow.with_file_name(format!("{stem}_test.edn"));
    found.extend(beside.is_file().then_some(beside));
    let folder = flow.with_extension("");
    if let Ok(entries) = std::fs::read_dir(&folder) {
        let mut inside: Vec<PathBuf> = entries
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(|path| is_suite(path) && path.is_file())
            .collect();
        inside.sort();
        found.extend(inside);
    }
    found
}
