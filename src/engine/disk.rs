//! Flow files on disk: reading, checking, finding them.

pub(crate) mod changes;
mod find;
pub mod formats;
mod shared;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use flowstone_lang::session::Session;
use flowstone_lang::value::Value;

use crate::diagnostic::Diagnostic;
use crate::flow::{
    Checked, FlowFiles, Main, Siblings, StoredFiles, Surroundings, check_code, read, wider_limits,
};
use crate::format::{CompiledFlow, Formats};
use crate::libraries::LibraryFiles;
use crate::limits::Limits;
use crate::permission::{PROTECTED, has_protected};
use crate::registry::MAIN_FILE;
use crate::rooted::{Root, read_named};
use crate::step::Step;

pub use find::{Found, NotNamed, files_of, find, named, slugs};
pub use shared::{SharedCode, namespaces_in};

/// Larger files are not included: the text of a program is kept with each run.
const MOST_TEXT: u64 = 64_000_000;

/// Files below a folder, but for those that no flow reads without permission.
#[derive(Debug, Clone)]
pub struct DiskFiles {
    root: PathBuf,
    /// A folder whose files are not read, with links resolved.
    except: Option<PathBuf>,
    /// The folders of shared code.
    libraries: SharedCode,
    /// Texts that are used instead of those on disk.
    edited: Edited,
}

/// Texts of files that are not saved, by the paths that the files are opened by.
pub type Edited = BTreeMap<PathBuf, String>;

impl DiskFiles {
    pub fn below(root: impl Into<PathBuf>) -> DiskFiles {
        DiskFiles {
            root: root.into(),
            except: None,
            libraries: SharedCode::default(),
            edited: Edited::new(),
        }
    }

    /// Refuses files that may hold secrets or are the data of Flowstone, by the name that they have once links are
    /// resolved, and files of the folder that is left out.
    fn refuse_protected(&self, root: &Path, path: &str) -> Result<(), String> {
        let real = root.join(path).canonicalize();
        let root = root.canonicalize().unwrap_or_else(|_| root.to_path_buf());
        let real = real.unwrap_or_else(|_| root.join(path));
        let below = real.strip_prefix(&root).unwrap_or(&real);
        if has_protected(below) || has_protected(Path::new(path)) {
            return Err(format!(
                "a flow includes no file in or called {}",
                PROTECTED.join(", ")
            ));
        }
        match self
            .except
            .as_ref()
            .is_some_and(|except| real.starts_with(except))
        {
            true => Err("it belongs to the project, and the flow does not".to_owned()),
            false => Ok(()),
        }
    }
}

impl FlowFiles for DiskFiles {
    fn read(&self, path: &str) -> Result<String, String> {
        let describe = |error: std::io::Error| match error.kind() {
            std::io::ErrorKind::NotFound => "there is no such file".to_owned(),
            std::io::ErrorKind::InvalidData => "it is not UTF-8 text".to_owned(),
            std::io::ErrorKind::PermissionDenied if error.raw_os_error().is_none() => {
                "it is outside the folder of the flow".to_owned()
            }
            _ => error.to_string(),
        };
        let root = Root::open(&self.root).map_err(describe)?;
        let file = root.path().join(path);
        self.refuse_protected(root.path(), path)?;
        if let Some(text) = self.edited.get(&self.root.join(path)) {
            return Ok(text.clone());
        }
        tracing::debug!(target: "flowstone::files", path = %file.display(), "read");
        if std::fs::metadata(&file).is_ok_and(|facts| facts.len() > MOST_TEXT) {
            return Err(format!("it is larger than {} MB", MOST_TEXT / 1_000_000));
        }
        root.read_following_links(path).map_err(describe)
    }

    fn libraries(&self) -> &dyn LibraryFiles {
        &self.libraries
    }
}

/// The flows that a flow may call: those beside its file, and those of its project, also in other formats and in the registry.
struct SiblingFlows<'a> {
    root: &'a Path,
    beside: Option<&'a Path>,
    formats: Formats,
    registered: Option<&'a BTreeSet<String>>,
}

impl Siblings for SiblingFlows<'_> {
    fn find(&self, slug: &str) -> Result<Option<PathBuf>, Option<String>> {
        let of_format = || formats::find(self.root, self.beside, slug, self.formats);
        if formats::is_path(slug, self.formats) {
            return of_format()
                .map(|found| Some(found.file.path))
                .map_err(|_| None);
        }
        let file = find(self.root, self.beside, slug).map(|found| found.path);
        let file = file.or_else(|near| of_format().map(|found| found.file.path).map_err(|_| near));
        match file {
            Err(_) if self.registered.is_some_and(|all| all.contains(slug)) => Ok(None),
            file => file.map(Some),
        }
    }
}

/// Returns the folder that the paths in a flow file are relative to.
pub fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// Reads a flow file from disk and checks its definition. `name` is what errors call the file.
pub fn load(session: &Session, path: &Path, name: &str) -> Checked {
    load_in(session, (path, name), None, &Edited::new())
}

/// As [`load`]. A file outside the project includes none of the project's files, and requires none of its code.
fn load_in(
    session: &Session,
    (path, name): (&Path, &str),
    project: Option<InProject<'_>>,
    edited: &Edited,
) -> Checked {
    let shared = project.map(|project| SharedCode::of(project.root, project.settings));
    let project = project.and_then(|project| project.root.canonicalize().ok());
    let except = project.filter(|root| {
        let real = path.canonicalize();
        real.is_ok_and(|real| !real.starts_with(root))
    });
    tracing::debug!(target: "flowstone::files", path = %path.display(), "read");
    let text = match edited
        .get(path)
        .cloned()
        .map_or_else(|| read_named(path), Ok)
    {
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
        &DiskFiles {
            libraries: match except {
                Some(_) => SharedCode::default(),
                None => shared.unwrap_or_default(),
            },
            except,
            edited: edited.clone(),
            ..DiskFiles::below(folder_of(path))
        },
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
    /// The formats of other files that the flow may call.
    pub formats: Formats,
    /// The flows of the project's registry, if they were read.
    pub registered: Option<&'a BTreeSet<String>>,
}

/// As [`check`], with the step types and the project that the file belongs to.
pub fn check_in(
    session: &Session,
    path: &Path,
    name: &str,
    around: (&[Box<dyn Step>], Option<InProject<'_>>),
) -> Checked {
    check_edited(session, (path, name), around, &Edited::new())
}

/// As [`check_in`], with the texts of files that are not saved.
pub fn check_edited(
    session: &Session,
    (path, name): (&Path, &str),
    (steps, project): (&[Box<dyn Step>], Option<InProject<'_>>),
    edited: &Edited,
) -> Checked {
    let siblings = project.map(|project| SiblingFlows {
        root: project.root,
        beside: Some(folder_of(path)),
        formats: project.formats,
        registered: project.registered,
    });
    let around = Surroundings {
        steps,
        siblings: siblings.as_ref().map(|siblings| siblings as &dyn Siblings),
        settings: project.map(|project| project.settings),
    };
    let read = load_in(session, (path, name), project, edited);
    let mut checked = check_code(session, read, around);
    if let (Some(loaded), Some(project)) = (&checked.loaded, project) {
        let limits = Limits::of(project.settings);
        let wider = wider_limits(&loaded.flow, &limits, session);
        checked.findings.extend(wider);
    }
    checked
}

/// As [`check_in`], for a text that is in no file. Includes and called flows are looked for below a folder, that of the project.
pub fn check_text(
    session: &Session,
    text: &str,
    place: (&Path, Formats),
    steps: &[Box<dyn Step>],
) -> Checked {
    check_made(session, (text, "draft.edn"), place, steps)
}

/// As [`check_text`], with the name that errors give the text.
pub fn check_made(
    session: &Session,
    (text, name): (&str, &str),
    (folder, formats): (&Path, Formats),
    steps: &[Box<dyn Step>],
) -> Checked {
    let checked = read_made(session, (text, name), folder);
    let siblings = SiblingFlows {
        root: folder,
        beside: None,
        formats,
        registered: None,
    };
    let around = Surroundings {
        steps,
        siblings: Some(&siblings),
        settings: None,
    };
    check_code(session, checked, around)
}

/// As [`load`], for the texts of a stored version by their paths. Its main file is [`MAIN_FILE`].
pub fn load_version(session: &Session, slug: &str, texts: &BTreeMap<String, String>) -> Checked {
    let name = format!("{slug}.edn");
    let main = Main {
        name: &name,
        text: texts.get(MAIN_FILE).map(String::as_str).unwrap_or_default(),
        stem: slug,
        is_stored: false,
    };
    read(session, &StoredFiles(texts.clone()), &main)
}

/// As [`check_in`], for the texts of a stored version.
pub fn check_version(
    session: &Session,
    (slug, texts): (&str, &BTreeMap<String, String>),
    (steps, project): (&[Box<dyn Step>], InProject<'_>),
) -> Checked {
    let checked = load_version(session, slug, texts);
    let siblings = SiblingFlows {
        root: project.root,
        beside: None,
        formats: project.formats,
        registered: project.registered,
    };
    let around = Surroundings {
        steps,
        siblings: Some(&siblings),
        settings: Some(project.settings),
    };
    let mut checked = check_code(session, checked, around);
    if let Some(loaded) = &checked.loaded {
        let limits = Limits::of(project.settings);
        let wider = wider_limits(&loaded.flow, &limits, session);
        checked.findings.extend(wider);
    }
    checked
}

/// Reads the flow that was made of a file of another format, as [`load`] reads a flow file.
pub fn load_compiled(session: &Session, compiled: &CompiledFlow, folder: &Path) -> Checked {
    read_made(session, (&compiled.text, &compiled.file), folder)
}

fn read_made(session: &Session, (text, name): (&str, &str), folder: &Path) -> Checked {
    let main = Main {
        name,
        text,
        stem: name.trim_end_matches(".edn"),
        is_stored: false,
    };
    read(session, &DiskFiles::below(folder), &main)
}
