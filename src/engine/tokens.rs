//! Access tokens of a project: created, listed, revoked, and checked when a request carries one.
//!
//! The owner's token is a file beside the database that only the owner can read. Commands on this machine use it.

use std::fs;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::time::Duration;

use flowstone_model::ids::RunId;
use flowstone_model::token::{Scope, Token, TokenKind, TokenLimits, TokenText};

use crate::engine::Engine;
use crate::error::EngineError;
use crate::error::TEXT_MAX;
pub use crate::error::TokenError;

/// The file with the owner's token.
const OWNER_FILE: &str = "owner.token";
/// How long a token is valid if nothing else is chosen.
pub const DEFAULT_TTL: Duration = Duration::from_secs(90 * 24 * 60 * 60);
/// Begins the texts of [`Engine::stream_token`].
const STREAM_PREFIX: &str = "fss";
/// What they are signed for.
const STREAM: &str = "stream";
/// What handles of runs are signed for.
const HANDLE: &str = "handle";
/// Stands for the project where a run could be.
const PROJECT: &str = "project";
/// How long they are good for.
const STREAM_TTL_MS: i64 = 15 * 60 * 1_000;
/// The instants of use are kept to the minute.
const USED_EVERY_MS: i64 = 60_000;

/// A token to be created.
#[derive(Debug, Clone)]
pub struct NewToken {
    pub name: String,
    pub kind: TokenKind,
    /// If empty, those of the kind.
    pub scopes: Vec<Scope>,
    pub limits: TokenLimits,
    pub roles: Vec<String>,
    pub subject: Option<String>,
    /// `None`: it never expires.
    pub ttl: Option<Duration>,
}

/// Why a token is not accepted. The answer to a caller does not say which.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unaccepted {
    Malformed,
    Unknown,
    Expired,
    Revoked,
}

impl Unaccepted {
    /// Returns the word that logs and metrics use.
    pub fn name(self) -> &'static str {
        match self {
            Unaccepted::Malformed => "malformed",
            Unaccepted::Unknown => "unknown",
            Unaccepted::Expired => "expired",
            Unaccepted::Revoked => "revoked",
        }
    }
}

impl Engine {
    /// Creates a token. The text is returned once and not kept. `by` is the token that creates it; `None` stands for
    /// the owner of the project.
    ///
    /// # Errors
    /// When it is incomplete, may do more than `by`, or cannot be stored.
    pub async fn create_token(
        &self,
        new: NewToken,
        by: Option<&Token>,
    ) -> Result<(Token, TokenText), EngineError> {
        check(&new)?;
        let text = random()?;
        let now_ms = self.now_ms();
        let mut scopes = match new.scopes.is_empty() {
            true => new.kind.default_scopes().to_vec(),
            false => new.scopes,
        };
        scopes.sort_unstable();
        scopes.dedup();
        let token = Token {
            id: text.id.clone(),
            name: new.name,
            kind: new.kind,
            scopes,
            limits: new.limits,
            roles: new.roles,
            subject: new.subject,
            created_ms: now_ms,
            expires_ms: new
                .ttl
                .map(|ttl| now_ms.saturating_add(crate::duration::millis(ttl))),
            used_ms: None,
            revoked_ms: None,
        };
        if by.is_some_and(|by| !by.may_create(&token)) {
            return Err(TokenError::Wider.into());
        }
        let stores = self.stores();
        stores
            .tokens
            .add_token(token.clone(), text.digest())
            .await?;
        Ok((token, text))
    }

    /// Returns the tokens whose reach is within that of `by`, the oldest first. `None` stands for the owner of the project.
    ///
    /// # Errors
    /// When they cannot be read.
    pub async fn tokens(&self, by: Option<&Token>) -> Result<Vec<Token>, EngineError> {
        let mut tokens = self.stores().tokens.tokens().await?;
        tokens.retain(|token| by.is_none_or(|by| by.covers(token)));
        Ok(tokens)
    }

    /// Revokes a token: from now on it is not accepted. `by` is the token that revokes it; `None` stands for the owner of
    /// the project.
    ///
    /// # Errors
    /// When no token within the reach of `by` has this id, or the token was revoked before.
    pub async fn revoke_token(&self, id: &str, by: Option<&Token>) -> Result<(), EngineError> {
        let missing = || TokenError::Missing { id: id.to_owned() };
        if let Some(by) = by {
            let found = self.stores().tokens.token(id).await?;
            let found = found.filter(|(token, _)| by.covers(token));
            found.ok_or_else(missing)?;
        }
        let now_ms = self.now_ms();
        match self.stores().tokens.revoke_token(id, now_ms).await? {
            true => Ok(()),
            false => Err(missing().into()),
        }
    }

    /// Returns the token of a text, if it is accepted, and notes its use.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn accept_token(&self, text: &str) -> Result<Result<Token, Unaccepted>, EngineError> {
        let Some(text) = TokenText::parse(text) else {
            return Ok(Err(Unaccepted::Malformed));
        };
        let stores = self.stores();
        let Some((token, digest)) = stores.tokens.token(&text.id).await? else {
            return Ok(Err(Unaccepted::Unknown));
        };
        if !text.has_digest(&digest) {
            return Ok(Err(Unaccepted::Unknown));
        }
        let now_ms = self.now_ms();
        if token.revoked_ms.is_some() {
            return Ok(Err(Unaccepted::Revoked));
        }
        if !token.is_valid(now_ms) {
            return Ok(Err(Unaccepted::Expired));
        }
        let minute = now_ms - now_ms.rem_euclid(USED_EVERY_MS);
        if token.used_ms.is_none_or(|used| used < minute) {
            let used = vec![(token.id.clone(), minute)];
            stores.tokens.touch_tokens(used).await?;
        }
        Ok(Ok(token))
    }

    /// Creates a text with which the holder of a token may follow events of one run, or of the project, for a while: for
    /// clients that cannot send headers.
    ///
    /// # Errors
    /// When the key of links cannot be read.
    pub fn stream_token(
        &self,
        token: &Token,
        run: Option<&str>,
    ) -> Result<(String, i64), EngineError> {
        let expires_ms = self.now_ms().saturating_add(STREAM_TTL_MS);
        let expires = expires_ms.div_euclid(1_000);
        let subject = format!("{}_{}", token.id, run.unwrap_or(PROJECT));
        let signature = self.signer()?.sign(STREAM, &subject, expires);
        let text = format!("{STREAM_PREFIX}_{expires}_{subject}_{signature}");
        Ok((text, expires * 1_000))
    }

    /// Returns the token that a text of [`Engine::stream_token`] stands for, if it is good for this run, or for the
    /// project if `run` is nothing. It expires with the text, or earlier.
    ///
    /// # Errors
    /// When the store or the key of links cannot be read.
    pub async fn accept_stream_token(
        &self,
        text: &str,
        run: Option<&str>,
    ) -> Result<Result<Token, Unaccepted>, EngineError> {
        let parts: Vec<&str> = text.split('_').collect();
        let [STREAM_PREFIX, expires, id, about, signature] = parts[..] else {
            return Ok(Err(Unaccepted::Malformed));
        };
        let Ok(expires) = expires.parse::<i64>() else {
            return Ok(Err(Unaccepted::Malformed));
        };
        let is_own = about == run.unwrap_or(PROJECT);
        let subject = format!("{id}_{about}");
        if !is_own
            || !self
                .signer()?
                .is_signed(STREAM, &subject, expires, signature)
        {
            return Ok(Err(Unaccepted::Unknown));
        }
        let now_ms = self.now_ms();
        let expires_ms = expires.saturating_mul(1_000);
        if expires_ms <= now_ms {
            return Ok(Err(Unaccepted::Expired));
        }
        Ok(match self.stores().tokens.token(id).await? {
            None => Err(Unaccepted::Unknown),
            Some((token, _)) if token.is_valid(now_ms) => {
                let earliest = token
                    .expires_ms
                    .map_or(expires_ms, |own| own.min(expires_ms));
                Ok(Token {
                    expires_ms: Some(earliest),
                    ..token
                })
            }
            Some(_) => Err(Unaccepted::Revoked),
        })
    }

    /// Returns a handle of a run that only this token can use. It is good as long as the run exists, also after a
    /// restart; nothing about it is stored. `about` tells several handles of a run apart: letters and digits.
    ///
    /// # Errors
    /// When the key of links cannot be read.
    pub fn run_handle(
        &self,
        token: &Token,
        run: &RunId,
        about: &str,
    ) -> Result<String, EngineError> {
        let subject = format!("{}_{run}_{about}", token.id);
        let signature = self.signer()?.sign(HANDLE, &subject, 0);
        Ok(format!("{run}_{about}_{signature}"))
    }

    /// Returns the run of a handle that was made for this token; nothing if the handle is not good.
    ///
    /// # Errors
    /// When the key of links cannot be read.
    pub fn accept_run_handle(
        &self,
        token: &Token,
        handle: &str,
    ) -> Result<Option<RunId>, EngineError> {
        let parts: Vec<&str> = handle.split('_').collect();
        let [run, about, signature] = parts[..] else {
            return Ok(None);
        };
        let subject = format!("{}_{run}_{about}", token.id);
        let is_good = self.signer()?.is_signed(HANDLE, &subject, 0, signature);
        Ok(is_good.then(|| RunId::from_text(run.to_owned())))
    }

    /// Returns those of the ids whose token was revoked, or is gone, since it was accepted.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn revoked_tokens(&self, ids: Vec<String>) -> Result<Vec<String>, EngineError> {
        Ok(self.stores().tokens.revoked_tokens(ids).await?)
    }

    /// Tells whether a token was revoked.
    pub(crate) async fn is_revoked(&self, id: Option<&String>) -> Result<bool, EngineError> {
        match id {
            Some(id) => Ok(!self.revoked_tokens(vec![id.clone()]).await?.is_empty()),
            None => Ok(false),
        }
    }

    /// Returns the owner's token, and creates one if no token in the file is accepted. An owner's token without its file
    /// is revoked.
    ///
    /// # Errors
    /// When the file can be read by others, or cannot be written.
    pub async fn owner_token(&self) -> Result<TokenText, EngineError> {
        if let Some(text) = self.read_owner_token()?
            && self.accept_token(&text.reveal()).await?.is_ok()
        {
            return Ok(text);
        }
        for token in self.tokens(None).await? {
            if token.kind == TokenKind::Owner && token.revoked_ms.is_none() {
                let now_ms = self.now_ms();
                self.stores().tokens.revoke_token(&token.id, now_ms).await?;
            }
        }
        let new = NewToken {
            name: "owner".to_owned(),
            kind: TokenKind::Owner,
            scopes: Vec::new(),
            limits: TokenLimits::default(),
            roles: Vec::new(),
            subject: None,
            ttl: None,
        };
        let (_, text) = self.create_token(new, None).await?;
        self.write_owner_token(&text)?;
        Ok(text)
    }

    /// Returns the owner's token from its file; `None` if there is no file or it holds something else.
    ///
    /// # Errors
    /// When the file can be read by others, or cannot be read.
    pub fn read_owner_token(&self) -> Result<Option<TokenText>, TokenError> {
        let path = self.owner_path();
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(unusable(&path, &error)),
        };
        refuse_open(&path)?;
        Ok(TokenText::parse(text.trim_end()))
    }

    fn write_owner_token(&self, text: &TokenText) -> Result<(), TokenError> {
        let path = self.owner_path();
        let write = || {
            match fs::remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
            let mut options = fs::File::options();
            options.write(true).create_new(true);
            #[cfg(unix)]
            std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
            let mut file = options.open(&path)?;
            writeln!(file, "{}", text.reveal())?;
            file.sync_all()
        };
        write().map_err(|error| unusable(&path, &error))
    }

    fn owner_path(&self) -> PathBuf {
        self.services.home.join(OWNER_FILE)
    }
}

fn random() -> Result<TokenText, TokenError> {
    TokenText::random().map_err(|error| TokenError::NoRandom(error.to_string()))
}

fn unusable(path: &std::path::Path, error: &io::Error) -> TokenError {
    TokenError::Owner {
        path: path.display().to_string(),
        detail: error.to_string(),
    }
}

/// Refuses a file that others can read.
fn refuse_open(path: &std::path::Path) -> Result<(), TokenError> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let about = fs::metadata(path).map_err(|error| unusable(path, &error))?;
        if about.permissions().mode() & 0o077 != 0 {
            return Err(TokenError::Open {
                path: path.display().to_string(),
            });
        }
    }
    #[cfg(not(unix))]
    let _ = path;
    Ok(())
}

fn check(new: &NewToken) -> Result<(), TokenError> {
    if new.kind == TokenKind::Service && new.scopes.is_empty() {
        return Err(TokenError::NoScope);
    }
    if new.kind == TokenKind::User && new.subject.is_none() {
        return Err(TokenError::NoSubject);
    }
    let limits = &new.limits;
    let lists = [
        ("flows", &limits.flows),
        ("labels", &limits.labels),
        ("resources", &limits.resources),
        ("job types", &limits.job_types),
        ("roles", &new.roles),
    ];
    let listed = lists
        .into_iter()
        .flat_map(|(what, list)| list.iter().map(move |it| (what, it)));
    let single = [("name", Some(&new.name)), ("subject", new.subject.as_ref())];
    let single = single
        .into_iter()
        .filter_map(|(what, it)| Some((what, it?)));
    for (what, given) in single.chain(listed) {
        let length = given.chars().count();
        if length == 0 || length > TEXT_MAX || given.chars().any(char::is_control) {
            return Err(TokenError::BadText {
                what,
                given: given.chars().take(TEXT_MAX).collect(),
            });
        }
    }
    Ok(())
}
