//! `#inst` and `#uuid`: the two tags that every reader knows.

use nom::bytes::complete::{tag, take_while_m_n};
use nom::character::complete::{char, one_of};
use nom::combinator::{all_consuming, map_opt, opt};
use nom::sequence::{pair, preceded, separated_pair};
use nom::{IResult, Parser};

use crate::value::{Object, Symbol, Value};

const DAY_MILLIS: i64 = 86_400_000;

/// Reads the form of a tag that is known without any table.
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

/// Returns the milliseconds since 1970 of a timestamp: `2026-01-31T12:30:00.000Z`, where everything from
/// the month on may be left out.
///
/// # Errors
/// Words that say what is wrong.
pub fn parse_instant(text: &str) -> Result<i64, String> {
    let Ok((_, stamp)) = all_consuming(timestamp).parse(text) else {
        return Err("a timestamp looks like `2026-01-31T12:30:00.000Z`".to_owned());
    };
    let within = |what: &str, value: u32, low: u32, high: u32| {
        if (low..=high).contains(&value) {
            Ok(i64::from(value))
        } else {
            Err(format!("{what} {value} is not between {low} and {high}"))
        }
    };
    let month = within("month", stamp.month, 1, 12)?;
    let last = days_in_month(stamp.year, stamp.month);
    let day = within("day", stamp.day, 1, last)?;
    let hour = within("hour", stamp.hour, 0, 23)?;
    let minute = within("minute", stamp.minute, 0, 59)?;
    let second = within("second", stamp.second, 0, 59)?;
    let days = days_from_civil(i64::from(stamp.year), month, day);
    let seconds = (hour * 60 + minute) * 60 + second;
    Ok(
        days * DAY_MILLIS + seconds * 1000 + i64::from(stamp.millis)
            - stamp.offset_minutes * 60_000,
    )
}

/// Returns the bits of a uuid, written in five groups.
pub fn parse_uuid(text: &str) -> Option<u128> {
    let mut bits: u128 = 0;
    let mut groups = text.split('-');
    for length in [8, 4, 4, 4, 12] {
        let group = groups.next()?;
        if group.len() != length || !group.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return None;
        }
        bits = bits << (4 * length) | u128::from_str_radix(group, 16).ok()?;
    }
    groups.next().is_none().then_some(bits)
}

struct Timestamp {
    year: u32,
    month: u32,
    day: u32,
    hour: u32,
    minute: u32,
    second: u32,
    millis: u32,
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
    let stamp = Timestamp {
        year,
        month: month.unwrap_or(1),
        day: day.unwrap_or(1),
        hour: hour.unwrap_or(0),
        minute: minute.unwrap_or(0),
        second: second.unwrap_or(0),
        millis: millis.unwrap_or(0),
        offset_minutes: offset_minutes.unwrap_or(0),
    };
    Ok((text, stamp))
}

/// Two digits after a mark, if the part before them was there.
fn part(text: &str, wanted: bool, mark: char) -> IResult<&str, Option<u32>> {
    if !wanted {
        return Ok((text, None));
    }
    opt(preceded(char(mark), digits(2))).parse(text)
}

/// Up to nine digits of a second, of which milliseconds are kept.
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

fn days_in_month(year: u32, month: u32) -> u32 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400)) => {
            29
        }
        2 => 28,
        _ => 31,
    }
}

/// Days since 1970-01-01, by counting years from March, so that the leap day is the last.
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}
