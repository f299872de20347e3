//! Secrets: found by name inside a step, never a value of the language.

use crate::secret::Secret;

/// Where secrets come from: environment, `.env`, file, keyring.
pub trait Secrets: Send + Sync {
    /// Returns the secret of that name. Names are as the user wrote them (`webhook-secret`,
    /// `OPENAI_API_KEY`).
    fn find(&self, name: &str) -> Option<Secret>;

    /// The same for a run of a profile, which may say other places.
    fn find_in(&self, profile: Option<&str>, name: &str) -> Option<Secret> {
        let _ = profile;
        self.find(name)
    }

    /// Says in words where a secret is looked for, such as `the environment variable CRM_TOKEN`.
    fn place(&self, profile: Option<&str>, name: &str) -> String {
        let _ = profile;
        name.to_owned()
    }

    /// Says why a secret cannot be had although somebody said where it is.
    fn trouble(&self, profile: Option<&str>, name: &str) -> Option<String> {
        let _ = (profile, name);
        None
    }
}

/// Knows none.
#[derive(Debug, Default, Clone, Copy)]
pub struct NoSecrets;

impl Secrets for NoSecrets {
    fn find(&self, _name: &str) -> Option<Secret> {
        None
    }
}
