//! Checks of a step's config against its spec: unknown keys, missing keys, wrong types; adds the defaults.

mod options;

use flowstone_lang::suggest::{Respelling, respelling};
use flowstone_lang::value::Value;
use flowstone_model::names::name_of;

use crate::codec;
use crate::diagnostic::nearest;
use crate::option_problem::Wrong;
use crate::spec::shape::{self, Mismatch, What, shown};
use crate::spec::{COMMON, Field, StepSpec};
use crate::step::StepError;

/// Keys of the agent's `:approval` that are easily written outside of it by mistake.
const APPROVAL: &[&str] = &["resume", "step-names", "tool-names"];

/// A problem with a config.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Problem {
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
        /// The allowed name that is most similar to the one found.
        near: Option<Respelling<'static>>,
    },
    /// A mismatch inside the value of a key.
    Nested {
        key: &'static str,
        mismatch: Mismatch,
    },
    /// A mismatch inside a common option.
    Option(Box<Wrong>),
    /// A key that is given together with another name of the same field.
    Twice {
        key: &'static str,
        alias: &'static str,
    },
    /// A key that is not a keyword.
    BadKey {
        found: &'static str,
    },
}

impl Problem {
    pub fn code(&self) -> &'static str {
        match self {
            Problem::Unknown { .. } | Problem::BadKey { .. } | Problem::Twice { .. } => "E0710",
            Problem::Missing { .. } => "E0711",
            Problem::WrongType { .. } => "E0712",
            Problem::Nested { mismatch, .. } => match mismatch.what {
                What::Type { .. } => "E0712",
                What::Unknown { .. } => "E0710",
                What::Missing { .. } => "E0711",
            },
            Problem::Option(wrong) => wrong.code,
        }
    }

    /// Returns the key at which the problem is shown.
    pub fn key(&self) -> Option<&str> {
        match self {
            Problem::Unknown { key } => Some(key),
            Problem::WrongType { key, .. } | Problem::Nested { key, .. } => Some(key),
            Problem::Option(wrong) => Some(wrong.key),
            Problem::Twice { alias, .. } => Some(alias),
            Problem::Missing { .. } | Problem::BadKey { .. } => None,
        }
    }

    pub fn message(&self, spec: &StepSpec) -> String {
        let kind = spec.kind;
        match self {
            Problem::Unknown { key } => format!("a `:{kind}` step has no option `:{key}`"),
            Problem::Missing { key } => format!("the `:{kind}` step needs `:{key}`"),
            Problem::WrongType {
                key,
                expected,
                found,
                ..
            } => {
                format!("`:{key}` of a `:{kind}` step must be {expected}, not {found}")
            }
            Problem::Nested { key, mismatch } => {
                let steps = mismatch.path.iter().map(String::as_str);
                let path = steps.fold(format!(":{key}"), |path, step| format!("{path} {step}"));
                match &mismatch.what {
                    What::Type {
                        expected, found, ..
                    } => {
                        format!("`{path}` of a `:{kind}` step must be {expected}, not {found}")
                    }
                    What::Unknown { key, .. } => {
                        format!("`{path}` of a `:{kind}` step has no key `:{key}`")
                    }
                    What::Missing { key, .. } => {
                        format!("`{path}` of a `:{kind}` step needs `:{key}`")
                    }
                }
            }
            Problem::Option(wrong) => wrong.message.clone(),
            Problem::Twice { key, alias } => {
                format!("`:{alias}` of a `:{kind}` step is another name of `:{key}`")
            }
            Problem::BadKey { found } => format!("the keys of a config are keywords, not {found}"),
        }
    }

    /// Returns the word that is probably misspelt, and the name that it stands for.
    pub fn misspelt(&self, spec: &StepSpec) -> Option<(&str, Respelling<'static>)> {
        match self {
            Problem::Unknown { key } if spec.kind == "agent" && APPROVAL.contains(&&**key) => None,
            Problem::Unknown { key } => Some((key, respelling(key, names(spec))?)),
            Problem::WrongType { found, near, .. } => {
                let (word, _) = found.split_once(" (")?;
                Some((word.trim_start_matches(':').trim_matches('"'), (*near)?))
            }
            Problem::Nested { mismatch, .. } => mismatch.what.misspelt(),
            Problem::Option(wrong) => Some((wrong.inner.as_deref()?, wrong.near?)),
            Problem::Missing { .. } | Problem::Twice { .. } | Problem::BadKey { .. } => None,
        }
    }

    pub fn hint(&self, spec: &StepSpec) -> Option<String> {
        match self {
            Problem::Unknown { key } => {
                if spec.kind == "agent" && APPROVAL.contains(&&**key) {
                    return Some(format!(
                        "`:{key}` is a key of `:approval`: write `:approval {{:{key} ...}}`"
                    ));
                }
                match nearest(key, names(spec)) {
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
            Problem::WrongType {
                near: Some(near), ..
            } => Some(format!("did you mean `:{}`?", near.name)),
            // The message lists the allowed values.
            Problem::WrongType { expected, .. } if expected.starts_with("one of") => None,
            Problem::WrongType { key, .. } => {
                let field = spec.field(key)?;
                Some(format!("`:{key}`: {}", field.doc))
            }
            Problem::Nested { mismatch, .. } => mismatch.hint(),
            Problem::Option(wrong) => wrong.hint.clone(),
            Problem::Twice { .. } => Some("give one of the two".to_owned()),
            Problem::BadKey { .. } => None,
        }
    }
}

/// Returns the names of the options of a step.
fn names(spec: &StepSpec) -> impl Iterator<Item = &'static str> {
    spec.fields.iter().chain(COMMON).map(|field| field.name)
}

/// Checks a computed config, and adds the defaults.
pub fn resolve(spec: &'static StepSpec, config: &Value) -> Result<Value, StepError> {
    if let Some(problem) = check(spec, config, false).into_iter().next() {
        let error = StepError::config(problem.code(), problem.message(spec));
        return Err(match problem.hint(spec) {
            Some(hint) => error.hint(hint),
            None => error,
        });
    }
    let Value::Map(map) = &spec.canonical(config) else {
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

/// Checks a config as it is written; only constants among the values are checked.
pub fn check_literal(spec: &'static StepSpec, config: &Value) -> Vec<Problem> {
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
                near: None,
            });
            continue;
        }
        let mut aliases = field.aliases.iter();
        if let Some(alias) = aliases.find(|alias| **alias == name)
            && config.get(field.name).is_some()
        {
            problems.push(Problem::Twice {
                key: field.name,
                alias,
            });
            continue;
        }
        let is_known = !literal || is_constant(value);
        if !is_known || value.is_nil() {
            continue;
        }
        let is_common = !spec.fields.iter().any(|own| own.name == field.name);
        // Common options check their own contents. `:persist` does so when it is performed.
        let type_ = match is_common && (!literal || options::has_check(name)) {
            true => shape::outside(field),
            false => field.type_,
        };
        let misfits = shape::misfits(type_, value, literal);
        if misfits.is_empty()
            && is_common
            && let Err(wrong) = options::check(field, value, literal)
        {
            problems.push(Problem::Option(Box::new(wrong)));
        }
        problems.extend(misfits.into_iter().map(|it| problem(field, value, it)));
    }
    let missing = |field: &&Field| {
        // Of most fields, the names need not be looked up.
        if !field.required {
            return false;
        }
        let written = Value::keyword(spec.written(config, field.name));
        map.get(&written)
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

/// Returns the problem for a mismatch under a key.
fn problem(field: &'static Field, value: &Value, mismatch: Mismatch) -> Problem {
    match (mismatch.path.is_empty(), mismatch.what) {
        (true, What::Type { expected, near, .. }) => Problem::WrongType {
            key: field.name,
            expected,
            found: shown(value),
            near,
        },
        (_, what) => Problem::Nested {
            key: field.name,
            mismatch: Mismatch {
                path: mismatch.path,
                what,
            },
        },
    }
}

/// Tells whether a config's `:type` repeats the step type. A computed type is checked later.
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
