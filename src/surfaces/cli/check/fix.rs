//! `flowstone check --fix`: makes the changes that are certain.
//!
//! Changes are made one by one, in memory, and each is followed by a check: a change that leads to more errors is undone. The
//! files are written last, each replaced as a whole, and only if nobody changed them in the meantime.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, Write as _};
use std::ops::Range;
use std::path::{Path, PathBuf};

use flowstone_engine::disk::{Edited, folder_of};
use flowstone_lang::diagnostic::{Change, Excerpt};
use flowstone_lang::value::Exception;
use serde_json::{Value as Json, json};
use similar::{Algorithm, DiffOp};

use super::Checking;
use crate::cli::output;
use crate::cli::report::{Report, Severity};

/// Maximum number of changes of one file: more than that would be a mistake in Flowstone.
const MOST_CHANGES: usize = 1000;
/// The codes of errors of the reader.
const READER_CODES: Range<&str> = Exception::READER_CODES;
/// Lines around each change in a patch.
const AROUND: usize = 3;

/// The changes of all files.
#[derive(Default)]
pub(super) struct Fixes {
    made: Vec<Made>,
    /// The texts after the changes, by path.
    pub edited: Edited,
    /// The texts before them.
    before: BTreeMap<PathBuf, String>,
    /// Reports about files that could not be written.
    pub failed: Vec<Report>,
    is_dry: bool,
}

/// A change that was made.
struct Made {
    code: String,
    change: Change<Excerpt>,
}

/// Makes the certain changes of all files. Writes nothing with `is_dry`.
pub(super) fn all(checking: &Checking<'_>, files: &[PathBuf], is_dry: bool) -> Fixes {
    let mut fixes = Fixes {
        is_dry,
        ..Fixes::default()
    };
    for file in files {
        fixes.file(checking, file);
    }
    if !is_dry {
        fixes.write();
    }
    fixes
}

impl Fixes {
    /// Makes the changes of one flow file and of the files that it includes.
    fn file(&mut self, checking: &Checking<'_>, file: &Path) {
        let mut refused = BTreeSet::new();
        let mut now = checking.alone(file, &self.edited);
        for _ in 0..MOST_CHANGES {
            let Some((code, change)) = next_change(&now.1, &refused) else {
                return;
            };
            let after = self.with(file, &change);
            let checked = after.as_ref().map(|texts| checking.alone(file, texts));
            match (after, checked) {
                (Some(texts), Some(checked)) if is_better(&now, &checked) => {
                    self.edited = texts;
                    self.made.push(Made { code, change });
                    now = checked;
                }
                _ => {
                    refused.insert(key_of(&change));
                }
            }
        }
    }

    /// Returns the texts after a change; `None` if a text is not as the change expects.
    fn with(&mut self, file: &Path, change: &Change<Excerpt>) -> Option<Edited> {
        let mut texts = self.edited.clone();
        let names: BTreeSet<&str> = change.edits.iter().map(|it| &*it.place.file).collect();
        for name in names {
            let path = match Path::new(name) == file {
                true => file.to_path_buf(),
                false => folder_of(file).join(name),
            };
            let text = match texts.get(&path) {
                Some(text) => text.clone(),
                None => {
                    let text = is_plain_file(&path).then(|| fs::read_to_string(&path).ok())??;
                    self.before.insert(path.clone(), text.clone());
                    text
                }
            };
            texts.insert(path, change.apply(name, &text)?);
        }
        Some(texts)
    }

    /// Writes the changed files.
    fn write(&mut self) {
        for (path, text) in &self.edited {
            let Some(before) = self.before.get(path).filter(|before| *before != text) else {
                continue;
            };
            if let Err(report) = replace(path, before, text) {
                self.failed.push(report);
            }
        }
    }

    /// Returns the changes as a patch.
    fn patch(&self) -> String {
        let mut patch = String::new();
        for (path, text) in &self.edited {
            let before = self.before.get(path).map_or("", String::as_str);
            patch.push_str(&unified(&path.display().to_string(), before, text));
        }
        patch
    }

    /// Prints what was changed.
    pub(super) fn tell(&self) {
        if self.is_dry && !self.made.is_empty() {
            output::data(&self.patch());
        }
        for Made { code, change } in &self.made {
            let Some(first) = change.edits.first() else {
                continue;
            };
            let place = &first.place;
            let (file, line, column) = (&place.file, place.line, place.column);
            output::note(&format!(
                "{file}:{line}:{column}: {} ({code})",
                change.title
            ));
        }
        output::note(&match (self.made.len(), self.is_dry) {
            (0, _) => "no change is certain".to_owned(),
            (1, false) => "1 change made".to_owned(),
            (1, true) => "1 change to make; nothing was written".to_owned(),
            (count, false) => format!("{count} changes made"),
            (count, true) => format!("{count} changes to make; nothing was written"),
        });
    }

    pub(super) fn to_json(&self) -> Json {
        let made = self.made.iter().map(|Made { code, change }| {
            let mut object = crate::json::change_json(change);
            object["code"] = json!(code);
            object
        });
        let is_written = !self.is_dry && self.failed.is_empty();
        json!({
            "changes": made.collect::<Vec<_>>(),
            "patch": self.patch(),
            "written": is_written && !self.made.is_empty(),
        })
    }
}

/// Returns the difference of two texts of a file as a patch.
fn unified(name: &str, before: &str, after: &str) -> String {
    let old: Vec<&str> = before.split_inclusive('\n').collect();
    let new: Vec<&str> = after.split_inclusive('\n').collect();
    let name = name.strip_prefix("./").unwrap_or(name);
    let mut patch = format!("--- a/{name}\n+++ b/{name}\n");
    let ops = similar::capture_diff_slices(Algorithm::Myers, &old, &new);
    for group in similar::group_diff_ops(ops, AROUND) {
        let (Some(first), Some(last)) = (group.first(), group.last()) else {
            continue;
        };
        let range = |start: Range<usize>, end: Range<usize>| match end.end - start.start {
            0 => format!("{},0", start.start),
            count => format!("{},{count}", start.start + 1),
        };
        let (from, to) = (
            range(first.old_range(), last.old_range()),
            range(first.new_range(), last.new_range()),
        );
        patch.push_str(&format!("@@ -{from} +{to} @@\n"));
        for op in &group {
            if let DiffOp::Equal { .. } = op {
                lines(&mut patch, ' ', &old[op.old_range()]);
            } else {
                lines(&mut patch, '-', &old[op.old_range()]);
                lines(&mut patch, '+', &new[op.new_range()]);
            }
        }
    }
    patch
}

fn lines(patch: &mut String, mark: char, lines: &[&str]) {
    for line in lines {
        patch.push(mark);
        patch.push_str(line);
        if !line.ends_with('\n') {
            patch.push_str("\n\\ No newline at end of file\n");
        }
    }
}

/// The file, the line, the column, the old and the new text of each edit.
type Key = Vec<(String, u32, u32, String, String)>;

fn key_of(change: &Change<Excerpt>) -> Key {
    let edits = change.edits.iter();
    edits
        .map(|edit| {
            let place = &edit.place;
            let (old, new) = (edit.old.clone(), edit.new.clone());
            (place.file.clone(), place.line, place.column, old, new)
        })
        .collect()
}

/// Returns the first certain change that was not refused, with the code of its finding.
fn next_change(reports: &[Report], refused: &BTreeSet<Key>) -> Option<(String, Change<Excerpt>)> {
    reports.iter().find_map(|report| {
        let mut changes = report.changes.iter();
        let change =
            changes.find(|change| change.is_certain && !refused.contains(&key_of(change)))?;
        Some((report.code.clone(), change.clone()))
    })
}

/// Tells whether a file has not more errors than before. A file that could not be read before may have more: they were
/// hidden.
fn is_better(before: &(bool, Vec<Report>), after: &(bool, Vec<Report>)) -> bool {
    let errors = |reports: &[Report]| {
        let errors = reports.iter().filter(|it| it.severity == Severity::Error);
        errors.count()
    };
    let is_readable =
        |reports: &[Report]| !reports.iter().any(|it| READER_CODES.contains(&&*it.code));
    match (before.0, after.0) {
        (false, true) => true,
        (true, false) => false,
        _ if is_readable(&after.1) != is_readable(&before.1) => is_readable(&after.1),
        _ => errors(&after.1) <= errors(&before.1),
    }
}

/// Tells whether a path leads to a regular file.
fn is_plain_file(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|facts| facts.is_file())
}

/// Replaces a file that still has the text that was checked. A crash leaves either the old file or the new one.
fn replace(path: &Path, before: &str, text: &str) -> Result<(), Report> {
    let name = path.display();
    let unwritable = |error: io::Error| {
        Report::error("E1490", format!("{name} was not changed: {error}"))
            .hint("`check --fix --dry-run` prints the changes as a patch")
    };
    // A link stays a link.
    let real = path.canonicalize().map_err(unwritable)?;
    if fs::read_to_string(&real).map_err(unwritable)? != before {
        let message = format!("{name} was not changed: another program changed it meanwhile");
        return Err(Report::error("E1490", message).hint("run `check --fix` again"));
    }
    let permissions = fs::metadata(&real).map_err(unwritable)?.permissions();
    let mut beside = tempfile::NamedTempFile::new_in(folder_of(&real)).map_err(unwritable)?;
    let file = beside.as_file_mut();
    file.write_all(text.as_bytes())
        .and_then(|()| file.set_permissions(permissions))
        .and_then(|()| file.sync_all())
        .map_err(unwritable)?;
    beside
        .persist(&real)
        .map(|_| ())
        .map_err(|error| unwritable(error.error))
}
