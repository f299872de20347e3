//! Tables of decisions about leases and crashes.

use super::{Crashes, Holder, check_adoption, count, epoch_after_release, progress};
use crate::ids::RunId;
use crate::ports::RunStatus;

fn crashes(count: u32, mark: Option<i64>, progress: i64) -> Crashes {
    Crashes {
        num: 1,
        count,
        mark,
        progress,
    }
}

#[test]
fn crashes_in_a_row_without_progress_lead_to_quarantine() {
    let first = count(&crashes(0, None, 7), 3);
    assert_eq!((first.count, first.mark, first.quarantine), (1, 7, None));
    let second = count(&crashes(1, Some(7), 7), 3);
    assert_eq!((second.count, second.quarantine), (2, None));
    let third = count(&crashes(2, Some(7), 7), 3);
    let reason = "the process that executed it ended 3 times in a row without progress of the run";
    assert_eq!(third.quarantine.as_deref(), Some(reason));
}

#[test]
fn progress_starts_the_count_again() {
    let counted = count(&crashes(2, Some(7), 8), 3);
    assert_eq!((counted.count, counted.quarantine), (1, None));
    assert_ne!(progress(0, 5), progress(1, 5));
    assert_ne!(progress(1, 5), progress(1, 6));
}

#[test]
fn one_crash_leads_to_quarantine_at_a_limit_of_one() {
    let reason = "the process that executed it ended 1 time without progress of the run";
    let counted = count(&crashes(0, None, 0), 1);
    assert_eq!(counted.quarantine.as_deref(), Some(reason));
}

#[test]
fn a_queued_run_counts_as_not_begun_after_its_release() {
    assert_eq!(epoch_after_release(1, RunStatus::Queued), 0);
    assert_eq!(epoch_after_release(1, RunStatus::Waiting), 1);
}

#[test]
fn a_missing_run_cannot_adopt_a_program() {
    let run = RunId::from_text("run");
    let error = check_adoption(&run, None, &Holder::Nobody, "hash").expect_err("refused");
    assert_eq!(error.code(), "E0574");
}
