//! The rows of runs, of their programs, and of their leases.

use flowstone_model::ids::RunId;
use flowstone_model::ports::{
    Adoption, Claim, ClaimBy, Event, FlowVersion, NewRun, Parent, ParentClose, Program, RunFilter,
    RunRow, RunStatus, RunUpdate, StoreError, StoredInput,
};
use flowstone_model::registry::{RunVersion, Target};
use flowstone_model::rules::lease::{self, Holder, LeaseRows as _};
use flowstone_model::rules::run_tree;
use flowstone_model::sealed::split;
use flowstone_model::trace::{TraceId, TraceOrigin};
use rusqlite::functions::FunctionFlags;
use rusqlite::types::Value as Sql;
use rusqlite::{Connection, OptionalExtension as _, Row, params, params_from_iter};

use super::failure::failed;
use super::feed;
use super::lease::Leases;
use super::owner::{Alive, Owner};
use super::queue::{Sql as Rows, execute};

/// The tables of this part.
pub(super) const SCHEMA: &str = "
CREATE TABLE program (
    hash TEXT PRIMARY KEY,
    source TEXT NOT NULL,
    engine_abi INTEGER NOT NULL,
    created_ms INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE run (
    num INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    external_id TEXT UNIQUE,
    program TEXT NOT NULL,
    flow TEXT NOT NULL,
    status TEXT NOT NULL,
    wait_reason TEXT,
    due_ms INTEGER,
    input TEXT NOT NULL,
    seed INTEGER NOT NULL,
    result TEXT,
    error TEXT,
    cancel TEXT,
    lease_owner TEXT,
    lease_epoch INTEGER NOT NULL DEFAULT 0,
    created_ms INTEGER NOT NULL,
    updated_ms INTEGER NOT NULL
);
CREATE INDEX run_status ON run (status);
";

/// The additions of format 2.
pub(super) const FORMAT_2: &str = "
ALTER TABLE run ADD COLUMN invocation TEXT;
ALTER TABLE run ADD COLUMN key TEXT;
ALTER TABLE run ADD COLUMN priority INTEGER NOT NULL DEFAULT 0;
ALTER TABLE run ADD COLUMN started_by TEXT NOT NULL DEFAULT 'manual';
ALTER TABLE run ADD COLUMN origin TEXT;
ALTER TABLE run ADD COLUMN parent TEXT;
ALTER TABLE run ADD COLUMN root TEXT;
ALTER TABLE run ADD COLUMN depth INTEGER NOT NULL DEFAULT 0;
ALTER TABLE run ADD COLUMN parent_close TEXT;
ALTER TABLE run ADD COLUMN pass INTEGER NOT NULL DEFAULT 0;
ALTER TABLE run ADD COLUMN force INTEGER NOT NULL DEFAULT 0;
ALTER TABLE run ADD COLUMN ended_ms INTEGER;
ALTER TABLE run ADD COLUMN deadline_ms INTEGER;
CREATE INDEX run_due ON run (due_ms) WHERE due_ms IS NOT NULL;
CREATE INDEX run_parent ON run (parent) WHERE parent IS NOT NULL;
ALTER TABLE run ADD COLUMN held INTEGER NOT NULL DEFAULT 0;
ALTER TABLE run ADD COLUMN pruned_ms INTEGER;
DROP INDEX run_status;
CREATE INDEX run_created ON run (created_ms);
CREATE INDEX run_status ON run (status, created_ms);
CREATE INDEX run_flow ON run (flow, status, created_ms);
";

/// The additions of format 4.
pub(super) const FORMAT_4: &str = "
ALTER TABLE run ADD COLUMN bindings TEXT;
";

/// The additions of format 5: the input that a run began with, if a later pass has another one.
pub(super) const FORMAT_5: &str = "
ALTER TABLE run ADD COLUMN first_input TEXT;
";

/// The additions of format 6. `crashes`: number of consecutive processes that ended while they executed the run, with
/// the same progress `crash_mark` each time. After the text of an input there may be its encrypted secrets.
pub(super) const FORMAT_6: &str = "
ALTER TABLE run ADD COLUMN crashes INTEGER NOT NULL DEFAULT 0;
ALTER TABLE run ADD COLUMN crash_mark INTEGER;
ALTER TABLE run ADD COLUMN quarantine TEXT;
";

/// The additions of format 11. `trace`: the relation of the run to the trace of another program.
pub(super) const FORMAT_11: &str = "
ALTER TABLE run ADD COLUMN trace TEXT;
";

/// The additions of format 12. `unwinding`: the run is being unwound, so a request to cancel it does not make it due.
pub(super) const FORMAT_12: &str = "
ALTER TABLE run ADD COLUMN unwinding INTEGER NOT NULL DEFAULT 0;
DROP INDEX run_cancel;
CREATE INDEX run_cancel ON run (num) WHERE cancel IS NOT NULL AND unwinding = 0 AND ended_ms IS NULL;
";

/// The additions of format 14: the version in the registry that the run was started with, and the pointer that named it.
pub(super) const FORMAT_14: &str = "
ALTER TABLE run ADD COLUMN version INTEGER;
ALTER TABLE run ADD COLUMN target TEXT;
";

/// The additions of format 16: the trace of the run, as `flowstone_trace` computes it.
pub(super) const FORMAT_16: &str = "
ALTER TABLE run ADD COLUMN trace_id TEXT;
UPDATE run SET trace_id = flowstone_trace(id, root, trace);
CREATE INDEX run_trace ON run (trace_id, num);
";

/// Prepares a connection for changes of runs: the trace of a run is computed in statements.
///
/// # Errors
/// When SQLite does not accept the function.
pub(super) fn prepare(db: &Connection) -> rusqlite::Result<()> {
    let flags = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC;
    db.create_scalar_function("flowstone_trace", 3, flags, |args| {
        let (id, root): (String, Option<String>) = (args.get(0)?, args.get(1)?);
        let named: Option<String> = args.get(2)?;
        let trace = match named.as_deref().and_then(TraceOrigin::parse) {
            Some(TraceOrigin::Parent(parent)) => parent.trace,
            Some(TraceOrigin::Link(_)) | None => {
                TraceId::of_root(&RunId::from_text(root.unwrap_or(id)))
            }
        };
        Ok(trace.to_string())
    })
}

pub(super) const COLUMNS: &str = "id, external_id, program, flow, status, wait_reason, due_ms, input, seed, result, error, \
                       cancel, lease_owner, created_ms, updated_ms, invocation, key, priority, started_by, origin, \
                       parent, root, depth, parent_close, pass, force, ended_ms, deadline_ms, held, pruned_ms, setback, \
                       bindings, lease_epoch > 0, quarantine, trace, unwinding, version, target";

pub(super) fn create(db: &Connection, owner: &Owner, run: &NewRun) -> Result<RunId, StoreError> {
    match by_external_id(db, run)? {
        Some(found) => Ok(found),
        None => insert(db, Some(owner), run, RunStatus::Running),
    }
}

/// Returns the run that has the external id of a new one.
pub(super) fn by_external_id(db: &Connection, run: &NewRun) -> Result<Option<RunId>, StoreError> {
    let Some(external) = &run.external_id else {
        return Ok(None);
    };
    db.prepare_cached("SELECT id FROM run WHERE external_id = ?1")
        .and_then(|mut sql| {
            sql.query_row([external], |row| {
                row.get::<_, String>(0).map(RunId::from_text)
            })
            .optional()
        })
        .map_err(failed)
}

/// Adds a run and its program.
pub(super) fn insert(
    db: &Connection,
    owner: Option<&Owner>,
    run: &NewRun,
    status: RunStatus,
) -> Result<RunId, StoreError> {
    let (program, parent) = (&run.program, run.parent.as_ref());
    keep_program(db, program, run.now_ms)?;
    db.prepare_cached(
        "INSERT INTO run (id, external_id, program, flow, status, input, seed, created_ms, updated_ms, invocation,
                          key, priority, started_by, origin, parent, root, depth, parent_close, deadline_ms,
                          lease_owner, bindings, trace, version, target, trace_id)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21,
                 ?22, ?23, flowstone_trace(?1, ?15, ?21))",
    )
    .and_then(|mut sql| {
        sql.execute(params![
            run.id.as_str(),
            run.external_id,
            program.hash,
            run.flow,
            status.name(),
            run.input,
            run.seed.cast_signed(),
            run.now_ms,
            run.invocation,
            run.key,
            run.priority,
            run.started_by,
            run.origin.as_ref().map(RunId::as_str),
            parent.map(|parent| parent.run.as_str()),
            parent.map(|parent| parent.root.as_str()),
            parent.map_or(0, |parent| parent.depth),
            parent.map(|parent| parent.close.name()),
            run.deadline_ms,
            owner.filter(|_| run.is_taken).map(Owner::id),
            run.bindings,
            run.trace.map(|trace| trace.to_string()),
            run.version.map(|version| version.number),
            run.version.and_then(|version| version.target).map(Target::name)
        ])
    })
    .map_err(failed)?;
    let created = Event::created(status, &run.started_by, run.now_ms);
    feed::add(db, db.last_insert_rowid(), &created)?;
    Ok(run.id.clone())
}

/// Stores the source of a flow, once.
pub(super) fn keep_program(
    db: &Connection,
    program: &Program,
    now_ms: i64,
) -> Result<(), StoreError> {
    db.prepare_cached(
        "INSERT OR IGNORE INTO program (hash, source, engine_abi, created_ms) VALUES (?1, ?2, ?3, ?4)",
    )
    .and_then(|mut sql| {
        sql.execute(params![
            program.hash,
            program.source,
            program.engine_abi,
            now_ms
        ])
    })
    .map_err(failed)?;
    Ok(())
}

/// Replaces the program of a run.
pub(super) fn adopt(db: &Connection, owner: &Owner, adoption: &Adoption) -> Result<(), StoreError> {
    let Adoption {
        run,
        seen,
        program,
        bindings,
        now_ms,
    } = adoption;
    let row = find(db, owner, run)?;
    let holder = Leases { db, owner }.holder(run)?.unwrap_or(Holder::Nobody);
    lease::check_adoption(run, row.as_ref(), &holder, seen)?;
    keep_program(db, program, *now_ms)?;
    db.prepare_cached(
        "UPDATE run SET program = ?2, bindings = ?4, lease_epoch = lease_epoch + 1, updated_ms = ?3, version = NULL,
             target = NULL
         WHERE id = ?1",
    )
    .and_then(|mut sql| sql.execute(params![run.as_str(), program.hash, now_ms, bindings]))
    .map_err(failed)?;
    Ok(())
}

/// Returns the number of a run, which represents it in other tables.
pub(super) fn number(db: &Connection, run: &RunId) -> Result<Option<i64>, StoreError> {
    db.prepare_cached("SELECT num FROM run WHERE id = ?1")
        .and_then(|mut sql| sql.query_row([run.as_str()], |row| row.get(0)).optional())
        .map_err(failed)
}

pub(super) fn find(
    db: &Connection,
    owner: &Owner,
    run: &RunId,
) -> Result<Option<RunRow>, StoreError> {
    db.prepare_cached(&format!("SELECT {COLUMNS} FROM run WHERE id = ?1"))
        .and_then(|mut sql| {
            let alive = Alive::new(owner);
            sql.query_row([run.as_str()], |row| run_row(row, &alive))
                .optional()
        })
        .map_err(failed)
}

pub(super) fn list(
    db: &Connection,
    owner: &Owner,
    filter: &RunFilter,
) -> Result<Vec<RunRow>, StoreError> {
    let mut sql = format!("SELECT {COLUMNS} FROM run WHERE 1");
    let mut values: Vec<Sql> = Vec::new();
    if !filter.statuses.is_empty() {
        let marks = vec!["?"; filter.statuses.len()].join(", ");
        sql += &format!(" AND status IN ({marks})");
        let names = filter
            .statuses
            .iter()
            .map(|status| status.name().to_owned());
        values.extend(names.map(Sql::Text));
    }
    if let Some(flow) = &filter.flow {
        sql += " AND flow = ?";
        values.push(Sql::Text(flow.clone()));
    }
    if let Some(prefix) = &filter.id_prefix {
        // Two conditions, so that each uses its index: no id contains this character.
        sql += " AND num IN (SELECT num FROM run WHERE id >= ? AND id < ? UNION ALL
                             SELECT num FROM run WHERE external_id = ?)";
        let end = format!("{prefix}\u{10ffff}");
        values.extend([prefix, &end, prefix].map(|text| Sql::Text(text.clone())));
    }
    if let Some(external) = &filter.external_id {
        sql += " AND external_id = ?";
        values.push(Sql::Text(external.clone()));
    }
    if let Some(due) = filter.due_before_ms {
        sql += " AND due_ms <= ?";
        values.push(Sql::Integer(due));
    }
    if let Some(parent) = &filter.parent {
        sql += " AND parent = ?";
        values.push(Sql::Text(parent.to_string()));
    }
    if let Some(trace) = &filter.trace {
        sql += " AND trace_id = ?";
        values.push(Sql::Text(trace.to_string()));
    }
    if let Some((program, input)) = &filter.begun_with {
        sql += " AND program = ? AND coalesce(first_input, input) = ?";
        values.extend([program, input].map(|text| Sql::Text(text.clone())));
    }
    sql += " ORDER BY num DESC";
    if filter.limit > 0 {
        sql += " LIMIT ?";
        values.push(Sql::Integer(
            i64::try_from(filter.limit).unwrap_or(i64::MAX),
        ));
    }
    let mut statement = db.prepare_cached(&sql).map_err(failed)?;
    let alive = Alive::new(owner);
    let rows = statement
        .query_map(params_from_iter(values), |row| run_row(row, &alive))
        .map_err(failed)?;
    rows.collect::<rusqlite::Result<Vec<_>>>().map_err(failed)
}

pub(super) fn run_row(row: &Row<'_>, owner: &Alive<'_>) -> rusqlite::Result<RunRow> {
    let status: String = row.get(4)?;
    let lease: Option<String> = row.get(12)?;
    let stored: String = row.get(7)?;
    Ok(RunRow {
        id: RunId::from_text(row.get::<_, String>(0)?),
        external_id: row.get(1)?,
        program: row.get(2)?,
        flow: row.get(3)?,
        // A status of a newer build cannot occur: it would have raised the format.
        status: RunStatus::from_name(&status).unwrap_or(RunStatus::Failed),
        wait_reason: row.get(5)?,
        due_ms: row.get(6)?,
        input: split(&stored).shown.to_owned(),
        sealed: split(&stored).sealed.map(str::to_owned),
        seed: row.get::<_, i64>(8)?.cast_unsigned(),
        result: row.get(9)?,
        error: row.get(10)?,
        cancel_requested: row.get(11)?,
        executing: lease.is_some_and(|lease| owner.is_alive(&lease)),
        created_ms: row.get(13)?,
        updated_ms: row.get(14)?,
        invocation: row.get(15)?,
        key: row.get(16)?,
        priority: row.get(17)?,
        started_by: row.get(18)?,
        origin: row.get::<_, Option<String>>(19)?.map(RunId::from_text),
        parent: parent(row, 20)?,
        pass: row.get(24)?,
        force: row.get(25)?,
        ended_ms: row.get(26)?,
        deadline_ms: row.get(27)?,
        held: row.get(28)?,
        pruned_ms: row.get(29)?,
        setback: row.get(30)?,
        bindings: row.get(31)?,
        begun: row.get(32)?,
        quarantine: row.get(33)?,
        // A run with an unreadable trace is still returned.
        trace: row
            .get::<_, Option<String>>(34)?
            .and_then(|text| TraceOrigin::parse(&text)),
        is_unwinding: row.get(35)?,
        version: version(row, 36)?,
    })
}

/// Reads the version of a run from two consecutive columns.
pub(super) fn version(row: &Row<'_>, at: usize) -> rusqlite::Result<Option<RunVersion>> {
    let number: Option<i64> = row.get(at)?;
    let target: Option<String> = row.get(at + 1)?;
    Ok(number.map(|number| RunVersion {
        number,
        target: target.as_deref().and_then(Target::named),
    }))
}

/// Reads the parent of a run from four consecutive columns.
pub(super) fn parent(row: &Row<'_>, at: usize) -> rusqlite::Result<Option<Parent>> {
    let (Some(run), Some(root)) = (
        row.get::<_, Option<String>>(at)?,
        row.get::<_, Option<String>>(at + 1)?,
    ) else {
        return Ok(None);
    };
    let close: Option<String> = row.get(at + 3)?;
    Ok(Some(Parent {
        run: RunId::from_text(run),
        root: RunId::from_text(root),
        depth: row.get(at + 2)?,
        close: close
            .and_then(|name| ParentClose::from_name(&name))
            .unwrap_or_default(),
    }))
}

pub(super) fn program(db: &Connection, hash: &str) -> Result<Option<Program>, StoreError> {
    db.prepare_cached("SELECT hash, source, engine_abi FROM program WHERE hash = ?1")
        .and_then(|mut sql| {
            sql.query_row([hash], |row| {
                Ok(Program {
                    hash: row.get(0)?,
                    source: row.get(1)?,
                    engine_abi: row.get(2)?,
                })
            })
            .optional()
        })
        .map_err(failed)
}

pub(super) fn versions(db: &Connection, flow: &str) -> Result<Vec<FlowVersion>, StoreError> {
    let mut sql = db
        .prepare_cached(
            "SELECT program, count(*), count(*) - count(ended_ms), min(created_ms), max(created_ms)
             FROM run WHERE flow = ?1 GROUP BY program ORDER BY max(num) DESC",
        )
        .map_err(failed)?;
    let rows = sql.query_map([flow], |row| {
        Ok(FlowVersion {
            program: row.get(0)?,
            runs: row.get::<_, i64>(1)?.cast_unsigned(),
            open: row.get::<_, i64>(2)?.cast_unsigned(),
            first_ms: row.get(3)?,
            last_ms: row.get(4)?,
        })
    });
    rows.and_then(Iterator::collect).map_err(failed)
}

pub(super) fn update(
    db: &Connection,
    run: i64,
    update: &RunUpdate,
    now_ms: i64,
) -> Result<(), StoreError> {
    db.prepare_cached(
        "UPDATE run SET status = ?2, wait_reason = ?3, due_ms = ?4, result = ?5, error = ?6, updated_ms = ?7,
                        ended_ms = ?8, lease_owner = iif(?8 IS NULL, lease_owner, NULL)
         WHERE num = ?1",
    )
    .and_then(|mut sql| {
        sql.execute(params![
            run,
            update.status.name(),
            update.wait_reason,
            update.due_ms,
            update.result,
            update.error,
            now_ms,
            update.status.is_final().then_some(now_ms)
        ])
    })
    .map_err(failed)?;
    match Event::ended(update.status, now_ms) {
        Some(event) => {
            feed::add(db, run, &event)?;
            run_tree::ended(&mut Rows::new(db), run, update.status, now_ms)
        }
        None => Ok(()),
    }
}

/// Records that a run is being unwound.
pub(super) fn unwind(db: &Connection, run: i64) -> Result<(), StoreError> {
    execute(db, "UPDATE run SET unwinding = 1 WHERE num = ?1", [run])
}

/// Writes the input and seed of a run's next pass, and returns the number of the pass.
pub(super) fn restart(
    db: &Connection,
    run: i64,
    input: &str,
    seed: u64,
    now_ms: i64,
) -> Result<i64, StoreError> {
    db.prepare_cached(
        "UPDATE run SET pass = pass + 1, first_input = coalesce(first_input, input), input = ?2, seed = ?3, status = ?4, wait_reason = NULL, due_ms = NULL,
                        updated_ms = ?5
         WHERE num = ?1 RETURNING pass",
    )
    .and_then(|mut sql| {
        let values = params![
            run,
            input,
            seed.cast_signed(),
            RunStatus::Running.name(),
            now_ms
        ];
        sql.query_row(values, |row| row.get(0))
    })
    .map_err(failed)
}

pub(super) fn claim(
    db: &Connection,
    (owner, crashes): (&Owner, u32),
    by: (&RunId, ClaimBy),
    now_ms: i64,
) -> Result<Claim, StoreError> {
    lease::claim(&mut Leases { db, owner }, by, crashes, now_ms)
}

pub(super) fn release(db: &Connection, run: &RunId, epoch: i64) -> Result<(), StoreError> {
    // A queued run wrote nothing under the lease, so it counts as not begun.
    let sql = "UPDATE run SET lease_owner = NULL, lease_epoch = lease_epoch - (status = 'queued')
               WHERE id = ?1 AND lease_epoch = ?2";
    db.prepare_cached(sql)
        .and_then(|mut sql| sql.execute(params![run.as_str(), epoch]))
        .map_err(failed)?;
    Ok(())
}

/// Returns stored inputs that have secrets.
pub(super) fn sealed(
    db: &Connection,
    after: Option<&RunId>,
    limit: usize,
) -> Result<Vec<StoredInput>, StoreError> {
    let after = match after {
        Some(run) => number(db, run)?.unwrap_or(i64::MAX),
        None => 0,
    };
    let mut sql = db
        .prepare_cached(
            "SELECT id, input, first_input FROM run
             WHERE num > ?1 AND (instr(input, '#flowstone/sealed ') > 0 OR instr(first_input, '#flowstone/sealed ') > 0)
             ORDER BY num LIMIT ?2",
        )
        .map_err(failed)?;
    let rows = sql.query_map(
        params![after, i64::try_from(limit).unwrap_or(i64::MAX)],
        |row| {
            Ok(StoredInput {
                run: RunId::from_text(row.get::<_, String>(0)?),
                input: row.get(1)?,
                first: row.get(2)?,
            })
        },
    );
    rows.map_err(failed)?
        .collect::<rusqlite::Result<Vec<_>>>()
        .map_err(failed)
}

/// Replaces stored inputs by others with the same text.
pub(super) fn reseal(
    db: &Connection,
    changes: &[(StoredInput, StoredInput)],
) -> Result<(), StoreError> {
    let mut sql = db
        .prepare_cached(
            "UPDATE run SET input = ?3, first_input = coalesce(?4, first_input)
             WHERE id = ?1 AND input = ?2",
        )
        .map_err(failed)?;
    for (seen, new) in changes {
        sql.execute(params![seen.run.as_str(), seen.input, new.input, new.first])
            .map_err(failed)?;
    }
    Ok(())
}
