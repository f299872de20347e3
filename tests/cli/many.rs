//! `flowstone run FLOW --many FILE`: a run for each input, or none.

use serde_json::json;

use crate::program::Scratch;

fn project() -> Scratch {
    let scratch = Scratch::new();
    scratch.write(
        "double.edn",
        "{:slug :double :invocations {:default {:inputs [{:name :n :type :number :required true}]}}
          :flow '(* 2 (:n (flow/input)))}",
    );
    scratch
}

#[test]
fn each_input_of_a_file_starts_a_run() {
    let scratch = project();
    for (name, text) in [
        ("list.json", "[{\"n\": 1}, {\"n\": 2}]"),
        ("list.edn", "[{:n 1} {:n 2}]"),
        ("lines.jsonl", "{\"n\": 1}\n\n{\"n\": 2}\n"),
    ] {
        scratch.write(name, text);
        let ids = scratch.run(&["run", "double.edn", "--many", name]).ok();
        let ids: Vec<&str> = ids.lines().collect();
        assert_eq!(ids.len(), 2, "{name}");
        let second = scratch.run(&["runs", "resume", ids[1]]).ok();
        assert_eq!(second.trim(), "4", "{name}");
    }
    let started = scratch.run_with(&["run", "double.edn", "--many", "-", "--json"], "{:n 4}");
    let started = started.json();
    let id = started["runs"][0]["id"].as_str().expect("an id");
    let expected = json!({"ok": true, "runs": [{"index": 0, "id": id, "status": "running"}]});
    assert_eq!(started, expected);
}

#[test]
fn a_wrong_input_starts_nothing() {
    let scratch = project();
    scratch.write("lines.jsonl", "{\"n\": 1}\n{\"m\": 2}\n");
    let ran = scratch.run(&["run", "double.edn", "--many", "lines.jsonl", "--json"]);
    let error = &ran.json()["error"];
    assert_eq!((ran.code, &error["code"]), (Some(1), &json!("E0542")));
    let message = error["message"].as_str().expect("a message");
    assert!(
        message.contains("\n  1: missing required run inputs: n"),
        "{message}"
    );
    for (text, code) in [
        ("", "E0912"),
        ("{\"n\": 1}\n{\"n\": }\n", "E0906"),
        (&"{:n 1}\n".repeat(1001), "E0912"),
    ] {
        scratch.write("lines.jsonl", text);
        let ran = scratch.run(&["run", "double.edn", "--many", "lines.jsonl", "--json"]);
        assert_eq!(
            (ran.code, &ran.json()["error"]["code"]),
            (Some(2), &json!(code))
        );
    }
    let both = scratch.run(&["run", "double.edn", "--many", "lines.jsonl", "--id", "x"]);
    assert_eq!(both.code, Some(2));
    let runs = scratch.json_of(&["runs", "list"]);
    assert_eq!(runs["runs"], json!([]));
}
