//! The built program in a folder of its own.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

/// A scratch folder in which the program runs.
pub struct Scratch {
    folder: TempDir,
}

/// What a call of the program came to.
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
        let mut child = self
            .command(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let mut stdin = child.stdin.take().expect("a pipe");
        // The program may be gone before it read everything.
        let _ = stdin.write_all(input.as_bytes());
        drop(stdin);
        Ran::of(child.wait_with_output().expect("the program ends"))
    }
}

impl Ran {
    pub fn of(output: Output) -> Ran {
        Ran {
            code: output.status.code(),
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
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
