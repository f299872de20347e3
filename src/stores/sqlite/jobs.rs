//! Jobs as rows. The rules are [`flowstone_model::rules::jobs`].
//!
//! The queue of a type, due jobs, and the open jobs of a run or batch each have an index of their own, so that finished
//! jobs cost nothing.

use flowstone_model::ids::RunId;
use flowstone_model::ports::{
    Durability, Event, JobAnswer, JobBatch, JobCall, JobClaim, JobLease, JobQuery, JobReach,
    JobReport, JobRow, JobStatus, Jobs, PortFuture, StoreError,
};
use flowstone_model::rules::jobs::{self as rules, JobRows};
use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension as _, Row, params, params_from_iter};

use super::Sqlite;
use super::failure::{failed, rejected};
use super::feed;
use super::queue::{Sql, execute};
use super::writer::News;

/// How many queued jobs are read at once to find those that a worker reaches.
const PAGE: usize = 200;

/// The table of this part.
pub(super) const SCHEMA: &str = "
CREATE TABLE job (
    num INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    batch TEXT,
    run INTEGER NOT NULL,
    path TEXT NOT NULL,
    type TEXT NOT NULL,
    status TEXT NOT NULL,
    payload TEXT NOT NULL,
    metadata TEXT,
    priority INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    max_attempts INTEGER NOT NULL,
    idempotency_key TEXT NOT NULL,
    created_ms INTEGER NOT NULL,
    updated_ms INTEGER NOT NULL,
    ended_ms INTEGER,
    deadline_ms INTEGER,
    due_ms INTEGER,
    token TEXT,
    lease_until_ms INTEGER,
    lease_ms INTEGER,
    worker TEXT,
    progress TEXT,
    result TEXT,
    error TEXT,
    cancel_ms INTEGER,
    last_call TEXT
);
CREATE INDEX job_queue ON job (type, priority DESC, num) WHERE status = 'queued';
CREATE INDEX job_due ON job (due_ms) WHERE due_ms IS NOT NULL;
CREATE INDEX job_run ON job (run);
CREATE INDEX job_run_open ON job (run) WHERE ended_ms IS NULL;
CREATE INDEX job_batch ON job (batch, status) WHERE batch IS NOT NULL;
CREATE INDEX job_batch_open ON job (batch) WHERE batch IS NOT NULL AND ended_ms IS NULL;
CREATE INDEX job_status ON job (status, num);
";

const COLUMNS: &str = "job.id, job.batch, run.id, run.flow, job.path, job.type, job.status, job.payload, job.metadata, \
                       job.priority, job.attempt, job.max_attempts, job.idempotency_key, job.created_ms, \
                       job.updated_ms, job.ended_ms, job.deadline_ms, job.token, job.lease_until_ms, job.lease_ms, \
                       job.worker, job.progress, job.result, job.error, job.cancel_ms, job.last_call, job.num";

impl Jobs for Sqlite {
    fn claim(&self, claim: JobClaim) -> PortFuture<'_, Vec<JobRow>> {
        Box::pin(async move {
            // Workers ask repeatedly, and checking costs no commit.
            if !self.writer.is_unsettled() && !self.read(|db| may_claim(db, &claim)).await? {
                return Ok(Vec::new());
            }
            let claiming = move |db: &Connection| claim_in(db, &claim);
            // A claim does not let a run continue. Readers of feeds are woken by each commit.
            self.writer
                .submit_as(Durability::Full, News::None, claiming)
                .await
        })
    }

    fn call(&self, calls: Vec<JobCall>, now_ms: i64) -> PortFuture<'_, Vec<JobAnswer>> {
        let is_end = |call: &JobCall| !matches!(call.report, JobReport::Progress { .. });
        let (durability, news) = match calls.iter().any(is_end) {
            true => (Durability::Full, News::Some),
            false => (Durability::Relaxed, News::None),
        };
        self.writer
            .submit_as(durability, news, move |db| call_in(db, &calls, now_ms))
    }

    fn expire(&self, now_ms: i64) -> PortFuture<'_, usize> {
        Box::pin(async move {
            let next_ms = self.read(next_ms).await?;
            if next_ms.is_none_or(|next_ms| next_ms > now_ms) {
                return Ok(0);
            }
            self.writer
                .submit(move |db| rules::expire(&mut Sql::new(db), now_ms))
                .await
        })
    }

    fn find(&self, id: &str) -> PortFuture<'_, Option<JobRow>> {
        let id = id.to_owned();
        self.read_settled(move |db| find(db, &id))
    }

    fn list(&self, query: JobQuery) -> PortFuture<'_, Vec<JobRow>> {
        self.read_settled(move |db| list(db, &query))
    }

    fn batch(&self, id: &str) -> PortFuture<'_, Option<JobBatch>> {
        let id = id.to_owned();
        self.read_settled(move |db| batch(db, &id))
    }
}

fn claim_in(db: &Connection, claim: &JobClaim) -> Result<Vec<JobRow>, StoreError> {
    rules::claim(&mut Sql::new(db), claim)
}

fn call_in(db: &Connection, calls: &[JobCall], now_ms: i64) -> Result<Vec<JobAnswer>, StoreError> {
    let calls = calls.iter();
    calls
        .map(|call| rules::call(&mut Sql::new(db), call, now_ms))
        .collect()
}

/// Tells whether a claim would change anything: a job of its types is queued, or a job is due.
fn may_claim(db: &Connection, claim: &JobClaim) -> Result<bool, StoreError> {
    if next_ms(db)?.is_some_and(|due_ms| due_ms <= claim.now_ms) {
        return Ok(true);
    }
    let mut sql = db
        .prepare_cached(
            "SELECT EXISTS (SELECT 1 FROM job INDEXED BY job_queue WHERE status = 'queued' AND type = ?1)",
        )
        .map_err(failed)?;
    for kind in &claim.types {
        if sql.query_row([kind], |row| row.get(0)).map_err(failed)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Returns when time changes the next job.
pub(super) fn next_ms(db: &Connection) -> Result<Option<i64>, StoreError> {
    db.prepare_cached("SELECT min(due_ms) FROM job INDEXED BY job_due WHERE due_ms IS NOT NULL")
        .and_then(|mut sql| sql.query_row([], |row| row.get(0)))
        .map_err(failed)
}

/// Tells whether time has changed a job.
pub(super) fn has_due(db: &Connection, now_ms: i64) -> Result<bool, StoreError> {
    Ok(next_ms(db)?.is_some_and(|due_ms| due_ms <= now_ms))
}

fn find(db: &Connection, id: &str) -> Result<Option<JobRow>, StoreError> {
    let found = select(db, "job.id = ?", [Value::Text(id.to_owned())])?;
    Ok(found.into_iter().next().map(|(_, job)| job))
}

fn list(db: &Connection, query: &JobQuery) -> Result<Vec<JobRow>, StoreError> {
    let mut sql = "1".to_owned();
    let mut values = Vec::new();
    let mut add = |condition: &str, value: Option<Value>| {
        if let Some(value) = value {
            sql += &format!(" AND {condition}");
            values.push(value);
        }
    };
    let text = |text: &Option<String>| text.clone().map(Value::Text);
    add("job.type = ?", text(&query.kind));
    let status = query.status.map(|status| status.name().to_owned());
    add("job.status = ?", status.map(Value::Text));
    add("job.batch = ?", text(&query.batch));
    let run = query.run.as_ref().map(ToString::to_string);
    add("run.id = ?", run.map(Value::Text));
    if let Some(prefix) = &query.id_prefix {
        add("job.id >= ?", Some(Value::Text(prefix.clone())));
        let end = format!("{prefix}\u{10ffff}");
        add("job.id < ?", Some(Value::Text(end)));
    }
    if let Some(after) = &query.after {
        let num: Option<i64> = db
            .prepare_cached("SELECT num FROM job WHERE id = ?1")
            .and_then(|mut sql| sql.query_row([after], |row| row.get(0)).optional())
            .map_err(failed)?;
        let Some(num) = num else {
            let message = format!("there is no job `{after}`");
            return Err(rejected("E0536", "not-found", message));
        };
        add("job.num < ?", Some(Value::Integer(num)));
    }
    sql += " ORDER BY job.num DESC";
    if query.limit > 0 {
        sql += &format!(" LIMIT {}", query.limit);
    }
    let found = select(db, &sql, values)?;
    Ok(found.into_iter().map(|(_, job)| job).collect())
}

fn batch(db: &Connection, id: &str) -> Result<Option<JobBatch>, StoreError> {
    Sql::new(db).batch(id)
}

/// Removes the finished jobs of a run.
pub(super) fn forget(db: &Connection, run: i64) -> Result<(), StoreError> {
    execute(
        db,
        "DELETE FROM job WHERE run = ?1 AND ended_ms IS NOT NULL",
        [run],
    )
}

/// Removes all jobs of a run.
pub(super) fn forget_all(db: &Connection, run: i64) -> Result<(), StoreError> {
    execute(db, "DELETE FROM job WHERE run = ?1", [run])
}

/// Returns jobs with their numbers.
fn select(
    db: &Connection,
    condition: &str,
    values: impl IntoIterator<Item = Value>,
) -> Result<Vec<(i64, JobRow)>, StoreError> {
    let sql = format!("SELECT {COLUMNS} FROM job JOIN run ON run.num = job.run WHERE {condition}");
    let mut statement = db.prepare_cached(&sql).map_err(failed)?;
    let rows = statement
        .query_map(params_from_iter(values), |row| {
            Ok((row.get(26)?, job_row(row)?))
        })
        .map_err(failed)?;
    rows.collect::<rusqlite::Result<Vec<_>>>().map_err(failed)
}

fn job_row(row: &Row<'_>) -> rusqlite::Result<JobRow> {
    let status: String = row.get(6)?;
    let token: Option<String> = row.get(17)?;
    Ok(JobRow {
        id: row.get(0)?,
        batch: row.get(1)?,
        run: RunId::from_text(row.get::<_, String>(2)?),
        flow: row.get(3)?,
        path: row.get(4)?,
        kind: row.get(5)?,
        status: JobStatus::from_name(&status).unwrap_or(JobStatus::Failed),
        payload: row.get(7)?,
        metadata: row.get(8)?,
        priority: row.get(9)?,
        attempt: row.get(10)?,
        max_attempts: row.get(11)?,
        idempotency_key: row.get(12)?,
        created_ms: row.get(13)?,
        updated_ms: row.get(14)?,
        ended_ms: row.get(15)?,
        deadline_ms: row.get(16)?,
        lease: match token {
            Some(token) => Some(JobLease {
                token,
                until_ms: row.get(18)?,
                length_ms: row.get(19)?,
            }),
            None => None,
        },
        worker: row.get(20)?,
        progress: row.get(21)?,
        result: row.get(22)?,
        error: row.get(23)?,
        cancel_ms: row.get(24)?,
        last_call: row.get(25)?,
    })
}

impl JobRows for Sql<'_> {
    fn add_job(&mut self, job: &JobRow) -> Result<(), StoreError> {
        self.db
            .prepare_cached(
                "INSERT INTO job (id, batch, run, path, type, status, payload, metadata, priority, attempt, max_attempts,
                                  idempotency_key, created_ms, updated_ms, deadline_ms, due_ms)
                 VALUES (?1, ?2, (SELECT num FROM run WHERE id = ?3), ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?13,
                         ?14, ?15)",
            )
            .and_then(|mut sql| {
                sql.execute(params![
                    job.id,
                    job.batch,
                    job.run.as_str(),
                    job.path,
                    job.kind,
                    job.status.name(),
                    job.payload,
                    job.metadata,
                    job.priority,
                    job.attempt,
                    job.max_attempts,
                    job.idempotency_key,
                    job.created_ms,
                    job.deadline_ms,
                    rules::due_ms(job)
                ])
            })
            .map_err(failed)?;
        Ok(())
    }

    fn job(&mut self, id: &str) -> Result<Option<JobRow>, StoreError> {
        find(self.db, id)
    }

    fn write_job(&mut self, job: &JobRow) -> Result<(), StoreError> {
        let lease = job.lease.as_ref();
        self.db
            .prepare_cached(
                "UPDATE job SET status = ?2, attempt = ?3, updated_ms = ?4, ended_ms = ?5, due_ms = ?6, token = ?7,
                                lease_until_ms = ?8, lease_ms = ?9, worker = ?10, progress = ?11, result = ?12,
                                error = ?13, cancel_ms = ?14, last_call = ?15
                 WHERE id = ?1",
            )
            .and_then(|mut sql| {
                sql.execute(params![
                    job.id,
                    job.status.name(),
                    job.attempt,
                    job.updated_ms,
                    job.ended_ms,
                    rules::due_ms(job),
                    lease.map(|lease| &lease.token),
                    lease.map(|lease| lease.until_ms),
                    lease.map(|lease| lease.length_ms),
                    job.worker,
                    job.progress,
                    job.result,
                    job.error,
                    job.cancel_ms,
                    job.last_call
                ])
            })
            .map_err(failed)?;
        Ok(())
    }

    fn queued_jobs(
        &mut self,
        kind: &str,
        reach: Option<&JobReach>,
        most: usize,
    ) -> Result<Vec<(i64, JobRow)>, StoreError> {
        let page = |length: usize, start: usize| {
            select(
                self.db,
                "job.status = 'queued' AND job.type = ? ORDER BY job.priority DESC, job.num LIMIT ? OFFSET ?",
                [Value::Text(kind.to_owned()), limit(length), limit(start)],
            )
        };
        let Some(reach) = reach else {
            return page(most, 0);
        };
        let (mut found, mut start) = (Vec::new(), 0);
        loop {
            let jobs = page(PAGE, start)?;
            let is_last = jobs.len() < PAGE;
            start += jobs.len();
            found.extend(jobs.into_iter().filter(|(_, job)| reach.takes(&job.flow)));
            if is_last || found.len() >= most {
                found.truncate(most);
                return Ok(found);
            }
        }
    }

    fn due_jobs(&mut self, now_ms: i64, most: usize) -> Result<Vec<JobRow>, StoreError> {
        let found = select(
            self.db,
            "job.due_ms IS NOT NULL AND job.due_ms <= ? ORDER BY job.due_ms LIMIT ?",
            [Value::Integer(now_ms), limit(most)],
        )?;
        Ok(found.into_iter().map(|(_, job)| job).collect())
    }

    fn open_jobs(&mut self, run: &RunId) -> Result<Vec<JobRow>, StoreError> {
        let found = select(
            self.db,
            "job.ended_ms IS NULL AND job.run = (SELECT num FROM run WHERE id = ?) ORDER BY job.num",
            [Value::Text(run.to_string())],
        )?;
        Ok(found.into_iter().map(|(_, job)| job).collect())
    }

    fn batch(&mut self, id: &str) -> Result<Option<JobBatch>, StoreError> {
        let mut sql = self
            .db
            .prepare_cached("SELECT status, count(*) FROM job WHERE batch = ?1 GROUP BY status")
            .map_err(failed)?;
        let rows = sql
            .query_map([id], |row| {
                Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)?))
            })
            .map_err(failed)?;
        let mut counts = Vec::new();
        for row in rows {
            let (status, count) = row.map_err(failed)?;
            let status = JobStatus::from_name(&status).unwrap_or(JobStatus::Failed);
            counts.push((status, count.unsigned_abs()));
        }
        counts.sort_unstable();
        Ok((!counts.is_empty()).then(|| JobBatch {
            id: id.to_owned(),
            counts,
        }))
    }

    fn is_batch_open(&mut self, id: &str) -> Result<bool, StoreError> {
        self.db
            .prepare_cached(
                "SELECT EXISTS (SELECT 1 FROM job INDEXED BY job_batch_open
                                WHERE batch IS NOT NULL AND ended_ms IS NULL AND batch = ?1)",
            )
            .and_then(|mut sql| sql.query_row([id], |row| row.get(0)))
            .map_err(failed)
    }

    fn note_in_run(&mut self, run: &RunId, event: Event) -> Result<(), StoreError> {
        let num: Option<i64> = self
            .db
            .prepare_cached("SELECT num FROM run WHERE id = ?1 AND ended_ms IS NULL")
            .and_then(|mut sql| sql.query_row([run.as_str()], |row| row.get(0)).optional())
            .map_err(failed)?;
        num.map_or(Ok(()), |num| feed::add(self.db, num, &event))
    }
}

fn limit(most: usize) -> Value {
    Value::Integer(i64::try_from(most).unwrap_or(i64::MAX))
}
