//! Google's wire format: bodies, streams and errors.

use expect_test::{Expect, expect};
use flowstone_steps::llm::Llm;
use flowstone_steps::llm::call::{Call, Message, Opaque, Options, Output, Part, Role, ToolChoice};
use serde_json::json;

use crate::server::{self, Server};
use crate::wire::{
    address, answering, ask, body, calling, events, image, pretty, reply, stream, tool, whole,
};
use crate::world::{World, wait};

const GOOGLE: &str = "google";
/// A stream with the text "Grüß Gott".
pub const TEXT: &[&str] = &[
    r#"{"candidates":[{"content":{"parts":[{"text":"thinking...","thought":true}],"role":"model"},"index":0}],"usageMetadata":{"promptTokenCount":8,"totalTokenCount":8},"modelVersion":"gemini-2.5-flash","responseId":"r1"}"#,
    r#"{"candidates":[{"content":{"parts":[{"text":"Grüß"}],"role":"model"},"index":0}],"modelVersion":"gemini-2.5-flash","responseId":"r1"}"#,
    r#"{"candidates":[{"content":{"parts":[{"text":" Gott"}],"role":"model"},"finishReason":"STOP","index":0}],"usageMetadata":{"promptTokenCount":8,"candidatesTokenCount":4,"thoughtsTokenCount":20,"cachedContentTokenCount":5,"totalTokenCount":32},"modelVersion":"gemini-2.5-flash","responseId":"r1"}"#,
];

const CALLS: &[&str] = &[
    r#"{"candidates":[{"content":{"parts":[{"text":"Let me "}]}}],"responseId":"r2"}"#,
    r#"{"candidates":[{"content":{"parts":[{"text":"look."},{"functionCall":{"name":"find","args":{"n":1}},"thoughtSignature":"c2ln"}]}}],"responseId":"r2"}"#,
    r#"{"candidates":[{"content":{"parts":[{"functionCall":{"name":"find","args":{"n":2}}},{"functionCall":{"id":"theirs","name":"now"}}]}}],"responseId":"r2"}"#,
    r#"{"candidates":[{"content":{"parts":[{"text":""}]},"finishReason":"STOP"}],"responseId":"r2"}"#,
];

#[track_caller]
fn sends(call: &Call, expected: Expect) {
    expected.assert_eq(&pretty(&body(GOOGLE, call)));
}

#[track_caller]
fn reads(data: &[&str], expected: Expect) {
    expected.assert_eq(&stream(GOOGLE, &events(data)));
}

#[test]
fn addresses() {
    let at = |base, model| address(GOOGLE, base, model);
    expect!["https://g/v1beta/models/gemini-2.5-flash:streamGenerateContent?alt=sse"]
        .assert_eq(&at("https://g", "gemini-2.5-flash"));
    expect!["https://g/v1/tunedModels/mine:streamGenerateContent?alt=sse"]
        .assert_eq(&at("https://g/v1/", "tunedModels/mine"));
    expect!["https://g/v1/projects/p/locations/global/publishers/google/models/m:streamGenerateContent?alt=sse"]
        .assert_eq(&at("https://g/v1/projects/p/locations/global", "publishers/google/models/m"));
}

#[test]
fn a_call_with_everything() {
    let mut call = ask("gemini-2.5-flash", "What is this?");
    call.messages
        .insert(0, Message::text(Role::System, "Be brief."));
    call.messages[1]
        .content
        .push(image("data:image/png;base64,AAAA"));
    call.messages[1].content.push(image("https://x/y.webp?z=1"));
    call.tools = vec![tool("find")];
    call.tool_choice = ToolChoice::Required;
    call.options = Options {
        temperature: Some(1.0),
        top_p: Some(0.5),
        stop: vec!["END".into()],
        max_tokens: Some(64),
        seed: Some(7),
        presence_penalty: Some(0.25),
        frequency_penalty: Some(-1.0),
        reasoning_effort: Some("low".into()),
        ..Options::default()
    };
    call.output = Output::Json;
    call.extra = vec![
        ("generationConfig".into(), json!({"topK": 3})),
        ("safetySettings".into(), json!([])),
    ];
    sends(
        &call,
        expect![[r#"
        {
          "systemInstruction": {
            "parts": [
              {
                "text": "Be brief."
              },
              {
                "text": "Answer with one JSON document and nothing else."
              }
            ]
          },
          "contents": [
            {
              "role": "user",
              "parts": [
                {
                  "text": "What is this?"
                },
                {
                  "inlineData": {
                    "mimeType": "image/png",
                    "data": "AAAA"
                  }
                },
                {
                  "fileData": {
                    "mimeType": "image/webp",
                    "fileUri": "https://x/y.webp?z=1"
                  }
                }
              ]
            }
          ],
          "tools": [
            {
              "functionDeclarations": [
                {
                  "name": "find",
                  "parametersJsonSchema": {
                    "type": "object",
                    "properties": {
                      "n": {
                        "type": "integer"
                      }
                    }
                  },
                  "description": "It can find."
                }
              ]
            }
          ],
          "toolConfig": {
            "functionCallingConfig": {
              "mode": "ANY"
            }
          },
          "generationConfig": {
            "maxOutputTokens": 64,
            "temperature": 1,
            "topP": 0.5,
            "stopSequences": [
              "END"
            ],
            "seed": 7,
            "presencePenalty": 0.25,
            "frequencyPenalty": -1,
            "thinkingConfig": {
              "thinkingBudget": 1024,
              "includeThoughts": true
            },
            "topK": 3
          },
          "safetySettings": []
        }"#]],
    );
}

#[test]
fn structured_answers() {
    let schema = json!({"type": "object", "properties": {"a": {"type": "integer"}}});
    let mut call = ask("gemini-2.5-flash", "x");
    call.output = Output::Schema {
        name: "answer".into(),
        schema,
        strict: true,
    };
    sends(
        &call,
        expect![[r#"
        {
          "contents": [
            {
              "role": "user",
              "parts": [
                {
                  "text": "x"
                }
              ]
            }
          ],
          "generationConfig": {
            "responseMimeType": "application/json",
            "responseJsonSchema": {
              "type": "object",
              "properties": {
                "a": {
                  "type": "integer"
                }
              }
            }
          }
        }"#]],
    );
    // Before the third generation, tools and a schema for the answer exclude each other.
    call.tools = vec![tool("find")];
    let sent = body(GOOGLE, &call);
    assert!(sent.get("generationConfig").is_none());
    assert!(
        sent["systemInstruction"]
            .to_string()
            .contains("JSON Schema")
    );
    call.model = "gemini-3-pro-preview".into();
    let sent = body(GOOGLE, &call);
    assert!(sent["generationConfig"]["responseJsonSchema"].is_object());
    assert!(sent.get("systemInstruction").is_none());
    call.output = Output::Raw(json!({"responseMimeType": "text/x.enum"}));
    let sent = body(GOOGLE, &call);
    assert_eq!(sent["generationConfig"]["responseMimeType"], "text/x.enum");
}

#[test]
fn efforts() {
    for (model, effort, expected) in [
        (
            "gemini-2.5-flash",
            "none",
            r#"{"thinkingBudget":0,"includeThoughts":false}"#,
        ),
        (
            "gemini-2.5-flash",
            "low",
            r#"{"thinkingBudget":1024,"includeThoughts":true}"#,
        ),
        (
            "gemini-2.5-pro",
            "medium",
            r#"{"thinkingBudget":8192,"includeThoughts":true}"#,
        ),
        (
            "gemini-2.5-pro",
            "high",
            r#"{"thinkingBudget":24576,"includeThoughts":true}"#,
        ),
        (
            "gemini-3-pro-preview",
            "low",
            r#"{"thinkingLevel":"low","includeThoughts":true}"#,
        ),
        (
            "models/gemini-3.1-flash",
            "none",
            r#"{"thinkingLevel":"minimal"}"#,
        ),
    ] {
        let mut call = ask(model, "x");
        call.options.reasoning_effort = Some(effort.into());
        let sent = body(GOOGLE, &call);
        assert_eq!(
            sent["generationConfig"]["thinkingConfig"].to_string(),
            expected,
            "{model} {effort}"
        );
    }
}

#[test]
fn tools_are_answered_by_name() {
    let mut call = ask("gemini-2.5-flash", "Find it.");
    let mut failed = answering("theirs", None, "no such file");
    failed.is_error = true;
    let mut picture = answering("made_1", None, "[1]");
    picture.content.push(image("data:image/png;base64,AAAA"));
    let mut calls = calling(&[
        ("made_1", "find", r#"{"n":1}"#),
        ("theirs", "read", "not json"),
    ]);
    calls.content.push(Part::Text(String::new()));
    call.messages.extend([
        calls,
        picture,
        failed,
        answering("gone", Some("other"), r#"{"ok":true}"#),
        Message::text(Role::System, "Two turns are left."),
    ]);
    sends(
        &call,
        expect![[r#"
            {
              "contents": [
                {
                  "role": "user",
                  "parts": [
                    {
                      "text": "Find it."
                    }
                  ]
                },
                {
                  "role": "model",
                  "parts": [
                    {
                      "functionCall": {
                        "name": "find",
                        "args": {
                          "n": 1
                        }
                      }
                    },
                    {
                      "functionCall": {
                        "name": "read",
                        "args": {
                          "arguments": "not json"
                        },
                        "id": "theirs"
                      }
                    }
                  ]
                },
                {
                  "role": "user",
                  "parts": [
                    {
                      "functionResponse": {
                        "name": "find",
                        "response": {
                          "result": [
                            1
                          ]
                        }
                      }
                    },
                    {
                      "functionResponse": {
                        "name": "read",
                        "response": {
                          "error": "no such file"
                        },
                        "id": "theirs"
                      }
                    },
                    {
                      "functionResponse": {
                        "name": "other",
                        "response": {
                          "ok": true
                        },
                        "id": "gone"
                      }
                    },
                    {
                      "inlineData": {
                        "mimeType": "image/png",
                        "data": "AAAA"
                      }
                    },
                    {
                      "text": "<system>\nTwo turns are left.\n</system>"
                    }
                  ]
                }
              ]
            }"#]],
    );
    call.model = "gemini-3-pro-preview".into();
    assert_eq!(
        body(GOOGLE, &call)["contents"][1]["parts"][0]["thoughtSignature"],
        "skip_thought_signature_validator"
    );
}

#[test]
fn text_and_thoughts() {
    reads(
        TEXT,
        expect![[r#"
        content: Grüß Gott
        reasoning: thinking...
        stop of "r1" by "gemini-2.5-flash"
        8 + 24 = 32, cached Some(5), kept None, thought Some(20)"#]],
    );
}

#[test]
fn calls_get_ids_and_signatures_are_sent_back() {
    reads(
        CALLS,
        expect![[r#"
            content: Let me look.
            call made_vsiJkP2rBEHaNwD6: find {"n":1}
            call made_VuvyF1LGpEIh7k5v: find {"n":2}
            call theirs: now {}
            tool_calls of "r2" by ""
            google: [{"text":"Let me look."},{"functionCall":{"name":"find","args":{"n":1}},"thoughtSignature":"c2ln"},{"functionCall":{"name":"find","args":{"n":2}}},{"functionCall":{"id":"theirs","name":"now"}}]"#]],
    );
    let answer = reply(GOOGLE, &events(CALLS));
    assert_eq!(answer, reply(GOOGLE, &events(CALLS)), "ids are stable");
    let mut call = ask("gemini-3-pro-preview", "x");
    let mut said = calling(&[]);
    said.opaque = answer.opaque;
    said.tool_calls = answer.tool_calls.clone();
    call.messages.push(said);
    for it in &answer.tool_calls {
        call.messages.push(answering(&it.id, None, "1"));
    }
    let sent = body(GOOGLE, &call);
    expect![[r#"[{"text":"Let me look."},{"functionCall":{"name":"find","args":{"n":1}},"thoughtSignature":"c2ln"},{"functionCall":{"name":"find","args":{"n":2}}},{"functionCall":{"id":"theirs","name":"now"}}]"#]].assert_eq(&sent["contents"][1]["parts"].to_string());
    expect![[r#"[{"functionResponse":{"name":"find","response":{"result":1}}},{"functionResponse":{"name":"find","response":{"result":1}}},{"functionResponse":{"name":"now","response":{"result":1},"id":"theirs"}}]"#]].assert_eq(&sent["contents"][2]["parts"].to_string());
    // Metadata from another family is not sent.
    call.messages[1].opaque = Some(Opaque {
        family: "anthropic".into(),
        blocks: json!([{"type": "thinking"}]),
    });
    assert!(!body(GOOGLE, &call).to_string().contains("thinking"));
}

#[test]
fn finish_reasons() {
    let finish = |reason: &str| {
        let chunk = json!({"candidates": [{"content": {"parts": [{"text": "a"}]}, "finishReason": reason, "finishMessage": "why"}]});
        stream(GOOGLE, &events(&[&chunk.to_string()]))
    };
    let mut shown = String::new();
    for reason in [
        "STOP",
        "MAX_TOKENS",
        "SAFETY",
        "RECITATION",
        "PROHIBITED_CONTENT",
        "SPII",
        "LANGUAGE",
        "MALFORMED_FUNCTION_CALL",
        "UNEXPECTED_TOOL_CALL",
        "OTHER",
        "NEW_REASON",
    ] {
        shown.push_str(&format!(
            "{reason}: {}\n",
            finish(reason).replace('\n', " | ")
        ));
    }
    expect![[r#"
        STOP: content: a | stop of "" by ""
        MAX_TOKENS: content: a | length of "" by ""
        SAFETY: content: a | refusal: why | content_filter of "" by ""
        RECITATION: content: a | refusal: why | content_filter of "" by ""
        PROHIBITED_CONTENT: content: a | refusal: why | content_filter of "" by ""
        SPII: content: a | refusal: why | content_filter of "" by ""
        LANGUAGE: content: a | refusal: why | content_filter of "" by ""
        MALFORMED_FUNCTION_CALL: E0808 bad-response: google sent something that is not an answer: the model stopped with MALFORMED_FUNCTION_CALL: why (Later)
        UNEXPECTED_TOOL_CALL: E0808 bad-response: google sent something that is not an answer: the model stopped with UNEXPECTED_TOOL_CALL: why (Later)
        OTHER: E0808 bad-response: google sent something that is not an answer: the model stopped with OTHER: why (Later)
        NEW_REASON: content: a | NEW_REASON of "" by ""
    "#]].assert_eq(&shown);
    reads(
        &[r#"{"promptFeedback":{"blockReason":"SAFETY"},"usageMetadata":{"promptTokenCount":4}}"#],
        expect![
            "E0806 content-filter: google withheld the answer: the prompt is blocked (SAFETY) (Never)"
        ],
    );
    reads(
        &TEXT[..2],
        expect!["E0807 cut-off: the answer of google broke off after 4 characters (Later)"],
    );
    reads(
        &[],
        expect!["E0807 cut-off: the answer of google broke off before it began (Later)"],
    );
}

#[test]
fn errors_in_a_stream() {
    reads(
        &[
            TEXT[1],
            r#"{"error":{"code":429,"message":"slow down","status":"RESOURCE_EXHAUSTED","details":[{"@type":"t/RetryInfo","retryDelay":"1.5s"}]}}"#,
        ],
        expect!["E0804 rate-limited: google limits the rate of requests: slow down (After(1.5s))"],
    );
    reads(
        &[
            r#"{"error":{"code":400,"message":"API key not valid.","status":"INVALID_ARGUMENT","details":[{"reason":"API_KEY_INVALID"}]}}"#,
        ],
        expect!["E0801 unauthorized: google does not accept the key: API key not valid. (Never)"],
    );
    reads(
        &[
            r#"{"error":{"code":400,"message":"The input token count (9) exceeds the maximum number of tokens allowed (8)."}}"#,
        ],
        expect![
            "E0803 too-long: the conversation is too long for the model: The input token count (9) exceeds the maximum number of tokens allowed (8). (Never)"
        ],
    );
    reads(
        &[r#"{"error":{"code":503,"message":"The model is overloaded.","status":"UNAVAILABLE"}}"#],
        expect![
            "E0805 unavailable: google cannot answer now (503): The model is overloaded. (Later)"
        ],
    );
}

#[test]
fn invalid_responses_are_errors() {
    for data in [
        "{",
        "[]",
        "null",
        "1",
        "\"a\"",
        "{}",
        "[[]]",
        r#"{"candidates":{}}"#,
        r#"{"candidates":[null]}"#,
        r#"{"candidates":[{"content":null}]}"#,
        r#"{"candidates":[{"content":{"parts":{}}}]}"#,
        r#"{"candidates":[{"content":{"parts":[1,null,{"text":1},{"functionCall":1},{"functionCall":{}}]}}]}"#,
        r#"{"usageMetadata":{"promptTokenCount":9223372036854775807,"candidatesTokenCount":9223372036854775807,"thoughtsTokenCount":-1}}"#,
        r#"{"promptFeedback":1,"error":null}"#,
        r#"{"error":"x"}"#,
        r#"{"error":[]}"#,
        "\u{0}",
    ] {
        let shown = stream(GOOGLE, &events(&[data]));
        assert!(shown.starts_with("E08"), "{data}: {shown}");
        assert!(whole(GOOGLE, data).starts_with("E08"), "{data}");
    }
}

#[test]
fn a_response_without_streaming() {
    let all = format!("[{}]", TEXT.join(",\n"));
    assert_eq!(whole(GOOGLE, &all), stream(GOOGLE, &events(TEXT)));
    expect![[r#"
        content:  Gott
        stop of "r1" by "gemini-2.5-flash"
        8 + 24 = 32, cached Some(5), kept None, thought Some(20)"#]]
    .assert_eq(&whole(GOOGLE, TEXT[2]));
}

#[test]
fn the_step_calls_gemini() {
    wait(async {
        let server = Server::start(vec![server::events(TEXT)]);
        let world = World::new().secret("GOOGLE_API_KEY", "g-key-of-mine").settings(&format!(
            "{{:connections {{:ai {{:backend :google-ai :base-url \"{}\" :model \"gemini-2.5-flash\"}}}}}}",
            server.url
        ));
        let shown = world.run(&Llm, "{:connection :ai :prompt \"Hi\"}").await;
        expect![[r#"{:finish-reason "stop" :content "Grüß Gott" :reasoning "thinking..." :usage {:prompt-tokens 8 :completion-tokens 24 :total-tokens 32 :cached-tokens 5 :reasoning-tokens 20} :iterations 1 :provider :google-ai :tokens-used 32 :response-id "r1" :model "gemini-2.5-flash"}"#]].assert_eq(&shown);
        let request = server.requests().remove(0);
        expect!["POST /v1beta/models/gemini-2.5-flash:streamGenerateContent?alt=sse HTTP/1.1"]
            .assert_eq(request.lines().next().unwrap());
        assert!(
            request.contains("\nx-goog-api-key: g-key-of-mine\n"),
            "{request}"
        );
    });
}

#[test]
fn an_error_of_a_tool_is_wrapped_once() {
    let response = |text: &str| {
        let mut call = ask("gemini-2.5-flash", "x");
        let mut failed = answering("c1", Some("read"), text);
        failed.is_error = true;
        call.messages
            .extend([calling(&[("c1", "read", "{}")]), failed]);
        body(GOOGLE, &call)["contents"][2]["parts"][0]["functionResponse"]["response"].to_string()
    };
    let told = r#"{"error":"no such file","kind":"not-found"}"#;
    assert_eq!(response(told), told);
    assert_eq!(response("no such file"), r#"{"error":"no such file"}"#);
}

#[test]
fn equal_ids_of_calls_are_kept_apart() {
    let chunk = r#"{"responseId":"r","candidates":[{"content":{"parts":[{"functionCall":{"id":"c","name":"one","args":{}},"thoughtSignature":"s"},{"functionCall":{"id":"c","name":"two","args":{}}}]},"finishReason":"STOP"}]}"#;
    let reply = reply(GOOGLE, &events(&[chunk]));
    let kept = reply.opaque.expect("a signature").blocks.to_string();
    assert_eq!(kept.matches(r#""id":"c""#).count(), 1, "{kept}");
    let ids = reply.tool_calls.iter().map(|it| it.id.starts_with("made_"));
    assert_eq!(ids.collect::<Vec<_>>(), [false, true]);
}

#[test]
fn built_in_tools_are_sent_beside_the_tools_of_the_flow() {
    let mut call = ask("gemini-3-pro", "x");
    call.tools = vec![tool("find")];
    call.extra = vec![("tools".into(), json!([{"googleSearch": {}}]))];
    let tools = body(GOOGLE, &call)["tools"].clone();
    assert_eq!(tools[0]["functionDeclarations"][0]["name"], "find");
    assert_eq!(tools[1], json!({"googleSearch": {}}));
}
