//! Checks of a value against a [`FieldType`], with the places of mismatches inside the value.

use flowstone_lang::suggest::{Respelling, respelling};
use flowstone_lang::value::Value;
use flowstone_model::names::name_of;

use super::{Field, FieldType};
use crate::codec;
use crate::diagnostic::nearest;
use crate::duration;
use crate::json;

/// A mismatch, with its path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mismatch {
    /// Keys with their colons, and indices, from the outside in; empty for the value itself.
    pub path: Vec<String>,
    pub what: What,
}

/// The kind of a mismatch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum What {
    Type {
        expected: String,
        found: String,
        /// The allowed name that is most similar to the one found.
        near: Option<Respelling<'static>>,
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

impl What {
    /// Returns the word that is probably misspelt, without its colon or quotes, and the name that it stands for.
    pub fn misspelt(&self) -> Option<(&str, Respelling<'static>)> {
        match self {
            What::Type { found, near, .. } => {
                let (word, _) = found.split_once(" (")?;
                Some((word.trim_start_matches(':').trim_matches('"'), (*near)?))
            }
            What::Unknown { key, known } => Some((key, respelling(key, known.iter().copied())?)),
            What::Missing { .. } => None,
        }
    }
}

impl Mismatch {
    fn of(what: What) -> Mismatch {
        Mismatch {
            path: Vec::new(),
            what,
        }
    }

    fn below(mut self, step: String) -> Mismatch {
        self.path.insert(0, step);
        self
    }

    pub fn hint(&self) -> Option<String> {
        match &self.what {
            What::Type { near, .. } => near.map(|near| format!("did you mean `:{}`?", near.name)),
            What::Missing { key, doc } => Some(format!("`:{key}`: {doc}")),
            What::Unknown { key, known } => Some(match nearest(key, known.iter().copied()) {
                Some(near) => format!("did you mean `:{near}`?"),
                None => format!("its keys are {}", names(known.iter().copied())),
            }),
        }
    }
}

/// Returns the mismatches of a value. With `literal`, the value is a form, and computed parts match any type.
pub fn misfits(type_: FieldType, value: &Value, literal: bool) -> Vec<Mismatch> {
    if literal && is_computed(value) {
        return Vec::new();
    }
    match type_ {
        FieldType::Keys(fields) => in_map(fields, type_, value, literal),
        FieldType::List(item) => in_list(*item, type_, value, literal),
        FieldType::Either(types) => in_any(types, type_, value, literal),
        plain if is(plain, value) => Vec::new(),
        plain => vec![wrong(plain, value)],
    }
}

fn wrong(type_: FieldType, value: &Value) -> Mismatch {
    Mismatch::of(What::Type {
        expected: expected(type_),
        found: shown(value),
        near: near(type_, value),
    })
}

/// Returns the most similar allowed name.
fn near(type_: FieldType, value: &Value) -> Option<Respelling<'static>> {
    let known: Vec<&'static str> = match type_ {
        FieldType::OneOf(names) => names.to_vec(),
        FieldType::Either(types) => types
            .iter()
            .filter_map(|one| match one {
                FieldType::OneOf(names) => Some(*names),
                _ => None,
            })
            .flatten()
            .copied()
            .collect(),
        _ => Vec::new(),
    };
    respelling(&name_of(value)?, known.into_iter())
}

/// Tells whether the value of a form is not known before it is evaluated.
fn is_computed(form: &Value) -> bool {
    matches!(form, Value::List(_) | Value::Symbol(_) | Value::Name(_))
}

fn in_map(
    fields: &'static [Field],
    type_: FieldType,
    value: &Value,
    literal: bool,
) -> Vec<Mismatch> {
    let Some(map) = value.as_map() else {
        return vec![wrong(type_, value)];
    };
    let mut found = Vec::new();
    let mut has_computed_key = false;
    for (key, inner) in map.iter() {
        if literal && is_computed(key) {
            has_computed_key = true;
            continue;
        }
        let name = name_of(key).unwrap_or_else(|| key.kind().into());
        let Some(field) = fields.iter().find(|field| field.name == &*name) else {
            found.push(Mismatch::of(What::Unknown {
                key: name.to_string(),
                known: fields.iter().map(|field| field.name).collect(),
            }));
            continue;
        };
        if !inner.is_nil() {
            let inside = misfits(field.type_, inner, literal).into_iter();
            found.extend(inside.map(|mismatch| mismatch.below(format!(":{}", field.name))));
        }
    }
    if has_computed_key {
        return found;
    }
    let is_missing = |field: &&Field| {
        let given = map
            .iter()
            .find(|(key, _)| name_of(key).as_deref() == Some(field.name));
        field.required && given.is_none_or(|(_, value)| value.is_nil() && !literal)
    };
    // A misspelt key is reported once, and not also as a missing one.
    let is_misspelt = |field: &&Field| {
        found.iter().any(|mismatch| match &mismatch.what {
            What::Unknown { key, .. } => nearest(key, [field.name]).is_some(),
            _ => false,
        })
    };
    let missing = fields
        .iter()
        .filter(is_missing)
        .filter(|field| !is_misspelt(field));
    let missing: Vec<Mismatch> = missing
        .map(|field| {
            Mismatch::of(What::Missing {
                key: field.name,
                doc: field.doc,
            })
        })
        .collect();
    found.extend(missing);
    found
}

fn in_list(item: FieldType, type_: FieldType, value: &Value, literal: bool) -> Vec<Mismatch> {
    if !is(FieldType::Items, value) {
        return vec![wrong(type_, value)];
    }
    let items = json::items(value).unwrap_or_default();
    let each = items.iter().enumerate();
    each.flat_map(|(idx, inner)| {
        let inside = misfits(item, inner, literal).into_iter();
        inside.map(move |mismatch| mismatch.below(idx.to_string()))
    })
    .collect()
}

/// Checks that one alternative fits. If only one can be intended, because of the name that distinguishes the
/// alternatives or because no other has the value's type, returns the mismatches inside it.
fn in_any(
    types: &'static [FieldType],
    type_: FieldType,
    value: &Value,
    literal: bool,
) -> Vec<Mismatch> {
    if let Some(found) = by_name(types, value, literal) {
        return found;
    }
    let mut inside = Vec::new();
    for one in types {
        let found = misfits(*one, value, literal);
        match &found[..] {
            [] => return Vec::new(),
            [first, ..] if is_inside(first) => inside.push(found),
            _ => {}
        }
    }
    match inside.len() {
        1 => inside.pop().unwrap_or_default(),
        _ => vec![wrong(type_, value)],
    }
}

/// Selects one of several maps by a required key that has a single allowed name in each, such as `:type`. Returns the
/// mismatches of the selected one; `None` if the alternatives or the value have no such key.
fn by_name(types: &'static [FieldType], value: &Value, literal: bool) -> Option<Vec<Mismatch>> {
    let map = value.as_map()?;
    let maps = types.iter().filter_map(|one| match one {
        FieldType::Keys(fields) => Some(*fields),
        _ => None,
    });
    let named: Vec<(&'static str, &'static str, &'static [Field])> = maps
        .filter_map(|fields| {
            fields.iter().find_map(|field| match field.type_ {
                FieldType::OneOf([name]) if field.required => Some((field.name, *name, fields)),
                _ => None,
            })
        })
        .collect();
    let (key, ..) = *named.first()?;
    if named.len() < 2 || named.iter().any(|(other, ..)| *other != key) {
        return None;
    }
    let given = map
        .iter()
        .find(|(at, _)| name_of(at).as_deref() == Some(key));
    let Some((_, given)) = given.filter(|(_, given)| !given.is_nil()) else {
        let is_open = literal && map.iter().any(|(key, _)| is_computed(key));
        let missing = What::Missing {
            key,
            doc: "Selects one of the alternatives.",
        };
        return Some(match is_open {
            true => Vec::new(),
            false => vec![Mismatch::of(missing)],
        });
    };
    if literal && is_computed(given) {
        return Some(Vec::new());
    }
    let name = name_of(given).unwrap_or_default();
    if let Some((.., fields)) = named.iter().find(|(_, known, _)| **known == *name) {
        return Some(in_map(fields, FieldType::Keys(fields), value, literal));
    }
    let known: Vec<&'static str> = named.iter().map(|(_, name, _)| *name).collect();
    let what = What::Type {
        expected: format!("one of {}", names(known.iter().copied())),
        found: shown(given),
        near: respelling(&name, known.into_iter()),
    };
    Some(vec![Mismatch::of(what).below(format!(":{key}"))])
}

fn is_inside(found: &Mismatch) -> bool {
    !found.path.is_empty() || !matches!(found.what, What::Type { .. })
}

/// Tells whether a value is of a type without parts.
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
            misfits(type_, value, false).is_empty()
        }
    }
}

/// Returns the type of a common option without its contents, which the option itself checks.
pub fn outside(field: &Field) -> FieldType {
    match field.type_ {
        FieldType::Keys(_) => FieldType::Map,
        FieldType::List(_) => FieldType::Items,
        FieldType::Either([FieldType::Keys(_), ..]) => FieldType::Map,
        FieldType::Either([plain, FieldType::Keys(_)]) => match plain {
            FieldType::Bool => FieldType::Either(&[FieldType::Bool, FieldType::Map]),
            FieldType::Duration => FieldType::Either(&[FieldType::Duration, FieldType::Map]),
            _ => FieldType::Either(&[FieldType::OneOf(&["ask", "fail", "retry"]), FieldType::Map]),
        },
        type_ => type_,
    }
}

/// Returns a description of the values that a type accepts.
pub fn expected(type_: FieldType) -> String {
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

pub fn shown(value: &Value) -> String {
    let kind = value.kind();
    match codec::encode(value) {
        Ok(text) if text.chars().count() <= 40 => format!("{text} ({kind})"),
        _ => kind.to_owned(),
    }
}
