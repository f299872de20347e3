//! Runs that clients start: a tool, a prompt or a resource of a flow is called, and its run followed.

use flowstone_engine::EngineError;
use flowstone_engine::catalog::ServedMcp;
use flowstone_engine::codec::digest_bytes;
use flowstone_engine::ids::RunId;
use flowstone_engine::ports::RunRow;
use flowstone_engine::token::Scope;
use flowstone_flow::mcp_interfaces::{McpInterface, McpKind, TaskMoment, input_schema};
use serde_json::{Map, Value as Json, json};

use super::follow::{Followed, Glance, Patience, follow, glance};
use super::offered::{InstalledOffer, Offered};
use super::peer::{Request, refused};
use super::protocol::{RpcError, TASKS, codes};
use super::questions::{self, Questions};
use super::tasks;
use super::{agents, content};
use crate::http::{Caller, EngineContext, Problem, runs};

/// The length of the digest of questions within a state.
const ROUND: usize = 12;

/// Returns the offers of a kind by flows that the caller has access to.
///
/// # Errors
/// When the server is too busy, or is stopping.
pub(super) async fn offered(rq: &Request, kind: McpKind) -> Result<Vec<Offered>, RpcError> {
    if !rq.caller.token.has(Scope::Run) {
        return Ok(Vec::new());
    }
    let caller = rq.caller.clone();
    let found = rq.server.ask(async move |cx: &EngineContext| {
        let all = cx.catalog.mcp(&cx.engine).into_iter();
        let reached = all.filter(|it| {
            it.interface.kind == kind && caller.token.reaches_flow(&it.flow.slug, &it.flow.labels)
        });
        let mut all: Vec<Offered> = reached.map(|it| of_served(cx, &it)).collect();
        // A resource has an address, which the installations of a flow would share.
        if kind != McpKind::Resource {
            all.extend(of_installations(cx, &caller, kind));
        }
        Ok::<_, Problem>(all)
    });
    found.await.map_err(|problem| refused(&problem))
}

/// Returns what the installations of the caller's workspace offer, under names that begin with that of the installation.
fn of_installations(cx: &EngineContext, caller: &Caller, kind: McpKind) -> Vec<Offered> {
    let mut all = Vec::new();
    for ready in cx.catalog.installed().ready() {
        let side = caller.token.reaches_side(&ready.name, &ready.flow.labels);
        if ready.at.workspace != caller.token.workspace() || !side.is_installer() {
            continue;
        }
        for interface in ready.mcp.iter().filter(|it| it.kind == kind) {
            let served = ServedMcp {
                flow: ready.flow.clone(),
                interface: interface.clone(),
            };
            let mut offered = of_served(cx, &served);
            offered.interface.name = format!("{}__{}", ready.at.name, interface.name);
            offered.installation = Some(InstalledOffer {
                name: ready.at.name.clone(),
                flow: ready.name.clone(),
            });
            all.push(offered);
        }
    }
    all
}

fn of_served(cx: &EngineContext, served: &ServedMcp) -> Offered {
    let (flow, interface) = (&served.flow.loaded.flow, &served.interface);
    let contract = flow
        .invocations
        .iter()
        .find(|it| *it.id == *interface.invocation);
    let declared = interface.description.clone();
    let description = declared.or_else(|| flow.description.as_deref().map(str::to_owned));
    let schema = interface.input_schema.clone();
    Offered {
        installation: None,
        slug: served.flow.slug.clone(),
        agent: None,
        schema: schema.unwrap_or_else(|| input_schema(contract)),
        description: description.unwrap_or_else(|| {
            let name = flow.name.as_deref().unwrap_or(&served.flow.slug);
            format!("Runs the flow `{name}`.")
        }),
        is_reading: cx.engine.only_reads(flow),
        interface: McpInterface::clone(interface),
    }
}

/// The result of a call.
#[derive(Debug)]
pub(super) enum Called {
    Ended(Box<RunRow>),
    Late(Box<RunRow>),
    /// The response for the client: questions with a state, or the reason why the run did not start.
    Answer(Json),
}

/// Calls an offer of a flow: starts a run, or continues following the run of a repeated request.
///
/// # Errors
/// When the request is malformed. If a run does not start, the tool's result says so.
pub(super) async fn call(
    rq: &Request,
    offered: &Offered,
    (arguments, params): (&Map<String, Json>, &Map<String, Json>),
) -> Result<Called, RpcError> {
    let run = match params.get("requestState") {
        Some(state) => return again(rq, offered, (state, params)).await,
        None => start(rq, offered, arguments).await?,
    };
    let run = match run {
        Ok(run) => run,
        Err(message) => return Ok(Called::Answer(content::failed(&message, json!({})))),
    };
    let followed = follow(rq, &run, (Patience::Call, None)).await?;
    called(rq, &run, followed).await
}

/// Starts a run. If it does not start, returns the reason as a text for the client.
///
/// # Errors
/// When the server is too busy, or is stopping.
pub(super) async fn start(
    rq: &Request,
    offered: &Offered,
    arguments: &Map<String, Json>,
) -> Result<Result<RunId, String>, RpcError> {
    if let Err(message) = refuse_unknown(offered, arguments) {
        return Ok(Err(message));
    }
    if let Some(agent) = &offered.agent {
        return agents::start(rq, (agent, &offered.schema), arguments).await;
    }
    let started = runs::start_interface(
        &rq.server,
        rq.caller.clone(),
        (
            offered.slug.clone(),
            offered.installation.as_ref().map(|it| it.name.clone()),
            offered.interface.invocation.clone(),
        ),
        (Json::Object(arguments.clone()), rq.trace()),
    );
    Ok(match started.await {
        Ok(run) => Ok(run),
        Err(problem) if problem.status.is_server_error() => return Err(refused(&problem)),
        Err(problem) => {
            let hint = problem.hint.map(|hint| format!("\nhint: {hint}"));
            let detail = format!("{}: {}", problem.code, problem.detail);
            Err(detail + &hint.unwrap_or_default())
        }
    })
}

/// Refuses arguments that the schema does not name.
fn refuse_unknown(offered: &Offered, arguments: &Map<String, Json>) -> Result<(), String> {
    let known = offered.schema["properties"].as_object();
    let is_open = offered.schema["additionalProperties"] != json!(false);
    let is_own = offered.interface.input_schema.is_some() && is_open;
    let unknown = arguments.keys().find(|name| {
        let is_known = known.is_some_and(|known| known.contains_key(*name));
        !is_known && !is_own
    });
    let Some(unknown) = unknown else {
        return Ok(());
    };
    let names: Vec<&str> = known
        .into_iter()
        .flatten()
        .map(|(name, _)| name.as_str())
        .collect();
    let hint = match names.is_empty() {
        true => "it takes no arguments".to_owned(),
        false => format!("it takes: {}", names.join(", ")),
    };
    Err(format!(
        "E1045: there is no argument `{unknown}`\nhint: {hint}"
    ))
}

/// Follows the run of a request that is repeated with answers.
async fn again(
    rq: &Request,
    offered: &Offered,
    (state, params): (&Json, &Map<String, Json>),
) -> Result<Called, RpcError> {
    let (found, seen) = taken(rq, offered, (state, params)).await?;
    let run = found.row.id;
    let followed = follow(rq, &run, (Patience::Call, Some(seen))).await?;
    called(rq, &run, followed).await
}

/// Stores the answers of a repeated request. Returns the state of the run before them.
async fn taken(
    rq: &Request,
    offered: &Offered,
    (state, params): (&Json, &Map<String, Json>),
) -> Result<(Glance, Questions), RpcError> {
    let wrong = || RpcError::params("`requestState` is not one that this server made for you");
    let handle = state.as_str().ok_or_else(wrong)?;
    let run = of_handle(rq, handle).await?.ok_or_else(wrong)?;
    let found = glance(rq, &run).await?;
    if found.row.flow != offered.flow() {
        return Err(wrong());
    }
    let empty = Map::new();
    let answers = match params.get("inputResponses") {
        None | Some(Json::Null) => &empty,
        Some(Json::Object(answers)) => answers,
        Some(_) => return Err(RpcError::params("`inputResponses` must be an object")),
    };
    let seen = questions::take_all(rq, &found.waits, answers).await?;
    Ok((found, seen))
}

async fn called(rq: &Request, run: &RunId, followed: Followed) -> Result<Called, RpcError> {
    Ok(match followed {
        Followed::Ended(row) => Called::Ended(row),
        Followed::Late(row) => Called::Late(row),
        Followed::Input(requests) => Called::Answer(json!({
            "resultType": "input_required",
            "inputRequests": requests,
            "requestState": handle(rq, run, &round(&requests)).await?,
        })),
    })
}

/// Returns a name for the questions of a round: each round has its own state.
fn round(requests: &Json) -> String {
    let digest = digest_bytes(requests.to_string().as_bytes());
    digest.get(..ROUND).unwrap_or(&digest).to_owned()
}

/// Returns the handle of a run that only this caller can use.
///
/// # Errors
/// When the key of handles cannot be read.
pub(super) async fn handle(rq: &Request, run: &RunId, about: &str) -> Result<String, RpcError> {
    let (token, run) = (rq.caller.token.clone(), run.clone());
    let about = about.to_owned();
    let made = rq.server.ask(async move |cx: &EngineContext| {
        let handle = cx.engine.run_handle(&token, &run, &about)?;
        Ok::<_, EngineError>(handle)
    });
    made.await.map_err(|problem| refused(&problem))
}

/// Returns the run of a handle, if it was made for this caller, who reaches it, and the run exists.
///
/// # Errors
/// When the store cannot be read.
pub(super) async fn of_handle(rq: &Request, handle: &str) -> Result<Option<RunId>, RpcError> {
    let (caller, handle) = (rq.caller.clone(), handle.to_owned());
    let found = rq.server.ask(async move |cx: &EngineContext| {
        let Some(run) = cx.engine.accept_run_handle(&caller.token, &handle)? else {
            return Ok(None);
        };
        match cx.engine.run(&run).await {
            Ok(row) => {
                let side = runs::side(cx, &caller, (&row.flow, &row.started_by));
                Ok(side.is_installer().then_some(run))
            }
            Err(EngineError::NoSuchRun { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    });
    found.await.map_err(|problem| refused(&problem))
}

/// Answers `tools/call` for a tool of a flow.
///
/// # Errors
/// When the request is malformed.
pub(super) async fn tool(
    rq: &Request,
    offered: &Offered,
    params: &Map<String, Json>,
) -> Result<Json, RpcError> {
    let arguments = arguments_of(params)?;
    let is_asked = rq.era.has_task_calls() && params.get("task").is_some_and(Json::is_object);
    let knows = is_asked || rq.era.is_stateless() && rq.can("tasks");
    let interface = &offered.interface;
    if interface.needs_task && !knows {
        return Err(match rq.era.is_stateless() {
            true => RpcError::capability(&json!({"extensions": {TASKS: {}}})),
            false => RpcError::new(codes::METHOD, "this tool can only be called as a task"),
        });
    }
    let is_first = params.get("requestState").is_none();
    if is_asked || knows && is_first && interface.task == TaskMoment::AtOnce {
        return match start(rq, offered, &arguments).await? {
            Ok(run) => tasks::created(rq, &run).await,
            Err(message) => Ok(content::failed(&message, json!({}))),
        };
    }
    if knows && !is_first && interface.task == TaskMoment::AfterInput {
        return answered_task(rq, offered, params).await;
    }
    let called = match call(rq, offered, (&arguments, params)).await {
        Err(error) if error.code == codes::CAPABILITY && !rq.era.is_stateless() => {
            let message = format!("{}: {}", error.message, error.data.unwrap_or_default());
            return Ok(content::failed(&message, json!({})));
        }
        called => called?,
    };
    match called {
        Called::Ended(row) => content::tool_result(rq, &row).await,
        Called::Answer(answer) => Ok(answer),
        Called::Late(row) if rq.era.is_stateless() && rq.can("tasks") => {
            tasks::created(rq, &row.id).await
        }
        Called::Late(row) => late(rq, &row).await,
    }
}

/// Stores the client's answers to the first questions of the run; then the call becomes a task.
async fn answered_task(
    rq: &Request,
    offered: &Offered,
    params: &Map<String, Json>,
) -> Result<Json, RpcError> {
    let state = params.get("requestState").unwrap_or(&Json::Null);
    let (found, _) = taken(rq, offered, (state, params)).await?;
    tasks::created(rq, &found.row.id).await
}

/// Returns the response about a run that is still in progress, for clients without tasks.
async fn late(rq: &Request, row: &RunRow) -> Result<Json, RpcError> {
    let found = glance(rq, &row.id).await?;
    let status = found.row.status.name();
    let (about, hint) = match found.waits.first() {
        Some(wait) => (
            format!("The run {} waits for an answer to `{}`.", row.id, wait.path),
            format!(
                "A person decides: `flowstone waits list`, `flowstone waits show {}`.",
                wait.id
            ),
        ),
        None => (
            format!("The run {} is still {status}.", row.id),
            "Ask for its result later.".to_owned(),
        ),
    };
    let waits: Vec<&str> = found.waits.iter().map(|wait| wait.id.as_str()).collect();
    let look = "`workspace_runs_show` shows it.";
    Ok(json!({
        "content": [content::text(format!("{about} {hint} {look}"))],
        "structuredContent": {"runId": row.id.as_str(), "status": status, "waits": waits},
        "isError": false,
        "_meta": {"runId": row.id.as_str()},
    }))
}

/// Returns the arguments of a request.
///
/// # Errors
/// When they are not an object.
pub(super) fn arguments_of(params: &Map<String, Json>) -> Result<Map<String, Json>, RpcError> {
    match params.get("arguments") {
        None | Some(Json::Null) => Ok(Map::new()),
        Some(Json::Object(arguments)) => Ok(arguments.clone()),
        Some(_) => Err(RpcError::params("`arguments` must be an object")),
    }
}

/// Calls a prompt or a resource, whose result is required in the response.
///
/// # Errors
/// When the run fails or takes too long. If the run asks the client something, its response is the error of the inner
/// result.
pub(super) async fn result_of(
    rq: &Request,
    offered: &Offered,
    (arguments, params): (&Map<String, Json>, &Map<String, Json>),
) -> Result<Result<Json, Json>, RpcError> {
    let failed = |message: &str, run: &str| {
        RpcError::new(codes::INTERNAL, message.to_owned()).with(json!({"runId": run}))
    };
    match call(rq, offered, (arguments, params)).await? {
        Called::Ended(row) => match (&row.result, row.status.name()) {
            (Some(result), "completed") => Ok(Ok(crate::json::stored_json(result))),
            _ => Err(content::error_of(&row)),
        },
        Called::Late(row) => Err(failed("the run takes too long", row.id.as_str())),
        Called::Answer(answer) if answer.get("inputRequests").is_some() => Ok(Err(answer)),
        Called::Answer(answer) => {
            let text = answer["content"][0]["text"].as_str().unwrap_or_default();
            Err(RpcError::params(text))
        }
    }
}
