//! Schedules that were created for flows: which ticks start runs, of which version, with which inputs, and once only, also if
//! the process ends at any commit.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use flowstone_engine::observer::{NoObserver, Observer};
use flowstone_engine::ports::{
    Clock as _, CommitPhase, Probe, RunFilter, RunRow, StoreError, Stores,
};
use flowstone_engine::registry::FlowName;
use flowstone_engine::triggers::{
    DeliveryQuery, EventDelivery, MINUTE_MS, MOST_DELIVERIES, NewDelivery, RETRY_AFTER_MS,
    TriggerKind, TriggerRow, first_delivery, next_tick_ms,
};
use flowstone_engine::worker::{Planner, Watch, WorkerEvent};
use flowstone_project::registry::{Base, FlowRegistry, NewCommit, VersionFiles};
use flowstone_stores::Options;
use flowstone_stores::memory::{Memory, MemoryOptions};

use super::STORE;
use crate::bench::{Bench, Project, Store, block_on};

/// 2026-05-04T09:00:00Z, a Monday.
const MONDAY_MS: i64 = 1_777_885_200_000;

struct NoWatch;

impl Watch for NoWatch {
    fn event(&self, _: &WorkerEvent<'_>) {}

    fn observer(&self) -> Rc<dyn Observer> {
        Rc::new(NoObserver)
    }
}

fn bench() -> Bench {
    let bench = Bench::over(STORE);
    bench.clock.set(MONDAY_MS);
    bench
}

fn flow(body: &str) -> VersionFiles {
    let text = format!("{{:slug :digest {body}}}");
    VersionFiles::from([("flow.edn".to_owned(), text.into_bytes())])
}

/// Adds a version, and returns its number.
fn commit(stores: &Stores, body: &str) -> i64 {
    let registry = FlowRegistry::new(stores, MONDAY_MS);
    let new = NewCommit {
        base: Base::Any,
        ..NewCommit::of("digest", flow(body))
    };
    block_on(registry.commit(new))
        .expect("added")
        .version()
        .number
}

const ANY: &str = ":flow '(flow/input)";
const STRICT: &str = ":invocations {:default {:inputs [{:name :region :type :string :required true}]}} :flow '(:region (flow/input))";

fn schedule(id: &str, cron: &str, version: i64) -> TriggerRow {
    let row = TriggerRow {
        id: id.to_owned(),
        kind: TriggerKind::Schedule,
        flow: FlowName::local("digest"),
        name: Some("Daily".to_owned()),
        description: None,
        event_key: "digest.daily".to_owned(),
        schedule: Some(cron.to_owned()),
        start_ms: None,
        end_ms: None,
        connection: None,
        trigger_config: None,
        inputs_fields: None,
        version,
        revision: format!("rev_{version}"),
        is_active: true,
        next_ms: None,
        last_ms: None,
        position: None,
        created_ms: MONDAY_MS,
        updated_ms: MONDAY_MS,
    };
    TriggerRow {
        next_ms: next_tick_ms(&row, MONDAY_MS + 1),
        ..row
    }
}

fn add(stores: &Stores, row: TriggerRow) {
    assert!(block_on(stores.triggers.add_trigger(row, 20)).expect("written"));
}

/// A worker's turn at a time, in minutes after nine.
fn turn(bench: &Bench, minutes: i64) -> Result<(), StoreError> {
    bench.clock.set(MONDAY_MS + minutes * MINUTE_MS);
    turn_over(bench, bench.stores())
}

fn turn_over(bench: &Bench, stores: Stores) -> Result<(), StoreError> {
    let engine = Rc::new(bench.engine_over(stores));
    let mut planner = Planner::new(engine, Vec::new(), Arc::new(NoWatch));
    block_on(planner.turn())
}

fn runs(stores: &Stores) -> Vec<RunRow> {
    let mut runs = block_on(stores.runs.list(RunFilter::default())).expect("runs");
    runs.reverse();
    runs
}

fn deliveries(stores: &Stores) -> Vec<EventDelivery> {
    let query = DeliveryQuery {
        flow: FlowName::local("digest"),
        trigger: None,
        before: None,
        limit: 10_000,
    };
    block_on(stores.triggers.deliveries(query)).expect("deliveries")
}

/// The codes of the deliveries with the minute of their tick, oldest first.
fn codes(stores: &Stores) -> String {
    let mut all = deliveries(stores);
    all.reverse();
    let shown = all.iter().map(|it| {
        let minute = it
            .event_id
            .get(it.event_id.len() - 13..it.event_id.len() - 8);
        format!("{} {}", minute.unwrap_or_default(), it.code)
    });
    shown.collect::<Vec<_>>().join(", ")
}

#[test]
fn each_tick_starts_a_run_of_the_pinned_version() {
    let bench = bench();
    let stores = bench.stores();
    let version = commit(&stores, ANY);
    add(&stores, schedule("sch_a", "*/5 * * * *", version));
    commit(&stores, ":flow '2");
    turn(&bench, 4).expect("a turn");
    assert_eq!(codes(&stores), "");
    turn(&bench, 5).expect("a turn");
    turn(&bench, 5).expect("a turn");
    turn(&bench, 10).expect("a turn");
    assert_eq!(codes(&stores), "09:05 200, 09:10 200");
    let runs = runs(&stores);
    let versions = runs.iter().map(|run| run.version.map(|it| it.number));
    assert_eq!(versions.collect::<Vec<_>>(), [Some(1), Some(1)]);
    assert_eq!(runs[0].started_by, "schedule:sch_a");
    // Without `inputs_fields`, the run gets the whole context.
    let input = &runs[0].input;
    for part in [
        ":event-type \"digest.daily\"",
        ":scheduled-for \"2026-05-04T09:05:00.000Z\"",
    ] {
        let part = part.replace("-type", "_type").replace("-for", "_for");
        assert!(input.contains(&part), "{input}");
    }
    let row = block_on(stores.triggers.trigger("sch_a"))
        .expect("read")
        .expect("there");
    assert_eq!(row.last_ms, Some(MONDAY_MS + 10 * MINUTE_MS));
    assert_eq!(row.next_ms, Some(MONDAY_MS + 15 * MINUTE_MS));
}

#[test]
fn of_missed_ticks_only_the_last_is_delivered() {
    let bench = bench();
    let stores = bench.stores();
    let version = commit(&stores, ANY);
    add(&stores, schedule("sch_a", "* * * * *", version));
    turn(&bench, 600).expect("a turn");
    turn(&bench, 601).expect("a turn");
    assert_eq!(codes(&stores), "19:00 200, 19:01 200");
    assert_eq!(runs(&stores).len(), 2);
}

#[test]
fn the_window_begins_with_its_start_and_ends_before_its_end() {
    let bench = bench();
    let stores = bench.stores();
    let version = commit(&stores, ANY);
    let mut row = schedule("sch_a", "* * * * *", version);
    row.start_ms = Some(MONDAY_MS + 3 * MINUTE_MS);
    row.end_ms = Some(MONDAY_MS + 5 * MINUTE_MS);
    row.next_ms = next_tick_ms(&row, MONDAY_MS + 1);
    add(&stores, row);
    for minute in 1..9 {
        turn(&bench, minute).expect("a turn");
    }
    assert_eq!(codes(&stores), "09:03 200, 09:04 200");
    let row = block_on(stores.triggers.trigger("sch_a"))
        .expect("read")
        .expect("there");
    assert_eq!(row.next_ms, None);
    // A tick in the window is delivered late rather than never.
    let mut row = schedule("sch_b", "* * * * *", version);
    row.end_ms = Some(MONDAY_MS + 20 * MINUTE_MS);
    add(&stores, row);
    turn(&bench, 90).expect("a turn");
    assert_eq!(codes(&stores), "09:03 200, 09:04 200, 09:19 200");
}

#[test]
fn inputs_are_selected_and_checked_with_the_flow() {
    let bench = bench();
    let stores = bench.stores();
    let version = commit(&stores, STRICT);
    let with = |id: &str, fields: &str| TriggerRow {
        inputs_fields: Some(fields.to_owned()),
        ..schedule(id, "0 10 * * *", version)
    };
    add(&stores, with("sch_1", r#"{"region": "$.scope.flow"}"#));
    add(
        &stores,
        with("sch_2", r#"{"region": "/event/attributes/none"}"#),
    );
    turn(&bench, 60).expect("a turn");
    let found = deliveries(&stores);
    let by = |id: &str| found.iter().find(|it| it.trigger == id).expect("delivered");
    assert_eq!((by("sch_1").code, by("sch_2").code), (200, 422));
    assert_eq!(
        by("sch_1").inputs.as_deref(),
        Some(r#"{"region":"digest"}"#)
    );
    assert_eq!(by("sch_2").inputs.as_deref(), Some(r#"{"region":null}"#));
    assert!(
        by("sch_2")
            .error
            .as_ref()
            .is_some_and(|it| it.contains("E04"))
    );
    // Refused inputs are not attempted again.
    assert_eq!(by("sch_2").retry_ms, None);
    assert_eq!(runs(&stores).len(), 1);
}

#[test]
fn a_start_that_fails_is_attempted_five_times_more() {
    let bench = bench();
    let stores = bench.stores();
    let version = commit(
        &stores,
        ":concurrency {:type :singleton :on-conflict :reject} :flow '1",
    );
    add(&stores, schedule("sch_a", "0 10 * * *", version));
    add(&stores, schedule("sch_b", "0 10 * * *", version));
    turn(&bench, 60).expect("a turn");
    let refused = || deliveries(&stores).into_iter().find(|it| it.code == 500);
    for attempt in 1..=6 {
        let delivery = refused().expect("not started");
        assert_eq!(delivery.attempts, attempt);
        let delay_ms = RETRY_AFTER_MS.get(usize::try_from(attempt - 1).expect("small"));
        let now_ms = bench.clock.now_ms();
        assert_eq!(
            delivery.retry_ms,
            delay_ms.map(|delay_ms| now_ms + delay_ms)
        );
        bench.clock.set(delivery.retry_ms.unwrap_or(now_ms + 1));
        turn_over(&bench, bench.stores()).expect("a turn");
    }
    assert_eq!(runs(&stores).len(), 1);
    assert!(refused().is_some_and(|it| it.error.is_some_and(|error| error.contains("E0555"))));
}

#[test]
fn an_archived_flow_is_not_started() {
    let bench = bench();
    let stores = bench.stores();
    let version = commit(&stores, ANY);
    add(&stores, schedule("sch_a", "* * * * *", version));
    let registry = FlowRegistry::new(&stores, MONDAY_MS);
    block_on(registry.archive("digest", true)).expect("archived");
    turn(&bench, 5).expect("a turn");
    assert_eq!(codes(&stores), "");
    block_on(registry.archive("digest", false)).expect("in use");
    turn(&bench, 6).expect("a turn");
    assert_eq!(codes(&stores), "09:06 200");
}

/// Ends the process at a commit: before it, or right after it.
#[derive(Debug)]
struct Fuse {
    left: AtomicI64,
}

impl Probe for Fuse {
    fn reach(&self, _: CommitPhase) -> Result<(), StoreError> {
        match self.left.fetch_sub(1, Ordering::SeqCst) {
            left if left > 0 => Ok(()),
            _ => Err(StoreError::Internal("the process is dead".to_owned())),
        }
    }
}

#[test]
fn a_tick_is_delivered_once_whatever_commit_the_process_dies_at() {
    let mut deaths = 0;
    for left in 0.. {
        let fuse = Arc::new(Fuse {
            left: AtomicI64::new(i64::MAX),
        });
        let (bench, memory) = match STORE {
            Store::Memory => {
                let memory = Memory::new(MemoryOptions {
                    probe: Some(fuse.clone()),
                    crashes: None,
                });
                (Bench::with(Project::Memory(memory.clone())), Some(memory))
            }
            Store::Sqlite => (Bench::new(), None),
        };
        bench.clock.set(MONDAY_MS);
        let version = commit(&bench.stores(), ANY);
        add(&bench.stores(), schedule("sch_a", "*/5 * * * *", version));
        bench.clock.set(MONDAY_MS + 5 * MINUTE_MS);
        let stores = match &memory {
            Some(memory) => memory.open(),
            None => {
                let options = Options {
                    probe: Some(fuse.clone()),
                    ..Options::default()
                };
                let home = bench.home.path().join("home");
                flowstone_stores::open(&home, &options).expect("the database opens")
            }
        };
        fuse.left.store(left, Ordering::SeqCst);
        let first = turn_over(&bench, stores);
        let has_died = fuse.left.swap(i64::MAX, Ordering::SeqCst) <= 0;
        if let Some(memory) = memory.filter(|_| has_died) {
            memory.crash();
        }
        turn(&bench, 6).expect("a turn");
        turn(&bench, 10).expect("a turn");
        let stores = bench.stores();
        assert_eq!(codes(&stores), "09:05 200, 09:10 200", "dead after {left}");
        assert_eq!(runs(&stores).len(), 2, "dead after {left}");
        let ids: Vec<_> = runs(&stores).into_iter().map(|run| Some(run.id)).collect();
        let mut delivered: Vec<_> = deliveries(&stores).into_iter().map(|it| it.run).collect();
        delivered.reverse();
        assert_eq!(delivered, ids, "dead after {left}");
        if !has_died {
            first.expect("a turn");
            break;
        }
        deaths += 1;
    }
    // At least: before and after the start of the run and the record of the delivery.
    assert!(deaths >= 4, "{deaths}");
}

#[test]
fn two_workers_deliver_a_tick_once() {
    let bench = bench();
    let stores = bench.stores();
    let version = commit(&stores, ANY);
    add(&stores, schedule("sch_a", "*/5 * * * *", version));
    bench.clock.set(MONDAY_MS + 5 * MINUTE_MS);
    let workers: Vec<_> = (0..2)
        .map(|_| {
            let engine = Rc::new(bench.engine());
            Planner::new(engine, Vec::new(), Arc::new(NoWatch))
        })
        .collect();
    let [mut one, mut other] = <[Planner; 2]>::try_from(workers).ok().expect("two");
    block_on(async {
        let (first, second) = tokio::join!(one.turn(), other.turn());
        first.expect("a turn");
        second.expect("a turn");
    });
    assert_eq!(codes(&stores), "09:05 200");
    assert_eq!(runs(&stores).len(), 1);
}

#[test]
fn rows_are_limited_changed_as_seen_and_found_by_their_flow() {
    let bench = bench();
    let stores = bench.stores();
    let port = &stores.triggers;
    for number in 0..20 {
        add(
            &stores,
            schedule(&format!("sch_{number:02}"), "0 * * * *", 1),
        );
    }
    let more = schedule("sch_more", "0 * * * *", 1);
    assert!(!block_on(port.add_trigger(more.clone(), 20)).expect("refused"));
    let other = TriggerRow {
        flow: FlowName::local("other"),
        ..more.clone()
    };
    assert!(block_on(port.add_trigger(other.clone(), 20)).expect("written"));
    let all = block_on(port.triggers(&other.flow, TriggerKind::Schedule)).expect("a list");
    assert_eq!(all, std::slice::from_ref(&other));
    let subscriptions = port.triggers(&other.flow, TriggerKind::Subscription);
    assert_eq!(block_on(subscriptions).expect("a list"), []);
    let paused = TriggerRow {
        is_active: false,
        next_ms: None,
        ..other.clone()
    };
    assert!(block_on(port.change_trigger(other.clone(), paused.clone())).expect("changed"));
    assert!(!block_on(port.change_trigger(other, paused.clone())).expect("refused"));
    assert_eq!(
        block_on(port.trigger("sch_more")).expect("read"),
        Some(paused)
    );
    assert!(block_on(port.remove_trigger("sch_more")).expect("removed"));
    assert!(!block_on(port.remove_trigger("sch_more")).expect("refused"));
    assert_eq!(block_on(port.due_triggers(MONDAY_MS)).expect("due"), []);
    let next_ms = block_on(port.next_trigger_ms()).expect("read");
    assert_eq!(next_ms, Some(MONDAY_MS + 60 * MINUTE_MS));
    let due = block_on(port.due_triggers(MONDAY_MS + 60 * MINUTE_MS)).expect("due");
    assert_eq!(due.len(), 20);
}

fn delivery(number: usize) -> EventDelivery {
    EventDelivery {
        id: first_delivery("sch_a", &number.to_string()),
        trigger: "sch_a".to_owned(),
        kind: TriggerKind::Schedule,
        flow: FlowName::local("digest"),
        event_id: number.to_string(),
        event_key: "digest.daily".to_owned(),
        code: 500,
        message: "the run was not started".to_owned(),
        inputs: None,
        run: None,
        error: Some("{}".to_owned()),
        context: "{}".to_owned(),
        depth: 0,
        attempts: 1,
        retry_ms: None,
        created_ms: i64::try_from(number).expect("small"),
    }
}

#[test]
fn deliveries_are_recorded_once_paged_and_limited() {
    let bench = bench();
    let stores = bench.stores();
    let port = &stores.triggers;
    let record = |delivery: EventDelivery| {
        let new = NewDelivery {
            delivery: Some(delivery),
            trigger: None,
        };
        block_on(port.record_delivery(new)).expect("written")
    };
    for number in 0..MOST_DELIVERIES + 5 {
        assert!(record(delivery(number)));
    }
    assert!(!record(delivery(MOST_DELIVERIES)));
    assert_eq!(deliveries(&stores).len(), MOST_DELIVERIES);
    let page = |before: Option<(i64, String)>| {
        let query = DeliveryQuery {
            flow: FlowName::local("digest"),
            trigger: Some("sch_a".to_owned()),
            before,
            limit: 3,
        };
        block_on(port.deliveries(query)).expect("a page")
    };
    let first = page(None);
    let events = |page: &[EventDelivery]| -> Vec<String> {
        page.iter().map(|it| it.event_id.clone()).collect()
    };
    assert_eq!(events(&first), ["1004", "1003", "1002"]);
    let last = first.last().expect("three");
    let second = page(Some((last.created_ms, last.id.clone())));
    assert_eq!(events(&second), ["1001", "1000", "999"]);
    // An attempt is recorded if it is the next one.
    let mut again = delivery(1000);
    (again.attempts, again.retry_ms) = (2, Some(77));
    assert!(block_on(port.retry_delivery(again.clone())).expect("written"));
    assert!(!block_on(port.retry_delivery(again.clone())).expect("refused"));
    assert_eq!(
        block_on(port.due_deliveries(77)).expect("due"),
        std::slice::from_ref(&again)
    );
    assert_eq!(block_on(port.next_trigger_ms()).expect("read"), Some(77));
    assert_eq!(
        block_on(port.delivery(&again.id)).expect("read"),
        Some(again)
    );
    block_on(port.remove_trigger("sch_a")).expect("removed");
    assert_eq!(block_on(port.due_deliveries(77)).expect("due"), []);
}
