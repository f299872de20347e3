//! The build kit at its doors: what HTTP, MCP and the command line share. Each of them binds the flow, and calls
//! [`flowstone_fronts::kit::call`].

use std::sync::Arc;

use flowstone_engine::Engine;
use flowstone_engine::token::{Scope, Token};
use flowstone_flow::flow::Flow;
use flowstone_fronts::kit::{
    self, Called, Consent, DoorPermissions, KitCall, KitError, Origin, Permissions, Tool, catalog,
};
use flowstone_lang::diagnostic::Diagnostic;
use flowstone_project::connections::ConnectionReport;
use flowstone_project::registry::DEFAULT_WORKSPACE;
use flowstone_project::search::Embedder;
use serde_json::Value as Json;
use tokio::sync::watch;

use crate::http::{Backend, EngineContext};

/// What the person set who opened a door.
#[derive(Debug, Clone, Default)]
pub struct KitDoor {
    /// The bound flow.
    pub slug: Option<String>,
    pub permissions: DoorPermissions,
    pub origin: Origin,
    /// Whether answers are cut for a model.
    pub is_for_model: bool,
}

/// A call by its name and arguments, with what a person said about it.
pub(crate) struct Wanted {
    pub name: String,
    pub arguments: Json,
    pub agreed: Agreed,
}

/// What a person said about a call, or can say.
#[derive(Debug, Clone)]
pub(crate) enum Agreed {
    /// The door cannot ask.
    CannotAsk,
    /// The door asks while it waits.
    Asks,
    /// A person agreed to the call with this digest while the door waited.
    ToDigest(String),
    /// The client asks between two requests.
    Elicits,
    /// The client asked, and a person agreed to the question with this state.
    ToState(String),
}

impl Agreed {
    fn consent(&self) -> Consent<'_> {
        match self {
            Agreed::CannotAsk => Consent::Stored,
            Agreed::Asks => Consent::Door,
            Agreed::ToDigest(digest) => Consent::Given(digest),
            Agreed::Elicits => Consent::Elicit,
            Agreed::ToState(state) => Consent::Elicited(state),
        }
    }
}

/// The application behind the tools.
struct OfBackend(Arc<dyn Backend>);

impl kit::Backend for OfBackend {
    fn embedder<'a>(
        &self,
        engine: &'a Engine,
    ) -> Result<Option<Box<dyn Embedder + 'a>>, Diagnostic> {
        self.0.embedder(engine)
    }

    fn connections(&self, engine: &Engine, flows: &[&Flow]) -> Vec<ConnectionReport> {
        self.0.connections(engine, flows)
    }
}

/// Tells whether a test has started this process.
pub(crate) fn is_in_test() -> bool {
    std::env::var("FLOWSTONE_RUN_KIND").is_ok_and(|kind| kind == "test")
}

/// Calls a tool.
///
/// # Errors
/// An error of the kit.
pub(crate) async fn call(
    cx: &EngineContext,
    (token, door): (&Token, &KitDoor),
    wanted: Wanted,
    cancelled: watch::Receiver<bool>,
) -> Result<Called, KitError> {
    let permissions = Permissions::of_settings(cx.engine.settings(), token)?.and(&door.permissions);
    let backend = OfBackend(cx.backend.clone());
    let call = KitCall {
        engine: &cx.engine,
        catalog: &cx.catalog,
        backend: &backend,
        workspace: DEFAULT_WORKSPACE,
        bound: door.slug.as_deref(),
        token,
        origin: &door.origin,
        permissions: &permissions,
        cancelled,
        is_for_model: door.is_for_model,
    };
    let arguments = wanted.arguments.clone();
    kit::call(&call, &wanted.name, arguments, wanted.agreed.consent()).await
}

/// A tool as a caller has it at a door.
pub(crate) struct OfferedTool {
    pub tool: &'static Tool,
    pub is_enabled: bool,
    permission: &'static str,
}

impl OfferedTool {
    /// Returns what lists show of it.
    pub(crate) fn described(&self) -> Json {
        self.tool.described(self.is_enabled, self.permission)
    }
}

/// Returns the tools in the order of the catalogue, with what the caller may do with each.
///
/// # Errors
/// When the settings name a tool that does not exist.
pub(crate) fn tools(
    engine: &Engine,
    (token, door): (&Token, &KitDoor),
) -> Result<Vec<OfferedTool>, KitError> {
    let permissions = Permissions::of_settings(engine.settings(), token)?.and(&door.permissions);
    let tools = catalog::TOOLS.iter();
    Ok(tools
        .map(|tool| OfferedTool {
            tool,
            is_enabled: permissions.is_enabled(tool),
            permission: permissions.shown(tool, token),
        })
        .collect())
}

/// Returns the flow that a token is for, if it is for exactly one.
pub(crate) fn flow_of(token: &Token) -> Option<String> {
    let [only] = &token.limits.flows[..] else {
        return None;
    };
    (!only.contains('*')).then(|| only.clone())
}

/// Tells whether a token may read the text of flows that it reaches.
pub(crate) fn may_read(token: &Token) -> bool {
    token.has(Scope::Read) && kit::is_for(token)
}

/// Tells whether a token may decide about calls of others.
pub(crate) fn may_decide(token: &Token) -> bool {
    token.has(Scope::Approve)
}
