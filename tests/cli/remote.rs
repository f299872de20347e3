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
        let here = scratch.run(args);
        let there = scratch.run(&[&["--server", &*base], args].concat());
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
        &["run", "flows/hello.edn"],
        &["eval", "1"],
        &["waits", "list"],
    ] {
        let local = [&to("http://127.0.0.1:9")[..], command].concat();
        refused(&scratch.run(&local), "E1072");
    }
}
