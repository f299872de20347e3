//! Sources that a provider names for an answer, in one form for all formats.

use serde_json::Value as Json;

/// A source of an answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Citation {
    pub url: String,
    pub title: Option<String>,
    /// The text of the source that the answer refers to.
    pub text: Option<String>,
}

impl Citation {
    /// Reads a source with an address; other sources have none.
    pub fn read(json: &Json, url: &str) -> Option<Citation> {
        let text = |key: &str| {
            let text = json.get(key).and_then(Json::as_str);
            text.filter(|it| !it.is_empty()).map(str::to_owned)
        };
        Some(Citation {
            url: text(url)?,
            title: text("title"),
            text: text("cited_text"),
        })
    }
}

/// Adds a source, unless it is there.
pub(super) fn add(citations: &mut Vec<Citation>, citation: Option<Citation>) {
    if let Some(citation) = citation.filter(|it| !citations.contains(it)) {
        citations.push(citation);
    }
}
