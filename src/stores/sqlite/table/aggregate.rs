//! Groups of rows and their figures.
//!
//! Rows that fit are read once, in the order in which they were written; groups come in the order of
//! their first row unless the query sorts them.

use std::cmp::Ordering;
use std::collections::HashMap;

use flowstone_engine::diagnostic::nearest;
use flowstone_engine::ports::StoreError;
use flowstone_engine::table::{
    Aggregate, Bucket, Cell, ColumnType, DateUnit, Filter, GroupBy, MetricKind, Test,
};
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{ToSpan as _, Unit};
use rusqlite::types::Value as Sql;
use rusqlite::{Connection, params_from_iter};

use super::super::edn::{self, MapText};
use super::super::failure::{failed, rejected, with_hint};
use super::cell::{civil, holds};
use super::filter::{Condition, Operand, filter, value};
use super::metric::{Figure, Tally, compare};
use super::registry::{Table, listed};

/// More groups than this are refused.
const MAX_GROUPS: usize = 100_000;

/// The figures of a group, in the order of the columns of the result.
type Group = Vec<Figure>;

pub(super) fn aggregate(db: &Connection, query: &Aggregate) -> Result<String, StoreError> {
    let table = Table::open(db, &query.table)?;
    let names = names(query)?;
    let mut groups = collect(db, &table, query)?;
    let row = Row { names: &names };
    let mut kept = Vec::new();
    for group in groups.drain(..) {
        if row.fits(&group, &query.having)? {
            kept.push(group);
        }
    }
    let order = query
        .order_by
        .iter()
        .map(|sort| row.position(&sort.column).map(|idx| (idx, sort.descending)))
        .collect::<Result<Vec<_>, _>>()?;
    kept.sort_by(|left, right| compare_groups(&order, left, right));
    let total = kept.len();
    kept.truncate(query.limit.unwrap_or(usize::MAX));
    let keys: Vec<String> = names.iter().map(|name| edn::keyword(name)).collect();
    let groups = kept.iter().map(|group| {
        let entries: Vec<String> = keys
            .iter()
            .zip(group)
            .map(|(key, figure)| format!("{key} {}", figure.edn()))
            .collect();
        format!("{{{}}}", entries.join(" "))
    });
    Ok(MapText::new()
        .raw("groups", &edn::vector(groups))
        .count("count", kept.len())
        .count("total-count", total)
        .finish())
}

fn names(query: &Aggregate) -> Result<Vec<String>, StoreError> {
    let groups = query.group_by.iter().map(|group| group.name.clone());
    let names: Vec<String> = groups
        .chain(query.metrics.iter().map(|metric| metric.name.clone()))
        .collect();
    let twice = names
        .iter()
        .enumerate()
        .find(|(idx, name)| names[..*idx].contains(name));
    match twice {
        None => Ok(names),
        Some((_, name)) => {
            let error = rejected(
                "E0628",
                "bad-config",
                format!("two columns of the result are called `{name}`"),
            );
            Err(with_hint(error, "give one of them another name with `:as`"))
        }
    }
}

fn compare_groups(order: &[(usize, bool)], left: &Group, right: &Group) -> Ordering {
    order
        .iter()
        .map(|(idx, descending)| {
            let ordering = compare(left[*idx].type_, &left[*idx].cell, &right[*idx].cell);
            if *descending {
                ordering.reverse()
            } else {
                ordering
            }
        })
        .find(|ordering| ordering.is_ne())
        .unwrap_or(Ordering::Equal)
}

fn collect(db: &Connection, table: &Table, query: &Aggregate) -> Result<Vec<Group>, StoreError> {
    let mut groups = Groups::new(table, query)?;
    let mut condition = Condition::default();
    filter(table, &query.filter, &mut condition)?;
    let sql = format!(
        "SELECT {} FROM {} WHERE {} ORDER BY row_id",
        groups.columns().join(", "),
        table.sql(),
        condition.sql
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

/// Groups while their rows are read.
struct Groups<'a> {
    query: &'a Aggregate,
    by: Vec<Operand>,
    /// The column of each metric; `None` counts rows.
    of: Vec<Option<Operand>>,
    tallies: Vec<(Group, Vec<Tally>)>,
    /// Where the tallies of a group are, by what identifies it.
    places: HashMap<String, usize>,
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
        let mut groups = Groups {
            of: of.collect::<Result<Vec<_>, _>>()?,
            query,
            by,
            tallies: Vec::new(),
            places: HashMap::new(),
        };
        let first = groups.new_tallies()?;
        if groups.by.is_empty() {
            groups.tallies.push((Vec::new(), first));
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

    /// What to read of each row. A metric without a column sees a 1.
    fn columns(&self) -> Vec<String> {
        let by = self.by.iter().map(|operand| operand.sql.clone());
        let of = self.of.iter().map(|operand| match operand {
            Some(operand) => operand.sql.clone(),
            None => "1".to_owned(),
        });
        by.chain(of).chain(["row_id".to_owned()]).collect()
    }

    fn add(&mut self, row: &rusqlite::Row<'_>) -> Result<(), StoreError> {
        let at = match self.by.is_empty() {
            true => 0,
            false => self.place(row)?,
        };
        for (idx, tally) in self.tallies[at].1.iter_mut().enumerate() {
            let cell: Sql = row.get(self.by.len() + idx).map_err(failed)?;
            tally.add(&cell)?;
        }
        Ok(())
    }

    /// Finds the group of a row, making it if need be.
    fn place(&mut self, row: &rusqlite::Row<'_>) -> Result<usize, StoreError> {
        let mut key = Vec::with_capacity(self.by.len());
        for (idx, operand) in self.by.iter().enumerate() {
            let cell: Sql = row.get(idx).map_err(failed)?;
            key.push(bucketed(&self.query.group_by[idx], operand, cell));
        }
        let identity: Vec<String> = key.iter().map(Figure::identity).collect();
        let identity = identity.join(" ");
        if let Some(at) = self.places.get(&identity) {
            return Ok(*at);
        }
        if self.tallies.len() >= MAX_GROUPS {
            let message = format!("there are more than {MAX_GROUPS} groups");
            return Err(with_hint(
                rejected("E0628", "too-large", message),
                "group by fewer columns, use a bucket, or narrow `:where`",
            ));
        }
        let at = self.tallies.len();
        self.tallies.push((key, self.new_tallies()?));
        self.places.insert(identity, at);
        Ok(at)
    }

    fn finish(self) -> Vec<Group> {
        let finished = self.tallies.into_iter().map(|(key, tallies)| {
            let figures = tallies.into_iter().map(Tally::finish);
            key.into_iter().chain(figures).collect()
        });
        finished.collect()
    }
}

fn check_bucket(group: &GroupBy, operand: &Operand) -> Result<(), StoreError> {
    let (fits, needs) = match &group.bucket {
        None => (true, ""),
        Some(Bucket::NumericBin { size }) if !size.is_finite() || *size <= 0.0 => {
            let message = format!("the size of a bin is more than 0, and {size} is not");
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

/// The columns of the result, for conditions on groups.
struct Row<'a> {
    names: &'a [String],
}

impl Row<'_> {
    fn position(&self, name: &str) -> Result<usize, StoreError> {
        self.names
            .iter()
            .position(|known| known == name)
            .ok_or_else(|| {
                let names = || self.names.iter().map(String::as_str);
                let error = rejected(
                    "E0628",
                    "bad-config",
                    format!("the groups have no `{name}`"),
                );
                match nearest(name, names()) {
                    Some(near) => with_hint(error, format!("did you mean `{near}`?")),
                    None => with_hint(error, format!("they have {}", listed(names()))),
                }
            })
    }

    fn fits(&self, group: &Group, condition: &Filter) -> Result<bool, StoreError> {
        Ok(match condition {
            Filter::And(parts) => {
                for part in parts {
                    if !self.fits(group, part)? {
                        return Ok(false);
                    }
                }
                true
            }
            Filter::Or(parts) => {
                for part in parts {
                    if self.fits(group, part)? {
                        return Ok(true);
                    }
                }
                false
            }
            Filter::Not(inner) => !self.fits(group, inner)?,
            Filter::Test {
                column,
                test,
                operands,
            } => self.holds(group, column, *test, operands)?,
        })
    }

    fn holds(
        &self,
        group: &Group,
        name: &str,
        test: Test,
        cells: &[Cell],
    ) -> Result<bool, StoreError> {
        let figure = &group[self.position(name)?];
        let operand = Operand::plain_column(name, figure.type_);
        let missing = matches!(figure.cell, Sql::Null);
        let mut orders = Vec::new();
        for cell in cells {
            orders.push(match cell {
                Cell::Nil if missing => Ordering::Equal,
                Cell::Nil => Ordering::Greater,
                cell => compare(figure.type_, &figure.cell, &value(&operand, test, cell)?),
            });
        }
        let equal = orders.iter().any(|order| order.is_eq());
        let all = |fits: fn(Ordering) -> bool| {
            !missing && !orders.is_empty() && orders.iter().all(|order| fits(*order))
        };
        Ok(match test {
            Test::IsNull => missing,
            Test::NotNull => !missing,
            Test::Equal | Test::In => equal,
            Test::NotEqual | Test::NotIn => !equal,
            Test::Less => all(Ordering::is_lt),
            Test::LessOrEqual => all(Ordering::is_le),
            Test::Greater => all(Ordering::is_gt),
            Test::GreaterOrEqual => all(Ordering::is_ge),
            Test::Between => {
                !missing && matches!(orders.as_slice(), [low, high] if low.is_ge() && high.is_le())
            }
            Test::Contains | Test::NotContains | Test::StartsWith | Test::EndsWith | Test::Like => {
                let message = format!("`{}` cannot be asked of groups", test.name());
                return Err(with_hint(
                    rejected("E0628", "bad-config", message),
                    "ask it of rows, in `:where`",
                ));
            }
        })
    }
}
