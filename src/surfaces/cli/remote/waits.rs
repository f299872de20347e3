//! `flowstone waits` against a server. The server continues the runs that are answered.

use flowstone_engine::ports::WaitRow;
use serde_json::{Value, json};

use super::jobs::{EDN, value, values};
use super::{Remote, local_only};
use crate::cli::args::{
    Answer, WaitsApprove, WaitsCancel, WaitsCommand, WaitsComplete, WaitsEvent, WaitsList,
    WaitsReject, WaitsShow, WaitsSignal,
};
use crate::cli::exit::Exit;
use crate::cli::output;
use crate::cli::report::Report;
use crate::cli::rows::{self, wait};
use crate::cli::waits::{list_signals, list_table, print_wait};
use crate::json::ok;

pub(super) fn perform(remote: &Remote, command: &WaitsCommand) -> Result<Exit, Report> {
    match command {
        WaitsCommand::Approve(args) => approve(remote, args),
        WaitsCommand::Cancel(args) => cancel(remote, args),
        WaitsCommand::Complete(args) => complete(remote, args),
        WaitsCommand::Event(args) => event(remote, args),
        WaitsCommand::List(args) => list(remote, args),
        WaitsCommand::Reject(args) => reject(remote, args),
        WaitsCommand::Show(args) => show(remote, args),
        WaitsCommand::Signal(args) => signal(remote, args),
    }
}

fn list(remote: &Remote, args: &WaitsList) -> Result<Exit, Report> {
    if args.signals {
        let mut query = vec![("values", values(args.json).to_owned())];
        query.extend(args.key.iter().map(|key| ("key", key.clone())));
        let answer = remote.get(&["signals"], &query)?;
        let signals: Vec<Value> = rows::list(&answer, "signals").cloned().collect();
        list_signals(&signals, args.json);
        return Ok(Exit::Completed);
    }
    let mut filters: Vec<(&str, String)> = vec![("values", values(args.json).to_owned())];
    for (name, text) in [("flow", &args.flow), ("key", &args.key), ("run", &args.run)] {
        filters.extend(text.iter().map(|text| (name, text.clone())));
    }
    if args.all {
        filters.push(("state", "all".to_owned()));
    }
    let (waits, _) = remote.pages(&["waits"], "waits", &filters, 0)?;
    if args.json {
        output::json(&json!({"ok": true, "waits": waits}));
        return Ok(Exit::Completed);
    }
    let waits: Vec<WaitRow> = waits.iter().map(wait).collect();
    list_table(&waits, args.all);
    Ok(Exit::Completed)
}

/// Returns the id of the open wait that has this key, or of the last one if none is open, or else the text itself. The API
/// takes only complete ids. A token that may not list waits must name them by their ids.
fn whole_id(remote: &Remote, typed: &str) -> String {
    let of_key = |state: &str| {
        let filters = [("key", typed.to_owned()), ("state", state.to_owned())];
        let found = remote.pages(&["waits"], "waits", &filters, 0);
        found.map_or_else(|_| Vec::new(), |(waits, _)| waits)
    };
    let open = of_key("open");
    let found = match &open[..] {
        [] => of_key("all").pop(),
        [wait] => Some(wait.clone()),
        [_, _, ..] => None,
    };
    let id = found.and_then(|wait| wait["id"].as_str().map(str::to_owned));
    id.unwrap_or_else(|| typed.to_owned())
}

fn show(remote: &Remote, args: &WaitsShow) -> Result<Exit, Report> {
    if !args.roles.is_empty() {
        return Err(local_only("`waits show --role`"));
    }
    let query = [("values", values(args.json).to_owned())];
    let shown = remote.get(&["waits", &whole_id(remote, &args.id)], &query)?;
    match args.json {
        true => output::json(&ok(shown)),
        false => print_wait(wait(&shown)),
    }
    Ok(Exit::Completed)
}

fn approve(remote: &Remote, args: &WaitsApprove) -> Result<Exit, Report> {
    let mut body = json!({"comment": args.comment, "digest": args.digest, "values": EDN});
    if let Some(text) = &args.value {
        body["value"] = value(text, "--value")?;
    }
    decide(remote, &args.answer, (&args.id, "approve"), &body)
}

fn reject(remote: &Remote, args: &WaitsReject) -> Result<Exit, Report> {
    let body = json!({"reason": args.reason, "digest": args.digest});
    decide(remote, &args.answer, (&args.id, "reject"), &body)
}

fn cancel(remote: &Remote, args: &WaitsCancel) -> Result<Exit, Report> {
    let body = json!({"reason": args.reason});
    decide(remote, &args.answer, (&args.id, "cancel"), &body)
}

fn complete(remote: &Remote, args: &WaitsComplete) -> Result<Exit, Report> {
    if args.keep {
        let body = json!({"key": args.id, "value": value(&args.value, "--value")?, "dedup": args.dedup, "values": EDN});
        return send(remote, &args.answer, "signals", &body);
    }
    let body = json!({
        "value": value(&args.value, "--value")?,
        "dedup": args.dedup,
        "digest": args.digest,
        "values": EDN,
    });
    decide(remote, &args.answer, (&args.id, "complete"), &body)
}

fn signal(remote: &Remote, args: &WaitsSignal) -> Result<Exit, Report> {
    let body = json!({"key": args.key, "value": value(&args.value, "--value")?, "dedup": args.dedup, "values": EDN});
    send(remote, &args.answer, "signals", &body)
}

fn event(remote: &Remote, args: &WaitsEvent) -> Result<Exit, Report> {
    let body = json!({
        "name": args.name,
        "key": args.key,
        "payload": value(&args.value, "--value")?,
        "dedup": args.dedup,
        "values": EDN,
    });
    send(remote, &args.answer, "events", &body)
}

/// Refuses options that need the project's own stores: on a server, the token determines who answers.
fn check(args: &Answer) -> Result<(), Report> {
    match (&args.caller, args.roles.is_empty(), args.no_resume) {
        (Some(_), ..) => Err(local_only("`--as`")),
        (None, false, _) => Err(local_only("`--role`")),
        (None, true, true) => Err(local_only("`--no-resume`")),
        (None, true, false) => super::run::plain(&args.limits, &args.permits),
    }
}

fn decide(
    remote: &Remote,
    args: &Answer,
    (id, decision): (&str, &str),
    body: &Value,
) -> Result<Exit, Report> {
    check(args)?;
    let id = whole_id(remote, id);
    let decided = remote.post(&["waits", &id, decision], &without_nulls(body))?;
    let run = decided["run"]["id"].as_str().unwrap_or_default();
    print_result(
        args,
        &format!("answered; the server continues the run {run}"),
        &[run],
    );
    Ok(Exit::Completed)
}

fn send(remote: &Remote, args: &Answer, what: &str, body: &Value) -> Result<Exit, Report> {
    check(args)?;
    let sent = remote.post(&[what], &without_nulls(body))?;
    let runs = sent["completed"].as_array().or(sent["runs"].as_array());
    let runs: Vec<&str> = runs
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    for refused in sent["refused"].as_array().into_iter().flatten() {
        let [wait, reason] = ["wait", "reason"].map(|name| refused[name].as_str());
        let (wait, reason) = (wait.unwrap_or_default(), reason.unwrap_or_default());
        output::note(&format!("{wait} stays open: {reason}"));
    }
    if sent["kept"] == true {
        print_result(args, "no wait is open for it yet; it is kept", &[]);
    } else if sent["deduped"] == true {
        print_result(args, "it was delivered before; nothing was done", &[]);
    } else {
        let named = runs.join(" ");
        print_result(
            args,
            &format!("answered; the server continues {named}"),
            &runs,
        );
    }
    Ok(Exit::Completed)
}

fn print_result(args: &Answer, message: &str, runs: &[&str]) {
    if args.show.json {
        output::json(&json!({"ok": true, "message": message, "runs": runs}));
    } else if !args.show.quiet {
        output::note(message);
    }
}

fn without_nulls(body: &Value) -> Value {
    let members = body.as_object().into_iter().flatten();
    let given = members.filter(|(_, value)| !value.is_null());
    given
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect::<serde_json::Map<_, _>>()
        .into()
}
