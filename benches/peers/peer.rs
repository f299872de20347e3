//! Who is measured: Flowstone itself, and the peers that this machine has.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::kernels::Kernel;

/// A way to run a kernel.
pub struct Peer {
    pub name: &'static str,
    /// The words of a command, to be followed by a file.
    pub command: Vec<String>,
    pub kind: Kind,
}

/// What a peer is compared as.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Own,
    /// Clojure on the JVM, warm.
    Jvm,
    Interpreter,
}

/// A peer that may be there: its name, the program, what the table calls it, the ending of its files.
struct Known {
    name: &'static str,
    program: &'static str,
    kind: Kind,
}

const KNOWN: &[Known] = &[
    Known {
        name: "jvm",
        program: "clojure",
        kind: Kind::Jvm,
    },
    Known {
        name: "nbb",
        program: "nbb",
        kind: Kind::Interpreter,
    },
    Known {
        name: "bb",
        program: "bb",
        kind: Kind::Interpreter,
    },
    Known {
        name: "joker",
        program: "joker",
        kind: Kind::Interpreter,
    },
    Known {
        name: "cljrs",
        program: "cljrs",
        kind: Kind::Interpreter,
    },
    Known {
        name: "lua",
        program: "lua5.4",
        kind: Kind::Interpreter,
    },
    Known {
        name: "python",
        program: "python3",
        kind: Kind::Interpreter,
    },
];

/// How long a peer may take for a kernel.
const PATIENCE: Duration = Duration::from_secs(180);

/// How often a kernel is measured after its warm-up, and how long that may take.
const RUNS: usize = 9;
const WARM_UP_NANOS: u64 = 3_000_000_000;

/// Returns Flowstone and the peers that are here, and the names of those that are not.
pub fn all() -> (Vec<Peer>, Vec<String>) {
    let own = std::env::current_exe().unwrap_or_default();
    let mut peers = vec![Peer {
        name: "flowstone",
        command: vec![own.display().to_string(), crate::flowstone::MODE.to_owned()],
        kind: Kind::Own,
    }];
    let mut absent = Vec::new();
    for known in KNOWN {
        let variable = format!("FLOWSTONE_PEER_{}", known.name.to_uppercase());
        let words = std::env::var(&variable).ok().map_or_else(
            || on_path(known.program).then(|| vec![known.program.to_owned()]),
            |command| Some(command.split_whitespace().map(str::to_owned).collect()),
        );
        match words {
            Some(command) if !command.is_empty() => peers.push(Peer {
                name: known.name,
                command,
                kind: known.kind,
            }),
            _ => absent.push(format!("{} ({} or {variable})", known.name, known.program)),
        }
    }
    (peers, absent)
}

fn on_path(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

/// The result of a kernel.
pub struct Outcome {
    pub millis: f64,
    /// Printed; peers have to agree on it.
    pub result: String,
}

impl Peer {
    fn ending(&self) -> &'static str {
        match self.name {
            "lua" => "lua",
            "python" => "py",
            _ => "cljc",
        }
    }

    /// Tells whether it is a Clojure.
    pub fn is_clojure(&self) -> bool {
        self.ending() == "cljc"
    }

    /// Runs a kernel; `None` where it is not written in this peer's language.
    ///
    /// # Errors
    /// Words, when the peer fails.
    pub fn run(&self, kernel: &Kernel, folder: &Path) -> Option<Result<Outcome, String>> {
        let ending = self.ending();
        let mut text = read("measure", ending)?;
        if let Some(needed) = kernel.needs {
            text.push_str(&read(needed, ending)?);
        }
        text.push_str(&read(kernel.name, ending)?);
        text.push_str(&if self.is_clojure() {
            format!("\n(measure kernel {RUNS} {WARM_UP_NANOS})\n")
        } else {
            format!("\nmeasure(kernel, {RUNS}, {WARM_UP_NANOS})\n")
        });
        let file = folder.join(format!("{}.{ending}", kernel.name));
        Some(
            std::fs::write(&file, text)
                .map_err(|error| error.to_string())
                .and_then(|()| {
                    let output = self.output(&file, folder)?;
                    let field = |name: &str| {
                        let line = output.lines().find(|line| line.starts_with(name));
                        line.map(|line| line[name.len()..].trim().to_owned())
                            .ok_or_else(|| format!("no {name} in what it printed"))
                    };
                    let nanoseconds: f64 = field("nanoseconds")?
                        .parse()
                        .map_err(|_| "no time in what it printed".to_owned())?;
                    Ok(Outcome {
                        millis: nanoseconds / 1e6,
                        result: field("result")?,
                    })
                }),
        )
    }

    fn output(&self, file: &Path, folder: &Path) -> Result<String, String> {
        let (program, args) = self.command.split_first().ok_or("no command")?;
        let out = folder.join("out");
        let errors = folder.join("errors");
        let create =
            |path: &PathBuf| std::fs::File::create(path).map_err(|error| error.to_string());
        let mut child = Command::new(program)
            .args(args)
            .arg(file)
            .current_dir(folder)
            .stdin(Stdio::null())
            .stdout(create(&out)?)
            .stderr(create(&errors)?)
            .spawn()
            .map_err(|error| error.to_string())?;
        let begun = Instant::now();
        let status = loop {
            if let Some(status) = child.try_wait().map_err(|error| error.to_string())? {
                break status;
            }
            if begun.elapsed() > PATIENCE {
                let _ = child.kill();
                let _ = child.wait();
                return Err(format!("it took more than {} s", PATIENCE.as_secs()));
            }
            std::thread::sleep(Duration::from_millis(20));
        };
        let read = |path: &PathBuf| std::fs::read_to_string(path).unwrap_or_default();
        if status.success() {
            return Ok(read(&out));
        }
        let text = read(&errors);
        let line = text.lines().find(|line| !line.trim().is_empty());
        Err(line.unwrap_or("it failed").to_owned())
    }
}

/// Returns the text of a file of the kernels.
fn read(name: &str, ending: &str) -> Option<String> {
    std::fs::read_to_string(kernels().join(format!("{name}.{ending}"))).ok()
}

/// Returns the folder of the kernels.
pub fn kernels() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/kernels")
}
