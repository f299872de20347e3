//! The built program as a process: started, waited for, looked at, killed.

use std::io::{BufRead as _, BufReader, Error, Result};
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Stdio};

/// A process that is killed when it is let go.
pub struct Process {
    child: Child,
    /// Kept open, so that it may go on writing.
    _err: Option<BufReader<ChildStderr>>,
}

impl Process {
    /// Starts the program in a folder, whose `home` keeps its runs.
    pub fn start(folder: &Path, args: &[&str]) -> Result<Process> {
        let child = Command::new(env!("CARGO_BIN_EXE_flowstone"))
            .args(args)
            .current_dir(folder)
            .env("FLOWSTONE_HOME", folder.join("home"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        Ok(Process { child, _err: None })
    }

    /// Starts the server, and waits until it is ready.
    pub fn serve(folder: &Path) -> Result<Process> {
        let mut child = Command::new(env!("CARGO_BIN_EXE_flowstone"))
            .args(["serve"])
            .current_dir(folder)
            .env("FLOWSTONE_HOME", folder.join("home"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()?;
        let mut err = BufReader::new(
            child
                .stderr
                .take()
                .ok_or_else(|| Error::other("no standard error"))?,
        );
        let mut line = String::new();
        err.read_line(&mut line)?;
        if !line.starts_with("ready") {
            return Err(Error::other(format!("the server says: {line}")));
        }
        // It tells of each run; somebody has to read.
        let mut rest = err;
        std::thread::spawn(move || std::io::copy(&mut rest, &mut std::io::sink()));
        Ok(Process { child, _err: None })
    }

    /// Megabytes that are resident now.
    pub fn resident(&self) -> Result<f64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let kilobytes = status
            .lines()
            .find_map(|line| line.strip_prefix("VmRSS:"))
            .and_then(|rest| rest.trim().trim_end_matches(" kB").parse::<f64>().ok());
        kilobytes
            .map(|kilobytes| kilobytes / 1024.0)
            .ok_or_else(|| Error::other("no resident size"))
    }

    /// Seconds of processor time so far.
    pub fn cpu_seconds(&self) -> Result<f64> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id()))?;
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
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }

    pub fn wait(&mut self) -> Result<bool> {
        Ok(self.child.wait()?.success())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
