//! Numbers for figures about a server: the same from each store.

use flowstone_engine::ports::{Counts, JobStatus, RunStatus, WaitKind};

use super::STORE;
use crate::bench::{Bench, block_on, outcome};

const HOLD: &str = "(:action (flow/step :hold :door {}))";
const WORK: &str =
    "(let [job (flow/step :job :work {:op :submit :job-type \"image\" :payload {:n 1}})]
  (flow/step :job :done {:op :await :job-id (:job-id job) :timeout \"2h\"}))";

fn counts(bench: &Bench) -> Counts {
    let stores = bench.stores();
    let mut counts = block_on(stores.upkeep.counts()).expect("the store answers");
    counts.waits.sort_unstable();
    counts
}

#[test]
fn live_runs_open_waits_and_jobs_are_counted() {
    let bench = Bench::over(STORE);
    let engine = bench.engine();
    for body in [HOLD, HOLD, WORK, "1"] {
        let run = bench.start(&engine, body);
        outcome(&engine, &run);
    }
    let counts = counts(&bench);
    assert_eq!(counts.runs, [(RunStatus::Waiting, 3)]);
    assert_eq!(counts.waits, [(WaitKind::Job, 1), (WaitKind::Signal, 2)]);
    assert_eq!(counts.jobs, [("image".to_owned(), JobStatus::Queued, 1)]);
}

#[test]
fn an_empty_store_counts_nothing() {
    let bench = Bench::over(STORE);
    let counts = counts(&bench);
    assert_eq!((counts.runs, counts.waits, counts.jobs), Default::default());
}
