//! Finds out whether a project has tree files.

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
    let Ok(mut files) = Files::below(project) else {
        return false;
    };
    let mut left = ENTRIES_MAX;
    FOLDERS
        .iter()
        .any(|folder| is_in(project, &mut files, folder, (DEPTH, &mut left)))
}

fn is_in(
    project: &Path,
    files: &mut Files,
    folder: &str,
    (depth, left): (usize, &mut usize),
) -> bool {
    let is_folder = Root::open(project)
        .and_then(|root| root.metadata(folder))
        .is_ok_and(|found| found.is_dir());
    let entries = match is_folder {
        true => std::fs::read_dir(project.join(folder)),
        false => return false,
    };
    for entry in entries.into_iter().flatten().flatten() {
        let name = entry.file_name();
        let Some(name) = name.to_str().filter(|name| !name.starts_with('.')) else {
            continue;
        };
        if *left == 0 {
            return false;
        }
        *left -= 1;
        let path = format!("{folder}/{name}");
        let kind = entry.file_type();
        let found = match kind.is_ok_and(|kind| kind.is_dir()) {
            true => depth > 0 && is_in(project, files, &path, (depth - 1, &mut *left)),
            false => is_tree(files, &path),
        };
        if found {
            return true;
        }
    }
    false
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
