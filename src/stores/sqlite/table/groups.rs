//! Grouping of rows: each row is read once, and its group is found by the bytes of its grouping cells.
//!
//! A sort, as in SQL's `GROUP BY`, is not needed. If finding a group takes more than comparing bytes, because of a
//! bucket or a decimal, the group of some raw bytes is remembered.

use std::collections::HashMap;

use flowstone_model::ports::StoreError;
use flowstone_model::table::{Aggregate, Bucket, ColumnType, DateUnit, GroupBy, MetricKind};
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{ToSpan as _, Unit};
use rusqlite::types::{Value as Sql, ValueRef};
use rusqlite::{Connection, params_from_iter};

use super::super::failure::{failed, rejected, with_hint};
use super::cell::{civil, holds};
use super::filter::{Condition, Operand, filter};
use super::metric::{Figure, Tally, push_identity};
use super::registry::Table;

/// Maximum number of groups.
const MAX_GROUPS: usize = 100_000;
/// Maximum number of distinct raw values whose groups are remembered.
const MAX_SEEN: usize = 65_536;

/// The values of a group: its grouping cells and its metrics, in the order of the columns of the result.
pub(super) type Group = Vec<Figure>;

/// Reads the matching rows and returns their groups, in the order of their first rows.
pub(super) fn collect(
    db: &Connection,
    table: &Table,
    query: &Aggregate,
) -> Result<Vec<Group>, StoreError> {
    let mut groups = Groups::new(table, query)?;
    let mut condition = Condition::default();
    filter(table, &query.filter, &mut condition)?;
    if let Some(columns) = groups.counts() {
        let sql = format!(
            "SELECT {columns} FROM {} WHERE {}",
            table.sql(),
            condition.sql
        );
        let counts = |row: &rusqlite::Row<'_>| {
            let counts = 0..query.metrics.len();
            counts.map(|idx| row.get(idx).map(Figure::long)).collect()
        };
        let mut sql = db.prepare(&sql).map_err(failed)?;
        let group = sql.query_row(params_from_iter(&condition.cells), counts);
        return group.map(|group| vec![group]).map_err(failed);
    }
    let sql = format!(
        "SELECT {} FROM {} WHERE {}{}",
        groups.columns.join(", "),
        table.sql(),
        condition.sql,
        if groups.needs_order() {
            " ORDER BY row_id"
        } else {
            ""
        }
    );
    let mut sql = db.prepare(&sql).map_err(failed)?;
    let mut rows = sql
        .query(params_from_iter(&condition.cells))
        .map_err(failed)?;
    while let Some(row) = rows.next().map_err(failed)? {
        groups.add(row)?;
    }
    Ok(groups.finish())
}

/// The groups while their rows are read.
struct Groups<'a> {
    query: &'a Aggregate,
    by: Vec<Operand>,
    /// The column of each metric; `None` counts rows.
    of: Vec<Option<Operand>>,
    /// The columns that are read of each row, each once; the row's number is the last.
    columns: Vec<String>,
    /// The index in `columns` of each grouping column.
    by_at: Vec<usize>,
    /// The index in `columns` of each metric's column.
    of_at: Vec<Option<usize>>,
    tallies: Vec<Tallied>,
    /// The index of a group in `tallies`, by the bytes that identify the group.
    places: HashMap<Vec<u8>, usize>,
    /// The index of a group in `tallies`, by the raw bytes of its cells, if these do not identify it.
    seen: HashMap<Vec<u8>, usize>,
    /// Tells whether the raw bytes of the cells identify a group.
    is_plain: bool,
    key: Vec<u8>,
}

struct Tallied {
    key: Group,
    tallies: Vec<Tally>,
    /// The number of the first row of the group.
    first: i64,
}

impl<'a> Groups<'a> {
    fn new(table: &Table, query: &'a Aggregate) -> Result<Groups<'a>, StoreError> {
        let by = query
            .group_by
            .iter()
            .map(|group| Operand::of(table, &group.column))
            .collect::<Result<Vec<_>, _>>()?;
        for (group, operand) in query.group_by.iter().zip(&by) {
            check_bucket(group, operand)?;
        }
        let of = query.metrics.iter().map(|metric| {
            let column = metric.column.as_deref();
            column.map(|column| Operand::of(table, column)).transpose()
        });
        let of = of.collect::<Result<Vec<_>, _>>()?;
        let mut columns = Vec::new();
        let mut place = |operand: &Operand| {
            let known = columns.iter().position(|sql| *sql == operand.sql);
            known.unwrap_or_else(|| {
                columns.push(operand.sql.clone());
                columns.len() - 1
            })
        };
        let by_at = by.iter().map(&mut place).collect();
        let of_at = of
            .iter()
            .map(|operand| operand.as_ref().map(&mut place))
            .collect();
        columns.push("row_id".to_owned());
        let mut groups = Groups {
            is_plain: query.group_by.iter().all(|group| group.bucket.is_none())
                && by
                    .iter()
                    .all(|operand| operand.type_ != Some(ColumnType::Decimal)),
            query,
            by,
            of,
            columns,
            by_at,
            of_at,
            tallies: Vec::new(),
            places: HashMap::new(),
            seen: HashMap::new(),
            key: Vec::new(),
        };
        let tallies = groups.new_tallies()?;
        if groups.by.is_empty() {
            groups.tallies.push(Tallied {
                key: Vec::new(),
                tallies,
                first: 0,
            });
        }
        Ok(groups)
    }

    fn new_tallies(&self) -> Result<Vec<Tally>, StoreError> {
        let metrics = self.query.metrics.iter().zip(&self.of);
        metrics
            .map(|(metric, operand)| {
                let type_ = operand.as_ref().and_then(|operand| operand.type_);
                let fallback = match metric.kind {
                    MetricKind::Count
                    | MetricKind::CountDistinct
                    | MetricKind::First
                    | MetricKind::Last => ColumnType::Json,
                    _ => ColumnType::Long,
                };
                let column = metric.column.as_deref().unwrap_or("*");
                Tally::new(metric.kind, type_.unwrap_or(fallback), column)
            })
            .collect()
    }

    /// Returns the SQL of the counts if the query asks for nothing else: then rows are not read one by one.
    fn counts(&self) -> Option<String> {
        let counts = self
            .query
            .metrics
            .iter()
            .zip(&self.of)
            .map(|(metric, operand)| {
                let is_count = metric.kind == MetricKind::Count;
                match operand {
                    None if is_count => Some("count(*)".to_owned()),
                    Some(operand) if is_count => Some(format!("count({})", operand.sql)),
                    _ => None,
                }
            });
        let counts: Vec<String> = counts.collect::<Option<_>>()?;
        (self.by.is_empty() && !counts.is_empty()).then(|| counts.join(", "))
    }

    /// Tells whether the order of rows matters.
    fn needs_order(&self) -> bool {
        let metrics = self.query.metrics.iter();
        metrics
            .into_iter()
            .any(|metric| matches!(metric.kind, MetricKind::First | MetricKind::Last))
    }

    fn add(&mut self, row: &rusqlite::Row<'_>) -> Result<(), StoreError> {
        let at = match self.by.is_empty() {
            true => 0,
            false => self.place(row)?,
        };
        let tallies = &mut self.tallies[at].tallies;
        for (tally, place) in tallies.iter_mut().zip(&self.of_at) {
            let cell = match place {
                Some(place) => row.get_ref(*place).map_err(failed)?,
                // A metric without a column counts a 1 for each row.
                None => ValueRef::Integer(1),
            };
            tally.add(cell)?;
        }
        Ok(())
    }

    /// Finds the group of a row, and adds it if necessary.
    fn place(&mut self, row: &rusqlite::Row<'_>) -> Result<usize, StoreError> {
        self.key.clear();
        for (place, operand) in self.by_at.iter().zip(&self.by) {
            let cell = row.get_ref(*place).map_err(failed)?;
            let type_ = match self.is_plain {
                true => operand.type_.unwrap_or(ColumnType::Json),
                // Raw bytes: the group is remembered for exactly these.
                false => ColumnType::String,
            };
            push_identity(&mut self.key, type_, cell);
        }
        let known = if self.is_plain {
            &self.places
        } else {
            &self.seen
        };
        let at = match known.get(self.key.as_slice()) {
            Some(at) => *at,
            None => self.look_up(row)?,
        };
        let id = row.get(self.columns.len() - 1).map_err(failed)?;
        let first = &mut self.tallies[at].first;
        *first = (*first).min(id);
        Ok(at)
    }

    fn look_up(&mut self, row: &rusqlite::Row<'_>) -> Result<usize, StoreError> {
        let mut key = Vec::with_capacity(self.by.len());
        for (idx, operand) in self.by.iter().enumerate() {
            let cell: Sql = row.get(self.by_at[idx]).map_err(failed)?;
            key.push(bucketed(&self.query.group_by[idx], operand, cell));
        }
        let mut identity = Vec::new();
        for figure in &key {
            push_identity(&mut identity, figure.type_, ValueRef::from(&figure.cell));
        }
        let at = match self.places.get(&identity) {
            Some(at) => *at,
            None => self.new_group(key, identity)?,
        };
        if !self.is_plain && self.seen.len() < MAX_SEEN {
            self.seen.insert(self.key.clone(), at);
        }
        Ok(at)
    }

    fn new_group(&mut self, key: Group, identity: Vec<u8>) -> Result<usize, StoreError> {
        if self.tallies.len() >= MAX_GROUPS {
            let message = format!("there are more than {MAX_GROUPS} groups");
            return Err(with_hint(
                rejected("E0628", "too-large", message),
                "group by fewer columns, use a bucket, or narrow `:where`",
            ));
        }
        let at = self.tallies.len();
        let tallies = self.new_tallies()?;
        self.tallies.push(Tallied {
            key,
            tallies,
            first: i64::MAX,
        });
        self.places.insert(identity, at);
        Ok(at)
    }

    fn finish(mut self) -> Vec<Group> {
        self.tallies.sort_by_key(|group| group.first);
        let finished = self.tallies.into_iter().map(|group| {
            let figures = group.tallies.into_iter().map(Tally::finish);
            group.key.into_iter().chain(figures).collect()
        });
        finished.collect()
    }
}

fn check_bucket(group: &GroupBy, operand: &Operand) -> Result<(), StoreError> {
    let (fits, needs) = match &group.bucket {
        None => (true, ""),
        Some(Bucket::NumericBin { size }) if !size.is_finite() || *size <= 0.0 => {
            let message = format!("the size of a bin must be more than 0, got {size}");
            return Err(rejected("E0628", "bad-config", message));
        }
        Some(Bucket::NumericBin { .. }) => (
            matches!(
                operand.type_,
                Some(ColumnType::Long | ColumnType::Double | ColumnType::Decimal) | None
            ),
            "numbers",
        ),
        Some(Bucket::DateTrunc { .. }) => (
            matches!(
                operand.type_,
                Some(ColumnType::Date | ColumnType::Timestamp) | None
            ),
            "dates or instants",
        ),
    };
    match fits {
        true => Ok(()),
        false => {
            let holds = operand.type_.map_or("nothing yet", holds);
            let message = format!(
                "the bucket of `{}` needs {needs}, and the column holds {holds}",
                operand.name
            );
            Err(rejected("E0628", "bad-config", message))
        }
    }
}

fn bucketed(group: &GroupBy, operand: &Operand, cell: Sql) -> Figure {
    let type_ = operand.type_.unwrap_or(ColumnType::Json);
    match (&group.bucket, &cell) {
        (None, _) | (_, Sql::Null) => Figure { cell, type_ },
        (Some(Bucket::NumericBin { size }), cell) => bin(*size, type_, cell),
        (Some(Bucket::DateTrunc { unit }), cell) => Figure {
            cell: truncated(*unit, cell).unwrap_or(Sql::Null),
            type_,
        },
    }
}

fn bin(size: f64, type_: ColumnType, cell: &Sql) -> Figure {
    let whole = type_ == ColumnType::Long && size.fract() == 0.0 && size < 9e15;
    if let (Sql::Integer(long), true) = (cell, whole) {
        let size = size as i64;
        return Figure::long(long.div_euclid(size).saturating_mul(size));
    }
    let number = match cell {
        Sql::Integer(long) => *long as f64,
        Sql::Real(double) => *double,
        Sql::Text(digits) => digits.parse().unwrap_or(0.0),
        Sql::Null | Sql::Blob(_) => 0.0,
    };
    Figure {
        cell: Sql::Real((number / size).floor() * size),
        type_: ColumnType::Double,
    }
}

fn truncated(unit: DateUnit, cell: &Sql) -> Option<Sql> {
    match cell {
        Sql::Integer(millis) => {
            let start = start(unit, civil(*millis)?)?;
            Some(Sql::Integer(
                start
                    .to_zoned(TimeZone::UTC)
                    .ok()?
                    .timestamp()
                    .as_millisecond(),
            ))
        }
        Sql::Text(date) => {
            let date: jiff::civil::Date = date.parse().ok()?;
            Some(Sql::Text(
                start(unit, date.at(0, 0, 0, 0))?.date().to_string(),
            ))
        }
        Sql::Null | Sql::Real(_) | Sql::Blob(_) => None,
    }
}

fn start(unit: DateUnit, at: DateTime) -> Option<DateTime> {
    let date = at.date();
    let first = match unit {
        DateUnit::Hour => {
            return at
                .round(
                    jiff::civil::DateTimeRound::new()
                        .smallest(Unit::Hour)
                        .mode(jiff::RoundMode::Trunc),
                )
                .ok();
        }
        DateUnit::Day => date,
        DateUnit::Week => {
            let days = i64::from(date.weekday().to_monday_zero_offset());
            date.checked_sub(days.days()).ok()?
        }
        DateUnit::Month => date.first_of_month(),
        DateUnit::Quarter => {
            jiff::civil::Date::new(date.year(), (date.month() - 1) / 3 * 3 + 1, 1).ok()?
        }
        DateUnit::Year => date.first_of_year(),
    };
    Some(first.at(0, 0, 0, 0))
}
