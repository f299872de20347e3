//! Finds where closing delimiters are missing or misplaced, by the indentation of the lines.
//!
//! In code that is laid out as usual, the closing delimiters at the end of a line close exactly the forms that begin at or to the
//! right of the column where the next line begins. Only such delimiters are changed: those with code behind them on their line
//! are taken as they are, and a text in which they do not match is not repaired.

use std::ops::Range;

use crate::value::{Change, Edit, SourceId, Span};

/// Returns the change that makes the closing delimiters match the indentation; `None` if there is no such change.
///
/// It is certain if it changes one line and deletes nothing: where there is a delimiter too many, the opening one may be missing.
pub(super) fn change(text: &str, source: SourceId) -> Option<Change> {
    let edits = Repair::new(text).edits()?;
    let [(range, new), more @ ..] = &edits[..] else {
        return None;
    };
    let old = closers(&text[range.clone()]);
    let title = match (old.is_empty(), new.is_empty()) {
        _ if !more.is_empty() => "close the forms where the indentation says".to_owned(),
        (true, _) => format!("insert `{new}`, as the indentation says"),
        (false, true) => format!("delete `{old}`, as the indentation says"),
        (false, false) => format!("write `{new}` for `{old}`, as the indentation says"),
    };
    let is_certain = more.is_empty() && new.len() >= old.len();
    let edit = |(range, new): (Range<usize>, String)| {
        Some(Edit {
            place: Span {
                source,
                start: u32::try_from(range.start).ok()?,
                end: u32::try_from(range.end).ok()?,
            },
            old: text[range].to_owned(),
            new,
        })
    };
    Some(Change {
        title,
        is_certain,
        edits: edits.into_iter().map(edit).collect::<Option<_>>()?,
    })
}

/// Returns the closing delimiters of a text.
fn closers(text: &str) -> String {
    text.chars().filter(|char| closes(*char)).collect()
}

fn closes(char: char) -> bool {
    matches!(char, ')' | ']' | '}')
}

/// An open form.
struct Open {
    closer: char,
    /// The column of its opening delimiter, from 0.
    column: usize,
}

struct Repair<'t> {
    text: &'t str,
    stack: Vec<Open>,
    /// The range of the closing delimiters behind the last code; empty without any.
    trail: Range<usize>,
    edits: Vec<(Range<usize>, String)>,
}

impl<'t> Repair<'t> {
    fn new(text: &'t str) -> Repair<'t> {
        Repair {
            text,
            stack: Vec::new(),
            trail: 0..0,
            edits: Vec::new(),
        }
    }

    /// Returns the edits; `None` if delimiters inside a line do not match, or a string is never closed.
    fn edits(mut self) -> Option<Vec<(Range<usize>, String)>> {
        let text = self.text;
        let (mut at, mut column) = (0, 0);
        // Whether nothing but blanks was on the line so far.
        let mut is_first = true;
        while let Some(char) = text[at..].chars().next() {
            let mut end = at + char.len_utf8();
            match char {
                '\n' => is_first = true,
                ';' => {
                    end = text[at..]
                        .find('\n')
                        .map_or(text.len(), |length| at + length)
                }
                char if char.is_whitespace() || char == ',' || char == '\u{feff}' => {}
                char => {
                    let begins_line = std::mem::take(&mut is_first);
                    end = match closes(char) {
                        true => self.closer((at, end), begins_line)?,
                        false => {
                            match begins_line {
                                true => self.close_to(column),
                                false => self.keep_trail()?,
                            }
                            self.code(char, (at, column))?
                        }
                    };
                }
            }
            let passed = &text[at..end];
            column = match passed.rfind('\n') {
                Some(newline) => passed[newline + 1..].chars().count(),
                None => column + passed.chars().count(),
            };
            at = end;
        }
        self.close_to(0);
        Some(self.edits)
    }

    /// Takes a closing delimiter; returns where the next character begins.
    fn closer(&mut self, (at, end): (usize, usize), begins_line: bool) -> Option<usize> {
        if begins_line || self.trail.is_empty() {
            self.keep_trail()?;
            self.trail = at..at;
        }
        self.trail.end = end;
        Some(end)
    }

    /// Takes one character of code, or a string; returns where the next begins.
    fn code(&mut self, char: char, (at, column): (usize, usize)) -> Option<usize> {
        let next = at + char.len_utf8();
        let open = |closer| Open { closer, column };
        match char {
            '(' => self.stack.push(open(')')),
            '[' => self.stack.push(open(']')),
            '{' => self.stack.push(open('}')),
            _ => {}
        }
        let end = match char {
            '"' => self.string(next)?,
            // The character of a literal such as `\(`.
            '\\' => next + self.text[next..].chars().next().map_or(0, char::len_utf8),
            _ => next,
        };
        self.trail = end..end;
        Some(end)
    }

    /// Returns the end of a string; `None` if it has none.
    fn string(&self, from: usize) -> Option<usize> {
        let mut chars = self.text[from..].char_indices();
        while let Some((at, char)) = chars.next() {
            match char {
                '"' => return Some(from + at + 1),
                '\\' => chars.next().map(|_| ())?,
                _ => {}
            }
        }
        None
    }

    /// Closes what the closing delimiters close as they are written.
    fn keep_trail(&mut self) -> Option<()> {
        let trail = std::mem::replace(&mut self.trail, 0..0);
        for char in closers(&self.text[trail]).chars() {
            self.stack.pop_if(|open| open.closer == char)?;
        }
        Some(())
    }

    /// Closes the forms that begin at a column or to the right of it, and notes an edit where something else is written.
    fn close_to(&mut self, column: usize) {
        let mut wanted = String::new();
        while let Some(open) = self.stack.pop_if(|open| open.column >= column) {
            wanted.push(open.closer);
        }
        let trail = std::mem::replace(&mut self.trail, 0..0);
        if closers(&self.text[trail.clone()]) != wanted {
            self.edits.push((trail, wanted));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the text after the change, and whether it is certain.
    fn repaired(text: &str) -> Option<(String, bool)> {
        let change = change(text, SourceId(0))?;
        let mut out = text.to_owned();
        for edit in change.edits.iter().rev() {
            let range = edit.place.start as usize..edit.place.end as usize;
            assert_eq!(&out[range.clone()], edit.old);
            out.replace_range(range, &edit.new);
        }
        Some((out, change.is_certain))
    }

    fn check(text: &str, expected: &str, is_certain: bool) {
        assert_eq!(
            repaired(text),
            Some((expected.to_owned(), is_certain)),
            "{text}"
        );
    }

    #[test]
    fn text_that_matches_its_indentation_is_not_changed() {
        for text in [
            "",
            "(a b)",
            "{:slug :a\n :flow '(let [x 1\n              y 2]\n          ; (note\n          x)}\n",
            "(a\n  (b\n  )\n)\n",
            "(str \"(\n)\" \\( \\))",
            "(defn f [x]\n\n  #{x})\n\n(f 1)",
        ] {
            assert_eq!(repaired(text), None, "{text}");
        }
    }

    #[test]
    fn a_missing_delimiter_is_inserted_where_the_form_ends() {
        check("(a (b c)", "(a (b c))", true);
        check(
            "{:flow '(let [x (inc 1\n              y 2]\n          x)}\n",
            "{:flow '(let [x (inc 1)\n              y 2]\n          x)}\n",
            true,
        );
        check(
            "(defn f [x]\n  (inc x) ; one\n\n(f 1)\n",
            "(defn f [x]\n  (inc x)) ; one\n\n(f 1)\n",
            true,
        );
        check("(é [1 2", "(é [1 2])", true);
    }

    #[test]
    fn a_wrong_delimiter_is_replaced() {
        check("(let [x 1)\n  x)", "(let [x 1]\n  x)", true);
        check("{:a [1 2}", "{:a [1 2]}", true);
    }

    #[test]
    fn deleting_a_delimiter_is_not_certain() {
        check("(a b))\n", "(a b)\n", false);
        check(
            "(let [x 1]\n  (inc x))\n  x)\n",
            "(let [x 1]\n  (inc x)\n  x)\n",
            false,
        );
    }

    #[test]
    fn texts_that_indentation_does_not_explain_are_left() {
        for text in ["(a [b) c]", "(a \"b", ") (a"] {
            assert_eq!(repaired(text), None, "{text}");
        }
        // Several lines change: it may be meant otherwise.
        let (_, is_certain) = repaired("(a\n(b\n(c").expect("a change");
        assert!(!is_certain);
    }
}
