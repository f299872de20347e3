//! Malli schemas, as data: does a value satisfy one, and if not, where and why.

use flowstone_lang::value::{Object, Value, compile_regex};

use crate::codec;
use crate::flow::name_of;

/// As many problems are told at once.
const PROBLEMS_MAX: usize = 8;
/// Schemas may refer to themselves; values do not go deeper than this.
const DEPTH_MAX: usize = 200;

/// The schema itself is wrong.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadSchema(pub String);

/// Calls a predicate of a schema.
pub type Predicate<'a> = dyn FnMut(&Value, &Value) -> Result<bool, String> + 'a;

/// Returns what is wrong with a value, in words with places; empty when it satisfies the schema.
///
/// # Errors
/// When the schema is none, or a predicate throws.
pub fn problems(
    schema: &Value,
    value: &Value,
    predicate: &mut Predicate<'_>,
) -> Result<Vec<String>, BadSchema> {
    let mut check = Check {
        predicate,
        path: Vec::new(),
        problems: Vec::new(),
        registry: Vec::new(),
    };
    check.value(schema, value)?;
    Ok(check.problems)
}

struct Check<'a, 'f> {
    predicate: &'a mut Predicate<'f>,
    path: Vec<String>,
    problems: Vec<String>,
    /// Maps from names to schemas, innermost last.
    registry: Vec<Value>,
}

/// A schema vector taken apart.
struct Parts<'a> {
    kind: &'a str,
    properties: Value,
    children: Vec<Value>,
}

impl Check<'_, '_> {
    fn value(&mut self, schema: &Value, value: &Value) -> Result<(), BadSchema> {
        if self.path.len() > DEPTH_MAX {
            return Err(BadSchema(
                "the value is nested too deep for the schema".to_owned(),
            ));
        }
        match schema {
            Value::Keyword(_) | Value::Symbol(_) | Value::Name(_) => {
                let name = name_of(schema).unwrap_or_default();
                self.named(&name, &Value::Nil, value)
            }
            Value::Text(name) => {
                let name = name.to_string();
                self.named(&name, &Value::Nil, value)
            }
            Value::Vector(items) => {
                let name = items.get(0).and_then(name_of);
                let name = name.ok_or_else(|| bad(schema))?;
                let properties = items.get(1).filter(|item| item.as_map().is_some());
                let skip = 1 + usize::from(properties.is_some());
                let parts = Parts {
                    kind: &name,
                    properties: properties.cloned().unwrap_or(Value::Nil),
                    children: items.iter().skip(skip).cloned().collect(),
                };
                let registry = parts.properties.get("registry").cloned();
                let has_registry = registry.is_some();
                self.registry.extend(registry);
                let result = self.parts(&parts, value);
                if has_registry {
                    self.registry.pop();
                }
                result
            }
            Value::Fn(_) | Value::Native(_) => self.call(schema, value),
            Value::Object(object) if object.kind() == "a function" => self.call(schema, value),
            Value::Object(object) => match &**object {
                Object::Regex { regex, source } => {
                    let is_match = value
                        .as_str()
                        .is_some_and(|text| matches!(regex.find_from(text, 0), Ok(Some(_))));
                    self.require(is_match, &format!("should match {source}"), value);
                    Ok(())
                }
                _ => Err(bad(schema)),
            },
            _ => Err(bad(schema)),
        }
    }

    fn problem(&mut self, words: &str) {
        if self.problems.len() >= PROBLEMS_MAX {
            return;
        }
        let place = match self.path.is_empty() {
            true => String::new(),
            false => format!("[{}] ", self.path.join(" ")),
        };
        self.problems.push(format!("{place}{words}"));
    }

    fn require(&mut self, holds: bool, words: &str, value: &Value) {
        if !holds {
            let shown = shown(value);
            self.problem(&format!("{words}, not {shown}"));
        }
    }

    fn call(&mut self, function: &Value, value: &Value) -> Result<(), BadSchema> {
        let holds = (self.predicate)(function, value).map_err(BadSchema)?;
        self.require(holds, "should satisfy a predicate", value);
        Ok(())
    }

    fn named(&mut self, name: &str, properties: &Value, value: &Value) -> Result<(), BadSchema> {
        let known = self.registry.iter().rev().find_map(|registry| {
            registry
                .get(name)
                .cloned()
                .or_else(|| registry.as_map()?.get(&Value::from(name)).cloned())
        });
        if let Some(schema) = known {
            return self.value(&schema, value);
        }
        let Some((holds, words)) = simple(name, value) else {
            return Err(BadSchema(format!("unknown schema `:{name}`")));
        };
        self.require(holds, words, value);
        if holds {
            self.bounds(name, properties, value);
        }
        Ok(())
    }

    fn bounds(&mut self, name: &str, properties: &Value, value: &Value) {
        let size = match value {
            Value::Text(text) => Some(text.count() as f64),
            Value::Int(int) => Some(*int as f64),
            Value::Float(float) => Some(*float),
            Value::Vector(vector) => Some(vector.len() as f64),
            Value::List(list) => Some(list.iter().count() as f64),
            Value::Set(set) => Some(set.len() as f64),
            Value::Map(map) => Some(map.len() as f64),
            _ => None,
        };
        let bound = |key: &str| match properties.get(key) {
            Some(Value::Int(int)) => Some(*int as f64),
            Some(Value::Float(float)) => Some(*float),
            _ => None,
        };
        let what = match name {
            "string" => " characters",
            "vector" | "sequential" | "set" | "map-of" => " items",
            _ => "",
        };
        let Some(size) = size else {
            return;
        };
        if let Some(min) = bound("min")
            && size < min
        {
            self.require(false, &format!("should be at least {min}{what}"), value);
        }
        if let Some(max) = bound("max")
            && size > max
        {
            self.require(false, &format!("should be at most {max}{what}"), value);
        }
    }

    fn parts(&mut self, parts: &Parts<'_>, value: &Value) -> Result<(), BadSchema> {
        let first = || {
            parts
                .children
                .first()
                .ok_or_else(|| BadSchema(format!("`:{}` needs a schema inside", parts.kind)))
        };
        match parts.kind {
            "map" => self.map(parts, value),
            "map-of" => self.map_of(parts, value),
            "vector" | "sequential" | "set" => {
                let item = first()?;
                self.items(parts, item, value)
            }
            "tuple" => self.tuple(parts, value),
            "enum" => {
                let holds = parts.children.contains(value);
                let all: Vec<String> = parts.children.iter().map(shown).collect();
                self.require(
                    holds,
                    &format!("should be one of {}", all.join(", ")),
                    value,
                );
                Ok(())
            }
            "=" => {
                let wanted = first()?;
                self.require(
                    wanted == value,
                    &format!("should be {}", shown(wanted)),
                    value,
                );
                Ok(())
            }
            "not=" => {
                let unwanted = first()?;
                self.require(unwanted != value, "should be another value", value);
                Ok(())
            }
            ">" | ">=" | "<" | "<=" => self.compared(parts.kind, first()?, value),
            "maybe" if value.is_nil() => Ok(()),
            "maybe" | "schema" => self.value(first()?, value),
            "and" => parts
                .children
                .iter()
                .try_for_each(|child| self.value(child, value)),
            "or" => self.any_of(&parts.children, value),
            "not" => {
                let holds = self.quiet(first()?, value)?;
                self.require(!holds, "should not be this", value);
                Ok(())
            }
            "multi" => self.multi(parts, value),
            "ref" => {
                let name = name_of(first()?).unwrap_or_default();
                self.named(&name, &Value::Nil, value)
            }
            "re" => self.regex(first()?, value),
            "fn" => self.call(first()?, value),
            kind => self.named(kind, &parts.properties, value),
        }
    }

    /// Tells whether a value satisfies a schema, keeping the reasons to itself.
    fn quiet(&mut self, schema: &Value, value: &Value) -> Result<bool, BadSchema> {
        let before = std::mem::take(&mut self.problems);
        let result = self.value(schema, value);
        let holds = std::mem::replace(&mut self.problems, before).is_empty();
        result.map(|()| holds)
    }

    fn any_of(&mut self, children: &[Value], value: &Value) -> Result<(), BadSchema> {
        for child in children {
            if self.quiet(child, value)? {
                return Ok(());
            }
        }
        let all: Vec<String> = children.iter().map(shown).collect();
        self.require(
            false,
            &format!("should satisfy one of {}", all.join(", ")),
            value,
        );
        Ok(())
    }

    fn map(&mut self, parts: &Parts<'_>, value: &Value) -> Result<(), BadSchema> {
        let Value::Map(map) = value else {
            self.require(false, "should be a map", value);
            return Ok(());
        };
        let mut known = Vec::new();
        for child in &parts.children {
            // An entry is `[key properties? schema]`; a bare keyword refers to the registry.
            let (key, properties, schema) = match child {
                Value::Vector(items) => {
                    let key = items.get(0).cloned().ok_or_else(|| bad(child))?;
                    let has_properties = items.len() > 2;
                    let properties = if has_properties {
                        items.get(1).cloned().unwrap_or(Value::Nil)
                    } else {
                        Value::Nil
                    };
                    let schema = items.get(1 + usize::from(has_properties)).cloned();
                    (key.clone(), properties, schema.unwrap_or(key))
                }
                Value::Keyword(_) => (child.clone(), Value::Nil, child.clone()),
                _ => return Err(bad(child)),
            };
            let is_optional = properties.get("optional").is_some_and(Value::is_truthy);
            match map.get(&key) {
                Some(item) => {
                    self.path.push(shown(&key));
                    self.value(&schema, item)?;
                    self.path.pop();
                }
                None if is_optional => {}
                None => self.problem(&format!("the key {} is missing", shown(&key))),
            }
            known.push(key);
        }
        if parts.properties.get("closed").is_some_and(Value::is_truthy) {
            for (key, _) in map.iter().filter(|(key, _)| !known.contains(key)) {
                self.problem(&format!("the key {} should not be there", shown(key)));
            }
        }
        Ok(())
    }

    fn map_of(&mut self, parts: &Parts<'_>, value: &Value) -> Result<(), BadSchema> {
        let [keys, values] = &parts.children[..] else {
            return Err(BadSchema(
                "`:map-of` takes a schema for keys and one for values".to_owned(),
            ));
        };
        let Value::Map(map) = value else {
            self.require(false, "should be a map", value);
            return Ok(());
        };
        self.bounds(parts.kind, &parts.properties, value);
        for (key, item) in map.iter() {
            self.path.push(shown(key));
            self.value(keys, key)?;
            self.value(values, item)?;
            self.path.pop();
        }
        Ok(())
    }

    fn items(&mut self, parts: &Parts<'_>, schema: &Value, value: &Value) -> Result<(), BadSchema> {
        let items: Option<Vec<Value>> = match (parts.kind, value) {
            ("vector" | "sequential", Value::Vector(items)) => {
                Some(items.iter().cloned().collect())
            }
            ("sequential", Value::List(list)) => Some(list.iter().cloned().collect()),
            ("set", Value::Set(set)) => Some(set.iter().cloned().collect()),
            _ => None,
        };
        let Some(items) = items else {
            let words = match parts.kind {
                "set" => "should be a set",
                "vector" => "should be a vector",
                _ => "should be a sequence",
            };
            self.require(false, words, value);
            return Ok(());
        };
        self.bounds(parts.kind, &parts.properties, value);
        for (idx, item) in items.iter().enumerate() {
            self.path.push(idx.to_string());
            self.value(schema, item)?;
            self.path.pop();
        }
        Ok(())
    }

    fn tuple(&mut self, parts: &Parts<'_>, value: &Value) -> Result<(), BadSchema> {
        let count = parts.children.len();
        let Some(items) = value.as_vector().filter(|items| items.len() == count) else {
            self.require(false, &format!("should be a vector of {count}"), value);
            return Ok(());
        };
        for (idx, (schema, item)) in parts.children.iter().zip(items.iter()).enumerate() {
            self.path.push(idx.to_string());
            self.value(schema, item)?;
            self.path.pop();
        }
        Ok(())
    }

    fn multi(&mut self, parts: &Parts<'_>, value: &Value) -> Result<(), BadSchema> {
        let dispatch = parts.properties.get("dispatch").and_then(name_of);
        let dispatch =
            dispatch.ok_or_else(|| BadSchema("`:multi` needs `{:dispatch :key}`".to_owned()))?;
        let found = value.get(&dispatch).cloned().unwrap_or(Value::Nil);
        let branch = parts.children.iter().find_map(|child| {
            let items = child.as_vector()?;
            let is_branch = items.get(0).is_some_and(|key| *key == found);
            is_branch.then(|| items.items().last().cloned())?
        });
        match branch {
            Some(schema) => self.value(&schema, value),
            None => {
                self.require(
                    false,
                    &format!("no branch of the schema is for `:{dispatch}`"),
                    &found,
                );
                Ok(())
            }
        }
    }

    fn regex(&mut self, pattern: &Value, value: &Value) -> Result<(), BadSchema> {
        let Some(source) = pattern.as_str() else {
            return self.value(pattern, value);
        };
        let regex = compile_regex(source)
            .map_err(|error| BadSchema(format!("`{source}` is no regex: {}", error.message)))?;
        let holds = value
            .as_str()
            .is_some_and(|text| matches!(regex.find_from(text, 0), Ok(Some(_))));
        self.require(holds, &format!("should match {source}"), value);
        Ok(())
    }

    fn compared(&mut self, kind: &str, bound: &Value, value: &Value) -> Result<(), BadSchema> {
        let number = |value: &Value| match value {
            Value::Int(int) => Some(*int as f64),
            Value::Float(float) => Some(*float),
            _ => None,
        };
        let holds = number(value)
            .zip(number(bound))
            .is_some_and(|(value, bound)| match kind {
                ">" => value > bound,
                ">=" => value >= bound,
                "<" => value < bound,
                _ => value <= bound,
            });
        self.require(holds, &format!("should be {kind} {}", shown(bound)), value);
        Ok(())
    }
}

/// The schemas that are a name alone: does the value satisfy it, and what it should be.
fn simple(name: &str, value: &Value) -> Option<(bool, &'static str)> {
    let is_number = value.is_number();
    Some(match name {
        "any" | "any?" => (true, ""),
        "some" | "some?" => (!value.is_nil(), "should be there"),
        "nil" | "nil?" => (value.is_nil(), "should be nil"),
        "string" | "string?" => (value.as_str().is_some(), "should be a string"),
        "int" | "int?" | "integer" | "integer?" => (
            matches!(value, Value::Int(_) | Value::BigInt(_)),
            "should be an integer",
        ),
        "nat-int?" => (
            value.as_int().is_some_and(|int| int >= 0),
            "should be an integer of 0 or more",
        ),
        "pos-int?" => (
            value.as_int().is_some_and(|int| int > 0),
            "should be a positive integer",
        ),
        "double" | "double?" | "float" | "float?" => {
            (matches!(value, Value::Float(_)), "should be a double")
        }
        "number" | "number?" => (is_number, "should be a number"),
        "boolean" | "boolean?" => (matches!(value, Value::Bool(_)), "should be true or false"),
        "keyword" | "keyword?" => (value.as_keyword().is_some(), "should be a keyword"),
        "qualified-keyword" | "qualified-keyword?" => (
            value
                .as_keyword()
                .is_some_and(|keyword| keyword.namespace().is_some()),
            "should be a keyword with a namespace",
        ),
        "symbol" | "symbol?" => (value.as_symbol().is_some(), "should be a symbol"),
        "uuid" | "uuid?" => (is_object(value, "a uuid"), "should be a uuid"),
        "inst" | "inst?" => (is_object(value, "an instant"), "should be an instant"),
        "map" | "map?" => (value.as_map().is_some(), "should be a map"),
        "vector" | "vector?" => (value.as_vector().is_some(), "should be a vector"),
        "set" | "set?" => (matches!(value, Value::Set(_)), "should be a set"),
        "sequential" | "sequential?" => (
            matches!(value, Value::Vector(_) | Value::List(_)),
            "should be a sequence",
        ),
        _ => return None,
    })
}

fn is_object(value: &Value, kind: &str) -> bool {
    matches!(value, Value::Object(object) if object.kind() == kind)
}

fn bad(schema: &Value) -> BadSchema {
    BadSchema(format!("{} is no schema", shown(schema)))
}

fn shown(value: &Value) -> String {
    match codec::encode(value) {
        Ok(text) if text.chars().count() <= 60 => text,
        _ => value.kind().to_owned(),
    }
}
