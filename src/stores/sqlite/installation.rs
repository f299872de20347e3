//! Installations as rows.

use std::collections::BTreeMap;

use flowstone_lang::value::Value;
use flowstone_model::codec;
use flowstone_model::ids::RunId;
use flowstone_model::installation::{InstallationName, InstallationRow};
use flowstone_model::ports::{Installations, PortFuture, StoreError};
use flowstone_model::registry::FlowName;
use rusqlite::{Connection, OptionalExtension as _, Row, params};

use super::Sqlite;
use super::failure::failed;

/// The tables of this part, and the workspaces of tokens.
pub(super) const SCHEMA: &str = "
CREATE TABLE installation (
    workspace TEXT NOT NULL,
    name TEXT NOT NULL,
    author TEXT NOT NULL,
    slug TEXT NOT NULL,
    version INTEGER NOT NULL,
    content TEXT NOT NULL,
    auto_upgrade INTEGER NOT NULL,
    readable INTEGER NOT NULL,
    configured INTEGER NOT NULL,
    bound TEXT NOT NULL,
    setup TEXT NOT NULL,
    accepted TEXT NOT NULL,
    max_tokens INTEGER,
    created_ms INTEGER NOT NULL,
    updated_ms INTEGER NOT NULL,
    changes INTEGER NOT NULL,
    PRIMARY KEY (workspace, name)
) WITHOUT ROWID;
CREATE TABLE installation_tokens (
    workspace TEXT NOT NULL,
    name TEXT NOT NULL,
    run TEXT NOT NULL,
    tokens INTEGER NOT NULL,
    PRIMARY KEY (workspace, name, run)
) WITHOUT ROWID;
ALTER TABLE token ADD COLUMN workspace TEXT;
";

const COLUMNS: &str = "workspace, name, author, slug, version, content, auto_upgrade, readable, configured, bound, setup, \
                       accepted, max_tokens, created_ms, updated_ms, changes";

impl Installations for Sqlite {
    fn install(&self, row: InstallationRow) -> PortFuture<'_, bool> {
        self.writer.submit(move |db| {
            let is_free = find(db, &row.at)?.is_none();
            if is_free {
                write(db, &row)?;
            }
            Ok(is_free)
        })
    }

    fn installation(&self, at: &InstallationName) -> PortFuture<'_, Option<InstallationRow>> {
        self.read(|db| find(db, at))
    }

    fn installations(&self, workspace: Option<&str>) -> PortFuture<'_, Vec<InstallationRow>> {
        self.read(|db| list(db, workspace))
    }

    fn change_installation(&self, row: InstallationRow) -> PortFuture<'_, bool> {
        self.writer.submit(move |db| {
            let found = find(db, &row.at)?;
            let is_next = found.is_some_and(|found| found.changes + 1 == row.changes);
            if is_next {
                write(db, &row)?;
            }
            Ok(is_next)
        })
    }

    fn note_tokens(&self, at: &InstallationName, run: &RunId, tokens: i64) -> PortFuture<'_, ()> {
        let (at, run) = (at.clone(), run.to_string());
        self.writer.submit(move |db| {
            db.prepare_cached(
                "INSERT INTO installation_tokens (workspace, name, run, tokens) VALUES (?1, ?2, ?3, ?4)
                 ON CONFLICT (workspace, name, run) DO UPDATE SET tokens = excluded.tokens",
            )
            .and_then(|mut sql| sql.execute(params![at.workspace, at.name, run, tokens]))
            .map(drop)
            .map_err(failed)
        })
    }

    fn tokens_used(&self, at: &InstallationName, except: &RunId) -> PortFuture<'_, i64> {
        let except = except.as_str();
        self.read(|db| {
            db.prepare_cached(
                "SELECT coalesce(sum(tokens), 0) FROM installation_tokens
                 WHERE workspace = ?1 AND name = ?2 AND run <> ?3",
            )
            .and_then(|mut sql| {
                sql.query_row(params![at.workspace, at.name, except], |row| row.get(0))
            })
            .map_err(failed)
        })
    }

    fn uninstall(&self, at: &InstallationName) -> PortFuture<'_, bool> {
        let at = at.clone();
        self.writer.submit(move |db| {
            db.prepare_cached("DELETE FROM installation WHERE workspace = ?1 AND name = ?2")
                .and_then(|mut sql| sql.execute([&at.workspace, &at.name]))
                .map(|changed| changed > 0)
                .map_err(failed)
        })
    }
}

fn write(db: &Connection, row: &InstallationRow) -> Result<(), StoreError> {
    db.prepare_cached(&format!(
        "INSERT OR REPLACE INTO installation ({COLUMNS})
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)"
    ))
    .and_then(|mut sql| {
        sql.execute(params![
            row.at.workspace,
            row.at.name,
            row.flow.workspace,
            row.flow.slug,
            row.version,
            row.content,
            row.auto_upgrade,
            row.is_readable,
            row.is_configured,
            bound_text(&row.set),
            row.setup,
            row.accepted,
            row.max_tokens,
            row.created_ms,
            row.updated_ms,
            row.changes
        ])
    })
    .map_err(failed)?;
    Ok(())
}

/// Writes connections by slot as a map of texts.
fn bound_text(set: &BTreeMap<String, String>) -> String {
    let text = |text: &String| Value::from(text.as_str());
    let map = Value::map(set.iter().map(|(slot, name)| (text(slot), text(name))));
    codec::canonical(&map).unwrap_or_default()
}

fn bound(text: &str) -> Option<BTreeMap<String, String>> {
    let value = codec::decode(text).ok()?;
    let entry = |(slot, name): (&Value, &Value)| {
        Some((slot.as_str()?.to_owned(), name.as_str()?.to_owned()))
    };
    value.as_map()?.iter().map(entry).collect()
}

fn find(db: &Connection, at: &InstallationName) -> Result<Option<InstallationRow>, StoreError> {
    let found = db
        .prepare_cached(&format!(
            "SELECT {COLUMNS} FROM installation WHERE workspace = ?1 AND name = ?2"
        ))
        .and_then(|mut sql| {
            sql.query_row([&at.workspace, &at.name], installation)
                .optional()
        })
        .map_err(failed)?;
    found.map(whole).transpose()
}

fn list(db: &Connection, workspace: Option<&str>) -> Result<Vec<InstallationRow>, StoreError> {
    let mut sql = db
        .prepare_cached(&format!(
            "SELECT {COLUMNS} FROM installation WHERE ?1 IS NULL OR workspace = ?1 ORDER BY workspace, name"
        ))
        .map_err(failed)?;
    let rows = sql.query_map([workspace], installation).map_err(failed)?;
    let rows = rows.collect::<rusqlite::Result<Vec<_>>>().map_err(failed)?;
    rows.into_iter().map(whole).collect()
}

/// A row, and the text of its bindings.
type Read = (InstallationRow, String);

fn whole((row, text): Read) -> Result<InstallationRow, StoreError> {
    let set = bound(&text).ok_or_else(|| StoreError::Damaged {
        path: "flowstone.db".to_owned(),
        detail: format!("the bindings of the installation {} cannot be read", row.at),
    })?;
    Ok(InstallationRow { set, ..row })
}

fn installation(row: &Row<'_>) -> rusqlite::Result<Read> {
    let read = InstallationRow {
        at: InstallationName {
            workspace: row.get(0)?,
            name: row.get(1)?,
        },
        flow: FlowName {
            workspace: row.get(2)?,
            slug: row.get(3)?,
        },
        version: row.get(4)?,
        content: row.get(5)?,
        auto_upgrade: row.get(6)?,
        is_readable: row.get(7)?,
        is_configured: row.get(8)?,
        set: BTreeMap::new(),
        setup: row.get(10)?,
        accepted: row.get(11)?,
        max_tokens: row.get(12)?,
        created_ms: row.get(13)?,
        updated_ms: row.get(14)?,
        changes: row.get(15)?,
    };
    Ok((read, row.get(9)?))
}
