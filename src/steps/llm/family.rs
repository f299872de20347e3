//! What a wire format is: pure functions from calls to bodies, and from bodies and events to replies.
//!
//! One file a format. Who speaks which, and with what small differences, stands in the [`Dialect`]s.

use reqwest::Url;
use serde_json::Value as Json;

use super::call::{Call, Delta, Reply};
use super::dialect::Dialect;
use super::error::LlmError;
use crate::sse;

/// A wire format.
pub trait Family: Sync {
    /// What flows call it: `chat-completions-compatible`, `anthropic` ...
    fn id(&self) -> &'static str;

    /// Returns where a streamed call goes. `base` ends without a slash.
    fn address(&self, base: &Url, call: &Call) -> Url;

    /// Returns the headers that are always the same.
    fn headers(&self) -> &'static [(&'static str, &'static str)] {
        &[]
    }

    /// Returns the body of a streamed call.
    fn encode(&self, call: &Call, dialect: &Dialect) -> Json;

    /// Reads a whole answer, from a server that does not stream.
    ///
    /// # Errors
    /// When it is an error, or no answer of this format.
    fn decode(&self, provider: &str, body: &[u8]) -> Result<Reply, LlmError>;

    /// Begins to put a streamed answer together.
    fn stream(&self, provider: &str) -> Box<dyn Stream>;
}

/// A streamed answer being put together.
pub trait Stream {
    /// Takes one event and returns what it adds.
    ///
    /// # Errors
    /// When it is an error, or no event of this format.
    fn push(&mut self, event: &sse::Event) -> Result<Vec<Delta>, LlmError>;

    /// Tells whether nothing more is to come.
    fn is_done(&self) -> bool;

    /// Returns how many characters of text have come.
    fn chars(&self) -> usize;

    /// Returns the reply, at the end of the stream.
    ///
    /// # Errors
    /// When the stream broke off before its end.
    fn finish(self: Box<Self>) -> Result<Reply, LlmError>;
}

/// Adds segments to the path of an address.
pub fn below(base: &Url, segments: &str) -> Url {
    let mut url = base.clone();
    let path = format!("{}/{segments}", base.path().trim_end_matches('/'));
    url.set_path(&path);
    url
}
