//! Files and folders of the project's data: for their owner alone, whatever the user's mask is.
//!
//! Journals, keys, inputs and copies of source files are in there. Other systems than Unix have no such modes; there the
//! folder's own rules hold.

use std::fs::{self, DirBuilder, File};
use std::io::{self, Write as _};
use std::path::Path;

/// Makes a folder and those above it that are missing.
///
/// # Errors
/// When one of them cannot be made.
pub fn make_folder(path: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

/// Makes a file, or empties the one that is there.
///
/// # Errors
/// When it cannot be opened.
pub fn create(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// Opens a file for reading and writing as it is, and makes it where it is missing.
///
/// # Errors
/// When it cannot be opened.
pub fn open(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// Writes a whole file.
///
/// # Errors
/// When it cannot be written.
pub fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    create(path)?.write_all(bytes)
}

/// Takes everything from other users that they may do with a file or folder. Returns whether there was something to take.
///
/// # Errors
/// When it is not there, or belongs to somebody else.
pub fn close_to_others(path: &Path) -> io::Result<bool> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = fs::metadata(path)?.permissions().mode() & 0o7777;
        if mode & 0o077 == 0 {
            return Ok(false);
        }
        fs::set_permissions(path, fs::Permissions::from_mode(mode & 0o700))?;
        Ok(true)
    }
    #[cfg(not(unix))]
    fs::metadata(path).map(|_| false)
}
