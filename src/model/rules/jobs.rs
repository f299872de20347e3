//! Jobs: which jobs a worker can claim, how calls and time change them, and when the run that waits for one is woken.
//!
//! A job is claimed under a lease with a random token, and each claim is an attempt. An expired lease puts the job back
//! into the queue until its attempts are used up. The decisions are pure functions from a row to the next row; the
//! procedures below read and write the rows of a store.

use super::rows::Rows;
use crate::codec;
use crate::ids::RunId;
use crate::jobs::{JobOp, batch_value, job_value};
use crate::ports::{
    BATCH_KEY, Event, JOB_KEY, JobAnswer, JobBatch, JobCall, JobClaim, JobLease, JobReach,
    JobReport, JobRow, JobStatus, NewWait, StoreError, WaitEnding, WaitRow,
};
use crate::waits::Answered;

/// Time in milliseconds that a worker has to notice that its job was cancelled. After that its lease is void.
pub const NOTICE_MS: i64 = 30_000;
/// The error kind of a job whose leases ran out.
pub const LEASE_EXPIRED: &str = "lease-expired";
/// Maximum number of jobs that change because of the time in one transaction.
const AT_ONCE: usize = 1_000;

/// Rows of jobs.
pub trait JobRows {
    fn add_job(&mut self, job: &JobRow) -> Result<(), StoreError>;

    fn job(&mut self, id: &str) -> Result<Option<JobRow>, StoreError>;

    /// Writes everything that can change about a job, and its [`due_ms`].
    fn write_job(&mut self, job: &JobRow) -> Result<(), StoreError>;

    /// Returns queued jobs of a type with their numbers, in the order in which they are claimed; only those within a
    /// reach, if one is given.
    fn queued_jobs(
        &mut self,
        kind: &str,
        reach: Option<&JobReach>,
        most: usize,
    ) -> Result<Vec<(i64, JobRow)>, StoreError>;

    /// Returns jobs whose [`due_ms`] has passed, the earliest first.
    fn due_jobs(&mut self, now_ms: i64, most: usize) -> Result<Vec<JobRow>, StoreError>;

    /// Returns the jobs of a run that have not ended.
    fn open_jobs(&mut self, run: &RunId) -> Result<Vec<JobRow>, StoreError>;

    /// Counts the jobs of a batch.
    fn batch(&mut self, id: &str) -> Result<Option<JobBatch>, StoreError>;

    /// Tells whether a batch has jobs that have not ended.
    fn is_batch_open(&mut self, id: &str) -> Result<bool, StoreError>;

    /// Adds an event to the feed of a run, unless the run is over: its end is the last event.
    fn note_in_run(&mut self, run: &RunId, event: Event) -> Result<(), StoreError>;
}

/// Returns when time changes a job, unless a call changes it before.
pub fn due_ms(job: &JobRow) -> Option<i64> {
    if job.status.is_final() {
        return None;
    }
    let lease_ms = job.lease.as_ref().map(|lease| lease.until_ms);
    let void_ms = job.cancel_ms.map(|asked| asked.saturating_add(NOTICE_MS));
    [job.deadline_ms, lease_ms, void_ms]
        .into_iter()
        .flatten()
        .min()
}

/// Returns the job after the effects of time; the same job if nothing is due.
pub fn at(job: JobRow, now_ms: i64) -> JobRow {
    if due_ms(&job).is_none_or(|due_ms| due_ms > now_ms) {
        return job;
    }
    let is_over = |at_ms: Option<i64>| at_ms.is_some_and(|at_ms| at_ms <= now_ms);
    if job.cancel_ms.is_some() {
        return ended(job, JobStatus::Cancelled, now_ms);
    }
    if is_over(job.deadline_ms) {
        return ended(job, JobStatus::TimedOut, now_ms);
    }
    let message = format!(
        "the worker `{}` did not report in time",
        job.worker.as_deref().unwrap_or("?")
    );
    let error = format!(
        "{{:message {} :kind :{LEASE_EXPIRED}}}",
        codec::encode(&message.into()).unwrap_or_default()
    );
    let job = JobRow {
        error: Some(error),
        ..job
    };
    released(job, now_ms)
}

/// Puts a job back into the queue, or ends it if its attempts are used up.
fn released(job: JobRow, now_ms: i64) -> JobRow {
    if job.cancel_ms.is_some() {
        return ended(job, JobStatus::Cancelled, now_ms);
    }
    if job.attempt >= job.max_attempts {
        return ended(job, JobStatus::Failed, now_ms);
    }
    JobRow {
        status: JobStatus::Queued,
        lease: None,
        updated_ms: now_ms,
        ..job
    }
}

fn ended(job: JobRow, status: JobStatus, now_ms: i64) -> JobRow {
    JobRow {
        status,
        lease: None,
        updated_ms: now_ms,
        ended_ms: Some(now_ms),
        ..job
    }
}

/// Returns a queued job after the claim of a worker.
pub fn claimed(job: JobRow, claim: &JobClaim, token: String) -> JobRow {
    JobRow {
        status: JobStatus::Claimed,
        attempt: job.attempt.saturating_add(1),
        worker: Some(claim.worker.clone()),
        lease: Some(JobLease {
            token,
            until_ms: claim.now_ms.saturating_add(claim.lease_ms),
            length_ms: claim.lease_ms,
        }),
        progress: None,
        updated_ms: claim.now_ms,
        ..job
    }
}

/// Returns a job after its cancellation: a queued one ends at once, a claimed one with the next report of its worker.
pub fn cancelled(job: JobRow, now_ms: i64) -> JobRow {
    match job.status {
        JobStatus::Queued => ended(job, JobStatus::Cancelled, now_ms),
        JobStatus::Claimed => JobRow {
            cancel_ms: job.cancel_ms.or(Some(now_ms)),
            updated_ms: now_ms,
            ..job
        },
        JobStatus::Succeeded
        | JobStatus::NoChanges
        | JobStatus::Failed
        | JobStatus::Cancelled
        | JobStatus::TimedOut => job,
    }
}

/// Judges the call of a worker about a job. The effects of time have been applied to the job.
pub fn called(job: JobRow, call: &JobCall, now_ms: i64) -> JobAnswer {
    let is_holder = job
        .lease
        .as_ref()
        .is_some_and(|lease| lease.token == call.token);
    if !is_holder {
        let is_same = job.last_call.as_deref() == Some(&*fingerprint(call));
        return match is_same {
            true => JobAnswer::Taken(Box::new(job)),
            false => JobAnswer::LeaseLost(Box::new(job)),
        };
    }
    let job = match &call.report {
        JobReport::Progress {
            progress,
            extend_ms,
        } => extended(job, progress.clone(), *extend_ms, now_ms),
        JobReport::Complete { status, result } => ended(
            JobRow {
                result: result.clone(),
                error: None,
                last_call: Some(fingerprint(call)),
                ..job
            },
            *status,
            now_ms,
        ),
        JobReport::Fail { error, retry } => {
            let job = JobRow {
                error: Some(error.clone()),
                last_call: Some(fingerprint(call)),
                ..job
            };
            match retry {
                true => released(job, now_ms),
                false => ended(job, JobStatus::Failed, now_ms),
            }
        }
    };
    JobAnswer::Taken(Box::new(job))
}

/// Extends a lease from now on. After a cancellation it is not extended beyond the notice period.
fn extended(job: JobRow, progress: Option<String>, extend_ms: Option<i64>, now_ms: i64) -> JobRow {
    let void_ms = job.cancel_ms.map(|asked| asked.saturating_add(NOTICE_MS));
    JobRow {
        lease: job.lease.map(|lease| {
            let until_ms = now_ms.saturating_add(extend_ms.unwrap_or(lease.length_ms));
            JobLease {
                until_ms: void_ms.map_or(until_ms, |void_ms| until_ms.min(void_ms)),
                ..lease
            }
        }),
        progress: progress.or(job.progress),
        updated_ms: now_ms,
        ..job
    }
}

/// Returns a text by which a repeated call is recognised.
fn fingerprint(call: &JobCall) -> String {
    let word = match &call.report {
        JobReport::Progress { .. } => return String::new(),
        JobReport::Complete { status, result } => {
            format!("{} {}", status.name(), result.as_deref().unwrap_or(""))
        }
        JobReport::Fail { error, retry } => format!("fail {retry} {error}"),
    };
    codec::digest_bytes(format!("{}\n{word}", call.token).as_bytes())
}

/// Chooses the jobs for a claim: highest priority first, then oldest.
pub fn choose(mut queued: Vec<(i64, JobRow)>, most: usize) -> Vec<JobRow> {
    queued.sort_unstable_by_key(|(num, job)| (std::cmp::Reverse(job.priority), *num));
    queued.dedup_by_key(|(num, _)| *num);
    let jobs = queued.into_iter().map(|(_, job)| job);
    jobs.take(most).collect()
}

/// Puts jobs into the queue. Must run in the transaction of the step's journal row.
///
/// # Errors
/// When the store fails.
pub fn submit<R: Rows>(rows: &mut R, op: &JobOp, now_ms: i64) -> Result<String, StoreError> {
    for job in op.rows(now_ms) {
        rows.add_job(&job)?;
    }
    Ok(op.answer.clone())
}

/// Leases queued jobs to a worker. Must run in one transaction.
///
/// # Errors
/// When the store fails.
pub fn claim<R: Rows>(rows: &mut R, claim: &JobClaim) -> Result<Vec<JobRow>, StoreError> {
    expire(rows, claim.now_ms)?;
    let most = claim.tokens.len();
    let mut queued = Vec::new();
    for kind in &claim.types {
        queued.extend(rows.queued_jobs(kind, claim.reach.as_ref(), most)?);
    }
    let tokens = claim.tokens.iter().cloned();
    let chosen = choose(queued, most).into_iter().zip(tokens);
    let claimed = chosen.map(|(job, token)| {
        let job = claimed(job, claim, token);
        rows.write_job(&job)?;
        rows.note_in_run(&job.run, Event::job_claimed(&job, claim.now_ms))?;
        Ok(job)
    });
    claimed.collect()
}

/// Applies the call of a worker. Must run in one transaction.
///
/// # Errors
/// When the store fails.
pub fn call<R: Rows>(rows: &mut R, call: &JobCall, now_ms: i64) -> Result<JobAnswer, StoreError> {
    let Some(stored) = rows.job(&call.job)? else {
        return Ok(JobAnswer::Missing);
    };
    let answer = called(at(stored.clone(), now_ms), call, now_ms);
    let (JobAnswer::Taken(job) | JobAnswer::LeaseLost(job)) = &answer else {
        return Ok(answer);
    };
    if **job != stored {
        change(rows, job, now_ms)?;
    }
    let is_taken = matches!(answer, JobAnswer::Taken(_));
    if is_taken && is_news(&call.report) {
        rows.note_in_run(&job.run, Event::job_progress(job, now_ms))?;
    }
    Ok(answer)
}

/// Tells whether a report has news about the progress. A report that only extends the lease is not an event.
fn is_news(report: &JobReport) -> bool {
    matches!(
        report,
        JobReport::Progress {
            progress: Some(_),
            ..
        }
    )
}

/// Updates the jobs that are due, and returns how many changed. Must run in one transaction.
///
/// # Errors
/// When the store fails.
pub fn expire<R: Rows>(rows: &mut R, now_ms: i64) -> Result<usize, StoreError> {
    let due = rows.due_jobs(now_ms, AT_ONCE)?;
    let count = due.len();
    for job in due {
        change(rows, &at(job, now_ms), now_ms)?;
    }
    Ok(count)
}

/// Cancels the jobs of a run that have not ended: the run is to be cancelled, or ended without a result.
///
/// # Errors
/// When the store fails.
pub fn cancel_all<R: Rows>(rows: &mut R, run: &RunId, now_ms: i64) -> Result<(), StoreError> {
    for job in rows.open_jobs(run)? {
        change(rows, &cancelled(job, now_ms), now_ms)?;
    }
    Ok(())
}

/// Cancels the job that a run waited for under a key, because the run has given up the step. Jobs of other runs are
/// left.
///
/// # Errors
/// When the store fails.
pub fn give_up<R: Rows>(
    rows: &mut R,
    run: &RunId,
    key: &str,
    now_ms: i64,
) -> Result<(), StoreError> {
    let Some(id) = key.strip_prefix(JOB_KEY) else {
        return match key.strip_prefix(BATCH_KEY) {
            Some(batch) => give_up_batch(rows, run, batch, now_ms),
            None => Ok(()),
        };
    };
    match rows.job(id)?.filter(|job| job.run == *run) {
        Some(job) if !job.status.is_final() => change(rows, &cancelled(job, now_ms), now_ms),
        _ => Ok(()),
    }
}

fn give_up_batch<R: Rows>(
    rows: &mut R,
    run: &RunId,
    batch: &str,
    now_ms: i64,
) -> Result<(), StoreError> {
    let open = rows.open_jobs(run)?;
    let of_batch = open
        .into_iter()
        .filter(|job| job.batch.as_deref() == Some(batch));
    for job in of_batch {
        change(rows, &cancelled(job, now_ms), now_ms)?;
    }
    Ok(())
}

/// Writes a job, and wakes the runs that wait for it if it has ended.
fn change<R: Rows>(rows: &mut R, job: &JobRow, now_ms: i64) -> Result<(), StoreError> {
    rows.write_job(job)?;
    if !job.status.is_final() {
        return Ok(());
    }
    let waits = rows.open_waits_of_key(&format!("{JOB_KEY}{}", job.id))?;
    if !waits.is_empty() {
        answer(rows, waits, &text(&job_value(job))?, now_ms)?;
    }
    let Some(id) = &job.batch else {
        return Ok(());
    };
    if rows.is_batch_open(id)? {
        return Ok(());
    }
    let waits = rows.open_waits_of_key(&format!("{BATCH_KEY}{id}"))?;
    match rows.batch(id)? {
        Some(batch) if !waits.is_empty() => {
            answer(rows, waits, &text(&batch_value(&batch))?, now_ms)
        }
        _ => Ok(()),
    }
}

fn text(value: &flowstone_lang::value::Value) -> Result<String, StoreError> {
    codec::encode(value).map_err(|error| StoreError::unreadable("a job", &error))
}

/// Answers waits whose deadline has not passed; the others are about to close.
fn answer<R: Rows>(
    rows: &mut R,
    waits: Vec<WaitRow>,
    payload: &str,
    now_ms: i64,
) -> Result<(), StoreError> {
    for wait in waits {
        if wait.deadline_ms.is_some_and(|deadline| deadline <= now_ms) {
            continue;
        }
        rows.set_answered(
            &wait.id,
            &Answered {
                payload: payload.to_owned(),
                ending: WaitEnding::Answered,
                by: None,
                at_ms: now_ms,
            },
        )?;
    }
    Ok(())
}

/// Completes a wait that was just opened if the job or batch that it is for has ended already.
///
/// # Errors
/// When the store fails.
pub fn answer_if_ended<R: Rows>(
    rows: &mut R,
    wait: &NewWait,
    now_ms: i64,
) -> Result<(), StoreError> {
    let value = if let Some(id) = wait.key.strip_prefix(JOB_KEY) {
        let job = rows.job(id)?.filter(|job| job.status.is_final());
        job.map(|job| job_value(&job))
    } else if let Some(id) = wait.key.strip_prefix(BATCH_KEY) {
        match rows.is_batch_open(id)? {
            true => None,
            false => rows.batch(id)?.map(|batch| batch_value(&batch)),
        }
    } else {
        return Ok(());
    };
    let Some(value) = value else {
        return Ok(());
    };
    let waits = rows.wait_by_id(&wait.id)?.into_iter().collect();
    answer(rows, waits, &text(&value)?, now_ms)
}

#[cfg(test)]
mod tests;
