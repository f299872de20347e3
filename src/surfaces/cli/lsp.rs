//! `flowstone lsp`: the language server, with what the application offers.

use std::path::PathBuf;

use flowstone_flow::step::Step;
use flowstone_lang::session::Session;
use flowstone_lang::value::Value;

use super::App;
use super::args::Lsp;
use super::exit::Exit;
use super::home::Project;
use super::output;
use super::report::Report;
use crate::lsp::{self, Backend, Ended};

/// The code of a language server that cannot be started.
const NOT_STARTED: &str = "E1572";

/// Performs the command. The exit code tells whether the client asked for the end before it left, as the protocol wants.
pub fn run(args: &Lsp, app: &'static dyn App) -> Exit {
    let project = Project::find(&args.home);
    // The process has one server, which ends with it.
    let behind: &'static Behind = Box::leak(Box::new(Behind { app, project }));
    match lsp::serve(behind) {
        Ended::Cleanly => Exit::Completed,
        Ended::Abruptly => Exit::Failed,
        Ended::Failed(why) => {
            let message = format!("the language server cannot start: {why}");
            output::failure(&Report::error(NOT_STARTED, message), false);
            Exit::Failed
        }
    }
}

struct Behind {
    app: &'static dyn App,
    project: Project,
}

impl Backend for Behind {
    fn session(&self) -> Session {
        self.app.session()
    }

    fn steps(&self) -> Vec<Box<dyn Step>> {
        self.app.steps()
    }

    fn root(&self) -> PathBuf {
        self.project.root.clone()
    }

    fn settings(&self) -> Value {
        // `flowstone check` reports settings that cannot be used.
        self.app.settings(&self.project).unwrap_or(Value::Nil)
    }
}
