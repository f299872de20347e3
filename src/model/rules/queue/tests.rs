//! Tables of decisions about slots and limits.

use super::{
    Head, LimitView, Limited, Occupant, SlotRows, place_before_limit, place_before_slot, rate_due,
    slot_turn,
};
use crate::ids::RunId;
use crate::ports::{QueueReason, RateRule};

fn live(program: &str) -> Occupant {
    Occupant {
        program: program.to_owned(),
        run: RunId::from_text("live"),
    }
}

fn head(program: &str, num: i64, priority: i64) -> Head {
    Head {
        program: program.to_owned(),
        run: RunId::from_text(format!("run-{num}")),
        num,
        priority,
        apart: false,
        limit: None,
    }
}

fn apart(head: Head) -> Head {
    Head {
        apart: true,
        ..head
    }
}

fn limited(head: Head, limit: &str) -> Head {
    Head {
        limit: Some(limit.to_owned()),
        ..head
    }
}

#[track_caller]
fn check(live: Vec<Occupant>, heads: Vec<Head>, start: &[i64], next: &[(i64, &str)]) {
    let turn = slot_turn(&SlotRows { live, heads });
    assert_eq!(turn.start, start);
    let found: Vec<(i64, &str)> = turn
        .next
        .iter()
        .map(|(num, name)| (*num, &**name))
        .collect();
    assert_eq!(found, next);
}

#[test]
fn a_free_slot_starts_the_most_urgent_head_then_the_oldest() {
    check(vec![], vec![], &[], &[]);
    check(vec![], vec![head("a", 1, 0)], &[1], &[]);
    check(vec![], vec![head("a", 1, 0), head("b", 2, 5)], &[2], &[]);
    check(vec![], vec![head("a", 2, 5), head("b", 1, 5)], &[1], &[]);
}

#[test]
fn a_slot_in_use_starts_no_run_that_counts_all_versions() {
    check(vec![live("a")], vec![head("a", 1, 0)], &[], &[]);
    check(vec![live("a")], vec![head("b", 1, 0)], &[], &[]);
}

#[test]
fn versions_that_coexist_each_have_a_place_in_the_slot() {
    check(vec![live("a")], vec![apart(head("b", 1, 0))], &[1], &[]);
    check(vec![live("a")], vec![apart(head("a", 1, 0))], &[], &[]);
    let both = vec![apart(head("a", 1, 0)), apart(head("b", 2, 0))];
    check(vec![], both, &[1, 2], &[]);
    // The first run occupies the slot for the second one, which counts all versions.
    let mixed = vec![apart(head("a", 1, 9)), head("b", 2, 0)];
    check(vec![], mixed, &[1], &[]);
}

#[test]
fn a_head_with_a_limit_keeps_its_slot_and_waits() {
    let heads = vec![limited(head("a", 1, 0), "cpu"), head("b", 2, 0)];
    check(vec![], heads, &[], &[(1, "cpu")]);
}

#[test]
fn a_limit_is_full_at_its_maximum() {
    let limited = |runs| Limited {
        num: 1,
        runs,
        rate: None,
    };
    assert!(!limited(None).is_full(1000));
    assert!(!limited(Some(2)).is_full(1));
    assert!(limited(Some(2)).is_full(2));
    assert!(limited(Some(2)).is_full(3));
}

#[test]
fn a_rate_names_the_next_start() {
    let rate = RateRule {
        max: 2,
        per_ms: 100,
    };
    assert_eq!(rate_due(rate, None, 1000), None);
    assert_eq!(rate_due(rate, Some(950), 1000), Some(1050));
    assert_eq!(rate_due(rate, Some(900), 1000), None);
    assert_eq!(rate_due(rate, Some(i64::MAX), 1000), Some(i64::MAX));
}

#[test]
fn a_place_names_its_reason() {
    let runs = |count: usize| vec![RunId::from_text("run"); count];
    let view = LimitView {
        runs: Some(2),
        due_ms: Some(7),
        live: runs(1),
        ahead: 0,
    };
    let place = place_before_limit(view.clone());
    assert_eq!(place.waits_for, QueueReason::Rate);
    assert_eq!((place.position, place.behind.len()), (1, 0));
    let place = place_before_limit(LimitView {
        live: runs(2),
        ahead: 3,
        ..view
    });
    assert_eq!(place.waits_for, QueueReason::Limit);
    assert_eq!((place.position, place.behind.len()), (4, 2));
    let place = place_before_slot(runs(20), 1);
    assert_eq!(place.waits_for, QueueReason::Slot);
    assert_eq!((place.position, place.behind.len()), (2, 8));
}
