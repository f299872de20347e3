//! Colours for code and values. Works on tokens only, so that incomplete input can be coloured.

use anstyle::{AnsiColor, Style};

const STRING: Style = AnsiColor::Green.on_default();
const KEYWORD: Style = AnsiColor::Cyan.on_default();
const NUMBER: Style = AnsiColor::Magenta.on_default();
const SPECIAL: Style = AnsiColor::Yellow.on_default();
const COMMENT: Style = Style::new().dimmed();

/// Returns the text with colour codes.
pub(crate) fn paint(text: &str) -> String {
    let mut out = String::with_capacity(text.len() * 2);
    let mut rest = text;
    while !rest.is_empty() {
        let (length, style) = token(rest);
        let (token, after) = rest.split_at(length);
        match style {
            Some(style) => out.push_str(&format!("{style}{token}{style:#}")),
            None => out.push_str(token),
        }
        rest = after;
    }
    out
}

/// Returns the length and the style of the first token.
fn token(text: &str) -> (usize, Option<Style>) {
    let first = text.chars().next().unwrap_or(' ');
    match first {
        '"' => (string(text), Some(STRING)),
        ';' => (text.find('\n').unwrap_or(text.len()), Some(COMMENT)),
        '\\' => (character(text), Some(STRING)),
        ':' => (word(text), Some(KEYWORD)),
        _ if is_end(first) => (first.len_utf8(), None),
        _ => {
            let length = word(text).max(first.len_utf8());
            (length, word_style(&text[..length]))
        }
    }
}

fn word_style(word: &str) -> Option<Style> {
    let digits = word.strip_prefix(['+', '-']).unwrap_or(word);
    if digits.starts_with(|c: char| c.is_ascii_digit()) {
        return Some(NUMBER);
    }
    matches!(word, "nil" | "true" | "false").then_some(SPECIAL)
}

fn string(text: &str) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            '"' if !escaped => return at + 1,
            '\\' => escaped = !escaped,
            _ => escaped = false,
        }
    }
    text.len()
}

fn character(text: &str) -> usize {
    let second = text[1..].chars().next().map_or(0, char::len_utf8);
    let name = text[1 + second..]
        .find(|c: char| !c.is_alphanumeric())
        .unwrap_or(text.len() - 1 - second);
    1 + second + name
}

fn word(text: &str) -> usize {
    text.find(is_end).unwrap_or(text.len())
}

fn is_end(c: char) -> bool {
    c.is_whitespace() || "()[]{}\",;@^`~'".contains(c)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn painting_changes_no_text() {
        for text in [
            "(+ 1 2)",
            "\"half",
            "\\",
            "\\newline [\\é \\(]",
            "{:a \"b\\\"c\" :d/e nil} ; x\n'ü #{-1.5}",
            "",
        ] {
            assert_eq!(anstream::adapter::strip_str(&paint(text)).to_string(), text);
        }
    }
}
