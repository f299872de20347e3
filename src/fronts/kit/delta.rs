//! Changes of a revision as data: `set` is merged into what the revision says, and `remove` takes parts away.
//!
//! The data of a revision is `{"parameters": {"files": {"flow.edn": text, ...}, "agent": {...}}}`. `files` are the texts of
//! the version. `agent` is a view of the one agent step of the flow's body ([`super::agent_view`]); a change of it is
//! written into the text.

use std::collections::BTreeSet;

use flowstone_project::registry::{MAIN_FILE, VersionFiles};
use serde_json::{Map, Value as Json, json};

use super::agent_view;
use super::error::KitError;
use super::schema::object;

const PARAMETERS: &str = "parameters";
const FILES: &str = "files";
const AGENT: &str = "agent";

/// A path into the data of a revision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Path(Vec<String>);

impl Path {
    /// Reads a path: a JSON Pointer if it begins with `/`, and keys separated by dots otherwise. `at` is its place in the
    /// arguments.
    ///
    /// # Errors
    /// `invalid_arguments` for an empty part, or a pointer with a malformed escape.
    pub fn read(text: &str, at: &str) -> Result<Path, KitError> {
        let wrong = || {
            KitError::invalid(
                at,
                "keys separated by dots, or a JSON Pointer such as /parameters/files/flow.edn",
                format!("`{text}` is not a path"),
            )
        };
        let parts: Option<Vec<String>> = match text.strip_prefix('/') {
            Some(pointer) => pointer.split('/').map(unescaped).collect(),
            None => Some(text.split('.').map(str::to_owned).collect()),
        };
        let parts = parts.ok_or_else(wrong)?;
        match parts.iter().any(String::is_empty) {
            true => Err(wrong()),
            false => Ok(Path(parts)),
        }
    }

    /// Returns what is at the path.
    pub fn find<'a>(&self, data: &'a Json) -> Option<&'a Json> {
        self.0.iter().try_fold(data, |at, part| match at {
            Json::Array(items) => items.get(part.parse::<usize>().ok()?),
            at => at.get(part),
        })
    }

    /// Takes away what is at the path. Tells whether there was something.
    fn remove(&self, data: &mut Json) -> bool {
        let Some((last, parents)) = self.0.split_last() else {
            return false;
        };
        let parent = parents.iter().try_fold(data, |at, part| match at {
            Json::Array(items) => items.get_mut(part.parse::<usize>().ok()?),
            at => at.get_mut(part),
        });
        match parent {
            Some(Json::Object(members)) => members.shift_remove(last).is_some(),
            Some(Json::Array(items)) => match last.parse::<usize>() {
                Ok(at) if at < items.len() => {
                    items.remove(at);
                    true
                }
                _ => false,
            },
            _ => false,
        }
    }
}

/// Returns a part of a JSON Pointer; `None` if `~` is not followed by 0 or 1.
fn unescaped(part: &str) -> Option<String> {
    let mut rest = part.split('~');
    let mut plain = rest.next().unwrap_or_default().to_owned();
    for piece in rest {
        match piece.split_at_checked(1)? {
            ("0", piece) => plain = plain + "~" + piece,
            ("1", piece) => plain = plain + "/" + piece,
            _ => return None,
        }
    }
    Some(plain)
}

/// Returns the JSON Schema of a delta.
pub fn schema() -> Json {
    object(
        json!({
            "set": {
                "type": "object",
                "description": "Merged into the revision: `{\"parameters\": {\"files\": {\"flow.edn\": TEXT}}}` replaces a \
                    whole text, `{\"parameters\": {\"agent\": {\"instructions\": TEXT, \"model\": TEXT}}}` changes \
                    literal settings of the flow's one agent step. Objects are merged, other values replaced.",
                "additionalProperties": true,
            },
            "remove": {
                "type": "array",
                "maxItems": 100,
                "items": {"type": "string", "minLength": 1},
                "description": "Paths to take away after `set`: keys separated by dots, or a JSON Pointer that begins with \
                    `/`, such as `/parameters/files/old.edn`.",
            },
        }),
        &[],
    )
}

/// Returns the data of a version.
///
/// # Errors
/// When a file is not text.
pub fn document(files: &VersionFiles) -> Result<Json, KitError> {
    let mut texts = Map::new();
    for (path, bytes) in files {
        let text = std::str::from_utf8(bytes)
            .map_err(|_| KitError::internal(&format!("the file `{path}` is not UTF-8 text")))?;
        texts.insert(path.clone(), json!(text));
    }
    let mut parameters = json!({FILES: texts});
    let main = files.get(MAIN_FILE);
    let main = main.and_then(|bytes| std::str::from_utf8(bytes).ok());
    if let Some(Ok(view)) = main.map(agent_view::read) {
        parameters[AGENT] = Json::Object(view);
    }
    Ok(json!({PARAMETERS: parameters}))
}

/// Returns the files of a version after a delta, which is the argument at the path `at`. The flow is not checked. Files that are
/// equal to those before mean that nothing changes.
///
/// # Errors
/// `out_of_scope` for anything but `parameters`, a computed setting and a flow without exactly one agent step;
/// `invalid_arguments` for malformed paths and values, and when both ways change one file.
pub fn apply(files: &VersionFiles, delta: &Json, at: &str) -> Result<VersionFiles, KitError> {
    let before = document(files)?;
    let mut after = before.clone();
    let set = delta.get("set").cloned().unwrap_or_else(|| json!({}));
    in_scope(&set, at)?;
    merge(&mut after, &set);
    let removed = delta.get("remove").and_then(Json::as_array);
    for (number, path) in removed.into_iter().flatten().enumerate() {
        let place = format!("{at}/remove/{number}");
        let text = path.as_str().unwrap_or_default();
        let path = Path::read(text, &place)?;
        if path.0.first().map(String::as_str) != Some(PARAMETERS) || path.0.len() < 3 {
            return Err(KitError::out_of_scope(
                place,
                format!(
                    "`{text}` cannot be removed: only parts of `parameters.files` and `parameters.agent` can"
                ),
            ));
        }
        path.remove(&mut after);
    }
    let texts = changed_files(files, &after, at)?;
    let agent = |data: &Json| data[PARAMETERS].get(AGENT).cloned();
    let (was, is) = (agent(&before), agent(&after).map(agent_view::plain));
    if was == is {
        return Ok(texts);
    }
    let main = |files: &VersionFiles| files.get(MAIN_FILE).cloned();
    if main(files) != main(&texts) {
        return Err(KitError::invalid(
            format!("{at}/set/parameters/agent"),
            "either `files` with `flow.edn` or `agent`",
            "`flow.edn` is changed both as a text and by `agent`",
        ));
    }
    let Some(text) = main(&texts).and_then(|bytes| String::from_utf8(bytes).ok()) else {
        return Err(KitError::invalid(
            format!("{at}/set/parameters/files/flow.edn"),
            "the text of the flow",
            "the flow does not exist yet: its first revision needs `flow.edn`",
        ));
    };
    let (was, is) = (as_members(was), as_members(is));
    let text = agent_view::write(&text, &was, &is, &format!("{at}/set/parameters/agent"))?;
    let mut texts = texts;
    texts.insert(MAIN_FILE.to_owned(), text.into_bytes());
    Ok(texts)
}

fn as_members(value: Option<Json>) -> Map<String, Json> {
    match value {
        Some(Json::Object(members)) => members,
        _ => Map::new(),
    }
}

/// Refuses what is outside of `parameters`.
fn in_scope(set: &Json, at: &str) -> Result<(), KitError> {
    let names = |value: &Json| -> BTreeSet<String> {
        let members = value.as_object();
        members.map_or_else(BTreeSet::new, |members| members.keys().cloned().collect())
    };
    if let Some(name) = names(set).into_iter().find(|name| name != PARAMETERS) {
        return Err(KitError::out_of_scope(
            format!("{at}/set/{name}"),
            format!("`{name}` cannot be changed: a delta changes `parameters` only"),
        ));
    }
    let Some(parameters) = set.get(PARAMETERS) else {
        return Ok(());
    };
    let place = format!("{at}/set/{PARAMETERS}");
    if !parameters.is_object() {
        return Err(KitError::invalid(
            place,
            "an object with `files` or `agent`",
            "`parameters` must be an object",
        ));
    }
    for name in names(parameters) {
        if name != FILES && name != AGENT {
            return Err(KitError::invalid(
                format!("{place}/{name}"),
                "`files` or `agent`",
                format!("`parameters` cannot have `{name}`"),
            ));
        }
        if !parameters[&name].is_object() {
            return Err(KitError::invalid(
                format!("{place}/{name}"),
                "an object",
                format!("`parameters.{name}` must be an object"),
            ));
        }
    }
    Ok(())
}

/// Merges objects; other values replace what is there. Null is a value.
fn merge(into: &mut Json, set: &Json) {
    match (into, set) {
        (Json::Object(into), Json::Object(set)) => {
            for (name, value) in set {
                match into.get_mut(name) {
                    Some(inner) => merge(inner, value),
                    None => {
                        into.insert(name.clone(), value.clone());
                    }
                }
            }
        }
        (into, set) => *into = set.clone(),
    }
}

/// Returns the files that the data has.
fn changed_files(files: &VersionFiles, after: &Json, at: &str) -> Result<VersionFiles, KitError> {
    let mut texts = VersionFiles::new();
    let members = after[PARAMETERS][FILES].as_object();
    for (path, text) in members.into_iter().flatten() {
        let Json::String(text) = text else {
            return Err(KitError::invalid(
                format!("{at}/set/parameters/files/{path}"),
                "a text",
                format!("the file `{path}` must be a text; `remove` deletes a file"),
            ));
        };
        texts.insert(path.clone(), text.clone().into_bytes());
    }
    if files.contains_key(MAIN_FILE) && !texts.contains_key(MAIN_FILE) {
        return Err(KitError::out_of_scope(
            format!("{at}/remove"),
            format!("`{MAIN_FILE}` cannot be removed: it is the flow"),
        ));
    }
    Ok(texts)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FLOW: &str = r#"{:slug :digest
 ;; The agent.
 :flow '(let [input (flow/input)]
          (flow/step :agent :write {:connection :ai
                                    :instructions "Be brief." ; for now
                                    :available-steps [:files]
                                    :inputs {:region (:region input)}
                                    :max-iterations 4}))}
"#;

    fn files() -> VersionFiles {
        VersionFiles::from([(MAIN_FILE.to_owned(), FLOW.as_bytes().to_vec())])
    }

    /// Returns the lines that a delta changes, or the code and path of its error.
    fn applied(delta: Json) -> String {
        match apply(&files(), &delta, "/delta") {
            Err(error) => {
                let path = error.details.map(|it| it["path"].to_string());
                format!("{} {}", error.code.name(), path.unwrap_or_default())
            }
            Ok(after) => {
                let text = String::from_utf8(after[MAIN_FILE].clone()).expect("text");
                let old: BTreeSet<&str> = FLOW.lines().collect();
                let new = text.lines().filter(|line| !old.contains(line));
                let mut changed: Vec<String> = new.map(|it| it.trim().to_owned()).collect();
                changed.extend(after.keys().filter(|it| *it != MAIN_FILE).cloned());
                changed.join("|")
            }
        }
    }

    #[test]
    fn the_agent_is_changed_in_the_text() {
        let set = |agent: Json| json!({"set": {"parameters": {"agent": agent}}});
        for (delta, expected) in [
            (
                set(json!({"instructions": {"agents_md": "x"}})),
                r#":instructions "x" ; for now"#,
            ),
            (set(json!({"max_iterations": 9})), ":max-iterations 9}))}"),
            (
                set(json!({"model": "gpt-x"})),
                r#":max-iterations 4|:model "gpt-x"}))}"#,
            ),
            (
                set(json!({"available_steps": ["files", "http"]})),
                ":available-steps [:files :http]",
            ),
            (
                json!({"remove": ["parameters.agent.max_iterations"]}),
                ":inputs {:region (:region input)}}))}",
            ),
            // Removing what is not there changes nothing.
            (json!({"remove": ["parameters.agent.model"]}), ""),
            (set(json!({"instructions": "Be brief."})), ""),
            // A name is written as a keyword, so it cannot be code.
            (
                set(json!({"max_iterations (+ 1 2) :temperature": 1})),
                "invalid_arguments \"/delta/set/parameters/agent/max_iterations (+ 1 2) :temperature\"",
            ),
            (
                set(json!({"tools": [{"a} #=(x) {": 1}]})),
                "invalid_arguments \"/delta/set/parameters/agent/tools/0/a} #=(x) {\"",
            ),
            (
                set(json!({"inputs": {"region": "EU"}})),
                "out_of_scope \"/delta/set/parameters/agent/inputs\"",
            ),
        ] {
            assert_eq!(applied(delta.clone()), expected, "{delta}");
        }
    }

    #[test]
    fn files_are_whole_texts() {
        let files = |files: Json| json!({"set": {"parameters": {"files": files}}});
        for (delta, expected) in [
            (files(json!({"notes.md": "hi"})), "notes.md"),
            (
                files(json!({"flow.edn": "{:slug :digest}"})),
                "{:slug :digest}",
            ),
            (
                files(json!({"flow.edn": null})),
                "invalid_arguments \"/delta/set/parameters/files/flow.edn\"",
            ),
            (
                json!({"remove": ["/parameters/files/flow.edn"]}),
                "out_of_scope \"/delta/remove\"",
            ),
            (
                json!({"set": {"parameters": {"files": {"flow.edn": "{}"}, "agent": {"model": "m"}}}}),
                "invalid_arguments \"/delta/set/parameters/agent\"",
            ),
        ] {
            assert_eq!(applied(delta.clone()), expected, "{delta}");
        }
    }

    #[test]
    fn a_delta_changes_parameters_only() {
        for (delta, expected) in [
            (
                json!({"set": {"slug": "other"}}),
                "out_of_scope \"/delta/set/slug\"",
            ),
            (
                json!({"set": {"parameters": {"runner": {}}}}),
                "invalid_arguments \"/delta/set/parameters/runner\"",
            ),
            (
                json!({"remove": ["parameters"]}),
                "out_of_scope \"/delta/remove/0\"",
            ),
            (
                json!({"remove": ["target.url"]}),
                "out_of_scope \"/delta/remove/0\"",
            ),
            (
                json!({"remove": ["parameters..agent"]}),
                "invalid_arguments \"/delta/remove/0\"",
            ),
            (
                json!({"remove": ["/parameters/files/a~2"]}),
                "invalid_arguments \"/delta/remove/0\"",
            ),
        ] {
            assert_eq!(applied(delta.clone()), expected, "{delta}");
        }
    }
}
