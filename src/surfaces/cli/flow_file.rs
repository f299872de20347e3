//! Finds the file of a flow from an argument: a path, or the name of a flow of the project.

use std::env;
use std::path::{Path, PathBuf};

use flowstone_engine::disk::{NotNamed, named};

use super::report::Report;

/// Returns the file for an argument. A path that does not exist is returned as it is; reading it reports the error.
///
/// # Errors
/// When it is a folder, or when no flow or several flows of the project have this name.
pub fn find(typed: &Path, root: &Path) -> Result<PathBuf, Report> {
    if typed.is_dir() {
        let shown = typed.display();
        return Err(
            Report::error("E0400", format!("{shown} is a folder, not a flow file")).hint(
                "name one of the flows in it; `flowstone check` and `flowstone test` take folders",
            ),
        );
    }
    let name = typed.to_str().filter(|name| is_name(name));
    let Some(name) = name.filter(|_| !typed.exists()) else {
        return Ok(typed.to_path_buf());
    };
    match named(root, name) {
        Ok(path) => Ok(shortened(path)),
        Err(NotNamed::Missing { near }) => {
            let message =
                format!("there is no file `{name}`, and the project has no flow of that name");
            let report = Report::error("E0400", message);
            Err(match near {
                Some(near) => report.hint(format!("did you mean `{near}`?")),
                None => report.hint(
                    "a flow is found by its path, by the name of its file, or by its `:slug`",
                ),
            })
        }
        Err(NotNamed::Several { paths }) => {
            let paths: Vec<String> = paths
                .into_iter()
                .map(|path| shortened(path).display().to_string())
                .collect();
            let message = format!("several flows of the project are called `{name}`");
            Err(Report::error("E0400", message)
                .hint(format!("name one file: {}", paths.join(", "))))
        }
    }
}

/// Returns an argument that may be the name of a flow, whatever else is called so.
pub fn name(typed: &Path) -> Option<&str> {
    typed.to_str().filter(|name| is_name(name))
}

/// Tells whether a text may be the name of a flow: not a path, and without a file extension.
fn is_name(text: &str) -> bool {
    text.starts_with(|char: char| char.is_ascii_alphabetic())
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
}

/// Returns the name of a flow file in its program: the path from the project's folder, however the file was named. A file
/// outside of the project keeps its path as it was typed.
pub fn name_in_project(file: &Path, root: &Path) -> String {
    let inside = file.canonicalize().ok().and_then(|file| {
        let root = root.canonicalize().ok()?;
        Some(file.strip_prefix(root).ok()?.to_path_buf())
    });
    inside.as_deref().unwrap_or(file).display().to_string()
}

/// Returns a path relative to the current folder, if it is inside.
fn shortened(path: PathBuf) -> PathBuf {
    let inside = env::current_dir()
        .ok()
        .and_then(|current| path.strip_prefix(current).ok().map(Path::to_path_buf));
    inside.unwrap_or(path)
}
