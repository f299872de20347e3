//! Positions of the protocol and offsets in a text; addresses and paths.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::str::FromStr as _;

use lsp_types::{Position, Range as LspRange, Uri};

/// How the client counts the characters of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Encoding {
    Utf8,
    #[default]
    Utf16,
}

/// The starts of the lines of a text.
#[derive(Debug, Clone)]
pub(super) struct Lines {
    starts: Vec<usize>,
    encoding: Encoding,
}

impl Lines {
    pub(super) fn new(text: &str, encoding: Encoding) -> Lines {
        let bytes = text.as_bytes();
        let mut starts = vec![0];
        for (at, byte) in bytes.iter().enumerate() {
            let is_end = *byte == b'\n' || *byte == b'\r' && bytes.get(at + 1) != Some(&b'\n');
            if is_end {
                starts.push(at + 1);
            }
        }
        Lines { starts, encoding }
    }

    /// Returns the offset of a position; a position behind the end of a line or of the text is moved there.
    pub(super) fn offset(&self, text: &str, position: Position) -> usize {
        let line = position.line as usize;
        let Some(&start) = self.starts.get(line) else {
            return text.len();
        };
        let end = self.starts.get(line + 1).copied().unwrap_or(text.len());
        let line = text[start..end].trim_end_matches(['\n', '\r']);
        let mut left = position.character as usize;
        for (at, char) in line.char_indices() {
            let width = self.width(char);
            if left < width {
                return start + at;
            }
            left -= width;
        }
        start + line.len()
    }

    /// Returns the position of an offset.
    pub(super) fn position(&self, text: &str, offset: usize) -> Position {
        let mut offset = offset.min(text.len());
        while !text.is_char_boundary(offset) {
            offset -= 1;
        }
        let line = self
            .starts
            .partition_point(|start| *start <= offset)
            .saturating_sub(1);
        let before = &text[self.starts[line]..offset];
        let character: usize = before.chars().map(|char| self.width(char)).sum();
        Position::new(number(line), number(character))
    }

    pub(super) fn range(&self, text: &str, range: Range<usize>) -> LspRange {
        LspRange::new(
            self.position(text, range.start),
            self.position(text, range.end),
        )
    }

    /// Returns the length of a text in the units of the client.
    pub(super) fn length(&self, text: &str) -> usize {
        text.chars().map(|char| self.width(char)).sum()
    }

    fn width(&self, char: char) -> usize {
        match self.encoding {
            Encoding::Utf8 => char.len_utf8(),
            Encoding::Utf16 => char.len_utf16(),
        }
    }
}

fn number(value: usize) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}

/// Returns the path of an address that begins with `file:`.
pub(super) fn path_of(uri: &Uri) -> Option<PathBuf> {
    let rest = uri.as_str().strip_prefix("file://")?;
    let path = &rest[rest.find('/')?..];
    let path = path.split(['?', '#']).next()?;
    Some(PathBuf::from(decoded(path)?))
}

/// Returns the address of an absolute path.
pub(super) fn uri_of(path: &Path) -> Option<Uri> {
    let mut out = String::from("file://");
    for byte in path.to_str()?.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'-' | b'_' | b'.' | b'~' => {
                out.push(char::from(byte))
            }
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    Uri::from_str(&out).ok()
}

fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let digits = [rest.next()?, rest.next()?].map(char::from);
        let value = digits
            .iter()
            .try_fold(0, |sum, digit| Some(sum * 16 + digit.to_digit(16)?))?;
        bytes.push(u8::try_from(value).ok()?);
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_count_utf16_units_or_bytes() {
        let text = "a\u{1F600}b\r\nü c\n";
        let lines = Lines::new(text, Encoding::Utf16);
        assert_eq!(lines.offset(text, Position::new(0, 3)), 5);
        assert_eq!(lines.position(text, 5), Position::new(0, 3));
        assert_eq!(
            lines.offset(text, Position::new(0, 2)),
            1,
            "the middle of a character"
        );
        assert_eq!(lines.offset(text, Position::new(0, 99)), 6);
        assert_eq!(lines.offset(text, Position::new(1, 1)), 10);
        assert_eq!(lines.offset(text, Position::new(9, 0)), text.len());
        let lines = Lines::new(text, Encoding::Utf8);
        assert_eq!(lines.offset(text, Position::new(0, 5)), 5);
        assert_eq!(lines.position(text, 10), Position::new(1, 2));
    }

    #[test]
    fn every_position_of_a_text_leads_back() {
        for encoding in [Encoding::Utf8, Encoding::Utf16] {
            let text = "(a\rb)\n\né字\u{1F600} x";
            let lines = Lines::new(text, encoding);
            for (offset, _) in text.char_indices() {
                assert_eq!(lines.offset(text, lines.position(text, offset)), offset);
            }
        }
    }

    #[test]
    fn addresses_and_paths_agree() {
        let path = Path::new("/a b/ü%/c.edn");
        let uri = uri_of(path).expect("an address");
        assert_eq!(uri.as_str(), "file:///a%20b/%C3%BC%25/c.edn");
        assert_eq!(path_of(&uri).as_deref(), Some(path));
        let remote = Uri::from_str("untitled:Untitled-1").expect("an address");
        assert_eq!(path_of(&remote), None);
    }
}
