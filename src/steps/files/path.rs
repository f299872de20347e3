//! Paths inside a source tree: relative, separated by `/`, and unable to leave it.
//!
//! Pure text: nothing here accesses a disk, so a path has the same meaning on every system.

use super::error::FilesError;

/// Returns `path` in its normal form (`a/b.txt`; empty for the root), or the reason why it is rejected.
///
/// `.` and doubled slashes are dropped. Everything that could refer to something outside the tree, or to the
/// repository's own files, is rejected and not repaired.
pub fn normal(path: &str) -> Result<String, FilesError> {
    let refuse = |why| {
        Err(FilesError::BadPath {
            path: path.to_string(),
            why,
        })
    };
    if path.contains('\0') {
        return refuse("it holds a NUL character");
    }
    if path.contains('\\') {
        return refuse("it holds a backslash; separate the parts with `/`");
    }
    if path.starts_with('/') {
        return refuse("it is absolute; paths are relative to the source");
    }
    if has_drive(path) {
        return refuse("it names a drive; paths are relative to the source");
    }
    let mut parts = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => return refuse("`..` would leave the source"),
            part if is_reserved(part) => {
                return refuse("`.git` and `.flowstone` are not part of a source");
            }
            part => parts.push(part),
        }
    }
    Ok(parts.join("/"))
}

/// Returns the normal form of a path that may be written: one that no file system and no git interprets differently.
pub fn writable(path: &str) -> Result<String, FilesError> {
    let normal = normal(path)?;
    let refuse = |why| {
        Err(FilesError::BadPath {
            path: path.to_string(),
            why,
        })
    };
    if normal.is_empty() {
        return refuse("it names the source itself");
    }
    if path.ends_with('/') {
        return refuse("it ends with `/`, as a folder does");
    }
    if normal.len() > MAX_PATH {
        return refuse("it has more than 4096 bytes");
    }
    for part in normal.split('/') {
        if part.len() > MAX_NAME {
            return refuse("a part of it has more than 255 bytes");
        }
        if is_disguised(part) {
            return refuse("some systems take a part of it for `.git` or `.flowstone`");
        }
    }
    Ok(normal)
}

/// Maximum lengths in bytes of a path, and of each part of it.
const MAX_PATH: usize = 4096;
const MAX_NAME: usize = 255;

/// Tells whether some file system reads a name as a reserved one: some ignore case, dots and spaces at the end, text
/// after a colon, or invisible characters, and some have short names.
pub fn is_disguised(name: &str) -> bool {
    let seen: String = name.chars().filter(|char| !is_unseen(*char)).collect();
    let stem = seen.split(':').next().unwrap_or_default();
    let stem = stem.trim_end_matches(['.', ' ']).to_lowercase();
    let is_short = |stem: &str, start: &str| {
        stem.strip_prefix(start)
            .is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|it| it.is_ascii_digit()))
    };
    is_reserved(&stem) || is_short(&stem, "git~") || is_short(&stem, "flowst~")
}

/// Tells whether HFS+ ignores a character in names.
fn is_unseen(char: char) -> bool {
    matches!(char,
        '\u{200c}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{206a}'..='\u{206f}' | '\u{feff}')
}

/// Returns the target of a link in the folder of `at`, or `None` if it is outside the tree.
pub fn link_target(at: &str, target: &str) -> Option<String> {
    if target.is_empty()
        || target.starts_with('/')
        || target.contains(['\0', '\\'])
        || has_drive(target)
    {
        return None;
    }
    let mut parts: Vec<&str> = match at.rsplit_once('/') {
        Some((folder, _)) => folder.split('/').collect(),
        None => Vec::new(),
    };
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            part if is_disguised(part) => return None,
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

/// Tells whether a name is never part of a tree, on any file system (some ignore case).
pub fn is_reserved(name: &str) -> bool {
    name.eq_ignore_ascii_case(".git") || name.eq_ignore_ascii_case(".flowstone")
}

fn has_drive(path: &str) -> bool {
    let mut chars = path.chars();
    chars
        .next()
        .is_some_and(|first| first.is_ascii_alphabetic())
        && chars.next() == Some(':')
}
