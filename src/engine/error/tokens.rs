//! Why a token cannot be created, used or revoked.

use crate::token::Scope;

/// Maximum length of names, patterns and roles.
pub(crate) const TEXT_MAX: usize = 200;

/// What is wrong with a token that was to be created or used.
#[derive(Debug, Clone, thiserror::Error)]
pub enum TokenError {
    #[error("a token of kind `service` needs at least one scope")]
    NoScope,
    #[error(
        "the {what} of a token must have 1 to {TEXT_MAX} characters on one line, got `{given}`"
    )]
    BadText { what: &'static str, given: String },
    #[error("a token of kind `user` needs a subject: the person it stands for")]
    NoSubject,
    #[error("a token cannot create a token that may do more than itself")]
    Wider,
    #[error("there is no token `{id}` that could be revoked")]
    Missing { id: String },
    #[error("other users can read the owner's token {path}")]
    Open { path: String },
    #[error("the owner's token {path} cannot be used: {detail}")]
    Owner { path: String, detail: String },
    #[error("the operating system provides no random bytes: {0}")]
    NoRandom(String),
}

impl TokenError {
    /// Returns the code of the page in `docs/errors`.
    pub fn code(&self) -> &'static str {
        match self {
            TokenError::NoScope | TokenError::BadText { .. } | TokenError::NoSubject => "E1001",
            TokenError::Wider => "E1002",
            TokenError::Missing { .. } => "E1003",
            TokenError::Open { .. } | TokenError::Owner { .. } => "E1004",
            TokenError::NoRandom(_) => "E1005",
        }
    }

    /// Returns what to try.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            TokenError::NoScope => {
                let names: Vec<&str> = Scope::NAMES.iter().map(|(_, name)| *name).collect();
                format!("name scopes with `--scope`: {}", names.join(", "))
            }
            TokenError::NoSubject => "name the person with `--subject`".to_owned(),
            TokenError::Wider => {
                "give it the same limits as the token that creates it, or fewer rights".to_owned()
            }
            TokenError::Missing { .. } => "`flowstone tokens list` shows the tokens".to_owned(),
            TokenError::Open { path } => format!("close it with `chmod 600 {path}`"),
            TokenError::Owner { path, .. } => format!(
                "remove {path}: the next start of `flowstone serve` creates another and revokes this one"
            ),
            TokenError::BadText { .. } | TokenError::NoRandom(_) => return None,
        })
    }
}
