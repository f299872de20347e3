//! `:thread` and `:return-messages` of an agent: conversations over several runs.

use flowstone_engine::observer::NoObserver;
use flowstone_engine::ports::RunFilter;
use flowstone_engine::{ExecuteOptions, ForkOptions};
use serde_json::Value as Json;

use crate::agent::{Bench, STEPS, calls, says};
use crate::project::shown;
use crate::world::edn;

const ADD: &str = "{\"a\":1,\"b\":2}";

/// A step of a conversation.
fn chat(text: &str, fields: &str) -> String {
    format!(
        "(:content (flow/step :agent :a {{:connection :ai :instructions \"Be brief.\" :messages [{{:role :user :content \"{text}\"}}] {fields}}}))"
    )
}

/// Returns the messages of a request, each as its role and its text or the ids of its calls.
fn said(asked: &Json) -> Vec<String> {
    let messages = asked["messages"].as_array().expect("messages");
    let line = |message: &Json| {
        let role = message["role"].as_str().unwrap_or_default();
        let calls = message["tool_calls"].as_array();
        let ids = calls.map(|calls| calls.iter().map(|call| call["id"].to_string()));
        match ids {
            Some(ids) => format!("{role} calls {}", ids.collect::<Vec<_>>().join(" ")),
            None => format!("{role} {}", message["content"].as_str().unwrap_or_default()),
        }
    };
    messages.iter().map(line).collect()
}

#[test]
fn the_result_gives_the_messages() {
    let turns = vec![calls(&[("c1", "math_add", ADD)]), says("It is 3.")];
    let bench = Bench::with(STEPS, turns);
    let found = bench.run(
        "(:messages (flow/step :agent :a {:connection :ai :instructions \"Be brief.\" :messages [{:role :user :content \"1 + 2?\"}] :tools {:steps [:math/add]} :return-messages true}))",
    );
    let expected = r#"[{:role :user :content "1 + 2?"}
        {:role :assistant :content "" :tool-calls [{:tool-call-id "c1" :name "math_add" :arguments {:a 1 :b 2}}]}
        {:role :tool :tool-call-id "c1" :name "math_add" :content "{\"sum\":3}"}
        {:role :assistant :content "It is 3."}]"#;
    assert_eq!(edn(&found), edn(expected), "{found}");
}

#[test]
fn messages_of_a_result_continue_the_conversation() {
    let bench = Bench::with(
        STEPS,
        vec![calls(&[("c1", "math_add", ADD)]), says("3"), says("4")],
    );
    let found = bench.run(
        "(let [config {:connection :ai :tools {:steps [:math/add]} :return-messages true}
               one (flow/step :agent :one (assoc config :messages [{:role :user :content \"1 + 2?\"}]))
               two (flow/step :agent :two (assoc config :messages (conj (:messages one) {:role :user :content \"And one more?\"})))]
           [(:content two) (count (:messages two))])",
    );
    assert_eq!(found, "[\"4\" 6]");
    let expected = [
        "user 1 + 2?",
        "assistant calls \"c1\"",
        "tool {\"sum\":3}",
        "assistant 3",
        "user And one more?",
    ];
    assert_eq!(said(&bench.asked()[2]), expected);
}

#[test]
fn instructions_of_the_loop_are_not_part_of_the_messages() {
    let turns = vec![
        calls(&[("c1", "math_add", ADD)]),
        calls(&[("c2", "math_add", ADD)]),
        says("So far 3."),
    ];
    let bench = Bench::with(STEPS, turns);
    let found = bench.run(
        "(mapv :role (:messages (flow/step :agent :a {:connection :ai :objective \"Add.\" :tools {:steps [:math/add] :max-tool-calls 1} :return-messages true})))",
    );
    assert_eq!(
        found,
        "[:user :assistant :tool :assistant :tool :assistant]"
    );
    assert!(
        bench.asked()[2]
            .to_string()
            .contains("can no longer be called")
    );
}

#[test]
fn a_thread_continues_in_another_run() {
    let turns = vec![
        calls(&[("c1", "math_add", ADD)]),
        says("It is 3."),
        says("Ann."),
        says("Hello."),
    ];
    let bench = Bench::with(STEPS, turns);
    let fields = ":thread \"ann@example.com\" :tools {:steps [:math/add]}";
    assert_eq!(bench.run(&chat("I am Ann. 1 + 2?", fields)), "\"It is 3.\"");
    assert_eq!(bench.run(&chat("Who am I?", fields)), "\"Ann.\"");
    let expected = [
        "system Be brief.",
        "user I am Ann. 1 + 2?",
        "assistant calls \"c1\"",
        "tool {\"sum\":3}",
        "assistant It is 3.",
        "user Who am I?",
    ];
    assert_eq!(said(&bench.asked()[2]), expected);
    // Another key is another conversation.
    bench.run(&chat("Who am I?", ":thread :bob"));
    assert_eq!(said(&bench.asked()[3]).len(), 2);
}

#[test]
fn a_thread_is_read_again_after_a_reopening() {
    let Bench {
        project, server, ..
    } = {
        let bench = Bench::new(vec![says("Hello, Ann."), says("Ann.")]);
        assert_eq!(
            bench.run(&chat("I am Ann.", ":thread :t")),
            "\"Hello, Ann.\""
        );
        bench
    };
    let project = project.reopen();
    project.clock.advance(1_000);
    assert_eq!(project.eval(&chat("Who am I?", ":thread :t")), "\"Ann.\"");
    let asked = server.body(1);
    assert_eq!(
        said(&asked)[1..3],
        ["user I am Ann.", "assistant Hello, Ann."]
    );
}

#[test]
fn a_window_leaves_out_whole_runs() {
    let turns = vec![
        says("one"),
        calls(&[("c1", "math_add", ADD)]),
        says("two"),
        says("three"),
    ];
    let bench = Bench::with(STEPS, turns);
    let fields = ":thread {:key :t :window 5} :tools {:steps [:math/add]}";
    for text in ["1?", "2?", "3?"] {
        bench.run(&chat(text, fields));
    }
    // The second run has four messages; with the two of the first there would be six.
    let expected = [
        "system Be brief.",
        "user 2?",
        "assistant calls \"c1\"",
        "tool {\"sum\":3}",
        "assistant two",
        "user 3?",
    ];
    assert_eq!(said(&bench.asked()[3]), expected);
}

#[test]
fn a_long_run_is_kept_within_the_window() {
    let mut turns: Vec<_> = (1..=4)
        .map(|at| {
            calls(&[(
                &*format!("c{at}"),
                "math_add",
                &*format!("{{\"a\":1,\"b\":{at}}}"),
            )])
        })
        .collect();
    turns.extend([says("done"), says("yes")]);
    let bench = Bench::with(STEPS, turns);
    let fields = ":thread {:key :t :window 6} :tools {:steps [:math/add]}";
    bench.run(&chat("Add.", fields));
    bench.run(&chat("Done?", fields));
    let expected = [
        "system Be brief.",
        "user Add.",
        "assistant calls \"c3\"",
        "tool {\"sum\":4}",
        "assistant calls \"c4\"",
        "tool {\"sum\":5}",
        "assistant done",
        "user Done?",
    ];
    assert_eq!(said(&bench.asked()[5]), expected);
}

#[test]
fn a_run_that_failed_or_was_stopped_adds_nothing() {
    let refused =
        crate::server::reply("400 Bad Request", &["content-type: application/json"], "{}");
    let bench = Bench::with(
        STEPS,
        vec![refused, calls(&[("c1", "math_add", ADD)]), says("Hello.")],
    );
    let failed = bench.run(&chat("One?", ":thread :t"));
    assert!(failed.starts_with("E08"), "{failed}");
    let stopped = ":thread :t :tools {:steps [:math/add]} :approval {:tool-names [\"math_add\"]}";
    bench.run(&chat("Two?", stopped));
    bench.run(&chat("Three?", ":thread :t"));
    assert_eq!(said(&bench.asked()[2]), ["system Be brief.", "user Three?"]);
}

#[test]
fn a_fork_and_a_replay_do_not_read_the_newer_thread() {
    let turns = ["1", "2", "3", "4"].map(says);
    let bench = Bench::new(turns.into());
    let body = |text: &str| chat(text, ":thread :t");
    let project = &bench.project;
    for text in ["one", "two", "three"] {
        bench.run(&body(text));
        project.clock.advance(1_000);
    }
    let forked = project.block_on(async {
        let engine = &project.engine;
        let runs = engine.list_runs(RunFilter::default()).await.expect("runs");
        let mut ids: Vec<_> = runs.iter().map(|run| run.id.clone()).collect();
        ids.sort();
        let second = ids[1].clone();
        let fork = engine.fork(&second, ForkOptions::default()).await;
        let fork = fork.expect("a fork");
        let options = ExecuteOptions::default();
        let ended = engine
            .execute(&fork, std::rc::Rc::new(NoObserver), options)
            .await;
        shown(ended)
    });
    assert_eq!(forked, "\"4\"");
    let expected = ["system Be brief.", "user one", "assistant 1", "user two"];
    assert_eq!(said(&bench.asked()[3]), expected);
}

#[test]
fn concurrent_runs_of_a_thread_lose_nothing() {
    let bench = Bench::new(vec![says("A"), says("B"), says("C")]);
    let found = bench.run(&format!(
        "(do (flow/all [(fn [] {}) (fn [] {})]) {})",
        chat("one", ":thread :t"),
        chat("two", ":thread :t"),
        chat("three", ":thread :t")
    ));
    assert_eq!(found, "\"C\"", "{found}");
    let last = said(&bench.asked()[2]);
    assert_eq!(last.len(), 6, "{last:?}");
    assert!(last.contains(&"user one".to_owned()) && last.contains(&"user two".to_owned()));
}

#[test]
fn a_wrong_thread_is_named() {
    for (fields, expected) in [
        (
            ":thread \"\"",
            "E1300 `:thread` needs the name of a conversation",
        ),
        (":thread {:window 4}", "`:key`"),
        (":thread {:key :t :window 1}", "from 2 to 400"),
        (":thread {:key :t :size 9}", "`:size`"),
    ] {
        let found = Bench::new(Vec::new()).run(&chat("Hi", fields));
        assert!(found.contains(expected), "{fields}: {found}");
    }
    let bench = Bench::new(Vec::new());
    let found = bench.run(&format!(
        "(do (flow/step :kv :k {{:operation :set :key \"agent-thread:t\" :value 1}}) {})",
        chat("Hi", ":thread :t")
    ));
    assert!(
        found.starts_with("E1300 the key `agent-thread:t` does not hold a conversation"),
        "{found}"
    );
    assert_eq!(bench.asked(), Vec::<Json>::new());
}

#[test]
fn a_thread_that_becomes_too_large_keeps_its_newer_half() {
    // The settings end with the maximum size of a value, which is that of ten blocks.
    let connection = "{:backend :openai :base-url \"URL/v1\" :model \"m\" :auth {:type :api-key :secret-ref :ai-key}}} :resources {:max-value 21000";
    let turns = (0..14).map(|at| says(&format!("answer {at}")));
    let bench = Bench::behind(connection, "", turns.collect());
    for at in 0..14 {
        let found = bench.run(&format!(
            "(let [r (flow/step :agent :a {{:connection :ai :messages [{{:role :user :content (str \"request {at} \" (apply str (repeat 1900 \"x\")))}}] :thread {{:key :t :window 400}}}})] [(:content r) (:warnings r)])"
        ));
        assert_eq!(found, format!("[\"answer {at}\" nil]"));
    }
    let counts: Vec<usize> = bench.asked().iter().map(|it| said(it).len()).collect();
    let (most, last) = (counts.iter().max().unwrap(), said(&bench.asked()[13]));
    assert!((17..=21).contains(most) && last.len() < *most, "{counts:?}");
    assert!(last.iter().any(|line| line == "assistant answer 12"));
    assert!(!last.iter().any(|line| line == "assistant answer 2"));
}
