//! Converts responses of the API with `values=edn` to rows that the commands can print.

use flowstone_engine::ids::RunId;
use flowstone_engine::ports::{
    JobLease, JobRow, JobStatus, WaitEnding, WaitEvent, WaitRow, WaitState,
};
use flowstone_engine::read_instant;
use serde_json::Value;

/// Returns a job of the API. A lease has no token, unless the answer to a claim has one.
pub fn job(shown: &Value) -> JobRow {
    let lease = &shown["lease"];
    let until_ms = ms(&lease["until"]).or_else(|| ms(&shown["leaseUntil"]));
    let number = |name: &str| shown[name].as_u64().and_then(|it| u32::try_from(it).ok());
    JobRow {
        id: text(shown, "id"),
        batch: maybe(shown, "batch"),
        run: RunId::from_text(text(shown, "run")),
        flow: text(shown, "flow"),
        path: text(shown, "path"),
        kind: text(shown, "type"),
        status: JobStatus::from_name(&text(shown, "status")).unwrap_or(JobStatus::Claimed),
        payload: text(shown, "payload"),
        metadata: maybe(shown, "metadata"),
        priority: shown["priority"].as_i64().unwrap_or_default(),
        attempt: number("attempt").unwrap_or_default(),
        max_attempts: number("maxAttempts").unwrap_or_default(),
        idempotency_key: text(shown, "idempotencyKey"),
        created_ms: ms(&shown["createdAt"]).unwrap_or_default(),
        updated_ms: ms(&shown["updatedAt"]).unwrap_or_default(),
        ended_ms: ms(&shown["endedAt"]),
        deadline_ms: ms(&shown["deadline"]),
        lease: until_ms.map(|until_ms| JobLease {
            token: text(lease, "token"),
            until_ms,
            length_ms: 0,
        }),
        worker: maybe(shown, "worker"),
        progress: maybe(shown, "progress"),
        result: maybe(shown, "result"),
        error: maybe(shown, "error"),
        cancel_ms: ms(&shown["cancelRequestedAt"]),
        last_call: None,
    }
}

/// Returns a wait of the API.
pub fn wait(shown: &Value) -> WaitRow {
    let state = text(shown, "state");
    let event = &shown["event"];
    WaitRow {
        id: text(shown, "id"),
        run: RunId::from_text(text(shown, "run")),
        flow: text(shown, "flow"),
        path: text(shown, "step"),
        key: text(shown, "key"),
        state: match &*state {
            "open" => WaitState::Open,
            "closed" => WaitState::Closed,
            _ => WaitState::Completed,
        },
        deadline_ms: ms(&shown["deadline"]),
        details: text(shown, "details"),
        digest: text(shown, "digest"),
        payload: maybe(shown, "payload"),
        opened_ms: ms(&shown["opened"]).unwrap_or_default(),
        ending: WaitEnding::from_name(&state),
        decided_by: maybe(shown, "decidedBy"),
        decided_ms: ms(&shown["decidedAt"]),
        event: event["name"].as_str().map(|name| WaitEvent {
            name: name.to_owned(),
            key: maybe(event, "key"),
            path: maybe(event, "path"),
        }),
        webhook: maybe(shown, "webhook"),
    }
}

/// Returns a member that is a string; an empty one if it is not.
pub fn text(shown: &Value, name: &str) -> String {
    maybe(shown, name).unwrap_or_default()
}

/// Returns a member if it is a string.
pub fn maybe(shown: &Value, name: &str) -> Option<String> {
    shown[name].as_str().map(str::to_owned)
}

/// Returns the items of a member that is a list.
pub fn list<'a>(shown: &'a Value, name: &str) -> impl Iterator<Item = &'a Value> {
    shown[name].as_array().into_iter().flatten()
}

/// Returns an instant as milliseconds since 1970.
pub fn ms(instant: &Value) -> Option<i64> {
    read_instant(instant.as_str()?, 0)
}
