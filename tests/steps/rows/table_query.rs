//! The rows of `tests/coverage/table.tsv` on reading: queries, pages, groups, metrics, CSV.

use crate::project::Project;

const ORDERS: &str = "id,status,amount,day,note\n\
    1,open,10,2026-01-05,alpha\n\
    2,open,250,2026-01-20,beta\n\
    3,paid,99.5,2026-02-01,gamma\n\
    4,,,,\n\
    5,lost,-3,2026-04-30,alphabet\n";

fn orders() -> Project {
    let project = Project::new();
    project.write("orders.csv", ORDERS.as_bytes());
    let done = project.eval(
        "(let [r (flow/step :table :in {:op :import :table \"orders\" :from \"orders.csv\" :key-fields [:id] :index-fields [:status :amount]})] (:rows-written r))",
    );
    assert_eq!(done, "5");
    project
}

/// Runs operations on the orders, and compares what a function makes of each result, or a part of the error.
fn check(take: &str, cases: &[(&str, &str)]) {
    let project = orders();
    let mut failures = Vec::new();
    for (config, expected) in cases {
        let found = project.eval(&format!(
            "(let [r (flow/step :table :it (merge {{:table \"orders\"}} {config}))] ({take} r))"
        ));
        let fits = match expected.strip_prefix('!') {
            Some(words) => found.contains(words) && found.starts_with('E'),
            None => found == *expected,
        };
        if !fits {
            failures.push(format!(
                "{config}\n  expected {expected}\n  found    {found}"
            ));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

const IDS: &str = "(fn [r] (mapv :id (:rows r)))";

#[test]
fn op_query() {
    check(
        "(fn [r] [(mapv :id (:rows r)) (:count r) (:mode (:page r))])",
        &[
            ("{:op :query}", "[[1 2 3 4 5] 5 :offset]"),
            (
                "{:op :query :rows []}",
                "!`:rows` does not apply to `:op :query`",
            ),
            ("{:op :query :table \"order\"}", "!did you mean `orders`?"),
        ],
    );
}

#[test]
fn query_select() {
    check(
        "(fn [r] (first (:rows r)))",
        &[
            (
                "{:op :query :select [:id \"status\"]}",
                "{:id 1 :status \"open\"}",
            ),
            (
                "{:op :query :select [:amount :row-id]}",
                "{:amount 10 :row-id 1}",
            ),
            ("{:op :query :select [:amont]}", "!did you mean `amount`?"),
            (
                "{:op :query :select [7]}",
                "!`:select` needs a vector of column names",
            ),
        ],
    );
}

#[test]
fn query_where() {
    check(
        IDS,
        &[
            ("{:op :query :where [[:status := \"open\"]]}", "[1 2]"),
            (
                "{:op :query :where [[:status := \"open\"] [:amount :> 100]]}",
                "[2]",
            ),
            (
                "{:op :query :where [[:amount :> \"x\"]]}",
                "!`amount` holds doubles",
            ),
        ],
    );
}

#[test]
fn query_sort() {
    check(
        IDS,
        &[
            ("{:op :query :sort [[:amount :desc]]}", "[2 3 1 5 4]"),
            (
                "{:op :query :sort [[\"status\" \"asc\"] [\"amount\" \"desc\"]]}",
                "[4 5 2 1 3]",
            ),
            ("{:op :query :sort [[:amount :down]]}", "!E0764"),
        ],
    );
}

#[test]
fn query_page() {
    check(
        "(fn [r] [(mapv :id (:rows r)) (:page r)])",
        &[
            (
                "{:op :query :sort [:id] :page {:limit 2}}",
                "[[1 2] {:mode :offset :limit 2 :offset 0 :has-more true :next-offset 2}]",
            ),
            ("{:op :query :page {:limt 2}}", "!did you mean `:limit`?"),
        ],
    );
}

#[test]
fn query_nested() {
    check(
        IDS,
        &[
            (
                "{:op :query :query {:where [[:id :> 3]] :page {:limit 1} :sort [[:id :desc]]}}",
                "[5]",
            ),
            (
                "{:op :query :query {:sort [:id]} :sort [:id]}",
                "!`:sort` is set beside `:query`",
            ),
        ],
    );
}

#[test]
fn op_get_row() {
    check(
        "(fn [r] [(:id (:row r)) (:exists? r)])",
        &[
            ("{:op :get-row :row-id 3}", "[3 true]"),
            ("{:op :get-row :row-id 33}", "[nil false]"),
            ("{:op :get-row}", "!no row was chosen"),
        ],
    );
}

#[test]
fn get_row_row_id() {
    check(
        "(fn [r] (:id (:row r)))",
        &[
            ("{:op :get-row :row-id 5}", "5"),
            ("{:op :get-row :row-id \"5\"}", "!:row-id"),
            (
                "{:op :get-row :row-id 5 :key {:id 5}}",
                "!the row is chosen in more than one way",
            ),
        ],
    );
}

#[test]
fn get_row_key() {
    check(
        "(fn [r] (:amount (:row r)))",
        &[
            ("{:op :get-row :key {:id 2}}", "250"),
            (
                "{:op :get-row :key {\"status\" \"open\" \"amount\" 10}}",
                "10",
            ),
            (
                "{:op :get-row :key {:no 2}}",
                "!the table `orders` has no column `no`",
            ),
        ],
    );
}

const GROUPS: &str = "(fn [r] (mapv (comp vec vals) (:groups r)))";

#[test]
fn op_aggregate() {
    check(
        "(fn [r] [(:groups r) (:count r)])",
        &[
            (
                "{:op :aggregate :metrics [{:op :count :as :n}]}",
                "[[{:n 5}] 1]",
            ),
            (
                "{:op :aggregate}",
                "!`:op :aggregate` needs `:metrics` or `:group-by`",
            ),
        ],
    );
}

#[test]
fn aggregate_where() {
    check(
        GROUPS,
        &[
            (
                "{:op :aggregate :where [[:amount :> 50]] :metrics [{:op :count :as :n}]}",
                "[[2]]",
            ),
            (
                "{:op :aggregate :where [[:amount :> 50]] :group-by [:status] :metrics [{:op :count :as :n}]}",
                "[[\"open\" 1] [\"paid\" 1]]",
            ),
            (
                "{:op :aggregate :where [[:x := 1]] :metrics [{:op :count :as :n}]}",
                "!no column `x`",
            ),
        ],
    );
}

#[test]
fn aggregate_group_by() {
    group_by();
}

#[test]
fn group_by() {
    check(
        GROUPS,
        &[
            (
                "{:op :aggregate :group-by [\"status\"] :metrics [{:op :count :as :n}]}",
                "[[\"open\" 2] [\"paid\" 1] [nil 1] [\"lost\" 1]]",
            ),
            (
                "{:op :aggregate :group-by [{:field :status :as :s}] :metrics [{:op :sum :field :amount :as :t}] :where [[:status := \"open\"]]}",
                "[[\"open\" 260.0]]",
            ),
            (
                "{:op :aggregate :group-by [:status {:field :amount :as :status}]}",
                "!two columns of the result are called `status`",
            ),
        ],
    );
}

#[test]
fn group_by_bucket() {
    check(
        GROUPS,
        &[
            (
                "{:op :aggregate :group-by [{:field :amount :bucket {:op \"numeric-bin\" :size 100} :as \"bin\"}] :metrics [{:op :count :as :n}]}",
                "[[0.0 2] [200.0 1] [nil 1] [-100.0 1]]",
            ),
            (
                "{:op :aggregate :group-by [{:field :day :bucket {:op :date-trunc :unit :month} :as :month}] :metrics [{:op :count :as :n}]}",
                "[[\"2026-01-01\" 2] [\"2026-02-01\" 1] [nil 1] [\"2026-04-01\" 1]]",
            ),
            (
                "{:op :aggregate :group-by [{:field :status :bucket {:op :numeric-bin :size 1} :as :b}]}",
                "!the bucket of `status` needs numbers",
            ),
            (
                "{:op :aggregate :group-by [{:field :amount :bucket {:op :numeric-bin :size 0} :as :b}]}",
                "!",
            ),
        ],
    );
}

#[test]
fn aggregate_metrics() {
    metrics();
}

#[test]
fn metrics() {
    check(
        GROUPS,
        &[
            (
                "{:op :aggregate :metrics [{:op :count :field :amount :as :a} {:op :count-distinct :field :status :as :b} {:op :sum :field :amount :as :c} {:op :avg :field :amount :as :d}]}",
                "[[4 3 356.5 89.125]]",
            ),
            (
                "{:op :aggregate :metrics [{:op :min :field :amount :as :a} {:op :max :field :status :as :b} {:op :first :field :note :as :c} {:op :last :field :note :as :d}]}",
                "[[-3 \"paid\" \"alpha\" \"alphabet\"]]",
            ),
            (
                "{:op :aggregate :metrics [{:op :sum :field :status :as :a}]}",
                "!this metric needs numbers, and `status` holds strings",
            ),
            (
                "{:op :aggregate :metrics [{:op :mean :field :amount :as :a}]}",
                "!E0764",
            ),
        ],
    );
}

#[test]
fn metric_percentile() {
    check(
        GROUPS,
        &[
            (
                "{:op :aggregate :metrics [{:op :percentile :p 0 :field :amount :as :a} {:op :percentile :p 100 :field :amount :as :b}]}",
                "[[-3.0 250.0]]",
            ),
            (
                "{:op :aggregate :metrics [{:op :percentile :field :amount :as :a}]}",
                "!:p",
            ),
        ],
    );
}

#[test]
fn metric_median() {
    check(
        GROUPS,
        &[(
            "{:op :aggregate :metrics [{:op :median :field :amount :as :m}]}",
            "[[54.75]]",
        )],
    );
}

#[test]
fn aggregate_having() {
    having();
}

#[test]
fn having() {
    check(
        GROUPS,
        &[
            (
                "{:op :aggregate :group-by [:status] :metrics [{:op :count :as :n}] :having [[\"n\" \">\" 1]]}",
                "[[\"open\" 2]]",
            ),
            (
                "{:op :aggregate :group-by [:status] :metrics [{:op :count :as :n}] :having [[:m :> 1]]}",
                "!the groups have no `m`",
            ),
        ],
    );
}

#[test]
fn aggregate_order_by() {
    order_by();
}

#[test]
fn order_by() {
    check(
        GROUPS,
        &[
            (
                "{:op :aggregate :group-by [:status] :metrics [{:op :count :as :n}] :order-by [[\"n\" \"desc\"] [:status :desc]]}",
                "[[\"open\" 2] [\"paid\" 1] [\"lost\" 1] [nil 1]]",
            ),
            (
                "{:op :aggregate :group-by [:status] :metrics [{:op :count :as :n}] :order-by [[:k :desc]]}",
                "!the groups have no `k`",
            ),
        ],
    );
}

#[test]
fn aggregate_limit() {
    check(
        GROUPS,
        &[
            (
                "{:op :aggregate :group-by [:status] :metrics [{:op :count :as :n}] :order-by [[:n :desc]] :limit 1}",
                "[[\"open\" 2]]",
            ),
            ("{:op :aggregate :group-by [:status] :limit 0}", "!:limit"),
        ],
    );
}

const CONTENT: &str = "(fn [r] [(:content r) (:content-type r) (:filename r)])";

#[test]
fn op_export() {
    check(
        "(fn [r] (= (:content r) (clojure.string/join \"\\n\" [\"id,status,amount,day,note\" \"1,open,10,2026-01-05,alpha\" \"2,open,250,2026-01-20,beta\" \"3,paid,99.5,2026-02-01,gamma\" \"4,,,,\" \"5,lost,-3,2026-04-30,alphabet\" \"\"])))",
        &[
            ("{:op :export}", "true"),
            ("{:op :export :page {}}", "!does not apply to `:op :export`"),
        ],
    );
}

#[test]
fn export_select() {
    check(
        CONTENT,
        &[
            (
                "{:op :export :select [:note :id] :where [[:id := 3]]}",
                "[\"note,id\\ngamma,3\\n\" \"text/csv\" \"orders.csv\"]",
            ),
            ("{:op :export :select [:nope]}", "!no column `nope`"),
        ],
    );
}

#[test]
fn export_where() {
    check(
        "(fn [r] (:rows r))",
        &[
            ("{:op :export :where [[:amount :> 50]]}", "2"),
            ("{:op :export :where [[:amount :>]]}", "!E0764"),
        ],
    );
}

#[test]
fn export_sort() {
    check(
        "(fn [r] (:content r))",
        &[(
            "{:op :export :select [:id] :sort [[:amount :desc]]}",
            "\"id\\n2\\n3\\n1\\n5\\n4\\n\"",
        )],
    );
}

#[test]
fn where_clauses() {
    check(
        IDS,
        &[
            ("{:op :query :where [[\"status\" \"=\" \"open\"]]}", "[1 2]"),
            (
                "{:op :query :where [[:note :starts-with \"alpha\"]]}",
                "[1 5]",
            ),
            (
                "{:op :query :where [[:status :starts-with \"o\"]]}",
                "[1 2]",
            ),
            (
                "{:op :query :where [[:status :in [\"lost\" \"paid\"]]]}",
                "[3 5]",
            ),
            ("{:op :query :where [[:amount :between [0 100]]]}", "[1 3]"),
            (
                "{:op :query :where [[\"or\" [[:id := 1] [\"not\" [[:id :< 5]]]]]]}",
                "[1 5]",
            ),
            ("{:op :query :where [[:status :is-null]]}", "[4]"),
            ("{:op :query :where [[:note :ends-with \"a\"]]}", "[1 2 3]"),
            (
                "{:op :query :where [[:status \"~\" \"open\"]]}",
                "!which does not exist",
            ),
            (
                "{:op :query :where [[:status := \"'; DROP TABLE t_1; --\"]]}",
                "[]",
            ),
        ],
    );
}

#[test]
fn sort() {
    query_sort();
}

#[test]
fn page_offset() {
    check(
        "(fn [r] [(mapv :id (:rows r)) (:next-offset (:page r)) (:has-more (:page r))])",
        &[
            (
                "{:op :query :sort [:id] :page {:mode :offset :limit 2 :offset 1}}",
                "[[2 3] 3 true]",
            ),
            (
                "{:op :query :sort [:id] :page {:limit 2 :offset 3}}",
                "[[4 5] nil false]",
            ),
            ("{:op :query :page {:offset -1}}", "!:offset"),
        ],
    );
}

#[test]
fn page_cursor() {
    let project = orders();
    for sort in [
        "[:amount]",
        "[[:amount :desc]]",
        "[:status [:id :desc]]",
        "[]",
    ] {
        let pages = format!(
            "(loop [cursor nil ids []]
               (let [r (flow/step :table :page {{:op :query :table \"orders\" :sort {sort} :page {{:mode :cursor :limit 2 :cursor cursor}}}})
                     ids (into ids (map :id (:rows r)))]
                 (if-let [next (:next-cursor (:page r))] (recur next ids) ids)))"
        );
        let whole = format!(
            "(let [r (flow/step :table :it {{:op :query :table \"orders\" :sort {sort}}})] (mapv :id (:rows r)))"
        );
        assert_eq!(project.eval(&pages), project.eval(&whole), "{sort}");
    }
    check(
        IDS,
        &[(
            "{:op :query :page {:mode :cursor :cursor \"zzz\"}}",
            "!the cursor does not belong to this query",
        )],
    );
}

#[test]
fn page_include_total_count() {
    check(
        "(fn [r] (:total-count (:page r)))",
        &[
            (
                "{:op :query :page {:limit 1 :include-total-count? true}}",
                "5",
            ),
            ("{:op :query :page {:limit 1}}", "nil"),
        ],
    );
}

#[test]
fn page_limit() {
    check(
        "(fn [r] (:count r))",
        &[
            ("{:op :query :page {:limit 1000}}", "5"),
            ("{:op :query :page {:limit 3}}", "3"),
            ("{:op :query :page {:limit 0}}", "!from 1 to 1000"),
            ("{:op :query :page {:limit 1001}}", "!from 1 to 1000"),
        ],
    );
}

#[test]
fn key() {
    get_row_key();
}

/// Runs a query with one condition on the orders.
fn chooses(condition: &str, ids: &str) {
    let config = format!("{{:op :query :where [{condition}]}}");
    check(IDS, &[(&config, ids)]);
}

#[test]
fn where_equal() {
    chooses("[:status := \"open\"]", "[1 2]");
    chooses("[:status := nil]", "[4]");
}

#[test]
fn where_not_equal() {
    chooses("[:status :!= \"open\"]", "[3 4 5]");
}

#[test]
fn where_less() {
    chooses("[:amount :< 10]", "[5]");
}

#[test]
fn where_at_most() {
    chooses("[:amount :<= 10]", "[1 5]");
}

#[test]
fn where_greater() {
    chooses("[:amount :> 99.5]", "[2]");
}

#[test]
fn where_at_least() {
    chooses("[:amount :>= 99.5]", "[2 3]");
}

#[test]
fn where_in() {
    chooses("[:id :in [1 5 7]]", "[1 5]");
    chooses("[:status :in []]", "[]");
}

#[test]
fn where_not_in() {
    chooses("[:id :not-in [1 5 7]]", "[2 3 4]");
}

#[test]
fn where_contains() {
    chooses("[:note :contains \"et\"]", "[2 5]");
    chooses("[:note :contains \"%\"]", "[]");
}

#[test]
fn where_not_contains() {
    chooses("[:note :not-contains \"alpha\"]", "[2 3 4]");
}

#[test]
fn where_starts_with() {
    chooses("[:note :starts-with \"alpha\"]", "[1 5]");
    chooses("[:note :starts-with \"\"]", "[1 2 3 5]");
    chooses("[:note :starts-with \"alphac\"]", "[]");
}

#[test]
fn where_ends_with() {
    chooses("[:note :ends-with \"bet\"]", "[5]");
}

#[test]
fn where_like() {
    chooses("[:note :like \"%et_\"]", "[2]");
}

#[test]
fn where_between() {
    chooses("[:amount :between [10 99.5]]", "[1 3]");
    check(
        IDS,
        &[(
            "{:op :query :where [[:amount :between [1]]]}",
            "!`between` takes 2",
        )],
    );
}

#[test]
fn where_is_null() {
    chooses("[:amount :is-null]", "[4]");
}

#[test]
fn where_not_null() {
    chooses("[:amount :not-null]", "[1 2 3 5]");
}

#[test]
fn where_or() {
    chooses("[\"or\" [[:id := 1] [:id := 4]]]", "[1 4]");
}

#[test]
fn where_and() {
    chooses(
        "[\"or\" [[\"and\" [[:id :> 1] [:id :< 3]]] [:id := 5]]]",
        "[2 5]",
    );
}

#[test]
fn where_not() {
    chooses("[\"not\" [:status := \"open\"]]", "[3 4 5]");
}

/// Computes one metric over all orders.
fn figure(metric: &str, value: &str) {
    let config = format!("{{:op :aggregate :metrics [{metric}]}}");
    check(
        "(fn [r] (first (vals (first (:groups r)))))",
        &[(&config, value)],
    );
}

#[test]
fn metric_count() {
    figure("{:op :count :as :n}", "5");
    figure("{:op :count :field :amount :as :n}", "4");
}

#[test]
fn metric_count_distinct() {
    figure("{:op :count-distinct :field :status :as :n}", "3");
}

#[test]
fn metric_sum() {
    figure("{:op :sum :field :amount :as :n}", "356.5");
    figure("{:op :sum :field :id :as :n}", "15");
}

#[test]
fn metric_avg() {
    figure("{:op :avg :field :id :as :n}", "3.0");
}

#[test]
fn metric_min() {
    figure("{:op :min :field :day :as :n}", "\"2026-01-05\"");
}

#[test]
fn metric_max() {
    figure("{:op :max :field :amount :as :n}", "250");
}

#[test]
fn metric_first() {
    figure("{:op :first :field :status :as :n}", "\"open\"");
}

#[test]
fn metric_last() {
    figure("{:op :last :field :status :as :n}", "\"lost\"");
}

#[test]
fn bucket_numeric_bin() {
    check(
        GROUPS,
        &[(
            "{:op :aggregate :group-by [{:field :id :bucket {:op :numeric-bin :size 2} :as :b}] :metrics [{:op :count :as :n}]}",
            "[[0 1] [2 2] [4 2]]",
        )],
    );
}

#[test]
fn bucket_date_trunc() {
    for (unit, groups) in [
        (
            ":week",
            "[[\"2026-01-05\" 1] [\"2026-01-19\" 1] [\"2026-01-26\" 1] [\"2026-04-27\" 1]]",
        ),
        (":quarter", "[[\"2026-01-01\" 3] [\"2026-04-01\" 1]]"),
        (":year", "[[\"2026-01-01\" 4]]"),
    ] {
        let config = format!(
            "{{:op :aggregate :where [[:day :not-null]] :group-by [{{:field :day :bucket {{:op :date-trunc :unit {unit}}} :as :b}}] :metrics [{{:op :count :as :n}}]}}"
        );
        check(GROUPS, &[(&config, groups)]);
    }
}

#[test]
fn strings_or_keywords() {
    check(
        IDS,
        &[
            (
                "{:op :query :where [[:status := \"open\"]] :sort [:id]}",
                "[1 2]",
            ),
            (
                "{:op \"query\" :where [[\"status\" \"=\" \"open\"]] :sort [\"id\"]}",
                "[1 2]",
            ),
        ],
    );
}

#[test]
fn indexes() {
    // A test beside the store shows that the indexes are used: `stores/sqlite/table/plans.rs`.
    check(
        "(fn [r] (:index-fields r))",
        &[("{:op :schema}", "[\"status\" \"amount\"]")],
    );
}
