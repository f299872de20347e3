//! Printed text on its way to the host.

use super::{Stream, Vm};
use crate::value::{Class, Exception, Result};

impl Vm {
    /// Writes printed text to the host. Bindings of `*out*` are handled in `core`.
    ///
    /// # Errors
    /// When the host cannot write it.
    pub fn write(&mut self, stream: Stream, text: &str) -> Result<()> {
        if text.is_empty() {
            return Ok(());
        }
        self.host().write(stream, text).map_err(|why| {
            Exception::new(Class::IO_EXCEPTION, "E0385", format!("cannot print: {why}")).into()
        })
    }
}
