//! Hostile names, cells and sizes of tables.

use crate::project::Project;
use crate::rows::table::{check, refuses};

#[test]
fn names_are_only_names() {
    let project = Project::new();
    for (idx, name) in [
        "a'; DROP TABLE table_registry; --",
        "\\\"quoted\\\" `and` [more]",
        "select",
        "table",
        "rowid",
        "row_id",
        "part",
        "c1",
        "oid",
        "ключ 日本 🦀",
        "a.b/c",
        "%_\\\\",
        " spaces at the ends ",
    ]
    .iter()
    .enumerate()
    {
        let all = format!(
            "(let [w (flow/step :table :w {{:op :upsert :table {{:name \"{name}\" :partitions {{:key \"{name}\"}}}} :key-fields [\"{name}\"] :index-fields [\"{name}\"] :rows [{{\"{name}\" {idx}}}]}})
                   c (flow/step :table :c {{:op :set-column :table \"{name}\" :column \"{name} 2\" :definition {{:display-name \"{name}\" :type-hint :string :validation {{:max-length 99}}}}}})
                   u (flow/step :table :u {{:op :update-cell :table w :key {{\"{name}\" {idx}}} :column \"{name} 2\" :value \"{name}\"}})
                   j (flow/step :table :j {{:op :materialize-join :left {{:table w}} :right {{:rows [{{\"{name}\" {idx} \"{name} 3\" 1}}]}} :on [{{:left-field \"{name}\" :right-field \"{name}\"}}] :op-id \"{name}\" :into {{:table \"{name} joined\"}}}})
                   q (flow/step :table :q {{:op :query :table j :where [[\"{name} 2\" := \"{name}\"]]}})]
               [(:value u) (vals (first (:rows q)))])"
        );
        assert_eq!(
            project.eval(&all),
            format!("[\"{name}\" ({idx} \"{name}\" 1)]"),
            "{name}"
        );
    }
}

#[test]
fn too_much_is_refused() {
    let project = Project::new();
    let wide = "(let [row (into {} (map (fn [n] [(str \"c\" n) n]) (range COUNT)))] (flow/step :table :w {:op :insert :table \"wide\" :rows [row]}))";
    let found = project.eval(&wide.replace("COUNT", "2500"));
    assert!(
        found.starts_with("E0621 the table `wide` has 1000 columns, and no more fit"),
        "{found}"
    );
    let found = project.eval(&wide.replace("COUNT", "1000"));
    assert!(found.contains(":rows-inserted 1"), "{found}");
    refuses(
        &project,
        &[
            (
                "{:op :insert :table \"wide\" :rows [{:one-more 1}]}",
                "E0621",
            ),
            ("{:op :insert :table \"t\" :rows [{:row-id 1}]}", "E0621"),
            (
                "{:op :insert :table \"a\\u0000b\" :rows [{:id 1}]}",
                "control character",
            ),
            (
                "{:op :insert :table {:name \"t\" :partitions {:key \"\\u0001\"}} :rows [{:id 1}]}",
                "control character",
            ),
            (
                "{:op :insert :table {:name \"t\" :partitions {:key \"\"}} :rows [{:id 1}]}",
                "is empty",
            ),
        ],
    );
    // A name that a flow receives from outside never reaches an internal table.
    refuses(
        &project,
        &[
            ("{:op :query :table \"table_registry\"}", "E0620"),
            ("{:op :query :table \"sqlite_schema\"}", "E0620"),
        ],
    );
}

#[test]
fn cells_of_every_kind() {
    let project = Project::new();
    let deep = "(let [deep (reduce (fn [inner _] [inner]) 1 (range 150))
                      w (flow/step :table :w {:op :insert :table \"t\" :rows [{:d deep :t \"a\\u0000b'; --\" :k (keyword \"with space\") :e \"\" :big (apply str (repeat 1000000 \"x\"))}]})
                      q (flow/step :table :q {:op :query :table \"t\"})
                      row (first (:rows q))]
                  [(= deep (:d row)) (= \"a\\u0000b'; --\" (:t row)) (= (keyword \"with space\") (:k row)) (= \"\" (:e row)) (count (:big row))])";
    assert_eq!(project.eval(deep), "[true true true true 1000000]");
    check(
        &project,
        "(fn [r] (:count r))",
        &[
            (
                "{:op :query :table \"t\" :where [[:t := \"a\\u0000b'; --\"]]}",
                "1",
            ),
            (
                "{:op :query :table \"t\" :where [[:t :like \"%' OR 1=1 --\"]]}",
                "0",
            ),
        ],
    );
    refuses(
        &project,
        &[
            ("{:op :insert :table \"t\" :rows [{:t 1}]}", "E0623"),
            ("{:op :insert :table \"t\" :rows [{:t [1]}]}", "E0623"),
            ("{:op :insert :table \"t\" :rows [{:d inc}]}", "E0764"),
            ("{:op :insert :table \"t\" :rows [7]}", "E0764"),
        ],
    );
}
