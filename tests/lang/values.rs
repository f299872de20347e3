//! Values: equality, hashes, order, numbers, printing. Expected values come from Clojure 1.11.

mod arithmetic;
mod collections;
mod deep;
mod equality;
mod hashes;
mod natives;
mod printing;

use flowstone_lang::session::Session;
use flowstone_lang::value::{PrintOptions, Unforced, Value, print_value};

/// Reads one form.
fn read(text: &str) -> Value {
    let session = Session::new();
    let forms = session.read("test", text).expect("the case can be read");
    forms.into_iter().next().expect("the case has a form")
}

/// Prints as `pr-str` does.
fn show(value: &Value) -> String {
    show_with(value, PrintOptions::READABLE)
}

fn show_with(value: &Value, options: PrintOptions) -> String {
    let mut out = String::new();
    print_value(&mut out, &mut Unforced, value, options).expect("nothing to compute");
    out
}
