//! Validation of values against schemas. Reports every problem with a message.

use flowstone_lang::value::{Object, Value};

use super::{Entry, Kind, ListForm, Problem, Range, Schema, Size};
use crate::json::{items, name_text, number_float};
use crate::text::{brief, nearest};

/// Maximum depth of references that lead to references; deeper ones are treated as endless.
const MAX_DEPTH: usize = 200;
/// Maximum number of problems that are collected.
const MAX_PROBLEMS: usize = 100;

/// Returns all differences between a value and a schema; empty if the value conforms.
pub fn validate(schema: &Schema, value: &Value) -> Vec<Problem> {
    validate_with(schema, value, &mut |_, _| {
        Err("a function cannot be called here".to_owned())
    })
}

/// Calls a function of a schema with a value; an error is a message.
pub type Predicate<'a> = dyn FnMut(&Value, &Value) -> Result<bool, String> + 'a;

/// Works like [`validate`], for schemas with functions.
pub fn validate_with(
    schema: &Schema,
    value: &Value,
    predicate: &mut Predicate<'_>,
) -> Vec<Problem> {
    let mut check = Check {
        predicate,
        path: Vec::new(),
        schema_path: Vec::new(),
        schema: Value::Nil,
        problems: Vec::new(),
    };
    check.value(schema, value);
    check.problems
}

struct Check<'a, 'f> {
    predicate: &'a mut Predicate<'f>,
    path: Vec<Value>,
    schema_path: Vec<Value>,
    /// The form of the schema that is being checked.
    schema: Value,
    problems: Vec<Problem>,
}

impl Check<'_, '_> {
    /// Returns the problems of the value with another schema, without reporting them.
    fn aside(&mut self, work: impl FnOnce(&mut Check<'_, '_>)) -> Vec<Problem> {
        let mut check = Check {
            predicate: &mut *self.predicate,
            path: self.path.clone(),
            schema_path: self.schema_path.clone(),
            schema: self.schema.clone(),
            problems: Vec::new(),
        };
        work(&mut check);
        check.problems
    }

    fn ask(&mut self, function: &Value, value: &Value) {
        match (self.predicate)(function, value) {
            Ok(true) => {}
            Ok(false) => self.should_be("a value that the function accepts", value),
            Err(why) => self.problem(format!("could not be checked: {why}")),
        }
    }

    fn value(&mut self, schema: &Schema, value: &Value) {
        if self.problems.len() >= MAX_PROBLEMS {
            return;
        }
        if self.path.len() > MAX_DEPTH {
            return self.problem("is nested too deeply".to_owned());
        }
        let outer = std::mem::replace(&mut self.schema, schema.form.clone());
        match &schema.notes.message {
            None => self.kind(&schema.kind, value),
            Some(message) => {
                let problems = self.aside(|check| check.kind(&schema.kind, value));
                if !problems.is_empty() {
                    self.problem(message.clone());
                }
            }
        }
        self.schema = outer;
    }

    /// Checks the same value against a part of the schema.
    fn part(&mut self, step: Value, schema: &Schema, value: &Value) {
        self.schema_path.push(step);
        self.value(schema, value);
        self.schema_path.pop();
    }

    fn kind(&mut self, kind: &Kind, value: &Value) {
        match kind {
            Kind::Any => {}
            Kind::Predicate(function) => self.ask(function, value),
            Kind::Some => self.require(!value.is_nil(), "a value", value),
            Kind::Nil => self.require(value.is_nil(), "nil", value),
            Kind::String { size } => match value.as_str() {
                Some(text) => self.size(*size, text.chars().count(), "character"),
                None => self.should_be("a string", value),
            },
            Kind::Int { range } => match value {
                Value::Int(_) | Value::BigInt(_) => self.range(*range, value),
                _ => self.should_be("an integer", value),
            },
            Kind::Double { range } => match value {
                Value::Float(_) => self.range(*range, value),
                _ => self.should_be("a double", value),
            },
            Kind::Number { range } => match number_float(value) {
                Some(_) => self.range(*range, value),
                None => self.should_be("a number", value),
            },
            Kind::Boolean => self.require(matches!(value, Value::Bool(_)), "true or false", value),
            Kind::Keyword => self.require(value.as_keyword().is_some(), "a keyword", value),
            Kind::Symbol => self.require(value.as_symbol().is_some(), "a symbol", value),
            Kind::Uuid => self.require(
                is_object(value, |object| matches!(object, Object::Uuid(_))),
                "a uuid",
                value,
            ),
            Kind::Inst => self.require(
                is_object(value, |object| matches!(object, Object::Inst(_))),
                "an instant",
                value,
            ),
            Kind::Regex { source, regex } => match value.as_str() {
                Some(text) => self.require(
                    matches!(regex.find_from(text, 0), Ok(Some(_))),
                    &format!("a string that matches #\"{source}\""),
                    value,
                ),
                None => self.should_be("a string", value),
            },
            Kind::AnyMap => self.require(is_map(value), "a map", value),
            Kind::Map { entries, closed } => self.map(entries, *closed, value),
            Kind::MapOf {
                key,
                value: inner,
                size,
            } => self.map_of((key, inner), *size, value),
            Kind::List { item, size, form } => self.list(item, *size, *form, value),
            Kind::Tuple(schemas) => self.tuple(schemas, value),
            Kind::Enum(values) => {
                let known: Vec<String> = values.iter().map(brief).collect();
                self.require(
                    values.contains(value),
                    &format!("one of {}", known.join(", ")),
                    value,
                );
            }
            Kind::Equals(expected) => self.require(expected == value, &brief(expected), value),
            Kind::Maybe(inner) if !value.is_nil() => self.part(Value::Int(0), inner, value),
            Kind::Maybe(_) => {}
            Kind::And(schemas) => (0..)
                .zip(schemas)
                .for_each(|(idx, schema)| self.part(Value::Int(idx), schema, value)),
            Kind::Or(schemas) => self.or(schemas, value),
            Kind::Not(inner) => {
                if self.aside(|check| check.value(inner, value)).is_empty() {
                    self.problem(format!("should not be {}", name(inner)));
                }
            }
            Kind::Multi { dispatch, cases } => self.multi(dispatch, cases, value),
            Kind::Reference { name, registry } => {
                let target = registry.borrow().get(name).cloned();
                if let Some(target) = target {
                    self.part(Value::Int(0), &target, value);
                }
            }
        }
    }

    fn map(&mut self, entries: &[Entry], closed: bool, value: &Value) {
        let Some(found) = map_entries(value) else {
            return self.should_be("a map", value);
        };
        for entry in entries {
            let inner = found.iter().find(|(key, _)| *key == entry.key);
            match inner {
                Some((_, inner)) => {
                    self.nested(&entry.key, entry.key.clone(), &entry.schema, inner)
                }
                None if entry.optional => {}
                None => {
                    let near = found
                        .iter()
                        .filter(|(key, _)| !entries.iter().any(|entry| entry.key == *key))
                        .filter_map(|(key, _)| name_text(key))
                        .collect::<Vec<_>>();
                    let wanted = name_text(&entry.key).unwrap_or_default();
                    let near = nearest(&wanted, near.iter().map(String::as_str))
                        .map_or(String::new(), |near| format!(" (there is `{near}`)"));
                    self.missing(
                        &entry.key,
                        format!("{} is missing{near}", brief(&entry.key)),
                    );
                }
            }
        }
        if closed {
            let known: Vec<String> = entries.iter().map(|entry| brief(&entry.key)).collect();
            for (key, _) in &found {
                if !entries.iter().any(|entry| entry.key == *key) {
                    let key = brief(key);
                    let near = nearest(&key, known.iter().map(String::as_str));
                    let words = match (near, known.as_slice()) {
                        (Some(near), _) => format!("did you mean {near}?"),
                        (None, []) => "the map is empty".to_owned(),
                        (None, known) => format!("there are {}", known.join(" ")),
                    };
                    self.problem(format!("{key} is not expected; {words}"));
                }
            }
        }
    }

    fn map_of(&mut self, (key, inner): (&Schema, &Schema), size: Size, value: &Value) {
        let Some(found) = map_entries(value) else {
            return self.should_be("a map", value);
        };
        self.size(size, found.len(), "entry");
        for (found_key, found_value) in &found {
            let problems = self.aside(|check| check.part(Value::Int(0), key, found_key));
            if let Some(problem) = problems.first() {
                self.problem(format!("the key {} {}", brief(found_key), problem.message));
            }
            self.nested(found_key, Value::Int(1), inner, found_value);
        }
    }

    fn list(&mut self, item: &Schema, size: Size, form: ListForm, value: &Value) {
        let fits = match form {
            ListForm::Vector => matches!(value, Value::Vector(_)),
            ListForm::Set => matches!(value, Value::Set(_)),
            ListForm::Sequential => {
                matches!(
                    value,
                    Value::Vector(_) | Value::List(_) | Value::Seq(_) | Value::Lazy(_)
                )
            }
        };
        let found = items(value).filter(|_| fits);
        let Some(found) = found else {
            return self.should_be(list_name(form), value);
        };
        self.size(size, found.len(), "item");
        for (idx, inner) in (0..).map(Value::Int).zip(&found) {
            self.nested(&idx, Value::Int(0), item, inner);
        }
    }

    fn tuple(&mut self, schemas: &[Schema], value: &Value) {
        match value.as_vector() {
            Some(vector) if vector.len() == schemas.len() => {
                for (idx, (schema, inner)) in
                    (0..).map(Value::Int).zip(schemas.iter().zip(vector.iter()))
                {
                    self.nested(&idx, idx.clone(), schema, inner);
                }
            }
            Some(vector) => self.problem(format!(
                "should have {} items, but has {}",
                schemas.len(),
                vector.len()
            )),
            None => self.should_be(&format!("a vector of {} items", schemas.len()), value),
        }
    }

    /// Reports the nearest branch: the only one whose problems all lie below this value, if there is exactly one.
    fn or(&mut self, schemas: &[Schema], value: &Value) {
        let mut deepest: Option<Vec<Problem>> = None;
        let mut deeper = 0;
        for (idx, schema) in (0..).zip(schemas) {
            let problems = self.aside(|check| check.part(Value::Int(idx), schema, value));
            if problems.is_empty() {
                return;
            }
            if problems.iter().all(|problem| {
                problem.path.len() > self.path.len() || problem.message.ends_with("is missing")
            }) {
                deeper += 1;
                deepest = Some(problems);
            }
        }
        match deepest {
            Some(problems) if deeper == 1 => self.problems.extend(problems),
            _ => {
                let names: Vec<String> = schemas.iter().map(name).collect();
                self.should_be(&names.join(" or "), value);
            }
        }
    }

    fn multi(&mut self, dispatch: &Value, cases: &[(Value, Schema)], value: &Value) {
        let Some(found) = map_entries(value) else {
            return self.should_be("a map", value);
        };
        let chosen = found
            .into_iter()
            .find(|(key, _)| key == dispatch)
            .map(|found| found.1)
            .unwrap_or(Value::Nil);
        match cases.iter().find(|(case, _)| *case == chosen) {
            Some((case, schema)) => self.part(case.clone(), schema, value),
            None => {
                let known: Vec<String> = cases.iter().map(|(case, _)| brief(case)).collect();
                self.path.push(dispatch.clone());
                self.should_be(&format!("one of {}", known.join(", ")), &chosen);
                self.path.pop();
            }
        }
    }

    /// Checks the part of the value under a key against the part of the schema at `step`.
    fn nested(&mut self, key: &Value, step: Value, schema: &Schema, value: &Value) {
        self.path.push(key.clone());
        self.part(step, schema, value);
        self.path.pop();
    }

    fn size(&mut self, size: Size, count: usize, unit: &str) {
        let units = |count: usize| match (count, unit) {
            (1, unit) => format!("1 {unit}"),
            (count, "entry") => format!("{count} entries"),
            (count, unit) => format!("{count} {unit}s"),
        };
        match (size.min, size.max) {
            (Some(min), _) if count < min => self.problem(format!(
                "should have at least {}, but has {count}",
                units(min)
            )),
            (_, Some(max)) if count > max => self.problem(format!(
                "should have at most {}, but has {count}",
                units(max)
            )),
            _ => {}
        }
    }

    fn range(&mut self, range: Range, value: &Value) {
        let Some(float) = number_float(value) else {
            return;
        };
        let (least, most) = match range.exclusive {
            true => ("more than", "less than"),
            false => ("at least", "at most"),
        };
        if range
            .min
            .is_some_and(|min| float < min || (range.exclusive && float == min) || float.is_nan())
        {
            return self.should_be(&format!("{least} {}", range.min.unwrap_or_default()), value);
        }
        if range
            .max
            .is_some_and(|max| float > max || (range.exclusive && float == max) || float.is_nan())
        {
            self.should_be(&format!("{most} {}", range.max.unwrap_or_default()), value);
        }
    }

    fn require(&mut self, holds: bool, expected: &str, value: &Value) {
        if !holds {
            self.should_be(expected, value);
        }
    }

    fn should_be(&mut self, expected: &str, value: &Value) {
        let found = match value {
            Value::Nil => "nil".to_owned(),
            Value::Map(map) if map.len() > 3 => format!("a map of {} entries", map.len()),
            Value::Vector(vector) if vector.len() > 5 => {
                format!("a vector of {} items", vector.len())
            }
            value => format!("{} ({})", brief(value), value.kind()),
        };
        self.problem(format!("should be {expected}, but is {found}"));
    }

    /// Reports a missing entry: the message is for the map, and the data points to the entry.
    fn missing(&mut self, key: &Value, message: String) {
        self.problem(message);
        if let Some(problem) = self.problems.last_mut() {
            problem.at.push(key.clone());
            problem.schema_path.push(key.clone());
        }
    }

    fn problem(&mut self, message: String) {
        self.problems.push(Problem {
            path: self.path.iter().map(brief).collect(),
            message,
            at: self.path.clone(),
            schema_path: self.schema_path.clone(),
            schema: self.schema.clone(),
        });
    }
}

fn is_object(value: &Value, fits: fn(&Object) -> bool) -> bool {
    matches!(value, Value::Object(object) if fits(object))
}

fn is_map(value: &Value) -> bool {
    matches!(value, Value::Map(_) | Value::Record(_))
}

fn map_entries(value: &Value) -> Option<Vec<(Value, Value)>> {
    let entries = match value {
        Value::Map(map) => map.entries(),
        Value::Record(record) => &record.fields,
        _ => return None,
    };
    Some(
        entries
            .iter()
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect(),
    )
}

fn list_name(form: ListForm) -> &'static str {
    match form {
        ListForm::Vector => "a vector",
        ListForm::Sequential => "a vector or list",
        ListForm::Set => "a set",
    }
}

/// Returns a short description of what a schema accepts.
fn name(schema: &Schema) -> String {
    match &schema.kind {
        Kind::Any | Kind::Predicate(_) => "anything".to_owned(),
        Kind::Some => "a value".to_owned(),
        Kind::Nil => "nil".to_owned(),
        Kind::String { .. } | Kind::Regex { .. } => "a string".to_owned(),
        Kind::Int { .. } => "an integer".to_owned(),
        Kind::Double { .. } => "a double".to_owned(),
        Kind::Number { .. } => "a number".to_owned(),
        Kind::Boolean => "true or false".to_owned(),
        Kind::Keyword => "a keyword".to_owned(),
        Kind::Symbol => "a symbol".to_owned(),
        Kind::Uuid => "a uuid".to_owned(),
        Kind::Inst => "an instant".to_owned(),
        Kind::Map { .. } | Kind::MapOf { .. } | Kind::AnyMap | Kind::Multi { .. } => {
            "a map".to_owned()
        }
        Kind::List { form, .. } => list_name(*form).to_owned(),
        Kind::Tuple(schemas) => format!("a vector of {} items", schemas.len()),
        Kind::Enum(values) => format!(
            "one of {}",
            values.iter().map(brief).collect::<Vec<_>>().join(", ")
        ),
        Kind::Equals(value) => brief(value),
        Kind::Maybe(inner) => format!("{} or nil", name(inner)),
        Kind::Or(schemas) => schemas.iter().map(name).collect::<Vec<_>>().join(" or "),
        Kind::And(schemas) => schemas.iter().map(name).collect::<Vec<_>>().join(" and "),
        Kind::Not(inner) => format!("anything but {}", name(inner)),
        Kind::Reference { name, .. } => name.clone(),
    }
}
