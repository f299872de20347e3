//! A step's config against its spec: unknown keys, missing ones, wrong types, defaults.

use flowstone_lang::value::Value;

use super::options::{self, Wrong};
use super::{COMMON, Field, FieldType, StepError, StepSpec};
use crate::codec;
use crate::diagnostic::nearest;
use crate::duration;
use crate::flow::name_of;
use crate::json;

/// What is wrong with a config.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Problem {
    Unknown {
        key: String,
    },
    Missing {
        key: &'static str,
    },
    WrongType {
        key: &'static str,
        expected: String,
        found: String,
    },
    /// Something inside a common option.
    Option(Box<Wrong>),
    /// Keys are keywords.
    BadKey {
        found: &'static str,
    },
}

impl Problem {
    pub(crate) fn code(&self) -> &'static str {
        match self {
            Problem::Unknown { .. } | Problem::BadKey { .. } => "E0710",
            Problem::Missing { .. } => "E0711",
            Problem::WrongType { .. } => "E0712",
            Problem::Option(wrong) => wrong.code,
        }
    }

    /// Returns the key where it is to be shown.
    pub(crate) fn key(&self) -> Option<&str> {
        match self {
            Problem::Unknown { key } => Some(key),
            Problem::WrongType { key, .. } => Some(key),
            Problem::Option(wrong) => Some(wrong.key),
            Problem::Missing { .. } | Problem::BadKey { .. } => None,
        }
    }

    pub(crate) fn message(&self, spec: &StepSpec) -> String {
        let kind = spec.kind;
        match self {
            Problem::Unknown { key } => format!("a `:{kind}` step has no option `:{key}`"),
            Problem::Missing { key } => format!("the `:{kind}` step needs `:{key}`"),
            Problem::WrongType {
                key,
                expected,
                found,
            } => {
                format!("`:{key}` of a `:{kind}` step must be {expected}, not {found}")
            }
            Problem::Option(wrong) => wrong.message.clone(),
            Problem::BadKey { found } => format!("the keys of a config are keywords, not {found}"),
        }
    }

    pub(crate) fn hint(&self, spec: &StepSpec) -> Option<String> {
        match self {
            Problem::Unknown { key } => {
                let names = || spec.fields.iter().chain(COMMON).map(|field| field.name);
                match nearest(key, names()) {
                    Some(name) => Some(format!("did you mean `:{name}`?")),
                    None => {
                        let own: Vec<String> = spec
                            .fields
                            .iter()
                            .map(|field| format!("`:{}`", field.name))
                            .collect();
                        Some(format!("its options are {}", own.join(", ")))
                    }
                }
            }
            Problem::Missing { key } => {
                let field = spec.field(key)?;
                Some(format!("`:{key}`: {}", field.doc))
            }
            Problem::WrongType { key, expected, .. } if expected.starts_with("one of") => {
                let _ = key;
                None
            }
            Problem::WrongType { key, .. } => {
                let field = spec.field(key)?;
                Some(format!("`:{key}`: {}", field.doc))
            }
            Problem::Option(wrong) => wrong.hint.clone(),
            Problem::BadKey { .. } => None,
        }
    }
}

/// Checks a config that is computed, and fills in the defaults.
pub(crate) fn resolve(spec: &'static StepSpec, config: &Value) -> Result<Value, StepError> {
    if let Some(problem) = check(spec, config, false).into_iter().next() {
        let error = StepError::config(problem.code(), problem.message(spec));
        return Err(match problem.hint(spec) {
            Some(hint) => error.hint(hint),
            None => error,
        });
    }
    let Value::Map(map) = config else {
        return Ok(config.clone());
    };
    let mut entries = map.entries().clone();
    for field in spec.fields {
        let Some(default) = field.default else {
            continue;
        };
        let key = Value::keyword(field.name);
        if entries.get(&key).is_none_or(Value::is_nil) {
            let value = codec::decode(default).expect("defaults of specs are EDN");
            entries.insert(key, value);
        }
    }
    Ok(Value::Map(std::rc::Rc::new(
        flowstone_lang::value::Map::new(entries),
    )))
}

/// Checks a config as it is written: of values, only constants.
pub(crate) fn check_literal(spec: &'static StepSpec, config: &Value) -> Vec<Problem> {
    check(spec, config, true)
}

fn check(spec: &'static StepSpec, config: &Value, literal: bool) -> Vec<Problem> {
    let Value::Map(map) = config else {
        return Vec::new();
    };
    let mut problems = Vec::new();
    for (key, value) in map.iter() {
        let Value::Keyword(keyword) = key else {
            if !literal {
                problems.push(Problem::BadKey { found: key.kind() });
            }
            continue;
        };
        let name = &keyword.to_string()[1..];
        let Some(field) = spec.field(name) else {
            problems.push(Problem::Unknown {
                key: name.to_owned(),
            });
            continue;
        };
        if name == "type" && !names_kind(spec, value) {
            problems.push(Problem::WrongType {
                key: "type",
                expected: format!("`:{}`, as the step type says", spec.kind),
                found: shown(value),
            });
            continue;
        }
        let is_known = !literal || is_constant(value);
        if !is_known || value.is_nil() {
            continue;
        }
        if !fits(field.type_, value) {
            problems.push(Problem::WrongType {
                key: field.name,
                expected: expected(field.type_),
                found: shown(value),
            });
        } else if !spec.fields.iter().any(|own| own.name == name)
            && let Err(wrong) = options::check(field, value, literal)
        {
            problems.push(Problem::Option(Box::new(wrong)));
        }
    }
    let missing = |field: &&Field| {
        field.required
            && map
                .get(&Value::keyword(field.name))
                .is_none_or(|value| value.is_nil() && !literal)
    };
    problems.extend(
        spec.fields
            .iter()
            .filter(missing)
            .map(|field| Problem::Missing { key: field.name }),
    );
    problems
}

/// Tells whether a config's `:type` repeats the step type; one that is computed is looked at later.
fn names_kind(spec: &StepSpec, value: &Value) -> bool {
    match value {
        Value::Keyword(_) | Value::Text(_) => {
            let name = name_of(value).unwrap_or_default();
            spec.kind == &*name || spec.aliases.contains(&&*name)
        }
        _ => true,
    }
}

fn is_constant(value: &Value) -> bool {
    matches!(
        value,
        Value::Bool(_)
            | Value::Int(_)
            | Value::Float(_)
            | Value::Keyword(_)
            | Value::Text(_)
            | Value::Vector(_)
            | Value::Map(_)
            | Value::Set(_)
    )
}

fn shown(value: &Value) -> String {
    let kind = value.kind();
    match codec::encode(value) {
        Ok(text) if text.chars().count() <= 40 => format!("{text} ({kind})"),
        _ => kind.to_owned(),
    }
}

fn fits(type_: FieldType, value: &Value) -> bool {
    match type_ {
        FieldType::Any => true,
        FieldType::Text => matches!(value, Value::Text(_)),
        FieldType::Name => matches!(value, Value::Text(_) | Value::Keyword(_)),
        FieldType::Int => matches!(value, Value::Int(_)),
        FieldType::Number => matches!(
            value,
            Value::Int(_) | Value::Float(_) | Value::Ratio(_) | Value::Decimal(_)
        ),
        FieldType::Bool => matches!(value, Value::Bool(_)),
        FieldType::Map => matches!(value, Value::Map(_) | Value::Record(_)),
        FieldType::Items => matches!(
            value,
            Value::Vector(_) | Value::List(_) | Value::Set(_) | Value::Seq(_) | Value::Lazy(_)
        ),
        FieldType::Duration => duration::of_value(value).is_some(),
        FieldType::Function => match value {
            Value::Fn(_) | Value::Native(_) | Value::List(_) => true,
            Value::Text(_) | Value::Keyword(_) | Value::Var(_) => true,
            Value::Map(_) | Value::Set(_) => true,
            Value::Object(object) => object.kind() == "a function",
            _ => false,
        },
        FieldType::OneOf(names) => {
            matches!(value, Value::Text(_) | Value::Keyword(_))
                && name_of(value).is_some_and(|name| names.contains(&&*name))
        }
        FieldType::Keys(fields) => keys_fit(fields, value),
        FieldType::List(type_) => {
            fits(FieldType::Items, value)
                && json::items(value)
                    .is_some_and(|items| items.iter().all(|item| fits(*type_, item)))
        }
        FieldType::IntIn(least, most) => value
            .as_int()
            .is_some_and(|int| (least..=most).contains(&int)),
        FieldType::Either(types) => types.iter().any(|type_| fits(*type_, value)),
    }
}

/// Tells whether a map has the keys it needs and no others.
fn keys_fit(fields: &[Field], value: &Value) -> bool {
    let Some(map) = value.as_map() else {
        return false;
    };
    let known = |key: &Value| {
        let name = name_of(key)?;
        fields.iter().find(|field| field.name == &*name)
    };
    let all_fit = map.iter().all(|(key, value)| {
        known(key).is_some_and(|field| value.is_nil() || fits(field.type_, value))
    });
    let none_misses = fields
        .iter()
        .filter(|field| field.required)
        .all(|field| value.get(field.name).is_some_and(|value| !value.is_nil()));
    all_fit && none_misses
}

fn expected(type_: FieldType) -> String {
    match type_ {
        FieldType::Any => "anything".to_owned(),
        FieldType::Text => "a string".to_owned(),
        FieldType::Name => "a keyword or string".to_owned(),
        FieldType::Int => "an integer".to_owned(),
        FieldType::Number => "a number".to_owned(),
        FieldType::Bool => "true or false".to_owned(),
        FieldType::Map => "a map".to_owned(),
        FieldType::Items => "a vector".to_owned(),
        FieldType::Duration => "seconds or a duration such as \"10s\"".to_owned(),
        FieldType::Function => "a function or quoted code".to_owned(),
        FieldType::OneOf(names) => {
            let names: Vec<String> = names.iter().map(|name| format!("`:{name}`")).collect();
            format!("one of {}", names.join(", "))
        }
        FieldType::Keys(fields) => {
            let names: Vec<String> = fields
                .iter()
                .map(|field| format!("`:{}`", field.name))
                .collect();
            format!("a map of {}", names.join(", "))
        }
        FieldType::List(type_) => format!("a vector, each of it {}", expected(*type_)),
        FieldType::IntIn(least, most) => format!("an integer from {least} to {most}"),
        FieldType::Either(types) => {
            let types: Vec<String> = types.iter().map(|type_| expected(*type_)).collect();
            types.join(" or ")
        }
    }
}
