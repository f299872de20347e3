//! Anthropic's wire format: bodies, streams and errors.

use expect_test::{Expect, expect};
use flowstone_steps::llm::call::{Call, Message, Opaque, Options, Output, Role, ToolChoice};
use flowstone_steps::llm::claude::{Claude, Thinking};
use serde_json::{Value as Json, json};

use crate::wire::{
    address, answering, ask, body, calling, events, image, pretty, reply, stream, tool, whole,
};

const WHO: &str = "anthropic";

const TEXT: &[&str] = &[
    r#"{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","content":[],"model":"claude-sonnet-5-5","stop_reason":null,"usage":{"input_tokens":10,"cache_creation_input_tokens":200,"cache_read_input_tokens":3000,"output_tokens":1}}}"#,
    r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#,
    r#"{"type":"ping"}"#,
    r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Grüß"}}"#,
    r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":" Gott"}}"#,
    r#"{"type":"content_block_stop","index":0}"#,
    r#"{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":12,"output_tokens_details":{"thinking_tokens":4}}}"#,
    r#"{"type":"message_stop"}"#,
];

const START: &str = r#"{"type":"message_start","message":{"id":"m","model":"c"}}"#;
const STOP: &str = r#"{"type":"message_stop"}"#;

fn with(output: Output, options: Options) -> Call {
    Call {
        output,
        options,
        ..ask("claude-sonnet-5-5", "x")
    }
}

fn schema(schema: Json, strict: bool) -> Output {
    Output::Schema {
        name: "answer".into(),
        schema,
        strict,
    }
}

fn effort(word: &str) -> Options {
    Options {
        reasoning_effort: Some(word.into()),
        ..Options::default()
    }
}

#[track_caller]
fn sends(call: &Call, expected: Expect) {
    expected.assert_eq(&pretty(&body(WHO, call)));
}

#[track_caller]
fn reads(data: &[&str], expected: Expect) {
    expected.assert_eq(&stream(WHO, &events(data)));
}

/// Returns a stream of one tool call whose arguments come in these pieces.
fn tool_stream(name: &str, pieces: &[&str], before: &[&str]) -> Vec<String> {
    let mut data = vec![START.to_string()];
    data.extend(before.iter().map(|it| (*it).to_string()));
    data.push(json!({"type": "content_block_start", "index": 7, "content_block": {"type": "tool_use", "id": "t1", "name": name, "input": {}}}).to_string());
    data.extend(pieces.iter().map(|piece| {
        json!({"type": "content_block_delta", "index": 7, "delta": {"type": "input_json_delta", "partial_json": piece}}).to_string()
    }));
    data.push(r#"{"type":"message_delta","delta":{"stop_reason":"tool_use"}}"#.to_string());
    data.push(STOP.to_string());
    data
}

#[track_caller]
fn reads_tool(name: &str, pieces: &[&str], expected: Expect) {
    let data = tool_stream(name, pieces, &[]);
    let data: Vec<&str> = data.iter().map(String::as_str).collect();
    reads(&data, expected);
}

#[test]
fn addresses() {
    for (base, expected) in [
        ("https://a/v1", "https://a/v1/messages"),
        ("https://a/v1/", "https://a/v1/messages"),
        ("https://a", "https://a/v1/messages"),
        ("https://a/anthropic", "https://a/anthropic/v1/messages"),
    ] {
        assert_eq!(address(WHO, base, "m"), expected);
    }
}

#[test]
fn model_generations_are_recognized_by_name() {
    let of = |name: &str| Claude::of(name).map(|it| format!("{it:?}"));
    let is = |major, minor| Some(format!("Claude {{ major: {major}, minor: {minor} }}"));
    for (name, expected) in [
        ("claude-3-5-sonnet-20241022", is(3, 5)),
        ("claude-3-opus-20240229", is(3, 0)),
        ("claude-opus-4-20250514", is(4, 0)),
        ("claude-opus-4-1-20250805", is(4, 1)),
        ("eu.anthropic.claude-opus-4-5-20251101-v1:0", is(4, 5)),
        ("anthropic/claude-4.6-sonnet", is(4, 6)),
        ("anthropic.claude-sonnet-5", is(5, 0)),
        ("claude-haiku-5-5", is(5, 5)),
        ("claude-sonnet-latest", is(5, 5)),
        ("claude-9999999999999999999-1", is(1, 0)),
        ("smollm2", None),
        ("", None),
    ] {
        assert_eq!(of(name), expected, "{name}");
    }
    for (name, thinking) in [
        ("smollm2", Thinking::Budget),
        ("claude-3-5-haiku-latest", Thinking::Never),
        ("claude-3-7-sonnet-latest", Thinking::Budget),
        ("claude-opus-4-5", Thinking::Budget),
        ("claude-opus-4-8", Thinking::Asked),
        ("claude-opus-5", Thinking::Usual),
        ("claude-opus-5-5", Thinking::Always),
    ] {
        assert_eq!(Claude::thinking(name), thinking, "{name}");
    }
}

#[test]
fn a_call_with_everything() {
    let mut call = ask("claude-opus-4-6", "What is this?");
    call.messages
        .insert(0, Message::text(Role::System, "Be brief."));
    call.messages[1]
        .content
        .push(image("data:image/png;base64,AAAA"));
    call.messages[1].content.push(image("https://x/y.webp"));
    call.tools = vec![tool("find"), tool("count")];
    call.tool_choice = ToolChoice::Required;
    call.options = Options {
        temperature: Some(0.5),
        top_p: Some(1.0),
        stop: vec!["END".into()],
        max_tokens: Some(100),
        cache_system: true,
        ..Options::default()
    };
    call.extra = vec![
        ("metadata".into(), json!({"user_id": "u"})),
        ("top_p".into(), Json::Null),
    ];
    sends(
        &call,
        expect![[r#"
            {
              "model": "claude-opus-4-6",
              "max_tokens": 100,
              "system": [
                {
                  "type": "text",
                  "text": "Be brief.",
                  "cache_control": {
                    "type": "ephemeral"
                  }
                }
              ],
              "messages": [
                {
                  "role": "user",
                  "content": [
                    {
                      "type": "text",
                      "text": "What is this?"
                    },
                    {
                      "type": "image",
                      "source": {
                        "type": "base64",
                        "media_type": "image/png",
                        "data": "AAAA"
                      }
                    },
                    {
                      "type": "image",
                      "source": {
                        "type": "url",
                        "url": "https://x/y.webp"
                      },
                      "cache_control": {
                        "type": "ephemeral"
                      }
                    }
                  ]
                }
              ],
              "tools": [
                {
                  "name": "find",
                  "description": "It can find.",
                  "input_schema": {
                    "type": "object",
                    "properties": {
                      "n": {
                        "type": "integer"
                      }
                    }
                  }
                },
                {
                  "name": "count",
                  "description": "It can count.",
                  "input_schema": {
                    "type": "object",
                    "properties": {
                      "n": {
                        "type": "integer"
                      }
                    }
                  },
                  "cache_control": {
                    "type": "ephemeral"
                  }
                }
              ],
              "tool_choice": {
                "type": "any"
              },
              "stop_sequences": [
                "END"
              ],
              "temperature": 0.5,
              "metadata": {
                "user_id": "u"
              },
              "stream": true
            }"#]],
    );
}

#[test]
fn the_conversation() {
    let mut call = ask("claude-sonnet-5-5", "first");
    let mut failed = answering("c/2", None, "no such file");
    failed.is_error = true;
    let mut shot = answering("c3", None, "see");
    shot.content.push(image("data:image/svg+xml,%3Csvg/%3E"));
    call.messages.extend([
        Message::text(Role::User, "second"),
        Message {
            content: Message::text(Role::Assistant, "I look.").content,
            ..calling(&[
                ("c1", "find", r#"{"n":1}"#),
                ("c/2", "find", ""),
                ("c3", "find", "{not json"),
            ])
        },
        Message::text(Role::System, "One turn is left."),
        answering("c1", Some("find"), "found"),
        failed,
        shot,
        Message::text(Role::User, "go on"),
        Message::text(Role::Assistant, ""),
    ]);
    expect![[r#"
        [
          {
            "role": "user",
            "content": [
              {
                "type": "text",
                "text": "first"
              },
              {
                "type": "text",
                "text": "second"
              }
            ]
          },
          {
            "role": "assistant",
            "content": [
              {
                "type": "text",
                "text": "I look."
              },
              {
                "type": "tool_use",
                "id": "c1",
                "name": "find",
                "input": {
                  "n": 1
                }
              },
              {
                "type": "tool_use",
                "id": "c_2",
                "name": "find",
                "input": {}
              },
              {
                "type": "tool_use",
                "id": "c3",
                "name": "find",
                "input": {
                  "arguments_text": "{not json"
                }
              }
            ]
          },
          {
            "role": "user",
            "content": [
              {
                "type": "tool_result",
                "tool_use_id": "c1",
                "content": "found"
              },
              {
                "type": "tool_result",
                "tool_use_id": "c_2",
                "content": "no such file",
                "is_error": true
              },
              {
                "type": "tool_result",
                "tool_use_id": "c3",
                "content": [
                  {
                    "type": "text",
                    "text": "see"
                  },
                  {
                    "type": "image",
                    "source": {
                      "type": "base64",
                      "media_type": "image/svg+xml",
                      "data": "PHN2Zy8+"
                    }
                  }
                ]
              },
              {
                "type": "text",
                "text": "<system>\nOne turn is left.\n</system>"
              },
              {
                "type": "text",
                "text": "go on"
              }
            ]
          }
        ]"#]]
    .assert_eq(&pretty(&body(WHO, &call)["messages"]));
}

#[test]
fn structured_answers() {
    let object = json!({"$schema": "s", "type": "object", "properties": {"minimum": {"type": "integer", "minimum": 1, "description": "A number"}, "tags": {"type": "array", "items": {"type": "string", "maxLength": 9}}}, "required": ["minimum", "tags"], "additionalProperties": false});
    let list = json!({"type": "array", "items": {"type": "string"}});
    let shown = |call: &Call| {
        let body = body(WHO, call);
        let keys = [
            "system",
            "tools",
            "tool_choice",
            "thinking",
            "output_config",
        ];
        let some = keys.iter().filter(|key| !body[**key].is_null());
        let lines: Vec<String> = some.map(|key| format!("{key}: {}", body[*key])).collect();
        lines.join("\n")
    };
    let case = |model: &str, output: Output, change: fn(&mut Call)| {
        let mut call = with(output, Options::default());
        call.model = model.into();
        change(&mut call);
        shown(&call)
    };
    // The interface enforces the schema; constraints that it does not support become part of the description.
    expect![[r#"output_config: {"format":{"type":"json_schema","schema":{"type":"object","properties":{"minimum":{"type":"integer","description":"A number (minimum: 1)"},"tags":{"type":"array","items":{"type":"string","description":"(maxLength: 9)"}}},"required":["minimum","tags"],"additionalProperties":false}}}"#]].assert_eq(&case(
        "claude-haiku-4-5",
        schema(object.clone(), true),
        |_| {},
    ));
    // An open schema, or one without `strict`, becomes a tool.
    expect![[r#"
        tools: [{"name":"flowstone_answer","description":"Gives the final answer.","input_schema":{"$schema":"s","type":"object","properties":{"minimum":{"type":"integer","minimum":1,"description":"A number"},"tags":{"type":"array","items":{"type":"string","maxLength":9}}},"required":["minimum","tags"],"additionalProperties":false}}]
        tool_choice: {"type":"tool","name":"flowstone_answer"}"#]].assert_eq(&case(
        "claude-opus-5",
        schema(object.clone(), false),
        |_| {},
    ));
    expect![[r#"
        tools: [{"name":"flowstone_answer_value","description":"Gives the final answer.","input_schema":{"type":"object","properties":{"answer":{"type":"array","items":{"type":"string"}}},"required":["answer"]}}]
        tool_choice: {"type":"tool","name":"flowstone_answer_value"}"#]].assert_eq(&case("smollm2", schema(list.clone(), true), |_| {}));
    // With other tools, the model may call those first.
    expect![[r#"
        tools: [{"name":"find","description":"It can find.","input_schema":{"type":"object","properties":{"n":{"type":"integer"}}}},{"name":"flowstone_answer","description":"Gives the final answer.","input_schema":{"$schema":"s","type":"object","properties":{"minimum":{"type":"integer","minimum":1,"description":"A number"},"tags":{"type":"array","items":{"type":"string","maxLength":9}}},"required":["minimum","tags"],"additionalProperties":false}}]
        tool_choice: {"type":"any"}"#]].assert_eq(&case("smollm2", schema(object.clone(), true), |call| {
        call.tools = vec![tool("find")];
    }));
    expect![[r#"
        tools: [{"name":"find","description":"It can find.","input_schema":{"type":"object","properties":{"n":{"type":"integer"}}}},{"name":"flowstone_answer","description":"Gives the final answer.","input_schema":{"$schema":"s","type":"object","properties":{"minimum":{"type":"integer","minimum":1,"description":"A number"},"tags":{"type":"array","items":{"type":"string","maxLength":9}}},"required":["minimum","tags"],"additionalProperties":false}}]
        tool_choice: {"type":"tool","name":"flowstone_answer"}"#]].assert_eq(&case("smollm2", schema(object.clone(), true), |call| {
        call.tools = vec![tool("find")];
        call.tool_choice = ToolChoice::None;
    }));
    // The model cannot be forced to call the tool, so the prompt asks for it.
    expect![[r#"
        system: "Give the final answer by calling the tool `flowstone_answer_value`, and in no other way."
        tools: [{"name":"flowstone_answer_value","description":"Gives the final answer.","input_schema":{"type":"object","properties":{"answer":{"type":"array","items":{"type":"string"}}},"required":["answer"]}}]"#]].assert_eq(&case(
        "claude-sonnet-5-5",
        schema(list.clone(), false),
        |_| {},
    ));
    expect![[r#"
        system: "Give the final answer by calling the tool `flowstone_answer_value`, and in no other way."
        tools: [{"name":"flowstone_answer_value","description":"Gives the final answer.","input_schema":{"type":"object","properties":{"answer":{"type":"array","items":{"type":"string"}}},"required":["answer"]}}]
        thinking: {"type":"enabled","budget_tokens":2048}"#]].assert_eq(&case("smollm2", schema(list, true), |call| {
        call.options = effort("low");
    }));
    expect![[r#"system: "Answer with one JSON document and nothing else.""#]].assert_eq(&case(
        "smollm2",
        Output::Json,
        |_| {},
    ));
    expect![[r#"output_config: {"format":{"type":"x"}}"#]].assert_eq(&case(
        "smollm2",
        Output::Raw(json!({"type": "x"})),
        |_| {},
    ));
}

#[test]
fn tool_choices() {
    for (model, choice, expected) in [
        ("claude-opus-5", ToolChoice::Auto, "null null"),
        (
            "claude-opus-5",
            ToolChoice::Required,
            r#"{"type":"any"} null"#,
        ),
        ("claude-opus-5", ToolChoice::None, r#"{"type":"none"} null"#),
        // This model cannot be forced to call a tool.
        (
            "claude-opus-5-5",
            ToolChoice::Required,
            r#"null "Call at least one of the tools now.""#,
        ),
    ] {
        let mut call = ask(model, "x");
        call.tools = vec![tool("find")];
        call.tool_choice = choice;
        let body = body(WHO, &call);
        assert_eq!(
            format!("{} {}", body["tool_choice"], body["system"]),
            expected
        );
    }
}

#[test]
fn efforts() {
    let lines: Vec<String> = [
        ("claude-sonnet-5-5", "high", None),
        ("claude-sonnet-5-5", "none", None),
        ("claude-sonnet-5-5", "xhigh", Some(500)),
        ("claude-opus-5", "none", None),
        ("claude-opus-4-8", "minimal", None),
        ("claude-opus-4-8", "none", None),
        ("claude-opus-4-6", "xhigh", None),
        ("claude-opus-4-5", "none", None),
        ("claude-opus-4-5", "low", None),
        ("claude-opus-4-5", "max", None),
        ("claude-opus-4-5", "high", Some(4_000)),
        ("claude-opus-4-5", "high", Some(100)),
        ("claude-opus-4-5", "much", None),
        ("claude-3-5-sonnet-latest", "low", None),
        ("claude-3-5-sonnet-latest", "none", None),
        ("smollm2", "medium", None),
    ]
    .into_iter()
    .map(|(model, word, limit)| {
        let mut call = ask(model, "x");
        call.options = Options {
            max_tokens: limit,
            temperature: Some(0.5),
            ..effort(word)
        };
        let body = body(WHO, &call);
        let refused = crate::wire::row(WHO).family.refuses(&call);
        let (limit, thinking, config) = (
            &body["max_tokens"],
            &body["thinking"],
            &body["output_config"],
        );
        assert!(
            thinking["budget_tokens"].is_null()
                || thinking["budget_tokens"].as_i64() < limit.as_i64()
        );
        format!("{model} {word}: {limit} {thinking} {config} refuses {refused:?}")
    })
    .collect();
    expect![[r#"
        claude-sonnet-5-5 high: 32000 {"type":"adaptive","display":"summarized"} {"effort":"high"} refuses ["temperature"]
        claude-sonnet-5-5 none: 32000 null {"effort":"low"} refuses ["temperature"]
        claude-sonnet-5-5 xhigh: 500 {"type":"adaptive","display":"summarized"} {"effort":"xhigh"} refuses ["temperature"]
        claude-opus-5 none: 32000 {"type":"disabled"} null refuses ["temperature"]
        claude-opus-4-8 minimal: 32000 {"type":"adaptive","display":"summarized"} {"effort":"low"} refuses ["temperature"]
        claude-opus-4-8 none: 32000 null null refuses ["temperature"]
        claude-opus-4-6 xhigh: 32000 {"type":"adaptive"} {"effort":"high"} refuses []
        claude-opus-4-5 none: 16000 null null refuses []
        claude-opus-4-5 low: 16000 {"type":"enabled","budget_tokens":2048} null refuses ["temperature"]
        claude-opus-4-5 max: 16000 {"type":"enabled","budget_tokens":12000} null refuses ["temperature"]
        claude-opus-4-5 high: 4000 {"type":"enabled","budget_tokens":3000} null refuses ["temperature"]
        claude-opus-4-5 high: 1124 {"type":"enabled","budget_tokens":1024} null refuses ["temperature"]
        claude-opus-4-5 much: 16000 null null refuses ["reasoning-effort"]
        claude-3-5-sonnet-latest low: 4096 null null refuses ["reasoning-effort"]
        claude-3-5-sonnet-latest none: 4096 null null refuses []
        smollm2 medium: 4096 {"type":"enabled","budget_tokens":3072} null refuses ["temperature"]"#]].assert_eq(&lines.join("\n"));
}

#[test]
fn text_comes_in_pieces() {
    reads(
        TEXT,
        expect![[r#"
        content: Grüß Gott
        stop of "msg_1" by "claude-sonnet-5-5"
        3210 + 12 = 3222, cached Some(3000), kept Some(200), thought Some(4)"#]],
    );
}

#[test]
fn thoughts_and_calls_are_sent_back_unchanged() {
    let data = [
        START,
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"Two "}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"calls."}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"c2ln"}}"#,
        r#"{"type":"content_block_stop","index":0}"#,
        r#"{"type":"content_block_start","index":1,"content_block":{"type":"redacted_thinking","data":"ZGF0YQ=="}}"#,
        r#"{"type":"content_block_start","index":2,"content_block":{"type":"text","text":""}}"#,
        // Two open blocks at once, with the later one first.
        r#"{"type":"content_block_start","index":4,"content_block":{"type":"tool_use","id":"t2","name":"count","input":{}}}"#,
        r#"{"type":"content_block_start","index":3,"content_block":{"type":"tool_use","id":"t1","name":"find","input":{}}}"#,
        r#"{"type":"content_block_delta","index":4,"delta":{"type":"input_json_delta","partial_json":""}}"#,
        r#"{"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":"{\"n\""}}"#,
        r#"{"type":"content_block_delta","index":2,"delta":{"type":"text_delta","text":"Äh, so."}}"#,
        r#"{"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":": 1}"}}"#,
        r#"{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"input_tokens":5,"output_tokens":9}}"#,
        STOP,
    ];
    reads(
        &data,
        expect![[r#"
        content: Äh, so.
        reasoning: Two calls.
        call t1: find {"n": 1}
        call t2: count {}
        tool_calls of "m" by "c"
        5 + 9 = 14, cached None, kept None, thought None
        anthropic: [{"type":"thinking","thinking":"Two calls.","signature":"c2ln"},{"type":"redacted_thinking","data":"ZGF0YQ=="},{"type":"text","length":7},{"type":"tool_use","id":"t1"},{"type":"tool_use","id":"t2"}]"#]],
    );
    let reply = reply(WHO, &events(&data));
    let said = Message {
        content: Message::text(Role::Assistant, reply.content).content,
        tool_calls: reply.tool_calls,
        opaque: reply.opaque,
        ..Message::empty(Role::Assistant)
    };
    let sent = |message: Message| {
        let mut call = ask("claude-sonnet-5-5", "x");
        call.messages.push(message);
        body(WHO, &call)["messages"][1]["content"].to_string()
    };
    expect![[r#"[{"type":"thinking","thinking":"Two calls.","signature":"c2ln"},{"type":"redacted_thinking","data":"ZGF0YQ=="},{"type":"text","text":"Äh, so."},{"type":"tool_use","id":"t1","name":"find","input":{"n":1}},{"type":"tool_use","id":"t2","name":"count","input":{}}]"#]].assert_eq(&sent(said.clone()));
    // A flow may change a message: its thoughts stay, and its text is the new one.
    expect![[r#"[{"type":"thinking","thinking":"Two calls.","signature":"c2ln"},{"type":"redacted_thinking","data":"ZGF0YQ=="},{"type":"text","text":"Otherwise."},{"type":"tool_use","id":"t2","name":"count","input":{}}]"#]].assert_eq(&sent(Message {
        content: Message::text(Role::Assistant, "Otherwise.").content,
        tool_calls: said.tool_calls[1..].to_vec(),
        ..said.clone()
    }));
    // Opaque data of another family are not read.
    expect![[r#"[{"type":"text","text":"Äh, so."},{"type":"tool_use","id":"t1","name":"find","input":{"n":1}},{"type":"tool_use","id":"t2","name":"count","input":{}}]"#]].assert_eq(&sent(Message {
        opaque: Some(Opaque {
            family: "google".into(),
            blocks: said.opaque.clone().unwrap().blocks,
        }),
        ..said
    }));
}

#[test]
fn an_answer_by_a_tool_is_plain_content() {
    reads_tool(
        "flowstone_answer",
        &["{\"a\"", ": 1}"],
        expect![[r#"
        content: {"a": 1}
        stop of "m" by "c""#]],
    );
    reads_tool(
        "flowstone_answer",
        &[],
        expect![[r#"
        content: {}
        stop of "m" by "c""#]],
    );
    reads_tool(
        "find",
        &["{\"a\": "],
        expect![[r#"
        call t1: find {"a": 
        tool_calls of "m" by "c""#]],
    );
    // Input that is not an object is returned at the end in one piece.
    let value = |data: &[&str]| {
        let reply = reply(WHO, &events(data));
        assert!(reply.tool_calls.is_empty() && reply.opaque.is_none());
        reply.content
    };
    let text = r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"Here it is."}}"#;
    let data = tool_stream(
        "flowstone_answer_value",
        &["{\"answer\":", "[1,2]}"],
        &[text],
    );
    let data: Vec<&str> = data.iter().map(String::as_str).collect();
    assert_eq!(value(&data), "[1,2]");
}

#[test]
fn finish_reasons() {
    for (reason, expected) in [
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),
        ("tool_use", "tool_calls"),
        ("pause_turn", "pause_turn"),
        ("refusal", "refusal"),
        ("something new", "something new"),
    ] {
        let end = json!({"type": "message_delta", "delta": {"stop_reason": reason}}).to_string();
        let reply = reply(WHO, &events(&[START, &end, STOP]));
        assert_eq!(reply.finish_reason, expected);
        assert_eq!(reply.refusal.is_empty(), reason != "refusal");
    }
    reads(
        &[
            START,
            r#"{"type":"message_delta","delta":{"stop_reason":"refusal","stop_details":{"type":"refusal","category":"cyber","explanation":"That is harmful."}}}"#,
            STOP,
        ],
        expect![[r#"
            refusal: That is harmful.
            refusal of "m" by "c""#]],
    );
}

#[test]
fn complete_responses() {
    expect![[r#"
        content: Hi
        reasoning: hm
        call t: find {"n":1}
        tool_calls of "m1" by "c"
        1 + 2 = 3, cached None, kept None, thought None
        anthropic: [{"type":"thinking","thinking":"hm","signature":"s"},{"type":"text","length":2},{"type":"tool_use","id":"t"},{"type":"server_tool_use","id":"s1","name":"web_search","input":{"query":"q"}}]"#]].assert_eq(&whole(
        WHO,
        r#"{"id":"m1","type":"message","role":"assistant","model":"c","content":[{"type":"thinking","thinking":"hm","signature":"s"},{"type":"text","text":"Hi"},{"type":"tool_use","id":"t","name":"find","input":{"n":1}},{"type":"server_tool_use","id":"s1","name":"web_search","input":{"query":"q"}}],"stop_reason":"tool_use","usage":{"input_tokens":1,"output_tokens":2}}"#,
    ));
    for (body, expected) in [
        (
            "",
            expect![
                "E0808 bad-response: anthropic sent something that is not an answer: the answer is not JSON (EOF while parsing a value at line 1 column 0) (Later)"
            ],
        ),
        (
            "[]",
            expect![
                "E0808 bad-response: anthropic sent something that is not an answer: it has no `content` (Later)"
            ],
        ),
        (
            r#"{"content":"text"}"#,
            expect![
                "E0808 bad-response: anthropic sent something that is not an answer: it has no `content` (Later)"
            ],
        ),
        (
            r#"{"content":[{"text":"x"}]}"#,
            expect![
                "E0808 bad-response: anthropic sent something that is not an answer: a block of it has no `type` (Later)"
            ],
        ),
        (
            r#"{"content":[]}"#,
            expect![
                "E0808 bad-response: anthropic sent something that is not an answer: its `content` is empty, and it has no `stop_reason` (Later)"
            ],
        ),
        (
            r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#,
            expect!["E0805 unavailable: anthropic cannot answer now (529): Overloaded (Later)"],
        ),
    ] {
        expected.assert_eq(&whole(WHO, body));
    }
}

#[test]
fn errors_in_a_stream() {
    let text =
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#;
    let error = |kind: &str, message: &str| {
        json!({"type": "error", "error": {"type": kind, "message": message}}).to_string()
    };
    let cases = [
        (error("overloaded_error", "Overloaded"), expect!["E0805 unavailable: anthropic cannot answer now (529): Overloaded (Later)"]),
        (error("rate_limit_error", "Slow down"), expect!["E0804 rate-limited: anthropic limits the rate of requests: Slow down (Later)"]),
        (error("api_error", "Internal"), expect!["E0805 unavailable: anthropic cannot answer now (500): Internal (Later)"]),
        (error("authentication_error", "invalid x-api-key"), expect!["E0801 unauthorized: anthropic does not accept the key: invalid x-api-key (Never)"]),
        (error("permission_error", "not yours"), expect!["E0801 unauthorized: anthropic does not accept the key: not yours (Never)"]),
        (error("not_found_error", "model: x"), expect!["E0802 not-found: anthropic does not know what was requested: model: x (Never)"]),
        (error("request_too_large", "too many bytes"), expect!["E0803 too-long: the conversation is too long for the model: too many bytes (Never)"]),
        (
            error("invalid_request_error", "prompt is too long: 1 > 0"),
            expect!["E0803 too-long: the conversation is too long for the model: prompt is too long: 1 > 0 (Never)"],
        ),
        (error("invalid_request_error", "bad"), expect!["E0813 bad-request: anthropic does not accept the request (400): bad (Never)"]),
        (error("billing_error", "no credit"), expect!["E0804 no-credit: the account at anthropic has no credit left: no credit (Never)"]),
        ("{not json".into(), expect!["E0808 bad-response: anthropic sent something that is not an answer: an event is not JSON (key must be a string at line 1 column 2) (Later)"]),
        (
            r#"{"type":"content_block_delta","index":9,"delta":{"type":"text_delta","text":"x"}}"#.into(),
            expect!["E0808 bad-response: anthropic sent something that is not an answer: a piece of a block that never began (Later)"],
        ),
        (
            r#"{"type":"content_block_delta","index":"0","delta":{"type":"text_delta","text":"x"}}"#.into(),
            expect!["E0808 bad-response: anthropic sent something that is not an answer: a block's event has no `index` (Later)"],
        ),
        (
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":7}}"#.into(),
            expect!["E0808 bad-response: anthropic sent something that is not an answer: a piece has no `text` (Later)"],
        ),
        (
            r#"{"type":"content_block_delta","index":0}"#.into(),
            expect!["E0808 bad-response: anthropic sent something that is not an answer: a piece has no `type` (Later)"],
        ),
        (
            r#"{"type":"content_block_start","index":-1,"content_block":{"type":"text"}}"#.into(),
            expect!["E0808 bad-response: anthropic sent something that is not an answer: a block's event has no `index` (Later)"],
        ),
        (
            r#"{"type":"content_block_start","index":1,"content_block":"text"}"#.into(),
            expect!["E0808 bad-response: anthropic sent something that is not an answer: a block begins without a `type` (Later)"],
        ),
        // The stream breaks off.
        (
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"abc"}}"#.into(),
            expect!["E0807 cut-off: the answer of anthropic broke off after 3 characters (Later)"],
        ),
    ];
    for (event, expected) in cases {
        expected.assert_eq(&stream(WHO, &events(&[START, text, &event])));
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
            r#"{"type":"something_new","index":"x"}"#,
            r#"{"type":"message_start","message":{"id":7,"model":null,"usage":{"input_tokens":"many","output_tokens":-3}}}"#,
            r#"{"type":"content_block_start","index":18446744073709551615,"content_block":{"type":"hologram","depth":3}}"#,
            r#"{"type":"content_block_start","index":2,"content_block":{"type":"text","text":"Hi"}}"#,
            r#"{"type":"content_block_delta","index":2,"delta":{"type":"sparkle_delta","sparkle":1}}"#,
            r#"{"type":"content_block_delta","index":2,"delta":{"type":"citations_delta","citation":{"a":1}}}"#,
            r#"{"type":"message_delta","delta":{"stop_reason":null},"usage":{"output_tokens":9223372036854775807,"input_tokens":3}}"#,
            STOP,
            "[DONE]",
        ],
        expect![[r#"
            content: Hi
             of "" by ""
            3 + 0 = 3, cached None, kept None, thought None
            anthropic: [{"type":"text","length":2,"citations":[{"a":1}]},{"type":"hologram","depth":3}]"#]],
    );
}
