//! `:llm` over the formats of Anthropic and OpenAI Responses, against a local server.

use expect_test::{Expect, expect};
use flowstone_flow::step::Progress;
use flowstone_steps::llm::Llm;

use crate::server::{self, Say, Server};
use crate::world::{World, wait};

const TEXT: &[&str] = &[
    r#"{"type":"message_start","message":{"id":"msg_1","role":"assistant","content":[],"model":"claude-sonnet-5-5","usage":{"input_tokens":10,"cache_creation_input_tokens":200,"cache_read_input_tokens":3000,"output_tokens":1}}}"#,
    r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#,
    r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Grüß"}}"#,
    r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":" Gott"}}"#,
    r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":12}}"#,
    r#"{"type":"message_stop"}"#,
];

/// Returns a response of the Responses interface whose text comes in these pieces.
fn responds(pieces: &[&str]) -> Say {
    let mut data = vec![
        r#"{"type":"response.created","response":{"id":"resp_1","model":"gpt-5.4"}}"#.to_string(),
        r#"{"type":"response.output_item.added","output_index":0,"item":{"type":"message","id":"m1","role":"assistant","content":[]}}"#.to_string(),
    ];
    data.extend(pieces.iter().map(|piece| {
        serde_json::json!({"type": "response.output_text.delta", "output_index": 0, "delta": piece}).to_string()
    }));
    data.push(r#"{"type":"response.completed","response":{"id":"resp_1","model":"gpt-5.4","status":"completed","usage":{"input_tokens":4,"output_tokens":2,"total_tokens":6}}}"#.to_string());
    let data: Vec<&str> = data.iter().map(String::as_str).collect();
    server::events(&data)
}

/// Creates a project whose `:claude` is the test's server.
fn world(server: &Server) -> World {
    World::new()
        .secret("ANTHROPIC_API_KEY", "s3cret")
        .settings(&format!(
            "{{:connections {{:claude {{:backend :anthropic :base-url \"{}\"}}}}}}",
            server.url
        ))
        .timeout(2_000)
}

#[test]
fn a_step_returns_the_answer() {
    wait(async {
        let server = Server::start(vec![server::events(TEXT)]);
        let world = world(&server);
        let shown = world
            .run(&Llm, "{:connection :claude :system \"S\" :prompt \"Hi\"}")
            .await;
        expect![[r#"{:cost-usd 0.00094 :finish-reason "stop" :content "Grüß Gott" :usage {:prompt-tokens 3210 :completion-tokens 12 :total-tokens 3222 :cached-tokens 3000 :cache-write-tokens 200} :iterations 1 :provider :anthropic :tokens-used 3222 :response-id "msg_1" :model "claude-sonnet-5-5"}"#]].assert_eq(&shown);
        let texts: Vec<String> = world
            .progress
            .borrow()
            .iter()
            .filter_map(|it| match it {
                Progress::Text(text) => Some(text.clone()),
                _ => None,
            })
            .collect();
        assert_eq!(texts, ["Grüß", " Gott"]);
        let request = server.requests().remove(0);
        assert!(
            request.starts_with("POST /v1/messages HTTP/1.1\n"),
            "{request}"
        );
        assert!(request.contains("\nx-api-key: s3cret"), "{request}");
        assert!(
            request.contains("\nanthropic-version: 2023-06-01"),
            "{request}"
        );
        assert!(!request.contains("authorization"), "{request}");
        expect![[r#"{"model":"claude-sonnet-5-5","max_tokens":32000,"system":"S","messages":[{"role":"user","content":[{"type":"text","text":"Hi"}]}],"stream":true}"#]].assert_eq(&server.body(0).to_string());
    });
}

#[test]
fn unsupported_options_fail_before_the_call() {
    for (config, expected) in [
        (
            "{:connection :claude :prompt \"x\" :temperature 0.2}",
            expect![[r#"
                E0809 bad-config: `claude-sonnet-5-5` of `:anthropic` does not accept `:temperature` as set by the step
                  hint: leave it out, or use another `:model`"#]],
        ),
        (
            "{:connection :claude :prompt \"x\" :seed 1 :frequency-penalty 0.1}",
            expect![[r#"
                E0809 bad-config: `:anthropic` cannot do `:frequency-penalty` `:seed`
                  hint: leave them out, or use another `:provider`"#]],
        ),
        (
            "{:connection :claude :model \"claude-3-5-haiku-latest\" :prompt \"x\" :reasoning-effort :low}",
            expect![[r#"
                E0821 unsupported: `claude-3-5-haiku-latest` of `:anthropic` does not take `:reasoning-effort`
                  hint: use another `:model`, or declare the abilities of this one: `:capabilities` in its connection or in `:llm-providers`"#]],
        ),
        (
            "{:connection :claude :prompt \"x\" :provider-opts {:anthropic {:responses {:store false}}}}",
            expect![[r#"
                E0809 bad-config: `:anthropic` has no Responses interface to give `:responses` to
                  hint: remove them, or set `:family :openai` in its connection"#]],
        ),
    ] {
        let shown = wait(async {
            let server = Server::start(vec![server::events(TEXT)]);
            let shown = world(&server).run(&Llm, config).await;
            assert!(server.requests().is_empty());
            shown
        });
        expected.assert_eq(&shown);
    }
}

#[test]
fn errors_of_the_server_are_named() {
    for (status, body, expected) in [
        (
            "529 Overloaded",
            r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#,
            expect![[r#"
                E0805 unavailable: anthropic cannot answer now (529): Overloaded
                  retry: later
                  hint: try again later, or use another `:provider`
                  data: {:status 529}"#]],
        ),
        (
            "413 Too Large",
            r#"{"type":"error","error":{"type":"request_too_large","message":"Request exceeds the maximum size"}}"#,
            expect![[r#"
                E0803 too-long: the conversation is too long for the model: Request exceeds the maximum size
                  hint: send less, or use a model with a larger context"#]],
        ),
        (
            "401 Unauthorized",
            r#"{"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key"}}"#,
            expect![[r#"
                E0801 unauthorized: anthropic does not accept the key: invalid x-api-key
                  hint: check the key; it belongs to one provider and may have been revoked"#]],
        ),
        (
            "403 Forbidden",
            "<!DOCTYPE html>\n<html><head><title>Just a\n moment...</title></head><body>Cloudflare</body></html>",
            expect![[r#"
                E0808 bad-response: a proxy or firewall before anthropic answered with a web page (403): "Just a moment..."
                  hint: the key was not checked: check the connection's `:base-url`, and what the network lets pass
                  data: {:status 403}"#]],
        ),
        (
            "503 Service Unavailable",
            "<html><body>Down for maintenance</body></html>",
            expect![[r#"
                E0805 unavailable: a proxy or firewall before anthropic answered with a web page (503)
                  retry: later
                  hint: try again later, or check the proxies between this machine and the provider
                  data: {:status 503}"#]],
        ),
    ] {
        let shown = wait(async {
            let server = Server::start(vec![server::reply(
                status,
                &["content-type: application/json"],
                body,
            )]);
            world(&server)
                .run(&Llm, "{:connection :claude :prompt \"x\"}")
                .await
        });
        expected.assert_eq(&shown);
    }
}

/// Performs a call with the connection `:ai`, and returns path, body and outcome.
#[track_caller]
fn asks(connection: &str, config: &str, answer: Say, expected: Expect) {
    let shown = wait(async {
        let server = Server::start(vec![answer]);
        let world = World::new()
            .secret("OPENAI_API_KEY", "s3cret")
            .settings(&format!(
                "{{:connections {{:ai {{:base-url \"{}/v1\" :model \"m\" {connection}}}}}}}",
                server.url
            ))
            .timeout(2_000);
        let outcome = world.run(&Llm, config).await;
        let requests = server.requests();
        let Some(request) = requests.first() else {
            return server.clean(&outcome);
        };
        let path = request.split(' ').nth(1).unwrap().to_string();
        let key = ["authorization: Bearer s3cret", "x-api-key: s3cret"];
        let key = key.iter().find(|it| request.contains(**it));
        format!("{path} {key:?}\n{}\n{outcome}", server.body(0))
    });
    expected.assert_eq(&shown);
}

#[test]
fn openai_at_another_address_uses_chat_completions_by_default() {
    let chat = || {
        server::events(&[
            r#"{"model":"m","choices":[{"delta":{"content":"Hi"},"finish_reason":"stop"}]}"#,
            "[DONE]",
        ])
    };
    let ask = "{:connection :ai :prompt \"x\"}";
    asks(
        ":backend :openai",
        ask,
        chat(),
        expect![[r#"
            /v1/chat/completions Some("authorization: Bearer s3cret")
            {"model":"m","messages":[{"role":"user","content":"x"}],"stream":true,"stream_options":{"include_usage":true}}
            {:content "Hi" :usage {:prompt-tokens 5 :completion-tokens 1 :total-tokens 6 :estimated-tokens 6} :tokens-used 6 :model "m" :provider :openai :finish-reason "stop" :iterations 1}"#]],
    );
    asks(
        "",
        ask,
        chat(),
        expect![[r#"
            /v1/chat/completions None
            {"model":"m","messages":[{"role":"user","content":"x"}],"stream":true,"stream_options":{"include_usage":true}}
            {:content "Hi" :usage {:prompt-tokens 5 :completion-tokens 1 :total-tokens 6 :estimated-tokens 6} :tokens-used 6 :model "m" :provider :openai-compatible :finish-reason "stop" :iterations 1}"#]],
    );
    asks(
        ":backend :openai-chat",
        ask,
        chat(),
        expect![[r#"
            /v1/chat/completions Some("authorization: Bearer s3cret")
            {"model":"m","messages":[{"role":"user","content":"x"}],"stream":true,"stream_options":{"include_usage":true}}
            {:content "Hi" :usage {:prompt-tokens 5 :completion-tokens 1 :total-tokens 6 :estimated-tokens 6} :tokens-used 6 :model "m" :provider :openai-chat :finish-reason "stop" :iterations 1}"#]],
    );
    asks(
        ":backend :openai :family :chat-completions-compatible",
        "{:connection :ai :prompt \"x\" :openai {:responses {:store false}}}",
        chat(),
        expect![[r#"
            E0809 bad-config: `:openai` cannot do `:openai`
              hint: leave them out, or use another `:provider`"#]],
    );
    asks(
        ":backend :openai :family :openai",
        ask,
        responds(&["Hi"]),
        expect![[r#"
            /v1/responses Some("authorization: Bearer s3cret")
            {"model":"m","input":[{"role":"user","content":"x"}],"stream":true}
            {:cost-usd 4e-5 :finish-reason "stop" :content "Hi" :usage {:prompt-tokens 4 :completion-tokens 2 :total-tokens 6} :iterations 1 :provider :openai :tokens-used 6 :response-id "resp_1" :model "gpt-5.4"}"#]],
    );
    // Only the newer interface has these options.
    asks(
        ":backend :openai",
        "{:connection :ai :prompt \"x\" :previous-response-id \"resp_0\"}",
        responds(&["Hi"]),
        expect![[r#"
            /v1/responses Some("authorization: Bearer s3cret")
            {"model":"m","input":[{"role":"user","content":"x"}],"previous_response_id":"resp_0","stream":true}
            {:cost-usd 4e-5 :finish-reason "stop" :content "Hi" :usage {:prompt-tokens 4 :completion-tokens 2 :total-tokens 6} :iterations 1 :provider :openai :tokens-used 6 :response-id "resp_1" :model "gpt-5.4"}"#]],
    );
    asks(
        ":backend :openai",
        "{:connection :ai :prompt \"x\" :openai {:responses {:store false}} :provider-opts {:openai {:responses {:truncation \"auto\"} :user \"u\"}}}",
        responds(&["Hi"]),
        expect![[r#"
            /v1/responses Some("authorization: Bearer s3cret")
            {"model":"m","input":[{"role":"user","content":"x"}],"stream":true,"store":false,"truncation":"auto","user":"u"}
            {:cost-usd 4e-5 :finish-reason "stop" :content "Hi" :usage {:prompt-tokens 4 :completion-tokens 2 :total-tokens 6} :iterations 1 :provider :openai :tokens-used 6 :response-id "resp_1" :model "gpt-5.4"}"#]],
    );
    // The key of the provider that defined a format is not sent to other servers with that format.
    asks(
        ":family :openai",
        ask,
        responds(&["Hi"]),
        expect![[r#"
            /v1/responses None
            {"model":"m","input":[{"role":"user","content":"x"}],"stream":true}
            {:cost-usd 4e-5 :finish-reason "stop" :content "Hi" :usage {:prompt-tokens 4 :completion-tokens 2 :total-tokens 6} :iterations 1 :provider :openai :tokens-used 6 :response-id "resp_1" :model "gpt-5.4"}"#]],
    );
    asks(
        ":family :anthropic",
        ask,
        server::events(TEXT),
        expect![[r#"
            /v1/messages None
            {"model":"m","max_tokens":4096,"messages":[{"role":"user","content":[{"type":"text","text":"x"}]}],"stream":true}
            {:cost-usd 0.00094 :finish-reason "stop" :content "Grüß Gott" :usage {:prompt-tokens 3210 :completion-tokens 12 :total-tokens 3222 :cached-tokens 3000 :cache-write-tokens 200} :iterations 1 :provider :anthropic :tokens-used 3222 :response-id "msg_1" :model "claude-sonnet-5-5"}"#]],
    );
    asks(
        ":backend :openai :family :anthropc",
        ask,
        chat(),
        expect![[r#"
            E0810 bad-config: `:connections :ai` has the unknown family `:anthropc`
              hint: there are `:anthropic` `:bedrock` `:chat-completions-compatible` `:google` `:openai`"#]],
    );
    asks(
        ":backend :openai :family :openai",
        "{:connection :ai :prompt \"x\" :provider-opts {:openai {:responses {:input \"y\"}}}}",
        chat(),
        expect!["E0809 bad-config: `:provider-opts` cannot replace `input`"],
    );
}

#[test]
fn a_custom_provider_may_use_any_family() {
    for (family, answer, expected) in [
        (
            "anthropic",
            server::events(TEXT),
            expect![[r#"
                {:content "Grüß Gott" :usage {:prompt-tokens 3210 :completion-tokens 12 :total-tokens 3222 :cached-tokens 3000 :cache-write-tokens 200} :tokens-used 3222 :model "claude-sonnet-5-5" :provider :own :finish-reason "stop" :iterations 1 :response-id "msg_1"}
                POST /v1/messages HTTP/1.1
                anthropic-version: 2023-06-01
                content-type: application/json
                accept: text/event-stream, application/json
                x-api-key: k-of-own
                user-agent: flowstone/0.1.0
                accept-encoding: gzip
                host: HOST
                content-length: 113

                {"model":"q","max_tokens":4096,"messages":[{"role":"user","content":[{"type":"text","text":"x"}]}],"stream":true}"#]],
        ),
        (
            "openai",
            responds(&["Grüß", " Gott"]),
            expect![[r#"
                {:content "Grüß Gott" :usage {:prompt-tokens 4 :completion-tokens 2 :total-tokens 6} :tokens-used 6 :model "gpt-5.4" :provider :own :finish-reason "stop" :iterations 1 :response-id "resp_1"}
                POST /v1/responses HTTP/1.1
                content-type: application/json
                accept: text/event-stream, application/json
                authorization: Bearer k-of-own
                user-agent: flowstone/0.1.0
                accept-encoding: gzip
                host: HOST
                content-length: 67

                {"model":"q","input":[{"role":"user","content":"x"}],"stream":true}"#]],
        ),
    ] {
        let shown = wait(async {
            let server = Server::start(vec![answer]);
            let world = World::new()
                .secret("own-api-key", "k-of-own")
                .providers(&format!(
                    "[{{:id :own :family :{family} :base-url \"{}/v1\" :model \"q\"}}]",
                    server.url
                ));
            let shown = world.run(&Llm, "{:provider :own :prompt \"x\"}").await;
            let requests = server.requests();
            format!("{shown}\n{}", requests[0])
        });
        expected.assert_eq(&shown);
    }
}

#[test]
fn a_paused_turn_is_continued() {
    let paused = server::events(&[
        r#"{"type":"message_start","message":{"id":"m1","model":"claude-sonnet-5-5","usage":{"input_tokens":3,"output_tokens":1}}}"#,
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"I search. "}}"#,
        r#"{"type":"content_block_start","index":1,"content_block":{"type":"server_tool_use","id":"s1","name":"web_search","input":{}}}"#,
        r#"{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"query\":\"q\"}"}}"#,
        r#"{"type":"message_delta","delta":{"stop_reason":"pause_turn"},"usage":{"output_tokens":5}}"#,
        r#"{"type":"message_stop"}"#,
    ]);
    wait(async {
        let server = Server::start(vec![paused, server::events(TEXT)]);
        let shown = world(&server)
            .run(&Llm, "{:connection :claude :prompt \"x\"}")
            .await;
        expect![[r#"{:cost-usd 0.000996 :finish-reason "stop" :content "I search. Grüß Gott" :opaque {:family "anthropic" :blocks "[{\"type\":\"text\",\"length\":10},{\"type\":\"server_tool_use\",\"id\":\"s1\",\"name\":\"web_search\",\"input\":{\"query\":\"q\"}},{\"type\":\"text\",\"length\":9}]"} :usage {:prompt-tokens 3213 :completion-tokens 17 :total-tokens 3230 :cached-tokens 3000 :cache-write-tokens 200} :iterations 1 :provider :anthropic :tokens-used 3230 :response-id "msg_1" :model "claude-sonnet-5-5"}"#]].assert_eq(&shown);
        expect![[r#"[{"role":"user","content":[{"type":"text","text":"x"}]},{"role":"assistant","content":[{"type":"text","text":"I search. "},{"type":"server_tool_use","id":"s1","name":"web_search","input":{"query":"q"}}]}]"#]].assert_eq(&server.body(1)["messages"].to_string());
        assert_eq!(server.requests().len(), 2);
    });
}

#[test]
fn stops_are_applied_if_the_interface_does_not_have_them() {
    for (pieces, expected) in [
        (
            &["one EN", "D two"][..],
            expect![[r#"
                asking openai (m), openai has no `:seed`: left out, "one "
                {:cost-usd 4e-5 :finish-reason "stop" :content "one " :usage {:prompt-tokens 4 :completion-tokens 2 :total-tokens 6} :iterations 1 :provider :openai :tokens-used 6 :response-id "resp_1" :model "gpt-5.4"}"#]],
        ),
        (
            &["one END"],
            expect![[r#"
                asking openai (m), openai has no `:seed`: left out, "one "
                {:cost-usd 4e-5 :finish-reason "stop" :content "one " :usage {:prompt-tokens 4 :completion-tokens 2 :total-tokens 6} :iterations 1 :provider :openai :tokens-used 6 :response-id "resp_1" :model "gpt-5.4"}"#]],
        ),
        (
            &["Grüß E", "N", "dlich"],
            expect![[r#"
                asking openai (m), openai has no `:seed`: left out, "Grüß ", "ENdlich"
                {:cost-usd 4e-5 :finish-reason "stop" :content "Grüß ENdlich" :usage {:prompt-tokens 4 :completion-tokens 2 :total-tokens 6} :iterations 1 :provider :openai :tokens-used 6 :response-id "resp_1" :model "gpt-5.4"}"#]],
        ),
        (
            &["EEN", "D"],
            expect![[r#"
                asking openai (m), openai has no `:seed`: left out, "E"
                {:cost-usd 4e-5 :finish-reason "stop" :content "E" :usage {:prompt-tokens 4 :completion-tokens 2 :total-tokens 6} :iterations 1 :provider :openai :tokens-used 6 :response-id "resp_1" :model "gpt-5.4"}"#]],
        ),
        (
            &["trailing EN"],
            expect![[r#"
                asking openai (m), openai has no `:seed`: left out, "trailing ", "EN"
                {:cost-usd 4e-5 :finish-reason "stop" :content "trailing EN" :usage {:prompt-tokens 4 :completion-tokens 2 :total-tokens 6} :iterations 1 :provider :openai :tokens-used 6 :response-id "resp_1" :model "gpt-5.4"}"#]],
        ),
    ] {
        let shown = wait(async {
            let server = Server::start(vec![responds(pieces)]);
            let world = World::new().settings(&format!(
                "{{:connections {{:ai {{:family :openai :base-url \"{}\" :model \"m\"}}}}}}",
                server.url
            ));
            let config = "{:connection :ai :prompt \"x\" :stop [\"END\" \"?\"] :seed 7}";
            let outcome = world.run(&Llm, config).await;
            let body = server.body(0);
            assert!(body.get("stop").is_none() && body.get("seed").is_none());
            let seen: Vec<String> = world
                .progress
                .borrow()
                .iter()
                .filter_map(|it| match it {
                    Progress::Text(text) => Some(format!("{text:?}")),
                    Progress::Status(text) => Some(text.clone()),
                    _ => None,
                })
                .collect();
            format!("{}\n{outcome}", seen.join(", "))
        });
        expected.assert_eq(&shown);
    }
}

/// A character is split between two events: every format restores it.
#[test]
fn halves_of_a_character_are_joined() {
    let claude = |half: &str| {
        format!(
            r#"{{"type":"content_block_delta","index":0,"delta":{{"type":"text_delta","text":"{half}"}}}}"#
        )
    };
    let chat = |half: &str, end: &str| {
        format!(
            r#"{{"id":"r","model":"m","choices":[{{"index":0,"delta":{{"content":"{half}"}},"finish_reason":{end}}}]}}"#
        )
    };
    let gemini = |half: &str, end: &str| {
        format!(r#"{{"candidates":[{{"content":{{"parts":[{{"text":"{half}"}}]}}{end}}}]}}"#)
    };
    let response = |half: &str| {
        format!(r#"{{"type":"response.output_text.delta","output_index":0,"delta":"{half}"}}"#)
    };
    const HALVES: [&str; 2] = [r"a\ud83e", r"\udd80b"];
    let streams = [
        (
            ":backend :anthropic",
            vec![
                TEXT[0].to_string(),
                TEXT[1].to_string(),
                claude(HALVES[0]),
                claude(HALVES[1]),
                TEXT[4].to_string(),
                TEXT[5].to_string(),
            ],
        ),
        (
            ":backend :vllm",
            vec![chat(HALVES[0], "null"), chat(HALVES[1], r#""stop""#)],
        ),
        (
            ":backend :google",
            vec![
                gemini(HALVES[0], ""),
                gemini(HALVES[1], r#","finishReason":"STOP""#),
            ],
        ),
        (
            ":backend :openai :family :openai",
            vec![
                r#"{"type":"response.output_item.added","output_index":0,"item":{"type":"message","id":"m1","role":"assistant","content":[]}}"#.to_string(),
                response(HALVES[0]),
                response(HALVES[1]),
                r#"{"type":"response.completed","response":{"id":"resp_1","model":"m","status":"completed"}}"#.to_string(),
            ],
        ),
    ];
    for (connection, data) in streams {
        let data: Vec<&str> = data.iter().map(String::as_str).collect();
        let (shown, pieces) = wait(async {
            let server = Server::start(vec![server::events(&data)]);
            let world = World::new()
                .secret("OPENAI_API_KEY", "s3cret")
                .secret("ANTHROPIC_API_KEY", "s3cret")
                .secret("GEMINI_API_KEY", "s3cret")
                .settings(&format!(
                    "{{:connections {{:ai {{:base-url \"{}/v1\" :model \"m\" {connection}}}}}}}",
                    server.url
                ))
                .timeout(2_000);
            let shown = world.run(&Llm, "{:connection :ai :prompt \"x\"}").await;
            let progress = world.progress.borrow();
            let pieces = progress.iter().filter_map(|it| match it {
                Progress::Text(text) => Some(text.as_str()),
                _ => None,
            });
            (shown, pieces.collect::<String>())
        });
        assert!(
            shown.contains(":content \"a\u{1f980}b\""),
            "{connection}: {shown}"
        );
        assert_eq!(pieces, "a\u{1f980}b", "{connection}");
    }
}
