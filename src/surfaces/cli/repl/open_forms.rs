//! The forms that are open at a place of an unfinished text: what a word at that place is an argument of.

/// A form that has begun and not ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Open {
    /// The bracket that opened it: `(`, `[` or `{`.
    pub bracket: char,
    /// Its items so far. A form is shown by its text, the word before the place is not one of them.
    pub items: Vec<String>,
}

/// The open forms, outermost first, and the word before the place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spot {
    pub open: Vec<Open>,
    pub word: String,
    /// Where the word begins, in bytes.
    pub start: usize,
    /// Whether the place is in a string.
    pub in_text: bool,
}

/// Looks at the end of a text.
pub fn spot(text: &str) -> Spot {
    let mut spot = scan(text);
    spot.open.remove(0);
    spot
}

/// Looks at the end of a text. The first open form stands for the whole text.
fn scan(text: &str) -> Spot {
    let mut open: Vec<Open> = vec![Open {
        bracket: ' ',
        items: Vec::new(),
    }];
    let mut starts = vec![0];
    let mut word: Option<usize> = None;
    let mut chars = text.char_indices();
    while let Some((at, char)) = chars.next() {
        let is_word = !(char.is_whitespace() || "()[]{}\",;'`~@^".contains(char));
        if let (Some(start), false) = (word, is_word) {
            word = None;
            add(&mut open, &text[start..at]);
        }
        match char {
            '"' => match text_end(&mut chars) {
                Some(end) => add(&mut open, &text[at..=end]),
                None => {
                    return Spot {
                        open,
                        word: text[at + 1..].to_owned(),
                        start: at + 1,
                        in_text: true,
                    };
                }
            },
            ';' => {
                let line_end = chars.by_ref().find(|(_, char)| *char == '\n');
                if line_end.is_none() {
                    return Spot {
                        open,
                        word: String::new(),
                        start: text.len(),
                        in_text: true,
                    };
                }
            }
            '\\' => {
                word = word.or(Some(at));
                chars.next();
            }
            '(' | '[' | '{' => {
                open.push(Open {
                    bracket: char,
                    items: Vec::new(),
                });
                starts.push(at);
            }
            ')' | ']' | '}' if open.len() > 1 => {
                open.pop();
                let start = starts.pop().unwrap_or(0);
                add(&mut open, &text[start..=at]);
            }
            ')' | ']' | '}' => {}
            _ if is_word => word = word.or(Some(at)),
            _ => {}
        }
    }
    let start = word.unwrap_or(text.len());
    Spot {
        open,
        word: text[start..].to_owned(),
        start,
        in_text: false,
    }
}

fn add(open: &mut [Open], item: &str) {
    if let Some(last) = open.last_mut() {
        last.items.push(item.to_owned());
    }
}

/// Skips a string whose quote was read; returns the place of its end.
fn text_end(chars: &mut std::str::CharIndices<'_>) -> Option<usize> {
    while let Some((at, char)) = chars.next() {
        match char {
            '\\' => {
                chars.next();
            }
            '"' => return Some(at),
            _ => {}
        }
    }
    None
}

impl Spot {
    /// Returns the innermost call, and the number of the argument at the place, counted from 0.
    pub fn call(&self) -> Option<(&str, usize)> {
        let last = self.open.last().filter(|form| form.bracket == '(')?;
        let head = last.items.first()?;
        Some((head, last.items.len() - 1))
    }

    /// Returns the call around the innermost map, the number of the map's argument, and the map's items.
    pub fn map_of_call(&self) -> Option<(&Open, usize, &[String])> {
        let [.., call, map] = &self.open[..] else {
            return None;
        };
        let is_map = map.bracket == '{' && call.bracket == '(' && !call.items.is_empty();
        is_map.then(|| (call, call.items.len() - 1, &map.items[..]))
    }

    /// Returns the names that the open forms bind: by `let` and its like, and as parameters.
    pub fn locals(&self) -> Vec<String> {
        let mut names = Vec::new();
        for form in &self.open {
            let Some(head) = form.items.first().filter(|_| form.bracket == '(') else {
                continue;
            };
            match head.rsplit('/').next().unwrap_or_default() {
                "let" | "loop" | "for" | "doseq" | "when-let" | "if-let" | "binding"
                | "when-some" | "if-some" | "with-open" | "dotimes" => {
                    let vector = form.items.get(1).map(|vector| items(vector));
                    let patterns = vector.unwrap_or_default().into_iter().step_by(2);
                    names.extend(patterns.flat_map(|pattern| symbols(&pattern)));
                }
                "fn" | "defn" | "defn-" | "defmacro" | "fn*" => {
                    let vector = form.items.iter().find(|item| item.starts_with('['));
                    names.extend(vector.map(|vector| symbols(vector)).unwrap_or_default());
                }
                _ => {}
            }
        }
        // Bindings of a vector that is still open.
        for pair in self.open.windows(2) {
            if let [call, vector] = pair
                && call.bracket == '('
                && vector.bracket == '['
            {
                let every = vector.items.iter().step_by(2);
                names.extend(every.flat_map(|item| symbols(item)));
            }
        }
        names.sort();
        names.dedup();
        names
    }
}

/// Returns the items of a vector as text.
fn items(vector: &str) -> Vec<String> {
    let inside = vector.strip_prefix('[').unwrap_or(vector);
    let inside = inside.strip_suffix(']').unwrap_or(inside);
    let mut spot = scan(inside);
    let mut items = spot.open.remove(0).items;
    items.extend(Some(spot.word).filter(|word| !word.is_empty()));
    items
}

/// Returns the symbols in a binding form.
fn symbols(text: &str) -> Vec<String> {
    let words = text.split(|c: char| c.is_whitespace() || "()[]{}\",;'`~@^".contains(c));
    let names = words.filter(|word| {
        !word.is_empty()
            && *word != "&"
            && !word.starts_with([':', '#', '\\', '_'])
            && !word.starts_with(|c: char| c.is_ascii_digit())
    });
    names.map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_call_around_a_word_and_its_argument_are_found() {
        let found = spot("(str 1) (flow/step :ht");
        assert_eq!(found.call(), Some(("flow/step", 0)));
        assert_eq!((found.word.as_str(), found.start), (":ht", 19));
        let found = spot("(flow/step :http :page {:url \"a (b\" :met");
        let (call, idx, items) = found.map_of_call().expect("a map");
        assert_eq!((call.items[1].as_str(), idx), (":http", 2));
        assert_eq!(items, [":url", "\"a (b\""]);
        assert!(spot("(show \"w0").in_text);
        assert_eq!(spot("(show \"w0").word, "w0");
        assert!(spot("(a ; (b").in_text);
        assert_eq!(spot("(str \\( 1 in").call(), Some(("str", 2)));
    }

    #[test]
    fn locals_of_open_forms_are_found() {
        let locals = |text: &str| spot(text).locals();
        assert_eq!(
            locals("(let [alpha 1 {:keys [beta]} m] (al"),
            ["alpha", "beta"]
        );
        assert_eq!(locals("(defn f [gamma & rest] (ga"), ["gamma", "rest"]);
        assert_eq!(locals("(let [delta 1 e (del"), ["delta", "e"]);
        assert!(locals("(let [x 1] x) (x").is_empty());
    }
}
