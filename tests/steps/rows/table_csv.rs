//! The rows of `tests/coverage/table.tsv` on CSV files.

use crate::project::Project;

/// Imports a text into a new table, and returns the counts.
fn import(project: &Project, text: &str, options: &str) -> String {
    let text = flowstone_engine::codec::encode(&flowstone_lang::value::Value::from(text)).unwrap();
    project.eval(&format!(
        "(let [r (flow/step :table :load {{:op :import :table \"t\" :csv {text} {options}}})]
           [(:rows-written r) (:rows-inserted r) (:rows-updated r) (:rows-rejected r)])"
    ))
}

#[test]
fn csv_write_mode() {
    let project = Project::new();
    let refused = import(&project, "id,n\n1,1\n", ":write-mode :upsert");
    assert!(refused.starts_with("E0625"), "{refused}");
    assert_eq!(
        import(
            &project,
            "id,n\n1,1\n2,2\n",
            ":write-mode :upsert :key-fields [:id]"
        ),
        "[2 2 0 0]"
    );
    assert_eq!(
        import(&project, "id,n\n2,3\n3,3\n", ":write-mode :upsert"),
        "[2 1 1 0]"
    );
    assert_eq!(
        import(&project, "id,n\n4,4\n", ":write-mode :append"),
        "[1 1 0 0]"
    );
    let refused = import(&project, "id,n\n4,4\n", ":write-mode :append");
    assert!(refused.starts_with("E0642"), "{refused}");
}

#[test]
fn csv_key_fields() {
    let project = Project::new();
    assert_eq!(
        import(&project, "a,b,n\n1,1,1\n1,2,1\n", ":key-fields [:a :b]"),
        "[2 2 0 0]"
    );
    let refused = import(&project, "a,b,n\n1,,1\n", "");
    assert!(
        refused.contains("column `b` of the CSV text: its key field is empty"),
        "{refused}"
    );
    let refused = import(&project, "a,n\n1,1\n", "");
    assert!(
        refused.contains("has no column `b`, which is part of the key"),
        "{refused}"
    );
}

#[test]
fn csv_index_fields() {
    let project = Project::new();
    assert_eq!(
        import(&project, "a,b\n1,x\n", ":index-fields [:b]"),
        "[1 1 0 0]"
    );
    let schema = "(let [r (flow/step :table :s {:op :schema :table \"t\"})] (:index-fields r))";
    assert_eq!(project.eval(schema), "[\"b\"]");
    let refused = import(&project, "a,b\n1,x\n", ":index-fields [:c]");
    assert!(refused.starts_with("E0622"), "{refused}");
}

#[test]
fn csv_result() {
    let project = Project::new();
    assert_eq!(
        import(
            &project,
            "id\n1\n2\nx\n",
            ":columns {:id :long} :on-bad-row :skip"
        ),
        "[2 2 0 1]"
    );
}

#[test]
fn csv_coercion() {
    let project = Project::new();
    project.eval(
        "(let [r (flow/step :table :c {:op :create :table \"t\" :columns [{:name :b :type :boolean} {:name :n :type :double} {:name :d :type :date} {:name :at :type :timestamp}]})] r)",
    );
    assert_eq!(
        import(
            &project,
            "b,n,d,at\nyes,1.5,2026-01-31,2026-01-31T10:00:00Z\n0,2,,2026-02-01\n",
            ""
        ),
        "[2 2 0 0]"
    );
    let rows = "(let [r (flow/step :table :q {:op :query :table \"t\"})] (mapv (juxt :b :n :d :at) (:rows r)))";
    assert_eq!(
        project.eval(rows),
        "[[true 1.5 \"2026-01-31\" #inst \"2026-01-31T10:00:00.000Z\"] [false 2 nil #inst \"2026-02-01T00:00:00.000Z\"]]"
    );
    for (text, words) in [
        (
            "b\nperhaps\n",
            "column `b` of the CSV text: the column holds booleans",
        ),
        (
            "n\none\n",
            "column `n` of the CSV text: the column holds doubles",
        ),
        (
            "d\n31.01.2026\n",
            "column `d` of the CSV text: the column holds dates",
        ),
        (
            "at\nsoon\n",
            "column `at` of the CSV text: the column holds instants",
        ),
    ] {
        let found = import(&project, text, "");
        assert!(found.contains(words), "{found}");
    }
}

#[test]
fn import_csv() {
    let project = Project::new();
    assert_eq!(import(&project, "id\n1\n", ""), "[1 1 0 0]");
    let refused = project.eval("(let [r (flow/step :table :l {:op :import :table \"t\"})] r)");
    assert!(
        refused.starts_with("E0723 no CSV text is given"),
        "{refused}"
    );
}

#[test]
fn import_delimiter() {
    let project = Project::new();
    assert_eq!(
        import(&project, "id;n\n1;2\n", ":delimiter \";\""),
        "[1 1 0 0]"
    );
    let refused = import(&project, "id;n\n", ":delimiter \"ab\"");
    assert!(
        refused.starts_with("E0723 `:delimiter` must be one ASCII character"),
        "{refused}"
    );
}

/// Imports a file of the project.
fn load(project: &Project, options: &str) -> String {
    project.eval(&format!(
        "(let [r (flow/step :table :l {{:op :import :table \"t\" {options}}})
               q (flow/step :table :q {{:op :query :table \"t\"}})] (:rows q))"
    ))
}

#[test]
fn import_encoding() {
    let project = Project::new();
    project.write("a.csv", b"name\n\xe9\n");
    assert_eq!(
        load(&project, ":from \"a.csv\" :encoding :latin1"),
        "[{:name \"é\"}]"
    );
    let refused = load(&project, ":from \"a.csv\"");
    assert!(
        refused.starts_with("E0641 line 2 of the CSV text is not UTF-8: byte 0xE9"),
        "{refused}"
    );
}

#[test]
fn import_from() {
    let project = Project::new();
    project.write("data/a.csv", b"id\n7\n");
    assert_eq!(load(&project, ":from \"data/a.csv\""), "[{:id 7}]");
    let refused = load(&project, ":from \"../a.csv\"");
    assert!(refused.starts_with("E0960"), "{refused}");
}

#[test]
fn import_from_ref() {
    let project = Project::new();
    let found = project.eval(
        "(let [file (flow/step :function :make {:code '(fn [_] {:content \"a\\n1\\n\" :content-type \"text/csv\"}) :persist {:type :blob}})
               r (flow/step :table :l {:op :import :table \"t\" :from-ref file})] (:rows-written r))",
    );
    assert_eq!(found, "1");
    let refused = load(&project, ":from-ref \"a.csv\"");
    assert!(
        refused.starts_with("E0723 `:from-ref` is a reference"),
        "{refused}"
    );
}

#[test]
fn import_header() {
    let project = Project::new();
    assert_eq!(
        load(&project, ":csv \"1,2\" :header? false"),
        "[{:column-1 1 :column-2 2}]"
    );
    let refused = load(&project, ":csv \"1,,2\"");
    assert!(refused.contains("column 2 has no name"), "{refused}");
}

#[test]
fn import_on_bad_row() {
    let project = Project::new();
    let text = "id\n1\nx\n";
    for (way, expected) in [(":skip", "[1 1 0 1]"), (":collect", "[1 1 0 1]")] {
        let options = format!(":columns {{:id :long}} :on-bad-row {way}");
        assert_eq!(import(&project, text, &options), expected);
    }
    let refused = import(&project, text, ":on-bad-row :fail");
    assert!(
        refused.starts_with("E0642 line 3, column `id`"),
        "{refused}"
    );
    let refused = import(&project, text, ":on-bad-row :keep");
    assert!(
        refused.starts_with("E0723 `:on-bad-row` has no `:keep`"),
        "{refused}"
    );
}
