//! What commands print for people is the same over a server, byte for byte.

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
        &["runs", "export", "x", "x.edn"],
        &["runs", "feed", "x"],
        &["runs", "spans", "x"],
        &["runs", "verify"],
        &["runs", "watch"],
        &["steps", "list"],
        &["waits", "list", "--signals"],
    ] {
        let ran = served.there(args);
        assert_eq!(ran.code, Some(1), "{args:?} {ran:?}");
        assert!(ran.err.contains("E1072"), "{args:?} {ran:?}");
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
