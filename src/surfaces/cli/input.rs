//! Values from the command line: JSON or EDN, inline, in a file, or on standard input.

use std::io::{self, Read};
use std::path::Path;

use flowstone_engine::Limits;
use flowstone_engine::json::{items, read as read_json, read_strictly};
use flowstone_engine::rooted::open_named;
use flowstone_lang::reader::{NoContext, ReadOptions, Reader};
use flowstone_lang::value::{Sources, Value};

use super::report::{Report, unreadable};

/// The possible forms of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Syntax {
    Json,
    Edn,
    Either,
}

/// Maximum size of an exported run or a table.
const TEXT_MAX: u64 = 2_000_000_000;

/// Reads a value such as that of `--input`. Object keys of JSON become keywords.
///
/// # Errors
/// When a file is missing or too large, or the text is neither JSON nor EDN. The error has the position.
pub fn read(argument: &str, option: &str) -> Result<Value, Report> {
    read_within(argument, option, Limits::default().input)
}

/// Reads a value like [`read`], with a size limit.
///
/// # Errors
/// The same as for [`read`].
pub fn read_within(argument: &str, option: &str, most: u64) -> Result<Value, Report> {
    if argument == "-" {
        let text = text_within(Path::new("-"), most)?;
        return parse("<stdin>", &text, Syntax::Either);
    }
    if let Some(file) = argument.strip_prefix('@') {
        let text = text_within(Path::new(file), most)?;
        let syntax = match file.rsplit('.').next() {
            Some("json") => Syntax::Json,
            Some("edn" | "clj") => Syntax::Edn,
            _ => Syntax::Either,
        };
        return parse(file, &text, syntax);
    }
    if argument.len() as u64 > most {
        return Err(too_large(option, most));
    }
    parse(option, argument, Syntax::Either)
}

/// Reads the value in a file, or on standard input for `-`.
///
/// # Errors
/// The same as for [`read`].
pub fn read_file(file: &Path) -> Result<Value, Report> {
    let name = file.display().to_string();
    match name.as_str() {
        "-" => read("-", "standard input"),
        name => read(&format!("@{name}"), name),
    }
}

/// Maximum size of a file of inputs.
const LIST_MAX: u64 = 16 << 20;
/// The code of a file that is not a list of inputs.
const NOT_A_LIST: &str = "E0912";

/// Reads the inputs in a file, or on standard input for `-`: a list in JSON or EDN, or one value a line.
///
/// # Errors
/// When the file is missing or too large, or a value is neither JSON nor EDN. The error has the position.
pub fn read_list(file: &Path) -> Result<Vec<Value>, Report> {
    let text = text_within(file, LIST_MAX)?;
    let name = match file == Path::new("-") {
        true => "<stdin>".to_owned(),
        false => file.display().to_string(),
    };
    if text.trim_start().starts_with('[') {
        let list = parse(&name, &text, Syntax::Either)?;
        return items(&list)
            .ok_or_else(|| Report::error(NOT_A_LIST, format!("{name} is not a list of inputs")));
    }
    let lines = text.lines().enumerate();
    let lines = lines.filter(|(_, line)| !line.trim().is_empty());
    let inputs: Vec<Value> = lines
        .map(|(idx, line)| parse(&format!("{name}:{}", idx + 1), line, Syntax::Either))
        .collect::<Result<_, _>>()?;
    match inputs.is_empty() {
        true => Err(Report::error(NOT_A_LIST, format!("{name} has no inputs"))
            .hint("as in [{\"path\": \".\"}], or one input a line")),
        false => Ok(inputs),
    }
}

fn too_large(name: &str, most: u64) -> Report {
    let message = format!("{name} has more than {most} bytes");
    Report::error("E0997", message)
        .hint("give a file with `--upload`, or raise `:limits {:input ...}` in flowstone.edn")
}

/// Reads the text of a file, or of standard input for `-`.
///
/// # Errors
/// When it cannot be read, is too large, or is not UTF-8.
pub fn text(file: &Path) -> Result<String, Report> {
    text_within(file, TEXT_MAX)
}

fn text_within(file: &Path, most: u64) -> Result<String, Report> {
    let is_stdin = file == Path::new("-");
    let name = match is_stdin {
        true => "standard input".to_owned(),
        false => file.display().to_string(),
    };
    let read = match is_stdin {
        true => read_text(std::io::stdin().lock(), most),
        false => open_named(file).and_then(|file| read_text(file, most)),
    };
    let text = read.map_err(|error| unreadable(&name, &error))?;
    text.ok_or_else(|| too_large(&name, most))
}

/// Reads a text to its end. Returns `None` if it is too large.
fn read_text(source: impl Read, most: u64) -> io::Result<Option<String>> {
    let mut text = String::new();
    source
        .take(most.saturating_add(1))
        .read_to_string(&mut text)?;
    Ok((text.len() as u64 <= most).then_some(text))
}

fn parse(name: &str, text: &str, syntax: Syntax) -> Result<Value, Report> {
    let json = match syntax {
        Syntax::Edn => None,
        Syntax::Json | Syntax::Either => Some(read_json(text).and_then(|value| {
            match read_strictly(text) {
                // A duplicate key. The parser's own numbers are limited, so only this error counts.
                Err(error) if error.is_data() => Err(error),
                Ok(_) | Err(_) => Ok(value),
            }
        })),
    };
    match json {
        Some(Ok(value)) => Ok(value),
        Some(Err(error)) if syntax == Syntax::Json || error.is_data() || looks_like_json(text) => {
            Err(json_report(name, text, &error))
        }
        Some(Err(_)) | None => edn(name, text),
    }
}

/// The code of a text that is not JSON.
pub(crate) const NOT_JSON: &str = "E0906";
/// The code of a text that is not exactly one value.
pub(crate) const NOT_ONE: &str = "E0907";

/// Tells whether a map or vector was probably intended as JSON, so that the JSON parser's error is more helpful.
fn looks_like_json(text: &str) -> bool {
    let inside = text.trim_start().strip_prefix(['{', '[']);
    inside.is_some_and(|inside| inside.trim_start().starts_with('"') && inside.contains("\":"))
}

fn json_report(name: &str, text: &str, error: &serde_json::Error) -> Report {
    let words = error.to_string();
    let words = words.split(" at line ").next().unwrap_or_default();
    Report::error(NOT_JSON, format!("this is not JSON: {words}"))
        .in_text(name, text, error.line(), error.column())
        .hint("JSON looks like {\"path\": \".\"}, EDN like {:path \".\"}")
}

fn edn(name: &str, text: &str) -> Result<Value, Report> {
    let mut sources = Sources::default();
    let source = sources.add(name, text);
    let mut reader = Reader::new(text, ReadOptions::data(source));
    let mut cx = NoContext::default();
    let first = reader.next(&mut cx).and_then(|first| {
        let second = reader.next(&mut cx)?;
        Ok((first, second))
    });
    match first {
        Ok((Some(value), None)) => Ok(value),
        Ok((None, _)) => Err(Report::error(NOT_ONE, format!("{name} is empty"))
            .hint("give a map, such as {:path \".\"}; {} for no input")),
        Ok((Some(_), Some(_))) => Err(Report::error(
            NOT_ONE,
            format!("{name} has more than one value"),
        )
        .hint("put braces around them: {:path \".\"}")),
        Err(error) => Err(Report::of_read_error(&sources, &error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str) {
        let shown = match read(text, "--input") {
            Ok(value) => flowstone_engine::codec::encode(&value).expect("data"),
            Err(report) => {
                let at = report.place.map_or_else(String::new, |place| {
                    format!(" {}:{}:{}", place.file, place.line, place.column)
                });
                format!("{}{at}", report.code)
            }
        };
        assert_eq!(shown, expected, "{text}");
    }

    #[test]
    fn a_key_that_is_there_twice_is_refused() {
        for text in [
            r#"{"a": 1, "a": 2}"#,
            r#"{"a": 1, "\u0061": 2}"#,
            r#"[{"b": {"a": 1, "a": 1}}]"#,
        ] {
            let refused = read(text, "--input").expect_err("refused");
            assert!(
                refused.message.contains("duplicate key \"a\""),
                "{refused:?}"
            );
        }
        check(r#"{"a": {"a": 1}, "b": {"a": 1}}"#, "{:a {:a 1} :b {:a 1}}");
    }

    #[test]
    fn json_and_edn_are_distinguished() {
        check(r#"{"path": ".", "n": 1}"#, r#"{:path "." :n 1}"#);
        check(r#"{:path "." :n 1}"#, r#"{:path "." :n 1}"#);
        check(r#"{"path" "."}"#, r#"{"path" "."}"#);
        check("[1, 2]", "[1 2]");
        check(":approve", ":approve");
        check("null", "nil");
    }

    #[test]
    fn what_is_neither_is_located() {
        check(r#"{"path": }"#, "E0906 --input:1:10");
        check("{:a", "E0101 --input:1:1");
        check("", "E0907");
        check("1 2", "E0907");
        check("@no-such-file.edn", "E0905");
    }
}
