//! Secrets in events: what watches a run sees none, also where one lies across the pieces of a model's answer.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use super::{RedactStream, Redactor};
use crate::ids::{RunId, StepPath};
use crate::observer::{Observer, RunEvent, StepNote};
use crate::ports::{Revealed, WaitRow};
use crate::step::Progress;

/// Redacts the events of a run before its observer gets them.
pub(crate) struct RedactedObserver {
    run: RunId,
    observer: Rc<dyn Observer>,
    revealed: Revealed,
    streams: RefCell<HashMap<Piece, RedactStream>>,
}

/// What comes in pieces.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Piece {
    Printed,
    Text(StepPath),
    Thought(StepPath),
}

impl Piece {
    fn of(event: &RunEvent) -> Option<(Piece, &str)> {
        match event {
            RunEvent::Printed { text } => Some((Piece::Printed, text)),
            RunEvent::StepProgress { path, progress } => match progress {
                Progress::Text(text) => Some((Piece::Text(path.clone()), text)),
                Progress::Thought(text) => Some((Piece::Thought(path.clone()), text)),
                _ => None,
            },
            _ => None,
        }
    }

    fn event(self, text: String) -> RunEvent {
        let (path, progress) = match self {
            Piece::Printed => return RunEvent::Printed { text },
            Piece::Text(path) => (path, Progress::Text(text)),
            Piece::Thought(path) => (path, Progress::Thought(text)),
        };
        RunEvent::StepProgress { path, progress }
    }
}

impl RedactedObserver {
    pub(crate) fn new(run: RunId, observer: Rc<dyn Observer>, revealed: Revealed) -> Self {
        RedactedObserver {
            run,
            observer,
            revealed,
            streams: RefCell::default(),
        }
    }

    /// Hands over what was held back of everything but one stream: something else is shown now.
    fn flush(&self, except: Option<&Piece>, redactor: &Redactor) {
        let held: Vec<(Piece, RedactStream)> = {
            let mut streams = self.streams.borrow_mut();
            streams
                .extract_if(|piece, stream| {
                    let is_due = match (piece, except) {
                        (Piece::Text(path), Some(Piece::Thought(other)))
                        | (Piece::Thought(path), Some(Piece::Text(other))) => path == other,
                        (_, Some(_)) => false,
                        (_, None) => true,
                    };
                    is_due && !stream.is_empty()
                })
                .collect()
        };
        for (piece, mut stream) in held {
            let text = stream.finish_text(redactor);
            self.observer.event(&self.run, &piece.event(text));
        }
    }
}

impl Observer for RedactedObserver {
    fn event(&self, run: &RunId, event: &RunEvent) {
        let redactor = self.revealed.redactor();
        if redactor.is_empty() && self.streams.borrow().is_empty() {
            return self.observer.event(run, event);
        }
        let Some((piece, text)) = Piece::of(event) else {
            if ends_pieces(event) {
                self.flush(None, &redactor);
            }
            return self.observer.event(run, &clean(&redactor, event));
        };
        self.flush(Some(&piece), &redactor);
        let ready = {
            let mut streams = self.streams.borrow_mut();
            let stream = streams.entry(piece.clone()).or_default();
            stream.push_text(&redactor, text)
        };
        if !ready.is_empty() {
            self.observer.event(run, &piece.event(ready));
        }
    }
}

impl Drop for RedactedObserver {
    fn drop(&mut self) {
        let redactor = self.revealed.redactor();
        self.flush(None, &redactor);
    }
}

/// Tells whether nothing more is expected of what came in pieces.
fn ends_pieces(event: &RunEvent) -> bool {
    !matches!(
        event,
        RunEvent::StepProgress {
            progress: Progress::Count { .. } | Progress::Spent { .. } | Progress::ModelCall(_),
            ..
        }
    )
}

/// Returns an event without secrets.
pub(crate) fn clean(redactor: &Redactor, event: &RunEvent) -> RunEvent {
    let text = |text: &String| redactor.text(text.clone());
    let step = |note: &StepNote| StepNote {
        title: redactor.text(note.title.clone()),
        request: redactor.text(note.request.clone()),
        ..note.clone()
    };
    match event {
        RunEvent::StepStarted(note) => RunEvent::StepStarted(step(note)),
        RunEvent::StepProgress { path, progress } => RunEvent::StepProgress {
            path: path.clone(),
            progress: progressed(redactor, progress),
        },
        RunEvent::StepFinished {
            step: note,
            millis,
            preview,
        } => RunEvent::StepFinished {
            step: step(note),
            millis: *millis,
            preview: text(preview),
        },
        RunEvent::StepFailed {
            step: note,
            millis,
            code,
            message,
        } => RunEvent::StepFailed {
            step: step(note),
            millis: *millis,
            code,
            message: text(message),
        },
        RunEvent::StepRetrying {
            step: note,
            due_ms,
            code,
            message,
        } => RunEvent::StepRetrying {
            step: step(note),
            due_ms: *due_ms,
            code,
            message: text(message),
        },
        RunEvent::StepSleeping {
            step: note,
            until_ms,
        } => RunEvent::StepSleeping {
            step: step(note),
            until_ms: *until_ms,
        },
        RunEvent::StepWaiting { step: note, wait } => RunEvent::StepWaiting {
            step: step(note),
            wait: Box::new(WaitRow {
                details: redactor.edn(wait.details.clone()),
                ..WaitRow::clone(wait)
            }),
        },
        RunEvent::Log {
            level,
            message,
            data,
        } => RunEvent::Log {
            level: level.clone(),
            message: text(message),
            data: redactor.value(data),
        },
        RunEvent::Emitted { name, data } => RunEvent::Emitted {
            name: text(name),
            data: redactor.value(data),
        },
        RunEvent::Printed { text: printed } => RunEvent::Printed {
            text: text(printed),
        },
        RunEvent::Queued { .. }
        | RunEvent::Started { .. }
        | RunEvent::Branches { .. }
        | RunEvent::BranchesEnded { .. } => event.clone(),
    }
}

fn progressed(redactor: &Redactor, progress: &Progress) -> Progress {
    let text = |text: &String| redactor.text(text.clone());
    match progress {
        Progress::Text(piece) => Progress::Text(text(piece)),
        Progress::Thought(piece) => Progress::Thought(text(piece)),
        Progress::Again(why) => Progress::Again(text(why)),
        Progress::Status(line) => Progress::Status(text(line)),
        Progress::Refused { what, why } => Progress::Refused {
            what: text(what),
            why: text(why),
        },
        Progress::Count { .. } | Progress::Spent { .. } | Progress::ModelCall(_) => {
            progress.clone()
        }
    }
}
