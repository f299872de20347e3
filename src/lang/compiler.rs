//! From forms to bytecode: analysis resolves names and expands macros, liveness finds last uses, emission assigns
//! registers and selects instructions.
//!
//! Errors that can be detected before a program runs are reported here, with their place: undefined names, odd
//! bindings, `recur` outside of tail position, wrong numbers of arguments of known functions.

mod analyze;
mod destructure;
mod emit;
mod expand;
mod expansion;
mod inline;
mod liveness;
pub(crate) mod macros;
mod node;
mod scope;
mod special;
#[cfg(test)]
pub(crate) mod tree;
mod undefined;

use std::rc::Rc;

use crate::value::{Class, Closure, Exception, Result, Signal, Span, Symbol, Value};
use crate::vm::Vm;
use crate::vm::code::Proto;

pub(crate) use analyze::library_class;
pub(crate) use destructure::bindings as destructure;
pub(crate) use expand::{expand_once, macroexpand_1};
pub(crate) use undefined::is_known_everywhere;

/// Compiles a form of the current namespace to a function without arguments.
///
/// # Errors
/// A located exception of class `CompilerException`, or any exception that a macro throws.
pub(crate) fn compile(vm: &mut Vm, form: &Value) -> Result<Value> {
    let top = analyze::analyze_top(vm, form)?;
    let name: Rc<str> = Rc::from("top level");
    let body = emit::emit(
        &top.body,
        &emit::Shape {
            name: &name,
            params: &[],
            rest: None,
            locals: top.locals,
        },
    )?;
    body.body.keep_sources(&vm.world().sources.borrow());
    let fixed = Box::new([Some(Rc::new(body.body))]);
    let proto = Proto::new(name, fixed, None, true);
    Ok(Value::Fn(Rc::new(Closure {
        proto: Rc::new(proto),
        captured: Box::default(),
        meta: Value::Nil,
    })))
}

/// Returns the exception for a call of a method that no known type has.
pub(crate) fn unknown_method(vm: &Vm, name: Symbol) -> Exception {
    undefined::method(vm, name)
}

/// Returns an error of the program text.
pub(crate) fn error(code: &'static str, span: Span, message: impl Into<String>) -> Exception {
    Exception::new(Class::COMPILER_EXCEPTION, code, message).at(span)
}

/// Returns an error of the program text as a result.
pub(crate) fn fail<T>(code: &'static str, span: Span, message: impl Into<String>) -> Result<T> {
    Err(Signal::from(error(code, span, message)))
}
