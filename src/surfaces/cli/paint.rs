//! Colours in the output of the command line.
//!
//! A mark contains a number that each process draws at random, so text from elsewhere cannot contain one. `output`
//! turns marks into colours and shows every other control character as an escape.

use std::borrow::Cow;
use std::fmt;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::sync::LazyLock;

use flowstone_lang::visible::visible;

/// A colour or weight. `{RED}text{RED:#}` puts a text between its two marks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Paint(&'static str);

/// The mark that keeps the current style.
pub const PLAIN: Paint = Paint("");
pub const BOLD: Paint = Paint("1");
pub const DIM: Paint = Paint("2");
pub const GREEN: Paint = Paint("32");
pub const RED: Paint = Paint("31");
pub const YELLOW: Paint = Paint("33");
pub const BOLD_BLUE: Paint = Paint("1;34");
pub const BOLD_RED: Paint = Paint("1;31");
pub const BOLD_YELLOW: Paint = Paint("1;33");

/// The beginning of each mark of this process. It has the form of a terminal's own sequence, so that it takes no
/// columns when text is measured.
static START: LazyLock<String> =
    LazyLock::new(|| format!("\x1b[{};", RandomState::new().build_hasher().finish()));

impl fmt::Display for Paint {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.0, out.alternate()) {
            ("", _) => Ok(()),
            (_, true) => write!(out, "{}0m", *START),
            (look, false) => write!(out, "{}{look}m", *START),
        }
    }
}

/// Returns a text for display: its marks as colours or removed, and every other control sequence escaped.
pub fn shown(text: &str, colored: bool) -> String {
    let mut out = String::with_capacity(text.len());
    for (idx, piece) in text.split(START.as_str()).enumerate() {
        let rest = match (idx, piece.split_once('m')) {
            (0, _) | (_, None) => piece,
            (_, Some((look, rest))) => {
                if colored {
                    out.push_str(&format!("\x1b[{look}m"));
                }
                rest
            }
        };
        out.push_str(&visible(rest));
    }
    out
}

/// Returns a text without its marks.
pub fn exact(text: &str) -> Cow<'_, str> {
    if !text.contains(START.as_str()) {
        return Cow::Borrowed(text);
    }
    let pieces = text.split(START.as_str()).enumerate();
    let rests = pieces.map(|(idx, piece)| match (idx, piece.split_once('m')) {
        (0, _) | (_, None) => piece,
        (_, Some((_, rest))) => rest,
    });
    Cow::Owned(rests.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_own_marks_are_colours() {
        let text = format!("{RED}a\x1b[8mb{RED:#}\x1b[31mc{PLAIN}d{PLAIN:#}");
        assert_eq!(shown(&text, true), "\x1b[31ma\\x1b[8mb\x1b[0m\\x1b[31mcd");
        assert_eq!(shown(&text, false), "a\\x1b[8mb\\x1b[31mcd");
        assert_eq!(exact(&text), "a\x1b[8mb\x1b[31mcd");
        assert_eq!(exact("plain\x1b[0m"), "plain\x1b[0m");
    }
}
