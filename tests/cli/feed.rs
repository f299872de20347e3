//! `flowstone runs feed`: each event once, whatever happens to the process that executes the runs.

use std::collections::BTreeMap;
use std::process::{Child, Stdio};
use std::time::Duration;

use flowstone_engine::ids::RunId;
use flowstone_engine::{FeedState, Feeds, RunFeed};
use serde_json::Value;

use crate::program::Scratch;

/// How many runs there are when their worker is killed.
const RUNS: usize = 50;
/// How long the test waits for the runs, on a machine that has much to do.
const LONGEST: Duration = Duration::from_secs(120);

const FLOW: &str = "{:slug :one
 :flow '(let [a (flow/step :kv :a {:operation :increment :key \"started\"})]
          (flow/log :info \"begin\" {:a a})
          (flow/step :sleep :pause {:duration \"200ms\"})
          (doseq [n (range 5)] (flow/step :kv :b {:operation :increment :key \"done\"}))
          :end)}";

/// A worker, which is killed when this is dropped.
struct Worker(Child);

impl Worker {
    fn start(scratch: &Scratch) -> Worker {
        let mut command = scratch.command(&["serve"]);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        Worker(command.spawn().expect("the program starts"))
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // On Unix this is `kill -9`. A worker that has ended by itself is as good.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn readers_of_50_runs_get_each_event_once_although_the_worker_is_killed() {
    let scratch = Scratch::new();
    scratch.write("one.edn", FLOW);
    for _ in 0..RUNS {
        scratch.run(&["run", "one.edn", "--detach", "--quiet"]).ok();
    }
    let home = scratch.path().join(".flowstone");
    let stores = flowstone_stores::open(&home, &flowstone_stores::Options::default());
    let feeds = Feeds::new(stores.expect("it opens"));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .expect("a runtime");
    let mut first = Some(Worker::start(&scratch));
    let mut second = None;
    let reading = async {
        let mut readers = Readers::of(&scratch, &feeds);
        let mut news = feeds.watch_project();
        while !readers.have_ended() {
            news.mark_seen();
            readers.read().await;
            // In the middle: some runs are over or paused, and others have not begun.
            if second.is_none() && readers.count() >= 4 * RUNS {
                drop(first.take());
                second = Some(Worker::start(&scratch));
            }
            // The clock of the other process makes runs due, so silence is not the end.
            let _ = tokio::time::timeout(Duration::from_millis(200), news.changed()).await;
        }
        readers.seen
    };
    let found = runtime.block_on(async { tokio::time::timeout(LONGEST, reading).await });
    assert!(second.is_some(), "no worker was killed in the middle");
    let found = found.expect("the runs end");
    assert_eq!(found.len(), RUNS);
    for (run, events) in found {
        let numbers: Vec<i64> = events.iter().map(|(seq, _)| *seq).collect();
        let count = i64::try_from(numbers.len()).expect("small");
        assert_eq!(numbers, (1..=count).collect::<Vec<_>>(), "{run}");
        let names = events.iter().map(|(_, name)| *name);
        let lasting: Vec<&str> = names
            .filter(|name| !["run.orphaned", "run.resumed"].contains(name))
            .collect();
        assert_eq!(lasting.len(), 12, "{run}: {lasting:?}");
        assert_eq!(lasting.last(), Some(&"run.completed"), "{run}");
    }
}

/// A reader of each run, and the numbers and names that it got.
struct Readers {
    readers: Vec<(RunId, RunFeed, bool)>,
    seen: BTreeMap<RunId, Vec<(i64, &'static str)>>,
}

impl Readers {
    fn of(scratch: &Scratch, feeds: &Feeds) -> Readers {
        let listed = scratch.json_of(&["runs", "list", "--limit", "100"]);
        let runs = listed["runs"].as_array().expect("runs").iter();
        let ids = runs.map(|run| RunId::from_text(run["id"].as_str().expect("an id")));
        Readers {
            readers: ids
                .map(|run| (run.clone(), feeds.follow(&run, 0), false))
                .collect(),
            seen: BTreeMap::new(),
        }
    }

    async fn read(&mut self) {
        for (run, reader, has_ended) in &mut self.readers {
            // Small pages, so that most reads end in the middle of something.
            let page = reader.page(3).await.expect("it is read").expect("a run");
            let seen = self.seen.entry(run.clone()).or_default();
            seen.extend(page.events.iter().map(|event| (event.seq, event.name)));
            *has_ended = page.state == FeedState::Ended;
        }
    }

    fn have_ended(&self) -> bool {
        self.readers.iter().all(|(_, _, has_ended)| *has_ended)
    }

    fn count(&self) -> usize {
        self.seen.values().map(Vec::len).sum()
    }
}

#[test]
fn the_feed_is_printed_without_secrets_and_from_a_number_on() {
    let scratch = Scratch::new();
    scratch.write(
        "sign.edn",
        "{:slug :sign
          :invocations {:default {:inputs [{:name :pin :type :password :required true}]}}
          :flow '(do (flow/step :kv :a {:operation :set :key \"k\" :value 1}) (count (:pin (flow/input))))}",
    );
    let input = ["--input", "{:pin \"correct-horse-battery\"}"];
    let ran = scratch.json_of(&[&["run", "sign.edn"][..], &input].concat());
    let run = ran["run"].as_str().expect("an id");
    let text = scratch.run(&["runs", "feed", run, "--json"]).ok();
    assert!(!text.contains("correct-horse"), "{text}");
    let events: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    assert_eq!(events[0]["input"]["pin"], "[secret]");
    let names: Vec<&str> = events
        .iter()
        .filter_map(|it| it["event"].as_str())
        .collect();
    let all = [
        "run.created",
        "run.started",
        "step.completed",
        "run.completed",
    ];
    assert_eq!(names, all);
    assert_eq!(events[3]["result"], 21);
    let since = ["runs", "feed", run, "--since", "3", "--follow", "--json"];
    let rest = scratch.run(&since).ok();
    assert_eq!(
        rest.lines().collect::<Vec<_>>(),
        [text.lines().last().expect("a line")]
    );
}
