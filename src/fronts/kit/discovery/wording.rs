//! What the words of a use case say about what starts a flow, and what is left to do.

/// Words that make a use case one that an event starts.
const EVENTS: &[&str] = &[
    "as soon as",
    "each time",
    "every time",
    "incoming",
    "is opened",
    "is received",
    "on new ",
    "trigger",
    "webhook",
    "whenever",
];
/// Beginnings of a clause about an event. What is to be done comes behind its comma.
const CLAUSES: &[&str] = &[
    "as soon as ",
    "each time ",
    "every time ",
    "on new ",
    "once ",
    "when ",
    "whenever ",
];
/// Words that are a schedule by themselves.
const SCHEDULES: &[&str] = &[
    "cron", "daily", "hourly", "monthly", "nightly", "o'clock", "weekly", "yearly",
];
/// What can be counted in `every 15 minutes`, `each morning` and `once a day`.
const UNITS: &[&str] = &[
    "afternoon",
    "day",
    "evening",
    "friday",
    "hour",
    "midnight",
    "minute",
    "monday",
    "month",
    "morning",
    "night",
    "noon",
    "quarter",
    "saturday",
    "second",
    "sunday",
    "thursday",
    "tuesday",
    "wednesday",
    "week",
    "weekday",
    "weekend",
    "year",
];
const NUMBERS: &[&str] = &[
    "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven",
    "twelve", "noon", "midnight",
];

/// Tells whether a use case is about an event that starts a flow.
pub fn reads_like_an_event(use_case: &str) -> bool {
    let text = use_case.trim().to_lowercase();
    text.starts_with("when ") || EVENTS.iter().any(|words| text.contains(words))
}

/// Tells whether a use case names a time at which a flow starts again and again.
pub fn reads_like_a_time(use_case: &str) -> bool {
    without_times(use_case).1
}

/// Returns the part of a use case that a step has to do, without the event or the time that starts the flow.
pub fn left_to_do(use_case: &str) -> String {
    let text = use_case.trim();
    let lower = text.to_lowercase();
    let begins = CLAUSES.iter().any(|clause| lower.starts_with(clause));
    let rest = match begins && reads_like_an_event(text) {
        true => text.split_once([',', ':']).map_or("", |(_, rest)| rest),
        false => text,
    };
    without_times(rest).0
}

/// Returns a text without the times in it, and whether it has one that repeats.
fn without_times(text: &str) -> (String, bool) {
    let words: Vec<&str> = text.split_whitespace().collect();
    let plain: Vec<String> = words
        .iter()
        .map(|word| {
            let is_edge = |char: char| !char.is_alphanumeric();
            word.to_lowercase().trim_matches(is_edge).to_owned()
        })
        .collect();
    let mut kept = Vec::new();
    let (mut repeats, mut at) = (false, 0);
    while let Some(word) = words.get(at) {
        let rest = &plain[at..];
        let (length, is_schedule) = time_at(rest);
        repeats |= is_schedule;
        if length == 0 {
            kept.push(*word);
        }
        at += length.max(1);
    }
    // A time of the day is part of a schedule, and nothing by itself.
    (kept.join(" "), repeats)
}

/// Returns how many words a time at the beginning has, and whether it repeats.
fn time_at(words: &[String]) -> (usize, bool) {
    let word = |idx: usize| words.get(idx).map(String::as_str).unwrap_or_default();
    let is_unit = |text: &str| UNITS.contains(&text.strip_suffix('s').unwrap_or(text));
    match word(0) {
        first if SCHEDULES.contains(&first) => (1, true),
        "each" | "every" if is_unit(word(1)) => (2, true),
        "each" | "every" if is_unit(word(2)) && is_counted(word(1)) => (3, true),
        "once" | "twice" if matches!(word(1), "a" | "per") && is_unit(word(2)) => (3, true),
        "on" if word(1).ends_with("days") && is_unit(word(1)) => (2, true),
        "at" if is_clock(word(1)) => (2, true),
        _ => (0, false),
    }
}

/// Tells whether a word stands between `every` and a unit.
fn is_counted(word: &str) -> bool {
    let digits = word.trim_end_matches(|char: char| char.is_ascii_lowercase());
    let is_number = !digits.is_empty() && digits.bytes().all(|it| it.is_ascii_digit());
    is_number
        || matches!(word, "few" | "other" | "single" | "work" | "working")
        || NUMBERS.contains(&word)
}

/// Tells whether a word is a time of the day: `9`, `9am`, `17:30`, `noon`.
fn is_clock(word: &str) -> bool {
    let digits = word.trim_end_matches("am").trim_end_matches("pm");
    let mut parts = digits.split(':');
    let is_hour = parts
        .next()
        .is_some_and(|hour| matches!(hour.parse::<u8>(), Ok(0..=24)));
    let is_rest = parts.all(|part| part.len() == 2 && part.bytes().all(|it| it.is_ascii_digit()));
    (is_hour && is_rest) || NUMBERS.contains(&word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_told_by_their_words() {
        for event in [
            "When a pull request is opened",
            "reply to incoming mail",
            "a webhook of Stripe",
        ] {
            assert!(reads_like_an_event(event), "{event}");
        }
        for plain in [
            "send a message to Slack",
            "list what happened when",
            "store a row",
        ] {
            assert!(!reads_like_an_event(plain), "{plain}");
        }
    }

    #[test]
    fn times_are_told_by_their_words() {
        for time in [
            "every morning at 9",
            "Every 15 minutes",
            "each 3rd day",
            "twice a week",
            "send the report daily",
            "on Mondays",
            "at 17:30, look for news",
            "every other Friday",
        ] {
            assert!(reads_like_a_time(time), "{time}");
        }
        for plain in [
            "what time is it",
            "read every row",
            "look at 3x pages",
            "on Monday's list",
        ] {
            assert!(!reads_like_a_time(plain), "{plain}");
        }
    }

    #[test]
    fn what_starts_a_flow_is_not_left_to_do() {
        for (use_case, left) in [
            ("when a payment fails, send an email", "send an email"),
            ("When an issue is opened", ""),
            ("every Monday at 9, send a report", "send a report"),
            ("send a report every 2 hours", "send a report"),
            ("reply to incoming mail", "reply to incoming mail"),
            ("once more", "once more"),
        ] {
            assert_eq!(left_to_do(use_case).trim(), left, "{use_case}");
        }
    }
}
