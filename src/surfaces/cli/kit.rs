//! `flowstone kit`: the tools of the build kit on the command line.

use std::io::{self, IsTerminal as _, Read as _};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use flowstone_engine::catalog::Catalog;
use flowstone_engine::json::read_strictly;
use flowstone_engine::server_file;
use flowstone_engine::token::Token;
use flowstone_fronts::kit::CancelOnDrop;
use flowstone_fronts::kit::approval::{decide, find_approval, open_approvals};
use flowstone_fronts::kit::connecting::{self, Place};
use flowstone_fronts::kit::permission::{shown_arguments, visible};
use flowstone_fronts::kit::{
    Called, Decider, DoorPermissions, KitCode, KitError, Origin, Question,
};
use serde_json::{Value as Json, json};

use super::args::{Author, Kit};
use super::exit::Exit;
use super::home::Project;
use super::interrupt::Interrupt;
use super::outcome::of_engine_error;
use super::report::Report;
use super::runtime::Runtime;
use super::serve::listen::Behind;
use super::table::{Column, table};
use super::{App, Open, input, output};
use crate::http::EngineContext;
use crate::kit::{self, Agreed, KitDoor, Wanted};

/// The code of arguments that cannot be read.
const BAD_ARGUMENTS: &str = "E1510";
/// How often Ctrl-C is looked for.
const TICK: Duration = Duration::from_millis(50);

/// Performs the command.
pub fn run(args: &Kit, app: &'static dyn App) -> Exit {
    let done = match &*args.name {
        "list" => list(args, app),
        "approvals" => approvals(args, app),
        "approve" => decided(args, true, app),
        "connect" => connect(args, app),
        "deny" => decided(args, false, app),
        _ => call(args, app),
    };
    done.unwrap_or_else(|report| {
        output::failure(&report, args.json.is_some());
        match &*report.code {
            BAD_ARGUMENTS => Exit::Usage,
            _ => Exit::Failed,
        }
    })
}

pub(super) fn wrong(why: impl Into<String>) -> Report {
    Report::error(BAD_ARGUMENTS, why.into())
}

/// Opens the project for a question.
fn with_project<T>(
    args: &Kit,
    app: &'static dyn App,
    question: impl AsyncFnOnce(&EngineContext, &Token, &KitDoor) -> Result<T, Report>,
) -> Result<T, Report> {
    let permissions = DoorPermissions::read(&args.permissions, &args.enabled).map_err(wrong)?;
    let project = Project::find(&args.home);
    Runtime::start()?.block_on(async {
        let cx = EngineContext {
            engine: app.open(&project, Open::OrMake)?,
            catalog: Catalog::new(vec![project.root.join("flows")]),
            backend: Arc::new(Behind(app)),
        };
        let failed = |error| of_engine_error(&error);
        let text = cx.engine.owner_token().await.map_err(failed)?;
        let accepted = cx.engine.accept_token(&text.reveal()).await;
        let Ok(token) = accepted.map_err(failed)? else {
            return Err(Report::error("E1010", "the owner's token is not accepted"));
        };
        let door = KitDoor {
            slug: args.flow.clone(),
            permissions,
            origin: Origin {
                session: "terminal".to_owned(),
                is_test: kit::is_in_test(),
                base: server_file::running(&project.home),
                ..Origin::default()
            },
            is_for_model: true,
        };
        cx.catalog.follow(&cx.engine).await;
        question(&cx, &token, &door).await
    })
}

fn list(args: &Kit, app: &'static dyn App) -> Result<Exit, Report> {
    let tools = with_project(args, app, async |cx, token, door| {
        let tools = kit::tools(&cx.engine, (token, door));
        tools.map_err(|error| report(&error))
    })?;
    let tools: Vec<Json> = tools.iter().map(kit::OfferedTool::described).collect();
    let answer = json!({"count": tools.len(), "tools": tools});
    tell_tools(&answer, args.json.is_some());
    Ok(Exit::Completed)
}

/// Prints the tools of the kit.
pub(super) fn tell_tools(answer: &Json, as_json: bool) {
    if as_json {
        output::json(answer);
        return;
    }
    let columns = [
        Column::Whole("tool"),
        Column::Whole("permission"),
        Column::Whole("on"),
        Column::Cut("description"),
    ];
    let tools = answer["tools"].as_array().into_iter().flatten();
    let rows = tools.map(|tool| {
        let text = |key: &str| tool[key].as_str().unwrap_or_default().to_owned();
        let on = match tool["enabled"] == json!(true) {
            true => "yes",
            false => "no",
        };
        vec![
            text("name"),
            text("permission"),
            on.to_owned(),
            text("description"),
        ]
    });
    output::data(&table(&columns, rows));
}

fn report(error: &KitError) -> Report {
    let report = Report::error("E1511", error.message.clone());
    match &error.next_step {
        Some(step) => report.hint(step.clone()),
        None => report,
    }
}

fn approvals(args: &Kit, app: &'static dyn App) -> Result<Exit, Report> {
    let open = with_project(args, app, async |cx, _, _| {
        open_approvals(&cx.engine, &cx.catalog, &person())
            .await
            .map_err(|error| report(&error))
    })?;
    let answer = json!({"count": open.len(), "approvals": open});
    tell_approvals(&answer, args.json.is_some());
    Ok(Exit::Completed)
}

/// Prints the calls that wait for a person.
pub(super) fn tell_approvals(answer: &Json, as_json: bool) {
    if as_json {
        output::json(answer);
        return;
    }
    let open = answer["approvals"].as_array().cloned().unwrap_or_default();
    if open.is_empty() {
        output::note("no call of the build kit waits for a person");
        return;
    }
    let text = |row: &Json, key: &str| row[key].as_str().unwrap_or("-").to_owned();
    let columns = [
        Column::Whole("approval"),
        Column::Whole("tool"),
        Column::Whole("flow"),
        Column::Whole("asked by"),
        Column::Whole("until"),
        Column::Cut("arguments"),
    ];
    let rows = open.iter().map(|row| {
        let keys = ["id", "tool", "target", "asked_by", "expires_at"];
        let mut cells: Vec<String> = keys.iter().map(|key| text(row, key)).collect();
        cells.push(visible(&row["arguments"].to_string()));
        cells
    });
    output::data(&table(&columns, rows));
}

/// Returns the person at this terminal.
fn person() -> Decider {
    Decider {
        token: None,
        name: Author { name: None }.name(),
    }
}

/// Decides about a call that a program asked for. The person at the terminal is not the token that asked.
fn decided(args: &Kit, is_approved: bool, app: &'static dyn App) -> Result<Exit, Report> {
    let id = args.decided()?;
    let decider = person();
    let asked = with_project(args, app, async |cx, _, _| {
        let asked = find_approval(&cx.engine, &cx.catalog, id, &decider).await;
        asked.map_err(|error| report(&error))
    })?;
    // The agent gives the command to a person, who has to see what it allows.
    if is_approved && args.json.is_none() {
        output::note(&described(&asked));
        if is_terminal() && !args.yes && !confirms() {
            output::note(&format!("{id} is still open"));
            return Ok(Exit::Failed);
        }
    }
    let decided = with_project(args, app, async |cx, _, _| {
        let decided = decide(&cx.engine, &cx.catalog, (id, is_approved), &decider).await;
        decided.map_err(|error| report(&error))
    })?;
    tell_decision(&decided, id, args.json.is_some());
    Ok(Exit::Completed)
}

impl Kit {
    /// Returns the id of the approval to decide about.
    pub(super) fn decided(&self) -> Result<&str, Report> {
        self.approval.as_deref().ok_or_else(|| {
            wrong(format!(
                "`kit {}` takes the id of an approval; `flowstone kit approvals` lists them",
                self.name
            ))
        })
    }
}

/// Prints what a person decided about a call.
pub(super) fn tell_decision(decided: &Json, id: &str, as_json: bool) {
    match as_json {
        true => output::json(decided),
        false => output::note(&format!(
            "{id} is {}",
            decided["status"].as_str().unwrap_or_default()
        )),
    }
}

/// Takes the secret of a request for a connection, and writes it to `.env`.
fn connect(args: &Kit, app: &'static dyn App) -> Result<Exit, Report> {
    let Some(id) = &args.approval else {
        return Err(wrong(
            "`kit connect` takes the id of a request for a connection: see the answer of `request_connection`",
        ));
    };
    let asked = with_project(args, app, async |cx, _, _| {
        let asked = connecting::find(&cx.engine, id).await;
        asked.map_err(|error| report(&error))
    })?;
    let variable = match &asked.place {
        Place::Variable(variable) => variable.clone(),
        Place::Elsewhere(place) => {
            return Err(
                Report::error("E1511", "the settings keep this secret elsewhere")
                    .hint(format!("write it to {place}")),
            );
        }
    };
    if io::stdin().is_terminal() {
        output::note_part(&format!("The secret of `{}` ({variable}): ", asked.slug));
    }
    let mut secret = String::new();
    let read = io::stdin().read_line(&mut secret);
    read.map_err(|error| wrong(format!("standard input cannot be read: {error}")))?;
    with_project(args, app, async |cx, _, _| {
        let done = connecting::complete(&cx.engine, &asked, &secret).await;
        done.map_err(|error| report(&error))
    })?;
    let slug = &asked.slug;
    output::note(&format!("{variable} is set in `.env`"));
    if let Some(missing) = &asked.missing {
        output::note(&format!(
            "flowstone.edn does not describe `{slug}` yet; add: {missing}"
        ));
    }
    if args.json.is_some() {
        output::json(
            &json!({"slug": slug, "variable": variable, "isDescribed": asked.missing.is_none()}),
        );
    }
    Ok(Exit::Completed)
}

/// Calls a tool, and prints its answer or its error as an object.
fn call(args: &Kit, app: &'static dyn App) -> Result<Exit, Report> {
    Ok(match called(args, app)? {
        Ok(answer) => {
            output::json(&answer);
            Exit::Completed
        }
        Err(error) => {
            let error = error.to_json();
            output::json(&error);
            exit_of(&error)
        }
    })
}

/// Returns the exit code of an error of the kit, which may be that of a server.
pub(super) fn exit_of(error: &Json) -> Exit {
    let code = error["code"].as_str();
    let is = |known: &KitCode| code == Some(known.name());
    let usage = [
        KitCode::InvalidArguments,
        KitCode::UnknownTool,
        KitCode::BindingMissing,
    ];
    match (usage.iter().any(is), is(&KitCode::ApprovalRequired)) {
        (true, _) => Exit::Usage,
        (false, true) => Exit::Waiting,
        (false, false) => Exit::Failed,
    }
}

/// Calls a tool. A person at the terminal is asked where that is needed.
pub(super) fn called(args: &Kit, app: &'static dyn App) -> Result<Result<Json, KitError>, Report> {
    if args.approval.is_some() {
        return Err(wrong("arguments of a tool are given with `--json`"));
    }
    let arguments = match arguments(args.json.as_deref().unwrap_or("{}"))? {
        Ok(arguments) => arguments,
        Err(error) => return Ok(Err(error)),
    };
    with_project(args, app, async |cx, token, door| {
        let wanted = |agreed: Agreed| Wanted {
            name: args.name.clone(),
            arguments: arguments.clone(),
            agreed,
        };
        let first = match args.yes || is_terminal() {
            true => Agreed::Asks,
            false => Agreed::CannotAsk,
        };
        let called = perform(cx, (token, door), wanted(first)).await;
        let called = match called {
            Ok(Called::Ask(question)) if args.yes || agrees(&question) => {
                let agreed = Agreed::ToDigest(question.digest);
                match perform(cx, (token, door), wanted(agreed)).await {
                    // What the call would do changed while the person was asked.
                    Ok(Called::Ask(question)) => Err(KitError::not_agreed(question.tool, true)),
                    called => called,
                }
            }
            called => called,
        };
        Ok(match called {
            Ok(Called::Done(answer)) => Ok(answer),
            Ok(Called::Ask(question)) => Err(KitError::approval_denied(question.tool)),
            Err(error) => Err(error),
        })
    })
}

/// Performs a call. Ctrl-C cancels it.
async fn perform(
    cx: &EngineContext,
    by: (&Token, &KitDoor),
    wanted: Wanted,
) -> Result<Called, KitError> {
    let interrupt = Interrupt::listen();
    let (guard, cancelled) = CancelOnDrop::new();
    let mut called = std::pin::pin!(kit::call(cx, by, wanted, cancelled));
    loop {
        tokio::select! {
            called = &mut called => return called,
            () = tokio::time::sleep(TICK) => {
                if interrupt.is_set() {
                    guard.cancel();
                }
            }
        }
    }
}

/// Reads the arguments of a tool. Text that is not JSON is an error of the kit.
pub(super) fn arguments(given: &str) -> Result<Result<Json, KitError>, Report> {
    let text = match (given, given.strip_prefix('@')) {
        ("-", _) => {
            let mut text = String::new();
            let read = io::stdin().read_to_string(&mut text);
            read.map_err(|error| wrong(format!("standard input cannot be read: {error}")))?;
            text
        }
        (_, Some(file)) => input::text(Path::new(file))?,
        (given, None) => given.to_owned(),
    };
    Ok(read_strictly(&text).map_err(|error| {
        let message = format!("the arguments are not JSON: {error}");
        KitError::invalid("", "a JSON object", message)
    }))
}

fn is_terminal() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Asks the person at the terminal.
fn agrees(question: &Question) -> bool {
    output::note(&question.text());
    confirms()
}

/// Describes an approval to the person who decides about it.
fn described(asked: &Json) -> String {
    let text = |key: &str| asked[key].as_str().unwrap_or("-");
    let note = asked["note"].as_str().map(|note| format!("{note}\n"));
    format!(
        "`{}` on the flow `{}`, asked for by {}\n{}{}",
        text("tool"),
        text("target"),
        text("asked_by"),
        note.unwrap_or_default(),
        shown_arguments(&asked["arguments"])
    )
}

fn confirms() -> bool {
    output::note_part("Allow it? [y/N] ");
    let mut line = String::new();
    let read = io::stdin().read_line(&mut line).is_ok();
    read && matches!(line.trim(), "y" | "Y" | "yes")
}
