//! Metrics of a group: computed cell by cell, exactly if the column is exact.

use std::cmp::Ordering;
use std::collections::HashSet;
use std::str::FromStr as _;

use flowstone_lang::value::BigDecimal;
use flowstone_model::ports::StoreError;
use flowstone_model::table::{ColumnType, MetricKind};
use rusqlite::types::{Value as Sql, ValueRef};

use super::super::failure::rejected;
use super::cell::{holds, to_edn};

/// The value of a metric or group, with its type.
#[derive(Debug, Clone)]
pub(super) struct Figure {
    pub cell: Sql,
    pub type_: ColumnType,
}

impl Figure {
    pub(super) fn edn(&self) -> String {
        to_edn(self.type_, &self.cell)
    }

    pub(super) fn long(long: i64) -> Figure {
        Figure {
            cell: Sql::Integer(long),
            type_: ColumnType::Long,
        }
    }

    fn double(double: f64) -> Figure {
        Figure {
            cell: Sql::Real(double),
            type_: ColumnType::Double,
        }
    }

    fn nil(type_: ColumnType) -> Figure {
        Figure {
            cell: Sql::Null,
            type_,
        }
    }
}

/// Adds bytes that are equal exactly for equal cells.
pub(super) fn push_identity(out: &mut Vec<u8>, type_: ColumnType, cell: ValueRef<'_>) {
    let mut push = |kind: u8, bytes: &[u8]| {
        out.push(kind);
        out.extend_from_slice(bytes);
    };
    match (type_, cell) {
        (_, ValueRef::Null) => push(b'n', &[]),
        (ColumnType::Double, ValueRef::Integer(long)) => {
            push(b'f', &(long as f64).to_bits().to_le_bytes());
        }
        (_, ValueRef::Integer(long)) => push(b'i', &long.to_le_bytes()),
        (_, ValueRef::Real(double)) => push(b'f', &double.to_bits().to_le_bytes()),
        (type_, ValueRef::Text(text) | ValueRef::Blob(text)) => {
            let normal = match type_ {
                ColumnType::Decimal => {
                    let digits = String::from_utf8_lossy(text);
                    Some(decimal(&digits).normalized().to_plain_string())
                }
                _ => None,
            };
            let text = normal.as_ref().map_or(text, String::as_bytes);
            push(b't', &(text.len() as u64).to_le_bytes());
            out.extend_from_slice(text);
        }
    }
}

/// Compares cells of one type: missing cells first, numbers before text.
pub(super) fn compare(type_: ColumnType, left: &Sql, right: &Sql) -> Ordering {
    let rank = |cell: &Sql| match cell {
        Sql::Null => 0,
        Sql::Integer(_) | Sql::Real(_) => 1,
        Sql::Text(_) | Sql::Blob(_) => 2,
    };
    match (left, right) {
        (Sql::Integer(left), Sql::Integer(right)) => left.cmp(right),
        (Sql::Integer(left), Sql::Real(right)) => (*left as f64).total_cmp(right),
        (Sql::Real(left), Sql::Integer(right)) => left.total_cmp(&(*right as f64)),
        (Sql::Real(left), Sql::Real(right)) => left.total_cmp(right),
        (Sql::Text(left), Sql::Text(right)) if type_ == ColumnType::Decimal => decimal(left)
            .cmp(&decimal(right))
            .then_with(|| left.cmp(right)),
        (Sql::Text(left), Sql::Text(right)) => left.cmp(right),
        (left, right) => rank(left).cmp(&rank(right)),
    }
}

fn decimal(digits: &str) -> BigDecimal {
    BigDecimal::from_str(digits).unwrap_or_default()
}

/// The state of one metric of a group.
pub(super) struct Tally {
    kind: MetricKind,
    type_: ColumnType,
    seen: Seen,
}

enum Seen {
    Count(i64),
    Distinct(HashSet<Vec<u8>>),
    Whole(i64),
    Real(f64),
    Exact(BigDecimal),
    Mean { sum: f64, count: i64 },
    Chosen(Option<Sql>),
    All(Vec<f64>),
}

impl Tally {
    /// Starts a metric over a column of a type.
    pub(super) fn new(
        kind: MetricKind,
        type_: ColumnType,
        column: &str,
    ) -> Result<Tally, StoreError> {
        let number = matches!(
            type_,
            ColumnType::Long | ColumnType::Double | ColumnType::Decimal
        );
        let needs_number = matches!(
            kind,
            MetricKind::Sum | MetricKind::Avg | MetricKind::Median | MetricKind::Percentile(_)
        );
        let needs_order = matches!(kind, MetricKind::Min | MetricKind::Max);
        if (needs_number && !number) || (needs_order && type_ == ColumnType::Json) {
            let message = format!(
                "this metric needs numbers, and `{column}` holds {}",
                holds(type_)
            );
            return Err(rejected("E0628", "bad-config", message));
        }
        let seen = match (kind, type_) {
            (MetricKind::Count, _) => Seen::Count(0),
            (MetricKind::CountDistinct, _) => Seen::Distinct(HashSet::new()),
            (MetricKind::Sum, ColumnType::Long) => Seen::Whole(0),
            (MetricKind::Sum, ColumnType::Decimal) => Seen::Exact(BigDecimal::default()),
            (MetricKind::Sum, _) => Seen::Real(0.0),
            (MetricKind::Avg, _) => Seen::Mean { sum: 0.0, count: 0 },
            (MetricKind::Median | MetricKind::Percentile(_), _) => Seen::All(Vec::new()),
            (MetricKind::First | MetricKind::Last | MetricKind::Max | MetricKind::Min, _) => {
                Seen::Chosen(None)
            }
        };
        Ok(Tally { kind, type_, seen })
    }

    /// Adds the next cell of the group.
    pub(super) fn add(&mut self, cell: ValueRef<'_>) -> Result<(), StoreError> {
        if matches!(cell, ValueRef::Null) {
            return Ok(());
        }
        match &mut self.seen {
            Seen::Count(count) => *count += 1,
            Seen::Distinct(seen) => {
                let mut identity = Vec::new();
                push_identity(&mut identity, self.type_, cell);
                seen.insert(identity);
            }
            Seen::Whole(sum) => {
                let ValueRef::Integer(long) = cell else {
                    return Ok(());
                };
                *sum = sum.checked_add(long).ok_or_else(|| {
                    rejected(
                        "E0628",
                        "invalid",
                        "the sum goes beyond the largest integer".to_owned(),
                    )
                })?;
            }
            Seen::Real(sum) => *sum += float(cell),
            Seen::Exact(sum) => {
                if let ValueRef::Text(digits) = cell {
                    *sum += decimal(&String::from_utf8_lossy(digits));
                }
            }
            Seen::Mean { sum, count } => {
                *sum += float(cell);
                *count += 1;
            }
            Seen::All(all) => all.push(float(cell)),
            Seen::Chosen(chosen) => choose(chosen, self.kind, self.type_, cell),
        }
        Ok(())
    }

    /// Returns the value of the metric: nil if it is undefined without cells.
    pub(super) fn finish(self) -> Figure {
        match self.seen {
            Seen::Count(count) => Figure::long(count),
            Seen::Distinct(seen) => Figure::long(i64::try_from(seen.len()).unwrap_or(i64::MAX)),
            Seen::Whole(sum) => Figure::long(sum),
            Seen::Real(sum) => Figure::double(sum),
            Seen::Exact(sum) => Figure {
                cell: Sql::Text(sum.to_plain_string()),
                type_: ColumnType::Decimal,
            },
            Seen::Mean { count: 0, .. } => Figure::nil(ColumnType::Double),
            Seen::Mean { sum, count } => Figure::double(sum / count as f64),
            Seen::Chosen(chosen) => Figure {
                cell: chosen.unwrap_or(Sql::Null),
                type_: self.type_,
            },
            Seen::All(all) => {
                let share = match self.kind {
                    MetricKind::Percentile(share) => share,
                    _ => 0.5,
                };
                percentile(all, share).map_or(Figure::nil(ColumnType::Double), Figure::double)
            }
        }
    }
}

/// Keeps the first, last, smallest or largest cell.
fn choose(chosen: &mut Option<Sql>, kind: MetricKind, type_: ColumnType, cell: ValueRef<'_>) {
    // A text is copied only if it is kept; texts of decimals are compared as numbers.
    let order = |best: &Sql| match (best, cell) {
        (Sql::Text(best), ValueRef::Text(text)) if type_ != ColumnType::Decimal => {
            text.cmp(best.as_bytes())
        }
        (best, cell) => {
            let cell = Sql::try_from(cell).unwrap_or(Sql::Null);
            compare(type_, &cell, best)
        }
    };
    let replaces = match (&chosen, kind) {
        (None, _) | (_, MetricKind::Last) => true,
        (Some(best), MetricKind::Max) => order(best).is_gt(),
        (Some(best), MetricKind::Min) => order(best).is_lt(),
        (Some(_), _) => false,
    };
    if replaces {
        *chosen = Sql::try_from(cell).ok();
    }
}

fn float(cell: ValueRef<'_>) -> f64 {
    match cell {
        ValueRef::Integer(long) => long as f64,
        ValueRef::Real(double) => double,
        ValueRef::Text(digits) => std::str::from_utf8(digits)
            .ok()
            .and_then(|digits| digits.parse().ok())
            .unwrap_or(0.0),
        ValueRef::Null | ValueRef::Blob(_) => 0.0,
    }
}

/// Returns the value below which a share of all values lies, interpolated between two values.
fn percentile(mut all: Vec<f64>, share: f64) -> Option<f64> {
    all.sort_by(f64::total_cmp);
    let last = all.len().checked_sub(1)?;
    let place = share.clamp(0.0, 1.0) * last as f64;
    let below = place.floor() as usize;
    let (low, high) = (all[below], all[(below + 1).min(last)]);
    match place.fract() == 0.0 || low == high {
        true => Some(low),
        false => Some(rounded(low + (high - low) * place.fract())),
    }
}

/// Rounds to the 15 significant digits that spreadsheets show: the share is rarely a binary fraction, so further digits
/// come from the computation, not from the data.
fn rounded(value: f64) -> f64 {
    format!("{value:.14e}").parse().unwrap_or(value)
}
