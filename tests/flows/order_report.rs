//! `order-report.edn`: a database of SQLite, read with parameters, and a table of its rows.

use expect_test::expect_file;

use super::project;

#[test]
fn open_orders_are_reported_and_kept() {
    let scratch = project();
    let run = || {
        scratch
            .run(&[
                "run",
                "flows/order-report.edn",
                "--new",
                "--quiet",
                "--input",
                "@flows/order-report/input.edn",
            ])
            .ok()
    };
    let first = run();
    expect_file!["../../flows/order-report/expected.md"].assert_eq(&first);
    assert_eq!(run(), first, "a second run replaces what the first left");
    let found = scratch.json_of(&["resources", "table", "query", "open-orders", "--sort", "id"]);
    assert_eq!(found["count"], 3, "{found}");
    assert_eq!(found["rows"][0]["customer"], "Ada O'Neil");
}
