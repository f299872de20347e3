//! Ends of runs that are caused from outside, by a process that ends or is overtaken at any commit.

use std::rc::Rc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};

use expect_test::expect;
use flowstone_engine::Engine;
use flowstone_engine::ids::RunId;
use flowstone_engine::observer::NoObserver;
use flowstone_engine::ports::{
    Batch, Change, Entry, EntryKind, Journal, PortFuture, Receipt, RunFilter, Runs, StoreError,
    Stores, WaitFilter,
};
use flowstone_engine::{EngineError, codec};
use flowstone_lang::value::Value;

use super::STORE;
use crate::bench::{Bench, block_on, outcome};
use crate::crash::stores;

const DEAD: &str = "the process is dead";

fn statuses(engine: &Engine) -> String {
    let rows = block_on(engine.list_runs(RunFilter::default())).expect("runs");
    let words = rows
        .iter()
        .rev()
        .map(|row| format!("{} {}", row.flow, row.status.name()));
    words.collect::<Vec<_>>().join(", ")
}

/// Returns the names of the effects, once each: an effect in doubt is performed again.
fn done(bench: &Bench) -> String {
    let effects = bench.effects();
    let mut names: Vec<&str> = effects
        .split(' ')
        .map(|effect| effect.split('=').next().unwrap_or_default())
        .collect();
    names.sort_unstable();
    names.dedup();
    names.join(" ")
}

/// Resumes runs until none can be resumed.
fn resume_all(engine: &Engine) {
    for _ in 0..20 {
        let waits = block_on(engine.list_waits(WaitFilter::default())).expect("waits");
        let doubts = waits
            .iter()
            .filter(|wait| wait.details.contains(":in-doubt"));
        for wait in doubts {
            let again = Value::keyword("retry");
            block_on(engine.complete_wait(&wait.id, &again, false)).expect("answered");
        }
        let runs = block_on(engine.resumable()).expect("runs");
        if runs.is_empty() {
            return;
        }
        for run in runs {
            outcome(engine, &run.id);
        }
    }
    panic!("it never ends: {}", statuses(engine));
}

/// A way to end a run.
type End = fn(&Engine, &RunId) -> Result<(), EngineError>;

const CANCEL: End = |engine, run| {
    let cancelled = block_on(engine.cancel(run, "enough", Rc::new(NoObserver)));
    cancelled.map(|_| ())
};
const FORCE: End = |engine, run| block_on(engine.terminate(run, "enough", Rc::new(NoObserver)));
const FAIL: End = |engine, run| {
    let waits = block_on(engine.list_waits(WaitFilter::default()))?;
    let other = waits.iter().find(|wait| wait.path.ends_with("other"));
    if let Some(other) = other {
        let answer = codec::decode("{:action :go}").expect("EDN");
        block_on(engine.complete_wait(&other.id, &answer, false))?;
    }
    let executed = crate::bench::execute(engine, run);
    executed.map(|_| ())
};

/// Ends a waiting run in a process that dies after each number of commits; the next process completes the work. Returns
/// the final states of all runs, which must be the same each time.
fn ended(text: &str, end: End) -> String {
    let mut expected = None;
    // A process that dies after a commit that it knows of has the same state as one that dies before the next commit:
    // except for the first, only silent deaths are tested.
    let deaths = std::iter::once((false, 0)).chain((0..).map(|left| (true, left)));
    for (silently, left) in deaths {
        let bench = Bench::over(STORE);
        bench.file(
            "flows/hangs.edn",
            "(try (flow/step :hold :door {}) (finally (flow/step :write :tidied {})))",
        );
        let run = {
            let engine = bench.engine();
            let run = bench.start(&engine, text);
            let first = outcome(&engine, &run);
            assert!(first.starts_with("waiting"), "{first}");
            run
        };
        let first = {
            let engine = bench.engine_over(stores(&bench, left, silently));
            end(&engine, &run)
        };
        let is_dead = match first {
            Ok(()) => false,
            Err(error) if error.to_string().contains(DEAD) => true,
            Err(error) => panic!("{error}"),
        };
        let engine = bench.engine();
        resume_all(&engine);
        let found = format!("{}; {}", statuses(&engine), done(&bench))
            .trim_end_matches("; ")
            .to_owned();
        let expected = expected.get_or_insert_with(|| found.clone());
        assert_eq!(&found, expected, "left {left} silently {silently}");
        // The signal of a dead process may be lost: children then clean up concurrently.
        if !is_dead && left > 3 {
            break;
        }
    }
    expected.unwrap_or_default()
}

#[test]
fn a_cancelled_run_executes_its_finally_blocks_after_any_crash() {
    let text = "(do (flow/on-cancel (fn [] (flow/step :write :told {})))
        (flow/compensate (flow/step :write :a {}) (fn [] (flow/step :write :undo-a {})))
        (flow/compensate (flow/step :write :b {}) (fn [] (flow/step :write :undo-b {})))
        (try (flow/step :hold :other {}) (catch Exception e :seen) (finally (flow/step :write :last {}))))";
    expect!["flow cancelled; a b compensate/1/undo-a compensate/2/undo-b last on-cancel/1/told"]
        .assert_eq(&ended(text, CANCEL));
    expect!["flow terminated; a b"].assert_eq(&ended(text, FORCE));
}

#[test]
fn children_end_by_their_policies_after_any_crash() {
    let mut found = String::new();
    let ends = [("cancelled", CANCEL), ("forced", FORCE), ("failed", FAIL)];
    for (name, end) in ends {
        for policy in ["request-cancel", "terminate", "abandon"] {
            if name == "forced" && policy != "request-cancel" {
                continue;
            }
            let text = format!(
                "(flow/all [(fn [] (flow/call-flow :hangs {{}} {{:parent-close-policy :{policy}}}))
                            (fn [] (flow/step :hold :other {{}}) (throw (ex-info \"late\" {{}})))])"
            );
            found += &format!("{name} {policy}: {}\n", ended(&text, end));
        }
    }
    expect![[r#"
        cancelled request-cancel: flow cancelled, hangs cancelled; tidied
        cancelled terminate: flow cancelled, hangs terminated
        cancelled abandon: flow cancelled, hangs waiting
        forced request-cancel: flow terminated, hangs cancelled; tidied
        failed request-cancel: flow failed, hangs cancelled; tidied
        failed terminate: flow failed, hangs terminated
        failed abandon: flow failed, hangs waiting
    "#]]
    .assert_eq(&found);
}

/// A run that is terminated by force right before a commit of its executor.
struct Overtaken {
    inner: Arc<dyn Journal>,
    runs: Arc<dyn Runs>,
    left: AtomicI64,
    seen: Arc<Mutex<Option<Seen>>>,
}

/// The journal when the run was ended, and the content of the commit after that.
struct Seen {
    rows: usize,
    next: Option<EntryKind>,
}

impl Journal for Overtaken {
    fn commit(&self, batch: Batch) -> PortFuture<'static, Receipt> {
        if self.left.fetch_sub(1, Ordering::SeqCst) != 0 {
            return self.inner.commit(batch);
        }
        let (inner, runs, seen) = (self.inner.clone(), self.runs.clone(), self.seen.clone());
        Box::pin(async move {
            runs.terminate(&batch.run, "enough", 0).await?;
            let rows = inner.load(&batch.run).await?.len();
            let next = batch.changes.iter().find_map(|change| match change {
                Change::Append(entry) => Some(entry.kind),
                _ => None,
            });
            *seen.lock().expect("no panic") = Some(Seen { rows, next });
            inner.commit(batch).await
        })
    }

    fn post(&self, batch: Batch) -> Result<(), StoreError> {
        self.inner.post(batch)
    }

    fn load(&self, run: &RunId) -> PortFuture<'_, Vec<Entry>> {
        self.inner.load(run)
    }
}

#[test]
fn nothing_is_done_after_a_run_was_ended_by_force() {
    let text =
        "(do (flow/compensate (flow/step :write :a {}) (fn [] (flow/step :write :undo-a {})))
        (try (flow/step :write :b {}) (finally (flow/step :write :tidied {})))
        (flow/step :put :c {:value 1}) (flow/step :write :d {}))";
    let mut found = String::new();
    for left in 0.. {
        let bench = Bench::over(STORE);
        let stores = bench.stores();
        let seen = Arc::new(Mutex::new(None));
        let overtaken = Overtaken {
            inner: stores.journal.clone(),
            runs: stores.runs.clone(),
            left: AtomicI64::new(left),
            seen: seen.clone(),
        };
        let engine = bench.engine_over(Stores {
            journal: Arc::new(overtaken),
            ..stores
        });
        let run = bench.start(&engine, text);
        let last = outcome(&engine, &run);
        let Some(Seen { rows, next }) = seen.lock().expect("no panic").take() else {
            assert!(!last.starts_with("terminated"), "{last}");
            break;
        };
        let journal = block_on(engine.stores().journal.load(&run)).expect("a journal");
        assert_eq!(journal.len(), rows, "before commit {left}");
        assert_eq!(statuses(&engine), "flow terminated");
        found += &format!("{last}; {next:?}; {:?}\n", bench.effects());
    }
    expect![[r#"
        terminated: enough; Some(Intent); ""
        terminated: enough; Some(Result); "a=1"
        terminated: enough; Some(Result); "a=1 b=1"
        terminated: enough; None; "a=1 b=1 tidied=1"
        terminated: enough; Some(Intent); "a=1 b=1 tidied=1"
        terminated: enough; Some(Result); "a=1 b=1 d=1 tidied=1"
    "#]]
    .assert_eq(&found);
}
