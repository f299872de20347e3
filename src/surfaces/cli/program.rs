//! The host of a plain program: standard streams, a clock, randomness; files only if allowed.

use std::cell::Cell;
use std::collections::hash_map::RandomState;
use std::fs;
use std::hash::{BuildHasher, Hasher};
use std::io::{self, BufRead, IsTerminal, Write};
use std::path::PathBuf;
use std::rc::Rc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use flowstone_engine::Limits;
use flowstone_lang::value::heap::HeapBudget;
use flowstone_lang::value::meter::Watch;
use flowstone_lang::value::{Result, Signal, Stop, Value};
use flowstone_lang::visible::visible;
use flowstone_lang::vm::{Host, Request, Stream};

use super::interrupt::Interrupt;

/// The resources and permissions of a program.
#[derive(Debug, Clone, Default)]
pub struct Grants {
    /// Whether it may read and write files.
    pub files: bool,
    /// The folders in which `require` looks.
    pub paths: Vec<PathBuf>,
    /// Maximum number of instructions.
    pub fuel: Option<u64>,
    /// Maximum duration.
    pub deadline: Option<Duration>,
    /// Maximum memory for its values, in bytes; 512 MB if not given.
    pub memory: Option<usize>,
}

/// Instructions between two checks of the deadline and Ctrl-C.
const QUANTUM: u32 = 100_000;
const SLICE: Duration = Duration::from_millis(20);
/// Exit status of a process that the operating system ends for writing to a closed pipe.
const BROKEN_PIPE: i32 = 141;

/// The remaining fuel, shared by the machine and native functions.
struct Budget {
    /// `None` if instructions are not limited.
    fuel_left: Option<Cell<u64>>,
    deadline: Option<Instant>,
    interrupt: Interrupt,
    heap: HeapBudget,
}

impl Budget {
    fn check(&self) -> Result<(), Stop> {
        self.check_interrupt()?;
        self.heap.check()
    }
}

impl Watch for Budget {
    fn check_interrupt(&self) -> Result<(), Stop> {
        if self.interrupt.is_set() {
            return Err(Stop::Interrupted("interrupted by Ctrl-C".to_owned()));
        }
        match self.deadline {
            Some(deadline) if Instant::now() >= deadline => Err(Stop::Deadline),
            _ => Ok(()),
        }
    }

    fn spend(&self, units: u64) -> Result<(), Stop> {
        self.check()?;
        let Some(fuel) = &self.fuel_left else {
            return Ok(());
        };
        let left = fuel.get().checked_sub(units);
        fuel.set(left.unwrap_or(0));
        left.map(|_| ()).ok_or(Stop::OutOfFuel)
    }
}

/// The host of a program.
pub struct ProgramHost {
    grants: Grants,
    budget: Rc<Budget>,
    started: Instant,
    out: Out,
    random: u64,
}

impl ProgramHost {
    pub fn new(grants: Grants, interrupt: Interrupt) -> ProgramHost {
        let started = Instant::now();
        let heap = HeapBudget::new(grants.memory.unwrap_or(Limits::default().memory));
        heap.enter();
        ProgramHost {
            budget: Rc::new(Budget {
                fuel_left: grants.fuel.map(Cell::new),
                deadline: grants.deadline.map(|deadline| started + deadline),
                interrupt,
                heap,
            }),
            grants,
            started,
            out: Out::new(),
            random: RandomState::new().build_hasher().finish(),
        }
    }

    /// For a prompt: each line is written before the next is read, also to a pipe.
    pub fn interactive(grants: Grants, interrupt: Interrupt) -> ProgramHost {
        ProgramHost {
            out: Out::interactive(),
            ..ProgramHost::new(grants, interrupt)
        }
    }

    fn allow_files(&self) -> Result<(), String> {
        if self.grants.files {
            return Ok(());
        }
        Err("files are not allowed here; start with --allow-files to allow them".to_owned())
    }
}

impl Host for ProgramHost {
    fn refill(&mut self) -> Result<u32, Stop> {
        self.budget.check()?;
        let Some(fuel) = &self.budget.fuel_left else {
            return Ok(QUANTUM);
        };
        let left = fuel.get();
        if left == 0 {
            return Err(Stop::OutOfFuel);
        }
        let quantum = u32::try_from(left).map_or(QUANTUM, |left| left.min(QUANTUM));
        fuel.set(left - u64::from(quantum));
        Ok(quantum)
    }

    fn watch(&self) -> Option<Rc<dyn Watch>> {
        Some(self.budget.clone())
    }

    fn room_for(&mut self, bytes: usize) -> Result<(), Stop> {
        self.budget.heap.room_for(bytes)
    }

    fn write(&mut self, stream: Stream, text: &str) -> Result<(), String> {
        let written = match stream {
            Stream::Out => self.out.write(text),
            Stream::Error => self.out.flush().and_then(|()| {
                let text = match self.out {
                    Out::Shown(_) => visible(text),
                    Out::Lines(_) | Out::Blocks(_) => text.into(),
                };
                io::stderr().write_all(text.as_bytes())
            }),
        };
        written.map_err(gone)
    }

    fn read_line(&mut self) -> Result<Option<String>, String> {
        self.out.flush().map_err(gone)?;
        let mut line = String::new();
        let count = io::stdin()
            .lock()
            .read_line(&mut line)
            .map_err(|error| format!("cannot read standard input: {error}"))?;
        if count == 0 {
            return Ok(None);
        }
        let end = line.trim_end_matches('\n').trim_end_matches('\r').len();
        line.truncate(end);
        Ok(Some(line))
    }

    fn now_millis(&mut self) -> Result<i64> {
        let since = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        Ok(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
    }

    fn now_nanos(&mut self) -> Result<i64> {
        Ok(i64::try_from(self.started.elapsed().as_nanos()).unwrap_or(i64::MAX))
    }

    fn random(&mut self) -> Result<u64> {
        // SplitMix64: enough for programs, and it needs no crate.
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.random;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        Ok(bits ^ (bits >> 31))
    }

    fn read_file(&mut self, path: &str) -> Result<String, String> {
        self.allow_files()?;
        fs::read_to_string(path).map_err(|error| format!("cannot read {path}: {error}"))
    }

    fn write_file(&mut self, path: &str, text: &str, append: bool) -> Result<(), String> {
        self.allow_files()?;
        fs::OpenOptions::new()
            .create(true)
            .write(true)
            .append(append)
            .truncate(!append)
            .open(path)
            .and_then(|mut file| file.write_all(text.as_bytes()))
            .map_err(|error| format!("cannot write {path}: {error}"))
    }

    fn missing_source(&self) -> String {
        "is the folder on the path, and the file named as the namespace, with _ for -?".to_owned()
    }

    fn find_source(&mut self, namespace: &str) -> Option<(String, String)> {
        let file = namespace.replace('.', "/").replace('-', "_");
        self.grants
            .paths
            .iter()
            .flat_map(|folder| {
                ["clj", "cljc"].map(|ending| folder.join(&file).with_extension(ending))
            })
            .find_map(|path| {
                let text = fs::read_to_string(&path).ok()?;
                Some((path.display().to_string(), text))
            })
    }

    fn suspend(&mut self, _request: Request) -> Result<Value> {
        let why = "a program has no steps: use `flowstone run` for a flow, or `flowstone repl`";
        Err(Stop::Interrupted(why.to_owned()).into())
    }

    fn exit(&mut self, status: i32) -> Signal {
        Stop::Exit(status).into()
    }

    fn list_folder(&mut self, path: &str) -> Result<Option<Vec<String>>, String> {
        self.allow_files()?;
        let shown = |error: io::Error| format!("cannot read {path}: {error}");
        if !fs::metadata(path).map_err(shown)?.is_dir() {
            return Ok(None);
        }
        let mut paths = Vec::new();
        for entry in fs::read_dir(path).map_err(shown)? {
            paths.push(entry.map_err(shown)?.path().display().to_string());
        }
        paths.sort();
        Ok(Some(paths))
    }

    fn sleep(&mut self, millis: u64) -> Result<()> {
        self.out
            .flush()
            .map_err(|error| Stop::Interrupted(gone(error)))?;
        let until = Instant::now() + Duration::from_millis(millis);
        loop {
            self.budget.check()?;
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            std::thread::sleep(left.min(SLICE));
        }
    }
}

/// Standard output: line by line on a terminal, in blocks to a pipe.
enum Out {
    Lines(io::Stdout),
    /// The terminal of a prompt, on which results of steps may be printed.
    Shown(io::Stdout),
    Blocks(io::BufWriter<io::Stdout>),
}

impl Out {
    fn new() -> Out {
        let stdout = io::stdout();
        if stdout.is_terminal() {
            Out::Lines(stdout)
        } else {
            Out::Blocks(io::BufWriter::with_capacity(64 * 1024, stdout))
        }
    }

    fn interactive() -> Out {
        let stdout = io::stdout();
        match stdout.is_terminal() {
            true => Out::Shown(stdout),
            false => Out::Lines(stdout),
        }
    }

    fn write(&mut self, text: &str) -> io::Result<()> {
        match self {
            Out::Lines(stdout) => stdout.write_all(text.as_bytes()),
            Out::Shown(stdout) => stdout.write_all(visible(text).as_bytes()),
            Out::Blocks(stdout) => stdout.write_all(text.as_bytes()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Out::Lines(stdout) | Out::Shown(stdout) => stdout.flush(),
            Out::Blocks(stdout) => stdout.flush(),
        }
    }
}

impl Drop for Out {
    fn drop(&mut self) {
        if let Err(error) = self.flush() {
            gone(error);
        }
    }
}

/// Exits quietly if the reader has closed the pipe, as `head` expects. Other errors are returned as messages.
fn gone(error: io::Error) -> String {
    if error.kind() == io::ErrorKind::BrokenPipe {
        std::process::exit(BROKEN_PIPE);
    }
    format!("cannot write: {error}")
}
