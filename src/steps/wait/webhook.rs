//! `:webhook`: the path at which outside callers complete a wait, and their authentication.

use flowstone_flow::auth::{CALLER, types};
use flowstone_flow::step::StepError;

use crate::fields::{Fields, listed};

/// Returns the path of the wait's webhook, if it has one, without a slash at its start.
pub(super) fn path(fields: Fields<'_>, key: &str) -> Result<Option<String>, StepError> {
    let Some(webhook) = fields.map("webhook")? else {
        return Ok(None);
    };
    let webhook = Fields::nested(":webhook", webhook)?;
    webhook.only(&["auth", "path"])?;
    if let Some(auth) = webhook.map("auth")? {
        check(Fields::nested(":webhook :auth", auth)?)?;
    }
    let path = webhook.text("path")?.map(|path| path.trim_matches('/'));
    let is_wrong = |path: &str| {
        path.is_empty()
            || path.contains(['?', '#', ' '])
            || path.split('/').any(|part| part == ".." || part.is_empty())
    };
    if let Some(path) = path.filter(|path| is_wrong(path)) {
        return Err(
            wrong(format!("`:webhook :path` cannot be {path:?}")).hint("as in \"orders/callback\"")
        );
    }
    Ok(Some(
        path.map_or_else(|| format!("events/{key}"), str::to_owned),
    ))
}

fn check(auth: Fields<'_>) -> Result<(), StepError> {
    let known = types(CALLER);
    let kinds: Vec<&str> = known.iter().map(|(kind, _)| *kind).collect();
    let kind = auth.name("type")?;
    let Some((kind, keys)) = known
        .iter()
        .find(|(known, _)| kind.as_deref() == Some(*known))
    else {
        let message = match kind {
            Some(kind) => format!("`:webhook :auth` has no type `:{kind}`"),
            None => "`:webhook :auth` needs `:type`".to_owned(),
        };
        return Err(wrong(message).hint(format!("there are {}", listed(&kinds))));
    };
    auth.only(keys)?;
    let needed: &[&str] = match *kind {
        "ip-allowlist" => &["allow"],
        "signature" => &["public-key-ref", "secret-ref"],
        _ => &["secret-ref"],
    };
    if needed.iter().any(|key| auth.has(key)) {
        return Ok(());
    }
    Err(wrong(format!(
        "`:webhook :auth` of type `:{kind}` needs {}",
        needed
            .iter()
            .map(|key| format!("`:{key}`"))
            .collect::<Vec<_>>()
            .join(" or ")
    )))
}

fn wrong(message: impl Into<String>) -> StepError {
    StepError::config("E0719", message)
}
