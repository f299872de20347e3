//! `flowstone flows`: lists and shows flows, and which flows from elsewhere are trusted with which permissions.

pub mod installed;
pub mod registered;
pub mod served;
mod source;
pub(in crate::cli) mod tested;

use std::io::{self, BufRead as _, IsTerminal as _};
use std::path::PathBuf;
use std::rc::Rc;

use flowstone_engine::Engine;
use flowstone_engine::trust::{Trusted, trust, trusted, untrust};
use flowstone_flow::permission::{Missing, shown};
use flowstone_flow::step::real_path;
use serde_json::json;

use super::Open;
use super::args::{Flows, FlowsCommand, FlowsTrust, FlowsTrusted, FlowsUntrust};
use super::check::of_findings;
use super::exit::Exit;
use super::home::Project;
use super::needs::Needs;
use super::report::{Report, Severity};
use super::runtime::Runtime;
use super::{App, flow_file, output};

/// Runs one of the commands.
pub fn run(args: &Flows, app: &'static dyn App) -> Exit {
    let as_json = as_json(&args.command);
    let done = match &args.command {
        FlowsCommand::Archive(args) => registered::archive(args, app),
        FlowsCommand::Configure(args) => installed::configure(args, app),
        FlowsCommand::Install(args) => installed::install(args, app),
        FlowsCommand::Installations(args) => installed::list(args, app),
        FlowsCommand::Pack(args) => installed::pack(args, app),
        FlowsCommand::Uninstall(args) => installed::uninstall(args, app),
        FlowsCommand::Diff(args) => registered::diff(args, app),
        FlowsCommand::Pull(args) => registered::pull(args, app),
        FlowsCommand::Push(args) => registered::push(args, app),
        FlowsCommand::Release(args) => registered::release(args, app),
        FlowsCommand::Rollback(args) => registered::rollback(args, app),
        FlowsCommand::List(args) => served::list(args, app),
        FlowsCommand::Show(args) => served::show(args, app),
        FlowsCommand::Test(args) => tested::test(args, app),
        FlowsCommand::Versions(args) => served::versions(args, app),
        FlowsCommand::Trust(args) => give(args, app),
        FlowsCommand::Trusted(args) => list(args),
        FlowsCommand::Untrust(args) => take(args),
    };
    done.unwrap_or_else(|report| {
        output::failure(&report, as_json);
        Exit::Failed
    })
}

/// Tells whether a command prints JSON.
pub fn as_json(command: &FlowsCommand) -> bool {
    match command {
        FlowsCommand::Archive(args) => args.json,
        FlowsCommand::Configure(args) => args.json,
        FlowsCommand::Install(args) => args.json,
        FlowsCommand::Installations(args) => args.json,
        FlowsCommand::Pack(args) => args.json,
        FlowsCommand::Uninstall(args) => args.json,
        FlowsCommand::Diff(args) => args.json,
        FlowsCommand::Pull(args) => args.json,
        FlowsCommand::Push(args) => args.json,
        FlowsCommand::Release(args) => args.json,
        FlowsCommand::Rollback(args) => args.json,
        FlowsCommand::List(args) => args.json,
        FlowsCommand::Show(args) => args.json,
        FlowsCommand::Test(args) => args.json,
        FlowsCommand::Versions(args) => args.json,
        FlowsCommand::Trusted(args) => args.json,
        FlowsCommand::Trust(_) | FlowsCommand::Untrust(_) => false,
    }
}

fn failed(error: &io::Error) -> Report {
    Report::error(
        "E0962",
        format!("the list of trusted flows cannot be used: {error}"),
    )
    .hint("it is `trusted.edn` in the project's `.flowstone` folder")
}

/// Shows the permissions that a flow needs, and records them if the person agrees.
fn give(args: &FlowsTrust, app: &dyn App) -> Result<Exit, Report> {
    let project = Project::find(&args.home);
    let file = flow_file::find(&args.file, &project.root)?;
    let asking = Runtime::start()?.block_on(async {
        let engine = app.open(&project, Open::OrMake)?;
        gather(&engine, &project, file).await
    })?;
    let known = trusted(&project.home).map_err(|error| failed(&error))?;
    for asking in &asking {
        asking.show(&known);
    }
    if !args.yes && !agrees() {
        output::note("no permission was granted");
        return Ok(Exit::Failed);
    }
    let entries: Vec<Trusted> = asking.iter().map(Asking::entry).collect();
    trust(&project.home, &entries).map_err(|error| failed(&error))?;
    for entry in entries {
        output::note(&format!("the flow `{}` is trusted", shown(&entry.slug)));
    }
    Ok(Exit::Completed)
}

/// A flow to trust, with its needs.
struct Asking {
    needs: Needs,
    digest: String,
}

/// Maximum number of flows that are trusted together.
const FLOWS_MAX: usize = 100;

/// Returns a flow and all flows that it calls, directly or indirectly.
async fn gather(engine: &Engine, project: &Project, file: PathBuf) -> Result<Vec<Asking>, Report> {
    let mut files = vec![file];
    let mut asking: Vec<Asking> = Vec::new();
    let mut at = 0;
    while let Some(file) = files.get(at).cloned() {
        at += 1;
        let session = Rc::new(engine.session());
        let name = file.display().to_string();
        let checked = engine.check_called(&session, &file, &name).await;
        let mut reports = of_findings(&session, &checked.findings).into_iter();
        if let Some(report) = reports.find(|report| report.severity == Severity::Error) {
            return Err(report);
        }
        let no_flow = || Report::error("E0910", format!("{name} holds no flow"));
        let loaded = checked.loaded.ok_or_else(no_flow)?;
        let nothing = Default::default();
        asking.push(Asking {
            needs: Needs::of(&loaded.flow.slug, &checked.needs, &nothing, &project.root),
            digest: loaded.flow.digest.as_deref().unwrap_or_default().to_owned(),
        });
        for called in checked.called {
            let is_known = files.iter().any(|it| real_path(it) == real_path(&called));
            if !is_known && files.len() < FLOWS_MAX {
                files.push(called);
            }
        }
    }
    Ok(asking)
}

impl Asking {
    /// Shows the permissions that the flow needs. Of a flow that was trusted, those that are new are marked.
    fn show(&self, known: &[Trusted]) {
        let mut versions = known.iter().filter(|it| it.slug == self.needs.slug).rev();
        let same = versions.clone().find(|it| it.digest == self.digest);
        let earlier = same.or_else(|| versions.next());
        let is_new = |missing: &Missing| {
            earlier.is_some_and(|earlier| !earlier.rows.contains(&missing.edn()))
        };
        for line in self.needs.lines(is_new) {
            output::note(&line);
        }
        let has_new = self.needs.missing().any(is_new);
        match (earlier, has_new) {
            (None, _) => {}
            (Some(earlier), _) if earlier.digest == self.digest => {
                output::note("the flow is trusted already, and has not changed");
            }
            (Some(_), true) => output::note("the flow was trusted, but has changed since"),
            (Some(_), false) => output::note(
                "the flow was trusted, but has changed since; it needs nothing that is new",
            ),
        }
    }

    fn entry(&self) -> Trusted {
        let missing = self.needs.missing();
        Trusted {
            slug: self.needs.slug.clone(),
            digest: self.digest.clone(),
            rows: missing.map(|missing| missing.edn()).collect(),
        }
    }
}

/// Asks the person at the terminal. Without a terminal, the answer is no.
fn agrees() -> bool {
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        output::note("use --yes to grant the permissions without asking");
        return false;
    }
    output::note_part("grant these permissions? [y/N]: ");
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
