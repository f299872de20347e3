//! From forms to bytecode: analysis resolves names and expands macros, liveness finds last uses, emission
//! assigns registers and selects instructions.
//!
//! Everything that can be known before a program runs is refused here, with its place: names that mean
//! nothing, odd bindings, `recur` where it cannot be, wrong numbers of arguments of known functions.

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

/// Compiles a form of the current namespace to a function of no arguments.
///
/// # Errors
/// A located exception of class `CompilerException`, or whatever a macro throws.
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

/// Describes a method that nothing has, when it is called.
pub(crate) fn unknown_method(vm: &Vm, name: Symbol) -> Exception {
    undefined::method(vm, name)
}

/// An error of the program text.
pub(crate) fn error(code: &'static str, span: Span, message: impl Into<String>) -> Exception {
    Exception::new(Class::COMPILER_EXCEPTION, code, message).at(span)
}

/// An error of the program text, as a result.
pub(crate) fn fail<T>(code: &'static str, span: Span, message: impl Into<String>) -> Result<T> {
    Err(Signal::from(error(code, span, message)))
}
