//! Tools that providers run themselves, checked on the bytes that reached the server and on its answers.

use serde_json::{Value as Json, json};

use super::llm::{answers, over};
use crate::server::{Say, events};

const ANTHROPIC: &str =
    "{:backend :anthropic :base-url \"URL\" :model \"claude-sonnet-4-5\" :auth {:type :none}}";
const OPENAI: &str =
    "{:backend :openai :family :openai :base-url \"URL\" :model \"gpt-5.4\" :auth {:type :none}}";
const GOOGLE: &str =
    "{:backend :google :base-url \"URL\" :model \"gemini-3-flash\" :auth {:type :none}}";
const OWN_TOOL: &str = ":tools [{:name \"add\" :description \"Adds.\"}]";

/// Returns the events of an answer, one for each value.
fn said(values: &[Json]) -> Say {
    let texts: Vec<String> = values.iter().map(Json::to_string).collect();
    events(&texts.iter().map(String::as_str).collect::<Vec<_>>())
}

fn anthropic() -> Say {
    said(&[
        json!({"type": "message_start", "message": {"id": "m1", "model": "claude-sonnet-4-5", "usage": {"input_tokens": 9, "output_tokens": 1}}}),
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {}}}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": "{\"query\": \"clojure\"}"}}),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "content_block_start", "index": 1, "content_block": {"type": "web_search_tool_result", "tool_use_id": "s1", "content": [{"type": "web_search_result", "url": "https://clojure.org", "title": "Clojure", "encrypted_content": "E1"}]}}),
        json!({"type": "content_block_stop", "index": 1}),
        json!({"type": "content_block_start", "index": 2, "content_block": {"type": "text", "text": ""}}),
        json!({"type": "content_block_delta", "index": 2, "delta": {"type": "text_delta", "text": "A Lisp."}}),
        json!({"type": "content_block_delta", "index": 2, "delta": {"type": "citations_delta", "citation": {"type": "web_search_result_location", "url": "https://clojure.org", "title": "Clojure", "cited_text": "a Lisp", "encrypted_index": "I1"}}}),
        json!({"type": "content_block_stop", "index": 2}),
        json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 5}}),
        json!({"type": "message_stop"}),
    ])
}

/// Returns the body of a call with these options.
fn sent_to(connection: &str, config: &str) -> Json {
    over(
        connection,
        vec![answers("Hi")],
        &format!("{{:connection :ai :prompt \"x\" {config}}}"),
    )
    .body()
}

#[test]
fn tools_of_anthropic_are_sent_beside_those_of_the_step() {
    let config = format!(
        "{OWN_TOOL} :provider-tools [{{:type :web-search :max-uses 3 :allowed-domains [\"clojure.org\"]}} :code-execution]"
    );
    let called = over(
        ANTHROPIC,
        vec![anthropic()],
        &format!("{{:connection :ai :prompt \"x\" {config}}}"),
    );
    let tools = &called.body()["tools"];
    assert_eq!(tools[0]["name"], "add");
    assert_eq!(
        tools[1],
        json!({"type": "web_search_20250305", "name": "web_search", "max_uses": 3, "allowed_domains": ["clojure.org"]})
    );
    assert_eq!(
        tools[2],
        json!({"type": "code_execution_20250825", "name": "code_execution"})
    );
    let head = called.head();
    assert!(
        head.contains("\nanthropic-beta: code-execution-2025-08-25"),
        "{head}"
    );
    let plain = over(
        ANTHROPIC,
        vec![anthropic()],
        "{:connection :ai :prompt \"x\" :provider-tools [:web-search]}",
    );
    assert!(!plain.head().contains("anthropic-beta"), "{}", plain.head());
}

#[test]
fn results_and_citations_of_anthropic_stay_in_the_conversation() {
    let turn = ":provider-tools [:web-search]";
    let called = over(
        ANTHROPIC,
        vec![anthropic()],
        &format!("{{:connection :ai :prompt \"x\" {turn}}}"),
    );
    let shown = &called.shown;
    assert!(
        shown.contains(
            ":citations [{:url \"https://clojure.org\" :title \"Clojure\" :text \"a Lisp\"}]"
        ),
        "{shown}"
    );
    let at = shown.find(":opaque ").expect("opaque blocks") + ":opaque ".len();
    let end = shown[at..].find("]\"}").expect("the end of the blocks") + "]\"}".len();
    let opaque = &shown[at..at + end];
    let messages = format!(
        "[{{:role :user :content \"x\"}} {{:role :assistant :content \"A Lisp.\" :opaque {opaque}}} {{:role :user :content \"More\"}}]"
    );
    let next = over(
        ANTHROPIC,
        vec![anthropic()],
        &format!("{{:connection :ai :messages {messages} {turn}}}"),
    );
    let blocks = &next.body()["messages"][1]["content"];
    assert_eq!(blocks[0]["input"], json!({"query": "clojure"}));
    assert_eq!(blocks[1]["content"][0]["encrypted_content"], "E1");
    assert_eq!(blocks[2]["text"], "A Lisp.");
    assert_eq!(blocks[2]["citations"][0]["encrypted_index"], "I1");
}

#[test]
fn tools_of_openai_are_sent_and_its_sources_returned() {
    let output = json!([
        {"type": "web_search_call", "id": "ws_1", "status": "completed"},
        {"type": "message", "id": "msg_1", "role": "assistant", "content": [{"type": "output_text", "text": "A Lisp.",
            "annotations": [{"type": "url_citation", "url": "https://clojure.org", "title": "Clojure", "start_index": 0, "end_index": 6}]}]},
    ]);
    let say = said(&[
        json!({"type": "response.completed", "response": {"id": "r1", "status": "completed", "model": "gpt-5.4", "output": output,
        "usage": {"input_tokens": 9, "output_tokens": 5}}}),
    ]);
    let config = format!(
        "{{:connection :ai :prompt \"x\" {OWN_TOOL} :provider-tools [{{:type :web-search :allowed-domains [\"a.org\"]}} :code-execution]}}"
    );
    let called = over(OPENAI, vec![say], &config);
    let tools = &called.body()["tools"];
    assert_eq!(tools[0]["name"], "add");
    assert_eq!(
        tools[1],
        json!({"type": "web_search", "filters": {"allowed_domains": ["a.org"]}})
    );
    assert_eq!(
        tools[2],
        json!({"type": "code_interpreter", "container": {"type": "auto"}})
    );
    assert!(
        called
            .shown
            .contains(":citations [{:url \"https://clojure.org\" :title \"Clojure\"}]"),
        "{}",
        called.shown
    );
    assert!(called.shown.contains("web_search_call"), "{}", called.shown);
}

#[test]
fn tools_of_google_are_sent_and_its_steps_kept() {
    let say = said(
        &[json!({"responseId": "r1", "modelVersion": "gemini-3-flash",
        "candidates": [{"content": {"role": "model", "parts": [
            {"executableCode": {"language": "PYTHON", "code": "print(4)"}},
            {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "4"}},
            {"text": "Four."}]},
            "groundingMetadata": {"groundingChunks": [{"web": {"uri": "https://clojure.org", "title": "Clojure"}}]},
            "finishReason": "STOP"}],
        "usageMetadata": {"promptTokenCount": 9, "candidatesTokenCount": 5}})],
    );
    let config = format!(
        "{{:connection :ai :prompt \"x\" {OWN_TOOL} :provider-tools [:web-search :code-execution :web-fetch]}}"
    );
    let called = over(GOOGLE, vec![say], &config);
    let body = called.body();
    assert_eq!(body["tools"][0]["functionDeclarations"][0]["name"], "add");
    assert_eq!(body["tools"][1], json!({"googleSearch": {}}));
    assert_eq!(body["tools"][2], json!({"codeExecution": {}}));
    assert_eq!(body["tools"][3], json!({"urlContext": {}}));
    assert_eq!(
        body["toolConfig"],
        json!({"includeServerSideToolInvocations": true})
    );
    assert!(
        called
            .shown
            .contains(":citations [{:url \"https://clojure.org\" :title \"Clojure\"}]"),
        "{}",
        called.shown
    );
    assert!(
        called.shown.contains("codeExecutionResult"),
        "{}",
        called.shown
    );
    let alone = sent_to(GOOGLE, ":provider-tools [:web-search]");
    assert_eq!(alone["tools"], json!([{"googleSearch": {}}]));
    assert!(alone.get("toolConfig").is_none(), "{alone}");
}

#[test]
fn a_tool_that_the_provider_lacks_is_refused() {
    let chat = "{:backend :openai-compatible :base-url \"URL\" :model \"m\" :capabilities #{:tool-calling}}";
    for (connection, tools, start) in [
        (
            chat,
            "[:web-search]",
            "E1311 bad-config: `:openai-compatible` has no tool `:web-search`",
        ),
        (
            OPENAI,
            "[:web-fetch]",
            "E1311 bad-config: `:openai` has no tool `:web-fetch`",
        ),
        (
            OPENAI,
            "[{:type :web-search :max-uses 2}]",
            "E1311 bad-config: the tool `:web-search` of `:openai` does not take `:max-uses`",
        ),
        (
            ANTHROPIC,
            "[:websearch]",
            "E1311 bad-config: there is no provider tool `:websearch`",
        ),
        (
            ANTHROPIC,
            "[:web-search :web-search]",
            "E1311 bad-config: `:provider-tools` names `:web-search` twice",
        ),
    ] {
        let config = format!("{{:connection :ai :prompt \"x\" :provider-tools {tools}}}");
        over(connection, vec![answers("Hi")], &config).refused(start);
    }
    let older = GOOGLE.replace("gemini-3", "gemini-2.5");
    let config =
        format!("{{:connection :ai :prompt \"x\" {OWN_TOOL} :provider-tools [:web-search]}}");
    over(&older, vec![answers("Hi")], &config).refused(
        "E0809 bad-config: `gemini-2.5-flash` of `:google` does not accept `:provider-tools`",
    );
}

#[test]
fn cache_marks_move_with_a_conversation_without_tools() {
    let messages = ":messages [{:role :user :content \"a\"} {:role :assistant :content \"b\"} {:role :user :content \"c\"} {:role :assistant :content \"d\"} {:role :user :content \"e\"}]";
    let config = format!(
        "{{:connection :ai :system \"S\" :cache-system? true {messages} :provider-tools [:web-search]}}"
    );
    let body = over(ANTHROPIC, vec![anthropic()], &config).body();
    let mark = json!({"type": "ephemeral"});
    assert_eq!(body["messages"][4]["content"][0]["cache_control"], mark);
    assert_eq!(body["messages"][2]["content"][0]["cache_control"], mark);
    assert!(
        body["messages"][0]["content"][0]
            .get("cache_control")
            .is_none(),
        "{body}"
    );
    // Providers accept four marks at most.
    assert_eq!(
        body.to_string().matches("cache_control").count(),
        4,
        "{body}"
    );
    let config = format!("{{:connection :ai :system \"S\" :cache-system? true {messages}}}");
    let body = over(ANTHROPIC, vec![anthropic()], &config).body();
    assert_eq!(
        body.to_string().matches("cache_control").count(),
        3,
        "{body}"
    );
}
