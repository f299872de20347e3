//! Conversion of wall-clock times to ticks, including clock changes, and the choice of ticks that start runs.
//!
//! A time that a clock change skips becomes the first tick after the change; a time that occurs twice counts only the
//! first time. So each wall-clock time that an expression names produces one tick.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::{AmbiguousOffset, TimeZone};

use super::{CatchUp, Schedule, Timing};

/// Maximum age of a tick that is only late and not missed.
const LATE_MS: i64 = 60_000;
/// The periods to search for missed ticks, shortest first, because there may be very many.
const WINDOWS_MS: &[i64] = &[
    3_600_000,
    24 * 3_600_000,
    32 * 24 * 3_600_000,
    367 * 24 * 3_600_000,
];

/// The ticks that are due in a schedule.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Due {
    /// The ticks that start runs, oldest first.
    pub ticks: Vec<i64>,
    /// The next tick after now.
    pub next_ms: Option<i64>,
}

impl Timing {
    /// Returns the first tick after another.
    pub fn next_ms(&self, after_ms: i64) -> Option<i64> {
        match self {
            Timing::Every { millis } => after_ms
                .div_euclid(*millis)
                .checked_add(1)?
                .checked_mul(*millis),
            Timing::Cron { cron, zone } => {
                let after = Timestamp::from_millisecond(after_ms).ok()?;
                let mut wall = zone.to_datetime(after);
                loop {
                    wall = cron.next(wall)?;
                    let tick = tick(zone, wall)?.as_millisecond();
                    // In the repeated hour after a clock change, a computed tick may be in the past.
                    if tick > after_ms {
                        return Some(tick);
                    }
                }
            }
        }
    }

    /// Returns the last tick from one instant to another, both included.
    pub fn latest_ms(&self, from_ms: i64, to_ms: i64) -> Option<i64> {
        self.between(from_ms, to_ms, 1).pop()
    }

    /// Returns the ticks from one instant to another, both included; if there are more than `most`, the last ones.
    fn between(&self, from_ms: i64, to_ms: i64, most: usize) -> Vec<i64> {
        let mut found = Vec::new();
        let beginnings = WINDOWS_MS
            .iter()
            .map(|window| to_ms.saturating_sub(*window));
        for begin_ms in beginnings.chain([from_ms]) {
            let begin_ms = begin_ms.max(from_ms);
            found = self.all(begin_ms, to_ms);
            if found.len() >= most || begin_ms == from_ms {
                break;
            }
        }
        found.split_off(found.len().saturating_sub(most))
    }

    fn all(&self, from_ms: i64, to_ms: i64) -> Vec<i64> {
        let mut found = Vec::new();
        let mut at_ms = from_ms.saturating_sub(1);
        while let Some(next_ms) = self.next_ms(at_ms).filter(|next| *next <= to_ms) {
            found.push(next_ms);
            at_ms = next_ms;
        }
        found
    }
}

/// Returns the tick of a wall-clock time in a zone.
fn tick(zone: &TimeZone, wall: DateTime) -> Option<Timestamp> {
    match zone.to_ambiguous_timestamp(wall).offset() {
        AmbiguousOffset::Unambiguous { offset } | AmbiguousOffset::Fold { before: offset, .. } => {
            offset.to_timestamp(wall).ok()
        }
        AmbiguousOffset::Gap { before, .. } => {
            let past = before.to_timestamp(wall).ok()?;
            let past = past.checked_add(jiff::SignedDuration::from_nanos(1)).ok()?;
            let change = zone.preceding(past).next()?;
            Some(change.timestamp())
        }
    }
}

impl Schedule {
    /// Returns the due ticks at `now_ms` of a schedule whose next tick was `next_ms`.
    pub fn due(&self, next_ms: i64, now_ms: i64) -> Due {
        let mut ticks = match next_ms <= now_ms {
            true => {
                let most = match self.catch_up {
                    CatchUp::All => CatchUp::MOST,
                    CatchUp::Latest | CatchUp::Skip => 1,
                };
                self.timing.between(next_ms, now_ms, most)
            }
            false => Vec::new(),
        };
        if self.catch_up == CatchUp::Skip {
            ticks.retain(|tick| now_ms - tick <= LATE_MS);
        }
        Due {
            ticks,
            next_ms: self.timing.next_ms(now_ms),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Cron;
    use super::*;

    fn zone(name: &str) -> TimeZone {
        crate::schedule::zones::zone(name).expect("a zone")
    }

    fn ms(text: &str) -> i64 {
        text.parse::<Timestamp>().expect("a tick").as_millisecond()
    }

    fn timing(cron: &str, name: &str) -> Timing {
        Timing::Cron {
            cron: Box::new(Cron::parse(cron).expect("an expression")),
            zone: zone(name),
        }
    }

    /// The ticks of an expression in a zone after a tick.
    fn check(cron: &str, name: &str, after: &str, expected: &[&str]) {
        let timing = timing(cron, name);
        let mut at = ms(after);
        for expected in expected {
            at = timing.next_ms(at).expect("there is another");
            let shown = Timestamp::from_millisecond(at).expect("a tick").to_string();
            assert_eq!(shown, *expected, "{cron} in {name} after {after}");
        }
    }

    #[test]
    fn a_time_that_is_left_out_counts_as_the_moment_after() {
        // On 2026-03-29 in Berlin it is 3:00 right after 1:59.
        check(
            "30 2 * * *",
            "Europe/Berlin",
            "2026-03-28T00:00:00Z",
            &[
                "2026-03-28T01:30:00Z",
                "2026-03-29T01:00:00Z",
                "2026-03-30T00:30:00Z",
            ],
        );
        check(
            "*/30 1-3 * * *",
            "Europe/Berlin",
            "2026-03-29T00:00:00Z",
            &[
                "2026-03-29T00:30:00Z",
                "2026-03-29T01:00:00Z",
                "2026-03-29T01:30:00Z",
            ],
        );
        check(
            "15 2 * * *",
            "America/New_York",
            "2026-03-07T12:00:00Z",
            &["2026-03-08T07:00:00Z", "2026-03-09T06:15:00Z"],
        );
    }

    #[test]
    fn a_time_that_comes_twice_counts_once() {
        // On 2026-10-25 in Berlin it is 2:00 again after 2:59.
        check(
            "30 2 * * *",
            "Europe/Berlin",
            "2026-10-24T12:00:00Z",
            &["2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"],
        );
        check(
            "0 * * * *",
            "Europe/Berlin",
            "2026-10-24T23:30:00Z",
            &["2026-10-25T00:00:00Z", "2026-10-25T02:00:00Z"],
        );
        check(
            "30 1 * * *",
            "America/New_York",
            "2026-10-31T12:00:00Z",
            &["2026-11-01T05:30:00Z", "2026-11-02T06:30:00Z"],
        );
        // A start within the repeated hour.
        check(
            "45 1 * * *",
            "America/New_York",
            "2026-11-01T06:10:00Z",
            &["2026-11-02T06:45:00Z"],
        );
    }

    #[test]
    fn every_so_often_is_counted_from_one_beginning() {
        let timing = Timing::Every { millis: 900_000 };
        assert_eq!(
            timing.next_ms(ms("2026-01-01T10:14:59Z")),
            Some(ms("2026-01-01T10:15:00Z"))
        );
        assert_eq!(
            timing.next_ms(ms("2026-01-01T10:15:00Z")),
            Some(ms("2026-01-01T10:30:00Z"))
        );
    }

    fn due(catch_up: CatchUp, next: &str, now: &str) -> String {
        let schedule = Schedule {
            id: "it".into(),
            label: None,
            invocation: None,
            enabled: true,
            timing: timing("0 * * * *", "UTC"),
            input: flowstone_lang::value::Value::map([]),
            catch_up,
            span: flowstone_lang::value::Span::NONE,
        };
        let due = schedule.due(ms(next), ms(now));
        let shown = |ms: i64| Timestamp::from_millisecond(ms).expect("a tick").to_string();
        let ticks: Vec<String> = due.ticks.iter().map(|ms| shown(*ms)).collect();
        format!(
            "{} then {}",
            ticks.join(" "),
            due.next_ms.map(shown).unwrap_or_default()
        )
    }

    #[test]
    fn missed_moments() {
        let (next, now) = ("2026-01-01T10:00:00Z", "2026-01-01T13:20:00Z");
        assert_eq!(due(CatchUp::Skip, next, now), " then 2026-01-01T14:00:00Z");
        assert_eq!(
            due(CatchUp::Latest, next, now),
            "2026-01-01T13:00:00Z then 2026-01-01T14:00:00Z"
        );
        assert_eq!(
            due(CatchUp::All, next, now),
            "2026-01-01T10:00:00Z 2026-01-01T11:00:00Z 2026-01-01T12:00:00Z 2026-01-01T13:00:00Z then 2026-01-01T14:00:00Z"
        );
        // A late tick is not missed.
        assert_eq!(
            due(CatchUp::Skip, next, "2026-01-01T10:00:30Z"),
            "2026-01-01T10:00:00Z then 2026-01-01T11:00:00Z"
        );
        // After years without a worker, the number of ticks is limited.
        let long = due(CatchUp::All, "2020-01-01T00:00:00Z", now);
        assert_eq!(long.split(' ').count(), CatchUp::MOST + 2);
        assert_eq!(
            due(CatchUp::Latest, next, "2026-01-01T09:00:00Z"),
            " then 2026-01-01T10:00:00Z"
        );
    }
}
