//! Deliveries that answer waits and start runs of several flows, in one transaction.

use flowstone_lang::value::Value;

use crate::codec;
use crate::engine::{Engine, StartOptions};
use crate::error::EngineError;
use crate::flow::LoadedFlow;
use crate::ports::{
    Completion, Delivered, Delivery, Durability, NewReceipt, PastDelivery, Target, WaitAnswer,
    WaitEnding, WaitRow, WaitsAnswer,
};
use crate::start::{StartedRun, started, with_rules};
use crate::waits::refusal;

/// An answer to waits that comes with a delivery.
#[derive(Debug, Clone)]
pub struct EventAnswer {
    pub target: Target,
    pub payload: Value,
    /// The workspace of the sender, which reaches waits of its own runs only; `None`: all waits.
    pub workspace: Option<String>,
    /// The sender may not decide for a person.
    pub is_unattended: bool,
    /// Whether it is kept for a wait that opens later.
    pub keep: bool,
}

/// What a delivery did.
#[derive(Debug, Default)]
pub struct Published {
    pub runs: Vec<StartedRun>,
    pub waits: Vec<WaitRow>,
    pub kept: bool,
    /// Why flows were not started and waits not answered.
    pub refused: Vec<EngineError>,
}

/// The outcome of a delivery.
#[derive(Debug)]
pub enum Publication {
    Taken(Published),
    /// It came before.
    Known(PastDelivery),
}

impl Engine {
    /// Answers waits and starts runs, unless one of the receipts is known.
    ///
    /// # Errors
    /// When the store cannot be written. Flows that refuse the input are in the outcome.
    pub async fn publish(
        &self,
        starts: Vec<(&LoadedFlow, StartOptions)>,
        answers: Vec<EventAnswer>,
        receipts: Vec<NewReceipt>,
    ) -> Result<Publication, EngineError> {
        let now_ms = self.now_ms();
        let mut published = Published::default();
        let (mut runs, mut flows) = (Vec::new(), Vec::new());
        for (loaded, options) in starts {
            let flow = &loaded.flow;
            let prepared = self.new_run(loaded, options);
            let prepared = prepared.and_then(|(run, input)| with_rules(flow, &input, run));
            match prepared {
                Ok((run, rules)) => {
                    flows.push((flow, run.key.clone(), run.now_ms));
                    runs.push((run, rules));
                }
                Err(error) => published.refused.push(error),
            }
        }
        let mut completions = Vec::new();
        for answer in answers {
            completions.push(Completion {
                target: answer.target,
                workspace: answer.workspace,
                answer: WaitAnswer {
                    payload: codec::encode(&answer.payload)?,
                    ending: WaitEnding::Answered,
                    by: None,
                    roles: Vec::new(),
                    digest: None,
                    is_unattended: answer.is_unattended,
                },
                dedup: None,
                keep: answer.keep,
                durability: Durability::Full,
                rules: self.services.answer_rules,
                now_ms,
            });
        }
        let delivery = Delivery {
            receipts,
            answers: completions,
            runs,
            now_ms,
        };
        let (answers, admissions) = match self.stores().queue.deliver(delivery).await? {
            Delivered::Known(past) => return Ok(Publication::Known(past)),
            Delivered::Taken { answers, runs } => (answers, runs),
        };
        for (admission, (flow, key, now_ms)) in admissions.into_iter().zip(flows) {
            match started(admission, &flow.slug, key) {
                Ok(run) => {
                    self.send_ends(&run.replaced, now_ms).await?;
                    published.runs.push(run);
                }
                Err(error) => published.refused.push(error),
            }
        }
        for answer in answers {
            published.note(answer);
        }
        Ok(Publication::Taken(published))
    }
}

impl Published {
    fn note(&mut self, answer: WaitsAnswer) {
        match answer {
            WaitsAnswer::Completed { waits, refused } => {
                self.waits.extend(waits);
                self.refused.extend(refused.iter().map(refusal));
            }
            WaitsAnswer::Kept => self.kept = true,
            WaitsAnswer::Refused(refused) => self.refused.extend(refused.iter().map(refusal)),
            // Nothing waits any more; a delivery that finds nothing is not an error of its sender.
            WaitsAnswer::Duplicate
            | WaitsAnswer::AlreadyDecided(_)
            | WaitsAnswer::Ambiguous(_)
            | WaitsAnswer::Missing => {}
        }
    }
}
