//! Server-sent events: bytes in, events out.
//!
//! Incremental and as tolerant as the standard: any line ending, comments, a byte-order mark, chunks that end anywhere.
//! It knows nothing of sockets or of the meaning of events.

/// One event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Event {
    /// The `event:` field; empty if it is missing.
    pub name: String,
    pub data: String,
    pub id: Option<String>,
}

/// Collects bytes until they form events.
#[derive(Debug, Default)]
pub struct Parser {
    line: Vec<u8>,
    after_return: bool,
    started: bool,
    event: Event,
    has_data: bool,
}

impl Parser {
    /// Adds bytes and returns the events that they complete.
    pub fn push(&mut self, bytes: &[u8]) -> Vec<Event> {
        let mut events = Vec::new();
        for byte in bytes {
            let after_return = std::mem::take(&mut self.after_return);
            match byte {
                b'\n' if after_return => {}
                b'\n' | b'\r' => {
                    self.after_return = *byte == b'\r';
                    let line = std::mem::take(&mut self.line);
                    events.extend(self.end_line(&line));
                }
                byte => self.line.push(*byte),
            }
        }
        events
    }

    /// Returns the event that the end of the stream completes. The standard drops it, but servers that omit the last
    /// empty line are more common than truncated events.
    pub fn finish(mut self) -> Option<Event> {
        let line = std::mem::take(&mut self.line);
        if !line.is_empty() {
            self.end_line(&line);
        }
        self.end_line(b"")
    }

    /// Returns how many bytes wait for the end of their line.
    pub fn waiting(&self) -> usize {
        self.line.len() + self.event.data.len()
    }

    fn end_line(&mut self, line: &[u8]) -> Option<Event> {
        let line = if std::mem::replace(&mut self.started, true) {
            line
        } else {
            line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line)
        };
        if line.is_empty() {
            let event = std::mem::take(&mut self.event);
            return std::mem::take(&mut self.has_data).then_some(event);
        }
        let line = String::from_utf8_lossy(line);
        let (field, value) = match line.split_once(':') {
            Some((field, value)) => (field, value.strip_prefix(' ').unwrap_or(value)),
            None => (line.as_ref(), ""),
        };
        match field {
            "data" => {
                if self.has_data {
                    self.event.data.push('\n');
                }
                self.has_data = true;
                self.event.data.push_str(value);
            }
            "event" => self.event.name = value.to_string(),
            "id" if !value.contains('\0') => self.event.id = Some(value.to_string()),
            _ => {}
        }
        None
    }
}
