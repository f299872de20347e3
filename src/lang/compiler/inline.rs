//! Core functions that are compiled to instructions.

use crate::value::Native;
use crate::vm::quick::QUICK;

/// An operation of the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Inline {
    Add,
    Sub,
    Mul,
    Inc,
    Dec,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    Equal,
    Not,
    IsNil,
    IsSome,
    /// A function that only reads its arguments.
    Quick(Quick),
}

/// A native of the core whose common case is an instruction: see `vm::quick`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Quick {
    pub native: &'static Native,
    /// The index in the table.
    pub idx: u8,
}

impl PartialEq for Quick {
    fn eq(&self, other: &Quick) -> bool {
        self.idx == other.idx
    }
}

impl Eq for Quick {}

/// Returns the operation of a native of the core called with `count` arguments.
pub(super) fn operation_of(native: &'static Native, count: usize) -> Option<Inline> {
    let quick = |(name, arity, _): &(&str, usize, _)| *name == native.name && *arity == count;
    operation(native.name, count).or_else(|| {
        let idx = QUICK.iter().position(quick)? as u8;
        Some(Inline::Quick(Quick { native, idx }))
    })
}

/// Returns the operation of a core function called with `count` arguments.
fn operation(name: &str, count: usize) -> Option<Inline> {
    Some(match (name, count) {
        ("+", 2..) => Inline::Add,
        ("-", 2..) => Inline::Sub,
        ("*", 2..) => Inline::Mul,
        ("inc", 1) => Inline::Inc,
        ("dec", 1) => Inline::Dec,
        ("<", 2) => Inline::Less,
        ("<=", 2) => Inline::LessEqual,
        (">", 2) => Inline::Greater,
        (">=", 2) => Inline::GreaterEqual,
        ("=", 2) => Inline::Equal,
        ("not", 1) => Inline::Not,
        ("nil?", 1) => Inline::IsNil,
        ("some?", 1) => Inline::IsSome,
        _ => return None,
    })
}

impl Inline {
    /// Returns the name of the core function.
    pub(super) fn name(self) -> &'static str {
        match self {
            Inline::Add => "+",
            Inline::Sub => "-",
            Inline::Mul => "*",
            Inline::Inc => "inc",
            Inline::Dec => "dec",
            Inline::Less => "<",
            Inline::LessEqual => "<=",
            Inline::Greater => ">",
            Inline::GreaterEqual => ">=",
            Inline::Equal => "=",
            Inline::Not => "not",
            Inline::IsNil => "nil?",
            Inline::IsSome => "some?",
            Inline::Quick(quick) => quick.native.name,
        }
    }

    /// Tells whether more than two arguments fold to the left.
    pub(super) fn folds(self) -> bool {
        matches!(self, Inline::Add | Inline::Sub | Inline::Mul)
    }
}

/// The replacements of core functions while `*unchecked-math*` is true: results that do not fit wrap around. Sorted.
const UNCHECKED: &[(&str, usize, &str)] = &[
    ("*", 2, "unchecked-multiply"),
    ("+", 2, "unchecked-add"),
    ("-", 1, "unchecked-negate"),
    ("-", 2, "unchecked-subtract"),
    ("byte", 1, "unchecked-byte"),
    ("char", 1, "unchecked-char"),
    ("dec", 1, "unchecked-dec"),
    ("double", 1, "unchecked-double"),
    ("float", 1, "unchecked-float"),
    ("inc", 1, "unchecked-inc"),
    ("int", 1, "unchecked-int"),
    ("long", 1, "unchecked-long"),
    ("short", 1, "unchecked-short"),
];

/// Returns the function that replaces a core function called with `count` arguments while results are not checked.
pub(super) fn unchecked(name: &str, count: usize) -> Option<&'static str> {
    let at = UNCHECKED.binary_search_by_key(&(name, count), |row| (row.0, row.1));
    at.ok().map(|at| UNCHECKED[at].2)
}

/// Natives that call none of their arguments: a function that uses only these cannot reach a step. Sorted.
const CALL_NOTHING: &[&str] = &[
    "*",
    "+",
    "-",
    "-as-double",
    "-as-long",
    "/",
    "<",
    "<=",
    "=",
    "==",
    ">",
    ">=",
    "assoc",
    "bit-and",
    "bit-or",
    "conj",
    "contains?",
    "count",
    "dec",
    "dissoc",
    "empty?",
    "even?",
    "get",
    "inc",
    "keyword",
    "keyword?",
    "map?",
    "max",
    "min",
    "mod",
    "name",
    "neg?",
    "nil?",
    "not",
    "not=",
    "number?",
    "odd?",
    "pos?",
    "quot",
    "rem",
    "str",
    "string?",
    "subs",
    "symbol?",
    "unchecked-add",
    "unchecked-dec",
    "unchecked-inc",
    "unchecked-multiply",
    "unchecked-negate",
    "unchecked-subtract",
    "vector",
    "vector?",
    "zero?",
];

/// Tells whether a native calls none of its arguments.
pub(super) fn calls_nothing(name: &str) -> bool {
    CALL_NOTHING.binary_search(&name).is_ok()
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_lists_are_sorted() {
        assert!(super::CALL_NOTHING.is_sorted());
        assert!(super::UNCHECKED.is_sorted());
    }
}
