//! Options of a call: temperature and similar ones, and fields that are added to the request unchanged.

use flowstone_flow::flow::name_of;
use flowstone_flow::step::StepError;
use flowstone_lang::value::Value;
use serde_json::Value as Json;

use super::call::Options;
use super::capability::Capability;
use super::dialect::Dialect;
use super::messages::as_json;
use super::output::Wanted;
use super::provider::Endpoint;
use crate::fields::Fields;

pub(super) fn read(
    fields: Fields<'_>,
    endpoint: &Endpoint,
    wanted: &Wanted,
) -> Result<Options, StepError> {
    // A wish only: models without a temperature are used unchanged.
    let is_calm = wanted.is_deterministic && endpoint.can(Capability::Temperature);
    Ok(Options {
        temperature: fields.number("temperature")?.or(is_calm.then_some(0.0)),
        top_p: fields.number("top-p")?,
        stop: fields.texts("stop")?,
        max_tokens: fields.int("max-tokens", 1, i64::MAX)?,
        seed: fields.int("seed", i64::MIN, i64::MAX)?,
        presence_penalty: fields.number("presence-penalty")?,
        frequency_penalty: fields.number("frequency-penalty")?,
        reasoning_effort: fields.name("reasoning-effort")?.map(|it| it.to_string()),
        prompt_cache_key: fields.text("prompt-cache-key")?.map(str::to_string),
        cache_system: fields.bool("cache-system?")?.unwrap_or(false),
        previous_response_id: fields.text("previous-response-id")?.map(str::to_string),
    })
}

/// Returns what `:provider-opts` adds to the body for this provider: `{:openrouter {:provider {...}}}`.
pub(super) fn extra(
    fields: Fields<'_>,
    provider: &str,
    dialect: &Dialect,
) -> Result<Vec<(String, Json)>, StepError> {
    let mut extra = Vec::new();
    // Only providers with that API reach this code.
    if let Some(options) = fields.map("openai")? {
        Fields::nested(":openai", options)?.only(&["responses"])?;
        if let Json::Object(options) = as_json(":openai", options)? {
            extra.extend(options);
        }
    }
    let options = fields.map("provider-opts")?.and_then(Value::as_map);
    for (key, value) in options.into_iter().flat_map(|map| map.iter()) {
        let name = name_of(key).unwrap_or_else(|| "?".into());
        if &*name != provider {
            return Err(StepError::config("E0809", format!("`:provider-opts` is for `:{name}`, and the provider is `:{provider}`"))
                .hint(format!("additional fields of the request go under the provider: {{:{provider} {{:some_field 1}}}}")));
        }
        match as_json(":provider-opts", value)? {
            Json::Object(body) => extra.extend(body),
            _ => {
                return Err(StepError::config(
                    "E0809",
                    format!("`:provider-opts :{name}` takes a map"),
                ));
            }
        }
    }
    let responses = extra.iter().find(|(key, _)| key == "responses");
    if responses.is_some() && !dialect.can(Capability::Responses) {
        return Err(StepError::config(
            "E0809",
            format!("`:{provider}` has no Responses interface to give `:responses` to"),
        )
        .hint("remove them, or set `:family :openai` in its connection"));
    }
    let ours = ["contents", "input", "messages", "stream", "stream_options"];
    let inner = responses.and_then(|(_, options)| options.as_object());
    let keys = extra.iter().map(|(key, _)| key);
    let keys = keys.chain(inner.into_iter().flat_map(|it| it.keys()));
    match keys.map(String::as_str).find(|key| ours.contains(key)) {
        Some(key) => Err(StepError::config(
            "E0809",
            format!("`:provider-opts` cannot replace `{key}`"),
        )),
        None => Ok(extra),
    }
}
