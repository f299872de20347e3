//! `flowstone runs` and `gc`: looking at runs, comparing and moving them.

use serde_json::{Value, json};

use crate::program::Scratch;

const ASK: &str = "{:slug :ask :concurrency {:type :singleton :on-new-version :supersede}
 :flow '(let [a (flow/step :kv :remember {:operation :set :key \"n\" :value 21})
              answer (flow/step :wait :question {:key \"the-question\" :timeout \"1d\"})]
          (flow/step :function :bad {:title \"Fails\" :input {:n 1} :code '(fn [_] (throw (ex-info \"no luck\" {})))})
          answer)}";

const ADD: &str = "{:slug :add :concurrency {:type :singleton :on-new-version :supersede}
 :invocations {:default {:inputs [{:name :n :type :number :required true}]}}
 :flow '(let [{:keys [n]} (flow/input)]
          (flow/step :function :first {:input {} :code '(fn [_] 1)})
          (flow/step :function :second {:input {:n n} :code '(fn [{:keys [n]}] (inc n))}))}";

fn scratch() -> Scratch {
    let scratch = Scratch::new();
    scratch.write("ask.edn", ASK);
    scratch.write("add.edn", ADD);
    scratch
}

/// Runs a flow and returns the run's id.
fn add(scratch: &Scratch, n: u32) -> String {
    let input = format!("{{:n {n}}}");
    let ran = scratch
        .run(&["run", "add.edn", "--json", "--input", &input])
        .json();
    ran["run"].as_str().expect("an id").to_owned()
}

fn ask(scratch: &Scratch) -> String {
    let ran = scratch.run(&["run", "ask.edn", "--json"]).json();
    ran["run"].as_str().expect("an id").to_owned()
}

fn ids(listed: &Value) -> Vec<&str> {
    let runs = listed["runs"].as_array().expect("runs").iter();
    runs.map(|run| run["id"].as_str().expect("an id")).collect()
}

#[test]
fn lists_are_filtered_and_paged() {
    let scratch = scratch();
    let (one, two) = (add(&scratch, 1), add(&scratch, 2));
    let waiting = ask(&scratch);
    let list = |more: &[&str]| {
        scratch
            .run(&[&["runs", "list", "--json"], more].concat())
            .json()
    };
    assert_eq!(ids(&list(&[])), [&waiting, &two, &one]);
    assert_eq!(
        ids(&list(&["--flow", "add", "--sort", "oldest"])),
        [&one, &two]
    );
    assert_eq!(ids(&list(&["--status", "waiting,failed"])), [&waiting]);
    assert_eq!(ids(&list(&["--since", "1h", "--text", ":n 2"])), [&two]);
    assert!(ids(&list(&["--until", "1h"])).is_empty());
    let page = list(&["--limit", "2"]);
    assert_eq!(page["next"], json!(two));
    assert_eq!(ids(&list(&["--limit", "2", "--before", &two])), [&one]);
    assert_eq!(page["runs"][1]["startedBy"], "manual");
    assert!(page["runs"][1].get("result").is_none(), "a list is light");
    assert_eq!(list(&["--full"])["runs"][1]["result"], json!(3));
    for wrong in [["--since", "soon"], ["--sort", "best"], ["--status", "odd"]] {
        let ran = scratch.run(&[&["runs", "list"], &wrong[..]].concat());
        assert_eq!(ran.code, Some(2), "{wrong:?}");
    }
}

#[test]
fn a_run_is_shown_with_attempts_waits_and_places() {
    let scratch = scratch();
    let run = ask(&scratch);
    scratch.run(&[
        "waits",
        "complete",
        "the-question",
        "--value",
        "{:action :approve}",
    ]);
    let shown = scratch.run(&["runs", "show", &run]);
    for words in [
        "manual",
        "durability full",
        "question waited",
        "no luck",
        "bad Fails",
    ] {
        assert!(shown.out.contains(words), "{words}: {}", shown.out);
    }
    assert!(shown.out.contains("^^^^"), "{}", shown.out);
    assert_eq!(shown.err, "");
    let json = scratch.run(&["runs", "show", &run, "--json"]).json();
    let bad = &json["steps"][2];
    assert_eq!(
        (&bad["status"], &bad["title"]),
        (&json!("failed"), &json!("Fails"))
    );
    assert_eq!(bad["tries"].as_array().map(Vec::len), Some(1));
    let step = scratch.run(&["runs", "show", &run, "--step", "bad"]);
    assert!(step.out.contains("asked at ask.edn:4:11"), "{}", step.out);
    assert!(step.out.contains("(throw (ex-info"), "{}", step.out);
    let missing = scratch.run(&["runs", "show", &run, "--step", "bat"]);
    assert!(
        missing.err.contains("did you mean `bad`?"),
        "{}",
        missing.err
    );
}

#[test]
fn events_are_lines_that_end_with_the_run() {
    let scratch = scratch();
    let run = add(&scratch, 1);
    let words = scratch.run(&["runs", "events", &run]).ok();
    assert_eq!(words.lines().count(), 2, "{words}");
    let json = scratch
        .run(&["runs", "events", &run, "--json", "--follow", "--after", "3"])
        .ok();
    let lines: Vec<Value> = json
        .lines()
        .map(|line| serde_json::from_str(line).expect(line))
        .collect();
    assert_eq!(
        (&lines[0]["path"], &lines[0]["payload"]),
        (&json!("second"), &json!(2))
    );
    assert_eq!(
        (&lines[1]["kind"], &lines[1]["status"]),
        (&json!("end"), &json!("completed"))
    );
}

#[test]
fn events_are_followed_while_another_process_executes() {
    let scratch = Scratch::new();
    scratch.write(
        "slow.edn",
        "{:slug :slow :flow '(do (flow/step :sleep :a {:duration \"1s\"}) (flow/step :sleep :b {:duration \"1s\"}) 1)
          :concurrency {:type :singleton :on-new-version :supersede}}",
    );
    let mut driver = scratch
        .command(&["run", "slow.edn", "--quiet"])
        .stdout(std::process::Stdio::null())
        .spawn()
        .expect("it starts");
    let run = loop {
        let listed = scratch.run(&["runs", "list", "--json"]).json();
        if let Some(run) = ids(&listed).first() {
            break (*run).to_owned();
        }
    };
    let followed = scratch
        .run(&["runs", "events", &run, "--follow", "--json"])
        .ok();
    assert!(driver.wait().expect("it ends").success());
    assert_eq!(
        followed
            .lines()
            .filter(|line| line.contains("\"result\""))
            .count(),
        2,
        "{followed}"
    );
    assert!(
        followed.trim_end().ends_with("}") && followed.contains("\"kind\":\"end\""),
        "{followed}"
    );
    let watched = scratch.run(&["runs", "watch", &run]).ok();
    assert!(watched.contains("the run  completed"), "{watched}");
}

#[test]
fn runs_are_compared() {
    let scratch = scratch();
    let (one, two) = (add(&scratch, 1), add(&scratch, 2));
    let same = scratch.run(&["runs", "diff", &one, &one]);
    assert_eq!(same.code, Some(0), "{same:?}");
    let diff = scratch.run(&["runs", "diff", &one, &two]);
    assert_eq!(diff.code, Some(1), "{diff:?}");
    for words in [
        "- {:n 1}",
        "+ {:n 2}",
        "step second  different request",
        "1 of 2 steps are the same",
    ] {
        assert!(diff.out.contains(words), "{words}: {}", diff.out);
    }
    let json = scratch.run(&["runs", "diff", &one, &two, "--json"]).json();
    assert_eq!(json["steps"][0]["difference"], "different request");
}

#[test]
fn a_run_moves_in_a_file() {
    let scratch = scratch();
    let run = add(&scratch, 1);
    scratch.run(&["runs", "export", &run, "run.edn"]).ok();
    let again = scratch.run(&["runs", "import", "run.edn"]);
    assert!(again.err.contains("E0563"), "{}", again.err);
    scratch
        .run(&["runs", "import", "run.edn", "--home", "other"])
        .ok();
    let there = scratch
        .run(&["runs", "show", &run, "--home", "other", "--json"])
        .json();
    assert_eq!(
        (&there["result"], &there["startedBy"]),
        (&json!(2), &json!("import"))
    );
    let piped = scratch.run(&["runs", "export", &run, "-"]).ok();
    assert_eq!(piped, scratch.read("run.edn"));
    scratch.write("cut.edn", &piped[..piped.len() / 2]);
    let cut = scratch.run(&["runs", "import", "cut.edn", "--json"]);
    assert_eq!(cut.json()["error"]["code"], "E0561");
    let flow = scratch.run(&["runs", "import", "add.edn"]);
    assert!(flow.err.contains("E0560"), "{}", flow.err);
}

#[test]
fn garbage_is_reported_and_goes() {
    let scratch = scratch();
    let none = scratch.run(&["gc", "--home", "nowhere"]).ok();
    assert!(none.contains("0 runs"), "{none}");
    let run = add(&scratch, 1);
    let waiting = ask(&scratch);
    let gc = |more: &[&str]| {
        scratch
            .run(&[&["gc", "--json", "--older-than", "0s"], more].concat())
            .json()
    };
    let would = gc(&["--dry-run"]);
    assert_eq!(
        (&would["runs"], &would["entries"]["count"]),
        (&json!([run]), &json!(2))
    );
    assert_eq!(gc(&["--keep-last", "1"])["runs"], json!([]));
    assert_eq!(gc(&["--compact"])["entries"]["count"], json!(2));
    let shown = scratch.run(&["runs", "show", &run]).ok();
    assert!(shown.contains("removed by gc"), "{shown}");
    let refused = scratch.run(&["runs", "export", &run, "x.edn"]);
    assert!(refused.err.contains("E0565"), "{}", refused.err);
    assert_eq!(scratch.run(&["runs", "resume", &waiting]).code, Some(3));
    scratch.write("flowstone.edn", "{:retention {:jurnal \"7d\"}}");
    let wrong = scratch.run(&["gc"]);
    assert!(
        wrong.err.contains("`:retention` has no `:jurnal`"),
        "{}",
        wrong.err
    );
}

#[test]
fn statuses_have_other_spellings() {
    let scratch = scratch();
    let waiting = ask(&scratch);
    scratch.run(&["runs", "cancel", &waiting]).ok();
    let list = |status: &str| {
        scratch
            .run(&["runs", "list", "--json", "--status", status])
            .json()
    };
    assert_eq!(ids(&list("canceled")), [&waiting]);
    assert_eq!(ids(&list("cancelled")), [&waiting]);
    assert!(ids(&list("timed_out,timed-out")).is_empty());
}

/// Two long results that differ only at their end.
#[test]
fn a_difference_far_inside_is_shown() {
    let scratch = Scratch::new();
    scratch.write(
        "flow.edn",
        r#"(mapv :content (:files (flow/step :files :read {:op :read :source {:type :dir :path "texts"} :path "a.txt"})))"#,
    );
    let run = |end: &str| {
        scratch.write("texts/a.txt", format!("{}{end}", "x".repeat(600)));
        let ran = scratch.run(&["run", "flow.edn", "--new", "--json"]).json();
        ran["run"].as_str().expect("an id").to_owned()
    };
    let (one, two) = (run("first"), run("other"));
    let diff = scratch.run(&["runs", "diff", &one, &two]);
    for words in ["- …xxx", "+ …xxx", "xfirst", "xother"] {
        assert!(diff.out.contains(words), "{words}: {}", diff.out);
    }
}

/// A list is read and written in pages, and is one object all the same.
#[test]
fn a_long_list_is_whole() {
    let scratch = Scratch::new();
    scratch.write("flow.edn", "(inc 1)");
    scratch.run(&["run", "flow.edn"]).ok();
    let db = rusqlite::Connection::open(scratch.path().join(".flowstone/flowstone.db"));
    db.expect("the database")
        .execute_batch(
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2500)
             INSERT INTO run (id, program, flow, status, input, seed, created_ms, updated_ms, ended_ms)
             SELECT printf('%s%05d', substr(id, 1, 8), i), program, flow, status, input, seed, created_ms + i % 7,
                    updated_ms, ended_ms
             FROM run, n",
        )
        .expect("copies");
    let ids = |args: &[&str]| {
        let listed = scratch
            .run(&[&["runs", "list", "--json"], args].concat())
            .json();
        let ids: Vec<String> = listed["runs"]
            .as_array()
            .expect("runs")
            .iter()
            .map(|run| run["id"].as_str().expect("an id").to_owned())
            .collect();
        (ids, listed["next"].as_str().map(str::to_owned))
    };
    for order in ["newest", "oldest", "changed"] {
        let (all, next) = ids(&["--limit", "0", "--sort", order]);
        let distinct: std::collections::HashSet<&String> = all.iter().collect();
        assert_eq!((distinct.len(), next), (2501, None), "{order}");
        let (some, next) = ids(&["--limit", "1500", "--sort", order]);
        assert_eq!(some, all[..1500], "{order}");
        assert_eq!(next.as_ref(), some.last(), "{order}");
    }
    let table = scratch.run(&["runs", "list", "--limit", "0"]).ok();
    assert_eq!(table.lines().count(), 2502, "a head and the rows");
}
