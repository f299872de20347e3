//! Bytecode as data.

use std::rc::Rc;

/// A compiled function.
#[derive(Debug)]
pub struct Proto {
    pub(crate) name: Rc<str>,
}

impl Proto {
    /// Returns the function's name for messages.
    pub fn name(&self) -> &str {
        &self.name
    }
}
