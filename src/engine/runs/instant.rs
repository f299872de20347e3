//! Points in time as people write them: a duration before now, or an instant.

use jiff::Timestamp;
use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;

use crate::duration;

/// Parses a point in time, in milliseconds since 1970: a duration before now such as `2h`, an instant such as
/// `2026-01-31T09:30:00Z`, or a date, or date and time, without a zone, in UTC.
pub fn read_instant(text: &str, now_ms: i64) -> Option<i64> {
    let text = text.trim();
    if let Some(back) = duration::parse(text) {
        return Some(now_ms.saturating_sub(duration::millis(back)));
    }
    if let Ok(instant) = text.parse::<Timestamp>() {
        return Some(instant.as_millisecond());
    }
    let civil = match text.parse::<DateTime>() {
        Ok(civil) => civil,
        Err(_) => text
            .parse::<Date>()
            .ok()?
            .to_datetime(jiff::civil::Time::midnight()),
    };
    let zoned = civil.to_zoned(TimeZone::UTC).ok()?;
    Some(zoned.timestamp().as_millisecond())
}

#[cfg(test)]
mod tests {
    use super::read_instant;

    #[test]
    fn instants_are_read() {
        let now = 1_800_000_000_000;
        let cases = [
            ("0s", Some(now)),
            ("90", Some(now - 90_000)),
            ("1d12h", Some(now - 129_600_000)),
            ("2026-01-31", Some(1_769_817_600_000)),
            ("2026-01-31T09:30", Some(1_769_851_800_000)),
            ("2026-01-31T09:30:00Z", Some(1_769_851_800_000)),
            ("2026-01-31T11:30:00+02:00", Some(1_769_851_800_000)),
            ("yesterday", None),
            ("2026-13-01", None),
            ("", None),
        ];
        for (text, ms) in cases {
            assert_eq!(read_instant(text, now), ms, "{text}");
        }
    }
}
