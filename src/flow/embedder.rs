//! What turns texts into vectors: a port that step types implement and searches use.

use crate::step::LocalFuture;

/// Turns texts into vectors.
pub trait Embedder {
    /// Names the model and all that its vectors depend on.
    fn model(&self) -> &str;

    /// Returns a vector for each text.
    fn embed<'a>(
        &'a self,
        texts: &'a [String],
    ) -> LocalFuture<'a, Result<Vec<Vec<f32>>, EmbedError>>;
}

/// Why there are no vectors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EmbedError {
    pub code: &'static str,
    /// What a flow sees under `:kind`.
    pub kind: &'static str,
    pub message: String,
    pub hint: Option<String>,
}
