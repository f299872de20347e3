//! Values to EDN text.

use std::fmt::Write;
use std::ops::Range;

use flowstone_lang::value::{
    BigDecimal, Exception, Keyword, Lazy, Object, SeqView, Value, is_written_within, number,
};
use sha2::{Digest, Sha256};

use super::{CodecError, text};

/// Maximum depth of a value; deeper values are refused, because reading them back recurses.
pub(super) const DEPTH_LIMIT: usize = 400;

/// Writes a value as EDN text. Sequences become lists, records become maps, metadata is omitted.
///
/// # Errors
/// When the value, or a part of it, is not data; the error names the part.
pub fn encode(value: &Value) -> Result<String, CodecError> {
    write(value, false)
}

/// Writes a text as EDN, with its quotes.
pub fn encode_text(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    write_text(&mut out, text);
    out
}

/// Writes a value so that equal values give equal text: entries of maps and sets are sorted. Functions, which cannot be
/// compared, are all written the same.
///
/// # Errors
/// When the value is nested too deeply.
pub fn canonical(value: &Value) -> Result<String, CodecError> {
    write(value, true)
}

/// Maximum size of a text in bytes; a larger one is refused.
const MOST_TEXT: u64 = 500_000_000;
/// Number of bytes written before the size of the whole value is estimated: most values are smaller.
const SMALL_TEXT: usize = 1_000_000;

/// Size in bytes of most configs and results.
const USUAL_TEXT: usize = 96;

fn write(value: &Value, canonical: bool) -> Result<String, CodecError> {
    let mut writer = Writer {
        out: String::with_capacity(USUAL_TEXT),
        depth: 0,
        path: Vec::new(),
        canonical,
        root: Some(value),
    };
    match writer.value(value) {
        Ok(()) => Ok(writer.out),
        Err(CodecError::NotData { kind, .. }) => {
            writer.path.reverse();
            let path = format!("[{}]", writer.path.join(" "));
            Err(CodecError::NotData { kind, path })
        }
        Err(error) => Err(error),
    }
}

/// Returns the hash of a value's canonical text.
///
/// # Errors
/// As [`canonical`].
pub fn digest(value: &Value) -> Result<String, CodecError> {
    let mut text = digest_bytes(canonical(value)?.as_bytes());
    text.truncate(32);
    Ok(text)
}

/// Returns the SHA-256 of bytes, in lower-case hexadecimal.
pub fn digest_bytes(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// Computes the SHA-256 of bytes that arrive in parts.
#[derive(Clone, Default)]
pub struct Digester(Sha256);

impl Digester {
    pub fn add(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// Returns the hash in the form of [`digest_bytes`].
    pub fn finish(self) -> String {
        hex(&self.0.finalize())
    }
}

pub(super) fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |half: u8| char::from(DIGITS[usize::from(half & 15)]);
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        text.push(digit(byte >> 4));
        text.push(digit(*byte));
    }
    text
}

struct Writer<'v> {
    out: String,
    /// How many collections contain the part that is being written.
    depth: usize,
    /// The keys and indices that lead to a part that is not data, from the inside out. Empty until one is found.
    path: Vec<String>,
    canonical: bool,
    /// The whole value, until its size has been estimated.
    root: Option<&'v Value>,
}

impl Writer<'_> {
    fn value(&mut self, value: &Value) -> Result<(), CodecError> {
        if self.out.len() > SMALL_TEXT
            && let Some(root) = self.root.take()
            && !is_written_within(root, MOST_TEXT)
        {
            return Err(CodecError::TooLarge);
        }
        match value {
            Value::Nil => self.out.push_str("nil"),
            Value::Bool(bool) => self.push(bool),
            Value::Int(int) => self.push(int),
            Value::Float(float) => self.float(*float),
            Value::Char(char) => self.char(*char),
            Value::Keyword(keyword) => self.keyword(*keyword),
            Value::Symbol(symbol) => self.symbol(&symbol.to_string()),
            Value::Name(name) => self.symbol(&name.symbol.to_string()),
            Value::Text(text) => write_text(&mut self.out, text),
            Value::Vector(vector) => self.items('[', ']', vector.iter())?,
            Value::Map(map) => self.entries(map.iter())?,
            Value::Record(record) => self.entries(record.fields.iter())?,
            Value::Set(set) => self.set(set.iter())?,
            Value::List(_) | Value::Seq(_) | Value::Lazy(_) => self.sequence(value)?,
            Value::BigInt(int) => {
                number::write_big(&mut self.out, int);
                self.out.push('N');
            }
            Value::Ratio(ratio) => number::write_ratio(&mut self.out, ratio),
            Value::Decimal(decimal) => self.decimal(decimal),
            Value::Exception(exception) => self.exception(exception)?,
            Value::Object(object) => self.object(object)?,
            Value::Native(_) | Value::Fn(_) | Value::Var(_) | Value::Atom(_) => {
                self.not_data(value.kind())?;
            }
        }
        Ok(())
    }

    fn push(&mut self, part: impl std::fmt::Display) {
        let _ = write!(self.out, "{part}");
    }

    fn not_data(&mut self, kind: &str) -> Result<(), CodecError> {
        if self.canonical {
            self.out.push_str("#fn");
            return Ok(());
        }
        Err(CodecError::NotData {
            kind: kind.to_owned(),
            path: String::new(),
        })
    }

    fn nested(&mut self, step: impl FnOnce() -> String, value: &Value) -> Result<(), CodecError> {
        if self.depth >= DEPTH_LIMIT {
            return Err(CodecError::TooDeep { limit: DEPTH_LIMIT });
        }
        self.depth += 1;
        let result = self.value(value);
        self.depth -= 1;
        if result.is_err() {
            self.path.push(step());
        }
        result
    }

    fn float(&mut self, float: f64) {
        if float.is_nan() {
            self.out.push_str("##NaN");
        } else if float.is_infinite() {
            self.out
                .push_str(if float > 0.0 { "##Inf" } else { "##-Inf" });
        } else {
            let _ = write!(self.out, "{float:?}");
        }
    }

    fn decimal(&mut self, decimal: &BigDecimal) {
        let (digits, scale) = decimal.as_bigint_and_exponent();
        number::write_big(&mut self.out, &digits);
        if scale != 0 {
            let _ = write!(self.out, "E{}", -i128::from(scale));
        }
        self.out.push('M');
    }

    fn char(&mut self, char: char) {
        self.out.push('\\');
        match char {
            '\n' => self.out.push_str("newline"),
            '\r' => self.out.push_str("return"),
            '\t' => self.out.push_str("tab"),
            ' ' => self.out.push_str("space"),
            char if char.is_ascii_graphic() || char.is_alphanumeric() => self.out.push(char),
            char => {
                let _ = write!(self.out, "u{:04x}", u32::from(char));
            }
        }
    }

    fn keyword(&mut self, keyword: Keyword) {
        let start = self.out.len();
        keyword.write_to(&mut self.out);
        if !is_plain(&self.out[start + 1..]) {
            let written = self.out.split_off(start);
            self.out.push_str("#flowstone/keyword ");
            write_text(&mut self.out, &written[1..]);
        }
    }

    fn symbol(&mut self, name: &str) {
        let digits = name.strip_prefix(['-', '+']).unwrap_or(name);
        let like_number = digits.starts_with(|char: char| char.is_ascii_digit());
        let taken = matches!(name, "nil" | "true" | "false");
        if is_plain(name) && !like_number && !taken && !name.starts_with(':') {
            self.out.push_str(name);
        } else {
            self.out.push_str("#flowstone/symbol ");
            write_text(&mut self.out, name);
        }
    }

    fn items<'a>(
        &mut self,
        open: char,
        close: char,
        items: impl Iterator<Item = &'a Value>,
    ) -> Result<(), CodecError> {
        self.out.push(open);
        for (idx, item) in items.enumerate() {
            if idx > 0 {
                self.out.push(' ');
            }
            self.nested(|| idx.to_string(), item)?;
        }
        self.out.push(close);
        Ok(())
    }

    fn entries<'a>(
        &mut self,
        entries: impl Iterator<Item = (&'a Value, &'a Value)>,
    ) -> Result<(), CodecError> {
        let mut texts = Vec::new();
        self.out.push('{');
        for (idx, (key, value)) in entries.enumerate() {
            if idx > 0 {
                self.out.push(' ');
            }
            let start = self.out.len();
            self.nested(|| "<key>".to_owned(), key)?;
            self.out.push(' ');
            self.nested(|| brief(key), value)?;
            if self.canonical {
                texts.push(start..self.out.len());
            }
        }
        self.sort(texts);
        self.out.push('}');
        Ok(())
    }

    fn set<'a>(&mut self, items: impl Iterator<Item = &'a Value>) -> Result<(), CodecError> {
        let mut texts = Vec::new();
        self.out.push_str("#{");
        for (idx, item) in items.enumerate() {
            if idx > 0 {
                self.out.push(' ');
            }
            let start = self.out.len();
            self.nested(|| "<item>".to_owned(), item)?;
            if self.canonical {
                texts.push(start..self.out.len());
            }
        }
        self.sort(texts);
        self.out.push('}');
        Ok(())
    }

    /// Sorts the texts at the end of a canonical text, which single spaces separate.
    fn sort(&mut self, mut texts: Vec<Range<usize>>) {
        let Some(first) = texts.first().map(|text| text.start) else {
            return;
        };
        if !self.canonical {
            return;
        }
        let out = &self.out;
        if texts.is_sorted_by(|one, other| out[one.clone()] <= out[other.clone()]) {
            return;
        }
        texts.sort_unstable_by(|one, other| out[one.clone()].cmp(&out[other.clone()]));
        let mut sorted = String::with_capacity(out.len() - first);
        for (idx, text) in texts.into_iter().enumerate() {
            if idx > 0 {
                sorted.push(' ');
            }
            sorted.push_str(&out[text]);
        }
        self.out.truncate(first);
        self.out.push_str(&sorted);
    }

    fn sequence(&mut self, value: &Value) -> Result<(), CodecError> {
        self.out.push('(');
        let mut rest = value.clone();
        let mut idx = 0;
        while let Some((first, after)) = split(&rest)? {
            if idx > 0 {
                self.out.push(' ');
            }
            self.nested(|| idx.to_string(), &first)?;
            rest = after;
            idx += 1;
        }
        self.out.push(')');
        Ok(())
    }

    fn exception(&mut self, exception: &Exception) -> Result<(), CodecError> {
        let hints = exception
            .hints
            .iter()
            .map(|hint| Value::from(hint.as_str()));
        let fields = Value::map([
            (
                Value::keyword("class"),
                Value::from(exception.class.0.full_name),
            ),
            (Value::keyword("code"), Value::from(exception.code)),
            (
                Value::keyword("message"),
                exception.message.as_deref().map_or(Value::Nil, Value::from),
            ),
            (Value::keyword("data"), exception.data.clone()),
            (Value::keyword("cause"), exception.cause.clone()),
            (Value::keyword("hints"), Value::vector(hints)),
        ]);
        self.out.push_str("#flowstone/error ");
        self.nested(|| "<error>".to_owned(), &fields)
    }

    fn object(&mut self, object: &Object) -> Result<(), CodecError> {
        match object {
            Object::Regex { source, .. } => {
                self.out.push_str("#flowstone/regex ");
                write_text(&mut self.out, source);
            }
            Object::Inst(millis) => {
                let _ = write!(self.out, "#inst \"{}\"", text::instant(*millis));
            }
            Object::Uuid(bits) => {
                let _ = write!(self.out, "#uuid \"{}\"", text::uuid(*bits));
            }
            Object::Tagged { tag, form } => {
                self.push(format_args!("#{tag} "));
                self.nested(|| "<tagged>".to_owned(), form)?;
            }
            Object::Bytes(bytes) => {
                let _ = write!(self.out, "#flowstone/bytes \"{}\"", hex(bytes));
            }
            Object::Queue { items, taken, .. } => {
                self.items('(', ')', items.iter().skip(*taken))?;
            }
            Object::Array(_) if let Some(bytes) = object.as_bytes() => {
                let _ = write!(self.out, "#flowstone/bytes \"{}\"", hex(&bytes));
            }
            Object::Conditional { .. }
            | Object::Array(_)
            | Object::Volatile(_)
            | Object::Delay(_)
            | Object::Namespace(_)
            | Object::Reduced(_)
            | Object::Stop(_)
            | Object::Transient(_)
            | Object::Class(_)
            | Object::RecordType(_)
            | Object::Host { .. }
            | Object::Function(_)
            | Object::Instance(_)
            | Object::HostObject(_)
            | Object::State(_)
            | Object::Unbound(_) => self.not_data(object.kind())?,
        }
        Ok(())
    }
}

/// Splits the realised part of a sequence into its first item and the rest.
fn split(rest: &Value) -> Result<Option<(Value, Value)>, CodecError> {
    Ok(match rest {
        Value::Nil => None,
        Value::List(list) if list.is_empty() => None,
        Value::List(list) => Some((list.first.clone(), list.rest.clone())),
        Value::Seq(view) => Some((SeqView::first(view), SeqView::rest(view))),
        Value::Lazy(lazy) => match Lazy::realised(lazy) {
            Some(seq) => split(&seq)?,
            None => return Err(CodecError::Unrealised),
        },
        Value::Vector(vector) => {
            let items: Vec<Value> = vector.iter().cloned().collect();
            split(&Value::list(items))?
        }
        _ => return Err(CodecError::Unrealised),
    })
}

fn is_plain(name: &str) -> bool {
    let plain = |byte: u8| {
        byte.is_ascii_alphanumeric()
            || matches!(byte, b'!' | b'#'..=b'\'' | b'*' | b'+' | b'-'..=b':' | b'<'..=b'?')
            || matches!(byte, b'_' | b'|' | 0x80..)
    };
    let bytes = name.as_bytes();
    !matches!(bytes, [] | [b'#' | b'/', ..] | [.., b':' | b'/'])
        && bytes.iter().copied().all(plain)
        && !bytes.windows(2).any(|two| two == b"//")
        && (name.is_ascii()
            || !name
                .chars()
                .any(|char| !char.is_ascii() && (char.is_whitespace() || char.is_control())))
        || name == "/"
}

fn brief(key: &Value) -> String {
    match key {
        Value::Keyword(keyword) => keyword.to_string(),
        Value::Text(text) => format!("\"{}\"", &***text),
        Value::Int(int) => int.to_string(),
        other => other.kind().to_owned(),
    }
}

fn write_text(out: &mut String, text: &str) {
    out.reserve(text.len() + 2);
    out.push('"');
    let (mut written, mut at) = (0, 0);
    while let Some(byte) = text.as_bytes().get(at) {
        if !MAY_NEED_ESCAPE[usize::from(*byte)] {
            at += 1;
            continue;
        }
        out.push_str(&text[written..at]);
        if matches!(byte, b'"' | b'\\') {
            // The character itself is written with those after it.
            out.push('\\');
            written = at;
            at += 1;
            continue;
        }
        if let Some(char) = text[at..].chars().next() {
            write_control(out, char);
            at += char.len_utf8();
        }
        written = at;
    }
    out.push_str(&text[written..]);
    out.push('"');
}

/// Writes a character of a text that is not plain.
fn write_control(out: &mut String, char: char) {
    match char {
        '\n' => out.push_str("\\n"),
        '\r' => out.push_str("\\r"),
        '\t' => out.push_str("\\t"),
        char if char.is_control() => {
            let _ = write!(out, "\\u{:04x}", u32::from(char));
        }
        char => out.push(char),
    }
}

/// Whether a byte of a text may begin a character that is escaped: quotes, backslashes and control characters, of which
/// those above U+007F begin with `0xC2`.
const MAY_NEED_ESCAPE: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = byte < 0x20 || matches!(byte, 0x22 | 0x5c | 0x7f | 0xc2);
        byte += 1;
    }
    table
};
