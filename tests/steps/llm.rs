//! `:llm` against a local server, and the wire format on its own.

use expect_test::{Expect, expect};
use flowstone_flow::step::Progress;
use flowstone_steps::llm::Llm;

use crate::server::{Say, Server, events, json, reply, stalled};
use crate::world::{World, wait};

const HELLO: &[&str] = &[
    r#"{"id":"1","model":"m-1","choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}"#,
    r#"{"id":"1","model":"m-1","choices":[{"index":0,"delta":{"content":"Hel"}}]}"#,
    r#"{"id":"1","model":"m-1","choices":[{"index":0,"delta":{"content":"lo"},"finish_reason":null}]}"#,
    r#"{"id":"1","model":"m-1","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#,
    r#"{"id":"1","model":"m-1","choices":[],"usage":{"prompt_tokens":3,"completion_tokens":2,"total_tokens":5,"prompt_tokens_details":{"cached_tokens":1}}}"#,
    "[DONE]",
];

/// Returns a stream with this text.
fn says(content: &str) -> Say {
    let delta = serde_json::json!({"model": "m-1", "choices": [{"delta": {"content": content}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}});
    events(&[&delta.to_string(), "[DONE]"])
}

/// Creates a project whose `:ai` is the test's server.
fn world(server: &Server) -> World {
    World::new()
        .secret("ai-key", "s3cret")
        .settings(&format!(
            "{{:connections {{:ai {{:backend :openai :base-url \"{}/v1\" :model \"m\" :auth {{:type :api-key :secret-ref :ai-key}}}}}}}}",
            server.url
        ))
        .timeout(2_000)
}

/// Performs a call, and returns the outcome.
#[track_caller]
fn check(answers: Vec<Say>, config: &str, expected: Expect) {
    let shown = wait(async {
        let server = Server::start(answers);
        let shown = world(&server).run(&Llm, config).await;
        server.clean(&shown)
    });
    expected.assert_eq(&shown);
}

/// Performs a call, and returns the body of the request, or why none was sent.
#[track_caller]
fn sent(config: &str, expected: Expect) {
    let shown = wait(async {
        let server = Server::start(vec![events(HELLO)]);
        let outcome = world(&server).run(&Llm, config).await;
        match server.requests().is_empty() {
            true => outcome,
            false => serde_json::to_string_pretty(&server.body(0)).unwrap(),
        }
    });
    expected.assert_eq(&shown);
}

#[test]
fn a_streamed_answer_is_returned_whole() {
    wait(async {
        let server = Server::start(vec![events(HELLO)]);
        let world = world(&server);
        let shown = world.run(&Llm, "{:connection :ai :prompt \"Hi\"}").await;
        expect![[r#"{:content "Hello" :usage {:prompt-tokens 3 :completion-tokens 2 :total-tokens 5 :cached-tokens 1} :tokens-used 5 :model "m-1" :provider :openai :finish-reason "stop" :iterations 1 :response-id "1"}"#]].assert_eq(&shown);
        let texts: Vec<String> = world
            .progress
            .borrow()
            .iter()
            .filter_map(|it| match it {
                Progress::Text(text) => Some(text.clone()),
                _ => None,
            })
            .collect();
        assert_eq!(texts, ["Hel", "lo"]);
        let request = server.requests().remove(0);
        assert!(
            request.starts_with("POST /v1/chat/completions HTTP/1.1\n"),
            "{request}"
        );
        assert!(
            request.contains("\nauthorization: Bearer s3cret"),
            "{request}"
        );
    });
}

#[test]
fn a_server_that_does_not_stream_is_understood() {
    check(
        vec![json(
            r#"{"model":"m-2","choices":[{"message":{"role":"assistant","content":"Hi","reasoning_content":"hm"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":2}}"#,
        )],
        "{:connection :ai :prompt \"Hi\"}",
        expect![[
            r#"{:content "Hi" :usage {:prompt-tokens 1 :completion-tokens 2 :total-tokens 3} :tokens-used 3 :model "m-2" :provider :openai :finish-reason "stop" :iterations 1 :reasoning "hm"}"#
        ]],
    );
}

#[test]
fn the_request_contains_the_options_of_the_step() {
    sent(
        "{:connection :ai :system \"Be brief.\" :prompt {:a 1} :model \"big\" :temperature 0.5 :top-p 1 :stop \"END\" :max-tokens 16 \
          :seed 7 :reasoning-effort :low :provider-opts {:openai {:store false}}}",
        expect![[r#"
            {
              "model": "big",
              "messages": [
                {
                  "role": "system",
                  "content": "Be brief."
                },
                {
                  "role": "user",
                  "content": "{\"a\":1}"
                }
              ],
              "temperature": 0.5,
              "top_p": 1,
              "stop": [
                "END"
              ],
              "max_completion_tokens": 16,
              "seed": 7,
              "reasoning_effort": "low",
              "stream": true,
              "stream_options": {
                "include_usage": true
              },
              "store": false
            }"#]],
    );
    sent(
        "{:connection :ai :messages [{:role :system :content \"S\"} {:role \"user\" :content [{:type :text :text \"what\"} {:type :image :url \"https://x/y.png\" :detail :low}]} \
          {:role :assistant :tool-calls [{:tool-call-id \"c1\" :name \"add\" :arguments {:a 1}}]} {:role :tool :tool-call-id \"c1\" :content {:sum 2}}] \
          :tools [{:name \"add\" :description \"Adds\" :parameters [:map [:a :int]]}]}",
        expect![[r#"
            {
              "model": "m",
              "messages": [
                {
                  "role": "system",
                  "content": "S"
                },
                {
                  "role": "user",
                  "content": [
                    {
                      "type": "text",
                      "text": "what"
                    },
                    {
                      "type": "image_url",
                      "image_url": {
                        "url": "https://x/y.png",
                        "detail": "low"
                      }
                    }
                  ]
                },
                {
                  "role": "assistant",
                  "content": null,
                  "tool_calls": [
                    {
                      "id": "c1",
                      "type": "function",
                      "function": {
                        "name": "add",
                        "arguments": "{\"a\":1}"
                      }
                    }
                  ]
                },
                {
                  "role": "tool",
                  "content": "{\"sum\":2}",
                  "tool_call_id": "c1"
                }
              ],
              "tools": [
                {
                  "type": "function",
                  "function": {
                    "name": "add",
                    "parameters": {
                      "type": "object",
                      "properties": {
                        "a": {
                          "type": "integer"
                        }
                      },
                      "required": [
                        "a"
                      ]
                    },
                    "description": "Adds"
                  }
                }
              ],
              "stream": true,
              "stream_options": {
                "include_usage": true
              }
            }"#]],
    );
    sent(
        "{:connection :ai :prompt \"x\" :output {:format :json :schema [:map [:title :string] [:tags [:vector :string]]]}}",
        expect![[r#"
            {
              "model": "m",
              "messages": [
                {
                  "role": "user",
                  "content": "x"
                }
              ],
              "response_format": {
                "type": "json_schema",
                "json_schema": {
                  "name": "answer",
                  "schema": {
                    "type": "object",
                    "properties": {
                      "title": {
                        "type": "string"
                      },
                      "tags": {
                        "type": "array",
                        "items": {
                          "type": "string"
                        }
                      }
                    },
                    "required": [
                      "title",
                      "tags"
                    ],
                    "additionalProperties": false
                  },
                  "strict": true
                }
              },
              "stream": true,
              "stream_options": {
                "include_usage": true
              }
            }"#]],
    );
    sent(
        "{:connection :ai :prompt \"x\" :output {:format :json :schema {:type \"object\" :properties {:a {:type \"integer\"}}}}}",
        expect![[r#"
            {
              "model": "m",
              "messages": [
                {
                  "role": "user",
                  "content": "x"
                }
              ],
              "response_format": {
                "type": "json_schema",
                "json_schema": {
                  "name": "answer",
                  "schema": {
                    "type": "object",
                    "properties": {
                      "a": {
                        "type": "integer"
                      }
                    }
                  },
                  "strict": false
                }
              },
              "stream": true,
              "stream_options": {
                "include_usage": true
              }
            }"#]],
    );
}

#[test]
fn a_template_gives_the_prompts() {
    wait(async {
        let server = Server::start(vec![events(HELLO)]);
        let world = world(&server).template("{:id :hi :type :llm-prompt :system \"You greet.\" :prompt \"Greet {{user.name}} & co\"}");
        world
            .value(
                &Llm,
                "{:connection :ai :template :hi :data {:user {:name \"<Ada>\"}}}",
            )
            .await;
        let body = server.body(0);
        assert_eq!(body["messages"][0]["content"], "You greet.");
        assert_eq!(body["messages"][1]["content"], "Greet <Ada> & co");
    });
}

#[test]
fn structured_answers_are_parsed_and_checked() {
    let config = "{:connection :ai :prompt \"x\" :output {:format :json :schema [:map [:n :int] [:kind [:enum :a :b]]]}}";
    check(
        vec![says(r#"{"n": 1, "kind": "a"}"#)],
        config,
        expect![[
            r#"{:content {:n 1 :kind :a} :usage {:prompt-tokens 1 :completion-tokens 1 :total-tokens 2} :tokens-used 2 :model "m-1" :provider :openai :finish-reason "stop" :iterations 1}"#
        ]],
    );
    check(
        vec![says("```json\n{\"n\": 1, \"kind\": \"b\"}\n```")],
        config,
        expect![[
            r#"{:content {:n 1 :kind :b} :usage {:prompt-tokens 1 :completion-tokens 1 :total-tokens 2} :tokens-used 2 :model "m-1" :provider :openai :finish-reason "stop" :iterations 1}"#
        ]],
    );
    check(
        vec![says(r#"{"n": "one", "kind": "c"}"#)],
        config,
        expect![[r#"
            E0811 bad-output: the answer is not what `:output` asks for: at [:n]: should be an integer, but is "one" (a string); at [:kind]: should be one of :a, :b, but is "c" (a string)
              hint: `:repair 2` sends the problem back to the model up to twice
              data: {:content "{\"n\": \"one\", \"kind\": \"c\"}" :problem "at [:n]: should be an integer, but is \"one\" (a string); at [:kind]: should be one of :a, :b, but is \"c\" (a string)" :usage {:prompt-tokens 1 :completion-tokens 1 :total-tokens 2}}"#]],
    );
    check(
        vec![says("I think it is 1")],
        config,
        expect![[r#"
            E0811 bad-output: the answer is not what `:output` asks for: it is not JSON (expected value at line 1 column 1)
              hint: `:repair 2` sends the problem back to the model up to twice
              data: {:content "I think it is 1" :problem "it is not JSON (expected value at line 1 column 1)" :usage {:prompt-tokens 1 :completion-tokens 1 :total-tokens 2}}"#]],
    );
    let by_json_schema = "{:connection :ai :prompt \"x\" :json-schema {:type \"object\" :required [\"n\"] :properties {:n {:type \"integer\"}}}}";
    check(
        vec![says(r#"{"n": 1}"#)],
        by_json_schema,
        expect![[
            r#"{:content {:n 1} :usage {:prompt-tokens 1 :completion-tokens 1 :total-tokens 2} :tokens-used 2 :model "m-1" :provider :openai :finish-reason "stop" :iterations 1}"#
        ]],
    );
    check(
        vec![says(r#"{"n": "1"}"#)],
        by_json_schema,
        expect![[r#"
            E0811 bad-output: the answer is not what `:output` asks for: /n: "1" is not of type "integer"
              hint: `:repair 2` sends the problem back to the model up to twice
              data: {:content "{\"n\": \"1\"}" :problem "/n: \"1\" is not of type \"integer\"" :usage {:prompt-tokens 1 :completion-tokens 1 :total-tokens 2}}"#]],
    );
    let cut = r#"{"choices":[{"delta":{"content":"{\"n\": 1, \"ki"},"finish_reason":"length"}]}"#;
    check(
        vec![events(&[cut, "[DONE]"])],
        config,
        expect![[r#"
            E0814 cut-short: the answer was cut at the limit on its tokens
              hint: raise `:max-tokens`
              data: {:content "{\"n\": 1, \"ki" :usage {:prompt-tokens 5 :completion-tokens 3 :total-tokens 8 :estimated-tokens 8}}"#]],
    );
}

#[test]
fn a_wrong_answer_may_be_repaired() {
    wait(async {
        let server = Server::start(vec![says("{\"n\": \"one\"}"), says("{\"n\": 1}")]);
        let config = "{:connection :ai :prompt \"x\" :repair 1 :output {:format :json :schema [:map [:n :int]]}}";
        let shown = world(&server).run(&Llm, config).await;
        expect![[r#"{:content {:n 1} :usage {:prompt-tokens 2 :completion-tokens 2 :total-tokens 4} :tokens-used 4 :model "m-1" :provider :openai :finish-reason "stop" :iterations 2}"#]].assert_eq(&shown);
        let body = server.body(1);
        expect![[r#"
            [
              {
                "role": "user",
                "content": "x"
              },
              {
                "role": "assistant",
                "content": "{\"n\": \"one\"}"
              },
              {
                "role": "user",
                "content": "That answer is not right: at [:n]: should be an integer, but is \"one\" (a string)\nAnswer again, with one JSON document and nothing else."
              }
            ]"#]].assert_eq(&serde_json::to_string_pretty(&body["messages"]).unwrap());
    });
    // Exactly the configured number of attempts.
    wait(async {
        let server = Server::start(vec![says("no")]);
        let config = "{:connection :ai :prompt \"x\" :output {:format :json :repair 2}}";
        let shown = world(&server).run(&Llm, config).await;
        assert!(shown.starts_with("E0811 bad-output: "), "{shown}");
        assert_eq!(server.requests().len(), 3);
    });
}

#[test]
fn streamed_tool_calls_are_assembled() {
    check(
        vec![events(&[
            r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"c1","type":"function","function":{"name":"add","arguments":""}}]}}]}"#,
            r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"a\""}}]}}]}"#,
            r#"{"choices":[{"delta":{"tool_calls":[{"index":1,"id":"c2","function":{"name":"sub","arguments":"{oops"}}]}}]}"#,
            r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":": 1}"}}]},"finish_reason":"tool_calls"}]}"#,
            "[DONE]",
        ])],
        "{:connection :ai :prompt \"x\" :tools {:definitions [{:name :add} {:name :sub}]}}",
        expect![[
            r#"{:content "" :tool-calls [{:tool-call-id "c1" :name "add" :arguments {:a 1}} {:tool-call-id "c2" :name "sub" :arguments-text "{oops"}] :usage {:prompt-tokens 23 :completion-tokens 5 :total-tokens 28 :estimated-tokens 28} :tokens-used 28 :model "m" :provider :openai :finish-reason "tool_calls" :iterations 1}"#
        ]],
    );
}

#[test]
fn errors_have_the_same_codes_for_every_provider() {
    let config = "{:connection :ai :prompt \"x\"}";
    let error = |status: &str, headers: &[&str], body: &str| vec![reply(status, headers, body)];
    for (answers, expected) in [
        (
            error(
                "401 Unauthorized",
                &[],
                r#"{"error":{"message":"Incorrect API key provided: s3c**","code":"invalid_api_key"}}"#,
            ),
            expect![[r#"
                E0801 unauthorized: openai does not accept the key: Incorrect API key provided: s3c**
                  hint: check the key; it belongs to one provider and may have been revoked"#]],
        ),
        (
            error(
                "404 Not Found",
                &[],
                r#"{"error":{"message":"The model `m` does not exist","code":"model_not_found"}}"#,
            ),
            expect![[r#"
                E0802 not-found: openai does not know what was requested: The model `m` does not exist
                  hint: check `:model` and the connection's `:base-url`"#]],
        ),
        (
            error(
                "400 Bad Request",
                &[],
                r#"{"error":{"message":"This model's maximum context length is 8192 tokens.","code":"context_length_exceeded"}}"#,
            ),
            expect![[r#"
                E0803 too-long: the conversation is too long for the model: This model's maximum context length is 8192 tokens.
                  hint: send less, or use a model with a larger context"#]],
        ),
        (
            error(
                "429 Too Many Requests",
                &["retry-after: 3"],
                r#"{"error":{"message":"slow down"}}"#,
            ),
            expect![[r#"
                E0804 rate-limited: openai limits the rate of requests: slow down
                  retry: after 3s
                  hint: `:retry` waits as long as the provider asks for"#]],
        ),
        (
            error(
                "429 Too Many Requests",
                &[],
                r#"{"error":{"message":"no quota","code":"insufficient_quota"}}"#,
            ),
            expect![[r#"
                E0804 no-credit: the account at openai has no credit left: no quota
                  hint: add credit to the account, or use another `:provider`"#]],
        ),
        (
            error("503 Service Unavailable", &[], "<html>busy</html>"),
            expect![[r#"
                E0805 unavailable: a proxy or firewall before openai answered with a web page (503)
                  retry: later
                  hint: try again later, or check the proxies between this machine and the provider
                  data: {:status 503}"#]],
        ),
        (
            error(
                "422 Unprocessable Entity",
                &[],
                r#"{"detail":[{"loc":["body"],"msg":"bad"}]}"#,
            ),
            expect![[r#"
                E0813 bad-request: openai does not accept the request (422): [{"loc":["body"],"msg":"bad"}]
                  hint: the provider's message says which part of the request it means
                  data: {:status 422}"#]],
        ),
        (
            error(
                "400 Bad Request",
                &[],
                r#"{"error":{"message":"blocked","code":"content_filter"}}"#,
            ),
            expect![[r#"
                E0806 content-filter: openai withheld the answer: blocked
                  hint: rephrase the request"#]],
        ),
        (
            error("200 OK", &["content-type: text/html"], "<html>hello</html>"),
            expect![[r#"
                E0808 bad-response: openai sent something that is not an answer: no event in what it sent
                  retry: later
                  hint: check that the connection's `:base-url` is that of such a provider
                  data: {:preview "<html>hello</html>"}"#]],
        ),
        (
            vec![json("{\"hello\": 1}")],
            expect![[r#"
                E0808 bad-response: openai sent something that is not an answer: it has no `choices`
                  retry: later
                  hint: check that the connection's `:base-url` is that of such a provider
                  data: {:preview "{\"hello\": 1}"}"#]],
        ),
        (
            vec![events(&[HELLO[0], HELLO[1]])],
            expect![[r#"
                E0807 cut-off: the answer of openai broke off after 3 characters
                  retry: later
                  hint: try again: a part of an answer is never used
                  data: {:cause "the stream ended without a finish reason"}"#]],
        ),
        (
            vec![events(&[HELLO[1], "{broken"])],
            expect![[r#"
                E0808 bad-response: openai sent something that is not an answer: an event is not JSON (key must be a string at line 1 column 2)
                  retry: later
                  hint: check that the connection's `:base-url` is that of such a provider
                  data: {:preview "{broken"}"#]],
        ),
        (
            vec![events(&[
                HELLO[1],
                r#"{"error":{"message":"worker died","code":502}}"#,
            ])],
            expect![[r#"
                E0805 unavailable: openai cannot answer now (502): worker died
                  retry: later
                  hint: try again later, or use another `:provider`
                  data: {:status 502}"#]],
        ),
        (
            vec![events(&[
                r#"{"choices":[{"delta":{"content":"I"},"finish_reason":"content_filter"}]}"#,
            ])],
            expect![[r#"
                E0806 content-filter: openai withheld the answer: its content filter stopped the answer
                  hint: rephrase the request
                  data: {:usage {:prompt-tokens 5 :completion-tokens 1 :total-tokens 6 :estimated-tokens 6}}"#]],
        ),
        (
            vec![events(&[
                r#"{"choices":[{"delta":{"refusal":"I cannot"},"finish_reason":"stop"}]}"#,
            ])],
            expect![[r#"
                E0806 refused: the model refused: I cannot
                  hint: rephrase the request
                  data: {:usage {:prompt-tokens 5 :completion-tokens 0 :total-tokens 5 :estimated-tokens 5}}"#]],
        ),
    ] {
        check(answers, config, expected);
    }
}

#[test]
fn a_silent_stream_times_out() {
    wait(async {
        let server = Server::start(vec![stalled(&HELLO[..2])]);
        let world = world(&server).timeout(200);
        let shown = world.run(&Llm, "{:connection :ai :prompt \"x\"}").await;
        expect![[r#"
            E0812 timeout: openai sent nothing for 0.2 s after 3 characters
              retry: later
              hint: try again, or raise `:timeout`"#]]
        .assert_eq(&shown);
    });
}

#[test]
fn unsupported_options_fail_before_the_call() {
    for (config, expected) in [
        (
            "{:connection :ai}",
            expect![[r#"
            E0809 bad-config: there is nothing to ask
              hint: give it a `:prompt` or `:messages`"#]],
        ),
        (
            "{:connection :ai :prompt \"x\" :messages [{:role :user :content \"y\"}]}",
            expect!["E0809 bad-config: `:prompt` and `:messages` cannot both be given"],
        ),
        (
            "{:connection :ai :prompt \"x\" :cache-system? true}",
            expect![[r#"
                E0809 bad-config: `:openai` cannot do `:cache-system?`
                  hint: leave them out, or use another `:provider`"#]],
        ),
        (
            "{:connection :ai :prompt \"x\" :tools {:mode :execute :allowed [\"files\"]}}",
            expect![[r#"
                E0575 bad-config: a step that performs others needs a run
                  hint: call it in a flow, or with `flowstone steps run`"#]],
        ),
        (
            "{:connection :ai :prompt \"x\" :max-tool-calls 3}",
            expect![[r#"
                E0820 bad-config: `:max-tool-calls` needs tools that are executed, but the call has none
                  hint: name some: `:tools {:mode :execute :allowed ["files"]}` or `:available-steps [:files]`"#]],
        ),
        (
            "{:connection :ai :prompt \"x\" :provider :anthropic}",
            expect![[r#"
                E0810 bad-config: the step names `:anthropic`, but its connection `:ai` is for `:openai`
                  hint: remove `:provider`, or name a connection of that provider"#]],
        ),
        (
            "{:connection :ia :prompt \"x\"}",
            expect![[r#"
            E0750 bad-config: there is no connection `:ia`
              hint: did you mean `:ai`?
              hint: describe it in flowstone.edn beside the flows: {:connections {:ia {:base-url "https://..." :auth {:type :bearer :secret-ref :ia-token}}}}"#]],
        ),
        (
            "{:provider :deepseek :prompt \"x\" :seed 1}",
            expect![[r#"
                E0752 missing-secret: the secret `DEEPSEEK_API_KEY`, which `:deepseek` needs, is not set
                  hint: set DEEPSEEK_API_KEY in the environment, or in `.env` beside the flows
                  hint: or say where it is in flowstone.edn: {:secrets {:DEEPSEEK_API_KEY {:env "..."}}}"#]],
        ),
        (
            "{:provider :groq :prompt \"x\"}",
            expect![[r#"
                E0752 missing-secret: the secret `GROQ_API_KEY`, which `:groq` needs, is not set
                  hint: set GROQ_API_KEY in the environment, or in `.env` beside the flows
                  hint: or say where it is in flowstone.edn: {:secrets {:GROQ_API_KEY {:env "..."}}}"#]],
        ),
        (
            "{:connection :ai :messages [{:role :robot :content \"x\"}]}",
            expect![[r#"
                E0809 bad-config: a message has the role `:robot`
                  hint: there are `:system`, `:user`, `:assistant` and `:tool`"#]],
        ),
        (
            "{:connection :ai :prompt \"x\" :output {:format :json :schema [:mpa]}}",
            expect![[r#"
                E0815 bad-config: the `:schema` of `:output` cannot be used: `mpa` is not a schema type; did you mean `:map`?
                  hint: it takes a Malli form such as `[:map [:title :string]]`, or a JSON Schema as a map"#]],
        ),
        (
            "{:connection :ai :prompt \"x\" :output {:formt :json}}",
            expect![[r#"
                E0726 bad-config: `:output` has no key `:formt`
                  hint: did you mean `:format`?"#]],
        ),
        (
            "{:connection :ai :prompt \"x\" :repair 2}",
            expect![
                "E0809 bad-config: `:repair` is for an `:output` with `:format :json`, or for `:expect`"
            ],
        ),
        (
            "{:connection :ai :prompt \"x\" :provider-opts {:groq {:a 1}}}",
            expect![[r#"
                E0809 bad-config: `:provider-opts` is for `:groq`, and the provider is `:openai`
                  hint: additional fields of the request go under the provider: {:openai {:some_field 1}}"#]],
        ),
    ] {
        sent(config, expected);
    }
}

#[test]
fn a_missing_provider_is_named() {
    let shown = wait(World::new().run(&Llm, "{:provider :opnai :prompt \"x\"}"));
    let wanted = "E0810 bad-config: there is no provider `:opnai`\n  hint: did you mean `:openai`?\n  hint: there are `:";
    assert!(shown.starts_with(wanted), "{shown}");
}

#[test]
fn a_provider_can_be_configured_by_the_environment() {
    let world = World::new();
    let shown = wait(world.run(&Llm, "{:connection :ai :prompt \"x\"}"));
    expect![[r#"
        E0810 missing-secret: no model provider is set up
          hint: set the key of one in the environment or in `.env`: ANTHROPIC_API_KEY, AZURE_OPENAI_API_KEY, AWS_BEARER_TOKEN_BEDROCK, DEEPSEEK_API_KEY, FIREWORKS_API_KEY, GEMINI_API_KEY, GROQ_API_KEY, MISTRAL_API_KEY, OPENAI_API_KEY, OPENROUTER_API_KEY, TOGETHER_API_KEY
          hint: or OLLAMA_HOST or OPENAI_BASE_URL for a server of your own
          hint: or describe a connection in flowstone.edn: {:connections {:ai {:backend :openai :model "..."}}}"#]].assert_eq(&shown);
    wait(async {
        let server = Server::start(vec![events(HELLO)]);
        let ask = "{:connection :ai :prompt \"x\"}";
        let own = World::new().settings(&format!(
            "{{:environment {{:OPENAI_BASE_URL \"{}/v1\" :OPENAI_MODEL \"tiny\"}}}}",
            server.url
        ));
        assert!(own.run(&Llm, ask).await.contains(":provider :openai"));
        assert_eq!(server.body(0)["model"], "tiny");
        let host = server.url.trim_start_matches("http://");
        let ollama = World::new().settings(&format!(
            "{{:environment {{:OLLAMA_HOST \"{host}\" :OLLAMA_MODEL \"small\"}}}}"
        ));
        assert!(ollama.run(&Llm, ask).await.contains(":provider :ollama"));
        assert!(server.requests()[1].starts_with("POST /v1/chat/completions "));
    });
}

#[test]
fn a_flow_may_define_its_provider() {
    wait(async {
        let server = Server::start(vec![says("{\"a\": 1}")]);
        let world = World::new().secret("local-api-key", "k-of-local").providers(&format!(
            "[{{:id :local :family :chat-completions-compatible :base-url \"{}\" :auth {{:type :bearer}} :model \"q\" :capabilities #{{:tool-calling}}}}]",
            server.url
        ));
        let config =
            "{:provider :local :prompt \"x\" :output {:format :json :schema [:map [:a :int]]}}";
        assert!(world.run(&Llm, config).await.contains(":content {:a 1}"));
        let body = server.body(0);
        // The provider does not claim to support schemas, so the schema is part of the prompt.
        assert_eq!(body["response_format"]["type"], "json_object");
        assert!(
            body["messages"][0]["content"]
                .as_str()
                .unwrap()
                .contains("JSON Schema")
        );
        assert!(server.requests()[0].contains("authorization: Bearer k"));
    });
}
