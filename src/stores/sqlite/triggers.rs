//! Schedules, subscriptions and deliveries as rows.

use flowstone_model::ids::RunId;
use flowstone_model::ports::{PortFuture, StoreError, Triggers};
use flowstone_model::registry::FlowName;
use flowstone_model::triggers::{
    DeliveryQuery, EventDelivery, MOST_DELIVERIES, NewDelivery, TriggerKind, TriggerRow,
};
use rusqlite::{Connection, OptionalExtension as _, Params, Row, ToSql, params};

use super::Sqlite;
use super::failure::failed;

/// The tables of this part.
pub(super) const SCHEMA: &str = "
CREATE TABLE flow_trigger (
    id TEXT PRIMARY KEY,
    kind TEXT NOT NULL,
    workspace TEXT NOT NULL,
    slug TEXT NOT NULL,
    name TEXT,
    description TEXT,
    event_key TEXT NOT NULL,
    schedule TEXT,
    start_ms INTEGER,
    end_ms INTEGER,
    connection TEXT,
    trigger_config TEXT,
    inputs_fields TEXT,
    version INTEGER NOT NULL,
    revision TEXT NOT NULL,
    is_active INTEGER NOT NULL,
    next_ms INTEGER,
    last_ms INTEGER,
    position INTEGER,
    created_ms INTEGER NOT NULL,
    updated_ms INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX flow_trigger_flow ON flow_trigger (workspace, slug, kind, created_ms, id);
CREATE INDEX flow_trigger_next ON flow_trigger (next_ms) WHERE next_ms IS NOT NULL;
CREATE INDEX flow_trigger_connection ON flow_trigger (connection) WHERE connection IS NOT NULL;
CREATE TABLE event_delivery (
    id TEXT PRIMARY KEY,
    trigger_id TEXT NOT NULL,
    kind TEXT NOT NULL,
    workspace TEXT NOT NULL,
    slug TEXT NOT NULL,
    event_id TEXT NOT NULL,
    event_key TEXT NOT NULL,
    code INTEGER NOT NULL,
    message TEXT NOT NULL,
    inputs TEXT,
    run TEXT,
    error TEXT,
    context TEXT NOT NULL,
    depth INTEGER NOT NULL,
    attempts INTEGER NOT NULL,
    retry_ms INTEGER,
    created_ms INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX event_delivery_flow ON event_delivery (workspace, slug, created_ms, id);
CREATE INDEX event_delivery_trigger ON event_delivery (trigger_id, created_ms, id);
CREATE INDEX event_delivery_run ON event_delivery (run) WHERE run IS NOT NULL;
CREATE INDEX event_delivery_retry ON event_delivery (retry_ms) WHERE retry_ms IS NOT NULL;
";

const TRIGGER: &str = "id, kind, workspace, slug, name, description, event_key, schedule, start_ms, end_ms, connection, \
                       trigger_config, inputs_fields, version, revision, is_active, next_ms, last_ms, position, \
                       created_ms, updated_ms";
const DELIVERY: &str = "id, trigger_id, kind, workspace, slug, event_id, event_key, code, message, inputs, run, error, \
                        context, depth, attempts, retry_ms, created_ms";

impl Triggers for Sqlite {
    fn add_trigger(&self, row: TriggerRow, most: usize) -> PortFuture<'_, bool> {
        self.writer.submit(move |db| {
            let known = triggers(db, &row.flow, row.kind)?;
            if known.len() >= most {
                return Ok(false);
            }
            write_trigger(db, &row)?;
            Ok(true)
        })
    }

    fn trigger(&self, id: &str) -> PortFuture<'_, Option<TriggerRow>> {
        self.read(|db| trigger(db, id))
    }

    fn triggers(&self, flow: &FlowName, kind: TriggerKind) -> PortFuture<'_, Vec<TriggerRow>> {
        self.read(|db| triggers(db, flow, kind))
    }

    fn change_trigger(&self, seen: TriggerRow, row: TriggerRow) -> PortFuture<'_, bool> {
        self.writer.submit(move |db| change(db, &seen, &row))
    }

    fn remove_trigger(&self, id: &str) -> PortFuture<'_, bool> {
        let id = id.to_owned();
        self.writer.submit(move |db| {
            execute(
                db,
                "UPDATE event_delivery SET retry_ms = NULL WHERE trigger_id = ?1 AND retry_ms IS NOT NULL",
                [&id],
            )?;
            Ok(execute(db, "DELETE FROM flow_trigger WHERE id = ?1", [&id])? > 0)
        })
    }

    fn due_triggers(&self, now_ms: i64) -> PortFuture<'_, Vec<TriggerRow>> {
        self.read(|db| {
            let sql = format!(
                "SELECT {TRIGGER} FROM flow_trigger INDEXED BY flow_trigger_next
                 WHERE next_ms IS NOT NULL AND next_ms <= ?1 ORDER BY next_ms, id"
            );
            all(db, &sql, [now_ms], trigger_row)
        })
    }

    fn listening(&self, connection: &str) -> PortFuture<'_, Vec<TriggerRow>> {
        self.read(|db| {
            let sql = format!(
                "SELECT {TRIGGER} FROM flow_trigger INDEXED BY flow_trigger_connection
                 WHERE connection IS NOT NULL AND connection = ?1 AND is_active = 1 ORDER BY id"
            );
            all(db, &sql, [connection], trigger_row)
        })
    }

    fn next_trigger_ms(&self) -> PortFuture<'_, Option<i64>> {
        self.read(|db| {
            let first = |sql: &str| {
                db.prepare_cached(sql)
                    .and_then(|mut sql| sql.query_row([], |row| row.get::<_, i64>(0)).optional())
                    .map_err(failed)
            };
            let tick = first(
                "SELECT next_ms FROM flow_trigger INDEXED BY flow_trigger_next
                 WHERE next_ms IS NOT NULL ORDER BY next_ms LIMIT 1",
            )?;
            let attempt = first(
                "SELECT retry_ms FROM event_delivery INDEXED BY event_delivery_retry
                 WHERE retry_ms IS NOT NULL ORDER BY retry_ms LIMIT 1",
            )?;
            Ok(tick.into_iter().chain(attempt).min())
        })
    }

    fn record_delivery(&self, new: NewDelivery) -> PortFuture<'_, bool> {
        self.writer.submit(move |db| record(db, &new))
    }

    fn retry_delivery(&self, delivery: EventDelivery) -> PortFuture<'_, bool> {
        self.writer.submit(move |db| {
            let stored = found_delivery(db, &delivery.id)?;
            if stored.is_none_or(|it| it.attempts + 1 != delivery.attempts) {
                return Ok(false);
            }
            write_delivery(db, &delivery)?;
            Ok(true)
        })
    }

    fn delivery(&self, id: &str) -> PortFuture<'_, Option<EventDelivery>> {
        self.read(|db| found_delivery(db, id))
    }

    fn delivery_of(&self, run: &str) -> PortFuture<'_, Option<EventDelivery>> {
        self.read(|db| {
            let sql = format!(
                "SELECT {DELIVERY} FROM event_delivery INDEXED BY event_delivery_run
                 WHERE run IS NOT NULL AND run = ?1 AND code = 200 LIMIT 1"
            );
            one(db, &sql, [run], delivery_row)
        })
    }

    fn due_deliveries(&self, now_ms: i64) -> PortFuture<'_, Vec<EventDelivery>> {
        self.read(|db| {
            let sql = format!(
                "SELECT {DELIVERY} FROM event_delivery INDEXED BY event_delivery_retry
                 WHERE retry_ms IS NOT NULL AND retry_ms <= ?1 ORDER BY retry_ms, id"
            );
            all(db, &sql, [now_ms], delivery_row)
        })
    }

    fn deliveries(&self, query: DeliveryQuery) -> PortFuture<'_, Vec<EventDelivery>> {
        self.read(|db| {
            let (at_ms, id) = query.before.clone().unwrap_or((i64::MAX, String::new()));
            let limit = i64::try_from(query.limit).unwrap_or(i64::MAX);
            let (of, trigger) = match &query.trigger {
                Some(trigger) => ("trigger_id = ?3", &**trigger),
                None => ("?3 = ''", ""),
            };
            let sql = format!(
                "SELECT {DELIVERY} FROM event_delivery
                 WHERE workspace = ?1 AND slug = ?2 AND {of} AND (created_ms, id) < (?4, ?5)
                 ORDER BY created_ms DESC, id DESC LIMIT ?6"
            );
            let flow = &query.flow;
            let values = params![flow.workspace, flow.slug, trigger, at_ms, id, limit];
            all(db, &sql, values, delivery_row)
        })
    }
}

fn trigger(db: &Connection, id: &str) -> Result<Option<TriggerRow>, StoreError> {
    let sql = format!("SELECT {TRIGGER} FROM flow_trigger WHERE id = ?1");
    one(db, &sql, [id], trigger_row)
}

fn triggers(
    db: &Connection,
    flow: &FlowName,
    kind: TriggerKind,
) -> Result<Vec<TriggerRow>, StoreError> {
    let sql = format!(
        "SELECT {TRIGGER} FROM flow_trigger WHERE workspace = ?1 AND slug = ?2 AND kind = ?3 ORDER BY created_ms, id"
    );
    let values = [&*flow.workspace, &*flow.slug, kind.name()];
    all(db, &sql, values, trigger_row)
}

fn change(db: &Connection, seen: &TriggerRow, row: &TriggerRow) -> Result<bool, StoreError> {
    if trigger(db, &seen.id)?.as_ref() != Some(seen) {
        return Ok(false);
    }
    write_trigger(db, row)?;
    Ok(true)
}

fn record(db: &Connection, new: &NewDelivery) -> Result<bool, StoreError> {
    if let Some(delivery) = &new.delivery
        && found_delivery(db, &delivery.id)?.is_some()
    {
        return Ok(false);
    }
    if let Some((seen, row)) = &new.trigger
        && !change(db, seen, row)?
    {
        return Ok(false);
    }
    if let Some(delivery) = &new.delivery {
        write_delivery(db, delivery)?;
        let most = i64::try_from(MOST_DELIVERIES).unwrap_or(i64::MAX);
        execute(
            db,
            "DELETE FROM event_delivery WHERE id IN
                 (SELECT id FROM event_delivery INDEXED BY event_delivery_trigger
                  WHERE trigger_id = ?1 AND retry_ms IS NULL
                  ORDER BY created_ms DESC, id DESC LIMIT -1 OFFSET ?2)",
            params![delivery.trigger, most],
        )?;
    }
    Ok(true)
}

fn found_delivery(db: &Connection, id: &str) -> Result<Option<EventDelivery>, StoreError> {
    let sql = format!("SELECT {DELIVERY} FROM event_delivery WHERE id = ?1");
    one(db, &sql, [id], delivery_row)
}

fn write_trigger(db: &Connection, row: &TriggerRow) -> Result<(), StoreError> {
    let sql = format!(
        "INSERT OR REPLACE INTO flow_trigger ({TRIGGER}) VALUES ({})",
        places(21)
    );
    let values: [&dyn ToSql; 21] = [
        &row.id,
        &row.kind.name(),
        &row.flow.workspace,
        &row.flow.slug,
        &row.name,
        &row.description,
        &row.event_key,
        &row.schedule,
        &row.start_ms,
        &row.end_ms,
        &row.connection,
        &row.trigger_config,
        &row.inputs_fields,
        &row.version,
        &row.revision,
        &row.is_active,
        &row.next_ms,
        &row.last_ms,
        &row.position,
        &row.created_ms,
        &row.updated_ms,
    ];
    execute(db, &sql, values.as_slice()).map(drop)
}

fn write_delivery(db: &Connection, row: &EventDelivery) -> Result<(), StoreError> {
    let sql = format!(
        "INSERT OR REPLACE INTO event_delivery ({DELIVERY}) VALUES ({})",
        places(17)
    );
    let values: [&dyn ToSql; 17] = [
        &row.id,
        &row.trigger,
        &row.kind.name(),
        &row.flow.workspace,
        &row.flow.slug,
        &row.event_id,
        &row.event_key,
        &row.code,
        &row.message,
        &row.inputs,
        &row.run.as_ref().map(RunId::as_str),
        &row.error,
        &row.context,
        &row.depth,
        &row.attempts,
        &row.retry_ms,
        &row.created_ms,
    ];
    execute(db, &sql, values.as_slice()).map(drop)
}

/// Returns the list of that many parameters.
fn places(count: usize) -> String {
    let places: Vec<String> = (1..=count).map(|place| format!("?{place}")).collect();
    places.join(", ")
}

/// Returns the kind with a stored name. A kind of a later build starts no runs here.
fn kind(row: &Row<'_>, idx: usize) -> rusqlite::Result<TriggerKind> {
    let name: String = row.get(idx)?;
    Ok(TriggerKind::named(&name).unwrap_or(TriggerKind::Watch))
}

fn trigger_row(row: &Row<'_>) -> rusqlite::Result<TriggerRow> {
    Ok(TriggerRow {
        id: row.get(0)?,
        kind: kind(row, 1)?,
        flow: FlowName {
            workspace: row.get(2)?,
            slug: row.get(3)?,
        },
        name: row.get(4)?,
        description: row.get(5)?,
        event_key: row.get(6)?,
        schedule: row.get(7)?,
        start_ms: row.get(8)?,
        end_ms: row.get(9)?,
        connection: row.get(10)?,
        trigger_config: row.get(11)?,
        inputs_fields: row.get(12)?,
        version: row.get(13)?,
        revision: row.get(14)?,
        is_active: row.get(15)?,
        next_ms: row.get(16)?,
        last_ms: row.get(17)?,
        position: row.get(18)?,
        created_ms: row.get(19)?,
        updated_ms: row.get(20)?,
    })
}

fn delivery_row(row: &Row<'_>) -> rusqlite::Result<EventDelivery> {
    Ok(EventDelivery {
        id: row.get(0)?,
        trigger: row.get(1)?,
        kind: kind(row, 2)?,
        flow: FlowName {
            workspace: row.get(3)?,
            slug: row.get(4)?,
        },
        event_id: row.get(5)?,
        event_key: row.get(6)?,
        code: row.get(7)?,
        message: row.get(8)?,
        inputs: row.get(9)?,
        run: row.get::<_, Option<String>>(10)?.map(RunId::from_text),
        error: row.get(11)?,
        context: row.get(12)?,
        depth: row.get(13)?,
        attempts: row.get(14)?,
        retry_ms: row.get(15)?,
        created_ms: row.get(16)?,
    })
}

fn one<T>(
    db: &Connection,
    sql: &str,
    values: impl Params,
    read: fn(&Row<'_>) -> rusqlite::Result<T>,
) -> Result<Option<T>, StoreError> {
    db.prepare_cached(sql)
        .and_then(|mut sql| sql.query_row(values, read).optional())
        .map_err(failed)
}

fn all<T>(
    db: &Connection,
    sql: &str,
    values: impl Params,
    read: fn(&Row<'_>) -> rusqlite::Result<T>,
) -> Result<Vec<T>, StoreError> {
    let mut sql = db.prepare_cached(sql).map_err(failed)?;
    let rows = sql.query_map(values, read).map_err(failed)?;
    rows.collect::<rusqlite::Result<Vec<T>>>().map_err(failed)
}

fn execute(db: &Connection, sql: &str, values: impl Params) -> Result<usize, StoreError> {
    db.prepare_cached(sql)
        .and_then(|mut sql| sql.execute(values))
        .map_err(failed)
}
