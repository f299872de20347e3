//! Runs a test to its end: executes the run, answers its waits, and advances the clock, in turn.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use flowstone_lang::value::Value;

use super::{PROCESSES, TestError, World};
use crate::codec;
use crate::engine::{Engine, StartOptions};
use crate::execute::ExecuteOptions;
use crate::flow::{LoadedFlow, name_of};
use crate::ids::RunId;
use crate::jobs::{ClaimOptions, JobEnd, JobFailure, USUAL_LEASE};
use crate::observer::{NoObserver, Observer};
use crate::ports::{
    JobQuery, JobStatus, MOST_JOBS, RunFilter, RunRow, StoreError, Stores, WaitFilter, WaitRow,
};
use crate::report::{RunReport, StepStatus};
use crate::table::csv::{CsvContent, ExportCsv};
use crate::table::{
    Filter, Page, PageStart, Partitions, RowsQuery, TableName, TableQuery, TableTarget,
};

/// The id under which the processes of a test find its run.
const NAME: &str = "test";
/// Maximum number of turns; a flow that needs more does not end.
const TURNS: u32 = 100_000;
/// Maximum number of rows of a table that are compared with a case.
const ROWS: usize = 10_000;
/// Maximum number of rows of a page.
const PAGE: usize = 1_000;

/// The outcome of a test. It is all text, so that it can be compared and passed to another process.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TestOutcome {
    pub status: String,
    /// EDN text of the result or the error.
    pub end: String,
    /// The contents of the project's own stores at the end, by name.
    pub contents: BTreeMap<String, String>,
    /// The paths of steps that a person was asked about because a crash had left them in doubt.
    pub in_doubt: Vec<String>,
    /// How many crash points this process passed, and how many commits.
    pub points: u64,
    pub commits: u64,
    /// The steps that the run called itself, in the order of their first calls: ids, with a number for each further call in a
    /// loop, and types.
    pub steps: Vec<CalledStep>,
    /// The tools that agents of the run called, in order: names, and whether they returned.
    pub tools: Vec<(String, bool)>,
    /// The rows of the tables that the case has expectations of, as EDN text by name.
    pub rows: BTreeMap<String, String>,
}

/// A step that a run called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CalledStep {
    /// Its id, without the number of the call.
    pub id: String,
    pub path: String,
    pub kind: String,
    /// Milliseconds on the clock of the test, if it has ended.
    pub millis: Option<i64>,
}

/// Starts the flow, or resumes it where an earlier process left it; executes it to its end, replays it, and returns the
/// outcome.
///
/// # Errors
/// When it cannot be executed, a replay differs, or the case has no answer for a wait.
pub async fn play(
    engine: &Engine,
    world: &World,
    loaded: &LoadedFlow,
    observer: Rc<dyn Observer>,
) -> Result<TestOutcome, TestError> {
    world.reseed(0);
    let run = engine
        .start(
            loaded,
            StartOptions {
                input: world.case.input.clone(),
                invocation: name_of(&world.case.invocation).map(|name| name.to_string()),
                external_id: Some(NAME.to_owned()),
                is_left: false,
                started_by: None,
                priority: None,
                timeout: None,
                profile: None,
                installation: None,
                trace: None,
            },
        )
        .await?;
    world.reseed(count_process(&world.home)?);
    catch_up(engine, world, &run).await?;
    let mut turns = 0;
    loop {
        engine
            .execute(&run, observer.clone(), ExecuteOptions::default())
            .await?;
        let row = engine.run_row(&run).await?;
        if row.status.is_final() && unfinished(engine).await?.is_empty() {
            break;
        }
        turns += 1;
        let answered = answer(engine, world).await? + work(engine, world).await?;
        let others = go_on(engine, &run).await?;
        if answered + others == 0 && !row.status.is_final() && !pass_time(engine, world).await? {
            return Err(unanswered(engine, &row).await?);
        }
        if turns > TURNS || (row.status.is_final() && answered + others == 0) {
            break;
        }
    }
    engine.verify(&run).await?;
    tell(engine, world, &run).await
}

/// Records that another process takes part, and returns its number.
fn count_process(home: &Path) -> Result<u64, TestError> {
    let path = home.join(PROCESSES);
    let noted = std::fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open(&path)
        .and_then(|mut file| {
            file.write_all(b"\n")?;
            file.metadata()
        });
    match noted {
        Ok(about) => Ok(about.len()),
        Err(error) => Err(TestError::Unusable {
            path: path.display().to_string(),
            detail: error.to_string(),
        }),
    }
}

/// Sets the clock to the last time that an earlier process wrote.
async fn catch_up(engine: &Engine, world: &World, run: &RunId) -> Result<(), TestError> {
    let row = engine.run_row(run).await?;
    let entries = engine.stores().journal.load(run).await.map_err(of_store)?;
    let last = entries.iter().map(|entry| entry.at_ms).max();
    let instant = last.unwrap_or(0).max(row.updated_ms);
    world.clock.set(instant.max(super::BEGINNING_MS));
    Ok(())
}

fn of_store(error: StoreError) -> TestError {
    TestError::Engine(error.into())
}

async fn unfinished(engine: &Engine) -> Result<Vec<RunRow>, TestError> {
    let mut runs = engine.list_runs(RunFilter::default()).await?;
    runs.retain(|run| !run.status.is_final());
    Ok(runs)
}

/// Answers every open wait that the case has an answer for, and every step in doubt.
async fn answer(engine: &Engine, world: &World) -> Result<usize, TestError> {
    let mut answered = 0;
    for wait in engine.list_waits(WaitFilter::default()).await? {
        let value = match is_doubt(&wait) {
            true => Some(Value::keyword("retry")),
            false => {
                let step = step_of(&wait.path);
                let id = id_of(step);
                world.case.answer(&[&wait.path, step, id, &wait.key])
            }
        };
        if let Some(value) = value {
            engine.complete_wait(&wait.id, &value, false).await?;
            answered += 1;
        }
    }
    Ok(answered)
}

/// Maximum number of jobs in the queue that are considered in one turn.
const JOBS: usize = 1_000;

/// Does what workers outside do: claims every queued job whose type the case has an answer for, and ends it.
async fn work(engine: &Engine, world: &World) -> Result<usize, TestError> {
    let query = JobQuery {
        status: Some(JobStatus::Queued),
        limit: JOBS,
        ..JobQuery::default()
    };
    let mut kinds: Vec<String> = Vec::new();
    for job in engine.list_jobs(query).await?.jobs {
        if !kinds.contains(&job.kind) && world.case.answer(&[&job.kind]).is_some() {
            kinds.push(job.kind);
        }
    }
    if kinds.is_empty() {
        return Ok(0);
    }
    let options = ClaimOptions {
        types: kinds,
        reach: None,
        worker: "test".to_owned(),
        max: MOST_JOBS,
        lease: USUAL_LEASE,
        wait: Duration::ZERO,
        token: None,
    };
    let claimed = engine.claim_jobs(&options).await?;
    for job in &claimed {
        let answer = world.case.answer(&[&job.kind]).unwrap_or(Value::Nil);
        let lease = job.lease.as_ref().map(|lease| lease.token.clone());
        end_job(engine, &job.id, lease.unwrap_or_default(), answer).await?;
    }
    Ok(claimed.len())
}

/// Completes a job with a result, or fails it if the answer is `{:mock/error {...}}`.
async fn end_job(
    engine: &Engine,
    job: &str,
    lease: String,
    answer: Value,
) -> Result<(), TestError> {
    let error = answer.get("mock/error").cloned();
    let Some(error) = error else {
        let end = JobEnd {
            lease,
            no_changes: false,
            result: Some(answer),
        };
        engine.complete_job(job, &end).await?;
        return Ok(());
    };
    let message = error.get("message").and_then(Value::as_str);
    let failure = JobFailure {
        lease,
        message: message.unwrap_or("the job failed").to_owned(),
        kind: error
            .get("kind")
            .and_then(name_of)
            .map(|kind| kind.to_string()),
        data: error.get("data").cloned(),
        retry: error.get("retry?") == Some(&Value::Bool(true)),
    };
    engine.fail_job(job, &failure).await?;
    Ok(())
}

/// Returns the path of the step that a wait, or a question about a step, belongs to.
fn step_of(path: &str) -> &str {
    path.split_once('?').map_or(path, |(step, _)| step)
}

fn is_doubt(wait: &WaitRow) -> bool {
    let details = codec::decode(&wait.details).unwrap_or(Value::Nil);
    details.get("question") == Some(&Value::keyword("in-doubt"))
}

/// Executes the other runs, such as child runs.
async fn go_on(engine: &Engine, run: &RunId) -> Result<usize, TestError> {
    let mut executed = 0;
    for other in engine.resumable().await? {
        if other.id != *run {
            let options = ExecuteOptions::default();
            engine
                .execute(&other.id, Rc::new(NoObserver), options)
                .await?;
            executed += 1;
        }
    }
    Ok(executed)
}

/// Advances the clock to the next instant that a run waits for. Tells whether there is one.
async fn pass_time(engine: &Engine, world: &World) -> Result<bool, TestError> {
    let runs = unfinished(engine).await?;
    let runs = runs.iter().filter_map(|run| run.due_ms);
    // The lease of a worker that died.
    let jobs = engine.stores().agenda.next_ms().await.map_err(of_store)?;
    let due = runs.chain(jobs).min();
    if let Some(due) = due {
        let now_ms = engine.services.clock.now_ms();
        world.clock.set(due.max(now_ms));
    }
    Ok(due.is_some())
}

async fn unanswered(engine: &Engine, row: &RunRow) -> Result<TestError, TestError> {
    let waits = engine.list_waits(WaitFilter::default()).await?;
    let path = waits.first().map_or("*", |wait| step_of(&wait.path));
    let reason = row.wait_reason.clone();
    Ok(TestError::Unanswered {
        reason: reason.unwrap_or_else(|| format!("it is {}", row.status.name())),
        path: path.to_owned(),
    })
}

async fn tell(engine: &Engine, world: &World, run: &RunId) -> Result<TestOutcome, TestError> {
    let row = engine.run_row(run).await?;
    let stores = engine.stores();
    let now_ms = engine.services.clock.now_ms();
    let mut in_doubt = Vec::new();
    for row in engine.list_runs(RunFilter::default()).await? {
        let filter = WaitFilter {
            run: Some(row.id.clone()),
            all: true,
            ..WaitFilter::default()
        };
        for wait in engine.list_waits(filter).await? {
            if is_doubt(&wait) {
                in_doubt.push(format!("{}/{}", row.flow, step_of(&wait.path)));
            }
        }
    }
    let report = engine.show_run(run).await?;
    let steps = report.steps.iter().map(|step| CalledStep {
        id: id_of(&step.path).to_owned(),
        path: step.path.clone(),
        kind: step.kind.clone(),
        millis: step.ended_ms.map(|ended| ended - step.started_ms),
    });
    Ok(TestOutcome {
        steps: steps.collect(),
        tools: tools(&report),
        rows: rows(stores, &world.case.tables).await?,
        status: row.status.name().to_owned(),
        end: row.result.or(row.error).unwrap_or_default(),
        contents: contents(stores, now_ms).await.map_err(of_store)?,
        in_doubt,
        points: world.points.passed(),
        commits: world.points.commits(),
    })
}

/// Returns the id of the step at a path.
fn id_of(path: &str) -> &str {
    let last = path.rsplit('/').next().unwrap_or(path);
    last.split(['#', '?']).next().unwrap_or(last)
}

/// Returns the tools that agents called, and whether they returned.
fn tools(report: &RunReport) -> Vec<(String, bool)> {
    let calls = report.conversations().into_iter();
    let calls = calls.flat_map(|conversation| conversation.turns);
    let calls = calls.flat_map(|turn| turn.calls);
    calls
        .map(|call| {
            let is_done = call.step.is_none_or(|step| step.status == StepStatus::Done);
            (call.name, is_done)
        })
        .collect()
}

/// Returns the rows of the tables that a case names, as EDN text.
async fn rows(stores: &Stores, expected: &Value) -> Result<BTreeMap<String, String>, TestError> {
    let mut rows = BTreeMap::new();
    let existing = stores.tables.names().await.map_err(of_store)?;
    for (name, _) in expected.as_map().into_iter().flat_map(|map| map.iter()) {
        let Some(name) = name_of(name).filter(|name| existing.iter().any(|it| **it == **name))
        else {
            continue;
        };
        let target = TableTarget {
            name: TableName::Name(name.to_string()),
            partitions: Partitions::All,
        };
        rows.insert(name.to_string(), all_rows(stores, target).await?);
    }
    Ok(rows)
}

/// Returns the rows of a table as EDN text.
async fn all_rows(stores: &Stores, table: TableTarget) -> Result<String, TestError> {
    let mut rows = Vec::new();
    loop {
        let query = TableQuery::Rows(RowsQuery {
            table: table.clone(),
            select: Vec::new(),
            filter: Filter::ALL,
            sort: Vec::new(),
            page: Page {
                limit: PAGE,
                from: PageStart::Offset(rows.len()),
                total: false,
            },
        });
        let text = stores.tables.query(query).await.map_err(of_store)?;
        let page = codec::decode(&text).unwrap_or(Value::Nil);
        let found = page.get("rows").and_then(Value::as_vector);
        let before = rows.len();
        rows.extend(found.into_iter().flat_map(|page| page.iter().cloned()));
        if rows.len() - before < PAGE || rows.len() >= ROWS {
            break;
        }
    }
    let rows = codec::encode(&Value::vector(rows));
    rows.map_err(|error| TestError::BadCase(error.to_string()))
}

/// Returns all keys and tables, as text.
async fn contents(stores: &Stores, now_ms: i64) -> Result<BTreeMap<String, String>, StoreError> {
    let mut contents = BTreeMap::new();
    for key in stores.kv.list_keys("", usize::MAX, now_ms).await? {
        if let Some(value) = stores.kv.get(&key, now_ms).await? {
            contents.insert(format!("kv {key}"), value);
        }
    }
    for name in stores.tables.names().await? {
        let table = TableTarget {
            name: TableName::Name(name.clone()),
            partitions: Partitions::All,
        };
        let everything = ExportCsv {
            table,
            select: Vec::new(),
            filter: Filter::ALL,
            sort: Vec::new(),
            escape_formulas: false,
        };
        let text = match stores.tables.export(everything).await?.content {
            CsvContent::Text(text) => text,
            // The name is derived from the contents.
            CsvContent::Blob { blob, .. } => blob.0,
        };
        contents.insert(format!("table {name}"), text);
    }
    Ok(contents)
}
