//! What a run shows on standard error while it goes on: live lines on a terminal, plain lines elsewhere.

mod nest;

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
use nest::{Nest, is_inside};

const GOOD: Style = AnsiColor::Green.on_default();
const BAD: Style = AnsiColor::Red.on_default().bold();
const HELD: Style = AnsiColor::Yellow.on_default();
const DIM: Style = Style::new().dimmed();
const TICK: Duration = Duration::from_millis(100);
/// So many characters of what a step inside another was asked are shown, and of a line that is being written.
const ASKED: usize = 60;
const TAIL: usize = 60;

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
    /// What was written of its line, where only whole lines can be.
    partial: String,
    /// What steps are inside others, and what all that took.
    nest: Nest,
}

impl Terminal {
    pub fn new() -> Terminal {
        Terminal {
            lines: io::stderr().is_terminal().then(MultiProgress::new),
            state: RefCell::default(),
        }
    }

    fn started(&self, step: &StepNote) {
        let mut state = self.state.borrow_mut();
        state.nest.started(&step.path);
        let Some(lines) = &self.lines else {
            return;
        };
        // What happens inside a step says what it does.
        let outer: Vec<StepPath> = state.bars.keys().cloned().collect();
        for path in outer {
            if is_inside(&step.path, &path)
                && let Some(bar) = state.bars.remove(&path)
            {
                bar.finish_and_clear();
            }
        }
        let bar = lines.add(ProgressBar::new_spinner());
        if let Ok(style) = ProgressStyle::with_template("{spinner} {prefix}  {elapsed}  {wide_msg}")
        {
            bar.set_style(style);
        }
        bar.set_prefix(output::as_noted(&label(step, &state.nest)));
        if let Some(so_far) = state.nest.so_far(&step.path) {
            bar.set_message(so_far);
        }
        bar.enable_steady_tick(TICK);
        state.bars.insert(step.path.clone(), bar);
    }

    fn progress(&self, path: &StepPath, progress: &Progress) {
        match progress {
            Progress::Text(text) => self.text(path, text),
            // A model's reasoning is not its answer: it is in the record, not on the screen.
            Progress::Thought(_) => {}
            Progress::Again(why) => self.again(path, why),
            Progress::Status(status) => self.message(path, status.clone()),
            Progress::Count { done, total } => self.message(
                path,
                match total {
                    Some(total) => format!("{done} of {total}"),
                    None => done.to_string(),
                },
            ),
            Progress::Refused { what, why } => {
                let depth = self.state.borrow().nest.depth(path) + 1;
                let inside = "  ".repeat(depth);
                let why = brief(why);
                self.line(&format!("{BAD}✗{BAD:#} {inside}{what} {DIM}{why}{DIM:#}"));
            }
            Progress::Spent { tokens, usd } => {
                self.state.borrow_mut().nest.spent(path, *tokens, *usd);
            }
        }
    }

    fn message(&self, path: &StepPath, text: String) {
        if let Some(bar) = self.state.borrow().bars.get(path) {
            bar.set_message(text);
        }
    }

    /// Writes a piece of a model's answer as it comes: beside other live lines, whole lines above them.
    fn text(&self, path: &StepPath, text: &str) {
        let mut state = self.state.borrow_mut();
        let state = &mut *state;
        let writing = state.writing.get_or_insert_with(|| path.clone());
        if writing != path {
            return;
        }
        let others = state.bars.len() - usize::from(state.bars.contains_key(path));
        if others == 0 && state.partial.is_empty() {
            if let Some(bar) = state.bars.remove(path) {
                bar.finish_and_clear();
            }
            self.above(|| output::note_part(text));
            return;
        }
        state.partial.push_str(text);
        if let Some((whole, rest)) = state.partial.rsplit_once('\n') {
            let (whole, rest) = (whole.to_owned(), rest.to_owned());
            self.above(|| output::note(&whole));
            state.partial = rest;
        }
        if let Some(bar) = state.bars.get(path) {
            let length = state.partial.chars().count();
            let tail = state.partial.chars().skip(length.saturating_sub(TAIL));
            bar.set_message(tail.collect::<String>());
        }
    }

    /// Ends the line of an answer, and says that another one follows.
    fn again(&self, path: &StepPath, why: &str) {
        let mut state = self.state.borrow_mut();
        if state.writing.as_ref() == Some(path) {
            state.writing = None;
            let rest = std::mem::take(&mut state.partial);
            self.above(|| output::note(&rest));
        }
        let depth = state.nest.depth(path) + 1;
        drop(state);
        let (inside, why) = ("  ".repeat(depth), brief(why));
        self.line(&format!(
            "{HELD}↻{HELD:#} {inside}{DIM}the answer is not right, asking again:{why}{DIM:#}"
        ));
    }

    /// Takes a step's live line away and says how it ended.
    fn ended(&self, step: &StepNote, line: impl FnOnce(&str, &str) -> String) {
        let mut state = self.state.borrow_mut();
        if let Some(bar) = state.bars.remove(&step.path) {
            bar.finish_and_clear();
        }
        if state.writing.as_ref() == Some(&step.path) {
            state.writing = None;
            let rest = std::mem::take(&mut state.partial);
            self.above(|| output::note(&rest));
        }
        let name = label(step, &state.nest);
        let spent = match state.nest.ended(&step.path) {
            Some(spent) => format!("  {DIM}{spent}{DIM:#}"),
            None => String::new(),
        };
        drop(state);
        self.line(&line(&name, &spent));
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
                let time = seconds(*millis);
                self.ended(step, |name, spent| {
                    format!("{GOOD}✓{GOOD:#} {name}  {DIM}{time}{DIM:#}{spent}")
                });
            }
            RunEvent::StepFailed {
                step,
                millis,
                code,
                message,
            } => {
                let time = seconds(*millis);
                self.ended(step, |name, spent| {
                    format!("{BAD}✗{BAD:#} {name}  {DIM}{time}{DIM:#}{spent}  {code} {message}")
                });
            }
            RunEvent::StepRetrying { step, message, .. } => self.ended(step, |name, _| {
                format!("{HELD}↻{HELD:#} {name}  again after: {message}")
            }),
            RunEvent::StepSleeping { step, .. } => {
                self.ended(step, |name, _| format!("{HELD}…{HELD:#} {name}  sleeps"));
            }
            RunEvent::StepWaiting { step, wait } => self.ended(step, |name, _| {
                format!("{HELD}…{HELD:#} {name}  waits for {}", wait.key)
            }),
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

/// Names a step: below what it is inside of, with the beginning of what it was asked.
fn label(step: &StepNote, nest: &Nest) -> String {
    let again = match step.path.occurrence {
        1 => String::new(),
        occurrence => format!(" #{occurrence}"),
    };
    let depth = nest.depth(&step.path);
    let asked = match depth > 0 && step.kind != "llm" {
        true => brief(&step.request),
        false => String::new(),
    };
    let inside = "  ".repeat(depth);
    format!(
        "{inside}{}{again} {DIM}:{}{asked}{DIM:#}",
        step.title, step.kind
    )
}

/// Returns the beginning of a request, on one line.
fn brief(request: &str) -> String {
    let line: String = request.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(ASKED) {
        Some((end, _)) => format!(" {}…", &line[..end]),
        None => format!(" {line}"),
    }
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
