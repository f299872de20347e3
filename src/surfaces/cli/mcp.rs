//! `flowstone mcp`: the Model Context Protocol on standard input and output, beside a worker in this process.

use std::sync::Arc;

use flowstone_engine::server_file;
use flowstone_engine::worker::{self, ServeError, Until, Watch, WorkerOptions};
use flowstone_fronts::kit::{DoorPermissions, Origin};

use super::args::Mcp;
use super::exit::Exit;
use super::home::Project;
use super::interrupt::Interrupt;
use super::outcome::of_engine_error;
use super::output;
use super::report::Report;
use super::serve::listen::{API_THREADS, Behind, of_failure};
use super::serve::{Lines, cores, flows_of};
use super::{App, Open};
use crate::http::{self, Door, ServeOptions};
use crate::kit::{KitDoor, is_in_test};
use crate::mcp::ToolSets;
use crate::metrics::Metrics;

/// Serves one client until it disconnects, and executes runs meanwhile.
pub fn run(args: &Mcp, app: &'static dyn App) -> Exit {
    match talk(args, app) {
        Ok(()) => Exit::Completed,
        Err(report) => {
            output::failure(&report, false);
            Exit::Failed
        }
    }
}

fn talk(args: &Mcp, app: &'static dyn App) -> Result<(), Report> {
    let project = Project {
        max_memory: args.limits.max_memory,
        permits: args.permits.clone(),
        ..Project::find(&args.home)
    };
    let stores = app.stores(&project, Open::OrMake)?;
    let interrupt = Interrupt::listen().for_engine();
    let flows = flows_of(&project, args.paths.clone());
    let worker = WorkerOptions {
        threads: cores(),
        concurrency: args.concurrency,
        until: Until::Interrupted,
        flows: flows.clone(),
        interrupt: interrupt.clone(),
    };
    let base = server_file::running(&project.home);
    let kit = kit_door(args, base.as_deref())?;
    let options = ServeOptions {
        backend: Arc::new(Behind(app)),
        door: Door::Stdio {
            scopes: args.scopes.iter().map(|right| right.0).collect(),
            sets: ToolSets::of(&args.tools),
            kit,
            base,
        },
        threads: API_THREADS,
        flows,
        interrupt: interrupt.clone(),
        metrics: Arc::new(Metrics::default()),
    };
    let open = || app.engine(&project, stores.clone());
    // Standard output belongs to the protocol, so errors go to standard error.
    let watch: Arc<dyn Watch> = Arc::new(Lines {
        as_json: false,
        quiet: true,
    });
    std::thread::scope(|scope| {
        let working = scope.spawn(|| {
            worker::serve(&open, &worker, &watch).map_err(|error| match error {
                ServeError::Open(report) => report,
                ServeError::Engine(error) => of_engine_error(&error),
            })
        });
        let address = std::net::SocketAddr::from(([127, 0, 0, 1], 0));
        let talked = http::serve(&open, options, || ());
        interrupt.trigger();
        // A panic was reported where it happened.
        let worked = working.join().unwrap_or(Ok(Default::default()));
        talked.map_err(|failure| of_failure(failure, address))?;
        worked.map(drop)
    })
}

/// Returns what the build kit is open for, if it is offered.
fn kit_door(args: &Mcp, base: Option<&str>) -> Result<Option<Arc<KitDoor>>, Report> {
    let Some(slug) = &args.kit else {
        return Ok(None);
    };
    let permissions = DoorPermissions::read(&args.permissions, &args.enabled);
    let permissions = permissions.map_err(|why| Report::error("E1510", why))?;
    Ok(Some(Arc::new(KitDoor {
        slug: Some(slug.clone()),
        permissions,
        origin: Origin {
            session: "stdio".to_owned(),
            is_test: is_in_test(),
            base: base.map(str::to_owned),
            ..Origin::default()
        },
        is_for_model: true,
    })))
}
