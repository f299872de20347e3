//! `thumbnails.edn`: a batch of jobs that a worker outside does.

use serde_json::json;

use super::project;

#[test]
fn a_worker_makes_each_thumbnail() {
    let scratch = project();
    let waiting = scratch.run(&[
        "run",
        "flows/thumbnails.edn",
        "--input",
        "@flows/thumbnails/input.edn",
    ]);
    assert_eq!(waiting.code, Some(3), "{}", waiting.err);
    let claim = [
        "jobs",
        "claim",
        "--type",
        "thumbnail",
        "--max",
        "10",
        "--lease",
        "1h",
    ];
    let claimed = scratch.json_of(&claim);
    let jobs = claimed["jobs"].as_array().expect("a list");
    let lease = |idx: usize| jobs[idx]["lease"]["token"].as_str().expect("a token");
    let id = |idx: usize| jobs[idx]["id"].as_str().expect("an id");
    assert_eq!(
        jobs[2]["payload"],
        json!({"image": "photos/notes.txt", "width": 320})
    );
    let done = json!([
        {"id": id(0), "lease": lease(0), "result": {"uri": "thumbs/harbour.jpg", "bytes": 4096}},
        {"id": id(1), "lease": lease(1), "result": {"uri": "thumbs/lighthouse.jpg", "bytes": 5120}},
    ]);
    scratch.write("done.json", done.to_string());
    let completed = scratch.json_of(&["jobs", "complete", "--many", "done.json"]);
    assert_eq!(completed["jobs"][1]["status"], "succeeded", "{completed}");
    let failing = ["jobs", "fail", id(2), "--lease", lease(2), "--no-retry"];
    let failed = [&failing[..], &["--message", "not an image"]].concat();
    assert_eq!(scratch.json_of(&failed)["job"]["status"], "failed");
    let resumed = scratch.run(&["runs", "resume", "--all"]).ok();
    let expected = scratch.read("flows/thumbnails/expected.md");
    assert!(resumed.contains(expected.trim_end()), "{resumed}");
}
