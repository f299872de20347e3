//! Versions of flows: what a registry keeps, and how contents and versions are named.
//!
//! A version never changes. Its content is a list of files, named by the digest of their [`Manifest`]; the version itself is
//! a number of its flow, and a revision id made of everything that the version records. `draft` is the newest version of a
//! flow, and `live` a pointer that releases and rollbacks move. Nothing here knows SQL, a clock, or what a flow is.

use std::collections::BTreeMap;
use std::fmt;

use crate::codec::digest_bytes;

/// The workspace of a project that has no other.
pub const DEFAULT_WORKSPACE: &str = "default";
/// The path under which the main file of a flow is stored.
pub const MAIN_FILE: &str = "flow.edn";
/// The file of a project's settings, which no version contains.
const SETTINGS: &str = "flowstone.edn";
/// The first line of a manifest: the format that digests are made of.
const MANIFEST_TAG: &str = "flowstone-flow 1";
/// Maximum number of files in a version.
pub const MOST_FILES: usize = 1_000;
/// Maximum number of bytes in all files of a version.
pub const MOST_BYTES: usize = 20_000_000;
/// Maximum number of bytes in a message.
pub const MOST_MESSAGE: usize = 10_000;

/// The files of a version, by their paths. The main file is [`MAIN_FILE`].
pub type VersionFiles = BTreeMap<String, Vec<u8>>;

/// The name of a flow in a registry.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FlowName {
    pub workspace: String,
    pub slug: String,
}

impl FlowName {
    /// Returns the name of a flow in the workspace [`DEFAULT_WORKSPACE`].
    pub fn local(slug: &str) -> FlowName {
        FlowName {
            workspace: DEFAULT_WORKSPACE.to_owned(),
            slug: slug.to_owned(),
        }
    }
}

impl fmt::Display for FlowName {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.workspace {
            DEFAULT_WORKSPACE => out.write_str(&self.slug),
            workspace => write!(out, "{workspace}/{}", self.slug),
        }
    }
}

/// The paths of a version's files, each with the SHA-256 of its bytes: the text that a content digest is made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Manifest(BTreeMap<String, String>);

/// The reason why files cannot be a version.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadFiles {
    #[error("there is no file `{MAIN_FILE}`")]
    NoMain,
    #[error(
        "`{path}` cannot be the path of a file in a version: it leads elsewhere, or a part of it begins with `.` or is `{SETTINGS}`"
    )]
    Path { path: String },
    #[error("there are {count} files, and a version has at most {MOST_FILES}")]
    TooMany { count: usize },
    #[error("the files have {bytes} bytes, and a version has at most {MOST_BYTES}")]
    TooLarge { bytes: usize },
}

impl Manifest {
    /// Returns the manifest of files.
    ///
    /// # Errors
    /// When the main file is missing, a path is not [`is_version_path`], or there is too much.
    pub fn of(files: &VersionFiles) -> Result<Manifest, BadFiles> {
        if !files.contains_key(MAIN_FILE) {
            return Err(BadFiles::NoMain);
        }
        if files.len() > MOST_FILES {
            let count = files.len();
            return Err(BadFiles::TooMany { count });
        }
        let bytes = files.values().map(Vec::len).sum();
        if bytes > MOST_BYTES {
            return Err(BadFiles::TooLarge { bytes });
        }
        if let Some(path) = files.keys().find(|path| !is_version_path(path)) {
            let path = path.clone();
            return Err(BadFiles::Path { path });
        }
        let hashes = files.iter();
        let hashes = hashes.map(|(path, bytes)| (path.clone(), digest_bytes(bytes)));
        Ok(Manifest(hashes.collect()))
    }

    /// Reads the text of a manifest. Returns `None` if it has another format.
    pub fn read(text: &str) -> Option<Manifest> {
        let mut lines = text.lines();
        if lines.next() != Some(MANIFEST_TAG) {
            return None;
        }
        let entry = |line: &str| {
            let (hash, path) = line.split_once(' ')?;
            Some((path.to_owned(), hash.to_owned()))
        };
        Some(Manifest(lines.map(entry).collect::<Option<_>>()?))
    }

    /// Returns the text of the manifest: one line for each file, sorted by path.
    pub fn text(&self) -> String {
        let mut text = format!("{MANIFEST_TAG}\n");
        for (path, hash) in &self.0 {
            text += &format!("{hash} {path}\n");
        }
        text
    }

    /// Returns the content digest, in lower-case hexadecimal.
    pub fn digest(&self) -> String {
        digest_bytes(self.text().as_bytes())
    }

    /// Returns the paths with the SHA-256 of their bytes, sorted by path.
    pub fn entries(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(path, hash)| (&**path, &**hash))
    }

    /// Returns the SHA-256 of a file.
    pub fn hash_of(&self, path: &str) -> Option<&str> {
        self.0.get(path).map(|hash| &**hash)
    }
}

/// Tells whether a version may have a file at a path. Versions are written beside the files of a project, so none of them
/// has hidden files, such as those of a repository and of secrets, or settings of the project.
pub fn is_version_path(path: &str) -> bool {
    let is_kept = |part: &str| part.starts_with('.') || part.eq_ignore_ascii_case(SETTINGS);
    is_plain_path(path) && !path.split('/').any(is_kept)
}

/// Tells whether a path is relative, without empty, `.` and `..` parts, and printable.
pub fn is_plain_path(path: &str) -> bool {
    let is_plain_part = |part: &str| !matches!(part, "" | "." | "..");
    path.len() <= 1_000
        && path.split('/').all(is_plain_part)
        && !path.chars().any(|char| char.is_control() || char == '\\')
}

/// A version of a flow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VersionRow {
    pub flow: FlowName,
    /// Counted from 1 for each flow, and never used again.
    pub number: i64,
    /// `rev_` and 32 digits: see [`revision_id`].
    pub revision: String,
    /// The digest of the files: see [`Manifest::digest`].
    pub content: String,
    /// The version that it was made from.
    pub parent: Option<i64>,
    pub author: String,
    pub message: String,
    pub created_ms: i64,
}

/// Returns the id of a version, made of its content, the revision of its parent, author, message and time.
pub fn revision_id(
    content: &str,
    parent: Option<&str>,
    (author, message): (&str, &str),
    created_ms: i64,
) -> String {
    let mut whole = String::new();
    for part in [content, parent.unwrap_or(""), author, message] {
        whole += &format!("{}:{part}", part.len());
    }
    whole += &created_ms.to_string();
    let digest = digest_bytes(whole.as_bytes());
    format!("rev_{}", digest.get(..32).unwrap_or(&digest))
}

/// A flow in a registry, with its pointers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlowRow {
    pub name: FlowName,
    /// The newest version: the draft.
    pub head: i64,
    /// The released version.
    pub live: Option<i64>,
    pub created_ms: i64,
    /// When a version was added or a pointer moved.
    pub updated_ms: i64,
    /// Since when the flow does not start.
    pub archived_ms: Option<i64>,
}

/// How `live` moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReleaseKind {
    Release,
    Rollback,
}

impl ReleaseKind {
    pub fn name(self) -> &'static str {
        match self {
            ReleaseKind::Release => "release",
            ReleaseKind::Rollback => "rollback",
        }
    }

    pub fn named(name: &str) -> ReleaseKind {
        match name {
            "rollback" => ReleaseKind::Rollback,
            _ => ReleaseKind::Release,
        }
    }
}

/// A line of a flow's release log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReleaseRow {
    /// Counted from 1 for each flow.
    pub seq: i64,
    pub kind: ReleaseKind,
    /// The version that `live` moved to.
    pub version: i64,
    /// The version that was live before.
    pub before: Option<i64>,
    pub author: String,
    pub note: String,
    pub at_ms: i64,
}

/// A pointer to a version of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Target {
    /// The newest version.
    Draft,
    /// The released version.
    Live,
}

impl Target {
    pub fn name(self) -> &'static str {
        match self {
            Target::Draft => "draft",
            Target::Live => "live",
        }
    }

    pub fn named(name: &str) -> Option<Target> {
        match name {
            "draft" => Some(Target::Draft),
            "live" => Some(Target::Live),
            _ => None,
        }
    }
}

/// The version that a run was started with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunVersion {
    pub number: i64,
    /// The pointer that named it. Flows that the run calls are found by the same pointer.
    pub target: Option<Target>,
}

/// Which version a new one expects to follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Base {
    /// The flow must not exist.
    Nothing,
    /// The version must be the head.
    Version(i64),
    /// The version in the store for the caller's place (see [`NewVersion::place`]) must be the head.
    OfPlace,
    /// The new version follows whatever the head is.
    Any,
}

/// A version to be added.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewVersion {
    pub flow: FlowName,
    pub base: Base,
    pub files: VersionFiles,
    pub author: String,
    pub message: String,
    pub now_ms: i64,
    /// The working copy that the files are from: the store remembers the version that it has now.
    pub place: Option<String>,
}

/// The outcome of adding a version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Added {
    New(VersionRow),
    /// The head has the same content; nothing was added.
    Unchanged(VersionRow),
}

impl Added {
    /// Returns the version that has the content.
    pub fn version(&self) -> &VersionRow {
        match self {
            Added::New(row) | Added::Unchanged(row) => row,
        }
    }
}

/// Where `live` is to move.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MoveTo {
    Head,
    Version(i64),
    /// The version that was released before the live one.
    Before,
}

/// A move of `live`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewRelease {
    pub flow: FlowName,
    pub kind: ReleaseKind,
    pub to: MoveTo,
    pub author: String,
    pub note: String,
    pub now_ms: i64,
}

/// The outcome of moving `live`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Moved {
    Done(ReleaseRow),
    /// `live` was there already; the log is unchanged.
    Already(i64),
}

/// The reason why the registry refused a change. Nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RegistryRefusal {
    NoFlow,
    NoVersion {
        number: i64,
    },
    Archived,
    /// The base is not the head. `base`: the version that the caller expected.
    Stale {
        base: Option<i64>,
        /// Boxed to keep the refusal small.
        head: Option<Box<VersionRow>>,
    },
    /// The place of the caller has no version of the flow yet.
    NoBase {
        head: Box<VersionRow>,
    },
    /// There is no release before the live one.
    NothingBefore {
        live: Option<i64>,
    },
    Files(BadFiles),
}

#[cfg(test)]
mod tests {
    use super::{BadFiles, MAIN_FILE, Manifest, VersionFiles, revision_id};

    fn files(entries: &[(&str, &str)]) -> VersionFiles {
        let entries = entries.iter();
        entries
            .map(|(path, text)| ((*path).to_owned(), text.as_bytes().to_vec()))
            .collect()
    }

    #[test]
    fn a_digest_depends_on_paths_and_bytes_only() {
        let one = Manifest::of(&files(&[(MAIN_FILE, "{}"), ("a/b.edn", "1")])).expect("good files");
        assert_eq!(
            one.text(),
            "flowstone-flow 1\n\
             6b86b273ff34fce19d6b804eff5a3f5747ada4eaa22f1d49c01e52ddb7875b4b a/b.edn\n\
             44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a flow.edn\n"
        );
        assert_eq!(
            one.digest(),
            "01385a6d6407f4b513e0894ad0cbee34dcbe712c1cd72c106832a3ae59223765"
        );
        assert_eq!(Manifest::read(&one.text()), Some(one.clone()));
        let other = Manifest::of(&files(&[(MAIN_FILE, "{}"), ("a/c.edn", "1")])).expect("good");
        assert_ne!(one.digest(), other.digest());
        assert_eq!(Manifest::read("another 1\n"), None);
    }

    #[test]
    fn paths_that_leave_the_version_are_refused() {
        for path in ["../a", "/a", "a//b", "a/./b", "a\nb", "a\\b", ""] {
            let found = Manifest::of(&files(&[(MAIN_FILE, "{}"), (path, "1")]));
            let path = path.to_owned();
            assert_eq!(found, Err(BadFiles::Path { path }));
        }
        assert_eq!(Manifest::of(&files(&[("a", "1")])), Err(BadFiles::NoMain));
    }

    #[test]
    fn each_part_of_a_version_is_in_its_revision() {
        let revision = |content, parent, who, at| revision_id(content, parent, who, at);
        let first = revision("c", Some("p"), ("a", "m"), 1);
        assert!(first.starts_with("rev_") && first.len() == 36, "{first}");
        for other in [
            revision("d", Some("p"), ("a", "m"), 1),
            revision("c", None, ("a", "m"), 1),
            revision("c", Some("p"), ("am", ""), 1),
            revision("c", Some("p"), ("a", "m"), 2),
        ] {
            assert_ne!(first, other);
        }
    }
}
