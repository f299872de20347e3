//! Functions: natives are rows of data, closures refer to bytecode.

use std::borrow::Cow;
use std::fmt;
use std::rc::Rc;

use super::drops::discard_values;
use super::{Result, Value};
use crate::vm::{Args, Proto, Vm};

/// The number of arguments that a function takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arity {
    /// The minimum number of arguments.
    pub min: u8,
    /// `None`: any number from `min` on.
    pub max: Option<u8>,
}

impl Arity {
    /// Takes `count` arguments.
    pub const fn exactly(count: u8) -> Arity {
        Arity {
            min: count,
            max: Some(count),
        }
    }

    /// Takes `count` arguments or more.
    pub const fn at_least(count: u8) -> Arity {
        Arity {
            min: count,
            max: None,
        }
    }

    /// Takes from `min` to `max` arguments.
    pub const fn between(min: u8, max: u8) -> Arity {
        Arity {
            min,
            max: Some(max),
        }
    }

    /// Tells whether `count` arguments fit.
    pub fn takes(self, count: usize) -> bool {
        count >= usize::from(self.min) && self.max.is_none_or(|max| count <= usize::from(max))
    }
}

impl fmt::Display for Arity {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.max {
            Some(max) if max == self.min => {
                write!(out, "{max} argument{}", if max == 1 { "" } else { "s" })
            }
            Some(max) => write!(out, "{} to {max} arguments", self.min),
            None => write!(out, "{} or more arguments", self.min),
        }
    }
}

/// An expression and its result, both as source text.
pub type Example = (&'static str, &'static str);

/// A function written in Rust. Help, reference pages, completion and example tests read this row.
pub struct Native {
    /// The name without a namespace; the table that lists the native determines the namespace.
    pub name: &'static str,
    /// Each arity, as `(name arg ...)`, one per line.
    pub usage: &'static str,
    /// What the function does; the first sentence stands alone.
    pub doc: &'static str,
    /// Calls and their results; run by a test.
    pub examples: &'static [Example],
    /// The number of arguments that it takes.
    pub arity: Arity,
    /// The function itself.
    pub run: fn(&mut Vm, Args<'_>) -> Result<Value>,
}

impl fmt::Debug for Native {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "#native[{}]", self.name)
    }
}

/// A function written in the language, with its captured values.
pub struct Closure {
    /// The function's code.
    pub proto: Rc<Proto>,
    /// The captured values.
    pub captured: Box<[Value]>,
    /// A map, or nil.
    pub meta: Value,
}

impl Closure {
    /// Takes the captured values, so that the closure no longer holds itself.
    pub(super) fn empty(&self, spoils: &mut Vec<Value>) {
        let captured = self.captured.as_ptr().cast_mut();
        for idx in 0..self.captured.len() {
            // SAFETY: only garbage is emptied: the closure does not run, and no reference into it exists.
            spoils.push(unsafe { std::mem::replace(&mut *captured.add(idx), Value::Nil) });
        }
    }

    pub(crate) fn with_meta(&self, meta: Value) -> Closure {
        Closure {
            proto: self.proto.clone(),
            captured: self.captured.clone(),
            meta,
        }
    }
}

impl Drop for Closure {
    fn drop(&mut self) {
        discard_values(&mut self.captured);
    }
}

impl fmt::Debug for Closure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "#fn[{}]", self.proto.name())
    }
}

/// A function made by a native, such as the result of `(partial f 1)`: code and captured values.
pub struct NativeClosure {
    /// The name that errors and `pr` show.
    pub name: Cow<'static, str>,
    /// The number of arguments that it takes.
    pub arity: Arity,
    /// The captured values.
    pub captured: Box<[Value]>,
    /// The code; it receives the closure itself, for the captured values, and the arguments of the call.
    pub run: fn(&mut Vm, &NativeClosure, Args<'_>) -> Result<Value>,
    /// A map, or nil.
    pub meta: Value,
}

impl Native {
    /// Tells whether two rows are of one native. Addresses do not tell: optimised builds have rows and their functions
    /// several times.
    pub(crate) fn is(&self, other: &Native) -> bool {
        self.name == other.name && self.doc == other.doc
    }

    /// Returns which of `count` arguments is the collection, according to the usage; `None` if that is not clear.
    pub(crate) fn collection(&self, count: usize) -> Option<u32> {
        let lines = self.usage.lines().map(|line| {
            let words = line.trim_matches(['(', ')']).split_whitespace().skip(1);
            words.collect::<Vec<_>>()
        });
        let is_open = |params: &[&str]| params.contains(&"&");
        let params = lines
            .filter(|params| params.len() == count || is_open(params) && count + 2 >= params.len())
            .min_by_key(|params| is_open(params))?;
        if let [_] = params[..] {
            return Some(0);
        }
        // With several collections, any of them may be at fault.
        let names = ["coll", "xs", "args", "from"];
        let is_one = |param: &&str| names.contains(param);
        let at = params
            .iter()
            .filter(|param| **param != "&")
            .position(is_one)?;
        let is_last = !params.contains(&"colls");
        u32::try_from(at).ok().filter(|_| is_last)
    }
}

impl NativeClosure {
    pub(crate) fn with_meta(&self, meta: Value) -> NativeClosure {
        NativeClosure {
            name: self.name.clone(),
            arity: self.arity,
            captured: self.captured.clone(),
            run: self.run,
            meta,
        }
    }
}

impl Drop for NativeClosure {
    fn drop(&mut self) {
        discard_values(&mut self.captured);
    }
}

impl fmt::Debug for NativeClosure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "#native[{}]", self.name)
    }
}
