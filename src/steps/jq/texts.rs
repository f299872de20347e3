//! Functions of texts: regular expressions and the formats `@json`, `@base64` and others.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use fancy_regex::{Captures, Regex, RegexBuilder};
use serde_json::{Map, Value as Json, json};

use super::evaluate::{Outputs, Run, Stop, kind, plain};
use super::parse::Expression;

/// The functions, each with the number of its arguments.
pub(super) const KNOWN: &[(&str, usize)] = &[
    ("@base64", 0),
    ("@base64d", 0),
    ("@csv", 0),
    ("@html", 0),
    ("@json", 0),
    ("@sh", 0),
    ("@text", 0),
    ("@tsv", 0),
    ("@uri", 0),
    ("capture", 1),
    ("capture", 2),
    ("explode", 0),
    ("gsub", 2),
    ("gsub", 3),
    ("implode", 0),
    ("ltrim", 0),
    ("match", 1),
    ("match", 2),
    ("rtrim", 0),
    ("scan", 1),
    ("scan", 2),
    ("split", 2),
    ("splits", 1),
    ("splits", 2),
    ("sub", 2),
    ("sub", 3),
    ("test", 1),
    ("test", 2),
    ("utf8bytelength", 0),
];
/// Maximum number of steps back of one search.
const BACKTRACKS: usize = 100_000;
/// What a match of an expression costs that may go back: a search of it takes longer than a linear one.
const BACK: usize = 400;
/// What makes an expression go back.
const LOOKS_BACK: &[&str] = &[
    "(?=", "(?!", "(?<=", "(?<!", "(?>", "(?(", "*+", "++", "?+", "\\k", "\\K", "\\G",
];
/// Maximum size of a compiled expression.
const PATTERN_BYTES: usize = 1 << 20;

/// Calls a function that is known.
pub(super) fn call(run: &mut Run, name: &str, args: &[Expression], input: &Json) -> Outputs {
    let [pattern, rest @ ..] = args else {
        return of_value(run, name, input).map(|value| vec![value]);
    };
    let text = input
        .as_str()
        .ok_or_else(|| Stop::error(format!("`{name}` does not take {}", kind(input))))?;
    let (replacement, flags) = match (name, rest) {
        ("sub" | "gsub", [replacement, flags @ ..]) => (Some(replacement), flags.first()),
        (_, flags) => (None, flags.first()),
    };
    let flags = match flags {
        Some(flags) => run.outputs(flags, input)?.into_iter().next(),
        None => None,
    };
    run.each(pattern, input, |run, pattern| {
        let (pattern, flags) = match &pattern {
            // `["a+", "g"]`
            Json::Array(both) => (both.first().cloned(), both.get(1).cloned()),
            _ => (Some(pattern), flags.clone()),
        };
        let pattern = pattern.unwrap_or(Json::Null);
        let search = Search::read(&pattern, flags.as_ref(), name)?;
        run.spend(text.len() / 4 + 16)?;
        match replacement {
            Some(by) => search.replaced(run, text, by),
            None => search.outputs(run, name, text),
        }
    })
}

/// A regular expression with its flags.
struct Search {
    regex: Regex,
    is_global: bool,
    /// Whether empty matches are left out.
    is_filled: bool,
    /// What each match costs.
    cost: usize,
}

impl Search {
    fn read(pattern: &Json, flags: Option<&Json>, name: &str) -> Result<Search, Stop> {
        let wrong = |value: &Json| Stop::error(format!("`{name}` does not take {}", kind(value)));
        let text = pattern.as_str().ok_or_else(|| wrong(pattern))?;
        let flags = match flags {
            None | Some(Json::Null) => "",
            Some(flags) => flags.as_str().ok_or_else(|| wrong(flags))?,
        };
        let mut inline = String::new();
        let mut search = (matches!(name, "gsub" | "scan" | "split" | "splits"), false);
        for flag in flags.chars() {
            match flag {
                'g' => search.0 = true,
                'n' => search.1 = true,
                'i' | 'x' | 's' => inline.push(flag),
                'p' => inline.push('s'),
                // The longest match is not looked for: the first one is, as everywhere here.
                other => {
                    return Err(Stop::error(format!(
                        "`{other}` is not a flag of a regular expression here"
                    )));
                }
            }
        }
        let whole = match inline.is_empty() {
            true => text.to_owned(),
            false => format!("(?{inline}){text}"),
        };
        let regex = RegexBuilder::new(&whole)
            .backtrack_limit(BACKTRACKS)
            .delegate_size_limit(PATTERN_BYTES)
            .build();
        let regex = regex.map_err(|error| {
            Stop::error(format!("`{text}` is not a regular expression: {error}"))
        })?;
        let refers_back =
            (b'1'..=b'9').any(|digit| text.contains(&format!("\\{}", char::from(digit))));
        let goes_back = refers_back || LOOKS_BACK.iter().any(|part| text.contains(part));
        Ok(Search {
            regex,
            cost: if goes_back { BACK } else { 4 },
            is_global: search.0,
            is_filled: search.1,
        })
    }

    fn found<'t>(&self, run: &mut Run, text: &'t str) -> Result<Vec<Captures<'t, str>>, Stop> {
        let mut all = Vec::new();
        for found in self.regex.captures_iter(text) {
            // A search that goes back too often needs too much.
            let found = found.map_err(|_| Stop::Budget)?;
            run.spend(found.len() + self.cost)?;
            let is_empty = found.get(0).is_none_or(|it| it.as_str().is_empty());
            if !(self.is_filled && is_empty) {
                all.push(found);
            }
            if !self.is_global {
                break;
            }
        }
        Ok(all)
    }

    fn outputs(&self, run: &mut Run, name: &str, text: &str) -> Outputs {
        let found = self.found(run, text)?;
        Ok(match name {
            "test" => vec![Json::Bool(!found.is_empty())],
            "match" => {
                run.spend(found.len().saturating_mul(text.len()) / 16)?;
                found.iter().map(|it| self.described(text, it)).collect()
            }
            "capture" => found.iter().map(|it| self.named(it)).collect(),
            "scan" => found.iter().map(scanned).collect(),
            _ => {
                let mut parts = Vec::new();
                let mut at = 0;
                for whole in found.iter().filter_map(|it| it.get(0)) {
                    parts.push(json!(text[at..whole.start()]));
                    at = whole.end();
                }
                parts.push(json!(text[at..]));
                run.spend(text.len() / 16)?;
                match name {
                    "split" => vec![Json::Array(parts)],
                    _ => parts,
                }
            }
        })
    }

    fn described(&self, text: &str, found: &Captures<'_, str>) -> Json {
        let place = |at: usize| text[..at].chars().count();
        let names: Vec<Option<&str>> = self.regex.capture_names().collect();
        let part = |idx: usize| match found.get(idx) {
            Some(it) => json!({
                "offset": place(it.start()),
                "length": it.as_str().chars().count(),
                "string": it.as_str(),
            }),
            None => json!({"offset": -1, "length": 0, "string": null}),
        };
        let captures = (1..found.len()).map(|idx| {
            let mut capture = part(idx);
            capture["name"] = json!(names.get(idx).copied().flatten());
            capture
        });
        let captures: Vec<Json> = captures.collect();
        let mut whole = part(0);
        whole["captures"] = Json::Array(captures);
        whole
    }

    fn named(&self, found: &Captures<'_, str>) -> Json {
        let mut members = Map::new();
        for (idx, name) in self.regex.capture_names().enumerate() {
            if let Some(name) = name {
                let text = found.get(idx).map(|it| it.as_str());
                members.insert(name.to_owned(), json!(text));
            }
        }
        Json::Object(members)
    }

    fn replaced(&self, run: &mut Run, text: &str, by: &Expression) -> Outputs {
        let mut out = String::new();
        let mut at = 0;
        for found in self.found(run, text)? {
            let Some(whole) = found.get(0) else { continue };
            let new = run.outputs(by, &self.named(&found))?.into_iter().next();
            let Some(Json::String(new)) = new else {
                return Err(Stop::error("a replacement must be a string"));
            };
            run.spend((whole.start() - at + new.len()) / 16)?;
            out.push_str(&text[at..whole.start()]);
            out.push_str(&new);
            at = whole.end();
        }
        out.push_str(&text[at..]);
        Ok(vec![Json::String(out)])
    }
}

fn scanned(found: &Captures<'_, str>) -> Json {
    let text = |idx: usize| json!(found.get(idx).map(|it| it.as_str()));
    match found.len() {
        0 | 1 => text(0),
        count => (1..count).map(text).collect(),
    }
}

fn of_value(run: &mut Run, name: &str, input: &Json) -> Result<Json, Stop> {
    let wrong = || Stop::error(format!("`{name}` does not take {}", kind(input)));
    let value = run.copy(input)?;
    let text = |value: &Json| value.as_str().map(str::to_owned).ok_or_else(wrong);
    Ok(match name {
        "@text" => json!(plain(&value)),
        "@json" => json!(value.to_string()),
        "@csv" => json!(row(&value, ",", csv_cell)?),
        "@tsv" => json!(row(&value, "\t", tsv_cell)?),
        "@html" => json!(html(&plain(&value))),
        "@uri" => json!(uri(&plain(&value))),
        "@sh" => json!(shell(&value)?),
        "@base64" => json!(STANDARD.encode(plain(&value))),
        "@base64d" => {
            let encoded = plain(&value);
            let bytes = STANDARD_NO_PAD.decode(encoded.trim_end_matches('='));
            let bytes = bytes.map_err(|_| Stop::error("the text is not base64"))?;
            json!(String::from_utf8_lossy(&bytes))
        }
        "explode" => {
            let chars: Vec<u32> = text(&value)?.chars().map(u32::from).collect();
            run.spend(chars.len())?;
            json!(chars)
        }
        "implode" => {
            let codes = value.as_array().ok_or_else(wrong)?;
            let char = |code: &Json| {
                code.as_u64()
                    .and_then(|it| char::from_u32(u32::try_from(it).ok()?))
            };
            let text: Option<String> = codes.iter().map(char).collect();
            json!(text.ok_or_else(|| Stop::error("an item is not the code of a character"))?)
        }
        "ltrim" => json!(text(&value)?.trim_start()),
        "rtrim" => json!(text(&value)?.trim_end()),
        _ => json!(text(&value)?.len()),
    })
}

fn row(value: &Json, between: &str, cell: fn(&Json) -> Option<String>) -> Result<String, Stop> {
    let cells = value
        .as_array()
        .ok_or_else(|| Stop::error(format!("{} is not a row", kind(value))))?;
    let cells = cells
        .iter()
        .map(|it| cell(it).ok_or_else(|| Stop::error(format!("{} cannot be in a row", kind(it)))));
    Ok(cells.collect::<Result<Vec<_>, _>>()?.join(between))
}

fn csv_cell(value: &Json) -> Option<String> {
    match value {
        Json::Null => Some(String::new()),
        Json::String(text) => Some(format!("\"{}\"", text.replace('"', "\"\""))),
        Json::Bool(_) | Json::Number(_) => Some(value.to_string()),
        Json::Array(_) | Json::Object(_) => None,
    }
}

fn tsv_cell(value: &Json) -> Option<String> {
    match value {
        Json::String(text) => Some(
            text.replace('\\', "\\\\")
                .replace('\t', "\\t")
                .replace('\n', "\\n")
                .replace('\r', "\\r"),
        ),
        other => csv_cell(other),
    }
}

fn html(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('\'', "&#39;")
        .replace('"', "&quot;")
}

fn uri(text: &str) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                out.push(char::from(byte));
            }
            byte => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

fn shell(value: &Json) -> Result<String, Stop> {
    match value {
        Json::String(text) => Ok(format!("'{}'", text.replace('\'', "'\\''"))),
        Json::Array(items) => {
            let words: Result<Vec<String>, Stop> = items
                .iter()
                .map(|it| match it {
                    Json::Array(_) => shell(&Json::Object(Map::new())),
                    other => shell(other),
                })
                .collect();
            Ok(words?.join(" "))
        }
        Json::Object(_) => Err(Stop::error("an object cannot be a word of a command")),
        other => Ok(other.to_string()),
    }
}
