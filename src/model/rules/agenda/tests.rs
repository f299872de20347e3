//! Tables of decisions about what a worker takes.

use super::{Candidate, Idle, choose, is_ready};
use crate::ports::RunStatus;

const NOW_MS: i64 = 100;

fn idle(status: RunStatus) -> Idle {
    Idle {
        status,
        is_interactive: false,
        is_held: false,
        due_ms: None,
        is_answered: false,
        is_cancel_requested: false,
        again_ms: None,
    }
}

#[test]
fn a_running_run_without_an_executor_is_ready() {
    let running = idle(RunStatus::Running);
    assert!(is_ready(&running, NOW_MS));
    let held = Idle {
        is_held: true,
        ..running
    };
    assert!(!is_ready(&held, NOW_MS));
    let interactive = Idle {
        is_interactive: true,
        ..running
    };
    assert!(!is_ready(&interactive, NOW_MS));
    for (again_ms, expected) in [(NOW_MS, true), (NOW_MS + 1, false)] {
        let set_aside = Idle {
            again_ms: Some(again_ms),
            ..running
        };
        assert_eq!(is_ready(&set_aside, NOW_MS), expected);
    }
}

#[test]
fn a_waiting_run_is_ready_when_a_timer_is_due_or_a_wait_is_answered() {
    let waiting = idle(RunStatus::Waiting);
    assert!(!is_ready(&waiting, NOW_MS));
    for (due_ms, expected) in [(NOW_MS, true), (NOW_MS + 1, false)] {
        let timed = Idle {
            due_ms: Some(due_ms),
            ..waiting
        };
        assert_eq!(is_ready(&timed, NOW_MS), expected);
    }
    let answered = Idle {
        is_answered: true,
        ..waiting
    };
    assert!(is_ready(&answered, NOW_MS));
    let cancelled = Idle {
        is_cancel_requested: true,
        ..waiting
    };
    assert!(is_ready(&cancelled, NOW_MS));
}

#[test]
fn runs_that_are_over_or_queued_are_not_ready() {
    for (status, _) in RunStatus::NAMES {
        let cancelled = Idle {
            is_cancel_requested: true,
            due_ms: Some(0),
            is_answered: true,
            ..idle(*status)
        };
        let expected = matches!(status, RunStatus::Running | RunStatus::Waiting);
        assert_eq!(is_ready(&cancelled, NOW_MS), expected, "{status:?}");
    }
}

#[test]
fn the_highest_priority_comes_first_then_the_oldest() {
    let run = |num, priority| Candidate { num, priority };
    let found = vec![run(3, 0), run(1, 0), run(2, 5), run(1, 0)];
    assert_eq!(choose(found.clone(), 10), [2, 1, 3]);
    assert_eq!(choose(found, 2), [2, 1]);
}
