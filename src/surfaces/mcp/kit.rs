//! The build kit as a server of its own: `/mcp/kit/{slug}` and `flowstone mcp --kit SLUG`.
//!
//! The address names the flow; no argument can. A call that a person has to agree to is asked about by elicitation, and by a
//! stored approval where the client cannot elicit.

use std::time::Duration;

use flowstone_fronts::kit::CancelOnDrop;
use flowstone_fronts::kit::playbook as kit_playbook;
use flowstone_fronts::kit::{Called, GRACE, KitCode, KitError, Question};
use serde_json::{Map, Value as Json, json};

use super::call::arguments_of;
use super::content;
use super::peer::{Request, refused};
use super::playbook;
use super::protocol::{Era, RpcError};
use crate::http::{EngineContext, Problem};
use crate::kit::{self, Agreed, KitDoor, Wanted};

/// How often a client hears that a call is still at work.
const PROGRESS: Duration = Duration::from_secs(5);
/// The name of the question about a call, for clients that repeat their request with the answer.
const APPROVAL: &str = "approval";

/// Answers a method of the protocol that is different for the kit; `None` for those that are the same.
pub(super) async fn answer(
    rq: &Request,
    (door, method): (&KitDoor, &str),
    params: &Map<String, Json>,
) -> Option<Result<Json, RpcError>> {
    Some(match method {
        "tools/list" => list(rq, door).await,
        "tools/call" => call(rq, door, params).await,
        "prompts/list" => Ok(playbook::prompts()),
        "prompts/get" => playbook::prompt(rq, door, params).await,
        "resources/list" => Ok(playbook::resources()),
        "resources/templates/list" => Ok(json!({"resourceTemplates": []})),
        "resources/read" => playbook::resource(rq, door, params).await,
        "resources/subscribe" => Err(RpcError::params("no resource of the kit can be followed")),
        "completion/complete" => {
            Ok(json!({"completion": {"values": [], "total": 0, "hasMore": false}}))
        }
        _ => return None,
    })
}

/// Returns what the first answer of a session says to the model.
pub(super) fn instructions() -> &'static str {
    kit_playbook::TEXT
}

/// Returns the capabilities of the kit's server.
pub(super) fn capabilities(era: Era) -> Json {
    let lists = match era {
        Era::Stateless => json!({"listChanged": false}),
        Era::Legacy(_) => json!({}),
    };
    json!({"logging": {}, "prompts": lists, "resources": {}, "tools": lists})
}

async fn list(rq: &Request, door: &KitDoor) -> Result<Json, RpcError> {
    let (token, door) = (rq.caller.token.clone(), door.clone());
    let found = rq
        .server
        .ask(async move |cx: &EngineContext| kit::tools(&cx.engine, (&token, &door)));
    let found = found.await.map_err(|problem| refused(&problem))?;
    let offered = found.into_iter().filter(|it| it.is_enabled);
    let tools: Vec<Json> = offered
        .map(|offered| {
            let tool = offered.tool;
            json!({
                "name": tool.name,
                "description": tool.description,
                "inputSchema": (tool.input)(),
                "outputSchema": answer_or_error((tool.output)()),
                "annotations": {"readOnlyHint": tool.read_only, "openWorldHint": !tool.read_only},
            })
        })
        .collect();
    Ok(json!({"tools": tools}))
}

/// Returns the schema of a tool's result: its answer, or an error of the kit. Clients check both against it.
fn answer_or_error(answer: Json) -> Json {
    let error = json!({
        "type": "object",
        "properties": {
            "code": {"type": "string"},
            "message": {"type": "string"},
            "retryable": {"type": "boolean"},
            "next_step": {"type": "string"},
            "details": {"type": "object"},
        },
        "required": ["code", "message", "retryable"],
        "additionalProperties": false,
    });
    json!({"type": "object", "anyOf": [answer, error]})
}

/// Calls a tool. An error of the kit is the tool's result; a tool that does not exist is an error of the protocol.
async fn call(rq: &Request, door: &KitDoor, params: &Map<String, Json>) -> Result<Json, RpcError> {
    let name = params.get("name").and_then(Json::as_str);
    let name = name.ok_or_else(|| RpcError::params("`name` must be the name of a tool"))?;
    let arguments = Json::Object(arguments_of(params)?);
    let agreed = match (rq.can("elicitation.form"), rq.era.is_stateless()) {
        (false, _) => Agreed::CannotAsk,
        (true, false) => Agreed::Asks,
        (true, true) => match response(params) {
            Some((answer, state)) if is_accepted(answer) => Agreed::ToState(state.to_owned()),
            Some(_) => return Ok(failed(&KitError::approval_denied(name))),
            None => Agreed::Elicits,
        },
    };
    let wanted = |agreed: Agreed| Wanted {
        name: name.to_owned(),
        arguments: arguments.clone(),
        agreed,
    };
    let called = match perform(rq, door, wanted(agreed)).await? {
        Ok(Called::Ask(question)) if rq.era.is_stateless() => {
            return Ok(json!({
                "resultType": "input_required",
                "inputRequests": {APPROVAL: elicitation(&question)},
                "requestState": question.state,
            }));
        }
        Ok(Called::Ask(question)) => {
            let asked = elicitation(&question);
            let answer = rq.ask("elicitation/create", &asked["params"]).await;
            match answer.is_ok_and(|answer| is_accepted(&answer)) {
                true => perform(rq, door, wanted(Agreed::ToDigest(question.digest))).await?,
                false => Err(KitError::approval_denied(name)),
            }
        }
        called => called,
    };
    match called {
        Ok(Called::Done(answer)) => Ok(json!({
            "content": [content::text(answer.to_string())],
            "structuredContent": answer,
            "isError": false,
        })),
        // What the call would do changed while the person was asked.
        Ok(Called::Ask(_)) => Ok(failed(&KitError::not_agreed(name, true))),
        Err(error) if error.code == KitCode::UnknownTool => {
            Err(RpcError::params(error.message.clone()).with(error.to_json()))
        }
        Err(error) => Ok(failed(&error)),
    }
}

fn failed(error: &KitError) -> Json {
    let object = error.to_json();
    json!({
        "content": [content::text(object.to_string())],
        "structuredContent": object,
        "isError": true,
    })
}

/// Returns the answer to the question about a call, with the state that the client got with the question.
fn response(params: &Map<String, Json>) -> Option<(&Json, &str)> {
    let answer = params.get("inputResponses")?.get(APPROVAL)?;
    Some((answer, params.get("requestState")?.as_str()?))
}

fn is_accepted(answer: &Json) -> bool {
    let allow = answer.get("content").and_then(|it| it.get("allow"));
    answer["action"] == json!("accept") && allow.is_none_or(|allow| *allow == json!(true))
}

fn elicitation(question: &Question) -> Json {
    json!({
        "method": "elicitation/create",
        "params": {
            "mode": "form",
            "message": question.text(),
            "requestedSchema": {
                "type": "object",
                "properties": {
                    "allow": {"type": "boolean", "title": "Allow this call", "default": true},
                },
            },
        },
    })
}

/// Performs a call, and tells the client that it is at work. If the client goes away or cancels, this future is dropped.
async fn perform(
    rq: &Request,
    door: &KitDoor,
    wanted: Wanted,
) -> Result<Result<Called, KitError>, RpcError> {
    let (guard, cancelled) = CancelOnDrop::new();
    let (token, mut door) = (rq.caller.token.clone(), door.clone());
    if let Some(session) = &rq.session {
        door.origin.session.clone_from(&session.id);
    }
    let asked = rq.server.ask(async move |cx: &EngineContext| {
        Ok::<_, Problem>(kit::call(cx, (&token, &door), wanted, cancelled).await)
    });
    let mut asked = std::pin::pin!(asked);
    let mut ticks = tokio::time::interval_at(tokio::time::Instant::now() + PROGRESS, PROGRESS);
    let mut progress = 0;
    loop {
        tokio::select! {
            called = &mut asked => return called.map_err(|problem| refused(&problem)),
            _ = ticks.tick() => {
                let Some(progress_token) = rq.progress_token() else { continue };
                progress += PROGRESS.as_secs();
                let params = json!({
                    "progressToken": progress_token,
                    "progress": progress,
                    "message": format!("at work for {progress} s"),
                });
                rq.notify("notifications/progress", params).await;
            }
            () = rq.out.closed() => {
                guard.cancel();
                // The tool ends what it has started.
                return match tokio::time::timeout(GRACE, &mut asked).await {
                    Ok(called) => called.map_err(|problem| refused(&problem)),
                    Err(_) => Ok(Err(KitError::timeout("the call", 0))),
                };
            }
        }
    }
}
