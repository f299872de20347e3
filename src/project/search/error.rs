//! Why nothing could be looked for.

use super::EmbedError;
use flowstone_model::ports::StoreError;

/// Why a question has no answer.
#[derive(Debug, Clone, thiserror::Error)]
pub enum SearchError {
    #[error("{message}")]
    Wrong { message: String, hint: &'static str },
    #[error("`:mode :semantic` needs an embedder, and none is configured")]
    NoEmbedder,
    #[error("there is no storage backend `:{name}`")]
    NoBackend { name: String },
    #[error("{}", .0.message)]
    Embedder(EmbedError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<EmbedError> for SearchError {
    fn from(error: EmbedError) -> SearchError {
        SearchError::Embedder(error)
    }
}

impl SearchError {
    /// Returns the code of the page in `docs/errors`.
    pub fn code(&self) -> &'static str {
        match self {
            SearchError::Wrong { .. } => "E0708",
            SearchError::NoEmbedder | SearchError::NoBackend { .. } => "E0709",
            SearchError::Embedder(error) => error.code,
            SearchError::Store(error) => error.code(),
        }
    }

    /// Returns what a flow sees under `:kind`.
    pub fn kind(&self) -> &'static str {
        match self {
            SearchError::Wrong { .. } => "invalid-config",
            SearchError::NoEmbedder | SearchError::NoBackend { .. } => "missing-backend",
            SearchError::Embedder(error) => error.kind,
            SearchError::Store(_) => "store",
        }
    }

    /// Returns what to try.
    pub fn hint(&self) -> Option<String> {
        match self {
            SearchError::Wrong { hint, .. } => Some((*hint).to_owned()),
            SearchError::NoEmbedder => Some(
                "describe one in flowstone.edn: {:search {:embedder {:connection :ai :model \"...\"}}}, or look by words: `:mode :keyword`"
                    .to_owned(),
            ),
            SearchError::NoBackend { .. } => {
                Some("resources are kept in `:local`, which is the default".to_owned())
            }
            SearchError::Embedder(error) => error.hint.clone(),
            SearchError::Store(error) => error.hint(),
        }
    }
}
