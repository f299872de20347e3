//! Imported runs: their rows, journals and waits, added in one transaction.

use flowstone_model::ids::RunId;
use flowstone_model::ports::{
    Event, Import, ImportedRun, ImportedWait, RunRow, RunStatus, StoreError, WaitEnding,
};
use flowstone_model::sealed::join;
use rusqlite::{Connection, OptionalExtension as _, params};

use super::failure::{failed, rejected, with_hint};
use super::{feed, journal, resource, runs, waits};

/// Adds the runs. Must run in a transaction, which is rolled back when one of the ids is taken.
pub(super) fn import(db: &Connection, import: &Import) -> Result<(), StoreError> {
    for blob in &import.resources {
        resource::keep(db, blob, import.now_ms)?;
    }
    for run in &import.runs {
        add(db, run, import.now_ms)?;
    }
    Ok(())
}

fn add(db: &Connection, run: &ImportedRun, now_ms: i64) -> Result<(), StoreError> {
    let row = &run.row;
    if runs::number(db, &row.id)?.is_some() {
        let taken = rejected(
            "E0563",
            "conflict",
            format!("the run `{}` exists already", row.id),
        );
        let hint = "nothing was changed; `--new-id` gives the imported run another id";
        return Err(with_hint(taken, hint));
    }
    runs::keep_program(db, &run.program, now_ms)?;
    let number = insert(db, row)?;
    // A run without a journal has no feed.
    if row.pruned_ms.is_none() {
        let created = Event::created(row.status, &row.started_by, row.created_ms);
        feed::add(db, number, &created)?;
        journal::extend(db, number, &run.entries)?;
        let ended_ms = row.ended_ms.unwrap_or(row.updated_ms);
        feed::add_some(db, number, Event::ended(row.status, ended_ms))?;
    }
    for wait in &run.waits {
        add_wait(db, number, wait)?;
    }
    Ok(())
}

fn insert(db: &Connection, row: &RunRow) -> Result<i64, StoreError> {
    // An external id stays with the run that has it here.
    let external = match &row.external_id {
        Some(external) => db
            .prepare_cached("SELECT 1 FROM run WHERE external_id = ?1")
            .and_then(|mut sql| sql.query_row([external], |_| Ok(())).optional())
            .map_err(failed)?
            .is_none()
            .then_some(external),
        None => None,
    };
    let parent = row.parent.as_ref();
    // The runs that it was queued behind were not imported; like every run that is not over, it waits until someone
    // executes it.
    let status = match row.status {
        RunStatus::Queued => RunStatus::Running,
        status => status,
    };
    db.prepare_cached(
        "INSERT INTO run (id, external_id, program, flow, status, wait_reason, due_ms, input, seed, result, error,
                          cancel, created_ms, updated_ms, invocation, key, priority, started_by, origin, parent,
                          root, depth, parent_close, pass, force, ended_ms, held, pruned_ms, deadline_ms,
                          bindings, trace, trace_id)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21,
                 ?22, ?23, ?24, ?25, ?26, ?27, ?28, ?29, ?30, ?31, flowstone_trace(?1, ?21, ?31))",
    )
    .and_then(|mut sql| {
        sql.execute(params![
            row.id.as_str(),
            external,
            row.program,
            row.flow,
            status.name(),
            row.wait_reason,
            row.due_ms,
            join(&row.input, row.sealed.as_deref()),
            row.seed.cast_signed(),
            row.result,
            row.error,
            row.cancel_requested,
            row.created_ms,
            row.updated_ms,
            row.invocation,
            row.key,
            row.priority,
            row.started_by,
            row.origin.as_ref().map(RunId::as_str),
            parent.map(|parent| parent.run.as_str()),
            parent.map(|parent| parent.root.as_str()),
            parent.map_or(0, |parent| parent.depth),
            parent.map(|parent| parent.close.name()),
            row.pass,
            row.force,
            row.ended_ms,
            row.held,
            row.pruned_ms,
            row.deadline_ms,
            row.bindings,
            row.trace.map(|trace| trace.to_string())
        ])
    })
    .map_err(failed)?;
    Ok(db.last_insert_rowid())
}

fn add_wait(db: &Connection, run: i64, wait: &ImportedWait) -> Result<(), StoreError> {
    let (wait, token) = (&wait.row, &wait.token);
    let event = wait.event.as_ref();
    db.prepare_cached(
        "INSERT INTO wait (id, run, path, key, token, state, deadline_ms, details, digest, payload, opened_ms,
                           ending, decided_by, decided_ms, event, event_key, event_path, webhook)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18)",
    )
    .and_then(|mut sql| {
        sql.execute(params![
            wait.id,
            run,
            wait.path,
            wait.key,
            token,
            waits::name(wait.state),
            wait.deadline_ms,
            wait.details,
            wait.digest,
            wait.payload,
            wait.opened_ms,
            wait.ending.map(WaitEnding::name),
            wait.decided_by,
            wait.decided_ms,
            event.map(|event| &event.name),
            event.and_then(|event| event.key.as_ref()),
            event.and_then(|event| event.path.as_ref()),
            wait.webhook
        ])
    })
    .map_err(failed)?;
    Ok(())
}
