//! Numbers for figures about a server: the same from each store.

use flowstone_engine::ports::{Counts, JobStatus, RunStatus, WaitKind};

use super::STORE;
use crate::bench::{Bench, block_on, execute};

const WAITS: [&str; 4] = [
    "{:slug :signal :flow '(flow/step :wait :w {:key \"go\" :timeout \"1h\"})}",
    "{:slug :event :flow '(flow/step :wait :w {:event {:name \"paid\"} :timeout \"1h\"})}",
    "{:slug :approval :flow '(flow/step :wait :w {:key \"a\" :approval {:actions [:approve :reject]}})}",
    "{:slug :hook :flow '(flow/step :wait :w {:key \"h\" :webhook {:path \"cb\"} :timeout \"1h\"})}",
];
const JOBS: &str = "{:slug :jobs :flow '(flow/step :job :all
  {:op :submit-batch :job-type :image :jobs [{:payload 1} {:payload 2}]})}";

fn counts(bench: &Bench) -> Counts {
    let stores = bench.stores();
    let mut counts = block_on(stores.upkeep.counts()).expect("the store answers");
    counts.runs.sort_by_key(|(status, _)| status.name());
    counts.waits.sort_unstable();
    counts
}

#[test]
fn live_runs_open_waits_and_jobs_are_counted() {
    let bench = Bench::over(STORE);
    let engine = bench.engine();
    for flow in WAITS {
        let run = bench.start(&engine, flow);
        execute(&engine, &run).expect("it waits");
    }
    let run = bench.start(&engine, JOBS);
    execute(&engine, &run).expect("it ends");
    let counts = counts(&bench);
    assert_eq!(counts.runs, [(RunStatus::Waiting, 4)]);
    let kinds = [
        (WaitKind::Approval, 1),
        (WaitKind::Event, 1),
        (WaitKind::Signal, 1),
        (WaitKind::Webhook, 1),
    ];
    assert_eq!(counts.waits, kinds);
    assert_eq!(counts.jobs, [("image".to_owned(), JobStatus::Queued, 2)]);
}

#[test]
fn an_empty_store_counts_nothing() {
    let bench = Bench::over(STORE);
    let counts = counts(&bench);
    assert_eq!((counts.runs, counts.waits, counts.jobs), Default::default());
    assert_eq!(counts.commits.queued, 0);
}
