//! Performs the operations of a prompt: calls of the engine whose answers are data, each with a page for people.

mod debug;
mod flows;
mod runs;
mod waits;

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::rc::Rc;

use flowstone_engine::ids::RunId;
use flowstone_engine::observer::Observer;
use flowstone_engine::ports::RunQuery;
use flowstone_engine::{Asker, Engine, EngineError, ExecuteOptions, Interrupt, thrown};
use flowstone_flow::step::LocalFuture;
use flowstone_lang::session::Session;
use flowstone_lang::value::{Class, Exception, Result, Signal, Value};
use flowstone_lang::vm::Request;

use super::given::Given;
use super::operations::{Asked, Operation};
use super::person::{Person, Waiting};
use crate::cli::report::{Report, Shown};

/// How many values and errors are remembered with their pages.
const PAGES: usize = 8;

/// How many runs completion knows.
const RECENT: usize = 100;

/// What the operations of a prompt need.
pub struct Desk<'a> {
    engine: &'a Engine,
    /// The session of the prompt.
    session: Rc<Session>,
    observer: Rc<dyn Observer>,
    interrupt: Interrupt,
    asker: Asker,
    person: Rc<dyn Person>,
    /// The files of the flows that were loaded, by slug.
    loaded: RefCell<BTreeMap<String, PathBuf>>,
    /// The run that an operation was last about.
    last: RefCell<Option<RunId>>,
    waiting: Rc<Waiting>,
    pages: RefCell<VecDeque<(Value, String)>>,
    reports: RefCell<VecDeque<(Rc<Exception>, String)>>,
}

/// How a prompt shows what its operations do.
pub struct Around {
    pub observer: Rc<dyn Observer>,
    pub interrupt: Interrupt,
    pub asker: Asker,
    pub person: Rc<dyn Person>,
    /// Reports the waits of the prompt's own steps.
    pub waiting: Rc<Waiting>,
}

impl<'a> Desk<'a> {
    /// Creates the desk of a prompt, and adds its operations to the prompt's session.
    pub fn new(engine: &'a Engine, session: Rc<Session>, around: Around) -> Desk<'a> {
        super::operations::install(&session);
        Desk {
            engine,
            session,
            observer: around.observer,
            interrupt: around.interrupt,
            asker: around.asker,
            person: around.person,
            loaded: RefCell::default(),
            last: RefCell::default(),
            waiting: around.waiting,
            pages: RefCell::default(),
            reports: RefCell::default(),
        }
    }

    /// Returns the page of a value that an operation has just returned; its colours are marks.
    pub fn page(&self, value: &Value) -> Option<String> {
        let pages = self.pages.borrow();
        let (_, page) = pages
            .iter()
            .rev()
            .find(|(known, _)| is_same(known, value))?;
        Some(page.clone())
    }

    /// Returns how an exception that an operation threw is shown, if not like any other.
    pub fn report(&self, exception: &Rc<Exception>) -> Option<String> {
        let reports = self.reports.borrow();
        let (_, page) = reports
            .iter()
            .rev()
            .find(|(known, _)| Rc::ptr_eq(known, exception))?;
        Some(page.clone())
    }

    /// Returns the slugs of the loaded flows and of those of the project.
    pub fn slugs(&self) -> Vec<String> {
        let mut slugs: Vec<String> = self.loaded.borrow().keys().cloned().collect();
        slugs.extend(self.project_flows().into_iter().map(|(slug, _)| slug));
        slugs.sort();
        slugs.dedup();
        slugs
    }

    /// Returns the ids of the last runs, newest first.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn recent_runs(&self) -> std::result::Result<Vec<String>, EngineError> {
        let query = RunQuery {
            limit: RECENT,
            ..RunQuery::default()
        };
        let runs = self.engine.summaries(query).await?;
        Ok(runs.into_iter().map(|run| run.id.to_string()).collect())
    }

    /// Returns the options with which the prompt executes runs.
    fn options(&self) -> ExecuteOptions {
        ExecuteOptions {
            interrupt: self.interrupt.clone(),
            asker: self.asker.clone(),
            ..ExecuteOptions::default()
        }
    }

    async fn perform(&self, asked: Asked) -> Result<Value> {
        let Asked { operation, args } = asked;
        let given = |names: usize, count: usize, known: &[&str]| {
            Given::read(name_of(operation), args, (names, count), known)
        };
        match operation {
            Operation::Answer => {
                self.answer(&given(1, 2, &["as", "role", "dedup", "digest", "keep"])?)
                    .await
            }
            Operation::Approve => {
                let known = &["as", "role", "digest", "comment", "value"];
                self.decide(&given(1, 1, known)?, true).await
            }
            Operation::Cancel => self.cancel(&given(1, 1, &["reason", "force"])?).await,
            Operation::CancelWait => {
                self.cancel_wait(&given(1, 1, &["reason", "as", "role"])?)
                    .await
            }
            Operation::Debug => self.debug(&given(1, 2, flows::OPTIONS)?).await,
            Operation::Diff => self.diff(&given(2, 2, &["all"])?).await,
            Operation::Event => {
                self.event(&given(1, 2, &["key", "dedup", "as", "role"])?)
                    .await
            }
            Operation::Events => self.events(&given(1, 1, &["after"])?).await,
            Operation::Export => self.export(&given(1, 1, &["children"])?).await,
            Operation::Flows => Ok(self.flows()),
            Operation::Fork => {
                self.fork(&given(1, 1, &["at", "flow", "set", "reuse", "debug"])?)
                    .await
            }
            Operation::Import => self.import(&given(1, 1, &["new-id"])?).await,
            Operation::Load => self.load(&given(1, 1, &[])?),
            Operation::Locals => self.locals(&given(2, 2, &[])?).await,
            Operation::Next => self.next(&given(1, 2, &["invocation"])?).await,
            Operation::Reject => {
                self.decide(&given(1, 1, &["as", "role", "digest", "reason"])?, false)
                    .await
            }
            Operation::Replay => self.replay(&given(1, 1, &[])?).await,
            Operation::Resume => self.resume(&given(1, 1, &[])?).await,
            Operation::Run => self.run(&given(1, 2, flows::OPTIONS)?).await,
            Operation::Runs => self.runs(&given(0, 0, runs::FILTERS)?).await,
            Operation::Show => self.show(&given(1, 2, &[])?).await,
            Operation::Signal => self.signal(&given(1, 2, &["dedup", "as", "role"])?).await,
            Operation::Wait => self.wait(&given(1, 1, &[])?).await,
            Operation::Waits => {
                self.waits(&given(0, 0, &["run", "flow", "key", "all", "signals"])?)
                    .await
            }
            Operation::Watch => self.watch(&given(1, 2, flows::OPTIONS)?).await,
        }
    }

    /// Remembers how a value is shown to people.
    fn paged(&self, value: Value, page: String) -> Value {
        let mut pages = self.pages.borrow_mut();
        if pages.len() == PAGES {
            pages.pop_front();
        }
        pages.push_back((value.clone(), page));
        value
    }

    /// Returns an exception that is shown as a report.
    fn reported(&self, exception: Exception, report: &Report) -> Signal {
        let exception = Rc::new(exception);
        let mut reports = self.reports.borrow_mut();
        if reports.len() == PAGES {
            reports.pop_front();
        }
        reports.push_back((exception.clone(), report.draw()));
        Signal::Throw(exception)
    }

    /// Returns the exception of a report.
    fn of_report(&self, report: &Report) -> Signal {
        let code = flowstone_engine::codec::code(&report.code);
        let mut exception = Exception::new(Class::EXCEPTION, code, report.message.as_str());
        exception.hints.clone_from(&report.hints);
        self.reported(exception, report)
    }

    /// Finds a run by its id or the beginning of it; without one, it is the last run.
    async fn run_named(&self, given: &Given, idx: usize) -> Result<RunId> {
        let found = match given.name(idx)? {
            Some(prefix) => {
                self.engine
                    .find_run(&prefix)
                    .await
                    .map_err(|error| thrown(&error))?
                    .id
            }
            None => match self.last.borrow().clone() {
                Some(run) => run,
                None => {
                    return Err(Exception::new(
                        Class::ILLEGAL_STATE,
                        "E1553",
                        "no run was started here yet",
                    )
                    .hint("name a run by the beginning of its id; (flow/runs) lists them")
                    .into());
                }
            },
        };
        self.last.replace(Some(found.clone()));
        Ok(found)
    }
}

impl flowstone_engine::Desk for Desk<'_> {
    fn answer(
        &self,
        request: Request,
    ) -> std::result::Result<LocalFuture<'_, Result<Value>>, Request> {
        let asked = request.take::<Asked>()?;
        Ok(Box::pin(self.perform(asked)))
    }

    fn questions(&self) -> LocalFuture<'_, ()> {
        Box::pin(async move {
            if !self.person.answers_waits() {
                return std::future::pending().await;
            }
            loop {
                let wait = self.waiting.next().await;
                match self.asked(&wait).await {
                    Ok(true) => {}
                    Ok(false) | Err(_) => return,
                }
            }
        })
    }
}

fn failed(error: EngineError) -> Signal {
    thrown(&error)
}

fn name_of(operation: Operation) -> &'static str {
    match operation {
        Operation::Answer => "answer",
        Operation::Approve => "approve",
        Operation::Cancel => "cancel",
        Operation::CancelWait => "cancel-wait",
        Operation::Debug => "debug",
        Operation::Diff => "diff",
        Operation::Event => "event",
        Operation::Events => "events",
        Operation::Export => "export",
        Operation::Flows => "flows",
        Operation::Fork => "fork",
        Operation::Import => "import",
        Operation::Load => "load",
        Operation::Locals => "locals",
        Operation::Next => "next",
        Operation::Reject => "reject",
        Operation::Replay => "replay",
        Operation::Resume => "resume",
        Operation::Run => "run",
        Operation::Runs => "runs",
        Operation::Show => "show",
        Operation::Signal => "signal",
        Operation::Wait => "wait",
        Operation::Waits => "waits",
        Operation::Watch => "watch",
    }
}

/// Tells whether two values are one object.
fn is_same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Map(one), Value::Map(other)) => Rc::ptr_eq(one, other),
        (Value::Vector(one), Value::Vector(other)) => Rc::ptr_eq(one, other),
        _ => false,
    }
}
