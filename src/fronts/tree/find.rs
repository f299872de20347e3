//! Finds the tree files of a project.

use std::ops::ControlFlow;
use std::path::Path;

use flowstone_engine::rooted::Root;
use serde_json::Value as Json;

use super::file::Files;
use super::node::Composite;

/// The folders of a project that are searched for trees.
const FOLDERS: &[&str] = &["trees", "flows"];
/// Maximum depth below these folders.
const DEPTH: usize = 6;
/// Maximum number of entries that are inspected.
const ENTRIES_MAX: usize = 2_000;

/// Tells whether a project has a tree file in its folder `trees` or `flows`.
pub fn has_trees(project: &Path) -> bool {
    let found = walk(project, &mut |_| ControlFlow::Break(()));
    found.is_break()
}

/// Returns the tree files in the folders `trees` and `flows` of a project, as paths from its folder, sorted. A file that only
/// other trees refer to is a tree, too.
pub fn tree_files(project: &Path) -> Vec<String> {
    let mut found = Vec::new();
    // It goes through everything.
    let _ = walk(project, &mut |path| {
        found.push(path.to_owned());
        ControlFlow::Continue(())
    });
    found.sort();
    found
}

/// Calls a function with each tree file, until it breaks off.
fn walk(project: &Path, each: &mut dyn FnMut(&str) -> ControlFlow<()>) -> ControlFlow<()> {
    let Ok(files) = Files::below(project) else {
        return ControlFlow::Continue(());
    };
    let mut walk = Walk {
        project,
        files,
        left: ENTRIES_MAX,
        each,
    };
    FOLDERS
        .iter()
        .try_for_each(|folder| walk.folder(folder, DEPTH))
}

struct Walk<'a> {
    project: &'a Path,
    files: Files,
    /// The number of entries that may still be looked at.
    left: usize,
    each: &'a mut dyn FnMut(&str) -> ControlFlow<()>,
}

impl Walk<'_> {
    fn folder(&mut self, folder: &str, depth: usize) -> ControlFlow<()> {
        let is_folder = Root::open(self.project)
            .and_then(|root| root.metadata(folder))
            .is_ok_and(|found| found.is_dir());
        let entries = match is_folder {
            true => std::fs::read_dir(self.project.join(folder)),
            false => return ControlFlow::Continue(()),
        };
        for entry in entries.into_iter().flatten().flatten() {
            let name = entry.file_name();
            let Some(name) = name.to_str().filter(|name| !name.starts_with('.')) else {
                continue;
            };
            if self.left == 0 {
                break;
            }
            self.left -= 1;
            let path = format!("{folder}/{name}");
            match entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                true if depth > 0 => self.folder(&path, depth - 1)?,
                true => {}
                false if is_tree(&mut self.files, &path) => (self.each)(&path)?,
                false => {}
            }
        }
        ControlFlow::Continue(())
    }
}

/// Tells whether a file of a project has the members of a tree, valid or not.
pub fn is_tree_file(project: &Path, path: &Path) -> bool {
    let Ok(mut files) = Files::below(project) else {
        return false;
    };
    match files.path_of(path, "") {
        Ok(inside) => is_tree(&mut files, &inside),
        Err(_) => false,
    }
}

pub(super) fn is_tree(files: &mut Files, path: &str) -> bool {
    let named = [".yaml", ".yml", ".json"];
    if !named.iter().any(|end| path.ends_with(end)) {
        return false;
    }
    let Ok(json) = files.get(path) else {
        return false;
    };
    let is_node = |node: &Json| {
        let kind = node["type"].as_str().unwrap_or_default();
        let is_composite = Composite::NAMES.iter().any(|(_, name)| *name == kind);
        let list = if is_composite { "children" } else { "steps" };
        (is_composite || kind == "action") && node[list].is_array()
    };
    is_node(&json) || is_node(&json["tree"])
}
