//! `flowstone fmt`: brings sources into the usual layout. Files are replaced whole or not at all.

use std::borrow::Cow;
use std::fs;
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use flowstone_lang::syntax::layout;
use flowstone_lang::syntax::{Flaw, FlawKind};
use flowstone_lang::value::{Sources, Span};
use serde_json::{Value as Json, json};

use super::args::Fmt;
use super::check::SKIPPED;
use super::exit::Exit;
use super::output;
use super::report::{Report, Shown, unreadable};

/// The code of a text that is not balanced.
const UNBALANCED: &str = "E1570";
/// The code of a file that cannot be replaced.
const NOT_REPLACED: &str = "E1571";
/// File extensions of sources.
const ENDINGS: &[&str] = &["clj", "cljc", "edn"];
/// The name of standard input in messages.
const STDIN: &str = "<stdin>";

/// Performs the command.
pub fn run(args: &Fmt) -> Exit {
    let mut done = Done::default();
    if args.stdin {
        done.standard_input(args);
    } else {
        let mut files = Vec::new();
        for path in &args.paths {
            if let Err(error) = gather(path, &mut files) {
                done.reports
                    .push(unreadable(&path.display().to_string(), &error));
            }
        }
        for file in &files {
            done.file(file, args.check);
        }
    }
    done.show(args);
    match done.reports.is_empty() && (!args.check || done.changed.is_empty()) {
        true => Exit::Completed,
        false => Exit::Failed,
    }
}

/// What the command did.
#[derive(Default)]
struct Done {
    /// The number of files that were read and could be formatted.
    files: usize,
    /// The files that changed, or would change.
    changed: Vec<String>,
    reports: Vec<Report>,
    /// The formatted standard input.
    text: Option<String>,
}

impl Done {
    fn standard_input(&mut self, args: &Fmt) {
        let mut text = String::new();
        if let Err(error) = io::stdin().read_to_string(&mut text) {
            self.reports.push(unreadable(STDIN, &error));
            return;
        }
        match formatted(STDIN, &text) {
            Err(report) => self.reports.push(report),
            Ok(laid_out) => {
                self.files = 1;
                if laid_out != text {
                    self.changed.push(STDIN.to_owned());
                }
                self.text = Some(laid_out.into_owned()).filter(|_| !args.check);
            }
        }
    }

    fn file(&mut self, path: &Path, only_check: bool) {
        let name = path.display().to_string();
        let text = match fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) => {
                self.reports.push(unreadable(&name, &error));
                return;
            }
        };
        let laid_out = match formatted(&name, &text) {
            Ok(laid_out) => laid_out,
            Err(report) => {
                self.reports.push(report);
                return;
            }
        };
        self.files += 1;
        if laid_out == text {
            return;
        }
        if !only_check && let Err(error) = replace(path, &laid_out) {
            let message = format!("cannot replace {name}: {error}");
            self.reports
                .push(Report::error(NOT_REPLACED, message).hint("the file is as it was"));
            return;
        }
        self.changed.push(name);
    }

    fn show(&self, args: &Fmt) {
        if args.json {
            let findings: Vec<Json> = self.reports.iter().map(Shown::to_json).collect();
            let mut shown = json!({
                "ok": findings.is_empty() && (!args.check || self.changed.is_empty()),
                "files": self.files,
                "changed": self.changed,
                "findings": findings,
            });
            if let Some(text) = &self.text {
                shown["text"] = json!(text);
            }
            output::json(&shown);
            return;
        }
        self.reports.iter().for_each(output::report);
        if args.stdin {
            if let Some(text) = &self.text {
                output::whole(text);
            }
            return;
        }
        for name in &self.changed {
            match args.check {
                true => output::data(&format!("would format {name}")),
                false => output::data(&format!("formatted {name}")),
            }
        }
        output::note(&self.summary(args.check));
    }

    fn summary(&self, only_check: bool) -> String {
        let files = match self.files {
            1 => "1 file".to_owned(),
            count => format!("{count} files"),
        };
        let changed = match (self.changed.len(), only_check) {
            (0, _) => "nothing to change".to_owned(),
            (count, true) => format!("{count} would change"),
            (count, false) => format!("{count} changed"),
        };
        match self.reports.len() {
            0 => format!("{files}: {changed}"),
            refused => format!("{files}: {changed}; {refused} not formatted"),
        }
    }
}

/// Returns a text in the usual layout.
fn formatted<'t>(name: &str, text: &'t str) -> Result<Cow<'t, str>, Report> {
    layout::format(text).map_err(|flaw| unbalanced(name, text, &flaw))
}

/// Reports the place where a text is not balanced.
fn unbalanced(name: &str, text: &str, flaw: &Flaw) -> Report {
    let found = text.get(flaw.range.clone()).unwrap_or_default();
    let (message, hint) = match flaw.kind {
        FlawKind::Unopened => (
            format!("`{found}` closes nothing"),
            "remove it, or add the bracket that it closes",
        ),
        FlawKind::Unclosed => (format!("`{found}` is not closed"), "add what closes it"),
        FlawKind::Lone => (
            format!("no form follows `{found}`"),
            "remove it, or write the form that it belongs to",
        ),
        FlawKind::Unreadable => (
            format!("no form begins with `{found}`"),
            "`flowstone check` says more about it",
        ),
    };
    let mut sources = Sources::default();
    let span = Span {
        source: sources.add(name, text),
        start: u32::try_from(flaw.range.start).unwrap_or(u32::MAX),
        end: u32::try_from(flaw.range.end).unwrap_or(u32::MAX),
    };
    Report::error(
        UNBALANCED,
        format!("{message}, so the text is left as it is"),
    )
    .at(&sources, span)
    .hint(hint)
}

/// Writes to a new file beside a file, and renames it, so that readers see either the old text or the new one. A link
/// stays a link.
pub(super) fn replace(path: &Path, text: &str) -> io::Result<()> {
    let path = fs::canonicalize(path)?;
    let folder = path.parent().unwrap_or(Path::new("."));
    let mut unfinished = tempfile::NamedTempFile::new_in(folder)?;
    unfinished.write_all(text.as_bytes())?;
    fs::set_permissions(unfinished.path(), fs::metadata(&path)?.permissions())?;
    unfinished.as_file().sync_all()?;
    unfinished.persist(&path).map_err(|error| error.error)?;
    Ok(())
}

/// Finds the sources below a path. The path of a file is always accepted.
fn gather(path: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    if !fs::metadata(path)?.is_dir() {
        files.push(path.to_path_buf());
        return Ok(());
    }
    let entries = fs::read_dir(path)?.map(|entry| entry.map(|entry| entry.path()));
    let mut entries: Vec<PathBuf> = entries.collect::<io::Result<_>>()?;
    entries.sort();
    for entry in entries {
        let name = entry.file_name().unwrap_or_default().to_string_lossy();
        // A link to a folder could lead back here.
        let is_folder = entry.is_dir() && !entry.is_symlink();
        let ending = entry.extension().and_then(|ending| ending.to_str());
        if is_folder {
            if !name.starts_with('.') && !SKIPPED.contains(&&*name) {
                gather(&entry, files)?;
            }
        } else if entry.is_file() && ending.is_some_and(|ending| ENDINGS.contains(&ending)) {
            files.push(entry);
        }
    }
    Ok(())
}
