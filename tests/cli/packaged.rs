//! Packaged steps on the command line: what `runs show` says of them, and what notices that they were changed.

use crate::program::Scratch;

fn flow(prepare: &str, project: &str) -> String {
    format!(
        "{{:slug :packed :concurrency {{:type :singleton :on-new-version :coexist}}
 :functions [{{:id :prep :code \"{prepare}\"}} {{:id :proj :code \"{project}\"}}]
 :steps [{{:id :math/add :type :function :input-schema [:map [:n :int]]
          :defaults {{:code '(fn [{{:keys [n]}}] {{:n (inc n)}})}} :prepare :prep :project-result :proj}}]
 :flow '(let [a (flow/step :math/add :first {{:n 1}})
              w (flow/step :wait :pause {{:key \"k\" :timeout \"1d\"}})]
          [a w])}}"
    )
}

const PREPARE: &str = "(fn [input] {:input input})";
const PROJECT: &str = "(fn [result] {:total (:n result)})";

#[test]
fn a_run_shows_what_the_flow_called() {
    let scratch = Scratch::new();
    scratch.write("packed.edn", flow(PREPARE, PROJECT));
    let ran = scratch.run(&["run", "packed.edn", "--json"]).json();
    let id = ran["run"].as_str().expect("an id").to_owned();
    let shown = scratch.run(&["runs", "show", &id, "--json"]).json();
    let step = &shown["steps"][0];
    assert_eq!(step["type"], "function");
    assert_eq!(step["packaged"], ":math/add");
    assert_eq!(step["path"], "first");
    let request = step["request"].as_str().expect("a request");
    assert!(request.starts_with("{:code (fn"), "{request}");
    let table = scratch.run(&["runs", "show", &id]).ok();
    assert!(table.contains("function :math/add"), "{table}");

    let answered = scratch.run(&["waits", "complete", "k", "--value", "1", "--json"]);
    let answered = answered.json();
    assert_eq!(answered["status"], "completed", "{answered}");
}

#[test]
fn a_changed_contract_is_noticed() {
    let scratch = Scratch::new();
    scratch.write("packed.edn", flow(PREPARE, PROJECT));
    scratch.run(&["run", "packed.edn", "--json"]).json();
    let verdict = || {
        let checked = scratch.run(&["check", "packed.edn", "--against-running", "--json"]);
        let run = checked.json()["runs"][0].clone();
        format!("{} {}", run["verdict"], run["conflict"]["step"])
    };
    assert_eq!(verdict(), "\"same\" null");
    // What is made of the value is made again: the same is asked for.
    let projected = flow(PREPARE, "(fn [result] {:sum (:n result)})");
    scratch.write("packed.edn", projected);
    assert_eq!(verdict(), "\"safe\" null");
    // Another config is another request.
    let prepared = flow("(fn [input] {:input (update input :n inc)})", PROJECT);
    scratch.write("packed.edn", prepared);
    assert_eq!(verdict(), "\"conflict\" \"first\"");
}
