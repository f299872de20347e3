//! Random schedules: with a crash anywhere, the journal equals that of a run without one, and an attempt that may have
//! been done is repeated only if that was decided.

use flowstone_lang::value::Value;

use super::tests::{Rules, error, reply, retries, value};
use super::{
    About, Action, Asking, End, Event, Note, OnError, Probed, Progress, ReplyAction, State,
};
use crate::doubt::{OnDoubt, Probe, Resolution};
use crate::ids::RunId;
use crate::ports::EntryKind;
use crate::step::{OnTimeout, WaitSpec};

/// A sequence of random numbers that depends only on its seed.
struct Draws(u64);

impl Draws {
    fn next(&mut self) -> u64 {
        self.0 = crate::ports::mix(self.0.wrapping_add(0x9e37_79b9_7f4a_7c15));
        self.0
    }

    fn below(&mut self, most: u64) -> u64 {
        self.next() % most
    }

    fn chance(&mut self, one_in: u64) -> bool {
        self.below(one_in) == 0
    }
}

/// A world in which one request is executed. The outcomes of attempts, waits, children, probes and questions depend on
/// the seed and on the request, never on how often the process ended.
struct World<'r> {
    rules: &'r Rules,
    seed: u64,
    journal: Vec<(EntryKind, String)>,
    now_ms: i64,
    /// The points at which the process ends, counted over the whole run.
    crashes: Vec<usize>,
    point: usize,
    /// Whether the process may also end during an attempt that is journaled.
    loses_attempts: bool,
    /// The place in the journal of the intent of a lost attempt.
    lost: Option<usize>,
}

/// The process ended.
struct Crash;

/// An upper bound on the number of actions of a schedule.
const MOST_POINTS: usize = 500;

impl<'r> World<'r> {
    fn new(rules: &'r Rules, seed: u64) -> World<'r> {
        World {
            rules,
            seed,
            journal: Vec::new(),
            now_ms: 0,
            crashes: Vec::new(),
            point: 0,
            loses_attempts: false,
            lost: None,
        }
    }

    /// Returns the random numbers of one question, which are the same each time.
    fn draws(&self, what: &str, number: u32) -> Draws {
        let start = crate::ports::mix(self.seed ^ u64::from(number));
        let mix = |seed: u64, byte: u8| crate::ports::mix(seed ^ u64::from(byte));
        Draws(what.bytes().fold(start, mix))
    }

    /// Executes the request until its answer, across all crashes.
    fn run(&mut self) {
        while self.live().is_err() {}
    }

    fn point(&mut self) -> Result<(), Crash> {
        self.point += 1;
        assert!(self.point < MOST_POINTS, "no end: {:?}", self.journal);
        match self.crashes.contains(&self.point) {
            true => Err(Crash),
            false => Ok(()),
        }
    }

    /// Like [`World::point`]; an attempt that is journaled and in progress is lost only if the test allows it.
    fn point_in(&mut self, progress: &Progress) -> Result<(), Crash> {
        let is_running = matches!(progress.state, State::Running { .. });
        if !is_running || !self.rules.journals_attempts {
            return self.point();
        }
        if self.loses_attempts && self.point().is_err() {
            let mut kinds = self.journal.iter();
            self.lost = kinds.rposition(|(kind, _)| *kind == EntryKind::Intent);
            return Err(Crash);
        }
        Ok(())
    }

    fn folded(&self) -> Progress {
        let mut progress = Progress::default();
        for (kind, payload) in &self.journal {
            progress.fold(*kind, payload.clone());
        }
        progress.lose_process();
        progress
    }

    fn write(&mut self, progress: &mut Progress, kind: EntryKind, payload: String) {
        self.journal.push((kind, payload.clone()));
        progress.fold(kind, payload);
    }

    fn note(&mut self, progress: &mut Progress, note: Note) {
        let kind = note.kind();
        let payload = note.into_payload(|error| format!("{:?}", error.kind));
        self.write(progress, kind, payload);
    }

    /// Executes the request in one process.
    fn live(&mut self) -> Result<(), Crash> {
        let rules = self.rules;
        let policy = rules.policy();
        let mut progress = self.folded();
        let mut action = progress.action(&policy);
        loop {
            self.point_in(&progress)?;
            let event = match action {
                Action::Answer => return Ok(()),
                Action::Perform { attempt } => {
                    self.may_perform(&progress);
                    if let Some(intent) = progress.begin_attempt(&policy) {
                        self.note(&mut progress, intent);
                    }
                    self.lost = None;
                    self.point_in(&progress)?;
                    Some(self.outcome(attempt))
                }
                Action::Sleep { until_ms, value } => {
                    self.now_ms = self.now_ms.max(until_ms);
                    let text = value.map_or_else(String::new, |_| "\"slept\"".to_owned());
                    Some(Event::Due { text })
                }
                Action::OpenWait(_) => {
                    let attempt = progress.attempts;
                    self.note(&mut progress, Note::Wait { attempt });
                    None
                }
                Action::AwaitWait => Some(self.waited(progress.attempts)),
                Action::StartChild(run) => {
                    let attempt = progress.attempts;
                    self.note(&mut progress, Note::Child { attempt, run });
                    None
                }
                Action::AwaitChild(_) => Some(self.child_ended(progress.attempts)),
                Action::Ask(asking) => {
                    let about = match *asking {
                        Asking::Confirm { .. } => About::Confirm,
                        Asking::Review { .. } => About::Review,
                        Asking::Failure(_) | Asking::FailureAgain { .. } => About::Failure,
                    };
                    let attempt = progress.attempts;
                    self.note(&mut progress, Note::Question { about, attempt });
                    None
                }
                Action::AwaitReply(about) => {
                    let text = self.answer_text(about, progress.questions);
                    self.write(&mut progress, EntryKind::Signal, text.clone());
                    self.point()?;
                    Some(replied(about, &text))
                }
                Action::Judge { about, answer } => Some(replied(about, &answer)),
                Action::Probe => Some(Event::Probed(self.probed(progress.attempts))),
                Action::Doubt { asks } => Some(Event::Doubted {
                    error: error("in-doubt"),
                    asks,
                }),
                Action::Check(text) => Some(self.checked(&text)),
                Action::Accept(text) => Some(Event::Accepted(text)),
            };
            let decision = event.map(|event| progress.decide(event, &policy));
            let decision = decision.unwrap_or_default();
            for note in decision.notes {
                self.note(&mut progress, note);
            }
            action = decision.then.unwrap_or_else(|| progress.action(&policy));
        }
    }

    /// Checks that an attempt is allowed at this point.
    fn may_perform(&self, progress: &Progress) {
        let has = |kind: EntryKind, text: &str| {
            let mut entries = self.journal.iter();
            entries.any(|(other, payload)| *other == kind && payload.contains(text))
        };
        let is_over = has(EntryKind::Result, "") || has(EntryKind::Error, "");
        assert!(!is_over, "performed after the end: {:?}", self.journal);
        let is_approved = !self.rules.confirms || has(EntryKind::Signal, ":approve");
        assert!(
            is_approved,
            "performed without approval: {:?}",
            self.journal
        );
        assert!(progress.draft().is_none(), "performed beside a draft");
        let Some(lost) = self.lost else {
            return;
        };
        let is_settled = match &self.rules.on_doubt {
            OnDoubt::Resolve(Resolution::Retry) => true,
            OnDoubt::Probe(probe) if probe.otherwise == Resolution::Retry => true,
            OnDoubt::Probe(_) | OnDoubt::Resolve(_) => {
                let mut later = self.journal[lost..].iter();
                later.any(|(kind, payload)| {
                    let decides = payload.contains(":retry") || payload.contains(":done? false");
                    *kind == EntryKind::Signal && decides
                })
            }
        };
        assert!(is_settled, "performed in doubt: {:?}", self.journal);
    }

    fn outcome(&self, attempt: u32) -> Event {
        let mut draws = self.draws("attempt", attempt);
        match draws.below(9) {
            0 | 1 => Event::Failed {
                error: error("timeout"),
                now_ms: self.now_ms,
                random: 0,
            },
            2 => Event::GaveUp(error("invalid")),
            3 => Event::Sleeps {
                until_ms: self.now_ms + 10,
                value: Value::from("slept"),
            },
            4 => Event::Suspends(Box::new(wait())),
            5 => Event::Calls(RunId::from_text("r1")),
            6 if attempt < 5 => Event::NoHandle {
                error: error("unavailable"),
                now_ms: self.now_ms,
            },
            _ => Event::Produced {
                text: format!("[{attempt} {}]", draws.below(4)),
                is_checked: draws.chance(2),
            },
        }
    }

    fn waited(&self, attempt: u32) -> Event {
        match self.draws("wait", attempt).chance(3) {
            true => Event::GaveUp(error("timeout")),
            false => Event::Produced {
                text: format!("[:answered {attempt}]"),
                is_checked: false,
            },
        }
    }

    fn child_ended(&self, attempt: u32) -> Event {
        match self.draws("child", attempt).chance(3) {
            true => Event::Failed {
                error: error("child-failed"),
                now_ms: self.now_ms,
                random: 0,
            },
            false => value(&format!("[:child {attempt}]")),
        }
    }

    fn answer_text(&self, about: About, number: u32) -> String {
        let mut draws = self.draws(about.timer(), number);
        // Without this limit, a person might never decide.
        let choices: &[&str] = match (about, number > 6) {
            (About::Confirm, false) => &["approve", "reject", "timeout", "perhaps"],
            (About::Confirm, true) => &["reject"],
            (About::Review, false) => &["approve", "edit", "reject", "perhaps"],
            (About::Review, true) => &["approve"],
            (About::Failure, false) => &["retry", "skip", "use", "misuse", "abort"],
            (About::Failure, true) => &["abort"],
        };
        let choice = draws.below(choices.len() as u64);
        format!(
            "{{:action :{}}}",
            choices[usize::try_from(choice).unwrap_or(0)]
        )
    }

    fn probed(&self, attempt: u32) -> Probed {
        let OnDoubt::Probe(probe) = &self.rules.on_doubt else {
            panic!("a probe without its config");
        };
        match self.draws("probe", attempt).below(3) {
            0 => Probed::Done(format!("[:found {attempt}]")),
            1 => Probed::NotDone,
            _ => Probed::Failed {
                settle: probe.otherwise,
                error: error("in-doubt"),
            },
        }
    }

    fn checked(&self, text: &str) -> Event {
        match self.draws(text, 0).chance(4) {
            true => Event::GaveUp(error("unexpected")),
            false => Event::Checked,
        }
    }
}

fn replied(about: About, text: &str) -> Event {
    let again = || ReplyAction::Again {
        problem: "again".to_owned(),
        failure: None,
    };
    let is = |action: &str| text.contains(&format!(":action :{action}"));
    let action = if is("approve") {
        ReplyAction::Approve
    } else if is("reject") || is("timeout") {
        ReplyAction::Reject(error("rejected"))
    } else if is("edit") || is("use") {
        ReplyAction::Use("[:given]".to_owned())
    } else if is("retry") {
        ReplyAction::Retry
    } else if is("skip") {
        ReplyAction::Skip
    } else if is("abort") {
        ReplyAction::Abort {
            error: "\"aborted\"".to_owned(),
        }
    } else {
        again()
    };
    reply(about, action)
}

fn wait() -> WaitSpec {
    WaitSpec {
        key: None,
        deadline_ms: None,
        on_timeout: OnTimeout::Fail,
        validation: Value::Nil,
        details: Value::Nil,
        event: None,
        webhook: None,
    }
}

fn random_rules(draws: &mut Draws) -> Rules {
    let settle = |number| match number {
        0 => Resolution::Ask,
        1 => Resolution::Fail,
        _ => Resolution::Retry,
    };
    Rules {
        deadline_ms: None,
        journals_attempts: draws.chance(2),
        retry: retries(1 + i64::try_from(draws.below(4)).unwrap_or(0)),
        on_error: match draws.below(3) {
            0 => OnError::Fail,
            1 => OnError::Skip,
            _ => OnError::Checkpoint,
        },
        on_doubt: match draws.below(6) {
            number @ 0..=2 => OnDoubt::Resolve(settle(number)),
            number => OnDoubt::Probe(Box::new(Probe {
                check: Value::Nil,
                done: None,
                otherwise: settle(number - 3),
            })),
        },
        confirms: draws.chance(3),
        reviews: draws.chance(3),
        drafts: draws.chance(3),
        persists: draws.chance(4),
    }
}

/// The number of random schedules of each simulation.
const SCHEDULES: u64 = 50_000;

#[test]
fn a_crash_anywhere_leaves_the_journal_of_a_run_without_one() {
    for seed in 0..SCHEDULES {
        let mut draws = Draws(seed);
        let rules = random_rules(&mut draws);
        let mut plain = World::new(&rules, seed);
        plain.run();
        let mut crashed = World::new(&rules, seed);
        let most = plain.point as u64 * 2;
        crashed.crashes = (0..1 + draws.below(6))
            .map(|_| 1 + usize::try_from(draws.below(most)).unwrap_or(0))
            .collect();
        crashed.run();
        assert_eq!(plain.journal, crashed.journal, "seed {seed}: {rules:?}");
        assert_eq!(plain.folded(), crashed.folded(), "seed {seed}");
    }
}

#[test]
fn an_attempt_that_may_have_been_done_is_repeated_only_where_that_is_decided() {
    for seed in 0..SCHEDULES {
        let mut draws = Draws(seed ^ 0x5eed);
        let rules = Rules {
            journals_attempts: true,
            ..random_rules(&mut draws)
        };
        let mut world = World::new(&rules, seed);
        world.loses_attempts = true;
        world.crashes = (0..1 + draws.below(6))
            .map(|_| 1 + usize::try_from(draws.below(40)).unwrap_or(0))
            .collect();
        world.run();
        let is_end = |kind: &EntryKind| matches!(kind, EntryKind::Result | EntryKind::Error);
        let ends = world.journal.iter().filter(|(kind, _)| is_end(kind));
        assert_eq!(ends.count(), 1, "seed {seed}: {:?}", world.journal);
        let last = world.journal.last().map(|(_, payload)| payload.as_str());
        let progress = world.folded();
        let end = match progress.end() {
            Some(End::Value(text) | End::Error(text)) => text.as_str(),
            None => "",
        };
        assert_eq!(last, Some(end), "seed {seed}");
    }
}
