//! The operations of a step type, as data: checks, help, reference pages and the JSON schemas of tools are derived from
//! it.

use flowstone_lang::suggest::respelling;
use flowstone_lang::value::Value;
use flowstone_model::names::name_of;

use super::{Effect, StepSpec};
use crate::diagnostic::Change;

/// The operations of a step type, and the key that selects one.
#[derive(Debug, Clone, Copy)]
pub struct Operations {
    /// The name of the key without its colon, such as `op`.
    pub key: &'static str,
    /// The code of errors about operations.
    pub code: &'static str,
    /// Sorted by name.
    pub all: &'static [Operation],
}

/// One operation.
#[derive(Debug, Clone, Copy)]
pub struct Operation {
    /// The name without its colon.
    pub name: &'static str,
    /// First line: one sentence in the third person.
    pub doc: &'static str,
    /// The fields it needs.
    pub needs: &'static [&'static str],
    /// The fields it may have.
    pub takes: &'static [&'static str],
    /// The result, as a Malli schema in EDN text.
    pub gives: &'static str,
    pub effect: Effect,
    /// Whether the operation is available if the step type is a tool of an agent. Other operations have to be wrapped
    /// in a packaged step.
    pub for_agents: bool,
}

impl Operations {
    /// Returns the operation of a name.
    pub fn find(&self, name: &str) -> Option<&'static Operation> {
        self.all.iter().find(|operation| operation.name == name)
    }
}

/// A config that does not fit its operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Misuse {
    /// The wrong key of the config; `None` if a key is missing.
    pub key: Option<&'static str>,
    pub message: String,
    pub hints: Vec<String>,
    /// The change to the name that was probably meant.
    pub change: Option<Change>,
}

impl StepSpec {
    /// Returns the operation that a config selects, if the config is valid for it.
    ///
    /// With `literal`, the config is a form. Returns `None` if the operation is computed, or the step type has no
    /// operations.
    ///
    /// # Errors
    /// Fails if there is no such operation, if it does not take a key, or if a required key is missing.
    pub fn operation(
        &self,
        config: &Value,
        literal: bool,
    ) -> Result<Option<&'static Operation>, Misuse> {
        let Some(operations) = &self.operations else {
            return Ok(None);
        };
        let config = &self.canonical(config);
        let key = operations.key;
        let usual = self.field(key).and_then(|field| field.default);
        let asked = match config.get(key) {
            Some(Value::List(_) | Value::Symbol(_) | Value::Name(_)) if literal => return Ok(None),
            None | Some(Value::Nil) if literal => {
                usual.map(|name| name.trim_start_matches(':').into())
            }
            None | Some(Value::Nil) => Some("".into()),
            Some(given) => name_of(given),
        };
        let Some(asked) = asked else {
            return Ok(None);
        };
        let operation = operations.named(self.kind, &asked)?;
        self.only_taken(operations, operation, config)?;
        let may_be_elsewhere = literal && config.get("template").is_some();
        let Value::Map(map) = config else {
            return Ok(Some(operation));
        };
        if may_be_elsewhere || !map.iter().all(|(key, _)| matches!(key, Value::Keyword(_))) {
            return Ok(Some(operation));
        }
        self.has_needed(operations, operation, config)?;
        Ok(Some(operation))
    }

    fn only_taken(
        &self,
        operations: &Operations,
        operation: &Operation,
        config: &Value,
    ) -> Result<(), Misuse> {
        let known = [operation.needs, operation.takes].concat();
        let is_foreign = |name: &str| {
            let is_given = config.get(name).is_some_and(|value| !value.is_nil());
            name != operations.key && !known.contains(&name) && is_given
        };
        let Some(field) = self.fields.iter().find(|field| is_foreign(field.name)) else {
            return Ok(());
        };
        Err(Misuse {
            key: Some(field.name),
            message: format!(
                "`:{}` does not apply to `:{} :{}`",
                field.name, operations.key, operation.name
            ),
            hints: vec![match known.is_empty() {
                true => "it takes nothing else".to_owned(),
                false => format!("it takes {}", listed(&known)),
            }],
            change: None,
        })
    }

    fn has_needed(
        &self,
        operations: &Operations,
        operation: &Operation,
        config: &Value,
    ) -> Result<(), Misuse> {
        let is_there = |key: &str| match (self.field(key), config.get(key)) {
            (_, None) => false,
            (Some(field), Some(Value::Nil)) => field.accepts_nil,
            (_, Some(value)) => !value.is_nil(),
        };
        let Some(missing) = operation.needs.iter().find(|key| !is_there(key)) else {
            return Ok(());
        };
        let doc = self.field(missing).map_or("", |field| field.doc);
        Err(Misuse {
            key: None,
            message: format!(
                "`:{} :{}` needs `:{missing}`",
                operations.key, operation.name
            ),
            hints: vec![format!("`:{missing}`: {doc}")],
            change: None,
        })
    }
}

impl Operations {
    fn named(&self, kind: &str, asked: &str) -> Result<&'static Operation, Misuse> {
        if let Some(found) = self.find(asked) {
            return Ok(found);
        }
        let names: Vec<&str> = self.all.iter().map(|operation| operation.name).collect();
        let meant = respelling(asked, names.iter().copied());
        let near = meant.map(|near| format!("did you mean `:{}`?", near.name));
        let all = format!("there are {}", listed(&names));
        Err(Misuse {
            key: Some(self.key),
            message: format!("`:{kind}` has no operation `:{asked}`"),
            hints: near.into_iter().chain([all]).collect(),
            change: meant.map(|near| Change::respell(asked, near)),
        })
    }
}

fn listed(names: &[&str]) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("`:{name}`")).collect();
    names.join(" ")
}
