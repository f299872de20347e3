//! The methods of the protocol, and the members that each revision adds to their results.

use serde_json::{Map, Value as Json, json};

use super::peer::{Request, is_level};
use super::protocol::{Era, LISTEN, META_SERVER, RpcError, TASKS, versions};
use super::{completion, kit, listen, prompts, resources, tasks, tools};

const INSTRUCTIONS: &str = "Flowstone runs durable workflows, written as flows in Clojure syntax. Flows that offer it are \
    tools here: calling one starts a run, which survives restarts and may wait for people. Tools whose names begin with \
    `workspace_` look at the project. A run that takes long is returned as a task or with its id; `workspace_runs_show` \
    shows it.";

/// Answers a request.
///
/// # Errors
/// The error that the client receives instead of a result.
pub(crate) async fn answer(
    rq: &Request,
    method: &str,
    params: &Map<String, Json>,
) -> Result<Json, RpcError> {
    if let Some(door) = rq.kit.clone()
        && let Some(answer) = kit::answer(rq, (&door, method), params).await
    {
        let answer = answer?;
        return Ok(match rq.era {
            Era::Legacy(_) => answer,
            Era::Stateless => completed(method, answer),
        });
    }
    let answer = match rq.era {
        Era::Legacy(_) => of_session(rq, method, params).await,
        Era::Stateless => stateless(rq, method, params).await,
    }?;
    Ok(match rq.era {
        Era::Legacy(_) => answer,
        Era::Stateless => completed(method, answer),
    })
}

async fn of_session(
    rq: &Request,
    method: &str,
    params: &Map<String, Json>,
) -> Result<Json, RpcError> {
    match method {
        "initialize" => Ok(json!({
            "protocolVersion": rq.era.version(),
            "capabilities": offered(rq),
            "serverInfo": server_info(),
            "instructions": instructions(rq),
        })),
        "ping" => Ok(json!({})),
        "logging/setLevel" => set_level(rq, params),
        "resources/subscribe" => resources::subscribe(rq, params).await,
        "resources/unsubscribe" => resources::unsubscribe(rq, params),
        "tasks/cancel" if rq.era.has_task_calls() => tasks::cancel(rq, params).await,
        "tasks/get" if rq.era.has_task_calls() => tasks::get(rq, params).await,
        "tasks/list" if rq.era.has_task_calls() => tasks::list(rq, params).await,
        "tasks/result" if rq.era.has_task_calls() => tasks::result(rq, params).await,
        _ => shared(rq, method, params).await,
    }
}

async fn stateless(
    rq: &Request,
    method: &str,
    params: &Map<String, Json>,
) -> Result<Json, RpcError> {
    match method {
        "server/discover" => Ok(json!({
            "supportedVersions": versions(),
            "capabilities": offered(rq),
            "serverInfo": server_info(),
            "instructions": instructions(rq),
        })),
        LISTEN => listen::listen(rq, params).await,
        "tasks/cancel" => tasks::cancel(rq, params).await,
        "tasks/get" => tasks::get(rq, params).await,
        "tasks/update" => tasks::update(rq, params).await,
        _ => shared(rq, method, params).await,
    }
}

/// Answers the methods that all revisions share.
async fn shared(rq: &Request, method: &str, params: &Map<String, Json>) -> Result<Json, RpcError> {
    match method {
        "completion/complete" => completion::complete(rq, params).await,
        "prompts/get" => prompts::get(rq, params).await,
        "prompts/list" => prompts::list(rq).await,
        "resources/list" => resources::list(rq, params).await,
        "resources/read" => resources::read(rq, params).await,
        "resources/templates/list" => resources::templates(rq).await,
        "tools/call" => tools::call(rq, params).await,
        "tools/list" => tools::list(rq).await,
        other => Err(RpcError::no_method(other)),
    }
}

fn instructions(rq: &Request) -> &'static str {
    match rq.kit {
        Some(_) => kit::instructions(),
        None => INSTRUCTIONS,
    }
}

fn offered(rq: &Request) -> Json {
    match rq.kit {
        Some(_) => kit::capabilities(rq.era),
        None => capabilities(rq.era),
    }
}

fn server_info() -> Json {
    json!({"name": "flowstone", "title": "Flowstone", "version": env!("CARGO_PKG_VERSION")})
}

fn capabilities(era: Era) -> Json {
    let mut all = json!({"completions": {}, "logging": {}, "prompts": {}, "tools": {}});
    match era {
        Era::Stateless => {
            all["prompts"] = json!({"listChanged": true});
            all["resources"] = json!({"subscribe": true});
            all["tools"] = json!({"listChanged": true});
            all["extensions"] = json!({TASKS: {}});
        }
        Era::Legacy(_) => {
            all["resources"] = json!({"subscribe": true});
            if era.has_task_calls() {
                let requests = json!({"tools": {"call": {}}});
                all["tasks"] = json!({"cancel": {}, "list": {}, "requests": requests});
            }
        }
    }
    all
}

fn set_level(rq: &Request, params: &Map<String, Json>) -> Result<Json, RpcError> {
    let level = params.get("level").and_then(Json::as_str);
    let level = level.filter(|level| is_level(level));
    let level = level.ok_or_else(|| RpcError::params("`level` must be a level of log messages"))?;
    if let Some(session) = &rq.session {
        session.set_level(level);
    }
    Ok(json!({}))
}

/// Adds the members of the stateless revision: whether the result is complete, the server, and how long the result is
/// valid.
fn completed(method: &str, mut answer: Json) -> Json {
    let Some(members) = answer.as_object_mut() else {
        return answer;
    };
    members
        .entry("resultType")
        .or_insert_with(|| json!("complete"));
    let meta = members.entry("_meta").or_insert_with(|| json!({}));
    meta[META_SERVER] = server_info();
    let is_cacheable = matches!(
        method,
        "prompts/list"
            | "resources/list"
            | "resources/read"
            | "resources/templates/list"
            | "server/discover"
            | "tools/list"
    );
    if is_cacheable && !members.contains_key("inputRequests") {
        // Flows may change at any time, and the lists depend on the token.
        members.insert("ttlMs".to_owned(), json!(0));
        members.insert("cacheScope".to_owned(), json!("private"));
    }
    answer
}
