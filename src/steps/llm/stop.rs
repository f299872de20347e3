//! Stop sequences for formats that do not support them: the answer is cut where one begins.
//!
//! Text after a stop sequence is not shown to observers, nor is text that may turn out to be the beginning of one.

use super::call::{Delta, Reply};

/// Passes the pieces of an answer up to the first stop sequence.
pub(super) struct Gate<'a> {
    stops: &'a [String],
    text: String,
    given: usize,
    closed: bool,
}

impl<'a> Gate<'a> {
    pub(super) fn new(stops: &'a [String]) -> Gate<'a> {
        Gate {
            stops,
            text: String::new(),
            given: 0,
            closed: false,
        }
    }

    /// Returns the part of a piece that may be shown now.
    pub(super) fn pass(&mut self, delta: Delta) -> Option<Delta> {
        let Delta::Text(piece) = delta else {
            return (!self.closed).then_some(delta);
        };
        if self.stops.is_empty() {
            return Some(Delta::Text(piece));
        }
        if self.closed {
            return None;
        }
        self.text.push_str(&piece);
        let end = match place(&self.text, self.stops) {
            Some(at) => {
                self.closed = true;
                at
            }
            None => self.text.len() - self.doubtful(),
        };
        self.give(end)
    }

    /// Returns the text that was held back, at the end of the stream.
    pub(super) fn rest(&mut self) -> Option<Delta> {
        if self.closed {
            return None;
        }
        self.closed = true;
        self.give(self.text.len())
    }

    fn give(&mut self, end: usize) -> Option<Delta> {
        let text = self.text.get(self.given..end)?.to_string();
        self.given = end;
        (!text.is_empty()).then_some(Delta::Text(text))
    }

    /// Returns the number of bytes at the end that may be the beginning of a stop sequence.
    fn doubtful(&self) -> usize {
        let longest = |stop: &String| {
            let ends = stop.char_indices().map(|(at, _)| at).rev();
            ends.filter(|at| *at > 0)
                .find(|at| self.text.ends_with(&stop[..*at]))
                .unwrap_or(0)
        };
        self.stops.iter().map(longest).max().unwrap_or(0)
    }
}

/// Cuts a reply at the first stop sequence. Tool calls come after the text, so they are removed too.
pub(super) fn cut(reply: &mut Reply, stops: &[String]) {
    if let Some(at) = place(&reply.content, stops) {
        reply.content.truncate(at);
        reply.tool_calls.clear();
        reply.opaque = None;
        reply.finish_reason = "stop".to_string();
    }
}

fn place(text: &str, stops: &[String]) -> Option<usize> {
    let stops = stops.iter().filter(|stop| !stop.is_empty());
    stops.filter_map(|stop| text.find(stop.as_str())).min()
}
