//! Paths into the stores of a tree, and the limits of writing there.

use serde_json::{Map, Value as Json};

use super::error::TreeError;

/// Keys that have a special meaning in programs of other languages.
const REFUSED: &[&str] = &["__proto__", "constructor", "prototype"];
/// Maximum size of `$VAR`, as JSON, in bytes.
const STORE_MAX: usize = 256 << 10;
/// Maximum size of a note or a thought, in bytes.
const NOTE_MAX: usize = 16 << 10;
/// Maximum number of keys of a path.
const KEYS_MAX: usize = 32;
/// Maximum nesting depth of `$VAR`, so that it fits into documents and answers.
const DEPTH_MAX: usize = 100;

/// A store of a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Store {
    Var,
    Const,
}

impl Store {
    /// The names of a store in the texts of trees; a path may begin with one.
    fn names(self) -> [&'static str; 2] {
        match self {
            Store::Var => ["$VAR", "$LOCAL"],
            Store::Const => ["$CONST", "$GLOBAL"],
        }
    }
}

/// Returns the keys of a dotted path in a store: `a.b`, or `$VAR.a.b`. A path that only names the store has no keys.
///
/// # Errors
/// [`TreeError::BadPath`] when a key is empty or refused, there are too many, or the path names the other store.
pub(super) fn keys(path: &str, store: Store) -> Result<Vec<&str>, TreeError> {
    let bad = |why: String| TreeError::BadPath {
        store: store.names()[0],
        path: path.chars().take(200).collect(),
        why,
    };
    let mut keys: Vec<&str> = path.split('.').collect();
    for other in [Store::Var, Store::Const] {
        match keys.first().filter(|first| other.names().contains(first)) {
            Some(_) if other == store => drop(keys.remove(0)),
            Some(first) => return Err(bad(format!("`{first}` is another store"))),
            None => {}
        }
    }
    check_keys(&keys).map_err(bad)?;
    Ok(keys)
}

/// Checks the keys of a path.
///
/// # Errors
/// The reason why they name no place in a store.
fn check_keys(keys: &[&str]) -> Result<(), String> {
    if keys.len() > KEYS_MAX {
        return Err(format!("it has more than {KEYS_MAX} keys"));
    }
    for key in keys {
        if key.is_empty() {
            return Err("a key is empty".to_owned());
        }
        if REFUSED.contains(key) {
            return Err(format!("the key `{key}` is refused"));
        }
    }
    Ok(())
}

/// Checks the keys of a path to `$VAR` that are already apart.
///
/// # Errors
/// [`TreeError::BadPath`], also for a key with a dot: no path of a driver could name that place again.
pub(super) fn check_apart(keys: &[&str]) -> Result<(), TreeError> {
    let dotted = keys.iter().find(|key| key.contains('.'));
    let checked = match dotted {
        Some(key) => Err(format!("the key `{key}` has a dot")),
        None => check_keys(keys),
    };
    checked.map_err(|why| TreeError::BadPath {
        store: Store::Var.names()[0],
        path: keys.join(" ").chars().take(200).collect(),
        why,
    })
}

/// Returns the value at a path of a store; null if the path does not exist.
pub(super) fn read(store: &Json, keys: &[&str]) -> Json {
    let mut found = store;
    for key in keys {
        let next = match found {
            Json::Object(members) => members.get(*key),
            Json::Array(items) => index(key).and_then(|idx| items.get(idx)),
            _ => None,
        };
        match next {
            Some(next) => found = next,
            None => return Json::Null,
        }
    }
    found.clone()
}

/// Checks that a value can be written at a path of a store.
///
/// # Errors
/// [`TreeError::BadPath`] when a list on the way has no such place or the value has a refused key, and
/// [`TreeError::TooLarge`] when the store would become too large.
pub(super) fn check_write(store: &Json, keys: &[&str], value: &Json) -> Result<(), TreeError> {
    let path = keys.join(".");
    let bad = |why: String| TreeError::BadPath {
        store: Store::Var.names()[0],
        path: path.clone(),
        why,
    };
    if keys.is_empty() {
        return Err(bad("it names no place in the store".to_owned()));
    }
    if let Some(key) = refused_key(value) {
        return Err(bad(format!(
            "the value has the key `{key}`, which is refused"
        )));
    }
    if keys.len() + depth(value) > DEPTH_MAX {
        return Err(bad(format!(
            "the value would be nested deeper than {DEPTH_MAX} levels"
        )));
    }
    let mut found = store;
    for key in keys {
        let next = match found {
            Json::Object(members) => members.get(*key),
            Json::Array(items) => match index(key).filter(|idx| *idx <= items.len()) {
                Some(idx) => items.get(idx),
                None => {
                    let count = items.len();
                    return Err(bad(format!(
                        "`{key}` is not an index of a list of {count} items"
                    )));
                }
            },
            _ => None,
        };
        found = next.unwrap_or(&Json::Null);
    }
    let size = size(store).saturating_sub(size(found)) + size(value) + path.len();
    check_size("$VAR", size, STORE_MAX)
}

/// Checks the size of a note or a thought, and trims it.
///
/// # Errors
/// [`TreeError::TooLarge`], and [`TreeError::Argument`] for an empty one.
pub(super) fn note<'a>(name: &'static str, text: &'a str) -> Result<&'a str, TreeError> {
    check_size(name, text.len(), NOTE_MAX)?;
    match text.trim() {
        "" => Err(TreeError::Argument {
            name,
            why: "must not be empty".to_owned(),
        }),
        text => Ok(text),
    }
}

/// Checks the size of `$VAR` as a whole.
///
/// # Errors
/// [`TreeError::TooLarge`].
pub(super) fn check_store(var: &Json) -> Result<(), TreeError> {
    check_size("$VAR", size(var), STORE_MAX)
}

fn check_size(what: &'static str, size: usize, most: usize) -> Result<(), TreeError> {
    match size > most {
        true => Err(TreeError::TooLarge { what, size, most }),
        false => Ok(()),
    }
}

fn size(value: &Json) -> usize {
    serde_json::to_string(value).map_or(usize::MAX / 4, |text| text.len())
}

/// Returns the number of lists and objects around the innermost value.
fn depth(value: &Json) -> usize {
    let inner = match value {
        Json::Object(members) => members.values().map(depth).max(),
        Json::Array(items) => items.iter().map(depth).max(),
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => return 0,
    };
    1 + inner.unwrap_or(0)
}

/// Returns the index that a key is: digits without a leading zero, as `flow.tree/written` reads them.
fn index(key: &str) -> Option<usize> {
    let is_padded = key.len() > 1 && key.starts_with('0');
    let is_number = !is_padded && key.len() <= 9 && key.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| key.parse().ok())?
}

/// Returns the first refused key in a value.
pub(super) fn refused_key(value: &Json) -> Option<&str> {
    match value {
        Json::Object(members) => refused_of(members),
        Json::Array(items) => items.iter().find_map(refused_key),
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => None,
    }
}

fn refused_of(members: &Map<String, Json>) -> Option<&str> {
    members
        .iter()
        .find_map(|(key, value)| match REFUSED.contains(&key.as_str()) {
            true => Some(key.as_str()),
            false => refused_key(value),
        })
}
