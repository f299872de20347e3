//! What there is to know about a step type, as data. Checks, help, reference pages and tool schemas are
//! derived from it.

use super::{COMMON, Operations};

/// A step type's row.
#[derive(Debug)]
pub struct StepSpec {
    /// The keyword that flows use, without its colon.
    pub kind: &'static str,
    /// Other keywords for the same step.
    pub aliases: &'static [&'static str],
    /// Where the step has several.
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
    /// Returns the field of a name, own or common.
    pub fn field(&self, name: &str) -> Option<&'static Field> {
        self.fields
            .iter()
            .chain(COMMON)
            .find(|field| field.name == name)
    }
}

/// What performing a step does to the world; decides what is synced and what is repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// Nothing: computed from its config alone. Never synced by itself.
    Pure,
    /// It looks at something outside. Repeated freely.
    Read,
    /// It changes our own stores, by [`super::Outcome::Commit`]. Exactly once.
    OwnStore,
    /// It changes something outside. The intent is on disk before it starts.
    External,
    /// It performs other steps, which are journaled one by one, and nothing by itself.
    Steps,
}

/// A config key.
#[derive(Debug, Clone, Copy)]
pub struct Field {
    /// Without its colon.
    pub name: &'static str,
    pub doc: &'static str,
    pub type_: FieldType,
    pub required: bool,
    /// EDN text.
    pub default: Option<&'static str>,
    /// Whether nil says something, and is not the same as leaving it out.
    pub nil_says: bool,
}

impl Field {
    /// Returns a field that may be left out.
    pub const fn optional(name: &'static str, type_: FieldType, doc: &'static str) -> Field {
        Field {
            name,
            doc,
            type_,
            required: false,
            default: None,
            nil_says: false,
        }
    }

    /// Returns a field that must be there.
    pub const fn required(name: &'static str, type_: FieldType, doc: &'static str) -> Field {
        Field {
            required: true,
            ..Field::optional(name, type_, doc)
        }
    }

    /// Takes nil for something that is said.
    #[must_use]
    pub const fn or_nil(self) -> Field {
        Field {
            nil_says: true,
            ..self
        }
    }

    /// Gives it a default, as EDN text, which is put into the config.
    #[must_use]
    pub const fn or(self, default: &'static str) -> Field {
        Field {
            default: Some(default),
            ..self
        }
    }
}

/// What may stand under a config key. nil is taken as absent everywhere.
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
