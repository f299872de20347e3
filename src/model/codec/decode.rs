//! Text back to values. Reads what [`super::encode`] writes in this version and in all earlier ones.

use flowstone_lang::value::number::parse_big;
use flowstone_lang::value::{
    BigDecimal, BigInt, BigRational, Class, Exception, Object, Symbol, Value,
};

use super::encode::DEPTH_LIMIT;
use super::{CodecError, text};

/// Reads a single value.
///
/// # Errors
/// When the text is not one that `encode` writes.
pub fn decode(text: &str) -> Result<Value, CodecError> {
    let mut reader = Reader {
        text,
        at: 0,
        depth: 0,
    };
    let value = reader.value()?;
    reader.space();
    if reader.at < text.len() {
        return Err(reader.unreadable("more than one value"));
    }
    Ok(value)
}

/// Reads values that follow one another.
///
/// # Errors
/// As [`decode`].
pub fn decode_all(text: &str) -> Result<Vec<Value>, CodecError> {
    let mut reader = Reader {
        text,
        at: 0,
        depth: 0,
    };
    let mut values = Vec::new();
    loop {
        reader.space();
        if reader.at >= text.len() {
            return Ok(values);
        }
        values.push(reader.value()?);
    }
}

/// Returns the entries of a map as their keys and the texts of their values, without reading the values. `path`: the keys,
/// each a keyword's name, that lead from the outermost map to this one. `None` if there is no map at that path.
///
/// # Errors
/// When the text up to the end of the map is not one that `encode` writes. The values themselves are not checked.
pub fn entries_at<'a>(
    text: &'a str,
    path: &[&str],
) -> Result<Option<Vec<(Value, &'a str)>>, CodecError> {
    let mut reader = Reader {
        text,
        at: 0,
        depth: 0,
    };
    for name in path {
        if !reader.descend(name)? {
            return Ok(None);
        }
    }
    reader.space();
    match reader.peek() {
        Some(b'{') => reader.entries().map(Some),
        Some(_) | None => Ok(None),
    }
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
}

impl<'a> Reader<'a> {
    fn unreadable(&self, what: &str) -> CodecError {
        CodecError::Unreadable {
            detail: format!("{what} at byte {}", self.at),
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b',' | b'\n' | b'\t' | b'\r')) {
            self.at += 1;
        }
    }

    fn value(&mut self) -> Result<Value, CodecError> {
        self.space();
        match self.peek() {
            None => Err(self.unreadable("nothing")),
            Some(b'"') => Ok(Value::from(self.string()?)),
            Some(b'[') => Ok(Value::vector(self.items(b']')?)),
            Some(b'(') => Ok(Value::list(self.items(b')')?)),
            Some(b'{') => self.map(),
            Some(b'\\') => self.char(),
            Some(b':') => {
                let token = self.token();
                Ok(Value::keyword(&token[1..]))
            }
            Some(b'#') => self.dispatch(),
            Some(_) => self.atom(),
        }
    }

    fn items(&mut self, close: u8) -> Result<Vec<Value>, CodecError> {
        self.depth += 1;
        if self.depth > DEPTH_LIMIT + 8 {
            return Err(CodecError::TooDeep { limit: DEPTH_LIMIT });
        }
        self.at += 1;
        let mut items = Vec::new();
        loop {
            self.space();
            match self.peek() {
                None => return Err(self.unreadable("unexpected end of text")),
                Some(byte) if byte == close => break,
                Some(_) => items.push(self.value()?),
            }
        }
        self.at += 1;
        self.depth -= 1;
        Ok(items)
    }

    fn map(&mut self) -> Result<Value, CodecError> {
        let items = self.items(b'}')?;
        if items.len() % 2 != 0 {
            return Err(self.unreadable("key without a value"));
        }
        let mut items = items.into_iter();
        let mut entries = Vec::with_capacity(items.len() / 2);
        while let (Some(key), Some(value)) = (items.next(), items.next()) {
            entries.push((key, value));
        }
        Ok(Value::map(entries))
    }

    /// Moves to the value of a keyword in the map that begins here. Returns false if this is not a map, or has no such key.
    fn descend(&mut self, name: &str) -> Result<bool, CodecError> {
        self.space();
        if self.peek() != Some(b'{') {
            return Ok(false);
        }
        self.at += 1;
        loop {
            self.space();
            match self.peek() {
                None => return Err(self.unreadable("unexpected end of text")),
                Some(b'}') => return Ok(false),
                Some(b':') if self.token()[1..] == *name => return Ok(true),
                Some(b':') => {}
                Some(_) => self.skip()?,
            }
            self.skip()?;
        }
    }

    fn entries(&mut self) -> Result<Vec<(Value, &'a str)>, CodecError> {
        self.at += 1;
        let mut entries = Vec::new();
        loop {
            self.space();
            match self.peek() {
                None => return Err(self.unreadable("unexpected end of text")),
                Some(b'}') => return Ok(entries),
                Some(_) => {}
            }
            let key = self.value()?;
            self.space();
            let start = self.at;
            self.skip()?;
            entries.push((key, &self.text[start..self.at]));
        }
    }

    /// Moves behind the next value without reading it.
    fn skip(&mut self) -> Result<(), CodecError> {
        self.space();
        match self.peek() {
            None => Err(self.unreadable("nothing")),
            Some(b'"') => self.skip_string(),
            Some(b'[' | b'(' | b'{') => self.skip_items(),
            Some(b'\\') => self.char().map(drop),
            Some(b'#') if self.text.as_bytes().get(self.at + 1) == Some(&b'{') => {
                self.at += 1;
                self.skip_items()
            }
            Some(b'#') => {
                let is_number = self.token().starts_with("##");
                match is_number {
                    true => Ok(()),
                    false => self.nested(Reader::skip),
                }
            }
            Some(_) => match self.token() {
                "" => Err(self.unreadable("unexpected character")),
                _ => Ok(()),
            },
        }
    }

    /// Moves behind a collection. Only its brackets are counted: what is inside is not checked.
    fn skip_items(&mut self) -> Result<(), CodecError> {
        let bytes = self.text.as_bytes();
        let outer = self.depth;
        while let Some(byte) = bytes.get(self.at) {
            match byte {
                b'"' => {
                    self.skip_string()?;
                    continue;
                }
                // A character, which may be a bracket.
                b'\\' => self.at += 1,
                b'[' | b'(' | b'{' => self.depth += 1,
                b']' | b')' | b'}' => self.depth -= 1,
                _ => {}
            }
            self.at += 1;
            if self.depth == outer {
                return Ok(());
            }
            if self.depth > DEPTH_LIMIT + 8 {
                return Err(CodecError::TooDeep { limit: DEPTH_LIMIT });
            }
        }
        Err(self.unreadable("unexpected end of text"))
    }

    fn nested(
        &mut self,
        inside: impl FnOnce(&mut Self) -> Result<(), CodecError>,
    ) -> Result<(), CodecError> {
        self.depth += 1;
        if self.depth > DEPTH_LIMIT + 8 {
            return Err(CodecError::TooDeep { limit: DEPTH_LIMIT });
        }
        inside(self)?;
        self.depth -= 1;
        Ok(())
    }

    fn skip_string(&mut self) -> Result<(), CodecError> {
        let bytes = self.text.as_bytes();
        self.at += 1;
        loop {
            match bytes.get(self.at) {
                None => return Err(self.unreadable("unterminated string")),
                Some(b'"') => break,
                // An escape is one character of ASCII, at times followed by digits.
                Some(b'\\') => self.at += 2,
                Some(_) => self.at += 1,
            }
        }
        self.at += 1;
        Ok(())
    }

    fn token(&mut self) -> &'a str {
        let start = self.at;
        let rest = &self.text.as_bytes()[start..];
        let ends = |byte: &u8| b" ,\n\t\r()[]{}\"".contains(byte);
        let length = rest.iter().position(ends).unwrap_or(rest.len());
        self.at += length;
        &self.text[start..self.at]
    }

    fn string(&mut self) -> Result<String, CodecError> {
        self.at += 1;
        let mut out = String::new();
        loop {
            let rest = &self.text[self.at..];
            let Some(end) = rest.find(['"', '\\']) else {
                return Err(self.unreadable("unterminated string"));
            };
            out.push_str(&rest[..end]);
            self.at += end + 1;
            if rest.as_bytes()[end] == b'"' {
                return Ok(out);
            }
            let Some(escape) = self.peek() else {
                return Err(self.unreadable("unterminated string"));
            };
            self.at += 1;
            out.push(match escape {
                b'n' => '\n',
                b'r' => '\r',
                b't' => '\t',
                b'"' => '"',
                b'\\' => '\\',
                b'u' => self.unicode()?,
                _ => return Err(self.unreadable("unknown escape")),
            });
        }
    }

    fn unicode(&mut self) -> Result<char, CodecError> {
        let digits = self.text.get(self.at..self.at + 4);
        let char = digits.and_then(code_point);
        self.at += 4;
        char.ok_or_else(|| self.unreadable("invalid code point"))
    }

    fn char(&mut self) -> Result<Value, CodecError> {
        self.at += 1;
        let Some(first) = self.text[self.at..].chars().next() else {
            return Err(self.unreadable("missing character after `\\`"));
        };
        // The first character always belongs to the token, even if it is a bracket.
        let start = self.at;
        self.at += first.len_utf8();
        self.token();
        let name = &self.text[start..self.at];
        let char = match name {
            "newline" => '\n',
            "return" => '\r',
            "tab" => '\t',
            "space" => ' ',
            name if name.len() == first.len_utf8() => first,
            name => name
                .strip_prefix('u')
                .and_then(code_point)
                .ok_or_else(|| self.unreadable("unknown character name"))?,
        };
        Ok(Value::Char(char))
    }

    fn dispatch(&mut self) -> Result<Value, CodecError> {
        if self.text[self.at..].starts_with("#{") {
            self.at += 1;
            return Ok(Value::set(self.items(b'}')?));
        }
        let token = self.token();
        match token {
            "##NaN" => return Ok(Value::Float(f64::NAN)),
            "##Inf" => return Ok(Value::Float(f64::INFINITY)),
            "##-Inf" => return Ok(Value::Float(f64::NEG_INFINITY)),
            _ => {}
        }
        self.depth += 1;
        if self.depth > DEPTH_LIMIT + 8 {
            return Err(CodecError::TooDeep { limit: DEPTH_LIMIT });
        }
        let form = self.value()?;
        self.depth -= 1;
        tagged(&token[1..], form).ok_or_else(|| self.unreadable("invalid tagged value"))
    }

    fn atom(&mut self) -> Result<Value, CodecError> {
        let token = self.token();
        match token {
            "nil" => return Ok(Value::Nil),
            "true" => return Ok(Value::Bool(true)),
            "false" => return Ok(Value::Bool(false)),
            "" => return Err(self.unreadable("unexpected character")),
            _ => {}
        }
        let digits = token.strip_prefix(['-', '+']).unwrap_or(token);
        if !digits.starts_with(|char: char| char.is_ascii_digit()) {
            return Ok(Value::symbol(token));
        }
        number(token).ok_or_else(|| self.unreadable("invalid number"))
    }
}

/// Reads hexadecimal digits, without a sign.
fn code_point(digits: &str) -> Option<char> {
    let is_hex = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    char::from_u32(u32::from_str_radix(is_hex.then_some(digits)?, 16).ok()?)
}

fn number(token: &str) -> Option<Value> {
    if let Ok(int) = token.parse::<i64>() {
        return Some(Value::Int(int));
    }
    if let Some(digits) = token.strip_suffix('N') {
        return parse_big(digits).map(Value::from);
    }
    if let Some(digits) = token.strip_suffix('M') {
        let (digits, exponent) = digits.split_once(['e', 'E']).unwrap_or((digits, "0"));
        let (whole, places) = digits.split_once('.').unwrap_or((digits, ""));
        let unscaled = parse_big(&format!("{whole}{places}"))?;
        let scale = (places.len() as i64).checked_sub(exponent.parse().ok()?)?;
        return Some(BigDecimal::new(unscaled, scale).into());
    }
    if token.contains('/') {
        let (top, bottom) = token.split_once('/')?;
        let (top, bottom) = (parse_big(top)?, parse_big(bottom)?);
        if bottom <= BigInt::ZERO {
            return None;
        }
        // Ratios are written in lowest terms; what other programs wrote is short.
        let ratio = match bottom.bits() > 4096 {
            true => BigRational::new_raw(top, bottom),
            false => BigRational::new(top, bottom),
        };
        return (!ratio.is_integer()).then(|| ratio.into());
    }
    token.parse::<f64>().ok().map(Value::Float)
}

fn tagged(tag: &str, form: Value) -> Option<Value> {
    let text = || form.as_str();
    Some(match tag {
        "inst" => Object::Inst(text::parse_instant(text()?)?).into(),
        "uuid" => Object::Uuid(text::parse_uuid(text()?)?).into(),
        "flowstone/keyword" => Value::keyword(text()?),
        "flowstone/symbol" => Value::symbol(text()?),
        "flowstone/bytes" => Object::Bytes(unhex(text()?)?.into()).into(),
        "flowstone/regex" => regex(text()?)?,
        "flowstone/error" => error(&form)?.into(),
        tag => Object::Tagged {
            tag: Symbol::new(tag),
            form,
        }
        .into(),
    })
}

fn regex(source: &str) -> Option<Value> {
    let regex = flowstone_lang::value::compile_regex(source).ok()?;
    Some(
        Object::Regex {
            source: source.into(),
            regex,
        }
        .into(),
    )
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    text.as_bytes()
        .chunks(2)
        .map(|pair| match pair {
            [high, low] => u8::try_from(digit(*high)? * 16 + digit(*low)?).ok(),
            _ => None,
        })
        .collect()
}

fn error(fields: &Value) -> Option<Exception> {
    let text = |key: &str| fields.get(key).and_then(Value::as_str);
    let class = text("class")?;
    let class = Class::THROWABLES
        .iter()
        .copied()
        .find(|known| known.0.full_name == class)
        .unwrap_or(Class::EXCEPTION_INFO);
    let mut exception = Exception::new(class, code(text("code").unwrap_or("")), "");
    exception.message = text("message").map(Box::from);
    exception.data = fields.get("data").cloned().unwrap_or(Value::Nil);
    exception.cause = fields.get("cause").cloned().unwrap_or(Value::Nil);
    if let Some(hints) = fields.get("hints").and_then(Value::as_vector) {
        exception.hints = hints
            .iter()
            .filter_map(|hint| hint.as_str().map(str::to_owned))
            .collect();
    }
    Some(exception)
}

/// Returns an error code with static lifetime; each distinct code is leaked once. Text that is not a code becomes the
/// empty string.
pub fn code(text: &str) -> &'static str {
    use std::cell::RefCell;
    thread_local! {
        static CODES: RefCell<Vec<&'static str>> = const { RefCell::new(Vec::new()) };
    }
    let digits = text.strip_prefix('E');
    if !digits
        .is_some_and(|digits| digits.len() == 4 && digits.bytes().all(|byte| byte.is_ascii_digit()))
    {
        return "";
    }
    CODES.with_borrow_mut(|codes| {
        if let Some(code) = codes.iter().find(|code| **code == text) {
            return *code;
        }
        let code: &'static str = Box::leak(text.to_owned().into_boxed_str());
        codes.push(code);
        code
    })
}
