//! Splits long texts into parts that an embedding model accepts. The same text is always split at the same places.

use std::ops::Range;

/// Approximate size of a chunk in bytes: about 300 tokens.
const CHUNK: usize = 1_200;
/// Number of bytes of a chunk that the next one repeats, so that each sentence is in one chunk as a whole.
const SHARED: usize = 150;
/// Maximum number of chunks of a text; text after them has no vectors.
const CHUNKS_MAX: usize = 64;

/// Returns the chunks of a text: at least one, unless it is blank.
pub fn chunks(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut start = 0;
    while start < text.len() && found.len() < CHUNKS_MAX {
        let end = end_of(text, start);
        if !text[start..end].trim().is_empty() {
            found.push(start..end);
        }
        if end == text.len() {
            break;
        }
        let next = text.floor_char_boundary(end.saturating_sub(SHARED));
        start = if next > start { next } else { end };
    }
    found
}

/// Returns where a chunk ends: at the end of a paragraph, a sentence or a word, if one is near.
fn end_of(text: &str, start: usize) -> usize {
    let most = text.floor_char_boundary((start + CHUNK).min(text.len()));
    if most == text.len() {
        return most;
    }
    let least = text.floor_char_boundary(start + CHUNK / 2);
    let window = &text[least..most];
    for mark in ["\n\n", ". ", "\n", " "] {
        if let Some(at) = window.rfind(mark) {
            return least + at + mark.len();
        }
    }
    most
}

#[cfg(test)]
mod tests {
    use super::{CHUNK, CHUNKS_MAX, chunks};

    #[test]
    fn chunks_cover_a_text_and_keep_characters_whole() {
        let prose = "A sentence about refunds. ".repeat(400);
        let cases = [
            String::new(),
            " \n ".to_owned(),
            "short".to_owned(),
            prose,
            "é".repeat(3_000),
            "北京".repeat(3_000),
        ];
        for text in cases {
            let found = chunks(&text);
            assert_eq!(found.is_empty(), text.trim().is_empty());
            let mut reached = 0;
            for chunk in &found {
                assert!(chunk.start <= reached && chunk.end > reached);
                assert!(chunk.len() <= CHUNK && text.get(chunk.clone()).is_some());
                reached = chunk.end;
            }
            assert!(found.is_empty() || reached == text.len() || found.len() == CHUNKS_MAX);
        }
    }
}
