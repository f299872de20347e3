//! The core library: the examples of every native and every definition of `stdlib/`, and Clojure's results for the same
//! expressions.

mod examples;
mod machine;
mod oracle;
mod suites;
mod testing;
mod traps;

use flowstone_lang::session::Session;
use flowstone_lang::value::{PrintOptions, Signal, Value};
use flowstone_lang::vm::{NoHost, Vm};

/// A session for many expressions.
struct Runner {
    session: Session,
    vm: Vm,
}

impl Runner {
    fn new() -> Runner {
        let session = Session::new();
        let vm = session.vm(Box::new(NoHost::default()));
        Runner { session, vm }
    }

    /// Evaluates a text and prints its value, or the exception that it throws.
    fn run(&mut self, text: &str) -> String {
        let options = PrintOptions {
            length: Some(50),
            ..PrintOptions::READABLE
        };
        let result = self
            .eval(text)
            .and_then(|value| self.vm.print(&value, options));
        match result {
            Ok(shown) => shown,
            Err(Signal::Throw(exception)) => format!(
                "{} {}: {}",
                exception.class.0.name,
                exception.code,
                exception.text()
            ),
            Err(Signal::Stop(stop)) => format!("stopped: {stop}"),
        }
    }

    fn eval(&mut self, text: &str) -> Result<Value, Signal> {
        self.session.eval_text(&mut self.vm, "<test>", text)
    }
}
