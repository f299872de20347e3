//! Tables of decisions about answers to waits.

use super::{Verdict, decide};
use crate::ids::RunId;
use crate::ports::{
    AnswerRules, Completion, Durability, Refusal, Target, WaitAnswer, WaitEnding, WaitRow,
    WaitState, WaitsAnswer,
};

fn wait(id: &str, state: WaitState, deadline_ms: Option<i64>, details: &str) -> WaitRow {
    WaitRow {
        id: id.to_owned(),
        run: RunId::from_text("run"),
        flow: "flow".to_owned(),
        path: id.to_owned(),
        key: "key".to_owned(),
        state,
        deadline_ms,
        details: details.to_owned(),
        digest: String::new(),
        payload: None,
        opened_ms: 0,
        ending: None,
        decided_by: None,
        decided_ms: None,
        event: None,
        webhook: None,
    }
}

fn answer(payload: &str, roles: &[&str]) -> Completion {
    Completion {
        target: Target::Name("key".to_owned()),
        answer: WaitAnswer {
            payload: payload.to_owned(),
            ending: WaitEnding::Answered,
            by: Some("ada".to_owned()),
            roles: roles.iter().map(|role| (*role).to_owned()).collect(),
            digest: None,
            is_unattended: false,
        },
        workspace: None,
        dedup: None,
        keep: true,
        durability: Durability::Full,
        rules: AnswerRules::default(),
        now_ms: 100,
    }
}

fn verdict(completion: &Completion, found: &[WaitRow]) -> Verdict {
    decide(completion, found)
}

const APPROVERS: &str = "{:roles [:approver] :actions [:approve :reject]}";

#[test]
fn each_open_wait_decides_for_itself() {
    let open = wait("a", WaitState::Open, None, "nil");
    let guarded = wait("b", WaitState::Open, None, APPROVERS);
    let closed = wait("c", WaitState::Closed, None, "nil");
    let verdict = verdict(&answer("{:action :approve}", &[]), &[open, guarded, closed]);
    let done: Vec<&str> = verdict.completed.iter().map(|row| &*row.id).collect();
    assert_eq!(done, ["a"]);
    assert_eq!(verdict.completed[0].decided_by.as_deref(), Some("ada"));
    let needed = vec!["approver".to_owned()];
    assert_eq!(verdict.refused[0].1, Refusal::Role { needed });
    assert!(!verdict.is_for_later());
}

#[test]
fn one_of_the_roles_may_answer_with_an_offered_action() {
    let guarded = [wait("b", WaitState::Open, None, APPROVERS)];
    let by = |payload, roles: &[&str]| verdict(&answer(payload, roles), &guarded);
    assert_eq!(by("{:action :approve}", &["approver"]).completed.len(), 1);
    assert_eq!(by("{:action :approve}", &["viewer"]).refused.len(), 1);
    let other = by("{:action :burn}", &["viewer", "approver"]);
    assert!(matches!(other.refused[0].1, Refusal::NotOffered { .. }));
}

#[test]
fn an_answer_without_an_open_wait_is_kept() {
    let any = answer("1", &[]);
    assert!(verdict(&any, &[]).is_for_later());
    let closed = wait("a", WaitState::Closed, None, "nil");
    assert!(verdict(&any, std::slice::from_ref(&closed)).is_for_later());
    let late = wait("b", WaitState::Open, Some(100), "nil");
    assert!(verdict(&any, std::slice::from_ref(&late)).is_for_later());
    let guarded = wait("c", WaitState::Open, None, APPROVERS);
    assert!(!verdict(&any, &[late, guarded]).is_for_later());
    let open = wait("d", WaitState::Open, Some(101), "nil");
    assert!(!verdict(&any, &[closed, open]).is_for_later());
}

#[test]
fn a_late_answer_names_the_decision_before_it() {
    let decided = wait("a", WaitState::Completed, None, "nil");
    let found = verdict(&answer("1", &[]), std::slice::from_ref(&decided)).into_answer();
    assert_eq!(found, WaitsAnswer::AlreadyDecided(Box::new(decided)));
    let found = verdict(&answer("1", &[]), &[]).into_answer();
    assert_eq!(found, WaitsAnswer::Missing);
}

#[test]
fn an_event_cannot_answer_an_approval() {
    let event = |details: &str| {
        let mut sent = answer("{:action :approve}", &[]);
        sent.answer.is_unattended = true;
        decide(&sent, &[wait("w1", WaitState::Open, None, details)])
    };
    let asked = event("{:actions [:approve :reject]}");
    assert!(asked.completed.is_empty());
    assert_eq!(asked.refused[0].1, Refusal::Unattended);
    assert_eq!(event("{:show {}}").completed.len(), 1);
}
