//! The rights of a driver: the runs that it reaches, and the handles that it may name.

use flowstone_engine::ports::RunRow;

use super::error::TreeError;

/// The rights of a driver, as the server decides them for a token.
pub struct Reach<'a> {
    /// What the runs of the driver have as the one who started them.
    pub started_by: String,
    /// Tells whether the driver reaches a run; `None`: all runs.
    pub runs: Option<&'a dyn Fn(&RunRow) -> bool>,
    /// Whether the driver may name documents of the project, which are written there.
    pub files: bool,
}

impl Reach<'_> {
    /// Returns the rights of the project's owner on the command line.
    pub(super) fn everything() -> Reach<'static> {
        Reach {
            started_by: "tree".to_owned(),
            runs: None,
            files: true,
        }
    }

    pub(super) fn has(&self, run: &RunRow) -> bool {
        self.runs.is_none_or(|reaches| reaches(run))
    }

    /// Refuses the handle of a document, before it is looked for.
    pub(super) fn check_scheme(&self, handle: &str) -> Result<(), TreeError> {
        match self.files || !handle.starts_with("file:") {
            true => Ok(()),
            false => Err(TreeError::FileRefused {
                uri: handle.chars().take(200).collect(),
            }),
        }
    }
}
