//! The built program in a folder of its own.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// How long a call of the program may take, on a machine that has much to do.
const LONGEST: Duration = Duration::from_secs(240);
/// The first pause before a process is asked again whether it ended.
const SHORTEST: Duration = Duration::from_millis(4);

/// A scratch folder in which the program runs.
pub struct Scratch {
    folder: TempDir,
}

/// The result of calling the program.
#[derive(Debug)]
pub struct Ran {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

impl Scratch {
    pub fn new() -> Scratch {
        Scratch {
            folder: tempfile::tempdir().expect("a scratch folder"),
        }
    }

    /// A project whose flows may talk to servers of this machine.
    pub fn with_local_servers() -> Scratch {
        let scratch = Scratch::new();
        scratch.write("flowstone.edn", "{:allow {:net [\"127.0.0.1\"]}}");
        scratch
    }

    /// Makes it in a folder that is there.
    pub fn within(folder: &str) -> Scratch {
        Scratch {
            folder: tempfile::tempdir_in(folder).expect("a scratch folder"),
        }
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Writes a file, with the folders it needs.
    pub fn write(&self, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path().join(name);
        let folder = path.parent().expect("a file is in a folder");
        std::fs::create_dir_all(folder).expect("a folder");
        std::fs::write(&path, text).expect("a file");
        path
    }

    pub fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path().join(name)).expect(name)
    }

    /// Returns the program, to be started here, without the user's own settings.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_flowstone"));
        command
            .args(args)
            .current_dir(self.path())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.path());
        command
    }

    /// Runs the program to its end.
    pub fn run(&self, args: &[&str]) -> Ran {
        self.run_with(args, "")
    }

    /// Runs a command with `--json`, and returns what it prints.
    pub fn json_of(&self, args: &[&str]) -> serde_json::Value {
        self.run(&[args, &["--json"]].concat()).json()
    }

    /// Runs the program to its end with this on its standard input.
    pub fn run_with(&self, args: &[&str], input: &str) -> Ran {
        let mut child = started(self.command(args).stdin(Stdio::piped()));
        let mut stdin = child.stdin.take().expect("a pipe");
        // The program may be gone before it read everything.
        let _ = stdin.write_all(input.as_bytes());
        drop(stdin);
        Ran::of(child)
    }
}

/// Starts a process with its output in pipes.
#[track_caller]
fn started(command: &mut Command) -> Child {
    command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts")
}

/// Reads a pipe to its end, so that the process never waits for us.
fn reader(pipe: Option<impl Read + Send + 'static>) -> Receiver<Vec<u8>> {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = pipe {
            // What was read before an error is shown.
            let _ = pipe.read_to_end(&mut bytes);
        }
        let _ = sender.send(bytes);
    });
    receiver
}

impl Ran {
    /// Waits for a process whose output is piped. One that does not end is killed, and the test fails.
    #[track_caller]
    pub fn of(mut child: Child) -> Ran {
        let out = reader(child.stdout.take());
        let err = reader(child.stderr.take());
        let begun = Instant::now();
        let status = loop {
            match child.try_wait().expect("a process") {
                Some(status) => break Some(status),
                None if begun.elapsed() > LONGEST => break None,
                // Most end within milliseconds.
                None => std::thread::sleep(begun.elapsed().clamp(SHORTEST, SHORTEST * 20) / 4),
            }
        };
        if status.is_none() {
            let _ = child.kill();
        }
        // Something that it started may keep a pipe open.
        let text = |pipe: Receiver<Vec<u8>>| {
            let bytes = pipe.recv_timeout(LONGEST).expect("a pipe that is closed");
            String::from_utf8_lossy(&bytes).into_owned()
        };
        let ran = Ran {
            code: status.and_then(|status| status.code()),
            out: text(out),
            err: text(err),
        };
        assert!(status.is_some(), "still running after {LONGEST:?}: {ran:?}");
        ran
    }

    /// Starts a process, and waits for its end.
    #[track_caller]
    pub fn to_the_end(command: &mut Command) -> Ran {
        Ran::of(started(command.stdin(Stdio::null())))
    }

    /// Returns standard output of a call that must have succeeded.
    #[track_caller]
    pub fn ok(self) -> String {
        assert_eq!(self.code, Some(0), "{}{}", self.out, self.err);
        self.out
    }

    /// Returns the one JSON object on standard output.
    #[track_caller]
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// Returns all that a person sees, with the exit code, for comparing.
    pub fn transcript(&self) -> String {
        let mut text = self.out.clone();
        if !self.err.is_empty() {
            text.push_str("--- stderr\n");
            text.push_str(&self.err);
        }
        if let Some(code) = self.code.filter(|code| *code != 0) {
            text.push_str(&format!("--- exit {code}\n"));
        }
        text
    }
}
