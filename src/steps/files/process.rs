//! Runs the `git` command: without prompts, with a deadline, killed when the step is cancelled.
//!
//! Blocking; called on a thread that may wait. A repository that is read or published to may be hostile: nothing that
//! its configuration or its hooks name is executed, on this side or on the other side of a transfer on this machine.

use std::ffi::OsString;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use super::error::FilesError;
use super::reach;
use crate::guard::Guard;

/// The deadline of a command, and the flag by which it is cancelled.
#[derive(Clone, Debug)]
pub struct Limit {
    pub timeout: Duration,
    pub cancelled: Arc<AtomicBool>,
    /// Decides about the servers that the command may connect to.
    pub guard: Guard,
}

impl Limit {
    pub fn new(timeout: Duration) -> Limit {
        Limit {
            timeout,
            cancelled: Arc::default(),
            guard: Guard::default(),
        }
    }
}

/// The `git` command in a folder.
pub(super) struct Git {
    folder: Option<PathBuf>,
    limit: Limit,
    setting: Option<(String, String)>,
}

impl Git {
    pub(super) fn new(folder: Option<&Path>, limit: Limit) -> Git {
        Git {
            folder: folder.map(Path::to_path_buf),
            limit,
            setting: None,
        }
    }

    /// Returns the same command in another folder.
    pub(super) fn elsewhere(&self, folder: &Path) -> Git {
        Git::new(Some(folder), self.limit.clone())
    }

    /// Adds a setting that must not appear in the list of processes.
    pub(super) fn with_setting(self, setting: Option<(String, String)>) -> Git {
        Git { setting, ..self }
    }

    /// Returns the output of the command, as text.
    pub(super) fn text(&self, what: &str, args: &[&str]) -> Result<String, FilesError> {
        Ok(String::from_utf8_lossy(&self.bytes(what, args)?).into_owned())
    }

    /// Returns the output of the command.
    pub(super) fn bytes(&self, what: &str, args: &[&str]) -> Result<Vec<u8>, FilesError> {
        let mut bytes = Vec::new();
        self.stream(what, args, Stdio::null(), |output| {
            output
                .read_to_end(&mut bytes)
                .map(drop)
                .map_err(|error| broken(what, &error))
        })?;
        Ok(bytes)
    }

    /// Passes the output of the command to `take` while it runs.
    pub(super) fn stream(
        &self,
        what: &str,
        args: &[&str],
        input: impl Into<Stdio>,
        take: impl FnMut(&mut ChildStdout) -> Result<(), FilesError>,
    ) -> Result<(), FilesError> {
        let (is_done, taken, complaints) = self.run(what, args, input.into(), take)?;
        match is_done {
            true => taken,
            false => Err(failed(what, &complaints)),
        }
    }

    /// Runs the command, and returns its output even if it fails.
    pub(super) fn attempt(&self, what: &str, args: &[&str]) -> Result<Attempt, FilesError> {
        let mut output = Vec::new();
        let (is_done, taken, complaints) = self.run(what, args, Stdio::null(), |from| {
            from.read_to_end(&mut output)
                .map(drop)
                .map_err(|error| broken(what, &error))
        })?;
        taken?;
        Ok(Attempt {
            is_done,
            output: String::from_utf8_lossy(&output).into_owned(),
            complaints,
        })
    }

    /// Returns whether the command succeeded, the result of reading its output, and its error output.
    fn run(
        &self,
        what: &str,
        args: &[&str],
        input: Stdio,
        mut take: impl FnMut(&mut ChildStdout) -> Result<(), FilesError>,
    ) -> Result<(bool, Result<(), FilesError>, String), FilesError> {
        if self.limit.cancelled.load(Ordering::Relaxed) {
            return Err(FilesError::Cancelled);
        }
        let route = match remote(args) {
            Some(address) => reach::settings(&self.limit.guard, address)?,
            None => Vec::new(),
        };
        let mut child =
            self.command(args, &route, input)
                .spawn()
                .map_err(|error| match error.kind() {
                    io::ErrorKind::NotFound
                        if self.folder.as_ref().is_none_or(|it| it.is_dir()) =>
                    {
                        FilesError::NoGit {
                            cause: "it is not installed".into(),
                        }
                    }
                    _ => FilesError::NoGit {
                        cause: error.to_string(),
                    },
                })?;
        let (output, complaints) = (child.stdout.take(), child.stderr.take());
        // Read in parallel with the output; otherwise a long error output would fill its pipe and block the command.
        let complaints = std::thread::spawn(move || {
            let mut text = Vec::new();
            if let Some(complaints) = complaints {
                complaints.take(64 << 10).read_to_end(&mut text).ok();
            }
            String::from_utf8_lossy(&text).into_owned()
        });
        let watch = Watch::start(child, self.limit.clone());
        let taken = match output {
            Some(mut output) => take(&mut output),
            None => Ok(()),
        };
        let ended = watch.finish();
        let complaints = complaints.join().unwrap_or_default();
        match ended {
            End::Exited(is_done) => Ok((is_done, taken, complaints)),
            End::TimedOut => Err(FilesError::GitTimeout {
                what: what.into(),
                seconds: self.limit.timeout.as_secs(),
            }),
            End::Cancelled => Err(FilesError::Cancelled),
            End::Lost(error) => Err(broken(what, &error)),
        }
    }

    fn command(&self, args: &[&str], route: &[String], input: Stdio) -> Command {
        let mut command = Command::new("git");
        if let Some(folder) = &self.folder {
            command.current_dir(folder);
        }
        // A surrounding git, such as a hook, must not redirect this one to its own repository.
        for name in [
            "GIT_DIR",
            "GIT_WORK_TREE",
            "GIT_INDEX_FILE",
            "GIT_OBJECT_DIRECTORY",
            "GIT_NAMESPACE",
            "GIT_CONFIG_PARAMETERS",
        ] {
            command.env_remove(name);
        }
        command
            .env("GIT_TERMINAL_PROMPT", "0")
            .env("GIT_ASKPASS", "")
            .env("SSH_ASKPASS", "")
            .env("GCM_INTERACTIVE", "never")
            .env("GIT_OPTIONAL_LOCKS", "0")
            .env("GIT_ALLOW_PROTOCOL", "file:git:http:https:ssh")
            // A missing object is not fetched from the server that the repository names.
            .env("GIT_NO_LAZY_FETCH", "1")
            .env("LC_ALL", "C");
        if let Some((key, value)) = &self.setting {
            command
                .env("GIT_CONFIG_COUNT", "1")
                .env("GIT_CONFIG_KEY_0", key)
                .env("GIT_CONFIG_VALUE_0", value);
        }
        if std::env::var_os("GIT_SSH_COMMAND").is_none() && std::env::var_os("GIT_SSH").is_none() {
            command.env("GIT_SSH_COMMAND", "ssh -oBatchMode=yes");
        }
        command
            .args(["-c", "core.quotePath=false"])
            .args(NO_PROGRAMS.iter().flat_map(|setting| ["-c", setting]))
            .args(route.iter().flat_map(|setting| ["-c", setting]))
            .args(with_safe_peer(args))
            .stdin(input)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        // A separate process group: processes that the command starts (ssh, a server's side on this machine) end with
        // it.
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        command
    }
}

/// Settings under which git executes nothing that a repository names.
const NO_PROGRAMS: &[&str] = &[
    "core.alternateRefsCommand=true",
    "core.fsmonitor=false",
    "core.gitProxy=none",
    "core.hooksPath=/dev/null",
    "fetch.uriProtocols=",
    // The guard decides about one server, not about the target of a redirect.
    "http.followRedirects=false",
    "log.showSignature=false",
    "receive.autogc=false",
    "transfer.bundleURI=false",
];

/// Returns the arguments with an option that gives the other side of a transfer the same settings. Git does not pass
/// them on, and the other side is only a program that we start if it is on this machine.
fn with_safe_peer(args: &[&str]) -> Vec<OsString> {
    let mut all: Vec<OsString> = args.iter().map(OsString::from).collect();
    let program = match args.first() {
        Some(&("fetch" | "ls-remote")) => "upload-pack",
        Some(&"push") => "receive-pack",
        _ => return all,
    };
    if address(args).is_some_and(is_on_this_machine) {
        let settings: String = NO_PROGRAMS
            .iter()
            .map(|setting| format!(" -c {setting}"))
            .collect();
        all.insert(1, format!("--{program}=git{settings} {program}").into());
    }
    all
}

/// Returns the address of the repository that a command connects to.
fn address<'a>(args: &[&'a str]) -> Option<&'a str> {
    let talks = matches!(args.first(), Some(&("fetch" | "ls-remote" | "push")));
    let behind = args.iter().skip_while(|arg| **arg != "--").nth(1);
    behind.copied().filter(|_| talks)
}

/// Returns the address of the repository that a command connects to, if it is a server.
fn remote<'a>(args: &[&'a str]) -> Option<&'a str> {
    address(args).filter(|address| !is_on_this_machine(address))
}

/// Tells whether git treats an address as a path: no scheme but `file`, and no colon before the first slash.
fn is_on_this_machine(address: &str) -> bool {
    if let Some((scheme, _)) = address.split_once("://") {
        return scheme.eq_ignore_ascii_case("file");
    }
    let is_host = |colon: usize| !address[..colon].contains('/');
    !address.find(':').is_some_and(is_host)
}

/// The output of a command.
pub(super) struct Attempt {
    pub is_done: bool,
    pub output: String,
    pub complaints: String,
}

/// Kills a command with all processes that it has started.
fn kill(child: &mut Child) {
    #[cfg(unix)]
    if let Ok(group) = i32::try_from(child.id())
        // After it was waited for, its process id may belong to another process.
        && matches!(child.try_wait(), Ok(None))
    {
        use nix::sys::signal::{Signal, killpg};
        use nix::unistd::Pid;
        killpg(Pid::from_raw(group), Signal::SIGKILL).ok();
    }
    child.kill().ok();
}

enum End {
    Exited(bool),
    TimedOut,
    Cancelled,
    Lost(io::Error),
}

/// A thread that kills the command when its time is up or it is cancelled.
struct Watch {
    child: Arc<Mutex<Child>>,
    done: mpsc::Sender<()>,
    thread: JoinHandle<Option<End>>,
}

impl Watch {
    fn start(child: Child, limit: Limit) -> Watch {
        let child = Arc::new(Mutex::new(child));
        let (done, finished) = mpsc::channel();
        let watched = Arc::clone(&child);
        let thread = std::thread::spawn(move || {
            let tick = Duration::from_millis(50);
            let mut left = limit.timeout;
            loop {
                match finished.recv_timeout(tick.min(left)) {
                    Err(RecvTimeoutError::Timeout) => left = left.saturating_sub(tick),
                    Ok(()) | Err(RecvTimeoutError::Disconnected) => return None,
                }
                let end = if limit.cancelled.load(Ordering::Relaxed) {
                    End::Cancelled
                } else if left.is_zero() {
                    End::TimedOut
                } else {
                    continue;
                };
                kill(&mut watched.lock().unwrap_or_else(PoisonError::into_inner));
                return Some(end);
            }
        });
        Watch {
            child,
            done,
            thread,
        }
    }

    /// Waits for the end of the command, which has closed its output or was killed.
    fn finish(self) -> End {
        let status = loop {
            let status = self
                .child
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .try_wait();
            match status {
                // Its output is closed, so it will end soon; the watch may still kill it.
                Ok(None) => std::thread::sleep(Duration::from_millis(1)),
                Ok(Some(status)) => break Ok(status),
                Err(error) => break Err(error),
            }
        };
        self.done.send(()).ok();
        match (self.thread.join().ok().flatten(), status) {
            (Some(end), _) => end,
            (None, Ok(status)) => End::Exited(status.success()),
            (None, Err(error)) => End::Lost(error),
        }
    }
}

/// Makes an error of git's error output; the last `fatal:` or `error:` line is the most useful.
pub(super) fn failed(what: &str, complaints: &str) -> FilesError {
    let lines: Vec<&str> = complaints
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .collect();
    let telling = lines
        .iter()
        .find(|line| line.starts_with("fatal:") || line.starts_with("error:"));
    let cause = telling
        .or(lines.last())
        .copied()
        .unwrap_or("it gave no reason");
    let cause = cause
        .trim_start_matches("fatal: ")
        .trim_start_matches("error: ");
    let is_transient = [
        "Could not resolve host",
        "timed out",
        "Connection re",
        "early EOF",
        "hung up",
        "503",
        "502",
    ]
    .iter()
    .any(|sign| complaints.contains(sign));
    FilesError::Git {
        what: what.into(),
        cause: crate::shown_url::without_password(cause),
        is_transient,
    }
}

fn broken(what: &str, error: &io::Error) -> FilesError {
    FilesError::Git {
        what: what.into(),
        cause: error.to_string(),
        is_transient: true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_other_side_is_restricted_where_it_runs_on_this_machine() {
        let local = ["/srv/a.git", "../a.git", "file:///srv/a.git", "./a:b"];
        let elsewhere = [
            "https://example.com/a.git",
            "git@example.com:a.git",
            "ssh://h/a",
        ];
        for (addresses, expected) in [(&local[..], true), (&elsewhere[..], false)] {
            for address in addresses {
                let args = with_safe_peer(&["push", "--porcelain", "--", address, "a:b"]);
                let option = args[1].to_string_lossy();
                assert_eq!(
                    option.starts_with("--receive-pack=git -c "),
                    expected,
                    "{address}"
                );
            }
        }
        assert_eq!(with_safe_peer(&["rev-parse", "HEAD"]).len(), 2);
    }
}
