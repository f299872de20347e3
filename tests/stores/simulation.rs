//! Random schedules of whole runs over the memory store: several runs share a slot or a limit, call flows and have
//! branches; runs are cancelled, others are started by a schedule, and processes end at any commit, before or after it.
//! In every case, a run that is not cancelled has the same result as without these events.
//!
//! Nothing waits for a real clock, so that thousands of schedules take seconds. A failing schedule is identified by its
//! seed.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use flowstone_engine::ids::RunId;
use flowstone_engine::observer::{NoObserver, Observer};
use flowstone_engine::ports::{
    CommitPhase, Probe, RunFilter, RunRow, RunStatus, StoreError, WaitFilter, mix,
};
use flowstone_engine::worker::{Planner, Watch, WorkerEvent};
use flowstone_engine::{Engine, ExecuteOptions, StartOptions, Stay, codec};
use flowstone_lang::value::Value;
use flowstone_stores::memory::{Memory, MemoryOptions};

use crate::bench::{Bench, Project, block_on};

/// Number of schedules in each execution of the test.
const SCHEDULES: u64 = 150;
/// Maximum number of actions of a schedule.
const TURNS: usize = 3000;
const RUNS: usize = 4;
/// The interval of the schedule, in milliseconds.
const TICK_MS: i64 = 20_000;

/// The flow that runs call: it takes a number and returns it.
const PART: &str =
    "{:slug :part :invocations {:default {:inputs [{:name :n :type :number :required true}]}}
  :flow '(let [n (:n (flow/input))]
           (flow/step :write :before {:value n})
           (flow/step :put :kept {:value n})
           n)}";
/// Works like [`PART`], but returns the number after an answer.
const ASKS: &str =
    "{:slug :asks :invocations {:default {:inputs [{:name :n :type :number :required true}]}}
  :flow '(let [n (:n (flow/input))]
           (flow/step :hold :door {})
           (flow/step :put :kept {:value n})
           n)}";
/// The flow that a schedule starts.
const TICKS: &str = "{:slug :ticks :invocations {:default {:inputs []}} :schedules [{:id :tick :every \"20s\" :catch-up :all}]
  :flow '(flow/step :write :ticked {:value 1})}";

/// Ends the process at one phase of a commit. After that, nothing is committed.
#[derive(Debug, Default)]
struct Fuse {
    left: AtomicI64,
}

/// The value of a fuse that never ends the process.
const NEVER: i64 = i64::MAX;

impl Probe for Fuse {
    fn reach(&self, phase: CommitPhase) -> Result<(), StoreError> {
        let left = self.left.fetch_sub(1, Ordering::SeqCst);
        match (left, phase) {
            // A dead process commits nothing, and never gets beyond a commit.
            (..=0, CommitPhase::BeforeCommit) | (0, CommitPhase::AfterCommit) => {
                Err(StoreError::Internal("the process is dead".to_owned()))
            }
            _ => Ok(()),
        }
    }
}

/// Pseudorandom numbers from a seed.
struct Dice(u64);

impl Dice {
    fn below(&mut self, most: usize) -> usize {
        self.0 = mix(self.0.wrapping_add(0x9e37_79b9_7f4a_7c15));
        usize::try_from(self.0 % most as u64).expect("small")
    }
}

/// A flow, and the results of its runs.
struct Plan {
    text: String,
    /// The contribution of each step to the result of run `n`.
    results: Vec<Part>,
    /// Maximum number of runs that are live at the same time.
    at_once: usize,
    puts: usize,
}

#[derive(Clone, Copy)]
enum Part {
    /// `n` times ten plus this number.
    Number(usize),
    Answer,
    Slept,
    /// The values of three branches: `n` times ten plus this number, the same from a child, and the end of a sleep.
    Branches(usize),
}

impl Plan {
    fn new(dice: &mut Dice) -> Plan {
        let (rule, at_once) = match dice.below(4) {
            0 => (":concurrency {:type :singleton}", 1),
            1 => (":limits {:scope :work :concurrency 2}", 2),
            2 => (
                ":concurrency {:type :singleton :on-conflict :queue} :limits {:scope :work :concurrency 3}",
                1,
            ),
            _ => ("", RUNS),
        };
        let (mut bindings, mut names) = (String::new(), String::new());
        let (mut results, mut puts) = (Vec::new(), 0);
        for at in 0..=dice.below(6) {
            let (step, part) = match dice.below(9) {
                0 => (
                    format!("(flow/step :write :s{at} {{:value (+ (* 10 n) {at})}})"),
                    Part::Number(at),
                ),
                1 => (
                    format!("(flow/step :look :s{at} {{:value (+ (* 10 n) {at})}})"),
                    Part::Number(at),
                ),
                2 => {
                    puts += 1;
                    let put = format!("(flow/step :put :s{at} {{:value (+ (* 10 n) {at})}})");
                    (format!("(do {put} (+ (* 10 n) {at}))"), Part::Number(at))
                }
                3 => (
                    format!("(:action (flow/step :hold :s{at} {{}}))"),
                    Part::Answer,
                ),
                4 => (
                    format!("(flow/step :pause :s{at} {{:times 50}})"),
                    Part::Slept,
                ),
                5 | 6 => {
                    puts += 1;
                    let flow = [":part", ":asks"][dice.below(2)];
                    let call =
                        format!("(flow/call-flow {flow} {{:n (+ (* 10 n) {at})}} {{:id :s{at}}})");
                    (call, Part::Number(at))
                }
                7 => {
                    puts += 1;
                    let branches = format!(
                        "(flow/all {{:id :s{at}}}
                           [(fn [] (flow/step :write :w {{:value (+ (* 10 n) {at})}}))
                            (fn [] (flow/call-flow :part {{:n (+ (* 10 n) {at})}}))
                            (fn [] (flow/step :pause :p {{:times 50}}))])"
                    );
                    (branches, Part::Branches(at))
                }
                _ => {
                    let write = format!(
                        "(flow/step :write :s{at} {{:value (+ (* 10 n) {at}) :times 1 :retry {{:max-attempts 3}}}})"
                    );
                    (write, Part::Number(at))
                }
            };
            bindings += &format!(" v{at} {step}");
            names += &format!(" v{at}");
            results.push(part);
        }
        Plan {
            text: format!(
                "{{:slug :work {rule} :flow '(let [n (:n (flow/input)){bindings}] [n{names}])}}"
            ),
            results,
            at_once,
            puts,
        }
    }

    /// Returns the result of run `n` as EDN text.
    fn result(&self, n: usize) -> String {
        let parts = self.results.iter().map(|part| match part {
            Part::Number(at) => (10 * n + at).to_string(),
            Part::Answer => ":go".to_owned(),
            Part::Slept => ":slept".to_owned(),
            Part::Branches(at) => format!("[{0} {0} :slept]", 10 * n + at),
        });
        let parts: Vec<String> = std::iter::once(n.to_string()).chain(parts).collect();
        format!("[{}]", parts.join(" "))
    }
}

/// A project and the process that works in it.
struct World {
    bench: Bench,
    fuse: Arc<Fuse>,
    memory: Memory,
    engine: Option<Rc<Engine>>,
    /// The planner that starts the runs of the schedule in this process.
    planner: Option<Planner>,
    plan: Plan,
    /// The started runs by their number.
    started: BTreeMap<usize, RunId>,
    /// The runs whose cancellation was requested.
    cancelled: BTreeSet<RunId>,
    crashes: usize,
}

/// Ignores the events of the planner.
struct NoWatch;

impl Watch for NoWatch {
    fn event(&self, _: &WorkerEvent<'_>) {}

    fn observer(&self) -> Rc<dyn Observer> {
        Rc::new(NoObserver)
    }
}

impl World {
    fn new(dice: &mut Dice) -> World {
        let fuse = Arc::new(Fuse {
            left: AtomicI64::new(NEVER),
        });
        let memory = Memory::new(MemoryOptions {
            probe: Some(fuse.clone()),
            // Runs resume after any number of crashes.
            crashes: Some(u32::MAX),
        });
        let bench = Bench::with(Project::Memory(memory.clone()));
        for (name, text) in [("part", PART), ("asks", ASKS), ("ticks", TICKS)] {
            bench.file(&format!("flows/{name}.edn"), text);
        }
        let mut world = World {
            engine: None,
            planner: None,
            bench,
            fuse,
            memory,
            plan: Plan::new(dice),
            started: BTreeMap::new(),
            cancelled: BTreeSet::new(),
            crashes: 0,
        };
        world.begin();
        world
    }

    /// Begins a new process.
    fn begin(&mut self) {
        let engine = Rc::new(self.bench.engine());
        let flows = vec![self.bench.home.path().join("flows/ticks.edn")];
        self.planner = Some(Planner::new(engine.clone(), flows, Arc::new(NoWatch)));
        self.engine = Some(engine);
    }

    fn engine(&self) -> &Engine {
        self.engine.as_deref().expect("a process")
    }

    /// Performs an action in a process that may end during it; then another process takes its place.
    fn act(&mut self, fuse: i64, act: impl FnOnce(&mut World)) {
        self.fuse.left.store(fuse, Ordering::SeqCst);
        act(self);
        let is_dead = self.fuse.left.load(Ordering::SeqCst) <= 0;
        self.fuse.left.store(NEVER, Ordering::SeqCst);
        if is_dead {
            self.crashes += 1;
            self.memory.crash();
            (self.planner, self.engine) = (None, None);
            self.begin();
        }
    }

    fn rows(&self) -> Vec<RunRow> {
        block_on(self.engine().list_runs(RunFilter::default())).expect("runs")
    }

    /// Starts a run. Starting it again after a crash does not start a second one.
    fn start(&mut self, n: usize, fuse: i64) {
        self.act(fuse, |world| {
            let options = StartOptions {
                is_left: true,
                external_id: Some(format!("run-{n}")),
                ..StartOptions::with_input(codec::decode(&format!("{{:n {n}}}")).expect("EDN"))
            };
            let flow = world.bench.flow(&world.plan.text);
            let _ = block_on(world.engine().submit(&flow, options));
        });
        let rows = self.rows();
        let name = format!("run-{n}");
        let found = rows
            .iter()
            .find(|row| row.external_id.as_ref() == Some(&name));
        if let Some(found) = found {
            self.started.insert(n, found.id.clone());
        }
    }

    fn execute(&mut self, run: &RunId, fuse: i64) {
        self.act(fuse, |world| {
            let options = ExecuteOptions {
                stay: Stay::No,
                ..ExecuteOptions::default()
            };
            let _ = block_on(world.engine().execute(run, Rc::new(NoObserver), options));
        });
    }

    /// Requests the cancellation of a run that is not over.
    fn cancel(&mut self, dice: &mut Dice, fuse: i64) {
        let mut rows = self.rows();
        rows.retain(|row| row.flow == "work" && !row.status.is_final());
        if rows.is_empty() {
            return;
        }
        let run = rows[dice.below(rows.len())].id.clone();
        self.act(fuse, |world| {
            let (runs, now_ms) = (world.bench.stores().runs, world.bench.clock_ms());
            let _ = block_on(runs.request_cancel(&run, "no longer needed", now_ms));
        });
        // If the process ended, it is unknown whether the request was stored.
        self.cancelled.insert(run);
    }

    /// Starts the runs of the schedule that are due.
    fn plan_ticks(&mut self, fuse: i64) {
        self.act(fuse, |world| {
            let planner = world.planner.as_mut().expect("a process");
            let _ = block_on(planner.turn());
        });
    }

    /// Answers an open wait. An effect in doubt is repeated.
    fn answer(&mut self, dice: &mut Dice, fuse: i64) {
        let waits = block_on(self.engine().list_waits(WaitFilter::default())).expect("waits");
        if waits.is_empty() {
            return;
        }
        let wait = &waits[dice.below(waits.len())];
        let answer = match wait.details.contains(":in-doubt") {
            true => Value::keyword("retry"),
            false => codec::decode("{:action :go}").expect("EDN"),
        };
        self.act(fuse, |world| {
            let _ = block_on(world.engine().complete_wait(&wait.id, &answer, false));
        });
    }

    /// Checks the invariants that hold at any time.
    fn check(&self, seed: u64) {
        let rows = self.rows();
        let work = || rows.iter().filter(|row| row.flow == "work");
        let is_live = |row: &&RunRow| !row.status.is_final() && row.status != RunStatus::Queued;
        let live = work().filter(is_live).count();
        assert!(
            live <= self.plan.at_once,
            "seed {seed}: {live} runs are live"
        );
        let is_queued = work().any(|row| row.status == RunStatus::Queued);
        assert!(
            !is_queued || live > 0,
            "seed {seed}: a queued run is left behind"
        );
    }

    /// Checks the final state: each run that was not cancelled has its result, and its stored values exist once; a
    /// cancelled run left no child behind; each tick of the schedule started one run.
    fn check_end(&self, seed: u64) {
        let mut completed = 0;
        for (n, run) in &self.started {
            let row = block_on(self.engine().find_run(run.as_str())).expect("a run");
            let is_cancelled = row.status == RunStatus::Cancelled && self.cancelled.contains(run);
            if !is_cancelled {
                completed += 1;
                assert_eq!(
                    row.status,
                    RunStatus::Completed,
                    "seed {seed}: {:?}",
                    row.error
                );
                assert_eq!(row.result, Some(self.plan.result(*n)), "seed {seed}");
            }
            block_on(self.engine().verify(run)).expect("a replay that ends the same");
        }
        let stores = self.bench.stores();
        let all = block_on(stores.kv.get("all", 0)).expect("readable");
        let all = all.map_or_else(Vec::new, |text| {
            let text = text.trim_matches(['[', ']']).to_owned();
            text.split(' ').map(str::to_owned).collect()
        });
        let mut once = all.clone();
        once.sort_unstable();
        once.dedup();
        assert_eq!(once.len(), all.len(), "seed {seed}: {all:?}");
        let bounds = self.plan.puts * completed..=self.plan.puts * RUNS;
        assert!(bounds.contains(&all.len()), "seed {seed}: {all:?}");
        self.check_ticks(seed);
    }

    fn add_to(&self, totals: &mut Totals) {
        let rows = self.rows();
        let count = |fits: fn(&&RunRow) -> bool| rows.iter().filter(fits).count();
        totals.crashes += self.crashes;
        totals.cancelled += count(|row| row.status == RunStatus::Cancelled);
        totals.children += count(|row| row.parent.is_some());
        totals.ticks += count(|row| row.flow == "ticks");
    }

    fn check_ticks(&self, seed: u64) {
        let mut rows = self.rows();
        rows.retain(|row| row.flow == "ticks");
        assert!(
            rows.iter().all(|row| row.status == RunStatus::Completed),
            "seed {seed}: a run of the schedule did not complete"
        );
        let mut ticks: Vec<i64> = rows
            .iter()
            .map(|row| {
                let name = row.external_id.as_deref().expect("an instant");
                let at = name.find("tick:").expect("the schedule's id") + "tick:".len();
                let instant: jiff::Timestamp = name[at..].parse().expect("an instant");
                instant.as_millisecond()
            })
            .collect();
        ticks.sort_unstable();
        let steps = ticks.windows(2).map(|pair| pair[1] - pair[0]);
        assert!(
            steps.clone().all(|step| step == TICK_MS),
            "seed {seed}: {ticks:?}"
        );
    }
}

/// The number of events in all schedules.
#[derive(Debug, Default)]
struct Totals {
    crashes: usize,
    cancelled: usize,
    children: usize,
    ticks: usize,
}

/// Executes a schedule to its end, and adds its events to the totals.
fn simulate(seed: u64, totals: &mut Totals) {
    let mut dice = Dice(seed);
    let mut world = World::new(&mut dice);
    let may_cancel = dice.below(3) == 0;
    for _ in 0..TURNS {
        let fuse = match dice.below(3) {
            0 => i64::try_from(dice.below(12)).expect("small"),
            _ => NEVER,
        };
        let next = (0..RUNS).find(|n| !world.started.contains_key(n));
        match (dice.below(16), next) {
            (0..=2, Some(n)) => world.start(n, fuse),
            (3..=5, _) => world.answer(&mut dice, fuse),
            (6..=8, _) => {
                let seconds = i64::try_from(dice.below(20)).expect("small");
                world.bench.clock.advance(1000 * seconds);
            }
            (9, _) => world.plan_ticks(fuse),
            (10, _) if may_cancel => world.cancel(&mut dice, fuse),
            _ => {
                let mut rows = world.rows();
                rows.retain(|row| !row.status.is_final() && row.status != RunStatus::Queued);
                if rows.is_empty() {
                    if next.is_none() {
                        world.check_end(seed);
                        world.add_to(totals);
                        return;
                    }
                    continue;
                }
                let run = rows[dice.below(rows.len())].id.clone();
                world.execute(&run, fuse);
            }
        }
        world.check(seed);
    }
    panic!("seed {seed}: it does not end: {}", world.plan.text);
}

#[test]
fn runs_end_as_if_no_process_had_ended() {
    let mut totals = Totals::default();
    (0..SCHEDULES).for_each(|seed| simulate(seed, &mut totals));
    let Totals {
        crashes,
        cancelled,
        children,
        ticks,
    } = totals;
    assert!(
        crashes > 200 && cancelled > 20 && children > 200 && ticks > 100,
        "{crashes} crashes, {cancelled} runs cancelled, {children} children, {ticks} ticks"
    );
}
