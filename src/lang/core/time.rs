//! `java.time`: instants, dates, times, durations and their text.
//!
//! Calculations use the `jiff` crate with its bundled time zones, so that a run has the same results on every machine.
//! The current time comes from the host: in a flow, the journaled time of the run.

mod fields;
mod formatter;
mod kinds;
mod make;
mod units;

use crate::value::{Arity, HostConstant, Native, Value};
use kinds::Temporal;
pub(super) use kinds::zone_id;

/// A table of natives: name, usage, doc, examples, arity, body.
macro_rules! natives {
    ($($name:literal $usage:literal $doc:literal [$($example:expr),*] $min:literal..$max:literal
        |$vm:ident, $args:ident| $body:expr;)*) => {
        &[$($crate::core::time::native(
            $name,
            $usage,
            $doc,
            &[$($example),*],
            $crate::value::Arity::between($min, $max),
            |$vm, $args| $body,
        )),*]
    };
}
use natives;

/// A native function.
const fn native(
    name: &'static str,
    usage: &'static str,
    doc: &'static str,
    examples: &'static [(&'static str, &'static str)],
    arity: Arity,
    run: fn(&mut crate::vm::Vm, crate::vm::Args<'_>) -> crate::value::Result<Value>,
) -> Native {
    Native {
        name,
        usage,
        doc,
        examples,
        arity,
        run,
    }
}

/// Checks a pattern of dates and times as `DateTimeFormatter/ofPattern` parses it.
///
/// # Errors
/// The exception that `ofPattern` throws.
pub fn check_date_pattern(pattern: &str) -> crate::value::Result<()> {
    formatter::compile(pattern).map(|_| ())
}

/// The classes and their functions.
pub(super) const AREAS: &[(&str, &[Native])] = &[
    ("Date", fields::DATE),
    ("DateTimeFormatter", formatter::FNS),
    ("DayOfWeek", make::WEEKDAY),
    ("Duration", make::DURATION),
    ("Instant", make::INSTANT),
    ("LocalDate", make::DATE),
    ("LocalDateTime", make::DATE_TIME),
    ("LocalTime", make::TIME),
    ("Month", make::MONTH),
    ("Period", make::PERIOD),
    ("TemporalAdjusters", make::ADJUSTERS),
    ("ZoneId", make::ZONE),
    ("ZoneOffset", make::OFFSET),
    ("ZonedDateTime", make::ZONED),
    ("clojure.core", fields::GETTERS),
    ("clojure.core", fields::METHODS),
    ("clojure.core", fields::SHIFTS),
    ("clojure.core", formatter::METHODS),
];

/// The constants of the classes: class, name and value.
pub(super) fn constants() -> Vec<(&'static str, &'static str, Value)> {
    let of = |class: &'static str, table: &'static [HostConstant]| {
        table
            .iter()
            .map(move |constant| (class, constant.name, Value::host(constant)))
    };
    let fixed = [
        (
            "Duration",
            "ZERO",
            Temporal::Duration(jiff::SignedDuration::ZERO),
        ),
        (
            "Instant",
            "EPOCH",
            Temporal::Instant(jiff::Timestamp::UNIX_EPOCH),
        ),
        (
            "LocalDate",
            "EPOCH",
            Temporal::Date(jiff::civil::Date::constant(1970, 1, 1)),
        ),
        (
            "LocalTime",
            "MIDNIGHT",
            Temporal::Time(jiff::civil::Time::midnight()),
        ),
        (
            "LocalTime",
            "NOON",
            Temporal::Time(jiff::civil::Time::constant(12, 0, 0, 0)),
        ),
        (
            "Period",
            "ZERO",
            Temporal::Period(kinds::Period {
                years: 0,
                months: 0,
                days: 0,
            }),
        ),
        (
            "ZoneOffset",
            "UTC",
            Temporal::Zone(kinds::fixed(jiff::tz::Offset::UTC)),
        ),
    ];
    of("ChronoUnit", &units::UNITS)
        .chain(of("DayOfWeek", &units::WEEKDAYS))
        .chain(of("Month", &units::MONTHS))
        .chain(fixed.map(|(class, name, value)| (class, name, value.into())))
        .chain(formatter::constants())
        .collect()
}

/// A value of `java.time` that is a point in time, or a part of one.
pub(super) enum PointInTime {
    Instant(jiff::Timestamp),
    Date(jiff::civil::Date),
    Time(jiff::civil::Time),
    DateTime(jiff::civil::DateTime),
    Zoned(jiff::Zoned),
}

impl PointInTime {
    /// Returns the point in time, if the value is one.
    pub(super) fn of(value: &Value) -> Option<PointInTime> {
        Some(match value.as_host::<Temporal>()? {
            Temporal::Instant(at) => PointInTime::Instant(*at),
            Temporal::Date(date) => PointInTime::Date(*date),
            Temporal::Time(time) => PointInTime::Time(*time),
            Temporal::DateTime(at) => PointInTime::DateTime(*at),
            Temporal::Zoned(at) => PointInTime::Zoned(at.clone()),
            Temporal::Duration(_)
            | Temporal::Period(_)
            | Temporal::Zone(_)
            | Temporal::Adjuster(_) => return None,
        })
    }
}

/// Returns the milliseconds since 1970 of a `java.time.Instant`; `None` for any other value.
pub(super) fn epoch_millis(value: &Value) -> Option<i64> {
    match value.as_host::<Temporal>()? {
        Temporal::Instant(at) => Some(at.as_nanosecond().div_euclid(1_000_000) as i64),
        _ => None,
    }
}
