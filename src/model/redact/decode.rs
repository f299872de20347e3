//! One level of escapes in text, decoded: those of addresses, of JSON and EDN, and of HTML. Each decoded byte is mapped
//! back to its place in the text, so that a secret found in decoded text can be replaced in the original.

use super::{Span, html_name};

/// Maximum length of an escape: two `\u` escapes, or the longest name in HTML with its delimiters.
const LONGEST: usize = 34;

/// Text after one level of decoding.
pub(super) struct Decoded {
    pub bytes: Vec<u8>,
    escapes: Vec<Escape>,
    /// Where an escape begins that the end of the text may have cut.
    pub open: Option<usize>,
}

/// An escape and what it decodes to.
struct Escape {
    /// Its place in the decoded text.
    at: usize,
    /// Its place in the original text.
    from: usize,
    decoded: u8,
    length: u8,
}

/// Characters that an escape stands for, and its length in bytes.
struct Found {
    decoded: Bytes,
    length: usize,
}

/// The UTF-8 form of a character, or one byte of it.
struct Bytes {
    bytes: [u8; 4],
    count: usize,
}

enum Reading {
    Escape(Found),
    /// The text ends before the escape does.
    Cut,
    Other,
}

/// Decodes one level of escapes. Anything else is copied.
pub(super) fn decode(text: &[u8]) -> Decoded {
    let mut decoded = Decoded {
        bytes: Vec::new(),
        escapes: Vec::new(),
        open: None,
    };
    let mut copied = 0;
    for from in memchr::memchr3_iter(b'%', b'\\', b'&', text) {
        if from < copied {
            continue;
        }
        let found = match read(&text[from..text.len().min(from + LONGEST)]) {
            Reading::Escape(found) => found,
            Reading::Cut if text.len() - from < LONGEST => {
                decoded.open = decoded.open.or(Some(from));
                continue;
            }
            Reading::Cut | Reading::Other => continue,
        };
        decoded.bytes.extend_from_slice(&text[copied..from]);
        decoded.escapes.push(Escape {
            at: decoded.bytes.len(),
            from,
            decoded: found.decoded.count as u8,
            length: found.length as u8,
        });
        let bytes = &found.decoded.bytes[..found.decoded.count];
        decoded.bytes.extend_from_slice(bytes);
        copied = from + found.length;
    }
    if !decoded.escapes.is_empty() {
        decoded.bytes.extend_from_slice(&text[copied..]);
    }
    decoded
}

impl Decoded {
    /// Tells whether the text has no escapes. `bytes` is empty then.
    pub(super) fn is_unchanged(&self) -> bool {
        self.escapes.is_empty()
    }

    /// Leaves out the escape that the end of the text may have cut.
    pub(super) fn without_cut(mut self, text: &[u8]) -> Decoded {
        let left = self.open.map_or(0, |open| text.len() - open);
        if self.is_unchanged() {
            self.bytes = text.to_vec();
        }
        self.bytes.truncate(self.bytes.len() - left);
        self
    }

    /// Returns the place in the original text of a place in the decoded text.
    pub(super) fn source_of(&self, at: usize) -> usize {
        self.place(at, |escape| escape.from)
    }

    /// Returns the span in the original text of a span in the decoded text.
    pub(super) fn source(&self, span: Span) -> Span {
        let start = self.source_of(span.start);
        let end = match span.end.checked_sub(1) {
            Some(last) => {
                let within = |escape: &Escape| escape.from + usize::from(escape.length) - 1;
                self.place(last, within) + 1
            }
            None => start,
        };
        Span { start, end }
    }

    /// Maps a place; `within` decides for places inside an escape.
    fn place(&self, at: usize, within: impl Fn(&Escape) -> usize) -> usize {
        let before = self.escapes.partition_point(|escape| escape.at <= at);
        let Some(escape) = before.checked_sub(1).map(|idx| &self.escapes[idx]) else {
            return at;
        };
        match at - escape.at {
            inside if inside < usize::from(escape.decoded) => within(escape),
            after => {
                escape.from + usize::from(escape.length) + (after - usize::from(escape.decoded))
            }
        }
    }
}

fn read(text: &[u8]) -> Reading {
    match text[0] {
        b'%' => percent(text),
        b'\\' => backslash(text),
        _ => reference(text),
    }
}

/// Reads `%C3`.
fn percent(text: &[u8]) -> Reading {
    match hex(text, 1, 2) {
        Ok(code) => Reading::Escape(Found {
            decoded: Bytes {
                bytes: [code as u8, 0, 0, 0],
                count: 1,
            },
            length: 3,
        }),
        Err(reading) => reading,
    }
}

/// Reads `\n`, `\"` or `\u00e9`; of a character outside the basic plane, both halves.
fn backslash(text: &[u8]) -> Reading {
    let Some(second) = text.get(1) else {
        return Reading::Cut;
    };
    let char = match second {
        b'"' | b'\'' | b'/' | b'\\' => char::from(*second),
        b'b' => '\u{8}',
        b'f' => '\u{c}',
        b'n' => '\n',
        b'r' => '\r',
        b't' => '\t',
        b'u' => return unicode(text),
        _ => return Reading::Other,
    };
    found(char, 2)
}

fn unicode(text: &[u8]) -> Reading {
    let high = match hex(text, 2, 4) {
        Ok(unit) => unit,
        Err(reading) => return reading,
    };
    if let Some(char) = char::from_u32(high) {
        return found(char, 6);
    }
    if !text[6..]
        .iter()
        .zip(br"\u")
        .all(|(is, wanted)| is == wanted)
    {
        return Reading::Other;
    }
    let low = match hex(text, 8, 4) {
        Ok(unit) => unit,
        Err(reading) => return reading,
    };
    let pair = [high as u16, low as u16];
    match char::decode_utf16(pair).next() {
        Some(Ok(char)) => found(char, 12),
        Some(Err(_)) | None => Reading::Other,
    }
}

/// Reads `&#233;`, `&#xe9;` or `&eacute;`.
fn reference(text: &[u8]) -> Reading {
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'#';
    let length = text[1..].iter().take_while(|byte| is_part(byte)).count();
    let Some(end) = text.get(length + 1) else {
        return Reading::Cut;
    };
    let name = std::str::from_utf8(&text[1..=length]).unwrap_or_default();
    let char = match name.strip_prefix('#') {
        _ if *end != b';' => None,
        Some(code) => match code.strip_prefix(['x', 'X']) {
            Some(code) => u32::from_str_radix(code, 16).ok(),
            None => code.parse().ok(),
        }
        .and_then(char::from_u32),
        None => html_name::char_of(name),
    };
    char.map_or(Reading::Other, |char| found(char, length + 2))
}

fn found(char: char, length: usize) -> Reading {
    let mut bytes = [0; 4];
    let count = char.encode_utf8(&mut bytes).len();
    Reading::Escape(Found {
        decoded: Bytes { bytes, count },
        length,
    })
}

/// Reads hexadecimal digits at a place.
fn hex(text: &[u8], at: usize, count: usize) -> Result<u32, Reading> {
    let mut code = 0;
    for idx in at..at + count {
        let Some(byte) = text.get(idx) else {
            return Err(Reading::Cut);
        };
        let digit = char::from(*byte).to_digit(16).ok_or(Reading::Other)?;
        code = code * 16 + digit;
    }
    Ok(code)
}
