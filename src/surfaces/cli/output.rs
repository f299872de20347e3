//! Standard output for data, standard error for the rest.

use std::io::{self, Write};

use flowstone_engine::json::{compact, pretty};

use super::args::Color;
use super::report::{Report, Shown};

/// What the operating system ends a process with that writes to a closed pipe.
const BROKEN_PIPE: i32 = 141;

/// Decides about colour for the whole process; also `NO_COLOR` and `CLICOLOR_FORCE` are heard.
pub fn set_color(color: Color) {
    let choice = match color {
        Color::Auto => anstream::ColorChoice::Auto,
        Color::Always => anstream::ColorChoice::Always,
        Color::Never => anstream::ColorChoice::Never,
    };
    choice.write_global();
}

/// Prints data, with a line end after it unless it has one.
pub fn data(text: &str) {
    let end = if text.ends_with('\n') { "" } else { "\n" };
    checked(write!(anstream::stdout(), "{text}{end}"));
}

/// Prints one JSON object.
pub fn json(value: &serde_json::Value) {
    checked(writeln!(io::stdout(), "{}", pretty(value)));
}

/// Prints one JSON object on a line of its own.
pub fn json_line(value: &serde_json::Value) {
    checked(writeln!(io::stdout(), "{}", compact(value)));
}

/// Writes to the terminal as it is.
pub fn raw(text: &str) {
    let mut stdout = io::stdout();
    checked(write!(stdout, "{text}").and_then(|()| stdout.flush()));
}

/// Prints a line for the person who watches.
pub fn note(text: &str) {
    checked(writeln!(anstream::stderr(), "{text}"));
}

/// Prints a piece of a line for the person who watches.
pub fn note_part(text: &str) {
    let mut stderr = anstream::stderr();
    checked(write!(stderr, "{text}").and_then(|()| stderr.flush()));
}

/// Returns a text as standard error would show it, for those who draw there by themselves.
pub fn as_noted(text: &str) -> String {
    match anstream::AutoStream::choice(&io::stderr()) {
        anstream::ColorChoice::Never => anstream::adapter::strip_str(text).to_string(),
        _ => text.to_owned(),
    }
}

/// Shows what went wrong: drawn on standard error, or as the one JSON object on standard output.
pub fn failure(report: &Report, as_json: bool) {
    if as_json {
        json(&serde_json::json!({"ok": false, "error": report.to_json()}));
    } else {
        self::report(report);
    }
}

/// Draws what is wrong on standard error.
pub fn report(report: &Report) {
    checked(write!(anstream::stderr(), "{}", report.draw()));
}

/// Nobody reads what we print: ends quietly, as `head` expects. Nothing can be said about other errors.
fn checked(written: io::Result<()>) {
    if written.is_err_and(|error| error.kind() == io::ErrorKind::BrokenPipe) {
        std::process::exit(BROKEN_PIPE);
    }
}

/// Tells whether standard error shows colours.
pub fn notes_show_color() -> bool {
    anstream::AutoStream::choice(&io::stderr()) != anstream::ColorChoice::Never
}

/// Tells whether standard output shows colours, by all that was said about them.
pub fn shows_color() -> bool {
    anstream::AutoStream::choice(&io::stdout()) != anstream::ColorChoice::Never
}
