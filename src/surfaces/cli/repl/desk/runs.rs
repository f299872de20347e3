//! Looking at runs, and what else `flowstone runs` does.

use clap::Parser;
use flowstone_engine::archive::{Archive, ImportOptions};
use flowstone_engine::ids::RunId;
use flowstone_engine::ports::ClaimBy;
use flowstone_engine::{CancelOutcome, ExecuteOptions, ForkOptions, Setting};
use flowstone_lang::value::{Result, Value};
use serde_json::Value as Json;

use super::{Desk, failed};
use crate::cli::args::RunsList;
use crate::cli::repl::data::data;
use crate::cli::repl::given::Given;
use crate::cli::runs;
use crate::json::{Values, diff_json, event_json, run_report_json, step_details_json};

/// The options of a list of runs, as of `flowstone runs list`.
pub(super) const FILTERS: &[&str] = &[
    "flow",
    "status",
    "since",
    "until",
    "key",
    "text",
    "started-by",
    "parent",
    "sort",
    "before",
    "limit",
];

/// Reads the options of a list as the command line does.
#[derive(Parser)]
#[command(no_binary_name = true)]
struct Listing {
    #[command(flatten)]
    list: RunsList,
}

impl Desk<'_> {
    /// Returns a list of runs.
    pub(super) async fn runs(&self, given: &Given) -> Result<Value> {
        let listing = Listing::try_parse_from(given.command_line()).map_err(|error| {
            let text = error.to_string();
            let line = text.lines().next().unwrap_or_default();
            given.wrong(line.trim_start_matches("error: ").replace("--", ":"))
        })?;
        let (rows, page) = runs::listed(self.engine, &listing.list)
            .await
            .map_err(failed)?;
        let value = Value::vector(rows.iter().map(data));
        Ok(match rows.is_empty() {
            true => value,
            false => self.paged(value, page),
        })
    }

    /// Returns a run, or one step of it.
    pub(super) async fn show(&self, given: &Given) -> Result<Value> {
        let run = self.run_named(given, 0).await?;
        match given.name(1)? {
            None => self.shown_run(&run).await,
            Some(path) => {
                let details = self.engine.show_step(&run, &path).await.map_err(failed)?;
                let shown = step_details_json(&details, Values::Edn);
                Ok(self.paged(data(&shown), runs::step_page(&shown)))
            }
        }
    }

    pub(super) async fn shown_run(&self, run: &RunId) -> Result<Value> {
        let report = self.engine.show_run(run).await.map_err(failed)?;
        let shown = run_report_json(&report, Values::Edn);
        let page = runs::page(&shown);
        let mut shown = shown;
        if let Some(fields) = shown.as_object_mut() {
            fields.remove("errorText");
        }
        Ok(self.paged(data(&shown), page))
    }

    /// Returns the journal of a run.
    pub(super) async fn events(&self, given: &Given) -> Result<Value> {
        let run = self.run_named(given, 0).await?;
        let after = given.option("after").and_then(Value::as_int);
        let (mut seq, mut pass) = (after.unwrap_or(0), None);
        let mut events: Vec<Json> = Vec::new();
        loop {
            let page = self
                .engine
                .events_after(&run, seq, pass)
                .await
                .map_err(failed)?;
            pass = Some(page.row.pass);
            seq = page.events.last().map_or(seq, |event| event.seq);
            events.extend(
                page.events
                    .iter()
                    .map(|event| event_json(event, Values::Edn)),
            );
            if !page.is_full {
                break;
            }
        }
        let page: Vec<String> = events.iter().map(runs::event_line).collect();
        let value = Value::vector(events.iter().map(data));
        Ok(self.paged(value, page.join("\n")))
    }

    /// Compares two runs.
    pub(super) async fn diff(&self, given: &Given) -> Result<Value> {
        let a = self.run_named(given, 0).await?;
        let b = self.run_named(given, 1).await?;
        let diff = self.engine.compare_runs(&a, &b).await.map_err(failed)?;
        let shown = diff_json(&diff, given.flag("all")?, Values::Edn);
        let page = runs::diff_page(&shown);
        Ok(self.paged(data(&shown), page))
    }

    /// Replays a run.
    pub(super) async fn replay(&self, given: &Given) -> Result<Value> {
        let run = self.run_named(given, 0).await?;
        let replayed = self.engine.replay(&run).await.map_err(failed)?;
        let (shown, page) = (
            runs::replayed_json(&replayed),
            runs::replayed_page(&replayed),
        );
        Ok(self.paged(data(&shown), page))
    }

    /// Resumes a run, or gives its result again.
    pub(super) async fn resume(&self, given: &Given) -> Result<Value> {
        let run = self.run_named(given, 0).await?;
        let options = ExecuteOptions {
            by: ClaimBy::Name,
            ..self.options()
        };
        self.executed(&run, options).await
    }

    /// Cancels a run.
    pub(super) async fn cancel(&self, given: &Given) -> Result<Value> {
        let run = self.run_named(given, 0).await?;
        let reason = given.text("reason")?;
        let reason = reason.as_deref().unwrap_or("cancelled at the prompt");
        let observer = self.observer.clone();
        if given.flag("force")? {
            let ended = self.engine.terminate(&run, reason, observer).await;
            ended.map_err(failed)?;
            return Ok(Value::keyword("terminated"));
        }
        let outcome = self
            .engine
            .cancel(&run, reason, observer)
            .await
            .map_err(failed)?;
        Ok(Value::keyword(match outcome {
            CancelOutcome::Cancelled => "cancelled",
            CancelOutcome::Requested => "requested",
            CancelOutcome::Unwinding => "unwinding",
        }))
    }

    /// Starts a run with results of another one, and executes it.
    pub(super) async fn fork(&self, given: &Given) -> Result<Value> {
        let run = self.run_named(given, 0).await?;
        let flow = match given.text("flow")? {
            Some(name) => Some(self.loaded_flow(&name)?.0),
            None => None,
        };
        let options = ForkOptions {
            at: given.text("at")?,
            flow,
            settings: settings(given)?,
            reuse: given.flag("reuse")?,
        };
        let fork = self.engine.fork(&run, options).await.map_err(failed)?;
        self.person.tell(&format!("run {fork} is a fork of {run}"));
        match given.flag("debug")? {
            true => self.debugged(fork).await,
            false => self.executed(&fork, self.options()).await,
        }
    }

    /// Returns a run as text.
    pub(super) async fn export(&self, given: &Given) -> Result<Value> {
        let run = self.run_named(given, 0).await?;
        let archive = self.engine.export_run(&run, given.flag("children")?).await;
        Ok(Value::text(archive.map_err(failed)?.write()))
    }

    /// Takes over the runs in a text.
    pub(super) async fn import(&self, given: &Given) -> Result<Value> {
        let Some(text) = given.arg(0).and_then(Value::as_str) else {
            return Err(
                given.wrong("`flow/import` takes the text that `flow/export` returned".to_owned())
            );
        };
        let archive = Archive::read(text).map_err(|error| failed(error.into()))?;
        let options = ImportOptions {
            new_id: given.flag("new-id")?,
        };
        let imported = self
            .engine
            .import_runs(archive, options)
            .await
            .map_err(failed)?;
        if let (false, Some(run)) = (imported.is_over, imported.runs.first()) {
            self.person.tell(&format!(
                "the run is not finished; make sure that it runs nowhere else, then: (flow/resume \"{run}\")"
            ));
        }
        Ok(Value::vector(
            imported.runs.iter().map(|run| Value::from(run.as_str())),
        ))
    }
}

/// Returns the values that a fork replaces.
fn settings(given: &Given) -> Result<Vec<Setting>> {
    let Some(set) = given.option("set") else {
        return Ok(Vec::new());
    };
    let Some(map) = set.as_map() else {
        return Err(given.wrong("the option :set is a map, such as {\"input.limit\" 5}".to_owned()));
    };
    let settings = map
        .iter()
        .map(|(path, value)| match flowstone_flow::flow::name_of(path) {
            Some(path) => Ok(Setting {
                path: path.to_string(),
                value: value.clone(),
            }),
            None => Err(given.wrong(
                "a path in :set is a string or a keyword, such as \"input.limit\"".to_owned(),
            )),
        });
    settings.collect()
}
