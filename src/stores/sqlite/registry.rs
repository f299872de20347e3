//! Versions of flows as rows.
//!
//! Files and manifests are objects named by their SHA-256. An object is stored as its difference from a similar one where that
//! is smaller, so a version costs about what it changed. A chain of differences has a bounded length.

mod delta;

use flowstone_model::codec::digest_bytes;
use flowstone_model::ports::{PortFuture, Registry, RegistryAnswer, StoreError};
use flowstone_model::registry::{
    Added, FlowName, FlowRow, Manifest, Moved, NewRelease, NewVersion, ReleaseKind, ReleaseRow,
    Target, VersionFiles, VersionRow,
};
use flowstone_model::rules::registry as rules;
use flowstone_model::rules::registry::RegistryRows;
use rusqlite::{Connection, OptionalExtension as _, Row, params};

use super::Sqlite;
use super::failure::failed;

/// The tables of this part.
pub(super) const SCHEMA: &str = "
CREATE TABLE flow_registered (
    workspace TEXT NOT NULL,
    slug TEXT NOT NULL,
    head INTEGER NOT NULL,
    live INTEGER,
    created_ms INTEGER NOT NULL,
    updated_ms INTEGER NOT NULL,
    archived_ms INTEGER,
    PRIMARY KEY (workspace, slug)
) WITHOUT ROWID;
CREATE TABLE flow_version (
    workspace TEXT NOT NULL,
    slug TEXT NOT NULL,
    number INTEGER NOT NULL,
    revision TEXT NOT NULL,
    content TEXT NOT NULL,
    parent INTEGER,
    author TEXT NOT NULL,
    message TEXT NOT NULL,
    created_ms INTEGER NOT NULL,
    PRIMARY KEY (workspace, slug, number)
) WITHOUT ROWID;
CREATE TABLE flow_release (
    workspace TEXT NOT NULL,
    slug TEXT NOT NULL,
    seq INTEGER NOT NULL,
    kind TEXT NOT NULL,
    version INTEGER NOT NULL,
    before INTEGER,
    author TEXT NOT NULL,
    note TEXT NOT NULL,
    at_ms INTEGER NOT NULL,
    PRIMARY KEY (workspace, slug, seq)
) WITHOUT ROWID;
CREATE TABLE flow_checkout (
    workspace TEXT NOT NULL,
    slug TEXT NOT NULL,
    place TEXT NOT NULL,
    number INTEGER NOT NULL,
    PRIMARY KEY (workspace, slug, place)
) WITHOUT ROWID;
CREATE TABLE flow_object (
    num INTEGER PRIMARY KEY,
    hash TEXT NOT NULL UNIQUE,
    base INTEGER,
    depth INTEGER NOT NULL,
    bytes BLOB NOT NULL
);
";

/// Maximum number of differences between an object and one that is stored whole.
const MOST_DEPTH: i64 = 63;

impl Registry for Sqlite {
    fn add_version(&self, new: NewVersion) -> PortFuture<'_, RegistryAnswer<Added>> {
        self.writer
            .submit(move |db| rules::add_version(&mut Sql(db), &new))
    }

    fn move_live(&self, release: NewRelease) -> PortFuture<'_, RegistryAnswer<Moved>> {
        self.writer
            .submit(move |db| rules::move_live(&mut Sql(db), &release))
    }

    fn archive(
        &self,
        flow: &FlowName,
        archived_ms: Option<i64>,
    ) -> PortFuture<'_, RegistryAnswer<FlowRow>> {
        let flow = flow.clone();
        self.writer
            .submit(move |db| rules::archive(&mut Sql(db), &flow, archived_ms))
    }

    fn flow(&self, flow: &FlowName) -> PortFuture<'_, Option<FlowRow>> {
        self.read(|db| registered(db, flow))
    }

    fn flows(&self, workspace: &str) -> PortFuture<'_, Vec<FlowRow>> {
        self.read(|db| all_registered(db, workspace))
    }

    fn version(&self, flow: &FlowName, number: i64) -> PortFuture<'_, Option<VersionRow>> {
        self.read(|db| version(db, flow, number))
    }

    fn revision(&self, flow: &FlowName, revision: &str) -> PortFuture<'_, Option<VersionRow>> {
        self.read(|db| {
            db.prepare_cached(&format!(
                "SELECT {VERSION} FROM flow_version WHERE workspace = ?1 AND slug = ?2 AND revision = ?3"
            ))
            .and_then(|mut sql| {
                sql.query_row([&*flow.workspace, &*flow.slug, revision], version_row)
                    .optional()
            })
            .map_err(failed)
        })
    }

    fn versions(
        &self,
        flow: &FlowName,
        before: Option<i64>,
        limit: usize,
    ) -> PortFuture<'_, Vec<VersionRow>> {
        self.read(|db| versions(db, flow, before.unwrap_or(i64::MAX), limit))
    }

    fn as_of(
        &self,
        flow: &FlowName,
        target: Target,
        at_ms: i64,
    ) -> PortFuture<'_, Option<VersionRow>> {
        self.read(|db| as_of(db, flow, target, at_ms))
    }

    fn files(&self, content: &str) -> PortFuture<'_, Option<VersionFiles>> {
        self.read(|db| files(db, content))
    }

    fn releases(&self, flow: &FlowName, limit: usize) -> PortFuture<'_, Vec<ReleaseRow>> {
        self.read(|db| releases(db, flow, ("DESC", limit)))
    }

    fn version_at(&self, flow: &FlowName, place: &str) -> PortFuture<'_, Option<i64>> {
        self.read(|db| version_at(db, flow, place))
    }

    fn check_out(&self, flow: &FlowName, place: &str, number: i64) -> PortFuture<'_, ()> {
        let (flow, place) = (flow.clone(), place.to_owned());
        self.writer
            .submit(move |db| Sql(db).set_version_at(&flow, &place, number))
    }
}

/// The rows in a transaction.
struct Sql<'a>(&'a Connection);

impl RegistryRows for Sql<'_> {
    fn registered(&mut self, flow: &FlowName) -> Result<Option<FlowRow>, StoreError> {
        registered(self.0, flow)
    }

    fn write_registered(&mut self, row: &FlowRow) -> Result<(), StoreError> {
        self.0
            .prepare_cached(
                "INSERT INTO flow_registered (workspace, slug, head, live, created_ms, updated_ms, archived_ms)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
                 ON CONFLICT (workspace, slug) DO UPDATE SET
                     head = excluded.head, live = excluded.live, updated_ms = excluded.updated_ms,
                     archived_ms = excluded.archived_ms",
            )
            .and_then(|mut sql| {
                sql.execute(params![
                    row.name.workspace,
                    row.name.slug,
                    row.head,
                    row.live,
                    row.created_ms,
                    row.updated_ms,
                    row.archived_ms
                ])
            })
            .map_err(failed)?;
        Ok(())
    }

    fn version(&mut self, flow: &FlowName, number: i64) -> Result<Option<VersionRow>, StoreError> {
        version(self.0, flow, number)
    }

    fn write_version(&mut self, row: &VersionRow) -> Result<(), StoreError> {
        self.0
            .prepare_cached(
                "INSERT INTO flow_version (workspace, slug, number, revision, content, parent, author, message, created_ms)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
            )
            .and_then(|mut sql| {
                sql.execute(params![
                    row.flow.workspace,
                    row.flow.slug,
                    row.number,
                    row.revision,
                    row.content,
                    row.parent,
                    row.author,
                    row.message,
                    row.created_ms
                ])
            })
            .map_err(failed)?;
        Ok(())
    }

    fn write_files(
        &mut self,
        manifest: &Manifest,
        files: &VersionFiles,
        like: Option<&str>,
    ) -> Result<(), StoreError> {
        let similar = match like {
            Some(like) => manifest_of(self.0, like)?,
            None => None,
        };
        for (path, hash) in manifest.entries() {
            let base = similar.as_ref().and_then(|similar| similar.hash_of(path));
            let bytes = files.get(path).map(Vec::as_slice).unwrap_or_default();
            put(self.0, hash, bytes, base)?;
        }
        put(self.0, &manifest.digest(), manifest.text().as_bytes(), like)
    }

    fn release_log(&mut self, flow: &FlowName) -> Result<Vec<ReleaseRow>, StoreError> {
        releases(self.0, flow, ("ASC", usize::MAX))
    }

    fn write_release(&mut self, flow: &FlowName, row: &ReleaseRow) -> Result<(), StoreError> {
        self.0
            .prepare_cached(
                "INSERT INTO flow_release (workspace, slug, seq, kind, version, before, author, note, at_ms)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
            )
            .and_then(|mut sql| {
                sql.execute(params![
                    flow.workspace,
                    flow.slug,
                    row.seq,
                    row.kind.name(),
                    row.version,
                    row.before,
                    row.author,
                    row.note,
                    row.at_ms
                ])
            })
            .map_err(failed)?;
        Ok(())
    }

    fn version_at(&mut self, flow: &FlowName, place: &str) -> Result<Option<i64>, StoreError> {
        version_at(self.0, flow, place)
    }

    fn set_version_at(
        &mut self,
        flow: &FlowName,
        place: &str,
        number: i64,
    ) -> Result<(), StoreError> {
        self.0
            .prepare_cached(
                "INSERT INTO flow_checkout (workspace, slug, place, number) VALUES (?1, ?2, ?3, ?4)
                 ON CONFLICT (workspace, slug, place) DO UPDATE SET number = excluded.number",
            )
            .and_then(|mut sql| sql.execute(params![flow.workspace, flow.slug, place, number]))
            .map_err(failed)?;
        Ok(())
    }
}

const FLOW: &str = "workspace, slug, head, live, created_ms, updated_ms, archived_ms";

fn registered(db: &Connection, flow: &FlowName) -> Result<Option<FlowRow>, StoreError> {
    db.prepare_cached(&format!(
        "SELECT {FLOW} FROM flow_registered WHERE workspace = ?1 AND slug = ?2"
    ))
    .and_then(|mut sql| {
        sql.query_row([&flow.workspace, &flow.slug], flow_row)
            .optional()
    })
    .map_err(failed)
}

fn all_registered(db: &Connection, workspace: &str) -> Result<Vec<FlowRow>, StoreError> {
    let mut sql = db
        .prepare_cached(&format!(
            "SELECT {FLOW} FROM flow_registered WHERE workspace = ?1 ORDER BY slug"
        ))
        .map_err(failed)?;
    let rows = sql.query_map([workspace], flow_row).map_err(failed)?;
    rows.collect::<rusqlite::Result<Vec<_>>>().map_err(failed)
}

fn flow_row(row: &Row<'_>) -> rusqlite::Result<FlowRow> {
    Ok(FlowRow {
        name: FlowName {
            workspace: row.get(0)?,
            slug: row.get(1)?,
        },
        head: row.get(2)?,
        live: row.get(3)?,
        created_ms: row.get(4)?,
        updated_ms: row.get(5)?,
        archived_ms: row.get(6)?,
    })
}

const VERSION: &str =
    "workspace, slug, number, revision, content, parent, author, message, created_ms";

fn version(
    db: &Connection,
    flow: &FlowName,
    number: i64,
) -> Result<Option<VersionRow>, StoreError> {
    db.prepare_cached(&format!(
        "SELECT {VERSION} FROM flow_version WHERE workspace = ?1 AND slug = ?2 AND number = ?3"
    ))
    .and_then(|mut sql| {
        sql.query_row(params![flow.workspace, flow.slug, number], version_row)
            .optional()
    })
    .map_err(failed)
}

fn versions(
    db: &Connection,
    flow: &FlowName,
    before: i64,
    limit: usize,
) -> Result<Vec<VersionRow>, StoreError> {
    let mut sql = db
        .prepare_cached(&format!(
            "SELECT {VERSION} FROM flow_version WHERE workspace = ?1 AND slug = ?2 AND number < ?3
             ORDER BY number DESC LIMIT ?4"
        ))
        .map_err(failed)?;
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let rows = sql
        .query_map(
            params![flow.workspace, flow.slug, before, limit],
            version_row,
        )
        .map_err(failed)?;
    rows.collect::<rusqlite::Result<Vec<_>>>().map_err(failed)
}

fn as_of(
    db: &Connection,
    flow: &FlowName,
    target: Target,
    at_ms: i64,
) -> Result<Option<VersionRow>, StoreError> {
    let sql = match target {
        Target::Draft => {
            "SELECT number FROM flow_version WHERE workspace = ?1 AND slug = ?2 AND created_ms <= ?3
             ORDER BY number DESC LIMIT 1"
        }
        Target::Live => {
            "SELECT version FROM flow_release WHERE workspace = ?1 AND slug = ?2 AND at_ms <= ?3
             ORDER BY seq DESC LIMIT 1"
        }
    };
    let number = db
        .prepare_cached(sql)
        .and_then(|mut sql| {
            let place = params![flow.workspace, flow.slug, at_ms];
            sql.query_row(place, |row| row.get::<_, i64>(0)).optional()
        })
        .map_err(failed)?;
    match number {
        Some(number) => version(db, flow, number),
        None => Ok(None),
    }
}

fn version_row(row: &Row<'_>) -> rusqlite::Result<VersionRow> {
    Ok(VersionRow {
        flow: FlowName {
            workspace: row.get(0)?,
            slug: row.get(1)?,
        },
        number: row.get(2)?,
        revision: row.get(3)?,
        content: row.get(4)?,
        parent: row.get(5)?,
        author: row.get(6)?,
        message: row.get(7)?,
        created_ms: row.get(8)?,
    })
}

fn releases(
    db: &Connection,
    flow: &FlowName,
    (order, limit): (&str, usize),
) -> Result<Vec<ReleaseRow>, StoreError> {
    let mut sql = db
        .prepare_cached(&format!(
            "SELECT seq, kind, version, before, author, note, at_ms FROM flow_release
             WHERE workspace = ?1 AND slug = ?2 ORDER BY seq {order} LIMIT ?3"
        ))
        .map_err(failed)?;
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let rows = sql
        .query_map(params![flow.workspace, flow.slug, limit], |row| {
            Ok(ReleaseRow {
                seq: row.get(0)?,
                kind: ReleaseKind::named(&row.get::<_, String>(1)?),
                version: row.get(2)?,
                before: row.get(3)?,
                author: row.get(4)?,
                note: row.get(5)?,
                at_ms: row.get(6)?,
            })
        })
        .map_err(failed)?;
    rows.collect::<rusqlite::Result<Vec<_>>>().map_err(failed)
}

fn version_at(db: &Connection, flow: &FlowName, place: &str) -> Result<Option<i64>, StoreError> {
    db.prepare_cached(
        "SELECT number FROM flow_checkout WHERE workspace = ?1 AND slug = ?2 AND place = ?3",
    )
    .and_then(|mut sql| {
        sql.query_row([&*flow.workspace, &*flow.slug, place], |row| row.get(0))
            .optional()
    })
    .map_err(failed)
}

fn files(db: &Connection, content: &str) -> Result<Option<VersionFiles>, StoreError> {
    let Some(manifest) = manifest_of(db, content)? else {
        return Ok(None);
    };
    let mut files = VersionFiles::new();
    for (path, hash) in manifest.entries() {
        let found = object(db, hash)?.ok_or_else(|| damaged(hash))?;
        files.insert(path.to_owned(), found.bytes);
    }
    Ok(Some(files))
}

fn manifest_of(db: &Connection, content: &str) -> Result<Option<Manifest>, StoreError> {
    let Some(found) = object(db, content)? else {
        return Ok(None);
    };
    let text = String::from_utf8(found.bytes).map_err(|_| damaged(content))?;
    let manifest = Manifest::read(&text);
    manifest.map(Some).ok_or_else(|| damaged(content))
}

/// A stored object.
struct Object {
    num: i64,
    depth: i64,
    bytes: Vec<u8>,
}

/// Stores bytes under their hash, unless they are stored. `base`: the hash of an object that they are probably similar to.
fn put(db: &Connection, hash: &str, bytes: &[u8], base: Option<&str>) -> Result<(), StoreError> {
    let is_known = db
        .prepare_cached("SELECT 1 FROM flow_object WHERE hash = ?1")
        .and_then(|mut sql| sql.exists([hash]))
        .map_err(failed)?;
    if is_known {
        return Ok(());
    }
    let base = match base {
        Some(base) => object(db, base)?.filter(|it| it.depth < MOST_DEPTH),
        None => None,
    };
    let delta = base.map(|base| (delta::encode(&base.bytes, bytes), base));
    let delta = delta.filter(|(delta, _)| delta.len() < bytes.len() / 2);
    let (stored, base, depth) = match &delta {
        Some((delta, base)) => (&**delta, Some(base.num), base.depth + 1),
        None => (bytes, None, 0),
    };
    db.prepare_cached("INSERT INTO flow_object (hash, base, depth, bytes) VALUES (?1, ?2, ?3, ?4)")
        .and_then(|mut sql| sql.execute(params![hash, base, depth, stored]))
        .map_err(failed)?;
    Ok(())
}

/// Returns an object by its hash, and checks it.
fn object(db: &Connection, hash: &str) -> Result<Option<Object>, StoreError> {
    let mut sql = db
        .prepare_cached("SELECT num, base, depth, bytes FROM flow_object WHERE hash = ?1")
        .map_err(failed)?;
    let read = |row: &Row<'_>| -> rusqlite::Result<(i64, Option<i64>, i64, Vec<u8>)> {
        Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?))
    };
    let Some((num, mut base, depth, bytes)) =
        sql.query_row([hash], read).optional().map_err(failed)?
    else {
        return Ok(None);
    };
    let mut deltas = vec![bytes];
    let mut sql = db
        .prepare_cached("SELECT num, base, depth, bytes FROM flow_object WHERE num = ?1")
        .map_err(failed)?;
    while let Some(num) = base.filter(|_| deltas.len() <= MOST_DEPTH as usize) {
        let row = sql.query_row([num], read).optional().map_err(failed)?;
        let (_, next, _, bytes) = row.ok_or_else(|| damaged(hash))?;
        base = next;
        deltas.push(bytes);
    }
    let mut bytes = deltas.pop().unwrap_or_default();
    while let Some(delta) = deltas.pop() {
        bytes = delta::decode(&bytes, &delta).ok_or_else(|| damaged(hash))?;
    }
    match digest_bytes(&bytes) == hash {
        true => Ok(Some(Object { num, depth, bytes })),
        false => Err(damaged(hash)),
    }
}

fn damaged(hash: &str) -> StoreError {
    StoreError::Damaged {
        path: "flowstone.db".to_owned(),
        detail: format!("the file {hash} of a flow's version cannot be read"),
    }
}
