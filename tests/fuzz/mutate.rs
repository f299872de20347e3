//! Replays the corpus of fuzzing targets, and changes of it that a seeded generator makes: on any toolchain, without a
//! fuzzer. `docs/testing.md` says how long runs are started.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a long run says what it does"
)]

use std::fs;
use std::panic::{self, AssertUnwindSafe};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// The longest input that is made.
const LONGEST: usize = 8 << 10;
/// Inputs of each target where nothing is set: enough to see that the generator works.
const FEW: u64 = 20;
/// How long one input may take. Debug builds on a busy machine are slow.
const PATIENCE: Duration = Duration::from_secs(60);

/// What a target does with an input.
pub type Target = fn(&[u8]);

/// Files beside the corpus that mutations begin with: a target, a folder of the repository, and how their names end.
pub type More = (&'static str, &'static str, &'static str);

/// Hands every file of the corpus to its target.
pub fn replay(targets: &[(&str, Target)], more: &[More]) {
    for (name, target) in targets {
        let inputs = corpus(name, more);
        assert!(inputs.len() > 1, "{name} has no corpus");
        for (path, input) in inputs {
            if panic::catch_unwind(|| target(&input)).is_err() {
                panic!("{name} fails with {}", path.display());
            }
        }
    }
}

/// Hands changed inputs to each target in turn, for as long as `FLOWSTONE_MUTATE_SECONDS` says or as many of each target
/// as `FLOWSTONE_MUTATE_COUNT` says. A failing input is printed, and saved in the folder for temporary files.
pub fn mutate(targets: &[(&str, Target)], more: &[More]) {
    let seconds = number("FLOWSTONE_MUTATE_SECONDS").map(Duration::from_secs);
    let count = number("FLOWSTONE_MUTATE_COUNT").unwrap_or(match seconds {
        Some(_) => u64::MAX,
        None => FEW,
    });
    let seed = number("FLOWSTONE_MUTATE_SEED").unwrap_or(1);
    let only = std::env::var("FLOWSTONE_MUTATE_TARGET").ok();
    let targets: Vec<&(&str, Target)> = targets
        .iter()
        .filter(|(name, _)| only.as_deref().is_none_or(|only| only == *name))
        .collect();
    let share = seconds.map(|all| all / u32::try_from(targets.len().max(1)).unwrap_or(1));
    let saved = std::env::temp_dir().join(format!("flowstone-mutation-{}", std::process::id()));
    let tries = watch(&saved);
    for (name, target) in targets {
        let corpus: Vec<Vec<u8>> = corpus(name, more).into_iter().map(|it| it.1).collect();
        let mut random = Random(seed ^ hash(name));
        let (start, mut tried) = (Instant::now(), 0);
        while tried < count && share.is_none_or(|share| start.elapsed() < share) {
            let input = random.mutation(&corpus);
            fs::write(&saved, &input).expect("the input can be saved");
            tries.fetch_add(1, Ordering::Relaxed);
            if panic::catch_unwind(AssertUnwindSafe(|| target(&input))).is_err() {
                panic!(
                    "{name} fails with input {tried} of seed {seed}, saved as {}:\n{}",
                    saved.display(),
                    String::from_utf8_lossy(&input)
                );
            }
            tried += 1;
        }
        println!(
            "{name}: {tried} mutations with seed {seed}, {:?}",
            start.elapsed()
        );
    }
    tries.store(u64::MAX, Ordering::Relaxed);
    let _ = fs::remove_file(&saved);
}

/// Ends the process when one input takes too long; the input is in the file.
fn watch(saved: &Path) -> &'static AtomicU64 {
    static TRIES: AtomicU64 = AtomicU64::new(0);
    let saved = saved.to_owned();
    TRIES.store(0, Ordering::Relaxed);
    thread::spawn(move || {
        let (mut last, mut since) = (0, Instant::now());
        loop {
            thread::sleep(Duration::from_millis(500));
            let now = TRIES.load(Ordering::Relaxed);
            if now == u64::MAX {
                return;
            }
            if now != last {
                (last, since) = (now, Instant::now());
            } else if since.elapsed() > PATIENCE {
                eprintln!("an input takes too long: {}", saved.display());
                std::process::abort();
            }
        }
    });
    &TRIES
}

fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(
        text.parse()
            .unwrap_or_else(|_| panic!("{name} is not a number: {text}")),
    )
}

/// Returns the inputs of a target, in the order of their names.
fn corpus(name: &str, more: &[More]) -> Vec<(PathBuf, Vec<u8>)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut folders = vec![(root.join("tests/fuzz/corpus").join(name), "")];
    let others = more.iter().filter(|(target, ..)| *target == name);
    folders.extend(others.map(|(_, folder, end)| (root.join(folder), *end)));
    let mut found = Vec::new();
    for (folder, end) in folders {
        let entries =
            fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
        for entry in entries {
            let path = entry.expect("the folder is readable").path();
            if path.is_file() && path.to_string_lossy().ends_with(end) {
                found.push((
                    path.clone(),
                    fs::read(&path).expect("the input is readable"),
                ));
            }
        }
    }
    found.sort();
    found
}

fn hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// SplitMix64: small, and the same everywhere.
struct Random(u64);

/// Pieces that formats give a meaning to.
const PIECES: &[&str] = &[
    "\0",
    "\n",
    "\r\n",
    "\u{feff}",
    "\u{202e}",
    "\u{1b}[8m",
    "é",
    "🦀",
    "\\",
    "\"",
    "\\u",
    "\\ud800",
    "\\udc00\\ud83d",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    "#{",
    "#",
    "#_",
    "'",
    "`",
    "~@",
    "^",
    "@",
    ":",
    "::",
    ";",
    ",",
    "nil",
    "true",
    "##NaN",
    "##Inf",
    "0",
    "-1",
    "1e400",
    "1e-400",
    "9223372036854775808",
    "-9223372036854775808",
    "18446744073709551616",
    "4294967295",
    "1N",
    "1M",
    "1/0",
    "0x7f000001",
    "null",
    "[]",
    "{}",
    "\"\"",
    "[[[[[[[[",
    "{\"a\":{\"a\":{\"a\":",
    "data: ",
    "event: ",
    "id: ",
    "retry: ",
    ": ",
    "[DONE]",
    "{{",
    "}}",
    "{{#each this}}",
    "{{/each}}",
    "{{> x}}",
    "{{&",
    "--- a/x\n+++ b/x\n@@ -0,0 +1 @@\n",
    "@@ -1,3 +1,4 @@\n",
    "\\ No newline at end of file\n",
    "GIT binary patch\n",
    "/dev/null",
    "../",
    "..%2f",
    "%00",
    "%",
    "&amp;",
    "&#0;",
    "<!DOCTYPE",
    "<![CDATA[",
    "&a",
    "*a",
    "<<: *a",
    "!!binary ",
    "@",
    "//",
    "[::ffff:",
    "]:",
    "*/0",
    "0-59/7",
    "L",
    "#5",
    "MON-",
    "http://",
    "#inst \"",
    "#uuid \"",
    "#flowstone/bytes \"",
];

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number below `end`, or 0.
    fn below(&mut self, end: usize) -> usize {
        (self.next() % end.max(1) as u64) as usize
    }

    fn range(&mut self, length: usize) -> std::ops::Range<usize> {
        let start = self.below(length + 1);
        start..start + self.below((length - start).min(64) + 1)
    }

    fn mutation(&mut self, corpus: &[Vec<u8>]) -> Vec<u8> {
        let mut input = corpus[self.below(corpus.len())].clone();
        for _ in 0..=self.below(6) {
            self.change(&mut input, corpus);
            input.truncate(LONGEST.max(corpus[0].len() * 2).min(1 << 16));
        }
        input
    }

    fn change(&mut self, input: &mut Vec<u8>, corpus: &[Vec<u8>]) {
        let at = self.below(input.len() + 1);
        match self.below(11) {
            0 if at < input.len() => input[at] ^= 1 << self.below(8),
            1 if at < input.len() => input[at] = self.next() as u8,
            2 => drop(input.drain(self.range(input.len()))),
            3 => {
                let copied = input[self.range(input.len())].to_vec();
                input.splice(at..at, copied);
            }
            4 => {
                let repeated = input[self.range(input.len())].repeat(self.below(40));
                input.splice(at..at, repeated);
            }
            5 => input.truncate(at),
            6 => {
                let other = &corpus[self.below(corpus.len())];
                let from = self.below(other.len() + 1);
                input.truncate(at);
                input.extend_from_slice(&other[from..]);
            }
            7 => {
                let other = &corpus[self.below(corpus.len())];
                let piece = other[self.range(other.len())].to_vec();
                input.splice(at..at, piece);
            }
            8 => self.change_number(input),
            _ => {
                let piece = PIECES[self.below(PIECES.len())];
                let replaced = self.below(2) * self.below((input.len() - at).min(4) + 1);
                input.splice(at..at + replaced, piece.bytes());
            }
        }
    }

    /// Replaces a number in the text by another.
    fn change_number(&mut self, input: &mut Vec<u8>) {
        let starts: Vec<usize> = (0..input.len())
            .filter(|at| {
                input[*at].is_ascii_digit() && (*at == 0 || !input[at - 1].is_ascii_digit())
            })
            .collect();
        let Some(start) = starts.get(self.below(starts.len())).copied() else {
            return;
        };
        let digits = input[start..].iter().take_while(|it| it.is_ascii_digit());
        let end = start + digits.count();
        let number = match self.below(6) {
            0 => "0".to_owned(),
            1 => "99999999999".to_owned(),
            2 => (self.next() as i64).to_string(),
            3 => "-1".to_owned(),
            4 => "1e99".to_owned(),
            _ => self.below(300).to_string(),
        };
        input.splice(start..end, number.bytes());
    }
}
