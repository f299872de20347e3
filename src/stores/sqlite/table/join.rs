//! Joins whose result is a table. SQLite performs them, with a temporary index on the join fields if it needs one. Rows
//! are in the order of the left side, then of the right one.

use flowstone_model::codec::digest_bytes;
use flowstone_model::ports::StoreError;
use flowstone_model::table::{
    ColumnType, JoinSide, JoinSource, MaterializeJoin, Projected, RightFields, WriteMode,
};
use rusqlite::types::Value as Sql;
use rusqlite::{Connection, OptionalExtension as _, params, params_from_iter};

use super::super::failure::{failed, rejected, with_hint};
use super::cell::holds;
use super::computed;
use super::filter::{Condition, Operand, filter};
use super::intake::Intake;
use super::meta::Meta;
use super::registry::{Column, Table};
use super::write::{
    Keyed, check_given, clear, counted, fit_columns, no_key, open, preview, settle_key,
};

use super::writer::put;

/// Maximum number of written rows that are shown in the result.
const PREVIEW: usize = 5;

/// Executes `:materialize-join`.
pub(super) fn materialize(
    db: &Connection,
    join: &MaterializeJoin,
    now_ms: i64,
) -> Result<String, StoreError> {
    let digest = digest(join);
    if let Some(id) = &join.op_id
        && let Some(answer) = done_before(db, id, &digest)?
    {
        return Ok(answer);
    }
    let left = Side::open(db, &join.left, Position::Left, join)?;
    let right = Side::open(db, &join.right, Position::Right, join)?;
    let result = combine(db, join, (&left, &right), now_ms);
    for side in [left, right] {
        side.close(db)?;
    }
    let answer = result?;
    if let Some(id) = &join.op_id {
        db.execute(
            "INSERT INTO table_operation (op_id, digest, answer, made_ms) VALUES (?1, ?2, ?3, ?4)",
            params![id, digest, answer, now_ms],
        )
        .map_err(failed)?;
    }
    Ok(answer)
}

/// Returns the digest that identifies a named join: its definition without the rows.
fn digest(join: &MaterializeJoin) -> String {
    let side = |side: &JoinSide| {
        let source = match &side.source {
            JoinSource::Table(target) => format!("{target:?}"),
            JoinSource::Rows(_) => "rows".to_owned(),
        };
        format!("{source} {:?} {:?}", side.select, side.filter)
    };
    let request = format!(
        "{} {} {:?} {} {:?} {:?} {:?} {:?} {:?}",
        side(&join.left),
        side(&join.right),
        join.on,
        join.keep_unmatched,
        join.keep_left,
        join.right_fields,
        join.into,
        join.mode,
        join.key_fields
    );
    digest_bytes(request.as_bytes())
}

fn done_before(db: &Connection, id: &str, digest: &str) -> Result<Option<String>, StoreError> {
    let found: Option<(String, String)> = db
        .prepare_cached("SELECT digest, answer FROM table_operation WHERE op_id = ?1")
        .and_then(|mut sql| {
            sql.query_row([id], |row| Ok((row.get(0)?, row.get(1)?)))
                .optional()
        })
        .map_err(failed)?;
    match found {
        None => Ok(None),
        Some((known, answer)) if known == digest => Ok(Some(answer)),
        Some(_) => {
            let message = format!("the `:op-id` `{id}` was used for another join before");
            let error = rejected("E0636", "conflict", message);
            Err(with_hint(
                error,
                "use a different `:op-id` for each join; a repeated one returns the first answer",
            ))
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Position {
    Left,
    Right,
}

impl Position {
    fn name(self) -> &'static str {
        match self {
            Position::Left => "left",
            Position::Right => "right",
        }
    }
}

/// One side: a table, or a temporary one if rows were given.
struct Side {
    table: Table,
    is_scratch: bool,
    position: Position,
    /// The names of the columns that can be kept.
    fields: Vec<String>,
    rows: Condition,
}

impl Side {
    fn open(
        db: &Connection,
        side: &JoinSide,
        position: Position,
        join: &MaterializeJoin,
    ) -> Result<Side, StoreError> {
        let (table, is_scratch) = match &side.source {
            JoinSource::Table(target) => (Table::open(db, target)?, false),
            JoinSource::Rows(rows) => {
                let mut table = Table::scratch(db, position.name())?;
                fit_columns(db, &mut table, rows)?;
                put(db, &mut table, rows, WriteMode::Insert)?;
                let joined = join.on.iter().map(|(left, right)| match position {
                    Position::Left => left,
                    Position::Right => right,
                });
                // An empty list of rows names no columns, and rows may omit cells that are nil in all of them.
                for name in joined.chain(&side.select) {
                    if table.column(name).is_none() && rows.is_empty() {
                        table.add_column(db, name, None, true)?;
                    }
                }
                (table, true)
            }
        };
        let fields = match side.select.as_slice() {
            [] => table
                .columns
                .iter()
                .map(|column| column.name.clone())
                .collect(),
            names => names.to_vec(),
        };
        for name in &fields {
            known(&table, name, position)?;
        }
        let mut rows = Condition::default();
        filter(&table, &side.filter, &mut rows)?;
        Ok(Side {
            table,
            is_scratch,
            position,
            fields,
            rows,
        })
    }

    /// Returns a column that can be kept.
    fn field(&self, name: &str) -> Result<&Column, StoreError> {
        let column = known(&self.table, name, self.position)?;
        if self.fields.iter().any(|field| field == name) {
            return Ok(column);
        }
        let message = format!(
            "`{name}` is not in `:select` of the {} side",
            self.position.name()
        );
        Err(with_hint(
            rejected("E0635", "bad-config", message),
            "add it to `:select`",
        ))
    }

    fn close(self, db: &Connection) -> Result<(), StoreError> {
        match self.is_scratch {
            true => self.table.discard(db),
            false => Ok(()),
        }
    }
}

fn known<'a>(table: &'a Table, name: &str, position: Position) -> Result<&'a Column, StoreError> {
    table.known(name).map_err(|error| match error {
        StoreError::Rejected {
            code, kind, hint, ..
        } => StoreError::Rejected {
            code,
            kind,
            message: format!(
                "the {} side of the join has no column `{name}`",
                position.name()
            ),
            hint,
        },
        other => other,
    })
}

/// A column of the result.
struct Kept {
    name: String,
    /// The column in SQL, such as `l.c1`.
    sql: String,
    type_: Option<ColumnType>,
    meta: Meta,
}

fn combine(
    db: &Connection,
    join: &MaterializeJoin,
    sides: (&Side, &Side),
    now_ms: i64,
) -> Result<String, StoreError> {
    let kept = projection(join, sides)?;
    let joins = conditions(join, sides)?;
    let mut into = open(db, &join.into, now_ms)?;
    if [sides.0.table.id, sides.1.table.id].contains(&into.id) {
        let message = format!(
            "the table `{}` is both a side of the join and its result",
            into.name
        );
        let error = rejected("E0635", "bad-config", message);
        return Err(with_hint(error, "write the result to another table"));
    }
    if join.mode == WriteMode::Replace {
        clear(db, &into)?;
    }
    let columns = fit(db, &mut into, &kept)?;
    let keyed = Keyed {
        key_fields: &join.key_fields,
        mode: join.mode,
        rows: 1,
    };
    settle_key(db, &mut into, &keyed)?;
    for name in &join.index_fields {
        into.add_index(db, name)?;
    }
    let select = select(sides, (&columns, &joins), join.keep_unmatched);
    let before = last_row(db, &into)?;
    let (written, ids) = insert(db, (&into, join), &columns, &select)?;
    check_keys(db, &into)?;
    if let Some(ids) = ids {
        finish(db, &mut into, &ids)?;
    }
    let (inserted, first) = inserted(db, &into, before)?;
    Ok(counted(db, &into)?
        .count("count", written)
        .count("rows-written", written)
        .count("rows-inserted", inserted)
        .count("rows-updated", written.saturating_sub(inserted))
        .raw("preview", &preview(db, &into, &first)?)
        .finish())
}

/// Determines the fields of the result.
fn projection(
    join: &MaterializeJoin,
    (left, right): (&Side, &Side),
) -> Result<Vec<Kept>, StoreError> {
    let lefts = join.keep_left.as_ref().unwrap_or(&left.fields);
    let mut kept: Vec<Kept> = Vec::new();
    let mut add = |side: &Side, field: &str, name: &str| -> Result<(), StoreError> {
        let column = side.field(field)?;
        if kept.iter().any(|kept| kept.name == name) {
            let message = format!("two fields of the result are called `{name}`");
            let hint = format!(
                "give one another name: `:project {{:right-fields [{{:field \"{field}\" :as \"right-{field}\"}}]}}`"
            );
            return Err(with_hint(rejected("E0635", "bad-config", message), hint));
        }
        let letter = if side.position == Position::Left {
            "l"
        } else {
            "r"
        };
        kept.push(Kept {
            name: name.to_owned(),
            sql: match column.type_ {
                Some(_) => format!("{letter}.{}", column.sql()),
                None => "NULL".to_owned(),
            },
            type_: column.type_,
            meta: Meta {
                display_name: column.meta.display_name.clone(),
                semantic_type: column.meta.semantic_type.clone(),
                format: column.meta.format.clone(),
                ..Meta::default()
            },
        });
        Ok(())
    };
    for name in lefts {
        add(left, name, name)?;
    }
    match &join.right_fields {
        RightFields::These(fields) => {
            for Projected { field, name } in fields {
                add(right, field, name)?;
            }
        }
        RightFields::All => {
            let joined = |name: &String| join.on.iter().any(|(_, right)| right == name);
            for name in right.fields.iter().filter(|name| !joined(name)) {
                add(right, name, name)?;
            }
        }
    }
    match kept.is_empty() {
        false => Ok(kept),
        true => Err(rejected(
            "E0635",
            "bad-config",
            "the join keeps no field".to_owned(),
        )),
    }
}

/// The join conditions in SQL.
struct Joins {
    conditions: Vec<String>,
    /// Expressions over right rows, named `k0`, `k1` ..., so that SQLite can index them too.
    made: Vec<String>,
}

/// Returns the join conditions.
fn conditions(join: &MaterializeJoin, (left, right): (&Side, &Side)) -> Result<Joins, StoreError> {
    use ColumnType::{Decimal, Double, Enum, Json, Long};
    let mut made = Vec::new();
    let mut make = |sql: String| {
        made.push(sql);
        format!("r.k{}", made.len() - 1)
    };
    let mut conditions = Vec::new();
    for (left_field, right_field) in &join.on {
        let left_column = known(&left.table, left_field, Position::Left)?;
        let right_column = known(&right.table, right_field, Position::Right)?;
        let (Some(left_type), Some(right_type)) = (left_column.type_, right_column.type_) else {
            conditions.push("0".to_owned());
            continue;
        };
        let (left_sql, right_sql) = (
            format!("l.{}", left_column.sql()),
            format!("r.{}", right_column.sql()),
        );
        conditions.push(match (left_type, right_type) {
            (one, other) if one == other && one != Json => format!("{right_sql} = {left_sql}"),
            (Long | Double, Long | Double) => format!("{right_sql} = {left_sql}"),
            (Long, Decimal) => format!("{right_sql} = CAST({left_sql} AS TEXT)"),
            (Decimal, Long) => {
                let made = make(format!("CAST({} AS TEXT)", right_column.sql()));
                format!("{left_sql} = {made}")
            }
            (Enum, ColumnType::String) => format!("{right_sql} = {}", text_sql(Enum, &left_sql)),
            (ColumnType::String, Enum) => {
                let made = make(text_sql(Enum, &right_column.sql()));
                format!("{made} = {left_sql}")
            }
            (left_type, right_type) => {
                let message = format!(
                    "`{left_field}` of the left side holds {}, and `{right_field}` of the right side {}: they cannot be joined",
                    holds(left_type),
                    holds(right_type)
                );
                let hint = "give one of them the type of the other with `:op :set-column` and `:type-hint`";
                return Err(with_hint(rejected("E0635", "bad-config", message), hint));
            }
        });
    }
    Ok(Joins { conditions, made })
}

/// Returns the SQL of a string or enum as text, without the mark of an enum.
fn text_sql(type_: ColumnType, sql: &str) -> String {
    let operand = Operand {
        sql: sql.to_owned(),
        ..Operand::plain_column("", type_)
    };
    operand.plain()
}

/// Adds the columns of the destination; returns their names in SQL and the expressions for them.
fn fit(
    db: &Connection,
    into: &mut Table,
    kept: &[Kept],
) -> Result<Vec<(String, String)>, StoreError> {
    use ColumnType::{Decimal, Double, Enum, Long};
    let mut columns = Vec::new();
    for kept in kept {
        if into.column(&kept.name).is_none() {
            into.add_column(db, &kept.name, None, true)?;
            if kept.meta != Meta::default() {
                into.set_meta(db, &kept.name, kept.meta.clone())?;
            }
        }
        let column = into.known(&kept.name)?;
        check_given(column)?;
        let Some(type_) = kept.type_ else {
            continue;
        };
        let sql = match (column.type_, type_) {
            (None, _) => {
                into.set_type(db, &kept.name, type_)?;
                kept.sql.clone()
            }
            (Some(Long), Double) if column.inferred => {
                into.set_type(db, &kept.name, Double)?;
                kept.sql.clone()
            }
            (Some(own), type_) if own == type_ => kept.sql.clone(),
            (Some(Double), Long) => kept.sql.clone(),
            (Some(Decimal), Long) => format!("CAST({} AS TEXT)", kept.sql),
            (Some(ColumnType::String), Enum) => text_sql(Enum, &kept.sql),
            (Some(Enum), ColumnType::String) => format!(
                "(CASE WHEN substr({0}, 1, 1) IN (':', '\\') THEN '\\' || {0} ELSE {0} END)",
                kept.sql
            ),
            (Some(own), type_) => {
                let message = format!(
                    "the column `{}` of the table `{}` holds {}, and the join has {}",
                    kept.name,
                    into.name,
                    holds(own),
                    holds(type_)
                );
                let hint = "give the field another name with `:as`, or write to another table";
                return Err(with_hint(rejected("E0635", "conflict", message), hint));
            }
        };
        columns.push((into.known(&kept.name)?.sql(), sql));
    }
    Ok(columns)
}

/// Returns the `SELECT` of the join, and its bound values.
fn select(
    (left, right): (&Side, &Side),
    (columns, joins): (&[(String, String)], &Joins),
    keep_unmatched: bool,
) -> Condition {
    let wanted: Vec<&str> = columns.iter().map(|(_, sql)| sql.as_str()).collect();
    let word = if keep_unmatched {
        "LEFT JOIN"
    } else {
        "CROSS JOIN"
    };
    let made = joins.made.iter().enumerate();
    let made: String = made
        .map(|(idx, sql)| format!(", {sql} AS k{idx}"))
        .collect();
    // With a limit, the expressions are computed once, not for each pair of rows.
    let once = if made.is_empty() { "" } else { " LIMIT -1" };
    Condition {
        sql: format!(
            "SELECT {} FROM (SELECT * FROM {} WHERE {}) AS l {word} (SELECT *{made} FROM {} WHERE {}{once}) AS r ON {}
             ORDER BY l.row_id, r.row_id",
            if wanted.is_empty() { "NULL".to_owned() } else { wanted.join(", ") },
            left.table.sql(),
            left.rows.sql,
            right.table.sql(),
            right.rows.sql,
            joins.conditions.join(" AND ")
        ),
        cells: [left.rows.cells.clone(), right.rows.cells.clone()].concat(),
    }
}

/// Writes the rows; returns their number, and the numbers of those rows that are needed.
fn insert(
    db: &Connection,
    (into, join): (&Table, &MaterializeJoin),
    columns: &[(String, String)],
    select: &Condition,
) -> Result<(usize, Option<Vec<i64>>), StoreError> {
    let mut names: Vec<String> = columns.iter().map(|(name, _)| name.clone()).collect();
    let mut values = "*".to_owned();
    if names.is_empty() {
        let message = "the join keeps only fields that no row has a value for".to_owned();
        return Err(rejected("E0635", "invalid", message));
    }
    if let Some([part]) = into.parts.as_deref() {
        names.push("part".to_owned());
        values = format!("*, {part}");
    }
    let mut sql = format!(
        "INSERT INTO {} ({}) SELECT {values} FROM ({}) WHERE true",
        into.sql(),
        names.join(", "),
        select.sql
    );
    if join.mode == WriteMode::Upsert {
        let mut key: Vec<String> = into.key().iter().map(|column| column.sql()).collect();
        let sets: Vec<String> = columns
            .iter()
            .map(|(name, _)| format!("{name} = excluded.{name}"))
            .collect();
        if into.partitioned {
            key.insert(0, "part".to_owned());
        }
        sql.push_str(&format!(
            " ON CONFLICT ({}) DO UPDATE SET {}",
            key.join(", "),
            sets.join(", ")
        ));
    }
    let is_plain = into
        .columns
        .iter()
        .all(|column| column.meta.lookup.is_none())
        && Intake::of(into)?.is_none();
    let refused = |error: rusqlite::Error| match error.sqlite_error_code() {
        Some(rusqlite::ErrorCode::ConstraintViolation) => {
            let message = format!(
                "two rows of the join have the same key in the table `{}`",
                into.name
            );
            let error = rejected(StoreError::ROW_KEY, "conflict", message);
            with_hint(
                error,
                "use `:write-mode \"upsert\"`, where the last one stays, or other `:key-fields`",
            )
        }
        _ => failed(error),
    };
    if is_plain {
        let count = db
            .prepare(&sql)
            .and_then(|mut sql| sql.execute(params_from_iter(&select.cells)))
            .map_err(refused)?;
        return Ok((count, None));
    }
    sql.push_str(" RETURNING row_id");
    let ids: Vec<i64> = db
        .prepare(&sql)
        .and_then(|mut sql| {
            sql.query_map(params_from_iter(&select.cells), |row| row.get(0))?
                .collect()
        })
        .map_err(refused)?;
    Ok((ids.len(), Some(ids)))
}

/// Refuses nil in a key field.
fn check_keys(db: &Connection, into: &Table) -> Result<(), StoreError> {
    for column in into.key() {
        let sql = format!(
            "SELECT EXISTS (SELECT 1 FROM {} WHERE {} IS NULL)",
            into.sql(),
            column.sql()
        );
        let has_nil: bool = db.query_row(&sql, [], |row| row.get(0)).map_err(failed)?;
        if has_nil {
            return Err(no_key(0, &column.name));
        }
    }
    Ok(())
}

/// Completes written rows in the same way as single writes do: checks, enum ids and computed cells.
fn finish(db: &Connection, into: &mut Table, ids: &[i64]) -> Result<(), StoreError> {
    if let Some(mut intake) = Intake::of(into)? {
        for (place, column) in into.columns.iter().enumerate() {
            if column.type_.is_none() || !intake.asks(place) {
                continue;
            }
            let (table, name) = (into.sql(), column.sql());
            let read = format!("SELECT {name} FROM {table} WHERE row_id = ?1");
            let mut read = db.prepare(&read).map_err(failed)?;
            let write = format!("UPDATE {table} SET {name} = ?2 WHERE row_id = ?1");
            let mut write = db.prepare(&write).map_err(failed)?;
            for (idx, id) in ids.iter().enumerate() {
                let before: Sql = read.query_row([id], |row| row.get(0)).map_err(failed)?;
                let kept = intake
                    .take(place, before.clone())?
                    .map_err(|refusal| refusal.error(&format!("row {}", idx + 1), &column.name))?;
                if kept != before {
                    write.execute(params![id, kept]).map_err(failed)?;
                }
            }
        }
        intake.finish(db, into)?;
    }
    if into
        .columns
        .iter()
        .any(|column| column.meta.lookup.is_some())
    {
        for id in ids {
            let row = Condition {
                sql: "row_id = ?".to_owned(),
                cells: vec![Sql::Integer(*id)],
            };
            computed::refresh(db, into, &row)?;
        }
    }
    Ok(())
}

fn last_row(db: &Connection, table: &Table) -> Result<i64, StoreError> {
    let sql = format!("SELECT coalesce(max(row_id), 0) FROM {}", table.sql());
    db.query_row(&sql, [], |row| row.get(0)).map_err(failed)
}

/// Returns the number of rows after a row, and the numbers of the first of them; without such rows, of the first rows
/// of the table.
fn inserted(db: &Connection, table: &Table, after: i64) -> Result<(usize, Vec<i64>), StoreError> {
    let sql = format!("SELECT count(*) FROM {} WHERE row_id > ?1", table.sql());
    let count: i64 = db
        .query_row(&sql, [after], |row| row.get(0))
        .map_err(failed)?;
    let start = if count > 0 { after } else { 0 };
    let sql = format!(
        "SELECT row_id FROM {} WHERE row_id > ?1 ORDER BY row_id LIMIT {PREVIEW}",
        table.sql()
    );
    let ids = db
        .prepare(&sql)
        .and_then(|mut sql| sql.query_map([start], |row| row.get(0))?.collect())
        .map_err(failed)?;
    Ok((usize::try_from(count).unwrap_or(0), ids))
}
