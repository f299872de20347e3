//! Redaction of a stream: a secret may lie across its pieces.

use super::{Redactor, into_text};

/// Redacts pieces as they arrive. A possible beginning of a secret is held back until later pieces decide.
#[derive(Debug, Default)]
pub struct RedactStream {
    held: Vec<u8>,
}

impl RedactStream {
    /// Accepts a piece, and returns the bytes that can be shown now.
    pub fn push(&mut self, redactor: &Redactor, piece: &[u8]) -> Vec<u8> {
        let Some(matcher) = &redactor.matcher else {
            let mut out = std::mem::take(&mut self.held);
            out.extend_from_slice(piece);
            return out;
        };
        self.held.extend_from_slice(piece);
        let found = matcher.all(&self.held);
        let hold = matcher.open(&self.held);
        // A secret in which another one or a longer form begins is held back with it.
        let within = found
            .iter()
            .find(|span| span.start <= hold && hold < span.end);
        let hold = within.map_or(hold, |span| span.start);
        let rest = self.held.split_off(hold);
        let ready = std::mem::replace(&mut self.held, rest);
        redactor.bytes(ready)
    }

    /// Returns the bytes that were held back, at the end of the stream.
    pub fn finish(&mut self, redactor: &Redactor) -> Vec<u8> {
        redactor.bytes(std::mem::take(&mut self.held))
    }

    /// Works like [`RedactStream::push`], for text.
    pub fn push_text(&mut self, redactor: &Redactor, piece: &str) -> String {
        into_text(self.push(redactor, piece.as_bytes()))
    }

    /// Works like [`RedactStream::finish`], for text.
    pub fn finish_text(&mut self, redactor: &Redactor) -> String {
        into_text(self.finish(redactor))
    }

    /// Tells whether nothing is held back.
    pub fn is_empty(&self) -> bool {
        self.held.is_empty()
    }
}
