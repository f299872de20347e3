//! The config of a request: the step's own, merged over its template.

use flowstone_flow::step::{StepContext, StepError};
use flowstone_lang::value::Value;

use super::content::{BODIES, has_body};
use crate::fields::Fields;
use crate::rendered;

/// The keys of a request that a template may set.
const KEYS: &[&str] = &[
    "accept",
    "body",
    "body-from-ref",
    "content-type",
    "form",
    "headers",
    "json",
    "method",
    "multipart",
    "path",
    "query",
    "url",
];

/// Keys whose values in step and template are merged.
const TOGETHER: &[&str] = &["headers", "query"];

/// Returns a step's config merged over its template.
///
/// # Errors
/// When the template does not exist, is malformed, or does not describe a request.
pub(super) fn whole(cx: &StepContext, config: Value) -> Result<Value, StepError> {
    let own = Fields::new(&config);
    let Some(template) = rendered::rendered(cx, own, "http-request")? else {
        return Ok(config);
    };
    let request = template.get("request").cloned().unwrap_or(Value::Nil);
    let under = Fields::nested("template :request", &request)?;
    under.only(KEYS)?;
    // One body and one address: the step's, if it has any.
    let is_replaced = |key: &str| {
        (has_body(own) && (BODIES.contains(&key) || key == "content-type"))
            || (["path", "url"].contains(&key) && (own.has("path") || own.has("url")))
    };
    let kept = KEYS.iter().filter(|key| !is_replaced(key));
    let kept = kept.filter_map(|key| {
        let value = under.get(key)?;
        let value = match (TOGETHER.contains(key), own.get(key)) {
            (true, Some(own)) if own.as_map().is_some() => rendered::merged(value, own),
            _ => value.clone(),
        };
        Some((Value::keyword(key), value))
    });
    let kept: Vec<_> = kept.collect();
    let under = Value::map(kept.iter().cloned());
    let over = rendered::merged(&under, &config);
    let joined = kept
        .into_iter()
        .filter(|(key, _)| TOGETHER.iter().any(|name| *key == Value::keyword(name)));
    Ok(rendered::merged(&over, &Value::map(joined)))
}
