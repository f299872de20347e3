//! The HTTP server: an API, and what a flow declares for the outside.
//!
//! A route is a thin translation of a request to one call of the engine, which commands make, too. Everything that
//! several routes need lies around them: host and origin, tokens, limits, errors.

mod access;
mod agents;
mod answer;
mod bodies;
mod connections;
mod cursor;
mod docs;
mod engines;
mod events;
mod feed;
mod flows;
mod graph;
mod health;
mod hooks;
mod installations;
mod interfaces;
mod jobs;
mod kit;
mod mcp;
mod metrics;
mod openapi;
mod operation;
mod origin;
mod pages;
mod problem;
mod rates;
mod registry;
mod request;
mod resources;
mod rights;
pub(crate) mod runs;
mod schedules;
mod search;
mod server;
mod settings;
mod stall;
mod steps;
mod tables;
mod tokens;
mod trace;
mod waits;

use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::thread;

use axum::Router;
use flowstone_engine::catalog::Catalog;
use flowstone_engine::token::Scope;
use flowstone_engine::{Engine, Interrupt};
use flowstone_flow::flow::Flow;
use flowstone_flow::step::LocalFuture;
use flowstone_fronts::kit::catalog;
use flowstone_lang::diagnostic::Diagnostic;
use flowstone_project::connections::{ConnectionReport, ConnectionTest};
use flowstone_project::search::Embedder;

pub(crate) use agents::document as agents_document;
use engines::{Engines, StartError};
pub use openapi::document;
use operation::Operations;
use server::Server;
use settings::ServerSettings;

use crate::kit::KitDoor;
use crate::mcp::{Sessions, ToolSets, stdio};
use crate::metrics::Metrics;
use crate::telemetry;

pub(crate) use access::Caller;
pub(crate) use graph::Visitor as GraphVisitor;
pub(crate) use problem::Problem;
pub(crate) use server::{EngineContext, Shared};
pub(crate) use trace::HEADER as TRACE_HEADER;

/// The routes that are not part of the API, sorted.
const ROUTES: &[fn() -> Router<Shared>] = &[
    agents::routes,
    docs::routes,
    events::routes,
    graph::routes,
    health::routes,
    hooks::routes,
    interfaces::routes,
    kit::routes,
    mcp::routes,
    metrics::routes,
    pages::routes,
    resources::routes,
];

/// The operations of the API by noun, sorted. They are in its document, too.
const OPERATIONS: &[fn() -> Operations] = &[
    connections::operations,
    events::operations,
    feed::operations,
    flows::operations,
    jobs::operations,
    openapi::operations,
    installations::operations,
    pages::operations,
    registry::operations,
    resources::operations,
    runs::operations,
    schedules::operations,
    search::operations,
    steps::operations,
    tables::operations,
    tokens::operations,
    waits::operations,
];

fn routes() -> Router<Shared> {
    let nouns = ROUTES.iter().map(|routes| routes());
    nouns.fold(operations().router, Router::merge)
}

fn operations() -> Operations {
    let nouns = OPERATIONS.iter().map(|operations| operations());
    nouns.fold(Operations::default(), Operations::and)
}

/// Returns all routes for calls inside this process. Who calls is an extension of the request.
pub(crate) fn in_process(server: &Shared) -> Router {
    routes().with_state(server.clone())
}

/// What answers need from the application, which knows the concrete steps and providers.
pub trait Backend: Send + Sync {
    /// Returns the embedder, if the project's settings configure one.
    ///
    /// # Errors
    /// When its configuration is wrong.
    fn embedder<'a>(
        &self,
        engine: &'a Engine,
    ) -> Result<Option<Box<dyn Embedder + 'a>>, Diagnostic>;

    /// Returns the slots of flows and the connections of a project.
    fn connections(&self, engine: &Engine, flows: &[&Flow]) -> Vec<ConnectionReport>;

    /// Tests a connection the way the flow that names it would use it.
    fn try_connection<'a>(
        &self,
        engine: &'a Engine,
        flow: &'a Rc<Flow>,
        connection: &'a ConnectionReport,
    ) -> LocalFuture<'a, ConnectionTest>;
}

/// How a server is started.
pub struct ServeOptions {
    pub backend: Arc<dyn Backend>,
    pub door: Door,
    /// Threads that answer requests.
    pub threads: usize,
    /// Files and folders of flows.
    pub flows: Vec<PathBuf>,
    /// Stops the server.
    pub interrupt: Interrupt,
    /// What `/metrics` shows.
    pub metrics: Arc<Metrics>,
}

/// How requests reach a server.
pub enum Door {
    /// Open, and bound to the address that is served.
    Http(TcpListener),
    /// One client of MCP on standard input and output.
    Stdio {
        /// What the owner's rights are narrowed to; everything if empty.
        scopes: Vec<Scope>,
        /// The tools that are offered.
        sets: ToolSets,
        /// What the build kit is open for; the project, without it.
        kit: Option<Arc<KitDoor>>,
        /// The address of another server of the project, for links.
        base: Option<String>,
    },
}

/// Why a server does not start.
#[derive(Debug)]
pub enum ServeFailure<E> {
    /// The engine of a thread could not be opened.
    Open(E),
    /// It listens on another address than loopback, and no host is configured.
    NoHost,
    /// The system provides no thread or file handle.
    System(std::io::Error),
}

/// Returns the address under which a server is reached that listens there.
///
/// # Errors
/// When no name is known under which it may be reached.
pub fn base<E>(engine: &Engine, address: SocketAddr) -> Result<String, ServeFailure<E>> {
    let settings = ServerSettings::of(engine.settings(), address);
    let settings = settings.map_err(|_| ServeFailure::NoHost)?;
    Ok(settings.base)
}

/// Serves requests until interrupted. `ready` is called once, when the first request can come.
///
/// # Errors
/// When the server cannot start.
pub fn serve<E: Send>(
    open: &(dyn Fn() -> Result<Engine, E> + Sync),
    options: ServeOptions,
    ready: impl FnOnce(),
) -> Result<(), ServeFailure<E>> {
    let address = match &options.door {
        Door::Http(listener) => listener.local_addr().map_err(ServeFailure::System)?,
        Door::Stdio { .. } => SocketAddr::from(([127, 0, 0, 1], 0)),
    };
    if let Some(problem) = catalog::problems().into_iter().next() {
        return Err(ServeFailure::System(std::io::Error::other(problem)));
    }
    let engine = open().map_err(ServeFailure::Open)?;
    let settings = ServerSettings::of(engine.settings(), address);
    let mut settings = settings.map_err(|_| ServeFailure::NoHost)?;
    let home = engine.home().to_owned();
    drop(engine);
    if let Door::Stdio { base, .. } = &options.door {
        settings.base = base.clone().unwrap_or_default();
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(ServeFailure::System)?;
    let open_context = || {
        Ok(EngineContext {
            engine: open()?,
            catalog: Catalog::new(options.flows.clone()),
            backend: options.backend.clone(),
        })
    };
    thread::scope(|scope| {
        let engines = Engines::start(scope, options.threads, &open_context);
        let engines = engines.map_err(|error| match error {
            StartError::Open(error) => ServeFailure::Open(error),
            StartError::System(error) => ServeFailure::System(error),
            StartError::Ended => ServeFailure::System(std::io::Error::other("a thread ended")),
        })?;
        let limits = &settings.limits;
        let server = Arc::new(Server {
            engines,
            failures: access::Failures::new(limits.failed_proofs),
            rates: rates::Rates::new(limits),
            room: bodies::Room::new(limits.bodies),
            home,
            readers: feed::Readers::new(limits),
            rights: rights::Rights::default(),
            logins: kit::Logins::default(),
            settings,
            sessions: Sessions::default(),
            metrics: options.metrics.clone(),
            telemetry: telemetry::port(),
            interrupt: options.interrupt.clone(),
            stopping: tokio::sync::watch::Sender::new(false),
            delayed: tokio::sync::Notify::new(),
            registry_changes: std::sync::atomic::AtomicU64::new(0),
        });
        let accepted = runtime.block_on(async {
            ready();
            let sweeping = tokio::spawn(crate::mcp::sweep(server.clone()));
            let listener = match options.door {
                Door::Http(listener) => listener,
                Door::Stdio {
                    scopes, sets, kit, ..
                } => {
                    let talked = stdio::talk(server, scopes, (sets, kit)).await;
                    sweeping.abort();
                    return talked.map_err(|problem| std::io::Error::other(problem.detail));
                }
            };
            let counting = tokio::spawn(metrics::count(server.clone()));
            let checking = tokio::spawn(rights::check(server.clone()));
            let answering = tokio::spawn(agents::answer_delayed(server.clone()));
            let accepted = server::accept(listener, server).await;
            sweeping.abort();
            counting.abort();
            checking.abort();
            answering.abort();
            accepted
        });
        // What is left of connections is dropped here, and with it the way to the threads.
        runtime.shutdown_background();
        accepted.map_err(ServeFailure::System)
    })
}
