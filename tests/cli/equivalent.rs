//! The same job as a flow, as a graph and as a tree leaves equivalent journals.
//!
//! Two journals are equivalent when these are equal: the order of the steps, their types, what each asks for, what each
//! gives, and the result of the run. What a front adds for itself is left out: ids of steps, limits of time, `:retry` and the
//! `:data` that its events are made of; of a tree also the answers that only move it (`:next`), and where a value is stored
//! before its request is submitted.

use serde_json::{Value, json};

use crate::graphs::SETTINGS;
use crate::program::Scratch;

/// The keys of a request that fronts set for themselves.
const BOOKKEEPING: &[&str] = &[
    "data",
    "default-value",
    "on-timeout",
    "retry",
    "timeout",
    "total-timeout",
];

/// A step of a journal: its type, what it asks for, and what it gives.
type Done = (String, String, Value);

/// Returns the entries in the journal of a completed run.
fn journal(scratch: &Scratch, run: &str) -> Vec<Value> {
    let shown = scratch.json_of(&["runs", "show", run]);
    assert_eq!(shown["status"], "completed", "{shown}");
    let journal = scratch.run(&["runs", "events", run, "--json"]).ok();
    let lines = journal.lines();
    lines
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// Returns the steps of a run in the order in which they were requested, without bookkeeping.
fn equivalent(scratch: &Scratch, run: &str) -> Vec<Done> {
    let entries = journal(scratch, run);
    let results = entries.iter().filter(|entry| entry["kind"] == "result");
    let result = |path: &Value| {
        let found = results.clone().find(|entry| entry["path"] == *path);
        found.expect("the step has a result")["payload"].clone()
    };
    let steps = entries.iter().filter(|entry| {
        let first = entries.iter().find(|other| other["path"] == entry["path"]);
        entry["request"].is_string() && first == Some(entry) && entry["kind"] != "log"
    });
    steps
        .map(|entry| {
            let request = plain(&text(&entry["request"]));
            (text(&entry["type"]), request, result(&entry["path"]))
        })
        .collect()
}

/// Returns a request without what fronts set for themselves.
fn plain(request: &str) -> String {
    use flowstone_engine::codec;
    use flowstone_lang::value::Value as Data;
    let request = codec::decode(request).expect("EDN");
    let entries = request.as_map().expect("a map").iter();
    let kept = entries.filter(|(key, _)| {
        let name = key.to_string();
        !BOOKKEEPING.contains(&name.trim_start_matches(':'))
    });
    let kept = Data::map(kept.map(|(key, value)| (key.clone(), value.clone())));
    codec::encode(&kept).expect("EDN")
}

fn start(scratch: &Scratch, file: &str, input: &Value) -> String {
    let ran = scratch
        .run(&[
            "run",
            file,
            "--json",
            "--new",
            "--input",
            &input.to_string(),
        ])
        .json();
    let id = ran["run"].as_str().or(ran["id"].as_str());
    id.expect("an id").to_owned()
}

/// Answers the only open wait of a run.
fn answer(scratch: &Scratch, args: &[&str]) {
    let waits = scratch.json_of(&["waits", "list"]);
    let waits = waits["waits"].as_array().expect("waits").clone();
    assert_eq!(waits.len(), 1, "{waits:?}");
    let id = waits[0]["id"].as_str().expect("an id");
    let mut all = vec!["waits", args[0], id, "--quiet"];
    all.extend(&args[1..]);
    scratch.run(&all);
}

const LOOKUP: &str = "{:slug :lookup :description \"Looks up.\" :graph/agent-tool true
 :invocations {:default {:inputs [{:name :id :type :number :required true}]}}
 :flow '{:id (:id (flow/input)) :plan \"pro\"}}";

const SAVE: &str =
    "{:slug :save :description \"Saves.\" :graph/agent-tool true :graph/agent-tool-mode :read-write
 :invocations {:default {:inputs [{:name :value :type :text :required true}]}}
 :flow '(:value (flow/input))}";

/// Looks an account up, asks a model about it, and saves the answer after an approval.
const FLOW: &str = "{:slug :as-flow :flow '
 (let [account (flow/step :call-flow :account {:flow-slug :lookup :input {:id 1}})
       kind (:content (flow/step :llm :kind {:connection :ai :model \"test/small\" :system \"CLASSIFY\"
                                             :messages [{:role :user :content (str \"The plan is \" (:plan account))}]}))
       {:keys [action]} (flow/step :wait :may-save {:message \"Run the tool `save`?\" :approval {}})]
   (when (= :approve action)
     (str \"saved \" (flow/step :call-flow :saved {:flow-slug :save :input {:value kind}}))))}";

fn graph() -> Value {
    let call = |name: &str, args: Value, as_: &str| json!({"type": "tool", "tool_ref": {"source": "function", "name": name}, "args_template": args, "output_key": as_});
    json!({
        "spec_version": "1", "entry": "account",
        "nodes": {
            "account": call("lookup", json!({"id": 1}), "account"),
            "kind": {"type": "llm", "model": "test/small", "system_prompt": "CLASSIFY",
                     "input_template": "The plan is {{ state.account.plan }}", "output_key": "kind"},
            "save": call("save", json!({"value": "{{ state.kind }}"}), "saved"),
            "done": {"type": "end", "output_template": "saved {{ state.saved }}"},
        },
        "edges": [{"from": "account", "to": "kind"}, {"from": "kind", "to": "save"}, {"from": "save", "to": "done"}],
        "tools": {"functions": ["lookup", "save"]},
    })
}

#[test]
fn a_flow_and_a_graph_leave_equivalent_journals_of_models_tools_and_approvals() {
    let scratch = Scratch::new();
    scratch.write("flowstone.edn", SETTINGS);
    scratch.write("lookup.edn", LOOKUP);
    scratch.write("save.edn", SAVE);
    scratch.write("flow.edn", FLOW);
    scratch.write("graph.json", graph().to_string());
    let outcome = |file: &str| {
        let run = start(&scratch, file, &json!({}));
        answer(&scratch, &["approve"]);
        let mut steps = equivalent(&scratch, &run);
        for (kind, _, result) in &mut steps {
            // When something happened, who decided, and what a turn used are facts of one run.
            if kind == "wait" {
                *result = result["action"].clone();
            }
            if kind == "llm" {
                *result = result["content"].clone();
            }
        }
        let shown = scratch.json_of(&["runs", "show", &run]);
        (steps, shown["result"].clone())
    };
    let flow = outcome("flow.edn");
    let kinds: Vec<&str> = flow.0.iter().map(|it| it.0.as_str()).collect();
    assert_eq!(kinds, ["call-flow", "llm", "wait", "call-flow"]);
    assert_eq!(flow.1, "saved billing");
    assert_eq!(flow, outcome("graph.json"));
}

const QUESTIONS: [&str; 2] = ["Which version?", "Which channel?"];

const ASKING: &str = "{:slug :as-flow :flow '
 (let [version (:input (flow/step :wait :version {:message \"Which version?\"}))
       channel (:input (flow/step :wait :channel {:message \"Which channel?\"}))]
   {:version version :channel channel})}";

fn asking_graph() -> Value {
    let ask = |text: &str, as_: &str| {
        json!({"type": "tool", "tool_ref": {"source": "builtin", "name": "interrupt"},
               "args_template": {"reason": text}, "output_key": as_})
    };
    json!({
        "spec_version": "1", "entry": "version",
        "nodes": {
            "version": ask(QUESTIONS[0], "version"),
            "channel": ask(QUESTIONS[1], "channel"),
            "done": {"type": "end", "output_template": "{\"version\":\"{{ state.version }}\",\"channel\":\"{{ state.channel }}\"}"},
        },
        "edges": [{"from": "version", "to": "channel"}, {"from": "channel", "to": "done"}],
        "tools": {"builtin": ["interrupt"]},
    })
}

const ASKING_TREE: &str = "name: as-tree
version: 1.0.0
state: {var: {version: null, channel: null}}
tree:
  type: sequence
  name: Release
  children:
    - {type: action, name: version, steps: [{instruct: 'Which version?'}]}
    - {type: action, name: channel, steps: [{instruct: 'Which channel?'}]}
";

/// What was asked, and the answer.
type Asked = Vec<(String, Value)>;

/// Returns what the steps of a run asked, all of them waits, and what each was answered.
fn waits(scratch: &Scratch, run: &str) -> Asked {
    let all = scratch.json_of(&["waits", "list", "--all", "--run", run]);
    let all = all["waits"].as_array().expect("waits").clone();
    let message = |path: &Value| {
        let own = |wait: &&Value| wait["run"] == run && wait["step"] == *path;
        let wait = all.iter().find(own).expect("a wait");
        text(&wait["details"]["show"]["message"])
    };
    let entries = journal(scratch, run).into_iter();
    let results = entries.filter(|entry| entry["kind"] == "result");
    results
        .map(|entry| {
            assert_eq!(entry["type"], "wait", "{entry}");
            (message(&entry["path"]), entry["payload"].clone())
        })
        .collect()
}

/// Returns what the waits of a run asked and were answered.
fn asked(scratch: &Scratch, run: &str) -> Asked {
    let waits = waits(scratch, run).into_iter();
    waits
        .map(|(message, answer)| (message, answer["input"].clone()))
        .collect()
}

/// Returns what the requests of a tree asked, and the value that was stored before each was submitted.
fn asked_by_tree(scratch: &Scratch, run: &str) -> Asked {
    let (mut found, mut stored) = (Vec::new(), Value::Null);
    for (message, answer) in waits(scratch, run) {
        match answer["op"].as_str() {
            Some("next") => {}
            Some("var-write") => stored = answer["value"].clone(),
            Some("submit") => {
                // A tree's message begins with the name of its action.
                let question = message.split_once(": ").expect("a name").1;
                found.push((question.to_owned(), stored.take()));
            }
            other => panic!("an answer that the job does not have: {other:?}"),
        }
    }
    found
}

#[test]
fn a_flow_a_graph_and_a_tree_leave_equivalent_journals_of_questions_and_answers() {
    let scratch = Scratch::new();
    scratch.write("flowstone.edn", SETTINGS);
    scratch.write("flow.edn", ASKING);
    scratch.write("graph.json", asking_graph().to_string());
    scratch.write("tree.yaml", ASKING_TREE);
    let answers = ["1.4.0", "beta"];
    let expected: Asked = QUESTIONS
        .iter()
        .zip(answers)
        .map(|(text, answer)| ((*text).to_owned(), json!(answer)))
        .collect();
    let outcome = json!({"version": "1.4.0", "channel": "beta"});

    for file in ["flow.edn", "graph.json"] {
        let run = start(&scratch, file, &json!({}));
        for value in answers {
            answer(
                &scratch,
                &["complete", "--value", &format!("{{:input \"{value}\"}}")],
            );
        }
        assert_eq!(asked(&scratch, &run), expected, "{file}");
        let result = scratch.json_of(&["runs", "show", &run])["result"].clone();
        // The output of a graph is a text.
        let result = match result.as_str() {
            Some(text) => serde_json::from_str(text).expect("JSON"),
            None => result,
        };
        assert_eq!(result, outcome, "{file}");
    }

    let started = scratch.json_of(&["tree", "start", "tree.yaml", "job"]);
    let run = started["run"].as_str().expect("a run").to_owned();
    for value in answers {
        let request = scratch.json_of(&["tree", "next", "job"]);
        let name = request["name"].as_str().expect("a name").to_owned();
        scratch.json_of(&["tree", "var", "job", &name, "--set", value]);
        scratch.json_of(&["tree", "submit", "job", "success"]);
    }
    assert_eq!(scratch.json_of(&["tree", "next", "job"])["status"], "done");
    assert_eq!(asked_by_tree(&scratch, &run), expected);
    let shown = scratch.json_of(&["runs", "show", &run]);
    assert_eq!(shown["result"]["var"], outcome, "{shown}");
}
