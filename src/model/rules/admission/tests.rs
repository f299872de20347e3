//! Tables of decisions about new runs.

use super::{Caller, Deadlock, Others, Replaced, Versions, decision};
use crate::ids::RunId;
use crate::ports::{LimitRule, OnConflict, OnNewVersion, SlotRule, StartDecision, StartRules};
use crate::rules::queue::{Head, Occupant, SlotRows};

fn slot(on_new_version: OnNewVersion, on_conflict: OnConflict) -> SlotRule {
    SlotRule {
        name: "work".to_owned(),
        on_new_version,
        on_conflict,
    }
}

fn caller(slot: Option<&str>, program: &str, limit: Option<&str>) -> Caller {
    Caller {
        slot: slot.map(str::to_owned),
        program: program.to_owned(),
        limit: limit.map(str::to_owned),
        parent: None,
        is_over: false,
    }
}

/// Returns which of the callers, counted from 0, a new run of version `new` would wait for.
fn deadlock(rules: &StartRules, callers: &[Caller]) -> Option<usize> {
    let mut deadlock = Deadlock::new("new", rules);
    callers
        .iter()
        .position(|caller| deadlock.is_caused_by(caller))
}

#[test]
fn a_caller_in_the_same_slot_is_a_deadlock() {
    let rules = |on_new_version| StartRules {
        slot: Some(slot(on_new_version, OnConflict::Queue)),
        limit: None,
    };
    let drain = rules(OnNewVersion::Drain);
    let coexist = rules(OnNewVersion::Coexist);
    let other = caller(Some("other"), "new", None);
    let old = caller(Some("work"), "old", None);
    let same = caller(Some("work"), "new", None);
    assert_eq!(deadlock(&drain, &[other.clone(), old.clone()]), Some(1));
    assert_eq!(deadlock(&coexist, &[other, old, same.clone()]), Some(2));
    let over = Caller {
        is_over: true,
        ..same
    };
    assert_eq!(deadlock(&drain, &[over]), None);
}

#[test]
fn callers_that_fill_a_limit_are_a_deadlock() {
    let rules = |concurrency| StartRules {
        slot: None,
        limit: Some(LimitRule {
            name: "cpu".to_owned(),
            concurrency,
            rate: None,
        }),
    };
    let inside = caller(None, "new", Some("cpu"));
    let outside = caller(None, "new", Some("disk"));
    let chain = [inside.clone(), outside, inside];
    assert_eq!(deadlock(&rules(None), &chain), None);
    assert_eq!(deadlock(&rules(Some(1)), &chain), Some(0));
    assert_eq!(deadlock(&rules(Some(2)), &chain), Some(2));
    assert_eq!(deadlock(&rules(Some(3)), &chain), None);
}

fn rows(live: &[(&str, &str)], queued: &[(&str, &str)]) -> SlotRows {
    let live = live.iter().map(|(program, run)| Occupant {
        program: (*program).to_owned(),
        run: RunId::from_text(*run),
    });
    let heads = queued.iter().map(|(program, run)| Head {
        program: (*program).to_owned(),
        run: RunId::from_text(*run),
        num: 1,
        priority: 0,
        apart: false,
        limit: None,
    });
    SlotRows {
        live: live.collect(),
        heads: heads.collect(),
    }
}

#[test]
fn a_taken_slot_refuses_where_the_flow_rejects_conflicts() {
    let reject = slot(OnNewVersion::Drain, OnConflict::Reject);
    let queue = slot(OnNewVersion::Drain, OnConflict::Queue);
    let others = Others::of(&rows(&[("new", "a")], &[("new", "b"), ("old", "c")]), "new");
    assert_eq!(others.refuses(&reject), Some(&RunId::from_text("a")));
    assert_eq!(others.refuses(&queue), None);
    assert_eq!(others.other, Some(RunId::from_text("c")));
    // A run of another version does not conflict.
    let others = Others::of(&rows(&[("old", "a")], &[]), "new");
    assert_eq!(others.refuses(&reject), None);
}

#[test]
fn each_rule_replaces_its_versions() {
    let replaced = |versions| Replaced {
        slot: "work",
        program: "new",
        versions,
        reason: String::new(),
    };
    assert!(replaced(Versions::Same).includes("new"));
    assert!(!replaced(Versions::Same).includes("old"));
    assert!(replaced(Versions::Other).includes("old"));
    assert!(!replaced(Versions::Other).includes("new"));
}

#[test]
fn each_decision_has_its_name() {
    let alone = Others::default();
    let beside = Others {
        other: Some(RunId::from_text("a")),
        ..Others::default()
    };
    let named = |is_started, on_new_version, others: &Others| {
        let slot = slot(on_new_version, OnConflict::Queue);
        decision(is_started, Some(&slot), others)
    };
    let (coexist, drain) = (OnNewVersion::Coexist, OnNewVersion::Drain);
    assert_eq!(named(true, coexist, &alone), StartDecision::Started);
    assert_eq!(named(true, coexist, &beside), StartDecision::Coexisted);
    assert_eq!(named(true, drain, &beside), StartDecision::Started);
    assert_eq!(named(false, drain, &beside), StartDecision::Blocked);
    assert_eq!(named(false, drain, &alone), StartDecision::Queued);
    assert_eq!(named(false, coexist, &beside), StartDecision::Queued);
    assert_eq!(decision(true, None, &beside), StartDecision::Started);
}
