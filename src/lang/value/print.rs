//! Printing: text that the reader reads back.

use super::{Force, Result, Value};

/// How to print.
#[derive(Debug, Clone, Copy)]
pub struct PrintOptions {
    /// Quote strings and escape characters (`pr`), or not (`print`).
    pub readable: bool,
    /// `*print-length*`.
    pub length: Option<usize>,
    /// `*print-level*`.
    pub level: Option<usize>,
    /// `*print-meta*`.
    pub meta: bool,
    /// `*print-namespace-maps*`.
    pub namespace_maps: bool,
}

impl PrintOptions {
    /// `pr-str` without limits.
    pub const READABLE: PrintOptions = PrintOptions {
        readable: true,
        length: None,
        level: None,
        meta: false,
        namespace_maps: false,
    };
    /// `print-str` without limits.
    pub const PLAIN: PrintOptions = PrintOptions {
        readable: false,
        ..PrintOptions::READABLE
    };
    /// For error messages: never the whole of something large or infinite.
    pub const BRIEF: PrintOptions = PrintOptions {
        length: Some(8),
        level: Some(4),
        ..PrintOptions::READABLE
    };
}

/// Prints a value to the end of `out`.
///
/// # Errors
/// Whatever computing a lazy part throws.
pub fn print_value(
    out: &mut String,
    force: &mut dyn Force,
    value: &Value,
    options: PrintOptions,
) -> Result<()> {
    let _ = (force, options);
    out.push_str(&format!("{value:?}"));
    Ok(())
}
