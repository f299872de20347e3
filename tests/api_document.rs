//! Holds every answer of the API that a test gets against the API's document.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use jsonschema::Validator;
use serde_json::{Value, json};

use crate::api::Reply;
use crate::tidy::text;

/// The addresses that the document is about.
const API: &str = "/api/v1/";
const PROBLEM: &str = "application/problem+json";

/// The document, in which objects have no members but those that it names.
static DOCUMENT: LazyLock<Value> = LazyLock::new(|| {
    let mut document = document();
    close(&mut document);
    document
});

/// Returns the document as it is kept.
pub fn document() -> Value {
    serde_json::from_str(&text("docs/reference/openapi.json")).expect("the document is JSON")
}

/// Refuses members of objects that are not named.
fn close(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            members.values_mut().for_each(close);
            let is_object = members.get("type") == Some(&json!("object"));
            if is_object && members.contains_key("properties") {
                let closed = members.entry("additionalProperties");
                closed.or_insert(json!(false));
            }
        }
        Value::Array(items) => items.iter_mut().for_each(close),
        _ => {}
    }
}

/// Checks an answer to a request, of which this is the text.
#[track_caller]
pub fn check(request: &str, reply: &Reply) {
    let mut words = request.lines().next().unwrap_or_default().split(' ');
    let (method, address) = (words.next().unwrap_or_default(), words.next());
    let path = address.and_then(|address| address.split('?').next());
    let Some(path) = path.filter(|path| path.starts_with(API)) else {
        return;
    };
    // What comes before any route: the connection ended, or the request is not HTTP.
    if reply.status == 0 || (matches!(reply.status, 400 | 431) && reply.body.is_empty()) {
        return;
    }
    let problem = |what: &str| panic!("{method} {path}: {what}: {reply:?}");
    let is_error = reply.status >= 400;
    if is_of_agents(path) {
        return check_agents((method, path), reply);
    }
    let Some((template, operations)) = operations(path) else {
        assert!(
            is_error,
            "{method} {path} is not in the document: {reply:?}"
        );
        return;
    };
    let verb = match method {
        "HEAD" => "get".to_owned(),
        method => method.to_lowercase(),
    };
    let Some(operation) = operations.get(&verb) else {
        let is_options = method == "OPTIONS" && reply.status == 204;
        assert!(is_error || is_options, "{method} {path}: {reply:?}");
        return;
    };
    let Some(response) = operation["responses"].get(reply.status.to_string()) else {
        return problem("the document does not list the status");
    };
    let response = match response["$ref"].as_str() {
        Some(_) => &DOCUMENT["components"]["responses"]["Error"],
        None => response,
    };
    if method == "HEAD" {
        return;
    }
    check_content(
        &format!("{verb} {template} {}", reply.status),
        response,
        reply,
    );
    if !is_error {
        check_body(&format!("{verb} {template}"), operation, request);
    }
}

fn check_content(place: &str, response: &Value, reply: &Reply) {
    let media = reply.header("content-type").unwrap_or_default();
    let media = media.split(';').next().unwrap_or_default();
    let Some(content) = response.get("content") else {
        assert_eq!(reply.body, "", "{place} has a body: {reply:?}");
        return;
    };
    let Some(content) = content.get(media) else {
        assert!(content.get("*/*").is_some(), "{place}: {media} {reply:?}");
        return;
    };
    if media == "application/json" || media == PROBLEM {
        conform(place, &content["schema"], &reply.json());
    }
}

/// Checks the body of a request that was accepted.
fn check_body(place: &str, operation: &Value, request: &str) {
    let body = request.split_once("\r\n\r\n").map_or("", |(_, body)| body);
    let schema = &operation["requestBody"]["content"]["application/json"]["schema"];
    if let (Ok(body), true) = (serde_json::from_str(body), schema.is_object()) {
        conform(&format!("{place} body"), schema, &body);
    }
}

/// Checks that JSON conforms to a schema of the document.
fn conform(place: &str, schema: &Value, json: &Value) {
    conform_in(&DOCUMENT, place, (schema, json));
}

/// Checks that JSON conforms to a schema of a document. `place` names the schema.
fn conform_in(document: &Value, place: &str, (schema, json): (&Value, &Value)) {
    static VALIDATORS: LazyLock<Mutex<HashMap<String, Arc<Validator>>>> =
        LazyLock::new(Mutex::default);
    let mut validators = VALIDATORS.lock().unwrap_or_else(PoisonError::into_inner);
    let validator = validators.entry(place.to_owned()).or_insert_with(|| {
        let whole = json!({"allOf": [schema], "components": document["components"]});
        let validator = jsonschema::validator_for(&whole);
        Arc::new(validator.unwrap_or_else(|error| panic!("{place}: {error}")))
    });
    let validator = validator.clone();
    drop(validators);
    let errors = validator.iter_errors(json);
    let errors: Vec<String> = errors
        .map(|error| format!("{} at `{}`", error, error.instance_path()))
        .collect();
    assert!(
        errors.is_empty(),
        "{place}: {}\n{json:#}",
        errors.join("\n")
    );
}

/// Returns the template of a path and its operations.
fn operations(path: &str) -> Option<(&'static str, &'static Value)> {
    let paths = DOCUMENT["paths"].as_object().expect("paths");
    let fits = |template: &str| {
        let (mut wanted, mut found) = (template.split('/'), path.split('/'));
        loop {
            match (wanted.next(), found.next()) {
                (None, None) => return true,
                (Some(wanted), Some(found)) if wanted == found || wanted.starts_with('{') => {}
                _ => return false,
            }
        }
    };
    let exact = paths.get_key_value(path);
    let found = exact.or_else(|| paths.iter().find(|(template, _)| fits(template)));
    found.map(|(template, operations)| (template.as_str(), operations))
}

/// The document of the agents API, in which objects have no members but those that it names.
static AGENTS: LazyLock<Value> = LazyLock::new(|| {
    let mut document = agents_document();
    close(&mut document);
    document
});

/// Returns the document of the agents API as it is kept.
pub fn agents_document() -> Value {
    serde_json::from_str(&text("docs/reference/agents-openapi.json")).expect("the document is JSON")
}

/// Nouns whose errors have the envelope of the agents API, although it has no routes for them.
const WITHOUT_ROUTES: &[&str] = &[
    "chats",
    "conversations",
    "files",
    "formations",
    "orchestrations",
    "users",
    "webhooks",
];

/// Tells whether an address belongs to the agents API.
fn is_of_agents(path: &str) -> bool {
    let noun = path
        .trim_start_matches(API)
        .split('/')
        .next()
        .unwrap_or_default();
    let paths = AGENTS["paths"].as_object().expect("paths");
    WITHOUT_ROUTES.contains(&noun)
        || paths
            .keys()
            .any(|known| known.split('/').nth(3) == Some(noun))
}

/// Checks an answer of the agents API: its status, its schema, and the envelope of errors.
#[track_caller]
fn check_agents((method, path): (&str, &str), reply: &Reply) {
    if reply.status >= 400 {
        let error = reply.json()["error"].clone();
        assert!(
            error["code"].is_string() && error["message"].is_string(),
            "{method} {path}: {reply:?}"
        );
        return;
    }
    let paths = AGENTS["paths"].as_object().expect("paths");
    let fits = |template: &str| {
        let (known, given) = (template.split('/'), path.split('/'));
        known.clone().count() == given.clone().count()
            && known
                .zip(given)
                .all(|(known, given)| known.starts_with('{') || known == given)
    };
    let mut found: Vec<&String> = paths.keys().filter(|template| fits(template)).collect();
    found.sort_by_key(|template| template.matches('{').count());
    let template = found.first();
    let template =
        template.unwrap_or_else(|| panic!("{method} {path} is not in the document: {reply:?}"));
    let verb = method.to_lowercase();
    let response = &paths[*template][&verb]["responses"][reply.status.to_string()];
    assert!(
        response.is_object(),
        "{method} {path}: the document does not list the status: {reply:?}"
    );
    let media = reply.header("content-type").unwrap_or_default();
    let media = media.split(';').next().unwrap_or_default();
    let content = &response["content"][media];
    assert!(
        reply.status == 204 || content.is_object(),
        "{method} {path}: the document does not list `{media}`: {reply:?}"
    );
    if media == "application/json" {
        let place = format!("agents {verb} {template} {}", reply.status);
        conform_in(&AGENTS, &place, (&content["schema"], &reply.json()));
    }
}
