use crate::project::{Project, check_steps};

const ORDERS: &str = r#"{:op :insert :table "orders" :index-fields [:status] :rows [
  {:id 1 :status "open"   :amount 10   :tags ["a" "b"] :paid false :at #inst "2026-01-05T10:00:00Z"}
  {:id 2 :status "open"   :amount 250  :tags ["b"]     :paid true  :at #inst "2026-01-20T10:00:00Z"}
  {:id 3 :status "closed" :amount 99.5 :tags []        :paid true  :at #inst "2026-02-01T00:00:00Z"}
  {:id 4 :status nil      :amount nil  :tags nil       :paid nil   :at nil}
  {:id 5 :status "lost"   :amount -3   :tags [:b]      :paid false :at #inst "2026-04-30T23:59:59Z"}]}"#;

fn orders() -> Project {
    let project = Project::new();
    let found = project.eval(&format!(
        "(let [r (flow/step :table :it {ORDERS})] (:rows-inserted r))"
    ));
    assert_eq!(found, "5");
    project
}

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

#[test]
fn cells_round_trip() {
    let row = r#"{:b true :l -9223372036854775808 :d 1.5 :m 12.50M :s "a'b\"c" :k :open/now :i #inst "2026-01-05T10:00:00.000Z" :v [1 {:a #{2}}] :n nil :u #uuid "00000000-0000-0000-0000-00000000000a"}"#;
    let project = Project::new();
    project.eval(&format!(
        "(let [r (flow/step :table :w {{:op :insert :table :all :rows [{row}]}})] r)"
    ));
    let query =
        "(let [r (flow/step :table :it {:op :query :table \"all\"})] (= (first (:rows r)) ROW))";
    assert_eq!(project.eval(&query.replace("ROW", row)), "true");
    let types = "(let [r (flow/step :table :it {:op :schema :table \"all\"})]
        (= (into {} (map (juxt :name :type) (:columns r)))
           {\"b\" :boolean \"d\" :double \"i\" :timestamp \"k\" :enum \"l\" :long \"m\" :decimal \"n\" nil \"s\" :string \"u\" :json \"v\" :json}))";
    assert_eq!(project.eval(types), "true");
}

#[test]
fn conditions_choose_rows() {
    let project = orders();
    let query = |condition: &str| {
        format!("{{:op :query :table \"orders\" :where {condition} :sort [:id]}}")
    };
    let cases: Vec<(String, &str)> = [
        (r#"[["status" "=" "open"]]"#, "[1 2]"),
        ("[[:status := :open]]", "[1 2]"),
        ("[:status := \"open\"]", "[1 2]"),
        ("{:status \"open\" :paid true}", "[2]"),
        (r#"[["status" "!=" "open"]]"#, "[3 4 5]"),
        ("[[:status := nil]]", "[4]"),
        ("[[:amount :> 10]]", "[2 3]"),
        ("[[:amount :>= 10] [:amount :< 100]]", "[1 3]"),
        ("[[:amount :between [0 99.5]]]", "[1 3]"),
        ("[[:amount :<= 9.99M]]", "[5]"),
        ("[[:status :in [\"open\" \"lost\"]]]", "[1 2 5]"),
        ("[[:status :in #{nil \"lost\"}]]", "[4 5]"),
        ("[[:status :in []]]", "[]"),
        ("[[:status :not-in [\"open\"]]]", "[3 4 5]"),
        ("[[:status :contains \"os\"]]", "[3 5]"),
        ("[[:status :not-contains \"os\"]]", "[1 2 4]"),
        ("[[:status :starts-with \"o\"]]", "[1 2]"),
        ("[[:status :starts-with \"%\"]]", "[]"),
        ("[[:status :ends-with \"t\"]]", "[5]"),
        ("[[:status :like \"%o_e%\"]]", "[1 2 3]"),
        ("[[:tags :contains \"b\"]]", "[1 2 5]"),
        ("[[:tags :not-contains \"b\"]]", "[3 4]"),
        ("[[:tags := []]]", "[3]"),
        ("[[:paid := true]]", "[2 3]"),
        ("[[:paid :is-null]]", "[4]"),
        ("[[:amount :not-null true]]", "[1 2 3 5]"),
        ("[[:at :>= \"2026-02-01\"]]", "[3 5]"),
        ("[[:at :< #inst \"2026-01-20T10:00:00Z\"]]", "[1]"),
        (
            r#"[["or" [["status" "=" "lost"] ["amount" ">" 200]]]]"#,
            "[2 5]",
        ),
        (
            r#"["or" ["status" "=" "lost"] ["and" ["amount" ">" 50] ["paid" "=" true]]]"#,
            "[2 3 5]",
        ),
        ("[[:not [:status := \"open\"]]]", "[3 4 5]"),
        (
            "[[:not [[:status := \"open\"] [:amount :> 100]]]]",
            "[1 3 4 5]",
        ),
        ("[[:row-id := 3]]", "[3]"),
        ("[]", "[1 2 3 4 5]"),
    ]
    .into_iter()
    .map(|(condition, expected)| (query(condition), expected))
    .collect();
    let cases: Vec<(&str, &str)> = cases
        .iter()
        .map(|(query, expected)| (query.as_str(), *expected))
        .collect();
    check(&project, "(fn [r] (mapv :id (:rows r)))", &cases);
}

#[test]
fn pages_and_order() {
    let project = orders();
    check(
        &project,
        "(fn [r] [(mapv :id (:rows r)) (:count r) (:page r)])",
        &[
            (
                "{:op :query :table \"orders\" :sort [[:amount :desc]] :page {:limit 2 :include-total-count true}}",
                "[[2 3] 2 {:mode :offset :limit 2 :offset 0 :has-more true :next-offset 2 :total-count 5}]",
            ),
            (
                "{:op :query :table \"orders\" :sort [[\"amount\" \"desc\"]] :page {:limit 2 :offset 4}}",
                "[[4] 1 {:mode :offset :limit 2 :offset 4 :has-more false :next-offset nil}]",
            ),
            (
                "{:op :query :table \"orders\" :query {:sort [:status {:field :id :direction :desc}] :where [[:id :> 1]]}}",
                "[[4 3 5 2] 4 {:mode :offset :limit 25 :offset 0 :has-more false :next-offset nil}]",
            ),
        ],
    );
    for sort in [
        "[:amount]",
        "[[:amount :desc]]",
        "[:status [:amount :desc]]",
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
        &project,
        "(fn [r] (:rows r))",
        &[
            (
                "{:op :query :table \"orders\" :select [:id \"status\" :row-id] :page {:limit 1}}",
                "[{:id 1 :status \"open\" :row-id 1}]",
            ),
            (
                "{:op :query :table \"orders\" :page {:mode :cursor :cursor \"bm8\"}}",
                "E0627 the cursor does not belong to this query | use `:next-cursor` of the previous page, with the same table and sort",
            ),
            (
                "{:op :query :table \"orders\" :page {:limit 1001}}",
                "E0712 `:page :limit` of a `:table` step must be an integer from 1 to 1000, not 1001 (an integer)",
            ),
        ],
    );
}

#[test]
fn groups_and_metrics() {
    let project = orders();
    check(
        &project,
        ":groups",
        &[
            (
                "{:op :aggregate :table \"orders\" :group-by [:status] :metrics [{:op :count :as :n} {:op \"sum\" :field \"amount\" :as \"total\"}] :order-by [[:total :desc]]}",
                "[{:status \"open\" :n 2 :total 260.0} {:status \"closed\" :n 1 :total 99.5} {:status nil :n 1 :total 0.0} {:status \"lost\" :n 1 :total -3.0}]",
            ),
            (
                "{:op :aggregate :table \"orders\" :metrics [:count {:op :count :field :status} {:op :count-distinct :field :status} {:op :avg :field :id} {:op :min :field :amount} {:op :max :field :at} {:op :median :field :id} {:op :percentile :field :id :p 90} {:op :first :field :status} {:op :last :field :status} {:op :sum :field :id}]}",
                "[{:min-amount -3 :sum-id 15 :max-at #inst \"2026-04-30T23:59:59.000Z\" :avg-id 3.0 :percentile-id 4.6 :median-id 3.0 :count-distinct-status 3 :count 5 :count-status 4 :first-status \"open\" :last-status \"lost\"}]",
            ),
            (
                "{:op :aggregate :table \"orders\" :where [[:id :> 99]] :metrics [:count {:op :sum :field :id} {:op :avg :field :id} {:op :max :field :id}]}",
                "[{:count 0 :sum-id 0 :avg-id nil :max-id nil}]",
            ),
            (
                "{:op :aggregate :table \"orders\" :group-by [:status] :metrics [:count] :having [[:count :> 1]]}",
                "[{:status \"open\" :count 2}]",
            ),
            (
                "{:op :aggregate :table \"orders\" :group-by [:paid] :metrics [:count] :having [[:or [[:paid := nil] [:paid := true]]]] :order-by [:paid] :limit 1}",
                "[{:paid nil :count 1}]",
            ),
            (
                "{:op :aggregate :table \"orders\" :group-by [{:field :amount :bucket {:op :numeric-bin :size 100} :as :bin}] :metrics [:count] :order-by [:bin]}",
                "[{:bin nil :count 1} {:bin -100.0 :count 1} {:bin 0.0 :count 2} {:bin 200.0 :count 1}]",
            ),
            (
                "{:op :aggregate :table \"orders\" :group-by [{:field :at :bucket {:op :date-trunc :unit :month} :as :month}] :metrics [:count] :where [[:at :not-null]]}",
                "[{:month #inst \"2026-01-01T00:00:00.000Z\" :count 2} {:month #inst \"2026-02-01T00:00:00.000Z\" :count 1} {:month #inst \"2026-04-01T00:00:00.000Z\" :count 1}]",
            ),
        ],
    );
}

#[test]
fn decimals_are_exact() {
    check_steps(
        "table",
        &[(
            "{:op :create :table \"m\" :columns [{:name :x :type :decimal}]}",
            "{:type :resource-ref :uri \"res://v1/ws/local/result/table/1\" :resource-uri \"res://v1/ws/local/result/table/1\" :ref {:type :resource-ref :uri \"res://v1/ws/local/result/table/1\" :content-type \"application/vnd.breyta.table+json\"} :content-type \"application/vnd.breyta.table+json\" :table \"m\" :created? true}",
        )],
    );
    let project = Project::new();
    project.eval("(let [r (flow/step :table :w {:op :insert :table \"m\" :rows [{:x 0.10M} {:x 0.2M} {:x 1e3M} {:x 9M} {:x 10M}]})] r)");
    check(&project, "identity", &[]);
    check(
        &project,
        "(fn [r] (:groups r))",
        &[(
            "{:op :aggregate :table \"m\" :metrics [{:op :sum :field :x :as :s} {:op :max :field :x :as :m}] :where [[:x :< 10]]}",
            "[{:s 930E-2M :m 9M}]",
        )],
    );
    check(
        &project,
        "(fn [r] (mapv :x (:rows r)))",
        &[
            (
                "{:op :query :table \"m\" :where [[:x :>= 9]] :sort [:x]}",
                "[9M 10M 1000M]",
            ),
            ("{:op :query :table \"m\" :where [[:x := 0.1]]}", "[10E-2M]"),
        ],
    );
}

#[test]
fn rows_are_written_by_key() {
    let project = Project::new();
    let take = "(fn [r] [(:rows-inserted r) (:rows-updated r) (:row-count r)])";
    check(
        &project,
        take,
        &[
            (
                "{:op :upsert :table \"t\" :rows [{:id 1 :a \"x\" :b 1} {:id 2 :a \"y\" :b 2}] :key-fields [:id]}",
                "[2 0 2]",
            ),
            (
                "{:op :upsert :table \"t\" :rows [{:id 2 :a \"z\"} {:id 3 :a \"w\" :c :new}]}",
                "[1 1 3]",
            ),
            (
                "{:op :insert :table \"t\" :rows [{:id 9} {:id 3}]}",
                "E0625 row 2: the table `t` has a row with `id` 3 already | write with `:write-mode :upsert` or `:op :upsert` to replace it",
            ),
            (
                "{:op :upsert :table \"t\" :rows [{:a \"no key\"}]}",
                "E0625 row 1 has no value for the key field `id` | every row needs all key fields; leave out rows without, or choose another key",
            ),
            (
                "{:op :upsert :table \"t\" :rows [{:id 1}] :key-fields [:a]}",
                "E0625 the key of the table `t` is `id`, not `a` | leave `:key-fields` out, or use another table",
            ),
            (
                "{:op :upsert :table \"free\" :rows [{:id 1}]}",
                "E0625 the table `free` has no key by which existing rows could be found | name the fields that identify a row: `:key-fields [:id]`",
            ),
            ("{:op :insert :table \"t\" :rows []}", "[0 0 3]"),
        ],
    );
    check(
        &project,
        ":rows",
        &[(
            "{:op :query :table \"t\"}",
            "[{:id 1 :a \"x\" :b 1 :c nil} {:id 2 :a \"z\" :b 2 :c nil} {:id 3 :a \"w\" :b nil :c :new}]",
        )],
    );
    check(
        &project,
        "identity",
        &[
            (
                "{:op :get-row :table \"t\" :key {\"id\" 2} :select [:a]}",
                "{:row {:a \"z\"} :exists? true :row-id 2}",
            ),
            (
                "{:op :get-row :table :t :row-id 77}",
                "{:row nil :exists? false}",
            ),
            (
                "{:op :delete :table \"t\" :where [[:id :> 1]]}",
                "{:success true :table \"t\" :rows-deleted 2}",
            ),
            (
                "{:op :delete :table \"t\" :where []}",
                "E0764 `:where` is empty, which would mean every row | write `:all true` instead",
            ),
            (
                "{:op :delete :table \"t\" :key {}}",
                "E0764 `:key` is empty, which would mean every row | name the cells that identify the row: `:key {:id 7}`",
            ),
            (
                "{:op :delete :table \"t\"}",
                "E0764 no row was chosen | give `:key {...}` or `:row-id n`; to delete also `:where [...]` or `:all true`",
            ),
            (
                "{:op :delete :table \"t\" :all true}",
                "{:success true :table \"t\" :rows-deleted 1}",
            ),
        ],
    );
    check(
        &project,
        ":rows",
        &[(
            "{:op :query :table \"free\"}",
            "E0620 there is no table `free` | there are `t`",
        )],
    );
}

#[test]
fn types_are_enforced() {
    let project = Project::new();
    check(
        &project,
        ":rows-written",
        &[
            (
                "{:op :insert :table \"t\" :rows [{:n 1 :s \"x\"} {:n 2.5 :s nil}]}",
                "2",
            ),
            (
                "{:op :insert :table \"t\" :rows [{:n 3} {:n \"n/a\"}]}",
                "E0623 row 2 of 2 does not fit the table `t`: column `n` holds doubles, and the row has \"n/a\" (a string) | convert it before, or declare `n` as `json` with `:op :create`, which holds anything",
            ),
            (
                "{:op :insert :table \"t\" :rows [{:n 3 :extra {:free [\"form\"]}}]}",
                "1",
            ),
            (
                "{:op :create :table \"d\" :columns {:day :date :flag :boolean :any :json :n :long}}",
                "nil",
            ),
            (
                "{:op :insert :table \"d\" :rows [{:day \"2026-02-28\" :flag true :any 3} {:any \"x\"}]}",
                "2",
            ),
            (
                "{:op :insert :table \"d\" :rows [{:day \"2026-02-30\"}]}",
                "E0623 row 1 of 1 does not fit the table `d`: column `day` holds dates such as \"2026-01-31\", and the row has \"2026-02-30\" (a string) | convert it before, or declare `day` as `json` with `:op :create`, which holds anything",
            ),
            (
                "{:op :insert :table \"d\" :rows [{:n 1.5}]}",
                "E0623 row 1 of 1 does not fit the table `d`: column `n` holds integers, and the row has 1.5 (a double) | convert it before, or declare `n` as `json` with `:op :create`, which holds anything",
            ),
            ("{:op :create :table \"d\" :columns {:day :date}}", "nil"),
            (
                "{:op :create :table \"d\" :columns {:day :long}}",
                "E0626 the table `d` exists already, and its column `day` holds dates such as \"2026-01-31\" | use another name, or leave out what differs",
            ),
            (
                "{:op :create :table \"x\" :columns {:day :dat}}",
                "E0764 column `day` has no type `dat` | did you mean `:date`? | there are :boolean :date :decimal :double :enum :json :long :string :timestamp",
            ),
        ],
    );
    check(
        &project,
        ":rows",
        &[
            (
                "{:op :query :table \"d\"}",
                "[{:day \"2026-02-28\" :flag true :any 3 :n nil} {:day nil :flag nil :any \"x\" :n nil}]",
            ),
            (
                "{:op :query :table \"t\" :where [[:n :> 1]] :select [:n]}",
                "[{:n 2.5} {:n 3}]",
            ),
        ],
    );
}

#[test]
fn a_failed_write_changes_nothing() {
    let project = orders();
    check(
        &project,
        ":rows-written",
        &[(
            "{:op :insert :table \"orders\" :rows [{:id 6 :new-column 1} {:id \"seven\"}]}",
            "E0623 row 2 of 2 does not fit the table `orders`: column `id` holds integers, and the row has \"seven\" (a string) | convert it before, or declare `id` as `json` with `:op :create`, which holds anything",
        )],
    );
    check(
        &project,
        "(fn [r] [(:row-count r) (count (:columns r))])",
        &[("{:op :schema :table \"orders\"}", "[5 6]")],
    );
}

#[test]
fn names_and_values_are_never_sql() {
    let project = orders();
    let evil = r#"x\"; DROP TABLE t_1; --"#;
    let written = project.eval(&format!(
        "(let [r (flow/step :table :w {{:op :upsert :table \"{evil}\" :rows [{{\"{evil}\" \"' OR 1=1 --\" \"SELECT\" 1 \"a?b\" 2 \"\u{fc} \u{1f980}\" 3}}] :key-fields [\"{evil}\"] :index-fields [\"SELECT\"]}})] (:rows-written r))"
    ));
    assert_eq!(written, "1");
    check(
        &project,
        "(fn [r] (:count r))",
        &[
            (
                &format!(
                    "{{:op :query :table \"{evil}\" :where [[\"{evil}\" \"=\" \"' OR 1=1 --\"]] :sort [[\"{evil}\" \"desc\"]]}}"
                ),
                "1",
            ),
            (
                &format!(
                    "{{:op :query :table \"{evil}\" :where [[\"{evil}\" \"=\" \"x' OR '1'='1\"]]}}"
                ),
                "0",
            ),
            (
                &format!(
                    "{{:op :aggregate :table \"{evil}\" :group-by [\"{evil}\"] :metrics [{{:op :sum :field \"SELECT\" :as \"{evil}2\"}}]}}"
                ),
                "1",
            ),
            (
                "{:op :query :table \"orders\" :where [[\"1=1; DROP TABLE t_1\" \"=\" 1]]}",
                "E0622 the table `orders` has no column `1=1; DROP TABLE t_1` | it has `id`, `status`, `amount`, `tags`, `paid`, `at`",
            ),
            (
                "{:op :query :table \"orders\" :sort [[\"id; DROP TABLE t_1\" \"desc\"]]}",
                "E0622 the table `orders` has no column `id; DROP TABLE t_1` | it has `id`, `status`, `amount`, `tags`, `paid`, `at`",
            ),
            (
                "{:op :query :table \"orders\" :sort [[:id \"desc; DROP TABLE t_1\"]]}",
                "E0764 `:sort` has [:id \"desc; DROP TABLE t_1\"], which is not a column with a direction | write `[:column :asc]` or `[:column :desc]`",
            ),
            (
                "{:op :query :table \"orders\" :where [[:id \"= 1 OR 1\" 1]]}",
                "E0764 `:where` has the operator \"= 1 OR 1\", which does not exist | there are = != < <= > >= in not-in contains not-contains starts-with ends-with like between is-null not-null",
            ),
            ("{:op :query :table \"orders\"}", "5"),
        ],
    );
}

#[test]
fn invalid_operations_are_refused() {
    let project = orders();
    check(
        &project,
        ":rows",
        &[
            (
                "{:op :qery :table \"orders\"}",
                "E0764 `:table` has no operation `:qery` | did you mean `:query`? | there are `:aggregate` `:create` `:delete` `:export` `:get-row` `:import` `:insert` `:materialize-join` `:query` `:recompute` `:replace` `:schema` `:set-column` `:update-cell` `:update-cell-format` `:upsert`",
            ),
            (
                "{:op :query :table \"ordres\"}",
                "E0620 there is no table `ordres` | did you mean `orders`?",
            ),
            (
                "{:op :query :table {:type :resource-ref :uri \"res://v1/ws/local/result/table/99\"}}",
                "E0620 the table 99 of the reference does not exist | it belongs to another project, or was deleted",
            ),
            (
                "{:op :query :table \"orders\" :where [[:amuont :> 1]]}",
                "E0622 the table `orders` has no column `amuont` | did you mean `amount`?",
            ),
            (
                "{:op :query :table \"orders\" :where [[:amount :> \"1\"]]}",
                "E0624 `amount` holds doubles, and `>` compares it with \"1\" (a string)",
            ),
            (
                "{:op :query :table \"orders\" :where [[:amount :contains \"1\"]]}",
                "E0624 `contains` cannot be used on `amount`, which holds doubles",
            ),
            (
                "{:op :query :table \"orders\" :where [[:amount]]}",
                "E0764 `:where` has the condition [:amount], which is not complete | a condition is written `[:column \"=\" value]`; several are a vector of them",
            ),
            (
                "{:op :query :table \"orders\" :where [[:amount :between 1]]}",
                "E0764 `between` on `amount` takes a vector, not 1",
            ),
            (
                "{:op :query :table \"orders\" :where [[:amount := 1 2]]}",
                "E0764 the condition [:amount := 1 2] has 2 values, and `=` takes 1",
            ),
            (
                "{:op :query :table \"orders\" :where [7]}",
                "E0764 `:where` has 7 where a condition should be | a condition is written `[:column \"=\" value]`; several are a vector of them",
            ),
            (
                "{:op :query :table \"orders\" :sort [:tags]}",
                "E0624 `tags` holds data of any kind, which has no order to sort by",
            ),
            (
                "{:op :query :table \"orders\" :pagee {:limit 1}}",
                "E0710 a `:table` step has no option `:pagee` | did you mean `:page`?",
            ),
            (
                "{:op :query :table \"orders\" :page {:limt 1}}",
                "E0710 `:page` of a `:table` step has no key `:limt` | did you mean `:limit`?",
            ),
            (
                "{:op :query :table \"orders\" :metrics [:count]}",
                "E0764 `:metrics` does not apply to `:op :query` | it takes `:table` `:page` `:query` `:select` `:sort` `:where`",
            ),
            (
                "{:op :aggregate :table \"orders\" :metrics [{:op :summ :field :id}]}",
                "E0764 {:op :summ, :field :id} is not a metric | did you mean `sum`? | there are avg count count-distinct first last max median min percentile sum",
            ),
            (
                "{:op :aggregate :table \"orders\" :metrics [{:op :sum :field :status}]}",
                "E0628 this metric needs numbers, and `status` holds strings",
            ),
            (
                "{:op :aggregate :table \"orders\" :metrics [:sum]}",
                "E0764 the metric `sum` needs `:field` | as in `{:op :sum :field :amount}`",
            ),
            (
                "{:op :aggregate :table \"orders\" :metrics [:count] :order-by [:cuont]}",
                "E0628 the groups have no `cuont` | did you mean `count`?",
            ),
            (
                "{:op :insert :table \"orders\" :rows [1]}",
                "E0764 row 1 of 1 is an integer, not a map: 1 | a row is a map of column and cell, as in `{:id 1 :name \"Ada\"}`",
            ),
            (
                "{:op :insert :table \"orders\" :rows [{:a 1 \"a\" 2}]}",
                "E0764 row 1 of 1 has two cells for the column `a` | it has a keyword and a string of the same name",
            ),
            (
                "{:op :insert :table \"\" :rows [{:a 1}]}",
                "E0621 the table name \"\" is empty",
            ),
            (
                "{:op :insert :table \"orders\" :rows [{:row-id 1}]}",
                "E0621 `row-id` is the store's own number of a row, and cannot be a column",
            ),
            (
                "{:op :insert :table 7 :rows [{:a 1}]}",
                "E0764 `:table` is a name or a reference, not 7 | as in `:table \"orders\"`, or the value of a step with `:persist {:type :table ...}`",
            ),
        ],
    );
}

#[test]
fn a_table_is_exported() {
    let project = Project::new();
    project.eval("(let [r (flow/step :table :w {:op :insert :table \"t\" :rows [{:id 1 :s \"a,\\\"b\\\"\" :k :x :v [1 :y]} {:id 2 :s nil :k nil :v nil}]})] r)");
    check(
        &project,
        "identity",
        &[(
            "{:op :export :table \"t\" :sort [[:id :desc]]}",
            r#"{:content "id,s,k,v\n2,,,\n1,\"a,\"\"b\"\"\",x,\"[1,\"\"y\"\"]\"\n" :content-type "text/csv" :filename "t.csv" :rows 2}"#,
        )],
    );
}

#[test]
fn results_match_the_schemas_of_the_operations() {
    use flowstone_flow::step::Step as _;
    let project = orders();
    let operations = flowstone_steps::table::Table
        .spec()
        .operations
        .expect("operations");
    for (op, rest) in [
        ("aggregate", ":metrics [{:op :count :as :n}]"),
        ("export", ""),
        ("get-row", ":row-id 1"),
        ("query", ""),
        ("schema", ""),
        ("update-cell", ":row-id 1 :column :status :value \"new\""),
        ("recompute", ""),
        ("insert", ":rows [{:id 9}]"),
        (
            "set-column",
            ":column :status :definition {:display-name \"State\"}",
        ),
        (
            "update-cell-format",
            ":row-id 2 :column :amount :format {:display \"currency\" :currency \"USD\"}",
        ),
        ("delete", ":row-id 1"),
    ] {
        let gives = operations.find(op).expect("an operation").gives;
        let found = project.eval(&format!(
            "(some? (flow/step :table :it {{:op :{op} :table \"orders\" {rest} :expect {{:schema {gives}}}}}))"
        ));
        assert_eq!(found, "true", "{op}");
    }
}

/// A fraction and a percentage mean the same; 1 is a percentage, like all numbers above it.
#[test]
fn a_percentile_is_a_fraction_or_a_percentage() {
    let project = Project::new();
    let figures = |metrics: &str| {
        project.eval(&format!(
            "(let [_ (flow/step :table :in {{:op :upsert :table \"n\" :key-fields [:amount] :rows (mapv (fn [n] {{:amount (inc n)}}) (range 100))}})
                   r (flow/step :table :it {{:op :aggregate :table \"n\" :metrics [{metrics}]}})]
               (mapv :v (:groups r)))"
        ))
    };
    for (p, expected) in [
        ("0.95", "[95.05]"),
        ("95", "[95.05]"),
        ("95.0", "[95.05]"),
        ("0.95M", "[95.05]"),
        ("19/20", "[95.05]"),
        ("0.5", "[50.5]"),
        ("0.999", "[99.901]"),
        ("0.005", "[1.495]"),
        ("0", "[1.0]"),
        ("0.0", "[1.0]"),
        ("1", "[1.99]"),
        ("1.0", "[1.99]"),
        ("29", "[29.71]"),
        ("99.9", "[99.901]"),
        ("100", "[100.0]"),
    ] {
        let metric = format!("{{:op \"percentile\" :field \"amount\" :p {p} :as \"v\"}}");
        assert_eq!(figures(&metric), expected, ":p {p}");
    }
    for (p, words) in [
        ("\"0.95\"", "not \"0.95\""),
        ("-0.1", "not -0.1"),
        ("100.5", "not 100.5"),
        ("##NaN", "not ##NaN"),
        (":p95", "not :p95"),
    ] {
        let found = figures(&format!("{{:op :percentile :field :amount :p {p}}}"));
        assert!(
            found.starts_with("E0764 `:p` of `percentile` is a number from 0 to 100")
                && found.contains(words),
            "{p}: {found}"
        );
    }
}
