//! The rows of access tokens.

use super::PortFuture;
use crate::token::Token;

/// The access tokens of a project.
pub trait Tokens: Send + Sync {
    /// Adds a token with the digest of its secret.
    fn add_token(&self, token: Token, digest: [u8; 32]) -> PortFuture<'_, ()>;

    /// Returns a token by its id, with the digest of its secret.
    fn token(&self, id: &str) -> PortFuture<'_, Option<(Token, Vec<u8>)>>;

    /// Returns those of the ids whose token was revoked or does not exist.
    fn revoked_tokens(&self, ids: Vec<String>) -> PortFuture<'_, Vec<String>>;

    /// Returns all tokens, the oldest first.
    fn tokens(&self) -> PortFuture<'_, Vec<Token>>;

    /// Records when tokens were last used.
    fn touch_tokens(&self, used: Vec<(String, i64)>) -> PortFuture<'_, ()>;

    /// Revokes a token. Returns false if it does not exist, or is revoked already.
    fn revoke_token(&self, id: &str, now_ms: i64) -> PortFuture<'_, bool>;
}
