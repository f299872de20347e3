//! Loop control: how the model selects tools in each turn, and which calls end the loop.
//!
//! Four sources say so, the first one wins, and each field is looked up by itself: what was submitted for the next turn, the
//! rules for single turns, what was submitted for all remaining turns, and the step's own fields. Pure: knows no step.

use std::rc::Rc;

use flowstone_flow::flow::name_of;
use flowstone_flow::step::StepError;
use flowstone_lang::value::Value;

use super::notes::facts;
use crate::fields::Fields;
use crate::json::items;

/// The fields of an agent that control its loop, apart from the limits.
pub(super) const FIELDS: &[&str] = &[
    "active-tools",
    "client-tools",
    "conclude?",
    "step-rules",
    "stop-when",
    "tool-choice",
];

const RULE: &[&str] = &["active-tools", "step", "tool-choice"];
const SUBMITTED: &[&str] = &[
    "active-tools",
    "defaults",
    "outputs",
    "step-rules",
    "tool-choice",
];
/// Maximum number of the turn in a rule.
const TURN_MAX: i64 = 10_000;

/// How the model selects tools in a turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Choice {
    Auto,
    /// It may not call a tool.
    Never,
    /// It must call one.
    Required,
    /// It must call this one.
    Tool(Rc<str>),
}

impl Choice {
    /// Tells whether a text without a call is not an answer.
    pub(super) fn is_forced(&self) -> bool {
        matches!(self, Choice::Required | Choice::Tool(_))
    }

    /// Returns `:choice` of a turn's `:tools`; nothing if it is the default.
    pub(super) fn value(&self) -> Option<Value> {
        match self {
            Choice::Auto => None,
            Choice::Never => Some(Value::keyword("none")),
            Choice::Required => Some(Value::keyword("required")),
            Choice::Tool(name) => Some(facts([("tool", Value::from(&**name))])),
        }
    }
}

/// What one source says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Rule {
    choice: Option<Choice>,
    /// Names of tools; empty: all.
    active: Option<Vec<Rc<str>>>,
}

impl Rule {
    /// Returns the tools of a turn whose tool this rule names: those of a list that has the tool, or the tool alone.
    fn narrowed(&self, list: Option<&Vec<Rc<str>>>) -> Option<Vec<Rc<str>>> {
        let Some(Choice::Tool(name)) = &self.choice else {
            return None;
        };
        let own = list.filter(|list| offers(list, name)).cloned();
        Some(own.unwrap_or_else(|| vec![name.clone()]))
    }
}

/// Tells whether a list of names has a tool; an empty one has all.
fn offers(list: &[Rc<str>], name: &str) -> bool {
    let is_it = |given: &Rc<str>| match given.strip_suffix('*') {
        Some(prefix) => name.starts_with(prefix),
        None => **given == *name,
    };
    list.is_empty() || list.iter().any(is_it)
}

/// What holds in one turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Selection {
    pub choice: Choice,
    /// The names of the tools that are offered, `github_*` for all that begin so; empty: all.
    active: Vec<Rc<str>>,
}

impl Selection {
    /// All tools, and the model decides.
    pub(super) fn all() -> Selection {
        Selection {
            choice: Choice::Auto,
            active: Vec::new(),
        }
    }

    pub(super) fn offers(&self, name: &str) -> bool {
        offers(&self.active, name)
    }

    /// Tells whether the choice permits a call of a tool: models do not always obey it.
    pub(super) fn permits(&self, name: &str) -> bool {
        match &self.choice {
            Choice::Auto | Choice::Required => true,
            Choice::Never => false,
            Choice::Tool(chosen) => **chosen == *name,
        }
    }

    /// Tells whether a call of a tool may be carried out in the turn.
    pub(super) fn admits(&self, name: &str) -> bool {
        self.offers(name) && self.permits(name)
    }

    /// Returns why a call that the choice does not permit is not performed.
    pub(super) fn forbids(&self) -> String {
        match &self.choice {
            Choice::Tool(chosen) => {
                format!("not performed: in this turn only the tool `{chosen}` may be called")
            }
            Choice::Auto | Choice::Never | Choice::Required => {
                "not performed: no tool may be called in this turn".to_owned()
            }
        }
    }
}

/// The loop control of an agent.
#[derive(Clone, Debug, Default)]
pub(super) struct Control {
    /// Whether the step has any of these fields.
    pub is_set: bool,
    own: Rule,
    defaults: Rule,
    next: Rule,
    /// By the number of the turn, counted from 1; the first rule of a turn wins.
    rules: Vec<(i64, Rule)>,
    stop: Vec<Rc<str>>,
    /// Whether the last turn of `:max-iterations` ends the loop, without a further one for the answer.
    pub is_exact: bool,
}

impl Control {
    /// Reads the fields of an agent.
    ///
    /// # Errors
    /// E1280: when one of them is wrong.
    pub(super) fn read(fields: Fields<'_>) -> Result<Control, StepError> {
        let stop = fields.get("stop-when").map(stops).transpose()?;
        Ok(Control {
            is_set: FIELDS.iter().any(|key| fields.has(key)),
            own: rule(fields)?,
            defaults: Rule::default(),
            next: Rule::default(),
            rules: rules(fields)?,
            stop: stop.unwrap_or_default(),
            is_exact: fields.bool("conclude?")? == Some(false),
        })
    }

    /// Returns what holds in a turn. A tool that is named for this turn narrows it to the tool, unless the turn has a list with it.
    pub(super) fn of_turn(&self, turn: i64) -> Selection {
        let none = Rule::default();
        let rule = self.rules.iter().find(|(at, _)| *at == turn);
        let rule = rule.map_or(&none, |(_, rule)| rule);
        let sources = [&self.next, rule, &self.defaults, &self.own];
        let choice = sources.iter().find_map(|rule| rule.choice.clone());
        let listed = rule.active.as_ref();
        let narrowed = match &self.next.choice {
            Some(_) => self.next.narrowed(listed),
            None => rule.narrowed(listed),
        };
        let active = self.next.active.clone().or(narrowed);
        let later = || sources.iter().find_map(|rule| rule.active.clone());
        Selection {
            choice: choice.unwrap_or(Choice::Auto),
            active: active.or_else(later).unwrap_or_default(),
        }
    }

    /// Forgets what was submitted for the turn that has begun.
    pub(super) fn begun(&mut self) {
        self.next = Rule::default();
    }

    /// Notes that a call paused the loop: a named choice is met by it, so the next turn is free.
    pub(super) fn paused(&mut self) {
        for rule in [&mut self.own, &mut self.defaults] {
            if let Some(Choice::Tool(_)) = rule.choice {
                rule.choice = Some(Choice::Auto);
            }
        }
    }

    /// Takes what was submitted with the outputs of client tools.
    ///
    /// # Errors
    /// E1280: when it is wrong.
    pub(super) fn submitted(&mut self, answer: &Value) -> Result<(), StepError> {
        let fields = Fields::nested("the submitted outputs", answer)?;
        fields.only(SUBMITTED)?;
        self.next = rule(fields)?;
        if let Some(given) = fields.map("defaults")? {
            let fields = Fields::nested("`:defaults` of the submitted outputs", given)?;
            fields.only(&["active-tools", "tool-choice"])?;
            let given = rule(fields)?;
            self.defaults = Rule {
                choice: given.choice.or(self.defaults.choice.take()),
                active: given.active.or(self.defaults.active.take()),
            };
        }
        let mut later = rules(fields)?;
        // For the same turn, each field of a submitted rule counts before that of an earlier one.
        for (turn, known) in std::mem::take(&mut self.rules) {
            match later.iter_mut().find(|(at, _)| *at == turn) {
                Some((_, rule)) => {
                    rule.choice = rule.choice.take().or(known.choice);
                    rule.active = rule.active.take().or(known.active);
                }
                None => later.push((turn, known)),
            }
        }
        self.rules = later;
        Ok(())
    }

    /// Tells whether a call of this tool ends the loop.
    pub(super) fn stops_at(&self, name: &str) -> bool {
        self.stop.iter().any(|it| **it == *name)
    }

    /// Returns every tool that a field names.
    pub(super) fn names(&self) -> Vec<Rc<str>> {
        let rules = self.rules.iter().map(|(_, rule)| rule);
        let rules = rules.chain([&self.own, &self.defaults, &self.next]);
        let mut names = self.stop.clone();
        for rule in rules {
            names.extend(rule.active.iter().flatten().cloned());
            if let Some(Choice::Tool(name)) = &rule.choice {
                names.push(name.clone());
            }
        }
        names
    }
}

fn wrong(message: impl Into<String>) -> StepError {
    StepError::config("E1280", message)
}

fn rule(fields: Fields<'_>) -> Result<Rule, StepError> {
    let active = fields
        .get("active-tools")
        .map(|given| names(given, "active-tools"));
    Ok(Rule {
        choice: fields.get("tool-choice").map(choice).transpose()?,
        active: active.transpose()?,
    })
}

fn choice(given: &Value) -> Result<Choice, StepError> {
    let tool = match given {
        Value::Map(_) => given.get("tool").and_then(name_of),
        _ => None,
    };
    if let Some(tool) = tool {
        return Ok(Choice::Tool(tool));
    }
    match name_of(given).as_deref() {
        Some("auto") => Ok(Choice::Auto),
        Some("none") => Ok(Choice::Never),
        Some("required") => Ok(Choice::Required),
        _ => {
            let message = format!("`:tool-choice` cannot be `{}`", crate::text::brief(given));
            Err(wrong(message)
                .hint("there are `:auto`, `:required`, `:none` and `{:tool \"name\"}`"))
        }
    }
}

fn names(given: &Value, key: &str) -> Result<Vec<Rc<str>>, StepError> {
    let items =
        items(given).ok_or_else(|| wrong(format!("`:{key}` takes a vector of names of tools")))?;
    let names = items.iter().map(name_of);
    names
        .collect::<Option<_>>()
        .ok_or_else(|| wrong(format!("`:{key}` takes names of tools")))
}

fn rules(fields: Fields<'_>) -> Result<Vec<(i64, Rule)>, StepError> {
    let Some(given) = fields.get("step-rules") else {
        return Ok(Vec::new());
    };
    let given = items(given).ok_or_else(|| wrong("`:step-rules` takes a vector of maps"))?;
    let mut rules: Vec<(i64, Rule)> = Vec::new();
    for entry in &given {
        let fields = Fields::nested("a rule of `:step-rules`", entry)?;
        fields.only(RULE)?;
        let Some(turn) = fields.int("step", 1, TURN_MAX)? else {
            return Err(wrong("a rule of `:step-rules` needs a `:step`")
                .hint("turns are counted from 1: `{:step 1 :tool-choice {:tool \"search\"}}`"));
        };
        let rule = rule(fields)?;
        if !rules.iter().any(|(known, _)| *known == turn) {
            rules.push((turn, rule));
        }
    }
    Ok(rules)
}

fn stops(given: &Value) -> Result<Vec<Rc<str>>, StepError> {
    let given = items(given).ok_or_else(|| wrong("`:stop-when` takes a vector of maps"))?;
    let mut names = Vec::new();
    for entry in &given {
        let fields = Fields::nested("an entry of `:stop-when`", entry)?;
        fields.only(&["tool"])?;
        let name = fields.name("tool")?;
        names.push(name.ok_or_else(|| {
            wrong("an entry of `:stop-when` needs a `:tool`").hint("such as `{:tool \"done\"}`")
        })?);
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use flowstone_lang::reader::read_data;

    use super::*;

    fn control(config: &str) -> Control {
        let config = read_data(config).expect("a config");
        Control::read(Fields::new(&config)).expect("a control")
    }

    #[track_caller]
    fn check(control: &Control, turn: i64, expected: &str) {
        let found = control.of_turn(turn);
        let choice = found.choice.value().unwrap_or(Value::keyword("auto"));
        let text = format!("{} {:?}", crate::text::brief(&choice), found.active);
        assert_eq!(text, expected, "turn {turn}");
    }

    fn submit(control: &mut Control, answer: &str) {
        let answer = read_data(answer).expect("an answer");
        control.submitted(&answer).expect("it is taken");
    }

    #[test]
    fn the_first_rule_of_a_turn_wins_and_a_named_tool_narrows_it() {
        let control = control(
            "{:tool-choice :required :active-tools [\"a\" \"b\"]
              :step-rules [{:step 1 :tool-choice {:tool \"b\"}} {:step 1 :tool-choice :none}
                           {:step 2 :active-tools [\"a\"]}
                           {:step 3 :tool-choice {:tool \"a\"} :active-tools [\"a\" \"b\"]}]}",
        );
        check(&control, 1, "{:tool \"b\"} [\"b\"]");
        check(&control, 2, ":required [\"a\"]");
        check(&control, 3, "{:tool \"a\"} [\"a\", \"b\"]");
        check(&control, 4, ":required [\"a\", \"b\"]");
    }

    #[test]
    fn what_is_submitted_counts_field_by_field() {
        let mut control = control(
            "{:tool-choice :auto :active-tools [\"a\"] :step-rules [{:step 2 :tool-choice :none :active-tools [\"b\"]}]}",
        );
        submit(
            &mut control,
            "{:tool-choice :required :defaults {:tool-choice :none}
              :step-rules [{:step 2 :active-tools [\"c\"]} {:step 4 :active-tools [\"d\"]}]}",
        );
        check(&control, 2, ":required [\"c\"]");
        control.begun();
        check(&control, 2, ":none [\"c\"]");
        check(&control, 3, ":none [\"a\"]");
        check(&control, 4, ":none [\"d\"]");
    }

    #[test]
    fn a_named_tool_narrows_a_turn_only_where_it_is_chosen() {
        let stored =
            "{:step-rules [{:step 2 :tool-choice {:tool \"b\"}} {:step 3 :active-tools [\"c\"]}]}";
        let after = |answer: &str| {
            let mut control = control(stored);
            submit(&mut control, answer);
            control
        };
        let with_list =
            "{:tool-choice {:tool \"a\"} :step-rules [{:step 2 :active-tools [\"a\" \"c\"]}]}";
        check(&after(with_list), 2, "{:tool \"a\"} [\"a\", \"c\"]");
        check(&after("{:tool-choice :auto}"), 2, ":auto []");
        check(
            &after("{:tool-choice {:tool \"a\"}}"),
            2,
            "{:tool \"a\"} [\"a\"]",
        );
        check(&after("{}"), 2, "{:tool \"b\"} [\"b\"]");
        let other = "{:step-rules [{:step 3 :tool-choice {:tool \"a\"}}]}";
        check(&after(other), 3, "{:tool \"a\"} [\"a\"]");
    }

    #[test]
    fn a_pause_meets_a_named_choice_but_not_required() {
        let mut named = control("{:tool-choice {:tool \"a\"}}");
        named.paused();
        check(&named, 2, ":auto []");
        let mut required = control("{:tool-choice :required}");
        required.paused();
        check(&required, 2, ":required []");
    }

    #[test]
    fn a_wrong_field_is_named() {
        for (config, expected) in [
            ("{:tool-choice :any}", "`:tool-choice` cannot be `:any`"),
            (
                "{:step-rules [{:tool-choice :auto}]}",
                "a rule of `:step-rules` needs a `:step`",
            ),
            (
                "{:stop-when [{}]}",
                "an entry of `:stop-when` needs a `:tool`",
            ),
        ] {
            let config = read_data(config).expect("a config");
            let error = Control::read(Fields::new(&config)).expect_err("it is wrong");
            assert_eq!((error.code, error.message.as_str()), ("E1280", expected));
        }
    }
}
