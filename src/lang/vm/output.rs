//! What a program prints: to the host, or into a text that somebody collects.

use super::{Host, Stream, Vm};
use crate::value::{Class, Exception, Result};

impl Vm {
    /// Writes printed text to the innermost collector, or else to the host.
    ///
    /// # Errors
    /// When the host cannot write it.
    pub fn write(&mut self, stream: Stream, text: &str) -> Result<()> {
        if stream == Stream::Out
            && let Some(collected) = self.captures.last_mut()
        {
            collected.push_str(text);
            return Ok(());
        }
        if text.is_empty() {
            return Ok(());
        }
        let host: &mut dyn Host = self.host();
        host.write(stream, text).map_err(|why| {
            Exception::new(Class::IO_EXCEPTION, "E0385", format!("cannot print: {why}")).into()
        })
    }

    /// Collects what is printed from now on, until [`Vm::end_capture`].
    pub fn begin_capture(&mut self) {
        self.captures.push(String::new());
    }

    /// Ends the innermost collection and returns what it has.
    pub fn end_capture(&mut self) -> String {
        self.captures.pop().unwrap_or_default()
    }
}
