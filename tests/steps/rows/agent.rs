//! The rows of `tests/coverage/agent.tsv` about an agent's prompt, and about the request of each turn.

use serde_json::{Value as Json, json};

use crate::agent::{Bench, STEPS, calls, says};
use crate::server::{Say, reply};

/// Creates a model that refuses each request: the tests inspect only the requests.
fn deaf() -> Say {
    reply(
        "400 Bad Request",
        &["content-type: application/json"],
        "{\"error\":{\"message\":\"no\"}}",
    )
}

/// Returns the first request of an agent with these fields.
#[track_caller]
fn first(fields: &str) -> Json {
    let bench = Bench::new(vec![deaf()]);
    let found = bench.run(&format!(
        "(flow/step :agent :a {{:connection :ai :objective \"Go.\" {fields}}})"
    ));
    let asked = bench.asked();
    assert!(!asked.is_empty(), "{found}");
    asked[0].clone()
}

/// Checks that a field changes the first request, and that an invalid value is refused before any request.
#[track_caller]
fn forwards(field: &str, path: &str, expected: Json, wrong: &str) {
    let body = first(field);
    assert_eq!(body.pointer(path), Some(&expected), "{field}: {body}");
    let bench = Bench::new(vec![deaf()]);
    let key = field.split(' ').next().unwrap();
    let refused = bench.run(&format!(
        "(flow/step :agent :a {{:connection :ai :objective \"Go.\" {key} {wrong}}})"
    ));
    assert!(
        refused.contains(key) || refused.contains("max-tokens"),
        "{refused}"
    );
    assert!(refused.starts_with('E'), "{refused}");
    assert!(bench.asked().is_empty(), "{field}");
}

/// Returns the text of a message of a request.
fn text(body: &Json, at: usize) -> String {
    body["messages"][at]["content"]
        .as_str()
        .unwrap_or_default()
        .to_owned()
}

#[test]
fn type_() {
    let bench = Bench::new(vec![says("Hi.")]);
    let run = |type_: &str| {
        bench.run(&format!(
            "(:content (flow/step :agent :a {{:type {type_} :connection :ai :objective \"Go.\"}}))"
        ))
    };
    assert_eq!(run(":agent"), "\"Hi.\"");
    let refused = Bench::new(Vec::new())
        .project
        .check("(flow/step :agent :a {:type :llm :objective \"Go.\"})");
    assert!(refused.contains(":type"), "{refused}");
}

#[test]
fn objective() {
    assert_eq!(text(&first(""), 1), "Objective:\nGo.");
    let bench = Bench::new(Vec::new());
    let found = bench.run("(flow/step :agent :a {:connection :ai :objective \" \"})");
    assert!(
        found.starts_with("E0840 the `:objective` is empty"),
        "{found}"
    );
    let missing = bench
        .project
        .check("(flow/step :agent :a {:connection :ai})");
    assert!(
        missing.starts_with("E0840 the agent has no `:objective`"),
        "{missing}"
    );
}

#[test]
fn instructions() {
    let system = text(&first(":instructions \"Be brief.\""), 0);
    assert!(system.ends_with("Instructions:\nBe brief."), "{system}");
}

#[test]
fn inputs() {
    let asked = text(
        &first(":inputs {:city \"Ulm\" :limit 3 :tags [:a \"b\"]}"),
        1,
    );
    let (_, inputs) = asked.split_once("Inputs:\n").unwrap();
    let inputs: Json = serde_json::from_str(inputs).unwrap();
    assert_eq!(
        inputs,
        json!({"city": "Ulm", "limit": 3, "tags": ["a", "b"]})
    );
}

const TEMPLATE: &str = ":templates [{:id :plan :type :llm-prompt :system \"Style: {{style}}.\" \
     :prompt \"{{objective}} | {{instructions}} | {{inputs.city}} | {{json input-summary}} | {{#each tool-summary.enabled}}{{name}}{{/each}}\"}]";

fn with_template(definitions: &str, fields: &str) -> (String, Vec<Json>) {
    let bench = Bench::with(definitions, vec![says("ok")]);
    let found = bench.run(&format!(
        "(:content (flow/step :agent :a {{:connection :ai :objective \"Go.\" {fields}}}))"
    ));
    (found, bench.asked())
}

#[test]
fn template() {
    let fields = ":template :plan :instructions \"I\" :inputs {:city \"Ulm\"} :data {:style \"terse\"} :available-steps [:search]";
    let (found, asked) = with_template(TEMPLATE, fields);
    assert_eq!(found, "\"ok\"");
    assert_eq!(text(&asked[0], 0), "Style: terse.");
    assert_eq!(
        text(&asked[0], 1),
        "Go. | I | Ulm | {\"city\":\"Ulm\"} | search"
    );
    let (found, asked) = with_template(TEMPLATE, ":template :plans");
    assert!(
        found.contains("the flow has no template `:plans` | did you mean `:plan`?"),
        "{found}"
    );
    assert!(asked.is_empty());
}

#[test]
fn data() {
    // The step's own value wins over it.
    let (_, asked) = with_template(
        TEMPLATE,
        ":template :plan :data {:style \"terse\" :objective \"Stop.\"}",
    );
    assert_eq!(text(&asked[0], 0), "Style: terse.");
    assert!(text(&asked[0], 1).starts_with("Go. | "));
    let (found, _) = with_template(TEMPLATE, ":data {:style 1}");
    assert!(
        found.starts_with("E0755 `:data` needs a `:template`"),
        "{found}"
    );
}

#[test]
fn expect() {
    let run = |turns: Vec<Say>, fields: &str| {
        let bench = Bench::new(turns);
        bench.run(&format!(
            "(let [r (flow/step :agent :a {{:connection :ai :objective \"Go.\" {fields}}})] [(:content r) (:iterations r)])"
        ))
    };
    let data = ":output {:format :json} :expect {:contains [\"findings\"]}";
    assert_eq!(
        run(vec![says("{\"findings\":[]}")], data),
        "[{:findings []} 1]"
    );
    let found = run(vec![says("{\"a\":1}")], data);
    assert!(
        found.starts_with(
            "E0521 the result is not what `:expect` says: should contain \"findings\""
        ),
        "{found}"
    );
    // A wrong answer is sent back as often as `:repair` allows.
    let repaired = run(
        vec![says("nothing"), says("findings: none")],
        ":expect {:contains [\"findings\"]} :repair 1",
    );
    assert_eq!(repaired, "[\"findings: none\" 2]");
    let nonsense = run(vec![says("x")], ":expect {:contain [\"a\"]}");
    assert!(nonsense.contains("did you mean `:contains`?"), "{nonsense}");
}

#[test]
fn connection() {
    assert_eq!(first("")["model"], "m");
    let bench = Bench::new(Vec::new());
    let found = bench.run("(flow/step :agent :a {:connection :aj :objective \"Go.\"})");
    assert!(
        found.contains("`:aj`") && found.contains("`:ai`"),
        "{found}"
    );
}

#[test]
fn model() {
    forwards(":model \"big\"", "/model", json!("big"), "7");
}

#[test]
fn provider() {
    // It names the provider; one that differs from the connection's is refused.
    let bench = Bench::new(vec![says("ok")]);
    let run = |provider: &str| {
        bench.run(&format!(
            "(:provider (flow/step :agent :a {{:connection :ai :provider {provider} :objective \"Go.\"}}))"
        ))
    };
    assert_eq!(run(":openai"), ":openai");
    let refused = run(":anthropic");
    assert!(refused.contains("the step names `:anthropic`"), "{refused}");
    assert_eq!(bench.asked().len(), 1);
}

#[test]
fn temperature() {
    forwards(":temperature 0.2", "/temperature", json!(0.2), "\"warm\"");
}

#[test]
fn top_p() {
    forwards(":top-p 0.9", "/top_p", json!(0.9), "\"all\"");
}

#[test]
fn stop() {
    forwards(":stop [\"\\nDONE\"]", "/stop", json!(["\nDONE"]), "7");
}

#[test]
fn max_tokens() {
    // The limit applies to each turn, not to all together.
    let turns = vec![calls(&[("c1", "math_add", "{\"a\":1,\"b\":2}")]), says("3")];
    let bench = Bench::with(STEPS, turns);
    bench.run("(flow/step :agent :a {:connection :ai :objective \"Add.\" :max-tokens 4000 :tools {:steps [:math/add]}})");
    for body in bench.asked() {
        assert_eq!(body["max_completion_tokens"], 4000);
    }
    forwards(
        ":max-tokens 16",
        "/max_completion_tokens",
        json!(16),
        "\"few\"",
    );
}

#[test]
fn seed() {
    forwards(":seed 42", "/seed", json!(42), "\"x\"");
}

#[test]
fn presence_penalty() {
    forwards(
        ":presence-penalty 0.0",
        "/presence_penalty",
        json!(0),
        "\"x\"",
    );
}

#[test]
fn frequency_penalty() {
    forwards(
        ":frequency-penalty 0.1",
        "/frequency_penalty",
        json!(0.1),
        "\"x\"",
    );
}

#[test]
fn reasoning_effort() {
    forwards(
        ":reasoning-effort :medium",
        "/reasoning_effort",
        json!("medium"),
        "7",
    );
}

#[test]
fn prompt_cache_key() {
    forwards(
        ":prompt-cache-key \"review-v1\"",
        "/prompt_cache_key",
        json!("review-v1"),
        "7",
    );
}

#[test]
fn previous_response_id() {
    forwards(
        ":previous-response-id \"resp_1\"",
        "/previous_response_id",
        json!("resp_1"),
        "7",
    );
}

#[test]
fn provider_opts() {
    forwards(
        ":provider-opts {:openai {:responses {:store false}}}",
        "/store",
        json!(false),
        "7",
    );
}

#[test]
fn openai() {
    forwards(
        ":openai {:responses {:truncation \"auto\"}}",
        "/truncation",
        json!("auto"),
        "7",
    );
}

#[test]
fn auth() {
    let bench = Bench::new(vec![deaf()]);
    bench.run("(flow/step :agent :a {:connection :ai :objective \"Go.\" :auth {:type :bearer :secret-ref :other-key}})");
    let head = bench.server.requests()[0].clone();
    assert!(
        head.contains("\nauthorization: Bearer 0ther-s3cret"),
        "{head}"
    );
    let found = bench.run("(flow/step :agent :a {:connection :ai :objective \"Go.\" :auth 7})");
    assert!(found.contains(":auth"), "{found}");
}

#[test]
fn max_iterations() {
    let again = || calls(&[("c1", "math_add", "{\"a\":1,\"b\":2}")]);
    let turns = vec![again(), again(), says("It is 3.")];
    let bench = Bench::with(STEPS, turns);
    let found = bench.run("(let [r (flow/step :agent :a {:connection :ai :objective \"Add.\" :max-iterations 2 :tools {:steps [:math/add]}})] [(:content r) (:finish-reason r) (:iterations r) (count (:tool-calls r))])");
    assert_eq!(found, "[\"It is 3.\" \"max-iterations\" 3 2]");
    // Two turns with tools, and one for the final answer.
    let asked = bench.asked();
    assert!(asked[1].get("tool_choice").is_none(), "{}", asked[1]);
    assert_eq!(asked[2]["tool_choice"], "none");
    let refused = bench
        .run("(flow/step :agent :a {:connection :ai :objective \"Add.\" :max-iterations 101})");
    assert!(
        refused.starts_with("E0712 `:max-iterations` of a `:agent` step must be"),
        "{refused}"
    );
}

#[test]
fn max_tool_calls() {
    let pair = calls(&[
        ("c1", "math_add", "{\"a\":1,\"b\":2}"),
        ("c2", "math_add", "{\"a\":3,\"b\":4}"),
    ]);
    let bench = Bench::with(STEPS, vec![pair, says("Enough.")]);
    let found = bench.run("(let [r (flow/step :agent :a {:connection :ai :objective \"Add.\" :max-tool-calls 1 :tools {:steps [:math/add]}})] [(:content r) (:finish-reason r) (mapv :success (:tool-calls r)) (:result (second (:tool-calls r)))])");
    assert_eq!(
        found,
        "[\"Enough.\" \"max-tool-calls\" [true false] {:error \"not performed: this run may make 1 calls of tools, and has made them\"}]"
    );
    assert_eq!(bench.asked()[1]["tool_choice"], "none");
    let refused = bench
        .run("(flow/step :agent :a {:connection :ai :objective \"Add.\" :max-tool-calls 1001})");
    assert!(refused.starts_with("E0712 `:max-tool-calls`"), "{refused}");
}

#[test]
fn max_repeated_tool_calls() {
    let same = || calls(&[("c1", "math_add", "{\"a\":1,\"b\":2}")]);
    let reordered = calls(&[("c2", "math_add", "{\"b\": 2, \"a\": 1}")]);
    let bench = Bench::with(STEPS, vec![same(), reordered, same(), says("It is 3.")]);
    let found = bench.run("(let [r (flow/step :agent :a {:connection :ai :objective \"Add.\" :max-repeated-tool-calls 1 :tools {:steps [:math/add]}})] [(:content r) (:finish-reason r) (mapv :success (:tool-calls r))])");
    assert_eq!(
        found,
        "[\"It is 3.\" \"max-repeated-tool-calls\" [true false false]]"
    );
    let refused = bench.run(
        "(flow/step :agent :a {:connection :ai :objective \"Add.\" :max-repeated-tool-calls 101})",
    );
    assert!(
        refused.starts_with("E0712 `:max-repeated-tool-calls`"),
        "{refused}"
    );
}

#[test]
fn the_envelope_wins() {
    let again = || calls(&[("c1", "math_add", "{\"a\":1,\"b\":2}")]);
    let bench = Bench::with(STEPS, vec![again(), says("It is 3.")]);
    let found = bench.run("(let [r (flow/step :agent :a {:connection :ai :objective \"Add.\" :max-iterations 20 :tools {:steps [:math/add] :max-iterations 1}})] [(:finish-reason r) (:iterations r)])");
    assert_eq!(found, "[\"max-iterations\" 2]");
}

#[test]
fn max_tokens_budget() {
    let again = || calls(&[("c1", "math_add", "{\"a\":1,\"b\":2}")]);
    let bench = Bench::with(STEPS, vec![again(), again(), says("never")]);
    // Each turn uses 15 tokens.
    let found = bench.run("(let [r (flow/step :agent :a {:connection :ai :objective \"Add.\" :max-tokens-budget 20 :tools {:steps [:math/add]}})] [(:content r) (:finish-reason r) (:tokens-used r) (count (:tool-calls r))])");
    assert_eq!(found, "[\"\" \"token-budget\" 30 1]");
    assert_eq!(bench.asked().len(), 2);
    let refused = bench
        .run("(flow/step :agent :a {:connection :ai :objective \"Add.\" :max-tokens-budget 0})");
    assert!(
        refused.starts_with("E0712 `:max-tokens-budget`"),
        "{refused}"
    );
}

#[test]
fn output() {
    let schema = ":output {:format :json :schema [:map [:sum :int]]}";
    // Without tools, the schema is part of the first request.
    let body = first(schema);
    assert_eq!(
        body["response_format"]["json_schema"]["schema"]["required"],
        json!(["sum"])
    );
    // With tools, the schema applies only to the last answer: first as text in the prompt, then by the provider if that
    // fails.
    let turns = || {
        vec![
            calls(&[("c1", "math_add", "{\"a\":1,\"b\":2}")]),
            says("It is 3."),
            says("{\"sum\":3}"),
        ]
    };
    let bench = Bench::with(STEPS, turns());
    let flow = format!(
        "(let [r (flow/step :agent :a {{:connection :ai :objective \"Add.\" {schema} :tools {{:steps [:math/add]}}}})] [(:content r) (:iterations r)])"
    );
    assert_eq!(bench.run(&flow), "[{:sum 3} 3]");
    let asked = bench.asked();
    assert!(
        text(&asked[0], 0).contains("It must satisfy this JSON Schema: {"),
        "{}",
        asked[0]
    );
    assert!(asked[0].get("response_format").is_none());
    assert!(asked[2].get("response_format").is_some());
    assert_eq!(asked[2]["tool_choice"], "none");
    // A valid first answer needs no other turn.
    let mut right = turns();
    right.remove(1);
    assert_eq!(Bench::with(STEPS, right).run(&flow), "[{:sum 3} 2]");
    let refused = Bench::new(Vec::new())
        .run("(flow/step :agent :a {:connection :ai :objective \"Go.\" :output {:format :xml}})");
    assert!(refused.contains(":xml"), "{refused}");
}

#[test]
fn response_format() {
    let body = first(":response-format :json");
    assert_eq!(body["response_format"], json!({"type": "json_object"}));
}

#[test]
fn json_schema() {
    // The older fields win over `:output`.
    let body = first(
        ":output {:format :json :schema [:map [:a :int]]} :json-schema {\"type\" \"object\" \"properties\" {\"b\" {\"type\" \"string\"}}}",
    );
    let schema = &body["response_format"]["json_schema"]["schema"]["properties"];
    assert_eq!(schema, &json!({"b": {"type": "string"}}));
}

#[test]
fn repair() {
    let run = |turns: Vec<Say>, repair: &str| {
        let bench = Bench::new(turns);
        bench.run(&format!(
            "(let [r (flow/step :agent :a {{:connection :ai :objective \"Go.\" :output {{:format :json :schema [:map [:sum :int]]}} {repair}}})] [(:content r) (:iterations r)])"
        ))
    };
    let wrong = || vec![says("{\"sum\":\"x\"}"), says("{\"sum\":3}")];
    assert_eq!(run(wrong(), ":repair 1"), "[{:sum 3} 2]");
    assert!(run(wrong(), "").starts_with("E0811 "));
    assert!(run(wrong(), ":repair 11").starts_with("E0712 `:repair`"));
    let found = Bench::new(Vec::new())
        .run("(flow/step :agent :a {:connection :ai :objective \"Go.\" :repair 1})");
    assert!(
        found.starts_with("E0840 `:repair` is for an answer that is checked"),
        "{found}"
    );
}

#[test]
fn workspace_id() {
    let bench = Bench::new(vec![says("ok")]);
    let found = bench.run("(:content (flow/step :agent :a {:connection :ai :objective \"Go.\" :workspace-id \"ws-other\"}))");
    assert_eq!(found, "\"ok\"");
    // It is not sent to the model, and is kept in the journal.
    assert!(!bench.asked()[0].to_string().contains("ws-other"));
    assert!(bench.project.everything_kept().contains("ws-other"));
    assert!(
        bench
            .run("(flow/step :agent :a {:connection :ai :objective \"Go.\" :workspace-id 7})")
            .starts_with("E0712 `:workspace-id`")
    );
}

#[test]
fn tools_as_a_vector() {
    let bench = Bench::new(vec![calls(&[("c1", "ask", "{\"q\":\"why\"}")])]);
    let found = bench.run("(let [r (flow/step :agent :a {:connection :ai :objective \"Go.\" :tools [{:name \"ask\" :description \"Asks.\" :parameters {:type \"object\" :properties {:q {:type \"string\"}}}}]})] [(:tool-calls r) (:finish-reason r)])");
    assert_eq!(
        found,
        "[[{:tool-call-id \"c1\" :name \"ask\" :arguments {:q \"why\"}}] \"tool_calls\"]"
    );
    assert_eq!(bench.asked()[0]["tools"][0]["function"]["name"], "ask");
}
