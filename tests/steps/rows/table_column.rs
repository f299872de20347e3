//! The rows of `tests/coverage/table.tsv` on columns: definitions, enums, lookups, validation.

use super::table::{check, looking_up, names, people, refuses};
use crate::project::Project;

fn set(column: &str, definition: &str) -> String {
    format!("{{:op :set-column :table \"orders\" :column {column} :definition {definition}}}")
}

#[test]
fn op_set_column() {
    let project = people();
    check(
        &project,
        "(juxt :created? :cells-changed (fn [r] (:name (:column r))) (fn [r] (:type (:column r))))",
        &[
            (
                &set(":note", "{:type-hint :string}"),
                "[true 0 \"note\" :string]",
            ),
            (
                &set("\"total\"", "{:type-hint :decimal}"),
                "[false 4 \"total\" :decimal]",
            ),
            (&set(":total", "{}"), "[false 0 \"total\" :decimal]"),
        ],
    );
    assert_eq!(
        project.eval("(let [r (flow/step :table :q {:op :query :table \"orders\" :sort [[:total :desc]]})] (mapv :total (:rows r)))"),
        "[255E-1M 10M 7M 1M]"
    );
}

#[test]
fn set_column_column() {
    refuses(
        &people(),
        &[
            (&set(":row-id", "{:type-hint :long}"), "E0621"),
            (&set("\"\"", "{:type-hint :long}"), "is empty"),
            (
                &set("\"a\\u0000b\"", "{:type-hint :long}"),
                "control character",
            ),
            (
                &format!(
                    "{{:op :set-column :table \"orders\" :column \"{}\" :definition {{}}}}",
                    "x".repeat(129)
                ),
                "at most 128",
            ),
        ],
    );
}

#[test]
fn set_column_definition() {
    refuses(
        &people(),
        &[
            (&set(":total", "{:type-hnt :long}"), "type-hint"),
            (&set(":total", "{:type-hint :lng}"), "did you mean `:long`?"),
            (&set(":total", "7"), "E0712"),
            (
                "{:op :set-column :table \"orders\" :column :total}",
                "needs `:definition`",
            ),
            (
                &set(":total", "{:type-hint :string :enum {:options [\"a\"]}}"),
                "holds enums",
            ),
            (
                &set(":total", "{:computed {:type \"sum\"}}"),
                "`:computed` has no type `sum`",
            ),
        ],
    );
}

#[test]
fn column_display_name() {
    let project = people();
    let ask = "(fn [r] (:display-name (:column r)))";
    check(
        &project,
        ask,
        &[
            (
                &set(":total", "{:display-name \"Total; DROP TABLE t_1 'x\"}"),
                "\"Total; DROP TABLE t_1 'x\"",
            ),
            (
                &set(":total", "{:semantic-type :money}"),
                "\"Total; DROP TABLE t_1 'x\"",
            ),
            (&set(":total", "{:display-name nil}"), "nil"),
        ],
    );
}

#[test]
fn column_semantic_type() {
    check(
        &people(),
        "(fn [r] (:semantic-type (:column r)))",
        &[(&set(":total", "{:semantic-type \"money\"}"), "\"money\"")],
    );
}

#[test]
fn column_format() {
    check(
        &people(),
        "(fn [r] (:format (:column r)))",
        &[(
            &set(
                ":total",
                "{:format {:display \"currency\" :currency \"USD\"}}",
            ),
            "{:display \"currency\" :currency \"USD\"}",
        )],
    );
}

#[test]
fn column_type_hint() {
    let project = Project::new();
    project.eval("(flow/step :table :it {:op :insert :table \"orders\" :index-fields [:n] :rows [{:n \"1\" :d \"2026-01-31\" :b \"yes\"} {:n \"2.5\" :d \"2026-02-01\" :b \"no\"} {:n nil :d nil :b nil}]})");
    let ask = |column: &str| {
        project.eval(&format!("(let [r (flow/step :table :q {{:op :query :table \"orders\" :sort [:row-id]}})] (mapv {column} (:rows r)))"))
    };
    let to = |column: &str, type_: &str| {
        project.eval(&format!(
            "(let [r (flow/step :table :it {})] (:cells-changed r))",
            set(column, &format!("{{:type-hint {type_}}}"))
        ))
    };
    let failed = to(":n", ":long");
    assert!(
        failed.starts_with("E0631 1 cells of `n` cannot become integers: row 2: \"2.5\""),
        "{failed}"
    );
    assert_eq!(ask(":n"), "[\"1\" \"2.5\" nil]");
    for (column, type_, changed, cells) in [
        (":n", ":double", "2", "[1 2.5 nil]"),
        (":n", ":decimal", "2", "[1M 25E-1M nil]"),
        (":n", ":string", "0", "[\"1\" \"2.5\" nil]"),
        (":d", ":date", "0", "[\"2026-01-31\" \"2026-02-01\" nil]"),
        (
            ":d",
            ":timestamp",
            "2",
            "[#inst \"2026-01-31T00:00:00.000Z\" #inst \"2026-02-01T00:00:00.000Z\" nil]",
        ),
        (":b", ":boolean", "2", "[true false nil]"),
        (":b", ":json", "2", "[true false nil]"),
    ] {
        assert_eq!(to(column, type_), changed, "{column} {type_}");
        assert_eq!(ask(column), cells, "{column} {type_}");
    }
    // The index still exists.
    assert_eq!(
        project.eval(
            "(let [r (flow/step :table :q {:op :schema :table \"orders\"})] (:index-fields r))"
        ),
        "[\"n\"]"
    );
}

const STATUS: &str = "{:enum {:options [{:id :open :name \"Open\" :aliases [\"new\" \"todo\"]} {:id \"done\" :name \"Done, finally\"}]CLOSED}}";

fn statuses(closed: bool) -> Project {
    let project = Project::new();
    project.eval("(flow/step :table :it {:op :insert :table \"orders\" :rows [{:n 1 :s \"NEW\"} {:n 2 :s \"done\"} {:n 3 :s nil}]})");
    let definition = STATUS.replace("CLOSED", if closed { " :closed? true" } else { "" });
    let found = project.eval(&format!(
        "(let [r (flow/step :table :it {})] (:cells-changed r))",
        set(":s", &definition)
    ));
    assert_eq!(found, "1", "strings become ids");
    project
}

#[test]
fn column_enum() {
    let project = statuses(false);
    project.eval("(flow/step :table :it {:op :insert :table \"orders\" :rows [{:n 4 :s \"Todo\"} {:n 5 :s :open} {:n 6 :s \"done, FINALLY\"} {:n 7 :s \"open\"}]})");
    let rows = |condition: &str| {
        project.eval(&format!("(let [r (flow/step :table :q {{:op :query :table \"orders\" :sort [:n] :where {condition}}})] (mapv (juxt :n :s) (:rows r)))"))
    };
    assert_eq!(
        rows("[]"),
        "[[1 :open] [2 \"done\"] [3 nil] [4 :open] [5 :open] [6 \"done\"] [7 :open]]"
    );
    for word in ["\"new\"", "\"Open\"", ":open", "\"OPEN\"", "\"open\""] {
        assert_eq!(
            rows(&format!("[[:s := {word}] [:n :< 5]]")),
            "[[1 :open] [4 :open]]",
            "{word}"
        );
    }
    assert_eq!(
        rows("[[:s :in [\"Done, finally\" \"nothing\"]]]"),
        "[[2 \"done\"] [6 \"done\"]]"
    );
    let schema = "(let [r (flow/step :table :q {:op :schema :table \"orders\"})] (:enum (second (:columns r))))";
    assert_eq!(
        project.eval(schema),
        "{:options [{:id :open :name \"Open\" :aliases [\"new\" \"todo\"]} {:id \"done\" :name \"Done, finally\" :aliases []}] :closed? false}"
    );
    refuses(
        &project,
        &[
            (
                &set(
                    ":s",
                    "{:enum {:options [{:id \"a\"} {:id \"b\" :aliases [\"a\"]}]}}",
                ),
                "two options of `s` are called `a`",
            ),
            (&set(":s", "{:enum {:options [{:id 7}]}}"), "E0721"),
            (&set(":s", "{:enum {}}"), "needs `:options`"),
        ],
    );
    let closed = statuses(true);
    refuses(
        &closed,
        &[
            (
                "{:op :insert :table \"orders\" :rows [{:n 8 :s \"lost\"}]}",
                "E0633 row 1: `s` should be one of the options, is \"lost\" | the options are `open`, `done`",
            ),
            (
                "{:op :update-cell :table \"orders\" :row-id 1 :column :s :value \"lost\"}",
                "E0633",
            ),
        ],
    );
}

#[test]
fn enums_grow() {
    let project = statuses(false);
    let imported = "(let [r (flow/step :table :it {:op :import :table \"orders\" :csv \"n,s\\n1,new\\n2,\\n3,Done\\n\"})
        q (flow/step :table :q {:op :query :table \"orders\" :where [[:row-id :> 3]] :sort [:row-id]})] (mapv :s (:rows q)))";
    assert_eq!(project.eval(imported), "[:open nil \"done\"]");
    project.eval("(flow/step :table :it {:op :insert :table \"orders\" :rows [{:n 4 :s \"lost\"} {:n 5 :s :Lost} {:n 6 :s \"LOST\"}]})");
    let ids = "(let [r (flow/step :table :q {:op :schema :table \"orders\"})] (mapv :id (:options (:enum (second (:columns r))))))";
    assert_eq!(project.eval(ids), "[:open \"done\" \"lost\"]");
    let rows = "(let [r (flow/step :table :q {:op :query :table \"orders\" :where [[:n :> 3]] :sort [:n]})] (mapv :s (:rows r)))";
    assert_eq!(project.eval(rows), "[\"lost\" \"lost\" \"lost\"]");
}

#[test]
fn column_computed() {
    let project = looking_up();
    assert_eq!(names(&project), "[\"Ada\" \"Grace\" nil nil]");
    refuses(
        &project,
        &[
            (
                "{:op :insert :table \"orders\" :rows [{:no 9 :name \"x\"}]}",
                "E0634 `name` is computed",
            ),
            ("{:op :insert :table \"orders\" :rows [{:no 1}]}", "E0625"),
        ],
    );
    check(
        &project,
        "(fn [r] (:preview r))",
        &[(
            "{:op :upsert :table \"orders\" :rows [{:no 5 :who 2}]}",
            "[{:no 5 :who 2 :total nil :name \"Grace\"}]",
        )],
    );
}

#[test]
fn column_lookup() {
    let project = looking_up();
    let lookup = |column: &str, by: &str, field: &str| {
        set(
            column,
            &format!("{{:computed {{:type \"lookup\" :reference-column {by} :field {field}}}}}"),
        )
    };
    refuses(
        &project,
        &[
            (
                &lookup(":x", ":total", ":name"),
                "that column has no `:reference`",
            ),
            (&lookup(":x", ":who", ":nme"), "did you mean `name`?"),
            (&lookup(":x", ":whom", ":name"), "did you mean `who`?"),
            (&lookup(":no", ":who", ":name"), "is part of the key"),
            (
                &set(":who", "{:reference {:table \"people\" :column :name}}"),
                "E0634",
            ),
            (
                "{:op :set-column :table \"people\" :column :name :definition {:type-hint :json}}",
                "`orders.name` looks up by `name`, so its type cannot change",
            ),
        ],
    );
    // A circle: a column refers to one that refers back.
    project.eval(&format!(
        "(flow/step :table :it {})",
        set(
            ":self",
            "{:type-hint :long :reference {:table \"orders\" :column :no}}"
        )
    ));
    let circle = project.eval(&format!(
        "(flow/step :table :it {})",
        lookup(":again", ":self", ":again")
    ));
    assert!(
        circle.starts_with("E0634 the lookups form a cycle: again -> again"),
        "{circle}"
    );
    // A chain: a lookup of a column that is itself a lookup.
    project.eval(&format!(
        "(flow/step :table :it {})",
        lookup(":of-self", ":self", ":name")
    ));
    let chain = "(let [r (flow/step :table :u {:op :upsert :table \"orders\" :rows [{:no 4 :who 1 :self 4} {:no 2 :self 1}]})
        q (flow/step :table :q {:op :query :table \"orders\" :sort [:no]})] (mapv (juxt :no :name :of-self) (:rows q)))";
    assert_eq!(
        project.eval(chain),
        "[[1 \"Ada\" nil] [2 \"Grace\" \"Ada\"] [3 nil nil] [4 \"Ada\" \"Ada\"]]"
    );
}

#[test]
fn column_reference() {
    let project = people();
    check(
        &project,
        "(fn [r] (:reference (:column r)))",
        &[(
            &set(":who", "{:reference {:table \"people\" :column :id}}"),
            "{:table \"people\" :column \"id\"}",
        )],
    );
    refuses(
        &project,
        &[
            (
                &set(":who", "{:reference {:table \"peple\" :column :id}}"),
                "did you mean `people`?",
            ),
            (
                &set(":who", "{:reference {:table \"people\" :column :ids}}"),
                "did you mean `id`?",
            ),
            (
                &set(":who", "{:reference {:table \"people\"}}"),
                "needs `:table` and `:column`",
            ),
            (
                &set(":total", "{:reference {:table \"people\" :column :name}}"),
                "they are never equal",
            ),
        ],
    );
}

#[test]
fn column_validation() {
    let project = people();
    for (column, rules) in [
        (":total", "{:validation {:min 0 :max 100}}"),
        (":who", "{:validation [:maybe [:int {:min 1}]]}"),
        (
            ":code",
            "{:type-hint :string :validation {:required true :pattern \"^[A-Z]+$\" :min-length 2 :max-length 4}}",
        ),
        (
            ":kind",
            "{:type-hint :string :validation {:in [\"a\" \"b\"]}}",
        ),
    ] {
        let found = project.eval(&format!(
            "(let [r (flow/step :table :it {})] (:success r))",
            set(column, rules)
        ));
        assert_eq!(found, "true", "{column}");
    }
    let row = |cells: &str| {
        format!(
            "{{:op :upsert :table \"orders\" :rows [{{:no 7 :code \"AB\"}} {{:no 8 {cells}}}]}}"
        )
    };
    refuses(
        &project,
        &[
            (
                &row(":code \"AB\" :total -1"),
                "E0632 row 2: `total` should be at least 0, is -1",
            ),
            (
                &row(":code \"AB\" :total 100.5"),
                "should be at most 100, is 100.5",
            ),
            (&row(":code \"AB\" :who 0"), "`who` should be"),
            (&row(":total 1"), "`code` is required"),
            (&row(":code nil"), "`code` is required"),
            (&row(":code \"A\""), "should have at least 2 characters"),
            (&row(":code \"ABCDE\""), "should have at most 4 characters"),
            (
                &row(":code \"ab\""),
                "`code` should be a string that matches",
            ),
            (
                &row(":code \"AB\" :kind \"c\""),
                "should be one of \"a\", \"b\", is \"c\"",
            ),
            (&set(":total", "{:validation {:pattern \"x\"}}"), "E0631"),
            (&set(":code", "{:validation {:min 3}}"), "E0631"),
            (&set(":code", "{:validation {:pattern \"(\"}}"), "E0631"),
            (&set(":total", "{:validation [:nonsense]}"), "E0631"),
            (
                &set(":total", "{:validation {:mini 3}}"),
                "did you mean `:min`?",
            ),
            (
                "{:op :update-cell :table \"orders\" :row-id 1 :column :total :value 500}",
                "E0632",
            ),
        ],
    );
    // No row was written; valid ones are accepted, and existing rows stay as they were.
    check(
        &project,
        ":row-count",
        &[
            ("{:op :schema :table \"orders\"}", "4"),
            (&row(":code \"CD\""), "6"),
        ],
    );
    check(
        &project,
        "(fn [r] (nil? (:validation (:column r))))",
        &[(&set(":code", "{:validation nil}"), "true")],
    );
    check(
        &project,
        ":row-count",
        &[("{:op :insert :table \"orders\" :rows [{:no 20}]}", "7")],
    );
}
