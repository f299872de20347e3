//! The files of the repository, without what a build or a run leaves behind.

use std::fs;
use std::path::{Path, PathBuf};

const SKIPPED: &[&str] = &[
    ".git",
    ".flowstone",
    "target",
    "node_modules",
    "__pycache__",
];

/// Returns the folder of the repository.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Returns the files below a folder of the repository that end in one of `extensions`, sorted, each as its path from the
/// root. No folder: nothing.
pub fn files(folder: &str, extensions: &[&str]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![root().join(folder)];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            let name = entry.file_name().to_string_lossy().into_owned();
            if path.is_dir() {
                if !SKIPPED.contains(&name.as_str()) {
                    folders.push(path);
                }
            } else if extensions.iter().any(|wanted| name.ends_with(wanted)) {
                let path = path.strip_prefix(root()).expect("below the root");
                found.push(path.to_path_buf());
            }
        }
    }
    found.sort();
    found
}

/// Returns the text of a file, given from the root.
pub fn text(path: impl AsRef<Path>) -> String {
    let path = root().join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Fails with all that was found wrong.
#[track_caller]
pub fn none(problems: Vec<String>) {
    assert!(problems.is_empty(), "\n{}\n", problems.join("\n"));
}
