//! `flowstone flows`: which flows from elsewhere are trusted, and with what.

use std::io::{self, BufRead as _, IsTerminal as _};

use flowstone_engine::trust::{Trusted, trust, trusted, untrust};
use serde_json::json;

use super::Open;
use super::args::{Flows, FlowsCommand, FlowsTrust, FlowsTrusted, FlowsUntrust};
use super::exit::Exit;
use super::home::Project;
use super::needs::Needs;
use super::report::Report;
use super::runtime::Runtime;
use super::{App, flow_file, output, run};

/// Runs one of the commands.
pub fn run(args: &Flows, app: &dyn App) -> Exit {
    let done = match &args.command {
        FlowsCommand::Trust(args) => give(args, app),
        FlowsCommand::Trusted(args) => list(args),
        FlowsCommand::Untrust(args) => take(args),
    };
    done.unwrap_or_else(|report| {
        output::failure(&report, false);
        Exit::Failed
    })
}

fn failed(error: &io::Error) -> Report {
    Report::error(
        "E0962",
        format!("the list of trusted flows cannot be used: {error}"),
    )
    .hint("it is `trusted.edn` in the project's `.flowstone` folder")
}

/// Shows what a flow needs, and records it where a person agrees.
fn give(args: &FlowsTrust, app: &dyn App) -> Result<Exit, Report> {
    let project = Project::find(&args.home);
    let file = flow_file::find(&args.file, &project.root)?;
    let (needs, digest) = Runtime::start()?.block_on(async {
        let engine = app.open(&project, Open::OrMake)?;
        let session = engine.session();
        let checked = engine.check(&session, &file, &file.display().to_string());
        let loaded = run::load_file(&engine, &file, true)?;
        let slug = loaded.flow.slug.to_string();
        let nothing = Default::default();
        let needs = Needs::of(&slug, &checked.needs, &nothing, &project.root);
        Ok::<_, Report>((needs, loaded.program.hash))
    })?;
    let known = trusted(&project.home).map_err(|error| failed(&error))?;
    for line in needs
        .lines()
        .iter()
        .take_while(|line| !line.starts_with("missing"))
    {
        output::note(line);
    }
    if let Some(earlier) = known.iter().find(|it| it.slug == needs.slug) {
        let more = needs
            .missing
            .iter()
            .filter(|it| !earlier.rows.contains(&it.edn()));
        match earlier.digest == digest {
            true => output::note("it is trusted, and has not changed"),
            false => output::note("it was trusted, and has changed since"),
        }
        for missing in more {
            output::note(&format!("new: {}", missing.action()));
        }
    }
    if !args.yes && !agrees() {
        output::note("nothing was recorded");
        return Ok(Exit::Failed);
    }
    let entry = Trusted {
        rows: needs.missing.iter().map(|missing| missing.edn()).collect(),
        slug: needs.slug,
        digest,
    };
    trust(&project.home, entry.clone()).map_err(|error| failed(&error))?;
    output::note(&format!("the flow `{}` is trusted", entry.slug));
    Ok(Exit::Completed)
}

/// Asks the person at the terminal; no without one.
fn agrees() -> bool {
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        output::note("give --yes to record it without a question");
        return false;
    }
    output::note_part("trust it with this? [y/N]: ");
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line).is_ok()
        && matches!(line.trim().to_lowercase().as_str(), "y" | "yes")
}

fn list(args: &FlowsTrusted) -> Result<Exit, Report> {
    let project = Project::find(&args.home);
    let all = trusted(&project.home).map_err(|error| failed(&error))?;
    if args.json {
        let rows: Vec<_> = all
            .iter()
            .map(|it| json!({"flow": it.slug, "digest": it.digest, "allow": it.rows}))
            .collect();
        output::json(&json!({"ok": true, "trusted": rows}));
        return Ok(Exit::Completed);
    }
    for entry in &all {
        output::data(&format!("{}\t{}\n", entry.slug, entry.rows.join(" ")));
    }
    Ok(Exit::Completed)
}

fn take(args: &FlowsUntrust) -> Result<Exit, Report> {
    let project = Project::find(&args.home);
    match untrust(&project.home, &args.slug).map_err(|error| failed(&error))? {
        true => {
            output::note(&format!("the flow `{}` is not trusted any more", args.slug));
            Ok(Exit::Completed)
        }
        false => Err(
            Report::error("E0962", format!("no flow `{}` is trusted", args.slug))
                .hint("`flowstone flows trusted` lists them"),
        ),
    }
}
