//! Loading, running and watching flows.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::{Duration, SystemTime};

use flowstone_engine::ids::RunId;
use flowstone_engine::outcome::RunOutcome;
use flowstone_engine::ports::ClaimBy;
use flowstone_engine::{ExecuteOptions, ForkOptions, StartOptions};
use flowstone_flow::flow::LoadedFlow;
use flowstone_lang::value::{Class, Exception, Result, Signal, Stop, Value};

use super::{Desk, failed};
use crate::cli::check::of_findings;
use crate::cli::flow_file;
use crate::cli::outcome::of_failure;
use crate::cli::queue::place_text;
use crate::cli::repl::given::Given;
use crate::cli::report::{Report, Severity, Shown};
use crate::cli::table::{Column, table};

/// The options of a run.
pub(super) const OPTIONS: &[&str] = &["invocation", "id", "timeout", "watch"];

/// How often the file of a watched flow is checked.
const LOOK_EVERY: Duration = Duration::from_millis(150);

impl Desk<'_> {
    /// Loads a flow file, and returns what it declares.
    pub(super) fn load(&self, given: &Given) -> Result<Value> {
        let name = given.name(0)?.unwrap_or_default();
        let (loaded, file) = self.loaded_flow(&name)?;
        let flow = &loaded.flow;
        let slug = flow.slug.to_string();
        self.loaded.borrow_mut().insert(slug.clone(), file.clone());
        let inputs = flow
            .default_invocation()
            .map(|it| &it.inputs[..])
            .unwrap_or_default();
        let inputs = inputs.iter().map(|input| {
            Value::map([
                (Value::keyword("name"), Value::keyword(&input.name)),
                (Value::keyword("type"), Value::keyword(&input.type_)),
                (Value::keyword("required"), Value::Bool(input.required)),
            ])
        });
        let names = |names: Vec<&str>| Value::vector(names.into_iter().map(Value::keyword));
        let value = Value::map([
            (Value::keyword("slug"), Value::keyword(&slug)),
            (
                Value::keyword("file"),
                Value::from(file.display().to_string()),
            ),
            (Value::keyword("inputs"), Value::vector(inputs)),
            (
                Value::keyword("invocations"),
                names(flow.invocations.iter().map(|it| &*it.id).collect()),
            ),
            (
                Value::keyword("functions"),
                names(flow.functions.iter().map(|it| &*it.id).collect()),
            ),
        ]);
        Ok(value)
    }

    /// Returns the flows that can be named here.
    pub(super) fn flows(&self) -> Value {
        let mut flows = self.project_flows();
        for (slug, file) in self.loaded.borrow().iter() {
            if !flows.iter().any(|(known, _)| known == slug) {
                flows.push((slug.clone(), file.display().to_string()));
            }
        }
        flows.sort();
        let rows = flows
            .iter()
            .map(|(slug, file)| vec![slug.clone(), file.clone()]);
        let page = table(&[Column::Whole("flow"), Column::Whole("file")], rows);
        let value = Value::vector(flows.iter().map(|(slug, file)| {
            Value::map([
                (Value::keyword("slug"), Value::keyword(slug)),
                (Value::keyword("file"), Value::from(file.as_str())),
            ])
        }));
        match flows.is_empty() {
            true => value,
            false => self.paged(value, page),
        }
    }

    /// Returns slug and file of each flow of the project.
    pub(super) fn project_flows(&self) -> Vec<(String, String)> {
        let files = flowstone_project::flow_files::files(self.engine.project_root());
        let flows = files.into_iter().filter_map(|file| {
            let slug = file.loaded?.flow.slug.to_string();
            Some((slug, file.name))
        });
        flows.collect()
    }

    /// Reads and checks the flow with a slug or in a file.
    pub(super) fn loaded_flow(&self, name: &str) -> Result<(LoadedFlow, PathBuf)> {
        let known = self.loaded.borrow().get(name).cloned();
        let file = match known {
            Some(file) => file,
            None => flow_file::find(Path::new(name), self.engine.project_root())
                .map_err(|report| self.of_report(&report))?,
        };
        let loaded = self.read_flow(&file)?;
        Ok((loaded, file))
    }

    fn read_flow(&self, file: &Path) -> Result<LoadedFlow> {
        let session = Rc::new(self.engine.session());
        let name = flow_file::name_in_project(file, self.engine.project_root());
        let checked = self.engine.check_to_run(&session, file, &name);
        let mut first = None;
        let mut warnings = 0;
        for report in of_findings(&session, &checked.findings) {
            match report.severity {
                Severity::Warning | Severity::Portability => warnings += 1,
                Severity::Error if first.is_none() => first = Some(report),
                Severity::Error => self.person.tell(report.draw().trim_end()),
            }
        }
        match (first, checked.loaded) {
            (None, Some(loaded)) => {
                if warnings > 0 {
                    self.person.tell(&format!(
                        "{warnings} warnings: `flowstone check {name}` shows them"
                    ));
                }
                Ok(loaded)
            }
            (Some(report), _) => Err(self.of_report(&report)),
            (None, None) => {
                let report = Report::error("E0910", format!("{name} holds no flow"));
                Err(self.of_report(&report))
            }
        }
    }

    /// Runs a flow to its result.
    pub(super) async fn run(&self, given: &Given) -> Result<Value> {
        if given.flag("watch")? {
            return self.watch(given).await;
        }
        let name = given.name(0)?.unwrap_or_default();
        let (loaded, _) = self.loaded_flow(&name)?;
        let run = self.started(&loaded, given).await?;
        self.executed(&run, self.options()).await
    }

    /// Starts a run, which is not executed yet.
    pub(super) async fn started(&self, loaded: &LoadedFlow, given: &Given) -> Result<RunId> {
        let input = given.arg(1).filter(|input| !input.is_nil());
        let input = input.cloned().unwrap_or_else(|| Value::map([]));
        let timeout = match given.option("timeout") {
            None => None,
            Some(value) => match flowstone_engine::duration::of_value(value) {
                Some(timeout) => Some(timeout),
                None => {
                    return Err(given.wrong(
                        "the option :timeout is a duration, such as 30 or \"5m\"".to_owned(),
                    ));
                }
            },
        };
        let invocation = given.text("invocation")?;
        if let Some(interface) = loaded.flow.manual_off(invocation.as_deref()) {
            let message = format!(
                "the manual interface `:{interface}` of `{}` is disabled, so runs cannot be started by hand",
                loaded.flow.slug
            );
            return Err(self.of_report(&Report::error("E0954", message)));
        }
        let options = StartOptions {
            invocation,
            external_id: given.text("id")?,
            timeout,
            ..StartOptions::with_input(input)
        };
        let started = self.engine.submit(loaded, options).await.map_err(failed)?;
        self.last.replace(Some(started.run.clone()));
        Ok(started.run)
    }

    /// Executes a run to its end. What it asks for meanwhile is asked here.
    pub(super) async fn executed(&self, run: &RunId, options: ExecuteOptions) -> Result<Value> {
        self.last.replace(Some(run.clone()));
        let mut options = options;
        loop {
            let outcome = self
                .engine
                .execute(run, self.observer.clone(), options.clone());
            match outcome.await.map_err(failed)? {
                RunOutcome::Completed(value) => {
                    self.person.tell(&format!("run {run} completed"));
                    return Ok(value);
                }
                RunOutcome::Waiting { reason, .. } => {
                    if !self.answers(run).await? {
                        return Err(left(run, format!("it waits: {reason}")));
                    }
                    options.by = ClaimBy::Name;
                }
                RunOutcome::Failed(failure) => {
                    let report = of_failure(&failure).note(format!("run {run}"));
                    let mut exception = failure.exception.again().with("run", run.as_str());
                    exception.origin = RefCell::default();
                    return Err(self.reported(exception, &report));
                }
                RunOutcome::Cancelled { reason, status } => {
                    let message = format!("the run {run} is {}: {reason}", status.name());
                    return Err(Exception::new(Class::ILLEGAL_STATE, "E1552", message).into());
                }
                RunOutcome::Stuck { reason } => {
                    let message = format!("the run {run} could not be compensated: {reason}");
                    let error = Exception::new(Class::ILLEGAL_STATE, "E1552", message);
                    return Err(error
                        .hint(format!("try again: (flow/resume \"{run}\")"))
                        .into());
                }
                RunOutcome::Queued { place } => return Err(left(run, place_text(&place))),
                RunOutcome::Interrupted => {
                    let text = format!("interrupted; (flow/resume \"{run}\") resumes the run");
                    return Err(Stop::Interrupted(text).into());
                }
            }
        }
    }

    /// Runs a flow, and again whenever its file changes, until Ctrl-C.
    pub(super) async fn watch(&self, given: &Given) -> Result<Value> {
        let name = given.name(0)?.unwrap_or_default();
        let (loaded, file) = self.loaded_flow(&name)?;
        let mut seen = changed(&file);
        let mut run = self.started(&loaded, given).await?;
        let mut program = loaded.program.hash;
        self.outcome_of_watched(&run).await?;
        loop {
            self.person
                .tell(&format!("watching {}; Ctrl-C ends it", file.display()));
            let mut is_changed = false;
            loop {
                if self.interrupt.is_set() {
                    // The terminal has shown the Ctrl-C on this line.
                    self.person
                        .tell(&format!("\nno longer watching {}", file.display()));
                    return Ok(Value::Nil);
                }
                tokio::time::sleep(LOOK_EVERY).await;
                let now = changed(&file);
                // An editor may still be writing: the file counts once it stays the same.
                if now.is_some() && now != seen {
                    seen = now;
                    is_changed = true;
                } else if is_changed && now.is_some() {
                    break;
                }
            }
            let edited = match self.read_flow(&file) {
                Ok(edited) if edited.program.hash == program => continue,
                Ok(edited) => edited,
                Err(signal) => {
                    self.tell_error(&signal);
                    continue;
                }
            };
            program.clone_from(&edited.program.hash);
            let options = ForkOptions {
                flow: Some(edited.clone()),
                reuse: true,
                ..ForkOptions::default()
            };
            let forked = match self.engine.fork(&run, options).await {
                Ok(forked) => forked,
                // The new text takes another input, for example.
                Err(error) => {
                    self.person
                        .tell(&format!("cannot take over results: {error}"));
                    match self.started(&edited, given).await {
                        Ok(started) => started,
                        Err(signal) => {
                            self.tell_error(&signal);
                            continue;
                        }
                    }
                }
            };
            run = forked;
            self.outcome_of_watched(&run).await?;
        }
    }

    /// Executes a watched run and shows its end.
    async fn outcome_of_watched(&self, run: &RunId) -> Result<()> {
        match self.executed(run, self.options()).await {
            Ok(value) => self.person.tell(&crate::cli::pretty::pretty(&value)),
            Err(Signal::Stop(stop)) => return Err(Signal::Stop(stop)),
            Err(signal) => self.tell_error(&signal),
        }
        Ok(())
    }

    fn tell_error(&self, signal: &Signal) {
        let report = match signal {
            Signal::Throw(exception) => self.report(exception),
            Signal::Stop(_) => None,
        };
        let text = report.unwrap_or_else(|| {
            let (report, _) = crate::cli::eval::describe(&self.session, signal);
            report.draw()
        });
        self.person.tell(text.trim_end());
    }
}

/// Returns the error of a run that goes on when somebody resumes it.
fn left(run: &RunId, why: String) -> Signal {
    Exception::new(
        Class::ILLEGAL_STATE,
        "E1551",
        format!("the run {run} is not over: {why}"),
    )
    .with("run", run.as_str())
    .hint(format!(
        "(flow/waits :run \"{run}\") shows its questions, (flow/resume \"{run}\") resumes it"
    ))
    .into()
}

/// Returns when a file was last changed, and its size.
fn changed(file: &Path) -> Option<(SystemTime, u64)> {
    let facts = std::fs::metadata(file).ok()?;
    Some((facts.modified().ok()?, facts.len()))
}
