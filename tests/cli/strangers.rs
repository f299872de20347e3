//! Flows and runs from elsewhere: they start with nothing, and what they were trusted with holds for them alone.

use super::permissions::{flow, http};
use crate::program::Scratch;

/// A project, and a folder beside it for flows from elsewhere.
struct Beside {
    scratch: Scratch,
}

impl Beside {
    fn new() -> Beside {
        let scratch = Scratch::new();
        scratch.write("project/flowstone.edn", "{}");
        Beside { scratch }
    }

    fn elsewhere(&self, file: &str, text: &str) {
        self.scratch.write(&format!("elsewhere/{file}"), text);
    }

    fn project(&self) -> std::path::PathBuf {
        self.scratch.path().join("project")
    }

    fn write(&self, file: &str, text: &str) {
        self.scratch.write(&format!("project/{file}"), text);
    }

    fn run(&self, args: &[&str]) -> crate::program::Ran {
        let mut command = self.scratch.command(args);
        command.current_dir(self.project());
        crate::program::Ran::to_the_end(&mut command)
    }
}

fn reading(slug: &str, path: &str) -> String {
    format!(
        "{{:slug :{slug} :flow '(count (:entries (flow/step :files :list {{:op :list :source {{:type :dir :path {path:?}}}}})))}}"
    )
}

#[test]
fn the_hint_names_the_row_that_holds_for_the_flow() {
    let beside = Beside::new();
    beside.elsewhere("count.edn", &reading("count", "/etc"));
    let file = "../elsewhere/count.edn";
    let ran = beside.run(&["run", file, "--new"]);
    for expected in [
        "hint: the flow `count` is not from this project; to see what it needs and to allow that: `flowstone flows trust FILE`",
        "hint: or add to flowstone.edn: :flows {:count {:allow {:read [\"/etc\"]}}}",
        "hint: or allow it for one command: --allow-read /etc",
    ] {
        assert!(ran.err.contains(expected), "{expected}\n{}", ran.err);
    }
    let line = "{:flows {:count {:allow {:read [\"/etc\"]}}}}";
    beside.scratch.write("project/flowstone.edn", line);
    beside.run(&["run", file, "--new"]).ok();
    // The same for a flow of the project that has nothing but its own rows.
    beside.scratch.write(
        "project/flowstone.edn",
        "{:flows {:own {:allow {:defaults false}}}}",
    );
    beside.scratch.write("project/own.edn", reading("own", "."));
    let ran = beside.run(&["run", "own.edn", "--new"]);
    let expected = "to allow it, add to flowstone.edn: :flows {:own {:allow {:read [\".\"]}}}";
    assert!(ran.err.contains(expected), "{}", ran.err);
    // And for a server, which another part refuses.
    beside.elsewhere("ask.edn", &http("http://127.0.0.1:9/", ""));
    let ran = beside.run(&["run", "../elsewhere/ask.edn", "--new"]);
    let expected = ":flows {:probe {:allow {:net [\"127.0.0.1:9\"]}}}";
    assert!(ran.err.contains(expected), "{}", ran.err);
    assert!(!ran.err.contains("data:"), "{}", ran.err);
    let json = beside.run(&["run", "../elsewhere/ask.edn", "--new", "--json"]);
    assert!(json.out.contains("\"access\""), "{json:?}");
}

#[test]
fn trust_ends_when_an_include_changes() {
    let beside = Beside::new();
    let file = "../elsewhere/count.edn";
    beside.elsewhere(
        "count.edn",
        "{:slug :count :flow '(count (:entries (flow/step :files :list #flow/include \"what.edn\")))}",
    );
    let what = |path: &str| format!("{{:op :list :source {{:type :dir :path {path:?}}}}}");
    beside.elsewhere("what.edn", &what("/etc"));
    beside.run(&["flows", "trust", file, "--yes"]).ok();
    beside.run(&["run", file, "--new"]).ok();
    // Nothing more is needed, and yet it is another flow.
    beside.elsewhere("what.edn", &format!("{} ; changed", what("/etc")));
    let ran = beside.run(&["run", file, "--new"]);
    let expected = "is not from this project, and has changed since it was trusted";
    assert!(ran.err.contains(expected), "{}", ran.err);
    let asked = beside.run(&["flows", "trust", file]);
    assert!(asked.err.contains("has changed since"), "{}", asked.err);
    // Another flow of the same name is not the one that was trusted.
    beside.elsewhere("other/count.edn", &reading("count", "/etc"));
    let ran = beside.run(&["run", "../elsewhere/other/count.edn", "--new"]);
    assert!(ran.err.contains("E0960"), "{}", ran.err);
    // What the file is called is no part of it.
    beside.elsewhere("what.edn", &what("/etc"));
    let whole = beside.scratch.path().join("elsewhere/count.edn");
    let whole = whole.to_str().expect("a path").to_owned();
    beside.run(&["run", &whole, "--new"]).ok();
}

#[test]
fn an_include_is_no_way_to_protected_files_or_into_the_project() {
    let beside = Beside::new();
    let including = |slug: &str, file: &str| {
        format!("{{:slug :{slug} :flow '(pr-str (quote #flow/include {file:?}))}}")
    };
    let root = beside.project();
    beside.write(".env", "K=CANARY");
    beside.write(".flowstone/notes.edn", "{:k \"CANARY\"}");
    beside.write(".git/one.edn", "CANARY");
    beside.write("plain.edn", "CANARY");
    #[cfg(unix)]
    std::os::unix::fs::symlink(".env", root.join("settings.edn")).expect("a link");
    let refused = |file: &str| {
        let ran = beside.run(&["run", file, "--new"]);
        assert_eq!(ran.code, Some(1), "{file}: {ran:?}");
        assert!(ran.err.contains("E0119"), "{file}: {}", ran.err);
        let all = format!("{}{}", ran.out, ran.err);
        assert!(!all.contains("CANARY"), "{file}: {all}");
    };
    let protected = [
        ".env",
        "./.env",
        ".ENV",
        ".flowstone/notes.edn",
        ".git/one.edn",
        "settings.edn",
    ];
    for (number, file) in protected.into_iter().enumerate() {
        let name = format!("own-{number}.edn");
        beside.write(&name, &including(&format!("own-{number}"), file));
        refused(&name);
    }
    beside.write("own.edn", &including("own", "plain.edn"));
    assert!(
        beside
            .run(&["run", "own.edn", "--new"])
            .ok()
            .contains("CANARY")
    );

    // From a folder around the project, and by a link in the project to a file outside.
    let inside = root
        .file_name()
        .expect("a name")
        .to_string_lossy()
        .into_owned();
    let around = root.parent().expect("a folder");
    let outer = including("outer", &format!("{inside}/plain.edn"));
    std::fs::write(around.join("outer.edn"), outer).expect("a file");
    refused("../outer.edn");
    #[cfg(unix)]
    {
        std::fs::write(around.join("linked.edn"), including("linked", "plain.edn"))
            .expect("a file");
        std::os::unix::fs::symlink("../linked.edn", root.join("linked.edn")).expect("a link");
        refused("linked.edn");
    }
}

#[test]
fn flows_that_a_flow_calls_are_trusted_with_it() {
    let beside = Beside::new();
    beside.elsewhere(
        "outer.edn",
        "{:slug :outer :flow '(flow/call-flow :inner {})}",
    );
    beside.elsewhere("inner.edn", &reading("inner", "/etc"));
    let file = "../elsewhere/outer.edn";
    let refused = beside.run(&["run", file, "--new"]);
    assert!(
        refused.err.contains("E0960") || refused.err.contains("E0548"),
        "{}",
        refused.err
    );
    let trusted = beside.run(&["flows", "trust", file, "--yes"]);
    for line in [
        "the flow `outer` needs no permissions that are known before it runs",
        "the flow `inner` needs:",
        "  read /etc",
        "the flow `outer` is trusted",
        "the flow `inner` is trusted",
    ] {
        let has = trusted.err.lines().any(|it| it == line);
        assert!(has, "{line}\n{}", trusted.err);
    }
    beside.run(&["run", file, "--new"]).ok();
    beside.elsewhere("inner.edn", &format!("{} ", reading("inner", "/etc")));
    assert_eq!(beside.run(&["run", file, "--new"]).code, Some(1));
}

/// A run that is imported is one of the project only where the project has all of its text.
#[test]
fn an_imported_run_with_another_include_is_from_elsewhere() {
    let project = |include: &str| {
        let scratch = Scratch::new();
        scratch.write("flowstone.edn", "{}");
        scratch.write(
            "probe.edn",
            "{:slug :probe :flow '(do (flow/step :wait :go {:timeout \"5m\"}) #flow/include \"more.edn\")}",
        );
        scratch.write("more.edn", include);
        scratch
    };
    let list =
        "(count (:entries (flow/step :files :list {:op :list :source {:type :dir :path \".\"}})))";
    let outcome = |include: &str| {
        let other = project(include);
        other.run(&["run", "probe.edn"]);
        let runs = other.json_of(&["runs", "list"]);
        let id = runs["runs"][0]["id"].as_str().expect("an id").to_owned();
        other.run(&["runs", "export", &id, "run.edn"]).ok();
        let here = project(list);
        here.write("run.edn", other.read("run.edn"));
        here.run(&["runs", "import", "run.edn"]).ok();
        here.run(&["runs", "resume", &id]);
        let waits = here.json_of(&["waits", "list"]);
        let wait = waits["waits"][0]["id"].as_str().expect("a wait").to_owned();
        here.run(&["waits", "complete", &wait, "--value", "1"]);
        here.run(&["runs", "resume", &id])
    };
    assert_eq!(outcome(list).code, Some(0));
    let changed = outcome(&format!("(do {list})"));
    assert!(changed.err.contains("E0960"), "{changed:?}");
}

/// A run of the project that gets a flow from elsewhere is one from elsewhere.
#[test]
fn a_run_is_judged_by_the_flow_that_it_gets() {
    let beside = Beside::new();
    let list =
        "(count (:entries (flow/step :files :list {:op :list :source {:type :dir :path \".\"}})))";
    let wait = "(flow/step :wait :go {:timeout \"5m\"})";
    beside.scratch.write(
        "project/probe.edn",
        format!("{{:slug :probe :flow '(do {wait} 1)}}"),
    );
    beside.elsewhere(
        "probe.edn",
        &format!("{{:slug :probe :flow '(do {wait} {list})}}"),
    );
    let file = "../elsewhere/probe.edn";
    beside.run(&["run", "probe.edn"]);
    let runs = beside.run(&["runs", "list", "--json"]).json();
    let id = runs["runs"][0]["id"].as_str().expect("an id").to_owned();
    let answer = |options: &[&str]| {
        let waits = beside.run(&["waits", "list", "--json"]).json();
        let wait = waits["waits"][0]["id"].as_str().expect("a wait").to_owned();
        let args = [&["waits", "complete", &wait, "--value", "1"], options].concat();
        beside.run(&args)
    };
    beside.run(&["runs", "resume", &id, "--flow", file]);
    let adopted = answer(&[]);
    assert!(adopted.err.contains("E0960"), "{adopted:?}");
    let forked = beside.run(&["runs", "fork", &id, "--flow", file]);
    assert_eq!(forked.code, Some(3), "{forked:?}");
    let forked = answer(&[]);
    assert!(forked.err.contains("E0960"), "{forked:?}");
    let forked = beside.run(&["runs", "fork", &id, "--flow", file]);
    assert_eq!(forked.code, Some(3), "{forked:?}");
    assert_eq!(answer(&["--allow-read", "."]).code, Some(0));
    let again = ["runs", "fork", &id, "--at", "list", "--allow-read", "."];
    beside.run(&again).ok();
}

/// What an agent or a flow calls a flow is a name, not a path; and what shows the project needs its permission.
#[test]
fn the_workspace_step_obeys_permissions() {
    let scratch = Scratch::new();
    scratch.write("flowstone.edn", "{}");
    scratch.write("project/flowstone.edn", "{}");
    scratch.write("outside.edn", "{:slug :outside :flow '1 :x \"0UTS1DE\"}");
    let run = |args: &[&str]| {
        let mut command = scratch.command(args);
        command.current_dir(scratch.path().join("project"));
        crate::program::Ran::to_the_end(&mut command)
    };
    let pull = |slug: &str, source: &str| {
        flow(&format!(
            "(pr-str (flow/step :workspace :pull {{:op :flows/pull :args {{:flow-slug {slug:?} :source {source}}}}}))"
        ))
    };
    run(&["run", "nothing.edn"]);
    scratch.write("project/.flowstone/private.edn", "\"0UTS1DE\"");
    for slug in [
        "../private",
        "../../../outside",
        "/outside",
        "x/../../private",
    ] {
        for source in [":draft", ":latest", ":active"] {
            scratch.write("project/probe.edn", pull(slug, source));
            let ran = run(&["run", "probe.edn", "--new"]);
            let shown = format!("{}{}", ran.out, ran.err);
            assert!(!shown.contains("0UTS1DE"), "{slug} {source}: {shown}");
            assert_eq!(ran.code, Some(1), "{slug} {source}: {shown}");
        }
    }
    scratch.write("project/x.edn", "{:slug :x :flow '1}");
    run(&["flows", "push", "x.edn"]).ok();
    scratch.write("project/probe.edn", pull("x", ":draft"));
    run(&["run", "probe.edn", "--new"]).ok();
    for op in ["flows/list", "flows/show", "flows/pull", "runs/list"] {
        let args = match op {
            "flows/list" => "{}",
            _ => "{:flow-slug \"probe\"}",
        };
        let text = format!("(pr-str (flow/step :workspace :see {{:op :{op} :args {args}}}))");
        scratch.write("elsewhere.edn", flow(&text));
        let ran = run(&["run", "../elsewhere.edn", "--new"]);
        assert!(ran.err.contains("E0960"), "{op}: {ran:?}");
    }
}

#[test]
fn a_table_is_imported_from_where_the_flow_may_read() {
    let beside = Beside::new();
    beside.elsewhere("rows.csv", "a\n7\n");
    let import = flow(
        "(do (flow/step :table :in {:op :import :table \"t\" :from \"../elsewhere/rows.csv\"})
             (count (:rows (flow/step :table :out {:op :query :table \"t\"}))))",
    );
    beside.scratch.write("project/probe.edn", import);
    let refused = beside.run(&["run", "probe.edn", "--new"]);
    assert!(refused.err.contains("E0960"), "{refused:?}");
    beside.scratch.write(
        "project/flowstone.edn",
        "{:allow {:read [\"../elsewhere\"]}}",
    );
    beside.run(&["run", "probe.edn", "--new"]).ok();
}

/// What a flow that may not read the project tries, with `TREE` and `RUN` of another run.
const STRANGE: &[&str] = &[
    "(flow/step :kv :x {:operation :get :key \"own\"})",
    "(flow/step :kv :x {:operation :exists :key \"own\"})",
    "(flow/step :kv :x {:operation :list-keys})",
    "(flow/step :kv :x {:operation :set :key \"own\" :value \"CHANGED\"})",
    "(flow/step :kv :x {:operation :append :key \"own\" :item 1})",
    "(flow/step :kv :x {:operation :increment :key \"count\"})",
    "(flow/step :kv :x {:operation :delete :key \"own\"})",
    "(flow/step :function :x {:code '(fn [_] {:a 1}) :persist {:type :kv :key \"own\"}})",
    "(flow/step :function :x {:code '(fn [_] {:rows [{:a 1}]}) :persist {:type :table :table \"t\"}})",
    "(flow/step :table :x {:op :query :table \"t\"})",
    "(flow/step :table :x {:op :insert :table \"t\" :rows [{:a \"CHANGED\"}]})",
    "(flow/step :table :x {:op :delete :table \"t\" :all true})",
    "(flow/step :table :x {:op :export :table \"t\"})",
    "(flow/step :search :x {:query \"anything\"})",
    "(flow/step :job :x {:op :get :job-id \"j\"})",
    "(flow/step :files :x {:op :read :source \"TREE\" :path \"notes.txt\"})",
    "(flow/step :files :x {:op :list :source \"TREE\"})",
    "(flow/step :files :x {:op :init-changeset :source \"TREE\"})",
    "(flow/step :files :x {:op :read :source \"DRAFT\" :path \"notes.txt\"})",
    "(flow/step :files :x {:op :write-file :changeset \"DRAFT\" :path \"a\" :content \"CHANGED\"})",
    "(flow/step :function :x {:input {:a \"OUTPUT\"} :load [:a] :code '(fn [x] (:a x))})",
    "(flow/step :function :x {:input {:a \"BLOB\"} :load [:a] :code '(fn [x] (:a x))})",
    "(flow/step :workspace :x {:op :resources/read :args {:uri \"OUTPUT\"}})",
    "(flow/step :workspace :x {:op :resources/read :args {:uri \"TREE\"}})",
    "(flow/step :workspace :x {:op :resources/read :args {:uri \"res://v1/ws/local/result/kv/own\"}})",
    "(flow/step :workspace :x {:op :runs/list :args {}})",
    "(flow/step :workspace :x {:op :runs/show :args {:run-id \"RUN\"}})",
    "(flow/step :workspace :x {:op :feedback/send :mutations :draft-only :args {:message \"CHANGED\"}})",
    "(flow/call-flow :inner {:a \"OUTPUT\"})",
];

const OTHER: &str = "{:slug :other :flow '(let [tree (flow/step :files :tree {:op :resolve-source :source {:type :dir :path \".\"}})
   draft (flow/step :files :draft {:op :init-changeset :source (:uri tree)})
   blob (flow/step :function :blob {:code '(fn [_] {:v \"CANARY\"}) :persist {:type :blob}})]
  (flow/step :kv :own {:operation :set :key \"own\" :value \"CANARY\"})
  (flow/step :table :rows {:op :insert :table \"t\" :rows [{:a \"CANARY\"}]})
  {:v \"CANARY\" :tree tree :draft draft :blob blob})}";

#[test]
fn stores_of_the_project_are_closed_to_a_flow_without_its_permission() {
    let beside = Beside::new();
    beside.write("notes.txt", "CANARY");
    beside.write("other.edn", OTHER);
    let other = beside.run(&["run", "other.edn", "--new", "--json"]).json();
    let uri = |key: &str| {
        let text = other["result"][key].to_string();
        let from = text
            .find("res://")
            .unwrap_or_else(|| panic!("{key}: {other}"));
        let name = text[from..].split('"').next().unwrap_or_default();
        name.to_owned()
    };
    let run = other["run"].as_str().expect("a run").to_owned();
    let output = format!("res://v1/ws/local/result/run/{run}/flow-output");
    let (tree, draft, blob) = (uri("tree"), uri("draft"), uri("blob"));
    let inner = "{:slug :inner :flow '(flow/step :function :x {:input {:a (:a (flow/input))} :load [:a] :code '(fn [x] (:a x))})}";
    beside.elsewhere("inner.edn", inner);
    for form in STRANGE {
        let body = [
            ("TREE", &tree),
            ("DRAFT", &draft),
            ("OUTPUT", &output),
            ("BLOB", &blob),
            ("RUN", &run),
        ]
        .iter()
        .fold((*form).to_owned(), |text, (name, value)| {
            text.replace(name, value)
        });
        let text = format!("{{:slug :stranger :flow '(pr-str {body})}}");
        beside.elsewhere("stranger.edn", &text);
        let mut files = vec!["../elsewhere/stranger.edn"];
        if !form.contains("call-flow") {
            beside.write("stranger.edn", &text);
            files.push("stranger.edn");
        }
        for file in files {
            beside.write(
                "flowstone.edn",
                "{:flows {:stranger {:allow {:defaults false}}}}",
            );
            let ran = beside.run(&["run", file, "--new"]);
            let shown = format!("{}{}", ran.out, ran.err);
            assert!(ran.err.contains("E0960"), "{file} {body}: {shown}");
            assert!(!shown.contains("CANARY"), "{file} {body}: {shown}");
        }
    }
    beside.write("flowstone.edn", "{}");
    let after = "{:slug :after :flow '[(:value (flow/step :kv :k {:operation :get :key \"own\"})) (mapv :a (:rows (flow/step :table :t {:op :query :table \"t\"})))]}";
    beside.write("after.edn", after);
    let kept = beside.run(&["run", "after.edn", "--new"]);
    assert_eq!(kept.out.trim(), "[\"CANARY\" [\"CANARY\"]]", "{kept:?}");
}

#[test]
fn a_flow_without_permission_sees_what_its_run_and_its_input_have() {
    let beside = Beside::new();
    beside.write("other.edn", OTHER);
    let other = beside.run(&["run", "other.edn", "--new", "--json"]).json();
    let run = other["run"].as_str().expect("a run").to_owned();
    let output = format!("res://v1/ws/local/result/run/{run}/flow-output");
    let load = "(flow/step :function :x {:input {:a (:a (flow/input))} :load [:a] :code '(fn [x] (:v (:a x)))})";
    beside.elsewhere("given.edn", &format!("{{:slug :given :flow '{load}}}"));
    let input = format!("{{\"a\": {output:?}}}");
    let given = ["run", "../elsewhere/given.edn", "--new", "--input", &input];
    assert_eq!(beside.run(&given).ok().trim(), "CANARY");
    // What its own run has stored, and nothing else is listed.
    let own = "{:slug :own :flow '(let [kept (flow/step :function :k {:code '(fn [_] {:v \"OWN\"}) :persist {:type :blob}})]
       [(flow/step :function :x {:input {:a kept} :load [:a] :code '(fn [x] (:v (:a x)))})
        (count (:resources (flow/step :workspace :ls {:op :resources/list :args {:type :blob}})))])}";
    beside.elsewhere("own.edn", own);
    let ran = beside.run(&["run", "../elsewhere/own.edn", "--new"]);
    assert_eq!(ran.out.trim(), "[\"OWN\" 1]", "{ran:?}");
    // Trust gives what the steps need.
    let kv = "{:slug :keys :flow '(:value (flow/step :kv :g {:operation :get :key \"own\"}))}";
    beside.elsewhere("keys.edn", kv);
    let file = "../elsewhere/keys.edn";
    let trusted = beside.run(&["flows", "trust", file, "--yes"]);
    assert!(trusted.err.contains("  read ."), "{}", trusted.err);
    assert_eq!(beside.run(&["run", file, "--new"]).ok().trim(), "CANARY");
}
