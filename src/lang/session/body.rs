//! A form that is evaluated repeatedly in the same session, and compiled once.

use std::cell::RefCell;

use super::loader::{Top, expand_top};
use crate::compiler;
use crate::value::{Result, Value};
use crate::vm::Vm;

/// A form that is evaluated repeatedly, as [`super::Session::eval`] does it. The macros and definitions that it depends
/// on must not change in between.
///
/// Each form of a `(do ...)` is compiled when the first evaluation reaches it. After a compile error, the body can no
/// longer be used.
#[derive(Default)]
pub struct Body {
    compiled: RefCell<Vec<Value>>,
    /// The forms that no evaluation has reached yet, in reverse order.
    left: RefCell<Vec<Value>>,
}

impl std::fmt::Debug for Body {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let compiled = self.compiled.borrow().len();
        let left = self.left.borrow().len();
        write!(out, "Body({compiled} compiled, {left} left)")
    }
}

impl Body {
    /// Prepares a form; nothing is compiled yet.
    #[must_use]
    pub fn new(form: &Value) -> Body {
        Body {
            compiled: RefCell::default(),
            left: RefCell::new(vec![form.clone()]),
        }
    }

    /// Compiles a form to be evaluated after the previous ones, without evaluating those first.
    ///
    /// # Errors
    /// An error in the form; the body can then no longer be used.
    pub fn compile_more(&self, vm: &mut Vm, form: &Value) -> Result<()> {
        self.left.borrow_mut().push(form.clone());
        while self.compile_next(vm)?.is_some() {}
        Ok(())
    }

    /// Evaluates the form in the session of the machine, which must be the same in each call.
    ///
    /// # Errors
    /// The exception that it throws, or an error in the form.
    pub fn eval(&self, vm: &mut Vm) -> Result<Value> {
        let mut last = Value::Nil;
        let mut next = 0;
        loop {
            let known = self.compiled.borrow().get(next).cloned();
            let function = match known {
                Some(function) => function,
                None => match self.compile_next(vm)? {
                    Some(function) => function,
                    None => return Ok(last),
                },
            };
            last = vm.invoke(&function, &mut [])?;
            next += 1;
        }
    }

    fn compile_next(&self, vm: &mut Vm) -> Result<Option<Value>> {
        loop {
            let Some(form) = self.left.borrow_mut().pop() else {
                return Ok(None);
            };
            match expand_top(vm, &form)? {
                Top::Forms(forms) => self.left.borrow_mut().extend(forms.into_iter().rev()),
                Top::Form(form) => {
                    let function = compiler::compile(vm, &form)?;
                    self.compiled.borrow_mut().push(function.clone());
                    return Ok(Some(function));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Body;
    use crate::sandbox::Sandbox;
    use crate::session::Session;
    use crate::value::{Symbol, Value};

    fn body(session: &Session, text: &str) -> Body {
        let quoted = session.evaluate(&format!("'{text}")).expect("a form");
        Body::new(&quoted)
    }

    #[test]
    fn a_body_is_compiled_once_and_evaluates_alike_each_time() {
        let session = Session::new();
        session
            .evaluate("(def expansions (atom 0)) (def evaluations (atom 0))")
            .expect("definitions");
        session
            .evaluate(
                "(defmacro counted [x] (swap! expansions inc) `(do (swap! evaluations inc) ~x))",
            )
            .expect("a macro");
        let body = body(
            &session,
            "(do (do) (counted 1) (do (def later (+ 1 @evaluations)) (let [x (counted 2)] [x later])))",
        );
        let mut vm = session.vm(Box::new(Sandbox::new()));
        for turn in 1..=3 {
            let value = body.eval(&mut vm).expect("a value");
            let expected = Value::vector([Value::Int(2), Value::Int(2 * turn)]);
            assert_eq!(value, expected);
        }
        let count = |name| session.evaluate(&format!("@{name}")).expect("a count");
        assert_eq!(
            (count("expansions"), count("evaluations")),
            (Value::Int(2), Value::Int(6))
        );
    }

    #[test]
    fn an_error_in_a_later_form_is_reported_when_it_is_reached() {
        let session = Session::new();
        let body = body(&session, "(do (def before 1) (let [x] x))");
        let mut vm = session.vm(Box::new(Sandbox::new()));
        assert!(body.eval(&mut vm).is_err());
        assert!(session.world().resolve(Symbol::new("before")).is_some());
    }

    #[test]
    fn an_empty_body_is_nil() {
        let session = Session::new();
        let mut vm = session.vm(Box::new(Sandbox::new()));
        assert_eq!(
            body(&session, "(do)").eval(&mut vm).expect("nil"),
            Value::Nil
        );
    }
}
