//! Durations as people type them: `500ms`, `10s`, `5m`, `2h`, `1d`, or plain seconds.

use std::time::Duration;

/// Reads a duration.
///
/// # Errors
/// Words that say what a duration looks like.
pub fn parse(text: &str) -> Result<Duration, String> {
    let wrong = || format!("`{text}` is not a duration: write 500ms, 10s, 5m, 2h or 1d");
    let digits = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let number: f64 = number.parse().map_err(|_| wrong())?;
    let seconds = match unit {
        "ms" => number / 1_000.0,
        "" | "s" => number,
        "m" => number * 60.0,
        "h" => number * 3_600.0,
        "d" => number * 86_400.0,
        _ => return Err(wrong()),
    };
    Duration::try_from_secs_f64(seconds).map_err(|_| wrong())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_known() {
        let cases = [
            ("500ms", 500),
            ("10s", 10_000),
            ("1.5s", 1_500),
            ("2m", 120_000),
            ("3", 3_000),
            ("1h", 3_600_000),
            ("1d", 86_400_000),
        ];
        for (text, millis) in cases {
            assert_eq!(parse(text), Ok(Duration::from_millis(millis)), "{text}");
        }
    }

    #[test]
    fn anything_else_is_refused() {
        for text in ["", "s", "-1s", "1 s", "ten", "1w", "1e400s"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
