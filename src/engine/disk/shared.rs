//! The folders with code that flows of a project share: `:paths` and `:deps` of its settings.

use std::fs;
use std::path::{Path, PathBuf};

use flowstone_lang::value::Value;

use flowstone_flow::dependencies::dependencies;

use crate::libraries::{LibraryFiles, LibraryText, paths_of};
use crate::permission::has_protected;
use crate::rooted::Root;

/// Maximum number of names that are listed, and depth of the folders.
const NAMES: usize = 2_000;
const DEPTH: usize = 16;

/// The folders of shared code of a project.
#[derive(Debug, Clone, Default)]
pub struct SharedCode {
    /// What a person calls each folder, and where it is.
    folders: Vec<(String, PathBuf)>,
    /// The dependencies whose files are not here.
    missing: Vec<String>,
}

impl SharedCode {
    /// Returns the folders that the settings of a project name.
    pub fn of(root: &Path, settings: &Value) -> SharedCode {
        let mut folders = Vec::new();
        if let Some(Value::Vector(paths)) = settings.get("paths") {
            for path in paths.iter().filter_map(Value::as_str) {
                folders.push((path.to_owned(), root.join(path)));
            }
        }
        let mut missing = Vec::new();
        // What is wrong with them is reported when the settings are read.
        for dependency in dependencies(settings).unwrap_or_default() {
            match dependency.folder(root).filter(|folder| folder.is_dir()) {
                Some(folder) => folders.push((dependency.name, folder)),
                None => missing.push(dependency.name),
            }
        }
        SharedCode { folders, missing }
    }

    /// Returns where the folders are.
    pub fn paths(&self) -> Vec<PathBuf> {
        self.folders.iter().map(|(_, path)| path.clone()).collect()
    }
}

impl LibraryFiles for SharedCode {
    fn find(&self, name: &str) -> Result<Option<LibraryText>, String> {
        for (_, folder) in &self.folders {
            let Ok(root) = Root::open(folder) else {
                continue;
            };
            for path in paths_of(name) {
                if !root.path().join(&path).exists() {
                    continue;
                }
                if has_protected(Path::new(&path)) {
                    return Err("its file may hold secrets".to_owned());
                }
                let text = root.read_following_links(&path);
                let text = text.map_err(|error| error.to_string())?.into();
                return Ok(Some(LibraryText { path, text }));
            }
        }
        match self.missing.first() {
            Some(name) => Err(format!(
                "it is in no folder of the project, and the dependency {name} is not here: `flowstone deps` fetches it"
            )),
            None => Ok(None),
        }
    }

    fn folders(&self) -> Vec<String> {
        self.folders.iter().map(|(name, _)| name.clone()).collect()
    }

    fn names(&self) -> Vec<String> {
        let mut names = Vec::new();
        for (_, folder) in &self.folders {
            walk((folder, DEPTH), "", &mut names);
        }
        names
    }
}

/// Returns the names of the namespaces in a folder.
pub fn namespaces_in(folder: &Path) -> Vec<String> {
    let mut names = Vec::new();
    walk((folder, DEPTH), "", &mut names);
    names
}

/// Adds the names of the namespaces below a folder.
fn walk((folder, depth): (&Path, usize), before: &str, names: &mut Vec<String>) {
    let Ok(entries) = fs::read_dir(folder) else {
        return;
    };
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    for path in paths {
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        let stem = stem.replace('_', "-");
        let ending = path.extension().unwrap_or_default();
        if names.len() >= NAMES || depth == 0 || stem.starts_with('.') {
            continue;
        }
        let name = format!("{before}{stem}");
        if path.is_dir() {
            walk((&path, depth - 1), &format!("{name}."), names);
        } else if ending == "clj" || ending == "cljc" {
            names.push(name);
        }
    }
}
