//! Writes a consistent copy of a whole home folder while other processes work in it.
//!
//! Files are copied before the database and again after it, because every file that the copied database names was
//! written before the name. The copy gets its final name only when it is complete.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use flowstone_model::ports::{BackedUp, StoreError};
use flowstone_model::private;
use rusqlite::Connection;

use super::failure::{failed, located};
use super::marker;
use super::open::{self, FILE};
use super::{OWNERS, Options, verify};
use crate::vault;

/// Copies the home folder to a folder that does not exist yet.
pub(super) fn write(home: &Path, options: &Options, place: &Path) -> Result<BackedUp, StoreError> {
    let refused = |detail: &str| StoreError::BackupPlace {
        path: place.display().to_string(),
        detail: detail.to_owned(),
    };
    if place.exists() {
        return Err(refused("it exists already"));
    }
    let inside = |place: &Path| {
        Some(
            place
                .parent()?
                .canonicalize()
                .ok()?
                .starts_with(home.canonicalize().ok()?),
        )
    };
    if inside(place) == Some(true) {
        return Err(refused("it is inside the folder that is copied"));
    }
    let mut name = place
        .file_name()
        .ok_or_else(|| refused("it has no name"))?
        .to_owned();
    name.push(format!(".part-{}", std::process::id()));
    let part = place.with_file_name(name);
    let done = copy_all(home, options, &part).and_then(|done| {
        let renamed = fs::rename(&part, place).and_then(|()| sync_folder(place.parent()));
        renamed.map_err(|error| unwritable(place, &error))?;
        Ok(done)
    });
    if done.is_err() {
        let _ = fs::remove_dir_all(&part);
    }
    done
}

fn copy_all(home: &Path, options: &Options, part: &Path) -> Result<BackedUp, StoreError> {
    private::make_folder(part).map_err(|error| unwritable(part, &error))?;
    let mut copied = BackedUp::default();
    copy_files(home, part, &mut copied)?;
    let target = part.join(FILE);
    let source = home.join(FILE);
    let db = match options.read_only {
        true => open::connect_read_only(&source)?,
        // The connection must be able to write, because it writes the copy.
        false => open::connection(&source, options)?,
    };
    db.execute("VACUUM INTO ?1", [target.display().to_string()])
        .map_err(|error| located(failed(error), &source))?;
    drop(db);
    let synced = File::open(&target).and_then(|file| {
        file.sync_all()?;
        Ok(file.metadata()?.len())
    });
    copied.bytes += synced.map_err(|error| unwritable(&target, &error))?;
    copied.files += 1;
    copy_files(home, part, &mut copied)?;
    copied.has_key = copy_key(home, part)?;
    let copy = Connection::open(&target).map_err(|error| located(failed(error), &target))?;
    copied.runs = verify::count(&copy, "run")?;
    let missing = verify::missing_blobs(&copy, &part.join(super::BLOBS))?;
    drop(copy);
    if let Some(missing) = missing.first() {
        return Err(StoreError::Damaged {
            path: source.display().to_string(),
            detail: format!("the blob {}: {}", missing.name, missing.detail),
        });
    }
    private::write(&part.join(marker::FILE), marker::CLOSED.as_ref())
        .map_err(|error| unwritable(part, &error))?;
    sync_folder(Some(part)).map_err(|error| unwritable(part, &error))?;
    Ok(copied)
}

/// Copies the files beside the database that are not copied yet. Files that vanish in the meantime were unreferenced.
fn copy_files(from: &Path, to: &Path, copied: &mut BackedUp) -> Result<(), StoreError> {
    let mut open: Vec<PathBuf> = vec![PathBuf::new()];
    while let Some(folder) = open.pop() {
        let Ok(entries) = fs::read_dir(from.join(&folder)) else {
            continue;
        };
        for entry in entries.flatten() {
            let name = entry.file_name();
            let path = folder.join(&name);
            let is_own = folder.as_os_str().is_empty() && is_own(&name.to_string_lossy());
            // Names that begin with a dot are locks and unfinished files.
            if is_own || name.to_string_lossy().starts_with('.') {
                continue;
            }
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => {
                    let made = private::make_folder(&to.join(&path));
                    made.map_err(|error| unwritable(&to.join(&path), &error))?;
                    open.push(path);
                }
                Ok(kind) if kind.is_file() => {
                    copy_file(&from.join(&path), &to.join(&path), copied)?
                }
                _ => {}
            }
        }
    }
    Ok(())
}

/// Copies the key again: the database may contain text that a newer key has encrypted. Tells whether there is a key.
fn copy_key(home: &Path, part: &Path) -> Result<bool, StoreError> {
    let to = part.join(vault::FILE);
    match fs::copy(home.join(vault::FILE), &to) {
        Ok(_) => {
            let synced = File::open(&to).and_then(|file| file.sync_all());
            synced.map_err(|error| unwritable(&to, &error))?;
            Ok(true)
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(to.exists()),
        Err(error) => Err(unwritable(&to, &error)),
    }
}

/// Tells whether a file of a home belongs to the database or to the processes that use it.
fn is_own(name: &str) -> bool {
    name.starts_with(FILE) || name == marker::FILE || name == OWNERS
}

fn copy_file(from: &Path, to: &Path, copied: &mut BackedUp) -> Result<(), StoreError> {
    if to.exists() {
        return Ok(());
    }
    match fs::copy(from, to) {
        Ok(bytes) => {
            copied.files += 1;
            copied.bytes += bytes;
            let synced = File::open(to).and_then(|file| file.sync_all());
            synced.map_err(|error| unwritable(to, &error))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let _ = fs::remove_file(to);
            Ok(())
        }
        Err(error) => Err(unwritable(to, &error)),
    }
}

fn sync_folder(folder: Option<&Path>) -> io::Result<()> {
    match folder {
        Some(folder) if !folder.as_os_str().is_empty() => File::open(folder)?.sync_all(),
        _ => File::open(".")?.sync_all(),
    }
}

fn unwritable(path: &Path, error: &io::Error) -> StoreError {
    match error.kind() {
        io::ErrorKind::StorageFull => StoreError::Full {
            path: path.display().to_string(),
        },
        _ => StoreError::of_file(path, error),
    }
}
