//! The calls of one turn: hooks, approval, and execution.

use flowstone_flow::step::{NestedRequest, Progress, StepError};
use flowstone_lang::value::Value;

use super::super::approval::Approval;
use super::super::calls::{AT_ONCE, Answered, Call, Decision, Refusal};
use super::super::deferred;
use super::super::hooks::{When, Wish};
use super::super::notes::facts;
use super::super::result::Ending;
use super::super::tool::{Tool, ToolKind};
use super::super::trace::Called;
use super::Rounds;
use super::approved::Judged;

/// Number of consecutive turns with only repeated calls after which the model must answer.
const FUTILE: u32 = 2;

/// Why no more calls are allowed, and the message for the model.
type Over = (&'static str, &'static str);

impl Rounds<'_> {
    /// Performs the calls of a turn. Returns an ending if the loop is over.
    pub(super) async fn batch(
        &mut self,
        reply: &Value,
        calls: Vec<Call>,
    ) -> Result<Option<Ending>, StepError> {
        self.batch_with(reply, calls, &[]).await
    }

    /// Performs the calls of a turn. `others` are further calls of the reply, which are answered elsewhere.
    pub(super) async fn batch_with(
        &mut self,
        reply: &Value,
        calls: Vec<Call>,
        others: &[Call],
    ) -> Result<Option<Ending>, StepError> {
        let proposed = Value::vector(calls.iter().map(Call::proposed));
        if let Some(ending) = self.hook(When::Before, proposed).await {
            return Ok(Some(ending.or_said(reply)));
        }
        let names: Vec<&str> = calls.iter().map(|call| call.name.as_str()).collect();
        if let Some(stopped) = self.extras.gate(self.cx, &names) {
            return Ok(Some(Ending::stopped(reply, &stopped)));
        }
        let mut judged = Judged::of(calls);
        self.before_each(&mut judged).await;
        if let Some(request) = self.approve(&mut judged).await? {
            return Ok(Some(Ending::approval(reply, request)));
        }
        let calls: Vec<Call> = judged.iter().map(|it| it.call.clone()).collect();
        self.conversation
            .add_reply(reply, &in_order(reply, &calls, others));
        Ok(self.carry_out(reply, judged).await)
    }

    /// Performs calls, and adds their results. Returns an ending if the loop is over.
    pub(super) async fn carry_out(&mut self, reply: &Value, judged: Vec<Judged>) -> Option<Ending> {
        let (mut answered, over) = self.perform(judged).await;
        self.load(&answered);
        self.after_each(&mut answered).await;
        let stopped = answered.iter().find_map(|it| it.request.clone());
        let stopped = stopped.filter(|_| self.config.approval.stops_below());
        self.conversation.results(&answered);
        let last = Value::vector(answered.iter().map(Answered::record));
        for answered in &answered {
            self.note(answered);
        }
        if let Some(request) = stopped {
            return Some(Ending::approval(reply, request));
        }
        if let Some(ending) = self.hook(When::After, last).await {
            return Some(ending.or_said(reply));
        }
        if let Some(reason) = self.over_budget() {
            return Some(Ending::cut(reply, reason));
        }
        if let Some((reason, instruction)) = over {
            self.close(reason, instruction);
        }
        None
    }

    /// Offers the tools that the model has found.
    fn load(&mut self, answered: &[Answered]) {
        for found in answered.iter().filter(|it| it.success) {
            let tool = self.tools.find(&found.call.name);
            if tool.is_some_and(|tool| tool.kind == ToolKind::Search) {
                self.tools.load(&deferred::loaded(&found.result));
            }
        }
    }

    /// Has a person approve the calls that need it. Returns the request if the flow asks.
    async fn approve(&mut self, judged: &mut [Judged]) -> Result<Option<Value>, StepError> {
        let open = judged.iter().filter(|it| it.refusal.is_none());
        let calls: Vec<Call> = open.map(|it| it.call.clone()).collect();
        let plan_step = self.extras.plan_step();
        let config = self.config;
        let asking = config
            .approval
            .asking(self.tools, &calls, plan_step.as_deref());
        if let Some((approval, pending)) = asking.iter().find(|(approval, _)| !approval.in_place) {
            return Ok(Some(self.request(approval, pending)));
        }
        let questions = self.kit_questions(judged).await;
        for (approval, pending) in asking {
            // The person who is asked for the kit has not to be asked for the agent's own rule, too.
            let is_asked_there = |call: &Call| {
                approval.is(&config.approval) && questions.iter().any(|it| it.call == call.id)
            };
            let pending = pending.iter().filter(|call| !is_asked_there(call));
            let ids: Vec<String> = pending.map(|call| call.id.clone()).collect();
            self.approved(approval, &ids, judged).await?;
        }
        self.agree(judged, questions).await?;
        Ok(None)
    }

    /// Calls a hook of the flow. Returns an ending if the hook ends the loop.
    async fn hook(&mut self, when: When, calls: Value) -> Option<Ending> {
        let key = match when {
            When::Before => "proposed-tool-calls",
            When::After => "last-results",
        };
        let sees = facts([
            ("iteration", Value::Int(self.record.turns)),
            ("tools", self.tools.for_hooks()),
            (
                "tool-calls",
                Value::vector(self.record.calls.iter().cloned()),
            ),
            (key, calls),
            ("usage", self.record.usage.value()),
        ]);
        let hooks = &self.config.hooks;
        match hooks.call(self.cx, when, self.tools, sees).await {
            Ok(Wish::GoOn) => None,
            Ok(Wish::Tools(tools)) => {
                *self.tools = tools;
                None
            }
            Ok(Wish::Abort { content, reason }) => Some(Ending::abort(content, &reason)),
            Err(error) => {
                let warning = self.cx.redactor().text(format!(
                    "`:{}` failed and is ignored: {}",
                    when.name(),
                    error.message
                ));
                tracing::warn!(target: "flowstone::agent", "{warning}");
                self.extras.warn(self.cx, warning);
                None
            }
        }
    }

    /// Returns the approval request for these calls.
    pub(super) fn request(&self, approval: &Approval, pending: &[&Call]) -> Value {
        approval.request(self.cx.idempotency_key(), self.record.turns, pending)
    }

    /// Performs the accepted calls concurrently, and answers the others.
    async fn perform(&mut self, judged: Vec<Judged>) -> (Vec<Answered>, Option<Over>) {
        let mut decided = Vec::new();
        let mut steps = Vec::new();
        for Judged {
            call,
            refusal,
            agreed,
        } in judged
        {
            let decision = match refusal {
                Some(refusal) => {
                    self.tally.reject(&call);
                    Decision::Refuse(refusal)
                }
                None => {
                    self.tally
                        .decide(&call, (self.tools, &self.selection), &self.config.limits)
                }
            };
            let refusal = match decision {
                Decision::Perform(step) => {
                    steps.push(match agreed {
                        Some(digest) => step.agreed(digest),
                        None => step,
                    });
                    None
                }
                Decision::Refuse(refusal) => {
                    self.cx.emit(Progress::Refused {
                        what: call.name.clone(),
                        why: refusal.message(),
                    });
                    Some(refusal)
                }
            };
            decided.push((call, refusal));
        }
        let over = self.over(&decided);
        let rules = self.config.approval.rules();
        let steps = self.with_allowances(&decided, steps).into_iter();
        let steps = steps.map(|step| step.with_rules(rules.clone())).collect();
        let mut performed = self.cx.perform_all(steps, AT_ONCE).await.into_iter();
        let mut answered = Vec::new();
        for (call, refusal) in decided {
            match refusal {
                Some(refusal) => {
                    let tool = self.tools.find(&call.name);
                    answered.push(Answered::refused(call, tool, &refusal));
                }
                None => {
                    if let Some(performed) = performed.next() {
                        let tool = self.tools.find(&call.name);
                        answered.push(Answered::performed(call, tool, performed));
                    }
                }
            }
        }
        (answered, over)
    }

    /// Divides the remaining tokens equally among the concurrent calls that may call models.
    fn with_allowances(
        &self,
        decided: &[(Call, Option<Refusal>)],
        steps: Vec<NestedRequest>,
    ) -> Vec<NestedRequest> {
        let Some(left) = self.left() else {
            return steps;
        };
        let asks = |call: &Call| self.tools.find(&call.name).is_some_and(Tool::may_ask);
        let performed = decided.iter().filter(|(_, refusal)| refusal.is_none());
        let asking: Vec<bool> = performed.map(|(call, _)| asks(call)).collect();
        let count = asking.iter().filter(|asks| **asks).count();
        let share = (left / i64::try_from(count).unwrap_or(i64::MAX).max(1)).max(1);
        let steps = steps.into_iter().zip(asking);
        steps
            .map(|(step, asks)| step.with_allowance(asks.then_some(share)))
            .collect()
    }

    /// Tells whether the calls of a turn are the last ones.
    fn over(&mut self, decided: &[(Call, Option<Refusal>)]) -> Option<Over> {
        let is_repeated =
            |refusal: &Option<Refusal>| matches!(refusal, Some(Refusal::Repeated { .. }));
        self.futile = match decided.iter().all(|(_, refusal)| is_repeated(refusal)) {
            true => self.futile + 1,
            false => 0,
        };
        let is_too_many =
            |refusal: &Option<Refusal>| matches!(refusal, Some(Refusal::TooMany { .. }));
        if decided.iter().any(|(_, refusal)| is_too_many(refusal)) {
            return Some((
                "max-tool-calls",
                "You have used up the calls of tools of this run.",
            ));
        }
        (self.futile >= FUTILE).then_some((
            "max-repeated-tool-calls",
            "You repeat calls that you have made before.",
        ))
    }

    /// Records the outcome of a call.
    pub(super) fn note(&mut self, answered: &Answered) {
        self.record.call(answered);
        self.extras.called(&Called {
            id: &answered.call.id,
            name: &answered.call.name,
            arguments: &answered.call.arguments,
            result: &answered.result,
            success: answered.success,
            millis: answered.millis,
        });
    }
}

/// Returns all calls of a reply in the order in which the model made them.
fn in_order(reply: &Value, calls: &[Call], others: &[Call]) -> Vec<Call> {
    if others.is_empty() {
        return calls.to_vec();
    }
    let made = super::super::calls::of_reply(reply);
    let of = |call: &Call| {
        let mut all = calls.iter().chain(others);
        all.find(|it| it.id == call.id).cloned()
    };
    made.iter().filter_map(of).collect()
}
