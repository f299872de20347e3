//! The rows of `tests/coverage/persist.tsv` on `:persist {:type :table}`.

use crate::project::Project;

/// Stores the value of a function as a table, and returns an expression over the result `r`.
fn stored(project: &Project, value: &str, persist: &str, of: &str) -> String {
    let persist = format!("{{:type :table {persist}}}");
    project.eval(&format!(
        "(let [r (flow/step :function :make {{:code '(fn [_] {value}) :persist {persist}}})] {of})"
    ))
}

/// Returns the rows of the table of `r`, in their order.
const ROWS: &str = "(:rows (flow/step :table :q {:op :query :table r :sort [:id]}))";

/// Checks the error of storing `value`.
fn refuses(project: &Project, value: &str, cases: &[(&str, &str)]) {
    let mut failures = Vec::new();
    for (persist, words) in cases {
        let found = stored(project, value, persist, "r");
        if !found.contains(words) {
            failures.push(format!("{persist}\n  expected {words}\n  found    {found}"));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn type_table() {
    let project = Project::new();
    let found = stored(
        &project,
        "[{:id 1 :s \"a\" :at #inst \"2026-03-01\"} {:id 2 :s nil}]",
        ":table \"t\"",
        ROWS,
    );
    assert_eq!(
        found,
        "[{:id 1 :s \"a\" :at #inst \"2026-03-01T00:00:00.000Z\"} {:id 2 :s nil :at nil}]"
    );
    // Types are inferred when the table is created, and enforced from then on. A refused write leaves nothing behind.
    let wrong = stored(
        &project,
        "[{:id 3 :s \"b\"} {:id \"x\" :s \"c\"}]",
        ":table \"t\"",
        "r",
    );
    assert!(
        wrong.starts_with("E0623 ") && wrong.contains("`id`"),
        "{wrong}"
    );
    assert_eq!(
        project.eval("(:count (flow/step :table :q {:op :query :table \"t\"}))"),
        "2"
    );
    refuses(
        &project,
        "[{:id 1}]",
        &[
            (":table \"t\" :colour 1", "E0726"),
            (":table \"t\" :filename \"x\"", "`:filename`"),
            (":table \"t\" :row-path [:a]", "did you mean `:rows-path`?"),
        ],
    );
}

#[test]
fn table() {
    let project = Project::new();
    for (said, name) in [
        ("\"orders\"", "orders"),
        (":lines", "lines"),
        ("\"Ünï 'x'; DROP TABLE run\"", "Ünï 'x'; DROP TABLE run"),
    ] {
        let found = stored(&project, "[{:id 1}]", &format!(":table {said}"), ROWS);
        let plain = format!("(:rows (flow/step :table :q {{:op :query :table \"{name}\"}}))");
        assert_eq!(
            [found, project.eval(&plain)],
            ["[{:id 1}]", "[{:id 1}]"],
            "{said}"
        );
    }
    // A later run writes to the existing table, also when it names it by its reference.
    let found = project.eval(
        "(let [a (flow/step :function :a {:code '(fn [_] [{:id 2}]) :persist {:type :table :table \"orders\"}})
               b (flow/step :function :b {:code '(fn [_] [{:id 3}]) :persist {:type :table :table \"orders\"}})]
           [(= (:uri a) (:uri b)) (:row-count a) (:row-count b)])",
    );
    assert_eq!(found, "[true 2 3]");
    refuses(
        &project,
        "[{:id 1}]",
        &[
            ("", "E0763 `:persist {:type :table}` needs `:table`"),
            (":table 7", "E0764 `:table` is a name or a reference, not 7"),
            (":table \"\"", "E06"),
        ],
    );
}

#[test]
fn table_name() {
    let project = Project::new();
    assert_eq!(
        stored(&project, "[{:id 1}]", ":name :orders", ROWS),
        "[{:id 1}]"
    );
    let both = ":table \"orders\" :name \"others\"";
    assert_eq!(
        stored(&project, "[{:id 1}]", both, "r"),
        "E0763 `:table` and `:name` say different things | they are two names for the same key: remove one of them"
    );
    let same = ":table \"orders\" :name :orders";
    assert_eq!(stored(&project, "[{:id 2}]", same, "(:row-count r)"), "2");
}

#[test]
fn rows_path() {
    let project = Project::new();
    let at = |value: &str, path: &str| {
        stored(
            &project,
            value,
            &format!(":table \"t\" :key-fields [:id] :rows-path {path}"),
            ROWS,
        )
    };
    assert_eq!(
        at("{:body {:items [{:id 1}]}}", "[:body :items]"),
        "[{:id 1}]"
    );
    // Keys of JSON are strings, and an index into a vector is a number.
    assert_eq!(
        at("{\"body\" [nil {:items [{:id 1}]}]}", "[\"body\" 1 :items]"),
        "[{:id 1}]"
    );
    assert_eq!(at("[{:id 1}]", "[]"), "[{:id 1}]");
    for (value, path, words) in [
        (
            "{:body {:itms []}}",
            "[:body :items]",
            "E0768 `:rows-path` leads nowhere: the result has no :items at step 2 | there it has :itms",
        ),
        ("{:a 1}", "[:a :b]", "at step 2 | there is an integer"),
        ("[[]]", "[1]", "the result has no 1 at step 1"),
        ("{:a 1}", "[:a]", "E0764 "),
        ("{:a [1]}", "[:a]", "E0764 "),
    ] {
        let found = at(value, path);
        assert!(found.contains(words), "{value} {path}: {found}");
    }
    let wrong = at("[]", ":items");
    assert!(
        wrong.starts_with("E0763 `:rows-path` is a vector of keys"),
        "{wrong}"
    );
}

#[test]
fn write_mode_append() {
    let project = Project::new();
    for count in ["1", "2"] {
        let found = stored(
            &project,
            "[{:id 1}]",
            ":table \"t\" :write-mode :append",
            "[(:rows-inserted r) (:row-count r)]",
        );
        assert_eq!(found, format!("[1 {count}]"));
    }
    // A key that exists already is an error, and nothing is written.
    let keyed = ":table \"k\" :write-mode \"append\" :key-fields [:id]";
    assert_eq!(stored(&project, "[{:id 1}]", keyed, "(:row-count r)"), "1");
    let twice = stored(&project, "[{:id 2} {:id 1}]", keyed, "r");
    assert!(twice.starts_with("E0625 "), "{twice}");
    assert_eq!(
        project.eval("(:rows (flow/step :table :q {:op :query :table \"k\"}))"),
        "[{:id 1}]"
    );
    refuses(
        &project,
        "[{:id 1}]",
        &[(
            ":table \"t\" :write-mode :merge",
            "E0763 `:write-mode` is `:append`, `:upsert` or `:replace`, not `:merge`",
        )],
    );
}

#[test]
fn write_mode_upsert() {
    let project = Project::new();
    let upsert = ":table \"t\" :write-mode :upsert :key-fields [:id]";
    let told = "[(:rows-written r) (:rows-inserted r) (:rows-updated r) (:row-count r)]";
    assert_eq!(
        stored(
            &project,
            "[{:id 1 :s \"a\"} {:id 2 :s \"b\"}]",
            upsert,
            told
        ),
        "[2 2 0 2]"
    );
    assert_eq!(
        stored(
            &project,
            "[{:id 2 :s \"c\"} {:id 3 :s \"d\"}]",
            upsert,
            told
        ),
        "[2 1 1 3]"
    );
    // The table knows its key fields: a later write need not name them.
    assert_eq!(
        stored(
            &project,
            "[{:id 3 :s \"e\"}]",
            ":table \"t\" :write-mode :upsert",
            ROWS
        ),
        "[{:id 1 :s \"a\"} {:id 2 :s \"c\"} {:id 3 :s \"e\"}]"
    );
}

#[test]
fn key_fields() {
    let project = Project::new();
    refuses(
        &project,
        "[{:id 1 :s \"a\"}]",
        &[
            (
                ":table \"new\" :write-mode :upsert",
                "E0625 the table `new` has no key",
            ),
            (
                ":table \"new\" :key-fields 7",
                "E0764 `:key-fields` needs a vector of column names, got 7",
            ),
            (":table \"new\" :key-fields [[]]", "`:key-fields`"),
            (":table \"new\" :key-fields [:ident]", "`ident`"),
        ],
    );
    // A table whose creation failed leaves nothing behind.
    let found = project.eval("(flow/step :table :q {:op :query :table \"new\"})");
    assert!(found.starts_with("E0620 "), "{found}");
    let both = ":table \"t\" :key-fields [:id :s]";
    let told = "[(:rows-inserted r) (:rows-updated r)]";
    assert_eq!(
        stored(
            &project,
            "[{:id 1 :s \"a\" :n 1} {:id 1 :s \"b\" :n 1}]",
            both,
            told
        ),
        "[2 0]"
    );
    assert_eq!(
        stored(&project, "[{:id 1 :s \"b\" :n 2}]", both, told),
        "[0 1]"
    );
}

#[test]
fn index_fields() {
    let project = Project::new();
    let found = stored(
        &project,
        "[{:id 1 :s \"a\"} {:id 2 :s \"b\"}]",
        ":table \"t\" :index-fields [:s]",
        "(let [found (flow/step :table :schema {:op :schema :table r})]
           [(:index-fields found) (:rows (flow/step :table :q {:op :query :table r :where [[:s := \"b\"]]}))])",
    );
    assert!(
        found.starts_with("[[\"s\"]") && found.ends_with("[{:id 2 :s \"b\"}]]"),
        "{found}"
    );
    // An index can be created before the column has values.
    let early = stored(
        &project,
        "[{:id 1}]",
        ":table \"early\" :index-fields [:later]",
        ROWS,
    );
    assert_eq!(early, "[{:id 1 :later nil}]");
    refuses(
        &project,
        "[{:id 1 :s \"a\"}]",
        &[
            (":table \"t\" :index-fields [:s :s]", "names `s` twice"),
            (
                ":table \"t\" :index-fields 7",
                "E0764 `:index-fields` needs a vector",
            ),
        ],
    );
}

#[test]
fn partitions() {
    let project = Project::new();
    let into = |key: &str| format!(":table \"sales\" :key-fields [:id] :partitions {key}");
    for (key, count) in [("\"2026-03\"", "1"), (":2026-04", "2")] {
        let found = stored(
            &project,
            &format!("[{{:id 1 :n {count}}}]"),
            &into(&format!("{{:key {key}}}")),
            ROWS,
        );
        assert_eq!(found, format!("[{{:id 1 :n {count}}}]"));
    }
    assert_eq!(
        project.eval(
            "(map :n (:rows (flow/step :table :q {:op :query :table {:name \"sales\" :partitions {:keys :all}} :sort [:n]})))"
        ),
        "(1 2)"
    );
    refuses(
        &project,
        "[{:id 1}]",
        &[
            (":table \"sales\"", "E0630"),
            (
                &into("{:keys :all}"),
                "E0720 rows can only be written to one partition",
            ),
            (&into("{:keys [\"a\" \"b\"]}"), "one partition"),
            (&into("{:kye \"a\"}"), "did you mean `:key`?"),
            (&into("\"2026-03\""), "E0720 `:partitions` is a map"),
        ],
    );
    stored(&project, "[{:id 1}]", ":table \"plain\"", "r");
    refuses(
        &project,
        "[{:id 1}]",
        &[(":table \"plain\" :partitions {:key \"a\"}", "no partitions")],
    );
}

#[test]
fn table_result() {
    let project = Project::new();
    let many = "(mapv (fn [n] {:id n}) (range 40))";
    let found = stored(
        &project,
        many,
        ":table \"t\"",
        "[(:type r) (:uri r) (:table r) (:count r) (:row-count r) (first (:preview r)) (< (count (:preview r)) 40)]",
    );
    let uri = stored(&project, "[]", ":table \"t\"", "(:uri r)");
    assert!(
        uri.starts_with("\"res://v1/ws/local/result/table/"),
        "{uri}"
    );
    assert_eq!(
        found,
        format!("[:resource-ref {uri} \"t\" 40 40 {{:id 0}} true]")
    );
    // The content type of the reference opens the table wherever a table is named.
    assert_eq!(
        stored(
            &project,
            "[{:id 99}]",
            ":table \"t\"",
            "[(:content-type r) (:rows (flow/step :table :q {:op :query :table r :where [[:id :> 39]]}))
              (:rows (flow/step :table :u {:op :query :table {:ref (:uri r)} :where [[:id :> 39]]}))]"
        ),
        "[\"application/vnd.breyta.table+json\" [{:id 99}] [{:id 99}]]"
    );
}
