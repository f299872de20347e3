//! The most frequently used macros as natives; the others are in `stdlib/`.
//!
//! A macro is a function of the form, the environment (a map with the names of the locals), and the arguments of the
//! call.

mod absent;
mod binding;
mod control;
mod definition;
mod logic;
mod namespace;

use crate::value::{List, Native, Result, Symbol, Value};
use crate::vm::World;

/// The files of macros. Sorted.
const AREAS: &[&[Native]] = &[
    absent::FNS,
    binding::FNS,
    control::FNS,
    definition::FNS,
    logic::FNS,
    namespace::FNS,
];

/// Defines every native macro in `clojure.core`.
pub(crate) fn install(world: &World) {
    for native in AREAS.iter().copied().flatten() {
        let var = world.core.intern(Symbol::new(native.name));
        var.set_root(Value::Native(native));
        var.is_macro.set(true);
    }
    // Compiled directly, and visible as macros; those without an expansion have only their name.
    for name in super::special::MACROS {
        let var = world.core.intern(Symbol::new(name));
        if !var.is_bound() {
            var.set_root(Value::Nil);
        }
        var.is_macro.set(true);
    }
}

/// Returns a list form.
fn form(items: impl IntoIterator<Item = Value, IntoIter: DoubleEndedIterator>) -> Value {
    List::of(items)
}

/// Returns a symbol form.
fn symbol(name: &str) -> Value {
    Value::Symbol(Symbol::new(name))
}

/// Returns a list form, for callers outside of the macros.
pub(super) fn form_of<const N: usize>(items: [Value; N]) -> Value {
    List::of(items)
}

/// Returns a symbol form, for callers outside of the macros.
pub(super) fn symbol_of(name: &str) -> Value {
    symbol(name)
}

/// Returns a list form that begins with `head` and ends with `rest`.
fn with_rest(head: impl IntoIterator<Item = Value>, rest: &[Value]) -> Value {
    let mut items: Vec<Value> = head.into_iter().collect();
    items.extend_from_slice(rest);
    List::of(items)
}

/// The result of a macro.
type Expansion = Result<Value>;
