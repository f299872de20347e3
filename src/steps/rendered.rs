//! `:template` and `:data`: takes a step's config from one of the flow's templates.

use std::collections::BTreeSet;

use flowstone_flow::diagnostic::{Diagnostic, nearest};
use flowstone_flow::flow::{Flow, Template, name_of};
use flowstone_flow::step::{StepContext, StepError};
use flowstone_lang::value::Value;
use serde_json::Value as Json;

use crate::fields::Fields;
use crate::json;
use crate::template::{TemplateError, uses};

/// Returns the entry of `:templates` that the config names, with every string in it rendered with `:data`.
///
/// # Errors
/// When the template does not exist, is for another kind of step, or cannot be rendered.
pub(crate) fn rendered(
    cx: &StepContext,
    fields: Fields<'_>,
    kind: &str,
) -> Result<Option<Value>, StepError> {
    let Some(id) = fields.name("template")? else {
        if fields.has("data") {
            return Err(StepError::config("E0755", "`:data` needs a `:template`"));
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
/// When no template has that name, or it is for another kind of step.
pub(crate) fn template<'a>(
    cx: &'a StepContext,
    id: &str,
    kind: &str,
) -> Result<&'a Template, StepError> {
    find(cx.flow(), id, kind)
        .map_err(|(message, hint)| StepError::config("E0755", message).hint(hint))
}

/// Finds a template, or returns the error with a hint.
fn find<'a>(flow: &'a Flow, id: &str, kind: &str) -> Result<&'a Template, (String, String)> {
    let Some(found) = flow.template(id) else {
        let names = flow.templates.iter().map(|it| &*it.id);
        let hint = match nearest(id, names) {
            Some(near) => format!("did you mean `:{near}`?"),
            None => format!("add it to `:templates` with `:type :{kind}`"),
        };
        return Err((format!("the flow has no template `:{id}`"), hint));
    };
    if &*found.kind != kind {
        return Err((
            format!("the template `:{id}` is of type `:{}`", found.kind),
            format!("this step takes templates of type `:{kind}`"),
        ));
    }
    Ok(found)
}

/// Reports errors in `:template` and `:data` as written in a flow: a template that does not exist or is malformed, and
/// variables that a written `:data` lacks. With `has_more`, other data is available at run time.
pub(crate) fn remarks(
    flow: &Flow,
    config: &Value,
    kind: &str,
    has_more: bool,
) -> Vec<(&'static str, Diagnostic)> {
    let Some(id @ (Value::Keyword(_) | Value::Text(_))) = config.get("template") else {
        return Vec::new();
    };
    let id = name_of(id).unwrap_or_default();
    let found = match find(flow, &id, kind) {
        Ok(found) => found,
        Err((message, hint)) => {
            let wrong = Diagnostic::error("E0755", message).hint(hint);
            return vec![("template", wrong)];
        }
    };
    let mut used = BTreeSet::new();
    if let Err(error) = gather(&found.body, &mut used) {
        let message = format!("template `:{id}`: {error}");
        let mut wrong = Diagnostic::error("E0755", message);
        wrong.related = Some((found.span, "the template".to_owned()));
        return vec![("template", wrong)];
    }
    let Some(given) = written_keys(config.get("data")).filter(|_| !has_more) else {
        return Vec::new();
    };
    let key = match config.get("data") {
        Some(_) => "data",
        None => "template",
    };
    let missing = used.into_iter().filter(|name| !given.contains(name));
    missing
        .map(|name| {
            let message = format!("the template `:{id}` uses `{name}`, which `:data` lacks");
            let remark = Diagnostic::warning("E0757", message);
            let near = nearest(&name, given.iter().map(String::as_str));
            let hint = match near {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!(
                    "add it, or say what is written without it: `{{{{default {name} \"...\"}}}}`"
                ),
            };
            (key, remark.hint(hint))
        })
        .collect()
}

/// Collects the variables that the texts of a template use unconditionally.
fn gather(value: &Value, used: &mut BTreeSet<String>) -> Result<(), TemplateError> {
    match value {
        Value::Text(text) if text.contains("{{") => {
            used.extend(uses(text)?.into_iter().map(|it| it.name));
        }
        Value::Map(map) => {
            for (_, inner) in map.iter() {
                gather(inner, used)?;
            }
        }
        Value::Vector(vector) => {
            for inner in vector.iter() {
                gather(inner, used)?;
            }
        }
        _ => {}
    }
    Ok(())
}

/// Returns the keys of a written map; `None` if it, or a key, is computed.
fn written_keys(data: Option<&Value>) -> Option<BTreeSet<String>> {
    let Some(data) = data else {
        return Some(BTreeSet::new());
    };
    let keys = data.as_map()?.iter().map(|(key, _)| match key {
        Value::Keyword(_) | Value::Text(_) => name_of(key).map(|name| name.to_string()),
        _ => None,
    });
    keys.collect()
}

/// Renders every string in a value.
///
/// # Errors
/// When a template is malformed, or is strict and uses a missing variable.
pub(crate) fn render(value: &Value, data: &Json, strict: bool) -> Result<Value, TemplateError> {
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

/// Returns the first map, overridden by the keys of the second.
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
