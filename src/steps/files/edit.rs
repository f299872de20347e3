//! Edits of a text: replacing a part of it, or a range of lines.

use flowstone_flow::diagnostic::nearest;

use super::error::FilesError;

/// Whether an edit applies to one place or to every place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Which {
    Only,
    All,
}

/// Replaces `old`, and returns the new text with the number of replacements. `old` must occur exactly once, unless all
/// occurrences are to be replaced.
pub(super) fn replace(
    path: &str,
    text: &str,
    (old, new): (&str, &str),
    which: Which,
) -> Result<(String, usize), FilesError> {
    let places: Vec<usize> = text.match_indices(old).map(|(at, _)| at).collect();
    match (places.len(), which) {
        (0, _) => Err(FilesError::NoMatch {
            path: path.to_string(),
            near: near(text, old),
        }),
        (1, _) | (_, Which::All) => Ok((text.replace(old, new), places.len())),
        (_, Which::Only) => Err(FilesError::NotUnique {
            path: path.to_string(),
            lines: places.iter().map(|at| line_of(text, *at)).collect(),
        }),
    }
}

fn line_of(text: &str, at: usize) -> usize {
    memchr::memchr_iter(b'\n', &text.as_bytes()[..at]).count() + 1
}

/// Returns the line that is most similar to the first line of `old` that is not blank.
fn near(text: &str, old: &str) -> Option<(usize, String)> {
    const LINES: usize = 20_000;
    let wanted = old.lines().map(str::trim).find(|line| !line.is_empty())?;
    let lines = || text.lines().map(str::trim).take(LINES).enumerate();
    let same = lines().find(|(_, line)| *line == wanted);
    let holding = || lines().find(|(_, line)| line.contains(wanted));
    let like = || {
        let all = lines()
            .map(|(_, line)| line)
            .filter(|line| !line.is_empty() && line.len().abs_diff(wanted.len()) <= 4);
        let like = nearest(wanted, all)?.to_string();
        lines().find(|(_, line)| *line == like)
    };
    let (at, line) = same.or_else(holding).or_else(like)?;
    let shown = match line.char_indices().nth(100) {
        Some((end, _)) => format!("{}...", &line[..end]),
        None => line.to_string(),
    };
    Some((at + 1, shown))
}

/// Replaces the lines from `start` to `end`, counted from 1. If the end is before the start, inserts lines.
pub(super) fn replace_lines(
    path: &str,
    text: &str,
    (start, end): (usize, usize),
    content: &str,
) -> Result<String, FilesError> {
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let bad = |what: String| {
        Err(FilesError::BadRange {
            path: path.to_string(),
            lines: lines.len(),
            what,
        })
    };
    if start > lines.len() + 1 {
        return bad(format!("`:start-line` is {start}"));
    }
    if end > lines.len() {
        return bad(format!("`:end-line` is {end}"));
    }
    if end + 1 < start {
        return bad(format!("`:end-line` {end} is before `:start-line` {start}"));
    }
    let mut out: String = lines[..start - 1].concat();
    let rest = lines[end..].concat();
    if !out.is_empty() && !out.ends_with('\n') && !content.is_empty() {
        out.push('\n');
    }
    out.push_str(content);
    if !content.is_empty() && !content.ends_with('\n') && !rest.is_empty() {
        out.push('\n');
    }
    out.push_str(&rest);
    Ok(out)
}
