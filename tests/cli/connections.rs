//! `flowstone connections`, and runs with profiles.

use serde_json::{Value as Json, json};

use crate::program::{Ran, Scratch};
use crate::server::{Answer, Server};

const FLOW: &str = r#"{:slug :ask
 :requires [{:slot :ai :type :http-api :backend :openai :label "AI"}
            {:slot :crm :type :http-api :base-url "URL/crm" :auth {:type :bearer}}
            {:slot :tools :type :http-api :backend :mcp :base-url "URL/mcp" :optional true}
            {:slot :hook :type :secret :secret-ref :hook-secret}]
 :flow '(let [before (flow/step :llm :before {:connection :ai :model "gpt-4.1" :prompt "before"})
              answer (flow/step :wait :question {:key "the-question" :timeout "1d"})
              after (flow/step :llm :after {:connection :ai :model "gpt-4.1" :prompt "after"})]
          [(:content before) (:content after) (:cost-usd after) (flow/slot-bound? :ai)])}"#;

const SETTINGS: &str = r#"{:connections {:ai-one {:backend :openai :base-url "URL/one" :auth {:type :bearer :secret-ref :one-key}}
               :ai-two {:backend :openai :base-url "URL/two" :auth {:type :bearer :secret-ref :two-key}}}
 :secrets {:one-key {:env "ONE"} :two-key {:env "NOWHERE"}}
 :bindings {:ai {:conn :ai-one}}
 :allow {:net ["127.0.0.1"] :secrets {:crm-token ["127.0.0.1"]}}
 :profiles {:prod {:bindings {:ai {:conn :ai-two}} :secrets {:two-key {:file "two.txt"}}}}}"#;

fn server() -> Server {
    Server::start(|request, _| {
        let say = |text: &str| {
            let delta = json!({"choices": [{"delta": {"content": text}, "finish_reason": "stop"}]});
            let usage = json!({"choices": [], "usage": {"prompt_tokens": 1000, "completion_tokens": 10, "total_tokens": 1010}});
            Answer::Events(vec![
                delta.to_string(),
                usage.to_string(),
                "[DONE]".to_owned(),
            ])
        };
        match request.path.as_str() {
            "/one/chat/completions" => say("one"),
            "/two/chat/completions" => say("two"),
            "/mcp" if request.body.contains("initialize") => Answer::Json(
                json!({"jsonrpc": "2.0", "id": 1, "result": {"protocolVersion": "2025-06-18", "serverInfo": {"name": "tools"}}}).to_string(),
            ),
            "/crm" => Answer::Status(404, "nothing here"),
            _ => Answer::Status(500, "broken"),
        }
    })
}

fn project(server: &Server) -> Scratch {
    let scratch = Scratch::new();
    let url = server.url("");
    scratch.write("flows/ask.edn", FLOW.replace("URL", &url));
    scratch.write("flowstone.edn", SETTINGS.replace("URL", &url));
    scratch.write("two.txt", "two-secret-text\n");
    scratch
}

fn run(scratch: &Scratch, args: &[&str]) -> Ran {
    let mut command = scratch.command(args);
    command
        .env("ONE", "one-secret-text")
        .env("CRM_TOKEN", "crm-secret-text");
    Ran::to_the_end(&mut command)
}

/// The entry of a name in an answer.
fn entry(json: &Json, name: &str) -> Json {
    let all = json["connections"].as_array().expect("a list");
    all.iter()
        .find(|it| it["name"] == name)
        .expect(name)
        .clone()
}

#[test]
fn connections_are_listed_without_their_secrets() {
    let server = server();
    let scratch = project(&server);
    let plain = run(&scratch, &["connections", "list", "--json"]);
    let json = plain.json();
    assert_eq!(entry(&json, "ai")["boundTo"], "ai-one");
    assert_eq!(entry(&json, "ai")["source"], "ask");
    assert_eq!(
        entry(&json, "ai-one")["secret"],
        json!({"name": "one-key", "place": "environment ONE", "isSet": true})
    );
    assert_eq!(entry(&json, "ai-two")["secret"]["isSet"], false);
    assert_eq!(
        entry(&json, "crm")["secret"]["place"],
        "environment CRM_TOKEN"
    );
    assert_eq!(entry(&json, "hook")["type"], "secret");
    assert_eq!(entry(&json, "tools")["optional"], true);
    let prod = run(
        &scratch,
        &["connections", "list", "--json", "--profile", "prod"],
    );
    let secret = entry(&prod.json(), "ai")["secret"].clone();
    assert_eq!(secret["isSet"], true);
    assert!(
        secret["place"]
            .as_str()
            .is_some_and(|it| it.ends_with("two.txt")),
        "{secret}"
    );
    let words = run(&scratch, &["connections", "list", "flows/ask.edn"]).ok();
    assert!(words.contains("environment HOOK_SECRET"), "{words}");
    for text in [plain.out, prod.out, words] {
        assert!(!text.contains("secret-text"), "{text}");
    }
    assert!(server.requests().is_empty());
}

#[test]
fn connections_are_tested() {
    let server = server();
    let scratch = project(&server);
    let ran = run(&scratch, &["connections", "test", "--json"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let json = ran.json();
    let verdict = |name: &str| {
        let entry = entry(&json, name);
        format!(
            "{} {}",
            entry["verdict"].as_str().unwrap_or("?"),
            entry["detail"].as_str().unwrap_or("?")
        )
    };
    assert_eq!(verdict("ai"), "works gpt-5.4 answered");
    assert_eq!(verdict("crm"), "works answered 404");
    assert_eq!(verdict("tools"), "works tools speaks MCP 2025-06-18");
    assert_eq!(
        verdict("hook"),
        "fails it is not set (environment HOOK_SECRET)"
    );
    assert!(
        verdict("ai-two").starts_with("fails the secret `two-key`"),
        "{}",
        verdict("ai-two")
    );
    assert_eq!(json["ok"], false);
    let one = run(
        &scratch,
        &["connections", "test", "ai", "--profile", "prod"],
    );
    assert!(
        one.out.starts_with("works  ai") && one.code == Some(0),
        "{one:?}"
    );
    let unknown = run(&scratch, &["connections", "test", "ia"]);
    assert_eq!(unknown.code, Some(1));
    assert!(
        unknown.err.contains("E0951") && unknown.err.contains("did you mean `ai`?"),
        "{unknown:?}"
    );
}

#[test]
fn a_server_with_a_command_is_not_tried() {
    let scratch = Scratch::new();
    let settings = r#"{:connections {:shop {:backend :mcp :command ["no-such-program"]}}}"#;
    scratch.write("flowstone.edn", settings);
    let json = run(&scratch, &["connections", "test", "--json"]).json();
    let shop = entry(&json, "shop");
    assert_eq!(shop["verdict"], "untried");
    assert!(
        shop["detail"]
            .as_str()
            .unwrap_or_default()
            .contains("`:command`"),
        "{shop}"
    );
}

#[test]
fn a_run_keeps_its_profile() {
    let server = server();
    let scratch = project(&server);
    let cases: &[(&[&str], &str)] = &[
        (&[], "[\"one\" \"one\" 0.00208 true]"),
        (&["--profile", "prod"], "[\"two\" \"two\" 0.00208 true]"),
        (
            &["--profile", ":prod", "--set", "ai.conn=ai-one"],
            "[\"one\" \"one\" 0.00208 true]",
        ),
    ];
    for (extra, expected) in cases {
        let args = [&["run", "flows/ask.edn", "--quiet", "--new"], *extra].concat();
        assert_eq!(run(&scratch, &args).code, Some(3), "{extra:?}");
        // An answer does not repeat the profile.
        let ran = run(
            &scratch,
            &[
                "waits",
                "complete",
                "the-question",
                "--value",
                "{:action :go}",
            ],
        );
        let shown = run(&scratch, &["runs", "list", "--json"]).json();
        assert_eq!(shown["runs"][0]["status"], "completed", "{ran:?}");
        let id = shown["runs"][0]["id"].as_str().expect("an id").to_owned();
        let shown = run(&scratch, &["runs", "show", &id]).out;
        let flat = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            flat(&shown).contains(expected),
            "{extra:?} {expected}: {shown}"
        );
    }
}

#[test]
fn wrong_bindings_are_refused() {
    let server = server();
    let scratch = project(&server);
    let cases: &[(&[&str], i32, &str)] = &[
        (&["--profile", "prd"], 1, "E0935"),
        (&["--set", "ai.conn=ai-tow"], 1, "did you mean `:ai-two`?"),
        (&["--set", "ai=ai-two"], 2, "such as ai.conn=openai-prod"),
        (&["--set", ".conn=x"], 2, "such as ai.conn=openai-prod"),
    ];
    for (extra, code, expected) in cases {
        let ran = run(&scratch, &[&["run", "flows/ask.edn"], *extra].concat());
        assert_eq!(ran.code, Some(*code), "{extra:?} {ran:?}");
        assert!(ran.err.contains(expected), "{extra:?}: {}", ran.err);
    }
    let settings = [
        (
            "{:bindings {:ai {:token \"s3cret\"}}}",
            "holds a secret itself, under `:token`",
        ),
        (
            "{:bindings {:ai {:conn :x :base-url \"y\"}}}",
            "which is all it may say then",
        ),
        ("{:bindings {:ai 7}}", "must be `{:conn :name}`"),
        (
            "{:profiles {:prod {:conections {}}}}",
            "did you mean `:connections`?",
        ),
        (
            "{:profiles {:prod {:secrets {:a \"s3cret\"}}}}",
            "must not contain the secret itself",
        ),
        ("{:profiles {:prod []}}", "takes a map"),
        ("{:prices [{:provider :openai}]}", "needs `:model`"),
    ];
    for (text, expected) in settings {
        scratch.write("flowstone.edn", text);
        let ran = run(&scratch, &["connections", "list"]);
        assert_eq!(ran.code, Some(1), "{text}");
        assert!(
            ran.err.contains("E0751") && ran.err.contains(expected),
            "{text}: {}",
            ran.err
        );
        assert!(!ran.err.contains("s3cret"), "{}", ran.err);
    }
}

#[test]
fn a_secret_that_cannot_be_had_says_why() {
    let server = server();
    let scratch = project(&server);
    let settings = |place: &str| {
        format!(
            "{{:connections {{:ai {{:backend :openai :base-url \"{}\" :auth {{:type :bearer :secret-ref :key}}}}}} :secrets {{:key {place}}}}}",
            server.url("/one")
        )
    };
    let mut cases = vec![("{:file \"gone.txt\"}", "gone.txt cannot be read")];
    if cfg!(not(feature = "keyring")) {
        cases.push(("{:keyring \"flowstone/openai\"}", "built without"));
    }
    for (place, expected) in cases {
        scratch.write("flowstone.edn", settings(place));
        let ran = run(&scratch, &["run", "flows/ask.edn", "--new"]);
        assert_eq!(ran.code, Some(1), "{ran:?}");
        assert!(
            ran.err.contains("E0752") && ran.err.contains(expected),
            "{}",
            ran.err
        );
    }
}

#[test]
fn a_secret_that_is_not_set_is_looked_for_where_the_settings_say() {
    let server = server();
    let scratch = project(&server);
    let settings = |secrets: &str| {
        format!(
            "{{:connections {{:ai {{:backend :openai :base-url \"{}\" :auth {{:type :bearer :secret-ref :key}}}}}} {secrets}}}",
            server.url("/one")
        )
    };
    for (secrets, expected, other) in [
        ("", "set KEY in the environment", "OTHER_KEY"),
        (
            ":secrets {:key {:env \"OTHER_KEY\"}}",
            "set OTHER_KEY in the environment",
            "set KEY in",
        ),
    ] {
        scratch.write("flowstone.edn", settings(secrets));
        let ran = run(&scratch, &["run", "flows/ask.edn", "--new"]);
        assert!(ran.err.contains("E0752"), "{}", ran.err);
        assert!(ran.err.contains(expected), "{}", ran.err);
        assert!(!ran.err.contains(other), "{}", ran.err);
    }
}

#[test]
fn prices_are_shown_with_their_source() {
    let scratch = Scratch::new();
    scratch.write(
        "flowstone.edn",
        "{:prices [{:provider :openai :model \"gpt-4.1\" :input 1 :output 2}]}",
    );
    let json = scratch
        .run(&["connections", "prices", "gpt-4.1", "--json"])
        .json();
    let first = &json["prices"][0];
    assert_eq!(
        (&first["input"], &first["source"]),
        (&json!(1.0), &json!("flowstone.edn"))
    );
    assert_eq!(json["prices"][1]["source"], "built in");
    let words = scratch.run(&["connections", "prices"]);
    assert!(
        words.out.contains("claude-sonnet-4") && words.err.contains("US dollars"),
        "{words:?}"
    );
}
