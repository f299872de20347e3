//! Conditions on rows, as SQL with bound values.

use std::rc::Rc;

use flowstone_model::ports::StoreError;
use flowstone_model::table::{Cell, ColumnType, Filter, PARTITION, ROW_ID, RowChoice, Sort, Test};
use rusqlite::types::Value as Sql;

use super::super::failure::{rejected, with_hint};
use super::cell::{data_text, holds, shown, to_sql};
use super::options::Options;
use super::partition;
use super::registry::Table;

/// Maximum depth of a condition.
const MAX_DEPTH: usize = 50;
/// Maximum number of bound values.
const MAX_VALUES: usize = 10_000;

/// A condition under construction: SQL, and its bound values.
#[derive(Default)]
pub(super) struct Condition {
    pub sql: String,
    pub cells: Vec<Sql>,
}

impl Condition {
    fn push(&mut self, sql: &str) {
        self.sql.push_str(sql);
    }

    fn bind(&mut self, cell: Sql) {
        self.sql.push('?');
        self.cells.push(cell);
    }
}

/// A comparable part of a row: a column, or the row's number.
pub(super) struct Operand {
    pub name: String,
    pub sql: String,
    pub type_: Option<ColumnType>,
    /// The options of an enum, if they are declared.
    pub options: Option<Rc<Options>>,
}

impl Operand {
    /// Returns an operand for a column of which only name and type matter.
    pub(super) fn plain_column(name: &str, type_: ColumnType) -> Operand {
        Operand {
            name: name.to_owned(),
            sql: String::new(),
            type_: Some(type_),
            options: None,
        }
    }

    pub(super) fn of(table: &Table, name: &str) -> Result<Operand, StoreError> {
        if name == ROW_ID {
            return Ok(Operand {
                name: name.to_owned(),
                sql: "row_id".to_owned(),
                type_: Some(ColumnType::Long),
                options: None,
            });
        }
        if name == PARTITION && table.partitioned && table.column(name).is_none() {
            return Ok(Operand {
                name: name.to_owned(),
                sql: "(SELECT key FROM table_partition WHERE id = part)".to_owned(),
                type_: Some(ColumnType::String),
                options: None,
            });
        }
        let column = table.known(name)?;
        Ok(Operand {
            name: name.to_owned(),
            sql: column.sql(),
            type_: column.type_,
            options: column.options.clone(),
        })
    }

    /// Returns the SQL by which the operand is ordered and that text tests use: without the marks of an enum.
    pub(super) fn plain(&self) -> String {
        let sql = &self.sql;
        match self.type_ {
            Some(ColumnType::Enum) => {
                format!(
                    "(CASE WHEN substr({sql}, 1, 1) IN (':', '\\') THEN substr({sql}, 2) ELSE {sql} END)"
                )
            }
            _ => sql.clone(),
        }
    }
}

/// Writes the condition that selects rows.
pub(super) fn choice(
    table: &Table,
    rows: &RowChoice,
    out: &mut Condition,
) -> Result<(), StoreError> {
    match rows {
        RowChoice::All => filter(table, &Filter::ALL, out)?,
        RowChoice::Id(id) => {
            let test = Filter::Test {
                column: ROW_ID.to_owned(),
                test: Test::Equal,
                operands: vec![Cell::Long(*id)],
            };
            filter(table, &test, out)?;
        }
        RowChoice::Key(key) => {
            let tests = key.iter().map(|(column, cell)| Filter::Test {
                column: column.clone(),
                test: Test::Equal,
                operands: vec![cell.clone()],
            });
            filter(table, &Filter::And(tests.collect()), out)?;
        }
        RowChoice::Where(condition) => filter(table, condition, out)?,
    }
    Ok(())
}

/// Writes a condition on rows of the selected partitions. It is either true or false; a missing cell makes no
/// comparison true.
pub(super) fn filter(
    table: &Table,
    filter: &Filter,
    out: &mut Condition,
) -> Result<(), StoreError> {
    if let Some(parts) = partition::condition(table) {
        out.push(&parts);
        out.push(" AND ");
    }
    write(table, filter, out, 0)?;
    if out.cells.len() > MAX_VALUES {
        let message = format!(
            "the condition compares with {} values, and at most {MAX_VALUES} are allowed",
            out.cells.len()
        );
        return Err(rejected("E0624", "too-large", message));
    }
    Ok(())
}

fn write(
    table: &Table,
    filter: &Filter,
    out: &mut Condition,
    depth: usize,
) -> Result<(), StoreError> {
    if depth > MAX_DEPTH {
        let message = format!("the condition is nested deeper than {MAX_DEPTH} levels");
        return Err(rejected("E0624", "too-large", message));
    }
    match filter {
        Filter::And(parts) => join(table, (parts, " AND ", "1"), out, depth),
        Filter::Or(parts) => join(table, (parts, " OR ", "0"), out, depth),
        Filter::Not(inner) => {
            out.push("NOT coalesce(");
            write(table, inner, out, depth + 1)?;
            out.push(", 0)");
            Ok(())
        }
        Filter::Test {
            column,
            test,
            operands,
        } => comparison(&Operand::of(table, column)?, *test, operands, out),
    }
}

fn join(
    table: &Table,
    (parts, word, empty): (&[Filter], &str, &str),
    out: &mut Condition,
    depth: usize,
) -> Result<(), StoreError> {
    if parts.is_empty() {
        out.push(empty);
        return Ok(());
    }
    out.push("(");
    for (idx, part) in parts.iter().enumerate() {
        if idx > 0 {
            out.push(word);
        }
        write(table, part, out, depth + 1)?;
    }
    out.push(")");
    Ok(())
}

fn comparison(
    operand: &Operand,
    test: Test,
    cells: &[Cell],
    out: &mut Condition,
) -> Result<(), StoreError> {
    check_count(operand, test, cells)?;
    let sql = operand.sql.clone();
    match test {
        Test::IsNull => out.push(&format!("{sql} IS NULL")),
        Test::NotNull => out.push(&format!("{sql} IS NOT NULL")),
        Test::Equal | Test::In => among(operand, test, cells, out)?,
        Test::NotEqual | Test::NotIn => {
            out.push("NOT coalesce(");
            among(operand, test, cells, out)?;
            out.push(", 0)");
        }
        Test::Less => ordered(operand, test, ("<", &cells[0]), out)?,
        Test::LessOrEqual => ordered(operand, test, ("<=", &cells[0]), out)?,
        Test::Greater => ordered(operand, test, (">", &cells[0]), out)?,
        Test::GreaterOrEqual => ordered(operand, test, (">=", &cells[0]), out)?,
        Test::Between => {
            out.push("(");
            ordered(operand, test, (">=", &cells[0]), out)?;
            out.push(" AND ");
            ordered(operand, test, ("<=", &cells[1]), out)?;
            out.push(")");
        }
        Test::Contains => part(operand, test, &cells[0], out)?,
        Test::NotContains => {
            out.push("NOT coalesce(");
            part(operand, test, &cells[0], out)?;
            out.push(", 0)");
        }
        Test::StartsWith | Test::EndsWith | Test::Like => text_test(operand, test, &cells[0], out)?,
    }
    Ok(())
}

fn check_count(operand: &Operand, test: Test, cells: &[Cell]) -> Result<(), StoreError> {
    let (fits, wanted) = match test {
        Test::IsNull | Test::NotNull => (cells.is_empty(), "no value"),
        Test::In | Test::NotIn => (true, ""),
        Test::Between => (cells.len() == 2, "two values"),
        _ => (cells.len() == 1, "one value"),
    };
    match fits {
        true => Ok(()),
        false => {
            let message = format!(
                "`{}` on `{}` takes {wanted}, got {}",
                test.name(),
                operand.name,
                cells.len()
            );
            Err(rejected("E0624", "bad-config", message))
        }
    }
}

/// Writes a test for equality with one of several values; nil equals a missing cell.
fn among(
    operand: &Operand,
    test: Test,
    cells: &[Cell],
    out: &mut Condition,
) -> Result<(), StoreError> {
    let mut kept = Vec::new();
    for cell in cells.iter().filter(|cell| **cell != Cell::Nil) {
        let plain = value(operand, test, cell)?;
        if let (Some(options), Sql::Text(text)) = (&operand.options, &plain)
            && let Some(id) = options.find(text)
        {
            kept.push(Sql::Text(id.to_owned()));
            continue;
        }
        kept.push(plain);
        if let (Some(ColumnType::Enum), Some(other)) = (operand.type_, other_spelling(cell)) {
            kept.push(value(operand, test, &other)?);
        }
    }
    let nil = cells.contains(&Cell::Nil);
    out.push(if nil { "(" } else { "" });
    match kept.len() {
        0 => out.push("0"),
        1 => {
            out.push(&format!("{} = ", operand.sql));
            kept.into_iter().for_each(|cell| out.bind(cell));
        }
        _ => {
            out.push(&format!("{} IN (", operand.sql));
            for (idx, cell) in kept.into_iter().enumerate() {
                out.push(if idx > 0 { ", " } else { "" });
                out.bind(cell);
            }
            out.push(")");
        }
    }
    if nil {
        out.push(&format!(" OR {} IS NULL)", operand.sql));
    }
    Ok(())
}

fn other_spelling(cell: &Cell) -> Option<Cell> {
    match cell {
        Cell::Keyword(name) => Some(Cell::Text(name.clone())),
        Cell::Text(text) => Some(Cell::Keyword(text.clone())),
        _ => None,
    }
}

fn ordered(
    operand: &Operand,
    test: Test,
    (sign, cell): (&str, &Cell),
    out: &mut Condition,
) -> Result<(), StoreError> {
    if operand.type_ == Some(ColumnType::Json) {
        return Err(no_test(operand, test));
    }
    out.push(&format!("{} {sign} ", operand.plain()));
    let kept = match (operand.type_, cell) {
        (Some(ColumnType::Enum), Cell::Keyword(name) | Cell::Text(name)) => Sql::Text(name.clone()),
        _ => value(operand, test, cell)?,
    };
    out.bind(kept);
    Ok(())
}

/// Writes a test for a substring of text, or for an item or a key of data.
fn part(operand: &Operand, test: Test, cell: &Cell, out: &mut Condition) -> Result<(), StoreError> {
    match operand.type_ {
        Some(ColumnType::Json) => {
            out.push(&format!("flowstone_contains({}, ", operand.sql));
            out.bind(Sql::Text(data_text(cell).unwrap_or_default()));
            out.push(")");
        }
        _ => {
            let text = text_operand(operand, test, cell)?;
            out.push(&format!("instr({}, ", operand.plain()));
            out.bind(Sql::Text(text));
            out.push(") > 0");
        }
    }
    Ok(())
}

fn text_test(
    operand: &Operand,
    test: Test,
    cell: &Cell,
    out: &mut Condition,
) -> Result<(), StoreError> {
    let text = text_operand(operand, test, cell)?;
    let plain = operand.plain();
    let length = text.chars().count();
    match test {
        Test::StartsWith => {
            // A range for which an index can be used; the comparison that follows is exact.
            if let (Some(end), true) = (after_prefix(&text), plain == operand.sql && length > 0) {
                out.push(&format!("{plain} >= "));
                out.bind(Sql::Text(text.clone()));
                out.push(&format!(" AND {plain} < "));
                out.bind(Sql::Text(end));
                out.push(" AND ");
            }
            out.push(&format!("substr({plain}, 1, {length}) = "));
        }
        Test::EndsWith if length == 0 => out.push(&format!("{plain} IS NOT NULL AND '' = ")),
        Test::EndsWith => out.push(&format!("substr({plain}, -{length}) = ")),
        _ => out.push(&format!("{plain} LIKE ")),
    }
    out.bind(Sql::Text(text));
    Ok(())
}

/// Returns the smallest text that is larger than all texts with a prefix, in byte order.
fn after_prefix(text: &str) -> Option<String> {
    let mut kept: Vec<char> = text.chars().collect();
    while let Some(last) = kept.pop() {
        let next = match last {
            '\u{d7ff}' => Some('\u{e000}'),
            last => char::from_u32(u32::from(last) + 1),
        };
        if let Some(next) = next {
            kept.push(next);
            return Some(kept.into_iter().collect());
        }
    }
    None
}

fn text_operand(operand: &Operand, test: Test, cell: &Cell) -> Result<String, StoreError> {
    match (operand.type_, cell) {
        (
            Some(ColumnType::String | ColumnType::Enum | ColumnType::Date) | None,
            Cell::Text(text) | Cell::Keyword(text),
        ) => Ok(text.clone()),
        (Some(ColumnType::String | ColumnType::Enum | ColumnType::Date) | None, cell) => {
            let message = format!(
                "`{}` on `{}` takes a string, got {}",
                test.name(),
                operand.name,
                shown(cell)
            );
            Err(rejected("E0624", "bad-config", message))
        }
        _ => Err(no_test(operand, test)),
    }
}

fn no_test(operand: &Operand, test: Test) -> StoreError {
    let message = format!(
        "`{}` cannot be used on `{}`, which holds {}",
        test.name(),
        operand.name,
        operand.type_.map_or("nothing yet", holds)
    );
    rejected("E0624", "bad-config", message)
}

/// Returns a value for comparison in the stored form of the column.
pub(super) fn value(operand: &Operand, test: Test, cell: &Cell) -> Result<Sql, StoreError> {
    let Some(type_) = operand.type_ else {
        return Ok(Sql::Null);
    };
    let kept = match (type_, cell) {
        (_, Cell::Nil) => None,
        (ColumnType::Long | ColumnType::Double, Cell::Double(double)) => Some(Sql::Real(*double)),
        (ColumnType::Long | ColumnType::Double, Cell::Decimal(digits)) => {
            digits.parse().ok().map(Sql::Real)
        }
        (ColumnType::Decimal, Cell::Double(double)) if double.is_finite() => {
            Some(Sql::Text(double.to_string()))
        }
        (ColumnType::String, Cell::Keyword(name)) => Some(Sql::Text(name.clone())),
        (ColumnType::Timestamp, Cell::Long(millis)) => Some(Sql::Integer(*millis)),
        (type_, cell) => to_sql(type_, cell),
    };
    kept.ok_or_else(|| {
        let message = format!(
            "`{}` holds {}, and `{}` compares it with {}",
            operand.name,
            holds(type_),
            test.name(),
            shown(cell)
        );
        let error = rejected("E0624", "bad-config", message);
        match cell {
            Cell::Nil => with_hint(error, "use `is-null` or `not-null`"),
            _ => error,
        }
    })
}

/// Returns the `ORDER BY` of some columns; rows that are equal are in the order in which they were written.
pub(super) fn order(table: &Table, sort: &[Sort]) -> Result<String, StoreError> {
    let mut parts = Vec::new();
    for sort in sort {
        let operand = Operand::of(table, &sort.column)?;
        if operand.type_ == Some(ColumnType::Json) {
            let message = format!(
                "`{}` holds data of any kind, which has no order to sort by",
                operand.name
            );
            return Err(rejected("E0624", "bad-config", message));
        }
        parts.push(format!(
            "{}{}",
            operand.plain(),
            if sort.descending { " DESC" } else { "" }
        ));
    }
    parts.push("row_id".to_owned());
    Ok(parts.join(", "))
}
