//! The rows of `tests/coverage/agent.tsv` about the memory and the plan of an agent.

use serde_json::Value as Json;

use crate::agent::{Bench, STEPS, calls, says};
use crate::server::Say;

/// Returns a turn that calls one tool.
fn call(name: &str, arguments: &str) -> Say {
    calls(&[("c1", name, arguments)])
}

fn record(kind: &str, content: &str) -> Say {
    call(
        "memory_record",
        &format!("{{\"type\":\"{kind}\",\"content\":\"{content}\"}}"),
    )
}

/// Returns an agent with this memory.
fn agent(memory: &str) -> String {
    format!("(flow/step :agent :a {{:connection :ai :objective \"Look.\" :memory {memory}}})")
}

fn with_result(memory: &str, of_result: &str) -> String {
    format!("(let [r {}] {of_result})", agent(memory))
}

/// Returns some columns of all rows of a table, in the order of their names.
fn rows(bench: &Bench, table: &str, columns: &str) -> String {
    bench.run(&format!(
        "(mapv (juxt {columns}) (:rows (flow/step :table :q {{:op :query :table \"{table}\" :sort [[:row-id :asc]]}})))"
    ))
}

fn system(request: &Json) -> String {
    request["messages"][0]["content"]
        .as_str()
        .expect("a system prompt")
        .to_owned()
}

/// Returns a tool's result in the last message of a request.
fn tool_result(request: &Json) -> String {
    let messages = request["messages"].as_array().expect("messages");
    let last = messages.last().expect("a message");
    assert_eq!(last["role"], "tool", "{last}");
    last["content"].as_str().expect("text").to_owned()
}

#[track_caller]
fn has(text: &str, part: &str) {
    assert!(text.contains(part), "`{part}` is not in:\n{text}");
}

#[track_caller]
fn lacks(text: &str, part: &str) {
    assert!(!text.contains(part), "`{part}` is in:\n{text}");
}

#[test]
fn memory() {
    // A name and a map with only a name refer to the same table.
    let bench = Bench::with(
        STEPS,
        vec![
            record("observation", "The door is red."),
            says("Done."),
            says("Red."),
        ],
    );
    let found = bench.run(&with_result("\"notes\"", "(:content r)"));
    assert_eq!(found, "\"Done.\"");
    let found = bench.run(&with_result("{:table \"notes\"}", "(:content r)"));
    assert_eq!(found, "\"Red.\"");
    let asked = bench.asked();
    assert_eq!(
        tool_result(&asked[1]),
        r#"{"recorded":true,"type":"observation"}"#
    );
    lacks(&system(&asked[0]), "Prior memories");
    has(&system(&asked[2]), "Prior memories");
    has(
        &system(&asked[2]),
        "- [observation, 2026-03-01 00:00] The door is red.",
    );
    assert_eq!(
        rows(
            &bench,
            "notes",
            ":type :content :scope :scope-key :flow :created-at"
        ),
        "[[\"observation\" \"The door is red.\" \"flow\" nil \"agents\" #inst \"2026-03-01T00:00:00.000Z\"]]"
    );
    let wrong = bench.run(&agent("{:scope :flow}"));
    has(&wrong, "E0850 `:memory` needs `:table`");
    has(
        &bench.run(&agent("{:table \"notes\" :recal-limit 3}")),
        "did you mean `:recall-limit`?",
    );
}

#[test]
fn memory_table() {
    let bench = Bench::with(STEPS, vec![record("decision", "Use it."), says("Done.")]);
    bench.run(&agent("\"notes\""));
    // By its name in the registry, and by the reference that a step returns.
    let uri = bench.run("(:uri (flow/step :table :t {:op :upsert :table \"notes\" :rows [{:entry \"x\" :type \"decision\" :flow \"agents\" :content \"Seeded.\"}]}))");
    let found = bench.run(&with_result(&format!("{{:table {uri}}}"), "(:content r)"));
    assert_eq!(found, "\"Done.\"");
    has(&system(&bench.asked()[2]), "Seeded.");
    let found = bench.run(&with_result(
        &format!("{{:type :resource-ref :uri {uri}}}"),
        "(:content r)",
    ));
    assert_eq!(found, "\"Done.\"");
    // A table with another purpose is refused before the model is called.
    bench.run("(flow/step :table :o {:op :create :table \"orders\" :columns {:id :long}})");
    let before = bench.asked().len();
    let refused = bench.run(&agent("\"orders\""));
    has(
        &refused,
        "E0851 the table \"orders\" cannot hold an agent's memory",
    );
    has(&refused, "it has no column `entry`");
    let uri =
        bench.run("(:uri (flow/step :table :o {:op :insert :table \"orders\" :rows [{:id 1}]}))");
    has(&bench.run(&agent(&format!("{{:table {uri}}}"))), "E0851");
    let columns = ":entry :string :type :string :key :string :content :string :importance :string";
    let uri = bench.run(&format!(
        "(:uri (flow/step :table :o {{:op :create :table \"odd\" :columns {{{columns}}} :key-fields [:entry]}}))"
    ));
    has(
        &bench.run(&agent(&format!("{{:table {uri}}}"))),
        "its column `importance` is string, not long",
    );
    assert_eq!(bench.asked().len(), before);
    has(&bench.run(&agent("{:table 7}")), "E0764");
}

#[test]
fn memory_scope() {
    let bench = Bench::with(
        STEPS,
        vec![record("observation", "Of another flow."), says("Done.")],
    );
    let other = agent("{:table \"notes\" :scope :global}");
    bench
        .project
        .eval(&format!("{{:slug :other :flow '{other}}}"));
    let seen = |memory: &str| {
        bench.run(&agent(memory));
        system(bench.asked().last().expect("a request"))
    };
    lacks(&seen("\"notes\""), "Of another flow.");
    lacks(&seen("{:table \"notes\" :scope :flow}"), "Of another flow.");
    has(
        &seen("{:table \"notes\" :scope :global}"),
        "Of another flow.",
    );
    lacks(
        &seen("{:table \"notes\" :scope :task :scope-key \"t\"}"),
        "Of another flow.",
    );
    has(
        &bench.run(&agent("{:table \"notes\" :scope :team}")),
        "E0850 `:memory` has no `:scope :team`",
    );
}

#[test]
fn memory_scope_key() {
    let bench = Bench::with(
        STEPS,
        vec![
            record("working-state", "Half of 42."),
            says("Done."),
            record("working-state", "Half of 43."),
            says("Done."),
        ],
    );
    let task = |key: &str| {
        agent(&format!(
            "{{:table \"notes\" :scope :task :scope-key {key}}}"
        ))
    };
    bench.run(&task("\"review-42\""));
    bench.run(&task("\"review-43\""));
    // Another flow that works on the same task sees it too.
    let again = task("\"review-42\"");
    bench
        .project
        .eval(&format!("{{:slug :other :flow '{again}}}"));
    let prompt = system(bench.asked().last().expect("a request"));
    has(&prompt, "Half of 42.");
    lacks(&prompt, "Half of 43.");
    // Without a key, each run is a separate task.
    bench.run(&agent("{:table \"notes\" :scope :task}"));
    lacks(
        &system(bench.asked().last().expect("a request")),
        "Prior memories",
    );
    has(
        &bench.run(&agent("{:table \"notes\" :scope-key \"review-42\"}")),
        "E0850 `:memory :scope-key` names a task, and the scope is not `:task`",
    );
}

#[test]
fn memory_auto_recall() {
    let bench = Bench::with(
        STEPS,
        vec![record("observation", "The door is red."), says("Done.")],
    );
    bench.run(&agent("\"notes\""));
    bench.run(&agent("{:table \"notes\" :auto-recall false}"));
    let prompt = system(bench.asked().last().expect("a request"));
    lacks(&prompt, "Prior memories");
    has(&prompt, "memory_recall");
    bench.run(&agent("{:table \"notes\" :auto-recall true}"));
    has(
        &system(bench.asked().last().expect("a request")),
        "The door is red.",
    );
    // A long note is truncated, and always written on one line.
    let long = format!("A\\n\\nSystem: {}", "x".repeat(3_000));
    let bench = Bench::with(STEPS, vec![record("observation", &long), says("Done.")]);
    bench.run(&agent("\"notes\""));
    bench.run(&agent("\"notes\""));
    let prompt = system(bench.asked().last().expect("a request"));
    has(&prompt, "] A System: xxx");
    has(&prompt, "xxx... (2010 more characters)");
}

#[test]
fn memory_auto_summarize() {
    let bench = Bench::with(
        STEPS,
        vec![
            calls(&[
                ("c1", "math_add", r#"{"a":1,"b":2}"#),
                ("c2", "math_fail", "{}"),
            ]),
            says("Three."),
        ],
    );
    bench.run("(flow/step :agent :a {:connection :ai :objective \"Add.\" :tools {:steps [:math/add :math/fail]} :memory {:table \"notes\" :auto-summarize true}})");
    assert_eq!(
        rows(&bench, "notes", ":type :content"),
        "[[\"run-summary\" \"2 turns, 2 tool calls (1 failed), 30 tokens; ended with stop. Three.\"]]"
    );
    let data = rows(&bench, "notes", ":data");
    has(&data, ":iterations 2");
    has(&data, ":call-count 2");
    has(&data, ":finish-reason \"stop\"");
    // The next run has the memory; without the option nothing is written.
    bench.run(&agent("\"notes\""));
    has(
        &system(bench.asked().last().expect("a request")),
        "- [run-summary, 2026-03-01 00:00] 2 turns, 2 tool calls (1 failed)",
    );
    assert_eq!(rows(&bench, "notes", ":type"), "[[\"run-summary\"]]");
}

#[test]
fn memory_recall_limit() {
    let bench = Bench::with(
        STEPS,
        vec![
            calls(&[
                (
                    "c1",
                    "memory_record",
                    r#"{"type":"observation","content":"First."}"#,
                ),
                (
                    "c2",
                    "memory_record",
                    r#"{"type":"observation","content":"Second."}"#,
                ),
                (
                    "c3",
                    "memory_record",
                    r#"{"type":"observation","content":"Third."}"#,
                ),
            ]),
            says("Done."),
        ],
    );
    bench.run(&agent("\"notes\""));
    bench.run(&agent("{:table \"notes\" :recall-limit 2}"));
    let prompt = system(bench.asked().last().expect("a request"));
    lacks(&prompt, "First.");
    let (third, second) = (prompt.find("Third."), prompt.find("Second."));
    assert!(third.is_some() && third < second, "newest first: {prompt}");
    has(
        &bench.run(&agent("{:table \"notes\" :recall-limit 0}")),
        "`:memory :recall-limit` must be from 1 to 200, and is 0",
    );
}

#[test]
fn memory_types() {
    let bench = Bench::with(
        STEPS,
        vec![
            calls(&[
                (
                    "c1",
                    "memory_record",
                    r#"{"type":"observation","content":"Seen."}"#,
                ),
                (
                    "c2",
                    "memory_record",
                    r#"{"type":"decision","content":"Decided."}"#,
                ),
            ]),
            says("Done."),
            call("memory_recall", "{}"),
            call("memory_recall", r#"{"type":"observation"}"#),
            says("Done."),
        ],
    );
    bench.run(&agent("\"notes\""));
    bench.run(&agent("{:table \"notes\" :types [\"decision\"]}"));
    let asked = bench.asked();
    has(&system(&asked[2]), "Decided.");
    lacks(&system(&asked[2]), "Seen.");
    has(&tool_result(&asked[3]), "Decided.");
    lacks(&tool_result(&asked[3]), "Seen.");
    has(
        &tool_result(&asked[4]),
        "is not a type of memories here (there are decision)",
    );
    let wrong = bench.run(&agent("{:table \"notes\" :types [:observations]}"));
    has(&wrong, "E0850 `:memory :types` has :observations");
    has(&wrong, "did you mean \"observation\"?");
}

#[test]
fn memory_entry_types() {
    let kinds = ["observation", "decision", "working-state"];
    let mut turns: Vec<Say> = kinds.iter().map(|kind| record(kind, kind)).collect();
    turns.push(record("idea", "No."));
    turns.push(record("run-summary", "No."));
    turns.push(call("memory_plan", r#"{"steps":[{"name":"look"}]}"#));
    turns.push(says("Done."));
    let bench = Bench::with(STEPS, turns);
    bench.run(&agent("{:table \"notes\" :auto-summarize true :plan true}"));
    let asked = bench.asked();
    for request in [&asked[4], &asked[5]] {
        has(
            &tool_result(request),
            "is not a type of memories here (there are decision, observation, working-state)",
        );
    }
    assert_eq!(
        rows(&bench, "notes", ":type"),
        "[[\"observation\"] [\"decision\"] [\"working-state\"] [\"plan-step\"] [\"run-summary\"]]"
    );
}

#[test]
fn tool_memory_record() {
    let bench = Bench::with(
        STEPS,
        vec![
            call(
                "memory_record",
                r#"{"type":"decision","content":"Keep `auth`.","key":"src/auth.rs","importance":4}"#,
            ),
            call("memory_record", r#"{"type":"decision"}"#),
            call("memory_record", r#"{"content":"What?"}"#),
            call(
                "memory_record",
                r#"{"type":"decision","content":"x","importance":9}"#,
            ),
            call(
                "memory_record",
                r#"{"type":"decision","content":"x","because":"y"}"#,
            ),
            says("Done."),
        ],
    );
    let stats = bench.run(&with_result("\"notes\"", "(:tool-call-stats r)"));
    has(&stats, ":call-count 5 :success-count 1 :error-count 4");
    let asked = bench.asked();
    let tools = asked[0]["tools"].to_string();
    has(&tools, "\"memory_record\"");
    has(&tools, "\"working-state\"");
    has(&tool_result(&asked[2]), "`content` is missing");
    has(&tool_result(&asked[3]), "`type` is missing");
    has(&tool_result(&asked[4]), "must be from 1 to 5, and is 9");
    has(&tool_result(&asked[5]), "has no key `:because`");
    assert_eq!(
        rows(&bench, "notes", ":type :key :content :importance :step"),
        "[[\"decision\" \"src/auth.rs\" \"Keep `auth`.\" 4 \"a\"]]"
    );
}

#[test]
fn tool_memory_recall() {
    let bench = Bench::with(
        STEPS,
        vec![
            calls(&[
                (
                    "c1",
                    "memory_record",
                    r#"{"type":"observation","content":"Tokens are kept in Redis.","key":"auth"}"#,
                ),
                (
                    "c2",
                    "memory_record",
                    r#"{"type":"decision","content":"Rotate tokens each day.","key":"rotation"}"#,
                ),
                (
                    "c3",
                    "memory_record",
                    r#"{"type":"observation","content":"The door is red.","key":"door"}"#,
                ),
            ]),
            call("memory_recall", "{}"),
            call("memory_recall", r#"{"type":"decision"}"#),
            call("memory_recall", r#"{"key":"door"}"#),
            call(
                "memory_recall",
                r#"{"query":"where are the REDIS tokens?"}"#,
            ),
            call("memory_recall", r#"{"query":"zebra"}"#),
            call("memory_recall", r#"{"limit":1}"#),
            call("memory_recall", r#"{"limit":"many"}"#),
            says("Done."),
        ],
    );
    bench.run(&agent("\"notes\""));
    let asked = bench.asked();
    let found = |idx: usize| -> Vec<String> {
        let answer: Json = serde_json::from_str(&tool_result(&asked[idx])).expect("JSON");
        let memories = answer["memories"].as_array().expect("memories");
        assert_eq!(answer["count"], memories.len());
        let keys = memories.iter().map(|it| it["key"].as_str());
        keys.map(|key| key.expect("a key").to_owned()).collect()
    };
    assert_eq!(found(2), ["door", "rotation", "auth"]);
    assert_eq!(found(3), ["rotation"]);
    assert_eq!(found(4), ["door"]);
    // A note with two words of the query, and one with a single one.
    assert_eq!(found(5), ["auth", "rotation"]);
    assert!(found(6).is_empty());
    assert_eq!(found(7), ["door"]);
    has(&tool_result(&asked[8]), "takes an integer, not a string");
}

#[test]
fn tools_of_memory() {
    let names = |memory: &str| {
        let bench = Bench::with(STEPS, vec![says("Done.")]);
        bench.run(&agent(memory));
        let tools = bench.asked()[0]["tools"].as_array().expect("tools").clone();
        let names = tools.iter().map(|tool| tool["function"]["name"].as_str());
        names
            .map(|name| name.expect("a name").to_owned())
            .collect::<Vec<_>>()
            .join(" ")
    };
    assert_eq!(names("\"notes\""), "memory_recall memory_record");
    assert_eq!(
        names("{:table \"notes\" :plan {:enforce true}}"),
        "memory_recall memory_record memory_plan memory_checkpoint"
    );
}

#[test]
fn plan_enforce() {
    let acts = || {
        vec![
            record("observation", "Seen."),
            record("observation", "More."),
            says("Done."),
        ]
    };
    // A warning is logged once, and the agent continues.
    let bench = Bench::with(STEPS, acts());
    let memory = "{:table \"notes\" :plan {:enforce true}}";
    let found = bench.run(&with_result(
        memory,
        "(select-keys r [:content :warnings :abort?])",
    ));
    assert_eq!(
        found,
        "{:content \"Done.\" :warnings [\"the agent used `memory_record` before it declared a plan\"]}"
    );
    has(&system(&bench.asked()[0]), "Before you use any other tool");
    // There is no warning if `:enforce` is off, or if there is a plan.
    let bench = Bench::with(STEPS, acts());
    let memory = "{:table \"notes\" :plan {:enforce false}}";
    let found = bench.run(&with_result(memory, "(:warnings r)"));
    assert_eq!(found, "nil");
    let planned = call("memory_plan", r#"{"steps":["look"]}"#);
    let bench = Bench::with(STEPS, [vec![planned], acts()].concat());
    let memory = "{:table \"notes\" :plan {:enforce true}}";
    let found = bench.run(&with_result(memory, "(:warnings r)"));
    assert_eq!(found, "nil");
}

#[test]
fn plan_strict() {
    let memory = "{:table \"notes\" :plan {:enforce true :strict true}}";
    let bench = Bench::with(STEPS, vec![record("observation", "Seen."), says("Done.")]);
    let of_result = "(select-keys r [:abort? :abort-reason :tool-calls :iterations])";
    let found = bench.run(&with_result(memory, of_result));
    assert_eq!(
        found,
        "{:abort? true :abort-reason \"plan-required\" :tool-calls [] :iterations 1}"
    );
    assert_eq!(rows(&bench, "notes", ":type"), "[]");
    has(&system(&bench.asked()[0]), "ends the run at once");
    let bench = Bench::with(
        STEPS,
        vec![
            calls(&[
                ("c1", "memory_plan", r#"{"steps":["look"]}"#),
                (
                    "c2",
                    "memory_record",
                    r#"{"type":"observation","content":"Seen."}"#,
                ),
            ]),
            says("Done."),
        ],
    );
    let found = bench.run(&with_result(memory, "(select-keys r [:content :abort?])"));
    assert_eq!(found, "{:content \"Done.\"}");
    has(
        &bench.run(&agent("{:table \"notes\" :plan {:strict 1}}")),
        "E0780 `:memory :plan :strict` takes true or false",
    );
}

#[test]
fn plan_max_steps() {
    let bench = Bench::with(
        STEPS,
        vec![
            call("memory_plan", r#"{"steps":["a","b","c"]}"#),
            call("memory_plan", r#"{"steps":["a","b"]}"#),
            says("Done."),
        ],
    );
    bench.run(&agent("{:table \"notes\" :plan {:max-steps 2}}"));
    let asked = bench.asked();
    has(&system(&asked[0]), "at most 2 steps");
    has(
        &tool_result(&asked[1]),
        "the plan has 3 steps, and may have 2 (combine steps, and declare the plan again)",
    );
    has(&tool_result(&asked[2]), "\"current\":\"a\"");
    let kept = rows(&bench, "notes", ":key");
    assert_eq!(kept, "[[\"a\"] [\"b\"]]");
    // The limit is ten by default.
    let bench = Bench::with(STEPS, vec![says("Done.")]);
    bench.run(&agent("{:table \"notes\" :plan true}"));
    has(&system(&bench.asked()[0]), "at most 10 steps");
}

#[test]
fn tool_memory_plan() {
    let bench = Bench::with(
        STEPS,
        vec![
            call(
                "memory_plan",
                r#"{"steps":[{"name":"read","description":"Read the code."},{"name":"fix"}]}"#,
            ),
            call(
                "memory_checkpoint",
                r#"{"step":"read","note":"It is in auth.rs."}"#,
            ),
            call("memory_plan", r#"{"steps":["read","test"]}"#),
            call("memory_plan", "{}"),
            says("Done."),
            says("Again."),
        ],
    );
    let memory = "{:table \"notes\" :plan {:enforce true}}";
    bench.run(&agent(memory));
    let asked = bench.asked();
    has(&tool_result(&asked[1]), r#""name":"read""#);
    has(&tool_result(&asked[3]), r#""current":"test""#);
    has(&tool_result(&asked[4]), "`steps` is missing");
    assert_eq!(
        rows(
            &bench,
            "notes",
            ":type :key (fn [row] (get-in row [:data :status]))"
        ),
        "[[\"plan-step\" \"read\" \"done\"] [\"plan-step\" \"fix\" \"dropped\"] [\"plan-step\" \"test\" \"open\"]]"
    );
    // The next run receives the progress of this one.
    bench.run(&agent(memory));
    let prompt = system(bench.asked().last().expect("a request"));
    has(&prompt, "The plan of an earlier run");
    has(&prompt, "- [x] read");
    has(&prompt, "(It is in auth.rs.)");
    has(&prompt, "- [ ] test");
    lacks(&prompt, "fix");
}

#[test]
fn tool_memory_checkpoint() {
    let bench = Bench::with(
        STEPS,
        vec![
            call("memory_checkpoint", r#"{"step":"read"}"#),
            call("memory_plan", r#"{"steps":["read","fix"]}"#),
            call("memory_checkpoint", r#"{"step":"tests"}"#),
            call("memory_checkpoint", r#"{"step":"read","note":"Fine."}"#),
            call("memory_checkpoint", "{}"),
            says("Done."),
        ],
    );
    bench.run(&agent("{:table \"notes\" :plan true}"));
    let asked = bench.asked();
    has(
        &tool_result(&asked[1]),
        "declare a plan with `memory_plan` first",
    );
    has(
        &tool_result(&asked[3]),
        "the plan has no step \\\"tests\\\" (its steps are read, fix)",
    );
    has(&tool_result(&asked[4]), r#""current":"fix""#);
    has(&tool_result(&asked[5]), "`step` is missing");
    has(
        &rows(&bench, "notes", ":key :data"),
        "[\"read\" {:position 1 :status \"done\" :note \"Fine.\"}]",
    );
}

#[test]
fn plan_checkpoint() {
    let kept = |checkpoint: &str| {
        let bench = Bench::with(
            STEPS,
            vec![
                call("memory_plan", r#"{"steps":["read","fix"]}"#),
                call("memory_checkpoint", r#"{"step":"read"}"#),
                says("Done."),
            ],
        );
        bench.run(&agent(&format!(
            "{{:table \"notes\" :plan {{{checkpoint}}}}}"
        )));
        // The model receives the plan either way.
        has(&tool_result(&bench.asked()[2]), r#""current":"fix""#);
        rows(&bench, "notes", "(fn [row] (get-in row [:data :status]))")
    };
    assert_eq!(kept(":checkpoint true"), "[[\"done\"] [\"open\"]]");
    assert_eq!(kept(""), "[[\"done\"] [\"open\"]]");
    assert_eq!(kept(":checkpoint false"), "[[\"open\"] [\"open\"]]");
}
