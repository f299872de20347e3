//! Paths: which rows cover which, and what no row covers unless it names it.

use std::path::{Component, Path};

/// Names that a row for a folder around them does not cover: Flowstone's own data, the history of a repository, and
/// the file of secrets.
pub const PROTECTED: [&str; 3] = [".env", ".flowstone", ".git"];

/// Tells whether a path component is protected wherever it occurs.
pub fn is_protected(component: &str) -> bool {
    // Some file systems do not tell upper from lower case.
    PROTECTED
        .iter()
        .any(|name| name.eq_ignore_ascii_case(component))
}

/// Tells whether a row covers a path. Both are absolute, with links resolved.
pub(super) fn covers(row: &Path, path: &Path, home: &Path) -> bool {
    let Ok(rest) = path.strip_prefix(row) else {
        return false;
    };
    let is_plain = |part: Component<'_>| match part {
        Component::Normal(name) => !is_protected(&name.to_string_lossy()),
        Component::CurDir => true,
        Component::ParentDir | Component::RootDir | Component::Prefix(_) => false,
    };
    if !rest.components().all(is_plain) {
        return false;
    }
    let is_at_home = !home.as_os_str().is_empty() && path.starts_with(home);
    !is_at_home || row.starts_with(home)
}
