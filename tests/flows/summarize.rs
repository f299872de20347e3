//! `summarize.edn` against a server that speaks chat completions.

use expect_test::expect_file;
use serde_json::{Value, json};

use super::project;
use crate::program::Ran;
use crate::server::{Answer, Request, Server};

/// Answers with the first heading of the document as its title.
fn answer(request: &Request) -> Answer {
    let call: Value = serde_json::from_str(&request.body).expect("a JSON body");
    let messages = call["messages"].as_array().expect("messages");
    let question = messages
        .last()
        .and_then(|message| message["content"].as_str());
    let question = question.unwrap_or_default();
    let title = question.lines().find_map(|line| line.strip_prefix("# "));
    let content = json!({
        "title": title.unwrap_or("?"),
        "summary": format!("{} characters.", question.len()),
        "topics": ["notes", "tests"],
    });
    let content = content.to_string();
    let chunk = |delta: Value, reason: Value| {
        let choice = json!({"index": 0, "delta": delta, "finish_reason": reason});
        json!({"id": "1", "object": "chat.completion.chunk", "model": "fake", "choices": [choice]})
            .to_string()
    };
    if call["stream"] != true {
        let message = json!({"role": "assistant", "content": content});
        let choice = json!({"index": 0, "message": message, "finish_reason": "stop"});
        let usage = json!({"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2});
        return Answer::Json(
            json!({"id": "1", "object": "chat.completion", "model": "fake", "choices": [choice], "usage": usage})
                .to_string(),
        );
    }
    let (start, end) = content.split_at(content.len() / 2);
    Answer::Events(vec![
        chunk(json!({"role": "assistant", "content": start}), Value::Null),
        chunk(json!({"content": end}), Value::Null),
        chunk(json!({}), json!("stop")),
        "[DONE]".to_owned(),
    ])
}

#[test]
fn each_file_is_summarized() {
    let server = Server::start(|request, _| answer(request));
    let scratch = project();
    scratch.write(
        "flowstone.edn",
        format!(
            "{{:connections {{:ai {{:type :http-api :backend \"openai-compatible\" :model \"fake\"
                                    :base-url \"{}\" :auth {{:type :none}}}}}}}}",
            server.url("/v1")
        ),
    );
    let args = [
        "run",
        "flows/summarize.edn",
        "--input",
        "@flows/summarize/input.edn",
    ];
    let ran = scratch.run(&args);
    expect_file!["../../flows/summarize/expected.md"].assert_eq(&ran.ok());
    assert_eq!(server.requests().len(), 2);
    assert!(
        server
            .requests()
            .iter()
            .all(|request| request.path == "/v1/chat/completions")
    );
}

/// The header's second command: a local server, and no key anywhere.
#[test]
fn a_local_server_needs_no_key() {
    let server = Server::start(|request, _| answer(request));
    let scratch = project();
    let mut command = scratch.command(&["run", "flows/summarize.edn", "--quiet", "--input"]);
    command.arg("{:path \"flows/summarize/notes\" :model \"fake\"}");
    for key in ["AI_API_KEY", "AI_TOKEN", "OLLAMA_API_KEY", "OPENAI_API_KEY"] {
        command.env_remove(key);
    }
    command.env("OLLAMA_HOST", server.url("").trim_start_matches("http://"));
    let ran = Ran::to_the_end(&mut command);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert!(ran.out.contains("characters."), "{}", ran.out);
    // A slot that names its secret still needs it.
    let flow = scratch.path().join("flows/summarize.edn");
    let text = std::fs::read_to_string(&flow).expect("the flow");
    let named = text.replace(
        ":auth {:type :api-key}",
        ":auth {:type :api-key :secret-ref :my-key}",
    );
    std::fs::write(&flow, named).expect("the flow");
    let ran = Ran::to_the_end(&mut command);
    assert!(ran.err.contains("E0752"), "{}", ran.err);
}
