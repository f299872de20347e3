//! The graph specs in `flows`: run with scripted models and a person, and killed at every point.

use super::{only_wait, project};
use crate::program::Scratch;

const SETTINGS: &str = r#"{:connections {:ai {:backend :scripted :script {:scripts [
 {:when "Classify" :turns ["refund"]}
 {:when "answer customers" :turns [
   {:tool-calls [{:name "interrupt" :arguments {:reason "Which order?"}}]}
   {:tool-calls [{:name "upsert_row" :arguments {:table "refunds" :row {:order "o-2" :amount 12} :key ["order"]}}]}
   "You get 12 back for o-2."]}
 {:when "order goods" :turns ["cup: 28\ntea: 21"]}]}}}}"#;

const ROWS: &str = r#"{:slug :rows :flow '(do
 (flow/step :table :orders {:op :insert :table "orders" :key-fields [:id] :rows [{:id "o-1" :customer "ada" :total 5} {:id "o-2" :customer "ada" :total 12} {:id "o-3" :customer "ben" :total 9}]})
 (flow/step :table :stock {:op :insert :table "stock" :key-fields [:sku] :rows [{:sku "cup" :count 2} {:sku "jar" :count 40} {:sku "tea" :count 9}]}))}"#;

fn with_rows() -> Scratch {
    let scratch = project();
    scratch.write("flowstone.edn", SETTINGS);
    scratch.write("rows.edn", ROWS);
    scratch.run(&["run", "rows.edn", "--quiet"]).ok();
    scratch
}

#[test]
fn the_specs_are_valid_and_make_flows_without_findings() {
    let scratch = with_rows();
    for name in ["support-desk", "stock-order"] {
        let file = format!("flows/{name}.json");
        let valid = scratch.run(&["graph", "validate", &file, "--json"]).json();
        assert_eq!(
            (&valid["valid"], valid.get("warnings")),
            (&true.into(), None),
            "{valid}"
        );
        let flow = scratch.run(&["graph", "eject", &file]).ok();
        let ejected = format!("{name}.edn");
        scratch.write(&ejected, flow);
        let checked = scratch.run(&["check", &ejected, "--json"]).json();
        assert_eq!(checked["findings"], serde_json::json!([]), "{checked}");
    }
}

#[test]
fn support_desk_asks_which_order_and_then_for_the_approval_of_the_refund() {
    let scratch = with_rows();
    let input = r#"{"customer": "ada", "message": "I want my money back"}"#;
    let ran = scratch.run(&["run", "flows/support-desk.json", "--input", input]);
    assert_eq!(ran.code, Some(3), "{ran:?}");
    let answered = scratch.run(&[
        "waits",
        "complete",
        &only_wait(&scratch),
        "--value",
        "{:input \"o-2\"}",
    ]);
    assert_eq!(answered.code, Some(3), "{answered:?}");
    let refunds = ["resources", "table", "query", "refunds", "--json"];
    assert_ne!(
        scratch.run(&refunds).code,
        Some(0),
        "nothing is written before the approval"
    );
    let answered = scratch.run(&["waits", "approve", &only_wait(&scratch)]);
    assert_eq!(
        answered.out.trim(),
        "You get 12 back for o-2.",
        "{answered:?}"
    );
    let rows = scratch.run(&refunds).json();
    assert_eq!(rows["rows"][0]["order"], "o-2", "{rows}");
}

#[test]
fn stock_order_stores_what_a_person_approved() {
    let scratch = with_rows();
    let ran = scratch.run(&[
        "run",
        "flows/stock-order.json",
        "--input",
        r#"{"shop": "pier"}"#,
    ]);
    assert_eq!(ran.code, Some(3), "{ran:?}");
    let answered = scratch.run(&["waits", "approve", &only_wait(&scratch)]);
    assert_eq!(
        answered.out, "Ordered for pier:\ncup: 28\ntea: 21\n",
        "{answered:?}"
    );
    let rejected = scratch.run(&[
        "run",
        "flows/stock-order.json",
        "--new",
        "--input",
        r#"{"shop": "quay"}"#,
    ]);
    assert_eq!(rejected.code, Some(3), "{rejected:?}");
    let answered = scratch.run(&["waits", "reject", &only_wait(&scratch)]);
    assert_eq!(answered.code, Some(1), "{answered:?}");
    assert!(answered.err.contains("was not approved"), "{answered:?}");
}

/// The process is killed at each commit, and before and after each effect, also while it waits for the approval.
#[test]
fn a_graph_run_with_an_approval_survives_every_crash() {
    let scratch = with_rows();
    let flow = scratch
        .run(&["graph", "eject", "flows/stock-order.json"])
        .ok();
    // The rows are those of the run itself: a test has a store of its own.
    let rows = "(flow/step :table :rows {:op :insert :table \"stock\" :key-fields [:sku] :rows [{:sku \"tea\" :count 9}]})";
    scratch.write(
        "stock.edn",
        flow.replacen("'(let [", &format!("'(let [_ {rows}\n       "), 1),
    );
    scratch.write(
        "stock/test.edn",
        r#"{:input {:shop "pier"}
            :mock {:propose {:content "tea: 21" :usage {:prompt-tokens 1 :completion-tokens 1}}}
            :answers {"*" {:action :approve}}
            :expect "Ordered for pier:\ntea: 21"}"#,
    );
    let ran = scratch.run(&["test", "stock.edn", "--crash-everywhere"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.out.contains("passed"), "{ran:?}");
}

/// The clock of the test skips the week that the spec gives people.
#[test]
fn a_run_that_nobody_answers_fails_after_its_time_for_people() {
    let scratch = with_rows();
    let flow = scratch
        .run(&["graph", "eject", "flows/stock-order.json"])
        .ok();
    let rows = "(flow/step :table :rows {:op :insert :table \"stock\" :key-fields [:sku] :rows [{:sku \"tea\" :count 9}]})";
    scratch.write(
        "stock.edn",
        flow.replacen("'(let [", &format!("'(let [_ {rows}\n       "), 1),
    );
    scratch.write(
        "stock/test.edn",
        r#"{:input {:shop "pier"}
            :mock {:propose {:content "tea: 21" :usage {:prompt-tokens 1 :completion-tokens 1}}}
            :expect {:status :failed :error {:kind :graph :message "nobody answered within 604800 seconds"}}}"#,
    );
    let ran = scratch.run(&["test", "stock.edn"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
}
