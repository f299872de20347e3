//! Handles: the address that a driver chooses for a run, and the name under which the store knows it.

use std::path::{Component, Path, PathBuf};

use flowstone_engine::ids::RunId;
use flowstone_flow::permission::has_write_protected;

use super::check::decoded;
use super::error::TreeError;

/// The address of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Handle {
    /// The text, as the driver writes it.
    pub uri: String,
    pub(super) kind: HandleKind,
    /// Whether it may be only the beginning of a run's id: a text without a scheme, on the command line.
    pub(super) may_be_short: bool,
}

/// The target of a handle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum HandleKind {
    /// A document below the project's folder, by its relative path.
    File(String),
    /// A name that is known only within the server process.
    Memory(String),
    /// A whole name, or the whole id of a run. Empty for the run's own id.
    Run(String),
}

/// The beginning of the names of `memory://` runs; the process follows.
const MEMORY: &str = "tree:memory:";
/// The beginning of the names of `file://` runs; the path of the document follows.
pub const FILE: &str = "tree:file:";
/// The beginning of the names of runs that follow another one of their handle.
const AGAIN: &str = "tree:again:";
/// Maximum length of a handle, in bytes.
const LONGEST: usize = 1_000;

impl Handle {
    /// Reads a handle. `folder`: where relative paths begin. A text without a scheme is the path of a document if it ends
    /// in `.json`, and else the name or id of a run.
    ///
    /// # Errors
    /// [`TreeError::BadHandle`] for another scheme, a path that is not absolute or leads outside the project, and an empty
    /// name.
    pub fn read(text: &str, project: &Path, folder: Option<&Path>) -> Result<Handle, TreeError> {
        let bad = |why: &str| TreeError::BadHandle {
            uri: text.chars().take(200).collect(),
            why: why.to_owned(),
        };
        if text.len() > LONGEST || text.chars().any(char::is_control) {
            return Err(bad("it is too long or has control characters"));
        }
        let named = |name: &str| match name.is_empty() {
            true => Err(bad("the name is empty")),
            false => Ok(name.to_owned()),
        };
        let (uri, kind) = match (text.split_once("://"), folder) {
            (Some(("file", path)), _) => {
                let path = path.strip_prefix("localhost").unwrap_or(path);
                let path = below(project, Path::new(&decoded(path))).map_err(|why| bad(&why))?;
                (text.to_owned(), HandleKind::File(path))
            }
            (Some(("memory", name)), _) => (text.to_owned(), HandleKind::Memory(named(name)?)),
            (Some(("run", name)), _) => (text.to_owned(), HandleKind::Run(name.to_owned())),
            (Some((scheme, _)), _) => {
                return Err(bad(&format!("the scheme {scheme}:// is unknown")));
            }
            (None, Some(folder)) if text.ends_with(".json") => {
                let path = folder.join(text);
                let uri = format!("file://{}", path.display());
                let path = below(project, &path).map_err(|why| bad(&why))?;
                (uri, HandleKind::File(path))
            }
            (None, Some(_)) => (format!("run://{text}"), HandleKind::Run(named(text)?)),
            (None, None) => return Err(bad("it has no scheme")),
        };
        let may_be_short = !text.contains("://");
        Ok(Handle {
            uri,
            kind,
            may_be_short,
        })
    }

    /// Returns the name that the store keeps for a run of this handle. `process`: what distinguishes this process.
    pub(super) fn external_id(&self, process: &str) -> Option<String> {
        match &self.kind {
            HandleKind::File(path) => Some(file_name(path)),
            HandleKind::Memory(name) => Some(format!("{MEMORY}{process}:{name}")),
            HandleKind::Run(name) if name.is_empty() => None,
            HandleKind::Run(name) => Some(run_name(name)),
        }
    }
}

/// Returns the process of the name of a `memory://` run.
pub(super) fn process_of(name: &str) -> Option<String> {
    let (process, _) = name.strip_prefix(MEMORY)?.split_once(':')?;
    Some(process.to_owned())
}

/// Returns the beginning of the names of the runs that follow a run which was reset after its end.
pub(super) fn again(first: &RunId) -> String {
    format!("{AGAIN}{first}")
}

/// Returns the name of the run with a number that followed the first one of a name. Those of a document have its name.
pub(super) fn later(name: &str, first: &RunId, number: u32) -> String {
    match name.starts_with(FILE) {
        true => format!("{name}#{number}"),
        false => format!("{}#{number}", again(first)),
    }
}

/// Returns the id of the first run of a handle from the name of one that followed it.
pub(super) fn first_of(name: &str) -> Option<&str> {
    let (first, _) = name.strip_prefix(AGAIN)?.rsplit_once('#')?;
    Some(first)
}

/// Returns the names that the store may keep for a run that people know under a name: a handle without its scheme.
pub(super) fn names_of(name: &str) -> Vec<String> {
    vec![run_name(name), file_name(name)]
}

fn run_name(name: &str) -> String {
    format!("tree:run:{name}")
}

fn file_name(path: &str) -> String {
    format!("{FILE}{path}")
}

/// Returns the path of a document from the project's folder. Its folder must be there, without links that lead out.
fn below(project: &Path, path: &Path) -> Result<String, String> {
    if !path.is_absolute() {
        return Err("the path is not absolute".to_owned());
    }
    if path.components().any(|part| part == Component::ParentDir) {
        return Err("the path has `..`".to_owned());
    }
    let outside = || "it is outside the project's folder".to_owned();
    let project = std::fs::canonicalize(project).map_err(|error| error.to_string())?;
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(outside());
    };
    let folder = match std::fs::canonicalize(folder) {
        Ok(folder) => folder,
        Err(_) if folder.starts_with(&project) => {
            return Err("its folder does not exist".to_owned());
        }
        Err(_) => return Err(outside()),
    };
    let path: PathBuf = folder.join(name);
    let inside = path.strip_prefix(&project).map_err(|_| outside())?;
    if has_write_protected(inside) {
        return Err("files in or called .flowstone, .git and .env are not for runs".to_owned());
    }
    if inside.extension().is_none_or(|it| it != "json") {
        return Err("the name of a document ends in .json".to_owned());
    }
    let inside = inside.to_str().ok_or_else(outside)?;
    Ok(inside.to_owned())
}
