//! Deliveries: started once, however often they arrive, and after a crash.

use flowstone_engine::StartOptions;
use flowstone_engine::Submitted;
use flowstone_engine::ports::{NewReceipt, RunFilter};
use flowstone_lang::value::Value;

use super::STORE;
use crate::bench::{Bench, block_on};

const FLOW: &str = "{:slug :paid :flow '(:order (flow/input))}";
const REJECTING: &str = "{:slug :alone :concurrency {:type :singleton :on-conflict :reject}
  :flow '(flow/step :wait :go {:key \"go\"})}";

fn receipt(bench: &Bench, key: &str) -> NewReceipt {
    NewReceipt {
        scope: "hook".to_owned(),
        key: key.to_owned(),
        digest: "d1".to_owned(),
        until_ms: bench.clock_ms() + 60_000,
    }
}

fn options() -> StartOptions {
    StartOptions {
        is_left: true,
        ..StartOptions::with_input(Value::map([(Value::keyword("order"), Value::Int(7))]))
    }
}

fn submit(bench: &Bench, flow: &str, keys: &[&str]) -> Submitted {
    let engine = bench.engine();
    let loaded = bench.flow(flow);
    let receipts = keys.iter().map(|key| receipt(bench, key)).collect();
    block_on(engine.submit_once(&loaded, options(), receipts)).expect("the store answers")
}

fn count(bench: &Bench) -> usize {
    let runs = block_on(bench.engine().list_runs(RunFilter::default()));
    runs.expect("a list").len()
}

#[test]
fn a_repeated_delivery_starts_nothing() {
    let bench = Bench::over(STORE);
    let Submitted::Started(started) = submit(&bench, FLOW, &["a", "b"]) else {
        panic!("the first one starts a run");
    };
    for keys in [&["a"][..], &["b"], &["c", "a"]] {
        let Submitted::Known(past) = submit(&bench, FLOW, keys) else {
            panic!("{keys:?} is known");
        };
        assert_eq!(past.runs, std::slice::from_ref(&started.run));
        assert_eq!(past.digest, "d1");
    }
    assert_eq!(count(&bench), 1);
    // A key that arrived with a duplicate was not recorded.
    assert!(matches!(
        submit(&bench, FLOW, &["c"]),
        Submitted::Started(_)
    ));
    bench.clock.advance(60_000);
    assert!(matches!(
        submit(&bench, FLOW, &["a"]),
        Submitted::Started(_)
    ));
    assert_eq!(count(&bench), 3);
}

#[test]
fn a_start_that_is_refused_leaves_no_receipt() {
    let bench = Bench::over(STORE);
    let engine = bench.engine();
    let loaded = bench.flow(REJECTING);
    let start = |key: &str| {
        let receipts = vec![receipt(&bench, key)];
        block_on(engine.submit_once(&loaded, options(), receipts))
    };
    let Ok(Submitted::Started(first)) = start("a") else {
        panic!("the first one starts a run");
    };
    assert_eq!(start("b").expect_err("refused").code(), "E0555");
    block_on(engine.request_end(&first.run, "enough")).expect("ended");
    assert!(matches!(start("b"), Ok(Submitted::Started(_))));
}
