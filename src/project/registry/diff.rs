//! The difference between two versions: of their texts, and of the forms in the main file.

use std::collections::{BTreeMap, BTreeSet};

use flowstone_flow::flow::name_of;
use flowstone_lang::session::Session;
use flowstone_lang::value::Value;
use flowstone_model::registry::VersionFiles;
use flowstone_steps::files::unified;

/// Number of equal lines that are shown around a change.
const CONTEXT: usize = 3;
/// The keys that name an entry of a vector, such as a function or a slot.
const NAMES: &[&str] = &["id", "slot", "name", "tool-name"];
/// Maximum depth of forms that are searched for steps.
const DEPTH: usize = 200;

/// The difference between two versions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VersionDiff {
    /// The files that differ, by path.
    pub files: Vec<FileDiff>,
    /// The forms of the main file that differ.
    pub forms: Vec<FormDiff>,
}

impl VersionDiff {
    /// Returns the differences of all files as one unified diff.
    pub fn text(&self) -> String {
        self.files.iter().map(|file| &*file.diff).collect()
    }

    /// Returns the paths of the files that differ.
    pub fn paths(&self) -> Vec<String> {
        self.files.iter().map(|file| file.path.clone()).collect()
    }
}

/// What happened to a file or a form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    Added,
    Changed,
    Removed,
}

impl Change {
    pub fn name(self) -> &'static str {
        match self {
            Change::Added => "added",
            Change::Changed => "changed",
            Change::Removed => "removed",
        }
    }

    /// Compares what was there with what is there now. `None`: they are equal.
    fn of<T: PartialEq>(old: Option<&T>, new: Option<&T>) -> Option<Change> {
        match (old, new) {
            (None, Some(_)) => Some(Change::Added),
            (Some(_), None) => Some(Change::Removed),
            (old, new) => (old != new).then_some(Change::Changed),
        }
    }
}

/// The difference of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileDiff {
    pub path: String,
    pub change: Change,
    pub added: usize,
    pub removed: usize,
    /// In the format of `diff -u`; empty if one of both is not text.
    pub diff: String,
}

/// A form that differs, such as `:functions :total` or `step :summarize`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FormDiff {
    pub form: String,
    pub change: Change,
}

/// Returns the difference between two versions. `names` are the names of both in the diff.
pub fn diff(old: &VersionFiles, new: &VersionFiles, names: (&str, &str)) -> VersionDiff {
    let paths: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    let files = paths.into_iter().filter_map(|path| {
        let (was, is) = (old.get(path), new.get(path));
        let change = Change::of(was, is)?;
        let text = |bytes: Option<&Vec<u8>>| {
            let bytes = bytes.map(Vec::as_slice).unwrap_or_default();
            std::str::from_utf8(bytes).ok().map(str::to_owned)
        };
        let compared = match (text(was), text(is)) {
            (Some(was), Some(is)) => Some(unified(&was, &is, CONTEXT)),
            (_, _) => None,
        };
        let name = |side: &str, there: bool| match there {
            true => format!("{side}/{path}"),
            false => "/dev/null".to_owned(),
        };
        let head = format!(
            "--- {}\n+++ {}\n",
            name(names.0, was.is_some()),
            name(names.1, is.is_some())
        );
        let (added, removed) = compared
            .as_ref()
            .map_or((0, 0), |it| (it.added, it.removed));
        Some(FileDiff {
            path: path.clone(),
            change,
            added,
            removed,
            diff: compared.map_or_else(String::new, |it| head + &it.text),
        })
    });
    let files = files.collect();
    let forms = match (main_form(old), main_form(new)) {
        (Some(old), Some(new)) => forms(&old, &new),
        (_, _) => Vec::new(),
    };
    VersionDiff { files, forms }
}

/// Reads the map in the main file.
fn main_form(files: &VersionFiles) -> Option<Value> {
    let texts = super::texts(files).ok()?;
    let read = super::read_version(&Session::new(), "flow", &texts);
    let loaded = read.loaded?;
    Some(loaded.flow.definition.clone())
}

fn forms(old: &Value, new: &Value) -> Vec<FormDiff> {
    let (old, new) = (entries(old), entries(new));
    let keys: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    let mut found = Vec::new();
    for key in keys {
        let (was, is) = (old.get(key), new.get(key));
        let (Some(before), Some(after)) = (was, is) else {
            let change = Change::of(was, is);
            found.extend(change.map(|change| FormDiff {
                form: key.clone(),
                change,
            }));
            continue;
        };
        if before == after {
            continue;
        }
        let (inner_old, inner_new) = match key.as_str() {
            ":flow" => (steps(before), steps(after)),
            _ => (named(before), named(after)),
        };
        let place = match key.as_str() {
            ":flow" => "step",
            key => key,
        };
        let mut inner = changes(&inner_old, &inner_new, place);
        // Something else than a named entry, or than a step, has changed.
        if inner.is_empty() {
            inner.push(FormDiff {
                form: key.clone(),
                change: Change::Changed,
            });
        }
        found.append(&mut inner);
    }
    found
}

fn changes(
    old: &BTreeMap<String, String>,
    new: &BTreeMap<String, String>,
    place: &str,
) -> Vec<FormDiff> {
    let keys: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    let changed = keys.into_iter().filter_map(|key| {
        let change = Change::of(old.get(key), new.get(key))?;
        let form = format!("{place} {key}");
        Some(FormDiff { form, change })
    });
    changed.collect()
}

/// Returns the entries of a map by the texts of their keys.
fn entries(value: &Value) -> BTreeMap<String, Value> {
    let map = value.as_map();
    let entries = map.into_iter().flat_map(|map| map.iter());
    entries
        .map(|(key, value)| (written(key), value.clone()))
        .collect()
}

/// Returns the texts of entries that have a name: those of a map, or maps in a vector.
fn named(value: &Value) -> BTreeMap<String, String> {
    if value.as_map().is_some() {
        let entries = entries(value).into_iter();
        return entries.map(|(key, value)| (key, written(&value))).collect();
    }
    let items = value.as_vector();
    let items = items.into_iter().flat_map(|items| items.iter());
    let named = items.filter_map(|item| {
        let mut names = NAMES.iter().filter_map(|key| item.get(key));
        Some((written(names.next()?), written(item)))
    });
    named.collect()
}

/// Returns the texts of the calls of steps in a form, by their ids.
fn steps(form: &Value) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    collect(form, &mut found, DEPTH);
    found
}

fn collect(form: &Value, found: &mut BTreeMap<String, String>, depth: usize) {
    let Some(depth) = depth.checked_sub(1) else {
        return;
    };
    let items: Vec<Value> = match form {
        Value::List(_) | Value::Vector(_) => flowstone_model::json::items(form).unwrap_or_default(),
        Value::Map(map) => map
            .iter()
            .flat_map(|(key, value)| [key.clone(), value.clone()])
            .collect(),
        _ => return,
    };
    let head = items.first().and_then(Value::as_symbol);
    let is_step = head.is_some_and(|symbol| symbol.is("flow/step"));
    let id = [2, 1]
        .into_iter()
        .find_map(|at| items.get(at).and_then(name_of));
    if let Some(id) = id.filter(|_| is_step) {
        let text = found.entry(format!(":{id}")).or_default();
        text.push_str(&written(form));
    }
    for item in &items {
        collect(item, found, depth);
    }
}

/// Prints a form. The numbers in generated names, such as those of `#(inc %)`, depend on what was read before, so they are
/// left out.
fn written(value: &Value) -> String {
    let printed = value.to_string();
    let mut parts = printed.split("__");
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        text += "__";
        text += part.trim_start_matches(|char: char| char.is_ascii_digit());
    }
    text
}

#[cfg(test)]
mod tests {
    use flowstone_model::registry::VersionFiles;

    use super::{Change, diff};

    fn files(main: &str, others: &[(&str, &str)]) -> VersionFiles {
        let files = others.iter().copied().chain([("flow.edn", main)]);
        files
            .map(|(path, text)| (path.to_owned(), text.as_bytes().to_vec()))
            .collect()
    }

    const OLD: &str = "{:slug :report
 :concurrency {:type :singleton :on-new-version :coexist}
 :functions [{:id :total :code '(fn [rows] (reduce + (map #(:n %) rows)))}
             {:id :first :code '(fn [rows] (first rows))}]
 :flow '(let [a (flow/step :function :count {:code '(fn [_] 1)})
              b (flow/step :sleep :pause {:for \"1s\"})]
          [a b])}
";

    #[test]
    fn changed_forms_are_named() {
        let new = OLD
            .replace("(reduce +", "(reduce max")
            .replace("\"1s\"", "\"2s\"")
            .replace(":slug :report", ":slug :report :name \"Report\"");
        let found = diff(&files(OLD, &[]), &files(&new, &[]), ("1", "2"));
        let forms = found.forms.iter();
        let forms: Vec<String> = forms
            .map(|form| format!("{} {}", form.form, form.change.name()))
            .collect();
        assert_eq!(
            forms,
            [
                "step :pause changed",
                ":functions :total changed",
                ":name added"
            ]
        );
        assert_eq!(found.files.len(), 1);
        assert_eq!((found.files[0].added, found.files[0].removed), (3, 3));
        assert!(
            found
                .text()
                .starts_with("--- 1/flow.edn\n+++ 2/flow.edn\n@@ ")
        );
    }

    #[test]
    fn a_change_outside_of_steps_is_one_of_the_flow() {
        let new = OLD.replace("[a b])}", "[b a])}");
        let found = diff(&files(OLD, &[]), &files(&new, &[]), ("1", "2"));
        assert_eq!(found.forms.len(), 1);
        assert_eq!(found.forms[0].form, ":flow");
        assert_eq!(found.forms[0].change, Change::Changed);
        // Comments change no form.
        let new = format!("; about\n{OLD}");
        let found = diff(&files(OLD, &[]), &files(&new, &[]), ("1", "2"));
        assert_eq!(found.forms, []);
        assert_eq!(found.paths(), ["flow.edn"]);
    }

    #[test]
    fn files_are_added_and_removed() {
        let found = diff(
            &files(OLD, &[("a.edn", "1\n")]),
            &files(OLD, &[("b.edn", "2\n")]),
            ("1", "2"),
        );
        let changes = found.files.iter();
        let changes: Vec<(&str, Change)> = changes.map(|it| (&*it.path, it.change)).collect();
        assert_eq!(
            changes,
            [("a.edn", Change::Removed), ("b.edn", Change::Added)]
        );
        assert_eq!(
            found.files[0].diff,
            "--- 1/a.edn\n+++ /dev/null\n@@ -1 +0,0 @@\n-1\n"
        );
    }
}
