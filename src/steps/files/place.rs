//! Places in the project's folder: which may be written, and how a file is written whole or not at all.

use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use flowstone_flow::rooted::Root;

use super::error::FilesError;
use super::{objects, path};

/// The permissions of a written file.
pub(super) struct Perms {
    #[cfg(unix)]
    mode: Option<u32>,
    executable: Option<bool>,
}

impl Perms {
    /// Returns the permissions of the file that is replaced, if it exists. `executable` sets the executable flag.
    pub(super) fn of(root: &Root, path: &str, executable: Option<bool>) -> Perms {
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            let found = root.metadata(path).ok();
            let found = found.filter(fs::Metadata::is_file);
            Perms {
                mode: found.map(|found| found.permissions().mode() & 0o777),
                executable,
            }
        }
        #[cfg(not(unix))]
        {
            let _ = (root, path);
            Perms { executable }
        }
    }
}

/// Writes a new file, possibly over one that a crash left there, and syncs it.
pub(super) fn write_synced(root: &Root, path: &str, bytes: &[u8], perms: &Perms) -> io::Result<()> {
    match root.remove(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let all = match perms.executable {
        Some(true) => 0o777,
        Some(false) | None => 0o666,
    };
    #[cfg(unix)]
    let all = perms.mode.map_or(all, |mode| mode & all);
    let mut file = root.create(path, all)?;
    file.write_all(bytes)?;
    #[cfg(unix)]
    if let Some(mode) = perms.mode {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = match perms.executable {
            // Everyone with read permission gets execute permission.
            Some(true) if mode & 0o111 == 0 => mode | (mode & 0o444) >> 2,
            Some(false) => mode & !0o111,
            Some(true) | None => mode,
        };
        file.set_permissions(fs::Permissions::from_mode(mode))?;
    }
    file.sync_all()
}

/// Syncs a folder, so that renames in it survive a loss of power. A file system that cannot do so does not fail.
pub(super) fn sync_folder(folder: &Path) {
    #[cfg(unix)]
    if let Ok(folder) = File::open(folder) {
        folder.sync_all().ok();
    }
    #[cfg(not(unix))]
    let _ = folder;
}

/// Returns the place in the project of a folder that a flow names; `.` is the project itself. No part of its path may
/// be a link, and it must not be in the home folder.
pub(super) fn folder(root: &Path, home: &Path, asked: &str) -> Result<PathBuf, FilesError> {
    let trimmed = asked.trim_end_matches('/');
    match !asked.starts_with('/') && !trimmed.is_empty() && path::normal(trimmed)?.is_empty() {
        true => Ok(root.to_path_buf()),
        false => inside(root, home, asked, &path::writable(trimmed)?),
    }
}

/// Returns the place in the project of a file that a flow names: no folder of its path may be a link.
pub(super) fn file(root: &Path, home: &Path, asked: &str) -> Result<PathBuf, FilesError> {
    let normal = path::writable(asked)?;
    let place = match normal.rsplit_once('/') {
        Some((folder, name)) => inside(root, home, asked, folder)?.join(name),
        None => root.join(&normal),
    };
    let refuse = |why: &str| {
        Err(FilesError::BadTarget {
            path: asked.to_string(),
            why: why.to_string(),
        })
    };
    match fs::symlink_metadata(&place) {
        _ if is_inside(home, &place) => refuse(OWN),
        Ok(found) if found.file_type().is_symlink() => refuse("it is a link"),
        Ok(found) if found.is_dir() => refuse("it is a folder"),
        Ok(_) | Err(_) => Ok(place),
    }
}

const OWN: &str = "the project's data is kept there";

fn inside(root: &Path, home: &Path, asked: &str, normal: &str) -> Result<PathBuf, FilesError> {
    let mut place = root.to_path_buf();
    for part in normal.split('/') {
        place.push(part);
        let refuse = |why: &str| {
            Err(FilesError::BadTarget {
                path: asked.to_string(),
                why: why.to_string(),
            })
        };
        match fs::symlink_metadata(&place) {
            _ if is_inside(home, &place) => return refuse(OWN),
            Ok(found) if found.file_type().is_symlink() => return refuse("a part of it is a link"),
            Ok(found) if !found.is_dir() => return refuse("a part of it is a file"),
            Ok(_) | Err(_) => {}
        }
    }
    Ok(place)
}

fn is_inside(home: &Path, place: &Path) -> bool {
    let canonical = |path: &Path| fs::canonicalize(path).ok();
    match (canonical(home), canonical(place)) {
        (Some(home), Some(place)) => place.starts_with(home),
        _ => place.starts_with(home),
    }
}

/// Writes a file below `root`, which is shown as `shown`, so that a reader sees the old or the new content, and a loss
/// of power loses neither. Missing folders are created. An existing file with other content is replaced if `overwrite`
/// is set.
pub(super) fn replace(
    root: &Path,
    (inside, shown): (&str, &str),
    bytes: &[u8],
    overwrite: bool,
) -> Result<(), FilesError> {
    let failed = |error: io::Error| match super::error::is_full(&error) {
        true => FilesError::Full {
            path: shown.to_string(),
        },
        false => FilesError::BadTarget {
            path: shown.to_string(),
            why: super::snapshot::plain(&error),
        },
    };
    let path = path::writable(inside)?;
    let root = Root::open(root).map_err(failed)?;
    match root.file(&path).and_then(|file| is_same(file, bytes)) {
        // An interrupted attempt has already done it.
        Ok(true) => return Ok(()),
        Ok(false) if !overwrite => {
            return Err(FilesError::Taken {
                path: shown.to_string(),
            });
        }
        Ok(false) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(failed(error)),
    }
    let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
    root.make_folders(folder).map_err(failed)?;
    let place = root.path().join(&path);
    let name = &objects::hash(place.as_os_str().as_encoded_bytes())[..12];
    let fresh = match folder {
        "" => format!(".{name}.new"),
        folder => format!("{folder}/.{name}.new"),
    };
    let written = write_synced(&root, &fresh, bytes, &Perms::of(&root, &path, None))
        .and_then(|()| root.rename(&fresh, &path));
    if let Err(error) = written {
        root.remove(&fresh).ok();
        return Err(failed(error));
    }
    root.sync_folder(folder).ok();
    Ok(())
}

/// Tells whether a file has exactly these bytes; reads no more than necessary.
fn is_same(file: File, bytes: &[u8]) -> io::Result<bool> {
    let mut there = Vec::new();
    file.take(bytes.len() as u64 + 1).read_to_end(&mut there)?;
    Ok(there == bytes)
}
