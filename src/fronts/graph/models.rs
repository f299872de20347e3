//! Chooses the project's connection for a model id of a spec.

use std::collections::BTreeMap;

use flowstone_lang::value::Value;
use flowstone_model::names::name_of;

/// The model connections of a project, and the agent's fallback.
#[derive(Debug, Clone, Default)]
pub struct Models {
    /// The connections by name.
    connections: BTreeMap<String, Connection>,
    /// The agent's `default_model`, then its `connection`.
    pub fallback: Fallback,
}

/// The model and the connection for a model id that no connection knows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Fallback {
    pub default_model: Option<String>,
    pub connection: Option<String>,
    /// The connection is assumed by convention; nobody named it for these models.
    pub is_assumed: bool,
}

#[derive(Debug, Clone, Default)]
struct Connection {
    backend: Option<String>,
    models: Vec<String>,
}

/// A connection, and the model to request from it; without a model, the connection's default.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chosen {
    pub connection: String,
    pub model: Option<String>,
}

impl Models {
    /// Reads the connections of a project's settings that can be used for models.
    pub fn of_settings(settings: &Value, fallback: Fallback) -> Models {
        let entries = settings.get("connections").and_then(Value::as_map);
        let connections = entries.into_iter().flat_map(|map| map.iter());
        let connections = connections.filter_map(|(name, entry)| {
            let text = |key: &str| entry.get(key).and_then(name_of).map(|it| it.to_string());
            let backend = text("backend");
            let is_for_models = backend.as_deref() != Some("mcp")
                && ["backend", "family", "model", "models", "script"]
                    .iter()
                    .any(|key| entry.get(key).is_some());
            let listed = entry.get("models").and_then(flowstone_model::json::items);
            let listed = listed.unwrap_or_default();
            let models = listed.iter().filter_map(name_of).map(|it| it.to_string());
            is_for_models.then(|| {
                let connection = Connection {
                    backend,
                    models: models.chain(text("model")).collect(),
                };
                Some((name_of(name)?.to_string(), connection))
            })?
        });
        Models {
            connections: connections.collect(),
            fallback,
        }
    }

    /// Returns the connection and model for a model id; `None` if no connection fits.
    pub fn choose(&self, id: &str) -> Option<Chosen> {
        let fallback = &self.fallback;
        let by_default = || {
            fallback
                .default_model
                .as_deref()
                .and_then(|id| self.known(id))
        };
        let by_connection = || {
            let name = fallback.connection.as_ref()?;
            self.connections.contains_key(name).then(|| Chosen {
                connection: name.clone(),
                model: None,
            })
        };
        self.known(id).or_else(by_default).or_else(by_connection)
    }

    /// Returns the connection that answers for a model id in place of the model, if that is only assumed.
    pub fn assumed(&self, id: &str) -> Option<&str> {
        let is_assumed = self.fallback.is_assumed && self.known(id).is_none();
        let name = self.fallback.connection.as_deref().filter(|_| is_assumed)?;
        self.connections.contains_key(name).then_some(name)
    }

    /// Returns the connection that an id names, or that lists the id.
    fn known(&self, id: &str) -> Option<Chosen> {
        let chosen = |connection: &str, model: Option<&str>| Chosen {
            connection: connection.to_owned(),
            model: model.map(str::to_owned),
        };
        if self.connections.contains_key(id) {
            return Some(chosen(id, None));
        }
        let parts = id.split_once('/');
        if let Some((provider, model)) = parts
            && self.connections.contains_key(provider)
        {
            return Some(chosen(provider, Some(model)));
        }
        let mut all = self.connections.iter();
        let lists = |(_, it): &(&String, &Connection)| it.models.iter().any(|model| model == id);
        if let Some((name, _)) = all.find(lists) {
            return Some(chosen(name, Some(id)));
        }
        let (provider, model) = parts?;
        let mut all = self.connections.iter();
        let (name, _) = all.find(|(_, it)| it.backend.as_deref() == Some(provider))?;
        Some(chosen(name, Some(model)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn models(fallback: Fallback) -> Models {
        let text = r#"{:connections {:ai {:backend :scripted :models ["anthropic/claude-3.5-haiku"]}
                       :claude {:backend :anthropic}
                       :docs {:backend :mcp :base-url "https://docs.example"}
                       :crm {:base-url "https://crm.example"}}}"#;
        let settings = flowstone_model::codec::decode(text).expect("EDN");
        Models::of_settings(&settings, fallback)
    }

    fn check(fallback: &Fallback, id: &str, expected: Option<(&str, Option<&str>)>) {
        let found = models(fallback.clone()).choose(id);
        let found = found
            .as_ref()
            .map(|it| (it.connection.as_str(), it.model.as_deref()));
        assert_eq!(found, expected, "{id}");
    }

    #[test]
    fn an_id_goes_to_the_connection_that_it_names_or_that_lists_it() {
        let none = Fallback::default();
        check(&none, "ai/small", Some(("ai", Some("small"))));
        check(&none, "ai", Some(("ai", None)));
        check(
            &none,
            "anthropic/claude-3.5-haiku",
            Some(("ai", Some("anthropic/claude-3.5-haiku"))),
        );
        check(
            &none,
            "anthropic/claude-4",
            Some(("claude", Some("claude-4"))),
        );
        check(&none, "openai/gpt-4o", None);
        check(&none, "crm/x", None);
        check(&none, "docs/x", None);
    }

    #[test]
    fn an_unknown_id_goes_to_the_default_model_and_then_to_the_connection() {
        let connection = Some("claude".to_owned());
        let default_model = Some("ai/small".to_owned());
        let both = Fallback {
            default_model,
            connection: connection.clone(),
            is_assumed: false,
        };
        check(&both, "openai/gpt-4o", Some(("ai", Some("small"))));
        let one = Fallback {
            default_model: None,
            connection,
            is_assumed: false,
        };
        check(&one, "openai/gpt-4o", Some(("claude", None)));
    }
}
