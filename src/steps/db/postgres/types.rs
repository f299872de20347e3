//! Values of PostgreSQL as text, by the numbers of their types.

use crate::db::cell::{Cell, DEPTH_MAX};

/// How the text of a type is read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Bool,
    Int,
    Float,
    Numeric,
    Bytes,
    Uuid,
    Json,
    /// A time with a zone, which the session sets to UTC.
    Instant,
    /// A date and time without a zone.
    Local,
    Text,
}

/// Returns how a type is read, and whether it is an array.
fn kind(type_: u32) -> (Kind, bool) {
    match type_ {
        16 => (Kind::Bool, false),
        20 | 21 | 23 | 26 => (Kind::Int, false),
        700 | 701 => (Kind::Float, false),
        1700 => (Kind::Numeric, false),
        17 => (Kind::Bytes, false),
        2950 => (Kind::Uuid, false),
        114 | 3802 => (Kind::Json, false),
        1184 => (Kind::Instant, false),
        1114 => (Kind::Local, false),
        1000 => (Kind::Bool, true),
        1005 | 1007 | 1016 | 1028 => (Kind::Int, true),
        1021 | 1022 => (Kind::Float, true),
        1231 => (Kind::Numeric, true),
        1001 => (Kind::Bytes, true),
        2951 => (Kind::Uuid, true),
        199 | 3807 => (Kind::Json, true),
        1185 => (Kind::Instant, true),
        1115 => (Kind::Local, true),
        // text, varchar, char, name, date, time, timetz, interval.
        1009 | 1015 | 1014 | 1003 | 1182 | 1183 | 1270 | 1187 => (Kind::Text, true),
        _ => (Kind::Text, false),
    }
}

/// Reads the text of a value.
///
/// # Errors
/// A description of a text that is not of its type.
pub(super) fn read(bytes: &[u8], type_: u32) -> Result<Cell, String> {
    let text = std::str::from_utf8(bytes).map_err(|_| "its text is not UTF-8".to_owned())?;
    match kind(type_) {
        (kind, false) => scalar(text, kind),
        (kind, true) => array(text, kind),
    }
}

fn scalar(text: &str, kind: Kind) -> Result<Cell, String> {
    let wrong = |what: &str| {
        format!(
            "`{}` is not {what}",
            text.chars().take(40).collect::<String>()
        )
    };
    Ok(match kind {
        Kind::Bool => Cell::Bool(text == "t"),
        Kind::Int => Cell::Int(text.parse().map_err(|_| wrong("an integer"))?),
        Kind::Float => Cell::Float(text.parse().map_err(|_| wrong("a number"))?),
        Kind::Numeric => match text {
            "NaN" => Cell::Float(f64::NAN),
            "Infinity" => Cell::Float(f64::INFINITY),
            "-Infinity" => Cell::Float(f64::NEG_INFINITY),
            text => Cell::Decimal(text.to_owned()),
        },
        Kind::Bytes => Cell::Bytes(hex(text).ok_or_else(|| wrong("bytes in hex"))?),
        Kind::Uuid => Cell::Uuid(text.to_owned()),
        Kind::Json => Cell::Json(text.to_owned()),
        Kind::Instant => Cell::Text(iso(text, true)),
        Kind::Local => Cell::Text(iso(text, false)),
        Kind::Text => Cell::Text(text.to_owned()),
    })
}

/// Returns `2026-03-01 10:00:00.5+00` as `2026-03-01T10:00:00.5Z`. Times that ISO 8601 cannot write stay as they are.
fn iso(text: &str, has_zone: bool) -> String {
    let is_plain = text.len() >= 19 && text.as_bytes()[10] == b' ' && !text.ends_with("BC");
    match (is_plain, has_zone) {
        (false, _) => text.to_owned(),
        (true, false) => text.replacen(' ', "T", 1),
        (true, true) => match text.strip_suffix("+00") {
            Some(rest) => format!("{}Z", rest.replacen(' ', "T", 1)),
            None => text.to_owned(),
        },
    }
}

fn hex(text: &str) -> Option<Vec<u8>> {
    let digits = text.strip_prefix("\\x")?;
    let pairs = (0..digits.len()).step_by(2);
    pairs
        .map(|at| u8::from_str_radix(digits.get(at..at + 2)?, 16).ok())
        .collect()
}

/// Reads the text of an array, such as `{1,NULL,"a,b"}`. Its bounds, as in `[0:1]={1,2}`, are left out.
fn array(text: &str, kind: Kind) -> Result<Cell, String> {
    let text = match text.starts_with('[') {
        true => text.split_once('=').map_or(text, |(_, items)| items),
        false => text,
    };
    let mut open: Vec<Vec<Cell>> = Vec::new();
    let mut chars = text.chars().peekable();
    let wrong = || "its array is not well formed".to_owned();
    while let Some(it) = chars.next() {
        match it {
            '{' if open.len() > DEPTH_MAX => return Err(wrong()),
            '{' => open.push(Vec::new()),
            '}' => {
                let items = Cell::List(open.pop().ok_or_else(wrong)?);
                match open.last_mut() {
                    Some(outer) => outer.push(items),
                    None => return Ok(items),
                }
            }
            ',' => {}
            '"' => {
                let mut item = String::new();
                loop {
                    match chars.next().ok_or_else(wrong)? {
                        '\\' => item.push(chars.next().ok_or_else(wrong)?),
                        '"' => break,
                        other => item.push(other),
                    }
                }
                open.last_mut()
                    .ok_or_else(wrong)?
                    .push(scalar(&item, kind)?);
            }
            first => {
                let mut item = String::from(first);
                while let Some(next) = chars.next_if(|next| !matches!(next, ',' | '}')) {
                    item.push(next);
                }
                let cell = match item.as_str() {
                    "NULL" => Cell::Null,
                    item => scalar(item, kind)?,
                };
                open.last_mut().ok_or_else(wrong)?.push(cell);
            }
        }
    }
    Err(wrong())
}

/// Writes a parameter for its type; `None` for null.
pub(super) fn write(cell: &Cell, type_: u32) -> Option<String> {
    Some(match cell {
        Cell::Null => return None,
        _ if matches!(type_, 114 | 3802) && !matches!(cell, Cell::Json(_) | Cell::Text(_)) => {
            cell.to_json()
        }
        Cell::Bool(it) => it.to_string(),
        Cell::Int(it) => it.to_string(),
        Cell::Float(it) if it.is_infinite() => match *it > 0.0 {
            true => "Infinity".to_owned(),
            false => "-Infinity".to_owned(),
        },
        Cell::Float(it) => it.to_string(),
        Cell::Big(text) | Cell::Decimal(text) | Cell::Text(text) | Cell::Uuid(text) => text.clone(),
        Cell::Json(text) => text.clone(),
        Cell::Instant(_) => cell.instant_text('T', "Z")?,
        Cell::Bytes(bytes) => {
            let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            format!("\\x{digits}")
        }
        Cell::List(items) => written_array(items),
    })
}

fn written_array(items: &[Cell]) -> String {
    let items: Vec<String> = items
        .iter()
        .map(|item| match item {
            Cell::List(inner) => written_array(inner),
            item => match write(item, 0) {
                None => "NULL".to_owned(),
                Some(text) => format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"")),
            },
        })
        .collect();
    format!("{{{}}}", items.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_types_are_read() {
        let cases = [
            ("t", 16, Cell::Bool(true)),
            ("-9223372036854775808", 20, Cell::Int(i64::MIN)),
            ("1.50", 1700, Cell::Decimal("1.50".into())),
            ("\\x00ff", 17, Cell::Bytes(vec![0, 255])),
            (
                "2026-03-01 10:00:00.123456+00",
                1184,
                Cell::Text("2026-03-01T10:00:00.123456Z".into()),
            ),
            (
                "2026-03-01 10:00:00",
                1114,
                Cell::Text("2026-03-01T10:00:00".into()),
            ),
            ("infinity", 1184, Cell::Text("infinity".into())),
            (
                "0044-03-15 00:00:00 BC",
                1114,
                Cell::Text("0044-03-15 00:00:00 BC".into()),
            ),
            ("a", 999_999, Cell::Text("a".into())),
            ("{}", 1009, Cell::List(vec![])),
            (
                "{a,NULL,\"b,\\\"}\",\"NULL\"}",
                1009,
                Cell::List(vec![
                    Cell::Text("a".into()),
                    Cell::Null,
                    Cell::Text("b,\"}".into()),
                    Cell::Text("NULL".into()),
                ]),
            ),
            (
                "[0:1]={{1,2},{3,4}}",
                1007,
                Cell::List(vec![
                    Cell::List(vec![Cell::Int(1), Cell::Int(2)]),
                    Cell::List(vec![Cell::Int(3), Cell::Int(4)]),
                ]),
            ),
        ];
        for (text, type_, expected) in cases {
            assert_eq!(read(text.as_bytes(), type_), Ok(expected), "{text}");
        }
        for (text, type_) in [
            ("{1", 1007),
            ("1}", 1007),
            ("x", 20),
            ("\\x0", 17),
            ("{a", 1009),
        ] {
            assert!(read(text.as_bytes(), type_).is_err(), "{text}");
        }
    }

    #[test]
    fn lists_are_arrays_or_documents() {
        let list = Cell::List(vec![Cell::Int(1), Cell::Null, Cell::Text("a\"\\".into())]);
        assert_eq!(write(&list, 1009).as_deref(), Some(r#"{"1",NULL,"a\"\\"}"#));
        assert_eq!(write(&list, 3802).as_deref(), Some(r#"[1,null,"a\"\\"]"#));
        assert_eq!(write(&Cell::Null, 3802), None);
    }
}
