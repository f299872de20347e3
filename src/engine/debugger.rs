//! Stopping before the steps of a run, for a person who decides about each.

use std::fmt;
use std::rc::Rc;

use flowstone_lang::value::Value;

use crate::ids::RunId;
use crate::outcome::FailurePlace;
use crate::step::LocalFuture;

/// Who decides about the steps of a run, if anybody does.
#[derive(Clone, Default)]
pub struct Debugger(Option<Rc<dyn DecideStep>>);

/// A step that is about to be performed for the first time.
#[derive(Debug, Clone)]
pub struct StepStop {
    pub run: RunId,
    pub path: String,
    pub kind: &'static str,
    pub title: String,
    /// The config with its defaults, as EDN text without secrets.
    pub config: String,
    pub place: Option<Box<FailurePlace>>,
    /// The locals that the flow has there, by name; those that are data, as EDN text without secrets.
    pub locals: Vec<(String, String)>,
    /// Why the last decision about this step was refused.
    pub problem: Option<String>,
}

/// What to do with a step.
#[derive(Debug, Clone)]
pub enum StepDecision {
    Perform,
    /// The flow gets nil in its place.
    Skip,
    /// The flow gets this value in its place.
    Use(Value),
    /// Perform it with these entries of its config replaced; nil removes an entry.
    Change(Value),
    /// Suspend the run before the step.
    Leave,
}

/// Decides about steps.
pub trait DecideStep {
    /// Decides about one step. Other branches of the run wait meanwhile.
    fn decide(&self, stop: StepStop) -> LocalFuture<'_, StepDecision>;
}

impl Debugger {
    pub fn new(decides: Rc<dyn DecideStep>) -> Debugger {
        Debugger(Some(decides))
    }

    pub(crate) fn is_set(&self) -> bool {
        self.0.is_some()
    }

    pub(crate) async fn decide(&self, stop: StepStop) -> StepDecision {
        match &self.0 {
            Some(decides) => decides.decide(stop).await,
            None => StepDecision::Perform,
        }
    }
}

impl fmt::Debug for Debugger {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self.0 {
            Some(_) => "Debugger(..)",
            None => "Debugger(none)",
        })
    }
}
