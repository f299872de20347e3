//! Standard output for data, standard error for the rest.
//!
//! The one way to the screen. A person sees each control character and bidirectional override as an escape, because most
//! of what is shown was written by models, servers and flows. A pipe gets data exactly as it is.

use std::borrow::Cow;
use std::io::{self, IsTerminal as _, Write};

use flowstone_lang::visible::visible;

use flowstone_engine::json::{compact, pretty};

use super::args::Color;
use super::paint;
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
    whole(&format!("{text}{end}"));
}

/// Prints data that has all its line ends.
pub fn whole(text: &str) {
    if is_for_a_person() {
        screen(&paint::shown(text, shows_color()));
    } else {
        let mut stdout = io::stdout();
        let text = paint::exact(text);
        checked(
            stdout
                .write_all(text.as_bytes())
                .and_then(|()| stdout.flush()),
        );
    }
}

/// Tells whether a person reads standard output: on a terminal, or in a viewer that gets colours.
fn is_for_a_person() -> bool {
    io::stdout().is_terminal() || shows_color()
}

/// Prints one JSON object.
pub fn json(value: &serde_json::Value) {
    checked(writeln!(io::stdout(), "{}", as_json(&pretty(value))));
}

/// Prints a piece of a JSON object that has all its line ends.
pub fn json_part(text: &str) {
    let mut stdout = io::stdout();
    checked(write!(stdout, "{}", as_json(text)).and_then(|()| stdout.flush()));
}

/// Prints one JSON object on a line of its own.
pub fn json_line(value: &serde_json::Value) {
    checked(writeln!(io::stdout(), "{}", as_json(&compact(value))));
}

/// Returns JSON text as it is, or with everything that a person would not see written as JSON's own escapes.
fn as_json(text: &str) -> Cow<'_, str> {
    match is_for_a_person() {
        true => Cow::Owned(visible_json(text)),
        false => Cow::Borrowed(text),
    }
}

fn visible_json(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let (mut letter, mut units) = ([0; 4], [0; 2]);
    for char in text.chars() {
        match visible(char.encode_utf8(&mut letter)) {
            Cow::Borrowed(same) => out.push_str(same),
            Cow::Owned(_) => {
                let units = char.encode_utf16(&mut units).iter();
                out.extend(units.map(|unit| format!("\\u{unit:04x}")));
            }
        }
    }
    out
}

/// Writes sequences of our own to a terminal. What others wrote gets into `text` through [`as_shown`] alone.
pub fn screen(text: &str) {
    let mut stdout = io::stdout();
    checked(write!(stdout, "{text}").and_then(|()| stdout.flush()));
}

/// Returns a text as standard output would show it, for those who draw there by themselves.
pub fn as_shown(text: &str) -> String {
    paint::shown(text, shows_color())
}

/// Prints a line for the person who watches.
pub fn note(text: &str) {
    note_part(&format!("{text}\n"));
}

/// Prints a piece of a line for the person who watches.
pub fn note_part(text: &str) {
    let mut stderr = io::stderr().lock();
    checked(write!(stderr, "{}", as_noted(text)).and_then(|()| stderr.flush()));
}

/// Reads a line from the terminal without showing what is typed.
pub fn read_hidden() -> Option<String> {
    console::Term::stderr().read_secure_line().ok()
}

/// Returns a text as standard error would show it, for those who draw there by themselves.
pub fn as_noted(text: &str) -> String {
    paint::shown(text, notes_show_color())
}

/// Prints an event of the log. It has colours of its own, of this form alone; it escapes others in what it quotes.
pub fn log(event: &str) {
    let mut out = String::with_capacity(event.len());
    for (idx, piece) in event.split("\x1b[").enumerate() {
        let look = piece.find('m').map(|end| &piece[..=end]);
        match look.filter(|look| idx > 0 && LOG_LOOKS.contains(look)) {
            Some(look) => {
                out.push_str("\x1b[");
                out.push_str(look);
                out.push_str(&visible(&piece[look.len()..]));
            }
            None if idx > 0 => out.push_str(&visible(&format!("\x1b[{piece}"))),
            None => out.push_str(&visible(piece)),
        }
    }
    let mut stderr = io::stderr().lock();
    checked(write!(stderr, "{out}").and_then(|()| stderr.flush()));
}

/// How the parts of an event look: time, level, target, names of fields.
const LOG_LOOKS: &[&str] = &["0m", "1m", "2m", "3m", "31m", "32m", "33m", "34m", "35m"];

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
    note_part(&report.draw());
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

#[cfg(test)]
mod tests {
    use super::visible_json;

    #[test]
    fn json_on_a_screen_is_the_same_json() {
        let value = serde_json::json!({"a\u{202e}": ["\u{1b}[8m", "\u{9b}8m\u{7f}", "ü👩\u{200d}💻", "\u{e0041}"]});
        let shown = visible_json(&format!("{value:#}"));
        let is_plain = |char: char| char == '\n' || " ".contains(char) || !char.is_control();
        assert!(shown.chars().all(is_plain), "{shown}");
        assert!(!shown.contains(['\u{202e}', '\u{e0041}']), "{shown}");
        let again: serde_json::Value = serde_json::from_str(&shown).expect("JSON");
        assert_eq!(again, value);
    }
}
