//! `:template` and `:data`: a step's config from one of the flow's templates.

use flowstone_engine::diagnostic::nearest;
use flowstone_engine::flow::Template;
use flowstone_engine::step::{StepContext, StepError};
use flowstone_lang::value::Value;
use serde_json::Value as Json;

use crate::fields::Fields;
use crate::json;

/// Returns the entry of `:templates` that the config names, with every string in it rendered over `:data`.
///
/// # Errors
/// When there is no such template, it is for another kind of step, or rendering fails.
pub(crate) fn rendered(
    cx: &StepContext,
    fields: Fields<'_>,
    kind: &str,
) -> Result<Option<Value>, StepError> {
    let Some(id) = fields.name("template")? else {
        if fields.has("data") {
            return Err(StepError::config(
                "E0755",
                "`:data` is for a `:template`, and there is none",
            ));
        }
        return Ok(None);
    };
    let found = template(cx, &id, kind)?;
    let data = match fields.map("data")? {
        Some(data) => json::to_json(data).map_err(|error| {
            StepError::config(
                "E0755",
                format!("`:data` cannot be used in a template: {error}"),
            )
        })?,
        None => Json::Object(serde_json::Map::new()),
    };
    let strict = matches!(found.body.get("strict"), Some(Value::Bool(true)));
    render(&found.body, &data, strict)
        .map(Some)
        .map_err(|error| StepError::config("E0755", format!("template `:{id}`: {error}")))
}

/// Finds a template of a flow.
///
/// # Errors
/// When there is none of that name, or it is for another kind of step.
pub(crate) fn template<'a>(
    cx: &'a StepContext,
    id: &str,
    kind: &str,
) -> Result<&'a Template, StepError> {
    let Some(found) = cx.flow().template(id) else {
        let error = StepError::config("E0755", format!("the flow has no template `:{id}`"));
        let names = cx.flow().templates.iter().map(|it| &*it.id);
        return Err(match nearest(id, names) {
            Some(near) => error.hint(format!("did you mean `:{near}`?")),
            None => error.hint(format!("add it to `:templates` with `:type :{kind}`")),
        });
    };
    if &*found.kind != kind {
        return Err(StepError::config(
            "E0755",
            format!("the template `:{id}` is of type `:{}`", found.kind),
        )
        .hint(format!("this step takes templates of type `:{kind}`")));
    }
    Ok(found)
}

/// Renders every string in a value.
///
/// # Errors
/// When a template is wrong, or strict and names what is not there.
pub(crate) fn render(
    value: &Value,
    data: &Json,
    strict: bool,
) -> Result<Value, crate::template::TemplateError> {
    Ok(match value {
        Value::Text(text) => Value::from(crate::template::render(text, data, strict)?),
        Value::Map(map) => {
            let entries = map
                .iter()
                .map(|(key, value)| Ok((key.clone(), render(value, data, strict)?)));
            Value::map(entries.collect::<Result<Vec<_>, _>>()?)
        }
        Value::Vector(vector) => Value::vector(
            vector
                .iter()
                .map(|item| render(item, data, strict))
                .collect::<Result<Vec<_>, _>>()?,
        ),
        other => other.clone(),
    })
}

/// Returns the first map with what the second has of its own put over it.
pub(crate) fn merged(under: &Value, over: &Value) -> Value {
    let entries = |value: &Value| -> Vec<(Value, Value)> {
        value
            .as_map()
            .map(|map| {
                map.iter()
                    .filter(|(_, it)| !it.is_nil())
                    .map(|(key, it)| (key.clone(), it.clone()))
                    .collect()
            })
            .unwrap_or_default()
    };
    Value::map(entries(under).into_iter().chain(entries(over)))
}
