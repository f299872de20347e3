//! A process that ends at every commit, before it or right after it: the resumed run has the same result.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use flowstone_engine::ids::RunId;
use flowstone_engine::ports::{
    Batch, Entry, Journal, PortFuture, Receipt, StoreError, Stores, WaitFilter,
};
use flowstone_lang::value::Value;

use super::STORE;
use crate::bench::{Bench, block_on, outcome};

/// Allows a number of commits, and refuses all later ones: the process is dead.
struct Dying {
    inner: Arc<dyn Journal>,
    left: AtomicI64,
    /// The last commit takes effect, but its caller gets no answer.
    silently: bool,
}

fn dead() -> StoreError {
    StoreError::Internal("the process is dead".to_owned())
}

impl Journal for Dying {
    fn commit(&self, batch: Batch) -> PortFuture<'static, Receipt> {
        let left = self.left.fetch_sub(1, Ordering::SeqCst);
        if left > 0 {
            return self.inner.commit(batch);
        }
        let last = (left == 0 && self.silently).then(|| self.inner.commit(batch));
        Box::pin(async move {
            if let Some(last) = last {
                last.await?;
            }
            Err(dead())
        })
    }

    fn post(&self, batch: Batch) -> Result<(), StoreError> {
        let left = self.left.fetch_sub(1, Ordering::SeqCst);
        if left > 0 || (left == 0 && self.silently) {
            self.inner.post(batch)?;
        }
        if left > 0 { Ok(()) } else { Err(dead()) }
    }

    fn load(&self, run: &RunId) -> PortFuture<'_, Vec<Entry>> {
        self.inner.load(run)
    }
}

const FLOW: &str = "(let [a (flow/step :write :a {:value 1})
      b (flow/step :look :b {:value (inc a)})
      c (flow/step :put :c {:value b})
      n (flow/now-ms)
      d (flow/step :write :d {:value [b n] :times 1 :retry {:max-attempts 3}})
      e (flow/step :put :c {:value :again})
      f (flow/step :pause :f {:times 100})
      g (try (flow/step :write :g {:times 9}) (catch Exception e (ex-message e)))]
  [a b (:value c) (first d) (:value e) f g])";

/// Returns stores that accept a number of commits.
pub fn stores(bench: &Bench, left: i64, silently: bool) -> Stores {
    let stores = bench.stores();
    Stores {
        journal: Arc::new(Dying {
            inner: stores.journal.clone(),
            left: AtomicI64::new(left),
            silently,
        }),
        ..stores
    }
}

#[test]
fn a_crash_at_any_commit_loses_nothing() {
    let (expected, rows) = {
        let bench = Bench::over(STORE);
        let engine = bench.engine();
        let run = bench.start(&engine, FLOW);
        (outcome(&engine, &run), stored(&bench))
    };
    assert!(expected.starts_with("[1 2 "), "{expected}");
    let in_doubt = Cell::new(0);
    for silently in [false, true] {
        for left in 0.. {
            let bench = Bench::over(STORE);
            let engine = bench.engine_over(stores(&bench, left, silently));
            let run = bench.start(&engine, FLOW);
            let first = outcome(&engine, &run);
            drop(engine);
            if !first.contains("the process is dead") {
                assert_eq!(first, expected);
                break;
            }
            let engine = bench.engine();
            let mut last = outcome(&engine, &run);
            // It is unknown whether the effect was done: a person checks, and reports it.
            while last.starts_with("waiting") {
                in_doubt.set(in_doubt.get() + 1);
                let waits = block_on(engine.list_waits(WaitFilter::default())).expect("waits");
                let path = waits[0].path.trim_end_matches("?1").to_owned();
                assert!(
                    waits[0].details.contains(":in-doubt"),
                    "{}",
                    waits[0].details
                );
                let retry = Value::keyword("retry");
                let was_done = bench.effects().contains(&format!("{path}="));
                assert!(!was_done || ["a", "d", "g"].contains(&&*path), "{path}");
                block_on(engine.complete_wait(&waits[0].id, &retry, false)).expect("answered");
                last = outcome(&engine, &run);
            }
            assert_eq!(last, expected, "left {left} silently {silently}");
            assert_eq!(stored(&bench), rows, "left {left} silently {silently}");
            assert!(
                !bench.effects().contains("c="),
                "own stores have no effects outside"
            );
        }
    }
    assert!(in_doubt.get() > 0, "some crash leaves an effect in doubt");
}

/// Returns what the steps have stored.
fn stored(bench: &Bench) -> Option<String> {
    let stores = bench.stores();
    block_on(stores.kv.get("all", 0)).expect("readable")
}
