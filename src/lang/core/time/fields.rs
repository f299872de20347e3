//! Operations on dates, times and amounts: fields, adjusted copies, shifts and comparisons.

use jiff::SignedDuration;
use jiff::civil::{Date, DateTime, Time};

use super::kinds::{
    Adjuster, Period, Temporal, constant, date_time, fixed, out_of_range, temporal, zone,
};
use super::make::{calendar_date, clock_time, period, period_between};
use super::natives;
use super::units::{self, MONTHS, Unit, WEEKDAYS, month, plus, plus_days, truncate, until};
use crate::value::number::overflow;
use crate::value::{Class, Exception, HostConstant, HostObject, Native, Object, Result, Value};
use crate::vm::Args;

/// `.plusDays` and similar methods: name, unit, sign.
macro_rules! shifts {
    ($($plus:literal $minus:literal $word:literal $unit:expr;)*) => {
        &[$(
            super::native($plus, concat!("(", $plus, " date n)"), concat!("Returns a date, time or amount with a number of ", $word, " added."),
                &[], crate::value::Arity::exactly(2), |_vm, args| shifted(&args, $unit, 1)),
            super::native($minus, concat!("(", $minus, " date n)"), concat!("Returns a date, time or amount with a number of ", $word, " subtracted."),
                &[], crate::value::Arity::exactly(2), |_vm, args| shifted(&args, $unit, -1)),
        )*]
    };
}

pub(super) const SHIFTS: &[Native] = shifts![
    ".plusDays" ".minusDays" "days" Unit::Days(1);
    ".plusHours" ".minusHours" "hours" units::HOUR;
    ".plusMillis" ".minusMillis" "milliseconds" units::MILLI;
    ".plusMinutes" ".minusMinutes" "minutes" units::MINUTE;
    ".plusMonths" ".minusMonths" "months" Unit::Months(1);
    ".plusNanos" ".minusNanos" "nanoseconds" units::NANO;
    ".plusSeconds" ".minusSeconds" "seconds" units::SECOND;
    ".plusWeeks" ".minusWeeks" "weeks" Unit::Days(7);
    ".plusYears" ".minusYears" "years" Unit::Months(12);
];

/// A getter: name, what it returns, an example, the field.
macro_rules! getters {
    ($($name:literal $doc:literal $example:literal $result:literal, $get:expr;)*) => {
        &[$(
            super::native($name, concat!("(", $name, " x)"), concat!("Returns ", $doc, "."), &[($example, $result)],
                crate::value::Arity::exactly(1), |_vm, args| get(&args, $get)),
        )*]
    };
}

pub(super) const GETTERS: &[Native] = getters![
    ".getDayOfMonth" "the day of the month, from 1" "(.getDayOfMonth (java.time.LocalDate/of 2020 1 31))" "31",
        |of| date_of(of).map(|date| int(date.day()));
    ".getDayOfWeek" "the weekday" "(str (.getDayOfWeek (java.time.LocalDate/of 2020 1 31)))" "\"FRIDAY\"",
        |of| date_of(of).map(|date| Value::host(&WEEKDAYS[date.weekday().to_monday_zero_offset() as usize]));
    ".getDayOfYear" "the day of the year, from 1" "(.getDayOfYear (java.time.LocalDate/of 2020 2 1))" "32",
        |of| date_of(of).map(|date| int(date.day_of_year()));
    ".getDays" "the days of a period" "(.getDays (java.time.Period/of 1 2 3))" "3",
        |of| period_of(of).map(|period| Value::Int(period.days));
    ".getEpochSecond" "the seconds of an instant since 1970" "(.getEpochSecond (java.time.Instant/parse \"1970-01-01T00:01:00Z\"))" "60",
        |of| instant_of(of).map(|at| Value::Int(at.as_nanosecond().div_euclid(1_000_000_000) as i64));
    ".getHour" "the hour, from 0" "(.getHour (java.time.LocalTime/of 9 30))" "9",
        |of| time_of(of).map(|time| int(time.hour()));
    ".getMinute" "the minute, from 0" "(.getMinute (java.time.LocalTime/of 9 30))" "30",
        |of| time_of(of).map(|time| int(time.minute()));
    ".getMonth" "the month" "(str (.getMonth (java.time.LocalDate/of 2020 1 31)))" "\"JANUARY\"",
        |of| date_of(of).map(|date| Value::host(&MONTHS[date.month() as usize - 1]));
    ".getMonthValue" "the month as a number, from 1" "(.getMonthValue (java.time.LocalDate/of 2020 1 31))" "1",
        |of| date_of(of).map(|date| int(date.month()));
    ".getMonths" "the months of a period" "(.getMonths (java.time.Period/of 1 2 3))" "2",
        |of| period_of(of).map(|period| Value::Int(period.months));
    ".getNano" "the nanoseconds after the second" "(.getNano (java.time.LocalTime/of 9 30 0 5))" "5",
        |of| match of {
            Temporal::Duration(of) => Some(Value::Int(of.as_nanos().rem_euclid(1_000_000_000) as i64)),
            Temporal::Instant(at) => Some(Value::Int(at.as_nanosecond().rem_euclid(1_000_000_000) as i64)),
            of => time_of(of).map(|time| int(time.subsec_nanosecond())),
        };
    ".getOffset" "the offset of a date and time with zone" "(str (.getOffset (java.time.ZonedDateTime/parse \"2020-01-31T09:30+01:00\")))" "\"+01:00\"",
        |of| match of {
            Temporal::Zoned(at) => Some(Temporal::Zone(fixed(at.offset())).into()),
            _ => None,
        };
    ".getSecond" "the second, from 0" "(.getSecond (java.time.LocalTime/of 9 30 15))" "15",
        |of| time_of(of).map(|time| int(time.second()));
    ".getSeconds" "the whole seconds of a duration" "(.getSeconds (java.time.Duration/ofMinutes 2))" "120",
        |of| nanos_of(of).map(|nanos| Value::Int(nanos.div_euclid(1_000_000_000) as i64));
    ".getYear" "the year" "(.getYear (java.time.LocalDate/of 2020 1 31))" "2020",
        |of| date_of(of).map(|date| int(date.year()));
    ".getYears" "the years of a period" "(.getYears (java.time.Period/of 1 2 3))" "1",
        |of| period_of(of).map(|period| Value::Int(period.years));
    ".getZone" "the time zone of a date and time with zone" "(str (.getZone (java.time.ZonedDateTime/parse \"2020-01-31T09:30+01:00\")))" "\"+01:00\"",
        |of| match of {
            Temporal::Zoned(at) => Some(Temporal::Zone(at.time_zone().clone()).into()),
            _ => None,
        };
    ".isLeapYear" "whether the year has 366 days" "(.isLeapYear (java.time.LocalDate/of 2020 1 1))" "true",
        |of| date_of(of).map(|date| Value::Bool(date.in_leap_year()));
    ".isNegative" "whether an amount is below zero" "(.isNegative (java.time.Duration/ofHours -1))" "true",
        |of| match of {
            Temporal::Period(of) => Some(Value::Bool(of.years < 0 || of.months < 0 || of.days < 0)),
            of => nanos_of(of).map(|nanos| Value::Bool(nanos < 0)),
        };
    ".isZero" "whether an amount is zero" "(.isZero java.time.Duration/ZERO)" "true",
        |of| match of {
            Temporal::Period(of) => Some(Value::Bool(of.years == 0 && of.months == 0 && of.days == 0)),
            of => nanos_of(of).map(|nanos| Value::Bool(nanos == 0)),
        };
    ".lengthOfMonth" "the number of days of the month" "(.lengthOfMonth (java.time.LocalDate/of 2020 2 1))" "29",
        |of| date_of(of).map(|date| int(date.days_in_month()));
    ".lengthOfYear" "the number of days of the year" "(.lengthOfYear (java.time.LocalDate/of 2020 2 1))" "366",
        |of| date_of(of).map(|date| int(date.days_in_year()));
    ".toDays" "a duration in days, truncated" "(.toDays (java.time.Duration/ofHours 49))" "2",
        |of| nanos_of(of).map(|nanos| Value::Int((nanos / 86_400_000_000_000) as i64));
    ".toEpochDay" "the days of a date since 1970" "(.toEpochDay (java.time.LocalDate/of 1970 2 1))" "31",
        |of| date_of(of).map(|date| Value::Int(units::epoch_day(date)));
    ".toEpochMilli" "the milliseconds of an instant since 1970" "(.toEpochMilli (java.time.Instant/ofEpochSecond 1))" "1000",
        |of| instant_of(of).map(|at| Value::Int(at.as_nanosecond().div_euclid(1_000_000) as i64));
    ".toEpochSecond" "the seconds of a date and time with zone since 1970" "(.toEpochSecond (java.time.ZonedDateTime/parse \"1970-01-01T00:01Z\"))" "60",
        |of| instant_of(of).map(|at| Value::Int(at.as_nanosecond().div_euclid(1_000_000_000) as i64));
    ".toHours" "a duration in hours, truncated" "(.toHours (java.time.Duration/ofMinutes 119))" "1",
        |of| nanos_of(of).map(|nanos| Value::Int((nanos / 3_600_000_000_000) as i64));
    ".toInstant" "the instant of a date and time with zone, or of an #inst" "(str (.toInstant #inst \"2020-01-01\"))" "\"2020-01-01T00:00:00Z\"",
        |of| instant_of(of).map(|at| Temporal::Instant(at).into());
    ".toLocalDate" "the date of a date and time" "(str (.toLocalDate (java.time.LocalDateTime/of 2020 1 31 9 30)))" "\"2020-01-31\"",
        |of| date_of(of).map(|date| Temporal::Date(date).into());
    ".toLocalDateTime" "the date and time without its zone" "(str (.toLocalDateTime (java.time.ZonedDateTime/parse \"2020-01-31T09:30+01:00\")))" "\"2020-01-31T09:30\"",
        |of| match of {
            Temporal::Zoned(at) => Some(Temporal::DateTime(at.datetime()).into()),
            _ => None,
        };
    ".toLocalTime" "the time of a date and time" "(str (.toLocalTime (java.time.LocalDateTime/of 2020 1 31 9 30)))" "\"09:30\"",
        |of| time_of(of).map(|time| Temporal::Time(time).into());
    ".toMillis" "a duration in milliseconds, truncated" "(.toMillis (java.time.Duration/ofSeconds 2))" "2000",
        |of| nanos_of(of).map(|nanos| Value::Int(nanos.div_euclid(1_000_000) as i64));
    ".toMinutes" "a duration in minutes, truncated" "(.toMinutes (java.time.Duration/ofHours 2))" "120",
        |of| nanos_of(of).map(|nanos| Value::Int((nanos / 60_000_000_000) as i64));
    ".toNanos" "a duration in nanoseconds" "(.toNanos (java.time.Duration/ofMillis 1))" "1000000",
        |of| nanos_of(of).and_then(|nanos| i64::try_from(nanos).ok()).map(Value::Int);
    ".toSecondOfDay" "the seconds of a time since midnight" "(.toSecondOfDay (java.time.LocalTime/of 0 1))" "60",
        |of| time_of(of).map(|time| Value::Int(units::nano_of_day(time) / 1_000_000_000));
    ".toSeconds" "a duration in seconds, truncated" "(.toSeconds (java.time.Duration/ofMinutes 2))" "120",
        |of| nanos_of(of).map(|nanos| Value::Int(nanos.div_euclid(1_000_000_000) as i64));
    ".toTotalMonths" "the years and months of a period in months" "(.toTotalMonths (java.time.Period/of 1 2 3))" "14",
        |of| period_of(of).map(|period| Value::Int(period.years.saturating_mul(12).saturating_add(period.months)));
];

pub(super) const METHODS: &[Native] = natives![
    ".adjustInto" "(.adjustInto adjuster date)" "Returns a date moved by an adjuster, as .with does." [] 2..2
        |_vm, args| with_adjuster(&temporal(&args, 1)?, &temporal(&args, 0)?).map(Value::from);
    ".atStartOfDay" "(.atStartOfDay date)\n(.atStartOfDay date zone)" "Returns a date with the time 00:00, in a zone if one is given." [("(str (.atStartOfDay (java.time.LocalDate/of 2020 1 31)))", r#""2020-01-31T00:00""#)] 1..2
        |_vm, args| {
            let date = some(&args, 0, date_of)?;
            let at = date.to_datetime(Time::midnight());
            match args.len() {
                1 => Ok(Temporal::DateTime(at).into()),
                _ => Ok(Temporal::Zoned(at.to_zoned(zone(&args, 1)?).map_err(out_of_range)?).into()),
            }
        };
    ".atTime" "(.atTime date time)\n(.atTime date hour minute)\n(.atTime date hour minute second)" "Returns a date with a time." [("(str (.atTime (java.time.LocalDate/of 2020 1 31) 9 30))", r#""2020-01-31T09:30""#)] 2..4
        |_vm, args| {
            let date = some(&args, 0, date_of)?;
            let time = match args.len() {
                2 => some(&args, 1, time_of)?,
                _ => clock_time([args.int(1)?, args.int(2)?, if args.len() == 4 { args.int(3)? } else { 0 }, 0])?,
            };
            Ok(Temporal::DateTime(date.to_datetime(time)).into())
        };
    ".atZone" "(.atZone temporal zone)" "Returns an instant, or a date and time, in a zone." [(r#"(str (.atZone (java.time.Instant/ofEpochSecond 0) (java.time.ZoneId/of "Asia/Tokyo")))"#, r#""1970-01-01T09:00+09:00[Asia/Tokyo]""#)] 2..2
        |_vm, args| match temporal(&args, 0)? {
            Temporal::Instant(at) => Ok(Temporal::Zoned(at.to_zoned(zone(&args, 1)?)).into()),
            Temporal::DateTime(at) => Ok(Temporal::Zoned(at.to_zoned(zone(&args, 1)?).map_err(out_of_range)?).into()),
            _ => Err(args.expected(0, "a java.time.Instant or LocalDateTime")),
        };
    ".between" "(.between unit from to)" "Returns the number of whole units of java.time.temporal.ChronoUnit between two points in time." [("(.between java.time.temporal.ChronoUnit/DAYS (java.time.LocalDate/of 2020 1 1) (java.time.LocalDate/of 2020 3 1))", "60")] 3..3
        |_vm, args| until(&temporal(&args, 1)?, &temporal(&args, 2)?, Unit::of(&args, 0)?).map(Value::Int);
    ".dividedBy" "(.dividedBy duration n)" "Returns a duration divided by a number." [("(str (.dividedBy (java.time.Duration/ofMinutes 3) 2))", r#""PT1M30S""#)] 2..2
        |_vm, args| match (some(&args, 0, nanos_of)?, args.int(1)?) {
            (_, 0) => Err(crate::value::number::divide_by_zero()),
            (nanos, n) => duration(nanos / i128::from(n)),
        };
    ".getId" "(.getId zone)" "Returns the name of a time zone." [(r#"(.getId (java.time.ZoneId/of "Europe/Paris"))"#, r#""Europe/Paris""#)] 1..1
        |_vm, args| zone(&args, 0).map(|zone| Value::text(super::kinds::zone_id(&zone)));
    ".getTime" "(.getTime date)" "Returns the milliseconds of an #inst since 1970." [(r#"(.getTime #inst "1970-01-01T00:00:01Z")"#, "1000")] 1..1
        |_vm, args| some(&args, 0, instant_of).map(|at| Value::Int(at.as_millisecond()));
    ".isAfter" "(.isAfter temporal other)" "Tells whether a point in time is after another of the same kind." [("(.isAfter (java.time.LocalDate/of 2020 1 2) (java.time.LocalDate/of 2020 1 1))", "true")] 2..2
        |_vm, args| compared(&args).map(|order| Value::Bool(order.is_gt()));
    ".isBefore" "(.isBefore temporal other)" "Tells whether a point in time is before another of the same kind." [("(.isBefore (java.time.LocalDate/of 2020 1 2) (java.time.LocalDate/of 2020 1 1))", "false")] 2..2
        |_vm, args| compared(&args).map(|order| Value::Bool(order.is_lt()));
    ".isEqual" "(.isEqual temporal other)" "Tells whether two points in time are the same instant, whatever their zones." [("(.isEqual (java.time.LocalDate/of 2020 1 1) (java.time.LocalDate/of 2020 1 1))", "true")] 2..2
        |_vm, args| compared(&args).map(|order| Value::Bool(order.is_eq()));
    ".minus" "(.minus temporal n unit)\n(.minus temporal amount)" "Returns a date, time or amount with a number of units, or a duration or period, subtracted." [("(str (.minus (java.time.LocalDate/of 2020 3 31) (java.time.Period/ofMonths 1)))", r#""2020-02-29""#)] 2..3
        |_vm, args| moved(&args, -1);
    ".multipliedBy" "(.multipliedBy amount n)" "Returns a duration or period multiplied by n." [("(str (.multipliedBy (java.time.Duration/ofMinutes 45) 2))", r#""PT1H30M""#)] 2..2
        |_vm, args| times(&args, args.int(1)?);
    ".negated" "(.negated amount)" "Returns a duration or period with its sign reversed." [("(str (.negated (java.time.Duration/ofMinutes 45)))", r#""PT-45M""#)] 1..1
        |_vm, args| times(&args, -1);
    ".normalized" "(.normalized period)" "Returns a period whose months are at most 11, with the rest added to its years." [("(str (.normalized (java.time.Period/ofMonths 14)))", r#""P1Y2M""#)] 1..1
        |_vm, args| {
            let of = some(&args, 0, period_of)?;
            let months = of.years.checked_mul(12).and_then(|years| years.checked_add(of.months)).ok_or_else(overflow)?;
            Ok(period(months / 12, months % 12, of.days))
        };
    ".plus" "(.plus temporal n unit)\n(.plus temporal amount)" "Returns a date, time or amount with a number of units, or a duration or period, added." [("(str (.plus (java.time.LocalTime/of 9 0) 90 java.time.temporal.ChronoUnit/MINUTES))", r#""10:30""#)] 2..3
        |_vm, args| moved(&args, 1);
    ".truncatedTo" "(.truncatedTo temporal unit)" "Returns a time truncated to a unit." [("(str (.truncatedTo (java.time.LocalTime/of 9 30 15) java.time.temporal.ChronoUnit/HOURS))", r#""09:00""#)] 2..2
        |_vm, args| truncate(&temporal(&args, 0)?, Unit::of(&args, 1)?).map(Value::from);
    ".until" "(.until temporal end unit)\n(.until date end)" "Returns the number of whole units between two points in time; without a unit, the period between two dates." [("(.until (java.time.LocalDate/of 2020 1 1) (java.time.LocalDate/of 2021 1 1) java.time.temporal.ChronoUnit/MONTHS)", "12")] 2..3
        |_vm, args| match args.len() {
            3 => until(&temporal(&args, 0)?, &temporal(&args, 1)?, Unit::of(&args, 2)?).map(Value::Int),
            _ => Ok(Temporal::Period(period_between(some(&args, 0, date_of)?, some(&args, 1, date_of)?)?).into()),
        };
    ".with" "(.with temporal part)" "Returns a date and time with another date or time, or moved by one of java.time.temporal.TemporalAdjusters." [("(str (.with (java.time.LocalDateTime/of 2020 1 31 9 30) (java.time.LocalTime/of 12 0)))", r#""2020-01-31T12:00""#)] 2..2
        |_vm, args| with_adjuster(&temporal(&args, 0)?, &temporal(&args, 1)?).map(Value::from);
    ".withDayOfMonth" "(.withDayOfMonth date day)" "Returns a date with another day of the month." [("(str (.withDayOfMonth (java.time.LocalDate/of 2020 1 31) 1))", r#""2020-01-01""#)] 2..2
        |_vm, args| with_date(&args, |date, day| calendar_date(i64::from(date.year()), i64::from(date.month()), day));
    ".withDayOfYear" "(.withDayOfYear date day)" "Returns a date with another day of the year." [("(str (.withDayOfYear (java.time.LocalDate/of 2020 1 31) 32))", r#""2020-02-01""#)] 2..2
        |_vm, args| with_date(&args, |date, day| {
            let days = i64::from(date.days_in_year());
            if !(1..=days).contains(&day) {
                return Err(date_time(format!("Invalid value for DayOfYear: {day}")));
            }
            plus_days(calendar_date(i64::from(date.year()), 1, 1)?, day - 1)
        });
    ".withHour" "(.withHour time hour)" "Returns a time with another hour." [("(str (.withHour (java.time.LocalTime/of 9 30) 7))", r#""07:30""#)] 2..2
        |_vm, args| with_time(&args, 0);
    ".withMinute" "(.withMinute time minute)" "Returns a time with another minute." [("(str (.withMinute (java.time.LocalTime/of 9 30) 5))", r#""09:05""#)] 2..2
        |_vm, args| with_time(&args, 1);
    ".withMonth" "(.withMonth date month)" "Returns a date with another month; its day is at most the month's last." [("(str (.withMonth (java.time.LocalDate/of 2020 1 31) 2))", r#""2020-02-29""#)] 2..2
        |_vm, args| with_date(&args, |date, month| {
            let first = calendar_date(i64::from(date.year()), month, 1)?;
            calendar_date(i64::from(date.year()), month, i64::from(date.day().min(first.days_in_month())))
        });
    ".withNano" "(.withNano time nanos)" "Returns a time with another fraction of the second." [("(str (.withNano (java.time.LocalTime/of 9 30) 0))", r#""09:30""#)] 2..2
        |_vm, args| with_time(&args, 3);
    ".withSecond" "(.withSecond time second)" "Returns a time with another second." [("(str (.withSecond (java.time.LocalTime/of 9 30) 5))", r#""09:30:05""#)] 2..2
        |_vm, args| with_time(&args, 2);
    ".withYear" "(.withYear date year)" "Returns a date with another year; its day is at most the month's last." [("(str (.withYear (java.time.LocalDate/of 2020 2 29) 2021))", r#""2021-02-28""#)] 2..2
        |_vm, args| with_date(&args, |date, year| {
            let first = calendar_date(year, i64::from(date.month()), 1)?;
            calendar_date(year, i64::from(date.month()), i64::from(date.day().min(first.days_in_month())))
        });
    ".withZoneSameInstant" "(.withZoneSameInstant temporal zone)" "Returns the same instant in another zone." [(r#"(str (.withZoneSameInstant (java.time.ZonedDateTime/parse "2020-01-31T09:30+01:00") java.time.ZoneOffset/UTC))"#, r#""2020-01-31T08:30Z""#)] 2..2
        |_vm, args| match temporal(&args, 0)? {
            Temporal::Zoned(at) => Ok(Temporal::Zoned(at.with_time_zone(zone(&args, 1)?)).into()),
            _ => Err(args.expected(0, "a java.time.ZonedDateTime")),
        };
    ".withZoneSameLocal" "(.withZoneSameLocal temporal zone)" "Returns the same date and time in another zone." [(r#"(str (.withZoneSameLocal (java.time.ZonedDateTime/parse "2020-01-31T09:30+01:00") java.time.ZoneOffset/UTC))"#, r#""2020-01-31T09:30Z""#)] 2..2
        |_vm, args| match temporal(&args, 0)? {
            Temporal::Zoned(at) => Ok(Temporal::Zoned(at.datetime().to_zoned(zone(&args, 1)?).map_err(out_of_range)?).into()),
            _ => Err(args.expected(0, "a java.time.ZonedDateTime")),
        };
];

fn int(value: impl Into<i64>) -> Value {
    Value::Int(value.into())
}

fn date_of(of: &Temporal) -> Option<Date> {
    match of {
        Temporal::Date(date) => Some(*date),
        Temporal::DateTime(at) => Some(at.date()),
        Temporal::Zoned(at) => Some(at.date()),
        _ => None,
    }
}

fn time_of(of: &Temporal) -> Option<Time> {
    match of {
        Temporal::Time(time) => Some(*time),
        Temporal::DateTime(at) => Some(at.time()),
        Temporal::Zoned(at) => Some(at.time()),
        _ => None,
    }
}

fn instant_of(of: &Temporal) -> Option<jiff::Timestamp> {
    match of {
        Temporal::Instant(at) => Some(*at),
        Temporal::Zoned(at) => Some(at.timestamp()),
        _ => None,
    }
}

fn period_of(of: &Temporal) -> Option<Period> {
    match of {
        Temporal::Period(period) => Some(*period),
        _ => None,
    }
}

fn nanos_of(of: &Temporal) -> Option<i128> {
    match of {
        Temporal::Duration(duration) => Some(duration.as_nanos()),
        _ => None,
    }
}

fn duration(nanos: i128) -> Result<Value> {
    let seconds = i64::try_from(nanos / 1_000_000_000).map_err(|_| overflow())?;
    let duration = SignedDuration::new(seconds, (nanos % 1_000_000_000) as i32);
    Ok(Temporal::Duration(duration).into())
}

fn get(args: &Args<'_>, field: fn(&Temporal) -> Option<Value>) -> Result<Value> {
    some(args, 0, field)
}

/// Returns a field of an argument; an argument without the field is rejected.
fn some<T>(args: &Args<'_>, idx: usize, field: impl Fn(&Temporal) -> Option<T>) -> Result<T> {
    let of = temporal(args, idx)?;
    field(&of).ok_or_else(|| {
        let message = format!("a {} has no such part", of.class_name());
        Exception::new(Class::ILLEGAL_ARGUMENT, "E0361", message)
            .argument(idx)
            .into()
    })
}

fn shifted(args: &Args<'_>, unit: Unit, sign: i64) -> Result<Value> {
    let amount = args.int(1)?.checked_mul(sign).ok_or_else(overflow)?;
    plus(&temporal(args, 0)?, amount, unit).map(Value::from)
}

/// `.plus` and `.minus` with a number of units or an amount; weekdays and months wrap around.
fn moved(args: &Args<'_>, sign: i64) -> Result<Value> {
    if let Some(constant) = args.get(0).as_host::<&'static HostConstant>() {
        let table: &'static [HostConstant] = match constant.class {
            "java.time.DayOfWeek" => &WEEKDAYS,
            "java.time.Month" => &MONTHS,
            _ => return Err(args.expected(0, "a value of java.time")),
        };
        let at = i64::from(constant.ordinal) + args.int(1)? % table.len() as i64 * sign;
        return Ok(Value::host(
            &table[at.rem_euclid(table.len() as i64) as usize],
        ));
    }
    if args.len() == 3 {
        let amount = args.int(1)?.checked_mul(sign).ok_or_else(overflow)?;
        return plus(&temporal(args, 0)?, amount, Unit::of(args, 2)?).map(Value::from);
    }
    let of = temporal(args, 0)?;
    match temporal(args, 1)? {
        Temporal::Duration(by) => {
            let seconds = by.as_secs().checked_mul(sign).ok_or_else(overflow)?;
            let moved = plus(&of, seconds, units::SECOND)?;
            plus(&moved, i64::from(by.subsec_nanos()) * sign, units::NANO).map(Value::from)
        }
        Temporal::Period(by) => {
            let months = by
                .years
                .checked_mul(12)
                .and_then(|years| years.checked_add(by.months));
            let months = months
                .and_then(|months| months.checked_mul(sign))
                .ok_or_else(overflow)?;
            if let Temporal::Period(of) = of {
                return Ok(period(
                    of.years + by.years * sign,
                    of.months + by.months * sign,
                    of.days + by.days * sign,
                ));
            }
            let moved = if months == 0 {
                of
            } else {
                plus(&of, months, Unit::Months(1))?
            };
            let days = by.days.checked_mul(sign).ok_or_else(overflow)?;
            if days == 0 {
                Ok(moved.into())
            } else {
                plus(&moved, days, Unit::Days(1)).map(Value::from)
            }
        }
        _ => Err(args.expected(1, "a java.time.Duration or Period")),
    }
}

fn times(args: &Args<'_>, n: i64) -> Result<Value> {
    match temporal(args, 0)? {
        Temporal::Duration(of) => duration(
            of.as_nanos()
                .checked_mul(i128::from(n))
                .ok_or_else(overflow)?,
        ),
        Temporal::Period(of) => {
            let part = |part: i64| part.checked_mul(n).ok_or_else(overflow);
            Ok(period(part(of.years)?, part(of.months)?, part(of.days)?))
        }
        _ => Err(args.expected(0, "a java.time.Duration or Period")),
    }
}

fn compared(args: &Args<'_>) -> Result<std::cmp::Ordering> {
    let (left, right) = (temporal(args, 0)?, temporal(args, 1)?);
    left.compare(&right)
        .ok_or_else(|| args.expected(1, &format!("a {}", left.class_name())))
}

/// Replaces the date of a date, of a date and time, or of one with a zone.
fn replace_date(of: &Temporal, date: Date) -> Result<Option<Temporal>> {
    replace(of, |at| date.to_datetime(at.time()), Some(date), None)
}

fn replace(
    of: &Temporal,
    change: impl Fn(DateTime) -> DateTime,
    date: Option<Date>,
    time: Option<Time>,
) -> Result<Option<Temporal>> {
    Ok(Some(match (of, date, time) {
        (Temporal::Date(_), Some(date), _) => Temporal::Date(date),
        (Temporal::Time(_), _, Some(time)) => Temporal::Time(time),
        (Temporal::DateTime(at), _, _) => Temporal::DateTime(change(*at)),
        (Temporal::Zoned(at), _, _) => {
            let zoned = change(at.datetime()).to_zoned(at.time_zone().clone());
            Temporal::Zoned(zoned.map_err(out_of_range)?)
        }
        _ => return Ok(None),
    }))
}

fn with_date(args: &Args<'_>, change: impl Fn(Date, i64) -> Result<Date>) -> Result<Value> {
    let date = change(
        some(args, 0, date_of)?,
        if constant(args, 1, "java.time.Month").is_some() {
            month(args, 1)?
        } else {
            args.int(1)?
        },
    )?;
    let changed = replace_date(&temporal(args, 0)?, date)?;
    changed
        .map(Value::from)
        .ok_or_else(|| args.expected(0, "a java.time.LocalDate"))
}

fn with_time(args: &Args<'_>, part: usize) -> Result<Value> {
    let time = some(args, 0, time_of)?;
    let mut parts = [
        i64::from(time.hour()),
        i64::from(time.minute()),
        i64::from(time.second()),
        i64::from(time.subsec_nanosecond()),
    ];
    parts[part] = args.int(1)?;
    let time = clock_time(parts)?;
    let changed = replace(
        &temporal(args, 0)?,
        |at| at.date().to_datetime(time),
        None,
        Some(time),
    )?;
    changed
        .map(Value::from)
        .ok_or_else(|| args.expected(0, "a java.time.LocalTime"))
}

/// `.with`: replaces a date or time, or applies an adjuster.
fn with_adjuster(of: &Temporal, part: &Temporal) -> Result<Temporal> {
    let changed = match part {
        Temporal::Date(date) => replace_date(of, *date)?,
        Temporal::Time(time) => replace(of, |at| at.date().to_datetime(*time), None, Some(*time))?,
        Temporal::Adjuster(adjuster) => match date_of(of) {
            Some(date) => replace_date(of, adjusted(date, *adjuster)?)?,
            None => None,
        },
        _ => None,
    };
    changed.ok_or_else(|| {
        date_time(format!(
            "a {} cannot be given a {}",
            of.class_name(),
            part.class_name()
        ))
    })
}

fn adjusted(date: Date, adjuster: Adjuster) -> Result<Date> {
    let year = i64::from(date.year());
    match adjuster {
        Adjuster::FirstDayOfMonth => Ok(date.first_of_month()),
        Adjuster::LastDayOfMonth => Ok(date.last_of_month()),
        Adjuster::FirstDayOfNextMonth => plus_days(date.last_of_month(), 1),
        Adjuster::FirstDayOfYear => Ok(date.first_of_year()),
        Adjuster::LastDayOfYear => Ok(date.last_of_year()),
        Adjuster::FirstDayOfNextYear => calendar_date(year + 1, 1, 1),
        Adjuster::Weekday {
            day,
            forward,
            or_same,
        } => {
            let today = date.weekday().to_monday_zero_offset();
            let distance = i64::from(if forward { day - today } else { today - day }.rem_euclid(7));
            let distance = if distance == 0 && !or_same {
                7
            } else {
                distance
            };
            plus_days(date, if forward { distance } else { -distance })
        }
    }
}

/// `java.util.Date`: an instant with millisecond precision, as read by `#inst`.
pub(super) const DATE: &[Native] = natives![
    "new" "(java.util.Date.)\n(java.util.Date. millis)" "Returns the current instant, or the instant at a number of milliseconds after 1970, as an #inst." [("(java.util.Date. 0)", r#"#inst "1970-01-01T00:00:00.000-00:00""#)] 0..1
        |vm, args| {
            let millis = if args.is_empty() { vm.host().now_millis()? } else { args.int(0)? };
            Ok(Value::from(Object::Inst(millis)))
        };
    "from" "(java.util.Date/from instant)" "Returns a java.time.Instant as an #inst." [("(java.util.Date/from (java.time.Instant/ofEpochSecond 0))", r#"#inst "1970-01-01T00:00:00.000-00:00""#)] 1..1
        |_vm, args| some(&args, 0, instant_of).map(|at| Value::from(Object::Inst(at.as_millisecond())));
];
