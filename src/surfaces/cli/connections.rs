//! `flowstone connections`: lists connections, tests them, and shows the prices of models.

mod login;

use std::path::{Path, PathBuf};
use std::rc::Rc;

use flowstone_engine::Engine;
use flowstone_engine::diagnostic::nearest;
use flowstone_flow::flow::Flow;
use flowstone_lang::value::Value;
use flowstone_project::connections::{ConnectionReport, PriceReport, Verdict};
use serde_json::{Value as Json, json};

use super::args::{
    Bound, Connections, ConnectionsCommand, ConnectionsList, ConnectionsPrices, ConnectionsTest,
    Home,
};
use super::exit::Exit;
use super::home::Project;
use super::report::Report;
use super::rows::{list as list_of, maybe, text};
use super::run::load_file;
use super::runtime::Runtime;
use super::table::{Column, table};
use super::{App, Open, output};
use crate::json::{connection_json, connection_test_json};

/// Performs the command.
pub fn run(args: &Connections, app: &dyn App) -> Exit {
    let (done, as_json) = match &args.command {
        ConnectionsCommand::List(args) => (list(args, app), args.json),
        ConnectionsCommand::Login(args) => (login::login(args, app), args.json),
        ConnectionsCommand::Logout(args) => (login::logout(args, app), args.json),
        ConnectionsCommand::Prices(args) => (prices(args, app), args.json),
        ConnectionsCommand::Test(args) => (test(args, app), args.json),
    };
    done.unwrap_or_else(|report| {
        output::failure(&report, as_json);
        Exit::Failed
    })
}

/// An opened project with its connections.
struct OpenProject {
    engine: Engine,
    flows: Vec<Rc<Flow>>,
}

async fn open_project(
    app: &dyn App,
    (home, bound): (&Home, &Bound),
    files: &[PathBuf],
) -> Result<OpenProject, Report> {
    let project = Project {
        bindings: bound.bindings(),
        ..Project::find(home)
    };
    let engine = app.open(&project, Open::OrMake)?;
    let mut flows = Vec::new();
    for file in files {
        flows.push(load_file(&engine, file, true)?.flow);
    }
    if files.is_empty() {
        let found = engine.flow_files();
        flows.extend(found.iter().filter_map(|file| readable(&engine, file)));
    }
    Ok(OpenProject { engine, flows })
}

/// Returns the flow in a file of the project, if it is valid; `check` reports the problems of the others.
fn readable(engine: &Engine, file: &Path) -> Option<Rc<Flow>> {
    let session = engine.session();
    let checked = engine.check(&session, file, &file.display().to_string());
    checked.loaded.map(|loaded| loaded.flow)
}

fn reports(app: &dyn App, opened: &OpenProject) -> Vec<ConnectionReport> {
    let flows: Vec<&Flow> = opened.flows.iter().map(|flow| &**flow).collect();
    app.connections(&opened.engine, &flows)
}

fn list(args: &ConnectionsList, app: &dyn App) -> Result<Exit, Report> {
    let reports = Runtime::start()?.block_on(async {
        let opened = open_project(app, (&args.home, &args.bound), &args.flows).await?;
        Ok::<_, Report>(reports(app, &opened))
    })?;
    tell_list(reports.iter().map(connection_json).collect(), args.json);
    Ok(Exit::Completed)
}

/// Prints connections, in the form of the API.
pub fn tell_list(connections: Vec<Json>, as_json: bool) {
    if as_json {
        output::json(&json!({"ok": true, "connections": connections}));
    } else if connections.is_empty() {
        output::note(
            "there are no connections; describe one in flowstone.edn, or set the key of a model provider such as OPENAI_API_KEY",
        );
    } else {
        let columns = [
            Column::Whole("name"),
            Column::Extra("of"),
            Column::Cut("type"),
            Column::Cut("leads to"),
            Column::Cut("secret"),
            Column::Whole("is set"),
        ];
        output::data(&table(&columns, connections.iter().map(cells)));
        let needed = connections.iter().filter(|it| it["optional"] != true);
        for connection in needed {
            if let Some(problem) = maybe(connection, "problem") {
                output::note(&format!("{}: {problem}", text(connection, "name")));
            }
        }
    }
}

fn cells(connection: &Json) -> Vec<String> {
    let or_none = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    let kind = match maybe(connection, "backend") {
        Some(backend) => format!("{} {backend}", text(connection, "type")),
        None => text(connection, "type"),
    };
    let base = or_none(maybe(connection, "baseUrl"));
    let secret = &connection["secret"];
    let login = &connection["login"];
    vec![
        text(connection, "name"),
        text(connection, "source"),
        kind,
        match maybe(connection, "boundTo") {
            Some(bound) => format!("{bound} ({base})"),
            None => base,
        },
        match login.is_null() {
            true => or_none(maybe(secret, "place")),
            false => login::words(login),
        },
        match (secret["isSet"] == true, secret.is_null() && login.is_null()) {
            (_, true) => "-",
            (true, _) => "yes",
            (false, _) if login["state"] == "logged-in" => "yes",
            (false, _) => "no",
        }
        .to_owned(),
    ]
}

fn test(args: &ConnectionsTest, app: &dyn App) -> Result<Exit, Report> {
    let tests = Runtime::start()?.block_on(async {
        let opened = open_project(app, (&args.home, &args.bound), &args.flows).await?;
        let reports = chosen(reports(app, &opened), args.name.as_deref())?;
        let bare = Rc::new(Flow::bare("none", Value::Nil));
        let mut tests = Vec::new();
        for report in &reports {
            let flow = opened
                .flows
                .iter()
                .find(|flow| *flow.slug == *report.source);
            let test = app.try_connection(&opened.engine, flow.unwrap_or(&bare), report);
            let test = connection_test_json(&test.await);
            if !args.json {
                tell_test(&test);
            }
            tests.push(test);
        }
        Ok::<_, Report>(tests)
    })?;
    Ok(end_tests(&tests, args.json))
}

/// Prints a test, in the form of the API.
pub fn tell_test(test: &Json) {
    output::data(&line(test));
    let hints = list_of(test, "hints").filter_map(Json::as_str);
    hints.for_each(|hint| output::note(&format!("  hint: {hint}")));
}

/// Ends the output about tests.
pub fn end_tests(tests: &[Json], as_json: bool) -> Exit {
    let is_well = tests
        .iter()
        .all(|test| test["verdict"] != Verdict::Fails.name());
    if as_json {
        output::json(&json!({"ok": is_well, "connections": tests}));
    } else if tests.is_empty() {
        output::note("there are no connections to try");
    }
    match is_well {
        true => Exit::Completed,
        false => Exit::Failed,
    }
}

/// Returns the connections with a name, or all.
fn chosen(all: Vec<ConnectionReport>, name: Option<&str>) -> Result<Vec<ConnectionReport>, Report> {
    let Some(name) = name.map(|name| name.trim_start_matches(':')) else {
        return Ok(all);
    };
    let names: Vec<String> = all.iter().map(|it| it.name.clone()).collect();
    let chosen: Vec<_> = all.into_iter().filter(|it| it.name == name).collect();
    if !chosen.is_empty() {
        return Ok(chosen);
    }
    let report = Report::error("E0951", format!("there is no connection `{name}`"));
    Err(match nearest(name, names.iter().map(String::as_str)) {
        Some(near) => report.hint(format!("did you mean `{near}`?")),
        None => report.hint("`flowstone connections list` shows those there are"),
    })
}

fn line(test: &Json) -> String {
    let code = maybe(test, "code").map_or_else(String::new, |code| format!("{code} "));
    let verdict = match text(test, "verdict") {
        verdict if verdict == Verdict::Fails.name() => "FAILS ".to_owned(),
        verdict => format!("{verdict:<6}"),
    };
    let [name, detail] = ["name", "detail"].map(|name| text(test, name));
    format!("{verdict} {name}  {} ms  {code}{detail}\n", test["millis"])
}

fn prices(args: &ConnectionsPrices, app: &dyn App) -> Result<Exit, Report> {
    let (as_of, mut rows) = Runtime::start()?.block_on(async {
        let project = Project {
            bindings: args.bound.bindings(),
            ..Project::find(&args.home)
        };
        app.prices(&app.open(&project, Open::OrMake)?)
    })?;
    if let Some(name) = &args.name {
        rows.retain(|row| {
            row.model.contains(name.as_str()) || row.provider.contains(name.as_str())
        });
    }
    if args.json {
        let rows: Vec<Json> = rows.iter().map(price_json).collect();
        output::json(&json!({"ok": true, "asOf": as_of, "prices": rows}));
        return Ok(Exit::Completed);
    }
    let columns = [
        Column::Whole("provider"),
        Column::Whole("model"),
        Column::Whole("input"),
        Column::Extra("cached"),
        Column::Extra("cache write"),
        Column::Whole("output"),
        Column::Cut("says"),
    ];
    output::data(&table(&columns, rows.iter().flat_map(price_rows)));
    output::note(&format!(
        "US dollars per million tokens; built-in prices are from {as_of} and may have changed"
    ));
    Ok(Exit::Completed)
}

fn price_rows(row: &PriceReport) -> Vec<Vec<String>> {
    let or_none = |rate: Option<f64>| rate.map_or_else(|| "-".to_owned(), |it| it.to_string());
    let mut lines = vec![vec![
        row.provider.clone(),
        row.model.clone(),
        row.input.to_string(),
        or_none(row.cached),
        or_none(row.cache_write),
        row.output.to_string(),
        row.source.clone(),
    ]];
    lines.extend(row.long.map(|(over, input, output)| {
        let (input, output) = (input.to_string(), output.to_string());
        let over = format!("  over {over} tokens");
        vec![
            String::new(),
            over,
            input,
            "-".into(),
            "-".into(),
            output,
            String::new(),
        ]
    }));
    lines
}

/// The names of the fields are stable.
fn price_json(row: &PriceReport) -> Json {
    json!({
        "provider": row.provider,
        "model": row.model,
        "input": row.input,
        "cached": row.cached,
        "cacheWrite": row.cache_write,
        "output": row.output,
        "long": row.long.map(|(over, input, output)| json!({"over": over, "input": input, "output": output})),
        "source": row.source,
    })
}
