//! Values of MySQL in the binary form of prepared statements.

use super::packet::{Reader, put_counted};
use crate::db::cell::Cell;

/// A column of an answer.
pub(super) struct Column {
    pub name: String,
    type_: u8,
    is_unsigned: bool,
    is_binary: bool,
}

/// The set of characters of bytes.
const BINARY: u64 = 63;
const UNSIGNED: u64 = 0x20;

mod types {
    pub(super) const TINY: u8 = 1;
    pub(super) const SHORT: u8 = 2;
    pub(super) const LONG: u8 = 3;
    pub(super) const FLOAT: u8 = 4;
    pub(super) const DOUBLE: u8 = 5;
    pub(super) const NULL: u8 = 6;
    pub(super) const TIMESTAMP: u8 = 7;
    pub(super) const LONG_LONG: u8 = 8;
    pub(super) const INT24: u8 = 9;
    pub(super) const DATE: u8 = 10;
    pub(super) const TIME: u8 = 11;
    pub(super) const DATE_TIME: u8 = 12;
    pub(super) const YEAR: u8 = 13;
    pub(super) const BIT: u8 = 16;
    pub(super) const JSON: u8 = 245;
    pub(super) const DECIMAL: u8 = 0;
    pub(super) const NEW_DECIMAL: u8 = 246;
    pub(super) const BLOB: u8 = 252;
    pub(super) const VAR_STRING: u8 = 253;
    pub(super) const GEOMETRY: u8 = 255;
}

impl Column {
    pub(super) fn read(packet: &[u8]) -> Option<Column> {
        let mut reader = Reader::new(packet);
        for _ in 0..4 {
            reader.counted()?;
        }
        let name = String::from_utf8_lossy(reader.counted()?).into_owned();
        reader.counted()?;
        reader.number()?;
        let charset = reader.int(2)?;
        reader.int(4)?;
        let type_ = reader.byte()?;
        let flags = reader.int(2)?;
        Some(Column {
            name,
            type_,
            is_unsigned: flags & UNSIGNED != 0,
            is_binary: charset == BINARY,
        })
    }
}

/// Reads a row; `None` if it is not well formed. The error describes a value that a flow cannot hold.
pub(super) fn row(packet: &[u8], columns: &[Column]) -> Option<Result<Vec<Cell>, String>> {
    let mut reader = Reader::new(packet);
    reader.byte()?;
    let nulls = reader.bytes((columns.len() + 9) / 8)?;
    let mut cells = Vec::with_capacity(columns.len());
    for (idx, column) in columns.iter().enumerate() {
        // The first two bits are not used.
        let bit = idx + 2;
        if nulls[bit / 8] & (1 << (bit % 8)) != 0 {
            cells.push(Cell::Null);
            continue;
        }
        match cell(&mut reader, column)? {
            Ok(cell) => cells.push(cell),
            Err(cause) => return Some(Err(format!("column `{}`: {cause}", column.name))),
        }
    }
    Some(Ok(cells))
}

fn cell(reader: &mut Reader<'_>, column: &Column) -> Option<Result<Cell, String>> {
    Some(Ok(match column.type_ {
        types::TINY => int(reader.int(1)?, 8, column),
        types::SHORT | types::YEAR => int(reader.int(2)?, 16, column),
        types::LONG | types::INT24 => int(reader.int(4)?, 32, column),
        types::LONG_LONG => int(reader.int(8)?, 64, column),
        types::FLOAT => {
            let bits = u32::try_from(reader.int(4)?).ok()?;
            // The shortest decimal of the 32 bits, not the nearest one of 64.
            Cell::Float(f32::from_bits(bits).to_string().parse().ok()?)
        }
        types::DOUBLE => Cell::Float(f64::from_bits(reader.int(8)?)),
        types::NULL => Cell::Null,
        types::DATE => Cell::Text(date(reader, false)?),
        types::DATE_TIME | types::TIMESTAMP => Cell::Text(date(reader, true)?),
        types::TIME => Cell::Text(time(reader)?),
        other => return of_bytes(reader.counted()?, other, column.is_binary),
    }))
}

fn of_bytes(bytes: &[u8], type_: u8, is_binary: bool) -> Option<Result<Cell, String>> {
    let text = || {
        let text = std::str::from_utf8(bytes).map(str::to_owned);
        text.map_err(|_| "its text is not UTF-8".to_owned())
    };
    Some(match type_ {
        types::DECIMAL | types::NEW_DECIMAL => text().map(Cell::Decimal),
        types::JSON => text().map(Cell::Json),
        types::BIT if bytes.len() <= 8 => {
            let bits = bytes
                .iter()
                .fold(0_u64, |all, byte| (all << 8) | u64::from(*byte));
            Ok(unsigned(bits))
        }
        types::GEOMETRY | types::BIT => Ok(Cell::Bytes(bytes.to_vec())),
        _ if is_binary => Ok(Cell::Bytes(bytes.to_vec())),
        _ => text().map(Cell::Text),
    })
}

fn int(raw: u64, bits: u32, column: &Column) -> Cell {
    match column.is_unsigned {
        true => unsigned(raw),
        // The sign is moved to the top and back.
        false => Cell::Int((raw << (64 - bits)).cast_signed() >> (64 - bits)),
    }
}

fn unsigned(raw: u64) -> Cell {
    match i64::try_from(raw) {
        Ok(int) => Cell::Int(int),
        Err(_) => Cell::Big(raw.to_string()),
    }
}

fn date(reader: &mut Reader<'_>, has_time: bool) -> Option<String> {
    let length = reader.byte()?;
    let (mut parts, mut micros) = ([0_u64; 6], 0);
    if length >= 4 {
        parts[0] = reader.int(2)?;
        parts[1] = reader.int(1)?;
        parts[2] = reader.int(1)?;
    }
    if length >= 7 {
        for part in &mut parts[3..] {
            *part = reader.int(1)?;
        }
    }
    if length >= 11 {
        micros = reader.int(4)?;
    }
    let [year, month, day, hour, minute, second] = parts;
    let date = format!("{year:04}-{month:02}-{day:02}");
    Some(match has_time {
        false => date,
        true => format!(
            "{date}T{hour:02}:{minute:02}:{second:02}{}",
            fraction(micros)
        ),
    })
}

fn fraction(micros: u64) -> String {
    match micros {
        0 => String::new(),
        micros => format!(".{micros:06}").trim_end_matches('0').to_owned(),
    }
}

/// Reads a time, which may be negative or longer than a day, as the database writes it.
fn time(reader: &mut Reader<'_>) -> Option<String> {
    let length = reader.byte()?;
    if length == 0 {
        return Some("00:00:00".to_owned());
    }
    let sign = match reader.byte()? {
        0 => "",
        _ => "-",
    };
    let days = reader.int(4)?;
    let (hour, minute, second) = (reader.int(1)?, reader.int(1)?, reader.int(1)?);
    let micros = match length {
        12 => reader.int(4)?,
        _ => 0,
    };
    let hours = days * 24 + hour;
    Some(format!(
        "{sign}{hours:02}:{minute:02}:{second:02}{}",
        fraction(micros)
    ))
}

/// Writes parameters: which are null, their types, their values.
///
/// # Errors
/// A description of a parameter that the database does not take.
pub(super) fn write(out: &mut Vec<u8>, params: &[Cell]) -> Result<(), String> {
    if params.is_empty() {
        return Ok(());
    }
    let mut nulls = vec![0_u8; params.len().div_ceil(8)];
    let (mut kinds, mut values) = (Vec::new(), Vec::new());
    for (idx, cell) in params.iter().enumerate() {
        let type_ = match cell {
            Cell::Null => {
                nulls[idx / 8] |= 1 << (idx % 8);
                types::NULL
            }
            Cell::Bool(it) => {
                values.extend_from_slice(&i64::from(*it).to_le_bytes());
                types::LONG_LONG
            }
            Cell::Int(it) => {
                values.extend_from_slice(&it.to_le_bytes());
                types::LONG_LONG
            }
            Cell::Float(it) if !it.is_finite() => {
                return Err(format!(
                    "`:params` has {it}, which the database cannot hold"
                ));
            }
            Cell::Float(it) => {
                values.extend_from_slice(&it.to_le_bytes());
                types::DOUBLE
            }
            Cell::Big(text) | Cell::Decimal(text) => {
                put_counted(&mut values, text.as_bytes());
                types::NEW_DECIMAL
            }
            Cell::Text(text) | Cell::Uuid(text) | Cell::Json(text) => {
                put_counted(&mut values, text.as_bytes());
                types::VAR_STRING
            }
            // The session is in UTC.
            Cell::Instant(_) => {
                let text = cell.instant_text(' ', "").unwrap_or_default();
                put_counted(&mut values, text.as_bytes());
                types::VAR_STRING
            }
            Cell::Bytes(bytes) => {
                put_counted(&mut values, bytes);
                types::BLOB
            }
            Cell::List(_) => return Err(super::super::cell::NO_LIST.to_owned()),
        };
        kinds.extend_from_slice(&[type_, 0]);
    }
    out.extend_from_slice(&nulls);
    out.push(1);
    out.extend_from_slice(&kinds);
    out.extend_from_slice(&values);
    Ok(())
}
