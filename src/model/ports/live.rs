//! The text of models while it is produced. None of it is stored: a reader that joins gets the text so far of the turns
//! in progress, in the process that executes the run.

use std::future::Future;
use std::pin::Pin;

use crate::ids::RunId;

/// The texts of turns in progress in this process.
pub trait Live: Send + Sync {
    /// Adds to the text of the step at a path.
    fn add(&self, run: &RunId, path: &str, text: &str);

    /// Drops the text of a step: the step has ended, or begins again.
    fn clear(&self, run: &RunId, path: &str);

    /// Drops all texts of a run: the process no longer executes it.
    fn clear_run(&self, run: &RunId);

    /// Returns a reader of the texts of a run, from their beginnings.
    fn join(&self, run: &RunId) -> Box<dyn LiveText>;
}

/// A reader of the texts of a run. It has no queue, so a slow reader costs no memory: it gets longer pieces.
pub trait LiveText: Send {
    /// Returns the additions to each text since the last call.
    fn pieces(&mut self) -> Vec<TextPiece>;

    /// Waits until a text has grown since the last call of [`LiveText::pieces`].
    fn changed(&mut self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>>;
}

/// A part of a text in progress.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextPiece {
    pub path: String,
    /// Number of characters before the piece. A piece at 0 begins the text again. A piece that begins after the end of
    /// the previous one follows text that was dropped, because only the end of a very long text is kept.
    pub offset: u64,
    pub text: String,
}
