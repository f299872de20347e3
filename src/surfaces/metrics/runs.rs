//! Watches the runs that a worker executes, for figures of their steps and models.

use std::rc::Rc;
use std::sync::Arc;

use flowstone_engine::ids::RunId;
use flowstone_engine::observer::{Observer, RunEvent};
use flowstone_engine::worker::{Watch, WorkerEvent};
use flowstone_flow::step::{ModelCall, Progress};

use super::Metrics;
use super::labels::{Model, StepEnded, StepRetried, Tokens};

/// Watches a worker for its figures, beside another watch.
pub struct Measured {
    pub metrics: Arc<Metrics>,
    pub watch: Arc<dyn Watch>,
}

impl Watch for Measured {
    fn event(&self, event: &WorkerEvent<'_>) {
        self.watch.event(event);
    }

    fn observer(&self) -> Rc<dyn Observer> {
        Rc::new(MeasuredRuns {
            metrics: self.metrics.clone(),
            observer: self.watch.observer(),
        })
    }
}

struct MeasuredRuns {
    metrics: Arc<Metrics>,
    observer: Rc<dyn Observer>,
}

impl Observer for MeasuredRuns {
    fn event(&self, run: &RunId, event: &RunEvent) {
        self.metrics.of_run(event);
        self.observer.event(run, event);
    }
}

impl Metrics {
    /// Counts an event of a run that is executed here.
    fn of_run(&self, event: &RunEvent) {
        match event {
            RunEvent::StepFinished { step, millis, .. } => {
                self.step_ended(step.kind, "completed", *millis);
            }
            RunEvent::StepFailed { step, millis, .. } => {
                self.step_ended(step.kind, "failed", *millis);
            }
            RunEvent::StepRetrying { step, code, .. } => {
                let labels = StepRetried {
                    r#type: step.kind.to_owned(),
                    error: (*code).to_owned(),
                };
                self.figures.retries.get_or_create(&labels).inc();
            }
            RunEvent::StepProgress { progress, .. } => match progress {
                Progress::ModelCall(call) => self.model_called(call),
                Progress::Text(_)
                | Progress::Thought(_)
                | Progress::Again(_)
                | Progress::Status(_)
                | Progress::Count { .. }
                | Progress::Refused { .. }
                | Progress::Spent { .. } => {}
            },
            RunEvent::Queued { .. }
            | RunEvent::Started { .. }
            | RunEvent::Branches { .. }
            | RunEvent::BranchesEnded { .. }
            | RunEvent::StepStarted(_)
            | RunEvent::StepSleeping { .. }
            | RunEvent::StepWaiting { .. }
            | RunEvent::Log { .. }
            | RunEvent::Emitted { .. }
            | RunEvent::Printed { .. } => {}
        }
    }

    fn step_ended(&self, kind: &str, status: &str, millis: i64) {
        let labels = StepEnded {
            r#type: kind.to_owned(),
            status: status.to_owned(),
        };
        self.figures.step_seconds.observe(&labels, seconds(millis));
    }

    fn model_called(&self, call: &ModelCall) {
        let (provider, model) = (
            call.provider.clone(),
            self.figures.models.label(&call.model),
        );
        for (direction, count) in [("input", call.input_tokens), ("output", call.output_tokens)] {
            let labels = Tokens {
                provider: provider.clone(),
                model: model.clone(),
                direction,
            };
            let count = u64::try_from(count).unwrap_or(0);
            self.figures
                .model_tokens
                .get_or_create(&labels)
                .inc_by(count);
        }
        let labels = Model { provider, model };
        if let Some(usd) = call.usd {
            self.figures
                .model_cost
                .get_or_create(&labels)
                .inc_by(usd.max(0.0));
        }
        self.figures
            .model_seconds
            .observe(&labels, seconds(call.millis));
    }
}

fn seconds(millis: i64) -> f64 {
    millis.max(0) as f64 / 1_000.0
}
