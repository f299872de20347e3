//! The rows of `tests/coverage/agent.tsv` about loop control: choices of tools, rules for turns, calls that end the loop.

use serde_json::json;

use crate::agent::{Bench, STEPS, calls, says};
use crate::server::Say;

const ADD: &str = "{\"a\":1,\"b\":2}";
/// A tool that the flow defines, and nobody performs.
const TOOLS: &str =
    ":tools {:steps [:math/add] :definitions [{:name \"done\" :parameters {:type \"object\"}}]}";

/// Runs an agent over a conversation, and returns its reason to end with the number of turns.
#[track_caller]
fn ends(turns: Vec<Say>, fields: &str) -> (Bench, String) {
    let bench = Bench::with(STEPS, turns);
    let found = bench.run(&format!(
        "(let [r (flow/step :agent :a {{:connection :ai :messages [{{:role :user :content \"Go.\"}}] {fields}}})] [(:finish-reason r) (:iterations r)])"
    ));
    (bench, found)
}

fn add() -> Say {
    calls(&[("c1", "math_add", ADD)])
}

fn offered(bench: &Bench, turn: usize) -> Vec<String> {
    let asked = bench.asked();
    let tools = asked[turn]["tools"].as_array().cloned().unwrap_or_default();
    let names = tools.iter().map(|it| {
        it["function"]["name"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    });
    names.collect()
}

#[test]
fn messages() {
    let (bench, found) = ends(vec![says("ok")], ":instructions \"Be brief.\"");
    assert_eq!(found, "[\"stop\" 1]");
    assert_eq!(
        bench.asked()[0]["messages"],
        json!([{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Go."}])
    );
    let (_, both) = ends(Vec::new(), ":objective \"Go.\"");
    assert!(
        both.starts_with("E0840 `:messages` and `:objective` cannot both be given"),
        "{both}"
    );
}

#[test]
fn tool_choice() {
    let fields =
        format!("{TOOLS} :tool-choice {{:tool \"math_add\"}} :max-iterations 2 :conclude? false");
    let (bench, found) = ends(vec![add(), add()], &fields);
    assert_eq!(found, "[\"max-iterations\" 2]");
    let named = json!({"type": "function", "function": {"name": "math_add"}});
    assert_eq!(
        (
            &bench.asked()[0]["tool_choice"],
            &bench.asked()[1]["tool_choice"]
        ),
        (&named, &named)
    );
    assert_eq!(offered(&bench, 0), ["math_add", "done"]);
    let (bench, found) = ends(
        vec![says("no"), says("no")],
        &format!("{TOOLS} :tool-choice :required"),
    );
    assert!(
        found.starts_with("E1281 the model answered with text twice"),
        "{found}"
    );
    assert_eq!(bench.asked().len(), 2);
    let (_, found) = ends(
        Vec::new(),
        &format!("{TOOLS} :tool-choice {{:tool \"math_ad\"}}"),
    );
    assert!(
        found.starts_with("E1280 the agent has no tool `math_ad` | did you mean `math_add`?"),
        "{found}"
    );
}

#[test]
fn a_choice_binds_a_model_that_does_not_obey_it() {
    let fields = format!("{TOOLS} :step-rules [{{:step 1 :tool-choice :none}}]");
    let (bench, found) = ends(vec![add(), says("ok")], &fields);
    assert_eq!(found, "[\"stop\" 2]");
    let result = bench.asked()[1]["messages"][2]["content"].to_string();
    assert!(
        result.contains("no tool may be called in this turn"),
        "{result}"
    );
    // The call of another tool is not the one that is required, and does not end the loop.
    let done = || calls(&[("c1", "done", "{}")]);
    let fields = format!(
        "{TOOLS} :step-rules [{{:step 1 :tool-choice {{:tool \"math_add\"}} :active-tools [\"math_add\" \"done\"]}}] :stop-when [{{:tool \"done\"}}]"
    );
    let (bench, found) = ends(vec![done(), add(), says("ok")], &fields);
    assert_eq!(found, "[\"stop\" 3]");
    let asked = bench.asked();
    let result = asked[1]["messages"][2]["content"].to_string();
    assert!(
        result.contains("only the tool `math_add` may be called"),
        "{result}"
    );
    let named = json!({"type": "function", "function": {"name": "math_add"}});
    assert_eq!(asked[1]["tool_choice"], named);
    assert!(asked[2].get("tool_choice").is_none(), "{}", asked[2]);
}

#[test]
fn an_unknown_tool_is_answered_with_the_names_of_all() {
    let fields = format!("{TOOLS} :tool-choice :auto :client-tools [{{:name \"ask\"}}]");
    let (bench, _) = ends(vec![calls(&[("c1", "nope", "{}")]), says("ok")], &fields);
    let result = bench.asked()[1]["messages"][2]["content"].to_string();
    assert!(
        result.contains("there are: math_add, ask, done"),
        "{result}"
    );
}

#[test]
fn active_tools() {
    let fields = format!("{TOOLS} :active-tools [\"done\"]");
    let (bench, found) = ends(vec![add(), says("ok")], &fields);
    assert_eq!(found, "[\"stop\" 2]");
    assert_eq!(offered(&bench, 0), ["done"]);
    let result = bench.asked()[1]["messages"][2]["content"].to_string();
    assert!(result.contains("not available in this turn"), "{result}");
}

#[test]
fn step_rules() {
    let fields = format!(
        "{TOOLS} :step-rules [{{:step 1 :tool-choice {{:tool \"math_add\"}}}} {{:step 2 :tool-choice :none}}]"
    );
    let (bench, found) = ends(vec![add(), says("ok")], &fields);
    assert_eq!(found, "[\"stop\" 2]");
    assert_eq!(
        (offered(&bench, 0), offered(&bench, 1)),
        (
            vec!["math_add".to_owned()],
            vec!["math_add".to_owned(), "done".to_owned()]
        )
    );
    assert_eq!(bench.asked()[1]["tool_choice"], "none");
}

#[test]
fn stop_when() {
    let turn = || calls(&[("c1", "math_add", ADD), ("c2", "done", "{}")]);
    let (_, found) = ends(
        vec![turn()],
        &format!("{TOOLS} :stop-when [{{:tool \"math_add\"}}]"),
    );
    assert_eq!(found, "[\"stop-condition\" 1]");
    let (_, found) = ends(vec![turn()], &format!("{TOOLS} :conclude? false"));
    assert_eq!(found, "[\"no-executor\" 1]");
}

#[test]
fn conclude() {
    let fields = format!("{TOOLS} :max-iterations 1 :stop-when []");
    let (_, found) = ends(vec![add(), says("so far")], &fields);
    assert_eq!(found, "[\"max-iterations\" 2]");
    let (_, found) = ends(vec![add()], &format!("{fields} :conclude? false"));
    assert_eq!(found, "[\"max-iterations\" 1]");
}

#[test]
fn client_tools() {
    let fields =
        ":client-tools [{:name \"ask\" :preset {:tenant \"t\"}}] :tools {:steps [:math/add]}";
    let turns = vec![
        calls(&[("c1", "math_add", ADD), ("c2", "ask", "{\"Q\":1}")]),
        says("ok"),
    ];
    let (bench, waiting) = ends(turns, fields);
    assert!(waiting.starts_with("waiting"), "{waiting}");
    let answer = "{:outputs [{:tool-call-id \"c2\" :output {:Answer 42}}] :active-tools [\"ask\"]}";
    let found = bench
        .project
        .answer(&bench.only_wait(), &crate::world::edn(answer));
    assert_eq!(found, "[\"stop\" 2]");
    assert_eq!(bench.asked().len(), 2, "no turn is repeated");
    let messages = bench.asked()[1]["messages"].clone();
    assert_eq!(
        (&messages[2]["content"], &messages[3]["content"]),
        (&json!("{\"sum\":3}"), &json!("{\"Answer\":42}"))
    );
    assert_eq!(offered(&bench, 1), ["ask"]);
}
