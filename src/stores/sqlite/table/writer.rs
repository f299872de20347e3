//! Writes rows that fit their columns, with statements that rows of the same columns share.

use std::collections::HashMap;

use flowstone_model::ports::StoreError;
use flowstone_model::table::{Cell, ColumnType, Row, WriteMode};
use rusqlite::types::Value as Sql;
use rusqlite::{Connection, OptionalExtension as _, Statement, params_from_iter};

use super::super::failure::failed;
use super::cell::to_sql;
use super::filter::Condition;
use super::intake::{Intake, Refusal};
use super::registry::Table;
use super::write::{PREVIEW, duplicate, misfit, no_key, unexecuted};
use super::{computed, partition};

/// Writes rows that fit their columns.
pub(super) fn put(
    db: &Connection,
    table: &mut Table,
    rows: &[Row],
    mode: WriteMode,
) -> Result<Written, StoreError> {
    let mut writer = Writer::new(db, table, mode, rows.len())?;
    for row in rows {
        writer.put(row)?;
    }
    let mut written = writer.finish()?;
    if let Some(ids) = written.computed.take() {
        for id in ids {
            let row = Condition {
                sql: "row_id = ?".to_owned(),
                cells: vec![Sql::Integer(id)],
            };
            computed::refresh(db, table, &row)?;
        }
    }
    Ok(written)
}

/// The outcome of a write.
#[derive(Default)]
pub(super) struct Written {
    pub inserted: usize,
    pub updated: usize,
    /// The numbers of the first rows.
    pub ids: Vec<i64>,
    /// The rows whose computed cells are to be computed; `None` in a table without computed columns.
    pub computed: Option<Vec<i64>>,
}

impl Written {
    fn note(&mut self, id: i64) {
        if self.ids.len() < PREVIEW {
            self.ids.push(id);
        }
        if let Some(computed) = &mut self.computed {
            computed.push(id);
        }
    }
}

/// Writes rows one by one; rows with the same columns share their statements.
struct Writer<'a> {
    db: &'a Connection,
    table: &'a Table,
    mode: WriteMode,
    count: usize,
    idx: usize,
    intake: Option<Intake>,
    shapes: HashMap<Vec<String>, Shape<'a>>,
    /// The columns of the previous row.
    last: Vec<String>,
    written: Written,
}

/// The statements for rows with certain columns.
struct Shape<'a> {
    /// The indexes of the columns in the table, and their types; `None` if SQLite has no such column yet.
    places: Vec<(usize, Option<ColumnType>)>,
    /// The indexes of the key fields in the row.
    key: Vec<Option<usize>>,
    insert: Statement<'a>,
    /// With a key: the statements that find the row and change it. Without further columns there is nothing to change.
    find: Option<Statement<'a>>,
    update: Option<Statement<'a>>,
    /// A required column that is not among these.
    missing: Option<usize>,
}

impl<'a> Writer<'a> {
    fn new(
        db: &'a Connection,
        table: &'a Table,
        mode: WriteMode,
        count: usize,
    ) -> Result<Writer<'a>, StoreError> {
        let has_computed = table
            .columns
            .iter()
            .any(|column| column.meta.lookup.is_some());
        Ok(Writer {
            db,
            table,
            mode,
            count,
            idx: 0,
            intake: Intake::of(table)?,
            shapes: HashMap::new(),
            last: Vec::new(),
            written: Written {
                computed: has_computed.then(Vec::new),
                ..Written::default()
            },
        })
    }

    fn finish(self) -> Result<Written, StoreError> {
        if let Some(mut intake) = self.intake {
            intake.finish(self.db, self.table)?;
        }
        Ok(self.written)
    }

    fn put(&mut self, row: &Row) -> Result<(), StoreError> {
        let same = self.last.len() == row.len()
            && self
                .last
                .iter()
                .zip(row)
                .all(|(last, (name, _))| last == name);
        if !same || self.idx == 0 {
            self.last = row.iter().map(|(name, _)| name.clone()).collect();
            if !self.shapes.contains_key(&self.last) {
                let shape = self.shape(row)?;
                self.shapes.insert(self.last.clone(), shape);
            }
        }
        let idx = self.idx;
        self.idx += 1;
        let Some(shape) = self.shapes.get_mut(&self.last) else {
            return Err(StoreError::Internal("a row without a shape".to_owned()));
        };
        let mut cells = Vec::with_capacity(row.len() + 1);
        for ((name, cell), (place, type_)) in row.iter().zip(&shape.places) {
            let Some(type_) = type_ else {
                continue;
            };
            let kept = to_sql(*type_, cell)
                .ok_or_else(|| misfit(self.table, (idx, self.count), name, cell))?;
            cells.push(match &mut self.intake {
                None => kept,
                Some(intake) => intake
                    .take(*place, kept)?
                    .map_err(|refusal| refusal.error(&format!("row {}", idx + 1), name))?,
            });
        }
        if let Some(find) = &mut shape.find {
            let key = key_cells(self.table, idx, (row, &shape.key), self.intake.as_mut())?;
            let found: Option<i64> = find
                .query_row(params_from_iter(&key), |row| row.get(0))
                .optional()
                .map_err(failed)?;
            if let Some(id) = found {
                if let Some(update) = &mut shape.update {
                    cells.push(Sql::Integer(id));
                    run(update, &cells)?;
                }
                self.written.updated += 1;
                self.written.note(id);
                return Ok(());
            }
        }
        for (column, at) in self.table.key().iter().zip(&shape.key) {
            if at.is_none_or(|at| row[at].1 == Cell::Nil) {
                return Err(no_key(idx, &column.name));
            }
        }
        if let Some(missing) = shape.missing {
            let name = &self.table.columns[missing].name;
            return Err(Refusal::missing().error(&format!("row {}", idx + 1), name));
        }
        run(&mut shape.insert, &cells).map_err(|error| match error {
            StoreError::Rejected { .. } => duplicate(self.table, (idx, row)),
            other => other,
        })?;
        self.written.inserted += 1;
        self.written.note(self.db.last_insert_rowid());
        Ok(())
    }

    fn shape(&self, row: &Row) -> Result<Shape<'a>, StoreError> {
        let table = self.table;
        let mut places = Vec::with_capacity(row.len());
        for (name, _) in row {
            let found = table.columns.iter().position(|column| column.name == *name);
            let place =
                found.ok_or_else(|| StoreError::Internal(format!("no column {name} to fill")))?;
            places.push((place, table.columns[place].type_));
        }
        let typed = places.iter().filter(|(_, type_)| type_.is_some());
        let mut names: Vec<String> = typed.map(|(at, _)| table.columns[*at].sql()).collect();
        let prepare = |sql: String| self.db.prepare(&sql).map_err(failed);
        let update = match names.is_empty() {
            true => None,
            false => {
                let sets: Vec<String> = names.iter().map(|name| format!("{name} = ?")).collect();
                let sets = sets.join(", ");
                Some(format!(
                    "UPDATE {} SET {sets} WHERE row_id = ?",
                    table.sql()
                ))
            }
        };
        let mut values = vec!["?".to_owned(); names.len()];
        if let Some([part]) = table.parts.as_deref() {
            names.push("part".to_owned());
            values.push(part.to_string());
        }
        let insert = match names.is_empty() {
            true => format!("INSERT INTO {} DEFAULT VALUES", table.sql()),
            false => format!(
                "INSERT INTO {} ({}) VALUES ({})",
                table.sql(),
                names.join(", "),
                values.join(", ")
            ),
        };
        let key = table.key();
        let upserts = self.mode == WriteMode::Upsert;
        let find = upserts.then(|| {
            let mut tests: Vec<String> = key
                .iter()
                .map(|column| format!("{} = ?", column.sql()))
                .collect();
            tests.extend(partition::condition(table));
            format!(
                "SELECT row_id FROM {} WHERE {}",
                table.sql(),
                tests.join(" AND ")
            )
        });
        let given: Vec<usize> = places.iter().map(|(place, _)| *place).collect();
        Ok(Shape {
            key: key
                .iter()
                .map(|column| row.iter().position(|(name, _)| *name == column.name))
                .collect(),
            insert: prepare(insert)?,
            find: find.map(prepare).transpose()?,
            update: update.filter(|_| upserts).map(prepare).transpose()?,
            missing: self
                .intake
                .as_ref()
                .and_then(|intake| intake.missing(&given)),
            places,
        })
    }
}

/// Returns the key of a row in stored form.
fn key_cells(
    table: &Table,
    idx: usize,
    (row, key): (&Row, &[Option<usize>]),
    mut intake: Option<&mut Intake>,
) -> Result<Vec<Sql>, StoreError> {
    let mut cells = Vec::with_capacity(key.len());
    for (column, at) in table.key().iter().zip(key) {
        let cell = at.map_or(&Cell::Nil, |at| &row[at].1);
        let kept = column.type_.and_then(|type_| to_sql(type_, cell));
        let kept = match kept {
            Some(Sql::Null) | None => return Err(no_key(idx, &column.name)),
            Some(kept) => kept,
        };
        let place = table
            .columns
            .iter()
            .position(|known| known.idx == column.idx);
        cells.push(match (&mut intake, place) {
            (Some(intake), Some(place)) => intake
                .take(place, kept)?
                .map_err(|refusal| refusal.error(&format!("row {}", idx + 1), &column.name))?,
            _ => kept,
        });
    }
    Ok(cells)
}

fn run(statement: &mut Statement<'_>, cells: &[Sql]) -> Result<usize, StoreError> {
    statement
        .execute(params_from_iter(cells))
        .map_err(unexecuted)
}
