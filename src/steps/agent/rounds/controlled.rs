//! The loop with loop control: choices of tools by turn, calls that end the loop, and calls that are performed outside.

use flowstone_flow::diagnostic::nearest;
use flowstone_flow::step::StepError;
use flowstone_lang::value::Value;

use super::super::calls::{Call, of_reply};
use super::super::control::{Choice, Control};
use super::super::outside;
use super::super::result::Ending;
use super::super::toolset::Toolset;
use super::Rounds;

/// Refuses names of tools that there are not. With hooks, tools may come later.
pub(super) fn check_names(
    control: &Control,
    tools: &Toolset,
    is_fixed: bool,
) -> Result<(), StepError> {
    let mut names = control.names().into_iter();
    let Some(missing) = names
        .find(|name| !tools.is_nameable(name))
        .filter(|_| is_fixed)
    else {
        return Ok(());
    };
    let all = tools.all_names();
    let near = nearest(&missing, all.iter().map(|name| &**name)).map(str::to_owned);
    let error = StepError::config("E1280", format!("the agent has no tool `{missing}`"));
    Err(match near {
        Some(near) => error.hint(format!("did you mean `{near}`?")),
        None if all.is_empty() => error.hint("it has no tools"),
        None => error.hint(format!("there are: {}", all.join(", "))),
    })
}

/// The calls of a turn, by who performs them.
struct Sorted {
    own: Vec<Call>,
    outside: Vec<Call>,
    /// Calls that nobody performs.
    idle: Vec<Call>,
}

impl Rounds<'_> {
    pub(super) async fn go_controlled(&mut self) -> Result<Ending, StepError> {
        loop {
            let is_exact = self.control.is_exact;
            let is_last = self.record.turns >= self.config.limits.turns;
            if is_last && !is_exact && !self.is_finishing {
                self.close("max-iterations", "You have used up the turns of this run.");
            }
            let selection = self.control.of_turn(self.record.turns + 1);
            // A turn that asks again requires what the one before it required.
            let is_repeated = self.is_reminded || self.is_owed;
            if !is_repeated || selection.choice.is_forced() {
                self.selection = selection;
            }
            self.refuse_unlisted()?;
            let reply = self.turn().await?;
            self.control.begun();
            let calls = of_reply(&reply);
            let ended = match calls.is_empty() {
                true => self.ended_by_text(&reply)?,
                false => {
                    if let Some(reason) = self.closing {
                        return self.cut(&reply, reason);
                    }
                    self.ended_by_calls(&reply, calls).await?
                }
            };
            if let Some(ending) = ended {
                return Ok(ending);
            }
            if is_exact && self.record.turns >= self.config.limits.turns {
                return self.cut(&reply, "max-iterations");
            }
        }
    }

    /// Refuses a turn that requires a tool of a server that did not list its tools.
    ///
    /// # Errors
    /// E1291, with the name of the server.
    fn refuse_unlisted(&self) -> Result<(), StepError> {
        let failure = match &self.selection.choice {
            Choice::Tool(name) => self.tools.unlisted(name),
            Choice::Required if self.tools.definitions(&self.selection).is_empty() => {
                self.tools.first_unlisted()
            }
            Choice::Auto | Choice::Never | Choice::Required => None,
        };
        match failure {
            None => Ok(()),
            Some(failure) => {
                let turn = self.record.turns + 1;
                let message = format!("turn {turn} requires a call of a tool, and {failure}");
                Err(StepError::new("E1291", "mcp-tools-unlisted", message)
                    .hint("check the address and the credentials of the server"))
            }
        }
    }

    /// Checks a reply without calls. Returns `None` to call the model again.
    fn ended_by_text(&mut self, reply: &Value) -> Result<Option<Ending>, StepError> {
        if !self.selection.choice.is_forced() || self.is_last() {
            if let Some(name) = self.written_call(reply) {
                let message =
                    format!("the model wrote a call of `{name}` as text instead of making it");
                return Err(StepError::new("E1282", "text-encoded-tool-call", message)
                    .hint("use a model that can call tools, or describe the tool more clearly"));
            }
            return self.answered(reply);
        }
        if self.is_reminded {
            let message =
                "the model answered with text twice, although `:tool-choice` requires a call";
            return Err(StepError::new("E1281", "tool-call-missing", message).hint(
                "give the model a tool for its final answer, and end the loop with `:stop-when`",
            ));
        }
        self.is_reminded = true;
        self.ask_again(reply, "You must call a tool now. Do not answer with text.");
        Ok(None)
    }

    /// Returns the name of a tool if a text is nothing but a call of it, written as JSON.
    fn written_call(&self, reply: &Value) -> Option<String> {
        let text = reply.get("content")?.as_str()?.trim();
        let json: serde_json::Value = serde_json::from_str(text).ok()?;
        let members = json.as_object()?;
        // As in a request of a model: `{"type": "function", "function": {...}}`.
        let inner = members
            .get("function")
            .and_then(serde_json::Value::as_object);
        let members = inner.unwrap_or(members);
        let name = ["name", "tool", "tool_name"]
            .iter()
            .find_map(|key| members.get(*key)?.as_str())?;
        let has_arguments = ["arguments", "args", "parameters", "input"]
            .iter()
            .any(|key| members.contains_key(*key));
        (has_arguments && self.tools.knows(name)).then(|| name.to_owned())
    }

    async fn ended_by_calls(
        &mut self,
        reply: &Value,
        calls: Vec<Call>,
    ) -> Result<Option<Ending>, StepError> {
        // A call that is refused is not the one that the turn requires, so the next turn requires it again.
        let is_missing = !calls.iter().any(|call| self.selection.permits(&call.name));
        self.is_reminded = false;
        self.is_owed = is_missing && self.selection.choice.is_forced();
        let stops = calls
            .iter()
            .filter(|call| self.selection.admits(&call.name))
            .any(|call| self.control.stops_at(&call.name));
        let Sorted { own, outside, idle } = self.sorted(calls);
        let others: Vec<Call> = outside.iter().chain(&idle).cloned().collect();
        if own.is_empty() {
            self.conversation.add_reply(reply, &others);
        } else if let Some(ending) = self.batch_with(reply, own, &others).await? {
            return Ok(Some(ending));
        }
        if stops {
            self.record_idle(outside.iter().chain(&idle));
            return Ok(Some(Ending::cut(reply, "stop-condition")));
        }
        if !outside.is_empty() {
            self.wait_outside(outside).await?;
        }
        if !idle.is_empty() {
            self.record_idle(idle.iter());
            return Ok(Some(Ending::cut(reply, "no-executor")));
        }
        Ok(None)
    }

    fn sorted(&self, calls: Vec<Call>) -> Sorted {
        let mut sorted = Sorted {
            own: Vec::new(),
            outside: Vec::new(),
            idle: Vec::new(),
        };
        for call in calls {
            if !self.selection.admits(&call.name) {
                sorted.own.push(call);
            } else if let Some(tool) = self.tools.outside(&call.name) {
                match tool.checked(&call).ok().filter(|_| !call.is_cut) {
                    Some(checked) => sorted.outside.push(tool.complete(&call, &checked)),
                    // The model reads what is wrong, and is asked again.
                    None => sorted.own.push(call),
                }
            } else if self.tools.is_client(&call.name) {
                sorted.idle.push(call);
            } else {
                sorted.own.push(call);
            }
        }
        sorted
    }

    /// Adds calls that nobody performs to the result.
    fn record_idle<'c>(&mut self, calls: impl Iterator<Item = &'c Call>) {
        let calls = calls.map(Call::record);
        self.record.calls.extend(calls);
    }

    /// Waits for the results of calls that are performed outside.
    async fn wait_outside(&mut self, calls: Vec<Call>) -> Result<(), StepError> {
        let timeout = self.config.given.get("client-timeout");
        let timeout = timeout.filter(|it| !it.is_nil());
        let wait = outside::wait(
            self.cx.idempotency_key(),
            self.record.turns,
            &calls,
            timeout,
        );
        let answer = self.cx.perform(wait).await?;
        self.control.paused();
        self.control.submitted(&answer)?;
        check_names(&self.control, self.tools, self.config.hooks.is_empty())?;
        let mut answered = outside::answered(calls, &answer)?;
        self.after_each(&mut answered).await;
        self.conversation.results(&answered);
        for answered in &answered {
            self.note(answered);
        }
        Ok(())
    }
}
