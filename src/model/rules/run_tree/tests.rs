//! Tables of decisions about parents and children.

use super::{Fate, Member, end_of_child, fate};
use crate::ids::RunId;
use crate::ports::{ParentClose, RunStatus, Target};

#[test]
fn a_child_ends_by_its_policy_unless_it_is_over() {
    for (status, _) in RunStatus::NAMES {
        for (close, expected) in [
            (ParentClose::Abandon, Fate::Continues),
            (ParentClose::RequestCancel, Fate::AskedToCancel),
            (ParentClose::Terminate, Fate::Ended),
        ] {
            let child = Member {
                num: 1,
                id: RunId::from_text("child"),
                status: *status,
                has_parent: true,
                close,
            };
            let expected = match status.is_final() {
                true => Fate::Continues,
                false => expected,
            };
            assert_eq!(fate(&child), expected, "{status:?} {close:?}");
        }
    }
}

#[test]
fn the_end_of_a_child_is_sent_once_and_kept_for_its_parent() {
    let sent = end_of_child(&RunId::from_text("abc"), RunStatus::TimedOut, 5);
    assert_eq!(sent.target, Target::Name("child-run:abc".to_owned()));
    assert_eq!(sent.answer.payload, "{:status :timed-out}");
    assert_eq!(sent.dedup.as_deref(), Some("abc"));
    assert!(sent.keep);
}
