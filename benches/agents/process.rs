//! The built program as a process: what it takes, and how it ends.

use std::io::{BufRead as _, BufReader, Error, Result};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// How often a process is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// A process that is killed when it is let go.
pub struct Process(Child);

/// What a process took.
#[derive(Default)]
pub struct Watched {
    /// Megabytes that were resident at most.
    pub peak: f64,
    /// Seconds of the processor.
    pub cpu: f64,
}

impl Process {
    /// Starts the program in a folder, whose `home` keeps its runs.
    pub fn start(folder: &Path, args: &[&str]) -> Result<Process> {
        let child = command(folder, args).stderr(Stdio::null()).spawn()?;
        Ok(Process(child))
    }

    /// Returns the megabytes that are resident in a server that has nothing to do.
    pub fn idle(folder: &Path) -> Result<f64> {
        let mut child = command(folder, &["serve"]).stderr(Stdio::piped()).spawn()?;
        let told = child.stderr.take();
        let process = Process(child);
        let told = told.ok_or_else(|| Error::other("no standard error"))?;
        let mut line = String::new();
        BufReader::new(told).read_line(&mut line)?;
        if !line.starts_with("ready") {
            return Err(Error::other(format!("the server says: {line}")));
        }
        std::thread::sleep(Duration::from_secs(1));
        process.status("VmRSS:")
    }

    /// Looks at it until it ends, which must be well.
    pub fn watch(mut self) -> Result<Watched> {
        let mut last = Watched::default();
        loop {
            // What is gone has no figures any more.
            if let (Ok(peak), Ok(cpu)) = (self.status("VmHWM:"), self.cpu_seconds()) {
                last = Watched { peak, cpu };
            }
            if let Some(status) = self.0.try_wait()? {
                return match status.success() {
                    true => Ok(last),
                    false => Err(Error::other(status.to_string())),
                };
            }
            std::thread::sleep(LOOK_EVERY);
        }
    }

    fn status(&self, key: &str) -> Result<f64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.0.id()))?;
        let kilobytes = status
            .lines()
            .find_map(|line| line.strip_prefix(key))
            .and_then(|rest| rest.trim().trim_end_matches(" kB").parse::<f64>().ok());
        kilobytes
            .map(|kilobytes| kilobytes / 1024.0)
            .ok_or_else(|| Error::other("no resident size"))
    }

    fn cpu_seconds(&self) -> Result<f64> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.0.id()))?;
        let rest = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
        let ticks: u64 = rest
            .split_whitespace()
            .skip(11)
            .take(2)
            .filter_map(|field| field.parse::<u64>().ok())
            .sum();
        Ok(ticks as f64 / 100.0)
    }

    /// Kills it with the signal that nobody can catch, and waits until it is gone.
    pub fn kill(&mut self) -> Result<()> {
        self.0.kill()?;
        self.0.wait()?;
        Ok(())
    }
}

fn command(folder: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_flowstone"));
    command
        .args(args)
        .current_dir(folder)
        .env("FLOWSTONE_HOME", folder.join("home"))
        .stdin(Stdio::null())
        .stdout(Stdio::null());
    command
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
