//! `/api/v1/jobs`: what workers outside do with jobs, and the listings.

use std::time::Duration;

use axum::body::Body;
use axum::extract::{Path, RawQuery, State};
use axum::http::{HeaderMap, StatusCode};
use flowstone_engine::EngineError;
use flowstone_engine::ids::RunId;
use flowstone_engine::jobs::{ClaimOptions, JobEnd, JobError, JobFailure, USUAL_LEASE};
use flowstone_engine::ports::{JobQuery, JobReach, JobRow, JobStatus, MOST_JOBS};
use flowstone_engine::token::Scope;
use serde_json::{Value as Json, json};
use tokio::sync::oneshot;

use super::access::{Caller, unauthorized};
use super::answer::Answer;
use super::cursor;
use super::operation::{
    self as shape, CURSOR, GIVEN, Kind, LIMIT, Operation, Operations, Param, VALUES, names,
};
use super::problem::{Problem, codes};
use super::request::{Given, Members, Query};
use super::server::{EngineContext, Shared};
use super::trace;
use crate::json::{
    ClaimedJob, EndedJob, ExtendedLease, Job, Values, claimed_json_as, ended_job_json, job_json,
    job_json_as, progress_json, unended_job_json,
};

/// Maximum number of jobs that are read to fill a page of those that the caller reaches.
const SCANNED_MAX: usize = 5_000;

pub(super) fn operations() -> Operations {
    Operations::default().and(reading()).and(working())
}

fn reading() -> Operations {
    Operations::default()
        .with(
            Operation::get("/api/v1/jobs", "listJobs", "Lists jobs, newest first.")
                .scope(Scope::Read)
                .query(FILTERS)
                .ok(shape::page::<Job>("jobs")),
            list,
        )
        .with(
            Operation::get("/api/v1/jobs/{id}", "getJob", "Returns a job.")
                .scope(Scope::Read)
                .query(&[VALUES])
                .ok(shape::of::<Job>()),
            show,
        )
}

fn working() -> Operations {
    Operations::default()
        .with(
            Operation::post(
                "/api/v1/jobs/claim",
                "claimJobs",
                "Leases queued jobs to a worker.",
            )
            .scope(Scope::Work)
            .members(CLAIM)
            .ok(shape::list::<ClaimedJob>("jobs"))
            .refuses(&[422]),
            claim,
        )
        .with(
            Operation::post(
                "/api/v1/jobs/complete",
                "completeJobs",
                "Ends up to 100 jobs, each for itself.",
            )
            .scope(Scope::Work)
            .members(COMPLETE_MANY)
            .ok(shape::list::<EndedJob>("jobs"))
            .refuses(&[422]),
            complete_many,
        )
        .with(
            Operation::post(
                "/api/v1/jobs/{id}/complete",
                "completeJob",
                "Ends a job that was done.",
            )
            .scope(Scope::Work)
            .members(COMPLETE)
            .ok(shape::of::<Job>())
            .refuses(&[409]),
            complete,
        )
        .with(
            Operation::post(
                "/api/v1/jobs/{id}/fail",
                "failJob",
                "Reports that a job failed. It is queued again, unless its attempts are used up.",
            )
            .scope(Scope::Work)
            .members(FAIL)
            .ok(shape::of::<Job>())
            .refuses(&[409]),
            fail,
        )
        .with(
            Operation::post(
                "/api/v1/jobs/{id}/progress",
                "reportProgress",
                "Reports that a worker is at work, and extends its lease.",
            )
            .scope(Scope::Work)
            .members(PROGRESS)
            .ok(shape::of::<ExtendedLease>())
            .refuses(&[409, 422]),
            progress,
        )
}

const LEASE: Param = Param::text("lease", "`lease.token` of the job as it was claimed.").needed();
const ENDS: Param = Param::new(
    "status",
    Kind::OneOf(&["succeeded", "no_changes"]),
    "`no_changes`: the worker found nothing to do.",
);
const RESULT: Param = Param::new("result", Kind::Any, "The result for the flow.");
const PROGRESS: &[Param] = &[
    Param::new(
        "extend",
        Kind::Duration,
        "How long the lease lasts from now on, from 5s to 1h; as it was claimed if it is left out.",
    ),
    LEASE,
    Param::new("progress", Kind::Any, "How far the work is."),
    GIVEN,
];
const FAIL: &[Param] = &[
    Param::new("error", Kind::Inner(ERROR), "What went wrong.").needed(),
    LEASE,
    Param::flag(
        "retry",
        "False ends the job at once. True if it is left out.",
    ),
    GIVEN,
];
const ERROR: &[Param] = &[
    Param::new("data", Kind::Any, "Data about the error."),
    Param::text("kind", "A keyword for flows that tell errors apart."),
    Param::text("message", "What went wrong.").needed(),
];

const CLAIM: &[Param] = &[
    Param::new(
        "lease",
        Kind::Duration,
        "How long the lease lasts, from 5s to 1h; 30s if it is left out.",
    ),
    Param::number(
        "max",
        "Maximum number of jobs, from 1 to 100; 1 if it is left out.",
    ),
    Param::new("types", Kind::Texts, "Job types.").needed(),
    VALUES,
    Param::new(
        "wait",
        Kind::Duration,
        "How long to wait where no job is queued, up to 30s.",
    ),
    Param::text(
        "worker",
        "The name of the worker, for people who look at its jobs.",
    )
    .needed(),
];

async fn claim(
    State(server): State<Shared>,
    caller: Caller,
    headers: HeaderMap,
    body: Body,
) -> Result<Answer, Problem> {
    caller.need(Scope::Work)?;
    if caller.has_own_runs_only() {
        let detail = "a token of kind `user` or `anon` claims no jobs: they may be those of other people's runs";
        return Err(
            Problem::new(StatusCode::FORBIDDEN, codes::MISSING_SCOPE, detail)
                .hint("use a token of kind `service` with the scope `work`"),
        );
    }
    let given = Members::read(&headers, body, &names(CLAIM)).await?;
    let (options, values) = (claim_options(&given, &caller)?, given.values()?);
    // A client that goes away takes no job: its request is dropped, and with it this.
    let (present, gone) = oneshot::channel::<()>();
    let mut stopping = server.stopping.subscribe();
    let mut right = server.rights.open(&caller);
    let jobs = server
        .ask(async move |cx: &EngineContext| {
            let mut options = options;
            options.reach = reach_of(cx, &caller);
            options.token = Some(caller.token.id.clone());
            let claimed = tokio::select! {
                claimed = cx.engine.claim_jobs(&options) => claimed?,
                _ = gone => Vec::new(),
                ended = right.ended() => return Err(ended.into()),
                _ = stopping.wait_for(|stops| *stops) => Vec::new(),
            };
            let id = vec![caller.token.id.clone()];
            if claimed.is_empty() && !cx.engine.revoked_tokens(id).await?.is_empty() {
                return Err(unauthorized("the token was revoked"));
            }
            let shown = claimed.iter().map(|job| claimed_json_as(job, values));
            Ok::<_, Problem>(shown.collect::<Vec<Json>>())
        })
        .await?;
    drop(present);
    Ok(Answer::ok(json!({"jobs": jobs})))
}

fn claim_options(given: &Members, caller: &Caller) -> Result<ClaimOptions, Problem> {
    let types = given.texts("types")?;
    // A type that the token does not reach has no jobs, as far as the worker knows.
    let (types, hidden): (Vec<String>, Vec<String>) = types
        .into_iter()
        .partition(|kind| caller.token.reaches_job(kind));
    if types.is_empty() && !hidden.is_empty() {
        let names = hidden.join(", ");
        return Err(
            Problem::not_found(format!("this token reaches no jobs of type {names}"))
                .hint("a token is limited to job types with `tokens create --job-type TYPE`"),
        );
    }
    let max = given.number("max")?.unwrap_or(1);
    Ok(ClaimOptions {
        types,
        reach: None,
        worker: given.text("worker")?.unwrap_or_default(),
        max: usize::try_from(max).unwrap_or(0),
        lease: given.duration("lease")?.unwrap_or(USUAL_LEASE),
        wait: given.duration("wait")?.unwrap_or(Duration::ZERO),
        token: None,
    })
}

/// Returns whose jobs a caller may claim; nothing for the operator, who reaches all.
fn reach_of(cx: &EngineContext, caller: &Caller) -> Option<JobReach> {
    let limits = &caller.token.limits;
    if caller.token.is_operator() && !caller.token.is_limited_to_flows() {
        return None;
    }
    let flows = match limits.labels.is_empty() {
        true => Vec::new(),
        false => cx.catalog.flows(&cx.engine),
    };
    let has_label = |labels: &[String]| labels.iter().any(|label| limits.labels.contains(label));
    let labelled = flows.iter().filter(|flow| has_label(&flow.labels));
    Some(JobReach {
        labelled: labelled.map(|flow| flow.slug.clone()).collect(),
        token: caller.token.clone(),
    })
}

/// Tells whether a caller reaches a job. Users reach those of their own runs.
async fn reaches(cx: &EngineContext, caller: &Caller, job: &JobRow) -> Result<bool, Problem> {
    let labels = cx.catalog.labels(&cx.engine, &job.flow);
    if !caller.token.reaches_job(&job.kind) {
        return Ok(false);
    }
    if !caller.has_own_runs_only() {
        let side = caller.token.reaches_side(&job.flow, &labels);
        return Ok(side.is_installer());
    }
    Ok(match cx.engine.run(&job.run).await {
        Ok(run) => caller
            .side_of_run(&run.flow, &labels, &run.started_by)
            .is_installer(),
        // It was removed meanwhile.
        Err(_) => false,
    })
}

/// Returns a job by its whole id, if the caller reaches it.
async fn reached(cx: &EngineContext, caller: &Caller, id: &str) -> Result<JobRow, Problem> {
    let missing = || {
        let error = JobError::Missing { job: id.to_owned() };
        Problem::from(EngineError::from(error)).hint("`GET /api/v1/jobs` lists the jobs")
    };
    let job = match cx.engine.find_job(id).await {
        Ok(job) if job.id == id => job,
        Ok(_) | Err(EngineError::Job(_)) => return Err(missing()),
        Err(error) => return Err(error.into()),
    };
    if !reaches(cx, caller, &job).await? {
        return Err(missing());
    }
    trace::touches(&job.run);
    Ok(job)
}

async fn progress(
    State(server): State<Shared>,
    caller: Caller,
    Path(id): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Result<Answer, Problem> {
    caller.need(Scope::Work)?;
    let given = Members::read(&headers, body, &names(PROGRESS)).await?;
    let (lease, extend) = (lease_of(&given)?, given.duration("extend")?);
    let progress = given.value("progress", given.values()?)?;
    let shown = server
        .ask(async move |cx: &EngineContext| {
            let job = reached(cx, &caller, &id).await?;
            let progress = progress.as_ref().map(Given::value);
            let extended = cx
                .engine
                .job_progress(&job.id, &lease, progress.as_ref(), extend)
                .await?;
            Ok::<_, Problem>(progress_json(&extended))
        })
        .await?;
    Ok(Answer::ok(shown))
}

/// Returns the token of the lease that a call names.
fn lease_of(given: &Members) -> Result<String, Problem> {
    let lease = given.text("lease")?;
    lease.ok_or_else(|| {
        Problem::malformed("`lease` is missing")
            .hint("it is `lease.token` of the job as it was claimed")
    })
}

const COMPLETE: &[Param] = &[LEASE, RESULT, ENDS, GIVEN];

async fn complete(
    State(server): State<Shared>,
    caller: Caller,
    Path(id): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Result<Answer, Problem> {
    caller.need(Scope::Work)?;
    let given = Members::read(&headers, body, &names(COMPLETE)).await?;
    let end = End::of(&given, given.values()?)?;
    let shown = server
        .ask(async move |cx: &EngineContext| {
            let job = reached(cx, &caller, &id).await?;
            let ended = cx.engine.complete_job(&job.id, &end.made()).await?;
            Ok::<_, Problem>(job_json(&ended))
        })
        .await?;
    Ok(Answer::ok(shown))
}

/// The end of a job. A value of the language stays on its thread, so the result is what it came as until it is there.
struct End {
    lease: String,
    no_changes: bool,
    result: Option<Given>,
}

impl End {
    fn of(given: &Members, values: Values) -> Result<End, Problem> {
        let status = given.text("status")?;
        let no_changes = match status.as_deref().map(JobStatus::from_name) {
            None | Some(Some(JobStatus::Succeeded)) => false,
            Some(Some(JobStatus::NoChanges)) => true,
            Some(_) => {
                let status = status.unwrap_or_default();
                let detail = format!("`status` must be succeeded or no_changes, got `{status}`");
                return Err(Problem::malformed(detail));
            }
        };
        Ok(End {
            lease: lease_of(given)?,
            no_changes,
            result: given.value("result", values)?,
        })
    }

    fn made(self) -> JobEnd {
        JobEnd {
            lease: self.lease,
            no_changes: self.no_changes,
            result: self.result.as_ref().map(Given::value),
        }
    }
}

const COMPLETE_MANY: &[Param] = &[
    Param::new(
        "jobs",
        Kind::Entries(COMPLETE_ONE),
        "The jobs, at most 100.",
    )
    .needed(),
    GIVEN,
];
const COMPLETE_ONE: &[Param] = &[Param::text("id", "The job.").needed(), LEASE, RESULT, ENDS];

/// Ends several jobs, each for itself.
async fn complete_many(
    State(server): State<Shared>,
    caller: Caller,
    headers: HeaderMap,
    body: Body,
) -> Result<Answer, Problem> {
    caller.need(Scope::Work)?;
    let given = Members::read(&headers, body, &names(COMPLETE_MANY)).await?;
    let jobs = given.entries("jobs", &names(COMPLETE_ONE))?;
    if jobs.len() > MOST_JOBS {
        let error = JobError::TooMany { count: jobs.len() };
        return Err(EngineError::from(error).into());
    }
    let values = given.values()?;
    let mut ends = Vec::new();
    for job in &jobs {
        let id = job.text("id")?;
        let id = id.ok_or_else(|| Problem::malformed("an entry of `jobs` has no `id`"))?;
        ends.push((id, End::of(job, values)?));
    }
    let answers = server
        .ask(async move |cx: &EngineContext| {
            let mut refused = Vec::new();
            let mut calls = Vec::new();
            for (id, end) in ends {
                match reached(cx, &caller, &id).await {
                    Ok(_) => refused.push((id.clone(), None)),
                    Err(problem) => {
                        refused.push((id, Some(problem)));
                        continue;
                    }
                }
                calls.push((id, end.made()));
            }
            let mut ended = cx.engine.complete_jobs(&calls).await?.into_iter();
            let answers = refused.into_iter().map(|(id, refused)| match refused {
                Some(problem) => unended_job_json(&id, problem.to_json()),
                None => match ended.next() {
                    Some(Ok(job)) => ended_job_json(&job),
                    Some(Err(error)) => unended_job_json(&id, Problem::from(error).to_json()),
                    None => unended_job_json(&id, Json::Null),
                },
            });
            Ok::<_, Problem>(answers.collect::<Vec<Json>>())
        })
        .await?;
    Ok(Answer::ok(json!({"jobs": answers})))
}

async fn fail(
    State(server): State<Shared>,
    caller: Caller,
    Path(id): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Result<Answer, Problem> {
    caller.need(Scope::Work)?;
    let given = Members::read(&headers, body, &names(FAIL)).await?;
    let lease = lease_of(&given)?;
    let retry = given.flag("retry")?.unwrap_or(true);
    let error = given.inner("error", &names(ERROR))?;
    let (message, kind) = (error.text("message")?, error.text("kind")?);
    let message = message.ok_or_else(|| Problem::malformed("`error` needs a `message`"))?;
    let data = error.value("data", given.values()?)?;
    let shown = server
        .ask(async move |cx: &EngineContext| {
            let job = reached(cx, &caller, &id).await?;
            let failure = JobFailure {
                lease,
                message,
                kind,
                data: data.as_ref().map(Given::value),
                retry,
            };
            let ended = cx.engine.fail_job(&job.id, &failure).await?;
            Ok::<_, Problem>(job_json(&ended))
        })
        .await?;
    Ok(Answer::ok(shown))
}

const FILTERS: &[Param] = &[
    Param::text("after", "Only jobs that the list has after this one."),
    Param::text("batch", "Only jobs of this batch."),
    CURSOR,
    LIMIT,
    Param::text("run", "Only jobs that this run submitted."),
    Param::text("status", "Only jobs with this status."),
    Param::text("type", "Only jobs of this type."),
    VALUES,
];

async fn list(
    State(server): State<Shared>,
    caller: Caller,
    RawQuery(query): RawQuery,
) -> Result<Answer, Problem> {
    caller.need(Scope::Read)?;
    let given = Query::read(query.as_deref(), &names(FILTERS))?;
    let (limit, values) = (given.limit()?, given.values()?);
    let status = match given.get("status") {
        None => None,
        Some(name) => Some(JobStatus::from_name(name).ok_or_else(|| {
            let names: Vec<&str> = JobStatus::NAMES.iter().map(|(_, name)| *name).collect();
            let names = names.join(", ");
            Problem::malformed(format!("`status` must be one of {names}, got `{name}`"))
        })?),
    };
    let filters = ["after", "batch", "run", "status", "type"];
    let filters = format!("jobs {:?}", filters.map(|name| given.get(name)));
    let after = match given.get("cursor") {
        Some(text) => Some(cursor::read(text, &filters)?),
        None => given.owned("after"),
    };
    let query = JobQuery {
        kind: given.owned("type"),
        status,
        batch: given.owned("batch"),
        run: given.owned("run").map(RunId::from_text),
        after,
        ..JobQuery::default()
    };
    let (jobs, next) = server
        .ask(async move |cx: &EngineContext| page(cx, &caller, query, (limit, values)).await)
        .await?;
    let next = next.map(|after| cursor::write(&after, &filters));
    Ok(Answer::ok(json!({"jobs": jobs, "next": next})))
}

/// Returns the jobs of a page that the caller reaches, and the last job of the page if there may be more.
async fn page(
    cx: &EngineContext,
    caller: &Caller,
    mut query: JobQuery,
    (limit, values): (usize, Values),
) -> Result<(Vec<Json>, Option<String>), Problem> {
    let mut jobs = Vec::new();
    let mut scanned = 0;
    query.limit = limit;
    loop {
        let found = cx.engine.list_jobs(query.clone()).await?;
        for (idx, job) in found.jobs.iter().enumerate() {
            if reaches(cx, caller, job).await? {
                jobs.push(job_json_as(job, values));
            }
            if jobs.len() == limit {
                let has_more = idx + 1 < found.jobs.len() || found.next.is_some();
                return Ok((jobs, has_more.then(|| job.id.clone())));
            }
        }
        scanned += found.jobs.len();
        let Some(next) = found.next else {
            return Ok((jobs, None));
        };
        if scanned >= SCANNED_MAX {
            return Ok((jobs, Some(next)));
        }
        query.after = Some(next);
    }
}

async fn show(
    State(server): State<Shared>,
    caller: Caller,
    Path(id): Path<String>,
    RawQuery(query): RawQuery,
) -> Result<Answer, Problem> {
    caller.need(Scope::Read)?;
    let values = Query::read(query.as_deref(), &names(&[VALUES]))?.values()?;
    let shown = server
        .ask(async move |cx: &EngineContext| {
            let job = reached(cx, &caller, &id).await?;
            Ok::<_, Problem>(job_json_as(&job, values))
        })
        .await?;
    Ok(Answer::ok(shown))
}
