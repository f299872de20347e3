//! The commands that can use a server. Each prints the same as without one.

use std::path::Path;

use flowstone_engine::ports::SearchTarget;
use serde_json::{Value, json};

use super::{
    PAGE, Remote, ServerOptions, connections, failed, flows, jobs, kit, local_only, resources, run,
    runs, tokens, waits,
};
use crate::cli::args::{
    Command, ConnectionsCommand, FlowsCommand, JobsCommand, ResourcesCommand, ResourcesList,
    ResourcesUrl, ResourcesWorkflow, SchedulesCommand, Search, WaitsCommand, WorkflowCommand,
    WorkflowList,
};
use crate::cli::exit::Exit;
use crate::cli::flows::as_json;
use crate::cli::report::Report;
use crate::cli::resources::list::tell as tell_resources;
use crate::cli::rows::list as list_of;
use crate::cli::tokens::TokensCommand;
use crate::cli::{output, schedules, search};
use crate::json::ok;

/// Performs a command on a server. `None` if the command does not use a project's stores, and must be performed
/// locally.
#[expect(
    clippy::too_many_lines,
    reason = "one arm a command: a table of contents of what a server does"
)]
pub fn perform(command: &Command, address: &str, options: &ServerOptions) -> Option<Exit> {
    let is_explicit = options.server.is_some();
    let (as_json, done) = match command {
        Command::Completions(_)
        | Command::Eval(_)
        | Command::Import(_)
        | Command::Key(_)
        | Command::Kit(_)
        | Command::Lsp(_)
        | Command::Mcp(_)
        | Command::Reference(_)
        | Command::Repl(_)
        | Command::Serve(_)
        | Command::Steps(_)
        | Command::Test(_)
            if !is_explicit =>
        {
            return None;
        }
        Command::Flows(args) if !is_explicit && is_local(&args.command) => return None,
        // Without `--server`, the files are checked here.
        Command::Check(_) if !is_explicit => return None,
        Command::Check(args) => (
            args.json,
            open(address, options, args.home.home.as_deref())
                .and_then(|remote| flows::check(&remote, args)),
        ),
        Command::Connections(args) => of_connections(&args.command, address, options),
        Command::Flows(args) => of_flows(&args.command, address, options),
        Command::Runs(args) => runs::perform(&args.command, address, options),
        Command::Schedules(args) => of_schedules(&args.command, address, options),
        Command::Resources(args) => of_resources(&args.command, address, options),
        Command::Jobs(args) => {
            let (home, as_json) = of_jobs(&args.command);
            let remote = open(address, options, home);
            let done = remote.and_then(|remote| jobs::perform(&remote, &args.command));
            (as_json, done)
        }
        Command::Run(args) => {
            let remote = open(address, options, args.home.home.as_deref());
            let done = remote.and_then(|remote| run::run(&remote, args));
            (args.show.json, done)
        }
        Command::Tokens(args) => {
            let (home, as_json) = of_tokens(&args.command);
            let remote = open(address, options, home);
            (
                as_json,
                remote.and_then(|remote| tokens::perform(&remote, &args.command)),
            )
        }
        Command::Waits(args) => {
            let (home, as_json) = of_waits(&args.command);
            let remote = open(address, options, home);
            (
                as_json,
                remote.and_then(|remote| waits::perform(&remote, &args.command)),
            )
        }
        Command::Search(args) => (
            args.json,
            open(address, options, args.home.home.as_deref())
                .and_then(|remote| search(&remote, args, &SearchTarget::ALL)),
        ),
        Command::Backtest(args) => (args.json, Err(local_only("`backtest`"))),
        Command::Backup(args) => (args.json, Err(local_only("`backup`"))),
        Command::Completions(_) => (false, Err(local_only("`completions`"))),
        Command::Deps(args) => (args.json, Err(local_only("`deps`"))),
        // The manual is in the program.
        Command::Docs(_) | Command::Explain(_) | Command::Fmt(_) | Command::Skill(_) => {
            return None;
        }
        Command::Doctor(args) => (args.json, Err(local_only("`doctor`"))),
        Command::Eval(_) => (false, Err(local_only("`eval`"))),
        Command::Gc(args) => (args.json, Err(local_only("`gc`"))),
        Command::Graph(_) => (false, Err(local_only("`graph`"))),
        Command::Import(_) => (false, Err(local_only("`import`"))),
        Command::Init(args) => (args.json, Err(local_only("`init`"))),
        Command::New(args) => (args.json, Err(local_only("`new`"))),
        Command::Nrepl(_) => (false, Err(local_only("`nrepl`"))),
        Command::Key(_) => (false, Err(local_only("`key`"))),
        Command::Kit(args) => (
            args.json.is_some(),
            open(address, options, args.home.home.as_deref())
                .and_then(|remote| kit::perform(&remote, args)),
        ),
        Command::Lsp(_) => (false, Err(local_only("`lsp`"))),
        Command::Mcp(_) => (false, Err(local_only("`mcp`"))),
        Command::Reference(_) => (false, Err(local_only("`reference`"))),
        Command::Repl(_) => (false, Err(local_only("`repl`"))),
        Command::Serve(_) => (false, Err(local_only("`serve`"))),
        Command::Steps(_) => (false, Err(local_only("`steps`"))),
        Command::Test(_) => (false, Err(local_only("`test`"))),
        Command::Tree(_) => (false, Err(local_only("`tree`"))),
    };
    Some(done.unwrap_or_else(|report| failed(&report, as_json)))
}

/// Tells whether a command is about the folders that this machine trusts, or runs a test in its own process.
fn is_local(command: &FlowsCommand) -> bool {
    match command {
        FlowsCommand::Test(_)
        | FlowsCommand::Trust(_)
        | FlowsCommand::Trusted(_)
        | FlowsCommand::Untrust(_) => true,
        FlowsCommand::Archive(_)
        | FlowsCommand::Configure(_)
        | FlowsCommand::Diff(_)
        | FlowsCommand::Install(_)
        | FlowsCommand::Installations(_)
        | FlowsCommand::Pack(_)
        | FlowsCommand::Uninstall(_)
        | FlowsCommand::List(_)
        | FlowsCommand::Pull(_)
        | FlowsCommand::Push(_)
        | FlowsCommand::Release(_)
        | FlowsCommand::Rollback(_)
        | FlowsCommand::Show(_)
        | FlowsCommand::Versions(_) => false,
    }
}

fn of_schedules(
    command: &SchedulesCommand,
    address: &str,
    options: &ServerOptions,
) -> (bool, Result<Exit, Report>) {
    match command {
        SchedulesCommand::List(args) => (
            args.json,
            open(address, options, args.home.home.as_deref()).and_then(|remote| {
                let answer = remote.get(&["schedules"], &[])?;
                let schedules = list_of(&answer, "schedules").cloned();
                schedules::tell_list(schedules.collect(), args.json);
                Ok(Exit::Completed)
            }),
        ),
        SchedulesCommand::Run(args) => (
            args.show.json,
            open(address, options, args.home.home.as_deref())
                .and_then(|remote| run::schedule(&remote, args)),
        ),
    }
}

/// Performs a command about resources; tells whether it prints JSON.
fn of_resources(
    command: &ResourcesCommand,
    address: &str,
    options: &ServerOptions,
) -> (bool, Result<Exit, Report>) {
    match command {
        ResourcesCommand::List(args) => (
            args.output.json,
            open(address, options, args.output.home.home.as_deref())
                .and_then(|remote| list_resources(&remote, args)),
        ),
        ResourcesCommand::Search(args) => (
            args.json,
            open(address, options, args.home.home.as_deref())
                .and_then(|remote| search(&remote, args, &[SearchTarget::Resources])),
        ),
        ResourcesCommand::Workflow(ResourcesWorkflow {
            command: WorkflowCommand::List(args),
        }) => (
            args.output.json,
            open(address, options, args.output.home.home.as_deref())
                .and_then(|remote| of_run(&remote, args)),
        ),
        ResourcesCommand::Workflow(ResourcesWorkflow {
            command: WorkflowCommand::Step(_),
        }) => (false, Err(local_only("`resources workflow step`"))),
        ResourcesCommand::Url(args) => (
            args.output.json,
            open(address, options, args.output.home.home.as_deref())
                .and_then(|remote| url(&remote, args)),
        ),
        ResourcesCommand::Get(args) => (
            args.one.output.json,
            open(address, options, args.one.output.home.home.as_deref())
                .and_then(|remote| resources::get(&remote, args)),
        ),
        ResourcesCommand::Read(args) => (
            args.one.output.json,
            open(address, options, args.one.output.home.home.as_deref())
                .and_then(|remote| resources::read(&remote, args)),
        ),
        ResourcesCommand::Upload(args) => (
            args.output.json,
            open(address, options, args.output.home.home.as_deref())
                .and_then(|remote| resources::upload(&remote, args)),
        ),
        ResourcesCommand::Delete(args) => (
            args.one.output.json,
            open(address, options, args.one.output.home.home.as_deref())
                .and_then(|remote| resources::delete(&remote, args)),
        ),
        ResourcesCommand::SearchIndex(_) => (false, Err(local_only("`resources search-index`"))),
        ResourcesCommand::Table(_) => (false, Err(local_only("`resources table`"))),
    }
}

/// Returns the home folder of a command, and whether it prints JSON.
fn of_jobs(command: &JobsCommand) -> (Option<&Path>, bool) {
    let (home, as_json) = match command {
        JobsCommand::Claim(args) => (&args.home, args.json),
        JobsCommand::Complete(args) => (&args.home, args.json),
        JobsCommand::Fail(args) => (&args.home, args.json),
        JobsCommand::List(args) => (&args.home, args.json),
        JobsCommand::Progress(args) => (&args.home, args.json),
        JobsCommand::Show(args) => (&args.home, args.json),
    };
    (home.home.as_deref(), as_json)
}

fn of_tokens(command: &TokensCommand) -> (Option<&Path>, bool) {
    let (home, as_json) = match command {
        TokensCommand::Create(args) => (&args.home, args.json),
        TokensCommand::List(args) => (&args.home, args.json),
        TokensCommand::Revoke(args) => (&args.home, args.json),
    };
    (home.home.as_deref(), as_json)
}

fn of_waits(command: &WaitsCommand) -> (Option<&Path>, bool) {
    let answer = match command {
        WaitsCommand::List(args) => return (args.home.home.as_deref(), args.json),
        WaitsCommand::Show(args) => return (args.home.home.as_deref(), args.json),
        WaitsCommand::Approve(args) => &args.answer,
        WaitsCommand::Cancel(args) => &args.answer,
        WaitsCommand::Complete(args) => &args.answer,
        WaitsCommand::Event(args) => &args.answer,
        WaitsCommand::Reject(args) => &args.answer,
        WaitsCommand::Signal(args) => &args.answer,
    };
    (answer.home.home.as_deref(), answer.show.json)
}

/// Performs a command about flows; tells whether it prints JSON.
fn of_flows(
    command: &FlowsCommand,
    address: &str,
    options: &ServerOptions,
) -> (bool, Result<Exit, Report>) {
    let home = match command {
        FlowsCommand::Archive(args) => &args.home,
        FlowsCommand::Configure(args) => &args.home,
        FlowsCommand::Install(args) => &args.home,
        FlowsCommand::Installations(args) => &args.home,
        FlowsCommand::Pack(args) => &args.home,
        FlowsCommand::Uninstall(args) => &args.home,
        FlowsCommand::Diff(args) => &args.home,
        FlowsCommand::Pull(args) => &args.home,
        FlowsCommand::Push(args) => &args.home,
        FlowsCommand::Release(args) => &args.home,
        FlowsCommand::Rollback(args) => &args.home,
        FlowsCommand::List(args) => &args.home,
        FlowsCommand::Show(args) => &args.home,
        FlowsCommand::Versions(args) => &args.home,
        FlowsCommand::Test(args) => &args.home,
        FlowsCommand::Trust(_) | FlowsCommand::Trusted(_) | FlowsCommand::Untrust(_) => {
            return (
                as_json(command),
                Err(local_only("`flows trust`, `trusted` and `untrust`")),
            );
        }
    };
    let remote = open(address, options, home.home.as_deref());
    let done = remote.and_then(|remote| flows::perform(&remote, command));
    (as_json(command), done)
}

/// Performs a command about connections; tells whether it prints JSON.
fn of_connections(
    command: &ConnectionsCommand,
    address: &str,
    options: &ServerOptions,
) -> (bool, Result<Exit, Report>) {
    match command {
        ConnectionsCommand::List(args) => (
            args.json,
            open(address, options, args.home.home.as_deref())
                .and_then(|remote| connections::list(&remote, args)),
        ),
        ConnectionsCommand::Test(args) => (
            args.json,
            open(address, options, args.home.home.as_deref())
                .and_then(|remote| connections::test(&remote, args)),
        ),
        ConnectionsCommand::Login(args) => (args.json, Err(local_only("`connections login`"))),
        ConnectionsCommand::Logout(args) => (args.json, Err(local_only("`connections logout`"))),
        ConnectionsCommand::Prices(args) => (args.json, Err(local_only("`connections prices`"))),
    }
}

pub(super) fn open(
    address: &str,
    options: &ServerOptions,
    home: Option<&Path>,
) -> Result<Remote, Report> {
    Remote::open(address, options, home)
}

fn list_resources(remote: &Remote, args: &ResourcesList) -> Result<Exit, Report> {
    let mut query: Vec<(&str, String)> = Vec::new();
    let kinds: Vec<&str> = args.kinds.iter().map(|kind| kind.name()).collect();
    if !kinds.is_empty() {
        query.push(("types", kinds.join(",")));
    }
    let texts = [
        ("prefix", &args.prefix),
        ("run", &args.run),
        ("cursor", &args.after),
    ];
    for (name, text) in texts {
        query.extend(text.iter().map(|text| (name, text.clone())));
    }
    query.extend(args.tier.map(|tier| ("tier", tier.name().to_owned())));
    if args.all {
        query.push(("all", "true".to_owned()));
    }
    if args.sort == crate::cli::args::ResourcesSort::Name {
        query.push(("sort", "name".to_owned()));
    }
    let most = PAGE as u64;
    query.push(("limit", args.limit.min(most).to_string()));
    tell_resources(remote.get(&["resources"], &query)?, args.output.json);
    Ok(Exit::Completed)
}

/// Lists the resources that a run created.
fn of_run(remote: &Remote, args: &WorkflowList) -> Result<Exit, Report> {
    let query = [("run", args.run.clone()), ("limit", PAGE.to_string())];
    tell_resources(remote.get(&["resources"], &query)?, args.output.json);
    Ok(Exit::Completed)
}

fn url(remote: &Remote, args: &ResourcesUrl) -> Result<Exit, Report> {
    if args.check {
        return Err(local_only("`resources url --check`"));
    }
    let body = json!({"uri": args.uri, "ttl": args.ttl});
    let made = remote.post(&["resources", "url"], &body)?;
    Ok(link(made, args.output.json))
}

/// Prints a link that was created.
pub(super) fn link(made: Value, as_json: bool) -> Exit {
    match as_json {
        true => output::json(&ok(made)),
        false => output::data(made["url"].as_str().unwrap_or_default()),
    }
    Exit::Completed
}

/// Searches. Without explicit targets, `everywhere` is searched.
fn search(remote: &Remote, args: &Search, everywhere: &[SearchTarget]) -> Result<Exit, Report> {
    if args.storage_backend.is_some() || args.storage_root.is_some() {
        return Err(local_only("`search` in a storage of its own"));
    }
    let mut query = vec![
        ("q", args.query.join(" ")),
        ("limit", args.limit.to_string()),
    ];
    let targets = match args.targets.is_empty() {
        true => everywhere,
        false => &args.targets,
    };
    let targets: Vec<&str> = targets.iter().map(|target| target.name()).collect();
    query.push(("targets", targets.join(",")));
    query.extend(args.mode.map(|mode| ("mode", mode.name().to_owned())));
    query.extend(
        args.path_prefix
            .iter()
            .map(|prefix| ("prefix", prefix.clone())),
    );
    if args.hydrate {
        query.push(("hydrate", "true".to_owned()));
        query.push(("topK", args.top_k.to_string()));
        query.push(("maxChars", args.max_chars.to_string()));
    }
    search::tell(remote.get(&["search"], &query)?, args.json);
    Ok(Exit::Completed)
}
