//! The rows of `tests/coverage/table.tsv` on joins.

use super::table::{check, people, refuses};
use crate::project::Project;

const BASE: &str = ":left {:table \"orders\"} :right {:table \"people\"} :on [{:left-field :who :right-field :id}]";

fn join(rest: &str) -> String {
    format!("{{:op :materialize-join {BASE} {rest}}}")
}

fn rows(project: &Project, table: &str) -> String {
    project.eval(&format!(
        "(let [r (flow/step :table :q {{:op :query :table \"{table}\" :sort [:row-id]}})] (mapv vals (:rows r)))"
    ))
}

#[test]
fn op_materialize_join() {
    let project = people();
    check(
        &project,
        "(juxt :table :count :rows-inserted :rows-updated :row-count (fn [r] (first (:preview r))))",
        &[(
            &join(":into {:table \"joined\"}"),
            "[\"joined\" 4 4 0 4 {:no 1 :who 1 :total 10 :name \"Ada\" :city \"London\"}]",
        )],
    );
    assert_eq!(
        rows(&project, "joined"),
        "[(1 1 10 \"Ada\" \"London\") (2 2 25.5 \"Grace\" \"New York\") (3 9 7 nil nil) (4 nil 1 nil nil)]"
    );
    let chained = format!(
        "(let [r (flow/step :table :j {}) q (flow/step :table :q {{:op :query :table r :select [:no]}})] (:count q))",
        join(":into {:table \"other\"}")
    );
    assert_eq!(project.eval(&chained), "4");
}

#[test]
fn materialize_join_left() {
    let project = people();
    let one = |left: &str| {
        format!(
            "{{:op :materialize-join :left {left} :right {{:table \"people\"}} :on [{{:left-field :who :right-field :id}}] :into {{:table \"j\"}}}}"
        )
    };
    check(
        &project,
        ":count",
        &[(&one("{:table \"orders\" :where [[:no :<= 2]]}"), "2")],
    );
    refuses(
        &project,
        &[
            (&one("{}"), "needs `:table` or `:rows`"),
            (&one("{:table \"orders\" :rows []}"), "not both"),
            (&one("{:table \"ordres\"}"), "did you mean `orders`?"),
            (&one("\"orders\""), "E0712"),
        ],
    );
}

#[test]
fn materialize_join_right() {
    let project = people();
    let one = |right: &str| {
        format!(
            "{{:op :materialize-join :left {{:table \"orders\"}} :right {right} :on [{{:left-field :who :right-field :id}}] :into {{:table \"j\"}}}}"
        )
    };
    check(
        &project,
        ":count",
        &[
            // Each matching row makes one row, so a left row can make several.
            (
                &one("{:rows [{:id 1 :tag \"a\"} {:id 1 :tag \"b\"} {:id 5 :tag \"c\"}]}"),
                "5",
            ),
        ],
    );
    assert_eq!(
        rows(&project, "j"),
        "[(1 1 10 \"a\") (1 1 10 \"b\") (2 2 25.5 nil) (3 9 7 nil) (4 nil 1 nil)]"
    );
}

#[test]
fn materialize_join_on() {
    let project = people();
    let one = |on: &str| {
        format!(
            "{{:op :materialize-join :left {{:table \"orders\"}} :right {{:table \"people\"}} :on {on} :into {{:table \"j\"}}}}"
        )
    };
    refuses(
        &project,
        &[
            (&one("[]"), "at least one pair of fields"),
            (
                &one("[{:left-field :who}]"),
                "E0711 `:on 0` of a `:table` step needs `:right-field`",
            ),
            (
                &one("[{:left-field :whom :right-field :id}]"),
                "the left side of the join has no column `whom` | did you mean `who`?",
            ),
            (
                &one("[{:left-field :who :right-field :ids}]"),
                "the right side of the join has no column `ids`",
            ),
            (
                &one("[{:left-field :who :right-field :name}]"),
                "E0635 `who` of the left side holds integers",
            ),
        ],
    );
}

#[test]
fn join_on() {
    let project = Project::new();
    let one = "{:op :materialize-join :on [{:left-field :a :right-field :x} {:left-field \"b\" :right-field \"y\"}]
        :left {:rows [{:a 1 :b :p :n 1} {:a 1 :b :q :n 2} {:a 2.0 :b \"p\" :n 3} {:a nil :b :p :n 4}]}
        :right {:rows [{:x 1 :y \"p\" :m 10} {:x 2 :y \"p\" :m 20} {:x nil :y \"p\" :m 30}]}
        :into {:table \"j\"}}";
    check(&project, ":count", &[(one, "4")]);
    // Keywords and strings with the same name are equal, and so are integers and doubles; nil equals nothing.
    assert_eq!(
        project.eval("(let [r (flow/step :table :q {:op :query :table \"j\" :sort [:n]})] (mapv (juxt :n :m) (:rows r)))"),
        "[[1 10] [2 nil] [3 20] [4 nil]]"
    );
    // The same with the sides exchanged, so that the right side is prepared.
    let turned = "{:op :materialize-join :on [{:left-field :y :right-field :b} {:left-field :d :right-field :l}]
        :left {:rows [{:y \"p\" :d 1.0M :m 1} {:y \":p\" :d 1M :m 2}]}
        :right {:rows [{:b :p :l 1 :n 10} {:b \":p\" :l 1 :n 20}]} :into {:table \"k\"}}";
    check(&project, ":count", &[(turned, "2")]);
    assert_eq!(
        project.eval("(let [r (flow/step :table :q {:op :query :table \"k\" :sort [:m]})] (mapv (juxt :m :n) (:rows r)))"),
        "[[1 10] [2 20]]"
    );
}

#[test]
fn materialize_join_into() {
    let project = people();
    refuses(
        &project,
        &[
            (
                &join(":into {:table \"orders\"}"),
                "is both a side of the join and its result",
            ),
            (
                &join(":into {}"),
                "E0711 `:into` of a `:table` step needs `:table`",
            ),
            (&join(":into {:table \"a\\u0000b\"}"), "control character"),
            (&join(""), "needs `:into`"),
        ],
    );
    project.eval("(flow/step :table :it {:op :insert :table \"other\" :rows [{:no \"text\"}]})");
    refuses(
        &project,
        &[(
            &join(":into {:table \"other\"}"),
            "the column `no` of the table `other` holds strings, and the join has integers",
        )],
    );
    // A failed join leaves nothing behind.
    assert_eq!(rows(&project, "other"), "[(\"text\")]");
}

#[test]
fn join_into() {
    let project = people();
    check(
        &project,
        "(juxt :partitions :count)",
        &[(
            &join(":into {:table \"parts\" :partitions {:key \"a\"} :index-fields [:name]}"),
            "[{:key \"a\"} 4]",
        )],
    );
    check(
        &project,
        "(juxt :key-fields :index-fields :partitioned?)",
        &[("{:op :schema :table \"parts\"}", "[[] [\"name\"] true]")],
    );
    // The rules of the destination's columns apply to the joined rows.
    project.eval("(flow/step :table :it {:op :create :table \"strict\" :columns {:name {:type :enum :enum {:options [{:id \"ada\" :name \"Ada\"}]}} :total {:type :double :validation {:max 20}}}})");
    refuses(
        &project,
        &[(
            &join(":project {:keep-left [:total] :right-fields [:name]} :into {:table \"strict\"}"),
            "E0632 row 2: `total` should be at most 20",
        )],
    );
    check(
        &project,
        ":count",
        &[(
            &join(
                ":join-type :inner :project {:keep-left :none :right-fields [:name]} :into {:table \"strict\"}",
            ),
            "2",
        )],
    );
    assert_eq!(
        project.eval("(let [r (flow/step :table :q {:op :query :table \"strict\" :select [:name] :sort [:row-id]})] (mapv :name (:rows r)))"),
        "[\"ada\" \"Grace\"]"
    );
}

#[test]
fn join_write_mode() {
    let project = people();
    let take = "(juxt :rows-inserted :rows-updated :row-count)";
    check(
        &project,
        take,
        &[
            (
                &join(":into {:table \"j\" :write-mode \"upsert\" :key-fields [\"no\"]}"),
                "[4 0 4]",
            ),
            (
                &join(":into {:table \"j\" :write-mode :upsert :key-fields [:no]}"),
                "[0 4 4]",
            ),
            (
                &join(":into {:table \"j\" :write-mode :replace}"),
                "[4 0 4]",
            ),
            (&join(":into {:table \"k\" :write-mode :append}"), "[4 0 4]"),
            (&join(":into {:table \"k\" :write-mode :append}"), "[4 0 8]"),
        ],
    );
    refuses(
        &project,
        &[
            (&join(":into {:table \"j\" :write-mode :append}"), "E0625"),
            (
                &join(":into {:table \"l\" :write-mode :upsert}"),
                "has no key",
            ),
            (
                &join(":into {:table \"l\" :write-mode :upsert :key-fields [:who]}"),
                "has no value for the key field `who`",
            ),
            (&join(":into {:table \"l\" :write-mode :merge}"), "E0712"),
        ],
    );
}

#[test]
fn join_project() {
    let project = people();
    let names = |rest: &str| {
        let config = join(&format!("{rest} :into {{:table \"j\"}}"));
        project.eval(&format!(
            "(let [r (flow/step :table :j {config}) s (flow/step :table :s {{:op :schema :table r}})] (mapv :name (:columns s)))"
        ))
    };
    assert_eq!(
        names(":project {:keep-left [\"no\"] :right-fields [{:field :name :as :customer}]}"),
        "[\"no\" \"customer\"]"
    );
    assert_eq!(
        names(":project {:keep-left \"all\" :right-fields \"none\"}"),
        "[\"no\" \"customer\" \"who\" \"total\"]"
    );
    assert_eq!(
        names(":project {:keep-left :none :right-fields [\"city\"]}"),
        "[\"no\" \"customer\" \"who\" \"total\" \"city\"]"
    );
}

#[test]
fn materialize_join_project() {
    let project = people();
    let into = ":into {:table \"j\"}";
    refuses(
        &project,
        &[
            (
                &join(&format!(
                    ":project {{:right-fields [{{:field :name :as :total}}]}} {into}"
                )),
                "two fields of the result are called `total`",
            ),
            (
                &join(&format!(
                    ":project {{:right-fields [{{:as :total}}]}} {into}"
                )),
                "a map with `:field`",
            ),
            (
                &join(&format!(":project {{:keep-left [:nothing]}} {into}")),
                "the left side of the join has no column `nothing`",
            ),
            (
                &join(&format!(
                    ":project {{:keep-left :none :right-fields :none}} {into}"
                )),
                "the join keeps no field",
            ),
            (
                &join(&format!(
                    ":project {{:right-fields [{{:field :name :as :row-id}}]}} {into}"
                )),
                "E0621",
            ),
        ],
    );
}

#[test]
fn materialize_join_join_type() {
    let project = people();
    check(
        &project,
        ":count",
        &[
            (&join(":join-type \"inner\" :into {:table \"a\"}"), "2"),
            (&join(":join-type :left :into {:table \"b\"}"), "4"),
        ],
    );
    refuses(
        &project,
        &[(&join(":join-type :outer :into {:table \"c\"}"), "E0712")],
    );
}

#[test]
fn materialize_join_op_id() {
    let project = people();
    let one = join(":op-id \"march\" :into {:table \"j\"}");
    check(&project, "(juxt :count :row-count)", &[(&one, "[4 4]")]);
    project.eval("(flow/step :table :it {:op :insert :table \"orders\" :rows [{:no 5 :who 1}]})");
    check(&project, "(juxt :count :row-count)", &[(&one, "[4 4]")]);
    check(
        &project,
        ":row-count",
        &[("{:op :schema :table \"j\"}", "4")],
    );
    refuses(
        &project,
        &[
            (
                &join(":op-id \"march\" :into {:table \"k\"}"),
                "E0636 the `:op-id` `march` was used for another join before",
            ),
            (&join(":op-id \"\" :into {:table \"k\"}"), "E0722"),
        ],
    );
}

#[test]
fn join_rows() {
    let project = Project::new();
    let one = "{:op :materialize-join :left {:rows [{:id 1 :a \"x\"}]} :right {:rows []} :on [{:left-field :id :right-field :id}] :into {:table \"j\"}}";
    check(&project, ":count", &[(one, "1")]);
    assert_eq!(rows(&project, "j"), "[(1 \"x\")]");
    // Rows as a side do not create a table.
    let found = project.eval("(let [r (flow/step :table :q {:op :query :table \"left\"})] r)");
    assert!(found.starts_with("E0620"), "{found}");
    refuses(
        &project,
        &[(
            "{:op :materialize-join :left {:rows 7} :right {:rows []} :on [{:left-field :id :right-field :id}] :into {:table \"j\"}}",
            "E0712",
        )],
    );
}

#[test]
fn join_select() {
    let project = people();
    let one = |rest: &str| {
        format!(
            "{{:op :materialize-join :left {{:table \"orders\" :select [:no]}} :right {{:table \"people\" :select [:city]}} :on [{{:left-field :who :right-field :id}}] {rest} :into {{:table \"j\"}}}}"
        )
    };
    check(&project, ":count", &[(&one(""), "4")]);
    assert_eq!(
        rows(&project, "j"),
        "[(1 \"London\") (2 \"New York\") (3 nil) (4 nil)]"
    );
    refuses(
        &project,
        &[
            (
                &one(":project {:right-fields [:name]}"),
                "`name` is not in `:select` of the right side",
            ),
            (&one(":project {:keep-left [:total]}"), "E0635"),
        ],
    );
}
