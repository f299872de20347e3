//! Lists of runs: filters, orders, pages; and the events after a place in the journal.

use expect_test::expect;
use flowstone_engine::blob::BlobHash;
use flowstone_engine::ids::RunId;
use flowstone_engine::ports::{
    FlowVersion, NewRun, Parent, ParentClose, Program, RunOrder, RunQuery, RunStatus, Stores,
};
use flowstone_engine::{Engine, codec};

use super::STORE;
use crate::bench::{Bench, block_on, outcome};

/// Returns a new run of the flow `even`.
fn stored_run(id: &str, now_ms: i64) -> NewRun {
    NewRun {
        id: RunId::from_text(id),
        external_id: None,
        program: Program {
            hash: "p".to_owned(),
            source: "{}".to_owned(),
            engine_abi: 1,
        },
        flow: "even".to_owned(),
        input: "{}".to_owned(),
        seed: 0,
        now_ms,
        invocation: None,
        key: None,
        priority: 0,
        bindings: None,
        started_by: "manual".to_owned(),
        origin: None,
        parent: None,
        deadline_ms: None,
        trace: None,
        version: None,
        is_taken: false,
    }
}

/// Adds runs that have not begun: `r0` to `r9`, a second apart, of two flows.
fn ten(stores: &Stores) {
    for number in 0..10 {
        let run = NewRun {
            id: RunId::from_text(format!("r{number}")),
            external_id: (number == 4).then(|| "order-4".to_owned()),
            program: Program {
                hash: "p".to_owned(),
                source: "{}".to_owned(),
                engine_abi: 1,
            },
            flow: if number % 2 == 0 { "even" } else { "odd" }.to_owned(),
            input: format!("{{:n {number} :rate \"100%_{number}\"}}"),
            seed: 0,
            now_ms: number * 1000,
            invocation: None,
            key: (number < 3).then(|| "\"ada\"".to_owned()),
            priority: 0,
            bindings: None,
            started_by: match number {
                0 => "schedule:nightly",
                1 => "schedule",
                2 => "scheduler",
                _ => "manual",
            }
            .to_owned(),
            origin: None,
            parent: (number >= 8).then(|| Parent {
                run: RunId::from_text("r0"),
                root: RunId::from_text("r0"),
                depth: 1,
                close: ParentClose::Abandon,
            }),
            deadline_ms: None,
            trace: None,
            version: None,
            is_taken: false,
        };
        block_on(stores.runs.create(run)).expect("it is added");
    }
}

fn ids(stores: &Stores, query: RunQuery) -> String {
    let runs = block_on(stores.runs.summaries(query)).expect("a list");
    let ids: Vec<&str> = runs.iter().map(|run| run.id.as_str()).collect();
    ids.join(" ")
}

#[test]
fn filters_select_runs() {
    let bench = Bench::over(STORE);
    let stores = bench.stores();
    ten(&stores);
    let terminated = RunId::from_text("r5");
    block_on(stores.runs.terminate(&terminated, "enough", 20_000)).expect("it ends");
    let text = |text: &str| Some(text.to_owned());
    let all = RunQuery::default();
    #[rustfmt::skip]
    let cases = [
        (all.clone(), "r9 r8 r7 r6 r5 r4 r3 r2 r1 r0"),
        (RunQuery { limit: 3, ..all.clone() }, "r9 r8 r7"),
        (RunQuery { sort: RunOrder::Oldest, limit: 2, ..all.clone() }, "r0 r1"),
        (RunQuery { sort: RunOrder::Changed, limit: 2, ..all.clone() }, "r5 r9"),
        (RunQuery { flow: text("even"), ..all.clone() }, "r8 r6 r4 r2 r0"),
        (RunQuery { flow: text("eve"), ..all.clone() }, ""),
        (RunQuery { statuses: vec![RunStatus::Terminated], ..all.clone() }, "r5"),
        (RunQuery { statuses: vec![RunStatus::Terminated, RunStatus::Running], limit: 6, ..all.clone() }, "r9 r8 r7 r6 r5 r4"),
        (RunQuery { statuses: vec![RunStatus::Running, RunStatus::Running], limit: 2, ..all.clone() }, "r9 r8"),
        (RunQuery { flow: text("odd"), sort: RunOrder::Oldest, ..all.clone() }, "r1 r3 r5 r7 r9"),
        (RunQuery { since_ms: Some(7000), ..all.clone() }, "r9 r8 r7"),
        (RunQuery { until_ms: Some(2000), ..all.clone() }, "r1 r0"),
        (RunQuery { key: text("ada"), ..all.clone() }, "r2 r1 r0"),
        (RunQuery { key: text("\"ada\""), ..all.clone() }, "r2 r1 r0"),
        (RunQuery { text: text(":n 7"), ..all.clone() }, "r7"),
        (RunQuery { text: text("%_3"), ..all.clone() }, "r3"),
        (RunQuery { text: text("ORDER-"), ..all.clone() }, "r4"),
        (RunQuery { text: text("enough"), ..all.clone() }, ""),
        (RunQuery { started_by: text("schedule"), ..all.clone() }, "r1 r0"),
        (RunQuery { started_by: text("schedule:nightly"), ..all.clone() }, "r0"),
        (RunQuery { parent: Some(RunId::from_text("r0")), ..all.clone() }, "r9 r8"),
        (RunQuery { after: Some(RunId::from_text("r8")), limit: 2, ..all.clone() }, "r7 r6"),
        (RunQuery { after: Some(RunId::from_text("r8")), sort: RunOrder::Oldest, ..all.clone() }, "r9"),
        (RunQuery { after: Some(RunId::from_text("r9")), flow: text("odd"), limit: 2, ..all.clone() }, "r7 r5"),
        (RunQuery { ended_before_ms: Some(30_000), ..all.clone() }, "r5"),
        (RunQuery { pruned: Some(true), ..all.clone() }, ""),
    ];
    for (query, expected) in cases {
        assert_eq!(ids(&stores, query.clone()), expected, "{query:?}");
    }
    let missing = RunQuery {
        after: Some(RunId::from_text("r99")),
        ..all
    };
    let error = block_on(stores.runs.summaries(missing)).expect_err("no such run");
    assert_eq!(error.code(), "E0502");
}

#[test]
fn the_beginning_of_an_id_names_a_run() {
    let bench = Bench::over(STORE);
    let engine = bench.engine();
    ten(engine.stores());
    let found = |prefix: &str| match block_on(engine.find_run(prefix)) {
        Ok(row) => row.id.to_string(),
        Err(error) => error.code().to_owned(),
    };
    let found: Vec<String> = ["r3", "order-4", "order", "r", "R3", "", "r%"]
        .into_iter()
        .map(found)
        .collect();
    expect!["r3 r4 E0502 E0503 E0502 E0503 E0502"].assert_eq(&found.join(" "));
}

#[test]
fn pages_together_are_the_whole_list() {
    let bench = Bench::over(STORE);
    let stores = bench.stores();
    ten(&stores);
    for sort in [RunOrder::Newest, RunOrder::Oldest, RunOrder::Changed] {
        let whole = RunQuery {
            sort,
            ..RunQuery::default()
        };
        let mut pages = Vec::new();
        let mut after = None;
        loop {
            let query = RunQuery {
                after: after.clone(),
                limit: 3,
                ..whole.clone()
            };
            let page = ids(&stores, query);
            let Some(last) = page.split(' ').next_back().filter(|last| !last.is_empty()) else {
                break;
            };
            after = Some(RunId::from_text(last));
            pages.push(page);
        }
        assert_eq!(pages.join(" "), ids(&stores, whole), "{sort:?}");
    }
}

/// Returns the events after a place.
fn events(engine: &Engine, run: &RunId, seq: i64) -> String {
    let page = block_on(engine.events_after(run, seq, None)).expect("events");
    let lines: Vec<String> = page
        .events
        .iter()
        .map(|event| {
            format!(
                "{} {} {}",
                event.seq,
                event.entry.kind.name(),
                event.entry.path
            )
        })
        .collect();
    lines.join(", ")
}

#[test]
fn events_continue_after_a_place() {
    let bench = Bench::over(STORE);
    let engine = bench.engine();
    let run = bench.start(
        &engine,
        "[(flow/step :write :one {}) (flow/step :look :two {:value (apply str (repeat 9000 \"x\"))})
          (flow/step :hold :door {})]",
    );
    outcome(&engine, &run);
    expect!["3 intent one, 4 result one, 5 result two, 6 timer door"]
        .assert_eq(&events(&engine, &run, 0));
    expect!["5 result two, 6 timer door"].assert_eq(&events(&engine, &run, 4));
    expect![""].assert_eq(&events(&engine, &run, 6));
    let answer = codec::decode("{:action :approve}").expect("EDN");
    block_on(engine.complete_wait("door", &answer, false)).expect("answered");
    outcome(&engine, &run);
    expect!["10 result door"].assert_eq(&events(&engine, &run, 6));
    let page = block_on(engine.events_after(&run, 6, Some(7))).expect("events");
    assert_eq!(
        page.events.len(),
        5,
        "another pass is listed from its start"
    );
}

#[test]
fn versions_of_a_flow_are_counted_newest_first() {
    let bench = Bench::over(STORE);
    let stores = bench.stores();
    ten(&stores);
    block_on(
        stores
            .runs
            .terminate(&RunId::from_text("r4"), "enough", 20_000),
    )
    .expect("it ends");
    let mut edited = stored_run("r20", 20_000);
    edited.program.hash = "q".to_owned();
    block_on(stores.runs.create(edited)).expect("it is added");
    block_on(stores.runs.create(stored_run("r21", 21_000))).expect("it is added");
    let found = block_on(stores.runs.versions("even")).expect("a list");
    let seen = found.iter().map(|it| {
        let FlowVersion {
            program,
            runs,
            open,
            first_ms,
            last_ms,
        } = it;
        format!("{program} {runs} runs, {open} open, {first_ms} to {last_ms}")
    });
    assert_eq!(
        seen.collect::<Vec<_>>(),
        [
            "p 6 runs, 5 open, 0 to 21000",
            "q 1 runs, 1 open, 20000 to 20000"
        ]
    );
    let none = block_on(stores.runs.versions("none")).expect("a list");
    assert!(none.is_empty(), "{none:?}");
}

#[test]
fn parts_of_a_blob_are_read() {
    let bench = Bench::over(STORE);
    let blobs = bench.stores().blobs;
    let hash = block_on(blobs.put(b"0123456789".to_vec())).expect("it is put");
    for (start, length, expected) in [(0, 4, "0123"), (8, 4, "89"), (10, 4, ""), (99, 1, "")] {
        let part = block_on(blobs.part(&hash, start, length)).expect("it is read");
        assert_eq!(part, expected.as_bytes(), "{start} {length}");
    }
    let missing = BlobHash("00".repeat(32));
    assert!(block_on(blobs.part(&missing, 0, 1)).is_err());
}
