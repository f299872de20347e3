//! Graph specs and behaviour trees that flows and agents call like flows.

use serde_json::{Value, json};

use crate::graphs::{SETTINGS, calling, llm, one};
use crate::program::Scratch;

const TREE: &str = "name: ask for a version
version: 1.0.0
description: Asks for a version.
state: {var: {version: null, note: none}, const: {}}
tree:
  type: action
  name: Ask
  steps:
    - instruct: Which version? Store it at $VAR.version.
    - evaluate: A version is stored.
";

const SAVE: &str = "{:slug :save :description \"Saves a value.\"
 :graph/agent-tool true :graph/agent-tool-mode :read-write
 :invocations {:default {:inputs [{:name :value :type :text :required true}]}}
 :flow '(flow/step :kv :save {:operation :set :key \"saved\" :value (:value (flow/input))})}";

/// A spec that saves a part of its input after an approval.
fn saving() -> Value {
    json!({
        "spec_version": "1", "name": "Saver", "description": "Saves a message.", "entry": "save",
        "nodes": {
            "save": {"type": "tool", "tool_ref": {"source": "function", "name": "save"},
                     "args_template": {"value": "{{ input.message }}"}, "output_key": "saved"},
            "done": {"type": "end", "output_template": "saved {{ input.message }}"},
        },
        "edges": [{"from": "save", "to": "done"}],
        "tools": {"functions": ["save"]},
    })
}

fn project() -> Scratch {
    let scratch = Scratch::new();
    scratch.write("flowstone.edn", SETTINGS);
    scratch.write(
        "agents/classify.json",
        one(llm("CLASSIFY", &[]), json!({})).to_string(),
    );
    scratch.write("flows/saver.json", saving().to_string());
    scratch.write("flows/save.edn", SAVE);
    scratch.write("trees/version.yaml", TREE);
    scratch
}

fn flow(scratch: &Scratch, name: &str, body: &str) -> String {
    let file = format!("flows/{name}.edn");
    scratch.write(&file, format!("{{:slug :{name} :flow '{body}}}"));
    file
}

fn run(scratch: &Scratch, file: &str) -> crate::program::Ran {
    scratch.run(&["run", file, "--quiet", "--new"])
}

#[test]
fn a_flow_calls_a_graph_by_its_path_and_by_its_name() {
    let scratch = project();
    let file = flow(
        &scratch,
        "parent",
        "[(flow/call-flow \"agents/classify.json\" {:message \"hi\"})
          (flow/call-flow :classify {:message \"ho\"} {:id :second})
          (flow/step :fanout :both {:items [{:type :call-flow :flow-slug :classify :input {:message \"x\"}}]})]",
    );
    let checked = scratch.run(&["check", &file, "--json"]).json();
    assert_eq!(checked["findings"], json!([]), "{checked}");
    let ran = run(&scratch, &file);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.out.starts_with("[\"billing\" \"billing\""), "{ran:?}");
    let runs = scratch.json_of(&["runs", "list"]);
    let runs = runs["runs"].as_array().expect("runs").iter();
    assert_eq!(runs.filter(|it| it["flow"] == "classify").count(), 3);
}

#[test]
fn a_flow_calls_a_tree_which_waits_for_its_own_answers() {
    let scratch = project();
    let file = flow(
        &scratch,
        "parent",
        "(let [{:keys [status var]} (flow/call-flow \"trees/version.yaml\" {:var {:note \"soon\"}} {:workflow-id \"v-1\"})]
           [status var])",
    );
    let ran = run(&scratch, &file);
    assert_eq!(ran.code, Some(3), "{ran:?}");
    let request = scratch.json_of(&["tree", "next", "v-1"]);
    assert_eq!(request["name"], "Ask", "{request}");
    let document = scratch.run(&["tree", "export", "v-1"]).ok();
    let document: Value = serde_json::from_str(&document).expect("JSON");
    assert_eq!(document["tree_uri"], "trees/version.yaml", "{document}");
    assert_eq!(
        scratch.json_of(&["tree", "var", "v-1", "note"])["value"],
        "soon"
    );
    scratch.json_of(&["tree", "var", "v-1", "version", "--set", "1.4.0"]);
    scratch.json_of(&["tree", "submit", "v-1", "success"]);
    scratch.json_of(&["tree", "next", "v-1"]);
    scratch.json_of(&["tree", "eval", "v-1", "true"]);
    assert_eq!(scratch.json_of(&["tree", "next", "v-1"])["status"], "done");
    let runs = scratch.json_of(&["runs", "list"]);
    let runs = runs["runs"].as_array().expect("runs").clone();
    let parent = runs.iter().find(|it| it["flow"] == "parent");
    let id = parent
        .and_then(|it| it["id"].as_str())
        .expect("a parent")
        .to_owned();
    scratch.run(&["runs", "resume", &id, "--quiet"]);
    let shown = scratch.json_of(&["runs", "show", &id]);
    assert_eq!(shown["status"], "completed", "{shown}");
    assert_eq!(
        shown["result"],
        json!(["complete", {"version": "1.4.0", "note": "soon"}])
    );
}

#[test]
fn a_tree_that_fails_is_an_error_of_its_caller() {
    let scratch = project();
    let file = flow(
        &scratch,
        "parent",
        "(try (flow/call-flow :version {} {:workflow-id \"v-2\"})
              (catch Exception e [(:code (ex-data e)) (get-in (ex-data e) [:error :data :kind])]))",
    );
    assert_eq!(run(&scratch, &file).code, Some(3));
    scratch.json_of(&["tree", "next", "v-2"]);
    scratch.json_of(&["tree", "submit", "v-2", "failure"]);
    assert_eq!(
        scratch.json_of(&["tree", "next", "v-2"])["status"],
        "failure"
    );
    let runs = scratch.json_of(&["runs", "list"]);
    let runs = runs["runs"].as_array().expect("runs").clone();
    let parent = runs.iter().find(|it| it["flow"] == "parent").expect("it");
    let id = parent["id"].as_str().expect("an id").to_owned();
    scratch.run(&["runs", "resume", &id, "--quiet"]);
    let shown = scratch.json_of(&["runs", "show", &id]);
    assert_eq!(shown["result"], json!(["E0548", "tree-failed"]), "{shown}");
}

#[test]
fn a_file_that_cannot_be_called_is_named_in_the_error() {
    let scratch = project();
    let mut broken = saving();
    broken["limits"] = json!({"max_steps": 0});
    scratch.write("flows/broken.json", broken.to_string());
    scratch.write(
        "flows/lacking.json",
        calling("CALL", &["nothing"]).to_string(),
    );
    scratch.write(
        "trees/empty.yaml",
        "{type: sequence, name: E, children: []}",
    );
    scratch.write("flows/data.json", "{\"a\": 1}");
    scratch.write("flows/.env.json", saving().to_string());
    let cases = [
        (
            "flows/broken.json",
            "E1243",
            "flows/broken.json is not valid: limits.max_steps",
        ),
        (":broken", "E1243", "flows/broken.json"),
        (
            "flows/lacking.json",
            "E1244",
            "flows/lacking.json cannot run in this project",
        ),
        ("trees/empty.yaml", "E1218", "trees/empty.yaml"),
        (
            "flows/data.json",
            "E0546",
            "`flows/data.json` is neither a graph spec nor",
        ),
        ("agents/none.json", "E0545", "no flow `agents/none.json`"),
        ("../agents/classify.json", "E0545", "leads outside"),
        ("/etc/hostname.json", "E0545", "leads outside"),
        (".flowstone/a.json", "E0545", "leads outside"),
    ];
    for (idx, (name, code, text)) in cases.iter().enumerate() {
        let slug = match name.starts_with(':') {
            true => (*name).to_owned(),
            false => format!("(str \"{name}\")"),
        };
        let file = flow(
            &scratch,
            &format!("parent{idx}"),
            &format!("(flow/call-flow {slug} {{:message \"x\"}} {{:id :it}})"),
        );
        let ran = run(&scratch, &file);
        assert_eq!(ran.code, Some(1), "{name}: {ran:?}");
        assert!(
            ran.err.contains(code) && ran.err.contains(text),
            "{name}: {ran:?}"
        );
    }
    // A name that is written out is checked before the run.
    let file = flow(&scratch, "written", "(flow/call-flow \"agents/none.json\")");
    let checked = scratch.run(&["check", &file]);
    assert!(checked.err.contains("E0545"), "{checked:?}");
}

#[test]
fn a_link_leads_a_call_to_no_file_outside() {
    let scratch = project();
    let outside = Scratch::new();
    let secret = outside.write("secret.json", saving().to_string());
    #[cfg(unix)]
    std::os::unix::fs::symlink(&secret, scratch.path().join("flows/link.json")).expect("a link");
    let file = flow(
        &scratch,
        "parent",
        "(flow/call-flow (str \"flows/link\" \".json\"))",
    );
    let ran = run(&scratch, &file);
    assert!(ran.err.contains("leads outside"), "{ran:?}");
}

#[test]
fn a_flow_with_the_same_name_comes_first() {
    let scratch = project();
    flow(&scratch, "classify", ":own");
    let file = flow(&scratch, "parent", "(flow/call-flow :classify)");
    assert_eq!(run(&scratch, &file).out.trim(), ":own");
}

#[test]
fn a_call_describes_what_it_would_run() {
    let scratch = project();
    let file = flow(
        &scratch,
        "parent",
        "(mapv (fn [name] (flow/step :call-flow :about {:flow-slug name :describe true})) [\"flows/saver.json\" :version :save])",
    );
    let shown = scratch.json_of(&["run", &file, "--quiet", "--new"]);
    let found = &shown["result"];
    assert_eq!(
        found[0],
        json!({"name": "Saver", "description": "Saves a message.", "input-schema": {
            "type": "object", "properties": {"message": {"type": "string"}},
            "required": ["message"], "additionalProperties": false,
        }}),
        "{shown}"
    );
    assert_eq!(found[1]["name"], "ask-for-a-version");
    assert_eq!(
        found[1]["input-schema"]["properties"]["var"]["properties"]["note"],
        json!({"description": "Default: \"none\""})
    );
    assert_eq!(found[2]["input-schema"]["required"], json!(["value"]));
    let runs = scratch.json_of(&["runs", "list"]);
    assert_eq!(runs["runs"].as_array().map(Vec::len), Some(1), "{runs}");
}

const BOSS: &str = r#"{:connections {:ai {:backend :scripted :models ["test/small"] :script {:scripts [
  {:when "CLASSIFY" :turns ["billing"]}
  {:when "BOSS" :turns [{:tool-calls [{:name "Classifier" :arguments {:message "my bill"}}]}
                        {:tool-calls [{:name "ask_for_a_version" :arguments {:var {:note "now"}}}]}
                        "all done"]}]}}}}"#;

const TOOLS: &str = "(flow/step :agent :boss {:connection :ai :objective \"BOSS\" :tools {:flows [:classify \"trees/version.yaml\"]}})";

/// Returns a project whose agent calls a graph and then a tree.
fn boss() -> Scratch {
    let scratch = project();
    scratch.write("flowstone.edn", BOSS);
    let mut spec = one(llm("CLASSIFY", &[]), json!({}));
    spec["name"] = json!("Classifier");
    spec["description"] = json!("Finds out what a message is about.");
    scratch.write("agents/classify.json", spec.to_string());
    flow(&scratch, "boss", &format!("(:content {TOOLS})"));
    scratch
}

#[test]
fn an_agent_has_a_graph_and_a_tree_as_tools() {
    let scratch = boss();
    let checked = scratch.run(&["check", "flows/boss.edn", "--json"]).json();
    assert_eq!(checked["findings"], json!([]), "{checked}");
    let ran = run(&scratch, "flows/boss.edn");
    assert_eq!(ran.code, Some(3), "{ran:?}");
    let runs = scratch.json_of(&["runs", "list"]);
    let runs = runs["runs"].as_array().expect("runs").clone();
    let id = |flow: &str| {
        let found = runs.iter().find(|it| it["flow"] == flow);
        found
            .and_then(|it| it["id"].as_str())
            .expect("a run")
            .to_owned()
    };
    let tree = id("ask-for-a-version");
    assert_eq!(
        scratch.json_of(&["tree", "var", &tree, "note"])["value"],
        "now"
    );
    scratch.json_of(&["tree", "next", &tree]);
    scratch.json_of(&["tree", "submit", &tree, "success"]);
    scratch.json_of(&["tree", "next", &tree]);
    scratch.json_of(&["tree", "eval", &tree, "true"]);
    scratch.json_of(&["tree", "next", &tree]);
    let boss = id("boss");
    scratch.run(&["runs", "resume", &boss, "--quiet"]);
    let shown = scratch.json_of(&["runs", "show", &boss]);
    assert_eq!(shown["result"], "all done", "{shown}");
    let journal = scratch.run(&["runs", "events", &boss, "--json"]).ok();
    let request = |path: &str| {
        let entries = journal.lines().map(|line| {
            let entry: Value = serde_json::from_str(line).expect("JSON");
            entry
        });
        let mut requests = entries.filter(|it| it["path"] == path && it["request"].is_string());
        requests.next().expect("a step")["request"].to_string()
    };
    let turn = request("boss/turn");
    assert!(
        turn.contains("Finds out what a message is about."),
        "{turn}"
    );
    assert!(turn.contains("Asks for a version."), "{turn}");
}

#[test]
fn an_agent_offers_the_tools_that_it_offered_before_the_file_changed() {
    let scratch = boss();
    assert_eq!(run(&scratch, "flows/boss.edn").code, Some(3));
    scratch.write("agents/classify.json", "{}");
    scratch.write("trees/version.yaml", "name: other");
    let runs = scratch.json_of(&["runs", "list"]);
    let runs = runs["runs"].as_array().expect("runs").clone();
    let boss = runs.iter().find(|it| it["flow"] == "boss").expect("it");
    let id = boss["id"].as_str().expect("an id");
    let replayed = scratch.run(&["runs", "replay", id]);
    assert_eq!(replayed.code, Some(0), "{replayed:?}");
}

#[test]
fn an_agent_without_such_a_flow_says_so_before_the_run() {
    let scratch = boss();
    let file = flow(
        &scratch,
        "lost",
        &TOOLS.replace("trees/version.yaml", "trees/versoin.yaml"),
    );
    let checked = scratch.run(&["check", &file]);
    assert!(
        checked.err.contains("E0545") && checked.err.contains("trees/versoin.yaml"),
        "{checked:?}"
    );
    let file = flow(
        &scratch,
        "wrong",
        &TOOLS.replace("\"trees/version.yaml\"", "7"),
    );
    let checked = scratch.run(&["check", &file]);
    assert!(checked.err.contains("E0469"), "{checked:?}");
}

/// A graph agent is a tool of another through a flow that calls it and has the four marks.
#[test]
fn a_graph_calls_another_graph_through_a_marked_flow() {
    let scratch = project();
    scratch.write(
        "flows/ask_classifier.edn",
        "{:slug :ask_classifier :description \"Classifies.\" :graph/agent-tool true
          :invocations {:default {:inputs [{:name :message :type :text :required true}]}}
          :flow '(flow/call-flow \"agents/classify.json\" (flow/input))}",
    );
    let spec = json!({
        "spec_version": "1", "entry": "ask",
        "nodes": {
            "ask": {"type": "tool", "tool_ref": {"source": "function", "name": "ask_classifier"},
                    "args_template": {"message": "{{ input.message }}"}, "output_key": "kind"},
            "done": {"type": "end", "output_template": "{{ state.kind }}"},
        },
        "edges": [{"from": "ask", "to": "done"}],
        "tools": {"functions": ["ask_classifier"]},
    });
    scratch.write("outer.json", spec.to_string());
    let ran = scratch.run(&[
        "run",
        "outer.json",
        "--quiet",
        "--input",
        r#"{"message": "hi"}"#,
    ]);
    assert_eq!(ran.out.trim(), "billing", "{ran:?}");
}

#[test]
fn specs_and_trees_are_imported_as_flows() {
    let scratch = project();
    for (file, to) in [
        ("agents/classify.json", "flows/one.edn"),
        ("trees/version.yaml", "flows/two.edn"),
    ] {
        scratch.run(&["graph", "import", file, "--to", to]).ok();
        let printed = scratch.run(&["graph", "import", file]).ok();
        assert_eq!(scratch.read(to).trim(), printed.trim());
        let checked = scratch.run(&["check", to, "--json"]).json();
        assert_eq!(checked["findings"], json!([]), "{checked}");
        let again = scratch.run(&["graph", "import", file, "--to", to]);
        assert!(again.err.contains("E1246"), "{again:?}");
    }
    scratch.write(".git/HEAD", "ref: refs/heads/main");
    for to in [
        ".flowstone/one.edn",
        "flows/../.flowstone/one.edn",
        ".git/one.edn",
        ".env",
        "flows/one.txt",
        "none/one.edn",
    ] {
        let refused = scratch.run(&["graph", "import", "agents/classify.json", "--to", to]);
        assert!(refused.err.contains("E1246"), "{to}: {refused:?}");
        assert!(!scratch.path().join(to).exists(), "{to}");
    }
    let input = r#"{"message": "hi"}"#;
    let ran = scratch.run(&["run", "flows/one.edn", "--quiet", "--input", input]);
    assert_eq!(ran.out.trim(), "billing", "{ran:?}");
    let ran = scratch.run(&["run", "flows/two.edn", "--quiet", "--id", "tree:run:mine"]);
    assert_eq!(ran.code, Some(3), "{ran:?}");
    assert_eq!(scratch.json_of(&["tree", "next", "mine"])["name"], "Ask");
    for (name, text) in [("settings.edn", "{}"), ("data.json", "{\"a\": 1}")] {
        scratch.write(name, text);
        let refused = scratch.run(&["graph", "import", name]);
        assert!(
            refused.err.contains("E1245") && refused.err.contains(name),
            "{refused:?}"
        );
    }
    assert!(
        scratch
            .run(&["graph", "import", "none.json"])
            .err
            .contains("E0905"),
        "a file that is not there"
    );
}

/// A flow of elsewhere is trusted together with the specs that it calls.
#[test]
fn trust_lists_the_called_specs() {
    let scratch = project();
    let file = flow(
        &scratch,
        "parent",
        "(flow/call-flow \"flows/saver.json\" {:message \"x\"})",
    );
    let given = scratch.run(&["flows", "trust", &file, "--yes"]);
    assert_eq!(given.code, Some(0), "{given:?}");
    assert!(
        given.err.contains("`parent`") && given.err.contains("`saver`"),
        "{given:?}"
    );
}

/// Kills the process before and after every commit of the parent and of its child.
#[test]
fn a_parent_and_its_graph_survive_every_crash() {
    let scratch = project();
    let file = flow(
        &scratch,
        "parent",
        "(let [said (flow/call-flow \"flows/saver.json\" {:message \"hi\"})
               kind (flow/call-flow :classify {:message said} {:id :kind})
               {:keys [value]} (flow/step :kv :read {:operation :get :key \"saved\"})]
           [said kind value])",
    );
    scratch.write(
        "flows/parent/test.edn",
        r#"{:mock {:work {:content "billing" :usage {:prompt-tokens 1 :completion-tokens 1}}}
            :answers {"*" {:action :approve}}
            :expect ["saved hi" "billing" "hi"]}"#,
    );
    let ran = scratch.run(&["test", &file, "--crash-everywhere", "--json"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let crashes = &ran.json()["crashes"];
    assert!(crashes["killed"].as_u64() > Some(50), "{crashes}");
    assert_eq!(crashes["resumed"], crashes["killed"]);
}

/// The answers are those of a driver, in their order.
#[test]
fn a_parent_and_its_tree_survive_every_crash() {
    let scratch = project();
    scratch.write(
        "trees/short.yaml",
        "{type: action, name: short, state: {var: {note: null}}, steps: [{instruct: Do it.}]}",
    );
    let file = flow(
        &scratch,
        "parent",
        "(let [{:keys [status var]} (flow/call-flow :short {:var {:note \"n\"}})]
           (flow/step :kv :keep {:operation :set :key \"kept\" :value var})
           [status var])",
    );
    scratch.write(
        "flows/parent/test.edn",
        r#"{:answers {"answer" {:op :next} "answer#2" {:op :submit :status "success"} "answer#3" {:op :next}}
            :expect ["complete" {"note" "n"}]}"#,
    );
    let ran = scratch.run(&["test", &file, "--crash-everywhere", "--json"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let crashes = &ran.json()["crashes"];
    assert!(crashes["killed"].as_u64() > Some(50), "{crashes}");
    assert_eq!(crashes["resumed"], crashes["killed"]);
}
