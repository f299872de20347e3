//! Random operations on a store and on a small model of it in memory: both have the same answers and the same contents.
//!
//! The model has journals, rows of runs, leases, waits, early signals and keys. Tables, children and webhooks have
//! tests of their own. Processes end between operations: acknowledged changes exist when the next process opens the
//! file.

use std::collections::BTreeMap;
use std::path::Path;

use flowstone_engine::codec;
use flowstone_engine::ids::RunId;
use flowstone_engine::kv::{KvNumber, KvOp, KvSet};
use flowstone_engine::ports::{
    Ack, AnswerRules, Batch, Change, Claim, ClaimBy, Completion, Durability, Entry, EntryKind,
    NewRun, NewWait, Program, RunStatus, RunUpdate, StoreError, StoreOp, Stores, Target,
    WaitAnswer, WaitEnding, WaitFilter, WaitState, WaitsAnswer,
};
use proptest::prelude::*;

use super::STORE;
use crate::bench::block_on;

const RUNS: usize = 3;
const NOW_MS: i64 = 1_000;

#[derive(Debug, Clone)]
enum Op {
    Batch {
        run: usize,
        /// The batch names an epoch that is not the current one.
        is_stale: bool,
        how: How,
        parts: Vec<Part>,
    },
    Claim(usize),
    Release(usize),
    Complete {
        target: Named,
        payload: u8,
        dedup: Option<u8>,
        keep: bool,
    },
    /// The process ends, cleanly or not, and another one opens the file.
    Reopen,
}

#[derive(Debug, Clone, Copy)]
enum How {
    Durable,
    Applied,
    Posted,
}

#[derive(Debug, Clone)]
enum Part {
    Append(u8),
    Kv(u8, KvPart),
    Update(RunStatus),
    Open {
        key: u8,
    },
    /// The number of a wait, in the state that the sender saw.
    Close {
        wait: u8,
        seen: WaitState,
    },
    CloseAll,
}

#[derive(Debug, Clone, Copy)]
enum KvPart {
    Set(u8),
    SetOnce(u8),
    Add(u8),
    Push(u8),
    Delete,
}

#[derive(Debug, Clone)]
enum Named {
    Key(u8),
    /// The number of a wait, which need not exist.
    Wait(u8),
}

fn op() -> impl Strategy<Value = Op> {
    let batch = (
        0..RUNS,
        prop::bool::weighted(0.1),
        prop_oneof![Just(How::Durable), Just(How::Applied), Just(How::Posted)],
        prop::collection::vec(part(), 1..4),
    );
    let batch = batch.prop_map(|(run, is_stale, how, parts)| Op::Batch {
        run,
        is_stale,
        how,
        parts,
    });
    let target = prop_oneof![
        (0..2_u8).prop_map(Named::Key),
        (0..8_u8).prop_map(Named::Wait)
    ];
    let complete = (target, 0..9_u8, prop::option::of(0..3_u8), any::<bool>());
    let complete = complete.prop_map(|(target, payload, dedup, keep)| Op::Complete {
        target,
        payload,
        dedup,
        keep,
    });
    prop_oneof![
        8 => batch,
        1 => (0..RUNS).prop_map(Op::Claim),
        1 => (0..RUNS).prop_map(Op::Release),
        3 => complete,
        1 => Just(Op::Reopen),
    ]
}

fn part() -> impl Strategy<Value = Part> {
    let kv = prop_oneof![
        (0..9_u8).prop_map(KvPart::Set),
        (0..9_u8).prop_map(KvPart::SetOnce),
        (0..9_u8).prop_map(KvPart::Add),
        (0..9_u8).prop_map(KvPart::Push),
        Just(KvPart::Delete),
    ];
    let status = prop_oneof![Just(RunStatus::Running), Just(RunStatus::Waiting)];
    let seen = prop_oneof![Just(WaitState::Open), Just(WaitState::Completed)];
    prop_oneof![
        4 => any::<u8>().prop_map(Part::Append),
        4 => (0..3_u8, kv).prop_map(|(key, part)| Part::Kv(key, part)),
        1 => status.prop_map(Part::Update),
        3 => (0..2_u8).prop_map(|key| Part::Open { key }),
        2 => (0..8_u8, seen).prop_map(|(wait, seen)| Part::Close { wait, seen }),
        1 => Just(Part::CloseAll),
    ]
}

/// The expected contents of the store.
#[derive(Debug, Clone, Default)]
struct Model {
    runs: Vec<RunModel>,
    waits: Vec<WaitModel>,
    /// Key, payload, and whether a wait has taken the signal.
    inbox: Vec<(u8, u8, bool)>,
    /// Keys and marks of signals that have no effect any more.
    known: Vec<(u8, u8)>,
    kv: BTreeMap<u8, Kept>,
}

#[derive(Debug, Clone)]
struct RunModel {
    epoch: i64,
    is_executing: bool,
    /// A change failed after it was acknowledged: nothing is accepted before the next claim.
    is_broken: bool,
    status: RunStatus,
    entries: Vec<u8>,
}

#[derive(Debug, Clone)]
struct WaitModel {
    run: usize,
    key: u8,
    state: WaitState,
    payload: Option<u8>,
}

#[derive(Debug, Clone, PartialEq)]
enum Kept {
    Number(i64),
    Items(Vec<u8>),
}

/// Why the model refuses a batch.
#[derive(Debug, PartialEq)]
enum Refused {
    Stale,
    Conflict,
    Broken,
}

impl Model {
    fn new() -> Model {
        let run = RunModel {
            epoch: 0,
            is_executing: false,
            is_broken: false,
            status: RunStatus::Running,
            entries: Vec::new(),
        };
        Model {
            runs: vec![run; RUNS],
            ..Model::default()
        }
    }

    /// Applies all of the parts, or none.
    fn batch(&mut self, run: usize, is_stale: bool, parts: &[Part]) -> Result<(), Refused> {
        if self.runs[run].is_broken {
            return Err(Refused::Broken);
        }
        if is_stale {
            return Err(Refused::Stale);
        }
        let mut next = self.clone();
        for part in parts {
            next.part(run, part)?;
        }
        *self = next;
        Ok(())
    }

    fn part(&mut self, run: usize, part: &Part) -> Result<(), Refused> {
        match part {
            Part::Append(payload) => self.runs[run].entries.push(*payload),
            Part::Kv(key, change) => {
                self.kv(*key, *change)?;
                self.runs[run].entries.push(u8::MAX);
            }
            Part::Update(status) => self.runs[run].status = *status,
            Part::Open { key } => {
                let early = self
                    .inbox
                    .iter_mut()
                    .find(|(of, _, taken)| of == key && !taken);
                let payload = early.map(|(_, payload, taken)| {
                    *taken = true;
                    *payload
                });
                self.waits.push(WaitModel {
                    run,
                    key: *key,
                    state: payload.map_or(WaitState::Open, |_| WaitState::Completed),
                    payload,
                });
            }
            Part::Close { wait, seen } => {
                let wait = self
                    .waits
                    .get_mut(usize::from(*wait))
                    .filter(|wait| wait.run == run);
                let wait = wait.ok_or(Refused::Conflict)?;
                if wait.state != *seen {
                    return Err(Refused::Conflict);
                }
                wait.state = WaitState::Closed;
            }
            Part::CloseAll => {
                for wait in self.waits.iter_mut().filter(|wait| wait.run == run) {
                    wait.state = WaitState::Closed;
                }
            }
        }
        Ok(())
    }

    fn kv(&mut self, key: u8, change: KvPart) -> Result<(), Refused> {
        let there = self.kv.get(&key).cloned();
        let next = match (change, there) {
            (KvPart::Set(value), _) | (KvPart::SetOnce(value), None) => Kept::Number(value.into()),
            (KvPart::SetOnce(_), Some(there)) => there,
            (KvPart::Add(by), None) => Kept::Number(by.into()),
            (KvPart::Add(by), Some(Kept::Number(number))) => Kept::Number(number + i64::from(by)),
            (KvPart::Push(item), None) => Kept::Items(vec![item]),
            (KvPart::Push(item), Some(Kept::Items(mut items))) => {
                items.push(item);
                Kept::Items(items)
            }
            (KvPart::Add(_), Some(Kept::Items(_))) | (KvPart::Push(_), Some(Kept::Number(_))) => {
                return Err(Refused::Conflict);
            }
            (KvPart::Delete, _) => {
                self.kv.remove(&key);
                return Ok(());
            }
        };
        self.kv.insert(key, next);
        Ok(())
    }

    fn complete(
        &mut self,
        target: &Named,
        payload: u8,
        dedup: Option<u8>,
        keep: bool,
    ) -> &'static str {
        let (mut found, is_key): (Vec<usize>, bool) = match target {
            Named::Wait(number) => (
                Some(usize::from(*number))
                    .filter(|idx| *idx < self.waits.len())
                    .into_iter()
                    .collect(),
                false,
            ),
            Named::Key(key) => (
                (0..self.waits.len())
                    .filter(|idx| self.waits[*idx].key == *key)
                    .collect(),
                true,
            ),
        };
        let key = match (target, found.first()) {
            (Named::Key(key), _) => *key,
            (_, Some(idx)) => self.waits[*idx].key,
            // A name that no wait has is used as a key of its own.
            (Named::Wait(number), None) => 100 + number,
        };
        let is_free = matches!(target, Named::Wait(_)) && found.is_empty();
        if dedup.is_some_and(|dedup| self.known.contains(&(key, dedup))) {
            return "duplicate";
        }
        let was_known = !found.is_empty();
        found.retain(|idx| self.waits[*idx].state == WaitState::Open);
        let answer = match (found.is_empty(), was_known) {
            (false, _) => "completed",
            (true, _) if keep && (is_key || is_free) => "kept",
            (true, true) => "already",
            (true, false) => return "missing",
        };
        match answer {
            "completed" => {
                for idx in found {
                    self.waits[idx].state = WaitState::Completed;
                    self.waits[idx].payload = Some(payload);
                }
            }
            "kept" => self.inbox.push((key, payload, false)),
            _ => return answer,
        }
        self.known.extend(dedup.map(|dedup| (key, dedup)));
        answer
    }
}

fn run_id(run: usize) -> RunId {
    RunId::from_text(format!("run{run}"))
}

fn new_run(run: usize) -> NewRun {
    NewRun {
        id: run_id(run),
        external_id: None,
        program: Program {
            hash: "p".to_owned(),
            source: "{}".to_owned(),
            engine_abi: 1,
        },
        flow: "model".to_owned(),
        input: "nil".to_owned(),
        seed: 1,
        now_ms: NOW_MS,
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

fn entry(payload: String) -> Entry {
    Entry {
        kind: EntryKind::Result,
        path: "step".to_owned(),
        what: "model".to_owned(),
        digest: String::new(),
        request: None,
        payload,
        at_ms: NOW_MS,
    }
}

/// Returns a payload; some are large, and are stored apart.
fn payload(number: u8) -> String {
    match number.is_multiple_of(8) {
        true => format!("\"{number}{}\"", "x".repeat(9_000)),
        false => number.to_string(),
    }
}

fn kv_op(key: u8, part: KvPart) -> KvOp {
    let key = format!("key{key}");
    let set = |value: u8, if_not_exists| {
        KvOp::Set(KvSet {
            key: key.clone(),
            value: value.to_string(),
            ttl_seconds: None,
            metadata: None,
            if_not_exists,
            answer: None,
            max_value: flowstone_engine::kv::MAX_VALUE,
        })
    };
    match part {
        KvPart::Set(value) => set(value, false),
        KvPart::SetOnce(value) => set(value, true),
        KvPart::Add(by) => KvOp::Increment {
            key,
            by: KvNumber::Int(by.into()),
        },
        KvPart::Push(item) => KvOp::Append {
            key,
            items: vec![item.to_string()],
            max_length: 1_000,
            max_value: flowstone_engine::kv::MAX_VALUE,
        },
        KvPart::Delete => KvOp::Delete { key },
    }
}

fn wait_id(number: usize) -> String {
    format!("w{number:03}")
}

/// Returns the changes of a batch. The store numbers waits in the same way as the model.
fn changes(model: &Model, parts: &[Part]) -> Vec<Change> {
    let mut opened = model.waits.len();
    let mut changes = Vec::new();
    for part in parts {
        changes.push(match part {
            Part::Append(number) => Change::Append(entry(payload(*number))),
            Part::Kv(key, part) => Change::Perform {
                op: Box::new(StoreOp::Kv(kv_op(*key, *part))),
                entry: entry(String::new()),
            },
            Part::Update(status) => Change::Update(RunUpdate {
                status: *status,
                wait_reason: None,
                due_ms: None,
                result: None,
                error: None,
            }),
            Part::Open { key } => {
                opened += 1;
                let number = opened - 1;
                Change::OpenWait(Box::new(NewWait {
                    id: wait_id(number),
                    path: format!("wait{number}"),
                    key: format!("door{key}"),
                    token: format!("token{number}"),
                    deadline_ms: None,
                    details: "{}".to_owned(),
                    digest: String::new(),
                    event: None,
                    webhook: None,
                    rules: AnswerRules::default(),
                }))
            }
            Part::Close { wait, seen } => Change::CloseWait {
                path: format!("wait{wait}"),
                seen: *seen,
            },
            Part::CloseAll => Change::CloseWaits,
        });
    }
    changes
}

fn refused(error: &StoreError) -> Refused {
    match error {
        StoreError::LeaseLost { .. } => Refused::Stale,
        StoreError::Rejected {
            kind: "conflict", ..
        } => Refused::Conflict,
        other => panic!("{other}"),
    }
}

async fn batch(stores: &Stores, model: &mut Model, op: &Op) {
    let Op::Batch {
        run,
        is_stale,
        how,
        parts,
    } = op
    else {
        return;
    };
    let epoch = model.runs[*run].epoch + i64::from(*is_stale);
    let batch = Batch {
        run: run_id(*run),
        epoch,
        durability: Durability::Full,
        ack: match how {
            How::Durable => Ack::Durable,
            How::Applied | How::Posted => Ack::Applied,
        },
        now_ms: NOW_MS,
        changes: changes(model, parts),
    };
    let expected = model.batch(*run, *is_stale, parts);
    if matches!(how, How::Posted) {
        // Whether an earlier failure is known already depends on timing.
        let _ = stores.journal.post(batch);
        model.runs[*run].is_broken |= expected.is_err();
        return;
    }
    let answer = stores.journal.commit(batch).await;
    match (&expected, &answer) {
        (Ok(()), Ok(_)) | (Err(Refused::Broken), Err(_)) => {}
        (Err(expected), Err(error)) => assert_eq!(*expected, refused(error), "{op:?}"),
        _ => panic!("{op:?}: {expected:?}, and the store says {answer:?}"),
    }
}

async fn complete(stores: &Stores, model: &mut Model, op: &Op) {
    let Op::Complete {
        target,
        payload,
        dedup,
        keep,
    } = op
    else {
        return;
    };
    let completion = Completion {
        target: Target::Name(match target {
            Named::Key(key) => format!("door{key}"),
            Named::Wait(number) => wait_id(usize::from(*number)),
        }),
        answer: WaitAnswer {
            payload: payload.to_string(),
            ending: WaitEnding::Answered,
            by: None,
            roles: Vec::new(),
            digest: None,
            is_unattended: false,
        },
        workspace: None,
        dedup: dedup.map(|dedup| format!("mark{dedup}")),
        keep: *keep,
        durability: Durability::Full,
        rules: AnswerRules::default(),
        now_ms: NOW_MS,
    };
    let expected = model.complete(target, *payload, *dedup, *keep);
    let answer = stores.waits.complete(completion).await.expect("it answers");
    let answer = match answer {
        WaitsAnswer::Completed { .. } => "completed",
        WaitsAnswer::Kept => "kept",
        WaitsAnswer::Duplicate => "duplicate",
        WaitsAnswer::Refused(_) => "refused",
        WaitsAnswer::AlreadyDecided(_) => "already",
        WaitsAnswer::Ambiguous(_) => "ambiguous",
        WaitsAnswer::Missing => "missing",
    };
    assert_eq!(answer, expected, "{op:?}");
}

/// Compares all stored contents with the model.
async fn compare(stores: &Stores, model: &Model) {
    for (number, expected) in model.runs.iter().enumerate() {
        let row = stores
            .runs
            .find(&run_id(number))
            .await
            .expect("read")
            .expect("there");
        assert_eq!(
            (row.status, row.executing),
            (expected.status, expected.is_executing),
            "run {number}"
        );
        let entries = stores.journal.load(&run_id(number)).await.expect("read");
        assert_eq!(entries.len(), expected.entries.len(), "run {number}");
        for (entry, expected) in entries.iter().zip(&expected.entries) {
            // Results of the project's own stores are compared by their effect.
            if *expected != u8::MAX {
                assert_eq!(entry.payload, payload(*expected));
            }
        }
        let filter = WaitFilter {
            run: Some(run_id(number)),
            all: true,
            ..WaitFilter::default()
        };
        let mut waits = stores.waits.list(filter).await.expect("read");
        waits.sort_by(|one, other| one.id.cmp(&other.id));
        let expected = model
            .waits
            .iter()
            .enumerate()
            .filter(|(_, wait)| wait.run == number);
        let expected: Vec<_> = expected
            .map(|(idx, wait)| {
                (
                    wait_id(idx),
                    wait.state,
                    wait.payload.map(|payload| payload.to_string()),
                )
            })
            .collect();
        let found: Vec<_> = waits
            .into_iter()
            .map(|wait| (wait.id, wait.state, wait.payload))
            .collect();
        assert_eq!(found, expected, "run {number}");
    }
    let keys = stores.kv.list_keys("", 100, NOW_MS).await.expect("read");
    let mut kept = BTreeMap::new();
    for key in keys {
        let text = stores
            .kv
            .get(&key, NOW_MS)
            .await
            .expect("read")
            .expect("there");
        kept.insert(key, codec::decode(&text).expect("EDN"));
    }
    let expected: BTreeMap<_, _> = model
        .kv
        .iter()
        .map(|(key, kept)| {
            let text = match kept {
                Kept::Number(number) => number.to_string(),
                Kept::Items(items) => format!("{items:?}").replace(',', ""),
            };
            (format!("key{key}"), codec::decode(&text).expect("EDN"))
        })
        .collect();
    assert_eq!(kept, expected);
}

async fn play(home: &Path, ops: &[Op]) {
    let mut model = Model::new();
    let project = STORE.project();
    let open = || project.open(home).expect("it opens");
    let mut stores = open();
    for run in 0..RUNS {
        stores.runs.create(new_run(run)).await.expect("created");
    }
    for op in ops {
        match op {
            Op::Batch { .. } => batch(&stores, &mut model, op).await,
            Op::Complete { .. } => complete(&stores, &mut model, op).await,
            Op::Claim(run) => {
                // Earlier batches take effect first: a claim begins again after them.
                stores
                    .runs
                    .request_cancel(&RunId::from_text("none"), "", 0)
                    .await
                    .expect("nothing");
                let claim = stores
                    .runs
                    .claim(&run_id(*run), ClaimBy::Search, NOW_MS)
                    .await
                    .expect("asked");
                let row = &mut model.runs[*run];
                row.epoch += 1;
                (row.is_executing, row.is_broken) = (true, false);
                assert_eq!(claim, Claim::Taken { epoch: row.epoch });
            }
            Op::Release(run) => {
                let epoch = model.runs[*run].epoch;
                stores
                    .runs
                    .release(&run_id(*run), epoch)
                    .await
                    .expect("released");
                model.runs[*run].is_executing = false;
            }
            Op::Reopen => {
                drop(stores);
                stores = open();
                for run in &mut model.runs {
                    (run.is_executing, run.is_broken) = (false, false);
                }
                compare(&stores, &model).await;
            }
        }
    }
    drop(stores);
    for run in &mut model.runs {
        run.is_executing = false;
    }
    compare(&open(), &model).await;
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_database_does_what_the_model_does(ops in prop::collection::vec(op(), 1..40)) {
        let folder = tempfile::tempdir_in(crate::power::scratch()).expect("a folder");
        block_on(play(folder.path(), &ops));
    }
}
