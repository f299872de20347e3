//! The subcommands of workers. They only store the worker's report; `serve` resumes the runs that wait for it.

use flowstone_engine::jobs::{ClaimOptions, JobEnd, JobFailure};
use flowstone_engine::json::items;
use flowstone_engine::ports::{JobRow, JobStatus};
use flowstone_engine::{EngineError, codec};
use flowstone_flow::flow::name_of;
use flowstone_lang::value::Value;
use serde_json::json;

use super::ask;
use crate::cli::args::{JobsClaim, JobsComplete, JobsFail, JobsProgress};
use crate::cli::exit::Exit;
use crate::cli::outcome::of_engine_error;
use crate::cli::report::{Report, Shown as _};
use crate::cli::table::{Column, table};
use crate::cli::{App, input, output};
use crate::json::{claimed_json, ended_job_json, job_json, progress_json, unended_job_json};

pub(super) fn claim(args: &JobsClaim, app: &dyn App) -> Result<Exit, Report> {
    let options = ClaimOptions {
        types: args.types.clone(),
        reach: None,
        worker: args.worker.clone(),
        max: args.max,
        lease: args.lease,
        wait: args.wait,
        token: None,
    };
    let jobs = ask(&args.home, app, async |engine| {
        engine.claim_jobs(&options).await
    })?;
    if args.json {
        let jobs: Vec<_> = jobs.iter().map(claimed_json).collect();
        output::json(&json!({"ok": true, "jobs": jobs}));
        return Ok(Exit::Completed);
    }
    let jobs: Vec<JobRow> = jobs.into_iter().map(|job| job.row).collect();
    claim_table(&jobs);
    Ok(Exit::Completed)
}

/// Prints claimed jobs with their leases.
pub fn claim_table(jobs: &[JobRow]) {
    if jobs.is_empty() {
        output::note("no job of this type is queued");
        return;
    }
    let heading = [
        Column::Whole("job"),
        Column::Whole("type"),
        Column::Whole("lease"),
        Column::Extra("until"),
        Column::Extra("attempt"),
        Column::Cut("payload"),
    ];
    let rows = jobs.iter().map(|job| {
        let lease = job.lease.as_ref();
        vec![
            job.id.clone(),
            job.kind.clone(),
            lease.map_or_else(String::new, |lease| lease.token.clone()),
            lease.map_or_else(String::new, |lease| codec::instant(lease.until_ms)),
            format!("{}/{}", job.attempt, job.max_attempts),
            job.payload.clone(),
        ]
    });
    output::data(&table(&heading, rows));
}

pub(super) fn progress(args: &JobsProgress, app: &dyn App) -> Result<Exit, Report> {
    let progress = match read(args.progress.as_deref(), "--progress") {
        Ok(progress) => progress,
        Err(report) => return Ok(misspelt(&report, args.json)),
    };
    let extended = ask(&args.home, app, async |engine| {
        engine
            .job_progress(&args.id, &args.lease, progress.as_ref(), args.extend)
            .await
    })?;
    if args.json {
        let mut object = progress_json(&extended);
        object["ok"] = json!(true);
        output::json(&object);
        return Ok(Exit::Completed);
    }
    output::note(&format!(
        "lease until {}",
        codec::instant(extended.until_ms)
    ));
    if extended.is_cancel_requested {
        output::note("the job was cancelled: stop, and end it with `flowstone jobs fail`");
    }
    Ok(Exit::Completed)
}

pub(super) fn complete(args: &JobsComplete, app: &dyn App) -> Result<Exit, Report> {
    if args.many.is_some() {
        return complete_many(args, app);
    }
    let result = match read(args.result.as_deref(), "--result") {
        Ok(result) => result,
        Err(report) => return Ok(misspelt(&report, args.json)),
    };
    let end = JobEnd {
        lease: args.lease.clone().unwrap_or_default(),
        no_changes: args.no_changes,
        result,
    };
    let id = args.id.as_deref().unwrap_or_default();
    let job = ask(&args.home, app, async |engine| {
        engine.complete_job(id, &end).await
    })?;
    Ok(print_ended(&job, args.json))
}

fn complete_many(args: &JobsComplete, app: &dyn App) -> Result<Exit, Report> {
    let file = args.many.clone().unwrap_or_default();
    let ends = match input::read_file(&file).and_then(|given| ends(&given)) {
        Ok(ends) => ends,
        Err(report) => return Ok(misspelt(&report, args.json)),
    };
    let answers = ask(&args.home, app, async |engine| {
        engine.complete_jobs(&ends).await
    })?;
    let is_ok = answers.iter().all(Result::is_ok);
    let named = ends.iter().map(|(id, _)| id).zip(&answers);
    if args.json {
        let jobs: Vec<_> = named.map(|(id, answer)| answer_json(id, answer)).collect();
        output::json(&json!({"ok": is_ok, "jobs": jobs}));
    } else {
        for (id, answer) in named {
            match answer {
                Ok(job) => output::data(&format!("{id}  {}", job.status.name())),
                Err(error) => output::report(&of_engine_error(error)),
            }
        }
    }
    Ok(match is_ok {
        true => Exit::Completed,
        false => Exit::Failed,
    })
}

fn answer_json(id: &str, answer: &Result<JobRow, EngineError>) -> serde_json::Value {
    match answer {
        Ok(job) => ended_job_json(job),
        Err(error) => unended_job_json(id, of_engine_error(error).to_json()),
    }
}

/// Reads the list of `--many`.
fn ends(given: &Value) -> Result<Vec<(String, JobEnd)>, Report> {
    let wrong = |idx: usize, why: &str| {
        let message = format!("entry {idx} of `--many` {why}");
        Report::error("E0912", message)
            .hint("as in [{\"id\": \"j1\", \"lease\": \"...\", \"result\": {\"ok\": true}}]")
    };
    let Some(entries) = items(given) else {
        return Err(Report::error("E0912", "`--many` takes a list of maps"));
    };
    let end = |(idx, entry): (usize, &Value)| {
        let text = |key: &str| entry.get(key).and_then(Value::as_str);
        let (Some(id), Some(lease)) = (text("id"), text("lease")) else {
            return Err(wrong(idx, "needs an `id` and a `lease`, both strings"));
        };
        let status = entry.get("status").filter(|status| !status.is_nil());
        let status = match status.map(|status| name_of(status).unwrap_or_default()) {
            None => JobStatus::Succeeded,
            Some(name) => match JobStatus::from_name(&name) {
                Some(status) if status.is_success() => status,
                _ => {
                    return Err(wrong(
                        idx,
                        "has a `status` other than succeeded and no_changes",
                    ));
                }
            },
        };
        Ok((
            id.to_owned(),
            JobEnd {
                lease: lease.to_owned(),
                no_changes: status == JobStatus::NoChanges,
                result: entry.get("result").filter(|it| !it.is_nil()).cloned(),
            },
        ))
    };
    entries.iter().enumerate().map(end).collect()
}

pub(super) fn fail(args: &JobsFail, app: &dyn App) -> Result<Exit, Report> {
    let data = match read(args.data.as_deref(), "--data") {
        Ok(data) => data,
        Err(report) => return Ok(misspelt(&report, args.json)),
    };
    let failure = JobFailure {
        lease: args.lease.clone(),
        message: args.message.clone(),
        kind: args.kind.clone(),
        data,
        retry: !args.no_retry,
    };
    let job = ask(&args.home, app, async |engine| {
        engine.fail_job(&args.id, &failure).await
    })?;
    Ok(print_ended(&job, args.json))
}

fn print_ended(job: &JobRow, as_json: bool) -> Exit {
    match as_json {
        true => output::json(&json!({"ok": true, "job": job_json(job)})),
        false => print_end(job),
    }
    Exit::Completed
}

/// Prints how a job ended.
pub fn print_end(job: &JobRow) {
    output::data(&format!("{}  {}", job.id, job.status.name()));
}

fn read(text: Option<&str>, option: &str) -> Result<Option<Value>, Report> {
    text.map(|text| input::read(text, option)).transpose()
}

fn misspelt(report: &Report, as_json: bool) -> Exit {
    output::failure(report, as_json);
    Exit::Usage
}
