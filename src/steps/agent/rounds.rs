//! The loop: a turn of the model, then the calls that it requests, until there is an answer or a limit is reached.

mod agreed;
mod approved;
mod batch;
mod controlled;
mod each;
mod resumed;
mod turn;

use std::rc::Rc;

use flowstone_flow::step::{Progress, StepContext, StepError};
use flowstone_lang::value::Value;

use super::calls::{self, Call, Tally};
use super::compact::Measured;
use super::config::{Config, Kind};
use super::control::{Control, Selection};
use super::conversation::{Conversation, Said};
use super::extras::LoopExtras;
use super::inputs;
use super::kit::Kit;
use super::knowledge::Knowledge;
use super::limits::Budget;
use super::notes::{facts, shortened, with};
use super::outside::ClientTool;
use super::platform;
use super::prompt;
use super::result::{Ending, Record, is_answered};
use super::servers;
use super::skills::Skills;
use super::staying::stay;
use super::thread::Thread;
use super::tools;
use super::toolset::Toolset;
use crate::llm::ESTIMATED;

/// Runs a loop to its end. Its initial state is boxed, because thousands of agents may wait for their models at once.
pub(super) async fn run(cx: &StepContext, kind: Kind, given: Value) -> Result<Value, StepError> {
    let mut start = Box::pin(start(cx, kind, given)).await?;
    let mut rounds = Rounds::new(cx, &mut start);
    let ended = rounds.go().await;
    rounds.warn_of_estimates();
    let (record, mut conversation) = (rounds.record, rounds.conversation);
    let Start {
        config,
        extras,
        thread,
        ..
    } = &mut *start;
    match ended {
        Ok(ending) => {
            if let Some(warning) = ending.without_answer() {
                extras.warn(cx, warning);
            }
            conversation.finish(ending.leaves_calls() || record.has_handed_over());
            let mut result = record.result(ending);
            if config.returns_messages {
                let kept = conversation.kept().map(|said| said.message.clone());
                result = with(&result, [("messages", Value::vector(kept))]);
            }
            if let Some(thread) = thread.as_ref().filter(|_| is_answered(&result)) {
                let kept = Box::pin(thread.keep(cx, conversation.kept())).await;
                if let Err(error) = kept {
                    extras.warn(cx, format!("the thread was not kept: {}", error.message));
                }
            }
            Ok(Box::pin(extras.after(cx, &config.given, result)).await)
        }
        Err(error) => {
            let error = match record.usage.total() {
                0 => error,
                _ => error.with("usage", record.usage.value()),
            };
            let so_far = record.result(Ending::failed());
            Err(Box::pin(extras.failed(cx, &config.given, so_far, error)).await)
        }
    }
}

/// The initial state of a loop.
struct Start {
    config: Config,
    extras: LoopExtras,
    tools: Toolset,
    conversation: Vec<Said>,
    thread: Option<Thread>,
    budget: Option<Budget>,
}

async fn start(cx: &StepContext, kind: Kind, given: Value) -> Result<Box<Start>, StepError> {
    let mut config = Config::read(cx, kind, given)?;
    config.known_inputs = inputs::with_types(cx, &config.inputs).await?;
    let mut extras = LoopExtras::read(cx, &config.given)?;
    let mut tools = Toolset::read(cx, &config.envelope).await?;
    if let Some(given) = config.given.get("http-tools").filter(|it| !it.is_nil()) {
        tools.add_named(tools::of_http(given, tools::most_chars(cx))?)?;
    }
    let mut of_servers = None;
    if let Some(given) = config.given.get("mcp-tools").filter(|it| !it.is_nil()) {
        let listed = servers::of(cx, given).await?;
        for failure in listed.servers.iter().filter_map(|it| it.failure.clone()) {
            extras.warn(cx, failure);
        }
        of_servers = Some((listed, tools.count()));
    }
    if let Some(given) = config.given.get("platform-tools").filter(|it| !it.is_nil()) {
        tools.add_named(platform::of(given, tools::most_chars(cx))?)?;
    }
    let kit = Box::pin(Kit::of(cx, &config.envelope.kit)).await?;
    tools.add_named(kit.tools)?;
    let outside = config.given.get("client-tools").filter(|it| !it.is_nil());
    tools.add_outside(ClientTool::read_all(outside)?)?;
    let knowledge = config.given.get("knowledge").filter(|it| !it.is_nil());
    let knowledge = knowledge.map(Knowledge::read).transpose()?;
    if let Some(knowledge) = &knowledge {
        tools.add_named(knowledge.tools()?)?;
    }
    tools.add(extras.tools());
    let given = |key: &str| config.given.get(key).filter(|it| !it.is_nil());
    let skills = Skills::open(cx, given("skills")).await?;
    tools.add_named(skills.tool(cx)?.into_iter().collect())?;
    if let Some((listed, at)) = of_servers {
        for warning in tools.add_servers(listed, at) {
            extras.warn(cx, warning);
        }
    }
    let mut always = config.control.names();
    always.extend(
        config
            .required_names(&tools)
            .iter()
            .map(|name| Rc::from(&**name)),
    );
    tools.defer(given("defer-tools"), &always)?;
    controlled::check_names(&config.control, &tools, config.hooks.is_empty())?;
    let before = extras.before(cx).await?;
    let budgets = [Budget::enclosing(cx), before.budget];
    let budget = config.limits.budget.into_iter();
    let budget = budget.chain(budgets.into_iter().flatten());
    let more = [kit.playbook, skills.notice(), before.memory];
    let more: Vec<String> = more.into_iter().flatten().collect();
    let mut prompt = prompt::opening(cx, &config, &tools, &more)?;
    if let Some(knowledge) = &knowledge {
        prompt.recalled = knowledge.recall(cx, &prompt.asked).await?;
    }
    let mut thread = given("thread").map(|it| Thread::read(cx, it)).transpose()?;
    let earlier = match &mut thread {
        Some(thread) => thread.open(cx).await?,
        None => Vec::new(),
    };
    Ok(Box::new(Start {
        budget: budget.min_by_key(|budget| budget.tokens),
        config,
        extras,
        tools,
        conversation: prompt.with(earlier),
        thread,
    }))
}

/// A running loop.
struct Rounds<'a> {
    cx: &'a StepContext,
    config: &'a Config,
    extras: &'a mut LoopExtras,
    tools: &'a mut Toolset,
    conversation: Conversation,
    tally: Tally,
    record: Record,
    /// The tightest of the limits on tokens.
    budget: Option<Budget>,
    /// How many more wrong answers are returned to the model.
    repairs: i64,
    /// The reason why tools are no longer offered.
    closing: Option<&'static str>,
    /// Whether the turn is for an answer in the required format.
    is_finishing: bool,
    /// Consecutive turns in which every tool call exceeded its limit.
    futile: u32,
    control: Control,
    /// What holds in the current turn.
    selection: Selection,
    /// Whether the model was asked again for a call that it must make.
    is_reminded: bool,
    /// Whether the calls of the turn before were refused, because it required another one.
    is_owed: bool,
    measured: Measured,
    /// Whether a summary failed: it is not tried again.
    is_uncompactable: bool,
}

impl<'a> Rounds<'a> {
    fn new(cx: &'a StepContext, start: &'a mut Start) -> Rounds<'a> {
        Rounds {
            cx,
            config: &start.config,
            extras: &mut start.extras,
            tools: &mut start.tools,
            conversation: Conversation::new(std::mem::take(&mut start.conversation)),
            tally: Tally::default(),
            record: Record::default(),
            budget: start.budget,
            repairs: start.config.answer.repairs,
            closing: None,
            is_finishing: false,
            futile: 0,
            control: start.config.control.clone(),
            selection: Selection::all(),
            is_reminded: false,
            is_owed: false,
            measured: Measured::default(),
            is_uncompactable: false,
        }
    }

    async fn go(&mut self) -> Result<Ending, StepError> {
        if let Some(ending) = self.resume().await? {
            return Ok(ending);
        }
        if self.control.is_set {
            return self.go_controlled().await;
        }
        loop {
            // This is the last turn, except for repairs of the answer.
            let is_last = self.record.turns >= self.config.limits.turns;
            if is_last && !self.is_finishing {
                self.close("max-iterations", "You have used up the turns of this run.");
            }
            let reply = self.turn().await?;
            let calls = calls::of_reply(&reply);
            if calls.is_empty() {
                match self.answered(&reply)? {
                    Some(ending) => return Ok(ending),
                    None => continue,
                }
            }
            if calls.iter().any(|call| self.tools.is_client(&call.name)) {
                let calls = calls.iter().map(Call::proposed);
                self.record.hand_over(Value::vector(calls));
                return Ok(Ending::answer(&reply));
            }
            if let Some(reason) = self.closing.or(is_last.then_some("max-iterations")) {
                return self.cut(&reply, reason);
            }
            if let Some(reason) = self.over_budget() {
                return Ok(Ending::cut(&reply, reason));
            }
            if let Some(ending) = self.batch(&reply, calls).await? {
                return Ok(ending);
            }
        }
    }

    /// Stops offering tools.
    fn close(&mut self, reason: &'static str, instruction: &str) {
        if self.closing.is_none() {
            self.closing = Some(reason);
            self.conversation.tell(&format!(
                "{instruction} Tools can no longer be called. Give your final answer now, from what you know."
            ));
        }
    }

    /// Returns the reason to end if no tokens are left.
    fn over_budget(&self) -> Option<&'static str> {
        let budget = self.budget?;
        (self.left()? == 0).then_some(budget.reason)
    }

    /// Returns the number of tokens left, if it is limited.
    fn left(&self) -> Option<i64> {
        let used = self.record.usage.total();
        Some(self.budget?.tokens.saturating_sub(used).max(0))
    }

    /// Warns if there is a budget but the provider reports no counts.
    fn warn_of_estimates(&mut self) {
        let estimated = self.record.usage.count(ESTIMATED);
        if self.budget.is_some() && estimated > 0 {
            let warning = format!(
                "the provider reports no usage: {estimated} of the {} tokens are an estimate, and the budget holds for it",
                self.record.usage.total()
            );
            self.extras.warn(self.cx, warning);
        }
    }

    /// Tells whether the turn is for the final answer: no tool may be called, and the format is enforced.
    fn is_last(&self) -> bool {
        self.closing.is_some() || self.is_finishing || self.tools.is_empty()
    }

    fn turn_config(&self) -> Value {
        let mut config = self.config.model.clone();
        stay(&mut config, self.record.connection());
        config.push((Value::keyword("messages"), self.conversation.messages()));
        if !self.tools.is_empty() {
            let definitions = self.tools.definitions(&self.selection);
            let has_any = !definitions.is_empty();
            let mut offered = vec![("definitions", Value::vector(definitions))];
            match (self.is_last(), &self.config.envelope.choice) {
                (true, _) => offered.push(("choice", Value::keyword("none"))),
                _ if self.control.is_set && has_any => {
                    let choice = self.selection.choice.value();
                    offered.extend(choice.map(|choice| ("choice", choice)));
                }
                // A model that must always call a tool would never end.
                (false, Some(choice)) if self.record.calls.is_empty() => {
                    offered.push(("choice", Value::keyword(choice)));
                }
                (false, _) => {}
            }
            config.push((Value::keyword("tools"), facts(offered)));
        }
        if self.is_last() && self.config.answer.is_data() {
            config.extend(self.config.answer.form());
            if self.repairs > 0 {
                config.push((Value::keyword("repair"), Value::Int(self.repairs)));
            }
        }
        Value::map(config)
    }

    /// Checks an answer. Returns `None` to call the model again.
    fn answered(&mut self, reply: &Value) -> Result<Option<Ending>, StepError> {
        let missing = self.missing();
        if !missing.is_empty() {
            if let Some(reason) = self.over_budget() {
                return Ok(Some(Ending::cut(reply, reason).missing(&missing)));
            }
            if self.closing.is_some() {
                return Err(not_called(
                    &missing,
                    reply,
                    self.closing.unwrap_or_default(),
                ));
            }
            self.is_finishing = false;
            self.ask_again(
                reply,
                &format!(
                    "Before your last answer you must call: {}. Do so now.",
                    missing.join(", ")
                ),
            );
            return Ok(None);
        }
        let was_last = self.is_last();
        let nothing = Value::from("");
        let answer = reply.get("content").unwrap_or(&nothing);
        let content = match (was_last, answer.as_str()) {
            (false, Some(text)) => match self.config.answer.take(text) {
                Ok(content) => content,
                Err(problem) => {
                    if let Some(reason) = self.over_budget() {
                        return Ok(Some(Ending::cut(reply, reason)));
                    }
                    self.is_finishing = true;
                    let ask = format!(
                        "That is not yet the answer in the form that is wanted: {problem}\nGive it now, as one JSON document and nothing else."
                    );
                    self.ask_again(reply, &ask);
                    return Ok(None);
                }
            },
            // The turn itself enforced the format.
            _ => answer.clone(),
        };
        if self.repairs > 0
            && self.over_budget().is_none()
            && let Some(problem) = self.config.answer.unmet(self.cx, &content)?
        {
            self.repairs -= 1;
            self.is_finishing = false;
            self.cx.emit(Progress::Status(format!(
                "the answer is not right, asking again: {problem}"
            )));
            self.ask_again(
                reply,
                &format!("That answer is not right: {problem}\nCorrect it, and answer again."),
            );
            return Ok(None);
        }
        let ending = Ending::answer(reply).content(content);
        Ok(Some(match self.closing {
            Some(reason) => ending.because(reason),
            None => ending,
        }))
    }

    fn ask_again(&mut self, reply: &Value, instruction: &str) {
        self.conversation.refuse(reply, instruction);
    }

    /// Ends the loop with its current state if a model calls tools that are not offered.
    fn cut(&mut self, reply: &Value, reason: &'static str) -> Result<Ending, StepError> {
        let missing = self.missing();
        match missing.is_empty() {
            true => Ok(Ending::cut(reply, reason)),
            false => Err(not_called(&missing, reply, reason)),
        }
    }

    /// Returns the required tools that were not called.
    fn missing(&self) -> Vec<String> {
        let require = &self.config.envelope.require;
        let by_name = require.tool_names.iter();
        let by_name = by_name.filter(|name| !self.tally.has_name(name));
        let by_step = [&require.steps, &require.agents, &require.mcp];
        let by_step = by_step.into_iter().flatten();
        let by_step = by_step.filter(|step| !self.tally.has_step(step));
        let by_step = by_step.map(|step| self.tools.name_of(step).unwrap_or_else(|| step.clone()));
        let mut missing: Vec<String> = Vec::new();
        for name in by_name.cloned().chain(by_step) {
            if !missing.iter().any(|known| **known == *name) {
                missing.push(name.to_string());
            }
        }
        missing
    }
}

/// Returns the error of a loop that ended without a required call.
fn not_called(missing: &[String], reply: &Value, reason: &str) -> StepError {
    let message = format!(
        "the agent ended ({reason}) without calling {}, which `:require` asks for",
        missing.join(", ")
    );
    let missing = Value::vector(missing.iter().map(|name| Value::from(name.as_str())));
    let content = reply.get("content").and_then(Value::as_str);
    StepError::new("E0843", "required-tools-missing", message)
        .with("missing", missing)
        .with("content", shortened(content.unwrap_or_default(), 2_000))
        .hint("raise `:max-iterations` or `:max-tool-calls`, or say in `:instructions` when to call them")
}
