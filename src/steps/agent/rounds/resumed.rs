//! `:approval-answer`: a conversation that ends with calls, and a person's answer about them.

use flowstone_flow::flow::name_of;
use flowstone_flow::step::StepError;
use flowstone_lang::value::Value;

use super::super::approval::decisions;
use super::super::calls::{Call, of_reply};
use super::super::result::Ending;
use super::Rounds;
use super::approved::Judged;

impl Rounds<'_> {
    /// Performs the calls at the end of `:messages` as the answer says. Returns an ending if the loop is over.
    ///
    /// # Errors
    /// E1305 when there are no such calls, or the answer does not fit them.
    pub(super) async fn resume(&mut self) -> Result<Option<Ending>, StepError> {
        let given = self.config.given.get("approval-answer");
        let Some(answer) = given.filter(|it| !it.is_nil()) else {
            return Ok(None);
        };
        let last = self.conversation.all().last();
        let last = last.map(|said| said.message.clone()).unwrap_or(Value::Nil);
        let calls = self.open_calls(&last)?;
        let pending: Vec<&Call> = calls.iter().collect();
        refuse_unknown(answer, &pending)?;
        let decided = decisions(answer, &pending)
            .and_then(|decided| self.feasible(&pending, decided))
            .map_err(wrong)?;
        let mut judged = Judged::of(calls);
        for (judged, decision) in judged.iter_mut().zip(decided) {
            judged.decide(decision);
        }
        // The flow answers for its own rule. What the kit asks, a person answers.
        let questions = self.kit_questions(&judged).await;
        self.agree(&mut judged, questions).await?;
        Ok(self.carry_out(&last, judged).await)
    }

    /// Returns the calls of the last message, which the agent performs.
    fn open_calls(&self, last: &Value) -> Result<Vec<Call>, StepError> {
        let role = last.get("role").and_then(name_of);
        let calls = match role.as_deref() {
            Some("assistant") => of_reply(last),
            _ => Vec::new(),
        };
        if calls.is_empty() {
            return Err(wrong("`:messages` do not end with calls".to_owned()).hint(
                "give the `:messages` of the result with the `:approval-request`; the agent needs `:return-messages true`",
            ));
        }
        let is_own = |call: &&Call| self.tools.find(&call.name).is_some();
        match calls.iter().find(|call| !is_own(call)) {
            Some(call) => Err(wrong(format!(
                "the call `{}` is of `{}`, which is not a tool that this agent performs",
                call.id, call.name
            ))),
            None => Ok(calls),
        }
    }
}

/// Refuses decisions about calls that are not in the message.
fn refuse_unknown(answer: &Value, pending: &[&Call]) -> Result<(), StepError> {
    let given = answer.get("decisions").and_then(crate::json::items);
    for decision in given.iter().flatten() {
        let id = decision.get("tool-call-id").and_then(Value::as_str);
        if !pending.iter().any(|call| Some(call.id.as_str()) == id) {
            let id = id.unwrap_or_default();
            return Err(wrong(format!("there is no call `{id}` to decide about")));
        }
    }
    Ok(())
}

fn wrong(message: String) -> StepError {
    StepError::new("E1305", "invalid", format!("`:approval-answer`: {message}"))
}
