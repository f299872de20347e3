//! The rows of `tests/coverage/llm.tsv`, each against a local model server, checked on the bytes that reached it.

use flowstone_steps::llm::Llm;
use serde_json::{Value as Json, json};

use crate::agent::{Bench, says};
use crate::server::{Say, Server, events};
use crate::world::{World, wait};

/// The response of the test's server over chat completions.
pub fn answers(content: &str) -> Say {
    let event = json!({"id": "r1", "model": "m-1", "choices": [{"delta": {"content": content}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}});
    events(&[&event.to_string(), "[DONE]"])
}

/// Creates a project whose `:ai` has this configuration, with `URL` for the test's server.
pub fn world(server: &Server, connection: &str) -> World {
    let connection = connection.replace("URL", &server.url);
    World::new()
        .secret("ai-key", "s3cret")
        .settings(&format!(
            "{{:connections {{:ai {connection} :other {{:backend :groq :base-url \"{}/groq\" :model \"g\" :auth {{:type :none}}}}}}}}",
            server.url
        ))
        .timeout(5_000)
}

pub const OPENAI: &str = "{:backend :openai :base-url \"URL/v1\" :model \"m\" :auth {:type :api-key :secret-ref :ai-key}}";

/// The outcome of a call.
pub struct Called {
    pub server: Server,
    pub shown: String,
}

impl Called {
    /// Returns the body of the request.
    #[track_caller]
    pub fn body(&self) -> Json {
        assert!(!self.server.requests().is_empty(), "{}", self.shown);
        self.server.body(0)
    }

    #[track_caller]
    pub fn head(&self) -> String {
        let requests = self.server.requests();
        requests
            .first()
            .unwrap_or_else(|| panic!("{}", self.shown))
            .clone()
    }

    /// Checks that nothing was sent, and that the error begins with this text.
    #[track_caller]
    pub fn refused(&self, start: &str) {
        assert_eq!(self.server.requests().len(), 0, "{}", self.shown);
        assert!(self.shown.starts_with(start), "{}", self.shown);
    }
}

pub fn over(connection: &str, says: Vec<Say>, config: &str) -> Called {
    wait(async {
        let server = Server::start(says);
        let shown = world(&server, connection).run(&Llm, config).await;
        Called { server, shown }
    })
}

/// Calls OpenAI over chat completions. The config is written without braces.
pub fn call(config: &str) -> Called {
    let config = format!("{{:connection :ai {config}}}");
    over(OPENAI, vec![answers("Hi")], &config)
}

/// Calls a model with a prompt and these fields, and returns the body.
#[track_caller]
pub fn sent(config: &str) -> Json {
    call(&format!(":prompt \"x\" {config}")).body()
}

#[track_caller]
pub fn wrong(config: &str, start: &str) {
    call(&format!(":prompt \"x\" {config}")).refused(start);
}

#[test]
fn connection() {
    let called = over(
        OPENAI,
        vec![answers("Hi")],
        "{:connection \"other\" :prompt \"x\"}",
    );
    assert!(called.head().starts_with("POST /groq/chat/completions "));
    let called = over(
        OPENAI,
        vec![answers("Hi")],
        "{:connection :aj :prompt \"x\"}",
    );
    called.refused("E0750 bad-config: there is no connection `:aj`");
}

#[test]
fn messages() {
    let body = call(":messages [{:role :developer :content \"S\"} {:role :user :content [\"a\" {:type :text :text \"b\"}]} {:role \"assistant\" :content \"c\"} {:role :user :content {:d 1}}]").body();
    assert_eq!(
        body["messages"],
        json!([
            {"role": "system", "content": "S"},
            {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
            {"role": "assistant", "content": "c"},
            {"role": "user", "content": "{\"d\":1}"},
        ])
    );
    for (messages, problem) in [
        ("[{:content \"x\"}]", "a message has no role"),
        (
            "[{:role :robot :content \"x\"}]",
            "a message has the role `:robot`",
        ),
        ("[{:role :user}]", "a message of `:user` has no `:content`"),
        (
            "[{:role :user :content [{:type :sound}]}]",
            "a part of `:content` has the type `:sound`",
        ),
        (
            "[{:role :user :content \"x\" :opaque {}}]",
            "a message of `:user` has no `:opaque`",
        ),
        (
            "[{:role :system :content \"x\"}]",
            "there is nothing to ask",
        ),
        ("[]", "there is nothing to ask"),
    ] {
        call(&format!(":messages {messages}")).refused(&format!("E0809 bad-config: {problem}"));
    }
}

#[test]
fn messages_of_calls() {
    let call_of = |rest: &str| {
        call(&format!(
            ":messages [{{:role :user :content \"x\"}} {{:role :assistant :tool-calls [{{:tool-call-id \"c1\" :name \"add\" {rest}}}]}} {{:role :tool :tool-call-id \"c1\" :content \"3\"}}]"
        ))
    };
    let body = call_of(":arguments {:a 1}").body();
    assert_eq!(
        body["messages"][1]["tool_calls"],
        json!([{"id": "c1", "type": "function", "function": {"name": "add", "arguments": "{\"a\":1}"}}])
    );
    let body = call_of(":arguments-text \"{oops\"").body();
    let arguments = &body["messages"][1]["tool_calls"][0]["function"]["arguments"];
    assert!(arguments.as_str().unwrap().contains("{oops"), "{body}");
    call(":messages [{:role :assistant :tool-calls [{:name \"add\"}]}]")
        .refused("E0809 bad-config: a call of `:tool-calls` needs `:tool-call-id`");
    // A provider's opaque data are sent back unchanged.
    let claude = "{:backend :anthropic :base-url \"URL\" :model \"claude-sonnet-4-5\" :auth {:type :api-key :secret-ref :ai-key}}";
    let blocks = r#"[{\"type\":\"thinking\",\"thinking\":\"hm\",\"signature\":\"s1==\"},{\"type\":\"text\",\"text\":\"Hi\"}]"#;
    let called = over(
        claude,
        vec![answers("Hi")],
        &format!(
            "{{:connection :ai :messages [{{:role :user :content \"x\"}} {{:role :assistant :content \"Hi\" :opaque {{:family \"anthropic\" :blocks \"{blocks}\"}}}} {{:role :user :content \"y\"}}]}}"
        ),
    );
    assert_eq!(
        called.body()["messages"][1]["content"][0],
        json!({"type": "thinking", "thinking": "hm", "signature": "s1=="})
    );
}

#[test]
fn messages_of_tools() {
    let of = |content: &str| {
        call(&format!(
            ":messages [{{:role :user :content \"x\"}} {{:role :assistant :tool-calls [{{:tool-call-id \"c1\" :name \"add\"}}]}} {{:role :tool :tool-call-id \"c1\" :name \"add\" {content}}}]"
        ))
    };
    for (content, text) in [
        (":content {:sum 2}", "{\"sum\":2}"),
        (":content \"two\"", "two"),
        (":content [1 2]", "[1,2]"),
        (":content nil", "null"),
        (":content [{:type :text :text \"two\"}]", "two"),
        (":content \"no\" :error? true", "no"),
    ] {
        let message = of(content).body()["messages"][2].clone();
        assert_eq!(message["tool_call_id"], "c1");
        assert!(
            message["content"]
                .to_string()
                .contains(&json!(text).to_string()),
            "{message}"
        );
    }
    call(":messages [{:role :tool :content \"x\"}]")
        .refused("E0809 bad-config: a message of `:tool` needs the `:tool-call-id`");
}

#[test]
fn prompt() {
    let body = call(":prompt {:a 1}").body();
    assert_eq!(
        body["messages"],
        json!([{"role": "user", "content": "{\"a\":1}"}])
    );
    wrong(
        ":messages [{:role :user :content \"y\"}]",
        "E0809 bad-config: `:prompt` and `:messages` cannot both be given",
    );
}

#[test]
fn system() {
    let body = call(
        ":system \"S\" :messages [{:role :system :content \"T\"} {:role :user :content \"x\"}]",
    )
    .body();
    let roles: Vec<&str> = body["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["content"].as_str().unwrap())
        .collect();
    assert_eq!(roles, ["S", "T", "x"]);
}

#[test]
fn input() {
    let body = call(":input {:prompt \"p\" :system \"s\"}").body();
    assert_eq!(
        body["messages"],
        json!([{"role": "system", "content": "s"}, {"role": "user", "content": "p"}])
    );
    call(":prompt \"x\" :input {:prompt \"y\"}")
        .refused("E0809 bad-config: `:prompt` is set in the step and in its `:input`");
    call(":input {:propmt \"y\"}").refused("E0726 bad-config: `:input` has no key `:propmt`");
}

#[test]
fn template_and_data() {
    let asked = |config: &str| {
        wait(async {
            let server = Server::start(vec![answers("Hi")]);
            let world = world(&server, OPENAI).template(
                "{:id :hi :type :llm-prompt :system \"Greet.\" :prompt \"Greet {{name}}\"}",
            );
            let shown = world.run(&Llm, config).await;
            Called { server, shown }
        })
    };
    let body = asked("{:connection :ai :template :hi :data {:name \"Ada\"}}").body();
    assert_eq!(body["messages"][0]["content"], "Greet.");
    assert_eq!(body["messages"][1]["content"], "Greet Ada");
    // Options of the step override it.
    let body = asked("{:connection :ai :template :hi :system \"Own.\" :messages [{:role :user :content \"own\"}]}").body();
    assert_eq!(
        body["messages"],
        json!([{"role": "system", "content": "Own."}, {"role": "user", "content": "own"}])
    );
    asked("{:connection :ai :template :ho}")
        .refused("E0755 bad-config: the flow has no template `:ho`");
    asked("{:connection :ai :prompt \"x\" :data {}}")
        .refused("E0755 bad-config: `:data` needs a `:template`");
}

#[test]
fn model() {
    assert_eq!(sent("")["model"], "m");
    assert_eq!(sent(":model \"big\"")["model"], "big");
}

#[test]
fn provider() {
    assert_eq!(sent(":provider :openai")["model"], "m");
    wrong(
        ":provider :groq",
        "E0810 bad-config: the step names `:groq`, but its connection `:ai` is for `:openai`",
    );
}

#[test]
fn temperature() {
    assert_eq!(sent(":temperature 0.5")["temperature"], 0.5);
    wrong(
        ":temperature \"hot\"",
        "E0780 bad-config: `:temperature` takes a number",
    );
}

#[test]
fn top_p() {
    assert_eq!(sent(":top-p 0.9")["top_p"], 0.9);
    wrong(":top-p \"x\"", "E0780 bad-config: `:top-p` takes a number");
}

#[test]
fn stop() {
    assert_eq!(sent(":stop \"END\"")["stop"], json!(["END"]));
    assert_eq!(sent(":stop [\"a\" \"b\"]")["stop"], json!(["a", "b"]));
    wrong(":stop [1]", "E0780 bad-config: `:stop` takes strings");
}

#[test]
fn max_tokens() {
    assert_eq!(sent(":max-tokens 16")["max_completion_tokens"], 16);
    wrong(
        ":max-tokens 0",
        "E0725 bad-config: `:max-tokens` must be from 1",
    );
}

#[test]
fn seed() {
    assert_eq!(sent(":seed 7")["seed"], 7);
    over(
        "{:backend :deepseek :base-url \"URL\" :model \"m\"}",
        vec![answers("x")],
        "{:connection :ai :prompt \"x\" :seed 7}",
    )
    .refused("E0809 bad-config: `:deepseek` cannot do `:seed`");
}

#[test]
fn presence_penalty() {
    assert_eq!(sent(":presence-penalty 0.1")["presence_penalty"], 0.1);
    wrong(
        ":presence-penalty :x",
        "E0780 bad-config: `:presence-penalty` takes a number",
    );
}

#[test]
fn frequency_penalty() {
    assert_eq!(sent(":frequency-penalty 0.2")["frequency_penalty"], 0.2);
    wrong(
        ":frequency-penalty :x",
        "E0780 bad-config: `:frequency-penalty` takes a number",
    );
}

#[test]
fn output() {
    let body = sent(":output :json");
    assert_eq!(body["response_format"], json!({"type": "json_object"}));
    assert!(sent(":output :text").get("response_format").is_none());
    wrong(
        ":output {:format :xml}",
        "E0809 bad-config: `:output` has no `:format :xml`",
    );
    wrong(
        ":output {:fromat :json}",
        "E0726 bad-config: `:output` has no key `:fromat`",
    );
}

#[test]
fn response_format() {
    let raw = "{:type \"json_schema\" :json_schema {:name \"n\" :schema {:type \"object\" :required [\"n\"]}}}";
    let body = sent(&format!(":response-format {raw}"));
    assert_eq!(body["response_format"]["json_schema"]["name"], "n");
    // The answer is also checked by Flowstone.
    let called = over(
        OPENAI,
        vec![answers("{}")],
        &format!("{{:connection :ai :prompt \"x\" :response-format {raw}}}"),
    );
    assert!(
        called.shown.starts_with("E0811 bad-output: "),
        "{}",
        called.shown
    );
    wrong(
        ":response-format :xml",
        "E0809 bad-config: `:response-format` takes `:json`",
    );
}

#[test]
fn json_schema() {
    let body = sent(":json-schema {:type \"object\" :properties {:a {:type \"integer\"}}}");
    assert_eq!(
        body["response_format"]["json_schema"]["schema"],
        json!({"type": "object", "properties": {"a": {"type": "integer"}}})
    );
    wrong(":json-schema {:type \"objekt\"}", "E0815 bad-config: ");
}

#[test]
fn reasoning_effort() {
    assert_eq!(
        sent(":model \"gpt-5.4\" :reasoning-effort :low")["reasoning_effort"],
        "low"
    );
    wrong(
        ":model \"gpt-4o\" :reasoning-effort :low",
        "E0821 unsupported: `gpt-4o` of `:openai` does not take `:reasoning-effort`",
    );
}

#[test]
fn prompt_cache_key() {
    assert_eq!(sent(":prompt-cache-key \"k\"")["prompt_cache_key"], "k");
    over(
        "{:backend :groq :base-url \"URL\" :model \"m\" :auth {:type :none}}",
        vec![answers("x")],
        "{:connection :ai :prompt \"x\" :prompt-cache-key \"k\"}",
    )
    .refused("E0809 bad-config: `:groq` cannot do `:prompt-cache-key`");
}

#[test]
fn previous_response_id() {
    let called = call(":prompt \"x\" :previous-response-id \"resp_0\"");
    assert!(
        called.head().starts_with("POST /v1/responses "),
        "{}",
        called.head()
    );
    assert_eq!(called.body()["previous_response_id"], "resp_0");
    over(
        "{:backend :mistral :base-url \"URL\" :auth {:type :none}}",
        vec![answers("x")],
        "{:connection :ai :prompt \"x\" :previous-response-id \"r\"}",
    )
    .refused("E0809 bad-config: `:mistral` cannot do `:previous-response-id`");
}

#[test]
fn cache_system() {
    let claude =
        "{:backend :anthropic :base-url \"URL\" :auth {:type :api-key :secret-ref :ai-key}}";
    let config = "{:connection :ai :system \"S\" :prompt \"x\" :cache-system? true}";
    let body = over(claude, vec![answers("x")], config).body();
    assert_eq!(
        body["system"],
        json!([{"type": "text", "text": "S", "cache_control": {"type": "ephemeral"}}])
    );
    wrong(
        ":cache-system? true",
        "E0809 bad-config: `:openai` cannot do `:cache-system?`",
    );
}

#[test]
fn provider_opts() {
    assert_eq!(
        sent(":provider-opts {:openai {:store false}}")["store"],
        false
    );
    let body = sent(":provider-opts {:openai {:responses {:store false}}}");
    assert_eq!(body["store"], false);
    wrong(
        ":provider-opts {:groq {:a 1}}",
        "E0809 bad-config: `:provider-opts` is for `:groq`, and the provider is `:openai`",
    );
    wrong(
        ":provider-opts {:openai {:messages []}}",
        "E0809 bad-config: `:provider-opts` cannot replace `messages`",
    );
}

#[test]
fn openai() {
    let called = call(":prompt \"x\" :openai {:responses {:truncation \"auto\"}}");
    assert!(called.head().starts_with("POST /v1/responses "));
    assert_eq!(called.body()["truncation"], "auto");
    over(
        "{:backend :groq :base-url \"URL\" :model \"m\" :auth {:type :none}}",
        vec![answers("x")],
        "{:connection :ai :prompt \"x\" :openai {:responses {}}}",
    )
    .refused("E0809 bad-config: `:groq` cannot do `:openai`");
}

#[test]
fn base_url() {
    wait(async {
        let server = Server::start(vec![answers("Hi")]);
        let config = format!(
            "{{:base-url \"{}/own\" :model \"m\" :prompt \"x\"}}",
            server.url
        );
        World::new().run(&Llm, &config).await;
        let head = server.requests().remove(0);
        assert!(head.starts_with("POST /own/chat/completions "), "{head}");
    });
    wrong(":base-url \"ftp://x\"", "E0730 bad-url: ");
}

const GROQ: &str = "{:backend :groq :base-url \"URL\" :model \"m\" :auth {:type :none}}";

pub const AZURE: &str = "{:backend :azure-openai :base-url \"URL\" :model \"m\" :auth {:type :api-key :secret-ref :ai-key}}";

#[test]
fn deployment() {
    let config = "{:connection :ai :prompt \"x\" :deployment \"prod\"}";
    let head = over(AZURE, vec![answers("x")], config).head();
    assert!(
        head.starts_with("POST /openai/deployments/prod/chat/completions?api-version="),
        "{head}"
    );
    // The same as `:provider :openai`.
    let called = call(":prompt \"x\" :deployment \"prod\"");
    let head = called.head();
    assert!(
        head.contains("/openai/deployments/prod/chat/completions?api-version="),
        "{head}"
    );
    over(
        GROQ,
        vec![answers("x")],
        "{:connection :ai :prompt \"x\" :deployment \"d\"}",
    )
    .refused("E0809 bad-config: `:deployment` and `:api-version` do not apply to `:groq`");
}

#[test]
fn api_version() {
    let config =
        "{:connection :ai :prompt \"x\" :deployment \"d\" :api-version \"2025-04-01-preview\"}";
    let head = over(AZURE, vec![answers("x")], config).head();
    assert!(head.contains("?api-version=2025-04-01-preview "), "{head}");
    over(
        GROQ,
        vec![answers("x")],
        "{:connection :ai :prompt \"x\" :api-version \"v\"}",
    )
    .refused("E0809 bad-config: `:deployment` and `:api-version` do not apply to `:groq`");
}

#[test]
fn tools() {
    let body =
        sent(":tools [{:name \"add\" :description \"Adds\" :input-schema [:map [:a :int]]}]");
    assert_eq!(
        body["tools"][0]["function"],
        json!({"name": "add", "description": "Adds",
            "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}})
    );
    wrong(
        ":tools \"add\"",
        "E0809 bad-config: `:tools` takes a vector",
    );
    wrong(
        ":tools [{:name \"a b\"}]",
        "E0809 bad-config: `a b` cannot be the name of a tool",
    );
    wrong(
        ":tools [{:name \"a\"} {:name \"a\"}]",
        "E0809 bad-config: `:tools` defines `a` twice",
    );
}

#[test]
fn tools_definitions() {
    let body = sent(
        ":tools {:definitions [{:name \"add\" :params {:type \"object\"}}] :choice :required :mode :return}",
    );
    assert_eq!(
        body["tools"][0]["function"]["parameters"],
        json!({"type": "object"})
    );
    assert_eq!(body["tool_choice"], "required");
    let call =
        json!({"index": 0, "id": "c1", "function": {"name": "add", "arguments": "{\"a\":1}"}});
    let event =
        json!({"choices": [{"delta": {"tool_calls": [call]}, "finish_reason": "tool_calls"}]});
    let called = over(
        OPENAI,
        vec![events(&[&event.to_string(), "[DONE]"])],
        "{:connection :ai :prompt \"x\" :tools {:definitions [{:name \"add\"}]}}",
    );
    assert!(
        called
            .shown
            .contains(":tool-calls [{:tool-call-id \"c1\" :name \"add\" :arguments {:a 1}}]"),
        "{}",
        called.shown
    );
    wrong(
        ":tools {:definitions [] :choice :maybe}",
        "E0809 bad-config: `:tools` has no `:choice :maybe`",
    );
    wrong(
        ":tools {:definitions [] :choice :required}",
        "E0809 bad-config: `:tools :choice :required` needs a tool",
    );
    wrong(
        ":tools {:definitions [] :mode :maybe}",
        "E0809 bad-config: `:tools` has no `:mode :maybe`",
    );
}

/// Runs a flow with an `:llm` step that executes tools.
fn executed(turns: Vec<Say>, config: &str) -> (String, Vec<Json>) {
    let bench = Bench::with(crate::agent::STEPS, turns);
    let found = bench.run(&format!(
        "(select-keys (flow/step :llm :a {{:connection :ai :prompt \"x\" {config}}}) [:content :iterations :finish-reason :tool-call-stats])"
    ));
    (found, bench.asked())
}

fn adds(id: &str) -> Say {
    crate::agent::calls(&[(id, "math_add", "{\"a\": 1, \"b\": 2}")])
}

#[test]
fn available_steps() {
    let (found, asked) = executed(vec![says("none")], ":available-steps [:files]");
    assert!(found.contains(":content \"none\""), "{found}");
    assert_eq!(asked[0]["tools"][0]["function"]["name"], "files");
    let (found, asked) = executed(vec![says("none")], ":available-steps [:http]");
    assert!(asked.is_empty() && found.contains("http"), "{found}");
}

#[test]
fn max_iterations() {
    let (found, asked) = executed(
        vec![adds("1"), adds("2"), adds("3"), adds("4")],
        ":tools {:steps [:math/add]} :max-iterations 2",
    );
    assert!(
        found.contains(":finish-reason \"max-iterations\"") && found.contains(":call-count 2"),
        "{found}"
    );
    assert!(asked.len() <= 3, "{found}");
    let (found, _) = executed(
        vec![says("x")],
        ":tools {:steps [:math/add]} :max-iterations 101",
    );
    assert!(found.contains("max-iterations"), "{found}");
    wrong(
        ":max-iterations 3",
        "E0820 bad-config: `:max-iterations` needs tools that are executed",
    );
}

#[test]
fn max_tool_calls() {
    let (found, asked) = executed(
        vec![adds("1"), adds("2"), adds("3"), says("done")],
        ":tools {:steps [:math/add]} :max-tool-calls 1",
    );
    assert!(
        found.contains(":finish-reason \"max-tool-calls\"") && found.contains(":success-count 1"),
        "{found} {}",
        asked.len()
    );
    wrong(
        ":max-tool-calls 3",
        "E0820 bad-config: `:max-tool-calls` needs tools that are executed",
    );
}

#[test]
fn max_repeated_tool_calls() {
    let (found, asked) = executed(
        vec![adds("1"), adds("2"), adds("3"), says("done")],
        ":tools {:steps [:math/add]} :max-repeated-tool-calls 1",
    );
    assert!(
        asked.len() <= 4 && found.contains(":success-count 1"),
        "{found}"
    );
    wrong(
        ":max-repeated-tool-calls 3",
        "E0820 bad-config: `:max-repeated-tool-calls` needs tools that are executed",
    );
}

#[test]
fn auth() {
    let called = call(
        ":prompt \"x\" :auth {:type :api-key :header \"X-Own\" :prefix \"Key \" :secret-ref :ai-key}",
    );
    assert!(
        called.head().contains("\nx-own: Key s3cret"),
        "{}",
        called.head()
    );
    let called = call(":prompt \"x\" :auth {:type :bearer :secret-ref :none-such}");
    called.refused("E0752 missing-secret: ");
    wrong(
        ":auth {:type :bearer :token \"abc\"}",
        "E0753 bad-config: `:auth` holds a secret itself",
    );
}

#[test]
fn result() {
    let called = call(":prompt \"x\"");
    assert_eq!(
        called.shown,
        "{:content \"Hi\" :usage {:prompt-tokens 3 :completion-tokens 2 :total-tokens 5} :tokens-used 5 :model \"m-1\" :provider :openai :finish-reason \"stop\" :iterations 1 :response-id \"r1\"}"
    );
    // Data that must be sent back are part of the result.
    let thinks = [
        r#"{"type":"message_start","message":{"id":"msg_1","role":"assistant","content":[],"model":"c","usage":{"input_tokens":10,"cache_creation_input_tokens":2,"cache_read_input_tokens":3,"output_tokens":1}}}"#,
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"hm"}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"s=="}}"#,
        r#"{"type":"content_block_stop","index":0}"#,
        r#"{"type":"content_block_start","index":1,"content_block":{"type":"text","text":""}}"#,
        r#"{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"Hi"}}"#,
        r#"{"type":"content_block_stop","index":1}"#,
        r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":12}}"#,
        r#"{"type":"message_stop"}"#,
    ];
    let claude =
        "{:backend :anthropic :base-url \"URL\" :auth {:type :api-key :secret-ref :ai-key}}";
    let called = over(
        claude,
        vec![events(&thinks)],
        "{:connection :ai :prompt \"x\"}",
    );
    for part in [
        ":cached-tokens 3",
        ":cache-write-tokens 2",
        ":reasoning \"hm\"",
        ":opaque {:family \"anthropic\" :blocks \"",
        "s==",
    ] {
        assert!(called.shown.contains(part), "{part}: {}", called.shown);
    }
}
