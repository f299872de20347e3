//! The rows of `tests/coverage/llm.tsv` about providers and the form of answers, checked on the bytes that reached a
//! server.

use flowstone_engine::codec::encode;
use flowstone_lang::value::Value;
use flowstone_steps::llm::{Llm, PROVIDERS};
use serde_json::json;

use super::llm::{AZURE, OPENAI, answers, over, sent, world, wrong};
use crate::agent::{Bench, says};
use crate::server::Server;
use crate::world::{World, wait};

const MALLI: &str = "[:map [:n :int] [:kind [:enum :a :b]]]";

/// Calls a provider, and returns the head of the request.
fn head_of(connection: &str) -> String {
    let config = "{:connection :ai :prompt \"x\" :max-tokens 5}";
    over(connection, vec![answers("Hi")], config).head()
}

#[test]
fn provider_openai() {
    let head = head_of(OPENAI);
    assert!(head.contains("\nauthorization: Bearer s3cret"), "{head}");
    // Only OpenAI itself gets the newer interface.
    let head = head_of(
        "{:backend :openai :family :openai :base-url \"URL/v1\" :auth {:type :api-key :secret-ref :ai-key}}",
    );
    assert!(
        head.starts_with("POST /v1/responses ") && head.contains("\"gpt-5.4\""),
        "{head}"
    );
}

#[test]
fn provider_anthropic() {
    let head = head_of(
        "{:backend :anthropic :base-url \"URL\" :auth {:type :api-key :secret-ref :ai-key}}",
    );
    assert!(
        head.starts_with("POST /v1/messages ") && head.contains("\nx-api-key: s3cret"),
        "{head}"
    );
}

#[test]
fn provider_bedrock() {
    wait(async {
        let server = Server::start(vec![answers("Hi")]);
        let connection = "{:backend :bedrock :base-url \"URL\" :region \"eu-central-1\" :model \"anthropic.claude-x\"}";
        let world = world(&server, connection)
            .secret("AWS_ACCESS_KEY_ID", "AKID-of-mine")
            .secret("AWS_SECRET_ACCESS_KEY", "secretsecret");
        world.run(&Llm, "{:connection :ai :prompt \"x\"}").await;
        let head = server.requests().remove(0);
        assert!(
            head.starts_with("POST /model/anthropic.claude-x/converse-stream "),
            "{head}"
        );
        assert!(
            head.contains("\nauthorization: AWS4-HMAC-SHA256 Credential=AKID-of-mine/"),
            "{head}"
        );
    });
}

#[test]
fn provider_google() {
    let head = head_of(
        "{:backend :google :base-url \"URL\" :model \"gemini-2.5-flash\" :auth {:type :api-key :secret-ref :ai-key}}",
    );
    assert!(
        head.contains("models/gemini-2.5-flash:streamGenerateContent?alt=sse "),
        "{head}"
    );
    assert!(head.contains("\nx-goog-api-key: s3cret"), "{head}");
}

#[test]
fn provider_azure() {
    let head = head_of(AZURE);
    assert!(
        head.contains("/openai/") && head.contains("\napi-key: s3cret"),
        "{head}"
    );
}

#[test]
fn provider_openrouter() {
    let called = over(
        "{:backend :openrouter :base-url \"URL\" :auth {:type :api-key :secret-ref :ai-key}}",
        vec![answers("Hi")],
        "{:connection :ai :prompt \"x\" :provider-opts {:openrouter {:provider {:order [\"a\"]}}}}",
    );
    assert_eq!(called.body()["provider"], json!({"order": ["a"]}));
}

#[test]
fn provider_deepseek() {
    let deepseek = "{:backend :deepseek :base-url \"URL\" :auth {:type :none}}";
    let config = |rest: &str| {
        format!(
            "{{:connection :ai :prompt \"x\" :output {{:format :json :schema {MALLI} {rest}}}}}"
        )
    };
    // The schema is part of the prompt, and Flowstone checks the answer.
    let called = over(
        deepseek,
        vec![answers("{\"n\": 1, \"kind\": \"a\"}")],
        &config(""),
    );
    let body = called.body();
    assert_eq!(body["response_format"], json!({"type": "json_object"}));
    assert!(
        body["messages"][0].to_string().contains("JSON Schema"),
        "{body}"
    );
    assert!(
        called.shown.contains(":content {:n 1 :kind :a}"),
        "{}",
        called.shown
    );
    over(deepseek, vec![answers("x")], &config(":strict? true")).refused(
        "E0821 unsupported: `deepseek-chat` of `:deepseek` cannot be constrained to a schema",
    );
}

#[test]
fn provider_compatible() {
    let own = "{:backend :openai-compatible :base-url \"URL\" :model \"m\"}";
    let called = over(own, vec![answers("Hi")], "{:connection :ai :prompt \"x\"}");
    assert!(
        called.head().starts_with("POST /chat/completions "),
        "{}",
        called.head()
    );
    over(
        own,
        vec![answers("Hi")],
        "{:connection :ai :prompt \"x\" :tools {:allowed [\"files\"]}}",
    )
    .refused(
        "E0821 unsupported: `m` of `:openai-compatible` is not known to work with tools in a loop",
    );
}

#[test]
fn capabilities() {
    let own = |said: &str| {
        format!(
            "{{:backend :openai-compatible :base-url \"URL\" :model \"m\" :capabilities {said}}}"
        )
    };
    let config = "{:connection :ai :prompt \"x\" :tools [{:name \"add\"}]}";
    over(&own("#{:structured-output}"), vec![answers("x")], config)
        .refused("E0821 unsupported: `m` of `:openai-compatible` does not support tools");
    over(
        &own("#{:tool-calling :streaming}"),
        vec![answers("x")],
        config,
    )
    .body();
    over(&own("#{:flying}"), vec![answers("x")], config).refused(
        "E0810 bad-config: `:connections :ai :capabilities` has the unknown capability `:flying`",
    );
}

#[test]
fn backend_names() {
    let names = [
        "anthropic",
        "azure-openai",
        "bedrock",
        "fireworks",
        "google",
        "google-ai",
        "groq",
        "mistral",
        "ollama",
        "openai",
        "openai-compatible",
        "openrouter",
        "together",
    ];
    for name in names {
        assert!(PROVIDERS.iter().any(|it| it.id == name), "{name}");
    }
}

/// Requests data, and returns the result for a given response.
fn data(output: &str, answer: &str) -> String {
    let config = format!("{{:connection :ai :prompt \"x\" {output}}}");
    over(OPENAI, vec![answers(answer)], &config).shown
}

#[test]
fn output_json() {
    let shown = data(":output {:format :json}", "{\"a\": [1]}");
    assert!(shown.starts_with("{:content {:a [1]}"), "{shown}");
    let shown = data(":output {:format :json}", "no");
    assert!(
        shown.starts_with(
            "E0811 bad-output: the answer is not what `:output` asks for: it is not JSON"
        ),
        "{shown}"
    );
}

#[test]
fn output_malli() {
    let output = format!(":output {{:format :json :schema {MALLI}}}");
    let format = sent(&output)["response_format"].clone();
    assert_eq!(format["json_schema"]["strict"], true);
    assert_eq!(
        format["json_schema"]["schema"]["additionalProperties"],
        false
    );
    let shown = data(&output, "{\"n\": 1, \"kind\": \"b\"}");
    assert!(shown.starts_with("{:content {:n 1 :kind :b}"), "{shown}");
    let shown = data(&output, "{\"n\": \"1\", \"kind\": \"c\"}");
    assert!(shown.contains("at [:n]: should be an integer"), "{shown}");
    wrong(
        ":output {:schema [:mpa]}",
        "E0815 bad-config: the `:schema` of `:output` cannot be used",
    );
}

#[test]
fn output_json_schema() {
    let output = ":output {:format :json :schema {:type \"object\" :properties {:a {:type \"integer\" :x-own 1}} :required [\"a\"]}}";
    let schema = sent(output)["response_format"]["json_schema"]["schema"].clone();
    assert_eq!(
        schema,
        json!({"type": "object", "properties": {"a": {"type": "integer", "x-own": 1}}, "required": ["a"]})
    );
    assert!(data(output, "{\"a\": 2}").starts_with("{:content {:a 2}"));
    assert!(data(output, "{\"a\": \"2\"}").starts_with("E0811 bad-output"));
}

#[test]
fn output_style() {
    assert_eq!(
        sent(":output {:format :json :style :deterministic}")["temperature"],
        0
    );
    assert_eq!(
        sent(":temperature 0.7 :output {:format :json :style :deterministic}")["temperature"],
        0.7
    );
    wrong(
        ":output {:style :wild}",
        "E0809 bad-config: `:output` has no `:style :wild`",
    );
}

#[test]
fn output_strict() {
    let strict = |said: &str| {
        let output = format!(":output {{:format :json :schema {MALLI} :strict? {said}}}");
        sent(&output)["response_format"]["json_schema"]["strict"].clone()
    };
    assert_eq!(strict("false"), false);
    assert_eq!(strict("true"), true);
    wrong(
        ":output {:strict? 1}",
        "E0780 bad-config: `:output :strict?` takes true or false",
    );
}

#[test]
fn output_forms() {
    let form = "[:map [:a [:vector :string]] [:b [:enum \"x\" \"y\"]] [:c {:optional true} :int] [:d :boolean] [:e :any]]";
    let output = format!(":output {{:schema {form}}}");
    let schema = sent(&output)["response_format"]["json_schema"]["schema"].clone();
    assert_eq!(
        schema["properties"]["a"],
        json!({"type": "array", "items": {"type": "string"}})
    );
    assert_eq!(schema["properties"]["b"]["enum"], json!(["x", "y"]));
    assert_eq!(schema["required"], json!(["a", "b", "d", "e"]));
    let shown = data(
        &output,
        "{\"a\": [\"s\"], \"b\": \"x\", \"d\": true, \"e\": null}",
    );
    assert!(
        shown.starts_with("{:content {:a [\"s\"] :b \"x\" :d true :e nil}"),
        "{shown}"
    );
}

#[test]
fn legacy_fields_win() {
    let body = sent(&format!(
        ":output {{:format :json :schema {MALLI}}} :json-schema {{\"type\" \"object\"}} :response-format :json"
    ));
    assert_eq!(
        body["response_format"]["json_schema"]["schema"],
        json!({"type": "object"})
    );
    let shown = data(
        &format!(":output {{:schema {MALLI}}} :response-format :text"),
        "plain",
    );
    assert!(shown.starts_with("{:content \"plain\""), "{shown}");
}

#[test]
fn expect_with_repair() {
    let called = over(
        OPENAI,
        vec![answers("no"), answers("all findings")],
        "{:connection :ai :prompt \"x\" :repair 1 :expect {:contains [\"findings\"]}}",
    );
    assert!(
        called.shown.starts_with("{:content \"all findings\""),
        "{}",
        called.shown
    );
    assert!(called.shown.contains(":iterations 2"), "{}", called.shown);
    let asked = called.server.body(1)["messages"][2].to_string();
    assert!(asked.contains("should contain"), "{asked}");
    // Without repairs, the engine checks the answer.
    let bench = Bench::new(vec![says("{\"findings\": []}")]);
    let step = |key: &str| {
        bench.run(&format!(
            "(:content (flow/step :llm :a {{:connection :ai :prompt \"x\" :output :json :expect {{:contains [\"{key}\"]}}}}))"
        ))
    };
    assert_eq!(step("findings"), "{:findings []}");
    assert!(step("scores").contains("should contain \"scores\""));
}

#[test]
fn llm_providers() {
    wait(async {
        let server = Server::start(vec![answers("Hi")]);
        let world = World::new().secret("own-key", "k3y-of-own").providers(&format!(
            "[{{:id :local :family :chat-completions-compatible :base-url \"{}/v1\" :model \"small\" :auth {{:type :bearer :secret-ref :own-key}} :capabilities #{{:tool-calling}}}}]",
            server.url
        ));
        let value = world
            .value(
                &Llm,
                "{:provider :local :prompt \"x\" :tools [{:name \"a\"}]}",
            )
            .await;
        assert_eq!(value.get("provider"), Some(&Value::keyword("local")));
        let head = server.requests().remove(0);
        assert!(
            head.contains("authorization: Bearer k3y") && head.contains("\"small\""),
            "{head}"
        );
    });
}

#[test]
fn scripted() {
    let config =
        "{:provider :scripted :prompt \"x\" :provider-opts {:scripted {:turns [\"one\" \"two\"]}}}";
    let value = wait(World::new().value(&Llm, config));
    assert_eq!(encode(value.get("content").unwrap()).unwrap(), "\"one\"");
    let over = config.replace("[\"one\" \"two\"]", "[]");
    let shown = wait(World::new().run(&Llm, &over));
    assert!(
        shown.starts_with("E0825 no-turn: the script has 0 turns"),
        "{shown}"
    );
}
