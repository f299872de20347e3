//! Writes data to standard output, and everything else to standard error.
//!
//! All output to the screen goes through this module. On a terminal, control characters and bidirectional overrides
//! appear as escapes, because most of the text comes from models, servers and flows. A pipe gets data exactly as it is.

use std::borrow::Cow;
use std::io::{self, IsTerminal as _, Write};

use flowstone_lang::visible::visible;

use flowstone_engine::json::{compact, pretty};

use super::args::Color;
use super::paint;
use super::report::{Report, Shown};

/// The code of a process for which the system has no memory.
const WITHOUT_MEMORY: &str = "E0647";
/// Exit status of a process that the operating system ends for writing to a closed pipe.
const BROKEN_PIPE: i32 = 141;

/// Decides about colour for the whole process. Respects `NO_COLOR` and `CLICOLOR_FORCE`.
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

/// Prints data that already has its line ends.
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

/// Tells whether a person reads standard output: on a terminal, or in a pager that gets colours.
fn is_for_a_person() -> bool {
    io::stdout().is_terminal() || shows_color()
}

/// Prints one JSON object.
pub fn json(value: &serde_json::Value) {
    checked(writeln!(io::stdout(), "{}", as_json(&pretty(value))));
}

/// Prints part of a JSON object that already has its line ends.
pub fn json_part(text: &str) {
    let mut stdout = io::stdout();
    checked(write!(stdout, "{}", as_json(text)).and_then(|()| stdout.flush()));
}

/// Prints one JSON object on a separate line.
pub fn json_line(value: &serde_json::Value) {
    checked(writeln!(io::stdout(), "{}", as_json(&compact(value))));
}

/// Returns JSON text for standard output; on a terminal, invisible characters become JSON escapes.
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

/// Writes Flowstone's own control sequences to a terminal. Text from others must pass through [`as_shown`] first.
pub fn screen(text: &str) {
    let mut stdout = io::stdout();
    checked(write!(stdout, "{text}").and_then(|()| stdout.flush()));
}

/// Returns a text the way standard output shows it, for code that draws itself.
pub fn as_shown(text: &str) -> String {
    paint::shown(text, shows_color())
}

/// Prints a line of progress for a person.
pub fn note(text: &str) {
    note_part(&format!("{text}\n"));
}

/// Reports that the system refused to give this many bytes. Allocates nothing.
pub fn without_memory(bytes: usize) {
    let _ = writeln!(
        io::stderr(),
        "error[{WITHOUT_MEMORY}]: the system has no memory left for this process: it refused {bytes} bytes\n  hint: raise the limit \
         (`ulimit -v`, or that of the container), or give runs less with --max-memory"
    );
}

/// Prints part of a line of progress for a person.
pub fn note_part(text: &str) {
    let mut stderr = io::stderr().lock();
    checked(write!(stderr, "{}", as_noted(text)).and_then(|()| stderr.flush()));
}

/// Reads a line from the terminal without echoing it.
pub fn read_hidden() -> Option<String> {
    console::Term::stderr().read_secure_line().ok()
}

/// Returns a text the way standard error shows it, for code that draws itself.
pub fn as_noted(text: &str) -> String {
    paint::shown(text, notes_show_color())
}

/// Prints a log event. Its own colours are kept; control sequences in the text that it quotes are escaped.
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

/// Styles of the parts of an event: time, level, target, names of fields.
const LOG_LOOKS: &[&str] = &["0m", "1m", "2m", "3m", "31m", "32m", "33m", "34m", "35m"];

/// Prints an error: drawn on standard error, or as the one JSON object on standard output.
pub fn failure(report: &Report, as_json: bool) {
    if as_json {
        json(&serde_json::json!({"ok": false, "error": report.to_json()}));
    } else {
        self::report(report);
    }
}

/// Prints errors in their order. As JSON they are one object, with the first as `error` and all of them as `errors`.
pub fn failures(reports: &[Report], as_json: bool) {
    match reports {
        [report] => failure(report, as_json),
        [first, ..] if as_json => {
            let all: Vec<_> = reports.iter().map(Shown::to_json).collect();
            json(&serde_json::json!({"ok": false, "error": first.to_json(), "errors": all}));
        }
        all => all.iter().for_each(report),
    }
}

/// Draws an error on standard error.
pub fn report(report: &Report) {
    note_part(&report.draw());
}

/// Exits quietly if the reader has closed the pipe, as `head` does. Other write errors cannot be reported anywhere.
fn checked(written: io::Result<()>) {
    if written.is_err_and(|error| error.kind() == io::ErrorKind::BrokenPipe) {
        std::process::exit(BROKEN_PIPE);
    }
}

/// Tells whether standard error shows colours.
pub fn notes_show_color() -> bool {
    anstream::AutoStream::choice(&io::stderr()) != anstream::ColorChoice::Never
}

/// Tells whether standard output shows colours, by options and environment.
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
