//! Parser of unified diffs.
//!
//! Reads the output of `diff -u` and `git diff`. Nothing is guessed: a hunk whose header does not match its lines, or a
//! line outside of a hunk, is an error, because it would be lost otherwise.

/// The changes of a diff to one file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FilePatch {
    /// `None`: the file is new.
    pub old: Option<String>,
    /// `None`: the file is deleted.
    pub new: Option<String>,
    pub renames: bool,
    /// The executable flag, if the diff sets it.
    pub executable: Option<bool>,
    pub hunks: Vec<Hunk>,
}

/// Lines that are adjacent in the file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Hunk {
    /// The header, such as `@@ -1,3 +1,4 @@`.
    pub header: String,
    /// The first line in the old file, counted from 1.
    pub old_start: usize,
    pub lines: Vec<Line>,
}

/// A line with its end, if it has one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    pub mark: Mark,
    pub text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    Same,
    Out,
    In,
}

/// An error in the text of a diff.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadPatch {
    /// The line, counted from 1.
    pub line: usize,
    pub why: String,
}

/// Reads a diff.
pub fn parse(text: &str) -> Result<Vec<FilePatch>, BadPatch> {
    let mut reader = Reader {
        lines: text.split_inclusive('\n').collect(),
        at: 0,
        files: Vec::new(),
        open: None,
    };
    while reader.at < reader.lines.len() {
        reader.step()?;
    }
    reader.close()?;
    if reader.files.is_empty() {
        return Err(BadPatch {
            line: 1,
            why: "it contains no file: a diff has lines such as `--- a/x`, `+++ b/x` and `@@ -1,2 +1,3 @@`".into(),
        });
    }
    Ok(reader.files)
}

struct Reader<'a> {
    lines: Vec<&'a str>,
    at: usize,
    files: Vec<FilePatch>,
    open: Option<Open>,
}

/// The file whose part of the diff is being read.
#[derive(Default)]
struct Open {
    line: usize,
    /// The names in `diff --git`, with their prefixes.
    names: Option<(String, String)>,
    patch: FilePatch,
    has_names: bool,
    is_new: bool,
    is_gone: bool,
}

impl<'a> Reader<'a> {
    fn step(&mut self) -> Result<(), BadPatch> {
        let line = self.lines[self.at].trim_end_matches(['\n', '\r']);
        if let Some(names) = line.strip_prefix("diff --git ") {
            self.close()?;
            self.open = Some(Open {
                line: self.at + 1,
                names: split_names(names),
                ..Open::default()
            });
        } else if line.starts_with("--- ") && self.next_starts_with("+++ ") {
            return self.names(line);
        } else if line.starts_with("@@ ") {
            return self.hunk(line);
        } else if line.starts_with("GIT binary patch") || line.starts_with("Binary files ") {
            return self.refuse("changes of binary files are not applied: use `:write-file`, or `git apply` in a `:materialize`d folder");
        } else if self.has_hunks() && line == "-- " {
            // The signature below a mailed patch.
            self.at = self.lines.len();
            return Ok(());
        } else if self.has_hunks() {
            let is_lost = line.starts_with(['+', '-', ' ', '\\']) && !line.trim().is_empty();
            if is_lost {
                return self.refuse("it is outside of any hunk: the numbers of lines in the `@@` above are too small");
            }
        } else {
            self.extended(line)?;
        }
        self.at += 1;
        Ok(())
    }

    fn refuse<T>(&self, why: impl Into<String>) -> Result<T, BadPatch> {
        Err(BadPatch {
            line: self.at + 1,
            why: why.into(),
        })
    }

    fn has_hunks(&self) -> bool {
        self.open
            .as_ref()
            .is_some_and(|open| !open.patch.hunks.is_empty())
    }

    fn next_starts_with(&self, start: &str) -> bool {
        self.lines
            .get(self.at + 1)
            .is_some_and(|line| line.starts_with(start))
    }

    /// Reads a line between `diff --git` and the names; unknown lines are comments.
    fn extended(&mut self, line: &str) -> Result<(), BadPatch> {
        let at = self.at;
        let Some(open) = self.open.as_mut().filter(|open| open.names.is_some()) else {
            return Ok(());
        };
        let mode = |mode: &str| match mode.trim() {
            "100644" => Ok(Some(false)),
            "100755" => Ok(Some(true)),
            "120000" => Err("a diff cannot create or change links".to_string()),
            "160000" => Err("a diff cannot create or change submodules".to_string()),
            other => Err(format!("`{other}` is not a file mode")),
        };
        let moded = if let Some(text) = line.strip_prefix("new file mode ") {
            open.is_new = true;
            mode(text)
        } else if let Some(text) = line.strip_prefix("deleted file mode ") {
            open.is_gone = true;
            mode(text).map(|_| None)
        } else if let Some(text) = line.strip_prefix("new mode ") {
            mode(text)
        } else if let Some(text) = line.strip_prefix("old mode ") {
            mode(text).map(|_| None)
        } else if let Some(name) = line.strip_prefix("rename from ") {
            open.patch.renames = true;
            open.has_names = true;
            open.patch.old = Some(unquote(name));
            Ok(None)
        } else if let Some(name) = line.strip_prefix("rename to ") {
            open.patch.new = Some(unquote(name));
            Ok(None)
        } else if line.starts_with("copy from ") || line.starts_with("copy to ") {
            Err("copies are not applied: write the new file instead".to_string())
        } else {
            return Ok(());
        };
        let moded = moded.map_err(|why| BadPatch { line: at + 1, why })?;
        open.patch.executable = moded.or(open.patch.executable);
        Ok(())
    }

    /// Reads the lines with `---` and `+++`.
    fn names(&mut self, first: &str) -> Result<(), BadPatch> {
        let second = self.lines[self.at + 1].trim_end_matches(['\n', '\r']);
        let (old, new) = (name(&first[4..]), name(&second[4..]));
        let is_git = self
            .open
            .as_ref()
            .is_some_and(|open| open.names.is_some() && open.patch.hunks.is_empty());
        if !is_git {
            self.close()?;
            self.open = Some(Open {
                line: self.at + 1,
                ..Open::default()
            });
        }
        let stripped = |name: &Option<String>, prefix: &str| {
            name.as_ref().is_none_or(|name| name.starts_with(prefix))
        };
        let has_prefixes = stripped(&old, "a/") && stripped(&new, "b/");
        let bare = |name: Option<String>| match has_prefixes {
            true => name.map(|name| name[2..].to_string()),
            false => name,
        };
        if old.is_none() && new.is_none() {
            return self.refuse("both names are /dev/null");
        }
        if let Some(open) = &mut self.open
            && !open.patch.renames
        {
            open.patch.old = bare(old);
            open.patch.new = bare(new);
            open.has_names = true;
        }
        self.at += 2;
        Ok(())
    }

    fn hunk(&mut self, header: &str) -> Result<(), BadPatch> {
        let Some((old, new)) = ranges(header) else {
            return self.refuse(format!(
                "`{header}` is not the header of a hunk, such as `@@ -10,4 +10,5 @@`"
            ));
        };
        if !self.open.as_ref().is_some_and(|open| open.has_names) {
            return self.refuse("a hunk before the names of the files: lines with `--- a/x` and `+++ b/x` come first");
        }
        let start = self.at;
        let mut hunk = Hunk {
            header: header.to_string(),
            old_start: old.0,
            lines: Vec::new(),
        };
        let (mut olds, mut news) = (0, 0);
        self.at += 1;
        while olds < old.1 || news < new.1 {
            let Some(line) = self.lines.get(self.at) else {
                break;
            };
            let (mark, text) = match line.as_bytes().first() {
                Some(b' ') => (Mark::Same, &line[1..]),
                Some(b'-') => (Mark::Out, &line[1..]),
                Some(b'+') => (Mark::In, &line[1..]),
                Some(b'\\') => {
                    no_newline(&mut hunk);
                    self.at += 1;
                    continue;
                }
                // Editors remove the space of an empty line.
                Some(b'\n' | b'\r') => (Mark::Same, *line),
                _ => break,
            };
            olds += usize::from(mark != Mark::In);
            news += usize::from(mark != Mark::Out);
            let mut text = text.to_string();
            if !text.ends_with('\n') {
                // The end of the whole diff was trimmed.
                text.push('\n');
            }
            hunk.lines.push(Line { mark, text });
            self.at += 1;
        }
        if (olds, news) != (old.1, new.1) {
            return Err(BadPatch {
                line: start + 1,
                why: format!(
                    "the hunk `{header}` declares {} old and {} new lines, but has {olds} and {news}",
                    old.1, new.1
                ),
            });
        }
        if self
            .lines
            .get(self.at)
            .is_some_and(|line| line.starts_with('\\'))
        {
            no_newline(&mut hunk);
            self.at += 1;
        }
        if hunk.lines.iter().any(|line| line.text.is_empty()) {
            return Err(BadPatch {
                line: start + 1,
                why: format!(
                    "the hunk `{header}` has an empty line without a newline, which no file has"
                ),
            });
        }
        if let Some(open) = &mut self.open {
            open.patch.hunks.push(hunk);
        }
        Ok(())
    }

    /// Ends the part of the current file.
    fn close(&mut self) -> Result<(), BadPatch> {
        let Some(mut open) = self.open.take() else {
            return Ok(());
        };
        let bad = |why: &str| {
            Err(BadPatch {
                line: open.line,
                why: why.to_string(),
            })
        };
        if !open.has_names {
            // Only a mode, or an empty file: the names are in the first line.
            let Some((old, new)) = open.names else {
                return bad("the names of its files are ambiguous");
            };
            open.patch.old = (!open.is_new).then_some(old);
            open.patch.new = (!open.is_gone).then_some(new);
        }
        let says_nothing = open.patch.hunks.is_empty()
            && !(open.is_new || open.is_gone || open.patch.renames)
            && open.patch.executable.is_none();
        if says_nothing {
            return bad("it changes nothing, because it has no hunk");
        }
        if open.patch.renames && (open.patch.old.is_none() || open.patch.new.is_none()) {
            return bad("`rename from` and `rename to` belong together");
        }
        if !open.patch.renames
            && let (Some(old), Some(new)) = (&open.patch.old, &open.patch.new)
            && old != new
        {
            // `diff -u old/x new/x`: the new name identifies the file.
            open.patch.old = Some(new.clone());
        }
        self.files.push(open.patch);
        Ok(())
    }
}

fn no_newline(hunk: &mut Hunk) {
    if let Some(line) = hunk.lines.last_mut() {
        let bare = line.text.trim_end_matches('\n').len();
        line.text.truncate(bare);
    }
}

/// Reads `@@ -10,4 +10,5 @@ anything`: start and length of both sides.
fn ranges(header: &str) -> Option<((usize, usize), (usize, usize))> {
    let (ranges, _) = header.strip_prefix("@@ -")?.split_once(" @@")?;
    let (old, new) = ranges.split_once(" +")?;
    let range = |text: &str| match text.split_once(',') {
        Some((start, count)) => Some((start.parse().ok()?, count.parse().ok()?)),
        None => Some((text.parse().ok()?, 1)),
    };
    Some((range(old)?, range(new)?))
}

/// Reads a name after `---` or `+++`, which may be followed by a time; `None` for `/dev/null`.
fn name(text: &str) -> Option<String> {
    let text = text.split('\t').next().unwrap_or_default();
    match text.trim_end() {
        "/dev/null" => None,
        name => Some(unquote(name)),
    }
}

/// Reads the names of `diff --git a/x b/x`, if they only differ in their prefixes.
fn split_names(text: &str) -> Option<(String, String)> {
    if let Some(rest) = text.strip_prefix('"') {
        let end = rest.find("\" \"")? + 2;
        let (old, new) = (unquote(&text[..end]), unquote(&text[end + 1..]));
        return same_names(&old, &new);
    }
    text.match_indices(' ')
        .find_map(|(at, _)| same_names(&text[..at], &text[at + 1..]))
        .or_else(|| {
            // For a rename, the names are in lines of their own.
            Some((String::new(), String::new()))
        })
}

fn same_names(old: &str, new: &str) -> Option<(String, String)> {
    let bare = (old.strip_prefix("a/"), new.strip_prefix("b/"));
    match bare {
        (Some(a), Some(b)) if a == b => Some((a.to_string(), b.to_string())),
        _ if old == new => Some((old.to_string(), new.to_string())),
        _ => None,
    }
}

/// Reads a quoted name with the escapes of C; other names are returned unchanged.
pub fn unquote(name: &str) -> String {
    let Some(inside) = name
        .strip_prefix('"')
        .and_then(|rest| rest.strip_suffix('"'))
    else {
        return name.to_string();
    };
    let mut bytes = Vec::with_capacity(inside.len());
    let mut rest = inside.bytes().peekable();
    while let Some(byte) = rest.next() {
        if byte != b'\\' {
            bytes.push(byte);
            continue;
        }
        let is_octal = |byte: &u8| (b'0'..=b'7').contains(byte);
        match rest.next() {
            Some(b'n') => bytes.push(b'\n'),
            Some(b't') => bytes.push(b'\t'),
            Some(b'r') => bytes.push(b'\r'),
            Some(digit) if is_octal(&digit) => {
                let mut value = u32::from(digit - b'0');
                for _ in 0..2 {
                    if let Some(next) = rest.next_if(is_octal) {
                        value = value * 8 + u32::from(next - b'0');
                    }
                }
                bytes.push(value.to_le_bytes()[0]);
            }
            Some(other) => bytes.push(other),
            None => bytes.push(b'\\'),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

impl Hunk {
    /// Returns the lines of the old file.
    pub fn old_lines(&self) -> impl Iterator<Item = &str> {
        self.lines
            .iter()
            .filter(|line| line.mark != Mark::In)
            .map(|line| line.text.as_str())
    }
}

/// The reason why a hunk does not apply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HunkMismatch {
    /// The number of the hunk, counted from 1.
    pub hunk: usize,
    pub header: String,
    pub why: String,
}

/// Applies hunks to a text. Their lines must match exactly, but may be at other places than the headers state.
pub fn apply(text: &str, hunks: &[Hunk]) -> Result<String, HunkMismatch> {
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let mut out = String::with_capacity(text.len());
    let (mut done, mut shift) = (0, 0_isize);
    for (idx, hunk) in hunks.iter().enumerate() {
        let old: Vec<&str> = hunk.old_lines().collect();
        // Without old lines, the number is that of the line before.
        let stated = match old.is_empty() {
            true => hunk.old_start,
            false => hunk.old_start.saturating_sub(1),
        };
        let wanted = stated
            .saturating_add_signed(shift)
            .clamp(done, lines.len().max(done));
        let Some(at) = find(&lines, &old, done, wanted) else {
            return Err(HunkMismatch {
                hunk: idx + 1,
                header: hunk.header.clone(),
                why: misfit(&lines, &old, done, wanted),
            });
        };
        shift = at.cast_signed() - stated.cast_signed();
        out.extend(lines[done..at].iter().copied());
        for line in hunk.lines.iter().filter(|line| line.mark != Mark::Out) {
            if !out.is_empty() && !out.ends_with('\n') {
                // Lines are added after a last line without a newline.
                out.push('\n');
            }
            out.push_str(&line.text);
        }
        done = at + old.len();
        if done < lines.len() && !out.is_empty() && !out.ends_with('\n') {
            return Err(HunkMismatch {
                hunk: idx + 1,
                header: hunk.header.clone(),
                why: format!(
                    "its last line has no newline, but line {} of the file follows",
                    done + 1
                ),
            });
        }
    }
    out.extend(lines[done..].iter().copied());
    Ok(out)
}

/// Returns the place of the old lines that is closest to the wanted one.
fn find(lines: &[&str], old: &[&str], least: usize, wanted: usize) -> Option<usize> {
    let most = lines.len().checked_sub(old.len())?;
    let fits = |at: usize| at >= least && at <= most && lines[at..at + old.len()] == *old;
    if old.is_empty() {
        return (wanted >= least && wanted <= lines.len()).then_some(wanted);
    }
    (0..=lines.len()).find_map(|distance| {
        let before = wanted.checked_sub(distance).filter(|at| fits(*at));
        before.or_else(|| Some(wanted + distance).filter(|at| fits(*at)))
    })
}

/// Describes the difference at the place where most of the old lines match.
fn misfit(lines: &[&str], old: &[&str], least: usize, wanted: usize) -> String {
    let fitting = |at: usize| {
        let there = lines.get(at..).unwrap_or_default();
        there.iter().zip(old).take_while(|(a, b)| a == b).count()
    };
    let places = least..lines.len().max(least + 1);
    let best = places
        .max_by_key(|at| (fitting(*at), std::cmp::Reverse(at.abs_diff(wanted))))
        .unwrap_or(wanted);
    let same = fitting(best);
    let expected = old.get(same).copied().unwrap_or_default();
    match lines.get(best + same) {
        Some(there) if there.trim_end_matches('\n') == expected.trim_end_matches('\n') => format!(
            "line {} differs only in whether it ends with a newline",
            best + same + 1
        ),
        Some(there) => format!(
            "line {} is {} where it has {}",
            best + same + 1,
            quoted(there),
            quoted(expected)
        ),
        None => format!(
            "the file ends after line {} where it has {}",
            lines.len(),
            quoted(expected)
        ),
    }
}

/// Formats a line for an error.
pub fn quoted(line: &str) -> String {
    let line = line.trim_end_matches(['\n', '\r']);
    match line.char_indices().nth(80) {
        Some((end, _)) => format!("`{}...`", &line[..end]),
        None => format!("`{line}`"),
    }
}
