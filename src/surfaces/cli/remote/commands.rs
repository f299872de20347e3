//! The commands that can ask a server. Each prints what it prints without one.

use std::path::Path;

use flowstone_engine::SystemClock;
use flowstone_engine::codec;
use flowstone_engine::ids::RunId;
use flowstone_engine::ports::{Clock as _, RunOrder};
use serde_json::{Value, json};

use super::{
    PAGE, Remote, ServerOptions, failed, jobs, json_only, local_only, resources, run, tokens, waits,
};
use crate::cli::args::{
    Command, INTERRUPTED, JobsCommand, Resources, ResourcesCommand, ResourcesList, ResourcesUrl,
    Runs, RunsCancel, RunsCommand, RunsDiff, RunsEvents, RunsList, RunsShow, SchedulesCommand,
    Search, Status, WaitsCommand,
};
use crate::cli::exit::Exit;
use crate::cli::output;
use crate::cli::report::Report;
use crate::cli::runs::RunTable;
use crate::cli::tokens::TokensCommand;
use crate::json::ok;

/// Performs a command on a server. `None`: the command has nothing to do with a project's stores, and is performed here.
pub fn perform(command: &Command, address: &str, options: &ServerOptions) -> Option<Exit> {
    let is_explicit = options.server.is_some();
    let (as_json, done) = match command {
        Command::Check(_)
        | Command::Completions(_)
        | Command::Eval(_)
        | Command::Flows(_)
        | Command::Key(_)
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
        Command::Runs(Runs { command }) => runs(command, address, options),
        Command::Schedules(args) => match &args.command {
            SchedulesCommand::List(args) => (
                args.json,
                open(address, options, args.home.home.as_deref()).and_then(|remote| {
                    let answer = remote.get(&["schedules"], &[])?;
                    printed(answer, args.json, "`schedules list`")
                }),
            ),
            SchedulesCommand::Run(args) => (
                args.show.json,
                open(address, options, args.home.home.as_deref())
                    .and_then(|remote| run::schedule(&remote, args)),
            ),
        },
        Command::Resources(Resources { command }) => of_resources(command, address, options),
        Command::Jobs(args) => {
            let (home, as_json) = of_jobs(&args.command);
            let remote = open(address, options, home);
            (
                as_json,
                remote.and_then(|remote| jobs::perform(&remote, &args.command)),
            )
        }
        Command::Run(args) => {
            let remote = open(address, options, args.home.home.as_deref());
            (
                args.show.json,
                remote.and_then(|remote| run::run(&remote, args)),
            )
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
                .and_then(|remote| search(&remote, args)),
        ),
        _ => (false, Err(local_only("this command"))),
    };
    Some(done.unwrap_or_else(|report| failed(&report, as_json)))
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
        _ => (false, Err(local_only("this command of `resources`"))),
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

fn open(address: &str, options: &ServerOptions, home: Option<&Path>) -> Result<Remote, Report> {
    Remote::open(address, options, home)
}

fn runs(
    command: &RunsCommand,
    address: &str,
    options: &ServerOptions,
) -> (bool, Result<Exit, Report>) {
    let remote = |home: Option<&Path>| open(address, options, home);
    match command {
        RunsCommand::Cancel(args) => {
            let remote = remote(args.home.home.as_deref());
            (args.json, remote.and_then(|remote| cancel(&remote, args)))
        }
        RunsCommand::Diff(args) => {
            let remote = remote(args.home.home.as_deref());
            (args.json, remote.and_then(|remote| diff(&remote, args)))
        }
        RunsCommand::Events(args) => {
            let remote = remote(args.home.home.as_deref());
            (args.json, remote.and_then(|remote| events(&remote, args)))
        }
        RunsCommand::List(args) => {
            let remote = remote(args.home.home.as_deref());
            (args.json, remote.and_then(|remote| list(&remote, args)))
        }
        RunsCommand::Show(args) => {
            let remote = remote(args.home.home.as_deref());
            (args.json, remote.and_then(|remote| show(&remote, args)))
        }
        RunsCommand::Url(args) => {
            let remote = remote(args.home.home.as_deref());
            let made = remote.and_then(|remote| {
                remote.post(&["runs", &args.id, "url"], &json!({"ttl": args.ttl}))
            });
            (args.json, made.map(|made| link(made, args.json)))
        }
        RunsCommand::Fork(args) => {
            let remote = remote(args.home.home.as_deref());
            (
                args.show.json,
                remote.and_then(|remote| run::fork(&remote, args)),
            )
        }
        RunsCommand::Resume(args) => {
            let remote = remote(args.home.home.as_deref());
            (
                args.show.json,
                remote.and_then(|remote| run::resume(&remote, args)),
            )
        }
        _ => (false, Err(local_only("this command of `runs`"))),
    }
}

/// Prints an answer as the command does with `--json`.
fn printed(answer: Value, as_json: bool, what: &str) -> Result<Exit, Report> {
    if !as_json {
        return Err(json_only(what));
    }
    output::json(&ok(answer));
    Ok(Exit::Completed)
}

fn cancel(remote: &Remote, args: &RunsCancel) -> Result<Exit, Report> {
    let mut body = json!({"force": args.force});
    if let Some(reason) = &args.reason {
        body["reason"] = json!(reason);
    }
    let run = remote.post(&["runs", &args.id, "cancel"], &body)?;
    let run = run["id"].as_str().unwrap_or(&args.id);
    let words = match args.force {
        true => "terminated",
        false => "cancellation requested; another process executes it",
    };
    if args.json {
        output::json(&json!({"ok": true, "run": run, "status": words}));
    } else {
        output::note(&format!("run {run} is {words}"));
    }
    Ok(Exit::Completed)
}

fn diff(remote: &Remote, args: &RunsDiff) -> Result<Exit, Report> {
    if !args.json {
        return Err(json_only("`runs diff`"));
    }
    let query = [("all", args.all.to_string())];
    let diff = remote.get(&["runs", &args.a, "diff", &args.b], &query)?;
    let is_same = diff["same"] == json!(true);
    output::json(&ok(diff));
    Ok(match is_same {
        true => Exit::Completed,
        false => Exit::Failed,
    })
}

fn events(remote: &Remote, args: &RunsEvents) -> Result<Exit, Report> {
    if !args.json {
        return Err(json_only("`runs events`"));
    }
    if args.follow {
        return Err(local_only("`runs events --follow`"));
    }
    let mut after = args.after;
    loop {
        let query = [("after", after.to_string()), ("limit", PAGE.to_string())];
        let page = remote.get(&["runs", &args.id, "journal"], &query)?;
        for entry in page["entries"].as_array().into_iter().flatten() {
            output::json_line(entry);
        }
        match page["next"].as_i64() {
            Some(next) => after = next,
            None => return Ok(Exit::Completed),
        }
    }
}

fn show(remote: &Remote, args: &RunsShow) -> Result<Exit, Report> {
    let query = match &args.step {
        Some(step) => ("step", step.clone()),
        None => ("full", "true".to_owned()),
    };
    if !args.json {
        return Err(json_only("`runs show`"));
    }
    let run = remote.get(&["runs", &args.id], &[query])?;
    printed(run, args.json, "`runs show`")
}

fn list(remote: &Remote, args: &RunsList) -> Result<Exit, Report> {
    let mut filters: Vec<(&str, String)> = Vec::new();
    let texts = [
        ("before", &args.before),
        ("flow", &args.flow),
        ("key", &args.key),
        ("parent", &args.parent),
        ("startedBy", &args.started_by),
        ("text", &args.text),
    ];
    for (name, text) in texts {
        filters.extend(text.iter().map(|text| (name, text.clone())));
    }
    for (name, at) in [("since", args.since), ("until", args.until)] {
        filters.extend(at.map(|at| (name, codec::instant(at))));
    }
    let statuses = args.status.iter().map(|status| match status {
        Status::Stored(status) => status.name(),
        Status::Interrupted => INTERRUPTED,
    });
    let statuses: Vec<&str> = statuses.collect();
    if !statuses.is_empty() {
        filters.push(("status", statuses.join(",")));
    }
    if args.sort != RunOrder::default() {
        let names = RunOrder::NAMES.iter();
        let named = names.filter(|(order, _)| *order == args.sort);
        filters.extend(named.map(|(_, name)| ("sort", (*name).to_owned())));
    }
    if args.full {
        filters.push(("full", "true".to_owned()));
    }
    let mut table = RunTable::new(args, SystemClock.now_ms());
    let mut cursor: Option<String> = None;
    loop {
        let left = match args.limit {
            0 => PAGE,
            limit => (limit - table.count()).min(PAGE),
        };
        let mut query = filters.clone();
        query.push(("limit", left.to_string()));
        query.extend(cursor.take().map(|cursor| ("cursor", cursor)));
        let page = remote.get(&["runs"], &query)?;
        let runs: Vec<Value> = page["runs"].as_array().cloned().unwrap_or_default();
        let last = runs.last().and_then(|run| run["id"].as_str());
        table.add(&runs, last.map(RunId::from_text));
        cursor = page["next"].as_str().map(str::to_owned);
        if cursor.is_none() || (args.limit > 0 && table.count() >= args.limit) {
            break;
        }
    }
    table.end();
    Ok(Exit::Completed)
}

fn list_resources(remote: &Remote, args: &ResourcesList) -> Result<Exit, Report> {
    if !args.output.json {
        return Err(json_only("`resources list`"));
    }
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
    printed(
        remote.get(&["resources"], &query)?,
        true,
        "`resources list`",
    )
}

fn url(remote: &Remote, args: &ResourcesUrl) -> Result<Exit, Report> {
    if args.check {
        return Err(local_only("`resources url --check`"));
    }
    let body = json!({"uri": args.uri, "ttl": args.ttl});
    let made = remote.post(&["resources", "url"], &body)?;
    Ok(link(made, args.output.json))
}

/// Prints a link that was made.
fn link(made: Value, as_json: bool) -> Exit {
    match as_json {
        true => output::json(&ok(made)),
        false => output::data(made["url"].as_str().unwrap_or_default()),
    }
    Exit::Completed
}

fn search(remote: &Remote, args: &Search) -> Result<Exit, Report> {
    if !args.json {
        return Err(json_only("`search`"));
    }
    if args.storage_backend.is_some() || args.storage_root.is_some() {
        return Err(local_only("`search` in a storage of its own"));
    }
    let mut query = vec![
        ("q", args.query.join(" ")),
        ("limit", args.limit.to_string()),
    ];
    let targets: Vec<&str> = args.targets.iter().map(|target| target.name()).collect();
    if !targets.is_empty() {
        query.push(("targets", targets.join(",")));
    }
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
    printed(remote.get(&["search"], &query)?, true, "`search`")
}
