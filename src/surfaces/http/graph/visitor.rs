//! Identifies the caller of a request to a graph agent.

use axum::extract::FromRequestParts;
use axum::http::header;
use axum::http::request::Parts;
use flowstone_engine::token::{Scope, TokenKind};
use flowstone_fronts::graph::access::{Kind, Who};
use flowstone_fronts::graph::compile::slug;
use flowstone_fronts::graph::error::{GraphError, Status};
use flowstone_fronts::graph::{agents, codes};

use crate::http::access::{Caller, unauthorized};
use crate::http::interfaces::receive::sender;
use crate::http::problem::Problem;
use crate::http::server::{EngineContext, Peer, Server, Shared};

/// The name of every project in addresses, besides its own.
const DEFAULT: &str = "default";
/// The header that holds the anonymous key of a project.
const KEY: &str = "apikey";

/// The caller of a request.
#[derive(Debug, Clone)]
pub(crate) struct Visitor {
    pub caller: Caller,
    pub who: Who,
}

impl FromRequestParts<Shared> for Visitor {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, server: &Shared) -> Result<Visitor, Problem> {
        project(parts, server)?;
        if !parts.headers.contains_key(header::AUTHORIZATION)
            && let Some(key) = parts.headers.get(KEY).and_then(|key| key.to_str().ok())
        {
            let value = header::HeaderValue::from_str(&format!("Bearer {key}"));
            let value = value.map_err(|_| unauthorized("the key is not accepted"))?;
            parts.headers.insert(header::AUTHORIZATION, value);
        }
        let caller = server.caller(parts).await?;
        Ok(Visitor::new(caller, address(parts, server)))
    }
}

/// The address that a request comes from, as text.
#[derive(Debug, Clone)]
pub(crate) struct CallerAddress(pub String);

impl FromRequestParts<Shared> for CallerAddress {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(
        parts: &mut Parts,
        server: &Shared,
    ) -> Result<CallerAddress, Self::Rejection> {
        Ok(CallerAddress(address(parts, server)))
    }
}

/// Refuses addresses of projects that this server does not have.
pub(super) fn project(parts: &Parts, server: &Server) -> Result<(), Problem> {
    let app = parts.uri.path().split('/').nth(2).unwrap_or_default();
    match app == DEFAULT || app == server.settings.workspace {
        true => Ok(()),
        false => Err(GraphError::new(
            Status::NotFound,
            codes::MISSING,
            format!("there is no app `{app}`: the project of this server is `{DEFAULT}`"),
        )
        .into()),
    }
}

/// Returns the address that a request comes from.
pub(super) fn address(parts: &Parts, server: &Server) -> String {
    let peer = parts.extensions.get::<Peer>().map(|peer| peer.0.ip());
    let address = peer.map(|peer| sender(peer, &parts.headers, &server.settings.proxies));
    address.map_or_else(|| "local".to_owned(), |address| address.to_string())
}

impl Visitor {
    /// Returns the visitor that a caller is, at an address.
    pub(crate) fn new(caller: Caller, address: String) -> Visitor {
        let kind = match caller.token.kind {
            TokenKind::Owner | TokenKind::Service => Kind::Owner,
            TokenKind::User => Kind::User,
            TokenKind::Anon => Kind::Anonymous,
        };
        let who = Who {
            kind,
            id: caller.token.attributed_to().to_owned(),
            address,
            owner_name: caller.started_by(),
            may_edit: kind == Kind::Owner && caller.token.has(Scope::Edit),
        };
        Visitor { caller, who }
    }

    /// Refuses users, and programs without the required scope.
    pub(super) fn owner(&self, scope: Scope) -> Result<(), Problem> {
        self.owner_or_program()?;
        self.caller.need(scope)
    }

    /// Refuses users. The route decides which scopes a program needs.
    pub(super) fn owner_or_program(&self) -> Result<(), Problem> {
        if self.who.kind != Kind::Owner {
            return Err(GraphError::new(
                Status::Forbidden,
                codes::NOT_ALLOWED,
                "this address is for the owner of the project; users have addresses below `/public`",
            )
            .into());
        }
        Ok(())
    }

    /// As [`Visitor::owner`], for resources that all agents of the project share. Limited tokens have no access to them.
    pub(super) fn owner_of_all(&self, scope: Scope) -> Result<(), Problem> {
        self.owner(scope)?;
        match self.caller.token.is_limited_to_flows() {
            false => Ok(()),
            true => Err(GraphError::new(
                Status::NotFound,
                codes::MISSING,
                "this is shared by all agents of the project, and the token reaches only some of them",
            )
            .into()),
        }
    }

    /// Tells whether the caller's token gives access to an agent.
    pub(crate) fn reaches(&self, agent: &str) -> bool {
        self.caller.token.reaches_flow(&slug(agent), &[])
    }

    /// Returns an agent that the caller's token gives access to.
    pub(super) async fn agent(
        &self,
        cx: &EngineContext,
        name: &str,
    ) -> Result<agents::Agent, GraphError> {
        match self.reaches(name) {
            true => agents::get(&cx.engine, name).await,
            false => Err(agents::no_agent(name)),
        }
    }
}
