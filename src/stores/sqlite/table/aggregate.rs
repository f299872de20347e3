//! Aggregations: groups of rows and their metrics.
//!
//! Matching rows are read once; groups are in the order of their first row unless the query sorts them.

use std::cmp::Ordering;

use flowstone_model::diagnostic::nearest;
use flowstone_model::ports::StoreError;
use flowstone_model::table::{Aggregate, Cell, Filter, Test};
use rusqlite::Connection;
use rusqlite::types::Value as Sql;

use super::super::failure::{rejected, with_hint};
use super::filter::{Operand, value};
use super::groups::{Group, collect};
use super::metric::compare;
use super::registry::{Table, listed};
use crate::edn::{self, MapText};

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
                let message = format!("`{}` cannot be used on groups", test.name());
                return Err(with_hint(
                    rejected("E0628", "bad-config", message),
                    "use it on rows, in `:where`",
                ));
            }
        })
    }
}
