//! Tables for people: with lines on a terminal, bare columns in a pipe.

use std::io::{self, IsTerminal};

use comfy_table::presets::{NOTHING, UTF8_HORIZONTAL_ONLY};
use comfy_table::{ContentArrangement, Table};

/// The columns of a terminal that does not say how many it has.
const WIDTH: u16 = 100;

/// Lays rows out below a heading.
pub fn table(heading: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let mut table = Table::new();
    if io::stdout().is_terminal() {
        table
            .load_preset(UTF8_HORIZONTAL_ONLY)
            .set_content_arrangement(ContentArrangement::Dynamic);
        // A terminal that nobody looks at may say that it has no columns at all.
        if table.width().is_none_or(|columns| columns == 0) {
            table.set_width(WIDTH);
        }
    } else {
        table.load_preset(NOTHING);
    }
    table.set_header(heading);
    table.add_rows(rows);
    table
        .lines()
        .map(|line| format!("{}\n", line.trim_end()))
        .collect()
}

/// Says how long ago a moment was.
pub fn ago(now_ms: i64, then_ms: i64) -> String {
    match (now_ms - then_ms).max(0) / 1_000 {
        seconds @ ..60 => format!("{seconds} s ago"),
        seconds @ 60..3_600 => format!("{} min ago", seconds / 60),
        seconds @ 3_600..86_400 => format!("{} h ago", seconds / 3_600),
        seconds => format!("{} d ago", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_rounded_down() {
        let cases = [
            (0, "0 s ago"),
            (61, "1 min ago"),
            (7_300, "2 h ago"),
            (200_000, "2 d ago"),
        ];
        for (seconds, words) in cases {
            assert_eq!(ago(seconds * 1_000, 0), words);
        }
    }
}
