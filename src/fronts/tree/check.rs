//! Turns the parsed files of a tree into the tree, and collects every problem.
//!
//! References are replaced by what they name while the nodes are read, so that a run keeps the whole tree. A reference
//! to a node around it stays as a marker.

use std::path::Path;
use std::rc::Rc;

use serde_json::{Map, Value as Json};

use super::elsewhere::Elsewhere;
use super::error::TreeError;
use super::file::Files;
use super::node::{Composite, Dialect, Node, Step, Tree};
use crate::address;

/// Maximum number of nodes after references are replaced.
const NODES_MAX: usize = 10_000;
/// Maximum number of bytes of the steps of all actions, as JSON, after references are replaced.
const STEPS_MAX: usize = 4 * 1024 * 1024;
/// Maximum depth of nodes.
const DEPTH_MAX: usize = 48;
/// Maximum number of references between the root and a node. They nest nothing, so they do not count as levels of the tree.
const REFERENCES_MAX: usize = 128;
/// Maximum number of retries of one node.
const RETRIES_MAX: u64 = 10_000;
/// Maximum number of problems that are reported.
const PROBLEMS_MAX: usize = 100;
/// The known members of a node. The first four may appear on any node; `state` is used only on the root.
const NODE_KEYS: &[&str] = &[
    "$schema",
    "description",
    "state",
    "version",
    "children",
    "name",
    "retries",
    "steps",
    "type",
];
/// The known members of a root that is a reference.
const ROOT_REFERENCE_KEYS: &[&str] = &["$ref", "$schema", "description", "state", "version"];
const WRAPPER_KEYS: &[&str] = &["$schema", "description", "name", "state", "tree", "version"];

const STATE_UNUSED: &str =
    "is not used: a run has the stores of the tree file that it starts with; declare them there";

/// A checked tree, and the warnings for its author.
#[derive(Debug, Clone, PartialEq)]
pub struct Checked {
    pub tree: Tree,
    /// Members without a meaning, as `path: message`.
    pub warnings: Vec<String>,
}

/// Reads the tree in a file below a project's folder. `path` is absolute, or relative to that folder.
///
/// # Errors
/// [`TreeError::Unreadable`] when the file cannot be read, and [`TreeError::BadTree`] with all problems.
pub fn check(project: &Path, path: &Path) -> Result<Checked, TreeError> {
    check_from(project, path, None).0
}

/// As [`check`], with the parts of the tree outside the folder, as far as they are known. Those that are missing are in
/// the answer.
pub(super) fn check_from(
    project: &Path,
    path: &Path,
    elsewhere: Option<Elsewhere>,
) -> (Result<Checked, TreeError>, Elsewhere) {
    let unreadable = |why: String| TreeError::Unreadable {
        uri: path.display().to_string(),
        why,
    };
    let mut files = match Files::below(project) {
        Ok(files) => files,
        Err(why) => return (Err(unreadable(why)), Elsewhere::default()),
    };
    files.elsewhere = elsewhere;
    let found = files.path_of(path, "");
    let found = found.and_then(|file| Ok((files.get(&file)?, file)));
    let (json, file) = match found {
        Ok(found) => found,
        Err(why) => return (Err(unreadable(why)), files.elsewhere.unwrap_or_default()),
    };
    let mut reading = Reading {
        files,
        main: file.clone(),
        is_bare: false,
        problems: Vec::new(),
        warnings: Vec::new(),
        nodes: 0,
        step_bytes: 0,
        open: Vec::new(),
        references: 0,
    };
    let tree = reading.file(&file, &json);
    let checked = match tree {
        Some(tree) if reading.problems.is_empty() => Ok(Checked {
            tree,
            warnings: reading.warnings,
        }),
        _ => Err(TreeError::BadTree {
            name: file,
            problems: reading.problems,
        }),
    };
    (checked, reading.files.elsewhere.unwrap_or_default())
}

/// The place of a value: a file, and the keys from its root.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Place {
    file: Rc<str>,
    keys: Vec<String>,
}

impl Place {
    fn is_root_of(&self, file: &str) -> bool {
        self.keys.is_empty() && *self.file == *file
    }

    fn at(&self, key: impl ToString) -> Place {
        let mut place = self.clone();
        place.keys.push(key.to_string());
        place
    }
}

/// What a reference names.
struct Target {
    place: Place,
    json: Json,
    /// The place of stores that are not used: those of a tree file that is part of another tree.
    state: Option<Place>,
}

struct Reading {
    files: Files,
    main: String,
    /// Whether the main file is a node itself.
    is_bare: bool,
    problems: Vec<String>,
    warnings: Vec<String>,
    nodes: usize,
    step_bytes: usize,
    /// The nodes that enclose the current one, and the references that lead to it.
    open: Vec<Place>,
    /// How many of `open` are references.
    references: usize,
}

impl Reading {
    fn file(&mut self, file: &str, json: &Json) -> Option<Tree> {
        let place = Place {
            file: file.into(),
            keys: Vec::new(),
        };
        let Json::Object(members) = json else {
            self.problem(&place, "must be a map with `tree`, or a node with `type`");
            return None;
        };
        match is_wrapper(members) {
            true => self.wrapper(&place, members),
            false => self.bare(&place, members),
        }
    }

    fn wrapper(&mut self, place: &Place, members: &Map<String, Json>) -> Option<Tree> {
        self.keys(place, members, WRAPPER_KEYS);
        let name = self.text(place, members, "name");
        match members.get("version") {
            Some(Json::String(_)) => {}
            found => {
                let found = found.unwrap_or(&Json::Null);
                self.wrong(
                    &place.at("version"),
                    found,
                    "must be a text, such as \"1.0.0\"",
                );
            }
        }
        let description = self.description(place, members);
        let (dialect, var, constants) = self.state(place, members, true);
        let tree = members.get("tree").unwrap_or(&Json::Null);
        let root = self.node(&place.at("tree"), tree);
        Some(Tree {
            name: name?,
            description,
            dialect,
            root: root?,
            var,
            constants,
        })
    }

    fn bare(&mut self, place: &Place, members: &Map<String, Json>) -> Option<Tree> {
        self.is_bare = true;
        let description = self.description(place, members);
        let (_, var, constants) = self.state(place, members, false);
        let root = match members.get("$ref") {
            // The file has its own stores and description; what it refers to is its only node.
            Some(reference) => {
                self.keys(place, members, ROOT_REFERENCE_KEYS);
                self.reference(place, reference)?
            }
            None => self.node(place, &Json::Object(members.clone()))?,
        };
        Some(Tree {
            name: root.name().to_owned(),
            description,
            dialect: Dialect::Bare,
            root,
            var,
            constants,
        })
    }

    fn description(&mut self, place: &Place, members: &Map<String, Json>) -> Option<String> {
        match members.get("description") {
            None | Some(Json::Null) => None,
            Some(Json::String(text)) => Some(text.trim().to_owned()),
            Some(found) => {
                self.wrong(&place.at("description"), found, "must be a text");
                None
            }
        }
    }

    /// Reads the two stores. Their names may also be `local` and `global`.
    fn state(
        &mut self,
        place: &Place,
        members: &Map<String, Json>,
        is_wrapper: bool,
    ) -> (Dialect, Map<String, Json>, Map<String, Json>) {
        let place = place.at("state");
        let none = Map::new();
        let state = match members.get("state") {
            None | Some(Json::Null) => &none,
            Some(Json::Object(state)) => state,
            Some(_) => {
                self.problem(&place, "must be a map of stores");
                &none
            }
        };
        let has = |names: &[&str]| names.iter().any(|name| state.contains_key(*name));
        let is_old = has(&["local", "global"]);
        if is_old && has(&["var", "const"]) {
            self.problem(
                &place,
                "names the stores `var` and `const`, or `local` and `global`, not both",
            );
        }
        let names = match is_old {
            true => ["local", "global"],
            false => ["var", "const"],
        };
        let dialect = match (is_wrapper, is_old) {
            (true, true) => Dialect::LocalGlobal,
            (true, false) => Dialect::Wrapper,
            (false, _) => Dialect::Bare,
        };
        for key in state.keys().filter(|key| !names.contains(&key.as_str())) {
            if !(is_old && ["var", "const"].contains(&key.as_str())) {
                let message = format!(
                    "is not a store; the stores are `{}` and `{}`",
                    names[0], names[1]
                );
                match key.as_str() {
                    "$ref" => self.wrong(
                        &place,
                        &Json::Object(state.clone()),
                        "must be a map of stores",
                    ),
                    _ => self.problem(&place.at(key), &message),
                }
            }
        }
        let [var, constants] = names.map(|name| self.store(&place.at(name), state.get(name)));
        if let Err(error) = super::scope::check_store(&Json::Object(var.clone())) {
            self.problem(&place.at(names[0]), &error.to_string());
        }
        (dialect, var, constants)
    }

    fn store(&mut self, place: &Place, store: Option<&Json>) -> Map<String, Json> {
        match store {
            None | Some(Json::Null) => Map::new(),
            Some(Json::Object(entries)) => {
                if let Some(key) = super::scope::refused_key(&Json::Object(entries.clone())) {
                    self.problem(place, &format!("has the key `{key}`, which is refused"));
                }
                entries.clone()
            }
            Some(_) => {
                self.problem(place, "must be a map");
                Map::new()
            }
        }
    }

    fn node(&mut self, place: &Place, json: &Json) -> Option<Node> {
        self.nodes += 1;
        if self.nodes > NODES_MAX {
            if self.nodes == NODES_MAX + 1 {
                self.problem(place, &format!("the tree has more than {NODES_MAX} nodes"));
            }
            return None;
        }
        if self.step_bytes > STEPS_MAX {
            return None;
        }
        if self.open.len() - self.references >= DEPTH_MAX {
            self.problem(place, &format!("is deeper than {DEPTH_MAX} nodes"));
            return None;
        }
        let Json::Object(members) = json else {
            let message = match json {
                Json::Null => "is missing: a node is a map with `type`, or with `$ref`",
                _ => "must be a node: a map with `type`, or with `$ref`",
            };
            self.problem(place, message);
            return None;
        };
        if let Some(reference) = members.get("$ref") {
            self.keys(place, members, &["$ref"]);
            return self.reference(place, reference);
        }
        self.open.push(place.clone());
        let node = self.own_node(place, members);
        self.open.pop();
        node
    }

    fn own_node(&mut self, place: &Place, members: &Map<String, Json>) -> Option<Node> {
        self.keys(place, members, NODE_KEYS);
        let is_root_of_file = self.is_bare && self.open.len() == 1 && place.is_root_of(&self.main);
        if members.contains_key("state") && !is_root_of_file {
            self.warn(&place.at("state"), STATE_UNUSED);
        }
        let kind = members.get("type").and_then(Json::as_str);
        let name = self.node_name(place, members);
        let retries = self.retries(place, members);
        if kind == Some("action") {
            self.absent(place, members, "children", "an action has `steps`");
            let bytes = members
                .get("steps")
                .map_or(0, |steps| steps.to_string().len());
            self.step_bytes += bytes;
            if self.step_bytes > STEPS_MAX {
                let message = format!(
                    "the steps of the tree have more than {} MiB after its references are replaced",
                    STEPS_MAX / 1024 / 1024
                );
                self.problem(place, &message);
                return None;
            }
            let steps = self.steps(place, members);
            return Some(Node::Action {
                name: name?,
                retries: retries?,
                steps: steps?,
            });
        }
        let composite = Composite::NAMES
            .iter()
            .find(|(_, name)| Some(*name) == kind);
        let Some((composite, _)) = composite else {
            let found = match members.get("type") {
                None => "is missing".to_owned(),
                Some(Json::String(text)) => format!("`{text}` is not a type of node"),
                Some(other) => format!("`{other}` is not a type of node"),
            };
            let message = format!("{found}; expected action, parallel, selector or sequence");
            self.problem(&place.at("type"), &message);
            // What is below is read for its own problems.
            let has = |key: &str| {
                let items = members.get(key).and_then(Json::as_array);
                items.is_some_and(|items| !items.is_empty())
            };
            if has("children") {
                self.children(place, members);
            }
            if has("steps") {
                self.steps(place, members);
            }
            return None;
        };
        self.absent(place, members, "steps", "only an action has steps");
        let children = self.children(place, members);
        Some(Node::Composite {
            kind: *composite,
            name: name?,
            retries: retries?,
            children: children?,
        })
    }

    fn absent(&mut self, place: &Place, members: &Map<String, Json>, key: &str, why: &str) {
        if members.contains_key(key) {
            self.problem(&place.at(key), &format!("must not be here: {why}"));
        }
    }

    fn node_name(&mut self, place: &Place, members: &Map<String, Json>) -> Option<String> {
        let name = self.text(place, members, "name")?;
        if self.is_bare && name.contains(['/', '@']) {
            self.problem(&place.at("name"), "must not contain `/` or `@`");
            return None;
        }
        Some(name)
    }

    fn retries(&mut self, place: &Place, members: &Map<String, Json>) -> Option<u32> {
        let given = match members.get("retries") {
            None => return Some(0),
            Some(given) => given,
        };
        let retries = whole(given).filter(|it| (1..=RETRIES_MAX).contains(it));
        if retries.is_none() {
            let message = format!(
                "must be a whole number from 1 to {RETRIES_MAX}, got `{}`",
                cut(given)
            );
            self.wrong(&place.at("retries"), given, &message);
        }
        retries.and_then(|retries| u32::try_from(retries).ok())
    }

    fn children(&mut self, place: &Place, members: &Map<String, Json>) -> Option<Vec<Node>> {
        let place = place.at("children");
        let items = match members.get("children") {
            Some(Json::Array(items)) if !items.is_empty() => items,
            _ => {
                self.problem(&place, "must be a list of at least one node");
                return None;
            }
        };
        let nodes: Vec<Option<Node>> = items
            .iter()
            .enumerate()
            .map(|(idx, item)| self.node(&place.at(idx), item))
            .collect();
        nodes.into_iter().collect()
    }

    fn steps(&mut self, place: &Place, members: &Map<String, Json>) -> Option<Vec<Step>> {
        let place = place.at("steps");
        let items = match members.get("steps") {
            Some(Json::Array(items)) if !items.is_empty() => items,
            _ => {
                self.problem(&place, "must be a list of at least one step");
                return None;
            }
        };
        let steps: Vec<Option<Step>> = items
            .iter()
            .enumerate()
            .map(|(idx, item)| self.step(&place.at(idx), item))
            .collect();
        steps.into_iter().collect()
    }

    fn step(&mut self, place: &Place, json: &Json) -> Option<Step> {
        let members = match json {
            Json::Object(members) => members,
            _ => {
                self.problem(place, "must be a map with `evaluate` or `instruct`");
                return None;
            }
        };
        self.keys(place, members, &["evaluate", "instruct"]);
        let make = match (members.get("evaluate"), members.get("instruct")) {
            (Some(_), None) => ("evaluate", Step::Evaluate as fn(String) -> Step),
            (None, Some(_)) => ("instruct", Step::Instruct as fn(String) -> Step),
            (Some(_), Some(_)) => {
                self.problem(
                    place,
                    "has both `evaluate` and `instruct`; a step has exactly one",
                );
                return None;
            }
            (None, None) => {
                self.wrong(
                    place,
                    json,
                    "has neither `evaluate` nor `instruct`; a step has exactly one",
                );
                return None;
            }
        };
        let text = self.text(place, members, make.0)?;
        Some(make.1(text.trim().to_owned()))
    }

    fn reference(&mut self, place: &Place, reference: &Json) -> Option<Node> {
        let at = place.at("$ref");
        let Some(reference) = reference.as_str() else {
            self.problem(&at, "must be a text");
            return None;
        };
        let (file, pointer) = reference.split_once('#').unwrap_or((reference, ""));
        let found = self.target(&place.file, file, pointer);
        let (target, json) = match found {
            Ok(Target { place, json, state }) => {
                if let Some(state) = state {
                    self.warn(&state, STATE_UNUSED);
                }
                (place, json)
            }
            Err(why) => {
                self.problem(&at, &format!("`{reference}` cannot be used: {why}"));
                return None;
            }
        };
        if self.open.contains(&target) {
            self.warn(
                &at,
                "leads back to a node around it: the tree fails when it gets here",
            );
            return Some(Node::Cycle {
                reference: reference.to_owned(),
            });
        }
        if self.references >= REFERENCES_MAX {
            self.problem(
                &at,
                &format!("is behind more than {REFERENCES_MAX} references"),
            );
            return None;
        }
        // References to references may form a circle without a node in it.
        self.open.push(place.clone());
        self.references += 1;
        let node = self.node(&target, &json);
        self.references -= 1;
        self.open.pop();
        node
    }

    /// Finds the target of a reference. A reference to a wrapper means its tree.
    fn target(&mut self, beside: &str, file: &str, pointer: &str) -> Result<Target, String> {
        let is_elsewhere = beside.contains("://");
        let path = match file.split_once("://") {
            None if file.is_empty() => beside.to_owned(),
            None if is_elsewhere => address::beside(beside, file).ok_or("it leads nowhere")?,
            None => self.files.path_of(Path::new(&decoded(file)), beside)?,
            Some(("file", _)) if is_elsewhere => {
                return Err("a part from another host cannot name files of this one".to_owned());
            }
            Some(("file", path)) => self.files.path_of(Path::new(&decoded(path)), beside)?,
            Some(("http" | "https", _)) if self.files.elsewhere.is_some() => file.to_owned(),
            Some((scheme, _)) => return Err(format!("references to {scheme}:// are off")),
        };
        let json = self.files.get(&path)?;
        let mut keys: Vec<String> = Vec::new();
        let mut found: &Json = &json;
        let parts = match pointer.strip_prefix('/') {
            Some(rest) => rest.split('/').collect(),
            None if pointer.is_empty() => Vec::new(),
            None => return Err("what follows `#` must begin with `/`".to_owned()),
        };
        for part in parts {
            let key = decoded(part).replace("~1", "/").replace("~0", "~");
            let next = match found {
                Json::Object(members) => members.get(&key),
                // RFC 6901: an index has digits only, and no leading zero.
                Json::Array(items) => {
                    let idx = key.parse::<usize>().ok();
                    let idx = idx.filter(|idx| idx.to_string() == key);
                    idx.and_then(|idx| items.get(idx))
                }
                _ => None,
            };
            found = next.ok_or_else(|| format!("there is nothing at `#{pointer}`"))?;
            keys.push(key);
        }
        let mut state = None;
        if keys.is_empty()
            && let Some(tree) = found
                .as_object()
                .filter(|it| is_wrapper(it))
                .and_then(|it| it.get("tree"))
        {
            let file = Place {
                file: path.as_str().into(),
                keys: Vec::new(),
            };
            let has_state = json.get("state").is_some_and(|state| !state.is_null());
            state = has_state.then(|| file.at("state"));
            found = tree;
            keys.push("tree".to_owned());
        }
        let place = Place {
            file: path.as_str().into(),
            keys,
        };
        Ok(Target {
            place,
            json: found.clone(),
            state,
        })
    }

    /// Reads a text that is not blank.
    fn text(&mut self, place: &Place, members: &Map<String, Json>, key: &str) -> Option<String> {
        let message = match members.get(key) {
            Some(Json::String(text)) if !text.trim().is_empty() => return Some(text.clone()),
            Some(Json::String(_)) => "must not be empty",
            None | Some(Json::Null) => "is missing",
            Some(_) => "must be a text",
        };
        let found = members.get(key).unwrap_or(&Json::Null);
        self.wrong(&place.at(key), found, message);
        None
    }

    /// Warns about members without a meaning.
    fn keys(&mut self, place: &Place, members: &Map<String, Json>, known: &[&str]) {
        for key in members.keys().filter(|key| !known.contains(&key.as_str())) {
            self.warn(&place.at(key), "is not used");
        }
    }

    /// Reports a value of the wrong kind. People who find a `$ref` in its place learn where references may be.
    fn wrong(&mut self, place: &Place, found: &Json, message: &str) {
        match found.get("$ref") {
            Some(_) => self.problem(
                place,
                &format!(
                    "{message}; a `$ref` can only be in place of a node, so write the value here"
                ),
            ),
            None => self.problem(place, message),
        }
    }

    fn warn(&mut self, place: &Place, message: &str) {
        let line = self.line(place, message);
        if self.warnings.len() < PROBLEMS_MAX && !self.warnings.contains(&line) {
            self.warnings.push(line);
        }
    }

    fn problem(&mut self, place: &Place, message: &str) {
        let line = self.line(place, message);
        // The problems of a part that is referenced twice are reported once.
        if self.problems.len() < PROBLEMS_MAX && !self.problems.contains(&line) {
            self.problems.push(line);
        }
    }

    fn line(&self, place: &Place, message: &str) -> String {
        let keys = match place.keys.is_empty() {
            true => "(root)".to_owned(),
            false => place.keys.join("."),
        };
        match *place.file == *self.main {
            true => format!("{keys}: {message}"),
            false => format!("{}#{keys}: {message}", place.file),
        }
    }
}

/// Returns a whole number; `2.0` is one, too.
fn whole(value: &Json) -> Option<u64> {
    let from_float = |number: f64| match number.fract() == 0.0 && (0.0..1e15).contains(&number) {
        true => Some(number as u64),
        false => None,
    };
    value
        .as_u64()
        .or_else(|| value.as_f64().and_then(from_float))
}

/// Tells whether the root of a file is a wrapper, not a node.
fn is_wrapper(members: &Map<String, Json>) -> bool {
    members.contains_key("tree") || !(members.contains_key("type") || members.contains_key("$ref"))
}

/// Decodes `%20` and similar escapes.
pub(super) fn decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let digits = after
            .get(..2)
            .and_then(|digits| std::str::from_utf8(digits).ok());
        let byte = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match (first, byte) {
            (b'%', Some(byte)) => {
                bytes.push(byte);
                rest = after.get(2..).unwrap_or_default();
            }
            _ => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Shortens a value to at most one line of a message.
fn cut(value: &Json) -> String {
    let text = value.to_string();
    match text.char_indices().nth(40) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text,
    }
}
