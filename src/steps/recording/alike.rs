//! Compares requests: decides whether two of them are the same, and shows how they differ.
//!
//! The method, the address and the body are compared. The order of JSON keys and query parameters is ignored, and so is
//! the port of a server on this machine. If no recorded request is exactly the same, times near the time of the run and
//! random ids may differ.

use std::collections::BTreeMap;
use std::hash::Hash;
use std::sync::LazyLock;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use fancy_regex::{Captures, Regex};
use reqwest::Url;
use serde_json::Value as Json;
use similar::{Algorithm, DiffTag};

use super::file::RecordedRequest;
use crate::http::error::header;

/// The parts of a request that are compared, as text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Likeness {
    /// Method and address in the first line, then the body by lines.
    pub text: String,
    /// The same text, with placeholders for times near the request and for random ids.
    pub loose: String,
}

/// Times within this many milliseconds of a request are assumed to depend on when it was sent.
const NEAR_MS: i64 = 48 * 3_600_000;
/// Maximum number of lines that are shown of a difference.
const MOST_LINES: usize = 40;
/// Maximum number of characters that are shown of a line.
const MOST_CHARS: usize = 160;

impl Likeness {
    /// Returns the parts to compare of a request that was sent at `at_ms`.
    pub(super) fn of(asked: &RecordedRequest, at_ms: i64) -> Likeness {
        let (address, body) = (address(&asked.url), body(asked));
        let text = match body.is_empty() {
            true => format!("{} {address}\n", asked.method),
            false => format!("{} {address}\n{body}\n", asked.method),
        };
        let loose = loosened(&text, at_ms);
        Likeness { text, loose }
    }

    /// Returns the similarity of two requests, from 0 to 2.
    pub(super) fn closeness(&self, other: &Likeness) -> f64 {
        let chars = |it: &Likeness| first_line(&it.text).chars().collect::<Vec<_>>();
        let (lines, others): (Vec<&str>, Vec<&str>) =
            (self.text.lines().collect(), other.text.lines().collect());
        ratio(&chars(self), &chars(other)) + ratio(&lines, &others)
    }
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

/// Normalizes an address: sorts its parameters, and removes its fragment and the port of a local server.
fn address(text: &str) -> String {
    let Ok(mut url) = Url::parse(text) else {
        return text.to_owned();
    };
    url.set_fragment(None);
    let host = url.host_str().unwrap_or_default();
    let is_here = matches!(host, "localhost" | "[::1]") || host.starts_with("127.");
    let origin = match is_here {
        true => format!("{}://localhost", url.scheme()),
        false => url.origin().ascii_serialization(),
    };
    let mut pairs: Vec<(String, String)> = url.query_pairs().into_owned().collect();
    pairs.sort();
    let pairs: Vec<String> = pairs
        .into_iter()
        .map(|(name, value)| match value.is_empty() {
            true => name,
            false => format!("{name}={value}"),
        })
        .collect();
    let query = match pairs.is_empty() {
        true => String::new(),
        false => format!("?{}", pairs.join("&")),
    };
    format!("{origin}{}{query}", url.path())
}

/// Normalizes a body: JSON with sorted keys, sorted form fields, other text as it is, or lines of base64.
fn body(asked: &RecordedRequest) -> String {
    if let Ok(json) = serde_json::from_slice::<Json>(&asked.body) {
        return serde_json::to_string_pretty(&sorted(json)).unwrap_or_default();
    }
    let kind = header(&asked.headers, "content-type").unwrap_or_default();
    let Ok(text) = std::str::from_utf8(&asked.body) else {
        let encoded = STANDARD.encode(without_boundary(kind, &asked.body));
        let lines = encoded.as_bytes().chunks(76).map(String::from_utf8_lossy);
        return lines.collect::<Vec<_>>().join("\n");
    };
    if kind.starts_with("application/x-www-form-urlencoded") {
        let mut fields: Vec<&str> = text.split('&').collect();
        fields.sort_unstable();
        return fields.join("\n");
    }
    String::from_utf8_lossy(&without_boundary(kind, text.as_bytes())).into_owned()
}

/// Replaces the boundary of a multipart body, which is random in each request.
fn without_boundary(kind: &str, body: &[u8]) -> Vec<u8> {
    let boundary = kind.split("boundary=").nth(1);
    let boundary = boundary.map(|it| it.trim_matches('"').as_bytes());
    let Some(boundary) = boundary.filter(|it| !it.is_empty()) else {
        return body.to_vec();
    };
    let mut clean = Vec::with_capacity(body.len());
    let mut from = 0;
    for at in memchr::memmem::find_iter(body, boundary) {
        clean.extend_from_slice(&body[from..at]);
        clean.extend_from_slice(b"boundary");
        from = at + boundary.len();
    }
    clean.extend_from_slice(&body[from..]);
    clean
}

fn sorted(json: Json) -> Json {
    match json {
        Json::Object(map) => {
            let map: BTreeMap<String, Json> =
                map.into_iter().map(|(key, it)| (key, sorted(it))).collect();
            Json::Object(map.into_iter().collect())
        }
        Json::Array(items) => items.into_iter().map(sorted).collect(),
        json => json,
    }
}

/// Matches dates and times, seconds and milliseconds since 1970, and random ids.
static VARYING: LazyLock<Regex> = LazyLock::new(|| {
    let time = r"[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:Z|[+-]\d{2}:?\d{2})?";
    let id = r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b";
    Regex::new(&format!(
        r"(?<date>\b\d{{4}}-\d{{2}}-\d{{2}})(?:{time})?|(?<id>{id})|(?<count>\b1\d{{9}}(?:\d{{3}})?\b)"
    ))
    .expect("the pattern is well formed")
});

fn loosened(text: &str, at_ms: i64) -> String {
    let near = |ms: Option<i64>| ms.is_some_and(|ms| (ms - at_ms).abs() <= NEAR_MS);
    let replaced = VARYING.replace_all(text, |found: &Captures<'_, str>| {
        let whole = &found[0];
        let ms = |name: &str| found.name(name).map(|it| it.as_str());
        if found.name("id").is_some() {
            return "[id]".to_owned();
        }
        let count = ms("count").and_then(|it| it.parse::<i64>().ok());
        let count = count.map(|it| if it < 10_000_000_000 { it * 1000 } else { it });
        match near(ms("date").and_then(midnight_ms)) || near(count) {
            true => "[now]".to_owned(),
            false => whole.to_owned(),
        }
    });
    replaced.into_owned()
}

fn midnight_ms(date: &str) -> Option<i64> {
    let date: jiff::civil::Date = date.parse().ok()?;
    let midnight = date.to_zoned(jiff::tz::TimeZone::UTC).ok()?;
    Some(midnight.timestamp().as_millisecond())
}

/// Returns the difference between a recorded request (`-`) and a new one (`+`).
pub(super) fn difference(recorded: &Likeness, asked: &Likeness) -> String {
    let old: Vec<&str> = recorded.text.lines().collect();
    let new: Vec<&str> = asked.text.lines().collect();
    let ops = similar::capture_diff_slices(Algorithm::Myers, &old, &new);
    let mut lines = Vec::new();
    for group in similar::group_diff_ops(ops, 2) {
        if !lines.is_empty() {
            lines.push("  ...".to_owned());
        }
        for op in group {
            let (gone, come) = (&old[op.old_range()], &new[op.new_range()]);
            if op.tag() == DiffTag::Equal {
                lines.extend(gone.iter().map(|line| format!("  {}", clipped(line, 0))));
                continue;
            }
            let pairs = gone.iter().zip(come);
            let from: Vec<usize> = pairs.map(|(one, other)| common(one, other)).collect();
            for (sign, side) in [("-", gone), ("+", come)] {
                lines.extend(side.iter().enumerate().map(|(at, line)| {
                    let from = from.get(at).copied().unwrap_or_default();
                    format!("{sign} {}", clipped(line, from))
                }));
            }
        }
    }
    let more = lines.len().saturating_sub(MOST_LINES);
    lines.truncate(MOST_LINES);
    if more > 0 {
        lines.push(format!("... {more} more lines"));
    }
    lines.join("\n")
}

/// Returns the share of two lists that is equal, from 0 to 1.
fn ratio<T: Hash + Eq + Ord + Clone>(one: &[T], other: &[T]) -> f64 {
    let ops = similar::capture_diff_slices(Algorithm::Myers, one, other);
    let same = ops.iter().filter(|op| op.tag() == DiffTag::Equal);
    let same: usize = same.map(|op| op.old_range().len()).sum();
    let all = (one.len() + other.len()).max(1);
    2.0 * same as f64 / all as f64
}

/// Returns the number of characters at which two lines start to differ.
fn common(one: &str, other: &str) -> usize {
    let pairs = one.chars().zip(other.chars());
    pairs.take_while(|(one, other)| one == other).count()
}

/// Cuts a long line to the part around its first difference.
fn clipped(line: &str, from: usize) -> String {
    let line = line.trim_end_matches('\n');
    let count = line.chars().count();
    if count <= MOST_CHARS {
        return line.to_owned();
    }
    let start = from.saturating_sub(40).min(count - MOST_CHARS);
    let part: String = line.chars().skip(start).take(MOST_CHARS).collect();
    let before = if start > 0 { "…" } else { "" };
    let after = if start + MOST_CHARS < count {
        "…"
    } else {
        ""
    };
    format!("{before}{part}{after}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_772_323_200_000;

    fn likeness(url: &str, kind: &str, body: &str) -> Likeness {
        let asked = RecordedRequest {
            method: "POST".into(),
            url: url.into(),
            headers: vec![("content-type".into(), kind.into())],
            body: body.into(),
        };
        Likeness::of(&asked, NOW)
    }

    #[test]
    fn key_order_local_ports_and_boundaries_are_ignored() {
        let json = "application/json";
        let form = "application/x-www-form-urlencoded";
        let cases = [
            (
                likeness(
                    "http://127.0.0.1:4001/a?x=1&y=2",
                    json,
                    r#"{"a":1,"b":[{"c":2,"d":3}]}"#,
                ),
                likeness(
                    "http://localhost:5/a?y=2&x=1#top",
                    json,
                    "{\"b\": [{\"d\":3, \"c\":2}], \"a\":1}",
                ),
            ),
            (
                likeness("https://API.example.com:443/a", form, "b=2&a=1"),
                likeness("https://api.example.com/a", form, "a=1&b=2"),
            ),
            (
                likeness(
                    "https://a.com/",
                    "multipart/form-data; boundary=xyz1",
                    "--xyz1\r\nhello\r\n--xyz1--",
                ),
                likeness(
                    "https://a.com/",
                    "multipart/form-data; boundary=abc2",
                    "--abc2\r\nhello\r\n--abc2--",
                ),
            ),
        ];
        for (one, other) in cases {
            assert_eq!(one.text, other.text);
        }
    }

    #[test]
    fn near_times_and_random_ids_match_only_loosely() {
        let with = |text: &str| likeness("https://a.com/", "text/plain", text);
        let near = [
            (
                "on 2026-03-01T10:00:00Z",
                "on 2026-02-28T23:59:59.123+01:00",
            ),
            ("on 2026-03-02", "on 2026-03-01"),
            ("at 1772323200000", "at 1772323111222"),
            ("at 1772323200", "at 1772323111"),
            (
                "id 0b9a3e3c-0b1c-4e57-9d6c-1f2f3a4b5c6d",
                "id 7c9a3e3c-0b1c-4e57-9d6c-1f2f3a4b5c6d",
            ),
        ];
        for (one, other) in near {
            let (one, other) = (with(one), with(other));
            assert_ne!(one.text, other.text);
            assert_eq!(one.loose, other.loose);
        }
        let far = [
            ("on 2025-03-01", "on 2025-03-02"),
            ("at 1700000000", "at 1700000001"),
            ("id 12345", "id 12346"),
        ];
        for (one, other) in far {
            assert_ne!(with(one).loose, with(other).loose);
        }
    }

    #[test]
    fn a_long_line_is_cut_to_its_first_difference() {
        let long = "x".repeat(400);
        let one = likeness("https://a.com/", "text/plain", &format!("{long} one"));
        let other = likeness("https://a.com/", "text/plain", &format!("{long} two"));
        let shown = difference(&one, &other);
        assert!(
            shown.contains("x one") && shown.contains("x two"),
            "{shown}"
        );
        assert!(shown.lines().all(|line| line.chars().count() < 200));
    }
}
