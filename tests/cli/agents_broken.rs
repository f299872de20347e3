//! Streams of a model that break off and are asked for again, and answers that the model did not end by itself.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::agents_api::{Agents, answer, error};
use crate::api::Events;
use crate::server::{Answer, Server, event_stream};

/// A stream that breaks off after a text.
fn broken(text: &str) -> Answer {
    let chunk = json!({"id": "x", "choices": [{"index": 0, "delta": {"content": text}}]});
    Answer::Raw(event_stream(&format!("data: {chunk}\n\n")))
}

/// A whole answer with the reason for its end.
fn whole(text: &str, reason: &str) -> Answer {
    let choice = json!({"index": 0, "delta": {"content": text}, "finish_reason": reason});
    let chunk = json!({"id": "x", "model": "fake-1", "choices": [choice]});
    Answer::Events(vec![chunk.to_string(), "[DONE]".to_owned()])
}

/// Serves a model that gives these answers one after the other.
fn serve(answers: Vec<Answer>) -> Agents {
    let asked = Arc::new(AtomicUsize::new(0));
    Agents::serve_beside(Server::start(move |request, _| {
        if request.path != "/v1/chat/completions" {
            return answer(request);
        }
        let number = asked.fetch_add(1, Ordering::SeqCst);
        let known = answers.get(number).or(answers.last());
        known.cloned().unwrap_or(Answer::Status(500, "none"))
    }))
}

/// Serves a model whose first answer breaks off, and that is silent about the second until the first was read.
fn serve_broken(first: &str, second: Answer) -> (Agents, Arc<AtomicBool>) {
    let asked = AtomicUsize::new(0);
    let is_read = Arc::new(AtomicBool::new(false));
    let (first, may_continue) = (broken(first), is_read.clone());
    let agents = Agents::serve_beside(Server::start(move |request, _| {
        if request.path != "/v1/chat/completions" {
            return answer(request);
        }
        if asked.fetch_add(1, Ordering::SeqCst) == 0 {
            return first.clone();
        }
        let ends = Instant::now() + Duration::from_secs(20);
        while !may_continue.load(Ordering::SeqCst) && Instant::now() < ends {
            thread::sleep(Duration::from_millis(5));
        }
        second.clone()
    }));
    (agents, is_read)
}

/// Starts a streamed generation.
fn follow(agents: &Agents, agent: &str) -> Events {
    let authorization = format!("authorization: Bearer {}", agents.api.token);
    agents.api.follow_request(
        &format!("POST /api/v1/agents/{agent}/generate"),
        &[authorization.as_str(), "content-type: application/json"],
        &json!({"prompt": "x", "stream": true}).to_string(),
    )
}

/// Runs a streamed generation, and returns the data of its frames.
fn frames(agents: &Agents, agent: &str) -> Vec<String> {
    let path = format!("/agents/{agent}/generate");
    let streamed = agents.post(&path, &json!({"prompt": "x", "stream": true}));
    let lines = streamed.body.lines();
    let data = lines.filter_map(|line| line.trim().strip_prefix("data: "));
    data.map(str::to_owned).collect()
}

/// Returns the text of frames as a client joins it.
fn text(frames: &[String]) -> String {
    let frames = frames.iter().filter_map(|it| serde_json::from_str(it).ok());
    let text = |frame: Value| {
        let content = frame["choices"][0]["delta"]["content"].as_str();
        content.map(str::to_owned)
    };
    frames.filter_map(text).collect()
}

fn latest(agents: &Agents) -> Value {
    agents.get("/agents/generations").json()["data"][0].clone()
}

/// Waits until the latest generation is completed, and returns its record.
#[track_caller]
fn completed(agents: &Agents) -> Value {
    let ends = Instant::now() + Duration::from_secs(30);
    loop {
        let record = latest(agents);
        if record["status"] == "completed" {
            return record;
        }
        assert!(Instant::now() < ends, "{record}");
        thread::sleep(Duration::from_millis(30));
    }
}

#[test]
fn a_stream_whose_model_is_asked_again_goes_on_only_with_the_text_that_was_sent() {
    for (second, is_same) in [
        ("The answer is 4, surely.", true),
        ("The answer is 4", true),
        ("Five.", false),
        ("Paris is the capital of France, my friend.", false),
    ] {
        let (agents, is_read) = serve_broken("The answer is 4", whole(second, "stop"));
        let agent = agents.agent("x", &[], json!({}));
        let mut events = follow(&agents, &agent);
        let mut frames = vec![events.next_data().expect("a first frame")];
        is_read.store(true, Ordering::SeqCst);
        frames.extend(std::iter::from_fn(|| events.next_data()));
        let is_done = frames.last().is_some_and(|it| it == "[DONE]");
        assert_eq!(is_done, is_same, "{second}: {frames:?}");
        // The generation may go on longer than its stream.
        let record = completed(&agents);
        let trace = record["trace_id"].as_str().expect("an id");
        let trace = agents.get(&format!("/traces/{trace}")).json();
        assert_eq!(trace["steps"][0]["text"], second);
        if is_same {
            assert_eq!(text(&frames), second);
            assert_eq!(record["stop_reason"], "end_turn");
            continue;
        }
        assert_eq!(text(&frames), "The answer is 4", "nothing of another text");
        let last: Value = serde_json::from_str(frames.last().expect("a frame")).expect("JSON");
        assert_eq!(
            (&last["error"]["code"], &last["generation_id"]),
            (&json!("STREAM_CONTRADICTED"), &record["id"]),
            "{last}"
        );
        assert_eq!(record["stop_reason"], "stream_response_started");
    }
}

#[test]
fn a_stream_that_a_kill_ended_says_so() {
    let agents = serve(vec![
        Answer::Hang(event_stream("")),
        whole("after all", "stop"),
    ]);
    let agent = agents.agent("x", &[], json!({}));
    let _stream = follow(&agents, &agent);
    let ends = Instant::now() + Duration::from_secs(30);
    while agents.turns().is_empty() {
        assert!(Instant::now() < ends, "the model is not asked");
        thread::sleep(Duration::from_millis(20));
    }
    let agents = agents.restart();
    assert_eq!(completed(&agents)["stop_reason"], "stream_response_started");
}

#[test]
fn the_reason_of_the_model_for_its_end_is_passed_on() {
    for (reason, expected) in [
        ("length", "length"),
        ("stop", "stop"),
        ("odd_one", "odd-one"),
    ] {
        let agents = serve(vec![whole("Once upon", reason)]);
        let agent = agents.agent("x", &[], json!({}));
        let done = agents.generate(&agent, &json!({"prompt": "x"}));
        assert_eq!(
            (&done["output"]["finish_reason"], &done["stop_reason"]),
            (&json!(expected), &json!("end_turn")),
            "{done}"
        );
        let frames = frames(&agents, &agent);
        let last: Value = serde_json::from_str(&frames[frames.len() - 2]).expect("JSON");
        assert_eq!(last["choices"][0]["finish_reason"], expected, "{last}");
    }
}

#[test]
fn a_generation_that_its_steps_end_has_the_reason_of_its_last_step() {
    let agents = serve(vec![whole("no call", "stop")]);
    let tool = agents.http_tool("look");
    let more = json!({"tool_choice": "required", "max_steps": 1});
    let agent = agents.agent("x", &[&tool], more);
    let done = agents.generate(&agent, &json!({"prompt": "x"}));
    assert_eq!(
        (&done["stop_reason"], &done["output"]["finish_reason"]),
        (&json!("max_steps"), &json!("stop")),
        "{done}"
    );
    let agents = Agents::serve();
    let tool = agents.http_tool("look");
    let agent = agents.agent("call look", &[&tool], json!({"max_steps": 1}));
    let done = agents.generate(&agent, &json!({"prompt": "x"}));
    assert_eq!(
        (&done["stop_reason"], &done["output"]["finish_reason"]),
        (&json!("max_steps"), &json!("tool-calls")),
        "{done}"
    );
    let refused = agents.post("/agents/none/generate", &json!({"prompt": "x"}));
    assert_eq!(error(&refused), "404 RESOURCE_NOT_FOUND");
}
