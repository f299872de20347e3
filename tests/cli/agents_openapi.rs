//! The document of the agents API: it lists every route with its methods, its parameters and the schemas of its answers.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::agents_api::{Agents, error};
use crate::api_document::agents_document;
use crate::tidy::{files, text};

const METHODS: &[&str] = &["delete", "get", "patch", "post", "put"];

/// Returns the operations of the document: path, method and operation.
fn operations(document: &Value) -> Vec<(String, String, Value)> {
    let mut found = Vec::new();
    for (path, operations) in document["paths"].as_object().expect("paths") {
        for method in METHODS {
            let operation = &operations[*method];
            if operation.is_object() {
                found.push((path.clone(), (*method).to_owned(), operation.clone()));
            }
        }
    }
    found
}

#[test]
fn each_operation_has_its_parameters_and_the_schemas_of_its_answers() {
    let document = agents_document();
    let mut ids = BTreeSet::new();
    for (path, method, operation) in operations(&document) {
        let place = format!("{method} {path}");
        let id = operation["operationId"].as_str().expect("an id");
        assert!(ids.insert(id.to_owned()), "{place}: `{id}` is there twice");
        let in_path = path.matches('{').count();
        let own = document["paths"][&path]["parameters"].as_array();
        assert_eq!(own.map_or(0, Vec::len), in_path, "{place}");
        let responses = operation["responses"].as_object().expect("responses");
        let schema = |status: &str| &responses[status]["content"]["application/json"]["schema"];
        assert_eq!(
            schema("default")["$ref"],
            "#/components/schemas/Error",
            "{place}"
        );
        let good: Vec<&String> = responses.keys().filter(|it| it.starts_with('2')).collect();
        assert!(!good.is_empty(), "{place}");
        for status in good.iter().filter(|it| **it != "204") {
            let schema = schema(status);
            assert!(
                schema.as_object().is_some_and(|it| !it.is_empty()),
                "{place} {status}"
            );
        }
        assert_eq!(method == "delete", good == ["204"], "{place}");
        if method == "put" || method == "patch" {
            assert!(operation["requestBody"].is_object(), "{place}");
        }
    }
    references(&document, &document);
}

/// Checks that each reference has its schema.
fn references(document: &Value, part: &Value) {
    match part {
        Value::Object(members) => {
            if let Some(target) = members.get("$ref").and_then(Value::as_str) {
                let pointer = target.trim_start_matches('#');
                assert!(document.pointer(pointer).is_some(), "{target}");
            }
            members.values().for_each(|it| references(document, it));
        }
        Value::Array(items) => items.iter().for_each(|it| references(document, it)),
        _ => {}
    }
}

#[test]
fn the_methods_of_each_path_are_those_of_the_document() {
    let agents = Agents::serve();
    let document = agents_document();
    let listed: BTreeSet<(String, String)> = operations(&document)
        .into_iter()
        .map(|(path, method, _)| (path, method))
        .collect();
    for path in document["paths"].as_object().expect("paths").keys() {
        let address: String = path
            .split('/')
            .map(|part| {
                if part.starts_with('{') {
                    "none_1"
                } else {
                    part
                }
            })
            .collect::<Vec<_>>()
            .join("/");
        let address = address.trim_start_matches("/api/v1").to_owned();
        for method in METHODS {
            let is_listed = listed.contains(&(path.clone(), (*method).to_owned()));
            let reply = agents.send(&method.to_uppercase(), &address, &Value::Null);
            assert_eq!(
                reply.status != 405,
                is_listed,
                "{method} {path}: {}",
                reply.body
            );
        }
    }
}

#[test]
fn each_address_in_the_code_of_the_routes_is_in_the_document() {
    let document = agents_document();
    let paths = document["paths"].as_object().expect("paths");
    let plain = |path: &str| -> Vec<String> {
        let parts = path.split('/');
        parts
            .map(|it| {
                if it.starts_with('{') {
                    "{}".to_owned()
                } else {
                    it.to_owned()
                }
            })
            .collect()
    };
    let known: Vec<Vec<String>> = paths.keys().map(|path| plain(path)).collect();
    let mut count = 0;
    for file in files("src/surfaces/http/agents", &["rs"]) {
        let code = text(&file);
        for literal in code.split('"').filter(|it| it.starts_with("/api/v1/")) {
            let literal = plain(literal.trim_end_matches('/'));
            count += 1;
            assert!(
                known.iter().any(|path| path.starts_with(&literal)),
                "{}: {literal:?} is not in the document",
                file.display()
            );
        }
    }
    assert!(count > 30, "{count} addresses");
}

#[test]
fn parameters_of_the_document_are_accepted_and_others_refused() {
    let agents = Agents::serve();
    let document = agents.get("/agents/openapi.json").json();
    let agent = agents.agent("say hi", &[], json!({}));
    let memory = agents.made("/memories", &json!({"name": "facts"}));
    let session = agents.made(&format!("/agents/{agent}/sessions"), &json!({}));
    for (path, method, operation) in operations(&document) {
        let Some(parameters) = operation["parameters"].as_array() else {
            continue;
        };
        if method != "get" {
            continue;
        }
        let address = path
            .trim_start_matches("/api/v1")
            .replace("{agent_id}", &agent)
            .replace("{memory_id}", &memory)
            .replace("{session_id}", &session);
        for parameter in parameters {
            let name = parameter["name"].as_str().expect("a name");
            let schema = &parameter["schema"];
            let value = match schema["type"].as_str() {
                Some("integer") => "1",
                _ => schema["enum"][0].as_str().unwrap_or("x"),
            };
            let reply = agents.get(&format!("{address}?{name}={value}"));
            assert_eq!(reply.status, 200, "{path} {name}: {reply:?}");
        }
        let other = agents.get(&format!("{address}?colour=1"));
        assert_eq!(error(&other), "400 VALIDATION_FAILED", "{path}");
    }
}

#[test]
fn a_key_reads_the_document_whatever_its_policies_are() {
    let agents = Agents::serve();
    let nothing = json!({"statement": [{"effect": "Deny", "action": ["*"]}]});
    let policy = agents.made("/policies", &json!({"name": "none", "document": nothing}));
    let key = agents.post("/api-keys", &json!({"name": "k", "policy_ids": [policy]}));
    let key = key.json()["key"].as_str().expect("a key").to_owned();
    let path = "/api/v1/agents/openapi.json";
    let shown = agents.api.get_as(&key, path);
    assert_eq!((shown.status, shown.json()), (200, agents_document()));
    let denied = agents.api.get_as(&key, "/api/v1/agents");
    assert_eq!(error(&denied), "403 FORBIDDEN");
    assert_eq!(
        error(&agents.api.request(&format!("GET {path}"), &[], "")),
        "401 UNAUTHORIZED"
    );
}
