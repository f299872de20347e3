//! Functions that create dates, times and amounts: `LocalDate/of`, `Instant/parse`, `Duration/ofHours` and similar
//! ones.

use jiff::civil::{Date, DateTime, Time};
use jiff::tz::Offset;
use jiff::{SignedDuration, Timestamp, Zoned};

use super::formatter::{self, Formatter};
use super::kinds::{
    Adjuster, Period, Temporal, date_time, fixed, no_parse, out_of_range, temporal, zone,
    zone_named,
};
use super::natives;
use super::units::{self, Unit, month, plus_days, span, weekday};
use crate::value::number::overflow;
use crate::value::{Native, Result, Value};
use crate::vm::{Args, Vm};

pub(super) const INSTANT: &[Native] = natives![
    "now" "(Instant/now)" "Returns the current instant. In a flow, the journaled time of the run." [("(inst? (java.time.Instant/now))", "true")] 0..0
        |vm, _args| now(vm).map(|at| Temporal::Instant(at).into());
    "ofEpochMilli" "(Instant/ofEpochMilli millis)" "Returns the instant at a number of milliseconds after 1970." [("(str (java.time.Instant/ofEpochMilli 1000))", r#""1970-01-01T00:00:01Z""#)] 1..1
        |_vm, args| Ok(Temporal::Instant(Timestamp::from_millisecond(args.int(0)?).map_err(out_of_range)?).into());
    "ofEpochSecond" "(Instant/ofEpochSecond seconds)\n(Instant/ofEpochSecond seconds nanos)" "Returns the instant at a number of seconds after 1970." [("(str (java.time.Instant/ofEpochSecond 60))", r#""1970-01-01T00:01:00Z""#)] 1..2
        |_vm, args| {
            let at = Timestamp::from_second(args.int(0)?).map_err(out_of_range)?;
            let nanos = if args.len() == 2 { args.int(1)? } else { 0 };
            units::plus(&Temporal::Instant(at), nanos, units::NANO).map(Value::from)
        };
    "parse" "(Instant/parse s)" "Parses an instant in ISO 8601." [(r#"(str (java.time.Instant/parse "2020-01-31T10:00:00Z"))"#, r#""2020-01-31T10:00:00Z""#)] 1..1
        |_vm, args| {
            let text = args.text(0)?.as_str();
            match text.parse::<Timestamp>() {
                Ok(at) if text.contains('T') => Ok(Temporal::Instant(at).into()),
                _ => Err(no_parse(text, "an Instant")),
            }
        };
];

pub(super) const DATE: &[Native] = natives![
    "now" "(LocalDate/now)\n(LocalDate/now zone)" "Returns the current date in a zone (UTC)." [("(int? (.getYear (java.time.LocalDate/now)))", "true")] 0..1
        |vm, args| present(vm, &args).map(|at| Temporal::Date(at.date()).into());
    "of" "(LocalDate/of year month day)" "Returns a date; the month is a number or a java.time.Month." [("(str (java.time.LocalDate/of 2020 1 31))", r#""2020-01-31""#)] 3..3
        |_vm, args| date(&args, 0).map(|date| Temporal::Date(date).into());
    "ofEpochDay" "(LocalDate/ofEpochDay days)" "Returns the date a number of days after 1970-01-01." [("(str (java.time.LocalDate/ofEpochDay 31))", r#""1970-02-01""#)] 1..1
        |_vm, args| Ok(Temporal::Date(plus_days(Date::constant(1970, 1, 1), args.int(0)?)?).into());
    "ofYearDay" "(LocalDate/ofYearDay year day)" "Returns the date with a day of the year, counted from 1." [("(str (java.time.LocalDate/ofYearDay 2020 60))", r#""2020-02-29""#)] 2..2
        |_vm, args| {
            let first = calendar_date(args.int(0)?, 1, 1)?;
            let day = args.int(1)?;
            if !(1..=i64::from(first.days_in_year())).contains(&day) {
                return Err(date_time(format!("Invalid value for DayOfYear: {day}")));
            }
            Ok(Temporal::Date(plus_days(first, day - 1)?).into())
        };
    "parse" "(LocalDate/parse s)\n(LocalDate/parse s formatter)" "Parses a date, in ISO 8601 or in the format of a formatter." [(r#"(str (java.time.LocalDate/parse "2020-01-31"))"#, r#""2020-01-31""#)] 1..2
        |_vm, args| {
            let (text, fields) = parsed(&args, &formatter::ISO_LOCAL_DATE, "a LocalDate")?;
            fields.date.map(|date| Temporal::Date(date).into()).ok_or_else(|| no_parse(&text, "a LocalDate"))
        };
];

pub(super) const TIME: &[Native] = natives![
    "now" "(LocalTime/now)\n(LocalTime/now zone)" "Returns the current time in a zone (UTC)." [("(int? (.getHour (java.time.LocalTime/now)))", "true")] 0..1
        |vm, args| present(vm, &args).map(|at| Temporal::Time(at.time()).into());
    "of" "(LocalTime/of hour minute)\n(LocalTime/of hour minute second)\n(LocalTime/of hour minute second nanos)" "Returns a time." [("(str (java.time.LocalTime/of 9 30))", r#""09:30""#)] 2..4
        |_vm, args| time(&args, 0).map(|time| Temporal::Time(time).into());
    "ofSecondOfDay" "(LocalTime/ofSecondOfDay seconds)" "Returns the time a number of seconds after midnight." [("(str (java.time.LocalTime/ofSecondOfDay 3661))", r#""01:01:01""#)] 1..1
        |_vm, args| match args.int(0)? {
            seconds @ 0..86_400 => Ok(Temporal::Time(units::time_of(seconds * 1_000_000_000)).into()),
            seconds => Err(date_time(format!("Invalid value for SecondOfDay (valid values 0 - 86399): {seconds}"))),
        };
    "parse" "(LocalTime/parse s)\n(LocalTime/parse s formatter)" "Parses a time, in ISO 8601 or in the format of a formatter." [(r#"(str (java.time.LocalTime/parse "09:30"))"#, r#""09:30""#)] 1..2
        |_vm, args| {
            let (text, fields) = parsed(&args, &formatter::ISO_LOCAL_TIME, "a LocalTime")?;
            fields.time.map(|time| Temporal::Time(time).into()).ok_or_else(|| no_parse(&text, "a LocalTime"))
        };
];

pub(super) const DATE_TIME: &[Native] = natives![
    "now" "(LocalDateTime/now)\n(LocalDateTime/now zone)" "Returns the current date and time in a zone (UTC)." [("(int? (.getYear (java.time.LocalDateTime/now)))", "true")] 0..1
        |vm, args| present(vm, &args).map(|at| Temporal::DateTime(at.datetime()).into());
    "of" "(LocalDateTime/of date time)\n(LocalDateTime/of year month day hour minute)\n(LocalDateTime/of year month day hour minute second)\n(LocalDateTime/of year month day hour minute second nanos)"
        "Returns a date with a time." [("(str (java.time.LocalDateTime/of 2020 1 31 9 30))", r#""2020-01-31T09:30""#)] 2..7
        |_vm, args| local(&args, args.len()).map(|at| Temporal::DateTime(at).into());
    "ofInstant" "(LocalDateTime/ofInstant instant zone)" "Returns the date and time of an instant in a zone." [(r#"(str (java.time.LocalDateTime/ofInstant #inst "2020" java.time.ZoneOffset/UTC))"#, r#""2020-01-01T00:00""#)] 2..2
        |_vm, args| Ok(Temporal::DateTime(at_zone(&args)?.datetime()).into());
    "parse" "(LocalDateTime/parse s)\n(LocalDateTime/parse s formatter)" "Parses a date and time, in ISO 8601 or in the format of a formatter." [(r#"(str (java.time.LocalDateTime/parse "2020-01-31T09:30"))"#, r#""2020-01-31T09:30""#)] 1..2
        |_vm, args| {
            let (text, fields) = parsed(&args, &formatter::ISO_LOCAL_DATE_TIME, "a LocalDateTime")?;
            match (fields.date, fields.time) {
                (Some(date), Some(time)) => Ok(Temporal::DateTime(date.to_datetime(time)).into()),
                _ => Err(no_parse(&text, "a LocalDateTime")),
            }
        };
];

pub(super) const ZONED: &[Native] = natives![
    "now" "(ZonedDateTime/now)\n(ZonedDateTime/now zone)" "Returns the current date and time with its zone (UTC)." [("(int? (.getYear (java.time.ZonedDateTime/now)))", "true")] 0..1
        |vm, args| present(vm, &args).map(|at| Temporal::Zoned(at).into());
    "of" "(ZonedDateTime/of date-time zone)\n(ZonedDateTime/of date time zone)\n(ZonedDateTime/of year month day hour minute second nanos zone)"
        "Returns a date and time in a zone." [(r#"(str (java.time.ZonedDateTime/of (java.time.LocalDateTime/of 2020 7 1 12 0) (java.time.ZoneId/of "Europe/Paris")))"#, r#""2020-07-01T12:00+02:00[Europe/Paris]""#)] 2..8
        |_vm, args| {
            let last = args.len() - 1;
            let at = match (args.len(), args.get(0).as_host::<Temporal>()) {
                (2, Some(Temporal::DateTime(at))) => *at,
                _ => local(&args, last)?,
            };
            Ok(Temporal::Zoned(at.to_zoned(zone(&args, last)?).map_err(out_of_range)?).into())
        };
    "ofInstant" "(ZonedDateTime/ofInstant instant zone)" "Returns an instant as a date and time in a zone." [(r#"(str (java.time.ZonedDateTime/ofInstant #inst "2020" (java.time.ZoneId/of "Asia/Tokyo")))"#, r#""2020-01-01T09:00+09:00[Asia/Tokyo]""#)] 2..2
        |_vm, args| at_zone(&args).map(|at| Temporal::Zoned(at).into());
    "parse" "(ZonedDateTime/parse s)\n(ZonedDateTime/parse s formatter)" "Parses a date and time with zone or offset, in ISO 8601 or in the format of a formatter." [(r#"(str (java.time.ZonedDateTime/parse "2020-01-31T09:30+01:00"))"#, r#""2020-01-31T09:30+01:00""#)] 1..2
        |_vm, args| {
            let (text, fields) = parsed(&args, &formatter::ISO_ZONED_DATE_TIME, "a ZonedDateTime")?;
            let (Some(date), Some(time)) = (fields.date, fields.time) else {
                return Err(no_parse(&text, "a ZonedDateTime"));
            };
            let at = date.to_datetime(time);
            let zone = match (&fields.zone, fields.offset) {
                (Some(name), _) => zone_named(name)?,
                (None, Some(offset)) => fixed(offset),
                (None, None) => return Err(no_parse(&text, "a ZonedDateTime")),
            };
            let zoned = match fields.offset {
                Some(offset) => offset.to_timestamp(at).map(|at| at.to_zoned(zone)),
                None => at.to_zoned(zone),
            };
            Ok(Temporal::Zoned(zoned.map_err(out_of_range)?).into())
        };
];

pub(super) const DURATION: &[Native] = natives![
    "between" "(Duration/between from to)" "Returns the duration from one point in time to another of the same kind." [("(str (java.time.Duration/between (java.time.LocalTime/of 9 0) (java.time.LocalTime/of 10 30)))", r#""PT1H30M""#)] 2..2
        |_vm, args| {
            let (from, to) = (temporal(&args, 0)?, temporal(&args, 1)?);
            let seconds = units::until(&from, &to, units::SECOND)?;
            let after = units::plus(&from, seconds, units::SECOND)?;
            let nanos = units::until(&after, &to, units::NANO)?;
            let nanos = SignedDuration::from_nanos(nanos);
            let between = SignedDuration::from_secs(seconds).checked_add(nanos).ok_or_else(overflow)?;
            Ok(Temporal::Duration(between).into())
        };
    "of" "(Duration/of n unit)" "Returns a duration of n units, given as a java.time.temporal.ChronoUnit." [("(str (java.time.Duration/of 90 java.time.temporal.ChronoUnit/SECONDS))", r#""PT1M30S""#)] 2..2
        |_vm, args| units::plus(&Temporal::Duration(SignedDuration::ZERO), args.int(0)?, Unit::of(&args, 1)?).map(Value::from);
    "ofDays" "(Duration/ofDays n)" "Returns a duration of n days of 24 hours." [("(str (java.time.Duration/ofDays 1))", r#""PT24H""#)] 1..1
        |_vm, args| duration(&args, 86_400_000_000_000);
    "ofHours" "(Duration/ofHours n)" "Returns a duration of n hours." [("(str (java.time.Duration/ofHours 2))", r#""PT2H""#)] 1..1
        |_vm, args| duration(&args, 3_600_000_000_000);
    "ofMillis" "(Duration/ofMillis n)" "Returns a duration of n milliseconds." [("(str (java.time.Duration/ofMillis 1500))", r#""PT1.5S""#)] 1..1
        |_vm, args| duration(&args, 1_000_000);
    "ofMinutes" "(Duration/ofMinutes n)" "Returns a duration of n minutes." [("(str (java.time.Duration/ofMinutes 90))", r#""PT1H30M""#)] 1..1
        |_vm, args| duration(&args, 60_000_000_000);
    "ofNanos" "(Duration/ofNanos n)" "Returns a duration of n nanoseconds." [("(str (java.time.Duration/ofNanos 5))", r#""PT0.000000005S""#)] 1..1
        |_vm, args| duration(&args, 1);
    "ofSeconds" "(Duration/ofSeconds n)\n(Duration/ofSeconds n nanos)" "Returns a duration of n seconds." [("(str (java.time.Duration/ofSeconds 61))", r#""PT1M1S""#)] 1..2
        |_vm, args| {
            let nanos = if args.len() == 2 { args.int(1)? } else { 0 };
            let whole = span(args.int(0)?, 1_000_000_000)?;
            let all = whole.checked_add(SignedDuration::from_nanos(nanos)).ok_or_else(overflow)?;
            Ok(Temporal::Duration(all).into())
        };
    "parse" "(Duration/parse s)" "Parses a duration in ISO 8601." [(r#"(.toMinutes (java.time.Duration/parse "PT1H30M"))"#, "90")] 1..1
        |_vm, args| {
            let text = args.text(0)?.as_str();
            // Java's days are 24 hours; a duration has no years, months or weeks.
            let hours = text.replace("-P", "P").to_ascii_uppercase();
            let fits = hours.starts_with('P') && !hours.split('T').next().unwrap_or("").contains(['Y', 'M', 'W']);
            let span = text.parse::<jiff::Span>().ok().filter(|_| fits);
            let all = span.and_then(|span| span.to_duration(jiff::SpanRelativeTo::days_are_24_hours()).ok());
            all.map(|all| Temporal::Duration(all).into()).ok_or_else(|| no_parse(text, "a Duration"))
        };
];

pub(super) const PERIOD: &[Native] = natives![
    "between" "(Period/between from to)" "Returns the years, months and days from one date to another." [("(str (java.time.Period/between (java.time.LocalDate/of 2020 1 31) (java.time.LocalDate/of 2021 3 1)))", r#""P1Y1M1D""#)] 2..2
        |_vm, args| {
            let (Temporal::Date(from), Temporal::Date(to)) = (temporal(&args, 0)?, temporal(&args, 1)?) else {
                return Err(args.expected(0, "two of java.time.LocalDate"));
            };
            Ok(Temporal::Period(period_between(from, to)?).into())
        };
    "of" "(Period/of years months days)" "Returns a period of years, months and days." [("(str (java.time.Period/of 1 2 3))", r#""P1Y2M3D""#)] 3..3
        |_vm, args| Ok(period(args.int(0)?, args.int(1)?, args.int(2)?));
    "ofDays" "(Period/ofDays n)" "Returns a period of n days." [("(str (java.time.Period/ofDays 3))", r#""P3D""#)] 1..1
        |_vm, args| Ok(period(0, 0, args.int(0)?));
    "ofMonths" "(Period/ofMonths n)" "Returns a period of n months." [("(str (java.time.Period/ofMonths 3))", r#""P3M""#)] 1..1
        |_vm, args| Ok(period(0, args.int(0)?, 0));
    "ofWeeks" "(Period/ofWeeks n)" "Returns a period of n weeks, as days." [("(str (java.time.Period/ofWeeks 2))", r#""P14D""#)] 1..1
        |_vm, args| Ok(period(0, 0, args.int(0)?.checked_mul(7).ok_or_else(overflow)?));
    "ofYears" "(Period/ofYears n)" "Returns a period of n years." [("(str (java.time.Period/ofYears 3))", r#""P3Y""#)] 1..1
        |_vm, args| Ok(period(args.int(0)?, 0, 0));
    "parse" "(Period/parse s)" "Parses a period in ISO 8601." [(r#"(.getDays (java.time.Period/parse "P1Y2M3D"))"#, "3")] 1..1
        |_vm, args| {
            let text = args.text(0)?.as_str();
            match text.parse::<jiff::Span>() {
                Ok(span) if !text.contains(['T', 't']) => Ok(period(
                    i64::from(span.get_years()),
                    i64::from(span.get_months()),
                    i64::from(span.get_weeks()) * 7 + i64::from(span.get_days()),
                )),
                _ => Err(no_parse(text, "a Period")),
            }
        };
];

pub(super) const ZONE: &[Native] = natives![
    "of" "(ZoneId/of name)" "Returns a time zone: a name such as Europe/Paris, UTC, or an offset such as +01:00." [(r#"(str (java.time.ZoneId/of "Europe/Paris"))"#, r#""Europe/Paris""#)] 1..1
        |_vm, args| zone_named(args.text(0)?.as_str()).map(|zone| Temporal::Zone(zone).into());
    "systemDefault" "(ZoneId/systemDefault)" "Returns UTC: the results of a program must not depend on where it runs." [("(str (java.time.ZoneId/systemDefault))", r#""UTC""#)] 0..0
        |_vm, _args| zone_named("UTC").map(|zone| Temporal::Zone(zone).into());
];

pub(super) const OFFSET: &[Native] = natives![
    "of" "(ZoneOffset/of text)" "Returns an offset, such as +01:00." [(r#"(str (java.time.ZoneOffset/of "+01:00"))"#, r#""+01:00""#)] 1..1
        |_vm, args| zone_named(args.text(0)?.as_str()).map(|zone| Temporal::Zone(zone).into());
    "ofHours" "(ZoneOffset/ofHours n)" "Returns an offset of n hours." [("(str (java.time.ZoneOffset/ofHours -5))", r#""-05:00""#)] 1..1
        |_vm, args| offset(args.int(0)?.saturating_mul(3600));
    "ofHoursMinutes" "(ZoneOffset/ofHoursMinutes hours minutes)" "Returns an offset of hours and minutes, of the same sign." [("(str (java.time.ZoneOffset/ofHoursMinutes 5 30))", r#""+05:30""#)] 2..2
        |_vm, args| offset(args.int(0)?.saturating_mul(3600).saturating_add(args.int(1)?.saturating_mul(60)));
    "ofTotalSeconds" "(ZoneOffset/ofTotalSeconds n)" "Returns an offset of n seconds." [("(str (java.time.ZoneOffset/ofTotalSeconds 3600))", r#""+01:00""#)] 1..1
        |_vm, args| offset(args.int(0)?);
];

pub(super) const WEEKDAY: &[Native] = natives![
    "of" "(DayOfWeek/of n)" "Returns a weekday, Monday being 1." [("(str (java.time.DayOfWeek/of 7))", r#""SUNDAY""#)] 1..1
        |_vm, args| match args.int(0)? {
            day @ 1..=7 => Ok(Value::host(&units::WEEKDAYS[day as usize - 1])),
            day => Err(date_time(format!("Invalid value for DayOfWeek: {day}"))),
        };
];

pub(super) const MONTH: &[Native] = natives![
    "of" "(Month/of n)" "Returns a month, January being 1." [("(str (java.time.Month/of 2))", r#""FEBRUARY""#)] 1..1
        |_vm, args| match args.int(0)? {
            month @ 1..=12 => Ok(Value::host(&units::MONTHS[month as usize - 1])),
            month => Err(date_time(format!("Invalid value for MonthOfYear: {month}"))),
        };
];

pub(super) const ADJUSTERS: &[Native] = natives![
    "firstDayOfMonth" "(TemporalAdjusters/firstDayOfMonth)" "Moves to the first day of the month." [("(str (.with (java.time.LocalDate/of 2020 2 15) (java.time.temporal.TemporalAdjusters/firstDayOfMonth)))", r#""2020-02-01""#)] 0..0
        |_vm, _args| Ok(Temporal::Adjuster(Adjuster::FirstDayOfMonth).into());
    "firstDayOfNextMonth" "(TemporalAdjusters/firstDayOfNextMonth)" "Moves to the first day of the next month." [("(str (.with (java.time.LocalDate/of 2020 2 15) (java.time.temporal.TemporalAdjusters/firstDayOfNextMonth)))", r#""2020-03-01""#)] 0..0
        |_vm, _args| Ok(Temporal::Adjuster(Adjuster::FirstDayOfNextMonth).into());
    "firstDayOfNextYear" "(TemporalAdjusters/firstDayOfNextYear)" "Moves to the first day of the next year." [("(str (.with (java.time.LocalDate/of 2020 2 15) (java.time.temporal.TemporalAdjusters/firstDayOfNextYear)))", r#""2021-01-01""#)] 0..0
        |_vm, _args| Ok(Temporal::Adjuster(Adjuster::FirstDayOfNextYear).into());
    "firstDayOfYear" "(TemporalAdjusters/firstDayOfYear)" "Moves to the first day of the year." [("(str (.with (java.time.LocalDate/of 2020 2 15) (java.time.temporal.TemporalAdjusters/firstDayOfYear)))", r#""2020-01-01""#)] 0..0
        |_vm, _args| Ok(Temporal::Adjuster(Adjuster::FirstDayOfYear).into());
    "lastDayOfMonth" "(TemporalAdjusters/lastDayOfMonth)" "Moves to the last day of the month." [("(str (.with (java.time.LocalDate/of 2020 2 15) (java.time.temporal.TemporalAdjusters/lastDayOfMonth)))", r#""2020-02-29""#)] 0..0
        |_vm, _args| Ok(Temporal::Adjuster(Adjuster::LastDayOfMonth).into());
    "lastDayOfYear" "(TemporalAdjusters/lastDayOfYear)" "Moves to the last day of the year." [("(str (.with (java.time.LocalDate/of 2020 2 15) (java.time.temporal.TemporalAdjusters/lastDayOfYear)))", r#""2020-12-31""#)] 0..0
        |_vm, _args| Ok(Temporal::Adjuster(Adjuster::LastDayOfYear).into());
    "next" "(TemporalAdjusters/next weekday)" "Moves to the next such weekday after the date." [("(str (.with (java.time.LocalDate/of 2020 2 15) (java.time.temporal.TemporalAdjusters/next java.time.DayOfWeek/SATURDAY)))", r#""2020-02-22""#)] 1..1
        |_vm, args| to_weekday(&args, true, false);
    "nextOrSame" "(TemporalAdjusters/nextOrSame weekday)" "Moves to the next such weekday, or keeps the date if it is one." [("(str (.with (java.time.LocalDate/of 2020 2 15) (java.time.temporal.TemporalAdjusters/nextOrSame java.time.DayOfWeek/SATURDAY)))", r#""2020-02-15""#)] 1..1
        |_vm, args| to_weekday(&args, true, true);
    "previous" "(TemporalAdjusters/previous weekday)" "Moves to the last such weekday before the date." [("(str (.with (java.time.LocalDate/of 2020 2 15) (java.time.temporal.TemporalAdjusters/previous java.time.DayOfWeek/MONDAY)))", r#""2020-02-10""#)] 1..1
        |_vm, args| to_weekday(&args, false, false);
    "previousOrSame" "(TemporalAdjusters/previousOrSame weekday)" "Moves to the last such weekday, or keeps the date if it is one." [("(str (.with (java.time.LocalDate/of 2020 2 15) (java.time.temporal.TemporalAdjusters/previousOrSame java.time.DayOfWeek/SATURDAY)))", r#""2020-02-15""#)] 1..1
        |_vm, args| to_weekday(&args, false, true);
];

fn to_weekday(args: &Args<'_>, forward: bool, or_same: bool) -> Result<Value> {
    let day = weekday(args, 0)?;
    Ok(Temporal::Adjuster(Adjuster::Weekday {
        day,
        forward,
        or_same,
    })
    .into())
}

fn offset(seconds: i64) -> Result<Value> {
    let offset = i32::try_from(seconds)
        .ok()
        .and_then(|seconds| Offset::from_seconds(seconds).ok());
    offset
        .map(|offset| Temporal::Zone(fixed(offset)).into())
        .ok_or_else(|| date_time("Zone offset not in valid range: -18:00 to +18:00"))
}

fn duration(args: &Args<'_>, nanos: i64) -> Result<Value> {
    Ok(Temporal::Duration(span(args.int(0)?, nanos)?).into())
}

pub(super) fn period(years: i64, months: i64, days: i64) -> Value {
    Temporal::Period(Period {
        years,
        months,
        days,
    })
    .into()
}

/// Counts whole months first, then the remaining days.
pub(super) fn period_between(from: Date, to: Date) -> Result<Period> {
    let months_of = |date: Date| i64::from(date.year()) * 12 + i64::from(date.month());
    let mut months = months_of(to) - months_of(from);
    let mut days = i64::from(to.day()) - i64::from(from.day());
    if months > 0 && days < 0 {
        months -= 1;
        days = units::epoch_day(to) - units::epoch_day(units::plus_months(from, months)?);
    } else if months < 0 && days > 0 {
        months += 1;
        days -= i64::from(to.days_in_month());
    }
    Ok(Period {
        years: months / 12,
        months: months % 12,
        days,
    })
}

fn now(vm: &mut Vm) -> Result<Timestamp> {
    Timestamp::from_millisecond(vm.host().now_millis()?).map_err(out_of_range)
}

/// Returns the current time in the zone given as the only argument, or in UTC.
fn present(vm: &mut Vm, args: &Args<'_>) -> Result<Zoned> {
    let zone = if args.is_empty() {
        zone_named("UTC")?
    } else {
        zone(args, 0)?
    };
    Ok(now(vm)?.to_zoned(zone))
}

fn at_zone(args: &Args<'_>) -> Result<Zoned> {
    match temporal(args, 0)? {
        Temporal::Instant(at) => Ok(at.to_zoned(zone(args, 1)?)),
        Temporal::Zoned(at) => Ok(at.with_time_zone(zone(args, 1)?)),
        _ => Err(args.expected(0, "a java.time.Instant")),
    }
}

fn date(args: &Args<'_>, from: usize) -> Result<Date> {
    calendar_date(args.int(from)?, month(args, from + 1)?, args.int(from + 2)?)
}

/// Returns a date from numbers, with Java's messages if they are out of range.
pub(super) fn calendar_date(year: i64, month: i64, day: i64) -> Result<Date> {
    if !(1..=12).contains(&month) {
        let message = format!("Invalid value for MonthOfYear (valid values 1 - 12): {month}");
        return Err(date_time(message));
    }
    if !(1..=31).contains(&day) {
        let message = format!("Invalid value for DayOfMonth (valid values 1 - 28/31): {day}");
        return Err(date_time(message));
    }
    let year = i16::try_from(year)
        .ok()
        .filter(|year| (-9999..=9999).contains(year));
    let year =
        year.ok_or_else(|| date_time("Invalid value for Year (valid values -9999 - 9999)"))?;
    Date::new(year, month as i8, day as i8).map_err(|_| match (month, day) {
        (2, 29) => date_time(format!(
            "Invalid date 'February 29' as '{year}' is not a leap year"
        )),
        _ => date_time(format!(
            "Invalid date '{} {day}'",
            units::MONTHS[month as usize - 1].name
        )),
    })
}

fn time(args: &Args<'_>, from: usize) -> Result<Time> {
    let part = |idx: usize| {
        if from + idx < args.len() {
            args.int(from + idx)
        } else {
            Ok(0)
        }
    };
    clock_time([part(0)?, part(1)?, part(2)?, part(3)?])
}

/// Returns a time of hour, minute, second and nanosecond.
pub(super) fn clock_time(parts: [i64; 4]) -> Result<Time> {
    const NAMES: [(&str, i64); 4] = [
        ("HourOfDay", 23),
        ("MinuteOfHour", 59),
        ("SecondOfMinute", 59),
        ("NanoOfSecond", 999_999_999),
    ];
    for (part, (name, max)) in parts.iter().zip(NAMES) {
        if !(0..=max).contains(part) {
            return Err(date_time(format!(
                "Invalid value for {name} (valid values 0 - {max}): {part}"
            )));
        }
    }
    let [hour, minute, second, nanos] = parts;
    Ok(jiff::civil::time(
        hour as i8,
        minute as i8,
        second as i8,
        nanos as i32,
    ))
}

/// Reads a date and a time, or their numbers, from the first `count` arguments.
fn local(args: &Args<'_>, count: usize) -> Result<DateTime> {
    if count == 2 {
        return match (temporal(args, 0)?, temporal(args, 1)?) {
            (Temporal::Date(date), Temporal::Time(time)) => Ok(date.to_datetime(time)),
            _ => Err(args.expected(0, "a java.time.LocalDate and a LocalTime")),
        };
    }
    if count < 5 {
        return Err(args.expected(0, "a date and a time, or five numbers and more"));
    }
    let part = |idx: usize| if idx < count { args.int(idx) } else { Ok(0) };
    let time = clock_time([part(3)?, part(4)?, part(5)?, part(6)?])?;
    Ok(date(args, 0)?.to_datetime(time))
}

/// Parses the first argument with the formatter given as the second, or with a default.
fn parsed(
    args: &Args<'_>,
    default: &'static [formatter::Item],
    what: &str,
) -> Result<(String, formatter::Fields)> {
    let text = args.text(0)?.as_str().to_owned();
    let fields = match args.len() {
        1 => formatter::parse(default, &text),
        _ => match args.get(1).as_host::<Formatter>() {
            Some(formatter) => formatter::parse(formatter.items(), &text),
            None => return Err(args.expected(1, "a java.time.format.DateTimeFormatter")),
        },
    };
    match fields {
        Some(fields) => Ok((text, fields)),
        None => Err(no_parse(&text, what)),
    }
}
