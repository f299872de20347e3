//! OpenAI's Responses format: bodies, streams and errors.

use expect_test::{Expect, expect};
use flowstone_steps::llm::call::{Call, Message, Options, Output, Part, Role, ToolChoice};
use serde_json::{Value as Json, json};

use crate::wire::{
    address, answering, ask, body, calling, events, image, pretty, reply, row, stream, tool, whole,
};

const WHO: &str = "openai";

const START: &str = r#"{"type":"response.created","response":{"id":"resp_1","model":"gpt-5.4-2026-03-05","status":"in_progress","output":[]}}"#;

const TEXT: &[&str] = &[
    START,
    r#"{"type":"response.in_progress","response":{"id":"resp_1"}}"#,
    r#"{"type":"response.output_item.added","output_index":0,"item":{"type":"message","id":"msg_1","role":"assistant","content":[]}}"#,
    r#"{"type":"response.content_part.added","output_index":0,"content_index":0,"part":{"type":"output_text","text":""}}"#,
    r#"{"type":"response.output_text.delta","item_id":"msg_1","output_index":0,"content_index":0,"delta":"Grüß"}"#,
    r#"{"type":"response.output_text.delta","item_id":"msg_1","output_index":0,"content_index":0,"delta":" Gott"}"#,
    r#"{"type":"response.output_text.done","item_id":"msg_1","output_index":0,"content_index":0,"text":"Grüß Gott"}"#,
    r#"{"type":"response.output_item.done","output_index":0,"item":{"type":"message","id":"msg_1","role":"assistant","content":[{"type":"output_text","text":"Grüß Gott","annotations":[]}]}}"#,
    r#"{"type":"response.completed","response":{"id":"resp_1","model":"gpt-5.4-2026-03-05","status":"completed","output":[{"type":"message","id":"msg_1","role":"assistant","content":[{"type":"output_text","text":"Grüß Gott","annotations":[]}]}],"usage":{"input_tokens":36,"input_tokens_details":{"cached_tokens":32},"output_tokens":87,"output_tokens_details":{"reasoning_tokens":64},"total_tokens":123}}}"#,
];

/// Thoughts, then two calls with interleaved pieces. The last event holds no items.
const CALLS: &[&str] = &[
    START,
    r#"{"type":"response.output_item.added","output_index":0,"item":{"type":"reasoning","id":"rs_1","summary":[]}}"#,
    r#"{"type":"response.reasoning_summary_part.added","output_index":0,"summary_index":0}"#,
    r#"{"type":"response.reasoning_summary_text.delta","output_index":0,"summary_index":0,"delta":"Two "}"#,
    r#"{"type":"response.reasoning_summary_text.delta","output_index":0,"summary_index":0,"delta":"calls."}"#,
    r#"{"type":"response.reasoning_summary_part.added","output_index":0,"summary_index":1}"#,
    r#"{"type":"response.reasoning_summary_text.delta","output_index":0,"summary_index":1,"delta":"Yes."}"#,
    r#"{"type":"response.output_item.done","output_index":0,"item":{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"Two calls."},{"type":"summary_text","text":"Yes."}],"encrypted_content":"gAAA"}}"#,
    r#"{"type":"response.output_item.added","output_index":1,"item":{"type":"message","id":"msg_1","role":"assistant","phase":"commentary","content":[]}}"#,
    r#"{"type":"response.output_text.delta","output_index":1,"delta":"Äh."}"#,
    r#"{"type":"response.output_item.added","output_index":3,"item":{"type":"function_call","id":"fc_2","call_id":"call_2","name":"count","arguments":""}}"#,
    r#"{"type":"response.output_item.added","output_index":2,"item":{"type":"function_call","id":"fc_1","call_id":"call_1","name":"find","arguments":""}}"#,
    r#"{"type":"response.function_call_arguments.delta","output_index":2,"delta":"{\"n\""}"#,
    r#"{"type":"response.function_call_arguments.delta","output_index":3,"delta":"{}"}"#,
    r#"{"type":"response.function_call_arguments.delta","output_index":2,"delta":":1}"}"#,
    r#"{"type":"response.completed","response":{"id":"resp_1","status":"completed","output":[],"usage":{"input_tokens":5,"output_tokens":9}}}"#,
];

#[track_caller]
fn sends(call: &Call, expected: Expect) {
    expected.assert_eq(&pretty(&body(WHO, call)));
}

#[track_caller]
fn reads(data: &[&str], expected: Expect) {
    expected.assert_eq(&stream(WHO, &events(data)));
}

fn ends(response: &Json) -> String {
    json!({"type": "response.completed", "response": response}).to_string()
}

#[test]
fn addresses() {
    assert_eq!(address(WHO, "https://a/v1/", "m"), "https://a/v1/responses");
    assert_eq!(
        address("openai-chat", "https://a/v1", "m"),
        "https://a/v1/chat/completions"
    );
}

#[test]
fn a_call_with_everything() {
    let mut call = ask("gpt-5.4", "What is this?");
    call.messages
        .insert(0, Message::text(Role::System, "Be brief."));
    call.messages[1]
        .content
        .push(image("data:image/png;base64,AAAA"));
    call.messages[1].content.push(Part::Image {
        url: "https://x/y.webp".into(),
        detail: Some("low".into()),
    });
    call.tools = vec![tool("find")];
    call.tool_choice = ToolChoice::Required;
    call.options = Options {
        temperature: Some(1.0),
        top_p: Some(0.9),
        max_tokens: Some(100),
        presence_penalty: Some(0.0),
        frequency_penalty: Some(0.1),
        reasoning_effort: Some("medium".into()),
        prompt_cache_key: Some("k".into()),
        previous_response_id: Some("resp_0".into()),
        cache_system: true,
        ..Options::default()
    };
    call.output = Output::Schema {
        name: "answer".into(),
        schema: json!({"type": "object"}),
        strict: true,
    };
    call.extra = vec![
        (
            "responses".into(),
            json!({"store": false, "reasoning": {"summary": null}, "text": {"verbosity": "low"}}),
        ),
        ("user".into(), json!("u")),
    ];
    sends(
        &call,
        expect![[r#"
        {
          "model": "gpt-5.4",
          "instructions": "Be brief.",
          "input": [
            {
              "role": "user",
              "content": [
                {
                  "type": "input_text",
                  "text": "What is this?"
                },
                {
                  "type": "input_image",
                  "image_url": "data:image/png;base64,AAAA"
                },
                {
                  "type": "input_image",
                  "image_url": "https://x/y.webp",
                  "detail": "low"
                }
              ]
            }
          ],
          "tools": [
            {
              "type": "function",
              "name": "find",
              "description": "It can find.",
              "parameters": {
                "type": "object",
                "properties": {
                  "n": {
                    "type": "integer"
                  }
                }
              },
              "strict": false
            }
          ],
          "tool_choice": "required",
          "temperature": 1,
          "top_p": 0.9,
          "max_output_tokens": 100,
          "presence_penalty": 0,
          "frequency_penalty": 0.1,
          "reasoning": {
            "effort": "medium"
          },
          "include": [
            "reasoning.encrypted_content"
          ],
          "prompt_cache_key": "k",
          "previous_response_id": "resp_0",
          "text": {
            "format": {
              "type": "json_schema",
              "name": "answer",
              "schema": {
                "type": "object"
              },
              "strict": true
            },
            "verbosity": "low"
          },
          "stream": true,
          "store": false,
          "user": "u"
        }"#]],
    );
}

#[test]
fn the_conversation() {
    let mut call = ask("gpt-4o", "first");
    let mut shot = answering("c2", None, "see");
    shot.content.push(image("https://x/y.png"));
    call.messages.extend([
        Message {
            content: Message::text(Role::Assistant, "I look.").content,
            ..calling(&[("c1", "find", r#"{"n":1}"#), ("c2", "find", "")])
        },
        Message::text(Role::System, "One turn is left."),
        answering("c1", Some("find"), "found"),
        shot,
        Message {
            content: Vec::new(),
            ..answering("c3", None, "")
        },
    ]);
    expect![[r#"
        {
          "model": "gpt-4o",
          "input": [
            {
              "role": "user",
              "content": "first"
            },
            {
              "role": "assistant",
              "content": "I look."
            },
            {
              "type": "function_call",
              "call_id": "c1",
              "name": "find",
              "arguments": "{\"n\":1}"
            },
            {
              "type": "function_call",
              "call_id": "c2",
              "name": "find",
              "arguments": "{}"
            },
            {
              "role": "developer",
              "content": "One turn is left."
            },
            {
              "type": "function_call_output",
              "call_id": "c1",
              "output": "found"
            },
            {
              "type": "function_call_output",
              "call_id": "c2",
              "output": [
                {
                  "type": "input_text",
                  "text": "see"
                },
                {
                  "type": "input_image",
                  "image_url": "https://x/y.png"
                }
              ]
            },
            {
              "type": "function_call_output",
              "call_id": "c3",
              "output": ""
            }
          ],
          "stream": true
        }"#]]
    .assert_eq(&pretty(&body(WHO, &call)));
}

#[test]
fn structured_answers() {
    let lines: Vec<String> = [
        Output::Text,
        Output::Json,
        Output::Raw(json!({"type": "json_schema", "json_schema": {"name": "n", "schema": {}}})),
        Output::Raw(json!({"type": "grammar", "syntax": "lark"})),
    ]
    .into_iter()
    .map(|output| {
        let body = body(
            WHO,
            &Call {
                output,
                ..ask("gpt-5.4", "x")
            },
        );
        format!("{} {}", body["text"], body["input"])
    })
    .collect();
    expect![[r#"
        null [{"role":"user","content":"x"}]
        {"format":{"type":"json_object"}} [{"role":"developer","content":"Answer with one JSON document and nothing else."},{"role":"user","content":"x"}]
        {"format":{"name":"n","schema":{},"type":"json_schema"}} [{"role":"user","content":"x"}]
        {"format":{"type":"grammar","syntax":"lark"}} [{"role":"user","content":"x"}]"#]]
    .assert_eq(&lines.join("\n"));
}

#[test]
fn reasoning_models_are_asked_for_their_reasoning() {
    let lines: Vec<String> = [
        ("gpt-5.4", None),
        ("gpt-5-chat-latest", None),
        ("gpt-4o", None),
        ("o4-mini", None),
        ("openai/gpt-6", None),
        ("smollm2", None),
        ("smollm2", Some("low")),
        ("gpt-5.4", Some("none")),
    ]
    .into_iter()
    .map(|(model, effort)| {
        let mut call = ask(model, "x");
        call.options.reasoning_effort = effort.map(str::to_string);
        let body = body(WHO, &call);
        format!(
            "{model} {effort:?}: {} {}",
            body["reasoning"], body["include"]
        )
    })
    .collect();
    expect![[r#"
        gpt-5.4 None: null ["reasoning.encrypted_content"]
        gpt-5-chat-latest None: null null
        gpt-4o None: null null
        o4-mini None: null ["reasoning.encrypted_content"]
        openai/gpt-6 None: null ["reasoning.encrypted_content"]
        smollm2 None: null null
        smollm2 Some("low"): {"effort":"low","summary":"auto"} ["reasoning.encrypted_content"]
        gpt-5.4 Some("none"): {"effort":"none"} ["reasoning.encrypted_content"]"#]]
    .assert_eq(&lines.join("\n"));
}

#[test]
fn text_comes_in_pieces() {
    reads(
        TEXT,
        expect![[r#"
        content: Grüß Gott
        stop of "resp_1" by "gpt-5.4-2026-03-05"
        36 + 87 = 123, cached Some(32), kept None, thought Some(64)"#]],
    );
    // Some servers send neither positions nor complete items.
    reads(
        &[
            r#"{"type":"response.output_item.added","item":{"type":"message","id":"a","role":"assistant"}}"#,
            r#"{"type":"response.output_text.delta","item_id":"a","delta":"He"}"#,
            r#"{"type":"response.output_text.delta","delta":"llo"}"#,
            r#"{"type":"response.output_item.added","item":{"type":"function_call","id":"b","call_id":"c","name":"find"}}"#,
            r#"{"type":"response.function_call_arguments.done","item_id":"b","arguments":"{}"}"#,
            r#"{"type":"response.completed","response":{}}"#,
        ],
        expect![[r#"
            content: Hello
            call c: find {}
            tool_calls of "" by """#]],
    );
}

#[test]
fn thoughts_and_calls_are_sent_back_unchanged() {
    reads(
        CALLS,
        expect![[r#"
        content: Äh.
        reasoning: Two calls.

        Yes.
        call call_1: find {"n":1}
        call call_2: count {}
        tool_calls of "resp_1" by "gpt-5.4-2026-03-05"
        5 + 9 = 14, cached None, kept None, thought None
        openai: [{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"Two calls."},{"type":"summary_text","text":"Yes."}],"encrypted_content":"gAAA"},{"type":"message","id":"msg_1","role":"assistant","phase":"commentary","length":3},{"type":"function_call","call_id":"call_1"},{"type":"function_call","call_id":"call_2"}]"#]],
    );
    let reply = reply(WHO, &events(CALLS));
    let said = Message {
        content: Message::text(Role::Assistant, reply.content).content,
        tool_calls: reply.tool_calls,
        opaque: reply.opaque,
        ..Message::empty(Role::Assistant)
    };
    let sent = |message: &Message, extra: Json| {
        let mut call = ask("gpt-5.4", "x");
        call.messages.push(message.clone());
        call.extra = vec![("responses".into(), extra)];
        let items = body(WHO, &call)["input"].clone();
        let items: Vec<String> = items.as_array().unwrap()[1..]
            .iter()
            .map(Json::to_string)
            .collect();
        items.join("\n")
    };
    expect![[r#"
        {"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"Two calls."},{"type":"summary_text","text":"Yes."}],"encrypted_content":"gAAA"}
        {"type":"message","id":"msg_1","role":"assistant","phase":"commentary","content":[{"type":"output_text","text":"Äh.","annotations":[]}]}
        {"type":"function_call","call_id":"call_1","name":"find","arguments":"{\"n\":1}"}
        {"type":"function_call","call_id":"call_2","name":"count","arguments":"{}"}"#]].assert_eq(&sent(&said, json!({"store": false})));
    // A message that the flow changed.
    let changed = Message {
        content: Vec::new(),
        tool_calls: said.tool_calls[1..].to_vec(),
        ..said.clone()
    };
    expect![[r#"
        {"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"Two calls."},{"type":"summary_text","text":"Yes."}],"encrypted_content":"gAAA"}
        {"type":"function_call","call_id":"call_2","name":"count","arguments":"{}"}"#]].assert_eq(&sent(&changed, json!({})));
    // Thoughts without encrypted content are sent back only to a server that stores them.
    let mut named = said;
    if let Some(opaque) = &mut named.opaque {
        opaque.blocks[0]["encrypted_content"] = Json::Null;
    }
    assert!(!sent(&named, json!({"store": false})).contains("reasoning"));
    assert!(sent(&named, json!({})).contains("reasoning"));
}

#[test]
fn finish_reasons() {
    let said = json!({"type": "message", "content": [{"type": "output_text", "text": "Hi"}]});
    for (response, expected) in [
        (json!({"status": "completed", "output": [said]}), "stop"),
        (
            json!({"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}),
            "length",
        ),
        (
            json!({"status": "incomplete", "incomplete_details": {"reason": "content_filter"}}),
            "content_filter",
        ),
        (json!({"status": "incomplete"}), "length"),
        (json!({"status": "cancelled"}), "cancelled"),
        (json!({"output": [said]}), "stop"),
        (
            json!({"output": [{"type": "function_call", "call_id": "c", "name": "n", "arguments": "{}"}]}),
            "tool_calls",
        ),
        (
            json!({"output": [{"type": "message", "content": [{"type": "refusal", "refusal": "No."}]}]}),
            "refusal",
        ),
    ] {
        let reply = reply(WHO, &events(&[START, &ends(&response)]));
        assert_eq!(reply.finish_reason, expected, "{response}");
    }
    reads(
        &[
            START,
            r#"{"type":"response.output_item.added","output_index":0,"item":{"type":"message"}}"#,
            r#"{"type":"response.refusal.delta","output_index":0,"delta":"I will "}"#,
            r#"{"type":"response.refusal.delta","output_index":0,"delta":"not."}"#,
            r#"{"type":"response.completed","response":{"status":"completed"}}"#,
        ],
        expect![[r#"
            refusal: I will not.
            refusal of "resp_1" by "gpt-5.4-2026-03-05""#]],
    );
}

#[test]
fn complete_responses() {
    for (body, expected) in [
        (
            r#"{"id":"r","model":"m","status":"completed","error":null,"output":[{"type":"reasoning","id":"rs","summary":[{"type":"summary_text","text":"hm"}]},{"type":"web_search_call","id":"ws"},{"type":"message","id":"a","content":[{"type":"output_text","text":"Hi"}]},{"type":"function_call","call_id":"c","name":"find","arguments":"{}"}],"usage":{"input_tokens":1,"output_tokens":2,"total_tokens":3}}"#,
            expect![[r#"
                content: Hi
                reasoning: hm
                call c: find {}
                tool_calls of "r" by "m"
                1 + 2 = 3, cached None, kept None, thought None
                openai: [{"type":"reasoning","id":"rs","summary":[{"type":"summary_text","text":"hm"}]},{"type":"web_search_call","id":"ws"},{"type":"message","id":"a","length":2},{"type":"function_call","call_id":"c"}]"#]],
        ),
        (
            "",
            expect![
                "E0808 bad-response: openai sent something that is not an answer: the answer is not JSON (EOF while parsing a value at line 1 column 0) (Later)"
            ],
        ),
        (
            "[]",
            expect![
                "E0808 bad-response: openai sent something that is not an answer: it has no `output` (Later)"
            ],
        ),
        (
            r#"{"output":"text"}"#,
            expect![
                "E0808 bad-response: openai sent something that is not an answer: it has no `output` (Later)"
            ],
        ),
        (
            r#"{"output":[7,{"type":3},{"type":"message","content":"text"}]}"#,
            expect![
                "E0808 bad-response: openai sent something that is not an answer: an item of `output` is not an object (Later)"
            ],
        ),
        (
            r#"{"error":{"code":"invalid_prompt","message":"bad prompt"},"status":"failed"}"#,
            expect![
                "E0813 bad-request: openai does not accept the request (400): bad prompt (Never)"
            ],
        ),
    ] {
        expected.assert_eq(&whole(WHO, body));
    }
}

#[test]
fn errors_in_a_stream() {
    let failed = |code: &str, message: &str| {
        json!({"type": "response.failed", "response": {"status": "failed", "error": {"code": code, "message": message}}}).to_string()
    };
    let cases = [
        (failed("server_error", "The server had an error"), expect!["E0805 unavailable: openai cannot answer now (500): The server had an error (Later)"]),
        (failed("rate_limit_exceeded", "Slow down"), expect!["E0804 rate-limited: openai limits the rate of requests: Slow down (Later)"]),
        (failed("insufficient_quota", "Pay"), expect!["E0804 no-credit: the account at openai has no credit left: Pay (Never)"]),
        (failed("invalid_image", "no picture"), expect!["E0813 bad-request: openai does not accept the request (400): no picture (Never)"]),
        (failed("context_length_exceeded", "too long"), expect!["E0803 too-long: the conversation is too long for the model: too long (Never)"]),
        (r#"{"type":"response.failed","response":{}}"#.into(), expect!["E0805 unavailable: openai cannot answer now (500):  (Later)"]),
        (r#"{"type":"response.failed"}"#.into(), expect!["E0808 bad-response: openai sent something that is not an answer: the last event has no `response` (Later)"]),
        (r#"{"type":"error","code":"server_is_overloaded","message":"Busy","param":null}"#.into(), expect!["E0805 unavailable: openai cannot answer now (529): Busy (Later)"]),
        (r#"{"type":"error","error":{"type":"invalid_request_error","code":null,"message":"bad"}}"#.into(), expect!["E0813 bad-request: openai does not accept the request (400): bad (Never)"]),
        (r#"{"error":{"message":"no type"}}"#.into(), expect!["E0805 unavailable: openai cannot answer now (500): no type (Later)"]),
        ("{not json".into(), expect!["E0808 bad-response: openai sent something that is not an answer: an event is not JSON (key must be a string at line 1 column 2) (Later)"]),
        (r#"{"type":"response.output_text.delta","output_index":"0","delta":"x"}"#.into(), expect!["E0808 bad-response: openai sent something that is not an answer: an `output_index` is not a number (Later)"]),
        (r#"{"type":"response.output_text.delta","output_index":0}"#.into(), expect!["E0808 bad-response: openai sent something that is not an answer: an event has no `delta` (Later)"]),
        (r#"{"type":"response.output_text.delta","output_index":0,"delta":{}}"#.into(), expect!["E0808 bad-response: openai sent something that is not an answer: an event has no `delta` (Later)"]),
        (r#"{"type":"response.output_item.added","output_index":0,"item":"x"}"#.into(), expect!["E0808 bad-response: openai sent something that is not an answer: an event has no `item` (Later)"]),
        // The stream breaks off.
        (r#"{"type":"response.output_text.delta","output_index":0,"delta":"abc"}"#.into(), expect!["E0807 cut-off: the answer of openai broke off after 3 characters (Later)"]),
    ];
    for (event, expected) in cases {
        expected.assert_eq(&stream(WHO, &events(&[START, &event])));
    }
}

#[test]
fn unknown_events_are_ignored() {
    reads(
        &[
            "",
            "{}",
            "[]",
            "7",
            r#"{"type":"response.something_new","output_index":"x"}"#,
            r#"{"type":"response.created","response":{"id":7,"model":null,"usage":{"input_tokens":"many"}}}"#,
            r#"{"type":"response.output_item.added","output_index":18446744073709551615,"item":{"type":"hologram","depth":3}}"#,
            // The greatest index is taken, so the next item without an index cannot get one.
            r#"{"type":"response.output_item.added","item":{"type":"hologram","id":"h","depth":4}}"#,
            r#"{"type":"response.output_text.delta","output_index":1,"delta":"Hi"}"#,
            r#"{"type":"response.completed","response":{"status":7,"output":{},"usage":{"input_tokens":-1,"output_tokens":2}}}"#,
            "[DONE]",
        ],
        expect![[r#"
            content: Hi
            stop of "" by ""
            0 + 2 = 2, cached None, kept None, thought None
            openai: [{"type":"hologram","id":"h","depth":4}]"#]],
    );
}

/// llama.cpp converts the call to chat completions, and accepts the form of the answer only under the name used there.
#[test]
fn llama_cpp_gets_the_schema_under_its_older_name() {
    let mut call = ask("small", "Is it wet?");
    call.output = Output::Schema {
        name: "answer".into(),
        schema: json!({"type": "object"}),
        strict: true,
    };
    let own = row("llama-cpp").speaking(row("openai"));
    let body = own.family.encode(&call, &own);
    assert_eq!(body["text"]["format"]["name"], "answer");
    expect![[r#"{"type":"json_schema","json_schema":{"name":"answer","schema":{"type":"object"},"strict":true}}"#]]
        .assert_eq(&body["response_format"].to_string());
    let openai = row("openai").family.encode(&call, row("openai"));
    assert_eq!(openai.get("response_format"), None);
}

#[test]
fn equal_and_missing_ids_of_calls_are_kept_apart() {
    let call = |id: &str, n: usize| json!({"type": "function_call", "id": "", "call_id": id, "name": "find", "arguments": format!("{{\"n\":{n}}}")});
    let answer = json!({"type": "response.completed", "response": {"id": "r", "model": "m", "status": "completed", "output": [
        {"type": "reasoning", "id": "rs", "summary": [], "encrypted_content": "e"}, call("c", 0), call("c", 1), call("", 2)]}});
    let reply = reply(WHO, &events(&[&answer.to_string()]));
    let ids: Vec<String> = reply.tool_calls.iter().map(|it| it.id.clone()).collect();
    assert!(ids[0] == "c" && ids[1].starts_with("made_") && ids[2].starts_with("made_"));
    let mut call = ask("gpt-5.4", "x");
    call.messages.push(Message {
        tool_calls: reply.tool_calls,
        opaque: reply.opaque,
        ..Message::empty(Role::Assistant)
    });
    let items = body(WHO, &call)["input"].clone();
    let sent: Vec<&str> = items.as_array().unwrap()[2..]
        .iter()
        .map(|it| it["call_id"].as_str().unwrap())
        .collect();
    assert_eq!(sent, ids);
}

#[test]
fn built_in_tools_are_sent_beside_the_tools_of_the_flow() {
    let mut call = ask("gpt-5.4", "x");
    call.tools = vec![tool("find")];
    let search = json!({"type": "web_search"});
    for extra in [
        ("tools".to_string(), json!([search])),
        ("responses".to_string(), json!({"tools": [search]})),
    ] {
        call.extra = vec![extra];
        let tools = body(WHO, &call)["tools"].clone();
        assert_eq!((&tools[0]["name"], &tools[1]), (&json!("find"), &search));
    }
}
