//! Watching a run: what a terminal, a prompt or a stream shows while it goes on.

use flowstone_lang::value::Value;

use crate::ids::{RunId, StepPath};
use crate::ports::{QueuePlace, WaitRow};
use crate::step::Progress;

/// Takes the events of a run as they happen. Must return at once.
pub trait Observer {
    fn event(&self, run: &RunId, event: &RunEvent);
}

/// Watches nothing.
#[derive(Debug, Default, Clone, Copy)]
pub struct NoObserver;

impl Observer for NoObserver {
    fn event(&self, _run: &RunId, _event: &RunEvent) {}
}

/// Something that happened. Steps answered from the journal are not told again.
#[derive(Debug, Clone)]
pub enum RunEvent {
    /// The run waits for its turn.
    Queued {
        place: QueuePlace,
    },
    /// The run begins, or goes on after `replayed` finished steps.
    Started {
        flow: String,
        replayed: usize,
    },
    /// Branches began at this path, or one of them ended.
    Branches {
        path: String,
        done: usize,
        total: usize,
    },
    /// All branches at this path are over.
    BranchesEnded {
        path: String,
    },
    StepStarted(StepNote),
    /// The step tells about itself.
    StepProgress {
        path: StepPath,
        progress: Progress,
    },
    /// `preview` is the beginning of its value.
    StepFinished {
        step: StepNote,
        millis: i64,
        preview: String,
    },
    /// It failed for good.
    StepFailed {
        step: StepNote,
        millis: i64,
        code: &'static str,
        message: String,
    },
    /// It is tried again at that moment.
    StepRetrying {
        step: StepNote,
        due_ms: i64,
        code: &'static str,
        message: String,
    },
    StepSleeping {
        step: StepNote,
        until_ms: i64,
    },
    /// Somebody has to answer.
    StepWaiting {
        step: StepNote,
        wait: Box<WaitRow>,
    },
    /// A line of `flow/log`.
    Log {
        level: String,
        message: String,
        data: Value,
    },
    /// `flow/emit`.
    Emitted {
        name: String,
        data: Value,
    },
    /// What the flow printed.
    Printed {
        text: String,
    },
}

/// Which step an event is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepNote {
    pub path: StepPath,
    pub kind: &'static str,
    /// `:title`, or the step id.
    pub title: String,
    /// Counted from 1.
    pub attempt: u32,
    /// The beginning of its request, as EDN text.
    pub request: String,
}
