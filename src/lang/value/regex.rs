//! Regexes in Java's syntax, run by an engine that knows look-around and back-references.
//!
//! The source is translated where the two syntaxes differ: Java's classes are ASCII, `\Q..\E` quotes,
//! `\Z` and a `$` at the end allow for a last line end. Matching is bounded by a step limit.

use std::cell::OnceCell;
use std::fmt::Write;

/// How many steps back a match may take before it is given up.
pub const STEP_LIMIT: usize = 1_000_000;

/// A compiled regex.
pub struct Regex {
    regex: fancy_regex::Regex,
    /// The same, to match a whole text; compiled when that is first wanted.
    whole: OnceCell<fancy_regex::Regex>,
}

/// A match: the byte ranges of the whole and of each group; `None` for a group that took no part.
pub type Groups = Vec<Option<(usize, usize)>>;

/// A match took more than [`STEP_LIMIT`] steps.
#[derive(Debug, Clone, Copy)]
pub struct TooManySteps;

/// Why a regex cannot be compiled.
#[derive(Debug, Clone)]
pub struct RegexError {
    /// What is wrong with the pattern.
    pub message: String,
    /// The byte in the source, where that is known.
    pub at: Option<usize>,
}

/// Compiles a regex of Java's syntax.
///
/// # Errors
/// What is wrong with it.
pub fn compile_regex(source: &str) -> Result<Regex, RegexError> {
    let translated = Translation::new(source).run()?;
    match build(&translated) {
        Ok(regex) => Ok(Regex {
            regex,
            whole: OnceCell::new(),
        }),
        Err(error) => Err(explain(&error, source, &translated)),
    }
}

fn build(translated: &str) -> fancy_regex::Result<fancy_regex::Regex> {
    fancy_regex::RegexBuilder::new(translated)
        .backtrack_limit(STEP_LIMIT)
        .build()
}

impl Regex {
    /// Returns the first match that starts at byte `from` or later.
    ///
    /// # Errors
    /// When it takes too many steps.
    pub fn find_from(&self, text: &str, from: usize) -> Result<Option<Groups>, TooManySteps> {
        if from > text.len() {
            return Ok(None);
        }
        if self.regex.captures_len() == 1 {
            let found = self.regex.find_from_pos(text, from);
            let found = found.map_err(|_| TooManySteps)?;
            return Ok(found.map(|found| vec![Some((found.start(), found.end()))]));
        }
        let found = self.regex.captures_from_pos(text, from);
        Ok(found.map_err(|_| TooManySteps)?.as_ref().map(groups))
    }

    /// Returns the match of the whole text.
    ///
    /// # Errors
    /// When it takes too many steps.
    pub fn match_whole(&self, text: &str) -> Result<Option<Groups>, TooManySteps> {
        let whole = match self.whole.get() {
            Some(whole) => whole,
            None => {
                // What compiled by itself compiles in a group; a comment at the end needs the line end.
                let wrapped = format!("\\A(?:{}\n)\\z", self.regex.as_str());
                let plain = format!("\\A(?:{})\\z", self.regex.as_str());
                let is_verbose = self.regex.as_str().contains("(?x");
                let built = build(if is_verbose { &wrapped } else { &plain });
                let built = built.map_err(|_| TooManySteps)?;
                self.whole.get_or_init(|| built)
            }
        };
        let found = whole.captures(text).map_err(|_| TooManySteps)?;
        Ok(found.as_ref().map(groups))
    }

    /// Returns the index of a named group.
    pub fn group(&self, name: &str) -> Option<usize> {
        self.regex
            .capture_names()
            .position(|found| found == Some(name))
    }

    /// Returns how many groups there are beside the whole.
    pub fn group_count(&self) -> usize {
        self.regex.captures_len() - 1
    }
}

fn groups(captures: &fancy_regex::Captures<'_, str>) -> Groups {
    captures
        .iter()
        .map(|group| group.map(|group| (group.start(), group.end())))
        .collect()
}

/// Words for an error of the engine, whose own speak of its translated text.
fn explain(error: &fancy_regex::Error, source: &str, translated: &str) -> RegexError {
    let (message, at) = match error {
        fancy_regex::Error::ParseError(at, error) => (error.to_string(), Some(*at)),
        other => (other.to_string(), None),
    };
    let line = message
        .lines()
        .rev()
        .find(|line| !line.trim().is_empty())
        .unwrap_or(&message);
    let line = line.trim().trim_start_matches("error: ");
    RegexError {
        message: line.to_owned(),
        at: at.filter(|_| source == translated),
    }
}

struct Translation<'a> {
    source: &'a str,
    at: usize,
    out: String,
    /// How many brackets of a character class are open.
    class: usize,
}

impl<'a> Translation<'a> {
    fn new(source: &'a str) -> Translation<'a> {
        Translation {
            source,
            at: 0,
            out: String::with_capacity(source.len() + 8),
            class: 0,
        }
    }

    fn run(mut self) -> Result<String, RegexError> {
        while let Some(char) = self.rest().chars().next() {
            match char {
                '\\' => self.escape()?,
                '[' => self.open_class(),
                ']' if self.class > 0 => {
                    self.class -= 1;
                    self.copy(1);
                }
                '$' if self.class == 0 => {
                    // Java: at the end, or before a line end that is the last thing in the text. The
                    // multi-line flag gives `$` its other meaning, so it is left alone where that may be on.
                    if self.source.contains("(?") && self.has_multi_line() {
                        self.copy(1);
                    } else {
                        self.replace(1, r"(?=\r?\n?\z)");
                    }
                }
                _ => self.copy(char.len_utf8()),
            }
        }
        if self.class > 0 {
            return Err(self.wrong("a character class `[` is never closed"));
        }
        Ok(self.out)
    }

    fn rest(&self) -> &'a str {
        &self.source[self.at..]
    }

    fn wrong(&self, message: &str) -> RegexError {
        RegexError {
            message: message.to_owned(),
            at: Some(self.at.min(self.source.len())),
        }
    }

    fn copy(&mut self, length: usize) {
        self.out.push_str(&self.source[self.at..self.at + length]);
        self.at += length;
    }

    fn replace(&mut self, length: usize, with: &str) {
        self.out.push_str(with);
        self.at += length;
    }

    /// Tells whether a group of flags switches multi-line on.
    fn has_multi_line(&self) -> bool {
        self.source.match_indices("(?").any(|(at, _)| {
            self.source[at + 2..]
                .chars()
                .take_while(char::is_ascii_alphabetic)
                .any(|flag| flag == 'm')
        })
    }

    fn open_class(&mut self) {
        self.class += 1;
        self.copy(1);
        if self.rest().starts_with('^') {
            self.copy(1);
        }
        // A `]` that comes first is taken literally.
        if self.rest().starts_with(']') {
            self.replace(1, r"\]");
        }
    }

    fn escape(&mut self) -> Result<(), RegexError> {
        let Some(char) = self.source[self.at + 1..].chars().next() else {
            return Err(self.wrong("a `\\` stands at the end"));
        };
        match char {
            'Q' => self.quotation(),
            'E' => self.at += 2,
            'd' => self.class_escape("0-9", false),
            'D' => self.class_escape("0-9", true),
            'w' => self.class_escape("a-zA-Z0-9_", false),
            'W' => self.class_escape("a-zA-Z0-9_", true),
            's' => self.class_escape(r" \t\n\x0B\f\r", false),
            'S' => self.class_escape(r" \t\n\x0B\f\r", true),
            'h' => self.class_escape(
                r" \t\x{A0}\x{1680}\x{180e}\x{2000}-\x{200a}\x{202f}\x{205f}\x{3000}",
                false,
            ),
            'v' => self.class_escape(r"\n\x0B\f\r\x{85}\x{2028}\x{2029}", false),
            'R' => self.replace(2, r"(?:\r\n|[\n\x0B\f\r\x{85}\x{2028}\x{2029}])"),
            'Z' => self.replace(2, r"(?=\r?\n?\z)"),
            'e' => self.replace(2, r"\x1B"),
            'u' => self.unicode()?,
            'x' => self.hexadecimal()?,
            '0' => self.octal()?,
            'c' => self.control()?,
            'p' | 'P' => self.property(char == 'P')?,
            'k' | 'b' | 'B' | 'A' | 'z' | 'G' | 't' | 'n' | 'r' | 'f' | 'a' | '1'..='9' => {
                self.copy(2);
            }
            char if char.is_ascii_alphabetic() => {
                return Err(self.wrong(&format!("`\\{char}` means nothing in a regex")));
            }
            char => {
                self.at += 1 + char.len_utf8();
                self.literal(char);
            }
        }
        Ok(())
    }

    /// Writes a character that stands for itself.
    fn literal(&mut self, char: char) {
        if char.is_ascii_punctuation() {
            self.out.push('\\');
            self.out.push(char);
        } else if char.is_ascii() {
            let _ = write!(self.out, "\\x{:02X}", u32::from(char));
        } else {
            self.out.push(char);
        }
    }

    fn quotation(&mut self) {
        let from = self.at + 2;
        let rest = &self.source[from..];
        let (quoted, end) = match rest.find("\\E") {
            Some(end) => (&rest[..end], from + end + 2),
            None => (rest, self.source.len()),
        };
        for char in quoted.chars() {
            if char.is_ascii_alphanumeric() {
                self.out.push(char);
            } else {
                self.literal(char);
            }
        }
        self.at = end;
    }

    /// Writes a set of characters, as a class of its own or inside one.
    fn class_escape(&mut self, set: &str, negated: bool) {
        let negation = if negated { "^" } else { "" };
        let written = if self.class > 0 && !negated {
            set.to_owned()
        } else {
            format!("[{negation}{set}]")
        };
        self.replace(2, &written);
    }

    fn code_point(&mut self, digits: &str, radix: u32, length: usize) -> Result<(), RegexError> {
        let char = u32::from_str_radix(digits, radix)
            .ok()
            .and_then(char::from_u32);
        match char {
            Some(char) => {
                let _ = write!(self.out, "\\x{{{:X}}}", u32::from(char));
                self.at += length;
                Ok(())
            }
            None => Err(self.wrong("this is the number of no character")),
        }
    }

    fn digits(&self, from: usize, max: usize, radix: u32) -> &'a str {
        let rest = self.source.get(self.at + from..).unwrap_or("");
        let count = rest
            .chars()
            .take(max)
            .take_while(|char| char.is_digit(radix))
            .count();
        &rest[..count]
    }

    fn unicode(&mut self) -> Result<(), RegexError> {
        let digits = self.digits(2, 4, 16);
        if digits.len() != 4 {
            return Err(self.wrong("`\\u` needs four hexadecimal digits"));
        }
        self.code_point(digits, 16, 6)
    }

    fn hexadecimal(&mut self) -> Result<(), RegexError> {
        if self.rest().starts_with("\\x{") {
            let digits = self.digits(3, 6, 16);
            if !self.source[self.at + 3 + digits.len()..].starts_with('}') {
                return Err(self.wrong("`\\x{` needs hexadecimal digits and `}`"));
            }
            return self.code_point(digits, 16, 4 + digits.len());
        }
        let digits = self.digits(2, 2, 16);
        if digits.len() != 2 {
            return Err(self.wrong("`\\x` needs two hexadecimal digits"));
        }
        self.code_point(digits, 16, 4)
    }

    fn octal(&mut self) -> Result<(), RegexError> {
        let digits = self.digits(2, 3, 8);
        let digits = match digits.len() {
            0 => return Err(self.wrong("`\\0` needs octal digits")),
            3 if digits > "377" => &digits[..2],
            _ => digits,
        };
        self.code_point(digits, 8, 2 + digits.len())
    }

    fn control(&mut self) -> Result<(), RegexError> {
        match self.source[self.at + 2..].chars().next() {
            Some(char) if char.is_ascii() => {
                let _ = write!(self.out, "\\x{:02X}", u32::from(char) ^ 64);
                self.at += 3;
                Ok(())
            }
            _ => Err(self.wrong("`\\c` needs a letter")),
        }
    }

    fn property(&mut self, negated: bool) -> Result<(), RegexError> {
        let rest = &self.source[self.at + 2..];
        let (name, length) = if let Some(braced) = rest.strip_prefix('{') {
            let Some(end) = braced.find('}') else {
                return Err(self.wrong("`\\p{` is never closed"));
            };
            (&braced[..end], 4 + end)
        } else {
            match rest.chars().next() {
                Some(char) => (&rest[..char.len_utf8()], 2 + char.len_utf8()),
                None => return Err(self.wrong("`\\p` needs a name")),
            }
        };
        let letter = if negated { 'P' } else { 'p' };
        if let Some((_, set)) = POSIX.iter().find(|(posix, _)| *posix == name) {
            let negation = if negated { "^" } else { "" };
            let _ = write!(self.out, "[{negation}{set}]");
        } else {
            let name = PROPERTIES
                .iter()
                .find(|(java, _)| *java == name)
                .map_or(name, |(_, ours)| ours);
            let name = name
                .strip_prefix("Is")
                .filter(|name| !name.is_empty())
                .unwrap_or(name);
            let _ = write!(self.out, "\\{letter}{{{name}}}");
        }
        self.at += length;
        Ok(())
    }
}

/// Java's names for sets of ASCII characters.
const POSIX: &[(&str, &str)] = &[
    ("Lower", "a-z"),
    ("Upper", "A-Z"),
    ("ASCII", r"\x00-\x7F"),
    ("Alpha", "a-zA-Z"),
    ("Digit", "0-9"),
    ("Alnum", "a-zA-Z0-9"),
    ("Punct", r"!-/:-@\[-`{-~"),
    ("Graph", "!-~"),
    ("Print", r"\x20-~"),
    ("Blank", r" \t"),
    ("Cntrl", r"\x00-\x1F\x7F"),
    ("XDigit", "0-9a-fA-F"),
    ("Space", r" \t\n\x0B\f\r"),
];

/// Java's names for properties that are called otherwise elsewhere.
const PROPERTIES: &[(&str, &str)] = &[
    ("javaLowerCase", "Lowercase"),
    ("javaUpperCase", "Uppercase"),
    ("javaWhitespace", "White_Space"),
    ("javaLetter", "L"),
    ("javaDigit", "Nd"),
    ("javaLetterOrDigit", "Alphabetic"),
    ("javaAlphabetic", "Alphabetic"),
    ("L1", "L"),
];
