//! A value against a [`FieldType`]: what does not fit, and where inside.

use flowstone_lang::value::Value;

use super::{Field, FieldType};
use crate::codec;
use crate::diagnostic::nearest;
use crate::duration;
use crate::flow::name_of;
use crate::json;

/// What does not fit, and the way to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Misfit {
    /// Keys with their colons, and indexes, from the outside in; empty for the value itself.
    pub path: Vec<String>,
    pub what: What,
}

/// What is wrong there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum What {
    Type {
        expected: String,
        found: String,
    },
    Unknown {
        key: String,
        known: Vec<&'static str>,
    },
    Missing {
        key: &'static str,
        doc: &'static str,
    },
}

impl Misfit {
    fn of(what: What) -> Misfit {
        Misfit {
            path: Vec::new(),
            what,
        }
    }

    fn below(mut self, step: String) -> Misfit {
        self.path.insert(0, step);
        self
    }

    pub(crate) fn hint(&self) -> Option<String> {
        match &self.what {
            What::Type { .. } => None,
            What::Missing { key, doc } => Some(format!("`:{key}`: {doc}")),
            What::Unknown { key, known } => Some(match nearest(key, known.iter().copied()) {
                Some(near) => format!("did you mean `:{near}`?"),
                None => format!("its keys are {}", names(known.iter().copied())),
            }),
        }
    }
}

/// Finds the first thing that does not fit. `literal`: the value is a form, and what is computed in it fits.
pub(crate) fn misfit(type_: FieldType, value: &Value, literal: bool) -> Option<Misfit> {
    if literal && is_computed(value) {
        return None;
    }
    match type_ {
        FieldType::Keys(fields) => in_map(fields, type_, value, literal),
        FieldType::List(item) => in_list(*item, type_, value, literal),
        FieldType::Either(types) => in_any(types, type_, value, literal),
        plain => (!is(plain, value)).then(|| wrong(plain, value)),
    }
}

fn wrong(type_: FieldType, value: &Value) -> Misfit {
    Misfit::of(What::Type {
        expected: expected(type_),
        found: shown(value),
    })
}

/// Tells whether a form's value is not known.
fn is_computed(form: &Value) -> bool {
    matches!(form, Value::List(_) | Value::Symbol(_) | Value::Name(_))
}

fn in_map(
    fields: &'static [Field],
    type_: FieldType,
    value: &Value,
    literal: bool,
) -> Option<Misfit> {
    let Some(map) = value.as_map() else {
        return Some(wrong(type_, value));
    };
    let mut has_computed_key = false;
    for (key, inner) in map.iter() {
        if literal && is_computed(key) {
            has_computed_key = true;
            continue;
        }
        let name = name_of(key).unwrap_or_else(|| key.kind().into());
        let Some(field) = fields.iter().find(|field| field.name == &*name) else {
            return Some(Misfit::of(What::Unknown {
                key: name.to_string(),
                known: fields.iter().map(|field| field.name).collect(),
            }));
        };
        if !inner.is_nil()
            && let Some(found) = misfit(field.type_, inner, literal)
        {
            return Some(found.below(format!(":{}", field.name)));
        }
    }
    let is_missing = |field: &&Field| {
        let given = map
            .iter()
            .find(|(key, _)| name_of(key).as_deref() == Some(field.name));
        field.required && given.is_none_or(|(_, value)| value.is_nil() && !literal)
    };
    let missing = fields.iter().filter(|_| !has_computed_key).find(is_missing);
    missing.map(|field| {
        Misfit::of(What::Missing {
            key: field.name,
            doc: field.doc,
        })
    })
}

fn in_list(item: FieldType, type_: FieldType, value: &Value, literal: bool) -> Option<Misfit> {
    if !is(FieldType::Items, value) {
        return Some(wrong(type_, value));
    }
    let items = json::items(value)?;
    items.iter().enumerate().find_map(|(idx, inner)| {
        misfit(item, inner, literal).map(|found| found.below(idx.to_string()))
    })
}

/// One alternative must fit. Where just one is of the value's kind, what is wrong inside it is told.
fn in_any(
    types: &'static [FieldType],
    type_: FieldType,
    value: &Value,
    literal: bool,
) -> Option<Misfit> {
    let mut inside = Vec::new();
    for one in types {
        match misfit(*one, value, literal) {
            None => return None,
            Some(found) if is_inside(&found) => inside.push(found),
            Some(_) => {}
        }
    }
    match inside.len() {
        1 => inside.pop(),
        _ => Some(wrong(type_, value)),
    }
}

fn is_inside(found: &Misfit) -> bool {
    !found.path.is_empty() || !matches!(found.what, What::Type { .. })
}

/// Tells whether a value is of a type that has no parts of its own.
fn is(type_: FieldType, value: &Value) -> bool {
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
        FieldType::IntIn(least, most) => value
            .as_int()
            .is_some_and(|int| (least..=most).contains(&int)),
        FieldType::Keys(_) | FieldType::List(_) | FieldType::Either(_) => {
            misfit(type_, value, false).is_none()
        }
    }
}

/// Returns the type of an option of every step without its inside, which the option itself looks at.
pub(crate) fn outside(field: &Field) -> FieldType {
    match field.type_ {
        FieldType::Keys(_) => FieldType::Map,
        FieldType::List(_) => FieldType::Items,
        FieldType::Either([FieldType::Keys(_), ..]) => FieldType::Map,
        FieldType::Either([plain, FieldType::Keys(_)]) => match plain {
            FieldType::Bool => FieldType::Either(&[FieldType::Bool, FieldType::Map]),
            _ => FieldType::Either(&[FieldType::OneOf(&["ask", "fail", "retry"]), FieldType::Map]),
        },
        type_ => type_,
    }
}

/// Says what a type asks for.
pub(crate) fn expected(type_: FieldType) -> String {
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
        FieldType::OneOf(known) => format!("one of {}", names(known.iter().copied())),
        FieldType::Keys(fields) => {
            format!("a map of {}", names(fields.iter().map(|field| field.name)))
        }
        FieldType::List(type_) => format!("a vector, each of it {}", expected(*type_)),
        FieldType::IntIn(least, most) => format!("an integer from {least} to {most}"),
        FieldType::Either(types) => {
            let types: Vec<String> = types.iter().map(|type_| expected(*type_)).collect();
            types.join(" or ")
        }
    }
}

fn names<'n>(names: impl Iterator<Item = &'n str>) -> String {
    let names: Vec<String> = names.map(|name| format!("`:{name}`")).collect();
    names.join(", ")
}

pub(crate) fn shown(value: &Value) -> String {
    let kind = value.kind();
    match codec::encode(value) {
        Ok(text) if text.chars().count() <= 40 => format!("{text} ({kind})"),
        _ => kind.to_owned(),
    }
}
