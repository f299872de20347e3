//! Unreferenced data is removed; referenced data stays, whatever happens in between.

use std::time::Duration;

use expect_test::expect;
use flowstone_engine::ids::RunId;
use flowstone_engine::ports::{Removed, SignalFilter, Target};
use flowstone_engine::waits::Answering;
use flowstone_engine::{Engine, EngineError, GcOptions, GcReport, Interrupt, Retention, codec};
use proptest::prelude::*;

use super::STORE;
use crate::bench::{Bench, Store, block_on, outcome};

pub const DAY: i64 = 86_400_000;
const LARGE: &str = "(flow/step :pure :large {:value (apply str (repeat 20000 \"x\"))})";
const ASK: &str = "[(flow/step :pure :large {:value (apply str (repeat 20000 \"x\"))}) (flow/step :hold :door {})]";

pub fn gc(engine: &Engine, days: u64) -> GcReport {
    let options = GcOptions {
        retention: Retention {
            journal: Some(Duration::from_secs(days * 86_400)),
            ..Retention::default()
        },
        ..GcOptions::default()
    };
    block_on(engine.collect_garbage(&options)).expect("it is collected")
}

fn entries(engine: &Engine, run: &RunId) -> usize {
    block_on(engine.stores().journal.load(run))
        .expect("a journal")
        .len()
}

#[test]
fn old_journals_are_removed_and_run_rows_kept() {
    let bench = Bench::over(STORE);
    let engine = bench.engine();
    let old = bench.start(&engine, LARGE);
    let first = outcome(&engine, &old);
    let waiting = bench.start(&engine, ASK);
    outcome(&engine, &waiting);
    bench.clock.advance(10 * DAY);
    let young = bench.start(&engine, LARGE);
    outcome(&engine, &young);

    let dry = GcOptions {
        retention: Retention {
            journal: Some(Duration::from_secs(5 * 86_400)),
            ..Retention::default()
        },
        dry_run: true,
        ..GcOptions::default()
    };
    let would = block_on(engine.collect_garbage(&dry)).expect("it is counted");
    assert_eq!((would.runs.len(), entries(&engine, &old)), (1, 1));
    let report = gc(&engine, 5);
    assert_eq!(report.runs, std::slice::from_ref(&old));
    assert_eq!(report.entries, would.entries);
    // The recent run and the waiting one have the same large value.
    assert_eq!(report.payloads, Removed::default());
    let left: Vec<usize> = [&old, &waiting, &young]
        .map(|run| entries(&engine, run))
        .to_vec();
    assert_eq!(left, [0, 2, 1]);
    let row = block_on(engine.find_run(old.as_str())).expect("a row");
    assert!(row.pruned_ms.is_some() && row.result.is_some());
    assert!(first.contains("xxx"));
    let exported = block_on(engine.export_run(&old, false));
    assert!(matches!(exported, Err(EngineError::Pruned { .. })));
    let compared = block_on(engine.compare_runs(&old, &young));
    assert!(matches!(compared, Err(EngineError::Pruned { .. })));

    bench.clock.advance(10 * DAY);
    let report = gc(&engine, 5);
    assert_eq!(report.runs, [young]);
    assert_eq!(report.payloads.count, 0, "the waiting run has it");
    assert_eq!(gc(&engine, 5).runs, []);
    let cancelled = block_on(engine.stores().runs.terminate(&waiting, "enough", 0));
    cancelled.expect("it ends");
    bench.clock.advance(10 * DAY);
    let report = gc(&engine, 5);
    // In memory, values are stored in their entries.
    let kept_apart = match STORE {
        Store::Memory => 0,
        Store::Sqlite => 1,
    };
    assert_eq!(report.runs.len(), 1);
    assert_eq!(report.payloads.count, kept_apart);
}

#[test]
fn retention_keeps_the_last_runs_and_those_within_the_limit() {
    let bench = Bench::over(STORE);
    let engine = bench.engine();
    let mut runs = Vec::new();
    for number in 0..6 {
        let text =
            format!("(flow/step :pure :one {{:value (apply str (repeat 5000 \"{number}\"))}})");
        let run = bench.start(&engine, &text);
        outcome(&engine, &run);
        bench.clock.advance(1000);
        runs.push(run);
    }
    let collect = |retention: Retention, limit: usize| {
        let options = GcOptions {
            retention,
            limit,
            dry_run: true,
            ..GcOptions::default()
        };
        let report = block_on(engine.collect_garbage(&options)).expect("it is counted");
        let numbers = report
            .runs
            .iter()
            .map(|run| runs.iter().position(|it| it == run));
        let numbers: Vec<String> = numbers
            .map(|at| at.expect("one of them").to_string())
            .collect();
        numbers.join(" ")
    };
    let all = Retention {
        journal: Some(Duration::ZERO),
        ..Retention::default()
    };
    expect!["5 4 3 2 1 0"].assert_eq(&collect(all.clone(), 0));
    expect!["1 0"].assert_eq(&collect(all.clone(), 2));
    let keep = Retention {
        keep_last: 4,
        ..all
    };
    expect!["1 0"].assert_eq(&collect(keep.clone(), 0));
    let used = block_on(engine.stores().upkeep.usage()).expect("usage");
    let small = Retention {
        journal: None,
        keep_last: 0,
        max_bytes: Some(used.file_bytes - used.free_bytes - 6000),
        runs: None,
    };
    expect!["1 0"].assert_eq(&collect(small, 0));
    expect![""].assert_eq(&collect(Retention::default(), 0));
}

#[test]
fn rows_are_removed_on_request() {
    let bench = Bench::over(STORE);
    let engine = bench.engine();
    let run = bench.start(&engine, LARGE);
    outcome(&engine, &run);
    bench.clock.advance(10 * DAY);
    let options = GcOptions {
        retention: Retention {
            journal: Some(Duration::from_secs(86_400)),
            runs: Some(Duration::from_secs(5 * 86_400)),
            ..Retention::default()
        },
        ..GcOptions::default()
    };
    let report = block_on(engine.collect_garbage(&options)).expect("it is collected");
    assert_eq!((report.forgotten, report.programs.count), (1, 1));
    assert_eq!(
        block_on(engine.find_run(run.as_str()))
            .expect_err("gone")
            .code(),
        "E0502"
    );
}

#[test]
fn daily_upkeep_runs_at_most_once() {
    let bench = Bench::over(STORE);
    let engine = bench.engine();
    let run = bench.start(&engine, LARGE);
    outcome(&engine, &run);
    let daily = || block_on(engine.collect_garbage_daily(&Interrupt::new()));
    assert!(daily().is_some());
    bench.clock.advance(DAY / 2);
    assert!(daily().is_none());
    bench.clock.advance(40 * DAY);
    assert_eq!(daily().expect("it is time").runs, [run]);
}

#[test]
fn consumed_signals_are_removed_and_others_kept() {
    let bench = Bench::over(STORE);
    let engine = bench.engine();
    let send = |key: &str, name: &str| {
        let how = Answering {
            keep: true,
            dedup: Some(name.to_owned()),
            ..Answering::default()
        };
        let payload = codec::decode("{:action :go}").expect("EDN");
        block_on(engine.answer_waits(Target::Name(key.to_owned()), &payload, how)).expect("sent");
    };
    let run = bench.start(&engine, "(flow/step :hold :door {})");
    outcome(&engine, &run);
    send("door", "a");
    outcome(&engine, &run);
    send("later", "b");
    bench.clock.advance(4 * DAY);
    assert_eq!(gc(&engine, 5).signals, 0);
    bench.clock.advance(2 * DAY);
    assert_eq!(gc(&engine, 5).signals, 1);
    assert_eq!(gc(&engine, 5).signals, 0);
    let kept = block_on(engine.list_signals(SignalFilter::default())).expect("signals");
    assert_eq!(kept.len(), 1);
    assert_eq!(kept[0].key.as_deref(), Some("later"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// For any set of runs and any number of collections: a run that is not over replays and resumes, and one that is
    /// over keeps its result.
    #[test]
    fn live_runs_lose_nothing(
        kinds in prop::collection::vec((0_usize..4, 0_i64..20), 1..8),
        days in 0_u64..15,
        keep_last in 0_usize..3,
    ) {
        let bench = Bench::over(STORE);
        let engine = bench.engine();
        let mut runs = Vec::new();
        for (kind, pause) in kinds {
            // Two runs that end, two that wait; they share large values.
            let text = [LARGE, "(flow/step :write :w {:value (apply str (repeat 9000 \"y\"))})", ASK,
                        "[(flow/step :look :l {:value (apply str (repeat 9000 \"y\"))}) (flow/step :hold :door {})]"][kind];
            let run = bench.start(&engine, text);
            runs.push((kind, outcome(&engine, &run), run));
            bench.clock.advance(pause * DAY);
            let options = GcOptions {
                retention: Retention {
                    journal: Some(Duration::from_secs(days * 86_400)),
                    keep_last,
                    ..Retention::default()
                },
                ..GcOptions::default()
            };
            block_on(engine.collect_garbage(&options)).expect("it is collected");
        }
        drop(engine);
        let engine = bench.engine();
        for (kind, first, run) in &runs {
            let row = block_on(engine.find_run(run.as_str())).expect("a row");
            if *kind < 2 {
                prop_assert_eq!(row.result.as_ref(), Some(first));
            } else {
                prop_assert!(row.pruned_ms.is_none());
            }
            // The journal is complete or removed, never in between.
            let expected = [1, 2, 2, 2][*kind];
            let found = entries(&engine, run);
            prop_assert!(found == expected || (row.pruned_ms.is_some() && found == 0), "{} of {}", found, expected);
            if row.pruned_ms.is_none() {
                prop_assert_eq!(&outcome(&engine, run), first);
            }
        }
    }
}
