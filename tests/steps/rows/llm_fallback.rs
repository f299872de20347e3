//! Several connections of one model call, checked on the bytes that reached each server.

use flowstone_steps::llm::Llm;
use serde_json::json;

use super::llm::answers;
use crate::agent::{Bench, STEPS, calls, says};
use crate::server::{Say, Server, reply};
use crate::world::{World, wait};

/// A response with a status and an error as OpenAI writes it.
fn fails(status: &str, kind: &str) -> Say {
    let body = format!(r#"{{"error": {{"message": "{kind} there", "type": "{kind}"}}}}"#);
    reply(status, &["content-type: application/json"], &body)
}

fn world(main: &str, spare: &str) -> World {
    World::new()
        .secret("ai-key", "s3cret")
        .secret("spare-key", "0ther-s3cret")
        .settings(&format!(
            "{{:connections {{:main {{:backend :openai :base-url \"{main}/v1\" :model \"m\" :auth {{:type :api-key :secret-ref :ai-key}}}} \
                              :spare {{:backend :groq :base-url \"{spare}/v1\" :model \"g\" :auth {{:type :api-key :secret-ref :spare-key}}}}}} \
              :prices [{{:provider :groq :model \"m-1\" :input 1000000 :output 0}}]}}"
        ))
        .timeout(5_000)
}

/// Asks both connections, and returns the outcome and the requests of each server.
fn ask(first: Say, config: &str) -> (String, [Vec<String>; 2]) {
    wait(async {
        let (main, spare) = (
            Server::start(vec![first]),
            Server::start(vec![answers("Hi")]),
        );
        let shown = world(&main.url, &spare.url).run(&Llm, config).await;
        (shown, [main.requests(), spare.requests()])
    })
}

const BOTH: &str = "{:connection [:main :spare] :prompt \"x\"}";

#[test]
fn the_next_connection_answers_when_the_first_is_unavailable() {
    for status in [
        "500 Internal Server Error",
        "503 Service Unavailable",
        "529 Overloaded",
    ] {
        let (shown, [main, spare]) = ask(fails(status, "overloaded_error"), BOTH);
        assert_eq!((main.len(), spare.len()), (1, 1), "{shown}");
        assert!(shown.contains(":connection :spare"), "{shown}");
        assert!(
            shown.contains(
                ":failed-connections [{:connection :main :code \"E0805\" :kind :unavailable"
            ),
            "{shown}"
        );
        // Three tokens at a dollar each: the price of the provider that answered.
        assert!(
            shown.contains(":cost-usd 3.0") && shown.contains(":provider :groq"),
            "{shown}"
        );
        assert!(main[0].contains("Bearer s3cret") && spare[0].contains("Bearer 0ther-s3cret"));
        assert!(!spare[0].contains("Bearer s3cret"), "{}", spare[0]);
    }
}

#[test]
fn the_next_connection_answers_when_the_first_is_unreachable_or_without_credit() {
    let (shown, [main, spare]) = ask(fails("402 Payment Required", "billing"), BOTH);
    assert_eq!((main.len(), spare.len()), (1, 1), "{shown}");
    assert!(shown.contains(":kind :no-credit"), "{shown}");
    let shown = wait(async {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let closed = format!("http://{}", listener.local_addr().unwrap());
        drop(listener);
        let spare = Server::start(vec![answers("Hi")]);
        world(&closed, &spare.url).run(&Llm, BOTH).await
    });
    assert!(
        shown.contains(":content \"Hi\"") && shown.contains(":connection :spare"),
        "{shown}"
    );
}

#[test]
fn a_wrong_request_and_a_refused_key_end_the_step() {
    for (status, code) in [
        ("400 Bad Request", "E0813"),
        ("401 Unauthorized", "E0801"),
        ("403 Forbidden", "E0801"),
        ("404 Not Found", "E0802"),
    ] {
        let (shown, [main, spare]) = ask(fails(status, "no"), BOTH);
        assert!(shown.starts_with(code), "{shown}");
        assert_eq!((main.len(), spare.len()), (1, 0), "{shown}");
    }
}

#[test]
fn a_list_of_connections_is_checked_before_anything_is_sent() {
    for (config, start) in [
        (
            ":connection []",
            "E1310 bad-config: `:connection` takes 1 to 8 connections",
        ),
        (
            ":connection [:main :main]",
            "E1310 bad-config: `:connection` names `:main` twice",
        ),
        (
            ":connection [:main :spare] :base-url \"http://127.0.0.1:1\"",
            "E1310 bad-config: `:base-url` belongs to one server",
        ),
        (
            ":connection [:main :spare] :provider-opts {:mistral {:x 1}}",
            "E1310 bad-config: `:provider-opts` is for `:mistral`",
        ),
        (
            ":connection [:main :spaer]",
            "E0750 bad-config: there is no connection `:spaer`",
        ),
        (
            ":connection [:main :spare] :frequency-penalty 1",
            "E0809 bad-config: `:groq` cannot do",
        ),
    ] {
        let (shown, [main, spare]) = ask(answers("Hi"), &format!("{{{config} :prompt \"x\"}}"));
        assert!(shown.starts_with(start), "{shown}");
        assert_eq!((main.len(), spare.len()), (0, 0), "{shown}");
    }
}

#[test]
fn each_connection_gets_the_options_of_its_provider() {
    let config =
        "{:connection [:main :spare] :prompt \"x\" :provider-opts {:openai {:a 1} :groq {:b 2}}}";
    let (shown, [main, spare]) = ask(fails("503 Service Unavailable", "x"), config);
    assert!(
        main[0].contains("\"a\":1") && !main[0].contains("\"b\":2"),
        "{shown}"
    );
    assert!(
        spare[0].contains("\"b\":2") && !spare[0].contains("\"a\":1"),
        "{shown}"
    );
}

/// Creates a project with both connections.
fn bench(main: Vec<Say>, spare: &Server) -> Bench {
    let connection = format!(
        "{{:backend :openai :base-url \"URL/v1\" :model \"m\" :auth {{:type :none}}}} \
         :spare {{:backend :openai :base-url \"{}/v1\" :model \"s\" :auth {{:type :none}}}}",
        spare.url
    );
    Bench::behind(&connection, STEPS, main)
}

#[test]
fn a_limited_rate_is_waited_for_before_the_next_connection_is_asked() {
    let spare = Server::start(vec![says("Hi")]);
    let bench = bench(vec![fails("429 Too Many Requests", "rate_limit")], &spare);
    let found = bench.run("(:connection (flow/step :llm :a {:connection [:ai :spare] :prompt \"x\" :retry {:max-attempts 3 :initial-interval-ms 1}}))");
    assert_eq!(found, ":spare");
    assert_eq!((bench.asked().len(), spare.requests().len()), (3, 1));
}

#[test]
fn an_agent_keeps_its_conversation_and_stays_with_the_connection_that_answered() {
    let add = ("c1", "math_add", "{\"a\": 1, \"b\": 2}");
    let spare = Server::start(vec![
        calls(&[("c2", "math_add", "{\"a\": 3, \"b\": 4}")]),
        says("Ten."),
    ]);
    let bench = bench(
        vec![calls(&[add]), fails("503 Service Unavailable", "x")],
        &spare,
    );
    let found = bench.run("(select-keys (flow/step :agent :a {:connection [:ai :spare] :objective \"Add.\" :tools {:steps [:math/add]}}) [:content :connection :iterations])");
    assert_eq!(
        found,
        "{:content \"Ten.\" :connection :spare :iterations 3}"
    );
    // The failed turn, and no request afterwards.
    assert_eq!(bench.asked().len(), 2);
    let asked = spare.body(0);
    assert_eq!(asked["model"], "s");
    let messages = asked["messages"].as_array().unwrap();
    let last = messages.last().unwrap();
    assert_eq!(
        (&last["role"], &last["tool_call_id"]),
        (&json!("tool"), &json!("c1"))
    );
    assert!(last["content"].to_string().contains("3"), "{last}");
    assert_eq!(spare.requests().len(), 2);
}
