//! Resources and prompts of an MCP server over stdio, which is a shell script with fixed responses.

use std::fs;

use expect_test::{Expect, expect};

use crate::mcp::run;
use crate::project::Project;
use crate::server::{Server, events};

const SERVER: &str = r#"
reply() { printf '{"jsonrpc":"2.0","id":%s,%s}\n' "$id" "$1"; }
while IFS= read -r line; do
  id=${line#*\"id\":}; id=${id%%[,\}]*}
  echo "$line" >> asked.txt
  case $line in
    *'"server/discover"'*) reply '"error":{"code":-32601,"message":"Method not found"}';;
    *'"initialize"'*) reply '"result":{"protocolVersion":"2025-11-25","capabilities":{"resources":{},"prompts":{}},"serverInfo":{"name":"fake","version":"1"}}';;
    *'"resources/list"'*'"cursor":"2"'*) reply '"result":{"resources":[{"uri":"x://2","name":"two"}]}';;
    *'"resources/list"'*) reply '"result":{"resources":[{"uri":"x://1","name":"one","description":"First.","mimeType":"text/plain","size":5}],"nextCursor":"2"}';;
    *'"resources/read"'*'x://1'*) reply '"result":{"contents":[{"uri":"x://1","mimeType":"text/plain","text":"hello"},{"uri":"x://1/b","blob":"aGk="}]}';;
    *'"resources/read"'*) reply '"error":{"code":-32002,"message":"Resource not found"}';;
    *'"prompts/list"'*) reply '"result":{"prompts":[{"name":"review","description":"Reviews code.","arguments":[{"name":"language","required":true}]}]}';;
    *'"prompts/get"'*'"review"'*) reply '"result":{"description":"A review.","messages":[{"role":"user","content":{"type":"text","text":"Review this Clojure."}},{"role":"assistant","content":{"type":"text","text":"Which file?"}},{"role":"user","content":{"type":"resource","resource":{"uri":"x://1","text":"(+ 1 2)"}}}]}';;
    *'"prompts/get"'*) reply '"error":{"code":-32602,"message":"Unknown prompt"}';;
  esac
done
"#;

fn project(settings: &str) -> Project {
    let settings = format!(
        "{{:connections {{:fake {{:backend :mcp :command [\"sh\" \"server.sh\"]}} {settings}}}}}"
    );
    Project::with_files(&[("server.sh", SERVER), ("flowstone.edn", &settings)])
}

/// Performs an operation of the adapter `:f/all`.
fn check(operation: &str, expected: Expect) {
    let project = project("");
    let body = format!("(flow/step :mcp :q {{:adapter :f/all {operation}}})");
    expected.assert_eq(&run(&project, &body));
}

#[test]
fn resources_are_listed_over_all_pages() {
    check(
        ":op :list-resources",
        expect![[
            r#"{:resources [{:uri "x://1" :name "one" :description "First." :mime-type "text/plain" :size 5} {:uri "x://2" :name "two"}]}"#
        ]],
    );
}

#[test]
fn a_resource_is_text_or_a_data_url() {
    check(
        ":op :read-resource :uri \"x://1\"",
        expect![[
            r#"{:contents [{:uri "x://1" :mime-type "text/plain" :text "hello"} {:uri "x://1/b" :url "data:application/octet-stream;base64,aGk="}]}"#
        ]],
    );
}

#[test]
fn prompts_are_listed_with_their_arguments() {
    check(
        ":op :list-prompts",
        expect![[
            r#"{:prompts [{:name "review" :description "Reviews code." :arguments [{:name "language" :required? true}]}]}"#
        ]],
    );
}

#[test]
fn what_the_server_does_not_have_is_an_error() {
    check(
        ":op :read-resource :uri \"x://9\"",
        expect![[r#"
            E1312 `:fake` did not send the resource `x://9`: Resource not found (code -32002)
              `{:op :list-resources}` and `{:op :list-prompts}` list what the server has"#]],
    );
    check(
        ":op :get-prompt :prompt \"sing\"",
        expect![[r#"
            E1312 `:fake` did not send the prompt `sing`: Unknown prompt (code -32602)
              `{:op :list-resources}` and `{:op :list-prompts}` list what the server has"#]],
    );
}

#[test]
fn a_server_without_resources_is_reported() {
    let project = project("");
    let first = r#"*'"resources/list"'*'"cursor":"2"'*)"#;
    let refused =
        r#"*'"resources/list"'*) reply '"error":{"code":-32601,"message":"Method not found"}';;"#;
    let other = SERVER.replace(first, &format!("{refused}\n    {first}"));
    project.write("server.sh", other.as_bytes());
    let found = run(
        &project,
        "(try (flow/step :mcp :q {:adapter :f/all :op :list-resources}) (catch :default e (select-keys (ex-data e) [:kind :code])))",
    );
    assert_eq!(found, "{:kind :unsupported :code \"E1312\"}");
}

#[test]
fn the_messages_of_a_prompt_are_a_conversation_with_a_model() {
    let answer = r#"{"id":"r1","model":"m","choices":[{"delta":{"content":"Fine."},"finish_reason":"stop"}]}"#;
    let model = Server::start(vec![events(&[answer, "[DONE]"])]);
    let project = project(&format!(
        ":ai {{:backend :openai :base-url \"{}/v1\" :model \"m\" :auth {{:type :none}}}}",
        model.url
    ));
    let found = run(
        &project,
        "(let [prompt (flow/step :mcp :q {:op :get-prompt :adapter :f/all :prompt \"review\" :arguments {:language \"clojure\"}})]
           (:content (flow/step :llm :ask {:connection :ai :messages (:messages prompt)})))",
    );
    assert_eq!(found, "\"Fine.\"");
    assert_eq!(
        model.body(0)["messages"],
        serde_json::json!([
            {"role": "user", "content": "Review this Clojure."},
            {"role": "assistant", "content": "Which file?"},
            {"role": "user", "content": "x://1:\n(+ 1 2)"},
        ])
    );
    let asked = fs::read_to_string(project.path().join("asked.txt")).expect("requests");
    let line = asked.lines().find(|it| it.contains("prompts/get"));
    let line = line.expect("a request for the prompt");
    assert!(
        line.contains("\"arguments\":{\"language\":\"clojure\"}"),
        "{line}"
    );
}
