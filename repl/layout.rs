//! Breaks a printed value into lines that fit the terminal.
//!
//! It works on the printed text, so that settings such as `*print-length*` and methods of `print-method` apply to it as
//! well.

/// A part of a printed value.
enum Node<'a> {
    Text(&'a str),
    Items {
        open: &'a str,
        items: Vec<Node<'a>>,
        close: &'a str,
        /// The text on one line.
        flat: &'a str,
    },
}

/// Returns the text with line breaks if it is wider than `width`.
pub(crate) fn lay_out(text: &str, width: usize) -> String {
    if text.contains('\n') || count(text) <= width {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len() * 2);
    for (idx, node) in parse(text).iter().enumerate() {
        if idx > 0 {
            out.push(' ');
        }
        write(&mut out, node, 0, (width, 0));
    }
    out
}

/// Writes a node at a column. `room` is the width, and the part of it taken by the closing brackets after the node.
fn write(out: &mut String, node: &Node<'_>, column: usize, room: (usize, usize)) {
    let (width, tail) = room;
    let (open, items, close) = match node {
        Node::Text(text) => return out.push_str(text),
        Node::Items { flat, .. } if column + count(flat) + tail <= width => {
            return out.push_str(flat);
        }
        Node::Items {
            open, items, close, ..
        } => (open, items, close),
    };
    out.push_str(open);
    let inner = column + count(open);
    let is_map = open.ends_with('{') && !open.ends_with("#{");
    let mut at = inner;
    for (idx, item) in items.iter().enumerate() {
        let is_value = is_map && idx % 2 == 1;
        let fits = at + 1 + item.width() < width || item.width() + inner > width;
        if idx > 0 && !(is_value && fits) {
            new_line(out, inner);
            at = inner;
        } else if is_value {
            out.push(' ');
            at += 1;
        }
        let after = match idx + 1 == items.len() {
            true => tail + 1,
            false => 1,
        };
        write(out, item, at, (width, after));
        at += item.width();
    }
    out.push_str(close);
}

impl Node<'_> {
    /// Returns the width on one line.
    fn width(&self) -> usize {
        match self {
            Node::Text(text) => count(text),
            Node::Items { flat, .. } => count(flat),
        }
    }
}

fn new_line(out: &mut String, column: usize) {
    out.push('\n');
    out.extend(std::iter::repeat_n(' ', column));
}

fn count(text: &str) -> usize {
    text.chars().count()
}

/// A collection that is not closed yet.
struct Open<'a> {
    start: usize,
    open: &'a str,
    items: Vec<Node<'a>>,
}

/// Parses a text into nodes. Unbalanced parts remain text, because a `print-method` may print anything.
fn parse(text: &str) -> Vec<Node<'_>> {
    let whole = || vec![Node::Text(text)];
    let mut stack: Vec<Open<'_>> = Vec::new();
    let mut items = Vec::new();
    let mut at = 0;
    while let Some(first) = text[at..].chars().next() {
        if first.is_whitespace() || first == ',' {
            at += first.len_utf8();
            continue;
        }
        if is_close(first) {
            let Some(Open {
                start,
                open,
                items: around,
            }) = stack.pop()
            else {
                return whole();
            };
            let node = Node::Items {
                open,
                items: std::mem::replace(&mut items, around),
                close: &text[at..=at],
                flat: &text[start..=at],
            };
            items.push(node);
            at += 1;
            // Text directly after a closing bracket belongs to it, so that it is not torn apart.
            continue;
        }
        let end = at + token(&text[at..]);
        let token = &text[at..end];
        if token.ends_with(is_open) && !token.starts_with(['"', '\\']) {
            stack.push(Open {
                start: at,
                open: token,
                items: std::mem::take(&mut items),
            });
        } else {
            items.push(Node::Text(token));
        }
        at = end;
    }
    match stack.is_empty() {
        true => items,
        false => whole(),
    }
}

/// Returns the length of the first token of a text: an atom, or everything up to and including an opening bracket.
fn token(text: &str) -> usize {
    let mut chars = text.char_indices();
    let mut in_text = false;
    while let Some((at, char)) = chars.next() {
        match char {
            '\\' => {
                chars.next();
            }
            '"' => in_text = !in_text,
            _ if in_text => {}
            _ if is_open(char) => return at + 1,
            _ if is_close(char) || char == ',' => return at.max(1),
            // A tag stays with its value.
            ' ' if text.starts_with('#') && text[..at].find(is_open).is_none() && at < 24 => {
                let is_tag = !text[1..at].contains(['"', '<', ' ']);
                if !is_tag {
                    return at;
                }
            }
            _ if char.is_whitespace() => return at,
            _ => {}
        }
    }
    text.len()
}

fn is_open(char: char) -> bool {
    matches!(char, '(' | '[' | '{')
}

fn is_close(char: char) -> bool {
    matches!(char, ')' | ']' | '}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, width: usize, expected: &str) {
        assert_eq!(lay_out(text, width), expected);
    }

    #[test]
    fn a_value_that_fits_stays_on_one_line() {
        check("{:a 1, :b (1 2)}", 16, "{:a 1, :b (1 2)}");
    }

    #[test]
    fn items_are_below_one_another() {
        check("[1 22 333]", 6, "[1\n 22\n 333]");
        check("{:a [1 2], :b {:c 1}}", 12, "{:a [1 2]\n :b {:c 1}}");
        check("#{:aaa :bbb}", 8, "#{:aaa\n  :bbb}");
        check("({:a 1} {:b 2})", 10, "({:a 1}\n {:b 2})");
    }

    #[test]
    fn brackets_in_strings_and_characters_are_text() {
        check(r#"["a [b" \[ "c\"]"]"#, 8, "[\"a [b\"\n \\[\n \"c\\\"]\"]");
    }

    #[test]
    fn tags_stay_with_their_values() {
        check(
            r#"[#inst "2026-01-01" #user.Point{:x 1, :y 2}]"#,
            28,
            "[#inst \"2026-01-01\"\n #user.Point{:x 1, :y 2}]",
        );
    }

    #[test]
    fn unbalanced_text_is_unchanged() {
        for text in ["#<a very odd thing [", "a ] b c d e f g h i j"] {
            check(text, 5, text);
        }
    }

    #[test]
    fn no_character_is_lost() {
        let text = r#"{:id #uuid "0-1", :rows [{:a 1.5M, :b nil} {:a #"x{2}", :b \newline}], "k" ##Inf, :f #object[x "y"]}"#;
        for width in 1..120 {
            let words = |text: &str| -> String {
                let kept = text.chars().filter(|c| !c.is_whitespace() && *c != ',');
                kept.collect()
            };
            assert_eq!(words(&lay_out(text, width)), words(text), "{width}");
        }
    }
}
