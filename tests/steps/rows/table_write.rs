//! The rows of `tests/coverage/table.tsv` on creating tables, writing rows, and the types of columns.

use super::table::{check, refuses};
use crate::project::Project;

#[test]
fn table() {
    let project = Project::new();
    check(
        &project,
        "(juxt :table :rows-inserted)",
        &[(
            "{:op :insert :table \"orders\" :rows [{:id 1}]}",
            "[\"orders\" 1]",
        )],
    );
    // A table is named by its name, its `res://` name, or the reference that a step returned.
    let ways = "(let [r (flow/step :table :a {:op :schema :table :orders})
                      count-of (fn [table] (:count (flow/step :table :q {:op :query :table table})))]
                  (mapv count-of [\"orders\" (:uri r) r {:ref (:uri r)} (:ref r) {:name \"orders\"} {:table \"orders\"}]))";
    assert_eq!(project.eval(ways), "[1 1 1 1 1 1 1]");
    refuses(
        &project,
        &[
            (
                "{:op :query :table \"oders\"}",
                "E0620 there is no table `oders` | did you mean `orders`?",
            ),
            (
                "{:op :query :table \"res://v1/ws/local/result/table/77\"}",
                "E0620",
            ),
            (
                "{:op :query :table \"res://v1/ws/local/result/kv/a\"}",
                "is not the name of a table",
            ),
            ("{:op :query :table 7}", "E0764"),
            ("{:op :query}", "needs `:table`"),
        ],
    );
}

#[test]
fn op_insert() {
    let project = Project::new();
    check(
        &project,
        "(juxt :count :rows-written :rows-inserted :rows-updated :row-count :row-ids)",
        &[
            (
                "{:op :insert :table \"t\" :key-fields [:id] :rows [{:id 1 :n 1} {:id 2}]}",
                "[2 2 2 0 2 [1 2]]",
            ),
            (
                "{:op \"insert\" :table \"t\" :rows [{\"id\" 3}]}",
                "[1 1 1 0 3 [3]]",
            ),
        ],
    );
    refuses(
        &project,
        &[
            (
                "{:op :insert :table \"t\" :rows [{:id 4} {:id 1}]}",
                "E0625 row 2: the table `t` has a row with `id` 1 already",
            ),
            (
                "{:op :insert :table \"t\" :rows [{:n 1}]}",
                "E0625 row 1 has no value for the key field `id`",
            ),
        ],
    );
    check(
        &project,
        ":row-count",
        &[("{:op :schema :table \"t\"}", "3")],
    );
}

#[test]
fn insert_rows() {
    let project = Project::new();
    check(
        &project,
        "(juxt :rows-inserted :preview)",
        &[
            ("{:op :insert :table \"t\" :rows []}", "[0 []]"),
            (
                "{:op :insert :table \"t\" :rows [{} {:a 1} {:b \"x\" :a 2}]}",
                "[3 [{} {:a 1} {:b \"x\" :a 2}]]",
            ),
            (
                "{:op :insert :table \"t\" :rows (map (fn [n] {:a n}) (range 3))}",
                "[3 [{:a 0} {:a 1} {:a 2}]]",
            ),
        ],
    );
    refuses(
        &project,
        &[
            ("{:op :insert :table \"t\"}", "needs `:rows`"),
            ("{:op :insert :table \"t\" :rows [1]}", "row 1 of 1 is"),
            (
                "{:op :insert :table \"t\" :rows [{:a 1 \"a\" 2}]}",
                "two cells for the column `a`",
            ),
            (
                "{:op :insert :table \"t\" :rows [{:a 1} {:a \"x\"}]}",
                "row 2 of 2 does not fit the table `t`: column `a` holds integers",
            ),
        ],
    );
}

#[test]
fn op_upsert() {
    let project = Project::new();
    check(
        &project,
        "(juxt :rows-written :rows-inserted :rows-updated :row-count)",
        &[
            (
                "{:op :upsert :table \"t\" :key-fields [:id :day] :rows [{:id 1 :day \"a\" :n 1} {:id 1 :day \"b\" :n 2}]}",
                "[2 2 0 2]",
            ),
            (
                "{:op :upsert :table \"t\" :rows [{:id 1 :day \"b\" :m 5} {:id 2 :day \"b\"} {:id 2 :day \"b\" :n 9}]}",
                "[3 1 2 3]",
            ),
        ],
    );
    assert_eq!(
        project.eval("(let [r (flow/step :table :q {:op :query :table \"t\" :sort [:id :day]})] (mapv vals (:rows r)))"),
        "[(1 \"a\" 1 nil) (1 \"b\" 2 5) (2 \"b\" 9 nil)]"
    );
}

#[test]
fn upsert_rows() {
    let project = Project::new();
    refuses(
        &project,
        &[
            ("{:op :upsert :table \"t\" :rows [{:id 1}]}", "has no key"),
            (
                "{:op :upsert :table \"t\" :key-fields [:id] :rows [{:n 1}]}",
                "has no value for the key field `id`",
            ),
            (
                "{:op :upsert :table \"t\" :key-fields [:id] :rows [{:id nil}]}",
                "has no value for the key field `id`",
            ),
            (
                "{:op :upsert :table \"t\" :key-fields [:id :id] :rows [{:id 1}]}",
                "names `id` twice",
            ),
        ],
    );
}

#[test]
fn op_replace() {
    let project = Project::new();
    check(
        &project,
        "(juxt :rows-inserted :row-count)",
        &[
            (
                "{:op :replace :table \"t\" :rows [{:id 1} {:id 2}]}",
                "[2 2]",
            ),
            ("{:op :replace :table \"t\" :rows [{:id 3}]}", "[1 1]"),
            ("{:op :replace :table \"t\" :rows []}", "[0 0]"),
        ],
    );
}

#[test]
fn op_delete() {
    let project = Project::new();
    project.eval("(flow/step :table :it {:op :insert :table \"t\" :key-fields [:id] :rows [{:id 1} {:id 2} {:id 3} {:id 4}]})");
    check(
        &project,
        ":rows-deleted",
        &[
            ("{:op :delete :table \"t\" :row-id 1}", "1"),
            ("{:op :delete :table \"t\" :row-id 1}", "0"),
            ("{:op :delete :table \"t\" :key {:id 2}}", "1"),
            ("{:op :delete :table \"t\" :all true}", "2"),
        ],
    );
    refuses(
        &project,
        &[
            ("{:op :delete :table \"t\"}", "no row was chosen"),
            (
                "{:op :delete :table \"t\" :all true :row-id 1}",
                "the row is chosen in more than one way",
            ),
        ],
    );
}

#[test]
fn delete_where() {
    let project = Project::new();
    project
        .eval("(flow/step :table :it {:op :insert :table \"t\" :rows [{:id 1} {:id 2} {:id 3}]})");
    check(
        &project,
        ":rows-deleted",
        &[("{:op :delete :table \"t\" :where [[:id :> 1]]}", "2")],
    );
    refuses(
        &project,
        &[(
            "{:op :delete :table \"t\" :where []}",
            "would mean every row",
        )],
    );
}

#[test]
fn op_create() {
    let project = Project::new();
    check(
        &project,
        ":created?",
        &[
            (
                "{:op :create :table \"t\" :columns {:id :long :s :string} :key-fields [:id] :index-fields [:s]}",
                "true",
            ),
            ("{:op :create :table \"t\" :columns {:id :long}}", "false"),
            (
                "{:op :create :table {:name \"p\" :partitions {:keys [\"a\" \"b\"]}} :columns {:id :long}}",
                "true",
            ),
        ],
    );
    check(
        &project,
        "(juxt :key-fields :index-fields :row-count (fn [r] (map :key (:partitions r))))",
        &[
            ("{:op :schema :table \"t\"}", "[[\"id\"] [\"s\"] 0 ()]"),
            ("{:op :schema :table \"p\"}", "[[] [] 0 (\"a\" \"b\")]"),
        ],
    );
    refuses(
        &project,
        &[
            (
                "{:op :create :table \"t\" :columns {:id :string}}",
                "E0626 the table `t` exists already, and its column `id` holds integers",
            ),
            (
                "{:op :create :table \"t\" :columns {:other :string}}",
                "it has no column `other`",
            ),
            ("{:op :create :table \"t2\"}", "needs `:columns`"),
        ],
    );
}

#[test]
fn create_columns() {
    let project = Project::new();
    check(
        &project,
        ":created?",
        &[(
            "{:op :create :table \"t\" :columns [{:name :id :type :int} {:name \"who\" :type-hint :long :reference {:table \"t0\" :column :id}} {:name :s :enum {:options [\"a\"]}}]}",
            "true",
        )]
        .map(|(config, expected)| {
            project.eval("(flow/step :table :it {:op :create :table \"t0\" :columns {:id :long}})");
            (config, expected)
        }),
    );
    check(
        &project,
        "(fn [r] (mapv (juxt :name :type) (:columns r)))",
        &[(
            "{:op :schema :table \"t\"}",
            "[[\"id\" :long] [\"who\" :long] [\"s\" :enum]]",
        )],
    );
    refuses(
        &project,
        &[
            (
                "{:op :create :table \"x\" :columns {:day :dat}}",
                "column `day` has no type `dat` | did you mean `:date`?",
            ),
            (
                "{:op :create :table \"x\" :columns [{:type :long}]}",
                "a column needs a name",
            ),
            (
                "{:op :create :table \"x\" :columns [{:name :a :type :long} {:name \"a\" :type :long}]}",
                "declared twice",
            ),
            (
                "{:op :create :table \"x\" :columns [{:name :a}]}",
                "column `a` has no type",
            ),
        ],
    );
}

/// Cells that a column of a type accepts, as they are read back, and one that it refuses.
fn holds(type_: &str, cells: &[(&str, &str)], bad: Option<&str>) {
    let project = Project::new();
    project.eval(&format!(
        "(flow/step :table :it {{:op :create :table \"t\" :columns {{:id :long :c :{type_}}}}})"
    ));
    for (cell, back) in cells {
        let found = project.eval(&format!(
            "(let [w (flow/step :table :w {{:op :replace :table \"t\" :rows [{{:id 1 :c {cell}}}]}})
                   r (flow/step :table :r {{:op :get-row :table \"t\" :key {{:id 1}}}})] (:c (:row r)))"
        ));
        assert_eq!(found, *back, "{type_} {cell}");
    }
    if let Some(bad) = bad {
        let found = project.eval(&format!(
            "(flow/step :table :w {{:op :insert :table \"t\" :rows [{{:id 1 :c {bad}}}]}})"
        ));
        assert!(found.starts_with("E0623"), "{type_} {bad}: {found}");
    }
}

#[test]
fn type_string() {
    holds(
        "string",
        &[("\"a\"", "\"a\""), ("\"\"", "\"\""), ("nil", "nil")],
        Some("7"),
    );
}

#[test]
fn type_long() {
    holds(
        "long",
        &[("7", "7"), ("-9223372036854775808", "-9223372036854775808")],
        Some("1.5"),
    );
}

#[test]
fn type_double() {
    holds("double", &[("1.5", "1.5"), ("7", "7")], Some("\"1.5\""));
}

#[test]
fn type_decimal() {
    holds("decimal", &[("1.50M", "150E-2M"), ("7", "7M")], Some("1.5"));
}

#[test]
fn type_boolean() {
    holds(
        "boolean",
        &[("true", "true"), ("false", "false")],
        Some("1"),
    );
}

#[test]
fn type_date() {
    holds(
        "date",
        &[("\"2026-01-31\"", "\"2026-01-31\"")],
        Some("\"2026-02-30\""),
    );
}

#[test]
fn type_timestamp() {
    let back = "#inst \"2026-01-31T10:00:00.000Z\"";
    holds(
        "timestamp",
        &[
            ("#inst \"2026-01-31T10:00:00Z\"", back),
            ("\"2026-01-31T10:00:00Z\"", back),
        ],
        Some("true"),
    );
}

#[test]
fn type_json() {
    holds(
        "json",
        &[
            ("[1 {:a #{2}}]", "[1 {:a #{2}}]"),
            ("7", "7"),
            ("\"x\"", "\"x\""),
        ],
        None,
    );
}

#[test]
fn type_enum() {
    holds(
        "enum",
        &[
            (":open", ":open"),
            ("\"open\"", ":open"),
            ("\"shut\"", "\"shut\""),
        ],
        Some("7"),
    );
}
