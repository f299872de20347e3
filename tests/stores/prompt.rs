//! Steps at an interactive prompt.

use std::rc::Rc;

use expect_test::expect;
use flowstone_engine::observer::NoObserver;
use flowstone_engine::ports::{RunFilter, RunStatus};
use flowstone_engine::{Desk, Engine, Interactive, Interrupt, codec};
use flowstone_flow::step::LocalFuture;
use flowstone_lang::session::Session;
use flowstone_lang::value::{Result as Evaluated, Signal, Value};
use flowstone_lang::vm::{NoHost, Request};

use super::STORE;
use crate::bench::{Bench, block_on, execute};

/// A prompt without functions of its own, at which nobody answers.
struct NoDesk;

impl Desk for NoDesk {
    fn answer(&self, request: Request) -> Result<LocalFuture<'_, Evaluated<Value>>, Request> {
        Err(request)
    }

    fn questions(&self) -> LocalFuture<'_, ()> {
        Box::pin(std::future::pending())
    }
}

fn prompt<'a>(engine: &'a Engine, session: &Rc<Session>) -> Interactive<'a> {
    engine.interactive(session.clone(), Rc::new(NoObserver), Interrupt::new())
}

fn typed(prompt: &Interactive<'_>, session: &Rc<Session>, text: &'static str) -> String {
    let inner = session.clone();
    let value = block_on(
        prompt.eval(Box::new(NoHost::default()), &NoDesk, move |vm| {
            inner.eval_text(vm, "<prompt>", text)
        }),
    );
    match value {
        Ok(value) => codec::encode(&value).expect("data"),
        Err(Signal::Throw(exception)) => format!("{} {}", exception.code, exception.text()),
        Err(Signal::Stop(stop)) => stop.to_string(),
    }
}

#[test]
fn steps_work_and_leave_a_run() {
    let bench = Bench::over(STORE);
    let engine = bench.engine();
    let session = Rc::new(engine.session());
    let prompt = prompt(&engine, &session);
    expect!["3"].assert_eq(&typed(&prompt, &session, "(+ 1 2)"));
    assert!(
        block_on(engine.list_runs(RunFilter::default()))
            .expect("runs")
            .is_empty()
    );
    expect!["7"].assert_eq(&typed(
        &prompt,
        &session,
        "(def x (flow/step :write :a {:value 7})) x",
    ));
    expect!["[8 8]"].assert_eq(&typed(
        &prompt,
        &session,
        "(mapv (fn [n] (step :write :a {:value n})) [(inc x) (inc x)])",
    ));
    expect!["E0799 not now"].assert_eq(&typed(
        &prompt,
        &session,
        "(flow/step :write :b {:times 1})",
    ));
    expect!["E0431 unknown step type `:wrte`"].assert_eq(&typed(
        &prompt,
        &session,
        "(flow/step :wrte :b {})",
    ));
    expect!["a=1 a#2=1 a#3=1 b=1"].assert_eq(&bench.effects());
    let row = block_on(engine.find_run(prompt.run_id().as_str())).expect("a run");
    assert_eq!((row.status, row.executing), (RunStatus::Running, true));
    block_on(prompt.finish()).expect("finished");
    let report = block_on(engine.show_run(prompt.run_id())).expect("a run");
    assert_eq!(
        (report.row.status, report.steps.len()),
        (RunStatus::Completed, 4)
    );
}

#[test]
fn a_killed_prompt_leaves_no_run_to_resume() {
    let bench = Bench::over(STORE);
    let engine = bench.engine();
    let session = Rc::new(engine.session());
    let prompt = prompt(&engine, &session);
    assert_eq!(
        typed(&prompt, &session, "(flow/step :write :a {:value 7})"),
        "7"
    );
    let run = prompt.run_id().clone();
    drop(prompt);
    drop(engine);
    let engine = bench.engine();
    assert!(block_on(engine.resumable()).expect("runs").is_empty());
    assert_eq!(execute(&engine, &run).expect_err("refused").code(), "E0509");
}

#[test]
fn branches_can_be_used_at_a_prompt() {
    let bench = Bench::over(STORE);
    let engine = bench.engine();
    let session = Rc::new(engine.session());
    let prompt = prompt(&engine, &session);
    expect!["2"].assert_eq(&typed(
        &prompt,
        &session,
        "(count (flow/all [#(flow/step :gate :x {}) #(flow/step :write :y {})]))",
    ));
    expect![[r#"[["pmap.0/x" "pmap.1/x"] [:a 1]]"#]].assert_eq(&typed(
        &prompt,
        &session,
        "[(flow/pmap (fn [_] (flow/step :gate :x {})) [1 2]) (flow/race {:a (fn [] 1) :b #(flow/step :look :never {:hang true})})]",
    ));
    expect!["E0540 branch 0 of `flow/all` is nil, not a function"].assert_eq(&typed(
        &prompt,
        &session,
        "(flow/all [nil])",
    ));
    block_on(prompt.finish()).expect("the run ends");
}
