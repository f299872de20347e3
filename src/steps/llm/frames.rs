//! The division of a stream into events, which a family selects.

use super::event_stream;
use crate::sse::{self, Event};

/// A way to divide a stream into events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frames {
    /// Server-sent events.
    Sse,
    /// Messages of AWS, with checksums. Their type is the event's name.
    AwsEvents,
}

impl Frames {
    /// Returns the value of the request's `Accept` header.
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

/// Collects bytes until they form events.
pub enum Decoder {
    Sse(sse::Parser),
    AwsEvents(event_stream::Parser),
}

impl Decoder {
    /// Adds bytes, and returns the events that they complete.
    ///
    /// # Errors
    /// Fails if the bytes cannot be part of such a stream.
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
