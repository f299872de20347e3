//! The values of `java.time`: their content, text, order and equality.

use std::cmp::Ordering;
use std::fmt::Write as _;

use jiff::civil::{Date, DateTime, Time};
use jiff::tz::{Offset, TimeZone};
use jiff::{SignedDuration, Timestamp, Zoned};

use crate::value::{Class, Exception, HostConstant, HostObject, Result, Signal, Value};
use crate::vm::Args;

/// A value of `java.time`.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Temporal {
    Instant(Timestamp),
    Date(Date),
    Time(Time),
    DateTime(DateTime),
    Zoned(Zoned),
    Duration(SignedDuration),
    Period(Period),
    Zone(TimeZone),
    Adjuster(Adjuster),
}

/// Years, months and days, each with its own sign.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Period {
    pub years: i64,
    pub months: i64,
    pub days: i64,
}

/// A result of `java.time.temporal.TemporalAdjusters`: the day that a date is moved to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Adjuster {
    FirstDayOfMonth,
    LastDayOfMonth,
    FirstDayOfNextMonth,
    FirstDayOfYear,
    LastDayOfYear,
    FirstDayOfNextYear,
    /// A weekday, Monday being 0; before or after the date; whether the date itself counts.
    Weekday {
        day: i8,
        forward: bool,
        or_same: bool,
    },
}

impl HostObject for Temporal {
    fn class_name(&self) -> &'static str {
        match self {
            Temporal::Instant(_) => "java.time.Instant",
            Temporal::Date(_) => "java.time.LocalDate",
            Temporal::Time(_) => "java.time.LocalTime",
            Temporal::DateTime(_) => "java.time.LocalDateTime",
            Temporal::Zoned(_) => "java.time.ZonedDateTime",
            Temporal::Duration(_) => "java.time.Duration",
            Temporal::Period(_) => "java.time.Period",
            Temporal::Zone(zone) if zone.iana_name().is_some() => "java.time.ZoneId",
            Temporal::Zone(_) => "java.time.ZoneOffset",
            Temporal::Adjuster(_) => "java.time.temporal.TemporalAdjuster",
        }
    }

    fn text(&self) -> String {
        match self {
            Temporal::Instant(instant) => {
                let at = Offset::UTC.to_datetime(*instant);
                let mut out = format!("{}T", at.date());
                write_time(&mut out, at.time(), true);
                out + "Z"
            }
            Temporal::Date(date) => date.to_string(),
            Temporal::Time(time) => {
                let mut out = String::new();
                write_time(&mut out, *time, false);
                out
            }
            Temporal::DateTime(at) => local(*at),
            Temporal::Zoned(zoned) => {
                let mut out = local(zoned.datetime());
                out.push_str(&offset_id(zoned.offset()));
                if let Some(name) = zoned.time_zone().iana_name() {
                    let _ = write!(out, "[{name}]");
                }
                out
            }
            Temporal::Duration(duration) => duration_text(*duration),
            Temporal::Period(period) => period_text(*period),
            Temporal::Zone(zone) => zone_id(zone),
            Temporal::Adjuster(adjuster) => format!("{adjuster:?}"),
        }
    }

    fn equals(&self, other: &dyn HostObject) -> bool {
        other
            .downcast::<Temporal>()
            .is_some_and(|other| match (self, other) {
                // Two zoned times are equal if their zones are equal as well.
                (Temporal::Zoned(left), Temporal::Zoned(right)) => {
                    left == right && left.time_zone() == right.time_zone()
                }
                _ => self == other,
            })
    }

    fn hash(&self) -> u32 {
        self.text().bytes().fold(0, |hash: u32, byte| {
            hash.wrapping_mul(31).wrapping_add(u32::from(byte))
        })
    }

    fn compare(&self, other: &dyn HostObject) -> Option<Ordering> {
        match (self, other.downcast::<Temporal>()?) {
            (Temporal::Instant(left), Temporal::Instant(right)) => Some(left.cmp(right)),
            (Temporal::Date(left), Temporal::Date(right)) => Some(left.cmp(right)),
            (Temporal::Time(left), Temporal::Time(right)) => Some(left.cmp(right)),
            (Temporal::DateTime(left), Temporal::DateTime(right)) => Some(left.cmp(right)),
            (Temporal::Zoned(left), Temporal::Zoned(right)) => Some(left.cmp(right)),
            (Temporal::Duration(left), Temporal::Duration(right)) => Some(left.cmp(right)),
            _ => None,
        }
    }
}

impl From<Temporal> for Value {
    fn from(temporal: Temporal) -> Value {
        Value::host(temporal)
    }
}

fn local(at: DateTime) -> String {
    let mut out = format!("{}T", at.date());
    write_time(&mut out, at.time(), false);
    out
}

/// Writes hours and minutes; seconds if they are not zero, or always; fractions in groups of three digits.
pub(super) fn write_time(out: &mut String, time: Time, seconds: bool) {
    let _ = write!(out, "{:02}:{:02}", time.hour(), time.minute());
    let nanos = time.subsec_nanosecond();
    if seconds || time.second() != 0 || nanos != 0 {
        let _ = write!(out, ":{:02}", time.second());
    }
    match nanos {
        0 => {}
        nanos if nanos % 1_000_000 == 0 => drop(write!(out, ".{:03}", nanos / 1_000_000)),
        nanos if nanos % 1_000 == 0 => drop(write!(out, ".{:06}", nanos / 1_000)),
        nanos => drop(write!(out, ".{nanos:09}")),
    }
}

/// Returns `Z` or an offset such as `+01:00`, with seconds if they are not zero.
pub(super) fn offset_id(offset: Offset) -> String {
    let seconds = offset.seconds();
    if seconds == 0 {
        return "Z".to_owned();
    }
    let sign = if seconds < 0 { '-' } else { '+' };
    let seconds = seconds.abs();
    let mut out = format!("{sign}{:02}:{:02}", seconds / 3600, seconds / 60 % 60);
    if seconds % 60 != 0 {
        let _ = write!(out, ":{:02}", seconds % 60);
    }
    out
}

/// Returns the name of a zone, or its offset.
pub(in crate::core) fn zone_id(zone: &TimeZone) -> String {
    match zone.iana_name() {
        Some(name) => name.to_owned(),
        None => offset_id(zone.to_fixed_offset().unwrap_or(Offset::UTC)),
    }
}

/// Returns `PT1H30M`, as Java writes it: days are hours.
fn duration_text(duration: SignedDuration) -> String {
    if duration.is_zero() {
        return "PT0S".to_owned();
    }
    let (seconds, nanos) = (duration.as_secs(), duration.subsec_nanos());
    let mut out = "PT".to_owned();
    if seconds / 3600 != 0 {
        let _ = write!(out, "{}H", seconds / 3600);
    }
    if seconds / 60 % 60 != 0 {
        let _ = write!(out, "{}M", seconds / 60 % 60);
    }
    if seconds % 60 != 0 || nanos != 0 {
        if duration.is_negative() {
            out.push('-');
        }
        let _ = write!(out, "{}", (seconds % 60).abs());
        if nanos != 0 {
            let fraction = format!("{:09}", nanos.abs());
            let _ = write!(out, ".{}", fraction.trim_end_matches('0'));
        }
        out.push('S');
    }
    out
}

fn period_text(period: Period) -> String {
    let mut out = "P".to_owned();
    for (count, letter) in [
        (period.years, 'Y'),
        (period.months, 'M'),
        (period.days, 'D'),
    ] {
        if count != 0 {
            let _ = write!(out, "{count}{letter}");
        }
    }
    if out == "P" { "P0D".to_owned() } else { out }
}

/// Returns an argument that is a value of `java.time`; an `#inst` is an instant.
pub(super) fn temporal(args: &Args<'_>, idx: usize) -> Result<Temporal> {
    if let Some(temporal) = args.get(idx).as_host::<Temporal>() {
        return Ok(temporal.clone());
    }
    if let Value::Object(object) = args.get(idx)
        && let crate::value::Object::Inst(millis) = &**object
    {
        return Timestamp::from_millisecond(*millis)
            .map(Temporal::Instant)
            .map_err(out_of_range);
    }
    Err(args.expected(idx, "a value of java.time"))
}

/// Returns a constant of an enumeration, by its full name.
pub(super) fn constant(args: &Args<'_>, idx: usize, class: &str) -> Option<&'static HostConstant> {
    args.get(idx)
        .as_host::<&'static HostConstant>()
        .copied()
        .filter(|constant| constant.class == class)
}

/// Returns a time zone given as a zone or by its name.
pub(super) fn zone(args: &Args<'_>, idx: usize) -> Result<TimeZone> {
    match args.get(idx) {
        Value::Text(text) => zone_named(text.as_str()),
        value => match value.as_host::<Temporal>() {
            Some(Temporal::Zone(zone)) => Ok(zone.clone()),
            _ => Err(args.expected(idx, "a java.time.ZoneId")),
        },
    }
}

/// Returns a zone of the bundled database, or a fixed offset.
pub(super) fn zone_named(name: &str) -> Result<TimeZone> {
    if matches!(name, "Z" | "z") {
        return Ok(fixed(Offset::UTC));
    }
    if name.starts_with(['+', '-']) {
        return parse_offset(name)
            .map(fixed)
            .ok_or_else(|| date_time(format!("`{name}` is not an offset such as +01:00")));
    }
    thread_local! {
        static ZONES: jiff::tz::TimeZoneDatabase = jiff::tz::TimeZoneDatabase::bundled();
    }
    ZONES
        .with(|zones| zones.get(name))
        .map_err(|_| date_time(format!("there is no time zone `{name}`")))
}

/// Returns the zone of an offset. The zone of offset zero differs from the zone named UTC, as in Java.
pub(super) fn fixed(offset: Offset) -> TimeZone {
    if offset == Offset::UTC {
        return TimeZone::posix("UTC0").unwrap_or(TimeZone::UTC);
    }
    TimeZone::fixed(offset)
}

/// Parses `+01`, `+0130`, `+01:30`, `+01:30:15`.
pub(super) fn parse_offset(text: &str) -> Option<Offset> {
    let (sign, digits) = match text.split_at_checked(1)? {
        ("+", digits) => (1, digits),
        ("-", digits) => (-1, digits),
        _ => return None,
    };
    let digits = digits.replace(':', "");
    if digits.is_empty() || digits.len() > 6 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let digits = if digits.len() % 2 == 1 {
        format!("0{digits}")
    } else {
        digits
    };
    let part = |at: usize| {
        digits
            .get(at..at + 2)
            .map_or(Some(0), |part| part.parse::<i32>().ok())
    };
    Offset::from_seconds(sign * (part(0)? * 3600 + part(2)? * 60 + part(4)?)).ok()
}

/// Returns the exception for an invalid date or time.
#[cold]
pub(super) fn date_time(message: impl Into<String>) -> Signal {
    Exception::new(Class::DATE_TIME, "E0361", message.into()).into()
}

/// Returns the exception for a text that cannot be parsed.
#[cold]
pub(super) fn no_parse(text: &str, what: &str) -> Signal {
    let message = format!("Text '{text}' could not be parsed as {what}");
    Exception::new(Class::DATE_TIME_PARSE, "E0361", message)
        .argument(0)
        .into()
}

/// Returns the exception for a result outside of the calendar's range.
#[cold]
pub(super) fn out_of_range(error: jiff::Error) -> Signal {
    date_time(format!("out of range: {error}"))
}
