//! The walks of the published rules, as an agent over MCP plays them.

use serde_json::{Value, json};

use super::tree::Client;
use crate::program::Scratch;
use crate::walks::WALKS;

/// Reads a tree of the table, and returns it as a tree file with the rest of the text.
fn tree(text: &str) -> (Value, &str) {
    if let Some(rest) = text.strip_prefix('@') {
        return (json!({"$ref": "#"}), rest);
    }
    let end = text.find(|it: char| !it.is_ascii_alphabetic());
    let (name, mut rest) = text.split_at(end.unwrap_or(text.len()));
    let mut node = json!({"name": name});
    if let Some(after) = rest.strip_prefix('*') {
        let (digit, after) = after.split_at(1);
        node["retries"] = digit.parse().expect("a number");
        rest = after;
    }
    if let Some(mut after) = rest.strip_prefix('(') {
        let mut children = Vec::new();
        while !after.starts_with(')') {
            let (child, behind) = tree(after.trim_start_matches(','));
            children.push(child);
            after = behind;
        }
        node["type"] = json!(match name {
            "seq" => "sequence",
            "sel" => "selector",
            _ => "parallel",
        });
        node["children"] = json!(children);
        return (node, &after[1..]);
    }
    let after = rest.strip_prefix(':').unwrap_or_default();
    let end = after.find(|it: char| !it.is_ascii_alphabetic());
    let (steps, behind) = after.split_at(end.unwrap_or(after.len()));
    let steps = if steps.is_empty() { "i" } else { steps };
    let steps = steps.chars().map(|step| match step {
        'e' => json!({"evaluate": format!("{name} holds")}),
        _ => json!({"instruct": format!("do {name}")}),
    });
    node["type"] = json!("action");
    node["steps"] = json!(steps.collect::<Vec<_>>());
    let rest = if after.is_empty() { rest } else { behind };
    (node, rest)
}

/// Plays answers, and returns the names of the requests with the numbers of their steps, and the end.
fn walk(client: &mut Client, uri: &str, answers: &str) -> String {
    let mut said = Vec::new();
    for answer in answers.split_whitespace().map(Some).chain([None]) {
        let request = client.call("next_step", uri, json!({})).expect("a request");
        if let Some(end) = request["status"].as_str() {
            assert_eq!(
                request,
                json!({"status": end}),
                "an end has no other member"
            );
            said.push(if end == "done" { "complete" } else { "failed" }.to_owned());
            break;
        }
        let again = client.call("next_step", uri, json!({}));
        assert_eq!(again.as_ref(), Ok(&request), "an open request is repeated");
        let name = request["name"].as_str().expect("a name").to_owned();
        let cursor = request["cursor"].clone();
        let is_evaluate = request["type"] == "evaluate";
        let expected = match is_evaluate {
            true => {
                json!({"type": "evaluate", "name": name, "expression": format!("{name} holds"), "cursor": cursor})
            }
            false => {
                json!({"type": "instruct", "name": name, "instruction": format!("do {name}"), "cursor": cursor})
            }
        };
        assert_eq!(request, expected);
        let shown = client.call("get_execution", uri, json!({})).expect("shown");
        let place: Value = shown["cursor"]
            .as_str()
            .and_then(|text| text.parse().ok())
            .expect("a place");
        said.push(format!("{name}{}", place["step"]));
        let Some(answer) = answer else { break };
        let (tool, arguments, outcomes) = match (is_evaluate, answer) {
            (true, "+") => ("eval", json!({"result": true}), &["evaluation_passed"][..]),
            (true, _) => ("eval", json!({"result": false}), &["evaluation_failed"][..]),
            (false, "+") => (
                "submit",
                json!({"status": "success"}),
                &["step_complete", "action_complete"][..],
            ),
            (false, "r") => ("submit", json!({"status": "running"}), &["running"][..]),
            (false, _) => (
                "submit",
                json!({"status": "failure"}),
                &["action_failed"][..],
            ),
        };
        let mut arguments = arguments;
        arguments["expected_cursor"] = cursor;
        let reply = client.call(tool, uri, arguments).expect("a reply");
        let status = reply["status"].as_str().unwrap_or_default();
        assert!(outcomes.contains(&status), "{name}: {reply}");
    }
    said.join(" ")
}

#[test]
fn an_agent_walks_as_the_published_rules_say() {
    let scratch = Scratch::new();
    scratch.write("flowstone.edn", "{}");
    let mut client = Client::begin(&scratch, &["--tools", "tree"]);
    for (idx, (text, answers, expected)) in WALKS.iter().enumerate() {
        let (tree, rest) = tree(text);
        assert_eq!(rest, "", "{text}");
        let file = format!("trees/walk-{idx}.json");
        scratch.write(&file, tree.to_string());
        let uri = format!("run://walk-{idx}");
        let start = json!({"tree_uri": file, "gate": false});
        client.call("start_execution", &uri, start).expect(text);
        assert_eq!(
            walk(&mut client, &uri, answers),
            *expected,
            "{text} {answers}"
        );
    }
    client.end();
}
