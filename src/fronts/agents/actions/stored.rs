//! What a tool of type `soat` may be stored with.

use serde_json::Value as Json;

use super::super::body::Body;
use super::super::error::ApiError;
use super::{all, find};

/// Checks `actions` and `preset_parameters` of a tool.
///
/// # Errors
/// When the list is empty, an action is unknown, or none of them takes a preset.
pub fn check(body: &Body) -> Result<(), ApiError> {
    let names = body.texts("actions");
    if names.is_empty() {
        return Err(ApiError::invalid(
            "`actions` is missing: name the actions of the tool, such as `[\"get-document\"]`",
        ));
    }
    for (idx, name) in names.iter().enumerate() {
        if find(name).is_none() {
            let near = flowstone_engine::diagnostic::nearest(name, all().map(|it| it.name));
            let near = near.map(|near| format!("; did you mean `{near}`?"));
            return Err(ApiError::invalid(format!(
                "`actions[{idx}]` is `{name}`, which is not an action{}",
                near.unwrap_or_default()
            )));
        }
        if names[..idx].contains(name) {
            return Err(ApiError::invalid(format!("`actions` has `{name}` twice")));
        }
    }
    check_preset(body, &names)
}

/// Refuses presets that no action would get.
fn check_preset(body: &Body, names: &[String]) -> Result<(), ApiError> {
    let given = body.get("preset_parameters").and_then(Json::as_object);
    let schemas: Vec<Json> = names
        .iter()
        .filter_map(|name| Some(find(name)?.schema()))
        .collect();
    let takes = |name: &str| {
        schemas
            .iter()
            .any(|it| it["properties"].get(name).is_some())
    };
    let mut given = given.into_iter().flatten();
    match given.find(|(name, _)| !takes(name)) {
        Some((name, _)) => Err(ApiError::invalid(format!(
            "`preset_parameters` has `{name}`, which no action of the tool takes"
        ))),
        None => Ok(()),
    }
}
