//! `call-flow`: starts another flow as a child run.

use flowstone_lang::value::{Arity, Class, Exception, Map, Native, Result, Value};
use flowstone_lang::vm::{Args, Vm};
use flowstone_model::names::name_of;

use super::{Request, ask};
use crate::call_flow;

pub(super) const CALL_FLOW: Native = Native {
    name: "call-flow",
    usage: "(call-flow slug)\n(call-flow slug input)\n(call-flow slug input opts)",
    doc: "Runs another flow of the project as a run of its own, and returns its output; a child that fails is an \
          error of kind `:child-failed`. slug is the name of its file or its `:slug`. opts: :id names the step \
          (default: the slug), and the options of the `:call-flow` step: :timeout :retry :on-error \
          :installation-id :parent-close-policy :priority :version :workflow-id.",
    examples: &[],
    arity: Arity::between(1, 3),
    run: |vm, args| call_flow(vm, &args),
};

fn call_flow(vm: &mut Vm, args: &Args<'_>) -> Result<Value> {
    let slug = match args.get(0) {
        slug @ (Value::Keyword(_) | Value::Text(_)) => slug.clone(),
        _ => return Err(args.expected(0, "the name of a flow, a keyword or a string")),
    };
    for argument in &args.as_slice()[1..] {
        vm.realise(argument)?;
    }
    let (input, options) = match args.as_slice() {
        [_, input, options, ..] => (input, options),
        [_, input] => (input, &Value::Nil),
        _ => (&Value::Nil, &Value::Nil),
    };
    let mut config = match options {
        Value::Nil => Default::default(),
        Value::Map(map) => map.entries().clone(),
        _ => return Err(args.expected(2, "a map of options")),
    };
    for key in call_flow::ARGUMENTS {
        if config.get(&Value::keyword(key)).is_some() {
            let message =
                format!("`:{key}` is not an option of `flow/call-flow`: it is an argument");
            return Err(Exception::new(Class::ILLEGAL_ARGUMENT, "E0710", message).into());
        }
    }
    let id = config.remove(&Value::keyword("id"));
    let id = match id {
        Some(id) if !id.is_nil() => id,
        _ => Value::from(&*name_of(&slug).unwrap_or_default()),
    };
    config.insert(Value::keyword("flow-slug"), slug);
    if !input.is_nil() {
        config.insert(Value::keyword("input"), input.clone());
    }
    let config = Value::Map(std::rc::Rc::new(Map::new(config)));
    let request = Request::Step {
        kind: Value::keyword(call_flow::KIND),
        id,
        config,
        place: vm.here(),
    };
    ask(vm, request)
}
