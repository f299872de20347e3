//! Embedding of texts as vectors: a port that step types implement and searches use.

use crate::step::LocalFuture;

/// Turns texts into vectors.
pub trait Embedder {
    /// Returns the name of the model, with everything else that its vectors depend on.
    fn model(&self) -> &str;

    /// Returns a vector for each text.
    fn embed<'a>(
        &'a self,
        texts: &'a [String],
    ) -> LocalFuture<'a, Result<Vec<Vec<f32>>, EmbedError>>;
}

/// The reason why texts could not be embedded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EmbedError {
    pub code: &'static str,
    /// The `:kind` of the error that a flow sees.
    pub kind: &'static str,
    pub message: String,
    pub hint: Option<String>,
}
