//! Hands the text of models to those who read it while it is produced.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

use crate::engine::Engine;
use crate::ids::RunId;
use crate::observer::{Observer, RunEvent};
use crate::ports::Live;
use crate::step::Progress;

/// Adds what models say to the texts in progress. It gets events without secrets.
pub(crate) struct LiveObserver {
    run: RunId,
    observer: Rc<dyn Observer>,
    live: Arc<dyn Live>,
    /// Some step of the run has sent text.
    has_text: Cell<bool>,
}

impl LiveObserver {
    /// Returns an observer that hands all events on.
    pub(crate) fn over(
        engine: &Engine,
        run: &RunId,
        observer: Rc<dyn Observer>,
    ) -> Rc<dyn Observer> {
        Rc::new(LiveObserver {
            run: run.clone(),
            observer,
            live: engine.stores().live.clone(),
            has_text: Cell::new(false),
        })
    }
}

impl Observer for LiveObserver {
    fn event(&self, run: &RunId, event: &RunEvent) {
        match event {
            RunEvent::StepProgress { path, progress } => match progress {
                Progress::Text(text) => {
                    self.has_text.set(true);
                    self.live.add(run, &path.to_string(), text);
                }
                Progress::Again(_) => self.live.clear(run, &path.to_string()),
                Progress::Thought(_)
                | Progress::Status(_)
                | Progress::Count { .. }
                | Progress::Refused { .. }
                | Progress::Spent { .. }
                | Progress::ModelCall(_) => {}
            },
            RunEvent::StepStarted(step)
            | RunEvent::StepFinished { step, .. }
            | RunEvent::StepFailed { step, .. }
            | RunEvent::StepRetrying { step, .. } => {
                if self.has_text.get() {
                    self.live.clear(run, &step.path.to_string());
                }
            }
            RunEvent::Queued { .. }
            | RunEvent::Started { .. }
            | RunEvent::Branches { .. }
            | RunEvent::BranchesEnded { .. }
            | RunEvent::StepSleeping { .. }
            | RunEvent::StepWaiting { .. }
            | RunEvent::Log { .. }
            | RunEvent::Emitted { .. }
            | RunEvent::Printed { .. } => {}
        }
        self.observer.event(run, event);
    }
}

impl Drop for LiveObserver {
    fn drop(&mut self) {
        self.live.clear_run(&self.run);
    }
}
