//! The command line: parses arguments and calls the command.

mod against;
mod args;
mod ask;
mod backtest;
mod backup;
mod check;
mod complete;
mod completions;
mod connections;
mod deps;
mod docs;
mod doctor;
mod duration;
mod eval;
mod exit;
mod flow_file;
mod flows;
mod fmt;
mod graph;
mod home;
mod import;
mod input;
mod interrupt;
mod jobs;
mod key;
mod kit;
mod log;
mod lsp;
mod mcp;
mod misnamed;
mod needs;
mod new;
mod nrepl;
mod outcome;
mod output;
mod paint;
mod permission;
mod pretty;
mod program;
mod progress;
mod queue;
mod reference;
mod remote;
mod repl;
mod report;
mod resources;
mod rows;
mod run;
mod runs;
mod runtime;
mod schedules;
mod search;
mod serve;
mod skill;
mod stack;
mod steps;
mod table;
mod test;
mod tokens;
mod tree;
mod waits;

use std::process::ExitCode;
use std::rc::Rc;

use flowstone_engine::Engine;
use flowstone_engine::crash_test::World;
use flowstone_engine::ports::{SearchTarget, Stores};
use flowstone_flow::dependencies::Revision;
use flowstone_flow::flow::Flow;
use flowstone_flow::permission::Permissions;
use flowstone_flow::step::{LocalFuture, Step};
use flowstone_lang::session::Session;
use flowstone_lang::value::{Value, heap};
use flowstone_project::connections::{
    ConnectionReport, ConnectionTest, LoginNote, LoginOptions, LoginReport, PriceReport,
};
use flowstone_project::search::Embedder;

use args::{Cli, Command};
pub use home::{ExchangesWith, Project};
pub(crate) use interrupt::Interrupt;
pub use outcome::of_store_error;
pub(crate) use paint::exact;
pub(crate) use program::{Grants, ProgramHost};
pub(crate) use repl::draw_error;
pub use repl::{
    Around, Candidate, Desk, Lines, Person, Progress, Prompt, Waiting, Words, lost_terminal,
};
pub use report::Report;
pub use runtime::Runtime;

use crate::telemetry;

/// The parts of the application that commands use: concrete stores, steps and the prompt.
pub trait App: Sync {
    /// Opens the engine on a project's stores. Called inside the runtime.
    ///
    /// # Errors
    /// When the stores or the project's settings cannot be used.
    fn open(&self, project: &Project, open: Open) -> Result<Engine, Report> {
        self.engine(project, self.stores(project, open)?)
    }

    /// Opens a project's stores, which all engines of a process may share.
    ///
    /// # Errors
    /// When the stores cannot be used.
    fn stores(&self, project: &Project, open: Open) -> Result<Stores, Report>;

    /// Creates an engine over open stores.
    ///
    /// # Errors
    /// When the project's settings cannot be used.
    fn engine(&self, project: &Project, stores: Stores) -> Result<Engine, Report>;

    /// Opens the engine for `flowstone test`: with the clock, randomness and probe of the test's world, and with
    /// watched steps.
    ///
    /// # Errors
    /// As [`App::open`].
    fn open_test(&self, project: &Project, world: &World) -> Result<Engine, Report>;

    /// Returns the embedder, if the project's settings configure one.
    ///
    /// # Errors
    /// When its configuration is wrong.
    fn embedder<'a>(&self, engine: &'a Engine) -> Result<Option<Box<dyn Embedder + 'a>>, Report>;

    /// Returns the Clojure files of a dependency in the order of their paths. They are fetched unless they were before.
    ///
    /// # Errors
    /// When git fails.
    fn dependency(
        &self,
        project: &Project,
        revision: &Revision,
    ) -> Result<Vec<(String, Vec<u8>)>, Report>;

    /// Returns the slots of flows and the connections of a project.
    fn connections(&self, engine: &Engine, flows: &[&Flow]) -> Vec<ConnectionReport>;

    /// Tests a connection the way the flow that names it would use it.
    fn try_connection<'a>(
        &self,
        engine: &'a Engine,
        flow: &'a Rc<Flow>,
        connection: &'a ConnectionReport,
    ) -> LocalFuture<'a, ConnectionTest>;

    /// Logs in for a connection. `tell` is called with what a person has to do.
    fn login<'a>(
        &self,
        engine: &'a Engine,
        project: &'a Project,
        options: &'a LoginOptions,
        tell: &'a mut dyn FnMut(&LoginNote),
    ) -> LocalFuture<'a, Result<LoginReport, Report>>;

    /// Deletes the login of a connection. Tells whether there was one, and whether the authorization server has ended it.
    fn logout<'a>(
        &self,
        engine: &'a Engine,
        project: &'a Project,
        name: &'a str,
    ) -> LocalFuture<'a, Result<(bool, bool), Report>>;

    /// Returns the prices of models in a project, and the date of the built-in table.
    ///
    /// # Errors
    /// When the project's settings contain malformed prices.
    fn prices(&self, engine: &Engine) -> Result<(String, Vec<PriceReport>), Report>;

    /// Returns a session with everything that flows may use.
    fn session(&self) -> Session;

    /// Returns a session for a program without runs: the language, and functions for encodings and data.
    fn plain_session(&self) -> Session;

    /// Returns the permissions of a project's flows.
    ///
    /// # Errors
    /// When its settings, or the list of trusted flows, cannot be used.
    fn permissions(&self, project: &Project) -> Result<Permissions, Report>;

    /// Returns the settings of a project.
    ///
    /// # Errors
    /// When they cannot be used.
    fn settings(&self, project: &Project) -> Result<Value, Report>;

    /// Returns all step types.
    fn steps(&self) -> Vec<Box<dyn Step>>;

    /// Runs the prompt until the input ends. Returns false if an expression threw and the exit code must show it.
    ///
    /// # Errors
    /// When the project cannot be opened, or input or output fail.
    fn repl(&self, prompt: Prompt) -> Result<bool, Report>;
}

/// What to do if a project has no stores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Open {
    /// Report an error.
    Existing,
    /// Create them.
    OrMake,
}

/// Runs the command given on the command line.
pub fn main(app: &'static dyn App) -> ExitCode {
    if complete::answer(app) {
        return ExitCode::SUCCESS;
    }
    let cli = misnamed::parse();
    output::set_color(cli.color);
    std::panic::set_hook(Box::new(|panic| output::note(&internal_error(panic))));
    log::start();
    for problem in telemetry::start() {
        output::note(&format!("warning: {problem}"));
    }
    end_without_memory();
    let ended = stack::end_after(move || {
        let exit = perform(&cli, app);
        telemetry::flush();
        exit.code().into()
    });
    match ended {
        Ok(never) => match never {},
        Err(error) => {
            let message = format!("no thread can be started: {error}");
            let report = Report::error("E0645", message);
            output::report(
                &report.hint("raise the limits of memory and processes (`ulimit -v`, `ulimit -u`)"),
            );
            exit::Exit::Failed.into()
        }
    }
}

/// Ends the process with a message when the system has no memory left for it. Runs are as after a crash.
fn end_without_memory() {
    let was_refused = heap::when_exhausted(|bytes| {
        output::without_memory(bytes);
        std::process::exit(exit::Exit::Failed.code().into())
    });
    // If a large allocation fails, the process aborts after its own message: a core dump would not help.
    #[cfg(unix)]
    let _ = signal_hook::flag::register_conditional_shutdown(
        signal_hook::consts::SIGABRT,
        exit::Exit::Failed.code().into(),
        was_refused,
    );
    #[cfg(not(unix))]
    drop(was_refused);
}

/// Reports a panic as an internal error of Flowstone.
fn internal_error(panic: &std::panic::PanicHookInfo<'_>) -> String {
    let payload = panic.payload();
    let words = payload
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| payload.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no reason given");
    let place = panic
        .location()
        .map_or_else(String::new, |place| format!(" ({place})"));
    if let Some(scarce) = scarce(words) {
        return format!(
            "error: the system has no {scarce} left for this process: {words}\n  hint: run less side by side (`:max` of \
             `flow/pmap`, `--concurrency` of `serve`), or raise the limit (`ulimit -a` shows it)"
        );
    }
    format!(
        "internal error: {words}{place}\n  hint: this is a mistake in Flowstone, not in your flow; please report it"
    )
}

/// Returns the resource that the system has run out of, if a panic's message says so. Threads and file handles are
/// limited.
fn scarce(words: &str) -> Option<&'static str> {
    let words = words.to_lowercase();
    let found = [
        ("too many open files", "file handles"),
        ("cannot allocate memory", "memory"),
        ("out of memory", "memory"),
        ("memory allocation", "memory"),
        ("resource temporarily unavailable", "threads or memory"),
    ];
    found
        .into_iter()
        .find_map(|(text, scarce)| words.contains(text).then_some(scarce))
}

fn perform(cli: &Cli, app: &'static dyn App) -> exit::Exit {
    let address = cli.server.address();
    let remote = address.and_then(|address| remote::perform(&cli.command, &address, &cli.server));
    if let Some(exit) = remote {
        return exit;
    }
    match &cli.command {
        Command::Backtest(args) => backtest::run(args, app),
        Command::Backup(args) => backup::run(args, app),
        Command::Check(args) => check::run(args, app),
        Command::Completions(args) => completions::run(args),
        Command::Connections(args) => connections::run(args, app),
        Command::Deps(args) => deps::run(args, app),
        Command::Docs(args) => docs::run(args),
        Command::Doctor(args) => doctor::run(args, app),
        Command::Eval(args) => eval::run(args, app),
        Command::Explain(args) => docs::explain(args),
        Command::Flows(args) => flows::run(args, app),
        Command::Fmt(args) => fmt::run(args),
        Command::Gc(args) => runs::collect_garbage(args, app),
        Command::Graph(args) => graph::run(args, app),
        Command::Import(args) => import::run(args),
        Command::Init(args) => new::init(args),
        Command::Jobs(args) => jobs::run(args, app),
        Command::Key(args) => key::run(args, app),
        Command::Kit(args) => kit::run(args, app),
        Command::Lsp(args) => lsp::run(args, app),
        Command::Mcp(args) => mcp::run(args, app),
        Command::New(args) => new::run(args),
        Command::Nrepl(args) => nrepl::run(args, app),
        Command::Reference(args) => reference::run(args, app),
        Command::Repl(args) => repl::run(args, app),
        Command::Resources(args) => resources::run(args, app),
        Command::Run(args) => run::run(args, app),
        Command::Runs(args) => runs::run(args, app),
        Command::Test(args) => test::run(args, app),
        Command::Schedules(args) => schedules::run(args, app),
        Command::Search(args) => search::run(args, app, &SearchTarget::ALL),
        Command::Serve(args) => serve::run(args, app),
        Command::Skill(args) => skill::run(args),
        Command::Steps(args) => steps::run(args, app),
        Command::Tokens(args) => tokens::run(args, app),
        Command::Tree(args) => tree::run(args, app),
        Command::Waits(args) => waits::run(args, app),
    }
}
