//! Versions of flows on the command line, over HTTP, and what follows a release.

use std::time::Duration;

use serde_json::{Value, json};

use crate::api::Api;
use crate::program::{Ran, Scratch};

/// A flow whose result tells its text.
fn flow(slug: &str, body: &str) -> String {
    format!(
        "{{:slug :{slug}\n :concurrency {{:type :keyed :key-field :n :on-new-version :coexist}}\n \
         :invocations {{:default {{:inputs [{{:name :n :type :number :default 1}}]}}}}\n :flow '{body}}}\n"
    )
}

fn ok(ran: &Ran) -> String {
    assert_eq!(ran.code, Some(0), "{}{}", ran.out, ran.err);
    ran.out.trim().to_owned()
}

fn refused(ran: &Ran, code: &str) -> String {
    assert_eq!(ran.code, Some(1), "{}{}", ran.out, ran.err);
    assert!(ran.err.contains(code), "{}", ran.err);
    ran.err.clone()
}

#[test]
fn run_takes_the_live_version_and_says_so_if_there_is_none() {
    let scratch = Scratch::new();
    scratch.write("flows/report.edn", flow("report", "1"));
    ok(&scratch.run(&["flows", "push", "report"]));
    scratch.write("flows/report.edn", flow("report", "2"));
    let draft = scratch.run(&["run", "report"]);
    assert_eq!(ok(&draft), "1");
    assert!(
        draft
            .err
            .contains("`report` has no release: running its newest version, 1"),
        "{}",
        draft.err
    );
    // A path is a file.
    assert_eq!(ok(&scratch.run(&["run", "flows/report.edn"])), "2");
    refused(
        &scratch.run(&["run", "report", "--target", "live"]),
        "E1409",
    );
    ok(&scratch.run(&["flows", "release", "report"]));
    ok(&scratch.run(&["flows", "push", "report"]));
    assert_eq!(ok(&scratch.run(&["run", "report"])), "1");
    assert_eq!(
        ok(&scratch.run(&["run", "report", "--target", "draft"])),
        "2"
    );
    assert_eq!(ok(&scratch.run(&["run", "report", "--version", "2"])), "2");
    refused(&scratch.run(&["run", "report", "--version", "9"]), "E1401");
    refused(
        &scratch.run(&["run", "flows/report.edn", "--version", "1"]),
        "E1411",
    );
    let run = scratch
        .run(&["run", "report", "--version", "2", "--json", "--new"])
        .json();
    let id = run["run"].as_str().expect("an id");
    let shown = scratch.run(&["runs", "show", id, "--json"]).json();
    assert_eq!(shown["version"], 2, "{shown}");
    assert_eq!(shown["target"], Value::Null);
}

#[test]
fn pushes_from_two_folders_conflict() {
    let scratch = Scratch::new();
    scratch.write("a/report.edn", flow("report", "1"));
    ok(&scratch.run(&["flows", "push", "a/report.edn", "--as", "ada"]));
    ok(&scratch.run(&["flows", "pull", "report", "--to", "b/report.edn"]));
    let text = std::fs::read_to_string(scratch.path().join("b/report.edn")).expect("a file");
    assert_eq!(text, flow("report", "1"));
    scratch.write("b/report.edn", flow("report", "2"));
    ok(&scratch.run(&["flows", "push", "b/report.edn", "--as", "eve"]));
    scratch.write("a/report.edn", flow("report", "3"));
    let lost = scratch.run(&["flows", "push", "a/report.edn"]);
    let words = refused(&lost, "E1402");
    assert!(
        words.contains("version 2 by eve changed flow.edn"),
        "{words}"
    );
    assert!(words.contains("+ :flow '2}"), "{words}");
    // Nothing of the loser is lost, and nothing was written.
    assert_eq!(ok(&scratch.run(&["run", "report", "--quiet"])), "2");
    refused(
        &scratch.run(&["flows", "pull", "report", "--to", "a/report.edn"]),
        "E1412",
    );
    ok(&scratch.run(&["flows", "push", "a/report.edn", "--base", "2"]));
    assert_eq!(ok(&scratch.run(&["run", "report", "--quiet"])), "3");
    scratch.write("c/report.edn", flow("report", "4"));
    refused(&scratch.run(&["flows", "push", "c/report.edn"]), "E1403");
    ok(&scratch.run(&["flows", "push", "c/report.edn", "--force"]));
    // Equal files add nothing.
    let same = ok(&scratch.run(&["flows", "push", "c/report.edn"]));
    assert!(same.contains("nothing was pushed"), "{same}");
}

#[test]
fn a_flow_with_errors_is_not_pushed() {
    let scratch = Scratch::new();
    scratch.write("report.edn", flow("report", "(nope)"));
    refused(&scratch.run(&["flows", "push", "report.edn"]), "E1405");
    let listed = scratch
        .run(&["flows", "list", "--registry", "--json"])
        .json();
    assert_eq!(listed["flows"], json!([]));
}

#[test]
fn check_tells_that_a_file_differs_from_the_released_version() {
    let scratch = Scratch::new();
    scratch.write("flows/report.edn", flow("report", "1"));
    ok(&scratch.run(&["flows", "push", "report"]));
    ok(&scratch.run(&["flows", "release", "report"]));
    let same = scratch.run(&["check", "flows/"]);
    assert!(!same.err.contains("differs"), "{}", same.err);
    scratch.write("flows/report.edn", flow("report", "2"));
    let other = scratch.run(&["check", "flows/"]);
    let note = "flows/report.edn differs from the released version of `report`, 1";
    assert!(other.err.contains(note), "{}", other.err);
}

#[test]
fn calls_of_a_version_are_pinned_when_the_tree_begins() {
    let scratch = Scratch::new();
    let call = "(let [a (flow/call-flow :part {}) _ (flow/step :wait :go {:key \"go\"}) b (flow/call-flow :part {})] [a b])";
    scratch.write("flows/whole.edn", flow("whole", call));
    scratch.write("flows/part.edn", flow("part", ":one"));
    for slug in ["whole", "part"] {
        ok(&scratch.run(&["flows", "push", slug]));
        ok(&scratch.run(&["flows", "release", slug]));
    }
    // The file is not what runs.
    scratch.write("flows/part.edn", flow("part", ":two"));
    let waiting = scratch.run(&["run", "whole", "--json"]).json();
    let id = waiting["run"].as_str().expect("an id").to_owned();
    std::thread::sleep(Duration::from_millis(5));
    ok(&scratch.run(&["flows", "push", "part"]));
    ok(&scratch.run(&["flows", "release", "part"]));
    ok(&scratch.run(&["waits", "complete", "go", "--value", "1", "--quiet"]));
    let shown = scratch.run(&["runs", "show", &id, "--json"]).json();
    assert_eq!(shown["result"], json!(["one", "one"]), "{shown}");
    let later = scratch.run(&["run", "whole", "--new", "--json"]).json();
    let id = later["run"].as_str().expect("an id").to_owned();
    ok(&scratch.run(&["waits", "complete", "go", "--value", "1", "--quiet"]));
    let shown = scratch.run(&["runs", "show", &id, "--json"]).json();
    assert_eq!(shown["result"], json!(["two", "two"]), "{shown}");
}

#[test]
fn an_archived_flow_does_not_start() {
    let scratch = Scratch::new();
    scratch.write(
        "flows/whole.edn",
        flow("whole", "(flow/call-flow :part {})"),
    );
    scratch.write("flows/part.edn", flow("part", "1"));
    ok(&scratch.run(&["flows", "push", "part"]));
    ok(&scratch.run(&["flows", "archive", "part"]));
    refused(&scratch.run(&["run", "part"]), "E1404");
    refused(&scratch.run(&["run", "flows/whole.edn"]), "E1404");
    refused(&scratch.run(&["flows", "push", "part", "--force"]), "E1404");
    let hidden = scratch.json_of(&["flows", "list", "--registry"]);
    assert_eq!(hidden["flows"], json!([]));
    let shown = scratch.json_of(&["flows", "list", "--registry", "--archived"]);
    assert_eq!(shown["flows"][0]["slug"], "part");
    ok(&scratch.run(&["flows", "archive", "part", "--undo"]));
    assert_eq!(ok(&scratch.run(&["run", "flows/whole.edn", "--new"])), "1");
}

/// A flow with an interface and a schedule, which answers with a word.
fn served(word: &str) -> String {
    format!(
        "{{:slug :word :concurrency {{:type :singleton :on-new-version :coexist}}
          :invocations {{:default {{:inputs []}}}}
          :interfaces {{:http [{{:id :get :invocation :default :method :get :path \"/{word}\"}}]}}
          :schedules [{{:id :{word} :cron \"0 6 * * *\"}}]
          :flow '{{:status 200 :body \"{word}\"}}}}"
    )
}

/// Asks until the answer is as expected, for a bounded time.
#[track_caller]
fn soon(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = std::time::Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(60), "{what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn interfaces_and_schedules_follow_live_once_there_is_a_release() {
    let scratch = Scratch::new();
    scratch.write("flows/word.edn", served("one"));
    let api = Api::serve(&scratch);
    let body = |path: &str| {
        let reply = api.get(path);
        (reply.status, reply.body)
    };
    let schedules = || {
        let known = api.get("/api/v1/schedules").json();
        let all = known["schedules"].as_array().cloned().unwrap_or_default();
        let on = all.iter().filter(|it| !it["next"].is_null());
        let on = on.map(|it| format!("{} {}", it["id"], it["file"]));
        on.collect::<Vec<String>>().join(" ").replace('"', "")
    };
    // Without a release, the folder is used, whatever was pushed.
    scratch.run(&["flows", "push", "word"]).ok();
    scratch.write("flows/word.edn", served("two"));
    soon("the file is served", || {
        body("/http/two") == (200, "two".to_owned())
    });
    soon("the file is planned", || {
        schedules().starts_with("two ") && schedules().ends_with("word.edn")
    });
    // The release takes its place.
    scratch.run(&["flows", "release", "word"]).ok();
    soon("the release is served", || {
        body("/http/one") == (200, "one".to_owned())
    });
    assert_eq!(body("/http/two").0, 404);
    soon("the release is planned", || schedules() == "one word@1");
    scratch.write("flows/word.edn", served("three"));
    scratch.run(&["flows", "push", "word"]).ok();
    std::thread::sleep(Duration::from_millis(1_200));
    assert_eq!(body("/http/one").0, 200);
    assert_eq!(schedules(), "one word@1");
    scratch.run(&["flows", "release", "word"]).ok();
    soon("the later release is served", || {
        body("/http/three").0 == 200
    });
    soon("the later release is planned", || {
        schedules() == "three word@2"
    });
    let run = api
        .post("/api/v1/flows/word/runs", &json!({"wait": "30s"}))
        .json();
    assert_eq!(
        (&run["version"], &run["target"]),
        (&json!(2), &json!("live"))
    );
    let named = json!({"version": "1", "wait": "30s"});
    let run = api.post("/api/v1/flows/word/runs", &named).json();
    assert_eq!(run["result"]["body"], "one", "{run}");
    assert_eq!((&run["version"], &run["target"]), (&json!(1), &Value::Null));
    // An archived flow has neither.
    scratch.run(&["flows", "archive", "word"]).ok();
    soon("it is not served", || body("/http/three").0 == 404);
    soon("it is not planned", || schedules().is_empty());
    let start = api.post("/api/v1/flows/word/runs", &json!({}));
    assert_eq!(start.problem(), "409 E1404");
    scratch.run(&["flows", "archive", "word", "--undo"]).ok();
    soon("it is served again", || body("/http/three").0 == 200);
}

#[test]
#[expect(
    clippy::too_many_lines,
    reason = "one story from its first to its last version"
)]
fn the_registry_of_a_server_is_changed_by_commands_and_requests() {
    let scratch = Scratch::new();
    scratch.write("flows/report.edn", flow("report", "1"));
    let api = Api::serve(&scratch);
    let base = format!("http://{}", api.address);
    let far = |args: &[&str]| scratch.run(&[&["--server", &*base], args].concat());
    assert_eq!(
        ok(&far(&["flows", "push", "report"])),
        "report@1 First version"
    );
    scratch.write("flows/report.edn", flow("report", "2"));
    assert_eq!(
        ok(&far(&["flows", "push", "report"])),
        "report@2 Change :flow"
    );
    assert_eq!(
        ok(&far(&["flows", "release", "report"])),
        "report@2 is live"
    );
    // What a command prints with a server is what it prints without one.
    for args in [
        &["flows", "list", "--registry"][..],
        &["flows", "list", "--registry", "--json"],
        &["flows", "show", "report@1"],
        &["flows", "show", "report@live", "--text"],
        &["flows", "versions", "report"],
        &["flows", "versions", "report", "--json"],
        &["flows", "diff", "report", "1", "2"],
        &["flows", "diff", "report", "1", "2", "--json"],
        &["flows", "diff", "report", "1"],
    ] {
        assert_eq!(
            far(args).transcript(),
            scratch.run(args).transcript(),
            "{args:?}"
        );
    }
    let pulled = ok(&far(&["flows", "pull", "report@1", "--to", "other.edn"]));
    assert_eq!(pulled, "report@1 other.edn");
    assert_eq!(scratch.read("other.edn"), flow("report", "1"));
    refused(&far(&["flows", "push", "other.edn"]), "E1402");
    scratch.write("other.edn", flow("report", "3"));
    refused(
        &far(&["flows", "pull", "report", "--to", "other.edn"]),
        "E1412",
    );
    assert_eq!(
        ok(&far(&["flows", "rollback", "report", "--to", "1"])),
        "report@1 is live; before, it was 2"
    );
    let known = api.get("/api/v1/registry/report").json();
    assert_eq!(known["live"]["version"], 1);
    assert_eq!(known["releases"][0]["kind"], "rollback");
    assert_eq!(known["draft"]["author"], "owner");
    let stale = json!({"base": 1, "files": {"flow.edn": flow("report", "4")}});
    let reply = api.post("/api/v1/registry/report/versions", &stale);
    assert_eq!(reply.problem(), "409 E1402");
    assert_eq!(reply.json()["details"]["current_version"], 2);
    assert_eq!(reply.json()["details"]["changed"], json!(["flow.edn"]));
    let wrong = json!({"base": 2, "files": {"flow.edn": flow("report", "(nope)")}});
    let reply = api.post("/api/v1/registry/report/versions", &wrong);
    assert_eq!(reply.problem(), "422 E1405");
    assert_eq!(reply.json()["details"]["problems"][0]["line"], 4);
    let none = json!({"base": 2, "files": {"a.edn": "1"}});
    assert_eq!(
        api.post("/api/v1/registry/report/versions", &none)
            .problem(),
        "400 E1016"
    );
    let ok = api.post(
        "/api/v1/registry/report/versions",
        &json!({"base": 2, "message": "By hand", "files": {"flow.edn": flow("report", "4")}}),
    );
    assert_eq!(ok.json()["status"], "committed");
    assert_eq!(api.get("/api/v1/registry/nobody").problem(), "404 E1400");
    assert_eq!(
        api.get("/api/v1/registry/report/versions/9").problem(),
        "404 E1401"
    );
    assert_eq!(
        api.get("/api/v1/registry/report/versions/x").problem(),
        "400 E1411"
    );
    let page = api.get("/api/v1/registry/report/versions?limit=2").json();
    assert_eq!(page["versions"].as_array().map(Vec::len), Some(2));
    let next = page["next"].as_str().expect("a cursor");
    let rest = api.get(&format!(
        "/api/v1/registry/report/versions?limit=2&cursor={next}"
    ));
    assert_eq!(rest.json()["versions"][0]["version"], 1);
}

#[test]
fn a_token_reaches_the_versions_of_its_flows_only() {
    let scratch = Scratch::new();
    for slug in ["report", "other"] {
        scratch.write(&format!("flows/{slug}.edn"), flow(slug, "1"));
        scratch.run(&["flows", "push", slug]).ok();
    }
    let api = Api::serve(&scratch);
    let token = |scopes: &[&str]| {
        let new = json!({"name": "t", "scopes": scopes, "flows": ["report"]});
        let made = api.post("/api/v1/tokens", &new).json();
        made["token"].as_str().expect("a token").to_owned()
    };
    let edit = token(&["read", "edit"]);
    let listed = api.get_as(&edit, "/api/v1/registry").json();
    assert_eq!(listed["flows"].as_array().map(Vec::len), Some(1));
    for path in [
        "",
        "/versions",
        "/versions/1",
        "/diff?from=1",
        "/copies?place=a",
    ] {
        let reply = api.get_as(&edit, &format!("/api/v1/registry/other{path}"));
        assert_eq!(reply.status, 404, "{path}");
    }
    for path in ["versions", "release", "rollback", "archive"] {
        let body = match path {
            "versions" => json!({"files": {"flow.edn": flow("other", "2")}, "force": true}),
            _ => json!({}),
        };
        let reply = api.post_as(&edit, &format!("/api/v1/registry/other/{path}"), &body);
        assert_eq!(reply.status, 404, "{path}");
    }
    let read = token(&["read"]);
    let release = "/api/v1/registry/report/release";
    assert_eq!(api.post_as(&read, release, &json!({})).status, 403);
    assert_eq!(
        api.get_as(&read, "/api/v1/registry/report/versions/1")
            .status,
        403
    );
    assert_eq!(api.post_as(&edit, release, &json!({})).status, 200);
}

#[test]
fn guarded_releases_need_the_deploy_key() {
    let scratch = Scratch::new();
    let key = "dk-7b1e4f0a92c3";
    let guarded =
        |body: &str| flow("report", body).replace("{:slug", "{:deploy-key-required true :slug");
    scratch.write("flows/report.edn", flow("report", "1"));
    ok(&scratch.run(&["flows", "push", "report"]));
    ok(&scratch.run(&["flows", "release", "report"]));
    scratch.write("flows/report.edn", guarded("2"));
    ok(&scratch.run(&["flows", "push", "report"]));
    let release = |more: &[&str]| scratch.run(&[&["flows", "release", "report"], more].concat());
    // The project has no key.
    refused(&release(&["--deploy-key", ""]), "E1458");
    scratch.write(".env", format!("DEPLOY_KEY={key}\n"));
    refused(&release(&[]), "E1458");
    refused(&release(&["--deploy-key", "dk-other"]), "E1458");
    assert_eq!(ok(&scratch.run(&["run", "report", "--quiet"])), "1");
    ok(&release(&["--deploy-key", key]));
    // A version that does not ask for the key cannot be released without it.
    scratch.write("flows/report.edn", flow("report", "3"));
    ok(&scratch.run(&["flows", "push", "report"]));
    refused(&release(&[]), "E1458");
    refused(&scratch.run(&["flows", "rollback", "report"]), "E1458");
    let api = Api::serve(&scratch);
    let path = "/api/v1/registry/report/release";
    assert_eq!(api.post(path, &json!({})).problem(), "403 E1458");
    assert_eq!(api.post(path, &json!({"deployKey": key})).status, 200);
    assert_eq!(ok(&scratch.run(&["run", "report", "--quiet"])), "3");
}

#[test]
fn a_server_serves_a_release_at_once() {
    let scratch = Scratch::new();
    let api = Api::serve(&scratch);
    let push = |base: i64, body: &str| {
        let files = json!({"flow.edn": flow("report", body)});
        let new = json!({"files": files, "base": base});
        let pushed = api.post("/api/v1/registry/report/versions", &new);
        assert_eq!(pushed.status, 200, "{pushed:?}");
    };
    let start = || {
        let started = api.post("/api/v1/flows/report/runs", &json!({}));
        assert_eq!(started.status, 201, "{started:?}");
        started.json()["version"].clone()
    };
    push(0, "1");
    push(1, "2");
    // More rounds than the server has threads.
    for round in 0..6 {
        let version = 1 + round % 2;
        let release = json!({"version": version});
        let released = api.post("/api/v1/registry/report/release", &release);
        assert_eq!(released.status, 200, "{released:?}");
        assert_eq!(start(), version, "round {round}");
    }
    let back = api.post("/api/v1/registry/report/rollback", &json!({}));
    assert_eq!(start(), back.json()["live"], "{back:?}");
    api.post("/api/v1/registry/report/archive", &json!({}));
    let archived = api.post("/api/v1/flows/report/runs", &json!({}));
    assert_eq!(archived.problem(), "409 E1404");
}

#[test]
fn a_start_over_http_names_one_version() {
    let scratch = Scratch::new();
    for body in ["1", "2"] {
        scratch.write("flows/report.edn", flow("report", body));
        ok(&scratch.run(&["flows", "push", "report"]));
    }
    let api = Api::serve(&scratch);
    let start = |body: &Value| api.post("/api/v1/flows/report/runs", body);
    for version in [json!(1), json!("1")] {
        let started = start(&json!({"version": version}));
        assert_eq!(started.json()["version"], 1, "{started:?}");
    }
    let both = start(&json!({"version": 1, "target": "draft"}));
    assert_eq!(both.status, 400, "{both:?}");
    assert!(both.body.contains("exclude each other"), "{both:?}");
    // Lists say which version a run has.
    start(&json!({"target": "draft"}));
    let listed = api.get("/api/v1/runs").json();
    let versions = listed["runs"].as_array().expect("runs").iter();
    let versions: Vec<Value> = versions
        .map(|run| json!([run["version"], run["target"]]))
        .collect();
    assert_eq!(json!(versions), json!([[2, "draft"], [1, null], [1, null]]));
}

#[test]
fn a_push_without_a_base_shows_what_it_would_change() {
    let scratch = Scratch::new();
    let api = Api::serve(&scratch);
    let push = |body: &str| {
        let files = json!({"flow.edn": flow("report", body)});
        api.post("/api/v1/registry/report/versions", &json!({"files": files}))
    };
    assert_eq!(push("1").status, 200);
    let refused = push("2");
    assert_eq!(refused.problem(), "409 E1402");
    let details = &refused.json()["details"];
    assert_eq!(details["changed"], json!(["flow.edn"]), "{details}");
    let diff = details["diff"].as_str().expect("a diff");
    assert!(diff.contains("-") && diff.contains("+ :flow '2"), "{diff}");
}

#[test]
fn a_folder_with_the_name_of_a_flow_hides_neither_it_nor_its_installation() {
    let scratch = Scratch::new();
    scratch.write("flows/report.edn", flow("report", "1"));
    scratch.write("report/notes.txt", "notes");
    ok(&scratch.run(&["flows", "push", "flows/report.edn"]));
    ok(&scratch.run(&["flows", "release", "report"]));
    assert_eq!(ok(&scratch.run(&["run", "report"])), "1");
    let package = scratch.run(&["flows", "pack", "report", "--to", "p.tar.gz"]);
    ok(&package);
    ok(&scratch.run(&["flows", "install", "p.tar.gz", "--as", "packed"]));
    let run = ["run", "report", "--installation", "packed"];
    assert_eq!(ok(&scratch.run(&run)), "1");
}

#[test]
fn what_a_flow_sees_and_runs_in_the_workspace_is_the_release() {
    let scratch = Scratch::new();
    scratch.write("flows/report.edn", flow("report", "1"));
    ok(&scratch.run(&["flows", "push", "report"]));
    ok(&scratch.run(&["flows", "release", "report"]));
    scratch.write("flows/report.edn", flow("report", "2"));
    let step = |id: &str, op: &str, args: &str| {
        format!(
            "(flow/step :workspace :{id} {{:op :{op} :mutations :write :args {{:flow-slug :report {args}}}}})"
        )
    };
    scratch.write(
        "ask.clj",
        format!(
            "[{} {} (:version {}) (:live (first (:flows (flow/step :workspace :l {{:op :flows/list}}))))]",
            step("a", "flows/run", ""),
            step("b", "flows/run", ":version 1"),
            step("c", "flows/show", "")
        ),
    );
    assert_eq!(
        ok(&scratch.run(&["run", "ask.clj", "--quiet"])),
        "[1 1 1 1]"
    );
}
