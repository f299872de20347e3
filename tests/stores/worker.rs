//! A worker over SQLite: the runs that it finds, those that it leaves, and schedules, on the simulated clock.

use std::cell::RefCell;
use std::num::NonZeroUsize;
use std::path::Path;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use expect_test::expect;
use flowstone_engine::disk::load;
use flowstone_engine::ids::RunId;
use flowstone_engine::observer::{NoObserver, Observer};
use flowstone_engine::outcome::RunOutcome;
use flowstone_engine::ports::{Clock, RunFilter, RunStatus, SimulatedClock, Stores};
use flowstone_engine::worker::{Until, Watch, WorkerEvent, WorkerOptions, serve};
use flowstone_engine::{Engine, EngineConfig, Interrupt, StartOptions, codec};
use flowstone_flow::step::{
    Effect, Field, FieldType, LocalFuture, OnTimeout, Outcome, Step, StepContext, StepError,
    StepSpec, WaitSpec,
};
use flowstone_lang::session::Session;
use flowstone_lang::value::Value;

use super::STORE;
use crate::bench::{Project, block_on};

/// A project, and a clock that moves only when the test advances it.
struct Shop {
    home: tempfile::TempDir,
    store: Project,
    clock: Arc<SimulatedClock>,
    seed: RefCell<u64>,
}

/// Records the events that a worker reports.
#[derive(Default)]
struct Reports(Mutex<Vec<String>>);

impl Watch for Reports {
    fn event(&self, event: &WorkerEvent<'_>) {
        let words = match event {
            WorkerEvent::Planned { .. } | WorkerEvent::Ready { .. } => return,
            WorkerEvent::Recovered { runs } => format!("recovered {runs}"),
            WorkerEvent::Skipped { flow, error, .. } => {
                format!("{flow} skipped {}", error.code())
            }
            WorkerEvent::Executed { flow, outcome, .. } => {
                format!("{flow} {}", outcome_text(outcome))
            }
            WorkerEvent::SetAside { flow, error, .. } => {
                format!("{flow} set aside {}", error.code())
            }
            WorkerEvent::BrokenFlow { findings, .. } => {
                let codes: Vec<&str> = findings.iter().map(|finding| finding.code).collect();
                format!("broken {}", codes.join(" "))
            }
            WorkerEvent::Scheduled {
                schedule,
                tick_ms,
                started,
                ..
            } => match started {
                Ok(_) => format!("{schedule} {}", codec::instant(*tick_ms)),
                Err(error) => format!("{schedule} refused {}", error.code()),
            },
            WorkerEvent::StoreFailed { error } => format!("trouble {error}"),
            WorkerEvent::Stopping { active } => format!("stopping {active}"),
        };
        self.0.lock().expect("no panic").push(words);
    }

    fn observer(&self) -> Rc<dyn Observer> {
        Rc::new(NoObserver)
    }
}

fn outcome_text(outcome: &RunOutcome) -> String {
    match outcome {
        RunOutcome::Completed(value) => codec::encode(value).expect("data"),
        RunOutcome::Waiting { .. } => "waits".to_owned(),
        other => format!("{other:?}"),
    }
}

impl Shop {
    fn new(now: &str) -> Shop {
        Shop {
            home: tempfile::tempdir().expect("a folder"),
            store: STORE.project(),
            clock: Arc::new(SimulatedClock::starting_at(instant(now))),
            seed: RefCell::new(1),
        }
    }

    fn stores(&self) -> Stores {
        let home = self.home.path().join("home");
        self.store.open(&home).expect("a database")
    }

    fn engine(&self, stores: Stores) -> Engine {
        *self.seed.borrow_mut() += 1;
        engine(
            self.home.path(),
            stores,
            self.clock.clone(),
            *self.seed.borrow(),
        )
    }

    fn write(&self, name: &str, text: &str) {
        let folder = self.home.path().join("flows");
        std::fs::create_dir_all(&folder).expect("a folder");
        std::fs::write(folder.join(name), text).expect("a file");
    }

    /// Adds a run for a worker.
    fn leave(&self, text: &str) -> RunId {
        let stores = self.stores();
        let engine = self.engine(stores);
        start(&engine, self.home.path(), text, true)
    }

    /// Works until no run can continue now; returns the reported events, sorted.
    fn work(&self) -> String {
        self.work_as(2, Interrupt::new())
    }

    fn work_as(&self, threads: usize, interrupt: Interrupt) -> String {
        let report = Arc::new(Reports::default());
        let watch: Arc<dyn Watch> = report.clone();
        let stores = self.stores();
        let (home, clock) = (self.home.path().to_owned(), self.clock.clone());
        let seed = Mutex::new(*self.seed.borrow());
        let open = move || {
            let mut seed = seed.lock().expect("no panic");
            *seed += 100;
            Ok::<_, String>(engine(&home, stores.clone(), clock.clone(), *seed))
        };
        let options = WorkerOptions {
            threads: NonZeroUsize::new(threads).expect("not 0"),
            concurrency: NonZeroUsize::new(8).expect("not 0"),
            until: Until::Idle,
            flows: vec![self.home.path().join("flows")],
            interrupt,
        };
        let served = serve(&open, &options, &watch);
        assert!(served.is_ok(), "it begins");
        *self.seed.borrow_mut() += 1000;
        let mut report = report.0.lock().expect("no panic").clone();
        report.sort();
        report.join("\n")
    }

    fn status(&self, run: &RunId) -> RunStatus {
        let row = block_on(self.stores().runs.find(run)).expect("it is read");
        row.expect("it is there").status
    }

    fn at(&self, instant: &str) {
        self.clock
            .advance(self::instant(instant) - self.clock.now_ms());
    }
}

fn instant(text: &str) -> i64 {
    let instant: jiff::Timestamp = text.parse().expect("an instant");
    instant.as_millisecond()
}

fn engine(home: &Path, stores: Stores, clock: Arc<SimulatedClock>, seed: u64) -> Engine {
    let steps: Vec<Box<dyn Step>> = vec![Box::new(Gate), Box::new(Nap), Box::new(Burst)];
    Engine::open(EngineConfig {
        home: home.join("home"),
        clock,
        random: Arc::new(Mutex::new(seed)),
        ..EngineConfig::for_tests(home, stores, steps)
    })
}

fn start(engine: &Engine, home: &Path, text: &str, is_left: bool) -> RunId {
    let options = StartOptions {
        is_left,
        ..StartOptions::with_input(Value::map([]))
    };
    start_with(engine, home, text, options)
}

fn start_with(engine: &Engine, home: &Path, text: &str, options: StartOptions) -> RunId {
    let path = home.join("flow.clj");
    std::fs::write(&path, text).expect("a file");
    let loaded = load(&Session::new(), &path, "flow.clj")
        .loaded
        .expect("a flow");
    block_on(engine.start(&loaded, options)).expect("it starts")
}

const KEY: Field = Field::optional("key", FieldType::Text, "Who waits.");
const MILLIS: Field = Field::optional("millis", FieldType::Int, "How long.");

const fn spec(kind: &'static str, fields: &'static [Field]) -> StepSpec {
    StepSpec {
        operations: None,
        kind,
        aliases: &[],
        doc: "A step of the tests.",
        fields,
        examples: &[],
        effect: Effect::Pure,
    }
}

static GATE: StepSpec = spec("gate", &[KEY]);
static NAP: StepSpec = spec("nap", &[MILLIS]);
static BURST: StepSpec = spec("burst", &[]);

/// A step that waits for an answer.
struct Gate;

impl Step for Gate {
    fn spec(&self) -> &'static StepSpec {
        &GATE
    }

    fn run<'a>(
        &'a self,
        _: &'a StepContext,
        config: Value,
    ) -> LocalFuture<'a, Result<Outcome, StepError>> {
        let key = config.get("key").and_then(Value::as_str).map(str::to_owned);
        Box::pin(async move {
            Ok(Outcome::Suspend(Box::new(WaitSpec {
                key,
                on_timeout: OnTimeout::Fail,
                deadline_ms: None,
                validation: Value::Nil,
                details: Value::Nil,
                event: None,
                webhook: None,
            })))
        })
    }
}

/// A step that sleeps.
struct Nap;

impl Step for Nap {
    fn spec(&self) -> &'static StepSpec {
        &NAP
    }

    fn run<'a>(
        &'a self,
        cx: &'a StepContext,
        config: Value,
    ) -> LocalFuture<'a, Result<Outcome, StepError>> {
        let millis = config.get("millis").and_then(Value::as_int).unwrap_or(0);
        let until_ms = cx.now_ms() + millis;
        Box::pin(async move {
            Ok(Outcome::Sleep {
                until_ms,
                value: Value::keyword("slept"),
            })
        })
    }
}

/// A step that panics.
struct Burst;

impl Step for Burst {
    fn spec(&self) -> &'static StepSpec {
        &BURST
    }

    fn run<'a>(
        &'a self,
        _: &'a StepContext,
        _: Value,
    ) -> LocalFuture<'a, Result<Outcome, StepError>> {
        Box::pin(async { panic!("a step of the tests") })
    }
}

#[test]
fn a_worker_resumes_every_run_that_can_continue() {
    let shop = Shop::new("2026-05-01T00:00:00Z");
    let new = shop.leave("[:new]");
    let waits = shop.leave("[(flow/step :gate :it {:key \"door\"})]");
    let sleeps = shop.leave("[(flow/step :nap :it {:millis 60000})]");
    expect![[r#"
        flow [:new]
        flow waits
        flow waits"#]]
    .assert_eq(&shop.work());
    assert_eq!(shop.status(&new), RunStatus::Completed);
    // Nothing has changed.
    expect![""].assert_eq(&shop.work());
    let answer = codec::decode("{:action :go}").expect("EDN");
    block_on(
        shop.engine(shop.stores())
            .complete_wait("door", &answer, false),
    )
    .expect("answered");
    expect!["flow [{:action :go}]"].assert_eq(&shop.work());
    assert_eq!(shop.status(&waits), RunStatus::Completed);
    shop.clock.advance(60_000);
    expect!["flow [:slept]"].assert_eq(&shop.work());
    assert_eq!(shop.status(&sleeps), RunStatus::Completed);
}

/// Flows that wait for a minute, and whose cleanup waits for an answer or for six seconds.
const CLEANUPS: [&str; 6] = [
    "(do (flow/on-cancel (fn [] (flow/step :nap :later {:millis 6000}))) (flow/step :nap :p {:millis 60000}))",
    "(do (flow/on-cancel (fn [] (flow/step :gate :sure {:key \"sure\"}))) (flow/step :nap :p {:millis 60000}))",
    "(do (flow/compensate 1 (fn [] (flow/step :nap :later {:millis 6000}))) (flow/step :nap :p {:millis 60000}))",
    "(do (flow/compensate 1 (fn [] (flow/step :gate :sure {:key \"sure\"}))) (flow/step :nap :p {:millis 60000}))",
    "(try (flow/step :nap :p {:millis 60000}) (finally (flow/step :nap :later {:millis 6000})))",
    "(flow/all [(fn [] (try (flow/step :nap :p {:millis 60000}) (finally (flow/step :gate :sure {:key \"sure\"}))))
                (fn [] (flow/on-cancel (fn [] (flow/step :nap :later {:millis 3000}))) (flow/step :nap :q {:millis 60000}))])",
];

/// Works until a run has ended: answers the wait of its cleanup, and advances the clock.
fn clean_up(shop: &Shop, run: &RunId, text: &str) -> RunStatus {
    let answer = codec::decode("{:action :go}").expect("EDN");
    let engine = shop.engine(shop.stores());
    if text.contains(":gate") {
        block_on(engine.complete_wait("sure", &answer, false)).expect("answered");
        assert_eq!(shop.work().lines().count(), 1, "{text}");
    }
    if text.contains(":later") {
        assert_eq!(shop.work(), "", "{text}");
        shop.clock.advance(6_000);
        assert_eq!(shop.work().lines().count(), 1, "{text}");
    }
    shop.status(run)
}

#[test]
fn a_cancelled_run_whose_cleanup_waits_is_executed_once_for_each_event() {
    for text in CLEANUPS {
        let shop = Shop::new("2026-05-01T00:00:00Z");
        let run = shop.leave(text);
        assert_eq!(shop.work(), "flow waits", "{text}");
        let engine = shop.engine(shop.stores());
        block_on(engine.request_cancel(&run, "enough")).expect("requested");
        assert_eq!(block_on(engine.resumable()).expect("runs").len(), 1);
        assert_eq!(shop.work(), "flow waits", "{text}");
        assert!(block_on(engine.resumable()).expect("runs").is_empty());
        block_on(engine.request_cancel(&run, "again")).expect("requested");
        assert_eq!(shop.work(), "", "{text}");
        assert_eq!(clean_up(&shop, &run, text), RunStatus::Cancelled, "{text}");
    }
}

#[test]
fn a_late_run_whose_cleanup_waits_is_executed_once_for_each_event() {
    for text in CLEANUPS {
        for is_cancelled in [false, true] {
            let shop = Shop::new("2026-05-01T00:00:00Z");
            let options = StartOptions {
                is_left: true,
                timeout: Some(Duration::from_secs(5)),
                ..StartOptions::with_input(Value::map([]))
            };
            let engine = shop.engine(shop.stores());
            let run = start_with(&engine, shop.home.path(), text, options);
            assert_eq!(shop.work(), "flow waits", "{text}");
            shop.clock.advance(5_000);
            assert_eq!(shop.work(), "flow waits", "{text}");
            let mut expected = RunStatus::TimedOut;
            if is_cancelled {
                block_on(engine.request_cancel(&run, "enough")).expect("requested");
                expected = RunStatus::Cancelled;
            }
            assert_eq!(shop.work(), "", "{text}");
            assert_eq!(clean_up(&shop, &run, text), expected, "{text}");
        }
    }
}

#[test]
fn a_failed_run_whose_compensation_waits_is_not_woken_by_a_cancellation() {
    let shop = Shop::new("2026-05-01T00:00:00Z");
    let run = shop.leave(
        "(do (flow/compensate 1 (fn [] (flow/step :gate :sure {:key \"sure\"})))
             (throw (ex-info \"late\" {})))",
    );
    assert_eq!(shop.work(), "flow waits");
    let engine = shop.engine(shop.stores());
    block_on(engine.request_cancel(&run, "enough")).expect("requested");
    assert_eq!(shop.work(), "");
    assert_eq!(clean_up(&shop, &run, ":gate"), RunStatus::Failed);
}

#[test]
fn a_run_whose_cleanup_waits_can_be_terminated() {
    for text in CLEANUPS {
        let shop = Shop::new("2026-05-01T00:00:00Z");
        let run = shop.leave(text);
        shop.work();
        let engine = shop.engine(shop.stores());
        block_on(engine.request_cancel(&run, "enough")).expect("requested");
        shop.work();
        block_on(engine.request_end(&run, "now")).expect("terminated");
        assert_eq!(shop.work(), "", "{text}");
        assert_eq!(shop.status(&run), RunStatus::Terminated, "{text}");
    }
}

#[test]
fn a_run_that_another_process_executes_is_not_taken() {
    let shop = Shop::new("2026-05-01T00:00:00Z");
    let stores = shop.stores();
    let engine = shop.engine(stores.clone());
    let run = start(&engine, shop.home.path(), "[:mine]", false);
    expect![""].assert_eq(&shop.work());
    // The process ends without having executed the run.
    drop((engine, stores));
    expect![[r#"
        flow [:mine]
        recovered 1"#]]
    .assert_eq(&shop.work());
    assert_eq!(shop.status(&run), RunStatus::Completed);
}

#[test]
fn many_runs_on_one_key_are_woken_at_once() {
    let shop = Shop::new("2026-05-01T00:00:00Z");
    let stores = shop.stores();
    let engine = shop.engine(stores.clone());
    for _ in 0..200 {
        let text = "(count (str (flow/step :gate :it {:key \"door\"})))";
        start(&engine, shop.home.path(), text, true);
    }
    drop((engine, stores));
    assert_eq!(shop.work().lines().count(), 200);
    let answer = codec::decode("{:n 1}").expect("EDN");
    block_on(
        shop.engine(shop.stores())
            .complete_wait("door", &answer, false),
    )
    .expect("answered");
    let report = shop.work();
    assert!(report.lines().all(|line| line == "flow 6"), "{report}");
    assert_eq!(report.lines().count(), 200);
    // All leases were given back: no lease of an ended process is left.
    let held = block_on(shop.stores().agenda.sweep()).expect("swept");
    assert_eq!(held, 0);
}

#[test]
fn a_panic_in_one_run_leaves_the_others_running() {
    let shop = Shop::new("2026-05-01T00:00:00Z");
    let bursts = shop.leave("(flow/step :burst :it {})");
    let other = shop.leave("[:other]");
    expect![[r#"
        flow [:other]
        flow set aside E0500"#]]
    .assert_eq(&shop.work());
    assert_eq!(shop.status(&bursts), RunStatus::Running);
    assert_eq!(shop.status(&other), RunStatus::Completed);
    let row = block_on(shop.stores().runs.find(&bursts)).expect("it is read");
    let setback = row.expect("it is there").setback.expect("a reason");
    assert!(setback.contains("a step of the tests"), "{setback}");
}

#[test]
fn programs_that_define_things_do_not_see_one_another() {
    let shop = Shop::new("2026-05-01T00:00:00Z");
    let text = "(do (defonce seen (atom 0)) (swap! seen inc))";
    for _ in 0..3 {
        shop.leave(text);
    }
    expect![[r#"
        flow 1
        flow 1
        flow 1"#]]
    .assert_eq(&shop.work_as(1, Interrupt::new()));
}

/// An atom of the library that all programs of a session share, and code that takes some turns.
const OF_LIBRARY: &str = "(let [all @#'clojure.core/global-hierarchy
       known #(count (:parents @all))
       work #(reduce + (range 300000))]
   %)";

/// Leaves four runs of a program to one thread that executes them concurrently, and returns their outcomes. Each must
/// replay to the same result in a separate session.
fn side_by_side(text: &str) -> String {
    let shop = Shop::new("2026-05-01T00:00:00Z");
    let runs: Vec<RunId> = (0..4).map(|_| shop.leave(text)).collect();
    let report = shop.work_as(1, Interrupt::new());
    for run in &runs {
        let replayed = block_on(shop.engine(shop.stores()).verify(run));
        assert!(replayed.is_ok(), "{report}: {replayed:?}");
    }
    report
}

#[test]
fn runs_that_change_an_atom_of_the_library_do_not_see_one_another() {
    let body = "(let [before (known)]
       (work)
       (swap! all assoc-in [:parents (keyword (str (flow/uuid)))] #{:x})
       (work)
       [before (known)])";
    expect![[r#"
        flow [0 1]
        flow [0 1]
        flow [0 1]
        flow [0 1]"#]]
    .assert_eq(&side_by_side(&OF_LIBRARY.replace('%', body)));
}

#[test]
fn branches_that_change_an_atom_of_the_library_do_not_see_other_runs() {
    let body = "(flow/pmap (fn [n]
                  (work)
                  (swap! all assoc-in [:parents (keyword (str \"n\" n))] #{:x})
                  (work)
                  (known))
                [1 2 3])";
    let report = side_by_side(&OF_LIBRARY.replace('%', body));
    let lines: Vec<&str> = report.lines().collect();
    assert_eq!(lines.len(), 4, "{report}");
    assert!(lines.iter().all(|line| *line == lines[0]), "{report}");
}

#[test]
fn runs_that_ask_what_is_loaded_do_not_see_one_another() {
    let text = "(let [before (nil? (find-ns 'clojure.walk))]
                  (reduce + (range 300000))
                  (clojure.walk/keywordize-keys {\"a\" 1})
                  [before (str (gensym))])";
    let report = side_by_side(text);
    let lines: Vec<&str> = report.lines().collect();
    assert_eq!(lines.len(), 4, "{report}");
    assert!(lines.iter().all(|line| *line == lines[0]), "{report}");
}

#[test]
fn an_interrupted_worker_gives_back_its_leases() {
    let shop = Shop::new("2026-05-01T00:00:00Z");
    let run = shop.leave("[:later]");
    let interrupt = Interrupt::new();
    interrupt.trigger();
    expect![""].assert_eq(&shop.work_as(1, interrupt));
    assert_eq!(shop.status(&run), RunStatus::Running);
    expect!["flow [:later]"].assert_eq(&shop.work());
}

#[test]
fn a_worker_performs_the_daily_upkeep() {
    let shop = Shop::new("2026-05-01T00:00:00Z");
    let run = shop.leave("[:old]");
    shop.work();
    let pruned = || {
        let row = block_on(shop.stores().runs.find(&run)).expect("it is read");
        row.expect("a run").pruned_ms.is_some()
    };
    shop.at("2026-05-01T12:00:00Z");
    shop.work();
    assert!(!pruned());
    shop.at("2026-07-01T00:00:00Z");
    shop.work();
    assert!(pruned());
}

/// Returns a flow with one schedule.
fn scheduled(schedule: &str) -> String {
    format!(
        "{{:slug :it :name \"It\" :concurrency {{:type :singleton :on-new-version :coexist}}
           :invocations {{:default {{:inputs []}}}} :schedules [{{:id :job {schedule}}}] :flow '[:ran]}}"
    )
}

#[test]
fn schedules_start_runs_once() {
    let shop = Shop::new("2026-05-01T08:00:00Z");
    shop.write(
        "it.edn",
        &scheduled(":cron \"0 9 * * *\" :timezone \"Europe/Berlin\""),
    );
    expect![""].assert_eq(&shop.work());
    shop.at("2026-05-02T07:00:00Z");
    expect![[r#"
        it [:ran]
        job 2026-05-02T07:00:00.000Z"#]]
    .assert_eq(&shop.work());
    expect![""].assert_eq(&shop.work());
    // The clock is set back: a tick that has run does not run again.
    shop.at("2026-05-01T12:00:00Z");
    expect![""].assert_eq(&shop.work());
    shop.at("2026-05-02T07:00:10Z");
    let report = shop.work();
    assert!(!report.contains("[:ran]"), "{report}");
}

#[test]
fn schedules_obey_the_rules_of_their_flow() {
    for (policy, last) in [(":queue", "queued"), (":reject", "E05")] {
        let shop = Shop::new("2026-05-01T08:00:00Z");
        let text = scheduled(":every \"1h\"")
            .replace(":coexist}", &format!(":supersede :on-conflict {policy}}}"))
            .replace("[:ran]", "(flow/step :gate :door {})");
        shop.write("it.edn", &text);
        shop.work();
        for moment in ["2026-05-01T09:00:00Z", "2026-05-01T10:00:00Z"] {
            shop.at(moment);
            shop.work();
        }
        let engine = shop.engine(shop.stores());
        let known = block_on(engine.schedules()).expect("schedules");
        let outcome = known[0].outcome().expect("an outcome");
        assert!(outcome.starts_with(last), "{policy}: {outcome}");
        let runs = block_on(engine.list_runs(RunFilter::default())).expect("runs");
        let live = runs.iter().filter(|run| run.status == RunStatus::Waiting);
        assert_eq!(live.count(), 1, "{policy}");
    }
}

#[test]
fn missed_ticks_follow_the_catch_up_policy() {
    for (policy, expected) in [
        ("", expect!["it [:ran]\njob 2026-05-01T12:00:00.000Z"]),
        (":catch-up :skip", expect![""]),
        (
            ":catch-up :all",
            expect![[r#"
                it [:ran]
                it [:ran]
                it [:ran]
                job 2026-05-01T10:00:00.000Z
                job 2026-05-01T11:00:00.000Z
                job 2026-05-01T12:00:00.000Z"#]],
        ),
    ] {
        let shop = Shop::new("2026-05-01T09:30:00Z");
        let text = scheduled(&format!(":cron \"0 * * * *\" {policy}"));
        shop.write(
            "it.edn",
            &text.replace(
                ":concurrency {:type :singleton :on-new-version :coexist}",
                "",
            ),
        );
        expect![""].assert_eq(&shop.work());
        shop.at("2026-05-01T12:30:00Z");
        expected.assert_eq(&shop.work());
    }
}

#[test]
fn edited_flow_files_replace_schedules_and_broken_ones_do_not() {
    let shop = Shop::new("2026-05-01T09:30:00Z");
    shop.write("it.edn", &scheduled(":every \"1h\""));
    expect![""].assert_eq(&shop.work());
    let next = |shop: &Shop| {
        let rows = block_on(shop.stores().agenda.schedules()).expect("rows");
        rows.first().and_then(|row| row.next_ms).map(codec::instant)
    };
    assert_eq!(next(&shop).as_deref(), Some("2026-05-01T10:00:00.000Z"));
    shop.write("it.edn", &scheduled(":every \"2h\""));
    expect![""].assert_eq(&shop.work());
    assert_eq!(next(&shop).as_deref(), Some("2026-05-01T10:00:00.000Z"));
    shop.write("it.edn", &scheduled(":every \"2h\" :enabled false"));
    expect![""].assert_eq(&shop.work());
    assert_eq!(next(&shop), None);
    shop.write("it.edn", &scheduled(":cron \"0 25 * * *\""));
    expect!["broken E0461"].assert_eq(&shop.work());
}
