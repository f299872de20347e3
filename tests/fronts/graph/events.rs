//! Rows of a run's feed become events: exact names and payloads, numbered without gaps.

use std::rc::Rc;

use flowstone_engine::codec;
use flowstone_engine::ids::RunId;
use flowstone_engine::ports::{Entry, EntryKind, Event, EventKind, FeedItem, RunRow, RunStatus};
use flowstone_flow::flow::Flow;
use flowstone_fronts::graph::events::{Chain, Projection, RunEvent};
use flowstone_lang::value::{Class, Exception, Value};
use serde_json::{Value as Json, json};

fn edn(text: &str) -> Value {
    codec::decode(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// Returns the nodes of a spec: a model, a tool, an end.
fn chain(max_steps: i64) -> Chain {
    let nodes = r#"[["ask" :llm "reply"] ["save" :tool "kept"] ["done" :end]]"#;
    let definition =
        format!("{{:graph/agent \"support\" :graph/nodes {nodes} :graph/max-steps {max_steps}}}");
    let flow = Flow {
        definition: edn(&definition),
        ..Flow::bare("support", Value::Nil)
    };
    Chain::of(&flow).expect("a flow of a graph")
}

fn row(status: RunStatus) -> RunRow {
    RunRow {
        id: RunId::from_text("r1"),
        external_id: None,
        program: String::new(),
        flow: "support".to_owned(),
        status,
        wait_reason: None,
        due_ms: None,
        input: r#"{:message "hi"}"#.to_owned(),
        sealed: None,
        seed: 0,
        result: Some("\"saved\"".to_owned()),
        error: None,
        cancel_requested: None,
        is_unwinding: false,
        executing: false,
        begun: true,
        created_ms: 0,
        updated_ms: 0,
        invocation: None,
        key: None,
        priority: 0,
        bindings: None,
        started_by: "manual".to_owned(),
        origin: None,
        parent: None,
        trace: None,
        version: None,
        deadline_ms: None,
        pass: 1,
        force: false,
        ended_ms: None,
        held: false,
        pruned_ms: None,
        setback: None,
        quarantine: None,
    }
}

fn failed(data: &str, text: &str) -> RunRow {
    let mut error = Exception::new(Class::ILLEGAL_ARGUMENT, "", text);
    error.data = edn(data);
    let whole = Value::map([(Value::keyword("error"), Value::Exception(Rc::new(error)))]);
    RunRow {
        error: Some(codec::encode(&whole).expect("data")),
        ..row(RunStatus::Failed)
    }
}

fn life(kind: EventKind, at_ms: i64) -> FeedItem {
    FeedItem::Event(Event {
        kind,
        path: String::new(),
        data: "{}".to_owned(),
        at_ms,
    })
}

fn opened(path: &str, at_ms: i64) -> FeedItem {
    FeedItem::Event(Event {
        kind: EventKind::WaitOpened,
        path: path.to_owned(),
        data: r#"{:wait "w1"}"#.to_owned(),
        at_ms,
    })
}

fn entry(kind: EntryKind, (path, what): (&str, &str), payload: &str, at_ms: i64) -> FeedItem {
    FeedItem::Entry(Entry {
        kind,
        path: path.to_owned(),
        what: what.to_owned(),
        digest: String::new(),
        request: None,
        payload: payload.to_owned(),
        at_ms,
    })
}

fn emitted(name: &str, data: &str, at_ms: i64) -> FeedItem {
    let payload = format!("{{:name {name:?} :data {data}}}");
    entry(EntryKind::Log, ("", "flow/emit"), &payload, at_ms)
}

fn reply(text: &str, at_ms: i64) -> FeedItem {
    entry(EntryKind::Result, ("ask", "llm"), text, at_ms)
}

const CALLS: &str =
    r#"{:content "" :tool-calls [{:name "look"}] :usage {:prompt-tokens 7 :completion-tokens 3}}"#;
const ANSWER: &str = r#"{:content "ok" :usage {:prompt-tokens 9 :completion-tokens 1}}"#;

/// The rows of a run with a call, an approval and an end.
fn rows() -> Vec<FeedItem> {
    vec![
        life(EventKind::RunCreated, 0),
        life(EventKind::RunStarted, 1),
        entry(EntryKind::Note, ("flow/now", "flow/now"), "1", 1),
        reply(CALLS, 2),
        emitted(
            "graph.call",
            r#"{:id "c1" :name "look" :args {:to 2 :id 1} :source "function"}"#,
            3,
        ),
        emitted(
            "graph.called",
            r#"{:id "c1" :status "ok" :result {:found 1}}"#,
            8,
        ),
        reply(ANSWER, 9),
        emitted(
            "graph.call",
            r#"{:id "save" :name "put" :args {} :source "builtin"}"#,
            10,
        ),
        emitted(
            "graph.pause",
            r#"{:tool_call_id "save" :tool_name "put" :args {}}"#,
            10,
        ),
        opened("save.1.1.approval", 11),
        life(EventKind::WaitAnswered, 1_011),
        life(EventKind::RunResumed, 1_012),
        emitted(
            "graph.called",
            r#"{:id "save" :status "ok" :result true}"#,
            1_015,
        ),
        life(EventKind::RunCompleted, 1_016),
    ]
}

fn events(rows: &[FeedItem], row: &RunRow, max_steps: i64) -> Vec<RunEvent> {
    let mut projection = Projection::new(chain(max_steps));
    let events = rows.iter().flat_map(|item| projection.take(item, row));
    events.collect()
}

/// Checks the names of events in order, and that they are numbered from 1.
#[track_caller]
fn check(rows: &[FeedItem], row: &RunRow, max_steps: i64, expected: &[&str]) -> Vec<Json> {
    let found = events(rows, row, max_steps);
    let names: Vec<&str> = found.iter().map(|event| event.kind).collect();
    assert_eq!(names, expected);
    let numbers: Vec<i64> = found.iter().map(|event| event.seq).collect();
    assert_eq!(numbers, (1..=found.len() as i64).collect::<Vec<_>>());
    found
        .into_iter()
        .map(|event| Json::Object(event.data))
        .collect()
}

const WHOLE: &[&str] = &[
    "run_start",
    "node_start",
    "llm_token_usage",
    "tool_call_start",
    "tool_call_end",
    "llm_token_usage",
    "node_end",
    "node_start",
    "tool_call_start",
    "run_paused",
    "tool_call_end",
    "node_end",
    "node_start",
    "node_end",
    "run_end",
];

#[test]
fn a_run_has_its_events_in_order_with_exact_payloads() {
    let data = check(&rows(), &row(RunStatus::Completed), 20, WHOLE);
    assert_eq!(data[0], json!({"input": {"message": "hi"}}));
    assert_eq!(data[1], json!({"node_id": "ask", "step": 1}));
    let usage = |input: i64, output: i64| {
        json!({
            "input_tokens": input, "output_tokens": output, "prompt": input, "completion": output,
            "prompt_tokens": input, "completion_tokens": output, "total_tokens": input + output,
            "node_id": "ask", "model": null,
        })
    };
    assert_eq!((&data[2], &data[5]), (&usage(7, 3), &usage(9, 1)));
    let call = json!({"tool_call_id": "c1", "tool_name": "look", "tool_source": "function", "args": {"to": 2, "id": 1}});
    assert_eq!(data[3], call);
    let mut end = call;
    end["result"] = json!({"found": 1});
    end["status"] = json!("ok");
    end["duration_ms"] = json!(5);
    assert_eq!(data[4], end);
    assert_eq!(data[6], json!({"node_id": "ask", "step": 1}));
    assert_eq!(data[7], json!({"node_id": "save", "step": 2}));
    let call =
        json!({"tool_call_id": "save", "tool_name": "put", "tool_source": "builtin", "args": {}});
    assert_eq!(data[8], call);
    let payload =
        json!({"tool_call_id": "save", "tool_name": "put", "args": {}, "approval_token": "w1"});
    assert_eq!(data[9], json!({"payload": payload}));
    // The pause of 1000 ms is not part of the call.
    let mut end = call;
    end["result"] = json!(true);
    end["status"] = json!("ok");
    end["duration_ms"] = json!(5);
    assert_eq!(data[10], end);
    assert_eq!(data[11], json!({"node_id": "save", "step": 2}));
    assert_eq!(data[12], json!({"node_id": "done", "step": 3}));
    assert_eq!(data[13], json!({"node_id": "done", "step": 3}));
    assert_eq!(data[14], json!({"output": "saved"}));
}

/// A client that comes back at any place sees the same numbers.
#[test]
fn every_beginning_of_the_rows_gives_a_beginning_of_the_events() {
    let row = row(RunStatus::Completed);
    let whole = events(&rows(), &row, 20);
    for end in 0..=rows().len() {
        let part = events(&rows()[..end], &row, 20);
        assert_eq!(part[..], whole[..part.len()]);
    }
}

#[test]
fn a_visit_over_the_limit_does_not_begin() {
    let mut rows = rows();
    rows.truncate(7);
    rows.push(life(EventKind::RunFailed, 20));
    let row = failed(
        r#"{:kind :graph :reason "max_steps" :node "save"}"#,
        "one more",
    );
    let names = [&WHOLE[..7], &["run_failed"]].concat();
    let data = check(&rows, &row, 1, &names);
    assert_eq!(
        data[7],
        json!({"error": "one more", "reason": "max_steps", "node_id": "save"})
    );
}

#[test]
fn a_denied_call_ends_before_the_run_fails() {
    let mut rows = rows();
    rows.truncate(12);
    rows.push(emitted(
        "graph.called",
        r#"{:id "save" :status "denied" :error "no"}"#,
        1_013,
    ));
    rows.push(life(EventKind::RunFailed, 1_014));
    let row = failed(
        r#"{:kind :graph :reason "approval_denied" :node "save"}"#,
        "denied",
    );
    let data = check(&rows, &row, 20, &[&WHOLE[..11], &["run_failed"]].concat());
    assert_eq!(
        (&data[10]["status"], &data[10]["error"]),
        (&json!("denied"), &json!("no"))
    );
    assert!(data[10].get("result").is_none());
    assert_eq!(data[11]["reason"], json!("approval_denied"));
}

#[test]
fn a_failure_that_is_not_of_the_graph_is_internal() {
    let rows = [
        life(EventKind::RunCreated, 0),
        life(EventKind::RunFailed, 1),
    ];
    let data = check(
        &rows,
        &failed("{}", "odd"),
        20,
        &["run_start", "run_failed"],
    );
    assert_eq!(data[1], json!({"error": "odd", "reason": "internal"}));
    let rows = [
        life(EventKind::RunCreated, 0),
        life(EventKind::RunTimedOut, 1),
    ];
    let data = check(
        &rows,
        &row(RunStatus::TimedOut),
        20,
        &["run_start", "run_failed"],
    );
    assert_eq!(data[1]["reason"], json!("timeout"));
}

#[test]
fn a_cancelled_run_ends_with_an_event_without_data() {
    for kind in [EventKind::RunCancelled, EventKind::RunTerminated] {
        let rows = [life(EventKind::RunCreated, 0), life(kind, 1)];
        let data = check(
            &rows,
            &row(RunStatus::Cancelled),
            20,
            &["run_start", "run_cancelled"],
        );
        assert_eq!(data[1], json!({}));
    }
}

#[test]
fn a_bare_input_is_shown_as_it_was_sent() {
    let row = RunRow {
        input: r#"{:graph/value [1 2]}"#.to_owned(),
        ..row(RunStatus::Running)
    };
    let data = check(&[life(EventKind::RunCreated, 0)], &row, 20, &["run_start"]);
    assert_eq!(data[0], json!({"input": [1, 2]}));
}

#[test]
fn the_audit_has_a_digest_of_the_arguments_and_not_the_arguments() {
    let mut projection = Projection::new(chain(20));
    let row = row(RunStatus::Completed);
    for item in rows() {
        projection.take(&item, &row);
    }
    let audit: Vec<Json> = projection
        .calls()
        .iter()
        .map(|call| call.row("r1"))
        .collect();
    assert_eq!(audit.len(), 2);
    assert_eq!(
        (
            &audit[0]["tool_name"],
            &audit[0]["status"],
            &audit[0]["node_id"]
        ),
        (&json!("look"), &json!("ok"), &json!("ask"))
    );
    assert_eq!(
        audit[0]["args_sha256"],
        json!(codec::digest_bytes(br#"{"id":1,"to":2}"#))
    );
    assert!(audit[0].get("args").is_none());
}

/// The run of a call waits: the pause is about that call, and the time of the wait is not part of it.
#[test]
fn a_wait_of_the_run_of_a_call_is_a_pause() {
    let of_child = |kind: EventKind, wait: &str, at_ms: i64| {
        FeedItem::Event(Event {
            kind,
            path: "inner".to_owned(),
            data: format!("{{:wait {wait:?} :actions [:retry] :child \"r2\"}}"),
            at_ms,
        })
    };
    let called = |id: &str, step: &str, at_ms: i64| {
        let data =
            format!("{{:id {id:?} :name \"look\" :args {{}} :source \"function\" :step {step:?}}}");
        emitted("graph.call", &data, at_ms)
    };
    let mut rows = rows();
    rows.truncate(4);
    rows.extend([
        called("c1", "ask.1.1", 10),
        called("c2", "ask.1.2", 10),
        entry(
            EntryKind::Timer,
            ("ask.calls[0]/ask.1.1", "call-flow"),
            "{:kind :child :run \"r2\"}",
            11,
        ),
        of_child(EventKind::WaitOpened, "w7", 12),
        of_child(EventKind::WaitAnswered, "w7", 112),
        emitted("graph.called", r#"{:id "c1" :status "ok" :result 1}"#, 120),
    ]);
    let mut projection = Projection::new(chain(20));
    let row = row(RunStatus::Running);
    let mut found = Vec::new();
    let mut pauses = Vec::new();
    for item in &rows {
        found.extend(projection.take(item, &row));
        pauses.push(projection.pause().map(|pause| pause.wait.clone()));
    }
    let names: Vec<&str> = found.iter().map(|event| event.kind).collect();
    let expected = [
        "tool_call_start",
        "tool_call_start",
        "run_paused",
        "tool_call_end",
    ];
    assert_eq!(names[3..], expected);
    let payload = json!({
        "tool_call_id": "c1", "tool_name": "look", "tool_source": "function", "args": {},
        "actions": ["retry"], "approval_token": "w7",
    });
    assert_eq!(found[5].data["payload"], payload);
    assert_eq!(found[6].data["duration_ms"], json!(10));
    assert_eq!(pauses[6..], [None, Some("w7".to_owned()), None, None]);
}

#[test]
fn calls_that_are_open_end_before_the_run_does() {
    for (kind, last) in [
        (EventKind::RunFailed, "run_failed"),
        (EventKind::RunCancelled, "run_cancelled"),
    ] {
        let mut rows = rows();
        rows.truncate(10);
        rows.push(life(kind, 1_500));
        let names = [&WHOLE[..10], &["tool_call_end", last]].concat();
        let row = failed(
            r#"{:kind :graph :reason "timeout" :node "save"}"#,
            "too long",
        );
        let data = check(&rows, &row, 20, &names);
        assert_eq!(
            (&data[10]["tool_call_id"], &data[10]["status"]),
            (&json!("save"), &json!("error"))
        );
        // The pause from 11 to 1500 is not part of the call.
        assert_eq!(data[10]["duration_ms"], json!(1));
        let mut projection = Projection::new(chain(20));
        for item in &rows {
            projection.take(item, &row);
        }
        let statuses = projection.calls().iter().map(|call| call.status.as_deref());
        assert_eq!(statuses.collect::<Vec<_>>(), [Some("ok"), Some("error")]);
    }
}

#[test]
fn the_state_has_the_input_and_the_results_of_nodes() {
    let row = row(RunStatus::Completed);
    let mut projection = Projection::new(chain(20));
    let mut states = Vec::new();
    for item in rows() {
        projection.take(&item, &row);
        states.push(json!(projection.state()));
    }
    assert_eq!(states[0], json!({"message": "hi"}));
    assert_eq!(states[6], json!({"message": "hi", "reply": "ok"}));
    let whole = json!({"message": "hi", "reply": "ok", "kept": true});
    assert_eq!(states.last(), Some(&whole));
}
