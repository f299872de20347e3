//! The registry of a project's flows: versions that never change, and the pointers `draft` and `live`.
//!
//! A [`FlowRegistry`] is made of the project's stores, so commands, routes, steps and the build kit all use this one. Texts are
//! checked before they are added: [`check_version`], then [`FlowRegistry::commit`]. What a caller does from a folder or from a
//! delta is the same commit:
//!
//! ```text
//! let registry = FlowRegistry::new(engine.stores(), engine.now_ms());
//! let head = registry.version(slug, &VersionRef::Target(Target::Draft)).await?;     // or `revision(id)`
//! let mut files = registry.files(&head).await?;                                     // path -> bytes, `flow.edn` is the main one
//! files.insert(MAIN_FILE.to_owned(), text.into_bytes());
//! let warnings = check_version(slug, &files, |session, texts| engine.check_version(session, slug, texts))?;
//! let added = registry.commit(NewCommit { base: Base::Version(head.number), ..NewCommit::of(slug, files) }).await?;
//! ```
//!
//! A commit whose base is not the newest version is [`RegistryError::Conflict`]: nothing was written, and the error has the
//! newest version, the changed files and their diff. A commit that equals the newest version is [`Added::Unchanged`].
//! Nothing here starts runs; [`flowstone_engine::Engine::version_flow`] makes a flow of a version.

mod copy;
mod diff;
mod error;

use std::collections::BTreeMap;
use std::sync::Arc;

pub use copy::WorkingCopy;
pub use diff::{Change, FileDiff, FormDiff, VersionDiff, diff};
pub use error::{RegistryError, RevisionConflict};
use flowstone_engine::Engine;
use flowstone_flow::flow::{Checked, LoadedFlow, Main, StoredFiles, program_files, read};
use flowstone_lang::session::Session;
use flowstone_lang::value::Value;
use flowstone_model::codec::digest_bytes;
use flowstone_model::diagnostic::{Severity, nearest};
use flowstone_model::ports::{Registry, Stores};
pub use flowstone_model::registry::{
    Added, Base, DEFAULT_WORKSPACE, FlowName, FlowRow, MAIN_FILE, Moved, ReleaseKind, ReleaseRow,
    Target, VersionFiles, VersionRow,
};
use flowstone_model::registry::{MOST_MESSAGE, MoveTo, NewRelease, NewVersion, RegistryRefusal};

use crate::flow_files::{TextFinding, text_findings};

/// Maximum number of bytes in the name of an author.
const MOST_AUTHOR: usize = 200;
/// Maximum number of bytes of a diff in a conflict.
const MOST_CONFLICT: usize = 20_000;

/// The versions of flows in one workspace.
#[derive(Clone)]
pub struct FlowRegistry {
    port: Arc<dyn Registry>,
    workspace: String,
    now_ms: i64,
}

/// Names a version of a flow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VersionRef {
    Target(Target),
    Number(i64),
    /// The id of a revision: `rev_...`.
    Revision(String),
}

impl VersionRef {
    /// Reads `draft`, `live`, a number or a revision id; 0 is the draft.
    ///
    /// # Errors
    /// When the text is something else.
    pub fn read(text: &str) -> Result<VersionRef, RegistryError> {
        if let Some(target) = Target::named(text) {
            return Ok(VersionRef::Target(target));
        }
        if text.starts_with("rev_") {
            return Ok(VersionRef::Revision(text.to_owned()));
        }
        match text.parse() {
            Ok(0) => Ok(VersionRef::Target(Target::Draft)),
            Ok(number) if number > 0 => Ok(VersionRef::Number(number)),
            _ => Err(RegistryError::BadReference {
                text: text.to_owned(),
            }),
        }
    }

    /// Reads `SLUG` or `SLUG@VERSION`; without a version it is the draft.
    ///
    /// # Errors
    /// As [`VersionRef::read`].
    pub fn with_slug(text: &str) -> Result<(&str, VersionRef), RegistryError> {
        match text.split_once('@') {
            None => Ok((text, VersionRef::Target(Target::Draft))),
            Some((slug, version)) => Ok((slug, VersionRef::read(version)?)),
        }
    }
}

impl std::fmt::Display for VersionRef {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            VersionRef::Target(target) => out.write_str(target.name()),
            VersionRef::Number(number) => write!(out, "{number}"),
            VersionRef::Revision(revision) => out.write_str(revision),
        }
    }
}

/// A version to be added. Its files were checked: see [`check_version`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewCommit {
    pub slug: String,
    pub files: VersionFiles,
    pub base: Base,
    pub author: String,
    /// Empty: derived from what changed.
    pub message: String,
    /// The working copy that the files are from: see [`Base::OfPlace`].
    pub place: Option<String>,
}

impl NewCommit {
    /// Returns the first version of a flow, by nobody.
    pub fn of(slug: &str, files: VersionFiles) -> NewCommit {
        NewCommit {
            slug: slug.to_owned(),
            files,
            base: Base::Nothing,
            author: String::new(),
            message: String::new(),
            place: None,
        }
    }
}

/// A flow with the versions that its pointers name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlowPointers {
    pub row: FlowRow,
    pub head: VersionRow,
    pub live: Option<VersionRow>,
}

impl FlowRegistry {
    /// Returns the registry of the workspace [`DEFAULT_WORKSPACE`].
    pub fn new(stores: &Stores, now_ms: i64) -> FlowRegistry {
        FlowRegistry::in_workspace(stores, DEFAULT_WORKSPACE, now_ms)
    }

    pub fn in_workspace(stores: &Stores, workspace: &str, now_ms: i64) -> FlowRegistry {
        FlowRegistry {
            port: stores.registry.clone(),
            workspace: workspace.to_owned(),
            now_ms,
        }
    }

    fn name(&self, slug: &str) -> FlowName {
        FlowName {
            workspace: self.workspace.clone(),
            slug: slug.to_owned(),
        }
    }

    /// Adds a version, unless the newest one has the same content.
    ///
    /// # Errors
    /// [`RegistryError::Conflict`] when the base is not the newest version, [`RegistryError::NoBase`] when the working copy
    /// has no version, [`RegistryError::Archived`], and when files, author or message are too large.
    pub async fn commit(&self, new: NewCommit) -> Result<Added, RegistryError> {
        check_length("message", &new.message, MOST_MESSAGE)?;
        check_length("author", &new.author, MOST_AUTHOR)?;
        let flow = self.name(&new.slug);
        let message = match new.message.trim() {
            "" => self.derived_message(&flow, &new.files).await?,
            message => message.to_owned(),
        };
        let base = new.base;
        let given = new.files.clone();
        let version = NewVersion {
            flow: flow.clone(),
            base,
            files: new.files,
            author: new.author,
            message,
            now_ms: self.now_ms,
            place: new.place,
        };
        match self.port.add_version(version).await? {
            Ok(added) => Ok(added),
            Err(RegistryRefusal::Stale {
                base: None,
                head: Some(head),
            }) => {
                let found = self.unbased(&flow, *head, &given).await?;
                Err(RegistryError::Conflict(Box::new(found)))
            }
            Err(refusal) => Err(self.refused(&flow, refusal).await?),
        }
    }

    /// Returns the conflict of a commit that names no version as its base: the changes that it would make to the newest one.
    async fn unbased(
        &self,
        flow: &FlowName,
        head: VersionRow,
        files: &VersionFiles,
    ) -> Result<RevisionConflict, RegistryError> {
        let old = self.files(&head).await?;
        let found = diff(&old, files, (&head.number.to_string(), "pushed"));
        Ok(RevisionConflict {
            slug: flow.slug.clone(),
            base: None,
            base_number: None,
            head: Some(head),
            changed: found.paths(),
            diff: shortened(found.text()),
        })
    }

    /// Returns the message of a commit without one.
    async fn derived_message(
        &self,
        flow: &FlowName,
        files: &VersionFiles,
    ) -> Result<String, RegistryError> {
        let Some(row) = self.port.flow(flow).await? else {
            return Ok("First version".to_owned());
        };
        let Some(head) = self.port.version(flow, row.head).await? else {
            return Ok(String::new());
        };
        let found = diff(&self.files(&head).await?, files, ("a", "b"));
        let forms = found.forms.iter();
        let forms: Vec<&str> = forms.take(5).map(|form| &*form.form).collect();
        Ok(match forms.is_empty() {
            true => format!("Change {}", found.paths().join(", ")),
            false => format!("Change {}", forms.join(", ")),
        })
    }

    /// Makes an error of a refusal.
    async fn refused(
        &self,
        flow: &FlowName,
        refusal: RegistryRefusal,
    ) -> Result<RegistryError, RegistryError> {
        let slug = flow.slug.clone();
        Ok(match refusal {
            RegistryRefusal::NoFlow => self.no_flow(&slug).await?,
            RegistryRefusal::NoVersion { number } => RegistryError::NoVersion {
                slug,
                version: number.to_string(),
            },
            RegistryRefusal::Archived => RegistryError::Archived { slug },
            RegistryRefusal::NoBase { head } => RegistryError::NoBase {
                slug,
                head: head.number,
            },
            RegistryRefusal::NothingBefore { live } => RegistryError::NothingBefore { slug, live },
            RegistryRefusal::Files(error) => RegistryError::Files(error),
            RegistryRefusal::Stale { base, head } => {
                let head = head.map(|head| *head);
                RegistryError::Conflict(Box::new(self.conflict(flow, base, head).await?))
            }
        })
    }

    async fn conflict(
        &self,
        flow: &FlowName,
        base_number: Option<i64>,
        head: Option<VersionRow>,
    ) -> Result<RevisionConflict, RegistryError> {
        let base = match base_number {
            Some(number) => self.port.version(flow, number).await?,
            None => None,
        };
        let (mut changed, mut text) = (Vec::new(), String::new());
        if let (Some(base), Some(head)) = (&base, &head) {
            let names = (base.number.to_string(), head.number.to_string());
            let (old, new) = (self.files(base).await?, self.files(head).await?);
            let found = diff(&old, &new, (&names.0, &names.1));
            changed = found.paths();
            text = shortened(found.text());
        }
        Ok(RevisionConflict {
            slug: flow.slug.clone(),
            base,
            base_number,
            head,
            changed,
            diff: text,
        })
    }

    async fn no_flow(&self, slug: &str) -> Result<RegistryError, RegistryError> {
        let flows = self.port.flows(&self.workspace).await?;
        let slugs = flows.iter().map(|row| &*row.name.slug);
        Ok(RegistryError::NoFlow {
            slug: slug.to_owned(),
            near: nearest(slug, slugs).map(str::to_owned),
        })
    }

    /// Returns the flows of the workspace, by slug.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn flows(&self, with_archived: bool) -> Result<Vec<FlowRow>, RegistryError> {
        let mut flows = self.port.flows(&self.workspace).await?;
        flows.retain(|row| with_archived || row.archived_ms.is_none());
        Ok(flows)
    }

    /// Returns a flow; `None` if it was never pushed.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn find(&self, slug: &str) -> Result<Option<FlowRow>, RegistryError> {
        Ok(self.port.flow(&self.name(slug)).await?)
    }

    /// Returns a flow.
    ///
    /// # Errors
    /// [`RegistryError::NoFlow`] when it was never pushed.
    pub async fn flow(&self, slug: &str) -> Result<FlowRow, RegistryError> {
        match self.find(slug).await? {
            Some(row) => Ok(row),
            None => Err(self.no_flow(slug).await?),
        }
    }

    /// Returns a flow with the versions that its pointers name.
    ///
    /// # Errors
    /// As [`FlowRegistry::flow`].
    pub async fn pointers(&self, slug: &str) -> Result<FlowPointers, RegistryError> {
        let row = self.flow(slug).await?;
        let head = self.numbered(slug, row.head).await?;
        let live = match row.live {
            Some(number) => Some(self.numbered(slug, number).await?),
            None => None,
        };
        Ok(FlowPointers { row, head, live })
    }

    async fn numbered(&self, slug: &str, number: i64) -> Result<VersionRow, RegistryError> {
        let found = self.port.version(&self.name(slug), number).await?;
        found.ok_or_else(|| RegistryError::NoVersion {
            slug: slug.to_owned(),
            version: number.to_string(),
        })
    }

    /// Returns a version.
    ///
    /// # Errors
    /// [`RegistryError::NoFlow`], [`RegistryError::NoVersion`], [`RegistryError::NotReleased`].
    pub async fn version(
        &self,
        slug: &str,
        wanted: &VersionRef,
    ) -> Result<VersionRow, RegistryError> {
        let row = self.flow(slug).await?;
        match wanted {
            VersionRef::Target(Target::Draft) => self.numbered(slug, row.head).await,
            VersionRef::Target(Target::Live) => match row.live {
                Some(number) => self.numbered(slug, number).await,
                None => Err(RegistryError::NotReleased {
                    slug: slug.to_owned(),
                }),
            },
            VersionRef::Number(number) => self.numbered(slug, *number).await,
            VersionRef::Revision(revision) => {
                let found = self.port.revision(&self.name(slug), revision).await?;
                found.ok_or_else(|| RegistryError::NoVersion {
                    slug: slug.to_owned(),
                    version: revision.clone(),
                })
            }
        }
    }

    /// Returns versions, newest first: those with a number below `before`.
    ///
    /// # Errors
    /// [`RegistryError::NoFlow`] when the flow was never pushed.
    pub async fn versions(
        &self,
        slug: &str,
        before: Option<i64>,
        limit: usize,
    ) -> Result<Vec<VersionRow>, RegistryError> {
        self.flow(slug).await?;
        Ok(self.port.versions(&self.name(slug), before, limit).await?)
    }

    /// Returns the files of a version.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn files(&self, version: &VersionRow) -> Result<VersionFiles, RegistryError> {
        let found = self.port.files(&version.content).await?;
        found.ok_or_else(|| RegistryError::NoVersion {
            slug: version.flow.slug.clone(),
            version: version.number.to_string(),
        })
    }

    /// Returns the difference between two versions of a flow.
    ///
    /// # Errors
    /// As [`FlowRegistry::version`].
    pub async fn diff(
        &self,
        slug: &str,
        (old, new): (&VersionRef, &VersionRef),
    ) -> Result<(VersionRow, VersionRow, VersionDiff), RegistryError> {
        let old = self.version(slug, old).await?;
        let new = self.version(slug, new).await?;
        let names = (old.number.to_string(), new.number.to_string());
        let found = diff(
            &self.files(&old).await?,
            &self.files(&new).await?,
            (&names.0, &names.1),
        );
        Ok((old, new, found))
    }

    /// Checks the deploy key of a release or rollback, if the flow asks for one: `:deploy-key-required` in the version that is
    /// live, or in the one that is to be. `expected` is the project's key.
    ///
    /// # Errors
    /// [`RegistryError::DeployKey`], and as [`FlowRegistry::version`].
    pub async fn check_deploy_key(
        &self,
        slug: &str,
        to: Option<i64>,
        (given, expected): (Option<&str>, Option<&str>),
    ) -> Result<(), RegistryError> {
        let row = self.flow(slug).await?;
        let mut numbers: Vec<i64> = row.live.into_iter().collect();
        numbers.push(to.unwrap_or(row.head));
        for number in numbers {
            let version = self.version(slug, &VersionRef::Number(number)).await?;
            let texts = texts(&self.files(&version).await?)?;
            let loaded = read_version(&Session::new(), slug, &texts).loaded;
            let asks = loaded.is_some_and(|loaded| {
                loaded.flow.definition.get("deploy-key-required") == Some(&Value::Bool(true))
            });
            let digest = |key: &str| digest_bytes(key.as_bytes());
            let is_good = given.is_some() && given.map(digest) == expected.map(digest);
            if asks && !is_good {
                return Err(RegistryError::DeployKey {
                    slug: slug.to_owned(),
                    is_set: expected.is_some(),
                });
            }
        }
        Ok(())
    }

    /// Moves `live` to a version, or to the newest one.
    ///
    /// # Errors
    /// [`RegistryError::NoFlow`], [`RegistryError::NoVersion`], [`RegistryError::Archived`].
    pub async fn release(
        &self,
        slug: &str,
        version: Option<i64>,
        by: (&str, &str),
    ) -> Result<Moved, RegistryError> {
        let to = version.map_or(MoveTo::Head, MoveTo::Version);
        self.move_live(slug, (ReleaseKind::Release, to), by).await
    }

    /// Moves `live` back to a version, or to the one that was released before. Runs and data stay as they are.
    ///
    /// # Errors
    /// As [`FlowRegistry::release`], and [`RegistryError::NothingBefore`].
    pub async fn rollback(
        &self,
        slug: &str,
        version: Option<i64>,
        by: (&str, &str),
    ) -> Result<Moved, RegistryError> {
        let to = version.map_or(MoveTo::Before, MoveTo::Version);
        self.move_live(slug, (ReleaseKind::Rollback, to), by).await
    }

    async fn move_live(
        &self,
        slug: &str,
        (kind, to): (ReleaseKind, MoveTo),
        (author, note): (&str, &str),
    ) -> Result<Moved, RegistryError> {
        check_length("message", note, MOST_MESSAGE)?;
        check_length("author", author, MOST_AUTHOR)?;
        let flow = self.name(slug);
        let release = NewRelease {
            flow: flow.clone(),
            kind,
            to,
            author: author.to_owned(),
            note: note.to_owned(),
            now_ms: self.now_ms,
        };
        match self.port.move_live(release).await? {
            Ok(moved) => Ok(moved),
            Err(refusal) => Err(self.refused(&flow, refusal).await?),
        }
    }

    /// Archives a flow: it does not start any more. With `false`, ends that.
    ///
    /// # Errors
    /// [`RegistryError::NoFlow`] when the flow was never pushed.
    pub async fn archive(&self, slug: &str, is_archived: bool) -> Result<FlowRow, RegistryError> {
        let flow = self.name(slug);
        let at = is_archived.then_some(self.now_ms);
        match self.port.archive(&flow, at).await? {
            Ok(row) => Ok(row),
            Err(refusal) => Err(self.refused(&flow, refusal).await?),
        }
    }

    /// Returns the release log of a flow, newest line first.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn releases(
        &self,
        slug: &str,
        limit: usize,
    ) -> Result<Vec<ReleaseRow>, RegistryError> {
        Ok(self.port.releases(&self.name(slug), limit).await?)
    }

    /// Returns the version that a working copy has.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn version_at(&self, slug: &str, place: &str) -> Result<Option<i64>, RegistryError> {
        Ok(self.port.version_at(&self.name(slug), place).await?)
    }

    /// Records that a working copy was made of a version.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub async fn check_out(&self, version: &VersionRow, place: &str) -> Result<(), RegistryError> {
        let done = self.port.check_out(&version.flow, place, version.number);
        Ok(done.await?)
    }
}

/// Returns the beginning of a diff.
fn shortened(mut text: String) -> String {
    if text.len() > MOST_CONFLICT {
        let end = (0..=MOST_CONFLICT)
            .rev()
            .find(|at| text.is_char_boundary(*at));
        text.truncate(end.unwrap_or(0));
    }
    text
}

/// Returns the deploy key of a project: the secret `deploy-key`.
pub fn deploy_key(engine: &Engine) -> Option<String> {
    let profile = engine.bindings().profile.as_deref();
    let key = engine.secrets().find_in(profile, "deploy-key")?;
    Some(key.reveal().to_owned())
}

fn check_length(what: &'static str, text: &str, most: usize) -> Result<(), RegistryError> {
    match text.len() > most {
        true => Err(RegistryError::TooLong {
            what,
            bytes: text.len(),
            most,
        }),
        false => Ok(()),
    }
}

/// Returns the files of a flow that was read, as a version has them.
///
/// # Errors
/// When an included file has the name of the main one.
pub fn files_of(loaded: &LoadedFlow) -> Result<VersionFiles, RegistryError> {
    let (_, texts) = program_files(&loaded.program).unwrap_or_default();
    let mut files = VersionFiles::new();
    for (path, text) in texts {
        if path == MAIN_FILE {
            return Err(RegistryError::MainTaken { path });
        }
        let path = match path.is_empty() {
            true => MAIN_FILE.to_owned(),
            false => path,
        };
        files.insert(path, text.into_bytes());
    }
    Ok(files)
}

/// Returns the files of a version that belong to a working copy: the main file, and what the flow includes. A version whose
/// flow cannot be read any more has all its files.
pub(crate) fn included(slug: &str, files: &VersionFiles) -> VersionFiles {
    let read = texts(files).ok();
    let read = read.and_then(|texts| read_version(&Session::new(), slug, &texts).loaded);
    let Some(Ok(paths)) = read.map(|loaded| files_of(&loaded)) else {
        return files.clone();
    };
    let mut files = files.clone();
    files.retain(|path, _| path == MAIN_FILE || paths.contains_key(path));
    files
}

/// Returns the files of a version as texts.
///
/// # Errors
/// When one of them is not UTF-8.
pub fn texts(files: &VersionFiles) -> Result<BTreeMap<String, String>, RegistryError> {
    let text = |(path, bytes): (&String, &Vec<u8>)| match std::str::from_utf8(bytes) {
        Ok(text) => Ok((path.clone(), text.to_owned())),
        Err(_) => Err(RegistryError::NotText { path: path.clone() }),
    };
    files.iter().map(text).collect()
}

/// Reads the flow in the texts of a version, without checking its code.
pub(crate) fn read_version(
    session: &Session,
    slug: &str,
    texts: &BTreeMap<String, String>,
) -> Checked {
    let main = Main {
        name: MAIN_FILE,
        text: texts.get(MAIN_FILE).map(String::as_str).unwrap_or_default(),
        stem: slug,
        is_stored: false,
    };
    read(session, &StoredFiles(texts.clone()), &main)
}

/// Returns the map of the flow in the files of a version; `None` if it cannot be read.
pub fn definition(slug: &str, files: &VersionFiles) -> Option<Value> {
    let read = read_version(&Session::new(), slug, &texts(files).ok()?);
    Some(read.loaded?.flow.definition.clone())
}

/// Checks the files of a new version: errors refuse it, and warnings are returned. `check` is usually
/// [`flowstone_engine::Engine::check_version`].
///
/// # Errors
/// [`RegistryError::CheckFailed`] with everything that is wrong; [`RegistryError::OtherSlug`] when the text is of another flow.
pub fn check_version(
    slug: &str,
    files: &VersionFiles,
    check: impl FnOnce(&Session, &BTreeMap<String, String>) -> Checked,
) -> Result<Vec<TextFinding>, RegistryError> {
    let texts = texts(files)?;
    let session = Session::new();
    flowstone_flow::natives::install(&session);
    flowstone_steps::sandbox::register(&session);
    let checked = check(&session, &texts);
    let loaded = checked.loaded;
    let findings = text_findings(&session, checked.findings);
    let (problems, warnings): (Vec<_>, Vec<_>) = findings
        .into_iter()
        .partition(|finding| finding.severity == Severity::Error);
    let slug = slug.to_owned();
    let flow = match loaded.filter(|_| problems.is_empty()) {
        Some(loaded) => loaded.flow,
        None => return Err(RegistryError::CheckFailed { slug, problems }),
    };
    if flow.definition.as_map().is_none() {
        return Err(RegistryError::CheckFailed { slug, problems });
    }
    if *flow.slug != *slug {
        let found = flow.slug.to_string();
        return Err(RegistryError::OtherSlug { slug, found });
    }
    Ok(warnings)
}
