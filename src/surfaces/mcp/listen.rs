//! `subscriptions/listen` of the revision without sessions: one stream for changes outside of requests.
//!
//! A client names the notifications that it wants. The first message says which of them the server sends; the stream
//! ends when the client disconnects or the server stops.

use std::time::Duration;

use flowstone_engine::ids::RunId;
use flowstone_engine::ports::News;
use flowstone_flow::mcp_interfaces::McpKind;
use serde_json::{Map, Value as Json, json};

use super::call::offered;
use super::peer::{Request, refused};
use super::protocol::{META_SUBSCRIPTION, RpcError};
use super::resources;
use crate::http::{EngineContext, Problem};

/// How often the lists of tools and prompts are compared.
const CHECK: Duration = Duration::from_secs(1);
/// How often followed runs are polled.
const LOOK: Duration = Duration::from_millis(200);
/// Maximum number of resources that one stream follows.
const FOLLOWED_MAX: usize = 100;

/// The lists whose changes are sent: the name in the filter, the notification, and the kind of listed items.
const LISTS: &[(&str, &str, McpKind)] = &[
    (
        "promptsListChanged",
        "notifications/prompts/list_changed",
        McpKind::Prompt,
    ),
    (
        "toolsListChanged",
        "notifications/tools/list_changed",
        McpKind::Tool,
    ),
];

/// A list that a client follows, with its contents at the last comparison.
struct Followed {
    notification: &'static str,
    kind: McpKind,
    known: Vec<Json>,
}

/// A run that a client follows.
struct Run {
    uri: String,
    news: Box<dyn News>,
}

/// Answers `subscriptions/listen`, when the server stops or the client has disconnected.
///
/// # Errors
/// When the request is malformed, or the server is too busy or is stopping.
pub(super) async fn listen(rq: &Request, params: &Map<String, Json>) -> Result<Json, RpcError> {
    let Some(Json::Object(wanted)) = params.get("notifications") else {
        return Err(RpcError::params(
            "`notifications` must be an object, such as {\"toolsListChanged\": true}",
        ));
    };
    let mut accepted = Map::new();
    let mut lists = Vec::new();
    for (name, notification, kind) in LISTS {
        if wanted.get(*name) == Some(&Json::Bool(true)) {
            accepted.insert((*name).to_owned(), json!(true));
            lists.push(Followed {
                notification,
                kind: *kind,
                known: listed(rq, *kind).await?,
            });
        }
    }
    let mut runs = Vec::new();
    if let Some(uris) = wanted.get("resourceSubscriptions") {
        runs = followed_runs(rq, uris).await?;
        let uris: Vec<&str> = runs.iter().map(|run| run.uri.as_str()).collect();
        accepted.insert("resourceSubscriptions".to_owned(), json!(uris));
    }
    let method = "notifications/subscriptions/acknowledged";
    notify(rq, method, json!({"notifications": accepted})).await;
    tell(rq, (&mut lists, &mut runs)).await?;
    Ok(json!({"_meta": {META_SUBSCRIPTION: rq.id}}))
}

/// Sends notifications until the client disconnects or the server stops.
async fn tell(rq: &Request, (lists, runs): (&mut [Followed], &mut [Run])) -> Result<(), RpcError> {
    let mut stopping = rq.server.stopping.subscribe();
    let mut check = tokio::time::interval(CHECK);
    let mut look = tokio::time::interval(LOOK);
    loop {
        tokio::select! {
            () = rq.out.closed() => return Ok(()),
            () = async { drop(stopping.wait_for(|stops| *stops).await) } => return Ok(()),
            _ = check.tick(), if !lists.is_empty() => {
                for list in lists.iter_mut() {
                    let now = listed(rq, list.kind).await?;
                    if now != list.known {
                        list.known = now;
                        notify(rq, list.notification, json!({})).await;
                    }
                }
            }
            _ = look.tick(), if !runs.is_empty() => {
                for run in runs.iter_mut().filter(|run| run.news.has_changed()) {
                    run.news.mark_seen();
                    notify(rq, resources::UPDATED, json!({"uri": run.uri})).await;
                }
            }
        }
    }
}

/// Sends a notification that names the subscription.
async fn notify(rq: &Request, method: &str, mut params: Json) {
    params["_meta"] = json!({META_SUBSCRIPTION: rq.id});
    rq.notify(method, params).await;
}

/// Returns the tools or prompts of flows, in the form of the protocol.
async fn listed(rq: &Request, kind: McpKind) -> Result<Vec<Json>, RpcError> {
    let all = offered(rq, kind).await?;
    let shown = all.iter().map(|it| {
        json!([
            it.interface.name,
            it.interface.title,
            it.description,
            it.schema,
            it.interface.output_schema
        ])
    });
    Ok(shown.collect())
}

/// Returns the runs among the named resources that a client may follow.
async fn followed_runs(rq: &Request, uris: &Json) -> Result<Vec<Run>, RpcError> {
    let wrong = || RpcError::params("`resourceSubscriptions` must be a list of addresses");
    let uris = uris.as_array().ok_or_else(wrong)?;
    if uris.len() > FOLLOWED_MAX {
        let message = format!("a stream follows at most {FOLLOWED_MAX} resources");
        return Err(RpcError::params(message));
    }
    let mut found: Vec<(String, RunId)> = Vec::new();
    for uri in uris {
        let uri = uri.as_str().ok_or_else(wrong)?;
        if let Some(run) = resources::run_of(rq, uri).await? {
            found.push((uri.to_owned(), run));
        }
    }
    let feeds = rq
        .server
        .ask(async |cx: &EngineContext| Ok::<_, Problem>(cx.engine.feeds()))
        .await
        .map_err(|problem| refused(&problem))?;
    let runs = found.into_iter().map(|(uri, run)| {
        let mut news = feeds.watch(&run);
        news.mark_seen();
        Run { uri, news }
    });
    Ok(runs.collect())
}
