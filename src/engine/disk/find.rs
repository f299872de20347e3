//! Finding a flow of the project by its name: the file beside the flow that asks, then the project's own.
//!
//! A name is a file's stem or, where no file is called so, the `:slug` in one.

use std::fs;
use std::path::{Path, PathBuf};

use flowstone_flow::flow::file_slug;
use flowstone_lang::session::Session;

use crate::diagnostic::nearest;

/// What flow files end in.
const EXTENSIONS: &[&str] = &["edn", "clj"];
/// The folder of a project's flows.
pub(super) const FLOWS: &str = "flows";
/// No project's flows lie deeper.
pub(super) const DEPTH: usize = 12;
/// No project has more flows: what is beyond is not looked at.
const FILES_MAX: usize = 5000;

/// Where a flow is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    pub path: PathBuf,
    /// What errors call the file: its path from the project's folder.
    pub name: String,
}

impl Found {
    /// Returns a file with its name in a project.
    pub(super) fn of(project_root: &Path, path: &Path) -> Found {
        let name = path.strip_prefix(project_root).unwrap_or(path);
        Found {
            name: name.display().to_string(),
            path: path.to_owned(),
        }
    }
}

/// Finds a flow by its name. `beside` is the folder of the file that asks.
///
/// # Errors
/// The name that is nearest to it, if one is near.
pub fn find(
    project_root: &Path,
    beside: Option<&Path>,
    slug: &str,
) -> Result<Found, Option<String>> {
    let mut files = Vec::new();
    if let Some(folder) = beside {
        list((folder, 0), EXTENSIONS, &mut files);
    }
    list((&project_root.join(FLOWS), DEPTH), EXTENSIONS, &mut files);
    list((project_root, 0), EXTENSIONS, &mut files);
    let found = |path: &Path| Found::of(project_root, path);
    if let Some(path) = files.iter().find(|path| stem(path) == slug) {
        return Ok(found(path));
    }
    let mut has_slug = files.iter().filter(|path| may_be_called(slug, path));
    if let Some(path) = has_slug.find(|path| slug_of(path).as_deref() == Some(slug)) {
        return Ok(found(path));
    }
    let slugs = files.iter().filter_map(|path| slug_of(path)).collect();
    Err(near(slug, &files, slugs))
}

/// Why a name does not lead to one flow of a project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotNamed {
    Missing {
        /// The name that is nearest to it.
        near: Option<String>,
    },
    Several {
        paths: Vec<PathBuf>,
    },
}

/// Returns the one file of a project whose flow has a name: that of the file, or else its `:slug`.
///
/// # Errors
/// When no flow has the name, or several do.
pub fn named(project_root: &Path, name: &str) -> Result<PathBuf, NotNamed> {
    let files = files_of(project_root);
    let one = |mut found: Vec<PathBuf>| match found.len() {
        0 => None,
        1 => found.pop().map(Ok),
        _ => Some(Err(NotNamed::Several { paths: found })),
    };
    let by_stem = files.iter().filter(|path| stem(path) == name);
    if let Some(found) = one(by_stem.cloned().collect()) {
        return found;
    }
    let by_slug = files
        .iter()
        .filter(|path| may_be_called(name, path) && slug_of(path).as_deref() == Some(name));
    one(by_slug.cloned().collect()).unwrap_or_else(|| {
        let slugs = files.iter().filter_map(|path| slug_of(path)).collect();
        Err(NotNamed::Missing {
            near: near(name, &files, slugs),
        })
    })
}

/// Returns the flow files of a project, each once.
pub fn files_of(project_root: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    list((&project_root.join(FLOWS), DEPTH), EXTENSIONS, &mut files);
    list((project_root, 0), EXTENSIONS, &mut files);
    files
}

/// Returns the slugs of a project's flows.
pub fn slugs(project_root: &Path) -> Vec<String> {
    let files = files_of(project_root);
    files.iter().filter_map(|path| slug_of(path)).collect()
}

/// Adds the files of a folder that have one of some extensions, by name; those of the folders in it after them.
pub(super) fn list((folder, depth): (&Path, usize), extensions: &[&str], files: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else {
        return;
    };
    let mut paths: Vec<(PathBuf, bool)> = entries
        .flatten()
        .filter_map(|entry| Some((entry.path(), entry.file_type().ok()?.is_dir())))
        .collect();
    paths.sort();
    for (path, _) in paths.iter().filter(|(_, is_folder)| !is_folder) {
        let extension = path.extension().and_then(|extension| extension.to_str());
        let is_listed = extension.is_some_and(|extension| extensions.contains(&extension));
        if is_listed && files.len() < FILES_MAX && !files.contains(path) {
            files.push(path.clone());
        }
    }
    let Some(depth) = depth.checked_sub(1) else {
        return;
    };
    for (path, _) in paths.iter().filter(|(_, is_folder)| *is_folder) {
        if !stem(path).starts_with('.') {
            list((path, depth), extensions, files);
        }
    }
}

/// Returns the name of a flow that is nearest to another one.
fn near(name: &str, files: &[PathBuf], slugs: Vec<String>) -> Option<String> {
    let names: Vec<String> = files.iter().map(|path| stem(path)).chain(slugs).collect();
    nearest(name, names.iter().map(String::as_str)).map(str::to_owned)
}

pub(super) fn stem(path: &Path) -> String {
    path.file_stem()
        .map(|stem| stem.to_string_lossy().into_owned())
        .unwrap_or_default()
}

/// Tells whether a flow can have a slug: its text contains it, or its file has that name. Reading a text is much cheaper than
/// loading a flow.
fn may_be_called(name: &str, path: &Path) -> bool {
    file_slug(&stem(path)) == name || fs::read_to_string(path).is_ok_and(|text| text.contains(name))
}

fn slug_of(path: &Path) -> Option<String> {
    let checked = super::load(&Session::new(), path, &stem(path));
    let loaded = checked.loaded?;
    Some(loaded.flow.slug.to_string())
}

#[cfg(test)]
mod tests {
    use super::{Found, find};

    #[test]
    fn a_flow_is_found_by_its_file_and_then_by_its_slug() {
        let root = tempfile::tempdir().expect("a folder");
        let root = root.path();
        let write = |name: &str, text: &str| {
            let path = root.join(name);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            std::fs::write(path, text).expect("a file");
        };
        write("flows/deep/mail.edn", "1");
        write(
            "flows/post.edn",
            "{:slug :letter :concurrency {:type :singleton :on-new-version :coexist} :flow '2}",
        );
        write("team/mail.clj", "3");
        write("top.edn", "4");
        write("two words.edn", "5");
        let name = |beside: Option<&str>, slug: &str| {
            let beside = beside.map(|beside| root.join(beside));
            match find(root, beside.as_deref(), slug) {
                Ok(Found { name, .. }) => name,
                Err(near) => format!("{near:?}"),
            }
        };
        assert_eq!(name(None, "mail"), "flows/deep/mail.edn");
        assert_eq!(name(Some("team"), "mail"), "team/mail.clj");
        assert_eq!(name(None, "letter"), "flows/post.edn");
        assert_eq!(name(None, "post"), "flows/post.edn");
        assert_eq!(name(None, "top"), "top.edn");
        assert_eq!(name(None, "two-words"), "two words.edn");
        assert_eq!(name(None, "leter"), "Some(\"letter\")");
        assert_eq!(name(None, "zzzzzz"), "None");
    }
}
