//! `flowstone init` and `flowstone new`.

use serde_json::json;

use crate::program::Scratch;

/// A scripted model and an API address, for the flows that need them.
const SETTINGS: &str = r#"{:connections {:ai {:backend :scripted :script {:turns ["x"]}}
               :api {:base-url "http://127.0.0.1:1"}}}"#;

#[test]
fn a_new_project_runs_and_passes_its_test() {
    let scratch = Scratch::new();
    let made = scratch.run(&["init"]).ok();
    for file in [
        "flowstone.edn",
        "flows/hello.edn",
        "flows/hello/test.edn",
        ".clj-kondo/flowstone/flowstone/config.edn",
        ".gitignore",
    ] {
        assert!(made.contains(&format!("wrote {file}")), "{made}");
    }
    let greeting = scratch.run(&["run", "flows/hello.edn", "--input", r#"{"who": "Ada"}"#]);
    assert_eq!(greeting.ok().trim(), "Hello Ada, visit 1");
    scratch.run(&["check", "flows"]).ok();
    scratch.run(&["test", "flows"]).ok();
}

#[test]
fn init_changes_nothing_that_exists() {
    let scratch = Scratch::new();
    scratch.write("flowstone.edn", "{}");
    scratch.write(".gitignore", "target\n.env");
    let made = scratch.run(&["init", "--json"]).json();
    assert_eq!(made["kept"], json!(["flowstone.edn"]));
    assert_eq!(scratch.read("flowstone.edn"), "{}");
    assert_eq!(scratch.read(".gitignore"), "target\n.env\n.flowstone/\n");
    let again = scratch.run(&["init", "--json"]).json();
    assert_eq!(again["written"], json!([]));
    assert_eq!(scratch.read(".gitignore"), "target\n.env\n.flowstone/\n");
}

#[test]
fn each_kind_of_flow_is_valid_and_passes_its_test() {
    let scratch = Scratch::new();
    scratch.write("flowstone.edn", SETTINGS);
    for kind in [
        "hello",
        "agent",
        "agent-approval",
        "approval",
        "http",
        "schedule",
    ] {
        let slug = format!("my_{kind}");
        scratch.run(&["new", &slug, "--kind", kind]).ok();
        let file = format!("flows/{slug}.edn");
        let checked = scratch.run(&["check", &file, "--json"]).json();
        assert_eq!(checked["findings"], json!([]), "{kind}");
        scratch.run(&["test", &file]).ok();
    }
}

#[test]
fn new_replaces_no_file_and_takes_no_bad_name() {
    let scratch = Scratch::new();
    scratch.run(&["new", "invoices"]).ok();
    let before = scratch.read("flows/invoices.edn");
    let again = scratch.run(&["new", "invoices", "--kind", "agent"]);
    assert_eq!(again.code, Some(1));
    assert!(again.err.contains("E0957"), "{again:?}");
    assert_eq!(scratch.read("flows/invoices.edn"), before);
    for name in ["../escaped", "a b", "1st", ""] {
        let refused = scratch.run(&["new", name]);
        assert_eq!(refused.code, Some(1), "{name}");
        assert!(refused.err.contains("E0405"), "{refused:?}");
    }
}
