//! Bedrock's wire format: bodies, the framing of AWS, streams and errors.

use expect_test::{Expect, expect};
use flowstone_steps::llm::Llm;
use flowstone_steps::llm::call::{Call, Message, Options, Output, Role, ToolChoice};
use serde_json::{Value as Json, json};

use crate::event_stream::frame;
use crate::server::{Say, Server, reply as answer};
use crate::wire::{
    address, answering, ask, body, calling, image, pretty, reply, row, stream, tool, whole,
};
use crate::world::{World, wait};

const BEDROCK: &str = "bedrock";
const CLAUDE: &str = "eu.anthropic.claude-3-5-sonnet-20241022-v2:0";
const NOVA: &str = "amazon.nova-pro-v1:0";

pub fn event(name: &str, payload: &str) -> Vec<u8> {
    let kind = (":content-type", "application/json");
    frame(
        &[(":event-type", name), kind, (":message-type", "event")],
        payload,
    )
}

fn exception(name: &str, payload: &str) -> Vec<u8> {
    frame(
        &[(":exception-type", name), (":message-type", "exception")],
        payload,
    )
}

fn events(list: &[(&str, &str)]) -> Vec<u8> {
    list.iter()
        .flat_map(|(name, payload)| event(name, payload))
        .collect()
}

const TEXT: &[(&str, &str)] = &[
    ("messageStart", r#"{"role":"assistant","p":"abcd"}"#),
    (
        "contentBlockDelta",
        r#"{"contentBlockIndex":0,"delta":{"text":"Grüß "}}"#,
    ),
    (
        "contentBlockDelta",
        r#"{"contentBlockIndex":0,"delta":{"text":"Gott"}}"#,
    ),
    ("contentBlockStop", r#"{"contentBlockIndex":0}"#),
    ("messageStop", r#"{"stopReason":"end_turn"}"#),
    (
        "metadata",
        r#"{"usage":{"inputTokens":10,"outputTokens":4,"totalTokens":14,"cacheReadInputTokens":100,"cacheWriteInputTokens":7},"metrics":{"latencyMs":9}}"#,
    ),
];

const CALLS: &[(&str, &str)] = &[
    ("messageStart", r#"{"role":"assistant"}"#),
    (
        "contentBlockDelta",
        r#"{"contentBlockIndex":0,"delta":{"reasoningContent":{"text":"Hm"}}}"#,
    ),
    (
        "contentBlockDelta",
        r#"{"contentBlockIndex":0,"delta":{"reasoningContent":{"text":"m."}}}"#,
    ),
    (
        "contentBlockDelta",
        r#"{"contentBlockIndex":0,"delta":{"reasoningContent":{"signature":"c2ln"}}}"#,
    ),
    (
        "contentBlockDelta",
        r#"{"contentBlockIndex":1,"delta":{"reasoningContent":{"redactedContent":"cmVk"}}}"#,
    ),
    (
        "contentBlockDelta",
        r#"{"contentBlockIndex":2,"delta":{"text":"Two calls."}}"#,
    ),
    (
        "contentBlockStart",
        r#"{"contentBlockIndex":3,"start":{"toolUse":{"toolUseId":"tooluse_1","name":"find"}}}"#,
    ),
    (
        "contentBlockStart",
        r#"{"contentBlockIndex":4,"start":{"toolUse":{"toolUseId":"tooluse_2","name":"now"}}}"#,
    ),
    (
        "contentBlockDelta",
        r#"{"contentBlockIndex":3,"delta":{"toolUse":{"input":"{\"n\""}}}"#,
    ),
    (
        "contentBlockDelta",
        r#"{"contentBlockIndex":4,"delta":{"toolUse":{"input":""}}}"#,
    ),
    (
        "contentBlockDelta",
        r#"{"contentBlockIndex":3,"delta":{"toolUse":{"input":":1}"}}}"#,
    ),
    ("messageStop", r#"{"stopReason":"tool_use"}"#),
];

#[track_caller]
fn sends(call: &Call, expected: Expect) {
    expected.assert_eq(&pretty(&body(BEDROCK, call)));
}

#[track_caller]
fn reads(bytes: &[u8], expected: Expect) {
    expected.assert_eq(&stream(BEDROCK, bytes));
}

#[test]
fn addresses() {
    let base = "https://bedrock-runtime.eu-west-1.amazonaws.com";
    expect!["https://bedrock-runtime.eu-west-1.amazonaws.com/model/eu.anthropic.claude-3-5-sonnet-20241022-v2%3A0/converse-stream"].assert_eq(&address(BEDROCK, base, CLAUDE));
    expect!["https://bedrock-runtime.eu-west-1.amazonaws.com/model/arn%3Aaws%3Abedrock%3Aeu-west-1%3A1%3Ainference-profile%2Feu.x-v1%3A0/converse-stream"].assert_eq(&address(
        BEDROCK,
        base,
        "arn:aws:bedrock:eu-west-1:1:inference-profile/eu.x-v1:0",
    ));
}

#[test]
fn a_call_with_everything() {
    let mut call = ask(CLAUDE, "What is this?");
    call.messages
        .insert(0, Message::text(Role::System, "Be brief."));
    call.messages[1]
        .content
        .push(image("data:image/png;base64,AAAA"));
    call.messages[1].content.push(image("s3://bucket/a.WEBP"));
    call.tools = vec![tool("find")];
    call.tool_choice = ToolChoice::Required;
    call.options = Options {
        temperature: Some(1.0),
        top_p: Some(0.5),
        stop: vec!["END".into()],
        max_tokens: Some(64),
        cache_system: true,
        ..Options::default()
    };
    call.extra = vec![
        ("top_k".into(), json!(3)),
        (
            "guardrailConfig".into(),
            json!({"guardrailIdentifier": "g"}),
        ),
    ];
    sends(
        &call,
        expect![[r#"
            {
              "system": [
                {
                  "text": "Be brief."
                },
                {
                  "cachePoint": {
                    "type": "default"
                  }
                }
              ],
              "messages": [
                {
                  "role": "user",
                  "content": [
                    {
                      "text": "What is this?"
                    },
                    {
                      "image": {
                        "format": "png",
                        "source": {
                          "bytes": "AAAA"
                        }
                      }
                    },
                    {
                      "image": {
                        "format": "webp",
                        "source": {
                          "s3Location": {
                            "uri": "s3://bucket/a.WEBP"
                          }
                        }
                      }
                    },
                    {
                      "cachePoint": {
                        "type": "default"
                      }
                    }
                  ]
                }
              ],
              "inferenceConfig": {
                "maxTokens": 64,
                "temperature": 1,
                "topP": 0.5,
                "stopSequences": [
                  "END"
                ]
              },
              "toolConfig": {
                "tools": [
                  {
                    "toolSpec": {
                      "name": "find",
                      "inputSchema": {
                        "json": {
                          "type": "object",
                          "properties": {
                            "n": {
                              "type": "integer"
                            }
                          }
                        }
                      },
                      "description": "It can find."
                    }
                  },
                  {
                    "cachePoint": {
                      "type": "default"
                    }
                  }
                ],
                "toolChoice": {
                  "any": {}
                }
              },
              "additionalModelRequestFields": {
                "top_k": 3
              },
              "guardrailConfig": {
                "guardrailIdentifier": "g"
              }
            }"#]],
    );
}

#[test]
fn a_conversation_with_tools() {
    let mut failed = answering("call/2", None, "no such file");
    failed.is_error = true;
    let mut picture = answering("tooluse_1", None, "");
    picture.content.push(image("data:image/gif;base64,AAAA"));
    let mut call = ask(NOVA, "Find it.");
    call.messages.extend([
        calling(&[("tooluse_1", "find", r#"{"n":1}"#), ("call/2", "read", "")]),
        Message::text(Role::System, "Two turns are left."),
        picture,
        failed,
        answering("tooluse_3", None, " "),
    ]);
    sends(
        &call,
        expect![[r#"
            {
              "messages": [
                {
                  "role": "user",
                  "content": [
                    {
                      "text": "Find it."
                    }
                  ]
                },
                {
                  "role": "assistant",
                  "content": [
                    {
                      "toolUse": {
                        "toolUseId": "tooluse_1",
                        "name": "find",
                        "input": {
                          "n": 1
                        }
                      }
                    },
                    {
                      "toolUse": {
                        "toolUseId": "61JByXHmvWDbDLGRQsO3quRC",
                        "name": "read",
                        "input": {}
                      }
                    }
                  ]
                },
                {
                  "role": "user",
                  "content": [
                    {
                      "toolResult": {
                        "toolUseId": "tooluse_1",
                        "content": [
                          {
                            "image": {
                              "format": "gif",
                              "source": {
                                "bytes": "AAAA"
                              }
                            }
                          }
                        ],
                        "status": "success"
                      }
                    },
                    {
                      "toolResult": {
                        "toolUseId": "61JByXHmvWDbDLGRQsO3quRC",
                        "content": [
                          {
                            "text": "no such file"
                          }
                        ],
                        "status": "error"
                      }
                    },
                    {
                      "toolResult": {
                        "toolUseId": "tooluse_3",
                        "content": [
                          {
                            "text": "(nothing)"
                          }
                        ],
                        "status": "success"
                      }
                    },
                    {
                      "text": "<system>\nTwo turns are left.\n</system>"
                    }
                  ]
                }
              ],
              "toolConfig": {
                "tools": [
                  {
                    "toolSpec": {
                      "name": "find",
                      "inputSchema": {
                        "json": {
                          "type": "object"
                        }
                      }
                    }
                  },
                  {
                    "toolSpec": {
                      "name": "read",
                      "inputSchema": {
                        "json": {
                          "type": "object"
                        }
                      }
                    }
                  }
                ]
              }
            }"#]],
    );
    call.tool_choice = ToolChoice::None;
    expect![[r#"[{"text":"Answer now without calling a tool."}]"#]]
        .assert_eq(&body(BEDROCK, &call)["system"].to_string());
}

#[test]
fn structured_answers() {
    let mut call = ask(NOVA, "x");
    let with = |schema: Json| Output::Schema {
        name: "answer".into(),
        schema,
        strict: true,
    };
    let object = json!({"type": "object", "properties": {"a": {"type": "integer"}}});
    let config = |call: &Call| body(BEDROCK, call)["toolConfig"].to_string();
    call.output = with(object.clone());
    expect![[r#"{"tools":[{"toolSpec":{"name":"flowstone_answer","inputSchema":{"json":{"type":"object","properties":{"a":{"type":"integer"}}}},"description":"Gives the final answer."}}],"toolChoice":{"tool":{"name":"flowstone_answer"}}}"#]].assert_eq(&config(&call));
    call.output = with(json!({"type": "array"}));
    expect![[r#"{"tools":[{"toolSpec":{"name":"flowstone_answer_value","inputSchema":{"json":{"type":"object","properties":{"answer":{"type":"array"}},"required":["answer"]}},"description":"Gives the final answer."}}],"toolChoice":{"tool":{"name":"flowstone_answer_value"}}}"#]].assert_eq(&config(&call));
    call.tools = vec![tool("find")];
    expect![[r#"{"tools":[{"toolSpec":{"name":"find","inputSchema":{"json":{"type":"object","properties":{"n":{"type":"integer"}}}},"description":"It can find."}},{"toolSpec":{"name":"flowstone_answer_value","inputSchema":{"json":{"type":"object","properties":{"answer":{"type":"array"}},"required":["answer"]}},"description":"Gives the final answer."}}],"toolChoice":{"any":{}}}"#]].assert_eq(&config(&call));
    // If a model cannot be forced to call a tool, the prompt asks for it.
    call.tools.clear();
    call.model = "meta.llama3-1-70b-instruct-v1:0".into();
    call.output = with(object);
    assert_eq!(config(&call), "null");
    assert!(
        body(BEDROCK, &call)["system"]
            .to_string()
            .contains("JSON Schema")
    );
    for (name, input) in [
        ("flowstone_answer", r#"{\"a\":1}"#),
        ("flowstone_answer_value", r#"{\"answer\":[1]}"#),
    ] {
        let start = format!(
            r#"{{"contentBlockIndex":1,"start":{{"toolUse":{{"toolUseId":"t","name":"{name}"}}}}}}"#
        );
        let delta =
            format!(r#"{{"contentBlockIndex":1,"delta":{{"toolUse":{{"input":"{input}"}}}}}}"#);
        let said = reply(
            BEDROCK,
            &events(&[
                (
                    "contentBlockDelta",
                    r#"{"contentBlockIndex":0,"delta":{"text":"Here:"}}"#,
                ),
                ("contentBlockStart", &start),
                ("contentBlockDelta", &delta),
                ("messageStop", r#"{"stopReason":"tool_use"}"#),
            ]),
        );
        assert!(
            matches!(said.content.as_str(), r#"{"a":1}"# | "[1]"),
            "{said:?}"
        );
        assert_eq!(
            (said.finish_reason.as_str(), said.tool_calls.len()),
            ("stop", 0)
        );
    }
}

#[test]
fn efforts() {
    let mut shown = String::new();
    for (model, effort) in [
        ("anthropic.claude-3-7-sonnet-20250219-v1:0", "low"),
        ("us.anthropic.claude-opus-4-6-v1", "high"),
        ("anthropic.claude-3-haiku-20240307-v1:0", "low"),
        ("openai.gpt-oss-120b-1:0", "medium"),
        ("amazon.nova-2-lite-v1:0", "minimal"),
        ("amazon.nova-2-lite-v1:0", "none"),
        ("cohere.command-r-v1:0", "low"),
    ] {
        let mut call = ask(model, "x");
        call.options.reasoning_effort = Some(effort.into());
        let sent = body(BEDROCK, &call);
        let refused = row(BEDROCK).family.refuses(&call);
        shown.push_str(&format!(
            "{model} {effort}: {} {} {refused:?}\n",
            sent["additionalModelRequestFields"], sent["inferenceConfig"]
        ));
    }
    expect![[r#"
        anthropic.claude-3-7-sonnet-20250219-v1:0 low: {"thinking":{"type":"enabled","budget_tokens":2048}} {"maxTokens":16000} []
        us.anthropic.claude-opus-4-6-v1 high: {"thinking":{"type":"adaptive"},"output_config":{"effort":"high"}} {"maxTokens":32000} []
        anthropic.claude-3-haiku-20240307-v1:0 low: null {"maxTokens":4096} ["reasoning-effort"]
        openai.gpt-oss-120b-1:0 medium: {"reasoning_effort":"medium"} null []
        amazon.nova-2-lite-v1:0 minimal: {"reasoningConfig":{"type":"enabled","maxReasoningEffort":"low"}} null []
        amazon.nova-2-lite-v1:0 none: {"reasoningConfig":{"type":"disabled"}} null []
        cohere.command-r-v1:0 low: null null ["reasoning-effort"]
    "#]].assert_eq(&shown);
    let mut call = ask(NOVA, "x");
    call.messages[0].content.push(image("https://x/y.png"));
    assert_eq!(row(BEDROCK).family.refuses(&call), ["image-url"]);
}

#[test]
fn text_and_usage() {
    reads(
        &events(TEXT),
        expect![[r#"
        content: Grüß Gott
        stop of "" by ""
        117 + 4 = 121, cached Some(100), kept Some(7), thought None"#]],
    );
}

#[test]
fn calls_and_thoughts_are_sent_back_unchanged() {
    reads(
        &events(CALLS),
        expect![[r#"
        content: Two calls.
        reasoning: Hmm.
        call tooluse_1: find {"n":1}
        call tooluse_2: now {}
        tool_calls of "" by ""
        bedrock: [{"reasoningContent":{"reasoningText":{"text":"Hmm.","signature":"c2ln"}}},{"reasoningContent":{"redactedContent":"cmVk"}},{"text":"Two calls."},{"toolUse":{"toolUseId":"tooluse_1","name":"find","input":{"n":1}}},{"toolUse":{"toolUseId":"tooluse_2","name":"now","input":{}}}]"#]],
    );
    let said = reply(BEDROCK, &events(CALLS));
    let mut call = ask(CLAUDE, "x");
    let mut message = calling(&[]);
    message.tool_calls = said.tool_calls;
    message.opaque = said.opaque;
    call.messages.push(message);
    call.messages.push(answering("tooluse_1", None, "1"));
    expect![[r#"[{"reasoningContent":{"reasoningText":{"text":"Hmm.","signature":"c2ln"}}},{"reasoningContent":{"redactedContent":"cmVk"}},{"text":"Two calls."},{"toolUse":{"toolUseId":"tooluse_1","name":"find","input":{"n":1}}},{"toolUse":{"toolUseId":"tooluse_2","name":"now","input":{}}}]"#]].assert_eq(&body(BEDROCK, &call)["messages"][1]["content"].to_string());
}

#[test]
fn finish_reasons() {
    let mut shown = String::new();
    for reason in [
        "end_turn",
        "stop_sequence",
        "max_tokens",
        "model_context_window_exceeded",
        "guardrail_intervened",
        "content_filtered",
        "malformed_tool_use",
        "new_reason",
    ] {
        let stop = json!({"stopReason": reason}).to_string();
        let shown_one = stream(BEDROCK, &events(&[TEXT[1], ("messageStop", &stop)]));
        shown.push_str(&format!("{reason}: {}\n", shown_one.replace('\n', " | ")));
    }
    expect![[r#"
        end_turn: content: Grüß  | stop of "" by ""
        stop_sequence: content: Grüß  | stop of "" by ""
        max_tokens: content: Grüß  | length of "" by ""
        model_context_window_exceeded: content: Grüß  | length of "" by ""
        guardrail_intervened: content: Grüß  | refusal: a guardrail intervened | content_filter of "" by ""
        content_filtered: content: Grüß  | content_filter of "" by ""
        malformed_tool_use: E0808 bad-response: bedrock sent something that is not an answer: the model stopped with malformed_tool_use (Later)
        new_reason: content: Grüß  | new_reason of "" by ""
    "#]].assert_eq(&shown);
    reads(
        &events(&TEXT[..3]),
        expect!["E0807 cut-off: the answer of bedrock broke off after 9 characters (Later)"],
    );
    reads(
        &[],
        expect!["E0807 cut-off: the answer of bedrock broke off before it began (Later)"],
    );
    let bytes = events(TEXT);
    reads(
        &bytes[..bytes.len() / 2],
        expect!["E0807 cut-off: the answer of bedrock broke off after 9 characters (Later)"],
    );
}

#[test]
fn exceptions_in_a_stream() {
    let mut shown = String::new();
    for (name, payload) in [
        ("throttlingException", r#"{"message":"Too many requests"}"#),
        (
            "modelStreamErrorException",
            r#"{"message":"it broke","originalStatusCode":500,"originalMessage":"oh"}"#,
        ),
        ("modelStreamErrorException", r#"{"originalMessage":"oh"}"#),
        (
            "validationException",
            r#"{"message":"Input is too long for requested model."}"#,
        ),
        ("validationException", r#"{"message":"no"}"#),
        ("internalServerException", "{}"),
        ("serviceUnavailableException", "not json"),
        ("accessDeniedException", r#"{"message":"no"}"#),
        ("strangeException", ""),
    ] {
        let bytes = [event(TEXT[1].0, TEXT[1].1), exception(name, payload)].concat();
        shown.push_str(&format!("{name}: {}\n", stream(BEDROCK, &bytes)));
    }
    let error = frame(
        &[
            (":message-type", "error"),
            (":error-code", "InternalFailure"),
            (":error-message", "down"),
        ],
        "",
    );
    shown.push_str(&stream(BEDROCK, &error));
    expect![[r#"
        throttlingException: E0804 rate-limited: bedrock limits the rate of requests: Too many requests (Later)
        modelStreamErrorException: E0805 unavailable: bedrock cannot answer now (500): it broke (Later)
        modelStreamErrorException: E0805 unavailable: bedrock cannot answer now (424): oh (Later)
        validationException: E0803 too-long: the conversation is too long for the model: Input is too long for requested model. (Never)
        validationException: E0813 bad-request: bedrock does not accept the request (400): no (Never)
        internalServerException: E0805 unavailable: bedrock cannot answer now (500): internalServerException (Later)
        serviceUnavailableException: E0805 unavailable: bedrock cannot answer now (503): serviceUnavailableException (Later)
        accessDeniedException: E0801 unauthorized: bedrock does not accept the key: no (Never)
        strangeException: E0805 unavailable: bedrock cannot answer now (500): strangeException (Later)
        E0805 unavailable: bedrock cannot answer now (500): down (Later)"#]].assert_eq(&shown);
}

#[test]
fn invalid_responses_are_errors() {
    for name in [
        "messageStart",
        "contentBlockStart",
        "contentBlockDelta",
        "contentBlockStop",
        "messageStop",
        "metadata",
        "",
        "new",
    ] {
        for payload in [
            "",
            "{",
            "null",
            "[]",
            "1",
            r#"{"contentBlockIndex":-1,"delta":1,"start":1,"stopReason":1,"usage":1}"#,
            r#"{"contentBlockIndex":18446744073709551615,"delta":{"text":1,"toolUse":{"input":{}}},"start":{"toolUse":1},"usage":{"inputTokens":9223372036854775807,"outputTokens":9223372036854775807,"cacheReadInputTokens":1}}"#,
        ] {
            let shown = stream(BEDROCK, &event(name, payload));
            assert!(shown.starts_with("E08"), "{name} {payload}: {shown}");
        }
    }
    for body in [
        "",
        "{",
        "[]",
        "{}",
        r#"{"output":{"message":{"content":[1,{"toolUse":1}]}}}"#,
        r#"{"message":"x"}"#,
    ] {
        assert!(whole(BEDROCK, body).starts_with("E08"), "{body}");
    }
}

#[test]
fn a_response_without_streaming() {
    let body = r#"{"output":{"message":{"role":"assistant","content":[{"reasoningContent":{"reasoningText":{"text":"hm","signature":"s"}}},{"text":"Hi"},{"toolUse":{"toolUseId":"t1","name":"find","input":{"n":1}}}]}},"stopReason":"tool_use","usage":{"inputTokens":1,"outputTokens":2,"totalTokens":3}}"#;
    expect![[r#"
        content: Hi
        reasoning: hm
        call t1: find {"n":1}
        tool_calls of "" by ""
        1 + 2 = 3, cached None, kept None, thought None
        bedrock: [{"reasoningContent":{"reasoningText":{"text":"hm","signature":"s"}}},{"text":"Hi"},{"toolUse":{"toolUseId":"t1","name":"find","input":{"n":1}}}]"#]].assert_eq(&whole(BEDROCK, body));
}

/// A stream as Bedrock sends it.
fn streams(bytes: &[u8]) -> Say {
    answer(
        "200 OK",
        &["content-type: application/vnd.amazon.eventstream"],
        bytes,
    )
}

fn world(server: &Server, auth: &str) -> World {
    World::new()
        .secret("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
        .secret("AWS_SECRET_ACCESS_KEY", "s3cret")
        .settings(&format!(
            "{{:connections {{:ai {{:backend :bedrock :base-url \"{}\" :region \"eu-west-1\" :model \"{CLAUDE}\" {auth}}}}}}}",
            server.url
        ))
}

const ASK: &str = "{:connection :ai :prompt \"Hi\"}";

#[test]
fn the_step_signs_its_request() {
    wait(async {
        let server = Server::start(vec![streams(&events(TEXT))]);
        let shown = world(&server, "").run(&Llm, ASK).await;
        expect![[r#"{:content "Grüß Gott" :usage {:prompt-tokens 117 :completion-tokens 4 :total-tokens 121 :cached-tokens 100 :cache-write-tokens 7} :tokens-used 121 :model "eu.anthropic.claude-3-5-sonnet-20241022-v2:0" :provider :bedrock :finish-reason "stop" :iterations 1}"#]].assert_eq(&shown);
        let request = server.requests().remove(0);
        expect![
            "POST /model/eu.anthropic.claude-3-5-sonnet-20241022-v2%3A0/converse-stream HTTP/1.1"
        ]
        .assert_eq(request.lines().next().unwrap());
        let line = |name: &str| {
            let found = request.lines().find(|it| it.starts_with(name));
            found
                .unwrap_or_default()
                .split(", Signature")
                .next()
                .unwrap()
                .to_string()
        };
        let date = line("x-amz-date: ");
        let day = &date["x-amz-date: ".len()..][..8];
        assert_eq!(
            line("authorization: "),
            format!(
                "authorization: AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/{day}/eu-west-1/bedrock/aws4_request, SignedHeaders=content-type;host;x-amz-date"
            )
        );
        assert_eq!(line("x-amz-security-token"), "");
    });
}

#[test]
fn credentials_by_name_and_by_token() {
    wait(async {
        let server = Server::start(vec![streams(&events(TEXT))]);
        let named = ":auth {:type :aws-sigv4 :access-key-id-ref :mine :secret-access-key-ref :my-secret :session-token-ref :my-session :region \"us-west-2\"}";
        let shown = world(&server, named).run(&Llm, ASK).await;
        expect![[r#"
            E0752 missing-secret: the secret `my-session`, which `:ai` needs, is not set
              hint: set MY_SESSION in the environment, or in `.env` beside the flows
              hint: or say where it is in flowstone.edn: {:secrets {:my-session {:env "..."}}}"#]]
        .assert_eq(&shown);
        let own = world(&server, named)
            .secret("mine", "AKMINE")
            .secret("my-secret", "x-of-mine")
            .secret("my-session", "tok-of-mine");
        assert!(own.run(&Llm, ASK).await.contains("Grüß Gott"));
        let request = server.requests().remove(0);
        assert!(
            request.contains("Credential=AKMINE/") && request.contains("/us-west-2/bedrock/"),
            "{request}"
        );
        assert!(
            request.contains("\nx-amz-security-token: tok-of-mine\n"),
            "{request}"
        );
        let bearer = world(&server, "").secret("AWS_BEARER_TOKEN_BEDROCK", "b-key-of-mine");
        assert!(bearer.run(&Llm, ASK).await.contains("Grüß Gott"));
        assert!(server.requests()[1].contains("\nauthorization: Bearer b-key-of-mine\n"));
    });
}

#[test]
fn the_address_follows_from_the_region() {
    let world = World::new();
    let ask = "{:provider :bedrock :model \"m\" :prompt \"x\"}";
    expect![[r#"
        E0810 bad-config: no AWS region is set
          hint: give the connection a `:region`, as in `:region "eu-west-1"`, or set AWS_REGION"#]]
    .assert_eq(&wait(world.run(&Llm, ask)));
    let odd = World::new().settings("{:environment {:AWS_REGION \"evil.example/#\"}}");
    expect![[r#"
        E0810 bad-config: `evil.example/#` cannot be a region of AWS
          hint: a region looks like `eu-west-1`"#]]
    .assert_eq(&wait(odd.run(&Llm, ask)));
    let unset = World::new().settings("{:environment {:AWS_REGION \"eu-west-1\"}}");
    expect![[r#"
        E0752 missing-secret: the secret `AWS_ACCESS_KEY_ID`, which `:bedrock` needs, is not set
          hint: set AWS_ACCESS_KEY_ID in the environment, or in `.env` beside the flows
          hint: or say where it is in flowstone.edn: {:secrets {:AWS_ACCESS_KEY_ID {:env "..."}}}"#]].assert_eq(&wait(unset.run(&Llm, ask)));
}

#[test]
fn errors_before_a_stream() {
    wait(async {
        let says = |status: &str, kind: &str, body: &str| {
            let kind = format!("x-amzn-errortype: {kind}:http://internal.amazon.com/");
            answer(status, &["content-type: application/json", &kind], body)
        };
        let server = Server::start(vec![
            says(
                "403 Forbidden",
                "UnrecognizedClientException",
                r#"{"message":"The security token included in the request is invalid."}"#,
            ),
            says(
                "400 Bad Request",
                "ValidationException",
                r#"{"message":"Input is too long for requested model."}"#,
            ),
            says(
                "400 Bad Request",
                "ServiceQuotaExceededException",
                r#"{"message":"quota"}"#,
            ),
            says(
                "429 Too Many Requests",
                "ThrottlingException",
                r#"{"message":"Too many tokens, please wait before trying again."}"#,
            ),
            says(
                "424 Failed Dependency",
                "ModelErrorException",
                r#"{"message":"the model failed"}"#,
            ),
            streams(&[events(&TEXT[..2]), vec![0; 40]].concat()),
        ]);
        let mut shown = String::new();
        for _ in 0..6 {
            shown.push_str(&world(&server, "").run(&Llm, ASK).await);
            shown.push('\n');
        }
        expect![[r#"
            E0801 unauthorized: bedrock does not accept the key: The security token included in the request is invalid.
              hint: check the key; it belongs to one provider and may have been revoked
            E0803 too-long: the conversation is too long for the model: Input is too long for requested model.
              hint: send less, or use a model with a larger context
            E0804 rate-limited: bedrock limits the rate of requests: quota
              retry: later
              hint: `:retry` waits as long as the provider asks for
            E0804 rate-limited: bedrock limits the rate of requests: Too many tokens, please wait before trying again.
              retry: later
              hint: `:retry` waits as long as the provider asks for
            E0805 unavailable: bedrock cannot answer now (424): the model failed
              retry: later
              hint: try again later, or use another `:provider`
              data: {:status 424}
            E0808 bad-response: bedrock sent something that is not an answer: the checksum of a message's lengths is wrong
              retry: later
              hint: check that the connection's `:base-url` is that of such a provider
              data: {:preview "�������Rl�v�\u000b:event-type��\u000cmessageStart\r:content-type���application/json\r:message-type���event{\"role\":\"assistant\",\"p\":\"abcd\"}�pY+�������WL;^_\u000b:event-type���contentBlockDelta\r:content-type���application/json\r:message-type���event{\"contentBlockIndex\":0,\"delta\":{\"text\":\"Grüß \"}}��z5����������������������������������������"}
        "#]].assert_eq(&shown);
    });
}
