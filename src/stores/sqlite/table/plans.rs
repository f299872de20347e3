//! Checks that indexes are used: the query plans of SQLite for the queries of flows.

use flowstone_model::table::{
    Cell, ColumnDefinition, ColumnType, CreateTable, Filter, NewColumn, Sort, TableName, Test,
};
use rusqlite::{Connection, params_from_iter};

use super::filter::{Condition, filter, order};
use super::registry::Table;
use super::{FORMAT_3, SCHEMA, prepare, write};

fn database() -> Connection {
    let db = Connection::open_in_memory().expect("a database");
    prepare(&db).expect("functions");
    db.execute_batch(SCHEMA).expect("tables");
    db.execute_batch(FORMAT_3).expect("tables");
    let column = |name: &str, type_| NewColumn {
        name: name.to_owned(),
        definition: ColumnDefinition {
            type_: Some(type_),
            ..ColumnDefinition::default()
        },
    };
    let create = CreateTable {
        name: "t".to_owned(),
        partitions: Vec::new(),
        columns: vec![
            column("id", ColumnType::Long),
            column("name", ColumnType::String),
            column("price", ColumnType::Decimal),
            column("free", ColumnType::String),
        ],
        key_fields: vec!["id".to_owned()],
        index_fields: vec!["name".to_owned(), "price".to_owned()],
    };
    write::create(&db, &create, 0).expect("a table");
    db
}

/// Returns the query plan.
fn plan(tests: &[(&str, Test, &[Cell])], sort: &[(&str, bool)]) -> String {
    let db = database();
    let name = TableName::Name("t".to_owned());
    let table = Table::find(&db, &name)
        .expect("found")
        .expect("it is there");
    let tests = tests.iter().map(|(column, test, operands)| Filter::Test {
        column: (*column).to_owned(),
        test: *test,
        operands: operands.to_vec(),
    });
    let mut condition = Condition::default();
    filter(&table, &Filter::And(tests.collect()), &mut condition).expect("a condition");
    let sort: Vec<Sort> = sort
        .iter()
        .map(|(column, descending)| Sort {
            column: (*column).to_owned(),
            descending: *descending,
        })
        .collect();
    let order = order(&table, &sort).expect("an order");
    let sql = format!(
        "EXPLAIN QUERY PLAN SELECT * FROM {} WHERE {} ORDER BY {order} LIMIT 10",
        table.sql(),
        condition.sql
    );
    let mut sql = db.prepare(&sql).expect("a statement");
    let lines = sql
        .query_map(params_from_iter(&condition.cells), |row| {
            row.get::<_, String>(3)
        })
        .and_then(Iterator::collect::<Result<Vec<_>, _>>);
    lines.expect("a plan").join("; ")
}

fn text(text: &str) -> Cell {
    Cell::Text(text.to_owned())
}

#[test]
fn conditions_on_indexed_columns_use_the_index() {
    let cases: &[(&str, Test, &[Cell], &str)] = &[
        (
            "id",
            Test::Equal,
            &[Cell::Long(7)],
            "USING INDEX t_1_key (c1=?)",
        ),
        (
            "id",
            Test::Between,
            &[Cell::Long(7), Cell::Long(9)],
            "USING INDEX t_1_key (c1>? AND c1<?)",
        ),
        (
            "name",
            Test::Equal,
            &[text("a")],
            "USING INDEX t_1_i2 (c2=?)",
        ),
        (
            "name",
            Test::In,
            &[text("a"), text("b")],
            "USING INDEX t_1_i2 (c2=?)",
        ),
        (
            "name",
            Test::GreaterOrEqual,
            &[text("a")],
            "USING INDEX t_1_i2 (c2>?)",
        ),
        (
            "name",
            Test::StartsWith,
            &[text("a")],
            "USING INDEX t_1_i2 (c2>? AND c2<?)",
        ),
        (
            "price",
            Test::Less,
            &[Cell::Decimal("9.5".to_owned())],
            "USING INDEX t_1_i3 (c3<?)",
        ),
        ("name", Test::IsNull, &[], "USING INDEX t_1_i2 (c2=?)"),
    ];
    for (column, test, operands, expected) in cases {
        // A range that is open on one side may be so wide that reading all rows in their order is faster.
        let is_open = matches!(test, Test::GreaterOrEqual | Test::Less);
        let by_column = [(*column, false)];
        let sort = if is_open { by_column.as_slice() } else { &[] };
        let found = plan(&[(column, *test, operands)], sort);
        assert!(
            found.contains(expected),
            "{column} {}: {found}",
            test.name()
        );
    }
    let free = plan(&[("free", Test::Equal, &[text("a")])], &[]);
    assert!(free.starts_with("SCAN t_1"), "{free}");
}

#[test]
fn sorting_by_an_indexed_column_uses_the_index() {
    for (column, descending) in [("id", false), ("name", false), ("price", false)] {
        let found = plan(&[], &[(column, descending)]);
        assert!(
            found.contains("USING INDEX") && !found.contains("USE TEMP B-TREE FOR ORDER BY"),
            "{found}"
        );
    }
    let found = plan(&[], &[("name", true)]);
    assert!(found.contains("USING INDEX t_1_i2"), "{found}");
    let found = plan(&[], &[("free", false)]);
    assert!(found.contains("USE TEMP B-TREE"), "{found}");
}
