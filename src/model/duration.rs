//! Durations as flows write them: seconds, or text such as `"500ms"`, `"10s"`, `"5m"`, `"2h"`, `"1d"`.

use std::time::Duration;

use flowstone_lang::value::Value;

/// Maximum duration, a hundred years: a longer one is a mistake.
const MAX_SECONDS: f64 = 100.0 * 366.0 * 86_400.0;

/// Reads a duration; a number is seconds. Returns `None` if the value is not a duration, or is negative.
pub fn of_value(value: &Value) -> Option<Duration> {
    match value {
        Value::Int(seconds) => seconds_of(*seconds as f64),
        Value::Float(seconds) => seconds_of(*seconds),
        Value::Text(text) => parse(text),
        _ => None,
    }
}

/// Reads a duration; a number is milliseconds. Returns `None` if the value is not a duration, or is negative.
pub fn of_millis_value(value: &Value) -> Option<Duration> {
    match value {
        Value::Int(millis) => seconds_of(*millis as f64 / 1000.0),
        Value::Float(millis) => seconds_of(*millis / 1000.0),
        Value::Text(text) => parse(text),
        _ => None,
    }
}

/// Reads one or more numbers with units, such as `1h30m`; a bare number is seconds.
pub fn parse(text: &str) -> Option<Duration> {
    let mut rest = text.trim();
    if rest.is_empty() {
        return None;
    }
    if let Ok(seconds) = rest.parse::<f64>() {
        return seconds_of(seconds);
    }
    let mut total = 0.0;
    while !rest.is_empty() {
        let end = rest.find(|char: char| !char.is_ascii_digit() && char != '.')?;
        let number: f64 = rest[..end].parse().ok()?;
        rest = rest[end..].trim_start();
        let end = rest
            .find(|char: char| !char.is_ascii_alphabetic())
            .unwrap_or(rest.len());
        let unit = match &rest[..end] {
            "ms" | "milli" | "millis" => 0.001,
            "s" | "sec" | "second" | "seconds" => 1.0,
            "m" | "min" | "minute" | "minutes" => 60.0,
            "h" | "hour" | "hours" => 3600.0,
            "d" | "day" | "days" => 86_400.0,
            "w" | "week" | "weeks" => 604_800.0,
            _ => return None,
        };
        total += number * unit;
        rest = rest[end..].trim_start();
    }
    seconds_of(total)
}

fn seconds_of(seconds: f64) -> Option<Duration> {
    if !(0.0..=MAX_SECONDS).contains(&seconds) {
        return None;
    }
    // Rounded to whole milliseconds, so that a duration is the same after it is written and read back.
    Some(Duration::from_millis((seconds * 1000.0).round() as u64))
}

/// Returns a duration in whole milliseconds.
pub fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

/// Returns a duration as the number of seconds that a flow sees.
pub fn seconds_value(duration: Duration) -> Value {
    match duration.subsec_nanos() {
        0 => Value::Int(i64::try_from(duration.as_secs()).unwrap_or(i64::MAX)),
        _ => Value::Float(duration.as_secs_f64()),
    }
}
