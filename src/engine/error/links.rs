//! Why a link leads nowhere.

use crate::resource::sign::BadLink;

/// Why a link leads nowhere.
#[derive(Debug, Clone, thiserror::Error)]
pub enum LinkError {
    /// The id or the token is wrong. It is not told which.
    #[error("this link does not lead to a question")]
    Wait,
    #[error("this link to a run cannot be used: {0}")]
    Run(BadLink),
}

impl LinkError {
    /// Returns the code of the page in `docs/errors`.
    pub fn code(&self) -> &'static str {
        match self {
            LinkError::Wait => "E1100",
            LinkError::Run(_) => "E1101",
        }
    }

    /// Returns what to try.
    pub fn hint(&self) -> &'static str {
        match self {
            LinkError::Wait => {
                "open the link exactly as you received it; `flowstone waits show` prints it again"
            }
            LinkError::Run(_) => "make another with `flowstone runs url`",
        }
    }
}
