//! The calls of a turn that a person decides about, while the loop waits.

use flowstone_flow::step::StepError;

use super::super::approval::{Approval, Decision, decisions};
use super::super::calls::{Call, Refusal};
use super::super::tools::Shape;
use super::Rounds;

/// How often a wait is opened again for an answer that does not fit.
const MOST_WAITS: usize = 10;

/// A call of a turn, and why it is not performed.
pub(super) struct Judged {
    pub call: Call,
    pub refusal: Option<Refusal>,
    /// The digest of the call of the build kit that a person agreed to.
    pub agreed: Option<String>,
}

impl Judged {
    pub(super) fn of(calls: Vec<Call>) -> Vec<Judged> {
        let judged = calls.into_iter().map(|call| Judged {
            call,
            refusal: None,
            agreed: None,
        });
        judged.collect()
    }

    /// Takes a decision over.
    pub(super) fn decide(&mut self, decision: Decision) {
        match decision {
            Decision::Approve => {}
            Decision::Edit(arguments) => self.call = self.call.edited(arguments),
            Decision::Reject(comment) => self.refusal = Some(Refusal::Rejected { comment }),
        }
    }
}

impl Rounds<'_> {
    /// Waits for the decisions about calls, and takes them over. `ids` are those of the calls.
    pub(super) async fn approved(
        &mut self,
        approval: &Approval,
        ids: &[String],
        judged: &mut [Judged],
    ) -> Result<(), StepError> {
        let is_asked = |it: &&Judged| it.refusal.is_none() && ids.contains(&it.call.id);
        let pending: Vec<Call> = judged
            .iter()
            .filter(is_asked)
            .map(|it| it.call.clone())
            .collect();
        if pending.is_empty() {
            return Ok(());
        }
        let decided = self.decided(approval, &pending).await?;
        for (call, decision) in pending.iter().zip(decided) {
            let own = judged.iter_mut().find(|it| it.call.id == call.id);
            if let Some(own) = own {
                own.decide(decision);
            }
        }
        Ok(())
    }

    /// Asks until each call has a decision that can be carried out.
    async fn decided(
        &self,
        approval: &Approval,
        pending: &[Call],
    ) -> Result<Vec<Decision>, StepError> {
        let pending: Vec<&Call> = pending.iter().collect();
        let request = self.request(approval, &pending);
        let mut problem = None;
        for number in 1..=MOST_WAITS {
            let wait = approval.wait(&request, number, problem.as_deref());
            let answer = match self.cx.perform(wait).await {
                Ok(answer) => answer,
                Err(error) if error.kind == "timeout" => {
                    return Ok(rejected(&pending, "nobody answered in time"));
                }
                Err(error) => return Err(error),
            };
            let decided = decisions(&answer, &pending);
            match decided.and_then(|decided| self.feasible(&pending, decided)) {
                Ok(decided) => return Ok(decided),
                Err(wrong) => problem = Some(wrong),
            }
        }
        Ok(rejected(&pending, "no answer to the request could be used"))
    }

    /// Checks edited arguments against the schemas of their tools.
    pub(super) fn feasible(
        &self,
        pending: &[&Call],
        decided: Vec<Decision>,
    ) -> Result<Vec<Decision>, String> {
        for (call, decision) in pending.iter().zip(&decided) {
            if let (Decision::Edit(arguments), Some(tool)) = (decision, self.tools.find(&call.name))
            {
                // Without a usable schema, only the tool itself checks.
                let exact = Shape::new(&tool.name, &tool.parameters).ok();
                let exact = exact.map_or(Ok(()), |shape| shape.check_as_given(arguments));
                exact
                    .and_then(|()| (tool.call)(arguments))
                    .map_err(|error| {
                        format!(
                            "the arguments for the call `{}`: {}",
                            call.id, error.message
                        )
                    })?;
            }
        }
        Ok(decided)
    }
}

fn rejected(pending: &[&Call], reason: &str) -> Vec<Decision> {
    let reason = || Decision::Reject(Some(reason.to_owned()));
    pending.iter().map(|_| reason()).collect()
}
