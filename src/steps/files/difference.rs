//! The difference between a changeset and its tree, in the format of `git diff`, for `git apply` and `patch`.
//!
//! Only paths that the changeset changes are read. A moved file is one entry unless another file is at its old path.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::time::{Duration, Instant};

use flate2::Compression;
use flate2::write::ZlibEncoder;
use sha1::{Digest as _, Sha1};
use similar::{Algorithm, DiffOp};

use super::apply::Status;
use super::error::FilesError;
use super::manifest::{Changed, Entry, Kind, Manifest};
use super::objects::Objects;

/// The options of a comparison.
#[derive(Debug, Clone)]
pub(super) struct Wanted {
    /// Files or folders to compare; empty for all.
    pub paths: Vec<String>,
    /// The number of unchanged lines around a change.
    pub context: usize,
}

/// The difference of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FileDifference {
    pub path: String,
    pub from: Option<String>,
    pub status: Status,
    pub added: usize,
    pub removed: usize,
    pub binary: bool,
    pub text: String,
}

/// Maximum time for comparing two files; the rest is then shown as replaced.
const PATIENCE: Duration = Duration::from_secs(10);

/// Returns the differences, in the order of paths.
pub(super) fn differences(
    manifest: &Manifest,
    objects: &Objects,
    wanted: &Wanted,
) -> Result<Vec<FileDifference>, FilesError> {
    let changed: Vec<Changed<'_>> = manifest.changed().collect();
    let moves = moves(manifest, &changed);
    let gone: Vec<&str> = moves.values().map(|from| from.path.as_str()).collect();
    let mut found = Vec::new();
    for change in changed {
        let from = moves.get(change.path).copied();
        let is_wanted = is_wanted(wanted, change.path)
            || from.is_some_and(|from| is_wanted(wanted, &from.path));
        // The file is shown at its new path.
        let is_moved_away = change.now.is_none() && gone.contains(&change.path);
        if !is_wanted || is_moved_away {
            continue;
        }
        let (status, old, new) = match (change.before, change.now) {
            (None, Some(now)) if let Some(from) = from => (Status::Renamed, Some(from), Some(now)),
            (None, now) => (Status::Added, None, now),
            (before, None) => (Status::Deleted, before, None),
            (before, now) => (Status::Modified, before, now),
        };
        let pair = Pair { old, new, objects };
        found.push(pair.difference(change.path, status, wanted.context)?);
    }
    Ok(found)
}

fn is_wanted(wanted: &Wanted, path: &str) -> bool {
    wanted.paths.is_empty()
        || wanted.paths.iter().any(|it| {
            path.strip_prefix(it.as_str())
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/') || it.is_empty())
        })
}

/// Returns the moved files: new path to old entry, each old entry once.
fn moves<'a>(manifest: &'a Manifest, changed: &[Changed<'a>]) -> BTreeMap<&'a str, &'a Entry> {
    let mut moves: BTreeMap<&str, &Entry> = BTreeMap::new();
    for change in changed {
        let (None, Some(from)) = (change.before, change.moved_from) else {
            continue;
        };
        if let Some(before) = manifest.before(from)
            && manifest.get(from).is_none()
            && !moves.values().any(|taken| taken.path == from)
            && change
                .now
                .is_some_and(|now| is_link(now) == is_link(before))
        {
            moves.insert(change.path, before);
        }
    }
    moves
}

fn is_link(entry: &Entry) -> bool {
    entry.kind == Kind::Link
}

struct Pair<'a> {
    old: Option<&'a Entry>,
    new: Option<&'a Entry>,
    objects: &'a Objects,
}

impl Pair<'_> {
    fn difference(
        &self,
        path: &str,
        status: Status,
        context: usize,
    ) -> Result<FileDifference, FilesError> {
        if let (Some(old), Some(new)) = (self.old, self.new)
            && is_link(old) != is_link(new)
        {
            return self.replaced(path, context);
        }
        let from = self
            .old
            .map(|old| old.path.as_str())
            .filter(|it| *it != path);
        let mut found = FileDifference {
            path: path.to_string(),
            from: from.map(str::to_string),
            status,
            added: 0,
            removed: 0,
            binary: false,
            text: String::new(),
        };
        let (old, new) = (self.bytes(self.old)?, self.bytes(self.new)?);
        let (Some(old), Some(new)) = (old, new) else {
            // Without the stored content, there is nothing to compare.
            found.binary = true;
            return Ok(found);
        };
        let texts = match (text(self.old, &old), text(self.new, &new)) {
            (Some(old), Some(new)) => Some((old, new)),
            _ => None,
        };
        let body = match texts {
            _ if old == new => String::new(),
            Some((old, new)) => {
                let hunks = Hunks::of(old, new, context);
                (found.added, found.removed) = (hunks.added, hunks.removed);
                let names = names(self.old.map(|it| &*it.path), self.new.map(|it| &*it.path));
                format!("{names}{}", hunks.text)
            }
            None => {
                found.binary = true;
                binary(&old, &new)
            }
        };
        let ids = [(self.old, &old), (self.new, &new)]
            .map(|(entry, bytes)| entry.map_or("0".repeat(40), |_| git_id(bytes)));
        found.text = self.head(path, &found, &ids) + &body;
        Ok(found)
    }

    /// Compares a file with a link: one is deleted, the other added.
    fn replaced(&self, path: &str, context: usize) -> Result<FileDifference, FilesError> {
        let half = |old, new, status| {
            Pair {
                old,
                new,
                objects: self.objects,
            }
            .difference(path, status, context)
        };
        let out = half(self.old, None, Status::Deleted)?;
        let new = half(None, self.new, Status::Added)?;
        Ok(FileDifference {
            status: Status::Modified,
            removed: out.removed,
            binary: out.binary || new.binary,
            text: out.text + &new.text,
            ..new
        })
    }

    /// Returns the lines before the names.
    fn head(&self, path: &str, found: &FileDifference, ids: &[String; 2]) -> String {
        let from = found.from.as_deref().unwrap_or(path);
        let mut head = format!("diff --git {} {}\n", name("a/", from), name("b/", path));
        let mut line = |words: std::fmt::Arguments<'_>| {
            let _ = writeln!(head, "{words}");
        };
        let mut common = "";
        match (self.old.map(mode), self.new.map(mode)) {
            (None, Some(mode)) => line(format_args!("new file mode {mode}")),
            (Some(mode), None) => line(format_args!("deleted file mode {mode}")),
            (Some(old), Some(new)) if old != new => {
                line(format_args!("old mode {old}"));
                line(format_args!("new mode {new}"));
            }
            (Some(mode), Some(_)) => common = mode,
            (None, None) => {}
        }
        if let Some(from) = &found.from {
            let lines = self.new.map_or(0, |new| new.lines.max(1));
            let changed = (found.added.max(found.removed) as u64).min(lines);
            let alike = match (ids[0] == ids[1], found.binary) {
                (true, _) => 100,
                (false, true) => 50,
                (false, false) => (100 * (lines - changed) / lines).min(99),
            };
            line(format_args!("similarity index {alike}%"));
            line(format_args!("rename from {}", name("", from)));
            line(format_args!("rename to {}", name("", path)));
        }
        if ids[0] != ids[1] {
            let space = if common.is_empty() { "" } else { " " };
            line(format_args!("index {}..{}{space}{common}", ids[0], ids[1]));
        }
        head
    }

    /// Returns the content: empty if the entry is missing, `None` if the content was not stored.
    fn bytes(&self, entry: Option<&Entry>) -> Result<Option<Vec<u8>>, FilesError> {
        let Some(entry) = entry else {
            return Ok(Some(Vec::new()));
        };
        match entry.kind {
            Kind::File | Kind::Binary => Ok(Some(self.objects.get(&entry.hash)?)),
            Kind::Link => Ok(Some(entry.target.clone().unwrap_or_default().into_bytes())),
            Kind::Large | Kind::Submodule | Kind::Unreadable | Kind::Folder => Ok(None),
        }
    }
}

fn text<'a>(entry: Option<&Entry>, bytes: &'a [u8]) -> Option<&'a str> {
    match entry.map(|entry| entry.kind) {
        Some(Kind::Binary) => None,
        _ => std::str::from_utf8(bytes).ok(),
    }
}

fn mode(entry: &Entry) -> &'static str {
    match (entry.kind, entry.executable) {
        (Kind::Link, _) => "120000",
        (_, true) => "100755",
        (_, false) => "100644",
    }
}

fn names(old: Option<&str>, new: Option<&str>) -> String {
    // Without the tab, text after a space would be read as a time.
    let line = |mark: &str, prefix: &str, path: Option<&str>| match path {
        None => format!("{mark} /dev/null\n"),
        Some(path) if path.contains(' ') => format!("{mark} {}\t\n", name(prefix, path)),
        Some(path) => format!("{mark} {}\n", name(prefix, path)),
    };
    line("---", "a/", old) + &line("+++", "b/", new)
}

/// Formats a name, in quotes if necessary.
fn name(prefix: &str, path: &str) -> String {
    let is_odd = |char: char| char.is_control() || char == '"' || char == '\\';
    if !path.contains(is_odd) {
        return format!("{prefix}{path}");
    }
    let mut quoted = format!("\"{prefix}");
    for char in path.chars() {
        match char {
            '"' | '\\' => {
                quoted.push('\\');
                quoted.push(char);
            }
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            char if char.is_control() => {
                let mut bytes = [0; 4];
                for byte in char.encode_utf8(&mut bytes).bytes() {
                    let _ = write!(quoted, "\\{byte:03o}");
                }
            }
            char => quoted.push(char),
        }
    }
    quoted.push('"');
    quoted
}

/// Returns the difference of two texts, line by line, without names.
pub fn unified(old: &str, new: &str, context: usize) -> Hunks {
    Hunks::of(old, new, context)
}

/// The hunks of a unified diff.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hunks {
    pub text: String,
    /// Number of added lines.
    pub added: usize,
    /// Number of removed lines.
    pub removed: usize,
}

impl Hunks {
    fn of(old: &str, new: &str, context: usize) -> Hunks {
        let old: Vec<&str> = old.split_inclusive('\n').collect();
        let new: Vec<&str> = new.split_inclusive('\n').collect();
        let until = Some(Instant::now() + PATIENCE);
        let ops = similar::capture_diff_slices_deadline(Algorithm::Histogram, &old, &new, until);
        let mut hunks = Hunks {
            text: String::new(),
            added: 0,
            removed: 0,
        };
        for group in similar::group_diff_ops(ops, context) {
            hunks.group(&group, &old, &new);
        }
        hunks
    }

    fn group(&mut self, ops: &[DiffOp], old: &[&str], new: &[&str]) {
        let (Some(first), Some(last)) = (ops.first(), ops.last()) else {
            return;
        };
        let olds = first.old_range().start..last.old_range().end;
        let news = first.new_range().start..last.new_range().end;
        let range = |range: std::ops::Range<usize>| match range.len() {
            0 => format!("{},0", range.start),
            1 => format!("{}", range.start + 1),
            count => format!("{},{count}", range.start + 1),
        };
        let _ = writeln!(self.text, "@@ -{} +{} @@", range(olds), range(news));
        for op in ops {
            if let DiffOp::Equal { old_index, len, .. } = op {
                self.lines(' ', &old[*old_index..old_index + len]);
                continue;
            }
            self.removed += op.old_range().len();
            self.added += op.new_range().len();
            self.lines('-', &old[op.old_range()]);
            self.lines('+', &new[op.new_range()]);
        }
    }

    fn lines(&mut self, mark: char, lines: &[&str]) {
        for line in lines {
            self.text.push(mark);
            self.text.push_str(line);
            if !line.ends_with('\n') {
                self.text.push_str("\n\\ No newline at end of file\n");
            }
        }
    }
}

/// Returns git's object id of a content.
fn git_id(bytes: &[u8]) -> String {
    let mut digest = Sha1::new();
    digest.update(format!("blob {}\0", bytes.len()));
    digest.update(bytes);
    digest
        .finalize()
        .iter()
        .fold(String::with_capacity(40), |mut hex, byte| {
            let _ = write!(hex, "{byte:02x}");
            hex
        })
}

/// Writes both contents as git packs binary files, so that the difference applies in both directions.
fn binary(old: &[u8], new: &[u8]) -> String {
    format!("GIT binary patch\n{}\n{}\n", literal(new), literal(old))
}

fn literal(bytes: &[u8]) -> String {
    const LINE: usize = 52;
    let mut packing = ZlibEncoder::new(Vec::new(), Compression::default());
    // Writing to memory does not fail.
    let written = packing.write_all(bytes);
    let packed = written.and_then(|()| packing.finish()).unwrap_or_default();
    let mut text = format!("literal {}\n", bytes.len());
    for part in packed.chunks(LINE) {
        let length = u8::try_from(part.len()).unwrap_or_default();
        let mark = match length {
            1..=26 => b'A' + length - 1,
            _ => b'a' + length - 27,
        };
        text.push(char::from(mark));
        for group in part.chunks(4) {
            base85(group, &mut text);
        }
        text.push('\n');
    }
    text
}

/// Encodes up to four bytes as five characters.
fn base85(group: &[u8], text: &mut String) {
    const DIGITS: &[u8; 85] =
        b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~";
    let mut bytes = [0; 4];
    bytes[..group.len()].copy_from_slice(group);
    let mut number = u32::from_be_bytes(bytes);
    let mut digits = [0; 5];
    for digit in digits.iter_mut().rev() {
        *digit = DIGITS[(number % 85) as usize];
        number /= 85;
    }
    text.extend(digits.map(char::from));
}
