//! Requests that leave the language: two programs wait for answers on one thread, like tasks of an event loop.

use std::collections::VecDeque;
use std::error::Error;
use std::io::Write;
use std::rc::Rc;

use flowstone_embed::fiber::{Exit, Fiber};
use flowstone_embed::value::Keyword;
use flowstone_embed::vm::Vm;
use flowstone_embed::{Embed, Function, Sandbox, Session, Value};

fn program(session: &Rc<Session>, text: &'static str) -> Fiber {
    let inner = session.clone();
    Fiber::new(session, Box::new(Sandbox::new()), move |vm| {
        inner.eval_text(vm, "program.clj", text)
    })
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut out = std::io::stdout().lock();
    let session = Rc::new(Session::new());
    // The request is any value; the answer is the result of the call.
    session.add(Function::new(
        "app/ask",
        |vm: &mut Vm, what: Keyword, argument: Value| {
            vm.suspend(Value::vector([what.into(), argument]))
        },
    ));

    let first = program(
        &session,
        r#"(str "The sum is " (reduce + (map #(app/ask :double %) [1 2 3])))"#,
    );
    let second = program(&session, r#"(app/ask :shout (app/ask :double "ha"))"#);

    let mut waiting =
        VecDeque::from([("first", first, Value::Nil), ("second", second, Value::Nil)]);
    while let Some((name, mut fiber, answer)) = waiting.pop_front() {
        match fiber.resume(Ok(answer)) {
            Exit::Done(value) => writeln!(out, "{name} => {value}")?,
            Exit::Threw(exception) => writeln!(out, "{name} threw: {}", exception.text())?,
            Exit::Stopped(stop) => writeln!(out, "{name} was stopped: {stop}")?,
            Exit::OutOfFuel => waiting.push_back((name, fiber, Value::Nil)),
            Exit::Step(request) => {
                let request = request.take().map_err(|_| "a request of another kind")?;
                writeln!(out, "{name} asks {request}")?;
                let answer = perform(&request);
                waiting.push_back((name, fiber, answer));
            }
        }
    }
    Ok(())
}

/// Stands for the asynchronous work of an application.
fn perform(request: &Value) -> Value {
    let item = |idx| request.as_vector().and_then(|items| items.get(idx));
    let what = item(0).and_then(Value::as_keyword);
    match (what.map(Keyword::name).as_deref(), item(1)) {
        (Some("double"), Some(Value::Int(int))) => Value::Int(int * 2),
        (Some("double"), Some(Value::Text(text))) => Value::from(text.repeat(2)),
        (Some("shout"), Some(Value::Text(text))) => Value::from(text.to_uppercase()),
        _ => Value::Nil,
    }
}
