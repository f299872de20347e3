//! Why an input with secrets cannot be kept or used.

use crate::diagnostic::nearest;
use crate::ports::VaultError;

/// Why an input with secrets cannot be kept or used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SealError {
    #[error("the input `{name}` cannot be used as a secret: {why}")]
    Weak { name: String, why: String },
    #[error("the input `{name}` is a secret, and cannot be the value of `{what}`")]
    Key { name: String, what: &'static str },
    #[error("the run {run} has no {}: an export leaves secrets out", names(paths))]
    LeftOut { run: String, paths: Vec<String> },
    #[error("{run} has no secret input {}", names(given))]
    NotSecret {
        /// "the run 06h0".
        run: String,
        given: Vec<String>,
        known: Vec<String>,
    },
    #[error("the secret inputs of the run {run} cannot be decrypted: {cause}")]
    Vault { run: String, cause: VaultError },
    #[error("the secret inputs cannot be encrypted: {0}")]
    Unsealed(VaultError),
}

fn names(paths: &[String]) -> String {
    let paths: Vec<String> = paths.iter().map(|path| format!("`{path}`")).collect();
    paths.join(", ")
}

impl SealError {
    /// Returns the code of the page in `docs/errors`.
    pub fn code(&self) -> &'static str {
        match self {
            SealError::Weak { .. } => "E0981",
            SealError::Key { .. } => "E0987",
            SealError::LeftOut { .. } => "E0984",
            SealError::NotSecret { .. } => "E0988",
            SealError::Vault { cause, .. } | SealError::Unsealed(cause) => cause.code(),
        }
    }

    /// Returns what to try.
    pub fn hint(&self) -> String {
        match self {
            SealError::Weak { .. } => {
                "give a longer value, or declare the input as `:text` if it is not a secret".to_owned()
            }
            SealError::Key { .. } => {
                "a key is shown and kept as it is; take another input, such as the name of an account".to_owned()
            }
            SealError::LeftOut { run, paths } => {
                let fields: Vec<String> = paths.iter().map(|path| format!(":{path} \"...\"")).collect();
                format!(
                    "give them with `flowstone runs resume {run} --secrets '{{{}}}'`",
                    fields.join(" ")
                )
            }
            SealError::NotSecret { known, .. } if known.is_empty() => {
                "leave `--secrets` out: nothing was left out of its input".to_owned()
            }
            SealError::NotSecret { given, known, .. } => {
                let name = given.first().map(String::as_str).unwrap_or_default();
                match nearest(name, known.iter().map(String::as_str)) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!("its secret inputs are {}", names(known)),
                }
            }
            SealError::Vault { cause, .. } | SealError::Unsealed(cause) => cause.hint(),
        }
    }
}
