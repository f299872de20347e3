//! Scanning of bytes: blanks, ends of tokens, and starts of the next ones.

use memchr::memchr2;

use super::Reader;

const BLANK: u8 = 1;
const END: u8 = 2;
const WIDE: u8 = 4;

/// The class of each byte: blank, end of a token, or part of a non-ASCII character.
static CLASS: [u8; 256] = classes();

const fn classes() -> [u8; 256] {
    let mut table = [0; 256];
    let blank = b" \t\n\r\x0b\x0c\x1c\x1d\x1e\x1f,";
    let mut idx = 0;
    while idx < blank.len() {
        table[blank[idx] as usize] = BLANK | END;
        idx += 1;
    }
    let end = b"()[]{}\";@^`~\\";
    idx = 0;
    while idx < end.len() {
        table[end[idx] as usize] = END;
        idx += 1;
    }
    idx = 0x80;
    while idx < 256 {
        table[idx] = WIDE;
        idx += 1;
    }
    table
}

/// Tells whether a character separates forms: a comma, or whitespace as Java counts it.
pub(crate) fn is_blank(char: char) -> bool {
    match char {
        '\0'..='\x7f' => CLASS[char as usize] & BLANK != 0,
        // A byte order mark in the middle of a text results from joining files.
        '\u{feff}' => true,
        '\u{a0}' | '\u{2007}' | '\u{202f}' | '\u{85}' => false,
        _ => char.is_whitespace(),
    }
}

impl<'a> Reader<'a> {
    /// Skips whitespace, commas and comments.
    pub(super) fn skip_blank(&mut self) {
        let bytes = self.text.as_bytes();
        while let Some(&byte) = bytes.get(self.at) {
            let class = CLASS[usize::from(byte)];
            if class & BLANK != 0 {
                self.at += 1;
            } else if byte == b';' || (byte == b'#' && self.byte(1) == Some(b'!') && self.is_code())
            {
                self.skip_line();
            } else if class & WIDE != 0 {
                match self.text[self.at..].chars().next() {
                    Some(char) if is_blank(char) => self.at += char.len_utf8(),
                    _ => return,
                }
            } else {
                return;
            }
        }
    }

    fn skip_line(&mut self) {
        let rest = &self.text.as_bytes()[self.at..];
        self.at = memchr2(b'\n', b'\r', rest).map_or(self.text.len(), |line| self.at + line);
    }

    /// Returns the token from byte `start` on, up to the next blank or delimiter, without advancing.
    #[inline]
    pub(super) fn token_from(&self, start: usize) -> &'a str {
        let bytes = self.text.as_bytes();
        let mut end = start;
        while let Some(&byte) = bytes.get(end) {
            let class = CLASS[usize::from(byte)];
            if class == 0 {
                end += 1;
            } else if class & WIDE != 0 {
                match self.text[end..].chars().next() {
                    Some(char) if !is_blank(char) => end += char.len_utf8(),
                    _ => break,
                }
            } else {
                break;
            }
        }
        &self.text[start..end]
    }
}
