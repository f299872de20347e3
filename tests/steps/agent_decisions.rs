//! Decisions about single calls: by a person, with `:approval`, and by the flow, with hooks for each call.

use flowstone_lang::value::Value;
use serde_json::Value as Json;

use crate::agent::{Bench, STEPS, calls, says};
use crate::server::Say;
use crate::world::edn;

const ADD: &str = "{\"a\":1,\"b\":2}";

/// A turn with three calls.
fn three() -> Say {
    calls(&[
        ("c1", "math_add", ADD),
        ("c2", "math_add", "{\"a\":3,\"b\":4}"),
        ("c3", "math_add", "{\"a\":5,\"b\":6}"),
    ])
}

const APPROVAL: &str = ":approval {:tool-names [\"math_add\"] :resume :in-place}";

fn agent(fields: &str) -> String {
    format!(
        "(let [r (flow/step :agent :a {{:connection :ai :objective \"Add.\" :tools {{:steps [:math/add]}} {fields}}})]
           [(:content r) (mapv (juxt :arguments :success :proposed-arguments) (:tool-calls r))])"
    )
}

/// Returns the results in a request, by the ids of their calls.
fn results(asked: &Json) -> Vec<(String, String)> {
    let messages = asked["messages"].as_array().expect("messages").iter();
    let results = messages.filter(|it| it["role"] == "tool");
    let text = |value: &Json| value.as_str().unwrap_or_default().to_owned();
    results
        .map(|it| (text(&it["tool_call_id"]), text(&it["content"])))
        .collect()
}

/// Returns JSON as a caller of the API sends it.
fn json(text: &str) -> Value {
    flowstone_flow::json::from_json(&serde_json::from_str(text).expect("JSON"))
}

#[test]
fn each_call_has_its_own_decision() {
    let bench = Bench::with(STEPS, vec![three(), says("Done.")]);
    let waiting = bench.run(&agent(APPROVAL));
    assert!(waiting.starts_with("waiting"), "{waiting}");
    let answer = json(
        r#"{"action": "approve", "decisions": [
             {"tool-call-id": "c2", "action": "edit", "arguments": {"a": 30, "b": 40}},
             {"tool-call-id": "c3", "action": "reject", "reason": "too large"}]}"#,
    );
    let found = bench.project.answer(&bench.only_wait(), &answer);
    let expected = r#"["Done." [[{:a 1 :b 2} true nil]
        [{:a 30 :b 40} true {:a 3 :b 4}]
        [{:a 5 :b 6} false nil]]]"#;
    assert_eq!(edn(&found), edn(expected), "{found}");
    let results = results(&bench.asked()[1]);
    let found: Vec<&str> = results.iter().map(|(_, text)| text.as_str()).collect();
    assert_eq!(
        found,
        [
            "{\"sum\":3}",
            "A person changed the arguments of this call to {\"a\":30,\"b\":40}. Its result:\n{\"sum\":70}",
            "{\"error\":\"not performed: a person rejected this call: too large\"}",
        ]
    );
    // The model's own message is sent back as it was.
    let calls = bench.asked()[1]["messages"][2]["tool_calls"].clone();
    assert_eq!(calls[1]["function"]["arguments"], "{\"a\":3,\"b\":4}");
}

#[test]
fn one_call_can_be_approved_while_the_others_are_rejected() {
    let bench = Bench::with(STEPS, vec![three(), says("Done.")]);
    bench.run(&agent(APPROVAL));
    let answer = edn(
        "{:action :reject :comment \"not now\" :decisions [{:tool-call-id \"c1\" :action :approve}]}",
    );
    bench.project.answer(&bench.only_wait(), &answer);
    let results = results(&bench.asked()[1]);
    assert_eq!(results[0].1, "{\"sum\":3}");
    for (id, text) in &results[1..] {
        assert!(text.contains("rejected this call: not now"), "{id}: {text}");
    }
}

#[test]
fn edited_arguments_must_fit_the_tool() {
    let bench = Bench::with(
        STEPS,
        vec![calls(&[("c1", "math_add", ADD)]), says("Done.")],
    );
    bench.run(&agent(APPROVAL));
    let edit = |arguments: &str| {
        edn(&format!(
            "{{:action :approve :decisions [{{:tool-call-id \"c1\" :action :edit {arguments}}}]}}"
        ))
    };
    let first = bench.only_wait();
    for wrong in [":arguments {:a \"one\"}", ""] {
        let again = bench.project.answer(&bench.only_wait(), &edit(wrong));
        assert!(again.contains("waiting"), "{wrong}: {again}");
    }
    assert_ne!(bench.only_wait(), first);
    assert_eq!(bench.asked().len(), 1, "the model sees none of it");
    let kept = bench.project.everything_kept();
    let reason = "The last answer could not be used: the decision `:edit` about the call `c1` needs a map of `:arguments`.";
    assert!(kept.contains(reason), "{kept}");
    let found = bench
        .project
        .answer(&bench.only_wait(), &edit(":arguments {:a 2 :b 2}"));
    assert!(found.contains("[\"Done.\" [[{:a 2 :b 2} true"), "{found}");
}

#[test]
fn decisions_about_other_calls_are_refused() {
    let bench = Bench::with(STEPS, vec![calls(&[("c1", "math_add", ADD)])]);
    bench.run(&agent(APPROVAL));
    for wrong in [
        "{:action :approve :decisions [{:tool-call-id \"c9\" :action :reject}]}",
        "{:action :approve :decisions [{:tool-call-id \"c1\" :action :later}]}",
        "{:action :approve :decisions [{:tool-call-id \"c1\" :action :edit :arguments 7}]}",
    ] {
        let refused = bench.project.answer(&bench.only_wait(), &edn(wrong));
        assert!(refused.starts_with("refused"), "{wrong}: {refused}");
    }
}

#[test]
fn calls_of_inner_agents_are_decided_one_by_one() {
    let definitions = format!(
        "{STEPS} :agents [{{:id :in/ner :description \"Adds.\" :objective \"Add.\" :input-schema [:map] :connection :ai :tools {{:steps [:math/add]}}}}]"
    );
    let turns = vec![
        calls(&[("o1", "in_ner", "{}")]),
        three(),
        says("inner"),
        says("outer"),
    ];
    let bench = Bench::with(&definitions, turns);
    let waiting = bench.run(&format!(
        "(:content (flow/step :agent :a {{:connection :ai :objective \"Add.\" :tools {{:agents [:in/ner]}} {APPROVAL}}}))"
    ));
    assert!(waiting.starts_with("waiting"), "{waiting}");
    let answer = edn(
        "{:action :approve :decisions [{:tool-call-id \"c2\" :action :reject :reason \"no\"} {:tool-call-id \"c3\" :action :edit :arguments {:a 9 :b 9}}]}",
    );
    let found = bench.project.answer(&bench.only_wait(), &answer);
    assert_eq!(found, "\"outer\"");
    let results = results(&bench.asked()[2]);
    assert_eq!(results[0].1, "{\"sum\":3}");
    assert!(results[1].1.contains("rejected this call: no"));
    assert!(results[2].1.ends_with("{\"sum\":18}"), "{}", results[2].1);
}

/// Adds functions to those of the steps.
fn with_function(code: &str) -> String {
    STEPS.replacen(
        ":functions [",
        &format!(":functions [{{:id :check :code {code}}} "),
        1,
    )
}

#[test]
fn a_function_changes_or_refuses_single_calls() {
    let code = "(fn [{:keys [tool arguments tool-call-id changes? iteration]}]
                  (case tool-call-id
                    \"c1\" nil
                    \"c2\" {:arguments (assoc arguments :b 100)}
                    {:refuse (str tool \" may not add \" (:a arguments) \", \" changes? \", \" iteration)}))";
    for hook in [":check".to_owned(), code.to_owned(), format!("'{code}")] {
        let bench = Bench::with(&with_function(code), vec![three(), says("Done.")]);
        // Quotes end a quoted flow's text only in the file.
        let found = bench.run(&agent(&format!(":before-each-call {hook}")));
        let expected = r#"["Done." [[{:a 1 :b 2} true nil]
            [{:a 3 :b 100} true {:a 3 :b 4}]
            [{:a 5 :b 6} false nil]]]"#;
        assert!(found.starts_with('['), "{hook}: {found}");
        assert_eq!(edn(&found), edn(expected), "{hook}: {found}");
        let results = results(&bench.asked()[1]);
        let texts: Vec<&str> = results.iter().map(|(_, text)| text.as_str()).collect();
        assert_eq!(
            texts,
            [
                "{\"sum\":3}",
                "{\"sum\":103}",
                "{\"error\":\"not performed: math_add may not add 5, false, 1\"}"
            ]
        );
    }
}

#[test]
fn a_function_changes_or_withholds_results() {
    let code = "(fn [{:keys [tool-call-id result success arguments]}]
                  (case tool-call-id
                    \"c1\" nil
                    \"c2\" {:result {:hidden (:sum result) :of (:a arguments) :success success}}
                    {:refuse \"it is private\"}))";
    let bench = Bench::with(&with_function(code), vec![three(), says("Done.")]);
    bench.run(&agent(":after-each-call :check"));
    let results = results(&bench.asked()[1]);
    let texts: Vec<&str> = results.iter().map(|(_, text)| text.as_str()).collect();
    assert_eq!(
        texts,
        [
            "{\"sum\":3}",
            "{\"hidden\":7,\"of\":3,\"success\":true}",
            "{\"error\":\"the result is withheld: it is private\"}"
        ]
    );
    assert!(!bench.asked()[1].to_string().contains("\"sum\\\":11"));
}

#[test]
fn a_check_that_fails_does_not_pass() {
    for (hook, code, expected) in [
        (
            ":before-each-call",
            "(fn [_] (throw (ex-info \"broken\" {})))",
            "the check of this call failed",
        ),
        (
            ":before-each-call",
            "(fn [_] {:argument {}})",
            "the check of this call failed",
        ),
        (
            ":after-each-call",
            "(fn [_] (throw (ex-info \"broken\" {})))",
            "the result is withheld: its check failed",
        ),
        (
            ":after-each-call",
            "(fn [_] true)",
            "the result is withheld: its check failed",
        ),
    ] {
        let turns = vec![calls(&[("c1", "math_add", ADD)]), says("Done.")];
        let bench = Bench::with(&with_function(code), turns);
        let found = bench.run(&format!(
            "(let [r (flow/step :agent :a {{:connection :ai :objective \"Add.\" :tools {{:steps [:math/add]}} {hook} :check}})] [(:content r) (count (:warnings r))])"
        ));
        assert_eq!(found, "[\"Done.\" 1]", "{hook} {code}");
        let results = results(&bench.asked()[1]);
        assert!(
            results[0].1.contains(expected),
            "{hook} {code}: {results:?}"
        );
        assert!(!results[0].1.contains("sum"), "{hook} {code}: {results:?}");
    }
}

#[test]
fn a_function_that_does_not_exist_is_found_before_the_first_turn() {
    let bench = Bench::with(STEPS, Vec::new());
    let found = bench.run(&agent(":before-each-call :chek"));
    assert!(found.starts_with("E0705"), "{found}");
    assert_eq!(bench.asked().len(), 0);
}

#[test]
fn a_decision_of_a_function_is_journaled() {
    let code = "(fn [{:keys [arguments]}] {:arguments (assoc arguments :b 100)})";
    let turns = vec![
        calls(&[("c1", "math_add", ADD)]),
        calls(&[("c2", "ask", "{}")]),
        says("Done."),
    ];
    let bench = Bench::with(&with_function(code), turns);
    let body = "(:content (flow/step :agent :a {:connection :ai :objective \"Add.\" :tools {:steps [:math/add]} :client-tools [{:name \"ask\"}] :before-each-call :check}))";
    let waiting = bench.run(body);
    assert!(waiting.starts_with("waiting"), "{waiting}");
    let kept = bench.project.everything_kept();
    assert!(kept.contains("a/before-each-call"), "{kept}");
    let wait = bench.only_wait();
    let answer = edn("{:outputs [{:tool-call-id \"c2\" :output 1}]}");
    let found = bench.project.reopen().answer(&wait, &answer);
    assert_eq!(found, "\"Done.\"");
    assert_eq!(bench.server.requests().len(), 3);
}

#[test]
fn a_changed_call_needs_approval_as_it_is_performed() {
    let code = "(fn [{:keys [arguments]}] {:arguments (assoc arguments :b 100)})";
    let turns = vec![calls(&[("c1", "math_add", ADD)]), says("Done.")];
    let bench = Bench::with(&with_function(code), turns);
    bench.run(&agent(&format!(":before-each-call :check {APPROVAL}")));
    let kept = bench.project.everything_kept();
    assert!(
        kept.contains("a/approval") && kept.contains("{:a 1 :b 100}"),
        "{kept}"
    );
    let found = bench
        .project
        .answer(&bench.only_wait(), &edn("{:action :approve}"));
    assert!(
        found.contains("[[{:a 1 :b 100} true {:a 1 :b 2}]]"),
        "{found}"
    );
}

/// A flow that waits by itself, with an answer.
fn by_the_flow(answer: &str) -> String {
    format!(
        "(let [config {{:connection :ai :tools {{:steps [:math/add]}} :approval {{:tool-names [\"math_add\"]}} :return-messages true}}
               asked (flow/step :agent :one (assoc config :objective \"Add.\"))
               done (flow/step :agent :two (assoc config :messages (:messages asked) :approval-answer {answer}))]
           [(:abort-reason asked) (:content done) (mapv (juxt :arguments :success) (:tool-calls done)) (mapv :role (:messages done))])"
    )
}

#[test]
fn the_flow_hands_an_answer_to_a_second_step() {
    let bench = Bench::with(STEPS, vec![three(), says("Done.")]);
    let found = bench.run(&by_the_flow(
        "{:action :approve :decisions [{:tool-call-id \"c2\" :action :edit :arguments {:a 0 :b 0}} {:tool-call-id \"c3\" :action :reject :reason \"no\"}]}",
    ));
    let expected = r#"["approval-required" "Done."
        [[{:a 1 :b 2} true] [{:a 0 :b 0} true] [{:a 5 :b 6} false]]
        [:user :assistant :tool :tool :tool :assistant]]"#;
    assert!(found.starts_with('['), "{found}");
    assert_eq!(edn(&found), edn(expected), "{found}");
    let results = results(&bench.asked()[1]);
    assert!(results[2].1.contains("rejected this call: no"));
}

#[test]
fn an_answer_that_does_not_fit_performs_nothing() {
    for (answer, expected) in [
        (
            "{:action :approve :decisions [{:tool-call-id \"c9\" :action :reject}]}",
            "there is no call `c9`",
        ),
        (
            "{:action :approve :decisions [{:tool-call-id \"c2\" :action :edit :arguments {:a \"x\"}}]}",
            "the arguments for the call `c2`",
        ),
        (
            "{:action :approve :decisions [{:tool-call-id \"c2\" :action :edit}]}",
            "needs a map of `:arguments`",
        ),
    ] {
        let bench = Bench::with(STEPS, vec![three()]);
        let found = bench.run(&by_the_flow(answer));
        assert!(
            found.starts_with("E1305 `:approval-answer`: ") && found.contains(expected),
            "{answer}: {found}"
        );
        assert_eq!(bench.asked().len(), 1);
    }
    for (fields, expected) in [
        (
            ":objective \"Add.\"",
            "E1305 `:approval-answer` needs the `:messages`",
        ),
        (
            ":messages [{:role :user :content \"Add.\"}]",
            "E1305 `:approval-answer`: `:messages` do not end with calls",
        ),
    ] {
        let found = Bench::with(STEPS, Vec::new()).run(&format!(
            "(flow/step :agent :a {{:connection :ai {fields} :approval-answer {{:action :approve}}}})"
        ));
        assert!(found.starts_with(expected), "{fields}: {found}");
    }
}

/// An agent that the outer one calls as a tool, with further fields, and functions of the flow.
fn with_inner(fields: &str, code: &str) -> String {
    format!(
        "{} :agents [{{:id :in/ner :description \"Adds.\" :objective \"Add.\" :input-schema [:map] :connection :ai :tools {{:steps [:math/add]}} {fields}}}]",
        with_function(code)
    )
}

/// The turns of an outer agent, and of an inner one that makes a call.
fn nested() -> Vec<Say> {
    vec![
        calls(&[("o1", "in_ner", "{}")]),
        calls(&[("c1", "math_add", ADD)]),
        says("inner"),
        says("outer"),
    ]
}

#[test]
fn hooks_for_single_calls_see_the_call_of_an_inner_agent_as_one_call() {
    let code = "(fn [{:keys [tool]}] (when (= tool \"math_add\") {:refuse \"not here\"}))";
    let outer = |hook: &str| {
        format!(
            "(:content (flow/step :agent :a {{:connection :ai :objective \"Add.\" :tools {{:agents [:in/ner]}} {hook}}}))"
        )
    };
    for (own, of_inner, expected) in [
        (":before-each-call :check", "", "{\"sum\":3}"),
        ("", ":before-each-call :check", "not performed: not here"),
    ] {
        let bench = Bench::with(&with_inner(of_inner, code), nested());
        assert_eq!(bench.run(&outer(own)), "\"outer\"");
        let results = results(&bench.asked()[2]);
        assert!(
            results[0].1.contains(expected),
            "{own} {of_inner}: {results:?}"
        );
    }
    let refuse = "(fn [{:keys [tool]}] (when (= tool \"in_ner\") {:refuse \"not at all\"}))";
    let turns = vec![calls(&[("o1", "in_ner", "{}")]), says("outer")];
    let bench = Bench::with(&with_inner("", refuse), turns);
    assert_eq!(bench.run(&outer(":before-each-call :check")), "\"outer\"");
    assert!(results(&bench.asked()[1])[0].1.contains("not at all"));
}

#[test]
fn an_answer_of_the_flow_does_not_continue_an_inner_agent() {
    let bench = Bench::with(&with_inner("", "(fn [_] nil)"), nested());
    let found = bench.run(
        "(let [config {:connection :ai :tools {:agents [:in/ner]} :approval {:tool-names [\"math_add\"]} :return-messages true}
               asked (flow/step :agent :one (assoc config :objective \"Add.\"))]
           (when (= \"approval-required\" (:abort-reason asked))
             (flow/step :agent :two (assoc config :messages (:messages asked) :approval-answer {:action :approve}))))",
    );
    assert!(
        found.starts_with("E1305 `:approval-answer`: `:messages` do not end with calls"),
        "{found}"
    );
}
