//! The person at a prompt, who is asked and told things while an operation is performed.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use flowstone_engine::ids::RunId;
use flowstone_engine::observer::{Observer, RunEvent};
use flowstone_engine::ports::WaitRow;
use tokio::sync::Notify;

use crate::cli::progress::seconds;

/// A person who can be asked: at the terminal, or through a client of the network prompts.
pub trait Person {
    /// Asks for a text, and waits for it. `None`: the person leaves the question open.
    fn ask(&self, question: &str) -> Option<String>;

    /// Tells whether questions of runs are asked here. A program on a pipe is not asked: its next line may be another
    /// form.
    fn answers_waits(&self) -> bool;

    /// Reports something, as a line of its own.
    fn tell(&self, text: &str);
}

/// Notes which steps wait for answers, and passes all events on.
pub struct Waiting {
    observer: Rc<dyn Observer>,
    opened: RefCell<VecDeque<WaitRow>>,
    news: Notify,
}

impl Waiting {
    pub fn new(observer: Rc<dyn Observer>) -> Rc<Waiting> {
        Rc::new(Waiting {
            observer,
            opened: RefCell::default(),
            news: Notify::new(),
        })
    }

    /// Returns the next question that a step waits for.
    pub async fn next(&self) -> WaitRow {
        loop {
            let next = self.opened.borrow_mut().pop_front();
            match next {
                Some(wait) => return wait,
                None => self.news.notified().await,
            }
        }
    }
}

impl Observer for Waiting {
    fn event(&self, run: &RunId, event: &RunEvent) {
        self.observer.event(run, event);
        if let RunEvent::StepWaiting { wait, .. } = event
            && wait.is_question()
        {
            self.opened.borrow_mut().push_back(WaitRow::clone(wait));
            self.news.notify_one();
        }
    }
}

/// Reports the progress of runs in plain lines.
pub struct Lines<P>(pub P);

impl<P: Fn(&str)> Observer for Lines<P> {
    fn event(&self, _run: &RunId, event: &RunEvent) {
        let tell = &self.0;
        match event {
            RunEvent::StepFinished { step, millis, .. } => {
                let time = seconds(*millis);
                tell(&format!("✓ {} :{}  {time}", step.path, step.kind));
            }
            RunEvent::StepFailed {
                step,
                code,
                message,
                ..
            } => tell(&format!("✗ {} :{}  {code} {message}", step.path, step.kind)),
            RunEvent::StepRetrying { step, message, .. } => {
                tell(&format!(
                    "↻ {} :{}  again after: {message}",
                    step.path, step.kind
                ));
            }
            RunEvent::StepSleeping { step, .. } => {
                tell(&format!("… {} :{}  sleeps", step.path, step.kind));
            }
            RunEvent::StepWaiting { step, wait } => {
                tell(&format!(
                    "… {} :{}  waits for {}",
                    step.path, step.kind, wait.key
                ));
            }
            RunEvent::Log { level, message, .. } => tell(&format!("{level} {message}")),
            RunEvent::Printed { text } => tell(text.trim_end_matches('\n')),
            RunEvent::Queued { .. }
            | RunEvent::Started { .. }
            | RunEvent::Branches { .. }
            | RunEvent::BranchesEnded { .. }
            | RunEvent::StepStarted(_)
            | RunEvent::StepProgress { .. }
            | RunEvent::Emitted { .. } => {}
        }
    }
}
