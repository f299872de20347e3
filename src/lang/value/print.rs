//! Printing: text that the reader can read back.
//!
//! Open collections wait on an explicit stack, so depth costs memory but no native stack. Values without items are
//! written in `atom`, dates in `inst`.

mod atom;
mod frame;
mod inst;

use self::frame::Frame;
use super::{Class, Exception, Force, Object, Result, Shape, Unforced, Value};

pub use atom::write_str;
pub use inst::{CivilTime, civil_time, millis_of};

/// The options of printing.
#[derive(Debug, Clone, Copy)]
pub struct PrintOptions {
    /// Whether to quote strings and escape characters (`pr`) or not (`print`).
    pub readable: bool,
    /// `*print-length*`.
    pub length: Option<usize>,
    /// `*print-level*`.
    pub level: Option<usize>,
    /// `*print-meta*`.
    pub meta: bool,
    /// `*print-namespace-maps*`.
    pub namespace_maps: bool,
    /// Whether the program has printing methods of its own, which take precedence.
    pub extended: bool,
}

impl PrintOptions {
    /// The options of `pr-str` without limits.
    pub const READABLE: PrintOptions = PrintOptions {
        readable: true,
        length: None,
        level: None,
        meta: false,
        namespace_maps: false,
        extended: false,
    };
    /// The options of `print-str` without limits.
    pub const PLAIN: PrintOptions = PrintOptions {
        readable: false,
        ..PrintOptions::READABLE
    };
    /// The options for error messages, which never show all of a large or infinite value.
    pub const BRIEF: PrintOptions = PrintOptions {
        length: Some(8),
        level: Some(4),
        ..PrintOptions::READABLE
    };
}

/// Maximum number of open collections; only a value that contains itself reaches it.
const MAX_DEPTH: usize = 1_000_000;

/// Prints a value to the end of `out`.
///
/// # Errors
/// Any exception thrown while a lazy part is computed; an exception if the value contains itself.
pub fn print_value(
    out: &mut String,
    force: &mut dyn Force,
    value: &Value,
    options: PrintOptions,
) -> Result<()> {
    if !options.extended && is_simple(value) {
        atom::write(out, value, options);
        return Ok(());
    }
    let mut printer = Printer {
        out,
        options,
        open: Vec::new(),
        work: 0,
    };
    if !force.computes() {
        // The value may be printed for a message, which may be created anywhere.
        return super::meter::without_yielding(|| {
            printer.start(value, force)?;
            printer.finish(force)
        });
    }
    printer.start(value, force)?;
    printer.finish(force)
}

/// Tells whether a value holds no others, and costs no more than its text: most calls of `str` print such values.
#[inline]
fn is_simple(value: &Value) -> bool {
    matches!(
        value,
        Value::Nil
            | Value::Bool(_)
            | Value::Int(_)
            | Value::Float(_)
            | Value::Char(_)
            | Value::Keyword(_)
            | Value::Text(_)
    )
}

/// Prints a value while ignoring the program's methods for it; methods for its parts are used.
///
/// # Errors
/// As [`print_value`].
pub fn print_default(
    out: &mut String,
    force: &mut dyn Force,
    value: &Value,
    options: PrintOptions,
) -> Result<()> {
    let mut printer = Printer {
        out,
        options,
        open: Vec::new(),
        work: 0,
    };
    printer.start_own(value, force)?;
    printer.finish(force)
}

/// Returns a value as error messages show it: short, on one line.
pub fn brief(value: &Value) -> String {
    let mut shown = String::new();
    // Nothing is computed here, so printing fails only for circular values; what was printed until then is enough.
    let _ = print_value(&mut shown, &mut Unforced, value, PrintOptions::BRIEF);
    const LONGEST: usize = 160;
    if shown.len() > LONGEST {
        let end = (0..=LONGEST).rev().find(|at| shown.is_char_boundary(*at));
        shown.truncate(end.unwrap_or(0));
        shown.push_str("...");
    }
    shown
}

/// Returns a value and its kind: `:a (a keyword)`, or `nil`.
pub fn describe(value: &Value) -> String {
    if value.is_nil() {
        return "nil".to_owned();
    }
    format!("{} ({})", brief(value), value.kind())
}

/// Returns the kind of collection that an object of a program's type is printed as.
fn shape(value: &Value) -> Option<Shape> {
    match value {
        Value::Object(object) => match &**object {
            Object::Instance(instance) => instance.instance_type.shape(),
            _ => None,
        },
        _ => None,
    }
}

/// The state of printing a value.
struct Printer<'a> {
    out: &'a mut String,
    options: PrintOptions,
    open: Vec<Frame>,
    work: u32,
}

/// Number of items that are written between two payments.
const MANY: u32 = 256;

impl Printer<'_> {
    /// Pays for an item.
    #[inline]
    fn tick(&mut self, force: &mut dyn Force) -> Result<()> {
        self.work += 1;
        if self.work < MANY {
            return Ok(());
        }
        self.work = 0;
        force.charge(MANY)
    }

    fn finish(mut self, force: &mut dyn Force) -> Result<()> {
        while let Some(mut frame) = self.open.pop() {
            self.tick(force)?;
            // The frame is off the stack while it advances, and is pushed back below the frame of its child.
            if let Some(child) = frame.advance(&mut self, force)? {
                self.open.push(frame);
                self.start(&child, force)?;
            }
        }
        // Writing a number with many digits cannot fail, so the stop is reported here.
        super::meter::stopped()
    }

    /// Writes the output of the program's printing method, if there is one for this value.
    fn start(&mut self, value: &Value, force: &mut dyn Force) -> Result<()> {
        if self.options.extended
            && let Some(text) = force.printed(value, self.options)?
        {
            self.out.push_str(&text);
            return Ok(());
        }
        self.start_own(value, force)
    }

    /// Writes an object of a program's type as the collection that its type implements.
    fn start_own(&mut self, value: &Value, force: &mut dyn Force) -> Result<()> {
        let Some(shape) = shape(value) else {
            return self.start_default(value);
        };
        match force.own_items(value)? {
            Some(items) if !self.is_too_deep() => {
                let frame = frame::open_own(self, force, shape, &items)?;
                self.open.push(frame);
                Ok(())
            }
            _ => self.start_default(value),
        }
    }

    /// Tells whether the number of open collections has reached `*print-level*`.
    fn is_too_deep(&self) -> bool {
        self.options
            .level
            .is_some_and(|limit| self.open.iter().filter(|frame| frame.is_level()).count() >= limit)
    }

    /// Writes a value that holds no others; otherwise writes its opening and pushes the rest to the stack.
    fn start_default(&mut self, value: &Value) -> Result<()> {
        if atom::write(self.out, value, self.options) {
            return Ok(());
        }
        if self.open.len() > MAX_DEPTH {
            return Err(Exception::new(
                Class::STACK_OVERFLOW,
                "E0302",
                "the value to print nests too deep",
            )
            .hint("does it contain itself, as an atom can?")
            .into());
        }
        if value.is_compound() && self.is_too_deep() {
            self.out.push('#');
            return Ok(());
        }
        if self.options.meta && self.options.readable && !value.meta().is_nil() {
            let frames = frame::with_meta(self, value);
            self.open.extend(frames);
            return Ok(());
        }
        let frame = frame::open(self, value);
        self.open.push(frame);
        Ok(())
    }
}
