//! Logins whose persons are at the login page of an authorization server. They are in memory, so a server that starts again asks
//! a person to begin again.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use flowstone_project::connections::BegunLogin;

/// How long a person may take at a login page.
const VALID_MS: i64 = 10 * 60 * 1000;
/// Maximum number of begun logins.
const MOST: usize = 100;

/// A begun login, and the request that it completes.
pub(in crate::http) struct Begun {
    pub login: BegunLogin,
    /// The id of the request and the token of its link.
    pub request: (String, String),
    pub until_ms: i64,
}

/// The begun logins by the text that the authorization server repeats.
#[derive(Default)]
pub(in crate::http) struct Logins(Mutex<HashMap<String, Begun>>);

impl Logins {
    /// Keeps a login for a while. Returns false when there are too many.
    pub(super) fn add(&self, login: BegunLogin, request: (String, String), now_ms: i64) -> bool {
        let mut begun = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        begun.retain(|_, it| it.until_ms > now_ms);
        if begun.len() >= MOST {
            return false;
        }
        let until_ms = now_ms + VALID_MS;
        let state = login.state.clone();
        begun.insert(
            state,
            Begun {
                login,
                request,
                until_ms,
            },
        );
        true
    }

    /// Takes the login that an answer is about. The next answer finds none.
    pub(super) fn take(&self, state: &str) -> Option<Begun> {
        let mut begun = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        begun.remove(state)
    }
}
