//! The same cases run on coroutines and on threads.

use std::cell::Cell;

use super::*;
use crate::vm::NoHost;

type Body = Box<dyn FnOnce(&mut Vm) -> Result<Value>>;

fn both(check: impl Fn(&dyn Fn(Body) -> Fiber)) {
    let session = Session::new();
    check(&|body| Fiber::new(&session, Box::new(NoHost::default()), body));
    check(&|body| Fiber::on_thread(&session, Box::new(NoHost::default()), body));
}

fn ask(vm: &mut Vm, question: i64) -> Result<i64> {
    let answer = vm.suspend(Value::Int(question))?;
    Ok(answer.as_int().expect("an integer"))
}

/// Returns the value that a body requests.
fn requested(exit: Exit) -> Value {
    match exit {
        Exit::Step(request) => request.take().expect("a value"),
        exit => panic!("{exit:?}"),
    }
}

#[test]
fn a_body_makes_a_request_and_resumes_with_the_answer() {
    both(|start| {
        let mut fiber = start(Box::new(|vm| {
            let first = ask(vm, 1)?;
            let second = ask(vm, 2)?;
            Ok(Value::Int(first + second))
        }));
        assert_eq!(requested(fiber.resume(Ok(Value::Nil))), Value::Int(1));
        assert_eq!(requested(fiber.resume(Ok(Value::Int(10)))), Value::Int(2));
        assert!(matches!(
            fiber.resume(Ok(Value::Int(20))),
            Exit::Done(Value::Int(30))
        ));
        assert!(fiber.is_over());
    });
}

#[test]
fn a_signal_is_raised_where_the_body_waits() {
    both(|start| {
        let mut fiber = start(Box::new(|vm| ask(vm, 1).map(Value::Int)));
        fiber.resume(Ok(Value::Nil));
        let exit = fiber.resume(Err(Stop::Cancelled.into()));
        assert!(matches!(exit, Exit::Stopped(Stop::Cancelled)));
    });
}

#[test]
fn running_out_of_fuel_suspends_the_body() {
    both(|start| {
        let mut fiber = start(Box::new(|vm| {
            vm.charge(1)?;
            vm.charge(1_000_001)?;
            Ok(Value::Nil)
        }));
        assert!(matches!(fiber.resume(Ok(Value::Nil)), Exit::OutOfFuel));
        let exit = fiber.resume(Err(Stop::Deadline.into()));
        assert!(matches!(exit, Exit::Stopped(Stop::Deadline)));
    });
}

#[test]
fn names_are_the_same_inside_and_outside_of_a_fiber() {
    both(|start| {
        let mut fiber = start(Box::new(|vm| {
            let answer = vm.suspend(Value::keyword("only-made-inside"))?;
            Ok(Value::from(answer == Value::keyword("only-made-outside")))
        }));
        assert_eq!(
            requested(fiber.resume(Ok(Value::Nil))),
            Value::keyword("only-made-inside")
        );
        let exit = fiber.resume(Ok(Value::keyword("only-made-outside")));
        assert!(matches!(exit, Exit::Done(Value::Bool(true))));
    });
}

struct Flag(Rc<Cell<bool>>);

impl Drop for Flag {
    fn drop(&mut self) {
        self.0.set(true);
    }
}

#[test]
fn dropping_a_suspended_fiber_runs_destructors() {
    both(|start| {
        let dropped = Rc::new(Cell::new(false));
        let flag = Flag(dropped.clone());
        let mut fiber = start(Box::new(move |vm| {
            let _flag = flag;
            ask(vm, 1).map(Value::Int)
        }));
        fiber.resume(Ok(Value::Nil));
        assert!(!dropped.get());
        drop(fiber);
        assert!(dropped.get());
    });
}

#[test]
fn a_fiber_that_never_ran_takes_no_stack() {
    let session = Session::new();
    let mut fiber = Fiber::new(&session, Box::new(NoHost::default()), |_| Ok(Value::Nil));
    let exit = fiber.resume(Err(Stop::Cancelled.into()));
    assert!(matches!(exit, Exit::Stopped(Stop::Cancelled)));
}

#[test]
fn a_panic_of_the_body_reaches_the_owner() {
    both(|start| {
        let mut fiber = start(Box::new(|_| panic!("on purpose")));
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            fiber.resume(Ok(Value::Nil))
        }));
        assert!(result.is_err());
    });
}

#[test]
fn stacks_are_reused() {
    let session = Session::new();
    let mut places = std::collections::BTreeSet::new();
    for _ in 0..50 {
        let mut fiber = Fiber::new(&session, Box::new(NoHost::default()), |vm| {
            Ok(Value::from(vm.native_stack_limit()))
        });
        if let Exit::Done(Value::Int(place)) = fiber.resume(Ok(Value::Nil)) {
            places.insert(place);
        }
    }
    assert_eq!(places.len(), 1);
}
