//! What a call of a tool works with: the project, the bound flow, the caller, and where the call comes from.

use flowstone_engine::Engine;
use flowstone_engine::catalog::Catalog;
use flowstone_engine::ids::RunId;
use flowstone_flow::definition::is_identifier;
use flowstone_flow::flow::Flow;
use flowstone_lang::diagnostic::Diagnostic;
use flowstone_model::installation::Side;
use flowstone_model::token::Token;
use flowstone_model::trace::TraceId;
use flowstone_project::connections::ConnectionReport;
use flowstone_project::registry::FlowRegistry;
use flowstone_project::search::Embedder;
use serde_json::json;
use tokio::sync::watch;

use super::error::KitError;
use super::permission::Permissions;
use crate::rows::Rows;

/// The last test of each session: `{run, trace}` by session and flow.
const TESTS: Rows = Rows("flowstone_kit_tests");

/// What tools need of the application, which knows concrete steps, connections and models.
pub trait Backend {
    /// Returns the embedder, if the project's settings configure one.
    ///
    /// # Errors
    /// When its configuration is wrong.
    fn embedder<'a>(
        &self,
        engine: &'a Engine,
    ) -> Result<Option<Box<dyn Embedder + 'a>>, Diagnostic>;

    /// Returns the slots of flows and the connections of the project.
    fn connections(&self, engine: &Engine, flows: &[&Flow]) -> Vec<ConnectionReport>;
}

/// Who made a call, and from where.
#[derive(Debug, Clone, Default)]
pub struct Origin {
    /// Distinguishes the sessions of a token: a session of MCP, or empty.
    pub session: String,
    /// The run that calls, if a run does.
    pub run: Option<RunId>,
    /// Whether the caller is a run of kind `test`, or below one.
    pub is_test: bool,
    /// The address of the server, for links; `None` if no server is there.
    pub base: Option<String>,
}

/// The trace that a session is about, and its run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BoundTrace {
    pub run: RunId,
    pub trace: TraceId,
}

/// One call of a tool. The clock is [`Engine::now_ms`].
pub struct KitCall<'a> {
    pub engine: &'a Engine,
    pub catalog: &'a Catalog,
    pub backend: &'a dyn Backend,
    /// The workspace of the caller: [`flowstone_project::registry::DEFAULT_WORKSPACE`] in a project without others.
    pub workspace: &'a str,
    /// The bound flow, which need not exist yet. [`KitCall::flow`] returns it, or an error without one.
    pub bound: Option<&'a str>,
    /// Who calls, with scopes and limits.
    pub token: &'a Token,
    pub origin: &'a Origin,
    /// What the person who opened the door allows.
    pub permissions: &'a Permissions,
    /// Becomes true when nobody waits for the answer any more. A tool that has started something ends it then; it has
    /// 10 seconds for that.
    pub cancelled: watch::Receiver<bool>,
    /// Whether the answer is cut for a model; programs get everything.
    pub is_for_model: bool,
}

/// Sends a cancel when it is dropped: when nobody waits for the answer any more.
pub struct CancelOnDrop(watch::Sender<bool>);

impl CancelOnDrop {
    /// Returns the guard, and what a call watches.
    pub fn new() -> (CancelOnDrop, watch::Receiver<bool>) {
        let (sender, receiver) = watch::channel(false);
        (CancelOnDrop(sender), receiver)
    }

    /// Cancels the call while its answer is still awaited.
    pub fn cancel(&self) {
        self.0.send_replace(true);
    }
}

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.send_replace(true);
    }
}

impl KitCall<'_> {
    /// Returns the slug of the bound flow.
    ///
    /// # Errors
    /// `binding_missing`.
    pub fn flow(&self) -> Result<&str, KitError> {
        self.bound.ok_or_else(KitError::binding_missing)
    }

    /// Checks the name of the bound flow, which need not exist.
    ///
    /// # Errors
    /// `invalid_arguments` if no flow can have it.
    pub fn check_bound(&self) -> Result<(), KitError> {
        match self.bound.filter(|slug| !is_identifier(slug)) {
            None => Ok(()),
            Some(slug) => Err(KitError::invalid(
                "",
                "a slug: letters, digits, `-` and `_`, beginning with a letter",
                format!("`{slug}` cannot be the slug of a flow"),
            )),
        }
    }

    /// Returns the registry of the caller's workspace.
    pub fn registry(&self) -> FlowRegistry {
        FlowRegistry::in_workspace(self.engine.stores(), self.workspace, self.engine.now_ms())
    }

    /// Returns the side of the caller on a run of a flow that somebody started; [`Side::Neither`] if its limits leave it out.
    pub fn side(&self, flow: &str, started_by: &str) -> Side {
        let is_own = !self.token.has_own_runs_only() || started_by == self.token.runs_of();
        let labels = self.catalog.labels(self.engine, flow);
        match is_own {
            true => self.token.reaches_side(flow, &labels),
            false => Side::Neither,
        }
    }

    /// Tells whether the caller reaches a flow.
    pub fn reaches_flow(&self, flow: &str) -> bool {
        let labels = self.catalog.labels(self.engine, flow);
        self.token.reaches_flow(flow, &labels)
    }

    /// Waits until nobody waits for the answer any more.
    pub async fn cancellation(&self) {
        let mut cancelled = self.cancelled.clone();
        if cancelled.wait_for(|it| *it).await.is_err() {
            // Nobody can cancel it.
            std::future::pending::<()>().await;
        }
    }

    fn session_key(&self, flow: &str) -> String {
        let (token, session) = (&self.token.id, &self.origin.session);
        format!("{token}/{session}/{}/{flow}", self.workspace)
    }

    /// Records the run of a test as the last one of the session, so that [`KitCall::trace`] finds it.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub async fn note_test(&self, run: &RunId) -> Result<(), KitError> {
        let flow = self.flow()?;
        let data = json!({"run": run.as_str(), "at": self.engine.now_ms()});
        Ok(TESTS
            .put(self.engine, &self.session_key(flow), &data)
            .await?)
    }

    /// Returns the trace of the run that calls, or of the session's last test.
    ///
    /// # Errors
    /// `no_trace`.
    pub async fn trace(&self) -> Result<BoundTrace, KitError> {
        let run = match &self.origin.run {
            Some(run) => run.clone(),
            None => {
                let key = self.session_key(self.flow()?);
                let found = TESTS.get(self.engine, &key).await?;
                let found = found.as_ref().and_then(|it| it["run"].as_str());
                RunId::from_text(found.ok_or_else(KitError::no_trace)?)
            }
        };
        let row = self.engine.stores().runs.find(&run).await?;
        let row = row.ok_or_else(KitError::no_trace)?;
        Ok(BoundTrace {
            run,
            trace: row.in_trace().trace,
        })
    }
}
