//! A file layer under SQLite that records which writes were synced, and can produce the state after a loss of power.
//!
//! All calls are passed on to the system's files, so that locks and shared memory work as usual. In addition, the layer
//! keeps the synced content of each file, and the writes since. After a loss of power, the synced content remains, and
//! any sectors of the later writes, in any order.

#![expect(
    unsafe_code,
    reason = "SQLite takes a file layer as a table of C functions"
)]

use std::collections::HashMap;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, Once, OnceLock, PoisonError};

use rusqlite::ffi;

/// The name under which the layer is registered.
pub const NAME: &str = "lossy";
const SECTOR: usize = 512;

/// The part of the unsynced writes that a loss of power leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Leaves {
    Nothing,
    /// Each sector with even odds.
    Some,
    Everything,
}

/// The files of a folder after a loss of power.
pub struct Image {
    pub files: Vec<(String, Vec<u8>)>,
    /// The value of the note when the power was lost.
    pub note: u64,
}

impl Image {
    /// Writes the files into another folder.
    pub fn restore(&self, folder: &Path) {
        std::fs::create_dir_all(folder).expect("a folder");
        for (name, bytes) in &self.files {
            std::fs::write(folder.join(name), bytes).expect("a file");
        }
    }
}

/// A failure of the disk under a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trouble {
    None,
    /// No space is left.
    Full,
    /// There is space for this number of writes.
    FullAfter(u64),
    /// Writes fail.
    Broken,
    /// Files are read-only.
    ReadOnly,
}

/// Sets the failure of the disk under a folder from now on.
pub fn trouble(folder: &Path, trouble: Trouble) {
    register();
    disk().troubles.insert(folder.to_owned(), trouble);
}

/// Takes images of a folder from now on, at each `every`th write and around each sync, each with the value of `note`.
pub fn watch(folder: &Path, every: u64, note: fn() -> u64) {
    register();
    let watch = Watch {
        every,
        note,
        moments: 0,
        random: 0x5eed,
        images: Vec::new(),
    };
    disk().watches.insert(folder.to_owned(), watch);
}

/// Stops watching, and returns the images.
pub fn images(folder: &Path) -> Vec<Image> {
    let watch = disk().watches.remove(folder);
    watch.expect("the folder is watched").images
}

#[derive(Default)]
struct Disk {
    files: HashMap<PathBuf, Content>,
    /// The file of each open handle.
    open: HashMap<usize, Handle>,
    watches: HashMap<PathBuf, Watch>,
    troubles: HashMap<PathBuf, Trouble>,
}

/// An open file: its path, and the system's functions for it, which depend on the purpose of the file.
#[derive(Clone)]
struct Handle {
    path: PathBuf,
    theirs: ffi::sqlite3_io_methods,
}

struct Watch {
    every: u64,
    note: fn() -> u64,
    moments: u64,
    random: u64,
    images: Vec<Image>,
}

#[derive(Default, Clone)]
struct Content {
    synced: Vec<u8>,
    since: Vec<Change>,
}

#[derive(Clone)]
enum Change {
    Write { at: usize, bytes: Vec<u8> },
    Length(usize),
}

impl Content {
    fn sync(&mut self) {
        for change in std::mem::take(&mut self.since) {
            apply(&mut self.synced, &change);
        }
    }

    fn after_loss(&self, leaves: Leaves, random: &mut u64) -> Vec<u8> {
        let mut bytes = self.synced.clone();
        let mut is_left = || match leaves {
            Leaves::Nothing => false,
            Leaves::Everything => true,
            Leaves::Some => draw(random) & 1 == 1,
        };
        for change in &self.since {
            match change {
                Change::Length(_) if is_left() => apply(&mut bytes, change),
                Change::Length(_) => {}
                Change::Write { at, bytes: written } => {
                    for (idx, sector) in written.chunks(SECTOR).enumerate() {
                        if is_left() {
                            let at = at + idx * SECTOR;
                            let bytes_of_it = sector.to_vec();
                            apply(
                                &mut bytes,
                                &Change::Write {
                                    at,
                                    bytes: bytes_of_it,
                                },
                            );
                        }
                    }
                }
            }
        }
        bytes
    }
}

fn apply(content: &mut Vec<u8>, change: &Change) {
    match change {
        Change::Write { at, bytes } => {
            let end = at + bytes.len();
            if content.len() < end {
                content.resize(end, 0);
            }
            content[*at..end].copy_from_slice(bytes);
        }
        Change::Length(length) => content.resize(*length, 0),
    }
}

fn draw(random: &mut u64) -> u64 {
    *random = random
        .wrapping_mul(6_364_136_223_846_793_005)
        .wrapping_add(1_442_695_040_888_963_407);
    *random >> 40
}

impl Disk {
    /// Counts a write, and returns the failure that applies to it.
    fn take(&mut self, file: &Path) -> Trouble {
        let folder = file.parent();
        if let Some(Trouble::FullAfter(left)) = folder.and_then(|it| self.troubles.get_mut(it)) {
            let Some(less) = left.checked_sub(1) else {
                return Trouble::Full;
            };
            *left = less;
        }
        self.trouble(file)
    }

    fn trouble(&self, file: &Path) -> Trouble {
        let folder = file.parent().and_then(|folder| self.troubles.get(folder));
        folder.copied().unwrap_or(Trouble::None)
    }

    /// Takes an image of the folder of a file if it is watched and an image is due.
    fn take_image(&mut self, file: &Path, is_sync: bool) {
        let Some(folder) = file.parent() else {
            return;
        };
        let Some(watch) = self.watches.get_mut(folder) else {
            return;
        };
        watch.moments += 1;
        if !is_sync && !watch.moments.is_multiple_of(watch.every) {
            return;
        }
        let leaves = match draw(&mut watch.random) % 4 {
            0 => Leaves::Nothing,
            1 => Leaves::Everything,
            _ => Leaves::Some,
        };
        // Before the content: changes that are acknowledged while the image is taken need not be in it.
        let note = (watch.note)();
        let mut files = Vec::new();
        for (path, content) in &self.files {
            if path.parent() == Some(folder) {
                let name = path
                    .file_name()
                    .expect("a name")
                    .to_string_lossy()
                    .into_owned();
                files.push((name, content.after_loss(leaves, &mut watch.random)));
            }
        }
        watch.images.push(Image { files, note });
    }
}

fn disk() -> MutexGuard<'static, Disk> {
    static DISK: OnceLock<Mutex<Disk>> = OnceLock::new();
    let disk = DISK.get_or_init(Mutex::default);
    disk.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The system's own layer, which receives all calls that this layer does not implement.
struct Under(*mut ffi::sqlite3_vfs);

// SAFETY: the layer is a constant of SQLite that lives as long as the process.
unsafe impl Send for Under {}
// SAFETY: as above.
unsafe impl Sync for Under {}

static UNDER: OnceLock<Under> = OnceLock::new();

fn under() -> *mut ffi::sqlite3_vfs {
    UNDER
        .get()
        .expect("the layer is registered before it is used")
        .0
}

fn register() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: null asks for the default layer, which is a valid constant.
        let layer = unsafe { ffi::sqlite3_vfs_find(std::ptr::null()) };
        assert!(!layer.is_null());
        assert!(UNDER.set(Under(layer)).is_ok());
        // SAFETY: `layer` is valid; its table of functions may be copied.
        let mut ours = unsafe { std::ptr::read(layer) };
        ours.pNext = std::ptr::null_mut();
        ours.zName = c"lossy".as_ptr();
        ours.xOpen = Some(open);
        ours.xDelete = Some(delete);
        // SAFETY: the registered layer lives as long as the process.
        let code = unsafe { ffi::sqlite3_vfs_register(Box::leak(Box::new(ours)), 0) };
        assert_eq!(code, ffi::SQLITE_OK);
    });
}

fn path_of(name: *const c_char) -> Option<PathBuf> {
    if name.is_null() {
        return None;
    }
    // SAFETY: SQLite passes names that end with zero.
    let name = unsafe { CStr::from_ptr(name) };
    Some(PathBuf::from(name.to_string_lossy().into_owned()))
}

unsafe extern "C" fn open(
    _: *mut ffi::sqlite3_vfs,
    name: *const c_char,
    file: *mut ffi::sqlite3_file,
    flags: c_int,
    out_flags: *mut c_int,
) -> c_int {
    let layer = under();
    let mut flags = flags;
    if path_of(name).is_some_and(|path| disk().trouble(&path) == Trouble::ReadOnly) {
        // In the same way as the system's layer opens a file that may not be written.
        flags &= !(ffi::SQLITE_OPEN_READWRITE | ffi::SQLITE_OPEN_CREATE);
        flags |= ffi::SQLITE_OPEN_READONLY;
    }
    // SAFETY: all arguments are those of SQLite, for the layer that has room for its file there.
    let code =
        unsafe { (*layer).xOpen.expect("a layer opens")(layer, name, file, flags, out_flags) };
    // SAFETY: an opened file has its functions.
    let methods = unsafe { (*file).pMethods };
    let Some(path) = path_of(name).filter(|_| code == ffi::SQLITE_OK && !methods.is_null()) else {
        return code;
    };
    // SAFETY: `methods` is a constant of the layer.
    let theirs = unsafe { std::ptr::read(methods) };
    let ours = Box::leak(Box::new(ffi::sqlite3_io_methods {
        xClose: Some(close),
        xWrite: Some(write),
        xTruncate: Some(truncate),
        xSync: Some(sync),
        ..theirs
    }));
    // SAFETY: only this layer changes `file` until it is closed; `ours` lives as long as the process.
    unsafe { (*file).pMethods = ours };
    let mut disk = disk();
    if !disk.files.contains_key(&path) {
        // Content from before the first opening counts as synced.
        let content = Content {
            synced: std::fs::read(&path).unwrap_or_default(),
            since: Vec::new(),
        };
        disk.files.insert(path.clone(), content);
    }
    disk.open.insert(file as usize, Handle { path, theirs });
    code
}

unsafe extern "C" fn delete(
    _: *mut ffi::sqlite3_vfs,
    name: *const c_char,
    sync_folder: c_int,
) -> c_int {
    if let Some(path) = path_of(name) {
        disk().files.remove(&path);
    }
    let layer = under();
    // SAFETY: the arguments are those of SQLite.
    unsafe { (*layer).xDelete.expect("a layer deletes")(layer, name, sync_folder) }
}

fn theirs(file: *mut ffi::sqlite3_file) -> ffi::sqlite3_io_methods {
    disk().open[&(file as usize)].theirs
}

unsafe extern "C" fn close(file: *mut ffi::sqlite3_file) -> c_int {
    let handle = disk().open.remove(&(file as usize)).expect("it is open");
    // SAFETY: `file` was opened by the layer below.
    unsafe { handle.theirs.xClose.expect("files close")(file) }
}

/// Records a change of an open file.
fn note(file: *mut ffi::sqlite3_file, change: Change) {
    let mut disk = disk();
    let Some(path) = disk
        .open
        .get(&(file as usize))
        .map(|handle| handle.path.clone())
    else {
        return;
    };
    if let Some(content) = disk.files.get_mut(&path) {
        content.since.push(change);
    }
    disk.take_image(&path, false);
}

unsafe extern "C" fn write(
    file: *mut ffi::sqlite3_file,
    bytes: *const c_void,
    count: c_int,
    at: i64,
) -> c_int {
    let trouble = {
        let mut disk = disk();
        let path = disk.open[&(file as usize)].path.clone();
        disk.take(&path)
    };
    match trouble {
        Trouble::None | Trouble::ReadOnly | Trouble::FullAfter(_) => {}
        Trouble::Full => return ffi::SQLITE_FULL,
        Trouble::Broken => return ffi::SQLITE_IOERR_WRITE,
    }
    // SAFETY: the arguments are those of SQLite.
    let code = unsafe { theirs(file).xWrite.expect("files are written")(file, bytes, count, at) };
    if code == ffi::SQLITE_OK {
        let count = usize::try_from(count).expect("a length");
        // SAFETY: SQLite passes `count` bytes.
        let bytes = unsafe { std::slice::from_raw_parts(bytes.cast::<u8>(), count) }.to_vec();
        let at = usize::try_from(at).expect("a place");
        note(file, Change::Write { at, bytes });
    }
    code
}

unsafe extern "C" fn truncate(file: *mut ffi::sqlite3_file, length: i64) -> c_int {
    // SAFETY: the arguments are those of SQLite.
    let code = unsafe { theirs(file).xTruncate.expect("files are cut")(file, length) };
    if code == ffi::SQLITE_OK {
        note(
            file,
            Change::Length(usize::try_from(length).expect("a length")),
        );
    }
    code
}

unsafe extern "C" fn sync(file: *mut ffi::sqlite3_file, _: c_int) -> c_int {
    // The system's sync is skipped: the content of this disk is what is recorded here.
    let mut disk = disk();
    if let Some(path) = disk
        .open
        .get(&(file as usize))
        .map(|handle| handle.path.clone())
    {
        disk.take_image(&path, true);
        if let Some(content) = disk.files.get_mut(&path) {
            content.sync();
        }
        disk.take_image(&path, true);
    }
    ffi::SQLITE_OK
}
