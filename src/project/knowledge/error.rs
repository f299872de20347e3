//! Why knowledge cannot be read or changed.

use flowstone_engine::EngineError;
use flowstone_flow::step::StepError;
use flowstone_model::ports::StoreError;

use crate::search::SearchError;

/// The code of a failed search, which has a page in `docs/errors`.
const FAILED: &str = "E1273";
/// The code of a memory that does not exist.
const MISSING: &str = "E1274";

/// Why knowledge cannot be read or changed.
#[derive(Debug, thiserror::Error)]
pub enum KnowledgeError {
    /// The scope of the caller has no memory with this id.
    #[error("there is no memory `{id}`")]
    NoMemory { id: String },
    #[error(transparent)]
    Search(#[from] SearchError),
    #[error(transparent)]
    Engine(#[from] EngineError),
}

impl From<StoreError> for KnowledgeError {
    fn from(error: StoreError) -> KnowledgeError {
        KnowledgeError::Search(error.into())
    }
}

impl KnowledgeError {
    /// Returns the error as a step reports it.
    pub fn into_step(self) -> StepError {
        match self {
            KnowledgeError::NoMemory { .. } => {
                StepError::new(MISSING, "not-found", self.to_string())
                    .hint("`flowstone` lists memories at GET /api/v1/memories")
            }
            KnowledgeError::Search(SearchError::Store(error)) => error.into(),
            KnowledgeError::Search(error) => {
                let step = StepError::new(FAILED, error.kind(), error.to_string());
                match error.hint() {
                    Some(hint) => step.hint(hint),
                    None => step,
                }
            }
            KnowledgeError::Engine(error) => StepError::new(FAILED, "store", error.to_string()),
        }
    }
}
