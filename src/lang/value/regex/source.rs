//! A pattern's text as the parser reads it: quotations are expanded, `(?x)` skips blanks.

use super::RegexError;
use super::parse::Flags;

/// A pattern's characters and the current position.
pub(super) struct Source {
    /// The characters, followed by two zeros as terminators.
    chars: Vec<char>,
    /// The byte offset of each character in the pattern.
    bytes: Vec<usize>,
    pub(super) at: usize,
    pub(super) length: usize,
}

impl Source {
    pub(super) fn new(pattern: &str) -> Source {
        let mut chars = Vec::with_capacity(pattern.len() + 2);
        let mut bytes = Vec::with_capacity(pattern.len() + 2);
        for (at, char) in pattern.char_indices() {
            bytes.push(at);
            chars.push(char);
        }
        let mut source = Source {
            length: chars.len(),
            chars,
            bytes,
            at: 0,
        };
        source.unquote();
        let end = pattern.len();
        source.chars.extend(['\0', '\0']);
        source.bytes.extend([end, end]);
        source
    }

    /// Replaces each `\Q...\E` with its characters, escaped.
    fn unquote(&mut self) {
        let mut at = 0;
        while at + 1 < self.chars.len() && (self.chars[at], self.chars[at + 1]) != ('\\', 'Q') {
            at += if self.chars[at] == '\\' { 2 } else { 1 };
        }
        if at + 1 >= self.chars.len() {
            return;
        }
        let (chars, bytes) = (
            std::mem::take(&mut self.chars),
            std::mem::take(&mut self.bytes),
        );
        self.chars.extend(&chars[..at]);
        self.bytes.extend(&bytes[..at]);
        let mut is_quoted = false;
        let mut is_first = false;
        while let Some(char) = chars.get(at).copied() {
            let next = chars.get(at + 1).copied();
            let byte = bytes[at];
            at += 1;
            match (char, next) {
                ('\\', Some('Q')) if !is_quoted => {
                    (is_quoted, is_first) = (true, true);
                    at += 1;
                    continue;
                }
                ('\\', Some('E')) if is_quoted => {
                    is_quoted = false;
                    at += 1;
                }
                ('\\', Some(next)) if !is_quoted => {
                    self.extend(&['\\', next], byte);
                    at += 1;
                }
                ('\\', None) if !is_quoted => self.extend(&['\\'], byte),
                // A quoted digit does not extend an escape before the quotation.
                (digit, _) if is_quoted && is_first && digit.is_ascii_digit() => {
                    self.extend(&['\\', 'x', '3', digit], byte);
                }
                (char, _) if is_quoted && char.is_ascii() && !char.is_ascii_alphanumeric() => {
                    self.extend(&['\\', char], byte);
                }
                (char, _) => self.extend(&[char], byte),
            }
            is_first = false;
        }
        self.length = self.chars.len();
    }

    fn extend(&mut self, chars: &[char], byte: usize) {
        self.chars.extend(chars);
        self.bytes.extend(chars.iter().map(|_| byte));
    }

    /// Returns the character at an index; zero past the end.
    pub(super) fn get(&self, at: usize) -> char {
        self.chars.get(at).copied().unwrap_or('\0')
    }

    /// Tells whether everything was read.
    pub(super) fn is_at_end(&self) -> bool {
        self.at >= self.length
    }

    /// Skips blanks and returns the current character.
    pub(super) fn peek(&mut self, flags: Flags) -> char {
        if flags.has(Flags::COMMENTS) {
            self.skip_blanks(flags);
        }
        self.get(self.at)
    }

    /// Skips blanks, returns the current character and advances past it.
    pub(super) fn read(&mut self, flags: Flags) -> char {
        let char = self.peek(flags);
        self.at += 1;
        char
    }

    /// Advances and returns the character there, skipping blanks.
    pub(super) fn next(&mut self, flags: Flags) -> char {
        self.at += 1;
        self.peek(flags)
    }

    /// Returns the character after the current one, and advances past both.
    pub(super) fn skip(&mut self) -> char {
        self.at += 2;
        self.get(self.at - 1)
    }

    fn skip_blanks(&mut self, flags: Flags) {
        loop {
            match self.get(self.at) {
                ' ' | '\t'..='\r' => self.at += 1,
                '#' => {
                    while !self.is_at_end() && !ends_line(self.get(self.at), flags) {
                        self.at += 1;
                    }
                    if self.is_at_end() {
                        return;
                    }
                }
                _ => return,
            }
        }
    }

    /// Returns an error at the last character that was read.
    pub(super) fn wrong(&self, message: impl Into<String>) -> RegexError {
        self.wrong_at(self.at.saturating_sub(1), message)
    }

    /// Returns an error at a character.
    pub(super) fn wrong_at(&self, at: usize, message: impl Into<String>) -> RegexError {
        let last = self.length.saturating_sub(1);
        RegexError {
            message: message.into(),
            at: self.bytes.get(at.min(last)).copied(),
            hint: None,
        }
    }
}

fn ends_line(char: char, flags: Flags) -> bool {
    char == '\n'
        || !flags.has(Flags::UNIX_LINES)
            && matches!(char, '\r' | '\u{85}' | '\u{2028}' | '\u{2029}')
}
