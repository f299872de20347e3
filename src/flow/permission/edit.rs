//! Adds a row to the text of `flowstone.edn`, and leaves the rest of the text unchanged.

use super::Missing;
use super::line::in_edn;

/// Returns the text with the missing row. Returns `None` if the text is not a map of the form that the row fits into:
/// then a person has to add it.
pub fn with_row(text: &str, missing: &Missing) -> Option<String> {
    let keys = missing.keys();
    let item = in_edn(&missing.item);
    if Scan(text).skip_blank(0) == text.len() {
        return Some(format!("{text}{{{}}}\n", nested(&keys, &item)));
    }
    let start = Scan(text).skip_blank(0);
    let (at, added) = place(text, start, &keys, &item)?;
    let mut edited = text.to_owned();
    edited.insert_str(at, &added);
    Some(edited)
}

/// Returns the text to insert, and its position.
fn place(text: &str, map: usize, keys: &[String], item: &str) -> Option<(usize, String)> {
    let scan = Scan(text);
    let Some((key, rest)) = keys.split_first() else {
        return last(text, map, item);
    };
    if scan.at(map) != Some('{') {
        return None;
    }
    let mut at = map + 1;
    loop {
        at = scan.skip_blank(at);
        if scan.at(at)? == '}' {
            let is_empty = scan.skip_blank(map + 1) == at;
            let entry = nested(keys, item);
            return Some((
                map + 1,
                if is_empty {
                    entry
                } else {
                    format!("{entry}\n ")
                },
            ));
        }
        let key_end = scan.form(at)?;
        let value = scan.skip_blank(key_end);
        if text.get(at..key_end)? == key {
            return place(text, value, rest, item);
        }
        at = scan.form(value)?;
    }
}

/// Returns the insertion of an item at the end of a collection.
fn last(text: &str, start: usize, item: &str) -> Option<(usize, String)> {
    let scan = Scan(text);
    let open = match scan.at(start)? {
        '[' | '(' => start + 1,
        '#' if scan.at(start + 1) == Some('{') => start + 2,
        _ => return None,
    };
    let mut at = scan.skip_blank(open);
    let mut end = None;
    while !matches!(scan.at(at)?, ']' | ')' | '}') {
        let form = scan.form(at)?;
        end = Some(form);
        at = scan.skip_blank(form);
    }
    Some(match end {
        Some(end) => (end, format!(" {item}")),
        None => (open, item.to_owned()),
    })
}

/// Returns an entry: the nested keys, with the item in a vector.
fn nested(keys: &[String], item: &str) -> String {
    match keys {
        [] => String::new(),
        [key] => format!("{key} [{item}]"),
        [key, rest @ ..] => format!("{key} {{{}}}", nested(rest, item)),
    }
}

/// Finds the ends of forms in text. Gives up on syntax that it does not know.
struct Scan<'a>(&'a str);

impl Scan<'_> {
    fn at(&self, at: usize) -> Option<char> {
        self.0.get(at..)?.chars().next()
    }

    /// Returns the start of the next form, after blanks, comments and discarded forms.
    fn skip_blank(&self, mut at: usize) -> usize {
        loop {
            let Some(rest) = self.0.get(at..) else {
                return at;
            };
            let trimmed = rest.trim_start_matches(|it: char| it.is_whitespace() || it == ',');
            at += rest.len() - trimmed.len();
            if trimmed.starts_with(';') {
                at += trimmed.find('\n').unwrap_or(trimmed.len());
                continue;
            }
            match trimmed.strip_prefix("#_").and_then(|_| self.form(at + 2)) {
                Some(end) => at = end,
                None => return at,
            }
        }
    }

    /// Returns the end of the form that begins here, or after the blanks here.
    fn form(&self, at: usize) -> Option<usize> {
        let mut at = self.skip_blank(at);
        let mut depth = 0_usize;
        loop {
            at = self.skip_blank(at);
            let char = self.at(at)?;
            match char {
                '"' => at = self.text(at)?,
                '(' | '[' | '{' => {
                    depth += 1;
                    at += 1;
                    continue;
                }
                ')' | ']' | '}' => {
                    depth = depth.checked_sub(1)?;
                    at += 1;
                }
                // A set, a tag or a symbolic value: the form that follows belongs to it.
                '#' | '\'' | '^' | '`' | '~' | '@' => {
                    at += 1;
                    continue;
                }
                '\\' => {
                    at += 1;
                    at += self.at(at)?.len_utf8();
                    at = self.word(at);
                }
                _ => at = self.word(at),
            }
            if depth == 0 {
                return Some(at);
            }
        }
    }

    fn word(&self, at: usize) -> usize {
        let rest = self.0.get(at..).unwrap_or_default();
        let is_end = |it: char| it.is_whitespace() || ",;\"()[]{}".contains(it);
        at + rest.find(is_end).unwrap_or(rest.len())
    }

    fn text(&self, at: usize) -> Option<usize> {
        let mut is_escaped = false;
        for (idx, char) in self.0.get(at + 1..)?.char_indices() {
            match char {
                _ if is_escaped => is_escaped = false,
                '\\' => is_escaped = true,
                '"' => return Some(at + 1 + idx + 1),
                _ => {}
            }
        }
        None
    }
}
