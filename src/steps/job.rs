//! `:job`: work for external workers. A step puts jobs into a queue, reads them, or waits for their end.
//!
//! Jobs are rows of Flowstone's own stores, so `:submit` commits with the step's journal row. `:await` suspends the run
//! as `:wait` does; the store reports the end of the job in the transaction that ends it.

use std::time::Duration;

use flowstone_flow::jobs::{
    JobOp, MOST_ATTEMPTS, MOST_IN_BATCH, NewJob, USUAL_ATTEMPTS, batch_value, job_value,
};
use flowstone_flow::natives::{pause_millis, poll};
use flowstone_flow::ports::{BATCH_KEY, JOB_KEY, JobBatch, JobQuery, JobRow, StoreError, StoreOp};
use flowstone_flow::step::{
    Effect, Field, FieldType, LocalFuture, OnTimeout, Operation, Operations, Outcome, Step,
    StepContext, StepError, StepSpec, WaitSpec,
};
use flowstone_flow::{duration, ids::RunId};
use flowstone_lang::value::Value;

use crate::fields::Fields;
use crate::json::items;
use crate::kv::{encoded, max_value};
use crate::operation::choose;
use crate::wait;

/// The `:job` step.
pub struct Job;

const SPEC: StepSpec = StepSpec {
    kind: "job",
    operations: Some(OPERATIONS),
    aliases: &[],
    doc: "Passes work to external workers, and waits for it.\n\n\
        `:submit` puts a job into the queue together with the run's journal entry: exactly once. A worker claims it with \
        `flowstone jobs claim`, reports progress, and completes or fails it; a worker that stops reporting loses the job to \
        another one. `:await` suspends the run until the job has ended, and returns it with its `:status`.",
    fields: FIELDS,
    examples: &[
        "(flow/step :job :resize {:op :submit :job-type \"image\" :payload {:uri uri :width 800}})",
        "(flow/step :job :resized {:op :await :job-id (:job-id job) :timeout \"2h\"})",
        "(flow/step :job :pages {:op :submit-batch :job-type \"page\" :jobs [{:payload {:n 1}} {:payload {:n 2}}]})",
    ],
    effect: Effect::OwnStore,
};

/// Milliseconds, or text such as `"10s"`.
const MILLIS: FieldType = FieldType::Either(&[FieldType::Number, FieldType::Duration]);
const ATTEMPTS: FieldType = FieldType::IntIn(1, 1_000_000);

const FIELDS: &[Field] = &[
    Field::optional(
        "backoff",
        poll::BACKOFF,
        "The growth of the pauses of `:interval`, as in `flow/poll`. Only has an effect with `:max-attempts`.",
    ),
    Field::optional("batch-id", FieldType::Name, "The id of a batch of jobs."),
    Field::optional(
        "include-jobs?",
        FieldType::Bool,
        "Whether `:get-batch` returns the jobs too, under `:jobs`.",
    ),
    Field::optional(
        "interval",
        MILLIS,
        "The pause between two polls, of which `:max-attempts` are counted. Default 5 s. The run is woken when the job ends, \
         not at the next poll.",
    ),
    Field::optional("job-id", FieldType::Name, "The id of a job."),
    Field::optional(
        "job-type",
        FieldType::Name,
        "The type by which workers claim jobs: up to 128 characters.",
    ),
    Field::optional(
        "jobs",
        FieldType::List(&FieldType::Keys(JOB)),
        "The jobs of a batch, at most 1000. Missing keys are taken from the step.",
    ),
    Field::optional(
        "limit",
        FieldType::IntIn(1, 1_000),
        "Maximum number of jobs that `:get-batch` returns. Default 100.",
    ),
    Field::optional(
        "max-attempts",
        ATTEMPTS,
        "For `:submit`: maximum number of claims of the job, up to 100; default 3. For `:await`: number of polls after which it stops \
         waiting.",
    ),
    Field::optional(
        "metadata",
        FieldType::Map,
        "Data that workers and listings show in addition to the payload.",
    ),
    Field::required(
        "op",
        FieldType::Name,
        "What to do: `:submit :submit-batch :get :get-batch :await :await-batch`.",
    )
    .also(&["operation"]),
    Field::optional("payload", FieldType::Any, "The data for the worker."),
    Field::optional(
        "priority",
        FieldType::Int,
        "Jobs with a higher priority are claimed first. Default 0.",
    ),
    Field::optional(
        "timeout",
        FieldType::Duration,
        "For `:submit`: maximum time until the end of the job; then it is `:timed_out`. For `:await`: how long to wait, \
         default 24 h; then the step fails, and the job stays as it is.",
    ),
];

/// The fields of one job of a batch.
const JOB: &[Field] = &[
    Field::optional("job-type", FieldType::Name, "As `:job-type` of the step."),
    Field::optional("max-attempts", ATTEMPTS, "As `:max-attempts` of the step."),
    Field::optional("metadata", FieldType::Map, "As `:metadata` of the step."),
    Field::optional("payload", FieldType::Any, "The data for the worker."),
    Field::optional("priority", FieldType::Int, "As `:priority` of the step."),
];

const JOB_SHAPE: &str = "[:map [:job-id :string] [:job-type :string] [:status [:enum :queued :claimed :succeeded :no_changes \
    :failed :cancelled :timed_out]] [:payload :any] [:attempt :int] [:max-attempts :int] \
    [:created-at inst?] [:batch-id {:optional true} :string] [:metadata {:optional true} :map] \
    [:worker {:optional true} :string] [:progress {:optional true} :any] [:result {:optional true} :any] \
    [:error {:optional true} :map] [:ended-at {:optional true} inst?]]";
const BATCH_SHAPE: &str = "[:map [:batch-id :string] [:status [:enum :running :completed :failed]] [:total :int] \
    [:counts :map] [:jobs {:optional true} [:vector :map]]]";

const OPERATIONS: Operations = Operations {
    key: "op",
    code: CONFIG,
    all: &[
        Operation {
            name: "await",
            doc: "Suspends the run until a job has ended, and returns the job.",
            needs: &["job-id"],
            takes: &["backoff", "interval", "max-attempts", "timeout"],
            gives: JOB_SHAPE,
            effect: Effect::Pure,
            for_agents: false,
        },
        Operation {
            name: "await-batch",
            doc: "Suspends the run until all jobs of a batch have ended, and returns the batch.",
            needs: &["batch-id"],
            takes: &["backoff", "interval", "max-attempts", "timeout"],
            gives: BATCH_SHAPE,
            effect: Effect::Pure,
            for_agents: false,
        },
        Operation {
            name: "get",
            doc: "Returns the current state of a job.",
            needs: &["job-id"],
            takes: &[],
            gives: JOB_SHAPE,
            effect: Effect::Read,
            for_agents: false,
        },
        Operation {
            name: "get-batch",
            doc: "Returns the current state of a batch: the number of its jobs in each status.",
            needs: &["batch-id"],
            takes: &["include-jobs?", "limit"],
            gives: BATCH_SHAPE,
            effect: Effect::Read,
            for_agents: false,
        },
        Operation {
            name: "submit",
            doc: "Puts a job into the queue, and returns it without waiting.",
            needs: &["job-type"],
            takes: &["max-attempts", "metadata", "payload", "priority", "timeout"],
            gives: JOB_SHAPE,
            effect: Effect::OwnStore,
            for_agents: false,
        },
        Operation {
            name: "submit-batch",
            doc: "Puts several jobs into the queue, all or none, and returns their ids.",
            needs: &["jobs"],
            takes: &[
                "job-type",
                "max-attempts",
                "metadata",
                "priority",
                "timeout",
            ],
            gives: BATCH_SHAPE,
            effect: Effect::OwnStore,
            for_agents: false,
        },
    ],
};

/// The code of an invalid config.
const CONFIG: &str = "E0748";
/// The code of a job or batch that does not exist.
const MISSING: &str = "E0749";
const LONGEST_TYPE: usize = 128;
const USUAL_INTERVAL: Duration = Duration::from_secs(5);
/// Maximum number of pauses that are counted; later ones exceed the longest duration.
const MOST_PAUSES: i64 = 100_000;

impl Step for Job {
    fn spec(&self) -> &'static StepSpec {
        &SPEC
    }

    fn run<'a>(
        &'a self,
        cx: &'a StepContext,
        config: Value,
    ) -> LocalFuture<'a, Result<Outcome, StepError>> {
        Box::pin(async move {
            let fields = Fields::new(&config);
            match choose(&SPEC, fields)?.name {
                "submit" => submit(cx, fields).map(|op| Outcome::Commit(StoreOp::Job(op))),
                "submit-batch" => {
                    submit_batch(cx, fields).map(|op| Outcome::Commit(StoreOp::Job(op)))
                }
                "get" => {
                    let job = find(cx, fields).await?;
                    Ok(Outcome::Value(job_value(&job)))
                }
                "get-batch" => get_batch(cx, fields).await.map(Outcome::Value),
                "await" => {
                    let job = find(cx, fields).await?;
                    waiting(cx, fields, format!("{JOB_KEY}{}", job.id))
                }
                _ => {
                    let batch = find_batch(cx, fields).await?;
                    waiting(cx, fields, format!("{BATCH_KEY}{}", batch.id))
                }
            }
        })
    }
}

fn wrong(message: impl Into<String>) -> StepError {
    StepError::config(CONFIG, message)
}

fn new_id(cx: &StepContext, prefix: char) -> String {
    format!("{prefix}{}", RunId::new(cx.now_ms(), cx.random()))
}

fn submit(cx: &StepContext, fields: Fields<'_>) -> Result<JobOp, StepError> {
    let key = cx.idempotency_key().to_owned();
    let job = new_job(cx, (fields, fields), key)?;
    let mut op = JobOp {
        run: cx.run_id().clone(),
        path: cx.path().to_string(),
        batch: None,
        jobs: vec![job],
        answer: String::new(),
    };
    let submitted = op.rows(cx.now_ms()).next().as_ref().map(job_value);
    op.answer = encoded(&submitted.unwrap_or(Value::Nil))?;
    Ok(op)
}

fn submit_batch(cx: &StepContext, fields: Fields<'_>) -> Result<JobOp, StepError> {
    let given = fields.get("jobs").and_then(items).unwrap_or_default();
    if given.is_empty() || given.len() > MOST_IN_BATCH {
        let message = format!(
            "`:jobs` of a batch holds 1 to {MOST_IN_BATCH} jobs, not {}",
            given.len()
        );
        return Err(wrong(message));
    }
    let mut jobs = Vec::new();
    for (idx, job) in given.iter().enumerate() {
        let at = format!(":jobs [{idx}]");
        let own = Fields::nested(&at, job)?;
        let key = format!("{}/{idx}", cx.idempotency_key());
        jobs.push(new_job(cx, (own, fields), key)?);
    }
    let batch = new_id(cx, 'b');
    let ids = jobs.iter().map(|job| {
        Value::map([
            (Value::keyword("job-id"), Value::from(job.id.as_str())),
            (Value::keyword("job-type"), Value::from(job.kind.as_str())),
            (Value::keyword("status"), Value::keyword("queued")),
        ])
    });
    let count = jobs.len() as u64;
    let counted = JobBatch {
        id: batch.clone(),
        counts: vec![(flowstone_flow::ports::JobStatus::Queued, count)],
    };
    let answer = with_jobs(&batch_value(&counted), ids.collect());
    Ok(JobOp {
        run: cx.run_id().clone(),
        path: cx.path().to_string(),
        batch: Some(batch),
        jobs,
        answer: encoded(&answer)?,
    })
}

/// Reads a job. Missing fields are taken from the step.
fn new_job(
    cx: &StepContext,
    (own, step): (Fields<'_>, Fields<'_>),
    idempotency_key: String,
) -> Result<NewJob, StepError> {
    let kind = match own.name("job-type")? {
        Some(kind) => Some(kind),
        None => step.name("job-type")?,
    };
    let kind = kind.ok_or_else(|| {
        wrong("a job needs a `:job-type`").hint("give it at the step, or at each of `:jobs`")
    })?;
    if kind.is_empty() || kind.chars().count() > LONGEST_TYPE {
        let message = format!("`:job-type` has 1 to {LONGEST_TYPE} characters");
        return Err(wrong(message));
    }
    let attempts = match own.count("max-attempts", 1, MOST_ATTEMPTS as usize)? {
        Some(attempts) => Some(attempts),
        None => step.count("max-attempts", 1, MOST_ATTEMPTS as usize)?,
    };
    let priority = match own.int("priority", i64::MIN, i64::MAX)? {
        Some(priority) => Some(priority),
        None => step.int("priority", i64::MIN, i64::MAX)?,
    };
    let metadata = match own.map("metadata")? {
        Some(metadata) => Some(metadata),
        None => step.map("metadata")?,
    };
    let timeout = step.duration("timeout")?.map(duration::millis);
    Ok(NewJob {
        id: new_id(cx, 'j'),
        kind: kind.to_string(),
        payload: bounded(cx, "payload", own.get("payload").unwrap_or(&Value::Nil))?,
        metadata: metadata
            .map(|metadata| bounded(cx, "metadata", metadata))
            .transpose()?,
        priority: priority.unwrap_or(0),
        max_attempts: attempts
            .and_then(|attempts| u32::try_from(attempts).ok())
            .unwrap_or(USUAL_ATTEMPTS),
        idempotency_key,
        deadline_ms: timeout.map(|timeout| cx.now_ms().saturating_add(timeout)),
    })
}

/// Returns the stored form of a value that is not too large.
fn bounded(cx: &StepContext, key: &str, value: &Value) -> Result<String, StepError> {
    let text = encoded(value)?;
    let most = max_value(cx);
    match text.len() <= most {
        true => Ok(text),
        false => Err(wrong(format!(
            "`:{key}` of a job has {} bytes, but at most {most} are allowed",
            text.len()
        ))
        .hint("keep large data in a file, table or blob, and pass a reference")),
    }
}

fn missing(what: &str, id: &str) -> StepError {
    StepError::new(MISSING, "not-found", format!("there is no {what} `{id}`"))
}

async fn find(cx: &StepContext, fields: Fields<'_>) -> Result<JobRow, StepError> {
    let id = fields.name("job-id")?.unwrap_or_default();
    let jobs = &cx.stores()?.jobs;
    jobs.expire(cx.now_ms()).await?;
    let job = jobs.find(&id).await?;
    job.ok_or_else(|| missing("job", &id))
}

async fn find_batch(cx: &StepContext, fields: Fields<'_>) -> Result<JobBatch, StepError> {
    let id = fields.name("batch-id")?.unwrap_or_default();
    let jobs = &cx.stores()?.jobs;
    jobs.expire(cx.now_ms()).await?;
    let batch = jobs.batch(&id).await?;
    batch.ok_or_else(|| missing("batch", &id))
}

async fn get_batch(cx: &StepContext, fields: Fields<'_>) -> Result<Value, StepError> {
    let batch = find_batch(cx, fields).await?;
    let limit = fields.count("limit", 1, 1_000)?.unwrap_or(100);
    let value = batch_value(&batch);
    if !fields.bool("include-jobs?")?.unwrap_or(false) {
        return Ok(value);
    }
    let query = JobQuery {
        batch: Some(batch.id),
        limit,
        ..JobQuery::default()
    };
    let jobs: Result<Vec<JobRow>, StoreError> = cx.stores()?.jobs.list(query).await;
    // Jobs are returned in the order in which they were submitted.
    let jobs = jobs?.iter().rev().map(job_value).collect();
    Ok(with_jobs(&value, jobs))
}

fn with_jobs(batch: &Value, jobs: Vec<Value>) -> Value {
    let entries = batch.as_map().into_iter().flat_map(|map| map.iter());
    let entries = entries.map(|(key, value)| (key.clone(), value.clone()));
    Value::map(entries.chain([(Value::keyword("jobs"), Value::vector(jobs))]))
}

/// Returns the wait for the end that is reported under a key.
fn waiting(cx: &StepContext, fields: Fields<'_>, key: String) -> Result<Outcome, StepError> {
    let timeout = duration::millis(wait::timeout(cx.settings(), fields)?);
    let looks = looking(fields)?.unwrap_or(i64::MAX);
    Ok(Outcome::Suspend(Box::new(WaitSpec {
        deadline_ms: Some(cx.now_ms().saturating_add(timeout.min(looks).max(1))),
        on_timeout: OnTimeout::Fail,
        validation: Value::Nil,
        details: Value::map([]),
        event: None,
        webhook: None,
        key: Some(key),
    })))
}

/// Returns the duration of `:max-attempts` polls in milliseconds, with the pauses of `:interval` and `:backoff` between
/// them.
fn looking(fields: Fields<'_>) -> Result<Option<i64>, StepError> {
    let interval = match fields.get("interval") {
        None => USUAL_INTERVAL,
        Some(given) => duration::of_millis_value(given)
            .ok_or_else(|| wrong("`:interval` is milliseconds or a duration such as \"5s\""))?,
    };
    let interval = Value::Int(duration::millis(interval));
    let policy = match fields.map("backoff")? {
        None => interval,
        Some(backoff) => {
            let entries = backoff.as_map().into_iter().flat_map(|map| map.iter());
            let entries = entries.map(|(key, value)| (key.clone(), value.clone()));
            let base = backoff.get("base").cloned().unwrap_or(interval);
            Value::map(entries.chain([(Value::keyword("base"), base)]))
        }
    };
    let Some(attempts) = fields.int("max-attempts", 1, 1_000_000)? else {
        return Ok(None);
    };
    let mut all = 0_i64;
    for attempt in 1..attempts.min(MOST_PAUSES) {
        let pause = pause_millis(&policy, attempt)
            .map_err(|error| wrong(error.display_text().to_owned()))?;
        all = all.saturating_add(pause);
    }
    Ok(Some(all))
}
