//! Why a file of exported runs cannot be taken in.

/// Why a file cannot be read, or may not be taken in.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ArchiveError {
    #[error("this is not a file that `runs export` wrote")]
    Foreign,
    #[error("the file is damaged: {detail}")]
    Damaged { detail: String },
    #[error("the file was written by a newer Flowstone (format {found}, this one knows {known})")]
    TooNew { found: i64, known: i64 },
    #[error("the run `{run}` exists already")]
    Taken { run: String },
    #[error("the run {run} is not over, and an unfinished run keeps its id")]
    KeepsId { run: String },
}

impl ArchiveError {
    /// Returns the code of the page in `docs/errors`.
    pub fn code(&self) -> &'static str {
        match self {
            ArchiveError::Foreign => "E0560",
            ArchiveError::Damaged { .. } => "E0561",
            ArchiveError::TooNew { .. } => "E0562",
            ArchiveError::Taken { .. } => "E0563",
            ArchiveError::KeepsId { .. } => "E0564",
        }
    }

    /// Returns what to try.
    pub fn hint(&self) -> String {
        match self {
            ArchiveError::Foreign => "`flowstone runs export ID FILE` writes one",
            ArchiveError::Damaged { .. } => {
                "nothing was changed; copy the file again, or export the run again"
            }
            ArchiveError::TooNew { .. } => "use the Flowstone that wrote it, or a newer one",
            ArchiveError::Taken { .. } => {
                "nothing was changed; `--new-id` gives the imported run another id"
            }
            ArchiveError::KeepsId { .. } => {
                "its steps send the id along, so that nothing is done twice; `runs fork` makes another run of it"
            }
        }
        .to_owned()
    }
}
