//! Owners of runs: processes, each known by a file that it keeps locked while it lives.
//!
//! The operating system releases the lock when the process ends, for whatever reason. So no lease has to expire after a
//! crash, and no run is taken from a process that is only slow.

mod marks;

use std::cell::RefCell;
use std::collections::HashMap;
use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use flowstone_model::ids::RunId;
use flowstone_model::ports::{Random as _, StoreError, SystemRandom, wall_clock_ms};
use flowstone_model::private;

use marks::Marks;

/// Maximum time between the creation of a process's file and its lock.
const YOUNG: Duration = Duration::from_secs(60);

/// Time for which the runs that a process executed when it ended are remembered.
const REMEMBERED: Duration = Duration::from_secs(30 * 24 * 3600);

/// This process, as an owner of runs.
pub(super) struct Owner {
    id: String,
    folder: PathBuf,
    /// The marks in the file that is locked until it is closed; `None` for a process that only reads.
    marks: Option<Mutex<Marks>>,
}

impl Owner {
    /// Creates an owner, with a locked file in the folder.
    pub(super) fn register(folder: &Path) -> Result<Owner, StoreError> {
        let failed = |error: std::io::Error| StoreError::of_file(folder, &error);
        private::make_folder(folder).map_err(failed)?;
        let unique = RunId::new(wall_clock_ms(), SystemRandom.next());
        let id = format!("{unique}-{}", std::process::id());
        let lock = private::open(&folder.join(&id)).map_err(failed)?;
        lock.try_lock().map_err(|error| match error {
            TryLockError::Error(error) => failed(error),
            TryLockError::WouldBlock => failed(std::io::ErrorKind::WouldBlock.into()),
        })?;
        let owner = Owner {
            id,
            folder: folder.to_owned(),
            marks: Some(Mutex::new(Marks::new(lock))),
        };
        owner.sweep();
        Ok(owner)
    }

    /// Creates an owner that cannot own runs: it only checks whether others are alive.
    pub(super) fn reader(folder: &Path) -> Owner {
        Owner {
            id: "reader".to_owned(),
            folder: folder.to_owned(),
            marks: None,
        }
    }

    /// Leaves the owners: no run belongs to this process any more.
    pub(super) fn leave(&self) {
        let _ = fs::remove_file(self.folder.join(&self.id));
    }

    /// Tells whether other processes use the database. Must be called while no process can register.
    pub(super) fn has_others(&self) -> bool {
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        entries
            .filter(|entry| entry.file_name() != *self.id)
            .any(|entry| File::open(entry.path()).is_ok_and(|file| file.try_lock().is_err()))
    }

    /// Removes the files of processes that did not end cleanly. A recent file may not be locked yet.
    fn sweep(&self) {
        let Ok(entries) = fs::read_dir(&self.folder) else {
            return;
        };
        for entry in entries.flatten() {
            let age = entry
                .metadata()
                .and_then(|about| about.modified())
                .ok()
                .and_then(|made| made.elapsed().ok());
            let name = entry.file_name();
            let name = name.to_string_lossy();
            if age.is_some_and(|age| age > YOUNG)
                && !self.is_alive(&name)
                && age.is_some_and(|age| age > REMEMBERED)
            {
                self.forget(&name);
            }
        }
    }

    /// Records whether this process executes a run.
    pub(super) fn mark(&self, run: &RunId, is_executing: bool) {
        if let Some(marks) = &self.marks {
            let mut marks = marks.lock().unwrap_or_else(PoisonError::into_inner);
            marks.mark(run, is_executing);
        }
    }

    /// Returns the runs that an ended process executed.
    pub(super) fn executed(&self, owner: &str) -> Vec<RunId> {
        marks::read(&self.folder.join(owner))
    }

    /// Forgets a process that has ended.
    pub(super) fn forget(&self, owner: &str) {
        let _ = fs::remove_file(self.folder.join(owner));
    }

    pub(super) fn id(&self) -> &str {
        &self.id
    }

    /// Tells whether the process of an owner is alive.
    pub(super) fn is_alive(&self, owner: &str) -> bool {
        if owner == self.id {
            return true;
        }
        let path = self.folder.join(owner);
        let Ok(file) = File::open(&path) else {
            return false;
        };
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => true,
            Ok(()) => {
                if marks::read(&path).is_empty() {
                    let _ = fs::remove_file(&path);
                }
                false
            }
            Err(TryLockError::Error(_)) => true,
        }
    }
}

/// Answers for many rows whether the process of an owner is alive; each owner is checked once.
pub(super) struct Alive<'a> {
    owner: &'a Owner,
    known: RefCell<HashMap<String, bool>>,
}

impl Alive<'_> {
    pub(super) fn new(owner: &Owner) -> Alive<'_> {
        Alive {
            owner,
            known: RefCell::default(),
        }
    }

    pub(super) fn is_alive(&self, owner: &str) -> bool {
        if let Some(known) = self.known.borrow().get(owner) {
            return *known;
        }
        let is_alive = self.owner.is_alive(owner);
        self.known.borrow_mut().insert(owner.to_owned(), is_alive);
        is_alive
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        self.leave();
    }
}
