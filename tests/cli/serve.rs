//! `flowstone serve`: runs that are left to it, killed in the middle, ended in good order; schedules.

use std::collections::HashMap;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::json;

use crate::api::post_to;
use crate::program::{Ran, Scratch};
use crate::server::{Answer, Server};

#[test]
fn what_is_left_to_it_is_executed() {
    let scratch = Scratch::new();
    scratch.write("sum.edn", "(reduce + (:numbers (flow/input)))");
    let input = "{:numbers [1 2 3]}";
    let left = scratch
        .run(&["run", "sum.edn", "--input", input, "--detach"])
        .ok();
    let id = left.trim();
    let served = scratch.run(&["serve", "--until-idle", "--json"]).ok();
    let lines: Vec<serde_json::Value> = served
        .lines()
        .map(|line| serde_json::from_str(line).expect("a line of JSON"))
        .collect();
    let run = lines
        .iter()
        .find(|line| line["event"] == "run")
        .expect("it was driven");
    assert_eq!(
        (run["run"].as_str(), &run["status"]),
        (Some(id), &"completed".into())
    );
    assert_eq!(run["result"], 6);
    let shown = scratch.run(&["runs", "show", id, "--json"]).json();
    assert_eq!(shown["status"], "completed");
}

#[test]
fn a_run_that_waits_goes_on_when_it_is_answered() {
    let scratch = Scratch::new();
    scratch.write(
        "ask.edn",
        "(:n (flow/step :wait :number {:key \"number\"}))",
    );
    assert_eq!(scratch.run(&["run", "ask.edn", "--quiet"]).code, Some(3));
    let nothing = scratch.run(&["serve", "--until-idle"]);
    assert!(nothing.err.contains("executions: 0"), "{nothing:?}");
    let answer = [
        "waits",
        "complete",
        "number",
        "--value",
        "{:n 7}",
        "--no-resume",
    ];
    scratch.run(&answer).ok();
    let served = scratch.run(&["serve", "--until-idle"]);
    assert!(served.err.contains("ask completed"), "{served:?}");
}

/// How many steps the run has, and at which calls its process is killed.
const STEPS: usize = 20;
const KILLED_AT: [usize; 3] = [4, 11, 17];

#[test]
fn a_worker_that_is_killed_is_followed_by_another() {
    let scratch = Scratch::with_local_servers();
    let target = Arc::new(AtomicU32::new(0));
    let calls = Arc::new(Mutex::new(Vec::new()));
    let server = server(target.clone(), calls.clone());
    let url = server.url("/count");
    scratch.write(
        "count.edn",
        format!(
            "(reduce + (for [i (range {STEPS})]
               (do (flow/step :http :tell {{:url \"{url}\" :method :post :json {{:i i}} :on-doubt :retry}})
                   (:value (flow/step :kv :count {{:operation :increment :key \"done\"}})))))"
        ),
    );
    scratch.run(&["run", "count.edn", "--detach"]).ok();
    let mut kills = 0;
    let last = loop {
        let child = scratch
            .command(&["serve", "--until-idle", "--threads", "1"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it starts");
        target.store(child.id(), Ordering::SeqCst);
        let ran = Ran::of(child);
        match ran.code {
            None => kills += 1,
            Some(_) => break ran,
        }
        assert!(kills <= KILLED_AT.len(), "it does not come to an end");
    };
    assert_eq!((last.code, kills), (Some(0), KILLED_AT.len()), "{last:?}");
    let runs = scratch.run(&["runs", "list", "--json"]).json();
    let id = runs["runs"][0]["id"].as_str().expect("an id");
    let run = scratch.run(&["runs", "show", id, "--json"]).json();
    // The sum of 1 to 20: each count was made once.
    assert_eq!(
        (&run["status"], &run["result"]),
        (&"completed".into(), &210.into())
    );
    let mut made: HashMap<String, usize> = HashMap::new();
    for call in calls.lock().expect("no panic").iter() {
        *made.entry(String::clone(call)).or_default() += 1;
    }
    assert_eq!(made.len(), STEPS);
    let again: usize = made.values().map(|count| count - 1).sum();
    assert!(again <= kills, "{again} calls were made again");
}

/// Kills the calling process at some of the calls, half of the times before the answer.
fn server(target: Arc<AtomicU32>, calls: Arc<Mutex<Vec<String>>>) -> Server {
    Server::start(move |request, _| {
        let mut calls = calls.lock().expect("no panic");
        calls.push(request.body.to_string());
        if KILLED_AT.contains(&calls.len()) {
            signal(target.load(Ordering::SeqCst), "-9");
        }
        Answer::Json("{\"ok\": true}".to_owned())
    })
}

fn signal(process: u32, signal: &str) {
    let status = Command::new("kill")
        .args([signal, &process.to_string()])
        .status();
    assert!(status.is_ok_and(|status| status.success()), "kill {signal}");
}

#[test]
fn a_signal_ends_it_in_good_order() {
    let scratch = Scratch::new();
    let mut child = scratch
        .command(&["serve", "--threads", "1"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut lines = BufReader::new(child.stderr.take().expect("a pipe")).lines();
    let place = lines.next().expect("a line").expect("text");
    assert!(place.starts_with("serving "), "{place}");
    assert!(place.contains("no schedules are read"), "{place}");
    let ready = lines.next().expect("a line").expect("text");
    assert_eq!(ready, "ready, with 1 threads");
    signal(child.id(), "-TERM");
    assert_eq!(child.wait().expect("it ends").code(), Some(0));
}

#[test]
fn a_server_says_what_it_serves() {
    let scratch = Scratch::new();
    scratch.write("flows/plain.edn", "{:slug :plain :flow '1}");
    scratch.write(
        "flows/orders.edn",
        "{:slug :orders :invocations {:default {:inputs [{:name :order :type :text}]}}
          :interfaces {:http [{:id :place :invocation :default :path \"/orders/{order}\"}]
                       :webhook [{:id :paid :invocation :default :event-name \"orders.paid\"
                                  :auth {:type :github :secret-ref :hook}}]}
          :schedules [{:id :daily :cron \"0 6 * * *\"}]
          :flow '(:order (flow/input))}",
    );
    let mut child = scratch
        .command(&["serve", "--listen", "127.0.0.1:0"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut lines = BufReader::new(child.stderr.take().expect("a pipe")).lines();
    let mut line = || lines.next().expect("a line").expect("text");
    assert!(line().starts_with("serving "));
    let listening = line();
    let base = listening.split([' ', ';']).nth(2).unwrap_or_default();
    assert!(base.starts_with("http://127.0.0.1:"), "{listening}");
    assert_eq!(line(), "serving 2 flows, with 1 schedule and 2 interfaces");
    assert_eq!(
        line(),
        format!("  POST {base}/http/orders/{{order}}  orders :place")
    );
    assert_eq!(
        line(),
        format!("  POST {base}/local/events/orders.paid  orders :paid")
    );
    assert!(line().starts_with("ready, with"));
    assert_eq!(line(), "1 schedule, of 1 flow");
    signal(child.id(), "-TERM");
    assert_eq!(child.wait().expect("it ends").code(), Some(0));
}

#[test]
fn a_cancelled_run_whose_cleanup_sleeps_is_executed_a_few_times() {
    let scratch = Scratch::new();
    scratch.write(
        "flows/oc.edn",
        "{:slug :oc :flow '(do (flow/on-cancel (fn [] (flow/step :sleep :later {:duration \"3s\"})))
                               (flow/step :sleep :p {:duration \"60s\"}))}",
    );
    let mut child = scratch
        .command(&["serve", "--listen", "127.0.0.1:0"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut lines = BufReader::new(child.stderr.take().expect("a pipe")).lines();
    let address = loop {
        let line = lines.next().expect("a line").expect("text");
        if let Some((_, rest)) = line.split_once("http://") {
            break rest
                .split([' ', ';', '/'])
                .next()
                .expect("an address")
                .to_owned();
        }
    };
    let token = std::fs::read_to_string(scratch.path().join(".flowstone/owner.token"));
    let token = token.expect("the owner's token");
    let post = |path: &str| post_to(&address, token.trim(), path, &json!({"wait": "2s"}));
    let run = post("/api/v1/flows/oc/runs").json();
    let id = run["id"].as_str().expect("an id");
    let cancelled = post_to(
        &address,
        token.trim(),
        &format!("/api/v1/runs/{id}/cancel"),
        &json!({}),
    );
    assert!(cancelled.status < 300, "{cancelled:?}");
    scratch.run(&["runs", "watch", id]);
    let shown = scratch.run(&["runs", "show", id, "--json"]).json();
    assert_eq!(shown["status"], "cancelled", "{cancelled:?}");
    signal(child.id(), "-TERM");
    let rest: Vec<String> = lines.map(|line| line.expect("text")).collect();
    child.wait().expect("it ends");
    let waits = rest.iter().filter(|line| line.contains("waiting")).count();
    assert!((1..=4).contains(&waits), "{rest:#?}");
    assert!(!rest.iter().any(|line| line.contains("E0500")), "{rest:#?}");
    assert!(
        rest.iter().any(|line| line.contains("cancelled")),
        "{rest:#?}"
    );
}

#[test]
fn schedules_are_listed_and_started_out_of_turn() {
    let scratch = Scratch::new();
    scratch.write(
        "flows/report.edn",
        "{:slug :report :name \"Report\" :concurrency {:type :singleton :on-new-version :coexist}
          :invocations {:default {:inputs [{:name :city :type :text :required true}]}}
          :schedules [{:id :daily :cron \"0 6 * * *\" :timezone \"Europe/Oslo\" :input {:city \"Oslo\"}}]
          :flow '(:city (flow/input))}",
    );
    scratch
        .run(&["serve", "--until-idle", "--flows", "flows"])
        .ok();
    let list = scratch.run(&["schedules", "list", "--json"]).json();
    let schedule = &list["schedules"][0];
    assert_eq!(schedule["times"], "0 6 * * * Europe/Oslo");
    assert!(schedule["next"].is_string(), "{schedule}");
    assert_eq!(
        scratch
            .run(&["schedules", "run", "report", "daily"])
            .ok()
            .trim(),
        "Oslo"
    );
    let wrong = scratch.run(&["schedules", "run", "report", "dayly"]);
    assert!(wrong.err.contains("E0550"), "{wrong:?}");
}

#[test]
fn a_wrong_schedule_is_found_before_it_runs() {
    let scratch = Scratch::new();
    let cases = [
        (":cron \"0 25 * * *\"", "E0461"),
        (":cron \"0 6 * * *\" :timezone \"Oslo\"", "E0462"),
        (":every \"soon\"", "E0463"),
        (":cron \"0 6 * * *\" :every \"1h\"", "E0460"),
        (":cron \"0 6 * * *\" :catchup :all", "E0460"),
        (":cron \"@daily\"", "E0464"),
    ];
    for (schedule, code) in cases {
        let text = format!(
            "{{:slug :it :name \"It\" :concurrency {{:type :singleton :on-new-version :coexist}}
               :invocations {{:default {{:inputs [{{:name :city :type :text :required true}}]}}}}
               :schedules [{{:id :job {schedule}}}] :flow '(flow/input)}}"
        );
        scratch.write("it.edn", text);
        let checked = scratch.run(&["check", "it.edn"]);
        assert!(
            checked.code == Some(1) && checked.err.contains(code),
            "{schedule}: {checked:?}"
        );
    }
}
