//! `flowstone jobs` against a server.

use flowstone_engine::codec;
use flowstone_engine::json::{items, name_text};
use flowstone_engine::ports::JobRow;
use flowstone_lang::value::Value as Language;
use serde_json::{Value, json};

use super::Remote;
use crate::cli::args::{
    JobsClaim, JobsCommand, JobsComplete, JobsFail, JobsList, JobsProgress, JobsShow,
};
use crate::cli::exit::Exit;
use crate::cli::jobs::{claim_table, list_table, print_end, print_job};
use crate::cli::report::Report;
use crate::cli::rows::job;
use crate::cli::{input, output};
use crate::json::{Values, ok};

/// How requests write values of flows.
pub(super) const EDN: &str = "edn";

pub(super) fn perform(remote: &Remote, command: &JobsCommand) -> Result<Exit, Report> {
    match command {
        JobsCommand::Claim(args) => claim(remote, args),
        JobsCommand::Complete(args) => complete(remote, args),
        JobsCommand::Fail(args) => fail(remote, args),
        JobsCommand::List(args) => list(remote, args),
        JobsCommand::Progress(args) => progress(remote, args),
        JobsCommand::Show(args) => show(remote, args),
    }
}

fn claim(remote: &Remote, args: &JobsClaim) -> Result<Exit, Report> {
    let millis = |duration: std::time::Duration| format!("{}ms", duration.as_millis());
    let body = json!({
        "types": args.types,
        "worker": args.worker,
        "max": args.max,
        "lease": millis(args.lease),
        "wait": millis(args.wait),
        "values": values(args.json),
    });
    let claimed = remote.post(&["jobs", "claim"], &body)?;
    if args.json {
        output::json(&ok(claimed));
        return Ok(Exit::Completed);
    }
    claim_table(&rows(&claimed));
    Ok(Exit::Completed)
}

fn rows(answer: &Value) -> Vec<JobRow> {
    let jobs = answer["jobs"].as_array().into_iter().flatten();
    jobs.map(job).collect()
}

fn progress(remote: &Remote, args: &JobsProgress) -> Result<Exit, Report> {
    let mut body = json!({"lease": args.lease, "values": EDN});
    if let Some(text) = &args.progress {
        body["progress"] = value(text, "--progress")?;
    }
    if let Some(extend) = args.extend {
        body["extend"] = json!(format!("{}ms", extend.as_millis()));
    }
    let extended = remote.post(&["jobs", &args.id, "progress"], &body)?;
    if args.json {
        // The member `ok` is the last one, as without a server.
        let mut shown = extended;
        shown["ok"] = json!(true);
        output::json(&shown);
        return Ok(Exit::Completed);
    }
    let until = extended["until"].as_str().unwrap_or_default();
    output::note(&format!("lease until {until}"));
    if extended["cancelRequested"] == true {
        output::note("the job was cancelled: stop, and end it with `flowstone jobs fail`");
    }
    Ok(Exit::Completed)
}

fn complete(remote: &Remote, args: &JobsComplete) -> Result<Exit, Report> {
    if let Some(file) = &args.many {
        let given = input::read_file(file)?;
        let body = json!({"jobs": ends(&given)?, "values": EDN});
        let ended = remote.post(&["jobs", "complete"], &body)?;
        return Ok(print_ended_jobs(ended, args.json));
    }
    let mut body = json!({"lease": args.lease, "values": EDN});
    if args.no_changes {
        body["status"] = json!("no_changes");
    }
    if let Some(text) = &args.result {
        body["result"] = value(text, "--result")?;
    }
    let id = args.id.as_deref().unwrap_or_default();
    let ended = remote.post(&["jobs", id, "complete"], &body)?;
    Ok(print_ended(&ended, args.json))
}

/// Reports jobs that were ended together.
fn print_ended_jobs(ended: Value, as_json: bool) -> Exit {
    let jobs = ended["jobs"].as_array().cloned().unwrap_or_default();
    let is_ok = jobs.iter().all(|job| job["error"].is_null());
    if as_json {
        output::json(&json!({"ok": is_ok, "jobs": jobs}));
    } else {
        for job in &jobs {
            let id = job["id"].as_str().unwrap_or_default();
            match job["status"].as_str() {
                Some(status) => output::data(&format!("{id}  {status}")),
                None => output::report(&super::refused(&job["error"])),
            }
        }
    }
    match is_ok {
        true => Exit::Completed,
        false => Exit::Failed,
    }
}

fn fail(remote: &Remote, args: &JobsFail) -> Result<Exit, Report> {
    let mut error = json!({"message": args.message});
    if let Some(kind) = &args.kind {
        error["kind"] = json!(kind);
    }
    if let Some(text) = &args.data {
        error["data"] = value(text, "--data")?;
    }
    let body = json!({
        "lease": args.lease, "error": error, "retry": !args.no_retry, "values": EDN,
    });
    let ended = remote.post(&["jobs", &args.id, "fail"], &body)?;
    Ok(print_ended(&ended, args.json))
}

fn print_ended(ended: &Value, as_json: bool) -> Exit {
    match as_json {
        true => output::json(&json!({"ok": true, "job": ended})),
        false => print_end(&job(ended)),
    }
    Exit::Completed
}

fn list(remote: &Remote, args: &JobsList) -> Result<Exit, Report> {
    let mut filters: Vec<(&str, String)> = vec![("values", values(args.json).to_owned())];
    let texts = [
        ("after", &args.after),
        ("batch", &args.batch),
        ("run", &args.run),
        ("type", &args.kind),
    ];
    for (name, text) in texts {
        filters.extend(text.iter().map(|text| (name, text.clone())));
    }
    let status = args.status.map(|status| status.name().to_owned());
    filters.extend(status.map(|status| ("status", status)));
    let (jobs, next) = remote.pages(&["jobs"], "jobs", &filters, args.limit)?;
    let next = jobs.last().filter(|_| next).map(|job| job["id"].clone());
    if args.json {
        output::json(&json!({"ok": true, "jobs": jobs, "next": next}));
        return Ok(Exit::Completed);
    }
    list_table(&jobs.iter().map(job).collect::<Vec<_>>());
    if let Some(next) = next.as_ref().and_then(Value::as_str) {
        output::note(&format!("there are more: --after {next}"));
    }
    Ok(Exit::Completed)
}

fn show(remote: &Remote, args: &JobsShow) -> Result<Exit, Report> {
    let query = [("values", values(args.json).to_owned())];
    let shown = remote.get(&["jobs", &args.id], &query)?;
    match args.json {
        true => output::json(&json!({"ok": true, "job": shown})),
        false => print_job(&job(&shown)),
    }
    Ok(Exit::Completed)
}

/// Returns the form of the values that a command prints.
pub(super) fn values(as_json: bool) -> &'static str {
    match as_json {
        true => Values::Json.name(),
        false => Values::Edn.name(),
    }
}

/// Reads a value of the command line as [`edn`].
pub(super) fn value(text: &str, option: &str) -> Result<Value, Report> {
    edn(&input::read(text, option)?, option)
}

/// Returns a value as the string that a request with `"values": "edn"` has for it.
pub(super) fn edn(value: &Language, option: &str) -> Result<Value, Report> {
    match codec::encode(value) {
        Ok(text) => Ok(json!(text)),
        Err(error) => Err(Report::error(
            error.code(),
            format!("the value of `{option}` cannot be sent: {error}"),
        )),
    }
}

/// Returns the entries of `--many`, each with its result as [`edn`].
fn ends(given: &Language) -> Result<Vec<Value>, Report> {
    let Some(entries) = items(given) else {
        return Err(Report::error("E0912", "`--many` takes a list of maps"));
    };
    let end = |entry: &Language| {
        let members = entry.as_map().into_iter().flat_map(|map| map.iter());
        let mut end = json!({});
        for (key, value) in members.filter(|(_, value)| !value.is_nil()) {
            let name = name_text(key).unwrap_or_default();
            end[name.as_str()] = match &*name {
                "result" => edn(value, "--many")?,
                _ => json!(name_text(value)),
            };
        }
        Ok(end)
    };
    entries.iter().map(end).collect()
}
