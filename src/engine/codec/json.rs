//! Values to and from JSON, for everything outside that speaks it.

use flowstone_lang::value::{BigInt, Object, Value};
use serde_json::{Map, Number};

use super::{CodecError, canonical, encode};

/// What object keys become.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keys {
    /// Keywords, spelt as they are.
    Keywords,
    Strings,
}

/// Turns JSON into a value.
pub fn from_json(json: &serde_json::Value, keys: Keys) -> Value {
    match json {
        serde_json::Value::Null => Value::Nil,
        serde_json::Value::Bool(bool) => Value::Bool(*bool),
        serde_json::Value::Number(number) => from_number(number),
        serde_json::Value::String(text) => Value::from(text.as_str()),
        serde_json::Value::Array(items) => {
            Value::vector(items.iter().map(|item| from_json(item, keys)))
        }
        serde_json::Value::Object(entries) => Value::map(entries.iter().map(|(key, value)| {
            let key = match keys {
                Keys::Keywords => Value::keyword(key),
                Keys::Strings => Value::from(key.as_str()),
            };
            (key, from_json(value, keys))
        })),
    }
}

fn from_number(number: &Number) -> Value {
    if let Some(int) = number.as_i64() {
        return Value::Int(int);
    }
    if let Some(int) = number.as_u64() {
        return Value::BigInt(BigInt::from(int).into());
    }
    number.as_f64().map_or(Value::Nil, Value::Float)
}

/// Turns a value into JSON: keywords and symbols become their names, sets and sequences arrays.
///
/// # Errors
/// As [`encode`].
pub fn to_json(value: &Value) -> Result<serde_json::Value, CodecError> {
    Ok(match value {
        Value::Nil => serde_json::Value::Null,
        Value::Bool(bool) => (*bool).into(),
        Value::Int(int) => (*int).into(),
        Value::Float(float) => Number::from_f64(*float).map_or(serde_json::Value::Null, Into::into),
        Value::Char(char) => char.to_string().into(),
        Value::Keyword(keyword) => keyword.to_string()[1..].into(),
        Value::Symbol(symbol) => symbol.to_string().into(),
        Value::Name(name) => name.symbol.to_string().into(),
        Value::Text(text) => (***text).into(),
        Value::Vector(vector) => array(vector.iter())?,
        Value::Set(set) => array(set.iter())?,
        Value::Map(map) => object(map.iter())?,
        Value::Record(record) => object(record.fields.iter())?,
        Value::BigInt(int) => match u64::try_from(&**int) {
            Ok(int) => int.into(),
            Err(_) => int.to_string().into(),
        },
        Value::Ratio(_) | Value::Decimal(_) => number_text(value),
        Value::Exception(exception) => object(
            [
                (Value::keyword("message"), Value::from(exception.text())),
                (Value::keyword("data"), exception.data.clone()),
            ]
            .iter()
            .map(|(key, value)| (key, value)),
        )?,
        Value::Object(object) => match &**object {
            Object::Inst(millis) => instant(*millis).into(),
            Object::Uuid(bits) => uuid(*bits).into(),
            Object::Regex { source, .. } => (**source).into(),
            Object::Tagged { form, .. } => to_json(form)?,
            _ => encode(value)?.into(),
        },
        // A round through the text checks that it is data and walks what is lazy.
        Value::List(_) | Value::Seq(_) | Value::Lazy(_) => {
            let text = encode(value)?;
            match super::decode(&text)? {
                Value::List(list) => array(list.iter())?,
                other => to_json(&other)?,
            }
        }
        Value::Native(_) | Value::Fn(_) | Value::Var(_) | Value::Atom(_) => {
            return Err(encode(value).err().unwrap_or(CodecError::Unrealised));
        }
    })
}

fn number_text(value: &Value) -> serde_json::Value {
    let float: Option<f64> = match value {
        Value::Decimal(decimal) => decimal.to_string().parse().ok(),
        Value::Ratio(ratio) => {
            let parts: (Option<f64>, Option<f64>) = (
                ratio.numer().to_string().parse().ok(),
                ratio.denom().to_string().parse().ok(),
            );
            parts
                .0
                .zip(parts.1)
                .map(|(numerator, denominator)| numerator / denominator)
        }
        _ => None,
    };
    float
        .and_then(Number::from_f64)
        .map_or(serde_json::Value::Null, Into::into)
}

fn array<'a>(items: impl Iterator<Item = &'a Value>) -> Result<serde_json::Value, CodecError> {
    items
        .map(to_json)
        .collect::<Result<Vec<_>, _>>()
        .map(Into::into)
}

fn object<'a>(
    entries: impl Iterator<Item = (&'a Value, &'a Value)>,
) -> Result<serde_json::Value, CodecError> {
    let mut object = Map::new();
    for (key, value) in entries {
        let key = match key {
            Value::Keyword(keyword) => keyword.to_string()[1..].to_owned(),
            Value::Text(text) => (***text).to_owned(),
            Value::Symbol(_) | Value::Name(_) | Value::Int(_) => canonical(key)?,
            other => encode(other)?,
        };
        object.insert(key, to_json(value)?);
    }
    Ok(object.into())
}

/// Writes an instant as in `2026-01-31T09:30:00.000Z`.
pub fn instant(millis: i64) -> String {
    let days = millis.div_euclid(86_400_000);
    let clock = millis.rem_euclid(86_400_000);
    let (year, month, day) = civil(days);
    format!(
        "{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}.{:03}Z",
        clock / 3_600_000,
        clock / 60_000 % 60,
        clock / 1000 % 60,
        clock % 1000
    )
}

/// Reads what [`instant`] writes.
pub(super) fn parse_instant(text: &str) -> Option<i64> {
    let (date, time) = text.strip_suffix('Z')?.split_once('T')?;
    let (negative, date) = match date.strip_prefix('-') {
        Some(date) => (true, date),
        None => (false, date),
    };
    let mut date = date.split('-').map(str::parse::<i64>);
    let (year, month, day) = (date.next()?.ok()?, date.next()?.ok()?, date.next()?.ok()?);
    let (clock, fraction) = time.split_once('.')?;
    let mut clock = clock.split(':').map(str::parse::<i64>);
    let (hours, minutes, seconds) = (
        clock.next()?.ok()?,
        clock.next()?.ok()?,
        clock.next()?.ok()?,
    );
    let days = days_of(if negative { -year } else { year }, month, day);
    let seconds = ((days * 24 + hours) * 60 + minutes) * 60 + seconds;
    Some(seconds * 1000 + fraction.parse::<i64>().ok()?)
}

/// Days since 1970 to year, month and day, by the algorithm for the proleptic Gregorian calendar that counts
/// years from March.
fn civil(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day)
}

/// The way back from [`civil`].
fn days_of(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let shifted = if month > 2 { month - 3 } else { month + 9 };
    let day_of_year = (153 * shifted + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

pub(super) fn uuid(bits: u128) -> String {
    let text = format!("{bits:032x}");
    format!(
        "{}-{}-{}-{}-{}",
        &text[..8],
        &text[8..12],
        &text[12..16],
        &text[16..20],
        &text[20..]
    )
}

pub(super) fn parse_uuid(text: &str) -> Option<u128> {
    u128::from_str_radix(&text.replace('-', ""), 16).ok()
}
