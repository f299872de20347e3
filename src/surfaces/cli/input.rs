//! Values that are given on the command line: JSON or EDN, in place, in a file, or on standard input.

use std::fs;
use std::io::Read;
use std::path::Path;

use flowstone_engine::json::read as read_json;
use flowstone_lang::reader::{NoContext, ReadOptions, Reader};
use flowstone_lang::value::{Sources, Value};

use super::report::{Report, unreadable};

/// What a text may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Syntax {
    Json,
    Edn,
    Either,
}

/// Reads an argument such as that of `--input`. Object keys of JSON become keywords.
///
/// # Errors
/// When a file is missing, or the text is neither JSON nor EDN; says where.
pub fn read(argument: &str, option: &str) -> Result<Value, Report> {
    if argument == "-" {
        let mut text = String::new();
        std::io::stdin()
            .read_to_string(&mut text)
            .map_err(|error| unreadable("standard input", &error))?;
        return parse("<stdin>", &text, Syntax::Either);
    }
    if let Some(file) = argument.strip_prefix('@') {
        let text = fs::read_to_string(file).map_err(|error| unreadable(file, &error))?;
        let syntax = match file.rsplit('.').next() {
            Some("json") => Syntax::Json,
            Some("edn" | "clj") => Syntax::Edn,
            _ => Syntax::Either,
        };
        return parse(file, &text, syntax);
    }
    parse(option, argument, Syntax::Either)
}

/// Reads the text of a file, or of standard input where that is `-`.
///
/// # Errors
/// When it cannot be read, or is not UTF-8.
pub fn text(file: &Path) -> Result<String, Report> {
    if file == Path::new("-") {
        let mut text = String::new();
        let read = std::io::stdin().read_to_string(&mut text);
        read.map_err(|error| unreadable("standard input", &error))?;
        return Ok(text);
    }
    fs::read_to_string(file).map_err(|error| unreadable(&file.display().to_string(), &error))
}

fn parse(name: &str, text: &str, syntax: Syntax) -> Result<Value, Report> {
    let json = match syntax {
        Syntax::Edn => None,
        Syntax::Json | Syntax::Either => Some(read_json(text)),
    };
    match json {
        Some(Ok(value)) => Ok(value),
        Some(Err(error)) if syntax == Syntax::Json || looks_like_json(text) => {
            Err(json_report(name, text, &error))
        }
        Some(Err(_)) | None => edn(name, text),
    }
}

/// Tells whether a map or vector was meant as JSON: then that parser's error helps more.
fn looks_like_json(text: &str) -> bool {
    let inside = text.trim_start().strip_prefix(['{', '[']);
    inside.is_some_and(|inside| inside.trim_start().starts_with('"') && inside.contains("\":"))
}

fn json_report(name: &str, text: &str, error: &serde_json::Error) -> Report {
    let words = error.to_string();
    let words = words.split(" at line ").next().unwrap_or_default();
    Report::error("E0906", format!("this is not JSON: {words}"))
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
        Ok((None, _)) => Err(Report::error("E0907", format!("{name} is empty"))
            .hint("give a map, such as {:path \".\"}; {} for no input")),
        Ok((Some(_), Some(_))) => Err(Report::error(
            "E0907",
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
    fn json_and_edn_are_told_apart() {
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
