//! Limits of memory and instructions in the functions of a run: of steps, tools, preparations and branches.

use serde_json::json;

use crate::program::Scratch;

const HEAD: &str = ":concurrency {:type :singleton :on-new-version :coexist}";

/// Flows whose functions run `code`, by the place of the function.
fn places(code: &str) -> [(&'static str, String); 6] {
    let agent =
        "(flow/step :agent :a {:connection :ai :objective \"x\" :tools {:steps [:my/tool]}})";
    let outer =
        "(flow/step :agent :a {:connection :ai :objective \"x\" :tools {:agents [:my/tool]}})";
    let with = |steps: String, body: &str| {
        format!("{{:slug :places {HEAD} {steps} :flow '(try {body} (catch Throwable e :caught))}}")
    };
    let tool = |rest: String| {
        format!(
            ":steps [{{:id :my/tool :type :function :description \"d\" :input-schema [:map [:n :int]] {rest}}}]"
        )
    };
    let function = format!(":defaults {{:code (quote (fn [_] {code}))}}");
    let prepare = format!(":prepare (fn [_] {code}) :defaults {{:code (quote (fn [_] {{}}))}}");
    let nested = format!(
        ":steps [{{:id :my/inner :type :function :tool {{:name \"my_tool\"}} :description \"d\" :input-schema [:map [:n :int]] {function}}}]
         :agents [{{:id :my/tool :tool {{:name \"my_agent\"}} :description \"d\" :objective \"nested-one\" :input-schema [:map [:n :int]] :connection :ai :tools {{:steps [:my/inner]}}}}]"
    );
    let call = "(flow/step :my/tool :t {:n 1})";
    let branches = format!("(flow/pmap (fn [_] {call}) [1 2 3])");
    [
        ("a step", with(tool(function.clone()), call)),
        ("a preparation", with(tool(prepare.clone()), call)),
        ("branches", with(tool(function.clone()), &branches)),
        ("a tool", with(tool(function), agent)),
        ("a tool's preparation", with(tool(prepare), agent)),
        ("a tool of a nested agent", with(nested, outer)),
    ]
}

/// A model that calls the tools `my_agent` and `my_tool`, whichever it has.
const CALLS: &str = "{:connections {:ai {:backend :scripted :script {:scripts [{:when \"nested-one\" :turns [{:tool-calls [{:name \"my_tool\" :arguments {:n 1}}]} \"done\"]}] :turns [{:tool-calls [{:name \"my_agent\" :arguments {:n 1}} {:name \"my_tool\" :arguments {:n 1}}]} \"done\"]}}}";

#[test]
fn functions_use_up_the_limits_of_the_run_wherever_they_are_called() {
    let rows = [
        (
            "{:memory \"40MB\"}",
            "(loop [v []] (recur (conj v (vec (range 1000)))))",
            "E0903",
        ),
        (
            "{:instructions 3000000}",
            "(loop [n 0] (recur (inc n)))",
            "E0530",
        ),
    ];
    for (limits, code, expected) in rows {
        let scratch = Scratch::new();
        scratch.write("flowstone.edn", format!("{CALLS} :limits {limits}}}"));
        for (place, text) in places(code) {
            scratch.write("place.edn", text);
            let ran = scratch.run(&["run", "place.edn", "--new", "--json"]);
            assert_eq!(ran.code, Some(1), "{place}: {} {}", ran.out, ran.err);
            let found = &ran.json()["error"]["code"];
            assert_eq!(found, &json!(expected), "{place}: {}", ran.out);
        }
    }
}

#[test]
fn instructions_of_functions_add_up() {
    let scratch = Scratch::new();
    scratch.write("flowstone.edn", "{:limits {:instructions 3000000}}");
    let calls = |count: u32| {
        let call = "(flow/step :function :f {:code '(fn [_] (loop [n 0] (if (< n 100000) (recur (inc n)) n)))})";
        format!("{{:slug :sum {HEAD} :flow '(mapv (fn [_] {call}) (range {count}))}}")
    };
    scratch.write("sum.edn", calls(2));
    scratch.run(&["run", "sum.edn", "--new"]).ok();
    scratch.write("sum.edn", calls(100));
    let ran = scratch.run(&["run", "sum.edn", "--new", "--json"]);
    assert_eq!(ran.json()["error"]["code"], json!("E0530"), "{}", ran.out);
}
