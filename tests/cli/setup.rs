//! What runs are given: setup forms, inputs of every kind, and what nobody declared.

use crate::program::Scratch;

const FLOW: &str = "{:slug :report
 :requires [{:kind :form :collect :setup
             :fields [{:key :region :field-type :select :options [\"EU\" \"US\"] :required true}
                      {:key :limit :field-type :number :default 5}]}]
 :flow '(:activation (flow/input))}";

#[test]
fn setup_values_come_from_the_command_line_and_the_settings() {
    let scratch = Scratch::new();
    scratch.write("a.edn", FLOW);
    let ran = scratch.run(&["run", "a.edn", "--quiet"]);
    assert_eq!(ran.code, Some(1));
    assert!(
        ran.err.contains("E0428") && ran.err.contains("region"),
        "{}",
        ran.err
    );
    assert!(
        ran.err.contains(":setup {:report {:region ...}}"),
        "{}",
        ran.err
    );
    let ran = scratch.run(&["run", "a.edn", "--quiet", "--setup", "{\"region\": \"US\"}"]);
    assert_eq!(ran.out, "{:region \"US\", :limit 5}\n", "{}", ran.err);
    scratch.write(
        "flowstone.edn",
        "{:setup {:report {:region \"EU\" :limit \"7\"}}}",
    );
    let ran = scratch.run(&["run", "a.edn", "--quiet"]);
    assert_eq!(ran.out, "{:region \"EU\", :limit 7}\n", "{}", ran.err);
    let ran = scratch.run(&["run", "a.edn", "--quiet", "--setup", "{:region :US}"]);
    assert_eq!(ran.out, "{:region \"US\", :limit 7}\n", "{}", ran.err);
    let ran = scratch.run(&["run", "a.edn", "--quiet", "--setup", "{:region :UK}"]);
    assert!(ran.err.contains("must be one of EU, US"), "{}", ran.err);
}

#[test]
fn children_are_set_up_and_later_passes_stay_so() {
    let scratch = Scratch::new();
    scratch.write("flowstone.edn", "{:setup {:report {:region \"EU\"}}}");
    scratch.write("flows/report.edn", FLOW);
    scratch.write("parent.edn", "(flow/call-flow :report {})");
    let ran = scratch.run(&["run", "parent.edn", "--quiet"]);
    assert_eq!(ran.out, "{:region \"EU\", :limit 5}\n", "{}", ran.err);
    scratch.write(
        "again.edn",
        "{:slug :report
 :requires [{:kind :form :fields [{:key :region :field-type :text :required true}]}]
 :flow '(let [{:keys [n activation]} (flow/input)]
          (if (= 2 n) activation (flow/continue-as-new {:n (inc (or n 0))})))}",
    );
    let ran = scratch.run(&["run", "again.edn", "--quiet"]);
    assert_eq!(ran.out, "{:region \"EU\"}\n", "{}", ran.err);
}

#[test]
fn bad_setup_settings_are_refused() {
    let scratch = Scratch::new();
    scratch.write("a.edn", "1");
    scratch.write("flowstone.edn", "{:setup {:report \"EU\"}}");
    let ran = scratch.run(&["run", "a.edn"]);
    assert!(
        ran.err.contains("a map of values for each flow"),
        "{}",
        ran.err
    );
}

fn input(type_: &str, given: &str) -> String {
    let scratch = Scratch::new();
    scratch.write(
        "a.edn",
        format!("{{:slug :a :invocations {{:default {{:inputs [{{:name :it :type {type_}}}]}}}} :flow '(:it (flow/input))}}"),
    );
    let ran = scratch.run(&[
        "run",
        "a.edn",
        "--quiet",
        "--input",
        &format!("{{:it {given}}}"),
    ]);
    match ran.code {
        Some(0) => ran.out.trim().to_owned(),
        _ => ran.err.lines().next().unwrap_or_default().to_owned(),
    }
}

#[test]
fn inputs_are_what_their_type_says() {
    assert_eq!(input(":any", "[1 {:a 2}]"), "[1 {:a 2}]");
    assert_eq!(input(":list", "[1 2]"), "[1 2]");
    assert_eq!(
        input(":list", "1"),
        "error[E0421]: the input `it` must be a list, not 1 (an integer)"
    );
    assert_eq!(
        input(":file", "{:uri \"res://v1/ws/local/file/a\"}"),
        "{:uri \"res://v1/ws/local/file/a\"}"
    );
    let wrong = "error[E0421]: the input `it` must be a reference to something stored, `res://...`, not \"may.csv\" (a string)";
    for type_ in [":blob", ":blob-ref", ":file", ":resource"] {
        assert_eq!(input(type_, "\"may.csv\""), wrong);
    }
}

#[test]
fn undeclared_inputs_are_told() {
    let scratch = Scratch::new();
    scratch.write(
        "a.edn",
        "{:slug :a :invocations {:default {:inputs [{:name :count :type :number}]}} :flow '(:cuont (flow/input))}",
    );
    let ran = scratch.run(&["run", "a.edn", "--input", "{:cuont 3}"]);
    assert_eq!((ran.out.as_str(), ran.code), ("3\n", Some(0)));
    assert!(
        ran.err.contains("E0429") && ran.err.contains("did you mean `count`"),
        "{}",
        ran.err
    );
}

#[test]
fn undeclared_setup_values_are_reported() {
    let scratch = Scratch::new();
    scratch.write("a.edn", FLOW);
    scratch.write("flowstone.edn", "{:setup {:report {:regoin \"US\"}}}");
    let ran = scratch.run(&["run", "a.edn", "--setup", "{:region \"EU\" :limt 3}"]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    for expected in [
        "warning[E0429]: the flow declares no setup value `limt`, which `--setup` gives",
        "did you mean `limit`?",
        "the flow declares no setup value `regoin`, which flowstone.edn gives (`flowstone check a.edn` shows it in full)",
    ] {
        assert!(ran.err.contains(expected), "{expected}: {}", ran.err);
    }
}

#[test]
fn settings_of_unknown_flows_and_fields_are_found_by_check() {
    let scratch = Scratch::new();
    scratch.write("a.edn", FLOW);
    scratch.write("flows/other.edn", "{:slug :other :flow '1}");
    scratch.write(
        "flowstone.edn",
        "{:setup {:report {:regoin \"US\"} :reprt {:region \"US\"} :other {}}}",
    );
    let ran = scratch.run(&["check", "a.edn"]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    for expected in [
        "the flow declares no setup value `regoin`, which flowstone.edn gives",
        "did you mean `region`?",
        "`:setup` of flowstone.edn has values for `reprt`, and no flow has this slug",
        "did you mean `report`?",
        "0 errors, 2 warnings",
    ] {
        assert!(ran.err.contains(expected), "{expected}: {}", ran.err);
    }
    scratch.write("flowstone.edn", "{:setpu {}}");
    let ran = scratch.run(&["check", "a.edn"]);
    assert!(
        ran.code == Some(1) && ran.err.contains("`:setup`"),
        "{}",
        ran.err
    );
}

#[test]
fn a_wrong_setup_value_is_named_as_one() {
    let scratch = Scratch::new();
    scratch.write("a.edn", FLOW);
    let ran = scratch.run(&["run", "a.edn", "--setup", "{:region \"EU\" :limit \"x\"}"]);
    assert_eq!(ran.code, Some(1));
    assert!(
        ran.err.contains("the setup value `limit` must be a number")
            && ran.err.contains("`:requires`")
            && !ran.err.contains(":invocations"),
        "{}",
        ran.err
    );
}
