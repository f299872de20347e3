//! Long texts in parts of a size that a model of embeddings takes. The same text is always cut at the same places.

use std::ops::Range;

/// Bytes of a chunk, about: some 300 tokens.
const CHUNK: usize = 1_200;
/// How much of a chunk the next one repeats, so that no sentence is only found in halves.
const SHARED: usize = 150;
/// What is beyond has no vectors.
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

/// Returns where a chunk ends: at the end of a paragraph, a sentence or a word, where one is near.
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
