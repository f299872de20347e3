//! `inventory-join.edn`: two CSV files joined, with the rows that do not fit.

use expect_test::expect_file;

use super::project;

#[test]
fn two_files_are_joined_and_bad_rows_are_told_of() {
    let scratch = project();
    let run = || {
        scratch
            .run(&[
                "run",
                "flows/inventory-join.edn",
                "--new",
                "--quiet",
                "--input",
                "@flows/inventory-join/input.edn",
            ])
            .ok()
    };
    let first = run();
    expect_file!["../../flows/inventory-join/expected.md"].assert_eq(&first);
    assert_eq!(run(), first, "a second run replaces what the first left");
    let query = [
        "resources",
        "table",
        "query",
        "inventory",
        "--where",
        "[[:supplier := nil]]",
    ];
    let found = scratch.json_of(&query);
    assert_eq!(found["count"], 1, "{found}");
    assert_eq!(found["rows"][0]["sku"], "0240");
}
