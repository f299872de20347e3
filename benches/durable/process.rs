//! The built program as a process: started, waited for, looked at, killed.

use std::ffi::OsString;
use std::io::{BufRead as _, BufReader, Error, Result};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// A server that listens.
pub struct Served {
    pub process: Process,
    /// Its host and port.
    pub address: String,
    /// The owner's token.
    pub token: String,
}

/// The program that is measured: `FLOWSTONE_BENCH_PROGRAM`, or the one that was built with the benchmark.
fn program() -> OsString {
    std::env::var_os("FLOWSTONE_BENCH_PROGRAM")
        .unwrap_or_else(|| env!("CARGO_BIN_EXE_flowstone").into())
}

/// A process that is killed when it is let go.
pub struct Process {
    child: Child,
}

impl Process {
    /// Starts the program in a folder, whose `home` keeps its runs.
    pub fn start(folder: &Path, args: &[&str]) -> Result<Process> {
        let child = Command::new(program())
            .args(args)
            .current_dir(folder)
            .env("FLOWSTONE_HOME", folder.join("home"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        Ok(Process { child })
    }

    /// Starts the server, and waits until it is ready.
    pub fn serve(folder: &Path) -> Result<Process> {
        let (process, _) = Process::ready(folder, &["serve"])?;
        Ok(process)
    }

    /// Starts the server with the flows of the folder and an address of its own.
    pub fn listen(folder: &Path) -> Result<Served> {
        let (process, said) = Process::ready(folder, &["serve", ".", "--listen", "127.0.0.1:0"])?;
        let address = said
            .split("http://")
            .nth(1)
            .and_then(|rest| rest.split(';').next());
        let address = address.ok_or_else(|| Error::other(said.clone()))?;
        let token = std::fs::read_to_string(folder.join("home/owner.token"))?;
        Ok(Served {
            address: address.to_owned(),
            token: token.trim().to_owned(),
            process,
        })
    }

    /// Starts a server and returns what it writes until it is ready.
    fn ready(folder: &Path, args: &[&str]) -> Result<(Process, String)> {
        let mut child = Command::new(program())
            .args(args)
            .current_dir(folder)
            .env("FLOWSTONE_HOME", folder.join("home"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()?;
        let err = child.stderr.take();
        let mut err = BufReader::new(err.ok_or_else(|| Error::other("no standard error"))?);
        let mut said = String::new();
        while !said.lines().any(|line| line.starts_with("ready")) {
            if err.read_line(&mut said)? == 0 {
                return Err(Error::other(format!("the server says: {said}")));
            }
        }
        // It tells of each run; somebody has to read.
        std::thread::spawn(move || std::io::copy(&mut err, &mut std::io::sink()));
        Ok((Process { child }, said))
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
