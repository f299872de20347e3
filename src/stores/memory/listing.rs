//! Lists of runs from the rows in memory.

use flowstone_model::ports::{RunOrder, RunQuery, RunStatus, RunSummary, StoreError};

use super::Tx;
use super::runs::newest_first;
use super::state::Run;
use crate::failure::rejected;

/// Returns the runs that a query selects.
pub(super) fn list(tx: &Tx<'_>, query: &RunQuery) -> Result<Vec<RunSummary>, StoreError> {
    let at_ms = |run: &Run| match query.sort {
        RunOrder::Newest | RunOrder::Oldest => run.row.created_ms,
        RunOrder::Changed => run.row.updated_ms,
    };
    let after = match &query.after {
        None => None,
        Some(id) => match tx.state.number(id).zip(tx.state.run(id)) {
            Some((num, run)) => Some((at_ms(run), num)),
            None => {
                let message = format!("there is no run `{id}`");
                return Err(rejected("E0502", "not-found", message));
            }
        },
    };
    let is_alive = |run: &Run| {
        let lease = run.lease.as_deref();
        lease.is_some_and(|process| tx.session.is_alive(process))
    };
    let mut found: Vec<(i64, &Run)> = tx
        .state
        .runs
        .iter()
        .map(|(num, run)| (*num, run))
        .filter(|(_, run)| fits(run, is_alive(run), query))
        .filter(|(num, run)| {
            let place = (at_ms(run), *num);
            after.is_none_or(|after| match query.sort {
                RunOrder::Oldest => place > after,
                RunOrder::Newest | RunOrder::Changed => place < after,
            })
        })
        .collect();
    match query.sort {
        RunOrder::Oldest => found.sort_by_key(|(num, run)| (at_ms(run), *num)),
        RunOrder::Newest | RunOrder::Changed => {
            found.sort_by_key(|(num, run)| newest_first(*num, at_ms(run)));
        }
    }
    if query.limit > 0 {
        found.truncate(query.limit);
    }
    let runs = found.into_iter();
    Ok(runs.map(|(_, run)| summary(run, is_alive(run))).collect())
}

fn fits(run: &Run, is_alive: bool, query: &RunQuery) -> bool {
    let row = &run.row;
    let is_interrupted =
        row.status == RunStatus::Running && !row.held && run.epoch > 0 && !is_alive;
    let has_status = match query.statuses.is_empty() && !query.interrupted {
        true => true,
        false => query.statuses.contains(&row.status) || (query.interrupted && is_interrupted),
    };
    let started_by = |wanted: &String| {
        let rest = row.started_by.strip_prefix(&**wanted);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(':'))
    };
    let has_key = |key: &String| {
        let found = row.key.as_ref();
        found.is_some_and(|found| found == key || *found == crate::edn::text(key))
    };
    let parent = row.parent.as_ref();
    has_status
        && query.flow.as_ref().is_none_or(|flow| *flow == row.flow)
        && query.since_ms.is_none_or(|since| row.created_ms >= since)
        && query.until_ms.is_none_or(|until| row.created_ms < until)
        && query
            .ended_before_ms
            .is_none_or(|before| row.ended_ms.is_some_and(|ended| ended < before))
        && query
            .pruned
            .is_none_or(|pruned| row.pruned_ms.is_some() == pruned)
        && query.key.as_ref().is_none_or(has_key)
        && query.started_by.as_ref().is_none_or(started_by)
        && query
            .parent
            .as_ref()
            .is_none_or(|wanted| parent.is_some_and(|parent| parent.run == *wanted))
        && query.text.as_ref().is_none_or(|text| has_text(run, text))
}

fn has_text(run: &Run, text: &str) -> bool {
    let row = &run.row;
    let texts = [
        Some(row.id.as_str()),
        row.external_id.as_deref(),
        Some(&*row.flow),
        row.key.as_deref(),
        Some(&*row.input),
        row.result.as_deref(),
        row.error.as_deref(),
    ];
    let wanted = text.to_ascii_lowercase();
    let mut texts = texts.into_iter().flatten();
    texts.any(|text| text.to_ascii_lowercase().contains(&wanted))
}

fn summary(run: &Run, is_alive: bool) -> RunSummary {
    let row = run.row.clone();
    RunSummary {
        id: row.id,
        external_id: row.external_id,
        flow: row.flow,
        status: row.status,
        wait_reason: row.wait_reason,
        due_ms: row.due_ms,
        executing: is_alive,
        begun: run.epoch > 0,
        held: row.held,
        quarantine: row.quarantine,
        is_cancel_requested: row.cancel_requested.is_some(),
        created_ms: row.created_ms,
        updated_ms: row.updated_ms,
        ended_ms: row.ended_ms,
        invocation: row.invocation,
        key: row.key,
        priority: row.priority,
        started_by: row.started_by,
        origin: row.origin,
        parent: row.parent,
        pass: row.pass,
        pruned_ms: row.pruned_ms,
        version: row.version,
    }
}
