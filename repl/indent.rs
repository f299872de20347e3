//! The indentation of the next line of a form that is still open.

/// Forms whose body is indented by two columns, whatever their first argument is.
const BODIES: &[&str] = &[
    "binding",
    "case",
    "catch",
    "cond",
    "condp",
    "defmacro",
    "defmethod",
    "defmulti",
    "defn",
    "defn-",
    "defprotocol",
    "defrecord",
    "deftest",
    "deftype",
    "do",
    "doseq",
    "dotimes",
    "extend-type",
    "finally",
    "fn",
    "for",
    "if",
    "if-let",
    "if-not",
    "if-some",
    "let",
    "letfn",
    "loop",
    "ns",
    "reify",
    "testing",
    "try",
    "when",
    "when-first",
    "when-let",
    "when-not",
    "when-some",
    "while",
    "with-open",
    "with-redefs",
];

/// A bracket that is open.
struct Open {
    bracket: char,
    /// Its column, and where the text after it begins.
    column: usize,
    inside: usize,
}

/// Returns the number of blanks before the next line, if the text is continued there. `prompt` is the width of what
/// stands before the first line. In a string nothing is added, because it would belong to the string.
pub(crate) fn indentation(text: &str, prompt: usize) -> usize {
    let mut open: Vec<Open> = Vec::new();
    let mut column = prompt;
    let mut chars = text.char_indices().peekable();
    while let Some((at, char)) = chars.next() {
        match char {
            '"' => {
                let mut is_closed = false;
                while let Some((_, char)) = chars.next() {
                    column += 1;
                    match char {
                        '\\' => {
                            chars.next();
                            column += 1;
                        }
                        '"' => {
                            is_closed = true;
                            break;
                        }
                        '\n' => column = 0,
                        _ => {}
                    }
                }
                if !is_closed {
                    return 0;
                }
            }
            ';' => while chars.next_if(|(_, char)| *char != '\n').is_some() {},
            '\\' => {
                chars.next();
                column += 1;
            }
            '(' | '[' | '{' => open.push(Open {
                bracket: char,
                column,
                inside: at + 1,
            }),
            ')' | ']' | '}' => {
                open.pop();
            }
            _ => {}
        }
        match char {
            '\n' => column = 0,
            _ => column += 1,
        }
    }
    let Some(last) = open.last() else {
        return 0;
    };
    if last.bracket != '(' {
        return last.column + 1;
    }
    let inside = &text[last.inside..];
    let first_line = inside.split('\n').next().unwrap_or_default();
    let head_end = first_line.find(|c: char| c.is_whitespace() || "()[]{}".contains(c));
    let head = &first_line[..head_end.unwrap_or(first_line.len())];
    let name = head.rsplit('/').next().unwrap_or_default();
    if BODIES.contains(&name) || name.starts_with("def") || name.starts_with("with-") {
        return last.column + 2;
    }
    let argument = head_end.and_then(|end| {
        let rest = &first_line[end..];
        let blanks = rest.len() - rest.trim_start().len();
        (!head.is_empty() && blanks > 0 && blanks < rest.len()).then_some(end + blanks)
    });
    match argument {
        Some(argument) => last.column + 1 + first_line[..argument].chars().count(),
        None => last.column + 1,
    }
}

#[cfg(test)]
mod tests {
    use super::indentation;

    #[test]
    fn the_next_line_is_indented_by_its_form() {
        for (text, expected) in [
            ("(let [a 1", 6),
            ("(let [a 1]", 2),
            ("(str :a", 5),
            ("(str", 1),
            ("[1 2", 1),
            ("{:a {:b 1", 5),
            ("(defn f [x]\n  (when x", 4),
            ("(flow/step :http :page\n  {:url 1", 3),
            ("(str \"a (", 0),
            ("(str \\( ; (x\n     1", 5),
            ("((f)", 1),
        ] {
            assert_eq!(indentation(text, 0), expected, "{text}");
        }
        assert_eq!(indentation("(let [a 1]", 8), 10);
        assert_eq!(indentation("(do\n  (let [a 1]", 8), 4);
    }
}
