//! Cells of CSV text: the types that a text may have, and the stored form in a column.

use std::str::FromStr as _;

use flowstone_lang::value::BigDecimal;
use flowstone_model::codec::encode;
use flowstone_model::json::{self, instant_millis};
use flowstone_model::table::{Cell, ColumnType};
use rusqlite::ToSql;
use rusqlite::types::{ToSqlOutput, Value as Sql, ValueRef};

use super::super::cell::{data_text, enum_text};

/// A set of types that a text may have, as bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Kinds(u8);

impl Kinds {
    pub(super) const ALL: Kinds = Kinds(0x3f);
    const NONE: Kinds = Kinds(0);
    const BOOLEAN: Kinds = Kinds(1);
    const LONG: Kinds = Kinds(2 | 4 | 8);
    /// An integer that a double cannot represent exactly.
    const LONG_EXACT: Kinds = Kinds(2 | 8);
    const DOUBLE: Kinds = Kinds(4 | 8);
    const DECIMAL: Kinds = Kinds(8);
    const DATE: Kinds = Kinds(16 | 32);
    const TIMESTAMP: Kinds = Kinds(32);

    /// Returns the narrowest of the types; text is always possible.
    pub(super) fn best(self) -> ColumnType {
        let types = [
            (1, ColumnType::Boolean),
            (2, ColumnType::Long),
            (4, ColumnType::Double),
            (8, ColumnType::Decimal),
            (16, ColumnType::Date),
            (32, ColumnType::Timestamp),
        ];
        types
            .iter()
            .find(|(bit, _)| self.0 & bit != 0)
            .map_or(ColumnType::String, |(_, type_)| *type_)
    }

    pub(super) fn and(self, other: Kinds) -> Kinds {
        Kinds(self.0 & other.0)
    }

    pub(super) fn is_text(self) -> bool {
        self == Kinds::NONE
    }

    /// Returns the types of a text. Numbers with leading zeros or a plus sign are codes, not numbers.
    pub(super) fn of(text: &[u8]) -> Kinds {
        match text.first() {
            Some(b'0'..=b'9' | b'-' | b'.') => number(text).unwrap_or_else(|| instant(text)),
            Some(b't' | b'T' | b'f' | b'F') if boolean_word(text).is_some() => Kinds::BOOLEAN,
            _ => Kinds::NONE,
        }
    }
}

fn boolean_word(text: &[u8]) -> Option<bool> {
    match text {
        b"true" | b"True" | b"TRUE" => Some(true),
        b"false" | b"False" | b"FALSE" => Some(false),
        _ => None,
    }
}

/// The shape of a number.
struct Shape {
    whole: usize,
    /// Number of digits, without leading zeros of a fraction.
    digits: usize,
    is_whole: bool,
    has_exponent: bool,
    leads_with_zero: bool,
}

/// Parses the shape of a number such as `-12.5e3`.
fn shape(text: &[u8]) -> Option<Shape> {
    let unsigned = text.strip_prefix(b"-").unwrap_or(text);
    let count = |text: &[u8]| text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let whole = count(unsigned);
    let mut rest = &unsigned[whole..];
    let mut fraction = 0;
    if let Some(after) = rest.strip_prefix(b".") {
        fraction = count(after);
        if fraction == 0 {
            return None;
        }
        rest = &after[fraction..];
    }
    if whole + fraction == 0 {
        return None;
    }
    let is_whole = fraction == 0 && rest.is_empty();
    let mut has_exponent = false;
    if let [b'e' | b'E', after @ ..] = rest {
        let after = after
            .strip_prefix(b"-")
            .or(after.strip_prefix(b"+"))
            .unwrap_or(after);
        if after.is_empty() || count(after) != after.len() || after.len() > 5 {
            return None;
        }
        has_exponent = true;
        rest = &[];
    }
    rest.is_empty().then_some(Shape {
        whole,
        digits: whole + fraction,
        is_whole,
        has_exponent,
        leads_with_zero: whole > 1 && unsigned.first() == Some(&b'0'),
    })
}

/// Number of decimal digits that every double preserves.
const DOUBLE_DIGITS: usize = 15;

fn number(text: &[u8]) -> Option<Kinds> {
    let shape = shape(text)?;
    if shape.leads_with_zero {
        return Some(Kinds::NONE);
    }
    if !shape.is_whole {
        let fits = shape.digits <= DOUBLE_DIGITS || shape.has_exponent && shape.digits <= 17;
        return Some(if fits { Kinds::DOUBLE } else { Kinds::DECIMAL });
    }
    if text == b"-0" {
        return Some(Kinds::DOUBLE);
    }
    if shape.whole <= DOUBLE_DIGITS {
        return Some(Kinds::LONG);
    }
    let is_long = std::str::from_utf8(text).is_ok_and(|text| text.parse::<i64>().is_ok());
    Some(if is_long {
        Kinds::LONG_EXACT
    } else {
        Kinds::DECIMAL
    })
}

fn instant(text: &[u8]) -> Kinds {
    if text.len() == 10 {
        return if date(text) { Kinds::DATE } else { Kinds::NONE };
    }
    let looks_so = text.len() >= 16
        && text.len() <= 40
        && matches!(text[10], b'T' | b't' | b' ')
        && date(&text[..10]);
    let is_so = looks_so && std::str::from_utf8(text).is_ok_and(|text| millis(text).is_some());
    if is_so { Kinds::TIMESTAMP } else { Kinds::NONE }
}

fn two(text: &[u8]) -> Option<i64> {
    match text {
        [ten @ b'0'..=b'9', one @ b'0'..=b'9'] => {
            Some(i64::from(ten - b'0') * 10 + i64::from(one - b'0'))
        }
        _ => None,
    }
}

/// Parses year, month and day of `2026-01-31`.
fn ymd(text: &[u8]) -> Option<(i64, i64, i64)> {
    if text.len() != 10 || text[4] != b'-' || text[7] != b'-' {
        return None;
    }
    let year = two(&text[..2])? * 100 + two(&text[2..4])?;
    let (month, day) = (two(&text[5..7])?, two(&text[8..10])?);
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match month {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        4 | 6 | 9 | 11 => 30,
        2 if is_leap => 29,
        2 => 28,
        _ => return None,
    };
    (1..=days).contains(&day).then_some((year, month, day))
}

fn date(text: &[u8]) -> bool {
    ymd(text).is_some()
}

/// Returns the milliseconds of an instant; the usual form is parsed here, which is much faster.
fn millis(text: &str) -> Option<i64> {
    usual_millis(text.as_bytes()).or_else(|| instant_millis(text))
}

/// Parses `2026-01-31T10:20:30Z`, also with milliseconds, with a blank instead of `T`, or without zone as UTC.
fn usual_millis(text: &[u8]) -> Option<i64> {
    let (year, month, day) = ymd(text.get(..10)?)?;
    let time = text.get(11..19)?;
    if !matches!(text[10], b'T' | b' ') || time[2] != b':' || time[5] != b':' {
        return None;
    }
    let (hour, minute, second) = (two(&time[..2])?, two(&time[3..5])?, two(&time[6..8])?);
    // The last year is left to the general parser, which knows the largest instant.
    if hour > 23 || minute > 59 || second > 59 || year == 9999 {
        return None;
    }
    let rest = &text[19..];
    let rest = rest.strip_suffix(b"Z").unwrap_or(rest);
    let milli = match rest {
        [] => 0,
        [b'.', a @ b'0'..=b'9', b @ b'0'..=b'9', c @ b'0'..=b'9'] => {
            i64::from(a - b'0') * 100 + i64::from(b - b'0') * 10 + i64::from(c - b'0')
        }
        _ => return None,
    };
    // Days since 1970, with years that begin in March so that the leap day is the last.
    let shifted = if month <= 2 { year - 1 } else { year };
    let era = shifted.div_euclid(400);
    let of_era = shifted.rem_euclid(400);
    let of_year = (153 * (if month > 2 { month - 3 } else { month + 9 }) + 2) / 5 + day - 1;
    let days = era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468;
    Some((((days * 24 + hour) * 60 + minute) * 60 + second) * 1000 + milli)
}

/// The stored form of a cell.
#[derive(Debug, PartialEq)]
pub(super) enum Kept<'a> {
    Nil,
    Integer(i64),
    Real(f64),
    Text(&'a str),
    Made(String),
}

impl Kept<'_> {
    /// Returns the stored form as an owned value.
    pub(super) fn into_sql(self) -> Sql {
        match self {
            Kept::Nil => Sql::Null,
            Kept::Integer(integer) => Sql::Integer(integer),
            Kept::Real(real) => Sql::Real(real),
            Kept::Text(text) => Sql::Text(text.to_owned()),
            Kept::Made(text) => Sql::Text(text),
        }
    }
}

impl ToSql for Kept<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(match self {
            Kept::Nil => ToSqlOutput::Owned(Sql::Null),
            Kept::Integer(integer) => ToSqlOutput::Owned(Sql::Integer(*integer)),
            Kept::Real(real) => ToSqlOutput::Owned(Sql::Real(*real)),
            Kept::Text(text) => ToSqlOutput::Borrowed(ValueRef::Text(text.as_bytes())),
            Kept::Made(text) => ToSqlOutput::Borrowed(ValueRef::Text(text.as_bytes())),
        })
    }
}

/// Returns the stored form of a text in a column of this type; `None` if it does not fit. An empty cell is nil; in
/// quotes it is an empty string if the column holds strings.
pub(super) fn kept(type_: ColumnType, text: &str, quoted: bool) -> Option<Kept<'_>> {
    let is_text = matches!(
        type_,
        ColumnType::String | ColumnType::Enum | ColumnType::Json
    );
    if text.is_empty() && !(quoted && is_text) {
        return Some(Kept::Nil);
    }
    let trimmed = text.trim();
    Some(match type_ {
        ColumnType::String => Kept::Text(text),
        ColumnType::Enum if text.starts_with([':', '\\']) => Kept::Made(enum_text(text)),
        ColumnType::Enum => Kept::Text(text),
        ColumnType::Long => Kept::Integer(trimmed.parse().ok()?),
        ColumnType::Double => double(trimmed)?,
        ColumnType::Decimal => decimal(trimmed)?,
        ColumnType::Boolean => Kept::Integer(i64::from(boolean(trimmed)?)),
        ColumnType::Date => Kept::Text(date(trimmed.as_bytes()).then_some(trimmed)?),
        ColumnType::Timestamp => Kept::Integer(millis(trimmed)?),
        ColumnType::Json => Kept::Made(data(text)?),
    })
}

fn double(text: &str) -> Option<Kept<'_>> {
    // In the form that an export writes.
    match text {
        "##Inf" => return Some(Kept::Real(f64::INFINITY)),
        "##-Inf" => return Some(Kept::Real(f64::NEG_INFINITY)),
        _ => {}
    }
    let unsigned = text.strip_prefix('+').unwrap_or(text);
    let shape = shape(unsigned.as_bytes())?;
    if shape.is_whole
        && unsigned != "-0"
        && let Ok(integer) = unsigned.parse()
    {
        return Some(Kept::Integer(integer));
    }
    unsigned
        .parse()
        .ok()
        .filter(|real: &f64| real.is_finite())
        .map(Kept::Real)
}

fn decimal(text: &str) -> Option<Kept<'_>> {
    let unsigned = text.strip_prefix('+').unwrap_or(text);
    let shape = shape(unsigned.as_bytes())?;
    if !shape.has_exponent && !shape.leads_with_zero && !unsigned.starts_with(['.', '-']) {
        return Some(Kept::Text(unsigned));
    }
    let decimal = BigDecimal::from_str(unsigned).ok()?;
    Some(Kept::Made(decimal.to_string()))
}

fn boolean(text: &str) -> Option<bool> {
    let is = |words: &[&str]| words.iter().any(|word| text.eq_ignore_ascii_case(word));
    if is(&["true", "1", "yes", "t", "y"]) {
        return Some(true);
    }
    is(&["false", "0", "no", "f", "n"]).then_some(false)
}

/// Returns JSON text as EDN, and other text as a string.
fn data(text: &str) -> Option<String> {
    match json::read(text) {
        Ok(value) => encode(&value).ok(),
        Err(_) => data_text(&Cell::Text(text.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_text_has_the_narrowest_column_type() {
        let cases = [
            ("true", ColumnType::Boolean),
            ("False", ColumnType::Boolean),
            ("truth", ColumnType::String),
            ("12", ColumnType::Long),
            ("-12", ColumnType::Long),
            ("0", ColumnType::Long),
            ("-0", ColumnType::Double),
            ("007", ColumnType::String),
            ("00.5", ColumnType::String),
            ("+49", ColumnType::String),
            ("1.", ColumnType::String),
            ("1.5", ColumnType::Double),
            (".5", ColumnType::Double),
            ("1e5", ColumnType::Double),
            ("1e", ColumnType::String),
            ("1e999999", ColumnType::String),
            ("9223372036854775807", ColumnType::Long),
            ("9223372036854775808", ColumnType::Decimal),
            ("1234567890.123456789", ColumnType::Decimal),
            ("2026-01-31", ColumnType::Date),
            ("2026-02-29", ColumnType::String),
            ("2024-02-29", ColumnType::Date),
            ("2026-01-31T10:20:30Z", ColumnType::Timestamp),
            ("2026-01-31 10:20:30", ColumnType::Timestamp),
            ("2026-01-31T10:20:30.123456+02:00", ColumnType::Timestamp),
            ("2026-01-31T25:20:30Z", ColumnType::String),
            ("1.2.3", ColumnType::String),
            ("-", ColumnType::String),
            ("NaN", ColumnType::String),
            ("inf", ColumnType::String),
            (" 1", ColumnType::String),
            ("é", ColumnType::String),
        ];
        for (text, type_) in cases {
            assert_eq!(Kinds::of(text.as_bytes()).best(), type_, "{text}");
        }
        let together = |left: &str, right: &str| {
            Kinds::of(left.as_bytes())
                .and(Kinds::of(right.as_bytes()))
                .best()
        };
        assert_eq!(together("1", "1.5"), ColumnType::Double);
        assert_eq!(together("9223372036854775807", "1.5"), ColumnType::Decimal);
        assert_eq!(
            together("2026-01-31", "2026-01-31T10:20:30Z"),
            ColumnType::Timestamp
        );
        assert_eq!(together("1", "true"), ColumnType::String);
    }

    #[test]
    fn the_fast_parser_agrees_with_the_general_one() {
        for text in [
            "1970-01-01T00:00:00Z",
            "1969-12-31 23:59:59",
            "2000-02-29T12:00:00.001Z",
            "2026-03-01T00:00:00Z",
            "0001-01-01T00:00:00Z",
            "9999-12-31T23:59:59.999Z",
        ] {
            assert_eq!(millis(text), instant_millis(text), "{text}");
        }
        assert_eq!(usual_millis(b"2026-03-01T00:00:00+01:00"), None);
    }

    #[test]
    fn cells_are_converted_to_their_column_type() {
        let cases = [
            (ColumnType::Long, "", Some(Kept::Nil)),
            (ColumnType::Long, " 12 ", Some(Kept::Integer(12))),
            (ColumnType::Long, "1.5", None),
            (ColumnType::Double, "3", Some(Kept::Integer(3))),
            (ColumnType::Double, "3.0", Some(Kept::Real(3.0))),
            (ColumnType::Double, "nan", None),
            (ColumnType::Double, "1e400", None),
            (ColumnType::Decimal, "1.50", Some(Kept::Text("1.50"))),
            (ColumnType::Decimal, "1,5", None),
            (ColumnType::Boolean, "Yes", Some(Kept::Integer(1))),
            (ColumnType::Boolean, "2", None),
            (ColumnType::Date, "2026-1-31", None),
            (
                ColumnType::Timestamp,
                "2026-01-31",
                Some(Kept::Integer(1_769_817_600_000)),
            ),
            (ColumnType::String, " a ", Some(Kept::Text(" a "))),
            (ColumnType::Enum, ":a", Some(Kept::Made("\\:a".to_owned()))),
            (ColumnType::Json, "[1]", Some(Kept::Made("[1]".to_owned()))),
            (
                ColumnType::Json,
                "x y",
                Some(Kept::Made("\"x y\"".to_owned())),
            ),
        ];
        for (type_, text, expected) in cases {
            assert_eq!(kept(type_, text, false), expected, "{type_:?} {text}");
        }
        assert_eq!(kept(ColumnType::String, "", true), Some(Kept::Text("")));
        assert_eq!(kept(ColumnType::Long, "", true), Some(Kept::Nil));
    }
}
