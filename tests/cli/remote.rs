//! `--server`: commands that ask a server print what they print without one.

use serde_json::json;

use crate::api::Api;
use crate::program::{Ran, Scratch};

const HELLO: &str = r#"{:slug :hello
  :invocations {:default {:inputs [{:name :who :type :text}]}}
  :schedules [{:id :daily :cron "0 6 * * *"}]
  :flow '(flow/step :function :greet {:input (flow/input) :code '(fn [m] (str "Hello, " (:who m)))})}"#;
const ASK: &str = r#"{:slug :ask
  :flow '(flow/step :wait :decision {:key "go" :approval {:actions [:approve :reject]} :timeout "1h"})}"#;

fn project() -> Scratch {
    let scratch = Scratch::new();
    scratch.write("flows/hello.edn", HELLO);
    scratch.write("flows/ask.edn", ASK);
    scratch
}

fn started(api: &Api, flow: &str, who: &str) -> String {
    let path = format!("/api/v1/flows/{flow}/runs");
    let input = match flow {
        "hello" => json!({"who": who}),
        _ => json!({}),
    };
    let run = api
        .post(&path, &json!({"input": input, "wait": "60s"}))
        .json();
    run["id"].as_str().expect("an id").to_owned()
}

#[track_caller]
fn refused(ran: &Ran, code: &str) {
    assert_ne!(ran.code, Some(0), "{ran:?}");
    let is_named = ran.out.contains(code) || ran.err.contains(code);
    assert!(is_named, "{code} {ran:?}");
}

#[test]
fn a_server_is_asked_for_the_same_output() {
    let scratch = project();
    let api = Api::serve(&scratch);
    let base = format!("http://{}", api.address);
    let (first, second) = (started(&api, "hello", "Ada"), started(&api, "hello", "Bob"));
    let waiting = started(&api, "ask", "");
    let begun = std::time::Instant::now();
    while api.get("/api/v1/schedules").json()["schedules"] == json!([]) {
        assert!(begun.elapsed().as_secs() < 60, "the schedule is not known");
    }
    for args in [
        &["runs", "list"][..],
        &["runs", "list", "--json"],
        &["runs", "list", "--json", "--limit", "2"],
        &["runs", "list", "--json", "--limit", "0", "--full"],
        &["runs", "list", "--flow", "hello", "--before", &second],
        &["runs", "list", "--status", "waiting", "--sort", "oldest"],
        &["runs", "list", "--flow", "none", "--json"],
        &["runs", "show", &first, "--json"],
        &["runs", "show", &waiting, "--json"],
        &["runs", "show", &first, "--json", "--step", "greet"],
        &["runs", "events", &first, "--json"],
        &["runs", "diff", &first, &second, "--json", "--all"],
        &["schedules", "list", "--json"],
        &["resources", "list", "--json"],
        &["search", "Hello", "--json", "--targets", "flows,runs"],
    ] {
        let mut here = scratch.run(args);
        let there = scratch.run(&[&["--server", &*base], args].concat());
        if there.out != here.out {
            // Ages grow: the command without the server is performed before and after.
            here = scratch.run(args);
        }
        assert_eq!(there.out, here.out, "{args:?} {there:?}");
        assert_eq!((there.code, &there.err), (here.code, &here.err), "{args:?}");
    }
    let cancelled = scratch.run(&[
        "--server", &base, "runs", "cancel", &waiting, "--reason", "no",
    ]);
    assert_eq!(cancelled.code, Some(0), "{cancelled:?}");
    assert_eq!(scratch.run(&["runs", "watch", &waiting]).code, Some(0));
    let shown = api.get(&format!("/api/v1/runs/{waiting}")).json();
    assert_eq!(shown["status"], "cancelled");
    let again = scratch.run(&["--server", &base, "runs", "cancel", &waiting]);
    refused(&again, "E0505");
}

#[test]
fn the_owners_token_goes_to_its_own_server_only() {
    let (scratch, other) = (project(), Scratch::new());
    let api = Api::serve(&scratch);
    let base = format!("http://{}", api.address);
    let list = ["--server", &*base, "runs", "list", "--json"];
    assert_eq!(scratch.run(&list).code, Some(0));
    refused(&other.run(&list), "E1071");
    other.write("token", format!("{}\n", api.token));
    let named = other.run(&[&["--token-file", "token"][..], &list].concat());
    assert_eq!(named.code, Some(0), "{named:?}");
    let elsewhere = ["--server", "http://localhost:9", "runs", "list"];
    refused(&scratch.run(&elsewhere), "E1071");

    let mut command = other.command(&["runs", "list", "--json"]);
    command.env("FLOWSTONE_SERVER", &base);
    command.env("FLOWSTONE_TOKEN", &api.token);
    let set = command.output().expect("the program starts");
    assert!(set.status.success(), "{set:?}");
    let mut command = other.command(&["eval", "(+ 1 2)"]);
    command.env("FLOWSTONE_SERVER", &base);
    let local = command.output().expect("the program starts");
    assert_eq!(String::from_utf8_lossy(&local.stdout), "3\n");
}

#[test]
fn what_a_server_cannot_do_is_refused() {
    let scratch = project();
    scratch.write("token", "fst_0_0");
    let to = |address: &'static str| ["--server", address, "--token-file", "token"];
    let list = ["runs", "list"];
    let clear = [&to("http://flows.example.com")[..], &list].concat();
    refused(&scratch.run(&clear), "E1074");
    for address in [
        "flows.example.com",
        "ftp://127.0.0.1",
        "http://a@127.0.0.1",
        "",
    ] {
        let wrong = [&to(address)[..], &list].concat();
        refused(&scratch.run(&wrong), "E1070");
    }
    // Nothing listens on the port for discarded data.
    let silent = [&to("http://127.0.0.1:9")[..], &list].concat();
    refused(&scratch.run(&silent), "E1070");
    for command in [
        &["runs", "gc"][..],
        &["run", "flows/hello.edn", "--replay", "answers"],
        &["eval", "1"],
        &["runs", "import", "run.edn"],
        &["runs", "resume", "--all"],
    ] {
        let local = [&to("http://127.0.0.1:9")[..], command].concat();
        refused(&scratch.run(&local), "E1072");
    }
}

#[test]
fn runs_are_started_and_answered_on_a_server() {
    let scratch = project();
    let api = Api::serve(&scratch);
    let base = format!("http://{}", api.address);
    let there = |args: &[&str]| scratch.run(&[&["--server", &*base], args].concat());
    let who = "{\"who\": \"Ada\"}";
    let ran = there(&["run", "flows/hello.edn", "--input", who]);
    assert_eq!((ran.code, &*ran.out), (Some(0), "Hello, Ada\n"), "{ran:?}");
    let ran = there(&["run", "hello", "--input", who, "--json"]);
    assert_eq!(ran.json()["result"], "Hello, Ada", "{ran:?}");
    scratch.write("many.jsonl", format!("{who}\n{who}\n"));
    let ran = there(&["run", "hello", "--many", "many.jsonl"]);
    assert_eq!(ran.out.lines().count(), 2, "{ran:?}");
    refused(&there(&["run", "none"]), "E1014");
    scratch.write("other.edn", HELLO.replace("Hello", "Bye"));
    refused(&there(&["run", "other.edn", "--input", who]), "E1023");

    let ran = there(&["run", "ask"]);
    assert_eq!(ran.code, Some(3), "{ran:?}");
    assert!(
        ran.err.contains("flowstone waits approve|reject"),
        "{ran:?}"
    );
    for args in [&["waits", "list"][..], &["waits", "list", "--json"]] {
        assert_eq!(there(args).out, scratch.run(args).out, "{args:?}");
    }
    let waits = there(&["waits", "list", "--json"]).json();
    let wait = waits["waits"][0]["id"].as_str().expect("a wait").to_owned();
    let shown = there(&["waits", "show", &wait]);
    let key = waits["waits"][0]["key"].as_str().expect("a key");
    assert_eq!(there(&["waits", "show", key]).out, shown.out);
    assert!(
        shown.out.contains("actions     :approve :reject"),
        "{shown:?}"
    );
    refused(&there(&["waits", "approve", &wait, "--as", "Eve"]), "E1072");
    let approved = there(&["waits", "approve", &wait, "--comment", "fine", "--json"]);
    assert_eq!(approved.code, Some(0), "{approved:?}");
    let run = approved.json()["runs"][0]
        .as_str()
        .expect("a run")
        .to_owned();
    assert_eq!(scratch.run(&["runs", "watch", &run]).code, Some(0));
    // Its key still names the wait once it is over.
    let late = there(&["waits", "approve", key]);
    refused(&late, "E0515");
    assert!(late.err.contains("answered already"), "{late:?}");
    let ended = there(&["waits", "show", key]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let fork = there(&["runs", "fork", &run, "--json"]);
    assert_eq!(
        (fork.code, &fork.json()["status"]),
        (Some(3), &json!("waiting"))
    );
    let daily = there(&["schedules", "run", "hello", "daily", "--json"]);
    assert_eq!(daily.json()["status"], "completed", "{daily:?}");
}

#[test]
fn jobs_files_and_tokens_are_those_of_the_server() {
    let scratch = project();
    let work = "{:slug :work :flow '(flow/step :job :order {:op :submit :job-type :image :payload {:n 1}})}";
    scratch.write("flows/work.edn", work);
    let api = Api::serve(&scratch);
    let base = format!("http://{}", api.address);
    let there = |args: &[&str]| scratch.run(&[&["--server", &*base], args].concat());
    assert_eq!(there(&["run", "work"]).code, Some(0));
    for args in [
        &["jobs", "list"][..],
        &["jobs", "list", "--json"],
        &["jobs", "list", "--status", "queued"],
        &["tokens", "list"],
    ] {
        assert_eq!(there(args).out, scratch.run(args).out, "{args:?}");
    }
    let claimed = there(&["jobs", "claim", "--type", "image", "--json"]).json();
    let job = &claimed["jobs"][0];
    let [id, lease] = [&job["id"], &job["lease"]["token"]].map(|it| it.as_str().expect("text"));
    let progress = there(&["jobs", "progress", id, "--lease", lease, "--json"]);
    assert_eq!(progress.json()["cancelRequested"], false, "{progress:?}");
    refused(&there(&["jobs", "complete", id, "--lease", "0"]), "E0537");
    let done = there(&[
        "jobs", "complete", id, "--lease", lease, "--result", "{:a 1}",
    ]);
    assert_eq!(done.out, format!("{id}  succeeded\n"), "{done:?}");
    let show = ["jobs", "show", id];
    assert_eq!(there(&show).out, scratch.run(&show).out);

    scratch.write("may.txt", "a,b");
    let stored = there(&["resources", "upload", "may.txt", "--folder", "notes"]);
    let uri = stored.out.trim_end();
    assert_eq!(
        there(&["resources", "read", uri, "--full"]).out.trim_end(),
        "a,b"
    );
    let got = there(&["resources", "get", uri, "--out", "june.txt", "--json"]);
    assert_eq!(got.json()["resource"]["sizeBytes"], 3, "{got:?}");
    assert_eq!(scratch.read("june.txt"), "a,b");
    assert_eq!(there(&["resources", "delete", uri, "--yes"]).code, Some(0));
    let gone = there(&["resources", "get", uri, "--json"]);
    assert_eq!(gone.json()["resource"]["state"], "deleted", "{gone:?}");

    let made = there(&[
        "tokens", "create", "--name", "ci", "--scope", "read", "--json",
    ])
    .json();
    let id = made["id"].as_str().expect("an id");
    assert!(there(&["tokens", "list"]).out.contains("ci"));
    assert_eq!(there(&["tokens", "revoke", id]).code, Some(0));
    refused(&there(&["tokens", "revoke", id]), "E1003");
}
