//! The text of a turn that a client has got: what comes later must continue it.
//!
//! A client of chat completions only adds texts, so none that was sent can be taken back.

use flowstone_engine::ports::TextPiece;

/// What was sent of a turn.
#[derive(Debug, Default)]
pub(super) struct Sent {
    text: String,
    /// Number of its characters that the answer in progress has so far: fewer than all after the model was asked again.
    matched: usize,
}

impl Sent {
    /// Takes in a piece of the text as it arrives. Returns what is new of it; nothing if it contradicts what was sent.
    pub(super) fn add<'p>(&mut self, piece: &'p TextPiece) -> Option<&'p str> {
        let offset = usize::try_from(piece.offset).unwrap_or(usize::MAX);
        // A piece after a gap is completed from the journal.
        if offset > self.matched && offset > 0 {
            return Some("");
        }
        let known = after(&self.text, offset);
        let count = piece.text.chars().count();
        match piece.text.strip_prefix(known) {
            Some(new) => {
                self.text.push_str(new);
                self.matched = offset + count;
                Some(new)
            }
            None if known.starts_with(&piece.text) => {
                self.matched = offset + count;
                Some("")
            }
            None => None,
        }
    }

    /// Returns what is missing of the whole text of a turn; nothing if it contradicts what was sent.
    pub(super) fn rest<'t>(&self, whole: &'t str) -> Option<&'t str> {
        match whole.strip_prefix(self.text.as_str()) {
            // Some providers leave out the white space around an answer.
            None if whole.trim() == self.text.trim() => Some(""),
            rest => rest,
        }
    }
}

/// Returns a text from a number of characters on.
fn after(text: &str, chars: usize) -> &str {
    let mut places = text.char_indices().map(|(at, _)| at);
    places.nth(chars).map_or("", |at| &text[at..])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(offset: u64, text: &str) -> TextPiece {
        TextPiece {
            path: "a/turn".to_owned(),
            offset,
            text: text.to_owned(),
        }
    }

    #[test]
    fn an_answer_that_begins_again_must_repeat_what_was_sent() {
        let mut sent = Sent::default();
        assert_eq!(sent.add(&piece(0, "Gr\u{fc}")), Some("Gr\u{fc}"));
        assert_eq!(sent.add(&piece(3, "\u{df}e")), Some("\u{df}e"));
        // It begins again, a piece at a time.
        assert_eq!(sent.add(&piece(0, "Gr")), Some(""));
        assert_eq!(sent.add(&piece(2, "\u{fc}\u{df}e!")), Some("!"));
        assert_eq!(sent.rest("Gr\u{fc}\u{df}e! More"), Some(" More"));
        assert_eq!(sent.rest("Gr\u{fc}\u{df}e"), None, "it is shorter");
        assert_eq!(sent.rest(" Gr\u{fc}\u{df}e!\n"), Some(""));
        assert_eq!(sent.add(&piece(0, "Hallo")), None);
    }

    #[test]
    fn an_answer_that_differs_late_or_is_longer_than_what_was_sent_is_compared_as_a_whole() {
        let mut sent = Sent::default();
        assert_eq!(sent.add(&piece(0, "one two")), Some("one two"));
        assert_eq!(sent.add(&piece(0, "one ")), Some(""));
        assert_eq!(sent.add(&piece(4, "six")), None);
        let mut sent = Sent::default();
        assert_eq!(
            sent.add(&piece(0, "The answer is 4")),
            Some("The answer is 4")
        );
        assert_eq!(sent.add(&piece(0, "Paris is the capital of France")), None);
    }

    #[test]
    fn a_text_with_a_gap_is_completed_from_the_journal() {
        let mut sent = Sent::default();
        assert_eq!(sent.add(&piece(7, "later")), Some(""));
        assert_eq!(sent.rest("before later"), Some("before later"));
    }
}
