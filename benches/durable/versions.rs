//! Versions of flows: how long a push, a list and a difference take, and what a version adds to the database.

use std::io::{Error, Result};
use std::path::Path;
use std::time::Instant;

use flowstone_project::registry::{Base, FlowRegistry, NewCommit, VersionFiles, VersionRef};

use crate::Measured;
use crate::run::block_on;
use crate::world::World;

const FLOWS: usize = 100;
const VERSIONS: usize = 1_000;
/// Steps of a flow; a version changes one of them.
const STEPS: usize = 100;

/// Returns the text of a version: about 10 KB, with one line that differs from the version before.
fn text(flow: usize, version: usize) -> String {
    let mut text = format!(
        "{{:slug :flow-{flow}\n :concurrency {{:type :singleton :on-new-version :coexist}}\n :flow '(do\n"
    );
    for step in 0..STEPS {
        let changed = (version + STEPS - 1 - step) / STEPS;
        text += &format!(
            "   (flow/step :function :part-{step} {{:input {{:n {changed} :flow {flow}}} :code '(fn [{{:keys [n]}}] (inc n))}})\n"
        );
    }
    text + "   :done)}\n"
}

fn commit(flow: usize, version: usize) -> NewCommit {
    let text = text(flow, version).into_bytes();
    NewCommit {
        base: match version {
            0 => Base::Nothing,
            version => Base::Version(i64::try_from(version).unwrap_or(i64::MAX)),
        },
        author: "ada".to_owned(),
        message: format!("Change a step, version {version}"),
        ..NewCommit::of(
            &format!("flow-{flow}"),
            VersionFiles::from([("flow.edn".to_owned(), text)]),
        )
    }
}

/// Bytes of the database once its log is in it.
fn size(folder: &Path) -> Result<u64> {
    Ok(std::fs::metadata(folder.join("home/flowstone.db"))?.len())
}

/// Adds versions from `from` to `to` to each flow; the flows side by side.
fn fill(folder: &Path, from: usize, to: usize) -> Result<()> {
    let world = World::open(folder)?;
    let registry = FlowRegistry::new(&world.stores, 1);
    block_on(async {
        for version in from..to {
            let mut pushes = Vec::new();
            for flow in 0..FLOWS {
                let registry = registry.clone();
                pushes.push(async move { registry.commit(commit(flow, version)).await });
            }
            for pushed in futures_join(pushes).await {
                pushed.map_err(Error::other)?;
            }
        }
        Ok(())
    })
}

/// Awaits all at once, so that they share a transaction.
async fn futures_join<T>(all: Vec<impl Future<Output = T>>) -> Vec<T> {
    let mut all: Vec<_> = all.into_iter().map(|it| (Box::pin(it), None)).collect();
    std::future::poll_fn(|cx| {
        let mut is_done = true;
        for (future, done) in &mut all {
            if done.is_none() {
                match future.as_mut().poll(cx) {
                    std::task::Poll::Ready(value) => *done = Some(value),
                    std::task::Poll::Pending => is_done = false,
                }
            }
        }
        match is_done {
            true => std::task::Poll::Ready(()),
            false => std::task::Poll::Pending,
        }
    })
    .await;
    all.into_iter().filter_map(|(_, done)| done).collect()
}

/// 1,000 versions of each of 100 flows.
pub fn of_many_flows(folder: &Path) -> Result<Measured> {
    fill(folder, 0, 1)?;
    let before = size(folder)?;
    fill(folder, 1, VERSIONS)?;
    let grown = (size(folder)? - before) as f64 / (FLOWS * (VERSIONS - 1)) as f64;
    let world = World::open(folder)?;
    let registry = FlowRegistry::new(&world.stores, 1);
    let [push, list, diff] = block_on(async {
        let mut millis = [0.0_f64; 3];
        for (round, flow) in [3, 50, 98].into_iter().enumerate() {
            let slug = format!("flow-{flow}");
            let begun = Instant::now();
            let pushed = registry.commit(commit(flow, VERSIONS)).await;
            pushed.map_err(Error::other)?;
            millis[0] = millis[0].max(begun.elapsed().as_secs_f64() * 1e3);
            let begun = Instant::now();
            registry.flows(false).await.map_err(Error::other)?;
            registry
                .versions(&slug, None, 100)
                .await
                .map_err(Error::other)?;
            millis[1] = millis[1].max(begun.elapsed().as_secs_f64() * 1e3);
            let (old, new) = (1 + round as i64, 700 + round as i64);
            let begun = Instant::now();
            let pair = (&VersionRef::Number(old), &VersionRef::Number(new));
            registry.diff(&slug, pair).await.map_err(Error::other)?;
            millis[2] = millis[2].max(begun.elapsed().as_secs_f64() * 1e3);
        }
        Ok::<_, Error>(millis)
    })?;
    let whole = text(0, 0).len();
    Ok(Measured {
        words: format!(
            "push {push:.1} ms, list {list:.1} ms, diff {diff:.1} ms; {grown:.0} bytes a version of {whole}"
        ),
        is_met: push < 20.0 && list < 20.0 && diff < 20.0 && grown < 1_000.0,
    })
}
