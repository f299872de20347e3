//! The rows of `tests/coverage/agent.tsv` about steps before and after the loop: cost, evaluation, trace, output.

use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;

use flowstone_engine::ids::RunId;
use flowstone_engine::observer::NoObserver;
use flowstone_engine::{ExecuteOptions, StartOptions};
use serde_json::Value as Json;

use crate::agent::{Bench, STEPS, calls, says};
use crate::server::{Say, reply, stalled};

const HOUR: i64 = 3_600_000;
const SCORES: &str = r#"{"scores":{"relevance":5,"completeness":3,"accuracy":4},"overall":4,"summary":"Good, but short."}"#;

/// Returns an agent with these options.
fn agent(options: &str) -> String {
    format!("(flow/step :agent :a {{:connection :ai :objective \"Look.\" {options}}})")
}

fn with_result(options: &str, of_result: &str) -> String {
    format!("(let [r {}] {of_result})", agent(options))
}

fn adds() -> Say {
    calls(&[
        ("c1", "math_add", r#"{"a":1,"b":2}"#),
        ("c2", "math_fail", "{}"),
    ])
}

fn ledger(bench: &Bench) -> String {
    bench.run("(:value (flow/step :kv :k {:operation :get :key \"agent-cost:agents\"}))")
}

#[track_caller]
fn has(text: &str, part: &str) {
    assert!(text.contains(part), "`{part}` is not in:\n{text}");
}

/// Reads the blob whose name is the result of a run.
fn blob(bench: &Bench, uri: &str) -> (String, String) {
    let uri = uri.trim_matches('"');
    let found = bench.project.blob(uri);
    let (kind, bytes) = found.unwrap_or_else(|| panic!("there is no blob {uri}"));
    (kind, String::from_utf8(bytes).expect("text"))
}

#[test]
fn cost() {
    let bench = Bench::with(STEPS, vec![says("Done.")]);
    bench.run(&agent(":cost true"));
    has(&ledger(&bench), ":tokens 15");
    bench.run(&agent(":cost false"));
    assert_eq!(ledger(&bench).matches(":tokens 15").count(), 1);
    has(
        &bench.run(&agent(":cost {:budgets {}}")),
        "did you mean `:budget`?",
    );
}

#[test]
fn cost_enabled() {
    let bench = Bench::with(STEPS, vec![says("Done.")]);
    bench.run(&agent(
        ":cost {:enabled false :budget {:max-tokens-total 1}}",
    ));
    assert_eq!(ledger(&bench), "nil");
    bench.run(&agent(":cost {:enabled true}"));
    has(&ledger(&bench), ":tokens 15");
}

#[test]
fn cost_ledger() {
    let bench = Bench::with(STEPS, vec![adds(), says("Three."), adds(), adds()]);
    let tools = ":tools {:steps [:math/add :math/fail]}";
    bench.run(&agent(&format!(":cost true {tools}")));
    has(
        &ledger(&bench),
        ":at #inst \"2026-03-01T00:00:00.000Z\" :tokens 30 :iterations 2 :tool-calls 2 :model \"m-1\"",
    );
    // A limit ends the next agent, and it counts as well.
    bench.run(&agent(&format!(":cost true :max-tokens-budget 10 {tools}")));
    let kept = ledger(&bench);
    has(&kept, ":tokens 15 :iterations 1");
    assert_eq!(kept.matches(":run ").count(), 2);
    // So does an agent that fails in its second turn.
    let bench = Bench::with(
        STEPS,
        vec![
            adds(),
            reply("400 Bad Request", &[], "{\"error\":{\"message\":\"no\"}}"),
        ],
    );
    has(&bench.run(&agent(&format!(":cost true {tools}"))), "E08");
    has(&ledger(&bench), ":tokens 15 :iterations 1 :tool-calls 2");
}

#[test]
fn cost_max_tokens_total() {
    let bench = Bench::with(STEPS, vec![says("Done.")]);
    let agent_with = |most: &str| agent(&format!(":cost {{:budget {{{most}}}}}"));
    for _ in 0..2 {
        has(&bench.run(&agent_with(":max-tokens-total 30")), "Done.");
    }
    let refused = bench.run(&agent_with(":max-tokens-total 30"));
    has(
        &refused,
        "E0852 the agents of `agents` have used 30 of 30 tokens in its last 2 runs",
    );
    assert_eq!(bench.asked().len(), 2, "no model is asked");
    // The flow can catch the error, which carries the facts.
    let caught = bench.run(&format!(
        "(try {} (catch Exception e (select-keys (ex-data e) [:kind :usage :limit :window-hours :free-at :runs])))",
        agent_with(":max-tokens-total 30")
    ));
    has(&caught, ":kind :resource-exhausted");
    has(&caught, ":usage 30");
    has(&caught, ":limit 30");
    has(&bench.run(&agent_with(":max-tokens-total 31")), "Done.");
    has(
        &bench.run(&agent_with("")),
        "E0850 `:cost :budget` needs `:max-tokens-total`",
    );
    has(
        &bench.run(&agent_with(":max-tokens-total 0")),
        "E0712 `:cost :budget :max-tokens-total` of a `:agent` step must be an integer from 1 to",
    );
}

#[test]
fn cost_window_hours() {
    let bench = Bench::with(STEPS, vec![says("Done.")]);
    let budget = ":cost {:budget {:max-tokens-total 30 :window-hours 24}}";
    has(&bench.run(&agent(budget)), "Done.");
    bench.project.clock.advance(20 * HOUR);
    has(&bench.run(&agent(budget)), "Done.");
    let refused = bench.run(&agent(budget));
    has(&refused, "have used 30 of 30 tokens within 24 hours");
    has(&refused, "there is room again at 2026-03-02 00:00 UTC");
    let caught = bench.run(&format!(
        "(try {} (catch Exception e (:free-at (ex-data e))))",
        agent(budget)
    ));
    assert_eq!(caught, "#inst \"2026-03-02T00:00:00.000Z\"");
    // Four hours later, the first run is outside the window.
    bench.project.clock.advance(4 * HOUR);
    has(&bench.run(&agent(budget)), "Done.");
    has(&bench.run(&agent(budget)), "E0852");
}

#[test]
fn evaluate() {
    let bench = Bench::with(STEPS, vec![adds(), says("Three."), says(SCORES)]);
    let found = bench.run(&with_result(
        ":evaluate true :tools {:steps [:math/add :math/fail]}",
        "[(:content r) (:tokens-used r) (:evaluation r)]",
    ));
    assert_eq!(
        found,
        "[\"Three.\" 30 {:scores {:relevance 5 :completeness 3 :accuracy 4} :overall 4 :summary \"Good, but short.\" :evaluation-tokens 15}]"
    );
    let asked = &bench.asked()[2];
    assert_eq!(asked["model"], "m");
    let prompt = asked["messages"][1]["content"].as_str().expect("text");
    has(prompt, "Objective:\nLook.");
    has(prompt, "- math_add: {\"sum\":3}");
    has(prompt, "- math_fail (failed):");
    has(prompt, "Answer:\nThree.");
    // A failure of these extras never costs the answer.
    let bench = Bench::with(STEPS, vec![says("Three."), says("I like it.")]);
    let found = bench.run(&with_result(
        ":evaluate true",
        "[(:content r) (:evaluation r) (:warnings r)]",
    ));
    has(&found, "[\"Three.\" {:error \"");
    has(&found, "[\"the answer was not evaluated: ");
    // Scores must be from 1 to 5.
    let bench = Bench::with(STEPS, vec![says("Three."), says(&SCORES.replace('5', "6"))]);
    has(
        &bench.run(&with_result(":evaluate true", "(:evaluation r)")),
        "{:error \"",
    );
    // A stopped agent does not have an answer to evaluate.
    let bench = Bench::with(STEPS, vec![adds(), says(SCORES)]);
    bench.run(&agent(
        ":evaluate true :tools {:steps [:math/add :math/fail]} :before-tool-call (fn [_] {:abort true :content \"no\"})",
    ));
    assert_eq!(bench.asked().len(), 1);
}

#[test]
fn evaluate_criteria() {
    let own = r#"{"scores":{"tone":2},"overall":2,"summary":"Rude."}"#;
    let bench = Bench::with(STEPS, vec![says("Go away."), says(own)]);
    let found = bench.run(&with_result(
        ":evaluate {:criteria [:tone]}",
        "(:scores (:evaluation r))",
    ));
    assert_eq!(found, "{:tone 2}");
    let asked = bench.asked()[1].clone();
    let schema = asked["response_format"].to_string();
    has(&schema, "\"tone\"");
    assert!(!schema.contains("relevance"), "{schema}");
    has(&asked["messages"][0].to_string(), "- tone");
    for (criteria, problem) in [
        ("[]", "is a vector of 1 to 20 names"),
        ("[\"not a name\"]", "which is not a name"),
        ("[:a :a]", "has `a` twice"),
    ] {
        let wrong = bench.run(&agent(&format!(":evaluate {{:criteria {criteria}}}")));
        has(&wrong, "E0850");
        has(&wrong, problem);
    }
}

#[test]
fn evaluate_model() {
    let bench = Bench::with(STEPS, vec![says("Done."), says(SCORES)]);
    bench.run(&agent(
        ":model \"big\" :temperature 0.7 :evaluate {:model \"small\"}",
    ));
    let asked = bench.asked();
    assert_eq!(
        (&asked[0]["model"], &asked[1]["model"]),
        (&Json::from("big"), &Json::from("small"))
    );
    assert!(asked[1].get("temperature").is_none());
    // Both use the connection of the agent.
    let keys = bench.server.requests();
    assert!(
        keys.iter()
            .all(|request| request.contains("authorization: Bearer s3cret"))
    );
}

#[test]
fn evaluate_persist_to_memory() {
    let bench = Bench::with(STEPS, vec![says("Done."), says(SCORES)]);
    bench.run(&agent(
        ":evaluate {:persist-to-memory true} :memory \"notes\"",
    ));
    let kept = bench.run("(mapv (juxt :type :key :content (fn [row] (get-in row [:data :evaluation :overall]))) (:rows (flow/step :table :q {:op :query :table \"notes\"})))");
    assert_eq!(
        kept,
        "[[\"run-summary\" \"evaluation\" \"Evaluation: overall 4 of 5 (relevance 5, completeness 3, accuracy 4). Good, but short.\" 4]]"
    );
    let bench = Bench::with(STEPS, vec![says("Done."), says(SCORES)]);
    let found = bench.run(&with_result(
        ":evaluate {:persist-to-memory true}",
        "[(:overall (:evaluation r)) (:warnings r)]",
    ));
    assert_eq!(
        found,
        "[4 [\"`:evaluate :persist-to-memory` keeps nothing: the agent has no `:memory`\"]]"
    );
}

#[test]
fn result_evaluation() {
    let bench = Bench::with(STEPS, vec![says("Done.")]);
    assert_eq!(
        bench.run(&with_result("", "(contains? r :evaluation)")),
        "false"
    );
}

/// Returns the trace whose name is the result of a run.
fn trace(bench: &Bench, options: &str) -> Json {
    let uri = bench.run(&with_result(options, "(:trace-ref r)"));
    let (kind, text) = blob(bench, &uri);
    assert_eq!(kind, "application/vnd.breyta.agent-trace+json");
    serde_json::from_str(&text).expect("JSON")
}

#[test]
fn trace_true() {
    let bench = Bench::with(STEPS, vec![says("Done.")]);
    let found = trace(&bench, ":trace true");
    assert_eq!(found["objective"], "Look.");
    assert_eq!(found["flow"], "agents");
    assert_eq!(found["result"]["content"], "Done.");
    let none = bench.run(&with_result(":trace false", "(:trace-ref r)"));
    assert_eq!(none, "nil");
}

#[test]
fn trace_name() {
    let bench = Bench::with(STEPS, vec![says("Done.")]);
    let uri = bench.run(&with_result(
        ":trace {:name \"review-trace\"}",
        "(:trace-ref r)",
    ));
    let row = bench.project.block_on(
        bench
            .project
            .engine
            .stores()
            .blobs
            .find(uri.trim_matches('"')),
    );
    let row = row.expect("the registry").expect("the blob");
    assert_eq!(row.filename.as_deref(), Some("review-trace"));
    has(&bench.run(&agent(":trace {:name \"a/b\"}")), "E0763");
    has(
        &bench.run(&agent(":trace {:names \"a\"}")),
        "did you mean `:name`?",
    );
}

#[test]
fn trace_content() {
    let bench = Bench::with(
        STEPS,
        vec![
            calls(&[
                ("c0", "memory_plan", r#"{"steps":["add"]}"#),
                ("c1", "math_add", r#"{"a":1,"b":2}"#),
                ("c2", "math_fail", "{}"),
            ]),
            says("Three."),
            says(SCORES),
        ],
    );
    let found = trace(
        &bench,
        ":trace true :evaluate true :cost true :memory {:table \"notes\" :plan true} :tools {:steps [:math/add :math/fail]}",
    );
    let turn = &found["iterations"][0];
    assert_eq!(turn["model"], "m-1");
    assert_eq!(turn["usage"]["total-tokens"], 15);
    assert!(turn["duration-ms"].is_i64(), "{turn}");
    let add = &turn["tool-calls"][1];
    assert_eq!(add["name"], "math_add");
    assert_eq!(add["arguments"]["b"], 2);
    assert_eq!(add["result"]["sum"], 3);
    assert_eq!(add["success"], true);
    assert!(add["duration-ms"].is_i64(), "{add}");
    assert_eq!(turn["tool-calls"][2]["success"], false);
    assert_eq!(found["iterations"][1]["content"], "Three.");
    assert_eq!(found["memory"]["table"], "notes");
    let operations = found["memory"]["operations"].to_string();
    has(&operations, "recall-prior");
    has(&operations, "memory_plan");
    assert_eq!(found["plan"]["current"], "add");
    assert_eq!(found["result"]["tool-call-stats"]["call-count"], 3);
    assert_eq!(found["evaluation"]["overall"], 4);
    assert_eq!(found["cost"]["tokens"], 30);
    // There is also a trace if a hook stops the loop, or a limit ends it.
    let bench = Bench::with(STEPS, vec![adds()]);
    let tools = ":trace true :tools {:steps [:math/add :math/fail]}";
    let found = trace(
        &bench,
        &format!(
            "{tools} :before-tool-call (fn [_] {{:abort true :content \"no\" :abort-reason \"why\"}})"
        ),
    );
    assert_eq!(found["result"]["abort-reason"], "why");
    assert_eq!(found["iterations"][0]["tool-calls-asked"], 2);
    let found = trace(&bench, &format!("{tools} :max-tokens-budget 20"));
    assert_eq!(found["result"]["finish-reason"], "token-budget");
    // The error of a failed loop names its trace, too.
    let bench = Bench::with(
        STEPS,
        vec![
            adds(),
            reply("400 Bad Request", &[], "{\"error\":{\"message\":\"no\"}}"),
        ],
    );
    let uri = bench.run(&format!(
        "(try {} (catch Exception e (:trace-ref (ex-data e))))",
        agent(tools)
    ));
    let (_, text) = blob(&bench, &uri);
    has(&text, "\"error\"");
}

#[test]
fn result_trace_ref() {
    let bench = Bench::with(STEPS, vec![says("Done.")]);
    has(
        &bench.run(&with_result(":trace true", "(:trace-ref r)")),
        "\"res://v1/ws/local/",
    );
}

#[test]
fn output_persist() {
    let kept = |options: &str, answer: &str| {
        let bench = Bench::with(STEPS, vec![says(answer)]);
        let uri = bench.run(&with_result(options, "(:uri (:persisted-ref r))"));
        blob(&bench, &uri)
    };
    let text = |kind: &str, content: &str| (kind.to_owned(), content.to_owned());
    assert_eq!(
        kept(":output-persist true", "Done."),
        text("text/plain; charset=utf-8", "Done.")
    );
    assert_eq!(
        kept(":output-persist true", "# Report\n\n- a\n- b"),
        text("text/markdown; charset=utf-8", "# Report\n\n- a\n- b")
    );
    assert_eq!(
        kept(
            ":output-persist true :output {:format :json}",
            "{\"a\": [1]}"
        ),
        text("application/json", "{\"a\":[1]}")
    );
    assert_eq!(
        kept(
            ":output-persist {:type :blob :name \"r.csv\" :content-type \"text/csv\"}",
            "a,b"
        ),
        text("text/csv", "a,b")
    );
    let bench = Bench::with(STEPS, vec![says("Done.")]);
    assert_eq!(
        bench.run(&with_result(":output-persist false", "(:persisted-ref r)")),
        "nil"
    );
    for (option, problem) in [
        (
            "{:type :table}",
            "E0850 `:output-persist` has no `:type :table`",
        ),
        ("{:name \"a/b\"}", "E0763"),
        ("{:content-type \"what\"}", "E0763"),
        ("{:nam \"a\"}", "did you mean `:name`?"),
    ] {
        has(
            &bench.run(&agent(&format!(":output-persist {option}"))),
            problem,
        );
    }
}

#[test]
fn result_persisted_ref() {
    let bench = Bench::with(STEPS, vec![says("Done.")]);
    let found = bench.run(&with_result(
        ":output-persist true",
        "(select-keys (:persisted-ref r) [:type :content-type :filename :size-bytes])",
    ));
    assert_eq!(
        found,
        "{:type :resource-ref :content-type \"text/plain; charset=utf-8\" :filename \"a.txt\" :size-bytes 5}"
    );
    // The flow continues with the result.
    let loaded = bench.run(&with_result(
        ":output-persist true",
        "(flow/step :function :f {:input {:it (:persisted-ref r)} :load [:it] :code '(fn [input] (:it input))})",
    ));
    assert_eq!(loaded, "\"Done.\"");
}

/// Executes a run until the model has received this many requests, and drops it there, as a killed process does.
async fn kill_at(bench: &Bench, run: &RunId, asked: usize) {
    let engine = &bench.project.engine;
    let options = ExecuteOptions::default();
    let mut execute = Box::pin(engine.execute(run, Rc::new(NoObserver), options));
    poll_fn(|cx| {
        if bench.server.requests().len() >= asked {
            return Poll::Ready(());
        }
        let polled = execute.as_mut().poll(cx);
        assert!(polled.is_pending(), "it ends too soon: {polled:?}");
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

#[test]
fn a_killed_agent_writes_each_thing_once() {
    let turns = vec![
        calls(&[
            ("c1", "memory_plan", r#"{"steps":["look"]}"#),
            (
                "c2",
                "memory_record",
                r#"{"type":"observation","content":"Seen."}"#,
            ),
        ]),
        stalled(&[]),
        says("Done."),
        stalled(&[]),
        says(SCORES),
    ];
    let mut bench = Bench::with(STEPS, turns);
    let body = with_result(
        ":cost true :evaluate {:persist-to-memory true} :trace true :output-persist true \
         :memory {:table \"notes\" :plan {:strict true} :auto-summarize true}",
        "[(:content r) (:overall (:evaluation r)) (:tokens-used r) (:warnings r) \
          (mapv (juxt :type :key) (:rows (flow/step :table :q {:op :query :table \"notes\" :sort [[:row-id :asc]]}))) \
          (count (:value (flow/step :kv :k {:operation :get :key \"agent-cost:agents\"})))]",
    );
    let flow = format!("{{:slug :agents :flow '{body}}}");
    let loaded = bench.project.load(&flow);
    let run = bench.project.block_on(async {
        let start = StartOptions::with_input(flowstone_lang::value::Value::map([]));
        let run = bench.project.engine.start(&loaded, start).await;
        run.expect("it starts")
    });
    // In the agent's second turn, and in the evaluation.
    for asked in [2, 4] {
        bench.project.block_on(kill_at(&bench, &run, asked));
        bench.project = bench.project.reopen();
    }
    let kept = "[[\"plan-step\" \"look\"] [\"observation\" nil] [\"run-summary\" \"evaluation\"] [\"run-summary\" nil]]";
    assert_eq!(
        bench.project.resume_all(),
        [format!("[\"Done.\" 4 30 nil {kept} 1]")]
    );
    assert_eq!(bench.server.requests().len(), 5);
}
