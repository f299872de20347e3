//! The text of models while it is being produced. Nothing of it is stored: a reader that joins gets what came so far of
//! the turns in progress, in the process that executes the run.

use std::future::Future;
use std::pin::Pin;

use crate::ids::RunId;

/// The texts of the turns that are in progress in this process.
pub trait Live: Send + Sync {
    /// Adds to the text of the step at a path.
    fn add(&self, run: &RunId, path: &str, text: &str);

    /// Drops the text of a step: the step ended, or begins again.
    fn clear(&self, run: &RunId, path: &str);

    /// Drops all texts of a run: the process no longer executes it.
    fn clear_run(&self, run: &RunId);

    /// Returns the texts of a run, from their beginnings on.
    fn join(&self, run: &RunId) -> Box<dyn LiveText>;
}

/// A reader of the texts of a run. It has no queue, so a slow reader costs no memory: it gets longer pieces.
pub trait LiveText: Send {
    /// Returns what was added to each text since the last call.
    fn pieces(&mut self) -> Vec<TextPiece>;

    /// Returns when something was added since the last call of [`LiveText::pieces`].
    fn changed(&mut self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>>;
}

/// A part of a text in progress.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextPiece {
    pub path: String,
    /// The number of characters before it. A piece at 0 begins the text again; one further on than the end of what came
    /// before follows text that was dropped, because only the end of a very long text is kept.
    pub offset: u64,
    pub text: String,
}
