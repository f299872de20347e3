//! Reads pages of rows, and single rows.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use flowstone_lang::value::Value;
use flowstone_model::codec::{decode, digest_bytes, encode};
use flowstone_model::ports::StoreError;
use flowstone_model::table::{
    ColumnType, MAX_PAGE, PageStart, ROW_ID, RowChoice, RowsQuery, Sort, TableTarget,
};
use rusqlite::types::Value as Sql;
use rusqlite::{Connection, params_from_iter};

use super::super::failure::{failed, rejected, with_hint};
use super::cell::to_edn;
use super::filter::{Condition, Operand, choice, filter, order};
use super::partition;
use super::registry::Table;
use super::update;
use crate::edn::{self, MapText};

/// The selected columns: their SQL, and the format of their cells.
pub(super) struct Selection {
    pub names: Vec<String>,
    keys: Vec<String>,
    pub sql: Vec<String>,
    pub types: Vec<ColumnType>,
}

impl Selection {
    /// Selects columns by name; all columns if there are no names.
    pub(super) fn of(table: &Table, names: &[String]) -> Result<Selection, StoreError> {
        let names: Vec<String> = match names {
            [] => table
                .columns
                .iter()
                .map(|column| column.name.clone())
                .collect(),
            names => names.to_vec(),
        };
        let operands = names
            .iter()
            .map(|name| Operand::of(table, name))
            .collect::<Result<Vec<_>, _>>()?;
        Ok(Selection {
            keys: names.iter().map(|name| edn::keyword(name)).collect(),
            sql: operands.iter().map(|operand| operand.sql.clone()).collect(),
            types: operands
                .iter()
                .map(|operand| operand.type_.unwrap_or(ColumnType::Json))
                .collect(),
            names,
        })
    }

    /// Writes a row as EDN text.
    pub(super) fn row_text(&self, cells: &[Sql]) -> String {
        let mut out = String::from("{");
        for (idx, key) in self.keys.iter().enumerate() {
            if idx > 0 {
                out.push(' ');
            }
            out.push_str(key);
            out.push(' ');
            out.push_str(
                &cells
                    .get(idx)
                    .map_or("nil".to_owned(), |cell| to_edn(self.types[idx], cell)),
            );
        }
        out.push('}');
        out
    }
}

pub(super) fn page(db: &Connection, query: &RowsQuery) -> Result<String, StoreError> {
    let table = Table::open(db, &query.table)?;
    let limit = query.page.limit;
    if !(1..=MAX_PAGE).contains(&limit) {
        let message = format!("the limit of a page must be from 1 to {MAX_PAGE}, got {limit}");
        return Err(rejected("E0627", "bad-config", message));
    }
    let selection = Selection::of(&table, &query.select)?;
    let mut condition = Condition::default();
    filter(&table, &query.filter, &mut condition)?;
    let total = match query.page.total {
        true => Some(count(db, &table, &condition)?),
        false => None,
    };
    let order = order(&table, &query.sort)?;
    let sort = sort_columns(&table, &query.sort)?;
    if let PageStart::Cursor(Some(cursor)) = &query.page.from {
        after(&table, (&query.sort, &sort), cursor, &mut condition)?;
    }
    let offset = match query.page.from {
        PageStart::Offset(offset) => offset,
        PageStart::Cursor(_) => 0,
    };
    let sql = format!(
        "SELECT {} FROM {} WHERE {} ORDER BY {order} LIMIT {} OFFSET {offset}",
        [
            selection.sql.clone(),
            sort.clone(),
            vec!["row_id".to_owned()]
        ]
        .concat()
        .join(", "),
        table.sql(),
        condition.sql,
        limit + 1,
    );
    let mut found = read(db, &sql, &condition.cells)?;
    let more = found.len() > limit;
    found.truncate(limit);
    let next = found
        .last()
        .filter(|_| more)
        .map(|last| &last[selection.sql.len()..]);
    let mut page = MapText::new();
    page = match &query.page.from {
        PageStart::Offset(offset) => {
            let next = next.map_or("nil".to_owned(), |_| (offset + limit).to_string());
            page.raw("mode", ":offset")
                .count("limit", limit)
                .count("offset", *offset)
                .bool("has-more", more)
                .raw("next-offset", &next)
        }
        PageStart::Cursor(_) => {
            let next = next.map_or("nil".to_owned(), |last| {
                edn::text(&cursor(&table, &query.sort, last))
            });
            page.raw("mode", ":cursor")
                .count("limit", limit)
                .bool("has-more", more)
                .raw("next-cursor", &next)
        }
    };
    if let Some(total) = total {
        page = page.raw("total-count", &total.to_string());
    }
    let rows = found.iter().map(|cells| selection.row_text(cells));
    let mut answer = MapText::new()
        .raw("rows", &edn::vector(rows))
        .count("count", found.len())
        .raw("page", &page.finish());
    let ids: Vec<i64> = found.iter().filter_map(|cells| row_id(cells)).collect();
    if let Some(formats) = update::formats(db, &table, &ids)? {
        answer = answer.raw("formats", &formats);
    }
    Ok(answer.finish())
}

/// Returns the number of a row that was read: its last cell.
fn row_id(cells: &[Sql]) -> Option<i64> {
    match cells.last() {
        Some(Sql::Integer(id)) => Some(*id),
        _ => None,
    }
}

fn count(db: &Connection, table: &Table, condition: &Condition) -> Result<i64, StoreError> {
    let sql = format!(
        "SELECT count(*) FROM {} WHERE {}",
        table.sql(),
        condition.sql
    );
    db.prepare(&sql)
        .and_then(|mut sql| sql.query_row(params_from_iter(&condition.cells), |row| row.get(0)))
        .map_err(failed)
}

/// Runs a query and returns its rows, each as its cells.
pub(super) fn read(db: &Connection, sql: &str, cells: &[Sql]) -> Result<Vec<Vec<Sql>>, StoreError> {
    let mut sql = db.prepare(sql).map_err(failed)?;
    let width = sql.column_count();
    let rows = sql
        .query_map(params_from_iter(cells), |row| {
            (0..width).map(|idx| row.get(idx)).collect()
        })
        .map_err(failed)?;
    rows.collect::<Result<_, _>>().map_err(failed)
}

fn sort_columns(table: &Table, sort: &[Sort]) -> Result<Vec<String>, StoreError> {
    sort.iter()
        .map(|sort| Operand::of(table, &sort.column).map(|operand| operand.plain()))
        .collect()
}

/// Returns the cursor after a row: its sort values, its number, and the query that it is valid for.
fn cursor(table: &Table, sort: &[Sort], last: &[Sql]) -> String {
    let cells = last.iter().map(|cell| match cell {
        Sql::Null | Sql::Blob(_) => Value::Nil,
        Sql::Integer(int) => Value::Int(*int),
        Sql::Real(float) => Value::Float(*float),
        Sql::Text(text) => Value::from(text.as_str()),
    });
    let place = Value::vector([Value::from(query_digest(table, sort)), Value::vector(cells)]);
    URL_SAFE_NO_PAD.encode(encode(&place).unwrap_or_default())
}

fn query_digest(table: &Table, sort: &[Sort]) -> String {
    let parts: Vec<String> = sort
        .iter()
        .map(|sort| format!("{}\u{0}{}", sort.column, sort.descending))
        .collect();
    let within = partition::condition(table).unwrap_or_default();
    let query = format!("{}\u{0}{}{within}", table.id, parts.join("\u{0}"));
    let mut digest = digest_bytes(query.as_bytes());
    digest.truncate(12);
    digest
}

/// Adds the condition that a row comes after a cursor.
fn after(
    table: &Table,
    (sort, columns): (&[Sort], &[String]),
    cursor: &str,
    out: &mut Condition,
) -> Result<(), StoreError> {
    let Some(place) = read_cursor(table, sort, cursor) else {
        let error = rejected(
            "E0627",
            "bad-config",
            "the cursor does not belong to this query".to_owned(),
        );
        return Err(with_hint(
            error,
            "use `:next-cursor` of the previous page, with the same table and sort",
        ));
    };
    out.sql = format!("({}) AND ", out.sql);
    // A weaker condition than the following one, but in a form for which an index can be used.
    if let ([first, ..], [column, ..], [cell, ..]) = (sort, columns, place.as_slice())
        && !first.descending
        && !matches!(cell, Sql::Null)
    {
        out.sql.push_str(&format!("{column} >= ? AND "));
        out.cells.push(cell.clone());
    }
    out.sql.push('(');
    for at in 0..=columns.len() {
        out.sql.push_str(if at > 0 { " OR (" } else { "(" });
        for (column, cell) in columns.iter().zip(&place).take(at) {
            out.sql.push_str(&format!("{column} IS ? AND "));
            out.cells.push(cell.clone());
        }
        let row_id = "row_id".to_owned();
        let column = columns.get(at).unwrap_or(&row_id);
        let descending = sort.get(at).is_some_and(|sort| sort.descending);
        // Missing cells come first, or last in descending order.
        match (&place[at], descending) {
            (Sql::Null, false) => out.sql.push_str(&format!("{column} IS NOT NULL")),
            (Sql::Null, true) => out.sql.push('0'),
            (cell, false) => {
                out.sql.push_str(&format!("{column} > ?"));
                out.cells.push(cell.clone());
            }
            (cell, true) => {
                out.sql
                    .push_str(&format!("({column} < ? OR {column} IS NULL)"));
                out.cells.push(cell.clone());
            }
        }
        out.sql.push(')');
    }
    out.sql.push(')');
    Ok(())
}

fn read_cursor(table: &Table, sort: &[Sort], cursor: &str) -> Option<Vec<Sql>> {
    let text = String::from_utf8(URL_SAFE_NO_PAD.decode(cursor).ok()?).ok()?;
    let place = decode(&text).ok()?;
    let parts = place.as_vector()?;
    if parts.get(0)?.as_str()? != query_digest(table, sort) {
        return None;
    }
    let cells: Vec<Sql> = parts
        .get(1)?
        .as_vector()?
        .iter()
        .map(|cell| match cell {
            Value::Int(int) => Sql::Integer(*int),
            Value::Float(float) => Sql::Real(*float),
            Value::Text(text) => Sql::Text(text.as_str().to_owned()),
            _ => Sql::Null,
        })
        .collect();
    (cells.len() == sort.len() + 1).then_some(cells)
}

pub(super) fn one(
    db: &Connection,
    name: &TableTarget,
    row: &RowChoice,
    select: &[String],
) -> Result<String, StoreError> {
    let table = Table::open(db, name)?;
    let selection = Selection::of(&table, select)?;
    let mut condition = Condition::default();
    choice(&table, row, &mut condition)?;
    let sql = format!(
        "SELECT {} FROM {} WHERE {} ORDER BY row_id LIMIT 1",
        [selection.sql.clone(), vec!["row_id".to_owned()]]
            .concat()
            .join(", "),
        table.sql(),
        condition.sql
    );
    let found = read(db, &sql, &condition.cells)?;
    let answer = MapText::new();
    Ok(match found.first() {
        None => answer.raw("row", "nil").bool("exists?", false).finish(),
        Some(cells) => {
            let id = cells
                .last()
                .map_or("nil".to_owned(), |id| to_edn(ColumnType::Long, id));
            let answer = answer
                .raw("row", &selection.row_text(cells))
                .bool("exists?", true)
                .raw(ROW_ID, &id);
            let ids: Vec<i64> = row_id(cells).into_iter().collect();
            match update::formats(db, &table, &ids)? {
                Some(formats) => answer.raw("formats", &formats).finish(),
                None => answer.finish(),
            }
        }
    })
}
