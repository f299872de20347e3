//! Waits over the stores: the first answer, early signals, and deadlines.

use std::rc::Rc;

use expect_test::expect;
use flowstone_engine::ids::RunId;
use flowstone_engine::observer::NoObserver;
use flowstone_engine::ports::{SignalFilter, Target, WaitFilter, WaitRow, WaitState};
use flowstone_engine::{
    Answered, Answering, Caller, Engine, EngineError, ExecuteOptions, Remark, codec,
};
use flowstone_lang::value::Value;

use super::STORE;
use crate::bench::{Bench, block_on, outcome};

pub const DOOR: &str = "(:action (flow/step :hold :door {}))";

pub fn edn(text: &str) -> Value {
    codec::decode(text).expect("EDN")
}

fn signal(engine: &Engine, key: &str, payload: &str, dedup: Option<&str>) -> String {
    let how = Answering {
        keep: true,
        dedup: dedup.map(str::to_owned),
        ..Answering::default()
    };
    let target = Target::Name(key.to_owned());
    answer_text(block_on(engine.answer_waits(target, &edn(payload), how)))
}

pub fn answer_text(answered: Result<Answered, EngineError>) -> String {
    match answered {
        Ok(Answered::Runs(runs)) => format!("answered {}", runs.len()),
        Ok(Answered::Partly { runs, refused }) => {
            format!("answered {}, refused {}", runs.len(), refused.len())
        }
        Ok(Answered::Kept) => "kept".to_owned(),
        Ok(Answered::Duplicate) => "duplicate".to_owned(),
        Err(error) => error.code().to_owned(),
    }
}

pub fn waits(engine: &Engine) -> Vec<WaitRow> {
    block_on(engine.list_waits(WaitFilter::default())).expect("waits")
}

fn as_caller(name: &str) -> Answering {
    Answering {
        caller: Caller {
            name: Some(name.to_owned()),
            roles: Vec::new(),
        },
        ..Answering::default()
    }
}

#[test]
fn a_second_approval_is_refused_and_names_the_first() {
    let bench = Bench::over(STORE);
    let engine = bench.engine();
    let run = bench.start(&engine, DOOR);
    outcome(&engine, &run);
    // Both have read the wait; both decide at once, in two engines, as two processes do.
    let other = bench.engine();
    let (first, second) = block_on(async {
        tokio::join!(
            engine.decide_wait("door", true, Remark::default(), as_caller("Nora")),
            other.decide_wait("door", false, Remark::default(), as_caller("Ben")),
        )
    });
    let late = match (&first, &second) {
        (Ok(_), Err(late)) | (Err(late), Ok(_)) => late,
        both => panic!("{both:?}"),
    };
    let message = late.to_string();
    assert_eq!(late.code(), "E0515", "{message}");
    let winner = if first.is_ok() { ":approve" } else { ":reject" };
    let name = if first.is_ok() { "Nora" } else { "Ben" };
    assert!(
        message.contains(winner) && message.contains(name),
        "{message}"
    );
    assert!(message.contains("1970-01-01T00:16:40"), "{message}");
    drop(other);
    assert_eq!(outcome(&engine, &run), winner);
    let again = block_on(engine.decide_wait("door", true, Remark::default(), as_caller("Cleo")));
    assert_eq!(again.expect_err("late").to_string(), message);
}

#[test]
fn a_wait_past_its_deadline_follows_its_timeout_policy() {
    for (advance, answered, end) in [
        (999, "answered 1", ":approve"),
        (1_000, "E0524", ":late"),
        (5_000, "E0524", ":late"),
    ] {
        let bench = Bench::over(STORE);
        let engine = bench.engine();
        let run = bench.start(
            &engine,
            "(:action (flow/step :hold :door {:times 1000 :value {:action :late}}))",
        );
        outcome(&engine, &run);
        bench.clock.advance(advance);
        let answer = edn("{:action :approve}");
        let found = answer_text(block_on(engine.complete_wait("door", &answer, false)));
        assert_eq!(found, answered, "{advance}");
        bench.clock.advance(10_000);
        assert_eq!(outcome(&engine, &run), end, "{advance}");
        // A later answer gets the name of the first person, too.
        let late = block_on(engine.complete_wait("door", &answer, false));
        let late = late.expect_err("late").to_string();
        let expected = match end {
            ":late" => "nobody answered in time",
            _ => "answered already (`:approve`",
        };
        assert!(late.contains(expected), "{late}");
    }
}

#[test]
fn a_timer_that_is_overdue_fires() {
    let bench = Bench::over(STORE);
    let engine = bench.engine();
    let run = bench.start(
        &engine,
        "(:action (flow/step :hold :door {:times 1000 :value {:action :late}}))",
    );
    outcome(&engine, &run);
    drop(engine);
    bench.clock.advance(90 * 86_400_000);
    let engine = bench.engine();
    let executed = block_on(engine.resume_all(Rc::new(NoObserver), ExecuteOptions::default()));
    assert_eq!(executed.expect("listed").len(), 1);
    assert_eq!(outcome(&engine, &run), ":late");
}

#[test]
fn a_signal_before_its_wait_is_kept_and_checked_when_the_wait_opens() {
    let bench = Bench::over(STORE);
    let engine = bench.engine();
    assert_eq!(signal(&engine, "door", "{:by :nobody}", None), "kept");
    assert_eq!(signal(&engine, "door", "{:action :second}", None), "kept");
    assert_eq!(signal(&engine, "door", "{:action :third}", None), "kept");
    drop(engine);
    let engine = bench.engine();
    let first = bench.start(&engine, DOOR);
    let second = bench.start(&engine, DOOR);
    let third = bench.start(&engine, DOOR);
    assert_eq!(outcome(&engine, &first), ":second");
    assert_eq!(outcome(&engine, &second), ":third");
    assert!(outcome(&engine, &third).starts_with("waiting"));
    let left = block_on(engine.list_signals(SignalFilter::default())).expect("signals");
    let [refused] = &left[..] else {
        panic!("{left:?}")
    };
    assert_eq!(refused.payload, "{:by :nobody}");
    let (_, why) = refused.refused.clone().expect("refused");
    expect![":action is missing"].assert_eq(&why);
    let report = block_on(engine.show_run(&first)).expect("a report");
    let caller = Caller::default();
    let shown = block_on(engine.show_wait(&report.waits[0].id, &caller)).expect("a wait");
    assert_eq!(shown.refused.len(), 1);
}

#[test]
fn a_signal_of_the_same_name_does_nothing() {
    let bench = Bench::over(STORE);
    let engine = bench.engine();
    let send = |payload: &str, dedup: &str| signal(&engine, "door", payload, Some(dedup));
    assert_eq!(send("{:action :one}", "a"), "kept");
    assert_eq!(send("{:action :two}", "a"), "duplicate");
    let first = bench.start(&engine, DOOR);
    assert_eq!(outcome(&engine, &first), ":one");
    // Also after the first was taken.
    assert_eq!(send("{:action :two}", "a"), "duplicate");
    let second = bench.start(&engine, DOOR);
    assert!(outcome(&engine, &second).starts_with("waiting"));
    assert_eq!(send("{:action :two}", "a"), "duplicate");
    assert_eq!(send("{}", "b"), "E0516", "a refused one is not remembered");
    assert_eq!(send("{:action :two}", "b"), "answered 1");
    assert_eq!(send("{:action :two}", "b"), "duplicate");
    assert_eq!(outcome(&engine, &second), ":two");
    assert_eq!(signal(&engine, "window", "{}", Some("a")), "kept");
}

#[test]
fn one_signal_completes_all_waits_of_a_key() {
    let bench = Bench::over(STORE);
    let engine = bench.engine();
    let runs: Vec<_> = (0..3).map(|_| bench.start(&engine, DOOR)).collect();
    for run in &runs {
        assert!(outcome(&engine, run).starts_with("waiting"));
    }
    assert_eq!(signal(&engine, "door", "{}", None), "E0516");
    assert_eq!(waits(&engine).len(), 3);
    assert_eq!(signal(&engine, "door", "{:action :go}", None), "answered 3");
    for run in &runs {
        assert_eq!(outcome(&engine, run), ":go");
    }
    // An answer by id leaves the other waits open.
    let runs: Vec<_> = (0..2).map(|_| bench.start(&engine, DOOR)).collect();
    for run in &runs {
        outcome(&engine, run);
    }
    let id = waits(&engine)[1].id.clone();
    assert_eq!(signal(&engine, &id, "{:action :go}", None), "answered 1");
    assert_eq!(waits(&engine).len(), 1);
}

#[test]
fn a_cancelled_wait_fails_its_step() {
    let bench = Bench::over(STORE);
    let engine = bench.engine();
    let run = bench.start(
        &engine,
        "(try (flow/step :hold :door {})
           (catch Exception e (select-keys (ex-data e) [:kind :reason :by :key])))",
    );
    outcome(&engine, &run);
    let cancel = || engine.cancel_wait("door", Some("no longer"), as_caller("Nora"));
    assert_eq!(answer_text(block_on(cancel())), "answered 1");
    expect![[r#"{:kind :cancelled :reason "no longer" :by "Nora" :key "door"}"#]]
        .assert_eq(&outcome(&engine, &run));
    let again = block_on(cancel()).expect_err("late").to_string();
    assert!(
        again.starts_with("the wait `door` was cancelled (by Nora"),
        "{again}"
    );
}

#[test]
fn cancelling_a_question_about_a_step_aborts_the_step() {
    let bench = Bench::over(STORE);
    let engine = bench.engine();
    let run = bench.start(
        &engine,
        "(flow/step :write :it {:times 9 :on-error :checkpoint})",
    );
    outcome(&engine, &run);
    let id = waits(&engine)[0].id.clone();
    let approved = block_on(engine.decide_wait(&id, true, Remark::default(), as_caller("Nora")));
    let error = approved.expect_err("not offered");
    assert_eq!(error.code(), "E0528");
    assert!(
        error
            .to_string()
            .ends_with("it offers `:retry`, `:skip`, `:use`, `:abort`"),
        "{error}"
    );
    let cancelled = block_on(engine.cancel_wait(&id, None, as_caller("Nora")));
    assert_eq!(answer_text(cancelled), "answered 1");
    assert!(outcome(&engine, &run).starts_with("failed E0799"));
}

#[test]
fn waits_and_answers_around_a_crash_count_once() {
    // Answered, and the process ended before the run took the answer.
    let bench = Bench::over(STORE);
    let engine = bench.engine();
    let run = bench.start(
        &engine,
        "[(flow/step :write :before {:value 1})
          (:action (flow/step :hold :door {}))
          (flow/step :write :after {:value 2})]",
    );
    outcome(&engine, &run);
    assert_eq!(
        signal(&engine, "door", "{:action :go}", Some("a")),
        "answered 1"
    );
    drop(engine);
    let engine = bench.engine();
    assert_eq!(
        signal(&engine, "door", "{:action :no}", Some("a")),
        "duplicate"
    );
    let executed = block_on(engine.resume_all(Rc::new(NoObserver), ExecuteOptions::default()));
    assert_eq!(executed.expect("listed").len(), 1);
    assert_eq!(outcome(&engine, &run), "[1 :go 2]");
    assert_eq!(bench.effects(), "after=1 before=1");
}

#[test]
fn waits_are_closed_when_their_run_ends() {
    let bench = Bench::over(STORE);
    let engine = bench.engine();
    let run = bench.start(&engine, DOOR);
    outcome(&engine, &run);
    block_on(engine.cancel(&run, "enough", Rc::new(NoObserver))).expect("cancelled");
    assert!(waits(&engine).is_empty());
    let late = block_on(engine.complete_wait("door", &edn("{:action :go}"), false));
    expect!["the wait `door` is over, because its run is"]
        .assert_eq(&late.expect_err("late").to_string());
    let all = WaitFilter {
        run: Some(run),
        all: true,
        ..WaitFilter::default()
    };
    let all = block_on(engine.list_waits(all)).expect("waits");
    assert_eq!(all[0].state, WaitState::Closed);
}

/// Executes a run with an answer to its first wait and none to its second.
fn played(bench: &Bench, engine: &Engine, run: &RunId) -> String {
    for _ in 0..10 {
        let found = outcome(engine, run);
        if !found.starts_with("waiting") {
            return found;
        }
        match waits(engine).first().map(|wait| wait.path.clone()) {
            Some(path) if path == "first" => {
                signal(engine, "door", "{:action :go}", Some("a"));
            }
            _ => bench.clock.advance(1_000),
        }
    }
    "it never ends".to_owned()
}

#[test]
fn a_wait_survives_a_crash_at_any_commit() {
    const FLOW: &str = "[(flow/step :write :before {:value 1})
        (:action (flow/step :hold :first {}))
        (:action (flow/step :hold :second {:times 1000 :value {:action :late}}))]";
    let mut crashes = 0;
    for silently in [false, true] {
        for left in 0.. {
            let bench = Bench::over(STORE);
            let engine = bench.engine_over(crate::crash::stores(&bench, left, silently));
            let run = bench.start(&engine, FLOW);
            let first = played(&bench, &engine, &run);
            drop(engine);
            if !first.contains("the process is dead") {
                assert_eq!(first, "[1 :go :late]");
                break;
            }
            crashes += 1;
            let engine = bench.engine();
            let mut last = played(&bench, &engine, &run);
            if last == "it never ends" {
                // The effect before the waits is in doubt.
                let id = waits(&engine)[0].id.clone();
                signal(&engine, &id, ":retry", None);
                last = played(&bench, &engine, &run);
            }
            assert_eq!(last, "[1 :go :late]", "left {left} silently {silently}");
        }
    }
    assert!(crashes > 8, "{crashes}");
}
