//! The trees that come with the repository, driven by recorded answers.

use serde_json::{Value, json};

use super::project;
use crate::program::Scratch;

/// Drives a tree with an answer for each request, and returns `name answer` of each and the end.
fn drive(scratch: &Scratch, handle: &str, answers: &[&str]) -> Vec<String> {
    let mut said = Vec::new();
    for answer in answers.iter().map(Some).chain([None]) {
        let request = scratch.json_of(&["tree", "next", handle]);
        if let Some(end) = request["status"].as_str() {
            said.push(end.to_owned());
            break;
        }
        let name = request["name"].as_str().expect("a name");
        let Some(answer) = answer else {
            said.push(name.to_owned());
            break;
        };
        let cursor = request["cursor"].as_str().expect("a cursor");
        let verb = match request["type"].as_str() {
            Some("evaluate") => "eval",
            _ => "submit",
        };
        let args = ["tree", verb, handle, answer, "--expect", cursor];
        let reply = scratch.json_of(&args);
        assert_eq!(reply["ok"], true, "{name}: {reply}");
        said.push(format!("{name} {answer}"));
    }
    said
}

#[test]
fn a_release_goes_through_its_checklist() {
    let scratch = project();
    scratch.json_of(&["tree", "start", "flows/release-checklist.yaml", "r1"]);
    scratch.json_of(&["tree", "var", "r1", "version", "--set", "1.4.0"]);
    let answers = [
        "success", "true", // the version
        "success", "false", // tests that are red
        "success", "true", // and green
        "success", "true", // the linter
        "false", "success", // the changelog
        "success", "true", // the approval
        "success", "running", "success",
    ];
    let said = drive(&scratch, "r1", &answers);
    let expected = [
        "Choose_Version success",
        "Choose_Version true",
        "Run_Tests success",
        "Run_Tests false",
        "Run_Tests success",
        "Run_Tests true",
        "Run_Linter success",
        "Run_Linter true",
        "Changelog_Is_Written false",
        "Write_Changelog success",
        "Ask_For_Approval success",
        "Ask_For_Approval true",
        "Publish success",
        "Publish running",
        "Publish success",
        "done",
    ];
    assert_eq!(said, expected);
    let runs = scratch.json_of(&["runs", "list"]);
    assert_eq!(runs["runs"][0]["status"], "completed", "{runs}");
    assert_eq!(
        scratch.json_of(&["tree", "var", "r1", "version"])["value"],
        "1.4.0"
    );
}

#[test]
fn a_release_without_approval_is_not_published() {
    let scratch = project();
    scratch.json_of(&["tree", "start", "flows/release-checklist.yaml", "r2"]);
    let answers = [
        "success", "true", "success", "true", "success", "true", "true", "success", "false",
    ];
    let said = drive(&scratch, "r2", &answers);
    assert_eq!(
        said[6..],
        [
            "Changelog_Is_Written true",
            "Ask_For_Approval success",
            "Ask_For_Approval false",
            "failure"
        ]
    );
}

#[test]
fn a_bug_is_fixed_in_three_attempts_or_reported() {
    let scratch = project();
    scratch.json_of(&["tree", "start", "flows/bug-fix.yaml", "b1"]);
    let mut answers = vec!["success", "true"];
    for idx in 0..3 {
        let path = format!("attempts.{idx}");
        scratch.json_of(&["tree", "var", "b1", &path, "--set", "a change"]);
        answers.extend(["success", "false"]);
    }
    answers.push("success");
    let said = drive(&scratch, "b1", &answers);
    let attempts = said.iter().filter(|it| *it == "Change success").count();
    assert_eq!(
        (attempts, &*said[said.len() - 2]),
        (3, "Report success"),
        "{said:?}"
    );
    assert_eq!(said.last().map(String::as_str), Some("done"));
    let var: Value = scratch.json_of(&["tree", "var", "b1"]);
    assert_eq!(
        var["var"]["attempts"],
        json!(["a change", "a change", "a change"])
    );
}
