//! Where the texts of a flow come from: the disk when it starts, the stored program when it goes on.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use crate::rooted::Root;

/// Gives the texts that `#flow/include` names. Paths are relative to the folder of the main file.
pub trait FlowFiles {
    /// Returns the text of a file.
    ///
    /// # Errors
    /// Words that say why not.
    fn read(&self, path: &str) -> Result<String, String>;
}

/// Larger files are not included: the text of a program is kept with each run.
const MOST_TEXT: u64 = 64_000_000;

/// Files below a folder.
#[derive(Debug, Clone)]
pub struct DiskFiles {
    root: PathBuf,
}

impl DiskFiles {
    pub fn below(root: impl Into<PathBuf>) -> DiskFiles {
        DiskFiles { root: root.into() }
    }
}

impl FlowFiles for DiskFiles {
    fn read(&self, path: &str) -> Result<String, String> {
        let words = |error: std::io::Error| match error.kind() {
            std::io::ErrorKind::NotFound => "there is no such file".to_owned(),
            std::io::ErrorKind::InvalidData => "it is not UTF-8 text".to_owned(),
            std::io::ErrorKind::PermissionDenied if error.raw_os_error().is_none() => {
                "it lies outside the folder of the flow".to_owned()
            }
            _ => error.to_string(),
        };
        let root = Root::open(&self.root).map_err(words)?;
        let file = root.path().join(path);
        tracing::debug!(target: "flowstone::files", path = %file.display(), "read");
        if std::fs::metadata(&file).is_ok_and(|facts| facts.len() > MOST_TEXT) {
            return Err(format!("it is larger than {} MB", MOST_TEXT / 1_000_000));
        }
        root.read_inside(path).map_err(words)
    }
}

/// The texts of a stored program.
#[derive(Debug, Clone, Default)]
pub struct StoredFiles(pub BTreeMap<String, String>);

impl FlowFiles for StoredFiles {
    fn read(&self, path: &str) -> Result<String, String> {
        self.0
            .get(path)
            .cloned()
            .ok_or_else(|| "it is not part of the stored program".to_owned())
    }
}

/// Returns the path of an included file, relative to the folder of the main one.
pub(super) fn join(including: &str, path: &str) -> Result<String, String> {
    if path.is_empty() {
        return Err("the path is empty".to_owned());
    }
    if Path::new(path).is_absolute() || path.contains('\\') || path.contains('\0') {
        return Err("the path must be relative and use `/`".to_owned());
    }
    let mut parts: Vec<String> = Path::new(including)
        .parent()
        .map(|parent| {
            parent
                .components()
                .map(|part| part.as_os_str().to_string_lossy().into_owned())
                .collect()
        })
        .unwrap_or_default();
    for part in Path::new(path).components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                if parts.pop().is_none() {
                    return Err("the path leaves the folder of the flow".to_owned());
                }
            }
            Component::Normal(name) => parts.push(name.to_string_lossy().into_owned()),
            Component::Prefix(_) | Component::RootDir => {
                return Err("the path must be relative and use `/`".to_owned());
            }
        }
    }
    Ok(parts.join("/"))
}
