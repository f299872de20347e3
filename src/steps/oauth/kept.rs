//! Logins in files that only their owner can read, one for a connection and its `:base-url`.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use flowstone_flow::codec::digest_bytes;
use flowstone_flow::step::StepError;
use flowstone_model::private;
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, sleep};

use super::OAuth;
use super::error;
use super::wire::Granted;

/// The folder of the files, below the project's data.
const FOLDER: &str = "logins";

/// Maximum time to wait for another caller that renews the token.
const PATIENCE: Duration = Duration::from_secs(45);
const LOOK: Duration = Duration::from_millis(20);

/// A token is renewed this long before it expires, or in the last tenth of a short life.
const MARGIN_MS: i64 = 60_000;

/// A login, with everything that is needed to renew it. Not printable: it contains tokens.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Login {
    pub connection: String,
    pub base_url: String,
    pub token_endpoint: String,
    pub revocation_endpoint: Option<String>,
    pub client_id: String,
    /// The secret of a client that was registered for this login.
    pub client_secret: Option<String>,
    /// Whether the client authenticates with a header.
    pub is_basic: bool,
    /// The resource that tokens are requested for.
    pub resource: Option<String>,
    pub access_token: String,
    pub refresh_token: Option<String>,
    pub renew_at_ms: Option<i64>,
    pub expires_at_ms: Option<i64>,
    /// Whether the authorization server has refused to renew it.
    pub is_refused: bool,
}

impl Login {
    /// Tells whether the token can be used as it is.
    pub(super) fn is_usable(&self, now_ms: i64, refused: Option<&str>) -> bool {
        let is_due = self.renew_at_ms.is_some_and(|at| now_ms >= at);
        !self.is_refused && !is_due && refused != Some(self.access_token.as_str())
    }

    /// Tells whether the token has expired.
    pub(super) fn is_over(&self, now_ms: i64) -> bool {
        self.expires_at_ms.is_some_and(|at| now_ms >= at)
    }

    /// Returns the login with new tokens.
    pub(super) fn renewed(self, granted: Granted, now_ms: i64) -> Login {
        let millis = granted.seconds.map(|seconds| seconds * 1000);
        Login {
            access_token: granted.access_token,
            // A server that does not rotate refresh tokens leaves it out.
            refresh_token: granted.refresh_token.or(self.refresh_token),
            renew_at_ms: millis.map(|millis| now_ms + millis - MARGIN_MS.min(millis / 10)),
            expires_at_ms: millis.map(|millis| now_ms + millis),
            is_refused: false,
            ..self
        }
    }

    pub(super) fn secrets(&self) -> impl Iterator<Item = &str> {
        let others = [&self.refresh_token, &self.client_secret];
        let others = others.into_iter().flatten().map(String::as_str);
        [self.access_token.as_str()].into_iter().chain(others)
    }
}

/// Where a login is.
pub(super) struct Place(PathBuf);

impl Place {
    /// Returns the place of a connection's login. Another `:base-url` is another login, so no token goes to a server that
    /// it was not obtained for.
    pub(super) fn of(home: &Path, oauth: &OAuth) -> Result<Place, StepError> {
        let base = oauth.base()?;
        let name = &oauth.connection;
        let plain = |char: char| match char.is_ascii_alphanumeric() || char == '-' {
            true => char,
            false => '_',
        };
        let safe: String = name.chars().take(60).map(plain).collect();
        let digest = digest_bytes(format!("{name}\n{base}").as_bytes());
        let short: String = digest
            .chars()
            .rev()
            .filter(char::is_ascii_hexdigit)
            .take(16)
            .collect();
        let folder = home.join(FOLDER);
        Ok(Place(folder.join(format!("{safe}-{short}.json"))))
    }

    /// Reads the login; `None` if it does not exist.
    pub(super) fn read(&self) -> Result<Option<Login>, StepError> {
        let text = match fs::read_to_string(&self.0) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error::not_kept(&self.0, &error)),
        };
        // The message of the reader may quote the file.
        let login = serde_json::from_str(&text);
        login.map(Some).map_err(|_| {
            error::not_kept(&self.0, &"it is not the file of a login")
                .hint("delete it, and log in again")
        })
    }

    /// Writes the login: all of it, or nothing.
    pub(super) fn write(&self, login: &Login) -> Result<(), StepError> {
        let new = self.0.with_extension("new");
        let write = || {
            self.make_folder()?;
            let text = serde_json::to_string(login)?;
            let file = private::create(&new)?;
            io::Write::write_all(&mut &file, text.as_bytes())?;
            file.sync_all()?;
            private::close_to_others(&new)?;
            fs::rename(&new, &self.0)
        };
        write().map_err(|error: io::Error| error::not_kept(&self.0, &error))
    }

    /// Deletes the login.
    pub(super) fn delete(&self) -> Result<(), StepError> {
        match fs::remove_file(&self.0) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(error::not_kept(&self.0, &error))
            }
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// Waits until no other caller of this process or another renews the login. The lock ends with the file, also when its
    /// owner is killed.
    pub(super) async fn lock(&self) -> Result<File, StepError> {
        let failed = |error: &dyn std::fmt::Display| error::not_kept(&self.0, error);
        self.make_folder().map_err(|error| failed(&error))?;
        let file = private::open(&self.0.with_extension("lock")).map_err(|error| failed(&error))?;
        let until = Instant::now() + PATIENCE;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(file),
                Err(TryLockError::Error(error)) => return Err(failed(&error)),
                Err(TryLockError::WouldBlock) if Instant::now() > until => {
                    return Err(failed(&"another process has been renewing it for too long"));
                }
                Err(TryLockError::WouldBlock) => sleep(LOOK).await,
            }
        }
    }

    fn make_folder(&self) -> io::Result<()> {
        self.0.parent().map_or(Ok(()), private::make_folder)
    }
}

/// The login of a connection, without its tokens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoginReport {
    pub state: LoginState,
    /// When the token expires, in milliseconds since 1970.
    pub expires_at_ms: Option<i64>,
    /// Whether it is renewed before it expires.
    pub is_renewed: bool,
}

/// Whether a connection has a login that can be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoginState {
    LoggedIn,
    NeedsLogin,
}

impl LoginState {
    pub fn name(self) -> &'static str {
        match self {
            LoginState::LoggedIn => "logged-in",
            LoginState::NeedsLogin => "needs-login",
        }
    }
}

/// Returns the state of a connection's login.
pub(crate) fn state(home: &Path, oauth: &OAuth, now_ms: i64) -> Result<LoginReport, StepError> {
    let login = Place::of(home, oauth)?.read()?;
    let is_renewed = |login: &Login| login.refresh_token.is_some() && !login.is_refused;
    let state = match &login {
        Some(login) if is_renewed(login) => LoginState::LoggedIn,
        Some(login) if !login.is_refused && !login.is_over(now_ms) => LoginState::LoggedIn,
        Some(_) | None => LoginState::NeedsLogin,
    };
    Ok(LoginReport {
        state,
        expires_at_ms: login.as_ref().and_then(|login| login.expires_at_ms),
        is_renewed: login.as_ref().is_some_and(is_renewed),
    })
}
