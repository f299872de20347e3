//! `ChronoUnit`, `DayOfWeek` and `Month`, and the arithmetic of units on dates and times.

use jiff::civil::{Date, DateTime, Time};
use jiff::{SignedDuration, Span, Timestamp};

use super::kinds::{Period, Temporal, constant, date_time, out_of_range};
use crate::value::number::overflow;
use crate::value::{HostConstant, Result};
use crate::vm::Args;

const UNIT: &str = "java.time.temporal.ChronoUnit";
const WEEKDAY: &str = "java.time.DayOfWeek";
const MONTH: &str = "java.time.Month";

macro_rules! constants {
    ($table:ident $class:ident $count:literal, $($name:literal)*) => {
        /// The constants in the order of the class.
        pub(super) static $table: [HostConstant; $count] = {
            let mut ordinal = 0;
            [$(HostConstant {
                class: $class,
                name: $name,
                ordinal: { ordinal += 1; ordinal - 1 },
            }),*]
        };
    };
}

constants!(UNITS UNIT 15, "NANOS" "MICROS" "MILLIS" "SECONDS" "MINUTES" "HOURS" "HALF_DAYS" "DAYS" "WEEKS"
    "MONTHS" "YEARS" "DECADES" "CENTURIES" "MILLENNIA" "ERAS");
constants!(WEEKDAYS WEEKDAY 7, "MONDAY" "TUESDAY" "WEDNESDAY" "THURSDAY" "FRIDAY" "SATURDAY" "SUNDAY");
constants!(MONTHS MONTH 12, "JANUARY" "FEBRUARY" "MARCH" "APRIL" "MAY" "JUNE" "JULY" "AUGUST" "SEPTEMBER"
    "OCTOBER" "NOVEMBER" "DECEMBER");

/// A unit as a number of nanoseconds, days or months.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unit {
    Nanos(i64),
    Days(i64),
    Months(i64),
}

pub(super) const NANO: Unit = Unit::Nanos(1);
pub(super) const MILLI: Unit = Unit::Nanos(1_000_000);
pub(super) const SECOND: Unit = Unit::Nanos(1_000_000_000);
pub(super) const MINUTE: Unit = Unit::Nanos(60_000_000_000);
pub(super) const HOUR: Unit = Unit::Nanos(3_600_000_000_000);
const DAY_NANOS: i64 = 86_400_000_000_000;

impl Unit {
    /// Returns a unit argument.
    pub(super) fn of(args: &Args<'_>, idx: usize) -> Result<Unit> {
        let found = constant(args, idx, UNIT);
        let found = found.ok_or_else(|| args.expected(idx, "a java.time.temporal.ChronoUnit"))?;
        Ok(match found.ordinal {
            0 => NANO,
            1 => Unit::Nanos(1_000),
            2 => MILLI,
            3 => SECOND,
            4 => MINUTE,
            5 => HOUR,
            6 => Unit::Nanos(DAY_NANOS / 2),
            7 => Unit::Days(1),
            8 => Unit::Days(7),
            9 => Unit::Months(1),
            10 => Unit::Months(12),
            11 => Unit::Months(120),
            12 => Unit::Months(1_200),
            13 => Unit::Months(12_000),
            _ => return Err(date_time("the unit ERAS has no length")),
        })
    }
}

/// Returns a weekday argument, Monday being 0.
pub(super) fn weekday(args: &Args<'_>, idx: usize) -> Result<i8> {
    constant(args, idx, WEEKDAY)
        .map(|day| day.ordinal as i8)
        .ok_or_else(|| args.expected(idx, "a java.time.DayOfWeek"))
}

/// Returns a month argument, from 1: a number or a constant.
pub(super) fn month(args: &Args<'_>, idx: usize) -> Result<i64> {
    match constant(args, idx, MONTH) {
        Some(month) => Ok(i64::from(month.ordinal) + 1),
        None => args.int(idx),
    }
}

/// Adds a number of units to a date, time or amount.
pub(super) fn plus(of: &Temporal, amount: i64, unit: Unit) -> Result<Temporal> {
    let times = |each: i64| amount.checked_mul(each).ok_or_else(overflow);
    Ok(match (of, unit) {
        (Temporal::Instant(at), Unit::Nanos(each)) => Temporal::Instant(shift(*at, amount, each)?),
        (Temporal::Instant(at), Unit::Days(1)) => Temporal::Instant(shift(*at, amount, DAY_NANOS)?),
        (Temporal::Date(date), Unit::Days(each)) => Temporal::Date(plus_days(*date, times(each)?)?),
        (Temporal::Date(date), Unit::Months(each)) => {
            Temporal::Date(plus_months(*date, times(each)?)?)
        }
        (Temporal::Time(time), Unit::Nanos(each)) => {
            let nanos = i128::from(amount) * i128::from(each) + i128::from(nano_of_day(*time));
            Temporal::Time(time_of(nanos.rem_euclid(i128::from(DAY_NANOS)) as i64))
        }
        (Temporal::DateTime(at), Unit::Nanos(each)) => {
            let nanos = i128::from(amount) * i128::from(each) + i128::from(nano_of_day(at.time()));
            let days = nanos.div_euclid(i128::from(DAY_NANOS));
            let days = i64::try_from(days).map_err(|_| overflow())?;
            let time = time_of(nanos.rem_euclid(i128::from(DAY_NANOS)) as i64);
            Temporal::DateTime(plus_days(at.date(), days)?.to_datetime(time))
        }
        (Temporal::DateTime(at), _) => {
            Temporal::DateTime(plus_date(at.date(), amount, unit)?.to_datetime(at.time()))
        }
        (Temporal::Zoned(at), Unit::Nanos(each)) => {
            Temporal::Zoned(shift(at.timestamp(), amount, each)?.to_zoned(at.time_zone().clone()))
        }
        (Temporal::Zoned(at), _) => {
            let moved = plus_date(at.date(), amount, unit)?.to_datetime(at.time());
            Temporal::Zoned(
                moved
                    .to_zoned(at.time_zone().clone())
                    .map_err(out_of_range)?,
            )
        }
        (Temporal::Duration(duration), Unit::Nanos(each)) => Temporal::Duration(
            duration
                .checked_add(span(amount, each)?)
                .ok_or_else(overflow)?,
        ),
        (Temporal::Duration(duration), Unit::Days(1)) => Temporal::Duration(
            duration
                .checked_add(span(amount, DAY_NANOS)?)
                .ok_or_else(overflow)?,
        ),
        (Temporal::Period(period), Unit::Days(each)) => Temporal::Period(Period {
            days: period.days.checked_add(times(each)?).ok_or_else(overflow)?,
            ..*period
        }),
        (Temporal::Period(period), Unit::Months(12)) => Temporal::Period(Period {
            years: period.years.checked_add(amount).ok_or_else(overflow)?,
            ..*period
        }),
        (Temporal::Period(period), Unit::Months(each)) => Temporal::Period(Period {
            months: period
                .months
                .checked_add(times(each)?)
                .ok_or_else(overflow)?,
            ..*period
        }),
        (of, _) => return Err(unsupported(of)),
    })
}

#[cold]
pub(super) fn unsupported(of: &Temporal) -> crate::value::Signal {
    use crate::value::HostObject;
    date_time(format!(
        "Unsupported unit: a {} has nothing of this size",
        of.class_name()
    ))
}

/// Returns the span of `amount` times `each` nanoseconds.
pub(super) fn span(amount: i64, each: i64) -> Result<SignedDuration> {
    let nanos = i128::from(amount) * i128::from(each);
    let seconds = i64::try_from(nanos / 1_000_000_000).map_err(|_| overflow())?;
    Ok(SignedDuration::new(seconds, (nanos % 1_000_000_000) as i32))
}

fn shift(at: Timestamp, amount: i64, each: i64) -> Result<Timestamp> {
    at.checked_add(span(amount, each)?).map_err(out_of_range)
}

fn plus_date(date: Date, amount: i64, unit: Unit) -> Result<Date> {
    match unit {
        Unit::Days(each) => plus_days(date, amount.checked_mul(each).ok_or_else(overflow)?),
        Unit::Months(each) => plus_months(date, amount.checked_mul(each).ok_or_else(overflow)?),
        Unit::Nanos(_) => Err(unsupported(&Temporal::Date(date))),
    }
}

pub(super) fn plus_days(date: Date, days: i64) -> Result<Date> {
    let span = Span::new().try_days(days).map_err(out_of_range)?;
    date.checked_add(span).map_err(out_of_range)
}

/// Adds months; the day is kept if the month has it, else it is the month's last.
pub(super) fn plus_months(date: Date, months: i64) -> Result<Date> {
    let span = Span::new().try_months(months).map_err(out_of_range)?;
    date.checked_add(span).map_err(out_of_range)
}

pub(super) fn nano_of_day(time: Time) -> i64 {
    let seconds =
        i64::from(time.hour()) * 3600 + i64::from(time.minute()) * 60 + i64::from(time.second());
    seconds * 1_000_000_000 + i64::from(time.subsec_nanosecond())
}

/// Returns the time a number of nanoseconds, less than a day, after midnight.
pub(super) fn time_of(nanos: i64) -> Time {
    let seconds = nanos / 1_000_000_000;
    jiff::civil::time(
        (seconds / 3600) as i8,
        (seconds / 60 % 60) as i8,
        (seconds % 60) as i8,
        (nanos % 1_000_000_000) as i32,
    )
}

pub(super) fn epoch_day(date: Date) -> i64 {
    let since = date.duration_since(Date::constant(1970, 1, 1));
    since.as_hours() / 24
}

/// Returns the number of whole units between two points in time of the same kind.
pub(super) fn until(from: &Temporal, to: &Temporal, unit: Unit) -> Result<i64> {
    match (from, to) {
        (Temporal::Date(from), Temporal::Date(to)) => dates_until(*from, *to, unit),
        (Temporal::Instant(from), Temporal::Instant(to)) => {
            whole(to.duration_since(*from), unit)
                .ok_or_else(|| unsupported(&Temporal::Instant(*from)))?
        }
        (Temporal::Time(from), Temporal::Time(to)) => {
            let nanos = nano_of_day(*to) - nano_of_day(*from);
            let between = SignedDuration::from_nanos(nanos);
            match unit {
                Unit::Nanos(_) => whole(between, unit).unwrap_or(Ok(0)),
                _ => Err(unsupported(&Temporal::Time(*from))),
            }
        }
        (Temporal::DateTime(from), Temporal::DateTime(to)) => date_times_until(*from, *to, unit),
        (Temporal::Zoned(from), Temporal::Zoned(to)) => match unit {
            Unit::Nanos(_) => {
                whole(to.timestamp().duration_since(from.timestamp()), unit).unwrap_or(Ok(0))
            }
            _ => {
                let to = to.with_time_zone(from.time_zone().clone());
                date_times_until(from.datetime(), to.datetime(), unit)
            }
        },
        (Temporal::DateTime(from), Temporal::Zoned(to)) => {
            date_times_until(*from, to.datetime(), unit)
        }
        (Temporal::Date(from), Temporal::DateTime(to)) => dates_until(*from, to.date(), unit),
        (Temporal::Date(from), Temporal::Zoned(to)) => dates_until(*from, to.date(), unit),
        (Temporal::Instant(from), Temporal::Zoned(to)) => until(
            &Temporal::Instant(*from),
            &Temporal::Instant(to.timestamp()),
            unit,
        ),
        (Temporal::Zoned(from), Temporal::Instant(to)) => until(
            &Temporal::Instant(from.timestamp()),
            &Temporal::Instant(*to),
            unit,
        ),
        (from, to) => {
            use crate::value::HostObject;
            Err(date_time(format!(
                "Unable to obtain a {} from a {}",
                from.class_name(),
                to.class_name()
            )))
        }
    }
}

/// Returns the number of whole units; `None` for units without a fixed length.
fn whole(between: SignedDuration, unit: Unit) -> Option<Result<i64>> {
    let each = match unit {
        Unit::Nanos(each) => i128::from(each),
        Unit::Days(1) => i128::from(DAY_NANOS),
        _ => return None,
    };
    Some(i64::try_from(between.as_nanos() / each).map_err(|_| overflow()))
}

fn dates_until(from: Date, to: Date, unit: Unit) -> Result<i64> {
    match unit {
        Unit::Days(each) => Ok((epoch_day(to) - epoch_day(from)) / each),
        Unit::Months(each) => {
            let packed = |date: Date| {
                (i64::from(date.year()) * 12 + i64::from(date.month())) * 32 + i64::from(date.day())
            };
            Ok((packed(to) - packed(from)) / 32 / each)
        }
        Unit::Nanos(_) => Err(unsupported(&Temporal::Date(from))),
    }
}

fn date_times_until(from: DateTime, to: DateTime, unit: Unit) -> Result<i64> {
    if let Unit::Nanos(_) = unit {
        return whole(to.duration_since(from), unit).unwrap_or(Ok(0));
    }
    let mut end = to.date();
    if end > from.date() && to.time() < from.time() {
        end = plus_days(end, -1)?;
    } else if end < from.date() && to.time() > from.time() {
        end = plus_days(end, 1)?;
    }
    dates_until(from.date(), end, unit)
}

/// Truncates a time to a unit.
pub(super) fn truncate(of: &Temporal, unit: Unit) -> Result<Temporal> {
    let cut = |time: Time| {
        let each = match unit {
            Unit::Nanos(each) => each,
            Unit::Days(1) => DAY_NANOS,
            _ => return Err(date_time("a unit to truncate to is a day or smaller")),
        };
        let nanos = nano_of_day(time);
        Ok(time_of(nanos - nanos % each))
    };
    Ok(match of {
        Temporal::Time(time) => Temporal::Time(cut(*time)?),
        Temporal::DateTime(at) => Temporal::DateTime(at.date().to_datetime(cut(at.time())?)),
        Temporal::Instant(at) => {
            let local = jiff::tz::Offset::UTC.to_datetime(*at);
            let local = local.date().to_datetime(cut(local.time())?);
            let at = jiff::tz::Offset::UTC
                .to_timestamp(local)
                .map_err(out_of_range)?;
            Temporal::Instant(at)
        }
        Temporal::Zoned(at) => {
            let local = at.date().to_datetime(cut(at.time())?);
            Temporal::Zoned(
                local
                    .to_zoned(at.time_zone().clone())
                    .map_err(out_of_range)?,
            )
        }
        of => return Err(unsupported(of)),
    })
}
