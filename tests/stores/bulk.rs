//! Several starts in one call: all of them, or none.

use flowstone_engine::ports::{RunFilter, RunStatus};
use flowstone_engine::{BulkStart, Engine, EngineError, StartOptions, Started, codec};
use flowstone_flow::flow::LoadedFlow;

use super::STORE;
use crate::bench::{Bench, block_on, outcome};

const FLOW: &str =
    "{:slug :work :invocations {:default {:inputs [{:name :n :type :number :required true}]}}
                      :flow '(* 2 (:n (flow/input)))}";

fn start<'a>(flow: &'a LoadedFlow, input: &str) -> BulkStart<'a> {
    BulkStart {
        loaded: flow,
        options: StartOptions {
            is_left: true,
            ..StartOptions::with_input(codec::decode(input).expect("EDN"))
        },
    }
}

fn submit(
    engine: &Engine,
    flow: &LoadedFlow,
    inputs: &[&str],
) -> Result<Vec<Started>, EngineError> {
    let starts = inputs.iter().map(|input| start(flow, input)).collect();
    block_on(engine.submit_many(starts))
}

fn count(engine: &Engine) -> usize {
    let runs = block_on(engine.list_runs(RunFilter::default()));
    runs.expect("runs").len()
}

fn statuses(started: &[Started]) -> String {
    let names: Vec<&str> = started.iter().map(|it| it.status.name()).collect();
    names.join(" ")
}

#[test]
fn runs_start_in_the_order_of_their_inputs() {
    let bench = Bench::over(STORE);
    let engine = bench.engine();
    let flow = bench.flow(FLOW);
    let started = submit(&engine, &flow, &["{:n 1}", "{:n 2}", "{\"n\" 3}"]).expect("started");
    assert_eq!(statuses(&started), "running running running");
    let outcomes: Vec<String> = started
        .iter()
        .map(|started| outcome(&engine, &started.run.run))
        .collect();
    assert_eq!(outcomes, ["2", "4", "6"]);
}

#[test]
fn one_wrong_input_starts_nothing_and_each_is_named() {
    let bench = Bench::over(STORE);
    let engine = bench.engine();
    let flow = bench.flow(FLOW);
    let error = submit(&engine, &flow, &["{:n 1}", "{}", "{:n 2}", "{:n \"x\"}"]);
    let error = error.expect_err("refused");
    assert_eq!(error.code(), "E0542");
    let EngineError::BadStarts { errors } = &error else {
        panic!("{error:?}");
    };
    let places: Vec<usize> = errors.iter().map(|(idx, _)| *idx).collect();
    assert_eq!(places, [1, 3]);
    assert!(error.to_string().contains("1: missing required"), "{error}");
    assert_eq!(count(&engine), 0);
    let many = vec!["{:n 1}"; 1001];
    let error = submit(&engine, &flow, &many).expect_err("refused");
    assert_eq!((error.code(), count(&engine)), ("E0543", 0));
}

#[test]
fn a_refused_start_rolls_back_the_starts_before_it() {
    let bench = Bench::over(STORE);
    let engine = bench.engine();
    let flow = bench.flow(
        "{:slug :work :concurrency {:type :keyed :key-field :k :on-conflict :reject} :flow '1}",
    );
    let error = submit(&engine, &flow, &["{:k 1}", "{:k 2}", "{:k 1}"]).expect_err("refused");
    let EngineError::BadStarts { errors } = &error else {
        panic!("{error:?}");
    };
    assert_eq!(
        (errors.len(), errors[0].0, errors[0].1.code()),
        (1, 2, "E0555")
    );
    assert_eq!(count(&engine), 0);
    // The refused transaction left nothing behind.
    let started = submit(&engine, &flow, &["{:k 1}", "{:k 2}"]).expect("started");
    assert_eq!(
        (statuses(&started).as_str(), count(&engine)),
        ("running running", 2)
    );
}

#[test]
fn queued_and_existing_runs_are_reported() {
    let bench = Bench::over(STORE);
    let engine = bench.engine();
    let flow = bench.flow("{:slug :work :concurrency {:type :singleton} :flow '1}");
    let started = submit(&engine, &flow, &["{}", "{}", "{}"]).expect("started");
    assert_eq!(statuses(&started), "running queued queued");
    let plain = bench.flow(FLOW);
    let named = || {
        let mut named = start(&plain, "{:n 4}");
        named.options.external_id = Some("four".to_owned());
        named
    };
    let first = block_on(engine.submit_many(vec![named(), named()])).expect("started");
    assert_eq!(first[0].run.run, first[1].run.run);
    assert_eq!(outcome(&engine, &first[0].run.run), "8");
    let again = block_on(engine.submit_many(vec![named()])).expect("started");
    assert_eq!(again[0].status, RunStatus::Completed);
}
