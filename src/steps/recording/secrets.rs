//! The secrets of a recorded or replayed run. Recordings hold their names, but never their values.

use std::sync::Arc;

use flowstone_flow::ports::{Secret, Secrets};

use super::{Recorder, Replayer};

/// Looks up secrets, and records the names of those that are requested.
pub struct RecordedSecrets {
    pub own: Arc<dyn Secrets>,
    pub recorder: Arc<Recorder>,
}

impl Secrets for RecordedSecrets {
    fn find(&self, name: &str) -> Option<Secret> {
        self.find_in(None, name)
    }

    fn find_in(&self, profile: Option<&str>, name: &str) -> Option<Secret> {
        let found = self.own.find_in(profile, name);
        self.recorder.note_secret(name, found.is_some());
        found
    }

    fn place(&self, profile: Option<&str>, name: &str) -> String {
        self.own.place(profile, name)
    }

    fn problem(&self, profile: Option<&str>, name: &str) -> Option<String> {
        self.own.problem(profile, name)
    }

    fn remedy(&self, profile: Option<&str>, name: &str) -> Option<String> {
        self.own.remedy(profile, name)
    }
}

/// Returns a stand-in for each secret that existed during the recording. It is never sent.
pub struct ReplayedSecrets {
    pub own: Arc<dyn Secrets>,
    pub replayer: Arc<Replayer>,
}

/// The stand-in for secrets that are not set on this machine.
const STAND_IN: &str = "flowstone-replays-without-secrets";

impl Secrets for ReplayedSecrets {
    fn find(&self, name: &str) -> Option<Secret> {
        self.find_in(None, name)
    }

    fn find_in(&self, profile: Option<&str>, name: &str) -> Option<Secret> {
        match self.replayer.had_secret(name) {
            Some(false) => None,
            Some(true) | None => {
                let own = self.own.find_in(profile, name);
                Some(own.unwrap_or_else(|| Secret::new(STAND_IN)))
            }
        }
    }
}
