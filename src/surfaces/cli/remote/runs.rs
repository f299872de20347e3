//! `flowstone runs` against a server.

use std::path::Path;
use std::thread;

use flowstone_engine::SystemClock;
use flowstone_engine::codec;
use flowstone_engine::ids::RunId;
use flowstone_engine::ports::{Clock as _, RunOrder, RunStatus};
use serde_json::{Value, json};

use super::{PAGE, Remote, ServerOptions, commands, local_only, records, watch};
use crate::cli::args::{
    INTERRUPTED, RunsCancel, RunsCommand, RunsDiff, RunsEvents, RunsList, RunsShow, Status,
};
use crate::cli::exit::Exit;
use crate::cli::interrupt::Interrupt;
use crate::cli::output;
use crate::cli::report::Report;
use crate::cli::rows::{list as listed, text};
use crate::cli::runs::url::RunsUrl;
use crate::cli::runs::{RunTable, diff as differences, events as entries, show as one};

/// Performs a command about runs; tells whether it prints JSON.
pub(super) fn perform(
    command: &RunsCommand,
    address: &str,
    options: &ServerOptions,
) -> (bool, Result<Exit, Report>) {
    let (home, as_json) = place(command);
    let remote = || commands::open(address, options, home);
    let done = match command {
        RunsCommand::Cancel(args) => remote().and_then(|remote| cancel(&remote, args)),
        RunsCommand::Diff(args) => remote().and_then(|remote| diff(&remote, args)),
        RunsCommand::Events(args) => remote().and_then(|remote| events(&remote, args)),
        RunsCommand::Export(args) => remote().and_then(|remote| records::export(&remote, args)),
        RunsCommand::Feed(args) => remote().and_then(|remote| records::feed(&remote, args)),
        RunsCommand::Fork(args) => remote().and_then(|remote| super::run::fork(&remote, args)),
        RunsCommand::List(args) => remote().and_then(|remote| list(&remote, args)),
        RunsCommand::Resume(args) => remote().and_then(|remote| super::run::resume(&remote, args)),
        RunsCommand::Show(args) => remote().and_then(|remote| show(&remote, args)),
        RunsCommand::Spans(args) => remote().and_then(|remote| records::spans(&remote, args)),
        RunsCommand::Url(args) => remote().and_then(|remote| url(&remote, args)),
        RunsCommand::Watch(args) => remote().and_then(|remote| watch::watch(&remote, args)),
        RunsCommand::Gc(_) => Err(local_only("`runs gc`")),
        RunsCommand::Import(_) => Err(local_only("`runs import`")),
        RunsCommand::Replay(_) => Err(local_only("`runs replay`")),
        RunsCommand::Verify(_) => Err(local_only("`runs verify`")),
    };
    (as_json, done)
}

/// Returns the home folder of a command, and whether it prints JSON.
fn place(command: &RunsCommand) -> (Option<&Path>, bool) {
    let (home, as_json) = match command {
        RunsCommand::Cancel(args) => (&args.home, args.json),
        RunsCommand::Diff(args) => (&args.home, args.json),
        RunsCommand::Events(args) => (&args.home, args.json),
        RunsCommand::Export(args) => (&args.home, args.json),
        RunsCommand::Feed(args) => (&args.home, args.json),
        RunsCommand::Fork(args) => (&args.home, args.show.json),
        RunsCommand::Gc(args) => (&args.home, args.json),
        RunsCommand::Import(args) => (&args.home, args.json),
        RunsCommand::List(args) => (&args.home, args.json),
        RunsCommand::Replay(args) => (&args.home, args.json),
        RunsCommand::Resume(args) => (&args.home, args.show.json),
        RunsCommand::Show(args) => (&args.home, args.json),
        RunsCommand::Spans(args) => (&args.home, args.json),
        RunsCommand::Url(args) => (&args.home, args.json),
        RunsCommand::Verify(args) => (&args.home, args.json),
        RunsCommand::Watch(args) => (&args.home, false),
    };
    (home.home.as_deref(), as_json)
}

fn url(remote: &Remote, args: &RunsUrl) -> Result<Exit, Report> {
    let made = remote.post(&["runs", &args.id, "url"], &json!({"ttl": args.ttl}))?;
    Ok(commands::link(made, args.json))
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
    let query = [
        ("all", args.all.to_string()),
        ("values", differences::values(args).name().to_owned()),
    ];
    let diff = remote.get(&["runs", &args.a, "diff", &args.b], &query)?;
    Ok(differences::tell(diff, args))
}

/// Prints the journal. With `--follow`, polls for more until the run ends.
fn events(remote: &Remote, args: &RunsEvents) -> Result<Exit, Report> {
    let interrupt = args.follow.then(Interrupt::listen);
    let mut after = args.after;
    loop {
        // The row is read first, so that the pages contain all entries from before the end of the run.
        let run = match args.follow {
            true => remote.get(&["runs", &args.id], &[])?,
            false => Value::Null,
        };
        after = pages(remote, args, after)?;
        if !args.follow {
            return Ok(Exit::Completed);
        }
        let status = text(&run, "status");
        if RunStatus::from_name(&status).is_some_and(RunStatus::is_final) {
            entries::end(&status, &run["endedAt"], args.json);
            return Ok(Exit::Completed);
        }
        if interrupt.as_ref().is_some_and(Interrupt::is_set) {
            return Ok(Exit::Interrupted);
        }
        thread::sleep(entries::LOOK_EVERY);
    }
}

/// Prints the entries after a position, and returns the position of the last one.
fn pages(remote: &Remote, args: &RunsEvents, mut after: i64) -> Result<i64, Report> {
    loop {
        let query = [
            ("after", after.to_string()),
            ("limit", PAGE.to_string()),
            ("values", entries::values(args.json).name().to_owned()),
        ];
        let page = remote.get(&["runs", &args.id, "journal"], &query)?;
        for entry in listed(&page, "entries") {
            after = entry["seq"].as_i64().unwrap_or(after);
            entries::print(entry, args.json);
        }
        match page["next"].as_i64() {
            Some(next) => after = next,
            None => return Ok(after),
        }
    }
}

fn show(remote: &Remote, args: &RunsShow) -> Result<Exit, Report> {
    let query = [
        match &args.step {
            Some(step) => ("step", step.clone()),
            None => ("full", "true".to_owned()),
        },
        ("values", one::values(args).name().to_owned()),
    ];
    one::tell(remote.get(&["runs", &args.id], &query)?, args);
    Ok(Exit::Completed)
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
