//! Functions for the end of a run: `compensate`, `on-cancel`, `continue-as-new`.

use flowstone_lang::value::{Arity, Native, Result, Value};
use flowstone_lang::vm::Args;

use super::{Request, ask};

pub(super) const COMPENSATE: Native = Native {
    name: "compensate",
    usage: "(compensate step-form undo)",
    doc: "Performs the step, returns its value, and remembers how to undo it: when the run fails or is cancelled \
          later, undo is called, the last one first. undo takes no argument, or the step's value; its steps have \
          their own retries. One that fails suspends the run as `failed-compensating`.",
    examples: &[],
    arity: Arity::exactly(2),
    run: |vm, args| {
        vm.realise(args.get(0))?;
        function(&args, 1)?;
        let (value, function) = (args.get(0).clone(), args.get(1).clone());
        ask(vm, Request::Compensate { value, function })
    },
};

pub(super) const ON_CANCEL: Native = Native {
    name: "on-cancel",
    usage: "(on-cancel thunk)",
    doc: "Registers thunk, a function without arguments, to be called when the run is cancelled or times out, after its \
          `finally` blocks, the last one first. Returns nil.",
    examples: &[],
    arity: Arity::exactly(1),
    run: |vm, args| {
        function(&args, 0)?;
        let function = args.get(0).clone();
        ask(vm, Request::OnCancel { function })
    },
};

pub(super) const CONTINUE_AS_NEW: Native = Native {
    name: "continue-as-new",
    usage: "(continue-as-new input)",
    doc: "Ends this pass of the run and starts the flow again, as the same run, with this input and an empty \
          journal, so that the journal of an endless loop does not grow. `finally` blocks run, no `catch` sees it, and what \
          `compensate` remembered is dropped. Only outside of branches.",
    examples: &[],
    arity: Arity::exactly(1),
    run: |vm, args| {
        vm.realise(args.get(0))?;
        let input = args.get(0).clone();
        ask(vm, Request::ContinueAsNew { input })
    },
};

fn function(args: &Args<'_>, idx: usize) -> Result<()> {
    match args.get(idx) {
        Value::Fn(_) | Value::Native(_) | Value::Object(_) | Value::Var(_) => Ok(()),
        _ => Err(args.expected(idx, "a function, such as `(fn [] ...)`")),
    }
}
