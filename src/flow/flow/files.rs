//! The sources of a flow's texts: the disk when a run starts, the stored program when it resumes.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use crate::libraries::{LibraryFiles, LibraryText, NoLibraries, PREFIX, paths_of};

/// Reads the files that `#flow/include` names. Paths are relative to the folder of the main file.
pub trait FlowFiles {
    /// Returns the text of a file.
    ///
    /// # Errors
    /// A message that states the reason.
    fn read(&self, path: &str) -> Result<String, String>;

    /// Returns the namespaces that flows of the project share.
    fn libraries(&self) -> &dyn LibraryFiles {
        &NoLibraries
    }
}

/// Finds the flows that a flow calls by name.
pub trait Siblings {
    /// Returns the file of a flow; `None` for one that is only in the registry.
    ///
    /// # Errors
    /// The most similar name, if one is similar.
    fn find(&self, slug: &str) -> Result<Option<PathBuf>, Option<String>>;
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

    fn libraries(&self) -> &dyn LibraryFiles {
        self
    }
}

impl LibraryFiles for StoredFiles {
    fn find(&self, name: &str) -> Result<Option<LibraryText>, String> {
        let found = paths_of(name).into_iter().find_map(|path| {
            let text = self.0.get(&format!("{PREFIX}{path}"))?;
            let text = text.as_str().into();
            Some(LibraryText { path, text })
        });
        Ok(found)
    }
}

/// Returns the path of an included file, relative to the folder of the main file.
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
