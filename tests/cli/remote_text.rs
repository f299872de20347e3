//! What commands print for people is the same over a server, byte for byte.

use std::io::BufRead as _;

use serde_json::json;

use crate::api::Api;
use crate::program::{Ran, Scratch};

const HELLO: &str = r#"{:slug :hello :name "Greeter" :description "Greets a person." :tags [:demo]
  :invocations {:default {:inputs [{:name :who :type :text :required true :description "Whom"}]}}
  :interfaces {:http [{:id :greet :path "/greet/{who}" :method :get :invocation :default}]
               :webhook [{:id :pushed :event-name "pushed" :invocation :default :auth {:type :bearer :secret-ref :hook}}]
               :mcp [{:tool-name "greet_person" :invocation :default}]}
  :schedules [{:id :daily :cron "0 6 * * *" :timezone "Europe/Oslo" :input {:who "Ada"}}]
  :flow '(do (flow/log :info "hi" {:a :b})
             (flow/step :function :greet {:title "Greets" :input (flow/input)
               :code '(fn [m] {:said (str "Hello, " (:who m)) :mood :good :set #{1 2}})}))}"#;
const BAD: &str = r#"{:slug :bad
  :flow '(flow/step :function :boom {:input {:n 1} :code '(fn [m] (throw (ex-info "no way" {:why :because})))})}"#;
const ASK: &str = r#"{:slug :ask
  :flow '(flow/step :wait :decision {:key "go" :message "Ship it?" :approval {:actions [:approve :reject]} :timeout "1h"})}"#;
const WORK: &str = "{:slug :work :flow '(flow/step :job :order {:op :submit :job-type :image :payload {:n :one}})}";

struct Served {
    scratch: Scratch,
    api: Api,
    base: String,
}

impl Served {
    fn start() -> Served {
        let scratch = Scratch::new();
        let flows = [("hello", HELLO), ("bad", BAD), ("ask", ASK), ("work", WORK)];
        for (name, text) in flows {
            scratch.write(&format!("flows/{name}.edn"), text);
        }
        let api = Api::serve(&scratch);
        let base = format!("http://{}", api.address);
        Served { scratch, api, base }
    }

    fn run(&self, flow: &str, input: serde_json::Value) -> String {
        let path = format!("/api/v1/flows/{flow}/runs");
        let body = json!({"input": input, "wait": "60s"});
        let run = self.api.post(&path, &body).json();
        run["id"].as_str().expect("an id").to_owned()
    }

    fn there(&self, args: &[&str]) -> Ran {
        self.scratch
            .run(&[&["--server", &*self.base], args].concat())
    }

    /// Checks that a command prints the same with and without the server.
    #[track_caller]
    fn same(&self, args: &[&str]) {
        let (mut here, there) = (self.scratch.run(args), self.there(args));
        if there.out != here.out {
            // Ages grow: the command without the server is performed before and after.
            here = self.scratch.run(args);
        }
        assert_eq!(there.out, here.out, "{args:?} {there:?}");
        assert_eq!((there.code, &there.err), (here.code, &here.err), "{args:?}");
        assert!(!here.out.is_empty() || !here.err.is_empty(), "{args:?}");
    }

    fn await_schedule(&self) {
        let begun = std::time::Instant::now();
        while self.api.get("/api/v1/schedules").json()["schedules"] == json!([]) {
            assert!(begun.elapsed().as_secs() < 60, "the schedule is not known");
        }
    }
}

#[test]
fn runs_are_shown_with_the_same_text() {
    let served = Served::start();
    let good = served.run("hello", json!({"who": "Ada"}));
    let other = served.run("hello", json!({"who": "Bob"}));
    let bad = served.run("bad", json!({}));
    let waiting = served.run("ask", json!({}));
    for run in [&*good, &bad, &waiting] {
        served.same(&["runs", "show", run]);
        served.same(&["runs", "show", run, "--full"]);
        served.same(&["runs", "events", run]);
        served.same(&["runs", "events", run, "--after", "1", "--json"]);
    }
    for (run, step) in [(&*good, "greet"), (&bad, "boom"), (&waiting, "decision")] {
        served.same(&["runs", "show", run, "--step", step]);
    }
    for options in [&[][..], &["--all"], &["--json", "--all"]] {
        served.same(&[&["runs", "diff", &good, &other][..], options].concat());
        served.same(&[&["runs", "diff", &good, &bad][..], options].concat());
    }
    // Keywords and sets are those of the flow, not what JSON makes of them.
    let shown = served.there(&["runs", "show", &good]);
    let result = r#"{:said "Hello, Ada", :mood :good, :set #{1 2}}"#;
    assert!(
        shown.out.ends_with(&format!("result\n{result}\n")),
        "{shown:?}"
    );
    let full = served.there(&["runs", "show", &bad, "--full"]);
    assert!(full.out.contains("\nerror data\n{"), "{full:?}");
    assert!(full.out.contains(":why :because"), "{full:?}");
}

#[test]
fn records_of_a_run_are_the_same_over_a_server() {
    let served = Served::start();
    let good = served.run("hello", json!({"who": "Ada"}));
    let waiting = served.run("ask", json!({}));
    for run in [&*good, &waiting] {
        for options in [&[][..], &["--json"], &["--since", "2"]] {
            served.same(&[&["runs", "feed", run][..], options].concat());
        }
        served.same(&["runs", "export", run, "-"]);
    }
    let far = served.there(&["runs", "feed", &waiting, "--since", "900"]);
    assert_eq!((far.code, &*far.out), (Some(0), ""), "{far:?}");
    served.same(&["runs", "feed", &good, "--follow"]);
    served.same(&["runs", "spans", &good]);
    served.same(&["runs", "spans", &good, "--json"]);
    served.same(&["runs", "watch", &good]);
    served.same(&["waits", "list", "--signals"]);
    served.api.post(
        "/api/v1/signals",
        &json!({"key": "later", "value": {"sum": 20}}),
    );
    let kept = served.there(&["waits", "list", "--signals"]);
    assert!(kept.out.contains("later"), "{kept:?}");
    for options in [&[][..], &["--json"], &["--key", "later"]] {
        served.same(&[&["waits", "list", "--signals"][..], options].concat());
    }
    let export = served.there(&["runs", "export", &good, "good.edn", "--json"]);
    let here = served
        .scratch
        .run(&["runs", "export", &good, "here.edn", "--json"]);
    assert_eq!(export.json()["runs"], json!([good]));
    assert_eq!(export.json()["bytes"], here.json()["bytes"]);
    assert_eq!(
        served.scratch.read("good.edn"),
        served.scratch.read("here.edn")
    );
}

#[test]
fn unfinished_runs_are_watched_over_a_server() {
    let served = Served::start();
    let waiting = served.run("ask", json!({}));
    let mut command = served
        .scratch
        .command(&["--server", &served.base, "runs", "watch"]);
    let mut child = command
        .stdout(std::process::Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut lines = std::io::BufReader::new(child.stdout.take().expect("its output")).lines();
    let first = lines.next().expect("a line").expect("text");
    assert!(first.starts_with(&waiting), "{first}");
    assert!(first.contains("waiting"), "{first}");
    let cancel = format!("/api/v1/runs/{waiting}/cancel");
    assert_eq!(served.api.post(&cancel, &json!({})).status, 202);
    let last = lines
        .map_while(Result::ok)
        .find(|it| it.ends_with("cancelled"));
    assert_eq!(last, Some(format!("{waiting}  cancelled")));
    child.kill().expect("it is stopped");
    child.wait().expect("it ends");
}

#[test]
fn an_export_needs_a_token_that_reaches_everything() {
    let served = Served::start();
    let run = served.run("hello", json!({"who": "Ada"}));
    let token = |options: &[&str]| {
        let args = [
            &["tokens", "create", "--name", "t", "--scope", "read"][..],
            options,
        ];
        let made = served.scratch.run(&args.concat()).ok();
        made.trim_end().to_owned()
    };
    let path = format!("/api/v1/runs/{run}/export");
    let whole = served.api.get_as(&token(&[]), &path);
    assert_eq!(whole.status, 200, "{whole:?}");
    assert_eq!(whole.header("content-type"), Some("application/edn"));
    for limit in [
        ["--flow", "hello"],
        ["--label", "demo"],
        ["--resource", "x"],
        ["--job-type", "image"],
    ] {
        let refused = served.api.get_as(&token(&limit), &path);
        assert_eq!(refused.problem(), "403 E1011", "{limit:?}");
    }
    let elsewhere = served.api.get_as(&token(&["--flow", "bad"]), &path);
    assert_eq!(elsewhere.problem(), "404 E0502");
}

#[test]
fn undeclared_inputs_are_reported_over_a_server() {
    let served = Served::start();
    let given = r#"{"who": "Ada", "wo": "Bob"}"#;
    let here = served
        .scratch
        .run(&["run", "flows/hello.edn", "--input", given]);
    let there = served.there(&["run", "hello", "--input", given]);
    let warning = |text: &str| text.lines().take(2).collect::<Vec<_>>().join("\n");
    assert!(
        here.err
            .starts_with("warning[E0429]: the flow declares no input `wo`"),
        "{here:?}"
    );
    assert_eq!(warning(&there.err), warning(&here.err));
    for args in [
        &["run", "hello", "--input", given, "--json"][..],
        &["run", "hello", "--input", given, "--json", "--detach"],
    ] {
        let mut local = args.to_vec();
        local[1] = "flows/hello.edn";
        let [there, here] = [served.there(args), served.scratch.run(&local)];
        assert_eq!(
            there.json()["warnings"],
            here.json()["warnings"],
            "{args:?}"
        );
        assert_eq!(there.json()["warnings"][0]["code"], "E0429", "{there:?}");
    }
    served.scratch.write(
        "many.jsonl",
        format!("{given}\n{given}\n{{\"who\": \"Cy\"}}\n"),
    );
    for run in [
        served.there(&["run", "hello", "--many", "many.jsonl"]),
        served
            .scratch
            .run(&["run", "flows/hello.edn", "--many", "many.jsonl"]),
    ] {
        assert_eq!(run.out.lines().count(), 3, "{run:?}");
        assert_eq!(run.err.matches("E0429").count(), 1, "{run:?}");
    }
    let inputs = json!([{"who": "Ada", "wo": 1}, {"who": "Cy"}]);
    let many = served
        .api
        .post("/api/v1/runs", &json!({"flow": "hello", "inputs": inputs}))
        .json();
    assert_eq!(many["runs"][0]["warnings"][0]["code"], "E0429", "{many}");
    assert_eq!(many["runs"][1]["warnings"], json!(null), "{many}");
    let waited = served.api.post(
        "/api/v1/flows/hello/runs",
        &json!({"input": {"who": "Ada", "wo": 1}, "wait": "60s"}),
    );
    assert_eq!(waited.json()["warnings"][0]["severity"], "warning");
}

#[test]
fn an_edited_flow_is_that_of_the_server() {
    let served = Served::start();
    let run = served.run("hello", json!({"who": "Ada"}));
    let fork = ["runs", "fork", &run, "--at", "greet", "--flow"];
    let same = served.there(&[&fork[..], &["flows/hello.edn"]].concat());
    assert_eq!(same.code, Some(0), "{same:?}");
    served
        .scratch
        .write("edited.edn", HELLO.replace("Hello, ", "Bye, "));
    let other = served.there(&[&fork[..], &["edited.edn"]].concat());
    assert!(other.err.contains("error[E1023]"), "{other:?}");
    let line = other.err.lines().next().unwrap_or_default();
    let digits = line.split([' ', ':']).map(|word| {
        let is_hash = word.len() >= 12 && word.bytes().all(|it| it.is_ascii_hexdigit());
        is_hash.then_some(word.len())
    });
    assert_eq!(digits.flatten().collect::<Vec<_>>(), [12, 12], "{line}");
    let gone = served.there(&[&fork[..], &["gone.edn"]].concat());
    assert!(gone.err.contains("error[E0905]"), "{gone:?}");
    let wait = served.run("ask", json!({}));
    let resume = ["runs", "resume", &wait, "--flow", "edited.edn"];
    assert!(served.there(&resume).err.contains("error[E1023]"));
}

#[test]
fn hints_name_what_their_reader_can_do() {
    let served = Served::start();
    let missing = served.api.get("/api/v1/waits/none").json();
    assert_eq!(missing["hint"], "`GET /api/v1/waits` lists the open waits");
    let lacking = served
        .api
        .post("/api/v1/flows/hello/runs", &json!({"input": {}}))
        .json();
    assert_eq!(
        lacking["hint"],
        "give them, as in `{\"input\": {\"who\": ...}}`"
    );
    let here = served.scratch.run(&["run", "flows/hello.edn"]);
    let there = served.there(&["run", "hello"]);
    for ran in [here, there] {
        assert!(
            ran.err
                .contains("hint: give them, as in `--input '{\"who\": ...}'`"),
            "{ran:?}"
        );
    }
    let there = served.there(&["runs", "show", "none"]);
    assert!(
        there
            .err
            .contains("hint: `flowstone runs list` shows the runs"),
        "{there:?}"
    );
}

#[test]
fn flows_are_shown_with_the_same_text() {
    let served = Served::start();
    served.run("hello", json!({"who": "Ada"}));
    served.await_schedule();
    for args in [
        &["flows", "list"][..],
        &["flows", "list", "--json"],
        &["flows", "show", "hello"],
        &["flows", "show", "hello", "--json"],
        &["flows", "versions", "hello"],
        &["flows", "versions", "hello", "--json"],
        &["schedules", "list"],
        &["search", "Hello"],
        &["search", "greeter", "--targets", "flows,runs"],
        &["search", "nothing-like-this"],
        &["resources", "search", "hello"],
    ] {
        served.same(args);
    }
    let list = served.there(&["flows", "list"]).out;
    let row = list.lines().find(|line| line.starts_with("hello"));
    let row = row.expect("the flow is listed");
    for part in [
        "Greeter",
        "who",
        "http:greet",
        "mcp-tool:greet_person",
        "daily",
    ] {
        assert!(row.contains(part), "{part} {row}");
    }
    let shown = served.there(&["flows", "show", "hello"]).out;
    for part in [
        "GET /api/flows/hello/interfaces/live/greet /http/greet/{who}",
        "0 6 * * *",
    ] {
        assert!(shown.contains(part), "{part} {shown}");
    }
    // How callers prove who they are is not shown.
    assert!(
        !shown.contains("bearer") && !shown.contains(":hook"),
        "{shown}"
    );
    let listed = served.there(&["flows", "list", "--json"]).json();
    let answer = served.api.get("/api/v1/flows").json();
    assert_eq!(listed["flows"], answer["flows"]);
    let none = served.there(&["flows", "show", "none"]);
    assert!(none.err.contains("E1014"), "{none:?}");
    assert!(
        served
            .scratch
            .run(&["flows", "show", "helo"])
            .err
            .contains("did you mean `hello`?")
    );
}

#[test]
fn waits_jobs_files_and_connections_are_shown_with_the_same_text() {
    let served = Served::start();
    let run = served.run("work", json!({}));
    served.run("ask", json!({}));
    served.scratch.write("may.txt", "a,b");
    let stored = served.there(&["resources", "upload", "may.txt", "--folder", "notes"]);
    let uri = stored.out.trim_end();
    let jobs = served.there(&["jobs", "list", "--json"]).json();
    let job = jobs["jobs"][0]["id"].as_str().expect("a job");
    for args in [
        &["waits", "list"][..],
        &["waits", "list", "--all"],
        &["jobs", "list"],
        &["jobs", "list", "--after", job],
        &["jobs", "show", job],
        &["connections", "list"],
        &["connections", "list", "--json"],
        &["connections", "test"],
        &["resources", "list"],
        &["resources", "list", "--all", "--sort", "name"],
        &["resources", "get", uri],
        &["resources", "workflow", "list", &run],
        &["tokens", "list"],
    ] {
        served.same(args);
    }
    assert!(
        served
            .there(&["jobs", "show", job])
            .out
            .contains("payload: {:n :one}")
    );
}

#[test]
fn the_journal_is_followed_until_the_run_ends() {
    let served = Served::start();
    let run = served.run("ask", json!({}));
    let mut follow =
        served
            .scratch
            .command(&["--server", &served.base, "runs", "events", &run, "--follow"]);
    let follow = follow
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .expect("the program starts");
    let waits = served.there(&["waits", "list", "--json"]).json();
    let wait = waits["waits"][0]["id"].as_str().expect("a wait");
    assert_eq!(served.there(&["waits", "approve", wait]).code, Some(0));
    let ended = follow.wait_with_output().expect("the command ends");
    assert_eq!(ended.status.code(), Some(0), "{ended:?}");
    let here = served.scratch.run(&["runs", "events", &run, "--follow"]);
    assert_eq!(String::from_utf8_lossy(&ended.stdout), here.out);
    assert_eq!(String::from_utf8_lossy(&ended.stderr), here.err);
}

#[test]
fn ends_of_runs_are_told_with_the_values_of_the_flow() {
    let served = Served::start();
    let input = r#"{"who": "Ada"}"#;
    let ran = served.there(&["run", "hello", "--input", input]);
    assert_eq!(
        ran.out,
        "{:said \"Hello, Ada\", :mood :good, :set #{1 2}}\n"
    );
    let ran = served.there(&["run", "bad"]);
    assert_eq!(ran.code, Some(1));
    for part in ["error[E0701]: no way", "flows/bad.edn:2:", ":why :because"] {
        assert!(ran.err.contains(part), "{part} {ran:?}");
    }
}

#[test]
fn texts_are_checked_as_the_flows_of_a_server() {
    let served = Served::start();
    let good = served.there(&["check", "flows/hello.edn"]);
    assert_eq!(
        (good.code, &*good.err),
        (Some(0), "1 file checked, nothing found\n")
    );
    assert_eq!(served.there(&["check", "hello"]).code, Some(0));
    served
        .scratch
        .write("draft/new.edn", BAD.replace("{:n 1}", "{:n totl}"));
    let args = ["check", "draft/new.edn"];
    let (here, there) = (served.scratch.run(&args), served.there(&args));
    assert_eq!(there.code, Some(1));
    let excerpt = |text: &str| text.lines().take(5).collect::<Vec<_>>().join("\n");
    assert_eq!(excerpt(&there.err), excerpt(&here.err));
    assert!(there.err.contains("draft/new.edn:2:"), "{there:?}");
    let found = served.there(&[&args[..], &["--json"]].concat()).json();
    assert_eq!((&found["ok"], &found["files"]), (&json!(false), &json!(1)));
    assert_eq!(served.there(&["check", "none"]).code, Some(1));
}

#[test]
fn commands_that_need_the_projects_own_stores_are_refused() {
    let served = Served::start();
    for args in [
        &["backtest", "flows/hello.edn"][..],
        &["check", "flows", "--against-running"],
        &["connections", "prices"],
        &["flows", "list", "flows/hello.edn"],
        &["flows", "trusted"],
        &["gc"],
        &["runs", "gc"],
        &["runs", "import", "x.edn"],
        &["runs", "replay", "x"],
        &["runs", "spans", "x", "--send"],
        &["runs", "verify"],
        &["steps", "list"],
    ] {
        let ran = served.there(args);
        assert_eq!(ran.code, Some(1), "{args:?} {ran:?}");
        let named = args
            .iter()
            .any(|word| ran.err.contains(&format!("`{word}")));
        assert!(ran.err.contains("E1072") && named, "{args:?} {ran:?}");
    }
}

#[test]
fn values_as_edn_hide_the_same_secrets() {
    let scratch = Scratch::new();
    scratch.write(
        "flows/sign-in.edn",
        r#"{:slug :sign-in
          :invocations {:default {:inputs [{:name :password :type :password :required true}]}}
          :flow '(let [{:keys [password]} (flow/input)]
                   (flow/step :function :look {:input {:p password} :code '(fn [m] {:got (:p m)})})
                   (flow/step :job :order {:op :submit :job-type :image :payload {:p password}})
                   (flow/step :wait :go {:timeout "5m" :message (str "password " password)}))}"#,
    );
    let api = Api::serve(&scratch);
    let body = json!({"input": {"password": "correct horse battery"}, "wait": "60s"});
    let run = api.post("/api/v1/flows/sign-in/runs", &body).json();
    let run = run["id"].as_str().expect("an id");
    for path in [
        format!("runs/{run}?values=edn"),
        format!("runs/{run}?full&values=edn"),
        format!("runs/{run}?step=look&values=edn"),
        format!("runs/{run}/journal?values=edn"),
        "waits?values=edn".to_owned(),
        "jobs?values=edn".to_owned(),
    ] {
        let reply = api.get(&format!("/api/v1/{path}"));
        assert_eq!(reply.status, 200, "{path} {reply:?}");
        assert!(reply.body.contains("[secret]"), "{path} {}", reply.body);
        assert!(!reply.body.contains("horse"), "{path} {}", reply.body);
    }
    let wrong = api.get(&format!("/api/v1/runs/{run}?values=xml"));
    assert_eq!(wrong.problem(), "400 E1016");
}
