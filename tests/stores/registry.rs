//! Versions of flows: added once, never changed, and found again after a crash at any commit.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use flowstone_engine::ports::{PortFuture, Registry, RegistryAnswer, StoreError, Stores};
use flowstone_engine::registry::{
    Added, FlowName, FlowRow, Moved, NewRelease, NewVersion, ReleaseRow, VersionFiles, VersionRow,
};
use flowstone_project::registry::{
    Base, FlowRegistry, NewCommit, RegistryError, Target, VersionRef, check_version, files_of,
};

use super::STORE;
use crate::bench::{Bench, block_on};

fn flow(body: &str) -> String {
    format!(
        "{{:slug :report\n :concurrency {{:type :singleton :on-new-version :coexist}}\n :flow '{body}}}\n"
    )
}

fn files(body: &str) -> VersionFiles {
    VersionFiles::from([("flow.edn".to_owned(), flow(body).into_bytes())])
}

fn commit(body: &str, base: Base) -> NewCommit {
    NewCommit {
        base,
        author: "ada".to_owned(),
        ..NewCommit::of("report", files(body))
    }
}

fn registry(bench: &Bench) -> FlowRegistry {
    FlowRegistry::new(&bench.stores(), bench.clock_ms())
}

fn number(added: Result<Added, RegistryError>) -> i64 {
    added.expect("added").version().number
}

#[test]
fn a_version_has_a_number_a_digest_a_parent_and_a_message() {
    let bench = Bench::over(STORE);
    let registry = registry(&bench);
    let first = block_on(registry.commit(commit("1", Base::Nothing))).expect("added");
    let first = first.version().clone();
    assert_eq!((first.number, first.parent), (1, None));
    assert_eq!(first.message, "First version");
    let second = block_on(registry.commit(commit("2", Base::Version(1)))).expect("added");
    let second = second.version().clone();
    assert_eq!((second.number, second.parent), (2, Some(1)));
    assert_eq!((&*second.author, &*second.message), ("ada", "Change :flow"));
    assert_ne!(first.content, second.content);
    assert_ne!(first.revision, second.revision);
    // The same content again is a version with the digest of the first.
    let third = block_on(registry.commit(commit("1", Base::Version(2)))).expect("added");
    let third = third.version().clone();
    assert_eq!(third.content, first.content);
    assert_ne!(third.revision, first.revision);
    for (version, body) in [(&first, "1"), (&second, "2"), (&third, "1")] {
        assert_eq!(
            block_on(registry.files(version)).expect("files"),
            files(body)
        );
    }
    let listed = block_on(registry.versions("report", None, 10)).expect("a list");
    assert_eq!(listed, [third.clone(), second.clone(), first.clone()]);
    let older = block_on(registry.versions("report", Some(3), 1)).expect("a list");
    assert_eq!(older, [second]);
    let by_id = VersionRef::read(&first.revision).expect("an id");
    let found = block_on(registry.version("report", &by_id)).expect("found");
    assert_eq!(found, first);
    // What the registry knows is there for the next process.
    let again = FlowRegistry::new(&bench.stores(), 0);
    let head = VersionRef::Target(Target::Draft);
    assert_eq!(
        block_on(again.version("report", &head)).expect("found"),
        third
    );
}

#[test]
fn the_head_is_not_added_again() {
    let bench = Bench::over(STORE);
    let registry = registry(&bench);
    assert_eq!(
        number(block_on(registry.commit(commit("1", Base::Nothing)))),
        1
    );
    for base in [Base::Nothing, Base::Version(1), Base::Version(7), Base::Any] {
        let added = block_on(registry.commit(commit("1", base))).expect("accepted");
        assert!(matches!(added, Added::Unchanged(row) if row.number == 1));
    }
}

#[test]
fn of_two_commits_on_one_base_one_wins_and_the_other_sees_what_changed() {
    let bench = Bench::over(STORE);
    let registry = registry(&bench);
    block_on(registry.commit(commit("1", Base::Nothing))).expect("added");
    let (one, other) = block_on(async {
        tokio::join!(
            registry.commit(commit("2", Base::Version(1))),
            registry.commit(commit("3", Base::Version(1)))
        )
    });
    assert_eq!(number(one), 2);
    let Err(RegistryError::Conflict(conflict)) = other else {
        panic!("the second commit is refused");
    };
    assert_eq!(conflict.head.as_ref().map(|head| head.number), Some(2));
    assert_eq!(conflict.changed, ["flow.edn"]);
    assert!(conflict.diff.contains("- :flow '1}"), "{}", conflict.diff);
    assert!(conflict.diff.contains("+ :flow '2}"), "{}", conflict.diff);
    let error = RegistryError::Conflict(conflict);
    assert_eq!((error.code(), error.kind()), ("E1402", "revision_conflict"));
    assert_eq!(
        error.to_string(),
        "version 1 of `report` is not the newest any more: version 2 by ada changed flow.edn"
    );
    assert_eq!(number(block_on(registry.commit(commit("3", Base::Any)))), 3);
    let refused = block_on(registry.commit(commit("4", Base::Nothing))).expect_err("it exists");
    assert_eq!(refused.code(), "E1402");
}

#[test]
fn a_working_copy_remembers_its_version() {
    let bench = Bench::over(STORE);
    let registry = registry(&bench);
    let push = |body: &str, place: &str| {
        let new = NewCommit {
            place: Some(place.to_owned()),
            ..commit(body, Base::OfPlace)
        };
        block_on(registry.commit(new))
    };
    assert_eq!(number(push("1", "a")), 1);
    assert_eq!(number(push("2", "a")), 2);
    let unknown = push("3", "b").expect_err("it has no version");
    assert_eq!(unknown.code(), "E1403");
    let head = VersionRef::Target(Target::Draft);
    let head = block_on(registry.version("report", &head)).expect("a head");
    block_on(registry.check_out(&head, "b")).expect("noted");
    assert_eq!(number(push("3", "b")), 3);
    assert_eq!(push("4", "a").expect_err("it is behind").code(), "E1402");
    // Equal files are what the registry has, whatever the copy was made of.
    assert_eq!(number(push("3", "a")), 3);
    assert_eq!(number(push("4", "a")), 4);
}

#[test]
fn live_moves_with_a_log() {
    let bench = Bench::over(STORE);
    let registry = registry(&bench);
    let live = || {
        let found = block_on(registry.flow("report")).expect("a flow");
        found.live
    };
    for (body, base) in [("1", Base::Nothing), ("2", Base::Any), ("3", Base::Any)] {
        block_on(registry.commit(commit(body, base))).expect("added");
    }
    assert_eq!(live(), None);
    let unreleased = VersionRef::Target(Target::Live);
    let refused = block_on(registry.version("report", &unreleased)).expect_err("no release");
    assert_eq!(refused.code(), "E1409");
    let rollback = || block_on(registry.rollback("report", None, ("eve", "")));
    assert_eq!(rollback().expect_err("nothing is live").code(), "E1406");
    block_on(registry.release("report", Some(1), ("ada", "first"))).expect("released");
    block_on(registry.release("report", None, ("ada", ""))).expect("released");
    assert_eq!(live(), Some(3));
    let again = block_on(registry.release("report", None, ("ada", ""))).expect("accepted");
    assert_eq!(again, Moved::Already(3));
    rollback().expect("moved");
    assert_eq!(live(), Some(1));
    assert_eq!(rollback().expect_err("it is the first").code(), "E1406");
    let missing =
        block_on(registry.release("report", Some(9), ("ada", ""))).expect_err("no version");
    assert_eq!(missing.code(), "E1401");
    let log = block_on(registry.releases("report", 10)).expect("a log");
    let log: Vec<(&str, i64, Option<i64>, &str)> = log
        .iter()
        .map(|row| (row.kind.name(), row.version, row.before, &*row.author))
        .collect();
    assert_eq!(
        log,
        [
            ("rollback", 1, Some(3), "eve"),
            ("release", 3, Some(1), "ada"),
            ("release", 1, None, "ada"),
        ]
    );
}

#[test]
fn an_archived_flow_takes_no_versions_and_no_release() {
    let bench = Bench::over(STORE);
    let registry = registry(&bench);
    block_on(registry.commit(commit("1", Base::Nothing))).expect("added");
    block_on(registry.archive("report", true)).expect("archived");
    let code = |error: RegistryError| error.code();
    let refused = block_on(registry.commit(commit("2", Base::Version(1)))).map_err(code);
    assert_eq!(refused, Err("E1404"));
    let refused = block_on(registry.release("report", None, ("ada", ""))).map_err(code);
    assert_eq!(refused, Err("E1404"));
    assert_eq!(block_on(registry.flows(false)).expect("a list"), []);
    assert_eq!(block_on(registry.flows(true)).expect("a list").len(), 1);
    assert_eq!(
        block_on(registry.versions("report", None, 5))
            .expect("a list")
            .len(),
        1
    );
    block_on(registry.archive("report", false)).expect("back");
    block_on(registry.commit(commit("2", Base::Version(1)))).expect("added");
    let missing = block_on(registry.archive("raport", true)).expect_err("no flow");
    assert_eq!(missing.hint().as_deref(), Some("did you mean `report`?"));
}

#[test]
fn what_is_too_much_or_leaves_the_version_is_refused() {
    let bench = Bench::over(STORE);
    let registry = registry(&bench);
    let code = |new: NewCommit| match block_on(registry.commit(new)) {
        Ok(_) => "added",
        Err(error) => error.code(),
    };
    let with = |path: &str, bytes: Vec<u8>| {
        let mut new = commit("1", Base::Nothing);
        new.files.insert(path.to_owned(), bytes);
        new
    };
    assert_eq!(code(with("../a", Vec::new())), "E1407");
    assert_eq!(code(with("/etc/passwd", Vec::new())), "E1407");
    assert_eq!(code(with("big", vec![0; 20_000_000])), "E1407");
    let mut long = commit("1", Base::Nothing);
    long.message = "m".repeat(10_001);
    assert_eq!(code(long), "E1410");
    let mut none = commit("1", Base::Nothing);
    none.files.clear();
    assert_eq!(code(none), "E1407");
    assert_eq!(block_on(registry.flows(true)).expect("a list"), []);
    // Names are values: none of them is read as something else.
    let odd = "a'; DROP TABLE flow_version; --";
    let new = NewCommit::of(odd, files("1"));
    assert_eq!(code(new), "added");
    assert_eq!(block_on(registry.flow(odd)).expect("a flow").head, 1);
    assert_eq!(block_on(registry.flows(true)).expect("a list").len(), 1);
}

#[test]
fn a_text_is_checked_before_it_is_a_version() {
    let bench = Bench::over(STORE);
    let engine = bench.engine();
    let check = |text: &str| {
        let files = VersionFiles::from([("flow.edn".to_owned(), text.as_bytes().to_vec())]);
        check_version("report", &files, |session, texts| {
            engine.check_version(session, "report", texts)
        })
    };
    assert_eq!(check(&flow("(+ 1 2)")).expect("no problem"), []);
    let refused = check(&flow("(+ 1 (nope))")).expect_err("an unknown name");
    assert_eq!(refused.code(), "E1405");
    let RegistryError::CheckFailed { problems, .. } = refused else {
        panic!("the check failed");
    };
    assert_eq!((problems[0].line, problems[0].column), (3, 15));
    assert_eq!(problems[0].file.as_deref(), Some("report.edn"));
    let other = flow("1").replace(":report", ":other");
    assert_eq!(check(&other).expect_err("another flow").code(), "E1408");
    assert_eq!(check("(+ 1 2)").expect_err("not a map").code(), "E1405");
    assert_eq!(check("{:slug").expect_err("unreadable").code(), "E1405");
}

#[test]
fn a_version_runs_as_its_file_does() {
    use std::rc::Rc;

    use flowstone_engine::StartOptions;
    use flowstone_lang::value::Value;

    let bench = Bench::over(STORE);
    let engine = bench.engine();
    bench.file("flows/parts/list.edn", "[1 2 3]");
    bench.file(
        "flows/report.edn",
        &flow("(count #flow/include \"parts/list.edn\")"),
    );
    let path = bench.home.path().join("flows/report.edn");
    let checked = engine.check(&engine.session(), &path, "flows/report.edn");
    let loaded = checked.loaded.expect("a flow");
    let files = files_of(&loaded).expect("files");
    assert_eq!(
        files.keys().collect::<Vec<_>>(),
        ["flow.edn", "parts/list.edn"]
    );
    let registry = registry(&bench);
    let added = block_on(registry.commit(NewCommit::of("report", files))).expect("added");
    // The version keeps what it was made of.
    bench.file("flows/parts/list.edn", "[]");
    let session = Rc::new(engine.session());
    let checked = block_on(engine.version_flow(&session, added.version(), None)).expect("readable");
    assert!(!checked.has_errors(), "{:?}", checked.findings);
    let flow = checked.loaded.expect("a flow");
    let options = StartOptions::with_input(Value::Nil);
    let run = block_on(engine.start(&flow, options)).expect("it starts");
    assert_eq!(crate::bench::outcome(&engine, &run), "3");
}

/// Allows a number of changes of the registry, and refuses all later ones: the process is dead.
struct Dying {
    inner: Arc<dyn Registry>,
    left: AtomicI64,
    /// The last change takes effect, but its caller gets no answer.
    silently: bool,
}

impl Dying {
    fn over(stores: &Stores, left: i64, silently: bool) -> Stores {
        Stores {
            registry: Arc::new(Dying {
                inner: stores.registry.clone(),
                left: AtomicI64::new(left),
                silently,
            }),
            ..stores.clone()
        }
    }

    fn change<T: Send + 'static>(
        &self,
        change: impl FnOnce(Arc<dyn Registry>) -> PortFuture<'static, T>,
    ) -> PortFuture<'static, T> {
        let left = self.left.fetch_sub(1, Ordering::SeqCst);
        let inner = self.inner.clone();
        if left > 0 {
            return change(inner);
        }
        let last = (left == 0 && self.silently).then(|| change(inner));
        Box::pin(async move {
            if let Some(last) = last {
                last.await?;
            }
            Err(StoreError::Internal("the process is dead".to_owned()))
        })
    }
}

impl Registry for Dying {
    fn add_version(&self, new: NewVersion) -> PortFuture<'_, RegistryAnswer<Added>> {
        self.change(|inner| Box::pin(async move { inner.add_version(new).await }))
    }

    fn move_live(&self, release: NewRelease) -> PortFuture<'_, RegistryAnswer<Moved>> {
        self.change(|inner| Box::pin(async move { inner.move_live(release).await }))
    }

    fn archive(
        &self,
        flow: &FlowName,
        archived_ms: Option<i64>,
    ) -> PortFuture<'_, RegistryAnswer<FlowRow>> {
        let flow = flow.clone();
        self.change(move |inner| Box::pin(async move { inner.archive(&flow, archived_ms).await }))
    }

    fn flow(&self, flow: &FlowName) -> PortFuture<'_, Option<FlowRow>> {
        self.inner.flow(flow)
    }

    fn flows(&self, workspace: &str) -> PortFuture<'_, Vec<FlowRow>> {
        self.inner.flows(workspace)
    }

    fn version(&self, flow: &FlowName, number: i64) -> PortFuture<'_, Option<VersionRow>> {
        self.inner.version(flow, number)
    }

    fn revision(&self, flow: &FlowName, revision: &str) -> PortFuture<'_, Option<VersionRow>> {
        self.inner.revision(flow, revision)
    }

    fn versions(
        &self,
        flow: &FlowName,
        before: Option<i64>,
        limit: usize,
    ) -> PortFuture<'_, Vec<VersionRow>> {
        self.inner.versions(flow, before, limit)
    }

    fn as_of(
        &self,
        flow: &FlowName,
        target: Target,
        at_ms: i64,
    ) -> PortFuture<'_, Option<VersionRow>> {
        self.inner.as_of(flow, target, at_ms)
    }

    fn files(&self, content: &str) -> PortFuture<'_, Option<VersionFiles>> {
        self.inner.files(content)
    }

    fn releases(&self, flow: &FlowName, limit: usize) -> PortFuture<'_, Vec<ReleaseRow>> {
        self.inner.releases(flow, limit)
    }

    fn version_at(&self, flow: &FlowName, place: &str) -> PortFuture<'_, Option<i64>> {
        self.inner.version_at(flow, place)
    }

    fn check_out(&self, flow: &FlowName, place: &str, number: i64) -> PortFuture<'_, ()> {
        let (flow, place) = (flow.clone(), place.to_owned());
        self.change(move |inner| {
            Box::pin(async move { inner.check_out(&flow, &place, number).await })
        })
    }
}

/// Performs what an author does, and returns the first failure.
async fn author(registry: &FlowRegistry) -> Result<(), RegistryError> {
    for body in ["1", "2", "3"] {
        let new = NewCommit {
            place: Some("copy".to_owned()),
            ..commit(body, Base::OfPlace)
        };
        let added = registry.commit(new).await?;
        registry.check_out(added.version(), "other").await?;
        registry
            .release("report", Some(added.version().number), ("ada", ""))
            .await?;
    }
    registry.rollback("report", Some(2), ("ada", "")).await?;
    registry.archive("report", true).await?;
    Ok(())
}

/// Returns everything that the registry tells of the flow.
fn told(bench: &Bench) -> String {
    let registry = FlowRegistry::new(&bench.stores(), 0);
    block_on(async {
        let versions = registry.versions("report", None, 10).await.expect("a list");
        let mut texts = Vec::new();
        for version in &versions {
            texts.push(registry.files(version).await.expect("files"));
        }
        format!(
            "{:?}\n{versions:?}\n{texts:?}\n{:?}\n{:?}",
            registry.flow("report").await.expect("a flow"),
            registry.releases("report", 10).await.expect("a log"),
            registry
                .version_at("report", "other")
                .await
                .expect("a number"),
        )
    })
}

#[test]
fn an_author_who_repeats_after_a_crash_at_any_write_gets_the_same_versions() {
    let expected = {
        let bench = Bench::over(STORE);
        block_on(author(&registry(&bench))).expect("all is done");
        told(&bench)
    };
    let mut crashes = 0;
    for silently in [false, true] {
        for left in 0.. {
            let bench = Bench::over(STORE);
            let stores = Dying::over(&bench.stores(), left, silently);
            let dying = FlowRegistry::new(&stores, bench.clock_ms());
            let Err(error) = block_on(author(&dying)) else {
                break;
            };
            assert!(error.to_string().contains("the process is dead"), "{error}");
            drop((dying, stores));
            crashes += 1;
            let registry = registry(&bench);
            resume(&registry);
            assert_eq!(told(&bench), expected, "left {left} silently {silently}");
        }
    }
    assert_eq!(crashes, 22);
}

/// Repeats what is not done yet, as a person does who looks at the registry first.
fn resume(registry: &FlowRegistry) {
    block_on(async {
        for (body, number) in [("1", 1), ("2", 2), ("3", 3)] {
            let head = registry
                .find("report")
                .await
                .expect("readable")
                .map_or(0, |row| row.head);
            if head < number {
                let new = NewCommit {
                    place: Some("copy".to_owned()),
                    ..commit(body, Base::OfPlace)
                };
                let added = registry.commit(new).await.expect("added");
                assert_eq!(added.version().number, number);
            }
            let wanted = VersionRef::Number(number);
            let version = registry.version("report", &wanted).await.expect("there");
            let log = registry.releases("report", 10).await.expect("a log");
            registry.check_out(&version, "other").await.expect("noted");
            if !log.iter().any(|row| row.version == number) {
                registry
                    .release("report", Some(number), ("ada", ""))
                    .await
                    .expect("released");
            }
        }
        let row = registry.flow("report").await.expect("a flow");
        if row.archived_ms.is_none() {
            registry
                .rollback("report", Some(2), ("ada", ""))
                .await
                .expect("moved");
            registry.archive("report", true).await.expect("archived");
        }
    });
}
