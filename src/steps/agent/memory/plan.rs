//! `:plan` of a memory: the model declares its steps before it acts, and checks off those that are done.

use flowstone_flow::step::StepError;
use flowstone_lang::value::Value;
use serde_json::{Value as Json, json};

use super::super::notes::{facts, shortened};
use super::tools::{CHECKPOINT, PLAN, within};
use super::{instant, text_of, wrong};
use crate::fields::Fields;
use crate::json::{items, name_text};
use crate::text::brief;

const KEYS: &[&str] = &["checkpoint", "enforce", "max-steps", "strict"];
const DEFAULT_STEPS: usize = 10;
const MOST_STEPS: usize = 100;
/// Maximum number of rows of earlier plans that are read.
pub(super) const MOST: usize = 200;
const MOST_NAME: usize = 80;
const MOST_TEXT: usize = 500;

/// A plan: the flow's options, and the model's declaration.
#[derive(Debug)]
pub(in super::super) struct Plan {
    rule: Rule,
    max_steps: usize,
    /// Whether done steps are recorded in rows.
    pub(super) keeps_status: bool,
    pub(super) steps: Vec<PlanStep>,
    warned: bool,
}

/// What happens to an agent that acts without a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rule {
    /// Nothing: the plan is optional.
    Free,
    /// It gets a warning.
    Soft,
    /// It is stopped.
    Strict,
}

/// A step of a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super) struct PlanStep {
    pub(super) name: String,
    pub(super) description: String,
    pub(super) status: Status,
    pub(super) note: Option<String>,
    /// Counted from 1.
    position: usize,
    pub(super) declared_ms: i64,
}

/// The state of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Status {
    Open,
    Done,
    /// A later version of the plan removed it.
    Dropped,
}

/// The plan's verdict on the calls of a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super) enum Gate {
    Go,
    /// Continue, with this message.
    Warn(String),
    /// Stop the loop with this.
    Stop,
}

impl PlanStep {
    pub(super) fn is_open(&self) -> bool {
        self.status == Status::Open
    }

    /// Returns the data of its row.
    pub(super) fn state(&self) -> Value {
        facts([
            ("position", Value::from(self.position)),
            ("status", Value::from(self.status.name())),
            ("note", self.note.as_deref().map_or(Value::Nil, Value::from)),
        ])
    }
}

impl Status {
    fn name(self) -> &'static str {
        match self {
            Status::Open => "open",
            Status::Done => "done",
            Status::Dropped => "dropped",
        }
    }
}

impl Plan {
    /// Reads `:plan`; `None` if it is false.
    pub(crate) fn read(given: &Value) -> Result<Option<Plan>, StepError> {
        let nothing = Value::map([]);
        let given = match given {
            Value::Bool(false) => return Ok(None),
            Value::Bool(true) => &nothing,
            given => given,
        };
        let fields = Fields::nested(":memory :plan", given)?;
        fields.only(KEYS)?;
        let strict = fields.bool("strict")?.unwrap_or(false);
        let enforce = fields.bool("enforce")?;
        if strict && enforce == Some(false) {
            return Err(wrong("`:plan` is `:strict`, but `:enforce` is false")
                .hint("leave out `:enforce false`"));
        }
        let rule = match (strict, enforce.unwrap_or(false)) {
            (true, _) => Rule::Strict,
            (false, true) => Rule::Soft,
            (false, false) => Rule::Free,
        };
        Ok(Some(Plan {
            rule,
            max_steps: fields
                .count("max-steps", 1, MOST_STEPS)?
                .unwrap_or(DEFAULT_STEPS),
            keeps_status: fields.bool("checkpoint")?.unwrap_or(true),
            steps: Vec::new(),
            warned: false,
        }))
    }

    /// Checks the tools that the model wants to use in a turn, before any of them is used.
    pub(crate) fn gate(&mut self, names: &[&str]) -> Gate {
        let early = names.first().is_some_and(|first| *first != PLAN);
        match self.rule {
            Rule::Strict if self.steps.is_empty() && early => Gate::Stop,
            Rule::Soft if self.steps.is_empty() && early && !self.warned => {
                self.warned = true;
                Gate::Warn(format!(
                    "the agent used `{}` before it declared a plan",
                    names.first().copied().unwrap_or_default()
                ))
            }
            Rule::Free | Rule::Soft | Rule::Strict => Gate::Go,
        }
    }

    /// Returns the name of the current step.
    pub(crate) fn current(&self) -> Option<&str> {
        let open = self.steps.iter().find(|step| step.is_open())?;
        Some(&open.name)
    }

    /// Returns the plan as the model and the trace see it.
    pub(crate) fn to_value(&self) -> Value {
        let kept = self
            .steps
            .iter()
            .filter(|step| step.status != Status::Dropped);
        let steps = kept.map(|step| {
            let mut facts = vec![
                (Value::keyword("name"), Value::from(step.name.as_str())),
                (Value::keyword("status"), Value::from(step.status.name())),
            ];
            if step.description != step.name {
                let text = Value::from(step.description.as_str());
                facts.push((Value::keyword("description"), text));
            }
            if let Some(note) = &step.note {
                facts.push((Value::keyword("note"), Value::from(note.as_str())));
            }
            Value::map(facts)
        });
        facts([
            ("steps", Value::vector(steps)),
            ("current", self.current().map_or(Value::Nil, Value::from)),
        ])
    }

    /// Takes a plan, or a new version of it: done steps stay done. Returns the names of removed steps.
    pub(super) fn declare(
        &mut self,
        fields: Fields<'_>,
        now_ms: i64,
    ) -> Result<Vec<String>, StepError> {
        let given = fields.get("steps").and_then(items).unwrap_or_default();
        if given.is_empty() {
            return Err(bad("`steps` is missing").hint("a list of what you will do, in order"));
        }
        if given.len() > self.max_steps {
            return Err(bad(format!(
                "the plan has {} steps, and may have {}",
                given.len(),
                self.max_steps
            ))
            .hint("combine steps, and declare the plan again"));
        }
        let mut declared: Vec<PlanStep> = Vec::new();
        for (idx, item) in given.iter().enumerate() {
            let (name, description) = named(item, idx)?;
            if declared.iter().any(|other| other.name == name) {
                return Err(bad(format!("two steps are called `{name}`"))
                    .hint("give each a name of its own"));
            }
            let before = self.steps.iter().find(|step| step.name == name);
            let kept = before.filter(|step| step.status == Status::Done);
            declared.push(PlanStep {
                status: kept.map_or(Status::Open, |step| step.status),
                note: kept.and_then(|step| step.note.clone()),
                declared_ms: before.map_or(now_ms, |step| step.declared_ms),
                position: idx + 1,
                name,
                description,
            });
        }
        let gone = |step: &&PlanStep| !declared.iter().any(|other| other.name == step.name);
        let mut went: Vec<PlanStep> = self.steps.iter().filter(gone).cloned().collect();
        for step in &mut went {
            // Done steps stay done.
            if step.is_open() {
                step.status = Status::Dropped;
            }
        }
        let names = went.iter().map(|step| step.name.clone()).collect();
        declared.extend(went);
        self.steps = declared;
        Ok(names)
    }

    /// Marks a step as done, and returns its name.
    pub(super) fn check_off(&mut self, fields: Fields<'_>) -> Result<String, StepError> {
        let Some(given) = fields.get("step") else {
            return Err(bad("`step` is missing").hint(self.known()));
        };
        let note = fields.text("note")?.map(str::trim);
        within("note", note.unwrap_or_default(), MOST_TEXT)?;
        let at = given
            .as_int()
            .and_then(|position| usize::try_from(position).ok());
        let name = name_text(given).unwrap_or_default();
        let is_meant = |step: &PlanStep| match at {
            Some(position) => step.position == position,
            None => step.name == name,
        };
        let hint = self.known();
        let known = self.steps.iter_mut();
        let mut kept = known.filter(|step| step.status != Status::Dropped);
        let Some(step) = kept.find(|step| is_meant(step)) else {
            return Err(bad(format!("the plan has no step {}", brief(given))).hint(hint));
        };
        step.status = Status::Done;
        if let Some(note) = note.filter(|note| !note.is_empty()) {
            step.note = Some(note.to_owned());
        }
        Ok(step.name.clone())
    }

    fn known(&self) -> String {
        if self.steps.is_empty() {
            return format!("declare a plan with `{PLAN}` first");
        }
        let kept = self.steps.iter();
        let names: Vec<&str> = kept
            .filter(|step| step.status != Status::Dropped)
            .map(|step| step.name.as_str())
            .collect();
        format!("its steps are {}", names.join(", "))
    }

    /// Returns the instructions for the system prompt.
    pub(super) fn instructions(&self) -> String {
        let most = self.max_steps;
        let how = format!(
            "declare your plan with `{PLAN}`: at most {most} steps, each with a short name. When a step is done, say so \
             with `{CHECKPOINT}`. Where the plan turns out wrong, declare it again."
        );
        match self.rule {
            Rule::Free => format!("For work of several steps, {how}"),
            Rule::Soft => format!("Before you use any other tool, {how}"),
            Rule::Strict => format!(
                "Before you use any other tool, {how} Using another tool first ends the run at once."
            ),
        }
    }

    /// Returns the JSON Schema of a declaration.
    pub(super) fn schema(&self) -> Json {
        json!({
            "type": "object",
            "properties": {
                "steps": {
                    "type": "array",
                    "minItems": 1,
                    "maxItems": self.max_steps,
                    "items": {
                        "type": "object",
                        "properties": {
                            "name": {"type": "string", "description": "Short, such as `read-code` or `open-pr`."},
                            "description": {"type": "string"}
                        },
                        "required": ["name"],
                        "additionalProperties": false
                    }
                }
            },
            "required": ["steps"],
            "additionalProperties": false
        })
    }
}

/// Returns the JSON Schema of checking a step off.
pub(super) fn checkpoint() -> Json {
    json!({
        "type": "object",
        "properties": {
            "step": {"type": "string", "description": "The step's name."},
            "note": {"type": "string", "description": "Its result, in a sentence."}
        },
        "required": ["step"],
        "additionalProperties": false
    })
}

/// Describes the progress of an earlier run's plan; the rows are newest first.
pub(super) fn prior(rows: &[Value]) -> Option<String> {
    let newest = rows.first()?;
    let (run, step) = (text_of(newest, "run"), text_of(newest, "step"));
    let is_same = |row: &&Value| text_of(row, "run") == run && text_of(row, "step") == step;
    let of = |row: &Value, key: &str| row.get("data").and_then(|data| data.get(key)).cloned();
    let status = |row: &Value| of(row, "status").and_then(|status| name_text(&status));
    let position = |row: &&Value| of(row, "position").and_then(|at| at.as_int()).unwrap_or(0);
    let mut steps: Vec<&Value> = rows
        .iter()
        .filter(is_same)
        .filter(|row| status(row).as_deref() != Some("dropped"))
        .collect();
    steps.sort_by_key(position);
    let at = instant(newest).map_or_else(String::new, |at| format!(", {at}"));
    let mut text = format!("The plan of an earlier run ({run}{at}), and how far it came:");
    for row in steps {
        let mark = if status(row).as_deref() == Some("done") {
            "x"
        } else {
            " "
        };
        let name = text_of(row, "key");
        text.push_str(&format!("\n- [{mark}] {name}"));
        let description = text_of(row, "content");
        if description != name {
            text.push_str(&format!(": {}", shortened(&one_line(description), 200)));
        }
        let note = of(row, "note");
        if let Some(note) = note.as_ref().and_then(Value::as_str) {
            text.push_str(&format!(" ({})", shortened(&one_line(note), 200)));
        }
    }
    Some(text)
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn bad(message: impl Into<String>) -> StepError {
    StepError::new("E0853", "invalid", message.into())
}

/// Returns the name and the text of a declared step: a map with `name`, or a text alone.
fn named(item: &Value, idx: usize) -> Result<(String, String), StepError> {
    let at = format!("step {}", idx + 1);
    let (name, description) = match item {
        Value::Text(text) => (text.as_str(), None),
        item => {
            let fields = Fields::nested(&at, item)?;
            fields.only(&["description", "name"])?;
            let name = fields.text("name")?.unwrap_or_default();
            (name, fields.text("description")?)
        }
    };
    let (name, description) = (name.trim(), description.map(str::trim));
    if name.is_empty() {
        return Err(bad(format!("{at} has no name")).hint("as in {\"name\": \"read-code\"}"));
    }
    let description = description.filter(|text| !text.is_empty());
    // A bare sentence is the step's text, and its beginning becomes the name.
    if name.chars().count() > MOST_NAME {
        if description.is_some() {
            within("name", name, MOST_NAME)?;
        }
        within("steps", name, MOST_TEXT)?;
        return Ok((name.chars().take(MOST_NAME).collect(), name.to_owned()));
    }
    let description = description.unwrap_or(name);
    within("description", description, MOST_TEXT)?;
    Ok((name.to_owned(), description.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use flowstone_lang::value::Object;

    fn plan(config: Value) -> Plan {
        Plan::read(&config).expect("it is good").expect("it is on")
    }

    fn flag(key: &str) -> Value {
        facts([(key, Value::Bool(true))])
    }

    fn steps(names: &[&str]) -> Value {
        facts([(
            "steps",
            Value::vector(names.iter().map(|name| Value::from(*name))),
        )])
    }

    fn declare(plan: &mut Plan, names: &[&str]) -> Result<Vec<String>, String> {
        let given = steps(names);
        let declared = plan.declare(Fields::new(&given), 5);
        declared.map_err(|error| error.message)
    }

    fn done(plan: &mut Plan, step: Value) -> Result<String, String> {
        let given = facts([("step", step), ("note", Value::from("fine"))]);
        let done = plan.check_off(Fields::new(&given));
        done.map_err(|error| format!("{} | {}", error.message, error.hints.join(" | ")))
    }

    fn text(plan: &Plan) -> String {
        plan.steps
            .iter()
            .map(|step| format!("{} {}", step.name, step.status.name()))
            .collect::<Vec<_>>()
            .join(", ")
    }

    #[test]
    fn a_plan_moves_from_step_to_step() {
        let mut plan = plan(Value::Bool(true));
        assert_eq!(plan.current(), None);
        declare(&mut plan, &["read", "fix", "publish"]).unwrap();
        assert_eq!(plan.current(), Some("read"));
        assert_eq!(done(&mut plan, Value::from("read")).unwrap(), "read");
        assert_eq!(plan.current(), Some("fix"));
        // Also found by its number.
        assert_eq!(done(&mut plan, Value::Int(2)).unwrap(), "fix");
        assert_eq!(plan.current(), Some("publish"));
        assert_eq!(
            done(&mut plan, Value::from("test")).unwrap_err(),
            "the plan has no step \"test\" | its steps are read, fix, publish"
        );
    }

    #[test]
    fn a_new_version_keeps_what_is_done_and_says_what_went() {
        let mut plan = plan(Value::Bool(true));
        declare(&mut plan, &["read", "fix", "publish"]).unwrap();
        done(&mut plan, Value::from("read")).unwrap();
        let went = declare(&mut plan, &["read", "test", "publish"]).unwrap();
        assert_eq!(went, ["fix"]);
        assert_eq!(
            text(&plan),
            "read done, test open, publish open, fix dropped"
        );
        assert_eq!(plan.current(), Some("test"));
        assert!(done(&mut plan, Value::from("fix")).is_err());
    }

    #[test]
    fn a_plan_has_bounds() {
        let mut plan = plan(facts([("max-steps", Value::Int(2))]));
        let cases: &[(&[&str], &str)] = &[
            (&[], "`steps` is missing"),
            (&["a", "b", "c"], "the plan has 3 steps, and may have 2"),
            (&["a", "a"], "two steps are called `a`"),
            (&["  "], "step 1 has no name"),
        ];
        for (names, problem) in cases {
            assert_eq!(declare(&mut plan, names).unwrap_err(), *problem);
        }
        assert!(plan.steps.is_empty());
    }

    #[test]
    fn what_comes_before_a_plan_follows_from_its_rule() {
        let soft = || plan(flag("enforce"));
        let strict = || plan(flag("strict"));
        assert_eq!(plan(Value::Bool(true)).gate(&["files"]), Gate::Go);
        assert_eq!(soft().gate(&[PLAN, "files"]), Gate::Go);
        assert_eq!(strict().gate(&[PLAN, "files"]), Gate::Go);
        assert_eq!(strict().gate(&["files", PLAN]), Gate::Stop);
        // A final answer needs no plan.
        assert_eq!(strict().gate(&[]), Gate::Go);
        let mut once = soft();
        assert!(matches!(once.gate(&["files"]), Gate::Warn(_)));
        assert_eq!(once.gate(&["files"]), Gate::Go);
        // A refused plan changes nothing.
        let mut refused = strict();
        assert!(declare(&mut refused, &["a", "a"]).is_err());
        assert_eq!(refused.gate(&["files"]), Gate::Stop);
        let mut planned = strict();
        declare(&mut planned, &["a"]).unwrap();
        assert_eq!(planned.gate(&["files"]), Gate::Go);
    }

    #[test]
    fn what_a_plan_cannot_be_is_told() {
        let cases = [
            (
                facts([("max-steps", Value::Int(0))]),
                "`:memory :plan :max-steps` must be from 1 to 100, and is 0",
            ),
            (
                facts([("enforced", Value::Bool(true))]),
                "`:memory :plan` has no key `:enforced`",
            ),
            (
                facts([
                    ("strict", Value::Bool(true)),
                    ("enforce", Value::Bool(false)),
                ]),
                "`:plan` is `:strict`, but `:enforce` is false",
            ),
        ];
        for (config, problem) in cases {
            assert_eq!(Plan::read(&config).unwrap_err().message, problem);
        }
        assert!(Plan::read(&Value::Bool(false)).unwrap().is_none());
    }

    #[test]
    fn only_the_newest_plan_is_told_again() {
        let row = |run: &str, name: &str, position: i64, status: &str| {
            facts([
                ("run", Value::from(run)),
                ("step", Value::from("agent#1")),
                ("key", Value::from(name)),
                ("content", Value::from(name)),
                ("created-at", Object::Inst(0).into()),
                (
                    "data",
                    facts([
                        ("position", Value::Int(position)),
                        ("status", Value::from(status)),
                        ("note", Value::Nil),
                    ]),
                ),
            ])
        };
        let rows = [
            row("r2", "b", 2, "open"),
            row("r2", "gone", 3, "dropped"),
            row("r2", "a", 1, "done"),
            row("r1", "old", 1, "open"),
        ];
        assert_eq!(
            prior(&rows).unwrap(),
            "The plan of an earlier run (r2, 1970-01-01 00:00), and how far it came:\n- [x] a\n- [ ] b"
        );
        assert_eq!(prior(&[]), None);
    }
}
