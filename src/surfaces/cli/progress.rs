//! What a run shows on standard error while it goes on: live lines on a terminal, plain lines elsewhere.

use std::cell::RefCell;
use std::collections::HashMap;
use std::io::{self, IsTerminal};
use std::time::Duration;

use anstyle::{AnsiColor, Style};
use flowstone_engine::codec;
use flowstone_engine::ids::{RunId, StepPath};
use flowstone_engine::observer::{Observer, RunEvent, StepNote};
use flowstone_engine::step::Progress;
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};

use super::output;
use super::queue::place_words;

const GOOD: Style = AnsiColor::Green.on_default();
const BAD: Style = AnsiColor::Red.on_default().bold();
const HELD: Style = AnsiColor::Yellow.on_default();
const DIM: Style = Style::new().dimmed();
const TICK: Duration = Duration::from_millis(100);

/// Shows the events of runs.
pub struct Terminal {
    /// Live lines; `None` where lines cannot be drawn again.
    lines: Option<MultiProgress>,
    state: RefCell<State>,
}

#[derive(Default)]
struct State {
    bars: HashMap<StepPath, ProgressBar>,
    /// The step whose text is being written; only one at a time, or the texts would mix.
    writing: Option<StepPath>,
}

impl Terminal {
    pub fn new() -> Terminal {
        Terminal {
            lines: io::stderr().is_terminal().then(MultiProgress::new),
            state: RefCell::default(),
        }
    }

    fn started(&self, step: &StepNote) {
        let Some(lines) = &self.lines else {
            return;
        };
        let bar = lines.add(ProgressBar::new_spinner());
        if let Ok(style) = ProgressStyle::with_template("{spinner} {prefix}  {elapsed}  {wide_msg}")
        {
            bar.set_style(style);
        }
        bar.set_prefix(name(step));
        bar.enable_steady_tick(TICK);
        self.state.borrow_mut().bars.insert(step.path.clone(), bar);
    }

    fn progress(&self, path: &StepPath, progress: &Progress) {
        match progress {
            Progress::Text(text) => self.text(path, text),
            // A model's reasoning is not its answer: it is in the record, not on the screen.
            Progress::Thought(_) => {}
            Progress::Status(status) => self.message(path, status.clone()),
            Progress::Count { done, total } => self.message(
                path,
                match total {
                    Some(total) => format!("{done} of {total}"),
                    None => done.to_string(),
                },
            ),
        }
    }

    fn message(&self, path: &StepPath, text: String) {
        if let Some(bar) = self.state.borrow().bars.get(path) {
            bar.set_message(text);
        }
    }

    /// Writes a piece of a model's answer as it comes.
    fn text(&self, path: &StepPath, text: &str) {
        let mut state = self.state.borrow_mut();
        if state.writing.is_none() {
            state.writing = Some(path.clone());
            if let Some(bar) = state.bars.remove(path) {
                bar.finish_and_clear();
            }
        }
        if state.writing.as_ref() == Some(path) {
            self.above(|| output::note_part(text));
        }
    }

    /// Takes a step's live line away and says how it ended.
    fn ended(&self, step: &StepNote, line: &str) {
        let mut state = self.state.borrow_mut();
        if let Some(bar) = state.bars.remove(&step.path) {
            bar.finish_and_clear();
        }
        if state.writing.as_ref() == Some(&step.path) {
            state.writing = None;
            self.above(|| output::note(""));
        }
        drop(state);
        self.line(line);
    }

    fn line(&self, line: &str) {
        self.above(|| output::note(line));
    }

    /// Writes above the live lines.
    fn above(&self, write: impl FnOnce()) {
        match &self.lines {
            Some(lines) => lines.suspend(write),
            None => write(),
        }
    }
}

impl Observer for Terminal {
    fn event(&self, _run: &RunId, event: &RunEvent) {
        match event {
            RunEvent::Started { flow, replayed } => match replayed {
                0 => self.line(&format!("{DIM}{flow}{DIM:#}")),
                _ => self.line(&format!(
                    "{DIM}{flow}, after {replayed} finished steps{DIM:#}"
                )),
            },
            RunEvent::Queued { place } => {
                self.line(&format!("{HELD}…{HELD:#} {}", place_words(place)));
            }
            RunEvent::StepStarted(step) => self.started(step),
            RunEvent::StepProgress { path, progress } => self.progress(path, progress),
            RunEvent::StepFinished { step, millis, .. } => {
                let (name, time) = (name(step), seconds(*millis));
                self.ended(step, &format!("{GOOD}✓{GOOD:#} {name}  {DIM}{time}{DIM:#}"));
            }
            RunEvent::StepFailed {
                step,
                millis,
                code,
                message,
            } => {
                let (name, time) = (name(step), seconds(*millis));
                let line = format!("{BAD}✗{BAD:#} {name}  {DIM}{time}{DIM:#}  {code} {message}");
                self.ended(step, &line);
            }
            RunEvent::StepRetrying { step, message, .. } => {
                let name = name(step);
                self.ended(
                    step,
                    &format!("{HELD}↻{HELD:#} {name}  again after: {message}"),
                );
            }
            RunEvent::StepSleeping { step, .. } => {
                let name = name(step);
                self.ended(step, &format!("{HELD}…{HELD:#} {name}  sleeps"));
            }
            RunEvent::StepWaiting { step, wait } => {
                let name = name(step);
                self.ended(
                    step,
                    &format!("{HELD}…{HELD:#} {name}  waits for {}", wait.key),
                );
            }
            RunEvent::Log {
                level,
                message,
                data,
            } => {
                let data = shown(data);
                self.line(&format!("{DIM}{level}{DIM:#} {message}{data}"));
            }
            RunEvent::Emitted { name, data } => {
                self.line(&format!("{DIM}event{DIM:#} {name}{}", shown(data)));
            }
            RunEvent::Printed { text } => self.above(|| output::note_part(text)),
        }
    }
}

fn name(step: &StepNote) -> String {
    let again = match step.path.occurrence {
        1 => String::new(),
        occurrence => format!(" #{occurrence}"),
    };
    format!("{}{again} {DIM}:{}{DIM:#}", step.title, step.kind)
}

fn shown(data: &flowstone_lang::value::Value) -> String {
    if data.is_nil() {
        return String::new();
    }
    codec::encode(data).map_or_else(|_| String::new(), |text| format!(" {text}"))
}

/// Says how long something took.
pub fn seconds(millis: i64) -> String {
    match millis {
        ..1_000 => format!("{millis} ms"),
        1_000..60_000 => format!("{:.1} s", millis as f64 / 1_000.0),
        _ => format!("{} min {} s", millis / 60_000, millis % 60_000 / 1_000),
    }
}
