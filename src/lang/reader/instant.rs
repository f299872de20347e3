//! `#inst` and `#uuid`, the two tags that every reader knows.

use nom::bytes::complete::{tag, take_while_m_n};
use nom::character::complete::{char, one_of};
use nom::combinator::{all_consuming, map_opt, opt};
use nom::sequence::{pair, preceded, separated_pair};
use nom::{IResult, Parser};

use crate::value::{CivilTime, Object, Symbol, Value, millis_of};

/// Reads the form of a built-in tag.
pub(super) fn read_builtin(tag: Symbol, form: &Value) -> Option<Result<Value, String>> {
    let is_inst = tag.is("inst");
    if !is_inst && !tag.is("uuid") {
        return None;
    }
    let Some(text) = form.as_str() else {
        return Some(Err(format!("it needs a string, not {}", form.kind())));
    };
    Some(if is_inst {
        parse_instant(text).map(|millis| Object::Inst(millis).into())
    } else {
        parse_uuid(text)
            .map(|bits| Object::Uuid(bits).into())
            .ok_or_else(|| "a uuid has the form 8-4-4-4-12 hexadecimal digits".to_owned())
    })
}

/// Returns the milliseconds since 1970 of a timestamp: `2026-01-31T12:30:00.000Z`, where everything from the month on
/// may be left out.
///
/// # Errors
/// A message that describes what is wrong with it.
pub fn parse_instant(text: &str) -> Result<i64, String> {
    let Ok((_, stamp)) = all_consuming(timestamp).parse(text) else {
        return Err("a timestamp looks like `2026-01-31T12:30:00.000Z`".to_owned());
    };
    let time = stamp.time;
    within("month", time.month, 1, 12)?;
    within("day", time.day, 1, days_in_month(time.year, time.month))?;
    within("hour", time.hour, 0, 23)?;
    within("minute", time.minute, 0, 59)?;
    within("second", time.second, 0, 59)?;
    Ok(millis_of(time) - stamp.offset_minutes * 60_000)
}

fn within(what: &str, value: u32, low: u32, high: u32) -> Result<(), String> {
    if (low..=high).contains(&value) {
        Ok(())
    } else {
        Err(format!("{what} {value} is not between {low} and {high}"))
    }
}

/// Returns the bits of a uuid, written in five groups. As in Java, a group may have fewer digits, or more, of which
/// only the last ones count.
pub fn parse_uuid(text: &str) -> Option<u128> {
    if text.len() > 36 {
        return None;
    }
    let mut bits: u128 = 0;
    let mut groups = text.split('-');
    for length in [8, 4, 4, 4, 12] {
        let group = i64::from_str_radix(groups.next()?, 16).ok()? as u64;
        let kept = group & (u64::MAX >> (64 - 4 * length));
        bits = bits << (4 * length) | u128::from(kept);
    }
    groups.next().is_none().then_some(bits)
}

struct Timestamp {
    time: CivilTime,
    offset_minutes: i64,
}

fn digits<'a>(
    count: usize,
) -> impl Parser<&'a str, Output = u32, Error = nom::error::Error<&'a str>> {
    map_opt(
        take_while_m_n(count, count, |char: char| char.is_ascii_digit()),
        |digits: &str| digits.parse().ok(),
    )
}

fn timestamp(text: &str) -> IResult<&str, Timestamp> {
    let (text, year) = digits(4).parse(text)?;
    let (text, month) = opt(preceded(char('-'), digits(2))).parse(text)?;
    let (text, day) = part(text, month.is_some(), '-')?;
    let (text, hour) = part(text, day.is_some(), 'T')?;
    let (text, minute) = part(text, hour.is_some(), ':')?;
    let (text, second) = part(text, minute.is_some(), ':')?;
    let (text, millis) = match second {
        Some(_) => opt(preceded(char('.'), fraction)).parse(text)?,
        None => (text, None),
    };
    let (text, offset_minutes) = opt(offset).parse(text)?;
    let time = CivilTime {
        year: i64::from(year),
        month: month.unwrap_or(1),
        day: day.unwrap_or(1),
        hour: hour.unwrap_or(0),
        minute: minute.unwrap_or(0),
        second: second.unwrap_or(0),
        millisecond: millis.unwrap_or(0),
        weekday: 0,
    };
    let stamp = Timestamp {
        time,
        offset_minutes: offset_minutes.unwrap_or(0),
    };
    Ok((text, stamp))
}

/// Parses two digits after a mark, if the part before them was present.
fn part(text: &str, wanted: bool, mark: char) -> IResult<&str, Option<u32>> {
    if !wanted {
        return Ok((text, None));
    }
    opt(preceded(char(mark), digits(2))).parse(text)
}

/// Parses up to nine digits of a second, of which milliseconds are kept.
fn fraction(text: &str) -> IResult<&str, u32> {
    map_opt(
        take_while_m_n(1, 9, |char: char| char.is_ascii_digit()),
        |digits: &str| format!("{digits:0<3}")[..3].parse().ok(),
    )
    .parse(text)
}

fn offset(text: &str) -> IResult<&str, i64> {
    if let Ok((rest, _)) = tag::<_, _, nom::error::Error<&str>>("Z").parse(text) {
        return Ok((rest, 0));
    }
    map_opt(
        pair(
            one_of("+-"),
            separated_pair(digits(2), char(':'), digits(2)),
        ),
        |(sign, (hours, minutes))| {
            let total = i64::from(hours) * 60 + i64::from(minutes);
            (hours < 24 && minutes < 60).then_some(if sign == '-' { -total } else { total })
        },
    )
    .parse(text)
}

fn days_in_month(year: i64, month: u32) -> u32 {
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if is_leap => 29,
        2 => 28,
        _ => 31,
    }
}
