//! Functions written in Rust: typed parameters, optional and rest parameters, failures, callbacks, state.

use std::cell::Cell;
use std::error::Error;
use std::io::Write;
use std::rc::Rc;

use flowstone_embed::vm::Vm;
use flowstone_embed::{Embed, Function, Rest, Session, Value};

fn main() -> Result<(), Box<dyn Error>> {
    let session = Session::new();
    let mut out = std::io::stdout().lock();

    // Parameters are converted; a trailing `Option` may be omitted.
    session.add(
        Function::new(
            "text/pad",
            |text: String, width: usize, fill: Option<char>| {
                let missing = width.saturating_sub(text.chars().count());
                let fill = fill.unwrap_or(' ');
                text + &std::iter::repeat_n(fill, missing).collect::<String>()
            },
        )
        .usage("(pad text width)\n(pad text width fill)")
        .doc("Returns text with fill behind it, up to width characters."),
    );

    // `Rest` takes all remaining arguments.
    session.add(Function::new("stats/mean", |numbers: Rest<f64>| {
        numbers.0.iter().sum::<f64>() / numbers.0.len() as f64
    }));

    // An `Err` is thrown as an exception.
    session.add(Function::new("text/number", |text: String| {
        text.trim().parse::<i64>()
    }));

    // With the machine as first parameter, a function can call back.
    session.add(Function::new(
        "seq/count-if",
        |vm: &mut Vm, test: Value, items: Vec<Value>| {
            let mut count = 0_i64;
            for item in items {
                count += i64::from(vm.call(&test, &[item])?.is_truthy());
            }
            Ok::<_, flowstone_embed::value::Signal>(count)
        },
    ));

    // A closure keeps its state.
    let calls = Rc::new(Cell::new(0_i64));
    let counter = calls.clone();
    session.add(Function::new("app/tick", move || {
        counter.set(counter.get() + 1);
        counter.get()
    }));

    for text in [
        r#"(text/pad "ab" 5 \.)"#,
        "(stats/mean 1 2 3 4)",
        r#"(text/number " 42 ")"#,
        "(seq/count-if even? (range 10))",
        "(dotimes [_ 3] (app/tick))",
        r#"(try (text/number "many") (catch Exception e (ex-message e)))"#,
        r#"(text/pad "ab" :wide)"#,
    ] {
        match session.evaluate(text) {
            Ok(value) => writeln!(out, "{text}\n=> {}\n", session.show(&value))?,
            Err(failure) => writeln!(out, "{text}\n{failure}\n")?,
        }
    }
    writeln!(out, "ticks: {}", calls.get())?;
    Ok(())
}
