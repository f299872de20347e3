//! Structured output: the requested format, its description for the provider, and the check of the answer.
//!
//! The answer is always checked here, whatever the provider promises.

use flowstone_flow::expect::check_at_once;
use flowstone_flow::flow::name_of;
use flowstone_flow::step::{StepContext, StepError};
use flowstone_lang::value::Value;
use serde_json::Value as Json;

use super::call::Output;
use crate::fields::Fields;
use crate::{json, schema};

/// The requested output.
pub(crate) struct Wanted {
    /// The description for the provider.
    pub output: Output,
    check: Check,
    /// A further condition of the answer: `:expect` of the step.
    expect: Option<Value>,
    /// How many times a wrong answer is sent back.
    pub repairs: usize,
    /// Whether the same question should get the same answer.
    pub is_deterministic: bool,
    /// Whether the provider must constrain the model to the schema.
    is_held: bool,
}

enum Check {
    Text,
    Json,
    Malli(Box<schema::Schema>),
    JsonSchema(Box<jsonschema::Validator>),
}

/// Maximum length of a problem's text in characters.
const PROBLEM_CHARS: usize = 2000;

impl Wanted {
    pub(crate) fn read(fields: Fields<'_>) -> Result<Wanted, StepError> {
        let nothing = Value::map([]);
        // A keyword alone sets the format.
        let short = fields
            .get("output")
            .and_then(name_of)
            .map(|format| Value::map([(Value::keyword("format"), Value::from(&*format))]));
        let output = short.as_ref().or(fields.get("output")).unwrap_or(&nothing);
        let output = Fields::nested(":output", output)?;
        output.only(&["format", "name", "repair", "schema", "strict?", "style"])?;
        let repairs = match fields.count("repair", 0, 10)? {
            Some(repairs) => repairs,
            None => output.count("repair", 0, 10)?.unwrap_or(0),
        };
        if let Some(style) = output.name("style")?
            && &*style != "deterministic"
        {
            return Err(
                StepError::config("E0809", format!("`:output` has no `:style :{style}`"))
                    .hint("there is `:deterministic`"),
            );
        }
        let mut wanted = Wanted::of_output(output)?;
        // `:json-schema` and `:response-format` override the schema of `:output`.
        if let Some(schema) = fields.map("json-schema")? {
            wanted = Wanted::by_schema(schema, output)?;
        }
        if let Some(format) = fields.get("response-format") {
            wanted = wanted.with_response_format(format)?;
        }
        wanted.repairs = repairs;
        wanted.is_deterministic = output.has("style");
        wanted.is_held =
            output.bool("strict?")? == Some(true) && matches!(wanted.output, Output::Schema { .. });
        wanted.expect = fields.get("expect").filter(|_| repairs > 0).cloned();
        if repairs > 0 && !wanted.is_data() && wanted.expect.is_none() {
            return Err(unfit(
                "`:repair` is for an `:output` with `:format :json`, or for `:expect`",
            ));
        }
        Ok(wanted)
    }

    fn of_output(output: Fields<'_>) -> Result<Wanted, StepError> {
        let format = output.name("format")?;
        match (format.as_deref(), output.get("schema")) {
            (Some("text") | None, None) => Ok(Wanted::plain(Output::Text, Check::Text)),
            (Some("json"), None) => Ok(Wanted::plain(Output::Json, Check::Json)),
            (Some("json") | None, Some(schema)) => Wanted::by_schema(schema, output),
            (Some("text"), Some(_)) => {
                Err(unfit("`:output` has a `:schema` and the `:format :text`")
                    .hint("with a schema the format is `:json`"))
            }
            (Some(other), _) => Err(unfit(format!("`:output` has no `:format :{other}`"))
                .hint("there are `:json` and `:text`")),
        }
    }

    fn with_response_format(self, format: &Value) -> Result<Wanted, StepError> {
        if let Value::Map(_) = format {
            let raw = json::to_json(format)
                .map_err(|error| unfit(format!("`:response-format`: {error}")))?;
            let check = match raw.pointer("/json_schema/schema") {
                Some(schema) => Check::JsonSchema(Box::new(validator(schema)?)),
                None if raw.get("type").and_then(Json::as_str) == Some("text") => Check::Text,
                None => Check::Json,
            };
            return Ok(Wanted::plain(Output::Raw(raw), check));
        }
        match name_of(format).as_deref() {
            Some("json" | "json-object" | "json_object") if self.is_data() => Ok(self),
            Some("json" | "json-object" | "json_object") => {
                Ok(Wanted::plain(Output::Json, Check::Json))
            }
            Some("text") => Ok(Wanted::plain(Output::Text, Check::Text)),
            _ => Err(unfit(
                "`:response-format` takes `:json`, `:text` or the provider's own map",
            )),
        }
    }

    fn plain(output: Output, check: Check) -> Wanted {
        Wanted {
            output,
            check,
            expect: None,
            repairs: 0,
            is_deterministic: false,
            is_held: false,
        }
    }

    /// A vector or keyword is a Malli schema, a map is JSON Schema.
    fn by_schema(form: &Value, output: Fields<'_>) -> Result<Wanted, StepError> {
        let (sent, check) = match form {
            Value::Map(_) => {
                let raw = json::to_json(form).map_err(|error| bad_schema(&error))?;
                let check = Check::JsonSchema(Box::new(validator(&raw)?));
                (raw, check)
            }
            form => {
                let parsed = schema::parse(form).map_err(|error| bad_schema(&error))?;
                let mut sent = schema::to_json_schema(&parsed);
                schema::closed(&mut sent);
                (sent, Check::Malli(Box::new(parsed)))
            }
        };
        let strict = output
            .bool("strict?")?
            .unwrap_or_else(|| may_be_strict(&sent));
        let name = output
            .name("name")?
            .map_or_else(|| "answer".to_string(), |name| name.to_string());
        Ok(Wanted::plain(
            Output::Schema {
                name,
                schema: sent,
                strict,
            },
            check,
        ))
    }

    /// Returns the message for the model and the error if the content does not satisfy `:expect`.
    ///
    /// # Errors
    /// Fails if the expectation itself cannot be checked.
    pub(crate) fn unexpected(
        &self,
        cx: &StepContext,
        content: &Value,
    ) -> Result<Option<(String, StepError)>, StepError> {
        let Some(expect) = &self.expect else {
            return Ok(None);
        };
        match check_at_once(cx, expect, content) {
            Ok(()) => Ok(None),
            Err(error) if error.kind == "expectation-failed" => {
                Ok(Some((error.message.clone(), error)))
            }
            Err(error) => Err(error),
        }
    }

    /// Tells whether the provider itself must constrain the model to the schema.
    pub(crate) fn is_held(&self) -> bool {
        self.is_held
    }

    /// Tells whether the answer must be data.
    pub(crate) fn is_data(&self) -> bool {
        !matches!(self.check, Check::Text)
    }

    /// Returns the answer in the form for the flow.
    ///
    /// # Errors
    /// A message about the problem, for a person and for the model.
    pub(crate) fn take(&self, content: &str) -> Result<Value, String> {
        if let Check::Text = self.check {
            return Ok(Value::from(content));
        }
        let text = unfenced(content);
        let data: Json =
            serde_json::from_str(text).map_err(|error| format!("it is not JSON ({error})"))?;
        let value = || json::read(text).unwrap_or_else(|_| json::from_json(&data));
        match &self.check {
            Check::Text | Check::Json => Ok(value()),
            Check::Malli(schema) => {
                let value = schema::decode(schema, value());
                match schema::validate(schema, &value).as_slice() {
                    [] => Ok(value),
                    problems => Err(cut(schema::explain(problems))),
                }
            }
            Check::JsonSchema(validator) => {
                let problems: Vec<String> = validator
                    .iter_errors(&data)
                    .take(5)
                    .map(|error| match error.instance_path().to_string() {
                        path if path.is_empty() => error.to_string(),
                        path => format!("{path}: {error}"),
                    })
                    .collect();
                match problems.is_empty() {
                    true => Ok(value()),
                    false => Err(cut(problems.join("; "))),
                }
            }
        }
    }
}

fn unfit(message: impl Into<String>) -> StepError {
    StepError::config("E0809", message)
}

fn bad_schema(error: &dyn std::fmt::Display) -> StepError {
    StepError::config(
        "E0815",
        format!("the `:schema` of `:output` cannot be used: {error}"),
    )
    .hint("it takes a Malli form such as `[:map [:title :string]]`, or a JSON Schema as a map")
}

fn validator(schema: &Json) -> Result<jsonschema::Validator, StepError> {
    jsonschema::validator_for(schema).map_err(|error| bad_schema(&error))
}

/// Returns the text inside a code fence, which some models always add.
fn unfenced(content: &str) -> &str {
    let text = content.trim();
    let Some(rest) = text.strip_prefix("```") else {
        return text;
    };
    let Some(inner) = rest.strip_suffix("```") else {
        return text;
    };
    inner
        .split_once('\n')
        .map_or(inner, |(_, inner)| inner)
        .trim()
}

/// Tells whether providers that constrain a model to a schema accept this one: every object closed, every property
/// required.
fn may_be_strict(schema: &Json) -> bool {
    match schema {
        Json::Object(object) => {
            let is_object = object.get("type").is_some_and(|it| it == "object")
                || object.contains_key("properties");
            let closed = object.get("additionalProperties") == Some(&Json::Bool(false));
            let names = object
                .get("properties")
                .and_then(Json::as_object)
                .map(serde_json::Map::len)
                .unwrap_or(0);
            let required = object
                .get("required")
                .and_then(Json::as_array)
                .map(Vec::len)
                .unwrap_or(0);
            (!is_object || closed && names == required) && object.values().all(may_be_strict)
        }
        Json::Array(items) => items.iter().all(may_be_strict),
        _ => true,
    }
}

fn cut(text: String) -> String {
    flowstone_flow::redact::cut(&text, PROBLEM_CHARS)
}
