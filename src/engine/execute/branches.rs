//! Concurrent branches of a run, in an order that replay repeats.
//!
//! Only one fiber runs at a time, until it makes a request that cannot be answered at once. When all fibers have made
//! one, exactly one answer is delivered: those of the journal in the journal's order, then live ones in the order in
//! which their outcomes were produced for the journal. So state that branches share is changed in the same order by
//! every replay, whichever step was faster.

mod group;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

use flowstone_lang::fiber::{Exit, Fiber};
use flowstone_lang::value::{Result as Evaluated, Signal, Stop, Value};
use flowstone_lang::vm::Request;

use super::branch::{Branch, Waiting};
use super::call::PreparedRequest;
use super::{Answer, Begun, Executor, Halt};
use crate::diagnostic::Diagnostic;
use crate::error::EngineError;
use crate::flow::name_of;
use crate::natives::branches::Branches;
use crate::observer::RunEvent;

use super::underway::Underway;
use group::Group;

/// Interval for polling waits that the process does not stay for, while other branches are active.
const POLL_EVERY: Duration = Duration::from_millis(250);
/// Maximum time for which an interrupted run waits for its branches to end: longer than external effects may take to
/// finish.
const LEAVING: Duration = Duration::from_secs(8);

/// A branch of the run that has not ended.
struct ActiveBranch<'d> {
    branch: Rc<Branch>,
    group: u64,
    /// The index of the branch in its group.
    idx: usize,
    fiber: Fiber,
    /// Whether the fiber has run.
    is_started: bool,
    /// Whether the branch is being unwound: its result is ignored.
    is_cancelled: bool,
    state: State<'d>,
}

/// The state of a branch.
enum State<'d> {
    /// The fiber runs, or is ready to be resumed.
    Running,
    /// The journal has the answer, at this place.
    Replayed(usize, Box<PreparedRequest<'d>>),
    /// Its request, at this path, is in progress.
    Live(String),
    /// The run is over, and the journal has no answer for its request.
    Unanswered(EngineError),
    /// Its request has ended: the position among the live answers, and the answer.
    Arrived(u64, Evaluated<Value>),
    /// It waits for something for which this execution does not stay in the process.
    Suspended(String, Waiting),
    /// It waits for its own branches.
    Group(u64),
    /// It needs a value that another branch is computing.
    Turn,
}

/// All active branches.
struct Branching<'d, 'a> {
    executor: &'d Executor<'a>,
    branches: BTreeMap<u64, ActiveBranch<'d>>,
    groups: BTreeMap<u64, Group>,
    last_id: u64,
    /// Fibers to resume, each with its answer.
    runnable: VecDeque<(u64, Evaluated<Value>)>,
    /// The branch that waits for each answer of the journal, by the place of the answer.
    replayed: BTreeMap<usize, u64>,
    underway: Underway<'d, Answer>,
    /// The branch that has each live answer, by the position of the answer.
    arrived: BTreeMap<u64, u64>,
    /// The branches that need a value which another branch is computing.
    turns: BTreeSet<u64>,
    /// Whether an answer was delivered since those branches were last resumed.
    is_turn_due: bool,
    /// The outcome of the outermost group.
    outcome: Option<Evaluated<Value>>,
    /// The reason of the cancellation of the whole run.
    cancelled: Option<String>,
    /// The wait of all branches, as written to the run's row.
    reported: Option<(String, Option<i64>)>,
}

impl Executor<'_> {
    /// Rejects branches whose names contain a secret of the run's input.
    pub(super) fn check_names(&self, asked: &Branches) -> Result<(), Diagnostic> {
        self.check_name("id of the branches", &asked.id)?;
        let names = asked.nodes.iter().filter_map(|node| name_of(&node.name));
        names
            .into_iter()
            .try_for_each(|name| self.check_name("name of the branch", &name))
    }

    /// Runs branches concurrently, and returns their combined result.
    pub(super) async fn side_by_side(&self, branch: &Rc<Branch>, asked: Branches) -> Answer {
        let _concurrent = self.mark_concurrent();
        let mut branching = Branching {
            executor: self,
            branches: BTreeMap::new(),
            groups: BTreeMap::new(),
            last_id: 0,
            runnable: VecDeque::new(),
            replayed: BTreeMap::new(),
            underway: Underway::new(),
            arrived: BTreeMap::new(),
            turns: BTreeSet::new(),
            is_turn_due: true,
            outcome: None,
            cancelled: None,
            reported: None,
        };
        branching.open(None, branch, asked)?;
        branching.run().await
    }
}

impl<'d, 'a> Branching<'d, 'a> {
    async fn run(&mut self) -> Answer {
        loop {
            while let Some((id, answer)) = self.runnable.pop_front() {
                self.turn(id, answer).await?;
            }
            if let Some(answer) = self.outcome.take() {
                return match self.cancelled.take() {
                    Some(reason) => Err(Halt::Cancelled { reason }),
                    None => Ok(answer),
                };
            }
            if std::mem::take(&mut self.is_turn_due) && !self.turns.is_empty() {
                self.resume_waiting();
                continue;
            }
            let next = self.replayed.first_key_value().map(|(place, _)| *place);
            let before = next.unwrap_or(usize::MAX);
            if let Some(reason) = self.executor.recorded_cancel(before) {
                self.cancel_all(reason);
            } else if let Some(place) = next {
                self.deliver_replayed(place)?;
            } else if !self.deliver_live() {
                self.wait().await?;
            }
        }
    }

    /// Resumes the branches that need a value which another branch was computing: it may be available.
    fn resume_waiting(&mut self) {
        for id in std::mem::take(&mut self.turns) {
            self.resume(id, Ok(Value::Bool(true)));
        }
    }

    /// Ends one of several branches that wait for each other with an error.
    fn break_cycle(&mut self) -> bool {
        let Some(id) = self.turns.pop_first() else {
            return false;
        };
        self.resume(id, Ok(Value::Bool(false)));
        true
    }

    fn next_id(&mut self) -> u64 {
        self.last_id += 1;
        self.last_id
    }

    /// Opens the group of a call.
    fn open(
        &mut self,
        owner: Option<u64>,
        branch: &Rc<Branch>,
        asked: Branches,
    ) -> Result<(), Halt> {
        let count = asked.nodes.len();
        let at_once = self.branches.len() + count.min(asked.max);
        let usage = self.executor.shared.journal.usage();
        usage.branches(count, at_once)?;
        let path = branch.next_path(&asked.id).to_string();
        let id = self.next_id();
        let group = Group::new(owner, path, asked);
        self.executor.emit(&group.progress());
        self.groups.insert(id, group);
        if let Some(active) = owner.and_then(|owner| self.branches.get_mut(&owner)) {
            active.state = State::Group(id);
        }
        self.start_ready(id, branch);
        Ok(())
    }

    /// Starts the branches of a group that may start; if none is left, answers its owner.
    fn start_ready(&mut self, group_id: u64, branch: &Rc<Branch>) {
        loop {
            let id = self.next_id();
            let Some(group) = self.groups.get_mut(&group_id) else {
                return;
            };
            if group.is_decided() {
                break;
            }
            let Some((idx, prefix, args)) = group.next() else {
                break;
            };
            group.running.insert(idx, id);
            let function = group.asked.nodes[idx].function.clone();
            let bound = group.asked.bound.clone();
            let branch = Branch::concurrent(prefix, branch);
            let fiber = self.executor.fiber_of(&branch, move |vm| {
                for (var, value) in bound {
                    vm.bind(var, value);
                }
                let value = vm.call(&function, &args)?;
                vm.realise(&value)?;
                Ok(value)
            });
            self.branches.insert(
                id,
                ActiveBranch {
                    branch,
                    group: group_id,
                    idx,
                    fiber,
                    is_started: false,
                    is_cancelled: false,
                    state: State::Running,
                },
            );
            self.runnable.push_back((id, Ok(Value::Nil)));
        }
        self.close(group_id);
    }

    /// Answers the owner of a group that has ended.
    fn close(&mut self, group_id: u64) {
        let group = self.groups.get_mut(&group_id);
        let Some(answer) = group.and_then(Group::answer) else {
            return;
        };
        let group = self.groups.remove(&group_id);
        if let Some(Group { path, .. }) = &group {
            let path = path.clone();
            self.executor.emit(&RunEvent::BranchesEnded { path });
        }
        match group.and_then(|group| group.owner) {
            Some(owner) => self.resume(owner, answer),
            None => self.outcome = Some(answer),
        }
    }

    fn resume(&mut self, id: u64, answer: Evaluated<Value>) {
        if let Some(active) = self.branches.get_mut(&id) {
            active.state = State::Running;
            self.runnable.push_back((id, answer));
        }
    }

    /// Runs a fiber until it ends or makes a request that cannot be answered at once.
    async fn turn(&mut self, id: u64, mut answer: Evaluated<Value>) -> Result<(), Halt> {
        loop {
            let Some(active) = self.branches.get_mut(&id) else {
                return Ok(());
            };
            active.is_started = true;
            let branch = active.branch.clone();
            let next = self.replayed.first_key_value().map(|(place, _)| *place);
            self.executor.shared.set_next(next);
            let exit = self.executor.resume(&mut active.fiber, answer)?;
            if let Some(reason) = self.executor.take_cancel() {
                self.cancel_all(reason);
            }
            let result = match exit {
                Exit::Step(request) => match self.ask(id, &branch, request) {
                    Ok(Some(now)) => {
                        answer = now;
                        continue;
                    }
                    Ok(None) => return Ok(()),
                    Err(Halt::Interrupted) => return Err(self.leave().await),
                    Err(halt) => return Err(halt),
                },
                Exit::OutOfFuel => {
                    answer = self.yield_turn(id).await?;
                    continue;
                }
                Exit::Done(value) => Ok(value),
                Exit::Threw(exception) => Err(Signal::Throw(exception)),
                Exit::Stopped(Stop::Evicted) => return Err(self.leave().await),
                Exit::Stopped(stop) => Err(stop.into()),
            };
            self.ended(id, result);
            return Ok(());
        }
    }

    /// Takes a request of a branch. Returns the answer if it is available at once.
    fn ask(
        &mut self,
        id: u64,
        branch: &Rc<Branch>,
        request: Request,
    ) -> Result<Option<Evaluated<Value>>, Halt> {
        let executor = self.executor;
        let state = match executor.begin(branch, request)? {
            Begun::Now(answer) => {
                executor.check_cut()?;
                return Ok(Some(answer));
            }
            Begun::Replayed(prepared) => {
                let place = prepared.recorded.place;
                self.replayed.insert(place, id);
                State::Replayed(place, prepared)
            }
            Begun::Live(prepared) if executor.replay_only => {
                State::Unanswered(executor.unfinished(&prepared.call))
            }
            Begun::Live(prepared) => {
                self.begin_live(id, prepared);
                return Ok(None);
            }
            Begun::Branches(asked) => {
                self.open(Some(id), branch, *asked)?;
                return Ok(None);
            }
            Begun::Turn => {
                self.turns.insert(id);
                State::Turn
            }
        };
        self.set_state(id, state);
        Ok(None)
    }

    /// Performs the request of a branch.
    fn begin_live(&mut self, id: u64, prepared: Box<PreparedRequest<'d>>) {
        let executor = self.executor;
        prepared.call.branch.set_sequence(None);
        let at = prepared.call.at.clone();
        self.underway.add(id, Box::pin(executor.live(prepared)));
        self.set_state(id, State::Live(at));
    }

    fn set_state(&mut self, id: u64, state: State<'d>) {
        if let Some(active) = self.branches.get_mut(&id) {
            active.state = state;
        }
    }

    /// Yields between two quanta of one fiber: the other branches wait, so that the order of their effects is
    /// unchanged.
    async fn yield_turn(&mut self, id: u64) -> Answer {
        let next = self.replayed.first_key_value().map(|(place, _)| *place);
        match self.executor.yield_turn(next.unwrap_or(usize::MAX)).await {
            Ok(answer) => Ok(answer),
            Err(Halt::Interrupted) => Err(self.leave().await),
            Err(Halt::Cancelled { reason }) => {
                self.cancel_all(reason);
                let active = self.branches.get(&id);
                Ok(match active.is_some_and(|active| active.is_cancelled) {
                    true => Err(Stop::Cancelled.into()),
                    false => Ok(Value::Nil),
                })
            }
            Err(halt) => Err(halt),
        }
    }

    /// Removes a branch that has ended.
    fn ended(&mut self, id: u64, result: Evaluated<Value>) {
        let Some(active) = self.branches.remove(&id) else {
            return;
        };
        let Some(group) = self.groups.get_mut(&active.group) else {
            return;
        };
        let was_decided = group.is_decided();
        group.ended(active.idx, result);
        self.executor.emit(&group.progress());
        if group.is_decided() && !was_decided {
            self.unwind(active.group);
        }
        let owner = self.groups.get(&active.group).and_then(|group| group.owner);
        let branch = owner.and_then(|owner| Some(self.branches.get(&owner)?.branch.clone()));
        let branch = branch.unwrap_or_else(|| self.executor.branch.clone());
        self.start_ready(active.group, &branch);
    }

    /// Delivers the answer of the journal at a place.
    fn deliver_replayed(&mut self, place: usize) -> Result<(), Halt> {
        let Some(id) = self.replayed.remove(&place) else {
            return Ok(());
        };
        self.executor.shared.count_use();
        let Some(active) = self.branches.get_mut(&id) else {
            return Ok(());
        };
        self.is_turn_due = true;
        if let State::Replayed(_, prepared) = std::mem::replace(&mut active.state, State::Running) {
            if self.executor.dry_run.is_some() {
                self.begin_live(id, prepared);
                return Ok(());
            }
            let answer = self.executor.replay(&prepared)?;
            self.executor.check_cut()?;
            self.runnable.push_back((id, answer));
        }
        Ok(())
    }

    /// Delivers the next live answer in order, if it is available.
    fn deliver_live(&mut self) -> bool {
        let Some((turn, id)) = self
            .arrived
            .first_key_value()
            .map(|(turn, id)| (*turn, *id))
        else {
            return false;
        };
        // An earlier outcome is still on its way into the journal.
        let is_early = self.underway.ids().any(|other| {
            let active = self.branches.get(&other);
            let sequence = active.and_then(|active| active.branch.sequence());
            sequence.is_some_and(|sequence| sequence < turn)
        });
        if is_early {
            return false;
        }
        self.arrived.remove(&turn);
        self.executor.shared.count_use();
        self.is_turn_due = true;
        let Some(active) = self.branches.get_mut(&id) else {
            return true;
        };
        if let State::Arrived(_, answer) = std::mem::replace(&mut active.state, State::Running) {
            self.runnable.push_back((id, answer));
        }
        true
    }

    /// Waits until a request in progress has ended.
    async fn wait(&mut self) -> Result<(), Halt> {
        self.check_answered()?;
        if self.executor.options.interrupt.is_set() {
            return Err(self.leave().await);
        }
        if self.underway.is_empty() && self.arrived.is_empty() && self.break_cycle() {
            self.is_turn_due = true;
            return Ok(());
        }
        if let Err(Halt::Cancelled { reason }) = self.executor.check_cancel() {
            self.cancel_all(reason);
            return Ok(());
        }
        loop {
            let done = poll_fn(|cx| Poll::Ready(self.underway.poll(cx))).await;
            if let Poll::Ready(done) = done {
                return self.take(done).await;
            }
            self.suspend_if_idle()?;
            let executor = self.executor;
            let underway = &mut self.underway;
            tokio::select! {
                biased;
                done = poll_fn(|cx| underway.poll(cx)) => return self.take(done).await,
                () = executor.options.interrupt.wait() => return Err(self.leave().await),
                () = tokio::time::sleep(POLL_EVERY) => executor.polls.notify_waiters(),
            }
            match executor.poll_cancel().await {
                Err(Halt::Cancelled { reason }) => {
                    self.cancel_all(reason);
                    return Ok(());
                }
                looked => looked?,
            }
        }
    }

    /// Stops the replay of a finished run if it makes a new request.
    fn check_answered(&mut self) -> Result<(), Halt> {
        for active in self.branches.values_mut() {
            if matches!(active.state, State::Unanswered(_))
                && let State::Unanswered(error) =
                    std::mem::replace(&mut active.state, State::Running)
            {
                return Err(error.into());
            }
        }
        Ok(())
    }

    /// Takes the results of live steps.
    async fn take(&mut self, done: Vec<(u64, Answer)>) -> Result<(), Halt> {
        for (id, answer) in done {
            let Some(active) = self.branches.get_mut(&id) else {
                continue;
            };
            let answer = match self.executor.check_cut() {
                Err(halt) if answer.is_ok() => Err(halt),
                _ => answer,
            };
            match answer {
                Ok(answer) => {
                    // A request that ends without an entry gets its sequence number now.
                    let turn = active.branch.sequence();
                    let turn = turn.unwrap_or_else(|| self.executor.shared.next_sequence());
                    active.state = State::Arrived(turn, answer);
                    self.arrived.insert(turn, id);
                }
                Err(Halt::Suspended { reason, due_ms }) => {
                    let wait = Waiting {
                        reason,
                        due_ms,
                        stays: false,
                    };
                    active.state = match std::mem::replace(&mut active.state, State::Running) {
                        State::Live(at) => State::Suspended(at, wait),
                        other => other,
                    };
                }
                // One branch noticed the interrupt first: the others are allowed to finish.
                Err(Halt::Interrupted) => return Err(self.leave().await),
                Err(Halt::Cancelled { reason }) => {
                    self.cancel_all(reason);
                    return Ok(());
                }
                Err(halt) => return Err(halt),
            }
        }
        Ok(())
    }

    /// If all remaining branches wait, writes what for to the run's row; suspends the execution unless the process
    /// stays for one of the waits.
    fn suspend_if_idle(&mut self) -> Result<(), Halt> {
        let mut waiting = Vec::new();
        for active in self.branches.values() {
            match &active.state {
                State::Live(_) => match active.branch.waiting() {
                    Some(wait) => waiting.push(wait),
                    None => return Ok(()),
                },
                State::Suspended(_, wait) => waiting.push(wait.clone()),
                State::Arrived(..) => return Ok(()),
                State::Running
                | State::Replayed(..)
                | State::Unanswered(_)
                | State::Group(_)
                | State::Turn => {}
            }
        }
        if waiting.is_empty() {
            let message = "branches wait for one another".to_owned();
            return Err(EngineError::Internal(message).into());
        }
        let reason = reason(&waiting);
        let due_ms = waiting.iter().filter_map(|wait| wait.due_ms).min();
        let report = Some((reason.clone(), due_ms));
        if self.reported != report || !self.executor.is_waiting.get() {
            self.executor.write_waits(&reason, due_ms)?;
            self.reported = report;
        }
        if waiting.iter().any(|wait| wait.stays) {
            return Ok(());
        }
        Err(Halt::Suspended { reason, due_ms })
    }

    /// Notifies the active branches that the run is interrupted; external effects are allowed to finish.
    async fn leave(&mut self) -> Halt {
        self.underway.drop_unpolled();
        self.executor.notify_leaving();
        let finish = async {
            while !self.underway.is_empty() {
                for (_, answer) in poll_fn(|cx| self.underway.poll(cx)).await {
                    if let Err(halt @ Halt::Engine(_)) = answer {
                        return halt;
                    }
                }
            }
            Halt::Interrupted
        };
        let finished = tokio::time::timeout(LEAVING, finish).await;
        finished.unwrap_or(Halt::Interrupted)
    }

    /// Cancels every branch. The branch that created them resumes when all are unwound.
    fn cancel_all(&mut self, reason: String) {
        self.executor.unwind(reason.clone());
        self.cancelled = Some(reason);
        if let Some(outermost) = self.groups.first_key_value().map(|(id, _)| *id) {
            self.cancel_group(outermost);
        }
    }

    /// Cancels a group. Its owner resumes when all its branches are unwound.
    fn cancel_group(&mut self, group_id: u64) {
        if let Some(group) = self.groups.get_mut(&group_id) {
            group.decide(Err(Stop::Cancelled.into()));
            self.unwind(group_id);
            self.close(group_id);
        }
    }

    /// Cancels the active branches of a group, in their order.
    fn unwind(&mut self, group_id: u64) {
        let running = self.groups.get(&group_id).map(|group| &group.running);
        let running: Vec<u64> = running.into_iter().flatten().map(|(_, id)| *id).collect();
        for id in running {
            self.cancel_branch(id);
        }
    }

    fn cancel_branch(&mut self, id: u64) {
        let Some(active) = self.branches.get_mut(&id) else {
            return;
        };
        if std::mem::replace(&mut active.is_cancelled, true) {
            return;
        }
        if !active.is_started {
            // Its fiber has not run, so nothing has to be unwound.
            self.runnable.retain(|(other, _)| *other != id);
            let (group_id, idx) = (active.group, active.idx);
            self.branches.remove(&id);
            if let Some(group) = self.groups.get_mut(&group_id) {
                group.running.remove(&idx);
            }
            return;
        }
        self.executor.leave_child(&active.branch);
        match std::mem::replace(&mut active.state, State::Running) {
            State::Running => {
                let queued = self.runnable.iter_mut().find(|(other, _)| *other == id);
                if let Some((_, answer)) = queued {
                    *answer = Err(Stop::Cancelled.into());
                }
                return;
            }
            State::Group(inner) => {
                active.state = State::Group(inner);
                self.cancel_group(inner);
                return;
            }
            State::Replayed(place, _) => drop(self.replayed.remove(&place)),
            State::Live(at) => {
                self.underway.remove(id);
                self.executor.give_up(at);
            }
            State::Suspended(at, _) => self.executor.give_up(at),
            State::Arrived(turn, _) => drop(self.arrived.remove(&turn)),
            State::Turn => drop(self.turns.remove(&id)),
            State::Unanswered(_) => {}
        }
        self.runnable.push_back((id, Err(Stop::Cancelled.into())));
    }
}

/// Returns a text that describes what several branches wait for.
fn reason(waiting: &[Waiting]) -> String {
    const MOST: usize = 3;
    let reasons: Vec<&str> = waiting
        .iter()
        .map(|wait| &*wait.reason)
        .take(MOST)
        .collect();
    let reasons = reasons.join("; ");
    match waiting.len() {
        count if count > MOST => format!("{reasons}; and {} more", count - MOST),
        _ => reasons,
    }
}
