//! Why the registry did not do what it was asked.

use flowstone_model::ports::StoreError;
use flowstone_model::registry::{BadFiles, VersionRow};

use crate::flow_files::TextFinding;

/// The reason why something was not found in the registry, or not changed in it.
#[derive(Debug, Clone, thiserror::Error)]
pub enum RegistryError {
    #[error("the registry has no flow `{slug}`")]
    NoFlow { slug: String, near: Option<String> },
    #[error("the flow `{slug}` has no version {version}")]
    NoVersion { slug: String, version: String },
    #[error("the flow `{slug}` has no released version")]
    NotReleased { slug: String },
    #[error("{}", conflict(.0))]
    Conflict(Box<RevisionConflict>),
    #[error("it is not known which version of `{slug}` these files were made from")]
    NoBase { slug: String, head: i64 },
    #[error("the flow `{slug}` is archived")]
    Archived { slug: String },
    #[error("the flow `{slug}` has errors: {}", first(problems))]
    CheckFailed {
        slug: String,
        problems: Vec<TextFinding>,
    },
    #[error("{}", no_release_before(slug, *live))]
    NothingBefore { slug: String, live: Option<i64> },
    #[error("{0}")]
    Files(BadFiles),
    #[error("the file `{path}` is not UTF-8 text")]
    NotText { path: String },
    #[error(
        "the flow's files include `{path}`, which is the name of the main file in the registry"
    )]
    MainTaken { path: String },
    #[error("the text is of the flow `{found}`, not of `{slug}`")]
    OtherSlug { slug: String, found: String },
    #[error("`{text}` does not name a version")]
    BadReference { text: String },
    #[error("the {what} is too long: it has {bytes} bytes, and at most {most} are stored")]
    TooLong {
        what: &'static str,
        bytes: usize,
        most: usize,
    },
    #[error("a release of `{slug}` needs the deploy key")]
    DeployKey {
        slug: String,
        /// The project has one.
        is_set: bool,
    },
    #[error("{path} has changes that were not pushed")]
    Unpushed { path: String },
    #[error("{path} exists, and is not a file of the flow")]
    Occupied { path: String },
    #[error("{path} cannot be written: {detail}")]
    Unwritable { path: String, detail: String },
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A version whose base is not the newest one: somebody else was faster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RevisionConflict {
    pub slug: String,
    /// The version that the caller started from.
    pub base: Option<VersionRow>,
    /// The number that the caller gave, also if there is no such version.
    pub base_number: Option<i64>,
    /// The newest version.
    pub head: Option<VersionRow>,
    /// The files that differ between the base and the newest version.
    pub changed: Vec<String>,
    /// What the versions after the base changed, as a unified diff.
    pub diff: String,
}

impl RegistryError {
    /// Returns the code of the page in `docs/errors`.
    pub fn code(&self) -> &'static str {
        match self {
            RegistryError::NoFlow { .. } => "E1400",
            RegistryError::NoVersion { .. } => "E1401",
            RegistryError::Conflict(_) => "E1402",
            RegistryError::NoBase { .. } => "E1403",
            RegistryError::Archived { .. } => "E1404",
            RegistryError::CheckFailed { .. } => "E1405",
            RegistryError::NothingBefore { .. } => "E1406",
            RegistryError::Files(_)
            | RegistryError::NotText { .. }
            | RegistryError::MainTaken { .. } => "E1407",
            RegistryError::OtherSlug { .. } => "E1408",
            RegistryError::NotReleased { .. } => "E1409",
            RegistryError::TooLong { .. } => "E1410",
            RegistryError::BadReference { .. } => "E1411",
            RegistryError::Unpushed { .. } => "E1412",
            RegistryError::Unwritable { .. } => "E1413",
            RegistryError::Occupied { .. } => "E1414",
            RegistryError::DeployKey { .. } => "E1458",
            RegistryError::Store(error) => error.code(),
        }
    }

    /// Returns the name of the error in the build kit and in the errors of steps.
    pub fn kind(&self) -> &'static str {
        match self {
            RegistryError::NoFlow { .. } | RegistryError::NoVersion { .. } => "not_found",
            RegistryError::NotReleased { .. } => "no_revision",
            RegistryError::Conflict(_) | RegistryError::NoBase { .. } => "revision_conflict",
            RegistryError::Archived { .. } => "flow_archived",
            RegistryError::CheckFailed { .. } => "check_failed",
            RegistryError::NothingBefore { .. } => "no_revision",
            RegistryError::Files(_)
            | RegistryError::NotText { .. }
            | RegistryError::MainTaken { .. }
            | RegistryError::OtherSlug { .. }
            | RegistryError::BadReference { .. }
            | RegistryError::TooLong { .. } => "invalid_arguments",
            RegistryError::DeployKey { .. } => "permission_denied",
            RegistryError::Unpushed { .. } | RegistryError::Occupied { .. } => "revision_conflict",
            RegistryError::Unwritable { .. } | RegistryError::Store(_) => "internal",
        }
    }

    /// Returns what to try.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            RegistryError::NoFlow {
                near: Some(near), ..
            } => format!("did you mean `{near}`?"),
            RegistryError::NoFlow { .. } => {
                "`flowstone flows push PATH` adds its first version".to_owned()
            }
            RegistryError::NoVersion { slug, .. } => {
                format!("`flowstone flows versions {slug}` lists them")
            }
            RegistryError::NotReleased { slug } => format!(
                "release one with `flowstone flows release {slug}`, or use the target `draft`"
            ),
            RegistryError::Conflict(conflict) => match &conflict.head {
                Some(head) => format!(
                    "pull version {} with `flowstone flows pull {}` and apply your change to it, or push with `--force`",
                    head.number, conflict.slug
                ),
                None => "push without `--base`: the flow does not exist yet".to_owned(),
            },
            RegistryError::NoBase { slug, head } => format!(
                "version {head} is the newest: compare with `flowstone flows show {slug} --text`, then push with `--base {head}`"
            ),
            RegistryError::Archived { slug } => {
                format!("`flowstone flows archive {slug} --undo` ends that")
            }
            RegistryError::CheckFailed { .. } => {
                "correct the flow; `flowstone check` shows each place".to_owned()
            }
            RegistryError::NothingBefore { slug, .. } => format!(
                "name a version with `--to N`; `flowstone flows show {slug}` lists the releases"
            ),
            RegistryError::DeployKey { is_set: true, .. } => {
                "give it with `--deploy-key`, or in FLOWSTONE_DEPLOY_KEY".to_owned()
            }
            RegistryError::DeployKey { is_set: false, .. } => {
                "the project keeps it as the secret `deploy-key`, and has none".to_owned()
            }
            RegistryError::Files(_) => return None,
            RegistryError::NotText { .. } => "store other data as a resource".to_owned(),
            RegistryError::MainTaken { .. } => "rename the included file".to_owned(),
            RegistryError::OtherSlug { .. } => {
                "the `:slug` of a flow does not change; push the text under its own name".to_owned()
            }
            RegistryError::TooLong { .. } => "shorten it".to_owned(),
            RegistryError::BadReference { .. } => {
                "give SLUG, SLUG@NUMBER, SLUG@draft, SLUG@live or SLUG@rev_...".to_owned()
            }
            RegistryError::Unpushed { .. } => {
                "push them, or replace the file with `--force`".to_owned()
            }
            RegistryError::Occupied { .. } => {
                "move it, pull to another place with `--to FILE`, or replace it with `--force`"
                    .to_owned()
            }
            RegistryError::Unwritable { .. } => {
                "check that the folder exists and may be written".to_owned()
            }
            RegistryError::Store(error) => return error.hint(),
        })
    }
}

fn conflict(conflict: &RevisionConflict) -> String {
    let slug = &conflict.slug;
    match (&conflict.head, conflict.base_number) {
        (None, _) => {
            format!("the registry has no flow `{slug}`, so it has no version to start from")
        }
        (Some(head), None) => format!(
            "the flow `{slug}` exists: version {} by {} is the newest",
            head.number, head.author
        ),
        (Some(head), Some(base)) => format!(
            "version {base} of `{slug}` is not the newest any more: version {} by {}{}",
            head.number,
            head.author,
            match conflict.changed.is_empty() {
                true => String::new(),
                false => format!(" changed {}", conflict.changed.join(", ")),
            }
        ),
    }
}

fn first(problems: &[TextFinding]) -> String {
    match problems {
        [] => "it holds no flow".to_owned(),
        [only] => format!("{} {}", only.code, only.message),
        [one, ..] => format!(
            "{} {} (and {} more)",
            one.code,
            one.message,
            problems.len() - 1
        ),
    }
}

fn no_release_before(slug: &str, live: Option<i64>) -> String {
    match live {
        Some(live) => format!("no version of `{slug}` was released before version {live}"),
        None => format!("no version of `{slug}` was released, so there is nothing to roll back"),
    }
}
