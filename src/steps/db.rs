//! `:db`: one statement for PostgreSQL, MySQL or SQLite.
//!
//! Values reach a statement as parameters only: nothing is ever written into its text. It runs in a transaction of its
//! own, which may only read unless the flow says otherwise; the session of the database enforces that. One file a
//! database; what they share is plain data.

mod backend;
mod cell;
mod error;
mod exchange;
mod mysql;
mod postgres;
mod query;
mod remarks;
mod sql;
mod sqlite;
mod statement;
mod target;

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use flowstone_flow::diagnostic::Diagnostic;
use flowstone_flow::flow::Flow;
use flowstone_flow::permission::PlannedNeed;
use flowstone_flow::step::{
    Effect, Field, FieldType, LocalFuture, Outcome, Step, StepContext, StepError, StepSpec,
};
use flowstone_lang::value::Value;

use crate::fields::Fields;
use cell::Answer;
use error::DbError;
use query::{Limits, Query};
use target::Target;

/// The `:db` step.
pub struct Db;

const SPEC: StepSpec = StepSpec {
    kind: "db",
    operations: None,
    aliases: &[],
    doc: "Executes one SQL statement in PostgreSQL, MySQL or SQLite, and returns its rows as a vector of maps.\n\n\
        The values of `:params` take the places of `?` in the statement; text is never put into it. The statement may \
        only read, unless `:read-only` is false; it then returns `{:affected n :rows [...]}`. More rows or bytes than \
        allowed are an error, never a shorter answer. `:persist {:type :table ...}` stores the rows in a table.",
    fields: FIELDS,
    examples: &[
        "(flow/step :db :orders {:database :postgres :connection :shop :sql \"select id, total from orders where status = ? order by id\" :params [\"paid\"]})",
        "(flow/step :db :mark {:database :sqlite :connection :shop :read-only false :sql \"update orders set status = ? where id = ?\" :params [\"sent\" 7]})",
    ],
    effect: Effect::Read,
};

const FIELDS: &[Field] = &[
    Field::required(
        "connection",
        FieldType::Name,
        "The connection, whose `:base-url` is `postgres://host/database`, `mysql://host/database` or `sqlite:path`.",
    ),
    Field::optional(
        "data",
        FieldType::Map,
        "Variables of the `:template`. Each becomes a parameter.",
    ),
    Field::optional(
        "database",
        FieldType::Name,
        "`:postgres`, `:mysql` or `:sqlite`. Default: the `:backend` of the connection.",
    ),
    Field::optional(
        "max-bytes",
        FieldType::IntIn(1, 1 << 30),
        "Maximum size of the answer's values in bytes.",
    )
    .or("16777216"),
    Field::optional(
        "max-results",
        FieldType::IntIn(1, 1_000_000),
        "Maximum number of rows.",
    )
    .or("5000"),
    Field::optional(
        "params",
        FieldType::Items,
        "The values for the `?` of `:sql`, in their order.",
    ),
    Field::optional(
        "read-only",
        FieldType::Bool,
        "Whether the statement may only read.",
    )
    .or("true"),
    Field::optional(
        "sql",
        FieldType::Text,
        "The statement. `??` is the operator `?` of PostgreSQL.",
    ),
    Field::optional(
        "template",
        FieldType::Name,
        "A template of type `:db-query`, instead of `:sql`.",
    ),
];

/// Maximum time for a statement without `:timeout`.
const USUAL_TIME: Duration = Duration::from_secs(60);

impl Step for Db {
    fn spec(&self) -> &'static StepSpec {
        &SPEC
    }

    fn effect(&self, config: &Value) -> Effect {
        match config.get("read-only") {
            Some(Value::Bool(false)) => Effect::External,
            _ => Effect::Read,
        }
    }

    fn remarks(&self, flow: &Flow, config: &Value) -> Vec<(&'static str, Diagnostic)> {
        remarks::of(flow, config)
    }

    fn settings_remarks(
        &self,
        flow: &Flow,
        settings: &Value,
        config: &Value,
    ) -> Vec<(&'static str, Diagnostic)> {
        crate::connections::unknown_names(flow, settings, config)
    }

    fn needs(&self, flow: &Flow, settings: &Value, config: &Value) -> Vec<PlannedNeed> {
        target::needs(flow, settings, config)
    }

    fn run<'a>(
        &'a self,
        cx: &'a StepContext,
        config: Value,
    ) -> LocalFuture<'a, Result<Outcome, StepError>> {
        Box::pin(async move {
            let fields = Fields::new(&config);
            let target = Target::read(cx, fields)?;
            let statement = statement::read(cx, fields, target.backend())?;
            let query = Query {
                sql: statement.sql,
                params: statement.params,
                is_read_only: fields.bool("read-only")?.unwrap_or(true),
                limits: limits(cx, fields)?,
                is_sent: Arc::default(),
            };
            if query.is_read_only
                && let Some(why) = statement.writes
            {
                return Err(DbError::ReadOnly(why).into());
            }
            let answer = exchange::answer(cx, &target, &query).await?;
            Ok(Outcome::Value(value(answer, query.is_read_only)?))
        })
    }
}

fn limits(cx: &StepContext, fields: Fields<'_>) -> Result<Limits, StepError> {
    let bytes = fields.int("max-bytes", 1, 1 << 30)?.unwrap_or(16 << 20);
    Ok(Limits {
        rows: fields.count("max-results", 1, 1_000_000)?.unwrap_or(5000),
        bytes: bytes.unsigned_abs(),
        time: crate::http::request::timeout(cx, USUAL_TIME),
    })
}

/// Executes a statement at its database, within its time.
async fn execute(target: &Target, query: &Query) -> Result<Answer, DbError> {
    let place = target.place();
    let limit = query.limits.time;
    let late = || DbError::TimedOut {
        place: place.clone(),
        limit,
    };
    let result = match target {
        Target::Postgres(server) => {
            let answer = tokio::time::timeout(limit, postgres::execute(server, query)).await;
            answer.unwrap_or_else(|_| Err(late()))
        }
        Target::MySql(server) => {
            let answer = tokio::time::timeout(limit, mysql::execute(server, query)).await;
            answer.unwrap_or_else(|_| Err(late()))
        }
        // Its own deadline ends it, and the transaction with it.
        Target::Sqlite(file) => in_file(file, query).await,
    };
    result.map_err(|error| {
        let may_be_done = !query.is_read_only && query.is_sent.load(Ordering::Relaxed);
        match may_be_done && error.leaves_doubt() {
            true => DbError::InDoubt(Box::new(error)),
            false => error,
        }
    })
}

async fn in_file(file: &sqlite::File, query: &Query) -> Result<Answer, DbError> {
    /// Stops the statement if the step is dropped.
    struct Stop(Arc<AtomicBool>);
    impl Drop for Stop {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    let stop = Stop(Arc::default());
    let (file, query, flag) = (file.clone(), query.clone(), Arc::clone(&stop.0));
    let place = file.place.clone();
    let work = move || sqlite::execute(&file, &query, &flag);
    match tokio::task::spawn_blocking(work).await {
        Ok(answer) => answer,
        Err(error) => Err(DbError::Cut {
            place,
            cause: error.to_string(),
        }),
    }
}

/// Converts an answer to the value of the step.
fn value(answer: Answer, is_read_only: bool) -> Result<Value, DbError> {
    let mut names = HashSet::new();
    for (idx, name) in answer.columns.iter().enumerate() {
        if name.is_empty() {
            return Err(DbError::Unfit(format!("column {} has no name", idx + 1)));
        }
        if !names.insert(name) {
            return Err(DbError::Unfit(format!("two columns are named `{name}`")));
        }
    }
    let keys: Vec<Value> = answer
        .columns
        .iter()
        .map(|name| Value::keyword(name))
        .collect();
    let mut rows = Vec::with_capacity(answer.rows.len());
    for cells in answer.rows {
        let mut entries = Vec::with_capacity(keys.len());
        for (key, cell) in keys.iter().zip(cells) {
            entries.push((key.clone(), cell.into_value().map_err(DbError::Unfit)?));
        }
        rows.push(Value::map(entries));
    }
    let rows = Value::vector(rows);
    if is_read_only {
        return Ok(rows);
    }
    let affected = i64::try_from(answer.affected).unwrap_or(i64::MAX);
    let mut entries = vec![
        (Value::keyword("affected"), Value::Int(affected)),
        (Value::keyword("rows"), rows),
    ];
    if let Some(id) = answer.last_id {
        entries.push((Value::keyword("last-id"), Value::Int(id)));
    }
    Ok(Value::map(entries))
}
