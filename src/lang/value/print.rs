//! Printing: text that the reader reads back.
//!
//! Open collections wait on an explicit stack, so depth costs memory and never the native stack. What
//! one value looks like is in `atom` for values without items, and in `inst` for dates.

mod atom;
mod frame;
mod inst;

use self::frame::Frame;
use super::{Class, Exception, Force, Object, Result, Shape, Unforced, Value};

pub use atom::write_str;
pub use inst::{CivilTime, civil_time, millis_of};

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
    /// Whether the program has methods of its own for printing, which are asked first.
    pub extended: bool,
}

impl PrintOptions {
    /// `pr-str` without limits.
    pub const READABLE: PrintOptions = PrintOptions {
        readable: true,
        length: None,
        level: None,
        meta: false,
        namespace_maps: false,
        extended: false,
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

/// How many collections may be open at once: only what contains itself comes so deep.
const MAX_DEPTH: usize = 1_000_000;

/// Prints a value to the end of `out`.
///
/// # Errors
/// Whatever computing a lazy part throws; an exception when the value contains itself.
pub fn print_value(
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
    if !force.computes() {
        // It may be printed for a message, wherever that is made.
        return super::meter::without_turns(|| {
            printer.start(value, force)?;
            printer.finish(force)
        });
    }
    printer.start(value, force)?;
    printer.finish(force)
}

/// Prints a value as if the program had no method for it; it may have some for its parts.
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

/// Returns a value as an error message shows it: short, in one line.
pub fn brief(value: &Value) -> String {
    let mut shown = String::new();
    // Nothing is computed for it, so it can only fail for being circular; then what there is will do.
    let _ = print_value(&mut shown, &mut Unforced, value, PrintOptions::BRIEF);
    const LONGEST: usize = 160;
    if shown.len() > LONGEST {
        let end = (0..=LONGEST).rev().find(|at| shown.is_char_boundary(*at));
        shown.truncate(end.unwrap_or(0));
        shown.push_str("...");
    }
    shown
}

/// Returns a value and what it is: `:a (a keyword)`, or `nil`.
pub fn describe(value: &Value) -> String {
    if value.is_nil() {
        return "nil".to_owned();
    }
    format!("{} ({})", brief(value), value.kind())
}

/// Returns as what kind of collection an object of the program's own types is written.
fn shape(value: &Value) -> Option<Shape> {
    match value {
        Value::Object(object) => match &**object {
            Object::Instance(instance) => instance.instance_type.shape(),
            _ => None,
        },
        _ => None,
    }
}

/// What is being written.
struct Printer<'a> {
    out: &'a mut String,
    options: PrintOptions,
    open: Vec<Frame>,
    work: u32,
}

/// How many items are written between two payments.
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
            // The frame is off the stack while it works, and goes back below what it opens.
            if let Some(child) = frame.advance(&mut self, force)? {
                self.open.push(frame);
                self.start(&child, force)?;
            }
        }
        // Numbers of many digits cannot fail where they are written.
        super::meter::stopped()
    }

    /// Writes what the program's own method prints, if it has one for this value.
    fn start(&mut self, value: &Value, force: &mut dyn Force) -> Result<()> {
        if self.options.extended
            && let Some(text) = force.printed(value, self.options)?
        {
            self.out.push_str(&text);
            return Ok(());
        }
        self.start_own(value, force)
    }

    /// Writes a value as the collection that its type says it is, where it is an object of the program's own.
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

    /// Tells whether `*print-level*` collections are open.
    fn is_too_deep(&self) -> bool {
        self.options
            .level
            .is_some_and(|limit| self.open.iter().filter(|frame| frame.is_level()).count() >= limit)
    }

    /// Writes a value whole where it holds no others, else its opening, and leaves the rest on the stack.
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
