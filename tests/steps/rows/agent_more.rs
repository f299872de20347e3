//! The rows of `tests/coverage/agent.tsv` about the address of the model, and about agents that call others.

use serde_json::json;

use crate::agent::{Bench, STEPS, calls, says};
use crate::server::{Say, events};

/// Returns a turn of Claude with only text.
fn claude_says(text: &str) -> Say {
    let delta = json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}});
    events(&[
        r#"{"type":"message_start","message":{"id":"msg_1","role":"assistant","content":[],"model":"claude-sonnet-5-5","usage":{"input_tokens":10,"output_tokens":1}}}"#,
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#,
        &delta.to_string(),
        r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":12}}"#,
        r#"{"type":"message_stop"}"#,
    ])
}

const CLAUDE: &str =
    "{:backend :anthropic :base-url \"URL\" :auth {:type :api-key :secret-ref :ai-key}}";

#[test]
fn cache_system() {
    let bench = Bench::behind(CLAUDE, "", vec![claude_says("ok")]);
    let found = bench.run(
        "(:content (flow/step :agent :a {:connection :ai :objective \"Go.\" :cache-system? true}))",
    );
    assert_eq!(found, "\"ok\"");
    let system = bench.asked()[0]["system"].clone();
    let last = system.as_array().and_then(|it| it.last()).expect("a block");
    assert_eq!(last["cache_control"], json!({"type": "ephemeral"}));
    let bench = Bench::new(vec![says("ok")]);
    let refused =
        bench.run("(flow/step :agent :a {:connection :ai :objective \"Go.\" :cache-system? true})");
    assert!(refused.contains("cannot do `:cache-system?`"), "{refused}");
    assert!(bench.asked().is_empty());
}

/// Returns the first line of the request when an agent calls Azure with these fields besides its objective.
fn azure(connection: &str, more: &str) -> (String, String) {
    let bench = Bench::behind(connection, "", vec![says("ok")]);
    let found = bench.run(&format!(
        "(:content (flow/step :agent :a {{:connection :ai :objective \"Go.\" {more}}}))"
    ));
    assert_eq!(found, "\"ok\"");
    let request = bench.server.requests().remove(0);
    let (line, rest) = request.split_once('\n').expect("a line");
    (line.to_owned(), rest.to_owned())
}

const AZURE: &str = "{:backend :azure-openai :base-url \"URL\" :model \"m\" :auth {:type :api-key :secret-ref :ai-key}}";

#[test]
fn deployment() {
    let (line, rest) = azure(AZURE, ":deployment \"prod-reviewer\"");
    let expected = "POST /openai/deployments/prod-reviewer/chat/completions?api-version=";
    assert!(line.starts_with(expected), "{line}");
    assert!(rest.contains("\napi-key: s3cret\n"), "{rest}");
    let refused = Bench::new(Vec::new())
        .project
        .check("(flow/step :agent :a {:connection :ai :objective \"Go.\" :deployment :prod})");
    assert!(refused.contains(":deployment"), "{refused}");
}

#[test]
fn api_version() {
    let more = ":deployment \"d\" :api-version \"2025-04-01-preview\"";
    let (line, _) = azure(AZURE, more);
    assert_eq!(
        line,
        "POST /openai/deployments/d/chat/completions?api-version=2025-04-01-preview HTTP/1.1"
    );
    let (line, _) = azure(AZURE, ":api-version \"preview\"");
    assert_eq!(
        line,
        "POST /openai/v1/chat/completions?api-version=preview HTTP/1.1"
    );
    let refused = Bench::new(Vec::new())
        .project
        .check("(flow/step :agent :a {:connection :ai :objective \"Go.\" :api-version 2025})");
    assert!(refused.contains(":api-version"), "{refused}");
}

#[test]
fn approval_plan_steps() {
    let plan = "{\"steps\":[\"look\",\"publish\"]}";
    let turns = vec![
        calls(&[("c1", "memory_plan", plan)]),
        calls(&[("c2", "math_add", "{\"a\":1,\"b\":2}")]),
        calls(&[("c3", "memory_checkpoint", "{\"step\":\"look\"}")]),
        calls(&[("c4", "math_add", "{\"a\":3,\"b\":4}")]),
        says("done"),
    ];
    let approval = "{:mode :plan-steps :step-names #{\"publish\"}}";
    let agent = |approval: &str| {
        format!(
            "(flow/step :agent :a {{:connection :ai :objective \"Go.\" :tools {{:steps [:math/add]}} :memory {{:table \"notes\" :plan {{:enforce true}}}} :approval {approval}}})"
        )
    };
    let bench = Bench::with(STEPS, turns);
    let found = bench.run(&format!(
        "(let [r {} q (:approval-request r)] [(:abort? r) (:iterations r) (mapv :name (:tool-calls r)) (:mode q) (mapv (juxt :tool :arguments) (:actions q))])",
        agent(approval)
    ));
    // In the step `look`, the same tool was performed without approval.
    assert_eq!(
        found,
        "[true 4 [\"memory_plan\" \"math_add\" \"memory_checkpoint\"] :plan-steps [[\"math_add\" {:a 3 :b 4}]]]"
    );
    assert_eq!(bench.asked().len(), 4);
    let refused = bench.run(
        "(flow/step :agent :a {:connection :ai :objective \"Go.\" :approval {:mode :plan-steps}})",
    );
    assert!(refused.contains("needs `:step-names`"), "{refused}");
}

#[test]
fn base_url() {
    let (one, other) = (Bench::new(Vec::new()), Bench::new(vec![says("ok")]));
    let found = one.run(&format!(
        "(:content (flow/step :agent :a {{:connection :ai :objective \"Go.\" :base-url \"{}/v1\" :auth {{:type :bearer :secret-ref :other-key}}}}))",
        other.server.url
    ));
    assert_eq!(found, "\"ok\"");
    assert!(one.asked().is_empty());
    assert_eq!(other.asked().len(), 1);
}

#[test]
fn available_steps() {
    let bench = Bench::new(vec![says("ok")]);
    let found = bench.run("(:content (flow/step :agent :a {:connection :ai :objective \"Go.\" :available-steps [:table :search]}))");
    assert_eq!(found, "\"ok\"");
    let tools = bench.asked()[0]["tools"].clone();
    assert_eq!(
        (&tools[0]["function"]["name"], &tools[1]["function"]["name"]),
        (&json!("table"), &json!("search"))
    );
    let refused = bench.project.check(
        "(flow/step :agent :a {:connection :ai :objective \"Go.\" :available-steps [:http]})",
    );
    assert!(
        refused.contains("there is no built-in tool `http`"),
        "{refused}"
    );
}

#[test]
fn tools() {
    let bench = Bench::with(
        STEPS,
        vec![calls(&[("c1", "math_add", "{\"a\":1,\"b\":2}")]), says("3")],
    );
    let found = bench.run("(mapv :name (:tool-calls (flow/step :agent :a {:connection :ai :objective \"Go.\" :tools {:steps [:math/add]}})))");
    assert_eq!(found, "[\"math_add\"]");
    let refused = bench
        .project
        .check("(flow/step :agent :a {:connection :ai :objective \"Go.\" :tools {:stepz []}})");
    assert!(refused.contains("did you mean `:steps`?"), "{refused}");
}

#[test]
fn usage_of_an_agent_inside() {
    let agents = ":agents [{:id :review/security :description \"Looks.\" :objective \"Look for problems.\" :connection :ai :input-schema [:map [:area :string]]}]";
    let turns = vec![
        says("It is fine."),
        calls(&[("c1", "review_security", "{\"area\":\"login\"}")]),
        says("The login is open."),
        says("One problem: the login is open."),
    ];
    let bench = Bench::with(agents, turns);
    let found = bench.run("(let [r (flow/step :agent :a {:connection :ai :objective \"Review.\" :tools {:agents [:review/security] :require {:agents [:review/security]}}})] [(:content r) (:iterations r) (:tokens-used r) (:result (first (:tool-calls r)))])");
    // The tokens of the nested agent are counted.
    assert_eq!(
        found,
        "[\"One problem: the login is open.\" 3 60 \"The login is open.\"]"
    );
}

#[test]
fn approval_true() {
    // Only calls that change something need approval.
    let steps = ":functions [{:id :next :code (fn [_] {:operation :set :key \"a\" :value 1})}] \
                 :steps [{:id :notes/set :type :kv :description \"Sets.\" :input-schema [:map] :prepare :next}]";
    let run = |name: &str, tools: &str| {
        let bench = Bench::with(
            &format!("{steps} "),
            vec![calls(&[("c1", name, "{}")]), says("done")],
        );
        bench.run(&format!(
            "(let [r (flow/step :agent :a {{:connection :ai :objective \"Go.\" :approval true {tools}}})] [(:content r) (:abort? r) (:mode (:approval-request r))])"
        ))
    };
    assert_eq!(
        run("notes_set", ":tools {:steps [:notes/set]}"),
        "[\"\" true :all-mutations]"
    );
    assert_eq!(
        run("search", ":available-steps [:search]"),
        "[\"done\" nil nil]"
    );
}
