//! The arguments of a tool call: conversion from a model's JSON to a step's config.
//!
//! Models write JSON that is nearly right: keys in another spelling, a number or an object as a string, null for a
//! missing value. What can only be interpreted in one way is accepted; everything else is reported in terms that the
//! model can act on.

use std::fmt::Write as _;

use flowstone_flow::step::{COMMON, StepError};
use flowstone_lang::value::Value;
use jsonschema::ValidationError;
use jsonschema::error::ValidationErrorKind as Kind;
use serde_json::{Map as JsonMap, Value as Json, json};

use super::hidden;
use crate::json::{from_json, large_integer, read, to_json, write};

/// Maximum number of problems reported at once.
const TOLD: usize = 5;

/// How many characters of a wrong value are shown.
const SHOWN: usize = 80;

/// The schema of a tool's arguments, prepared for many calls.
pub(crate) struct Shape {
    tool: String,
    schema: Json,
    validator: Option<jsonschema::Validator>,
    /// Arguments that the model neither sees nor changes, and the check of all arguments together.
    preset: Option<(JsonMap<String, Json>, jsonschema::Validator)>,
}

impl Shape {
    /// Reads the JSON Schema of a tool's arguments.
    ///
    /// # Errors
    /// When it is not a JSON Schema, as a message.
    pub(crate) fn new(tool: &str, schema: &Json) -> Result<Shape, String> {
        let is_empty = schema.as_object().is_none_or(JsonMap::is_empty);
        let validator = match is_empty {
            true => None,
            false => Some(jsonschema::validator_for(schema).map_err(|error| error.to_string())?),
        };
        Ok(Shape {
            tool: tool.to_owned(),
            schema: schema.clone(),
            validator,
            preset: None,
        })
    }

    /// As [`Shape::new`], with arguments that are preset. They are merged before the check of the whole, and never shown.
    ///
    /// # Errors
    /// When it is not a JSON Schema, as a message.
    pub(crate) fn with_preset(
        tool: &str,
        schema: &Json,
        preset: &JsonMap<String, Json>,
    ) -> Result<Shape, String> {
        let shown = hidden::without(schema, preset);
        let mut shape = Shape::new(tool, &shown)?;
        if !preset.is_empty() && schema.as_object().is_some_and(|it| !it.is_empty()) {
            let whole = hidden::admitting(schema, preset);
            let validator = jsonschema::validator_for(&whole).map_err(|error| error.to_string())?;
            shape.preset = Some((preset.clone(), validator));
        }
        Ok(shape)
    }

    /// The schema that the model sees.
    pub(crate) fn shown(&self) -> &Json {
        &self.schema
    }

    /// Returns arguments as data, in the schema's spelling. A text is the JSON that a model wrote.
    ///
    /// # Errors
    /// E0837, with a message for the model.
    pub(crate) fn read(&self, given: &Value) -> Result<Value, StepError> {
        let json = self.corrected(given, Corrected::All)?;
        // If nothing was corrected, numbers keep all of their digits.
        let exact = given.as_str().and_then(|text| {
            let text = unfenced(text);
            let is_same = serde_json::from_str::<Json>(text).is_ok_and(|plain| plain == json);
            read(text).ok().filter(|_| is_same)
        });
        match exact {
            Some(exact) => Ok(exact),
            None => self.held(given).map(|()| from_json(&json)),
        }
    }

    /// As [`Shape::read`], with the names of the arguments as the model wrote them.
    ///
    /// # Errors
    /// E0837, with a message for the model.
    pub(crate) fn read_as_named(&self, given: &Value) -> Result<Value, StepError> {
        self.read_json_as_named(given).map(|json| from_json(&json))
    }

    /// As [`Shape::read_as_named`], as JSON.
    ///
    /// # Errors
    /// E0837, with a message for the model.
    pub(crate) fn read_json_as_named(&self, given: &Value) -> Result<Json, StepError> {
        self.held(given)?;
        self.corrected(given, Corrected::Values)
    }

    pub(crate) fn read_json(&self, given: &Value) -> Result<Json, StepError> {
        self.held(given)?;
        self.corrected(given, Corrected::All)
    }

    /// Refuses integers that 64 bits cannot hold: the tool would get another number.
    fn held(&self, given: &Value) -> Result<(), StepError> {
        let text = match given {
            Value::Text(text) => text.as_str().to_owned(),
            data => write(data).map_err(|error| self.wrong(error.to_string()))?,
        };
        match large_integer(&text) {
            None => Ok(()),
            Some(digits) => Err(self.wrong(format!(
                "the integer {} is larger than 64 bits; write it as a string",
                shortened(digits)
            ))),
        }
    }

    fn corrected(&self, given: &Value, corrected: Corrected) -> Result<Json, StepError> {
        let mut json = self.object(given)?;
        meant(&self.schema, &mut json, corrected);
        if let (Some((preset, _)), Json::Object(members)) = (&self.preset, &mut json) {
            members.retain(|name, _| !preset.contains_key(name));
        }
        self.valid(json)
    }

    /// Returns the arguments as an object, which a model may have written as text.
    fn object(&self, given: &Value) -> Result<Json, StepError> {
        let json = match given {
            Value::Nil => json!({}),
            Value::Text(text) => self.parse(text)?,
            other => to_json(other).map_err(|error| self.wrong(error.to_string()))?,
        };
        // Some models wrap everything in a string.
        let json = match &json {
            Json::String(text) => self.parse(text)?,
            Json::Null => json!({}),
            _ => json,
        };
        if !json.is_object() {
            return Err(self.wrong(format!("the arguments are {}, not an object", named(&json))));
        }
        Ok(json)
    }

    /// Checks arguments that a person gave. Names may have another spelling, as in a flow, but a value of the wrong type
    /// is refused: only models write numbers as texts.
    ///
    /// # Errors
    /// E0837, with a message for the person.
    pub(crate) fn check_as_given(&self, given: &Value) -> Result<(), StepError> {
        let mut json = to_json(given).map_err(|error| self.wrong(error.to_string()))?;
        meant(&self.schema, &mut json, Corrected::Names);
        self.valid(json).map(|_| ())
    }

    fn valid(&self, json: Json) -> Result<Json, StepError> {
        if let Some((preset, whole)) = &self.preset {
            let mut all = json.clone();
            if let Json::Object(members) = &mut all {
                members.extend(preset.clone());
            }
            if whole.is_valid(&all) {
                return Ok(json);
            }
        }
        let Some(validator) = &self.validator else {
            return Ok(json);
        };
        let problems: Vec<String> = validator
            .iter_errors(&json)
            .take(TOLD)
            .map(|error| message_of(&error))
            .collect();
        match problems.is_empty() {
            // What is wrong is not told in the words of the whole schema, because they show the preset arguments.
            true if self.preset.is_some() => Err(self
                .wrong("the arguments do not fit together with those that are set for the tool")),
            true => Ok(json),
            false => Err(self.wrong(problems.join("; "))),
        }
    }

    /// Refuses the options of every step, such as `:persist` and `:retry`, in arguments that become a step's config, unless
    /// the schema names them: they belong to the flow.
    ///
    /// # Errors
    /// E0837, with a message for the model.
    pub(super) fn without_options(&self, read: &Value) -> Result<(), StepError> {
        let named = self.schema.get("properties").and_then(Json::as_object);
        let is_named = |key: &str| {
            named.is_some_and(|named| named.keys().any(|name| plain(name) == plain(key)))
        };
        let is_option = |key: &str| {
            let mut names = COMMON
                .iter()
                .flat_map(|field| std::iter::once(&field.name).chain(field.aliases));
            names.any(|name| plain(name) == plain(key))
        };
        let entries = read.as_map().into_iter().flat_map(|map| map.iter());
        let options: Vec<String> = entries
            .filter_map(|(key, _)| flowstone_flow::flow::name_of(key))
            .filter(|key| is_option(key) && !is_named(key))
            .map(|key| format!("`{key}`"))
            .collect();
        match options.is_empty() {
            true => Ok(()),
            false => Err(self.wrong(format!("has no {}", options.join(", ")))),
        }
    }

    fn parse(&self, text: &str) -> Result<Json, StepError> {
        let text = unfenced(text);
        if text.is_empty() {
            return Ok(json!({}));
        }
        serde_json::from_str(text).map_err(|error| {
            let near = near(text, error.line(), error.column());
            self.wrong(format!("the arguments are not JSON: {error}{near}"))
        })
    }

    /// Builds the error for the model, with an example of correct arguments.
    pub(super) fn wrong(&self, message: impl Into<String>) -> StepError {
        StepError::new(
            "E0837",
            "invalid",
            format!("wrong arguments of `{}`: {}", self.tool, message.into()),
        )
        .hint(format!("an example: {}", example(&self.schema)))
    }
}

/// What is corrected.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Corrected {
    All,
    Names,
    Values,
}

/// Corrects what can only be interpreted in one way.
fn meant(schema: &Json, value: &mut Json, corrected: Corrected) {
    let types = types(schema);
    if corrected != Corrected::Names
        && let Json::String(text) = &*value
        && let Some(better) = of_text(&types, text)
    {
        *value = better;
    }
    match value {
        Json::Object(object) => respell(schema, object, corrected),
        Json::Array(items) => {
            let inner = schema.get("items").unwrap_or(&Json::Null);
            items
                .iter_mut()
                .for_each(|item| meant(inner, item, corrected));
        }
        _ => {}
    }
}

/// Parses a string if the schema wants another type and no string.
fn of_text(types: &[&str], text: &str) -> Option<Json> {
    if types.is_empty() || types.contains(&"string") {
        return None;
    }
    let parsed: Json = serde_json::from_str(text.trim()).ok()?;
    let is_wanted = match &parsed {
        Json::Object(_) => types.contains(&"object"),
        Json::Array(_) => types.contains(&"array"),
        Json::Bool(_) => types.contains(&"boolean"),
        Json::Number(number) => {
            types.contains(&"number") || types.contains(&"integer") && number.is_i64()
        }
        Json::Null => true,
        Json::String(_) => false,
    };
    is_wanted.then_some(parsed)
}

fn respell(schema: &Json, object: &mut JsonMap<String, Json>, corrected: Corrected) {
    let Some(properties) = schema.get("properties").and_then(Json::as_object) else {
        return;
    };
    let required = schema.get("required").and_then(Json::as_array);
    let is_required = |name: &str| {
        required.is_some_and(|names| names.iter().any(|known| known.as_str() == Some(name)))
    };
    let mut out = JsonMap::new();
    let given = std::mem::take(object);
    // What a model wrote under the right name counts, whatever else it wrote.
    let missing = |name: &&String| !given.contains_key(*name);
    for (key, mut value) in given.clone() {
        let name = match properties.contains_key(&key) || corrected == Corrected::Values {
            true => key,
            false => {
                let names = properties.keys().filter(missing);
                let mut names = names.filter(|name| plain(name) == plain(&key));
                match (names.next(), names.next()) {
                    (Some(name), None) => name.clone(),
                    _ => key,
                }
            }
        };
        match properties.get(&name) {
            Some(schema) => {
                meant(schema, &mut value, corrected);
                let may_be_null = types(schema).is_empty() || types(schema).contains(&"null");
                if value.is_null() && !may_be_null && !is_required(&name) {
                    continue;
                }
            }
            None if value.is_null() && corrected != Corrected::Values => continue,
            None => {}
        }
        out.insert(name, value);
    }
    *object = out;
}

/// Normalises the spelling of a name.
fn plain(name: &str) -> String {
    let name = name.trim_start_matches(':').trim_end_matches(['?', '!']);
    let letters = name.chars().filter(|char| !matches!(char, '-' | '_'));
    letters.flat_map(char::to_lowercase).collect()
}

/// Returns the JSON types that a schema allows; empty if it does not restrict them.
fn types(schema: &Json) -> Vec<&str> {
    match schema.get("type") {
        Some(Json::String(name)) => vec![name],
        Some(Json::Array(names)) => names.iter().filter_map(Json::as_str).collect(),
        _ => {
            let cases = schema
                .get("anyOf")
                .or(schema.get("oneOf"))
                .and_then(Json::as_array);
            let cases: Vec<Vec<&str>> = cases.into_iter().flatten().map(types).collect();
            match cases.iter().any(Vec::is_empty) {
                true => Vec::new(),
                false => cases.concat(),
            }
        }
    }
}

fn message_of(error: &ValidationError<'_>) -> String {
    let path = error.instance_path().to_string();
    let at = match path.trim_start_matches('/').replace('/', ".") {
        path if path.is_empty() => String::new(),
        path => format!("`{path}` "),
    };
    let found = || shortened(&error.instance().to_string());
    match error.kind() {
        Kind::Required { property } => {
            let name = property
                .as_str()
                .map_or_else(|| property.to_string(), str::to_owned);
            format!("{at}needs `{name}`")
        }
        Kind::AdditionalProperties { unexpected } | Kind::UnevaluatedProperties { unexpected } => {
            let names: Vec<String> = unexpected.iter().map(|name| format!("`{name}`")).collect();
            format!("{at}has no {}", names.join(", "))
        }
        Kind::Enum { options } => format!("{at}must be one of {options}, not {}", found()),
        Kind::Type { .. } | Kind::AnyOf { .. } | Kind::OneOfNotValid { .. } => {
            format!("{}: {}", at.trim_end(), wording(error))
        }
        _ => format!("{}: {}", at.trim_end(), shortened(&error.to_string())),
    }
    .trim_start_matches(": ")
    .to_owned()
}

fn wording(error: &ValidationError<'_>) -> String {
    shortened(&error.to_string())
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(2 * SHOWN) {
        Some((end, _)) => format!("{} ...", &text[..end]),
        None => text.to_owned(),
    }
}

fn named(json: &Json) -> &'static str {
    match json {
        Json::Null => "null",
        Json::Bool(_) => "a boolean",
        Json::Number(_) => "a number",
        Json::String(_) => "a string",
        Json::Array(_) => "an array",
        Json::Object(_) => "an object",
    }
}

/// Returns the text at which parsing stopped.
fn near(text: &str, line: usize, column: usize) -> String {
    let line = text.lines().nth(line.saturating_sub(1)).unwrap_or_default();
    let from = column.saturating_sub(SHOWN / 2);
    let part: String = line.chars().skip(from).take(SHOWN).collect();
    match part.trim().is_empty() {
        true => String::new(),
        false => format!(", near `{}`", part.trim()),
    }
}

/// Returns the text inside a code fence, which some models always add.
fn unfenced(text: &str) -> &str {
    let text = text.trim();
    let inner = text
        .strip_prefix("```")
        .and_then(|rest| rest.strip_suffix("```"));
    inner.map_or(text, |inner| inner.trim_start_matches("json").trim())
}

/// Builds minimal arguments that a schema allows: only the required ones.
pub(super) fn example(schema: &Json) -> String {
    let mut text = String::new();
    let _ = write!(text, "{}", sample(schema, 0));
    text
}

fn sample(schema: &Json, depth: usize) -> Json {
    for key in ["default", "const", "example"] {
        if let Some(value) = schema.get(key) {
            return value.clone();
        }
    }
    let first = |key: &str| {
        schema
            .get(key)
            .and_then(Json::as_array)
            .and_then(|items| items.first())
    };
    if let Some(value) = first("enum").or(first("examples")) {
        return value.clone();
    }
    if let Some(case) = first("anyOf").or(first("oneOf")) {
        return sample(case, depth);
    }
    match types(schema).first().copied() {
        Some("object") | None if depth < 4 && schema.get("properties").is_some() => {
            let names = schema.get("required").and_then(Json::as_array);
            let names = names.into_iter().flatten().filter_map(Json::as_str);
            let entries = names.map(|name| {
                let inner = &schema["properties"][name];
                (name.to_owned(), sample(inner, depth + 1))
            });
            Json::Object(entries.collect())
        }
        Some("array") if depth < 4 => match schema.get("items") {
            Some(items) => json!([sample(items, depth + 1)]),
            None => json!([]),
        },
        Some("array") => json!([]),
        Some("integer" | "number") => schema.get("minimum").cloned().unwrap_or(json!(1)),
        Some("boolean") => json!(true),
        Some("null") => Json::Null,
        Some("string") | None => json!("..."),
        _ => json!({}),
    }
}
