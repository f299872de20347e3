//! Descriptions of step types, as data. Checks, help, reference pages and tool schemas are derived from them.

mod every_step;
mod json_schema;
mod operation;
pub mod shape;

use std::rc::Rc;

use flowstone_lang::value::{Map, Value};

pub use every_step::COMMON;
pub use json_schema::{config_schema, operation_schema, respelled, result_schema, tool_schema};
pub use operation::{Misuse, Operation, Operations};

/// The description of a step type.
#[derive(Debug)]
pub struct StepSpec {
    /// The keyword that flows use, without its colon.
    pub kind: &'static str,
    /// Other keywords for the same step.
    pub aliases: &'static [&'static str],
    /// The operations, if the step has several.
    pub operations: Option<Operations>,
    /// First line: one sentence in the third person.
    pub doc: &'static str,
    /// Its own config keys; those of [`COMMON`] are added.
    pub fields: &'static [Field],
    /// Calls that work, as source text.
    pub examples: &'static [&'static str],
    pub effect: Effect,
}

impl StepSpec {
    /// Tells whether a flow may call the step type by this name.
    pub fn is_named(&self, name: &str) -> bool {
        self.kind == name || self.aliases.contains(&name)
    }

    /// Returns the field of a name or alias, own or common.
    pub fn field(&self, name: &str) -> Option<&'static Field> {
        self.fields
            .iter()
            .chain(COMMON)
            .find(|field| field.is_called(name))
    }

    /// Returns a config with the names of fields in place of their aliases. An alias beside its name stays.
    pub fn canonical(&self, config: &Value) -> Value {
        let Value::Map(map) = config else {
            return config.clone();
        };
        let mut entries = map.entries().clone();
        for field in self.fields {
            for alias in field.aliases {
                let alias = Value::keyword(alias);
                let Some(value) = entries.get(&alias).cloned() else {
                    continue;
                };
                let name = Value::keyword(field.name);
                if entries.get(&name).is_none() {
                    entries.remove(&alias);
                    entries.insert(name, value);
                }
            }
        }
        Value::Map(Rc::new(Map::new(entries)))
    }

    /// Returns the name under which a config has a field: its own or an alias.
    pub fn written(&self, config: &Value, name: &'static str) -> &'static str {
        let aliases = self.field(name).map_or(&[][..], |field| field.aliases);
        let mut aliases = aliases.iter().copied();
        match config.get(name) {
            Some(_) => name,
            None => aliases
                .find(|alias| config.get(alias).is_some())
                .unwrap_or(name),
        }
    }
}

/// The effect of performing a step, which decides what is synced and what may be repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// Nothing: the value is computed from the config alone. Never synced by itself.
    Pure,
    /// The step reads something outside. It may be repeated.
    Read,
    /// It changes our own stores, by [`crate::step::Outcome::Commit`]. Exactly once.
    OwnStore,
    /// The step changes something outside. The intent is on disk before the step starts.
    External,
    /// The step only performs other steps, which are journaled one by one.
    Steps,
}

/// A config key.
#[derive(Debug, Clone, Copy)]
pub struct Field {
    /// The name without its colon.
    pub name: &'static str,
    /// Other keys for the same field.
    pub aliases: &'static [&'static str],
    pub doc: &'static str,
    pub type_: FieldType,
    pub required: bool,
    /// The default, as EDN text.
    pub default: Option<&'static str>,
    /// Whether nil is a value, and does not mean that the key is absent.
    pub accepts_nil: bool,
}

impl Field {
    /// Returns a field that may be left out.
    pub const fn optional(name: &'static str, type_: FieldType, doc: &'static str) -> Field {
        Field {
            name,
            aliases: &[],
            doc,
            type_,
            required: false,
            default: None,
            accepts_nil: false,
        }
    }

    /// Returns a field that is required.
    pub const fn required(name: &'static str, type_: FieldType, doc: &'static str) -> Field {
        Field {
            required: true,
            ..Field::optional(name, type_, doc)
        }
    }

    /// Adds other keys for the field.
    #[must_use]
    pub const fn also(self, aliases: &'static [&'static str]) -> Field {
        Field { aliases, ..self }
    }

    /// Tells whether a key is the field's name or one of its aliases.
    pub fn is_called(&self, key: &str) -> bool {
        self.name == key || self.aliases.contains(&key)
    }

    /// Makes an explicit nil a value of the field.
    #[must_use]
    pub const fn or_nil(self) -> Field {
        Field {
            accepts_nil: true,
            ..self
        }
    }

    /// Sets a default, as EDN text, which is added to configs.
    #[must_use]
    pub const fn or(self, default: &'static str) -> Field {
        Field {
            default: Some(default),
            ..self
        }
    }
}

/// The type of the value of a config key. nil means that the key is absent, unless the field accepts it.
#[derive(Debug, Clone, Copy)]
pub enum FieldType {
    Any,
    Text,
    /// A keyword, or a string of the same name.
    Name,
    Int,
    Number,
    Bool,
    Map,
    /// A vector, list or set.
    Items,
    /// Seconds, or text such as `"500ms"`, `"10s"`, `"5m"`, `"2h"`, `"1d"`.
    Duration,
    /// A function, a quoted `(fn ...)`, a code string, or the keyword of one of `:functions`.
    Function,
    /// One of these names, as keyword or string.
    OneOf(&'static [&'static str]),
    /// A map with these keys and no others.
    Keys(&'static [Field]),
    /// A vector, list or set of these.
    List(&'static FieldType),
    /// An integer from the first to the second.
    IntIn(i64, i64),
    /// Any of these.
    Either(&'static [FieldType]),
}
