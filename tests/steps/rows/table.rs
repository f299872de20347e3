//! The rows of `tests/coverage/table.tsv` on writing and on tables as such. Those on reading are in `table_query`.

use crate::project::Project;

pub(crate) fn check(project: &Project, take: &str, cases: &[(&str, &str)]) {
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

/// Runs cases that must fail, and compares a part of each error.
pub(crate) fn refuses(project: &Project, cases: &[(&str, &str)]) {
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
fn table_partitions_key() {
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
                "has partitions, but none is selected | there are `2026-01`",
            ),
            ("{:op :insert :table \"sales\" :rows [{:id 1}]}", "E0630"),
            ("{:op :delete :table \"sales\" :all true}", "E0630"),
            (
                "{:op :query :table {:name \"sales\" :partitions {}}}",
                "names no partition",
            ),
            (
                "{:op :query :table {:name \"sales\" :partitions {:kye \"a\"}}}",
                "did you mean `:key`?",
            ),
        ],
    );
}

#[test]
fn table_partitions_keys() {
    let project = months();
    let both = "{:name \"sales\" :partitions {:keys [\"2026-01\" :2026-02]}}";
    check(
        &project,
        "(fn [r] [(mapv (juxt :partition-key :id :n) (:rows r)) (:has-more (:page r)) (:total-count (:page r))])",
        &[
            (
                &format!(
                    "{{:op :query :table {both} :select [:partition-key :id :n] :sort [[:n :desc]] :page {{:limit 3 :include-total-count true}}}}"
                ),
                "[[[\"2026-01\" 2 40] [\"2026-02\" 1 30] [\"2026-02\" 3 20]] true 4]",
            ),
            (
                "{:op :query :table {:name \"sales\" :partitions {:keys :all}} :select [:partition-key :id :n] :where [[:partition-key := \"2026-03\"]]}",
                "[[[\"2026-03\" 9 50]] false nil]",
            ),
        ],
    );
    check(
        &project,
        "(fn [r] (mapv (juxt :partition-key :total) (:groups r)))",
        &[(
            &format!(
                "{{:op :aggregate :table {both} :group-by [:partition-key] :metrics [{{:op :sum :field :n :as :total}}] :order-by [:partition-key]}}"
            ),
            "[[\"2026-01\" 50] [\"2026-02\" 50]]",
        )],
    );
    // A cursor walks through all selected partitions, and is valid only for them.
    let walk = format!(
        "(loop [cursor nil seen []]
           (let [r (flow/step :table :it {{:op :query :table {both} :sort [:n] :page {{:mode :cursor :limit 1 :cursor cursor}}}})
                 seen (into seen (map :n (:rows r)))]
             (if-let [next (:next-cursor (:page r))] (recur next seen) seen)))"
    );
    assert_eq!(project.eval(&walk), "[10 20 30 40]");
    let other = "(let [r (flow/step :table :a {:op :query :table {:name \"sales\" :partitions {:key \"2026-01\"}} :sort [:n] :page {:mode :cursor :limit 1}})]
        (flow/step :table :b {:op :query :table {:name \"sales\" :partitions {:key \"2026-02\"}} :sort [:n] :page {:mode :cursor :limit 1 :cursor (:next-cursor (:page r))}}))";
    assert!(
        project.eval(other).starts_with("E0627"),
        "{}",
        project.eval(other)
    );
    refuses(
        &project,
        &[
            (
                &format!("{{:op :insert :table {both} :rows [{{:id 7}}]}}"),
                "changed in one partition at a time, but 2 are selected",
            ),
            (
                &format!("{{:op :delete :table {both} :all true}}"),
                "changed in one partition at a time",
            ),
            (
                "{:op :insert :table {:name \"sales\" :partitions {:keys :all}} :rows [{:id 7}]}",
                "all are selected",
            ),
        ],
    );
}

#[test]
fn partitions_are_named() {
    let project = months();
    project.eval("(flow/step :table :it {:op :insert :table \"plain\" :rows [{:id 1}]})");
    refuses(
        &project,
        &[
            (
                "{:op :query :table \"sales\"}",
                "there are `2026-01`, `2026-02`, `2026-03`",
            ),
            (
                "{:op :aggregate :table \"sales\" :metrics [{:op :count}]}",
                "E0630",
            ),
            ("{:op :export :table \"sales\"}", "E0630"),
            ("{:op :get-row :table \"sales\" :row-id 1}", "E0630"),
            ("{:op :upsert :table \"sales\" :rows [{:id 1}]}", "E0630"),
            (
                "{:op :update-cell :table \"sales\" :row-id 1 :column :n :value 2}",
                "E0630",
            ),
            ("{:op :recompute :table \"sales\"}", "E0630"),
            (
                "{:op :query :table {:name \"plain\" :partitions {:key \"a\"}}}",
                "the table `plain` has no partitions",
            ),
            (
                "{:op :insert :table {:name \"plain\" :partitions {:key \"a\"}} :rows [{:id 2}]}",
                "the table `plain` has no partitions",
            ),
            (
                "{:op :create :table \"sales\" :columns {:id :long}}",
                "E0626",
            ),
        ],
    );
    // Rows of other partitions are not accessible.
    check(
        &project,
        "identity",
        &[
            (
                "{:op :get-row :table {:name \"sales\" :partitions {:key \"2026-02\"}} :row-id 1}",
                "{:row nil :exists? false}",
            ),
            (
                "{:op :delete :table {:name \"sales\" :partitions {:key \"2026-02\"}} :where [[:id := 2]]}",
                "{:success true :table \"sales\" :rows-deleted 0}",
            ),
        ],
    );
}

#[test]
fn op_schema() {
    let project = months();
    check(
        &project,
        "(juxt :partitioned? :partitions :row-count (fn [r] (mapv (juxt :name :type :key?) (:columns r))))",
        &[
            (
                "{:op :schema :table \"sales\"}",
                "[true [{:key \"2026-01\" :row-count 2} {:key \"2026-02\" :row-count 2} {:key \"2026-03\" :row-count 1}] 5 [[\"id\" :long true] [\"n\" :long false]]]",
            ),
            (
                "{:op :schema :table {:name \"sales\" :partitions {:key \"2026-01\"}}}",
                "[true [{:key \"2026-01\" :row-count 2} {:key \"2026-02\" :row-count 2} {:key \"2026-03\" :row-count 1}] 5 [[\"id\" :long true] [\"n\" :long false]]]",
            ),
        ],
    );
}

#[test]
fn a_partition_is_replaced_and_dropped() {
    let project = months();
    let keys = "(let [r (flow/step :table :s {:op :schema :table \"sales\"})] (mapv (juxt :key :row-count) (:partitions r)))";
    let of = |op: &str| {
        format!(
            "(let [r (flow/step :table :it {{{op} :table {{:name \"sales\" :partitions {{:key \"2026-02\"}}}}}})] r)"
        )
    };
    project.eval(&of(":op :replace :rows [{:id 7 :n 70}]"));
    assert_eq!(
        project.eval(keys),
        "[[\"2026-01\" 2] [\"2026-02\" 1] [\"2026-03\" 1]]"
    );
    // A failed write leaves the existing rows.
    let failed = project.eval(&of(":op :replace :rows [{:id 8 :n \"x\"}]"));
    assert!(failed.starts_with("E0623"), "{failed}");
    assert_eq!(
        project.eval(keys),
        "[[\"2026-01\" 2] [\"2026-02\" 1] [\"2026-03\" 1]]"
    );
    project.eval(&of(":op :delete :all true"));
    assert_eq!(project.eval(keys), "[[\"2026-01\" 2] [\"2026-03\" 1]]");
    // The result of a step names the partition, so it can be queried directly.
    let chained = "(let [r (flow/step :function :p {:code '(fn [_] [{:id 1 :n 5}]) :input {} :persist {:type :table :table \"sales\" :key-fields [:id] :partitions {:key \"2026-05\"}}})
                         q (flow/step :table :q {:op :query :table r})] [(:partitions r) (:row-count r) (:rows q)])";
    assert_eq!(
        project.eval(chained),
        "[{:key \"2026-05\"} 1 [{:id 1 :n 5}]]"
    );
}

pub(crate) fn people() -> Project {
    let project = Project::new();
    for step in [
        "{:op :insert :table \"people\" :key-fields [:id] :rows [{:id 1 :name \"Ada\" :city \"London\"} {:id 2 :name \"Grace\" :city \"New York\"}]}",
        "{:op :insert :table \"orders\" :key-fields [:no] :rows [{:no 1 :who 1 :total 10} {:no 2 :who 2 :total 25.5} {:no 3 :who 9 :total 7} {:no 4 :total 1}]}",
    ] {
        let found = project.eval(&format!(
            "(let [r (flow/step :table :it {step})] (:rows-inserted r))"
        ));
        assert!(["2", "4"].contains(&found.as_str()), "{found}");
    }
    project
}

pub(crate) fn looking_up() -> Project {
    let project = people();
    for (column, definition) in [
        ("who", "{:reference {:table \"people\" :column :id}}"),
        (
            "name",
            "{:computed {:type \"lookup\" :reference-column :who :field :name}}",
        ),
    ] {
        let found = project.eval(&format!("(let [r (flow/step :table :it {{:op :set-column :table \"orders\" :column \"{column}\" :definition {definition}}})] (:success r))"));
        assert_eq!(found, "true");
    }
    project
}

pub(crate) fn names(project: &Project) -> String {
    project.eval("(let [r (flow/step :table :q {:op :query :table \"orders\" :sort [:no]})] (mapv :name (:rows r)))")
}

#[test]
fn op_update_cell() {
    let project = people();
    let cell = |rest: &str| format!("{{:op :update-cell :table \"orders\" {rest}}}");
    check(
        &project,
        "(juxt :row-id :column :value :previous)",
        &[
            (
                &cell(":row-id 1 :column :total :value 11"),
                "[1 \"total\" 11 10]",
            ),
            (
                &cell(":key {:no 2} :column \"total\" :value nil"),
                "[2 \"total\" nil 25.5]",
            ),
            (
                &cell(":key {\"no\" 2} :column :total :value 3"),
                "[2 \"total\" 3 nil]",
            ),
        ],
    );
    let rows = "(let [r (flow/step :table :q {:op :query :table \"orders\" :sort [:no] :select [:no :total] :page {:limit 2}})] (:rows r))";
    assert_eq!(project.eval(rows), "[{:no 1 :total 11} {:no 2 :total 3}]");
}

#[test]
fn update_cell_row_id() {
    let project = looking_up();
    // A column that is computed from the cell follows it.
    project.eval("(flow/step :table :it {:op :update-cell :table \"orders\" :row-id 3 :column :who :value 2})");
    assert_eq!(names(&project), "[\"Ada\" \"Grace\" \"Grace\" nil]");
    refuses(
        &project,
        &[
            (
                "{:op :update-cell :table \"orders\" :row-id 99 :column :who :value 2}",
                "E0629 the table `orders` has no such row: `:row-id` 99",
            ),
            (
                "{:op :update-cell :table \"orders\" :column :who :value 2}",
                "no row was chosen",
            ),
        ],
    );
}

#[test]
fn update_cell_key() {
    let project = people();
    refuses(
        &project,
        &[
            (
                "{:op :update-cell :table \"orders\" :key {:no 99} :column :who :value 2}",
                "has no such row: `no` 99",
            ),
            (
                "{:op :update-cell :table \"people\" :key {:nom 1} :column :name :value 2}",
                "E0622",
            ),
            (
                "{:op :update-cell :table \"orders\" :key {:no 1} :row-id 1 :column :who :value 2}",
                "the row is chosen in more than one way",
            ),
            (
                "{:op :update-cell :table \"orders\" :key {:no 1} :column :no :value 2}",
                "has a row with `no` 2 already",
            ),
            (
                "{:op :update-cell :table \"orders\" :key {:no 1} :column :no :value nil}",
                "E0625",
            ),
        ],
    );
}

#[test]
fn update_cell_column() {
    let project = looking_up();
    refuses(
        &project,
        &[
            (
                "{:op :update-cell :table \"orders\" :row-id 1 :column :whom :value 2}",
                "did you mean `who`?",
            ),
            (
                "{:op :update-cell :table \"orders\" :row-id 1 :column 7 :value 2}",
                "E0712",
            ),
            (
                "{:op :update-cell :table \"orders\" :row-id 1 :column :name :value \"x\"}",
                "E0634 `name` is computed, from `who`",
            ),
            (
                "{:op :update-cell :table \"orders\" :row-id 1 :value 2}",
                "needs `:column`",
            ),
        ],
    );
}

#[test]
fn update_cell_value() {
    let project = people();
    refuses(
        &project,
        &[
            (
                "{:op :update-cell :table \"orders\" :row-id 1 :column :total}",
                "needs `:value`",
            ),
            (
                "{:op :update-cell :table \"orders\" :row-id 1 :column :total :value \"ten\"}",
                "E0623",
            ),
        ],
    );
    let huge = "(let [r (flow/step :table :it {:op :update-cell :table \"people\" :row-id 1 :column :name :value (apply str (repeat 300000 \"ab'\"))})] (count (:value r)))";
    assert_eq!(project.eval(huge), "900000");
}

#[test]
fn op_update_cell_format() {
    let project = people();
    let format = "{:op :update-cell-format :table \"orders\" :key {:no 1} :column :total :format {:display \"currency\" :currency \"EUR\"}}";
    check(
        &project,
        "(juxt :row-id :column :format)",
        &[(
            format,
            "[1 \"total\" {:display \"currency\" :currency \"EUR\"}]",
        )],
    );
    let ask = "(let [r (flow/step :table :q {:op :query :table \"orders\" :sort [:no] :page {:limit 2}})] [(map :total (:rows r)) (:formats r)])";
    assert_eq!(
        project.eval(ask),
        "[(10 25.5) [{:row-id 1 :column \"total\" :format {:display \"currency\" :currency \"EUR\"}}]]"
    );
    check(
        &project,
        "(juxt :format)",
        &[(
            "{:op :update-cell-format :table \"orders\" :row-id 1 :column :total :format nil}",
            "[nil]",
        )],
    );
    assert_eq!(project.eval(ask), "[(10 25.5) nil]");
}

#[test]
fn update_cell_format_format() {
    let project = people();
    let of = |format: &str| {
        format!("{{:op :update-cell-format :table \"orders\" :row-id 1 :column :total{format}}}")
    };
    refuses(
        &project,
        &[
            (&of(""), "needs `:format`"),
            (
                &of(" :format {:display \"currency\"}"),
                "E0721 `:display \"currency\"` needs `:currency`",
            ),
            (
                &of(" :format {:display \"date\" :currency \"USD\"}"),
                "takes no `:currency`",
            ),
            (&of(" :format {:display \"dat\"}"), "E0712"),
        ],
    );
}

fn displays(display: &str) {
    let project = people();
    let cell = format!("(let [r (flow/step :table :it {{:op :update-cell-format :table \"orders\" :row-id 1 :column :total :format {display}}})
        q (flow/step :table :q {{:op :get-row :table \"orders\" :row-id 1}})] [(:total (:row q)) (map :format (:formats q))])");
    assert_eq!(project.eval(&cell), format!("[10 ({display})]"));
}

#[test]
fn format_currency() {
    displays("{:display \"currency\" :currency \"USD\"}");
}

#[test]
fn format_relative_time() {
    displays("{:display \"relative-time\"}");
}

#[test]
fn format_date() {
    displays("{:display \"date\"}");
}

#[test]
fn format_timestamp() {
    displays("{:display \"timestamp\"}");
}

#[test]
fn format_date_time() {
    displays("{:display \"date-time\"}");
}

#[test]
fn formats_change_no_values() {
    let project = people();
    let ask = "(let [r (flow/step :table :q {:op :export :table \"orders\"})] (:content r))";
    let before = project.eval(ask);
    for step in [
        "{:op :update-cell-format :table \"orders\" :row-id 1 :column :total :format {:display \"date\"}}",
        "{:op :set-column :table \"orders\" :column :total :definition {:format {:display \"currency\" :currency \"USD\"}}}",
    ] {
        project.eval(&format!("(flow/step :table :it {step})"));
    }
    assert_eq!(project.eval(ask), before);
}

#[test]
fn op_recompute() {
    let project = looking_up();
    project.eval("(flow/step :table :it {:op :upsert :table \"people\" :rows [{:id 1 :name \"Ada L.\"} {:id 9 :name \"Alan\"}]})");
    assert_eq!(names(&project), "[\"Ada\" \"Grace\" nil nil]");
    check(
        &project,
        "(juxt :rows-scanned :rows-updated :has-more)",
        &[
            ("{:op :recompute :table \"orders\"}", "[4 2 false]"),
            ("{:op :recompute :table \"orders\"}", "[4 0 false]"),
            ("{:op :recompute :table \"people\"}", "[3 0 false]"),
        ],
    );
    assert_eq!(names(&project), "[\"Ada L.\" \"Grace\" \"Alan\" nil]");
}

fn renamed() -> Project {
    let project = looking_up();
    project.eval("(flow/step :table :it {:op :upsert :table \"people\" :rows [{:id 1 :name \"A\"} {:id 2 :name \"G\"}]})");
    project
}

#[test]
fn recompute_where() {
    let project = renamed();
    check(
        &project,
        "(juxt :rows-scanned :rows-updated :has-more)",
        &[(
            "{:op :recompute :table \"orders\" :where [[:no := 2]]}",
            "[1 1 false]",
        )],
    );
    assert_eq!(names(&project), "[\"Ada\" \"G\" nil nil]");
}

#[test]
fn recompute_limit() {
    let project = renamed();
    check(
        &project,
        "(juxt :rows-scanned :rows-updated :has-more)",
        &[("{:op :recompute :table \"orders\" :limit 1}", "[1 1 true]")],
    );
    refuses(
        &project,
        &[("{:op :recompute :table \"orders\" :limit 0}", "limit")],
    );
}

#[test]
fn recompute_offset() {
    let project = renamed();
    check(
        &project,
        "(juxt :rows-scanned :rows-updated :has-more)",
        &[(
            "{:op :recompute :table \"orders\" :limit 3 :offset 1}",
            "[3 1 false]",
        )],
    );
    assert_eq!(names(&project), "[\"Ada\" \"G\" nil nil]");
}
