//! Finding a file of another format that a flow calls: by its path, by the name of the file, or by the name in it.

use std::path::{Component, Path, PathBuf};

use super::find::{DEPTH, FLOWS, Found, list, stem};
use crate::format::{FlowFormat, Formats};
use crate::permission::has_protected;

/// The folders of a project that have called files at any depth.
const FOLDERS: &[&str] = &[FLOWS, "agents", "trees"];

/// A file of another format.
#[derive(Debug, Clone)]
pub struct FoundFormat {
    pub file: Found,
    pub format: &'static dyn FlowFormat,
}

/// Why a path leads to no file that can be called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotCalled {
    /// No file is there. For a name without an extension it says nothing about flow files.
    Missing,
    /// The path leaves the project, or into a folder that flows do not read.
    Outside,
    /// The file has none of the formats.
    OtherFormat,
}

/// Tells whether a name is the path of a file of another format: it has one of their extensions.
pub fn is_path(name: &str, formats: Formats) -> bool {
    let extension = Path::new(name).extension().and_then(|it| it.to_str());
    extension.is_some_and(|extension| {
        let mut known = formats.iter().flat_map(|format| format.extensions());
        known.any(|one| one.eq_ignore_ascii_case(extension))
    })
}

/// Finds a file that is called by its path or by a name. `beside` is the folder of the file that calls.
///
/// # Errors
/// Why no file is found.
pub fn find(
    project_root: &Path,
    beside: Option<&Path>,
    name: &str,
    formats: Formats,
) -> Result<FoundFormat, NotCalled> {
    match is_path(name, formats) {
        true => by_path(project_root, beside, name, formats),
        false => by_name(project_root, beside, name, formats).ok_or(NotCalled::Missing),
    }
}

fn by_path(
    root: &Path,
    beside: Option<&Path>,
    name: &str,
    formats: Formats,
) -> Result<FoundFormat, NotCalled> {
    let plain = |part| matches!(part, Component::Normal(_) | Component::CurDir);
    let given = Path::new(name);
    if !given.components().all(plain) || has_protected(given) {
        return Err(NotCalled::Outside);
    }
    let flows = root.join(FLOWS);
    let folders = beside.into_iter().chain([root, flows.as_path()]);
    let Some((folder, path)) = folders
        .map(|folder| (folder, folder.join(name)))
        .find(|(_, path)| path.is_file())
    else {
        return Err(NotCalled::Missing);
    };
    let inside = |folder: &Path| match (path.canonicalize(), folder.canonicalize()) {
        (Ok(path), Ok(folder)) => {
            let inside = path.strip_prefix(folder);
            inside.is_ok_and(|inside| !has_protected(inside))
        }
        (_, _) => false,
    };
    if !inside(folder) && !inside(root) {
        return Err(NotCalled::Outside);
    }
    recognized(root, path, formats).ok_or(NotCalled::OtherFormat)
}

fn by_name(
    root: &Path,
    beside: Option<&Path>,
    name: &str,
    formats: Formats,
) -> Option<FoundFormat> {
    let extensions: Vec<&str> = formats
        .iter()
        .flat_map(|format| format.extensions().iter().copied())
        .collect();
    let mut files = Vec::new();
    if let Some(folder) = beside {
        list((folder, 0), &extensions, &mut files);
    }
    for folder in FOLDERS {
        list((&root.join(folder), DEPTH), &extensions, &mut files);
    }
    list((root, 0), &extensions, &mut files);
    let named = files.iter().filter(|path| stem(path) == name);
    let by_stem = named
        .cloned()
        .find_map(|path| recognized(root, path, formats));
    by_stem.or_else(|| {
        let others = files.iter().filter(|path| stem(path) != name);
        others.cloned().find_map(|path| {
            let format = formats
                .iter()
                .find(|format| format.name_of(root, &path).as_deref() == Some(name))?;
            Some(found(root, path, *format))
        })
    })
}

/// Returns the file with its format; `None` if it has none of the formats.
pub fn recognized(root: &Path, path: PathBuf, formats: Formats) -> Option<FoundFormat> {
    let format = formats
        .iter()
        .find(|format| format.name_of(root, &path).is_some())?;
    Some(found(root, path, *format))
}

fn found(root: &Path, path: PathBuf, format: &'static dyn FlowFormat) -> FoundFormat {
    FoundFormat {
        file: Found::of(root, &path),
        format,
    }
}
