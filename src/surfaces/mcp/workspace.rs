//! The tools of the workspace: each is one route of the API, or a page of the documentation.
//!
//! The list is data. A tool is listed for tokens with its scope; tools that write are not listed for tokens that are
//! limited to some flows.

mod operations;

use axum::http::Method;
use flowstone_engine::Direct;
use flowstone_engine::json::{from_json, to_json};
use flowstone_engine::registry::MAIN_FILE;
use flowstone_engine::token::Scope;
use flowstone_flow::flow::program_text;
use flowstone_flow::mcp_interfaces::WORKSPACE;
use flowstone_flow::step::StepError;
use flowstone_lang::value::Value;
use flowstone_project::workspace;
use serde_json::{Map, Value as Json, json};

use super::peer::Request;
use super::protocol::RpcError;
use super::{api, content};
use crate::hints;
use crate::http::{Caller, EngineContext, Problem};
use operations::OPERATIONS;

/// A tool of the workspace.
#[derive(Debug)]
pub(super) struct Operation {
    /// The name without the common prefix.
    name: &'static str,
    doc: &'static str,
    scope: Scope,
    call: Call,
    params: &'static [Param],
}

/// The action of a tool.
#[derive(Debug, Clone, Copy)]
enum Call {
    /// Reads a route. Arguments that are not in the path become its query.
    Get(&'static str),
    /// Sends a request with a body.
    Post(&'static str),
    /// Deletes something. All arguments are in the path or the query.
    Delete(&'static str),
    /// Reads the documentation: an operation of `:workspace`.
    Docs(&'static str),
    /// Commits the text of a flow to the registry.
    Push,
    /// Performs an operation of `:workspace` that changes something.
    Step(&'static str),
    /// Returns the text of a flow.
    Source,
}

/// An argument of a tool.
#[derive(Debug, Clone, Copy)]
struct Param {
    name: &'static str,
    kind: &'static str,
    doc: &'static str,
    is_required: bool,
}

impl Operation {
    fn is_for(&self, caller: &Caller) -> bool {
        let is_write = self.scope == Scope::Edit;
        caller.token.has(self.scope) && !(is_write && caller.token.is_limited_to_flows())
    }

    fn reads(&self) -> bool {
        self.scope == Scope::Read || self.name == "flows_check"
    }

    fn schema(&self) -> Json {
        let properties: Map<String, Json> = self
            .params
            .iter()
            .map(|param| {
                let schema = json!({"type": param.kind, "description": param.doc});
                (param.name.to_owned(), schema)
            })
            .collect();
        let required: Vec<&str> = self
            .params
            .iter()
            .filter(|param| param.is_required)
            .map(|param| param.name)
            .collect();
        let mut schema = json!({
            "type": "object", "properties": properties, "additionalProperties": false,
        });
        if !required.is_empty() {
            schema["required"] = json!(required);
        }
        schema
    }
}

/// Returns the tools that a caller may use, in the form of the protocol.
pub(super) fn list(caller: &Caller) -> Vec<Json> {
    let all = OPERATIONS
        .iter()
        .filter(|operation| operation.is_for(caller));
    all.map(|operation| {
        json!({
            "name": format!("{WORKSPACE}{}", operation.name),
            "description": operation.doc,
            "inputSchema": operation.schema(),
            "annotations": {"readOnlyHint": operation.reads(), "openWorldHint": false},
        })
    })
    .collect()
}

/// Finds a tool that a caller may use.
pub(super) fn find(caller: &Caller, name: &str) -> Option<&'static Operation> {
    let name = name.strip_prefix(WORKSPACE)?;
    let mut all = OPERATIONS.iter();
    all.find(|operation| operation.name == name && operation.is_for(caller))
}

/// Calls a tool. Invalid arguments are reported in the tool's result.
///
/// # Errors
/// When the server is too busy, or is stopping.
pub(super) async fn call(
    rq: &Request,
    operation: &Operation,
    arguments: &Map<String, Json>,
) -> Result<Json, RpcError> {
    if let Err(message) = check(operation, arguments) {
        return Ok(content::failed(&message, json!({})));
    }
    match operation.call {
        Call::Docs(op) => Ok(documentation(op, arguments)),
        Call::Push => push(rq, arguments).await,
        Call::Source => source(rq, arguments).await,
        Call::Step(op) => Ok(performed(rq, op, arguments).await),
        Call::Get(path) => {
            let path = with_query(path, arguments);
            answered(&api::call(rq, Method::GET, &path, None).await?)
        }
        Call::Delete(path) => {
            let path = with_query(path, arguments);
            answered(&api::call(rq, Method::DELETE, &path, None).await?)
        }
        Call::Post(path) => {
            let (path, rest) = filled(path, arguments);
            let answer = api::call(rq, Method::POST, &path, Some(&Json::Object(rest))).await?;
            answered(&answer)
        }
    }
}

/// Returns an address with arguments: those that are not in its path become its query.
fn with_query(path: &str, arguments: &Map<String, Json>) -> String {
    let (path, rest) = filled(path, arguments);
    let pairs = rest.iter().map(|(name, value)| {
        let value = content::as_text(value);
        format!("{}={}", api::escaped(name), api::escaped(&value))
    });
    let query: Vec<String> = pairs.collect();
    match query.is_empty() {
        true => path,
        false => format!("{path}?{}", query.join("&")),
    }
}

/// Checks the names and types of arguments.
fn check(operation: &Operation, arguments: &Map<String, Json>) -> Result<(), String> {
    let names = || operation.params.iter().map(|param| param.name);
    if let Some(unknown) = arguments
        .keys()
        .find(|name| !names().any(|known| known == *name))
    {
        let all: Vec<&str> = names().collect();
        let hint = match all.is_empty() {
            true => "it takes no arguments".to_owned(),
            false => format!("it takes: {}", all.join(", ")),
        };
        return Err(format!(
            "E1045: there is no argument `{unknown}`\nhint: {hint}"
        ));
    }
    for param in operation.params {
        let given = arguments.get(param.name).filter(|given| !given.is_null());
        let Some(given) = given else {
            if param.is_required {
                return Err(format!("E1016: the argument `{}` is missing", param.name));
            }
            continue;
        };
        let fits = match param.kind {
            "string" => given.as_str().is_some_and(|text| !text.is_empty()),
            "integer" => given.is_i64() || given.is_u64(),
            "number" => given.is_number(),
            "boolean" => given.is_boolean(),
            "array" => given.is_array(),
            // An answer may be any value.
            _ => given.is_object() || param.name == "value",
        };
        if !fits {
            let (name, kind) = (param.name, param.kind);
            return Err(format!(
                "E1016: the argument `{name}` must be of type {kind}"
            ));
        }
    }
    Ok(())
}

/// Inserts arguments into a path, and returns the others.
fn filled(path: &str, arguments: &Map<String, Json>) -> (String, Map<String, Json>) {
    let mut path = path.to_owned();
    let mut rest = Map::new();
    for (name, value) in arguments.iter().filter(|(_, value)| !value.is_null()) {
        let place = format!("{{{name}}}");
        match path.contains(&place) {
            true => path = path.replace(&place, &api::escaped(&content::as_text(value))),
            false => drop(rest.insert(name.clone(), value.clone())),
        }
    }
    (path, rest)
}

/// Names what a text of the API says to do by the tools that do it.
fn in_tools(text: &str) -> String {
    let mut names: Vec<(String, String)> = OPERATIONS
        .iter()
        .filter_map(|operation| {
            let (verb, path) = match operation.call {
                Call::Get(path) => ("GET", path),
                Call::Post(path) => ("POST", path),
                Call::Delete(path) => ("DELETE", path),
                Call::Docs(_) | Call::Push | Call::Step(_) | Call::Source => return None,
            };
            let parts = path.split('/').map(|part| match part.starts_with('{') {
                true => "*",
                false => part,
            });
            let path = parts.collect::<Vec<_>>().join("/");
            let tool = format!("`{WORKSPACE}{}`", operation.name);
            Some((format!("`{verb} {path}`"), tool))
        })
        .collect();
    // A star also takes the parts below it, so the addresses with more of them come first.
    names.sort_by_key(|(address, _)| std::cmp::Reverse(address.matches('/').count()));
    hints::for_names(
        text,
        names.iter().map(|(address, tool)| (&**address, &**tool)),
    )
}

/// Returns an answer of the API as the result of a tool.
fn answered(answer: &api::Answer) -> Result<Json, RpcError> {
    if let Some(problem) = answer.problem().map(|text| in_tools(&text)) {
        return Ok(content::failed(&problem, json!({})));
    }
    if answer.bytes.is_empty() {
        return Ok(of_json(&json!({"done": true})));
    }
    if !answer.media.starts_with("application/json") {
        return Ok(match std::str::from_utf8(&answer.bytes) {
            Ok(text) => json!({"content": [content::text(text)], "isError": false}),
            Err(_) => {
                let about = format!("{} bytes of type {}", answer.bytes.len(), answer.media);
                json!({"content": [content::text(about)], "isError": false})
            }
        });
    }
    Ok(of_json(&answer.json()))
}

fn of_json(found: &Json) -> Json {
    let structured = match found {
        Json::Object(_) => found.clone(),
        other => json!({"result": other}),
    };
    json!({
        "content": [content::text(content::as_text(found))],
        "structuredContent": structured,
        "isError": false,
    })
}

fn documentation(op: &str, arguments: &Map<String, Json>) -> Json {
    let found = workspace::documentation(op, &from_json(&Json::Object(arguments.clone())));
    match found {
        Ok(found) => of_json(&to_json(&found).unwrap_or(Json::Null)),
        Err(error) => content::failed(&error_text(&error), json!({})),
    }
}

/// Returns an error of a step as one text.
fn error_text(error: &StepError) -> String {
    let hint = error.hints.first().map(|hint| format!("\nhint: {hint}"));
    let hint = hint.unwrap_or_default();
    format!("{}: {}{hint}", error.code, error.message)
}

/// Performs an operation of `:workspace` for the caller, whose scope allows it.
async fn performed(rq: &Request, op: &'static str, arguments: &Map<String, Json>) -> Json {
    let arguments = Json::Object(arguments.clone());
    let done = rq.server.ask(async move |cx: &EngineContext| {
        let entries = [
            ("op", Value::keyword(op)),
            ("mutations", Value::keyword("write")),
            ("args", from_json(&arguments)),
        ];
        let entries = entries.map(|(key, value)| (Value::keyword(key), value));
        let direct = Direct {
            kind: "workspace",
            config: Value::map(entries),
            folder: None,
        };
        // Values stay on their thread.
        let done = cx.engine.perform(direct).await;
        let done = done.map(|done| to_json(&done).unwrap_or(Json::Null));
        Ok::<_, Problem>(done.map_err(|error| error_text(&error)))
    });
    match done.await {
        Ok(Ok(done)) => of_json(&done),
        Ok(Err(message)) => content::failed(&message, json!({})),
        Err(problem) => {
            content::failed(&format!("{}: {}", problem.code, problem.detail), json!({}))
        }
    }
}

/// Commits the text of a flow as its newest version, as `POST /api/v1/registry/{slug}/versions` does. Files that the text
/// includes are those of the version that it was made from.
async fn push(rq: &Request, arguments: &Map<String, Json>) -> Result<Json, RpcError> {
    let text = arguments.get("flow_literal").and_then(Json::as_str);
    let text = text.unwrap_or_default().to_owned();
    let read = text.clone();
    let slug = rq.server.ask(async move |cx: &EngineContext| {
        let session = cx.engine.session();
        let checked = cx.engine.check_text(&session, &read);
        let wrong = checked.findings.first();
        let wrong = wrong.map_or("E1405: this is not a flow".to_owned(), |finding| {
            format!("{}: {}", finding.code, finding.message)
        });
        let slug = checked.loaded.map(|loaded| loaded.flow.slug.to_string());
        Ok::<_, Problem>(slug.ok_or(wrong))
    });
    let slug = match slug.await {
        Ok(Ok(slug)) => slug,
        Ok(Err(message)) => return Ok(content::failed(&message, json!({}))),
        Err(problem) => {
            let message = format!("{}: {}", problem.code, problem.detail);
            return Ok(content::failed(&message, json!({})));
        }
    };
    let versions = format!("/api/v1/registry/{}/versions", api::escaped(&slug));
    let mut body = Map::new();
    for name in ["base", "message"] {
        if let Some(given) = arguments.get(name) {
            body.insert(name.to_owned(), given.clone());
        }
    }
    let mut files = Map::new();
    let base = arguments.get("base").and_then(Json::as_i64);
    if let Some(base) = base.filter(|base| *base > 0) {
        let before = api::call(rq, Method::GET, &format!("{versions}/{base}"), None).await?;
        if let Json::Object(before) = &before.json()["files"] {
            files.clone_from(before);
        }
    }
    files.insert(MAIN_FILE.to_owned(), json!(text));
    body.insert("files".to_owned(), Json::Object(files));
    let body = Json::Object(body);
    answered(&api::call(rq, Method::POST, &versions, Some(&body)).await?)
}

/// Returns the text of a flow as it is served, or that of another version.
async fn source(rq: &Request, arguments: &Map<String, Json>) -> Result<Json, RpcError> {
    let slug = arguments.get("slug").and_then(Json::as_str);
    let slug = slug.unwrap_or_default().to_owned();
    let source = arguments.get("source").and_then(Json::as_str);
    let is_served = matches!(source, None | Some("active")) && !arguments.contains_key("version");
    // A draft may belong to a flow that is not served, so a token that is limited to flows has no access to it.
    if !is_served && !rq.caller.token.is_limited_to_flows() {
        return Ok(performed(rq, "flows/pull", arguments).await);
    }
    let caller = rq.caller.clone();
    let found = rq.server.ask(async move |cx: &EngineContext| {
        let flow = cx.catalog.flow(&cx.engine, &slug);
        let flow =
            flow.filter(|flow| is_served && caller.token.reaches_flow(&flow.slug, &flow.labels));
        let flow = flow.ok_or_else(|| Problem::not_found(format!("there is no flow `{slug}`")))?;
        // A released version has no file.
        let text = match flow.loaded.version {
            Some(_) => Ok(program_text(&flow.loaded.program).unwrap_or_default()),
            None => std::fs::read_to_string(&flow.path),
        };
        let text = text.map_err(|error| {
            Problem::not_found(format!("{} cannot be read: {error}", flow.name))
        })?;
        let program = flow.loaded.program.hash.clone();
        Ok::<_, Problem>(json!({
            "slug": flow.slug, "file": flow.name, "version": program, "source": text,
            "number": flow.loaded.version.map(|version| version.number),
        }))
    });
    Ok(match found.await {
        Ok(found) => of_json(&found),
        Err(problem) => {
            content::failed(&format!("{}: {}", problem.code, problem.detail), json!({}))
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_are_sorted_and_name_what_their_paths_have() {
        let names: Vec<&str> = OPERATIONS.iter().map(|operation| operation.name).collect();
        let mut sorted = names.clone();
        sorted.sort_unstable();
        assert_eq!(names, sorted);
        for operation in OPERATIONS {
            let (Call::Delete(path) | Call::Get(path) | Call::Post(path)) = operation.call else {
                continue;
            };
            let parts = path.split('/').filter_map(|part| part.strip_prefix('{'));
            for part in parts.map(|part| part.trim_end_matches('}')) {
                let param = operation.params.iter().find(|param| param.name == part);
                assert!(param.is_some_and(|it| it.is_required), "{path} {part}");
            }
        }
    }

    #[test]
    fn arguments_are_put_into_paths() {
        let arguments = json!({"id": "a/b?", "full": true});
        let arguments = arguments.as_object().expect("an object");
        let (path, rest) = filled("/api/v1/runs/{id}", arguments);
        assert_eq!(path, "/api/v1/runs/a%2Fb%3F");
        assert_eq!(Json::Object(rest), json!({"full": true}));
    }
}
