//! Malli schemas: parsed from forms, checked in words, written as JSON Schema.
//!
//! A schema comes from a flow file, so what it cannot say is an error when it is parsed, never ignored later.
//! Functions are allowed only where the caller can call them.

mod check;
mod decode;
mod json_schema;
mod parse;

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use flowstone_lang::value::{Regex, Value};

pub use check::{Predicate, validate, validate_with};
pub use decode::decode;
pub use json_schema::{closed, to_json_schema};
pub use parse::{parse, parse_with_functions};

/// A parsed schema.
#[derive(Clone)]
pub struct Schema {
    pub kind: Kind,
    pub notes: Notes,
    /// What it was read from, or nil.
    pub form: Value,
}

/// What a schema says beside its shape.
#[derive(Debug, Clone, Default)]
pub struct Notes {
    pub title: Option<String>,
    pub description: Option<String>,
    pub default: Option<Value>,
    /// `:error/message`: the author's own words for whatever is wrong here.
    pub message: Option<String>,
    /// A JSON Schema fragment that replaces or adds to what is derived.
    pub json_schema: Option<Value>,
}

/// The shape that a schema asks for.
#[derive(Clone)]
pub enum Kind {
    Any,
    /// A function of the value, which only [`validate_with`] can ask.
    Predicate(Value),
    Some,
    Nil,
    String {
        size: Size,
    },
    Int {
        range: Range,
    },
    Double {
        range: Range,
    },
    Number {
        range: Range,
    },
    Boolean,
    Keyword,
    Symbol,
    Uuid,
    Inst,
    Regex {
        source: Rc<str>,
        regex: Rc<Regex>,
    },
    Map {
        entries: Vec<Entry>,
        closed: bool,
    },
    MapOf {
        key: Box<Schema>,
        value: Box<Schema>,
        size: Size,
    },
    /// A map of any contents.
    AnyMap,
    List {
        item: Box<Schema>,
        size: Size,
        form: ListForm,
    },
    Tuple(Vec<Schema>),
    Enum(Vec<Value>),
    Equals(Value),
    Maybe(Box<Schema>),
    Or(Vec<Schema>),
    And(Vec<Schema>),
    Not(Box<Schema>),
    Multi {
        dispatch: Value,
        cases: Vec<(Value, Schema)>,
    },
    Reference {
        name: String,
        registry: Registry,
    },
}

/// Schemas by name, which may refer to one another and to themselves.
pub type Registry = Rc<RefCell<HashMap<String, Schema>>>;

/// An entry of a `:map`.
#[derive(Clone)]
pub struct Entry {
    pub key: Value,
    pub optional: bool,
    pub schema: Schema,
    pub notes: Notes,
}

/// What kinds of collection a list schema takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListForm {
    Vector,
    Sequential,
    Set,
}

/// Bounds of a count.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Size {
    pub min: Option<usize>,
    pub max: Option<usize>,
}

/// Bounds of a number.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Range {
    pub min: Option<f64>,
    pub max: Option<f64>,
    /// Whether the bounds themselves are outside.
    pub exclusive: bool,
}

/// One thing wrong with a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Keys and indexes from the outside in, as they print.
    pub path: Vec<String>,
    /// What is wrong there, in words: `should be a string, but is 3 (an integer)`.
    pub message: String,
    /// The path as data.
    pub at: Vec<Value>,
    /// The path to the rule within the schema: keys, indexes of alternatives and items.
    pub schema_path: Vec<Value>,
    /// The part of the schema that says it.
    pub schema: Value,
}

impl Problem {
    /// Returns it as data: `:in` the value, `:path` in the schema, `:message`, and `:schema`, as Malli calls them.
    pub fn to_value(&self) -> Value {
        let schema = match crate::codec::encode(&self.schema) {
            Ok(_) => self.schema.clone(),
            Err(_) => Value::from(crate::words::shown(&self.schema)),
        };
        Value::map([
            (Value::keyword("in"), Value::vector(self.at.clone())),
            (
                Value::keyword("message"),
                Value::from(self.message.as_str()),
            ),
            (
                Value::keyword("path"),
                Value::vector(self.schema_path.clone()),
            ),
            (Value::keyword("schema"), schema),
        ])
    }
}

impl std::fmt::Display for Problem {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.path.as_slice() {
            [] => out.write_str(&self.message),
            path => write!(out, "at [{}]: {}", path.join(" "), self.message),
        }
    }
}

/// As many problems are told.
const SHOWN: usize = 5;

/// Returns problems as one sentence, the first few of them.
pub fn explain(problems: &[Problem]) -> String {
    let mut words: Vec<String> = problems
        .iter()
        .take(SHOWN)
        .map(Problem::to_string)
        .collect();
    if problems.len() > SHOWN {
        words.push(format!("and {} more", problems.len() - SHOWN));
    }
    words.join("; ")
}

/// Returns problems as data for the flow, the first few of them.
pub fn errors(problems: &[Problem]) -> Value {
    Value::vector(problems.iter().take(SHOWN).map(Problem::to_value))
}

/// Why a form is not a schema.
#[derive(Debug, thiserror::Error)]
pub enum SchemaError {
    #[error("`{name}` is not a schema type{}", Suggested(near))]
    UnknownType { name: String, near: Option<String> },
    #[error("{form} is not a schema: {reason}")]
    Malformed { form: String, reason: String },
    #[error("`{schema}` has no property {property}; there are: {known}")]
    UnknownProperty {
        schema: String,
        property: String,
        known: String,
    },
    #[error("the schema refers to {name}, which its registry does not have")]
    UnknownReference { name: String },
    #[error("a schema cannot have a function here: {form}")]
    Function { form: String },
    #[error("the schema is nested deeper than {} levels", parse::MAX_DEPTH)]
    TooDeep,
}

struct Suggested<'a>(&'a Option<String>);

impl std::fmt::Display for Suggested<'_> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            Some(near) => write!(out, "; did you mean `{near}`?"),
            None => Ok(()),
        }
    }
}
