//! `flowstone run` and `test` with `--record` and `--replay`.

use std::process::Stdio;

use crate::program::{Ran, Scratch};
use crate::server::{Answer, Server};

const EVENTS: [&str; 3] = [
    r#"{"choices":[{"delta":{"content":"a "}}]}"#,
    r#"{"choices":[{"delta":{"content":"haiku"},"finish_reason":"stop"}]}"#,
    "[DONE]",
];

fn model() -> Server {
    Server::start(|request, _| match request.path.as_str() {
        "/hang" => Answer::Hang(Vec::new()),
        "/v1/chat/completions" => Answer::Events(EVENTS.map(str::to_owned).to_vec()),
        _ => Answer::Json(r#"{"topic":"rain"}"#.to_owned()),
    })
}

fn flow(server: &Server) -> String {
    format!(
        "(let [page (flow/step :http :page {{:url \"{}\" :auth {{:type :bearer :secret-ref :page-token}}}})
               answer (flow/step :llm :ask {{:connection :ai :prompt (str \"A haiku on \" (:topic (:body page)) \" at \" (flow/now-ms))}})]
           (:content answer))",
        server.url("/page")
    )
}

fn record(scratch: &Scratch, server: &Server, extra: &[&str]) -> Ran {
    let args = [
        &["run", "flow.edn", "--quiet", "--record", "answers"],
        extra,
    ]
    .concat();
    let mut command = scratch.command(&args);
    command
        .env("PAGE_TOKEN", "page-token-1")
        .env("GROQ_API_KEY", "groq-key-12345")
        .env("GROQ_BASE_URL", server.url("/v1"))
        .env("GROQ_MODEL", "small");
    Ran::to_the_end(&mut command)
}

/// A project whose flows may send the token of the page to servers of this machine.
fn project() -> Scratch {
    let scratch = Scratch::new();
    let settings = "{:allow {:net [\"127.0.0.1\"] :secrets {:page-token [\"127.0.0.1\"]}}}";
    scratch.write("flowstone.edn", settings);
    scratch
}

#[test]
fn a_recording_is_replayed_without_keys_or_network() {
    let server = model();
    let scratch = project();
    scratch.write("flow.edn", flow(&server));
    assert_eq!(record(&scratch, &server, &[]).ok(), "a haiku\n");
    let text = scratch.read("answers/recording.json");
    assert!(
        text.contains("GROQ_API_KEY") && !text.contains("groq-key"),
        "{text}"
    );
    let asked = scratch.read("answers/0002-ask.json");
    assert!(
        asked.contains("A haiku on rain") && !asked.contains("groq-key"),
        "{asked}"
    );
    let before = server.requests().len();
    for args in [
        &["run", "flow.edn", "--quiet", "--replay", "answers"][..],
        &[
            "test",
            "flow.edn",
            "--quiet",
            "--show-result",
            "--replay",
            "answers",
        ],
    ] {
        assert!(scratch.run(args).ok().ends_with("a haiku\n"));
    }
    assert_eq!(server.requests().len(), before);

    scratch.write("flow.edn", flow(&server).replace("A haiku", "A sonnet"));
    let other = scratch.run(&["run", "flow.edn", "--quiet", "--replay", "answers"]);
    assert_eq!(other.code, Some(1));
    for part in [
        "E0754",
        "0002-ask.json",
        "A haiku on rain",
        "A sonnet on rain",
    ] {
        assert!(other.err.contains(part), "{part}: {}", other.err);
    }
}

#[test]
fn a_trial_is_killed_everywhere_and_answered_from_a_recording() {
    let server = model();
    let scratch = project();
    scratch.write("flow.edn", flow(&server));
    record(&scratch, &server, &[]).ok();
    let args = [
        "test",
        "flow.edn",
        "--quiet",
        "--crash-everywhere",
        "--replay",
        "answers",
    ];
    scratch.run(&args).ok();
}

#[test]
fn options_that_do_not_go_together_are_refused() {
    let server = model();
    let scratch = project();
    scratch.write("flow.edn", flow(&server));
    record(&scratch, &server, &[]).ok();
    let cases: &[(&[&str], i32, &str)] = &[
        (
            &["--record", "a", "--replay", "b"],
            2,
            "cannot be used with",
        ),
        (&["--record", "a", "--detach"], 2, "cannot be used with"),
        (&["--record", "answers"], 1, "E0934"),
        (&["--replay", "nothing"], 1, "E0933"),
    ];
    for (extra, code, expected) in cases {
        let ran = scratch.run(&[&["run", "flow.edn"], *extra].concat());
        assert_eq!(ran.code, Some(*code), "{extra:?}: {ran:?}");
        assert!(ran.err.contains(expected), "{extra:?}: {}", ran.err);
    }
}

#[test]
fn a_process_that_dies_leaves_a_recording_that_can_be_read() {
    let server = model();
    let scratch = project();
    let both = "(do (flow/step :http :page {:url \"URL/page\"}) (flow/step :http :slow {:url \"URL/hang\"}))";
    scratch.write("flow.edn", both.replace("URL", &server.url("")));
    let mut child = scratch
        .command(&["run", "flow.edn", "--record", "answers"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("the program starts");
    let begun = std::time::Instant::now();
    while server.requests().len() < 2 {
        assert!(begun.elapsed().as_secs() < 20, "the flow asks twice");
        std::thread::yield_now();
    }
    child.kill().expect("it can be killed");
    child.wait().expect("it ends");
    let ran = scratch.run(&["run", "flow.edn", "--quiet", "--replay", "answers"]);
    assert_eq!(ran.code, Some(1));
    assert!(
        ran.err.contains("E0758") && ran.err.contains("0002-slow.json"),
        "{}",
        ran.err
    );
}
