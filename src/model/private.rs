//! Files and folders of the project's data: only their owner can access them, whatever the user's mask is.
//!
//! They hold journals, keys, inputs and copies of source files. Systems other than Unix have no such modes; there the
//! permissions of the parent folder apply.

use std::fs::{self, DirBuilder, File};
use std::io::{self, Write as _};
use std::path::Path;

/// Creates a folder and its missing parents.
///
/// # Errors
/// When one of them cannot be created.
pub fn make_folder(path: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

/// Creates a file, or empties an existing one.
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

/// Opens a file for reading and writing without changing it, and creates it if it does not exist.
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

/// Removes all permissions of other users on a file or folder. Tells whether there were any.
///
/// # Errors
/// When the file does not exist, or belongs to another user.
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
