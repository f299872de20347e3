//! The runs that a process executes, recorded in the file by which the process is known.
//!
//! The file is written without a sync: its contents survive the end of the process. After a reboot of the system the
//! file is ignored, because the run did not cause that end.

use std::fs::{self, File};
use std::io::{Seek as _, SeekFrom, Write as _};
use std::path::Path;

use flowstone_model::ids::RunId;

/// Bytes of a line; longer ids are not recorded.
const LINE: usize = 64;
/// The file that names the boot of the system, if it exists.
const BOOT: &str = "/proc/sys/kernel/random/boot_id";

/// The marks of this process.
pub(super) struct Marks {
    file: File,
    /// The run of each line after the first one.
    lines: Vec<Option<RunId>>,
}

impl Marks {
    pub(super) fn new(file: File) -> Marks {
        Marks {
            file,
            lines: Vec::new(),
        }
    }

    /// Adds or removes a run. If the file cannot be written, crashes of the run are not counted.
    pub(super) fn mark(&mut self, run: &RunId, is_executing: bool) {
        let line = match is_executing {
            true => self.lines.iter().position(Option::is_none),
            false => self
                .lines
                .iter()
                .position(|marked| marked.as_ref() == Some(run)),
        };
        let line = match (line, is_executing) {
            (Some(line), _) => line,
            (None, false) => return,
            (None, true) => {
                if self.lines.is_empty() {
                    self.write(0, &boot());
                }
                self.lines.push(None);
                self.lines.len() - 1
            }
        };
        self.lines[line] = is_executing.then(|| run.clone());
        let text = if is_executing { run.as_str() } else { "" };
        self.write(line + 1, text);
    }

    fn write(&mut self, line: usize, text: &str) {
        if text.len() >= LINE {
            return;
        }
        let padded = format!("{text:<width$}\n", width = LINE - 1);
        let place = SeekFrom::Start((line * LINE) as u64);
        let _ = self
            .file
            .seek(place)
            .and_then(|_| self.file.write_all(padded.as_bytes()));
    }
}

/// Returns the runs that a process executed when it ended.
pub(super) fn read(path: &Path) -> Vec<RunId> {
    let text = fs::read_to_string(path).unwrap_or_default();
    let mut lines = text.lines().map(str::trim);
    if lines.next() != Some(boot().as_str()) {
        return Vec::new();
    }
    let runs = lines.filter(|line| !line.is_empty());
    runs.map(|run| RunId::from_text(run.to_owned())).collect()
}

fn boot() -> String {
    let id = fs::read_to_string(BOOT).unwrap_or_default();
    format!("boot {}", id.trim())
}
