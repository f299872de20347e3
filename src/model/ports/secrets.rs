//! Secrets: looked up by name inside a step, never values of the language.

use std::fmt;

/// The sources of secrets: environment, `.env`, file, keyring.
pub trait Secrets: Send + Sync {
    /// Returns the secret with a name. Names are as the user writes them (`webhook-secret`, `OPENAI_API_KEY`).
    fn find(&self, name: &str) -> Option<Secret>;

    /// Returns the secret for a run with a profile, which may set other sources.
    fn find_in(&self, profile: Option<&str>, name: &str) -> Option<Secret> {
        let _ = profile;
        self.find(name)
    }

    /// Describes where a secret is looked up, such as `the environment variable CRM_TOKEN`.
    fn place(&self, profile: Option<&str>, name: &str) -> String {
        let _ = profile;
        name.to_owned()
    }

    /// Explains why a secret is unavailable although its source is configured.
    fn trouble(&self, profile: Option<&str>, name: &str) -> Option<String> {
        let _ = (profile, name);
        None
    }
}

/// The text of a secret. `Debug` does not print it, and it is removed from everything that a step returns.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    pub fn new(text: impl Into<String>) -> Secret {
        Secret(text.into())
    }

    /// Returns the text, for use in a request.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Secret(…)")
    }
}

/// A source without secrets.
#[derive(Debug, Default, Clone, Copy)]
pub struct NoSecrets;

impl Secrets for NoSecrets {
    fn find(&self, _name: &str) -> Option<Secret> {
        None
    }
}
