//! `flowstone test --watch`: tests again whenever a file of the tests changes.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::super::App;
use super::super::exit::Exit;
use super::super::interrupt::Interrupt;
use super::super::output;
use super::{Refused, Test, all};

/// Time between two looks at the files.
const PAUSE: Duration = Duration::from_millis(300);
/// Folders whose files are not looked at.
const SKIPPED: &[&str] = &["node_modules", "target"];
/// Maximum number of files that are looked at.
const FILES: usize = 20_000;

/// What a file looked like: when it was written, and its size.
type Seen = BTreeMap<PathBuf, (SystemTime, u64)>;

/// Tests until Ctrl-C.
pub fn watch(args: &Test, app: &'static dyn App) -> Result<Exit, Refused> {
    let interrupt = Interrupt::listen();
    let mut seen = look(&args.flows);
    loop {
        if let Err((report, _)) = all(args, app) {
            output::report(&report);
        }
        output::note("watching for changes; Ctrl-C ends it");
        loop {
            if interrupt.is_set() {
                return Ok(Exit::Completed);
            }
            std::thread::sleep(PAUSE);
            let now = look(&args.flows);
            if now != seen {
                let changed = changed(&seen, &now);
                seen = now;
                output::note(&format!("\nchanged: {}", changed.join(", ")));
                break;
            }
        }
    }
}

fn changed(before: &Seen, now: &Seen) -> Vec<String> {
    let paths: BTreeSet<&PathBuf> = before.keys().chain(now.keys()).collect();
    let differ = paths
        .into_iter()
        .filter(|path| before.get(*path) != now.get(*path));
    differ.map(|path| path.display().to_string()).collect()
}

/// Looks at the files in the folders that were named, and in those of the files that were named: what a flow uses, such as its
/// functions and templates, is beside it.
fn look(paths: &[PathBuf]) -> Seen {
    let mut seen = Seen::new();
    for path in paths {
        let folder = match path.is_dir() {
            true => Some(path.as_path()),
            false => path.parent(),
        };
        match folder {
            Some(folder) if folder == Path::new("") => add(Path::new("."), &mut seen),
            Some(folder) => add(folder, &mut seen),
            None => {}
        }
    }
    seen
}

fn add(folder: &Path, seen: &mut Seen) {
    let Ok(entries) = fs::read_dir(folder) else {
        return;
    };
    for entry in entries.flatten() {
        let (path, name) = (entry.path(), entry.file_name());
        let name = name.to_string_lossy();
        let Ok(about) = entry.metadata() else {
            continue;
        };
        if seen.len() >= FILES || name.starts_with('.') {
            continue;
        }
        if about.is_dir() {
            if !SKIPPED.contains(&&*name) {
                add(&path, seen);
            }
        } else if about.is_file() {
            let written = about.modified().unwrap_or(SystemTime::UNIX_EPOCH);
            seen.insert(path, (written, about.len()));
        }
    }
}
