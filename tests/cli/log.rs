//! `FLOWSTONE_LOG`: what a run does, as lines that people or programs read.

use serde_json::{Value, json};

use crate::program::{Ran, Scratch};

const FLOW: &str = r#"{:slug :logs :concurrency {:type :singleton :on-new-version :supersede}
 :flow '(do (flow/log :info "begins")
            (:value (flow/step :kv :count {:operation :increment :key "n"})))}"#;

fn run(scratch: &Scratch, variables: &[(&str, &str)]) -> Ran {
    scratch.write("logs.edn", FLOW);
    let mut command = scratch.command(&["run", "logs.edn", "--quiet", "--new"]);
    Ran::to_the_end(command.envs(variables.iter().copied()))
}

#[test]
fn steps_and_files_are_logged_in_the_span_of_their_run() {
    let scratch = Scratch::new();
    let json = [("FLOWSTONE_LOG", "debug"), ("FLOWSTONE_LOG_FORMAT", "json")];
    let ran = run(&scratch, &json);
    let lines: Vec<Value> = ran
        .err
        .lines()
        .map(|line| serde_json::from_str(line).expect("each line is an object"))
        .collect();
    let find = |target: &str, message: &str| {
        let is_it = |line: &&Value| line["target"] == target && line["message"] == message;
        lines
            .iter()
            .find(is_it)
            .unwrap_or_else(|| panic!("{ran:?}"))
    };
    let step = find("flowstone::step", "finished");
    assert_eq!(
        (&step["kind"], &step["path"]),
        (&"kv".into(), &"count".into())
    );
    let listed = scratch.json_of(&["runs", "list"]);
    assert_eq!(step["spans"][0]["id"], listed["runs"][0]["id"]);
    assert_eq!(
        step["span"],
        json!({"name": "step", "path": "count", "kind": "kv"})
    );
    assert_eq!(find("flowstone::files", "read")["path"], "logs.edn");
    assert_eq!(find("flowstone::run", "ended")["outcome"], "completed");
    let is_ours = |line: &Value| {
        line["target"]
            .as_str()
            .is_some_and(|it| it.starts_with("flowstone"))
    };
    assert!(lines.iter().all(is_ours), "{ran:?}");
}

#[test]
fn text_in_a_pipe_has_no_colours() {
    let ran = run(&Scratch::new(), &[("FLOWSTONE_LOG", "debug")]);
    assert!(
        ran.err
            .contains("flowstone::step: finished kind=\"kv\" path=count"),
        "{ran:?}"
    );
    assert!(!ran.err.contains('\u{1b}'), "{ran:?}");
}

#[test]
fn wrong_settings_are_reported() {
    let scratch = Scratch::new();
    let ran = run(&scratch, &[("FLOWSTONE_LOG", "a=b=c")]);
    assert!(ran.err.contains("FLOWSTONE_LOG is ignored"), "{ran:?}");
    let ran = run(
        &scratch,
        &[("FLOWSTONE_LOG", "info"), ("FLOWSTONE_LOG_FORMAT", "xml")],
    );
    assert!(
        ran.err.contains("FLOWSTONE_LOG_FORMAT is ignored"),
        "{ran:?}"
    );
    assert!(run(&scratch, &[]).err.is_empty());
    let empty = [("FLOWSTONE_LOG", ""), ("RUST_LOG", "debug")];
    assert!(run(&scratch, &empty).err.is_empty());
}

#[test]
fn lines_have_the_spans_around_them_with_every_filter() {
    let listed = |filter: &str| {
        let ran = run(&Scratch::new(), &[("FLOWSTONE_LOG", filter)]);
        let line = ran.err.lines().find(|line| line.contains("begins"));
        line.unwrap_or_else(|| panic!("{ran:?}")).to_owned()
    };
    for filter in ["info", "flowstone::flow=info"] {
        let line = listed(filter);
        assert!(line.contains("run{id="), "{filter}: {line}");
    }
    let ran = run(&Scratch::new(), &[("FLOWSTONE_LOG", "info")]);
    assert!(!ran.err.contains("flowstone::step:"), "{ran:?}");
    let ran = run(
        &Scratch::new(),
        &[("FLOWSTONE_LOG", "[step{path=count}]=debug")],
    );
    assert!(ran.err.contains("flowstone::step: finished"), "{ran:?}");
    let ran = run(
        &Scratch::new(),
        &[("FLOWSTONE_LOG", "[step{path=other}]=debug")],
    );
    assert!(!ran.err.contains("flowstone::step: finished"), "{ran:?}");
    assert!(
        run(&Scratch::new(), &[("FLOWSTONE_LOG", "off")])
            .err
            .is_empty()
    );
}
