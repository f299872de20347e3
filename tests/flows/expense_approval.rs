//! `expense-approval.edn`: stops for a person, and goes on in another process.

use super::{data, only_wait, project};
use crate::program::Scratch;

const RUN: &[&str] = &[
    "run",
    "flows/expense-approval.edn",
    "--input",
    "@flows/expense-approval/input.edn",
];

#[track_caller]
fn decide(answer: &str, expected: &str) -> Scratch {
    let scratch = project();
    let suspended = scratch.run(RUN);
    assert_eq!(
        (suspended.code, &*suspended.out),
        (Some(3), ""),
        "{}",
        suspended.err
    );
    assert!(
        suspended.err.contains("flowstone waits complete"),
        "{}",
        suspended.err
    );
    let wait = only_wait(&scratch);
    let result = scratch
        .run(&["waits", "complete", &wait, "--value", answer])
        .ok();
    let expected = scratch.read(&format!("flows/expense-approval/{expected}"));
    assert_eq!(data(&result), data(&expected));
    scratch
}

#[test]
fn what_a_person_approves_is_approved() {
    let scratch = decide("{:action :approve :by \"Nora\"}", "expected-approved.edn");
    assert_eq!(
        scratch.run(&["waits", "list", "--json"]).json()["waits"],
        serde_json::json!([])
    );
}

#[test]
fn what_a_person_rejects_is_rejected() {
    decide("{\"action\": \"reject\"}", "expected-rejected.edn");
}

#[test]
fn decisions_are_in_the_table() {
    let scratch = decide("{:action :reject :by \"Nora\"}", "expected-rejected.edn");
    scratch.write(
        "look.edn",
        "(let [page (flow/step :table :look {:op :query :table \"expense-decisions\"
                                             :where [[\"decision\" \"=\" \"rejected\"]] :sort [[\"id\" \"asc\"]]})]
           (mapv (juxt :id :by :reason) (:rows page)))",
    );
    assert_eq!(
        data(&scratch.run(&["run", "look.edn", "--quiet"]).ok()),
        data(
            "[[\"e-003\" \"Nora\" \"no receipt\"] [\"e-005\" \"Nora\" \"over the limit\"]
              [\"e-006\" \"Nora\" \"no receipt; gifts are always asked about\"]]"
        )
    );
}

#[test]
fn an_answer_without_an_action_leaves_the_wait_open() {
    let scratch = project();
    assert_eq!(scratch.run(RUN).code, Some(3));
    let wait = only_wait(&scratch);
    let refused = scratch.run(&["waits", "complete", &wait, "--value", "{:by \"Nora\"}"]);
    assert_eq!(refused.code, Some(1), "{}", refused.err);
    assert!(refused.err.contains("action"), "{}", refused.err);
    assert_eq!(only_wait(&scratch), wait);
}
