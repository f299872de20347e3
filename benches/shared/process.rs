//! The built program as a process: started, measured, killed. Shared by the benchmarks.

#![allow(dead_code, reason = "each benchmark uses a part")]

use std::ffi::OsString;
use std::io::{BufRead as _, BufReader, Error, Result};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

/// The time between two measurements of a process.
const SAMPLE_EVERY: Duration = Duration::from_millis(10);

/// A server that listens.
pub struct Served {
    pub process: Process,
    /// Its host and port.
    pub address: String,
    /// The owner's token.
    pub token: String,
}

/// Returns the program that is measured: `FLOWSTONE_BENCH_PROGRAM`, or the one that was built with the benchmark.
fn program() -> OsString {
    std::env::var_os("FLOWSTONE_BENCH_PROGRAM")
        .unwrap_or_else(|| env!("CARGO_BIN_EXE_flowstone").into())
}

/// A process that is killed when it is dropped.
pub struct Process {
    child: Child,
}

/// The figures of a process that has ended.
#[derive(Default)]
pub struct Watched {
    /// Most megabytes that were resident at once.
    pub peak: f64,
    /// Seconds of processor time.
    pub cpu: f64,
}

impl Process {
    /// Starts the program in a folder whose `home` keeps its runs.
    pub fn start(folder: &Path, args: &[&str]) -> Result<Process> {
        let child = command(folder, args).stderr(Stdio::null()).spawn()?;
        Ok(Process { child })
    }

    /// Starts the program with pipes for its standard input and output.
    pub fn talk(folder: &Path, args: &[&str]) -> Result<(Process, ChildStdin, ChildStdout)> {
        let mut child = command(folder, args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let pipes = child.stdin.take().zip(child.stdout.take());
        let (input, output) = pipes.ok_or_else(|| Error::other("no pipes"))?;
        Ok((Process { child }, input, output))
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

    /// Starts a server and returns the text that it writes until it is ready.
    fn ready(folder: &Path, args: &[&str]) -> Result<(Process, String)> {
        let mut child = command(folder, args).stderr(Stdio::piped()).spawn()?;
        let err = child.stderr.take();
        let mut err = BufReader::new(err.ok_or_else(|| Error::other("no standard error"))?);
        let mut text = String::new();
        while !text.lines().any(|line| line.starts_with("ready")) {
            if err.read_line(&mut text)? == 0 {
                return Err(Error::other(format!("the server reports: {text}")));
            }
        }
        // The server reports each run, and blocks if nobody reads that.
        std::thread::spawn(move || std::io::copy(&mut err, &mut std::io::sink()));
        Ok((Process { child }, text))
    }

    /// Returns the megabytes that are resident in a server without work.
    pub fn idle(folder: &Path) -> Result<f64> {
        let process = Process::serve(folder)?;
        std::thread::sleep(Duration::from_secs(1));
        process.resident()
    }

    /// Measures it until it ends, which must be well.
    pub fn watch(mut self) -> Result<Watched> {
        let mut last = Watched::default();
        loop {
            // A process that has ended has no figures.
            if let (Ok(peak), Ok(cpu)) = (self.status("VmHWM:"), self.cpu_seconds()) {
                last = Watched { peak, cpu };
            }
            if let Some(status) = self.child.try_wait()? {
                return match status.success() {
                    true => Ok(last),
                    false => Err(Error::other(status.to_string())),
                };
            }
            std::thread::sleep(SAMPLE_EVERY);
        }
    }

    /// Returns the megabytes that are resident now.
    pub fn resident(&self) -> Result<f64> {
        self.status("VmRSS:")
    }

    fn status(&self, key: &str) -> Result<f64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let kilobytes = status
            .lines()
            .find_map(|line| line.strip_prefix(key))
            .and_then(|rest| rest.trim().trim_end_matches(" kB").parse::<f64>().ok());
        kilobytes
            .map(|kilobytes| kilobytes / 1024.0)
            .ok_or_else(|| Error::other("no resident size"))
    }

    /// Returns the seconds of processor time so far.
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

    /// Kills it with the signal that no process can catch, and waits until it has ended.
    pub fn kill(&mut self) -> Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }

    /// Waits until it ends. Tells whether it ended well.
    pub fn wait(&mut self) -> Result<bool> {
        Ok(self.child.wait()?.success())
    }
}

fn command(folder: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(program());
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
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
