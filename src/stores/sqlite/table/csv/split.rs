//! Splits CSV text into records according to RFC 4180, from a stream and in bounded memory.
//!
//! Fields are places in the buffer: nothing is copied. Quotes count only at the start of a field; a quoted field may
//! span several lines. A problem with one record does not affect the next one, except for a quote that is never closed.

use std::io::Read;

use memchr::{memchr, memchr2, memchr3};

/// Maximum size of a field in bytes.
pub(super) const MAX_FIELD: usize = 16 << 20;
/// Maximum size of all fields of a record in bytes.
const MAX_RECORD: usize = 64 << 20;
const BUFFER: usize = 1 << 20;

/// A field of the record that was read last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Field {
    start: usize,
    end: usize,
    /// The field was quoted.
    pub quoted: bool,
    /// The field contains doubled quotes.
    escaped: bool,
}

/// The outcome of reading a record.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// A complete record.
    Record,
    /// A record with text after a closing quote in this field, counted from 1.
    Torn(usize),
    End,
}

/// The reason why reading cannot continue.
#[derive(Debug)]
pub(super) enum SplitError {
    Io(std::io::Error),
    /// A quote is opened at this line and field, and never closed.
    Unclosed {
        line: u64,
        field: usize,
    },
    /// A field or record is larger than allowed.
    TooLarge {
        line: u64,
        field: usize,
    },
}

/// Reads records from a stream.
pub(super) struct Splitter<R> {
    input: R,
    delimiter: u8,
    buffer: Vec<u8>,
    /// The start of the next record in the buffer.
    start: usize,
    /// The end of the text in the buffer.
    end: usize,
    is_whole: bool,
    /// The line of the next record, counted from 1.
    next_line: u64,
    /// The line of the record that was read last.
    pub line: u64,
    pub fields: Vec<Field>,
}

enum Scan {
    Done {
        next: usize,
        lines: u64,
        torn: Option<usize>,
    },
    /// More input is needed; the current field began here.
    More {
        from: usize,
    },
    Unclosed {
        lines: u64,
    },
}

impl<R: Read> Splitter<R> {
    pub(super) fn new(input: R, delimiter: u8) -> Splitter<R> {
        Splitter {
            input,
            delimiter,
            buffer: Vec::new(),
            start: 0,
            end: 0,
            is_whole: false,
            next_line: 1,
            line: 1,
            fields: Vec::new(),
        }
    }

    /// Reads the next record into [`Splitter::fields`]; an empty line is a record with one empty field.
    pub(super) fn next(&mut self) -> Result<Next, SplitError> {
        loop {
            if self.start == self.end && self.is_whole {
                return Ok(Next::End);
            }
            let scan = match self.start == self.end {
                true => Scan::More { from: self.start },
                false => self.scan(),
            };
            match scan {
                Scan::Done { next, lines, torn } => {
                    if next - self.start > MAX_FIELD
                        && let Some(idx) = self
                            .fields
                            .iter()
                            .position(|field| field.end - field.start > MAX_FIELD)
                    {
                        return Err(SplitError::TooLarge {
                            line: self.next_line,
                            field: idx + 1,
                        });
                    }
                    self.start = next;
                    self.line = self.next_line;
                    self.next_line += lines;
                    return Ok(torn.map_or(Next::Record, Next::Torn));
                }
                Scan::Unclosed { lines } => {
                    return Err(SplitError::Unclosed {
                        line: self.next_line + lines,
                        field: self.fields.len() + 1,
                    });
                }
                Scan::More { from } => {
                    let field = self.end - from;
                    if field > MAX_FIELD || self.end - self.start > MAX_RECORD {
                        return Err(SplitError::TooLarge {
                            line: self.next_line,
                            field: self.fields.len() + 1,
                        });
                    }
                    self.read_more().map_err(SplitError::Io)?;
                }
            }
        }
    }

    /// Returns the text of a field of the last record.
    pub(super) fn bytes(&mut self, idx: usize) -> &[u8] {
        let Some(field) = self.fields.get_mut(idx) else {
            return &[];
        };
        if field.escaped {
            // In place: the text only gets shorter, and the buffer is not scanned again.
            let text = &mut self.buffer[field.start..field.end];
            let mut length = 0;
            let mut at = 0;
            while at < text.len() {
                text[length] = text[at];
                at += if text[at] == b'"' { 2 } else { 1 };
                length += 1;
            }
            field.end = field.start + length;
            field.escaped = false;
        }
        &self.buffer[field.start..field.end]
    }

    /// Returns the complete text of the last record, with its quotes.
    pub(super) fn text(&self) -> &[u8] {
        match (self.fields.first(), self.fields.last()) {
            (Some(first), Some(last)) => &self.buffer[first.start..last.end],
            _ => &[],
        }
    }

    /// Tells whether the last record is an empty line.
    pub(super) fn is_blank(&self) -> bool {
        matches!(self.fields.as_slice(), [only] if only.start == only.end && !only.quoted)
    }

    /// Returns the input stream.
    pub(super) fn into_input(self) -> R {
        self.input
    }

    fn read_more(&mut self) -> std::io::Result<()> {
        if self.start > 0 {
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        if self.buffer.len() - self.end < BUFFER / 2 {
            let more = self.buffer.len().max(BUFFER);
            self.buffer.resize(self.buffer.len() + more, 0);
        }
        loop {
            match self.input.read(&mut self.buffer[self.end..]) {
                Ok(0) => self.is_whole = true,
                Ok(count) => self.end += count,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            }
            return Ok(());
        }
    }

    fn scan(&mut self) -> Scan {
        self.fields.clear();
        let text = &self.buffer[..self.end];
        let delimiter = self.delimiter;
        let mut at = self.start;
        let mut lines = 1;
        let mut torn = None;
        loop {
            let from = at;
            let mut field = Field {
                start: at,
                end: at,
                quoted: false,
                escaped: false,
            };
            if text.get(at) == Some(&b'"') {
                field.quoted = true;
                field.start = at + 1;
                match close(text, at + 1, self.is_whole, &mut field.escaped) {
                    Close::At(end) => field.end = end,
                    Close::More => return Scan::More { from },
                    Close::Never => return Scan::Unclosed { lines: lines - 1 },
                }
                lines += count_lines(&text[field.start..field.end]);
                at = field.end + 1;
                let is_end = text
                    .get(at)
                    .is_none_or(|byte| *byte == delimiter || matches!(byte, b'\r' | b'\n'));
                if !is_end {
                    torn = torn.or(Some(self.fields.len() + 1));
                    at = match memchr2(b'\n', b'\r', &text[at..]) {
                        Some(offset) => at + offset,
                        None if self.is_whole => text.len(),
                        None => return Scan::More { from },
                    };
                }
            } else {
                at = match memchr3(delimiter, b'\n', b'\r', &text[at..]) {
                    Some(offset) => at + offset,
                    None if self.is_whole => text.len(),
                    None => return Scan::More { from },
                };
                field.end = at;
            }
            let byte = text.get(at).copied();
            // A line end may have two bytes, and the second one may not have been read yet.
            let is_cut = byte == Some(b'\r') || byte.is_none();
            if is_cut && at + 1 >= text.len() && !self.is_whole {
                return Scan::More { from };
            }
            self.fields.push(field);
            match byte {
                Some(byte) if byte == delimiter => at += 1,
                Some(b'\r') if text.get(at + 1) == Some(&b'\n') => {
                    return Scan::Done {
                        next: at + 2,
                        lines,
                        torn,
                    };
                }
                Some(_) => {
                    return Scan::Done {
                        next: at + 1,
                        lines,
                        torn,
                    };
                }
                None => {
                    return Scan::Done {
                        next: at,
                        lines,
                        torn,
                    };
                }
            }
        }
    }
}

enum Close {
    At(usize),
    More,
    Never,
}

/// Finds the quote that closes a field.
fn close(text: &[u8], from: usize, is_whole: bool, escaped: &mut bool) -> Close {
    let mut at = from;
    loop {
        let Some(offset) = memchr(b'"', &text[at..]) else {
            return if is_whole { Close::Never } else { Close::More };
        };
        let quote = at + offset;
        match text.get(quote + 1) {
            Some(b'"') => {
                *escaped = true;
                at = quote + 2;
            }
            None if !is_whole => return Close::More,
            _ => return Close::At(quote),
        }
    }
}

/// Counts line ends: `\n`, `\r` and both together.
fn count_lines(text: &[u8]) -> u64 {
    let mut count = 0;
    let mut at = 0;
    while let Some(offset) = memchr2(b'\n', b'\r', &text[at..]) {
        let end = at + offset;
        count += 1;
        let both = text[end] == b'\r' && text.get(end + 1) == Some(&b'\n');
        at = end + if both { 2 } else { 1 };
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns one byte at a time, like the slowest stream.
    struct Drops<'a>(&'a [u8]);

    impl Read for Drops<'_> {
        fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
            let Some((first, rest)) = self.0.split_first() else {
                return Ok(0);
            };
            into[0] = *first;
            self.0 = rest;
            Ok(1)
        }
    }

    fn shown(input: impl Read) -> String {
        let mut splitter = Splitter::new(input, b',');
        let mut out = Vec::new();
        loop {
            let next = match splitter.next() {
                Ok(Next::End) => return out.join(" "),
                Ok(next) => next,
                Err(error) => {
                    out.push(format!("{error:?}"));
                    return out.join(" ");
                }
            };
            let fields: Vec<String> = (0..splitter.fields.len())
                .map(|idx| String::from_utf8_lossy(splitter.bytes(idx)).into_owned())
                .collect();
            let torn = match next {
                Next::Torn(field) => format!("!{field}"),
                _ => String::new(),
            };
            out.push(format!("{}:{fields:?}{torn}", splitter.line));
        }
    }

    #[test]
    fn records_are_split_with_their_line_numbers() {
        let cases = [
            ("", ""),
            ("a", r#"1:["a"]"#),
            ("a,b\n", r#"1:["a", "b"]"#),
            ("a,b\r\nc,d", r#"1:["a", "b"] 2:["c", "d"]"#),
            ("a\rb\r", r#"1:["a"] 2:["b"]"#),
            ("a,\n,", r#"1:["a", ""] 2:["", ""]"#),
            ("a\n\nb", r#"1:["a"] 2:[""] 3:["b"]"#),
            ("\"a,b\",\"c\"\"d\"\n", r#"1:["a,b", "c\"d"]"#),
            ("\"\"\"\"\"\"\n", r#"1:["\"\""]"#),
            ("\"a\nb\r\nc\",d\ne", r#"1:["a\nb\r\nc", "d"] 4:["e"]"#),
            ("a\"b,5\"\n", r#"1:["a\"b", "5\""]"#),
            ("\"a\"b,c\nd", r#"1:["a"]!1 2:["d"]"#),
            ("a,\"b", "Unclosed { line: 1, field: 2 }"),
            (
                "a\n\"\n\"\nb,\"c\nd",
                r#"1:["a"] 2:["\n"] Unclosed { line: 4, field: 2 }"#,
            ),
            ("\"", "Unclosed { line: 1, field: 1 }"),
            ("\"\"", r#"1:[""]"#),
        ];
        for (text, expected) in cases {
            assert_eq!(shown(text.as_bytes()), expected, "{text:?}");
            assert_eq!(shown(Drops(text.as_bytes())), expected, "{text:?} in drops");
        }
    }

    #[test]
    fn an_enormous_field_is_refused_before_it_is_read_into_memory() {
        let endless = std::io::repeat(b'x').take(1 << 40);
        let mut splitter = Splitter::new((&b"a,b\n1,"[..]).chain(endless), b',');
        assert_eq!(splitter.next().unwrap(), Next::Record);
        let error = splitter.next().unwrap_err();
        assert!(
            matches!(error, SplitError::TooLarge { line: 2, field: 2 }),
            "{error:?}"
        );
        assert!(splitter.buffer.len() <= 4 * MAX_FIELD);
    }
}
