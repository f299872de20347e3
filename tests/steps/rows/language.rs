//! The rows of `tests/coverage/language.tsv`: the language of flows, budgets, names and keys.

use flowstone_lang::value::Value;

use crate::net::contains;
use crate::project::Project;

const COUNT: &str = "(:value (flow/step :kv :count {:operation :increment :key \"n\"}))";

#[test]
fn steps_at_any_depth() {
    let project = Project::new();
    let body = format!(
        "(let [tick (fn [_] {COUNT})]
           [(mapv tick [1 2]) (reduce (fn [sum x] (+ sum (tick x))) 0 [1 2]) (sort-by tick [:b :a])
            (try (tick 1) (finally (tick 2)))])"
    );
    assert_eq!(project.eval(&body), "[[1 2] 7 (:b :a) 7]");
}

#[test]
fn steps_in_lazy_sequences() {
    let project = Project::new();
    let body = format!("(let [xs (map (fn [_] {COUNT}) (range 100))] [(first xs) {COUNT}])");
    assert_eq!(project.eval(&body), "[1 2]", "one element at a time");
    assert_eq!(
        project.eval(&format!("(take 2 (map (fn [_] {COUNT}) (range 100)))")),
        "(3 4)",
        "results are computed first"
    );
}

#[test]
fn chance_is_journaled() {
    let project = Project::new();
    let body = "(let [seen (pr-str [(rand) (rand-int 1000) (shuffle (range 9)) (str (random-uuid))
                                    (.getTime (java.util.Date.)) (flow/uuid) (flow/rand) (flow/now-ms)])]
                  (flow/step :kv :keep {:operation :set :key \"seen\" :value seen})
                  (flow/step :wait :ok {:key \"k\"})
                  (= seen (:value (flow/step :kv :again {:operation :get :key \"seen\"}))))";
    contains(&project.eval(body), "waiting");
    let project = project.reopen();
    project.clock.advance(5_000);
    assert_eq!(project.answer("k", &Value::Int(1)), "true");
}

#[test]
fn a_run_keeps_its_version() {
    let project = Project::new();
    let body = "(do (flow/step :wait :ok {:key \"k\"}) :old)";
    contains(&project.eval(body), "waiting");
    project.write("flow.edn", body.replace(":old", ":new").as_bytes());
    let project = project.reopen();
    assert_eq!(project.answer("k", &Value::Int(1)), ":old");
}

#[test]
fn no_files_in_a_body() {
    let project = Project::new();
    contains(&project.eval("(slurp \"flow.edn\")"), "E0388");
    contains(&project.eval("(spit \"x\" 1)"), "E0388");
}

#[test]
fn call_depth_is_limited() {
    contains(
        &Project::new().eval("(do (defn deep [n] (inc (deep n))) (deep 1))"),
        "E0302",
    );
}
