//! `flowstone check`.

use crate::program::Scratch;

#[test]
fn what_is_not_served_is_noted_once() {
    let scratch = Scratch::new();
    let flow = r#"{:slug :SLUG :concurrency {:type :singleton :on-new-version :supersede}
 :invocations {:default {:inputs []}}
 :interfaces {:http [{:id :start :invocation :default :enabled true}]}
 :flow '(flow/step :wait :paid {:key "k" :webhook {:path "orders"}})}"#;
    scratch.write("one.edn", flow.replace("SLUG", "one"));
    scratch.write("two.edn", flow.replace("SLUG", "two"));
    let ran = scratch.run(&["check", "one.edn", "two.edn"]);
    assert_eq!(ran.err.matches("note: ").count(), 1, "{ran:?}");
    assert!(
        ran.err
            .contains("`:interfaces` and webhooks of waits are kept, but not served yet"),
        "{ran:?}"
    );
    let json = scratch.json_of(&["check", "one.edn"]);
    assert_eq!(json["notes"].as_array().map(Vec::len), Some(1), "{json}");
}

#[test]
fn findings_are_located() {
    let scratch = Scratch::new();
    scratch.write("flows/good.edn", "(let [a 1] a) ; no (flow/step");
    scratch.write(
        "flows/deep/bad.edn",
        "{:slug :bad\n :flow '(flow/step :fiels :list {})}",
    );
    scratch.write("flows/data.edn", "{:just :data");
    let ran = scratch.run(&["check", "flows"]);
    assert_eq!((ran.code, &*ran.out), (Some(1), ""));
    assert!(ran.err.contains("flows/deep/bad.edn:2:"), "{}", ran.err);
    assert!(ran.err.contains("`:files`"), "{}", ran.err);
    assert!(!ran.err.contains("data.edn"), "{}", ran.err);
}

#[test]
fn json_lists_the_findings() {
    let scratch = Scratch::new();
    scratch.write("bad.edn", "{:slug :bad :flow '(+ 1}");
    let ran = scratch.run(&["check", "--json", "bad.edn"]);
    assert_eq!(ran.code, Some(1));
    let json = ran.json();
    assert_eq!(json["ok"], false);
    assert_eq!(json["findings"][0]["file"], "bad.edn");
    assert_eq!(json["findings"][0]["line"], 1);
}

#[test]
fn a_missing_file_is_named() {
    let ran = Scratch::new().run(&["check", "nothing.edn"]);
    assert_eq!(ran.code, Some(1));
    assert!(
        ran.err.contains("nothing.edn: there is no such file"),
        "{}",
        ran.err
    );
}

#[test]
fn the_flows_of_this_repository_are_right() {
    let flows = concat!(env!("CARGO_MANIFEST_DIR"), "/flows");
    let ran = Scratch::new().run(&["check", flows]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
}

#[test]
fn code_is_compiled_and_not_run() {
    let scratch = Scratch::new();
    scratch.write(
        "bad.edn",
        "{:slug :bad :concurrency {:type :singleton :on-new-version :supersede}
 :functions [{:id :f :language :clojure :code \"(fn [{:keys [x]}] (inc y))\"}]
 :flow '(let [a 1] (loop [] (recur)) (+ a totl))}",
    );
    let ran = scratch.run(&["check", "bad.edn"]);
    assert_eq!(ran.code, Some(1));
    assert!(
        ran.err.contains("bad.edn:3:43") && ran.err.contains("`totl`"),
        "{}",
        ran.err
    );
    assert!(
        ran.err.contains("<function f>:1:24") && ran.err.contains("`y`"),
        "{}",
        ran.err
    );
}

#[test]
fn definitions_in_a_flow_are_known_to_what_follows() {
    let scratch = Scratch::new();
    scratch.write(
        "good.edn",
        "(do (defn twice [x] (* 2 x))
    (defmacro once [x] x)
    (def base (twice 4))
    (once (+ base (twice (count (flow/step :files :list {:op :list :source {:type :dir :path \".\"}}))))))",
    );
    assert_eq!(
        scratch.run(&["check", "good.edn"]).transcript(),
        "--- stderr\n1 file checked, nothing found\n"
    );
}
