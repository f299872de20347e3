//! `:steps`: built-in steps with a contract, defined by the flow. Entries of `:agents` are packaged steps too
//! ([`super::agents`]).
//!
//! Reports what can be checked without knowing the step types. Whether the wrapped type exists and takes the
//! `:defaults` is checked with the calls of steps.

use std::fmt;
use std::rc::Rc;

use flowstone_lang::value::{Span, Value};

use super::reading::{Reading, keywords};
use super::{FlowFunction, name_of};
use crate::diagnostic::Diagnostic;
use crate::forms::{entry_spans, quoted};
use crate::schema::{self, Schema};

/// An entry of `:steps` or `:agents`.
#[derive(Debug, Clone)]
pub struct PackagedStep {
    /// Qualified, without its colon: `github/open-pr`.
    pub id: Rc<str>,
    /// The type of the wrapped step, without its colon.
    pub kind: Rc<str>,
    pub description: Option<Rc<str>>,
    pub input: Option<Contract>,
    pub output: Option<Contract>,
    /// Config of the wrapped step, a map.
    pub defaults: Value,
    /// Code that turns the input into the config of the wrapped step.
    pub prepare: Option<Value>,
    /// Code that turns the value of the wrapped step into the value of this step.
    pub project_result: Option<Value>,
    /// The name of the tool for models.
    pub tool_name: Rc<str>,
    pub tool_description: Option<Rc<str>>,
    /// The whole entry.
    pub entry: Value,
    pub span: Span,
    /// The key of the definition that contains it.
    pub origin: Origin,
}

/// The keys of a definition that contain packaged steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// `:steps`.
    Step,
    /// `:agents`.
    Agent,
}

impl Origin {
    /// Returns the key of the definition.
    pub fn key(self) -> &'static str {
        match self {
            Origin::Step => "steps",
            Origin::Agent => "agents",
        }
    }

    /// Returns the name in messages of an entry under this key.
    pub fn noun(self) -> &'static str {
        match self {
            Origin::Step => "packaged step",
            Origin::Agent => "named agent",
        }
    }

    /// Returns the error code for a malformed entry.
    pub(super) fn code(self) -> &'static str {
        match self {
            Origin::Step => "E0422",
            Origin::Agent => "E0468",
        }
    }

    fn example(self) -> &'static str {
        match self {
            Origin::Step => "`:github/open-pr`",
            Origin::Agent => "`:review/security`",
        }
    }
}

impl PackagedStep {
    /// Tells whether it is one of `:agents`.
    pub fn is_agent(&self) -> bool {
        self.origin == Origin::Agent
    }

    /// Returns the step id of calls that name none: the id without its namespace.
    pub fn step_id(&self) -> &str {
        self.id.rsplit_once('/').map_or(&self.id, |(_, name)| name)
    }
}

/// A schema with the form that it was read from.
#[derive(Clone)]
pub struct Contract {
    pub form: Value,
    pub schema: Schema,
}

impl fmt::Debug for Contract {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.form.fmt(out)
    }
}

/// Every key of an entry, sorted.
const KEYS: &[&str] = &[
    "defaults",
    "description",
    "id",
    "input-schema",
    "output-schema",
    "prepare",
    "project-result",
    "tool",
    "type",
];

const TOOL_KEYS: &[&str] = &["description", "name"];

/// Maximum length of a tool's name that model providers accept.
const TOOL_NAME: usize = 64;

pub(super) fn read(
    reading: &mut Reading<'_>,
    map: &Value,
    functions: &[FlowFunction],
) -> Vec<Rc<PackagedStep>> {
    let mut steps: Vec<Rc<PackagedStep>> = Vec::new();
    for (entry, span) in reading.maps(map, "steps") {
        known_keys(reading, &entry, KEYS, Origin::Step);
        let Some(id) = id(reading, (&entry, span), Origin::Step, &steps) else {
            continue;
        };
        let Some(kind) = kind(reading, &entry, &id, span) else {
            continue;
        };
        let tool = tool(reading, &entry, (&id, Origin::Step));
        let step = PackagedStep {
            kind,
            description: reading.text(&entry, "description"),
            input: contract(reading, &entry, "input-schema"),
            output: contract(reading, &entry, "output-schema"),
            defaults: defaults(reading, &entry),
            prepare: code(reading, &entry, "prepare", functions),
            project_result: code(reading, &entry, "project-result", functions),
            tool_name: tool.0,
            tool_description: tool.1,
            entry: entry.clone(),
            span,
            origin: Origin::Step,
            id,
        };
        add(reading, &mut steps, step);
    }
    steps
}

/// Adds a step to those read so far, and reports steps that are the same tool.
pub(super) fn add(
    reading: &mut Reading<'_>,
    steps: &mut Vec<Rc<PackagedStep>>,
    step: PackagedStep,
) {
    if let Some(other) = steps.iter().find(|other| other.tool_name == step.tool_name) {
        let message = format!(
            "`:{}` and `:{}` are the same tool `{}`",
            other.id, step.id, step.tool_name
        );
        reading.push(
            Diagnostic::error(step.origin.code(), message)
                .at(step.span)
                .hint("give one of them another name: `:tool {:name \"...\"}`"),
        );
    }
    steps.push(Rc::new(step));
}

/// Tells whether a name, without its colon, may be the id of a packaged step.
pub(super) fn is_packaged_id(name: &str) -> bool {
    let part = |text: &str| {
        text.starts_with(|char: char| char.is_ascii_alphabetic())
            && text
                .chars()
                .all(|char| char.is_ascii_alphanumeric() || char == '_' || char == '-')
    };
    name.split_once('/')
        .is_some_and(|(space, name)| space.split('.').all(part) && part(name) && name.len() <= 128)
}

fn known_keys(reading: &mut Reading<'_>, entry: &Value, known: &[&str], origin: Origin) {
    unknown_keys(
        reading,
        entry,
        known,
        (origin, &format!("a {}", origin.noun())),
    );
}

fn unknown_keys(
    reading: &mut Reading<'_>,
    entry: &Value,
    known: &[&str],
    (origin, what): (Origin, &str),
) {
    for (key, _) in entry.as_map().into_iter().flat_map(|map| map.iter()) {
        let name = name_of(key).unwrap_or_default();
        if key.as_keyword().is_none() || !known.contains(&&*name) {
            let shown = crate::text::brief(key);
            let at = entry_spans(reading.sources, entry, &shown).key;
            let message = format!("{what} has no key `{shown}`");
            let finding = Diagnostic::error(origin.code(), message).at(at);
            let suggested = finding.suggest(&name, known.iter().copied());
            reading.push(match suggested.hints.is_empty() {
                true => suggested.hint(format!("its keys are {}", keywords(known))),
                false => suggested,
            });
        }
    }
}

/// Reads an `:id` that no other step has.
pub(super) fn id(
    reading: &mut Reading<'_>,
    (entry, span): (&Value, Span),
    origin: Origin,
    steps: &[Rc<PackagedStep>],
) -> Option<Rc<str>> {
    let given = entry.get("id").filter(|id| !id.is_nil());
    let Some(given) = given else {
        let message = format!("an entry of `:{}` needs an `:id`", origin.key());
        let hint = origin.example().trim_start_matches('`');
        reading.push(
            Diagnostic::error(origin.code(), message)
                .at(span)
                .hint(format!("a keyword with a namespace, such as `:id {hint}")),
        );
        return None;
    };
    let name = match given {
        Value::Keyword(_) | Value::Text(_) => name_of(given),
        _ => None,
    };
    let name = name.map(|name| Rc::from(name.trim_start_matches(':')));
    let Some(name) = name.filter(|name: &Rc<str>| is_packaged_id(name)) else {
        let shown = crate::text::brief(given);
        let message = format!("`{shown}` cannot be the `:id` of a {}", origin.noun());
        reading.push(
            Diagnostic::error(origin.code(), message)
                .at(reading.value_at(entry, "id"))
                .hint(format!(
                    "it is a keyword with a namespace, both of letters, digits, `-` and `_`: {}",
                    origin.example()
                )),
        );
        return None;
    };
    if let Some(known) = steps.iter().find(|known| known.id == name) {
        let at = reading.value_at(entry, "id").or(span);
        let message = match known.origin == origin {
            true => format!("there are two {}s `:{name}`", origin.noun()),
            false => format!("`:{name}` is in `:steps` and in `:agents`"),
        };
        reading.error("E0414", message, at);
        return None;
    }
    Some(name)
}

fn kind(reading: &mut Reading<'_>, entry: &Value, id: &str, span: Span) -> Option<Rc<str>> {
    let given = entry.get("type").filter(|kind| !kind.is_nil());
    let Some(given) = given else {
        reading.push(
            Diagnostic::error(
                "E0422",
                format!("the packaged step `:{id}` needs a `:type`"),
            )
            .at(span)
            .hint("the type of the step that it wraps, such as `:type :http`"),
        );
        return None;
    };
    let name = match given {
        Value::Keyword(_) | Value::Text(_) => name_of(given),
        _ => None,
    };
    let Some(name) = name else {
        let message = format!("`:type` is a keyword, not {}", given.kind());
        let at = reading.value_at(entry, "type");
        reading.error("E0422", message, at);
        return None;
    };
    if name.contains('/') {
        let message = format!("`:{id}` wraps `:{name}`, but only a built-in step can be wrapped");
        let at = reading.value_at(entry, "type");
        reading.error("E0422", message, at);
        return None;
    }
    Some(name)
}

pub(super) fn contract(reading: &mut Reading<'_>, entry: &Value, key: &str) -> Option<Contract> {
    let form = entry.get(key).filter(|form| !form.is_nil())?;
    let form = without_quotes(form);
    match schema::parse_with_functions(&form) {
        Ok(schema) => Some(Contract { form, schema }),
        Err(error) => {
            let at = reading.value_at(entry, key);
            reading.push(
                Diagnostic::error("E0424", format!("`:{key}` is not a valid schema: {error}"))
                    .at(at)
                    .hint("a Malli form, such as `[:map [:owner :string]]`"),
            );
            None
        }
    }
}

fn defaults(reading: &mut Reading<'_>, entry: &Value) -> Value {
    match entry.get("defaults") {
        None | Some(Value::Nil) => Value::map([]),
        Some(given @ Value::Map(_)) => without_quotes(given),
        Some(other) => {
            let message = format!("`:defaults` must be a map, not {}", other.kind());
            let at = reading.value_at(entry, "defaults");
            reading.error("E0422", message, at);
            Value::map([])
        }
    }
}

/// Removes quotes: nothing in a definition is evaluated.
pub(super) fn without_quotes(form: &Value) -> Value {
    match form {
        Value::List(_) => quoted(form).unwrap_or_else(|| form.clone()),
        Value::Vector(items) => Value::vector(items.iter().map(without_quotes)),
        Value::Map(map) => Value::map(
            map.iter()
                .map(|(key, value)| (key.clone(), without_quotes(value))),
        ),
        other => other.clone(),
    }
}

pub(super) fn code(
    reading: &mut Reading<'_>,
    entry: &Value,
    key: &str,
    functions: &[FlowFunction],
) -> Option<Value> {
    let given = entry.get(key).filter(|given| !given.is_nil())?;
    let at = reading.value_at(entry, key);
    match given {
        Value::Keyword(id) => {
            let id = id.name();
            if functions.iter().all(|function| *function.id != *id) {
                let names = functions.iter().map(|function| &*function.id);
                reading.push(
                    Diagnostic::error("E0427", format!("there is no function `:{id}`"))
                        .at(at)
                        .suggest(&id, names)
                        .hint(format!("`:{key}` names one of the flow's `:functions`")),
                );
                return None;
            }
            Some(given.clone())
        }
        Value::List(_) | Value::Text(_) => Some(quoted(given).unwrap_or_else(|| given.clone())),
        other => {
            let message = format!("`:{key}` is the id of a function, not {}", other.kind());
            reading.push(Diagnostic::error("E0427", message).at(at).hint(format!(
                "name one of the flow's `:functions`: `:{key} :my-function`"
            )));
            None
        }
    }
}

/// Reads `:tool`: the name and the description for models.
pub(super) fn tool(
    reading: &mut Reading<'_>,
    entry: &Value,
    (id, origin): (&str, Origin),
) -> (Rc<str>, Option<Rc<str>>) {
    let derived: String = id
        .chars()
        .map(|char| match char {
            '/' | '-' | '.' => '_',
            char => char,
        })
        .collect();
    let derived = Rc::from(&derived[..derived.len().min(TOOL_NAME)]);
    let Some(given) = entry.get("tool").filter(|tool| !tool.is_nil()) else {
        return (derived, None);
    };
    if given.as_map().is_none() {
        let at = reading.value_at(entry, "tool");
        let message = format!("`:tool` must be a map, not {}", given.kind());
        reading.push(
            Diagnostic::error(origin.code(), message)
                .at(at)
                .hint("`:tool {:name \"github_open_pr\" :description \"...\"}`"),
        );
        return (derived, None);
    }
    unknown_keys(reading, given, TOOL_KEYS, (origin, "`:tool`"));
    let description = reading.text(given, "description");
    let name = given.get("name").filter(|name| !name.is_nil());
    let name = match name {
        None => return (derived, description),
        Some(name) => match name {
            Value::Text(_) | Value::Keyword(_) => name_of(name),
            _ => None,
        },
    };
    let is_name = |name: &Rc<str>| {
        (1..=TOOL_NAME).contains(&name.len())
            && name
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-')
    };
    match name.filter(is_name) {
        Some(name) => (name, description),
        None => {
            let at = reading.value_at(given, "name");
            reading.push(
                Diagnostic::error(origin.code(), "this cannot be the name of a tool")
                    .at(at)
                    .hint("models take up to 64 letters, digits, `_` and `-`"),
            );
            (derived, description)
        }
    }
}
