//! Access tokens as rows.

use flowstone_model::ports::{PortFuture, StoreError, Tokens};
use flowstone_model::token::{Scope, Token, TokenKind, TokenLimits};
use rusqlite::{Connection, OptionalExtension as _, Row, params};

use super::Sqlite;
use super::failure::failed;
use super::writer::News;

impl Tokens for Sqlite {
    fn add_token(&self, row: Token, digest: [u8; 32]) -> PortFuture<'_, ()> {
        self.writer.submit(move |db| add(db, &row, &digest))
    }

    fn token(&self, id: &str) -> PortFuture<'_, Option<(Token, Vec<u8>)>> {
        self.read(|db| find(db, id))
    }

    fn revoked_tokens(&self, ids: Vec<String>) -> PortFuture<'_, Vec<String>> {
        self.read(|db| revoked(db, ids))
    }

    fn tokens(&self) -> PortFuture<'_, Vec<Token>> {
        self.read(list)
    }

    fn touch_tokens(&self, used: Vec<(String, i64)>) -> PortFuture<'_, ()> {
        // The time of last use of a token is not worth a sync.
        self.writer.arrange(News::None, move |db| touch(db, &used))
    }

    fn revoke_token(&self, id: &str, now_ms: i64) -> PortFuture<'_, bool> {
        let id = id.to_owned();
        self.writer.submit(move |db| revoke(db, &id, now_ms))
    }
}

/// The tables of this part.
pub(super) const SCHEMA: &str = "
CREATE TABLE token (
    id TEXT PRIMARY KEY,
    digest BLOB NOT NULL,
    name TEXT NOT NULL,
    kind TEXT NOT NULL,
    scopes TEXT NOT NULL,
    flows TEXT NOT NULL,
    labels TEXT NOT NULL,
    resources TEXT NOT NULL,
    job_types TEXT NOT NULL,
    roles TEXT NOT NULL,
    subject TEXT,
    created_ms INTEGER NOT NULL,
    expires_ms INTEGER,
    used_ms INTEGER,
    revoked_ms INTEGER
) WITHOUT ROWID;
";

const COLUMNS: &str = "id, name, kind, scopes, flows, labels, resources, job_types, roles, subject, created_ms, \
                       expires_ms, used_ms, revoked_ms, workspace";

pub(super) fn add(db: &Connection, token: &Token, digest: &[u8; 32]) -> Result<(), StoreError> {
    let scopes: Vec<String> = token.scopes.iter().map(|it| it.name().to_owned()).collect();
    let limits = &token.limits;
    db.prepare_cached(
        "INSERT INTO token (id, digest, name, kind, scopes, flows, labels, resources, job_types, roles, subject,
             created_ms, expires_ms, used_ms, revoked_ms, workspace)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)",
    )
    .and_then(|mut sql| {
        sql.execute(params![
            token.id,
            digest.as_slice(),
            token.name,
            token.kind.name(),
            joined(&scopes),
            joined(&limits.flows),
            joined(&limits.labels),
            joined(&limits.resources),
            joined(&limits.job_types),
            joined(&token.roles),
            token.subject,
            token.created_ms,
            token.expires_ms,
            token.used_ms,
            token.revoked_ms,
            limits.workspace
        ])
    })
    .map_err(failed)?;
    Ok(())
}

pub(super) fn find(db: &Connection, id: &str) -> Result<Option<(Token, Vec<u8>)>, StoreError> {
    db.prepare_cached(&format!(
        "SELECT {COLUMNS}, digest FROM token WHERE id = ?1"
    ))
    .and_then(|mut sql| {
        sql.query_row([id], |row| Ok((token(row)?, row.get(15)?)))
            .optional()
    })
    .map_err(failed)
}

/// Returns those of the ids whose token was revoked or does not exist.
pub(super) fn revoked(db: &Connection, ids: Vec<String>) -> Result<Vec<String>, StoreError> {
    let mut sql = db
        .prepare_cached("SELECT 1 FROM token WHERE id = ?1 AND revoked_ms IS NULL")
        .map_err(failed)?;
    let mut revoked = Vec::new();
    for id in ids {
        if !sql.exists([&id]).map_err(failed)? {
            revoked.push(id);
        }
    }
    Ok(revoked)
}

pub(super) fn list(db: &Connection) -> Result<Vec<Token>, StoreError> {
    let mut sql = db
        .prepare_cached(&format!(
            "SELECT {COLUMNS} FROM token ORDER BY created_ms, id"
        ))
        .map_err(failed)?;
    let rows = sql.query_map([], token).map_err(failed)?;
    rows.collect::<rusqlite::Result<Vec<_>>>().map_err(failed)
}

pub(super) fn touch(db: &Connection, used: &[(String, i64)]) -> Result<(), StoreError> {
    for (id, used_ms) in used {
        db.prepare_cached("UPDATE token SET used_ms = ?2 WHERE id = ?1")
            .and_then(|mut sql| sql.execute(params![id, used_ms]))
            .map_err(failed)?;
    }
    Ok(())
}

pub(super) fn revoke(db: &Connection, id: &str, now_ms: i64) -> Result<bool, StoreError> {
    db.prepare_cached("UPDATE token SET revoked_ms = ?2 WHERE id = ?1 AND revoked_ms IS NULL")
        .and_then(|mut sql| sql.execute(params![id, now_ms]))
        .map(|changed| changed > 0)
        .map_err(failed)
}

fn token(row: &Row<'_>) -> rusqlite::Result<Token> {
    let scopes: Vec<String> = split(&row.get::<_, String>(3)?);
    Ok(Token {
        id: row.get(0)?,
        name: row.get(1)?,
        // A kind of a later build grants no rights here.
        kind: TokenKind::named(&row.get::<_, String>(2)?).unwrap_or(TokenKind::Anon),
        scopes: scopes
            .iter()
            .filter_map(|name| Scope::named(name))
            .collect(),
        limits: TokenLimits {
            flows: split(&row.get::<_, String>(4)?),
            labels: split(&row.get::<_, String>(5)?),
            resources: split(&row.get::<_, String>(6)?),
            job_types: split(&row.get::<_, String>(7)?),
            workspace: row.get(14)?,
        },
        roles: split(&row.get::<_, String>(8)?),
        subject: row.get(9)?,
        created_ms: row.get(10)?,
        expires_ms: row.get(11)?,
        used_ms: row.get(12)?,
        revoked_ms: row.get(13)?,
    })
}

/// Joins a list with line breaks; its items contain none.
fn joined(items: &[String]) -> String {
    items.join("\n")
}

fn split(text: &str) -> Vec<String> {
    text.lines().map(str::to_owned).collect()
}
