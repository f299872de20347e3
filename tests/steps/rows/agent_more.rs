//! The rows of `tests/coverage/agent.tsv` about where the model is, and about agents that call others.

use serde_json::json;

use crate::agent::{Bench, STEPS, calls, says};

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
    // What the agent inside used is counted.
    assert_eq!(
        found,
        "[\"One problem: the login is open.\" 3 60 \"The login is open.\"]"
    );
}

#[test]
fn approval_true() {
    // Only what changes something needs approval.
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
