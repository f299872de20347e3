//! Spans as a collector receives them, and traces that come in and go out.

mod ends;

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::api::Api;
use crate::program::{Ran, Scratch};
use crate::server::{Answer, Request, Server};

const ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";
const PROTOCOL: &str = "OTEL_EXPORTER_OTLP_PROTOCOL";
const CALLER: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
const CALLER_TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const CALLER_SPAN: &str = "b7ad6b7169203331";

/// A collector that takes everything.
fn collector() -> Server {
    Server::start(|_, _| Answer::Json("{}".to_owned()))
}

/// The variables that send spans to a collector, soon.
fn variables(collector: &Server) -> Vec<(&'static str, String)> {
    vec![
        (ENDPOINT, collector.url("")),
        (PROTOCOL, "http/json".to_owned()),
        ("OTEL_BSP_SCHEDULE_DELAY", "50".to_owned()),
    ]
}

fn run_with(scratch: &Scratch, args: &[&str], variables: &[(&str, String)]) -> Ran {
    let mut command = scratch.command(args);
    Ran::to_the_end(command.envs(variables.iter().map(|(key, value)| (*key, value))))
}

/// A span with what tests look at.
#[derive(Debug, Clone)]
struct Span {
    trace: String,
    id: String,
    parent: Option<String>,
    name: String,
    kind: i64,
    millis: (i64, i64),
    attributes: BTreeMap<String, String>,
    links: Vec<String>,
    is_error: bool,
}

impl Span {
    fn read(span: &Value) -> Span {
        let text = |key: &str| span[key].as_str().unwrap_or_default().to_owned();
        let millis = |key: &str| text(key).parse::<i64>().expect("a time") / 1_000_000;
        let attributes = span["attributes"].as_array().expect("attributes").iter();
        let links = span["links"].as_array().into_iter().flatten();
        Span {
            trace: text("traceId"),
            id: text("spanId"),
            parent: span["parentSpanId"].as_str().map(str::to_owned),
            name: text("name"),
            kind: span["kind"].as_i64().expect("a kind"),
            millis: (millis("startTimeUnixNano"), millis("endTimeUnixNano")),
            attributes: attributes
                .map(|pair| {
                    let value = &pair["value"];
                    let value = value["stringValue"]
                        .as_str()
                        .or(value["intValue"].as_str())
                        .map_or_else(|| value.to_string(), str::to_owned);
                    (pair["key"].as_str().unwrap_or_default().to_owned(), value)
                })
                .collect(),
            links: links
                .map(|link| link["spanId"].as_str().unwrap_or_default().to_owned())
                .collect(),
            is_error: span["status"]["code"] == 2,
        }
    }

    fn get(&self, key: &str) -> &str {
        self.attributes.get(key).map_or("", String::as_str)
    }
}

/// Returns all spans that a collector got, in order.
fn received(collector: &Server) -> Vec<Span> {
    let mut spans = Vec::new();
    for request in collector.requests() {
        assert_eq!(request.path, "/v1/traces");
        let body: Value = serde_json::from_str(&request.body).expect("a JSON body");
        for resource in body["resourceSpans"].as_array().expect("resources") {
            for scope in resource["scopeSpans"].as_array().expect("scopes") {
                spans.extend(
                    scope["spans"]
                        .as_array()
                        .expect("spans")
                        .iter()
                        .map(Span::read),
                );
            }
        }
    }
    spans
}

/// Waits until a collector has a span with a name.
fn await_span(collector: &Server, name: &str) -> Vec<Span> {
    let begun = Instant::now();
    loop {
        let spans = received(collector);
        if spans.iter().any(|span| span.name == name) {
            return spans;
        }
        assert!(
            begun.elapsed() < Duration::from_secs(60),
            "{name}: {spans:?}"
        );
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[track_caller]
fn find<'a>(spans: &'a [Span], name: &str) -> &'a Span {
    let mut found = spans.iter().filter(|span| span.name == name);
    let span = found.next();
    span.unwrap_or_else(|| panic!("no `{name}` in {spans:?}"))
}

/// Draws spans as a tree: each with its children below it, in the order of their names.
fn tree(spans: &[Span]) -> String {
    fn add(spans: &[Span], parent: Option<&str>, depth: usize, out: &mut String) {
        let known = |span: &Span| {
            let above = span.parent.as_deref();
            above
                .filter(|above| spans.iter().any(|it| it.id == *above))
                .map(str::to_owned)
        };
        let mut children: Vec<&Span> = spans
            .iter()
            .filter(|span| known(span).as_deref() == parent)
            .collect();
        children.sort_by_key(|span| (span.millis.0, span.name.clone()));
        for span in children {
            let mark = if span.is_error { " failed" } else { "" };
            out.push_str(&format!("{}{}{mark}\n", "  ".repeat(depth), span.name));
            add(spans, Some(&span.id), depth + 1, out);
        }
    }
    let mut out = String::new();
    add(spans, None, 0, &mut out);
    out
}

/// Checks that all spans have one trace and each an id of its own.
#[track_caller]
fn one_trace(spans: &[Span]) {
    let traces: BTreeSet<&str> = spans.iter().map(|span| &*span.trace).collect();
    assert_eq!(traces.len(), 1, "{spans:?}");
    let ids: BTreeSet<&str> = spans.iter().map(|span| &*span.id).collect();
    assert_eq!(ids.len(), spans.len(), "{spans:?}");
}

/// A server that is busy the first time.
fn busy_once() -> Server {
    Server::start(|_, before| match before {
        0 => Answer::Status(503, "Service Unavailable"),
        _ => Answer::Json("{\"ok\": true}".to_owned()),
    })
}

fn retrying(url: &str) -> String {
    format!(
        "{{:slug :retrying :flow
           '(do (flow/step :kv :count {{:operation :increment :key \"n\"}})
                (:status (flow/step :http :tell {{:url \"{url}\" :retry {{:max-attempts 2 :backoff-ms 1 :jitter 0}}}})))}}"
    )
}

#[test]
fn a_run_with_a_retry_is_one_trace() {
    let (collector, server) = (collector(), busy_once());
    let scratch = Scratch::with_local_servers();
    scratch.write("flow.edn", retrying(&server.url("/tell")));
    let mut variables = variables(&collector);
    variables.push(("OTEL_SERVICE_NAME", "orders".to_owned()));
    run_with(&scratch, &["run", "flow.edn", "--quiet"], &variables).ok();
    let spans = received(&collector);
    one_trace(&spans);
    assert_eq!(
        tree(&spans),
        "invoke_workflow retrying\n  step count\n  step tell\n    attempt 1 failed\n    attempt 2\n"
    );
    let run = find(&spans, "invoke_workflow retrying");
    assert_eq!(run.get("flowstone.status"), "completed");
    assert_eq!(run.get("gen_ai.workflow.name"), "retrying");
    assert_eq!(run.parent, None);
    let first = find(&spans, "attempt 1");
    assert_eq!(first.kind, 3);
    assert_eq!(first.get("http.response.status_code"), "503");
    assert!(first.get("error.type").starts_with("E07"), "{first:?}");
    let second = find(&spans, "attempt 2");
    assert_eq!(second.get("http.response.status_code"), "200");
    assert!(
        server.url("").ends_with(second.get("server.address")),
        "{second:?}"
    );
    assert_eq!(
        find(&spans, "step tell").get("flowstone.step.attempts"),
        "2"
    );
    let resource = &collector.requests()[0].body;
    assert!(
        resource.contains("\"stringValue\":\"orders\""),
        "{resource}"
    );

    // The server receives the span of the attempt.
    let told: Vec<String> = server.requests().iter().map(|it| it.head.clone()).collect();
    for (head, attempt) in told.iter().zip([first, second]) {
        let parent = format!("traceparent: 00-{}-{}-01", attempt.trace, attempt.id);
        assert!(head.contains(&parent), "{head}");
    }

    // The journal gives the same spans.
    let id = run.get("flowstone.run.id");
    let shown = scratch.json_of(&["runs", "spans", id]);
    let shown: Vec<Span> = shown["spans"]
        .as_array()
        .expect("spans")
        .iter()
        .map(Span::read)
        .collect();
    let ids = |spans: &[Span]| {
        spans
            .iter()
            .map(|span| span.id.clone())
            .collect::<BTreeSet<_>>()
    };
    assert_eq!(ids(&shown), ids(&spans));
    assert_eq!(tree(&shown), tree(&spans));
    // Sent again by hand, they are the same spans again.
    run_with(&scratch, &["runs", "spans", id, "--send"], &variables).ok();
    assert_eq!(received(&collector).len(), 2 * spans.len());
    let unsent = scratch.run(&["runs", "spans", id, "--send"]);
    assert!(unsent.err.contains("E1110"), "{unsent:?}");
}

/// A model that calls a tool, and then answers.
fn model(request: &Request) -> Answer {
    let body: Value = serde_json::from_str(&request.body).expect("a JSON body");
    let messages = body["messages"].as_array().expect("messages");
    let is_last = messages.iter().any(|it| it["role"] == "tool");
    let delta = match is_last {
        true => json!({"content": "all done, hunter2"}),
        false => {
            let function = json!({"name": "notes_count", "arguments": "{}"});
            let call = json!({"index": 0, "id": "c1", "type": "function", "function": function});
            json!({"content": "", "tool_calls": [call]})
        }
    };
    let usage = json!({"prompt_tokens": 10, "completion_tokens": 3, "total_tokens": 13});
    let choice = json!({"index": 0, "delta": delta, "finish_reason": "stop"});
    Answer::Events(vec![
        json!({"id": "1", "model": "fake-2", "choices": [choice], "usage": usage}).to_string(),
        "[DONE]".to_owned(),
    ])
}

const AGENT: &str = r#"{:slug :helper
  :functions [{:id :next :code (fn [_] {:operation :increment :key "calls"})}]
  :steps [{:id :notes/count :type :kv :description "Counts." :input-schema [:map] :prepare :next}]
  :flow '(:content (flow/step :agent :work {:connection :ai :objective "Count, hunter2."
                                            :tools {:steps [:notes/count]}}))}"#;

fn with_model(model: &Server) -> Scratch {
    let scratch = Scratch::new();
    scratch.write("agent.edn", AGENT);
    scratch.write(
        "flowstone.edn",
        format!(
            "{{:allow {{:net [\"127.0.0.1\"]}}
               :connections {{:ai {{:type :http-api :backend \"openai-compatible\" :model \"fake\"
                                    :base-url \"{}\" :auth {{:type :none}}}}}}}}",
            model.url("/v1")
        ),
    );
    scratch
}

#[test]
fn an_agent_has_spans_of_models_and_tools() {
    let (collector, model) = (collector(), Server::start(|request, _| model(request)));
    let scratch = with_model(&model);
    run_with(
        &scratch,
        &["run", "agent.edn", "--quiet"],
        &variables(&collector),
    )
    .ok();
    let spans = received(&collector);
    one_trace(&spans);
    let agent = find(&spans, "invoke_agent work");
    assert_eq!(agent.get("gen_ai.operation.name"), "invoke_agent");
    let run = find(&spans, "invoke_workflow helper");
    let conversation = format!("{}/work", run.get("flowstone.run.id"));
    assert_eq!(agent.get("gen_ai.conversation.id"), conversation);
    assert_eq!(agent.parent.as_ref(), Some(&find(&spans, "step work").id));
    let chats: Vec<&Span> = spans
        .iter()
        .filter(|span| span.name.starts_with("chat "))
        .collect();
    assert_eq!(chats.len(), 2, "{spans:?}");
    for (chat, asked) in chats.iter().zip(model.requests()) {
        assert_eq!(chat.parent.as_ref(), Some(&agent.id));
        assert_eq!(
            (chat.kind, chat.get("gen_ai.response.model")),
            (3, "fake-2")
        );
        assert_eq!(chat.get("gen_ai.usage.input_tokens"), "10");
        assert_eq!(chat.get("gen_ai.usage.output_tokens"), "3");
        let parent = format!("traceparent: 00-{}-{}-01", chat.trace, chat.id);
        assert!(asked.head.contains(&parent), "{}", asked.head);
    }
    let tool = find(&spans, "execute_tool notes_count");
    assert_eq!(tool.parent.as_ref(), Some(&agent.id), "{}", tree(&spans));
    assert_eq!(tool.get("gen_ai.tool.call.id"), "c1");
    let all: String = collector
        .requests()
        .iter()
        .map(|it| it.body.clone())
        .collect();
    assert!(!all.contains("hunter2"), "contents are not sent");
}

#[test]
fn contents_are_sent_where_that_is_asked_for() {
    let (collector, model) = (collector(), Server::start(|request, _| model(request)));
    let scratch = with_model(&model);
    let mut variables = variables(&collector);
    let capture = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT";
    variables.push((capture, "true".to_owned()));
    run_with(&scratch, &["run", "agent.edn", "--quiet"], &variables).ok();
    let spans = received(&collector);
    let chats: Vec<&Span> = spans
        .iter()
        .filter(|span| span.name.starts_with("chat "))
        .collect();
    assert!(
        chats[1]
            .get("gen_ai.output.messages")
            .contains("all done, hunter2"),
        "{chats:?}"
    );
    assert!(
        chats[0].get("gen_ai.input.messages").contains("hunter2"),
        "{chats:?}"
    );
}

#[test]
fn a_child_is_below_the_step_that_calls_it() {
    let collector = collector();
    let scratch = Scratch::new();
    scratch.write(
        "flows/child.edn",
        "{:slug :child :flow '(flow/step :sleep :nap {:seconds 0})}",
    );
    scratch.write(
        "flows/top.edn",
        "{:slug :top :flow '(flow/call-flow :child {})}",
    );
    let mut variables = variables(&collector);
    variables.push(("TRACEPARENT", CALLER.to_owned()));
    run_with(&scratch, &["run", "flows/top.edn", "--quiet"], &variables).ok();
    let spans = received(&collector);
    one_trace(&spans);
    assert_eq!(
        tree(&spans),
        "invoke_workflow top\n  step child\n    invoke_workflow child\n      step nap\n"
    );
    let top = find(&spans, "invoke_workflow top");
    assert_eq!(
        (&*top.trace, top.parent.as_deref()),
        (CALLER_TRACE, Some(CALLER_SPAN))
    );
}

#[test]
fn a_killed_run_continues_its_trace_and_sends_no_span_twice() {
    let collector = collector();
    let scratch = Scratch::with_local_servers();
    let target = std::sync::Arc::new(std::sync::atomic::AtomicU32::new(0));
    let killed = target.clone();
    let server = Server::start(move |_, before| {
        if before == 2 {
            // Its spans up to here have left by now.
            std::thread::sleep(Duration::from_millis(400));
            let id = killed.load(std::sync::atomic::Ordering::SeqCst).to_string();
            let status = std::process::Command::new("kill")
                .args(["-9", &id])
                .status();
            assert!(status.is_ok_and(|status| status.success()));
            return Answer::HalfBody;
        }
        Answer::Json("{}".to_owned())
    });
    let url = server.url("/");
    scratch.write(
        "flow.edn",
        format!(
            "{{:slug :killed :flow
               '(doseq [i (range 5)]
                  (flow/step :http :tell {{:url \"{url}\" :method :post :json {{:i i}} :on-doubt :retry}}))}}"
        ),
    );
    let variables = variables(&collector);
    let mut command = scratch.command(&["run", "flow.edn", "--quiet"]);
    let child = command
        .envs(variables.iter().map(|(key, value)| (*key, value)))
        .stdin(std::process::Stdio::null())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .expect("the program starts");
    target.store(child.id(), std::sync::atomic::Ordering::SeqCst);
    assert_eq!(Ran::of(child).code, None);
    let before = received(&collector);
    assert!(
        before.iter().any(|span| span.name == "step tell#2"),
        "{before:?}"
    );
    run_with(
        &scratch,
        &["runs", "resume", "--all", "--quiet"],
        &variables,
    )
    .ok();
    let spans = received(&collector);
    one_trace(&spans);
    let steps = spans
        .iter()
        .filter(|span| span.name.starts_with("step "))
        .count();
    assert_eq!(steps, 5, "{spans:?}");
    let run = find(&spans, "invoke_workflow killed");
    assert!(
        spans.iter().all(|span| run.millis.0 <= span.millis.0),
        "{spans:?}"
    );
    // A replay commits nothing, and sends nothing.
    let id = run.get("flowstone.run.id");
    run_with(&scratch, &["runs", "replay", id], &variables).ok();
    assert_eq!(received(&collector).len(), spans.len());
}

const HOOK: &str = r#"{:slug :hooked
  :invocations {:default {:inputs []}}
  :interfaces {:webhook [{:id :in :invocation :default :auth {:type :api-key :secret-ref :hook}}]
               :http [{:id :get :invocation :default}]}
  :flow '(do (flow/step :kv :count {:operation :increment :key "n"}) {:n 1})}"#;

#[test]
fn callers_with_a_token_are_parents_and_webhooks_are_linked() {
    let collector = collector();
    let scratch = Scratch::new();
    scratch.write(".env", "HOOK=s1\n");
    scratch.write("flows/hooked.edn", HOOK);
    let api = Api::serve_as(&scratch, &[], &variables(&collector));
    let traced = format!("traceparent: {CALLER}");
    let json = "content-type: application/json";
    let reply = api.request(
        "POST /api/flows/hooked/interfaces/live/in?secret=hunter2",
        &["x-api-key: s1", json, &traced],
        "{}",
    );
    assert_eq!(reply.status, 200, "{reply:?}");
    let spans = await_span(&collector, "invoke_workflow hooked");
    let run = find(&spans, "invoke_workflow hooked");
    assert_ne!(run.trace, CALLER_TRACE);
    assert_eq!(
        (run.parent.as_ref(), &*run.links),
        (None, &[CALLER_SPAN.to_owned()][..])
    );
    assert_eq!(run.get("flowstone.started_by"), "webhook:in");
    let route = "POST /api/flows/{slug}/interfaces/{target}/{id}";
    let spans = await_span(&collector, route);
    let request = find(&spans, route);
    assert_eq!(
        (request.kind, request.get("http.response.status_code")),
        (2, "200")
    );
    assert_ne!(request.trace, CALLER_TRACE);

    let token = format!("authorization: Bearer {}", api.token);
    let reply = api.request(
        "POST /api/v1/flows/hooked/runs",
        &[&token, json, &traced],
        "{\"wait\": \"30s\"}",
    );
    assert_eq!(reply.status, 200, "{reply:?}");
    let route = "POST /api/v1/flows/{slug}/runs";
    let spans = await_span(&collector, route);
    let ours: Vec<&Span> = spans
        .iter()
        .filter(|span| span.trace == CALLER_TRACE)
        .collect();
    let names: BTreeSet<&str> = ours.iter().map(|span| &*span.name).collect();
    assert!(
        names.contains("invoke_workflow hooked") && names.contains(route),
        "{spans:?}"
    );
    let request = ours
        .iter()
        .find(|span| span.name == route)
        .expect("the request");
    assert_eq!(request.parent.as_deref(), Some(CALLER_SPAN));
    let about = reply.header("x-request-id").unwrap_or_default();
    assert_eq!(request.get("flowstone.request.id"), about);
    assert!(!request.get("flowstone.token.id").is_empty());
    let all: String = collector
        .requests()
        .iter()
        .map(|it| it.body.clone())
        .collect();
    assert!(!all.contains("hunter2") && !all.contains(&api.token));
}

#[test]
fn a_collector_that_is_down_slows_no_run_and_is_counted() {
    let scratch = Scratch::new();
    scratch.write("flows/hooked.edn", HOOK);
    let closed = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = closed.local_addr().expect("an address");
    drop(closed);
    let variables = [
        (ENDPOINT, format!("http://{address}")),
        ("OTEL_EXPORTER_OTLP_TIMEOUT", "300".to_owned()),
        ("OTEL_BSP_SCHEDULE_DELAY", "10".to_owned()),
    ];
    let begun = Instant::now();
    run_with(
        &scratch,
        &["run", "flows/hooked.edn", "--quiet"],
        &variables,
    )
    .ok();
    assert!(begun.elapsed() < Duration::from_secs(30));
    let api = Api::serve_as(&scratch, &[], &variables);
    let token = format!("authorization: Bearer {}", api.token);
    let json = "content-type: application/json";
    let start = || {
        api.request(
            "POST /api/v1/flows/hooked/runs",
            &[&token, json],
            "{\"wait\": \"30s\"}",
        )
    };
    assert_eq!(start().status, 200);
    let begun = Instant::now();
    loop {
        let text = api.request("GET /metrics", &[&token], "").body;
        assert!(text.contains("process_cpu_seconds_total "), "{text}");
        assert!(text.ends_with("# EOF\n"), "{text}");
        let count = text.lines().find_map(|line| {
            line.strip_prefix("flowstone_telemetry_dropped_total{signal=\"traces\"} ")
        });
        if count
            .and_then(|count| count.parse().ok())
            .is_some_and(|count: u64| count >= 2)
        {
            break;
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "{text}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn samplers_and_switches_turn_spans_off() {
    let collector = collector();
    let scratch = Scratch::new();
    scratch.write(
        "flow.edn",
        "{:slug :quiet :flow '(flow/step :kv :n {:operation :increment :key \"n\"})}",
    );
    for (key, value) in [
        ("OTEL_TRACES_SAMPLER", "always_off"),
        ("OTEL_SDK_DISABLED", "true"),
        ("OTEL_TRACES_EXPORTER", "none"),
    ] {
        let mut variables = variables(&collector);
        variables.push((key, value.to_owned()));
        run_with(
            &scratch,
            &["run", "flow.edn", "--quiet", "--new"],
            &variables,
        )
        .ok();
        assert!(collector.requests().is_empty(), "{key}");
    }
    let mut variables = variables(&collector);
    variables.push(("OTEL_TRACES_SAMPLER", "sometimes".to_owned()));
    let ran = run_with(
        &scratch,
        &["run", "flow.edn", "--quiet", "--new"],
        &variables,
    );
    assert!(
        ran.err.contains("OTEL_TRACES_SAMPLER is ignored"),
        "{ran:?}"
    );
    assert_eq!(received(&collector).len(), 2);
}

#[test]
fn a_claimed_job_names_the_span_of_its_step() {
    let collector = collector();
    let scratch = Scratch::new();
    scratch.write(
        "flow.edn",
        "{:slug :jobs :flow '(flow/step :job :resize {:op :submit :job-type \"image\" :payload {:n 1}})}",
    );
    let variables = variables(&collector);
    run_with(&scratch, &["run", "flow.edn", "--quiet"], &variables);
    let claim = [
        "jobs", "claim", "--type", "image", "--worker", "w", "--json",
    ];
    let job = run_with(&scratch, &claim, &variables).json();
    let spans = scratch.json_of(&["runs", "spans", &run_of(&scratch)]);
    let parent = job["jobs"][0]["traceparent"]
        .as_str()
        .unwrap_or_default()
        .to_owned();
    let step = &spans["spans"]
        .as_array()
        .expect("spans")
        .iter()
        .map(Span::read);
    let step = step.clone().find(|span| span.name == "step resize");
    let step = step.unwrap_or_else(|| panic!("{spans}"));
    assert_eq!(parent, format!("00-{}-{}-01", step.trace, step.id));
}

fn run_of(scratch: &Scratch) -> String {
    let listed = scratch.json_of(&["runs", "list"]);
    listed["runs"][0]["id"]
        .as_str()
        .unwrap_or_default()
        .to_owned()
}

#[test]
fn commits_are_linked_to_the_runs_in_them() {
    let collector = collector();
    let scratch = Scratch::new();
    scratch.write(
        "flow.edn",
        "{:slug :quiet :flow '(flow/step :kv :n {:operation :increment :key \"n\"})}",
    );
    let mut variables = variables(&collector);
    variables.push(("FLOWSTONE_LOG", "flowstone::store=debug".to_owned()));
    let ran = run_with(&scratch, &["run", "flow.edn", "--quiet"], &variables);
    assert!(ran.err.contains("flowstone::store: committed"), "{ran:?}");
    let spans = received(&collector);
    let run = find(&spans, "invoke_workflow quiet");
    let mut commits = spans.iter().filter(|span| span.name == "store commit");
    let commit = commits.find(|span| span.links.contains(&run.id));
    let commit = commit.unwrap_or_else(|| panic!("{spans:?}"));
    assert_ne!(commit.trace, run.trace);
    assert!(!commit.get("flowstone.store.rows").is_empty(), "{commit:?}");
}
