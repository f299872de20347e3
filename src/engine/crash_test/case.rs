//! A test case of a flow, as an EDN map.

use flowstone_lang::value::{PMap, Value};

use super::TestError;
use super::uses::Noted;
use crate::codec;
use crate::diagnostic::nearest;
use crate::flow::name_of;
use crate::ids::StepPath;

/// The keys of a case.
const KEYS: &[&str] = &[
    "answers",
    "expect",
    "input",
    "invocation",
    "live",
    "mock",
    "steps",
    "tables",
    "tool",
    "values",
];

/// The inputs and expectations of a test.
#[derive(Debug)]
pub struct Case {
    pub input: Value,
    /// The invocation; nil: the default one.
    pub invocation: Value,
    /// Results of steps that are not performed: by path, step id or step type.
    pub mock: Value,
    /// Answers to waits: by path, step id or key, or `"*"`. Results of jobs: by job type.
    pub answers: Value,
    /// The expected result of the flow; nil: anything.
    pub expect: Value,
    /// Whether to perform steps that change something outside, and call models, if no mock answers.
    pub live: bool,
    /// The steps that the run is expected to call: a vector of ids in the order of their first calls, or a map of ids and
    /// numbers of calls; nil: anything.
    pub steps: Value,
    /// The expected rows of tables, by name: vectors of maps with the columns that matter, in any order; nil: anything.
    pub tables: Value,
    /// The expected values of keys; nil: anything.
    pub values: Value,
    /// The name of the tool that an agent is expected to have called, with an answer; nil: anything.
    pub tool: Value,
    /// Which of its mocks and answers were used.
    pub(super) noted: Noted,
}

impl Default for Case {
    fn default() -> Case {
        Case {
            input: Value::Nil,
            invocation: Value::Nil,
            mock: Value::Nil,
            answers: Value::Nil,
            expect: Value::Nil,
            live: false,
            steps: Value::Nil,
            tables: Value::Nil,
            values: Value::Nil,
            tool: Value::Nil,
            noted: Noted::default(),
        }
    }
}

impl Case {
    /// Reads a case.
    ///
    /// # Errors
    /// When it is not a map, or has unknown keys.
    pub fn of_value(value: &Value) -> Result<Case, TestError> {
        let bad = |message: String| Err(TestError::BadCase(message));
        let Some(map) = value.as_map() else {
            return bad(format!("a case is a map, not {}", value.kind()));
        };
        for (key, _) in map.entries().iter() {
            let name = name_of(key).unwrap_or_default();
            if !KEYS.contains(&&*name) {
                let near = nearest(&name, KEYS.iter().copied());
                let near =
                    near.map_or_else(String::new, |near| format!(": did you mean `:{near}`?"));
                return bad(format!("a case has no `:{name}`{near}"));
            }
        }
        let part = |key: &str| value.get(key).cloned().unwrap_or(Value::Nil);
        for key in ["answers", "mock", "tables", "values"] {
            let part = part(key);
            if !part.is_nil() && part.as_map().is_none() {
                return bad(format!("`:{key}` of a case is a map, not {}", part.kind()));
            }
        }
        Ok(Case {
            input: part("input"),
            invocation: part("invocation"),
            mock: part("mock"),
            answers: part("answers"),
            expect: part("expect"),
            live: part("live") == Value::Bool(true),
            steps: part("steps"),
            tables: part("tables"),
            values: part("values"),
            tool: part("tool"),
            noted: Noted::default(),
        })
    }

    /// Encodes the case as text.
    ///
    /// # Errors
    /// When something in it is not data.
    pub fn encode(&self) -> Result<String, TestError> {
        let whole = Value::map([
            (Value::keyword("input"), self.input.clone()),
            (Value::keyword("invocation"), self.invocation.clone()),
            (Value::keyword("mock"), self.mock.clone()),
            (Value::keyword("answers"), self.answers.clone()),
            (Value::keyword("expect"), self.expect.clone()),
            (Value::keyword("live"), Value::Bool(self.live)),
            (Value::keyword("steps"), self.steps.clone()),
            (Value::keyword("tables"), self.tables.clone()),
            (Value::keyword("values"), self.values.clone()),
            (Value::keyword("tool"), self.tool.clone()),
        ]);
        codec::encode(&whole).map_err(|error| TestError::BadCase(error.to_string()))
    }

    /// Adds an answer, before the existing ones.
    pub fn add_answer(&mut self, target: &str, answer: Value) {
        self.answers = with(&self.answers, Value::from(target), answer);
    }

    /// Adds mocks; they override those of the same names.
    ///
    /// # Errors
    /// When they are not a map.
    pub fn add_mocks(&mut self, mocks: &Value) -> Result<(), TestError> {
        let Some(map) = mocks.as_map() else {
            let message = format!("mocks are a map, not {}", mocks.kind());
            return Err(TestError::BadCase(message));
        };
        for (name, mock) in map.entries().iter() {
            self.mock = with(&self.mock, name.clone(), mock.clone());
        }
        Ok(())
    }

    /// Returns the mocked result of a step, and records the mock as used.
    pub(super) fn mock(&self, path: &StepPath, kind: &str, attempt: u32) -> Option<Value> {
        let at = path.to_string();
        let names = [at.as_str(), path.step.as_str(), kind];
        self.noted.asked("mock", &names);
        let (name, mock) = names
            .iter()
            .find_map(|name| Some((*name, named(&self.mock, name)?)))?;
        let mock = self.choose(mock, (name, "each"), path.occurrence);
        Some(self.choose(mock, (name, "attempts"), attempt))
    }

    /// Returns the answer to a wait with any of these names, and records it as used.
    pub(super) fn answer(&self, names: &[&str]) -> Option<Value> {
        self.noted.asked("answers", names);
        let mut names = names.iter().copied().chain(["*"]);
        names.find_map(|name| named(&self.answers, name))
    }

    /// `{:mock/each [...]}` returns the items one after another, and then always the last one.
    fn choose(&self, mock: Value, (name, list): (&str, &str), number: u32) -> Value {
        let Some(items) = outcomes(&mock, list) else {
            return mock;
        };
        let last = items.len().saturating_sub(1);
        let idx = (number.max(1) as usize - 1).min(last);
        self.noted.chosen(list, name, idx + 1);
        items.into_iter().nth(idx).unwrap_or(Value::Nil)
    }
}

/// Returns the outcomes of a mock with several, such as those of `{:mock/each [...]}`.
pub(super) fn outcomes(mock: &Value, list: &str) -> Option<Vec<Value>> {
    let key = Value::keyword(&format!("mock/{list}"));
    match mock.as_map()?.entries().get(&key)? {
        Value::Vector(items) => Some(items.iter().cloned().collect()),
        _ => None,
    }
}

/// Returns the entry of a map whose key, a keyword or a string, has this name.
fn named(map: &Value, name: &str) -> Option<Value> {
    let map = map.as_map()?;
    let mut entries = map.entries().iter();
    entries.find_map(|(key, value)| (name_of(key).as_deref() == Some(name)).then(|| value.clone()))
}

fn with(map: &Value, key: Value, value: Value) -> Value {
    let mut entries = map
        .as_map()
        .map_or_else(PMap::new, |map| map.entries().clone());
    entries.insert(key, value);
    Value::Map(std::rc::Rc::new(flowstone_lang::value::Map::new(entries)))
}
