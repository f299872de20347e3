//! The parts of a wait that a person sees before deciding, and those that stay hidden.

use flowstone_lang::value::Value;

use crate::names::name_of;

/// The parts of a wait's details that are shown, in this order.
const PARTS: &[&str] = &["data", "request", "value", "error"];
/// Entries that are left out, whatever they hold: credentials, and references to secrets.
const PRIVATE: &[&str] = &[
    "auth",
    "authorization",
    "connection",
    "connections",
    "cookie",
    "password",
    "proxy-authorization",
    "public-key-ref",
    "set-cookie",
    "webhook",
    "x-api-key",
];
/// Prefix of the names of further private entries.
const PRIVATE_START: &str = "secret";
const MAX_DEPTH: usize = 200;

/// A wait in the form that the deciding person sees.
#[derive(Debug, Clone, Default)]
pub struct Shown {
    pub title: Option<String>,
    pub message: Option<String>,
    /// The name of each part, and its value.
    pub parts: Vec<(&'static str, Value)>,
}

/// Returns what a wait with these details shows. Webhooks, credentials, and names of connections and secrets are left
/// out.
pub fn shown(details: &Value) -> Shown {
    let find = |key: &str| {
        let own = details.get("show").and_then(|show| show.get(key));
        let found = own.or_else(|| details.get(key));
        found.filter(|value| !value.is_nil())
    };
    let text = |key: &str| find(key).and_then(Value::as_str).map(str::to_owned);
    let parts = PARTS.iter().filter_map(|part| {
        let value = public(find(part)?, 0);
        let is_empty = value.as_map().is_some_and(|map| map.is_empty());
        (!is_empty).then_some((*part, value))
    });
    Shown {
        title: text("title"),
        message: text("message"),
        parts: parts.collect(),
    }
}

fn public(value: &Value, depth: usize) -> Value {
    if depth > MAX_DEPTH {
        return Value::Nil;
    }
    let inner = |value: &Value| public(value, depth + 1);
    match value {
        Value::Map(map) => {
            let entries = map.iter().filter(|(key, _)| !is_private(key));
            Value::map(entries.map(|(key, value)| (key.clone(), inner(value))))
        }
        Value::Vector(items) => Value::vector(items.iter().map(inner)),
        Value::Set(items) => Value::set(items.iter().map(inner)),
        Value::List(items) => Value::vector(items.iter().map(inner)),
        other => other.clone(),
    }
}

fn is_private(key: &Value) -> bool {
    let Some(name) = name_of(key) else {
        return false;
    };
    let name = name.to_ascii_lowercase().replace('_', "-");
    PRIVATE.contains(&&*name) || name.starts_with(PRIVATE_START)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec;

    #[test]
    fn credentials_connections_and_secrets_are_left_out() {
        let details = codec::decode(
            "{:title \"ok\" :validation nil
              :show {:message \"Pay?\" :approval {:template \"t\"}
                     :webhook {:auth {:type :bearer :secret-ref :hook}}
                     :data {:amount 3 :items [{:auth \"x\" :n 1}] :Secret_Ref :hook :connection :bank}}
              :request {:url \"https://x.test\" :headers {\"Authorization\" \"Bearer abc\" \"accept\" \"*\"}}}",
        );
        let it = shown(&details.expect("EDN"));
        assert_eq!(it.message.as_deref(), Some("Pay?"));
        let parts: Vec<String> = it
            .parts
            .iter()
            .map(|(name, value)| format!("{name} {}", codec::encode(value).expect("data")))
            .collect();
        assert_eq!(
            parts,
            [
                "data {:amount 3 :items [{:n 1}]}",
                "request {:url \"https://x.test\" :headers {\"accept\" \"*\"}}"
            ]
        );
    }
}
