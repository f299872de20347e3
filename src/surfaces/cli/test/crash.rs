//! Crash tests at every point: one process is killed there, and another resumes the run, which must end the same.

use std::io::{self, IsTerminal as _};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use flowstone_engine::crash_test::{EffectLine, TestOutcome, Uses, compare, read_effects};
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;

use super::super::report::Report;
use super::{Test, outcome};

/// A flow to test.
pub struct Plan<'a> {
    pub args: &'a Test,
    /// The flow file.
    pub file: &'a Path,
    /// The folder with recorded answers.
    pub replay: Option<&'a Path>,
    /// The folder for scratch homes.
    pub folder: &'a Path,
    /// The file with the case.
    pub case: &'a Path,
    pub expected: &'a TestOutcome,
    pub effects: &'a [EffectLine],
}

/// The results of all crashes.
#[derive(Debug, Default)]
pub struct Crashes {
    /// Number of processes that were killed.
    pub killed: u64,
    /// Number of runs that reached the same end in another process.
    pub resumed: u64,
    /// Number of effects outside that were repeated.
    pub repeated: u64,
    /// Number of reads outside that were repeated.
    pub looked_again: u64,
    pub in_doubt: u64,
    pub problems: Vec<String>,
    /// The entries of the case that the processes used.
    pub uses: Uses,
}

impl Crashes {
    fn add(&mut self, tried: Crashes) {
        self.killed += tried.killed;
        self.resumed += tried.resumed;
        self.repeated += tried.repeated;
        self.looked_again += tried.looked_again;
        self.in_doubt += tried.in_doubt;
        self.problems.extend(tried.problems);
        self.uses.add(tried.uses);
    }

    pub fn to_json(&self, expected: &TestOutcome) -> serde_json::Value {
        json!({
            "points": expected.points,
            "commits": expected.commits,
            "killed": self.killed,
            "resumed": self.resumed,
            "repeated": self.repeated,
            "looked_again": self.looked_again,
            "in_doubt": self.in_doubt,
        })
    }
}

/// Kills a process at each point that the undisturbed process passed.
pub fn everywhere(plan: &Plan<'_>) -> Result<Crashes, Report> {
    let program = std::env::current_exe().map_err(|error| {
        Report::error(
            "E0927",
            format!("the program cannot find its own executable: {error}"),
        )
    })?;
    let next = AtomicU64::new(1);
    let is_over = AtomicBool::new(false);
    let crashes = Mutex::new(Crashes::default());
    let bar = bar(plan);
    let worker = || {
        while !is_over.load(Ordering::SeqCst) {
            let point = next.fetch_add(1, Ordering::SeqCst);
            let is_beyond = point > plan.expected.points;
            let tried = at(plan, &program, point);
            let mut crashes = crashes.lock().unwrap_or_else(PoisonError::into_inner);
            match tried {
                // The number of commits depends on the timing of branches: the next process may pass more points, or
                // fewer.
                Ok(tried) if tried.killed == 0 && is_beyond => {
                    is_over.store(true, Ordering::SeqCst);
                    crashes.add(tried);
                }
                Ok(tried) => crashes.add(tried),
                Err(words) => {
                    is_over.fetch_or(is_beyond, Ordering::SeqCst);
                    crashes.problems.push(format!("point {point}: {words}"));
                }
            }
            bar.inc(1);
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(worker);
        }
    });
    bar.finish_and_clear();
    let mut crashes = crashes.into_inner().unwrap_or_else(PoisonError::into_inner);
    crashes.problems.sort();
    Ok(crashes)
}

fn bar(plan: &Plan<'_>) -> ProgressBar {
    if plan.args.quiet || plan.args.json || !io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(plan.expected.points);
    if let Ok(style) = ProgressStyle::with_template("crashing  {bar:30}  {pos} of {len}  {eta}") {
        bar.set_style(style);
    }
    bar
}

/// Performs a crash at one point. Returns `Err` if it could not be performed.
fn at(plan: &Plan<'_>, program: &Path, point: u64) -> Result<Crashes, String> {
    let home = plan.folder.join(point.to_string());
    let process = |crash_at: Option<u64>| {
        let mut command = Command::new(program);
        command.arg("test").arg(plan.file);
        command
            .arg("--case")
            .arg(plan.case)
            .arg("--test-home")
            .arg(&home);
        command.args(["--quiet", "--json"]);
        let recorded = plan.replay.or(plan.args.exchanges.replay.as_deref());
        if let Some(folder) = recorded {
            command.arg("--replay").arg(folder);
        }
        command.args(plan.args.permits.to_args());
        if let Some(point) = crash_at {
            command.args(["--crash-at", &point.to_string()]);
        }
        command
            .stdin(Stdio::null())
            .output()
            .map_err(|error| format!("a process cannot be started: {error}"))
    };
    let first = process(Some(point))?;
    let was_killed = !has_ended(&first);
    let last = match was_killed {
        true => process(None)?,
        false => first,
    };
    let Some(outcome) = outcome::of_json(&last.stdout) else {
        return Err(format!("the run does not resume: {}", output_text(&last)));
    };
    let effects = read_effects(&home).map_err(|error| error.to_string())?;
    let uses = Uses::read(&home).map_err(|error| error.to_string())?;
    let comparison = compare((&outcome, &effects), (plan.expected, plan.effects));
    // Scratch homes without findings are removed right away.
    let _ = std::fs::remove_dir_all(&home);
    Ok(Crashes {
        killed: u64::from(was_killed),
        resumed: u64::from(was_killed && comparison.differences.is_empty()),
        repeated: comparison.repeated,
        looked_again: comparison.looked_again,
        in_doubt: comparison.in_doubt,
        uses,
        problems: comparison
            .differences
            .into_iter()
            .map(|words| format!("after a crash at point {point}: {words}"))
            .collect(),
    })
}

/// Tells whether the process exited by itself, successfully or not.
fn has_ended(output: &Output) -> bool {
    // Without signals, an abort has an exit status that Flowstone itself never returns.
    output
        .status
        .code()
        .is_some_and(|code| (0..128).contains(&code))
}

fn output_text(output: &Output) -> String {
    let (out, err) = (&output.stdout, &output.stderr);
    let text = String::from_utf8_lossy(if out.is_empty() { err } else { out });
    format!("{} {}", output.status, text.trim())
}
