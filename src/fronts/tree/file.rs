//! Reads the files of a tree below the project's folder, within limits, each file once.

use std::collections::HashMap;
use std::io::Read as _;
use std::path::{Component, Path, PathBuf};
use std::rc::Rc;

use flowstone_engine::rooted::Root;
use flowstone_flow::permission::{PROTECTED, has_protected};
use flowstone_lang::value::Value;
use flowstone_model::json::{items, to_json};
use flowstone_steps::http::yaml;
use serde_json::Value as Json;

use super::elsewhere::Elsewhere;
use crate::json_text;

/// Maximum size of one file, in bytes.
pub(super) const FILE_MAX: u64 = 1 << 20;
/// Maximum number of files of one tree.
pub(super) const FILES_MAX: usize = 256;

/// The files that were read, by their paths below the project's folder.
pub(super) struct Files {
    root: Root,
    read: HashMap<String, Rc<Json>>,
    /// What was read outside the folder; nothing where only the folder counts.
    pub elsewhere: Option<Elsewhere>,
}

impl Files {
    /// Returns a reader of the files below a folder; no file is read yet.
    ///
    /// # Errors
    /// When the folder cannot be opened.
    pub(super) fn below(folder: &Path) -> Result<Files, String> {
        let root = Root::open(folder).map_err(|error| describe(&error))?;
        Ok(Files {
            root,
            read: HashMap::new(),
            elsewhere: None,
        })
    }

    /// Returns the path of a file below the project's folder: of an absolute path, or of one that is relative to `beside`.
    /// Links are not followed here; what they lead to is checked when the file is read. A path outside is absolute, where
    /// files may be elsewhere.
    ///
    /// # Errors
    /// When it lies outside the folder.
    pub(super) fn path_of(&self, path: &Path, beside: &str) -> Result<String, String> {
        let found = self.inside(path, beside);
        if found.is_ok() || self.elsewhere.is_none() {
            return found;
        }
        let folder = Path::new(beside).parent().unwrap_or(Path::new(""));
        plain(&self.root.path().join(folder).join(path)).map_or(found, Ok)
    }

    fn inside(&self, path: &Path, beside: &str) -> Result<String, String> {
        let outside = || format!("`{}` is outside the project's folder", path.display());
        let joined = match path.is_absolute() {
            true => match path.strip_prefix(self.root.path()) {
                Ok(inside) => inside.to_owned(),
                // The path to the folder may contain links.
                Err(_) => {
                    let real = std::fs::canonicalize(path).map_err(|_| outside())?;
                    let inside = real.strip_prefix(self.root.path());
                    inside.map_err(|_| outside())?.to_owned()
                }
            },
            false => {
                let folder = Path::new(beside).parent().unwrap_or(Path::new(""));
                folder.join(path)
            }
        };
        let mut parts = PathBuf::new();
        for part in joined.components() {
            match part {
                Component::Normal(name) => parts.push(name),
                Component::CurDir => {}
                Component::ParentDir if parts.pop() => {}
                Component::ParentDir | Component::RootDir | Component::Prefix(_) => {
                    return Err(outside());
                }
            }
        }
        let path = parts.to_str().ok_or_else(outside)?;
        Ok(path.to_owned())
    }

    /// Returns the contents of a file.
    ///
    /// # Errors
    /// When the file does not exist, a link leads out of the folder, or the file is too large or malformed.
    pub(super) fn get(&mut self, path: &str) -> Result<Rc<Json>, String> {
        if let Some(read) = self.read.get(path) {
            return Ok(read.clone());
        }
        let is_elsewhere = path.contains("://") || path.starts_with('/');
        if let Some(elsewhere) = &mut self.elsewhere {
            let target = match is_elsewhere {
                true => Some(path.to_owned()),
                false => outside(&self.root, path),
            };
            if let Some(target) = target {
                return elsewhere.get(&target);
            }
        } else if is_elsewhere {
            return Err("files outside the project's folder are off".to_owned());
        }
        if self.read.len() >= FILES_MAX {
            return Err(format!("the tree has more than {FILES_MAX} files"));
        }
        let text = self.text(path)?;
        let json = Rc::new(parsed(path, &text)?);
        self.read.insert(path.to_owned(), json.clone());
        Ok(json)
    }

    fn text(&self, path: &str) -> Result<String, String> {
        let secret = || format!("a tree has no part in or called {}", PROTECTED.join(", "));
        if has_protected(Path::new(path)) {
            return Err(secret());
        }
        let real = std::fs::canonicalize(self.root.path().join(path));
        let real = real.map_err(|error| describe(&error))?;
        let inside = real.strip_prefix(self.root.path()).ok();
        let inside = inside.and_then(Path::to_str);
        let inside = inside.ok_or("it leads outside the project's folder")?;
        if has_protected(Path::new(inside)) {
            return Err(secret());
        }
        let file = self.root.file(inside).map_err(|error| describe(&error))?;
        let mut text = String::new();
        let read = file.take(FILE_MAX + 1).read_to_string(&mut text);
        match read.map_err(|error| describe(&error))? as u64 > FILE_MAX {
            true => Err(format!("it has more than {FILE_MAX} bytes")),
            false => Ok(text),
        }
    }
}

/// Returns the file outside a folder that a link in it leads to.
fn outside(root: &Root, path: &str) -> Option<String> {
    let path = Path::new(path);
    let real = std::fs::canonicalize(root.path().join(path)).ok()?;
    let leads_out = !has_protected(path) && !real.starts_with(root.path());
    leads_out.then(|| real.to_str().map(str::to_owned))?
}

/// Returns an absolute path without `.` and `..`.
fn plain(path: &Path) -> Option<String> {
    let mut parts = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(parts.pop().then_some(())?),
            Component::CurDir => {}
            part => parts.push(part),
        }
    }
    parts.to_str().map(str::to_owned)
}

/// Parses a file by its extension.
///
/// # Errors
/// When it is malformed, or has another extension.
pub(super) fn parsed(path: &str, text: &str) -> Result<Json, String> {
    let extension = Path::new(path).extension().and_then(|it| it.to_str());
    match extension.map(str::to_ascii_lowercase).as_deref() {
        Some("json") => json_text::read(text).map_err(|error| error.to_string()),
        Some("yaml" | "yml") => {
            let value = yaml::read(text).map_err(|error| format!("it is not YAML: {error}"))?;
            if let Some(digits) = too_long(&value) {
                return Err(format!(
                    "the integer {digits} has more than 64 bits, so it would be rounded: write it as a text"
                ));
            }
            to_json(&value).map_err(|error| error.to_string())
        }
        _ => Err("the name of a tree file ends in .yaml, .yml or .json".to_owned()),
    }
}

/// Returns the first integer in a value that JSON readers round.
fn too_long(value: &Value) -> Option<String> {
    match value {
        Value::BigInt(_) => {
            let digits = value.to_string();
            let digits = digits.trim_end_matches('N');
            let fits = digits.parse::<i64>().is_ok() || digits.parse::<u64>().is_ok();
            (!fits).then(|| digits.chars().take(100).collect())
        }
        value => match value.as_map() {
            Some(map) => map.iter().find_map(|(_, value)| too_long(value)),
            None => items(value)
                .filter(|_| !matches!(value, Value::Text(_)))
                .and_then(|items| items.iter().find_map(too_long)),
        },
    }
}

fn describe(error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::NotFound => "there is no such file".to_owned(),
        std::io::ErrorKind::InvalidData => "it is not UTF-8 text".to_owned(),
        std::io::ErrorKind::IsADirectory => "it is a folder".to_owned(),
        _ => error.to_string(),
    }
}
