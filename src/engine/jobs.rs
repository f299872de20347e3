//! Jobs seen from outside: workers claim them, report on them and end them; listings show them.
//!
//! What a call does is decided by the store, by the rules of `model/rules/jobs.rs`. This module checks what a worker asks
//! for, waits for jobs, and turns refusals into errors.

use std::ops::Deref;
use std::time::Duration;

use flowstone_lang::value::Value;

pub use crate::error::JobError;

use crate::codec;
use crate::duration::millis;
use crate::engine::Engine;
use crate::error::EngineError;
use crate::ids::RunId;
use crate::limits;
use crate::ports::{
    JobAnswer, JobCall, JobClaim, JobQuery, JobReach, JobReport, JobRow, JobStatus, MOST_JOBS,
    StoreError,
};
use crate::trace::TraceParent;

/// The shortest lease.
pub const SHORTEST_LEASE: Duration = Duration::from_secs(5);
/// The longest lease.
pub const LONGEST_LEASE: Duration = Duration::from_secs(3600);
/// The lease that a worker gets who asks for no other.
pub const USUAL_LEASE: Duration = Duration::from_secs(30);
/// How long a claim may wait for a job.
pub const LONGEST_WAIT: Duration = Duration::from_secs(30);
/// Jobs on a page of a listing, if nothing else is asked for.
const PAGE: usize = 100;

/// What a worker asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimOptions {
    /// Job types; at least one.
    pub types: Vec<String>,
    /// Only jobs within this reach; nothing for all jobs.
    pub reach: Option<JobReach>,
    /// The worker's name, for people who look at its jobs.
    pub worker: String,
    /// Maximum number of jobs.
    pub max: usize,
    pub lease: Duration,
    /// How long to wait where no job is queued.
    pub wait: Duration,
    /// The id of the access token of the worker, if it has one: a revoked token gets no job.
    pub token: Option<String>,
}

/// The lease of a job after its worker has reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extended {
    pub until_ms: i64,
    /// The worker should stop: its run was cancelled, or nobody waits for the job any more.
    pub is_cancel_requested: bool,
}

/// The end of a job that was done.
#[derive(Debug, Clone)]
pub struct JobEnd {
    /// The token of the lease.
    pub lease: String,
    /// The worker found nothing to do.
    pub no_changes: bool,
    pub result: Option<Value>,
}

/// A failure that a worker reports.
#[derive(Debug, Clone)]
pub struct JobFailure {
    /// The token of the lease.
    pub lease: String,
    pub message: String,
    pub kind: Option<String>,
    pub data: Option<Value>,
    /// Another attempt may succeed.
    pub retry: bool,
}

/// A job that a worker has claimed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimedJob {
    pub row: JobRow,
    /// The span of the step that waits for the job, where workers are told of it.
    pub trace_parent: Option<TraceParent>,
}

impl Deref for ClaimedJob {
    type Target = JobRow;

    fn deref(&self) -> &JobRow {
        &self.row
    }
}

/// A page of a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobPage {
    pub jobs: Vec<JobRow>,
    /// Where the next page begins, if there is one: [`JobQuery::after`].
    pub next: Option<String>,
}

impl Engine {
    /// Leases queued jobs to a worker: those of the highest priority first, then the oldest. Waits for a job where none is
    /// queued, as long as it is asked to.
    ///
    /// # Errors
    /// When the options are out of range, or the store cannot be written.
    pub async fn claim_jobs(&self, options: &ClaimOptions) -> Result<Vec<ClaimedJob>, EngineError> {
        let jobs = self.claim_rows(options).await?;
        let mut claimed = Vec::with_capacity(jobs.len());
        for row in jobs {
            let run = self.run_row(&row.run).await?;
            let trace = run.in_trace();
            let trace_parent = self.services.trace_parent(&trace, trace.step(&row.path));
            claimed.push(ClaimedJob { row, trace_parent });
        }
        Ok(claimed)
    }

    async fn claim_rows(&self, options: &ClaimOptions) -> Result<Vec<JobRow>, EngineError> {
        check(options)?;
        let stores = &self.services.stores;
        let clock = &self.services.clock;
        let random = &self.services.random;
        let until_ms = clock.now_ms().saturating_add(millis(options.wait));
        let mut news = (!options.wait.is_zero()).then(|| stores.agenda.news());
        loop {
            if let Some(news) = &mut news {
                news.mark_seen();
            }
            let token = |_| format!("{:016x}{:016x}", random.next(), random.next());
            let now_ms = clock.now_ms();
            let claim = JobClaim {
                types: options.types.clone(),
                reach: options.reach.clone(),
                worker: options.worker.clone(),
                tokens: (0..options.max).map(token).collect(),
                lease_ms: millis(options.lease),
                now_ms,
            };
            // A job that is submitted after the revocation is not found before it, so this look is enough.
            if self.is_revoked(options.token.as_ref()).await? {
                return Ok(Vec::new());
            }
            let claimed = stores.jobs.claim(claim).await?;
            let Some(news) = &mut news else {
                return Ok(claimed);
            };
            if !claimed.is_empty() || now_ms >= until_ms {
                return Ok(claimed);
            }
            // A lease that ends in between puts its job back.
            let due_ms = stores.agenda.next_ms().await?;
            let wake_ms = due_ms.filter(|due_ms| *due_ms > now_ms);
            let wake_ms = wake_ms.map_or(until_ms, |due_ms| due_ms.min(until_ms));
            tokio::select! {
                biased;
                () = news.changed() => {}
                () = clock.sleep_until(wake_ms) => {}
            }
        }
    }

    /// Reports that a worker is at work, and extends its lease from now on.
    ///
    /// # Errors
    /// When there is no such job, or the lease is lost.
    pub async fn job_progress(
        &self,
        job: &str,
        lease: &str,
        progress: Option<&Value>,
        extend: Option<Duration>,
    ) -> Result<Extended, EngineError> {
        if let Some(extend) = extend {
            check_lease(extend)?;
        }
        let report = JobReport::Progress {
            progress: self.job_text(progress)?,
            extend_ms: extend.map(millis),
        };
        let job = self.call_job(job, lease, report).await?;
        Ok(Extended {
            until_ms: job.lease.as_ref().map_or(job.updated_ms, |it| it.until_ms),
            is_cancel_requested: job.cancel_ms.is_some(),
        })
    }

    /// Ends a job that was done. The same call again has the same answer.
    ///
    /// # Errors
    /// When there is no such job, the lease is lost, or the result is too large.
    pub async fn complete_job(&self, job: &str, end: &JobEnd) -> Result<JobRow, EngineError> {
        let report = self.end_report(end)?;
        self.call_job(job, &end.lease, report).await
    }

    /// Ends several jobs that were done, each for itself, in one transaction. The answers are in the order of the calls.
    ///
    /// # Errors
    /// When there are more than 100, or the store cannot be written.
    pub async fn complete_jobs(
        &self,
        ends: &[(String, JobEnd)],
    ) -> Result<Vec<Result<JobRow, EngineError>>, EngineError> {
        if ends.len() > MOST_JOBS {
            return Err(JobError::TooMany { count: ends.len() }.into());
        }
        let mut answers: Vec<Option<Result<JobRow, EngineError>>> = Vec::new();
        let mut calls = Vec::new();
        for (job, end) in ends {
            match self.end_report(end) {
                Ok(report) => {
                    answers.push(None);
                    calls.push(JobCall {
                        job: job.clone(),
                        token: end.lease.clone(),
                        report,
                    });
                }
                Err(error) => answers.push(Some(Err(error))),
            }
        }
        let named: Vec<String> = calls.iter().map(|call| call.job.clone()).collect();
        let jobs = &self.services.stores.jobs;
        let taken = jobs.call(calls, self.now_ms()).await?;
        let mut taken = named.iter().zip(taken);
        let answers = answers.into_iter().map(|refused| match refused {
            Some(refused) => refused,
            None => match taken.next() {
                Some((job, answer)) => answered(job, answer),
                None => Err(EngineError::Internal("a job has no answer".to_owned())),
            },
        });
        Ok(answers.collect())
    }

    /// Reports that a job failed: it is queued again, unless its attempts are used up or the worker says that another one is
    /// of no use. The same call again has the same answer.
    ///
    /// # Errors
    /// When there is no such job, the lease is lost, or the data is too large.
    pub async fn fail_job(&self, job: &str, failure: &JobFailure) -> Result<JobRow, EngineError> {
        let facts = [
            ("message", Some(Value::from(failure.message.as_str()))),
            ("kind", failure.kind.as_deref().map(Value::keyword)),
            ("data", failure.data.clone()),
        ];
        let facts = facts
            .into_iter()
            .filter_map(|(key, value)| Some((Value::keyword(key), value?)));
        let error = self.job_text(Some(&Value::map(facts)))?;
        let report = JobReport::Fail {
            error: error.unwrap_or_default(),
            retry: failure.retry,
        };
        self.call_job(job, &failure.lease, report).await
    }

    /// Returns a page of jobs, newest first.
    ///
    /// # Errors
    /// When [`JobQuery::after`] names no job, or the store cannot be read.
    pub async fn list_jobs(&self, mut query: JobQuery) -> Result<JobPage, EngineError> {
        self.settle_jobs().await?;
        let limit = match query.limit {
            0 => PAGE,
            limit => limit,
        };
        query.limit = limit.saturating_add(1);
        let mut jobs = self.services.stores.jobs.list(query).await?;
        let has_more = jobs.len() > limit;
        jobs.truncate(limit);
        let last = jobs.last().filter(|_| has_more);
        let next = last.map(|job| job.id.clone());
        Ok(JobPage { jobs, next })
    }

    /// Finds the job that an id, or the beginning of one, means.
    ///
    /// # Errors
    /// When no job or more than one has this prefix.
    pub async fn find_job(&self, prefix: &str) -> Result<JobRow, EngineError> {
        self.settle_jobs().await?;
        let jobs = &self.services.stores.jobs;
        if let Some(job) = jobs.find(prefix).await? {
            return Ok(job);
        }
        let query = JobQuery {
            id_prefix: Some(prefix.to_owned()),
            limit: 6,
            ..JobQuery::default()
        };
        let mut found = match prefix.is_empty() {
            true => Vec::new(),
            false => jobs.list(query).await?,
        };
        match found.len() {
            0 => Err(missing(prefix)),
            1 => Ok(found.remove(0)),
            _ => Err(JobError::Ambiguous {
                job: prefix.to_owned(),
                jobs: found.into_iter().map(|job| job.id).collect(),
            }
            .into()),
        }
    }

    /// Returns the runs that wait for a job or for its batch, and can be resumed once it has ended.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn waiting_for_job(&self, job: &JobRow) -> Result<Vec<RunId>, EngineError> {
        let keys = [
            Some(format!("{}{}", crate::ports::JOB_KEY, job.id)),
            job.batch
                .as_ref()
                .map(|batch| format!("{}{batch}", crate::ports::BATCH_KEY)),
        ];
        let mut runs = Vec::new();
        for key in keys.into_iter().flatten() {
            let filter = crate::ports::WaitFilter {
                key: Some(key),
                all: true,
                ..crate::ports::WaitFilter::default()
            };
            for wait in self.services.stores.waits.list(filter).await? {
                let is_ready = wait.state == crate::ports::WaitState::Completed;
                if is_ready && !runs.contains(&wait.run) {
                    runs.push(wait.run);
                }
            }
        }
        Ok(runs)
    }

    /// Settles what time did to jobs, where the store may be written.
    pub(crate) async fn settle_jobs(&self) -> Result<(), EngineError> {
        match self.services.stores.jobs.expire(self.now_ms()).await {
            Ok(_) | Err(StoreError::ReadOnly { .. }) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    async fn call_job(
        &self,
        job: &str,
        lease: &str,
        report: JobReport,
    ) -> Result<JobRow, EngineError> {
        let call = JobCall {
            job: job.to_owned(),
            token: lease.to_owned(),
            report,
        };
        let jobs = &self.services.stores.jobs;
        let mut answers = jobs.call(vec![call], self.now_ms()).await?;
        match answers.pop() {
            Some(answer) => answered(job, answer),
            None => Err(EngineError::Internal("a job has no answer".to_owned())),
        }
    }

    fn end_report(&self, end: &JobEnd) -> Result<JobReport, EngineError> {
        Ok(JobReport::Complete {
            status: match end.no_changes {
                true => JobStatus::NoChanges,
                false => JobStatus::Succeeded,
            },
            result: self.job_text(end.result.as_ref())?,
        })
    }

    /// Returns the stored form of what a worker hands over.
    fn job_text(&self, value: Option<&Value>) -> Result<Option<String>, EngineError> {
        let Some(value) = value else {
            return Ok(None);
        };
        let text = codec::encode(value)?;
        let most = self.limits().result;
        if text.len() > most {
            return Err(JobError::TooLarge {
                bytes: text.len(),
                most: limits::RESULT.shown(most as u64),
            }
            .into());
        }
        Ok(Some(text))
    }
}

fn answered(job: &str, answer: JobAnswer) -> Result<JobRow, EngineError> {
    match answer {
        JobAnswer::Taken(job) => Ok(*job),
        JobAnswer::LeaseLost(job) => Err(JobError::LeaseLost {
            job: job.id,
            status: job.status,
        }
        .into()),
        JobAnswer::Missing => Err(missing(job)),
    }
}

fn missing(job: &str) -> EngineError {
    JobError::Missing {
        job: job.to_owned(),
    }
    .into()
}

fn check(options: &ClaimOptions) -> Result<(), JobError> {
    let refuse = |why: String| Err(JobError::BadClaim { why });
    if options.types.is_empty() || options.types.iter().any(String::is_empty) {
        return refuse("it names no job type".to_owned());
    }
    if options.worker.is_empty() {
        return refuse("it does not name the worker".to_owned());
    }
    if !(1..=MOST_JOBS).contains(&options.max) {
        let max = options.max;
        return refuse(format!("it may ask for 1 to {MOST_JOBS} jobs, not {max}"));
    }
    if options.wait > LONGEST_WAIT {
        let most = LONGEST_WAIT.as_secs();
        return refuse(format!("it may wait for at most {most} s"));
    }
    check_lease(options.lease)
}

fn check_lease(lease: Duration) -> Result<(), JobError> {
    if (SHORTEST_LEASE..=LONGEST_LEASE).contains(&lease) {
        return Ok(());
    }
    Err(JobError::BadClaim {
        why: format!(
            "a lease is {} s to {} s long, not {} s",
            SHORTEST_LEASE.as_secs(),
            LONGEST_LEASE.as_secs(),
            lease.as_secs_f64()
        ),
    })
}
