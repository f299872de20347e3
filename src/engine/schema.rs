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
    /// What is wrong there, in words: `should be a string, is 3`.
    pub message: String,
}

impl std::fmt::Display for Problem {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.path.as_slice() {
            [] => out.write_str(&self.message),
            path => write!(out, "[{}] {}", path.join(" "), self.message),
        }
    }
}

/// Returns problems as one sentence, the first few of them.
pub fn explain(problems: &[Problem]) -> String {
    const SHOWN: usize = 5;
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
