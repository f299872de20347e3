//! What was found, as flows and the command line see it.

use flowstone_lang::value::Value;

use super::{Mode, may_be_text, start_of};
use flowstone_model::ports::{SearchHit, SearchTarget, StoreError, Stores};

/// The fact that is a number.
const SIZE: &str = "size-bytes";
/// The most bytes of a resource that are read to show the start of it.
const CHAR_BYTES: usize = 4;

/// An answer.
#[derive(Debug, Clone)]
pub struct Found {
    pub mode: Mode,
    pub targets: Vec<SearchTarget>,
    /// By target in the order that was asked for; the best first.
    pub hits: Vec<FoundHit>,
    pub warnings: Vec<String>,
}

/// Something that was found.
#[derive(Debug, Clone)]
pub struct FoundHit {
    pub hit: SearchHit,
    pub content: Option<Content>,
}

/// What is in a resource that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    Text {
        text: String,
        is_cut: bool,
    },
    /// It is no text, or no file of its own.
    Omitted,
}

impl Found {
    /// Returns it as the value of the step.
    pub fn to_value(&self) -> Value {
        let count = |target: SearchTarget| {
            let those = self.hits.iter().filter(|hit| hit.hit.target == target);
            (Value::keyword(target.name()), Value::from(those.count()))
        };
        let mut entries = vec![
            ("results", Value::vector(self.hits.iter().map(to_value))),
            (
                "by-target",
                Value::map(self.targets.iter().map(|target| count(*target))),
            ),
            ("count", Value::from(self.hits.len())),
            ("mode", Value::keyword(self.mode.name())),
        ];
        if !self.warnings.is_empty() {
            let warnings = self
                .warnings
                .iter()
                .map(|words| Value::from(words.as_str()));
            entries.push(("warnings", Value::vector(warnings)));
        }
        map(entries)
    }
}

fn map<'a>(entries: impl IntoIterator<Item = (&'a str, Value)>) -> Value {
    let entries = entries.into_iter();
    Value::map(entries.map(|(key, value)| (Value::keyword(key), value)))
}

fn to_value(found: &FoundHit) -> Value {
    let hit = &found.hit;
    let name = match hit.target {
        SearchTarget::Resources => "uri",
        SearchTarget::Flows
        | SearchTarget::Runs
        | SearchTarget::Connections
        | SearchTarget::Knowledge => "id",
    };
    let mut entries = vec![
        ("target", Value::keyword(hit.target.name())),
        (name, Value::from(hit.id.as_str())),
        ("title", Value::from(hit.title.as_str())),
        ("score", Value::Float((hit.score * 1e4).round() / 1e4)),
        ("snippet", Value::from(hit.snippet.as_str())),
    ];
    for (key, value) in &hit.facts {
        let number = value.parse().ok().filter(|_| key == SIZE);
        entries.push((
            key,
            number.map_or_else(|| Value::from(value.as_str()), Value::Int),
        ));
    }
    match &found.content {
        Some(Content::Text { text, is_cut }) => {
            entries.push(("content", Value::from(text.as_str())));
            entries.push(("content-truncated?", Value::Bool(*is_cut)));
        }
        Some(Content::Omitted) => entries.push(("content", Value::Nil)),
        None => {}
    }
    map(entries)
}

/// Returns the start of the contents of a resource.
pub(super) async fn content(
    stores: &Stores,
    uri: &str,
    max_chars: usize,
) -> Result<Content, StoreError> {
    let Some(row) = stores.blobs.find(uri).await? else {
        return Ok(Content::Omitted);
    };
    if !may_be_text(row.content_type.as_deref()) {
        return Ok(Content::Omitted);
    }
    let bytes = match stores.blobs.get(&row.hash).await {
        Ok(bytes) => bytes,
        // Its file may be gone with a folder that was not copied along.
        Err(StoreError::Rejected { .. }) => return Ok(Content::Omitted),
        Err(error) => return Err(error),
    };
    let Some((start, is_cut)) = start_of(&bytes, max_chars.saturating_mul(CHAR_BYTES)) else {
        return Ok(Content::Omitted);
    };
    Ok(match start.char_indices().nth(max_chars) {
        Some((at, _)) => Content::Text {
            text: start[..at].to_owned(),
            is_cut: true,
        },
        None => Content::Text {
            text: start,
            is_cut,
        },
    })
}
