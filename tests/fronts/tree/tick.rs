//! The rules of the tick, one case each: a tree, the answers, and what is asked for.

use flowstone_model::json::to_json;

use super::random::Ticks;

/// Plays answers, a word each, and returns the names of the requests between them, and the end. `+` is success or true, `-`
/// is failure or false, `r` is running.
pub(super) fn walk(root: &str, answers: &str) -> String {
    let ticks = Ticks::new();
    let tree = ticks.read(&format!("{{:root {root}}}"));
    let mut state = ticks.start(&tree);
    let mut said = Vec::new();
    for answer in answers.split_whitespace().map(Some).chain([None]) {
        let before = to_json(&state).expect("data");
        if before["phase"] == "idle" {
            state = ticks.answered(&tree, &state, "{:op :next}");
        }
        let now = to_json(&state).expect("data");
        match now["status"].as_str() {
            Some("running") => {}
            end => {
                said.push(end.unwrap_or("?").to_owned());
                break;
            }
        }
        let at = &now["at"];
        let step = at["step"].as_u64().expect("a step");
        said.push(format!("{}{step}", at["name"].as_str().expect("a name")));
        let Some(answer) = answer else { break };
        let answer = match (now["phase"].as_str(), answer) {
            (Some("evaluating"), "+") => "{:op :eval :result true}",
            (Some("evaluating"), _) => "{:op :eval :result false}",
            (_, "+") => "{:op :submit :status \"success\"}",
            (_, "r") => "{:op :submit :status \"running\"}",
            (_, _) => "{:op :submit :status \"failure\"}",
        };
        state = ticks.answered(&tree, &state, answer);
    }
    said.join(" ")
}

/// Writes an action with steps: `i` instructs, `e` evaluates.
pub(super) fn action(name: &str, steps: &str, more: &str) -> String {
    let steps = steps.chars().map(|step| match step {
        'e' => "{:evaluate \"x\"}",
        _ => "{:instruct \"x\"}",
    });
    let steps = steps.collect::<Vec<_>>().join(" ");
    format!("{{:type \"action\" :name \"{name}\" :steps [{steps}] {more}}}")
}

pub(super) fn node(kind: &str, children: &[String], more: &str) -> String {
    format!(
        "{{:type \"{kind}\" :name \"N\" :children [{}] {more}}}",
        children.join(" ")
    )
}

fn three(kind: &str, more: &str) -> String {
    let children = ["A", "B", "C"].map(|name| action(name, "i", ""));
    node(kind, &children, more)
}

#[test]
fn a_sequence_asks_in_order_and_fails_with_its_first_failure() {
    assert_eq!(walk(&three("sequence", ""), "+ + +"), "A0 B0 C0 complete");
    assert_eq!(walk(&three("sequence", ""), "+ -"), "A0 B0 failed");
}

#[test]
fn a_selector_ends_with_its_first_success() {
    assert_eq!(walk(&three("selector", ""), "+"), "A0 complete");
    assert_eq!(walk(&three("selector", ""), "- +"), "A0 B0 complete");
    assert_eq!(walk(&three("selector", ""), "- - -"), "A0 B0 C0 failed");
}

#[test]
fn a_parallel_asks_one_at_a_time_and_fails_at_once() {
    assert_eq!(walk(&three("parallel", ""), "+ + +"), "A0 B0 C0 complete");
    assert_eq!(walk(&three("parallel", ""), "+ -"), "A0 B0 failed");
}

#[test]
fn a_parallel_fails_although_an_earlier_child_is_pending() {
    // B fails by a cycle while A is pending: nothing is asked.
    let children = [
        action("A", "i", ""),
        "{:type \"ref\" :ref \"#\"}".to_owned(),
    ];
    assert_eq!(walk(&node("parallel", &children, ""), ""), "failed");
}

#[test]
fn an_action_goes_through_its_steps() {
    assert_eq!(walk(&action("A", "eie", ""), "+ + +"), "A0 A1 A2 complete");
    assert_eq!(walk(&action("A", "ei", ""), "-"), "A0 failed");
    assert_eq!(walk(&action("A", "ii", ""), "+ -"), "A0 A1 failed");
    // It may end with a condition.
    assert_eq!(walk(&action("A", "ie", ""), "+ -"), "A0 A1 failed");
}

#[test]
fn running_moves_nothing() {
    assert_eq!(walk(&three("parallel", ""), "r r + +"), "A0 A0 A0 B0 C0");
}

#[test]
fn retries_are_further_attempts() {
    assert_eq!(
        walk(&action("A", "i", ":retries 2"), "- - -"),
        "A0 A0 A0 failed"
    );
    assert_eq!(
        walk(&action("A", "ii", ":retries 1"), "+ - + +"),
        "A0 A1 A0 A1 complete"
    );
    assert_eq!(
        walk(&three("sequence", ":retries 1"), "+ - + -"),
        "A0 B0 A0 B0 failed"
    );
}

#[test]
fn used_retries_are_not_given_back() {
    let children = [action("A", "i", ":retries 1"), action("B", "i", "")];
    let tree = node("sequence", &children, ":retries 1");
    // The first attempt uses A's retry; the second has none left.
    assert_eq!(walk(&tree, "- + - -"), "A0 A0 B0 A0 failed");
}

#[test]
fn inner_retries_come_before_the_failure_reaches_the_parent() {
    let inner = node(
        "sequence",
        &[action("A", "i", ""), action("B", "i", "")],
        ":retries 1",
    );
    let tree = node("selector", &[inner, action("C", "i", "")], "");
    assert_eq!(walk(&tree, "+ - + -"), "A0 B0 A0 B0 C0");
    let parallel = node(
        "parallel",
        &[action("A", "i", ""), action("B", "i", "")],
        ":retries 1",
    );
    let tree = node("sequence", &[parallel], "");
    assert_eq!(walk(&tree, "+ - + +"), "A0 B0 A0 B0 complete");
}

#[test]
fn a_cycle_fails_when_it_is_ticked() {
    let cycle = "{:type \"ref\" :ref \"#/tree\"}".to_owned();
    let tree = node("sequence", &[action("A", "i", ""), cycle.clone()], "");
    assert_eq!(walk(&tree, "+"), "A0 failed");
    let tree = node("selector", &[cycle, action("A", "i", "")], ":retries 3");
    assert_eq!(walk(&tree, "+"), "A0 complete");
}
