//! How a stream is cut into events: a family says which way, and reads the events whichever it is.

use super::event_stream;
use crate::sse::{self, Event};

/// A way to cut a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frames {
    /// Server-sent events.
    Sse,
    /// Messages of AWS, with sums. Their type is the event's name.
    AwsEvents,
}

impl Frames {
    /// Returns what the request says that it accepts.
    pub fn accept(self) -> &'static str {
        match self {
            Frames::Sse => "text/event-stream, application/json",
            Frames::AwsEvents => "application/vnd.amazon.eventstream, application/json",
        }
    }

    pub fn decoder(self) -> Decoder {
        match self {
            Frames::Sse => Decoder::Sse(sse::Parser::default()),
            Frames::AwsEvents => Decoder::AwsEvents(event_stream::Parser::default()),
        }
    }
}

/// Collects bytes until they make events.
pub enum Decoder {
    Sse(sse::Parser),
    AwsEvents(event_stream::Parser),
}

impl Decoder {
    /// Takes the next bytes and returns the events that they complete.
    ///
    /// # Errors
    /// When the bytes cannot be of such a stream.
    pub fn push(&mut self, bytes: &[u8]) -> Result<Vec<Event>, String> {
        match self {
            Decoder::Sse(parser) => Ok(parser.push(bytes)),
            Decoder::AwsEvents(parser) => parser.push(bytes),
        }
    }

    /// Returns the event that the end of the stream completes.
    pub fn finish(self) -> Option<Event> {
        match self {
            Decoder::Sse(parser) => parser.finish(),
            Decoder::AwsEvents(_) => None,
        }
    }

    /// Returns how many bytes wait for the end of their event.
    pub fn waiting(&self) -> usize {
        match self {
            Decoder::Sse(parser) => parser.waiting(),
            Decoder::AwsEvents(parser) => parser.waiting(),
        }
    }
}
