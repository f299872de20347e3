//! A process that dies at any commit of a push, an install, a configure or an upgrade: what it wrote is whole or not there, and
//! the same call once more succeeds.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use flowstone_engine::Engine;
use flowstone_engine::installation::{InstallationName, InstallationRow};
use flowstone_engine::ports::{CommitPhase, Probe, StoreError, Stores};
use flowstone_engine::registry::{DEFAULT_WORKSPACE, FlowName};
use flowstone_lang::value::Value;
use flowstone_project::installations::{self, Changes, InstallationError, NewInstallation};
use flowstone_project::registry::{Base, FlowRegistry, NewCommit, VersionFiles, VersionRef};
use flowstone_stores::Options;
use flowstone_stores::memory::{Memory, MemoryOptions};

use super::STORE;
use crate::bench::{Bench, Project, Store, block_on};

/// The name that each case installs.
fn at() -> InstallationName {
    InstallationName {
        workspace: "acme".to_owned(),
        name: "main".to_owned(),
    }
}

fn files(body: &str) -> VersionFiles {
    let text = format!(
        "{{:slug :digest :requires [{{:kind :form :fields [{{:key :region :field-type :text}}]}}]
           :flow '{body}}}"
    );
    VersionFiles::from([
        ("flow.edn".to_owned(), text.into_bytes()),
        ("part.md".to_owned(), vec![b'x'; 20_000]),
    ])
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

/// A project whose process can be ended.
struct Machine {
    bench: Bench,
    memory: Option<Memory>,
    fuse: Arc<Fuse>,
}

impl Machine {
    fn new() -> Machine {
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
        Machine {
            bench,
            memory,
            fuse,
        }
    }

    fn fused(&self) -> Stores {
        match &self.memory {
            Some(memory) => memory.open(),
            None => {
                let options = Options {
                    probe: Some(self.fuse.clone()),
                    ..Options::default()
                };
                let home = self.bench.home.path().join("home");
                flowstone_stores::open(&home, &options).expect("the database opens")
            }
        }
    }

    /// Performs a call whose process dies after some commits and half commits. Tells whether it died.
    fn performed(&self, call: Call, left: i64) -> bool {
        let engine = self.bench.engine_over(self.fused());
        self.fuse.left.store(left, Ordering::SeqCst);
        let done = block_on(call(&engine));
        let has_died = self.fuse.left.swap(i64::MAX, Ordering::SeqCst) < 0;
        drop(engine);
        match &self.memory {
            Some(memory) if has_died => memory.crash(),
            _ => {}
        }
        if !has_died {
            done.expect("an undisturbed call succeeds");
        }
        has_died
    }
}

type Done<'a> = std::pin::Pin<Box<dyn Future<Output = Result<(), InstallationError>> + 'a>>;
type Call = for<'a> fn(&'a Engine) -> Done<'a>;

fn push<'a>(engine: &'a Engine, body: &'static str) -> Done<'a> {
    Box::pin(async move {
        let registry = FlowRegistry::new(engine.stores(), engine.now_ms());
        let new = NewCommit {
            base: Base::Any,
            ..NewCommit::of("digest", files(body))
        };
        registry.commit(new).await?;
        registry.release("digest", None, ("ada", "")).await?;
        Ok(())
    })
}

fn install(engine: &Engine) -> Done<'_> {
    Box::pin(async move {
        let new = NewInstallation {
            flow: FlowName::local("digest"),
            at: at(),
            is_readable: true,
        };
        installations::install(engine, new).await.map(drop)
    })
}

fn install_package(engine: &Engine) -> Done<'_> {
    Box::pin(async move {
        let flow = installations::add_package(engine, files("1")).await?;
        let new = NewInstallation {
            flow,
            at: at(),
            is_readable: true,
        };
        installations::install(engine, new).await.map(drop)
    })
}

fn configure(engine: &Engine) -> Done<'_> {
    Box::pin(async move {
        let setup = Value::map([(Value::keyword("region"), Value::from("EU"))]);
        let changes = Changes {
            setup: Some(setup),
            max_tokens: Some(900),
            ..Changes::default()
        };
        installations::configure(engine, &at(), changes)
            .await
            .map(drop)
    })
}

fn upgrade(engine: &Engine) -> Done<'_> {
    Box::pin(async move {
        let changes = Changes {
            upgrade: true,
            ..Changes::default()
        };
        installations::configure(engine, &at(), changes)
            .await
            .map(drop)
    })
}

/// Returns what a home has: the installation, its setup values, and the versions of each flow with their live one.
type Contents = (
    Option<InstallationRow>,
    Option<Value>,
    BTreeMap<String, (i64, Option<i64>)>,
);

fn contents(engine: &Engine) -> Contents {
    block_on(async {
        let rows = &engine.stores().installations;
        let row = rows.installation(&at()).await.expect("read");
        let mut flows = BTreeMap::new();
        let mut workspaces = vec![DEFAULT_WORKSPACE.to_owned()];
        let files = flowstone_engine::registry::Manifest::of(&files("1")).expect("files");
        workspaces.push(installations::package_workspace(&files.digest()));
        for workspace in workspaces {
            let registry = FlowRegistry::in_workspace(engine.stores(), &workspace, engine.now_ms());
            for flow in registry.flows(true).await.expect("a list") {
                for number in 1..=flow.head {
                    let version = registry
                        .version(&flow.name.slug, &VersionRef::Number(number))
                        .await
                        .expect("each version is there");
                    let found = registry.files(&version).await.expect("with its files");
                    assert_eq!(found.len(), 2);
                }
                flows.insert(flow.name.to_string(), (flow.head, flow.live));
            }
        }
        let setup = row.as_ref().map(|row| engine.opened_setup(row));
        let setup = setup.transpose().expect("setup values are readable");
        // Times differ from call to call.
        let row = row.map(|row| InstallationRow {
            setup: String::new(),
            updated_ms: 0,
            created_ms: 0,
            changes: 0,
            ..row
        });
        (row, setup, flows)
    })
}

/// Ends the process at each commit of a call, after calls that prepare it. Returns the number of deaths.
fn die_everywhere(before: &[Call], call: Call) -> i64 {
    let prepared = || {
        let machine = Machine::new();
        for call in before {
            assert!(!machine.performed(*call, i64::MAX));
        }
        machine
    };
    let machine = prepared();
    let old = contents(&machine.bench.engine()).0;
    assert!(!machine.performed(call, i64::MAX));
    let whole = contents(&machine.bench.engine());
    for left in 0.. {
        let machine = prepared();
        if !machine.performed(call, left) {
            return left;
        }
        let engine = machine.bench.engine();
        let (row, _, flows) = contents(&engine);
        assert!(row == old || row == whole.0, "dead after {left}: {row:?}");
        assert!(
            row != whole.0 || row == old || flows == whole.2,
            "dead after {left}: {flows:?}"
        );
        block_on(call(&engine)).expect("the same call once more succeeds");
        assert_eq!(contents(&engine), whole, "dead after {left}");
    }
    unreachable!("the numbers do not end")
}

const FIRST: Call = |engine| push(engine, "1");
const SECOND: Call = |engine| push(engine, "2");

#[test]
fn an_install_is_whole_or_not_there_and_succeeds_when_repeated() {
    // Before and after the commit of its row.
    assert_eq!(die_everywhere(&[FIRST], install), 2);
}

#[test]
fn an_install_of_a_package_is_whole_or_not_there_and_succeeds_when_repeated() {
    // The version, its release, and the row.
    assert_eq!(die_everywhere(&[], install_package), 6);
}

#[test]
fn a_configure_is_whole_or_not_there_and_succeeds_when_repeated() {
    assert_eq!(die_everywhere(&[FIRST, install], configure), 2);
}

#[test]
fn an_upgrade_is_whole_or_not_there_and_succeeds_when_repeated() {
    let before = [FIRST, install, configure, SECOND];
    assert_eq!(die_everywhere(&before, upgrade), 2);
}

#[test]
fn a_push_and_its_release_are_whole_or_not_there_and_succeed_when_repeated() {
    assert_eq!(die_everywhere(&[FIRST, install], SECOND), 4);
}
