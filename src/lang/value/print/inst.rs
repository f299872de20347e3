//! Instants as text in UTC: the calendar of `#inst`.

const DAY: i64 = 86_400_000;

/// A calendar date and time in UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CivilTime {
    /// The year; 0 is the year before 1.
    pub year: i64,
    /// The month, from 1 to 12.
    pub month: u32,
    /// The day of the month, from 1.
    pub day: u32,
    /// The hour, from 0 to 23.
    pub hour: u32,
    /// The minute, from 0 to 59.
    pub minute: u32,
    /// The second, from 0 to 59.
    pub second: u32,
    /// The millisecond, from 0 to 999.
    pub millisecond: u32,
    /// The day of the week; 0 is Sunday.
    pub weekday: u32,
}

/// Converts milliseconds since 1970 to a date and time in the Gregorian calendar.
pub fn civil_time(millis: i64) -> CivilTime {
    let days = millis.div_euclid(DAY);
    let rest = millis.rem_euclid(DAY) as u32;
    // Years are counted from March, so that the leap day comes last.
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let month = if shifted_month < 10 {
        shifted_month + 3
    } else {
        shifted_month - 9
    };
    CivilTime {
        year: year_of_era + era * 400 + i64::from(month <= 2),
        month: month as u32,
        day: (day_of_year - (153 * shifted_month + 2) / 5 + 1) as u32,
        hour: rest / 3_600_000,
        minute: rest / 60_000 % 60,
        second: rest / 1000 % 60,
        millisecond: rest % 1000,
        weekday: (days + 4).rem_euclid(7) as u32,
    }
}

/// Returns the milliseconds since 1970 of a date and time in UTC; `weekday` is ignored.
pub fn millis_of(time: CivilTime) -> i64 {
    let year = time.year - i64::from(time.month <= 2);
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let shifted_month = i64::from((time.month + 9) % 12);
    let day_of_year = (153 * shifted_month + 2) / 5 + i64::from(time.day) - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    let days = era * 146_097 + day_of_era - 719_468;
    days * DAY
        + i64::from(time.hour) * 3_600_000
        + i64::from(time.minute) * 60_000
        + i64::from(time.second) * 1000
        + i64::from(time.millisecond)
}

/// Writes `2020-01-01T00:00:00.000-00:00`.
pub(super) fn write_inst(out: &mut String, millis: i64) {
    let time = civil_time(millis);
    out.push_str(&format!(
        "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}-00:00",
        time.year, time.month, time.day, time.hour, time.minute, time.second, time.millisecond
    ));
}

/// Writes `Wed Jan 01 00:00:00 UTC 2020`, as `str` writes an instant.
pub(super) fn write_java_date(out: &mut String, millis: i64) {
    const DAYS: [&str; 7] = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];
    const MONTHS: [&str; 12] = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ];
    let time = civil_time(millis);
    out.push_str(&format!(
        "{} {} {:02} {:02}:{:02}:{:02} UTC {}",
        DAYS[time.weekday as usize],
        MONTHS[time.month as usize - 1],
        time.day,
        time.hour,
        time.minute,
        time.second,
        time.year
    ));
}
