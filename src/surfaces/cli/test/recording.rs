//! The recording of a case that is made again: it replaces the old one when the run has ended as expected.

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::super::report::Report;

/// A recording in a folder of its own. Unless it is kept, the folder is removed.
pub struct NewRecording {
    folder: TempDir,
    /// The folder that it replaces.
    old: PathBuf,
}

impl NewRecording {
    /// Makes a folder beside the recording that it may replace.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn beside(old: &Path) -> Result<NewRecording, Report> {
        let parent = old.parent().filter(|it| *it != Path::new(""));
        let folder = tempfile::Builder::new()
            .prefix(".recording-")
            .tempdir_in(parent.unwrap_or(Path::new(".")))
            .map_err(|error| not_kept(old, &error))?;
        Ok(NewRecording {
            folder,
            old: old.to_path_buf(),
        })
    }

    /// Returns the folder to record in.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Replaces the old recording.
    ///
    /// # Errors
    /// When a folder cannot be removed or renamed.
    pub fn keep(self) -> Result<(), Report> {
        let NewRecording { folder, old } = self;
        let replaced = match fs::remove_dir_all(&old) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
            Ok(()) | Err(_) => fs::rename(folder.path(), &old),
        };
        replaced.map_err(|error| not_kept(&old, &error))?;
        let _ = folder.keep();
        Ok(())
    }
}

fn not_kept(old: &Path, error: &std::io::Error) -> Report {
    let message = format!(
        "the recording {} cannot be replaced: {error}",
        old.display()
    );
    Report::error("E1595", message)
}
