//! Schedules of installed flows: whose runs they start, and when they begin, move and end.

use std::rc::Rc;
use std::sync::Arc;

use flowstone_engine::installation::InstallationName;
use flowstone_engine::observer::{NoObserver, Observer};
use flowstone_engine::ports::{Clock as _, RunFilter};
use flowstone_engine::registry::FlowName;
use flowstone_engine::triggers::MINUTE_MS;
use flowstone_engine::worker::{Planner, Watch, WorkerEvent};
use flowstone_lang::value::Value;
use flowstone_project::installations::{self, Changes, NewInstallation};
use flowstone_project::registry::{Base, FlowRegistry, NewCommit, VersionFiles};

use super::STORE;
use crate::bench::{Bench, block_on, outcome};

/// 2026-05-04T09:00:00Z, a Monday.
const MONDAY_MS: i64 = 1_777_885_200_000;

struct NoWatch;

impl Watch for NoWatch {
    fn event(&self, _: &WorkerEvent<'_>) {}

    fn observer(&self) -> Rc<dyn Observer> {
        Rc::new(NoObserver)
    }
}

fn at() -> InstallationName {
    InstallationName {
        workspace: "acme".to_owned(),
        name: "main".to_owned(),
    }
}

/// Releases a version whose schedule starts each time that number of minutes has passed.
fn release(bench: &Bench, minutes: u32) {
    let text = format!(
        "{{:slug :digest :concurrency {{:type :singleton :on-new-version :coexist}}
           :requires [{{:kind :form :fields [{{:key :region :field-type :text}}]}}]
           :schedules [{{:id :tick :cron \"*/{minutes} * * * *\" :timezone \"UTC\"}}]
           :flow '[{minutes} (:region (:activation (flow/input)))]}}"
    );
    let files = VersionFiles::from([("flow.edn".to_owned(), text.into_bytes())]);
    let stores = bench.stores();
    let registry = FlowRegistry::new(&stores, bench.clock.now_ms());
    let new = NewCommit {
        base: Base::Any,
        ..NewCommit::of("digest", files)
    };
    block_on(registry.commit(new)).expect("added");
    block_on(registry.release("digest", None, ("ada", ""))).expect("released");
}

fn change(bench: &Bench, changes: Changes) {
    let engine = bench.engine();
    block_on(installations::configure(&engine, &at(), changes)).expect("changed");
}

/// A worker's turn at a time, in minutes after nine. Returns the new runs with their outcomes, sorted.
fn turn(bench: &Bench, minutes: i64) -> Vec<String> {
    bench.clock.set(MONDAY_MS + minutes * MINUTE_MS);
    let engine = Rc::new(bench.engine());
    let before = block_on(engine.stores().runs.list(RunFilter::default())).expect("runs");
    let mut planner = Planner::new(engine.clone(), Vec::new(), Arc::new(NoWatch));
    block_on(planner.turn()).expect("a turn");
    let after = block_on(engine.stores().runs.list(RunFilter::default())).expect("runs");
    let new = after
        .iter()
        .filter(|run| before.iter().all(|known| known.id != run.id));
    let new = new.map(|run| format!("{} {}", run.flow, outcome(&engine, &run.id)));
    let mut new: Vec<String> = new.collect();
    new.sort();
    new
}

#[test]
fn schedules_of_an_installation_follow_it_and_leave_those_of_its_author() {
    let bench = Bench::over(STORE);
    bench.clock.set(MONDAY_MS);
    release(&bench, 5);
    let new = NewInstallation {
        flow: FlowName::local("digest"),
        at: at(),
        is_readable: true,
    };
    block_on(installations::install(&bench.engine(), new)).expect("installed");
    let setup = Value::map([(Value::keyword("region"), Value::from("EU"))]);
    change(
        &bench,
        Changes {
            setup: Some(setup),
            ..Changes::default()
        },
    );
    assert_eq!(turn(&bench, 0), [""; 0]);
    let both = ["digest [5 nil]", "digest@acme/main [5 \"EU\"]"];
    assert_eq!(turn(&bench, 5), both);
    assert_eq!(turn(&bench, 5), [""; 0]);
    // The author's schedule follows the release, that of the installation its own version.
    release(&bench, 10);
    assert_eq!(turn(&bench, 6), [""; 0]);
    assert_eq!(
        turn(&bench, 10),
        ["digest [10 nil]", "digest@acme/main [5 \"EU\"]"]
    );
    assert_eq!(turn(&bench, 15), ["digest@acme/main [5 \"EU\"]"]);
    change(
        &bench,
        Changes {
            upgrade: true,
            ..Changes::default()
        },
    );
    assert_eq!(turn(&bench, 16), [""; 0]);
    assert_eq!(
        turn(&bench, 20),
        ["digest [10 nil]", "digest@acme/main [10 \"EU\"]"]
    );
    // By hand, in the version that it uses.
    let engine = bench.engine();
    let run = engine.start_schedule("digest@acme/main", "tick", false);
    let run = block_on(run).expect("started");
    assert_eq!(outcome(&engine, &run), "[10 \"EU\"]");
    block_on(installations::uninstall(&engine, &at())).expect("removed");
    assert_eq!(turn(&bench, 30), ["digest [10 nil]"]);
    let run = engine.start_schedule("digest@acme/main", "tick", false);
    let refused = block_on(run).expect_err("it is gone");
    assert_eq!(refused.code(), "E1440");
}

#[test]
fn an_installation_that_lacks_something_has_no_schedules_yet() {
    let bench = Bench::over(STORE);
    bench.clock.set(MONDAY_MS);
    let text = "{:slug :digest :requires [{:kind :form :fields [{:key :region :field-type :text :required true}]}]
        :schedules [{:id :tick :cron \"*/5 * * * *\" :timezone \"UTC\"}]
        :flow '(:region (:activation (flow/input)))}";
    let files = VersionFiles::from([("flow.edn".to_owned(), text.as_bytes().to_vec())]);
    let stores = bench.stores();
    let registry = FlowRegistry::new(&stores, MONDAY_MS);
    block_on(registry.commit(NewCommit::of("digest", files))).expect("added");
    block_on(registry.release("digest", None, ("ada", ""))).expect("released");
    let new = NewInstallation {
        flow: FlowName::local("digest"),
        at: at(),
        is_readable: true,
    };
    block_on(installations::install(&bench.engine(), new)).expect("installed");
    turn(&bench, 0);
    assert_eq!(turn(&bench, 5), [""; 0]);
    let setup = Value::map([(Value::keyword("region"), Value::from("EU"))]);
    change(
        &bench,
        Changes {
            setup: Some(setup),
            ..Changes::default()
        },
    );
    assert_eq!(turn(&bench, 6), [""; 0]);
    assert_eq!(turn(&bench, 10), ["digest@acme/main \"EU\""]);
}
