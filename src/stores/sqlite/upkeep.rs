//! Removes unreferenced rows, in small transactions.
//!
//! References are checked in the transaction that removes a row: all writes share one lock, so that no reference can be
//! added in the meantime. Files of blobs have a lock of their own for the same purpose.

mod changesets;
mod mentions;
mod resources;

use std::path::{Path, PathBuf};

use flowstone_model::ids::RunId;
use flowstone_model::ports::{Removed, RunStatus, StoreError, Sweep, SweepKind, Usage};
use rusqlite::{Connection, OptionalExtension as _, params, params_from_iter};

use super::Options;
use super::failure::failed;
use super::journal::{PLACE_BITS, number_range};
use super::marker::MarkerState;
use super::writer::Writer;
use super::{blob, feed, jobs, payload, resource, runs};

/// The indexes of this part, by which references to a row are found.
pub(super) const SCHEMA: &str = "
CREATE INDEX journal_blob ON journal (blob) WHERE blob IS NOT NULL;
CREATE INDEX run_program ON run (program);
";

/// Maximum number of rows that are removed in one transaction.
const ROWS: usize = 500;

/// The approximate size of a journal row.
const ENTRY_BYTES: &str = "octet_length(path) + octet_length(what) + octet_length(digest)
                           + coalesce(octet_length(request), 0) + coalesce(octet_length(payload), 0) + 40";

pub(super) fn usage(db: &Connection) -> Result<Usage, StoreError> {
    let number = |name: &str| {
        let number = db.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
        number.map_err(failed).map(unsigned)
    };
    let page = number("page_size")?;
    Ok(Usage {
        file_bytes: page * number("page_count")?,
        free_bytes: page * number("freelist_count")?,
    })
}

fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

pub(super) fn journal_usage(db: &Connection, run: &RunId) -> Result<Removed, StoreError> {
    let Some(num) = runs::number(db, run)? else {
        return Ok(Removed::default());
    };
    let (start, end) = number_range(num);
    db.prepare_cached(&format!(
        "SELECT coalesce(sum(kind <> 'event'), 0), coalesce(sum({ENTRY_BYTES}), 0) FROM journal WHERE id BETWEEN ?1 AND ?2"
    ))
    .and_then(|mut sql| sql.query_row([start, end], removed))
    .map_err(failed)
}

fn removed(row: &rusqlite::Row<'_>) -> rusqlite::Result<Removed> {
    Ok(Removed {
        count: unsigned(row.get(0)?),
        bytes: unsigned(row.get(1)?),
    })
}

/// Removes the journal of a run, a limited number of rows at a time.
pub(super) async fn prune(writer: &Writer, run: RunId, now_ms: i64) -> Result<Removed, StoreError> {
    let mut all = Removed::default();
    loop {
        let run = run.clone();
        let part = writer.submit(move |db| prune_part(db, &run, now_ms));
        let (part, rows) = part.await?;
        all += part;
        if rows < ROWS {
            return Ok(all);
        }
    }
}

/// Removes a part of a journal. Returns its entries, and the number of removed rows, events included.
fn prune_part(db: &Connection, run: &RunId, now_ms: i64) -> Result<(Removed, usize), StoreError> {
    let marks = finals();
    let num = db
        .prepare_cached(&format!(
            "UPDATE run SET pruned_ms = coalesce(pruned_ms, ?) WHERE id = ? AND status IN ({}) RETURNING num",
            vec!["?"; marks.len()].join(", ")
        ))
        .and_then(|mut sql| {
            let values = [now_ms.to_string(), run.to_string()];
            let values = values.into_iter().chain(marks.iter().map(ToString::to_string));
            sql.query_row(params_from_iter(values), |row| row.get::<_, i64>(0))
                .optional()
        })
        .map_err(failed)?;
    let Some(num) = num else {
        return Ok((Removed::default(), 0));
    };
    db.prepare_cached("DELETE FROM wait WHERE run = ?1")
        .and_then(|mut sql| sql.execute([num]))
        .map_err(failed)?;
    jobs::forget(db, num)?;
    let (start, end) = number_range(num);
    let mut sql = db
        .prepare_cached(&format!(
            "DELETE FROM journal WHERE id IN (SELECT id FROM journal WHERE id BETWEEN ?1 AND ?2 ORDER BY id LIMIT ?3)
             RETURNING kind <> 'event', {ENTRY_BYTES}"
        ))
        .map_err(failed)?;
    let mut count = 0;
    let rows = sql
        .query_map(params![start, end, ROWS as i64], removed)
        .map_err(failed)?;
    let all = add_up(rows.inspect(|_| count += 1))?;
    Ok((all, count))
}

fn add_up(rows: impl Iterator<Item = rusqlite::Result<Removed>>) -> Result<Removed, StoreError> {
    let mut all = Removed::default();
    for row in rows {
        all += row.map_err(failed)?;
    }
    Ok(all)
}

fn finals() -> Vec<&'static str> {
    RunStatus::NAMES
        .iter()
        .filter(|(status, _)| status.is_final())
        .map(|(_, name)| *name)
        .collect()
}

pub(super) fn forget(db: &Connection, run: &RunId) -> Result<bool, StoreError> {
    let gone: Option<i64> = db
        .prepare_cached(
            "DELETE FROM run WHERE id = ?1 AND pruned_ms IS NOT NULL
               AND NOT EXISTS (SELECT 1 FROM journal WHERE id > run.num << ?2 AND id < (run.num + 1) << ?2)
             RETURNING num",
        )
        .and_then(|mut sql| {
            sql.query_row(params![run.as_str(), PLACE_BITS], |row| row.get(0))
                .optional()
        })
        .map_err(failed)?;
    if let Some(num) = gone {
        jobs::forget_all(db, num)?;
    }
    Ok(gone.is_some())
}

/// Returns runs that were marked before a crash, and whose journal is partly there.
pub(super) fn half_pruned(db: &Connection) -> Result<Vec<RunId>, StoreError> {
    let mut sql = db
        .prepare_cached(
            "SELECT id FROM run WHERE pruned_ms IS NOT NULL
               AND EXISTS (SELECT 1 FROM journal WHERE journal.id > run.num << ?1 AND journal.id < (run.num + 1) << ?1)",
        )
        .map_err(failed)?;
    let rows = sql
        .query_map([PLACE_BITS], |row| row.get::<_, String>(0))
        .map_err(failed)?;
    rows.map(|id| Ok(RunId::from_text(id.map_err(failed)?)))
        .collect()
}

/// Counts what a sweep would remove, as far as it is in the database.
pub(super) fn count(db: &Connection, blobs: &Path, sweep: &Sweep) -> Result<Removed, StoreError> {
    match sweep.what {
        SweepKind::Changesets => {
            let found = changesets::unmentioned(db, blobs, sweep.older_than_ms)?;
            Ok(Removed {
                count: found.len() as u64,
                bytes: 0,
            })
        }
        SweepKind::Payloads => count_by(db, PAYLOADS),
        SweepKind::Programs => count_by(db, PROGRAMS),
        SweepKind::Resources => {
            let found = resources::unmentioned(db, sweep.older_than_ms)?;
            Ok(Removed {
                count: found.len() as u64,
                bytes: 0,
            })
        }
        SweepKind::Expired => Ok(Removed {
            count: resource::count_expired(db, sweep.older_than_ms)?,
            bytes: 0,
        }),
        SweepKind::Blobs => {
            let found = blob::unnamed(db, blobs, sweep.older_than_ms)?;
            Ok(Removed {
                count: found.len() as u64,
                bytes: found.iter().map(|(_, bytes)| bytes).sum(),
            })
        }
        SweepKind::Signals => count_signals(db, sweep.older_than_ms),
    }
}

/// A table whose unreferenced rows are removed: its name, key and size, and the query for a reference.
struct Orphans {
    table: &'static str,
    key: &'static str,
    size: &'static str,
    reference: &'static str,
}

const PAYLOADS: &Orphans = &Orphans {
    table: "payload",
    key: "hash",
    size: "octet_length(text) + coalesce(octet_length(parts), 0)",
    reference: "SELECT 1 FROM journal WHERE blob = payload.hash",
};
const PROGRAMS: &Orphans = &Orphans {
    table: "program",
    key: "hash",
    size: "octet_length(source)",
    reference: "SELECT 1 FROM run WHERE program = program.hash
                UNION ALL SELECT 1 FROM schedule WHERE schedule.program = program.hash",
};

fn count_by(db: &Connection, orphans: &Orphans) -> Result<Removed, StoreError> {
    let Orphans {
        table,
        size,
        reference,
        ..
    } = orphans;
    db.prepare_cached(&format!(
        "SELECT count(*), coalesce(sum({size}), 0) FROM {table} WHERE NOT EXISTS ({reference})"
    ))
    .and_then(|mut sql| sql.query_row([], removed))
    .map_err(failed)
}

/// Performs a sweep.
pub(super) async fn sweep(
    writer: &Writer,
    blobs: &Path,
    sweep: Sweep,
    now_ms: i64,
) -> Result<Removed, StoreError> {
    match sweep.what {
        SweepKind::Payloads => {
            let mut all = sweep_by(writer, PAYLOADS).await?;
            all.bytes += writer.submit(payload::sweep_pieces).await?.bytes;
            let mut last = Some(0);
            while let Some(after) = last {
                let removing = move |db: &Connection| feed::sweep(db, after, ROWS as i64);
                last = writer.submit(removing).await?;
            }
            Ok(all)
        }
        SweepKind::Programs => sweep_by(writer, PROGRAMS).await,
        SweepKind::Changesets => {
            let (before, folder) = (sweep.older_than_ms, blobs.to_owned());
            let looking = move |db: &Connection| changesets::unmentioned(db, &folder, before);
            let found = writer.submit(looking).await?;
            let mut all = Removed::default();
            for part in found.chunks(ROWS) {
                let part = part.to_vec();
                let times = (before, now_ms);
                let removing = move |db: &Connection| changesets::remove(db, &part, times);
                all += writer.submit(removing).await?;
            }
            Ok(all)
        }
        SweepKind::Expired => {
            let removing = move |db: &Connection| resource::expire(db, sweep.older_than_ms);
            let count = writer.submit(removing).await?;
            Ok(Removed { count, bytes: 0 })
        }
        SweepKind::Resources => {
            let found = writer
                .submit(move |db| resources::unmentioned(db, sweep.older_than_ms))
                .await?;
            let mut all = Removed::default();
            for part in found.chunks(ROWS) {
                let part = part.to_vec();
                let removing = move |db: &Connection| resources::remove(db, &part, now_ms);
                all.count += writer.submit(removing).await?;
            }
            Ok(all)
        }
        SweepKind::Blobs => {
            let before = sweep.older_than_ms;
            let folder = blobs.to_owned();
            let looking = move |db: &Connection| blob::unnamed(db, &folder, before);
            let found = writer.submit(looking).await?;
            let found: Vec<PathBuf> = found.into_iter().map(|(path, _)| path).collect();
            let mut all = Removed::default();
            for part in found.chunks(ROWS) {
                let (part, folder) = (part.to_vec(), blobs.to_owned());
                let removing = move |db: &Connection| blob::remove(db, &folder, &part, before);
                all += writer.submit(removing).await?;
            }
            Ok(all)
        }
        SweepKind::Signals => {
            let before = sweep.older_than_ms;
            let mut all = Removed::default();
            loop {
                let part = writer.submit(move |db| remove_signals(db, before)).await?;
                all.count += part;
                if part < ROWS as u64 {
                    return Ok(all);
                }
            }
        }
    }
}

/// Signals that are not needed any more. An open wait still shows the signals that it has refused.
const SIGNALS: &str = "state IN ('taken', 'refused') AND at_ms < ?1
    AND NOT EXISTS (SELECT 1 FROM wait WHERE wait.id = inbox.wait AND wait.state = 'open')";

fn count_signals(db: &Connection, before_ms: i64) -> Result<Removed, StoreError> {
    let counted = db
        .prepare_cached(&format!("SELECT count(*) FROM inbox WHERE {SIGNALS}"))
        .and_then(|mut sql| sql.query_row([before_ms], |row| row.get(0)));
    Ok(Removed {
        count: unsigned(counted.map_err(failed)?),
        bytes: 0,
    })
}

fn remove_signals(db: &Connection, before_ms: i64) -> Result<u64, StoreError> {
    db.prepare_cached(&format!(
        "DELETE FROM inbox WHERE num IN (SELECT num FROM inbox WHERE {SIGNALS} LIMIT ?2)"
    ))
    .and_then(|mut sql| sql.execute(params![before_ms, ROWS as i64]))
    .map(|count| count as u64)
    .map_err(failed)
}

async fn sweep_by(writer: &Writer, orphans: &'static Orphans) -> Result<Removed, StoreError> {
    let mut all = Removed::default();
    let mut last = String::new();
    loop {
        let after = last.clone();
        let (part, end) = writer
            .submit(move |db| sweep_part(db, orphans, &after))
            .await?;
        all += part;
        match end {
            Some(end) => last = end,
            None => return Ok(all),
        }
    }
}

/// Removes the unreferenced ones among the next rows, and returns the last row that was checked.
fn sweep_part(
    db: &Connection,
    orphans: &Orphans,
    after: &str,
) -> Result<(Removed, Option<String>), StoreError> {
    let Orphans {
        table,
        key,
        size,
        reference,
    } = orphans;
    let end: Option<String> = db
        .prepare_cached(&format!(
            "SELECT max({key}) FROM (SELECT {key} FROM {table} WHERE {key} > ?1 ORDER BY {key} LIMIT ?2)"
        ))
        .and_then(|mut sql| sql.query_row(params![after, ROWS as i64], |row| row.get(0)))
        .map_err(failed)?;
    let Some(end) = end else {
        return Ok((Removed::default(), None));
    };
    let mut sql = db
        .prepare_cached(&format!(
            "DELETE FROM {table} WHERE {key} > ?1 AND {key} <= ?2 AND NOT EXISTS ({reference}) RETURNING 1, {size}"
        ))
        .map_err(failed)?;
    let rows = sql.query_map([after, &end], removed).map_err(failed)?;
    Ok((add_up(rows)?, Some(end)))
}

/// Rewrites the file without its free space.
pub(super) fn compact(path: &Path, options: &Options) -> Result<(), StoreError> {
    let db = super::open::connect(path, options, MarkerState::Open)?;
    db.execute_batch("VACUUM").map_err(failed)
}
