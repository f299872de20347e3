//! What the commands of trees say and where they look: permissions, names, hints, and texts on a terminal.

use serde_json::{Value, json};

use crate::program::Scratch;

const TREE: &str = "name: release\nversion: 1.0.0\ntree: {type: action, name: Tag, steps: [{instruct: Tag it.}, {evaluate: It is tagged.}]}\n";

fn started() -> Scratch {
    let scratch = Scratch::new();
    scratch.write("flowstone.edn", "{}");
    scratch.write("release.yaml", TREE);
    scratch
        .run(&["tree", "start", "release.yaml", "release-4"])
        .ok();
    scratch
}

fn id_of(shown: &Value) -> &Value {
    shown.pointer("/run/id").unwrap_or(&shown["id"])
}

#[test]
fn every_command_reads_parts_that_the_project_allows() {
    let outside = Scratch::new();
    outside.write(
        "part.yaml",
        "{type: action, name: Act, steps: [{instruct: Do it.}]}",
    );
    let part = outside.path().join("part.yaml");
    let scratch = Scratch::new();
    scratch.write(
        "trees/tree.yaml",
        format!(
            "{{type: sequence, name: Root, children: [{{$ref: '{}'}}]}}",
            part.display()
        ),
    );
    let commands: [&[&str]; 5] = [
        &["tree", "check", "trees/tree.yaml"],
        &["tree", "picture", "trees/tree.yaml"],
        &["tree", "eject", "trees/tree.yaml"],
        &["graph", "import", "trees/tree.yaml"],
        &["tree", "start", "trees/tree.yaml"],
    ];
    scratch.write("flowstone.edn", "{}");
    for args in commands {
        let ran = scratch.run(args);
        assert_eq!(ran.code, Some(1), "{ran:?}");
        assert!(ran.err.contains(":allow {:read"), "{ran:?}");
    }
    scratch.write(
        "flowstone.edn",
        format!("{{:allow {{:read [\"{}\"]}}}}", outside.path().display()),
    );
    for args in commands {
        scratch.run(args).ok();
    }
    // A flow that calls the tree reads the part, too.
    scratch.write(
        "caller.edn",
        "{:slug :caller :flow '(flow/call-flow \"trees/tree.yaml\" {} {:workflow-id \"called\"})}",
    );
    assert_eq!(scratch.run(&["run", "caller.edn"]).code, Some(3));
    assert!(
        scratch
            .run(&["tree", "next", "called"])
            .ok()
            .contains("instruct Act")
    );
    let listed = scratch.run(&["tree", "list"]).ok();
    assert!(listed.contains("root (2 nodes)"), "{listed}");
}

#[test]
fn commands_of_runs_know_the_names_of_tree_runs() {
    let scratch = started();
    scratch
        .run(&["tree", "start", "release.yaml", "run.json"])
        .ok();
    for name in ["release-4", "run.json"] {
        let shown = scratch.run(&["runs", "show", name, "--json"]).json();
        assert_eq!(
            shown["run"]["flow"].as_str().or(shown["flow"].as_str()),
            Some("release"),
            "{shown}"
        );
    }
    // A run that is reset after its end is followed by another one under the same name.
    let first = scratch.json_of(&["runs", "show", "release-4"]);
    scratch.run(&["runs", "cancel", "release-4"]).ok();
    scratch.run(&["tree", "reset", "release-4"]).ok();
    let later = scratch.json_of(&["runs", "show", "release-4"]);
    assert_ne!(id_of(&first), id_of(&later));
    let shown = scratch.json_of(&["tree", "show", "release-4"]);
    assert_eq!(shown["run"], *id_of(&later));
    let unknown = scratch.run(&["runs", "show", "release-5"]);
    assert_eq!(unknown.code, Some(1), "{unknown:?}");
}

#[test]
fn a_wait_for_a_driver_is_answered_by_tree_next() {
    let scratch = started();
    let ran = scratch.run(&["waits", "list"]);
    let hint = ran
        .err
        .lines()
        .find(|line| line.contains("answer "))
        .expect("a hint");
    let command = hint.split_once("flowstone ").expect("a command").1;
    assert!(command.starts_with("tree next "), "{hint}");
    let args: Vec<&str> = command.split_whitespace().collect();
    let next = scratch.run(&args).ok();
    assert!(next.contains("instruct Tag"), "{next}");
}

#[test]
fn errors_of_commands_name_commands_and_those_of_tools_name_tools() {
    let scratch = started();
    let cases: [(&[&str], &str); 4] = [
        (
            &["tree", "submit", "release-4", "success"],
            "`flowstone tree next HANDLE`",
        ),
        (
            &["tree", "think", "release-4", "hm"],
            "`flowstone tree next HANDLE`",
        ),
        (
            &["tree", "next", "none"],
            "`flowstone tree start FILE HANDLE`",
        ),
        (
            &["tree", "start", "release.yaml", "release-4"],
            "`flowstone tree next HANDLE`",
        ),
    ];
    for (args, expected) in cases {
        let ran = scratch.run(args);
        assert_eq!(ran.code, Some(1), "{ran:?}");
        assert!(ran.err.contains(expected), "{ran:?}");
        for tool in ["next_step", "start_execution", "reset_execution"] {
            assert!(!ran.err.contains(tool), "{ran:?}");
        }
    }
}

#[test]
fn a_note_takes_one_line_of_the_trace() {
    let scratch = started();
    scratch.run(&["tree", "next", "release-4"]).ok();
    let note = "first line\n  second line\n";
    scratch
        .run(&["tree", "submit", "release-4", "success", "--note", note])
        .ok();
    let trace = scratch.run(&["tree", "trace", "release-4"]).ok();
    assert_eq!(trace.trim_end().lines().count(), 1, "{trace}");
    assert!(
        trace.contains("step_complete (first line second line)"),
        "{trace}"
    );
}

#[test]
fn a_called_tree_refuses_inputs_and_keys_that_it_does_not_know() {
    let scratch = started();
    let call = |input: &str| {
        let flow =
            format!("{{:slug :caller :flow '(:status (flow/call-flow \"release.yaml\" {input}))}}");
        scratch.write("caller.edn", flow);
        scratch.run(&["run", "caller.edn", "--new"])
    };
    let refused = call("{:var {:a {:__proto__ 1}}}");
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.err.contains("__proto__"), "{refused:?}");
    let unknown = call("{:vra {:a 1}}");
    assert!(unknown.err.contains("vra"), "{unknown:?}");
    for (changed, why) in [
        ("{:a ##NaN}", "has the number"),
        (
            "{:a [123456789012345678901234567890]}",
            "of more than 64 bits",
        ),
        ("{:a 1 \"a\" 2}", "as a text and as a keyword"),
        ("{:a {nil 7}}", "which is not a text"),
        ("{:a {[1 2] 8}}", "which is not a text"),
        (
            "{:a (apply str (repeat 270000 \"x\"))}",
            "more than 262144 characters",
        ),
    ] {
        let refused = call(&format!("{{:var {changed}}}"));
        assert_eq!(refused.code, Some(1), "{refused:?}");
        assert!(refused.err.contains(why), "{changed}: {refused:?}");
    }
    let large = format!(
        "{{name: l, version: 1.0.0, state: {{var: {{a: {}}}}}, tree: {{type: action, name: A, steps: [{{instruct: x}}]}}}}",
        "x".repeat(270_000)
    );
    scratch.write("large.yaml", large);
    let checked = scratch.run(&["tree", "check", "large.yaml"]);
    assert_eq!(checked.code, Some(1), "{checked:?}");
    assert!(format!("{checked:?}").contains("262144"), "{checked:?}");
}

#[test]
fn a_value_that_would_be_rounded_is_refused() {
    let scratch = started();
    let ran = scratch.run(&[
        "tree",
        "var",
        "release-4",
        "n",
        "--set",
        "123456789012345678901",
    ]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.err.contains("E1216"), "{ran:?}");
    scratch
        .run(&["tree", "var", "release-4", "$VAR.n", "--set", "-1"])
        .ok();
    let found: Value = scratch
        .run(&["tree", "var", "release-4", "n", "--json"])
        .json();
    assert_eq!(found["value"], json!(-1));
}
