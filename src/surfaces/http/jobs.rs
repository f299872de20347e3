//! `/api/v1/jobs`: what workers outside do with jobs, and the listings.

use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Path, RawQuery, State};
use axum::http::HeaderMap;
use axum::routing::{get, post};
use flowstone_engine::EngineError;
use flowstone_engine::ids::RunId;
use flowstone_engine::jobs::{ClaimOptions, JobEnd, JobError, JobFailure, USUAL_LEASE};
use flowstone_engine::json::from_json;
use flowstone_engine::ports::{JobQuery, JobRow, JobStatus, MOST_JOBS};
use flowstone_engine::token::{Scope, TokenKind};
use serde_json::{Value as Json, json};
use tokio::sync::oneshot;

use super::access::Caller;
use super::answer::Answer;
use super::cursor;
use super::problem::Problem;
use super::request::{Members, Query};
use super::server::{Desk, Shared};
use crate::json::{claimed_json, ended_job_json, job_json, progress_json, unended_job_json};

/// Maximum number of jobs that are read to fill a page of those that the caller reaches.
const SCANNED_MAX: usize = 5_000;

pub(super) fn routes() -> Router<Shared> {
    Router::new()
        .route("/api/v1/jobs", get(list))
        .route("/api/v1/jobs/claim", post(claim))
        .route("/api/v1/jobs/complete", post(complete_many))
        .route("/api/v1/jobs/{id}", get(show))
        .route("/api/v1/jobs/{id}/complete", post(complete))
        .route("/api/v1/jobs/{id}/fail", post(fail))
        .route("/api/v1/jobs/{id}/progress", post(progress))
}

const CLAIM: &[&str] = &["lease", "max", "types", "wait", "worker"];

async fn claim(
    State(server): State<Shared>,
    caller: Caller,
    headers: HeaderMap,
    body: Body,
) -> Result<Answer, Problem> {
    caller.need(Scope::Work)?;
    let given = Members::read(&headers, body, CLAIM).await?;
    let options = claim_options(&given, &caller)?;
    // A client that goes away takes no job: its request is dropped, and with it this.
    let (present, gone) = oneshot::channel::<()>();
    let mut stopping = server.stopping.subscribe();
    let jobs = server
        .ask(async move |desk: &Desk| {
            let mut options = options;
            options.flows = reached_flows(desk, &caller);
            let claimed = tokio::select! {
                claimed = desk.engine.claim_jobs(&options) => claimed?,
                _ = gone => Vec::new(),
                _ = stopping.wait_for(|stops| *stops) => Vec::new(),
            };
            Ok::<_, Problem>(claimed.iter().map(claimed_json).collect::<Vec<Json>>())
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
        flows: None,
        worker: given.text("worker")?.unwrap_or_default(),
        max: usize::try_from(max).unwrap_or(0),
        lease: given.duration("lease")?.unwrap_or(USUAL_LEASE),
        wait: given.duration("wait")?.unwrap_or(Duration::ZERO),
    })
}

/// Returns the flows whose jobs a caller may claim; nothing if the token is not limited to flows.
fn reached_flows(desk: &Desk, caller: &Caller) -> Option<Vec<String>> {
    if !caller.token.is_limited_to_flows() {
        return None;
    }
    let flows = desk.catalog.flows(&desk.engine).into_iter();
    let reached = flows.filter(|flow| caller.token.reaches_flow(&flow.slug, &flow.labels));
    Some(reached.map(|flow| flow.slug.clone()).collect())
}

/// Tells whether a caller reaches a job. Users reach those of their own runs.
async fn reaches(desk: &Desk, caller: &Caller, job: &JobRow) -> Result<bool, Problem> {
    let labels = desk.catalog.labels(&desk.engine, &job.flow);
    if !caller.token.reaches_job(&job.kind) {
        return Ok(false);
    }
    Ok(match caller.token.kind {
        TokenKind::Owner | TokenKind::Service => caller.token.reaches_flow(&job.flow, &labels),
        TokenKind::User | TokenKind::Anon => match desk.engine.run(&job.run).await {
            Ok(run) => caller.reaches_run(&run.flow, &labels, &run.started_by),
            // It was removed meanwhile.
            Err(_) => false,
        },
    })
}

/// Returns a job by its whole id, if the caller reaches it.
async fn reached(desk: &Desk, caller: &Caller, id: &str) -> Result<JobRow, Problem> {
    let missing = || {
        let error = JobError::Missing { job: id.to_owned() };
        Problem::from(EngineError::from(error)).hint("`GET /api/v1/jobs` lists the jobs")
    };
    let job = match desk.engine.find_job(id).await {
        Ok(job) if job.id == id => job,
        Ok(_) | Err(EngineError::Job(_)) => return Err(missing()),
        Err(error) => return Err(error.into()),
    };
    match reaches(desk, caller, &job).await? {
        true => Ok(job),
        false => Err(missing()),
    }
}

async fn progress(
    State(server): State<Shared>,
    caller: Caller,
    Path(id): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Result<Answer, Problem> {
    caller.need(Scope::Work)?;
    let given = Members::read(&headers, body, &["extend", "lease", "progress"]).await?;
    let (lease, extend) = (lease_of(&given)?, given.duration("extend")?);
    let progress = given.get("progress").cloned();
    let shown = server
        .ask(async move |desk: &Desk| {
            let job = reached(desk, &caller, &id).await?;
            let progress = progress.as_ref().map(from_json);
            let extended = desk
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

const COMPLETE: &[&str] = &["lease", "result", "status"];

async fn complete(
    State(server): State<Shared>,
    caller: Caller,
    Path(id): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Result<Answer, Problem> {
    caller.need(Scope::Work)?;
    let given = Members::read(&headers, body, COMPLETE).await?;
    let end = End::of(&given)?;
    let shown = server
        .ask(async move |desk: &Desk| {
            let job = reached(desk, &caller, &id).await?;
            let ended = desk.engine.complete_job(&job.id, &end.made()).await?;
            Ok::<_, Problem>(job_json(&ended))
        })
        .await?;
    Ok(Answer::ok(shown))
}

/// The end of a job. A value of the language stays on its thread, so the result is JSON until it is there.
struct End {
    lease: String,
    no_changes: bool,
    result: Option<Json>,
}

impl End {
    fn of(given: &Members) -> Result<End, Problem> {
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
            result: given.get("result").cloned(),
        })
    }

    fn made(self) -> JobEnd {
        JobEnd {
            lease: self.lease,
            no_changes: self.no_changes,
            result: self.result.as_ref().map(from_json),
        }
    }
}

const COMPLETE_MANY: &[&str] = &["id", "lease", "result", "status"];

/// Ends several jobs, each for itself.
async fn complete_many(
    State(server): State<Shared>,
    caller: Caller,
    headers: HeaderMap,
    body: Body,
) -> Result<Answer, Problem> {
    caller.need(Scope::Work)?;
    let given = Members::read(&headers, body, &["jobs"]).await?;
    let jobs = given.entries("jobs", COMPLETE_MANY)?;
    if jobs.len() > MOST_JOBS {
        let error = JobError::TooMany { count: jobs.len() };
        return Err(EngineError::from(error).into());
    }
    let mut ends = Vec::new();
    for job in &jobs {
        let id = job.text("id")?;
        let id = id.ok_or_else(|| Problem::malformed("an entry of `jobs` has no `id`"))?;
        ends.push((id, End::of(job)?));
    }
    let answers = server
        .ask(async move |desk: &Desk| {
            let mut refused = Vec::new();
            let mut calls = Vec::new();
            for (id, end) in ends {
                match reached(desk, &caller, &id).await {
                    Ok(_) => refused.push((id.clone(), None)),
                    Err(problem) => {
                        refused.push((id, Some(problem)));
                        continue;
                    }
                }
                calls.push((id, end.made()));
            }
            let mut ended = desk.engine.complete_jobs(&calls).await?.into_iter();
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
    let given = Members::read(&headers, body, &["error", "lease", "retry"]).await?;
    let lease = lease_of(&given)?;
    let retry = given.flag("retry")?.unwrap_or(true);
    let error = given.inner("error", &["data", "kind", "message"])?;
    let (message, kind) = (error.text("message")?, error.text("kind")?);
    let message = message.ok_or_else(|| Problem::malformed("`error` needs a `message`"))?;
    let data = error.get("data").cloned();
    let shown = server
        .ask(async move |desk: &Desk| {
            let job = reached(desk, &caller, &id).await?;
            let failure = JobFailure {
                lease,
                message,
                kind,
                data: data.as_ref().map(from_json),
                retry,
            };
            let ended = desk.engine.fail_job(&job.id, &failure).await?;
            Ok::<_, Problem>(job_json(&ended))
        })
        .await?;
    Ok(Answer::ok(shown))
}

const FILTERS: &[&str] = &["batch", "cursor", "limit", "run", "status", "type"];

async fn list(
    State(server): State<Shared>,
    caller: Caller,
    RawQuery(query): RawQuery,
) -> Result<Answer, Problem> {
    caller.need(Scope::Read)?;
    let given = Query::read(query.as_deref(), FILTERS)?;
    let limit = given.limit()?;
    let status = match given.get("status") {
        None => None,
        Some(name) => Some(JobStatus::from_name(name).ok_or_else(|| {
            let names: Vec<&str> = JobStatus::NAMES.iter().map(|(_, name)| *name).collect();
            let names = names.join(", ");
            Problem::malformed(format!("`status` must be one of {names}, got `{name}`"))
        })?),
    };
    let filters = ["batch", "run", "status", "type"];
    let filters = format!("jobs {:?}", filters.map(|name| given.get(name)));
    let after = match given.get("cursor") {
        Some(text) => Some(cursor::read(text, &filters)?),
        None => None,
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
        .ask(async move |desk: &Desk| page(desk, &caller, query, limit).await)
        .await?;
    let next = next.map(|after| cursor::write(&after, &filters));
    Ok(Answer::ok(json!({"jobs": jobs, "next": next})))
}

/// Returns the jobs of a page that the caller reaches, and the last job of the page if there may be more.
async fn page(
    desk: &Desk,
    caller: &Caller,
    mut query: JobQuery,
    limit: usize,
) -> Result<(Vec<Json>, Option<String>), Problem> {
    let mut jobs = Vec::new();
    let mut scanned = 0;
    query.limit = limit;
    loop {
        let found = desk.engine.list_jobs(query.clone()).await?;
        for (idx, job) in found.jobs.iter().enumerate() {
            if reaches(desk, caller, job).await? {
                jobs.push(job_json(job));
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
    Query::read(query.as_deref(), &[])?;
    let shown = server
        .ask(async move |desk: &Desk| {
            Ok::<_, Problem>(job_json(&reached(desk, &caller, &id).await?))
        })
        .await?;
    Ok(Answer::ok(shown))
}
