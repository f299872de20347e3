//! Failures around a run, and the guarantees that hold then. `docs/guide/failures.md` describes them.

use std::path::PathBuf;

use flowstone_engine::ids::RunId;
use flowstone_engine::ports::{StoreError, Stores, WaitFilter};
use flowstone_engine::{Engine, ExecuteOptions, Stay};
use flowstone_lang::value::Value;
use flowstone_stores::{Options, open};

use crate::bench::{Bench, block_on, execute, outcome, outcome_text};
use crate::lossy::{self, Trouble};

/// Executes a run without waiting for its timers.
fn pass(engine: &Engine, run: &RunId) -> String {
    let options = ExecuteOptions {
        stay: Stay::No,
        ..ExecuteOptions::default()
    };
    let observer = std::rc::Rc::new(flowstone_engine::observer::NoObserver);
    outcome_text(&block_on(engine.execute(run, observer, options)))
}

fn answer(engine: &Engine, target: &str, action: &str, keep: bool) -> String {
    let payload = Value::map([(Value::keyword("action"), Value::keyword(action))]);
    match block_on(engine.complete_wait(target, &payload, keep)) {
        Ok(answered) => format!("{answered:?}")
            .split(['(', ' '])
            .next()
            .unwrap_or_default()
            .to_owned(),
        Err(error) => error.code().to_owned(),
    }
}

#[test]
fn a_token_counts_for_one_approval() {
    let bench = Bench::new();
    let engine = bench.engine();
    let run = bench.start(&engine, "(:action (flow/step :hold :door {}))");
    assert!(outcome(&engine, &run).starts_with("waiting"));
    let waits = block_on(engine.list_waits(WaitFilter::default())).expect("waits");
    let token = block_on(engine.stores().waits.token(&waits[0].id))
        .expect("read")
        .expect("a token");
    assert_eq!(answer(&engine, &token, "approve", false), "Runs");
    // Also from another process, and before the run has taken the first answer.
    assert_eq!(answer(&bench.engine(), &token, "reject", false), "E0515");
    assert_eq!(outcome(&engine, &run), ":approve");
    assert_eq!(answer(&engine, &token, "reject", false), "E0515");
}

#[test]
fn a_signal_before_its_wait_is_kept_for_it() {
    let bench = Bench::new();
    let engine = bench.engine();
    assert_eq!(answer(&engine, "door", "approve", false), "E0514");
    assert_eq!(answer(&engine, "door", "approve", true), "Kept");
    let run = bench.start(&engine, "(:action (flow/step :hold :door {}))");
    assert_eq!(outcome(&engine, &run), ":approve");
    // The token is used up.
    let run = bench.start(&engine, "(:action (flow/step :hold :door {}))");
    assert!(outcome(&engine, &run).starts_with("waiting"));
}

const SLEEP: &str = "(let [a (flow/now-ms)
      s (flow/step :pause :nap {:times 60000})
      w (flow/step :write :after {:value 1})
      b (flow/now-ms)]
  [s w (- b a)])";

#[test]
fn a_timer_that_expired_while_no_process_ran_fires_late() {
    let bench = Bench::new();
    let engine = bench.engine();
    let run = bench.start(&engine, SLEEP);
    assert!(pass(&engine, &run).starts_with("waiting"));
    drop(engine);
    bench.clock.advance(86_400_000);
    let engine = bench.engine();
    let resumable = block_on(engine.resumable()).expect("listed");
    assert_eq!(resumable.len(), 1);
    assert_eq!(pass(&engine, &run), "[:slept 1 86400000]");
    assert_eq!(bench.effects(), "after=1");
}

#[test]
fn timers_fire_once_after_the_clock_jumps_back() {
    let bench = Bench::new();
    let engine = bench.engine();
    let run = bench.start(&engine, SLEEP);
    assert!(pass(&engine, &run).starts_with("waiting"));
    bench.clock.advance(-3_600_000);
    // The run is not due, however often the list is read.
    assert!(block_on(engine.resumable()).expect("listed").is_empty());
    assert!(pass(&engine, &run).starts_with("waiting"));
    bench.clock.advance(60_001);
    assert!(pass(&engine, &run).starts_with("waiting"));
    bench.clock.advance(3_600_000);
    assert_eq!(pass(&engine, &run), "[:slept 1 60001]");
    bench.clock.advance(-100_000);
    assert_eq!(pass(&engine, &run), "[:slept 1 60001]");
    assert_eq!(bench.effects(), "after=1");
}

#[test]
fn time_in_a_run_does_not_go_back() {
    let bench = Bench::new();
    let engine = bench.engine();
    let run = bench.start(
        &engine,
        "(let [a (flow/now-ms) x (flow/step :hold :door {}) b (flow/now-ms)] [(- b a) (:action x)])",
    );
    assert!(outcome(&engine, &run).starts_with("waiting"));
    bench.clock.advance(-500_000);
    assert_eq!(answer(&engine, "door", "approve", false), "Runs");
    assert_eq!(outcome(&bench.engine(), &run), "[0 :approve]");
}

/// Returns a home folder on the file layer that can fail.
fn troubled(bench: &Bench) -> (PathBuf, Options) {
    let home = bench
        .home
        .path()
        .canonicalize()
        .expect("a path")
        .join("home");
    lossy::trouble(&home, Trouble::None);
    let options = Options {
        vfs: Some(lossy::NAME.to_owned()),
        ..Options::default()
    };
    (home, options)
}

const WRITES: &str = "(loop [n 0]
  (if (< n 20)
    (do (flow/step :write :w {:value n :on-doubt :retry})
        (flow/step :put :p {:value n})
        (recur (inc n)))
    (count (:value (flow/step :put :p {:value :last})))))";

fn kept(stores: &Stores) -> usize {
    let text = block_on(stores.kv.get("all", 0)).expect("read");
    text.map_or(0, |text| text.split_whitespace().count())
}

/// The run stops with the error; when the failure is over it resumes, and nothing is lost or done twice.
fn survives(trouble: Trouble, code: &str) {
    let bench = Bench::new();
    let (home, options) = troubled(&bench);
    let stores = open(&home, &options).expect("it opens");
    let engine = bench.engine_over(stores.clone());
    let run = bench.start(&engine, WRITES);
    // From the middle of the run on, nothing can be written.
    let watch = std::rc::Rc::new(AtStep {
        step: "w#10",
        home: home.clone(),
        trouble,
    });
    let first = outcome_text(&block_on(engine.execute(
        &run,
        watch,
        ExecuteOptions::default(),
    )));
    assert!(first.contains(code), "{first}");
    let begun = |path: &str| {
        bench
            .effects()
            .split(' ')
            .any(|effect| effect.starts_with(&format!("{path}=")))
    };
    assert!(begun("w#9") && !begun("w#12"), "{}", bench.effects());
    // Trying again does not help.
    let again = outcome_text(&execute(&engine, &run));
    assert!(again.contains(code), "{again}");
    // The stored part can be read.
    assert!(kept(&stores) >= 8);
    lossy::trouble(&home, Trouble::None);
    drop((engine, stores));
    let stores = open(&home, &options).expect("it opens");
    let engine = bench.engine_over(stores.clone());
    let last = outcome(&engine, &run);
    assert!(
        !last.starts_with("error") && !last.starts_with("failed"),
        "{last}"
    );
    assert_eq!(kept(&stores), 21, "every change once");
    let again: Vec<String> = bench
        .effects()
        .split(' ')
        .filter(|effect| !effect.ends_with("=1"))
        .map(str::to_owned)
        .collect();
    assert!(again.len() <= 1, "{again:?}");
}

/// Causes a failure when a step begins.
struct AtStep {
    step: &'static str,
    home: PathBuf,
    trouble: Trouble,
}

impl flowstone_engine::observer::Observer for AtStep {
    fn event(&self, _run: &RunId, event: &flowstone_engine::observer::RunEvent) {
        if let flowstone_engine::observer::RunEvent::StepStarted(step) = event
            && step.path.to_string() == self.step
        {
            lossy::trouble(&self.home, self.trouble);
        }
    }
}

#[test]
fn a_full_disk_stops_a_run_and_loses_nothing() {
    survives(Trouble::Full, "E0606");
}

#[test]
fn a_failing_disk_stops_a_run_and_loses_nothing() {
    survives(Trouble::Broken, "E0608");
}

#[test]
fn a_read_only_database_is_an_error_at_the_start() {
    let bench = Bench::new();
    let (home, options) = troubled(&bench);
    drop(open(&home, &options).expect("it opens"));
    let before = std::fs::read(home.join("flowstone.db")).expect("read");
    lossy::trouble(&home, Trouble::ReadOnly);
    let error = open(&home, &options)
        .map(drop)
        .expect_err("it may only be read");
    assert!(matches!(error, StoreError::ReadOnly { .. }), "{error}");
    assert_eq!(
        std::fs::read(home.join("flowstone.db")).expect("read"),
        before
    );
}

#[test]
fn a_file_in_place_of_the_home_is_an_error_at_the_start() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("file");
    std::fs::write(&file, "mine").expect("a file");
    let is_database = folder.path().join("home");
    std::fs::create_dir_all(is_database.join("flowstone.db")).expect("a folder");
    for home in [&file, &is_database] {
        let error = open(home, &Options::default())
            .map(drop)
            .expect_err("no home");
        assert_eq!(error.code(), "E0604", "{error}");
    }
    assert_eq!(std::fs::read_to_string(&file).expect("read"), "mine");
}

/// Wherever the space ends in a large write, the table is unchanged; with enough space, the same write succeeds.
#[test]
fn rows_that_do_not_fit_are_not_written_in_part() {
    use flowstone_engine::table::{Cell, TableName, TableOp, TableTarget, WriteMode, WriteRows};

    let bench = Bench::new();
    let (home, options) = troubled(&bench);
    let stores = open(&home, &options).expect("it opens");
    let write = |count: i64| {
        let row = |n| {
            vec![
                ("id".to_owned(), Cell::Long(n)),
                ("text".to_owned(), Cell::Text("x".repeat(400))),
            ]
        };
        let write = TableOp::Write(WriteRows {
            table: TableTarget::from(TableName::Name("t".to_owned())),
            rows: (0..count).map(row).collect(),
            mode: WriteMode::Upsert,
            key_fields: vec!["id".to_owned()],
            index_fields: vec!["text".to_owned()],
        });
        block_on(stores.tables.apply(write, 0))
    };
    for space in [0, 1, 7, 100, 1000] {
        lossy::trouble(&home, Trouble::FullAfter(space));
        let error = write(20_000).expect_err("no space");
        assert_eq!(error.code(), "E0606", "after {space} writes: {error}");
        lossy::trouble(&home, Trouble::None);
        assert_eq!(
            block_on(stores.tables.names()).expect("read"),
            [""; 0],
            "after {space} writes"
        );
    }
    let written = write(10).expect("written");
    assert!(written.contains(":row-count 10"), "{written}");
    lossy::trouble(&home, Trouble::FullAfter(100));
    write(20_000).expect_err("no space");
    lossy::trouble(&home, Trouble::None);
    let written = write(11).expect("written");
    assert!(
        written.contains(":rows-inserted 1") && written.contains(":row-count 11"),
        "{written}"
    );
}
