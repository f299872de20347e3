//! Tables of decisions about jobs.

use super::{NOTICE_MS, at, called, cancelled, choose, claimed, due_ms};
use crate::ids::RunId;
use crate::ports::{JobAnswer, JobCall, JobClaim, JobReport, JobRow, JobStatus};

fn queued() -> JobRow {
    JobRow {
        id: "j1".to_owned(),
        batch: None,
        run: RunId::from_text("run"),
        flow: "flow".to_owned(),
        path: "resize".to_owned(),
        kind: "image".to_owned(),
        status: JobStatus::Queued,
        payload: "{:n 1}".to_owned(),
        metadata: None,
        priority: 0,
        attempt: 0,
        max_attempts: 3,
        idempotency_key: "run/resize".to_owned(),
        created_ms: 0,
        updated_ms: 0,
        ended_ms: None,
        deadline_ms: None,
        lease: None,
        worker: None,
        progress: None,
        result: None,
        error: None,
        cancel_ms: None,
        last_call: None,
    }
}

/// Claims a job at an instant for 100 ms.
fn held(job: JobRow, token: &str, now_ms: i64) -> JobRow {
    let claim = JobClaim {
        types: vec!["image".to_owned()],
        reach: None,
        worker: "w".to_owned(),
        tokens: vec![token.to_owned()],
        lease_ms: 100,
        now_ms,
    };
    claimed(job, &claim, token.to_owned())
}

fn call(token: &str, report: JobReport) -> JobCall {
    JobCall {
        job: "j1".to_owned(),
        token: token.to_owned(),
        report,
    }
}

fn progress(extend_ms: Option<i64>) -> JobReport {
    JobReport::Progress {
        progress: None,
        extend_ms,
    }
}

fn complete() -> JobReport {
    JobReport::Complete {
        status: JobStatus::Succeeded,
        result: Some("{:ok true}".to_owned()),
    }
}

fn fail(retry: bool) -> JobReport {
    JobReport::Fail {
        error: "{:message \"no\"}".to_owned(),
        retry,
    }
}

fn taken(answer: JobAnswer) -> JobRow {
    match answer {
        JobAnswer::Taken(job) => *job,
        other @ (JobAnswer::LeaseLost(_) | JobAnswer::Missing) => panic!("{other:?}"),
    }
}

fn is_lost(answer: &JobAnswer) -> bool {
    matches!(answer, JobAnswer::LeaseLost(_))
}

#[test]
fn an_expired_lease_puts_the_job_back_until_its_attempts_are_used_up() {
    let mut job = queued();
    for attempt in 1..=3 {
        let now = i64::from(attempt) * 1_000;
        job = held(job, "t", now);
        assert_eq!((job.attempt, due_ms(&job)), (attempt, Some(now + 100)));
        assert_eq!(at(job.clone(), now + 99).status, JobStatus::Claimed);
        job = at(job, now + 100);
        let left = match attempt {
            3 => JobStatus::Failed,
            _ => JobStatus::Queued,
        };
        assert_eq!((job.status, &job.lease), (left, &None));
    }
    assert_eq!(job.ended_ms, Some(3_100));
    assert_eq!(
        job.error.as_deref(),
        Some("{:message \"the worker `w` did not report in time\" :kind :lease-expired}")
    );
    assert_eq!(due_ms(&job), None);
}

#[test]
fn progress_extends_the_lease_from_now_on() {
    let job = held(queued(), "t", 0);
    let job = taken(called(job, &call("t", progress(None)), 50));
    assert_eq!(due_ms(&job), Some(150));
    let job = taken(called(job, &call("t", progress(Some(500))), 60));
    assert_eq!(due_ms(&job), Some(560));
}

#[test]
fn a_call_with_another_token_is_refused() {
    let job = held(queued(), "old", 0);
    let job = held(at(job, 100), "new", 200);
    for report in [progress(None), complete(), fail(true)] {
        assert!(is_lost(&called(job.clone(), &call("old", report), 210)));
    }
    assert!(is_lost(&called(queued(), &call("t", complete()), 1)));
}

#[test]
fn a_repeated_end_gets_the_same_answer() {
    let job = held(queued(), "t", 0);
    let done = taken(called(job, &call("t", complete()), 10));
    assert_eq!(
        (done.status, done.ended_ms),
        (JobStatus::Succeeded, Some(10))
    );
    let again = taken(called(done.clone(), &call("t", complete()), 20));
    assert_eq!(again, done);
    assert!(is_lost(&called(done.clone(), &call("t", fail(true)), 20)));
    assert!(is_lost(&called(
        done.clone(),
        &call("t", progress(None)),
        20
    )));
    assert!(is_lost(&called(done, &call("u", complete()), 20)));
}

#[test]
fn a_failure_is_tried_again_unless_the_worker_says_otherwise() {
    let job = taken(called(held(queued(), "t", 0), &call("t", fail(true)), 10));
    assert_eq!((job.status, job.attempt), (JobStatus::Queued, 1));
    let again = taken(called(job.clone(), &call("t", fail(true)), 11));
    assert_eq!(again, job);
    let job = taken(called(held(job, "u", 20), &call("u", fail(false)), 30));
    assert_eq!((job.status, job.ended_ms), (JobStatus::Failed, Some(30)));
    let last = JobRow {
        max_attempts: 1,
        ..queued()
    };
    let job = taken(called(held(last, "t", 0), &call("t", fail(true)), 10));
    assert_eq!(job.status, JobStatus::Failed);
}

#[test]
fn a_cancelled_job_ends_when_its_worker_reports_or_the_notice_period_ends() {
    assert_eq!(cancelled(queued(), 5).status, JobStatus::Cancelled);
    let mut job = held(queued(), "t", 0);
    job.lease.as_mut().expect("a lease").until_ms = 10 * NOTICE_MS;
    let job = cancelled(job, 1_000);
    assert_eq!(job.status, JobStatus::Claimed);
    assert_eq!(due_ms(&job), Some(1_000 + NOTICE_MS));
    let notified = taken(called(
        job.clone(),
        &call("t", progress(Some(3_600_000))),
        2_000,
    ));
    assert_eq!(due_ms(&notified), Some(1_000 + NOTICE_MS));
    assert_eq!(cancelled(notified.clone(), 9_000).cancel_ms, Some(1_000));
    assert_eq!(at(notified, 1_000 + NOTICE_MS).status, JobStatus::Cancelled);
    let done = taken(called(job.clone(), &call("t", complete()), 2_000));
    assert_eq!(done.status, JobStatus::Succeeded);
    let failed = taken(called(job, &call("t", fail(true)), 2_000));
    assert_eq!(failed.status, JobStatus::Cancelled);
}

#[test]
fn a_deadline_ends_queued_and_claimed_jobs() {
    let job = JobRow {
        deadline_ms: Some(50),
        ..queued()
    };
    assert_eq!(at(job.clone(), 49).status, JobStatus::Queued);
    assert_eq!(at(job.clone(), 50).status, JobStatus::TimedOut);
    let claimed = held(job, "t", 10);
    assert_eq!(due_ms(&claimed), Some(50));
    assert_eq!(at(claimed, 50).status, JobStatus::TimedOut);
}

#[test]
fn jobs_are_claimed_by_priority_and_then_by_age() {
    let job = |id: &str, priority| JobRow {
        id: id.to_owned(),
        priority,
        ..queued()
    };
    let queued = vec![
        (4, job("late", 0)),
        (2, job("early", 0)),
        (9, job("urgent", 5)),
        (1, job("idle", -1)),
        (2, job("early", 0)),
    ];
    let chosen = choose(queued, 3);
    let ids: Vec<&str> = chosen.iter().map(|job| &*job.id).collect();
    assert_eq!(ids, ["urgent", "early", "late"]);
}
