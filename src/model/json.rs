//! Values to JSON and back.
//!
//! Object keys become keywords of the same spelling; keywords become strings without the colon. A value that JSON
//! cannot represent exactly is either written as a string or refused with an error; nothing is lost silently. Text is
//! read and written with the exact digits of every number: [`read`] and [`write`].

mod read;
mod text;

use base64::Engine as _;
use flowstone_lang::value::{
    BigDecimal, BigInt, Force, Object, PrintOptions, Result as Eval, SeqView, Signal, Unforced,
    Value, is_written_within, number, print_value,
};
use serde_json::{Map as JsonMap, Number as JsonNumber, Value as Json};

pub use read::{Build, ReadError, read, read_all, read_bytes, read_first, read_with_string_keys};
pub use text::{
    compact, from_exact_json, is_exact, large_integer, pretty, read_exact, read_integers,
    to_exact_json, write, write_pretty_with, write_with,
};

/// Maximum nesting depth in both directions; deeper values are refused.
pub const MAX_DEPTH: usize = 128;

/// The reason why a value cannot be written as JSON.
#[derive(Debug, thiserror::Error)]
pub enum JsonError {
    /// The value at `path` is a function, an atom ..., named by `what`.
    #[error("{what} cannot be written as JSON{}", At(path))]
    NoJson { what: String, path: String },
    #[error("two keys of one map are both written as {key:?}{}", At(path))]
    SameKey { key: String, path: String },
    #[error("the value is too large: its text would be more than 500 MB")]
    TooLarge,
    #[error("nested deeper than {MAX_DEPTH} levels{}", At(path))]
    TooDeep { path: String },
    /// The error that computing a lazy part threw.
    #[error("a part of the value could not be computed")]
    Signal(Signal),
}

struct At<'a>(&'a str);

impl std::fmt::Display for At<'_> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            "" => Ok(()),
            path => write!(out, " (at {path})"),
        }
    }
}

/// Returns a realised value as JSON; unrealised parts of a lazy sequence are missing.
///
/// # Errors
/// When a part has no JSON form.
pub fn to_json(value: &Value) -> Result<Json, JsonError> {
    to_json_with(&mut Unforced, value)
}

/// Returns a value as JSON and computes its lazy parts.
///
/// # Errors
/// When a part has no JSON form, or computing it fails.
pub fn to_json_with(force: &mut dyn Force, value: &Value) -> Result<Json, JsonError> {
    Writer {
        force,
        path: Vec::new(),
        numbers: Numbers::Tree,
        written: 0,
        root: value,
    }
    .write(value)
}

/// Returns a JSON value as a value: objects as maps with keyword keys, arrays as vectors.
pub fn from_json(json: &Json) -> Value {
    match json {
        Json::Object(entries) => Value::map(
            entries
                .iter()
                .map(|(key, value)| (Value::keyword(key), from_json(value))),
        ),
        Json::Array(items) => Value::vector(items.iter().map(from_json)),
        json => scalar(json),
    }
}

/// Returns a JSON value as a value whose object keys stay strings.
pub fn from_json_with_string_keys(json: &Json) -> Value {
    match json {
        Json::Object(entries) => Value::map(
            entries
                .iter()
                .map(|(key, value)| (Value::from(key.as_str()), from_json_with_string_keys(value))),
        ),
        Json::Array(items) => Value::vector(items.iter().map(from_json_with_string_keys)),
        json => scalar(json),
    }
}

fn scalar(json: &Json) -> Value {
    match json {
        Json::Bool(bool) => Value::Bool(*bool),
        Json::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(int), _) => Value::Int(int),
            (None, Some(int)) => Value::BigInt(BigInt::from(int).into()),
            (None, None) => Value::Float(number.as_f64().unwrap_or(f64::NAN)),
        },
        Json::String(text) => Value::from(text.as_str()),
        Json::Null | Json::Array(_) | Json::Object(_) => Value::Nil,
    }
}

/// Returns the text of a name without its colon: of a keyword, symbol or string.
pub fn name_text(value: &Value) -> Option<String> {
    match value {
        Value::Keyword(keyword) => Some(keyword.parts().to_string()),
        Value::Text(text) => Some(text.as_str().to_owned()),
        value => value.as_symbol().map(|symbol| symbol.to_string()),
    }
}

/// Maximum size of a JSON text in bytes; a larger one is refused.
const MOST_TEXT: u64 = 500_000_000;
/// Number of values written before the whole size is estimated: most values have fewer parts.
const FEW: u32 = 10_000;
/// How a number is written that neither an integer of 64 bits nor a double can hold.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Numbers {
    /// As a string of its digits.
    Tree,
    /// As the object that [`compact`] and [`pretty`] write as a number.
    Exact,
}

struct Writer<'a> {
    force: &'a mut dyn Force,
    path: Vec<String>,
    numbers: Numbers,
    written: u32,
    root: &'a Value,
}

impl Writer<'_> {
    fn write(&mut self, value: &Value) -> Result<Json, JsonError> {
        if self.path.len() > MAX_DEPTH {
            return Err(JsonError::TooDeep { path: self.place() });
        }
        self.written = self.written.wrapping_add(1);
        if self.written.is_multiple_of(FEW) {
            self.force.charge(FEW).map_err(JsonError::Signal)?;
            if self.written == FEW && !is_written_within(self.root, MOST_TEXT) {
                return Err(JsonError::TooLarge);
            }
        }
        Ok(match value {
            Value::Nil => Json::Null,
            Value::Bool(bool) => Json::Bool(*bool),
            Value::Int(int) => Json::from(*int),
            Value::Float(float) => self.float(*float)?,
            Value::Char(char) => Json::from(char.to_string()),
            Value::Keyword(keyword) => Json::from(keyword.parts().to_string()),
            Value::Symbol(_) | Value::Name(_) => Json::from(self.shown(value)?),
            Value::Text(text) => Json::from(text.as_str()),
            Value::BigInt(int) => self.big_int(int),
            Value::Ratio(_) => self.float(number_float(value).unwrap_or(f64::NAN))?,
            Value::Decimal(decimal) => self.decimal(decimal).map_err(JsonError::Signal)?,
            Value::Vector(vector) => self.items(&mut vector.iter().cloned())?,
            Value::Set(set) => self.items(&mut set.iter().cloned())?,
            Value::Map(map) => self.object(&mut map.iter())?,
            Value::Record(record) => self.object(&mut record.fields.iter())?,
            Value::List(_) | Value::Seq(_) | Value::Lazy(_) => self.sequence(value)?,
            Value::Exception(exception) => {
                let message = (Value::keyword("message"), Value::from(exception.text()));
                let data = (Value::keyword("data"), exception.data.clone());
                let entries = [message, data];
                self.object(&mut entries.iter().map(|entry| (&entry.0, &entry.1)))?
            }
            Value::Object(object) => self.rare(object, value)?,
            Value::Native(_) | Value::Fn(_) | Value::Var(_) | Value::Atom(_) => {
                return Err(self.refuse(value.kind()));
            }
        })
    }

    fn rare(&mut self, object: &Object, value: &Value) -> Result<Json, JsonError> {
        Ok(match object {
            Object::Inst(millis) => Json::from(crate::codec::instant(*millis)),
            Object::Uuid(bits) => Json::from(uuid_text(*bits)),
            Object::Regex { source, .. } => Json::from(&**source),
            Object::Tagged { form, .. } => self.write(form)?,
            Object::Bytes(bytes) => {
                Json::from(base64::engine::general_purpose::STANDARD.encode(bytes))
            }
            Object::Array(_) if let Some(bytes) = value.as_bytes() => {
                Json::from(base64::engine::general_purpose::STANDARD.encode(bytes))
            }
            Object::Queue { items, taken, .. } => {
                self.items(&mut items.iter().skip(*taken).cloned())?
            }
            Object::Reduced(inner) => self.write(inner)?,
            Object::Volatile(_)
            | Object::Delay(_)
            | Object::Namespace(_)
            | Object::Transient(_)
            | Object::Class(_)
            | Object::RecordType(_)
            | Object::Host { .. }
            | Object::Unbound(_) => return Err(self.refuse(value.kind())),
            #[allow(
                unreachable_patterns,
                reason = "kinds that are added to the language later"
            )]
            _ => return Err(self.refuse(value.kind())),
        })
    }

    fn big_int(&self, int: &BigInt) -> Json {
        match (i64::try_from(int), u64::try_from(int), self.numbers) {
            (Ok(int), _, _) => Json::from(int),
            (_, Ok(int), _) => Json::from(int),
            (_, _, numbers) => {
                let mut digits = String::new();
                number::write_big(&mut digits, int);
                match numbers {
                    Numbers::Tree => Json::from(digits),
                    Numbers::Exact => text::number(digits),
                }
            }
        }
    }

    fn decimal(&self, decimal: &BigDecimal) -> Eval<Json> {
        match self.numbers {
            Numbers::Tree => decimal_json(decimal),
            Numbers::Exact => {
                let mut digits = String::new();
                number::write_decimal(&mut digits, decimal);
                Ok(text::number(digits))
            }
        }
    }

    fn float(&self, float: f64) -> Result<Json, JsonError> {
        match JsonNumber::from_f64(float) {
            Some(number) => Ok(Json::Number(number)),
            None => Err(self.refuse(if float.is_nan() {
                "##NaN"
            } else {
                "an infinite number"
            })),
        }
    }

    fn items(&mut self, items: &mut dyn Iterator<Item = Value>) -> Result<Json, JsonError> {
        let mut array = Vec::new();
        for (idx, item) in items.enumerate() {
            array.push(self.nested(idx.to_string(), &item)?);
        }
        Ok(Json::Array(array))
    }

    fn object(
        &mut self,
        entries: &mut dyn Iterator<Item = (&Value, &Value)>,
    ) -> Result<Json, JsonError> {
        let mut object = JsonMap::new();
        for (key, value) in entries {
            let key = self.key(key)?;
            let json = self.nested(format!(":{key}"), value)?;
            if object.contains_key(&key) {
                let path = self.place();
                return Err(JsonError::SameKey { key, path });
            }
            object.insert(key, json);
        }
        let json = Json::Object(object);
        if self.numbers == Numbers::Exact && text::is_exact(&json) {
            return Err(self.refuse("a map with the key of a number"));
        }
        Ok(json)
    }

    fn key(&mut self, key: &Value) -> Result<String, JsonError> {
        match key {
            Value::Int(int) => Ok(int.to_string()),
            key => match name_text(key) {
                Some(name) => Ok(name),
                None => self.shown(key),
            },
        }
    }

    fn sequence(&mut self, value: &Value) -> Result<Json, JsonError> {
        let mut array = Vec::new();
        let mut at = value.clone();
        while let Some((item, rest)) = next(self.force, &at).map_err(JsonError::Signal)? {
            array.push(self.nested(array.len().to_string(), &item)?);
            at = rest;
        }
        Ok(Json::Array(array))
    }

    fn nested(&mut self, step: String, value: &Value) -> Result<Json, JsonError> {
        self.path.push(step);
        let json = self.write(value)?;
        self.path.pop();
        Ok(json)
    }

    fn shown(&mut self, value: &Value) -> Result<String, JsonError> {
        let mut text = String::new();
        print_value(&mut text, self.force, value, PrintOptions::READABLE)
            .map_err(JsonError::Signal)?;
        Ok(text)
    }

    fn refuse(&self, what: &str) -> JsonError {
        JsonError::NoJson {
            what: what.to_owned(),
            path: self.place(),
        }
    }

    fn place(&self) -> String {
        if self.path.is_empty() {
            return String::new();
        }
        let shown = &self.path[..self.path.len().min(12)];
        format!("[{}]", shown.join(" "))
    }
}

/// Returns the first item and the rest of any sequence; `None` at its end and for nil.
///
/// # Errors
/// The error that computing a lazy part throws.
pub fn next(force: &mut dyn Force, value: &Value) -> Eval<Option<(Value, Value)>> {
    let mut at = value.clone();
    loop {
        at = match &at {
            Value::List(list) if list.is_empty() => return Ok(None),
            Value::List(list) => return Ok(Some((list.first.clone(), list.rest.clone()))),
            Value::Seq(view) => return Ok(Some((SeqView::first(view), SeqView::rest(view)))),
            Value::Lazy(lazy) => force.force(lazy)?,
            Value::Vector(vector) => {
                let items: Vec<Value> = vector.iter().cloned().collect();
                match items.is_empty() {
                    true => return Ok(None),
                    false => SeqView::chunk(items, Value::Nil),
                }
            }
            _ => return Ok(None),
        }
    }
}

/// Reads JSON in which no object has a duplicate key: readers differ in which of its values they use.
///
/// # Errors
/// When the text is not JSON, or an object has a duplicate key.
pub fn read_strictly(text: &str) -> Result<serde_json::Value, serde_json::Error> {
    serde_json::from_str::<Strict>(text).map(|strict| strict.0)
}

struct Strict(serde_json::Value);

impl<'de> serde::Deserialize<'de> for Strict {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Strict, D::Error> {
        from.deserialize_any(StrictVisitor).map(Strict)
    }
}

struct StrictVisitor;

impl<'de> serde::de::Visitor<'de> for StrictVisitor {
    type Value = serde_json::Value;

    fn expecting(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(serde_json::Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Self::Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Self::Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Self::Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Self::Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Self::Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: serde::de::SeqAccess<'de>>(
        self,
        mut items: A,
    ) -> Result<Self::Value, A::Error> {
        let mut all = Vec::new();
        while let Some(Strict(item)) = items.next_element()? {
            all.push(item);
        }
        Ok(all.into())
    }

    fn visit_map<A: serde::de::MapAccess<'de>>(
        self,
        mut entries: A,
    ) -> Result<Self::Value, A::Error> {
        let mut all = serde_json::Map::new();
        while let Some((key, Strict(value))) = entries.next_entry::<String, Strict>()? {
            if all.contains_key(&key) {
                let message = format!("duplicate key {key:?}");
                return Err(serde::de::Error::custom(message));
            }
            all.insert(key, value);
        }
        Ok(all.into())
    }
}

/// Returns the items of a vector, list, set or sequence; `None` for anything else. Nil has no items.
pub fn items(value: &Value) -> Option<Vec<Value>> {
    Some(match value {
        Value::Nil => Vec::new(),
        Value::Vector(vector) => vector.iter().cloned().collect(),
        Value::Set(set) => set.iter().cloned().collect(),
        Value::List(_) | Value::Seq(_) | Value::Lazy(_) => {
            let mut found = Vec::new();
            let mut at = value.clone();
            while let Ok(Some((item, rest))) = next(&mut Unforced, &at) {
                found.push(item);
                at = rest;
            }
            found
        }
        _ => return None,
    })
}

/// Returns a uuid as text.
pub fn uuid_text(bits: u128) -> String {
    let hex = format!("{bits:032x}");
    format!(
        "{}-{}-{}-{}-{}",
        &hex[..8],
        &hex[8..12],
        &hex[12..16],
        &hex[16..20],
        &hex[20..]
    )
}

/// Reads a uuid in its usual form: 8-4-4-4-12 hexadecimal digits.
pub fn uuid_bits(text: &str) -> Option<u128> {
    let groups: Vec<usize> = text.split('-').map(str::len).collect();
    let digits: String = text.chars().filter(|char| *char != '-').collect();
    let well_formed =
        groups == [8, 4, 4, 4, 12] && digits.chars().all(|char| char.is_ascii_hexdigit());
    well_formed
        .then(|| u128::from_str_radix(&digits, 16).ok())
        .flatten()
}

/// Reads an ISO 8601 instant: with `Z` or an offset, without either (UTC), or a date alone.
pub fn instant_millis(text: &str) -> Option<i64> {
    let text = text.trim();
    if let Ok(timestamp) = text.parse::<jiff::Timestamp>() {
        return Some(timestamp.as_millisecond());
    }
    let civil: jiff::civil::DateTime = match text.parse::<jiff::civil::Date>() {
        Ok(date) if text.len() == 10 => date.at(0, 0, 0, 0),
        _ => text.parse().ok()?,
    };
    let zoned = civil.to_zoned(jiff::tz::TimeZone::UTC).ok()?;
    Some(zoned.timestamp().as_millisecond())
}

/// Returns a number if a double represents it exactly, otherwise its digits as a string.
fn decimal_json(decimal: &BigDecimal) -> Eval<Json> {
    let mut text = String::new();
    number::write_decimal(&mut text, decimal);
    let exact = text.parse::<f64>().ok().filter(|float| {
        float.is_finite()
            && format!("{float}")
                .parse::<BigDecimal>()
                .is_ok_and(|back| back == *decimal)
    });
    Ok(match exact.and_then(JsonNumber::from_f64) {
        Some(number) => Json::Number(number),
        None => Json::from(text),
    })
}

/// Returns any number as the nearest double; `None` if the value is not a number.
pub fn number_float(value: &Value) -> Option<f64> {
    number::to_float(value, "double").ok()
}
