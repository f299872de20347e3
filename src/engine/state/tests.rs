//! The transitions as tables: the action of each state, and the result of each event.

use std::fmt::Write as _;

use flowstone_lang::value::Value;

use super::{
    About, Action, Asking, Event, Note, OnError, Policy, Probed, Progress, Reply, ReplyAction,
    State, WaitFor, next,
};
use crate::doubt::{OnDoubt, Resolution};
use crate::ids::RunId;
use crate::ports::EntryKind;
use crate::retry;
use crate::step::{Effect, Retry, StepError};

/// The properties of the step in a test.
#[derive(Debug, Clone)]
pub(super) struct Rules {
    pub journals_attempts: bool,
    pub retry: retry::Policy,
    pub deadline_ms: Option<i64>,
    pub on_error: OnError,
    pub on_doubt: OnDoubt,
    pub confirms: bool,
    pub reviews: bool,
    pub drafts: bool,
    pub persists: bool,
}

impl Rules {
    pub(super) fn plain() -> Rules {
        Rules {
            journals_attempts: true,
            retry: retries(1),
            deadline_ms: None,
            on_error: OnError::Fail,
            on_doubt: OnDoubt::Resolve(Resolution::Ask),
            confirms: false,
            reviews: false,
            drafts: false,
            persists: false,
        }
    }

    pub(super) fn policy(&self) -> Policy<'_> {
        Policy {
            journals_attempts: self.journals_attempts,
            retry: &self.retry,
            deadline_ms: self.deadline_ms,
            on_error: self.on_error,
            on_doubt: &self.on_doubt,
            confirms: self.confirms,
            reviews: self.reviews,
            drafts: self.drafts || self.reviews,
            persists: self.persists,
        }
    }
}

pub(super) fn retries(attempts: i64) -> retry::Policy {
    let given = [
        ("max-attempts", Value::Int(attempts)),
        ("jitter", Value::Int(0)),
    ];
    let given = given.map(|(key, value)| (Value::keyword(key), value));
    let config = Value::map([(Value::keyword("retry"), Value::map(given))]);
    retry::Policy::of(&config, Effect::Read).expect("the policy is well-formed")
}

pub(super) fn error(kind: &'static str) -> Box<StepError> {
    Box::new(StepError::new("E0520", kind, kind).retry(Retry::Backoff))
}

fn failed() -> Event {
    Event::Failed {
        error: error("timeout"),
        now_ms: 1_000,
        random: 0,
    }
}

pub(super) fn value(text: &str) -> Event {
    Event::Produced {
        text: text.to_owned(),
        is_checked: true,
    }
}

pub(super) fn reply(about: About, action: ReplyAction) -> Event {
    Event::Replied(Box::new(Reply { about, action }))
}

/// Formats the result of a transition on one line.
fn shown(notes: Vec<Note>, action: &Action) -> String {
    let mut line = String::new();
    for note in notes {
        let kind = note.kind().name();
        let payload = note.into_payload(|error| error.kind.to_owned());
        let _ = write!(line, "{kind} {payload}; ");
    }
    line.push_str(&match action {
        Action::Perform { attempt } => format!("perform {attempt}"),
        Action::Ask(asking) => match &**asking {
            Asking::Confirm { problem } => format!("ask confirm {problem:?}"),
            Asking::Review { problem } => format!("ask review {problem:?}"),
            Asking::Failure(error) => format!("ask failure {}", error.kind),
            Asking::FailureAgain { kind, message, .. } => format!("ask again {kind} {message}"),
        },
        Action::AwaitReply(about) => format!("await reply {}", about.timer()),
        Action::Judge { about, answer } => format!("judge {} {answer}", about.timer()),
        Action::Sleep { until_ms, value } => format!("sleep {until_ms} {}", value.is_some()),
        Action::OpenWait(_) => "open wait".to_owned(),
        Action::AwaitWait => "await wait".to_owned(),
        Action::StartChild(run) => format!("start child {run}"),
        Action::AwaitChild(run) => format!("await child {run}"),
        Action::Probe => "probe".to_owned(),
        Action::Doubt { asks } => format!("doubt {asks}"),
        Action::Check(text) => format!("check {text}"),
        Action::Accept(text) => format!("accept {text}"),
        Action::Answer => "answer".to_owned(),
    });
    line
}

/// Folds journal entries, as if the process ended after them.
fn folded(entries: &[(EntryKind, &str)]) -> Progress {
    let mut progress = Progress::default();
    for (kind, payload) in entries {
        progress.fold(*kind, (*payload).to_owned());
    }
    progress.lose_process();
    progress
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table of cases")]
fn each_state_of_the_journal_has_its_action() {
    use EntryKind::{Draft, Error, Intent, Result, Signal, Timer};
    let rules = Rules {
        confirms: true,
        reviews: true,
        ..Rules::plain()
    };
    let cases: &[(&[(EntryKind, &str)], &str)] = &[
        (&[], "ask confirm None"),
        (
            &[(Timer, "{:kind :confirm :attempt 0}")],
            "await reply confirm",
        ),
        (
            &[
                (Timer, "{:kind :confirm :attempt 0}"),
                (Signal, "{:action :approve}"),
            ],
            "perform 1",
        ),
        (
            &[
                (Timer, "{:kind :confirm :attempt 0}"),
                (Signal, "{:action :reject}"),
            ],
            "judge confirm {:action :reject}",
        ),
        (
            &[
                (Timer, "{:kind :confirm :attempt 0}"),
                (Signal, "{:action :perhaps}"),
            ],
            "ask confirm None",
        ),
        (&[(Intent, "{:attempt 1}")], "doubt true"),
        (
            &[
                (Intent, "{:attempt 1}"),
                (Signal, "{:kind :probe :done? false}"),
            ],
            "ask confirm None",
        ),
        (
            &[
                (Intent, "{:attempt 1}"),
                (Timer, "{:kind :retry :attempt 1 :due 9}"),
            ],
            "sleep 9 false",
        ),
        (
            &[(Timer, "{:kind :sleep :attempt 1 :due 9 :value 1}")],
            "sleep 9 true",
        ),
        (&[(Timer, "{:kind :wait :attempt 1}")], "await wait"),
        (
            &[(Timer, "{:kind :child :attempt 1 :run \"r1\"}")],
            "await child r1",
        ),
        (&[(Draft, "7")], "check 7"),
        (
            &[(Draft, "7"), (Timer, "{:kind :review :attempt 1}")],
            "await reply review",
        ),
        (
            &[
                (Draft, "7"),
                (Timer, "{:kind :review :attempt 1}"),
                (Signal, "{:action :approve}"),
            ],
            "judge review {:action :approve}",
        ),
        (
            &[(Timer, "{:kind :question :attempt 2}")],
            "await reply question",
        ),
        (
            &[
                (Draft, "7"),
                (Timer, "{:kind :question :attempt 2}"),
                (Signal, "{:action :use}"),
            ],
            "judge question {:action :use}",
        ),
        (
            &[(Timer, "{:kind :notify :attempt 1 :due 5}")],
            "ask confirm None",
        ),
        (&[(Result, "1")], "answer"),
        (&[(Error, "{}")], "answer"),
    ];
    for (entries, expected) in cases {
        let action = folded(entries).action(&rules.policy());
        assert_eq!(shown(Vec::new(), &action), *expected, "{entries:?}");
    }
}

/// A step's rules, the entries of its journal, an event, and the expected result.
type Case<'c> = (&'c Rules, &'c [(EntryKind, &'c str)], Event, &'c str);

#[test]
#[expect(clippy::too_many_lines, reason = "a table of cases")]
fn each_event_has_its_entries_and_its_action() {
    let plain = Rules::plain();
    let skip = Rules {
        on_error: OnError::Skip,
        ..Rules::plain()
    };
    let checkpoint = Rules {
        on_error: OnError::Checkpoint,
        ..Rules::plain()
    };
    let tried = Rules {
        retry: retries(2),
        ..Rules::plain()
    };
    let reviewed = Rules {
        reviews: true,
        ..Rules::plain()
    };
    let drafted = Rules {
        drafts: true,
        ..Rules::plain()
    };
    let running: &[(EntryKind, &str)] = &[(EntryKind::Intent, "{:attempt 1}")];
    let asked: &[(EntryKind, &str)] = &[
        (EntryKind::Intent, "{:attempt 1}"),
        (EntryKind::Timer, "{:kind :question :attempt 1}"),
    ];
    let cases: Vec<Case<'_>> = vec![
        (&plain, running, value("1"), "result 1; answer"),
        (&reviewed, running, value("1"), "draft 1; check 1"),
        (&drafted, running, value("1"), "result 1; answer"),
        (
            &drafted,
            running,
            Event::Produced {
                text: "1".to_owned(),
                is_checked: false,
            },
            "draft 1; check 1",
        ),
        (&plain, running, failed(), "error timeout; answer"),
        (
            &skip,
            running,
            failed(),
            "signal {:kind :skip}; error timeout; answer",
        ),
        (&checkpoint, running, failed(), "ask failure timeout"),
        (
            &tried,
            running,
            failed(),
            "timer {:kind :retry :attempt 1 :due 2000 :message \"timeout\" :code \"E0520\"}; sleep 2000 false",
        ),
        (
            &plain,
            running,
            Event::NoHandle {
                error: error("unavailable"),
                now_ms: 0,
            },
            "timer {:kind :retry :attempt 1 :due 250 :message \"unavailable\" :code \"E0520\" :lack true}; sleep 250 false",
        ),
        (
            &plain,
            running,
            Event::Sleeps {
                until_ms: 5,
                value: Value::Nil,
            },
            "timer {:kind :sleep :attempt 1 :due 5 :value nil}; sleep 5 true",
        ),
        (
            &plain,
            running,
            Event::Calls(RunId::from_text("r2")),
            "start child r2",
        ),
        (
            &plain,
            running,
            Event::Doubted {
                error: error("in-doubt"),
                asks: false,
            },
            "error in-doubt; answer",
        ),
        (
            &plain,
            running,
            Event::Probed(Probed::NotDone),
            "signal {:kind :probe :done? false}; perform 2",
        ),
        (
            &reviewed,
            running,
            Event::Probed(Probed::Done("3".to_owned())),
            "signal {:kind :probe :done? true}; draft 3; check 3",
        ),
        (
            &plain,
            running,
            Event::Probed(Probed::Failed {
                settle: Resolution::Retry,
                error: error("in-doubt"),
            }),
            "perform 2",
        ),
        (
            &plain,
            asked,
            reply(About::Failure, ReplyAction::Use("8".to_owned())),
            "result 8; answer",
        ),
        (
            &plain,
            asked,
            reply(
                About::Failure,
                ReplyAction::Abort {
                    error: "{}".to_owned(),
                },
            ),
            "error {}; answer",
        ),
        (
            &plain,
            asked,
            reply(
                About::Failure,
                ReplyAction::Again {
                    problem: "what?".to_owned(),
                    failure: Some(("timeout".to_owned(), Value::Nil)),
                },
            ),
            "ask again timeout what?",
        ),
        (
            &reviewed,
            &[(EntryKind::Draft, "1")],
            Event::Checked,
            "ask review None",
        ),
        (
            &drafted,
            &[(EntryKind::Draft, "1")],
            Event::Checked,
            "accept 1",
        ),
        (
            &reviewed,
            &[(EntryKind::Draft, "1")],
            Event::Accepted("2".to_owned()),
            "result 2; answer",
        ),
        (
            &plain,
            &[(EntryKind::Timer, "{:kind :retry :attempt 1 :due 5}")],
            Event::Due {
                text: String::new(),
            },
            "perform 2",
        ),
        (
            &plain,
            &[(
                EntryKind::Timer,
                "{:kind :sleep :attempt 1 :due 5 :value 4}",
            )],
            Event::Due {
                text: "4".to_owned(),
            },
            "result 4; answer",
        ),
    ];
    for (rules, entries, event, expected) in cases {
        let mut progress = folded(entries);
        let name = format!("{entries:?} {event:?}");
        let (notes, action) = next(&mut progress, event, &rules.policy());
        assert_eq!(shown(notes, &action), expected, "{name}");
    }
}

#[test]
fn states_without_an_end_have_none() {
    let open = [
        State::Asked,
        State::Running { attempt: 1 },
        State::RetryAt { due_ms: 1 },
        State::Waiting(WaitFor::Answer),
        State::Draft("1".to_owned()),
        State::InDoubt,
    ];
    for state in open {
        let progress = Progress {
            state,
            ..Progress::default()
        };
        assert_eq!(progress.end(), None);
    }
}
