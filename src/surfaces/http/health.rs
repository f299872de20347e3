//! Whether the server lives, and whether it is ready.

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::get;
use serde_json::json;

use super::answer::Answer;
use super::server::{Desk, Shared};

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
    let asked = server
        .ask(async |desk: &Desk| {
            let problems = desk.catalog.problems(&desk.engine);
            let readable = desk.engine.tokens().await;
            readable.map(|_| problems)
        })
        .await;
    let problems = match asked {
        Ok(problems) => problems,
        Err(problem) => return unready(&problem.detail),
    };
    let reasons: Vec<_> = problems
        .iter()
        .map(|it| json!({"file": it.file, "code": it.code, "message": it.message}))
        .collect();
    Answer::ok(json!({"ready": true, "reasons": reasons}))
}

fn unready(reason: &str) -> Answer {
    let body = json!({"ready": false, "reasons": [{"message": reason}]});
    Answer::with(StatusCode::SERVICE_UNAVAILABLE, body)
}
