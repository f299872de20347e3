//! Durations as people type them: `500ms`, `10s`, `5m`, `2h`, `1d`, or plain seconds.

use std::time::Duration;

/// Reads a duration.
///
/// # Errors
/// Words that say what a duration looks like.
pub fn parse(text: &str) -> Result<Duration, String> {
    flowstone_engine::duration::parse(text)
        .ok_or_else(|| format!("`{text}` is not a duration: write 500ms, 10s, 5m, 2h or 1d"))
}
