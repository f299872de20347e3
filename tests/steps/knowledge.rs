//! `:knowledge` and `:jq` in flows.

use flowstone_project::knowledge::{DOCUMENTS, ENTRIES, MEMORIES};
use serde_json::json;

use crate::project::Project;

/// Creates a project with a memory and a document, and without an embedder.
fn project() -> Project {
    let project = Project::with("{}");
    let memory = json!({"id": "mem_1", "name": "Facts", "tags": ["vip"], "project_id": "proj_1"});
    let document = json!({"id": "doc_1", "path": "/a.txt", "content": "Refunds take thirty days.", "project_id": "proj_1"});
    project.block_on(async {
        let memories = MEMORIES.put(&project.engine, "1", &memory).await;
        memories.expect("a memory");
        let documents = DOCUMENTS.put(&project.engine, "1", &document).await;
        documents.expect("a document");
    });
    project
}

#[test]
fn facts_are_written_once_and_found() {
    let project = project();
    let write = |content: &str| {
        project.eval(&format!(
            "(let [r (flow/step :knowledge :kept {{:op :write :memory \"mem_1\" :content {content:?}}})]
               [(:rows-inserted r) (:rows-updated r) (:skipped? r)])"
        ))
    };
    assert_eq!(write("prefers email"), "[1 0 nil]");
    assert_eq!(write("Prefers email!"), "[nil nil true]");
    assert_eq!(write("prefers email today always"), "[1 0 nil]");
    assert_eq!(write("prefers email always"), "[0 1 nil]");
    let entries = project.block_on(ENTRIES.list(&project.engine));
    assert_eq!(entries.expect("entries").len(), 2);
    let find = |config: &str| {
        project.eval(&format!(
            "(mapv :text (:results (flow/step :knowledge :found {{:op :search {config}}})))"
        ))
    };
    assert_eq!(
        find(":query \"refunds?\""),
        "[\"[Document: /a.txt]\\nRefunds take thirty days.\"]"
    );
    assert_eq!(
        find(":query \"email today\" :memory-tags [\"v*\"] :limit 1 :min-score 0.9"),
        "[\"[Memory: Facts]\\nprefers email today always\\nprefers email always\"]"
    );
    assert_eq!(find(":query \"refunds\" :project \"proj_2\""), "[]");
    assert_eq!(find(":query \"refunds\" :memory-ids [\"mem_1\"]"), "[]");
}

#[test]
fn wrong_steps_are_refused() {
    let project = project();
    let failed = |step: &str| format!("{:?}", project.run(&format!("{{:slug :it :flow '{step}}}")));
    for (step, code) in [
        (
            "(flow/step :knowledge :a {:op :write :memory \"mem_2\" :content \"x\"})",
            "E1274",
        ),
        (
            "(flow/step :knowledge :a {:op :search :query \"x\" :min-score (+ 1 1)})",
            "E1275",
        ),
        (
            "(flow/step :jq :a {:filter (str \".a\" \"[\") :value {}})",
            "E1284",
        ),
        (
            "(flow/step :jq :a {:filter \".missing\" :value {:a 1}})",
            "E1285",
        ),
    ] {
        assert!(failed(step).contains(code), "{step}: {}", failed(step));
    }
}

#[test]
fn a_filter_selects_from_values_and_texts() {
    let project = project();
    assert_eq!(
        project.eval("(:text (flow/step :jq :a {:json \"{\\\"a\\\": {\\\"b\\\": \\\"x\\\"}}\" :filter \".a.b\"}))"),
        "\"x\""
    );
    assert_eq!(
        project.eval("(let [r (flow/step :jq :a {:value {:items [{:n 1} {:n 2}]} :filter \".items[].n\"})] [(:value r) (:values r) (:text r)])"),
        "[1 [1 2] \"1\\n2\"]"
    );
    assert_eq!(
        project.eval("(:text (flow/step :jq :a {:json \"no JSON\"}))"),
        "\"no JSON\""
    );
}
