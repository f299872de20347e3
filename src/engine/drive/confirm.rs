//! `:confirm`: a person says whether a step may run.

use flowstone_lang::value::Value;

use super::call::StepCall;
use super::question::{Question, not_understood};
use super::{Answer, Driver};
use crate::codec;
use crate::error::EngineError;
use crate::flow::name_of;
use crate::gate::Gate;
use crate::history::{Approval, Recorded};
use crate::step::StepError;

impl Driver<'_> {
    /// Begins a step, once it may.
    pub(super) async fn start_step(&self, call: &StepCall<'_>, recorded: Recorded) -> Answer {
        match &call.confirm {
            Some(gate) if recorded.approval != Approval::Given => {
                Box::pin(self.confirm(call, recorded, gate, None)).await
            }
            _ => self.attempts(call, recorded).await,
        }
    }

    async fn confirm(
        &self,
        call: &StepCall<'_>,
        mut recorded: Recorded,
        gate: &Gate,
        problem: Option<String>,
    ) -> Answer {
        let message = problem.or_else(|| gate.message.clone());
        let question = Question {
            timer: "confirm",
            about: "confirm",
            message: message.unwrap_or_else(|| {
                format!("may the `:{}` step `{}` run?", call.spec.kind, call.title)
            }),
            actions: &gate.actions,
            gate: Some(gate),
            shown: vec![("request", call.shown_request())],
        };
        self.pose(call, &mut recorded, question).await?;
        self.confirmed(call, recorded).await
    }

    /// Waits for the answer, and does what it says.
    pub(super) async fn confirmed(&self, call: &StepCall<'_>, mut recorded: Recorded) -> Answer {
        let gate = gate(call.confirm.as_ref(), "confirm")?;
        let reply = self.reply(call, &recorded, gate.on_timeout).await?;
        match &*reply.action {
            "approve" => {
                recorded.approval = Approval::Given;
                recorded.timer = None;
                Box::pin(self.attempts(call, recorded)).await
            }
            "reject" | "timeout" => {
                let error = refused(call, "confirm", &reply.text);
                recorded.approval = Approval::Refused(reply.text);
                Box::pin(self.failed(call, recorded, error)).await
            }
            _ => {
                let problem = Some(not_understood(&reply));
                Box::pin(self.confirm(call, recorded, gate, problem)).await
            }
        }
    }
}

/// Returns the gate that a journaled question belongs to: the config is the same, because its digest is.
pub(super) fn gate<'c>(gate: Option<&'c Gate>, key: &str) -> Result<&'c Gate, EngineError> {
    gate.ok_or_else(|| EngineError::Internal(format!("a step waits without `:{key}`")))
}

/// Returns the error of a step that was rejected, or that nobody decided about. `answer` is EDN text.
pub(super) fn refused(call: &StepCall<'_>, key: &'static str, answer: &str) -> StepError {
    let answer = codec::decode(answer).unwrap_or(Value::Nil);
    let silent = answer.get("reason") == Some(&Value::keyword("timeout"));
    let action = name_of(answer.get("action").unwrap_or(&answer));
    let title = &call.title;
    if action.as_deref() == Some("timeout") {
        return StepError::new(
            "E0523",
            "timeout",
            format!("nobody decided about the `:{key}` of `{title}` in time"),
        )
        .hint("`:on-timeout :approve` or `:reject` says what silence means");
    }
    let words = ["reason", "comment", "message"]
        .into_iter()
        .find_map(|key| answer.get(key).and_then(Value::as_str));
    let message = match (words, silent) {
        (Some(words), _) => format!("`{title}` was rejected: {words}"),
        (None, true) => format!("`{title}` was rejected, because nobody answered in time"),
        (None, false) => format!("`{title}` was rejected"),
    };
    StepError::new("E0533", "rejected", message)
        .with("question", Value::keyword(key))
        .with("answer", answer)
}
