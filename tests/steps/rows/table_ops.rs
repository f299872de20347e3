//! The rows of `tests/coverage/table.tsv` on naming operations, and on limits that are written in a flow.

use super::table::{check, refuses};
use crate::project::Project;

fn numbers() -> Project {
    let project = Project::new();
    project.eval(
        "(flow/step :table :make {:op :insert :table \"t\" :rows (mapv (fn [n] {:n n}) (range 4))})",
    );
    project
}

#[test]
fn op() {
    let project = numbers();
    for op in [":query", "\"query\""] {
        check(
            &project,
            ":count",
            &[(&format!("{{:op {op} :table \"t\"}}"), "4")],
        );
    }
    refuses(
        &project,
        &[
            ("{:table \"t\"}", "needs `:op`"),
            ("{:op :qeury :table \"t\"}", "did you mean `:query`?"),
            ("{:op 7 :table \"t\"}", "`:op`"),
            ("{:op :query}", "needs `:table`"),
            ("{:op :query :table \"t\" :rows [{:n 1}]}", "`:rows`"),
        ],
    );
}

#[test]
fn delete_all() {
    let project = numbers();
    let delete = |which: &str| format!("{{:op :delete :table \"t\" {which}}}");
    // No rows are removed by accident.
    refuses(
        &project,
        &[
            (&delete(""), ":all true"),
            (&delete(":all false"), ":all true"),
            (&delete(":all \"yes\""), "`:all`"),
            (&delete(":all true :where [[:n := 1]]"), "`:all`"),
        ],
    );
    check(&project, ":count", &[("{:op :query :table \"t\"}", "4")]);
    check(&project, ":rows-deleted", &[(&delete(":all true"), "4")]);
    // The table stays, with its columns.
    check(
        &project,
        "(juxt :count :rows)",
        &[("{:op :query :table \"t\" :where [[:n :> 0]]}", "[0 []]")],
    );
}

#[test]
fn replace_rows() {
    let project = numbers();
    let replace = |rows: &str| format!("{{:op :replace :table \"t\" :rows {rows}}}");
    refuses(
        &project,
        &[
            ("{:op :replace :table \"t\"}", "needs `:rows`"),
            (&replace("7"), "`:rows`"),
            (&replace("[7]"), "E0764"),
            // Invalid rows do not remove existing ones.
            (&replace("[{:n 1} {:n \"x\"}]"), "E0623"),
        ],
    );
    check(&project, ":count", &[("{:op :query :table \"t\"}", "4")]);
    check(
        &project,
        "(juxt :rows-written :row-count)",
        &[(&replace("[{:n 9} {:n 8}]"), "[2 2]")],
    );
    check(
        &project,
        "(fn [r] (mapv :n (:rows r)))",
        &[("{:op :query :table \"t\" :sort [:n]}", "[8 9]")],
    );
}

/// Returns the codes of the findings of `check` in a query whose page has this limit.
fn found(project: &Project, limit: &str) -> Vec<String> {
    let text = format!(
        "(let [n 2] (flow/step :table :q {{:op :query :table \"t\" :page {{:limit {limit}}}}}))"
    );
    project.write("checked.edn", text.as_bytes());
    let path = project.path().join("checked.edn");
    let session = project.engine.session();
    let steps = flowstone_project::all_steps();
    let checked = flowstone_engine::disk::check(&session, &path, "checked.edn", &steps);
    let shown = checked.findings.iter();
    shown
        .map(|it| format!("{} {}", it.code, it.message))
        .collect()
}

#[test]
fn literal_limits() {
    let project = numbers();
    // A literal limit is checked before anything runs.
    for limit in ["0", "-1", "1001", "\"ten\"", "1.5"] {
        let found = found(&project, limit);
        assert!(
            found.len() == 1 && found[0].contains("limit"),
            "{limit}: {found:?}"
        );
    }
    for limit in ["1", "1000", "n", "(inc n)"] {
        assert_eq!(found(&project, limit), [""; 0], "{limit}");
    }
    // A computed limit is checked with the same bounds once it is known.
    let computed = |n: &str| {
        project.eval(&format!(
            "(let [n {n}] (:count (flow/step :table :q {{:op :query :table \"t\" :page {{:limit (inc n)}}}})))"
        ))
    };
    assert_eq!(computed("1"), "2");
    for n in ["-1", "1000"] {
        assert!(computed(n).contains("limit"), "{n}: {}", computed(n));
    }
}
