//! Whether the server lives, and whether it is ready.

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::get;
use serde_json::{Value, json};

use super::answer::Answer;
use super::interfaces;
use super::server::{EngineContext, Shared};

pub(super) fn routes() -> Router<Shared> {
    Router::new()
        .route("/healthz", get(async || "ok"))
        .route("/readyz", get(ready))
}

/// Answers whether runs can be started, and which flows cannot be served as they are.
async fn ready(State(server): State<Shared>) -> Answer {
    if server.interrupt.is_set() {
        return unready("the server is stopping");
    }
    let settings = server.settings.clone();
    let asked = server
        .ask(async move |cx: &EngineContext| {
            let problems = cx.catalog.problems(&cx.engine);
            let mut reasons: Vec<Value> = problems
                .iter()
                .map(|it| json!({"file": it.file, "code": it.code, "message": it.message}))
                .collect();
            reasons.extend(interfaces::problems(cx, &settings));
            let readable = cx.engine.tokens(None).await;
            readable.map(|_| reasons)
        })
        .await;
    let reasons = match asked {
        Ok(reasons) => reasons,
        Err(problem) => return unready(&problem.detail),
    };
    Answer::ok(json!({"ready": true, "reasons": reasons}))
}

fn unready(reason: &str) -> Answer {
    let body = json!({"ready": false, "reasons": [{"message": reason}]});
    Answer::with(StatusCode::SERVICE_UNAVAILABLE, body)
}
