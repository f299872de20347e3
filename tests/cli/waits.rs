//! `flowstone waits`: the wiring of its verbs; what answers mean is tested with the engine.

use crate::program::{Ran, Scratch};

const PAY: &str = r#"{:slug :pay
 :flow '(flow/step :wait :ok {:key "door" :message "Pay 1,200?" :data {:amount 1200}
                              :actions [:approve :reject] :roles [:finance]})}"#;
const SIGNAL: &str = r#"{:slug :signal
 :flow '(flow/step :wait :paid {:key "order-1" :validation [:map [:amount :int]]})}"#;

/// Returns a project in which a flow waits.
fn waiting(flow: &str) -> Scratch {
    let scratch = Scratch::new();
    scratch.write("flow.edn", flow);
    let ran = scratch.run(&["run", "flow.edn", "--quiet"]);
    assert_eq!(ran.code, Some(3), "{ran:?}");
    scratch
}

#[track_caller]
fn refused(ran: &Ran, code: &str) {
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.err.contains(code), "{ran:?}");
}

#[test]
fn an_approval_needs_its_role_and_is_given_once() {
    let scratch = waiting(PAY);
    refused(&scratch.run(&["waits", "approve", "door"]), "E0525");
    let token = |args: &[&str]| {
        let shown = scratch.run(&[&["waits", "show", "door", "--json"], args].concat());
        shown.json()["token"].as_str().map(str::to_owned)
    };
    assert_eq!(token(&[]), None);
    let token = token(&["--role", "finance"]).expect("a token");
    assert_eq!(token.len(), 32);
    let who = ["--as", "Nora", "--role", "finance"];
    let approve = [&["waits", "approve", &token, "--comment", "fine"][..], &who].concat();
    let ran = scratch.run(&approve).ok();
    assert_eq!(
        ran.trim(),
        r#"{:action :approve, :comment "fine", :by "Nora"}"#
    );
    let again = scratch.run(&[&["waits", "reject", "door"][..], &who].concat());
    refused(&again, "E0515");
    assert!(again.err.contains("`:approve` by Nora at 20"), "{again:?}");
    let again = scratch.run(&approve);
    refused(&again, "E0515");
    assert!(!again.err.contains(&token), "the token is in an error");
    let decided = scratch.run(&["waits", "list", "--key", "door", "--all", "--json"]);
    let decided = &decided.json()["waits"][0];
    assert_eq!(decided["state"], "answered");
    assert_eq!(decided["decidedBy"], "Nora");
}

#[test]
fn the_token_is_shown_nowhere_else() {
    let scratch = waiting(PAY);
    let shown = scratch.run(&["waits", "show", "door", "--role", "finance", "--json"]);
    let shown = shown.json();
    let (token, run) = (&shown["token"], &shown["run"]);
    let (token, run) = (token.as_str().expect("text"), run.as_str().expect("text"));
    for args in [
        &["waits", "list"][..],
        &["waits", "list", "--json"],
        &["waits", "show", "door"],
        &["runs", "show", run],
        &["runs", "show", run, "--json"],
        &["runs", "resume", run],
        &["runs", "list", "--json"],
    ] {
        let ran = scratch.run(args);
        assert!(
            !ran.out.contains(token) && !ran.err.contains(token),
            "{args:?}: {ran:?}"
        );
    }
}

#[test]
fn a_digest_names_what_was_seen() {
    let scratch = waiting(PAY);
    let shown = scratch.run(&["waits", "show", "door", "--json"]).json();
    let digest = shown["digest"].as_str().expect("a digest");
    let reject = |digest: &str| {
        let who = ["--role", "finance", "--reason", "too much"];
        scratch.run(&[&["waits", "reject", "door", "--digest", digest][..], &who].concat())
    };
    refused(&reject("0123456789"), "E0526");
    let ran = reject(&digest[..12]).ok();
    assert!(ran.contains(":reason \"too much\""), "{ran}");
}

#[test]
fn signals_are_kept_and_known_again() {
    let scratch = Scratch::new();
    scratch.write("flow.edn", SIGNAL);
    let send = |value: &str, dedup: &str| {
        let args = [
            "waits", "signal", "order-1", "--value", value, "--dedup", dedup,
        ];
        let ran = scratch.run(&args);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        ran.err
    };
    assert!(send("{:amount \"much\"}", "a").contains("kept"));
    assert!(send("{:amount 20}", "b").contains("kept"));
    assert!(send("{:amount 20}", "b").contains("delivered before"));
    let ran = scratch.run(&["run", "flow.edn", "--quiet"]).ok();
    assert_eq!(ran.trim(), "{:amount 20}");
    assert!(send("{:amount 20}", "b").contains("delivered before"));
    let signals = scratch
        .run(&["waits", "list", "--signals", "--json"])
        .json();
    let signals = signals["signals"].as_array().expect("a list");
    assert_eq!(signals.len(), 1, "{signals:?}");
    let why = signals[0]["reason"].as_str().unwrap_or_default();
    assert!(why.contains("should be an integer"), "{why}");
}

#[test]
fn an_event_finds_its_wait_by_what_it_carries() {
    let scratch = waiting(
        r#"{:slug :event
            :flow '(flow/step :wait :paid {:key "order-1" :event {:name "orders.paid" :key {:path [:order :id]}}})}"#,
    );
    let send = |id: &str| {
        let value = format!("{{\"order\": {{\"id\": \"{id}\"}}}}");
        scratch.run(&[
            "waits",
            "event",
            "orders.paid",
            "--value",
            &value,
            "--quiet",
        ])
    };
    assert_eq!(send("order-2").out, "");
    assert_eq!(send("order-1").ok().trim(), r#"{:order {:id "order-1"}}"#);
}

#[test]
fn a_wait_that_is_cancelled_fails_its_step() {
    let scratch = waiting(SIGNAL);
    let ran = scratch.run(&["waits", "cancel", "order-1", "--reason", "no longer"]);
    refused(&ran, "E0529");
    assert!(ran.err.contains("no longer"), "{ran:?}");
    refused(&scratch.run(&["waits", "cancel", "order-1"]), "E0515");
}

#[test]
fn a_signal_completes_all_waits_of_its_key() {
    let scratch = waiting(SIGNAL);
    let second = scratch.run(&["run", "flow.edn", "--quiet", "--new"]);
    assert_eq!(second.code, Some(3), "{second:?}");
    refused(
        &scratch.run(&["waits", "complete", "order-1", "--value", "{}"]),
        "E0516",
    );
    let ambiguous = scratch.run(&["waits", "show", "order-1"]);
    refused(&ambiguous, "E0527");
    let answer = [
        "waits",
        "complete",
        "order-1",
        "--value",
        "{:amount 7}",
        "--json",
    ];
    let runs = scratch.run(&answer).json();
    assert_eq!(runs["runs"].as_array().map(Vec::len), Some(2), "{runs}");
    assert_eq!(runs["runs"][1]["result"]["amount"], 7);
}

#[test]
fn an_answer_may_leave_the_run_to_others() {
    let scratch = waiting(SIGNAL);
    let answer = ["waits", "complete", "order-1", "--value", "{:amount 7}"];
    let ran = scratch.run(&[&answer[..], &["--no-resume"]].concat());
    assert_eq!((ran.code, &*ran.out), (Some(0), ""), "{ran:?}");
    assert!(ran.err.contains("runs resume"), "{ran:?}");
    let ran = scratch.run(&["runs", "resume", "--all", "--quiet"]).ok();
    assert_eq!(ran.trim(), "{:amount 7}");
}
