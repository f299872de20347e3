//! Lists of runs: found by an index and read without large values.
//!
//! If statuses or a flow are given, each status is queried separately: then an index returns the rows in order, and
//! only the first few are read, however many there are.

use flowstone_model::ids::RunId;
use flowstone_model::ports::{RunOrder, RunQuery, RunStatus, RunSummary, StoreError};
use rusqlite::types::Value as Sql;
use rusqlite::{Connection, OptionalExtension as _, Row, params_from_iter};

use super::failure::{failed, rejected};
use super::owner::{Alive, Owner};
use super::runs;

const COLUMNS: &str = "num, id, external_id, flow, status, wait_reason, due_ms, lease_owner, held, \
                       cancel IS NOT NULL, created_ms, updated_ms, ended_ms, invocation, key, priority, started_by, \
                       origin, pass, pruned_ms, parent, root, depth, parent_close, lease_epoch > 0, \
                       quarantine, version, target";
/// The columns in which a text is searched for.
const TEXTS: [&str; 7] = [
    "id",
    "external_id",
    "flow",
    "key",
    "input",
    "result",
    "error",
];

/// Returns the runs that a query selects.
pub(super) fn list(
    db: &Connection,
    owner: &Owner,
    query: &RunQuery,
) -> Result<Vec<RunSummary>, StoreError> {
    let alive = Alive::new(owner);
    let cursor = match &query.after {
        Some(run) => Some(cursor(db, run, query.sort)?),
        None => None,
    };
    let parts = parts(query);
    let is_merged = parts.len() > 1;
    let mut found = Vec::new();
    for part in parts {
        found.extend(one_list(db, &alive, query, part, cursor)?);
    }
    if is_merged {
        match query.sort {
            RunOrder::Oldest => found.sort_by_key(|(num, run)| (run.created_ms, *num)),
            RunOrder::Newest => {
                found.sort_by_key(|(num, run)| std::cmp::Reverse((run.created_ms, *num)));
            }
            RunOrder::Changed => {
                found.sort_by_key(|(num, run)| std::cmp::Reverse((run.updated_ms, *num)));
            }
        }
    }
    if query.limit > 0 {
        found.truncate(query.limit);
    }
    Ok(found.into_iter().map(|(_, run)| run).collect())
}

/// Runs that one index returns in order.
#[derive(Clone, Copy)]
enum Part {
    All,
    Of(RunStatus),
    /// Runs in status `running` that no process executes.
    Interrupted,
}

/// Returns the lists that together contain the runs of a query. No run is in two of them.
fn parts(query: &RunQuery) -> Vec<Part> {
    if !query.interrupted && query.statuses.is_empty() {
        let is_one = query.flow.is_none() || query.sort == RunOrder::Changed;
        let each = || {
            RunStatus::NAMES
                .iter()
                .map(|(status, _)| Part::Of(*status))
                .collect()
        };
        return if is_one { vec![Part::All] } else { each() };
    }
    let mut statuses = query.statuses.clone();
    statuses.sort_by_key(|status| status.name());
    statuses.dedup();
    let is_apart = query.interrupted && !statuses.contains(&RunStatus::Running);
    let parts = statuses.into_iter().map(Part::Of);
    parts.chain(is_apart.then_some(Part::Interrupted)).collect()
}

/// Returns the living processes that execute runs.
fn executors(db: &Connection, alive: &Alive<'_>) -> Result<Vec<String>, StoreError> {
    let sql =
        "SELECT DISTINCT lease_owner FROM run WHERE status = 'running' AND lease_owner IS NOT NULL";
    let mut statement = db.prepare_cached(sql).map_err(failed)?;
    let owners = statement.query_map([], |row| row.get(0)).map_err(failed)?;
    let owners = owners.collect::<rusqlite::Result<Vec<String>>>();
    let mut owners = owners.map_err(failed)?;
    owners.retain(|owner| alive.is_alive(owner));
    Ok(owners)
}

/// Returns the position of a run in an order.
fn cursor(db: &Connection, run: &RunId, sort: RunOrder) -> Result<(i64, i64), StoreError> {
    let column = column(sort);
    db.prepare_cached(&format!("SELECT {column}, num FROM run WHERE id = ?1"))
        .and_then(|mut sql| {
            sql.query_row([run.as_str()], |row| Ok((row.get(0)?, row.get(1)?)))
                .optional()
        })
        .map_err(failed)?
        .ok_or_else(|| rejected("E0502", "not-found", format!("there is no run `{run}`")))
}

fn column(sort: RunOrder) -> &'static str {
    match sort {
        RunOrder::Newest | RunOrder::Oldest => "created_ms",
        RunOrder::Changed => "updated_ms",
    }
}

/// Conditions in SQL, and the values of their placeholders.
struct Conditions {
    sql: String,
    values: Vec<Sql>,
}

impl Conditions {
    fn add<V: Into<Sql>>(&mut self, condition: &str, values: impl IntoIterator<Item = V>) {
        self.sql.push_str(" AND ");
        self.sql.push_str(condition);
        self.values.extend(values.into_iter().map(Into::into));
    }
}

fn one_list(
    db: &Connection,
    alive: &Alive<'_>,
    query: &RunQuery,
    part: Part,
    cursor: Option<(i64, i64)>,
) -> Result<Vec<(i64, RunSummary)>, StoreError> {
    let mut conditions = Conditions {
        sql: format!("SELECT {COLUMNS} FROM run WHERE 1"),
        values: Vec::new(),
    };
    match part {
        Part::All => {}
        Part::Of(status) => conditions.add("status = ?", [status.name().to_owned()]),
        Part::Interrupted => {
            let owners = executors(db, alive)?;
            let marks = vec!["?"; owners.len()].join(", ");
            let free = format!("(lease_owner IS NULL OR lease_owner NOT IN ({marks}))");
            conditions.add(
                &format!("status = 'running' AND held = 0 AND lease_epoch > 0 AND {free}"),
                owners,
            );
        }
    }
    restrict(&mut conditions, query);
    let (column, direction, sign) = match query.sort {
        RunOrder::Newest => ("created_ms", "DESC", "<"),
        RunOrder::Oldest => ("created_ms", "ASC", ">"),
        RunOrder::Changed => ("updated_ms", "DESC", "<"),
    };
    if let Some((at, num)) = cursor {
        conditions.add(&format!("({column}, num) {sign} (?, ?)"), [at, num]);
    }
    conditions.sql += &format!(" ORDER BY {column} {direction}, num {direction}");
    if query.limit > 0 {
        conditions.sql += " LIMIT ?";
        let limit = i64::try_from(query.limit).unwrap_or(i64::MAX);
        conditions.values.push(limit.into());
    }
    let mut statement = db.prepare_cached(&conditions.sql).map_err(failed)?;
    let rows = statement
        .query_map(params_from_iter(conditions.values), |row| {
            summary(row, alive)
        })
        .map_err(failed)?;
    rows.collect::<rusqlite::Result<Vec<_>>>().map_err(failed)
}

/// Adds the conditions that do not depend on the status.
fn restrict(conditions: &mut Conditions, query: &RunQuery) {
    if let Some(flow) = &query.flow {
        conditions.add("flow = ?", [flow.clone()]);
    }
    if let Some(since) = query.since_ms {
        conditions.add("created_ms >= ?", [since]);
    }
    if let Some(until) = query.until_ms {
        conditions.add("created_ms < ?", [until]);
    }
    if let Some(ended) = query.ended_before_ms {
        conditions.add("ended_ms < ?", [ended]);
    }
    match query.pruned {
        Some(true) => conditions.add("pruned_ms IS NOT NULL", [0_i64; 0]),
        Some(false) => conditions.add("pruned_ms IS NULL", [0_i64; 0]),
        None => {}
    }
    if let Some(key) = &query.key {
        conditions.add("key IN (?, ?)", [key.clone(), crate::edn::text(key)]);
    }
    if let Some(started_by) = &query.started_by {
        let below = format!("{started_by}:");
        let values = [started_by.clone(), below.clone(), below];
        conditions.add(
            "(started_by = ? OR substr(started_by, 1, length(?)) = ?)",
            values,
        );
    }
    if let Some(parent) = &query.parent {
        conditions.add("parent = ?", [parent.to_string()]);
    }
    if let Some(text) = &query.text {
        let pattern = format!("%{}%", escaped(text));
        let each = TEXTS.map(|column| format!("{column} LIKE ? ESCAPE '\\'"));
        conditions.add(
            &format!("({})", each.join(" OR ")),
            vec![pattern; TEXTS.len()],
        );
    }
}

fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for char in text.chars() {
        if matches!(char, '%' | '_' | '\\') {
            out.push('\\');
        }
        out.push(char);
    }
    out
}

fn summary(row: &Row<'_>, alive: &Alive<'_>) -> rusqlite::Result<(i64, RunSummary)> {
    let status: String = row.get(4)?;
    let lease: Option<String> = row.get(7)?;
    let summary = RunSummary {
        id: RunId::from_text(row.get::<_, String>(1)?),
        external_id: row.get(2)?,
        flow: row.get(3)?,
        status: RunStatus::from_name(&status).unwrap_or(RunStatus::Failed),
        wait_reason: row.get(5)?,
        due_ms: row.get(6)?,
        executing: lease.is_some_and(|lease| alive.is_alive(&lease)),
        held: row.get(8)?,
        is_cancel_requested: row.get(9)?,
        created_ms: row.get(10)?,
        updated_ms: row.get(11)?,
        ended_ms: row.get(12)?,
        invocation: row.get(13)?,
        key: row.get(14)?,
        priority: row.get(15)?,
        started_by: row.get(16)?,
        origin: row.get::<_, Option<String>>(17)?.map(RunId::from_text),
        pass: row.get(18)?,
        pruned_ms: row.get(19)?,
        parent: runs::parent(row, 20)?,
        begun: row.get(24)?,
        quarantine: row.get(25)?,
        version: runs::version(row, 26)?,
    };
    Ok((row.get(0)?, summary))
}
