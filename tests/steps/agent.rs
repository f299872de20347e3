//! `:agent`: the loop, against a local model server.

use flowstone_engine::ports::WaitFilter;
use serde_json::{Value as Json, json};

use crate::project::Project;
use crate::server::{Say, Server, events};

/// Returns a turn in which the model answers with this text.
pub fn says(content: &str) -> Say {
    turn(json!({"content": content}), "stop")
}

/// Returns a turn in which the model calls these tools, with arguments as JSON text.
pub fn calls(calls: &[(&str, &str, &str)]) -> Say {
    let calls: Vec<Json> = calls
        .iter()
        .enumerate()
        .map(|(idx, (id, name, arguments))| {
            json!({"index": idx, "id": id, "type": "function", "function": {"name": name, "arguments": arguments}})
        })
        .collect();
    turn(json!({"tool_calls": calls}), "tool_calls")
}

fn turn(delta: Json, reason: &str) -> Say {
    let chunk = json!({
        "id": "r1", "model": "m-1",
        "choices": [{"index": 0, "delta": delta, "finish_reason": reason}],
        "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15},
    });
    events(&[&chunk.to_string(), "[DONE]"])
}

const OPENAI: &str = "{:backend :openai :base-url \"URL/v1\" :model \"m\" :auth {:type :api-key :secret-ref :ai-key}}";

/// A project, the model server that it calls, and the keys of its flows besides `:flow`.
pub struct Bench {
    pub project: Project,
    pub server: Server,
    definitions: String,
}

impl Bench {
    /// Creates a project whose model gives these responses.
    pub fn new(turns: Vec<Say>) -> Bench {
        Bench::with("", turns)
    }

    /// Adds definitions to the flow, such as `:steps [...]`.
    pub fn with(definitions: &str, turns: Vec<Say>) -> Bench {
        Bench::behind(OPENAI, definitions, turns)
    }

    /// Replaces the connection; `URL` in it is the address of the model.
    pub fn behind(connection: &str, definitions: &str, turns: Vec<Say>) -> Bench {
        let server = Server::start(turns);
        let connection = connection.replace("URL", &server.url);
        let settings = format!("{{:connections {{:ai {connection}}}}}");
        Bench {
            // The key remains available after a reopening.
            project: Project::with_files(&[
                ("flowstone.edn", &settings),
                (
                    ".env",
                    "AI_KEY=s3cret\nOTHER_KEY=0ther-s3cret\nAI_API_KEY=s3cret\n",
                ),
            ]),
            server,
            definitions: definitions.to_owned(),
        }
    }

    /// Runs a body, and returns its result or its error.
    pub fn run(&self, body: &str) -> String {
        let definitions = &self.definitions;
        let flow = match definitions.is_empty() {
            true => body.to_owned(),
            false => format!("{{:slug :agents {definitions} :flow '{body}}}"),
        };
        self.project.eval(&flow)
    }

    /// Returns the id of the only open wait.
    pub fn only_wait(&self) -> String {
        let waits = self.project.engine.list_waits(WaitFilter::default());
        let waits = self.project.block_on(waits).expect("waits");
        assert_eq!(waits.len(), 1);
        waits[0].id.to_string()
    }

    /// Returns the bodies of the requests that reached the model.
    pub fn asked(&self) -> Vec<Json> {
        (0..self.server.requests().len())
            .map(|idx| self.server.body(idx))
            .collect()
    }
}

/// Definitions of a step that adds two numbers, and of one that fails.
pub const STEPS: &str = ":functions [{:id :add :code (fn [{:keys [a b]}] {:sum (+ a b)})} \
                                     {:id :fail :code (fn [_] (throw (ex-info \"no more\" {})))}] \
                         :steps [{:id :math/add :type :function :description \"Adds two numbers.\" \
                                  :input-schema [:map [:a :int] [:b :int]] :defaults {:ref :add}} \
                                 {:id :math/fail :type :function :description \"Fails.\" :defaults {:ref :fail}}]";

#[test]
fn an_agent_without_tools_answers_at_once() {
    let bench = Bench::new(vec![says("Blue.")]);
    let found = bench.run("(select-keys (flow/step :agent :a {:connection :ai :objective \"Say a colour.\"}) [:content :tool-calls :usage :iterations :finish-reason])");
    assert_eq!(
        found,
        "{:content \"Blue.\" :tool-calls [] :usage {:prompt-tokens 10 :completion-tokens 5 :total-tokens 15} :iterations 1 :finish-reason \"stop\"}"
    );
    let asked = &bench.asked()[0];
    assert_eq!(asked["messages"][0]["role"], "system");
    assert_eq!(
        asked["messages"][1],
        json!({"role": "user", "content": "Objective:\nSay a colour."})
    );
    assert!(asked.get("tools").is_none(), "{asked}");
}

#[test]
fn a_too_long_conversation_is_retried_with_shorter_results() {
    let definitions = ":functions [{:id :long :code (fn [_] {:text (apply str (repeat 3000 \"a\"))})}] \
                       :steps [{:id :notes/all :type :function :description \"All notes.\" :defaults {:ref :long}}]";
    let too_long = crate::server::reply(
        "400 Bad Request",
        &["content-type: application/json"],
        r#"{"error": {"message": "maximum context length", "code": "context_length_exceeded"}}"#,
    );
    let turns = vec![
        calls(&[("c1", "notes_all", "{}")]),
        too_long,
        says("Many letters."),
    ];
    let bench = Bench::with(definitions, turns);
    let found = bench.run("(:content (flow/step :agent :a {:connection :ai :objective \"Read.\" :tools {:steps [:notes/all]}}))");
    assert_eq!(found, "\"Many letters.\"");
    let length = |at: usize| {
        let asked = &bench.asked()[at];
        let messages = asked["messages"].as_array().unwrap();
        let result = messages.iter().find(|it| it["role"] == "tool").unwrap();
        result["content"].as_str().unwrap().len()
    };
    assert!(length(1) > 3000, "{}", length(1));
    assert!(length(2) < 700, "{}", length(2));
}

#[test]
fn tokens_are_estimated_if_the_server_does_not_count_them() {
    let call = json!({"index": 0, "id": "c1", "type": "function", "function": {"name": "math_add", "arguments": "{\"a\":1,\"b\":2}"}});
    let chunk = |usage: Json| {
        let chunk = json!({
            "id": "r1", "model": "m-1", "usage": usage,
            "choices": [{"index": 0, "delta": {"tool_calls": [call]}, "finish_reason": "tool_calls"}],
        });
        events(&[&chunk.to_string(), "[DONE]"])
    };
    let zero = json!({"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0});
    for usage in [Json::Null, zero] {
        let bench = Bench::with(STEPS, vec![chunk(usage)]);
        let found = bench.run("(let [r (flow/step :agent :a {:connection :ai :objective \"Add.\" :tools {:steps [:math/add]} :max-tokens-budget 200})] [(:iterations r) (:finish-reason r) (= (:tokens-used r) (:estimated-tokens (:usage r))) (< 200 (:tokens-used r) 500) (first (:warnings r)) (:cost-usd r)])");
        assert_eq!(
            found,
            "[2 \"token-budget\" true true \"the provider reports no usage: 339 of the 339 tokens are an estimate, and the budget holds for it\" nil]"
        );
    }
}

#[test]
fn cut_off_arguments_are_reported_as_such() {
    let call = json!({"index": 0, "id": "c1", "type": "function", "function": {"name": "math_add", "arguments": "{\"a\": 1, \"b"}});
    let bench = Bench::with(
        STEPS,
        vec![turn(json!({"tool_calls": [call]}), "length"), says("ok")],
    );
    let found = bench.run("(:result (first (:tool-calls (flow/step :agent :a {:connection :ai :objective \"Add.\" :tools {:steps [:math/add]}}))))");
    assert_eq!(
        found,
        "{:error \"not performed: your answer reached its limit of tokens, and the arguments of `math_add` were cut off after 11 characters. Write shorter arguments, or do it in several calls\"}"
    );
}
