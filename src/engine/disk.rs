//! Flow files on disk: reading, checking, finding them.

pub(crate) mod changes;
mod find;

use std::path::{Path, PathBuf};

use flowstone_lang::session::Session;
use flowstone_lang::value::Value;

use crate::diagnostic::Diagnostic;
use crate::flow::{
    Checked, FlowFiles, Main, Siblings, Surroundings, check_code, read, wider_limits,
};
use crate::limits::Limits;
use crate::rooted::{Root, read_named};
use crate::step::Step;

pub use find::{Found, NotNamed, files_of, find, named, slugs};

/// Larger files are not included: the text of a program is kept with each run.
const MOST_TEXT: u64 = 64_000_000;

/// Files below a folder.
#[derive(Debug, Clone)]
pub struct DiskFiles {
    root: PathBuf,
}

impl DiskFiles {
    pub fn below(root: impl Into<PathBuf>) -> DiskFiles {
        DiskFiles { root: root.into() }
    }
}

impl FlowFiles for DiskFiles {
    fn read(&self, path: &str) -> Result<String, String> {
        let words = |error: std::io::Error| match error.kind() {
            std::io::ErrorKind::NotFound => "there is no such file".to_owned(),
            std::io::ErrorKind::InvalidData => "it is not UTF-8 text".to_owned(),
            std::io::ErrorKind::PermissionDenied if error.raw_os_error().is_none() => {
                "it is outside the folder of the flow".to_owned()
            }
            _ => error.to_string(),
        };
        let root = Root::open(&self.root).map_err(words)?;
        let file = root.path().join(path);
        tracing::debug!(target: "flowstone::files", path = %file.display(), "read");
        if std::fs::metadata(&file).is_ok_and(|facts| facts.len() > MOST_TEXT) {
            return Err(format!("it is larger than {} MB", MOST_TEXT / 1_000_000));
        }
        root.read_inside(path).map_err(words)
    }
}

/// The flows that a flow may call: those beside its file, and those of its project.
struct Around<'a> {
    root: &'a Path,
    beside: Option<&'a Path>,
}

impl Siblings for Around<'_> {
    fn find(&self, slug: &str) -> Result<PathBuf, Option<String>> {
        find(self.root, self.beside, slug).map(|found| found.path)
    }
}

/// Reads a flow file from disk and checks its definition. `name` is what errors call the file.
pub fn load(session: &Session, path: &Path, name: &str) -> Checked {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    tracing::debug!(target: "flowstone::files", path = %path.display(), "read");
    let text = match read_named(path) {
        Ok(text) => text,
        Err(error) => {
            let why = match error.kind() {
                std::io::ErrorKind::NotFound => "there is no such file".to_owned(),
                std::io::ErrorKind::InvalidData => "it is not UTF-8 text".to_owned(),
                _ => error.to_string(),
            };
            return Checked::failed(Diagnostic::error(
                "E0400",
                format!("cannot read {name}: {why}"),
            ));
        }
    };
    let stem = path.file_stem().map(|stem| stem.to_string_lossy());
    read(
        session,
        &DiskFiles::below(folder),
        &Main {
            name,
            text: &text,
            stem: stem.as_deref().unwrap_or("flow"),
            is_stored: false,
        },
    )
}

/// Does all that can be done without running: definition, the shape of each step call, compiling. The session must
/// know what flows may use: [`crate::natives::install`].
pub fn check(session: &Session, path: &Path, name: &str, steps: &[Box<dyn Step>]) -> Checked {
    check_in(session, path, name, (steps, None))
}

/// The project that a flow file belongs to.
#[derive(Debug, Clone, Copy)]
pub struct InProject<'a> {
    /// Its folder: flows that the file calls are looked for there.
    pub root: &'a Path,
    pub settings: &'a Value,
}

/// As [`check`], with the step types and the project that the file belongs to.
pub fn check_in(
    session: &Session,
    path: &Path,
    name: &str,
    (steps, project): (&[Box<dyn Step>], Option<InProject<'_>>),
) -> Checked {
    let folder = path
        .parent()
        .map(|folder| match folder.as_os_str().is_empty() {
            true => Path::new("."),
            false => folder,
        });
    let siblings = project.map(|project| Around {
        root: project.root,
        beside: folder,
    });
    let around = Surroundings {
        steps,
        siblings: siblings.as_ref().map(|siblings| siblings as &dyn Siblings),
        settings: project.map(|project| project.settings),
    };
    let mut checked = check_code(session, load(session, path, name), around);
    if let (Some(loaded), Some(project)) = (&checked.loaded, project) {
        let limits = Limits::of(project.settings);
        let wider = wider_limits(&loaded.flow, &limits, session);
        checked.findings.extend(wider);
    }
    checked
}

/// As [`check_in`], for a text that is in no file. Includes are looked for below a folder, that of the project.
pub fn check_text(
    session: &Session,
    text: &str,
    folder: &Path,
    steps: &[Box<dyn Step>],
) -> Checked {
    let main = Main {
        name: "draft.edn",
        text,
        stem: "draft",
        is_stored: false,
    };
    let checked = read(session, &DiskFiles::below(folder), &main);
    let siblings = Around {
        root: folder,
        beside: None,
    };
    let around = Surroundings {
        steps,
        siblings: Some(&siblings),
        settings: None,
    };
    check_code(session, checked, around)
}
