//! Calls of the build kit that a person has to agree to: the agent waits in place for the answer.

use flowstone_flow::step::StepError;

use super::super::calls::{AT_ONCE, Call};
use super::super::kit::{self, Question};
use super::super::tool::ToolKind;
use super::Rounds;
use super::approved::Judged;

impl Rounds<'_> {
    /// Asks the kit which of the calls need a person, and what that person is asked.
    pub(super) async fn kit_questions(&self, judged: &[Judged]) -> Vec<Question> {
        let open = judged.iter().filter(|it| it.refusal.is_none());
        let calls = open.map(|it| &it.call);
        self.questions(calls.filter(|call| self.may_need_a_person(call)))
            .await
    }

    fn may_need_a_person(&self, call: &Call) -> bool {
        let tool = self.tools.find(&call.name);
        tool.is_some_and(|tool| {
            let is_offered =
                self.selection.offers(&tool.name) && !self.tools.is_deferred(&tool.name);
            tool.kind == ToolKind::Kit
                && is_offered
                && !call.is_cut
                && (tool.needs_approval)(&call.arguments)
        })
    }

    async fn questions<'c>(&self, calls: impl Iterator<Item = &'c Call>) -> Vec<Question> {
        let calls: Vec<&Call> = calls.collect();
        let steps = calls.iter().map(|call| kit::question(call)).collect();
        let answers = self.cx.perform_all(steps, AT_ONCE).await;
        let answers = answers.into_iter().map(|performed| performed.result);
        let asked = calls.iter().zip(answers);
        asked
            .filter_map(|(call, answer)| kit::asked(call, &answer))
            .collect()
    }

    /// Waits for a person's decisions about calls of the kit, and takes them over. An answer holds for the call as it was shown:
    /// of arguments that a person changed, what they agreed to is read again.
    ///
    /// # Errors
    /// When the wait fails.
    pub(super) async fn agree(
        &mut self,
        judged: &mut [Judged],
        questions: Vec<Question>,
    ) -> Result<(), StepError> {
        let is_open = |id: &str| {
            let own = judged.iter().find(|it| it.call.id == id);
            own.is_some_and(|it| it.refusal.is_none())
        };
        let asked: Vec<Question> = questions
            .into_iter()
            .filter(|it| is_open(&it.call))
            .collect();
        if asked.is_empty() {
            return Ok(());
        }
        let texts: Vec<&str> = asked.iter().map(|it| it.text.as_str()).collect();
        let approval = self.config.approval.of_kit(&texts);
        let ids: Vec<String> = asked.iter().map(|it| it.call.clone()).collect();
        self.approved(&approval, &ids, judged).await?;
        let edited = judged.iter().filter(|it| it.refusal.is_none());
        let edited = edited.filter(|it| it.call.is_edited && ids.contains(&it.call.id));
        let again = self.questions(edited.map(|it| &it.call)).await;
        for judged in judged.iter_mut().filter(|it| it.refusal.is_none()) {
            let of_call = |it: &&Question| it.call == judged.call.id;
            let agreed = again
                .iter()
                .find(of_call)
                .or_else(|| asked.iter().find(of_call));
            judged.agreed = agreed.map(|it| it.digest.clone());
        }
        Ok(())
    }
}
