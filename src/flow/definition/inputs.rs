//! Run inputs: checks the input that a caller gives, and converts it to the types that the flow declares.

use flowstone_lang::value::{BigDecimal, Value};

use super::{Flow, Input, name_of};

/// The invocation of a run that names none; a flow does not have to declare it.
const DEFAULT: &str = "default";

/// The reason why a run cannot start with an input.
#[derive(Debug, Clone, thiserror::Error)]
pub enum InputError {
    #[error("the input must be a map, not {found}")]
    NotAMap { found: &'static str },
    #[error("the flow has no invocation `:{name}`")]
    UnknownInvocation { name: String, known: Vec<String> },
    #[error("missing required run inputs: {}", names.join(", "))]
    Missing { names: Vec<String> },
    #[error("missing values of the flow's setup: {}", names.join(", "))]
    MissingSetup { slug: String, names: Vec<String> },
    #[error("the input `{name}` must be {expected}, not {found}")]
    WrongType {
        name: String,
        expected: String,
        found: String,
    },
    #[error("the setup value `{name}` must be {expected}, not {found}")]
    WrongSetup {
        name: String,
        expected: String,
        found: String,
    },
}

impl InputError {
    /// Returns the code of the page in `docs/errors`.
    pub fn code(&self) -> &'static str {
        match self {
            InputError::NotAMap { .. } => "E0423",
            InputError::UnknownInvocation { .. } => "E0409",
            InputError::Missing { .. } => "E0420",
            InputError::MissingSetup { .. } => "E0428",
            InputError::WrongType { .. } | InputError::WrongSetup { .. } => "E0421",
        }
    }

    /// Turns an error about an input into one about a value of the flow's setup.
    fn of_setup(self) -> InputError {
        match self {
            InputError::WrongType {
                name,
                expected,
                found,
            } => InputError::WrongSetup {
                name,
                expected,
                found,
            },
            other => other,
        }
    }

    /// Returns what to try.
    pub fn hint(&self) -> String {
        match self {
            InputError::NotAMap { .. } => {
                "give an object, such as `{\"name\": \"value\"}`".to_owned()
            }
            InputError::UnknownInvocation { known, .. } if known.is_empty() => {
                "leave it out: the flow takes any input".to_owned()
            }
            InputError::UnknownInvocation { known, .. } => {
                let known: Vec<String> = known.iter().map(|id| format!("`:{id}`")).collect();
                format!("the invocations are {}", known.join(", "))
            }
            InputError::Missing { names } => {
                format!("give them, as in `--input '{{{}}}'`", fields(names, "\"", "\": ..."))
            }
            InputError::MissingSetup { slug, names } => format!(
                "give them with `--setup '{{{}}}'`, or in flowstone.edn: `:setup {{:{slug} {{{}}}}}`",
                fields(names, "\"", "\": ..."),
                fields(names, ":", " ...")
            ),
            InputError::WrongSetup { .. } => {
                "the forms under `:requires` of the flow declare the values; they are given with `--setup`, or under `:setup` in flowstone.edn".to_owned()
            }
            InputError::WrongType { expected, .. } if expected == REFERENCE => {
                "store the file with `--upload NAME=FILE`, or give the `res://` name of what is stored".to_owned()
            }
            InputError::WrongType { .. } => {
                "the flow declares its inputs under `:invocations`".to_owned()
            }
        }
    }
}

/// Formats names as the keys of a map.
fn fields(names: &[String], before: &str, after: &str) -> String {
    let fields: Vec<String> = names
        .iter()
        .map(|name| format!("{before}{name}{after}"))
        .collect();
    fields.join(", ")
}

/// The key of the input that holds the values of setup forms.
pub const ACTIVATION: &str = "activation";

/// The expected value of an input of a kind such as `:file`.
const REFERENCE: &str = "a reference to something stored, `res://...`";

/// Prepares the input of a run: keys become keywords, defaults are added, values are converted to their types.
///
/// # Errors
/// Fails if the flow does not have the invocation, with all missing inputs at once, or with the first value of a wrong
/// type.
pub fn coerce_input(
    flow: &Flow,
    invocation: Option<&str>,
    given: &Value,
) -> Result<Value, InputError> {
    let given = match given {
        Value::Nil => Value::map([]),
        Value::Map(_) => given.clone(),
        other => {
            return Err(InputError::NotAMap {
                found: other.kind(),
            });
        }
    };
    let mut entries: Vec<(Value, Value)> = given
        .as_map()
        .map(|map| {
            map.iter()
                .map(|(key, value)| (keyword_key(key), value.clone()))
                .collect()
        })
        .unwrap_or_default();
    let contract = match invocation {
        Some(id) if id != DEFAULT => flow.invocations.iter().find(|contract| &*contract.id == id),
        _ => flow.default_invocation(),
    };
    let Some(contract) = contract else {
        return match invocation.filter(|id| *id != DEFAULT) {
            Some(id) => Err(InputError::UnknownInvocation {
                name: id.to_owned(),
                known: flow
                    .invocations
                    .iter()
                    .map(|it| it.id.to_string())
                    .collect(),
            }),
            None => Ok(Value::map(entries)),
        };
    };
    let missing = fill(&contract.inputs, &mut entries)?;
    if missing.is_empty() {
        return Ok(Value::map(entries));
    }
    Err(InputError::Missing { names: missing })
}

/// Returns an input with the values of the flow's setup forms under `:activation`. Values of the input override those
/// that the project's `settings` have under `:setup` and the flow's slug; these override the defaults of the fields.
///
/// # Errors
/// Fails with all missing values at once, or with the first value of a wrong type.
pub fn activated(flow: &Flow, settings: &Value, input: Value) -> Result<Value, InputError> {
    if flow.setup.is_empty() {
        return Ok(input);
    }
    let Some(map) = input.as_map() else {
        return Ok(input);
    };
    let brought = map.get(&Value::keyword(ACTIVATION)).cloned();
    let brought = brought.unwrap_or(Value::Nil);
    if !brought.is_nil() && brought.as_map().is_none() {
        return Err(InputError::WrongType {
            name: ACTIVATION.to_owned(),
            expected: "a map".to_owned(),
            found: shown(&brought),
        });
    }
    let kept = settings
        .get("setup")
        .and_then(|setup| setup.get(&flow.slug));
    let mut entries: Vec<(Value, Value)> = Vec::new();
    for source in [kept, Some(&brought)].into_iter().flatten() {
        for (key, value) in source.as_map().into_iter().flat_map(|map| map.iter()) {
            let key = keyword_key(key);
            match entries.iter_mut().find(|(known, _)| *known == key) {
                Some(known) => known.1 = value.clone(),
                None => entries.push((key, value.clone())),
            }
        }
    }
    let missing = fill(&flow.setup, &mut entries).map_err(InputError::of_setup)?;
    if !missing.is_empty() {
        return Err(InputError::MissingSetup {
            slug: flow.slug.to_string(),
            names: missing,
        });
    }
    let others = map
        .iter()
        .filter(|(key, _)| **key != Value::keyword(ACTIVATION))
        .map(|(key, value)| (key.clone(), value.clone()));
    let activation = (Value::keyword(ACTIVATION), Value::map(entries));
    Ok(Value::map(others.chain([activation])))
}

/// Converts the entries to their types, adds defaults, and returns the names of missing entries.
fn fill(inputs: &[Input], entries: &mut Vec<(Value, Value)>) -> Result<Vec<String>, InputError> {
    let mut missing = Vec::new();
    for input in inputs {
        let key = Value::keyword(&input.name);
        let slot = entries.iter_mut().find(|(name, _)| *name == key);
        let given = slot
            .as_ref()
            .map(|(_, value)| value.clone())
            .filter(|value| !value.is_nil());
        let value = match given {
            Some(value) => coerce(input, value)?,
            None if !input.default.is_nil() => input.default.clone(),
            None if input.required => {
                missing.push(input.name.to_string());
                continue;
            }
            None => continue,
        };
        match slot {
            Some(slot) => slot.1 = value,
            None => entries.push((key, value)),
        }
    }
    Ok(missing)
}

fn keyword_key(key: &Value) -> Value {
    match key {
        Value::Text(text) => Value::keyword(text),
        other => other.clone(),
    }
}

impl Input {
    /// Converts a value to the input's type.
    ///
    /// # Errors
    /// Fails if the value cannot be converted.
    pub fn coerced(&self, value: Value) -> Result<Value, InputError> {
        coerce(self, value)
    }
}

fn coerce(input: &Input, value: Value) -> Result<Value, InputError> {
    if input.multiple {
        if let Value::Vector(items) = &value {
            let items: Result<Vec<Value>, InputError> = items
                .iter()
                .map(|item| coerce_one(input, item.clone()))
                .collect();
            return Ok(Value::vector(items?));
        }
        return Ok(Value::vector([coerce_one(input, value)?]));
    }
    coerce_one(input, value)
}

fn coerce_one(input: &Input, value: Value) -> Result<Value, InputError> {
    let wrong = |expected: &str| InputError::WrongType {
        name: input.name.to_string(),
        expected: expected.to_owned(),
        found: shown(&value),
    };
    let text = value.as_str();
    let text_that = |expected: &str, check: fn(&str) -> bool| match text {
        Some(text) if check(text) => Ok(value.clone()),
        _ => Err(wrong(expected)),
    };
    match &*input.type_ {
        "text" | "string" | "textarea" | "password" | "secret" => match &value {
            Value::Text(_) => Ok(value),
            Value::Keyword(_) => Ok(name_of(&value).map_or(Value::Nil, |name| Value::from(&*name))),
            _ => Err(wrong("a string")),
        },
        "email" => text_that("an e-mail address", is_email),
        "date" => text_that("a date such as 2026-01-31", is_date),
        "time" => text_that("a time such as 09:30", is_time),
        "datetime" => text_that("a time such as 2026-01-31T09:30:00Z", is_datetime),
        "number" => number(&value).ok_or_else(|| wrong("a number")),
        "boolean" | "checkbox" => boolean(&value).ok_or_else(|| wrong("true or false")),
        "select" => select(input, &value).ok_or_else(|| {
            let options: Vec<String> = input.options.iter().map(option_name).collect();
            wrong(&format!("one of {}", options.join(", ")))
        }),
        "any" => Ok(value),
        "list" => match crate::json::items(&value) {
            Some(items) => Ok(Value::vector(items)),
            None => Err(wrong("a list")),
        },
        "json" => match text {
            Some(text) => crate::json::read(text).map_err(|_| wrong("JSON")),
            None => Ok(value),
        },
        _ => match is_reference(&value) {
            true => Ok(value),
            false => Err(wrong(REFERENCE)),
        },
    }
}

/// Tells whether a value refers to a stored resource: by its name, or as a map that contains the name.
fn is_reference(value: &Value) -> bool {
    match value {
        Value::Text(text) => text.starts_with(crate::resource::PREFIX),
        Value::Map(_) => ["uri", "resource-uri", "ref", "blob-ref"]
            .into_iter()
            .filter_map(|key| value.get(key))
            .any(is_reference),
        _ => false,
    }
}

fn shown(value: &Value) -> String {
    let kind = value.kind();
    match crate::codec::encode(value) {
        Ok(text) if text.chars().count() <= 40 => format!("{text} ({kind})"),
        _ => kind.to_owned(),
    }
}

fn number(value: &Value) -> Option<Value> {
    match value {
        Value::Int(_)
        | Value::Float(_)
        | Value::BigInt(_)
        | Value::Ratio(_)
        | Value::Decimal(_) => Some(value.clone()),
        Value::Text(text) => {
            let text = text.trim();
            if let Ok(int) = text.parse::<i64>() {
                return Some(Value::Int(int));
            }
            text.parse::<BigDecimal>().ok()?;
            text.parse::<f64>()
                .ok()
                .filter(|float| float.is_finite())
                .map(Value::Float)
        }
        _ => None,
    }
}

fn boolean(value: &Value) -> Option<Value> {
    match value {
        Value::Bool(_) => Some(value.clone()),
        Value::Text(text) => match text.trim() {
            "true" | "on" | "yes" => Some(Value::Bool(true)),
            "false" | "off" | "no" | "" => Some(Value::Bool(false)),
            _ => None,
        },
        _ => None,
    }
}

/// An option is a plain value, or a map with `:value` and `:label`.
pub(crate) fn option_value(option: &Value) -> &Value {
    option.get("value").unwrap_or(option)
}

fn option_name(option: &Value) -> String {
    let value = option_value(option);
    name_of(value).map_or_else(|| shown(value), |name| name.to_string())
}

fn select(input: &Input, value: &Value) -> Option<Value> {
    if input.options.is_empty() {
        return Some(value.clone());
    }
    let name = name_of(value);
    input
        .options
        .iter()
        .map(option_value)
        .find(|option| *option == value || (name.is_some() && name_of(option) == name))
        .cloned()
}

fn is_email(text: &str) -> bool {
    text.split_once('@')
        .is_some_and(|(user, host)| !user.is_empty() && host.contains('.') && !text.contains(' '))
}

/// Tells whether a text consists of groups of digits of these lengths with this separator, each within its bounds.
fn digits(text: &str, separator: char, groups: &[(usize, u32, u32)]) -> bool {
    let parts: Vec<&str> = text.split(separator).collect();
    parts.len() == groups.len()
        && parts.iter().zip(groups).all(|(part, (length, low, high))| {
            part.len() == *length
                && part.bytes().all(|byte| byte.is_ascii_digit())
                && part
                    .parse::<u32>()
                    .is_ok_and(|number| (*low..=*high).contains(&number))
        })
}

fn is_date(text: &str) -> bool {
    let has_digits = digits(text, '-', &[(4, 0, 9999), (2, 1, 12), (2, 1, 31)]);
    has_digits && text.parse::<jiff::civil::Date>().is_ok()
}

fn is_time(text: &str) -> bool {
    let text = text.split_once('.').map_or(text, |(whole, _)| whole);
    let hours = (2, 0, 23);
    let sixty = (2, 0, 59);
    digits(text, ':', &[hours, sixty]) || digits(text, ':', &[hours, sixty, sixty])
}

fn is_datetime(text: &str) -> bool {
    let Some((date, time)) = text.split_once(['T', ' ']) else {
        return false;
    };
    let time = time.trim_end_matches('Z');
    let (clock, offset) = match time.find(['+', '-']) {
        Some(at) => (&time[..at], Some(&time[at + 1..])),
        None => (time, None),
    };
    is_date(date) && is_time(clock) && offset.is_none_or(is_offset)
}

/// Tells whether a text is an offset from UTC, without its sign.
fn is_offset(text: &str) -> bool {
    let (hours, sixty) = ((2, 0, 23), (2, 0, 59));
    match text.split_at_checked(2) {
        Some((front, back)) if back.len() == 2 && !back.starts_with(':') => {
            digits(front, ':', &[hours]) && digits(back, ':', &[sixty])
        }
        _ => digits(text, ':', &[hours]) || digits(text, ':', &[hours, sixty]),
    }
}
