//! Durations on the command line: `500ms`, `10s`, `5m`, `2h`, `1d`, or plain seconds.

use std::time::Duration;

/// Parses a duration.
///
/// # Errors
/// A message with the expected form.
pub fn parse(text: &str) -> Result<Duration, String> {
    flowstone_engine::duration::parse(text)
        .ok_or_else(|| format!("`{text}` is not a duration: write 500ms, 10s, 5m, 2h or 1d"))
}
