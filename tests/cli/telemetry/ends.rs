//! The span of a run is sent once, however the run was started and whatever ended it.

use serde_json::{Value, json};

use super::{
    CALLER, CALLER_SPAN, CALLER_TRACE, Span, await_span, collector, find, received, run_with,
    variables,
};
use crate::api::Api;
use crate::program::Scratch;
use crate::server::Server;

const COUNT: &str = r#"{:slug :count :invocations {:default {:inputs []}}
  :interfaces {:mcp [{:tool-name "count_up" :invocation :default}]}
  :flow '(flow/step :kv :add {:operation :increment :key "n"})}"#;
const ASK: &str = r#"{:slug :ask :flow '(flow/step :wait :go {:message "Go?" :actions [:approve] :timeout "1h"})}"#;

fn limited(policy: &str) -> String {
    format!(
        "{{:slug :one :concurrency {{:type :singleton :on-conflict {policy}}}
           :flow '(flow/step :wait :go {{:key \"go\" :timeout \"1h\"}})}}"
    )
}

fn served(collector: &Server, flows: &[(&str, &str)]) -> (Scratch, Api) {
    let scratch = Scratch::new();
    for (name, text) in flows {
        scratch.write(&format!("flows/{name}.edn"), *text);
    }
    let api = Api::serve_as(&scratch, &[], &variables(collector));
    (scratch, api)
}

fn start(api: &Api, flow: &str, body: &Value) -> String {
    let run = api.post(&format!("/api/v1/flows/{flow}/runs"), body).json();
    let id = run["id"].as_str();
    id.unwrap_or_else(|| panic!("{run}")).to_owned()
}

/// Waits until a later run has its span, and returns the spans of a run before it.
#[track_caller]
fn spans_of_run(collector: &Server, api: &Api, run: &str) -> Vec<Span> {
    let begun = std::time::Instant::now();
    let has_ended = || {
        let spans = received(collector).into_iter();
        spans.filter(|span| span.name.starts_with("invoke_workflow"))
    };
    while !has_ended().any(|span| span.get("flowstone.run.id") == run) {
        assert!(begun.elapsed().as_secs() < 60, "{:?}", received(collector));
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    // A second span would have left before that of a run that is started now.
    start(api, "count", &json!({"wait": "30s"}));
    await_span(collector, "invoke_workflow count");
    has_ended()
        .filter(|span| span.get("flowstone.run.id") == run)
        .collect()
}

#[test]
fn runs_started_in_bulk_have_a_trace_each() {
    let collector = collector();
    let (_scratch, api) = served(&collector, &[("count", COUNT)]);
    let body = json!({"flow": "count", "inputs": [{}, {}, {}]});
    let started = api.post("/api/v1/runs", &body).json();
    let mut traces = Vec::new();
    for run in started["runs"].as_array().expect("runs") {
        let run = run["id"].as_str().expect("an id");
        let ends = spans_of_run(&collector, &api, run);
        let [end] = &ends[..] else {
            panic!("{ends:?}");
        };
        let all = received(&collector);
        let step = all
            .iter()
            .find(|span| span.parent.as_ref() == Some(&end.id) && span.name == "step add");
        assert_eq!(step.map(|step| &step.trace), Some(&end.trace), "{all:?}");
        assert!(!traces.contains(&end.trace), "{ends:?}");
        traces.push(end.trace.clone());
    }
    assert_eq!(traces.len(), 3);
}

#[test]
fn a_run_started_over_mcp_is_below_the_span_of_its_caller() {
    let collector = collector();
    let (_scratch, api) = served(&collector, &[("count", COUNT)]);
    let headers = [
        &*format!("authorization: Bearer {}", api.token),
        "content-type: application/json",
        "mcp-protocol-version: 2026-07-28",
        "mcp-method: tools/call",
        "mcp-name: count_up",
        &format!("traceparent: {CALLER}"),
    ];
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let params = json!({"name": "count_up", "arguments": {}, "_meta": meta});
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
    let reply = api.request("POST /mcp", &headers, &call.to_string());
    assert_eq!(reply.status, 200, "{reply:?}");
    let spans = await_span(&collector, "invoke_workflow count");
    let run = find(&spans, "invoke_workflow count");
    assert_eq!(run.trace, CALLER_TRACE);
    let spans = await_span(&collector, "POST /mcp");
    let request = find(&spans, "POST /mcp");
    assert_eq!(request.parent.as_deref(), Some(CALLER_SPAN));
    let above = [Some(&*request.id), Some(CALLER_SPAN)];
    assert!(above.contains(&run.parent.as_deref()), "{run:?}");
    let step = find(&spans, "step add");
    assert_eq!(
        (&step.trace, step.parent.as_ref()),
        (&run.trace, Some(&run.id))
    );
}

#[test]
fn a_run_ended_by_force_has_its_span_once() {
    let collector = collector();
    let (scratch, api) = served(&collector, &[("count", COUNT), ("ask", ASK)]);
    let run = start(&api, "ask", &json!({"wait": "30s"}));
    let body = json!({"force": true, "reason": "no"});
    assert_eq!(
        api.post(&format!("/api/v1/runs/{run}/cancel"), &body)
            .status,
        202
    );
    let ends = spans_of_run(&collector, &api, &run);
    assert_eq!(ends.len(), 1, "{ends:?}");
    assert_eq!(ends[0].get("flowstone.status"), "terminated");
    assert_eq!(ends[0].get("error.type"), "terminated");

    let run = start(&api, "ask", &json!({"wait": "30s"}));
    let args = ["runs", "cancel", &*run, "--force"];
    run_with(&scratch, &args, &variables(&collector)).ok();
    let ends = spans_of_run(&collector, &api, &run);
    assert_eq!(ends.len(), 1, "{ends:?}");
}

#[test]
fn a_replaced_run_has_its_span_once() {
    let collector = collector();
    let flow = limited(":cancel-running");
    let (_scratch, api) = served(&collector, &[("count", COUNT), ("one", &flow)]);
    let first = start(&api, "one", &json!({"wait": "30s"}));
    let second = start(&api, "one", &json!({}));
    let ends = spans_of_run(&collector, &api, &first);
    assert_eq!(ends.len(), 1, "{ends:?}");
    assert_eq!(ends[0].get("flowstone.status"), "cancelled");
    // Replaced by the starts of a request that may start many.
    let third = api
        .post("/api/v1/runs", &json!({"flow": "one", "inputs": [{}]}))
        .json();
    assert_eq!(third["runs"].as_array().map(Vec::len), Some(1), "{third}");
    let ends = spans_of_run(&collector, &api, &second);
    assert_eq!(ends.len(), 1, "{ends:?}");
    assert_eq!(ends[0].get("flowstone.status"), "cancelled");
}

#[test]
fn a_run_that_is_over_its_time_has_its_span_once() {
    let collector = collector();
    let (_scratch, api) = served(&collector, &[("count", COUNT), ("ask", ASK)]);
    let run = start(&api, "ask", &json!({"timeout": "200ms"}));
    let ends = spans_of_run(&collector, &api, &run);
    assert_eq!(ends.len(), 1, "{ends:?}");
    assert_eq!(ends[0].get("flowstone.status"), "timed-out");
    assert_eq!(ends[0].get("error.type"), "timed-out");
}

#[test]
fn a_run_over_several_passes_is_one_trace() {
    let collector = collector();
    let scratch = Scratch::new();
    scratch.write(
        "flow.edn",
        "{:slug :passes
          :flow '(let [n (or (:n (flow/input)) 0)]
                   (flow/step :kv :add {:operation :increment :key \"n\"})
                   (if (= n 2) :done (flow/continue-as-new {:n (inc n)})))}",
    );
    run_with(
        &scratch,
        &["run", "flow.edn", "--quiet"],
        &variables(&collector),
    )
    .ok();
    let spans = received(&collector);
    super::one_trace(&spans);
    let run = find(&spans, "invoke_workflow passes");
    let steps: Vec<&Span> = spans
        .iter()
        .filter(|span| span.name == "step add")
        .collect();
    assert_eq!(steps.len(), 3, "{spans:?}");
    assert!(
        steps
            .iter()
            .all(|step| step.parent.as_ref() == Some(&run.id))
    );
    // The journal has the last pass only, and gives the spans of that pass again.
    let shown = scratch.json_of(&["runs", "spans", run.get("flowstone.run.id")]);
    let shown: Vec<Span> = shown["spans"]
        .as_array()
        .expect("spans")
        .iter()
        .map(Span::read)
        .collect();
    let ids: Vec<&String> = shown.iter().map(|span| &span.id).collect();
    assert_eq!(ids, [&steps[2].id, &run.id]);
}
