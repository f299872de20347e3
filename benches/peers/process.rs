//! Whole processes: wall clock, processor time and the most memory that was resident.

use std::io::{Error, Result, Write};
use std::process::{Command, Stdio};
use std::time::Instant;

use nix::sys::resource::{UsageWho, getrusage};

/// The first argument with which the benchmark starts itself for this: what a system tells of children is
/// the sum or the greatest of all, so that each measured process has a parent of its own.
pub const MODE: &str = "--process";

/// What one process took.
#[derive(Clone, Copy)]
pub struct Cost {
    /// Milliseconds.
    pub wall: f64,
    /// Milliseconds.
    pub cpu: f64,
    /// Megabytes.
    pub resident: f64,
}

/// Runs a command and writes what it took.
pub fn run(command: &[String]) -> Result<()> {
    let (program, args) = command
        .split_first()
        .ok_or_else(|| Error::other("no command"))?;
    let begun = Instant::now();
    let status = Command::new(program)
        .args(args)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .status()?;
    let wall = begun.elapsed().as_secs_f64() * 1e3;
    if !status.success() {
        return Err(Error::other(status.to_string()));
    }
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    let (user, system) = (usage.user_time(), usage.system_time());
    let cpu = (user.tv_sec() + system.tv_sec()) as f64 * 1e3
        + (user.tv_usec() + system.tv_usec()) as f64 / 1e3;
    // Linux counts in kilobytes, macOS in bytes.
    let unit = if cfg!(target_os = "macos") { 1e6 } else { 1e3 };
    let resident = usage.max_rss() as f64 / unit;
    writeln!(std::io::stdout(), "{wall} {cpu} {resident}")
}

/// Returns the medians of several runs of a command; `None` when it fails.
pub fn measure(command: &[String], runs: usize) -> Option<Cost> {
    let mut costs = Vec::new();
    for _ in 0..runs {
        let output = Command::new(std::env::current_exe().ok()?)
            .arg(MODE)
            .args(command)
            .stderr(Stdio::null())
            .output()
            .ok()?;
        let text = String::from_utf8(output.stdout).ok()?;
        let numbers: Vec<f64> = text.split_whitespace().flat_map(str::parse).collect();
        let [wall, cpu, resident] = numbers[..] else {
            return None;
        };
        costs.push(Cost {
            wall,
            cpu,
            resident,
        });
    }
    let median = |of: fn(&Cost) -> f64| {
        let mut all: Vec<f64> = costs.iter().map(of).collect();
        all.sort_by(f64::total_cmp);
        all.get(all.len() / 2).copied()
    };
    Some(Cost {
        wall: median(|cost| cost.wall)?,
        cpu: median(|cost| cost.cpu)?,
        resident: median(|cost| cost.resident)?,
    })
}
