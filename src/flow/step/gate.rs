//! The gate: checks the permission for every file, server, program, secret and variable that a step accesses.
//!
//! Its results can only be created here, so a step cannot open a file or send a secret without permission. The decision
//! itself is [`crate::permission::decide`].

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::net::IpAddr;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use super::StepError;
use crate::permission::{Allow, Decision, Host, Missing, Need, NetAllow, Reach, decide};

/// The permissions of one flow.
#[derive(Debug)]
pub struct Gate {
    /// The folder of the project, with links resolved.
    root: PathBuf,
    allow: RefCell<Allow>,
    /// The permissions that a person gave for a single attempt.
    once: RefCell<Option<Allow>>,
    /// The questions that were asked, so that no person is asked twice.
    asked: RefCell<BTreeSet<String>>,
}

/// A file or folder that may be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Readable(PathBuf);

/// A file or folder that may be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Writable(PathBuf);

/// A place where something may be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The folder that must not be left.
    pub root: PathBuf,
    /// The path relative to the folder.
    pub path: String,
}

impl Readable {
    /// Returns the path as it was requested.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Writable {
    /// Returns the path as it was requested.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Gate {
    /// Returns the gate of a flow.
    pub fn new(root: &Path, allow: Allow) -> Gate {
        Gate {
            root: real(root),
            allow: RefCell::new(allow),
            once: RefCell::default(),
            asked: RefCell::default(),
        }
    }

    /// Checks whether a file or folder may be read.
    ///
    /// # Errors
    /// E0960 if no row covers it.
    pub fn read(&self, path: &Path) -> Result<Readable, StepError> {
        self.check(&Need::Read(real(path)))?;
        Ok(Readable(path.to_path_buf()))
    }

    /// Checks whether a file or folder may be written.
    ///
    /// # Errors
    /// E0960 if no row covers it.
    pub fn write(&self, path: &Path) -> Result<Writable, StepError> {
        self.check(&Need::Write(real(path)))?;
        Ok(Writable(path.to_path_buf()))
    }

    /// Checks whether a file or folder may be written that a flow names relative to the project or as an absolute path.
    /// Returns the folder that must not be left, and the path in it.
    ///
    /// # Errors
    /// E0960 if no row covers it.
    pub fn place(&self, root: &Path, asked: &str) -> Result<Place, StepError> {
        let is_plain =
            |part: Component<'_>| matches!(part, Component::Normal(_) | Component::CurDir);
        if Path::new(asked).components().all(is_plain) {
            // Links are not resolved there: the code that writes rejects them.
            self.check(&Need::Write(self.root.join(asked)))?;
            return Ok(Place {
                root: root.to_path_buf(),
                path: asked.to_owned(),
            });
        }
        let path = real(&root.join(asked));
        self.write(&path)?;
        let mut rows = self.allow.borrow().write.clone();
        if let Some(once) = &*self.once.borrow() {
            rows.extend(once.write.iter().cloned());
        }
        let covering = rows.into_iter().filter(|row| path.starts_with(row));
        let widest = covering.min_by_key(|row| row.components().count());
        let root = match widest.unwrap_or_else(|| PathBuf::from("/")) {
            row if row == path => path.parent().unwrap_or(&path).to_path_buf(),
            row => row,
        };
        let rest = path.strip_prefix(&root).unwrap_or(&path);
        Ok(Place {
            path: rest.to_string_lossy().into_owned(),
            root,
        })
    }

    /// Tells whether a path inside a readable folder may be read too: protected files may not.
    pub fn may_read(&self, path: &Path) -> bool {
        self.decide(&Need::Read(real(path))) == Decision::Granted
    }

    /// Checks whether a connection to a server is allowed, at an address that its name was resolved to.
    ///
    /// # Errors
    /// E0960 if no row covers it.
    pub fn connect(
        &self,
        host: &Host,
        address: Option<IpAddr>,
        reach: Reach,
    ) -> Result<(), StepError> {
        self.check(&Need::Net {
            host: host.clone(),
            address,
            reach,
        })
    }

    /// Returns the rules for the addresses of requests, for callers that resolve names themselves.
    pub fn net(&self) -> Arc<NetAllow> {
        let allow = self.allow.borrow();
        match &*self.once.borrow() {
            None if !allow.all => allow.net.clone(),
            once => {
                let mut both = allow.clone();
                if let Some(once) = once {
                    both.add(once);
                }
                let mut net = NetAllow::clone(&both.net);
                net.any |= both.all;
                Arc::new(net)
            }
        }
    }

    /// Checks whether a proxy that the flow names may be used.
    ///
    /// # Errors
    /// E0960 if no row names it.
    pub fn proxy(&self, host: &Host) -> Result<(), StepError> {
        self.check(&Need::Proxy(host.clone()))
    }

    /// Checks whether a secret may be sent to a host.
    ///
    /// # Errors
    /// E0960 if no row covers it.
    pub fn secret(&self, name: &str, host: &Host) -> Result<(), StepError> {
        self.check(&Need::Secret {
            name: name.to_owned(),
            host: host.clone(),
        })
    }

    /// Checks whether a program may be started.
    ///
    /// # Errors
    /// E0960 if no row covers it.
    pub fn program(&self, program: &str) -> Result<(), StepError> {
        self.check(&Need::Program(program.to_owned()))
    }

    /// Checks whether an environment variable may be read.
    ///
    /// # Errors
    /// E0960 if no row covers it.
    pub fn variable(&self, name: &str) -> Result<(), StepError> {
        self.check(&Need::Env(name.to_owned()))
    }

    /// Adds the permissions that a person gave: for this attempt, or for all of the run.
    pub fn grant(&self, missing: &Missing, is_once: bool) {
        let more = missing.allow(&|path| real(&self.root.join(path)));
        match is_once {
            true => {
                let mut once = self.once.borrow_mut();
                once.get_or_insert_with(Allow::default).add(&more);
                self.asked.borrow_mut().remove(&missing.edn());
            }
            false => self.allow.borrow_mut().add(&more),
        }
    }

    /// Records a question to a person. Returns false if the same question was asked before.
    pub fn is_new_question(&self, missing: &Missing) -> bool {
        self.asked.borrow_mut().insert(missing.edn())
    }

    /// Removes the permissions that were given for one attempt.
    pub fn end_attempt(&self) {
        self.once.borrow_mut().take();
    }

    fn decide(&self, need: &Need) -> Decision {
        let decided = decide(&self.allow.borrow(), need);
        match (&*self.once.borrow(), &decided) {
            (Some(once), Decision::Missing(_)) => {
                let mut both = self.allow.borrow().clone();
                both.add(once);
                decide(&both, need)
            }
            _ => decided,
        }
    }

    fn check(&self, need: &Need) -> Result<(), StepError> {
        match self.decide(need) {
            Decision::Granted => Ok(()),
            Decision::Missing(missing) => {
                Err(StepError::not_allowed(&missing.relative_to(&self.root)))
            }
        }
    }
}

/// Returns a path with its links resolved as far as it exists; dots in the rest are kept as they are written.
pub fn real(path: &Path) -> PathBuf {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
    let mut rest: Vec<OsString> = Vec::new();
    let mut found = path.as_path();
    loop {
        if let Ok(real) = found.canonicalize() {
            return rest.iter().rev().fold(real, |mut whole, part| {
                match part == ".." {
                    true => drop(whole.pop()),
                    false => whole.push(part),
                }
                whole
            });
        }
        let (Some(parent), Some(last)) = (found.parent(), found.components().next_back()) else {
            return path;
        };
        match last {
            Component::CurDir => {}
            last => rest.push(last.as_os_str().to_owned()),
        }
        found = parent;
    }
}
