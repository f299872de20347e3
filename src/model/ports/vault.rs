//! The vault: encrypts the secrets that a project has to store, under the project's key.

use std::fmt;
use std::fs::File;

/// Encrypts and decrypts. Under one key, the same text has the same envelope, so that envelopes can be compared.
pub trait Vault: Send + Sync {
    /// Encrypts with the current key, and creates the first key if necessary.
    ///
    /// # Errors
    /// When the key cannot be read or created.
    fn seal(&self, plain: &[u8]) -> Result<String, VaultError>;

    /// Decrypts an envelope of any key of the project.
    ///
    /// # Errors
    /// When the key of the envelope is missing, or the envelope was changed.
    fn open(&self, envelope: &str) -> Result<Vec<u8>, VaultError>;

    /// Returns the ids of the project's keys; empty before anything was encrypted.
    ///
    /// # Errors
    /// When they cannot be read.
    fn keys(&self) -> Result<KeyRing, VaultError>;

    /// Waits until no other process replaces keys, and prevents others from doing so until the guard is dropped.
    ///
    /// # Errors
    /// When the keys cannot be written.
    fn exclusive(&self) -> Result<KeyGuard, VaultError>;

    /// Makes a new key the current one. The others are kept for what they encrypted.
    ///
    /// # Errors
    /// When the keys come from the environment, which has to list the new one itself, or cannot be written.
    fn renew(&self) -> Result<(), VaultError>;

    /// Removes all keys except the current one.
    ///
    /// # Errors
    /// When the keys come from the environment, or cannot be written.
    fn forget_old(&self) -> Result<(), VaultError>;
}

/// Prevents other processes from replacing keys: see [`Vault::exclusive`].
#[must_use = "others may replace keys once the guard is dropped"]
pub struct KeyGuard(#[expect(dead_code, reason = "closing the file frees its lock")] Option<File>);

impl KeyGuard {
    /// Returns the guard of a file that this process has locked; `None` if no process can replace the keys.
    pub fn new(locked: Option<File>) -> KeyGuard {
        KeyGuard(locked)
    }
}

/// The ids of a project's keys; never the keys themselves.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KeyRing {
    /// The place of the keys, for people.
    pub place: String,
    /// The id of the current key; `None`: nothing was encrypted yet.
    pub current: Option<String>,
    pub old: Vec<String>,
    /// The keys come from the environment, not from a file of the project.
    pub is_environment: bool,
}

/// The reason why text cannot be encrypted or decrypted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum VaultError {
    #[error("the key `{id}` was not found{}", but(known))]
    NoKey {
        id: String,
        known: Vec<String>,
        place: String,
    },
    #[error(
        "text encrypted with the key `{id}` cannot be decrypted: it was changed, or the key is a different one"
    )]
    Changed { id: String },
    #[error("the encrypted text cannot be read: {detail}")]
    Unreadable { detail: String },
    #[error("{place} cannot be used as a key: {detail}")]
    BadKey { place: String, detail: String },
    #[error("the keys come from {place}, which this command cannot change")]
    Environment { place: String },
}

fn but(known: &[String]) -> String {
    match known {
        [] => ": the project has no key".to_owned(),
        known => format!(", only `{}`", known.join("`, `")),
    }
}

impl VaultError {
    /// Returns the code of the page in `docs/errors`.
    pub fn code(&self) -> &'static str {
        match self {
            VaultError::NoKey { .. } => "E0982",
            VaultError::Changed { .. } | VaultError::Unreadable { .. } => "E0983",
            VaultError::BadKey { .. } => "E0985",
            VaultError::Environment { .. } => "E0986",
        }
    }

    /// Returns what to try, for people.
    pub fn hint(&self) -> String {
        match self {
            VaultError::NoKey { place, .. } => format!(
                "put the key back: it was in {place}; or set FLOWSTONE_KEY to it. Runs without secret inputs are not affected"
            ),
            VaultError::Changed { .. } | VaultError::Unreadable { .. } => {
                "nothing was changed; restore the database or the key from a backup".to_owned()
            }
            VaultError::BadKey { .. } => {
                "a key is 32 bytes as 64 hexadecimal digits; several are separated by commas, the current one first".to_owned()
            }
            VaultError::Environment { .. } => {
                "set FLOWSTONE_KEY to `NEW,OLD`, run `flowstone key rotate`, and then set it to `NEW`".to_owned()
            }
        }
    }
}

/// A vault that refuses everything, for engines whose runs have no secret inputs.
#[derive(Debug, Default, Clone, Copy)]
pub struct NoVault;

impl NoVault {
    fn refused() -> VaultError {
        VaultError::BadKey {
            place: "this engine".to_owned(),
            detail: "it was opened without a vault".to_owned(),
        }
    }
}

impl Vault for NoVault {
    fn seal(&self, _plain: &[u8]) -> Result<String, VaultError> {
        Err(NoVault::refused())
    }

    fn open(&self, _envelope: &str) -> Result<Vec<u8>, VaultError> {
        Err(NoVault::refused())
    }

    fn keys(&self) -> Result<KeyRing, VaultError> {
        Ok(KeyRing::default())
    }

    fn exclusive(&self) -> Result<KeyGuard, VaultError> {
        Err(NoVault::refused())
    }

    fn renew(&self) -> Result<(), VaultError> {
        Err(NoVault::refused())
    }

    fn forget_old(&self) -> Result<(), VaultError> {
        Err(NoVault::refused())
    }
}

impl fmt::Debug for dyn Vault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Vault(…)")
    }
}
