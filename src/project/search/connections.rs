//! Connections of the settings as documents: what they are called and where they lead. How they show who they are is
//! left out, with all else that may hold a secret.

use std::collections::HashSet;

use flowstone_lang::value::Value;

use super::cut;
use flowstone_flow::flow::name_of;
use flowstone_model::codec::digest_bytes;
use flowstone_model::json::items;
use flowstone_model::ports::{SearchDoc, SearchTarget, StoreError, Stores};

/// What is taken of a connection.
const TAKEN: &[&str] = &["backend", "family", "kind", "label", "model", "type"];

/// Indexes the connections that have changed, and returns how many.
pub(super) async fn refresh(stores: &Stores, settings: &Value) -> Result<u64, StoreError> {
    let docs = docs(settings);
    let known = stores.search.versions(SearchTarget::Connections).await?;
    let names: HashSet<&str> = docs.iter().map(|doc| &*doc.id).collect();
    let gone: Vec<String> = known
        .iter()
        .map(|(id, _)| id.clone())
        .filter(|id| !names.contains(&**id))
        .collect();
    let is_known = |doc: &SearchDoc| {
        known
            .iter()
            .any(|(id, version)| *id == doc.id && *version == doc.version)
    };
    let changed: Vec<SearchDoc> = docs.iter().filter(|doc| !is_known(doc)).cloned().collect();
    if changed.is_empty() && gone.is_empty() {
        return Ok(0);
    }
    let count = changed.len() as u64;
    stores
        .search
        .put(SearchTarget::Connections, changed, gone)
        .await?;
    Ok(count)
}

fn docs(settings: &Value) -> Vec<SearchDoc> {
    let mut docs: Vec<SearchDoc> = Vec::new();
    let connections = settings.get("connections").and_then(Value::as_map);
    for (name, entry) in connections.iter().flat_map(|map| map.iter()) {
        docs.extend(name_of(name).map(|name| doc(&name, entry)));
    }
    for entry in settings
        .get("llm-providers")
        .and_then(items)
        .unwrap_or_default()
    {
        let name = entry.get("id").and_then(name_of);
        let name = name.filter(|name| docs.iter().all(|doc| *doc.id != **name));
        docs.extend(name.map(|name| doc(&name, &entry)));
    }
    docs
}

fn doc(name: &str, entry: &Value) -> SearchDoc {
    let mut facts = Vec::new();
    for key in TAKEN {
        let text = entry.get(key).and_then(name_of);
        facts.extend(text.map(|text| ((*key).to_owned(), cut(&text, 1_000).to_owned())));
    }
    if let Some(url) = entry.get("base-url").and_then(Value::as_str) {
        facts.push(("base-url".to_owned(), bare(cut(url, 2_000))));
    }
    facts.sort();
    let words: Vec<&str> = facts.iter().map(|(_, text)| text.as_str()).collect();
    let label = facts.iter().find(|(key, _)| key == "label");
    let title = label.map_or(name, |(_, label)| label).to_owned();
    let body = words.join("\n");
    SearchDoc {
        version: digest_bytes(format!("{name}\n{facts:?}").as_bytes()),
        id: name.to_owned(),
        title,
        tags: name.to_owned(),
        body,
        facts,
    }
}

/// Returns an address without what may be secret in it: user, password, query.
fn bare(url: &str) -> String {
    let url = url.split(['?', '#']).next().unwrap_or_default();
    match url.split_once("://") {
        Some((scheme, rest)) => {
            let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
            let host = host.rsplit('@').next().unwrap_or_default();
            format!("{scheme}://{host}{path}")
        }
        None => url.rsplit('@').next().unwrap_or_default().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use flowstone_lang::reader::read_data;

    use super::{bare, docs};

    #[test]
    fn no_secret_is_in_a_document() {
        let settings = r#"{:secrets {:crm {:env "TOPSECRET"}}
            :connections {:crm {:base-url "https://user:TOPSECRET@crm.example.com/v1?key=TOPSECRET"
                                :label "Customers" :type :http-api
                                :headers {"x-key" "TOPSECRET"} :oauth {:client-secret "TOPSECRET"}
                                :auth {:type :bearer :secret-ref :TOPSECRET}}}
            :llm-providers [{:id :local :family :chat-completions-compatible :auth {:secret-ref :TOPSECRET}}]}"#;
        let docs = docs(&read_data(settings).expect("well formed"));
        let ids: Vec<&str> = docs.iter().map(|doc| &*doc.id).collect();
        assert_eq!(ids, ["crm", "local"]);
        assert_eq!(docs[0].title, "Customers");
        assert!(docs[0].body.contains("https://crm.example.com/v1"));
        assert!(!format!("{docs:?}").contains("TOPSECRET"));
    }

    #[test]
    fn addresses_lose_what_may_be_secret() {
        for (url, expected) in [
            ("https://a:b@c.d/e@f?g#h", "https://c.d/e@f"),
            ("http://localhost:8080", "http://localhost:8080"),
            ("u:p@host/x", "host/x"),
            ("", ""),
        ] {
            assert_eq!(bare(url), expected);
        }
    }
}
