//! `:installation-id` of `flow/call-flow`: whose runs a call starts, and which installations exist for a caller.

use serde_json::json;

use super::installations::ok;
use crate::program::{Ran, Scratch};

const SETTINGS: &str = r#"{:connections {:own {:base-url "https://crm.example.com"}
               :acme-crm {:base-url "https://crm.example.com" :workspace :acme}}
 :bindings {:crm {:conn :own}}
 :setup {:report {:region "the author's"}}}"#;

const REPORT: &str = r#"{:slug :report :description "Reports."
 :concurrency {:type :singleton :on-new-version :coexist}
 :requires [{:slot :crm :type :http-api :base-url "https://crm.example.com"}
            {:kind :form :fields [{:key :region :field-type :text :required true}]}]
 :invocations {:default {:inputs [{:name :word :type :text}]}}
 :flow '(do (flow/step :table :row {:op :insert :table "notes" :rows [{:word (:word (flow/input))}]})
            (str (:region (:activation (flow/input))) " " (:word (flow/input))))}"#;

const CALLER: &str = r#"{:slug :caller
 :concurrency {:type :singleton :on-new-version :coexist}
 :invocations {:default {:inputs [{:name :at :type :text}]}}
 :flow '(flow/call-flow :report {:word "ox"} {:installation-id (:at (flow/input))})}"#;

fn failed(ran: &Ran, code: &str) -> String {
    assert_eq!(ran.code, Some(1), "{}{}", ran.out, ran.err);
    assert!(ran.err.contains(code), "{}", ran.err);
    ran.err.clone()
}

fn home() -> Scratch {
    let scratch = Scratch::new();
    scratch.write("flowstone.edn", SETTINGS);
    for (slug, text) in [("report", REPORT), ("caller", CALLER)] {
        scratch.write(&format!("flows/{slug}.edn"), text);
        ok(&scratch.run(&["flows", "push", slug]));
        ok(&scratch.run(&["flows", "release", slug]));
    }
    for (workspace, name, connection, region) in [
        ("default", "monthly", "own", "EU"),
        ("acme", "main", "acme-crm", "US"),
    ] {
        let install = ["flows", "install", "report", "--workspace", workspace];
        ok(&scratch.run(&[&install[..], &["--as", name]].concat()));
        let at = format!("{workspace}/{name}");
        let set = format!("crm.conn={connection}");
        let setup = format!("{{:region {region:?}}}");
        let configure = ["flows", "configure", &at, "--set", &set];
        ok(&scratch.run(&[&configure[..], &["--setup", &setup]].concat()));
    }
    scratch
}

fn call(scratch: &Scratch, at: &str, more: &[&str]) -> Ran {
    let input = json!({"at": at}).to_string();
    scratch.run(&[&["run", "caller", "--input", &input], more].concat())
}

#[test]
fn a_call_runs_the_flow_as_an_installation() {
    let scratch = home();
    for at in ["monthly", "default/monthly"] {
        assert_eq!(ok(&call(&scratch, at, &[])), "EU ox");
    }
    // Its tables are those of the installation, and its run is one of the installation.
    let rows = scratch.json_of(&[
        "resources",
        "table",
        "query",
        "installation/default/monthly/notes",
    ]);
    assert_eq!(rows["rows"].as_array().map(Vec::len), Some(2), "{rows}");
    let runs = scratch.json_of(&["runs", "list"]);
    let flows = runs["runs"].as_array().expect("runs").iter();
    let flows: Vec<&str> = flows.filter_map(|run| run["flow"].as_str()).collect();
    assert!(flows.contains(&"report@monthly"), "{flows:?}");
    // Without one, the flow runs as the author's.
    let body = "{:slug :plain :flow '(flow/call-flow :report {:word \"yak\"})}";
    scratch.write("flows/plain.edn", body);
    assert_eq!(
        ok(&scratch.run(&["run", "flows/plain.edn"])),
        "the author's yak"
    );
}

#[test]
fn what_is_not_of_the_caller_does_not_exist() {
    let scratch = home();
    let foreign = failed(&call(&scratch, "acme/main", &[]), "E1440");
    let unknown = failed(&call(&scratch, "acme/nothing", &[]), "E1440");
    let words = |text: &str, name: &str| {
        text.lines()
            .find(|it| it.contains("error[E1440]"))
            .map(|it| it.replace(name, "_"))
    };
    assert_eq!(
        words(&foreign, "acme/main"),
        words(&unknown, "acme/nothing")
    );
    failed(&call(&scratch, "main", &[]), "E1440");
    // An installation of another flow.
    let install = ["flows", "install", "caller", "--as", "calls"];
    ok(&scratch.run(&install));
    failed(&call(&scratch, "calls", &[]), "E1455");
    // A version cannot be named beside it, and a flow can tell the errors apart.
    let body = "{:slug :kind :flow '(try (flow/call-flow :report {} {:installation-id \"none\"}) (catch Exception e (:kind (ex-data e))))}";
    scratch.write("flows/kind.edn", body);
    assert_eq!(ok(&scratch.run(&["run", "flows/kind.edn"])), ":not-found");
    let body =
        "{:slug :two :flow '(flow/call-flow :report {} {:installation-id \"monthly\" :version 1})}";
    scratch.write("flows/two.edn", body);
    failed(&scratch.run(&["run", "flows/two.edn"]), "E0712");
    // One that lacks something.
    ok(&scratch.run(&["flows", "install", "report", "--as", "bare"]));
    failed(&call(&scratch, "bare", &[]), "E1443");
}

#[test]
fn a_run_of_an_installation_reaches_those_of_its_author_and_workspace() {
    let scratch = home();
    let install = [
        "flows",
        "install",
        "caller",
        "--workspace",
        "acme",
        "--as",
        "calls",
    ];
    ok(&scratch.run(&install));
    let own = ["--installation", "acme/calls"];
    assert_eq!(ok(&call(&scratch, "main", &own)), "US ox");
    assert_eq!(ok(&call(&scratch, "acme/main", &own)), "US ox");
    failed(&call(&scratch, "monthly", &own), "E1440");
    failed(&call(&scratch, "default/monthly", &own), "E1440");
    // A package is of another author.
    ok(&scratch.run(&["flows", "pack", "caller", "--to", "c.tar.gz"]));
    let install = [
        "flows",
        "install",
        "./c.tar.gz",
        "--workspace",
        "acme",
        "--as",
        "packed",
    ];
    ok(&scratch.run(&install));
    failed(
        &call(&scratch, "main", &["--installation", "acme/packed"]),
        "E1440",
    );
}
