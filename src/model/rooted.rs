//! Files below a folder that is held open: no part of their path is a link, whatever changes in the meantime.
//!
//! Between the check of a path and the opening of the same path, another process can put a link or a fifo there. So a
//! file is opened relative to the folder's handle, and the check is made on the opened file, not on its name. On Linux
//! the kernel refuses links on the path (`openat2`, or folder by folder if that is not available). On other systems the
//! parts of a path are checked before it is opened.

use std::fs::{File, Metadata};
use std::io::{self, Read as _};
use std::path::{Component, Path, PathBuf};

#[cfg(target_os = "linux")]
use linux as system;
#[cfg(not(target_os = "linux"))]
use other as system;

/// A folder, held open by its handle.
#[derive(Debug)]
pub struct Root {
    folder: system::Handle,
    path: PathBuf,
}

impl Root {
    /// Opens a folder. The path to it may contain links; paths below it may not.
    ///
    /// # Errors
    /// When it is not a folder, or is replaced during the call.
    pub fn open(path: &Path) -> io::Result<Root> {
        let path = std::fs::canonicalize(path)?;
        let folder = system::open_root(&path)?;
        Ok(Root { folder, path })
    }

    /// Returns the folder's own path, without links.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Opens a file for reading. Fifos, devices, sockets and folders are refused without waiting for them.
    ///
    /// # Errors
    /// When the file does not exist, a part of the path is a link, or it is not a regular file.
    pub fn file(&self, path: &str) -> io::Result<File> {
        let file = system::open_file(self, relative(path)?)?;
        regular(file)
    }

    /// Reads a text file; the path may contain links that stay within the folder.
    ///
    /// # Errors
    /// As [`Root::file`], and when a link leads out of the folder, or the file is not text.
    pub fn read_following_links(&self, path: &str) -> io::Result<String> {
        let real = std::fs::canonicalize(self.path.join(path))?;
        let inside = real.strip_prefix(&self.path).map_err(|_| outside())?;
        let inside = inside.to_str().ok_or_else(outside)?;
        let mut text = String::new();
        self.file(inside)?.read_to_string(&mut text)?;
        Ok(text)
    }

    /// Returns the target of a link, as it is written.
    ///
    /// # Errors
    /// When the path is not a link.
    pub fn link(&self, path: &str) -> io::Result<String> {
        system::read_link(self, relative(path)?)
    }

    /// Returns the metadata of a file, folder or link, without following the link.
    ///
    /// # Errors
    /// When nothing exists at the path.
    pub fn metadata(&self, path: &str) -> io::Result<Metadata> {
        system::metadata(self, relative(path)?)
    }

    /// Returns the same as [`Root::look`], for a path that may not be text.
    ///
    /// # Errors
    /// When nothing exists at the path.
    pub fn metadata_of(&self, path: &Path) -> io::Result<Metadata> {
        let mut parts = path.components();
        match parts.all(|part| matches!(part, Component::Normal(_))) {
            true => system::metadata(self, path),
            false => Err(outside()),
        }
    }

    /// Creates a folder and its missing parents.
    ///
    /// # Errors
    /// When a part of the path is not a folder.
    pub fn make_folders(&self, path: &str) -> io::Result<()> {
        system::make_folders(self, relative(path)?)
    }

    /// Creates a new file. `mode`: its permissions on Unix systems, without those in the user's mask.
    ///
    /// # Errors
    /// When something exists at the path already.
    pub fn create(&self, path: &str, mode: u32) -> io::Result<File> {
        system::create(self, relative(path)?, mode)
    }

    /// Creates a symbolic link.
    ///
    /// # Errors
    /// When something exists at the path already.
    pub fn make_link(&self, target: &str, path: &str) -> io::Result<()> {
        system::make_link(self, target, relative(path)?)
    }

    /// Renames a file or link, and replaces what exists at the target.
    ///
    /// # Errors
    /// When the operating system refuses it.
    pub fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        system::rename(self, relative(from)?, relative(to)?)
    }

    /// Removes a file or link.
    ///
    /// # Errors
    /// When the file does not exist, or the operating system refuses to remove it.
    pub fn remove(&self, path: &str) -> io::Result<()> {
        system::remove(self, relative(path)?)
    }

    /// Makes the changes of entries in a folder durable.
    ///
    /// # Errors
    /// When the file system does not support it.
    pub fn sync_folder(&self, path: &str) -> io::Result<()> {
        system::sync_folder(self, relative(path)?)
    }
}

/// Opens the file at a path, which may contain links. Fifos, devices, sockets and folders are refused without waiting
/// for them.
///
/// # Errors
/// When it cannot be opened, or is not a regular file.
pub fn open_regular(path: &Path) -> io::Result<File> {
    regular(system::open_without_waiting(path)?)
}

/// Reads a text file with the checks of [`open_regular`].
///
/// # Errors
/// As [`open_regular`], and when it is not text.
pub fn read_regular(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    open_regular(path)?.read_to_string(&mut text)?;
    Ok(text)
}

/// Reads a text file that a person names, including a pipe that a shell made for it, such as `/dev/fd/63`. Other fifos
/// and devices are refused.
///
/// # Errors
/// As [`read_regular`].
pub fn read_named(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    open_named(path)?.read_to_string(&mut text)?;
    Ok(text)
}

/// Opens a file that a person names, as [`read_named`] does.
///
/// # Errors
/// When it cannot be opened, or is any other fifo, a device or a folder.
pub fn open_named(path: &Path) -> io::Result<File> {
    let is_of_shell = ["/dev/fd", "/dev/stdin", "/proc/self/fd"]
        .iter()
        .any(|it| path.starts_with(it));
    match is_of_shell {
        true => File::open(path),
        false => open_regular(path),
    }
}

/// A file that was opened by the handle of its folder, and its checked path.
#[derive(Debug, Clone)]
pub struct Opened {
    pub path: PathBuf,
    pub file: std::sync::Arc<File>,
}

/// Opens the file at a path. `may` decides about the file's own path, without links; exactly that file is opened, even
/// if its folders are replaced in the meantime.
///
/// # Errors
/// The error of `may`, or when the file cannot be opened, or is a fifo, a device or a folder.
pub fn open_where<E: From<io::Error>>(
    path: &Path,
    may: impl FnOnce(&Path) -> Result<(), E>,
) -> Result<Opened, E> {
    let found = std::fs::canonicalize(path)?;
    let (Some(folder), Some(name)) = (found.parent(), found.file_name().and_then(|it| it.to_str()))
    else {
        may(&found)?;
        return Err(io::Error::from(io::ErrorKind::InvalidInput).into());
    };
    let root = Root::open(folder)?;
    let path = root.path().join(name);
    may(&path)?;
    let file = std::sync::Arc::new(root.file(name)?);
    Ok(Opened { path, file })
}

fn regular(file: File) -> io::Result<File> {
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "it is not a regular file",
        )),
    }
}

fn outside() -> io::Error {
    io::Error::new(io::ErrorKind::PermissionDenied, "it is outside the folder")
}

/// Refuses paths other than plain ones below the folder.
fn relative(path: &str) -> io::Result<&Path> {
    let parts = Path::new(path).components();
    let mut parts = parts.map(|part| matches!(part, Component::Normal(_) | Component::CurDir));
    match parts.all(|is_below| is_below) && !path.contains('\0') {
        true if path.is_empty() => Ok(Path::new(".")),
        true => Ok(Path::new(path)),
        false => Err(outside()),
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use std::ffi::OsStr;
    use std::fs::{File, Metadata};
    use std::io;
    use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
    use std::path::{Component, Path};

    use rustix::fs::{self, AtFlags, CWD, Mode, OFlags, ResolveFlags};
    use rustix::io::Errno;

    use super::Root;

    pub(super) type Handle = OwnedFd;

    const FOLDER: OFlags = OFlags::PATH.union(OFlags::DIRECTORY);
    /// Flags that open a fifo even if it has no writer, and do not make a terminal the controlling one.
    const READ: OFlags = OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::NOCTTY);

    pub(super) fn open_root(path: &Path) -> io::Result<Handle> {
        // The path is canonical: if it contains a link, the link was put there since.
        let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        let flags = FOLDER | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        match fs::openat2(CWD, path, flags, Mode::empty(), resolve) {
            Err(Errno::NOSYS | Errno::PERM) => {}
            opened => return Ok(opened?),
        }
        let mut at = fs::open("/", FOLDER | OFlags::CLOEXEC, Mode::empty())?;
        for part in names(path) {
            at = step(at.as_fd(), part)?;
        }
        Ok(at)
    }

    /// Opens a path below the folder; no part of it may be a link.
    fn open(root: &Root, path: &Path, flags: OFlags, mode: Mode) -> io::Result<OwnedFd> {
        let flags = flags | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let resolve =
            ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        match fs::openat2(&root.folder, path, flags, mode, resolve) {
            // The kernel is too old, or a sandbox blocks the call.
            Err(Errno::NOSYS | Errno::PERM) => {}
            opened => return Ok(opened?),
        }
        let (folder, name) = walk(root, path)?;
        Ok(fs::openat(&folder, name, flags, mode)?)
    }

    fn names(path: &Path) -> impl Iterator<Item = &OsStr> {
        path.components().filter_map(|part| match part {
            Component::Normal(name) => Some(name),
            _ => None,
        })
    }

    fn step(at: BorrowedFd<'_>, name: &OsStr) -> io::Result<OwnedFd> {
        let flags = FOLDER | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        Ok(fs::openat(at, name, flags, Mode::empty())?)
    }

    /// Opens the folders of a path one by one; returns the last folder and the name in it.
    fn walk<'a>(root: &Root, path: &'a Path) -> io::Result<(OwnedFd, &'a OsStr)> {
        let mut names = names(path).peekable();
        let mut at = step(root.folder.as_fd(), OsStr::new("."))?;
        while let Some(name) = names.next() {
            if names.peek().is_none() {
                return Ok((at, name));
            }
            at = step(at.as_fd(), name)?;
        }
        Ok((at, OsStr::new(".")))
    }

    /// Opens the parent folder of a path; returns it and the name.
    fn parent<'a>(root: &Root, path: &'a Path) -> io::Result<(OwnedFd, &'a OsStr)> {
        let Some(name) = path.file_name() else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        let folder = path.parent().filter(|it| !it.as_os_str().is_empty());
        let folder = folder.unwrap_or(Path::new("."));
        Ok((open(root, folder, FOLDER, Mode::empty())?, name))
    }

    pub(super) fn open_file(root: &Root, path: &Path) -> io::Result<File> {
        open(root, path, READ, Mode::empty()).map(File::from)
    }

    pub(super) fn open_without_waiting(path: &Path) -> io::Result<File> {
        Ok(fs::open(path, READ | OFlags::CLOEXEC, Mode::empty())?.into())
    }

    pub(super) fn read_link(root: &Root, path: &Path) -> io::Result<String> {
        let (folder, name) = parent(root, path)?;
        let target = fs::readlinkat(&folder, name, Vec::new())?;
        Ok(target.to_string_lossy().into_owned())
    }

    pub(super) fn metadata(root: &Root, path: &Path) -> io::Result<Metadata> {
        File::from(open(root, path, OFlags::PATH, Mode::empty())?).metadata()
    }

    pub(super) fn make_folders(root: &Root, path: &Path) -> io::Result<()> {
        let mut at = step(root.folder.as_fd(), OsStr::new("."))?;
        for name in names(path) {
            match fs::mkdirat(&at, name, Mode::from_raw_mode(0o777)) {
                Ok(()) | Err(Errno::EXIST) => at = step(at.as_fd(), name)?,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    pub(super) fn create(root: &Root, path: &Path, mode: u32) -> io::Result<File> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
        open(root, path, flags, Mode::from_raw_mode(mode)).map(File::from)
    }

    pub(super) fn make_link(root: &Root, target: &str, path: &Path) -> io::Result<()> {
        let (folder, name) = parent(root, path)?;
        Ok(fs::symlinkat(target, &folder, name)?)
    }

    pub(super) fn rename(root: &Root, from: &Path, to: &Path) -> io::Result<()> {
        let (from_folder, from) = parent(root, from)?;
        let (to_folder, to) = parent(root, to)?;
        Ok(fs::renameat(&from_folder, from, &to_folder, to)?)
    }

    pub(super) fn remove(root: &Root, path: &Path) -> io::Result<()> {
        let (folder, name) = parent(root, path)?;
        Ok(fs::unlinkat(&folder, name, AtFlags::empty())?)
    }

    pub(super) fn sync_folder(root: &Root, path: &Path) -> io::Result<()> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        File::from(open(root, path, flags, Mode::empty())?).sync_all()
    }
}

#[cfg(not(target_os = "linux"))]
mod other {
    use std::fs::{self, File, Metadata};
    use std::io;
    use std::path::{Path, PathBuf};

    use super::{Root, outside};

    pub type Handle = ();

    pub fn open_root(path: &Path) -> io::Result<Handle> {
        fs::read_dir(path).map(drop)
    }

    /// Returns the full path if no part of it except the last is a link.
    fn place(root: &Root, path: &Path) -> io::Result<PathBuf> {
        let mut place = root.path.clone();
        for part in path.components() {
            if fs::symlink_metadata(&place).is_ok_and(|it| it.is_symlink()) {
                return Err(outside());
            }
            place.push(part);
        }
        Ok(place)
    }

    pub fn open_file(root: &Root, path: &Path) -> io::Result<File> {
        let place = place(root, path)?;
        match fs::symlink_metadata(&place)?.is_symlink() {
            true => Err(outside()),
            false => open_without_waiting(&place),
        }
    }

    pub fn open_without_waiting(path: &Path) -> io::Result<File> {
        match fs::metadata(path)?.is_file() {
            true => File::open(path),
            false => Err(io::ErrorKind::InvalidInput.into()),
        }
    }

    pub fn read_link(root: &Root, path: &Path) -> io::Result<String> {
        let target = fs::read_link(place(root, path)?)?;
        Ok(target.to_string_lossy().into_owned())
    }

    pub fn metadata(root: &Root, path: &Path) -> io::Result<Metadata> {
        fs::symlink_metadata(place(root, path)?)
    }

    pub fn make_folders(root: &Root, path: &Path) -> io::Result<()> {
        fs::create_dir_all(place(root, path)?)
    }

    pub fn create(root: &Root, path: &Path, mode: u32) -> io::Result<File> {
        let mut options = File::options();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, mode);
        #[cfg(not(unix))]
        let _ = mode;
        options.open(place(root, path)?)
    }

    pub fn make_link(root: &Root, target: &str, path: &Path) -> io::Result<()> {
        let place = place(root, path)?;
        #[cfg(unix)]
        return std::os::unix::fs::symlink(target, place);
        #[cfg(not(unix))]
        fs::write(place, target)
    }

    pub fn rename(root: &Root, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(place(root, from)?, place(root, to)?)
    }

    pub fn remove(root: &Root, path: &Path) -> io::Result<()> {
        fs::remove_file(place(root, path)?)
    }

    pub fn sync_folder(root: &Root, path: &Path) -> io::Result<()> {
        #[cfg(unix)]
        return File::open(place(root, path)?)?.sync_all();
        #[cfg(not(unix))]
        place(root, path).map(drop)
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::os::unix::fs::symlink;
    use std::path::Path;

    use super::*;

    #[test]
    fn links_below_a_folder_do_not_lead_out_of_it() {
        let outside = tempfile::tempdir().expect("a folder");
        std::fs::write(outside.path().join("secret"), "outside").expect("a file");
        let inside = tempfile::tempdir().expect("a folder");
        let at = |path: &str| inside.path().join(path);
        std::fs::create_dir_all(at("a/b")).expect("a folder");
        std::fs::write(at("a/b/file"), "inside").expect("a file");
        symlink(outside.path(), at("out")).expect("a link");
        symlink(outside.path().join("secret"), at("file")).expect("a link");
        symlink("a/b/file", at("near")).expect("a link");
        symlink("a", at("folder")).expect("a link");
        symlink("../../..", at("a/b/up")).expect("a link");
        let root = Root::open(inside.path()).expect("it is opened");
        for path in [
            "out/secret",
            "file",
            "near",
            "folder/b/file",
            "a/b/up",
            "a/b/up/etc/hostname",
            "../x",
            "/etc/hostname",
            "a/../../x",
            "a/../a/b/file",
            "a",
            "",
            "gone",
            "a/b/file/x",
            "a\0b",
        ] {
            assert!(root.file(path).is_err(), "{path:?} was opened");
        }
        assert!(root.file("a/b/file").is_ok());
        assert!(root.file("./a/./b//file").is_ok());
        assert_eq!(
            root.read_following_links("near").expect("a link inside"),
            "inside"
        );
        assert_eq!(
            root.read_following_links("folder/b/file")
                .expect("a link inside"),
            "inside"
        );
        for path in ["out/secret", "file", "a/b/up/etc/hostname", "../x"] {
            assert!(root.read_following_links(path).is_err(), "{path}");
        }
        for path in ["out/new", "folder/new", "../new", "a/b/up/new", "near"] {
            assert!(root.create(path, 0o666).is_err(), "{path} was made");
            assert!(root.make_link("x", path).is_err(), "{path} was linked");
        }
        assert!(root.make_folders("out/x").is_err());
        assert!(root.rename("a/b/file", "out/file").is_err());
        assert!(root.remove("out/secret").is_err());
        assert_eq!(root.link("near").expect("a link"), "a/b/file");
        assert!(root.metadata("near").expect("a link").is_symlink());
        assert_eq!(
            std::fs::read_dir(outside.path()).expect("a folder").count(),
            1
        );
    }

    #[test]
    fn fifos_and_sockets_are_refused_without_waiting() {
        let folder = tempfile::tempdir().expect("a folder");
        let fifo = folder.path().join("fifo");
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, mode, 0)
            .expect("a fifo");
        let _socket =
            std::os::unix::net::UnixListener::bind(folder.path().join("socket")).expect("a socket");
        let root = Root::open(folder.path()).expect("it is opened");
        for path in ["fifo", "socket"] {
            assert!(root.file(path).is_err(), "{path}");
            assert!(root.read_following_links(path).is_err(), "{path}");
            assert!(open_regular(&folder.path().join(path)).is_err(), "{path}");
        }
        assert!(open_regular(Path::new("/dev/zero")).is_err());
        assert!(read_regular(Path::new("/dev/null")).is_err());
    }

    #[test]
    fn an_opened_folder_stays_the_same_after_it_is_moved() {
        let top = tempfile::tempdir().expect("a folder");
        let at = |path: &str| top.path().join(path);
        std::fs::create_dir_all(at("a/b")).expect("a folder");
        std::fs::write(at("a/b/x"), "before").expect("a file");
        let root = Root::open(&at("a")).expect("it is opened");
        std::fs::rename(at("a"), at("moved")).expect("moved");
        std::fs::create_dir_all(at("a/b")).expect("a folder");
        std::fs::write(at("a/b/x"), "another").expect("a file");
        let mut text = String::new();
        root.file("b/x")
            .and_then(|mut file| file.read_to_string(&mut text))
            .expect("it is read");
        assert_eq!(text, "before");
    }
}
