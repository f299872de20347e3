//! The HTTP server beside the worker: both start and stop together.

use std::net::{SocketAddr, TcpListener};
use std::rc::Rc;
use std::sync::Arc;

use flowstone_engine::worker::{Served, WorkerOptions};
use flowstone_engine::{Engine, server_file};
use flowstone_flow::flow::Flow;
use flowstone_flow::step::LocalFuture;
use flowstone_project::connections::{ConnectionReport, ConnectionTest};
use flowstone_project::search::Embedder;
use serde_json::json;

use super::{Lines, Message, inventory};
use crate::cli::App;
use crate::cli::home::Project;
use crate::cli::outcome::of_engine_error;
use crate::cli::report::Report;
use crate::cli::runtime::Runtime;
use crate::http::{self, Backend, Door, ServeFailure, ServeOptions};
use crate::metrics::Metrics;

/// Threads that answer requests; runs are executed on other threads.
pub(in crate::cli) const API_THREADS: usize = 2;

/// The application behind the server.
pub(in crate::cli) struct Behind(pub(in crate::cli) &'static dyn App);

impl Backend for Behind {
    fn embedder<'a>(&self, engine: &'a Engine) -> Result<Option<Box<dyn Embedder + 'a>>, Report> {
        self.0.embedder(engine)
    }

    fn connections(&self, engine: &Engine, flows: &[&Flow]) -> Vec<ConnectionReport> {
        self.0.connections(engine, flows)
    }

    fn try_connection<'a>(
        &self,
        engine: &'a Engine,
        flow: &'a Rc<Flow>,
        connection: &'a ConnectionReport,
    ) -> LocalFuture<'a, ConnectionTest> {
        self.0.try_connection(engine, flow, connection)
    }
}

/// Opens the engine of a thread.
pub(super) type Open<'a> = &'a (dyn Fn() -> Result<Engine, Report> + Sync);

/// Serves requests while `work` executes runs. Both stop together.
pub(super) fn listen(
    address: SocketAddr,
    (project, options, app): (&Project, &WorkerOptions, &'static dyn App),
    (open, metrics): (Open<'_>, Arc<Metrics>),
    lines: &Lines,
    work: impl FnOnce() -> Result<Served, Report>,
) -> Result<Served, Report> {
    // The base address is checked before anything listens.
    let (listener, address, base) = Runtime::start()?.block_on(async {
        let engine = open()?;
        let base =
            |address| http::base(&engine, address).map_err(|failure| of_failure(failure, address));
        base(address)?;
        let token = engine.owner_token().await;
        token.map_err(|error| of_engine_error(&error))?;
        let listener = TcpListener::bind(address).map_err(|error| unbound(address, &error))?;
        // Port 0 was replaced by a free one.
        let bound = listener
            .local_addr()
            .map_err(|error| unbound(address, &error))?;
        Ok::<_, Report>((listener, bound, base(bound)?))
    })?;
    let file = project.home.join(server_file::NAME);
    let about = json!({"pid": std::process::id(), "base": base}).to_string();
    let options = ServeOptions {
        backend: Arc::new(Behind(app)),
        door: Door::Http(listener),
        threads: API_THREADS,
        flows: options.flows.clone(),
        interrupt: options.interrupt.clone(),
        metrics,
    };
    let stop = options.interrupt.clone();
    let flows = options.flows.clone();
    let served = std::thread::scope(|scope| {
        let (report, ready) = std::sync::mpsc::sync_channel(1);
        let failed = report.clone();
        let server = scope.spawn(move || {
            let served = http::serve(open, options, || drop(report.send(None)));
            if let Err(failure) = served {
                // Only the first report is read: a server that stops later logs that.
                let _ = failed.try_send(Some(of_failure(failure, address)));
            }
        });
        if let Ok(Some(report)) = ready.recv() {
            return Err(report);
        }
        flowstone_engine::private::write(&file, about.as_bytes()).map_err(|error| {
            Report::error(
                "E1025",
                format!("{} cannot be written: {error}", file.display()),
            )
        })?;
        lines.show(Message {
            event: "listening",
            text: format!(
                "listening on {base}; the owner's token is in {}/owner.token",
                project.home.display()
            ),
            fields: json!({"address": address.to_string(), "base": base}),
            is_wrong: false,
        });
        if !lines.quiet {
            lines.show(inventory::of(open, flows, &base)?);
        }
        let served = work();
        stop.trigger();
        // Its panic was reported.
        let _ = server.join();
        served
    });
    // Another server may have replaced it.
    let own = std::fs::read_to_string(&file).is_ok_and(|text| text == about);
    if own {
        let _ = std::fs::remove_file(&file);
    }
    served
}

fn unbound(address: SocketAddr, error: &std::io::Error) -> Report {
    let report = Report::error("E1025", format!("cannot listen on {address}: {error}"));
    match error.kind() {
        std::io::ErrorKind::AddrInUse => {
            report.hint("another process uses this port; choose another one, or 0 for a free one")
        }
        std::io::ErrorKind::PermissionDenied => {
            report.hint("choose a port from 1024, and put a reverse proxy in front of it")
        }
        _ => report,
    }
}

pub(in crate::cli) fn of_failure(failure: ServeFailure<Report>, address: SocketAddr) -> Report {
    match failure {
        ServeFailure::Open(report) => report,
        ServeFailure::NoHost => {
            let message =
                format!("the server would listen on {address} without a name that it accepts");
            Report::error("E1024", message).hint(
                "set `:server {:url \"https://...\"}` in flowstone.edn to the address that clients use, or listen on \
                 127.0.0.1",
            )
        }
        ServeFailure::System(error) => {
            Report::error("E1025", format!("the server cannot start: {error}"))
        }
    }
}
