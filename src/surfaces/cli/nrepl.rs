//! `flowstone nrepl` and `flowstone repl --socket`: prompts for editors, on the loopback interface.

use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::rc::Rc;

use super::args::{Nrepl, Repl};
use super::exit::Exit;
use super::home::Project;
use super::interrupt::Interrupt;
use super::output;
use super::program::Grants;
use super::report::Report;
use super::runtime::Runtime;
use super::{App, Open};
use crate::nrepl::{Serve, listen};

/// The file in which editors look for the port.
const PORT_FILE: &str = ".nrepl-port";

/// Serves editors until Ctrl-C.
pub fn run(args: &Nrepl, app: &dyn App) -> Exit {
    let project = Project {
        max_memory: args.limits.max_memory,
        permits: args.permits.clone(),
        ..Project::find(&args.home)
    };
    let grants = Grants {
        files: args.allow_files,
        paths: args.paths.clone(),
        memory: args.limits.max_memory,
        ..Grants::default()
    };
    ended(serve(&project, grants, (args.port, Kind::Nrepl), app))
}

/// Serves a plain prompt on a socket until Ctrl-C.
pub fn socket(args: &Repl, port: u16, app: &dyn App) -> Exit {
    let project = Project {
        max_memory: args.limits.max_memory,
        permits: args.permits.clone(),
        ..Project::find(&args.home)
    };
    let grants = Grants {
        files: args.allow_files,
        paths: args.paths.clone(),
        memory: args.limits.max_memory,
        ..Grants::default()
    };
    ended(serve(&project, grants, (port, Kind::Socket), app))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Nrepl,
    Socket,
}

fn serve(
    project: &Project,
    grants: Grants,
    (port, kind): (u16, Kind),
    app: &dyn App,
) -> Result<(), Report> {
    let taken = |error: std::io::Error| {
        Report::error(
            "E1555",
            format!("cannot listen on port {port} of 127.0.0.1: {error}"),
        )
        .hint("leave the port out to get a free one, or name another with --port or --socket")
    };
    let listening = listen(port, kind == Kind::Socket).map_err(taken)?;
    let address = listening.address().map_err(taken)?;
    let interrupt = Interrupt::listen();
    let runtime = Runtime::start()?;
    runtime.block_on(async {
        let engine = app.open(project, Open::OrMake)?;
        let file = match kind {
            Kind::Nrepl => Some(PortFile::write(project, address)?),
            Kind::Socket => None,
        };
        announce(kind, address);
        let ends = || interrupt.is_set();
        let serve = Serve {
            engine: &engine,
            session: Rc::new(engine.session()),
            grants,
            ends: &ends,
        };
        listening.serve(serve).await;
        drop(file);
        Ok(())
    })
}

fn announce(kind: Kind, address: SocketAddr) {
    let port = address.port();
    match kind {
        // Editors that start the server read the port from these words.
        Kind::Nrepl => output::data(&format!(
            "nREPL server started on port {port} on host 127.0.0.1 - nrepl://127.0.0.1:{port}"
        )),
        Kind::Socket => output::data(&format!("socket prompt on port {port} on host 127.0.0.1")),
    }
}

/// The file with the port, which is removed at the end.
struct PortFile {
    path: PathBuf,
    text: String,
}

impl PortFile {
    fn write(project: &Project, address: SocketAddr) -> Result<PortFile, Report> {
        let path = project.root.join(PORT_FILE);
        let text = address.port().to_string();
        fs::write(&path, &text).map_err(|error| {
            Report::error("E1556", format!("cannot write {}: {error}", path.display()))
                .hint("editors look there for the port; start the server in a folder that you can write to")
        })?;
        Ok(PortFile { path, text })
    }
}

impl Drop for PortFile {
    fn drop(&mut self) {
        // Another server may have written it since.
        if fs::read_to_string(&self.path).is_ok_and(|text| text == self.text) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn ended(served: Result<(), Report>) -> Exit {
    match served {
        Ok(()) => Exit::Completed,
        Err(report) => {
            output::failure(&report, false);
            Exit::Failed
        }
    }
}
