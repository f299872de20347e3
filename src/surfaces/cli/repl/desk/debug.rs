//! Stopping before each step of a run, and what would be asked next.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use flowstone_engine::codec;
use flowstone_engine::ids::RunId;
use flowstone_engine::ports::ClaimBy;
use flowstone_engine::{
    Debugger, DecideStep, ExecuteOptions, ForkOptions, NextStep, StepDecision, StepStop,
};
use flowstone_flow::step::LocalFuture;
use flowstone_lang::session::Session;
use flowstone_lang::value::{Result, Stop, Value};

use super::{Desk, failed};
use crate::cli::outcome::of_engine_error;
use crate::cli::pretty::pretty;
use crate::cli::repl::data::data;
use crate::cli::repl::draw_error;
use crate::cli::repl::given::Given;
use crate::cli::repl::person::Person;
use crate::cli::report::Shown;
use crate::cli::runs;
use crate::cli::table::{Column, table};
use crate::json::{Values, run_report_json};

/// Instructions that a form at a stop may take.
const FUEL: u64 = 10_000_000;

/// What a person may type at a stop.
const HELP: &str = "\
go, or Enter        performs the step
skip                the flow gets nil in its place
use VALUE           the flow gets VALUE in its place
change {:KEY VALUE} replaces entries of the config; nil removes one
back STEP           starts again before STEP, as a fork of this run
show                the run so far
config              the config again
locals              the locals of the flow here
(FORM)              evaluates a form with these locals
run                 performs this step and all later ones without a stop
leave               suspends the run before the step";

/// The person at the stops of one run.
struct Stops {
    session: Rc<Session>,
    person: Rc<dyn Person>,
    /// Whether later steps are stopped at.
    is_on: Cell<bool>,
    /// The paths of the steps that were stopped at. A step that is stopped at again keeps its number.
    seen: RefCell<Vec<String>>,
    wish: RefCell<Wish>,
}

/// Why a run was left at a stop.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
enum Wish {
    #[default]
    None,
    /// Start again before this step.
    Back(String),
    /// Show the run, and stop at the step again.
    Show,
    Leave,
}

impl Desk<'_> {
    /// Runs a flow with a stop before each step.
    pub(super) async fn debug(&self, given: &Given) -> Result<Value> {
        let name = given.name(0)?.unwrap_or_default();
        let (loaded, _) = self.loaded_flow(&name)?;
        let run = self.started(&loaded, given).await?;
        self.debugged(run).await
    }

    /// Executes a run with a stop before each step.
    pub(super) async fn debugged(&self, run: RunId) -> Result<Value> {
        let mut run = run;
        let stops = Rc::new(Stops {
            session: self.session.clone(),
            person: self.person.clone(),
            is_on: Cell::new(true),
            seen: RefCell::default(),
            wish: RefCell::default(),
        });
        self.person
            .tell("stops before each step; `help` shows what you can type");
        loop {
            let options = ExecuteOptions {
                by: ClaimBy::Name,
                debugger: Debugger::new(stops.clone()),
                ..self.options()
            };
            let ended = self.executed(&run, options).await;
            match stops.wish.take() {
                Wish::Show => {
                    let report = self.engine.show_run(&run).await.map_err(failed)?;
                    let page = runs::page(&run_report_json(&report, Values::Edn));
                    self.person.tell(page.trim_end());
                }
                Wish::Back(step) => run = self.back(&run, step).await?,
                Wish::Leave => {
                    let text = format!("left; (flow/resume \"{run}\") resumes the run");
                    return Err(Stop::Interrupted(text).into());
                }
                Wish::None => return ended,
            }
        }
    }

    /// Forks a run before a step, and ends the run: what was done after that step is done again. If that is not
    /// possible, returns the run itself.
    async fn back(&self, run: &RunId, step: String) -> Result<RunId> {
        let options = ForkOptions {
            at: Some(step),
            ..ForkOptions::default()
        };
        match self.engine.fork(run, options).await {
            Ok(fork) => {
                let reason = format!("replaced by its fork {fork} at the prompt");
                let ended = self
                    .engine
                    .terminate(run, &reason, self.observer.clone())
                    .await;
                ended.map_err(failed)?;
                self.person.tell(&format!("run {fork} replaces {run}"));
                Ok(fork)
            }
            Err(error) => {
                self.person.tell(of_engine_error(&error).draw().trim_end());
                Ok(run.clone())
            }
        }
    }

    /// Returns the locals at a step of a run.
    pub(super) async fn locals(&self, given: &Given) -> Result<Value> {
        let run = self.run_named(given, 0).await?;
        let step = given.name(1)?.unwrap_or_default();
        self.engine.locals_at(&run, &step).await.map_err(failed)
    }

    /// Returns the steps that a flow or a run would perform next.
    pub(super) async fn next(&self, given: &Given) -> Result<Value> {
        let name = given.name(0)?;
        let is_run = match &name {
            None => true,
            Some(name) => {
                given.arg(0).is_some_and(|arg| arg.as_str().is_some())
                    && given.arg(1).is_none()
                    && self.engine.find_run(name).await.is_ok()
            }
        };
        let next = if is_run {
            let run = self.run_named(given, 0).await?;
            self.engine.next_of_run(&run).await.map_err(failed)?
        } else {
            let (loaded, _) = self.loaded_flow(&name.unwrap_or_default())?;
            let input = given.arg(1).cloned().unwrap_or_else(|| Value::map([]));
            let invocation = given.text("invocation")?;
            let next = self
                .engine
                .next_of_flow(&loaded, invocation.as_deref(), &input)
                .await;
            next.map_err(failed)?
        };
        let rows = next.steps.iter().map(|step| {
            vec![
                step.path.clone(),
                format!(":{}", step.kind),
                step.request.clone(),
            ]
        });
        let page = match next.steps.is_empty() {
            true => format!("{}\n", next.end),
            false => table(
                &[
                    Column::Whole("step"),
                    Column::Whole("type"),
                    Column::Cut("request"),
                ],
                rows,
            ),
        };
        let value = Value::vector(next.steps.iter().map(step_value));
        Ok(self.paged(value, page))
    }
}

fn step_value(step: &NextStep) -> Value {
    let request = codec::decode(&step.request);
    let mut entries = vec![
        (Value::keyword("path"), Value::from(step.path.as_str())),
        (Value::keyword("type"), Value::keyword(&step.kind)),
        (
            Value::keyword("request"),
            request.unwrap_or_else(|_| Value::from(step.request.as_str())),
        ),
    ];
    if let Some(place) = &step.place {
        let place =
            serde_json::json!({"file": place.file, "line": place.line, "column": place.column});
        entries.push((Value::keyword("place"), data(&place)));
    }
    Value::map(entries)
}

impl Stops {
    fn announce(&self, stop: &StepStop) {
        if let Some(problem) = &stop.problem {
            self.person.tell(&format!("not taken: {problem}"));
            return;
        }
        let number = self.number_of(&stop.path);
        let place = match &stop.place {
            Some(place) => format!("  {}:{}:{}", place.file, place.line, place.column),
            None => String::new(),
        };
        let title = match stop.title == stop.path {
            true => String::new(),
            false => format!("  {}", stop.title),
        };
        self.person.tell(&format!(
            "● step {number}: {} :{}{title}{place}\n{}",
            stop.path,
            stop.kind,
            config_text(stop)
        ));
    }

    /// Returns the number of a step, counted from 1 in the order of the stops.
    fn number_of(&self, path: &str) -> usize {
        let mut seen = self.seen.borrow_mut();
        let known = seen.iter().position(|it| it == path);
        known.unwrap_or_else(|| {
            seen.push(path.to_owned());
            seen.len() - 1
        }) + 1
    }

    /// Evaluates a form with the locals of a stop; it can only compute.
    fn evaluated(&self, stop: &StepStop, form: &str) -> String {
        let names: Vec<&str> = stop.locals.iter().map(|(name, _)| name.as_str()).collect();
        let code = format!("(fn [{}] {form}\n)", names.join(" "));
        let mut values = Vec::new();
        for (_, text) in &stop.locals {
            values.push(codec::decode(text).unwrap_or(Value::Nil));
        }
        let session = &self.session;
        let mut vm = session.vm(Box::new(flowstone_lang::Sandbox::new().fuel(FUEL)));
        let value = session
            .eval_text(&mut vm, "<debug>", &code)
            .and_then(|function| vm.call(&function, &values))
            .and_then(|value| {
                let options = session.print_options(&mut vm);
                vm.print(&value, options)
            });
        match value {
            Ok(printed) => printed,
            Err(signal) => draw_error(session, &signal).trim_end().to_owned(),
        }
    }

    /// Returns what the person typed as a decision; `None`: ask again.
    fn read(&self, stop: &StepStop, text: &str) -> Option<StepDecision> {
        let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        let rest = rest.trim();
        let leave = |wish| {
            self.wish.replace(wish);
            Some(StepDecision::Leave)
        };
        let value = || match codec::decode(rest) {
            Ok(value) => Some(value),
            Err(error) => {
                self.person
                    .tell(&format!("`{word}` needs a value: {error}"));
                None
            }
        };
        match word {
            "" | "go" => Some(StepDecision::Perform),
            "skip" => Some(StepDecision::Skip),
            "use" => value().map(StepDecision::Use),
            "change" => value().map(StepDecision::Change),
            "back" if !rest.is_empty() => {
                leave(Wish::Back(rest.trim_start_matches(':').to_owned()))
            }
            "show" => leave(Wish::Show),
            "leave" | "quit" => leave(Wish::Leave),
            "run" => {
                self.is_on.set(false);
                Some(StepDecision::Perform)
            }
            "config" => {
                self.person.tell(&config_text(stop));
                None
            }
            "locals" => {
                let lines = stop
                    .locals
                    .iter()
                    .map(|(name, text)| format!("  {name} = {text}"));
                let lines: Vec<String> = lines.collect();
                self.person.tell(&match lines.is_empty() {
                    true => "there are no locals here".to_owned(),
                    false => lines.join("\n"),
                });
                None
            }
            "help" => {
                self.person.tell(HELP);
                None
            }
            _ if text.starts_with('(') => {
                self.person.tell(&self.evaluated(stop, text));
                None
            }
            _ => {
                self.person.tell(&format!(
                    "`{word}` is not known here; `help` shows what you can type"
                ));
                None
            }
        }
    }
}

impl DecideStep for Stops {
    fn decide(&self, stop: StepStop) -> LocalFuture<'_, StepDecision> {
        Box::pin(async move {
            if !self.is_on.get() {
                return StepDecision::Perform;
            }
            self.announce(&stop);
            loop {
                let Some(text) = self.person.ask("debug> ") else {
                    self.wish.replace(Wish::Leave);
                    return StepDecision::Leave;
                };
                if let Some(decision) = self.read(&stop, text.trim()) {
                    return decision;
                }
            }
        })
    }
}

fn config_text(stop: &StepStop) -> String {
    let text =
        codec::decode(&stop.config).map_or_else(|_| stop.config.clone(), |config| pretty(&config));
    format!("  {}", text.replace('\n', "\n  "))
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Silent;

    impl Person for Silent {
        fn ask(&self, _: &str) -> Option<String> {
            None
        }

        fn answers_waits(&self) -> bool {
            false
        }

        fn tell(&self, _: &str) {}
    }

    fn stops() -> Stops {
        Stops {
            session: Rc::new(Session::new()),
            person: Rc::new(Silent),
            is_on: Cell::new(true),
            seen: RefCell::default(),
            wish: RefCell::default(),
        }
    }

    #[test]
    fn a_step_that_is_stopped_at_again_keeps_its_number() {
        let stops = stops();
        let numbers = ["a", "b", "b", "c", "a", "d"].map(|path| stops.number_of(path));
        assert_eq!(numbers, [1, 2, 2, 3, 1, 4]);
    }

    #[test]
    fn what_is_typed_at_a_stop_is_a_decision() {
        let stops = stops();
        let stop = StepStop {
            run: RunId::from_text("r"),
            path: "fetch".to_owned(),
            kind: "http",
            title: "fetch".to_owned(),
            config: "{}".to_owned(),
            place: None,
            locals: vec![("n".to_owned(), "4".to_owned())],
            problem: None,
        };
        assert_eq!(stops.evaluated(&stop, "(+ n 1)"), "5");
        assert!(
            stops
                .evaluated(&stop, "(+ m 1)")
                .contains("`m` is not defined")
        );
        assert!(matches!(stops.read(&stop, ""), Some(StepDecision::Perform)));
        assert!(matches!(
            stops.read(&stop, "skip"),
            Some(StepDecision::Skip)
        ));
        let Some(StepDecision::Use(value)) = stops.read(&stop, "use {:a [1 2]}") else {
            panic!("a value was expected");
        };
        assert_eq!(codec::encode(&value).expect("data"), "{:a [1 2]}");
        assert!(stops.read(&stop, "use (").is_none());
        assert!(stops.read(&stop, "jump").is_none());
        assert!(matches!(
            stops.read(&stop, "back :fetch"),
            Some(StepDecision::Leave)
        ));
        assert_eq!(stops.wish.take(), Wish::Back("fetch".to_owned()));
    }
}
