//! Who makes a request to the agents API.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use flowstone_engine::token::{Scope, TokenKind};
use flowstone_fronts::agents::codes;
use flowstone_fronts::agents::error::{ApiError, Status};
use flowstone_fronts::agents::generations::Who;

use crate::http::access::Caller;
use crate::http::problem::Problem;
use crate::http::server::Shared;

/// The caller of a request: a program or the owner, not a visitor of an app.
#[derive(Debug, Clone)]
pub(super) struct Client(pub Caller, Option<Allowed>);

/// Marks a request that was made with an API key and that its policies allow.
#[derive(Debug, Clone, Copy)]
pub(super) struct Allowed;

impl FromRequestParts<Shared> for Client {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, server: &Shared) -> Result<Client, Problem> {
        let caller = server.caller(parts).await?;
        match caller.token.kind {
            TokenKind::Owner | TokenKind::Service => {
                Ok(Client(caller, parts.extensions.get::<Allowed>().copied()))
            }
            TokenKind::User | TokenKind::Anon => Err(ApiError::new(
                Status::Forbidden,
                ("FORBIDDEN", codes::FORBIDDEN),
                "this API is for the owner of the project and for programs",
            )
            .into()),
        }
    }
}

impl Client {
    pub(super) fn need(&self, scope: Scope) -> Result<(), Problem> {
        // A key reaches no flow by its name; what it reaches here was checked.
        if self.0.is_limited() && self.1.is_none() {
            return Err(ApiError::new(
                Status::Forbidden,
                ("FORBIDDEN", codes::FORBIDDEN),
                "the token is limited to some flows, and this API reaches all agents",
            )
            .into());
        }
        self.0.need(scope)
    }

    /// Returns what a generation notes of the caller.
    pub(super) fn who(&self) -> Who {
        Who {
            // Two keys may have one name, so a key is named by its id.
            started_by: match self.1 {
                Some(_) => format!("api:key_{}", self.0.token.id),
                None => self.0.started_by(),
            },
            caller: self.0.decides(),
            is_operator: self.0.token.has(Scope::Edit),
            token: Some(self.0.token.id.clone()),
            narrowed: None,
        }
    }
}
