//! Chat completions in the dialect of each provider: differences in requests, and in the responses that are understood.

use expect_test::{Expect, expect};
use flowstone_steps::llm::Llm;
use flowstone_steps::llm::call::{Call, Message, Opaque, Options, Output, Role, ToolChoice};
use serde_json::{Value as Json, json};

use crate::server::{self, Server};
use crate::wire::{answering, ask, body, calling, events, image, reply, stream, tool, whole};
use crate::world::{World, wait};

/// All providers that use the format.
const ALL: &[&str] = &[
    "azure-openai",
    "deepseek",
    "fireworks",
    "groq",
    "llama-cpp",
    "lm-studio",
    "mistral",
    "ollama",
    "openai-chat",
    "openai-compatible",
    "openrouter",
    "together",
    "vllm",
];

/// Returns a call with every option that may differ.
fn full() -> Call {
    let mut call = ask("m", "Answer in JSON.");
    call.messages.extend([
        calling(&[("call_abc", "find", "{}")]),
        answering("call_abc", Some("find"), "1"),
    ]);
    call.messages[1].opaque = Some(Opaque {
        family: "chat-completions-compatible".into(),
        blocks: json!({"reasoning_content": "hm", "reasoning_details": [{"type": "reasoning.text"}]}),
    });
    call.tools = vec![tool("find")];
    call.tool_choice = ToolChoice::Required;
    call.options = Options {
        max_tokens: Some(8),
        seed: Some(1),
        reasoning_effort: Some("low".into()),
        ..Options::default()
    };
    call.output = Output::Schema {
        name: "answer".into(),
        schema: json!({"type": "object"}),
        strict: true,
    };
    call
}

/// The differences between the bodies for the providers.
#[test]
fn requests_differ_by_provider() {
    let mut shown = String::new();
    for provider in ALL {
        let sent = body(provider, &full());
        let messages = sent["messages"].as_array().unwrap();
        let said = messages
            .iter()
            .find(|it| it["role"] == "assistant")
            .unwrap();
        let mut facts = Vec::new();
        let common = ["model", "messages", "tools", "stream"];
        for (key, value) in sent.as_object().unwrap() {
            match key.as_str() {
                key if common.contains(&key) => {}
                "response_format" => facts.push(format!("form {}", value["type"])),
                key => facts.push(format!("{key} {value}")),
            }
        }
        if messages[0]["role"] == "system" {
            facts.push("told the schema".into());
        }
        let id = said["tool_calls"][0]["id"].as_str().unwrap();
        assert_eq!(messages.last().unwrap()["tool_call_id"], id);
        if id != "call_abc" {
            facts.push(format!("id {id}"));
        }
        for key in ["reasoning_content", "reasoning_details"] {
            if said.get(key).is_some() {
                facts.push(format!("{key} back"));
            }
        }
        shown.push_str(&format!("{provider}: {}\n", facts.join(", ")));
    }
    expect![[r#"
        azure-openai: tool_choice "required", max_completion_tokens 8, seed 1, reasoning_effort "low", form "json_schema", stream_options {"include_usage":true}
        deepseek: tool_choice "required", max_tokens 8, seed 1, reasoning_effort "low", form "json_object", stream_options {"include_usage":true}, told the schema, reasoning_content back
        fireworks: tool_choice "required", max_tokens 8, seed 1, reasoning_effort "low", form "json_schema", stream_options {"include_usage":true}, reasoning_content back
        groq: tool_choice "required", max_completion_tokens 8, seed 1, reasoning_effort "low", reasoning_format "parsed", form "json_schema", stream_options {"include_usage":true}
        llama-cpp: tool_choice "required", max_tokens 8, seed 1, reasoning_effort "low", form "json_schema", stream_options {"include_usage":true}
        lm-studio: tool_choice "required", max_tokens 8, seed 1, reasoning_effort "low", form "json_schema", stream_options {"include_usage":true}
        mistral: tool_choice "any", max_tokens 8, random_seed 1, reasoning_effort "low", form "json_schema", id p1RjyMGh8
        ollama: tool_choice "required", max_tokens 8, seed 1, reasoning_effort "low", form "json_schema", stream_options {"include_usage":true}
        openai-chat: tool_choice "required", max_completion_tokens 8, seed 1, reasoning_effort "low", form "json_schema", stream_options {"include_usage":true}
        openai-compatible: tool_choice "required", max_tokens 8, seed 1, reasoning_effort "low", form "json_schema", stream_options {"include_usage":true}
        openrouter: tool_choice "required", max_tokens 8, seed 1, reasoning {"effort":"low"}, form "json_schema", usage {"include":true}, reasoning_details back
        together: tool_choice "required", max_tokens 8, seed 1, reasoning_effort "low", form "json_schema", stream_options {"include_usage":true}
        vllm: tool_choice "required", max_tokens 8, seed 1, reasoning_effort "low", form "json_schema", stream_options {"include_usage":true}
    "#]].assert_eq(&shown);
}

#[test]
fn missing_capabilities_of_each_provider() {
    use flowstone_steps::llm::capability::Capability;
    let mut shown = String::new();
    for row in flowstone_steps::llm::PROVIDERS {
        let lacks = Capability::ALL.iter().filter(|it| !row.can(**it));
        let lacks: Vec<&str> = lacks.map(|it| it.name()).collect();
        shown.push_str(&format!("{}: {}\n", row.id, lacks.join(" ")));
    }
    expect![[r#"
        anthropic: frequency-penalty presence-penalty previous-response-id prompt-cache-key openai seed
        azure-openai: cache-system? previous-response-id openai
        bedrock: frequency-penalty image-urls presence-penalty previous-response-id prompt-cache-key openai seed
        deepseek: cache-system? previous-response-id prompt-cache-key reasoning-effort openai seed structured-output vision
        fireworks: cache-system? previous-response-id prompt-cache-key openai
        google: cache-system? previous-response-id prompt-cache-key openai
        google-ai: cache-system? previous-response-id prompt-cache-key openai
        groq: cache-system? frequency-penalty presence-penalty previous-response-id prompt-cache-key openai
        llama-cpp: cache-system? previous-response-id prompt-cache-key openai
        lm-studio: cache-system? previous-response-id prompt-cache-key openai
        mistral: cache-system? previous-response-id prompt-cache-key reasoning-effort openai
        ollama: cache-system? image-urls previous-response-id prompt-cache-key openai
        openai: 
        openai-chat: cache-system? previous-response-id openai
        openai-compatible: agentic-tool-loop cache-system? previous-response-id openai
        openrouter: previous-response-id openai
        scripted: 
        together: cache-system? previous-response-id prompt-cache-key openai
        vllm: cache-system? previous-response-id prompt-cache-key openai
    "#]].assert_eq(&shown);
}

#[test]
fn thoughts_are_sent_back_only_since_the_last_user_message() {
    let mut call = full();
    call.messages.push(Message::text(Role::User, "And now?"));
    let said = |call: &Call| body("deepseek", call)["messages"][2].clone();
    assert_eq!(said(&full())["reasoning_content"], "hm");
    assert_eq!(said(&call)["reasoning_content"], Json::Null);
    call.messages[1].opaque = Some(Opaque {
        family: "anthropic".into(),
        blocks: json!({"reasoning_content": "hm"}),
    });
    call.messages.pop();
    assert_eq!(said(&call)["reasoning_content"], Json::Null);
}

#[test]
fn call_ids_for_mistral_have_nine_letters() {
    let mut call = ask("m", "x");
    call.messages.push(calling(&[
        ("aB3dE6gH9", "find", "{}"),
        ("", "find", "{}"),
        ("call_1", "find", "{}"),
    ]));
    call.messages.push(answering("call_1", None, "1"));
    let sent = body("mistral", &call);
    let id = |at: usize| {
        sent["messages"][1]["tool_calls"][at]["id"]
            .as_str()
            .unwrap()
    };
    assert_eq!(id(0), "aB3dE6gH9");
    for at in 1..3 {
        assert!(id(at).len() == 9 && id(at).bytes().all(|it| it.is_ascii_alphanumeric()));
    }
    assert_eq!(sent["messages"][2]["tool_call_id"], id(2));
}

#[test]
fn odd_messages_can_be_sent() {
    let mut call = ask("m", "x");
    let mut picture = answering("c1", None, "seen");
    picture.content.push(image("data:image/png;base64,AAAA"));
    call.messages.extend([
        calling(&[("c1", "look", "{broken"), ("c2", "look", " ")]),
        picture,
        answering("c2", None, ""),
        Message::text(Role::Assistant, "Done."),
    ]);
    call.output = Output::Json;
    expect![[r#"[{"role":"system","content":"Answer with one JSON document and nothing else."},{"role":"user","content":"x"},{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"look","arguments":"{\"arguments\":\"{broken\"}"}},{"id":"c2","type":"function","function":{"name":"look","arguments":"{}"}}]},{"role":"tool","content":"seen","tool_call_id":"c1"},{"role":"tool","content":"","tool_call_id":"c2"},{"role":"user","content":[{"type":"text","text":"What the tools gave to be seen:"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}}]},{"role":"assistant","content":"Done."}]"#]].assert_eq(&body("openai-chat", &call)["messages"].to_string());
}

#[test]
fn the_system_prompt_may_be_cached() {
    let mut call = ask("anthropic/claude-4.5-sonnet", "x");
    call.messages
        .insert(0, Message::text(Role::System, "Long."));
    call.options.cache_system = true;
    expect![[r#"[{"role":"system","content":[{"type":"text","text":"Long.","cache_control":{"type":"ephemeral"}}]},{"role":"user","content":"x"}]"#]].assert_eq(&body("openrouter", &call)["messages"].to_string());
}

#[test]
fn extra_fields_are_merged_over_the_body() {
    let mut call = ask("m", "x");
    call.options.reasoning_effort = Some("low".into());
    call.extra = vec![
        ("reasoning".into(), json!({"exclude": true})),
        ("provider".into(), json!({"order": ["a"]})),
        ("models".into(), json!(["b"])),
        ("usage".into(), Json::Null),
    ];
    expect![[r#"{"model":"m","messages":[{"role":"user","content":"x"}],"reasoning":{"effort":"low","exclude":true},"stream":true,"models":["b"],"provider":{"order":["a"]}}"#]].assert_eq(&body("openrouter", &call).to_string());
}

#[track_caller]
fn reads(provider: &str, data: &[&str], expected: Expect) {
    expected.assert_eq(&stream(provider, &events(data)));
}

const END: &str = r#"{"choices":[{"delta":{},"finish_reason":"stop"}]}"#;

#[test]
fn openrouter() {
    let text = ": OPENROUTER PROCESSING\n\n: OPENROUTER PROCESSING\n\n\
        data: {\"id\":\"gen-1\",\"model\":\"a/b\",\"choices\":[{\"delta\":{\"content\":\"\",\"reasoning\":\"Hm\",\"reasoning_details\":[{\"type\":\"reasoning.text\",\"index\":0,\"text\":\"H\",\"signature\":null}]}}]}\n\n\
        : OPENROUTER PROCESSING\n\n\
        data: {\"id\":\"gen-1\",\"choices\":[{\"delta\":{\"content\":\"Hi\",\"reasoning_details\":[{\"type\":\"reasoning.text\",\"index\":0,\"text\":\"m\"},{\"type\":\"reasoning.text\",\"index\":0,\"signature\":\"s\"},{\"type\":\"reasoning.encrypted\",\"index\":1,\"data\":\"x\"}]},\"finish_reason\":\"stop\"}]}\n\n\
        data: {\"id\":\"gen-1\",\"choices\":[],\"usage\":{\"prompt_tokens\":5,\"completion_tokens\":3,\"total_tokens\":8,\"cost\":0.01,\"prompt_tokens_details\":{\"cached_tokens\":4,\"cache_write_tokens\":1}}}\n\n\
        data: [DONE]\n\n";
    expect![[r#"
        content: Hi
        reasoning: Hm
        stop of "gen-1" by "a/b"
        5 + 3 = 8, cached Some(4), kept Some(1), thought None
        chat-completions-compatible: {"reasoning_details":[{"type":"reasoning.text","index":0,"text":"Hm","signature":"s"},{"type":"reasoning.encrypted","index":1,"data":"x"}]}"#]].assert_eq(&stream("openrouter", text.as_bytes()));
    let said = reply("openrouter", text.as_bytes());
    let mut call = ask("m", "x");
    let mut message = Message::text(Role::Assistant, said.content);
    message.opaque = said.opaque;
    call.messages.push(message);
    expect![[r#"{"role":"assistant","content":"Hi","reasoning_details":[{"type":"reasoning.text","index":0,"text":"Hm","signature":"s"},{"type":"reasoning.encrypted","index":1,"data":"x"}]}"#]].assert_eq(&body("openrouter", &call)["messages"][1].to_string());
    assert_eq!(
        body("groq", &call)["messages"][1]
            .as_object()
            .unwrap()
            .len(),
        2
    );
    reads(
        "openrouter",
        &[
            r#"{"choices":[{"delta":{"content":"Hi"}}]}"#,
            r#"{"id":"gen","error":{"code":429,"message":"Rate limited upstream"},"choices":[{"delta":{"content":""},"finish_reason":"error"}]}"#,
        ],
        expect![
            "E0804 rate-limited: openrouter limits the rate of requests: Rate limited upstream (Later)"
        ],
    );
    reads(
        "openrouter",
        &[
            r#"{"choices":[{"delta":{},"finish_reason":"error","error":{"code":502,"message":"upstream"}}]}"#,
        ],
        expect!["E0805 unavailable: openrouter cannot answer now (502): upstream (Later)"],
    );
    reads(
        "openrouter",
        &[r#"{"choices":[{"delta":{},"finish_reason":"error"}]}"#],
        expect![
            "E0805 unavailable: openrouter cannot answer now (503): it ended the answer with `error` (Later)"
        ],
    );
}

#[test]
fn deepseek() {
    reads(
        "deepseek",
        &[
            r#"{"id":"d","model":"deepseek-chat","choices":[{"delta":{"role":"assistant","content":null,"reasoning_content":"Let me "}}]}"#,
            r#"{"choices":[{"delta":{"content":null,"reasoning_content":"see."}}],"usage":null}"#,
            r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"call_0","type":"function","function":{"name":"find","arguments":""}}]}}]}"#,
            r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{}"}}]}}]}"#,
            r#"{"choices":[{"delta":{"content":""},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":9,"completion_tokens":5,"total_tokens":14,"prompt_cache_hit_tokens":6,"prompt_cache_miss_tokens":3,"completion_tokens_details":{"reasoning_tokens":2}}}"#,
            "[DONE]",
        ],
        expect![[r#"
            reasoning: Let me see.
            call call_0: find {}
            tool_calls of "d" by "deepseek-chat"
            9 + 5 = 14, cached Some(6), kept None, thought Some(2)
            chat-completions-compatible: {"reasoning_content":"Let me see."}"#]],
    );
    reads(
        "deepseek",
        &[r#"{"choices":[{"delta":{},"finish_reason":"insufficient_system_resource"}]}"#],
        expect![
            "E0805 unavailable: deepseek cannot answer now (503): it ended the answer with `insufficient_system_resource` (Later)"
        ],
    );
}

#[test]
fn groq() {
    reads(
        "groq",
        &[
            r#"{"id":"g","model":"qwen","choices":[{"delta":{"role":"assistant","content":""}}],"x_groq":{"id":"req"}}"#,
            r#"{"choices":[{"delta":{"reasoning":"Hm."}}]}"#,
            r#"{"choices":[{"delta":{"content":"Hi"}}],"usage":null}"#,
            r#"{"choices":[{"delta":{},"finish_reason":"stop"}],"usage":null,"x_groq":{"id":"req","usage":{"prompt_tokens":2,"completion_tokens":1,"total_tokens":3}}}"#,
            "[DONE]",
        ],
        expect![[r#"
            content: Hi
            reasoning: Hm.
            stop of "g" by "qwen"
            2 + 1 = 3, cached None, kept None, thought None"#]],
    );
    reads(
        "groq",
        &[r#"{"x_groq":{"error":"over capacity"}}"#],
        expect!["E0805 unavailable: groq cannot answer now (500): over capacity (Later)"],
    );
}

#[test]
fn mistral() {
    reads(
        "mistral",
        &[
            r#"{"id":"m","model":"magistral","choices":[{"delta":{"role":"assistant","content":[{"type":"thinking","thinking":[{"type":"text","text":"Hm"}]}]}}]}"#,
            r#"{"choices":[{"delta":{"content":[{"type":"text","text":"H"},{"type":"reference","reference_ids":[1]}]}}]}"#,
            r#"{"choices":[{"delta":{"content":"i","tool_calls":[{"id":"D681PevKs","function":{"name":"find","arguments":"{\"n\": 1}"},"index":0},{"id":"aaaaaaaa1","function":{"name":"find","arguments":{"n":2}},"index":1}]},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":1,"completion_tokens":2,"total_tokens":3}}"#,
            "[DONE]",
        ],
        expect![[r#"
            content: Hi
            reasoning: Hm
            call D681PevKs: find {"n": 1}
            call aaaaaaaa1: find {"n":2}
            tool_calls of "m" by "magistral"
            1 + 2 = 3, cached None, kept None, thought None"#]],
    );
    reads(
        "mistral",
        &[r#"{"choices":[{"delta":{"content":"a"},"finish_reason":"model_length"}]}"#],
        expect![[r#"
            content: a
            length of "" by """#]],
    );
}

#[test]
fn azure() {
    reads(
        "azure-openai",
        &[
            r#"{"choices":[],"created":0,"id":"","model":"","object":"","prompt_filter_results":[{"prompt_index":0,"content_filter_results":{}}]}"#,
            r#"{"choices":[{"content_filter_results":{},"delta":{"content":"Hi"},"finish_reason":null,"index":0}],"id":"c1","model":"gpt-4o"}"#,
            r#"{"choices":[{"delta":{},"finish_reason":"content_filter"}],"id":"c1"}"#,
        ],
        expect![[r#"
            content: Hi
            content_filter of "c1" by "gpt-4o""#]],
    );
}

#[test]
fn tool_calls_are_understood_in_every_form() {
    let calls = |pieces: &[&str]| {
        let chunks: Vec<String> = pieces
            .iter()
            .map(|it| format!(r#"{{"id":"x","choices":[{{"delta":{{"tool_calls":{it}}}}}]}}"#))
            .collect();
        let mut data: Vec<&str> = chunks.iter().map(String::as_str).collect();
        data.push(END);
        stream("vllm", &events(&data)).replace('\n', " | ")
    };
    let mut shown = String::new();
    for (what, pieces) in [
        (
            "all have the same index",
            &[
                r#"[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}]"#,
                r#"[{"index":0,"id":"b","function":{"name":"g","arguments":"{}"}}]"#,
            ][..],
        ),
        (
            "the same index, and no ids",
            &[
                r#"[{"index":0,"function":{"name":"f","arguments":"{}"}},{"index":0,"function":{"name":"f","arguments":"{}"}}]"#,
            ],
        ),
        (
            "no index, no ids",
            &[
                r#"[{"function":{"name":"f","arguments":{"n":1}}},{"function":{"name":"g","arguments":{}}}]"#,
            ],
        ),
        (
            "no index, ids once",
            &[
                r#"[{"id":"a","function":{"name":"f","arguments":"{\"n\""}}]"#,
                r#"[{"function":{"arguments":":1}"}}]"#,
            ],
        ),
        (
            "no index, ids each time",
            &[
                r#"[{"id":"a","function":{"name":"f","arguments":"{\"n\""}}]"#,
                r#"[{"id":"a","function":{"arguments":":1}"}}]"#,
            ],
        ),
        (
            "an id and a name each time",
            &[
                r#"[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"n\""}}]"#,
                r#"[{"index":0,"id":"a","function":{"name":"f","arguments":":1}"}}]"#,
            ],
        ),
        (
            "another id each time",
            &[
                r#"[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"n\""}}]"#,
                r#"[{"index":0,"id":"b","function":{"arguments":":1}"}}]"#,
            ],
        ),
        (
            "empty ids and nulls",
            &[
                r#"[{"index":0,"id":"","type":null,"function":{"name":"f","arguments":null}}]"#,
                r#"[{"index":0,"id":null,"function":{"name":null,"arguments":"{}"}}]"#,
            ],
        ),
        (
            "the same id twice",
            &[
                r#"[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}},{"index":1,"id":"a","function":{"name":"g","arguments":"{}"}}]"#,
            ],
        ),
        (
            "turned about",
            &[
                r#"[{"index":1,"id":"b","function":{"name":"g"}}]"#,
                r#"[{"index":0,"id":"a","function":{"name":"f"}}]"#,
                r#"[{"index":1,"function":{"arguments":"{\"b\":1}"}},{"index":0,"function":{"arguments":"{}"}}]"#,
            ],
        ),
        (
            "one that is no list",
            &[r#"{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}"#],
        ),
        (
            "a name in pieces",
            &[
                r#"[{"index":0,"id":"a","function":{"name":"get_"}}]"#,
                r#"[{"index":0,"function":{"name":"it","arguments":"{}"}}]"#,
            ],
        ),
        (
            "no arguments",
            &[r#"[{"index":0,"id":"a","function":{"name":"f"}}]"#],
        ),
        ("nothing in it", &["[null,1,{}]"]),
    ] {
        shown.push_str(&format!("{what}: {}\n", calls(pieces)));
    }
    expect![[r#"
        all have the same index: call a: f {} | call b: g {} | tool_calls of "x" by ""
        the same index, and no ids: call made_zVLU1lFM2zV4ryvz: f {} | call made_h0Qt6E9mfe03iQMj: f {} | tool_calls of "x" by ""
        no index, no ids: call made_O5otw67ErvPVTITJ: f {"n":1} | call made_xohtdA12nNP4oWHQ: g {} | tool_calls of "x" by ""
        no index, ids once: call a: f {"n":1} | tool_calls of "x" by ""
        no index, ids each time: call a: f {"n":1} | tool_calls of "x" by ""
        an id and a name each time: call a: f {"n":1} | tool_calls of "x" by ""
        another id each time: call b: f {"n":1} | tool_calls of "x" by ""
        empty ids and nulls: call made_zVLU1lFM2zV4ryvz: f {} | tool_calls of "x" by ""
        the same id twice: call a: f {} | call made_xohtdA12nNP4oWHQ: g {} | tool_calls of "x" by ""
        turned about: call b: g {"b":1} | call a: f {} | tool_calls of "x" by ""
        one that is no list: call a: f {} | tool_calls of "x" by ""
        a name in pieces: call a: get_it {} | tool_calls of "x" by ""
        no arguments: call a: f  | tool_calls of "x" by ""
        nothing in it: stop of "x" by ""
    "#]].assert_eq(&shown);
}

#[test]
fn streams_of_imitating_servers_are_understood() {
    // Without a finish reason or a last chunk, but with the end marker.
    reads(
        "llama-cpp",
        &[r#"{"choices":[{"delta":{"content":"Hi"}}]}"#, "[DONE]"],
        expect![[r#"
            content: Hi
             of "" by """#]],
    );
    // A complete response, but sent as an event.
    reads(
        "lm-studio",
        &[
            r#"{"choices":[{"message":{"content":"Hi"},"finish_reason":"eos"}],"usage":{"prompt_tokens":1.0,"completion_tokens":2.0}}"#,
        ],
        expect![[r#"
            content: Hi
            stop of "" by ""
            1 + 2 = 3, cached None, kept None, thought None"#]],
    );
    // A finish reason that contradicts the calls.
    reads(
        "ollama",
        &[
            r#"{"id":"o","choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}]},"finish_reason":"stop"}]}"#,
        ],
        expect![[r#"
            call a: f {}
            tool_calls of "o" by """#]],
    );
    reads(
        "together",
        &[r#"{"choices":[{"delta":{"content":"Hi"}}]}"#],
        expect!["E0807 cut-off: the answer of together broke off after 2 characters (Later)"],
    );
}

#[test]
fn invalid_responses_are_errors() {
    for data in [
        "{",
        "null",
        "[]",
        "1",
        "{}",
        r#"{"choices":{}}"#,
        r#"{"choices":[null]}"#,
        r#"{"choices":[{"delta":1}]}"#,
        r#"{"choices":[{"delta":{"content":[1,{"thinking":1},{"text":{}}],"tool_calls":"x","reasoning_details":[1,{}]}}]}"#,
        r#"{"choices":[{"finish_reason":1,"delta":{"tool_calls":[{"index":-1,"id":1,"function":1}]}}]}"#,
        r#"{"usage":{"prompt_tokens":1e300,"completion_tokens":-5}}"#,
        r#"{"error":"x"}"#,
        r#"{"error":{}}"#,
        r#"{"x_groq":1}"#,
    ] {
        assert!(
            stream("openai-compatible", &events(&[data])).starts_with("E08"),
            "{data}"
        );
    }
    for data in [
        "",
        "{",
        "[]",
        "{}",
        r#"{"choices":[]}"#,
        r#"{"error":{"message":"x"}}"#,
        r#"{"choices":[{"error":{"code":500}}]}"#,
    ] {
        assert!(
            whole("openai-compatible", data).starts_with("E08"),
            "{data}"
        );
    }
}

/// Performs a call on a server with this response, and returns the outcome and the request.
async fn performs(answer: server::Say, settings: &str, config: &str) -> (String, String) {
    let server = Server::start(vec![answer]);
    let world = World::new()
        .secret("ai-key", "k-of-azure")
        .settings(&settings.replace("URL", &server.url));
    let shown = world.run(&Llm, config).await;
    let request = server.requests().first().cloned();
    (server.clean(&shown), request.unwrap_or_default())
}

const SAID: &str =
    r#"{"model":"m","choices":[{"message":{"content":"Hi"},"finish_reason":"stop"}],"usage":null}"#;

#[test]
fn a_complete_response_instead_of_a_stream_is_read() {
    wait(async {
        for kind in [
            "content-type: application/json",
            "content-type: text/plain",
            "x: y",
        ] {
            let answer = server::reply("200 OK", &[kind], SAID);
            let settings =
                "{:connections {:ai {:backend :vllm :base-url \"URL/v1\" :model \"m\"}}}";
            let (shown, _) = performs(answer, settings, "{:connection :ai :prompt \"x\"}").await;
            assert!(shown.contains(":content \"Hi\" :usage"), "{shown}");
        }
    });
}

#[test]
fn azure_addresses() {
    let mut shown = String::new();
    for (base, config) in [
        ("URL", ":deployment \"d/1\""),
        ("URL/", ":deployment \"d\" :api-version \"2025-01-01\""),
        ("URL", ""),
        ("URL/openai/v1/", ":api-version \"preview\""),
        ("URL/openai/deployments/d", ":api-version \"2025-01-01\""),
    ] {
        let settings = format!(
            "{{:connections {{:ai {{:backend :azure-openai :base-url \"{base}\" :model \"m\" :auth {{:type :api-key :secret-ref :ai-key}}}}}}}}"
        );
        let config = format!("{{:connection :ai :prompt \"x\" {config}}}");
        let (_, request) = wait(performs(server::json(SAID), &settings, &config));
        shown.push_str(&format!("{}\n", request.lines().next().unwrap_or_default()));
        assert!(request.contains("\napi-key: k-of-azure\n"), "{request}");
    }
    expect![[r#"
        POST /openai/deployments/d%2F1/chat/completions?api-version=2024-10-21 HTTP/1.1
        POST /openai/deployments/d/chat/completions?api-version=2025-01-01 HTTP/1.1
        POST /openai/v1/chat/completions HTTP/1.1
        POST /openai/v1/chat/completions?api-version=preview HTTP/1.1
        POST /openai/deployments/d/chat/completions?api-version=2025-01-01 HTTP/1.1
    "#]]
    .assert_eq(&shown);
    // A token of the directory is sent as a bearer token.
    let settings = "{:connections {:ai {:backend :azure-openai :base-url \"URL\" :model \"m\" :auth {:type :bearer :secret-ref :ai-key}}}}";
    let (_, request) = wait(performs(
        server::json(SAID),
        settings,
        "{:connection :ai :prompt \"x\"}",
    ));
    assert!(
        request.contains("\nauthorization: Bearer k-of-azure\n") && !request.contains("api-key:"),
        "{request}"
    );
}

#[test]
fn capabilities_that_a_flow_declares() {
    let asks = |capabilities: &str, config: &str| {
        wait(async {
            let server = Server::start(vec![server::json(SAID)]);
            let world = World::new().providers(&format!("[{{:id :mine :family :chat-completions-compatible :base-url \"{}\" :model \"m\" {capabilities}}}]", server.url));
            let shown = world.run(&Llm, config).await;
            match server.requests().is_empty() {
                true => shown,
                false => server.body(0).to_string(),
            }
        })
    };
    let mut shown = String::new();
    for capabilities in [
        "",
        ":capabilities #{}",
        ":capabilities #{:streaming}",
        ":capabilities #{:structured-output :streaming :vision :tool-calling :agentic-tool-loop}",
        ":capabilities #{:strctured-output}",
        ":capabilities 1",
    ] {
        let sent = asks(
            capabilities,
            "{:provider :mine :prompt \"x\" :output {:format :json :schema [:map]}}",
        );
        shown.push_str(&format!("{capabilities}: {sent}\n"));
    }
    expect![[r#"
        : {"model":"m","messages":[{"role":"user","content":"x"}],"response_format":{"type":"json_schema","json_schema":{"name":"answer","schema":{"type":"object"},"strict":false}},"stream":true,"stream_options":{"include_usage":true}}
        :capabilities #{}: {"model":"m","messages":[{"role":"system","content":"Answer with one JSON document and nothing else. It must satisfy this JSON Schema:\n{\"type\":\"object\"}"},{"role":"user","content":"x"}],"response_format":{"type":"json_object"},"stream":false}
        :capabilities #{:streaming}: {"model":"m","messages":[{"role":"system","content":"Answer with one JSON document and nothing else. It must satisfy this JSON Schema:\n{\"type\":\"object\"}"},{"role":"user","content":"x"}],"response_format":{"type":"json_object"},"stream":true,"stream_options":{"include_usage":true}}
        :capabilities #{:structured-output :streaming :vision :tool-calling :agentic-tool-loop}: {"model":"m","messages":[{"role":"user","content":"x"}],"response_format":{"type":"json_schema","json_schema":{"name":"answer","schema":{"type":"object"},"strict":false}},"stream":true,"stream_options":{"include_usage":true}}
        :capabilities #{:strctured-output}: E0810 bad-config: `:llm-providers :mine :capabilities` has the unknown capability `:strctured-output`
          hint: there are `:agentic-tool-loop` `:streaming` `:structured-output` `:tool-calling` `:vision`
        :capabilities 1: E0810 bad-config: `:llm-providers :mine :capabilities` takes a set of names
          hint: there are `:agentic-tool-loop` `:streaming` `:structured-output` `:tool-calling` `:vision`
    "#]].assert_eq(&shown);
    expect![[r#"
        E0810 bad-config: `:llm-providers :mine` has the unknown family `:chatty`
          hint: there are `:anthropic` `:bedrock` `:chat-completions-compatible` `:google` `:openai`"#]].assert_eq(&wait(async {
        let world = World::new().providers("[{:id :mine :family :chatty :base-url \"http://x\"}]");
        world.run(&Llm, "{:provider :mine :prompt \"x\"}").await
    }));
}
