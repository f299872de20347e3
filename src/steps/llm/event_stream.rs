//! The binary framing of AWS: `application/vnd.amazon.eventstream`.
//!
//! Incremental: bytes in, events out. A message consists of its length, the length of its headers, a checksum of both,
//! headers, payload, and a checksum of the whole. It knows nothing of sockets or of the meaning of events.

use serde_json::json;

use crate::sse::Event;

/// The size of two lengths and their checksum.
const PRELUDE: usize = 12;
/// The size of the checksum at the end.
const SUM: usize = 4;
/// Maximum size of a message.
const MOST: usize = 17 << 20;

/// Collects bytes until they form events.
#[derive(Debug, Default)]
pub struct Parser {
    bytes: Vec<u8>,
}

impl Parser {
    /// Adds bytes, and returns the events that they complete.
    ///
    /// # Errors
    /// Fails if a length or a checksum is wrong: nothing after it can be read.
    pub fn push(&mut self, bytes: &[u8]) -> Result<Vec<Event>, String> {
        self.bytes.extend_from_slice(bytes);
        let mut events = Vec::new();
        let mut at = 0;
        while let Some(length) = whole(&self.bytes[at..])? {
            events.push(message(&self.bytes[at..at + length])?);
            at += length;
        }
        self.bytes.drain(..at);
        Ok(events)
    }

    /// Returns how many bytes wait for the end of their message.
    pub fn waiting(&self) -> usize {
        self.bytes.len()
    }
}

/// Returns the length of the first message, if it is complete.
fn whole(bytes: &[u8]) -> Result<Option<usize>, String> {
    if bytes.len() < PRELUDE {
        return Ok(None);
    }
    if crc32fast::hash(&bytes[..8]) != number(&bytes[8..]) {
        return Err("the checksum of a message's lengths is wrong".into());
    }
    let (length, headers) = (number(bytes) as usize, number(&bytes[4..]) as usize);
    if length > MOST || headers > length || length - headers < PRELUDE + SUM {
        return Err("the length of a message is impossible".into());
    }
    Ok((bytes.len() >= length).then_some(length))
}

/// Reads one whole message.
fn message(bytes: &[u8]) -> Result<Event, String> {
    let (body, sum) = bytes.split_at(bytes.len() - SUM);
    if crc32fast::hash(body) != number(sum) {
        return Err("the checksum of a message is wrong".into());
    }
    let (mut headers, payload) = body[PRELUDE..].split_at(number(&body[4..]) as usize);
    let (mut kind, mut code, mut message) = (String::new(), String::new(), String::new());
    let mut event = Event::default();
    while !headers.is_empty() {
        let (name, value) = header(&mut headers).ok_or("the headers of a message end too early")?;
        let Some(text) = value else { continue };
        match name.as_str() {
            ":message-type" => kind = text,
            ":event-type" | ":exception-type" => event.name = text,
            ":error-code" => code = text,
            ":error-message" => message = text,
            _ => {}
        }
    }
    event.data = String::from_utf8_lossy(payload).into_owned();
    if kind == "error" {
        event.name = "error".into();
        event.data = json!({"__type": code, "message": message}).to_string();
    }
    Ok(event)
}

/// Removes the first header: its name, and its value if that is text.
fn header(bytes: &mut &[u8]) -> Option<(String, Option<String>)> {
    let length = usize::from(take(bytes, 1)?[0]);
    let name = String::from_utf8_lossy(take(bytes, length)?).into_owned();
    let length = match take(bytes, 1)?[0] {
        0 | 1 => 0,
        2 => 1,
        3 => 2,
        4 => 4,
        5 | 8 => 8,
        9 => 16,
        kind @ (6 | 7) => {
            let length = take(bytes, 2)?;
            let length = usize::from(u16::from_be_bytes([length[0], length[1]]));
            let value = take(bytes, length)?;
            let text = (kind == 7).then(|| String::from_utf8_lossy(value).into_owned());
            return Some((name, text));
        }
        _ => return None,
    };
    take(bytes, length)?;
    Some((name, None))
}

fn take<'a>(bytes: &mut &'a [u8], count: usize) -> Option<&'a [u8]> {
    let (taken, rest) = bytes.split_at_checked(count)?;
    *bytes = rest;
    Some(taken)
}

/// Reads the first four bytes, which must exist.
fn number(bytes: &[u8]) -> u32 {
    u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
}
