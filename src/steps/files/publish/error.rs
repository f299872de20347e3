//! Errors of publishing a changeset.

/// The hints are in [`PublishError::hint`].
#[derive(Debug, Clone, thiserror::Error)]
pub enum PublishError {
    #[error("`{path}` cannot take a commit: {cause}")]
    NoRepository { path: String, cause: String },
    #[error("there is nothing to publish: {why}")]
    Nothing { why: &'static str },
    #[error("`{}` is not a valid name of a branch: {why}", branch.escape_debug())]
    BadBranch { branch: String, why: &'static str },
    #[error("{url} has no `{base}` to base the commit on")]
    NoBase { base: String, url: String },
    #[error("the branch `{branch}` of {url} has commits that this one is not based on")]
    Diverged { branch: String, url: String },
    #[error("{} changed in {base} since the source was read", paths(paths_))]
    Outdated { base: String, paths_: Vec<String> },
    #[error("`{path}` cannot be written into a commit: its content is not stored")]
    NoContent { path: String },
    #[error("{url} refused the branch `{branch}`: {why}{}", lines(complaint))]
    Rejected {
        branch: String,
        url: String,
        why: String,
        complaint: String,
    },
    #[error("git may not {what}: {cause}")]
    Denied { what: String, cause: String },
}

fn paths(paths: &[String]) -> String {
    let mut shown: Vec<String> = paths.iter().take(3).map(|it| format!("`{it}`")).collect();
    if paths.len() > 3 {
        shown.push(format!("{} more", paths.len() - 3));
    }
    shown.join(", ")
}

fn lines(complaint: &str) -> String {
    match complaint {
        "" => String::new(),
        complaint => format!("\n{complaint}"),
    }
}

impl PublishError {
    /// Returns the code, and the kind that a flow can match on.
    pub fn code(&self) -> (&'static str, &'static str) {
        match self {
            Self::NoRepository { .. } => ("E0790", "bad-source"),
            Self::Nothing { .. } => ("E0791", "nothing-to-publish"),
            Self::BadBranch { .. } | Self::NoBase { .. } => ("E0792", "bad-branch"),
            Self::Diverged { .. } | Self::Outdated { .. } => ("E0793", "conflict"),
            Self::Rejected { .. } | Self::NoContent { .. } => ("E0794", "rejected"),
            Self::Denied { .. } => ("E0795", "denied"),
        }
    }

    /// Returns a hint for a person.
    pub fn hint(&self) -> String {
        match self {
            Self::NoRepository { .. } => {
                "publish from a source that is a git repository with at least one commit: `git init`, then `git commit`".into()
            }
            Self::Nothing { .. } => {
                "check with `:op :diff` first, and publish only if it lists files".into()
            }
            Self::BadBranch { .. } => "a branch is named like `changelog-update` or `bot/fix-1`".into(),
            Self::NoBase { .. } => "`:base` takes a branch, a tag or a full commit hash of that repository".into(),
            Self::Diverged { branch, .. } => format!(
                "put the commit on top of it with `:base \"{branch}\"`, or publish to another branch; nothing is ever overwritten"
            ),
            Self::Outdated { .. } => {
                "resolve the source again, make the changes there, and publish that".into()
            }
            Self::NoContent { .. } => "raise `:max-file-bytes` on the `:source`, or leave the file unchanged".into(),
            Self::Rejected { why, .. } if why.contains("checked out") => {
                "the branch is checked out in that folder, so git leaves it alone: publish to another branch".into()
            }
            Self::Rejected { .. } => {
                "the repository's rules (a protected branch, a hook) decide this: publish to another branch and ask for a review".into()
            }
            Self::Denied { .. } => {
                "give a `:connection` whose token may write, or set up git's own credentials: a credential helper, or an SSH key".into()
            }
        }
    }
}
