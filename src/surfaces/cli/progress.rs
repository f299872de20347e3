//! The progress of a run on standard error: live lines on a terminal, plain lines elsewhere.

mod branches;
mod nest;

use std::cell::RefCell;
use std::collections::HashMap;
use std::io::{self, IsTerminal};
use std::time::Duration;

use flowstone_engine::codec;
use flowstone_engine::ids::{RunId, StepPath};
use flowstone_engine::observer::{Observer, RunEvent, StepNote};
use flowstone_flow::step::Progress;
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};

use super::outcome::how_to_answer;
use super::output;
use super::paint::{BOLD_RED as BAD, DIM, GREEN as GOOD, YELLOW as HELD};
use super::queue::place_text;
use branches::{Counters, Ended};
use nest::{Nest, is_inside};

const TICK: Duration = Duration::from_millis(100);
/// Maximum number of characters shown of a nested step's request, and of a line that is being written.
const ASKED: usize = 60;
const TAIL: usize = 60;
/// Maximum number of characters of the reason for another answer.
const AGAIN: usize = 160;
/// Maximum number of live lines; further steps get none, because they would not fit on the screen.
const LIVE: usize = 10;

/// Shows the events of runs.
pub struct Terminal {
    /// The live lines; `None` if the terminal cannot redraw lines.
    lines: Option<MultiProgress>,
    answers: Answers,
    state: RefCell<State>,
}

/// Who answers a step that waits while the command keeps running.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answers {
    /// The command ends.
    Later,
    /// Somebody in another terminal.
    Elsewhere,
    /// The person at the prompt, who is asked.
    Here,
}

/// An active step of a run. Child runs share the terminal.
type Key = (RunId, StepPath);

#[derive(Default)]
struct State {
    bars: HashMap<Key, ProgressBar>,
    counters: Counters,
    /// The step whose text is being written. Only one at a time, or the texts would mix.
    writing: Option<Key>,
    /// The unfinished line of its text, if only whole lines can be written.
    partial: String,
    /// Whether a line was begun and not ended.
    is_in_line: bool,
    /// The nesting of steps, and the cost of the models in them.
    nest: Nest,
}

impl Terminal {
    pub fn new() -> Terminal {
        Terminal {
            lines: io::stderr().is_terminal().then(MultiProgress::new),
            answers: Answers::Later,
            state: RefCell::default(),
        }
    }

    /// Creates the display for a prompt, which waits for answers.
    pub fn of_prompt(answers: Answers) -> Terminal {
        Terminal {
            answers,
            ..Terminal::new()
        }
    }

    /// Removes all live lines, including those of steps whose end was not reported.
    pub fn clear(&self) {
        let mut state = self.state.borrow_mut();
        for (_, bar) in state.bars.drain() {
            bar.finish_and_clear();
        }
        state.counters.clear();
        let is_in_line = state.is_in_line;
        *state = State::default();
        drop(state);
        if is_in_line {
            self.above(|| output::note(""));
        }
    }

    fn started(&self, run: &RunId, step: &StepNote) {
        let mut state = self.state.borrow_mut();
        state.nest.started(run, &step.path);
        state.counters.performed(run, &step.path);
        // Nested steps show what the outer step does.
        let outer: Vec<Key> = state.bars.keys().cloned().collect();
        for key in outer {
            if key.0 == *run
                && is_inside(&step.path, &key.1)
                && let Some(bar) = state.bars.remove(&key)
            {
                bar.finish_and_clear();
            }
        }
        if state.bars.len() >= LIVE {
            return;
        }
        let Some(bar) = self.bar(&label(run, step, &state.nest)) else {
            return;
        };
        if let Some(so_far) = state.nest.so_far(run, &step.path) {
            say(&bar, &so_far);
        }
        state.bars.insert((run.clone(), step.path.clone()), bar);
    }

    /// Begins a live line.
    fn bar(&self, name: &str) -> Option<ProgressBar> {
        let bar = self.lines.as_ref()?.add(ProgressBar::new_spinner());
        if let Ok(style) = ProgressStyle::with_template("{spinner} {prefix}  {elapsed}  {wide_msg}")
        {
            bar.set_style(style);
        }
        bar.set_prefix(one_line(name));
        bar.enable_steady_tick(TICK);
        Some(bar)
    }

    fn counted(&self, run: &RunId, path: &str, counts: (usize, usize)) {
        let mut state = self.state.borrow_mut();
        let bar = || self.bar(path);
        state.counters.count(run, path, counts, bar);
    }

    fn branches_ended(&self, run: &RunId, path: &str) {
        let ended = self.state.borrow_mut().counters.ended(run, path);
        if let Some(Ended {
            done,
            total,
            millis,
        }) = ended
        {
            let time = seconds(millis);
            self.line(&format!(
                "{DIM}={DIM:#} {path}  {done} of {total}  {DIM}{time}{DIM:#}"
            ));
        }
    }

    fn progress(&self, run: &RunId, path: &StepPath, progress: &Progress) {
        match progress {
            Progress::Text(text) => self.text(run, path, text),
            // A model's reasoning is not its answer: it is recorded, but not shown.
            Progress::Thought(_) => {}
            Progress::Again(why) => self.again(run, path, why),
            Progress::Status(status) => {
                if self.end_text(run, path) {
                    self.line(&format!("{DIM}{status}{DIM:#}"));
                }
                self.message(run, path, status);
            }
            Progress::Count { done, total } => {
                let count = match total {
                    Some(total) => format!("{done} of {total}"),
                    None => done.to_string(),
                };
                self.message(run, path, &count);
            }
            Progress::Refused { what, why } => {
                let depth = self.state.borrow().nest.depth(run, path) + 1;
                let inside = "  ".repeat(depth);
                let why = brief(why);
                self.line(&format!("{BAD}✗{BAD:#} {inside}{what} {DIM}{why}{DIM:#}"));
            }
            Progress::Spent { tokens, usd } => {
                self.state.borrow_mut().nest.spent(run, path, *tokens, *usd);
            }
            Progress::ModelCall(_) => {}
        }
    }

    /// Ends the line of a step's text, so that what follows, such as a second answer, is separate. Returns whether
    /// there was one.
    fn end_text(&self, run: &RunId, path: &StepPath) -> bool {
        let mut state = self.state.borrow_mut();
        let key = (run.clone(), path.clone());
        if state.writing.as_ref() != Some(&key) {
            return false;
        }
        let rest = std::mem::take(&mut state.partial);
        let is_open = std::mem::take(&mut state.is_in_line) || !rest.is_empty();
        drop(state);
        if is_open {
            self.above(|| output::note(&rest));
        }
        is_open
    }

    fn message(&self, run: &RunId, path: &StepPath, text: &str) {
        let key = (run.clone(), path.clone());
        if let Some(bar) = self.state.borrow().bars.get(&key) {
            say(bar, text);
        }
    }

    /// Writes a chunk of a model's answer as it arrives. Beside other live lines, only whole lines are written above
    /// them.
    fn text(&self, run: &RunId, path: &StepPath, text: &str) {
        let mut state = self.state.borrow_mut();
        let state = &mut *state;
        let key = (run.clone(), path.clone());
        if *state.writing.get_or_insert_with(|| key.clone()) != key {
            return;
        }
        let others = state.bars.len() - usize::from(state.bars.contains_key(&key));
        if others == 0 && state.partial.is_empty() {
            if let Some(bar) = state.bars.remove(&key) {
                bar.finish_and_clear();
            }
            if !text.is_empty() {
                state.is_in_line = !text.ends_with('\n');
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
        if let Some(bar) = state.bars.get(&key) {
            let length = state.partial.chars().count();
            let tail = state.partial.chars().skip(length.saturating_sub(TAIL));
            say(bar, &tail.collect::<String>());
        }
    }

    /// Ends the line of an answer, and reports that another answer follows.
    fn again(&self, run: &RunId, path: &StepPath, why: &str) {
        self.end_text(run, path);
        let depth = self.state.borrow().nest.depth(run, path) + 1;
        let (inside, why) = ("  ".repeat(depth), why.split_whitespace());
        let why = why.collect::<Vec<_>>().join(" ");
        let why: String = why.chars().take(AGAIN).collect();
        self.line(&format!("{HELD}↻{HELD:#} {inside}{DIM}{why}{DIM:#}"));
    }

    /// Removes a step's live line and reports how the step ended.
    fn ended(&self, run: &RunId, step: &StepNote, line: impl FnOnce(&str, &str) -> String) {
        self.end_text(run, &step.path);
        let mut state = self.state.borrow_mut();
        let key = (run.clone(), step.path.clone());
        if let Some(bar) = state.bars.remove(&key) {
            bar.finish_and_clear();
        }
        if state.writing.as_ref() == Some(&key) {
            state.writing = None;
        }
        let name = label(run, step, &state.nest);
        let spent = match state.nest.ended(run, &step.path) {
            Some(spent) => format!("  {DIM}{spent}{DIM:#}"),
            None => String::new(),
        };
        drop(state);
        self.line(&line(&name, &spent));
    }

    /// Reports something that is not about a step.
    pub fn tell(&self, text: &str) {
        self.line(text);
    }

    fn line(&self, line: &str) {
        self.above(|| output::note(line));
    }

    /// Writes a line above the live lines.
    fn above(&self, write: impl FnOnce()) {
        match &self.lines {
            Some(lines) => lines.suspend(write),
            None => write(),
        }
    }
}

impl Observer for Terminal {
    fn event(&self, run: &RunId, event: &RunEvent) {
        match event {
            RunEvent::Started { flow, replayed } => match replayed {
                0 => self.line(&format!("{DIM}{flow}{DIM:#}")),
                1 => self.line(&format!("{DIM}{flow}, after 1 finished step{DIM:#}")),
                _ => self.line(&format!(
                    "{DIM}{flow}, after {replayed} finished steps{DIM:#}"
                )),
            },
            RunEvent::Queued { place } => {
                self.line(&format!("{HELD}…{HELD:#} {}", place_text(place)));
            }
            RunEvent::StepStarted(step) => self.started(run, step),
            RunEvent::StepProgress { path, progress } => self.progress(run, path, progress),
            RunEvent::StepFinished { step, millis, .. } => {
                let time = seconds(*millis);
                self.ended(run, step, |name, spent| {
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
                self.ended(run, step, |name, spent| {
                    format!("{BAD}✗{BAD:#} {name}  {DIM}{time}{DIM:#}{spent}  {code} {message}")
                });
            }
            RunEvent::StepRetrying { step, message, .. } => self.ended(run, step, |name, _| {
                format!("{HELD}↻{HELD:#} {name}  again after: {message}")
            }),
            RunEvent::StepSleeping { step, .. } => {
                self.ended(run, step, |name, _| {
                    format!("{HELD}…{HELD:#} {name}  sleeps")
                });
            }
            RunEvent::StepWaiting { step, wait } => {
                self.ended(run, step, |name, _| {
                    format!("{HELD}…{HELD:#} {name}  waits for {}", wait.key)
                });
                if self.answers != Answers::Later && wait.is_for_job() {
                    self.line("  a worker takes it with: flowstone jobs claim --type TYPE");
                    self.line("  Ctrl-C stops waiting");
                } else if self.answers == Answers::Elsewhere {
                    let command = how_to_answer(wait);
                    self.line(&format!("  answer in another terminal, {command}"));
                    self.line("  Ctrl-C stops waiting");
                }
            }
            RunEvent::Branches { path, done, total } => self.counted(run, path, (*done, *total)),
            RunEvent::BranchesEnded { path } => self.branches_ended(run, path),
            RunEvent::Log {
                level,
                message,
                data,
            } => {
                let data = data_text(data);
                self.line(&format!("{DIM}{level}{DIM:#} {message}{data}"));
            }
            RunEvent::Emitted { name, data } => {
                self.line(&format!("{DIM}event{DIM:#} {name}{}", data_text(data)));
            }
            RunEvent::Printed { text } => self.above(|| output::note_part(text)),
        }
    }
}

/// Shows a message in a live line.
fn say(bar: &ProgressBar, text: &str) {
    bar.set_message(one_line(text));
}

/// Returns a text the way a live line shows it.
fn one_line(text: &str) -> String {
    output::as_noted(text).replace(['\n', '\t'], " ")
}

/// Names a step: a nested one below its outer step, with the beginning of its request; one in a branch by its path.
fn label(run: &RunId, step: &StepNote, nest: &Nest) -> String {
    let path = &step.path;
    let again = match path.occurrence {
        1 => String::new(),
        occurrence => format!(" #{occurrence}"),
    };
    let depth = nest.depth(run, path);
    let asked = match depth > 0 && step.kind != "llm" {
        true => brief(&step.request),
        false => String::new(),
    };
    let inside = "  ".repeat(depth);
    let name = match depth == 0 && !path.branch.is_empty() {
        true if step.title == path.step => path.to_string(),
        true => format!("{} {}{again}", path.branch, step.title),
        false => format!("{}{again}", step.title),
    };
    format!("{inside}{name} {DIM}:{}{asked}{DIM:#}", step.kind)
}

/// Returns the beginning of a request, on one line.
fn brief(request: &str) -> String {
    let line: String = request.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(ASKED) {
        Some((end, _)) => format!(" {}…", &line[..end]),
        None => format!(" {line}"),
    }
}

fn data_text(data: &flowstone_lang::value::Value) -> String {
    if data.is_nil() {
        return String::new();
    }
    codec::encode(data).map_or_else(|_| String::new(), |text| format!(" {text}"))
}

/// Formats a duration.
pub fn seconds(millis: i64) -> String {
    match millis {
        ..1_000 => format!("{millis} ms"),
        1_000..60_000 => format!("{:.1} s", millis as f64 / 1_000.0),
        _ => format!("{} min {} s", millis / 60_000, millis % 60_000 / 1_000),
    }
}
