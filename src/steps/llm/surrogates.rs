//! Repairs characters that servers split: an escaped surrogate pair, `\ud83e\udd80`, whose halves are in two events.
//!
//! JSON with half a pair cannot be read. The first half is removed from its event and put before the second one; a
//! single half becomes U+FFFD.

use std::borrow::Cow;

/// Joins the halves across the events of a stream.
#[derive(Debug, Default)]
pub struct Joiner {
    /// The first half of a pair, as it was escaped.
    high: Option<String>,
}

/// An escaped code unit, `\u` and four digits.
const ESCAPE: usize = 6;

impl Joiner {
    /// Returns the JSON of an event with whole characters only.
    pub fn take<'a>(&mut self, json: &'a str) -> Cow<'a, str> {
        if !json.contains("\\ud") && !json.contains("\\uD") {
            return Cow::Borrowed(json);
        }
        let mut out = String::with_capacity(json.len() + ESCAPE);
        let mut rest = json;
        while let Some(at) = rest.find('\\') {
            let (before, escape) = rest.split_at(at);
            out.push_str(before);
            let Some(unit) = unit(escape) else {
                // A backslash with the character that it escapes.
                let end = escape.char_indices().nth(2).map_or(escape.len(), |it| it.0);
                out.push_str(&escape[..end]);
                rest = &escape[end..];
                continue;
            };
            let (own, after) = escape.split_at(ESCAPE);
            rest = after;
            match unit {
                0xd800..=0xdbff => match self::unit(after) {
                    Some(0xdc00..=0xdfff) => {
                        out.push_str(own);
                        out.push_str(&after[..ESCAPE]);
                        rest = &after[ESCAPE..];
                    }
                    // Only at the end of a text may the other half still follow.
                    _ if after.starts_with('"') => self.high = Some(own.to_owned()),
                    _ => out.push('\u{fffd}'),
                },
                0xdc00..=0xdfff => match self.high.take() {
                    Some(high) => {
                        out.push_str(&high);
                        out.push_str(own);
                    }
                    None => out.push('\u{fffd}'),
                },
                _ => out.push_str(own),
            }
        }
        out.push_str(rest);
        Cow::Owned(out)
    }

    /// Returns a whole text of JSON with whole characters only.
    pub fn whole(json: &str) -> Cow<'_, str> {
        let mut joiner = Joiner::default();
        let text = joiner.take(json);
        match joiner.high {
            Some(_) => Cow::Owned(text.into_owned()),
            None => text,
        }
    }
}

/// Returns the code unit of an escape such as `\u00e9`.
fn unit(text: &str) -> Option<u32> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    let is_hex = digits.bytes().all(|it| it.is_ascii_hexdigit());
    is_hex.then(|| u32::from_str_radix(digits, 16).ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(events: &[&str]) -> Vec<String> {
        let mut joiner = Joiner::default();
        let events = events.iter().map(|it| joiner.take(it).into_owned());
        events.collect()
    }

    #[test]
    fn halves_are_joined() {
        for (events, expected) in [
            (
                vec![r#"{"t":"a\ud83e"}"#, r#"{"t":"\udd80b"}"#],
                vec![r#"{"t":"a"}"#, r#"{"t":"\ud83e\udd80b"}"#],
            ),
            // Text between the halves does not separate them.
            (
                vec![r#"{"t":"\uD83E"}"#, r#"{"ping":1}"#, r#"{"t":"\uDD80"}"#],
                vec![r#"{"t":""}"#, r#"{"ping":1}"#, r#"{"t":"\uD83E\uDD80"}"#],
            ),
            // Single halves.
            (
                vec![r#"{"t":"\udd80 \ud83e."}"#],
                vec!["{\"t\":\"\u{fffd} \u{fffd}.\"}"],
            ),
            // Whole pairs, other escapes, and JSON inside JSON are unchanged.
            (
                vec![r#"{"t":"\ud83e\udd80\n\u00e9\\ud83e\"\ud83"}"#],
                vec![r#"{"t":"\ud83e\udd80\n\u00e9\\ud83e\"\ud83"}"#],
            ),
        ] {
            assert_eq!(taken(&events), expected);
        }
    }
}
