//! Findings as a log in SARIF 2.1.0, which code-scanning services and editors read.
//!
//! Each code is a rule whose help is its page of the manual. Columns count characters, as everywhere in Flowstone.

use flowstone_lang::diagnostic::{Change, Excerpt, Severity};
use flowstone_project::workspace::error_page;
use serde_json::{Map, Value as Json, json};

use crate::cli::report::Report;

/// The address of the schema, as the standard names it.
const SCHEMA: &str = "https://json.schemastore.org/sarif-2.1.0.json";
/// The name of the folder that relative addresses are relative to: the one that the command was started in.
const BASE: &str = "SRCROOT";
/// Maximum length of a line that is repeated in the log.
const LONGEST_LINE: usize = 400;

/// Returns the log of one check.
pub(super) fn log(reports: &[Report]) -> Json {
    let mut codes: Vec<&str> = reports.iter().map(|report| &*report.code).collect();
    codes.sort_unstable();
    codes.dedup();
    codes.retain(|code| !code.is_empty());
    let rules: Vec<Json> = codes.iter().map(|code| rule(code, reports)).collect();
    let results: Vec<Json> = reports.iter().map(|it| result(it, &codes)).collect();
    json!({
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [{
            "tool": {
                "driver": {
                    "name": "flowstone",
                    "semanticVersion": env!("CARGO_PKG_VERSION"),
                    "rules": rules,
                },
            },
            // The check itself was done, whatever it found.
            "invocations": [{"executionSuccessful": true}],
            "originalUriBaseIds": {
                BASE: {"description": {"text": "The folder that the check was started in."}},
            },
            "columnKind": "unicodeCodePoints",
            "results": results,
        }],
    })
}

fn rule(code: &str, reports: &[Report]) -> Json {
    let of_code = reports.iter().filter(|report| report.code == code);
    let severest = of_code
        .map(|report| level(report.severity))
        .min_by_key(|level| rank(level));
    let mut rule = json!({
        "id": code,
        "defaultConfiguration": {"level": severest.unwrap_or("warning")},
    });
    if let Some(page) = error_page(code) {
        let title = page.lines().next().unwrap_or_default();
        let title = title.trim_start_matches('#').trim();
        let title = title
            .strip_prefix(code)
            .map_or(title, |rest| rest.trim_start_matches(':').trim());
        rule["shortDescription"] = json!({"text": sentence(title)});
        rule["fullDescription"] = json!({"text": first_paragraph(page)});
        rule["help"] = json!({"text": page.trim_end(), "markdown": page.trim_end()});
    }
    rule
}

fn level(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Portability => "note",
    }
}

fn rank(level: &str) -> usize {
    let levels = ["error", "warning", "note"];
    levels
        .iter()
        .position(|known| *known == level)
        .unwrap_or(levels.len())
}

/// Returns a title as a sentence with a full stop, which the standard asks of descriptions.
fn sentence(title: &str) -> String {
    let mut chars = title.chars();
    let first: String = chars
        .next()
        .into_iter()
        .flat_map(char::to_uppercase)
        .collect();
    format!("{first}{}.", chars.as_str().trim_end_matches('.'))
}

/// Returns the first paragraph below the title, on one line.
fn first_paragraph(page: &str) -> String {
    let lines = page
        .lines()
        .skip(1)
        .skip_while(|line| line.trim().is_empty());
    let lines: Vec<&str> = lines.take_while(|line| !line.trim().is_empty()).collect();
    lines.join(" ")
}

fn result(report: &Report, codes: &[&str]) -> Json {
    let mut text = report.message.clone();
    for more in report.notes.iter().chain(&report.hints) {
        text = format!("{text}\n{more}");
    }
    let mut result = json!({"level": level(report.severity), "message": {"text": text}});
    if let Some(idx) = codes.iter().position(|code| *code == report.code) {
        result["ruleId"] = json!(report.code);
        result["ruleIndex"] = json!(idx);
    }
    if let Some(place) = &report.place {
        result["locations"] = json!([location(place)]);
    }
    if !report.related.is_empty() {
        let related = report
            .related
            .iter()
            .enumerate()
            .map(|(idx, (place, what))| {
                let mut location = location(place);
                location["id"] = json!(idx);
                location["message"] = json!({"text": what});
                location
            });
        result["relatedLocations"] = related.collect();
    }
    if !report.changes.is_empty() {
        result["fixes"] = report.changes.iter().map(fix).collect();
    }
    result
}

fn location(place: &Excerpt) -> Json {
    let mut region = region(place);
    if !place.text.is_empty() && place.text.len() <= LONGEST_LINE {
        let line = json!({"text": place.text});
        let context = json!({"startLine": place.line, "snippet": line});
        return json!({"physicalLocation": {
            "artifactLocation": artifact(&place.file),
            "region": region,
            "contextRegion": context,
        }});
    }
    json!({"physicalLocation": {"artifactLocation": artifact(&place.file), "region": region.take()}})
}

fn region(place: &Excerpt) -> Json {
    json!({
        "startLine": place.line,
        "startColumn": place.column,
        "endLine": place.end_line,
        "endColumn": place.end_column,
    })
}

fn fix(change: &Change<Excerpt>) -> Json {
    let mut files: Vec<&str> = change.edits.iter().map(|edit| &*edit.place.file).collect();
    files.dedup();
    let changes = files.iter().map(|file| {
        let edits = change.edits.iter().filter(|edit| edit.place.file == *file);
        let replacements = edits.map(|edit| {
            let mut replacement = Map::new();
            replacement.insert("deletedRegion".into(), region(&edit.place));
            replacement.insert("insertedContent".into(), json!({"text": edit.new}));
            Json::from(replacement)
        });
        json!({
            "artifactLocation": artifact(file),
            "replacements": replacements.collect::<Vec<_>>(),
        })
    });
    json!({
        "description": {"text": sentence(&change.title)},
        "artifactChanges": changes.collect::<Vec<_>>(),
    })
}

/// Returns the address of a file: relative to the current folder, or absolute.
fn artifact(file: &str) -> Json {
    let path = file.replace('\\', "/");
    let path = path.strip_prefix("./").unwrap_or(&path);
    match path.starts_with('/') {
        true => json!({"uri": format!("file://{}", encoded(path))}),
        false => json!({"uri": encoded(path), "uriBaseId": BASE}),
    }
}

/// Returns a path with the characters escaped that an address does not have.
fn encoded(path: &str) -> String {
    let mut out = String::with_capacity(path.len());
    for byte in path.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                out.push(char::from(byte))
            }
            other => out.push_str(&format!("%{other:02X}")),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_become_addresses() {
        assert_eq!(
            artifact("./flows/é b.edn"),
            json!({"uri": "flows/%C3%A9%20b.edn", "uriBaseId": BASE})
        );
        assert_eq!(
            artifact("/a#b/c.edn"),
            json!({"uri": "file:///a%23b/c.edn"})
        );
    }

    #[test]
    fn a_code_has_its_page_as_help() {
        let rule = rule("E0402", &[Report::error("E0402", "x")]);
        assert_eq!(
            rule["shortDescription"]["text"],
            "Unknown key in the definition."
        );
        assert_eq!(rule["defaultConfiguration"]["level"], "error");
        assert!(
            rule["help"]["markdown"]
                .as_str()
                .is_some_and(|it| it.contains("functons"))
        );
    }
}
