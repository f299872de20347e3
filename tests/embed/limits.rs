//! Limits of fuel and memory, interrupts, captured output, and steps.

use std::cell::Cell;
use std::rc::Rc;

use flowstone_embed::fiber::{Exit, Fiber};
use flowstone_embed::value::Stop;
use flowstone_embed::vm::Vm;
use flowstone_embed::{Embed, Function, Interrupt, Output, Sandbox, Session, Value};

use super::shown;

const ENDLESS: &str =
    "(try (loop [] (recur)) (catch Throwable _ :caught) (finally (println \"out\")))";

#[test]
fn running_out_of_fuel_cannot_be_caught() {
    let session = Session::new();
    let output = Output::new();
    let host = Sandbox::new().fuel(50_000).output(&output);
    let failure = session
        .evaluate_in(host, "endless", ENDLESS)
        .expect_err("endless");
    assert_eq!(failure.stop(), Some(&Stop::OutOfFuel));
    assert!(failure.exception().is_none());
    assert_eq!(output.take(), "");
    for text in [
        "(reduce + (range 1000000000))",
        "(doall (iterate inc 0))",
        "(count (range 1e12))",
    ] {
        let host = Sandbox::new().fuel(50_000);
        let failure = session.evaluate_in(host, "long", text).expect_err("long");
        assert_eq!(failure.stop(), Some(&Stop::OutOfFuel), "{text}");
    }
    let host = Sandbox::new().fuel(50_000);
    assert_eq!(
        shown(
            &session,
            session.evaluate_in(host, "short", "(reduce + (range 100))")
        ),
        "4950"
    );
}

#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "the interrupt comes from outside"
)]
fn another_thread_interrupts() {
    let session = Session::new();
    let interrupt = Interrupt::new();
    let started = Interrupt::new();
    let (trigger, seen) = (interrupt.clone(), started.clone());
    let other = std::thread::spawn(move || {
        while !seen.is_set() {
            std::thread::yield_now();
        }
        trigger.trigger();
    });
    session.add(Function::new("started", move || started.trigger()));
    let host = Sandbox::new().interrupt(&interrupt);
    let failure = session
        .evaluate_in(host, "endless", "(started) (loop [] (recur))")
        .expect_err("endless");
    assert_eq!(
        failure.stop(),
        Some(&Stop::Interrupted("interrupted".to_owned()))
    );
    other.join().expect("it only sets a flag");

    interrupt.clear();
    let host = Sandbox::new().interrupt(&interrupt);
    assert_eq!(
        shown(&session, session.evaluate_in(host, "again", "(+ 1 2)")),
        "3"
    );
}

#[test]
fn the_memory_limit_uses_the_given_probe() {
    let session = Session::new();
    let used = Rc::new(Cell::new(0_usize));
    let counter = used.clone();
    session.add(Function::new("use", move |bytes: usize| {
        counter.set(counter.get() + bytes);
    }));
    let host = Sandbox::new().memory(1000, move || used.get());
    let failure = session
        .evaluate_in(host, "hungry", "(loop [] (use 1) (recur))")
        .expect_err("hungry");
    assert!(matches!(failure.stop(), Some(Stop::OutOfMemory(_))));
}

#[test]
fn output_is_captured_by_stream() {
    let session = Session::new();
    let output = Output::new();
    let host = Sandbox::new().output(&output);
    let text = "(println \"one\") (binding [*out* *err*] (println \"two\")) (with-out-str (println \"three\"))";
    let result = session.evaluate_in(host, "printing", text);
    assert_eq!(shown(&session, result), r#""three\n""#);
    assert_eq!(output.take(), "one\n");
    assert_eq!(output.take(), "");
    assert_eq!(output.take_errors(), "two\n");
}

#[test]
fn files_and_input_are_refused() {
    let session = Session::new();
    for text in [
        "(slurp \"x\")",
        "(spit \"x\" 1)",
        "(read-line)",
        "(require 'not.there)",
    ] {
        assert!(session.evaluate(text).is_err(), "{text}");
    }
    assert_eq!(
        shown(&session, session.evaluate("(System/currentTimeMillis)")),
        "0"
    );
}

#[test]
fn sources_are_required_by_name() {
    let session = Session::new();
    let host = Sandbox::new().source("my.lib", "(ns my.lib) (defn twice [x] [x x])");
    let text = "(require '[my.lib :as lib]) (lib/twice 1)";
    assert_eq!(
        shown(&session, session.evaluate_in(host, "main", text)),
        "[1 1]"
    );
}

#[test]
fn random_numbers_follow_the_seed() {
    let numbers = |seed| {
        let session = Session::new();
        let host = Sandbox::new().seed(seed);
        let text = "(vec (repeatedly 5 #(rand-int 1000)))";
        shown(&session, session.evaluate_in(host, "random", text))
    };
    assert_eq!(numbers(1), numbers(1));
    assert_ne!(numbers(1), numbers(2));
}

#[test]
fn steps_are_answered_at_once_or_later() {
    let session = Rc::new(Session::new());
    session.add(Function::new("ask", |vm: &mut Vm, what: Value| {
        vm.suspend(what)
    }));
    let text = "(mapv #(+ 1 (ask %)) [10 20])";

    let host = Sandbox::new().steps(|request| Ok(Value::Int(request.as_int().unwrap_or(0) * 2)));
    assert_eq!(
        shown(&session, session.evaluate_in(host, "steps", text)),
        "[21 41]"
    );

    let inner = session.clone();
    let mut fiber = Fiber::new(&session, Box::new(Sandbox::new()), move |vm| {
        inner.eval_text(vm, "steps", text)
    });
    let mut asked = Vec::new();
    let mut answer = Ok(Value::Nil);
    loop {
        answer = match fiber.resume(answer) {
            Exit::Step(request) => {
                asked.push(request.take::<Value>().expect("a value").as_int());
                Ok(Value::Int(0))
            }
            Exit::OutOfFuel => Ok(Value::Nil),
            Exit::Done(value) => break assert_eq!(value.to_string(), "[1 1]"),
            exit @ (Exit::Threw(_) | Exit::Stopped(_)) => panic!("{exit:?}"),
        };
    }
    assert_eq!(asked, [Some(10), Some(20)]);
    assert!(session.evaluate("(ask 1)").is_err());
}
