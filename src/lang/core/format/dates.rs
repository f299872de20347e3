//! The `%t` directives: dates and times, as Java's `Formatter` writes them in English.

use jiff::civil::{Date, Time};
use jiff::tz::{Offset, TimeZone};
use jiff::{Timestamp, Zoned};

use crate::core::time::{PointInTime, zone_id};
use crate::value::{Object, Result, Value};

/// The second letters of the directives.
pub(super) const LETTERS: &str = "HIklMSLNpzZsQBbhAaCYyjmdeRTrDFc";

/// The available parts of an argument; a clock reading without a date has no weekday.
struct Parts {
    date: Option<Date>,
    time: Option<Time>,
    offset: Option<Offset>,
    zone: Option<TimeZone>,
    instant: Option<Timestamp>,
    /// The fraction of the second, if the rest of the time is missing.
    nanos: Option<i32>,
    /// Whether seconds before 1970 are truncated towards zero, as Java does for `Date` and milliseconds.
    counts_from_zero: bool,
}

/// The reason why a directive has no text.
pub(super) enum NoText {
    /// The argument is not a date or time.
    Kind,
    /// The argument lacks the field of this name.
    Field(&'static str),
}

/// Returns the text of one directive; the letter is the one after `%t`.
pub(super) fn text(value: &Value, letter: char) -> Result<String, NoText> {
    parts(value).ok_or(NoText::Kind)?.text(letter)
}

fn parts(value: &Value) -> Option<Parts> {
    let zoned = |at: Zoned, counts_from_zero| Parts {
        date: Some(at.date()),
        time: Some(at.time()),
        offset: Some(at.offset()),
        zone: Some(at.time_zone().clone()),
        instant: Some(at.timestamp()),
        nanos: None,
        counts_from_zero,
    };
    let of_millis = |millis| {
        let at = Timestamp::from_millisecond(millis).ok()?;
        Some(zoned(at.to_zoned(TimeZone::UTC), true))
    };
    let none = Parts {
        date: None,
        time: None,
        offset: None,
        zone: None,
        instant: None,
        nanos: None,
        counts_from_zero: false,
    };
    match value {
        Value::Int(millis) => of_millis(*millis),
        Value::Object(object) if let Object::Inst(millis) = &**object => of_millis(*millis),
        value => Some(match PointInTime::of(value)? {
            PointInTime::Instant(at) => Parts {
                nanos: Some(at.as_nanosecond().rem_euclid(1_000_000_000) as i32),
                instant: Some(at),
                ..none
            },
            PointInTime::Date(date) => Parts {
                date: Some(date),
                ..none
            },
            PointInTime::Time(time) => Parts {
                time: Some(time),
                ..none
            },
            PointInTime::DateTime(at) => Parts {
                date: Some(at.date()),
                time: Some(at.time()),
                ..none
            },
            PointInTime::Zoned(at) => zoned(at, false),
        }),
    }
}

impl Parts {
    fn text(&self, letter: char) -> Result<String, NoText> {
        match letter {
            'R' | 'T' | 'r' | 'D' | 'F' | 'c' => self.several(letter),
            'H' | 'I' | 'k' | 'l' | 'M' | 'S' | 'p' => self.of_time(letter),
            'L' | 'N' | 's' | 'Q' | 'z' | 'Z' => self.of_instant(letter),
            _ => self.of_date(letter),
        }
    }

    /// Writes the text of a letter that combines several others.
    fn several(&self, letter: char) -> Result<String, NoText> {
        let (letters, between) = match letter {
            'R' => ("HM", ":"),
            'T' => ("HMS", ":"),
            'D' => ("mdy", "/"),
            'F' => ("Ymd", "-"),
            'r' => {
                let time =
                    ["I", "M", "S"].map(|letter| self.text(letter.chars().next().unwrap_or('S')));
                let [hour, minute, second] = time;
                let half = self.text('p')?.to_uppercase();
                return Ok(format!("{}:{}:{} {half}", hour?, minute?, second?));
            }
            _ => ("abdTZY", " "),
        };
        let parts: Result<Vec<String>, NoText> = letters.chars().map(|it| self.text(it)).collect();
        Ok(parts?.join(between))
    }

    fn of_time(&self, letter: char) -> Result<String, NoText> {
        let field = match letter {
            'H' | 'k' => "HourOfDay",
            'I' | 'l' => "ClockHourOfAmPm",
            'M' => "MinuteOfHour",
            'S' => "SecondOfMinute",
            _ => "AmPmOfDay",
        };
        let time = self.time.ok_or(NoText::Field(field))?;
        let clock = match time.hour() % 12 {
            0 => 12,
            hour => hour,
        };
        Ok(match letter {
            'H' => format!("{:02}", time.hour()),
            'k' => time.hour().to_string(),
            'I' => format!("{clock:02}"),
            'l' => clock.to_string(),
            'M' => format!("{:02}", time.minute()),
            'S' => format!("{:02}", time.second()),
            _ => if time.hour() < 12 { "am" } else { "pm" }.to_owned(),
        })
    }

    fn of_instant(&self, letter: char) -> Result<String, NoText> {
        let nanos = self.time.map(|time| time.subsec_nanosecond());
        let nanos = nanos.or(self.nanos);
        let instant = || self.instant.ok_or(NoText::Field("InstantSeconds"));
        Ok(match letter {
            'L' => format!(
                "{:03}",
                nanos.ok_or(NoText::Field("MilliOfSecond"))? / 1_000_000
            ),
            'N' => format!("{:09}", nanos.ok_or(NoText::Field("MilliOfSecond"))?),
            's' => {
                let nanos = instant()?.as_nanosecond();
                let seconds = match self.counts_from_zero {
                    true => nanos / 1_000_000_000,
                    false => nanos.div_euclid(1_000_000_000),
                };
                seconds.to_string()
            }
            'Q' => instant()?.as_nanosecond().div_euclid(1_000_000).to_string(),
            'z' => {
                let offset = self.offset.ok_or(NoText::Field("OffsetSeconds"))?.seconds();
                let sign = if offset < 0 { '-' } else { '+' };
                let minutes = offset.abs() / 60;
                format!("{sign}{:02}{:02}", minutes / 60, minutes % 60)
            }
            _ => {
                let zone = self.zone.as_ref().ok_or(NoText::Kind)?;
                match (zone.iana_name(), self.instant) {
                    (Some(_), Some(at)) => zone.to_offset_info(at).abbreviation().to_owned(),
                    _ => zone_id(zone),
                }
            }
        })
    }

    fn of_date(&self, letter: char) -> Result<String, NoText> {
        let field = match letter {
            'A' | 'a' => "DayOfWeek",
            'B' | 'b' | 'h' | 'm' => "MonthOfYear",
            'C' | 'Y' | 'y' => "YearOfEra",
            'j' => "DayOfYear",
            _ => "DayOfMonth",
        };
        let date = self.date.ok_or(NoText::Field(field))?;
        // The year 0 is 1 BC.
        let year = match i64::from(date.year()) {
            year if year > 0 => year,
            year => 1 - year,
        };
        Ok(match letter {
            'A' => date.strftime("%A").to_string(),
            'a' => date.strftime("%a").to_string(),
            'B' => date.strftime("%B").to_string(),
            'b' | 'h' => date.strftime("%b").to_string(),
            'C' => format!("{:02}", year / 100),
            'Y' => format!("{year:04}"),
            'y' => format!("{:02}", year % 100),
            'j' => format!("{:03}", date.day_of_year()),
            'm' => format!("{:02}", date.month()),
            'd' => format!("{:02}", date.day()),
            _ => date.day().to_string(),
        })
    }
}
