//! `:compact` of an agent: older messages become a journaled summary.

use serde_json::Value as Json;

use crate::agent::{Bench, calls, says};
use crate::server::{Say, reply};

/// A tool that returns 2,000 letters.
const LONG: &str = ":functions [{:id :long :code (fn [_] {:text (apply str (repeat 2000 \"a\"))})}] \
                    :steps [{:id :notes/all :type :function :description \"All notes.\" :defaults {:ref :long}}]";

fn notes(id: &str) -> Say {
    calls(&[(id, "notes_all", "{}")])
}

/// An agent that reads notes.
fn agent(fields: &str) -> String {
    format!(
        "(flow/step :agent :a {{:connection :ai :objective \"Read the notes.\" :tools {{:steps [:notes/all]}} {fields}}})"
    )
}

fn roles(asked: &Json) -> Vec<&str> {
    let messages = asked["messages"].as_array().expect("messages");
    messages
        .iter()
        .map(|it| it["role"].as_str().unwrap_or_default())
        .collect()
}

fn text(asked: &Json, at: usize) -> &str {
    asked["messages"][at]["content"].as_str().expect("text")
}

#[test]
fn a_summary_replaces_older_messages_before_the_window_is_full() {
    let turns = vec![
        notes("c1"),
        notes("c2"),
        says("The notes say a."),
        says("Only a."),
    ];
    let bench = Bench::with(LONG, turns);
    let fields = ":model \"big\" :compact {:at 0.8 :keep 2 :window 600 :model \"small\" :instructions \"Keep the letters.\"}";
    let found = bench.run(&format!(
        "(let [r {}] [(:content r) (:iterations r) (:tokens-used r) (:warnings r)])",
        agent(fields)
    ));
    // The summary is not a turn, and its tokens count.
    assert_eq!(found, "[\"Only a.\" 3 60 nil]");
    let asked = bench.asked();
    let summary = &asked[2];
    assert_eq!(
        (&summary["model"], &asked[3]["model"]),
        (&"small".into(), &"big".into())
    );
    assert_eq!(roles(summary), ["system", "user"]);
    assert!(text(summary, 0).contains("The summary must also keep:\nKeep the letters."));
    assert!(
        text(summary, 1).contains("call of notes_all: {}\nresult of notes_all: {\"text\":\"aaa")
    );
    assert!(summary.get("tools").is_none(), "{summary}");
    assert_eq!(
        roles(&asked[3]),
        ["system", "user", "user", "assistant", "tool"]
    );
    assert!(text(&asked[3], 1).starts_with("Summary of the conversation so far"));
    assert!(text(&asked[3], 1).ends_with("\nThe notes say a."));
    assert_eq!(text(&asked[3], 2), "Objective:\nRead the notes.");
    let messages = &asked[3]["messages"];
    assert_eq!(messages[3]["tool_calls"][0]["id"], "c2");
    assert_eq!(messages[4]["tool_call_id"], "c2");
}

#[test]
fn a_summary_is_made_once_over_a_restart() {
    let turns = vec![
        notes("c1"),
        notes("c2"),
        says("The notes say a."),
        calls(&[("c3", "ask", "{}")]),
        says("Done."),
    ];
    let bench = Bench::with(LONG, turns);
    let fields = ":compact {:at 0.8 :keep 2 :window 600} :client-tools [{:name \"ask\"}]";
    let waiting = bench.run(&agent(fields));
    assert!(waiting.starts_with("waiting"), "{waiting}");
    let wait = bench.only_wait();
    let project = bench.project.reopen();
    let answer = crate::world::edn("{:outputs [{:tool-call-id \"c3\" :output \"yes\"}]}");
    let found = project.answer(&wait, &answer);
    assert!(found.contains("\"Done.\""), "{found}");
    assert_eq!(
        bench.server.requests().len(),
        5,
        "no turn and no summary is repeated"
    );
    let last = bench.server.body(4);
    let expected = [
        "system",
        "user",
        "user",
        "assistant",
        "tool",
        "assistant",
        "tool",
    ];
    assert_eq!(roles(&last), expected);
    assert!(text(&last, 1).ends_with("\nThe notes say a."));
}

fn too_long() -> Say {
    reply(
        "400 Bad Request",
        &["content-type: application/json"],
        r#"{"error": {"message": "maximum context length", "code": "context_length_exceeded"}}"#,
    )
}

#[test]
fn without_a_known_window_the_provider_decides() {
    let turns = vec![
        notes("c1"),
        notes("c2"),
        too_long(),
        says("The notes say a."),
        says("Only a."),
    ];
    let bench = Bench::with(LONG, turns);
    let found = bench.run(&format!("(:content {})", agent(":compact {:keep 2}")));
    assert_eq!(found, "\"Only a.\"");
    let asked = bench.asked();
    let expected = ["system", "user", "user", "assistant", "tool"];
    assert_eq!(roles(&asked[4]), expected);
}

#[test]
fn a_summary_that_fails_does_not_end_the_agent() {
    let refused = || reply("400 Bad Request", &["content-type: application/json"], "{}");
    let turns = vec![notes("c1"), notes("c2"), refused(), says("Only a.")];
    let bench = Bench::with(LONG, turns);
    let found = bench.run(&format!(
        "(let [r {}] [(:content r) (count (:warnings r)) (first (:warnings r))])",
        agent(":compact {:keep 2 :window 600}")
    ));
    assert!(
        found.starts_with("[\"Only a.\" 1 \"older messages were not summarized: "),
        "{found}"
    );
    let expected = ["system", "user", "assistant", "tool", "assistant", "tool"];
    assert_eq!(roles(&bench.asked()[3]), expected);
}

#[test]
fn a_thread_keeps_the_summary() {
    let turns = vec![
        notes("c1"),
        notes("c2"),
        says("The notes say a."),
        says("Only a."),
        says("Yes."),
    ];
    let bench = Bench::with(LONG, turns);
    let fields = ":thread :t :compact {:keep 2 :window 600}";
    bench.run(&agent(fields));
    let found = bench.run(&format!("(:content {})", agent(":thread :t")));
    assert_eq!(found, "\"Yes.\"");
    let last = &bench.asked()[4];
    let expected = [
        "system",
        "user",
        "user",
        "assistant",
        "tool",
        "assistant",
        "user",
    ];
    assert_eq!(roles(last), expected);
    assert!(text(last, 1).ends_with("\nThe notes say a."));
    assert_eq!(text(last, 5), "Only a.");
}

#[test]
fn wrong_options_of_compact_are_named() {
    for (fields, expected) in [
        (
            ":compact {:at 1.5}",
            "E1301 `:compact :at` must be from 0.1 to 0.95, and is 1.5",
        ),
        (":compact {:keep 0}", "from 1 to 1000"),
        (":compact {:size 3}", "`:size`"),
    ] {
        let found = Bench::with(LONG, Vec::new()).run(&agent(fields));
        assert!(found.contains(expected), "{fields}: {found}");
    }
}

#[test]
fn check_finds_a_wrong_part_of_the_window() {
    let flow = "{:slug :a :flow '(flow/step :agent :a {:connection :ai :objective \"Read.\" :compact {:at 70}})}";
    let found = Bench::new(Vec::new()).project.check(flow);
    assert!(
        found.contains("E1301 `:compact :at` must be from 0.1 to 0.95, and is 70"),
        "{found}"
    );
}
