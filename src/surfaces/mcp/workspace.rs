//! The tools of the workspace: each is one route of the API, or a page of the documentation.
//!
//! The list is data. A tool is shown to a token that has its scope; those that write are not shown to a token that is
//! limited to some flows.

use axum::http::Method;
use flowstone_engine::json::from_json;
use flowstone_engine::token::Scope;
use flowstone_flow::mcp_interfaces::WORKSPACE;
use flowstone_project::workspace;
use serde_json::{Map, Value as Json, json};

use super::peer::Request;
use super::protocol::RpcError;
use super::{api, content};
use crate::http::{Caller, Desk, Problem};

/// A tool of the workspace.
#[derive(Debug)]
pub(super) struct Operation {
    /// Without what all names begin with.
    name: &'static str,
    doc: &'static str,
    scope: Scope,
    call: Call,
    params: &'static [Param],
}

/// What a tool does.
#[derive(Debug, Clone, Copy)]
enum Call {
    /// Reads a route. Arguments that the path does not have are its query.
    Get(&'static str),
    /// Sends a request with a body.
    Post(&'static str),
    /// Looks at the documentation: an operation of `:workspace`.
    Docs(&'static str),
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

const fn text(name: &'static str, doc: &'static str) -> Param {
    Param {
        name,
        kind: "string",
        doc,
        is_required: false,
    }
}

const fn typed(name: &'static str, kind: &'static str, doc: &'static str) -> Param {
    Param {
        name,
        kind,
        doc,
        is_required: false,
    }
}

impl Param {
    const fn needed(self) -> Param {
        Param {
            is_required: true,
            ..self
        }
    }
}

const CURSOR: Param = text("cursor", "`next` of the page before.");
const LIMIT: Param = typed("limit", "integer", "Maximum number of items on a page.");
const RUN: Param = text("id", "The id of the run.").needed();
const SLUG: Param = text("slug", "The slug of the flow.").needed();
const WAIT: Param = text("id", "The id of the wait.").needed();
const DIGEST: Param = text(
    "digest",
    "The digest that the wait shows: refused if it has changed.",
);

/// All tools, sorted.
const OPERATIONS: &[Operation] = &[
    Operation {
        name: "connections_list",
        doc: "Lists the connections of the project by name and type, without secrets.",
        scope: Scope::Read,
        call: Call::Get("/api/v1/connections"),
        params: &[],
    },
    Operation {
        name: "docs_find",
        doc: "Finds pages of Flowstone's documentation by words.",
        scope: Scope::Read,
        call: Call::Docs("docs/find"),
        params: &[text("query", "What is looked for.").needed(), LIMIT],
    },
    Operation {
        name: "docs_show",
        doc: "Shows a page of Flowstone's documentation, or one of its sections.",
        scope: Scope::Read,
        call: Call::Docs("docs/show"),
        params: &[
            text("page", "The page, such as `guide/steps` or `errors/E0420`.").needed(),
            text("section", "A heading of the page."),
        ],
    },
    Operation {
        name: "flows_check",
        doc: "Checks a flow as it is in its file, or another text for it. Nothing is run or stored.",
        scope: Scope::Edit,
        call: Call::Post("/api/v1/flows/{slug}/check"),
        params: &[
            SLUG,
            text("source", "The text to check instead of the file."),
        ],
    },
    Operation {
        name: "flows_list",
        doc: "Lists the flows of the project.",
        scope: Scope::Read,
        call: Call::Get("/api/v1/flows"),
        params: &[LIMIT, CURSOR],
    },
    Operation {
        name: "flows_pull",
        doc: "Returns the text of a flow.",
        scope: Scope::Read,
        call: Call::Source,
        params: &[SLUG],
    },
    Operation {
        name: "flows_run",
        doc: "Starts a run of a flow. With `wait`, returns it when it is over, or as it is after that time.",
        scope: Scope::Run,
        call: Call::Post("/api/v1/flows/{slug}/runs"),
        params: &[
            SLUG,
            typed("input", "object", "The input of the run."),
            text("invocation", "Which of the flow's invocations is called."),
            text(
                "id",
                "A name of your own: the same one starts one run only.",
            ),
            text("wait", "How long to wait for the end, such as `30s`."),
        ],
    },
    Operation {
        name: "flows_show",
        doc: "Shows what a flow takes and how it is started.",
        scope: Scope::Read,
        call: Call::Get("/api/v1/flows/{slug}"),
        params: &[SLUG],
    },
    Operation {
        name: "flows_versions",
        doc: "Lists the versions of a flow: the one that is served, and those of its runs.",
        scope: Scope::Read,
        call: Call::Get("/api/v1/flows/{slug}/versions"),
        params: &[SLUG, LIMIT, CURSOR],
    },
    Operation {
        name: "resources_list",
        doc: "Lists what is stored in the project.",
        scope: Scope::Read,
        call: Call::Get("/api/v1/resources"),
        params: &[
            text("types", "Types of resources, separated by commas."),
            text("prefix", "The beginning of names."),
            text("run", "The run that stored them."),
            LIMIT,
            CURSOR,
        ],
    },
    Operation {
        name: "resources_read",
        doc: "Returns the contents of something stored.",
        scope: Scope::Read,
        call: Call::Get("/api/v1/resources/content"),
        params: &[text("uri", "Its name, `res://...`.").needed()],
    },
    Operation {
        name: "runs_cancel",
        doc: "Cancels a run: its cleanup is executed. With `force`, it ends at once.",
        scope: Scope::Run,
        call: Call::Post("/api/v1/runs/{id}/cancel"),
        params: &[
            RUN,
            text("reason", "Why."),
            typed("force", "boolean", "Whether it ends without cleanup."),
        ],
    },
    Operation {
        name: "runs_events",
        doc: "Lists the journal of a run: what its steps requested and returned.",
        scope: Scope::Read,
        call: Call::Get("/api/v1/runs/{id}/journal"),
        params: &[
            RUN,
            typed("after", "integer", "`next` of the page before."),
            LIMIT,
        ],
    },
    Operation {
        name: "runs_list",
        doc: "Lists runs, newest first.",
        scope: Scope::Read,
        call: Call::Get("/api/v1/runs"),
        params: &[
            text("flow", "The slug of a flow."),
            text(
                "status",
                "Statuses, separated by commas, such as `running,waiting`.",
            ),
            text("since", "An instant, or how long ago, such as `2h`."),
            text("until", "An instant, or how long ago."),
            text("key", "The concurrency key."),
            text("text", "Words of the input, the result or the error."),
            LIMIT,
            CURSOR,
        ],
    },
    Operation {
        name: "runs_resume",
        doc: "Releases a run that is on hold or in quarantine.",
        scope: Scope::Run,
        call: Call::Post("/api/v1/runs/{id}/resume"),
        params: &[RUN],
    },
    Operation {
        name: "runs_show",
        doc: "Shows a run. With `full`, also its steps and waits; with `step`, one of its steps.",
        scope: Scope::Read,
        call: Call::Get("/api/v1/runs/{id}"),
        params: &[
            RUN,
            typed("full", "boolean", "Whether its steps are shown."),
            text("step", "The path of a step."),
        ],
    },
    Operation {
        name: "schedules_list",
        doc: "Lists the schedules of the project and when they are due.",
        scope: Scope::Read,
        call: Call::Get("/api/v1/schedules"),
        params: &[],
    },
    Operation {
        name: "search",
        doc: "Searches resources, flows, runs and connections.",
        scope: Scope::Read,
        call: Call::Get("/api/v1/search"),
        params: &[
            text("q", "What is looked for.").needed(),
            text("targets", "What is searched, separated by commas."),
            LIMIT,
        ],
    },
    Operation {
        name: "steps_list",
        doc: "Lists the types of steps that a flow can use.",
        scope: Scope::Read,
        call: Call::Get("/api/v1/steps"),
        params: &[],
    },
    Operation {
        name: "steps_schema",
        doc: "Returns the JSON Schema of the config of a type of steps.",
        scope: Scope::Read,
        call: Call::Get("/api/v1/steps/{type}/schema"),
        params: &[text("type", "The type, such as `http`.").needed()],
    },
    Operation {
        name: "tables_query",
        doc: "Queries a table.",
        scope: Scope::Read,
        call: Call::Post("/api/v1/tables/{name}/query"),
        params: &[
            text("name", "The name of the table.").needed(),
            typed("where", "array", "Conditions, as in a `:table` step."),
            typed("select", "array", "Columns."),
            typed("sort", "array", "Columns to sort by."),
            typed("page", "object", "`limit` and `offset`."),
        ],
    },
    Operation {
        name: "tables_rows",
        doc: "Lists the rows of a table.",
        scope: Scope::Read,
        call: Call::Get("/api/v1/tables/{name}/rows"),
        params: &[
            text("name", "The name of the table.").needed(),
            LIMIT,
            CURSOR,
        ],
    },
    Operation {
        name: "waits_approve",
        doc: "Approves what a run asks for. Only for what a person has decided.",
        scope: Scope::Approve,
        call: Call::Post("/api/v1/waits/{id}/approve"),
        params: &[
            WAIT,
            DIGEST,
            text("comment", "What is noted with the decision."),
            typed(
                "fields",
                "object",
                "What the wait asks for beside the decision.",
            ),
        ],
    },
    Operation {
        name: "waits_complete",
        doc: "Answers a wait with a value.",
        scope: Scope::Approve,
        call: Call::Post("/api/v1/waits/{id}/complete"),
        params: &[
            WAIT,
            DIGEST,
            typed("value", "object", "The answer.").needed(),
        ],
    },
    Operation {
        name: "waits_list",
        doc: "Lists what runs wait for.",
        scope: Scope::Read,
        call: Call::Get("/api/v1/waits"),
        params: &[
            text("flow", "The slug of a flow."),
            text("run", "The id of a run."),
            text("key", "The key of the wait."),
            text("state", "`open` or `all`."),
            LIMIT,
            CURSOR,
        ],
    },
    Operation {
        name: "waits_reject",
        doc: "Rejects what a run asks for.",
        scope: Scope::Approve,
        call: Call::Post("/api/v1/waits/{id}/reject"),
        params: &[WAIT, DIGEST, text("reason", "Why.")],
    },
    Operation {
        name: "waits_show",
        doc: "Shows what a run asks for, and how it was answered.",
        scope: Scope::Read,
        call: Call::Get("/api/v1/waits/{id}"),
        params: &[WAIT],
    },
];

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

/// Returns the tools that a caller may use, as clients see them.
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

/// Calls a tool. What goes wrong with the arguments is the tool's answer.
///
/// # Errors
/// When nobody can be asked.
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
        Call::Source => source(rq, arguments).await,
        Call::Get(path) => {
            let (path, rest) = filled(path, arguments);
            let pairs = rest.iter().map(|(name, value)| {
                let value = content::as_text(value);
                format!("{}={}", api::escaped(name), api::escaped(&value))
            });
            let query: Vec<String> = pairs.collect();
            let path = match query.is_empty() {
                true => path,
                false => format!("{path}?{}", query.join("&")),
            };
            answered(&api::call(rq, Method::GET, &path, None).await?)
        }
        Call::Post(path) => {
            let (path, rest) = filled(path, arguments);
            let answer = api::call(rq, Method::POST, &path, Some(&Json::Object(rest))).await?;
            answered(&answer)
        }
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

/// Puts arguments into a path, and returns the others.
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

/// Returns an answer of the API as the result of a tool.
fn answered(answer: &api::Answer) -> Result<Json, RpcError> {
    if let Some(problem) = answer.problem() {
        return Ok(content::failed(&problem, json!({})));
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
        Ok(found) => of_json(&flowstone_engine::json::to_json(&found).unwrap_or(Json::Null)),
        Err(error) => {
            let hint = error.hints.first().map(|hint| format!("\nhint: {hint}"));
            let message = format!(
                "{}: {}{}",
                error.code,
                error.message,
                hint.unwrap_or_default()
            );
            content::failed(&message, json!({}))
        }
    }
}

/// Returns the text of a flow as it is in its file.
async fn source(rq: &Request, arguments: &Map<String, Json>) -> Result<Json, RpcError> {
    let slug = arguments.get("slug").and_then(Json::as_str);
    let slug = slug.unwrap_or_default().to_owned();
    let caller = rq.caller.clone();
    let found = rq.server.ask(async move |desk: &Desk| {
        let flow = desk.catalog.flow(&desk.engine, &slug);
        let flow = flow.filter(|flow| caller.token.reaches_flow(&flow.slug, &flow.labels));
        let flow = flow.ok_or_else(|| Problem::not_found(format!("there is no flow `{slug}`")))?;
        let text = std::fs::read_to_string(&flow.path);
        let text = text.map_err(|error| {
            Problem::not_found(format!("{} cannot be read: {error}", flow.name))
        })?;
        let version = flow.loaded.program.hash.clone();
        Ok::<_, Problem>(json!({
            "slug": flow.slug, "file": flow.name, "version": version, "source": text,
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
            let (Call::Get(path) | Call::Post(path)) = operation.call else {
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
