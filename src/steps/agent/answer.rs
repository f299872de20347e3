//! The final answer: its format, and its conditions.

use flowstone_flow::expect::check_at_once;
use flowstone_flow::step::{StepContext, StepError};
use flowstone_lang::value::Value;

use crate::fields::Fields;
use crate::llm::call::Output;
use crate::llm::output::Wanted;

/// The keys that describe the format of an answer.
const FORM: &[&str] = &["json-schema", "output", "response-format"];

/// The required form of the final answer.
pub(super) struct Answer {
    wanted: Wanted,
    /// The fields that a turn's request needs for it.
    form: Vec<(Value, Value)>,
    expect: Value,
    /// How many times a wrong answer is returned to the model.
    pub repairs: i64,
}

impl Answer {
    pub(super) fn read(fields: Fields<'_>) -> Result<Answer, StepError> {
        let form: Vec<(Value, Value)> = FORM
            .iter()
            .filter_map(|key| Some((Value::keyword(key), fields.get(key)?.clone())))
            .collect();
        let wanted = Wanted::read(Fields::new(&Value::map(form.iter().cloned())))?;
        let repairs = match fields.int("repair", 0, 10)? {
            Some(repairs) => repairs,
            None => i64::try_from(wanted.repairs).unwrap_or(0),
        };
        let expect = fields.get("expect").cloned().unwrap_or(Value::Nil);
        if repairs > 0 && !wanted.is_data() && expect.is_nil() {
            let message = "`:repair` is for an answer that is checked";
            return Err(StepError::config("E0840", message)
                .hint("add an `:output` with `:format :json`, or an `:expect`"));
        }
        Ok(Answer {
            wanted,
            form,
            expect,
            repairs,
        })
    }

    /// Tells whether the answer must be data.
    pub(super) fn is_data(&self) -> bool {
        self.wanted.is_data()
    }

    /// Returns the fields that request this form in a turn.
    pub(super) fn form(&self) -> impl Iterator<Item = (Value, Value)> {
        self.form.iter().cloned()
    }

    /// Returns an answer as the flow receives it, or the error for the model.
    pub(super) fn take(&self, text: &str) -> Result<Value, String> {
        self.wanted.take(text)
    }

    /// Returns the parts of `:expect` that do not hold.
    ///
    /// # Errors
    /// Fails if the expectation itself cannot be checked.
    pub(super) fn unmet(
        &self,
        cx: &StepContext,
        content: &Value,
    ) -> Result<Option<String>, StepError> {
        match check_at_once(cx, &self.expect, content) {
            Ok(()) => Ok(None),
            Err(error) if error.kind == "expectation-failed" => Ok(Some(error.message)),
            Err(error) => Err(error),
        }
    }

    /// Returns the instruction about the final answer for a model with tools.
    pub(super) fn notice(&self) -> Option<String> {
        let schema = match &self.wanted.output {
            Output::Text => return None,
            Output::Schema { schema, .. } => format!(" It must satisfy this JSON Schema: {schema}"),
            _ => String::new(),
        };
        Some(format!(
            "Your last answer must be one JSON document and nothing else.{schema}"
        ))
    }
}
