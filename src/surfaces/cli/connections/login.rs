//! `flowstone connections login` and `logout`.

use std::process::{Command, Stdio};

use flowstone_project::connections::{LoginNote, LoginOptions};
use serde_json::{Value as Json, json};

use crate::cli::args::{Bound, ConnectionsLogin, ConnectionsLogout, Home};
use crate::cli::exit::Exit;
use crate::cli::home::Project;
use crate::cli::report::Report;
use crate::cli::rows::maybe;
use crate::cli::runtime::Runtime;
use crate::cli::{App, Open, output};
use crate::json::login_json;

fn project(home: &Home, bound: &Bound) -> Project {
    Project {
        bindings: bound.bindings(),
        ..Project::find(home)
    }
}

pub(super) fn login(args: &ConnectionsLogin, app: &dyn App) -> Result<Exit, Report> {
    let project = project(&args.home, &args.bound);
    let options = LoginOptions {
        name: args.name.trim_start_matches(':').to_owned(),
        is_device: args.device,
        port: args.port.unwrap_or(0),
        limit: args.timeout,
    };
    let mut tell = |note: &LoginNote| show(note, args.open);
    let done = Runtime::start()?.block_on(async {
        let engine = app.open(&project, Open::OrMake)?;
        app.login(&engine, &project, &options, &mut tell).await
    })?;
    let login = login_json(&done);
    if args.json {
        output::json(&json!({"ok": true, "connection": options.name, "login": login}));
    } else {
        output::data(&format!("{}: {}\n", options.name, words(&login)));
    }
    Ok(Exit::Completed)
}

pub(super) fn logout(args: &ConnectionsLogout, app: &dyn App) -> Result<Exit, Report> {
    let project = project(&args.home, &args.bound);
    let name = args.name.trim_start_matches(':');
    let (was_there, is_ended) = Runtime::start()?.block_on(async {
        let engine = app.open(&project, Open::OrMake)?;
        app.logout(&engine, &project, name).await
    })?;
    if args.json {
        output::json(
            &json!({"ok": true, "connection": name, "loggedOut": was_there, "revoked": is_ended}),
        );
        return Ok(Exit::Completed);
    }
    output::data(&match (was_there, is_ended) {
        (false, _) => format!("{name}: nobody was logged in\n"),
        (true, true) => format!("{name}: logged out\n"),
        (true, false) => {
            format!("{name}: logged out here; the authorization server did not end the login\n")
        }
    });
    Ok(Exit::Completed)
}

/// Returns the state of a login in words.
pub(super) fn words(login: &Json) -> String {
    let until = maybe(login, "expiresAt");
    match (login["state"] == "logged-in", until) {
        (false, _) => "needs login".to_owned(),
        (true, None) => "logged in".to_owned(),
        (true, Some(until)) if login["renewed"] == true => {
            format!("logged in; token until {until}, then renewed")
        }
        (true, Some(until)) => format!("logged in until {until}"),
    }
}

/// Shows what the person has to do. The link is opened only where that is asked for.
fn show(note: &LoginNote, is_open: bool) {
    match note {
        LoginNote::Open(url) => {
            output::note("log in with a browser of this machine:");
            output::note(&format!("  {url}"));
            if is_open && !opened(url) {
                output::note("no browser could be started");
            }
        }
        LoginNote::Enter { url, code, whole } => {
            output::note(&format!(
                "open {url} on any machine, and enter the code {code}"
            ));
            if let Some(whole) = whole {
                output::note(&format!("or open {whole}"));
            }
        }
    }
}

/// Starts the browser of the system.
fn opened(url: &str) -> bool {
    let (program, args): (&str, &[&str]) = match std::env::consts::OS {
        "macos" => ("open", &[]),
        "windows" => ("rundll32", &["url.dll,FileProtocolHandler"]),
        _ => ("xdg-open", &[]),
    };
    let mut command = Command::new(program);
    command.args(args).arg(url);
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command.spawn().is_ok()
}
