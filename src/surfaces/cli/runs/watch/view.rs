//! What `runs watch` shows: a screen that is redrawn, or a line per change where the terminal cannot redraw lines.

use std::collections::HashMap;
use std::io::{self, IsTerminal as _};

use flowstone_engine::ports::RunStatus;
use serde_json::Value as Json;

use super::keys::Keys;
use crate::cli::output;
use crate::cli::progress::seconds;
use crate::cli::rows::{list, ms, text};
use crate::cli::runs::list::status_of_json;
use crate::cli::runs::show::describe_json;
use crate::cli::runs::state_text;
use crate::cli::table::{Column, table};

/// Moves the cursor home and clears the rest of each line and of the screen.
const HOME: &str = "\x1b[H";
const REST_OF_LINE: &str = "\x1b[K\n";
const BELOW: &str = "\x1b[J";
/// The alternate screen of the terminal. Leaving it restores the earlier contents.
const ENTER: &str = "\x1b[?1049h\x1b[?25l";
const LEAVE: &str = "\x1b[?25h\x1b[?1049l";

/// The output of the command. Runs and reports are JSON, as the API answers them with `values=edn`.
pub struct View {
    /// The terminal; `None` if it cannot redraw lines.
    keys: Option<Keys>,
    /// The status that was printed last, by what it is about.
    seen: HashMap<String, String>,
    /// The run that was shown, after its end.
    ended: Option<Json>,
}

impl View {
    pub fn open() -> View {
        let keys = io::stdout().is_terminal().then(Keys::listen);
        if keys.is_some() {
            output::screen(ENTER);
        }
        View {
            keys,
            seen: HashMap::new(),
            ended: None,
        }
    }

    /// Tells whether the user has left.
    pub fn is_left(&self) -> bool {
        self.keys.as_ref().is_some_and(Keys::is_quit)
    }

    pub fn is_redrawn(&self) -> bool {
        self.keys.is_some()
    }

    /// Leaves the screen. That removes what was drawn, so a run that has ended is printed once more.
    pub fn close(mut self) {
        let ended = self.ended.take().filter(|_| self.is_redrawn());
        drop(self);
        if let Some(run) = ended {
            output::data(&describe_json(&run, false));
        }
    }

    fn draw(&self, text: &str) {
        // Lines beyond the height of the screen would make it scroll.
        let room = screen_size().map_or(24, |(rows, _)| usize::from(rows));
        let lines: Vec<&str> = text.lines().collect();
        let mut out = HOME.to_owned();
        for line in lines.iter().take(room.saturating_sub(2)) {
            out.push_str(&output::as_shown(line));
            out.push_str(REST_OF_LINE);
        }
        out.push_str("q ends this");
        out.push_str(REST_OF_LINE.trim_end_matches('\n'));
        out.push_str(BELOW);
        output::screen(&out);
    }

    /// Shows one run with its steps, and tells whether it has ended.
    pub fn one(&mut self, run: Json) -> bool {
        if self.is_redrawn() {
            self.draw(&describe_json(&run, false));
        } else {
            for step in list(&run, "steps") {
                self.change(&text(step, "path"), &text(step, "status"));
            }
            self.change("the run", &state_text(&run));
        }
        let status = RunStatus::from_name(&text(&run, "status"));
        let is_over = status.is_some_and(RunStatus::is_final);
        self.ended = Some(run).filter(|_| is_over);
        is_over
    }

    /// Draws the unfinished runs. `step`: returns the latest step of a run.
    pub fn all(&self, runs: &[Json], step: impl Fn(&str) -> String, now_ms: i64) {
        let rows = runs.iter().map(|run| {
            let id = text(run, "id");
            let created_ms = ms(&run["createdAt"]).unwrap_or(now_ms);
            let [step, age] = [step(&id), seconds((now_ms - created_ms).max(0))];
            vec![id, text(run, "flow"), status_of_json(run), step, age]
        });
        let columns = [
            Column::Whole("run"),
            Column::Extra("flow"),
            Column::Cut("status"),
            Column::Cut("step"),
            Column::Whole("for"),
        ];
        let table = table(&columns, rows);
        let count = match runs.len() {
            0 => "no run is unfinished".to_owned(),
            1 => "1 run".to_owned(),
            count => format!("{count} runs"),
        };
        self.draw(&format!("{count}\n\n{table}"));
    }

    /// Returns the ids of the runs that were listed, and that are not among these.
    pub fn gone(&self, runs: &[Json]) -> Vec<String> {
        let is_live = |id: &str| runs.iter().any(|run| run["id"] == *id);
        let gone = self.seen.keys().filter(|id| !is_live(id));
        let mut gone: Vec<String> = gone.cloned().collect();
        gone.sort_unstable();
        gone
    }

    /// Prints the status of a run that is not listed any more.
    pub fn end(&mut self, id: &str, status: &str) {
        output::data(&format!("{id}  {status}"));
        self.seen.remove(id);
    }

    /// Prints a line for each run that has changed.
    pub fn changes(&mut self, runs: &[Json]) {
        for run in runs {
            self.change(&text(run, "id"), &status_of_json(run));
        }
    }

    /// Prints a line if something has changed.
    fn change(&mut self, what: &str, now: &str) {
        if self.seen.get(what).is_some_and(|before| before == now) {
            return;
        }
        self.seen.insert(what.to_owned(), now.to_owned());
        output::data(&format!("{what}  {now}"));
    }
}

impl Drop for View {
    fn drop(&mut self) {
        if self.keys.is_some() {
            output::screen(LEAVE);
        }
    }
}

/// Returns the height and width of the terminal.
fn screen_size() -> Option<(u16, u16)> {
    console::Term::stdout().size_checked()
}
