//! Malli schemas: parsed from forms, checked with readable problems, written as JSON Schema.
//!
//! A schema comes from a flow file, so an unsupported part is an error when it is parsed, and is never ignored later.
//! Functions are allowed only if the caller can call them.

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
    /// The form that it was parsed from, or nil.
    pub form: Value,
}

/// The properties of a schema beside its shape.
#[derive(Debug, Clone, Default)]
pub struct Notes {
    pub title: Option<String>,
    pub description: Option<String>,
    pub default: Option<Value>,
    /// `:error/message`: the author's message for any problem here.
    pub message: Option<String>,
    /// A JSON Schema fragment that replaces or extends the derived one.
    pub json_schema: Option<Value>,
}

/// The shape of a schema.
#[derive(Clone)]
pub enum Kind {
    Any,
    /// A function of the value, which only [`validate_with`] can call.
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
    /// A map with any contents.
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

/// The kinds of collection that a list schema accepts.
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
    /// Tells whether the bounds themselves are excluded.
    pub exclusive: bool,
}

/// One problem of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The path in the value: keys and indexes from the outside in, as text.
    pub path: Vec<String>,
    /// The problem, such as `should be a string, but is 3 (an integer)`.
    pub message: String,
    /// The path in the value, as data.
    pub at: Vec<Value>,
    /// The path to the rule in the schema: keys, and indexes of alternatives and items.
    pub schema_path: Vec<Value>,
    /// The part of the schema that is violated.
    pub schema: Value,
}

impl Problem {
    /// Returns the problem as data with the keys of Malli: `:in` the value, `:path` in the schema, `:message`, and
    /// `:schema`.
    pub fn to_value(&self) -> Value {
        let schema = match crate::codec::encode(&self.schema) {
            Ok(_) => self.schema.clone(),
            Err(_) => Value::from(crate::text::brief(&self.schema)),
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

/// Maximum number of problems that are reported.
const SHOWN: usize = 5;

/// Returns the first few problems as one sentence.
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

/// Returns the first few problems as data for the flow.
pub fn errors(problems: &[Problem]) -> Value {
    Value::vector(problems.iter().take(SHOWN).map(Problem::to_value))
}

/// The reason why a form is not a schema.
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
    #[error("the schema refers to {name}, which is not in its registry")]
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
