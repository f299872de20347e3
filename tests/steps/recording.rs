//! Recordings: the contents of their files, and which requests they answer.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use flowstone_steps::http::Http;
use flowstone_steps::llm::Llm;
use flowstone_steps::recording::{Recorder, RecordingError, Replayer};
use serde_json::{Value as Json, json};

use crate::server::{Say, Server, events, json as json_answer, reply};
use crate::world::{World, wait};

/// Starts a recording in this folder of the world.
const FOLDER: &str = "answers";

fn recording(world: World) -> World {
    let recorder = Recorder::create(&world.path().join(FOLDER), BTreeMap::new()).unwrap();
    with(world, recorder)
}

fn replaying(world: World) -> World {
    let replayer = Replayer::open(&world.path().join(FOLDER)).unwrap();
    with(world, replayer)
}

fn with(mut world: World, exchanges: impl flowstone_engine::ports::Exchanges + 'static) -> World {
    world.exchanges = Some(Arc::new(exchanges));
    world
}

fn file(world: &World, name: &str) -> Json {
    let text = fs::read_to_string(world.path().join(FOLDER).join(name)).expect(name);
    serde_json::from_str(&text).expect(name)
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

/// Returns the whole content of a recording as text.
fn everything(world: &World) -> String {
    let folder = world.path().join(FOLDER);
    let texts = names(&folder)
        .into_iter()
        .map(|name| fs::read_to_string(folder.join(name)).unwrap());
    texts.collect()
}

#[test]
fn an_exchange_is_a_readable_file_and_is_answered_without_a_server() {
    wait(async {
        let server = Server::start(vec![json_answer(r#"{"id":7,"ok":true}"#)]);
        let config = format!(
            "{{:url \"{}/orders?a=1\" :json {{:b 2 :a 1}} :auth {{:type :bearer :secret-ref :token}}}}",
            server.url
        );
        let world = recording(World::new().secret("token", "tok-123456"));
        let live = world.run(&Http, &config).await;
        assert_eq!(
            names(&world.path().join(FOLDER)),
            ["0001-test.json", "recording.json"]
        );
        let file = file(&world, "0001-test.json");
        assert_eq!(file["request"]["method"], "POST");
        assert_eq!(file["request"]["json"], json!({"b": 2, "a": 1}));
        assert_eq!(file["request"]["headers"]["authorization"], "[secret]");
        assert_eq!(file["request"]["headers"]["idempotency-key"], "[key]");
        assert_eq!(file["response"]["status"], 200);
        assert_eq!(file["response"]["json"], json!({"id": 7, "ok": true}));
        assert_eq!(file["end"], "complete");
        assert!(!everything(&world).contains("tok-123456"));

        let world = replaying(world);
        // Another port and another order of keys make the same request.
        let moved = config.replace(&server.url, "http://localhost:9");
        assert_eq!(
            world
                .run(&Http, &moved.replace(":b 2 :a 1", ":a 1 :b 2"))
                .await,
            live
        );
        let again = world.run(&Http, &config).await;
        assert!(
            again.starts_with(
                "E0754 not-recorded: POST http://localhost/orders?a=1 was recorded once"
            ),
            "{again}"
        );
        assert_eq!(server.requests().len(), 1);
    });
}

#[test]
fn equal_requests_are_answered_in_their_order() {
    wait(async {
        let answers =
            ["1", "2", "3"].map(|text| reply("200 OK", &["content-type: text/plain"], text));
        let server = Server::start(answers.to_vec());
        let config = format!("{{:url \"{}/next\"}}", server.url);
        let world = recording(World::new());
        let mut live = Vec::new();
        for _ in 0..3 {
            live.push(world.run(&Http, &config).await);
        }
        let world = replaying(world);
        for expected in live {
            assert_eq!(world.run(&Http, &config).await, expected);
        }
        let more = world.run(&Http, &config).await;
        assert!(
            more.contains("was recorded 3 times, but is requested once more"),
            "{more}"
        );
    });
}

#[test]
fn an_unrecorded_request_shows_the_nearest() {
    wait(async {
        let server = Server::start(vec![json_answer("{}")]);
        let world = recording(World::new());
        for (path, json) in [
            ("/other", "{:x 1}"),
            ("/orders", "{:item \"tea\" :count 2}"),
        ] {
            world
                .run(
                    &Http,
                    &format!("{{:url \"{}{path}\" :json {json}}}", server.url),
                )
                .await;
        }
        let world = replaying(world);
        let config = format!(
            "{{:url \"{}/orders\" :json {{:item \"tea\" :count 3}}}}",
            server.url
        );
        let error = world.run(&Http, &config).await;
        for part in [
            "E0754 not-recorded: POST http://localhost/orders is not in the recording",
            "the nearest is 0002-test.json",
            "-   \"count\": 2",
            "+   \"count\": 3",
        ] {
            assert!(error.contains(part), "{part}: {error}");
        }
    });
}

#[test]
fn chunks_of_a_stream_stay_apart_and_a_broken_stream_breaks_again() {
    wait(async {
        let piece = |text: &str| format!(r#"{{"choices":[{{"delta":{{"content":"{text}"}}}}]}}"#);
        let (one, other) = (piece("one "), piece("two"));
        let whole = events(&[&one, &other, "[DONE]"]);
        let broken = events(&[&one]);
        let server = Server::start(vec![whole, broken]);
        let config = format!(
            "{{:base-url \"{}\" :model \"m\" :prompt \"count\"}}",
            server.url
        );
        let world = recording(World::new());
        let (first, second) = (
            world.run(&Llm, &config).await,
            world.run(&Llm, &config).await,
        );
        assert!(
            first.contains("one two") && second.starts_with("E08"),
            "{first}\n{second}"
        );
        let chunks = file(&world, "0001-test.json")["response"]["chunks"].clone();
        let text: String = chunks
            .as_array()
            .unwrap()
            .iter()
            .map(|it| it.as_str().unwrap())
            .collect();
        assert!(
            text.contains("one ") && text.ends_with("data: [DONE]\n\n"),
            "{text}"
        );
        let world = replaying(world);
        assert_eq!(world.run(&Llm, &config).await, first);
        assert_eq!(world.run(&Llm, &config).await, second);
    });
}

#[test]
fn errors_are_recorded_as_they_were() {
    wait(async {
        let busy = reply("429 Too Many Requests", &["retry-after: 7"], "slow down");
        let half = Say::Raw(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf".to_vec());
        let silent = Say::Raw(Vec::new());
        let server = Server::start(vec![busy, half, silent]);
        let config = format!("{{:url \"{}/\"}}", server.url);
        let world = recording(World::new());
        let mut live = Vec::new();
        for _ in 0..3 {
            live.push(server.clean(&world.run(&Http, &config).await));
        }
        live.push(world.run(&Http, "{:url \"http://127.0.0.1:1/\"}").await);
        assert!(
            live[0].contains("retry: after 7s") && live[3].starts_with("E0732"),
            "{live:?}"
        );
        let world = replaying(world);
        for expected in &live[..3] {
            assert_eq!(server.clean(&world.run(&Http, &config).await), *expected);
        }
        assert_eq!(
            world.run(&Http, "{:url \"http://127.0.0.1:1/\"}").await,
            live[3]
        );
    });
}

#[test]
fn no_secret_is_in_a_file() {
    wait(async {
        let secret = "s3cr\"et/päss word";
        let echo = format!(
            "{{\"echo\":{},\"access_token\":\"granted-987\",\"n\":1}}",
            json!(secret)
        );
        let cookie = "set-cookie: session=c00kie-value";
        let with_cookie = reply("200 OK", &["content-type: application/json", cookie], &echo);
        let server = Server::start(vec![with_cookie]);
        let world = recording(
            World::new()
                .secret("key", secret)
                .secret("plain", "plain-555555"),
        );
        let configs = [
            "{:url \"URL/a\" :auth {:type :api-key :query \"k\" :secret-ref :key}}",
            "{:url \"URL/b\" :auth {:type :basic :username \"robot\" :secret-ref :plain}}",
            "{:url \"URL/c?api_key=in-the-query\" :headers {:cookie \"a=b0nbon\" :x-my-token \"mine-444\"}}",
            // A token that a server issued is a secret from then on.
            "{:url \"URL/d\" :form {:client_secret \"in-the-form\" :again \"granted-987\"}}",
            "{:url \"http://user:pa55word@HOST/e\"}",
        ];
        let host = server.url.trim_start_matches("http://");
        for config in configs {
            let config = config.replace("URL", &server.url).replace("HOST", host);
            let answer = world.run(&Http, &config).await;
            assert!(answer.contains(":status 200"), "{answer}");
        }
        let text = everything(&world);
        for secret in [
            "s3cr",
            "plain-555555",
            "c00kie",
            "b0nbon",
            "mine-444",
            "in-the-query",
            "in-the-form",
            "granted-987",
            "pa55word",
            "cm9ib3Q6",
        ] {
            assert!(!text.contains(secret), "{secret}: {text}");
        }
        assert_eq!(
            file(&world, "0001-test.json")["request"]["url"],
            format!("{}/a?k=[secret]", server.url)
        );
        let world = replaying(world);
        for config in configs {
            let config = config.replace("URL", &server.url).replace("HOST", host);
            let answer = world.run(&Http, &config).await;
            assert!(answer.contains("[secret]"), "{config}: {answer}");
        }
    });
}

#[test]
fn bytes_round_trip() {
    wait(async {
        let picture = [0_u8, 159, 146, 150, 255];
        let server = Server::start(vec![reply("200 OK", &["content-type: image/png"], picture)]);
        let config = format!(
            "{{:url \"{}/p\" :multipart [{{:name \"a\" :content \"x\"}}]}}",
            server.url
        );
        let world = recording(World::new());
        let live = world.run(&Http, &config).await;
        assert_eq!(
            file(&world, "0001-test.json")["response"]["base64"],
            "AJ+Slv8="
        );
        assert_eq!(replaying(world).run(&Http, &config).await, live);
    });
}

#[test]
fn a_folder_that_is_not_empty_is_left_alone() {
    let world = World::new().file("full/mine.txt", "mine");
    let occupied = |is_recording| {
        let folder = world
            .path()
            .join(if is_recording { FOLDER } else { "full" });
        match Recorder::create(&folder, BTreeMap::new()) {
            Err(RecordingError::Occupied {
                is_recording: it, ..
            }) => it == is_recording,
            _ => false,
        }
    };
    Recorder::create(&world.path().join(FOLDER), BTreeMap::new()).unwrap();
    assert!(occupied(true) && occupied(false));
    let error = Recorder::create(&world.path().join("full/mine.txt"), BTreeMap::new());
    assert_eq!(error.err().map(|it| it.code()), Some("E0759"));
}

const ABOUT: &str = r#"{"format": 1, "secrets": {"set": [], "unset": []}, "environment": {}}"#;

#[test]
fn invalid_recordings_are_reported() {
    let head = r#"{"exchange": 1, "step": "s", "at": "2026-03-01T00:00:00Z", "request": {"method": "GET", "url": "http://a/", "headers": {}}"#;
    let exchange = |rest: &str| format!("{head}{rest}}}");
    let cases: &[(&str, String, &str)] = &[
        (
            "recording.json",
            "{\"format\": ".into(),
            "recording.json is not right: it ends in the middle (line 1)",
        ),
        (
            "recording.json",
            "[1 2]".into(),
            "recording.json is not right: it is not JSON",
        ),
        (
            "recording.json",
            "{}".into(),
            "recording.json is not right: `format` is missing",
        ),
        (
            "recording.json",
            "{\"format\": 9}".into(),
            "its format is 9, and this program knows 1",
        ),
        (
            "recording.json",
            "{\"format\": 1}".into(),
            "`secrets` has no lists",
        ),
        (
            "0001-s.json",
            "".into(),
            "0001-s.json is not right: it ends in the middle",
        ),
        (
            "0001-s.json",
            "{}".into(),
            "`request` is missing, or is not an object",
        ),
        ("0001-s.json", head.into(), "it ends in the middle (line 1)"),
        (
            "0001-s.json",
            exchange(", \"respnse\": {}"),
            "`respnse` is not a known field",
        ),
        (
            "0001-s.json",
            exchange(", \"response\": {\"status\": 200, \"headers\": {}}"),
            "a `response` but no `end`",
        ),
        (
            "0001-s.json",
            exchange(", \"end\": \"complete\""),
            "an `end` but no `response`",
        ),
        (
            "0001-s.json",
            exchange(", \"end\": \"soon\""),
            "`end` must be \"complete\"",
        ),
        (
            "0001-s.json",
            exchange(
                ", \"end\": \"complete\", \"response\": {\"status\": \"200\", \"headers\": {}}",
            ),
            "`status` of the response must be a number",
        ),
        (
            "0001-s.json",
            exchange(
                ", \"end\": \"complete\", \"response\": {\"status\": 200, \"headers\": {\"a\": 1}}",
            ),
            "one of `headers` of the response is missing, or is not a text",
        ),
        (
            "0001-s.json",
            exchange(
                ", \"end\": \"complete\", \"response\": {\"status\": 200, \"headers\": {}, \"base64\": \"!\"}",
            ),
            "a `base64` text is invalid",
        ),
        (
            "0001-s.json",
            exchange(
                ", \"end\": \"complete\", \"response\": {\"status\": 200, \"headers\": {}, \"json\": 1, \"text\": \"\"}",
            ),
            "the response has both `json` and `text`",
        ),
        (
            "0001-s.json",
            exchange("").replace("2026-03-01T00", "yesterday"),
            "`at` is not a time",
        ),
    ];
    for (name, text, expected) in cases {
        let world = World::new();
        world.write("answers/recording.json", ABOUT);
        world.write(&format!("answers/{name}"), text);
        let error = Replayer::open(&world.path().join(FOLDER)).err();
        let error = error.unwrap_or_else(|| panic!("{name} {text}"));
        assert_eq!(error.code(), "E0933");
        assert!(error.to_string().contains(expected), "{expected}: {error}");
    }
    for (folder, expected) in [
        ("none", "there is no such folder"),
        ("answers", "it has no recording.json"),
    ] {
        let world = World::new().file("answers/0001-s.json", "{}");
        let error = Replayer::open(&world.path().join(folder)).err().unwrap();
        assert!(error.to_string().contains(expected), "{error}");
    }
}

#[test]
fn a_request_without_a_recorded_response_is_reported() {
    wait(async {
        let world = World::new();
        world.write("answers/recording.json", ABOUT);
        let asked = r#"{"exchange": 1, "step": "s", "at": "2026-03-01T00:00:00Z",
            "request": {"method": "GET", "url": "https://example.com/", "headers": {}}}"#;
        world.write("answers/0001-s.json", asked);
        let error = replaying(world)
            .run(&Http, "{:url \"https://example.com\"}")
            .await;
        assert!(
            error.starts_with(
                "E0758 not-recorded: 0001-s.json has no answer to GET https://example.com/"
            ),
            "{error}"
        );
    });
}
