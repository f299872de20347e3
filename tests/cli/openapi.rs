//! The API's document: it is served, its operations are the routes, and their scopes are needed.

use serde_json::{Value, json};

use crate::api::Api;
use crate::api_document::document;
use crate::program::Scratch;
use crate::tidy::{files, text};

/// Returns the method, the path and the description of each operation.
fn operations() -> Vec<(String, String, Value)> {
    let document = document();
    let paths = document["paths"].as_object().expect("paths").clone();
    let operations = paths.into_iter().flat_map(|(path, operations)| {
        let operations = operations.as_object().expect("operations").clone();
        let named = operations.into_iter();
        named.map(move |(verb, operation)| (verb.to_uppercase(), path.clone(), operation))
    });
    operations.collect()
}

/// Returns an address with a name in each place that wants one.
fn address(path: &str) -> String {
    let parts = path.split('/').map(|part| match part.starts_with('{') {
        true => "x",
        false => part,
    });
    parts.collect::<Vec<_>>().join("/")
}

#[test]
fn the_document_is_served_as_it_is_kept() {
    let scratch = Scratch::new();
    let api = Api::serve(&scratch);
    let served = api.get("/api/v1/openapi.json");
    assert_eq!(served.status, 200, "{served:?}");
    assert_eq!(served.json(), document());
    let worker = ["tokens", "create", "--name", "w", "--scope", "work"];
    let worker = scratch.run(&worker).ok();
    let worker = worker.trim_end();
    assert_eq!(api.get_as(worker, "/api/v1/openapi.json").status, 200);
    let open = api.request("GET /api/v1/openapi.json", &[], "");
    assert_eq!(open.problem(), "401 E1010");
}

#[test]
fn each_operation_is_a_route_that_needs_its_scope() {
    let scratch = Scratch::new();
    let api = Api::serve(&scratch);
    let token = |scope: &str| {
        let token = scratch.run(&["tokens", "create", "--name", "t", "--scope", scope]);
        token.ok().trim_end().to_owned()
    };
    let (worker, reader) = (token("work"), token("read"));
    let mut seen = 0;
    for (method, path, operation) in operations() {
        let what = format!("{method} {}", address(&path));
        let send = |headers: &[&str]| {
            let body = if method == "POST" { "{}" } else { "" };
            let json = "content-type: application/json";
            api.request(&what, &[&[json], headers].concat(), body)
        };
        assert_eq!(send(&[]).problem(), "401 E1010", "{what}");
        let Some(scope) = operation["x-scope"].as_str() else {
            continue;
        };
        let other = if scope == "work" { &reader } else { &worker };
        let refused = send(&[&format!("authorization: Bearer {other}")]);
        assert_eq!(refused.problem(), "403 E1011", "{what}");
        assert_eq!(refused.json()["required"], json!(scope), "{what}");
        seen += 1;
    }
    assert!(seen > 30, "{seen}");
}

#[test]
fn each_route_of_the_api_is_in_the_document() {
    let mut problems = Vec::new();
    for file in files("src/surfaces/http", &[".rs"]) {
        let code = text(&file);
        // The agents API has a document of its own.
        if file.starts_with("src/surfaces/http/agents") {
            problems.extend(missing_routes_of_agents(&code));
            continue;
        }
        let lines = code.lines().filter(|line| line.contains(".route("));
        for line in lines.filter(|line| line.contains("\"/api/v1")) {
            problems.push(format!(
                "{}: declare it as an operation: {}",
                file.display(),
                line.trim()
            ));
        }
    }
    assert!(problems.is_empty(), "\n{}\n", problems.join("\n"));
    let mut ids: Vec<_> = operations()
        .into_iter()
        .map(|(_, _, operation)| operation["operationId"].to_string())
        .collect();
    let count = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), count, "two operations have one id");
}

/// Returns the addresses of a file of the agents API that the API's own document lacks.
fn missing_routes_of_agents(code: &str) -> Vec<String> {
    let document = text("docs/reference/agents-openapi.json");
    let document: Value = serde_json::from_str(&document).expect("the document is JSON");
    let shape = |path: &str| {
        let parts = path
            .split('/')
            .map(|part| if part.starts_with('{') { "{}" } else { part });
        parts.collect::<Vec<_>>().join("/")
    };
    let paths = document["paths"].as_object().expect("paths");
    let known: Vec<String> = paths.keys().map(|path| shape(path)).collect();
    let routes = code.split("\"/api/v1/").skip(1);
    let routes =
        routes.filter_map(|rest| rest.split_once('"').map(|it| format!("/api/v1/{}", it.0)));
    routes
        .filter(|route| !route.ends_with("/") && !route.ends_with(".json"))
        .filter(|route| !known.contains(&shape(route)))
        .map(|route| format!("{route} is not in docs/reference/agents-openapi.json"))
        .collect()
}
