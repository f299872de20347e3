//! Errors of sources and of operations on them.

use std::io;
use std::path::Path;

use flowstone_flow::ports::StoreError;

use super::manifest::Kind;
use super::publish::PublishError;

/// Why a `:files` operation failed. Variants carry facts; wording is in their display and hints.
#[derive(Debug, thiserror::Error)]
pub enum FilesError {
    #[error("`{path}` is not a path inside the source: {why}")]
    BadPath { path: String, why: &'static str },
    #[error("the link `{path}` points to `{target}`, which is outside the source")]
    LinkOutside { path: String, target: String },
    #[error("the link `{path}` leads in a circle")]
    LinkCircle { path: String },
    #[error("there is no `{path}` in the source")]
    NotFound { path: String, near: Vec<String> },
    #[error("`{path}` is {}, which cannot be read", kind.describe())]
    NotReadable { path: String, kind: Kind },
    #[error("the folder `{path}` cannot be read: {cause}")]
    BadFolder { path: String, cause: String },
    #[error("the source has more than {limit} {what}")]
    TooLarge { what: &'static str, limit: u64 },
    #[error("there is no source tree `{id}`")]
    UnknownTree { id: String },
    #[error("there is no changeset `{id}`")]
    UnknownChangeset { id: String },
    #[error("`{path}` cannot be written: {why}")]
    NotWritable { path: String, why: String },
    #[error("`{path}` is not UTF-8 text, so an edit would damage it")]
    NotText { path: String },
    #[error("there is a `{path}` already")]
    Exists { path: String },
    #[error("`:old` is not in `{path}`{}", looks_like(near))]
    NoMatch {
        path: String,
        /// The line that is most similar to the first line of `:old`.
        near: Option<(usize, String)>,
    },
    #[error("`:old` occurs {} times in `{path}`, in lines {}", lines.len(), listed(lines))]
    NotUnique { path: String, lines: Vec<usize> },
    #[error("`{path}` has {lines} lines, but {what}")]
    BadRange {
        path: String,
        lines: usize,
        what: String,
    },
    #[error("line {line} of the patch: {why}")]
    BadPatch { line: usize, why: String },
    #[error("hunk {hunk} of `{path}` ({header}) does not apply: {why}")]
    HunkMismatch {
        path: String,
        hunk: usize,
        header: String,
        why: String,
    },
    #[error("the patch does not apply to `{path}`: {why}")]
    PatchMisfit { path: String, why: String },
    #[error("nothing was written to `{path}`: {why}")]
    BadTarget { path: String, why: String },
    #[error("nothing was written to `{path}`: {} there with other content: {}", are(files.len()), named(files))]
    Differs {
        path: String,
        /// The differing paths of the tree, sorted.
        files: Vec<String>,
    },
    #[error("`{path}` already exists with other content")]
    Taken { path: String },
    #[error("`{path}` was changed in the changeset since the folder was made")]
    ChangedMeanwhile { path: String },
    #[error("the content of `{path}` has {size} bytes, but at most {limit} can be written")]
    ContentTooLarge { path: String, size: u64, limit: u64 },
    #[error("the stored content of the source is damaged: {cause}")]
    Damaged { cause: String },
    #[error("no space is left on the disk that holds {path}")]
    Full { path: String },
    #[error("the content of the source cannot be stored in {path}: {cause}")]
    Storage { path: String, cause: String },
    #[error("git could not {what}: {cause}")]
    Git {
        what: String,
        cause: String,
        is_transient: bool,
    },
    #[error("git did not {what} within {seconds} s")]
    GitTimeout { what: String, seconds: u64 },
    #[error("the `git` command cannot be started: {cause}")]
    NoGit { cause: String },
    #[error("{cause}")]
    BadGitSource { cause: String },
    #[error("{repo}: {cause}")]
    Refused {
        repo: String,
        cause: String,
        hint: String,
    },
    #[error("the {what} `{pattern}` is not valid: {cause}")]
    BadPattern {
        what: &'static str,
        pattern: String,
        cause: String,
    },
    #[error("the pattern `{pattern}` took too long on `{path}`, line {line}")]
    PatternTooSlow {
        pattern: String,
        path: String,
        line: usize,
    },
    #[error("the operation was cancelled")]
    Cancelled,
    #[error(transparent)]
    Publish(#[from] Box<PublishError>),
}

impl From<PublishError> for FilesError {
    fn from(error: PublishError) -> FilesError {
        FilesError::Publish(Box::new(error))
    }
}

impl FilesError {
    /// Returns the error for a path under Flowstone's own folder that could not be written.
    pub fn storage(path: &Path, error: &io::Error) -> FilesError {
        let path = path.display().to_string();
        match is_full(error) {
            true => FilesError::Full { path },
            false => FilesError::Storage {
                path,
                cause: error.to_string(),
            },
        }
    }

    /// Returns the code, and the kind that a flow can match on.
    pub fn code(&self) -> (&'static str, &'static str) {
        match self {
            Self::BadPath { .. } | Self::LinkOutside { .. } | Self::LinkCircle { .. } => {
                ("E0770", "bad-path")
            }
            Self::NotFound { .. } => ("E0771", "not-found"),
            Self::UnknownChangeset { .. } => ("E0781", "not-found"),
            Self::NotText { .. } => ("E0772", "not-readable"),
            Self::NotWritable { .. } => ("E0783", "bad-path"),
            Self::NoMatch { .. } => ("E0784", "no-match"),
            Self::NotUnique { .. } => ("E0784", "not-unique"),
            Self::BadRange { .. } => ("E0785", "out-of-range"),
            Self::BadPatch { .. } => ("E0786", "bad-patch"),
            Self::HunkMismatch { .. } | Self::PatchMisfit { .. } => ("E0786", "no-match"),
            Self::BadTarget { .. } => ("E0787", "bad-path"),
            Self::Differs { .. } | Self::Taken { .. } => ("E0787", "exists"),
            Self::Exists { .. } => ("E0789", "exists"),
            Self::ChangedMeanwhile { .. } => ("E0615", "conflict"),
            Self::ContentTooLarge { .. } => ("E0788", "too-large"),
            Self::NotReadable { .. } => ("E0772", "not-readable"),
            Self::BadFolder { .. } => ("E0773", "bad-source"),
            Self::TooLarge { .. } => ("E0774", "too-large"),
            Self::UnknownTree { .. } | Self::Damaged { .. } => ("E0775", "bad-source"),
            Self::Full { .. } => (StoreError::NO_SPACE, "unavailable"),
            Self::Storage { .. } => ("E0776", "storage"),
            Self::Git { .. } | Self::NoGit { .. } | Self::BadGitSource { .. } => ("E0777", "git"),
            Self::Refused { .. } => ("E0731", "denied"),
            Self::GitTimeout { .. } => ("E0777", "timeout"),
            Self::BadPattern { .. } | Self::PatternTooSlow { .. } => ("E0778", "bad-pattern"),
            Self::Cancelled => ("E0779", "cancelled"),
            Self::Publish(error) => error.code(),
        }
    }

    /// Returns a hint for a person.
    pub fn hint(&self) -> String {
        match self {
            Self::BadPath { .. } => "use a path as `:list` returns it, such as `src/main.rs`".into(),
            Self::LinkOutside { .. } => "only links to files of the same source are followed".into(),
            Self::LinkCircle { .. } => "read the target file of the links directly".into(),
            Self::NotFound { near, .. } => match near.as_slice() {
                [] => "`:op :list` returns the paths that exist".into(),
                near => format!("did you mean {}?", quoted(near)),
            },
            Self::NotReadable { kind, .. } => match kind {
                Kind::Folder => "give the path of a file; `:op :list` with `:prefix` lists a folder".into(),
                Kind::Large => "raise `:max-file-bytes` on the `:source`".into(),
                Kind::Unreadable => "check the file's permissions and resolve the source again".into(),
                Kind::Submodule => "resolve the submodule's own repository as a source".into(),
                Kind::Binary | Kind::File | Kind::Link => "binary files are listed and sized, not read as text".into(),
            },
            Self::BadFolder { .. } => "`:path` is relative to the project's folder; check that it exists and may be read".into(),
            Self::TooLarge { what, .. } => match *what {
                "files" => "name a smaller folder, or raise `:max-files` on the `:source`".into(),
                _ => "name a smaller folder, or raise `:max-bytes` on the `:source`".into(),
            },
            Self::UnknownChangeset { .. } => "`:op :init-changeset` makes one; it may have been made in another project folder".into(),
            Self::NotText { .. } => "write the whole file, as bytes, with `:op :write-file`".into(),
            Self::Exists { .. } => "delete it first, or choose another path".into(),
            Self::NoMatch { near: Some((line, _)), .. } => format!("spaces and line ends count: look at the lines around {line} with `:op :read`"),
            Self::NoMatch { near: None, .. } => "spaces and line ends count: look at the file with `:op :read`".into(),
            Self::NotUnique { .. } => "include more of the surrounding lines in `:old`, or replace all with `:all? true`".into(),
            Self::BadRange { .. } => "lines are counted from 1; `:end-line` one below `:start-line` puts lines in before it".into(),
            Self::BadPatch { .. } => "nothing was changed; a diff as `git diff` writes it is understood".into(),
            Self::HunkMismatch { .. } | Self::PatchMisfit { .. } => "no file was changed; read the file again and make a patch for its current content".into(),
            Self::BadTarget { .. } => "choose another folder of the project, or leave `:to` out for a temporary one".into(),
            Self::Differs { .. } => "`:overwrite? true` replaces these files and leaves all others as they are; or choose another `:to`".into(),
            Self::Taken { .. } => "`:overwrite? true` replaces it; or choose another `:path`".into(),
            Self::ChangedMeanwhile { .. } => "nothing was written; materialize the changeset again and repeat the work there".into(),
            Self::NotWritable { .. } => "files are written in folders of the tree, never through links; `:op :list` shows what is there".into(),
            Self::ContentTooLarge { .. } => "store content of this size in a blob: `:persist {:type :blob}`".into(),
            Self::UnknownTree { .. } => "resolve the source again; the tree may have been made in another project folder".into(),
            Self::Damaged { .. } => "resolve the source again; what is missing is stored again".into(),
            Self::Full { .. } => "free some space, then resume the run with `flowstone runs resume`".into(),
            Self::Storage { .. } => "check the free space and the permissions of the project's home folder".into(),
            Self::Git { cause, .. } => git_hint(cause).into(),
            Self::GitTimeout { .. } => "check the network, or raise `:timeout` on the `:source`".into(),
            Self::Refused { hint, .. } => hint.clone(),
            Self::NoGit { .. } => "install git and make sure that it is on the PATH".into(),
            Self::BadGitSource { .. } => "a git source looks like {:type :git :repo \"https://host/owner/repo\" :ref \"main\"}".into(),
            Self::BadPattern { what: "glob", .. } => "a glob looks like `**/*.rs` or `src/*.{js,ts}`".into(),
            Self::BadPattern { .. } => "`:regex? true` takes the syntax of Clojure's #\"...\"; without it the query is plain text".into(),
            Self::PatternTooSlow { .. } => "simplify the pattern: nested repetition such as (a+)+ is slow".into(),
            Self::Cancelled => "start the step again".into(),
            Self::Publish(error) => error.hint(),
        }
    }

    /// Returns the path that the error concerns, for the flow.
    pub fn path(&self) -> Option<&str> {
        match self {
            Self::BadPath { path, .. }
            | Self::ContentTooLarge { path, .. }
            | Self::LinkCircle { path }
            | Self::LinkOutside { path, .. }
            | Self::NotFound { path, .. }
            | Self::NotReadable { path, .. }
            | Self::NotWritable { path, .. }
            | Self::BadRange { path, .. }
            | Self::BadTarget { path, .. }
            | Self::ChangedMeanwhile { path }
            | Self::Differs { path, .. }
            | Self::Taken { path }
            | Self::Exists { path }
            | Self::HunkMismatch { path, .. }
            | Self::NoMatch { path, .. }
            | Self::NotText { path }
            | Self::NotUnique { path, .. }
            | Self::PatchMisfit { path, .. } => Some(path),
            _ => None,
        }
    }

    /// Returns the files that the error concerns, for the flow.
    pub fn files(&self) -> Option<&[String]> {
        match self {
            Self::Differs { files, .. } => Some(files),
            _ => None,
        }
    }

    /// Tells whether the same request may succeed later.
    pub fn is_transient(&self) -> bool {
        matches!(
            self,
            Self::Git {
                is_transient: true,
                ..
            } | Self::GitTimeout { .. }
        )
    }
}

/// Tells whether an error means that the disk is full.
pub fn is_full(error: &io::Error) -> bool {
    use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    matches!(error.kind(), FileTooLarge | QuotaExceeded | StorageFull)
}

fn looks_like(near: &Option<(usize, String)>) -> String {
    match near {
        Some((line, text)) => format!("; line {line} is similar to its first one: `{text}`"),
        None => String::new(),
    }
}

fn are(count: usize) -> String {
    match count {
        1 => "a file is".to_owned(),
        count => format!("{count} files are"),
    }
}

/// Returns the first names of a list.
fn named(files: &[String]) -> String {
    const SHOWN: usize = 10;
    let mut shown: Vec<String> = files
        .iter()
        .take(SHOWN)
        .map(|it| format!("`{it}`"))
        .collect();
    if files.len() > SHOWN {
        shown.push(format!("and {} more", files.len() - SHOWN));
    }
    shown.join(", ")
}

/// Returns the first numbers of a list.
fn listed(lines: &[usize]) -> String {
    const SHOWN: usize = 10;
    let mut shown: Vec<String> = lines.iter().take(SHOWN).map(usize::to_string).collect();
    if lines.len() > SHOWN {
        shown.push("...".into());
    }
    shown.join(", ")
}

fn git_hint(cause: &str) -> &'static str {
    let cause = cause.to_ascii_lowercase();
    let has = |text: &str| cause.contains(text);
    if has("authentication")
        || has("could not read username")
        || has("permission denied")
        || has("terminal prompts")
    {
        "git has no credentials for this repository: set up a credential helper or an SSH key"
    } else if has("dubious ownership") {
        "the folder belongs to another user: `git config --global --add safe.directory PATH`"
    } else if has("couldn't find remote ref")
        || has("needed a single revision")
        || has("unknown revision")
    {
        "`:ref` takes a branch, a tag, HEAD or a full commit hash"
    } else if has("error: 30") {
        "the server redirects, which is not followed: write the address to which it redirects"
    } else if has("could not resolve host") || has("unable to access") {
        "check the address and the network"
    } else {
        "check that `git ls-remote` works with the same `:repo`"
    }
}

fn quoted(names: &[String]) -> String {
    names
        .iter()
        .map(|name| format!("`{name}`"))
        .collect::<Vec<_>>()
        .join(" or ")
}
