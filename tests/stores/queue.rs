//! Starts of runs: slots, limits, rates, priorities, versions. The store decides, for every process.

use std::future::Future;
use std::rc::Rc;

use expect_test::expect;
use flowstone_engine::ids::RunId;
use flowstone_engine::observer::NoObserver;
use flowstone_engine::outcome::RunOutcome;
use flowstone_engine::ports::{Claim, ClaimBy, QueueReason, RunFilter, RunStatus, StartDecision};
use flowstone_engine::{
    CancelOutcome, Engine, EngineError, ExecuteOptions, ForkOptions, StartOptions, StartedRun,
    Stay, codec,
};

use super::STORE;
use crate::bench::{Bench, block_on, outcome_text};
use crate::crash;

/// Returns a flow whose runs wait for an answer. `version` only changes its text.
fn flow(head: &str, version: u32) -> String {
    format!("{{:slug :work {head} :flow '(do {version} (:action (flow/step :hold :door {{}})))}}")
}

/// Returns a flow whose runs end at once.
fn quick(head: &str) -> String {
    format!("{{:slug :work {head} :flow '(:n (flow/input))}}")
}

fn options(input: &str) -> StartOptions {
    StartOptions {
        is_left: true,
        ..StartOptions::with_input(codec::decode(input).expect("EDN"))
    }
}

fn submit(
    bench: &Bench,
    engine: &Engine,
    text: &str,
    options: StartOptions,
) -> Result<StartedRun, EngineError> {
    block_on(engine.submit(&bench.flow(text), options))
}

/// Starts a run of a flow, and executes it until it ends or waits.
fn start(bench: &Bench, engine: &Engine, text: &str, input: &str) -> StartedRun {
    let started = submit(bench, engine, text, options(input)).expect("it starts");
    execute(engine, &started.run);
    started
}

/// Executes a run without waiting, and returns its outcome.
fn execute(engine: &Engine, run: &RunId) -> String {
    let options = ExecuteOptions {
        stay: Stay::No,
        ..ExecuteOptions::default()
    };
    outcome_text(&block_on(engine.execute(run, Rc::new(NoObserver), options)))
}

fn status(engine: &Engine, run: &RunId) -> &'static str {
    let row = block_on(engine.find_run(run.as_str())).expect("a run");
    row.status.name()
}

/// Returns the runs of a bench in the order of their starts, with their statuses.
fn statuses(engine: &Engine) -> String {
    let mut runs = block_on(engine.list_runs(RunFilter::default())).expect("runs");
    runs.reverse();
    let words: Vec<String> = runs
        .iter()
        .map(|run| match &run.cancel_requested {
            Some(_) if !run.status.is_final() => format!("{} (to be cancelled)", run.status.name()),
            _ => run.status.name().to_owned(),
        })
        .collect();
    words.join(", ")
}

/// Answers the waiting run, and executes it to its end.
fn end(engine: &Engine, run: &RunId) {
    block_on(engine.cancel(run, "enough", Rc::new(NoObserver))).expect("it ends");
}

const SINGLETON: &str = ":concurrency {:type :singleton}";
const KEYED: &str = ":concurrency {:type :keyed :key-field :user}";

#[test]
fn a_singleton_flow_has_one_live_run() {
    let bench = Bench::over(STORE);
    let engine = bench.engine();
    let text = flow(SINGLETON, 1);
    let first = start(&bench, &engine, &text, "{}");
    let second = start(&bench, &engine, &text, "{}");
    let third = start(&bench, &engine, &text, "{}");
    let decisions = [&first, &second, &third].map(|run| run.decision);
    assert_eq!(
        decisions,
        [
            StartDecision::Started,
            StartDecision::Queued,
            StartDecision::Queued
        ]
    );
    assert_eq!(statuses(&engine), "waiting, queued, queued");
    let place = block_on(engine.queue_place(&third.run))
        .expect("a place")
        .expect("queued");
    assert_eq!((place.position, place.waits_for), (2, QueueReason::Slot));
    assert_eq!(place.behind, std::slice::from_ref(&first.run));
    // No polling is needed: the end of the first run starts the second one.
    end(&engine, &first.run);
    assert_eq!(statuses(&engine), "cancelled, running, queued");
    let ready = block_on(engine.resumable()).expect("runs");
    assert!(ready.iter().all(|run| run.id != third.run));
    assert_eq!(
        execute(&engine, &second.run),
        "waiting: `door` waits for an answer"
    );
    assert_eq!(execute(&engine, &third.run), "queued at 1");
}

#[test]
fn a_keyed_flow_has_one_live_run_per_key() {
    let bench = Bench::over(STORE);
    let engine = bench.engine();
    let text = flow(KEYED, 1);
    let ada = start(&bench, &engine, &text, "{:user \"ada\"}");
    let bo = start(&bench, &engine, &text, "{:user \"bo\"}");
    let again = start(&bench, &engine, &text, "{:user \"ada\" :more 1}");
    assert_eq!(statuses(&engine), "waiting, waiting, queued");
    assert_eq!(again.key.as_deref(), Some("\"ada\""));
    end(&engine, &bo.run);
    assert_eq!(status(&engine, &again.run), "queued");
    end(&engine, &ada.run);
    assert_eq!(status(&engine, &again.run), "running");
}

#[test]
fn the_key_is_read_from_the_input() {
    let bench = Bench::over(STORE);
    let engine = bench.engine();
    let key = |field: &str, input: &str| {
        let head = format!(":concurrency {{:type :keyed :key-field {field}}}");
        match submit(&bench, &engine, &quick(&head), options(input)) {
            Ok(started) => started.key.unwrap_or_default(),
            Err(error) => format!("{} {error}", error.code()),
        }
    };
    expect!["7"].assert_eq(&key(":id", "{:id 7}"));
    expect!["8"].assert_eq(&key("\"id\"", "{\"id\" 8}"));
    expect![[r#""e1""#]].assert_eq(&key("[:event :id]", "{:event {:id \"e1\"}}"));
    expect![[r#""e2""#]].assert_eq(&key("[:event :id]", "{:event {\"id\" \"e2\"}}"));
    expect!["{:a 1 :b 2}"].assert_eq(&key("[:events 1]", "{:events [0 {:b 2 :a 1}]}"));
    expect!["E0556 the input has no `:id`, which `:concurrency :key-field` of `work` names"]
        .assert_eq(&key(":id", "{:other 1}"));
    expect![
        "E0556 the input has no `[:event :id]`, which `:concurrency :key-field` of `work` names"
    ]
    .assert_eq(&key("[:event :id]", "{:event {:id nil}}"));
}

#[test]
fn a_default_input_is_a_key() {
    let bench = Bench::over(STORE);
    let engine = bench.engine();
    let head = ":concurrency {:type :keyed :key-field :path}
        :invocations {:default {:inputs [{:name :path :type :string :default \".\"}]}}";
    let started = submit(&bench, &engine, &quick(head), options("{}")).expect("it starts");
    assert_eq!(started.key.as_deref(), Some("\".\""));
}

/// The state of a holder when the next start arrives.
#[derive(Debug, Clone, Copy)]
enum Holder {
    Ended,
    Waiting,
    /// The run began, and its process ended.
    Crashed,
    /// A live process executes the run.
    Live,
}

/// Checks the outcome of a second start, and of the first run, with the same or a changed flow text.
#[track_caller]
fn second(policy: &str, is_new: bool, holder: Holder, expected: &str) {
    let bench = Bench::over(STORE);
    let head = format!(":concurrency {{:type :keyed :key-field :user {policy}}}");
    let first_engine = bench.engine();
    let first =
        submit(&bench, &first_engine, &flow(&head, 1), options("{:user 1}")).expect("it starts");
    match holder {
        Holder::Ended => end(&first_engine, &first.run),
        Holder::Waiting => drop(execute(&first_engine, &first.run)),
        Holder::Crashed | Holder::Live => {
            let claim = block_on(
                first_engine
                    .stores()
                    .runs
                    .claim(&first.run, ClaimBy::Search, 0),
            );
            assert!(matches!(claim, Ok(Claim::Taken { .. })));
        }
    }
    let live = matches!(holder, Holder::Live).then_some(first_engine);
    let engine = bench.engine();
    let text = flow(&head, if is_new { 2 } else { 1 });
    let mut found = match submit(&bench, &engine, &text, options("{:user 1}")) {
        Ok(started) => started.decision.name().to_owned(),
        Err(error) => error.code().to_owned(),
    };
    found.push_str(": ");
    found.push_str(&statuses(&engine));
    drop(live);
    // Resuming runs ends the cancelled ones, and the next one starts.
    for _ in 0..3 {
        for run in block_on(engine.resumable()).expect("runs") {
            execute(&engine, &run.id);
        }
    }
    found.push_str(" -> ");
    found.push_str(&statuses(&engine));
    let at = match holder {
        Holder::Waiting => "waiting",
        Holder::Ended | Holder::Crashed | Holder::Live => "running",
    };
    assert_eq!(
        found,
        expected.replace('H', at),
        "{policy} {is_new} {holder:?}"
    );
}

#[test]
fn on_conflict_policies_hold_for_each_kind_of_holder() {
    use Holder::{Crashed, Ended, Live, Waiting};
    const SUPERSEDE: &str = ":on-new-version :supersede";
    const DRAIN: &str = ":on-new-version :drain";
    const COEXIST: &str = ":on-new-version :coexist";
    const REJECT: &str = ":on-conflict :reject";
    const CANCEL: &str = ":on-conflict :cancel-running";
    for policy in ["", SUPERSEDE, DRAIN, COEXIST, REJECT, CANCEL] {
        for is_new in [false, true] {
            let expected = "started: cancelled, running -> cancelled, waiting";
            second(policy, is_new, Ended, expected);
        }
    }
    for holder in [Waiting, Crashed, Live] {
        for policy in ["", SUPERSEDE, DRAIN, COEXIST] {
            let expected = "queued: H, queued -> waiting, queued";
            second(policy, false, holder, expected);
        }
        second(REJECT, false, holder, "E0555: H -> waiting");
        let replaced = "queued: H (to be cancelled), queued -> cancelled, waiting";
        second(CANCEL, false, holder, replaced);
        for policy in ["", SUPERSEDE, REJECT, CANCEL] {
            second(policy, true, holder, replaced);
        }
        second(DRAIN, true, holder, "blocked: H, queued -> waiting, queued");
        second(
            COEXIST,
            true,
            holder,
            "coexisted: H, running -> waiting, waiting",
        );
    }
}

#[test]
fn coexisting_versions_have_separate_queues() {
    let bench = Bench::over(STORE);
    let engine = bench.engine();
    let head = ":concurrency {:type :singleton :on-new-version :coexist}";
    let (old, new) = (flow(head, 1), flow(head, 2));
    let first = start(&bench, &engine, &old, "{}");
    start(&bench, &engine, &old, "{}");
    let third = start(&bench, &engine, &new, "{}");
    start(&bench, &engine, &new, "{}");
    assert_eq!(statuses(&engine), "waiting, queued, waiting, queued");
    end(&engine, &third.run);
    assert_eq!(statuses(&engine), "waiting, queued, cancelled, running");
    end(&engine, &first.run);
    assert_eq!(statuses(&engine), "cancelled, running, cancelled, running");
}

#[test]
fn queued_runs_of_an_older_version_are_superseded_too() {
    let bench = Bench::over(STORE);
    let engine = bench.engine();
    let first = start(&bench, &engine, &flow(SINGLETON, 1), "{}");
    let second = start(&bench, &engine, &flow(SINGLETON, 1), "{}");
    let third = submit(&bench, &engine, &flow(SINGLETON, 2), options("{}")).expect("it starts");
    assert_eq!(third.replaced, [first.run.clone(), second.run]);
    assert_eq!(
        statuses(&engine),
        "waiting (to be cancelled), cancelled, queued"
    );
    // A run that waits for its turn ends runs that no process executes.
    let executed =
        block_on(engine.execute(&third.run, Rc::new(NoObserver), ExecuteOptions::default()));
    assert_eq!(
        outcome_text(&executed),
        "waiting: `door` waits for an answer"
    );
    assert_eq!(statuses(&engine), "cancelled, cancelled, waiting");
    let row = block_on(engine.find_run(first.run.as_str())).expect("a run");
    assert!(
        row.cancel_requested
            .is_some_and(|why| why.starts_with("superseded by run"))
    );
}

#[test]
fn one_of_many_concurrent_starts_begins() {
    let bench = Bench::over(STORE);
    let text = flow(SINGLETON, 1);
    let loaded = bench.flow(&text);
    // Each process has a connection of its own; they share only the file.
    let engines: Vec<Engine> = (0..4).map(|_| bench.engine()).collect();
    let starts = engines
        .iter()
        .map(|engine| engine.submit(&loaded, options("{}")));
    let started = block_on(together(starts));
    let decisions: Vec<StartDecision> = started
        .into_iter()
        .map(|started| started.expect("it starts").decision)
        .collect();
    let started = decisions.iter().filter(|it| **it == StartDecision::Started);
    assert_eq!(started.count(), 1, "{decisions:?}");
    assert_eq!(statuses(&engines[0]), "running, queued, queued, queued");
}

#[test]
fn a_queued_run_is_cancelled_without_an_executor() {
    let bench = Bench::over(STORE);
    let engine = bench.engine();
    let text = flow(SINGLETON, 1);
    start(&bench, &engine, &text, "{}");
    let second = start(&bench, &engine, &text, "{}");
    let third = start(&bench, &engine, &text, "{}");
    let outcome = block_on(engine.cancel(&second.run, "no", Rc::new(NoObserver)));
    assert_eq!(outcome.expect("cancelled"), CancelOutcome::Cancelled);
    assert_eq!(statuses(&engine), "waiting, cancelled, queued");
    assert_eq!(execute(&engine, &second.run), "cancelled: no");
    assert_eq!(execute(&engine, &third.run), "queued at 1");
}

#[test]
fn an_external_id_starts_one_run() {
    let bench = Bench::over(STORE);
    let engine = bench.engine();
    let head = ":concurrency {:type :singleton :on-conflict :reject}";
    let named = || StartOptions {
        external_id: Some("order-17".to_owned()),
        ..options("{}")
    };
    let first = submit(&bench, &engine, &flow(head, 1), named()).expect("it starts");
    let second = submit(&bench, &engine, &flow(head, 1), named()).expect("it is there");
    assert_eq!(first.decision, StartDecision::Started);
    assert_eq!(
        (second.decision, &second.run),
        (StartDecision::Deduped, &first.run)
    );
    assert_eq!(statuses(&engine), "running");
}

#[test]
fn queued_runs_start_by_priority_then_age() {
    let bench = Bench::over(STORE);
    let engine = bench.engine();
    let text = flow(SINGLETON, 1);
    let holder = start(&bench, &engine, &text, "{}");
    let runs: Vec<RunId> = [0, 5, -1, 5]
        .into_iter()
        .map(|priority| {
            let options = StartOptions {
                priority: Some(priority),
                ..options("{}")
            };
            submit(&bench, &engine, &text, options)
                .expect("it starts")
                .run
        })
        .collect();
    let places = runs.iter().map(|run| execute(&engine, run));
    assert_eq!(
        places.collect::<Vec<_>>(),
        ["queued at 3", "queued at 1", "queued at 4", "queued at 2"]
    );
    let mut order = Vec::new();
    let mut ending = holder.run;
    for _ in 0..4 {
        end(&engine, &ending);
        let begun = runs
            .iter()
            .position(|run| status(&engine, run) == "running");
        order.push(begun.expect("one began"));
        ending = runs[begun.expect("one began")].clone();
    }
    assert_eq!(order, [1, 3, 0, 2]);
}

#[test]
fn a_limit_bounds_the_number_of_live_runs() {
    let bench = Bench::over(STORE);
    let engine = bench.engine();
    let text = flow(":limits {:concurrency 2 :key :user}", 1);
    let runs: Vec<RunId> = (0..4)
        .map(|_| start(&bench, &engine, &text, "{:user 1}").run)
        .collect();
    start(&bench, &engine, &text, "{:user 2}");
    assert_eq!(
        statuses(&engine),
        "waiting, waiting, queued, queued, waiting"
    );
    let place = block_on(engine.queue_place(&runs[3]))
        .expect("a place")
        .expect("queued");
    assert_eq!((place.waits_for, place.position), (QueueReason::Limit, 2));
    assert_eq!(place.behind, runs[..2]);
    end(&engine, &runs[1]);
    assert_eq!(
        statuses(&engine),
        "waiting, cancelled, running, queued, waiting"
    );
}

#[test]
fn flows_with_the_same_scope_share_a_limit() {
    let bench = Bench::over(STORE);
    let engine = bench.engine();
    let head = ":limits {:concurrency 1 :scope :printer}";
    start(&bench, &engine, &flow(head, 1), "{}");
    let other = flow(head, 1).replace(":work", ":other");
    assert_eq!(
        start(&bench, &engine, &other, "{}").decision,
        StartDecision::Queued
    );
    let alone = flow(":limits {:concurrency 1}", 1).replace(":work", ":third");
    assert_eq!(
        start(&bench, &engine, &alone, "{}").decision,
        StartDecision::Started
    );
}

#[test]
fn a_rate_is_kept_to_the_millisecond() {
    let bench = Bench::over(STORE);
    let engine = bench.engine();
    let text = quick(":limits {:rate {:max 2 :per \"1m\"}}");
    let begin = |at_ms: i64| {
        bench.clock.set(at_ms);
        start(&bench, &engine, &text, "{}")
    };
    let decisions = [0, 10_000, 20_000, 30_000].map(|at_ms| begin(at_ms).decision.name());
    assert_eq!(decisions, ["started", "started", "queued", "queued"]);
    let at = |at_ms: i64| {
        bench.clock.set(at_ms);
        let begun = block_on(engine.promote()).expect("runs").len();
        let next = block_on(engine.stores().agenda.next_ms()).expect("a moment");
        (begun, next)
    };
    // The window slides: each start allows another one a minute later, and not before.
    assert_eq!(at(59_999), (0, Some(60_000)));
    assert_eq!(at(60_000), (1, Some(70_000)));
    assert_eq!(at(69_999), (0, Some(70_000)));
    assert_eq!(at(70_000), (1, None));
    assert_eq!(begin(119_999).decision, StartDecision::Queued);
    assert_eq!(at(120_000), (1, None));
    // A worker polls for due runs by itself.
    assert_eq!(begin(121_000).decision, StartDecision::Queued);
    bench.clock.set(130_000);
    let taken = block_on(engine.stores().agenda.take(130_000, 10)).expect("runs");
    assert!(
        taken
            .iter()
            .any(|taken| taken.row.status == RunStatus::Running)
    );
    assert!(!statuses(&engine).contains("queued"));
}

#[test]
fn starts_are_not_delayed_for_long_after_the_clock_is_set_back() {
    let bench = Bench::over(STORE);
    let engine = bench.engine();
    let text = quick(":limits {:rate {:max 1 :per \"1m\"}}");
    bench.clock.set(10_000_000);
    start(&bench, &engine, &text, "{}");
    bench.clock.set(1_000);
    assert_eq!(
        start(&bench, &engine, &text, "{}").decision,
        StartDecision::Queued
    );
    bench.clock.set(61_000);
    assert_eq!(block_on(engine.promote()).expect("runs").len(), 1);
}

#[test]
fn a_process_that_waits_for_a_rate_continues_its_run() {
    let bench = Bench::over(STORE);
    let engine = bench.engine();
    let text = quick(":limits {:rate {:max 1 :per \"10s\"}}");
    start(&bench, &engine, &text, "{:n 1}");
    let second = submit(&bench, &engine, &text, options("{:n 2}")).expect("it starts");
    let options = ExecuteOptions::default();
    let outcome = block_on(engine.execute(&second.run, Rc::new(NoObserver), options));
    assert_eq!(outcome_text(&outcome), "2");
}

#[test]
fn a_run_needs_both_its_slot_and_its_limit() {
    let bench = Bench::over(STORE);
    let engine = bench.engine();
    let text = flow(&format!("{KEYED} :limits {{:concurrency 1}}"), 1);
    let ada = start(&bench, &engine, &text, "{:user \"ada\"}");
    let bo = start(&bench, &engine, &text, "{:user \"bo\"}");
    start(&bench, &engine, &text, "{:user \"bo\"}");
    // The second run of a key starts after the first, although both wait for the limit; the urgent one starts earlier.
    let urgent = StartOptions {
        priority: Some(1),
        ..options("{:user \"bo\"}")
    };
    let urgent = submit(&bench, &engine, &text, urgent).expect("it starts");
    assert_eq!(statuses(&engine), "waiting, queued, queued, queued");
    end(&engine, &ada.run);
    assert_eq!(statuses(&engine), "cancelled, queued, queued, running");
    end(&engine, &urgent.run);
    assert_eq!(status(&engine, &bo.run), "running");
}

#[test]
fn queued_runs_survive_the_end_of_a_process() {
    let bench = Bench::over(STORE);
    let text = flow(SINGLETON, 1);
    let engine = bench.engine();
    let first = start(&bench, &engine, &text, "{}");
    let second = start(&bench, &engine, &text, "{}");
    drop(engine);
    let engine = bench.engine();
    assert_eq!(statuses(&engine), "waiting, queued");
    end(&engine, &first.run);
    drop(engine);
    assert_eq!(status(&bench.engine(), &second.run), "running");
}

#[test]
fn terminating_a_run_frees_its_slot() {
    let bench = Bench::over(STORE);
    let engine = bench.engine();
    let text = flow(SINGLETON, 1);
    let first = start(&bench, &engine, &text, "{}");
    let second = start(&bench, &engine, &text, "{}");
    let runs = &engine.stores().runs;
    block_on(runs.terminate(&first.run, "now", 0)).expect("it ends");
    assert_eq!(status(&engine, &second.run), "running");
}

#[test]
fn a_flow_that_would_wait_for_itself_is_refused() {
    let bench = Bench::over(STORE);
    let engine = bench.engine();
    for head in [SINGLETON, ":limits {:concurrency 1}"] {
        let text = format!(
            "{{:slug :flow {head} :flow '(try (flow/call-flow :flow {{}}) (catch Exception e (ex-message e)))}}"
        );
        let run = submit(&bench, &engine, &text, options("{}"))
            .expect("it starts")
            .run;
        let message = execute(&engine, &run).replace(run.as_str(), "RUN");
        assert_eq!(
            message, "\"a run of `flow` would wait for the run RUN, which waits for it\"",
            "{head}"
        );
    }
}

#[test]
fn a_child_waits_for_its_turn() {
    let bench = Bench::over(STORE);
    let engine = bench.engine();
    let child = flow(SINGLETON, 1);
    let first = start(&bench, &engine, &child, "{}");
    std::fs::write(bench.home.path().join("work.clj"), &child).expect("a file");
    let parent = submit(
        &bench,
        &engine,
        "{:slug :parent :flow '[(flow/call-flow :work {})]}",
        options("{}"),
    )
    .expect("it starts");
    let waiting = execute(&engine, &parent.run);
    assert!(waiting.contains("it is queued behind"), "{waiting}");
    end(&engine, &first.run);
    let waiting = execute(&engine, &parent.run);
    assert!(waiting.ends_with("`door` waits for an answer"), "{waiting}");
}

/// When a process ends at any commit, either a run has ended and the next one has begun, or neither.
#[test]
fn the_commit_that_ends_a_run_starts_the_next_queued_run() {
    let text = format!(
        "{{:slug :work {SINGLETON} :flow '[(flow/step :write :a {{:value 1}}) (flow/step :put :b {{:value 2}})]}}"
    );
    let mut deaths = 0;
    for silently in [false, true] {
        for left in 0.. {
            let bench = Bench::over(STORE);
            let engine = bench.engine_over(crash::stores(&bench, left, silently));
            let [first, second, third] =
                [(); 3].map(|()| submit(&bench, &engine, &text, options("{}")).expect("it starts"));
            let message = execute(&engine, &first.run);
            drop(engine);
            let engine = bench.engine();
            let expected = match status(&engine, &first.run) {
                "completed" => "completed, running, queued",
                _ => "running, queued, queued",
            };
            assert_eq!(statuses(&engine), expected, "{left} {silently}");
            assert_eq!(
                execute(&engine, &third.run),
                format!("queued at {}", 3 - next_turn(expected))
            );
            if !message.contains("the process is dead") {
                assert_eq!(status(&engine, &second.run), "running");
                break;
            }
            deaths += 1;
        }
    }
    assert!(deaths > 4, "{deaths}");
}

/// Returns the number of the next turn: one more than the completed runs.
fn next_turn(statuses: &str) -> usize {
    statuses.matches("completed").count() + 1
}

#[test]
fn many_queued_runs_are_executed_one_by_one() {
    let bench = Bench::over(STORE);
    let engine = bench.engine();
    let loaded = bench.flow(&flow(SINGLETON, 1));
    let count = std::env::var("QUEUED").map_or(300, |count| count.parse().expect("a number"));
    let began = std::time::Instant::now();
    // Started together, as by several callers.
    let runs: Vec<RunId> = block_on(async {
        let mut runs = Vec::new();
        for _ in 0..count / 100 {
            let starts = (0..100).map(|_| engine.submit(&loaded, options("{}")));
            for start in together(starts).await {
                runs.push(start.expect("it starts").run);
            }
        }
        runs
    });
    let queued = began.elapsed();
    let began = std::time::Instant::now();
    for run in &runs {
        let terminated = engine.stores().runs.terminate(run, "next", 0);
        assert_eq!(
            block_on(terminated).expect("it ends"),
            Some(RunStatus::Running)
        );
    }
    if count > 300 {
        eprintln!(
            "{count} runs: queued in {queued:?}, ended one by one in {:?}",
            began.elapsed()
        );
    }
}

/// Awaits some futures concurrently.
async fn together<T>(futures: impl Iterator<Item = impl Future<Output = T>>) -> Vec<T> {
    let mut left: Vec<_> = futures.map(Box::pin).collect();
    let mut done = Vec::new();
    std::future::poll_fn(|cx| {
        left.retain_mut(|future| match future.as_mut().poll(cx) {
            std::task::Poll::Ready(value) => {
                done.push(value);
                false
            }
            std::task::Poll::Pending => true,
        });
        match left.is_empty() {
            true => std::task::Poll::Ready(()),
            false => std::task::Poll::Pending,
        }
    })
    .await;
    done
}

#[test]
fn a_fork_obeys_concurrency_and_limits() {
    let bench = Bench::over(STORE);
    let engine = bench.engine();
    let text = flow(":concurrency {:type :singleton}", 1);
    let first = start(&bench, &engine, &text, "{}").run;
    let fork = |run: &RunId| block_on(engine.fork(run, ForkOptions::default()));
    let second = fork(&first).expect("a fork");
    assert_eq!(status(&engine, &second), "queued");
    end(&engine, &first);
    assert_eq!(status(&engine, &second), "running");
    let text = flow(":concurrency {:type :singleton :on-conflict :reject}", 2)
        .replace(":slug :", ":slug :strict-");
    let third = start(&bench, &engine, &text, "{}").run;
    assert_eq!(fork(&third).expect_err("taken").code(), "E0555");
}

#[test]
fn an_interrupted_wait_for_a_turn_leaves_the_run_queued() {
    let bench = Bench::over(STORE);
    let engine = bench.engine();
    let text = flow(":concurrency {:type :singleton}", 1);
    start(&bench, &engine, &text, "{}");
    let second = start(&bench, &engine, &text, "{}").run;
    let options = ExecuteOptions::default();
    options.interrupt.trigger();
    let left = block_on(engine.execute(&second, Rc::new(NoObserver), options));
    assert!(matches!(left, Ok(RunOutcome::Queued { .. })), "{left:?}");
    assert_eq!(status(&engine, &second), "queued");
}
