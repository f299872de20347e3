//! Cron expressions of five fields: minute, hour, day of month, month, day of week.
//!
//! As in cron, if both days are restricted, either is enough. A crate that parses these would add another time library;
//! time zones are the difficult part, and those are in `ticks.rs`.

use std::fmt;

use jiff::civil::{Date, DateTime};

const MONTHS: &[&str] = &[
    "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
];
const DAYS: &[&str] = &["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

/// The short forms of cron for whole expressions.
const PRESETS: &[(&str, &str)] = &[
    ("@annually", "0 0 1 1 *"),
    ("@daily", "0 0 * * *"),
    ("@hourly", "0 * * * *"),
    ("@midnight", "0 0 * * *"),
    ("@monthly", "0 0 1 * *"),
    ("@weekly", "0 0 * * 0"),
    ("@yearly", "0 0 1 1 *"),
];

/// A field of an expression.
struct Field {
    name: &'static str,
    least: u32,
    most: u32,
    /// Names of the values, in the order of the values.
    names: &'static [&'static str],
}

const MINUTE: Field = Field {
    name: "minute",
    least: 0,
    most: 59,
    names: &[],
};
const HOUR: Field = Field {
    name: "hour",
    least: 0,
    most: 23,
    names: &[],
};
const DAY: Field = Field {
    name: "day of month",
    least: 1,
    most: 31,
    names: &[],
};
const MONTH: Field = Field {
    name: "month",
    least: 1,
    most: 12,
    names: MONTHS,
};
/// The value 7 is also Sunday.
const WEEKDAY: Field = Field {
    name: "day of week",
    least: 0,
    most: 7,
    names: DAYS,
};
/// Maximum number of years to search: there are at most eight years between two leap years.
const LONGEST_YEARS: i16 = 9;

/// A parsed cron expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cron {
    text: String,
    /// Sets of numbers, as bits.
    minutes: u64,
    hours: u64,
    days: u64,
    months: u64,
    weekdays: u64,
    /// Both days are restricted: either is enough.
    either_day: bool,
}

/// An error in an expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CronError {
    /// The field with the error, if it is in one.
    pub field: Option<&'static str>,
    pub message: String,
    pub hint: Option<String>,
}

impl fmt::Display for CronError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.field {
            Some(field) => write!(out, "the {field}: {}", self.message),
            None => write!(out, "{}", self.message),
        }
    }
}

impl Cron {
    /// Reads an expression.
    ///
    /// # Errors
    /// A message that states what is wrong, with the field.
    pub fn parse(text: &str) -> Result<Cron, CronError> {
        let given = text.trim();
        let plain = match PRESETS.iter().find(|(name, _)| *name == given) {
            Some((_, meaning)) => meaning,
            None => given,
        };
        let parts: Vec<&str> = plain.split_whitespace().collect();
        let [minute, hour, day, month, weekday] = parts[..] else {
            return Err(of_count(given, parts.len()));
        };
        let weekdays = fold_sunday(WEEKDAY.read(weekday)?);
        let cron = Cron {
            text: given.to_owned(),
            minutes: MINUTE.read(minute)?,
            hours: HOUR.read(hour)?,
            days: DAY.read(day)?,
            months: MONTH.read(month)?,
            weekdays,
            either_day: !day.starts_with('*') && !weekday.starts_with('*'),
        };
        let some_day = DateTime::constant(2000, 1, 1, 0, 0, 0, 0);
        if cron.next(some_day).is_none() {
            return Err(CronError {
                field: Some(DAY.name),
                message: format!("`{given}` never happens: no such month has such a day"),
                hint: None,
            });
        }
        Ok(cron)
    }

    /// Returns the expression as it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the first minute after a wall-clock time that matches the expression.
    pub(super) fn next(&self, after: DateTime) -> Option<DateTime> {
        let mut day = after.date();
        let end = day.year().saturating_add(LONGEST_YEARS);
        let mut from = (after.hour() as u32, after.minute() as u32 + 1);
        while day.year() < end {
            if self.has_month(day) && self.has_day(day) {
                if let Some((hour, minute)) = self.time_from(from) {
                    return Some(day.at(hour, minute, 0, 0));
                }
                day = day.tomorrow().ok()?;
            } else if self.has_month(day) {
                day = day.tomorrow().ok()?;
            } else {
                day = day.last_of_month().tomorrow().ok()?;
            }
            from = (0, 0);
        }
        None
    }

    fn has_month(&self, day: Date) -> bool {
        has(self.months, day.month() as u32)
    }

    fn has_day(&self, day: Date) -> bool {
        let in_month = has(self.days, day.day() as u32);
        let in_week = has(self.weekdays, day.weekday().to_sunday_zero_offset() as u32);
        match self.either_day {
            true => in_month || in_week,
            false => in_month && in_week,
        }
    }

    /// Returns the first matching time of a day at or after an hour and minute; the minute may be past the end of the
    /// hour.
    fn time_from(&self, (hour, minute): (u32, u32)) -> Option<(i8, i8)> {
        if has(self.hours, hour)
            && let Some(minute) = first_from(self.minutes, minute)
        {
            return Some((hour as i8, minute as i8));
        }
        let hour = first_from(self.hours, hour + 1)?;
        let minute = first_from(self.minutes, 0)?;
        Some((hour as i8, minute as i8))
    }
}

/// Reads digits, without a sign.
fn plain_number(text: &str) -> Option<u32> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| is_plain)
}

fn has(set: u64, number: u32) -> bool {
    number < u64::BITS && set & (1 << number) != 0
}

fn first_from(set: u64, number: u32) -> Option<u32> {
    let left = set.checked_shr(number).unwrap_or(0);
    (left != 0).then(|| number + left.trailing_zeros())
}

fn of_count(text: &str, count: usize) -> CronError {
    let hint = match (text.starts_with('@'), count) {
        (true, _) => {
            let names: Vec<&str> = PRESETS.iter().map(|(name, _)| *name).collect();
            format!("the short forms are {}", names.join(", "))
        }
        (false, 6 | 7) => {
            "seconds and years have no field; for less than a minute, use `:every`".to_owned()
        }
        _ => "for example `0 9 * * MON`: at nine each Monday".to_owned(),
    };
    CronError {
        field: None,
        message: format!(
            "`{text}` has {count} fields instead of five: minute, hour, day of month, month, day of week"
        ),
        hint: Some(hint),
    }
}

impl Field {
    /// Reads a list of ranges with steps.
    fn read(&self, text: &str) -> Result<u64, CronError> {
        let mut set = 0;
        for part in text.split(',') {
            set |= self.part(part)?;
        }
        Ok(set)
    }

    fn part(&self, text: &str) -> Result<u64, CronError> {
        let (range, step) = match text.split_once('/') {
            None => (text, None),
            Some((range, step)) => (range, Some(self.step(step, text)?)),
        };
        let (first, last) = match range.split_once('-') {
            _ if range == "*" => (self.least, self.most),
            Some((first, last)) => (self.value(first)?, self.value(last)?),
            None => {
                let first = self.value(range)?;
                // With a step, a single number is the start of a range.
                let last = if step.is_some() { self.most } else { first };
                (first, last)
            }
        };
        if first > last {
            return Err(self
                .error(format!("`{range}` ends before it begins"))
                .with_hint(format!(
                    "write two ranges: `{first}-{},{}-{last}`",
                    self.most, self.least
                )));
        }
        let step = step.unwrap_or(1) as usize;
        Ok((first..=last)
            .step_by(step)
            .fold(0, |set, number| set | 1 << number))
    }

    fn step(&self, step: &str, text: &str) -> Result<u32, CronError> {
        match plain_number(step) {
            Some(step) if step > 0 && step <= self.most => Ok(step),
            _ => Err(self.error(format!(
                "the step in `{text}` must be a number from 1 to {}",
                self.most
            ))),
        }
    }

    fn value(&self, text: &str) -> Result<u32, CronError> {
        let lower = text.to_ascii_lowercase();
        if let Some(idx) = self.names.iter().position(|name| *name == lower) {
            return Ok(self.least + u32::try_from(idx).unwrap_or(0));
        }
        match plain_number(text) {
            Some(number) if (self.least..=self.most).contains(&number) => Ok(number),
            _ => {
                let error = self.error(format!(
                    "expected a number from {} to {}, got `{text}`",
                    self.least, self.most
                ));
                Err(match (self.names.first(), self.names.last()) {
                    (Some(first), Some(last)) => error.with_hint(format!(
                        "or a name, from {} to {}",
                        first.to_ascii_uppercase(),
                        last.to_ascii_uppercase()
                    )),
                    _ => error,
                })
            }
        }
    }

    fn error(&self, message: String) -> CronError {
        CronError {
            field: Some(self.name),
            message,
            hint: None,
        }
    }
}

impl CronError {
    fn with_hint(mut self, hint: String) -> CronError {
        self.hint = Some(hint);
        self
    }
}

/// Maps both 0 and 7 to Sunday.
fn fold_sunday(weekdays: u64) -> u64 {
    match has(weekdays, 7) {
        true => (weekdays | 1) & !(1 << 7),
        false => weekdays,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(expression: &str, after: &str, expected: &[&str]) {
        let cron = Cron::parse(expression).expect(expression);
        let mut at: DateTime = after.parse().expect("a time");
        for expected in expected {
            at = cron.next(at).expect("there is another");
            assert_eq!(at.to_string(), format!("{expected}:00"), "{expression}");
        }
    }

    #[test]
    fn the_next_times() {
        check(
            "*/20 9-10 * * *",
            "2026-03-01T09:15",
            &["2026-03-01T09:20", "2026-03-01T09:40", "2026-03-01T10:00"],
        );
        check(
            "0 9 * * MON",
            "2026-11-22T00:00",
            &["2026-11-23T09:00", "2026-11-30T09:00"],
        );
        check(
            "30 8 * * mon-fri",
            "2026-11-27T08:30",
            &["2026-11-30T08:30"],
        );
        check("0 0 29 2 *", "2026-01-01T00:00", &["2028-02-29T00:00"]);
        check(
            "0 0 1,15 * 5",
            "2026-05-01T00:00",
            &["2026-05-08T00:00", "2026-05-15T00:00", "2026-05-22T00:00"],
        );
        check("5/30 * * * *", "2026-05-01T00:06", &["2026-05-01T00:35"]);
        check("59 23 31 12 7", "2026-12-27T23:59", &["2026-12-31T23:59"]);
        check("@hourly", "2026-05-01T23:00", &["2026-05-02T00:00"]);
    }

    #[test]
    fn malformed_expressions_are_explained() {
        let error = |text: &str| Cron::parse(text).expect_err(text).to_string();
        assert_eq!(
            error("60 * * * *"),
            "the minute: expected a number from 0 to 59, got `60`"
        );
        assert_eq!(
            error("0 0 31 2 *"),
            "the day of month: `0 0 31 2 *` never happens: no such month has such a day"
        );
        assert_eq!(
            error("0 0 * * fri-mon"),
            "the day of week: `fri-mon` ends before it begins"
        );
        assert_eq!(
            error("*/0 * * * *"),
            "the minute: the step in `*/0` must be a number from 1 to 59"
        );
        assert!(error("0 9 * *").contains("has 4 fields"));
        assert!(error("@noon").contains("has 1 fields"));
        assert!(error("0 0 * * L").contains("got `L`"));
    }
}
