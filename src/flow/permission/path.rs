//! Coverage of paths by rows, and the names that no row covers unless it names them.

use std::path::{Component, Path};

/// Names that a row for an enclosing folder does not cover: Flowstone's own data, the history of a repository, and the
/// file of secrets with its variants.
pub const PROTECTED: [&str; 3] = [".env", ".flowstone", ".git"];

/// The project's settings, which contain the permissions of its flows. They may always be read, but are written only if
/// a row names them.
pub(super) const SETTINGS: &str = "flowstone.edn";

/// Tells whether a path component is protected wherever it occurs.
pub fn is_protected(component: &str) -> bool {
    // Some file systems are not case-sensitive.
    is_environment(component)
        || PROTECTED
            .iter()
            .any(|name| name.eq_ignore_ascii_case(component))
}

/// Tells whether a part of a path is protected wherever it occurs.
pub fn has_protected(path: &Path) -> bool {
    let mut parts = path.components();
    parts.any(|part| is_protected(&part.as_os_str().to_string_lossy()))
}

/// Tells whether a part of a path is protected from being written.
pub fn has_write_protected(path: &Path) -> bool {
    let mut parts = path.components();
    parts.any(|part| is_write_protected(&part.as_os_str().to_string_lossy()))
}

/// Tells whether a path component is protected from being written.
pub fn is_write_protected(component: &str) -> bool {
    is_protected(component) || component.eq_ignore_ascii_case(SETTINGS)
}

/// Tells whether a file contains the secrets of an environment, by its name: `.env`, `.env.local`. Example files
/// contain none.
pub fn is_environment(name: &str) -> bool {
    const EXAMPLES: &[&str] = &[".dist", ".example", ".sample", ".template"];
    let name = name.to_ascii_lowercase();
    let rest = name.strip_prefix(".env");
    rest.is_some_and(|rest| {
        (rest.is_empty() || rest.starts_with('.')) && !EXAMPLES.iter().any(|it| rest.ends_with(it))
    })
}

/// Tells whether a row covers a path, except below names for which `is_kept` is true. Both are absolute, with links
/// resolved.
pub(super) fn covers(row: &Path, path: &Path, home: &Path, is_kept: fn(&str) -> bool) -> bool {
    let Ok(rest) = path.strip_prefix(row) else {
        return false;
    };
    let is_plain = |part: Component<'_>| match part {
        Component::Normal(name) => !is_kept(&name.to_string_lossy()),
        Component::CurDir => true,
        Component::ParentDir | Component::RootDir | Component::Prefix(_) => false,
    };
    if !rest.components().all(is_plain) {
        return false;
    }
    let is_at_home = !home.as_os_str().is_empty() && path.starts_with(home);
    !is_at_home || row.starts_with(home)
}
