//! Open answers end with the right that they were opened with, and are not opened again.

use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::api::{Api, Events};
use crate::graphs::{BASE, Graphs, llm, one};
use crate::program::Scratch;

/// A right that ended is noticed within a second; a busy machine may take longer. A stream is written to every 15 s.
const SOON: Duration = Duration::from_secs(10);

const NAP: &str = r#"{:slug :nap :tags [:night] :flow '(flow/step :sleep :a {:duration "1h"})}"#;

fn project() -> Scratch {
    let scratch = Scratch::new();
    scratch.write("flows/nap.edn", NAP);
    scratch
}

fn token(scratch: &Scratch, options: &[&str]) -> String {
    let args = [&["tokens", "create", "--name", "test"], options].concat();
    scratch.run(&args).ok().trim_end().to_owned()
}

fn id_of(token: &str) -> &str {
    token.split('_').nth(1).expect("an id")
}

fn bearer(token: &str) -> String {
    format!("authorization: Bearer {token}")
}

fn start(api: &Api) -> String {
    let run = api.post("/api/v1/flows/nap/runs", &json!({})).json();
    run["id"].as_str().expect("an id").to_owned()
}

/// Reads a stream to its end, which must come soon.
#[track_caller]
fn ends(begun: Instant, stream: Events) {
    drop(stream.last());
    assert!(begun.elapsed() < SOON, "{:?}", begun.elapsed());
}

/// Opens a session of MCP and returns the headers of its requests.
fn session(api: &Api, token: &str) -> [String; 2] {
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params});
    let reply = api.post_as(token, "/mcp", &body);
    let id = reply
        .header("mcp-session-id")
        .expect("a session")
        .to_owned();
    [bearer(token), format!("mcp-session-id: {id}")]
}

/// Opens a stream of the revision of MCP without sessions.
fn listen(api: &Api, token: &str) -> Events {
    let params = json!({"notifications": {"toolsListChanged": true}, "_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    }});
    let body =
        json!({"jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen", "params": params});
    let headers = [
        &*bearer(token),
        "content-type: application/json",
        "mcp-protocol-version: 2026-07-28",
        "mcp-method: subscriptions/listen",
    ];
    api.follow_request("POST /mcp", &headers, &body.to_string())
}

#[test]
fn streams_and_waiting_requests_end_when_their_token_is_revoked() {
    let scratch = project();
    let api = Api::serve(&scratch);
    let run = start(&api);
    let own = token(
        &scratch,
        &["--scope", "read", "--scope", "run", "--scope", "work"],
    );
    let stream_token = |body: &Value| {
        let made = api.post_as(&own, "/api/v1/stream-tokens", body).json();
        made["token"].as_str().expect("a token").to_owned()
    };
    let (of_run, of_project) = (stream_token(&json!({"run": run})), stream_token(&json!({})));
    let [authorization, session] = session(&api, &own);
    let paths = [
        (format!("/api/v1/runs/{run}/events"), vec![&*authorization]),
        ("/api/v1/events".to_owned(), vec![&*authorization]),
        (format!("/api/v1/runs/{run}/events?token={of_run}"), vec![]),
        (format!("/api/v1/events?token={of_project}"), vec![]),
        ("/mcp".to_owned(), vec![&*authorization, &*session]),
    ];
    let open = || {
        paths
            .iter()
            .map(|(path, headers)| api.follow_with(path, headers))
    };
    let mut streams: Vec<Events> = open().collect();
    streams.push(listen(&api, &own));
    assert!(streams.iter().all(|stream| stream.status == 200));
    let mut others = api.follow(&format!("/api/v1/runs/{run}/events"), None);
    assert_eq!(others.next().expect("an event").name, "run.created");
    thread::scope(|scope| {
        let waiting = [
            (
                "/api/v1/jobs/claim",
                json!({"types": ["t"], "worker": "w", "wait": "30s"}),
            ),
            ("/api/v1/flows/nap/runs", json!({"wait": "60s"})),
        ];
        let (api, own) = (&api, &own);
        let waiting =
            waiting.map(|(path, body)| scope.spawn(move || api.post_as(own, path, &body)));
        // The last one has begun to wait once its run is there.
        while api.get("/api/v1/runs").json()["runs"]
            .as_array()
            .map(Vec::len)
            != Some(2)
        {
            thread::sleep(Duration::from_millis(5));
        }
        let begun = Instant::now();
        scratch.run(&["tokens", "revoke", id_of(own)]).ok();
        for stream in streams {
            ends(begun, stream);
        }
        for request in waiting {
            assert_eq!(request.join().expect("an answer").problem(), "401 E1010");
        }
        assert!(begun.elapsed() < SOON, "{:?}", begun.elapsed());
    });
    assert!(open().all(|stream| stream.status == 401));
    assert_eq!(listen(&api, &own).status, 401);
    // Readers with another token are not disturbed.
    api.post(&format!("/api/v1/runs/{run}/cancel"), &json!({}));
    assert_eq!(others.last().expect("an event").name, "run.cancelled");
}

#[test]
fn a_stream_ends_when_its_token_expires() {
    let scratch = project();
    let api = Api::serve(&scratch);
    let path = format!("/api/v1/runs/{}/events", start(&api));
    let begun = Instant::now();
    let short = token(&scratch, &["--scope", "read", "--expires", "3s"]);
    let stream = api.follow_with(&path, &[&bearer(&short)]);
    assert_eq!(stream.status, 200);
    ends(begun, stream);
    assert!(begun.elapsed() >= Duration::from_secs(3));
    assert_eq!(api.follow_with(&path, &[&bearer(&short)]).status, 401);
}

#[test]
fn a_stream_ends_when_a_flow_loses_the_label_that_the_token_reaches() {
    let scratch = project();
    let api = Api::serve(&scratch);
    let path = format!("/api/v1/runs/{}/events", start(&api));
    let own = token(&scratch, &["--scope", "read", "--label", "night"]);
    let stream = api.follow_with(&path, &[&bearer(&own)]);
    assert_eq!(stream.status, 200);
    let begun = Instant::now();
    scratch.write("flows/nap.edn", NAP.replace(":night", ":day"));
    ends(begun, stream);
    assert_eq!(api.get_as(&own, &path).problem(), "404 E0502");
}

#[test]
fn a_stream_of_a_graph_run_ends_when_its_token_is_revoked() {
    let graphs = Graphs::serve();
    let spec = one(
        llm("ASK", &[json!({"source": "builtin", "name": "interrupt"})]),
        json!({"builtin": ["interrupt"]}),
    );
    graphs.agent("a", &spec, json!({"visibility": "authenticated"}));
    let ada = graphs.token("user", &["--subject", "ada"]);
    let body = json!({"input": {"message": "x"}});
    let started = graphs.post_as(&ada, "/public/agents/a/runs", &body);
    assert_eq!(started.status, 201, "{started:?}");
    let run = started.json()["run_id"].as_str().expect("an id").to_owned();
    let text = started.json()["stream_token"]
        .as_str()
        .expect("a token")
        .to_owned();
    let own = format!("{BASE}/public/runs/{run}/events");
    let by_text = format!("{own}?token={text}");
    let header = bearer(&ada);
    let open = || {
        [(&own, vec![&*header]), (&by_text, vec![])]
            .map(|(path, headers)| graphs.api.follow_with(path, &headers))
    };
    let streams = open();
    assert!(streams.iter().all(|stream| stream.status == 200));
    let begun = Instant::now();
    let path = format!("DELETE /api/v1/tokens/{}", id_of(&ada));
    let revoked = graphs.api.request(&path, &[&bearer(&graphs.api.token)], "");
    assert_eq!(revoked.status, 204);
    for stream in streams {
        ends(begun, stream);
    }
    assert!(open().iter().all(|stream| stream.status == 401));
}
