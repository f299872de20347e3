//! Calls of natives without a compiler: a form is a call of a native whose arguments are data or calls.

use flowstone_lang::session::Session;
use flowstone_lang::value::{PrintOptions, Result, Signal, Value};
use flowstone_lang::vm::{NoHost, Vm};

/// Evaluates a text of one call and gives what it printed by `pr`, or the error's code and message.
pub fn call(text: &str) -> String {
    let session = Session::new();
    let mut vm = session.vm(Box::new(NoHost::default()));
    let shown = session
        .read("<test>", text)
        .and_then(|forms| eval(&mut vm, &forms[0]))
        .and_then(|value| vm.print(&value, PrintOptions::READABLE));
    match shown {
        Ok(shown) => shown,
        Err(Signal::Throw(error)) => format!("{} {}", error.code, error.text()),
        Err(Signal::Stop(stop)) => format!("stopped: {stop}"),
    }
}

fn eval(vm: &mut Vm, form: &Value) -> Result<Value> {
    match form {
        Value::List(list) => {
            let mut items = list.iter();
            let head = items.next().and_then(Value::as_symbol).expect("a call");
            if head.is("quote") {
                return Ok(items.next().cloned().unwrap_or(Value::Nil));
            }
            let var = vm.world().resolve(head);
            let function = var.and_then(|var| var.root()).expect("a native");
            let args = items
                .map(|item| eval(vm, item))
                .collect::<Result<Vec<_>>>()?;
            vm.call(&function, &args)
        }
        Value::Vector(vector) => {
            let items = vector.iter().map(|item| eval(vm, item));
            Ok(Value::vector(items.collect::<Result<Vec<_>>>()?))
        }
        Value::Map(map) => {
            let entries = map
                .iter()
                .map(|(key, value)| Ok((eval(vm, key)?, eval(vm, value)?)));
            Ok(Value::map(entries.collect::<Result<Vec<_>>>()?))
        }
        Value::Name(name) => Ok(vm
            .world()
            .resolve(name.symbol)
            .and_then(|var| var.root())
            .unwrap_or_else(|| form.clone())),
        form => Ok(form.clone()),
    }
}
