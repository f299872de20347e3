//! `flowstone jobs`: the commands of workers, and the listings.

use serde_json::{Value, json};

use crate::program::Scratch;

const FLOW: &str = "{:slug :work
 :invocations {:default {:inputs [{:name :key :type :secret}]}}
 :flow '(let [{:keys [key]} (flow/input)
              job (flow/step :job :order {:op :submit :job-type :image :payload {:n 1 :key key} :metadata {:by \"test\"}
                                          :max-attempts 2})]
          (flow/step :job :made {:op :await :job-id (:job-id job)}))}";

/// A project with a run that waits for its job, and the id of the run.
fn waiting() -> (Scratch, String) {
    let scratch = Scratch::new();
    scratch.write("work.edn", FLOW);
    scratch.run(&["key", "create"]);
    let ran = scratch.run(&[
        "run",
        "work.edn",
        "--json",
        "--input",
        "{:key \"hunter2-hunter2\"}",
    ]);
    assert_eq!(ran.code, Some(3), "{} {}", ran.out, ran.err);
    let run = ran.json()["run"].as_str().expect("a run").to_owned();
    (scratch, run)
}

fn claim(scratch: &Scratch) -> (String, String, Value) {
    let claimed = scratch.json_of(&["jobs", "claim", "--type", "image", "--worker", "w-1"]);
    let job = claimed["jobs"][0].clone();
    let text = |value: &Value| value.as_str().expect("text").to_owned();
    (text(&job["id"]), text(&job["lease"]["token"]), job)
}

#[test]
fn a_worker_claims_reports_and_completes() {
    let (scratch, run) = waiting();
    let (id, lease, job) = claim(&scratch);
    assert_eq!(job["payload"], json!({"n": 1, "key": "[secret]"}));
    assert_eq!(job["metadata"], json!({"by": "test"}));
    assert_eq!(
        (&job["attempt"], &job["maxAttempts"]),
        (&json!(1), &json!(2))
    );
    assert_eq!(job["idempotencyKey"], json!(format!("{run}/order")));
    let none = scratch.run(&["jobs", "claim", "--type", "image"]);
    assert_eq!((none.code, &*none.out), (Some(0), ""), "{}", none.err);
    assert!(none.err.contains("no job of this type"), "{}", none.err);
    let progress = [
        "jobs", "progress", &id, "--lease", &lease, "--extend", "10m",
    ];
    let told = scratch.json_of(&[&progress[..], &["--progress", "{\"done\": 0.5}"]].concat());
    assert_eq!(
        (&told["ok"], &told["cancelRequested"]),
        (&json!(true), &json!(false))
    );
    let shown = scratch.json_of(&["jobs", "show", &id[..10]]);
    let shown = &shown["job"];
    assert_eq!(shown["status"], "claimed");
    assert_eq!(
        (&shown["worker"], &shown["progress"]),
        (&json!("w-1"), &json!({"done": 0.5}))
    );
    assert_eq!(shown["leaseUntil"], told["until"]);
    assert!(!shown.to_string().contains(&lease), "{shown}");
    let words = scratch.run(&["jobs", "show", &id]).ok();
    assert!(
        words.contains("attempt: 1 of 2") && !words.contains(&lease),
        "{words}"
    );
    let complete = ["jobs", "complete", &id, "--lease", &lease];
    let complete = [&complete[..], &["--result", "{\"uri\": \"small.jpg\"}"]].concat();
    let done = scratch.json_of(&complete);
    assert_eq!(done["job"]["status"], "succeeded");
    assert_eq!(scratch.json_of(&complete), done);
    let resumed = scratch.run(&["runs", "resume", &run]).ok();
    assert!(
        resumed.contains(":result {:uri \"small.jpg\"}"),
        "{resumed}"
    );
    assert!(!resumed.contains("hunter2"), "{resumed}");
}

#[test]
fn a_failed_job_is_queued_again_and_a_late_worker_is_refused() {
    let (scratch, run) = waiting();
    let (id, lease, _) = claim(&scratch);
    let fail = |lease: &str, more: &[&str]| {
        let fail = [
            "jobs",
            "fail",
            &id,
            "--lease",
            lease,
            "--message",
            "no ink",
            "--json",
        ];
        scratch.run(&[&fail[..], more].concat())
    };
    assert_eq!(fail(&lease, &[]).json()["job"]["status"], "queued");
    let late = scratch.run(&["jobs", "complete", &id, "--lease", &lease, "--json"]);
    assert_eq!(late.code, Some(1));
    assert_eq!(late.json()["error"]["code"], "E0537");
    let (_, lease, job) = claim(&scratch);
    assert_eq!(job["attempt"], 2);
    let failed = fail(
        &lease,
        &["--kind", "broken", "--data", "{:part 7}", "--no-retry"],
    )
    .json();
    let error = json!({"message": "no ink", "kind": "broken", "data": {"part": 7}});
    assert_eq!(
        (&failed["job"]["status"], &failed["job"]["error"]),
        (&json!("failed"), &error)
    );
    let resumed = scratch.run(&["runs", "resume", &run]).ok();
    assert!(resumed.contains(":status :failed"), "{resumed}");
}

#[test]
fn jobs_are_listed_by_their_facts() {
    let scratch = Scratch::new();
    let empty = scratch.json_of(&["jobs", "list"]);
    assert_eq!(empty, json!({"ok": true, "jobs": [], "next": null}));
    scratch.write(
        "work.edn",
        "(flow/step :job :all {:op :submit-batch :jobs [{:job-type :a :payload 1} {:job-type :b :payload 2} {:job-type :b}]})",
    );
    scratch.run(&["run", "work.edn"]).ok();
    let payloads = |args: &[&str]| {
        let page = scratch.json_of(&[&["jobs", "list"], args].concat());
        let jobs = page["jobs"].as_array().expect("a list").iter();
        let payloads = jobs.map(|job| job["payload"].to_string());
        (payloads.collect::<Vec<_>>().join(" "), page)
    };
    assert_eq!(payloads(&[]).0, "null 2 1");
    assert_eq!(payloads(&["--type", "b"]).0, "null 2");
    assert_eq!(payloads(&["--status", "claimed"]).0, "");
    let (first, page) = payloads(&["--limit", "2"]);
    assert_eq!(first, "null 2");
    let next = page["next"].as_str().expect("more");
    assert_eq!(payloads(&["--after", next]).0, "1");
    let batch = page["jobs"][0]["batch"].as_str().expect("a batch");
    assert_eq!(payloads(&["--batch", batch]).0, "null 2 1");
    let wrong = scratch.run(&["jobs", "list", "--status", "done"]);
    assert_eq!(wrong.code, Some(2), "{}", wrong.err);
    let words = scratch.run(&["jobs", "list"]);
    assert!(words.out.contains("queued"), "{}", words.out);
}

#[test]
fn a_list_of_ends_is_checked_before_it_is_used() {
    let (scratch, _) = waiting();
    let (id, lease, _) = claim(&scratch);
    for (text, code) in [
        ("{}", "E0912"),
        ("[{\"id\": \"j1\"}]", "E0912"),
        (
            "[{\"id\": \"j1\", \"lease\": \"t\", \"status\": \"failed\"}]",
            "E0912",
        ),
        ("[1", "E0101"),
    ] {
        scratch.write("done", text);
        let ran = scratch.run(&["jobs", "complete", "--many", "done", "--json"]);
        assert_eq!(ran.code, Some(2), "{text}");
        assert_eq!(ran.json()["error"]["code"], code, "{text}");
    }
    let done = json!([
        {"id": "j0", "lease": "t"},
        {"id": id, "lease": lease, "status": "no_changes"},
    ]);
    scratch.write("done.json", done.to_string());
    let ran = scratch.run(&["jobs", "complete", "--many", "done.json", "--json"]);
    assert_eq!(ran.code, Some(1));
    let answer = ran.json();
    assert_eq!(answer["jobs"][0]["error"]["code"], "E0536", "{answer}");
    assert_eq!(answer["jobs"][1]["status"], "no_changes", "{answer}");
}
