//! The feed of a run: each event is read once, numbered without gaps, even if processes or readers end.

use std::collections::BTreeMap;

use expect_test::expect;
use flowstone_engine::feed_event::FeedEvent;
use flowstone_engine::ids::RunId;
use flowstone_engine::ports::{FeedDetail, Stores, WaitFilter};
use flowstone_engine::{Engine, FeedState, Feeds, StartOptions};
use flowstone_lang::value::Value;

use super::STORE;
use super::crash;
use super::waits::edn;
use crate::bench::{Bench, block_on, outcome};

/// Steps with effects inside and outside, a log line, a question, a step that is retried, and one that fails.
const FLOW: &str = "(do
  (flow/log :info \"begin\" {:n 1})
  (flow/step :put :kept {:value 1})
  (flow/step :write :sent {:value 2 :times 1 :retry {:max-attempts 3} :title \"Sends\"})
  (flow/emit :told {:x 1})
  (flow/step :hold :door {})
  (try (flow/step :write :broken {:times 9}) (catch Exception e nil))
  (flow/step :look :last {:value (apply str (repeat 9000 \"x\"))})
  :end)";

/// Executes a run to its end, and answers all its waits.
fn finish(bench: &Bench, engine: &Engine, run: &RunId) -> String {
    loop {
        let last = outcome(engine, run);
        if !last.starts_with("waiting") {
            return last;
        }
        let waits = block_on(engine.list_waits(WaitFilter::default())).expect("waits");
        match waits.first() {
            None => bench.clock.advance(60_000),
            Some(wait) => {
                let answer = match wait.details.contains(":question") {
                    true => edn(":retry"),
                    false => edn("{:action :go}"),
                };
                block_on(engine.complete_wait(&wait.id, &answer, false)).expect("answered");
            }
        }
    }
}

fn all(stores: &Stores, run: &RunId) -> Vec<FeedEvent> {
    let page = block_on(Feeds::new(stores.clone()).run(run, 0, usize::MAX));
    page.expect("it is read").expect("the run exists").events
}

fn shown(events: &[FeedEvent]) -> String {
    let lines = events.iter().map(|event| {
        let data = serde_json::to_string(&event.data).expect("JSON");
        let data = data.replace(event.run.as_str(), "RUN");
        format!("{} {} {data}\n", event.seq, event.name)
    });
    lines.collect()
}

fn numbers(events: &[FeedEvent]) -> Vec<i64> {
    events.iter().map(|event| event.seq).collect()
}

#[test]
fn each_row_is_an_event_with_its_data() {
    let bench = Bench::over(STORE);
    let engine = bench.engine();
    let run = bench.start(&engine, FLOW);
    assert_eq!(finish(&bench, &engine, &run), ":end");
    let wait = waits_of(&engine, &run);
    let text = shown(&all(engine.stores(), &run)).replace(&wait, "WAIT");
    expect![[r#"
        1 run.created {"status":"running","startedBy":"manual"}
        2 run.started {"pass":0}
        3 log {"level":"info","message":"begin","data":{"n":1}}
        4 step.completed {"path":"kept","type":"put","pass":0,"attempt":1,"millis":0,"result":{"success":true,"key":"all","count":1,"dropped":0}}
        5 step.started {"path":"sent","type":"write","title":"Sends","attempt":1}
        6 step.retrying {"path":"sent","attempt":1,"error":{"message":"not now"},"againAt":"1970-01-01T00:16:41.038Z"}
        7 step.started {"path":"sent","type":"write","attempt":2}
        8 step.completed {"path":"sent","type":"write","pass":0,"attempt":2,"millis":0,"result":2}
        9 emit {"name":"told","data":{"x":1}}
        10 step.waiting {"path":"door","attempt":1,"for":"wait"}
        11 wait.opened {"path":"door","wait":"WAIT","key":"door","actions":[]}
        12 wait.answered {"path":"door","wait":"WAIT","action":"go"}
        13 run.resumed {"pass":0}
        14 step.completed {"path":"door","type":"hold","pass":0,"attempt":1,"millis":0,"result":{"action":"go"}}
        15 step.started {"path":"broken","type":"write","attempt":1}
        16 step.failed {"path":"broken","attempt":1,"error":{"code":"E0799","message":"not now","kind":"unavailable"}}
        17 step.completed {"path":"last","type":"look","pass":0,"attempt":1,"millis":0,"resultRef":"res://v1/ws/local/result/run/RUN/step/last/output"}
        18 run.completed {"result":"end"}
    "#]].assert_eq(&text);
}

fn waits_of(engine: &Engine, run: &RunId) -> String {
    let filter = WaitFilter {
        run: Some(run.clone()),
        all: true,
        ..WaitFilter::default()
    };
    let waits = block_on(engine.list_waits(filter)).expect("waits");
    waits.first().expect("a wait").id.clone()
}

/// Returns the events that do not depend on how often the run was interrupted.
fn lasting(events: &[FeedEvent]) -> Vec<String> {
    let lasting = events
        .iter()
        .filter(|event| !["run.orphaned", "run.resumed"].contains(&event.name));
    let named = lasting.map(|event| {
        let path = event.data.get("path").and_then(|path| path.as_str());
        format!("{} {}", event.name, path.unwrap_or_default())
    });
    named.collect()
}

#[test]
fn a_crash_at_any_commit_loses_nothing() {
    const STEPS: &str = "(do (flow/step :put :a {:value 1}) (flow/step :write :b {:value 2})
        (flow/log :info \"c\") (flow/step :hold :door {}) (flow/step :put :d {:value 3}) :end)";
    let expected = {
        let bench = Bench::over(STORE);
        let engine = bench.engine();
        let run = bench.start(&engine, STEPS);
        finish(&bench, &engine, &run);
        lasting(&all(engine.stores(), &run))
    };
    let mut doubts = 0;
    for silently in [false, true] {
        for left in 0.. {
            let bench = Bench::over(STORE);
            let engine = bench.engine_over(crash::stores(&bench, left, silently));
            let run = bench.start(&engine, STEPS);
            let first = outcome(&engine, &run);
            let seen = all(engine.stores(), &run);
            drop(engine);
            let engine = bench.engine();
            assert_eq!(finish(&bench, &engine, &run), ":end");
            let events = all(engine.stores(), &run);
            let count = i64::try_from(events.len()).expect("small");
            let place = format!("left {left} silently {silently}");
            assert_eq!(numbers(&events), (1..=count).collect::<Vec<_>>(), "{place}");
            // Events that a reader received before the crash are unchanged.
            assert_eq!(shown(&events[..seen.len()]), shown(&seen), "{place}");
            let found = lasting(&events);
            match found.iter().any(|event| event.contains("b?1")) {
                true => doubts += 1,
                false => assert_eq!(found, expected, "{place}"),
            }
            if !first.contains("the process is dead") {
                break;
            }
        }
    }
    assert!(doubts > 0, "some crash leaves an effect in doubt");
}

#[test]
fn a_reader_that_reconnects_at_each_event_has_each_once() {
    let bench = Bench::over(STORE);
    let engine = bench.engine();
    let text = "(do (doseq [n (range 65)]
                  (flow/step :write :sent {:value n :times (rem n 2) :retry {:max-attempts 3}})
                  (flow/log :info \"sent\" {:n n}))
                :end)";
    let run = bench.start(&engine, text);
    assert_eq!(finish(&bench, &engine, &run), ":end");
    let whole = all(engine.stores(), &run);
    assert!(whole.len() >= 200, "{}", whole.len());
    let feeds = engine.feeds();
    let mut found = Vec::new();
    for after in 0.. {
        let page = block_on(feeds.run(&run, after, 1)).expect("it is read");
        let page = page.expect("the run exists");
        found.extend(page.events);
        if page.state == FeedState::Ended {
            break;
        }
        assert_eq!((page.next, page.state), (after + 1, FeedState::More));
    }
    assert_eq!(found, whole);
}

#[test]
fn the_feed_reports_whether_it_has_ended() {
    let bench = Bench::over(STORE);
    let engine = bench.engine();
    let run = bench.start(&engine, "(flow/step :hold :door {})");
    let feeds = engine.feeds();
    let state = |after: i64| {
        let page = block_on(feeds.run(&run, after, 100)).expect("it is read");
        let page = page.expect("the run exists");
        (page.events.len(), page.state)
    };
    assert_eq!(state(0), (1, FeedState::Open));
    assert!(outcome(&engine, &run).starts_with("waiting"));
    assert_eq!(state(100), (0, FeedState::Open), "beyond the end");
    assert_eq!(finish(&bench, &engine, &run), "{:action :go}");
    let count = all(engine.stores(), &run).len() as i64;
    assert_eq!(state(count - 1), (1, FeedState::Ended));
    assert_eq!(state(count), (0, FeedState::Ended));
    block_on(engine.stores().upkeep.prune(&run, bench.clock_ms())).expect("removed");
    assert_eq!(state(0), (0, FeedState::Gone));
    let missing = block_on(feeds.run(&RunId::from_text("none"), 0, 1)).expect("it is read");
    assert_eq!(missing, None);
}

#[test]
fn numbers_continue_over_all_passes() {
    let bench = Bench::over(STORE);
    let engine = bench.engine();
    let text = "{:slug :loop :flow '(let [n (:n (flow/input) 0)]
          (flow/step :put :kept {:value n})
          (flow/step :sleep :pause {:millis 10})
          (flow/step :write :sent {:value n})
          (if (< n 3) (flow/continue-as-new {:n (inc n)}) n))}";
    let flow = bench.flow(text);
    let options = StartOptions::with_input(Value::Nil);
    let run = block_on(engine.start(&flow, options)).expect("it starts");
    // This reader is fast enough to receive nearly everything; it reads while the run sleeps.
    let mut reader = engine.feeds().follow(&run, 0);
    let mut seen = Vec::new();
    loop {
        let page = block_on(reader.page(3))
            .expect("it is read")
            .expect("a run");
        seen.extend(page.events);
        match page.state {
            FeedState::More => {}
            FeedState::Ended => break,
            _ => {
                bench.clock.advance(20);
                outcome(&engine, &run);
            }
        }
    }
    // The rows of a pass that ended between two reads were removed; a `run.truncated` event takes their place.
    let passes: Vec<String> = seen
        .iter()
        .filter(|event| event.name.starts_with("run."))
        .map(|event| format!("{} {}", event.seq, event.name))
        .collect();
    expect!["1 run.created, 19 run.truncated, 20 run.continued, 26 run.completed"]
        .assert_eq(&passes.join(", "));
    let is_cut = |event: &&FeedEvent| event.name == "run.truncated";
    for event in seen.iter().filter(is_cut) {
        assert_eq!(event.data["firstSeq"], event.seq + 1);
    }
    for pair in seen.windows(2) {
        let follows = pair[1].seq == pair[0].seq + 1 || pair[1].name == "run.truncated";
        assert!(
            follows,
            "{} then {} {}",
            pair[0].seq, pair[1].seq, pair[1].name
        );
    }
    // A later reader gets the last pass, with the same numbers.
    let late = all(engine.stores(), &run);
    assert_eq!(late[0].name, "run.truncated");
    assert_eq!(late[1].name, "run.continued");
    assert_eq!(late[1..], seen[seen.len() - late.len() + 1..]);
}

#[test]
fn the_project_has_the_events_of_all_runs_in_the_order_of_their_commits() {
    let bench = Bench::over(STORE);
    let engine = bench.engine();
    let runs: Vec<RunId> = (0..4).map(|_| bench.start(&engine, FLOW)).collect();
    for _ in 0..6 {
        for run in &runs {
            outcome(&engine, run);
            let waits = block_on(engine.list_waits(WaitFilter::default())).expect("waits");
            if let Some(wait) = waits.first() {
                let go = edn("{:action :go}");
                block_on(engine.complete_wait(&wait.id, &go, false)).expect("answered");
            }
        }
        bench.clock.advance(60_000);
    }
    for detail in [FeedDetail::Events, FeedDetail::Steps] {
        let whole = project(engine.stores(), usize::MAX, detail);
        for limit in [1, 2, 7] {
            let again = project(engine.stores(), limit, detail);
            assert_eq!(shown(&again), shown(&whole), "{limit} {detail:?}");
            assert_eq!(again, whole);
        }
        let positions: Vec<i64> = whole.iter().filter_map(|event| event.position).collect();
        assert!(positions.windows(2).all(|pair| pair[0] < pair[1]));
        assert_eq!(positions.len(), whole.len());
        let mut by_run: BTreeMap<&RunId, Vec<i64>> = BTreeMap::new();
        for event in &whole {
            by_run.entry(&event.run).or_default().push(event.seq);
        }
        assert_eq!(by_run.len(), runs.len());
        for (run, numbers) in by_run {
            let events = all(engine.stores(), run);
            let is_meant = |event: &&FeedEvent| {
                let of_life = event.name.starts_with("run.") || event.name.starts_with("wait.");
                detail == FeedDetail::Steps || of_life
            };
            let expected: Vec<i64> = events.iter().filter(is_meant).map(|it| it.seq).collect();
            assert_eq!(numbers, expected, "{detail:?}");
        }
        let last = block_on(engine.feeds().last_position()).expect("it is read");
        assert_eq!(positions.last(), Some(&last));
    }
    // Each event has the same content in both feeds.
    let steps = project(engine.stores(), usize::MAX, FeedDetail::Steps);
    let of_first: Vec<FeedEvent> = steps
        .into_iter()
        .filter(|event| event.run == runs[0])
        .map(|event| FeedEvent {
            position: None,
            ..event
        })
        .collect();
    assert_eq!(of_first, all(engine.stores(), &runs[0]));
}

/// Reads the feed of the project page by page.
fn project(stores: &Stores, limit: usize, detail: FeedDetail) -> Vec<FeedEvent> {
    let mut found = Vec::new();
    let mut after = 0;
    loop {
        let page = block_on(Feeds::new(stores.clone()).project(after, limit, detail));
        let page = page.expect("it is read");
        if page.events.is_empty() {
            return found;
        }
        found.extend(page.events);
        after = page.next;
    }
}

#[test]
fn a_reader_is_woken_by_what_another_process_commits() {
    let bench = Bench::over(STORE);
    let (engine, other) = (bench.engine(), bench.stores());
    let run = bench.start(&engine, "(flow/step :write :sent {:value 1})");
    let feeds = Feeds::new(other);
    block_on(async {
        let (mut news, mut of_project) = (feeds.watch(&run), feeds.watch_project());
        news.mark_seen();
        of_project.mark_seen();
        let before = feeds.run(&run, 0, 100).await.expect("it is read");
        let before = before.expect("a run").next;
        let reading = async {
            let mut reader = feeds.follow(&run, before);
            loop {
                news.changed().await;
                news.mark_seen();
                let page = reader.page(100).await.expect("it is read").expect("a run");
                if page.state == FeedState::Ended {
                    return page.next;
                }
            }
        };
        let executing = engine.execute(
            &run,
            std::rc::Rc::new(flowstone_engine::observer::NoObserver),
            flowstone_engine::ExecuteOptions::default(),
        );
        let bounded = std::time::Duration::from_secs(20);
        let (last, done) = tokio::join!(tokio::time::timeout(bounded, reading), executing);
        done.expect("it is executed");
        assert_eq!(last.expect("it is woken"), 5);
        tokio::time::timeout(bounded, of_project.changed())
            .await
            .expect("it is woken, too");
    });
}

#[test]
fn readers_may_be_on_any_thread() {
    fn is_send<T: Send>(_: T) {}
    let bench = Bench::over(STORE);
    let feeds = Feeds::new(bench.stores());
    let run = RunId::from_text("none");
    is_send(feeds.run(&run, 0, 1));
    is_send(feeds.project(0, 1, FeedDetail::Steps));
    is_send(feeds.live(&run));
    let mut reader = feeds.follow(&run, 0);
    is_send(reader.page(1));
}
