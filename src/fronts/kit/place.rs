//! The place of a call inside a run: the flow is that of the run, and the trace is the run's own.
//!
//! A run acts for its project, so it reads what the project has. Runs of installed copies, and of flows outside of the
//! project's folder, may not use the kit: the flow that they would change belongs to somebody else.

use std::rc::Rc;

use flowstone_engine::catalog::Catalog;
use flowstone_engine::{Engine, RunsBesideStep, server_file};
use flowstone_flow::flow::Flow;
use flowstone_flow::step::StepContext;
use flowstone_lang::diagnostic::Diagnostic;
use flowstone_model::token::{Scope, Token, TokenKind, TokenLimits};
use flowstone_project::connections::{self, ConnectionReport};
use flowstone_project::registry::DEFAULT_WORKSPACE;
use flowstone_project::search::Embedder;
use flowstone_steps::persist::PersistResult;
use flowstone_steps::{embedder, sandbox};
use tokio::sync::watch;

use super::context::{Backend, CancelOnDrop, KitCall, Origin};
use super::error::KitError;
use super::permission::{DoorPermissions, Permissions};

/// The folder with the flows of a project.
const FLOWS: &str = "flows";

/// What calls of a run work with.
pub(super) struct Place {
    pub engine: Engine,
    pub slug: String,
    catalog: Catalog,
    token: Token,
    origin: Origin,
    permissions: Permissions,
    /// Becomes true when the guard is dropped.
    cancelled: watch::Receiver<bool>,
}

impl Place {
    /// Returns the place of a step, and the guard that cancels its calls when it is dropped. Ids of new records begin with
    /// `base_ms`. `named` is the tool that the flow names.
    ///
    /// # Errors
    /// `permission_denied`, when the settings name a tool that does not exist.
    pub(super) async fn of_step(
        cx: &StepContext,
        (base_ms, named): (i64, &str),
    ) -> Result<(Place, CancelOnDrop), KitError> {
        let engine = Engine::beside_step(
            cx,
            base_ms,
            RunsBesideStep {
                persist: Rc::new(PersistResult),
                library: sandbox::register,
            },
        );
        let catalog = Catalog::new(vec![engine.project_root().join(FLOWS)]);
        catalog.follow(&engine).await;
        let token = token(cx);
        let permissions = Permissions::of_settings(cx.settings(), &token)?;
        let (guard, cancelled) = CancelOnDrop::new();
        let place = Place {
            slug: cx.flow().slug.to_string(),
            catalog,
            token,
            origin: Origin {
                session: String::new(),
                run: Some(cx.run_id().clone()),
                is_test: cx.scope().services.test.is_some(),
                base: server_file::running(cx.home()),
            },
            permissions: permissions.and(&DoorPermissions::enabling(&[named])),
            cancelled,
            engine,
        };
        Ok((place, guard))
    }

    /// Returns a call at this place.
    pub(super) fn call(&self) -> KitCall<'_> {
        KitCall {
            engine: &self.engine,
            catalog: &self.catalog,
            backend: &OfStep,
            workspace: DEFAULT_WORKSPACE,
            bound: Some(&self.slug),
            token: &self.token,
            origin: &self.origin,
            permissions: &self.permissions,
            cancelled: self.cancelled.clone(),
            is_for_model: true,
        }
    }
}

/// Tells whether the flow of a run belongs to the project, so that the run may change it.
///
/// # Errors
/// `permission_denied`.
pub(super) fn check_owner(cx: &StepContext) -> Result<(), KitError> {
    let why = match (cx.installation(), cx.scope().services.is_outside) {
        (Some(_), _) => {
            "an installed copy of a flow cannot use the build kit: the flow belongs to its author"
        }
        (None, true) => {
            "a flow outside of the project's folder cannot use the build kit of the project"
        }
        (None, false) => return Ok(()),
    };
    Err(KitError::permission_denied(why))
}

/// Returns what the project's settings allow a run.
///
/// # Errors
/// `permission_denied`, when the settings name a tool that does not exist.
pub(super) fn permissions(cx: &StepContext) -> Result<Permissions, KitError> {
    Permissions::of_settings(cx.settings(), &token(cx))
}

/// Returns the credential of a run: the project's, attributed to the run.
fn token(cx: &StepContext) -> Token {
    let name = format!("run {}", cx.run_id());
    Token {
        id: name.clone(),
        name,
        kind: TokenKind::Service,
        scopes: vec![Scope::Edit, Scope::Read, Scope::Run],
        limits: TokenLimits::default(),
        roles: Vec::new(),
        subject: None,
        created_ms: 0,
        expires_ms: None,
        used_ms: None,
        revoked_ms: None,
    }
}

/// The application, as a step knows it.
struct OfStep;

impl Backend for OfStep {
    fn embedder<'a>(
        &self,
        engine: &'a Engine,
    ) -> Result<Option<Box<dyn Embedder + 'a>>, Diagnostic> {
        let logins = (engine.home(), || engine.now_ms());
        let found = embedder::of_project(engine.settings(), engine.secrets(), logins);
        let found = found.map_err(|message| Diagnostic::error("E0709", message))?;
        Ok(found.map(|it| Box::new(it) as Box<dyn Embedder + 'a>))
    }

    fn connections(&self, engine: &Engine, flows: &[&Flow]) -> Vec<ConnectionReport> {
        connections::report(engine, flows)
    }
}
