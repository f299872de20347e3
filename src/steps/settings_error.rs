//! What may be wrong with a project's settings, `flowstone.edn` and `.env`.

/// An error in a project's settings.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    #[error("{path} cannot be read: {cause}")]
    Unreadable { path: String, cause: String },
    #[error("flowstone.edn: {message}")]
    Wrong { message: String },
    #[error("flowstone.edn: {message}")]
    UnknownKey { message: String },
    #[error("{path} is not well formed: {cause}")]
    BadDotenv { path: String, cause: String },
}

impl SettingsError {
    /// Returns the code of the page in `docs/errors`.
    pub fn code(&self) -> &'static str {
        "E0751"
    }

    /// Returns a hint.
    pub fn hint(&self) -> Option<&'static str> {
        Some(match self {
            Self::Unreadable { .. } => "the file holds one EDN map, such as {:connections {...}}",
            // The message contains the expected value.
            Self::Wrong { .. } => return None,
            Self::UnknownKey { .. } => {
                "it takes `:agent`, `:allow`, `:bindings`, `:connections`, `:deps`, `:durability`, `:flows`, `:http`, `:limits`, `:llm-providers`, `:paths`, `:prices`, `:profiles`, `:resources`, `:retention`, `:search`, `:secrets`, `:server`, `:setup` and `:waits`"
            }
            Self::BadDotenv { .. } => {
                "each line of `.env` is NAME=value; quote a value that holds spaces or `#`"
            }
        })
    }
}
