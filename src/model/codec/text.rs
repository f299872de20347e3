//! Instants and uuids as text.

/// Writes an instant in the form `2026-01-31T09:30:00.000Z`.
pub fn instant(millis: i64) -> String {
    let days = millis.div_euclid(86_400_000);
    let clock = millis.rem_euclid(86_400_000);
    let (year, month, day) = civil(days);
    format!(
        "{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}.{:03}Z",
        clock / 3_600_000,
        clock / 60_000 % 60,
        clock / 1000 % 60,
        clock % 1000
    )
}

/// Reads what [`instant`] writes; `None` for any other text, and for times that no calendar has.
pub(super) fn parse_instant(text: &str) -> Option<i64> {
    let (date, time) = text.strip_suffix('Z')?.split_once('T')?;
    let (sign, date) = match date.strip_prefix('-') {
        Some(date) => (-1, date),
        None => (1, date),
    };
    let [year, month, day] = numbers(date, '-')?;
    let (clock, fraction) = time.split_once('.')?;
    let [hours, minutes, seconds] = numbers(clock, ':')?;
    let [millis] = numbers(fraction, '.')?;
    let is_time = (1..=12).contains(&month)
        && (1..=31).contains(&day)
        && hours < 24
        && minutes < 60
        && seconds < 60
        && millis < 1000;
    if !is_time || year > MOST_YEARS {
        return None;
    }
    let days = days_of(sign * year, month, day);
    let seconds = ((days * 24 + hours) * 60 + minutes) * 60 + seconds;
    i64::try_from(i128::from(seconds) * 1000 + i128::from(millis)).ok()
}

/// Years that a count of milliseconds in 64 bits cannot exceed.
const MOST_YEARS: i64 = 300_000_000;

/// Reads exactly `COUNT` numbers without signs.
fn numbers<const COUNT: usize>(text: &str, separator: char) -> Option<[i64; COUNT]> {
    let mut parts = text.split(separator);
    let mut found = [0; COUNT];
    for number in &mut found {
        let digits = parts.next()?;
        if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        *number = digits.parse().ok()?;
    }
    parts.next().is_none().then_some(found)
}

/// Converts days since 1970 to year, month and day, by the algorithm for the proleptic Gregorian calendar that counts
/// years from March.
fn civil(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day)
}

/// Converts year, month and day to days since 1970; the inverse of [`civil`].
fn days_of(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let shifted = if month > 2 { month - 3 } else { month + 9 };
    let day_of_year = (153 * shifted + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

pub(super) fn uuid(bits: u128) -> String {
    let text = format!("{bits:032x}");
    format!(
        "{}-{}-{}-{}-{}",
        &text[..8],
        &text[8..12],
        &text[12..16],
        &text[16..20],
        &text[20..]
    )
}

pub(super) fn parse_uuid(text: &str) -> Option<u128> {
    let digits = text.replace('-', "");
    let is_plain = digits.len() == 32 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    u128::from_str_radix(is_plain.then_some(&*digits)?, 16).ok()
}
