//! Access tokens in memory.

use flowstone_model::ports::{PortFuture, Tokens};
use flowstone_model::token::Token;

use super::{News, Session};

impl Tokens for Session {
    fn add_token(&self, token: Token, digest: [u8; 32]) -> PortFuture<'_, ()> {
        self.write(News::None, |tx| {
            let id = token.id.clone();
            tx.state.tokens.insert(id, (token, digest.to_vec()));
            Ok(())
        })
    }

    fn token(&self, id: &str) -> PortFuture<'_, Option<(Token, Vec<u8>)>> {
        let id = id.to_owned();
        self.read(|tx| Ok(tx.state.tokens.get(&id).cloned()))
    }

    fn revoked_tokens(&self, ids: Vec<String>) -> PortFuture<'_, Vec<String>> {
        self.read(|tx| {
            let is_good = |id: &String| {
                let found = tx.state.tokens.get(id);
                found.is_some_and(|(token, _)| token.revoked_ms.is_none())
            };
            Ok(ids.into_iter().filter(|id| !is_good(id)).collect())
        })
    }

    fn tokens(&self) -> PortFuture<'_, Vec<Token>> {
        self.read(|tx| {
            let tokens = tx.state.tokens.values().map(|(token, _)| token.clone());
            let mut tokens: Vec<Token> = tokens.collect();
            tokens.sort_by(|a, b| (a.created_ms, &a.id).cmp(&(b.created_ms, &b.id)));
            Ok(tokens)
        })
    }

    fn touch_tokens(&self, used: Vec<(String, i64)>) -> PortFuture<'_, ()> {
        self.write(News::None, |tx| {
            for (id, used_ms) in &used {
                if let Some((token, _)) = tx.state.tokens.get_mut(id) {
                    token.used_ms = Some(*used_ms);
                }
            }
            Ok(())
        })
    }

    fn revoke_token(&self, id: &str, now_ms: i64) -> PortFuture<'_, bool> {
        let id = id.to_owned();
        self.write(News::Some, |tx| {
            let found = tx.state.tokens.get(&id);
            let is_open = found.is_some_and(|(token, _)| token.revoked_ms.is_none());
            if is_open && let Some((token, _)) = tx.state.tokens.get_mut(&id) {
                token.revoked_ms = Some(now_ms);
            }
            Ok(is_open)
        })
    }
}
