//! `:approval`: which calls need a person's approval, and how it is requested.
//!
//! By default, the loop ends and the flow gets the request. With `:resume :in-place` (an extension) the loop waits in a
//! `:wait` step and continues.

mod decision;

use flowstone_flow::flow::name_of;
use flowstone_flow::step::{NestedRequest, StepError};
use flowstone_lang::value::Value;
use sha2::{Digest as _, Sha256};

use super::calls::Call;
use super::notes::{facts, plain};
use super::tool::ToolKind;
use super::toolset::Toolset;
use crate::fields::Fields;

pub(super) use decision::{Decision, read as decisions};

const KEYS: &[&str] = &[
    "message",
    "mode",
    "notify",
    "resume",
    "roles",
    "step-names",
    "timeout",
    "tool-names",
];
/// The key of the rules that an agent passes to the agents it calls.
const RULES: &str = "approvals";
/// Options that are passed to the `:wait` unchanged.
const OF_WAIT: &[&str] = &["notify", "roles", "timeout"];

/// Which calls need approval.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Mode {
    Off,
    AllMutations,
    Tools(Vec<String>),
    PlanSteps(Vec<String>),
}

/// The parsed `:approval`.
#[derive(Clone, Debug)]
pub(super) struct Approval {
    mode: Mode,
    pub in_place: bool,
    message: Option<String>,
    wait: Vec<(&'static str, Value)>,
    /// The config as it was given.
    given: Value,
    /// Rules of outer agents that name tools: they hold here, too.
    above: Vec<Approval>,
}

impl Approval {
    pub(super) fn read(given: Option<&Value>) -> Result<Approval, StepError> {
        let mut approval = Approval {
            mode: Mode::Off,
            in_place: false,
            message: None,
            wait: Vec::new(),
            given: given.cloned().unwrap_or(Value::Nil),
            above: Vec::new(),
        };
        let Some(given) = given else {
            return Ok(approval);
        };
        if let Value::Map(_) = given {
            return approval.with_map(Fields::nested(":approval", given)?);
        }
        approval.mode = match given {
            Value::Bool(true) => Mode::AllMutations,
            Value::Bool(false) => Mode::Off,
            other => match name_of(other).as_deref() {
                Some("all-mutations" | "mutations") => Mode::AllMutations,
                _ => return Err(no_mode(&crate::text::brief(other))),
            },
        };
        Ok(approval)
    }

    fn with_map(mut self, fields: Fields<'_>) -> Result<Approval, StepError> {
        fields.only(KEYS)?;
        let tools = names(fields, "tool-names")?;
        let steps = names(fields, "step-names")?;
        self.mode = match fields.name("mode")?.as_deref() {
            Some("tools") => Mode::Tools(needed(tools, "tools", "tool-names")?),
            Some("plan-steps") => Mode::PlanSteps(needed(steps, "plan-steps", "step-names")?),
            Some("all-mutations" | "mutations") => Mode::AllMutations,
            None => match (tools, steps) {
                (Some(tools), None) => Mode::Tools(tools),
                (None, Some(steps)) => Mode::PlanSteps(steps),
                _ => Mode::AllMutations,
            },
            Some(other) => return Err(no_mode(&format!(":{other}"))),
        };
        self.in_place = match fields.name("resume")?.as_deref() {
            None | Some("return") => false,
            Some("in-place") => true,
            Some(other) => {
                let message = format!("`:approval` has no `:resume :{other}`");
                return Err(StepError::config("E0841", message)
                    .hint("there are `:return`, which ends the agent, and `:in-place`, which waits inside it"));
            }
        };
        self.message = fields.text("message")?.map(str::to_owned);
        for key in OF_WAIT {
            if let Some(given) = fields.get(key) {
                self.wait.push((key, given.clone()));
            }
        }
        if !self.in_place && !self.wait.is_empty() {
            let keys: Vec<String> = self
                .wait
                .iter()
                .map(|(key, _)| format!("`:{key}`"))
                .collect();
            let message = format!(
                "{} of `:approval` is for `:resume :in-place`",
                keys.join(" ")
            );
            return Err(StepError::config("E0841", message)
                .hint("without it the flow gets the request, and its own `:wait` says these"));
        }
        Ok(self)
    }

    /// Adds the rules that outer agents pass down, outermost first.
    pub(super) fn below(mut self, rules: Option<&Value>) -> Result<Approval, StepError> {
        let rules = rules.and_then(|rules| rules.get(RULES));
        let rules = rules.and_then(crate::json::items).unwrap_or_default();
        for rule in &rules {
            self.above.push(Approval::read(Some(rule))?);
        }
        Ok(self)
    }

    /// Returns the approval of calls of the build kit, for which the agent waits whatever its own rule is. `asked` is what a
    /// person is asked. The options of the wait are those of the own rule.
    pub(super) fn of_kit(&self, asked: &[&str]) -> Approval {
        let own = self.in_place.then_some(self);
        Approval {
            mode: Mode::Tools(Vec::new()),
            in_place: true,
            message: Some(asked.join("\n")),
            wait: own.map(|own| own.wait.clone()).unwrap_or_default(),
            given: Value::Nil,
            above: Vec::new(),
        }
    }

    /// Tells whether this is the agent's own rule, and not one of an outer agent.
    pub(super) fn is(&self, other: &Approval) -> bool {
        std::ptr::eq(self, other)
    }

    /// Returns the rules that hold in the agents that this one calls. A rule about every change is left out: such a
    /// call was approved already.
    pub(super) fn rules(&self) -> Option<Value> {
        let own = matches!(self.mode, Mode::Tools(_)).then_some(self);
        let rules: Vec<Value> = self
            .above
            .iter()
            .chain(own)
            .map(|it| it.given.clone())
            .collect();
        (!rules.is_empty()).then(|| facts([(RULES, Value::vector(rules))]))
    }

    /// Returns the approvals that some of the calls need, each with its calls, outermost first.
    pub(super) fn asking<'a, 'c>(
        &'a self,
        tools: &Toolset,
        calls: &'c [Call],
        plan_step: Option<&str>,
    ) -> Vec<(&'a Approval, Vec<&'c Call>)> {
        let all = self.above.iter().map(|it| (it, false));
        let all = all.chain([(self, true)]);
        let asking = all.map(|(it, is_own)| {
            let needs = |call: &&Call| match is_own {
                true => it.needs(tools, call, plan_step),
                false => it.names(tools, call),
            };
            (it, calls.iter().filter(needs).collect::<Vec<_>>())
        });
        asking.filter(|(_, calls)| !calls.is_empty()).collect()
    }

    /// Tells whether rules of this agent or an outer one may stop an agent that it calls, so that this one stops with
    /// it.
    pub(super) fn stops_below(&self) -> bool {
        let mut rules = self.above.iter().chain([self]);
        rules.any(|it| matches!(it.mode, Mode::Tools(_)) && !it.in_place)
    }

    /// Returns the explanation for the model.
    pub(super) fn notice(&self) -> Option<String> {
        let above = self.above.iter().filter_map(Approval::notice);
        let all: Vec<String> = above.chain(self.own_notice()).collect();
        (!all.is_empty()).then(|| all.join("\n"))
    }

    fn own_notice(&self) -> Option<String> {
        let what = match &self.mode {
            Mode::Off => return None,
            Mode::AllMutations => "Calls that change something".to_owned(),
            Mode::Tools(names) => format!("Calls of {}", names.join(", ")),
            Mode::PlanSteps(names) => {
                format!("Calls in these steps of your plan: {}", names.join(", "))
            }
        };
        Some(format!(
            "{what} need the approval of a person, so you may be paused before they are performed."
        ))
    }

    /// Tells whether a call needs approval. `plan_step` is the current step of the plan.
    fn needs(&self, tools: &Toolset, call: &Call, plan_step: Option<&str>) -> bool {
        let Some(tool) = tools.find(&call.name) else {
            return false;
        };
        if tool.kind != ToolKind::Kit && (tool.needs_approval)(&call.arguments) {
            return true;
        }
        match &self.mode {
            Mode::Off => false,
            Mode::AllMutations => (tool.mutates)(&call.arguments),
            Mode::Tools(_) => self.names(tools, call),
            Mode::PlanSteps(names) => {
                !tool.kind.is_own()
                    && plan_step.is_some_and(|step| names.iter().any(|name| name == step))
            }
        }
    }

    /// Tells whether the rule names the tool of a call, by its name or by its step.
    fn names(&self, tools: &Toolset, call: &Call) -> bool {
        match (&self.mode, tools.find(&call.name)) {
            (Mode::Tools(names), Some(tool)) => names
                .iter()
                .any(|name| **name == *tool.name || **name == *tool.step),
            _ => false,
        }
    }

    fn mode_name(&self) -> &'static str {
        match self.mode {
            Mode::AllMutations => "all-mutations",
            Mode::Off | Mode::Tools(_) => "tools",
            Mode::PlanSteps(_) => "plan-steps",
        }
    }

    /// Returns `:approval-request`. `scope` distinguishes it from those of other runs and steps.
    pub(super) fn request(&self, scope: &str, iteration: i64, pending: &[&Call]) -> Value {
        let actions = pending.iter().map(|call| {
            facts([
                ("tool", Value::from(call.name.as_str())),
                ("tool-call-id", Value::from(call.id.as_str())),
                ("arguments", call.arguments.clone()),
            ])
        });
        let actions = Value::vector(actions);
        let mut digest = Sha256::new();
        digest.update(scope.as_bytes());
        digest.update([0]);
        digest.update(plain(&actions).as_bytes());
        let digest: String = digest
            .finalize()
            .iter()
            .take(8)
            .map(|byte| format!("{byte:02x}"))
            .collect();
        facts([
            ("key", Value::from(format!("approval:{iteration}:{digest}"))),
            ("iteration", Value::Int(iteration)),
            ("actions", actions),
            ("mode", Value::keyword(self.mode_name())),
        ])
    }

    /// Returns the step that waits for the answer in place. `number` counts the waits for this request: a further one has
    /// the problem with the last answer.
    pub(super) fn wait(
        &self,
        request: &Value,
        number: usize,
        problem: Option<&str>,
    ) -> NestedRequest {
        let actions = request.get("actions").and_then(crate::json::items);
        let tools: Vec<String> = actions
            .iter()
            .flatten()
            .filter_map(|action| action.get("tool")?.as_str().map(str::to_owned))
            .collect();
        let ids = actions.iter().flatten();
        let ids: Vec<&str> = ids
            .filter_map(|action| action.get("tool-call-id")?.as_str())
            .collect();
        let message = match &self.message {
            Some(message) => message.clone(),
            None => format!("The agent asks to call {}.", tools.join(", ")),
        };
        let message = match problem {
            Some(problem) => format!("{message} The last answer could not be used: {problem}."),
            None => message,
        };
        let key = request.get("key").map(plain).unwrap_or_default();
        let own_texts = vec![key.clone()];
        let key = match number {
            1 => key,
            number => format!("{key}:{number}"),
        };
        let mut config = vec![
            ("key", Value::from(key)),
            ("message", Value::from(message)),
            ("data", request.clone()),
            (
                "actions",
                Value::vector(["approve", "reject"].map(Value::keyword)),
            ),
            ("validation", decision::validation(&ids)),
        ];
        config.extend(self.wait.iter().map(|(key, value)| (*key, value.clone())));
        NestedRequest::new("wait", "approval", facts(config)).with_own_texts(own_texts)
    }
}

fn names(fields: Fields<'_>, key: &str) -> Result<Option<Vec<String>>, StepError> {
    let Some(given) = fields.get(key) else {
        return Ok(None);
    };
    let wrong = || {
        StepError::config("E0841", format!("`:approval :{key}` takes names"))
            .hint(format!("such as `:{key} #{{\"files\"}}`"))
    };
    let items = crate::json::items(given).ok_or_else(wrong)?;
    let names = items
        .iter()
        .map(|item| name_of(item).map(|name| name.to_string()));
    names
        .collect::<Option<Vec<_>>>()
        .map(Some)
        .ok_or_else(wrong)
}

fn needed(names: Option<Vec<String>>, mode: &str, key: &str) -> Result<Vec<String>, StepError> {
    names.filter(|names| !names.is_empty()).ok_or_else(|| {
        StepError::config(
            "E0841",
            format!("`:approval {{:mode :{mode}}}` needs `:{key}`"),
        )
        .hint(format!("such as `:{key} #{{\"publish\"}}`"))
    })
}

fn no_mode(given: &str) -> StepError {
    StepError::config("E0841", format!("`:approval` has no mode `{given}`")).hint(
        "it takes `true` for every change, `{:mode :tools :tool-names #{...}}` or `{:mode :plan-steps :step-names #{...}}`",
    )
}
