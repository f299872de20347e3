//! Secrets: looked up by name inside a step, never values of the language.

use crate::secret::Secret;

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
    fn problem(&self, profile: Option<&str>, name: &str) -> Option<String> {
        let _ = (profile, name);
        None
    }

    /// Says how to set a secret where the settings say it is, such as `set CRM_PASSWORD in the environment`. `None` if
    /// they do not say where.
    fn remedy(&self, profile: Option<&str>, name: &str) -> Option<String> {
        let _ = (profile, name);
        None
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
