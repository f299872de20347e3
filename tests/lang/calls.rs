//! Programs of one expression.

use flowstone_lang::session::Session;
use flowstone_lang::value::{PrintOptions, Signal};
use flowstone_lang::vm::NoHost;

/// Evaluates a text and returns its value as `pr` prints it, or the error's code and message.
pub fn call(text: &str) -> String {
    let session = Session::new();
    let mut vm = session.vm(Box::new(NoHost::default()));
    let shown = session
        .eval_text(&mut vm, "<test>", text)
        .and_then(|value| vm.print(&value, PrintOptions::READABLE));
    match shown {
        Ok(shown) => shown,
        Err(Signal::Throw(error)) => format!("{} {}", error.code, error.text()),
        Err(Signal::Stop(stop)) => format!("stopped: {stop}"),
    }
}
