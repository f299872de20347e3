//! The subcommands that show jobs.

use flowstone_engine::ports::{JobQuery, JobRow};
use flowstone_engine::{codec, jobs::JobPage};
use serde_json::json;

use super::ask;
use crate::cli::args::{JobsList, JobsShow};
use crate::cli::exit::Exit;
use crate::cli::home::Project;
use crate::cli::report::Report;
use crate::cli::table::{Column, table};
use crate::cli::{App, output};
use crate::json::job_json;

pub(super) fn list(args: &JobsList, app: &dyn App) -> Result<Exit, Report> {
    let page = match Project::find(&args.home).home.is_dir() {
        // A project that was never used has no jobs.
        false => JobPage {
            jobs: Vec::new(),
            next: None,
        },
        true => ask(&args.home, app, async |engine| {
            let run = match &args.run {
                Some(run) => Some(engine.find_run(run).await?.id),
                None => None,
            };
            let query = JobQuery {
                kind: args.kind.clone(),
                status: args.status,
                batch: args.batch.clone(),
                run,
                id_prefix: None,
                after: args.after.clone(),
                limit: args.limit,
            };
            engine.list_jobs(query).await
        })?,
    };
    if args.json {
        let jobs: Vec<_> = page.jobs.iter().map(job_json).collect();
        output::json(&json!({"ok": true, "jobs": jobs, "next": page.next}));
        return Ok(Exit::Completed);
    }
    list_table(&page.jobs);
    if let Some(next) = &page.next {
        output::note(&format!("there are more: --after {next}"));
    }
    Ok(Exit::Completed)
}

/// Prints jobs.
pub fn list_table(jobs: &[JobRow]) {
    if jobs.is_empty() {
        output::note("there are no such jobs");
        return;
    }
    let heading = [
        Column::Whole("job"),
        Column::Whole("type"),
        Column::Whole("status"),
        Column::Extra("attempt"),
        Column::Extra("worker"),
        Column::Extra("run"),
        Column::Extra("submitted"),
    ];
    output::data(&table(&heading, jobs.iter().map(row)));
}

fn row(job: &JobRow) -> Vec<String> {
    vec![
        job.id.clone(),
        job.kind.clone(),
        job.status.name().to_owned(),
        format!("{}/{}", job.attempt, job.max_attempts),
        job.worker.clone().unwrap_or_else(|| "-".to_owned()),
        job.run.to_string(),
        codec::instant(job.created_ms),
    ]
}

pub(super) fn show(args: &JobsShow, app: &dyn App) -> Result<Exit, Report> {
    let job = ask(&args.home, app, async |engine| {
        engine.find_job(&args.id).await
    })?;
    if args.json {
        output::json(&json!({"ok": true, "job": job_json(&job)}));
    } else {
        print_job(&job);
    }
    Ok(Exit::Completed)
}

/// Prints everything about a job.
pub fn print_job(job: &JobRow) {
    output::whole(&describe(job));
}

fn describe(job: &JobRow) -> String {
    let mut out = format!("{}  {}  {}\n", job.id, job.kind, job.status.name());
    let lease = job.lease.as_ref();
    let facts = [
        ("run", Some(format!("{} of `{}`", job.run, job.flow))),
        ("step", Some(job.path.clone())),
        ("batch", job.batch.clone()),
        (
            "attempt",
            Some(format!("{} of {}", job.attempt, job.max_attempts)),
        ),
        ("worker", job.worker.clone()),
        ("lease until", lease.map(|it| codec::instant(it.until_ms))),
        (
            "cancelled",
            job.cancel_ms
                .filter(|_| !job.status.is_final())
                .map(codec::instant),
        ),
        ("deadline", job.deadline_ms.map(codec::instant)),
        ("submitted", Some(codec::instant(job.created_ms))),
        ("ended", job.ended_ms.map(codec::instant)),
        ("payload", Some(job.payload.clone())),
        ("metadata", job.metadata.clone()),
        ("progress", job.progress.clone()),
        ("result", job.result.clone()),
        ("error", job.error.clone()),
    ];
    for (name, fact) in facts {
        if let Some(fact) = fact {
            out.push_str(&format!("{name}: {fact}\n"));
        }
    }
    out
}
