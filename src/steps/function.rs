//! `:function`: a pure function of the flow's language over a map. Computed again on replay.

use flowstone_flow::step::{
    Effect, Field, FieldType, LocalFuture, Outcome, Step, StepContext, StepError, StepSpec,
};
use flowstone_lang::value::Value;

use crate::fields::Fields;
use crate::json::items;
use crate::resource;
use crate::text::brief;

/// The `:function` step.
pub struct Function;

const SPEC: StepSpec = StepSpec {
    kind: "function",
    operations: None,
    aliases: &["code"],
    doc: "Calls a function with a map and returns its value.\n\n\
        The function gets `:input` with `:flow/ctx` and `:step/ctx` added. It has no clock, no randomness, no files and \
        no steps, so it is not stored but computed again when a run is resumed. Beside the language it has \
        `flow.util` (Base64, hashes, CSV, instants ...) and `json`.",
    fields: &[
        Field::optional(
            "code",
            FieldType::Function,
            "A quoted `(fn [input] ...)`, or its text.",
        ),
        Field::optional("input", FieldType::Map, "The argument of the function.").or("{}"),
        Field::optional(
            "load",
            FieldType::Items,
            "Keys of `:input` whose values are references: the function gets the contents that they refer to.",
        ),
        Field::optional(
            "ref",
            FieldType::Name,
            "The id of one of the flow's `:functions`, instead of `:code`.",
        ),
    ],
    examples: &[
        "(flow/step :function :total {:input {:rows rows} :code '(fn [{:keys [rows]}] {:total (reduce + (map :amount rows))})})",
        "(flow/step :function :total {:input {:rows rows} :ref :total})",
    ],
    effect: Effect::Pure,
};

impl Step for Function {
    fn spec(&self) -> &'static StepSpec {
        &SPEC
    }

    /// Loaded contents may be removed later, so the result is journaled.
    fn effect(&self, config: &Value) -> Effect {
        match Fields::new(config).has("load") {
            true => Effect::Read,
            false => Effect::Pure,
        }
    }

    fn run<'a>(
        &'a self,
        cx: &'a StepContext,
        config: Value,
    ) -> LocalFuture<'a, Result<Outcome, StepError>> {
        Box::pin(async move {
            let fields = Fields::new(&config);
            let function = cx.function(&code(fields)?)?;
            let input = input(cx, fields).await?;
            cx.call(&function, &[input]).await.map(Outcome::Value)
        })
    }
}

fn code(fields: Fields<'_>) -> Result<Value, StepError> {
    match (fields.get("code"), fields.name("ref")?) {
        (Some(code), None) => Ok(code.clone()),
        (None, Some(id)) => Ok(Value::keyword(&id)),
        (Some(_), Some(_)) => Err(StepError::config(
            "E0760",
            "`:function` takes `:code` or `:ref`, not both",
        )),
        (None, None) => Err(
            StepError::config("E0760", "`:function` needs `:code` or `:ref`")
                .hint("`:code '(fn [input] ...)`, or `:ref :id` of one of the flow's `:functions`"),
        ),
    }
}

async fn input(cx: &StepContext, fields: Fields<'_>) -> Result<Value, StepError> {
    let given = fields.map("input")?;
    let mut entries = given
        .and_then(Value::as_map)
        .map(|map| map.entries().clone())
        .unwrap_or_default();
    for key in fields.get("load").and_then(items).unwrap_or_default() {
        let key = match key.as_str() {
            Some(name) => Value::keyword(name),
            None => key,
        };
        let reference = entries.get(&key).cloned().filter(|value| !value.is_nil());
        let Some(reference) = reference else {
            return Err(StepError::config(
                "E0761",
                format!(
                    "`:load` names {}, which `:input` does not have",
                    brief(&key)
                ),
            )
            .hint("name a key of `:input` whose value is a reference"));
        };
        entries.insert(key, resource::load(cx, &reference).await?);
    }
    entries.insert(Value::keyword("flow/ctx"), cx.flow_context());
    entries.insert(Value::keyword("step/ctx"), cx.step_context());
    Ok(Value::map(
        entries
            .iter()
            .map(|(key, value)| (key.clone(), value.clone())),
    ))
}
