//! The rows of `tests/coverage/table.tsv` on writing and on what a table is. Those on asking are in `table_query`.

use crate::project::Project;

fn check(project: &Project, take: &str, cases: &[(&str, &str)]) {
    let mut failures = Vec::new();
    for (config, expected) in cases {
        let found = project.eval(&format!(
            "(let [r (flow/step :table :it {config})] ({take} r))"
        ));
        if found != *expected {
            failures.push(format!(
                "{config}\n  expected {expected}\n  found    {found}"
            ));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// Cases that fail, and what the error has to say.
fn refuses(project: &Project, cases: &[(&str, &str)]) {
    let mut failures = Vec::new();
    for (config, words) in cases {
        let found = project.eval(&format!("(let [r (flow/step :table :it {config})] r)"));
        if !found.contains(words) {
            failures.push(format!("{config}\n  expected {words}\n  found    {found}"));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

fn months() -> Project {
    let project = Project::new();
    for (month, rows) in [
        ("2026-01", "[{:id 1 :n 10} {:id 2 :n 40}]"),
        ("2026-02", "[{:id 1 :n 30} {:id 3 :n 20}]"),
        ("2026-03", "[{:id 9 :n 50}]"),
    ] {
        project.eval(&format!(
            "(let [r (flow/step :table :it {{:op :upsert :table {{:name \"sales\" :partitions {{:key \"{month}\"}}}} :rows {rows} :key-fields [:id] :index-fields [:n]}})] r)"
        ));
    }
    project
}

#[test]
fn target_partitions_key() {
    let project = months();
    let of = |key: &str| {
        format!("{{:op :query :table {{:name \"sales\" :partitions {{:key {key}}}}} :sort [:id]}}")
    };
    check(
        &project,
        "(fn [r] (mapv (juxt :id :n) (:rows r)))",
        &[
            (&of("\"2026-01\""), "[[1 10] [2 40]]"),
            (&of(":2026-02"), "[[1 30] [3 20]]"),
        ],
    );
    refuses(
        &project,
        &[
            (&of("\"2026-04\""), "did you mean `2026-0"),
            (&of("\"x\""), "there are `2026-01`, `2026-02`, `2026-03`"),
            (&of("7"), "E0720"),
            (
                "{:op :query :table \"sales\"}",
                "has partitions, and none is named | there are `2026-01`",
            ),
            ("{:op :insert :table \"sales\" :rows [{:id 1}]}", "E0630"),
            ("{:op :delete :table \"sales\" :all true}", "E0630"),
            (
                "{:op :query :table {:name \"sales\" :partitions {}}}",
                "names none",
            ),
            (
                "{:op :query :table {:name \"sales\" :partitions {:kye \"a\"}}}",
                "did you mean `:key`?",
            ),
        ],
    );
}
